//! Pictures in a terminal: which terminals show them is known by their environment, and they are handed over
//! in escape sequences that hold a PNG file in base64, or in sixels (`sixel.rs`).
//!
//! ```text
//!  kitty's protocol   ESC _ G a=T,f=100,q=2,m=1 ; 4096 characters ESC \      the first piece
//!                     ESC _ G m=1               ; 4096 characters ESC \
//!                     ESC _ G m=0               ; the rest        ESC \
//!  iTerm2's           ESC ] 1337 ; File = inline=1;size=BYTES : all of it BEL
//! ```

use std::fmt::Write;

/// Characters of base64 in one piece of kitty's protocol.
const PIECE: usize = 4096;

/// Pixels of a terminal's cell, for guessing the picture's size in cells.
const CELL: (usize, usize) = (8, 16);

/// Konsole's first version with kitty's protocol, 22.04, as it writes it.
const KONSOLE: u32 = 220_400;

/// How a terminal takes pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Kitty,
    ITerm2,
    Sixel,
}

/// Terminals with sixels by the beginnings of their TERM.
const SIXEL_TERMS: [&str; 4] = ["foot", "mlterm", "contour", "yaft"];

impl Protocol {
    /// The protocol of the terminal that these environment variables describe; `None` if it is not known to
    /// show pictures.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
        let text = |name: &str| variable(name).unwrap_or_default();
        let term = text("TERM");
        // They do not pass pictures on, and leave the variables of the terminal around them.
        if ["screen", "tmux"].iter().any(|name| term.starts_with(name)) || variable("TMUX").is_some() {
            return None;
        }
        if ["xterm-kitty", "xterm-ghostty"].contains(&term.as_str()) {
            return Some(Protocol::Kitty);
        }
        if SIXEL_TERMS.iter().any(|name| term.starts_with(name)) || term.contains("sixel") {
            return Some(Protocol::Sixel);
        }
        match text("TERM_PROGRAM").as_str() {
            "ghostty" => Some(Protocol::Kitty),
            "iTerm.app" | "WezTerm" | "mintty" => Some(Protocol::ITerm2),
            "contour" | "mlterm" => Some(Protocol::Sixel),
            "" if variable("KITTY_WINDOW_ID").is_some() => Some(Protocol::Kitty),
            "" if text("KONSOLE_VERSION")
                .parse()
                .is_ok_and(|version: u32| version >= KONSOLE) =>
            {
                Some(Protocol::Kitty)
            }
            // The variable that iTerm2 passes on to other machines.
            "" if text("LC_TERMINAL") == "iTerm2" => Some(Protocol::ITerm2),
            // Windows Terminal.
            "" if variable("WT_SESSION").is_some() => Some(Protocol::Sixel),
            _ => None,
        }
    }
}

/// A PNG file for a terminal with kitty's protocol, drawn `columns` wide, or as many pixels as it has.
pub(super) fn kitty(png: &[u8], columns: Option<usize>) -> String {
    let text = base64(png);
    // Shown at once, PNG, and no answer on our standard input.
    let mut keys = "a=T,f=100,q=2,".to_owned();
    if let Some(columns) = columns {
        // Writing to a string does not fail.
        let _ = write!(keys, "c={columns},");
    }
    let mut sequence = String::new();
    let mut rest = text.as_str();
    loop {
        let (piece, more) = rest.split_at(rest.len().min(PIECE));
        let is_more = u8::from(!more.is_empty());
        let _ = write!(sequence, "\x1b_G{keys}m={is_more};{piece}\x1b\\");
        if more.is_empty() {
            return sequence + "\n";
        }
        keys.clear();
        rest = more;
    }
}

/// A PNG file for a terminal with iTerm2's protocol, drawn `columns` wide, or as many pixels as it has.
pub(super) fn iterm2(png: &[u8], columns: Option<usize>) -> String {
    let text = base64(png);
    let width = columns.map_or_else(String::new, |columns| format!(";width={columns}"));
    format!("\x1b]1337;File=inline=1;size={}{width}:{text}\x07\n", png.len())
}

/// Pixels for a picture in a terminal of `columns` and `rows`.
pub(super) fn room((columns, rows): (usize, usize)) -> (usize, usize) {
    // Two rows are left for the prompt and the line before.
    (columns.max(1) * CELL.0, rows.saturating_sub(2).max(1) * CELL.1)
}

/// Columns across which to draw a picture of `width` by `height` pixels in a terminal of `columns` and
/// `rows`, if it does not fit at its own size. Cells are assumed to be twice as high as wide.
pub(super) fn columns((width, height): (usize, usize), (columns, rows): (usize, usize)) -> Option<usize> {
    let (across, down) = room((columns, rows));
    if width <= across && height <= down {
        return None;
    }
    let rows = down / CELL.1;
    Some((2 * rows * width / height).clamp(1, columns.max(1)))
}

/// Base64 with the usual alphabet and padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            // A remainder fills one more character.
            if place <= group.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a text in base64, by a table of values.
    fn decoded(text: &str) -> Vec<u8> {
        let value = |c: u8| match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other}"),
        };
        assert_eq!(text.len() % 4, 0);
        let digits = text.trim_end_matches('=').bytes().map(value);
        let bits: String = digits.map(|digit| format!("{digit:06b}")).collect();
        let bytes = bits.as_bytes().chunks_exact(8);
        bytes
            .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    #[test]
    fn base64_as_in_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&base64(&all)), all);
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }

    #[test]
    fn kitty_gets_pieces_of_4096_characters() {
        for (bytes, pieces) in [(1, 1), (3072, 1), (3073, 2), (6144, 2), (10_000, 4)] {
            let png: Vec<u8> = (0..bytes).map(|n| (n * 7 % 251) as u8).collect();
            let sequence = kitty(&png, Some(80));
            let parts: Vec<&str> = sequence
                .strip_suffix("\x1b\\\n")
                .unwrap()
                .split("\x1b\\")
                .collect();
            assert_eq!(parts.len(), pieces, "{bytes}");
            let mut text = String::new();
            for (number, part) in parts.iter().enumerate() {
                let (keys, piece) = part.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap();
                let first = if number == 0 { "a=T,f=100,q=2,c=80," } else { "" };
                let is_more = u8::from(number + 1 < pieces);
                assert_eq!(keys, format!("{first}m={is_more}"));
                assert!(piece.len() == 4096 || is_more == 0 && piece.len() <= 4096);
                text.push_str(piece);
            }
            assert_eq!(decoded(&text), png);
        }
        let natural = kitty(b"f", None);
        assert_eq!(natural, "\x1b_Ga=T,f=100,q=2,m=0;Zg==\x1b\\\n");
    }

    #[test]
    fn iterm2_gets_one_sequence() {
        assert_eq!(
            iterm2(b"fooba", None),
            "\x1b]1337;File=inline=1;size=5:Zm9vYmE=\x07\n"
        );
        assert_eq!(
            iterm2(b"f", Some(72)),
            "\x1b]1337;File=inline=1;size=1;width=72:Zg==\x07\n"
        );
    }

    #[test]
    fn terminals_are_known_by_their_environment() {
        use Protocol::{ITerm2, Kitty, Sixel};
        let of = |variables: &[(&str, &str)]| {
            Protocol::of(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let xterm = ("TERM", "xterm-256color");
        for (variables, expected) in [
            (&[("TERM", "xterm-kitty")][..], Some(Kitty)),
            (&[("TERM", "xterm-ghostty")], Some(Kitty)),
            (&[xterm, ("KITTY_WINDOW_ID", "1")], Some(Kitty)),
            (&[xterm, ("TERM_PROGRAM", "ghostty")], Some(Kitty)),
            (&[xterm, ("KONSOLE_VERSION", "230805")], Some(Kitty)),
            (&[xterm, ("KONSOLE_VERSION", "211203")], None),
            (&[xterm, ("TERM_PROGRAM", "iTerm.app")], Some(ITerm2)),
            (&[xterm, ("TERM_PROGRAM", "WezTerm")], Some(ITerm2)),
            (&[xterm, ("TERM_PROGRAM", "mintty")], Some(ITerm2)),
            (&[xterm, ("LC_TERMINAL", "iTerm2")], Some(ITerm2)),
            (&[xterm, ("TERM_PROGRAM", "Apple_Terminal")], None),
            (&[("TERM", "foot")], Some(Sixel)),
            (&[("TERM", "foot-extra"), ("KITTY_WINDOW_ID", "1")], Some(Sixel)),
            (&[("TERM", "mlterm-256color")], Some(Sixel)),
            (&[("TERM", "contour")], Some(Sixel)),
            (&[("TERM", "yaft-256color")], Some(Sixel)),
            (&[("TERM", "xterm-sixel")], Some(Sixel)),
            (&[xterm, ("TERM_PROGRAM", "contour")], Some(Sixel)),
            (&[xterm, ("WT_SESSION", "6f2b")], Some(Sixel)),
            // Started from Windows Terminal, and another terminal itself.
            (&[xterm, ("TERM_PROGRAM", "vscode"), ("WT_SESSION", "6f2b")], None),
            (&[("TERM", "xterm-kitty"), ("WT_SESSION", "6f2b")], Some(Kitty)),
            (&[("TERM", "tmux-256color"), ("WT_SESSION", "6f2b")], None),
            (&[("TERM", "alacritty")], None),
            // Started from kitty, and no kitty itself.
            (
                &[xterm, ("TERM_PROGRAM", "vscode"), ("KITTY_WINDOW_ID", "1")],
                None,
            ),
            (&[("TERM", "screen-256color"), ("KITTY_WINDOW_ID", "1")], None),
            (&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "iTerm.app")], None),
            (
                &[
                    xterm,
                    ("TMUX", "/tmp/tmux-0/default,1,0"),
                    ("LC_TERMINAL", "iTerm2"),
                ],
                None,
            ),
            (&[xterm], None),
            (&[], None),
        ] {
            assert_eq!(of(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn large_pictures_are_made_to_fit() {
        assert_eq!(columns((640, 360), (80, 25)), None);
        // The width limits, and the height.
        assert_eq!(columns((1920, 1080), (80, 40)), Some(80));
        assert_eq!(columns((1080, 1920), (200, 52)), Some(56));
        assert_eq!(columns((4000, 1), (0, 0)), Some(1));
        assert_eq!(columns((1, 4000), (80, 25)), Some(1));
    }
}
