//! Premultiplied filtering: rows are premultiplied on load and unpremultiplied on store (the
//! formula is at AlphaUse).

mod premultiply;

use super::strip::{Picture, Strip};
use crate::engine::cpu::simd::{Compiled, InstructionSet};
use crate::filter::{ChannelStep, Convolve, Step};
use crate::frame::{Channel, Layout, PixelFormat, PlaneFormat};
use premultiply::{Form, Pixels, PremultiplyFours, UnpremultiplyConstants, doubles, numbers, words};
use std::ops::Range;

/// Of the formula that was.
struct AlphaUse {
    normalise: bool,
    filter_alpha: bool,
    gain: u32,
    offset: i32,
}

/// How a step's colours are premultiplied and unpremultiplied.
pub(in crate::engine::cpu) struct Alpha {
    compiled: Compiled,
    /// The plane that alpha lies in.
    plane: usize,
    /// What is convolved in each plane; `None` where no colour is.
    forms: Vec<Option<Form>>,
    kind: Kind,
    constants: UnpremultiplyConstants,
    /// True if alpha is convolved for the average alone, and the result keeps the original's.
    restores: bool,
}

/// The layout of colours and alpha: what a pixel is, and the bytes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Three colours and alpha.
    Last1,
    Last2,
    /// Alpha and three colours.
    First1,
    /// A colour and alpha.
    Two1,
    Two2,
    /// A colour, whose alpha lies in another plane.
    Apart1,
    Apart2,
}

impl Kind {
    /// That of pixels of so many samples, of which alpha is the one at `place`.
    fn of(samples: usize, place: usize, bytes: usize) -> Option<Kind> {
        Some(match (samples, place, bytes) {
            (4, 3, 1) => Kind::Last1,
            (4, 3, 2) => Kind::Last2,
            (4, 0, 1) => Kind::First1,
            (2, 1, 1) => Kind::Two1,
            (2, 1, 2) => Kind::Two2,
            (1, 0, 1) => Kind::Apart1,
            (1, 0, 2) => Kind::Apart2,
            _ => return None,
        })
    }
}

impl Alpha {
    /// That of `step`; `None` if no colour is weighted.
    pub(in crate::engine::cpu) fn new(
        step: &Step,
        format: PixelFormat,
        set: InstructionSet,
    ) -> Option<Alpha> {
        let used: AlphaUse = None?;
        let planes = format.planes();
        let is_alpha = |c: &Channel| *c == Channel::Alpha;
        let plane = planes.iter().position(|p| p.channels.iter().any(is_alpha))?;
        let place = planes[plane].channels.iter().position(is_alpha)?;
        let bytes = format.bytes_per_sample();
        let restores = used.normalise && !used.filter_alpha;
        let sample = |channel: usize| ((1 << (8 * bytes)) - 1) << (8 * bytes * channel);
        let form = |(steps, place): (&Vec<ChannelStep>, &PlaneFormat)| {
            let colour = |(channel, what): (usize, &ChannelStep)| {
                let convolved = what.convolved().filter(|c| !c.is_alpha)?;
                Some((channel, *convolved))
            };
            let convolved = || steps.iter().enumerate().filter_map(colour);
            let (_, first): (_, Convolve) = convolved().next()?;
            Some(Form {
                colours: convolved().fold(0, |bits, (channel, _)| bits | sample(channel)),
                depth: format.depth(),
                // Colours that a pixel interleaves are of one kind: red, green and blue have 0.
                level: u32::from(first.level),
                takes_bias: !place.channels.iter().any(|c| c.is_chroma()),
            })
        };
        Some(Alpha {
            compiled: Compiled::of(set),
            plane,
            forms: step.planes.iter().zip(planes).map(form).collect(),
            kind: Kind::of(planes[plane].channels.len(), place, bytes)?,
            constants: UnpremultiplyConstants {
                gain: used.gain,
                offset: used.offset,
                restored: if restores && planes.len() == 1 {
                    sample(place)
                } else {
                    0
                },
            },
            restores,
        })
    }

    /// The plane that alpha has to itself; `None` if it lies beside the colours.
    pub(in crate::engine::cpu) fn own_plane(&self) -> Option<usize> {
        (self.forms.len() > 1).then_some(self.plane)
    }

    /// Restores the original's alpha in rows of alpha's own plane, if it was convolved for the average alone.
    pub(in crate::engine::cpu) fn restore(&self, input: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>) {
        if self.restores {
            strip.each_row(layout, |position, row| {
                row.copy_from_slice(input.row(position.plane, position.row));
            });
        }
    }

    /// True if all alpha of the row of pixels, or of the row of alpha, is the largest.
    fn is_opaque(&self, form: Form, row: &[u8]) -> bool {
        let (run, mut is_opaque) = (self.compiled, false);
        let to = &mut is_opaque;
        match self.kind {
            Kind::Last1 => run.run(numbers::Opaque::<4, 1, 3>(form, row, to)),
            Kind::Last2 => run.run(doubles::Opaque::<8, 2, 3>(form, row, to)),
            Kind::First1 => run.run(numbers::Opaque::<4, 1, 0>(form, row, to)),
            Kind::Two1 => run.run(words::Opaque::<2, 1, 1>(form, row, to)),
            Kind::Two2 => run.run(numbers::Opaque::<4, 2, 1>(form, row, to)),
            Kind::Apart1 => run.run(words::Opaque::<1, 1, 0>(form, row, to)),
            Kind::Apart2 => run.run(numbers::Opaque::<2, 2, 0>(form, row, to)),
        }
        is_opaque
    }

    fn constants(&self, form: Form) -> UnpremultiplyConstants {
        UnpremultiplyConstants {
            offset: if form.takes_bias { self.constants.offset } else { 0 },
            ..self.constants
        }
    }

    fn premultiply(&self, form: Form, pixels: Pixels<'_>) {
        let run = self.compiled;
        match self.kind {
            Kind::Last1 => run.run(PremultiplyFours::<3>(form, pixels)),
            Kind::Last2 => run.run(doubles::Premultiply::<8, 2, 3>(form, pixels)),
            Kind::First1 => run.run(PremultiplyFours::<0>(form, pixels)),
            Kind::Two1 => run.run(words::Premultiply::<2, 1, 1>(form, pixels)),
            Kind::Two2 => run.run(numbers::Premultiply::<4, 2, 1>(form, pixels)),
            Kind::Apart1 => run.run(words::Premultiply::<1, 1, 0>(form, pixels)),
            Kind::Apart2 => run.run(numbers::Premultiply::<2, 2, 0>(form, pixels)),
        }
    }

    fn unpremultiply(&self, form: Form, pixels: Pixels<'_>) {
        let (run, constants) = (self.compiled, self.constants(form));
        let is_plain = form.level == 0 && constants.offset == 0;
        macro_rules! unpremultiply {
            ($width:ident, $size:literal, $bytes:literal, $alpha:literal) => {
                if is_plain {
                    run.run($width::Unpremultiply::<$size, $bytes, $alpha, true>(
                        form, constants, pixels,
                    ))
                } else {
                    run.run($width::Unpremultiply::<$size, $bytes, $alpha, false>(
                        form, constants, pixels,
                    ))
                }
            };
        }
        match (self.kind, constants.gain == 1 << 16) {
            (Kind::Last1, true) => unpremultiply!(numbers, 4, 1, 3),
            (Kind::Last1, false) => unpremultiply!(doubles, 4, 1, 3),
            (Kind::Last2, _) => unpremultiply!(doubles, 8, 2, 3),
            (Kind::First1, true) => unpremultiply!(numbers, 4, 1, 0),
            (Kind::First1, false) => unpremultiply!(doubles, 4, 1, 0),
            (Kind::Two1, true) => unpremultiply!(numbers, 2, 1, 1),
            (Kind::Two1, false) => unpremultiply!(doubles, 2, 1, 1),
            (Kind::Two2, _) => unpremultiply!(doubles, 4, 2, 1),
            (Kind::Apart1, true) => unpremultiply!(numbers, 1, 1, 0),
            (Kind::Apart1, false) => unpremultiply!(doubles, 1, 1, 0),
            (Kind::Apart2, _) => unpremultiply!(doubles, 2, 2, 0),
        }
    }
}

/// What a step reads.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Source<'a> {
    /// The picture as it is.
    pub(in crate::engine::cpu) picture: Picture<'a>,
    /// How its colours are weighted, if they are.
    pub(in crate::engine::cpu) alpha: Option<Premultiplied<'a>>,
}

/// Colours that are weighted by alpha.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Premultiplied<'a> {
    pub(in crate::engine::cpu) by: &'a Alpha,
    /// Alpha's own plane of the result, if it has one, and bytes from a row of it to the next.
    pub(in crate::engine::cpu) convolved: Option<(&'a [u8], usize)>,
}

impl<'a> Source<'a> {
    /// Row `y` of a plane as it is convolved, in `room` if that is not how it lies in the picture.
    #[inline]
    pub(in crate::engine::cpu) fn row<'b>(&self, plane: usize, y: usize, room: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        match self.alpha {
            None => self.picture.row(plane, y),
            Some(weighted) => {
                let width = self.picture.layout.planes()[plane].width;
                self.pixels_under(weighted.by, (plane, y), &(0..width), room)
            }
        }
    }

    /// Some pixels of such a row.
    #[inline]
    pub(in crate::engine::cpu) fn pixels<'b>(
        &self,
        (plane, y): (usize, usize),
        pixels: &Range<usize>,
        room: &'b mut Vec<u8>,
    ) -> &'b [u8]
    where
        'a: 'b,
    {
        match self.alpha {
            None => self.picture.pixels((plane, y), pixels),
            Some(weighted) => self.pixels_under(weighted.by, (plane, y), pixels, room),
        }
    }

    /// [`Source::pixels`] where there is alpha.
    fn pixels_under<'b>(
        &self,
        alpha: &Alpha,
        (plane, y): (usize, usize),
        pixels: &Range<usize>,
        room: &'b mut Vec<u8>,
    ) -> &'b [u8]
    where
        'a: 'b,
    {
        let before = self.picture.pixels((plane, y), pixels);
        let Some(form) = alpha.forms[plane] else {
            return before;
        };
        let by = self.picture.pixels((alpha.plane, y), pixels);
        if alpha.is_opaque(form, by) {
            return before;
        }
        room.resize(room.len().max(before.len()), 0);
        let out = &mut room[..before.len()];
        let pixels = Pixels {
            before,
            alpha: by,
            out: &mut *out,
        };
        alpha.premultiply(form, pixels);
        out
    }

    /// Makes row `y` of a plane of the result from `row`, where what is convolved has been.
    pub(in crate::engine::cpu) fn finish(&self, plane: usize, y: usize, row: &mut [u8]) {
        let Some((weighted, form)) = self.alpha.and_then(|a| Some((a, a.by.forms[plane]?))) else {
            return;
        };
        let alpha = weighted.by;
        let before = self.picture.row(plane, y);
        let own = weighted
            .convolved
            .map(|(bytes, stride)| &bytes[y * stride..][..before.len()]);
        let constants = alpha.constants(form);
        let keeps = constants.gain == 1 << 16 && constants.offset == 0;
        let nothing_to_restore = || alpha.constants.restored == 0 || alpha.is_opaque(form, before);
        if keeps && alpha.is_opaque(form, own.unwrap_or(row)) && nothing_to_restore() {
            return;
        }
        let pixels = Pixels {
            before,
            alpha: own.unwrap_or(before),
            out: row,
        };
        alpha.unpremultiply(form, pixels);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::{Border, Chain, Plan, Planes};
    use crate::frame::Colour;

    /// A format's first form, on a plane of colours whose zero level is `level`.
    fn alpha(
        format: PixelFormat,
        level: u32,
        constants: UnpremultiplyConstants,
        set: InstructionSet,
    ) -> (Alpha, Form) {
        let chain = Chain {
            filters: vec!["box:size=3".parse().unwrap()],
            border: Border::Mirror,
            planes: Planes::AllWithAlpha,
            algorithm: crate::filter::Algorithm::Auto,
            alpha: Default::default(),
        };
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let mut alpha = Alpha::new(&plan.steps[0], format, set).unwrap();
        alpha.constants = constants;
        let form = Form {
            level,
            ..alpha.forms[0].unwrap()
        };
        (alpha, form)
    }

    /// Rows of pixels of every colour in `all` under the alpha `a`, and of that alpha: the pixels' own or,
    /// where they are one sample, beside them.
    fn rows(format: PixelFormat, all: &[i64], a: i64) -> [Vec<u8>; 2] {
        let bytes = format.bytes_per_sample();
        let put = |row: &mut Vec<u8>, sample: i64| row.extend_from_slice(&sample.to_le_bytes()[..bytes]);
        let (mut pixels, mut beside) = (Vec::new(), Vec::new());
        let channels = format.planes()[0].channels;
        for (at, _) in all.iter().enumerate() {
            let mut colours = (at..).map(|at| all[at % all.len()]);
            for channel in channels {
                let sample = if *channel == Channel::Alpha {
                    a
                } else {
                    colours.next().unwrap()
                };
                put(&mut pixels, sample);
            }
            put(&mut beside, a);
        }
        let beside = if channels.len() > 1 {
            pixels.clone()
        } else {
            beside
        };
        [pixels, beside]
    }

    /// Each colour of a row and what it became.
    fn colours<'a>(
        format: PixelFormat,
        before: &'a [u8],
        after: &'a [u8],
    ) -> impl Iterator<Item = (i64, i64)> + 'a {
        let bytes = format.bytes_per_sample();
        let channels = format.planes()[0].channels;
        let sample = |s: &[u8]| s.iter().rev().fold(0, |sum, &b| sum << 8 | i64::from(b));
        let pairs = before.chunks(bytes).zip(after.chunks(bytes));
        pairs
            .zip(channels.iter().cycle())
            .filter_map(move |((b, a), channel)| {
                let is_colour = *channel != Channel::Alpha;
                assert!(is_colour || a == b, "alpha changed");
                is_colour.then(|| (sample(b), sample(a)))
            })
    }

    /// Calls `test` with a format of each kind of pixel, zero levels, and samples: all of 8 bits, some of
    /// more.
    fn each_kind(mut test: impl FnMut(InstructionSet, PixelFormat, u32, &[i64])) {
        for set in InstructionSet::available() {
            for name in [
                "rgba",
                "argb",
                "ya8",
                "gbrap",
                "yuva444p9le",
                "gbrap10le",
                "rgba64le",
                "ya16le",
                "gbrap16le",
            ] {
                let format: PixelFormat = name.parse().unwrap();
                let max = i64::from(format.max_value());
                let step = if max == 255 { 1 } else { max as usize / 101 };
                let some = (0..=max).step_by(step);
                let all: Vec<i64> = some
                    .chain([1, 2, 3, max / 2, max / 2 + 1, max - 1, max])
                    .collect();
                for level in [0, max / 16 + 1, max / 2 + 1] {
                    test(set, format, level as u32, &all);
                }
            }
        }
    }

    const PLAIN: UnpremultiplyConstants = UnpremultiplyConstants {
        gain: 1 << 16,
        offset: 0,
        restored: 0,
    };

    #[test]
    fn every_format_with_alpha_has_its_colours_weighted() {
        for format in PixelFormat::all().filter(|f| f.has_alpha()) {
            let (alpha, _) = alpha(format, 0, PLAIN, InstructionSet::Portable);
            let colours = alpha.forms.iter().flatten().count();
            assert_eq!(colours, format.planes().len().max(2) - 1, "{format}");
        }
    }

    #[test]
    fn weights_are_those_of_the_formula() {
        each_kind(|set, format, level, all| {
            let (alpha, form) = alpha(format, level, PLAIN, set);
            if level > 0 && matches!(alpha.kind, Kind::Last1 | Kind::First1) {
                // Red, green and blue have no such level.
                return;
            }
            let max = i64::from(format.max_value());
            for &a in all {
                let [before, beside] = rows(format, all, a);
                let mut out = vec![0; before.len()];
                let pixels = Pixels {
                    before: &before,
                    alpha: &beside,
                    out: &mut out,
                };
                alpha.premultiply(form, pixels);
                let level = i64::from(level);
                for (c, got) in colours(format, &before, &out) {
                    let expected = level + (2 * (c - level) * a + max).div_euclid(2 * max);
                    assert_eq!(got, expected, "{set} {format} {c} {a} {level}");
                }
            }
        });
    }

    #[test]
    fn straight_colours_are_those_of_the_formula() {
        for (gain, offset) in [
            (1 << 16, 0),
            (1 << 16, -9),
            (1 << 16, 40_000_000),
            (1 << 16, -1_000_000_000),
            (21_845, 20),
            (65_535, -3),
            (1, 0),
        ] {
            each_kind(|set, format, level, all| {
                let constants = UnpremultiplyConstants {
                    gain,
                    offset,
                    restored: 0,
                };
                let (alpha, form) = alpha(format, level, constants, set);
                let max = i64::from(format.max_value());
                for &a in all {
                    let [before, beside] = rows(format, all, a);
                    let reversed: Vec<i64> = all.iter().rev().copied().collect();
                    let [original, _] = rows(format, &reversed, a);
                    let mut out = before.clone();
                    let pixels = Pixels {
                        before: &original,
                        alpha: &beside,
                        out: &mut out,
                    };
                    alpha.unpremultiply(form, pixels);
                    if a == 0 {
                        assert_eq!(out, original, "{set} {format}");
                        continue;
                    }
                    let level = i64::from(level);
                    for (c, got) in colours(format, &before, &out) {
                        let scaled = 2 * (c - level) * max * i64::from(gain) + (a << 16);
                        let offset = i64::from(if form.takes_bias { offset } else { 0 });
                        let expected = (level + scaled.div_euclid(a << 17) + offset).clamp(0, max);
                        assert_eq!(got, expected, "{set} {format} {c} {a} {level} {gain} {offset}");
                    }
                }
            });
        }
    }
}
