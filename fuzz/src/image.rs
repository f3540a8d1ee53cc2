//! Image files of every kind that is decoded here, their pixels and what they say beside them.

use super::common;
use framepipe::frame::Buffer;
use framepipe::source::IndexedSource;
use framepipe::source::images::{ImageSourceOptions, open};

pub fn run(data: &[u8]) {
    let path = common::file_of(data);
    let strict = data.last().is_some_and(|b| b & 1 == 1);
    let mut options = ImageSourceOptions::default();
    options.strict = strict;
    let images = match open(&path, &options) {
        Ok(images) => images,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let info = images.info();
    if info.width.saturating_mul(info.height) > common::MOST_PIXELS {
        return;
    }
    match images.read(0, Buffer::unpooled(Box::new(Vec::new()))) {
        Ok(frame) => {
            let layout = frame.layout();
            assert_eq!((layout.width(), layout.height()), (info.width, info.height));
            assert_eq!(layout.format(), info.format);
            std::hint::black_box(frame.is_opaque());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    std::hint::black_box(images.remarks());
}
