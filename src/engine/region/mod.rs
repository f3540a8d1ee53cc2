//! Regions: only a part of each picture is filtered, and the rest stays as it is, bit for bit.
//!
//! ```text
//!           ┌──────── window ────────> another engine ──┐
//!  frame ───┤                                           v
//!           └──────── copy ───────────────────────> paste ──> frame
//! ```
//!
//! What is cut out is a region with a halo as wide as the masks reach (`window`), so that inside of it the
//! result is that of the whole picture's filter, whatever engine makes it. A matte mixes both, pixel by pixel.
//! Each sample is filtered once and put back once, so that regions may overlap.

mod error;
mod line;
mod matte;
mod paste;
mod rectangle;
mod spans;
mod timeline;
mod window;

pub use error::RegionError;
pub use line::{Region, RegionFileError, RegionSyntaxError, When, read_regions};
pub use matte::MatteFrames;
pub use rectangle::{Rectangle, RectangleError};
pub use timeline::Clock;

use super::{DeviceTimes, Engine, EngineError, Ranges};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Frame, FramePool, Layout, Pageable, Remarks};
use matte::{Matte, Mattes};
use paste::{Share, cut, paste};
use rectangle::Area;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use timeline::Timeline;
use window::{Canvas, Group, Member, Radius};

/// Rows of the windows are aligned to so many bytes.
const ALIGNMENT: usize = 64;

/// Explanations that are remembered, so that windows of several sizes do not repeat them frame by frame.
const KEPT_EXPLANATIONS: usize = 256;

/// Which part of each picture is filtered.
#[derive(Default)]
#[non_exhaustive]
pub struct Parts {
    /// Where; everywhere if there are none.
    pub regions: Vec<Region>,
    /// How much.
    pub matte: Option<Box<dyn MatteFrames>>,
    /// The opposite: what regions and matte leave.
    pub outside: bool,
}

impl Parts {
    /// True if that is everything.
    pub fn is_all(&self) -> bool {
        self.regions.is_empty() && self.matte.is_none()
    }
}

/// `engine` for the wanted parts of each picture. `chain` is what it applies; `size` is that of all frames,
/// if they are of one.
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
) -> Result<Box<dyn Engine>, RegionError> {
    if parts.is_all() {
        return Ok(engine);
    }
    if let Some((width, height)) = size {
        let outside = |r: &&Region| r.first.hull(&r.last).within(width, height).is_none();
        if let Some(region) = parts.regions.iter().find(outside) {
            return Err(RegionError::Outside {
                region: region.label.clone(),
                width,
                height,
            });
        }
    }
    let depth = engine.depth().max(1);
    Ok(Box::new(Partial {
        description: describe(&parts),
        has_regions: !parts.regions.is_empty(),
        timeline: Timeline::new(parts.regions, clock)?,
        mattes: parts.matte.map(Mattes::new),
        outside: parts.outside,
        radius: Radius::of(chain),
        grouped: None,
        // One more, because a result may wait to be put back while the next window is cut out.
        before: FramePool::new(depth + 1, engine.input_allocator()),
        after: FramePool::new(depth + 1, engine.output_allocator()),
        depth,
        inner: engine,
        flying: 0,
        waiting: VecDeque::new(),
        explanation: Vec::new(),
        explained: HashSet::new(),
        strays: None,
    }))
}

/// The end of the engine's description.
fn describe(parts: &Parts) -> String {
    let mut said = Vec::new();
    match &parts.regions[..] {
        [] => {}
        several if several.len() <= 3 => {
            said.extend(several.iter().map(|region| region.label.clone()));
        }
        [first, ..] => said.push(format!("{} regions, the first {first}", parts.regions.len())),
    }
    if let Some(matte) = &parts.matte {
        said.push(format!("by matte {}", matte.name()));
    }
    let side = if parts.outside { "outside of " } else { "only " };
    format!("{side}{}", said.join(", "))
}

/// An engine that gives another one parts of pictures.
struct Partial {
    inner: Box<dyn Engine>,
    description: String,
    timeline: Timeline,
    has_regions: bool,
    mattes: Option<Mattes>,
    outside: bool,
    radius: Radius,
    /// How the latest frame's regions are filtered together.
    grouped: Option<(Canvas, Vec<Member>, Arc<[Group]>)>,
    /// Windows in flight.
    flying: usize,
    depth: usize,
    /// Memory of the windows, before and after.
    before: FramePool,
    after: FramePool,
    /// Frames in flight, oldest first.
    waiting: VecDeque<Pending>,
    explanation: Vec<String>,
    explained: HashSet<Vec<String>>,
    strays: Option<Strays>,
}

/// A frame whose parts are being filtered.
struct Pending {
    /// The original, in which parts are replaced as they come.
    result: Frame,
    /// The regions of the frame.
    areas: Vec<Area>,
    matte: Option<Arc<Matte>>,
    groups: Arc<[Group]>,
    /// Groups that have been put back.
    done: usize,
}

/// Frames in which a region lay wholly outside.
struct Strays {
    region: String,
    first: u64,
    frames: u64,
}

impl Partial {
    /// The regions of a frame, and the matte's own where there are no others.
    fn members(&mut self, frame: &Frame, matte: Option<&Matte>) -> Result<Vec<Member>, RegionError> {
        let (width, height) = (frame.layout().width(), frame.layout().height());
        if !self.has_regions {
            let hull = match matte {
                Some(matte) if !self.outside => matte.hull,
                _ => Some(Area::whole(width, height)),
            };
            let member = |area| Member {
                // Of another size for the next matte, perhaps.
                grows: !self.outside,
                ..Member::fixed(area)
            };
            return Ok(hull.map(member).into_iter().collect());
        }
        let mut members = Vec::new();
        for present in self.timeline.at(frame.sequence, &frame.metadata)? {
            let region = present.region;
            let Some(area) = present.at.within(width, height) else {
                match &mut self.strays {
                    Some(strays) => strays.frames += 1,
                    None => {
                        self.strays = Some(Strays {
                            region: region.label.clone(),
                            first: frame.sequence,
                            frames: 1,
                        });
                    }
                }
                continue;
            };
            let size = |length: i64| usize::try_from(length).unwrap_or(usize::MAX);
            let (first, last) = (region.first, region.last);
            members.push(Member {
                area,
                size: (size(present.at.width), size(present.at.height)),
                moves: (first.x, first.y) != (last.x, last.y),
                grows: (first.width, first.height) != (last.width, last.height),
            });
        }
        Ok(members)
    }

    /// What is filtered for a frame with these regions.
    fn groups(&mut self, canvas: Canvas, members: &[Member]) -> Arc<[Group]> {
        let wanted = match self.outside {
            true => vec![Member::fixed(Area::whole(canvas.width, canvas.height))],
            false => members.to_vec(),
        };
        match &self.grouped {
            Some((before, of, groups)) if *before == canvas && *of == wanted => Arc::clone(groups),
            _ => {
                let groups: Arc<[Group]> = canvas.groups(wanted.clone()).into();
                self.grouped = Some((canvas, wanted, Arc::clone(&groups)));
                groups
            }
        }
    }

    /// The matte of the next frame.
    fn matte(&mut self, frame: &Frame) -> Result<Option<Arc<Matte>>, RegionError> {
        let Some(mattes) = &mut self.mattes else {
            return Ok(None);
        };
        let matte = mattes.next()?;
        let picture = (frame.layout().width(), frame.layout().height());
        // What only keeps the place of a file that cannot be read has no size of its own.
        if !frame.metadata.stands_in && (matte.width, matte.height) != picture {
            return Err(RegionError::Size {
                name: mattes.name().to_owned(),
                matte: (matte.width, matte.height),
                picture,
            });
        }
        Ok(Some(matte))
    }

    /// Gives one window to the engine.
    fn send(&mut self, window: &Area, frame: &Frame) -> Result<(), EngineError> {
        while self.flying >= self.depth && self.receive()? {}
        let layout = Layout::new(frame.format(), window.width, window.height, ALIGNMENT)?;
        let mut part = Frame::new(layout, free(&self.before)?)?;
        cut(frame, window, &mut part);
        part.sequence = frame.sequence;
        part.born = frame.born;
        part.metadata.colour = frame.metadata.colour;
        self.inner.submit(part, free(&self.after)?, ALIGNMENT)?;
        self.flying += 1;
        let explanation = self.inner.explanation();
        if self.explained.len() < KEPT_EXPLANATIONS && self.explained.insert(explanation.clone()) {
            self.explanation.extend(explanation);
        }
        Ok(())
    }

    /// Waits for the oldest window and puts it back; false if there is none.
    fn receive(&mut self) -> Result<bool, EngineError> {
        let Some(part) = self.inner.collect()? else {
            return Ok(false);
        };
        self.flying = self.flying.saturating_sub(1);
        let Some(pending) = self.waiting.iter_mut().find(|p| p.done < p.groups.len()) else {
            return Ok(false);
        };
        pending.put_back(&part, self.outside);
        Ok(true)
    }
}

/// A free buffer of a pool that has one for every window in flight.
fn free(pool: &FramePool) -> Result<Buffer, EngineError> {
    match pool.try_take() {
        Some(buffer) => Ok(buffer),
        // Only if more windows are in flight than the engine allows.
        None => Ok(Buffer::unpooled(Pageable.allocate(0)?)),
    }
}

impl Pending {
    /// Puts the oldest window that is missing into the picture.
    fn put_back(&mut self, part: &Frame, outside: bool) {
        let groups = Arc::clone(&self.groups);
        let (group, earlier) = (&groups[self.done], &groups[..self.done]);
        self.done += 1;
        let (matte, areas) = (self.matte.as_deref(), &self.areas);
        let result = &mut self.result;
        if outside {
            let whole = [group.window];
            paste(part, &group.window, result, Share::Whole, |shift, y| {
                let regions = spans::covered(areas.iter(), shift, y);
                spans::without(&spans::covered(whole.iter(), shift, y), &regions)
            });
            if let Some(matte) = matte {
                paste(part, &group.window, result, Share::Rest(matte), |shift, y| {
                    spans::covered(areas.iter(), shift, y)
                });
            }
            return;
        }
        let own = |groups: &[Group]| -> Vec<Area> {
            groups.iter().flat_map(|g| &g.members).map(|m| m.area).collect()
        };
        let (own, others) = (own(std::slice::from_ref(group)), own(earlier));
        let share = matte.map_or(Share::Whole, Share::Matte);
        paste(part, &group.window, result, share, |shift, y| {
            let others = spans::covered(others.iter(), shift, y);
            spans::without(&spans::covered(own.iter(), shift, y), &others)
        });
    }
}

impl Engine for Partial {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn description(&self) -> String {
        format!("{}; {}", self.inner.description(), self.description)
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let (format, width, height) = (input.format(), input.layout().width(), input.layout().height());
        let matte = self.matte(&input)?;
        let members = if input.metadata.stands_in {
            Vec::new()
        } else {
            self.members(&input, matte.as_deref())?
        };
        let groups = if input.metadata.stands_in {
            Vec::new().into()
        } else {
            self.groups(Canvas::new(format, width, height, self.radius), &members)
        };
        let mut result = Frame::new(Layout::new(format, width, height, row_alignment)?, output)?;
        cut(&input, &Area::whole(width, height), &mut result);
        result.sequence = input.sequence;
        result.born = input.born;
        result.metadata = input.metadata.clone();
        self.waiting.push_back(Pending {
            result,
            areas: members.iter().map(|member| member.area).collect(),
            matte,
            groups: Arc::clone(&groups),
            done: 0,
        });
        for group in groups.iter() {
            self.send(&group.window, &input)?;
        }
        Ok(())
    }

    fn explanation(&mut self) -> Vec<String> {
        std::mem::take(&mut self.explanation)
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        while self.waiting.front().is_some_and(|p| p.done < p.groups.len()) {
            if !self.receive()? {
                return Ok(None);
            }
        }
        Ok(self.waiting.pop_front().map(|pending| pending.result))
    }

    fn ranges(&self) -> Option<Arc<dyn Ranges>> {
        self.inner.ranges()
    }

    fn device_times(&mut self) -> Option<DeviceTimes> {
        self.inner.device_times()
    }

    fn remarks(&mut self, whole: bool) -> Remarks {
        let mut remarks = self.inner.remarks(whole);
        if let Some(Strays {
            region,
            first,
            frames,
        }) = &self.strays
        {
            let times = match frames {
                1 => format!("in frame {first}"),
                _ => format!("{frames} times, first in frame {first}"),
            };
            let text = format!("the region {region} lay wholly outside of the picture {times}");
            remarks.warnings.push(text);
        }
        if let Some((count, first)) = self.timeline.unmet().filter(|_| whole) {
            remarks.notes.push(match count {
                1 => format!("no frame was shown in the time of the region {first}"),
                _ => format!("no frame was shown in the time of {count} regions, the first {first}"),
            });
        }
        if let Some(mattes) = &mut self.mattes {
            remarks.append(mattes.remarks(whole));
        }
        remarks
    }
}
