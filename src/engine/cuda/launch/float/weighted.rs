//! A step of colour under alpha with its kernels, and what it enqueues for a frame.
//!
//! ```text
//! alpha beside its colours, pixels in a tile      source -> result
//! anything else                                   source -> sums (numbers of 32 bits) -> result
//! ```

use super::parameters::{FloatChannel, FloatPlanes, weight_by_alpha};
use super::{FloatGroup, FloatStepEnqueuer, picture};
use crate::engine::EngineError;
use crate::engine::cuda::driver::module::{Function, Module};
use crate::engine::cuda::kernels::float::{weighted_alpha_recipe, weighted_jobs};
use crate::engine::cuda::launch::{Request, StepBuffers, plane_list};
use crate::engine::cuda::select::float::choose_float;
use crate::filter::{ChannelStep, Step, WeightedKernel};
use crate::frame::{Channel, PixelFormat};

/// The launches of a step of colour under alpha.
pub(crate) struct WeightedLaunch {
    groups: Vec<FloatGroup>,
    divide: Option<DivideKernel>,
}

/// The kernel that divides sums by alpha, if their own kernels do not.
struct DivideKernel {
    function: Function,
    _module: Module,
}

impl WeightedLaunch {
    pub(crate) fn new(
        step: &Step,
        kernel: &WeightedKernel,
        format: PixelFormat,
        request: &Request<'_>,
    ) -> Result<WeightedLaunch, EngineError> {
        let (columns, rows) = kernel.kernel.size();
        let mut groups = Vec::new();
        for (job, planes) in weighted_jobs(step, kernel, format) {
            let (tuned, why) = choose_float(&job, &request.context)?;
            request.explain(format!(
                "{format}, {columns}x{rows} mask, {} under alpha: {why}",
                plane_list(&planes)
            ));
            groups.push(FloatGroup::new(&kernel.kernel, tuned, planes, request)?);
        }
        let divide = if groups.iter().all(|group| group.tuned.divides) {
            None
        } else {
            let image = weighted_alpha_recipe(step, kernel, format).image(request.device, request.cache)?;
            let module = Module::load(request.device, &image)?;
            Some(DivideKernel {
                function: module.function(c"unpremultiply")?,
                _module: module,
            })
        };
        Ok(WeightedLaunch { groups, divide })
    }

    /// True if a launch of its own divides the sums.
    pub(crate) fn has_sums(&self) -> bool {
        self.divide.is_some()
    }

    pub(crate) fn has_intermediate(&self) -> bool {
        self.groups.iter().any(FloatGroup::has_intermediate)
    }

    /// Threads of a block of the first kernel.
    pub(crate) fn block(&self) -> Option<(u32, u32)> {
        self.groups.first().map(|group| group.tuned.shape.block)
    }

    pub(crate) fn launch_count(&self) -> usize {
        let passes: usize = self.groups.iter().map(|group| group.passes.len()).sum();
        passes + usize::from(self.divide.is_some())
    }

    /// Enqueues the step.
    pub(crate) fn run(
        &self,
        (step, kernel): (&Step, &WeightedKernel),
        buffers: &StepBuffers<'_>,
    ) -> Result<(), EngineError> {
        let StepBuffers { layout, result, .. } = *buffers;
        let convolved = match &self.divide {
            Some(_) => &buffers.scratch.sums,
            None => result,
        };
        let format = layout.format();
        let most = format.max_value() as f32;
        let alpha = format
            .planes()
            .iter()
            .position(|p| p.channels.contains(&Channel::Alpha));
        let is_packed = format.planes().len() == 1;
        let enqueuer = FloatStepEnqueuer {
            kernel: &kernel.kernel,
            constants: FloatPlanes {
                threshold: f32::from(step.threshold),
                gain: kernel.weighting.gain,
                most,
                ..FloatPlanes::default()
            },
            channels: &|plane| {
                let mut channels = [FloatChannel::default(); 4];
                let each = step.planes[plane].iter().zip(format.planes()[plane].channels);
                for (entry, (what, &channel)) in channels.iter_mut().zip(each) {
                    *entry = float_channel(kernel, what, channel);
                }
                channels
            },
            // Alpha itself is not multiplied.
            alpha: &|plane| alpha.filter(|&alpha| is_packed || alpha != plane),
            buffers: StepBuffers {
                result: convolved,
                ..*buffers
            },
        };
        enqueuer.convolve(&self.groups)?;
        let Some(divide) = &self.divide else {
            return Ok(());
        };
        let mut picture = picture(layout, &kernel.weighting, buffers.source, convolved, result);
        picture.threshold = f32::from(step.threshold);
        picture.most = most;
        let channels = (0..step.planes.len()).flat_map(|plane| {
            let count = step.planes[plane].len();
            (enqueuer.channels)(plane).into_iter().take(count)
        });
        for (place, channel) in channels.take(picture.bias.len()).enumerate() {
            picture.bias[place] = channel.bias;
            picture.fill[place] = channel.fill;
        }
        weight_by_alpha(divide.function, buffers.stream.after_all(), picture)
    }
}

/// The parameters of a component.
fn float_channel(kernel: &WeightedKernel, what: &ChannelStep, channel: Channel) -> FloatChannel {
    let kept = FloatChannel {
        fill: -1,
        ..FloatChannel::default()
    };
    match what {
        // Its sums are the divisor.
        ChannelStep::Copy if channel == Channel::Alpha => FloatChannel {
            border: kernel.outside,
            ..kept
        },
        ChannelStep::Copy => kept,
        ChannelStep::Fill(value) => FloatChannel {
            fill: i32::from(*value),
            ..kept
        },
        ChannelStep::Convolve(c) if c.is_alpha => FloatChannel {
            border: kernel.outside(c),
            ..kept
        },
        ChannelStep::Convolve(c) => FloatChannel {
            bias: kernel.base(channel, c.level),
            border: kernel.outside(c),
            level: f32::from(c.level),
            ..kept
        },
    }
}
