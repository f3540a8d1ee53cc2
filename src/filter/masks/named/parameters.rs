//! What named masks take: parameters with their ranges and defaults, and the arguments that a user gave.

use super::smooth::{Bell, sigma_of};
use crate::filter::MAX_MASK;
use std::cell::{Cell, RefCell};

/// One parameter of a named mask.
#[derive(Debug)]
pub struct Parameter {
    /// The word before the equals sign.
    pub name: &'static str,
    /// What it is when it is not given.
    pub default: Preset,
    /// What it means, with its unit.
    pub about: &'static str,
    /// What it may be.
    pub range: Range,
}

/// What a parameter is when it is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Preset {
    /// This.
    Value(f64),
    /// Computed from the others, as this text says.
    Follows(&'static str),
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// An odd integer from this to [`MAX_MASK`].
    Side(usize),
    /// A number above the first and up to the second.
    Above(f64, f64),
    /// A number from the first to the second.
    Within(f64, f64),
}

impl Range {
    /// True if the parameter may be `value`, in the unit that [`Parameter::about`] names.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Range::Side(least) => {
                value.fract() == 0.0
                    && value % 2.0 == 1.0
                    && value >= least as f64
                    && value <= MAX_MASK as f64
            }
            Range::Above(low, high) => value > low && value <= high,
            Range::Within(low, high) => value >= low && value <= high,
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Range::Side(least) => write!(f, "an odd integer from {least} to {MAX_MASK}"),
            Range::Above(low, high) => write!(f, "a number above {low} and up to {high}"),
            Range::Within(low, high) => write!(f, "a number from {low} to {high}"),
        }
    }
}

/// The parameters that the user gave, each within its range.
#[derive(Debug)]
pub(in crate::filter) struct Arguments<'a> {
    pub(in crate::filter) parameters: &'a [Parameter],
    pub(in crate::filter) given: Vec<(&'a str, f64)>,
    /// Where the mask is not quite what was requested; set while it is built.
    pub(in crate::filter) caveat: RefCell<Option<String>>,
    /// Sigma of a Gaussian that no mask holds; set while the mask of its middle is built.
    pub(in crate::filter) wide: Cell<Option<f64>>,
}

impl Arguments<'_> {
    /// The value given.
    fn given(&self, name: &str) -> Option<f64> {
        self.given
            .iter()
            .find(|(key, _)| *key == name)
            .map(|&(_, value)| value)
    }

    /// The value given, or the table's default.
    pub(in crate::filter) fn value(&self, name: &str) -> f64 {
        let preset = |p: &Parameter| match p.default {
            Preset::Value(value) if p.name == name => Some(value),
            _ => None,
        };
        self.given(name)
            .or_else(|| self.parameters.iter().find_map(preset))
            .unwrap_or_default()
    }

    pub(super) fn side(&self, name: &str) -> usize {
        self.value(name) as usize
    }

    /// [`Arguments::bell`] for a blur, which needs no mask that holds it.
    pub(super) fn blur(&self) -> Bell {
        let bell = self.bell(1.0, 3.0);
        self.wide.set(self.caveat.take().map(|_| bell.sigma));
        bell
    }

    /// Size and sigma of a bell, each from the other where only one is given; `reach` sigmas on either side
    /// fit the size.
    pub(super) fn bell(&self, sigma: f64, reach: f64) -> Bell {
        let (size, given) = (self.given("size"), self.given("sigma"));
        let sigma = given.or_else(|| size.map(sigma_of)).unwrap_or(sigma);
        let wanted = 2.0 * (reach * sigma).ceil() + 1.0;
        let size = size.unwrap_or(wanted.min(MAX_MASK as f64)) as usize;
        if self.given("size").is_none() && wanted > size as f64 {
            self.caveat.replace(Some(format!(
                "sigma {sigma} needs a mask of {wanted}x{wanted}; it is cut off at {size}x{size}, which \
                 filters less than sigma says"
            )));
        }
        Bell { size, sigma }
    }
}
