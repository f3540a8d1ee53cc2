//! The CPU engine against the reference: chains as they are written on the command line, every pixel format.
#![no_main]

mod engine_case;

use engine_case::{Case, HEAD};
use framepipe::filter::Filter;
use libfuzzer_sys::fuzz_target;

/// Products of the largest mask and the frame, for the reference's sake.
const MOST_WORK: usize = 300_000;

fuzz_target!(|data: &[u8]| {
    let Some((head, text)) = data.split_at_checked(HEAD) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    // A mask's file could be any file of this machine.
    if text.contains("file") {
        return;
    }
    let filters: Result<Vec<Filter>, _> = text.split('|').take(3).map(str::parse).collect();
    let Ok(filters) = filters else { return };
    let case = Case::new(head, (130, 40));
    let area = filters
        .iter()
        .map(|f| f.mask.width() * f.mask.height())
        .max()
        .unwrap_or(1);
    if area * case.samples() <= MOST_WORK {
        case.check(filters);
    }
});
