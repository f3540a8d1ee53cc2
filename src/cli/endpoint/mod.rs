//! INPUT and OUTPUT: the names that the user gives, and the sources and sinks that they mean.

mod files;
mod input;
mod output;
mod pair;
mod path;
mod written;

pub(crate) use files::Files;
pub(crate) use input::{FileChoice, Input, Opened};
pub(crate) use output::{Existing, Output, made_anew};
pub(crate) use pair::{check_distinct, check_files, is_file_of_end};
pub(crate) use path::{identity, names_same_file, open_written_identity, parent, place, written_identity};
pub(crate) use written::WrittenFiles;

use framepipe::source::raw::RawSpecError;
use framepipe::source::synthetic::SyntheticSpecError;
use std::path::Path;

/// The word for standard input and output.
pub(crate) const PIPE: &str = "-";

/// A text that names no input or output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    /// Nothing.
    #[error("the name is empty")]
    Empty,
    /// `raw:` without the geometry that an input needs.
    #[error(
        "'{0}' states no geometry; write raw:WIDTHxHEIGHT:FORMAT:FPS:PATH, such as \
         raw:1920x1080:yuv420p:30:clip.yuv, with - for standard input"
    )]
    NoGeometry(String),
    /// The geometry of raw frames.
    #[error(transparent)]
    Raw(#[from] RawSpecError),
    /// The made-up frames.
    #[error(transparent)]
    Synthetic(#[from] SyntheticSpecError),
    /// `null:` as an input or `synthetic:` as an output.
    #[error("{0} cannot be an {1}")]
    WrongSide(&'static str, &'static str),
    /// A URL, which no output is.
    #[error(
        "'{0}' is a URL, and framepipe writes files and pipes; let ffmpeg send what it writes: framepipe \
         filter INPUT - ... | ffmpeg -i - -c:v libx264 -f flv {0}"
    )]
    Url(String),
    /// `raw:` with a geometry on the output's side.
    #[error("raw output has the input's geometry; write raw:PATH, or raw:- for standard output")]
    OutputGeometry,
}

/// True if `text` is a URL. A folder's name may end in a colon, too, but not before two slashes.
fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// True if `text`, which stands before "://", can be the scheme of a URL.
fn is_scheme(text: &str) -> bool {
    let scheme = text.strip_prefix("raw:").unwrap_or(text);
    !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// True for the name of a YUV4MPEG2 file.
fn is_y4m(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("y4m"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use framepipe::frame::Rational;

    fn input(text: &str) -> Input {
        text.parse().unwrap()
    }

    fn output(text: &str) -> Output {
        text.parse().unwrap()
    }

    #[test]
    fn inputs_by_their_names() {
        assert_eq!(input("-"), Input::Y4m("-".into()));
        assert_eq!(input("a/b.Y4M"), Input::Y4m("a/b.Y4M".into()));
        assert_eq!(input("clip.mp4"), Input::Video("clip.mp4".into()));
        assert_eq!(input("no-such-name"), Input::Video("no-such-name".into()));
        assert_eq!(input("still.PNG"), Input::Images("still.PNG".into()));
        assert_eq!(input("frames/%05d.png"), Input::Images("frames/%05d.png".into()));
        assert_eq!(input("samples"), Input::Images("samples".into()));
        assert!(matches!(input("synthetic:64x32:gray:25:3"), Input::Synthetic(_)));
        assert!(matches!(
            "null:".parse::<Input>(),
            Err(EndpointError::WrongSide(..))
        ));
        assert_eq!("".parse::<Input>(), Err(EndpointError::Empty));
    }

    #[test]
    fn urls_are_no_outputs() {
        for url in [
            "rtmp://127.0.0.1/live/x",
            "udp://127.0.0.1:9999",
            "https://a/b.png",
            "raw:tcp://a:1",
        ] {
            let refused = url.parse::<Output>();
            assert_eq!(refused, Err(EndpointError::Url(url.to_owned())), "{url}");
        }
        assert_eq!(output("rtmp:/x.mkv"), Output::Video("rtmp:/x.mkv".into()));
    }

    #[test]
    fn raw_inputs_state_their_geometry_and_may_have_colons_in_the_path() {
        let Input::Raw(spec, path) = input("raw:64x32:yuv420p:30000/1001:a:b.yuv") else {
            panic!("no raw input");
        };
        assert_eq!((spec.layout.width(), spec.layout.height()), (64, 32));
        assert_eq!(
            spec.rate,
            Rational {
                num: 30000,
                den: 1001
            }
        );
        assert_eq!(path, Path::new("a:b.yuv"));
        for pipe in ["raw:64x32:gray:25", "raw:64x32:gray", "raw:64x32:gray:25:-"] {
            assert!(
                matches!(input(pipe), Input::Raw(_, path) if path == Path::new("-")),
                "{pipe}"
            );
        }
        for bad in [
            "raw:",
            "raw:clip.yuv",
            "raw:64:gray:25:x",
            "raw:64x32:nothing:25:x",
            "raw:0x32:gray:25:x",
        ] {
            assert!(bad.parse::<Input>().is_err(), "{bad}");
        }
    }

    #[test]
    fn outputs_by_their_names() {
        assert_eq!(output("-"), Output::Y4m("-".into()));
        assert_eq!(output("null:"), Output::Null);
        assert_eq!(output("raw:-"), Output::Raw("-".into()));
        assert_eq!(output("raw:out.yuv"), Output::Raw("out.yuv".into()));
        assert_eq!(output("out.mkv"), Output::Video("out.mkv".into()));
        assert_eq!(output("out/"), Output::Images("out/".into()));
        assert_eq!(output("out/%03d.tif"), Output::Images("out/%03d.tif".into()));
        assert_eq!(
            "raw:64x32:gray:25:x".parse::<Output>(),
            Err(EndpointError::OutputGeometry)
        );
        assert!(matches!(
            "synthetic:1x1".parse::<Output>(),
            Err(EndpointError::WrongSide(..))
        ));
        assert_eq!(
            output("out").with_container(Some("matroska")),
            Output::Video("out".into())
        );
    }
}
