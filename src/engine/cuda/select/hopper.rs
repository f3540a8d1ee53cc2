//! The built-in timing table of Hopper cards (docs/performance.md, docs/lab).
//!
//! It was measured on an H200. H100 and GH200 have the same multiprocessors and differ in memory and clock,
//! which change the times of all variants by nearly the same factor.

use super::features::LaunchFeatures;
use super::table::{Origin, Table, TableCell, VariantTime};
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::engine::cuda::kernels::variant::MemoryVariant::{
    self, Constant, ConstantShared, Global, Registers, Shared, Tensor,
};

/// The cards of the table, in words.
pub(super) const CARDS: &str = "Hopper cards (measured on an NVIDIA H200)";

/// The compute capability of H100, H200 and GH200.
const HOPPER: (u32, u32) = (9, 0);

/// Algorithm (true for separable), size of the mask, interleaved components, pixels, and milliseconds.
type Row = (bool, usize, usize, u64, &'static [(MemoryVariant, f64)]);

const SMALL: u64 = 1920 * 1080;
const LARGE: u64 = 7680 * 4320;

/// All of 8-bit samples.
#[rustfmt::skip]
const ROWS: [Row; 43] = [
    (false, 3, 1, SMALL, &[(Tensor, 0.0029), (Registers, 0.0090), (Global, 0.0159), (Constant, 0.0148),
        (Shared, 0.0166), (ConstantShared, 0.0160)]),
    (false, 7, 1, SMALL, &[(Registers, 0.0150), (Global, 0.0461), (Constant, 0.0443), (Shared, 0.0342),
        (ConstantShared, 0.0241)]),
    (false, 11, 1, SMALL, &[(Registers, 0.0296), (ConstantShared, 0.0427)]),
    (false, 13, 1, SMALL, &[(Registers, 0.0366), (ConstantShared, 0.0557)]),
    (false, 15, 1, SMALL, &[(Registers, 0.0448), (Global, 0.178), (Constant, 0.167), (Shared, 0.130),
        (ConstantShared, 0.0702)]),
    (false, 25, 1, SMALL, &[(Registers, 0.124), (ConstantShared, 0.189)]),
    (false, 31, 1, SMALL, &[(Registers, 0.220), (ConstantShared, 0.279)]),
    (true, 3, 1, SMALL, &[(Registers, 0.0193), (Global, 0.0209), (Constant, 0.0203), (Shared, 0.0309),
        (ConstantShared, 0.0280)]),
    (true, 7, 1, SMALL, &[(Registers, 0.0173), (Global, 0.0261), (Constant, 0.0257), (Shared, 0.0359),
        (ConstantShared, 0.0308)]),
    (true, 15, 1, SMALL, &[(Registers, 0.0212), (Global, 0.0411), (Constant, 0.0387), (Shared, 0.0406),
        (ConstantShared, 0.0350)]),
    (true, 25, 1, SMALL, &[(Registers, 0.0268), (ConstantShared, 0.0405)]),
    (false, 3, 3, SMALL, &[(Registers, 0.0271), (Global, 0.0445), (Constant, 0.0392), (Shared, 0.0524),
        (ConstantShared, 0.0509)]),
    (false, 7, 3, SMALL, &[(Registers, 0.0413), (Global, 0.129), (Constant, 0.119), (Shared, 0.0987),
        (ConstantShared, 0.0758)]),
    (false, 15, 3, SMALL, &[(Registers, 0.124), (Global, 0.661), (Constant, 0.441), (Shared, 0.385),
        (ConstantShared, 0.222)]),
    (true, 3, 3, SMALL, &[(Registers, 0.0383), (Global, 0.0614), (Constant, 0.0575), (Shared, 0.0854),
        (ConstantShared, 0.0837)]),
    (true, 7, 3, SMALL, &[(Registers, 0.0427), (Global, 0.0739), (Constant, 0.0707), (Shared, 0.0939),
        (ConstantShared, 0.0905)]),
    (true, 15, 3, SMALL, &[(Registers, 0.0563), (Global, 0.115), (Constant, 0.107), (Shared, 0.116),
        (ConstantShared, 0.106)]),
    (false, 5, 1, LARGE, &[(Tensor, 0.0216)]),
    (false, 7, 1, LARGE, &[(Tensor, 0.0251)]),
    (false, 9, 1, LARGE, &[(Tensor, 0.0283)]),
    (false, 11, 1, LARGE, &[(Tensor, 0.0382)]),
    (false, 13, 1, LARGE, &[(Tensor, 0.0412)]),
    (false, 15, 1, LARGE, &[(Tensor, 0.0473)]),
    (false, 25, 1, LARGE, &[(Tensor, 0.121)]),
    (false, 31, 1, LARGE, &[(Tensor, 0.165)]),
    (true, 5, 1, LARGE, &[(Tensor, 0.0269)]),
    (true, 9, 1, LARGE, &[(Tensor, 0.0275)]),
    (true, 15, 1, LARGE, &[(Tensor, 0.0279)]),
    (true, 25, 1, LARGE, &[(Tensor, 0.0391)]),
    (false, 3, 3, LARGE, &[(Tensor, 0.0551)]),
    (false, 5, 3, LARGE, &[(Tensor, 0.0710)]),
    (false, 9, 3, LARGE, &[(Tensor, 0.0939)]),
    (false, 15, 3, LARGE, &[(Tensor, 0.157)]),
    (true, 5, 3, LARGE, &[(Tensor, 0.0750)]),
    (true, 15, 3, LARGE, &[(Tensor, 0.103)]),
    (false, 3, 4, LARGE, &[(Tensor, 0.101)]),
    (false, 5, 4, LARGE, &[(Tensor, 0.112)]),
    (false, 9, 4, LARGE, &[(Tensor, 0.144)]),
    (false, 15, 4, LARGE, &[(Tensor, 0.230)]),
    (true, 3, 4, LARGE, &[(Tensor, 0.133)]),
    (true, 9, 4, LARGE, &[(Tensor, 0.135)]),
    (true, 15, 4, LARGE, &[(Tensor, 0.141)]),
    (true, 25, 4, LARGE, &[(Tensor, 0.203)]),
];

/// The table, if `card` is one of them.
pub(crate) fn table(card: &DeviceInfo) -> Option<Table> {
    (card.compute_capability == HOPPER).then(|| Table {
        origin: Origin::BuiltIn(CARDS),
        cells: ROWS.iter().map(cell).collect(),
        ignored: None,
    })
}

fn cell(&(separable, mask, channels, pixels, times): &Row) -> TableCell {
    TableCell {
        work: LaunchFeatures {
            separable,
            mask_width: mask,
            mask_height: mask,
            channels,
            sample_bytes: 1,
            wide: false,
            samples: pixels * channels as u64,
        },
        times: times
            .iter()
            .map(|&(variant, milliseconds)| VariantTime {
                variant,
                milliseconds,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::tests::gray;
    use super::*;

    fn card(compute_capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            compute_capability,
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn every_hopper_card_has_it_and_no_other() {
        assert!(table(&card((9, 0))).is_some());
        for other in [(8, 0), (8, 9), (10, 0), (12, 0)] {
            assert_eq!(table(&card(other)), None, "{other:?}");
        }
    }

    #[test]
    fn tensor_cores_first_then_registers() {
        let table = table(&card(HOPPER)).unwrap();
        let plain = [Registers, ConstantShared, Shared, Constant, Global];
        let all = [Tensor, Registers, ConstantShared, Shared, Constant, Global];
        for size in [3, 5, 7, 9, 11, 13, 15, 25, 63] {
            for separable in [false, true] {
                for samples in [320 * 240, SMALL, LARGE] {
                    for (channels, sample_bytes, wide) in [
                        (1, 1, false),
                        (3, 1, false),
                        (4, 1, false),
                        (1, 2, true),
                        (4, 2, true),
                    ] {
                        let work = LaunchFeatures {
                            channels,
                            sample_bytes,
                            wide,
                            ..gray(separable, size, samples * channels as u64)
                        };
                        assert_eq!(table.pick(&work, &all).unwrap().variant, Tensor, "{work}");
                        let pick = table.pick(&work, &plain).unwrap();
                        assert_eq!(pick.variant, Registers, "{work}: {}", pick.why);
                    }
                }
            }
        }
    }
}
