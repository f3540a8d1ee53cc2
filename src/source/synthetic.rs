//! Moving pseudo-random detail that costs nothing, so that engines are measured at their own rate.
//!
//! ```text
//! painting  ----------------      larger than a frame, made before the first frame is read
//!              |window 1|         picture k is a window into it that wanders with k
//!
//! frame     0 1 2 .. 7 8 9 ..     pictures are made when the first frame is read, in memory of the engine's
//! picture   0 1 2 .. 7 0 1 ..     kind (page-locked for a card), and lent to frames in turn
//! ```
//!
//! With `fresh` there are no pictures to lend: each frame is a copy of its own window. Either way a frame
//! depends on the specification and its number alone.

use super::uncompressed::raw::{RawSpec, RawSpecError, metadata};
use super::{AnySource, IndexedSource, SourceError, StreamInfo};
use crate::frame::{Allocator, Buffer, Frame, Layout, Memory, Pageable, Shared};
use std::fmt;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// The window's steps are multiples of this many pixels, so that they are whole in subsampled chroma too.
const STEP: usize = 4;
/// Places of the window across and down. They have no common divisor, so that all their pairs are visited.
const PLACES: (usize, usize) = (17, 13);

/// Pictures that are lent in turn: no fewer and no more, and in between as many as take [`TOGETHER`].
const PICTURES: (usize, usize) = (8, 32);
/// Bytes of all pictures: more than many processors keep in a cache, and page-locked in little time.
const TOGETHER: usize = 64 << 20;

/// What to make: `synthetic:WxH:format:fps:frames`, then perhaps `:fresh` and `:seed=N`; 0 frames stand for
/// endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntheticSpec {
    /// Size, format and rate.
    pub raw: RawSpec,
    /// How many frames; `None` for endless.
    pub frames: Option<u64>,
    /// Make each frame anew instead of lending a few pictures in turn.
    pub fresh: bool,
    /// Chooses the picture.
    pub seed: u64,
}

/// A specification that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntheticSpecError {
    /// Parts are missing or too many.
    #[error(
        "'{0}' is no synthetic source; write synthetic:WIDTHxHEIGHT:FORMAT:FPS:FRAMES, such as \
         synthetic:1920x1080:yuv420p:30:300 (0 frames never end), and perhaps :fresh and :seed=N"
    )]
    Shape(String),
    /// Size, format or rate.
    #[error(transparent)]
    Geometry(#[from] RawSpecError),
    /// The count or seed is no number.
    #[error("'{0}' is no whole number of frames (0 for endless), nor fresh, nor seed=N")]
    Number(String),
}

impl FromStr for SyntheticSpec {
    type Err = SyntheticSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = || SyntheticSpecError::Shape(text.to_owned());
        let number = |word: &str| {
            word.parse::<u64>()
                .map_err(|_| SyntheticSpecError::Number(word.to_owned()))
        };
        let (mut fresh, mut seed) = (false, 1);
        let mut parts = Vec::new();
        for part in text.strip_prefix("synthetic:").unwrap_or(text).split(':') {
            if part == "fresh" {
                fresh = true;
            } else if let Some(value) = part.strip_prefix("seed=") {
                seed = number(value)?;
            } else {
                parts.push(part);
            }
        }
        let &[size, format, rate, frames] = &parts[..] else {
            return Err(shape());
        };
        if size.is_empty() {
            return Err(shape());
        }
        Ok(SyntheticSpec {
            raw: RawSpec::from_parts(size, Some(format), Some(rate))?,
            frames: Some(number(frames)?).filter(|&n| n > 0),
            fresh,
            seed,
        })
    }
}

impl fmt::Display for SyntheticSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let geometry = self.raw.to_string();
        let geometry = geometry.trim_start_matches("raw:");
        write!(f, "synthetic:{geometry}:{}", self.frames.unwrap_or(0))?;
        if self.fresh {
            f.write_str(":fresh")?;
        }
        if self.seed != 1 {
            write!(f, ":seed={}", self.seed)?;
        }
        Ok(())
    }
}

impl SyntheticSpec {
    /// How many pictures its frames take turns with; 0 if each frame is made anew.
    fn pictures(&self) -> usize {
        if self.fresh {
            return 0;
        }
        let most = self
            .frames
            .map_or(PICTURES.1, |frames| frames.min(PICTURES.1 as u64) as usize);
        let together = TOGETHER / self.raw.layout.size().max(1);
        together.clamp(PICTURES.0, PICTURES.1).min(most)
    }
}

/// Opens the generator.
pub fn open(spec: &SyntheticSpec) -> Result<AnySource, SourceError> {
    let pictures = spec.pictures();
    let info = spec
        .raw
        .info(spec.frames, format!("moving pseudo-random detail, {spec}"));
    Ok(AnySource::Indexed(Arc::new(Synthetic {
        spec: *spec,
        whole: LargePicture::whole(&spec.raw.layout)?,
        large: OnceLock::new(),
        painting: Mutex::new(()),
        info: StreamInfo { pictures, ..info },
        frames: spec.frames.unwrap_or(u64::MAX),
        pictures: OnceLock::new(),
    })))
}

/// The large picture that frames are windows of.
struct LargePicture {
    whole: Frame,
    layout: Layout,
}

impl LargePicture {
    /// The layout of one that frames of `layout` are windows of.
    fn whole(layout: &Layout) -> Result<Layout, SourceError> {
        let geometry = |cause| SourceError::Layout {
            path: "synthetic".to_owned(),
            cause,
        };
        Layout::new(
            layout.format(),
            layout.width() + STEP * (PLACES.0 - 1),
            layout.height() + STEP * (PLACES.1 - 1),
            1,
        )
        .map_err(geometry)
    }

    /// One of the layout `whole`, painted.
    fn new(spec: &SyntheticSpec, whole: Layout) -> Result<LargePicture, SourceError> {
        let layout = spec.raw.layout;
        let memory: Box<dyn Memory> = Pageable.allocate(whole.size())?;
        let mut whole = Frame::new(whole, Buffer::unpooled(memory))?;
        let mut lane = 0;
        for index in 0..whole.layout().planes().len() {
            let plane = whole.layout().planes()[index];
            for channel in 0..plane.channels {
                paint(
                    &mut whole,
                    index,
                    channel,
                    spec.seed.wrapping_mul(64).wrapping_add(lane),
                );
                lane += 1;
            }
        }
        Ok(LargePicture { whole, layout })
    }

    /// Frame `index`, in the given buffer.
    fn window(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let mut frame = Frame::new(self.layout, buffer)?;
        // Strides of 3 and 5 places a frame: fast motion, and every place is reached.
        let x = STEP * (index.wrapping_mul(3) % PLACES.0 as u64) as usize;
        let y = STEP * (index.wrapping_mul(5) % PLACES.1 as u64) as usize;
        for (plane, pf) in self.layout.format().planes().iter().enumerate() {
            let (left, top) = (x >> pf.log2_x, y >> pf.log2_y);
            let start = left * pf.channels.len() * self.layout.format().bytes_per_sample();
            for row in 0..self.layout.planes()[plane].height {
                let target = frame.row_mut(plane, row);
                let source = self.whole.row(plane, top + row);
                target.copy_from_slice(&source[start..start + target.len()]);
            }
        }
        Ok(frame)
    }
}

/// Fills one component with noise on grids of 64, 16 and 4 pixels, interpolated, and a little for each pixel:
/// shapes, edges, texture and grain over the whole range of values.
fn paint(frame: &mut Frame, index: usize, channel: usize, lane: u64) {
    let plane = frame.layout().planes()[index];
    let format = frame.format();
    let (max, shift, wide) = (
        i64::from(format.max_value()),
        format.shift(),
        format.bytes_per_sample() == 2,
    );
    let is_float = format.is_float();
    let mut coarse = vec![0; plane.width];
    for y in 0..plane.height {
        coarse.fill(0);
        for (field, log2, weight) in [(0, 6, 5), (0x100, 4, 2), (0x200, 2, 1)] {
            add_smooth(&mut coarse, lane ^ field, y, log2, weight);
        }
        for (x, &coarse) in coarse.iter().enumerate() {
            let grain = i64::from(noise(lane ^ 0x300, x, y) >> 12) - 8;
            // The sum of three smooth fields keeps to the middle; stretched, it reaches both ends and is
            // clipped there.
            let level = (coarse / 8 - 32768) * 7 / 4 + 32768 + grain * 256;
            if is_float {
                let part = level.clamp(0, 65535) as f32 / 65535.0;
                frame.set_float(index, x, y, channel, part);
                continue;
            }
            let row = frame.row_mut(index, y);
            let sample = (level.clamp(0, 65535) * max / 65535) as u16;
            let at = x * plane.channels + channel;
            if wide {
                row[2 * at..2 * at + 2].copy_from_slice(&(sample << shift).to_le_bytes());
            } else {
                row[at] = sample as u8;
            }
        }
    }
}

/// Adds `weight` times row `y` of noise on a grid of `1 << log2` pixels, bilinearly interpolated, 0 to 65535.
fn add_smooth(levels: &mut [i64], lane: u64, y: usize, log2: u32, weight: i64) {
    let size = 1_usize << log2;
    let (cell, below) = (y >> log2, (y & (size - 1)) as i64);
    // A column of the grid, between its rows above and below.
    let grid = |column| {
        i64::from(noise(lane, column, cell)) * (size as i64 - below)
            + i64::from(noise(lane, column, cell + 1)) * below
    };
    let mut left = grid(0);
    for (column, levels) in levels.chunks_mut(size).enumerate() {
        let right = grid(column + 1);
        for (across, level) in levels.iter_mut().enumerate() {
            let sum = left * (size - across) as i64 + right * across as i64;
            *level += weight * (sum >> (2 * log2));
        }
        left = right;
    }
}

/// A pseudo-random 16-bit number that depends on its arguments alone.
fn noise(lane: u64, x: usize, y: usize) -> u16 {
    let mut z = lane
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((x as u64).wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add((y as u64).wrapping_mul(0x8cb9_2ba7_2f3d_8dd7));
    z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 48) as u16
}

struct Synthetic {
    spec: SyntheticSpec,
    /// Layout of the large picture.
    whole: Layout,
    /// Painted once the run's limits allow its frames.
    large: OnceLock<LargePicture>,
    /// Held while it is painted, so that this is done once.
    painting: Mutex<()>,
    info: StreamInfo,
    frames: u64,
    /// Made when the first frame is read, which brings the kind of memory along.
    pictures: OnceLock<Vec<Shared>>,
}

impl Synthetic {
    /// The large picture, which the first call paints.
    fn large(&self) -> Result<&LargePicture, SourceError> {
        if let Some(large) = self.large.get() {
            return Ok(large);
        }
        let _painting = self.painting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(large) = self.large.get() {
            return Ok(large);
        }
        let painted = LargePicture::new(&self.spec, self.whole)?;
        Ok(self.large.get_or_init(|| painted))
    }

    /// The pictures, in memory of `buffer`'s kind. A thread for each core makes its share: page-locking takes
    /// longer than painting.
    fn make_pictures(&self, buffer: &Buffer) -> Result<Vec<Shared>, SourceError> {
        let (large, count) = (self.large()?, self.info.pictures);
        let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
        let make = |index: usize| {
            let block = buffer.another(large.layout.size())?;
            let picture = large.window(index as u64, block)?;
            Ok(Shared::new(picture.into_parts().1))
        };
        let share = |first: usize| -> Result<Vec<Shared>, SourceError> {
            (first..count).step_by(threads).map(make).collect()
        };
        let shares = thread::scope(|scope| {
            let start = |first| thread::Builder::new().spawn_scoped(scope, move || share(first));
            let others: Vec<_> = (1..threads).map(|first| (first, start(first))).collect();
            let mut shares = vec![share(0)];
            shares.extend(others.into_iter().map(|(first, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // There are no more threads to be had; this one does it then.
                Err(_) => share(first),
            }));
            shares.into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        let picture = |index: usize| shares[index % threads][index / threads].clone();
        Ok((0..count).map(picture).collect())
    }

    /// The picture that frame `index` shows.
    fn picture(&self, index: u64, buffer: &Buffer) -> Result<&Shared, SourceError> {
        let pictures = match self.pictures.get() {
            Some(pictures) => pictures,
            None => {
                let made = self.make_pictures(buffer)?;
                self.pictures.get_or_init(|| made)
            }
        };
        Ok(&pictures[(index % pictures.len() as u64) as usize])
    }
}

impl IndexedSource for Synthetic {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.frames
    }

    fn prepare(&self) -> Result<(), SourceError> {
        self.large().map(|_| ())
    }

    fn read(&self, index: u64, mut buffer: Buffer) -> Result<Frame, SourceError> {
        let mut frame = if self.info.pictures == 0 {
            self.large()?.window(index, buffer)?
        } else {
            self.picture(index, &buffer)?.lend_to(&mut buffer);
            Frame::new(self.spec.raw.layout, buffer)?
        };
        frame.sequence = index;
        frame.metadata = metadata(index);
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FramePool, PixelFormat};

    fn indexed(text: &str) -> Arc<dyn IndexedSource> {
        match open(&text.parse().unwrap()).unwrap() {
            AnySource::Indexed(source) => source,
            AnySource::Stream(_) => panic!("{text} is read by one thread"),
        }
    }

    fn buffer() -> Buffer {
        Buffer::unpooled(Box::new(Vec::new()))
    }

    #[test]
    fn specifications_are_read_and_printed_again() {
        for text in [
            "synthetic:64x48:rgb24:30:12",
            "synthetic:64x48:gray:30000/1001:0:fresh",
            "synthetic:1x1:p010le:25:3:fresh:seed=9",
        ] {
            assert_eq!(text.parse::<SyntheticSpec>().unwrap().to_string(), text);
        }
        let endless: SyntheticSpec = "synthetic:8x8:yuv420p:25:0".parse().unwrap();
        assert_eq!(endless.frames, None);
        // What was forgotten is not guessed, least of all that there is no end.
        for text in [
            "synthetic:",
            "8x8",
            "8x8:gray",
            "8x8:gray:25",
            "8x8:gray:25:fresh",
            "8x8:gray:25:x",
            "8x8:gray:25:1:2",
            "8:gray:25:1",
            "8x8:nope:25:1",
            "8x8:gray:25:1:seed=x",
        ] {
            assert!(text.parse::<SyntheticSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_frame_depends_on_its_number_and_the_seed_alone() {
        let (a, b) = (
            indexed("33x17:yuv420p10le:25:9"),
            indexed("33x17:yuv420p10le:25:9"),
        );
        let other = indexed("33x17:yuv420p10le:25:9:seed=2");
        let mut dirty = buffer();
        dirty.fit(1 << 16).unwrap();
        dirty.bytes_mut().fill(0xaa);
        let frame = a.read(5, dirty).unwrap();
        assert_eq!(frame.bytes(), b.read(5, buffer()).unwrap().bytes());
        assert_ne!(frame.bytes(), a.read(6, buffer()).unwrap().bytes());
        assert_ne!(frame.bytes(), other.read(5, buffer()).unwrap().bytes());
        assert_eq!(a.len(), 9);
    }

    #[test]
    fn every_format_is_filled_over_its_whole_range() {
        for format in PixelFormat::integers() {
            let source = indexed(&format!("160x96:{format}:25:1"));
            let frame = source.read(0, buffer()).unwrap();
            for (index, plane) in frame.layout().planes().iter().enumerate() {
                for channel in 0..plane.channels {
                    let samples = (0..plane.height)
                        .flat_map(|y| (0..plane.width).map(move |x| (x, y)))
                        .map(|(x, y)| u32::from(frame.sample(index, x, y, channel)));
                    let (low, high) = samples.fold((u32::MAX, 0), |(l, h), s| (l.min(s), h.max(s)));
                    assert!(high <= format.max_value(), "{format}");
                    assert!(
                        high - low > format.max_value() / 4,
                        "{format} plane {index}: {low} to {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn floating_point_formats_are_filled_from_black_to_white() {
        for format in PixelFormat::floats().chain(PixelFormat::float_channels(32, 5)) {
            let source = indexed(&format!("96x64:{format}:25:1"));
            let frame = source.read(0, buffer()).unwrap();
            for (index, plane) in frame.layout().planes().iter().enumerate() {
                for channel in 0..plane.channels {
                    let samples = (0..96 * 64).map(|at| frame.float(index, at % 96, at / 96, channel));
                    let (low, high) = samples.fold((f32::MAX, f32::MIN), |(l, h), s| (l.min(s), h.max(s)));
                    assert!(
                        low >= 0.0 && high <= 1.0 && high - low > 0.25,
                        "{format}: {low} to {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn pictures_are_made_once_and_lent_in_turn() {
        let (lent, fresh) = (indexed("64x48:rgb24:25:100"), indexed("64x48:rgb24:25:100:fresh"));
        let pool = FramePool::new(64, Arc::new(Pageable));
        let read =
            |source: &Arc<dyn IndexedSource>, index| source.read(index, pool.try_take().unwrap()).unwrap();
        let size = 64 * 48 * 3;
        let count = lent.info().pictures as u64;
        assert_eq!((count, fresh.info().pictures), (32, 0));
        let first: Vec<Frame> = (0..count).map(|index| read(&lent, index)).collect();
        assert_eq!(pool.allocated_bytes(), 32 * size);
        for (index, frame) in first.iter().enumerate() {
            let expected = fresh.read(index as u64, buffer()).unwrap();
            assert_eq!(frame.bytes(), expected.bytes(), "picture {index}");
            assert!(index == 0 || frame.bytes() != first[index - 1].bytes());
        }
        // The next round, and one far away, are the same memory.
        for (index, place) in [(count, 0), (count + 5, 5), (7 * count + 31, 31)] {
            let frame = read(&lent, index);
            assert_eq!(frame.bytes().as_ptr(), first[place].bytes().as_ptr());
            assert_eq!((frame.sequence, frame.metadata.pts), (index, Some(index as i64)));
        }
        assert_eq!(pool.allocated_bytes(), 32 * size);
        // Whoever changes a frame changes no other.
        let mut changed = read(&lent, count);
        changed.bytes_mut().fill(0);
        assert_eq!(read(&lent, 0).bytes(), first[0].bytes());
        drop((first, changed, lent));
        assert_eq!(pool.allocated_bytes(), 0);
    }

    #[test]
    fn the_number_of_pictures_follows_from_size_and_frames() {
        let pictures = |text: &str| indexed(text).info().pictures;
        assert_eq!(pictures("3840x2160:rgb24:30:8000"), 8);
        assert_eq!(pictures("1920x1080:rgb24:30:0"), 10);
        assert_eq!(pictures("64x48:gray:25:0"), 32);
        assert_eq!(pictures("64x48:gray:25:3"), 3);
    }
}
