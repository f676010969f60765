//! The sources of a program, and hashes of their lines for fingerprints that do not depend on line numbers.
//!
//! The question: what does the line `bank.c:12` read, and how is that said in a few characters?
//!
//! The idea: a file is read once, when one of its lines is first asked for; a line is hashed without
//! its blanks, so that another indentation changes nothing.
//!
//! Promised: a line that cannot be read, or that holds nothing, has no hash. Only regular files up to a
//! bound are read. A source that was edited after the program was built gives other lines.
//!
//! The cost: each file that events are in.

use std::fs;
use std::path::{Path, PathBuf};

use reweave_base::FxHashMap;
use reweave_trace::{Place, SOURCE_TEXT};
use xxhash_rust::xxh3::Xxh3;

/// Larger files are not read.
const BYTES_MAX: u64 = 16 << 20;

/// No statement is looked for further up or down.
const LINES_MAX: usize = 6;

/// Longer ones are not read.
const STATEMENT_BYTES_MAX: usize = 2_000;

/// The sources of a program that has ended.
pub struct SourceTexts {
    /// Where relative names of files start.
    base: PathBuf,
    /// The lines of each file that was asked for; none if it cannot be read.
    files: FxHashMap<String, Option<Vec<String>>>,
}

impl SourceTexts {
    /// Sources whose relative names start at `base`.
    #[must_use]
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), files: FxHashMap::default() }
    }

    /// The lines of `file`, if it can be read.
    pub fn lines(&mut self, file: &str) -> Option<&[String]> {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), lines(&self.base.join(file)));
        }
        self.files.get(file)?.as_deref()
    }

    /// The statements of which one is at the line `number` of `file`, from the end of the one before.
    pub fn statement(&mut self, file: &str, number: u32) -> Option<String> {
        let lines = self.lines(file)?;
        let at = (number as usize).checked_sub(1).filter(|&at| at < lines.len())?;
        let code = |line: usize| lines[line].split("//").next().unwrap_or("").trim();
        let ends = |line: usize, marks: &[char]| {
            let is_blank = code(line).is_empty() || code(line).starts_with('#');
            is_blank || code(line).ends_with(marks)
        };
        let mut first = at;
        while first > 0 && at - first < LINES_MAX && !ends(first - 1, &[';', '{', '}', ':']) {
            first -= 1;
        }
        let mut last = at;
        while last + 1 < lines.len() && last - at < LINES_MAX && !ends(last, &[';', '{', '}']) {
            last += 1;
        }
        let text: Vec<&str> = (first..=last).map(code).collect();
        Some(text.join("\n")).filter(|text| text.len() <= STATEMENT_BYTES_MAX)
    }

    /// The line for a site that stands for the text of `location`, if that can be read.
    pub fn of(&mut self, location: &str) -> Option<String> {
        let place = Place::new(location)?;
        let line = self.lines(place.file)?.get((place.line as usize).checked_sub(1)?)?;
        hash(line).map(|hash| format!("{SOURCE_TEXT}{hash:08x}"))
    }
}

/// The lines of the file at `path`.
fn lines(path: &Path) -> Option<Vec<String>> {
    let about = fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).split('\n').map(str::to_owned).collect())
}

/// The hash of `line` without its blanks.
fn hash(line: &str) -> Option<u32> {
    let mut hasher = Xxh3::new();
    let mut is_empty = true;
    for word in line.split_ascii_whitespace() {
        is_empty = false;
        hasher.update(word.as_bytes());
    }
    // Half of it is more than enough to tell the lines of a function apart.
    (!is_empty).then(|| hasher.digest() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_line_ends_are_no_part_of_a_text() {
        let folder = tempfile::tempdir().unwrap();
        let text = "\n  x = x + 1;\r\n\tx  =  x + 1;\nx = x + 2;";
        fs::write(folder.path().join("a.c"), text).unwrap();
        let mut texts = SourceTexts::new(folder.path());
        let [none, first, second, third, beyond] =
            [1, 2, 3, 4, 5].map(|line| texts.of(&format!("a.c:{line}")));
        assert_eq!((none, beyond), (None, None));
        assert!(first.is_some() && first == second && first != third, "{first:?} {third:?}");
        let whole = folder.path().join("a.c");
        assert_eq!(texts.of(&format!("{}:2", whole.display())), first);
    }

    #[test]
    fn what_is_no_file_has_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let mut texts = SourceTexts::new(folder.path());
        for location in ["b.c:1", "main+0x12", "", "/dev/zero:1", ".:1"] {
            assert_eq!(texts.of(location), None, "{location}");
        }
    }
}
