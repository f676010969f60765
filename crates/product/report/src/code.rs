//! Code beside findings: a few lines around each event at fault, the line itself marked.
//!
//! Lines that are close together are shown as one piece, each mark with who is there. What cannot
//! be read is said once a file, and code that was changed since is shown with a word of doubt.

use std::io::{self, Write};

use anstyle::Style;
use reweave_base::FxHashSet;

use crate::shown::{LINE_MAX, clipped, shown};
use crate::sources::{Place, Sources};
use crate::text::{BAD, DIM, WARN};

/// Marks at most so many lines apart are shown in one piece.
const APART_MAX: u32 = 8;

/// How many columns a tab takes at most.
const TAB_WIDTH: usize = 4;

/// A line that matters, and who is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<'a> {
    /// Who; shown where several marks share a piece.
    pub(crate) who: &'a str,
    /// Where.
    pub(crate) location: &'a str,
}

/// What was said of files so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    files: FxHashSet<String>,
    has_hint: bool,
}

/// Which of `marks` are shown in one piece, by their positions; each piece in order.
pub(crate) fn pieces(marks: &[Mark<'_>]) -> Vec<Vec<usize>> {
    let place = |at: usize| Place::new(marks[at].location);
    let mut sorted: Vec<usize> = (0..marks.len()).collect();
    sorted.sort_by_key(|&at| place(at).map(|place| (place.file, place.line)));
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    for at in sorted {
        let is_close = |last: usize| match (place(last), place(at)) {
            (Some(last), Some(this)) => {
                last.file == this.file && this.line - last.line <= APART_MAX
            }
            _ => false,
        };
        match pieces.last_mut().filter(|piece| piece.last().is_some_and(|&last| is_close(last))) {
            Some(piece) => piece.push(at),
            None => pieces.push(vec![at]),
        }
    }
    for piece in &mut pieces {
        piece.sort_unstable();
    }
    pieces
}

/// Writes the code of `piece`, some of `marks`, with up to `around` lines before and after them.
pub(crate) fn write_piece(
    out: &mut dyn Write,
    sources: &Sources,
    marks: &[Mark<'_>],
    piece: &[usize],
    around: u32,
    said: &mut Said,
) -> io::Result<()> {
    let places = piece.iter().filter_map(|&at| Some((at, Place::new(marks[at].location)?)));
    let places: Vec<(usize, Place<'_>)> = places.collect();
    let Some(&(at, first)) = places.iter().min_by_key(|(_, place)| place.line) else {
        return Ok(());
    };
    let last = places.iter().map(|(_, place)| place.line).max().unwrap_or(first.line);
    let reach = last - first.line + around;
    let Some(excerpt) = sources.excerpt(marks[at].location, reach) else {
        return write_absence(out, sources, marks[at].location, said);
    };
    let numbered = (excerpt.first..).zip(&excerpt.lines);
    let wanted = first.line.saturating_sub(around)..=last.saturating_add(around);
    let lines: Vec<(u32, String)> = numbered
        .filter(|(number, _)| wanted.contains(number))
        .map(|(number, line)| (number, spaced(line)))
        .collect();
    let who = |number: u32| {
        let at_line = places.iter().filter(|(_, place)| place.line == number);
        let mut who: Vec<String> = at_line.map(|&(at, _)| clipped(marks[at].who, 16)).collect();
        who.dedup();
        who.join(", ")
    };
    let who_width = match piece.len() {
        1 => 0,
        _ => lines.iter().map(|(number, _)| who(*number).chars().count()).max().unwrap_or(0),
    };
    let number_width = last.saturating_add(around).to_string().len();
    let indent = lines.iter().filter(|(_, line)| !line.is_empty());
    let indent =
        indent.map(|(_, line)| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0);
    for (number, line) in &lines {
        let is_marked = places.iter().any(|(_, place)| place.line == *number);
        let (mark, style) = if is_marked { (">", BAD) } else { (" ", Style::new()) };
        let who =
            if who_width > 0 { format!("{:who_width$} ", who(*number)) } else { String::new() };
        let line = clipped(line.get(indent..).unwrap_or(""), LINE_MAX - 12);
        let text = format!("{style}{who}{mark}{style:#} {DIM}{number:>number_width$} |{DIM:#}");
        let line = if line.is_empty() { line } else { format!(" {style}{line}{style:#}") };
        writeln!(out, "      {text}{line}")?;
    }
    match excerpt.doubt.filter(|_| said.files.insert(first.file.to_owned())) {
        Some(doubt) => writeln!(out, "      {WARN}{}: {doubt}{WARN:#}", shown(first.file)),
        None => Ok(()),
    }
}

/// Says why there is no code to show, once a file.
fn write_absence(
    out: &mut dyn Write,
    sources: &Sources,
    location: &str,
    said: &mut Said,
) -> io::Result<()> {
    let Some((place, reason)) = Place::new(location).zip(sources.absence(location)) else {
        return Ok(());
    };
    if !said.files.insert(place.file.to_owned()) {
        return Ok(());
    }
    let hint = match std::mem::replace(&mut said.has_hint, true) {
        false => "; `--source DIR` says where the code is",
        true => "",
    };
    writeln!(out, "      {DIM}no code: {}{hint}{DIM:#}", shown(&reason))
}

/// `line` with its tabs as spaces, nothing at its end, and everything else shown.
fn spaced(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut column = 0;
    for letter in line.trim_end().chars() {
        match letter {
            '\t' => {
                let width = TAB_WIDTH - column % TAB_WIDTH;
                out.extend(std::iter::repeat_n(' ', width));
                column += width;
            }
            letter => {
                out.push(letter);
                column += 1;
            }
        }
    }
    shown(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(files: &[(&str, &[u8])], marks: &[(&str, &str)], expected: &Expect) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let sources = Sources::new(vec![folder.path().to_owned()], None);
        let marks: Vec<Mark<'_>> =
            marks.iter().map(|&(who, location)| Mark { who, location }).collect();
        // A line without an indent, since a snapshot forgets what all lines have.
        let (mut out, mut said) = (b"code\n".to_vec(), Said::default());
        for piece in pieces(&marks) {
            write_piece(&mut out, &sources, &marks, &piece, 1, &mut said).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        expected.assert_eq(&anstream::adapter::strip_str(&text).to_string());
    }

    #[test]
    fn lines_that_are_close_share_a_piece() {
        let code = b"int x;\nvoid f(void) {\n\tx = 1;\n\n\tx = 2;\n}\n";
        let marks = [("T1", "a.c:3"), ("T2", "a.c:5"), ("T3", "a.c:3")];
        check(
            &[("a.c", code)],
            &marks,
            &expect![[r#"
                code
                               2 | void f(void) {
                      T1, T3 > 3 |     x = 1;
                               4 |
                      T2     > 5 |     x = 2;
                               6 | }
            "#]],
        );
    }

    #[test]
    fn lines_that_are_far_apart_do_not() {
        let code = "line\n".repeat(40);
        let marks = [("T1", "a.c:3"), ("T2", "a.c:30")];
        check(
            &[("a.c", code.as_bytes())],
            &marks,
            &expect![[r#"
                code
                        2 | line
                      > 3 | line
                        4 | line
                        29 | line
                      > 30 | line
                        31 | line
            "#]],
        );
    }

    #[test]
    fn code_shows_what_it_holds_and_does_nothing() {
        let code = b"\x1b[2J\x07\n\xff\xe2\x80\xae<script>\n";
        check(
            &[("a.c", code)],
            &[("T1", "a.c:2")],
            &expect![[r#"
                code
                        1 | \u{1b}[2J\u{7}
                      > 2 | �\u{202e}<script>
            "#]],
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_once() {
        let marks = [("T1", "a.c:3"), ("T2", "a.c:40"), ("T1", "b.c:1"), ("T1", "17")];
        check(
            &[("a.c", b"one\n")],
            &marks,
            &expect![[r#"
                code
                      no code: `a.c` has only 1 line now; `--source DIR` says where the code is
                      no code: `b.c` was not found here
            "#]],
        );
    }
}
