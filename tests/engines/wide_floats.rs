//! Gaussians of floating-point samples that fit no mask: the same bits on every engine, in the stated order,
//! and as close to the real ones as docs/arithmetic.md says.

use super::float::{Extras, associated, chain, formats, frame_of_bits, noise, reference_is_restated};
use super::oracle::{Random, compare, run, stored};
use super::wide_gaussians::gaussian;
use framepipe::engine::cpu::Cpu;
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Chain, FloatKernel, FloatPlan};
use framepipe::frame::{Colour, Frame, PixelFormat};

/// The most that a result of samples from 0 to 1 differs from the real Gaussian.
const MOST_OFF: f64 = 1.0 / 4000.0;

fn wide(sigma: f64, border: Border, planes: &str) -> Chain {
    chain(
        &[&format!("gaussian:sigma={sigma}:bias=-3.5")],
        border,
        planes,
        Algorithm::Auto,
    )
}

#[test]
fn the_reference_follows_the_passes_to_the_bit() {
    let mut random = Random::new(81);
    for border in Border::ALL {
        for (format, sigma, size) in [
            (PixelFormat::GRAYF32, 10.4, (23, 9)),
            (PixelFormat::RGBF16, 20.0, (5, 17)),
            (PixelFormat::YAF32, 12.0, (7, 3)),
            (PixelFormat::GRAYF32, 41.0, (1, 1)),
        ] {
            let extras = [Extras::None, Extras::Finite, Extras::All][random.below(3) as usize];
            let frame = noise(format, size, &mut random, extras);
            reference_is_restated(&wide(sigma, border, "all+alpha"), &frame);
        }
    }
}

#[test]
fn every_set_gives_the_references_bits_in_every_format() {
    let mut random = Random::new(82);
    let kinds = [Extras::None, Extras::Finite, Extras::All];
    for (turn, format) in formats()
        .into_iter()
        .cycle()
        .take(2 * formats().len())
        .enumerate()
    {
        let (sigma, size) = [(10.4, (37, 29)), (20.0, (53, 17)), (41.0, (19, 61))][turn % 3];
        let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
        let mut frame = noise(format, size, &mut random, kinds[(turn + turn / 3) % 3]);
        if turn % 5 == 0 {
            frame.metadata.colour = associated();
        }
        let mut chain = wide(sigma, border, ["all", "all+alpha"][turn % 2]);
        if turn % 4 == 3 {
            chain.filters[0].threshold = 40.0;
        }
        compare(&chain, &frame, 1 + turn % 3, [1, 2, 64][turn % 3]);
    }
    // Alpha, or some colours alone.
    for (format, planes) in [
        (PixelFormat::RGBAF32, "a"),
        (PixelFormat::RGBAF16, "r,b"),
        (PixelFormat::GBRAPF32, "g,a"),
        (PixelFormat::GBRAPF16, "b"),
        (PixelFormat::YAF16, "a"),
        (PixelFormat::RGBF32, "g"),
    ] {
        let frame = noise(format, (29, 11), &mut random, Extras::Finite);
        compare(&wide(11.0, Border::Mirror, planes), &frame, 2, 1);
    }
}

#[test]
fn every_set_gives_the_references_bits_at_every_border_and_size() {
    let mut random = Random::new(83);
    let sizes = [(1, 1), (1, 13), (13, 1), (2, 3), (67, 31), (307, 5), (5, 131)];
    for (turn, border) in Border::ALL.into_iter().enumerate() {
        for (place, size) in sizes.into_iter().enumerate() {
            // Each size meets each sigma.
            let sigma = [10.4, 20.0, 50.0, 150.0][(turn + place) % 4];
            let frame = noise(PixelFormat::GRAYF32, size, &mut random, Extras::Finite);
            compare(&wide(sigma, border, "all"), &frame, 2, 1);
        }
    }
    // The widest, and rows that are longer than all of a thread's lines.
    for (sigma, format, size) in [
        (1000.0, PixelFormat::GRAYF32, (2, 3)),
        (11.0, PixelFormat::RGBF32, (4500, 2)),
    ] {
        let frame = noise(format, size, &mut random, Extras::None);
        compare(&wide(sigma, Border::Wrap, "all"), &frame, 1, 64);
    }
}

/// Strips of several threads, in chains with masks before and behind.
#[test]
fn strips_of_rows_give_the_references_bits() {
    let mut random = Random::new(84);
    for (format, size) in [
        (PixelFormat::GRAYF32, (31, 487)),
        (PixelFormat::GBRAPF32, (17, 451)),
        (PixelFormat::RGBAF16, (11, 530)),
    ] {
        let specs = ["sharpen", "gaussian:sigma=12", "laplacian8"];
        let chain = chain(&specs, Border::Mirror, "all", Algorithm::Auto);
        compare(&chain, &noise(format, size, &mut random, Extras::None), 4, 1);
    }
}

fn gray(size: (usize, usize), mut sample: impl FnMut(usize, usize) -> f32) -> Frame {
    let mut at = 0;
    frame_of_bits(PixelFormat::GRAYF32, size, &mut || {
        at += 1;
        sample((at - 1) % size.0, (at - 1) / size.0).to_bits()
    })
}

fn samples(frame: &Frame) -> Vec<f64> {
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let sample = |(x, y)| f64::from(f32::from_bits(stored(frame, 0, x, y, 0)));
    places.map(sample).collect()
}

#[test]
fn results_are_as_close_to_the_real_gaussian_as_stated() {
    let mut random = Random::new(85);
    let size = (121, 83);
    let white = gray(size, |_, _| random.below(1 << 24) as f32 / (1 << 24) as f32);
    // Steps of full height show what is wrong with a kernel best.
    let steps = gray(size, |x, y| if (x / 31 + y / 23) % 2 == 0 { 1.0 } else { 0.0 });
    for border in Border::ALL {
        for sigma in [10.4, 18.2, 30.0, 50.0, 100.0, 150.0] {
            let spec = format!("gaussian:sigma={sigma}");
            let chain = chain(&[&spec], border, "all", Algorithm::Auto);
            for frame in [&white, &steps] {
                let got = samples(&run(&mut Cpu::new(chain.clone(), 1).unwrap(), frame, 1));
                let outside = match border {
                    Border::Constant(level) => level / 255.0,
                    _ => 0.0,
                };
                let wanted = gaussian(&samples(frame), size, sigma, (border, outside));
                for (at, (got, wanted)) in got.into_iter().zip(wanted).enumerate() {
                    let off = (got - wanted).abs();
                    assert!(
                        off < MOST_OFF,
                        "{border}, sigma {sigma}, pixel {at}: {got} for {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn constant_pictures_stay_as_they_are_but_for_roundings() {
    for sigma in [10.4, 14.0, 20.0, 41.0, 100.0, 150.0, 1000.0] {
        for value in [1.0, 0.7, -3.0e-7, 1.0e30] {
            let frame = gray((9, 7), |_, _| value);
            let spec = format!("gaussian:sigma={sigma}");
            let chain = chain(&[&spec], Border::Mirror, "all", Algorithm::Auto);
            for got in samples(&run(&mut Cpu::new(chain, 1).unwrap(), &frame, 1)) {
                let off = (got / f64::from(value) - 1.0).abs();
                assert!(off < 3e-6, "sigma {sigma}: {got} for {value}");
            }
        }
    }
}

#[test]
fn what_is_not_a_number_spreads_as_far_as_the_passes_reach() {
    let size = (301, 3);
    let frame = gray(size, |x, y| if (x, y) == (150, 1) { f32::NAN } else { 0.5 });
    let chain = chain(
        &["gaussian:sigma=10.4"],
        Border::Replicate,
        "all",
        Algorithm::Auto,
    );
    let plan = FloatPlan::new(&chain, PixelFormat::GRAYF32, &Colour::default()).unwrap();
    let FloatKernel::Pyramid(kernel) = &plan.steps[0].kernel else {
        panic!("it fits no mask");
    };
    let (step, radius) = (kernel.grid.step, kernel.grid.radius());
    let found = run(&mut Reference::new(chain), &frame, 1);
    for (x, y) in (0..size.1).flat_map(|y| (0..size.0).map(move |x| (x, y))) {
        let number = f32::from_bits(stored(&found, 0, x, y, 0));
        let distance = x.abs_diff(150);
        assert!(!number.is_nan() || distance <= radius, "({x}, {y})");
        assert!(number.is_nan() || distance > radius - 2 * step, "({x}, {y})");
        assert!(!number.is_nan() || number.to_bits() == 0x7fc0_0000);
    }
}
