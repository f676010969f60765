//! What is wrong with a program, and where.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{Source, Span};

/// One fault of a program, or one thing to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the program can be run in spite of it.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where, and what was expected or found there.
    pub primary: Label,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Whether a program can be run in spite of what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can, but is probably not what was meant.
    Warning,
    /// It cannot.
    Error,
}

/// A place in the source and what to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What to say; may be empty.
    pub text: String,
}

impl Diagnostic {
    /// An error at `span`: `message` in general, `text` at the place.
    pub fn error(span: Span, message: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message.into(), text.into())
    }

    /// A warning at `span`: `message` in general, `text` at the place.
    pub fn warning(span: Span, message: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message.into(), text.into())
    }

    const fn new(severity: Severity, span: Span, message: String, text: String) -> Self {
        let primary = Label { span, text };
        Self { severity, message, primary, secondary: Vec::new(), help: None }
    }

    /// With another place that explains it.
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// With what to do about it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// The line of the place, counted from 1.
    pub fn line(&self, source: &Source) -> u32 {
        source.line(self.primary.span.start)
    }
}

/// `text` between backquotes, short enough and plain enough for a message.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", short(text))
}

/// `text`, short enough and plain enough for a message.
pub(crate) fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    let mut shown: String = text.chars().take(CHARACTERS_MAX).flat_map(plain).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A character as a message may show it: what a terminal would obey is spelled out.
fn plain(character: char) -> impl Iterator<Item = char> {
    let is_plain = !character.is_control() && !is_invisible(character);
    let escaped = (!is_plain).then(|| character.escape_unicode());
    escaped.into_iter().flatten().chain(is_plain.then_some(character))
}

/// Whether a character has no shape of its own, or turns the direction of writing.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{a0}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

// Diagnostics drawn as rustc draws them.

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
