//! The front end as its users see it: programs, messages, layout.

mod bad;
mod constructs;
mod dump;
mod generate;
mod layout;
mod manners;
mod properties;

use reweave_lang::{Program, Severity, Source, Style, check};

/// The program `text`, which has no fault.
#[track_caller]
pub(crate) fn program(text: &str) -> Program {
    let source = Source::new("a.rw", text);
    let checked = check(&source);
    let errors: Vec<String> = checked
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| found.render(&source, Style::Plain))
        .collect();
    checked.program.unwrap_or_else(|| panic!("{text}\n{}", errors.join("\n")))
}
