//! The outcome of a comparison, as it is printed and written as JSON.

use super::component::name;
use super::psnr;
use super::total::{ComponentTotal, First, Lengths, Total};
use crate::frame::Remarks;
use serde::Serialize;

/// The name in every comparison's `schema` field.
pub const DIFF_SCHEMA: &str = "framepipe-diff";

/// The version in every comparison's `version` field; it grows when a field changes its meaning or goes away.
pub const DIFF_VERSION: u32 = 1;

/// What a comparison found. docs/schemas.md has every field of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Always [`DIFF_SCHEMA`].
    pub schema: &'static str,
    /// The schema's version, [`DIFF_VERSION`].
    pub version: u32,
    /// framepipe's version.
    pub program_version: &'static str,
    /// The first input.
    pub a: InputSummary,
    /// The second input.
    pub b: InputSummary,
    /// True if both have the same number of frames, each of the same size, pixel format and samples.
    pub equal: bool,
    /// False if the comparison was left before an input had ended, or if no pair of frames could be compared.
    pub complete: bool,
    /// Sentences about what differs beside samples: sizes, pixel formats, numbers of frames.
    pub mismatches: Vec<String>,
    /// Pairs of frames that were taken.
    pub frames: u64,
    /// Of these, the frames that differ in anything.
    pub frames_differing: u64,
    /// The first sample that differs: the earliest frame, then the order of components, then row by row.
    pub first: Option<FirstDifference>,
    /// What was compared, in the order y, u, v, r, g, b, a.
    pub components: Vec<ComponentSummary>,
    /// All components together, weighted by their samples; `None` if nothing was compared.
    pub all: Option<Figures>,
    /// The frame with the lowest PSNR; `None` if no sample differs.
    pub worst: Option<WorstFrame>,
    /// What was done with the inputs without a loss.
    pub notes: Vec<String>,
    /// What is wrong with the inputs.
    pub warnings: Vec<String>,
}

/// One of the two inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InputSummary {
    /// Its name as it was given.
    pub name: String,
    /// What was read and how.
    pub description: String,
    /// Its frames; `None` if it went on where the comparison ended.
    pub frames: Option<u64>,
}

/// A sample that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// The frame's number, counted from 0.
    pub frame: u64,
    /// y, u, v, r, g, b or a.
    pub component: &'static str,
    /// Column in the component's own grid, in samples counted from 0: u and v may have fewer than y.
    pub x: usize,
    /// Row in the component's own grid, counted from 0.
    pub y: usize,
    /// The sample of A.
    pub a: u16,
    /// The sample of B.
    pub b: u16,
}

/// What one component shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComponentSummary {
    /// y, u, v, r, g, b or a.
    pub component: &'static str,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Its first sample that differs.
    pub first: Option<FirstDifference>,
}

/// How much samples differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Samples compared.
    pub samples: u64,
    /// Samples that differ.
    pub samples_differing: u64,
    /// The largest absolute difference, in levels of the depth.
    pub largest: u16,
    /// The mean absolute difference, in levels of the depth.
    pub mean: f64,
    /// PSNR in decibels, from the mean of the frames' mean squares; `None` where it is infinite.
    pub psnr: Option<f64>,
    /// The mean of the frames' SSIM, -1 to 1.
    pub ssim: f64,
}

/// The frame that differs most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WorstFrame {
    /// Its number, counted from 0.
    pub frame: u64,
    /// Its PSNR in decibels, all components together.
    pub psnr: f64,
    /// Its SSIM, all components together, -1 to 1.
    pub ssim: f64,
}

impl Summary {
    /// Puts the figures together. `a` and `b` need no number of frames: `lengths` says what is known.
    pub fn new(
        total: &Total,
        lengths: Lengths,
        a: InputSummary,
        b: InputSummary,
        remarks: Remarks,
    ) -> Summary {
        let frames = total.frames;
        let of = |goes_on: bool| (lengths != Lengths::Unknown && !goes_on).then_some(frames);
        let a = InputSummary {
            frames: of(lengths == Lengths::BEndsFirst),
            ..a
        };
        let b = InputSummary {
            frames: of(lengths == Lengths::AEndsFirst),
            ..b
        };
        let mut mismatches = Vec::new();
        let kinds = [("sizes", &total.sizes), ("pixel formats", &total.formats)];
        for (noun, mismatch) in kinds {
            mismatches.extend(mismatch.as_ref().map(|m| m.sentence(noun, frames)));
        }
        mismatches.extend(lengths_sentence(lengths, total, &a.name, &b.name));
        Summary {
            schema: DIFF_SCHEMA,
            version: DIFF_VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            equal: mismatches.is_empty() && total.differing == 0,
            complete: lengths != Lengths::Unknown && (frames == 0 || total.has_compared()),
            a,
            b,
            mismatches,
            frames,
            frames_differing: total.differing,
            first: total.first.map(FirstDifference::of),
            components: total.components.iter().map(ComponentSummary::of).collect(),
            all: total.has_compared().then(|| Figures::of_all(total)),
            worst: total.worst.map(|worst| WorstFrame {
                frame: worst.frame,
                psnr: psnr(worst.relative_mse),
                ssim: worst.ssim,
            }),
            warnings: remarks.warning_texts(),
            notes: remarks.notes,
        }
    }

    /// The comparison as indented JSON with a final line break.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }
}

fn lengths_sentence(lengths: Lengths, total: &Total, a: &str, b: &str) -> Option<String> {
    let (ended, other) = match lengths {
        Lengths::AEndsFirst => (a, b),
        Lengths::BEndsFirst => (b, a),
        Lengths::Equal | Lengths::Unknown => return None,
    };
    let count = |n| {
        if n == 1 {
            "1 frame".to_owned()
        } else {
            format!("{n} frames")
        }
    };
    let compared = match total.has_compared() {
        true => "; what both have was compared",
        false => "",
    };
    Some(format!(
        "the numbers of frames differ: {ended} ends after {}, and {other} goes on{compared}",
        count(total.frames)
    ))
}

impl FirstDifference {
    fn of(first: First) -> FirstDifference {
        FirstDifference {
            frame: first.frame,
            component: name(first.channel),
            x: first.place.x,
            y: first.place.y,
            a: first.place.a,
            b: first.place.b,
        }
    }
}

impl ComponentSummary {
    fn of(total: &ComponentTotal) -> ComponentSummary {
        ComponentSummary {
            component: name(total.channel),
            figures: Figures {
                samples: total.samples,
                samples_differing: total.differing,
                largest: total.largest,
                mean: total.sum as f64 / total.samples.max(1) as f64,
                psnr: finite(psnr(total.means.relative_mse())),
                ssim: total.means.ssim(),
            },
            first: total.first.map(FirstDifference::of),
        }
    }
}

impl Figures {
    fn of_all(total: &Total) -> Figures {
        let parts = &total.components;
        let samples: u64 = parts.iter().map(|c| c.samples).sum();
        Figures {
            samples,
            samples_differing: parts.iter().map(|c| c.differing).sum(),
            largest: parts.iter().map(|c| c.largest).max().unwrap_or(0),
            mean: parts.iter().map(|c| c.sum).sum::<u128>() as f64 / samples.max(1) as f64,
            psnr: finite(psnr(total.all.relative_mse())),
            ssim: total.all.ssim(),
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;
    use crate::frame::PixelFormat;
    use crate::report::tests::{documented, paths};
    use serde_json::Value;

    fn input(name: &str) -> InputSummary {
        InputSummary {
            name: name.to_owned(),
            description: "a video".to_owned(),
            frames: None,
        }
    }

    fn remarks() -> Remarks {
        Remarks {
            notes: vec!["a note".to_owned()],
            warnings: vec!["a warning".to_owned().into()],
        }
    }

    fn gray(value: u16) -> crate::frame::Frame {
        frame(PixelFormat::GRAY, (8, 8), move |_, _, _| value)
    }

    #[test]
    fn the_json_has_the_documented_fields_and_no_others() {
        let mut total = Total::default();
        total.add(&gray(100), &gray(101));
        total.add(&gray(100), &frame(PixelFormat::GRAY, (8, 9), |_, _, _| 0));
        let mut summary = Summary::new(&total, Lengths::Equal, input("a"), input("b"), remarks());
        assert!(!summary.equal);
        summary.a.frames = Some(2);
        let json: Value = serde_json::from_str(&summary.to_json().unwrap()).unwrap();
        let mut found = Vec::new();
        paths(&json, "", &mut found);
        let mut documented = documented("Comparisons");
        found.sort();
        documented.sort();
        assert_eq!(found, documented);
        assert_eq!(
            (&json["schema"], &json["version"]),
            (&DIFF_SCHEMA.into(), &1.into())
        );
    }

    #[test]
    fn equal_frames_have_no_first_difference_and_no_finite_psnr() {
        let mut total = Total::default();
        total.add(&gray(7), &gray(7));
        let summary = Summary::new(&total, Lengths::Equal, input("a"), input("b"), Remarks::default());
        assert!(summary.equal && summary.complete);
        assert_eq!((summary.a.frames, summary.b.frames), (Some(1), Some(1)));
        let figures = summary.all.unwrap();
        assert_eq!((figures.psnr, figures.ssim, figures.mean), (None, 1.0, 0.0));
        assert!(summary.first.is_none() && summary.worst.is_none());
        let short = Summary::new(
            &total,
            Lengths::AEndsFirst,
            input("a"),
            input("b"),
            Remarks::default(),
        );
        assert!(!short.equal && short.b.frames.is_none());
        assert_eq!(
            short.mismatches,
            [
                "the numbers of frames differ: a ends after 1 frame, and b goes on; what both have was \
                 compared"
            ]
        );
    }

    #[test]
    fn a_comparison_of_nothing_is_not_complete() {
        let mut total = Total::default();
        total.add(&gray(7), &frame(PixelFormat::GRAY, (8, 9), |_, _, _| 7));
        for lengths in [Lengths::Equal, Lengths::AEndsFirst, Lengths::BEndsFirst] {
            let summary = Summary::new(&total, lengths, input("a"), input("b"), Remarks::default());
            assert!(!summary.complete && !summary.equal && summary.all.is_none());
            let said = summary.mismatches.join("; ");
            assert!(said.contains("no component can be compared"), "{said}");
            assert!(!said.contains("was compared"), "{said}");
        }
        // The number of frames is all that there is to compare.
        let none = Total::default();
        let summary = Summary::new(
            &none,
            Lengths::AEndsFirst,
            input("a"),
            input("b"),
            Remarks::default(),
        );
        assert!(summary.complete && !summary.equal);
        assert!(
            summary.mismatches[0].ends_with("b goes on"),
            "{:?}",
            summary.mismatches
        );
    }

    #[test]
    fn frames_of_other_kinds_are_counted_and_named() {
        let mut total = Total::default();
        let ya = frame(PixelFormat::YA8, (8, 8), |_, _, _| 7);
        for (a, b) in [(&gray(7), &gray(7)), (&gray(7), &ya), (&gray(7), &ya)] {
            total.add(a, b);
        }
        let summary = Summary::new(&total, Lengths::Equal, input("a"), input("b"), Remarks::default());
        assert_eq!((summary.frames, summary.frames_differing), (3, 2));
        assert_eq!(
            summary.mismatches,
            ["the pixel formats differ in 2 frames, the first of them 1: gray and ya8; y was compared"]
        );
        // Luma is the same in all three.
        assert!(!summary.equal && summary.all.unwrap().samples_differing == 0);
    }
}
