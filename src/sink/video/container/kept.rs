//! Texts, marks, chapters and programs that are in the input and not in the finished file.

use super::STALE_TEXTS;
use crate::media::containers::edits::track_names;
use crate::media::ffmpeg::{Access, Chapter, Demuxer, Medium};
use std::path::Path;

/// Names of texts that each file has of its own, for what wrote it and how it is laid out; in lower case.
const OWN_TEXTS: &[&str] = &[
    "encoder",
    "major_brand",
    "minor_version",
    "compatible_brands",
    "duration",
    "isvbr",
    "wmfsdkversion",
    "wmfsdkneeded",
    "metadatacreator",
    "hasvideo",
    "hasaudio",
    "hasmetadata",
    "haskeyframes",
    "canseektoend",
    "datasize",
    "videosize",
    "audiosize",
    "lasttimestamp",
    "lastkeyframetimestamp",
    "lastkeyframelocation",
    "uid",
    "generation_uid",
    "product_uid",
    "product_name",
    "product_version",
    "product_version_num",
    "company_name",
    "toolkit_version",
    "toolkit_version_num",
    "application_platform",
    "modification_date",
    "operational_pattern_ul",
    "project_name",
    "material_package_umid",
    "file_package_umid",
    "file_package_name",
    "package_uid",
];

/// Names of texts that a stream has of its own beside those; in lower case. Most say how the container is
/// laid out, the others are carried by other means.
const OWN_STREAM_TEXTS: &[&str] = &[
    "handler_name",
    "vendor_id",
    "creation_time",
    "track_name",
    "variant_bitrate",
    "rotate",
    "alpha_mode",
    "stereo_mode",
    "filename",
    "mimetype",
];

/// What FFmpeg calls a program that has no name, and its maker.
const NO_SERVICE: &[&str] = &["Service01", "FFmpeg"];

/// Marks that are not compared: each container has its own idea of what plays by default.
const OWN_MARKS: &[&str] = &["default", "timed_thumbnails"];

/// Codes of languages that ISO 639-2 has two of.
const LANGUAGES: &[(&str, &str)] = &[
    ("alb", "sqi"),
    ("arm", "hye"),
    ("baq", "eus"),
    ("bur", "mya"),
    ("chi", "zho"),
    ("cze", "ces"),
    ("dut", "nld"),
    ("fre", "fra"),
    ("geo", "kat"),
    ("ger", "deu"),
    ("gre", "ell"),
    ("ice", "isl"),
    ("mac", "mkd"),
    ("mao", "mri"),
    ("may", "msa"),
    ("per", "fas"),
    ("rum", "ron"),
    ("slo", "slk"),
    ("tib", "bod"),
    ("wel", "cym"),
];

/// Those of them that FFmpeg's MOV knows by their second code. It knows the others by their first one, if at
/// all.
const SECOND_IN_MOV: &[&str] = &["ces", "fra", "ron", "slk"];

/// Seconds that the beginning of a chapter may be off beside the ticks of both files.
const CHAPTER_OFF: f64 = 0.001;

/// The name that FFmpeg gives to what wrote an AVI file.
const AVI_WRITER: &str = "software";

type Text = (String, String);

/// True if the name of a text is one of the many that phones and cameras invent, with dots between the words.
pub(in crate::sink::video) fn is_reverse_domain(name: &str) -> bool {
    name.contains('.')
}

/// A stream of the input that is in the output.
pub(in crate::sink::video) struct Carried {
    pub(in crate::sink::video) from: usize,
    /// What it is called in messages.
    pub(in crate::sink::video) label: String,
    /// Its pictures are new: it is no cover.
    pub(in crate::sink::video) is_filtered: bool,
}

/// What the input says of a stream that would be missed.
struct Said {
    texts: Vec<Text>,
    language: Option<String>,
    marks: Vec<String>,
}

impl Said {
    fn of(before: &Demuxer, carried: &Carried, of_file: &[Text], ignored: &[&str]) -> Said {
        let texts = before.stream_texts(carried.from);
        let language = language(&texts).filter(|code| {
            // What Matroska means where nothing is said.
            code != "eng" || !before.format_name().starts_with("matroska")
        });
        let is_own = |name: &str| {
            OWN_STREAM_TEXTS.contains(&name)
                || ignored.contains(&name)
                || name == "language"
                || STALE_TEXTS
                    .iter()
                    .any(|stale| stale.to_bytes().eq_ignore_ascii_case(name.as_bytes()))
        };
        let texts = wanted(before, &texts)
            .into_iter()
            .filter(|(name, _)| !is_own(&stem(name).unwrap_or(name).to_lowercase()))
            // What the file says, too, is missed there.
            .filter(|(name, value)| !of_file.iter().any(|(n, v)| n == name && v == value));
        let mut marks = before.marks(carried.from);
        marks.retain(|mark| {
            let is_own = OWN_MARKS.contains(&mark.as_str());
            !is_own && (mark != "attached_pic" || !carried.is_filtered)
        });
        Said {
            texts: texts.collect(),
            language,
            marks,
        }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.language.is_none() && self.marks.is_empty()
    }
}

/// The code of a stream's language; `None` if it is not stated.
fn language(texts: &[Text]) -> Option<String> {
    let (_, code) = texts
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("language"))?;
    let code = code.to_lowercase();
    (!matches!(code.as_str(), "" | "und" | "unk")).then_some(code)
}

/// The first code of a language that has two.
fn first_code(code: &str) -> &str {
    let pair = LANGUAGES.iter().find(|(_, second)| *second == code);
    pair.map_or(code, |(first, _)| first)
}

/// The code by which `container` knows the language of a stream with these texts, if it knows it by another
/// one than that.
pub(in crate::sink::video) fn code_in(container: &str, texts: &[Text]) -> Option<&'static str> {
    let code = language(texts).filter(|_| container == "mov")?;
    let (first, second) = LANGUAGES
        .iter()
        .find(|(first, second)| *first == code || *second == code)?;
    let known = if SECOND_IN_MOV.contains(second) {
        second
    } else {
        first
    };
    (*known != code).then_some(known)
}

/// The name without the language that FFmpeg adds to it, if it does: "title-eng".
fn stem(name: &str) -> Option<&str> {
    let (stem, language) = name.rsplit_once('-')?;
    (language.len() == 3 && language.bytes().all(|b| b.is_ascii_lowercase())).then_some(stem)
}

/// Those `texts` of a file, or of its streams, that would be missed.
fn wanted(file: &Demuxer, texts: &[Text]) -> Vec<Text> {
    let is_own = |name: &str| OWN_TEXTS.contains(&name) || name == AVI_WRITER && file.format_name() == "avi";
    let repeats = |(name, value): &Text| {
        stem(name).is_some_and(|stem| texts.iter().any(|(n, v)| n == stem && v == value))
    };
    let mut found = texts.to_vec();
    found.retain(|text| !is_own(&text.0.to_lowercase()) && !text.1.is_empty() && !repeats(text));
    found
}

/// A finished file.
pub(in crate::sink::video) struct Finished {
    demuxer: Demuxer,
    /// Names of its streams that FFmpeg may not read, which versions up to 5.1 do not.
    names: Vec<Option<String>>,
}

impl Finished {
    /// The one at `path`; `None` if it cannot be read.
    pub(in crate::sink::video) fn open(path: &Path) -> Option<Finished> {
        let demuxer = Demuxer::open(path, Access::default(), None, None).ok()?;
        let is_mp4 = demuxer.format_name().contains("mp4");
        let names = if is_mp4 { track_names(path) } else { Vec::new() };
        Some(Finished { demuxer, names })
    }

    /// How many streams it has.
    pub(in crate::sink::video) fn streams(&self) -> usize {
        self.demuxer.stream_count()
    }

    /// The texts of stream `index`.
    fn stream_texts(&self, index: usize) -> Vec<Text> {
        let mut texts = self.demuxer.stream_texts(index);
        if let Some(Some(name)) = self.names.get(index)
            && !texts.iter().any(|(key, _)| key == "title")
        {
            texts.push(("title".to_owned(), name.clone()));
        }
        texts
    }
}

/// Texts of the finished file, each of which accounts for one of the input's.
struct Found(Vec<Option<(Place, Text)>>);

/// Compares a text of the input with one of the finished file.
type Comparison<'a> = &'a dyn Fn(&Text, &Text) -> bool;

/// Where a text is, in the finished file.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    File,
    Stream(usize),
}

impl Found {
    fn of(after: &Finished) -> Found {
        let demuxer = &after.demuxer;
        let of_file = demuxer.texts().into_iter();
        let of_file = of_file.chain(demuxer.program_texts().into_iter().flatten());
        let of_streams = (0..demuxer.stream_count()).flat_map(|index| {
            let texts = after.stream_texts(index).into_iter();
            texts.map(move |text| (Place::Stream(index), text))
        });
        let all = of_file.map(|text| (Place::File, text)).chain(of_streams);
        Found(all.map(Some).collect())
    }

    /// Names of those `texts` that are not at these `places`, the better ones first, or not whole. Some
    /// containers keep a text under another name, or with a stream.
    fn missing(&mut self, texts: &[Text], places: &[&dyn Fn(Place) -> bool]) -> Vec<String> {
        let is_same = |a: &Text, b: &Text| stem_of(a).eq_ignore_ascii_case(stem_of(b));
        let kinds: [Comparison<'_>; 2] = [
            &|wanted, found| is_same(wanted, found) && says_same(&wanted.1, &found.1),
            &|wanted, found| wanted.1.trim() == found.1.trim(),
        ];
        let mut left: Vec<&Text> = texts.iter().collect();
        for fits in kinds {
            for is_there in places {
                left.retain(|wanted| !self.take(|place, found| is_there(place) && fits(wanted, found)));
            }
        }
        let named = |wanted: &&Text| {
            let is_changed =
                self.take(|place, found| places.iter().any(|p| p(place)) && is_same(wanted, found));
            let name = wanted.0.clone();
            if is_changed {
                format!("all of {name}")
            } else {
                name
            }
        };
        left.iter().map(named).collect()
    }

    /// Takes the first text that `fits` away; false if there is none.
    fn take(&mut self, fits: impl Fn(Place, &Text) -> bool) -> bool {
        let mut texts = self.0.iter_mut();
        let found = texts.find(|entry| entry.as_ref().is_some_and(|(place, text)| fits(*place, text)));
        found.is_some_and(|entry| entry.take().is_some())
    }
}

fn stem_of(text: &Text) -> &str {
    stem(&text.0).unwrap_or(&text.0)
}

/// True if two texts under one name say the same: as they are, or as numbers or times that containers write
/// in a form of their own ("1" and "01", "2024-05-01T10:00:00Z" with a fraction of the second or without).
fn says_same(a: &str, b: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let is_time = |text: &str| {
        text.len() >= 4
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || b"-:./TZ+ ".contains(&b))
    };
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<u8>>();
    a.trim() == b.trim()
        || number(a).is_some_and(|a| number(b) == Some(a))
        || is_time(a) && is_time(b) && {
            let (a, b) = (digits(a), digits(b));
            a.len().min(b.len()) >= 4 && (a.starts_with(&b) || b.starts_with(&a))
        }
}

/// What is lost on the way from `before`, streams `carried` of it in the output's order, to the file that
/// `open` opens, `None` if it cannot be read; a sentence each. Texts that are named in `ignored` are
/// reported elsewhere.
pub(in crate::sink::video) fn losses(
    before: &Demuxer,
    (carried, ignored): (&[Carried], &[&str]),
    open: impl FnOnce() -> Option<Finished>,
    container: &str,
) -> Vec<String> {
    let mut texts = wanted(before, &before.texts());
    texts.retain(|(name, _)| !ignored.iter().any(|other| other.eq_ignore_ascii_case(name)));
    let of_streams: Vec<Said> = carried
        .iter()
        .map(|stream| Said::of(before, stream, &texts, ignored))
        .collect();
    let streams: Vec<usize> = carried.iter().map(|stream| stream.from).collect();
    let (chapters, programs) = (before.chapters(), before.program_texts_of(&streams));
    let has_none = texts.is_empty() && chapters.is_empty() && programs.is_empty();
    if has_none && of_streams.iter().all(Said::is_empty) {
        return Vec::new();
    }
    let after = open();
    let mut found = after.as_ref().map_or(Found(Vec::new()), Found::of);
    let after = after.map(|finished| finished.demuxer);
    let mut sentences = Vec::new();
    let lost = found.missing(&texts, &[&|place| place == Place::File, &|_| true]);
    if !lost.is_empty() {
        sentences.push(format!(
            "metadata is not kept: {container} does not hold {}",
            lost.join(", ")
        ));
    }
    for (position, (stream, said)) in carried.iter().zip(&of_streams).enumerate() {
        let at = after.as_ref().and_then(|after| {
            let others = carried[..position].iter().map(|stream| class(before, stream));
            counterpart(after, class(before, stream), &others.collect::<Vec<_>>())
        });
        let is_there = |place: Place| at.is_some_and(|at| place == Place::Stream(at));
        let mut lost = found.missing(&said.texts, &[&is_there, &|place| place == Place::File]);
        let back = after.as_ref().zip(at);
        let found_language = back.and_then(|(after, at)| language(&after.stream_texts(at)));
        if let Some(language) = &said.language
            && found_language.as_deref().map(first_code) != Some(first_code(language))
        {
            lost.push(format!("language {language}"));
        }
        let marks = back.map_or_else(Vec::new, |(after, at)| after.marks(at));
        let missing = said.marks.iter().filter(|mark| !marks.contains(mark));
        lost.extend(missing.map(|mark| format!("disposition {mark}")));
        if !lost.is_empty() {
            sentences.push(format!(
                "metadata of {} is not kept: {container} does not hold {}",
                stream.label,
                lost.join(", ")
            ));
        }
    }
    sentences.extend(lost_programs(&programs, after.as_ref(), container));
    let found = after.map_or_else(Vec::new, |after| after.chapters());
    sentences.extend(lost_chapters(&chapters, found, container));
    sentences
}

/// What tells a stream from others: its medium, and whether it is a cover.
fn class(before: &Demuxer, stream: &Carried) -> (Medium, bool) {
    let facts = before.stream(stream.from);
    facts.map_or((Medium::Other, false), |facts| {
        (facts.medium, facts.is_cover && !stream.is_filtered)
    })
}

/// The stream of the finished file that is of `class` and follows those `before` it. Containers put some
/// kinds last, and make covers ordinary pictures.
fn counterpart(after: &Demuxer, class: (Medium, bool), before: &[(Medium, bool)]) -> Option<usize> {
    let nth = |is_it: &dyn Fn((Medium, bool)) -> bool| {
        let streams = (0..after.stream_count()).filter(|&at| {
            let facts = after.stream(at);
            facts.is_some_and(|facts| is_it((facts.medium, facts.is_cover)))
        });
        let skipped = before.iter().filter(|other| is_it(**other)).count();
        streams.into_iter().nth(skipped)
    };
    nth(&|other| other == class).or_else(|| nth(&|other| other.0 == class.0))
}

/// The name of a program and of who provides it, where they are stated.
pub(in crate::sink::video) fn service(program: &[Text]) -> impl Iterator<Item = &Text> {
    program.iter().filter(|(name, value)| {
        name.starts_with("service_") && !NO_SERVICE.contains(&value.as_str()) && !value.is_empty()
    })
}

/// What is lost of programs.
fn lost_programs(programs: &[Vec<Text>], after: Option<&Demuxer>, container: &str) -> Option<String> {
    let found = after.map_or_else(Vec::new, Demuxer::program_texts);
    let of_file = after.map_or_else(Vec::new, Demuxer::texts);
    let kept: Vec<&Text> = found.iter().flatten().chain(&of_file).collect();
    let named = programs.iter().flat_map(|program| service(program));
    let lost = named.filter(|(name, value)| {
        !kept
            .iter()
            .any(|(n, v)| n.eq_ignore_ascii_case(name) && v == value)
    });
    let lost: Vec<String> = lost.map(|(name, value)| format!("{name} {value}")).collect();
    if programs.len() > 1 && found.len() < programs.len() {
        return Some(format!(
            "the {} programs are not kept: all streams are written as one, without {}",
            programs.len(),
            match lost.is_empty() {
                true => "the others".to_owned(),
                false => lost.join(", "),
            }
        ));
    }
    (!lost.is_empty()).then(|| {
        format!(
            "the programs are not kept: {container} does not hold {}",
            lost.join(", ")
        )
    })
}

/// What is lost of chapters: those that do not begin where they did, or that have another title, and texts
/// beside the titles.
fn lost_chapters(wanted: &[Chapter], found: Vec<Chapter>, container: &str) -> Vec<String> {
    let title = |chapter: &Chapter| {
        let mut texts = chapter.texts.iter();
        let title = texts.find(|(name, _)| name.eq_ignore_ascii_case("title"));
        title
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let mut left = found;
    let mut lost_texts: Vec<&str> = Vec::new();
    let mut held = 0;
    for chapter in wanted {
        let is_it = |other: &Chapter| {
            let off = (other.begins - chapter.begins).abs();
            let (own, others) = (title(chapter), title(other));
            off <= chapter.tick.max(other.tick) + CHAPTER_OFF && (own.is_empty() || own == others)
        };
        let Some(at) = left.iter().position(is_it) else {
            continue;
        };
        held += 1;
        let kept = left.remove(at).texts;
        let texts = chapter.texts.iter().filter(|(name, value)| {
            let is_title = name.eq_ignore_ascii_case("title");
            !is_title && stem(name).is_none() && !kept.iter().any(|(_, v)| v == value)
        });
        for (name, _) in texts {
            if !lost_texts.contains(&name.as_str()) {
                lost_texts.push(name);
            }
        }
    }
    let mut sentences = Vec::new();
    match held {
        0 if wanted.is_empty() => {}
        0 => sentences.push(format!(
            "the chapters are not kept: {container} does not hold them"
        )),
        held if held < wanted.len() => sentences.push(format!(
            "only {held} of {} chapters are kept by {container} with their title and beginning",
            wanted.len()
        )),
        _ => {}
    }
    if !lost_texts.is_empty() {
        sentences.push(format!(
            "texts of chapters are not kept: {container} does not hold {}",
            lost_texts.join(", ")
        ));
    }
    sentences
}
