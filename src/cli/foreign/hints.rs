//! Options of other programs, and what to write instead.

/// Options by their words behind one dash, and what to write instead. Of several with the same word the first
/// counts whose options the command has.
pub(super) const HINTS: &[(&[&str], &str)] = &[
    (
        &["-loglevel"],
        "write -q for warnings and errors alone, -v for more",
    ),
    (&["-hide_banner", "-nostdin", "-stats"], "leave it out"),
    (&["-ss", "-from"], "write --start, such as --start 0:05"),
    (&["-t"], "write --duration, such as --duration 3"),
    (&["-to"], "write --end, such as --end 0:08"),
    (
        &["-crf", "-qp", "-cq", "-q:v", "-qscale", "-qscale:v"],
        "write --quality, such as --quality 20",
    ),
    (
        &["-b:v", "-bitrate"],
        "write --quality, or the encoder's own --encoder-option b=4M",
    ),
    (&["-an", "-no-sound", "-nosound", "-mute"], "write --no-audio"),
    (&["-sn"], "write --no-subtitles"),
    (
        &["-c:v", "-codec:v", "-vcodec"],
        "write --encoder, such as --encoder libx265",
    ),
    (
        &["-c:a", "-codec:a", "-acodec"],
        "write --audio-encoder, such as --audio-encoder libopus",
    ),
    (
        &["-c", "-codec"],
        "write --encoder for the picture; sound and subtitles are copied where the output can hold them, \
         --audio-encoder encodes sound",
    ),
    (
        &["-audio"],
        "sound goes along; write --no-audio to leave it out, --audio-encoder to encode it",
    ),
    (
        &["-filter", "-filter:v", "-filter_complex", "-lavfi"],
        "write --filter",
    ),
    (
        &["-sigma", "-size", "-radius"],
        "it belongs to the filter, such as --filter gaussian:sigma=2 or --filter box:size=5",
    ),
    (&["-roi"], "write --region, such as --region 200x100+10+20"),
    (
        &["-crop"],
        "frames keep their size; --region filters a part of them, such as --region 200x100+10+20",
    ),
    (&["-pix_fmt"], "write --pixel-format"),
    (
        &["-r", "-framerate", "-rate"],
        "write --fps, which image files have",
    ),
    (&["-map"], "write --streams, such as --streams 1,3"),
    (&["-preset"], "write --preset"),
    (
        &["-tune"],
        "write --encoder-option, such as --encoder-option tune=grain",
    ),
    (
        &["-movflags"],
        "write --encoder-option, such as --encoder-option movflags=frag_keyframe",
    ),
    (&["-g"], "write --encoder-option, such as --encoder-option g=25"),
    (
        &[
            "-profile",
            "-profile:v",
            "-level",
            "-maxrate",
            "-bufsize",
            "-x264-params",
            "-x265-params",
            "-svtav1-params",
        ],
        "write --encoder-option KEY=VALUE",
    ),
    (
        &["-threads"],
        "write --threads, --decoder-threads or --encoder-threads",
    ),
    (&["-threads"], "write --decoder-threads or --encoder-threads"),
    (&["-threads"], "write --threads or --decoder-threads"),
    (&["-threads"], "write --decoder-threads"),
    (
        &["-hwaccel"],
        "write --decoder nvdec; a card that filters decodes by itself where that is faster",
    ),
    (
        &["-hwaccel_device"],
        "write --device, which is the card that filters and decodes",
    ),
    (
        &["-hwaccel", "-hwaccel_device", "-hwaccel_output_format"],
        "leave it out",
    ),
    (&["-gpu", "-cuda"], "write --engine cuda"),
    (
        &["-frames", "-frames:v", "-vframes"],
        "write --duration with an f, such as --duration 100f",
    ),
    (&["-start_number"], "write --start-number"),
    (
        &["-n"],
        "an output that is there stays as it is, unless --overwrite is given",
    ),
    (&["-force"], "write --overwrite"),
    (&["-resume"], "write --skip-existing"),
    (&["-i"], "names stand without it"),
];

/// The same for one command: options that it does not have though another one has, or that mean something of
/// its own.
pub(super) const ELSEWHERE: &[(&str, &[&str], &str)] = &[
    (
        "filter",
        &["-output", "-o"],
        "the output is the last name: framepipe filter in.mp4 out.mp4",
    ),
    (
        "filter",
        &["-i"],
        "names stand without it, the output last: framepipe filter in.mp4 out.mp4",
    ),
    (
        "preview",
        &["-start", "-ss", "-from"],
        "the time follows the input: framepipe preview in.mp4 0:05",
    ),
    ("preview", &["-compare"], "write --layout, such as --layout split"),
    (
        "diff",
        &["-lavfi", "-filter_complex", "-filter"],
        "PSNR and SSIM are printed by themselves; frames are compared unfiltered",
    ),
    (
        "plan",
        &["-engine", "-gpu", "-cuda", "-device", "-devices"],
        "whoever makes the parts chooses: framepipe part --engine cuda, framepipe run --devices all",
    ),
    (
        "plan",
        &["-region", "-regions", "-matte", "-roi"],
        "parts are filtered as whole pictures; filter the input in one run",
    ),
];

/// FFmpeg's formats that are no containers here, and what to write.
pub(super) const FORMATS: &[(&str, &str)] = &[
    ("null", "write null: as the output"),
    ("rawvideo", "write raw:PATH as the output"),
    ("yuv4mpegpipe", "write - as the output"),
    ("image2", "write a name such as frames/%05d.png as the output"),
    ("image2pipe", "write a name such as frames/%05d.png as the output"),
];

/// What FFmpeg's -v takes, apart from numbers.
pub(super) const LEVELS: &[&str] = &[
    "quiet", "panic", "fatal", "error", "warning", "info", "verbose", "debug", "trace",
];
