//! The totals of a comparison over all pairs of frames.

use super::component::name;
use super::{Component, ComponentFigures, Place, compare};
use crate::frame::{Channel, Frame, Layout};

/// Which of the two inputs ended first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// Both after the same frame.
    Equal,
    /// A ended, and B went on.
    AEndsFirst,
    /// B ended, and A went on.
    BEndsFirst,
    /// Neither: the comparison was left before.
    Unknown,
}

/// Sums over the pairs of a comparison. PSNR and SSIM are means over frames, as FFmpeg's filters have them.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// Pairs taken, those of which nothing could be compared included.
    pub(super) frames: u64,
    /// Pairs that differ in a sample, in size or in their components.
    pub(super) differing: u64,
    /// In the order y, u, v, r, g, b, a.
    pub(super) components: Vec<ComponentTotal>,
    /// All components of a pair together, weighted by their samples.
    pub(super) all: Means,
    /// The first sample that differs.
    pub(super) first: Option<First>,
    pub(super) worst: Option<Worst>,
    pub(super) sizes: Option<Mismatch>,
    pub(super) formats: Option<Mismatch>,
    /// The formats of the first pair that has the same components in other places.
    storage: Option<(String, String)>,
}

/// Sums of one component.
#[derive(Debug, Clone)]
pub(super) struct ComponentTotal {
    pub(super) channel: Channel,
    pub(super) samples: u64,
    pub(super) differing: u64,
    pub(super) largest: u16,
    pub(super) sum: u128,
    pub(super) means: Means,
    pub(super) first: Option<First>,
}

/// Sums over pairs that were compared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Means {
    pairs: u64,
    relative_mse: f64,
    ssim: f64,
}

/// A sample that differs, of a frame that is counted from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct First {
    pub(super) frame: u64,
    pub(super) channel: Channel,
    pub(super) place: Place,
}

/// The pair with the largest mean of squares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worst {
    pub(super) frame: u64,
    pub(super) relative_mse: f64,
    pub(super) ssim: f64,
}

/// Frames that are not of one kind.
#[derive(Debug, Clone)]
pub(super) struct Mismatch {
    /// What of the first such pair A and B have.
    a: String,
    b: String,
    /// What of that pair was compared all the same.
    compared: String,
    /// The first such pair, and how many there are.
    frame: u64,
    count: u64,
}

impl Means {
    fn add(&mut self, relative_mse: f64, ssim: f64) {
        self.pairs += 1;
        self.relative_mse += relative_mse;
        self.ssim += ssim;
    }

    /// The mean of the pairs' mean squares, over the square of the largest sample value.
    pub(super) fn relative_mse(&self) -> f64 {
        self.relative_mse / self.pairs.max(1) as f64
    }

    pub(super) fn ssim(&self) -> f64 {
        self.ssim / self.pairs.max(1) as f64
    }
}

impl Mismatch {
    fn count(known: &mut Option<Mismatch>, frame: u64, (a, b): (String, String), compared: &str) {
        match known {
            Some(known) => known.count += 1,
            None => {
                *known = Some(Mismatch {
                    a,
                    b,
                    compared: compared.to_owned(),
                    frame,
                    count: 1,
                });
            }
        }
    }

    /// A sentence about it, of `frames` pairs in all.
    pub(super) fn sentence(&self, noun: &str, frames: u64) -> String {
        let place = match self.count {
            count if count == frames => String::new(),
            1 => format!(" in frame {}", self.frame),
            count => format!(" in {count} frames, the first of them {}", self.frame),
        };
        format!(
            "the {noun} differ{place}: {} and {}; {}",
            self.a, self.b, self.compared
        )
    }
}

impl Total {
    /// Compares the next pair and adds what it shows.
    pub fn add(&mut self, a: &Frame, b: &Frame) {
        let figures = compare(a, b);
        let frame = self.frames;
        self.frames += 1;
        let (one, other) = (a.layout(), b.layout());
        let compared = compared(&figures);
        let size = |width, height| format!("{width}x{height}");
        let sizes = (
            size(one.width(), one.height()),
            size(other.width(), other.height()),
        );
        let formats = (one.format().to_string(), other.format().to_string());
        let mut differs = figures.iter().any(|f| f.difference.differing > 0);
        if sizes.0 != sizes.1 {
            Mismatch::count(&mut self.sizes, frame, sizes, &compared);
            differs = true;
        }
        // The same components of the same size and depth may be stored in another order or in other planes.
        let is_whole = |layout: &Layout| {
            let planes = layout.format().planes().iter();
            planes.map(|plane| plane.channels.len()).sum::<usize>() == figures.len()
        };
        if formats.0 != formats.1 {
            if is_whole(one) && is_whole(other) {
                self.storage.get_or_insert(formats);
            } else {
                Mismatch::count(&mut self.formats, frame, formats, &compared);
                differs = true;
            }
        }
        self.differing += u64::from(differs);
        for figures in &figures {
            self.add_component(frame, figures);
        }
        self.add_all(frame, &figures);
    }

    /// Word of formats that differ, though both have the same components.
    pub fn other_storage(&self) -> Option<String> {
        let (a, b) = self.storage.as_ref()?;
        Some(format!(
            "components are stored in other orders or planes, {a} and {b}"
        ))
    }

    /// True once a sample was compared.
    pub fn has_compared(&self) -> bool {
        !self.components.is_empty()
    }

    fn add_component(&mut self, frame: u64, figures: &ComponentFigures) {
        let Component { channel, max, .. } = figures.component;
        let difference = &figures.difference;
        let index = match self.components.iter().position(|c| c.channel == channel) {
            Some(index) => index,
            None => {
                self.components.push(ComponentTotal::of(channel));
                self.components.len() - 1
            }
        };
        let Some(total) = self.components.get_mut(index) else {
            return;
        };
        total.samples += difference.samples;
        total.differing += difference.differing;
        total.largest = total.largest.max(difference.largest);
        total.sum += u128::from(difference.sum);
        total.means.add(difference.relative_mse(max), figures.ssim);
        let first = difference.first.map(|place| First {
            frame,
            channel,
            place,
        });
        total.first = total.first.or(first);
        self.first = self.first.or(first);
    }

    fn add_all(&mut self, frame: u64, figures: &[ComponentFigures]) {
        let samples: u64 = figures.iter().map(|f| f.difference.samples).sum();
        if samples == 0 {
            return;
        }
        let mean = |value: &dyn Fn(&ComponentFigures) -> f64| -> f64 {
            let weighted = figures.iter().map(|f| value(f) * f.difference.samples as f64);
            weighted.sum::<f64>() / samples as f64
        };
        let relative_mse = mean(&|f| f.difference.relative_mse(f.component.max));
        let ssim = mean(&|f| f.ssim);
        self.all.add(relative_mse, ssim);
        if relative_mse > self.worst.map_or(0.0, |worst| worst.relative_mse) {
            self.worst = Some(Worst {
                frame,
                relative_mse,
                ssim,
            });
        }
    }
}

impl ComponentTotal {
    fn of(channel: Channel) -> ComponentTotal {
        ComponentTotal {
            channel,
            samples: 0,
            differing: 0,
            largest: 0,
            sum: 0,
            means: Means::default(),
            first: None,
        }
    }
}

/// Which components of a pair were compared, in words.
fn compared(figures: &[ComponentFigures]) -> String {
    let names: Vec<&str> = figures.iter().map(|f| name(f.component.channel)).collect();
    match names[..] {
        [] => "no component can be compared".to_owned(),
        [one] => format!("{one} was compared"),
        _ => format!("{} were compared", names.join(", ")),
    }
}
