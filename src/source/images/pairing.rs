//! Which picture of a second list of image files goes with each file of a first: the one of its number, else
//! the one of its name, else the one at its place.

use super::listing::{Listing, split};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file has no picture beside it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpaired {
    /// The other files have its numbers or names, but not this one.
    #[error("there is no picture for {}: none has its {key}", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// What the picture should have.
        key: Key,
    },
    /// There are fewer pictures.
    #[error("there are {0} pictures")]
    Place(u64),
}

/// What tells a file from others of its list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// The number in its name.
    Number(i128),
    /// Its name without the extension.
    Name(OsString),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => write!(f, "number, {number}"),
            Key::Name(name) => write!(f, "name, {}", name.display()),
        }
    }
}

/// How the names of two files go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// By how much the last number in the second one's name is above that of the first.
    Numbers(i128),
    /// Whether names are the same of which one has no number.
    Names(bool),
}

impl Relation {
    /// That of two files.
    pub fn of(a: &Path, b: &Path) -> Relation {
        let parts = |path: &Path| split(&path.with_extension(""));
        match (parts(a), parts(b)) {
            (Some((_, a, _)), Some((_, b, _))) => Relation::Numbers(b.saturating_sub(a)),
            _ => Relation::Names(a.file_stem() == b.file_stem()),
        }
    }
}

/// The files of `others` in step with those of `all` at `places`. Where these are all of them, the rest of
/// `others` follows.
pub fn paired(all: &Listing, places: &[u64], mut others: Listing) -> Result<Listing, Unpaired> {
    let by_key = by_key(all, &others);
    let count = others.files.len();
    let partner = |&place: &u64| {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let Some((keys, partners)) = &by_key else {
            return Some(place)
                .filter(|&place| place < count)
                .ok_or(Unpaired::Place(count as u64));
        };
        let key = keys.get(place).ok_or(Unpaired::Place(count as u64))?;
        partners.get(key).copied().ok_or_else(|| Unpaired::Key {
            file: all.files[place].clone(),
            key: key.clone(),
        })
    };
    let mut taken = places.iter().map(partner).collect::<Result<Vec<usize>, _>>()?;
    if by_key.is_some() {
        // What is missing among them was not needed.
        others.notes.clear();
    }
    if places.len() == all.files.len() {
        let used: HashSet<usize> = taken.iter().copied().collect();
        taken.extend((0..count).filter(|index| !used.contains(index)));
    }
    Ok(others.picked(&taken))
}

/// The keys of the first files, and which of the others has which key; `None` if they do not share any, or if
/// both are numbered without a gap and as many, so that numbers say no more than places.
fn by_key(all: &Listing, others: &Listing) -> Option<(Vec<Key>, HashMap<Key, usize>)> {
    if all.pages.is_some() || others.pages.is_some() {
        return None;
    }
    let [first, second] = match (numbers(all), numbers(others)) {
        (Some(a), Some(b)) if a.len() == b.len() && is_gapless(&a) && is_gapless(&b) => return None,
        (Some(a), Some(b)) => [a, b].map(|numbers| numbers.into_iter().map(Key::Number).collect()),
        _ => [all, others].map(|listing| {
            let stems = listing.files.iter().map(|file| file.file_stem());
            let keys = stems.map(|stem| Key::Name(stem.unwrap_or_default().to_owned()));
            keys.collect::<Vec<Key>>()
        }),
    };
    let count = second.len();
    let partners: HashMap<Key, usize> = second.into_iter().zip(0..).collect();
    let shares = first.iter().any(|key| partners.contains_key(key));
    (shares && partners.len() == count).then_some((first, partners))
}

/// The numbers of the files: those of their pattern, else the last ones in names that are the same otherwise.
fn numbers(listing: &Listing) -> Option<Vec<i128>> {
    if let Some(numbers) = &listing.numbers {
        return Some(numbers.iter().map(|&number| number.into()).collect());
    }
    let parts = |path: &Path| split(&path.with_extension(""));
    let (prefix, _, suffix) = parts(listing.files.first()?)?;
    let number = |path: &PathBuf| {
        let (before, number, behind) = parts(path)?;
        (before == prefix && behind == suffix).then_some(number)
    };
    listing.files.iter().map(number).collect()
}

/// True for numbers that follow one another.
fn is_gapless(numbers: &[i128]) -> bool {
    numbers.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> Listing {
        Listing {
            files: names.iter().map(PathBuf::from).collect(),
            ..Listing::default()
        }
    }

    /// The names beside all of `all`, or beside those at `places`.
    fn beside(all: &[&str], places: Option<&[u64]>, others: &[&str]) -> Result<String, String> {
        let all_places: Vec<u64> = (0..all.len() as u64).collect();
        let paired = paired(&listing(all), places.unwrap_or(&all_places), listing(others));
        let names = |paired: Listing| {
            let names = paired.files.iter().map(|file| file.to_str().unwrap().to_owned());
            names.collect::<Vec<String>>().join(" ")
        };
        paired.map(names).map_err(|unpaired| unpaired.to_string())
    }

    #[test]
    fn files_go_by_number_else_by_name_else_by_place() {
        let of = |text| Ok::<String, String>(String::from(text));
        let frames = ["f1.png", "f2.png", "f4.png"];
        assert_eq!(
            beside(&frames, None, &["m1.tif", "m2.tif", "m3.tif", "m4.tif"]),
            of("m1.tif m2.tif m4.tif m3.tif")
        );
        assert_eq!(beside(&frames, Some(&[2]), &["4", "2", "1"]), of("4"));
        let missing = beside(&frames, None, &["m1.png", "m2.png", "m3.png"]);
        assert_eq!(
            missing.unwrap_err(),
            "there is no picture for f4.png: none has its number, 4"
        );
        assert_eq!(
            beside(&frames, Some(&[0, 1]), &["m1.png", "m2.png", "m3.png"]),
            of("m1.png m2.png")
        );
        // As many without a gap, and numbers that are not shared, go by place.
        assert_eq!(
            beside(&["0.png", "1.png"], None, &["1.png", "2.png"]),
            of("1.png 2.png")
        );
        assert_eq!(
            beside(&frames, None, &["7.png", "8.png", "9.png"]),
            of("7.png 8.png 9.png")
        );
        assert_eq!(
            beside(&frames, Some(&[2]), &["7.png", "8.png"]),
            Err("there are 2 pictures".to_owned())
        );
        assert_eq!(
            beside(&["5.png", "6.png"], None, &["4.png", "5.png", "6.png"]),
            of("5.png 6.png 4.png")
        );
        // Names that are no sequence.
        assert_eq!(
            beside(&["a.png", "c.png"], None, &["a.tif", "b.tif", "c.tif"]),
            of("a.tif c.tif b.tif")
        );
        let missing = beside(&["a.png", "b.png"], None, &["a.tif", "c.tif"]);
        assert_eq!(
            missing.unwrap_err(),
            "there is no picture for b.png: none has its name, b"
        );
        assert_eq!(
            beside(&["a.png", "b.png"], None, &["x.tif", "y.tif"]),
            of("x.tif y.tif")
        );
        assert_eq!(
            beside(&["a.png", "b.png"], None, &["a.jpg", "a.tif"]),
            of("a.jpg a.tif")
        );
    }
}
