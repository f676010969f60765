//! The code that a page shows: each line once, however many places need it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::data::{PlaceEntry, Strings};
use crate::shown::shown;
use crate::site::place;
use crate::{Place, Sources};

/// How many lines are shown before and after a place.
const AROUND: u32 = 3;

/// No more code is put into a chunk when it holds so many bytes of it.
const BYTES_MAX: usize = 1 << 20;

/// Lines by their numbers.
pub(super) type Lines = BTreeMap<u32, String>;

/// Places of a chunk, and the code around them.
#[derive(Debug)]
pub(super) struct Code<'a> {
    sources: &'a Sources,
    places: Vec<PlaceEntry>,
    by_location: FxHashMap<String, usize>,
    files: Vec<(u32, Lines)>,
    by_file: FxHashMap<String, usize>,
    bytes: usize,
}

impl<'a> Code<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            places: Vec::new(),
            by_location: FxHashMap::default(),
            files: Vec::new(),
            by_file: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// The number of `location` in the chunk.
    pub(super) fn place(&mut self, location: &str, strings: &mut Strings) -> usize {
        if let Some(&at) = self.by_location.get(location) {
            return at;
        }
        let entry = self.entry(location, strings);
        self.places.push(entry);
        self.by_location.insert(location.to_owned(), self.places.len() - 1);
        self.places.len() - 1
    }

    fn entry(&mut self, location: &str, strings: &mut Strings) -> PlaceEntry {
        let name = strings.id(&place(location));
        let Some(at) = Place::of(location) else { return PlaceEntry(name, None, 0, 0, 0, None) };
        if self.bytes > BYTES_MAX {
            let note = strings.id("The code is left out to keep this page small.");
            return PlaceEntry(name, None, at.line, 0, 0, Some(note));
        }
        let Some(excerpt) = self.sources.excerpt(location, AROUND) else {
            let absence = self.sources.absence(location);
            let note = absence.map(|absence| strings.id(&format!("No code to show: {absence}.")));
            return PlaceEntry(name, None, at.line, 0, 0, note);
        };
        let file = *self.by_file.entry(at.file.to_owned()).or_insert_with(|| {
            self.files.push((strings.id(at.file), Lines::new()));
            self.files.len() - 1
        });
        let last = excerpt.first + excerpt.lines.len() as u32 - 1;
        for (number, line) in (excerpt.first..).zip(&excerpt.lines) {
            // Tabs are the one control character that code is written with.
            let line = shown(&line.replace('\t', "    ")).into_owned();
            self.bytes += line.len();
            self.files[file].1.insert(number, line);
        }
        let note = excerpt.doubt.map(|doubt| strings.id(&format!("Beware: {doubt}.")));
        PlaceEntry(name, Some(file), excerpt.marked, excerpt.first, last, note)
    }

    /// The places, and the lines of each file.
    pub(super) fn finish(self) -> (Vec<PlaceEntry>, Vec<(u32, Lines)>) {
        (self.places, self.files)
    }
}
