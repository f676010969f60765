//! Diagnostics drawn as rustc draws them.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Source, Span};

/// With escape sequences for colours, or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// Text and the escape sequences of a terminal.
    Colour,
}

impl Diagnostic {
    /// The diagnostic with the lines of `source` that it speaks of, without a line break at the
    /// end.
    #[must_use]
    pub fn render(&self, source: &Source, style: Style) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let primary = AnnotationKind::Primary.span(range(source, self.primary.span));
        let mut snippet = Snippet::source(source.text())
            .path(source.name())
            .annotation(primary.label(label(&self.primary.text)));
        for other in &self.secondary {
            let annotation = AnnotationKind::Context.span(range(source, other.span));
            snippet = snippet.annotation(annotation.label(label(&other.text)));
        }
        let mut group = Group::with_title(level.primary_title(&self.message)).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Colour => Renderer::styled(),
        };
        renderer.render(&[group])
    }
}

fn label(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// `span` within the bounds of the text.
fn range(source: &Source, span: Span) -> std::ops::Range<usize> {
    let end = (span.end as usize).min(source.text().len());
    (span.start as usize).min(end)..end
}
