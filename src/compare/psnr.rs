//! Peak signal-to-noise ratio.

/// The ratio in decibels for the mean of squared differences over the square of the largest sample value:
/// `10 log10(max^2 / MSE)`, infinite without a difference.
///
/// For several frames the mean is taken of their MSE first, as FFmpeg does, not of their PSNR.
pub fn psnr(relative_mse: f64) -> f64 {
    if relative_mse > 0.0 {
        // No error exceeds the signal, and zero has no sign.
        (-10.0 * relative_mse.log10()).max(0.0) + 0.0
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_signal_is_twenty_decibels() {
        assert!((psnr(0.01) - 20.0).abs() < 1e-12);
        assert_eq!(format!("{:.2}", psnr(1.0)), "0.00");
        assert_eq!(psnr(0.0), f64::INFINITY);
    }
}
