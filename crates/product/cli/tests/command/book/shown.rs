//! Is what a page shows what was printed, and what should it show instead?
//!
//! Lines are compared without blanks at their ends. `[..]` stands for any text within a line, and
//! a line `...` for any number of lines. Where a page is brought up to date, lines that are still
//! right stay as they are written, and so does a `...` between two of them; new lines have
//! what differs from machine to machine taken out.

const ANY_TEXT: &str = "[..]";
const ANY_LINES: &str = "...";

/// Whether the lines `printed` are what `shown` says.
pub(super) fn agrees(shown: &[&str], printed: &[&str]) -> bool {
    // Which beginnings of what was printed the lines shown so far stand for.
    let mut reached = vec![false; printed.len() + 1];
    reached[0] = true;
    for line in shown {
        let mut next = vec![false; printed.len() + 1];
        for at in 0..=printed.len() {
            next[at] = if *line == ANY_LINES {
                reached[at] || at > 0 && next[at - 1]
            } else {
                at > 0 && reached[at - 1] && is_line(line, printed[at - 1])
            };
        }
        reached = next;
    }
    reached[printed.len()]
}

/// What a page that shows `shown` should show, now that `printed` was printed.
pub(super) fn updated(shown: &[&str], printed: &[&str]) -> Vec<String> {
    if agrees(shown, printed) {
        return shown.iter().map(|line| (*line).to_owned()).collect();
    }
    let mut lines = Vec::new();
    let (mut from_shown, mut from_printed) = (0, 0);
    let end = (shown.len(), printed.len());
    for (of_shown, of_printed) in common(shown, printed).into_iter().chain([end]) {
        if shown[from_shown..of_shown] == [ANY_LINES] {
            lines.push(ANY_LINES.to_owned());
        } else {
            lines.extend(printed[from_printed..of_printed].iter().map(|line| redacted(line)));
        }
        lines.extend(shown.get(of_shown).map(|line| (*line).to_owned()));
        (from_shown, from_printed) = (of_shown + 1, of_printed + 1);
    }
    lines.dedup_by(|next, line| next == line && line == ANY_LINES);
    lines
}

/// Whether `printed` is what the line `shown` stands for.
fn is_line(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (shown.trim_end(), printed.trim_end());
    let Some((start, mut pieces)) = shown.split_once(ANY_TEXT) else { return shown == printed };
    let Some(mut rest) = printed.strip_prefix(start) else { return false };
    while let Some((piece, others)) = pieces.split_once(ANY_TEXT) {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        pieces = others;
    }
    rest.ends_with(pieces)
}

/// The longest list of lines that both have, in order; `...` is no line.
fn common(shown: &[&str], printed: &[&str]) -> Vec<(usize, usize)> {
    let same = |i: usize, j: usize| shown[i] != ANY_LINES && is_line(shown[i], printed[j]);
    let mut longest = vec![vec![0_u32; printed.len() + 1]; shown.len() + 1];
    for i in (0..shown.len()).rev() {
        for j in (0..printed.len()).rev() {
            let without = longest[i + 1][j].max(longest[i][j + 1]);
            let with = if same(i, j) { longest[i + 1][j + 1] + 1 } else { 0 };
            longest[i][j] = without.max(with);
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < shown.len() && j < printed.len() {
        if same(i, j) && longest[i][j] == longest[i + 1][j + 1] + 1 {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// What differs from system to system in a call stack: frames of libraries.
const FOREIGN: [&str; 6] = ["start_thread", "/usr/", ".so", "core::ops::", "std::", "__rust_"];

/// The line as a page can show it: without addresses, without frames of libraries, and without the
/// number of thread-local events.
fn redacted(line: &str) -> String {
    let is_frame = line.trim_start().starts_with("from ");
    if is_frame && FOREIGN.iter().any(|part| line.contains(part)) {
        return ANY_LINES.to_owned();
    }
    if let Some((start, end)) = line.split_once(" thread-local ones dropped") {
        let start = start.trim_end_matches(|c: char| c.is_ascii_digit());
        return format!("{start}{ANY_TEXT} thread-local ones dropped{end}");
    }
    let mut pieces = line.trim_end().split("0x");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_hexdigit).count();
        let shown = if digits >= 6 { ANY_TEXT } else { &piece[..digits] };
        text = text + "0x" + shown + &piece[digits..];
    }
    text
}

#[test]
fn text_and_lines_can_be_left_open() {
    let printed = ["a 1 b", "x", "y", "z"];
    assert!(agrees(&["a [..] b", "x", "y", "z"], &printed));
    assert!(agrees(&["a [..]", "...", "z"], &printed));
    assert!(agrees(&["...", "[..]", "z", "..."], &printed));
    assert!(!agrees(&["a [..] c", "..."], &printed));
    assert!(!agrees(&["...", "y"], &printed));
    assert!(!agrees(&["a 1 b"], &printed));
}

#[test]
fn what_is_still_right_stays_as_it_is_written() {
    let shown = ["at 0x[..]", "old", "first", "...", "last"];
    let printed = ["at 0x55aa00bb", "new 0x1234567 0x12", "first", "1", "2", "last", "more"];
    let expected = ["at 0x[..]", "new 0x[..] 0x12", "first", "...", "last", "more"];
    assert_eq!(updated(&shown, &printed), expected);
    assert_eq!(updated(&["...", "gone"], &["a", "b"]), ["a", "b"]);
    assert_eq!(
        updated(&[], &["x", "  from start_thread (a.c:1)", "  from a.so+0x1"]),
        ["x", "..."]
    );
    let kept = "reweave: recorded 7 events from 2 threads (81 thread-local ones dropped) → a.rwt";
    let expected =
        ["reweave: recorded 7 events from 2 threads ([..] thread-local ones dropped) → a.rwt"];
    assert_eq!(updated(&[], &[kept]), expected);
}
