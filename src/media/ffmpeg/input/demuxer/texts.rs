//! Texts, chapters and programs of a container.
#![allow(unsafe_code)]

use super::{Demuxer, Medium, NANOSECOND, StreamFacts};
use crate::frame::Rational;
use crate::media::ffmpeg::AvError;
use crate::media::ffmpeg::text::{c_string, rational, rescale, text};
use ffmpeg_next::ffi;
use std::ffi::{c_int, c_uint};
use std::ptr;

/// A chapter of what is wanted of an input.
#[derive(Debug)]
pub(crate) struct Chapter {
    /// Seconds from the beginning.
    pub(crate) begins: f64,
    /// Seconds of the unit in which the file says that.
    pub(crate) tick: f64,
    pub(crate) texts: Vec<(String, String)>,
}

impl Demuxer {
    /// True for the text track of an MP4 file's chapters, which a muxer writes anew from the chapters,
    /// whether any of them is in what is wanted or not.
    pub(crate) fn is_of_chapters(&self, facts: &StreamFacts) -> bool {
        let has_chapters = self.context().nb_chapters > 0;
        facts.medium == Medium::Data && &facts.tag.to_le_bytes() == b"text" && has_chapters
    }

    /// The chapters in what is wanted of it.
    pub(crate) fn chapters(&self) -> Vec<Chapter> {
        let context = self.context();
        let wanted = |index: usize| {
            // SAFETY: `chapters` holds `nb_chapters` valid pointers.
            let chapter = unsafe { &**context.chapters.add(index) };
            let base = rational(chapter.time_base);
            let (begin, _) = self.chapter((chapter.start, chapter.end), base)?;
            Some(Chapter {
                begins: begin as f64 * base.to_f64(),
                tick: base.to_f64(),
                texts: entries(chapter.metadata),
            })
        };
        (0..context.nb_chapters as usize).filter_map(wanted).collect()
    }

    /// The texts that belong to the whole file, as names and values.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        entries(self.context().metadata)
    }

    /// Replaces a text that belongs to the whole file.
    pub(crate) fn set_text(&mut self, name: &str, value: &str) -> Result<(), AvError> {
        let (name, value) = (c_string(name.as_bytes())?, c_string(value.as_bytes())?);
        // SAFETY: the dictionary belongs to this context, which is borrowed mutably; FFmpeg copies both
        // strings.
        let code = unsafe {
            let texts = &mut (*self.as_ptr()).metadata;
            ffi::av_dict_set(texts, name.as_ptr(), value.as_ptr(), 0)
        };
        AvError::check(code).map(|_| ())
    }

    /// True if a chapter that begins and ends at these nanoseconds is in what is wanted.
    pub(crate) fn wants_chapter(&self, span: (i64, i64)) -> bool {
        self.chapter(span, NANOSECOND).is_some()
    }

    /// The texts of stream `index`.
    pub(crate) fn stream_texts(&self, index: usize) -> Vec<(String, String)> {
        // SAFETY: the stream is valid.
        self.stream_ptr(index)
            .map_or_else(Vec::new, |stream| entries(unsafe { (*stream).metadata }))
    }

    /// The texts of each program.
    pub(crate) fn program_texts(&self) -> Vec<Vec<(String, String)>> {
        let context = self.context();
        (0..context.nb_programs as usize)
            // SAFETY: `programs` holds `nb_programs` valid pointers.
            .map(|index| entries(unsafe { (**context.programs.add(index)).metadata }))
            .collect()
    }

    /// The streams of program `index`, of which there are `nb_programs`, by the table that was read last.
    fn program_streams(&self, index: usize) -> &[c_uint] {
        // SAFETY: `programs` holds `nb_programs` valid pointers, and `stream_index` as many numbers as the
        // program says.
        unsafe {
            let program = &**self.context().programs.add(index);
            match program.nb_stream_indexes {
                0 => &[],
                count => std::slice::from_raw_parts(program.stream_index, count as usize),
            }
        }
    }

    /// True if stream `other` is in a program now, and stream `own` in none any more.
    pub(crate) fn is_replaced(&self, own: usize, other: usize) -> bool {
        let programs = 0..self.context().nb_programs as usize;
        let mut streams = programs.flat_map(|index| self.program_streams(index));
        let is_other = |stream: &c_uint| *stream as usize == other;
        let has_other = streams.clone().any(is_other);
        has_other && !streams.any(|&stream| stream as usize == own)
    }

    /// The texts of each program that one of `streams` is in.
    pub(crate) fn program_texts_of(&self, streams: &[usize]) -> Vec<Vec<(String, String)>> {
        let is_wanted = |index: usize| {
            let own = self.program_streams(index);
            // An outline does not know them.
            own.is_empty() || own.iter().any(|&stream| streams.contains(&(stream as usize)))
        };
        let all = self.program_texts().into_iter().enumerate();
        all.filter(|(index, _)| is_wanted(*index))
            .map(|(_, texts)| texts)
            .collect()
    }

    /// The texts of the file, of its streams and of its programs.
    pub(crate) fn all_texts(&self) -> Vec<(String, String)> {
        let streams = (0..self.stream_count()).flat_map(|index| self.stream_texts(index));
        let programs = self.program_texts().into_iter().flatten();
        self.texts().into_iter().chain(streams).chain(programs).collect()
    }

    /// FFmpeg's names of what stream `index` is marked as, such as "comment" or "forced".
    pub(crate) fn marks(&self, index: usize) -> Vec<String> {
        // SAFETY: the stream is valid.
        let set = self.stream_ptr(index).map_or(0, |s| unsafe { (*s).disposition });
        let bits = (0..31).map(|bit| set & (1 << bit)).filter(|&bit| bit != 0);
        // SAFETY: the names are static; null means that a bit has none.
        bits.map(|bit| text(unsafe { ffi::av_disposition_to_string(bit) }))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// The part of a chapter from `start` to `end`, in ticks of `base`, that is wanted, on the clock; `None`
    /// if it is outside.
    pub(in crate::media::ffmpeg) fn chapter(
        &self,
        (start, end): (i64, i64),
        base: Rational,
    ) -> Option<(i64, i64)> {
        let ticks = |nanos| rescale(nanos, NANOSECOND, base);
        let (from, to) = (ticks(self.wanted.0), self.wanted.1.map(ticks));
        if from > 0 && end <= from || to.is_some_and(|to| start >= to) {
            return None;
        }
        let start = if from > 0 { start.max(from) } else { start };
        Some((start - from, to.map_or(end, |to| end.min(to)) - from))
    }
}

/// What a dictionary holds.
fn entries(dictionary: *const ffi::AVDictionary) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut entry: *const ffi::AVDictionaryEntry = ptr::null();
    loop {
        // SAFETY: null is an empty dictionary; an empty name with this flag steps from one entry to the next.
        entry = unsafe {
            ffi::av_dict_get(
                dictionary,
                c"".as_ptr(),
                entry,
                ffi::AV_DICT_IGNORE_SUFFIX as c_int,
            )
        };
        // SAFETY: an entry is valid as long as its dictionary is not changed.
        let Some(found_entry) = (unsafe { entry.as_ref() }) else {
            return found;
        };
        found.push((text(found_entry.key), text(found_entry.value)));
    }
}
