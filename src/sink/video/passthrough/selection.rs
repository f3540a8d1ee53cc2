//! Which of the input's other streams the user wants in the output, and how their sound is to be encoded.

use crate::media::ffmpeg::Medium;
use std::str::FromStr;

/// The streams of the input that go into the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Streams {
    /// All that the container can hold.
    #[default]
    All,
    /// The filtered one alone.
    Video,
    /// The filtered one and those of these indices.
    List(Vec<usize>),
}

/// A list of streams that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write all, video, or indices of the input's streams with commas between them, such as 1,3")]
pub struct NoStreams;

impl FromStr for Streams {
    type Err = NoStreams;

    fn from_str(text: &str) -> Result<Streams, NoStreams> {
        match text {
            "all" => Ok(Streams::All),
            "video" => Ok(Streams::Video),
            list => list
                .split(',')
                .map(|index| index.trim().parse().map_err(|_| NoStreams))
                .collect::<Result<_, _>>()
                .map(Streams::List),
        }
    }
}

/// How sound comes into the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AudioEncoding {
    /// Copied where the container can hold it, else re-encoded with the container's own encoder.
    #[default]
    WhereNeeded,
    /// Copied or left out, never encoded.
    Never,
    /// All of it re-encoded by FFmpeg's encoder of that name.
    By(String),
}

impl From<&str> for AudioEncoding {
    fn from(name: &str) -> AudioEncoding {
        match name {
            "copy" => AudioEncoding::Never,
            name => AudioEncoding::By(name.to_owned()),
        }
    }
}

/// What the user wants of the streams beside the filtered one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Which of them.
    pub streams: Streams,
    /// Leave all sound out.
    pub no_audio: bool,
    /// Leave all subtitles out.
    pub no_subtitles: bool,
    /// How sound comes into the output.
    pub audio: AudioEncoding,
}

impl StreamOptions {
    /// True if stream `index` is wanted.
    pub(super) fn wants(&self, index: usize, medium: Medium) -> bool {
        let listed = match &self.streams {
            Streams::All => true,
            Streams::Video => false,
            Streams::List(list) => list.contains(&index),
        };
        let is_unwanted = match medium {
            Medium::Audio => self.no_audio,
            Medium::Subtitle => self.no_subtitles,
            _ => false,
        };
        listed && !is_unwanted
    }

    /// True if streams are wanted of which no index is known.
    pub(super) fn wants_unread(&self, medium: Medium) -> bool {
        self.streams == Streams::All && self.wants(usize::MAX, medium)
    }

    /// What to say if stream `index` is listed, and another option leaves it out.
    pub(super) fn contradiction(&self, index: usize, medium: Medium) -> Option<String> {
        let is_listed = matches!(&self.streams, Streams::List(list) if list.contains(&index));
        let (option, noun) = match medium {
            Medium::Audio if self.no_audio => ("--no-audio", "sound"),
            Medium::Subtitle if self.no_subtitles => ("--no-subtitles", "subtitles"),
            _ => return None,
        };
        is_listed.then(|| {
            format!(
                "--streams names stream {index}, which is {noun}, and {option} leaves it out; give one of \
                 the two"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_chosen_by_a_word_or_by_their_indices() {
        assert_eq!("all".parse(), Ok(Streams::All));
        assert_eq!("video".parse(), Ok(Streams::Video));
        assert_eq!("1, 3".parse(), Ok(Streams::List(vec![1, 3])));
        for bad in ["", "none", "1-2", "1,,2", "-1"] {
            assert_eq!(bad.parse::<Streams>(), Err(NoStreams), "{bad}");
        }
        let options = StreamOptions {
            streams: Streams::List(vec![1, 2]),
            no_audio: true,
            ..StreamOptions::default()
        };
        assert!(!options.wants(1, Medium::Audio));
        let said = options.contradiction(1, Medium::Audio).unwrap();
        assert!(
            said.starts_with("--streams names stream 1, which is sound, and --no-audio"),
            "{said}"
        );
        assert_eq!(options.contradiction(2, Medium::Subtitle), None);
        assert_eq!(options.contradiction(3, Medium::Audio), None);
        assert!(options.wants(2, Medium::Subtitle));
        assert!(!options.wants_unread(Medium::Subtitle));
        assert!(StreamOptions::default().wants_unread(Medium::Subtitle));
        assert!(!options.wants(3, Medium::Subtitle));
    }
}
