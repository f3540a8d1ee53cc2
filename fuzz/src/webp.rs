//! Animated WebP files.

use super::common;
use framepipe::source::Source;
use framepipe::source::animation::webp::WebpSource;
use framepipe::source::images::animated::is_animated;

pub fn run(data: &[u8]) {
    let path = common::file_of(data);
    std::hint::black_box(is_animated(&path));
    let strict = data.last().is_some_and(|b| b & 1 == 1);
    match WebpSource::open(&path, strict, common::MOST_PIXELS as u64 / 8) {
        Ok(mut source) => {
            let info = source.info();
            if info.width.saturating_mul(info.height) <= common::MOST_PIXELS / 8 {
                common::drain(&mut source, 20);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
