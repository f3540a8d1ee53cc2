//! Sound that is decoded, resampled and encoded again, because a container cannot hold it as it is.
//!
//! ```text
//!   Packet -> decoder -> resampler -> FIFO -> frames of the encoder's size -> encoder -> Packet
//! ```
//! Times are counted in samples from the first frame's time on. A gap in the input's times is filled with
//! silence and an overlap is cut off, so that the sound stays with the picture in containers whose sound has
//! no times of its own, too. What the encoder puts in front of the sound (priming) goes into the packets'
//! times, as FFmpeg's encoders do by themselves.
#![allow(unsafe_code)]

use super::channels::{Channels, taken_for, unnamed_taken_for};
use crate::frame::Rational;
use crate::media::ffmpeg::text::{rational, text, timestamp};
use crate::media::ffmpeg::{AvError, Demuxer, Packet, Received, init, rescale, version};
use ffmpeg_next::ffi;
use std::ffi::{CString, c_int};
use std::ptr;

/// A frame that begins this much later or earlier than the one before ends is a gap or an overlap; less is
/// the container's rounding.
const TOLERANCE: Rational = Rational { num: 1, den: 200 };

/// The longest gap, in seconds, that is filled with silence; of a longer one this much is, and the rest is a
/// jump in the times.
const LONGEST_SILENCE: i64 = 60;

/// Bits a second for each channel of a lossy encoder, where it takes them: better than what most listeners
/// can tell from the source.
const BITS_PER_CHANNEL: i64 = 96_000;

/// Layouts whose channels FFmpeg hands to libopus in another order than it says.
const OPUS_PERMUTES: [&str; 4] = ["5.0", "5.0(side)", "6.1", "6.1(back)"];

/// Samples in a frame of an encoder that takes any number.
const ANY_FRAME: c_int = 1024;

/// An audio encoder that this FFmpeg has.
#[derive(Clone, Copy)]
pub(crate) struct AudioEncoderKind {
    pub(in crate::media::ffmpeg) codec: &'static ffi::AVCodec,
}

// SAFETY: codecs are static tables that nobody writes to.
unsafe impl Send for AudioEncoderKind {}

impl AudioEncoderKind {
    /// The audio encoder named `name`.
    pub(crate) fn find(name: &str) -> Option<AudioEncoderKind> {
        init();
        let name = CString::new(name).ok()?;
        // SAFETY: codecs are static; null means that there is none.
        let codec = unsafe { ffi::avcodec_find_encoder_by_name(name.as_ptr()).as_ref() }?;
        (codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_AUDIO).then_some(AudioEncoderKind { codec })
    }

    /// FFmpeg's own choice among the encoders of codec `id`.
    pub(in crate::media::ffmpeg) fn of_codec(id: ffi::AVCodecID) -> Option<AudioEncoderKind> {
        // SAFETY: codecs are static; null means that there is none.
        let codec = unsafe { ffi::avcodec_find_encoder(id).as_ref() }?;
        (codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_AUDIO).then_some(AudioEncoderKind { codec })
    }

    /// The encoder's name.
    pub(crate) fn name(self) -> String {
        text(self.codec.name)
    }

    /// True if what it writes is not always what it was given.
    pub(crate) fn is_lossy(self) -> bool {
        is_lossy(self.codec.id)
    }
}

/// True for a codec that does not always keep what it is given.
fn is_lossy(id: ffi::AVCodecID) -> bool {
    properties(id).is_none_or(|props| props & ffi::AV_CODEC_PROP_LOSSLESS as c_int == 0)
}

/// True for the name of a codec that always keeps what it is given.
pub(crate) fn is_lossless(codec: &str) -> bool {
    let Ok(name) = CString::new(codec) else {
        return false;
    };
    // SAFETY: descriptors are static; null means that none has that name.
    let found = unsafe { ffi::avcodec_descriptor_get_by_name(name.as_ptr()).as_ref() };
    let marks = (ffi::AV_CODEC_PROP_LOSSLESS | ffi::AV_CODEC_PROP_LOSSY) as c_int;
    found.is_some_and(|codec| codec.props & marks == ffi::AV_CODEC_PROP_LOSSLESS as c_int)
}

/// FFmpeg's marks of a codec.
fn properties(id: ffi::AVCodecID) -> Option<c_int> {
    // SAFETY: descriptors are static; null means that there is none.
    unsafe { ffi::avcodec_descriptor_get(id).as_ref() }.map(|descriptor| descriptor.props)
}

/// True if every sample of format `from` has its own in format `to`: of the same kind, or a wider integer.
fn holds(to: ffi::AVSampleFormat, from: ffi::AVSampleFormat) -> bool {
    use ffi::AVSampleFormat as F;
    // SAFETY: pure functions of a format.
    let kind = |format| unsafe {
        (
            ffi::av_get_packed_sample_fmt(format),
            ffi::av_get_bytes_per_sample(format),
        )
    };
    let ((from, narrow), (to, wide)) = (kind(from), kind(to));
    let is_integer = |format| {
        matches!(
            format,
            F::AV_SAMPLE_FMT_U8 | F::AV_SAMPLE_FMT_S16 | F::AV_SAMPLE_FMT_S32 | F::AV_SAMPLE_FMT_S64
        )
    };
    from == to || is_integer(from) && is_integer(to) && narrow < wide
}

/// Bits of a sample that an open decoder or encoder keeps; `None` if its codec is lossy, or may be and does
/// not say.
fn depth(context: &ffi::AVCodecContext) -> Option<c_int> {
    let properties = properties(context.codec_id).filter(|_| !is_lossy(context.codec_id))?;
    // SAFETY: pure functions of a codec and a format.
    let (exact, bytes) = unsafe {
        (
            ffi::av_get_exact_bits_per_sample(context.codec_id),
            ffi::av_get_bytes_per_sample(context.sample_fmt),
        )
    };
    let known = [exact, context.bits_per_raw_sample]
        .into_iter()
        .find(|&bits| bits > 0);
    let is_always_lossless = properties & ffi::AV_CODEC_PROP_LOSSY as c_int == 0;
    known.or(is_always_lossless.then_some(8 * bytes))
}

/// A form in which sound can go to an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AudioForm {
    rate: c_int,
    channels: Channels,
}

/// Seconds of the coarsest tick that counts time.
const COARSEST_TICK: f64 = 0.002;

/// The grid of a container's times, in samples.
#[derive(Debug, Clone, Copy)]
struct Tick {
    length: f64,
    /// Where on the grid the time 0 lies.
    offset: f64,
}

impl Tick {
    /// Samples from the last tick to the time `at`; none where ticks are as fine as samples.
    fn past(self, at: i64) -> i64 {
        let past = (at as f64 + self.offset).rem_euclid(self.length).round();
        if self.length > 1.5 && past < self.length {
            past as i64
        } else {
            0
        }
    }
}

/// A decoder of sound, an encoder, and what lies between them.
pub(crate) struct AudioTranscoder {
    decoder: Codec,
    encoder: Codec,
    kind: AudioEncoderKind,
    resampler: Resampler,
    fifo: Fifo,
    decoded: Samples,
    /// Time base of the packets that come in.
    base: Rational,
    /// Time of the first sample and samples that came after it up to now, in samples of the output.
    start: Option<i64>,
    /// Where the sound may begin.
    tick: Option<Tick>,
    filled: i64,
    taken: i64,
    /// Samples at the beginning that are left out.
    trim: i64,
    /// Where the sound ends at the latest, in samples of the output.
    end: Option<i64>,
    /// Packets that could not be decoded.
    damaged: u64,
    /// The first change of the decoded sound that loses something: from when on, in seconds, and in words.
    change: Option<(f64, String)>,
}

// SAFETY: none of FFmpeg's objects here is bound to a thread, and only `&mut self` reaches what changes them.
unsafe impl Send for AudioTranscoder {}

impl AudioTranscoder {
    /// The forms in which the sound of stream `index` may go to an encoder of `kind`, nearest to the source
    /// first.
    pub(crate) fn forms(demuxer: &Demuxer, index: usize, kind: AudioEncoderKind) -> Vec<AudioForm> {
        let Some(stream) = demuxer.stream_ptr(index) else {
            return Vec::new();
        };
        // SAFETY: a stream and its parameters live as long as the demuxer.
        let (rate, own) = unsafe {
            let parameters = &*(*stream).codecpar;
            (parameters.sample_rate, Channels::read(&parameters.ch_layout))
        };
        if rate <= 0 || own.count <= 0 {
            return Vec::new();
        }
        let taken = version::sample_rates(kind.codec);
        let takes = |rate: c_int| taken.is_empty() || taken.contains(&rate);
        let nearest = taken
            .iter()
            .copied()
            .filter(|&r| r >= rate)
            .min()
            .or_else(|| taken.iter().copied().max())
            .filter(|_| !takes(rate))
            .unwrap_or(rate);
        let mut rates = vec![nearest];
        for usual in [48_000, 44_100] {
            if takes(usual) && !rates.contains(&usual) {
                rates.push(usual);
            }
        }
        let taken = version::channel_layouts(kind.codec);
        let taken: Vec<Channels> = taken.iter().map(Channels::read).collect();
        let is_permuted =
            |c: &Channels| kind.name() == "libopus" && OPUS_PERMUTES.contains(&c.word().as_str());
        let takes = |c: &Channels| (taken.is_empty() || taken.contains(c)) && !is_permuted(c);
        let fewer = taken
            .iter()
            .copied()
            .filter(|c| c.count <= own.count)
            .max_by_key(|c| c.count);
        let mut layouts = Vec::new();
        let usual = [own.count, 2, 1].map(Channels::usual);
        // Channels of which nobody knows the places cannot be mixed.
        let reaches = |c: &Channels| c.count == own.count || own.named().is_named();
        for channels in [own].into_iter().chain([usual[0]]).chain(fewer).chain(usual) {
            if takes(&channels) && reaches(&channels) && !layouts.contains(&channels) {
                layouts.push(channels);
            }
        }
        let of = |channels: Channels| rates.iter().map(move |&rate| AudioForm { rate, channels });
        layouts.into_iter().flat_map(of).collect()
    }

    /// Opens the decoder of stream `index` and an encoder of `kind` for sound of `form`. `Ok(None)`: there is
    /// no decoder.
    pub(crate) fn open(
        demuxer: &Demuxer,
        index: usize,
        kind: AudioEncoderKind,
        form: AudioForm,
        global_header: bool,
    ) -> Result<Option<AudioTranscoder>, AvError> {
        let Some(stream) = demuxer.stream_ptr(index) else {
            return Ok(None);
        };
        // SAFETY: stream and parameters are valid as long as the demuxer.
        let (parameters, base) = unsafe { (&*(*stream).codecpar, (*stream).time_base) };
        // SAFETY: codecs are static; null means that there is none.
        let Some(codec) = (unsafe { ffi::avcodec_find_decoder(parameters.codec_id).as_ref() }) else {
            return Ok(None);
        };
        let decoder = Codec::new(codec)?;
        // SAFETY: the decoder is not open yet; the parameters are valid.
        unsafe {
            AvError::check(ffi::avcodec_parameters_to_context(decoder.0, parameters))?;
            (*decoder.0).pkt_timebase = base;
        }
        decoder.open(codec)?;
        // SAFETY: the decoder is open.
        let coded = unsafe { (*decoder.0).sample_fmt };
        let format = nearest_format(coded, &version::sample_formats(kind.codec));
        let rates = [
            kind.is_lossy()
                .then(|| BITS_PER_CHANNEL * i64::from(form.channels.count)),
            None,
        ];
        let mut opened = Err(AvError(ffi::AVERROR(ffi::EINVAL)));
        for bit_rate in rates {
            opened = open_encoder(kind, form, format, bit_rate, global_header);
            if opened.is_ok() {
                break;
            }
        }
        let encoder = opened?;
        Ok(Some(AudioTranscoder {
            fifo: Fifo::new(format, form.channels.count)?,
            resampler: Resampler::new(format, form),
            decoded: Samples::new()?,
            decoder,
            encoder,
            kind,
            base: rational(base),
            start: None,
            tick: None,
            filled: 0,
            taken: 0,
            trim: 0,
            end: None,
            damaged: 0,
            change: None,
        }))
    }

    /// The encoder, for the muxer to take its parameters.
    pub(in crate::media::ffmpeg) fn encoder(&self) -> *const ffi::AVCodecContext {
        self.encoder.0
    }

    /// Seconds of sound that the encoder puts before the first sample, to be thrown away.
    pub(crate) fn priming(&self) -> f64 {
        // SAFETY: the context is open as long as `self` lives.
        let encoder = unsafe { &*self.encoder.0 };
        f64::from(encoder.initial_padding.max(0)) / f64::from(encoder.sample_rate.max(1))
    }

    /// The encoder's name.
    pub(crate) fn encoder_name(&self) -> String {
        self.kind.name()
    }

    /// The name of the codec that comes out.
    pub(crate) fn codec_name(&self) -> String {
        // SAFETY: the name is static.
        text(unsafe { ffi::avcodec_get_name(self.kind.codec.id) })
    }

    /// Time base of the packets that come out.
    pub(crate) fn time_base(&self) -> Rational {
        // SAFETY: the encoder is open.
        rational(unsafe { (*self.encoder.0).time_base })
    }

    /// True if the samples that come out may differ from those that the source's decoder gives.
    pub(crate) fn is_lossy(&self) -> bool {
        // SAFETY: both contexts are open.
        let (from, to) = unsafe { (&*self.decoder.0, &*self.encoder.0) };
        self.kind.is_lossy()
            || from.sample_rate != to.sample_rate
            || Channels::read(&from.ch_layout).count != to.ch_layout.nb_channels
            || self.mixes()
            || !holds(to.sample_fmt, from.sample_fmt)
            || self.lost_bits().is_some()
    }

    /// True if the source's channels are mixed into others, since the encoder does not have them all.
    fn mixes(&self) -> bool {
        // SAFETY: both contexts are open.
        let [own, out] =
            unsafe { [&*self.decoder.0, &*self.encoder.0] }.map(|c| Channels::read(&c.ch_layout));
        own.count > 0 && !own.named().are_in(out)
    }

    /// Bits of a sample before and after, if fewer come out by an encoder that keeps all it is given.
    fn lost_bits(&self) -> Option<(c_int, c_int)> {
        // SAFETY: both contexts are open.
        let (from, to) = unsafe { (&*self.decoder.0, &*self.encoder.0) };
        depth(from).zip(depth(to)).filter(|(from, to)| to < from)
    }

    /// How little comes out of what the source has, to be compared: 0 channels and 0 bits a sample are lost,
    /// or so many.
    pub(crate) fn shortfall(&self) -> (c_int, c_int) {
        // SAFETY: both contexts are open.
        let [from, to] = unsafe { [&*self.decoder.0, &*self.encoder.0] }.map(|c| c.ch_layout.nb_channels);
        let bits = self.lost_bits().map_or(0, |(from, to)| from - to);
        ((from - to).max(0), bits)
    }

    /// What the form that comes out has less of than the source, in words: channels and rate, and bits of a
    /// sample if `with_bits`.
    pub(crate) fn form_losses(&self, with_bits: bool) -> Vec<String> {
        // SAFETY: both contexts are open.
        let (from, to) = unsafe { (&*self.decoder.0, &*self.encoder.0) };
        let [own, out] = [from, to].map(|context| Channels::read(&context.ch_layout));
        let mut losses = Vec::new();
        if self.mixes() {
            losses.push(format!("{} becomes {}", own.word(), out.word()));
        }
        if to.sample_rate < from.sample_rate {
            losses.push(format!("{} Hz become {} Hz", from.sample_rate, to.sample_rate));
        }
        if let Some((from, to)) = self.lost_bits().filter(|_| with_bits) {
            losses.push(format!("{from} bits become {to} bits"));
        }
        losses
    }

    /// The channels that come out, and those for which readers take the sound of the file `after`, in words,
    /// if they are others.
    pub(crate) fn taken_for(&self, after: &Demuxer) -> Option<(String, String)> {
        // SAFETY: the encoder is open.
        taken_for(Channels::read(unsafe { &(*self.encoder.0).ch_layout }), after)
    }

    /// The same for readers of a container that holds no names of channels.
    pub(crate) fn unnamed_taken_for(&self) -> Option<(String, String)> {
        // SAFETY: the encoder is open.
        unnamed_taken_for(Channels::read(unsafe { &(*self.encoder.0).ch_layout }))
    }

    /// Packets that could not be decoded; silence stands for them.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged
    }

    /// From when on, in seconds, the decoded sound has another form that does not fit into the output's, and
    /// what is lost of it, in words.
    pub(crate) fn change_of_form(&self) -> Option<(f64, &str)> {
        self.change.as_ref().map(|(at, change)| (*at, change.as_str()))
    }

    /// Notes that frames like `frame` lose something, if they have another form than those before.
    fn note_change(&mut self, frame: &ffi::AVFrame, at: Option<i64>) {
        let form = self.resampler.form;
        let own = AudioForm {
            rate: frame.sample_rate,
            channels: Channels::read(&frame.ch_layout),
        };
        let is_change = self.resampler.from.is_some_and(|(_, before)| before != own);
        if !is_change || self.change.is_some() {
            return;
        }
        let mut words = Vec::new();
        if !own.channels.named().are_in(form.channels) {
            words.push(format!(
                "{} becomes {}",
                own.channels.word(),
                form.channels.word()
            ));
        }
        if own.rate > form.rate {
            words.push(format!("{} Hz become {} Hz", own.rate, form.rate));
        }
        if !words.is_empty() {
            let at = at.unwrap_or(0) as f64 * self.time_base().to_f64();
            self.change = Some((at, words.join(", ")));
        }
    }

    /// Has what the encoder puts in front of the sound stand in the place of the first samples, which are
    /// left out, for a container that cannot say that sound begins before it is heard.
    pub(crate) fn overlay_priming(&mut self) {
        // SAFETY: the encoder is open.
        self.trim = i64::from(unsafe { (*self.encoder.0).initial_padding });
    }

    /// Has the sound begin at `time`, in seconds, with silence or a cut, for a container that writes it from
    /// the first picture on whatever its times are. Called before the first packet.
    pub(crate) fn begin_at(&mut self, time: f64) {
        self.start = Some((time / self.time_base().to_f64()).round() as i64);
    }

    /// Leaves out what comes after `time`, in seconds.
    pub(crate) fn end_at(&mut self, time: f64) {
        self.end = Some((time / self.time_base().to_f64()).round() as i64);
    }

    /// Has the sound begin, with up to one `tick` of silence, where its first packet's time is a whole number
    /// of ticks of the container. `delay` is what its times are shifted by before they are written, in
    /// seconds. Called before the first packet.
    pub(crate) fn begin_on_tick(&mut self, tick: Rational, delay: f64) {
        let clock = self.time_base().to_f64();
        // What is coarser counts packets (AVI).
        self.tick = (tick.to_f64() <= COARSEST_TICK).then(|| Tick {
            length: tick.to_f64() / clock,
            // A packet is as much earlier as the encoder needs to get going.
            offset: (delay - self.priming()) / clock,
        });
    }

    /// Adds silence up to the time `end`, in seconds, if the sound ends before it. Called when the source has
    /// ended, before [`AudioTranscoder::feed`] knows it.
    pub(crate) fn extend(&mut self, end: f64) -> Result<Vec<Packet>, AvError> {
        let mut ready = Vec::new();
        self.filled += self.resampler.flush(&mut self.fifo)?;
        // SAFETY: the encoder is open.
        let encoder = unsafe { &*self.encoder.0 };
        let (format, rate) = (encoder.sample_fmt, encoder.sample_rate);
        let end = (end * f64::from(rate)).ceil() as i64;
        let mut missing = end - self.start.unwrap_or(0) - self.filled;
        while missing > 0 {
            let count = missing.min(i64::from(rate)) as c_int;
            let silent = Samples::silent(format, &encoder.ch_layout, rate, count)?;
            self.fifo.write(&silent, count)?;
            self.filled += i64::from(count);
            missing -= i64::from(count);
            self.encode(false, &mut ready)?;
        }
        Ok(ready)
    }

    /// Packets of so many frames of silence by another encoder of the same kind and form, for trials.
    pub(crate) fn silence(&self, frames: c_int) -> Result<Vec<Packet>, AvError> {
        // SAFETY: the encoder is open.
        let own = unsafe { &*self.encoder.0 };
        let form = AudioForm {
            rate: own.sample_rate,
            channels: Channels::read(&own.ch_layout),
        };
        let bit_rate = self.kind.is_lossy().then_some(own.bit_rate);
        let is_global = own.flags & ffi::AV_CODEC_FLAG_GLOBAL_HEADER as c_int != 0;
        let encoder = open_encoder(self.kind, form, own.sample_fmt, bit_rate, is_global)?;
        let size = match own.frame_size {
            0 => ANY_FRAME,
            size => size,
        };
        let mut ready = Vec::new();
        for number in 0..frames {
            let frame = Samples::silent(own.sample_fmt, &own.ch_layout, form.rate, size)?;
            // SAFETY: the frame is valid, and the encoder takes a reference of its own.
            let code = unsafe {
                (*frame.0).pts = i64::from(number * size);
                ffi::avcodec_send_frame(encoder.0, frame.0)
            };
            AvError::check(code)?;
            encoder.receive(&mut ready)?;
        }
        // SAFETY: the encoder is open; null tells it that nothing follows.
        AvError::check(unsafe { ffi::avcodec_send_frame(encoder.0, ptr::null()) })?;
        encoder.receive(&mut ready)?;
        Ok(ready)
    }

    /// Takes a packet of the source, or its end, and gives the packets that are ready.
    pub(crate) fn feed(&mut self, packet: Option<&Packet>) -> Result<Vec<Packet>, AvError> {
        let mut ready = Vec::new();
        let raw = packet.map_or(ptr::null(), |p| p.as_ptr().cast_const());
        // SAFETY: the decoder is open and the packet, where there is one, valid.
        match AvError::check(unsafe { ffi::avcodec_send_packet(self.decoder.0, raw) }) {
            Ok(_) => {}
            Err(e) if e.is_eof() => {}
            Err(_) => self.damaged += 1,
        }
        loop {
            // SAFETY: decoder and frame are valid; FFmpeg empties the frame first.
            let code = unsafe { ffi::avcodec_receive_frame(self.decoder.0, self.decoded.0) };
            match Received::from_code(code) {
                Ok(Received::Item) => self.take_frame(&mut ready)?,
                Ok(Received::Again | Received::End) => break,
                Err(_) => self.damaged += 1,
            }
        }
        if packet.is_none() {
            self.filled += self.resampler.flush(&mut self.fifo)?;
            self.push_out()?;
            self.encode(true, &mut ready)?;
        }
        Ok(ready)
    }

    /// Adds as much silence as an encoder holds back that does not give it at the end.
    fn push_out(&mut self) -> Result<(), AvError> {
        // SAFETY: the encoder is open, and its codec static.
        let (encoder, codec) = unsafe { (&*self.encoder.0, &*(*self.encoder.0).codec) };
        let held = encoder.initial_padding;
        if held <= 0 || codec.capabilities & ffi::AV_CODEC_CAP_DELAY as c_int != 0 || self.filled == 0 {
            return Ok(());
        }
        let (format, rate) = (encoder.sample_fmt, encoder.sample_rate);
        let silent = Samples::silent(format, &encoder.ch_layout, rate, held)?;
        self.fifo.write(&silent, held)
    }

    /// Brings the decoded frame into the FIFO, at its time.
    fn take_frame(&mut self, ready: &mut Vec<Packet>) -> Result<(), AvError> {
        let clock = self.time_base();
        // SAFETY: the frame was just filled.
        let frame = unsafe { &*self.decoded.0 };
        if frame.nb_samples <= 0 || frame.sample_rate <= 0 {
            return Ok(());
        }
        let at = timestamp(frame.best_effort_timestamp).map(|at| rescale(at, self.base, clock));
        self.note_change(frame, at);
        self.filled += self.resampler.prepare(frame, &mut self.fifo)?;
        let mut early = 0;
        if self.start.is_none()
            && let (Some(at), Some(tick)) = (at, self.tick)
        {
            early = tick.past(at);
        }
        let start = *self.start.get_or_insert(at.unwrap_or(0) - early);
        let expected = start + self.filled + self.resampler.delay();
        let off = at.map_or(0, |at| at - expected);
        let own = Rational {
            num: 1,
            den: frame.sample_rate,
        };
        let mut skipped = 0;
        if off > rescale(1, TOLERANCE, clock) || (early > 0 && off > 0) {
            let filled = off.min(LONGEST_SILENCE * i64::from(clock.den));
            self.start = Some(start + off - filled);
            let mut silent = rescale(filled, clock, own);
            while silent > 0 {
                let count = silent.min(i64::from(frame.sample_rate));
                self.filled += self.resampler.silence(frame, count as c_int, &mut self.fifo)?;
                self.encode(false, ready)?;
                silent -= count;
            }
        } else if off < -rescale(1, TOLERANCE, clock) {
            skipped = rescale(-off, clock, own).min(i64::from(frame.nb_samples));
        }
        self.filled += self.resampler.convert(frame, skipped as c_int, &mut self.fifo)?;
        self.encode(false, ready)
    }

    /// Encodes the whole frames that the FIFO has, or with `end` all of it.
    fn encode(&mut self, end: bool, ready: &mut Vec<Packet>) -> Result<(), AvError> {
        // SAFETY: the encoder is open.
        let encoder = unsafe { &*self.encoder.0 };
        let size = if encoder.frame_size > 0 {
            encoder.frame_size
        } else {
            ANY_FRAME
        };
        if self.trim > 0 {
            let trimmed = self.trim.min(i64::from(self.fifo.size()));
            self.fifo.drop_first(trimmed as c_int)?;
            self.taken += trimmed;
            self.trim -= trimmed;
        }
        loop {
            let at = self.start.unwrap_or(0) + self.taken;
            let left = self.end.map_or(i64::MAX, |last| (last - at).max(0));
            let have = left.min(i64::from(self.fifo.size())) as c_int;
            if have < size && !(end && have > 0) {
                break;
            }
            let frame = Samples::allocate(
                encoder.sample_fmt,
                &encoder.ch_layout,
                encoder.sample_rate,
                have.min(size),
            )?;
            self.fifo.read(&frame)?;
            // SAFETY: the frame is valid, and the encoder takes a reference of its own.
            let code = unsafe {
                (*frame.0).pts = self.start.unwrap_or(0) + self.taken;
                self.taken += i64::from((*frame.0).nb_samples);
                ffi::avcodec_send_frame(self.encoder.0, frame.0)
            };
            AvError::check(code)?;
            self.encoder.receive(ready)?;
        }
        if end {
            // SAFETY: the encoder is open; null tells it that nothing follows.
            match AvError::check(unsafe { ffi::avcodec_send_frame(self.encoder.0, ptr::null()) }) {
                Err(e) if !e.is_eof() => return Err(e),
                _ => self.encoder.receive(ready)?,
            }
        }
        Ok(())
    }
}

fn open_encoder(
    kind: AudioEncoderKind,
    form: AudioForm,
    format: ffi::AVSampleFormat,
    bit_rate: Option<i64>,
    global_header: bool,
) -> Result<Codec, AvError> {
    let encoder = Codec::new(kind.codec)?;
    // SAFETY: the context is valid and not yet open; the layout has no memory of its own.
    unsafe {
        let c = &mut *encoder.0;
        c.sample_fmt = format;
        c.sample_rate = form.rate;
        c.ch_layout = form.channels.layout();
        c.time_base = ffi::AVRational {
            num: 1,
            den: form.rate,
        };
        c.strict_std_compliance = ffi::FF_COMPLIANCE_EXPERIMENTAL as c_int;
        if let Some(bit_rate) = bit_rate {
            c.bit_rate = bit_rate;
        }
        if global_header {
            c.flags |= ffi::AV_CODEC_FLAG_GLOBAL_HEADER as c_int;
        }
    }
    encoder.open(kind.codec)?;
    Ok(encoder)
}

/// The format among `taken` (all if that is empty) that loses least of samples of format `from`.
fn nearest_format(from: ffi::AVSampleFormat, taken: &[c_int]) -> ffi::AVSampleFormat {
    use ffi::AVSampleFormat as Format;
    // SAFETY: pure functions of a format.
    let facts = |format| unsafe {
        (
            ffi::av_get_bytes_per_sample(format),
            matches!(
                ffi::av_get_packed_sample_fmt(format),
                Format::AV_SAMPLE_FMT_FLT | Format::AV_SAMPLE_FMT_DBL
            ),
        )
    };
    let (bytes, is_float) = facts(from);
    taken
        .iter()
        // SAFETY: the libraries are those of the headers, whose formats these are.
        .map(|&format| unsafe { std::mem::transmute::<c_int, ffi::AVSampleFormat>(format) })
        .min_by_key(|&format| {
            let (b, f) = facts(format);
            // Fewer bytes lose precision, another kind of number may; more bytes only cost memory.
            (format != from, b < bytes, f != is_float, (b - bytes).abs())
        })
        .unwrap_or(from)
}

/// A codec's context.
struct Codec(*mut ffi::AVCodecContext);

impl Codec {
    fn new(codec: &ffi::AVCodec) -> Result<Codec, AvError> {
        // SAFETY: allocates; null is refused.
        let context = unsafe { ffi::avcodec_alloc_context3(codec) };
        if context.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Codec(context))
    }

    /// The packets that an encoder has ready.
    fn receive(&self, ready: &mut Vec<Packet>) -> Result<(), AvError> {
        loop {
            let packet = Packet::new()?;
            // SAFETY: encoder and packet are valid.
            let code = unsafe { ffi::avcodec_receive_packet(self.0, packet.as_ptr()) };
            match Received::from_code(code)? {
                Received::Item => ready.push(packet),
                Received::Again | Received::End => return Ok(()),
            }
        }
    }

    fn open(&self, codec: &ffi::AVCodec) -> Result<(), AvError> {
        // SAFETY: the context was made for this codec.
        AvError::check_opening(|| unsafe { ffi::avcodec_open2(self.0, codec, ptr::null_mut()) }).map(|_| ())
    }
}

impl Drop for Codec {
    fn drop(&mut self) {
        // SAFETY: allocated by avcodec_alloc_context3 and freed once.
        unsafe { ffi::avcodec_free_context(&mut self.0) };
    }
}

/// A frame of sound.
struct Samples(*mut ffi::AVFrame);

impl Samples {
    fn new() -> Result<Samples, AvError> {
        // SAFETY: allocates; null is refused.
        let frame = unsafe { ffi::av_frame_alloc() };
        if frame.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Samples(frame))
    }

    /// A frame with room for `count` samples.
    fn allocate(
        format: ffi::AVSampleFormat,
        layout: &ffi::AVChannelLayout,
        rate: c_int,
        count: c_int,
    ) -> Result<Samples, AvError> {
        let samples = Samples::new()?;
        // SAFETY: the frame is valid and empty; both layouts are valid.
        unsafe {
            let frame = &mut *samples.0;
            frame.format = format as c_int;
            frame.sample_rate = rate;
            frame.nb_samples = count;
            AvError::check(ffi::av_channel_layout_copy(&mut frame.ch_layout, layout))?;
            AvError::check(ffi::av_frame_get_buffer(frame, 0))?;
        }
        Ok(samples)
    }
}

impl Samples {
    /// A frame of `count` samples of silence.
    fn silent(
        format: ffi::AVSampleFormat,
        layout: &ffi::AVChannelLayout,
        rate: c_int,
        count: c_int,
    ) -> Result<Samples, AvError> {
        let silent = Samples::allocate(format, layout, rate, count)?;
        // SAFETY: the frame has room for `count` samples of each channel.
        AvError::check(unsafe {
            ffi::av_samples_set_silence((*silent.0).extended_data, 0, count, layout.nb_channels, format)
        })?;
        Ok(silent)
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // SAFETY: allocated by av_frame_alloc and freed once.
        unsafe { ffi::av_frame_free(&mut self.0) };
    }
}

/// Samples that wait until there are enough for a frame.
struct Fifo(*mut ffi::AVAudioFifo);

impl Fifo {
    fn new(format: ffi::AVSampleFormat, channels: c_int) -> Result<Fifo, AvError> {
        // SAFETY: allocates; null is refused.
        let fifo = unsafe { ffi::av_audio_fifo_alloc(format, channels, ANY_FRAME) };
        if fifo.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Fifo(fifo))
    }

    fn size(&self) -> c_int {
        // SAFETY: the FIFO is valid.
        unsafe { ffi::av_audio_fifo_size(self.0) }
    }

    /// Appends the first `count` samples of `from`.
    fn write(&mut self, from: &Samples, count: c_int) -> Result<(), AvError> {
        // SAFETY: the frame has the FIFO's format and channels, and holds `count` samples.
        let code = unsafe { ffi::av_audio_fifo_write(self.0, (*from.0).extended_data.cast(), count) };
        AvError::check(code).map(|_| ())
    }

    /// Forgets the first `count` samples.
    fn drop_first(&mut self, count: c_int) -> Result<(), AvError> {
        // SAFETY: the FIFO is valid and holds as many.
        AvError::check(unsafe { ffi::av_audio_fifo_drain(self.0, count) }).map(|_| ())
    }

    /// Fills `to` with as many samples as it has room for.
    fn read(&mut self, to: &Samples) -> Result<(), AvError> {
        // SAFETY: the frame has the FIFO's format and channels, and room for `nb_samples` samples.
        let code =
            unsafe { ffi::av_audio_fifo_read(self.0, (*to.0).extended_data.cast(), (*to.0).nb_samples) };
        AvError::check(code).map(|_| ())
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        // SAFETY: allocated by av_audio_fifo_alloc and freed once.
        unsafe { ffi::av_audio_fifo_free(self.0) };
    }
}

/// libswresample, set up anew whenever the decoded sound changes its form.
struct Resampler {
    context: *mut ffi::SwrContext,
    format: ffi::AVSampleFormat,
    form: AudioForm,
    /// What the context was set up for.
    from: Option<(c_int, AudioForm)>,
}

impl Resampler {
    fn new(format: ffi::AVSampleFormat, form: AudioForm) -> Resampler {
        Resampler {
            context: ptr::null_mut(),
            format,
            form,
            from: None,
        }
    }

    /// Makes ready for frames like `frame`. Gives the number of samples that earlier frames still had to
    /// give.
    fn prepare(&mut self, frame: &ffi::AVFrame, fifo: &mut Fifo) -> Result<i64, AvError> {
        let channels = Channels::read(&frame.ch_layout);
        let form = AudioForm {
            rate: frame.sample_rate,
            channels,
        };
        if self.from == Some((frame.format, form)) {
            return Ok(0);
        }
        let rest = self.flush(fifo)?;
        let (to, from) = (self.form.channels.layout(), channels.layout());
        // SAFETY: the layouts are valid; the decoder's format is one of FFmpeg's own; on failure the context
        // is freed and null.
        unsafe {
            let format = std::mem::transmute::<c_int, ffi::AVSampleFormat>(frame.format);
            AvError::check(ffi::swr_alloc_set_opts2(
                &mut self.context,
                ptr::from_ref(&to).cast_mut(),
                self.format,
                self.form.rate,
                ptr::from_ref(&from).cast_mut(),
                format,
                frame.sample_rate,
                0,
                ptr::null_mut(),
            ))?;
            AvError::check(ffi::swr_init(self.context))?;
        }
        self.from = Some((frame.format, form));
        Ok(rest)
    }

    /// Samples of the output that the resampler holds back.
    fn delay(&self) -> i64 {
        if self.from.is_none() {
            return 0;
        }
        // SAFETY: the context is initialised.
        unsafe { ffi::swr_get_delay(self.context, i64::from(self.form.rate)) }
    }

    /// Converts `frame` without its first `skipped` samples into `fifo`, and gives the number of samples that
    /// came out.
    fn convert(&mut self, frame: &ffi::AVFrame, skipped: c_int, fifo: &mut Fifo) -> Result<i64, AvError> {
        let count = frame.nb_samples - skipped;
        if count <= 0 {
            return Ok(0);
        }
        // SAFETY: a frame's planes hold `nb_samples` samples of its format each, interleaved if it is packed.
        let planes: Vec<*const u8> = unsafe {
            let format = std::mem::transmute::<c_int, ffi::AVSampleFormat>(frame.format);
            let channels = frame.ch_layout.nb_channels;
            let is_planar = ffi::av_sample_fmt_is_planar(format) != 0;
            let step = ffi::av_get_bytes_per_sample(format) * if is_planar { 1 } else { channels };
            let count = if is_planar { channels as usize } else { 1 };
            (0..count)
                .map(|plane| {
                    (*frame.extended_data.add(plane))
                        .add((skipped * step) as usize)
                        .cast_const()
                })
                .collect()
        };
        self.run(Some((&planes, count)), fifo)
    }

    /// Puts `count` silent samples like those of `like` into `fifo`, and gives the number of samples that
    /// came out.
    fn silence(&mut self, like: &ffi::AVFrame, count: c_int, fifo: &mut Fifo) -> Result<i64, AvError> {
        // SAFETY: the decoder's format is one of FFmpeg's own.
        let format = unsafe { std::mem::transmute::<c_int, ffi::AVSampleFormat>(like.format) };
        let silent = Samples::silent(format, &like.ch_layout, like.sample_rate, count)?;
        // SAFETY: the frame is valid.
        self.convert(unsafe { &*silent.0 }, 0, fifo)
    }

    /// Gives what is still held back.
    fn flush(&mut self, fifo: &mut Fifo) -> Result<i64, AvError> {
        if self.from.is_none() {
            return Ok(0);
        }
        self.run(None, fifo)
    }

    fn run(&mut self, input: Option<(&[*const u8], c_int)>, fifo: &mut Fifo) -> Result<i64, AvError> {
        let count = input.map_or(0, |(_, count)| count);
        // SAFETY: the context is initialised.
        let room = AvError::check(unsafe { ffi::swr_get_out_samples(self.context, count) })?;
        if room == 0 {
            return Ok(0);
        }
        let layout = self.form.channels.layout();
        let out = Samples::allocate(self.format, &layout, self.form.rate, room)?;
        let mut planes = input.map_or_else(Vec::new, |(planes, _)| planes.to_vec());
        // SAFETY: the output has room for `room` samples; the input's planes hold `count` samples, and null
        // means the end.
        let made = AvError::check(unsafe {
            ffi::swr_convert(
                self.context,
                (*out.0).extended_data,
                room,
                if input.is_some() {
                    planes.as_mut_ptr()
                } else {
                    ptr::null_mut()
                },
                count,
            )
        })?;
        if made > 0 {
            fifo.write(&out, made)?;
        }
        Ok(i64::from(made))
    }
}

impl Drop for Resampler {
    fn drop(&mut self) {
        // SAFETY: allocated by swr_alloc_set_opts2 and freed once; null is allowed.
        unsafe { ffi::swr_free(&mut self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_begins_on_the_last_tick_before_it() {
        // Milliseconds at 48 kHz, and an encoder that needs 312 samples.
        let tick = Tick {
            length: 48.0,
            offset: -312.0,
        };
        assert_eq!(tick.past(312), 0);
        assert_eq!(tick.past(311), 47);
        assert_eq!(tick.past(24_000), (24_000 - 312) % 48);
        // At 44.1 kHz the nearest sample: tick 3 is at sample 132.3.
        let uneven = Tick {
            length: 44.1,
            offset: 0.0,
        };
        assert_eq!(uneven.past(140), 8);
        let fine = Tick {
            length: 0.53,
            offset: 0.0,
        };
        assert_eq!(fine.past(1234), 0);
    }
}
