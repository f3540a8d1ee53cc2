//! Reads a trace back and holds it against what must be true of every run.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeMap;

/// How far, in microseconds, device times may be off: the end of a copy is seen late by a stream of its own,
/// and the clock has steps of half a microsecond. A slot that is used twice at once is so for much longer.
pub(crate) const LATE: f64 = 10.0;

/// One span of a track; times in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) frame: u64,
    pub(crate) slot: Option<u64>,
}

/// A trace by its tracks: "process/thread".
#[derive(Debug)]
pub(crate) struct Tracks {
    pub(crate) tracks: BTreeMap<String, Vec<Span>>,
    pub(crate) facts: Value,
    /// The trace's own words about what is missing.
    pub(crate) remarks: Vec<String>,
    pub(crate) arrows: BTreeMap<u64, Vec<String>>,
}

/// Reads a trace; anything that is not as the format wants it fails the test.
pub(crate) fn read(json: &str) -> Tracks {
    let trace: Value = serde_json::from_str(json).expect("the trace is JSON");
    let events = trace["traceEvents"].as_array().unwrap();
    let name_of = |what: &str, pid: &Value, tid: Option<&Value>| -> Option<String> {
        let named = events.iter().find(|e| {
            e["ph"] == "M" && e["name"] == what && e["pid"] == *pid && tid.is_none_or(|t| e["tid"] == *t)
        });
        Some(named?["args"]["name"].as_str().unwrap().to_owned())
    };
    let mut read = Tracks {
        tracks: BTreeMap::new(),
        facts: trace["otherData"].clone(),
        remarks: Vec::new(),
        arrows: BTreeMap::new(),
    };
    for event in events {
        match event["ph"].as_str().unwrap() {
            "M" => {}
            "i" => read.remarks.push(event["name"].as_str().unwrap().to_owned()),
            "X" => {
                let process = name_of("process_name", &event["pid"], None).expect("the process has a name");
                let thread = name_of("thread_name", &event["pid"], Some(&event["tid"]))
                    .expect("the thread has a name");
                let begin = event["ts"].as_f64().unwrap();
                let length = event["dur"].as_f64().unwrap();
                assert!(begin.is_finite() && length >= 0.0, "{event}");
                read.tracks
                    .entry(format!("{process}/{thread}"))
                    .or_default()
                    .push(Span {
                        name: event["name"].as_str().unwrap().to_owned(),
                        category: event["cat"].as_str().unwrap().to_owned(),
                        begin,
                        end: begin + length,
                        frame: event["args"]["frame"].as_u64().unwrap(),
                        slot: event["args"]["slot"].as_u64(),
                    });
            }
            arrow @ ("s" | "t" | "f") => {
                let knots = read.arrows.entry(event["id"].as_u64().unwrap()).or_default();
                knots.push(arrow.to_owned());
            }
            other => panic!("an event of kind {other}"),
        }
    }
    read
}

impl Tracks {
    /// All spans of a category, in the order of their begin.
    pub(crate) fn of(&self, category: &str) -> Vec<Span> {
        let mut spans: Vec<Span> = self
            .tracks
            .values()
            .flatten()
            .filter(|s| s.category == category)
            .cloned()
            .collect();
        spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
        spans
    }

    /// No two spans of a track overlap, and each ends after it began.
    pub(crate) fn check_tracks(&self) -> Result<(), String> {
        for (name, spans) in &self.tracks {
            let mut spans = spans.clone();
            spans.sort_by(|a, b| a.begin.total_cmp(&b.begin).then(a.end.total_cmp(&b.end)));
            for pair in spans.windows(2) {
                // Half a nanosecond for the decimals.
                if pair[1].begin < pair[0].end - 5e-4 {
                    return Err(format!("{name}: {:?} and {:?} overlap", pair[0], pair[1]));
                }
            }
        }
        Ok(())
    }

    /// Every one of the first `frames` frames was at work once in each stage, and once in each part of the
    /// device if there is one; and each stage that has one thread did them in order.
    pub(crate) fn check_frames(&self, frames: u64, device: bool) -> Result<(), String> {
        let mut kinds = vec!["decode", "submit", "collect", "encode"];
        if device {
            kinds.extend(["upload", "kernel", "download"]);
        }
        for kind in kinds {
            let mut found: Vec<(String, Span)> = Vec::new();
            for (track, spans) in &self.tracks {
                let own = spans.iter().filter(|s| s.name == kind);
                found.extend(own.map(|s| (track.clone(), s.clone())));
            }
            found.sort_by(|a, b| a.1.begin.total_cmp(&b.1.begin));
            let one_track = found.windows(2).all(|pair| pair[0].0 == pair[1].0);
            let mut order: Vec<u64> = found.iter().map(|(_, s)| s.frame).collect();
            if !one_track {
                order.sort_unstable();
            }
            if order != (0..frames).collect::<Vec<_>>() {
                return Err(format!("{kind}: the frames {order:?}, not 0 to {frames}"));
            }
        }
        Ok(())
    }

    /// No stage has a frame before the stage above it has done with it.
    pub(crate) fn check_order(&self) -> Result<(), String> {
        let by_frame = |name: &str| -> BTreeMap<u64, Span> {
            let all = self.tracks.values().flatten();
            let own = all.filter(|s| s.name == name);
            own.map(|s| (s.frame, s.clone())).collect()
        };
        let pairs = [
            ("decode", "submit", 0.0),
            ("submit", "collect", 0.0),
            ("collect", "encode", 0.0),
            ("upload", "kernel", LATE),
            ("kernel", "download", LATE),
        ];
        for (first, second, off) in pairs {
            let second_of = by_frame(second);
            for (frame, a) in by_frame(first) {
                if let Some(b) = second_of.get(&frame)
                    && b.begin < a.end - off - 5e-4
                {
                    return Err(format!(
                        "frame {frame}: {second} begins at {} us, {first} ends at {} us",
                        b.begin, a.end
                    ));
                }
            }
        }
        Ok(())
    }

    /// No slot holds two frames in one of its pictures: an upload begins after the kernels of the slot's last
    /// frame, which read what it overwrites, and kernels begin after that frame's download, which reads what
    /// they overwrite.
    pub(crate) fn check_slots(&self) -> Result<(), String> {
        let mut slots: BTreeMap<u64, BTreeMap<u64, BTreeMap<&str, Span>>> = BTreeMap::new();
        for kind in ["upload", "kernel", "download"] {
            for span in self.of(kind) {
                let slot = span.slot.ok_or("a device span without a slot")?;
                slots
                    .entry(slot)
                    .or_default()
                    .entry(span.frame)
                    .or_default()
                    .insert(kind, span);
            }
        }
        for (slot, frames) in &slots {
            let frames: Vec<_> = frames.iter().collect();
            for pair in frames.windows(2) {
                let ((a, before), (b, after)) = (pair[0], pair[1]);
                for (free, taken) in [("kernel", "upload"), ("download", "kernel")] {
                    if after[taken].begin < before[free].end - LATE {
                        return Err(format!(
                            "slot {slot}: frame {b}'s {taken} begins at {} us, and frame {a}'s {free} ends \
                             at {} us",
                            after[taken].begin, before[free].end
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// On the common time line no upload begins before the host began to submit its frame, and no download
    /// ends after the host had collected it, within what the trace says of its own exactness.
    pub(crate) fn check_clocks(&self) -> Result<(), String> {
        let off = LATE
            + self.facts["device_clock_tolerance_us"]
                .as_f64()
                .ok_or("no tolerance")?;
        let all = |name: &str| -> BTreeMap<u64, Span> {
            let spans = self.tracks.values().flatten();
            let own = spans.filter(|s| s.name == name);
            own.map(|s| (s.frame, s.clone())).collect()
        };
        let (submits, uploads) = (all("submit"), all("upload"));
        let (downloads, collects) = (all("download"), all("collect"));
        for (frame, upload) in &uploads {
            if upload.begin < submits[frame].begin - off {
                return Err(format!(
                    "frame {frame} is uploaded {} us before it is submitted",
                    submits[frame].begin - upload.begin
                ));
            }
            if downloads[frame].end > collects[frame].end + off {
                return Err(format!(
                    "frame {frame} is collected {} us before it is down",
                    downloads[frame].end - collects[frame].end
                ));
            }
        }
        Ok(())
    }

    /// Seconds in which an upload and the kernels of another frame ran at the same time, over the seconds of
    /// all uploads.
    pub(crate) fn overlap(&self) -> f64 {
        let (uploads, kernels) = (self.of("upload"), self.of("kernel"));
        let both: f64 = uploads
            .iter()
            .flat_map(|u| {
                kernels
                    .iter()
                    .filter(move |k| k.frame != u.frame)
                    .map(move |k| (u.end.min(k.end) - u.begin.max(k.begin)).max(0.0))
            })
            .sum();
        both / uploads.iter().map(|u| u.end - u.begin).sum::<f64>()
    }

    /// All of the above.
    pub(crate) fn check(&self, frames: u64, device: bool) -> Result<(), String> {
        self.check_tracks()?;
        self.check_frames(frames, device)?;
        self.check_order()?;
        self.check_slots()
    }
}
