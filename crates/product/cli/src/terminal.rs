//! Text on a terminal: lines fit its width, and places in the code are links to their files.
//!
//! Only what goes to a terminal is changed, so that reports in files and pipes are the same everywhere.
//! Commands to type stay in one line, to be copied as a whole.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use reweave_base::FxHashMap;
use reweave_report::Place;

/// Turns links off (`never`) or on (`always`); otherwise terminals get them that are known to show them.
const LINKS_VARIABLE: &str = "REWEAVE_HYPERLINKS";

/// Narrower terminals are taken to be as wide as this.
const WIDTH_MIN: usize = 40;

/// The file that the code calls by a name, if it is there.
pub type FindFile<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// How wide standard output is, if it is a terminal.
pub fn width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    io::stdout().is_terminal().then(|| usize::from(width).max(WIDTH_MIN))
}

/// Whether text on standard output is made to fit, or gets links.
pub fn fits() -> bool {
    width().is_some() || shows_links()
}

/// Whether standard output shows links.
fn shows_links() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match set(LINKS_VARIABLE).as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => io::stdout().is_terminal() && is_known(&set),
    }
}

/// Whether the environment is that of a terminal that shows links.
fn is_known(set: &dyn Fn(&str) -> Option<String>) -> bool {
    let terminal = set("TERM").unwrap_or_default();
    let program = set("TERM_PROGRAM").unwrap_or_default();
    let vte = set("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    // In a multiplexer it is the outer terminal that counts, of which nothing is known.
    let is_inner = ["screen", "tmux", "dumb"].iter().any(|name| terminal.starts_with(name));
    !is_inner
        && (vte.is_some_and(|version| version >= 5000)
            || ["iTerm.app", "WezTerm", "vscode", "ghostty"].contains(&&*program)
            || ["kitty", "alacritty", "foot", "wezterm", "ghostty"]
                .iter()
                .any(|name| terminal.contains(name))
            || ["KONSOLE_VERSION", "WT_SESSION", "DOMTERM"].iter().any(|name| set(name).is_some()))
}

/// Makes the lines that are written to it fit a terminal.
pub struct Fitting<'a, W: Write> {
    out: W,
    width: Option<usize>,
    links: Option<Links<'a>>,
    line: Vec<u8>,
    /// Whether the line before was a command to type, or followed one.
    is_command: bool,
}

impl<'a, W: Write> Fitting<'a, W> {
    /// Lines for standard output, if it is a terminal, with links to what `find_file` finds.
    pub fn new(out: W, find_file: FindFile<'a>) -> Self {
        let links = shows_links().then(|| Links { find_file, files: FxHashMap::default() });
        Self { out, width: width(), links, line: Vec::new(), is_command: false }
    }

    /// Writes a line that has no end, if there is one.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let (text, end) = match line.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (&*line, ""),
        };
        let plain = anstream::adapter::strip_str(text).to_string();
        let follows = self.is_command && plain.starts_with("      ");
        self.is_command = plain.starts_with("next: ") || follows;
        let text = match self.width.filter(|_| !self.is_command) {
            Some(width) => wrapped(text, width),
            None => text.to_owned(),
        };
        let text = self.links.as_mut().map_or(text.clone(), |links| links.linked(&text));
        write!(self.out, "{text}{end}")
    }
}

impl<W: Write> Write for Fitting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The length of the escape sequence that `text` starts with; 0 if it starts with none.
fn escape_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    rest.find(|letter: char| letter.is_ascii_alphabetic()).map_or(text.len(), |end| end + 3)
}

/// `line`, which may have escape sequences, in lines of at most `width` letters; those after the first
/// are indented as the line is, and by two more.
fn wrapped(line: &str, width: usize) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    if plain.chars().count() <= width {
        return line.to_owned();
    }
    let own = plain.len() - plain.trim_start_matches(' ').len();
    let indent = if own + 2 < width / 2 { own + 2 } else { 2 };
    let mut out = String::new();
    // Where the last blank of this line is in `out`, and how many letters come before it.
    let (mut column, mut blank): (usize, Option<(usize, usize)>) = (0, None);
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let escape = escape_length(rest);
        if escape > 0 {
            out.push_str(&rest[..escape]);
            rest = &rest[escape..];
            continue;
        }
        if letter == ' ' && column >= own.max(1) {
            blank = Some((out.len(), column));
        }
        out.push(letter);
        column += 1;
        rest = &rest[letter.len_utf8()..];
        if column > width
            && let Some((at, before)) = blank.take()
        {
            out.replace_range(at..=at, &format!("\n{:indent$}", ""));
            column = column - before - 1 + indent;
        }
    }
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Makes links of places in the code.
struct Links<'a> {
    find_file: FindFile<'a>,
    files: FxHashMap<String, Option<PathBuf>>,
}

impl Links<'_> {
    /// `line` with a link around each place in a file that is there.
    fn linked(&mut self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let escape = escape_length(rest);
            let is_part = |letter: char| !" ()`,;\u{1b}\n".contains(letter);
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let (piece, after) = match (escape, end) {
                (0, 0) => rest.split_at(rest.chars().next().map_or(0, char::len_utf8)),
                (0, end) => rest.split_at(end),
                (escape, _) => rest.split_at(escape),
            };
            let url = if escape == 0 { self.url(piece) } else { None };
            match url {
                Some(url) => out += &format!("\u{1b}]8;;{url}\u{1b}\\{piece}\u{1b}]8;;\u{1b}\\"),
                None => out.push_str(piece),
            }
            rest = after;
        }
        out
    }

    /// The address of the place that `word` is, if it is one.
    fn url(&mut self, word: &str) -> Option<String> {
        let place = Place::new(word.trim_end_matches([':', '.']))?;
        // Long names are shown without their start.
        let name = place.file.trim_start_matches("…/");
        let found = self.files.entry(name.to_owned()).or_insert_with(|| (self.find_file)(name));
        found.as_deref().map(|path| address(path, place.line))
    }
}

/// The address of a line of the file at `path`.
fn address(path: &Path, line: u32) -> String {
    let mut url = String::from("file://");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(char::from(byte));
            }
            other => url += &format!("%{other:02X}"),
        }
    }
    format!("{url}#{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_indented() {
        assert_eq!(wrapped("  one two three four", 12), "  one two\n    three\n    four");
        assert_eq!(wrapped("short", 12), "short");
        assert_eq!(wrapped("unbreakable_word", 8), "unbreakable_word");
        let styled = "\u{1b}[1mone two\u{1b}[0m three";
        assert_eq!(wrapped(styled, 8), "\u{1b}[1mone two\u{1b}[0m\n  three");
        for width in 5..40 {
            let line = "    event 6, T1: w(x) at a.c:19 in deposit, holding lock";
            let text = wrapped(line, width);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text), words(line), "{width}");
        }
    }

    fn fitted(text: &str, width: usize) -> String {
        let mut out = Vec::new();
        let find_file = |name: &str| (name == "a.c").then(|| PathBuf::from("/srv/my src/a.c"));
        let links = Some(Links { find_file: &find_file, files: FxHashMap::default() });
        let (width, line) = (Some(width), Vec::new());
        let mut fitting = Fitting { out: &mut out, width, links, line, is_command: false };
        fitting.write_all(text.as_bytes()).unwrap();
        fitting.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_to_type_stay_whole() {
        let text = "next: reweave explain a.rwt R1\n      reweave confirm a.rwt R1 -- ./a\n";
        assert_eq!(fitted(text, 10), text);
        assert_eq!(fitted("one two three\n", 10), "one two\n  three\n");
    }

    #[test]
    fn places_in_files_that_are_there_are_links() {
        let link = "\u{1b}]8;;file:///srv/my%20src/a.c#19\u{1b}\\a.c:19\u{1b}]8;;\u{1b}\\";
        assert_eq!(fitted("at a.c:19 in f\n", 80), format!("at {link} in f\n"));
        assert_eq!(fitted("f (a.c:19)\n", 80), format!("f ({link})\n"));
        assert_eq!(fitted("\u{1b}[2ma.c:19\u{1b}[0m", 80), format!("\u{1b}[2m{link}\u{1b}[0m"));
        for text in ["at b.c:19", "a.c", "17", "w(x)"] {
            assert_eq!(fitted(text, 80), text);
        }
    }

    #[test]
    fn links_are_for_terminals_that_show_them() {
        let known = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            is_known(&|name| find(name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(known(&[("TERM", "xterm-256color"), ("VTE_VERSION", "6003")]));
        assert!(known(&[("TERM", "xterm-kitty")]));
        assert!(!known(&[("TERM", "xterm-256color")]));
        assert!(!known(&[("TERM", "tmux-256color"), ("VTE_VERSION", "6003")]));
    }
}
