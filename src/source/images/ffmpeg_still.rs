//! Stills that FFmpeg decodes. Each is opened as a video of one picture, and decoded at once, since only the
//! picture tells its format; what the decoder does not give is searched for in the file's bytes.

use super::error::{invalid, io_error};
use super::formats::tiff::divided;
use super::picture::{PictureNotes, cut_sentence, unused_sentence};
use super::trailing::Trailing;
use super::{Rules, content};
use crate::annotations::{self, FileMetadata};
use crate::frame::fact::Fact;
use crate::frame::{
    Buffer, Channel, Colour, Frame, FramePool, Layout, METADATA_LIMIT, Pageable, PixelFormat, Turn, too_large,
};
use crate::media::still::ImageKind;
use crate::source::video::{VideoSource, VideoSourceOptions};
use crate::source::{Access, Source, SourceError, Supply};
use crate::wording::shortened_to;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Characters of a channel's name that are shown.
const MOST_OF_NAME: usize = 60;

/// Buffers of a decoder of FFmpeg's for one picture.
const BUFFERS: usize = 4;

/// A picture that FFmpeg has decoded.
pub(super) struct FfmpegStill {
    pub(super) frame: Frame,
    notes: Vec<String>,
    /// What follows the picture in the file.
    trailing: Option<Trailing>,
    metadata: FileMetadata,
}

/// What is said of a file that FFmpeg does not open because of other data after its picture.
const IS_FOLLOWED: &str =
    "cannot be decoded: FFmpeg takes bytes after the picture for a part of it; cut them off";

impl FfmpegStill {
    /// Decodes the first picture.
    pub(super) fn open(path: &Path, kind: ImageKind, rules: Rules) -> Result<FfmpegStill, SourceError> {
        let mut metadata = match kind {
            ImageKind::Pcx => pcx_metadata(path),
            _ => File::open(path).and_then(|file| annotations::search(&mut BufReader::new(file))),
        }
        .map_err(|cause| io_error(path, cause))?;
        if metadata.is_grid {
            let problem = "is a picture made of several side by side (a grid), which is not read; write it \
                           as one picture, or as JPEG or PNG";
            return Err(invalid(path, problem));
        }
        let mut trailing = content::trailing_of(kind, path).map_err(|cause| io_error(path, cause))?;
        // FFmpeg takes other data after the picture for another packet, or for a part of this one.
        let is_followed = trailing == Some(Trailing::Data);
        let options = VideoSourceOptions {
            // Its error would be about a packet that is none; the data are an error later.
            strict: rules.strict && !is_followed,
            threads: Some(1),
            access: Access {
                max_pixels: Some(rules.max_pixels),
                ..Access::default()
            },
            ..VideoSourceOptions::default()
        };
        let mut source = VideoSource::open(path, &options).map_err(|error| match is_followed {
            true => invalid(path, IS_FOLLOWED),
            false => error,
        })?;
        let (_keep, stop) = crossbeam_channel::bounded(0);
        let supply = Supply {
            pool: FramePool::new(BUFFERS, Arc::new(Pageable)),
            stop,
        };
        let Some(mut frame) = source.next(&supply)? else {
            return Err(invalid(path, "holds no picture"));
        };
        let is_large = |profile: &mut Vec<u8>| profile.len() > METADATA_LIMIT;
        let mut notes = Vec::new();
        if metadata.icc_profile.take_if(is_large).is_some() {
            notes.push(too_large("ICC profile"));
        }
        if !is_followed && source.next(&supply)?.is_some() {
            trailing = Some(Trailing::Pictures);
        }
        if is_followed {
            source.disregard_corrupt_packets();
        }
        notes.append(&mut source.take_remarks().warning_texts());
        // FFmpeg gives every palette an alpha, and PCX has none.
        if kind == ImageKind::Pcx
            && let Some(flat) = without_alpha(&frame)
        {
            frame = flat;
        }
        if let Some(name) = metadata.selection.take()
            && let Some(flat) = without_alpha(&frame)
        {
            frame = flat;
            notes.push(unused_sentence(&format!(
                "saved selection '{}'",
                shortened_to(MOST_OF_NAME, &name)
            )));
        }
        Ok(FfmpegStill {
            frame,
            notes,
            trailing,
            metadata,
        })
    }

    pub(super) fn colour(&self) -> Colour {
        self.frame.metadata.colour
    }

    /// How the picture is shown by what [`FfmpegStill::read`] gives.
    pub(super) fn turn(&self) -> Turn {
        let described = &self.metadata;
        let block = match described.orientation {
            None => Turn::of_blocks(&self.frame.metadata.side_data),
            Some(_) => None,
        };
        let orientation = match described.is_turned_by_decoder {
            true => Some(1),
            false => described.orientation(),
        };
        let turn = block.or_else(|| Turn::from_exif(orientation?));
        turn.unwrap_or(Turn::UPRIGHT)
    }

    pub(super) fn metadata(&self) -> FileMetadata {
        self.metadata.clone()
    }

    /// Copies the picture into `frame`, with what the decoder says of it.
    pub(super) fn read(self, frame: &mut Frame) -> PictureNotes {
        let FfmpegStill {
            frame: decoded,
            mut notes,
            trailing,
            metadata: described,
        } = self;
        for index in 0..decoded.layout().planes().len() {
            for y in 0..decoded.layout().planes()[index].height {
                frame.row_mut(index, y).copy_from_slice(decoded.row(index, y));
            }
        }
        if described.is_premultiplied {
            notes.extend(match divide_by_alpha(frame) {
                Some(cut) => cut_sentence(cut),
                None => Some("its colours are multiplied by alpha, and are given so".to_owned()),
            });
        }
        notes.extend(trailing.map(|trailing| trailing.sentence().to_owned()));
        let mut metadata = decoded.metadata.clone();
        metadata.pts = None;
        metadata.duration = None;
        let mut icc_profile = described.icc_profile;
        metadata.side_data.retain(|block| match block.fact {
            Fact::IccProfile => {
                icc_profile.get_or_insert_with(|| block.data.to_vec());
                false
            }
            // Newer versions of FFmpeg tell it, too.
            Fact::Rotation => described.orientation.is_none(),
            _ => true,
        });
        let orientation = match described.is_turned_by_decoder {
            true => Some(1),
            false => described.orientation,
        };
        frame.metadata = metadata;
        PictureNotes {
            icc_profile,
            orientation,
            losses: notes,
            ..PictureNotes::default()
        }
    }
}

/// What the header of a PCX file says.
fn pcx_metadata(path: &Path) -> io::Result<FileMetadata> {
    let mut header = Vec::new();
    File::open(path)?.take(128).read_to_end(&mut header)?;
    Ok(annotations::pcx::read(&header))
}

/// The picture without its alpha; `None` if it has none that FFmpeg gives of PSD and PCX files.
fn without_alpha(frame: &Frame) -> Option<Frame> {
    let format = frame.format();
    let to = PixelFormat::from_name(match format.name() {
        "rgba" => "rgb24",
        "rgba64le" => "rgb48le",
        "gbrap" => "gbrp",
        "gbrap16le" => "gbrp16le",
        "ya8" => "gray",
        "ya16le" => "gray16le",
        _ => return None,
    })?;
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let layout = Layout::new(to, width, height, 1).ok()?;
    let mut flat = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).ok()?;
    let bytes = format.bytes_per_sample();
    for (plane, description) in to.planes().iter().enumerate() {
        for (at, &channel) in description.channels.iter().enumerate() {
            let (source, first) = format.place(channel)?;
            let step = bytes * format.planes()[source].channels.len();
            for y in 0..height {
                let samples = frame.row(source, y)[bytes * first..].chunks(step);
                let row = flat.row_mut(plane, y)[bytes * at..].chunks_mut(bytes * description.channels.len());
                for (to, from) in row.zip(samples) {
                    to[..bytes].copy_from_slice(&from[..bytes]);
                }
            }
        }
    }
    flat.metadata = frame.metadata.clone();
    Some(flat)
}

/// Divides the colours by their alpha, and gives the number of samples that were greater; `None` if they do
/// not lie with it in one plane.
fn divide_by_alpha(frame: &mut Frame) -> Option<u64> {
    let format = frame.format();
    let [plane] = format.planes() else {
        return None;
    };
    let mut channels = plane.channels.iter();
    let alpha = channels.position(|&channel| channel == Channel::Alpha)?;
    let mut cut = 0;
    let (bytes, most) = (format.bytes_per_sample(), format.max_value() as u16);
    for y in 0..frame.layout().height() {
        for pixel in frame.row_mut(0, y).chunks_exact_mut(bytes * plane.channels.len()) {
            if bytes == 1 {
                let alpha_of = u16::from(pixel[alpha]);
                for (index, sample) in pixel.iter_mut().enumerate().filter(|_| alpha_of > 0) {
                    if index != alpha {
                        cut += u64::from(u16::from(*sample) > alpha_of);
                        *sample = divided(u16::from(*sample), alpha_of, most) as u8;
                    }
                }
            } else {
                let samples = pixel.as_chunks_mut::<2>().0;
                let alpha_of = u16::from_le_bytes(samples[alpha]);
                for (index, sample) in samples.iter_mut().enumerate().filter(|_| alpha_of > 0) {
                    if index != alpha {
                        cut += u64::from(u16::from_le_bytes(*sample) > alpha_of);
                        *sample = divided(u16::from_le_bytes(*sample), alpha_of, most).to_le_bytes();
                    }
                }
            }
        }
    }
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn premultiplied_colours_are_divided_by_their_alpha() {
        let divided = |format: PixelFormat, bytes: &[u8]| {
            let layout = Layout::new(format, 2, 1, 1).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            frame.bytes_mut().copy_from_slice(bytes);
            divide_by_alpha(&mut frame).map(|cut| (frame.bytes().to_vec(), cut))
        };
        // Without alpha a pixel has no colour to be found.
        let (from, to) = ([50, 100, 0, 128, 7, 8, 9, 0], vec![100, 199, 0, 128, 7, 8, 9, 0]);
        assert_eq!(divided(PixelFormat::RGBA, &from), Some((to, 0)));
        let glow = [200, 100, 40, 40, 7, 8, 9, 0];
        assert_eq!(
            divided(PixelFormat::RGBA, &glow),
            Some((vec![255, 255, 255, 40, 7, 8, 9, 0], 2))
        );
        let deep = [0x00, 0x20, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff];
        let straight = vec![0x00, 0x40, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(divided(PixelFormat::YA16, &deep), Some((straight, 0)));
        assert_eq!(divided(PixelFormat::GBRAP, &[9; 8]), None);
        assert_eq!(divided(PixelFormat::RGB24, &[9; 6]), None);
    }
}
