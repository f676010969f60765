//! The places of a chunk, and the code around them.

use std::collections::BTreeMap;

use reweave_base::FxHashMap;
use serde::Serialize;

use super::view::Strings;
use crate::site::place;
use crate::{Place, Sources};

/// No more code is put into a chunk when it holds so many bytes of it.
const BYTES_MAX: usize = 1 << 20;

/// Places, a column for each thing that is said of them.
#[derive(Debug, Default, Serialize)]
pub(super) struct Places {
    /// Its file, where it is a line of one; else null.
    file: Vec<Option<usize>>,
    /// That line, or 0.
    line: Vec<u32>,
    /// What it is called, where that is not `file:line`.
    name: BTreeMap<usize, u32>,
    /// What is to be said of its code.
    note: BTreeMap<usize, u32>,
}

/// A file: its name, and some of its lines by their numbers.
#[derive(Debug, Serialize)]
pub(super) struct FileView {
    name: u32,
    lines: BTreeMap<u32, String>,
    /// How the lines are coloured, where they are: the class of each part and its length.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    colours: BTreeMap<u32, String>,
}

/// Places of a chunk, and the code around them.
#[derive(Debug)]
pub(super) struct Code<'a> {
    sources: &'a Sources,
    around: u32,
    has_colours: bool,
    pub(super) places: Places,
    /// Which place a location is, and whether its code was looked for.
    by_location: FxHashMap<String, (usize, bool)>,
    pub(super) files: Vec<FileView>,
    by_file: FxHashMap<String, usize>,
    bytes: usize,
}

impl<'a> Code<'a> {
    /// No places yet; code is shown with up to `around` lines on each side.
    pub(super) fn new(sources: &'a Sources, around: u32, has_colours: bool) -> Self {
        Self {
            sources,
            around,
            has_colours,
            places: Places::default(),
            by_location: FxHashMap::default(),
            files: Vec::new(),
            by_file: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// The number of `location` in the chunk, with its code if `has_code`.
    pub(super) fn place(&mut self, location: &str, has_code: bool, strings: &mut Strings) -> usize {
        let (at, is_whole) = match self.by_location.get(location) {
            Some(&known) => known,
            None => (self.push(location, strings), false),
        };
        if has_code && !is_whole {
            self.add_code(location, at, strings);
        }
        self.by_location.insert(location.to_owned(), (at, is_whole || has_code));
        at
    }

    fn push(&mut self, location: &str, strings: &mut Strings) -> usize {
        let number = self.places.file.len();
        let at = Place::new(location);
        let file = at.map(|at| self.file(at.file, strings));
        self.places.file.push(file);
        self.places.line.push(at.map_or(0, |at| at.line));
        let name = place(location);
        if at.is_none_or(|at| *name != format!("{}:{}", at.file, at.line)) {
            self.places.name.insert(number, strings.text(&name));
        }
        number
    }

    fn file(&mut self, name: &str, strings: &mut Strings) -> usize {
        if let Some(&file) = self.by_file.get(name) {
            return file;
        }
        let (lines, colours) = (BTreeMap::new(), BTreeMap::new());
        self.files.push(FileView { name: strings.text(name), lines, colours });
        self.by_file.insert(name.to_owned(), self.files.len() - 1);
        self.files.len() - 1
    }

    /// Adds the code around `location`, which is the place `at`, or what is to be said where there is
    /// none.
    fn add_code(&mut self, location: &str, at: usize, strings: &mut Strings) {
        let (Some(file), Some(place)) = (self.places.file[at], Place::new(location)) else {
            return;
        };
        let note = if self.bytes > BYTES_MAX {
            // A page stays small enough to be mailed.
            Some("The code is left out to keep this page small.".to_owned())
        } else if let Some(excerpt) = self.sources.excerpt(location, self.around) {
            for (number, line) in (excerpt.first..).zip(&excerpt.lines) {
                self.add_line(file, place.file, number, line);
            }
            excerpt.doubt.map(|doubt| format!("Warning: {doubt}."))
        } else {
            self.sources.absence(location).map(|absence| format!("No code: {absence}."))
        };
        self.places.note.extend(note.map(|note| (at, strings.text(&note))));
    }

    fn add_line(&mut self, file: usize, name: &str, number: u32, line: &str) {
        let file = &mut self.files[file];
        if file.lines.contains_key(&number) {
            return;
        }
        // Tabs are the one control character that code is written with.
        let line = line.replace('\t', "    ");
        let colours = self.has_colours.then(|| self.sources.colours(name, number, &line)).flatten();
        self.bytes += line.len() + colours.as_ref().map_or(0, String::len);
        file.lines.insert(number, line);
        file.colours.extend(colours.map(|colours| (number, colours)));
    }
}
