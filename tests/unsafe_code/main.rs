//! Where the compiler's checks end: every file with `unsafe` is in the table of README.md, with how much of
//! it there is and why.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PAGE: &str = "tests/unsafe_code/README.md";
const HEAD: &str = "| file | blocks | functions | impls | why |\n|---|---|---|---|---|\n";

/// The only folders and files that may have it, and the name of the foreign library that no other folder may
/// call.
const FOLDERS: [(&str, Option<&str>); 6] = [
    ("python/src/array.rs", None),
    ("python/src/card.rs", None),
    ("python/src/dlpack.rs", None),
    ("src/engine/cpu/", None),
    ("src/engine/cuda/", Some("cudarc")),
    ("src/media/ffmpeg/", Some("ffmpeg_next")),
];

/// A word of Rust code, or one character that is none. Comments, strings and characters are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Mark(char),
}

/// Splits a Rust text into words and marks.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if first == '"' {
            string(rest)
        } else if first == '\'' {
            character(rest)
        } else if first == '_' || first.is_alphanumeric() {
            let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            let raw = matches!(word, "r" | "br" | "cr")
                .then(|| raw_string(after))
                .flatten();
            if raw.is_none() {
                found.push(Token::Word(word));
            }
            word.len() + raw.unwrap_or(0)
        } else {
            if !first.is_whitespace() {
                found.push(Token::Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the comment, with those inside it.
fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the string, with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of what follows a raw string's letters, with its quotes; `None` if it is no string.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    text[hashes..].starts_with('"').then_some(())?;
    let end = format!("\"{}", &text[..hashes]);
    let content = &text[hashes + 1..];
    let length = content.find(&end).map_or(content.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

/// The length of the character with its quotes, or of the one quote that begins a lifetime's name.
fn character(text: &str) -> usize {
    let mut inside = text.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => inside
            .skip(1)
            .find(|&(_, c)| c == '\'')
            .map_or(text.len(), |(at, _)| at + 1),
        _ => match inside.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
    }
}

/// How often a file has `unsafe`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    blocks: usize,
    functions: usize,
    /// Traits too.
    impls: usize,
}

/// Counts `unsafe` in a Rust text. Types of unsafe functions do not count: they need trust only where they
/// are called.
fn count(text: &str) -> Result<Count, String> {
    let mut count = Count::default();
    let tokens = tokens(text);
    for (at, _) in tokens
        .iter()
        .enumerate()
        .filter(|(_, t)| **t == Token::Word("unsafe"))
    {
        let mut after = tokens[at + 1..].iter().filter(|t| **t != Token::Word("extern"));
        match (after.next(), after.next()) {
            (Some(Token::Mark('{')), _) => count.blocks += 1,
            (Some(Token::Word("fn")), Some(Token::Mark('('))) => {}
            (Some(Token::Word("fn")), _) => count.functions += 1,
            (Some(Token::Word("impl" | "trait")), _) => count.impls += 1,
            (next, _) => return Err(format!("this test does not know `unsafe` before {next:?}")),
        }
    }
    Ok(count)
}

/// Every Rust file below `folder` that has `unsafe`, with its text.
fn files(folder: &Path, found: &mut BTreeMap<String, (Count, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let count = count(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
            if count != Count::default() {
                found.insert(name, (count, text));
            }
        }
    }
}

/// The reason that the page gives for each file.
fn reasons(page: &str) -> BTreeMap<&str, &str> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `src/") || line.starts_with("| `python/"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 7, "five cells: {row}");
        (cells[1].trim_matches('`'), cells[5])
    })
    .collect()
}

/// What stands for a reason that is not written yet.
const ASKED: &str = "WHY IS IT NEEDED?";

/// The table as it should be.
fn table(files: &BTreeMap<String, (Count, String)>, reasons: &BTreeMap<&str, &str>) -> String {
    let mut table = HEAD.to_owned();
    let mut sum = Count::default();
    for (name, (count, _)) in files {
        let why = reasons.get(name.as_str()).unwrap_or(&ASKED);
        let Count {
            blocks,
            functions,
            impls,
        } = *count;
        writeln!(table, "| `{name}` | {blocks} | {functions} | {impls} | {why} |").unwrap();
        sum.blocks += blocks;
        sum.functions += functions;
        sum.impls += impls;
    }
    let (blocks, functions, impls) = (sum.blocks, sum.functions, sum.impls);
    writeln!(table, "| all | {blocks} | {functions} | {impls} | |").unwrap();
    table
}

#[test]
fn every_file_with_unsafe_is_in_the_table_and_in_the_folder_for_it() {
    let mut found = BTreeMap::new();
    for folder in ["python/src", "src"] {
        files(Path::new(folder), &mut found);
    }
    assert!(!found.is_empty(), "the test reads the wrong folder");
    for (name, (_, text)) in &found {
        assert!(
            FOLDERS.iter().any(|(folder, _)| name.starts_with(folder)),
            "{name} has `unsafe`; only {FOLDERS:?} may"
        );
        let words = tokens(text);
        for (folder, library) in FOLDERS {
            let calls = library.is_some_and(|library| words.contains(&Token::Word(library)));
            assert!(
                !calls || name.starts_with(folder),
                "{name} has `unsafe` and {library:?}, which belongs to {folder}"
            );
        }
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let reasons = reasons(&page);
    let table = table(&found, &reasons);
    let is_explained = reasons.values().all(|why| why.len() > 8 && *why != ASKED);
    assert!(
        page.contains(&table) && reasons.len() == found.len() && is_explained,
        "{PAGE} should have this table, with a reason in every row:\n\n{table}"
    );
}

#[test]
fn words_in_comments_and_strings_do_not_count() {
    let text = r####"
        // unsafe {
        /* unsafe { /* unsafe impl */ unsafe fn a() */
        const A: &str = "unsafe { \" unsafe {"; const B: &[u8] = br##"" unsafe { "# unsafe {"##;
        const C: (char, char, u8) = ('"', '\'', b'"'); fn of<'a>(_: &'a str) {} // '"
        type Call = unsafe extern "C" fn(u8); #![allow(unsafe_code)] let unsafely = 1;
        unsafe extern "C" fn d() { unsafe { e() } } unsafe impl Send for F {} pub unsafe trait G {}
        pub(super) unsafe fn h() {} const I: &CStr = cr"unsafe {"; const { unsafe /* here */ { j() } }
    "####;
    let expected = Count {
        blocks: 2,
        functions: 2,
        impls: 2,
    };
    assert_eq!(count(text), Ok(expected));
    assert!(count("unsafe extern \"C\" { fn a(); }").is_ok_and(|count| count.blocks == 1));
    assert!(count("#[unsafe(no_mangle)]").is_err());
}
