//! The CPU engine against the reference: chains as they are written on the command line, every pixel format.

use super::engine_case::{Case, HEAD, filters, largest_area};

/// Products of the largest mask and the frame, for the reference's sake.
const MOST_WORK: usize = 300_000;

pub fn run(data: &[u8]) {
    let Some((head, text)) = data.split_at_checked(HEAD) else {
        return;
    };
    let Some(filters) = filters(text) else { return };
    let case = Case::new(head, (130, 40));
    if largest_area(&filters) * case.samples() <= MOST_WORK {
        case.check_cpu(filters);
    }
}
