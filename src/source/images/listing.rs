//! Which image files an input names: one file, a directory, a numbered pattern or a glob, in the order of the
//! frames.

use super::animated::{is_animated, is_animated_jpeg_xl};
use super::content::{are_several, is_gif, is_picture, nameless_still};
use super::formats::tiff;
use crate::media::still::names::as_text;
use crate::media::still::pattern::Pattern;
use crate::media::still::{Decoding, ImageKind};
use crate::source::SourceError;
use crate::wording::{counted, first_of};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Files that are named in a warning before the rest is only counted.
const NAMED: usize = 3;

/// Which frames of a sequence are wanted, by their numbers in a pattern's names, else by their place, counted
/// from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The first number; by default the sequence's own.
    pub first: Option<i64>,
    /// The last number; by default the sequence's own.
    pub last: Option<i64>,
    /// The step from number to number, at least 1.
    pub step: u64,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            first: None,
            last: None,
            step: 1,
        }
    }
}

impl Selection {
    /// True if everything is wanted.
    pub fn is_all(&self) -> bool {
        *self == Selection::default()
    }

    /// True if `number` is wanted of a sequence that begins with `begin`.
    fn wants(&self, number: i64, begin: i64) -> bool {
        let first = self.first.unwrap_or(begin);
        let steps = i128::from(number) - i128::from(first);
        steps >= 0 && self.last.is_none_or(|last| number <= last) && steps % i128::from(self.step.max(1)) == 0
    }
}

/// The image files of an input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The files, one a frame.
    pub files: Vec<PathBuf>,
    /// The numbers in the files' names, where a pattern has them.
    pub numbers: Option<Vec<i64>>,
    /// Their pages, where all are the same file, which has several.
    pub pages: Option<Vec<Page>>,
    /// What is missing among them or was not taken, a sentence each.
    pub notes: Vec<String>,
    /// The place of each among all that the input names, counted from 0.
    pub places: Vec<u64>,
}

/// A page of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Counted from 0.
    pub number: usize,
    /// Where its directory is in the file.
    pub(super) place: u64,
}

impl Listing {
    /// Leaves the files from `first` on and before `end`, by their places.
    pub fn keep(&mut self, first: usize, end: usize) {
        fn within<T>(items: &mut Vec<T>, first: usize, end: usize) {
            items.truncate(end);
            items.drain(..first.min(items.len()));
        }
        within(&mut self.files, first, end);
        within(&mut self.places, first, end);
        if let Some(numbers) = &mut self.numbers {
            within(numbers, first, end);
        }
        if let Some(pages) = &mut self.pages {
            within(pages, first, end);
        }
    }

    /// The files at `indices`, in that order.
    #[must_use]
    pub fn picked(self, indices: &[usize]) -> Listing {
        fn at<T: Clone>(items: &[T], indices: &[usize]) -> Vec<T> {
            indices
                .iter()
                .filter_map(|&index| items.get(index).cloned())
                .collect()
        }
        Listing {
            files: at(&self.files, indices),
            numbers: self.numbers.map(|numbers| at(&numbers, indices)),
            pages: self.pages.map(|pages| at(&pages, indices)),
            places: at(&self.places, indices),
            notes: self.notes,
        }
    }

    /// The names that files made of these get: the files' own, with a number for each page.
    pub fn names(&self) -> Vec<PathBuf> {
        let Some(pages) = &self.pages else {
            return self.files.clone();
        };
        let named = |(file, page): (&PathBuf, &Page)| {
            let mut name = file.file_stem().unwrap_or_default().to_owned();
            name.push(format!("-{:03}", page.number));
            if let Some(extension) = file.extension() {
                name.push(".");
                name.push(extension);
            }
            file.with_file_name(name)
        };
        self.files.iter().zip(pages).map(named).collect()
    }
}

/// True if `input` is to be read as images: a directory, a pattern, a glob, or a file that is no animation
/// and is an image by its extension or, where that is none of an image that is read in sequences, by its
/// content.
pub fn names_images(input: &Path) -> bool {
    if input.is_dir() {
        return true;
    }
    let named = ImageKind::read(input);
    if input.is_file() {
        let is_still = match named {
            Some(kind) => !is_gif(input) && !are_several(kind, input),
            None => nameless_still(input).is_some(),
        };
        return is_still && !is_animated(input) && !is_animated_jpeg_xl(input);
    }
    // A pipe cannot be opened twice, as a list of image files is.
    if input.exists() {
        return false;
    }
    // What FFmpeg decodes may be a URL.
    let is_own = |kind: ImageKind| kind.decoding() != Decoding::Ffmpeg;
    named.is_some_and(is_own) || is_glob(input) || matches!(Pattern::parse(input), Ok(Some(_)))
}

fn is_glob(input: &Path) -> bool {
    let text = as_text(input.as_os_str());
    text.contains(['*', '?']) || text.contains('[') && text.contains(']')
}

/// The image files that `input` names, in order; at least one.
///
/// A TIFF file of several pages gives them in their order. A directory gives its files with a known image
/// extension, in natural order (2 before 10), hidden ones left out. A pattern (`frames/%05d.png`) gives every
/// file with such a name, in the order of the numbers; gaps are noted. A glob gives what it matches, in
/// natural order. A name that exists is taken as it is, whatever characters it has.
pub fn list(input: &Path, selection: &Selection) -> Result<Listing, SourceError> {
    let invalid = |problem: String| SourceError::Invalid {
        path: input.display().to_string(),
        problem,
    };
    let mut listing = if input.is_dir() {
        let listing = directory(input)?;
        if listing.files.is_empty() {
            let others = listing
                .notes
                .first()
                .map_or_else(String::new, |n| format!("; {n}"));
            return Err(invalid(format!(
                "is a directory without images (files ending in {}){others}",
                ImageKind::extensions()
            )));
        }
        listing
    } else if input.exists() {
        let (places, lacking) = tiff::pages(input);
        let pages = (0..).zip(places).map(|(number, place)| Page { number, place });
        let pages: Vec<Page> = pages.collect();
        Listing {
            files: vec![input.to_owned(); pages.len().max(1)],
            pages: (pages.len() > 1).then_some(pages),
            notes: lacking.into_iter().collect(),
            ..Listing::default()
        }
    } else if let Some(pattern) = Pattern::parse(input).map_err(|e| invalid(e.to_string()))? {
        return numbered(input, &pattern, selection);
    } else if is_glob(input) {
        matched(input)?
    } else {
        return Err(SourceError::Io {
            path: input.display().to_string(),
            // With the system's own words.
            cause: input
                .metadata()
                .err()
                .unwrap_or_else(|| ErrorKind::NotFound.into()),
        });
    };
    let count = listing.files.len();
    let is_wanted = |&place: &usize| i64::try_from(place).is_ok_and(|place| selection.wants(place, 0));
    let wanted: Vec<usize> = (0..count).filter(is_wanted).collect();
    if wanted.is_empty() {
        let what = match listing.pages {
            Some(_) => "page",
            None => "image file",
        };
        return Err(invalid(format!(
            "has {}, none of them among --frames, which numbers them from 0; --duration 1f takes the first",
            counted(count as u64, what)
        )));
    }
    listing.places = (0..count as u64).collect();
    Ok(listing.picked(&wanted))
}

/// What a glob matches.
fn matched(input: &Path) -> Result<Listing, SourceError> {
    let invalid = |problem: String| SourceError::Invalid {
        path: input.display().to_string(),
        problem,
    };
    let no_pattern = |e: glob::PatternError| invalid(format!("is no valid file pattern: {e}"));
    glob::Pattern::new(&as_text(input.as_os_str())).map_err(no_pattern)?;
    let mut matches = vec![PathBuf::new()];
    for component in input.components() {
        let Component::Normal(name) = component else {
            matches.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let text = as_text(name);
        if text == "**" {
            matches = with_folders_within(matches)?;
        } else if text.contains(['*', '?', '[']) {
            let pattern = glob::Pattern::new(&text).map_err(no_pattern)?;
            matches = matching_entries(&matches, &pattern)?;
        } else {
            matches.iter_mut().for_each(|path| path.push(name));
        }
    }
    // What several `**` find in several ways.
    matches.sort_unstable();
    matches.dedup();
    if input.as_os_str().as_encoded_bytes().ends_with(b"/") {
        matches.clear();
    }
    let listing = sorted_out(matches)?;
    match listing.files.is_empty() {
        true => Err(invalid("matches no file".to_owned())),
        false => Ok(listing),
    }
}

/// The files among `paths`, in order, with notes of the names that lead to none.
fn sorted_out(paths: Vec<PathBuf>) -> Result<Listing, SourceError> {
    let (mut files, mut broken, mut special) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        if path.is_file() {
            files.push(path);
            continue;
        }
        check_access(&path)?;
        if path.is_symlink() && !path.exists() {
            broken.push(path);
        } else if path.exists() && !path.is_dir() {
            special.push(path);
        }
    }
    in_order(&mut files);
    Ok(Listing {
        files,
        notes: left_out(&mut broken, &mut special),
        ..Listing::default()
    })
}

/// The entries of a folder, the current one if the name is empty; none of what is no folder. Hidden ones are
/// left out.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    if !here.is_dir() {
        return Ok(Vec::new());
    }
    let names = fs::read_dir(here).and_then(|entries| {
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        names.collect::<io::Result<Vec<OsString>>>()
    });
    let names = names.map_err(|cause| SourceError::Io {
        path: here.display().to_string(),
        cause,
    })?;
    let visible = names
        .iter()
        .filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    Ok(visible.map(|name| folder.join(name)).collect())
}

/// The entries of the folders whose names match.
fn matching_entries(folders: &[PathBuf], pattern: &glob::Pattern) -> Result<Vec<PathBuf>, SourceError> {
    let is_match = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| pattern.matches(&as_text(name)))
    };
    let mut found = Vec::new();
    for folder in folders {
        found.extend(entries(folder)?.into_iter().filter(is_match));
    }
    Ok(found)
}

/// The folders and all folders within them.
fn with_folders_within(mut folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, SourceError> {
    let mut at = 0;
    while let Some(folder) = folders.get(at) {
        folders.extend(entries(folder)?.into_iter().filter(|path| path.is_dir()));
        at += 1;
    }
    Ok(folders)
}

/// The files of a folder whose names are `wanted`, in natural order; hidden ones are left out.
pub fn files_in(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Listing, SourceError> {
    let mut paths = entries(folder)?;
    paths.retain(|path| wanted(path));
    sorted_out(paths)
}

/// What is said of names that lead to no file.
fn left_out(broken: &mut [PathBuf], special: &mut [PathBuf]) -> Vec<String> {
    in_order(broken);
    in_order(special);
    let notes = [
        note(
            broken,
            [
                "link leads nowhere and is left out",
                "links lead nowhere and are left out",
            ],
        ),
        note(
            special,
            [
                "name is of a pipe, socket or device, and is left out",
                "names are of pipes, sockets or devices, and are left out",
            ],
        ),
    ];
    notes.into_iter().flatten().collect()
}

/// Refuses a name in a folder that may be listed, but whose files may not be opened.
fn check_access(path: &Path) -> Result<(), SourceError> {
    match fs::metadata(path) {
        Err(cause) if cause.kind() == ErrorKind::PermissionDenied => Err(SourceError::Io {
            path: path.display().to_string(),
            cause,
        }),
        _ => Ok(()),
    }
}

fn directory(folder: &Path) -> Result<Listing, SourceError> {
    let failed = |cause| SourceError::Io {
        path: folder.display().to_string(),
        cause,
    };
    let (mut images, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // Hidden files may be output that a run has not finished.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if ImageKind::read(&path).is_some() {
            images.push(path);
        } else if path.is_file() && (ImageKind::is_left_out(&path) || is_picture(&path)) {
            others.push(path);
        }
    }
    let listing = sorted_out(images)?;
    in_order(&mut others);
    let others = note(
        &others,
        [
            "picture of another kind, which is not read in sequences, is left out",
            "pictures of other kinds, which are not read in sequences, are left out",
        ],
    );
    Ok(Listing {
        notes: others.into_iter().chain(listing.notes).collect(),
        ..listing
    })
}

/// "3 WHAT: a, b and 1 more", if there are any; `what` is said of one file, and of several.
fn note(files: &[PathBuf], what: [&str; 2]) -> Option<String> {
    let what = what[usize::from(files.len() > 1)];
    (!files.is_empty()).then(|| format!("{} {what}: {}", files.len(), names(files)))
}

/// The names of the first of the files, and how many there are beside.
fn names(files: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    first_of(NAMED, files.iter().map(name))
}

/// Every file whose name the pattern gives for a number, in the numbers' order.
fn numbered(input: &Path, pattern: &Pattern, selection: &Selection) -> Result<Listing, SourceError> {
    let invalid = |problem: String| SourceError::Invalid {
        path: input.display().to_string(),
        problem,
    };
    let folder = match pattern.folder() {
        folder if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    let entries = fs::read_dir(folder).map_err(|cause| SourceError::Io {
        path: folder.display().to_string(),
        cause,
    })?;
    let (mut numbers, mut beyond) = (Vec::new(), Vec::new());
    for name in entries.flatten().map(|entry| entry.file_name()) {
        match pattern.number(&name) {
            Some(number) => numbers.push(number),
            None if pattern.is_beyond(&name) && folder.join(&name).is_file() => {
                beyond.push(folder.join(name));
            }
            None => {}
        }
    }
    in_order(&mut beyond);
    let beyond = note(
        &beyond,
        [
            "file has a number that is too large (beyond 64 bits), and is left out",
            "files have numbers that are too large (beyond 64 bits), and are left out",
        ],
    );
    numbers.sort_unstable();
    if let Some(&any) = numbers.first() {
        check_access(&pattern.name(any))?;
    }
    let mut strangers: Vec<i64> = numbers
        .extract_if(.., |number| !pattern.name(*number).is_file())
        .filter(|&number| !pattern.name(number).is_dir())
        .collect();
    let (Some(&begin), Some(&end)) = (numbers.first(), numbers.last()) else {
        let beyond = beyond.map_or_else(String::new, |note| format!("; {note}"));
        return Err(invalid(format!(
            "names no file: there is none such as {} in {}{beyond}",
            pattern.name(1).display(),
            folder.display()
        )));
    };
    let wanted = (0..)
        .zip(numbers)
        .filter(|&(_, number)| selection.wants(number, begin));
    let (places, numbers): (Vec<u64>, Vec<i64>) = wanted.unzip();
    let Some(&first) = numbers.first() else {
        return Err(invalid(format!(
            "has numbers {begin} to {end}, none of them among those that are wanted"
        )));
    };
    strangers.retain(|&number| selection.wants(number, begin));
    let (mut broken, mut special) = (Vec::new(), Vec::new());
    for &number in &strangers {
        let path = pattern.name(number);
        if path.is_symlink() && !path.exists() {
            broken.push(path);
        } else {
            special.push(path);
        }
    }
    // What is there without being a file is named as that.
    strangers.extend(&numbers);
    strangers.sort_unstable();
    let missing = gaps(pattern, selection, &strangers, selection.first.unwrap_or(first));
    Ok(Listing {
        files: numbers.iter().map(|&number| pattern.name(number)).collect(),
        numbers: Some(numbers),
        pages: None,
        notes: missing
            .into_iter()
            .chain(beyond)
            .chain(left_out(&mut broken, &mut special))
            .collect(),
        places,
    })
}

/// The numbers that are missing from `first` to the last that is wanted.
fn gaps(pattern: &Pattern, selection: &Selection, numbers: &[i64], first: i64) -> Option<String> {
    let step = i64::try_from(selection.step.max(1)).unwrap_or(i64::MAX);
    let last = selection.last.or(numbers.last().copied())?;
    let wanted = (last.saturating_sub(first) / step).saturating_add(1);
    let missing = wanted.saturating_sub(numbers.len() as i64);
    if missing <= 0 {
        return None;
    }
    let present: HashSet<i64> = numbers.iter().copied().collect();
    // As far as there is a number more than there are files, one of them is missing.
    let example = (0..=numbers.len() as i64)
        .map(|n| first.saturating_add(n.saturating_mul(step)))
        .find(|number| !present.contains(number))?;
    let name = pattern.name(example);
    Some(match missing {
        1 => format!("{} is missing", name.display()),
        n => format!(
            "{} and {} of the sequence are missing",
            name.display(),
            counted(n as u64 - 1, "more file")
        ),
    })
}

/// Sorts by the numbers within names as numbers, and by bytes where names are then equal, so that the order
/// is one. Where f-1 stands beside f1, its dash is a minus.
fn in_order(files: &mut [PathBuf]) {
    let stems: HashSet<(String, String)> = files
        .iter()
        .filter_map(|path| split(path))
        .filter(|(prefix, ..)| !prefix.ends_with('-'))
        .map(|(prefix, _, suffix)| (prefix, suffix))
        .collect();
    let signed = |path: &Path| {
        let (prefix, number, suffix) = split(path)?;
        match prefix.strip_suffix('-') {
            Some(plain) if plain.is_empty() || stems.contains(&(plain.to_owned(), suffix.clone())) => {
                Some((plain.to_owned(), suffix, -number))
            }
            Some(_) => None,
            None => Some((prefix, suffix, number)),
        }
    };
    files.sort_by_cached_key(|path| Key {
        signed: signed(path),
        path: path.clone(),
    });
}

/// A file's name as what stands before its last number, the number, and what follows.
pub(super) fn split(path: &Path) -> Option<(String, i128, String)> {
    let name = as_text(path.file_name()?);
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let digits = name[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = name[digits..end].parse().ok()?;
    Some((name[..digits].to_owned(), number, name[end..].to_owned()))
}

/// What a file is sorted by.
struct Key {
    signed: Option<(String, String, i128)>,
    path: PathBuf,
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        if let (Some((a, x, m)), Some((b, y, n))) = (&self.signed, &other.signed)
            && a == b
            && x == y
        {
            return m.cmp(n).then_with(|| self.path.cmp(&other.path));
        }
        natord::compare(&self.path.to_string_lossy(), &other.path.to_string_lossy())
            .then_with(|| self.path.cmp(&other.path))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixListener;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        folder
    }

    fn listed(input: &Path) -> Listing {
        list(input, &Selection::default()).unwrap()
    }

    fn names_of(listing: &Listing) -> Vec<String> {
        let name = |p: &PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
        listing.files.iter().map(name).collect()
    }

    fn found(input: &Path) -> Vec<String> {
        names_of(&listed(input))
    }

    fn problem(input: &Path) -> String {
        list(input, &Selection::default()).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_is_read_in_natural_order_and_strangers_are_noted() {
        let folder = folder(&[
            "f10.png",
            "f2.png",
            "f1.PNG",
            "notes.txt",
            ".f3.part-7.png",
            "f02.png",
            "g.jpeg",
            "noext",
            "x.gif",
        ]);
        fs::create_dir(folder.path().join("sub.png")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link.png")).unwrap();
        let listing = listed(folder.path());
        let names = names_of(&listing);
        assert_eq!(names.len(), 5);
        let at = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert!(at("f1.PNG") < at("f2.png") && at("f2.png") < at("f10.png") && at("f10.png") < at("g.jpeg"));
        assert!(names_images(folder.path()));
        assert!(listing.notes[0].starts_with("1 picture of another kind, which is not read"));
        assert!(listing.notes[0].contains("x.gif") && listing.notes[1].contains("link.png"));
        assert_eq!(listing.notes.len(), 2);
        // What is read alone is named, whether its name or its content shows a picture.
        let content: [(&str, &[u8]); 9] = [
            ("a.sun", b""),
            ("a.im8", b""),
            ("a.XWD", b""),
            ("a.jls", b""),
            ("a.phm", b""),
            ("a.pix", b""),
            ("b", b"\x89PNG\r\n\x1a\n"),
            ("b.0001", b"GIF89a"),
            ("b.mjpeg", b"\xff\xd8\xff\xe0"),
        ];
        for (name, content) in content {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let is_named = listed(folder.path()).notes[0].contains(name);
            assert_eq!(is_named, name != "b.mjpeg", "{name}");
            fs::remove_file(path).unwrap();
        }
        // What is there and no file.
        let _socket = UnixListener::bind(folder.path().join("socket.png")).unwrap();
        for input in [folder.path().to_owned(), folder.path().join("*.png")] {
            let notes = listed(&input).notes;
            assert!(
                notes.last().unwrap().ends_with("left out: socket.png"),
                "{notes:?}"
            );
        }
    }

    #[test]
    fn a_dash_is_a_minus_beside_names_without_one() {
        let signed = folder(&["f-1.png", "f-2.png", "f0.png", "f1.png", "f10.png"]);
        assert_eq!(
            found(signed.path()),
            ["f-2.png", "f-1.png", "f0.png", "f1.png", "f10.png"]
        );
        let dashes = folder(&["f-1.png", "f-2.png", "f-10.png"]);
        assert_eq!(found(dashes.path()), ["f-1.png", "f-2.png", "f-10.png"]);
        let bare = folder(&["-1.png", "-2.png", "0.png"]);
        assert_eq!(found(bare.path()), ["-2.png", "-1.png", "0.png"]);
    }

    #[test]
    fn patterns_begin_anywhere_and_gaps_are_noted() {
        let folder = folder(&["f-001.png", "f-002.png", "f-004.png", "f-007.png", "f-8.png"]);
        let pattern = folder.path().join("f-%03d.png");
        let listing = listed(&pattern);
        assert_eq!(listing.numbers, Some(vec![1, 2, 4, 7]));
        assert!(
            listing.notes[0].contains("f-003.png and 2 more files"),
            "{:?}",
            listing.notes
        );
        assert!(names_images(&pattern));
        let some = |first, last, step| {
            let selection = Selection { first, last, step };
            list(&pattern, &selection).map(|l| (l.numbers.unwrap(), l.notes.len()))
        };
        assert_eq!(some(Some(1), Some(2), 1).unwrap(), (vec![1, 2], 0));
        assert_eq!(some(Some(2), Some(4), 2).unwrap(), (vec![2, 4], 0));
        assert_eq!(some(Some(2), None, 1).unwrap(), (vec![2, 4, 7], 1));
        assert_eq!(some(None, None, 3).unwrap(), (vec![1, 4, 7], 0));
        assert!(some(Some(9), None, 1).is_err());
        // Links that lead nowhere behind the last file.
        std::os::unix::fs::symlink("nowhere", folder.path().join("f-008.png")).unwrap();
        let notes = listed(&pattern).notes;
        assert!(notes[0].contains("f-003.png and 2 more files"), "{notes:?}");
        assert!(
            notes[1].starts_with("1 link leads nowhere") && notes[1].ends_with("f-008.png"),
            "{notes:?}"
        );
        assert_eq!(some(Some(1), Some(2), 1).unwrap(), (vec![1, 2], 0));
        for name in ["1001", "1002"] {
            fs::write(folder.path().join(format!("shot.{name}.png")), b"").unwrap();
        }
        let shots = listed(&folder.path().join("shot.%d.png"));
        assert_eq!((shots.numbers, shots.notes.len()), (Some(vec![1001, 1002]), 0));
        assert!(problem(&folder.path().join("g%d.png")).contains("g1.png in"));
        assert!(problem(&folder.path().join("g%s.png")).contains("begins no number"));
        let large = "99999999999999999999.png";
        for before in ["h", "shot."] {
            fs::write(folder.path().join(format!("{before}{large}")), b"").unwrap();
        }
        let note = "1 file has a number that is too large (beyond 64 bits), and is left out";
        let notes = listed(&folder.path().join("shot.%d.png")).notes;
        assert_eq!(notes, [format!("{note}: shot.{large}")]);
        assert!(problem(&folder.path().join("h%d.png")).ends_with(&format!("{note}: h{large}")));
        // A folder's percent sign is only that.
        let odd = folder.path().join("100%");
        fs::create_dir(&odd).unwrap();
        fs::write(odd.join("1.png"), b"").unwrap();
        assert_eq!(found(&odd.join("%d.png")), ["1.png"]);
    }

    #[test]
    fn globs_match_files_and_existing_names_are_literal() {
        let folder = folder(&["a10.png", "a9.png", "b.png", "odd[1]*.png", ".a.png"]);
        assert_eq!(found(&folder.path().join("a*.png")), ["a9.png", "a10.png"]);
        assert_eq!(found(&folder.path().join("odd[1]*.png")), ["odd[1]*.png"]);
        assert!(problem(&folder.path().join("c*.png")).contains("matches no file"));
        assert!(problem(&folder.path().join("c[.png*")).contains("no valid file pattern"));
        // Names and folders that are not UTF-8, and files in folders within folders.
        let odd = folder.path().join(OsStr::from_bytes(b"q\xff"));
        fs::create_dir_all(odd.join("in")).unwrap();
        for name in [
            &b"a.png"[..],
            b"\xff2.png",
            b"\xff10.png",
            b"\xfe1.png",
            b"note\xff.txt",
            b"in/c.png",
        ] {
            fs::write(odd.join(OsStr::from_bytes(name)), b"").unwrap();
        }
        let names = |pattern: &[u8]| {
            let listing = listed(&folder.path().join(OsStr::from_bytes(pattern)));
            let names = listing
                .files
                .iter()
                .map(|f| f.file_name().unwrap().as_bytes().to_vec());
            names.collect::<Vec<_>>()
        };
        let (two, ten) = (b"\xff2.png".to_vec(), b"\xff10.png".to_vec());
        assert_eq!(names(b"q\xff/*.png").len(), 4);
        assert_eq!(names(b"q?/\xff*.png"), [two.clone(), ten.clone()]);
        assert_eq!(names(b"q\xff/\xff%d.png"), [two, ten]);
        assert_eq!(names(b"**/c.*"), [b"c.png".to_vec()]);
        assert_eq!(names(b"q\xff/**/c.png"), [b"c.png".to_vec()]);
        assert_eq!(names(b"q\xff").len(), 4);
        assert_eq!(files_in(&odd, |_| true).unwrap().files.len(), 5);
        let every_second = Selection {
            step: 2,
            ..Selection::default()
        };
        assert_eq!(
            names_of(&list(folder.path(), &every_second).unwrap()),
            ["a9.png", "b.png"]
        );
    }

    #[test]
    fn nothing_to_read_is_said_clearly() {
        let empty = folder(&["notes.txt"]);
        assert!(problem(empty.path()).contains("directory without images"));
        assert!(problem(&empty.path().join("missing.png")).contains("missing.png"));
        assert!(!names_images(&empty.path().join("clip.mp4")));
        // Without an extension of an image it is the content that counts, but for raw files of cameras.
        for (name, is_image) in [("upload", true), ("photo.bin", true), ("raw.dng", false)] {
            fs::write(empty.path().join(name), b"II*\0\x08\0\0\0").unwrap();
            assert_eq!(names_images(&empty.path().join(name)), is_image, "{name}");
        }
        // What FFmpeg decodes is a still, too, but for animations, and the content comes before the name.
        for (name, bytes, is_one) in [
            ("a.dpx", &b"SDPX"[..], true),
            ("a.jxl", b"\xff\x0a\x41\x02", true),
            ("IMG_1.HEIC", b"\xff\xd8\xff\xe0", true),
            ("b.gif", b"Pf\n", true),
            ("c.apng", b"\x89PNG\r\n\x1a\n", false),
            ("b.png", b"GIF89a", false),
            ("b.dng", b"II*\0\x08\0\0\0", false),
            (
                "b.jxl",
                b"\xff\x0a\x83\x05\x4d\x00\x20\x26\x08\x04\x01\x00",
                false,
            ),
            ("a.mkv", b"", false),
        ] {
            let path = empty.path().join(name);
            fs::write(&path, bytes).unwrap();
            assert_eq!(names_images(&path), is_one, "{name}");
        }
        fs::write(empty.path().join("clip"), b"\0\0\0\x1cftypisom").unwrap();
        assert!(!names_images(&empty.path().join("clip")));
    }
}
