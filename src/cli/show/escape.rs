//! Text from files and file names, made safe to show on a terminal or in a log.

use std::borrow::Cow;
use std::fmt::Write;

/// True for characters that steer a terminal, break a line, or turn the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
}

/// `text` on one line, with invisible characters written as Rust escapes.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a string does not fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Has [`line`] go over texts that become parts of a text of several lines.
pub(crate) fn each<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    for text in texts {
        if let Cow::Owned(escaped) = line(text) {
            *text = escaped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_left_and_nothing_else_is_changed() {
        assert_eq!(
            line("a.mp4: it is grün, 1\u{a0}µm 日本"),
            "a.mp4: it is grün, 1\u{a0}µm 日本"
        );
        assert_eq!(
            line("x\nerror: y\r\u{1b}[31m\u{7}"),
            "x\\nerror: y\\r\\u{1b}[31m\\u{7}"
        );
        assert_eq!(line("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        let mut texts = ["a\nb".to_owned(), "c".to_owned()];
        each(&mut texts);
        assert_eq!(texts, ["a\\nb", "c"]);
        for code in 0..0x3000 {
            if let Some(c) = char::from_u32(code) {
                let text = format!("a{c}b");
                assert!(!line(&text).chars().any(is_hidden));
            }
        }
    }
}
