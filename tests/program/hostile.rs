//! Strangers' files, faults and signals: no file reads another, nothing is lost without a word, every run
//! ends when it is asked to.
use crate::common::{PROGRAM as BINARY, ffmpeg, framepipe, said};
use crate::folder::Folder;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until a run has made its unfinished file, which it does when it hears signals and has its input
/// open.
fn begun(folder: &Folder) {
    let began = Instant::now();
    while folder.left_over().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is written");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(400));
}

fn filter(arguments: &[&str]) -> Output {
    let all = [
        &["filter"],
        arguments,
        &["--filter", "identity", "--engine", "cpu"],
    ]
    .concat();
    framepipe(&all).output().unwrap()
}

fn signal(child: &Child, signal: &str) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Waits for the end of a run that was asked to end, and asserts that it comes within two seconds.
fn ends(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(2), "it goes on");
        sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// A picture of one colour as a transport stream.
fn coloured(path: &str, colour: &str) {
    let source = format!("color=c={colour}:s=64x48:d=1");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        &source,
        "-c:v",
        "mpeg2video",
        "-f",
        "mpegts",
        path,
    ]);
}

#[test]
fn one_file_is_one_file() {
    let folder = Folder::new();
    for name in ["up", "private"] {
        fs::create_dir(folder.at(name)).unwrap();
    }
    let secret = folder.name("private/secret.ts");
    coloured(&secret, "red");
    coloured(&folder.name("up/near.ts"), "blue");
    let list =
        |target: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.0,\n{target}\n#EXT-X-ENDLIST\n");
    let dash = format!(
        "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
         mediaPresentationDuration=\"PT1S\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\"><Period>\
         <AdaptationSet mimeType=\"video/mp2t\"><Representation id=\"1\" bandwidth=\"1000\"><BaseURL>{secret}\
         </BaseURL></Representation></AdaptationSet></Period></MPD>"
    );
    let inputs = [
        ("absolute.mp4", list(&format!("file://{secret}"))),
        ("path.mkv", list(&secret)),
        ("above.m3u8", list("../private/secret.ts")),
        ("near.mp4", list("near.ts")),
        ("dash.mp4", dash),
        ("concat.mp4", "ffconcat version 1.0\nfile near.ts\n".to_owned()),
        (
            "above.txt",
            "ffconcat version 1.0\nfile ../private/secret.ts\n".to_owned(),
        ),
        (
            "index.mp4",
            "# VobSub index file, v7\ntimestamp: 00:00:00:000, filepos: 000000000\n".to_owned(),
        ),
        (
            "session.mp4",
            "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n\
          a=rtpmap:96 H264/90000\n"
                .to_owned(),
        ),
    ];
    // Beside it in the other folder, too.
    let manifest = folder.name("private/above.mpd");
    let source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:d=1", "-c:v", "libx264"];
    ffmpeg(&[&source[..], &["-f", "dash", &manifest]].concat());
    let elsewhere = fs::read_to_string(&manifest).unwrap();
    let elsewhere = elsewhere.replace("\"init-", "\"../private/init-");
    let elsewhere = elsewhere.replace("\"chunk-", "\"../private/chunk-");
    assert!(
        filter(&[&manifest, "null:", "--allow-playlists"])
            .status
            .success()
    );
    let inputs = inputs.into_iter().chain([("above.mpd", elsewhere)]);
    let inputs: Vec<(&str, String)> = inputs.collect();
    let out = folder.name("out.mkv");
    for (name, content) in &inputs {
        let path = folder.write(&format!("up/{name}"), content);
        let done = filter(&[&path, &out]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
        assert!(!folder.at("out.mkv").exists(), "{name}");
        let names_option = said(&done).contains("--allow-");
        assert!(names_option, "{name}: {}", said(&done));
    }
    // With the option a list opens what lies in its own folder, and nothing else.
    for (name, opens) in [
        ("near.mp4", true),
        ("concat.mp4", true),
        ("path.mkv", false),
        ("above.m3u8", false),
        ("dash.mp4", false),
        ("above.mpd", false),
    ] {
        let path = folder.name(&format!("up/{name}"));
        let done = filter(&[&path, &out, "--allow-playlists", "--overwrite"]);
        assert_eq!(done.status.success(), opens, "{name}: {}", said(&done));
    }
}

/// A second of 25 pictures.
fn mpeg4(path: &str) {
    let source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1"];
    ffmpeg(&[&source[..], &["-c:v", "mpeg4", path]].concat());
}

/// What of a list cannot be read is an error before anything is written, or a warning of what is missing.
#[test]
fn what_a_list_names_and_is_not_read_is_said() {
    let folder = Folder::new();
    for name in ["up", "up/sub", "private"] {
        fs::create_dir(folder.at(name)).unwrap();
    }
    for name in ["up/a.mkv", "up/sub/b.mkv", "private/c.mkv"] {
        mpeg4(&folder.name(name));
    }
    let whole = fs::read(folder.at("up/a.mkv")).unwrap();
    folder.write("up/empty.mkv", "");
    folder.write("up/noise.mkv", [b'x'; 999]);
    folder.write("up/cut.mkv", &whole[..whole.len() / 2]);
    std::os::unix::fs::symlink(folder.at("private/c.mkv"), folder.at("up/link.mkv")).unwrap();
    folder.write(
        "up/s.m3u8",
        "#EXTM3U\n#EXTINF:1,\n../private/c.mkv\n#EXT-X-ENDLIST\n",
    );
    folder.write("up/inner.ffconcat", "ffconcat version 1.0\nfile missing.mkv\n");
    let (list, out) = (folder.name("up/l.ffconcat"), folder.name("out.mkv"));
    let run = |names: &[&str], options: &[&str]| {
        let lines: String = names.iter().map(|name| format!("file {name}\n")).collect();
        fs::write(&list, format!("ffconcat version 1.0\n# a remark\n{lines}")).unwrap();
        filter(
            &[
                &[&list[..], &out, "--allow-playlists", "--overwrite", "-q"],
                options,
            ]
            .concat(),
        )
    };
    for (name, words) in [
        (
            "missing.mkv",
            "it names missing.mkv (line 4), and there is no such file",
        ),
        (
            "sub/b.mov",
            "it names sub/b.mov (line 4), and there is no such file",
        ),
        ("empty.mkv", "(line 4), which is empty"),
        ("sub", "(line 4), which is a folder"),
        ("../private/c.mkv", "only files in its own folder"),
        (
            "'a b.mkv'",
            "it names a b.mkv (line 4), and of a list FFmpeg reads only",
        ),
        (
            "link.mkv",
            "a link to a file that does not lie in the list's own folder",
        ),
        ("s.m3u8", "a playlist (HLS), and such are not read within a list"),
        (
            "inner.ffconcat",
            "it names missing.mkv (line 2), and there is no such file",
        ),
    ] {
        let done = run(&["a.mkv", name, "a.mkv"], &[]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
        assert!(said(&done).contains(words), "{name}: {}", said(&done));
        assert!(!folder.at("out.mkv").exists(), "{name}");
    }
    // What shows itself when it is read: the rest is missing.
    for (name, words) in [
        (
            "noise.mkv",
            "noise.mkv, which it names, cannot be read as a video",
        ),
        ("cut.mkv", "up/cut.mkv, which it names, was cut off"),
    ] {
        let done = run(&["a.mkv", name, "a.mkv"], &[]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        assert!(
            said(&done).contains(words) && said(&done).contains("the input is incomplete"),
            "{name}: {}",
            said(&done)
        );
        let done = run(&["a.mkv", name, "a.mkv"], &["--strict"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
        let done = run(&[name, "a.mkv"], &["--strict"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
    }
    let done = run(&["a.mkv", "'sub/b.mkv'", "a.mkv"], &["--strict"]);
    assert!(done.status.success() && done.stderr.is_empty(), "{}", said(&done));
    let frames = ffmpeg(&["-i", &out, "-f", "framemd5", "-"]);
    let frames = String::from_utf8(frames).unwrap();
    assert_eq!(frames.lines().filter(|line| !line.starts_with('#')).count(), 75);
}

#[test]
fn a_list_or_playlist_without_an_end_is_refused() {
    let folder = Folder::new();
    let endless = [
        (
            "self.ffconcat",
            "ffconcat version 1.0\nfile self.ffconcat\n",
            "too deeply",
        ),
        (
            "self.m3u8",
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nself.m3u8\n",
            "names playlists itself",
        ),
    ];
    for (name, text, words) in endless {
        let list = folder.write(name, text);
        let done = filter(&[&list, "null:", "--allow-playlists"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
        assert!(said(&done).contains(words), "{name}: {}", said(&done));
    }
}

/// A segment that is missing in the middle, or in front, of a playlist or manifest.
#[test]
fn missing_segments_are_no_silence() {
    let folder = Folder::new();
    let source = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=4"];
    let encoder = ["-c:v", "libx264", "-g", "25", "-pix_fmt", "yuv420p"];
    for (name, muxer) in [
        (
            "a.m3u8",
            &["-f", "hls", "-hls_time", "1", "-hls_list_size", "0"][..],
        ),
        ("a.mpd", &["-f", "dash", "-seg_duration", "1"]),
    ] {
        let list = folder.name(name);
        ffmpeg(&[&source[..], &encoder, muxer, &[&list]].concat());
    }
    let out = folder.name("out.mkv");
    let run = |name: &str, options: &[&str]| {
        let list = folder.name(name);
        filter(
            &[
                &[&list[..], &out, "--allow-playlists", "--overwrite", "-q"],
                options,
            ]
            .concat(),
        )
    };
    for name in ["a.m3u8", "a.mpd"] {
        let done = run(name, &["--strict"]);
        assert!(
            done.status.success() && done.stderr.is_empty(),
            "{name}: {}",
            said(&done)
        );
        fs::remove_file(&out).unwrap();
    }
    let without = |segment: &str, test: &dyn Fn()| {
        let (here, away) = (folder.at(segment), folder.at("away"));
        fs::rename(&here, &away).unwrap();
        test();
        fs::rename(&away, &here).unwrap();
    };
    for segment in ["a0.ts", "a2.ts"] {
        without(segment, &|| {
            let done = run("a.m3u8", &[]);
            assert_eq!(done.status.code(), Some(1), "{segment}: {}", said(&done));
            let words = format!("{segment}, and there is no such file");
            assert!(said(&done).contains(&words), "{segment}: {}", said(&done));
            assert!(!folder.at("out.mkv").exists(), "{segment}");
        });
    }
    for segment in ["chunk-stream0-00001.m4s", "chunk-stream0-00003.m4s"] {
        without(segment, &|| {
            let done = run("a.mpd", &[]);
            let words = "1 file that it names cannot be opened, and what it holds is missing: ";
            assert!(done.status.success(), "{segment}: {}", said(&done));
            let name = folder.name(segment);
            assert!(
                said(&done).contains(&format!("{words}{name}\n")),
                "{segment}: {}",
                said(&done)
            );
            fs::remove_file(&out).unwrap();
            let done = run("a.mpd", &["--strict"]);
            assert_eq!(done.status.code(), Some(1), "{segment}: {}", said(&done));
        });
    }
    without("init-stream0.m4s", &|| {
        let done = run("a.mpd", &[]);
        let name = folder.name("init-stream0.m4s");
        assert_eq!(done.status.code(), Some(1), "{}", said(&done));
        assert!(
            said(&done).contains(&format!("it names {name}, which cannot be opened")),
            "{}",
            said(&done)
        );
    });
}

/// Links in a folder, or among what a pattern matches: a stranger who sends a folder may choose what they
/// lead to.
#[test]
fn links_out_of_a_folder_are_not_read_by_confined_runs() {
    let folder = Folder::new();
    for name in ["away", "out", "links", "deep", "deep/one", "near", "one", "clips"] {
        fs::create_dir(folder.at(name)).unwrap();
    }
    let picture = folder.name("away/p.png");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc=s=32x24", "-frames:v", "1", &picture]);
    let clip = folder.name("away/c.mkv");
    ffmpeg(&["-i", &picture, "-c:v", "ffv1", &clip]);
    for plain in ["links/0.png", "near/0.png", "one/0.png", "one/1.png"] {
        fs::copy(&picture, folder.at(plain)).unwrap();
    }
    for (target, link) in [
        (&*picture, "links/1.png"),
        (&*picture, "deep/one/1.png"),
        (&*clip, "clips/c.mkv"),
        ("0.png", "near/1.png"),
        (&*folder.name("links"), "into"),
        (&*folder.name("away"), "deep/two"),
    ] {
        std::os::unix::fs::symlink(target, folder.at(link)).unwrap();
    }
    let plain = folder.name("one");
    let out = folder.name("out/");
    for (inputs, matte, count) in [
        (&["links"][..], None, None),
        (&["links/*.png"], None, None),
        (&["links/%d.png"], None, None),
        (&["into"], None, None),
        (&["deep/*/*.png"], None, None),
        (&["clips"], None, None),
        (&["clips/*.mkv", "one/0.png"], None, None),
        (&["one"], Some("links"), None),
        (&["near"], Some("near/%d.png"), Some(2)),
        // A link that is named is the user's own.
        (&["links/1.png"], None, Some(1)),
        (&["links/1.png", "one/0.png"], Some("links/0.png"), Some(2)),
    ] {
        let inputs: Vec<String> = inputs.iter().map(|name| folder.name(name)).collect();
        let mut arguments: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let matte = matte.map(|name| folder.name(name));
        arguments.extend([&*out, "--untrusted"]);
        arguments.extend(matte.iter().flat_map(|matte| ["--matte", matte.as_str()]));
        let done = filter(&arguments);
        if said(&done).contains("this system cannot confine the program") {
            println!("SKIPPED: this kernel has no Landlock");
            return;
        }
        let made = fs::read_dir(&out).unwrap().count();
        match count {
            Some(count) => assert!(
                done.status.success() && made == count,
                "{arguments:?}: {}",
                said(&done)
            ),
            None => assert!(
                done.status.code() == Some(1)
                    && made == 0
                    && said(&done).contains("is a link that leads out of"),
                "{arguments:?}: {}",
                said(&done)
            ),
        }
        fs::remove_dir_all(&out).unwrap();
        fs::create_dir(&out).unwrap();
    }
    for more in [&["preview", "-o"][..], &["diff"]] {
        let mut arguments = vec![more[0], &plain];
        let links = folder.name("links");
        match more {
            ["diff"] => arguments.push(&links),
            _ => arguments = vec!["preview", &links, "--filter", "soft", "-o", "/dev/null.png"],
        }
        let done = framepipe(&[&arguments[..], &["--untrusted"]].concat())
            .output()
            .unwrap();
        assert!(said(&done).contains("leads out of"), "{more:?}: {}", said(&done));
    }
}

#[test]
fn a_name_is_a_file_and_no_url() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    for name in [
        format!("http://{at}/a.mp4"),
        format!("tcp://{at}"),
        format!("subfile,,start,0,end,0,,:{}", file!()),
        "concat:a|b".to_owned(),
        "data:text/plain,abc".to_owned(),
    ] {
        let done = filter(&[&name, "null:"]);
        assert_eq!(done.status.code(), Some(1));
        assert!(said(&done).contains("--allow-urls"), "{}", said(&done));
    }
    let picture = format!("http://{at}/cover.png");
    for options in [&[][..], &["--allow-urls"]] {
        let done = filter(&[&[&*picture, "null:"], options].concat());
        let words = "pictures are read from files, not from URLs";
        assert!(
            done.status.code() == Some(1) && said(&done).contains(words),
            "{}",
            said(&done)
        );
    }
    assert!(listener.accept().is_err(), "a connection came");
}

#[test]
fn holes_are_counted_and_end_a_strict_run() {
    let folder = Folder::new();
    let source = "testsrc2=s=320x180:d=12";
    for (name, codec) in [
        ("a.mkv", "libx264"),
        ("a.webm", "libvpx"),
        ("a.flv", "flv1"),
        ("a.ts", "mpeg2video"),
    ] {
        let path = folder.name(name);
        ffmpeg(&[
            "-f", "lavfi", "-i", source, "-c:v", codec, "-g", "10", "-b:v", "1M", &path,
        ]);
        let mut bytes = fs::read(&path).unwrap();
        let whole = filter(&[&path, "null:", "--strict", "-q"]);
        assert!(
            whole.status.success() && whole.stderr.is_empty(),
            "{name}: {}",
            said(&whole)
        );
        let (from, len) = (bytes.len() / 2, bytes.len() / 12);
        bytes[from..from + len].fill(0);
        let path = folder.write(&format!("hole-{name}"), bytes);
        let done = filter(&[&path, "null:", "-q"]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        assert!(
            said(&done).contains("warning: ") && said(&done).contains("missing"),
            "{name}: {}",
            said(&done)
        );
        assert_eq!(filter(&[&path, "null:", "-qq"]).stderr, b"", "{name}");
        let done = filter(&[&path, "null:", "--strict", "-q"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
    }
}

/// Bytes of a y4m file's header with its line break.
fn header_length(path: &str) -> u64 {
    let bytes = fs::read(path).unwrap();
    bytes.iter().position(|&b| b == b'\n').unwrap() as u64 + 1
}

/// True if the tests were started as nohup does, which the program respects.
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

#[test]
fn a_file_that_shrinks_is_an_error() {
    let folder = Folder::new();
    let path = folder.name("a.y4m");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=320x240:d=8",
        "-pix_fmt",
        "yuv420p",
        &path,
    ]);
    let out = folder.name("out.mkv");
    let arguments = [
        "filter",
        &path,
        &out,
        "--filter",
        "gaussian:sigma=3",
        "--preset",
        "veryslow",
        "-q",
    ];
    let child = framepipe(&arguments).spawn().unwrap();
    begun(&folder);
    // A frame's line and its 4:2:0 samples, behind the header's line: the cut is between two frames.
    let (header, frame) = (header_length(&path), 6 + 320 * 240 * 3 / 2);
    let half = header + (fs::metadata(&path).unwrap().len() - header) / 2 / frame * frame;
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(half)
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(said(&done).contains("became shorter"), "{}", said(&done));
    assert!(!Path::new(&out).exists() && folder.left_over().is_empty());
}

#[test]
fn a_signal_never_puts_a_short_file_in_place_of_a_whole_one() {
    let folder = Folder::new();
    let endless = "synthetic:320x240:yuv420p:25:1000000";
    let old = folder.write("old.mkv", b"whole");
    let new = folder.name("new.mkv");
    let cases: [(&str, &str, &[&str], bool); 6] = [
        (&old, "INT", &["--overwrite"], false),
        (&old, "TERM", &["--overwrite", "--on-interrupt", "keep"], false),
        (&new, "TERM", &[], false),
        (&new, "HUP", &[], false),
        (&new, "INT", &["--on-interrupt", "discard"], false),
        (&new, "INT", &[], true),
    ];
    for (out, which, options, stays) in cases {
        if which == "HUP" && ignores_hang_up() {
            continue;
        }
        let arguments = [&["filter", endless, out, "--filter", "soft", "-q"], options].concat();
        let child = framepipe(&arguments).spawn().unwrap();
        begun(&folder);
        signal(&child, which);
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{which} {}", said(&done));
        assert_eq!(fs::read(&old).unwrap(), b"whole");
        assert_eq!(Path::new(&new).exists(), stays, "{which} {options:?}");
        assert!(folder.left_over().is_empty());
        // What was written is said whatever -q hides.
        assert_eq!(said(&done).contains("interrupted: "), stays);
    }
}

#[test]
fn stalled_pipes_end_by_a_signal_and_by_the_clock() {
    let folder = Folder::new();
    let video = folder.name("a.ts");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=320x240:d=4",
        "-c:v",
        "mpeg2video",
        &video,
    ]);
    let head = &fs::read(&video).unwrap()[..200_000];
    let out = folder.name("out.mkv");
    let begin = |options: &[&str]| {
        let arguments = [&["filter", "/dev/stdin", &out, "--filter", "soft"], options].concat();
        let mut child = framepipe(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(head).unwrap();
        begun(&folder);
        (child, pipe)
    };
    let (child, pipe) = begin(&[]);
    signal(&child, "TERM");
    assert_eq!(ends(child).status.code(), Some(130));
    drop(pipe);
    let (child, pipe) = begin(&["--timeout", "1"]);
    let done = ends(child);
    assert_eq!(done.status.code(), Some(1));
    assert!(said(&done).contains("--timeout"), "{}", said(&done));
    drop(pipe);
    assert!(!Path::new(&out).exists() && folder.left_over().is_empty());
    // A matte to which nobody writes.
    for matte in ["m", "m.y4m"] {
        let matte = folder.name(matte);
        assert!(Command::new("mkfifo").arg(&matte).status().unwrap().success());
        let arguments = ["filter", &video, &out, "--filter", "soft", "--matte", &matte];
        let child = framepipe(&arguments).spawn().unwrap();
        begun(&folder);
        signal(&child, "TERM");
        assert_eq!(ends(child).status.code(), Some(130), "{matte}");
        assert!(folder.left_over().is_empty(), "{matte}");
    }
    // A reader that has fallen asleep.
    let arguments = [
        "filter",
        "synthetic:320x240:yuv420p:25:100000",
        "-",
        "--filter",
        "soft",
        "-q",
    ];
    let child = framepipe(&arguments).spawn().unwrap();
    sleep(Duration::from_millis(1500));
    signal(&child, "TERM");
    let began = Instant::now();
    let mut child = child;
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(2), "it goes on");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn words_of_files_are_no_commands_to_a_terminal() {
    let folder = Folder::new();
    let done = filter(&["x\nerror: forged\u{1b}[31m\u{202e}.mp4", "null:"]);
    let text = said(&done);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    // In the lines about a run, the plan of one and a comparison.
    let forged = folder.write(
        "a\nerror: forged.y4m",
        b"YUV4MPEG2 W2 H2 F25:1 Cmono\nFRAME\n1234",
    );
    for words in [
        &["filter", &forged, "null:", "--filter", "identity"][..],
        &["filter", &forged, "null:", "--filter", "identity", "--stats"],
        &["filter", &forged, "null:", "--filter", "identity", "--dry-run"],
        &[
            "filter",
            &forged,
            &folder.name("out/"),
            "--filter",
            "identity",
            "--at-once",
            "1",
        ],
        &[
            "preview",
            &forged,
            "-o",
            &folder.name("a.png"),
            "--filter",
            "identity",
        ],
        &[
            "plan",
            &forged,
            &folder.name("out.y4m"),
            &folder.name("job"),
            "--filter",
            "identity",
        ],
        &["diff", &forged, &forged],
    ] {
        let done = framepipe(words).output().unwrap();
        let text = said(&done) + std::str::from_utf8(&done.stdout).unwrap();
        assert!(
            done.status.success() && text.contains(r"\nerror: forged"),
            "{words:?}: {text}"
        );
        assert!(
            !text.lines().any(|line| line.starts_with("error: ")),
            "{words:?}: {text}"
        );
    }
    let header = folder.write("a.y4m", b"YUV4MPEG2 W4 H4 F25:1 C\x1b[31mfoo\x07\nFRAME\n");
    assert!(!said(&filter(&[&header, "null:"])).contains(['\u{1b}', '\u{7}']));
    // A text that is no mask is not printed.
    let secret = folder.write("secret", "s3cret".repeat(100));
    let done = framepipe(&["masks", &format!("mask:file={secret}")])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).matches("s3cret").count() < 8, "{}", said(&done));
}

#[test]
fn reports_replace_nothing_and_no_bit_of_a_program_survives() {
    let folder = Folder::new();
    let few = "synthetic:64x48:gray:25:5";
    let out = folder.name("s.json");
    fs::create_dir(folder.at("sub")).unwrap();
    let other = folder.name("sub/../s.json");
    let done = filter(&[
        few,
        &out,
        "--format",
        "matroska",
        "--encoder",
        "ffv1",
        "--report",
        &other,
    ]);
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    let report = folder.write("r.json", b"old");
    let done = filter(&[few, "null:", "--report", &report]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(fs::read(&report).unwrap(), b"old");
    assert!(
        filter(&[few, "null:", "--report", &report, "--overwrite"])
            .status
            .success()
    );
    assert_ne!(fs::read(&report).unwrap(), b"old");

    let program = folder.write("v", b"");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert!(
        filter(&[few, &format!("raw:{program}"), "--overwrite"])
            .status
            .success()
    );
    assert_eq!(
        fs::metadata(&program).unwrap().permissions().mode() & 0o7777,
        0o755
    );

    // What a run left that was killed goes with the next one.
    folder.write(".old.part-4294967295.mkv", b"");
    assert!(filter(&[few, &folder.name("new.mkv")]).status.success());
    assert!(folder.left_over().is_empty());
}

/// Pictures of a folder, each other than the rest.
fn pictures(folder: &Folder, name: &str, count: usize) {
    fs::create_dir(folder.at(name)).unwrap();
    let pattern = folder.name(&format!("{name}/%d.png"));
    let frames = count.to_string();
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=32x24",
        "-frames:v",
        &frames,
        &pattern,
    ]);
}

/// Pictures, a video and a mask to read, and folders and names to write to that lead to these.
fn links_into_inputs() -> Folder {
    let folder = Folder::new();
    for name in ["a", "mt"] {
        pictures(&folder, name, 2);
    }
    for name in ["out", "mo", "own", "twice", "text", "n"] {
        fs::create_dir(folder.at(name)).unwrap();
    }
    let clip = folder.name("c.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=32x24:d=0.1",
        "-c:v",
        "ffv1",
        &clip,
    ]);
    folder.write("mask.txt", "1 2 1\n");
    for (target, link) in [
        ("../a/1.png", "out/2.png"),
        ("../mt/1.png", "mo/1.png"),
        ("../c.mkv", "own/000001.png"),
        ("../mask.txt", "text/2.png"),
        ("../new.png", "twice/1.png"),
        ("../new.png", "twice/2.png"),
        ("a/2.png", "v.mkv"),
        ("a/2.png", "p.png"),
        ("p.json", "q.json"),
    ] {
        std::os::unix::fs::symlink(target, folder.at(link)).unwrap();
    }
    fs::hard_link(folder.at("mt/2.png"), folder.at("mo/2.png")).unwrap();
    folder
}

#[test]
fn nothing_is_written_through_links_into_what_is_read() {
    let folder = links_into_inputs();
    let kept = || {
        ["a/1.png", "a/2.png", "mt/1.png", "mt/2.png", "c.mkv", "mask.txt"]
            .map(|name| fs::read(folder.at(name)).unwrap())
    };
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["-y"]).collect();
        framepipe(&words).current_dir(folder.at("")).output().unwrap()
    };
    let before = kept();
    for (words, problem) in [
        (
            "filter a out/ --filter=soft",
            "out/2.png is both input and output",
        ),
        (
            "filter a/%d.png out/ --filter=soft",
            "out/2.png is both input and output",
        ),
        (
            "filter a out/%d.png --start-number 1 --filter=soft",
            "out/2.png is both",
        ),
        ("filter a v.mkv --filter=soft", "v.mkv is both input and output"),
        (
            "filter c.mkv own/ --filter=soft",
            "own/000001.png is both input and output",
        ),
        (
            "filter a mo/ --matte mt --filter=soft",
            "is both matte and output",
        ),
        (
            "filter a text/ --filter mask:divisor=4:file=mask.txt",
            "text/2.png is both mask file and output",
        ),
        ("filter a twice/ --filter=soft", "are one file, and two frames"),
        (
            "plan a out/ job --filter=soft",
            "out/2.png is both input and output",
        ),
        (
            "preview a 1f -o p.png --filter=soft",
            "p.png is both input and output",
        ),
        ("diff mt a --output out/", "out/2.png is both input and output"),
        (
            "filter a n/ --filter=soft --frame-hashes a/2.png",
            "a/2.png is both input and list",
        ),
        (
            "filter a null: --filter=soft --matte mt --frame-hashes mt/2.png",
            "mt/2.png is both matte and list",
        ),
        (
            "filter a n/ --filter=soft --frame-hashes n/2.png",
            "n/2.png is both output and list",
        ),
        (
            "filter c.mkv own/%d.png --filter=soft --frame-hashes own/7.png",
            "own/7.png is both output and list",
        ),
        (
            "filter c.mkv null: --filter=soft --report p.json --trace q.json",
            "q.json is both report and trace",
        ),
    ] {
        let done = run(words);
        assert_eq!(done.status.code(), Some(2), "{words}: {}", said(&done));
        assert!(said(&done).contains(problem), "{words}: {}", said(&done));
        assert!(kept() == before, "{words}");
    }
    // Links to what is not read are written through, and other names are nobody's.
    fs::remove_file(folder.at("out/2.png")).unwrap();
    std::os::unix::fs::symlink("../else.png", folder.at("out/1.png")).unwrap();
    std::os::unix::fs::symlink("../a/1.png", folder.at("out/7.png")).unwrap();
    let done = run("filter a out/ --filter=soft");
    assert!(done.status.success() && kept() == before, "{}", said(&done));
    assert!(folder.at("else.png").is_file());
}

#[test]
fn what_a_run_reads_is_never_replaced() {
    let folder = Folder::new();
    let (input, out) = (folder.name("a.png"), folder.name("o.png"));
    ffmpeg(&["-f", "lavfi", "-i", "testsrc=s=32x24", "-frames:v", "1", &input]);
    let mask = |name: &str| folder.write(name, "1 2 1\n");
    let regions = folder.write("r.json", "9x9+1+1\n");
    let [picture, page, trace] = ["mk.png", "mk.html", "mk.json"].map(mask);
    let by_mask = |file: &str| format!("mask:divisor=4:file={file}");
    let (by_picture, by_page, by_trace) = (by_mask(&picture), by_mask(&page), by_mask(&trace));
    let linked = folder.name("linked.png");
    std::os::unix::fs::symlink(&picture, &linked).unwrap();
    let (near, parted) = (folder.name("near/a.png"), folder.name("near"));
    fs::create_dir(&parted).unwrap();
    fs::write(&near, "1 2 1\n").unwrap();
    let by_near = by_mask(&near);
    let run = ["filter", &input, &out, "--filter"];
    for (arguments, words) in [
        (
            vec!["filter", &input, &picture, "--filter", &by_picture],
            "mk.png is both mask file and output",
        ),
        (
            vec!["filter", &input, &linked, "--filter", &by_picture],
            "linked.png is both mask file and output",
        ),
        (
            vec!["filter", &input, &input, &parted, "--filter", &by_near],
            "is both mask file and output",
        ),
        (
            [&run[..], &[&by_page, "--report", &page]].concat(),
            "mk.html is both mask file and report",
        ),
        (
            [&run[..], &[&by_trace, "--trace", &trace]].concat(),
            "mk.json is both mask file and trace",
        ),
        (
            [&run[..], &["soft", "--regions", &regions, "--report", &regions]].concat(),
            "r.json is both file of regions and report",
        ),
        (
            [&run[..], &["soft", "--matte", &input, "--frame-hashes", &input]].concat(),
            "a.png is both input and list of hashes",
        ),
        (
            [
                &run[..],
                &["soft", "--matte", &picture, "--frame-hashes", &picture],
            ]
            .concat(),
            "mk.png is both matte and list of hashes",
        ),
        (
            vec!["preview", &input, "--filter", &by_picture, "-o", &picture],
            "mk.png is both mask file and output",
        ),
    ] {
        let done = framepipe(&[&arguments[..], &["-y"]].concat()).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {}", said(&done));
        assert!(said(&done).contains(words), "{arguments:?}: {}", said(&done));
    }
    // A shell opens the file, whose name is not among the arguments then.
    let video = folder.name("s.y4m");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=32x24:d=1",
        "-pix_fmt",
        "yuv420p",
        &video,
    ]);
    let before = fs::read(&video).unwrap();
    for ends in [
        format!("- '{video}' -y < '{video}'"),
        format!("'{video}' - 1<> '{video}'"),
        format!("- - < '{video}' 1<> '{video}'"),
        format!("raw:32x24:gray:25:- raw:'{video}' -y < '{video}'"),
        format!("- null: --frame-hashes '{video}' -y < '{video}'"),
    ] {
        let script = format!("'{BINARY}' filter --filter soft {ends}");
        let done = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{ends}: {}", said(&done));
        assert!(
            said(&done).contains(" is both input and "),
            "{ends}: {}",
            said(&done)
        );
        assert!(fs::read(&video).unwrap() == before, "{ends}");
    }
    for file in [&picture, &page, &trace, &near] {
        assert_eq!(fs::read_to_string(file).unwrap(), "1 2 1\n");
    }
    assert_eq!(fs::read_to_string(&regions).unwrap(), "9x9+1+1\n");
}

#[test]
fn a_limit_of_file_sizes_is_an_error_that_leaves_nothing() {
    let folder = Folder::new();
    let raw = format!("raw:{}", folder.name("f.raw"));
    let video = folder.name("f.mkv");
    for output in [&raw, &video] {
        let script = "ulimit -f 8; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_framepipe"), "filter"]);
        let noise = "synthetic:320x240:gray:25:9";
        command.args([noise, output, "--filter", "identity", "--engine", "cpu", "-q"]);
        let done = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            done.status.code(),
            Some(1),
            "{output}: {:?} {}",
            done.status,
            said(&done)
        );
        let text = said(&done);
        assert!(
            text.starts_with("error: ") && text.contains("File too large"),
            "{text}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{output}");
    }
}

#[test]
fn names_need_not_be_text() {
    let folder = Folder::new();
    let plain = folder.name("a.mkv");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc2=s=64x48:d=1", &plain]);
    let input = folder.path().join(OsStr::from_bytes(b"\xff\xfe.mkv"));
    let output = folder.path().join(OsStr::from_bytes(b"\xc3\x28.mkv"));
    fs::rename(&plain, &input).unwrap();
    let done = framepipe(&["filter", "--filter", "identity"])
        .arg(&input)
        .arg(&output)
        .output()
        .unwrap();
    assert!(done.status.success() && output.exists(), "{}", said(&done));
    // In a folder of stills: one that is a picture, and one that is not.
    let stills = folder.path().join("stills");
    fs::create_dir(&stills).unwrap();
    let one = folder.name("one.png");
    ffmpeg(&["-f", "lavfi", "-i", "color=red:s=8x8", "-frames:v", "1", &one]);
    for name in [&b"a.png"[..], b"q\xff.png"] {
        fs::copy(&one, stills.join(OsStr::from_bytes(name))).unwrap();
    }
    fs::write(stills.join(OsStr::from_bytes(b"note\xff.txt")), b"").unwrap();
    for (input, output) in [(stills.clone(), "of-folder/"), (stills.join("*.png"), "of-glob/")] {
        let done = framepipe(&["filter", "--filter", "identity", "--keep-going"])
            .arg(input)
            .arg(folder.path().join(output))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", said(&done));
        for name in [&b"a.png"[..], b"q\xff.png"] {
            let written = folder.path().join(output).join(OsStr::from_bytes(name));
            assert!(written.exists(), "{}", written.display());
        }
    }
}

/// A video of irregular times, and one whose clock jumps.
fn irregular_and_joined(folder: &Folder) -> (String, String) {
    let at = |name: &str| folder.name(name);
    let (irregular, joined) = (at("vfr.mkv"), at("joined.ts"));
    let pattern = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1"];
    ffmpeg(
        &[
            &pattern[..],
            &[
                "-vf",
                "select='not(mod(n,3))*1+eq(n,4)'",
                "-fps_mode",
                "vfr",
                "-c:v",
                "ffv1",
                &irregular,
            ],
        ]
        .concat(),
    );
    ffmpeg(&[&pattern[..], &["-c:v", "mpeg2video", &at("a.ts")]].concat());
    let twice = [fs::read(at("a.ts")).unwrap(), fs::read(at("a.ts")).unwrap()].concat();
    fs::write(&joined, twice).unwrap();
    (irregular, joined)
}

/// A video whose frames repeat fields.
fn with_repeated_fields(folder: &Folder) -> String {
    let mut y4m = b"YUV4MPEG2 W4 H4 F25:1 Im A1:1 C420jpeg\n".to_vec();
    for line in [&b"FRAME Itii\n"[..], b"FRAME ITii\n"] {
        y4m.extend_from_slice(line);
        y4m.extend_from_slice(&[128; 24]);
    }
    folder.write("pulldown.y4m", y4m)
}

/// A sequence with a gap.
fn with_a_gap(folder: &Folder) -> String {
    for name in ["gaps/1.png", "gaps/3.png"] {
        fs::create_dir_all(folder.at("gaps")).unwrap();
        ffmpeg(&[
            "-f",
            "lavfi",
            "-i",
            "color=s=8x8:d=0.04",
            "-frames:v",
            "1",
            &folder.name(name),
        ]);
    }
    folder.name("gaps/%d.png")
}

/// 16 bits in words that are said to have 10: raw, Y4M and NUT.
fn above_ten_bits(folder: &Folder) -> [String; 3] {
    let at = |name: &str| folder.name(name);
    let words: Vec<u8> = [0_u16, 1023, 1024, 65535].map(u16::to_le_bytes).concat();
    fs::write(at("above.raw"), &words).unwrap();
    fs::write(
        at("above.y4m"),
        [b"YUV4MPEG2 W4 H1 F25:1 Cmono10\nFRAME\n", &words[..]].concat(),
    )
    .unwrap();
    ffmpeg(
        &[
            &["-f", "rawvideo", "-pix_fmt", "gray10le", "-s", "4x1", "-i"][..],
            &[&at("above.raw"), "-c", "copy", &at("above.nut")],
        ]
        .concat(),
    );
    ["above.raw", "above.y4m", "above.nut"].map(at)
}

#[test]
fn each_warning_ends_a_strict_run_and_a_note_does_not() {
    let folder = Folder::new();
    let at = |name: &str| folder.name(name);
    let (irregular, joined) = irregular_and_joined(&folder);
    let [raw, y4m, nut] = above_ten_bits(&folder);
    let empty = || {
        let _ = fs::remove_dir_all(folder.at("out"));
        fs::create_dir(folder.at("out")).unwrap();
    };
    empty();
    // What is filtered, into what, with which filter, and a word of what is said.
    let warned = [
        (irregular.clone(), at("out/o.y4m"), "identity", "irregular"),
        (
            with_repeated_fields(&folder),
            at("out/o.mkv"),
            "identity",
            "repeated fields",
        ),
        (with_a_gap(&folder), at("out/o-%d.png"), "identity", "missing"),
        (
            format!("raw:4x1:gray10le:25:{raw}"),
            at("out/o.y4m"),
            "identity",
            "2 samples in 1 frame are above 1023",
        ),
        (
            nut,
            at("out/o.y4m"),
            "identity",
            "2 samples in 1 frame are above 1023",
        ),
        (
            y4m,
            at("out/o.y4m"),
            "identity",
            "2 samples in 1 frame are above 1023",
        ),
        (
            irregular,
            at("out/o.mkv"),
            "unsharp:sigma=50",
            "less than sigma says",
        ),
    ];
    for (input, output, mask, word) in &warned {
        let plain = [input, output, "--filter", mask, "--overwrite", "-q"];
        let lenient = filter(&plain);
        assert!(lenient.status.success(), "{input}: {}", said(&lenient));
        let words = said(&lenient);
        assert!(
            words
                .lines()
                .any(|l| l.starts_with("warning: ") && l.contains(word)),
            "{input}: {words}"
        );
        empty();
        let strict = filter(&[&plain[..], &["--strict"]].concat());
        assert_eq!(strict.status.code(), Some(1), "{input}: {}", said(&strict));
        assert!(said(&strict).contains(word), "{input}: {}", said(&strict));
        assert_eq!(fs::read_dir(folder.at("out")).unwrap().count(), 0, "{input}");
    }
    let noted = filter(&[&joined, &at("out/o.mkv"), "--filter", "identity", "--strict"]);
    assert!(noted.status.success(), "{}", said(&noted));
    assert!(
        said(&noted).contains("note: ") && said(&noted).contains("clock jumps"),
        "{}",
        said(&noted)
    );
}

#[test]
fn limits_hold_before_anything_is_made() {
    let folder = Folder::new();
    for (input, option, amount) in [
        ("synthetic:640x480:gray:25:5", "--max-pixels", "100000"),
        ("synthetic:640x480:gray:25:5", "--max-memory", "1M"),
        // Nothing of these is painted: that takes long, or more memory than there is.
        ("synthetic:20000x20000:gray:25:1", "--max-memory", "100M"),
        ("synthetic:99999x99999:gray:25:1", "--max-pixels", "1073741824"),
    ] {
        let began = Instant::now();
        let done = filter(&[input, &folder.name("out.mkv"), option, amount]);
        assert_eq!(done.status.code(), Some(1));
        assert!(said(&done).contains(option), "{}", said(&done));
        assert!(option != "--max-pixels" || said(&done).contains(&format!("{input}: its pictures")));
        assert!(began.elapsed() < Duration::from_secs(2), "{input}");
    }
    let bomb = folder.write("bomb.y4m", "YUV4MPEG2 W60000 H60000 F25:1 Cmono\nFRAME\n");
    assert_eq!(filter(&[&bomb, "null:"]).status.code(), Some(1));
    assert!(folder.left_over().is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn a_strangers_file_is_filtered_in_a_sandbox() {
    let folder = Folder::new();
    let clip = folder.name("a.mkv");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc2=s=64x48:d=1", &clip]);
    let plain = folder.name("plain.mkv");
    assert!(filter(&[&clip, &plain]).status.success());
    fs::create_dir(folder.at("out")).unwrap();
    let out = folder.name("out/a.mkv");
    let done = filter(&[&clip, &out, "--untrusted"]);
    if said(&done).contains("this system cannot confine the program") {
        println!("SKIPPED: this kernel has no Landlock");
        return;
    }
    assert!(done.status.success(), "{}", said(&done));
    let pictures = |path: &str| ffmpeg(&["-i", path, "-f", "framemd5", "-"]);
    assert_eq!(pictures(&out), pictures(&plain));
    // A pipe has no place in a file system.
    let piped = folder.name("out/piped.mkv");
    let script =
        format!("cat '{clip}' | '{BINARY}' filter /dev/stdin '{piped}' --filter soft -q --untrusted");
    let done = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let filtered = folder.name("filtered.mkv");
    let done = framepipe(&["filter", &clip, &filtered, "--filter", "soft"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(pictures(&piped), pictures(&filtered));
    // A folder of pictures, made and read again.
    let (first, second) = (folder.name("first/"), folder.name("second/"));
    for (from, to) in [(&clip, &first), (&first, &second)] {
        let done = filter(&[from, to, "--untrusted"]);
        assert!(done.status.success(), "{}", said(&done));
        assert_eq!(fs::read_dir(to).unwrap().count(), 25);
    }
    let mask = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/masks/soft.txt");
    let (plain, tabbed) = (format!("mask:file={mask}"), format!("mask:file\t={mask}"));
    for options in [
        ["--filter", "mask:file=/etc/passwd"],
        ["--filter", &plain],
        ["--filter", &tabbed],
        ["--allow-urls", "-q"],
    ] {
        let done = filter(&[&[&*clip, "null:", "--untrusted"], &options[..]].concat());
        assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    }
}

/// Runs the program on `arguments`; its output, and the most memory that it held in MiB.
#[cfg(target_os = "linux")]
fn measured(arguments: &[&str]) -> (Output, u64) {
    let all = [
        &["filter"],
        arguments,
        &["--filter", "identity", "--engine", "cpu", "-q", "--overwrite"],
    ]
    .concat();
    watched(framepipe(&all).stdin(Stdio::null()))
}

/// Runs a command, and tells the most memory that it held, in MiB, as its own account in /proc says.
#[cfg(target_os = "linux")]
fn watched(command: &mut Command) -> (Output, u64) {
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let account = fs::read_to_string(&status).unwrap_or_default();
        let line = account.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        sleep(Duration::from_millis(2));
    }
    (child.wait_with_output().unwrap(), peak >> 10)
}

/// A chunk of a PNG file.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(name);
    crc.update(data);
    [
        &(data.len() as u32).to_be_bytes(),
        &name[..],
        data,
        &crc.sum().to_be_bytes(),
    ]
    .concat()
}

/// A PNG file of so many gray pixels a side, all 0, with another chunk.
fn png_of(side: u32, name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let size = side.to_be_bytes();
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[&size[..], &size, &[8, 0, 0, 0, 0]].concat()),
        chunk(name, data),
        chunk(b"IDAT", &deflated(&vec![0; side as usize + 1], side as usize)),
        chunk(b"IEND", &[]),
    ]
    .concat()
}

/// A PNG file of 4x4 gray pixels with another chunk.
fn png(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    png_of(4, name, data)
}

/// A piece again and again, compressed.
fn deflated(piece: &[u8], times: usize) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..times {
        packed.write_all(piece).unwrap();
    }
    packed.finish().unwrap()
}

/// More than is read of anything beside pictures, and what unpacks to that.
#[cfg(target_os = "linux")]
fn large() -> Vec<u8> {
    vec![b' '; 17 << 20]
}

#[cfg(target_os = "linux")]
fn bomb() -> Vec<u8> {
    [&b"x\0\0"[..], &deflated(&[0; 1 << 20], 300)].concat()
}

/// A JPEG file with more comments than are read.
#[cfg(target_os = "linux")]
fn jpeg_with_comments(folder: &Folder) -> Vec<u8> {
    let path = folder.name("plain.jpg");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc=s=64x48", "-frames:v", "1", &path]);
    let plain = fs::read(&path).unwrap();
    let comment = [&b"\xff\xfe\xff\xff"[..], &[b'x'; 65_533]].concat();
    [&plain[..2], &comment.repeat(300), &plain[2..]].concat()
}

/// A WebP file with a large profile and a large Exif block.
#[cfg(target_os = "linux")]
fn webp_with_profile_and_exif(folder: &Folder, large: &[u8]) -> Vec<u8> {
    let path = folder.name("plain.webp");
    let done = filter(&["synthetic:16x16:rgb24:1:1", &path]);
    assert!(done.status.success(), "{}", said(&done));
    let plain = fs::read(&path).unwrap();
    let chunk = |name: &[u8], data: &[u8]| [name, &(data.len() as u32).to_le_bytes(), data].concat();
    let head = chunk(b"VP8X", &[0x28, 0, 0, 0, 15, 0, 0, 15, 0, 0]);
    let body = [
        head,
        chunk(b"ICCP", large),
        plain[12..].to_vec(),
        chunk(b"EXIF", large),
    ]
    .concat();
    [
        b"RIFF",
        &(body.len() as u32 + 4).to_le_bytes()[..],
        b"WEBP",
        &body,
    ]
    .concat()
}

/// A TIFF file with a large profile and a large XMP packet.
#[cfg(target_os = "linux")]
fn tiff_with_profile_and_xmp(large: &[u8]) -> Vec<u8> {
    let entry = |tag: u16, kind: u16, count: usize, value: usize| {
        [
            &tag.to_le_bytes()[..],
            &kind.to_le_bytes(),
            &(count as u32).to_le_bytes(),
            &(value as u32).to_le_bytes(),
        ]
        .concat()
    };
    let entries = [
        entry(256, 4, 1, 4),
        entry(257, 4, 1, 4),
        entry(258, 3, 1, 8),
        entry(259, 3, 1, 1),
        entry(262, 3, 1, 1),
        entry(273, 4, 1, 8),
        entry(277, 3, 1, 1),
        entry(278, 4, 1, 4),
        entry(279, 4, 1, 16),
        entry(700, 1, large.len(), 24),
        entry(34675, 7, large.len(), 24),
    ];
    let head = [&b"II*\0"[..], &(24 + large.len() as u32).to_le_bytes(), &[7; 16]].concat();
    [
        &head,
        large,
        &[entries.len() as u8, 0][..],
        &entries.concat(),
        &[0; 4],
    ]
    .concat()
}

#[test]
#[cfg(target_os = "linux")]
fn what_stands_beside_pictures_is_held_to_its_limit() {
    let folder = Folder::new();
    let (large, bomb) = (large(), bomb());
    let jpeg = jpeg_with_comments(&folder);
    let webp = webp_with_profile_and_exif(&folder, &large);
    let tiff = tiff_with_profile_and_xmp(&large);
    let out = folder.name("out.png");
    let cases: [(&str, Vec<u8>, &[&str]); 7] = [
        ("profile.png", png(b"iCCP", &bomb), &["colour (ICC) profile"]),
        ("text.png", png(b"zTXt", &bomb), &["text"]),
        (
            "long.png",
            png(b"iTXt", &[&b"x\0\0\0\0\0"[..], &large].concat()),
            &["text"],
        ),
        (
            "exif.png",
            png(b"eXIf", &[&b"II*\0\x08\0\0\0"[..], &large].concat()),
            &["Exif"],
        ),
        ("comments.jpg", jpeg, &["text"]),
        ("both.webp", webp, &["colour (ICC) profile", "Exif"]),
        ("both.tif", tiff, &["colour (ICC) profile", "XMP"]),
    ];
    for (name, content, words) in cases {
        let path = folder.write(name, content);
        let (done, peak) = measured(&[&path, &out]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        let is_named = words.iter().all(|word| said(&done).contains(word)) && said(&done).contains("16 MiB");
        assert!(is_named, "{name}: {}", said(&done));
        assert!(peak < 200, "{name}: {peak} MiB");
        let done = filter(&[&path, &out, "--overwrite", "--strict"]);
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
    }
}

/// As a video, where FFmpeg unpacks the profile.
#[test]
#[cfg(target_os = "linux")]
fn what_stands_beside_pictures_of_videos_is_held_to_its_limit() {
    let folder = Folder::new();
    let (large, bomb) = (large(), bomb());
    folder.write("long.png", png(b"iTXt", &[&b"x\0\0\0\0\0"[..], &large].concat()));
    let video = folder.name("profile.mkv");
    ffmpeg(&["-i", &folder.name("long.png"), "-c", "copy", &video]);
    let mut bytes = fs::read(&video).unwrap();
    assert!(bytes.len() > 17 << 20);
    let (done, peak) = measured(&[&video, "null:"]);
    assert!(
        done.status.success() && said(&done).contains("text"),
        "{}",
        said(&done)
    );
    assert!(peak < 200, "{peak} MiB");
    let profile = folder.write("profile-bomb.png", png(b"iCCP", &bomb));
    let packed = folder.name("packed.mkv");
    // FFmpeg would unpack it, too, to know the picture: the packet takes the place of a smaller one.
    let placeholder = [&b"x\0"[..], &vec![0; bomb.len() - 2]].concat();
    let small = folder.write("placeholder.png", png(b"prVt", &placeholder));
    ffmpeg(&["-i", &small, "-c", "copy", &packed]);
    bytes = fs::read(&packed).unwrap();
    let picture = fs::read(&profile).unwrap();
    let at = bytes.windows(8).position(|w| w == b"\x89PNG\r\n\x1a\n").unwrap();
    bytes[at..at + picture.len()].copy_from_slice(&picture);
    let packed = folder.write("packed.mkv", &bytes);
    let (done, peak) = measured(&[&packed, "null:"]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("colour (ICC) profile"), "{}", said(&done));
    assert!(peak < 200, "{peak} MiB");
    let done = filter(&[&packed, "null:", "--strict"]);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
}

/// A TIFF file of one strip that states so many gray pixels a side and has `data` bytes of them.
#[cfg(target_os = "linux")]
fn tiff_of(side: u32, data: u32) -> Vec<u8> {
    let entries = [
        (256, 4, side),
        (257, 4, side),
        (258, 3, 8),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8),
        (277, 3, 1),
        (278, 4, side),
        (279, 4, data),
    ];
    let entry = |&(tag, kind, value): &(u16, u16, u32)| {
        [
            &tag.to_le_bytes()[..],
            &kind.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &value.to_le_bytes(),
        ]
        .concat()
    };
    [
        b"II*\0".to_vec(),
        (8 + data).to_le_bytes().to_vec(),
        vec![0; data as usize],
        vec![entries.len() as u8, 0],
        entries.iter().flat_map(entry).collect(),
        vec![0; 4],
    ]
    .concat()
}

/// Small files that claim to be large pictures end within two seconds and 200 MiB, in 2 GiB of address space:
/// what they claim is not even reserved.
#[test]
#[cfg(target_os = "linux")]
fn a_small_file_that_claims_to_be_large_is_refused_in_two_gibibytes() {
    let folder = Folder::new();
    let profile = [&b"x\0\0"[..], &deflated(&[0; 1 << 20], 2048)].concat();
    let y4m = |side: u32| format!("YUV4MPEG2 W{side} H{side} F25:1\nFRAME\n");
    let pam = "P7\nWIDTH 16000\nHEIGHT 16000\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\nabc";
    // The name, what is in it, how the run ends, and a word that it says.
    let cases: Vec<(&str, Vec<u8>, i32, &str)> = vec![
        ("a.pgm", b"P5\n16000 16000\n255\nabc".to_vec(), 1, "truncated"),
        ("a.pam", pam.as_bytes().to_vec(), 1, "truncated"),
        ("small.tif", tiff_of(16_000, 100), 1, "may be damaged"),
        ("large.tif", tiff_of(60_000, 1 << 18), 1, "which cannot be"),
        ("runs.bmp", bmp_of_runs(30_000), 1, "which cannot be"),
        ("profile.png", png(b"iCCP", &profile), 0, "16 MiB"),
        ("a.y4m", y4m(37_000).into_bytes(), 1, "the header is wrong"),
    ];
    let run = |input: &str, stdin: Stdio| {
        let began = Instant::now();
        let limit = "ulimit -v 2097152; exec \"$@\"";
        let run = watched(
            Command::new("sh")
                .args(["-c", limit, "sh", env!("CARGO_BIN_EXE_framepipe"), "filter"])
                .args([input, "null:", "--filter", "box:size=3", "--engine", "cpu", "-q"])
                .stdin(stdin)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        );
        (run, began.elapsed())
    };
    let judge = |name: &str, ((done, peak), took): ((Output, u64), Duration), code, word| {
        assert_eq!(done.status.code(), Some(code), "{name}: {}", said(&done));
        assert!(said(&done).contains(word), "{name}: {}", said(&done));
        assert!(peak < 200, "{name}: {peak} MiB");
        assert!(took < Duration::from_secs(2), "{name}: {took:?}");
    };
    for (name, content, code, word) in cases {
        let path = folder.write(name, content);
        judge(name, run(&path, Stdio::null()), code, word);
    }
    // A picture that is as large as it claims may be decoded before it shows that its result finds no room.
    let whole = folder.write("whole.png", png_of(32_000, b"prVt", b""));
    let ((done, peak), _) = run(&whole, Stdio::null());
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(said(&done).contains("no more memory"), "{}", said(&done));
    assert!(peak < 1100, "{peak} MiB");
    for (side, word) in [
        (8_000, "the input is truncated"),
        (16_000, "the input is truncated"),
        (37_000, "--max-pixels"),
    ] {
        let path = folder.write("pipe", y4m(side));
        let mut cat = Command::new("cat")
            .arg(path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = Stdio::from(cat.stdout.take().unwrap());
        judge("a pipe", run("-", stdin), 1, word);
        cat.wait().unwrap();
    }
}

/// A BMP file of run lengths that end at once.
fn bmp_of_runs(side: u32) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.resize(54 + 4 * 256, 0);
    (file[10], file[11], file[14], file[26], file[28], file[30]) = (0x36, 4, 40, 1, 8, 1);
    file[18..22].copy_from_slice(&side.to_le_bytes());
    file[22..26].copy_from_slice(&side.to_le_bytes());
    file.extend([0, 1]);
    file
}

/// FFmpeg's decoder of JPEG XL would ask libjxl for ever for what these lack.
#[test]
fn boxes_of_jpeg_xl_that_are_cut_end_the_run() {
    let folder = Folder::new();
    let head = b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl \0\x01\0\0jx\xd2l";
    let cut = [&head[..], b" \x7f\0\0\tj"].concat();
    for (name, file) in [
        ("cut.jxl", &cut[..]),
        ("cut.mp4", &cut),
        ("part.jxl", b"\0\x04\0"),
        ("bare.jxl", b"\xff"),
        ("head.jxl", &head[..30]),
    ] {
        let path = folder.write(name, file);
        let arguments = [
            "filter", &path, "null:", "--filter", "identity", "--engine", "cpu",
        ];
        let done = ends(framepipe(&arguments).spawn().unwrap());
        assert_eq!(done.status.code(), Some(1), "{name}: {}", said(&done));
    }
}

/// Titles of many MiB, and a profile that FFmpeg's reader of animated PNG would unpack.
#[test]
#[cfg(target_os = "linux")]
fn what_containers_say_is_held_to_its_limit() {
    let folder = Folder::new();
    let clip = folder.name("clip.mkv");
    ffmpeg(&["-f", "lavfi", "-i", "testsrc=s=64x48:d=1", "-c:v", "mpeg4", &clip]);
    let text = |key: &str, mebibytes: usize| format!("{key}={}\n", "x".repeat(mebibytes << 20));
    let texts = [text("title", 10), text("comment", 9), "artist=me\n".to_owned()].concat();
    let texts = folder.write("texts.txt", format!(";FFMETADATA1\n{texts}"));
    for name in ["texts.mkv", "texts.mp4"] {
        let (path, out) = (folder.name(name), folder.name("out.mkv"));
        ffmpeg(&[
            "-i",
            &clip,
            "-i",
            &texts,
            "-map_metadata",
            "1",
            "-c",
            "copy",
            &path,
        ]);
        let (done, peak) = measured(&[&path, &out]);
        assert!(done.status.success(), "{name}: {}", said(&done));
        assert!(
            said(&done).contains("16 MiB") && said(&done).contains("text 'title'"),
            "{name}: {}",
            said(&done)
        );
        assert!(peak < 200, "{name}: {peak} MiB");
        // The longest goes, the others stay.
        let kept = ffmpeg(&["-i", &out, "-f", "ffmetadata", "-"]);
        let kept = String::from_utf8_lossy(&kept).to_lowercase();
        assert!(kept.contains("artist=me") && !kept.contains("title="), "{name}");
        assert!(kept.contains("comment=xxx"), "{name}");
        assert_eq!(
            filter(&[&path, "null:", "--strict"]).status.code(),
            Some(1),
            "{name}"
        );
    }
    let plain = folder.name("plain.apng");
    ffmpeg(&["-i", &clip, "-plays", "0", "-f", "apng", &plain]);
    let bytes = fs::read(&plain).unwrap();
    // The signature and the header of the picture come first.
    let (head, rest) = bytes.split_at(33);
    let profile = [&b"x\0\0"[..], &deflated(&[0; 1 << 20], 300)].concat();
    let path = folder.write("profile.apng", [head, &chunk(b"iCCP", &profile), rest].concat());
    let (done, peak) = measured(&[&path, "null:"]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("colour (ICC) profile"), "{}", said(&done));
    assert!(peak < 200, "{peak} MiB");
    assert_eq!(filter(&[&path, "null:", "--strict"]).status.code(), Some(1));
}

/// Names of files are not looked up one by one for as many frames as a header states.
#[test]
fn numbers_of_frames_cost_nothing_before_the_first() {
    let folder = Folder::new();
    let clip = folder.name("a.mp4");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=64x48",
        "-frames:v",
        "10",
        "-c:v",
        "mpeg4",
        &clip,
    ]);
    let mut bytes = fs::read(&clip).unwrap();
    let at = bytes.windows(4).position(|name| name == b"stts").unwrap();
    bytes[at + 8..at + 16].copy_from_slice(b"\0\0\0\x01\x3f\xff\xff\xff");
    fs::write(&clip, bytes).unwrap();
    let run = |input: &str, output: &str| {
        let arguments = ["filter", input, output, "--filter", "identity", "--engine", "cpu"];
        framepipe(&arguments).spawn().unwrap()
    };
    let pictures = folder.name("pictures/");
    let done = ends(run(&clip, &pictures));
    assert_eq!(fs::read_dir(&pictures).unwrap().count(), 10, "{}", said(&done));
    // A name that is taken is found all the same, and a signal is heard.
    let many = "synthetic:16x16:gray:25:2000000000";
    fs::create_dir(folder.at("numbers")).unwrap();
    let numbers = folder.name("numbers/%04d.png");
    let taken = folder.write("numbers/1999999999.png", b"");
    for name in ["2000000000.png", "01999.png", "1.png"] {
        folder.write(&format!("numbers/{name}"), b"");
    }
    let done = ends(run(many, &numbers));
    assert!(said(&done).contains("1999999999.png exists"), "{}", said(&done));
    fs::remove_file(&taken).unwrap();
    let child = run(many, &numbers);
    let began = Instant::now();
    while !folder.at("numbers/0000.png").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is written");
        sleep(Duration::from_millis(10));
    }
    signal(&child, "TERM");
    let done = ends(child);
    assert_eq!(done.status.code(), Some(130));
    // The whole ones among them stay.
    let written = fs::read_dir(folder.at("numbers")).unwrap().count() - 3;
    let words = format!("abandoned: {written} file");
    assert!(said(&done).contains(&words), "{written}: {}", said(&done));
}

/// A closed standard output is no place for frames; /dev/null is one. Programs such as Python give it to
/// their children for reading, too, as Rust's start-up does where nothing is open.
#[test]
#[cfg(target_os = "linux")]
fn frames_for_a_closed_standard_output_are_missed() {
    let run = |redirection: &str| {
        let script = format!(
            "exec {} filter synthetic:16x16:gray:25:3 --filter identity --engine cpu -q {redirection}",
            env!("CARGO_BIN_EXE_framepipe")
        );
        let done = Command::new("sh").args(["-c", &script]).output().unwrap();
        (done.status.code(), said(&done))
    };
    for output in ["-", "null: --frame-hashes -"] {
        assert_eq!(run(&format!("{output} >/dev/null")), (Some(0), String::new()));
        for (redirection, expected) in [
            (">&-", 0),
            ("1<>/dev/null", 0),
            ("--strict >&-", 1),
            ("--strict 1<>/dev/null", 1),
        ] {
            let (code, words) = run(&format!("{output} {redirection}"));
            assert_eq!(code, Some(expected), "{output} {redirection} {words}");
            let said = "is closed, or leads to /dev/null";
            assert!(words.contains(said), "{output} {redirection} {words}");
        }
    }
}

/// Files of 6 GiB without a block on the disk.
#[test]
#[cfg(target_os = "linux")]
fn files_are_read_in_parts() {
    let folder = Folder::new();
    for (name, head) in [
        ("a.jpg", &b"\xff\xd8\xff\xe0"[..]),
        ("b.jpg", b"\xff\xd8\xff\xe0\0\x04ab"),
        ("a.png", b"\x89PNG\r\n\x1a\n"),
        ("a.pam", b"P7\n"),
        ("a.ppm", b"P6\n#"),
        ("a.bmp", b"BM"),
        ("a.tif", b"II*\0\x08\0\0\0"),
        ("a.jp2", b"\0\0\0\x0cjP  \r\n\x87\n"),
        ("a.j2k", b"\xff\x4f\xff\x51"),
        ("a.qoi", b"qoif\0\0\0\x04\0\0\0\x04\x03\0"),
        ("a.pfm", b"Pf\n4 4\n0\n"),
        ("a.jxl", b"\xff\x0a"),
        ("a.exr", b"\x76\x2f\x31\x01\x02\0\0\0"),
        ("a.dpx", b"SDPX"),
        ("a.psd", b"8BPS\0\x01"),
        ("a.avif", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"),
        (
            "a.webp",
            b"RIFF\xff\xff\xff\x7fWEBPVP8 \xf0\xff\xff\x7f\x30\x01\0\x9d\x01\x2a\x04\0\x04\0",
        ),
    ] {
        let path = folder.write(name, head);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(6 << 30).unwrap();
        let began = Instant::now();
        let (done, peak) = measured(&[&path, "null:"]);
        // To WebP's decoder zeros are a picture of 4x4 pixels.
        let expected = i32::from(name != "a.webp");
        assert_eq!(done.status.code(), Some(expected), "{name}: {}", said(&done));
        assert!(peak < 200, "{name}: {peak} MiB");
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn videos_are_held_to_the_pixel_limit_before_a_picture_is_decoded() {
    let folder = Folder::new();
    // A header that claims 40000x40000, and a frame of it.
    let side = 40_000_u16.to_le_bytes();
    let frame = b"\0";
    let header = [
        &b"DKIF\0\0\x20\0VP80"[..],
        &side,
        &side,
        &[25, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        &(frame.len() as u32).to_le_bytes(),
        &[0; 8],
        frame,
    ];
    let announced = folder.write("announced.ivf", header.concat());
    // Pictures without a container: the size is found in the picture itself.
    let plain = folder.name("plain.mjpeg");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=64x48:d=1",
        "-c:v",
        "mjpeg",
        "-f",
        "mjpeg",
        &plain,
    ]);
    let mut bytes = fs::read(&plain).unwrap();
    let sizes: Vec<usize> = (0..bytes.len() - 9)
        .filter(|&at| bytes[at..].starts_with(&[0xff, 0xc0, 0, 17, 8, 0, 48, 0, 64]))
        .collect();
    assert!(!sizes.is_empty());
    for at in sizes {
        bytes[at + 5..at + 9].copy_from_slice(&[0x9c, 0x40, 0x9c, 0x40]);
    }
    let hidden = folder.write("hidden.mjpeg", bytes);
    for path in [&announced, &hidden] {
        let (done, peak) = measured(&[path, "null:"]);
        assert_eq!(done.status.code(), Some(1), "{path}: {}", said(&done));
        assert!(
            said(&done).contains("40000x40000") && said(&done).contains("--max-pixels"),
            "{}",
            said(&done)
        );
        assert!(peak < 200, "{path}: {peak} MiB");
    }
    let done = filter(&[&plain, "null:", "--max-pixels", "3071"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        said(&done).contains("64x48, which is 3072 pixels"),
        "{}",
        said(&done)
    );
    assert!(
        filter(&[&plain, "null:", "--max-pixels", "3072"])
            .status
            .success()
    );
}

#[test]
fn the_pixel_limit_counts_what_comes_out() {
    let folder = Folder::new();
    // The columns and rows that decoders add do not count.
    for (name, codec) in [
        ("a.mp4", "libx264"),
        ("b.mp4", "libx265"),
        ("a.mkv", "ffv1"),
        ("a.mov", "prores_ks"),
        ("a.avi", "mpeg4"),
    ] {
        let path = folder.name(name);
        let source = ["-f", "lavfi", "-i", "testsrc2=s=150x90", "-frames:v", "1"];
        ffmpeg(&[&source[..], &["-c:v", codec, &path]].concat());
        let exact = filter(&[&path, "null:", "--max-pixels", "13500"]);
        assert!(exact.status.success(), "{codec}: {}", said(&exact));
        let done = filter(&[&path, "null:", "--max-pixels", "13499"]);
        assert!(
            said(&done).contains("150x90, which is 13500 pixels"),
            "{codec}: {}",
            said(&done)
        );
    }
    // A decoder finds the size, and refuses to be opened.
    let path = folder.name("large.mkv");
    let source = ["-f", "lavfi", "-i", "testsrc2=s=640x480", "-frames:v", "1"];
    ffmpeg(&[&source[..], &["-c:v", "ffv1", &path]].concat());
    let done = filter(&[&path, "null:", "--max-pixels", "1000"]);
    assert!(
        said(&done).contains("640x480, which is 307200 pixels"),
        "{}",
        said(&done)
    );
    // Of a folder every file is held to it.
    fs::create_dir(folder.at("stills")).unwrap();
    for (name, side) in [("a.pgm", "4 4"), ("b.pgm", "16 16")] {
        folder.write(
            &format!("stills/{name}"),
            format!("P5\n{side}\n255\n{}", "x".repeat(256)),
        );
    }
    let done = filter(&[&folder.name("stills"), "null:", "--max-pixels", "100"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        said(&done).contains("b.pgm: its pictures are 16x16"),
        "{}",
        said(&done)
    );
}

/// What the program takes for itself, in MiB.
#[cfg(target_os = "linux")]
const PROGRAM: u64 = 60;

#[test]
#[cfg(target_os = "linux")]
fn one_large_picture_takes_few_of_its_frames() {
    let folder = Folder::new();
    let path = folder.write("a.pgm", "P5\n8000 8000\n255\n");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(17 + 64_000_000).unwrap();
    for out in ["null:", &folder.name("out.png"), &folder.name("out.tif")] {
        let (done, peak) = measured(&[&path, out]);
        assert!(done.status.success(), "{}", said(&done));
        assert!(peak < 4 * 62 + PROGRAM, "{out}: {peak} MiB");
    }
    // A frame of 4:2:0 is 366 MiB.
    let video = folder.name("a.mkv");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=gray:s=16000x16000:r=1:d=1",
        "-frames:v",
        "1",
        "-pix_fmt",
        "yuvj420p",
        "-c:v",
        "mjpeg",
        &video,
    ]);
    let (done, peak) = measured(&[&video, "null:"]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(peak < 6 * 366, "{peak} MiB");
}

/// Runs the program with `arguments` by way of `limit`, a command that sets a limit and then runs another
/// one.
#[cfg(target_os = "linux")]
fn limited(limit: &[&str], arguments: &[&str]) -> Output {
    let (program, more) = limit.split_first().unwrap();
    Command::new(program)
        .args(more)
        .arg(env!("CARGO_BIN_EXE_framepipe"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A clip of pictures large enough that codecs need memory.
#[cfg(target_os = "linux")]
fn full_hd(folder: &Folder) -> String {
    let clip = folder.name("clip.mp4");
    let source = "testsrc2=s=1920x1080:d=0.6";
    ffmpeg(&[
        "-f", "lavfi", "-i", source, "-c:v", "libx264", "-preset", "veryfast", &clip,
    ]);
    clip
}

/// Asserts that a run under a limit is whole, or ends with a sentence that has `word` and leaves nothing.
/// True if it is whole.
#[cfg(target_os = "linux")]
fn is_whole_or_says(done: &Output, folder: &Folder, out: &str, word: &str, limit: u64) -> bool {
    let text = said(done);
    let whole = match done.status.code() {
        Some(0) => true,
        Some(1) => false,
        // Rust ends the process where a small allocation fails, and says so.
        None if text.contains("memory allocation of ") => {
            assert!(!Path::new(out).exists(), "limit {limit}: {text}");
            for name in folder.left_over() {
                fs::remove_file(folder.at(&name)).unwrap();
            }
            return false;
        }
        other => panic!("limit {limit}: {other:?} {text}"),
    };
    assert_eq!(Path::new(out).exists(), whole, "limit {limit}: {text}");
    assert!(folder.left_over().is_empty(), "limit {limit}");
    if whole {
        // What cannot be had must not be taken for damage of the input.
        assert_eq!(text, "", "limit {limit}");
        fs::remove_file(out).unwrap();
    } else {
        let sentence = text.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(
            sentence.contains(word) && sentence.contains("--encoder-threads"),
            "limit {limit}: {text}"
        );
        assert!(!sentence.contains("another encoder"), "limit {limit}: {text}");
    }
    whole
}

#[test]
#[cfg(target_os = "linux")]
fn lack_of_memory_is_named_and_leaves_nothing() {
    let folder = Folder::new();
    let clip = full_hd(&folder);
    let out = folder.name("out.mkv");
    let [mut whole, mut lacking] = [0, 0];
    for megabytes in (280..=1000).step_by(60).chain([8000]) {
        let script = format!("ulimit -c 0; ulimit -v {megabytes}000; exec \"$@\"");
        let limit = ["sh", "-c", &script, "sh"];
        if !limited(&limit, &["--version"]).status.success() {
            // Not even the libraries can be loaded.
            continue;
        }
        let filter = [
            "filter", &clip, &out, "--filter", "identity", "--engine", "cpu", "-q",
        ];
        let done = limited(&limit, &filter);
        match is_whole_or_says(&done, &folder, &out, "no more memory", megabytes) {
            true => whole += 1,
            false => lacking += 1,
        }
    }
    assert!(whole > 0 && lacking > 2, "{whole} whole, {lacking} lacking");
}

#[test]
#[cfg(target_os = "linux")]
fn lack_of_threads_is_named_and_leaves_nothing() {
    let folder = Folder::new();
    let clip = full_hd(&folder);
    let out = folder.name("out.mkv");
    // The limit counts all that a user runs, and holds for everybody but root: it needs a user without
    // processes.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let another = ["setpriv", "--reuid=65533", "--clear-groups"];
    let can = Command::new("prlimit").arg("--version").output().is_ok()
        && Command::new(another[0]).arg("--version").output().is_ok()
        && limited(&another, &["--version"]).status.success();
    if !can {
        println!("SKIPPED: no other user can run the program (this needs root, setpriv and prlimit)");
        return;
    }
    let [mut whole, mut lacking] = [0, 0];
    for threads in [1, 2, 3, 4, 5, 6, 8, 1000] {
        let limit = format!("--nproc={threads}");
        let limit = [&["prlimit", &limit][..], &another].concat();
        let filter = [
            "filter", &clip, &out, "--filter", "identity", "--engine", "cpu", "-q",
        ];
        let done = limited(&limit, &filter);
        match is_whole_or_says(&done, &folder, &out, "no more threads", threads) {
            true => whole += 1,
            false => lacking += 1,
        }
    }
    assert!(whole > 0 && lacking > 2, "{whole} whole, {lacking} lacking");
}

#[test]
#[cfg(target_os = "linux")]
fn lack_of_open_files_is_no_loss_of_sound() {
    let folder = Folder::new();
    let (clip, out) = (folder.name("clip.mkv"), folder.name("out.mkv"));
    let sound = [
        "-f", "lavfi", "-i", "sine=d=1", "-c:v", "ffv1", "-c:a", "flac", &clip,
    ];
    ffmpeg(&[&["-f", "lavfi", "-i", "testsrc2=s=32x32:d=1"], &sound[..]].concat());
    let [mut whole, mut lacking] = [0, 0];
    for files in 5..12 {
        let limit = format!("ulimit -n {files}; exec \"$@\"");
        let words = [
            "filter",
            &clip,
            &out,
            "--filter",
            "soft",
            "--engine",
            "cpu",
            "-q",
            "--overwrite",
        ];
        let done = limited(&["sh", "-c", &limit, "sh"], &words);
        let text = said(&done);
        match done.status.code() {
            Some(0) => {
                assert!(text.is_empty(), "{files}: {text}");
                whole += 1;
            }
            _ => {
                assert!(text.contains("Too many open files"), "{files}: {text}");
                lacking += 1;
            }
        }
    }
    assert!(whole > 0 && lacking > 0, "{whole} whole, {lacking} lacking");
}

#[test]
fn of_two_runs_into_one_folder_the_second_is_refused_and_the_first_is_whole() {
    let folder = Folder::new();
    let video = folder.name("a.y4m");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48:d=1",
        "-pix_fmt",
        "yuv444p",
        &video,
    ]);
    let (alone, shared) = (folder.name("alone/"), folder.name("shared/"));
    assert!(filter(&[&video, &alone]).status.success());
    let bytes = fs::read(&video).unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let mut child = framepipe(&["filter", "-", &shared, "--filter", "identity", "-q"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(first).unwrap();
    let count = |path: &str| fs::read_dir(path).map_or(0, Iterator::count);
    let began = Instant::now();
    while count(&shared) == 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is written");
        sleep(Duration::from_millis(10));
    }
    for options in [&[][..], &["--overwrite"]] {
        let done = filter(&[&[&*video, &shared], options].concat());
        assert_eq!(done.status.code(), Some(1), "{}", said(&done));
        let text = said(&done);
        assert!(
            text.contains(&shared) && text.contains("another run writes into this folder"),
            "{text}"
        );
    }
    pipe.write_all(rest).unwrap();
    drop(pipe);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let files = |path: &str| {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    assert_eq!(files(&shared).len(), 25);
    assert!(files(&shared) == files(&alone), "the first run's files differ");
    // The lock goes with its run.
    assert!(filter(&[&video, &shared, "--overwrite"]).status.success());
}

/// An animated PNG of 4-bit gray, of which 3 of 15 is transparent.
const SHALLOW_KEY: &str = "\
    89504e470d0a1a0a0000000d494844520000000200000001040000000014b9cd57000000086163544c00000002000000\
    00f38d93700000000274524e530003ef9a9c820000001a6663544c000000000000000200000001000000000000000000\
    01000a0000f929b6790000000a49444154789c63b00700004100408d6ed5130000001a6663544c000000010000000200\
    00000100000000000000000001000a0000625a5cad0000000e6664415400000002789c63f80c0000f500f4ec09744700\
    00000049454e44ae426082\
";

/// An animated PNG of 16-bit RGBA whose second frame is blended over the first.
const BLENDED: &str = "\
    89504e470d0a1a0a0000000d4948445200000002000000011006000000a4b2a3c9000000086163544c00000002000000\
    00f38d93700000001a6663544c00000000000000020000000100000000000000000001000a0000f929b6790000000b49\
    444154789c63f88f060087890ff1c1705ec30000001a6663544c00000001000000020000000100000000000000000001\
    000a0001155d6c3b0000000f6664415400000002789c63684003004411080167cd95070000000049454e44ae426082\
";

/// A PNG of RGB with a transparent colour and 5, 6 and 5 significant bits.
const SIGNIFICANT: &str = "\
    89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000373424954050605330b8d80\
    0000000674524e530000000000006ea607910000000f49444154789c63606060e0601100000037001d4b010016000000\
    0049454e44ae426082\
";

/// The bytes of hexadecimal digits.
fn bytes_of(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn what_decoders_get_wrong_is_said() {
    let folder = Folder::new();
    let out = folder.name("out%d.png");
    for (name, digits, words) in [
        (
            "key.apng",
            SHALLOW_KEY,
            "transparency of gray of fewer than 8 bits",
        ),
        (
            "over.apng",
            BLENDED,
            "1 packet needs what this FFmpeg does not implement",
        ),
    ] {
        let input = folder.write(name, bytes_of(digits));
        let done = filter(&[&input, &out, "-y"]);
        assert!(
            done.status.success() && said(&done).contains(words),
            "{}",
            said(&done)
        );
        let done = filter(&[&input, &out, "-y", "--strict"]);
        assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    }
    // New alpha is significant throughout.
    let bits = folder.name("bits.png");
    let done = filter(&[&folder.write("in.png", bytes_of(SIGNIFICANT)), &bits, "--strict"]);
    assert!(done.status.success(), "{}", said(&done));
    let written = fs::read(&bits).unwrap();
    assert!(written.windows(8).any(|w| w == b"sBIT\x05\x06\x05\x08"));
    // Lossy WebP without its last bytes.
    let webp = folder.name("whole.webp");
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x48",
        "-frames:v",
        "1",
        "-c:v",
        "libwebp",
        &webp,
    ]);
    let whole = fs::read(&webp).unwrap();
    for lacking in 2..6 {
        let cut = folder.write("cut.webp", &whole[..whole.len() - lacking]);
        let done = filter(&[&cut, &folder.name("cut.png"), "-y"]);
        assert_eq!(done.status.code(), Some(1), "{lacking}: {}", said(&done));
    }
    assert!(
        filter(&[&webp, &folder.name("whole.png"), "--strict"])
            .status
            .success()
    );
    // Gray with alpha of 16 bits is brought to limited range once.
    let (deep, video, luma) = (
        folder.name("deep.png"),
        folder.name("deep.mov"),
        folder.name("luma"),
    );
    ffmpeg(&[
        "-f",
        "lavfi",
        "-i",
        "color=black:s=64x64,format=ya16be",
        "-frames:v",
        "1",
        &deep,
    ]);
    assert!(filter(&[&deep, &video]).status.success());
    ffmpeg(&["-i", &video, "-pix_fmt", "yuv444p", "-f", "rawvideo", &luma]);
    assert_eq!(fs::read(&luma).unwrap()[0], 16);
}
