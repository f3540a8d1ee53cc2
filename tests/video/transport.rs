//! Transport streams and Ogg: packets and pages that are missing are named, by their counters, in every
//! stream, and streams whose counters begin anew, or that are put together otherwise, are whole. FFmpeg's
//! own programs make and judge them.

use crate::common::{ffmpeg, probe};
use crate::library::spoilt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKET: usize = 188;

/// The identifier of the packet that begins there.
fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1F, packet[2]])
}

/// FFmpeg's identifiers of the table of programs and of the sound, in M2TS as well.
const TABLE: u16 = 0;
const SOUND: u16 = 257;
const SOUND_OF_M2TS: u16 = 0x1100;

const SOUND_INPUT: [&str; 4] = ["-f", "lavfi", "-i", "sine=r=44100:d=2"];

/// Where the middle packets with this identifier begin. In front of each, there are `lead` bytes.
fn middle(bytes: &[u8], lead: usize, wanted: u16, count: usize) -> Vec<usize> {
    let starts = (lead..bytes.len()).step_by(PACKET + lead);
    let found: Vec<usize> = starts.filter(|&at| pid(&bytes[at..]) == wanted).collect();
    let first = (found.len() - count) / 2;
    found[first..first + count].to_vec()
}

#[test]
fn packets_that_are_missing_are_named_in_every_stream() {
    let mpeg2 = ["-c:v", "mpeg2video", "-g", "6", "-c:a", "mp2"];
    let h264 = [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-g",
        "25",
        "-c:a",
        "aac",
    ];
    for (name, codecs, lead, more) in [
        ("mpeg2.ts", &mpeg2[..], 0, &[][..]),
        ("h264.ts", &h264, 0, &[]),
        ("mpeg2.m2ts", &mpeg2, 4, &["-mpegts_m2ts_mode", "1"]),
    ] {
        let options = [&SOUND_INPUT, codecs, more].concat();
        // Sound alone, whose packets are copied: the pictures are whole.
        let (frames, said) = spoilt(name, &options, |bytes, _| {
            let lost = middle(bytes, lead, if lead == 0 { SOUND } else { SOUND_OF_M2TS }, 5);
            for at in lost.into_iter().rev() {
                bytes.drain(at - lead..at + PACKET);
            }
        });
        assert!(
            frames == 50 && said.contains("corrupt packet"),
            "{name}: {frames}: {said}"
        );
    }
    let options = [&SOUND_INPUT, &mpeg2[..]].concat();
    // From a place behind a picture's last packet on, or to the end.
    for whole in [true, false] {
        let (frames, said) = spoilt("hole.ts", &options, |bytes, places| {
            let end = if whole {
                bytes.len()
            } else {
                bytes.len() * 4 / 5 / PACKET * PACKET
            };
            bytes[places[15].0..end].fill(0);
        });
        let expected = if whole {
            "its blocks break off"
        } else {
            "corrupt packet"
        };
        assert!(
            frames < 50 && said.contains(expected),
            "{whole}: {frames}: {said}"
        );
    }
    // Bytes that are no packet, in the place of one of which nothing is used.
    let (frames, said) = spoilt("sync.ts", &options, |bytes, _| {
        let at = middle(bytes, 0, TABLE, 1)[0];
        bytes[at] = 0;
    });
    assert!(
        frames == 50 && said.contains("corrupt packet"),
        "{frames}: {said}"
    );
}

/// How many frames framepipe gives of `input`, as a file or through a pipe, with --strict; what it says
/// otherwise.
fn strictly(input: &Path, through_pipe: bool) -> Result<u64, String> {
    let output = input.with_extension("raw");
    strictly_into(&format!("raw:{}", output.display()), input, through_pipe)?;
    Ok(fs::metadata(&output).unwrap().len() / (64 * 64 * 3 / 2))
}

/// The same into any output.
fn strictly_into(output: &str, input: &Path, through_pipe: bool) -> Result<(), String> {
    let name = if through_pipe {
        Path::new("/dev/stdin")
    } else {
        input
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_framepipe"))
        .args([
            "filter",
            "--filter",
            "mask:rows=1",
            "--strict",
            "--streams",
            "video",
            "--overwrite",
        ])
        .args([name.to_str().unwrap(), output])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = if through_pipe {
        fs::read(input).unwrap()
    } else {
        Vec::new()
    };
    // It may end before it has taken all.
    let writer = std::thread::spawn(move || pipe.write_all(&bytes).is_ok());
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    match done.status.success() && !said.contains("warning") {
        true => Ok(()),
        false => Err(said),
    }
}

/// Two seconds of picture and sound, with these options of FFmpeg's.
fn make(more: &[&str], output: &Path) {
    let picture = ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=2"];
    let codecs = [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-g",
        "10",
        "-c:a",
        "aac",
    ];
    let output = output.to_str().unwrap();
    ffmpeg(&[&picture[..], &SOUND_INPUT, &codecs, more, &[output]].concat());
}

/// Also through a pipe.
#[test]
fn packets_that_are_missing_from_the_sound_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ts");
    make(&[], &path);
    let mut damaged = fs::read(&path).unwrap();
    for at in middle(&damaged, 0, SOUND, 5).into_iter().rev() {
        damaged.drain(at..at + PACKET);
    }
    fs::write(&path, damaged).unwrap();
    for through_pipe in [false, true] {
        let said = strictly(&path, through_pipe).unwrap_err();
        assert!(
            said.contains("packets of stream 1 are missing"),
            "{through_pipe}: {said}"
        );
    }
}

#[test]
fn streams_that_are_put_together_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let joined = |name: &str, parts: &[PathBuf]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| fs::read(part).unwrap()).collect();
        fs::write(at(name), bytes).unwrap();
        at(name)
    };
    let whole = at("whole.ts");
    make(&[], &whole);
    // With codes for correction behind each packet.
    let corrected = fs::read(&whole).unwrap();
    let corrected: Vec<u8> = corrected
        .chunks(PACKET)
        .flat_map(|packet| [packet, &[9; 16]].concat())
        .collect();
    fs::write(at("204.ts"), corrected).unwrap();
    // Segments of one clock, whose counters begin anew in each, or go on.
    make(&["-f", "segment", "-segment_time", "0.4"], &at("segment%d.ts"));
    make(
        &["-f", "hls", "-hls_time", "0.4", "-hls_list_size", "0"],
        &at("list.m3u8"),
    );
    let parts = |name: &str| -> Vec<PathBuf> {
        let parts: Vec<PathBuf> = (0..5).map(|n| at(&format!("{name}{n}.ts"))).collect();
        assert!(parts.iter().all(|part| part.is_file()) && !at(&format!("{name}5.ts")).exists());
        parts
    };
    let (segments, listed) = (parts("segment"), parts("list"));
    // A recording that ends in the middle of sound, and packets without any use between others.
    let bytes = fs::read(&whole).unwrap();
    let long = middle(&bytes, 0, SOUND, 8);
    let begins = |at: usize| bytes[at + 1] & 0x40 != 0;
    let end = long.into_iter().find(|&at| !begins(at)).unwrap();
    fs::write(at("cut.ts"), &bytes[..end]).unwrap();
    let unused = [&[0x47, 0x1F, 0xFF, 0x10][..], &[0xFF; PACKET - 4]].concat();
    let spaced: Vec<u8> = bytes
        .chunks(PACKET)
        .flat_map(|packet| [&unused[..], packet].concat())
        .collect();
    fs::write(at("spaced.ts"), spaced).unwrap();
    let mut problems = Vec::new();
    for (input, frames) in [
        (whole.clone(), 50),
        (at("204.ts"), 50),
        (joined("segments.ts", &segments), 50),
        (joined("listed.ts", &listed), 50),
        (joined("twice.ts", &[whole.clone(), whole.clone()]), 100),
        (
            joined("later.ts", &[segments[3].clone(), segments[0].clone()]),
            20,
        ),
        (at("spaced.ts"), 50),
        (at("cut.ts"), 0),
    ] {
        let wanted = [
            "-count_frames",
            "-select_streams",
            "v:0",
            "-show_entries",
            "stream=nb_read_frames",
        ];
        let counted = &probe(&input, &wanted)["streams"][0];
        let counted: u64 = counted["nb_read_frames"].as_str().unwrap().parse().unwrap();
        assert!(counted == frames || frames == 0, "{input:?}: {counted}");
        for through_pipe in [false, true] {
            let found = strictly(&input, through_pipe);
            if found != Ok(counted) {
                problems.push(format!("{input:?}, {through_pipe}: {found:?} of {counted}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Where pages of Ogg begin, and their streams' serial numbers.
fn pages(bytes: &[u8]) -> Vec<(usize, [u8; 4])> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(head) = bytes.get(at..at + 27) {
        assert_eq!(&head[..4], b"OggS");
        found.push((at, [head[14], head[15], head[16], head[17]]));
        let parts = &bytes[at + 27..][..usize::from(head[26])];
        at += 27 + parts.len() + parts.iter().map(|&size| usize::from(size)).sum::<usize>();
    }
    found
}

#[test]
fn pages_of_ogg_that_are_missing_are_named() {
    let codecs = [
        "-c:v",
        "libtheora",
        "-c:a",
        "libvorbis",
        "-page_duration",
        "200000",
    ];
    let options = [&SOUND_INPUT[..], &codecs].concat();
    for (of_sound, is_cut) in [(true, true), (true, false), (false, true), (false, false)] {
        let (_, said) = spoilt("a.ogv", &options, |bytes, _| {
            let all = pages(bytes);
            let is_wanted = |page: &&(usize, [u8; 4])| (page.1 != all[0].1) == of_sound;
            let wanted: Vec<usize> = all.iter().filter(is_wanted).map(|page| page.0).collect();
            let at = wanted[wanted.len() / 2];
            let end = all.iter().map(|page| page.0).find(|&next| next > at).unwrap();
            if is_cut {
                bytes.drain(at..end);
            } else {
                bytes[at..at + 6].fill(0);
            }
        });
        assert!(
            said.contains("1 page is missing in the midst of it"),
            "{of_sound}: {said}"
        );
    }
}

/// FFmpeg's reader of MXF says of any pipe that it does not know how long the last frame is.
#[test]
fn mxf_out_of_a_pipe_is_whole_unless_it_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.mxf");
    let picture = ["-f", "lavfi", "-i", "testsrc2=s=256x128:r=25:d=1"];
    let coded = ["-c:v", "dnxhd", "-profile:v", "dnxhr_hq", path.to_str().unwrap()];
    ffmpeg(&[&picture[..], &coded].concat());
    let whole = fs::read(&path).unwrap();
    let output = folder.path().join("out.mkv");
    let output = output.to_str().unwrap();
    assert_eq!(strictly_into(output, &path, true), Ok(()));
    for percent in [50, 95] {
        fs::write(&path, &whole[..whole.len() * percent / 100]).unwrap();
        let said = strictly_into(output, &path, true).unwrap_err();
        assert!(said.contains("error: /dev/stdin: "), "{percent} %: {said}");
    }
}

/// A pipe's end is known from what its reader says alone.
#[test]
fn zeros_at_the_end_of_matroska_are_said_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mkv");
    let clip = [
        "-f",
        "lavfi",
        "-i",
        "testsrc2=s=64x64:r=25:d=1",
        "-c:v",
        "ffv1",
        "-g",
        "1",
        "-pix_fmt",
        "yuv420p",
    ];
    ffmpeg(&[&clip[..], &[path.to_str().unwrap()]].concat());
    assert_eq!(strictly(&path, true), Ok(25));
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 1000..].fill(0);
    fs::write(&path, bytes).unwrap();
    for (through_pipe, words) in [(false, "its blocks break off"), (true, "its bytes make no sense")] {
        let said = strictly(&path, through_pipe);
        assert!(said.as_ref().is_err_and(|said| said.contains(words)), "{said:?}");
    }
}
