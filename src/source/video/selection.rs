//! Which stream of a file is filtered.

use crate::media::ffmpeg::{Demuxer, Medium};

/// The stream to filter: the wanted one, or among those that move the default one, then the largest, then the
/// first.
pub(super) fn choose_stream(demuxer: &Demuxer, wanted: Option<usize>) -> Result<usize, String> {
    let streams: Vec<_> = (0..demuxer.stream_count())
        .filter_map(|i| Some((i, demuxer.stream(i)?)))
        .collect();
    let list = || {
        let words: Vec<String> = streams
            .iter()
            .map(|(i, s)| format!("{i}: {} ({})", s.medium.word(), s.codec))
            .collect();
        if words.is_empty() {
            "it has no streams at all".to_owned()
        } else {
            format!("its streams are {}", words.join(", "))
        }
    };
    if let Some(wanted) = wanted {
        return match streams.iter().find(|(i, _)| *i == wanted) {
            Some((_, s)) if s.medium == Medium::Video => Ok(wanted),
            Some((_, s)) => Err(format!(
                "stream {wanted} is {}, not video; {}",
                s.medium.word(),
                list()
            )),
            None => Err(format!("there is no stream {wanted}; {}", list())),
        };
    }
    let best = streams
        .iter()
        .filter(|(_, s)| s.medium == Medium::Video && !s.is_cover)
        .max_by_key(|(i, s)| {
            let area = i64::from(s.width) * i64::from(s.height);
            (s.is_default, area, std::cmp::Reverse(*i))
        });
    match best {
        Some((index, _)) => Ok(*index),
        None if streams.iter().any(|(_, s)| s.is_cover) => Err(
            "it holds no video, only sound with a cover picture (--stream N would filter that picture)"
                .to_owned(),
        ),
        None => Err(format!("it holds no video; {}", list())),
    }
}
