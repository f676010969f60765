//! A shelf of clocks: put there under an id, looked at, and taken off.

use reweave_base::{Id, IndexVec};

use crate::clock::VectorClock;

reweave_base::id! {
    /// A place on a shelf.
    struct PlaceId;
}

/// Clocks by id. Those that were taken off lend their memory to those that come.
#[derive(Debug)]
pub(super) struct Shelf<I: Id> {
    places: IndexVec<I, Option<PlaceId>>,
    clocks: IndexVec<PlaceId, VectorClock>,
    free: Vec<PlaceId>,
}

impl<I: Id> Shelf<I> {
    /// An empty shelf for `count` ids.
    pub(super) fn new(count: usize) -> Self {
        let places = IndexVec::from_elem(None, count);
        Self { places, clocks: IndexVec::new(), free: Vec::new() }
    }

    /// Puts a copy of `clock` under `id`, in place of what is there.
    pub(super) fn put(&mut self, id: I, clock: &VectorClock) {
        let place = self.places[id].or_else(|| self.free.pop());
        let place = place.unwrap_or_else(|| self.clocks.push(VectorClock::default()));
        self.clocks[place].copy_from(clock);
        self.places[id] = Some(place);
    }

    /// The clock under `id`, if there is one.
    pub(super) fn get(&self, id: I) -> Option<&VectorClock> {
        self.places[id].map(|place| &self.clocks[place])
    }

    /// Takes the clock under `id` off, if there is one.
    pub(super) fn remove(&mut self, id: I) {
        self.free.extend(self.places[id].take());
    }
}
