//! The memory that a decoder's pictures lie in: blocks of the engine's kind, such as page-locked ones, from
//! which frames go on without a copy.
//!
//! FFmpeg asks for each picture's memory by a callback. The block that it gets is FFmpeg's as long as it
//! needs the picture as a reference, and a frame's until the frame is dropped, whichever is longer; both only
//! read it once the picture is out.
//!
//! Two rules keep every decoder right:
//!
//! - The length of a row is a function of format and size alone, from the first picture to the last. Decoders
//!   read their reference pictures with the row length of the picture that they are making, so a stream whose
//!   first pictures lay in FFmpeg's memory and the later ones in ours would come out as rubbish. What changes
//!   once the run has begun is only where the blocks come from.
//! - Who gets our memory is decided by what the decoder says of itself (AV_CODEC_CAP_DR1) and by whether the
//!   pixel format is one that frames have as it is. All else lies in FFmpeg's own memory, from the first
//!   picture on, too.
#![allow(unsafe_code)]

use crate::frame::{Allocator, Buffer, Layout, Memory, Pageable, PixelFormat, Reserve};
use crate::media::ffmpeg::{AvError, AvFormat, Picture};
use ffmpeg_next::ffi;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What rows and planes are aligned to, in bytes: the longest vector, and a cache line.
const ALIGNMENT: usize = 64;

/// Bytes that FFmpeg's loops may touch beyond a plane's last row.
const SLACK: usize = 2 * ALIGNMENT;

/// Where a decoder's pictures lie.
#[derive(Default)]
pub(in crate::media::ffmpeg) struct PictureMemory {
    /// Where blocks come from once the run has begun; ordinary memory before.
    reserve: OnceLock<Reserve>,
    served: bool,
    /// A block could not be had.
    lacks: AtomicBool,
    /// Pictures that the decoder said it patched, or of which it reported an error.
    patched: AtomicU64,
    /// References may be missing that were passed over.
    is_joining: AtomicBool,
    /// The contexts, by their addresses, whose present picture is counted there: one may report many errors.
    counted: Mutex<Vec<usize>>,
}

/// A block in FFmpeg's hands.
struct Block {
    buffer: Buffer,
    /// It comes from the run's reserve.
    is_reserve: bool,
}

impl PictureMemory {
    /// Has errors that the context reports counted here. It may outlive no `PictureMemory` that it points to.
    ///
    /// # Safety
    /// `context` must be valid and not yet open, and be freed before `self` moves or goes.
    pub(in crate::media::ffmpeg) unsafe fn listen(&self, context: *mut ffi::AVCodecContext) {
        // SAFETY: the context is valid and is freed before `self` moves or goes (the function's contract), so
        // that the pointer to `self` stays valid as long as FFmpeg uses it.
        unsafe { (*context).opaque = ptr::from_ref(self).cast_mut().cast() };
    }

    /// Lets the context, which must be one that it listens to, ask here for its pictures' memory.
    ///
    /// # Safety
    /// As for [`PictureMemory::listen`], which must have come before.
    pub(in crate::media::ffmpeg) unsafe fn serve(&mut self, context: *mut ffi::AVCodecContext) {
        self.served = true;
        // SAFETY: the context is valid, and its `opaque` points to `self` (the function's contract).
        unsafe { (*context).get_buffer2 = Some(get_buffer) };
    }

    /// True if a context asks here.
    pub(in crate::media::ffmpeg) fn is_served(&self) -> bool {
        self.served
    }

    /// From now on pictures lie in blocks of `reserve`.
    pub(in crate::media::ffmpeg) fn begin(&self, reserve: Reserve) {
        // A second call changes nothing: a decoder serves one run.
        let _ = self.reserve.set(reserve);
    }

    /// The error of a block that could not be had. Decoders pass it over like a damaged picture.
    pub(in crate::media::ffmpeg) fn lacking(&self) -> Option<AvError> {
        self.lacks.load(Ordering::Relaxed).then(AvError::no_memory)
    }

    /// How many pictures the decoder said it patched, or reported errors of. Where several threads decode, a
    /// picture may come out before its thread has marked it.
    pub(in crate::media::ffmpeg) fn patched(&self) -> u64 {
        self.patched.load(Ordering::Relaxed)
    }

    /// From now on pictures may ask to release references that were passed over, or no longer (`false`).
    pub(in crate::media::ffmpeg) fn join(&self, is_joining: bool) {
        self.is_joining.store(is_joining, Ordering::Relaxed);
    }

    /// From now on errors of the context at that address are of another picture.
    fn begin_picture(&self, context: usize) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|&one| one != context);
    }

    /// From now on errors are of another packet, where a decoder does not ask here for memory and shows by
    /// that which picture it is at.
    pub(in crate::media::ffmpeg) fn note_packet(&self) {
        if !self.served {
            self.counted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }

    /// Counts the picture that a decoder is at, once, as patched, if the object that says so is the context
    /// of a decoder that is listened to, or of one of its threads. Not one that `is_release`: of a reference
    /// that is missing, which takes nothing from the picture, where those before were passed over.
    ///
    /// # Safety
    /// `object` must be null or what FFmpeg logs: a structure that begins with its class.
    pub(in crate::media::ffmpeg) unsafe fn note_patched(object: *const c_void, is_release: bool) {
        // SAFETY: what is logged begins with its class (the function's contract); of the class of codecs'
        // contexts it is one, whose `opaque` is null or what `listen` made it.
        unsafe {
            let is_codec =
                !object.is_null() && ptr::eq(*object.cast::<*const ffi::AVClass>(), ffi::avcodec_get_class());
            if !is_codec {
                return;
            }
            let context = object.cast::<ffi::AVCodecContext>();
            if let Some(memory) = (*context).opaque.cast::<PictureMemory>().as_ref() {
                if is_release && memory.is_joining.load(Ordering::Relaxed) {
                    return;
                }
                let mut counted = memory.counted.lock().unwrap_or_else(PoisonError::into_inner);
                if !counted.contains(&context.addr()) {
                    counted.push(context.addr());
                    memory.patched.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// A block of at least `len` bytes.
    fn take(&self, len: usize) -> Result<Block, AvError> {
        let reserve = self.reserve.get();
        let buffer = match reserve {
            Some(reserve) => reserve.take(len),
            None => Pageable.allocate(len).map(Buffer::unpooled),
        };
        Ok(Block {
            buffer: buffer.map_err(|_| {
                self.lacks.store(true, Ordering::Relaxed);
                AvError::no_memory()
            })?,
            is_reserve: reserve.is_some(),
        })
    }
}

/// FFmpeg's callback, from any of its threads.
unsafe extern "C" fn get_buffer(
    context: *mut ffi::AVCodecContext,
    frame: *mut ffi::AVFrame,
    flags: c_int,
) -> c_int {
    // SAFETY: FFmpeg passes a valid context, whose `opaque` is the `PictureMemory` that lives as long as it,
    // and a frame whose format and size are set.
    unsafe {
        let memory = &*(*context).opaque.cast::<PictureMemory>();
        memory.begin_picture(context.addr());
        if !AvFormat((*frame).format).is_native() {
            return ffi::avcodec_default_get_buffer2(context, frame, flags);
        }
        match fill(context, frame, memory) {
            Ok(()) => 0,
            Err(error) => error.0,
        }
    }
}

/// Gives `frame` a block with room for all its planes.
///
/// # Safety
/// Both must be valid, and the frame's format and size set.
unsafe fn fill(
    context: *mut ffi::AVCodecContext,
    frame: *mut ffi::AVFrame,
    memory: &PictureMemory,
) -> Result<(), AvError> {
    // SAFETY: context and frame are valid (the function's contract); every pointer passed on is to a live
    // variable, and the block is FFmpeg's from av_buffer_create on, which frees it by `release` on every
    // later path.
    unsafe {
        let format = AvFormat((*frame).format)
            .to_raw()
            .ok_or(AvError(ffi::AVERROR_BUG))?;
        let (mut width, mut height) = ((*frame).width, (*frame).height);
        let mut alignment = [0; 8];
        ffi::avcodec_align_dimensions2(context, &raw mut width, &raw mut height, alignment.as_mut_ptr());
        // All rows grow by one measure, because some decoders count on the ratios between them.
        let step = ALIGNMENT as c_int;
        let mut strides = [0; 4];
        width = (width + step - 1) / step * step;
        loop {
            AvError::check(ffi::av_image_fill_linesizes(strides.as_mut_ptr(), format, width))?;
            if strides.iter().all(|s| s % step == 0) {
                break;
            }
            width += step;
        }
        let mut sizes = [0; 4];
        let long = strides.map(|s| s as isize);
        AvError::check(ffi::av_image_fill_plane_sizes(
            sizes.as_mut_ptr(),
            format,
            height,
            long.as_ptr(),
        ))?;
        let rooms = sizes.map(|size: usize| match size {
            0 => 0,
            size => (size + SLACK).next_multiple_of(ALIGNMENT),
        });
        let total: usize = rooms.iter().sum();
        let mut block = memory.take(total + ALIGNMENT)?;
        let bytes = block.buffer.bytes_mut();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        let data = bytes[start..].as_mut_ptr();
        let block = Box::into_raw(Box::new(block));
        let owned = ffi::av_buffer_create(data, total, Some(release), block.cast(), 0);
        if owned.is_null() {
            release(block.cast(), data);
            return Err(AvError::no_memory());
        }
        let raw = &mut *frame;
        raw.buf[0] = owned;
        // The mark by which `decoded` knows the block: FFmpeg never sets it, and copies it along with the
        // picture.
        raw.opaque_ref = ffi::av_buffer_ref(owned);
        let mut offset = 0;
        for (index, room) in rooms.into_iter().enumerate() {
            raw.data[index] = if room == 0 {
                ptr::null_mut()
            } else {
                data.add(offset)
            };
            raw.linesize[index] = strides[index];
            offset += room;
        }
        raw.extended_data = raw.data.as_mut_ptr();
        Ok(())
    }
}

unsafe extern "C" fn release(opaque: *mut c_void, _data: *mut u8) {
    // SAFETY: `opaque` is the box made in `fill`, handed over once to the buffer whose last reference has
    // just gone.
    drop(unsafe { Box::from_raw(opaque.cast::<Block>()) });
}

/// A decoded picture as a frame's memory.
pub(crate) struct Decoded {
    /// Holds FFmpeg's reference.
    _picture: Picture,
    data: *const u8,
    len: usize,
    pinned: bool,
    /// What somebody wrote into the frame: the picture itself may still be a reference.
    copy: Option<Vec<u8>>,
}

// SAFETY: the block is only read, by as many threads as like, and FFmpeg's reference counts are atomic.
unsafe impl Send for Decoded {}
// SAFETY: through a shared reference the block is only read.
unsafe impl Sync for Decoded {}

impl Memory for Decoded {
    fn bytes(&self) -> &[u8] {
        match &self.copy {
            Some(copy) => copy,
            // SAFETY: the block holds `len` initialised bytes, lives as long as the picture's reference, and
            // nobody writes to it any more.
            None => unsafe { std::slice::from_raw_parts(self.data, self.len) },
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let copy = self.copy.take().unwrap_or_else(|| self.bytes().to_vec());
        self.copy.insert(copy)
    }

    fn is_pinned(&self) -> bool {
        self.pinned && self.copy.is_none()
    }
}

/// The picture's pixels as a frame's memory and where they lie in it; the picture again if they are not in a
/// block of the run's reserve, or lie upside down.
pub(crate) fn decoded(picture: Picture, format: PixelFormat) -> Result<(Layout, Decoded), Picture> {
    // SAFETY: the picture's frame is valid. Where its first buffer is the one that is marked, it and its
    // opaque box were made in `fill`.
    let found = unsafe {
        let raw = &*picture.as_ptr();
        let buffer = raw.buf[0];
        let marked =
            !buffer.is_null() && !raw.opaque_ref.is_null() && (*raw.opaque_ref).buffer == (*buffer).buffer;
        marked.then(|| {
            let block = &*ffi::av_buffer_get_opaque(buffer).cast::<Block>();
            let (data, len) = ((*buffer).data.cast_const(), (*buffer).size);
            let known = block.is_reserve.then(|| block.buffer.is_pinned());
            (data, len, known, raw.data, raw.linesize)
        })
    };
    let Some((data, len, Some(pinned), planes, strides)) = found else {
        return Err(picture);
    };
    let mut places = Vec::with_capacity(format.planes().len());
    for (plane, stride) in planes.iter().zip(strides).take(format.planes().len()) {
        let offset = plane.addr().checked_sub(data.addr());
        match (offset, usize::try_from(stride)) {
            (Some(offset), Ok(stride)) => places.push((offset, stride)),
            _ => return Err(picture),
        }
    }
    let Ok(layout) = Layout::with_places(format, picture.width(), picture.height(), &places, len) else {
        return Err(picture);
    };
    let decoded = Decoded {
        _picture: picture,
        data,
        len,
        pinned,
        copy: None,
    };
    Ok((layout, decoded))
}
