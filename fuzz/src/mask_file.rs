//! Mask files.

use framepipe::filter::Filter;

pub fn run(data: &[u8]) {
    let path = super::common::file_of(data);
    match format!("mask:file={}", path.display()).parse::<Filter>() {
        Ok(filter) => {
            assert!(filter.mask.width() % 2 == 1 && filter.mask.height() % 2 == 1);
            assert!(filter.mask.weights().iter().all(|w| w.is_finite()));
            assert!(filter.mask.sum().is_finite() && filter.bias.value().is_finite());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
