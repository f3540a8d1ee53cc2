//! Decoded pictures against FFmpeg's own, byte for byte: every pixel format that is filtered natively, in
//! every codec that this FFmpeg encodes it in, at widths whose rows are padded differently by whoever
//! allocates them.
//!
//! A decoder that predicts from earlier pictures shows what is wrong with the memory that it was given. So
//! each clip is decoded with one thread and with several, and frames are looked at only when others have been
//! decoded after them. FRAMEPIPE_WHOLE_MATRIX=1 tries everything, twice, and prints how many clips were
//! equal; otherwise a part of it.

use crate::common::is_whole_matrix;
use crossbeam_channel::bounded;
use ffmpeg_next::codec::video::FormatIter;
use framepipe::frame::{Frame, FramePool, Pageable, PixelFormat};
use framepipe::source::video::{VideoSource, VideoSourceOptions};
use framepipe::source::{Source, Supply};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const FRAMES: &str = "12";

/// Multiples of 16, of 2, and odd ones; below, at and beside the multiples of 64 that rows are padded to.
const WIDTHS: [usize; 22] = [
    16, 18, 34, 50, 66, 80, 96, 98, 130, 160, 322, 336, 480, 720, 848, 854, 1366, 17, 33, 67, 101, 333,
];

const HEIGHTS: [usize; 5] = [18, 34, 50, 66, 35];

/// The only sizes that H.261 and H.263 have, and one for codecs of whole blocks.
const STANDARD_SIZES: [(usize, usize); 4] = [(128, 96), (176, 144), (352, 288), (80, 64)];

/// Containers, of which the first that holds a codec is taken.
const CONTAINERS: [&str; 8] = ["mkv", "nut", "mov", "avi", "rm", "roq", "flv", "apng"];

/// Those that are tried for an encoder: not all of them where the one is known that holds what few others do.
fn containers(encoder: &str, whole: bool) -> &'static [&'static str] {
    match encoder {
        _ if whole => &CONTAINERS,
        "rv10" | "rv20" => &["rm"],
        "apng" => &["apng"],
        "qtrle" => &["mov"],
        "flashsv2" => &["flv"],
        "roqvideo" => &["roq"],
        _ => &CONTAINERS[..4],
    }
}

/// Ends of the names of encoders that make no file here: hardware's, and one that passes pointers on.
const NO_CLIPS: [&str; 7] = [
    "_nvenc",
    "_qsv",
    "_vaapi",
    "_v4l2m2m",
    "_omx",
    "_amf",
    "wrapped_avframe",
];

/// Decoder threads where there are many.
const MANY: usize = 5;

/// How often FFmpeg may show that its own threads are at fault.
const UNSTEADY_TRIES: usize = 100;

/// The ending of a clip that is encoded and not written.
const NOWHERE: &str = "null";

/// Frames that are kept while the decoder goes on.
const KEPT: usize = 2;

/// An encoder with one pixel format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    encoder: String,
    format: String,
    interlaced: bool,
    intra: bool,
}

impl Pair {
    fn has_alpha(&self) -> bool {
        self.format.starts_with("yuva") || self.format.starts_with("gbrap")
    }

    fn name(&self) -> String {
        let fields = if self.interlaced { " interlaced" } else { "" };
        format!("{}{fields} {}", self.encoder, self.format)
    }

    /// What makes the encoder quick, and its pictures depend on each other.
    fn options(&self) -> Vec<&'static str> {
        let mut options = match self.encoder.as_str() {
            "libx264" | "libx264rgb" => vec!["-preset", "veryfast", "-bf", "3", "-refs", "4"],
            "libx265" => vec!["-preset", "ultrafast", "-x265-params", "log-level=none:bframes=3"],
            "libvpx" | "libvpx-vp9" => vec!["-deadline", "realtime", "-cpu-used", "8"],
            "libaom-av1" => vec!["-usage", "realtime", "-cpu-used", "8"],
            "libsvtav1" => vec!["-preset", "12"],
            "librav1e" => vec!["-speed", "10"],
            "mpeg1video" | "mpeg2video" | "mpeg4" => vec!["-bf", "2"],
            _ => vec![],
        };
        if self.interlaced {
            options.extend(["-flags", "+ildct+ilme", "-top", "1"]);
        }
        options
    }
}

/// A video file and its size.
type Clip = (PathBuf, (usize, usize));

/// The outcome of one clip.
enum Verdict {
    Equal {
        /// The decoder was offered framepipe's memory.
        lent: bool,
        /// What was said of the clip, which is whole.
        warning: Option<String>,
    },
    /// Where the first difference is.
    Different(String),
    /// The decoder's format is not native, so that framepipe converts it.
    Converted,
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]);
    command
}

fn text(arguments: &[&str]) -> String {
    let done = Command::new("ffmpeg")
        .args(["-v", "error"])
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// True if framepipe filters pictures of FFmpeg's format `name` as they are.
fn is_native(name: &str) -> bool {
    PixelFormat::integers().any(|f| f.name() == name.replace("yuvj", "yuv"))
}

/// The video encoders of this FFmpeg with the native formats that each takes.
fn pairs() -> Vec<Pair> {
    let codecs = text(&["-codecs"]);
    let intra: BTreeSet<&str> = codecs
        .lines()
        .filter(|line| line.as_bytes().get(3..5) == Some(b"VI"))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    let mut pairs = Vec::new();
    for line in text(&["-encoders"])
        .lines()
        .skip_while(|line| !line.contains("---"))
        .skip(1)
    {
        let mut words = line.split_whitespace();
        let (Some(flags), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        if !flags.starts_with('V') || NO_CLIPS.iter().any(|h| name.ends_with(h)) {
            continue;
        }
        let codec = line
            .rsplit_once("(codec ")
            .map_or(name, |(_, end)| end.trim_end_matches(')'));
        // As `ffmpeg -h encoder=NAME` says, without a start of it for each of a hundred.
        let encoder = ffmpeg_next::encoder::find_by_name(name).and_then(|e| e.video().ok());
        let formats = encoder.and_then(|e| e.formats());
        // Raw video says of no format that it takes it, and takes them all.
        let every = || PixelFormat::integers().map(|f| f.name().to_owned()).collect();
        let named = |formats: FormatIter| formats.filter_map(|f| Some(f.descriptor()?.name().to_owned()));
        let formats: Vec<String> = formats.map_or_else(every, |formats| named(formats).collect());
        for format in formats.into_iter().filter(|f| is_native(f)) {
            let has_fields = matches!(name, "libx264" | "mpeg2video" | "mpeg4");
            for interlaced in [false, true].into_iter().filter(|&i| has_fields || !i) {
                pairs.push(Pair {
                    encoder: name.to_owned(),
                    format: format.clone(),
                    interlaced,
                    // FFmpeg's list does not mark these, although no picture of theirs depends on another.
                    intra: intra.contains(codec) || matches!(codec, "ffv1" | "dirac" | "png"),
                });
            }
        }
    }
    pairs
}

/// The sizes at which the `index`th pair is tried.
fn sizes(pair: &Pair, index: usize, whole: bool) -> Vec<(usize, usize)> {
    let numbers: Vec<usize> = match (whole, pair.intra) {
        (true, false) => (0..WIDTHS.len()).collect(),
        (true, true) => (0..5).map(|k| (5 * index + k) % WIDTHS.len()).collect(),
        (false, false) => vec![index % WIDTHS.len()],
        (false, true) => vec![index % WIDTHS.len()],
    };
    let mut sizes: Vec<(usize, usize)> = numbers
        .into_iter()
        .map(|n| (WIDTHS[n], HEIGHTS[(n + index) % HEIGHTS.len()]))
        .collect();
    if whole && !pair.intra && !sizes.contains(&(66, 66)) {
        sizes.push((66, 66));
    }
    sizes
}

fn holds_something(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.len() > 0)
}

/// Clips of the given sizes, encoded by one command; false if one of them cannot be.
fn encode(pair: &Pair, clips: &[Clip]) -> bool {
    let mut command = ffmpeg();
    for (_, (width, height)) in clips {
        command.args(["-f", "lavfi", "-i", &format!("testsrc2=s={width}x{height}:r=25")]);
    }
    let mut kept = Vec::new();
    for (index, (path, _)) in clips.iter().enumerate() {
        // What an encoder takes shows in the first picture; some take seconds for a dozen.
        let is_kept = path.extension().is_none_or(|e| e != NOWHERE);
        let frames = if is_kept { FRAMES } else { "1" };
        command.args(["-map", &index.to_string(), "-frames:v", frames]);
        command.args([
            "-c:v",
            &pair.encoder,
            "-pix_fmt",
            &pair.format,
            "-threads",
            "1",
            "-g",
            "100",
        ]);
        command.args(["-strict", "experimental"]).args(pair.options());
        if is_kept {
            kept.push(path);
        } else {
            command.args(["-f", "null"]);
        }
        command.arg(path);
    }
    let done = command.output().unwrap();
    done.status.success() && kept.into_iter().all(|path| holds_something(path))
}

/// The clips that the pair makes, each with its size, with what FFmpeg decodes beside them.
fn clips(pair: &Pair, folder: &Path, sizes: &[(usize, usize)], whole: bool) -> Vec<Clip> {
    let containers = containers(&pair.encoder, whole);
    let named = |container: &str, sizes: &[(usize, usize)]| -> Vec<Clip> {
        let path = |(w, h): &(usize, usize)| folder.join(format!("{w}x{h}.{container}"));
        sizes.iter().map(|size| (path(size), *size)).collect()
    };
    let make = |container: &str, sizes: &[(usize, usize)]| -> Option<Vec<Clip>> {
        let mut clips = named(container, sizes);
        if !encode(pair, &clips) {
            return None;
        }
        if !references(pair, &clips) {
            let many = clips.len() > 1;
            clips.retain(|clip| many && references(pair, std::slice::from_ref(clip)));
        }
        (!clips.is_empty()).then_some(clips)
    };
    if let Some(clips) = make(containers[0], sizes) {
        return clips;
    }
    // Which sizes the encoder takes, with other heights where the height is the reason.
    let takes = |size: (usize, usize)| encode(pair, &named(NOWHERE, &[size]));
    let mut taken: Vec<(usize, usize)> = sizes
        .iter()
        .filter_map(|&(width, height)| {
            [height, 66, 64]
                .map(|h| (width, h))
                .into_iter()
                .find(|&s| takes(s))
        })
        .collect();
    taken.dedup();
    if taken.is_empty() {
        let few = if whole { STANDARD_SIZES.len() } else { 1 };
        taken = STANDARD_SIZES
            .into_iter()
            .filter(|&size| takes(size))
            .take(few)
            .collect();
    }
    if taken.is_empty() {
        return Vec::new();
    }
    // The first container has refused these already, unless their sizes were the reason.
    containers[usize::from(taken == sizes)..]
        .iter()
        .find_map(|container| make(container, &taken))
        .unwrap_or_default()
}

/// Every clip decoded by FFmpeg into a raw file beside it; false if FFmpeg cannot decode all that it encoded.
fn references(pair: &Pair, clips: &[Clip]) -> bool {
    let mut command = ffmpeg();
    // FFmpeg's SSE4 code for VC-2 is wrong.
    if pair.encoder == "vc2" && cfg!(target_arch = "x86_64") {
        command.args(["-cpuflags", "-sse4.1"]);
    }
    for (path, _) in clips {
        command.args(["-threads", "1"]);
        // FFmpeg's own decoder of VP9 leaves out alpha.
        if pair.encoder == "libvpx-vp9" && pair.has_alpha() {
            command.args(["-c:v", "libvpx-vp9"]);
        }
        command.arg("-i").arg(path);
    }
    for (index, (path, _)) in clips.iter().enumerate() {
        command.args([
            "-map",
            &format!("{index}:v"),
            "-fps_mode",
            "passthrough",
            "-f",
            "rawvideo",
        ]);
        command.arg(path.with_extension("raw"));
    }
    let done = command.output().unwrap();
    // An input that breaks off is no failure of FFmpeg's.
    let breaks_off = String::from_utf8_lossy(&done.stderr).contains("Error during demuxing");
    done.status.success()
        && !breaks_off
        && clips
            .iter()
            .all(|(path, _)| holds_something(&path.with_extension("raw")))
}

/// Where a frame is not what FFmpeg has of it.
fn difference(frame: &Frame, number: usize, mut expected: &[u8]) -> Option<String> {
    for (index, plane) in frame.layout().planes().iter().enumerate() {
        for y in 0..plane.height {
            let row = frame.row(index, y);
            let Some((reference, rest)) = expected.split_at_checked(row.len()) else {
                return Some(format!("frame {number} is more than FFmpeg decodes"));
            };
            if row != reference {
                return Some(format!("frame {number}, plane {index}, row {y}"));
            }
            expected = rest;
        }
    }
    None
}

/// One clip, decoded once by framepipe.
fn compare(path: &Path, threads: usize) -> Verdict {
    let mut options = VideoSourceOptions::default();
    options.threads = Some(threads);
    let mut source = match VideoSource::open(path, &options) {
        Ok(source) => source,
        Err(e) => return Verdict::Different(e.to_string()),
    };
    if source.info().description.contains("converted from") {
        return Verdict::Converted;
    }
    let expected = std::fs::read(path.with_extension("raw")).unwrap();
    let (_keep, stop) = bounded(0);
    let supply = Supply {
        pool: FramePool::new(KEPT + 2, Arc::new(Pageable)),
        stop,
    };
    let (mut kept, mut number, mut at) = (VecDeque::new(), 0, 0);
    loop {
        let next = match source.next(&supply) {
            Ok(next) => next,
            Err(e) => return Verdict::Different(e.to_string()),
        };
        let ended = next.is_none();
        kept.extend(next);
        while kept.len() > if ended { 0 } else { KEPT } {
            let frame: Frame = kept.pop_front().unwrap();
            if let Some(place) = difference(&frame, number, &expected[at.min(expected.len())..]) {
                return Verdict::Different(place);
            }
            number += 1;
            at += frame.layout().picture_bytes();
        }
        if ended {
            break;
        }
    }
    if at != expected.len() || number == 0 {
        return Verdict::Different(format!("{at} bytes in {number} frames of {}", expected.len()));
    }
    Verdict::Equal {
        lent: source.info().brings_memory,
        warning: source.remarks().warning_texts().into_iter().next(),
    }
}

/// True if FFmpeg alone, with so many threads, decodes now this and now that, or something else than with one
/// thread.
fn is_unsteady(path: &Path, threads: usize) -> bool {
    let expected = std::fs::read(path.with_extension("raw")).unwrap();
    (0..UNSTEADY_TRIES).any(|_| {
        let mut command = ffmpeg();
        command.args(["-threads", &threads.to_string(), "-i"]).arg(path);
        command.args(["-map", "0:v", "-fps_mode", "passthrough", "-f", "rawvideo", "-"]);
        command.output().unwrap().stdout != expected
    })
}

/// What the whole run found.
#[derive(Default)]
struct Tally {
    equal: usize,
    lent: usize,
    different: Vec<String>,
    /// Where FFmpeg's own threads give now this and now that.
    unsteady: Vec<String>,
    /// Words about clips that were equal.
    warnings: Vec<String>,
    /// Clips of each encoder.
    clips: BTreeMap<String, usize>,
    formats: BTreeSet<String>,
    widths: BTreeSet<usize>,
    /// Pairs of which no clip could be made, or none that is native when decoded.
    left_out: Vec<String>,
}

fn try_pair(pair: &Pair, index: usize, whole: bool, tally: &Mutex<Tally>) {
    let folder = tempfile::tempdir().unwrap();
    let clips = clips(pair, folder.path(), &sizes(pair, index, whole), whole);
    let mut any = false;
    for (path, (width, height)) in &clips {
        let tries: &[usize] = if whole { &[1, MANY, 1, MANY] } else { &[1, MANY] };
        let runs: Vec<_> = tries
            .iter()
            .map(|&threads| (threads, compare(path, threads)))
            .collect();
        if runs
            .iter()
            .any(|(_, verdict)| matches!(verdict, Verdict::Converted))
        {
            continue;
        }
        any = true;
        let failed = runs.iter().find_map(|(threads, verdict)| match verdict {
            Verdict::Different(place) => Some((*threads, place)),
            _ => None,
        });
        let unsteady = failed.is_some_and(|(threads, _)| threads > 1 && is_unsteady(path, threads));
        let mut tally = tally.lock().unwrap();
        *tally.clips.entry(pair.encoder.clone()).or_default() += 1;
        tally.formats.insert(pair.format.replace("yuvj", "yuv"));
        tally.widths.insert(*width);
        match failed {
            Some((threads, place)) => {
                let words = format!("{} {width}x{height}, {threads} threads: {place}", pair.name());
                if unsteady {
                    tally.unsteady.push(words);
                } else {
                    tally.different.push(words);
                }
            }
            None => {
                tally.equal += 1;
                let Some((_, Verdict::Equal { lent, warning })) = runs.into_iter().next() else {
                    continue;
                };
                tally.lent += usize::from(lent);
                tally
                    .warnings
                    .extend(warning.map(|w| format!("{}: {w}", pair.name())));
            }
        }
    }
    if !any {
        tally.lock().unwrap().left_out.push(pair.name());
    }
}

#[test]
fn decoded_pictures_are_ffmpegs_whatever_the_codec_the_format_and_the_width() {
    let whole = is_whole_matrix();
    let mut pairs = pairs();
    if !whole {
        // Pictures that depend on no other show little; every 23rd of them will do. Of the others each
        // encoder has every fourth format.
        let (mut intra, mut met) = (0, BTreeMap::<String, usize>::new());
        pairs.retain(|pair| {
            intra += usize::from(pair.intra);
            let turn = met.entry(pair.encoder.clone()).or_default();
            *turn += 1;
            if pair.intra {
                intra % 23 == 1
            } else {
                *turn % 4 == 1
            }
        });
    }
    // The slow encoders first, so that no thread is left alone with them.
    pairs.sort_by_key(|pair| {
        (
            !matches!(pair.encoder.as_str(), "librav1e" | "libaom-av1"),
            pair.clone(),
        )
    });
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(pair) = pairs.get(index) else { break };
                    try_pair(pair, index, whole, &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    let total = tally.equal + tally.different.len() + tally.unsteady.len();
    println!(
        "{} of {total} equal, {} of them decoded into memory of framepipe's",
        tally.equal, tally.lent
    );
    println!("FFmpeg disagrees with itself: {:?}", tally.unsteady);
    println!("warnings: {:?}", tally.warnings);
    println!("clips: {:?}", tally.clips);
    println!("{} formats: {:?}", tally.formats.len(), tally.formats);
    println!("widths: {:?}", tally.widths);
    println!(
        "not encoded, or not native when decoded: {}",
        tally.left_out.join(", ")
    );
    assert!(
        tally.different.is_empty(),
        "not equal:\n{}",
        tally.different.join("\n")
    );
    // FFmpeg's own encoders are in every build of it.
    for encoder in ["mpeg2video", "mpeg4", "h263", "flv", "snow", "svq1", "ffv1"] {
        assert!(tally.clips.contains_key(encoder), "no clip of {encoder}");
    }
    assert!(total > 55, "only {total} clips");
}

#[test]
fn vc2_of_more_than_eight_bits_comes_out_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["yuv420p10le", "yuv422p10le", "yuv444p12le"] {
        let path = folder.path().join(format).with_extension("mkv");
        // So many bits that nothing is lost, and slices whose width is no multiple of a vector's.
        let input = "testsrc2=s=176x144:r=25:d=0.12";
        let done = ffmpeg()
            .args(["-f", "lavfi", "-i", input, "-pix_fmt", format])
            .args(["-c:v", "vc2", "-b:v", "1G", "-strict", "-1"])
            .arg(&path)
            .args(["-f", "rawvideo", "-pix_fmt", format])
            .arg(path.with_extension("raw"))
            .status();
        assert!(done.unwrap().success());
        for threads in [1, MANY] {
            match compare(&path, threads) {
                Verdict::Equal { .. } => {}
                Verdict::Different(place) => panic!("{format}, {threads} threads: {place}"),
                Verdict::Converted => panic!("{format} is converted"),
            }
        }
    }
}
