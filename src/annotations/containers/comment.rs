//! Texts as lines of a comment, in heads of lines (PNM, Radiance HDR).

/// A text as the lines of a comment: as in JPEG, a name other than Comment stands in front.
pub(super) fn lines_of(name: &str, text: &str) -> String {
    match name {
        "Comment" => text.to_owned(),
        name => format!("{name}: {text}"),
    }
}

/// True for a line that readers give back as it is: they drop space at its ends, and lines without a word.
pub(super) fn is_line(line: &str) -> bool {
    !line.is_empty() && line.trim() == line && !line.chars().any(|c| c.is_control() && c != '\t')
}
