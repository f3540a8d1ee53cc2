//! Frames that stay on the card for its encoder.
//!
//! An encoder of the card's reads pictures in its memory, so that results need not leave it. That is done
//! where nothing on the way from the filter to the encoder looks at the samples in the host's memory.

use super::SURFACES;
use crate::explain::EXPLAIN_TARGET;
use crate::frame::{DeviceHandle, Frame};
use crate::media::ffmpeg::{CardSurfaces, SurfaceError};
use crate::sink::video::settings::encoder::Hdr;
use crate::sink::video::settings::stage::Staged;
use crate::sink::video::{SinkError, VideoSink};

impl VideoSink {
    /// Takes an offer of frames on the card if the encoder can read them there, which is tried.
    pub(in crate::sink::video) fn settle_on_card(
        &mut self,
        device: Result<DeviceHandle, &'static str>,
    ) -> bool {
        if !self.kind.reads_on_card() {
            return false;
        }
        let device = device.map_err(str::to_owned);
        let settled = device.and_then(|device| self.try_on_card(&device).map(|()| device));
        let name = self.kind.name();
        match &settled {
            Ok(_) => tracing::info!(
                target: EXPLAIN_TARGET,
                "encode: results stay on the card, where {name} reads them"
            ),
            Err(why) => tracing::info!(
                target: EXPLAIN_TARGET,
                "encode: results go to {name} through the host's memory, because {why}"
            ),
        }
        self.device = settled.ok();
        self.device.is_some()
    }

    /// Opens the encoder on `device` for frames as the stream's facts announce them, for trial. An error
    /// is a clause.
    fn try_on_card(&self, device: &DeviceHandle) -> Result<(), String> {
        let info = &self.info;
        let choice = self.announced_choice()?;
        if !info.uniform {
            return Err("frames may be of several formats and sizes".to_owned());
        }
        if choice.converts {
            return Err(format!(
                "the processor converts {} to {}",
                info.format,
                choice.format.name()
            ));
        }
        if info.format.has_alpha() {
            return Err("the processor looks for alpha in them".to_owned());
        }
        let options = &self.options.encoder_options;
        if options
            .iter()
            .any(|(key, _)| matches!(key.as_str(), "gpu" | "gpu:v"))
        {
            return Err("the option gpu names the encoder's card".to_owned());
        }
        let surfaces = CardSurfaces::new(device, choice.format, (info.width, info.height));
        let surfaces = surfaces.map_err(|e| e.to_string())?;
        let setup = self.announced_setup(&choice);
        let opened = self.open_on_trial(&setup, &Hdr::default(), Some(&surfaces));
        opened.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Surfaces for the run, if frames like `frame`, the first one, go to the encoder on the card as they
    /// are.
    pub(in crate::sink::video) fn surfaces(
        &self,
        frame: &Frame,
        staged: &Staged,
    ) -> Result<Option<CardSurfaces>, SinkError> {
        let Some(device) = self.device.as_ref().filter(|_| frame.on_device().is_some()) else {
            return Ok(None);
        };
        if staged.changes_samples() {
            tracing::info!(
                target: EXPLAIN_TARGET,
                "encode: results go to {} through the host's memory, because the processor changes their \
                 samples",
                self.kind.name()
            );
            return Ok(None);
        }
        let setup = &staged.setup;
        let surfaces = CardSurfaces::new(device, setup.format, (setup.width, setup.height));
        surfaces.map(Some).map_err(|e| match e {
            SurfaceError::Ffmpeg(e) => self.failure(SURFACES, e),
            SurfaceError::Card(problem) => self.unsupported(problem),
        })
    }
}
