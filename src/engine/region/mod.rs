//! Regions: only a part of each picture is filtered, and the rest stays as it is, bit for bit.
//!
//! ```text
//!           ┌──────── window ────────> another engine ──┐
//!  frame ───┤                                           v
//!           └──────── copy ───────────────────────> paste ──> frame
//! ```
//!
//! What is cut out is a region with a halo as wide as the masks reach (`window`), so that inside of it the
//! result is that of the whole picture's filter, whatever engine makes it. A matte mixes both, pixel by
//! pixel. Each sample is filtered once and put back once, so that regions may overlap.

mod error;
mod line;
mod matte;
mod partial;
mod paste;
mod rectangle;
mod spans;
mod timeline;
mod window;

pub use error::RegionError;
pub use line::{Period, Region, RegionFileError, RegionSyntaxError, read_regions};
pub use matte::MatteFrames;
pub use rectangle::{Rectangle, RectangleError};
pub use timeline::Clock;

use super::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::Turn;
use partial::Partial;

/// Which part of each picture is filtered. Regions and mattes are of the picture as it is shown, turned as
/// its stream or its frame states.
#[derive(Default)]
#[non_exhaustive]
pub struct Parts {
    /// Where; everywhere if there are none.
    pub regions: Vec<Region>,
    /// How much.
    pub matte: Option<Box<dyn MatteFrames>>,
    /// The opposite: what regions and matte leave.
    pub outside: bool,
    /// How the whole stream is shown, if it says so; else each frame may say it.
    pub stream_turn: Option<Turn>,
    /// Threads that cut, mix and paste; 0 is one for each core.
    pub threads: usize,
}

impl Parts {
    /// True if that is everything.
    pub fn is_all(&self) -> bool {
        self.regions.is_empty() && self.matte.is_none()
    }
}

/// `engine` for the wanted parts of each picture. `chain` is what it applies; `size` is that of all frames as
/// they are stored, if they are of one.
///
/// ```
/// use framepipe::Chain;
/// use framepipe::engine::cpu::Cpu;
/// use framepipe::engine::region::{self, Clock, Parts};
/// use framepipe::frame::Rational;
///
/// let chain = Chain::parse("gaussian:sigma=8")?;
/// let mut parts = Parts::default();
/// parts.regions.push("0:05..0:08 200x100+410+220 -> 260x130+900+240".parse()?);
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
    if let Some(size) = size {
        let (width, height) = parts.stream_turn.unwrap_or(Turn::UPRIGHT).shown_size(size);
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
