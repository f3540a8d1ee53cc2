//! The decoders of a video: `--decoder` and related options.

use super::engine::{CARD_ALIASES, EngineArguments, EngineName};
use crate::cli::Failure;
use crate::cli::endpoint::Input;
use crate::cli::process::limits::{count, size};
use clap::{Args, ValueEnum};
use framepipe::engine::{EngineError, cuda};
use framepipe::filter::Chain;
use framepipe::source::range::TimeRange;
use framepipe::source::video::{Consent, Decoders, Place};
use std::num::NonZeroUsize;

/// Where videos are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DecoderName {
    /// On the card that filters if it can decode the file and that is long, else on the CPU.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On the card's own decoders, all of them at once; an error where there is no card.
    #[value(alias = "cuda", aliases = CARD_ALIASES)]
    Nvdec,
}

/// Which decoders, and how many.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct DecodingArguments {
    /// Where H.264, HEVC, VP9 and AV1 are decoded. The frames are the same, but a card does not report
    /// damage within a picture.
    #[arg(long, value_enum, default_value_t)]
    decoder: DecoderName,
    /// How many decoders read a file at once, each another stretch of it [default: as many as the card has
    /// and one more, fewer for a short one; one on the CPU].
    #[arg(long, value_name = "N", value_parser = count)]
    decoders: Option<NonZeroUsize>,
    /// The most memory for frames that wait for their turn, such as 2G; with less, fewer decoders work
    /// [default: half of what the card has free; 1 GiB of the host's].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    decoder_memory: Option<u64>,
}

impl DecodingArguments {
    /// Refuses options that apply only to inputs that FFmpeg decodes.
    pub(crate) fn check(&self, input: &Input, engine: &EngineArguments) -> Result<(), Failure> {
        if matches!(input, Input::Video(_)) {
            let has_one = match self.decoder {
                DecoderName::Nvdec => false,
                DecoderName::Auto => engine.possible_cards().is_none(),
                DecoderName::Cpu => true,
            };
            if self.decoder_memory.is_some() && self.decoders.is_none() && has_one {
                return Err(Failure::Usage(
                    "--decoder-memory is for frames of several decoders, and one reads this on the CPU; give \
                     --decoders, too"
                        .to_owned(),
                ));
            }
            return Ok(());
        }
        let given = [
            (self.decoder == DecoderName::Nvdec, "--decoder nvdec"),
            (self.decoders.is_some(), "--decoders"),
            (self.decoder_memory.is_some(), "--decoder-memory"),
        ];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::Usage(format!(
                "{option} is an option of video files; other inputs have no decoder to choose"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a card's decoders where there is no card, or its driver `is_closed` to an untrusted run.
    pub(crate) fn check_card(&self, is_closed: bool) -> Result<(), Failure> {
        if self.decoder != DecoderName::Nvdec {
            return Ok(());
        }
        if is_closed {
            return Err(Failure::Usage(
                "--decoder nvdec opens the card's driver, which --untrusted does with --engine cuda only"
                    .to_owned(),
            ));
        }
        cuda::present().map_err(|reason| {
            EngineError::Unavailable(format!(
                "--decoder nvdec needs a card, which is not available: {reason}"
            ))
            .into()
        })
    }

    /// The decoders for a video. Its frames go as they are to `engine`'s cards, if it `goes_straight`, which
    /// then decode `range` of it where that saves time.
    pub(crate) fn decoders(
        &self,
        engine: &EngineArguments,
        goes_straight: bool,
        chain: Chain,
        range: TimeRange,
    ) -> Option<Decoders> {
        let cards = goes_straight.then(|| engine.possible_cards()).flatten();
        let is_cuda = engine.engine == EngineName::Cuda;
        let (place, consent) = match (self.decoder, cards) {
            (DecoderName::Nvdec, cards) => (Place::Cards(cards.unwrap_or_else(|| vec![0])), None),
            (DecoderName::Auto, Some(cards)) if is_cuda => {
                let consent = self.decoders.is_none().then(Consent::if_long);
                (Place::Cards(cards), consent)
            }
            (DecoderName::Auto, Some(cards)) if self.decoders.is_none() => {
                (Place::Cards(cards), Some(engine.decoding_consent(chain)))
            }
            (DecoderName::Auto | DecoderName::Cpu, _) => (Place::Cpu, None),
        };
        let is_wanted = place != Place::Cpu || self.decoders.is_some();
        is_wanted.then_some(Decoders {
            place,
            count: self.decoders,
            memory: self.decoder_memory,
            range,
            consent,
            is_expected: is_cuda || self.decoder == DecoderName::Nvdec,
        })
    }
}
