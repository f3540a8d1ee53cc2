//! Options of the engine: blocks, overlap, devices, slots.

use super::{card, hold_against_reference, options, start};
use framepipe::engine::EngineError;
use framepipe::engine::cuda::{CudaOptions, MemoryVariant, Overlap};
use framepipe::engine::verify::{cases, compare};
use framepipe::filter::Algorithm;
use framepipe::frame::Buffer;

#[test]
fn any_block_that_launches_gives_the_same_bits() {
    let Some(_card) = card() else { return };
    let list = cases(14);
    let list = &list;
    std::thread::scope(|scope| {
        for memory in MemoryVariant::ALL {
            for block in [(1, 1), (7, 3), (32, 32), (256, 1), (1, 64)] {
                let options = CudaOptions {
                    block: Some(block),
                    ..options(memory)
                };
                scope.spawn(move || hold_against_reference(list, Algorithm::Auto, options));
            }
        }
    });
}

#[test]
fn without_overlap_the_bits_are_the_same() {
    let Some(_card) = card() else { return };
    let list = cases(30);
    for overlap in [Overlap::Ring, Overlap::SerialPinned, Overlap::SerialPageable] {
        let options = CudaOptions {
            overlap,
            ..CudaOptions::default()
        };
        hold_against_reference(&list, Algorithm::Auto, options);
    }
}

#[test]
fn a_block_or_device_that_cannot_be_is_refused_with_the_limit() {
    let Some(_card) = card() else { return };
    let list = cases(1);
    let too_many = CudaOptions {
        block: Some((64, 32)),
        ..CudaOptions::default()
    };
    let mut engine = start(too_many)(list[0].chain(Algorithm::Direct)).unwrap();
    let output = Buffer::unpooled(Box::new(Vec::new()));
    let error = engine.submit(list[0].frame().unwrap(), output, 64).unwrap_err();
    assert!(matches!(error, EngineError::Unfit(_)), "{error:?}");
    assert!(error.to_string().contains("2048 threads"), "{error}");
    let device = CudaOptions {
        device: 99,
        ..CudaOptions::default()
    };
    let error = compare(&list, Algorithm::Direct, &mut start(device)).unwrap_err();
    assert!(error.to_string().contains("99"), "{error}");
    let one_slot = CudaOptions {
        slots: 1,
        ..CudaOptions::default()
    };
    let error = compare(&list, Algorithm::Direct, &mut start(one_slot)).unwrap_err();
    assert!(matches!(error, EngineError::Unfit(_)), "{error:?}");
    assert!(error.to_string().contains("--slots 1"), "{error}");
}
