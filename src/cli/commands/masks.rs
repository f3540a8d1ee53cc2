//! `framepipe masks`: lists the filters, or the content of one.

use std::io::{self, Write};

use framepipe::filter::{
    Algorithm, Border, COMMON_KEYS, Chain, Division, Factors, Filter, FilterError, Kernel, Mask, NAMED_MASKS,
    NamedMask, OWN_MASK, OWN_MASK_KEYS, Plan, PlanError, Planes, Preset, PyramidGrid, Response, factors,
    named_mask, rank,
};
use framepipe::frame::{Colour, PixelFormat};

/// Why a mask is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShowError {
    /// There is no such filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There are several.
    #[error("'{0}' is a chain of filters, and the weights of one filter are shown; name one of them")]
    Several(String),
    /// The text cannot be written.
    #[error("the mask cannot be printed: {0}")]
    Write(#[from] io::Error),
}

/// Lists every filter with its parameters, in lines that fit `columns`, if those are known.
pub(crate) fn list(columns: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    write_list(&mut text)?;
    fold(&text, columns, out)
}

fn write_list(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "A filter is NAME or NAME:KEY=VALUE:KEY=VALUE, such as gaussian:sigma=2.\n"
    )?;
    for named in NAMED_MASKS {
        describe(named, out)?;
    }
    writeln!(
        out,
        "{OWN_MASK:<12} your own numbers: integers, decimals or fractions; odd sides up to 63"
    )?;
    for key in OWN_MASK_KEYS {
        writeln!(out, "  {:<10} {}", key.name, key.about)?;
    }
    writeln!(out, "\nEvery filter takes")?;
    for key in COMMON_KEYS {
        writeln!(out, "  {:<10} {}", key.name, key.about)?;
    }
    writeln!(
        out,
        "\n'framepipe masks FILTER' prints a filter's weights, sum, rank and factors."
    )
}

/// Prints the content of the filter `spec`: weights, sum, bias, rank, factors, and the integers that 8-bit
/// pixels are multiplied by. Lines fit `columns`, if those are known.
pub(crate) fn show(spec: &str, columns: Option<usize>, out: &mut impl Write) -> Result<(), ShowError> {
    let mut text = Vec::new();
    write_mask(spec, columns, &mut text)?;
    Ok(fold(&text, columns, out)?)
}

fn write_mask(spec: &str, columns: Option<usize>, out: &mut impl Write) -> Result<(), ShowError> {
    let filter: Filter = match spec.parse() {
        Err(_) if spec.parse::<Chain>().is_ok() => return Err(ShowError::Several(spec.to_owned())),
        filter => filter?,
    };
    let mask = &filter.mask;
    let name = filter.label.split(':').next().unwrap_or_default();
    if let Some(named) = named_mask(name) {
        describe(named, out)?;
        writeln!(out)?;
    }
    // Of a Gaussian that fits no mask there is only a middle to show.
    if !matches!(filter.response, Response::WideGaussian { .. }) {
        for mask in filter.masks() {
            weights(mask, columns, out)?;
        }
    }
    match &filter.response {
        Response::Linear => writeln!(out, "sum   {}", decimal(mask.sum()))?,
        response => writeln!(out, "result  {response}")?,
    }
    writeln!(out, "bias  {}", decimal(filter.bias.value()))?;
    if filter.threshold > 0.0 {
        writeln!(out, "threshold  {}", decimal(filter.threshold))?;
    }
    if let Some(caveat) = &filter.caveat {
        writeln!(out, "note  {caveat}")?;
    }
    if filter.response != Response::Linear {
        writeln!(out, "\nat 8 bits")?;
        let algorithm = match filter.response {
            Response::WideGaussian { .. } => Algorithm::Auto,
            _ => Algorithm::Direct,
        };
        return Ok(quantised(&filter, algorithm, columns, out)?);
    }
    writeln!(out, "rank  {}", rank(mask))?;
    match factors(mask) {
        Some(found) => product(mask, &found, out)?,
        None => writeln!(out, "not separable")?,
    }
    writeln!(out, "\nat 8 bits")?;
    quantised(&filter, Algorithm::Direct, columns, out)?;
    if factors(mask).is_some() {
        quantised(&filter, Algorithm::Separable, columns, out)?;
    }
    Ok(())
}

fn describe(named: &NamedMask, out: &mut impl Write) -> io::Result<()> {
    let also = named
        .alias
        .map_or(String::new(), |alias| format!(" (also '{alias}')"));
    writeln!(out, "{:<12} {}{also}", named.name, named.about)?;
    for parameter in named.parameters {
        let default = match parameter.default {
            Preset::Value(value) => decimal(value),
            Preset::Follows(rule) => rule.to_owned(),
        };
        let (about, range) = (parameter.about, parameter.range);
        writeln!(
            out,
            "  {:<10} {about}; {range} (default {default})",
            parameter.name
        )?;
    }
    Ok(())
}

fn weights(mask: &Mask, columns: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    match mask.exact() {
        Some(exact) if exact.divisor == 1 => {
            writeln!(out, "weights, {mask}")?;
            table(&exact.numerators, mask.width(), columns, out)
        }
        Some(exact) => {
            writeln!(out, "weights, {mask}, over {}", exact.divisor)?;
            table(&exact.numerators, mask.width(), columns, out)
        }
        None => {
            writeln!(out, "weights, {mask}")?;
            table(&fitting(mask, columns), mask.width(), columns, out)
        }
    }
}

fn product(mask: &Mask, found: &Factors, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "separable: the product of")?;
    let words = |factor: &[f64]| factor.iter().map(|&w| decimal(w)).collect::<Vec<_>>().join(" ");
    writeln!(out, "  row     {}", words(&found.row))?;
    match mask.exact() {
        Some(exact) if exact.divisor != 1 => {
            let column: Vec<f64> = found
                .column
                .iter()
                .map(|w| (w * exact.divisor as f64).round())
                .collect();
            writeln!(out, "  column  {}, over {}", words(&column), exact.divisor)
        }
        _ => writeln!(out, "  column  {}", words(&found.column)),
    }
}

/// The integers of the plan that the engines would carry out.
fn quantised(
    filter: &Filter,
    algorithm: Algorithm,
    columns: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    match kernel(filter, algorithm) {
        // Planes of one component have no alpha.
        None | Some(Ok(Kernel::Weighted(_))) => Ok(()),
        Some(Err(error)) => writeln!(out, "{algorithm}: {error}"),
        Some(Ok(Kernel::Direct(k))) => {
            let sum: i64 = k.weights.iter().map(|&q| i64::from(q)).sum();
            writeln!(
                out,
                "{algorithm}: integers over {}, which add up to {sum}",
                divisor(k.division)
            )?;
            table(&k.weights, k.width, columns, out)
        }
        Some(Ok(Kernel::Combined(k))) => {
            writeln!(out, "{algorithm}: integers over 2^{}", k.shift)?;
            table(&k.masks.concat(), k.width, columns, out)
        }
        Some(Ok(Kernel::Pyramid(k))) => {
            writeln!(
                out,
                "{algorithm}: a picture {} times smaller along each side, with {} fraction bits",
                k.grid.step, k.fraction_bits
            )?;
            for (pass, weights) in [("decimate", &k.rows), ("filter", &k.low)] {
                writeln!(out, "  {pass}, shifted by {}", weights.shift)?;
                table(&weights.weights, weights.weights.len(), columns, out)?;
            }
            writeln!(out, "  interpolate, shifted by {}", k.interpolate_bits)?;
            table(k.interpolate.as_flattened(), PyramidGrid::TAPS, columns, out)
        }
        Some(Ok(Kernel::Separable(k))) => {
            let words = |q: &[i32]| q.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            match (k.row.shift, k.fraction_bits) {
                (0, _) => writeln!(out, "{algorithm}: two passes, with nothing rounded between them")?,
                (_, bits) => writeln!(
                    out,
                    "{algorithm}: two passes, with {bits} fraction bits between them"
                )?,
            }
            writeln!(
                out,
                "  row     {}, shifted by {}",
                words(&k.row.weights),
                k.row.shift
            )?;
            match k.column.division.factor() {
                None => writeln!(
                    out,
                    "  column  {}, shifted by {}",
                    words(&k.column.weights),
                    k.column.division.shift()
                ),
                Some(_) => writeln!(
                    out,
                    "  column  {}, over {}",
                    words(&k.column.weights),
                    k.column.division.divisor()
                ),
            }
        }
    }
}

/// What sums are divided by.
fn divisor(division: Division) -> String {
    match division.factor() {
        None => format!("2^{}", division.shift()),
        Some(_) => division.divisor().to_string(),
    }
}

/// `None` only if there were no 8-bit gray.
fn kernel(filter: &Filter, algorithm: Algorithm) -> Option<Result<Kernel, PlanError>> {
    let chain = Chain {
        filters: vec![filter.clone()],
        border: Border::default(),
        planes: Planes::All,
        algorithm,
        alpha: Default::default(),
    };
    let format = PixelFormat::from_name("gray")?;
    match Plan::new(&chain, format, &Colour::default()) {
        Ok(plan) => plan.steps.into_iter().next().map(|step| Ok(step.kernel)),
        Err(error) => Some(Err(error)),
    }
}

/// Rows of right-aligned columns. A row that is wider than `columns` goes on in lines that are indented.
fn table<T: ToString>(
    values: &[T],
    width: usize,
    columns: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
    let widest = words.iter().map(String::len).max().unwrap_or(0);
    let columns = columns.unwrap_or(usize::MAX);
    let fits = (widest + 1).saturating_mul(width) < columns;
    let in_line = if fits {
        width
    } else {
        (columns.saturating_sub(4) / (widest + 1)).max(1)
    };
    for row in words.chunks(width) {
        for (number, line) in row.chunks(in_line).enumerate() {
            let indent = if number == 0 { "  " } else { "    " };
            let cells: Vec<String> = line.iter().map(|w| format!("{w:>widest$}")).collect();
            writeln!(out, "{indent}{}", cells.join(" "))?;
        }
    }
    Ok(())
}

/// Writes lines so that they are narrower than `columns`, if those are known. What does not fit goes on below
/// the text of its line, which begins behind a first word and two spaces or more.
fn fold(text: &[u8], columns: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let Some(columns) = columns else {
        return out.write_all(text);
    };
    for line in String::from_utf8_lossy(text).lines() {
        let words = line.trim_start();
        let margin = line.len() - words.len();
        let gap = words.find("  ").filter(|&gap| !words[..gap].contains(' '));
        let indent = gap.map_or(margin, |gap| line.len() - words[gap..].trim_start().len());
        let (mut rest, mut from, mut room) = (line, indent, columns);
        while rest.chars().count() > room
            && let Some(end) = break_of(rest, from, room)
        {
            writeln!(out, "{}", rest[..end].trim_end())?;
            write!(out, "{:indent$}", "")?;
            (rest, from, room) = (rest[end..].trim_start(), 0, columns.saturating_sub(indent));
        }
        writeln!(out, "{rest}")?;
    }
    Ok(())
}

/// The last space behind byte `from` up to which `text` has `room` columns at most; where a word is wider,
/// the space behind it.
fn break_of(text: &str, from: usize, room: usize) -> Option<usize> {
    let mut found = None;
    for (column, (at, _)) in text.char_indices().enumerate().filter(|(_, (_, c))| *c == ' ') {
        if at > from && (column <= room || found.is_none()) {
            found = Some(at);
        }
    }
    found
}

/// A mask's weights; where a row of them is wider than `columns`, rounded to the places that fit, so that the
/// largest keeps two digits at least.
fn fitting(mask: &Mask, columns: Option<usize>) -> Vec<String> {
    let columns = columns.unwrap_or(usize::MAX);
    let weights = mask.weights();
    let fits = |words: &Vec<String>| {
        let widest = words.iter().map(String::len).max().unwrap_or(0);
        (widest + 1).saturating_mul(mask.width()) < columns
    };
    let words: Vec<String> = weights.iter().map(|&weight| decimal(weight)).collect();
    let largest = weights
        .iter()
        .fold(0.0_f64, |most, weight| most.max(weight.abs()));
    let least = (1.0 - largest.log10().floor()).clamp(0.0, 12.0) as usize;
    let to_places = |places: usize| -> Vec<String> {
        let weights = weights.iter();
        weights.map(|weight| format!("{weight:.places$}")).collect()
    };
    let rounded = (least..=least + 6).rev().map(to_places);
    let tried = std::iter::once(words).chain(rounded).find(fits);
    tried.unwrap_or_else(|| to_places(least))
}

/// Nine significant digits at most, with a power of ten only where the number is very small or large.
fn decimal(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..15.0).contains(&magnitude) {
        return format!("{value:.4e}");
    }
    let places = (8.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
