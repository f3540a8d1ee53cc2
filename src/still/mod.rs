//! Image files: which kinds there are, what each can hold, and how sequences of them are named. What reading
//! and writing have in common lies here.

#[doc(hidden)]
pub mod annotations;
#[cfg(feature = "images")]
#[doc(hidden)]
pub mod exr;
#[cfg(feature = "images")]
mod kind;
#[cfg(feature = "images")]
#[doc(hidden)]
pub mod pattern;

#[cfg(feature = "images")]
pub use kind::{Decoding, Encoding, ImageKind, UnknownImageKind};

/// The most names that a warning lists.
const NAMED: usize = 12;

/// The first names, and how many there are beside these.
pub(crate) fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(vec!["a".to_owned(), "b".to_owned()]), "a, b");
        let many = (0..NAMED + 3).map(|n| n.to_string()).collect();
        assert!(listed(many).ends_with("11 and 3 more"));
    }
}
