//! Steps that frames go through behind a source.
//!
//! ```text
//! source -> range.rs    frames of a part of the input; seam.rs: those on either side of its cuts
//!           floats.rs   floating-point samples, and a watch for what is no number
//!           turns.rs    a watch for pictures that are shown turned
//!           fields.rs   two fields of a frame as frames        each is a source in front of another
//!        -> frames      in_order.rs: read by one thread
//! ```

pub mod fields;
#[cfg(feature = "ffmpeg")]
pub mod floats;
mod in_order;
pub mod range;
pub mod seam;
pub mod turns;

#[cfg(test)]
#[cfg(feature = "ffmpeg")]
mod tests {
    use super::floats::AlphaRules;
    use super::*;
    use crate::source::AnySource;
    use crate::source::tests::{Answering, check_forwarding};
    use std::sync::Arc;

    #[test]
    fn steps_around_a_source_forward_every_method_to_it() {
        let stream = || AnySource::Stream(Answering::source());
        let seam = seam::SeamWatch::new(Answering::source(), None, None, seam::SeamLog::default());
        for (name, source) in [
            ("fields", fields::watched(stream(), Arc::default())),
            (
                "floats",
                floats::watched(stream(), None, AlphaRules::default()).unwrap(),
            ),
            ("seam", AnySource::stream(seam)),
            ("turns", turns::watched(stream(), Box::new(|_| None))),
        ] {
            check_forwarding(name, &mut *source.in_order());
        }
    }
}
