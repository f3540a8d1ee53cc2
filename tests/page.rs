//! The page of a run in a real browser, headless Chromium: at a screen's and a phone's size, in light and in
//! dark. Without Chromium one line says so. `FRAMEPIPE_PAGES=FOLDER` keeps the pages and their pictures.
#![allow(clippy::unwrap_used)]

mod ring;
mod sweeps;

use framepipe::frame::Remarks;
use framepipe::report::{Measurements, Report, page};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_framepipe");

/// Tests of this file that need a browser.
const TESTS: usize = 4;

/// Longer than any start of a browser on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SIZES: [(u32, u32); 2] = [(1280, 800), (390, 844)];

/// Runs in the page and writes down what a reader would see.
const PROBE: &str = r#"
const box = (e, o) => {
  const r = e.getBoundingClientRect();
  return {x: r.left - o.left, y: r.top - o.top, w: r.width, h: r.height};
};
const figures = [...document.querySelectorAll('figure')].map(f => {
  const svgs = [...f.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0);
  const origin = svgs.length ? svgs[0].getBoundingClientRect() : {left: 0, top: 0, width: 0, height: 0};
  const texts = svgs.length ? [...svgs[0].querySelectorAll('text')] : [];
  return {id: f.id, drawings: svgs.length, width: origin.width, height: origin.height,
    shapes: svgs.length ? svgs[0].querySelectorAll('rect,polyline,circle,polygon').length : 0,
    texts: texts.map(t => {
      const style = getComputedStyle(t);
      const size = parseFloat(style.fontSize) * origin.width / svgs[0].viewBox.baseVal.width;
      return {text: t.textContent.trim(), size, colour: style.fill, ...box(t, origin)};
    })};
});
const contents = [...document.querySelectorAll('.contents li')].map(item => {
  const right = Math.max(...[...item.firstElementChild.getClientRects()].map(r => r.right));
  return {left: item.getBoundingClientRect().left, right};
});
const heads = [...document.querySelectorAll('.scroll th')].map(h => h.getBoundingClientRect().height);
const probe = document.createElement('pre');
probe.id = 'probe';
const root = document.documentElement;
probe.textContent = JSON.stringify({width: innerWidth, height: innerHeight, across: root.scrollWidth,
  tall: root.scrollHeight, ground: getComputedStyle(document.body).backgroundColor, figures, contents,
  heads});
parent.document.body.append(probe);
"#;

/// Chromium, or `None` and one visible line.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var_os("FRAMEPIPE_REQUIRE_BROWSER").is_some();
        assert!(
            !required,
            "FRAMEPIPE_REQUIRE_BROWSER is set, but there is no Chromium"
        );
        static SAID: Once = Once::new();
        // Straight to the stream, since the harness shows what a passing test prints to nobody.
        SAID.call_once(|| {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: {TESTS} tests of the report's page in a browser (tests/page.rs): there is no \
                     Chromium"
            );
        });
    }
    found
}

/// What Chromium printed: the page as it ended up, and the log.
struct Shown {
    dom: String,
    log: String,
}

fn show(chromium: &Path, file: &Path, (width, height): (u32, u32), dark: bool, what: &str) -> Shown {
    let profile = tempfile::tempdir().unwrap();
    let outputs = tempfile::tempdir().unwrap();
    let (dom, log) = (outputs.path().join("dom"), outputs.path().join("log"));
    let mut child = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},{height}"))
        // The media query's answer: 0 is dark, 1 is light.
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(!dark)
        ))
        .arg(what)
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("Chromium hangs on {}", file.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let log = fs::read_to_string(log).unwrap();
    assert!(status.success(), "{status}: {log}");
    Shown {
        dom: fs::read_to_string(dom).unwrap(),
        log,
    }
}

/// Where the pages lie: a folder that the user wants to keep, or a temporary one.
fn folder() -> (PathBuf, Option<tempfile::TempDir>) {
    match std::env::var_os("FRAMEPIPE_PAGES") {
        Some(folder) => {
            fs::create_dir_all(&folder).unwrap();
            (fs::canonicalize(folder).unwrap(), None)
        }
        None => {
            let folder = tempfile::tempdir().unwrap();
            (folder.path().to_owned(), Some(folder))
        }
    }
}

/// A page that shows `html` in a frame of this size: Chromium's own windows are never as narrow as a phone.
fn framed(html: &str, (width, height): (u32, u32)) -> String {
    let html = html.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\">\
         <style>:root{{color-scheme:light dark}}body{{margin:0}}</style></head>\
         <body><iframe style=\"border:0;display:block\" width=\"{width}\" height=\"{height}\" \
         srcdoc=\"{html}\"></iframe></body></html>"
    )
}

/// Two texts of a drawing that stand on each other, if there are.
fn collision(texts: &[Value]) -> Option<String> {
    let side = |t: &Value, name: &str| t[name].as_f64().unwrap();
    for (index, a) in texts.iter().enumerate() {
        for b in &texts[index + 1..] {
            // Boxes are as high as the font allows, its letters are not.
            let apart = side(a, "x") + side(a, "w") <= side(b, "x") + 0.5
                || side(b, "x") + side(b, "w") <= side(a, "x") + 0.5
                || side(a, "y") + side(a, "h") <= side(b, "y") + 3.0
                || side(b, "y") + side(b, "h") <= side(a, "y") + 3.0;
            if !apart {
                return Some(format!("{} and {}", a["text"], b["text"]));
            }
        }
    }
    None
}

fn hold_in_browser(name: &str, html: &str, expected: &[&str]) {
    let Some(chromium) = chromium() else { return };
    let (folder, keep) = folder();
    let file = folder.join(format!("{name}.html"));
    fs::write(&file, html).unwrap();
    let shown = show(&chromium, &file, SIZES[0], false, "--dump-dom");
    assert!(shown.dom.contains("</html>"));
    assert!(!shown.log.contains(":CONSOLE"), "{name}: {}", shown.log);

    // The page forbids scripts; the copy that is measured does not.
    let (head, rest) = html.split_once("<meta http-equiv").unwrap();
    let (_, rest) = rest.split_once("/>").unwrap();
    let probed = format!(
        "{head}{}",
        rest.replace("</body>", &format!("<script>{PROBE}</script></body>"))
    );
    let work = tempfile::tempdir().unwrap();
    let copy = work.path().join("framed.html");
    let mut grounds = Vec::new();
    for size in SIZES {
        for dark in [false, true] {
            let theme = if dark { "dark" } else { "light" };
            let view = format!("{name} at {}x{}, {theme}", size.0, size.1);
            fs::write(&copy, framed(&probed, size)).unwrap();
            let shown = show(&chromium, &copy, (1400, 1000), dark, "--dump-dom");
            assert!(!shown.log.contains(":CONSOLE"), "{view}: {}", shown.log);
            let probe = probe_of(&shown.dom);
            hold_page(&view, &probe, size);
            let figures = probe["figures"].as_array().unwrap();
            let ids: Vec<&str> = figures.iter().map(|f| f["id"].as_str().unwrap()).collect();
            assert_eq!(ids, expected, "{view}");
            for figure in figures {
                hold_figure(&format!("{view}: {}", figure["id"]), figure, size.0);
            }
            grounds.push(probe["ground"].as_str().unwrap().to_owned());
            if keep.is_none() {
                let picture = folder.join(format!("{name}-{}-{theme}.png", size.0));
                let tall = (size.0, probe["tall"].as_u64().unwrap() as u32);
                fs::write(&copy, framed(html, tall)).unwrap();
                let shot = format!("--screenshot={}", picture.display());
                show(&chromium, &copy, tall, dark, &shot);
            }
        }
    }
    assert_eq!(grounds[0], grounds[2]);
    assert_eq!(grounds[1], grounds[3]);
    assert_ne!(grounds[0], grounds[1], "dark looks like light");
}

/// What the script in the page found.
fn probe_of(dom: &str) -> Value {
    let (_, probe) = dom.split_once("<pre id=\"probe\">").expect("the probe ran");
    let (probe, _) = probe.split_once("</pre>").unwrap();
    let probe = probe
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&probe).unwrap()
}

/// The page fits its frame, and its words stand apart.
fn hold_page(view: &str, probe: &Value, size: (u32, u32)) {
    assert_eq!([&probe["width"], &probe["height"]], [size.0, size.1], "{view}");
    assert!(
        probe["across"].as_u64().unwrap() <= u64::from(size.0),
        "{view}: the page is {} wide",
        probe["across"]
    );
    let contents = probe["contents"].as_array().unwrap();
    let places = contents.iter();
    let places = places.map(|item| ["left", "right"].map(|side| item[side].as_f64().unwrap()));
    let places: Vec<_> = places.collect();
    for [left, right] in &places {
        // A column's bullets stand 20 pixels before its words.
        let is_apart = |other: &[f64; 2]| other[0] <= *left || right + 25.0 <= other[0];
        assert!(places.iter().all(is_apart), "{view}: {places:?}");
    }
    // One line each: a head of several beyond the edge is a gap.
    let mut heads = probe["heads"].as_array().unwrap().iter();
    assert!(
        heads.all(|height| height.as_f64().unwrap() < 45.0),
        "{view}: {}",
        probe["heads"]
    );
}

/// One drawing is to be seen, of which every text can be read.
fn hold_figure(view: &str, figure: &Value, most: u32) {
    assert_eq!(figure["drawings"], 1, "{view}: one drawing is to be seen");
    let (width, height) = (
        figure["width"].as_f64().unwrap(),
        figure["height"].as_f64().unwrap(),
    );
    assert!(
        width > 300.0 && width <= f64::from(most) && height > 90.0,
        "{view}: {width}x{height}"
    );
    assert!(figure["shapes"].as_u64().unwrap() > 1, "{view}: nothing is drawn");
    let texts = figure["texts"].as_array().unwrap();
    assert!(texts.len() >= 4, "{view}: axes without labels");
    for text in texts {
        let side = |name: &str| text[name].as_f64().unwrap();
        assert!(side("size") >= 11.0, "{view}: {text} is too small");
        assert!(
            side("x") >= -1.0
                && side("x") + side("w") <= width + 1.0
                && side("y") >= -3.0
                && side("y") + side("h") <= height + 3.0,
            "{view}: {text} leaves the drawing"
        );
        // A stand-in that no rule of the style sheet turned into a colour would be nearly black.
        let colour = text["colour"].as_str().unwrap();
        assert!(
            !colour.starts_with("rgb(0, 0, "),
            "{view}: {text} has no colour of the theme"
        );
    }
    assert_eq!(collision(texts), None, "{view}");
}

/// The page is also XML, whose every tag is closed; gives its text.
fn well_formed(html: &str) -> String {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..roxmltree::ParsingOptions::default()
    };
    let page = roxmltree::Document::parse_with_options(html, options).expect("the page is well-formed");
    for node in page.descendants().filter(roxmltree::Node::is_element) {
        for attribute in node.attributes() {
            let loads = ["src", "href", "srcset", "data", "action"].contains(&attribute.name())
                && !attribute.value().starts_with('#');
            assert!(!loads, "{} has {}", node.tag_name().name(), attribute.name());
        }
        assert!(!["script", "link", "img", "iframe", "object"].contains(&node.tag_name().name()));
    }
    assert!(!html.contains("url(") && !html.contains("@import"));
    page.descendants()
        .filter(roxmltree::Node::is_text)
        .filter_map(|n| n.text())
        .collect()
}

fn page_of(measured: &Measurements, input: &str) -> String {
    let report = Report::new(
        ring::task(input),
        measured,
        Remarks::warnings(["a <b>bold</b> & \"quoted\" warning".to_owned()]),
    );
    page::run(&report, measured).unwrap()
}

/// Every plot of a run on a card.
const ALL: [&str; 8] = [
    "throughput",
    "stages",
    "split",
    "timeline",
    "stage-timeline",
    "middle-timeline",
    "latency",
    "device-latency",
];

#[test]
fn names_are_escaped_and_every_plot_is_there() {
    let name = "<b>&\"it's\"</b>.mp4";
    let html = page_of(&ring::run(400, 3, [64e-6, 30e-6, 69e-6], page::FRAMES), name);
    let text = well_formed(&html);
    assert!(text.contains(name) && text.contains("a <b>bold</b> & \"quoted\" warning"));
    assert!(!html.contains("<b>&") && !html.contains("<b>bold"));
    for id in ALL {
        assert_eq!(html.matches(&format!("<figure id=\"{id}\">")).count(), 1, "{id}");
    }
    assert_eq!(html.matches("<svg ").count(), 2 * ALL.len());
    assert!(html.len() < 600_000, "{} bytes", html.len());
}

#[test]
fn a_run_without_frames_and_one_with_a_single_frame_have_pages_too() {
    well_formed(&page_of(&Measurements::default(), "nothing"));
    well_formed(&page_of(&ring::run(1, 3, [64e-6, 30e-6, 69e-6], 1), "one"));
    well_formed(&page_of(&ring::run(3, 3, [0.0, 0.0, 0.0], 8), "no time at all"));
}

#[test]
fn a_run_on_a_card_in_a_browser() {
    let measured = ring::run(3000, 3, [64e-6, 30e-6, 69e-6], page::FRAMES);
    hold_in_browser(
        "cuda",
        &page_of(&measured, "synthetic:1920x1080:yuv420p:60:3000"),
        &ALL,
    );
}

#[test]
fn a_run_of_the_program_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a <b>&\" run.html");
    let output = Command::new(PROGRAM)
        .args(["filter", "-q", "--engine", "cpu", "--filter", "gaussian:sigma=3"])
        .arg(format!("{}/samples/clip-720p.mp4", env!("CARGO_MANIFEST_DIR")))
        .arg(folder.path().join("a <b>&\" name.mp4"))
        .arg("--report")
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let html = fs::read_to_string(&file).unwrap();
    assert!(well_formed(&html).contains("a <b>&\" name.mp4"));
    hold_in_browser(
        "cpu",
        &html,
        &["throughput", "stages", "stage-timeline", "latency"],
    );
}

#[test]
fn a_sweep_in_a_browser() {
    let html = sweeps::sweep().to_html("framepipe bench kernels").unwrap();
    let text = well_formed(&html);
    assert!(text.contains("Made-up <processor>") && text.contains("a note with <b>&\""));
    let expected = [
        "mask-1",
        "mask-1-speed-up",
        "block-1",
        "threads-1",
        "size-1",
        "size-2",
        "size-3",
        "size-4",
        "format-1",
        "format-2",
        "roofline-cuda",
        "roofline-cpu",
    ];
    hold_in_browser("sweep", &html, &expected);
}

#[test]
fn a_sweep_of_one_cell_and_one_of_none_have_pages_too() {
    let mut sweep = sweeps::sweep();
    sweep.cells.truncate(1);
    well_formed(&sweep.to_html("framepipe bench kernels").unwrap());
    sweep.cells.clear();
    sweep.peaks.clear();
    assert!(!sweep.to_html("framepipe bench kernels").unwrap().contains("<svg"));
}

#[test]
fn a_measured_sweep_and_a_steady_run_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let bench = |name: &str, arguments: &[&str]| {
        let file = folder.path().join(name);
        let output = Command::new(PROGRAM)
            .arg("bench")
            .args(arguments)
            .arg("--html")
            .arg(&file)
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let html = fs::read_to_string(&file).unwrap();
        well_formed(&html);
        html
    };
    let threads = [
        "threads",
        "--quick",
        "--mask-sizes",
        "3,5,7",
        "--sizes",
        "320x180",
        "--threads",
        "1,2",
    ];
    let expected = [
        "mask-1",
        "mask-1-speed-up",
        "threads-1",
        "threads-2",
        "threads-3",
        "roofline-cpu",
    ];
    hold_in_browser("threads", &bench("threads.html", &threads), &expected);
    let steady = [
        "pipeline",
        "synthetic:320x180:yuv420p:30:0",
        "--engine",
        "cpu",
        "--seconds",
        "0.5",
    ];
    let html = bench("steady.html", &steady);
    let title = "framepipe bench pipeline: synthetic:320x180:yuv420p:30:0 \u{2192} null: (gaussian:size=5)";
    assert!(well_formed(&html).contains(title));
    let mut expected = vec!["rates", "throughput", "stages", "stage-timeline", "latency"];
    // How many frames half a second holds is this machine's affair.
    if html.contains("id=\"middle-timeline\"") {
        expected.insert(4, "middle-timeline");
    }
    hold_in_browser("steady", &html, &expected);
}

#[test]
fn a_stage_of_many_threads_shows_some_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.html");
    let output = Command::new(PROGRAM)
        .args([
            "filter",
            "-q",
            "--engine",
            "cpu",
            "--filter",
            "soft",
            "--workers",
            "10",
        ])
        .arg(format!("{}/samples/frames", env!("CARGO_MANIFEST_DIR")))
        .arg(folder.path().join("out"))
        .arg("--report")
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = well_formed(&fs::read_to_string(&file).unwrap());
    assert!(
        text.contains("decode, 8 of 10") && text.contains("encode, 8 of 10"),
        "{text}"
    );
}
