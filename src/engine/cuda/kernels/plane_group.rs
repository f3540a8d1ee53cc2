//! What one kernel works on: the planes of a step that are interleaved in the same way.
//!
//! ```text
//! yuv420p   Y | U | V     one group: one component each
//! nv12      Y | UV        two groups: one component, two
//! rgba      RGBA          one group; with alpha copied, bits 0 to 2 are convolved
//! ```
//!
//! A plane of which nothing is convolved is copied or filled. The parameters that all kernels have are here,
//! too: the numbers of borders and of combinings, the width of sums.

use crate::filter::{Border, ChannelStep, Combining, Division, FloatCombining, Kernel, Step};
use crate::frame::PixelFormat;

/// Planes of one interleaving in a step: what one kernel works on.
pub(crate) struct PlaneGroup<'a> {
    pub(crate) step: &'a Step,
    pub(crate) format: PixelFormat,
    pub(crate) interleaving: Interleaving,
    pub(crate) planes: &'a [usize],
}

/// How a step makes a plane of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaneWork {
    /// By copying the plane.
    Copy,
    /// By setting every sample to this value.
    Fill(u16),
    /// By a kernel.
    Kernel(Interleaving),
}

/// How a plane's components are interleaved, and which of them are convolved (a bit each).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interleaving {
    pub(crate) channels: usize,
    pub(crate) convolved: u32,
}

pub(crate) fn plane_work(channels: &[ChannelStep]) -> PlaneWork {
    let first = channels.first().copied().unwrap_or(ChannelStep::Copy);
    if channels.iter().all(|c| *c == first) {
        match first {
            ChannelStep::Copy => return PlaneWork::Copy,
            ChannelStep::Fill(value) => return PlaneWork::Fill(value),
            ChannelStep::Convolve(_) => {}
        }
    }
    let convolved = channels
        .iter()
        .enumerate()
        .filter(|(_, c)| c.convolved().is_some())
        .map(|(i, _)| 1 << i)
        .sum();
    PlaneWork::Kernel(Interleaving {
        channels: channels.len(),
        convolved,
    })
}

/// The planes of a step that one launch can work on together.
pub(crate) fn groups(step: &Step) -> Vec<(Interleaving, Vec<usize>)> {
    let mut groups: Vec<(Interleaving, Vec<usize>)> = Vec::new();
    for (plane, channels) in step.planes.iter().enumerate() {
        if let PlaneWork::Kernel(interleaving) = plane_work(channels) {
            match groups.iter_mut().find(|(i, _)| *i == interleaving) {
                Some((_, planes)) => planes.push(plane),
                None => groups.push((interleaving, vec![plane])),
            }
        }
    }
    groups
}

/// True if the sums of a step need 64 bits.
pub(crate) fn is_wide(step: &Step, format: PixelFormat) -> bool {
    match &step.kernel {
        kernel if kernel.is_long() => true,
        Kernel::Direct(_) => format.depth() > 12,
        Kernel::Combined(k) => k.most_sum(format.max_value()) + (1 << k.shift) > i64::from(i32::MAX),
        Kernel::Separable(k) => k.wide,
        Kernel::Pyramid(k) => k.is_wide(),
        Kernel::Weighted(_) => false,
    }
}

/// The division that makes levels of a step's sums.
pub(crate) fn division(kernel: &Kernel) -> Division {
    match kernel {
        Kernel::Direct(k) => k.division,
        Kernel::Separable(k) => k.column.division,
        Kernel::Combined(k) => Division::by_power_of_two(k.shift),
        Kernel::Pyramid(k) => Division::by_power_of_two(k.last_shift()),
        Kernel::Weighted(_) => Division::by_power_of_two(0),
    }
}

/// True if a multiplication divides the sums of a step.
pub(crate) fn divides(step: &Step) -> bool {
    division(&step.kernel).factor().is_some()
}

/// Bytes of a value of the intermediate between the two passes.
pub(crate) fn intermediate_bytes(wide: bool) -> usize {
    if wide { 4 } else { 2 }
}

/// The parameter COMBINING for a kernel whose sums become samples, as `kernels/common/enums.cuh` has it.
pub(crate) const LINEAR_NUMBER: i64 = 3;

/// The parameter COMBINING, as `kernels/common/enums.cuh` has it.
pub(crate) fn combining_number(combining: Combining) -> i64 {
    match combining {
        Combining::Absolute => 0,
        Combining::Largest => 1,
        Combining::Magnitude(_) => 2,
    }
}

/// The same of floating-point samples.
pub(crate) fn float_combining_number(combining: &FloatCombining) -> i64 {
    match combining {
        FloatCombining::Absolute => 0,
        FloatCombining::Largest => 1,
        FloatCombining::Magnitude(_) => 2,
    }
}

/// The parameter BORDER, as `kernels/common/border.cuh` has it.
pub(crate) fn border_number(border: Border) -> i64 {
    match border {
        Border::Replicate => 0,
        Border::Zero | Border::Constant(_) => 1,
        Border::Reflect => 2,
        Border::Mirror => 3,
        Border::Wrap => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Algorithm, Chain, Plan, Planes, Scale};
    use crate::frame::Colour;

    fn plan(format: &str, planes: Planes) -> Plan {
        let chain = Chain {
            filters: vec!["box:size=3".parse().unwrap()],
            border: Border::Replicate,
            planes,
            algorithm: Algorithm::Direct,
            alpha: Default::default(),
        };
        let format = PixelFormat::from_name(format).unwrap();
        Plan::new(&chain, format, &Colour::default()).unwrap()
    }

    #[test]
    fn borders_have_the_numbers_that_kernels_know_them_by() {
        let text = include_str!("../../../../kernels/common/border.cuh");
        for border in Border::ALL {
            let name = match border {
                Border::Replicate => "REPLICATE",
                Border::Zero | Border::Constant(_) => "CONSTANT",
                Border::Reflect => "REFLECT",
                Border::Mirror => "MIRROR",
                Border::Wrap => "WRAP",
            };
            let line = format!("    {name} = {},", border_number(border));
            assert!(text.contains(&line), "{line}");
        }
    }

    #[test]
    fn combinings_have_the_numbers_that_kernels_know_them_by() {
        let text = include_str!("../../../../kernels/common/enums.cuh");
        let magnitude = Combining::Magnitude(Scale::ONE);
        for (name, number) in [
            ("ABSOLUTE", combining_number(Combining::Absolute)),
            ("ABSOLUTE", float_combining_number(&FloatCombining::Absolute)),
            ("LARGEST", combining_number(Combining::Largest)),
            ("LARGEST", float_combining_number(&FloatCombining::Largest)),
            ("MAGNITUDE", combining_number(magnitude)),
            (
                "MAGNITUDE",
                float_combining_number(&FloatCombining::Magnitude(1.0)),
            ),
            ("LINEAR", LINEAR_NUMBER),
        ] {
            let line = format!("    {name} = {number},");
            assert!(text.contains(&line), "{line}");
        }
    }

    #[test]
    fn planes_of_one_interleaving_share_a_launch() {
        let yuv = plan("yuv420p", Planes::All);
        assert_eq!(groups(&yuv.steps[0]).len(), 1);
        assert_eq!(groups(&yuv.steps[0])[0].1, [0, 1, 2]);
        let nv12 = plan("nv12", Planes::All);
        assert_eq!(groups(&nv12.steps[0]).len(), 2);
        let luma = plan("nv12", Planes::Luma);
        assert_eq!(groups(&luma.steps[0]).len(), 1);
        assert_eq!(plane_work(&luma.steps[0].planes[1]), PlaneWork::Copy);
        let gray = plan("nv12", Planes::Gray);
        assert_eq!(plane_work(&gray.steps[0].planes[1]), PlaneWork::Fill(128));
    }
}
