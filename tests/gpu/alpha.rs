//! Premultiplied filtering: colours under alpha.

use super::{
    assert_same_rows, card, case, chain, frame_in, hold_against_reference, hold_packed_rows, is_tried,
    options,
};
use framepipe::engine::Engine;
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Planes};
use framepipe::frame::{Buffer, Channel, Frame, FramePool};

/// Frames so large that premultiplied filtering runs in blocks that have a multiprocessor for themselves,
/// which no row and no column of tiles fits.
#[test]
fn frames_of_many_tiles_of_premultiplied_colours() {
    let Some(_card) = card() else { return };
    std::thread::scope(|scope| {
        for (spec, border, size) in [
            ("gaussian:size=3", Border::Wrap, (6331, 3571)),
            ("gaussian:size=15", Border::Mirror, (4201, 1999)),
            ("gaussian:size=25:sigma=4", Border::Constant(77.0), (4201, 1303)),
            ("gaussian:size=33:sigma=6", Border::Replicate, (4201, 1303)),
        ] {
            scope.spawn(move || {
                let chain = chain(&[spec], border, Planes::All, Algorithm::Separable);
                let case = case(chain, "rgba", size, 4);
                hold_against_reference(
                    std::slice::from_ref(&case),
                    Algorithm::Separable,
                    options(MemoryVariant::Tensor),
                );
                hold_packed_rows(&case);
            });
        }
    });
}

/// Every colour of 8 bits under every alpha, rows packed and not; deep formats with both at their ends and
/// noise between.
#[test]
fn every_colour_under_every_alpha() {
    let Some(_card) = card() else { return };
    let specs = [
        "mask:rows=1",
        "mask:rows=1:divisor=3:bias=20",
        "mask:rows=-1 3 -1:bias=-9",
        "mask:rows=-1 3 -1",
        "mask:rows=-2 5 -2",
    ];
    let formats = [
        "rgba",
        "argb",
        "ya8",
        "yuva444p",
        "gbrap",
        "rgba64le",
        "yuva444p16le",
        "gbrap10le",
    ];
    for (place, format) in formats.into_iter().enumerate() {
        let tried = specs
            .into_iter()
            .enumerate()
            .filter(|(turn, _)| is_tried(place + turn, 3));
        for (turn, spec) in tried {
            let planes = [Planes::All, Planes::AllWithAlpha][turn % 2].clone();
            let chain = chain(&[spec], Border::Replicate, planes, Algorithm::Direct);
            let case = case(chain, format, (257, 256), 2);
            let mut engine = Cuda::new(case.chain.clone(), CudaOptions::default()).unwrap();
            let mut reference = Reference::new(case.chain.clone());
            for alignment in [1, 64] {
                let pool = FramePool::new(2, engine.input_allocator());
                let mut frame = frame_in(pool.try_take().unwrap(), &case, alignment);
                spread_colours(&mut frame);
                let unpooled = Buffer::unpooled(Box::new(vec![0; frame.layout().size()]));
                let mut same = frame_in(unpooled, &case, alignment);
                spread_colours(&mut same);
                let output = Buffer::unpooled(Box::new(Vec::new()));
                reference.submit(same, output, 1).unwrap();
                engine.submit(frame, pool.try_take().unwrap(), alignment).unwrap();
                let expected = reference.collect().unwrap().unwrap();
                let got = engine.collect().unwrap().unwrap();
                assert_same_rows(
                    &expected,
                    &got,
                    format_args!("{format}, {spec}, rows at {alignment}"),
                );
            }
        }
    }
}

/// Colours that grow along the rows and alpha that grows down; of deep formats that only at the edges.
fn spread_colours(frame: &mut Frame) {
    let format = frame.format();
    let (bytes, max) = (format.bytes_per_sample(), format.max_value() as usize);
    for (plane, described) in format.planes().iter().enumerate() {
        let (width, height) = (
            frame.layout().planes()[plane].width,
            frame.layout().planes()[plane].height,
        );
        for y in 0..height {
            let row = frame.row_mut(plane, y);
            for x in 0..width {
                for (c, &channel) in described.channels.iter().enumerate() {
                    let at = if channel == Channel::Alpha {
                        y
                    } else {
                        (x + 85 * c) % 256
                    };
                    let value = match at {
                        _ if bytes == 1 => at,
                        0..4 => at,
                        252.. => max + at - 255,
                        _ => continue,
                    };
                    let begin = (x * described.channels.len() + c) * bytes;
                    row[begin..begin + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
        }
    }
}
