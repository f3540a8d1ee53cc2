//! Fourier transforms of `N` (64, 128 or 256) complex points, one in each lane of a vector. Forward
//! transforms decimate in frequency, backward ones in time: the spectrum between them is in digit-reversed
//! order, and no point is ever moved.
//!
//! Passes are of radix 4 (Cooley and Tukey 1965), and one of radix 8 if log2 N is odd. The last forward pass,
//! the product with a spectrum and the first backward pass are one loop.

use crate::engine::cpu::simd::float::{Complex, Float, Line};

/// The factors exp(-2 pi i j k / M), j = 1 to 3, of the passes over blocks of M points, for k below M / 4:
/// largest M first.
pub(super) struct Twiddles<R: Float>(Vec<Vec<[Complex<R::Number>; 3]>>);

/// Points of a block of the last forward pass.
const fn last<const N: usize>() -> usize {
    if N.trailing_zeros() % 2 == 1 { 8 } else { 4 }
}

impl<R: Float> Twiddles<R> {
    /// The factors of transforms of `N` points.
    pub(super) fn new<const N: usize>() -> Twiddles<R> {
        const { assert!(N == 64 || N == 128 || N == 256) };
        let blocks = std::iter::successors(Some(N), |m| Some(m / 4)).take_while(|&m| m > last::<N>());
        let factor = |j: usize, k: usize, m: usize| {
            let (sin, cos) = (-2.0 * std::f64::consts::PI * (j * k) as f64 / m as f64).sin_cos();
            Complex {
                re: R::number(cos),
                im: R::number(sin),
            }
        };
        let of_block = |m: usize| (0..m / 4).map(|k| [1, 2, 3].map(|j| factor(j, k, m))).collect();
        Twiddles(blocks.map(of_block).collect())
    }

    /// Forward transform.
    #[inline(always)]
    pub(super) fn forward<const N: usize>(&self, simd: R, x: &mut Line<R, N>) {
        self.run::<N, true, false>(simd, x, None);
    }

    /// Backward transform, without the division by `N`.
    #[inline(always)]
    pub(super) fn backward<const N: usize>(&self, simd: R, x: &mut Line<R, N>) {
        self.run::<N, false, true>(simd, x, None);
    }

    /// Forward transform, product with `spectrum`, and backward transform without the division by `N`.
    #[inline(always)]
    pub(super) fn through<const N: usize>(&self, simd: R, x: &mut Line<R, N>, spectrum: &Line<R, N>) {
        self.run::<N, true, true>(simd, x, Some(spectrum));
    }

    /// Forward passes if `FORTH`, product with `spectrum` if there is one, backward passes if `BACK`.
    #[inline(always)]
    fn run<const N: usize, const FORTH: bool, const BACK: bool>(
        &self,
        simd: R,
        x: &mut Line<R, N>,
        spectrum: Option<&Line<R, N>>,
    ) {
        let has_third = N / 16 > last::<N>();
        if FORTH {
            pass::<R, N, false>(simd, x, N, &self.0[0]);
            pass::<R, N, false>(simd, x, N / 4, &self.0[1]);
            if has_third {
                pass::<R, N, false>(simd, x, N / 16, &self.0[2]);
            }
        }
        if last::<N>() == 8 {
            for (k, block) in x.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let mut y = *block;
                if FORTH {
                    y = forward_of_eight(simd, &y);
                }
                if let Some(spectrum) = spectrum {
                    y = products(simd, y, &spectrum.as_chunks::<8>().0[k]);
                }
                if BACK {
                    y = inverse_of_eight(simd, &y);
                }
                *block = y;
            }
        } else {
            for (k, block) in x.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let mut y = *block;
                if FORTH {
                    y = of_four::<R, false>(simd, y);
                }
                if let Some(spectrum) = spectrum {
                    y = products(simd, y, &spectrum.as_chunks::<4>().0[k]);
                }
                if BACK {
                    y = of_four::<R, true>(simd, y);
                }
                *block = y;
            }
        }
        if BACK {
            if has_third {
                pass::<R, N, true>(simd, x, N / 16, &self.0[2]);
            }
            pass::<R, N, true>(simd, x, N / 4, &self.0[1]);
            pass::<R, N, true>(simd, x, N, &self.0[0]);
        }
    }
}

/// A pass over blocks of `m` points: forward; with `BACK` its inverse, times four.
#[inline(always)]
fn pass<R: Float, const N: usize, const BACK: bool>(
    simd: R,
    x: &mut Line<R, N>,
    m: usize,
    twiddles: &[[Complex<R::Number>; 3]],
) {
    let h = m / 4;
    for (k, turn) in twiddles[..h].iter().enumerate() {
        let by = [
            everywhere(simd, turn[0]),
            everywhere(simd, turn[1]),
            everywhere(simd, turn[2]),
        ];
        for block in x.chunks_exact_mut(m) {
            let mut y = [block[k], block[k + h], block[k + 2 * h], block[k + 3 * h]];
            if BACK {
                for j in 0..3 {
                    y[j + 1] = product_back(simd, y[j + 1], by[j]);
                }
            }
            y = of_four::<R, BACK>(simd, y);
            if !BACK {
                for j in 0..3 {
                    y[j + 1] = product(simd, y[j + 1], by[j]);
                }
            }
            for j in 0..4 {
                block[k + j * h] = y[j];
            }
        }
    }
}

/// The same complex number in every lane.
#[inline(always)]
fn everywhere<R: Float>(simd: R, a: Complex<R::Number>) -> Complex<R::V> {
    Complex {
        re: simd.splat(a.re),
        im: simd.splat(a.im),
    }
}

#[inline(always)]
fn add<R: Float>(simd: R, a: Complex<R::V>, b: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.add(a.re, b.re),
        im: simd.add(a.im, b.im),
    }
}

#[inline(always)]
fn sub<R: Float>(simd: R, a: Complex<R::V>, b: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.sub(a.re, b.re),
        im: simd.sub(a.im, b.im),
    }
}

/// `a + i b`
#[inline(always)]
fn add_turned<R: Float>(simd: R, a: Complex<R::V>, b: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.sub(a.re, b.im),
        im: simd.add(a.im, b.re),
    }
}

/// `a - i b`
#[inline(always)]
fn sub_turned<R: Float>(simd: R, a: Complex<R::V>, b: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.add(a.re, b.im),
        im: simd.sub(a.im, b.re),
    }
}

/// `a x by`
#[inline(always)]
fn product<R: Float>(simd: R, a: Complex<R::V>, by: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.mul_sub(a.re, by.re, simd.mul(a.im, by.im)),
        im: simd.mul_add(a.re, by.im, simd.mul(a.im, by.re)),
    }
}

/// `a` times the conjugate of `by`.
#[inline(always)]
fn product_back<R: Float>(simd: R, a: Complex<R::V>, by: Complex<R::V>) -> Complex<R::V> {
    Complex {
        re: simd.mul_add(a.re, by.re, simd.mul(a.im, by.im)),
        im: simd.mul_sub(a.im, by.re, simd.mul(a.re, by.im)),
    }
}

/// The product of each point and the spectrum's.
#[inline(always)]
fn products<R: Float, const M: usize>(simd: R, mut x: Line<R, M>, by: &Line<R, M>) -> Line<R, M> {
    for k in 0..M {
        x[k] = product(simd, x[k], by[k]);
    }
    x
}

/// The transform of four points, forward or `BACK`.
#[inline(always)]
fn of_four<R: Float, const BACK: bool>(simd: R, [a, b, c, d]: Line<R, 4>) -> Line<R, 4> {
    let (even, odd) = (add(simd, a, c), sub(simd, a, c));
    let (even_next, odd_next) = (add(simd, b, d), sub(simd, b, d));
    let turned = [sub_turned(simd, odd, odd_next), add_turned(simd, odd, odd_next)];
    [
        add(simd, even, even_next),
        turned[usize::from(BACK)],
        sub(simd, even, even_next),
        turned[usize::from(!BACK)],
    ]
}

/// `a (1 - i) / sqrt(2)`, or with `BACK` `a (1 + i) / sqrt(2)`.
#[inline(always)]
fn eighth_turn<R: Float, const BACK: bool>(simd: R, a: Complex<R::V>) -> Complex<R::V> {
    let half = simd.splat(R::number(std::f64::consts::FRAC_1_SQRT_2));
    let (re, im) = if BACK {
        (simd.sub(a.re, a.im), simd.add(a.re, a.im))
    } else {
        (simd.add(a.re, a.im), simd.sub(a.im, a.re))
    };
    Complex {
        re: simd.mul(re, half),
        im: simd.mul(im, half),
    }
}

#[inline(always)]
fn forward_of_eight<R: Float>(simd: R, x: &Line<R, 8>) -> Line<R, 8> {
    let low = [
        add(simd, x[0], x[4]),
        add(simd, x[1], x[5]),
        add(simd, x[2], x[6]),
        add(simd, x[3], x[7]),
    ];
    let low = of_four::<R, false>(simd, low);
    // Turned by none, one, two and three eighths: of the third, the quarter turn is part of the sums; of the
    // fourth, it is left to the next ones.
    let (a, b) = (
        sub(simd, x[0], x[4]),
        eighth_turn::<R, false>(simd, sub(simd, x[1], x[5])),
    );
    let (c, d) = (
        sub(simd, x[2], x[6]),
        eighth_turn::<R, false>(simd, sub(simd, x[3], x[7])),
    );
    let (even, odd) = (sub_turned(simd, a, c), add_turned(simd, a, c));
    let (even_next, odd_next) = (sub_turned(simd, b, d), add_turned(simd, b, d));
    let [l0, l1, l2, l3] = low;
    [
        l0,
        l1,
        l2,
        l3,
        add(simd, even, even_next),
        sub_turned(simd, odd, odd_next),
        sub(simd, even, even_next),
        add_turned(simd, odd, odd_next),
    ]
}

#[inline(always)]
fn inverse_of_eight<R: Float>(simd: R, y: &Line<R, 8>) -> Line<R, 8> {
    let low = of_four::<R, true>(simd, [y[0], y[1], y[2], y[3]]);
    let high = of_four::<R, true>(simd, [y[4], y[5], y[6], y[7]]);
    let (second, fourth) = (
        eighth_turn::<R, true>(simd, high[1]),
        eighth_turn::<R, true>(simd, high[3]),
    );
    [
        add(simd, low[0], high[0]),
        add(simd, low[1], second),
        add_turned(simd, low[2], high[2]),
        add_turned(simd, low[3], fourth),
        sub(simd, low[0], high[0]),
        sub(simd, low[1], second),
        sub_turned(simd, low[2], high[2]),
        sub_turned(simd, low[3], fourth),
    ]
}
