//! Whether a mask is a product of a column and a row.

use super::Mask;

/// A mask of rank 1 as a product: weight (i, j) = row\[i\] * column\[j\].
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// Along the row.
    pub row: Vec<f64>,
    /// Along the column.
    pub column: Vec<f64>,
}

/// The product, if the mask is one.
pub fn factors(mask: &Mask) -> Option<Factors> {
    let _ = mask;
    None
}

/// The rank of the matrix.
pub fn rank(mask: &Mask) -> usize {
    let _ = mask;
    0
}
