//! The plainest correct loop, one thread: the oracle of every other engine and the baseline of every speed-up.
