//! Frames of the card's decoders: surfaces become planes to the bit, are filtered where they lie, and give
//! their memory back for the next.

use super::{assert_same_rows, card, case, chain, is_tried, options};
use framepipe::engine::Engine;
use framepipe::engine::cuda::decode::{DecoderCard, DecoderStream};
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::Case;
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{Buffer, Frame, PixelFormat};

const SIZES: [(usize, usize); 6] = [(1, 1), (2, 2), (17, 9), (16, 3), (641, 5), (322, 130)];

/// The case's frame on the card, as a decoder's surface of it becomes one.
fn on_card(stream: &mut DecoderStream, card: &DecoderCard, case: &Case, frame: &Frame) -> Frame {
    let bytes = case.format.bytes_per_sample();
    // The bits that a surface's samples have on the right.
    let shift = if bytes == 1 { 0 } else { 16 - case.format.depth() };
    let (width, height) = (case.width, case.height);
    let pitch = (width.next_multiple_of(2) * bytes).next_multiple_of(256) + 256;
    // What lies between rows is no part of the picture.
    let mut luma = vec![0xA5_u8; pitch * height];
    let mut chroma = vec![0x5A_u8; pitch * height.div_ceil(2)];
    let put = |to: &mut [u8], at: usize, value: u16| match bytes {
        1 => to[at] = value as u8,
        _ => to[2 * at..2 * at + 2].copy_from_slice(&(value << shift).to_le_bytes()),
    };
    for y in 0..height {
        for x in 0..width {
            put(&mut luma[y * pitch..], x, frame.sample(0, x, y, 0));
        }
    }
    for y in 0..height.div_ceil(2) {
        for x in 0..width.div_ceil(2) {
            put(&mut chroma[y * pitch..], 2 * x, frame.sample(1, x, y, 0));
            put(&mut chroma[y * pitch..], 2 * x + 1, frame.sample(2, x, y, 0));
        }
    }
    let (surface, owner) = card.surface((&luma, &chroma), [pitch; 2]).unwrap();
    let (layout, memory) = stream.take(&surface, owner).unwrap();
    let mut frame = Frame::new(layout, Buffer::unpooled(memory)).unwrap();
    assert!(frame.on_device().is_some() && !frame.is_pinned());
    frame.metadata = case.frame().unwrap().metadata;
    frame
}

/// What the reference makes of the case.
fn expected(case: &Case) -> Frame {
    let mut reference = Reference::new(case.chain.clone());
    let unpooled = Buffer::unpooled(Box::new(Vec::new()));
    reference.submit(case.frame().unwrap(), unpooled, 1).unwrap();
    reference.collect().unwrap().unwrap()
}

fn hold(chain: &Chain, format: &str, options: CudaOptions) {
    let format_of_card = PixelFormat::from_name(format).unwrap();
    let mut engine = Cuda::new(chain.clone(), options).unwrap();
    for (seed, size) in SIZES.into_iter().enumerate() {
        let case = case(chain.clone(), format, size, seed as u64);
        let source = case.frame().unwrap();
        let card = DecoderCard::open(0, format_of_card, size).unwrap();
        let mut stream = card.stream().unwrap();
        let frame = on_card(&mut stream, &card, &case, &source);
        engine
            .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 32)
            .unwrap();
        let got = engine.collect().unwrap().unwrap();
        assert_same_rows(
            &expected(&case),
            &got,
            format_args!("{format} {size:?} {options:?}"),
        );
        // On the host, too, where somebody wants it there.
        let frame = on_card(&mut stream, &card, &case, &source);
        assert_same_rows(&source, &frame, format_args!("{format} {size:?} fetched"));
    }
}

#[test]
fn surfaces_are_filtered_where_they_lie() {
    let Some(_card) = card() else { return };
    let chains = [&["gaussian:sigma=1"][..], &["sharpen", "box:size=3"]];
    let variants = [
        MemoryVariant::Auto,
        MemoryVariant::Registers,
        MemoryVariant::Texture,
    ];
    for (f, format) in ["yuv420p", "yuv420p10le", "yuv420p12le"].into_iter().enumerate() {
        for (c, filters) in chains.into_iter().enumerate() {
            for (v, variant) in variants.into_iter().enumerate() {
                if is_tried(f + c + v, 3) {
                    let chain = chain(filters, Border::Mirror, Planes::All, Algorithm::Auto);
                    hold(&chain, format, options(variant));
                }
            }
        }
    }
    let other = DecoderCard::open(0, PixelFormat::RGB24, (2, 2));
    assert!(other.unwrap_err().to_string().contains("rgb24"));
}

#[test]
fn several_decoders_share_blocks_and_an_engine() {
    let Some(_card) = card() else { return };
    let chain = chain(&["box:size=3"], Border::Replicate, Planes::All, Algorithm::Auto);
    let card = DecoderCard::open(0, PixelFormat::YUV420P, (66, 34)).unwrap();
    let mut streams: Vec<DecoderStream> = (0..3).map(|_| card.stream().unwrap()).collect();
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    let cases: Vec<Case> = (0..24)
        .map(|seed| case(chain.clone(), "yuv420p", (66, 34), seed))
        .collect();
    let mut done = 0;
    for (number, of) in cases.iter().enumerate() {
        let frame = on_card(&mut streams[number % 3], &card, of, &of.frame().unwrap());
        if number % 5 == 4 {
            // One that nobody filters leaves its block while it may still be on its way.
            drop(on_card(&mut streams[0], &card, of, &of.frame().unwrap()));
        }
        engine
            .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 1)
            .unwrap();
        while number + 1 - done >= engine.depth() {
            let got = engine.collect().unwrap().unwrap();
            assert_same_rows(&expected(&cases[done]), &got, format_args!("frame {done}"));
            done += 1;
        }
    }
    while let Some(got) = engine.collect().unwrap() {
        assert_same_rows(&expected(&cases[done]), &got, format_args!("frame {done}"));
        done += 1;
    }
    assert_eq!(done, cases.len());
    // Results that stay on the card leave the buffers of the host alone.
    let keeps = CudaOptions {
        keeps_results: true,
        ..CudaOptions::default()
    };
    let mut engine = Cuda::new(chain, keeps).unwrap();
    let frame = on_card(&mut streams[1], &card, &cases[0], &cases[0].frame().unwrap());
    engine
        .submit(frame, Buffer::unpooled(Box::new(Vec::new())), 1)
        .unwrap();
    let got = engine.collect().unwrap().unwrap();
    assert!(got.bytes().iter().all(|&byte| byte == 0));
    let times = engine.device_times().unwrap();
    assert_eq!((times.bytes_up, times.bytes_down, times.count), (0, 0, 1));
}
