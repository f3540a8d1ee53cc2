//! YUV4MPEG2 streams.
#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = common::file_of(data);
    match framepipe::source::y4m::open(&path, None) {
        Ok(mut source) => common::drain(source.as_mut(), 1000),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
