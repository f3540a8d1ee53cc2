//! Descriptions that state how the pictures of a file are arranged, as programs of science write them. They
//! are true of a file of the same pages, size and channels only, which readers rely on.
//!
//! ```text
//!   tifffile   {"shape": [5, 40, 50]}    or shape=(5, 40, 50)
//!   ImageJ     ImageJ=1.54f, images=5, slices=5, a line each
//!   OME        XML with SizeX, SizeY, SizeZ, SizeC, SizeT and Type of its pixels
//! ```

/// What a picture is, which is written into a file of its own.
#[cfg(feature = "images")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// Samples of a pixel.
    pub(crate) channels: u32,
    /// OME's word for the type of the samples.
    pub(crate) samples: &'static str,
}

/// What a description states the structure for, if it states one.
pub(super) fn kind(description: &str) -> Option<&'static str> {
    let text = description.trim_start();
    if shape(text).is_some() {
        Some("tifffile")
    } else if text.starts_with("ImageJ=") {
        Some("ImageJ")
    } else {
        (text.starts_with('<') && text.contains("OME") && text.contains("SizeX=")).then_some("OME-XML")
    }
}

/// True if a description of a [`kind`] is true of a picture alone in its file.
#[cfg(feature = "images")]
pub(super) fn is_true_of(description: &str, picture: &Arrangement) -> bool {
    let text = description.trim_start();
    let Arrangement {
        width,
        height,
        channels,
        samples,
    } = *picture;
    if let Some(shape) = shape(text) {
        let above_one = |sizes: &[u32]| -> Vec<u32> { sizes.iter().copied().filter(|&n| n != 1).collect() };
        return above_one(&shape) == above_one(&[height, width, channels]);
    }
    if text.starts_with("ImageJ=") {
        let is_one = |line: &str| {
            let count = line.trim().split_once('=');
            let count = count.filter(|(name, _)| ["images", "slices", "channels", "frames"].contains(name));
            count.is_none_or(|(_, count)| count.trim() == "1")
        };
        return text.lines().all(is_one);
    }
    let (width, height, channels) = (width.to_string(), height.to_string(), channels.to_string());
    [
        ("SizeX", width.as_str()),
        ("SizeY", &height),
        ("SizeC", &channels),
        ("SizeZ", "1"),
        ("SizeT", "1"),
    ]
    .into_iter()
    .all(|(name, value)| attributes(text, name) == [value])
        && attributes(text, "Type").first() == Some(&samples)
}

/// The numbers of the shape that tifffile states.
fn shape(text: &str) -> Option<Vec<u32>> {
    let rest = match text.strip_prefix("shape=(") {
        Some(rest) => rest,
        None if text.starts_with('{') => {
            let (_, rest) = text.split_once("\"shape\":")?;
            rest.trim_start().strip_prefix('[')?
        }
        None => return None,
    };
    let (numbers, _) = rest.split_once([']', ')'])?;
    let numbers = numbers
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().ok()).collect()
}

/// The values of all attributes of a name in XML.
#[cfg(feature = "images")]
fn attributes<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let begin = format!(" {name}=");
    let values = text.split(begin.as_str()).skip(1);
    values
        .filter_map(|rest| {
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            rest.get(1..)?.split(quote).next()
        })
        .collect()
}

#[cfg(all(test, feature = "images"))]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_true_of_the_same_pages_size_and_channels() {
        let ome = |sizes: &str, kind: &str| {
            format!("<?xml?><OME><Pixels ID='a' {sizes} Type=\"{kind}\"><TiffData/></Pixels></OME>")
        };
        let sizes = "SizeX=\"50\" SizeY=\"40\" SizeC=\"3\" SizeZ=\"1\" SizeT=\"1\"";
        let picture = Arrangement {
            width: 50,
            height: 40,
            channels: 3,
            samples: "uint8",
        };
        for (text, program, is_true) in [
            ("{\"shape\": [40, 50, 3]}", "tifffile", true),
            ("{\"axes\": \"YXS\", \"shape\": [1, 40, 50, 3]}", "tifffile", true),
            ("{\"shape\": [5, 40, 50, 3]}", "tifffile", false),
            ("{\"shape\": [40, 50]}", "tifffile", false),
            ("{\"shape\": [3, 40, 50]}", "tifffile", false),
            ("shape=(40, 50, 3,)", "tifffile", true),
            ("shape=(50, 40, 3)", "tifffile", false),
            ("ImageJ=1.54f\nunit=um\nmin=0.0\n", "ImageJ", true),
            ("ImageJ=1.54f\nimages=1\nslices=1", "ImageJ", true),
            ("ImageJ=1.54f\nimages=5\nslices=5", "ImageJ", false),
            (&ome(sizes, "uint8"), "OME-XML", true),
            (&ome(sizes, "uint16"), "OME-XML", false),
            (
                &ome(&sizes.replace("Z=\"1\"", "Z='5'"), "uint8"),
                "OME-XML",
                false,
            ),
            (
                &ome(&sizes.replace("X=\"50\"", "X=\"51\""), "uint8"),
                "OME-XML",
                false,
            ),
        ] {
            assert_eq!(kind(text), Some(program), "{text}");
            assert_eq!(is_true_of(text, &picture), is_true, "{text}");
        }
        for text in [
            "",
            "a cat",
            "{\"shape\": \"round\"}",
            "<svg/>",
            "shape=",
            "{\"a\": [1]}",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }
}
