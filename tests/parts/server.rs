//! Inputs behind a URL: parts read ranges of them, as of files.

use super::common::ffmpeg;
use super::{done, single_run, text};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Serves the file at `path` to whoever asks, and ranges of it if `has_ranges`.
fn serve(path: &Path, has_ranges: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/in.mp4", listener.local_addr().unwrap());
    let path = path.to_owned();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let path = path.clone();
            std::thread::spawn(move || {
                // A reader that has seen enough closes the connection.
                let _ = answer(&stream, &path, has_ranges);
            });
        }
    });
    address
}

/// Answers one request.
fn answer(mut stream: &TcpStream, path: &Path, has_ranges: bool) -> std::io::Result<()> {
    let mut from = None;
    for line in BufReader::new(stream).lines() {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=").filter(|_| has_ranges) {
            from = range.split('-').next().and_then(|first| first.parse().ok());
        }
        if line.is_empty() {
            break;
        }
    }
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let first: u64 = from.unwrap_or(0).min(length);
    file.seek(SeekFrom::Start(first))?;
    let status = match (has_ranges, from) {
        (true, Some(_)) => {
            let last = length - 1;
            format!("206 Partial Content\r\nContent-Range: bytes {first}-{last}/{length}")
        }
        (true, None) => "200 OK\r\nAccept-Ranges: bytes".to_owned(),
        (false, _) => "200 OK".to_owned(),
    };
    let rest = length - first;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {rest}\r\nConnection: close\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    stream.write_all(&bytes)
}

#[test]
fn a_server_that_gives_ranges_is_as_good_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (pictures, tone) = ("testsrc2=size=96x64:rate=25:duration=4", "sine=duration=4");
    let input = path("in.mp4");
    let options = ["-c:v", "libx264", "-g", "12", "-bf", "2", "-c:a", "aac"];
    let lavfi = ["-f", "lavfi", "-i"];
    let sources = [&lavfi[..], &[pictures], &lavfi, &[tone]].concat();
    ffmpeg(&[&sources[..], &options, &["-movflags", "+faststart", text(&input)]].concat());
    let options = ["--filter", "box:size=3", "--encoder", "ffv1"];
    let whole = path("whole.mkv");
    single_run(&input, &whole, &options);
    for (has_ranges, several) in [(true, true), (false, false)] {
        let url = PathBuf::from(serve(&input, has_ranges));
        let (output, job) = (
            path(&format!("{has_ranges}.mkv")),
            path(&format!("{has_ranges}.job")),
        );
        let plan = [
            "plan",
            text(&url),
            text(&output),
            text(&job),
            "--allow-urls",
            "--parts",
            "4",
        ];
        let planned = done(&[&plan[..], &options].concat());
        assert_eq!(planned.contains("one part only"), !several, "{planned}");
        let run = done(&["run", text(&job)]);
        assert_eq!(run.contains("not copied"), !several, "{run}");
        assert!(done(&["diff", text(&whole), text(&output)]).contains("are equal"));
        let sound = |path: &Path| ffmpeg(&["-i", text(path), "-map", "0:a?", "-c", "copy", "-f", "md5", "-"]);
        if several {
            assert_eq!(sound(&output), sound(&whole));
        }
    }
}
