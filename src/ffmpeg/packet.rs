//! Packets of compressed data.
#![allow(unsafe_code)]

use super::AvError;
use super::text::timestamp;
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

    /// Bytes of data.
    pub(crate) fn size(&self) -> usize {
        self.raw().size.max(0) as usize
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
