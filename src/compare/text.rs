//! The outcome of a comparison as text for people.

use super::{Figures, Summary};
use crate::report::table::Table;
use std::fmt;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, frames) = (&self.a.name, &self.b.name, self.frames);
        let so_far = if self.complete { "" } else { " so far" };
        match (self.equal, self.frames_differing) {
            (true, _) => writeln!(f, "{a} and {b} are equal{so_far}: {}", count(frames, "frame")),
            (false, differing) if differing > 0 && !self.components.is_empty() => {
                writeln!(
                    f,
                    "{a} and {b} differ in {differing} of {}",
                    count(frames, "frame")
                )
            }
            (false, _) => writeln!(f, "{a} and {b} differ"),
        }?;
        for mismatch in &self.mismatches {
            writeln!(f, "{mismatch}")?;
        }
        if let Some(first) = &self.first {
            writeln!(
                f,
                "first difference: frame {}, {} at ({}, {}), {} and {}",
                first.frame, first.component, first.x, first.y, first.a, first.b
            )?;
            if let Some(worst) = self.worst.filter(|_| frames > 1) {
                writeln!(
                    f,
                    "worst frame: {}, PSNR {:.2}, SSIM {:.6}",
                    worst.frame, worst.psnr, worst.ssim
                )?;
            }
            self.table().fmt(f)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

impl Summary {
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "component",
            "samples differ",
            "share",
            "largest",
            "mean",
            "PSNR",
            "SSIM",
        ]);
        for component in &self.components {
            table.row(row(component.component, &component.figures));
        }
        if let Some(all) = self.all.as_ref().filter(|_| self.components.len() > 1) {
            table.row(row("all", all));
        }
        table
    }
}

fn row(name: &str, figures: &Figures) -> Vec<String> {
    let share = figures.samples_differing as f64 / figures.samples.max(1) as f64;
    vec![
        name.to_owned(),
        figures.samples_differing.to_string(),
        format!("{:.4}%", share * 100.0),
        figures.largest.to_string(),
        format!("{:.4}", figures.mean),
        figures
            .psnr
            .map_or_else(|| "inf".to_owned(), |psnr| format!("{psnr:.2}")),
        format!("{:.6}", figures.ssim),
    ]
}

fn count(n: u64, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}
