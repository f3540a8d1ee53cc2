//! The examples, run, and what they make judged by FFmpeg.
#![allow(clippy::unwrap_used)]

use framepipe::engine::Engine;
use framepipe::engine::reference::Reference;
use framepipe::frame::{Buffer, Frame, Layout};
use framepipe::{Chain, PixelFormat};
use std::path::Path;
use std::process::Command;

#[allow(dead_code, unreachable_pub)]
#[path = "../examples/blur_image.rs"]
mod blur_image;
#[allow(dead_code, unreachable_pub)]
#[path = "../examples/filter_video.rs"]
mod filter_video;
#[allow(dead_code, unreachable_pub)]
#[path = "../examples/own_ends.rs"]
mod own_ends;

/// What a program prints; it must succeed.
fn output(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The pixels of an image file as FFmpeg reads them.
fn pixels(path: &Path) -> Vec<u8> {
    let path = path.to_str().unwrap();
    let arguments = [
        "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-",
    ];
    output("ffmpeg", &arguments)
}

#[test]
fn an_image_is_blurred() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("a.png"), folder.path().join("b.png"));
    let made = [
        "-v",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=61x43",
        "-frames:v",
        "1",
    ];
    output(
        "ffmpeg",
        &[&made[..], &["-pix_fmt", "rgb24", before.to_str().unwrap()]].concat(),
    );
    let line = blur_image::blur(&before, &after).unwrap();
    assert!(line.contains("b.png"), "{line}");

    let layout = Layout::new(PixelFormat::RGB24, 61, 43, 1).unwrap();
    let buffer = || Buffer::unpooled(Box::new(Vec::new()));
    let mut frame = Frame::new(layout, buffer()).unwrap();
    frame.bytes_mut().copy_from_slice(&pixels(&before));
    let mut reference = Reference::new(Chain::parse("gaussian:sigma=3").unwrap());
    reference.submit(frame, buffer(), 1).unwrap();
    let expected = reference.collect().unwrap().unwrap();
    assert!(pixels(&after) == expected.bytes());
}

#[test]
fn a_video_keeps_its_frames_and_its_sound() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("a.mkv"), folder.path().join("b.mkv"));
    let inputs = "-v error -f lavfi -i testsrc=size=128x96:rate=25:duration=1 -f lavfi -i sine=duration=1";
    let mut arguments: Vec<&str> = inputs.split(' ').collect();
    arguments.extend(["-c:v", "ffv1", "-c:a", "flac", before.to_str().unwrap()]);
    output("ffmpeg", &arguments);
    let report = filter_video::filter(&before, &after).unwrap();
    assert_eq!((report.frames, report.warnings.len()), (25, 0));

    let streams = |path: &Path| {
        let asked = "-v error -count_frames -show_entries stream=codec_type,width,nb_read_frames -of csv";
        let mut arguments: Vec<&str> = asked.split(' ').collect();
        arguments.push(path.to_str().unwrap());
        String::from_utf8(output("ffprobe", &arguments)).unwrap()
    };
    assert!(streams(&after).contains("video,128,25"), "{}", streams(&after));
    assert_eq!(streams(&before), streams(&after));
}

#[test]
fn a_dot_is_found_where_it_was_put() {
    let expected: Vec<(usize, usize)> = (0..32).map(|row| (row, 16)).collect();
    assert_eq!(own_ends::follow().unwrap(), expected);
}
