//! The grammar of filters: `name:key=value:key=value`, and several with commas between them.
//!
//! As in FFmpeg the first `:` may be a `=`, and the first values may stand without their keys, in the order
//! in which `framepipe masks` lists them: `gaussian:sigma=2`, `gaussian=2` and `gaussian:2` are the same. A
//! key that switches something on may stand without `=true`: `laplacian8:abs`.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::advice::{advice, other_order};
use super::keys::{ABS, OWN_MASK, SWITCHES, known_keys, mask_name, places};
use super::mask_file::{LineProblem, MaskFile, MaskFileError, parse_numbers};
use super::matrix::{self, Divisor};
use crate::filter::masks::named::{Arguments, NamedMask, Others, THRESHOLD, named_mask};
use crate::filter::masks::number::{Number, NumberError};
use crate::filter::{Bias, Filter, MAX_BIAS, Mask, MaskError, Response, Scale};

/// Why a text is no filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// No mask of this name.
    #[error("'{name}' is no filter{}", advice(.name))]
    Unknown {
        /// What the user wrote.
        name: String,
    },
    /// A part after a colon has no equals sign, and no key is left that it could be for.
    #[error("filter '{label}': '{part}' is not of the form key=value; {} takes \
        {}", name(.label), keys(.label))]
    NoValue {
        /// The filter as the user wrote it.
        label: String,
        /// The part.
        part: String,
    },
    /// Values without keys, of which another program's filter of that name takes others.
    #[error("filter '{label}': '{part}' needs its key; {hint}")]
    OtherOrder {
        /// The filter as the user wrote it.
        label: String,
        /// The value.
        part: String,
        /// What to write.
        hint: &'static str,
    },
    /// A comma without a filter on one of its sides.
    #[error("filter '{label}' has a stray comma; one stands between two filters, such as gaussian:2,sharpen")]
    StrayComma {
        /// What the user wrote.
        label: String,
    },
    /// The filter does not take this key.
    #[error("filter '{label}' does not take '{key}'; {} takes {}", name(.label), keys(.label))]
    UnknownKey {
        /// The filter as the user wrote it.
        label: String,
        /// The key.
        key: String,
    },
    /// A key is given twice.
    #[error("filter '{label}' gives '{key}' twice; leave one")]
    Repeated {
        /// The filter as the user wrote it.
        label: String,
        /// The key.
        key: String,
    },
    /// A value is no number.
    #[error("filter '{label}', {key}: {problem}")]
    Number {
        /// The filter as the user wrote it.
        label: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        #[source]
        problem: NumberError,
    },
    /// A value is not what the key takes.
    #[error("filter '{label}': {key} is '{value}', and must be {expected}")]
    OutOfRange {
        /// The filter as the user wrote it.
        label: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// A scale for a Gaussian that fits no mask.
    #[error(
        "filter '{label}': a Gaussian that wide fits no mask, so that scale= has no weights to multiply; \
         leave it out, or give a size, at most 63"
    )]
    WideAndScaled {
        /// The filter as the user wrote it.
        label: String,
    },
    /// The user's own mask states no weights, or states them twice.
    #[error(
        "filter '{label}' must have either file=PATH or rows=NUMBERS, such as mask:rows=1 2 1;2 4 2;1 2 1"
    )]
    FileOrRows {
        /// The filter as the user wrote it.
        label: String,
    },
    /// A row of `rows=` is wrong.
    #[error("filter '{label}', row {row}: {problem}")]
    Row {
        /// The filter as the user wrote it.
        label: String,
        /// Counted from 1.
        row: usize,
        /// What is wrong with it.
        #[source]
        problem: LineProblem,
    },
    /// The numbers make no mask.
    #[error("filter '{label}': {cause}")]
    Mask {
        /// The filter as the user wrote it.
        label: String,
        /// Why.
        #[source]
        cause: MaskError,
    },
    /// The mask file cannot be used.
    #[error("filter '{label}': {cause}")]
    File {
        /// The filter as the user wrote it.
        label: String,
        /// Why.
        #[source]
        cause: MaskFileError,
    },
}

impl FromStr for Filter {
    type Err = FilterError;

    /// Parses a filter. `mask:file=PATH` reads the file.
    fn from_str(text: &str) -> Result<Filter, FilterError> {
        filter(text, text)
    }
}

/// Parses a filter that may be one of several in the `whole` that the user wrote.
fn filter(text: &str, whole: &str) -> Result<Filter, FilterError> {
    let label = text.trim();
    let name = name(label);
    let known = mask_name(name);
    let found = match known.and_then(named_mask) {
        _ if known == Some(OWN_MASK) => own(label),
        Some(named) => from_named(label, named),
        None => Err(FilterError::Unknown {
            name: name.to_owned(),
        }),
    };
    // The name of a file may end in a comma.
    let is_stray = label.starts_with(',') || label.ends_with(',') || label.is_empty() && whole.contains(',');
    match found {
        Err(_) if is_stray && !label.contains("file=") => Err(FilterError::StrayComma {
            label: whole.trim().to_owned(),
        }),
        found => found,
    }
}

impl Filter {
    /// True if the user states the mask's weights, in rows or in a file.
    pub fn is_own(&self) -> bool {
        mask_name(name(&self.label)) == Some(OWN_MASK)
    }

    /// True if the weights were read from a file.
    pub fn is_from_file(&self) -> bool {
        self.file().is_some()
    }

    /// The file that the weights were read from, if they were.
    pub fn file(&self) -> Option<&Path> {
        let parts = parts(&self.label).ok().filter(|_| self.is_own())?;
        let file = parts.into_iter().find(|&(key, _)| key == "file");
        file.map(|(_, path)| Path::new(path))
    }
}

/// Parses filters with commas between them, such as `gaussian:2,laplacian8`.
///
/// Commas also separate the numbers of a mask's row, and stand in names of files: a comma ends a filter only
/// where a letter follows, and after `file=` only where a filter's name follows.
pub(in crate::filter) fn filters(text: &str) -> Result<Vec<Filter>, FilterError> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(',') {
        let next = text[at + 1..].trim_start();
        let ends = match text[begin..at].contains("file=") {
            true => mask_name(name(next)).is_some(),
            false => next.starts_with(char::is_alphabetic),
        };
        if ends {
            found.push(filter(&text[begin..at], text)?);
            begin = at + 1;
        }
    }
    found.push(filter(&text[begin..], text)?);
    Ok(found)
}

fn from_named(label: &str, named: &NamedMask) -> Result<Filter, FilterError> {
    let mut arguments = Arguments {
        parameters: named.parameters,
        given: Vec::new(),
        caveat: RefCell::default(),
        wide: Cell::default(),
    };
    let mut common = Common::default();
    for (key, value) in parts(label)? {
        if common.take(label, key, value)? {
            continue;
        }
        // Only known keys come this far.
        if let Some(parameter) = named.parameters.iter().find(|p| p.name == key) {
            let number = number(label, key, value)?.value;
            if !parameter.range.holds(number) {
                return Err(FilterError::OutOfRange {
                    label: label.to_owned(),
                    key: key.to_owned(),
                    value: value.to_owned(),
                    expected: parameter.range.to_string(),
                });
            }
            arguments.given.push((parameter.name, number));
        }
    }
    let mask = (named.build)(&arguments);
    let is_scaled = common.scale.is_some();
    let filter = common.filter(label, (mask, &named.others), Bias::NONE)?;
    let response = match arguments.wide.get() {
        Some(_) if is_scaled => {
            return Err(FilterError::WideAndScaled {
                label: label.to_owned(),
            });
        }
        Some(sigma) => Response::WideGaussian { sigma },
        None => filter.response,
    };
    Ok(Filter {
        response,
        threshold: arguments.value(THRESHOLD),
        caveat: arguments.caveat.take().map(|caveat| format!("{label}: {caveat}")),
        ..filter
    })
}

fn own(label: &str) -> Result<Filter, FilterError> {
    let mut common = Common::default();
    let (mut file, mut rows, mut divisor) = (None, None, None);
    for (key, value) in parts(label)? {
        if common.take(label, key, value)? {
            continue;
        }
        match key {
            "file" => file = Some(value).filter(|name| !name.is_empty()).map(PathBuf::from),
            "rows" => rows = Some(value),
            "divisor" if value == "sum" => divisor = Some(Divisor::Sum),
            _ => divisor = Some(Divisor::Number(number(label, key, value)?)),
        }
    }
    let (rows, stated, bias) = match (file, rows) {
        (Some(path), None) => from_file(label, &path)?,
        (None, Some(rows)) => (from_rows(label, rows)?, Divisor::One, Bias::NONE),
        _ => {
            return Err(FilterError::FileOrRows {
                label: label.to_owned(),
            });
        }
    };
    let mask = matrix::mask(&rows, divisor.unwrap_or(stated));
    common.filter(label, (mask, &Others::None), bias)
}

fn from_file(label: &str, path: &Path) -> Result<(Vec<Vec<Number>>, Divisor, Bias), FilterError> {
    match MaskFile::read(path) {
        Ok(file) => Ok((file.rows, file.divisor, file.bias)),
        Err(cause) => Err(FilterError::File {
            label: label.to_owned(),
            cause,
        }),
    }
}

fn from_rows(label: &str, text: &str) -> Result<Vec<Vec<Number>>, FilterError> {
    let wrong = |at, problem| FilterError::Row {
        label: label.to_owned(),
        row: at + 1,
        problem,
    };
    text.split(';')
        .enumerate()
        .map(|(at, row)| parse_numbers(row).map_err(|problem| wrong(at, problem)))
        .collect()
}

/// The keys that every filter takes.
#[derive(Default)]
struct Common {
    bias: Option<Bias>,
    flip: bool,
    scale: Option<Number>,
    abs: bool,
}

impl Common {
    /// True if `key` was one of them.
    fn take(&mut self, label: &str, key: &str, value: &str) -> Result<bool, FilterError> {
        let wrong = |expected: String| FilterError::OutOfRange {
            label: label.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        match key {
            "bias" => {
                let bias = number(label, key, value)?;
                if bias.value.abs() > MAX_BIAS {
                    return Err(wrong(format!("a number from -{MAX_BIAS} to {MAX_BIAS}")));
                }
                self.bias = Some(bias.into());
            }
            "flip" | ABS => {
                let is_on = value.parse().map_err(|_| wrong("true or false".to_owned()))?;
                *(if key == ABS { &mut self.abs } else { &mut self.flip }) = is_on;
            }
            "scale" => {
                let (least, most) = Scale::RANGE;
                let scale = number(label, key, value)?;
                if !(least..=most).contains(&scale.value) {
                    return Err(wrong(format!("a number from {least} to {most}")));
                }
                self.scale = Some(scale);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The filter of a mask, and of the masks beside it if its name stands for several.
    fn filter(
        self,
        label: &str,
        (mask, others): (Result<Mask, MaskError>, &Others),
        bias: Bias,
    ) -> Result<Filter, FilterError> {
        let wrong = |cause| FilterError::Mask {
            label: label.to_owned(),
            cause,
        };
        let scaled = |mask: Mask| match &self.scale {
            Some(scale) => mask.scaled(scale),
            None => Ok(mask),
        };
        let mask = mask.map_err(wrong)?;
        let scale = self.scale.map_or(Scale::ONE, |scale| Scale::nearest(scale.value));
        let (mask, response) = match others.of(&mask).map_err(wrong)? {
            Response::Linear if self.abs => (scaled(mask).map_err(wrong)?, Response::Absolute),
            Response::Linear | Response::Absolute | Response::WideGaussian { .. } => {
                (scaled(mask).map_err(wrong)?, Response::Linear)
            }
            Response::Magnitude { across, .. } => (mask, Response::Magnitude { across, scale }),
            Response::Largest { others } => {
                let others = others.into_iter().map(scaled).collect::<Result<_, _>>();
                let others = others.map_err(wrong)?;
                (scaled(mask).map_err(wrong)?, Response::Largest { others })
            }
        };
        let filter = Filter {
            response,
            bias: self.bias.unwrap_or(bias),
            ..Filter::of_mask(label, mask)
        };
        Ok(if self.flip { filter.flipped() } else { filter })
    }
}

fn number(label: &str, key: &str, value: &str) -> Result<Number, FilterError> {
    value.parse().map_err(|problem| FilterError::Number {
        label: label.to_owned(),
        key: key.to_owned(),
        problem,
    })
}

/// The word before the first colon or equals sign.
fn name(label: &str) -> &str {
    label.split([':', '=']).next().unwrap_or_default().trim()
}

/// The keys and values of a filter; each key is known to the filter, and none comes twice. A path may hold
/// colons: it ends where a known key follows.
fn parts(label: &str) -> Result<Vec<(&str, &str)>, FilterError> {
    let known = known_keys(name(label));
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut by_place = places(name(label)).into_iter();
    let mut rest = label.split_once([':', '=']).map_or("", |(_, rest)| rest);
    // `None` after a last colon, which then has nothing behind it.
    let mut more = label.contains([':', '=']);
    let separator = label.find([':', '=']);
    let is_ffmpegs = separator.is_some_and(|at| label[at..].starts_with('='));
    while more {
        let is_path = rest.starts_with("file=") && known.contains(&"file");
        let end = rest.match_indices(':').map(|(at, _)| at).find(|at| {
            let key = rest[at + 1..].split_once('=').map_or("", |(key, _)| key.trim());
            !is_path || known.contains(&key)
        });
        let part = &rest[..end.unwrap_or(rest.len())];
        more = end.is_some();
        rest = end.map_or("", |at| &rest[at + 1..]);
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => {
                // Values without keys come first.
                by_place = Vec::new().into_iter();
                (key.trim(), value.trim())
            }
            None if SWITCHES.contains(&part.trim()) => (part.trim(), "true"),
            None => match by_place.next().filter(|_| !part.trim().is_empty()) {
                Some(_) if let Some(hint) = other_order(name(label), found.len(), is_ffmpegs) => {
                    return Err(FilterError::OtherOrder {
                        label: label.to_owned(),
                        part: part.to_owned(),
                        hint,
                    });
                }
                Some(key) => (key, part.trim()),
                None => {
                    return Err(FilterError::NoValue {
                        label: label.to_owned(),
                        part: part.to_owned(),
                    });
                }
            },
        };
        if !known.contains(&key) {
            return Err(FilterError::UnknownKey {
                label: label.to_owned(),
                key: key.to_owned(),
            });
        }
        if found.iter().any(|(other, _)| *other == key) {
            return Err(FilterError::Repeated {
                label: label.to_owned(),
                key: key.to_owned(),
            });
        }
        found.push((key, value));
    }
    Ok(found)
}

/// The keys of the filter that `label` begins with, for a sentence.
fn keys(label: &str) -> String {
    known_keys(name(label)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::masks::named::NAMED_MASKS;

    fn parse(text: &str) -> Result<Filter, FilterError> {
        text.parse()
    }

    fn refused(text: &str, expected: &[&str]) {
        let error = parse(text).unwrap_err().to_string();
        for words in expected {
            assert!(error.contains(words), "{text:?} gave: {error}");
        }
    }

    #[test]
    fn filters_are_read_with_their_parameters() {
        let filter = parse("box:size=7:bias=-1/2").unwrap();
        assert_eq!(
            (filter.mask.width(), filter.mask.height(), filter.bias.value()),
            (7, 7, -0.5)
        );
        assert_eq!(filter.label, "box:size=7:bias=-1/2");
        assert_eq!(parse("gaussian:sigma=2").unwrap().mask.width(), 13);
        assert_eq!(parse("gaussian:size=5").unwrap().mask.width(), 5);
        assert_eq!(parse("gaussian:size=5:sigma=30").unwrap().mask.width(), 5);
        let wide = parse("gaussian:sigma=30").unwrap();
        assert_eq!(wide.response, Response::WideGaussian { sigma: 30.0 });
        assert_eq!((wide.mask.width(), wide.caveat), (63, None));
        assert_eq!(parse("gaussian:sigma=10.3").unwrap().response, Response::Linear);
        assert_eq!(
            parse("gaussian:sigma=30:size=63").unwrap().response,
            Response::Linear
        );
        refused("gaussian:sigma=30:scale=2", &["fits no mask"]);
        assert_eq!(parse("edge").unwrap().mask, parse("laplacian8").unwrap().mask);
        assert_eq!(
            parse("sobel-x:flip=true").unwrap().mask.weights(),
            [1.0, 0.0, -1.0, 2.0, 0.0, -2.0, 1.0, 0.0, -1.0]
        );
        assert_eq!(
            parse("sobel-x:flip=false").unwrap().mask,
            parse("sobel-x").unwrap().mask
        );
    }

    #[test]
    fn every_name_and_alias_is_read_with_its_defaults() {
        for named in NAMED_MASKS {
            let filter = parse(named.name).unwrap();
            assert_eq!(filter.bias.value(), 0.0);
            if let Some(alias) = named.alias {
                assert_eq!(parse(alias).unwrap().mask, filter.mask);
            }
        }
    }

    #[test]
    fn own_masks_are_read_exactly() {
        let soft = parse("mask:rows=1 2 1;2 4 2;1 2 1:divisor=16:bias=128").unwrap();
        assert_eq!(soft.bias.value(), 128.0);
        assert_eq!(soft.mask, parse("soft").unwrap().mask);
        let fractions = parse("mask:rows=1/16 0.125 1/16;1/8,1/4,.125;0.0625 2/16 1/16").unwrap();
        assert_eq!(fractions.mask, soft.mask);
        let summed = parse("mask:divisor=sum:rows=1 2 1;2 4 2;1 2 1").unwrap();
        assert_eq!(summed.mask, soft.mask);
        let row = parse("mask:rows=-1 0 1:divisor=1/2").unwrap();
        assert_eq!(row.mask.weights(), [-2.0, 0.0, 2.0]);
    }

    #[test]
    fn mask_files_are_read_and_overridden() {
        let folder = tempfile::tempdir().unwrap();
        // A colon in the path, and what looks like a key that the filter does not have.
        let path = folder.path().join("my:mask:size=3.txt");
        std::fs::write(&path, "divisor 2\nbias 10\n1 2 3\n").unwrap();
        let path = path.display();
        let filter = parse(&format!("mask:file={path}")).unwrap();
        assert_eq!(
            (filter.mask.weights(), filter.bias.value()),
            (&[0.5, 1.0, 1.5][..], 10.0)
        );
        let filter = parse(&format!("mask:file={path}:divisor=sum:bias=0:flip=true")).unwrap();
        assert_eq!(filter.mask.exact().unwrap().numerators, [3, 2, 1]);
        assert_eq!((filter.mask.sum(), filter.bias.value()), (1.0, 0.0));
        let filter = parse(&format!("mask:divisor=4:file={path}:bias=1")).unwrap();
        assert_eq!((filter.mask.sum(), filter.bias.value()), (1.5, 1.0));
    }

    #[test]
    fn unknown_words_are_reported_with_what_there_is() {
        refused(
            "gausian",
            &[
                "'gausian' is no filter; did you mean 'gaussian'?",
                "sobel-x",
                "mask",
            ],
        );
        refused("sobl", &["did you mean 'sobel'?"]);
        refused("edges", &["edges are found by sobel"]);
        refused("blur", &["'blur' is no filter: blurs are gaussian"]);
        refused("avgblur=3", &["box:size=7 has a radius of 3"]);
        refused("median", &["no convolution"]);
        refused("emobss:bias=3", &["did you mean 'emboss'?"]);
        refused("", &["'' is no filter; the filters are identity, box"]);
        let error = parse("vignette").unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
        refused(
            "box:sigma=2",
            &[
                "'box:sigma=2' does not take 'sigma'",
                "box takes size, bias, flip, scale, abs",
            ],
        );
        refused("soft:size=3", &["soft takes bias, flip, scale, abs"]);
        refused(
            "mask:row=1",
            &["mask takes file, rows, divisor, bias, flip, scale, abs"],
        );
        refused("box:", &["'' is not of the form key=value"]);
        refused("box:7:9", &["'9' is not of the form key=value; box takes size"]);
        refused(
            "box:bias=1:7",
            &["'7' is not of the form key=value; box takes size"],
        );
        refused(
            "soft:3",
            &["'3' is not of the form key=value; soft takes bias, flip"],
        );
        refused("box:size=3:size=5", &["gives 'size' twice"]);
    }

    #[test]
    fn values_may_stand_without_their_keys() {
        let mask = |text: &str| parse(text).unwrap().mask;
        for text in [
            "gaussian:2",
            "gaussian=2",
            "gaussian=sigma=2",
            "Gaussian: 2",
            "gblur=2",
            "gblur=sigma=2",
        ] {
            assert_eq!(mask(text), mask("gaussian:sigma=2"), "{text}");
        }
        assert_eq!(mask("unsharp:1.5:0.8"), mask("unsharp:sigma=1.5:amount=0.8"));
        assert_eq!(
            mask("unsharp=sigma=1.5:amount=0.8"),
            mask("unsharp:sigma=1.5:amount=0.8")
        );
        assert_eq!(parse("box=7:bias=3").unwrap().bias.value(), 3.0);
        assert_eq!(
            mask("mask=1 2 1;2 4 2;1 2 1:divisor=sum"),
            mask("mask:rows=1 2 1;2 4 2;1 2 1:divisor=16")
        );
        refused("unsharp:1.5:sigma=2", &["gives 'sigma' twice"]);
        // As FFmpeg has them: sizes and an amount, sigma and steps.
        let advice = "unsharp:size=5:amount=1 with --planes luma";
        refused("unsharp:5:5:1.0", &["'1.0' needs its key", advice]);
        for label in ["unsharp=5:5:1.0", "unsharp=5", "Unsharp=5:amount=1"] {
            refused(label, &["'5' needs its key", advice]);
        }
        refused("gblur=3:1", &["'1' needs its key", "gaussian:sigma=3"]);
        assert_eq!(mask("gaussian=3:5"), mask("gaussian:sigma=3:size=5"));
        assert!(parse("Mask=1 2 1").unwrap().is_own() && !parse("box=7").unwrap().is_own());
        assert!(!parse("mask:1 2 1").unwrap().is_from_file());
        let file = concat!(
            "mask:file\t=",
            env!("CARGO_MANIFEST_DIR"),
            "/samples/masks/soft.txt"
        );
        let file = parse(file).unwrap();
        assert!(file.is_from_file() && file.file().unwrap().ends_with("samples/masks/soft.txt"));
        refused("gaussian:two", &["sigma: 'two' is not a number"]);
    }

    #[test]
    fn gradients_are_several_masks_and_abs_and_scale_change_one() {
        let across = |text: &str| match parse(text).unwrap().response {
            Response::Magnitude { across, scale } => (across, scale.numerator(), scale.denominator()),
            other => panic!("{text} is {other:?}"),
        };
        let mask = |text: &str| parse(text).unwrap().mask;
        for name in ["sobel", "prewitt", "scharr"] {
            assert_eq!(mask(name), mask(&format!("{name}-x")));
            assert_eq!(across(name), (mask(&format!("{name}-y")), 1, 1));
        }
        let (falling, ..) = across("roberts:flip=true");
        assert_eq!(falling, across("roberts").0.flipped());
        assert_eq!(mask("sobel:scale=3/4"), mask("sobel"));
        assert_eq!(
            (across("sobel:scale=3/4").1, across("sobel:scale=0.3").2),
            (3, 10)
        );
        let kirsch = parse("kirsch:scale=1/2").unwrap();
        assert_eq!(kirsch.masks().count(), 8);
        assert!(
            kirsch
                .masks()
                .all(|m| m.sum() == 0.0 && m.exact().unwrap().divisor == 2)
        );
        let edge = parse("laplacian8:abs:scale=2").unwrap();
        assert_eq!((edge.mask.at(1, 1), &edge.response), (16.0, &Response::Absolute));
        assert_eq!(
            edge,
            Filter {
                label: edge.label.clone(),
                ..parse("edge:scale=2:abs=true").unwrap()
            }
        );
        assert_eq!(parse("sobel-x:abs=false").unwrap().response, Response::Linear);
        assert_eq!(mask("sobel-x:flip"), mask("sobel-x:flip=true"));
        assert_eq!(mask("mask:rows=1 pi 1".replace("pi", "0.1").as_str()).sum(), 2.1);
        assert!((mask("gaussian:scale=0.3").sum() - 0.3).abs() < 1e-12);
        assert_eq!(parse("unsharp:threshold=4").unwrap().threshold, 4.0);
        refused(
            "sobel:abs",
            &["does not take 'abs'; sobel takes bias, flip, scale"],
        );
        // Floating-point samples and chroma are negative, too.
        assert_eq!(parse("box:abs").unwrap().response, Response::Absolute);
        refused("sobel:scale=0", &["scale is '0'", "from 0.001 to 1000"]);
        refused("sobel-x:scale=-1", &["from 0.001 to 1000"]);
        refused("sobel-x:abs=maybe", &["true or false"]);
        refused("unsharp:threshold=-1", &["a number from 0 to 255"]);
        refused(
            "sobel:2",
            &["'2' is not of the form key=value; sobel takes bias, flip, scale"],
        );
    }

    #[test]
    fn commas_separate_filters_and_numbers() {
        let labels = |text: &str| -> Vec<String> {
            filters(text)
                .unwrap()
                .into_iter()
                .map(|filter| filter.label)
                .collect()
        };
        assert_eq!(labels("box"), ["box"]);
        assert_eq!(labels("gaussian:2, laplacian8"), ["gaussian:2", "laplacian8"]);
        assert_eq!(
            labels("mask:rows=1,2,1;2,4,2;1,2,1:divisor=16,box:3"),
            ["mask:rows=1,2,1;2,4,2;1,2,1:divisor=16", "box:3"]
        );
        let words = |text: &str| filters(text).unwrap_err().to_string();
        assert!(words("gaussian,laplacain8").contains("did you mean 'laplacian8'?"));
        // Both are names of files that are not there.
        assert!(words("mask:file=/nowhere/a,b.txt").contains("/nowhere/a,b.txt cannot be read"));
        assert!(words("mask:file=/nowhere/a,box:3").contains("/nowhere/a cannot be read"));
    }

    #[test]
    fn values_out_of_range_are_reported() {
        let odd = "must be an odd integer from 1 to 63";
        for size in ["4", "0", "-3", "65", "3.5", "1/3"] {
            refused(&format!("box:size={size}"), &[odd, size]);
        }
        for value in ["0", "-1", "-0.0"] {
            refused(
                &format!("gaussian:sigma={value}"),
                &["sigma is", "a number above 0"],
            );
        }
        for value in ["nan", "inf", "-inf", "1e999"] {
            refused(&format!("gaussian:sigma={value}"), &["is not a finite number"]);
            refused(&format!("box:bias={value}"), &["bias", "is not a finite number"]);
        }
        refused("gaussian:sigma=two", &["'two' is not a number"]);
        refused("box:bias=65536", &["from -65535 to 65535"]);
        refused("box:bias=-65535.5", &["from -65535 to 65535"]);
        refused("box:flip=yes", &["true or false"]);
        refused("motion:length=64", &["from 1 to 63"]);
        refused("disk:radius=0", &["above 0 and up to 31.5"]);
        refused("log:sigma=0.1", &["from 0.3 to 20"]);
        refused("log:size=1", &["an odd integer from 3 to 63"]);
    }

    #[test]
    fn own_masks_that_are_none_are_reported() {
        refused("mask", &["must have either file=PATH or rows=NUMBERS"]);
        refused("mask:rows=1:file=x", &["must have either"]);
        refused("mask:rows=1 2;3 4", &["2x2 has no centre"]);
        refused("mask:rows=1 2 1;1 2", &["row 2 of the mask has 2 numbers"]);
        refused("mask:rows=1 nan 1", &["row 1: 'nan' is not a finite number"]);
        refused("mask:rows=1 1 1;1,,1", &["row 2: a number is missing"]);
        refused("mask:rows=", &["row 1: there is no number"]);
        refused("mask:file=", &["must have either file=PATH or rows="]);
        refused("mask:rows=1 1 1:divisor=0", &["divisor is zero"]);
        refused("mask:rows=-1 0 1:divisor=sum", &["add up to zero"]);
        refused("mask:rows=1:divisor=all", &["divisor: 'all' is not a number"]);
        refused(
            "mask:file=/nowhere/mask.txt",
            &["/nowhere/mask.txt cannot be read"],
        );
        let wide = ["1"; 65].join(" ");
        refused(&format!("mask:rows={wide}"), &["65x1 is too large"]);
    }
}
