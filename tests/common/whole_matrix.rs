//! How much tests try. It stands alone for tests that need no program.

/// True if all combinations are to be tried of which a test usually takes a spanning part.
pub(crate) fn is_whole_matrix() -> bool {
    std::env::var_os("FRAMEPIPE_WHOLE_MATRIX").is_some_and(|value| value == "1")
}
