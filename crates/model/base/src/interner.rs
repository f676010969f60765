//! Names, each stored once and known by a dense id.
//!
//! The text of all names lies end to end in one buffer; the hash table holds ids only and
//! compares with the buffer. Looking up a name that is there allocates nothing, which is what
//! the speed of reading text traces comes down to.

use std::hash::Hasher;
use std::str::Utf8Error;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::Id;

/// A set of names, numbered in the order they first came.
#[derive(Clone)]
pub struct Interner<I> {
    text: String,
    ends: Vec<usize>,
    table: HashTable<I>,
}

impl<I: Id> Interner<I> {
    /// No names.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: String::new(), ends: Vec::new(), table: HashTable::new() }
    }

    /// The id of `name`, new if it was not there.
    pub fn intern(&mut self, name: &str) -> I {
        self.find(name.as_bytes()).unwrap_or_else(|| self.add(name))
    }

    /// The id of the name whose bytes are `name`, new if it was not there.
    ///
    /// # Errors
    /// If the bytes are not UTF-8. Only a new name needs the test: an old one passed it.
    #[inline]
    pub fn intern_bytes(&mut self, name: &[u8]) -> Result<I, Utf8Error> {
        match self.find(name) {
            Some(id) => Ok(id),
            None => Ok(self.add(std::str::from_utf8(name)?)),
        }
    }

    /// The id of `name`, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<I> {
        self.find(name.as_bytes())
    }

    /// The text of `id`.
    #[must_use]
    pub fn name(&self, id: I) -> &str {
        &self.text[self.range(id)]
    }

    /// How many names there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All names with their ids, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (I, &str)> {
        (0..self.len()).map(I::from_index).map(|id| (id, self.name(id)))
    }

    /// How many bytes of text all names have together.
    #[must_use]
    pub const fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Forgets all but the first `count` names.
    pub fn truncate(&mut self, count: usize) {
        self.table.retain(|id| id.index() < count);
        let last = count.checked_sub(1);
        let kept = last.map_or(0, |last| self.ends.get(last).copied().unwrap_or(self.text.len()));
        self.text.truncate(kept);
        self.ends.truncate(count);
    }

    #[inline]
    fn find(&self, name: &[u8]) -> Option<I> {
        let text = self.text.as_bytes();
        self.table.find(hash(name), |&id| &text[self.range(id)] == name).copied()
    }

    fn add(&mut self, name: &str) -> I {
        let id = I::from_index(self.ends.len());
        self.text.push_str(name);
        self.ends.push(self.text.len());
        let (text, ends) = (self.text.as_bytes(), &self.ends);
        let rehash = |&old: &I| hash(&text[range(ends, old)]);
        self.table.insert_unique(hash(name.as_bytes()), id, rehash);
        id
    }

    #[inline]
    fn range(&self, id: I) -> std::ops::Range<usize> {
        range(&self.ends, id)
    }
}

#[inline]
fn range<I: Id>(ends: &[usize], id: I) -> std::ops::Range<usize> {
    let start = if id.index() == 0 { 0 } else { ends[id.index() - 1] };
    start..ends[id.index()]
}

#[inline]
fn hash(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

impl<I: Id> Default for Interner<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id> PartialEq for Interner<I> {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

impl<I: Id> Eq for Interner<I> {}

impl<I: Id> std::fmt::Debug for Interner<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries().map(|(_, name)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::id! {
        /// A name.
        struct NameId;
    }

    #[test]
    fn a_name_keeps_the_id_it_first_got() {
        let mut names = Interner::<NameId>::new();
        let all: Vec<String> = (0..10_000).map(|number| format!("name{}", number % 777)).collect();
        let ids: Vec<NameId> = all.iter().map(|name| names.intern(name)).collect();
        assert_eq!(names.len(), 777);
        for (name, id) in all.iter().zip(ids) {
            assert_eq!((names.name(id), names.get(name)), (name.as_str(), Some(id)));
        }
        assert_eq!(names.get("name777"), None);
    }

    #[test]
    fn names_that_were_forgotten_can_come_again() {
        let mut names = Interner::<NameId>::new();
        for number in 0..100 {
            names.intern(&format!("name{number}"));
        }
        names.truncate(200);
        names.truncate(10);
        assert_eq!(
            (names.len(), names.get("name10"), names.name(NameId::from_index(9))),
            (10, None, "name9")
        );
        assert_eq!(names.intern("name50").index(), 10);
        names.truncate(0);
        assert_eq!((names.len(), names.text_len(), names.get("name1")), (0, 0, None));
    }

    #[test]
    fn the_empty_name_is_a_name() {
        let mut names = Interner::<NameId>::new();
        let empty = names.intern("");
        let other = names.intern("a");
        assert_eq!((names.name(empty), names.name(other)), ("", "a"));
        assert_eq!(names.intern(""), empty);
    }

    #[test]
    fn bytes_that_are_not_text_are_refused() {
        assert!(Interner::<NameId>::new().intern_bytes(b"\xff").is_err());
    }
}
