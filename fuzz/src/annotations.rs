//! What image files say beside their pixels: read from anything, and put into files of every other kind.

use framepipe::still::annotations::{Container, Density, insert, read};
use image::{DynamicImage, ImageFormat};
use std::io::Cursor;
use std::sync::LazyLock;

const KINDS: [(Container, ImageFormat); 6] = [
    (Container::Png, ImageFormat::Png),
    (Container::Jpeg, ImageFormat::Jpeg),
    (Container::WebP, ImageFormat::WebP),
    (Container::Tiff, ImageFormat::Tiff),
    (Container::Bmp, ImageFormat::Bmp),
    (Container::Pnm, ImageFormat::Pnm),
];

/// A small picture of each kind, without annotations, and what its pixels are read as.
static PLAIN: LazyLock<Vec<(Vec<u8>, DynamicImage)>> = LazyLock::new(|| {
    let pixel = |x: u32, y: u32| image::Rgb([40 * x as u8, 90 * y as u8, 200]);
    let picture = DynamicImage::ImageRgb8(image::RgbImage::from_fn(3, 2, pixel));
    let encode = |format| {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).unwrap();
        let decoded = image::load_from_memory_with_format(file.get_ref(), format).unwrap();
        (file.into_inner(), decoded)
    };
    KINDS.iter().map(|&(_, format)| encode(format)).collect()
});

/// Kinds of files that count in whole numbers round a density.
fn is_near(a: Density, b: Density) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 0.02 * a.max(b);
    match (a.per_inch(), b.per_inch()) {
        (Some(a), Some(b)) => near(a.0, b.0) && near(a.1, b.1),
        (None, None) => near(a.x * b.y, b.x * a.y),
        _ => false,
    }
}

/// A PNG file with its chunks' checksums put right, without which little of a changed file is read.
fn with_checksums(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let mut at = 8;
    while let Some(length) = file
        .get(at..at + 4)
        .and_then(|l| l.try_into().ok())
        .map(u32::from_be_bytes)
    {
        let end = at + 8 + length as usize;
        if file.len() < end + 4 {
            break;
        }
        let sum = crc32fast::hash(&file[at + 4..end]);
        file[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    file
}

pub fn run(data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else {
        return;
    };
    let container = KINDS[usize::from(choice) % KINDS.len()].0;
    let repaired = (container == Container::Png).then(|| with_checksums(file));
    let file = repaired.as_deref().unwrap_or(file);
    let found = read(container, file);
    let length = |item: &Option<std::sync::Arc<[u8]>>| item.as_ref().map_or(0, |i| i.len());
    let carried = length(&found.exif) + length(&found.xmp) + length(&found.iptc);
    // Packed items of a PNG grow, but not without end.
    let limit = if container == Container::Png { 2000 } else { 3 };
    assert!(
        carried <= limit * file.len() + (1 << 16),
        "{carried} bytes of {}",
        file.len()
    );
    std::hint::black_box(found.words());
    let orientation = found.orientation();
    assert!(orientation.is_none_or(|o| (1..=8).contains(&o)));
    // A file that is none of its kind, or a damaged one, takes annotations without harm.
    std::hint::black_box(insert(container, &found, Some(3), file.to_vec()));
    for (&(kind, format), (plain, pixels)) in KINDS.iter().zip(&*PLAIN) {
        let (written, _) = insert(kind, &found, orientation, plain.clone());
        // The picture is still there.
        let decoded = image::load_from_memory_with_format(&written, format);
        let decoded = decoded.unwrap_or_else(|e| panic!("{container:?} into {kind:?}: {e}"));
        assert!(decoded == *pixels, "{container:?} into {kind:?}: other pixels");
        // What the file holds now is held again, unless its loss is named.
        let once = read(kind, &written);
        let (twice, lost) = insert(kind, &once, once.orientation(), plain.clone());
        if lost.is_empty() {
            let mut twice = read(kind, &twice);
            if let (Some(a), Some(b)) = (once.density, &mut twice.density)
                && is_near(a, *b)
            {
                *b = a;
            }
            assert_eq!(once, twice, "{container:?} into {kind:?} twice");
        }
    }
}
