//! The engine that lets another one filter parts of pictures, and pastes the results into the pictures.

use super::matte::{Matte, Mattes};
use super::paste::{Share, cut, paste};
use super::rectangle::{Area, Rectangle};
use super::timeline::Timeline;
use super::window::{Canvas, Group, Member, Radius};
use super::{Clock, End, MOST_AT_ONCE, Parts, Region, RegionError, spans};
use crate::engine::cpu::Threads;
use crate::engine::wrappers::{ALIGNMENT, free};
use crate::engine::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, Frame, FramePool, Layout, Pageable, Remarks, Turn};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Most explanations that are remembered, so that windows of several sizes do not repeat them in every frame.
const KEPT_EXPLANATIONS: usize = 256;

/// An engine that gives another one parts of pictures.
pub(super) struct Partial {
    inner: Box<dyn Engine>,
    description: String,
    timeline: Timeline,
    has_regions: bool,
    /// What is read of the input.
    read: (End, End),
    /// How the stream is shown, if it says so; else each frame may.
    stream_turn: Option<Turn>,
    mattes: Option<Mattes>,
    outside: bool,
    radius: Radius,
    /// The groups of the latest frame, with the canvas and the members that they are made of.
    grouped: Option<(Canvas, Vec<Member>, Arc<[Group]>)>,
    /// Windows in flight.
    flying: usize,
    /// Most windows in flight, and frames.
    depth: usize,
    /// Memory of the windows before the inner engine.
    before: FramePool,
    /// Memory of the filtered windows.
    after: FramePool,
    /// Frames in flight, oldest first.
    waiting: VecDeque<Pending>,
    /// Lines that were not yet collected.
    explanation: Vec<String>,
    /// Explanations of earlier windows.
    explained: HashSet<Vec<String>>,
    frames_outside: Option<FramesOutside>,
    threads: Threads,
}

/// A frame whose parts are being filtered.
struct Pending {
    /// A copy of the original, into which filtered windows are pasted.
    result: Frame,
    /// The regions of the frame.
    areas: Vec<Area>,
    matte: Option<Arc<Matte>>,
    groups: Arc<[Group]>,
    /// Number of groups that have been pasted.
    done: usize,
}

/// Frames in which a region lay wholly outside.
struct FramesOutside {
    region: String,
    first: u64,
    frames: u64,
}

impl Partial {
    /// Lets `engine`, which applies `chain`, filter only `parts` of each picture.
    pub(super) fn new(
        engine: Box<dyn Engine>,
        parts: Parts,
        chain: &Chain,
        clock: Clock,
    ) -> Result<Partial, EngineError> {
        let depth = engine.depth().max(1);
        let threads = Threads::new(parts.threads)?;
        Ok(Partial {
            threads,
            description: describe(&parts),
            has_regions: !parts.regions.is_empty(),
            read: parts.read,
            stream_turn: parts.stream_turn,
            timeline: Timeline::new(parts.regions, clock)?,
            mattes: parts.matte.map(|matte| Mattes::new(matte, parts.pairing)),
            outside: parts.outside,
            radius: Radius::of(chain),
            grouped: None,
            // One more: a result may wait to be pasted while the next window is cut out.
            before: FramePool::new(depth + 1, engine.input_allocator()),
            after: FramePool::new(depth + 1, engine.output_allocator()),
            depth,
            inner: engine,
            flying: 0,
            waiting: VecDeque::new(),
            explanation: Vec::new(),
            explained: HashSet::new(),
            frames_outside: None,
        })
    }

    /// How a frame is shown.
    fn turn(&self, frame: &Frame) -> Turn {
        let turn = self.stream_turn.or_else(|| Turn::of_frame(&frame.metadata));
        turn.unwrap_or(Turn::UPRIGHT)
    }

    /// The regions of a frame; without regions the area of the matte.
    fn members(&mut self, frame: &Frame, matte: Option<&Matte>) -> Result<Vec<Member>, RegionError> {
        let (width, height) = (frame.layout().width(), frame.layout().height());
        if !self.has_regions {
            let hull = match matte {
                Some(matte) if !self.outside => matte.hull,
                _ => Some(Area::whole(width, height)),
            };
            let member = |area| Member {
                // The next matte may need another size.
                grows: !self.outside,
                ..Member::fixed(area)
            };
            return Ok(hull.map(member).into_iter().collect());
        }
        let turn = self.turn(frame);
        let mut members = Vec::new();
        for present in self.timeline.at(frame.sequence, &frame.metadata)? {
            let region = present.region;
            let at = present.at.stored(turn, (width, height));
            let Some(area) = at.within(width, height) else {
                let is_inside =
                    |end: &Rectangle| end.stored(turn, (width, height)).within(width, height).is_some();
                // It comes into the picture, or leaves it.
                if [region.first, region.last].iter().any(is_inside) {
                    continue;
                }
                match &mut self.frames_outside {
                    Some(frames_outside) => frames_outside.frames += 1,
                    None => {
                        self.frames_outside = Some(FramesOutside {
                            region: region.label.clone(),
                            first: frame.sequence,
                            frames: 1,
                        });
                    }
                }
                continue;
            };
            members.push(member(region, &at, area));
        }
        Ok(members)
    }

    /// Most bytes of a window in frames of this layout: all regions in one window, or the whole frame.
    fn window_bytes(&self, frame: &Layout) -> u128 {
        let (width, height) = (frame.width(), frame.height());
        let whole = frame.size() as u128;
        if self.outside || !self.has_regions {
            return whole;
        }
        let canvas = Canvas::new(frame.format(), width, height, self.radius);
        let of_region = |region: &Region| {
            let turn = self.stream_turn.unwrap_or(Turn::UPRIGHT);
            // In a corner, where windows are largest if the border wraps.
            let corner = Rectangle {
                x: 0,
                y: 0,
                width: region.first.width.max(region.last.width),
                height: region.first.height.max(region.last.height),
            };
            let corner = corner.stored(turn, (width, height)).within(width, height)?;
            let member = Member {
                grows: region.first != region.last,
                ..Member::fixed(corner)
            };
            let window = canvas.window(&[member])?;
            let layout = Layout::new(frame.format(), window.width, window.height, ALIGNMENT);
            layout.ok().map(|layout| layout.size() as u128)
        };
        let sum: u128 = self.timeline.regions().filter_map(of_region).sum();
        sum.min(whole)
    }

    /// An estimate of the first window's layout in frames of this layout, as if all regions were there in the
    /// first frame. `None` without regions, where the matte decides.
    fn expected_window(&self, frame: &Layout) -> Option<Layout> {
        let (width, height) = (frame.width(), frame.height());
        let window = if self.outside {
            Area::whole(width, height)
        } else {
            let within =
                |region: &Region| Some(member(region, &region.first, region.first.within(width, height)?));
            // A frame has no more of them, and a long film's list has.
            let regions = self.timeline.regions().take(MOST_AT_ONCE);
            let members: Vec<Member> = regions.filter_map(within).collect();
            let canvas = Canvas::new(frame.format(), width, height, self.radius);
            canvas.groups(members).first()?.window
        };
        Layout::new(frame.format(), window.width, window.height, ALIGNMENT).ok()
    }

    /// The windows to filter in a frame with these regions.
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
        let turn = self.turn(frame);
        let Some(mattes) = &mut self.mattes else {
            return Ok(None);
        };
        let matte = mattes.of(frame.sequence, &frame.metadata, turn)?;
        let picture = (frame.layout().width(), frame.layout().height());
        // A frame that stands in for an unreadable file has no size of its own.
        if !frame.metadata.stands_in && (matte.width, matte.height) != picture {
            return Err(RegionError::Size {
                name: mattes.name().to_owned(),
                matte: turn.shown_size((matte.width, matte.height)),
                picture: turn.shown_size(picture),
            });
        }
        Ok(Some(matte))
    }

    /// Submits one window to the inner engine.
    fn send(&mut self, window: &Area, frame: &Frame) -> Result<(), EngineError> {
        while self.flying >= self.depth && self.receive()? {}
        let layout = Layout::new(frame.format(), window.width, window.height, ALIGNMENT)?;
        let mut part = Frame::new(layout, free(&self.before)?)?;
        cut(&self.threads, frame, window, &mut part);
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

    /// Waits for the oldest window and pastes it; false if there is none.
    fn receive(&mut self) -> Result<bool, EngineError> {
        let Some(part) = self.inner.collect()? else {
            return Ok(false);
        };
        self.flying = self.flying.saturating_sub(1);
        let Some(pending) = self.waiting.iter_mut().find(|p| p.done < p.groups.len()) else {
            return Ok(false);
        };
        pending.paste_next(&self.threads, &part, self.outside);
        Ok(true)
    }
}

/// The region `region` of a frame in which it is at `at`, of which `area` lies in the picture.
fn member(region: &Region, at: &Rectangle, area: Area) -> Member {
    let size = |length: i64| usize::try_from(length).unwrap_or(usize::MAX);
    let (first, last) = (region.first, region.last);
    Member {
        area,
        size: (size(at.width), size(at.height)),
        moves: (first.x, first.y) != (last.x, last.y),
        grows: (first.width, first.height) != (last.width, last.height),
    }
}

impl Pending {
    /// Pastes the next window, which is `part` now, into the picture.
    fn paste_next(&mut self, threads: &Threads, part: &Frame, outside: bool) {
        let groups = Arc::clone(&self.groups);
        let (group, earlier) = (&groups[self.done], &groups[..self.done]);
        self.done += 1;
        let (matte, areas) = (self.matte.as_deref(), &self.areas);
        let result = &mut self.result;
        let from = (part, &group.window);
        if outside {
            let whole = [group.window];
            paste(threads, from, result, Share::Whole, |shift, y| {
                let regions = spans::covered(areas.iter(), shift, y);
                spans::without(&spans::covered(whole.iter(), shift, y), &regions)
            });
            if let Some(matte) = matte {
                paste(threads, from, result, Share::Rest(matte), |shift, y| {
                    spans::covered(areas.iter(), shift, y)
                });
            }
            return;
        }
        let own = |groups: &[Group]| -> Vec<Area> {
            groups.iter().flat_map(|g| &g.members).map(|m| m.area).collect()
        };
        let (own, mut others) = (own(std::slice::from_ref(group)), own(earlier));
        others.retain(|area| area.is_near(&group.window));
        let share = matte.map_or(Share::Whole, Share::Matte);
        paste(threads, from, result, share, |shift, y| {
            let others = spans::covered(others.iter(), shift, y);
            spans::without(&spans::covered(own.iter(), shift, y), &others)
        });
    }
}

impl Engine for Partial {
    fn inner(&self) -> Option<&dyn Engine> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Engine> {
        Some(&mut *self.inner)
    }

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

    fn own_bytes(&self, frame: &Layout) -> u128 {
        let windows = (self.before.capacity() + self.after.capacity()) as u128 * self.window_bytes(frame);
        let pixels = frame.width() as u128 * frame.height() as u128;
        let mattes = self.mattes.as_ref().map_or(0, |_| self.depth as u128 + 1);
        let weights = mattes * pixels * size_of::<u16>() as u128;
        windows + weights + self.inner.own_bytes(frame)
    }

    fn expect(&mut self, frame: &Layout, colour: &Colour) {
        if let Some(window) = self.expected_window(frame) {
            self.inner.expect(&window, colour);
        }
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
        cut(&self.threads, &input, &Area::whole(width, height), &mut result);
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

    fn remarks(&mut self, whole: bool) -> Remarks {
        let mut remarks = self.inner.remarks(whole);
        if let Some(FramesOutside {
            region,
            first,
            frames,
        }) = &self.frames_outside
        {
            let times = match frames {
                1 => format!("in frame {first}"),
                _ => format!("{frames} times, first in frame {first}"),
            };
            let text = format!("the region {region} lay wholly outside of the picture {times}");
            remarks.warn([text]);
        }
        if let Some((count, first)) = self.timeline.unmet(self.read).filter(|_| whole) {
            remarks.warn([match count {
                1 => format!("no frame was shown in the time of the region {first}"),
                _ => format!("no frame was shown in the time of {count} regions, the first {first}"),
            }]);
        } else if whole && self.timeline.met_none() {
            let text = "all regions are before or after what was read of the input: none was there";
            remarks.notes.push(text.to_owned());
        }
        if let Some(mattes) = &mut self.mattes {
            remarks.append(mattes.remarks(whole));
        }
        remarks
    }
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
