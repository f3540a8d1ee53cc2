//! Colours by meaning. Drawings hold placeholders; the page's style sheet replaces each by the colour of the
//! reader's theme.

use plotters::style::RGBColor;

/// The meaning of a mark on a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report::present::page) enum Ink {
    /// Titles and labels.
    Text,
    /// Less prominent labels.
    Muted,
    /// Lines behind the data.
    Grid,
    /// Text on a filled mark.
    OnFill,
    /// Lines drawn across the data: limits and percentiles.
    Limit,
    Upload,
    Kernel,
    Download,
    /// Transfer time that overlaps other work.
    Hidden,
    Wall,
    Busy,
    NoInput,
    NoRoom,
    /// The nth of several curves.
    Series(usize),
}

/// How many curves have a colour and a shape of their own.
pub(super) const SERIES: usize = 8;

/// Each ink's name in the style sheet and its colours on light and on dark ground. The data's are Okabe and
/// Ito's, which people with any kind of colour vision tell apart, made darker for light ground or lighter for
/// dark where the contrast would be below 3 to 1.
const INKS: [(Ink, &str, &str, &str); 13 + SERIES] = [
    (Ink::Text, "text", "#1b1f24", "#e8eaed"),
    (Ink::Muted, "muted", "#59626d", "#a3abb5"),
    (Ink::Grid, "grid", "#d9dde2", "#3a4048"),
    (Ink::OnFill, "on-fill", "#0b0d10", "#0b0d10"),
    (Ink::Limit, "limit", "#b3261e", "#ff8a80"),
    (Ink::Upload, "upload", "#3f9fdc", "#56b4e9"),
    (Ink::Kernel, "kernel", "#dd8f00", "#e69f00"),
    (Ink::Download, "download", "#1fa57c", "#2fc59a"),
    (Ink::Hidden, "hidden", "#c4cad2", "#7c8794"),
    (Ink::Wall, "wall", "#a58bd0", "#b9a3e3"),
    (Ink::Busy, "busy", "#3f9fdc", "#56b4e9"),
    (Ink::NoInput, "no-input", "#dd8f00", "#e69f00"),
    (Ink::NoRoom, "no-room", "#cc79a7", "#cc79a7"),
    (Ink::Series(0), "series-0", "#0072b2", "#56b4e9"),
    (Ink::Series(1), "series-1", "#d55e00", "#f0803c"),
    (Ink::Series(2), "series-2", "#008561", "#2fc59a"),
    (Ink::Series(3), "series-3", "#b0588b", "#dd92bb"),
    (Ink::Series(4), "series-4", "#8a6d00", "#f0e442"),
    (Ink::Series(5), "series-5", "#882255", "#cc6a69"),
    (Ink::Series(6), "series-6", "#332288", "#a79bf0"),
    (Ink::Series(7), "series-7", "#4d565f", "#c3cad2"),
];

impl Ink {
    /// Curves beyond the last colour begin again.
    fn index(self) -> usize {
        let ink = match self {
            Ink::Series(n) => Ink::Series(n % SERIES),
            ink => ink,
        };
        INKS.iter().position(|(i, ..)| *i == ink).unwrap_or(0)
    }

    /// The placeholder in the drawing.
    pub(super) fn colour(self) -> RGBColor {
        RGBColor(0, 0, self.index() as u8 + 1)
    }

    /// The class that colours text of the page itself.
    pub(in crate::report::present::page) fn class(self) -> String {
        format!("ink-{}", INKS[self.index()].1)
    }
}

/// The part of the style sheet that gives the inks their colours.
pub(in crate::report::present::page) fn style() -> String {
    let mut css = String::new();
    let theme = |pick: fn(&(Ink, &str, &'static str, &'static str)) -> &'static str| {
        let colours: Vec<String> = INKS
            .iter()
            .map(|ink| format!("--{}:{};", ink.1, pick(ink)))
            .collect();
        colours.concat()
    };
    css.push_str(&format!(":root{{{}}}\n", theme(|ink| ink.2)));
    css.push_str(&format!(
        "@media (prefers-color-scheme:dark){{:root{{{}}}}}\n",
        theme(|ink| ink.3)
    ));
    for (ink, name, ..) in INKS {
        let RGBColor(r, g, b) = ink.colour();
        let stand_in = format!("#{r:02X}{g:02X}{b:02X}");
        css.push_str(&format!(
            "svg [fill=\"{stand_in}\"]{{fill:var(--{name})}}svg \
             [stroke=\"{stand_in}\"]{{stroke:var(--{name})}}.ink-{name}{{color:var(--{name})}}\n"
        ));
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let v = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0)) / 255.0;
            if v <= 0.04045 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_marks_stand_out_in_both_themes() {
        for (ink, name, light, dark) in INKS {
            let least = match ink {
                Ink::Text | Ink::Muted => 4.5,
                Ink::Grid | Ink::OnFill | Ink::Hidden => continue,
                Ink::Upload
                | Ink::Kernel
                | Ink::Download
                | Ink::Wall
                | Ink::Busy
                | Ink::NoInput
                | Ink::NoRoom => 2.5,
                _ => 3.0,
            };
            for (colour, ground) in [
                (light, crate::report::present::page::GROUND.0),
                (dark, crate::report::present::page::GROUND.1),
            ] {
                let contrast = contrast(colour, ground);
                assert!(contrast >= least, "{name} on {ground}: {contrast:.2}");
            }
            if matches!(
                ink,
                Ink::Upload
                    | Ink::Kernel
                    | Ink::Download
                    | Ink::Wall
                    | Ink::Busy
                    | Ink::NoInput
                    | Ink::NoRoom
            ) {
                assert!(
                    contrast(light, "#0b0d10") >= 4.5 && contrast(dark, "#0b0d10") >= 4.5,
                    "text on {name}"
                );
            }
        }
    }

    #[test]
    fn each_ink_has_a_stand_in_of_its_own() {
        let mut stand_ins: Vec<_> = INKS.iter().map(|(ink, ..)| ink.colour().2).collect();
        stand_ins.dedup();
        assert_eq!(stand_ins.len(), INKS.len());
        assert_eq!(Ink::Series(SERIES + 1).colour(), Ink::Series(1).colour());
    }
}
