//! Opening a video: demuxer, stream, decoder and first picture.

use super::decoding::{FrameMaker, InputStream};
use super::file::InputFile;
use super::findings::Findings;
use super::known::jpeg_xl::JpegXl;
use super::known::unfit::{Unfit, unfit};
use super::seeking::Skip;
use super::selection::choose_stream;
use super::{ReadState, VideoSource, VideoSourceOptions};
use crate::frame::{PixelFormat, Rational};
use crate::media::ffmpeg::{Access, Decoder, Demuxer, Packet, Picture, log};
use crate::source::{MOST_PIXELS, SourceError, StreamInfo, check_pixels};
use std::path::Path;

/// Decoder threads beyond which a frame's latency and memory grow but its speed does not.
const MAX_DECODER_THREADS: usize = 16;

impl VideoSource {
    /// Opens `path` (a file, a URL, or a device such as /dev/stdin) and decodes its first picture.
    pub fn open(path: &Path, options: &VideoSourceOptions) -> Result<VideoSource, SourceError> {
        let most_pixels = options.access.max_pixels.unwrap_or(MOST_PIXELS);
        let file = InputFile {
            path: path.to_owned(),
            name: path.display().to_string(),
            access: Access {
                max_pixels: Some(most_pixels),
                ..options.access
            },
            limit: options.limit(),
            pipe: options.pipe.clone(),
        };
        let demuxer = file.open()?;
        let stream = choose_stream(&demuxer, options.stream).map_err(|problem| file.invalid(problem))?;
        let facts = demuxer.stream(stream);
        if let Some(facts) = &facts {
            let side = |length: i32| usize::try_from(length).unwrap_or(0);
            check_pixels(&file.name, side(facts.width), side(facts.height), most_pixels)?;
        }
        let codec = facts.as_ref().map_or_else(String::new, |f| f.codec.clone());
        let decoder = open_decoder(&demuxer, stream, &codec, options).map_err(|problem| {
            // Without a size in front, a decoder refuses the one that it finds.
            let is_sized = facts.as_ref().is_some_and(|facts| facts.width > 0);
            let refused = log::too_large().filter(|_| !is_sized);
            let refused = refused.map(|(w, h)| check_pixels(&file.name, w, h, most_pixels));
            let too_large = refused.and_then(Result::err);
            too_large.unwrap_or_else(|| {
                file.invalid(match codec.as_str() {
                    "rawvideo" if file.is_raw() => file.raw_advice(),
                    _ => problem,
                })
            })
        })?;
        let packet = Packet::new().map_err(|e| file.lacking(e))?;
        let picture = Picture::new().map_err(|e| file.lacking(e))?;
        let mut source = VideoSource {
            file,
            // Replaced below, when the first picture tells the truth; the container's word is not always it.
            info: StreamInfo {
                frame_rate: demuxer.frame_rate(stream),
                time_base: facts
                    .as_ref()
                    .map_or(Rational { num: 1, den: 1 }, |f| f.time_base),
                side_data: demuxer.stream_side_data(stream),
                late_start: demuxer.late_start(),
                ..StreamInfo::new(PixelFormat::GRAY, 0, 0)
            },
            input: InputStream {
                demuxer,
                stream,
                packet,
                state: ReadState::Reading,
            },
            decoder,
            picture,
            held: false,
            end: None,
            skip: Skip::default(),
            maker: FrameMaker::new(&codec),
            findings: Findings::new(options.strict),
        };
        let unfit = unfit(&source.decoder.codec_name());
        if let Some(Unfit::Wrong(problem)) = unfit {
            return Err(source.file.invalid(problem.to_owned()));
        }
        if !source.decode(|| false)? {
            return Err(source.nothing_decoded(most_pixels));
        }
        let picture = &source.picture;
        check_pixels(&source.file.name, picture.width(), picture.height(), most_pixels)?;
        let large = source.input.demuxer.large_side_data(stream);
        let words = large.iter().map(|fact| fact.word().to_owned());
        source.findings.leave_out(
            &source.file,
            words.chain(source.input.demuxer.too_large().to_vec()).collect(),
        )?;
        source.held = true;
        source.end = source
            .stated_seconds()
            .map(|seconds| seconds + source.input.demuxer.shift());
        source.look_for_more()?;
        source.learn()?;
        match unfit {
            Some(Unfit::Changed(change)) => source.findings.lose(&source.file, change.to_owned())?,
            _ => source.find_lost_layers()?,
        }
        source.find_lost_crop()?;
        source.find_lost_edits()?;
        Ok(source)
    }

    /// Learns whether the file of a still ends behind its picture. A second one goes to the decoder.
    fn look_for_more(&mut self) -> Result<(), SourceError> {
        let format = self.input.demuxer.format_name();
        let is_still = format.ends_with("_pipe") || matches!(format, "alias_pix" | "brender_pix" | "fits");
        if !is_still || !self.file.path.is_file() {
            return Ok(());
        }
        if self.input.state == ReadState::Reading && self.findings.damage.read == 1 {
            self.feed(&|| false)?;
        }
        let is_animated = self.maker.jpeg_xl.as_ref().is_some_and(JpegXl::is_animated);
        self.info.is_single =
            self.input.state != ReadState::Reading && self.findings.damage.read == 1 && !is_animated;
        Ok(())
    }

    /// Frames of an MP4 or QuickTime file, if its edit list leaves out all of them.
    fn hidden_frames(&self) -> Option<i64> {
        let facts = self.input.demuxer.stream(self.input.stream)?;
        let is_mp4 = self.input.demuxer.format_name().contains("mp4");
        if !is_mp4 || facts.frames <= 0 || !self.can_be_read_again() {
            return None;
        }
        let mut demuxer = self.file.open().ok()?;
        let mut packet = Packet::new().ok()?;
        let mut is_shown = false;
        while !is_shown && demuxer.read(&mut packet).is_ok() {
            is_shown = packet.stream() == self.input.stream && !packet.is_discarded();
        }
        (!is_shown).then_some(facts.frames)
    }

    /// Why there is no first picture.
    fn nothing_decoded(&mut self, most_pixels: u64) -> SourceError {
        if let Some((width, height)) = log::too_large() {
            if let Err(error) = check_pixels(&self.file.name, width, height, most_pixels) {
                return error;
            }
            return self.file.invalid(format!(
                "its pictures are {width}x{height}, which is more than FFmpeg decodes"
            ));
        }
        let codec = self.decoder.codec_name();
        // FFmpeg finds the end of most kinds of stills in files alone, and takes pieces of a pipe for them.
        if self.input.demuxer.format_name().ends_with("_pipe") && !self.file.path.is_file() {
            return self.file.invalid(format!(
                "no picture of {codec} can be decoded from this pipe, and most kinds are read from files \
                 alone; give the file"
            ));
        }
        let stream = self.input.stream;
        if let Some(hidden) = self.hidden_frames() {
            return self.file.invalid(format!(
                "the edit list of stream {stream} leaves out all of its {hidden} frames; copy it without \
                 that list first (ffmpeg -ignore_editlist 1 -i IN -c copy OUT.mp4)"
            ));
        }
        let signs = [
            self.findings.damage.concealed().map(|found| found.to_string()),
            self.findings.cut.take(),
        ];
        let why: String = signs.iter().flatten().map(|s| format!("; {s}")).collect();
        self.file.invalid(format!(
            "stream {stream} holds no frame that can be decoded: it is damaged, or of a kind of {codec} that \
             this FFmpeg does not decode{why}"
        ))
    }
}

/// Opens the decoder of `stream`; an error is a sentence.
fn open_decoder(
    demuxer: &Demuxer,
    stream: usize,
    codec: &str,
    options: &VideoSourceOptions,
) -> Result<Decoder, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Frame threads add as many frames of latency as there are threads; the pipeline hides it, and drains
    // them at the end.
    let threads = options.threads.unwrap_or(cores.min(MAX_DECODER_THREADS));
    log::forget();
    Decoder::open(demuxer, stream, threads, options.strict)
        .map_err(|e| log::explained(&format!("the {codec} decoder cannot be opened: {e}")))?
        .ok_or_else(|| format!("this FFmpeg has no decoder for {codec}, the codec of stream {stream}"))
}
