//! Video files, through FFmpeg: demuxers, decoders, facts, clocks.

use super::common;
use framepipe::source::Source;
use framepipe::source::video::{VideoSource, VideoSourceOptions};

pub fn run(data: &[u8]) {
    let path = common::file_of(data);
    let strict = data.last().is_some_and(|b| b & 1 == 1);
    let mut options = VideoSourceOptions::default();
    options.strict = strict;
    options.threads = Some(1);
    match VideoSource::open(&path, &options) {
        Ok(mut source) => {
            let info = source.info();
            if info.width.saturating_mul(info.height) <= common::MOST_PIXELS {
                common::drain(&mut source, 30);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
