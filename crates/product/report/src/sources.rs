//! The code behind a location, to be shown beside what happened there.
//!
//! Locations come from traces, which may come from anywhere: only ordinary files that are called as
//! source files are, and of bounded size, are ever read. A relative name never leads out of the
//! folders that are looked in: its `..` are dropped. An absolute name is taken at its word, since that
//! is how compilers tell where the code is. What cannot be read is left out; a report never fails over
//! it.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use reweave_base::{FxBuildHasher, FxHashMap};

use crate::counted;

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
const EXTENSIONS: [&str; 30] = [
    "C", "H", "S", "asm", "c", "c++", "cc", "cp", "cpp", "cu", "cxx", "def", "h", "h++", "hh",
    "hpp", "hxx", "i", "ii", "inc", "inl", "ipp", "ixx", "m", "mm", "rs", "rw", "s", "tcc", "tpp",
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
    recorded: Option<SystemTime>,
    files: Mutex<Files>,
}

#[derive(Debug)]
struct Files {
    by_name: FxHashMap<String, Result<Arc<Source>, Absence>>,
    bytes: u64,
}

#[derive(Debug)]
struct Source {
    text: String,
    /// Where each line starts.
    starts: Vec<u32>,
    is_newer: bool,
}

impl Source {
    fn new(bytes: &[u8], is_newer: bool) -> Self {
        let text = String::from_utf8_lossy(bytes.strip_prefix(MARK).unwrap_or(bytes)).into_owned();
        let after = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        let starts = [0].into_iter().chain(after).filter(|&start| start < text.len());
        let starts = starts.map(|start| start as u32).collect();
        Self { text, starts, is_newer }
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
    /// The reason in words, of the file called `name`.
    fn told(self, name: &str) -> String {
        match self {
            Self::NoSource => format!("`{name}` is not called as source files are"),
            Self::NotFound => format!("`{name}` was not found here"),
            Self::Unreadable => format!("`{name}` cannot be read"),
            Self::TooLarge => format!("`{name}` is larger than {} MB", FILE_BYTES_MAX >> 20),
            Self::Enough => {
                format!("`{name}` is one too many: {} MB of code were read", TOTAL_BYTES_MAX >> 20)
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
        Self { roots, recorded, files: Mutex::new(Files { by_name, bytes: 0 }) }
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

    /// Why there is no code to show for `location`, which names a line of a file; none if there is,
    /// or if none is asked for.
    #[must_use]
    pub fn absence(&self, location: &str) -> Option<String> {
        let place = Place::new(location).filter(|_| !self.roots.is_empty())?;
        match self.source(place.file) {
            Err(absence) => Some(absence.told(place.file)),
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
        let read = match files.bytes < TOTAL_BYTES_MAX {
            true => self.first_of(name),
            false => Err(Absence::Enough),
        };
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
        if path.is_absolute() && path.is_file() {
            return Ok(vec![path.to_owned()]);
        }
        let parts: Vec<Component<'_>> =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let ends = (0..parts.len()).map(|skipped| parts[skipped..].iter().collect::<PathBuf>());
        let below = |end: PathBuf| self.roots.iter().map(move |root| root.join(&end));
        Ok(ends.flat_map(below).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(sources.absence("b.c:4").unwrap(), "`b.c` was not found here");
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
    fn it_is_told_why_there_is_no_code() {
        let folder = tempfile::tempdir().unwrap();
        let large = File::create(folder.path().join("large.c")).unwrap();
        large.set_len(FILE_BYTES_MAX + 1).unwrap();
        fs::write(folder.path().join("notes.txt"), "text\n").unwrap();
        let sources = Sources::new(vec![folder.path().to_owned()], None);
        let told = |location: &str| sources.absence(location).unwrap();
        assert_eq!(told("large.c:1"), "`large.c` is larger than 8 MB");
        assert_eq!(told("notes.txt:1"), "`notes.txt` is not called as source files are");
        sources.files.lock().unwrap().bytes = TOTAL_BYTES_MAX;
        assert_eq!(told("b.c:1"), "`b.c` is one too many: 64 MB of code were read");
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
}
