//! The mask files in samples/, and what `framepipe masks` prints.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use framepipe::filter::{Filter, Mask, NAMED_MASKS, factors, rank};

#[path = "../src/cli/commands/masks.rs"]
mod masks;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/masks")
}

fn sample(name: &str) -> Filter {
    let path = folder().join(name).with_extension("txt");
    format!("mask:file={}", path.display()).parse().unwrap()
}

fn named(spec: &str) -> Mask {
    spec.parse::<Filter>().unwrap().mask
}

fn shown(spec: &str) -> String {
    fitting(spec, None)
}

/// A mask, or the list of all, in so many columns.
fn fitting(spec: &str, columns: Option<usize>) -> String {
    let mut out = Vec::new();
    match spec {
        "" => masks::list(columns, &mut out).unwrap(),
        spec => masks::show(spec, columns, &mut out).unwrap(),
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_fit_the_terminal_and_lose_no_word() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for spec in ["", "gaussian:sigma=50", "box:size=31", "sobel"] {
        let whole = shown(spec);
        for columns in [60, 80] {
            let folded = fitting(spec, Some(columns));
            assert_eq!(words(&folded), words(&whole), "{spec}");
            let widest = folded.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{spec}: {folded}");
        }
    }
    assert!(shown("gaussian:sigma=50").lines().any(|line| line.len() > 500));
    // Of weights that are no integers, digits are left out; lists go on below their first number.
    let gaussian = fitting("gaussian:sigma=3", Some(60));
    assert!(gaussian.lines().all(|line| line.len() <= 60), "{gaussian}");
    let (_, row) = gaussian.split_once("\n  row     0").unwrap();
    assert!(
        row.lines().nth(1).unwrap().starts_with("          0."),
        "{gaussian}"
    );
    // Words that are wider stay whole.
    assert_eq!(words(&fitting("sobel", Some(1))), words(&shown("sobel")));
}

#[test]
fn sample_files_hold_the_named_masks() {
    for (file, spec) in [
        ("edge", "laplacian8"),
        ("laplacian", "laplacian4"),
        ("sharpen", "sharpen"),
        ("soft", "soft"),
        ("log5", "log5"),
        ("box-7", "box:size=7"),
        ("box-13", "box:size=13"),
        ("box-19", "box:size=19"),
        ("box-25", "box:size=25"),
        ("binomial-7", "binomial:size=7"),
        ("binomial-13", "binomial:size=13"),
        ("binomial-19", "binomial:size=19"),
        ("binomial-25", "binomial:size=25"),
    ] {
        assert_eq!(sample(file).mask, named(spec), "{file}");
    }
}

#[test]
fn sample_bells_are_near_the_named_ones() {
    for size in [3, 5, 7, 9, 11, 13, 15] {
        for (name, tolerance) in [("gaussian", 2e-4), ("log", 3e-6)] {
            let (found, expected) = (
                sample(&format!("{name}-{size}")).mask,
                named(&format!("{name}:size={size}")),
            );
            assert_eq!((found.width(), found.height()), (size, size));
            let centre = expected.at(size / 2, size / 2);
            for (f, e) in found.weights().iter().zip(expected.weights()) {
                assert!((f - e).abs() <= tolerance * centre, "{name}-{size}: {f} {e}");
            }
        }
        let gaussian = sample(&format!("gaussian-{size}")).mask;
        assert_eq!(gaussian.sum(), 1.0);
        assert!(factors(&gaussian).is_some());
        assert_eq!(sample(&format!("log-{size}")).mask.sum(), 0.0);
    }
}

#[test]
fn every_sample_file_is_a_mask_and_says_what_it_is() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}", path.display());
        let filter = sample(path.file_stem().unwrap().to_str().unwrap());
        assert!(rank(&filter.mask) >= 1);
        count += 1;
    }
    assert_eq!(count, 28);
    let relief = sample("relief");
    assert_eq!(relief.bias.value(), 128.0);
    assert_eq!(
        relief.mask.weights(),
        [-1.0, -0.5, 0.0, -0.5, 0.0, 0.5, 0.0, 0.5, 1.0]
    );
}

#[test]
fn the_list_names_every_mask_and_parameter() {
    let mut out = Vec::new();
    masks::list(None, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for mask in NAMED_MASKS {
        let line = text
            .lines()
            .find(|l| l.split_whitespace().next() == Some(mask.name));
        assert!(line.is_some_and(|l| l.contains(mask.about)), "{}", mask.name);
        for parameter in mask.parameters {
            assert!(text.contains(parameter.about));
        }
    }
    for word in [
        "mask ",
        "file ",
        "rows ",
        "divisor ",
        "bias ",
        "flip ",
        "scale ",
        "abs ",
        "(also 'edge')",
    ] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn exact_masks_are_shown_in_integers() {
    let text = shown("soft:bias=3");
    let expected = "\
soft         light blur: 1 2 1 / 2 4 2 / 1 2 1 over 16

weights, 3x3, over 16
  1 2 1
  2 4 2
  1 2 1
sum   1
bias  3
rank  1
separable: the product of
  row     1 2 1
  column  1 2 1, over 16

at 8 bits
direct: integers over 2^4, which add up to 16
  1 2 1
  2 4 2
  1 2 1
separable: two passes, with nothing rounded between them
  row     1 2 1, shifted by 0
  column  1 2 1, shifted by 4
";
    assert_eq!(text, expected);
}

#[test]
fn masks_of_higher_rank_are_shown_as_such() {
    let text = shown("edge");
    for line in [
        "weights, 3x3",
        "  -1  8 -1",
        "sum   0",
        "bias  0",
        "rank  2",
        "not separable",
        "direct: integers over 2^0, which add up to 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("two passes"));
}

#[test]
fn filters_of_several_masks_show_all_and_what_is_made_of_them() {
    let text = shown("sobel:scale=1/2");
    let expected = "\
sobel        edges of every direction: the magnitude of sobel-x and sobel-y

weights, 3x3
  -1  0  1
  -2  0  2
  -1  0  1
weights, 3x3
  -1 -2 -1
   0  0  0
   1  2  1
result  the root of the sum of the squares of both sums, times 1/2
bias  0

at 8 bits
direct: integers over 2^0
  -1  0  1
  -2  0  2
  -1  0  1
  -1 -2 -1
   0  0  0
   1  2  1
";
    assert_eq!(text, expected);
    let text = shown("kirsch");
    assert!(text.contains("the largest of the 8 sums"), "{text}");
    assert_eq!(text.matches("weights, 3x3").count(), 8);
    assert!(shown("laplacian8:abs").contains("the absolute value of the sum"));
    assert!(shown("unsharp:threshold=4").contains("threshold  4"));
}

#[test]
fn masks_of_decimals_are_shown_with_their_factors() {
    let text = shown("gaussian:size=3:sigma=1");
    assert!(text.contains("0.0751136"), "{text}");
    assert!(
        text.contains("  row     0.274068619 0.451862762 0.274068619\n"),
        "{text}"
    );
    assert!(text.contains("\nsum   1\n"), "{text}");
    assert!(text.contains("two passes"), "{text}");
    assert!(!shown("mask:rows=40000").contains("weights are too large"));
    assert!(shown("mask:rows=2147483648").contains("weights are too large"));
    assert!(shown("mask:rows=0 0 0").contains("rank  0\nnot separable"));
}

#[test]
fn weights_are_rounded_to_fit_the_columns() {
    for columns in [80, 120, 200] {
        let mut out = Vec::new();
        masks::show("gaussian:sigma=2", Some(columns), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("weights"))
            .skip(1);
        let rows: Vec<&str> = rows.take(13).collect();
        assert!(rows.iter().all(|row| row.len() <= columns), "{rows:?}");
        let middle: f64 = rows[6].split_whitespace().nth(6).unwrap().parse().unwrap();
        // 1 / (2 pi 2^2), of a sum that is cut off after three sigma.
        assert!((middle - 0.0399).abs() < 0.0005, "{middle}");
    }
}

#[test]
fn what_is_no_filter_is_not_shown() {
    let mut out = Vec::new();
    let error = masks::show("boks", None, &mut out).unwrap_err();
    assert!(error.to_string().contains("did you mean 'box'?"), "{error}");
    assert!(out.is_empty());
}
