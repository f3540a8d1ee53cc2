//! Matrices between RGB and YUV, by their numbers in ITU-T H.273, table 4.

/// H.273's number of YCgCo.
pub(crate) const YCGCO: u8 = 8;

/// A matrix between RGB and YUV, by FFmpeg's name of it, whose formula is not known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "pictures with the matrix {0} cannot be converted to RGB here, and another matrix would give wrong \
     colours; keep them in YUV (such as ffv1 in .mkv), or bring them to bt709 or bt2020nc first"
)]
pub struct UnknownMatrix(pub String);

/// FFmpeg's names of H.273's matrix coefficients.
const MATRICES: &[&str] = &[
    "gbr",
    "bt709",
    "",
    "",
    "fcc",
    "bt470bg",
    "smpte170m",
    "smpte240m",
    "ycgco",
    "bt2020nc",
    "bt2020c",
    "smpte2085",
    "chroma-derived-nc",
    "chroma-derived-c",
    "ictcp",
    "ipt-c2",
    "ycgco-re",
    "ycgco-ro",
];

/// FFmpeg's name of matrix coefficients, or their number.
pub fn matrix_name(matrix: u8) -> String {
    name_in(MATRICES, matrix)
}

/// The name in `table` that `number` has, or else the number.
pub(super) fn name_in(table: &[&str], number: u8) -> String {
    match table.get(usize::from(number)) {
        Some(&name) if !name.is_empty() => name.to_owned(),
        _ => format!("number {number}"),
    }
}

/// The matrix between RGB and YUV that untagged pictures of this height use: BT.709 from 720 rows on, else
/// BT.601.
pub(crate) fn usual_matrix(height: usize) -> u8 {
    if height >= 720 { 1 } else { 6 }
}

/// The luma weights of red and blue, KR and KB in H.273; `None` for a matrix without them.
fn luma_weights(matrix: u8) -> Option<(f64, f64)> {
    Some(match matrix {
        1 => (0.2126, 0.0722),
        4 => (0.30, 0.11),
        5 | 6 => (0.299, 0.114),
        7 => (0.212, 0.087),
        9 | 10 => (0.2627, 0.0593),
        _ => return None,
    })
}

/// The weights of red, green and blue in the luma of RGB, times 2^16, whose sum is 2^16: those of the matrix,
/// else of the primaries' matrix, else of BT.709 (H.273, tables 2 and 4).
pub(crate) fn luma_of_rgb(matrix: u8, primaries: u8) -> [u32; 3] {
    let of_primaries = match primaries {
        5 | 6 => luma_weights(6),
        7 | 9 => luma_weights(primaries),
        // As the matrix 12 derives them from DCI-P3's points, with its own white and with D65.
        11 => Some((0.209_492, 0.068_913)),
        12 => Some((0.228_975, 0.079_287)),
        _ => None,
    };
    // BT.709's are always known.
    let (red, blue) = luma_weights(matrix)
        .or(of_primaries)
        .or(luma_weights(1))
        .unwrap_or_default();
    let whole = |weight: f64| (weight * 65536.0).round() as u32;
    let (red, blue) = (whole(red), whole(blue));
    [red, 65536 - red - blue, blue]
}

/// What Y, Cb and Cr count in red, in green and in blue, Y from 0 to 1 and the others from -1/2 to 1/2. In
/// YCgCo these are Y, Cg and Co. `None` for a matrix without a formula.
pub(crate) fn rgb_of_yuv(matrix: u8) -> Option<[[f64; 3]; 3]> {
    if matrix == YCGCO {
        return Some([[1.0, -1.0, 1.0], [1.0, 1.0, 0.0], [1.0, -1.0, -1.0]]);
    }
    let (red, blue) = luma_weights(matrix)?;
    let green = 1.0 - red - blue;
    let (of_cr, of_cb) = (2.0 * (1.0 - red), 2.0 * (1.0 - blue));
    Some([
        [1.0, 0.0, of_cr],
        [1.0, -of_cb * blue / green, -of_cr * red / green],
        [1.0, of_cb, 0.0],
    ])
}

/// What red, green and blue count in Y, in Cb and in Cr; the inverse of [`rgb_of_yuv`].
#[cfg(feature = "ffmpeg")]
pub(crate) fn yuv_of_rgb(matrix: u8) -> Option<[[f64; 3]; 3]> {
    if matrix == YCGCO {
        return Some([[0.25, 0.5, 0.25], [-0.25, 0.5, -0.25], [0.5, 0.0, -0.5]]);
    }
    let (red, blue) = luma_weights(matrix)?;
    let green = 1.0 - red - blue;
    let (of_cr, of_cb) = (2.0 * (1.0 - red), 2.0 * (1.0 - blue));
    Some([
        [red, green, blue],
        [-red / of_cb, -green / of_cb, 0.5],
        [0.5, -green / of_cr, -blue / of_cr],
    ])
}

#[cfg(test)]
#[cfg(feature = "ffmpeg")]
mod tests {
    use super::*;

    #[test]
    fn one_matrix_undoes_the_other() {
        for matrix in 0..=255 {
            let (Some(to), Some(back)) = (yuv_of_rgb(matrix), rgb_of_yuv(matrix)) else {
                assert!(yuv_of_rgb(matrix).is_none() && rgb_of_yuv(matrix).is_none());
                continue;
            };
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                let sum: f64 = (0..3).map(|k| back[i][k] * to[k][j]).sum();
                let one = if i == j { 1.0 } else { 0.0 };
                assert!((sum - one).abs() < 1e-14, "{matrix}: {i} {j} {sum}");
            }
        }
    }
}
