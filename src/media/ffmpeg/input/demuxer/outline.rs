//! What an input says without its packets: streams, texts, chapters and programs, for those who come when a
//! pipe has been read.
#![allow(unsafe_code)]

use super::{Demuxer, Reading, allocate};
use crate::media::ffmpeg::AvError;
use crate::media::ffmpeg::input::clock::{Clock, ClockKind};
use crate::media::ffmpeg::text::rational;
use ffmpeg_next::ffi;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of a GIF file that are looked through.
const MOST_SEARCHED: usize = 32 << 20;

/// What an input that can be read only once says of itself. Clones share it.
#[derive(Clone)]
pub(crate) struct Outline {
    demuxer: Arc<Mutex<Demuxer>>,
    head: Arc<[u8]>,
}

impl Outline {
    /// The outline of what `demuxer` reads, as far as it is known by now.
    pub(crate) fn of(demuxer: &Demuxer) -> Result<Outline, AvError> {
        let kept = demuxer.kept();
        Ok(Outline {
            demuxer: Arc::new(Mutex::new(demuxer.outline()?)),
            head: kept[..kept.len().min(MOST_SEARCHED)].into(),
        })
    }

    /// A demuxer that says the same and has no packets.
    pub(crate) fn demuxer(&self) -> Result<Demuxer, AvError> {
        let demuxer = self.demuxer.lock().unwrap_or_else(PoisonError::into_inner);
        demuxer.outline()
    }

    /// The beginning of a GIF file, or all of it; empty for other inputs.
    #[cfg_attr(not(feature = "images"), expect(dead_code, reason = "animations ask for it"))]
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }
}

impl fmt::Debug for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outline")
    }
}

impl PartialEq for Outline {
    fn eq(&self, other: &Outline) -> bool {
        Arc::ptr_eq(&self.demuxer, &other.demuxer)
    }
}

impl Eq for Outline {}

impl Demuxer {
    /// What is known of the input by now, as a demuxer that has no packets and must not be read.
    fn outline(&self) -> Result<Demuxer, AvError> {
        let outline = Demuxer {
            context: allocate().map_err(|_| AvError::no_memory())?,
            clock: Clock::new(ClockKind::Steady, None),
            format: self.format.clone(),
            source: Reading::Own,
            gate: None,
            max_pixels: None,
            too_large: Vec::new(),
            indexed: Vec::new(),
            listed: Vec::new(),
            passed_over: Vec::new(),
            unread_subtitles: self.unread_subtitles.clone(),
            complaint: None,
            faults: Vec::new(),
            wanted: (0, None),
        };
        // SAFETY: the context was just made, and nothing else has it.
        copy(self, unsafe { &mut *outline.context })?;
        Ok(outline)
    }
}

/// Copies what `from` says into `to`, a context of an input that is empty and never read.
fn copy(from: &Demuxer, to: &mut ffi::AVFormatContext) -> Result<(), AvError> {
    // SAFETY: `from` is open, and its arrays hold as many valid pointers as it says; all that is allocated
    // here by FFmpeg belongs to the new context at once.
    unsafe {
        let context = &*from.as_ptr();
        AvError::check(ffi::av_dict_copy(&mut to.metadata, context.metadata, 0))?;
        for index in 0..context.nb_streams as usize {
            let source = &**context.streams.add(index);
            let stream = ffi::avformat_new_stream(to, ptr::null()).as_mut();
            let stream = stream.ok_or_else(AvError::no_memory)?;
            AvError::check(ffi::avcodec_parameters_copy(stream.codecpar, source.codecpar))?;
            AvError::check(ffi::av_dict_copy(&mut stream.metadata, source.metadata, 0))?;
            stream.id = source.id;
            stream.time_base = source.time_base;
            stream.start_time = source.start_time;
            stream.disposition = source.disposition;
        }
        for index in 0..context.nb_programs as usize {
            let source = &**context.programs.add(index);
            let program = ffi::av_new_program(to, source.id).as_mut();
            let program = program.ok_or_else(AvError::no_memory)?;
            AvError::check(ffi::av_dict_copy(&mut program.metadata, source.metadata, 0))?;
        }
    }
    copy_chapters(from, to)
}

/// Gives `to`, which has none, the chapters in what is wanted of `demuxer`.
pub(in crate::media::ffmpeg) fn copy_chapters(
    demuxer: &Demuxer,
    to: &mut ffi::AVFormatContext,
) -> Result<(), AvError> {
    // SAFETY: FFmpeg frees array, chapters and texts with the context, so all are allocated by FFmpeg; the
    // count grows only after its entry is in place.
    unsafe {
        let from = &*demuxer.as_ptr();
        let count = from.nb_chapters as usize;
        if count == 0 {
            return Ok(());
        }
        let array = ffi::av_calloc(count, size_of::<*mut ffi::AVChapter>()).cast::<*mut ffi::AVChapter>();
        if array.is_null() {
            return Err(AvError::no_memory());
        }
        to.chapters = array;
        for index in 0..count {
            let source = &**from.chapters.add(index);
            let base = rational(source.time_base);
            let Some((start, end)) = demuxer.chapter((source.start, source.end), base) else {
                continue;
            };
            let chapter = ffi::av_mallocz(size_of::<ffi::AVChapter>()).cast::<ffi::AVChapter>();
            if chapter.is_null() {
                return Err(AvError::no_memory());
            }
            *array.add(to.nb_chapters as usize) = chapter;
            to.nb_chapters += 1;
            (*chapter).id = source.id;
            (*chapter).time_base = source.time_base;
            ((*chapter).start, (*chapter).end) = (start, end);
            AvError::check(ffi::av_dict_copy(&mut (*chapter).metadata, source.metadata, 0))?;
        }
    }
    Ok(())
}
