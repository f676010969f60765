//! The code that a page shows: each line once, however many places need it.

use std::collections::BTreeMap;

use reweave_base::FxHashMap;

use serde::Serialize;

use super::data::Strings;
use crate::shown::shown;
use crate::site::place;
use crate::{Place, Sources};

/// No more code is put into a chunk when it holds so many bytes of it.
const BYTES_MAX: usize = 1 << 20;

/// Lines by their numbers.
pub(super) type Lines = BTreeMap<u32, String>;

/// A place as pages know it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum PlaceEntry {
    /// Its name; there is nothing to say of its code.
    Bare(u32),
    /// Name, file, line, first and last line to be shown, and what is to be said of the code.
    Full(u32, Option<usize>, u32, u32, u32, Option<u32>),
}

/// Places of a chunk, and the code around them.
#[derive(Debug)]
pub(super) struct Code<'a> {
    sources: &'a Sources,
    around: u32,
    places: Vec<PlaceEntry>,
    by_location: FxHashMap<String, usize>,
    files: Vec<(u32, Lines)>,
    by_file: FxHashMap<String, usize>,
    bytes: usize,
}

impl<'a> Code<'a> {
    /// No places yet; code is shown with up to `around` lines on each side.
    pub(super) fn new(sources: &'a Sources, around: u32) -> Self {
        Self {
            sources,
            around,
            places: Vec::new(),
            by_location: FxHashMap::default(),
            files: Vec::new(),
            by_file: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// The number of `location` in the chunk, with its code if `has_code`.
    pub(super) fn place(&mut self, location: &str, has_code: bool, strings: &mut Strings) -> usize {
        if let Some(&at) = self.by_location.get(location) {
            if has_code && matches!(self.places[at], PlaceEntry::Bare(_)) {
                self.places[at] = self.entry(location, strings);
            }
            return at;
        }
        let entry = match has_code {
            true => self.entry(location, strings),
            false => PlaceEntry::Bare(strings.id(&place(location))),
        };
        self.places.push(entry);
        self.by_location.insert(location.to_owned(), self.places.len() - 1);
        self.places.len() - 1
    }

    fn entry(&mut self, location: &str, strings: &mut Strings) -> PlaceEntry {
        let name = strings.id(&place(location));
        let Some(at) = Place::new(location) else { return PlaceEntry::Bare(name) };
        if self.bytes > BYTES_MAX {
            let note = strings.id("The code is left out to keep this page small.");
            return PlaceEntry::Full(name, None, at.line, 0, 0, Some(note));
        }
        let Some(excerpt) = self.sources.excerpt(location, self.around) else {
            let absence = self.sources.absence(location);
            let note = absence.map(|absence| strings.id(&format!("No code to show: {absence}.")));
            return PlaceEntry::Full(name, None, at.line, 0, 0, note);
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
        PlaceEntry::Full(name, Some(file), excerpt.marked, excerpt.first, last, note)
    }

    /// The places, and the lines of each file.
    pub(super) fn finish(self) -> (Vec<PlaceEntry>, Vec<(u32, Lines)>) {
        (self.places, self.files)
    }
}
