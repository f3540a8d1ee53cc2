//! Integer samples on another scale, where the greatest sample means the same.

/// The sample on a scale up to `most` for each one of a scale up to `stored`, from 0 on.
pub(crate) fn rescaled(stored: u32, most: u16) -> Vec<u16> {
    let step = |v: u32| ((u64::from(v) * u64::from(most) + u64::from(stored / 2)) / u64::from(stored)) as u16;
    (0..=stored).map(step).collect()
}
