//! Icons, cursors, textures and pictures of telescopes: files made here byte by byte, and the samples that
//! their formats say, worked out here again.

use framepipe::frame::{Buffer, FramePool, Pageable, Remarks};
use framepipe::source::images::{self, ImageSourceOptions};
use framepipe::source::video::{VideoSource, VideoSourceOptions};
use framepipe::source::{IndexedSource, Source, Supply};
use framepipe::still::annotations::Annotations;
use image::{ExtendedColorType, ImageEncoder};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was read of a file.
struct Read {
    format: String,
    size: (usize, usize),
    samples: Vec<u8>,
    annotations: Annotations,
    remarks: Remarks,
}

impl Read {
    fn is_silent(&self) -> bool {
        self.remarks.warnings.is_empty() && self.remarks.notes.is_empty()
    }
}

fn read_as(path: &Path, strict: bool) -> Result<Read, String> {
    let mut options = ImageSourceOptions::default();
    options.strict = strict;
    let files = images::open(path, &options).map_err(|e| e.to_string())?;
    let buffer = Buffer::unpooled(Box::new(Vec::new()));
    let frame = files.read(0, buffer).map_err(|e| e.to_string())?;
    Ok(Read {
        format: frame.format().name().to_owned(),
        size: (frame.layout().width(), frame.layout().height()),
        samples: frame.bytes().to_vec(),
        annotations: frame.metadata.annotations.as_deref().cloned().unwrap_or_default(),
        remarks: files.remarks(),
    })
}

/// A folder whose files are written and read.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn read(&self, name: &str, bytes: &[u8]) -> Read {
        read_as(&self.file(name, bytes), false).unwrap()
    }

    fn refused(&self, name: &str, bytes: &[u8]) -> String {
        read_as(&self.file(name, bytes), false).map(|_| ()).unwrap_err()
    }

    /// Why a strict source does not give a file.
    fn strictly(&self, name: &str, bytes: &[u8]) -> String {
        read_as(&self.file(name, bytes), true).map(|_| ()).unwrap_err()
    }
}

/// The pixel format of a DDS file.
enum Kind<'a> {
    Code(&'a [u8; 4]),
    /// The number of a format of DXGI, and what alpha is.
    Dxgi(u32, u32),
    /// Flags, bits of a pixel, and the masks of red, green, blue and alpha.
    Masks(u32, u32, [u32; 4]),
}

/// A DDS file; `copies` counts the picture and the smaller ones.
fn dds((width, height): (u32, u32), kind: &Kind<'_>, copies: u32, data: &[u8]) -> Vec<u8> {
    let mut words = vec![124, 0x2_1007, height, width, 0, 0, copies];
    words.extend([0; 11]);
    let none = [0; 4];
    let (flags, code, bits, masks) = match kind {
        Kind::Code(code) => (4, u32::from_le_bytes(**code), 0, none),
        Kind::Dxgi(..) => (4, u32::from_le_bytes(*b"DX10"), 0, none),
        Kind::Masks(flags, bits, masks) => (*flags, 0, *bits, *masks),
    };
    words.extend([32, flags, code, bits]);
    words.extend(masks);
    words.extend([0x1000, 0, 0, 0, 0]);
    if let Kind::Dxgi(number, alpha) = kind {
        words.extend([*number, 3, 0, 1, *alpha]);
    }
    let mut file = b"DDS ".to_vec();
    file.extend(words.iter().flat_map(|word: &u32| word.to_le_bytes()));
    file.extend(data);
    file
}

const RGB: u32 = 0x40;
const ALPHA_TOO: u32 = 1;
const LUMINANCE: u32 = 0x2_0000;

#[test]
fn channels_lie_where_masks_say() {
    let folder = Folder::new();
    let scaled = |value: u32, most: u32| ((f64::from(value) / f64::from(most)) * 255.0).round() as u8;
    // Flags, bytes, and for each channel of the output how far it lies to the left and its greatest value.
    type Case = (u32, u32, &'static [(u32, u32)], &'static str);
    let cases: [Case; 9] = [
        (RGB, 1, &[(5, 7), (2, 7), (0, 3)], "rgb24"),
        (RGB, 2, &[(10, 31), (5, 31), (0, 31)], "rgb24"),
        (RGB, 2, &[(11, 31), (5, 63), (0, 31)], "rgb24"),
        (RGB | ALPHA_TOO, 2, &[(10, 31), (5, 31), (0, 31), (15, 1)], "rgba"),
        (RGB | ALPHA_TOO, 2, &[(8, 15), (4, 15), (0, 15), (12, 15)], "rgba"),
        (RGB, 3, &[(16, 255), (8, 255), (0, 255)], "rgb24"),
        (
            RGB | ALPHA_TOO,
            4,
            &[(16, 255), (8, 255), (0, 255), (24, 255)],
            "rgba",
        ),
        (LUMINANCE, 1, &[(0, 255)], "gray"),
        (LUMINANCE | ALPHA_TOO, 2, &[(0, 255), (8, 255)], "ya8"),
    ];
    for (flags, bytes, channels, format) in cases {
        let mut masks = [0; 4];
        let places: &[usize] = if channels.len() == 2 {
            &[0, 3]
        } else {
            &[0, 1, 2, 3]
        };
        for (place, (shift, most)) in places.iter().zip(channels) {
            masks[*place] = most << shift;
        }
        let pixels: Vec<u32> = (0..15).map(|n: u32| n.wrapping_mul(0x9e37_79b9)).collect();
        let stored: Vec<u8> = pixels
            .iter()
            .flat_map(|pixel| pixel.to_le_bytes()[..bytes as usize].to_vec())
            .collect();
        let expected: Vec<u8> = pixels
            .iter()
            .flat_map(|pixel| {
                channels
                    .iter()
                    .map(move |(shift, most)| scaled(pixel >> shift & most, *most))
            })
            .collect();
        let kind = Kind::Masks(flags, 8 * bytes, masks);
        let read = folder.read("a.dds", &dds((5, 3), &kind, 1, &stored));
        assert_eq!((&read.format[..], read.size), (format, (5, 3)), "{masks:x?}");
        assert_eq!(read.samples, expected, "{masks:x?}");
        assert!(read.is_silent());
        let short = dds((5, 3), &kind, 1, &stored[1..]);
        // The header's bytes count for the file's, so that the end is found while it is decoded.
        assert!(
            folder.refused("a.dds", &short).contains("truncated"),
            "{masks:x?}"
        );
    }
    let deep = Kind::Masks(RGB | ALPHA_TOO, 32, [0x3ff, 0xf_fc00, 0x3ff0_0000, 0xc000_0000]);
    assert!(
        folder
            .refused("a.dds", &dds((1, 1), &deep, 1, &[0; 4]))
            .contains("does not read")
    );
}

/// Sixteen numbers of `bits` bits, 0 first: which colour of a block a pixel has.
fn numbers(bits: u32, number: impl Fn(u64) -> u64) -> Vec<u8> {
    let packed = (0..16).fold(0, |all, at| all | number(at) << (u64::from(bits) * at));
    packed.to_le_bytes()[..2 * bits as usize].to_vec()
}

/// A block of levels between `from` and `to`, `from` being greater, each pixel with the number of its place.
fn levels(from: u8, to: u8) -> Vec<u8> {
    [vec![from, to], numbers(3, |at| at % 8)].concat()
}

/// The level of the pixel at `at` of such a block.
fn level(from: u8, to: u8, at: usize) -> u8 {
    let (from, to) = (f64::from(from), f64::from(to));
    let level = match (at % 8) as f64 {
        0.0 => from,
        1.0 => to,
        n => ((8.0 - n) * from + (n - 1.0) * to) / 7.0,
    };
    level.round() as u8
}

#[test]
fn blocks_mix_two_colours() {
    let folder = Folder::new();
    let colours = |first: u16, second: u16| {
        let head = [first.to_le_bytes(), second.to_le_bytes()].concat();
        [head, numbers(2, |at| at % 4)].concat()
    };
    let gray = |level: u8, alpha: u8| [level, level, level, alpha];
    let pixels = |of: &dyn Fn(usize) -> [u8; 4]| (0..16).flat_map(of).collect::<Vec<u8>>();
    let (white, black) = (0xffff, 0);

    let file = dds((4, 4), &Kind::Code(b"DXT1"), 1, &colours(white, black));
    let read = folder.read("a.dds", &file);
    assert_eq!(read.format, "rgba");
    assert_eq!(read.samples, pixels(&|at| gray([255, 0, 170, 85][at % 4], 255)));
    // In the other order there are three, and nothing.
    let read = folder.read(
        "a.dds",
        &dds((4, 4), &Kind::Code(b"DXT1"), 1, &colours(black, white)),
    );
    let half = read.samples[8];
    assert!((127..=128).contains(&half));
    let three = pixels(&|at| [gray(0, 255), gray(255, 255), gray(half, 255), gray(0, 0)][at % 4]);
    assert_eq!(read.samples, three);
    // With alpha of its own a block has four in either order.
    for (first, second, mixes) in [
        (white, black, [255, 0, 170, 85]),
        (black, white, [0, 255, 85, 170]),
    ] {
        let block = [levels(200, 60), colours(first, second)].concat();
        let read = folder.read("a.dds", &dds((4, 4), &Kind::Code(b"DXT5"), 1, &block));
        assert_eq!(
            read.samples,
            pixels(&|at| gray(mixes[at % 4], level(200, 60, at)))
        );
    }

    // One channel, and two: a third is not made up. Pixels beyond 3x2 are of no picture.
    let read = folder.read("a.dds", &dds((3, 2), &Kind::Code(b"ATI1"), 1, &levels(250, 3)));
    assert_eq!((&read.format[..], read.size), ("gray", (3, 2)));
    assert_eq!(read.samples, [0, 1, 2, 4, 5, 6].map(|at| level(250, 3, at)));
    let both = [levels(250, 3), levels(90, 20)].concat();
    let read = folder.read("a.dds", &dds((4, 4), &Kind::Code(b"ATI2"), 1, &both));
    let expected: Vec<u8> = (0..16)
        .flat_map(|at| [level(250, 3, at), level(90, 20, at), 0])
        .collect();
    assert_eq!((&read.format[..], read.samples), ("rgb24", expected));
}

#[test]
fn what_a_texture_says_of_itself_is_kept_or_reported() {
    let folder = Folder::new();
    const RGBA8_SRGB: u32 = 29;
    const BGRA8: u32 = 87;
    const RGBA32_FLOAT: u32 = 2;
    const STRAIGHT: u32 = 1;
    const PREMULTIPLIED: u32 = 2;
    const OPAQUE: u32 = 3;
    let pixels = [64, 0, 127, 128, 9, 9, 9, 0];
    let file = dds((2, 1), &Kind::Dxgi(RGBA8_SRGB, STRAIGHT), 1, &pixels);
    let read = folder.read("a.dds", &file);
    assert_eq!(
        (&read.samples[..], read.annotations.srgb_intent),
        (&pixels[..], Some(0))
    );
    let read = folder.read("a.dds", &dds((2, 1), &Kind::Dxgi(BGRA8, 0), 1, &pixels));
    assert_eq!(read.samples, [127, 0, 64, 128, 9, 9, 9, 0]);
    assert_eq!(read.annotations.srgb_intent, None);
    let read = folder.read(
        "a.dds",
        &dds((1, 1), &Kind::Dxgi(BGRA8, PREMULTIPLIED), 1, &pixels[..4]),
    );
    let straight = |colour: f64| (colour * 255.0 / 128.0).round() as u8;
    assert_eq!(read.samples, [straight(127.0), 0, straight(64.0), 128]);
    let read = folder.read("a.dds", &dds((2, 1), &Kind::Dxgi(BGRA8, OPAQUE), 1, &pixels));
    assert_eq!(
        (&read.format[..], &read.samples[..]),
        ("rgb24", &[127, 0, 64, 9, 9, 9][..])
    );
    assert!(read.remarks.notes[0].contains("opaque"));

    let floats: Vec<u8> = [-1.0_f32, 0.25, 2.0, 1.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let file = dds((1, 1), &Kind::Dxgi(RGBA32_FLOAT, 0), 1, &floats);
    let read = folder.read("a.dds", &file);
    assert_eq!((&read.format[..], read.samples), ("rgbaf32le", floats));
    assert!(read.remarks.warnings.is_empty());

    let copies = dds((2, 2), &Kind::Dxgi(BGRA8, 0), 2, &[7; 4 * 5]);
    let read = folder.read("a.dds", &copies);
    assert!(read.remarks.warnings.is_empty() && read.remarks.notes[0].contains("mipmaps"));
    let mut cube = dds((2, 2), &Kind::Dxgi(BGRA8, 0), 1, &[7; 6 * 16]);
    cube[136] = 4;
    let read = folder.read("a.dds", &cube);
    assert!(read.remarks.warnings[0].contains("the file holds 6 faces of a cube"));
    assert!(folder.strictly("a.dds", &cube).contains("faces of a cube"));
    assert!(
        folder
            .refused("a.dds", &dds((999, 999), &Kind::Dxgi(BGRA8, 0), 1, &[7; 16]))
            .contains("truncated")
    );
    assert!(folder.refused("a.dds", b"DDS \x7c").contains("truncated"));
}

/// A picture of an icon, stored as a BMP is: rows and mask as they are shown, from the top.
fn dib(width: usize, bits: u16, colours: &[[u8; 4]], rows: &[&[u8]], mask: Option<&[&[u8]]>) -> Vec<u8> {
    let mut data = vec![40, 0, 0, 0];
    data.extend((width as u32).to_le_bytes());
    data.extend((2 * rows.len() as u32).to_le_bytes());
    data.extend(1_u16.to_le_bytes());
    data.extend(bits.to_le_bytes());
    data.extend([0; 16]);
    data.extend((colours.len() as u32).to_le_bytes());
    data.extend([0; 4]);
    data.extend(colours.as_flattened());
    for row in rows
        .iter()
        .rev()
        .chain(mask.into_iter().flat_map(|mask| mask.iter().rev()))
    {
        data.extend(*row);
        data.resize(data.len() + (4 - row.len() % 4) % 4, 0);
    }
    data
}

/// A file of pictures: `kind` is 1 for icons and 2 for cursors, whose entries say where they point.
fn icons(kind: u8, pictures: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0, 0, kind, 0, pictures.len() as u8, 0];
    let mut place = 6 + 16 * pictures.len();
    for picture in pictures {
        // Sizes and depths of entries are often wrong, and these all are.
        file.extend([1, 1, 0, 0, 44, 1, 44, 1]);
        file.extend((picture.len() as u32).to_le_bytes());
        file.extend((place as u32).to_le_bytes());
        place += picture.len();
    }
    file.extend(pictures.concat());
    file
}

#[test]
fn icons_are_transparent_where_their_mask_says() {
    let folder = Folder::new();
    let colours = [[10, 20, 30, 0], [200, 100, 50, 0], [0, 0, 0, 0]];
    // Two numbers a byte; mask bits from the left.
    let four = dib(
        3,
        4,
        &colours,
        &[&[0x01, 0x20], &[0x10, 0x00]],
        Some(&[&[0b0010_0000], &[0b1000_0000]]),
    );
    let expected: [[u8; 4]; 6] = [
        [30, 20, 10, 255],
        [50, 100, 200, 255],
        [0, 0, 0, 0],
        [50, 100, 200, 0],
        [30, 20, 10, 255],
        [30, 20, 10, 255],
    ];
    for (kind, name) in [(1, "a.ico"), (2, "a.cur")] {
        let read = folder.read(name, &icons(kind, &[&four]));
        assert_eq!((&read.format[..], read.size), ("rgba", (3, 2)));
        assert_eq!(read.samples, expected.as_flattened());
        // No output has a place for where a cursor points.
        let points = read
            .remarks
            .warning_texts()
            .iter()
            .any(|w| w.contains("hot spot, the pixel at 300,300"));
        assert_eq!((points, read.is_silent()), (kind == 2, kind == 1), "{name}");
    }

    let full = dib(2, 24, &[], &[&[1, 2, 3, 4, 5, 6]], Some(&[&[0b0100_0000]]));
    let read = folder.read("a.ico", &icons(1, &[&full]));
    assert_eq!(read.samples, [3, 2, 1, 255, 6, 5, 4, 0]);
    // Without a mask all is opaque; a part of one is damage.
    let bare = dib(2, 24, &[], &[&[1, 2, 3, 4, 5, 6]], None);
    let read = folder.read("a.ico", &icons(1, &[&bare]));
    assert_eq!(read.samples, [3, 2, 1, 255, 6, 5, 4, 255]);
    assert!(read.is_silent());
    let part = icons(1, &[&full[..full.len() - 2]]);
    assert!(
        folder.read("a.ico", &part).remarks.warnings[0]
            .contains("the mask of what is transparent ends early")
    );
    assert!(folder.strictly("a.ico", &part).contains("ends early"));
    // A length that cannot be: the mask is there all the same.
    let mut wrong = icons(1, &[&full]);
    wrong[14] = 9;
    let read = folder.read("a.ico", &wrong);
    assert_eq!(read.samples, [3, 2, 1, 255, 6, 5, 4, 0]);
    let mut warnings = read.remarks.warnings.iter();
    assert!(warnings.any(|warning| warning.contains("states another length")));

    // With alpha the mask says nothing; where alpha is 0 everywhere, it is none.
    let mask: Option<&[&[u8]]> = Some(&[&[0b1000_0000]]);
    let alpha = dib(2, 32, &[], &[&[1, 2, 3, 9, 4, 5, 6, 0]], mask);
    let read = folder.read("a.ico", &icons(1, &[&alpha]));
    assert_eq!(read.samples, [3, 2, 1, 9, 6, 5, 4, 0]);
    let none = dib(2, 32, &[], &[&[1, 2, 3, 0, 4, 5, 6, 0]], mask);
    let read = folder.read("a.ico", &icons(1, &[&none]));
    assert_eq!(read.samples, [3, 2, 1, 0, 6, 5, 4, 255]);
}

#[test]
fn the_largest_icon_is_read_and_the_others_are_named() {
    let folder = Folder::new();
    let mut png = Vec::new();
    image::codecs::png::PngEncoder::new(&mut png)
        .write_image(&[7, 8, 9, 10, 11, 12], 3, 2, ExtendedColorType::L8)
        .unwrap();
    let read = folder.read("a.ico", &icons(1, &[&png]));
    assert_eq!(
        (&read.format[..], &read.samples[..]),
        ("gray", &[7, 8, 9, 10, 11, 12][..])
    );
    assert!(read.is_silent());

    let row: &[u8] = &[1, 2, 3, 4, 5, 6];
    let small = dib(1, 32, &[], &[&[1, 1, 1, 255]], None);
    let flat = dib(
        2,
        1,
        &[[0; 4], [255; 4]],
        &[&[0x40], &[0x80]],
        Some(&[&[0], &[0]]),
    );
    let deep = dib(2, 24, &[], &[row, row], Some(&[&[0], &[0]]));
    for pictures in [
        [&small, &flat, &deep],
        [&deep, &flat, &small],
        [&flat, &deep, &small],
    ] {
        let file = icons(1, &pictures.map(|picture| &picture[..]));
        let read = folder.read("a.ico", &file);
        assert_eq!((read.size, &read.samples[..4]), ((2, 2), &[3, 2, 1, 255][..]));
        let said = "the file holds 3 pictures; only the largest and deepest is read (2x2, 24 bits)";
        assert!(read.remarks.warnings[0].contains(said));
        assert!(folder.strictly("a.ico", &file).contains(said));
        // Known by its content, too.
        assert_eq!(folder.read("a.png", &file).samples, read.samples);
    }
    let read = folder.read("a.ico", &icons(1, &[&small, &png]));
    assert_eq!((&read.format[..], read.size), ("gray", (3, 2)));

    assert!(
        folder
            .refused("a.ico", &icons(1, &[]))
            .contains("it holds no picture")
    );
    assert!(
        folder
            .refused("a.ico", &icons(1, &[&[]]))
            .contains("none of its pictures is in the file")
    );
    assert!(
        folder
            .refused("a.ico", &icons(3, &[&deep]))
            .contains("neither an icon nor a cursor")
    );
    let whole = icons(1, &[&deep]);
    for end in 0..whole.len() - 8 {
        read_as(&folder.file("a.ico", &whole[..end]), true)
            .map(|_| ())
            .unwrap_err();
    }
}

/// The first frame of a file that FFmpeg reads, and the remarks.
fn by_video_source(path: &Path, strict: bool) -> Result<(Vec<u8>, Remarks), String> {
    let mut options = VideoSourceOptions::default();
    options.strict = strict;
    let mut source = VideoSource::open(path, &options).map_err(|e| e.to_string())?;
    let (_keep, stop) = crossbeam_channel::bounded(0);
    let supply = Supply {
        pool: FramePool::new(4, Arc::new(Pageable)),
        stop,
    };
    let frame = source.next(&supply).unwrap().unwrap();
    assert_eq!(frame.format().name(), "gray16le");
    let rows = (0..frame.layout().height()).flat_map(|y| frame.row(0, y).to_vec());
    Ok((rows.collect(), source.remarks()))
}

#[test]
fn what_ffmpeg_gives_otherwise_than_it_is_stored_is_reported_or_refused() {
    let folder = Folder::new();
    let cards = [
        ("SIMPLE", "T"),
        ("BITPIX", "16"),
        ("NAXIS", "2"),
        ("NAXIS1", "5"),
        ("NAXIS2", "3"),
    ];
    let cards: String = cards
        .iter()
        .map(|(name, value)| format!("{:<80}", format!("{name:<8}= {value:>20}")))
        .collect();
    let mut file = format!("{:<2880}", cards + "END").into_bytes();
    let values: Vec<i16> = (0..15).map(|n| n * n * 9 - 300).collect();
    file.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    file.resize(5760, 0);
    let path = folder.file("a.fits", &file);
    let (samples, remarks) = by_video_source(&path, false).unwrap();
    let (least, most) = (f64::from(values[0]), f64::from(values[14]));
    // The first row is the lowest.
    let shown = [10..15, 5..10, 0..5]
        .into_iter()
        .flat_map(|row| values[row].to_vec());
    assert_eq!(samples.len(), 30);
    for (sample, value) in samples.as_chunks::<2>().0.iter().zip(shown) {
        let expected = (f64::from(value) - least) / (most - least) * 65535.0;
        let away = f64::from(u16::from_le_bytes(*sample)) - expected;
        assert!(away.abs() <= 1.0, "{value}: {away}");
    }
    assert!(remarks.warnings[0].contains("FITS has no black and no white"));
    assert!(
        by_video_source(&path, true)
            .unwrap_err()
            .contains("FITS has no black and no white")
    );

    let mut file = vec![0; 1 << 20];
    file[0x800..0x807].copy_from_slice(b"PCD_IPI");
    let refused = by_video_source(&folder.file("a.pcd", &file), false).unwrap_err();
    assert!(refused.contains("Photo CD"), "{refused}");
}
