//! The code behind a location, to be shown beside what happened there.
//!
//! Locations come from traces, which may come from anywhere: only ordinary files that are called as
//! source files are, and of bounded size, are ever read. A relative name never leads out of the
//! folders that are looked in: its `..` are dropped. An absolute name is taken at its word, since that
//! is how compilers record where the code is. What cannot be read is left out; a report never fails over
//! it.
//!
//! In text, lines that are close together are shown as one piece, each mark with who is there. What
//! cannot be read is said once per file, and code that was changed since is shown with a word of doubt.
//!
//! Code scanners want names that are relative to the root of the repository, whatever folder the program
//! was built, recorded or checked in: that is where the file is that would be shown.

use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use anstyle::Style;
use reweave_base::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::counted;
use crate::highlight::{self, Language, State};
use crate::shown::{LINE_MAX, clipped, shown};
use crate::text::{BAD, DIM, WARN};

pub use reweave_trace::{Frame, Place};

/// Larger files are not read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// No more files are read when so many bytes of them are held.
const TOTAL_BYTES_MAX: u64 = 64 << 20;

/// How many letters of a line are shown.
const LINE_LETTERS_MAX: usize = 160;

/// What some editors put before a text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// How the names of source files end.
const EXTENSIONS: [&str; 31] = [
    "C", "H", "S", "asm", "c", "c++", "cc", "cp", "cpp", "cu", "cxx", "def", "h", "h++", "hh",
    "hpp", "hxx", "i", "ii", "inc", "inl", "ipp", "ixx", "java", "m", "mm", "rs", "rw", "s", "tcc",
    "tpp",
];

/// Some lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the first line.
    pub first: u32,
    /// The lines, long ones cut; they may hold any characters.
    pub lines: Vec<String>,
    /// The number of the line that matters.
    pub marked: u32,
    /// What makes it doubtful, such as that the file is newer than the trace.
    pub doubt: Option<String>,
}

/// Whether `path` ends as the names of source files do.
fn is_called_as_source(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| EXTENSIONS.contains(&end))
}

/// Where source files are looked for, and those that were read.
#[derive(Debug)]
pub struct Sources {
    roots: Vec<PathBuf>,
    /// The folder that the program ran in, which relative names are relative to.
    base: Option<PathBuf>,
    /// The options of the command line that say where code is.
    options: Vec<String>,
    recorded: Option<SystemTime>,
    files: Mutex<Files>,
}

#[derive(Debug)]
struct Files {
    by_name: FxHashMap<String, Result<Arc<Source>, Absence>>,
    /// What files are called from the root of their repository.
    in_repository: FxHashMap<String, Option<String>>,
    bytes: u64,
}

#[derive(Debug)]
struct Source {
    text: String,
    /// Where each line starts.
    starts: Vec<u32>,
    is_newer: bool,
    /// What goes on where each line starts, for colours; found when it is first asked for.
    states: OnceLock<Vec<State>>,
}

impl Source {
    fn new(bytes: &[u8], is_newer: bool) -> Self {
        let text = String::from_utf8_lossy(bytes.strip_prefix(MARK).unwrap_or(bytes)).into_owned();
        let after = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        let starts = [0].into_iter().chain(after).filter(|&start| start < text.len());
        let starts = starts.map(|start| start as u32).collect();
        Self { text, starts, is_newer, states: OnceLock::new() }
    }

    /// The line `number`, counted from 1, which is there.
    fn line(&self, number: u32) -> String {
        let rest = &self.text[self.starts[number as usize - 1] as usize..];
        let line = rest.lines().next().unwrap_or_default();
        line.chars().take(LINE_LETTERS_MAX).collect()
    }
}

/// Why there is no code of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// Its name does not end as those of source files do.
    NoSource,
    /// There is none.
    NotFound,
    /// It is there and cannot be opened.
    Unreadable,
    /// It is larger than any source file.
    TooLarge,
    /// Others were read that are large enough together.
    Enough,
}

impl Absence {
    /// The reason, for the file called `name`.
    fn reason(self, name: &str) -> String {
        match self {
            Self::NoSource => format!("`{name}` does not end like a source file"),
            Self::NotFound => format!("`{name}` was not found"),
            Self::Unreadable => format!("`{name}` cannot be read"),
            Self::TooLarge => format!("`{name}` is larger than {} MB", FILE_BYTES_MAX >> 20),
            Self::Enough => {
                let total = TOTAL_BYTES_MAX >> 20;
                format!("`{name}` was skipped: {total} MB of code were read already")
            }
        }
    }
}

impl Sources {
    /// Files are looked for below each of `roots`, in this order. What was written after `recorded`
    /// is shown with the remark that it is newer.
    #[must_use]
    pub const fn new(roots: Vec<PathBuf>, recorded: Option<SystemTime>) -> Self {
        let by_name = FxHashMap::with_hasher(FxBuildHasher);
        let in_repository = FxHashMap::with_hasher(FxBuildHasher);
        let files = Mutex::new(Files { by_name, in_repository, bytes: 0 });
        Self { roots, base: None, options: Vec::new(), recorded, files }
    }

    /// Relative names are those of files in `base`, or of files that were moved from there.
    #[must_use]
    pub fn with_base(self, base: Option<PathBuf>) -> Self {
        Self { base, ..self }
    }

    /// Commands that show the same code have these `options`.
    #[must_use]
    pub fn with_options(self, options: Vec<String>) -> Self {
        Self { options, ..self }
    }

    /// The options of commands that show the same code.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// No code is shown.
    #[must_use]
    pub const fn none() -> Self {
        Self::new(Vec::new(), None)
    }

    /// The line of `location` with up to `around` lines before and after it; none if it names no
    /// line of a source file, or one that cannot be read.
    #[must_use]
    pub fn excerpt(&self, location: &str, around: u32) -> Option<Excerpt> {
        let place = Place::new(location)?;
        let source = self.source(place.file).ok()?;
        let count = u32::try_from(source.starts.len()).ok()?;
        if place.line > count {
            return None;
        }
        let first = place.line.saturating_sub(around).max(1);
        let last = place.line.saturating_add(around).min(count);
        let lines = (first..=last).map(|number| source.line(number)).collect();
        let doubt = source.is_newer.then(|| "the file is newer than the trace".to_owned());
        Some(Excerpt { first, lines, marked: place.line, doubt })
    }

    /// The colours of `line`, which is how the line `number` of the file called `name` is shown: the
    /// class of each part and how many UTF-16 units it takes, as in `k6 -1 s5`. None if the language is
    /// not known.
    pub(crate) fn colours(&self, name: &str, number: u32, line: &str) -> Option<String> {
        let language = Language::of(name)?;
        let source = self.source(name).ok()?;
        let states = source.states.get_or_init(|| highlight::states(language, &source.text));
        let state = states.get(number.checked_sub(1)? as usize)?;
        let mut rest = line;
        let parts = highlight::line(language, *state, line).0.into_iter().map(|(class, length)| {
            let (part, after) = rest.split_at(length);
            rest = after;
            format!("{}{}", class.letter(), part.encode_utf16().count())
        });
        Some(parts.collect::<Vec<_>>().join(" "))
    }

    /// Why there is no code to show for `location`, which names a line of a file; none if there is,
    /// or if none is asked for.
    #[must_use]
    pub fn absence(&self, location: &str) -> Option<String> {
        let place = Place::new(location).filter(|_| !self.roots.is_empty())?;
        match self.source(place.file) {
            Err(absence) => Some(absence.reason(place.file)),
            Ok(source) if place.line as usize > source.starts.len() => {
                let lines = counted(source.starts.len() as u64, "line");
                Some(format!("`{}` has only {lines} now", place.file))
            }
            Ok(_) => None,
        }
    }

    fn source(&self, name: &str) -> Result<Arc<Source>, Absence> {
        if self.roots.is_empty() {
            return Err(Absence::NotFound);
        }
        // What a thread that panicked leaves is a list of whole files all the same.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.by_name.get(name) {
            return known.clone();
        }
        let is_room = files.bytes < TOTAL_BYTES_MAX;
        let read = if is_room { self.first_of(name) } else { Err(Absence::Enough) };
        let source = read.map(|(source, bytes)| {
            files.bytes += bytes;
            Arc::new(source)
        });
        files.by_name.insert(name.to_owned(), source.clone());
        source
    }

    /// The first file that can be read of those that `name` may mean.
    fn first_of(&self, name: &str) -> Result<(Source, u64), Absence> {
        let mut absence = Absence::NotFound;
        for path in self.candidates(name)? {
            match self.read(&path) {
                Ok(read) => return Ok(read),
                Err(Absence::NotFound) => {}
                Err(other) => absence = other,
            }
        }
        Err(absence)
    }

    /// Where the file called `name` may be: where it says, below the roots, and, if it was moved,
    /// below the roots by ever shorter ends of its name.
    fn candidates(&self, name: &str) -> Result<Vec<PathBuf>, Absence> {
        let path = Path::new(name);
        if !is_called_as_source(path) {
            return Err(Absence::NoSource);
        }
        // Compilers write absolute names; if the file is there it is the one that was compiled.
        if path.is_absolute() && path.is_file() {
            return Ok(vec![path.to_owned()]);
        }
        let parts = |path: &Path| -> Vec<PathBuf> {
            let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
            let parts: Vec<Component<'_>> = parts.collect();
            (0..parts.len()).map(|skipped| parts[skipped..].iter().collect()).collect()
        };
        // The name as it is, below the roots and then where the program ran; then, from where the
        // program ran, ever shorter ends: one built elsewhere has names such as `/build/x/src/a.c`, and
        // `src/a.c` may be here.
        let own = parts(path);
        let base = self.base.as_ref().filter(|_| path.is_relative());
        let ends = base.map_or_else(|| own.clone(), |base| parts(&base.join(path)));
        let below = |end: &PathBuf| -> Vec<PathBuf> {
            self.roots.iter().map(|root| root.join(end)).collect()
        };
        let first = own.first().map(below).unwrap_or_default();
        let recorded = own.first().and_then(|own| Some(base?.join(own)));
        Ok(first.into_iter().chain(recorded).chain(ends.iter().flat_map(below)).collect())
    }

    /// What the file called `name` is called from the root of the repository that the current folder is in,
    /// or, outside of one, of its own repository; none if it is in none, or no code is to be shown.
    #[must_use]
    pub fn in_repository(&self, name: &str) -> Option<String> {
        if self.roots.is_empty() {
            return None;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.in_repository.get(name) {
            return known.clone();
        }
        let found = self.relative_to_repository(name);
        files.in_repository.insert(name.to_owned(), found.clone());
        found
    }

    /// The file called `name`, if it is there; none if no code is to be shown.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        if self.roots.is_empty() {
            return None;
        }
        let candidates = self.candidates(name).ok()?;
        candidates.iter().filter(|path| path.is_file()).find_map(|it| it.canonicalize().ok())
    }

    fn relative_to_repository(&self, name: &str) -> Option<String> {
        let here = std::env::current_dir().ok();
        let file = self.file(name);
        // What is not there any more is where it would be.
        let base = self.base.as_ref().or(here.as_ref());
        let file = file.or_else(|| Some(base?.join(name)))?;
        let root = here.as_deref().and_then(repository);
        let root = root.or_else(|| repository(file.parent()?))?;
        let relative = file.strip_prefix(root).ok()?;
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        relative.to_str().filter(|_| is_plain).map(str::to_owned)
    }

    fn read(&self, path: &Path) -> Result<(Source, u64), Absence> {
        // What a link leads to must be called as source files are, too.
        let path = fs::canonicalize(path).map_err(|_| Absence::NotFound)?;
        let facts = fs::metadata(&path).ok().filter(|facts| facts.is_file());
        let facts = facts.ok_or(Absence::NotFound)?;
        if !is_called_as_source(&path) {
            return Err(Absence::NoSource);
        }
        if facts.len() > FILE_BYTES_MAX {
            return Err(Absence::TooLarge);
        }
        let mut bytes = Vec::new();
        // A file that grows while it is read is read no further.
        let read =
            File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        read.map_err(|_| Absence::Unreadable)?;
        let written = facts.modified().ok();
        let is_newer = written.zip(self.recorded).is_some_and(|(written, then)| written > then);
        Ok((Source::new(&bytes, is_newer), bytes.len() as u64))
    }
}

/// The folder with a repository that `folder` is in.
fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Marks at most so many lines apart are shown in one piece.
const APART_MAX: u32 = 8;

/// How many columns a tab takes at most.
const TAB_WIDTH: usize = 4;

/// A line that matters, and who is there.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// Who; shown where several marks share a piece.
    pub who: &'a str,
    /// Where.
    pub location: &'a str,
}

/// What was said of files so far.
#[derive(Debug, Default)]
pub struct Said {
    files: FxHashSet<String>,
    has_hint: bool,
}

/// Which of `marks` are shown in one piece, by their positions; each piece in order.
pub fn pieces(marks: &[Mark<'_>]) -> Vec<Vec<usize>> {
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
pub fn write_piece(
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
    // The indent that all lines share says nothing.
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
    let had_hint = std::mem::replace(&mut said.has_hint, true);
    let hint = if had_hint { "" } else { "; `--source DIR` sets where to look" };
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

    #[test]
    fn a_moved_file_is_found_by_the_end_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a.c"), b"one\ntwo \xff\nthree\n").unwrap();
        let sources = Sources::new(vec![folder.path().to_owned()], None);
        let excerpt = sources.excerpt("/nowhere/src/a.c:2", 1).unwrap();
        assert_eq!((excerpt.first, excerpt.marked), (1, 2));
        assert_eq!(excerpt.lines, ["one", "two \u{fffd}", "three"]);
        assert_eq!(sources.excerpt("src/a.c:4", 1), None);
        assert_eq!(sources.absence("src/a.c:4").unwrap(), "`src/a.c` has only 3 lines now");
        assert_eq!(sources.absence("b.c:4").unwrap(), "`b.c` was not found");
    }

    #[test]
    fn a_relative_name_does_not_lead_out_of_the_folders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("out.c"), "outside\n").unwrap();
        fs::write(folder.path().join("in/here.c"), "inside\n").unwrap();
        let sources = Sources::new(vec![folder.path().join("in")], None);
        assert_eq!(sources.excerpt("../out.c:1", 0), None);
        assert_eq!(sources.excerpt("../in/here.c:1", 0).unwrap().lines, ["inside"]);
    }

    #[test]
    fn the_report_says_why_there_is_no_code() {
        let folder = tempfile::tempdir().unwrap();
        let large = File::create(folder.path().join("large.c")).unwrap();
        large.set_len(FILE_BYTES_MAX + 1).unwrap();
        fs::write(folder.path().join("notes.txt"), "text\n").unwrap();
        let sources = Sources::new(vec![folder.path().to_owned()], None);
        let reason = |location: &str| sources.absence(location).unwrap();
        assert_eq!(reason("large.c:1"), "`large.c` is larger than 8 MB");
        assert_eq!(reason("notes.txt:1"), "`notes.txt` does not end like a source file");
        sources.files.lock().unwrap().bytes = TOTAL_BYTES_MAX;
        assert_eq!(reason("b.c:1"), "`b.c` was skipped: 64 MB of code were read already");
    }

    #[test]
    fn what_is_no_source_file_is_never_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "hidden\n").unwrap();
        fs::create_dir(folder.path().join("folder.c")).unwrap();
        let sources = Sources::new(vec![folder.path().to_owned()], None);
        std::os::unix::fs::symlink("secret", folder.path().join("link.c")).unwrap();
        for location in ["secret:1", "link.c:1", "folder.c:1", "/etc/passwd:1"] {
            assert_eq!(sources.excerpt(location, 1), None, "{location}");
        }
        assert_eq!(Sources::none().excerpt("sources.rs:1", 1), None);
    }

    #[track_caller]
    fn check(files: &[(&str, &[u8])], marks: &[(&str, &str)], expected: &Expect) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
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
                      no code: `a.c` has only 1 line now; `--source DIR` sets where to look
                      no code: `b.c` was not found
            "#]],
        );
    }
}
