//! Where an input can be cut into parts that are read by themselves.

/// Parts that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CutRequest {
    /// How many.
    pub parts: u32,
    /// Where the first one begins, in ticks of the time base; at the first frame if `None`.
    pub start: Option<i64>,
    /// Where the last one ends, in the same ticks; with the input if `None`.
    pub end: Option<i64>,
    /// A part may begin at any frame, not only at a key frame: frames before it are decoded twice then.
    pub anywhere: bool,
    /// Frames are to be counted, too, which means reading all packets.
    pub counts: bool,
}

/// Where the parts meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cuts {
    /// When the first frame behind each cut is shown, in ticks of the time base, in order. There are fewer
    /// cuts than were wanted where there are fewer places for them.
    At {
        /// The ticks.
        ticks: Vec<i64>,
        /// How many frames each part has, where they were to be counted and can be without decoding.
        counts: Option<Vec<u64>>,
    },
    /// Nowhere, for a reason: the end of a sentence that begins with the input's name.
    None(String),
}
