//! YUV4MPEG2 streams.

pub fn run(data: &[u8]) {
    let path = super::common::file_of(data);
    match framepipe::source::y4m::open(&path, None) {
        Ok(mut source) => super::common::drain(source.as_mut(), 1000),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
