//! Which channels sound has: their number, and the speakers that they are for.
#![allow(unsafe_code)]

use crate::media::ffmpeg::text::text;
use crate::media::ffmpeg::{Demuxer, Medium};
use ffmpeg_next::ffi;
use std::ffi::{c_char, c_int};

/// Which channels there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channels {
    pub(super) count: c_int,
    /// One bit a speaker, 0 if the speakers are not named.
    mask: u64,
}

impl Channels {
    /// Reads an FFmpeg layout; layouts that a mask cannot say lose the names of their speakers.
    pub(super) fn read(layout: &ffi::AVChannelLayout) -> Channels {
        let is_native = layout.order == ffi::AVChannelOrder::AV_CHANNEL_ORDER_NATIVE;
        Channels {
            count: layout.nb_channels,
            // SAFETY: a layout of the native order holds a mask.
            mask: if is_native { unsafe { layout.u.mask } } else { 0 },
        }
    }

    /// Those of stream `index`.
    pub(super) fn of(demuxer: &Demuxer, index: usize) -> Option<Channels> {
        let stream = demuxer.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the demuxer.
        Some(Channels::read(unsafe { &(*(*stream).codecpar).ch_layout }))
    }

    /// The same with the names that FFmpeg takes for so many, where they have none.
    pub(super) fn named(self) -> Channels {
        match self.mask {
            0 => Channels::usual(self.count),
            _ => self,
        }
    }

    /// The layout that FFmpeg takes for so many channels.
    pub(super) fn usual(count: c_int) -> Channels {
        let mut channels = Channels { count, mask: 0 };
        let mut layout = channels.layout();
        channels = Channels::read(&layout);
        // SAFETY: the layout is valid.
        unsafe { ffi::av_channel_layout_uninit(&mut layout) };
        channels
    }

    /// True if it is known which speakers they are for.
    pub(super) fn is_named(self) -> bool {
        self.mask != 0
    }

    /// The layout for FFmpeg; it has no memory of its own.
    pub(super) fn layout(self) -> ffi::AVChannelLayout {
        // SAFETY: an all-zero layout is valid and empty; both calls fill it.
        unsafe {
            let mut layout: ffi::AVChannelLayout = std::mem::zeroed();
            if self.mask == 0 || ffi::av_channel_layout_from_mask(&mut layout, self.mask) < 0 {
                ffi::av_channel_layout_default(&mut layout, self.count);
            }
            layout
        }
    }

    /// FFmpeg's word for them, such as "5.1(side)".
    pub(super) fn word(self) -> String {
        let mut word = [0 as c_char; 64];
        // SAFETY: the layout is valid, and the text ends with a zero within the buffer.
        unsafe { ffi::av_channel_layout_describe(&self.layout(), word.as_mut_ptr(), word.len()) };
        text(word.as_ptr())
    }

    /// True if `other` has the same speakers, or as many where they are not named. Those at the sides may be
    /// called those at the back where there is one pair of them.
    pub(super) fn are_in(self, other: Channels) -> bool {
        const BACK: u64 = 0x30;
        const SIDE: u64 = 0x600;
        let named = |mask: u64| match mask & (BACK | SIDE) {
            SIDE => mask & !SIDE | BACK,
            _ => mask,
        };
        let (own, others) = (named(self.mask), named(other.mask));
        self.count <= other.count && (own == 0 || others == 0 || own & !others == 0)
    }
}

/// These channels, and those for which readers take the sound of the file `after`, in words, if they are
/// others.
pub(super) fn taken_for(own: Channels, after: &Demuxer) -> Option<(String, String)> {
    let is_sound = |at: &usize| after.stream(*at).map(|facts| facts.medium) == Some(Medium::Audio);
    let found = Channels::of(after, (0..after.stream_count()).find(is_sound)?)?;
    let is_known = own.mask != 0 && found.count == own.count;
    (is_known && !own.are_in(found.named())).then(|| (own.word(), found.named().word()))
}

/// These channels, and those for which readers take as many without names, in words, if they are others.
pub(super) fn unnamed_taken_for(own: Channels) -> Option<(String, String)> {
    let usual = Channels::usual(own.count);
    (own.is_named() && !own.are_in(usual)).then(|| (own.word(), usual.word()))
}

/// The same of the channels of stream `index` of `demuxer`.
pub(crate) fn copied_unnamed_taken_for(demuxer: &Demuxer, index: usize) -> Option<(String, String)> {
    unnamed_taken_for(Channels::of(demuxer, index)?)
}

/// The channels of stream `index` of `before`, and those for which readers take the sound of `after`, if they
/// are others.
pub(crate) fn copied_taken_for(
    (before, index): (&Demuxer, usize),
    after: &Demuxer,
) -> Option<(String, String)> {
    taken_for(Channels::of(before, index)?, after)
}
