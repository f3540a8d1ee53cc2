//! The limit for what files, streams and pictures say beside their pixels.

/// Limit in bytes for a colour profile, and for all other metadata of one file, picture or stream. Larger
/// metadata is left out and named; nothing beyond the limit is unpacked or allocated.
pub const METADATA_LIMIT: usize = 16 << 20;

/// A sentence about metadata larger than [`METADATA_LIMIT`].
#[cfg(feature = "ffmpeg")]
pub(crate) fn too_large(words: &str) -> String {
    format!(
        "holds more than {} MiB beside its pixels, so that this is left out: {words}",
        METADATA_LIMIT >> 20
    )
}
