//! RGB of frames that lie on the card has the bits of the plain loop in `framepipe::engine::rgb`.

use super::{card, case, chain, is_stand_in};
use framepipe::engine::Engine;
use framepipe::engine::cuda::{CardMemory, CardRgb, Cuda, CudaOptions};
use framepipe::engine::rgb::to_rgb;
use framepipe::filter::{Algorithm, Border, Planes};
use framepipe::frame::{Buffer, Colour, ColourModel, FieldOrder, Frame, Layout, PixelFormat, Range};

/// Rows that end within four pixels and with them; more than a block across and down.
const SIZES: [(usize, usize); 8] = [
    (1, 1),
    (2, 2),
    (1, 7),
    (17, 1),
    (37, 23),
    (64, 6),
    (259, 5),
    (1032, 19),
];

/// Brings frames to the card, as they are.
fn upload() -> Cuda {
    let options = CudaOptions {
        keeps_results: true,
        ..CudaOptions::default()
    };
    let identity = chain(&["identity"], Border::Replicate, Planes::All, Algorithm::Auto);
    Cuda::new(identity, options).unwrap()
}

/// A copy of `frame` on the card.
fn on_card(engine: &mut Cuda, frame: Frame) -> (Layout, CardMemory) {
    let unpooled = Buffer::unpooled(Box::new(Vec::new()));
    engine.submit(frame, unpooled, 64).unwrap();
    let frame = engine.collect().unwrap().unwrap();
    let layout = *frame.layout();
    let (memory, _) = CardMemory::of_frame(frame).unwrap().ok().unwrap();
    (layout, memory)
}

/// Noise with these facts.
fn noise(format: PixelFormat, size: (usize, usize), colour: Colour) -> Frame {
    let identity = chain(&["identity"], Border::Replicate, Planes::All, Algorithm::Auto);
    let mut frame = case(identity, format.name(), size, 5).frame().unwrap();
    frame.metadata.colour = colour;
    frame
}

/// The samples in packed RGB, row by row.
fn samples(layout: &Layout, bytes: &[u8]) -> Vec<u16> {
    match layout.format().bytes_per_sample() {
        1 => bytes.iter().map(|&byte| u16::from(byte)).collect(),
        _ => bytes
            .chunks_exact(2)
            .map(|word| u16::from_le_bytes([word[0], word[1]]))
            .collect(),
    }
}

#[test]
fn rgb_of_frames_on_the_card_has_the_references_bits() {
    let Some(_card) = card() else { return };
    let (mut engine, mut converter) = (upload(), CardRgb::new(0).unwrap());
    let matrices = [1, 4, 5, 6, 7, 8, 9, 2, 0, 3];
    for (f, format) in PixelFormat::integers().enumerate() {
        let kinds = if format.model() == ColourModel::Yuv { 21 } else { 3 };
        for turn in 0..kinds {
            // A stand-in compiles few kernels, and takes long for large frames.
            let sizes = if is_stand_in() { &SIZES[..6] } else { &SIZES[..] };
            if is_stand_in() && turn >= 3 {
                break;
            }
            let size = sizes[(f + turn) % sizes.len()];
            let colour = Colour {
                range: [Range::Limited, Range::Full, Range::Unspecified][turn % 3],
                matrix: matrices[(f + turn) % matrices.len()],
                chroma_location: ((f + turn) % 7) as u8,
                ..Colour::default()
            };
            let mut frame = noise(format, size, colour);
            let orders = [
                FieldOrder::Progressive,
                FieldOrder::TopFirst,
                FieldOrder::BottomFirst,
            ];
            let order = orders[(f + turn / 3) % 3];
            frame.metadata.field_order = order;
            let expected = to_rgb(&frame);
            let (layout, memory) = on_card(&mut engine, frame);
            let made = converter.convert(&memory, &layout, (&colour, order));
            // The matrix of RGB itself makes none of luma and chroma.
            let (Ok(expected), Ok((rgb, result))) = (&expected, &made) else {
                assert!(expected.is_err() && made.is_err(), "{format} {colour:?}");
                continue;
            };
            assert_eq!((rgb.width(), rgb.height()), size);
            assert!(rgb.is_tight());
            let found = samples(rgb, &result.fetch().unwrap()[..rgb.size()]);
            assert!(found == *expected, "{format} {size:?} {colour:?} {order:?}");
        }
    }
}

#[test]
fn rgb_that_cannot_be_made_is_refused() {
    let Some(_card) = card() else { return };
    let mut converter = CardRgb::new(0).unwrap();
    let memory = CardMemory::new(0, 96).unwrap();
    let mut said = |format, matrix, width| {
        let colour = Colour {
            matrix,
            ..Colour::default()
        };
        let layout = Layout::new(format, width, 8, 1).unwrap();
        let facts = (&colour, FieldOrder::Progressive);
        let made = converter.convert(&memory, &layout, facts);
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(said(PixelFormat::YUV420P, 1, 8), "");
    let matrix = said(PixelFormat::YUV420P, 14, 8);
    assert!(matrix.contains("matrix ictcp cannot be converted"), "{matrix}");
    let floats = said(PixelFormat::GRAYF32, 1, 2);
    assert!(floats.contains("floating-point"), "{floats}");
    let small = said(PixelFormat::YUV420P, 1, 10);
    assert!(small.contains("smaller"), "{small}");
}
