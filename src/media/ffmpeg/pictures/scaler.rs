//! swscale: changes of pixel format, range and matrix at one size. Alpha is not left to it.
#![allow(unsafe_code)]

use super::alpha::AlphaChange;
use super::format::chroma_position;
use crate::media::ffmpeg::{AvError, AvFormat, FormatFacts, Picture};
use ffmpeg_next::ffi;
use std::ffi::{CStr, c_int};
use std::ptr;

/// Exact rounding and full chroma. By their names, because in FFmpeg 8 the numbers became an enumeration.
const FLAGS: &CStr = c"bicubic+accurate_rnd+full_chroma_int+full_chroma_inp+bitexact";

/// One end of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScalerEnd {
    /// Pixel format.
    pub(crate) format: AvFormat,
    /// Samples use full range (of YUV; RGB always does).
    pub(crate) full_range: bool,
    /// H.273 number of the matrix between RGB and YUV.
    pub(crate) matrix: u8,
    /// Chroma location as FFmpeg numbers it, 0 if unknown.
    pub(crate) chroma_location: u8,
}

/// swscale, for changes of pixel format at one size.
pub(crate) struct Scaler {
    context: *mut ffi::SwsContext,
    height: c_int,
    /// What becomes of alpha where both ends have it.
    alpha: Option<AlphaChange>,
}

// SAFETY: an SwsContext is bound to no thread, and only `&mut self` uses it.
unsafe impl Send for Scaler {}

impl Scaler {
    /// Prepares the conversion of pictures of `width` x `height`, with exact rounding and full chroma.
    pub(crate) fn new(
        width: usize,
        height: usize,
        from: ScalerEnd,
        to: ScalerEnd,
    ) -> Result<Scaler, AvError> {
        // SAFETY: allocates; null is refused.
        let context = unsafe { ffi::sws_alloc_context() };
        if context.is_null() {
            return Err(AvError::no_memory());
        }
        let scaler = Scaler {
            context,
            height: height as c_int,
            alpha: AlphaChange::new(from.format, to.format),
        };
        let mut options = vec![
            (c"srcw", width as i64),
            (c"srch", height as i64),
            (c"dstw", width as i64),
            (c"dsth", height as i64),
            (c"src_format", i64::from(from.format.0)),
            (c"dst_format", i64::from(to.format.0)),
            (c"src_range", i64::from(from.full_range)),
            (c"dst_range", i64::from(to.full_range)),
        ];
        let (from_facts, to_facts) = (from.format.facts(), to.format.facts());
        let subsampled = |facts: &Option<FormatFacts>| {
            facts
                .as_ref()
                .map_or((0, 0), |f| if f.rgb { (0, 0) } else { (f.log2_x, f.log2_y) })
        };
        if subsampled(&from_facts) != subsampled(&to_facts) {
            if let Some((x, y)) = chroma_position(from.chroma_location, subsampled(&from_facts)) {
                options.extend([(c"src_h_chr_pos", x), (c"src_v_chr_pos", y)]);
            }
            if let Some((x, y)) = chroma_position(to.chroma_location, subsampled(&to_facts)) {
                options.extend([(c"dst_h_chr_pos", x), (c"dst_v_chr_pos", y)]);
            }
        }
        // SAFETY: the context is valid, the names are its options; the coefficient tables are static.
        unsafe {
            AvError::check(ffi::av_opt_set(
                context.cast(),
                c"sws_flags".as_ptr(),
                FLAGS.as_ptr(),
                0,
            ))?;
            for (name, value) in options {
                AvError::check(ffi::av_opt_set_int(context.cast(), name.as_ptr(), value, 0))?;
            }
            AvError::check(ffi::sws_init_context(context, ptr::null_mut(), ptr::null_mut()))?;
            let table = |matrix: u8| {
                // swscale numbers its tables like H.273; RGB (0) and unknown ones mean BT.601 to it.
                ffi::sws_getCoefficients(match matrix {
                    1 | 4 | 5 | 6 | 7 | 9 | 10 => c_int::from(matrix),
                    _ => ffi::SWS_CS_DEFAULT as c_int,
                })
            };
            // Refused where neither side is YUV, which needs no tables.
            ffi::sws_setColorspaceDetails(
                context,
                table(from.matrix),
                c_int::from(from.full_range),
                table(to.matrix),
                c_int::from(to.full_range),
                0,
                1 << 16,
                1 << 16,
            );
        }
        Ok(scaler)
    }

    /// Converts `from` into `to`; both were made for the formats and the size given to `new`.
    pub(crate) fn run(&mut self, from: &Picture, to: &mut Picture) -> Result<(), AvError> {
        if from.height() != self.height as usize || to.height() != self.height as usize {
            return Err(AvError(ffi::AVERROR(ffi::EINVAL)));
        }
        // SAFETY: both frames hold `height` rows of the formats that the context was made for, with FFmpeg's
        // own padding.
        let rows = unsafe {
            ffi::sws_scale(
                self.context,
                from.raw().data.as_ptr().cast(),
                from.raw().linesize.as_ptr(),
                0,
                self.height,
                to.raw().data.as_ptr(),
                to.raw().linesize.as_ptr(),
            )
        };
        if AvError::check(rows)? != self.height {
            return Err(AvError(ffi::AVERROR_BUG));
        }
        match &self.alpha {
            Some(alpha) => alpha.run(from, to),
            None => Ok(()),
        }
    }
}

impl Drop for Scaler {
    fn drop(&mut self) {
        // SAFETY: allocated by sws_alloc_context and freed once.
        unsafe { ffi::sws_freeContext(self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_names_mean_their_numbers() {
        // SAFETY: the context is made here and freed once; the strings are zero-terminated.
        unsafe {
            let context = ffi::sws_alloc_context();
            let name = c"sws_flags".as_ptr();
            let mut flags = 0;
            assert_eq!(ffi::av_opt_set(context.cast(), name, FLAGS.as_ptr(), 0), 0);
            assert_eq!(ffi::av_opt_get_int(context.cast(), name, 0, &mut flags), 0);
            ffi::sws_freeContext(context);
            assert_eq!(flags, 1 << 2 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 19);
        }
    }
}
