//! Packets of compressed data.
#![allow(unsafe_code)]

use super::AvError;
use super::text::{raw_rational, timestamp};
use crate::frame::Rational;
use ffmpeg_next::ffi;
use std::ffi::c_int;
use std::ptr;

/// A packet of compressed data.
pub(crate) struct Packet {
    packet: *mut ffi::AVPacket,
}

// SAFETY: a packet is plain memory and reference counts that are atomic.
unsafe impl Send for Packet {}

impl Packet {
    /// An empty packet.
    pub(crate) fn new() -> Result<Packet, AvError> {
        // SAFETY: allocates; null is refused.
        let packet = unsafe { ffi::av_packet_alloc() };
        if packet.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Packet { packet })
    }

    /// A packet of the same data.
    pub(crate) fn duplicate(&self) -> Result<Packet, AvError> {
        let copy = Packet::new()?;
        // SAFETY: both packets are valid; the data is shared by counted references, or copied.
        AvError::check(unsafe { ffi::av_packet_ref(copy.packet, self.packet) })?;
        Ok(copy)
    }

    /// A packet of zeros that is shown at `at`.
    pub(crate) fn zeros(size: usize, at: i64) -> Result<Packet, AvError> {
        let mut packet = Packet::from_data(&vec![0; size], at, true)?;
        packet.set_duration(1);
        Ok(packet)
    }

    /// A packet of these bytes, shown at `pts`.
    pub(crate) fn from_data(data: &[u8], pts: i64, is_key: bool) -> Result<Packet, AvError> {
        let packet = Packet::new()?;
        let size = c_int::try_from(data.len()).map_err(|_| AvError::no_memory())?;
        // SAFETY: the new packet has room for `size` bytes.
        unsafe {
            AvError::check(ffi::av_new_packet(packet.packet, size))?;
            ptr::copy_nonoverlapping(data.as_ptr(), (*packet.packet).data, data.len());
            (*packet.packet).pts = pts;
            (*packet.packet).dts = pts;
            if is_key {
                (*packet.packet).flags |= ffi::AV_PKT_FLAG_KEY as c_int;
            }
        }
        Ok(packet)
    }

    /// The same packet with other bytes.
    pub(crate) fn with_data(&self, data: &[u8]) -> Result<Packet, AvError> {
        let packet = Packet::from_data(data, 0, false)?;
        // SAFETY: both packets are valid; times, flags and blocks are copied, and the data is not.
        AvError::check(unsafe { ffi::av_packet_copy_props(packet.packet, self.packet) })?;
        Ok(packet)
    }

    /// The bytes.
    pub(crate) fn data(&self) -> &[u8] {
        if self.size() == 0 {
            return &[];
        }
        // SAFETY: the packet holds `size` bytes as long as it is not changed.
        unsafe { std::slice::from_raw_parts(self.raw().data, self.size()) }
    }

    /// The bytes, to be changed where they lie.
    pub(crate) fn data_mut(&mut self) -> Result<&mut [u8], AvError> {
        if self.size() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the packet is valid; av_packet_make_writable leaves it as the only owner of `size` bytes.
        unsafe {
            AvError::check(ffi::av_packet_make_writable(self.packet))?;
            Ok(std::slice::from_raw_parts_mut((*self.packet).data, self.size()))
        }
    }

    /// The raw packet, for encoder and muxer.
    pub(crate) fn as_ptr(&self) -> *mut ffi::AVPacket {
        self.packet
    }

    /// Gives up the data.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the packet is valid.
        unsafe { ffi::av_packet_unref(self.packet) };
    }

    fn raw(&self) -> &ffi::AVPacket {
        // SAFETY: the packet is valid as long as `self` lives.
        unsafe { &*self.packet }
    }

    /// Index of the packet's stream.
    pub(crate) fn stream(&self) -> usize {
        self.raw().stream_index.max(0) as usize
    }

    /// Presentation time in the stream's time base.
    pub(crate) fn pts(&self) -> Option<i64> {
        timestamp(self.raw().pts)
    }

    /// Decoding time in the stream's time base.
    pub(crate) fn dts(&self) -> Option<i64> {
        timestamp(self.raw().dts)
    }

    /// How long it lasts in the stream's time base, 0 if unknown.
    pub(crate) fn duration(&self) -> i64 {
        self.raw().duration
    }

    /// Sets how long it lasts, in its time base.
    pub(crate) fn set_duration(&mut self, duration: i64) {
        // SAFETY: the packet is valid and borrowed mutably.
        unsafe { (*self.packet).duration = duration };
    }

    /// Brings its times and its length from one time base to another.
    pub(crate) fn rescale(&mut self, from: Rational, to: Rational) {
        // SAFETY: the packet is valid and borrowed mutably; the rest is arithmetic.
        unsafe { ffi::av_packet_rescale_ts(self.packet, raw_rational(from), raw_rational(to)) };
    }

    /// Moves its decoding time to `dts`, and its presentation time too where it would come before that.
    pub(crate) fn delay(&mut self, dts: i64) {
        // SAFETY: the packet is valid and borrowed mutably.
        let raw = unsafe { &mut *self.packet };
        raw.dts = dts;
        if timestamp(raw.pts).is_some_and(|pts| pts < dts) {
            raw.pts = dts;
        }
    }

    /// Sets when it is shown, when it is decoded, and how long it lasts, in its time base.
    pub(crate) fn set_times(&mut self, pts: i64, dts: i64, duration: i64) {
        // SAFETY: the packet is valid and borrowed mutably.
        let raw = unsafe { &mut *self.packet };
        (raw.pts, raw.dts, raw.duration) = (pts, dts, duration);
    }

    /// Leaves open when it is shown.
    pub(crate) fn forget_pts(&mut self) {
        // SAFETY: the packet is valid and borrowed mutably.
        unsafe { (*self.packet).pts = ffi::AV_NOPTS_VALUE };
    }

    /// Adds ticks to both of its times.
    pub(crate) fn shift(&mut self, ticks: i64) {
        // SAFETY: the packet is valid and borrowed mutably.
        let raw = unsafe { &mut *self.packet };
        for time in [&mut raw.pts, &mut raw.dts] {
            if timestamp(*time).is_some() {
                *time = time.saturating_add(ticks);
            }
        }
    }

    /// Where its bytes, or those of their packet in the container, begin in the input, if that is known.
    pub(crate) fn begin_in_input(&self) -> Option<u64> {
        u64::try_from(self.raw().pos).ok()
    }

    /// Where its bytes end in the input, if that is known.
    pub(crate) fn end_in_input(&self) -> Option<u64> {
        Some(self.begin_in_input()? + self.size() as u64)
    }

    /// Bytes of data.
    pub(crate) fn size(&self) -> usize {
        self.raw().size.max(0) as usize
    }

    /// True if it is marked as one at which decoding may begin.
    pub(crate) fn is_key(&self) -> bool {
        self.raw().flags & ffi::AV_PKT_FLAG_KEY as c_int != 0
    }

    /// True if it is decoded for others' sake and not shown, as an edit list may say.
    pub(crate) fn is_discarded(&self) -> bool {
        self.raw().flags & ffi::AV_PKT_FLAG_DISCARD as c_int != 0
    }

    /// True if its data is encrypted and the key is not known.
    pub(crate) fn is_encrypted(&self) -> bool {
        let kind = ffi::AVPacketSideDataType::AV_PKT_DATA_ENCRYPTION_INFO;
        // SAFETY: the packet is valid; only whether there is a block is asked.
        !unsafe { ffi::av_packet_get_side_data(self.packet, kind, ptr::null_mut()) }.is_null()
    }

    /// Has a packet of data from private stream 1 of a transport stream be one of a metadata stream: FFmpeg's
    /// muxer leaves out the times of the former.
    pub(crate) fn leave_private_stream(&mut self) {
        const PRIVATE_STREAM_1: u8 = 0xbd;
        const METADATA_STREAM: u8 = 0xfc;
        let kind = ffi::AVPacketSideDataType::AV_PKT_DATA_MPEGTS_STREAM_ID;
        let mut size = 0;
        // SAFETY: the packet is valid and borrowed mutably, and its blocks are its own; one that is not null
        // has `size` bytes.
        unsafe {
            let block = ffi::av_packet_get_side_data(self.packet, kind, &mut size);
            if !block.is_null() && size > 0 && *block == PRIVATE_STREAM_1 {
                *block = METADATA_STREAM;
            }
        }
    }

    /// What Matroska stores beside the data and FFmpeg does not read: the ID of its kind, and the bytes.
    pub(crate) fn block_addition(&self) -> Option<(u64, &[u8])> {
        let kind = ffi::AVPacketSideDataType::AV_PKT_DATA_MATROSKA_BLOCKADDITIONAL;
        let mut size = 0;
        // SAFETY: the packet is valid, and keeps the block of `size` bytes as long as it is not changed.
        let block = unsafe {
            let block = ffi::av_packet_get_side_data(self.packet, kind, &mut size);
            if block.is_null() {
                return None;
            }
            std::slice::from_raw_parts(block, size)
        };
        let (id, data) = block.split_first_chunk()?;
        Some((u64::from_be_bytes(*id), data))
    }

    /// The codec's header that holds from this packet on, where the container states another one.
    pub(crate) fn new_header(&self) -> Option<&[u8]> {
        let kind = ffi::AVPacketSideDataType::AV_PKT_DATA_NEW_EXTRADATA;
        let mut size = 0;
        // SAFETY: the packet is valid, and keeps the block of `size` bytes as long as it is not changed.
        unsafe {
            let block = ffi::av_packet_get_side_data(self.packet, kind, &mut size);
            (!block.is_null() && size > 0).then(|| std::slice::from_raw_parts(block, size))
        }
    }

    /// Empties that header's block, which muxers then pass over.
    pub(crate) fn forget_new_header(&mut self) {
        let kind = ffi::AVPacketSideDataType::AV_PKT_DATA_NEW_EXTRADATA;
        // SAFETY: the packet is valid and borrowed mutably; its block, where there is one, shrinks in place.
        unsafe { ffi::av_packet_shrink_side_data(self.packet, kind, 0) };
    }

    /// True if the demuxer knows that the data is damaged or cut.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.raw().flags & ffi::AV_PKT_FLAG_CORRUPT as c_int != 0
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: allocated by av_packet_alloc and freed once.
        unsafe { ffi::av_packet_free(&mut self.packet) };
    }
}
