//! The steps from one format of integers to another. swscale resamples chroma, and does what is of 8 bits
//! alone; where it is inexact, steps of our own come before and after it.
//!
//! ```text
//!   rgb48 ──matrix──> yuv444p10 ──swscale──> yuv420p10 ──levels──> p010
//!   yuv420p10 ──swscale──> yuv444p10 ──matrix──> rgb24
//!   yuv420p, full range ──levels──> yuv420p10 ──swscale──> yuv422p10
//! ```

use crate::frame::{Channel, Colour, ColourModel, PixelFormat, UnknownMatrix, YCGCO};
use crate::media::convert::written_matrix;
use crate::media::ffmpeg::{AvFormat, is_scaled_from, is_scaled_to};

/// The next step, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// A change of depth, range or place.
    Levels,
    /// The formulas with this matrix, in 4:4:4.
    Matrix(u8),
    /// Gray of RGB.
    Luma,
    /// swscale.
    Scale,
    /// Through this format, which has the facts of the end whose colour model it has.
    Through(PixelFormat),
}

/// How frames of `from` become frames of `to`, with these colour facts and `height` rows. An error if the
/// matrix has no formula.
pub(super) fn route(
    (from, before): (PixelFormat, Colour),
    (to, after): (PixelFormat, Colour),
    height: usize,
) -> Result<Route, UnknownMatrix> {
    let scaled = reads(from) && writes(to);
    let of_bytes = from.depth() == 8 && to.depth() == 8;
    Ok(match (from.model(), to.model()) {
        (ColourModel::Rgb, ColourModel::Gray) => Route::Luma,
        (ColourModel::Gray, _) | (_, ColourModel::Gray) => Route::Levels,
        (ColourModel::Rgb, ColourModel::Rgb) if scaled && of_bytes => Route::Scale,
        (ColourModel::Yuv, ColourModel::Yuv) => of_yuv((from, before), (to, after), scaled),
        (ColourModel::Rgb, ColourModel::Yuv) => {
            let matrix = written_matrix(after.matrix, height);
            by_matrix(matrix, to, (scaled, of_bytes), from.has_alpha())
        }
        (ColourModel::Yuv, ColourModel::Rgb) => {
            // swscale treats any other matrix as one that it knows.
            let matrix = match before.matrix {
                YCGCO => YCGCO,
                _ => before.read_matrix(height)?,
            };
            by_matrix(matrix, from, (scaled, of_bytes), to.has_alpha())
        }
        _ => Route::Levels,
    })
}

/// Between RGB and `yuv`; with alpha if RGB has it, too.
fn by_matrix(matrix: u8, yuv: PixelFormat, (scaled, of_bytes): (bool, bool), alpha: bool) -> Route {
    let chroma = subsampling(yuv).unwrap_or_default();
    if of_bytes && matrix != YCGCO {
        let separate = planar(yuv.depth(), yuv.has_alpha(), chroma).filter(|_| !scaled);
        return separate.map_or(Route::Scale, Route::Through);
    }
    if chroma == (0, 0) {
        return Route::Matrix(matrix);
    }
    let whole = planar(yuv.depth(), alpha && yuv.has_alpha(), (0, 0));
    whole.map_or(Route::Scale, Route::Through)
}

fn of_yuv((from, before): (PixelFormat, Colour), (to, after): (PixelFormat, Colour), scaled: bool) -> Route {
    let (depth, new_depth) = (from.depth(), to.depth());
    let is_limited = before.is_limited(from) && after.is_limited(to);
    // swscale dithers what loses depth.
    if scaled && (new_depth < depth && is_limited || (depth, new_depth) == (8, 8)) {
        return Route::Scale;
    }
    let (Some(chroma), Some(new_chroma)) = (subsampling(from), subsampling(to)) else {
        return Route::Scale;
    };
    if chroma == new_chroma {
        return Route::Levels;
    }
    let alpha = from.has_alpha() && to.has_alpha();
    let through = match depth == new_depth {
        true if is_planar(from) && is_planar(to) => None,
        true if is_planar(from) => planar(depth, to.has_alpha(), new_chroma),
        true => planar(depth, from.has_alpha(), chroma),
        false => planar(new_depth, alpha, chroma).or_else(|| planar(depth, alpha, new_chroma)),
    };
    through.map_or(Route::Scale, Route::Through)
}

fn reads(format: PixelFormat) -> bool {
    AvFormat::from_name(format.name()).is_some_and(is_scaled_from)
}

fn writes(format: PixelFormat) -> bool {
    AvFormat::from_name(format.name()).is_some_and(is_scaled_to)
}

/// log2 of how many pixels a sample of chroma stands for, across and down; `None` without chroma.
fn subsampling(format: PixelFormat) -> Option<(u8, u8)> {
    let (plane, _) = format.place(Channel::Cb)?;
    let plane = &format.planes()[plane];
    Some((plane.log2_x, plane.log2_y))
}

fn is_planar(format: PixelFormat) -> bool {
    format.planes().iter().all(|plane| plane.channels.len() == 1)
}

/// YUV with a plane for each component.
fn planar(depth: u32, alpha: bool, chroma: (u8, u8)) -> Option<PixelFormat> {
    PixelFormat::all().find(|format| {
        (format.depth(), format.has_alpha(), subsampling(*format)) == (depth, alpha, Some(chroma))
            && is_planar(*format)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn routes_end_and_swscale_reads_what_it_gets() {
        let known = || PixelFormat::all().filter(|f| AvFormat::from_name(f.name()).is_some());
        let colour = Colour::default();
        for (from, to) in known().flat_map(|from| known().map(move |to| (from, to))) {
            let (mut at, mut steps) = (from, 0);
            let mut next = to;
            while at != to {
                match route((at, colour), (next, colour), 720).unwrap() {
                    Route::Through(format) => next = format,
                    step => {
                        assert!(step != Route::Scale || reads(at) && writes(next), "{at} {next}");
                        (at, next) = (next, to);
                    }
                }
                steps += 1;
                assert!(steps < 8, "{from} {to}");
            }
        }
    }

    #[test]
    fn bytes_are_swscales_and_depths_are_not() {
        let of = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|name| PixelFormat::from_name(name).unwrap());
            route((from, Colour::default()), (to, Colour::default()), 720).unwrap()
        };
        let through = |name: &str| Route::Through(PixelFormat::from_name(name).unwrap());
        assert_eq!(of("rgb24", "yuv420p"), Route::Scale);
        assert_eq!(of("rgb24", "bgra"), Route::Scale);
        assert_eq!(of("rgb48le", "p010le"), through("yuv444p10le"));
        assert_eq!(of("yuv444p10le", "p010le"), through("yuv420p10le"));
        assert_eq!(of("yuv444p10le", "rgb24"), Route::Matrix(1));
        assert_eq!(of("yuv420p10le", "yuv420p"), Route::Scale);
        assert_eq!(of("yuv420p", "yuv422p10le"), through("yuv420p10le"));
        assert_eq!(of("gray", "nv12"), Route::Levels);
        assert_eq!(of("rgb48le", "gray"), Route::Luma);
    }
}
