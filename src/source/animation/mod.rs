//! Animations, and pictures that are opened as a video of one frame: their frames get what their file says
//! beside them.

mod described;
pub mod webp;

use super::images::animated::is_animated_webp;
use super::video::{self, VideoSourceOptions};
use super::{MOST_PIXELS, Source, SourceError};
use webp::WebpSource;

use std::path::Path;

/// Opens a video, an animation, or a picture that FFmpeg decodes. Animated WebP has a decoder of its own, and
/// of the options only the largest size and strictness count for it.
pub fn open(path: &Path, options: &VideoSourceOptions) -> Result<Box<dyn Source>, SourceError> {
    let source: Box<dyn Source> = if is_animated_webp(path) {
        let most = options.access.max_pixels.unwrap_or(MOST_PIXELS);
        Box::new(WebpSource::open(path, options.strict, most)?)
    } else {
        video::open(path, options)?
    };
    described::described(source, path, options.strict)
}
