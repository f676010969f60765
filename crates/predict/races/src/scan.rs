//! The pass over the trace: for each access, the earlier ones that it is unordered with.
//!
//! What one thread did to one variable is kept by class and code location. The places of a class
//! are linked from the one accessed last back to the one accessed first, so a later access walks
//! from the newest place until it meets one that it has seen, and recording takes constant time.
//! What is seen is the caller's to say: each relation has its own clocks.

use std::collections::hash_map::Entry;

use reweave_base::{FxHashMap, Id, IndexVec, id};
use reweave_order::access::{CLASSES, CONFLICTS, class};
use reweave_trace::{EventId, SiteId, ThreadId, Trace, VarId};

use crate::unordered::{Access, Unordered};

id! {
    /// What one thread did to one variable.
    struct HistoryId;
    /// The accesses of one class in one history at one site.
    struct PlaceId;
}

/// The state after the events so far.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    vars: IndexVec<VarId, Vec<History>>,
    histories_count: usize,
    places: Places,
}

/// What one thread did to one variable.
#[derive(Debug)]
struct History {
    id: HistoryId,
    thread: ThreadId,
    /// The place of the last access, by [`class`].
    newest: [Option<PlaceId>; CLASSES],
}

#[derive(Debug, Default)]
struct Places {
    all: IndexVec<PlaceId, Place>,
    /// Where each place is; but not those that are their class's only one.
    at: FxHashMap<(HistoryId, usize, SiteId), PlaceId>,
}

/// The accesses of one class at one site, oldest first, linked with the other places of the class
/// in the order of their last accesses.
#[derive(Debug)]
struct Place {
    site: SiteId,
    older: Option<PlaceId>,
    newer: Option<PlaceId>,
    accesses: Vec<Access>,
}

impl Place {
    fn new(site: SiteId) -> Self {
        // Many a place is accessed once.
        Self { site, older: None, newer: None, accesses: Vec::with_capacity(1) }
    }

    fn last_time(&self) -> u32 {
        self.accesses.last().map_or(0, |access| access.time)
    }
}

impl Scan {
    /// Takes the next event and tells `unordered` of the conflicting accesses, never none at a
    /// time, that it is unordered with: those of other threads beyond what it has `seen`.
    pub(crate) fn step(
        &mut self,
        trace: &Trace,
        second: EventId,
        seen: impl Fn(ThreadId) -> u32,
        mut unordered: impl FnMut(Unordered<'_>),
    ) {
        let event = trace.event(second);
        let Some(var) = event.op.var() else { return };
        let histories = self.vars.get_or_default(var);
        for history in histories.iter().filter(|history| history.thread != event.thread) {
            let seen = seen(history.thread);
            for &other in CONFLICTS[class(event.op)] {
                for place in self.places.back_from(history.newest[other]) {
                    if place.last_time() <= seen {
                        break;
                    }
                    let from = place.accesses.partition_point(|access| access.time <= seen);
                    let accesses = &place.accesses[from..];
                    unordered(Unordered { site: place.site, accesses, second });
                }
            }
        }
        let access = Access { time: trace.position(second) + 1, event: second };
        let at = histories.iter().position(|history| history.thread == event.thread);
        let at = at.unwrap_or_else(|| {
            let id = HistoryId::from_index(self.histories_count);
            self.histories_count += 1;
            histories.push(History { id, thread: event.thread, newest: [None; CLASSES] });
            histories.len() - 1
        });
        self.places.record(&mut histories[at], class(event.op), event.site, access);
    }
}

impl Places {
    /// The places linked from `newest` on, the one accessed last first.
    fn back_from(&self, newest: Option<PlaceId>) -> impl Iterator<Item = &Place> {
        std::iter::successors(newest.map(|id| &self.all[id]), |place| {
            place.older.map(|id| &self.all[id])
        })
    }

    /// Adds `access` to its place in `history` and makes that the newest.
    fn record(&mut self, history: &mut History, class: usize, site: SiteId, access: Access) {
        let newest = history.newest[class];
        if let Some(newest) = newest {
            let place = &mut self.all[newest];
            if place.site == site {
                place.accesses.push(access);
                return;
            }
            if place.older.is_none() {
                self.at.insert((history.id, class, place.site), newest);
            }
        }
        let id = match newest {
            None => self.all.push(Place::new(site)),
            Some(_) => match self.at.entry((history.id, class, site)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.all.push(Place::new(site))),
            },
        };
        self.unlink(id);
        self.all[id].accesses.push(access);
        self.all[id].older = newest;
        if let Some(newest) = newest {
            self.all[newest].newer = Some(id);
        }
        history.newest[class] = Some(id);
    }

    /// Links the neighbours of `id` with each other.
    fn unlink(&mut self, id: PlaceId) {
        let (older, newer) = (self.all[id].older.take(), self.all[id].newer.take());
        if let Some(older) = older {
            self.all[older].newer = newer;
        }
        if let Some(newer) = newer {
            self.all[newer].older = older;
        }
    }
}
