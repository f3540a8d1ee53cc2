//! The page itself: one HTML file that needs no network and no script. It is well-formed XML too, so that any
//! tool can read it.

use super::PageError;
use super::escape::escape;
use super::plots::chart::Width;
use super::plots::palette::{self, Ink};

/// The mark of a legend entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// A filled mark.
    Fill(Ink),
    /// A curve with this mark at its points.
    Mark(Ink, char),
}

/// A page that is being written.
pub(crate) struct Document {
    html: String,
    /// The place of the list of contents, if there is one, and its entries: figures by their names.
    contents_at: Option<usize>,
    contents: Vec<(String, String)>,
}

impl Document {
    /// A page with this title.
    pub(crate) fn new(title: &str) -> Document {
        let title = escape(title);
        let ground = format!(
            ":root{{--ground:{}}}@media (prefers-color-scheme:dark){{:root{{--ground:{}}}}}",
            super::GROUND.0,
            super::GROUND.1
        );
        Document {
            html: format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
                 <meta name=\"color-scheme\" content=\"light dark\"/>\n\
                 <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                 style-src 'unsafe-inline'\"/>\n\
                 <meta name=\"generator\" content=\"framepipe {}\"/>\n\
                 <title>{title}</title>\n<style>\n{}{}{ground}\n</style>\n</head>\n\
                 <body>\n<main>\n<h1>{title}</h1>\n",
                env!("CARGO_PKG_VERSION"),
                include_str!("style.css"),
                palette::style(),
            ),
            contents_at: None,
            contents: Vec::new(),
        }
    }

    /// A list of all figures, here.
    pub(crate) fn list_contents(&mut self) {
        self.contents_at = Some(self.html.len());
    }

    /// A heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.html.push_str(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// A paragraph of this class.
    pub(crate) fn paragraph(&mut self, class: &str, text: &str) {
        self.html
            .push_str(&format!("<p class=\"{class}\">{}</p>\n", escape(text)));
    }

    /// Figures in large letters, each with a caption.
    pub(crate) fn facts(&mut self, facts: &[(String, &str)]) {
        self.html.push_str("<ul class=\"facts\">\n");
        for (value, what) in facts {
            self.html.push_str(&format!(
                "<li><b>{}</b><span>{}</span></li>\n",
                escape(value),
                escape(what)
            ));
        }
        self.html.push_str("</ul>\n");
    }

    /// A plot under its heading, drawn once for each width.
    pub(super) fn figure(
        &mut self,
        id: &str,
        title: &str,
        caption: &str,
        legend: &[(Key, String)],
        draw: impl Fn(Width) -> Result<String, PageError>,
    ) -> Result<(), PageError> {
        self.heading(title);
        let title = escape(title);
        self.contents.push((id.to_owned(), title.clone()));
        self.html.push_str(&format!(
            "<figure id=\"{id}\">\n<figcaption>{}</figcaption>\n",
            escape(caption)
        ));
        if !legend.is_empty() {
            self.html.push_str("<ul class=\"legend\">\n");
            for (key, text) in legend {
                let mark = match key {
                    Key::Fill(ink) => format!("<span class=\"{}\"></span>", ink.class()),
                    Key::Mark(ink, mark) => format!("<i class=\"{}\">{mark}</i>", ink.class()),
                };
                self.html.push_str(&format!("<li>{mark}{}</li>\n", escape(text)));
            }
            self.html.push_str("</ul>\n");
        }
        for (width, class) in [(Width::Wide, "wide"), (Width::Narrow, "narrow")] {
            let svg = draw(width)?;
            // The style sheet sets the size; the view box keeps the proportions.
            let svg = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1);
            self.html
                .push_str(&format!("<div class=\"{class}\">\n{svg}</div>\n"));
        }
        self.html.push_str("</figure>\n");
        Ok(())
    }

    /// A table of figures: the first column to the left, the rest to the right.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.html
            .push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
        for cell in head {
            self.html.push_str(&format!("<th>{}</th>", escape(cell)));
        }
        self.html.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.html.push_str("<tr>");
            for cell in row {
                self.html.push_str(&format!("<td>{}</td>", escape(cell)));
            }
            self.html.push_str("</tr>\n");
        }
        self.html.push_str("</tbody></table></div>\n");
    }

    /// A table of names and texts.
    pub(crate) fn words(&mut self, rows: &[(&str, String)]) {
        self.html.push_str("<table class=\"words\"><tbody>\n");
        for (what, text) in rows {
            self.html.push_str(&format!(
                "<tr><th>{}</th><td>{}</td></tr>\n",
                escape(what),
                escape(text)
            ));
        }
        self.html.push_str("</tbody></table>\n");
    }

    /// The whole page.
    pub(crate) fn finish(mut self) -> String {
        if let Some(at) = self.contents_at.filter(|_| self.contents.len() > 1) {
            let link = |(id, title): &(String, String)| format!("<li><a href=\"#{id}\">{title}</a></li>\n");
            let links: String = self.contents.iter().map(link).collect();
            let list = format!("<nav><ul class=\"contents\">\n{links}</ul></nav>\n");
            self.html.insert_str(at, &list);
        }
        self.html.push_str("</main>\n</body>\n</html>\n");
        self.html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_html_is_escaped() {
        assert_eq!(
            escape("<b>&\"' \u{1b}[0m é"),
            "&lt;b&gt;&amp;&quot;&#39; \u{fffd}[0m é"
        );
    }
}
