//! What is written on the command line: filters, borders, planes, rates, geometries, names.

use framepipe::convert::flatten::Background;
use framepipe::engine::cpu::InstructionSet;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Plan, Planes};
use framepipe::frame::{Colour, PixelFormat, parse_rate};
use framepipe::source::{raw::RawSpec, synthetic::SyntheticSpec};
use framepipe::still::{ImageKind, pattern::Pattern};
use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

/// The plan of a larger mask takes its time, and is no parser.
const MOST_WEIGHTS: usize = 225;

/// Reads `text`; an error has a sentence.
fn read<T: FromStr<Err: Display>>(text: &str) -> Option<T> {
    text.parse()
        .map_err(|e: T::Err| assert!(!e.to_string().is_empty()))
        .ok()
}

/// Reads `text`; what is read is written so that it is read again as the same.
fn again<T: FromStr<Err: Display + Debug> + Display>(text: &str) -> Option<T> {
    let value: T = read(text)?;
    let written = value.to_string();
    assert_eq!(written.parse::<T>().unwrap().to_string(), written, "{text}");
    Some(value)
}

fn filter(text: &str, which: u8) {
    // A mask's file could be any file of this machine.
    let Some(filter) = Some(text)
        .filter(|t| !t.contains("file"))
        .and_then(read::<Filter>)
    else {
        return;
    };
    let mask = &filter.mask;
    assert!(mask.width() % 2 == 1 && mask.height() % 2 == 1);
    assert!(
        mask.weights().iter().all(|w| w.is_finite()) && filter.bias.value().is_finite(),
        "{text}"
    );
    assert_eq!(mask.flipped().flipped(), *mask);
    if mask.width() * mask.height() > MOST_WEIGHTS {
        return;
    }
    let formats: Vec<_> = PixelFormat::integers().collect();
    let format = formats[usize::from(which / 8) % formats.len()];
    let (border, planes) = (Border::default(), Planes::default());
    let algorithm = [Algorithm::Auto, Algorithm::Direct, Algorithm::Separable][usize::from(which % 8)];
    let filters = vec![filter];
    let chain = Chain {
        filters,
        border,
        planes,
        algorithm,
        alpha: Default::default(),
    };
    if let Err(error) = Plan::new(&chain, format, &Colour::default()) {
        assert!(!error.to_string().is_empty());
    }
}

fn pattern(text: &str) {
    let Ok(Some(pattern)) = Pattern::parse(Path::new(text)) else {
        return;
    };
    for number in [0, 1, -1, 42, 99_999, i64::MAX, i64::MIN] {
        let name = pattern.name(number);
        let file_name = name.file_name().and_then(|n| n.to_str()).unwrap();
        assert_eq!(pattern.number(file_name), Some(number), "{text}");
    }
}

pub fn run(data: &[u8]) {
    let Some((&which, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match which % 8 {
        0..=2 => filter(text, which),
        3 => {
            if let Some(border) = again::<Border>(text) {
                for (at, len) in (-70..70).flat_map(|at| [(at, 1), (at, 2), (at, 7)]) {
                    assert!(border.index(at, len).is_none_or(|i| i < len));
                }
            }
        }
        4 => {
            if let Some(planes) = again::<Planes>(text) {
                for format in PixelFormat::all() {
                    if let Err(error) = planes.check(format) {
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        }
        5 => match parse_rate(text) {
            Ok(rate) => assert!(rate.num > 0 && rate.den > 0, "{text}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        6 => {
            again::<RawSpec>(text);
            again::<SyntheticSpec>(text);
        }
        _ => {
            pattern(text);
            again::<Algorithm>(text);
            again::<InstructionSet>(text);
            again::<PixelFormat>(text);
            read::<ImageKind>(text);
            read::<Background>(text);
        }
    }
}
