//! Regions: only a part of each picture is filtered, and the rest keeps its bits.
//!
//! ```text
//!           ┌──────── window ────────> another engine ──┐
//!  frame ───┤                                           v
//!           └──────── copy ───────────────────────> paste ──> frame
//! ```
//!
//! The window is the region with a halo as wide as the masks reach (`window`), so that within the region the
//! result is the same as when the whole picture is filtered, with any engine. A matte mixes the original and
//! the result, pixel by pixel. Each sample is pasted once, so that regions may overlap.

mod error;
mod matte;
mod partial;
mod paste;
mod rectangle;
mod spans;
mod syntax;
mod timeline;
mod window;

pub use error::RegionError;
pub use matte::MatteFrames;
pub use rectangle::{Rectangle, RectangleError};
pub use syntax::{Period, Region, RegionFileError, RegionSyntaxError, read_regions};
pub use timeline::Clock;

use crate::engine::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{Point, Turn};
use partial::Partial;

/// Most regions that may be in one frame: each may be a window of its own.
pub const MOST_AT_ONCE: usize = 4096;

/// Which part of each picture is filtered. Regions and mattes are of the picture as it is shown, turned as
/// its stream or its frame states.
#[derive(Default)]
pub struct Parts {
    /// The regions; empty for the whole picture.
    pub regions: Vec<Region>,
    /// The weight of the filtered picture in each pixel.
    pub matte: Option<Box<dyn MatteFrames>>,
    /// Which picture of the matte is for which frame.
    pub pairing: Pairing,
    /// If true, the rest is filtered instead: pixels outside of the regions, and within them with the matte
    /// inverted.
    pub outside: bool,
    /// How the whole stream is shown, if it says so; else each frame may say it.
    pub stream_turn: Option<Turn>,
    /// Where the part of the input that is read begins, and where it ends. No frame is missed in the time of
    /// a region outside of it.
    pub read: (End, End),
    /// Threads that cut, mix and paste; 0 is one for each core.
    pub threads: usize,
}

/// Which picture of a matte is for which frame. One picture alone is for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairing {
    /// There is one for each frame of the input; a frame has the one at its own place.
    #[default]
    Whole,
    /// The same, but the run takes only a part of the input, so that pictures may be left at the end.
    Part,
    /// There is one for each frame of the run.
    Run,
}

/// An end of what a run reads of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// The input's own.
    #[default]
    Input,
    /// This time or frame of the input.
    At(Point),
    /// The first or the last frame that is read, whichever that is.
    Frame,
}

impl Parts {
    /// True if the whole picture is filtered.
    pub fn is_all(&self) -> bool {
        self.regions.is_empty() && self.matte.is_none()
    }
}

/// Lets `engine`, which applies `chain`, filter only `parts` of each picture. `size` is the width and height
/// of the frames as they are shown, if all have the same.
///
/// ```
/// use framepipe::Chain;
/// use framepipe::engine::cpu::Cpu;
/// use framepipe::engine::region::{self, Clock, Parts};
/// use framepipe::frame::Rational;
///
/// let chain = Chain::parse("gaussian:sigma=8")?;
/// let parts = Parts {
///     regions: vec!["0:05..0:08 200x100+410+220 -> 260x130+900+240".parse()?],
///     ..Default::default()
/// };
/// let clock = Clock {
///     time_base: Rational { num: 1, den: 25 },
///     frame_rate: Some(Rational { num: 25, den: 1 }),
/// };
/// let everywhere = Box::new(Cpu::new(chain.clone(), 2)?);
/// let engine = region::around(everywhere, parts, &chain, clock, Some((1280, 720)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn around(
    engine: Box<dyn Engine>,
    parts: Parts,
    chain: &Chain,
    clock: Clock,
    size: Option<(usize, usize)>,
) -> Result<Box<dyn Engine>, EngineError> {
    if parts.is_all() {
        return Ok(engine);
    }
    if let Some((width, height)) = size {
        let outside = |r: &&Region| r.first.hull(&r.last).within(width, height).is_none();
        if let Some(region) = parts.regions.iter().find(outside) {
            return Err(EngineError::Region(RegionError::Outside {
                region: region.label.clone(),
                width,
                height,
            }));
        }
    }
    Ok(Box::new(Partial::new(engine, parts, chain, clock)?))
}
