//! Which sections on a lock accessed a variable: what rule (a) asks.
//!
//! Of exclusive sections the latest counts, and the latest of another thread than that one's: what
//! happens before the releases of a lock only grows. Of shared sections it is the latest of each
//! thread.

use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_trace::{LockId, OpKind, ThreadId, Trace, VarId};

use super::past::{Learning, Readers, TurnId, Turns, VisitId};
use crate::access::{CLASSES, CONFLICTS};

reweave_base::id! {
    /// A variable that sections of several threads access, some of them writing.
    pub(super) struct ContendedId;
    /// Such a variable under a lock.
    pub(super) struct PlaceId;
}

/// There is a table of all places there can be where they are at most one to so many events; else
/// a map finds those that are accessed.
const EVENTS_PER_PLACE: usize = 2;

/// The sections that accessed each variable under each lock.
#[derive(Debug)]
pub(super) struct Accesses {
    contended: IndexVec<VarId, Option<ContendedId>>,
    ids: PlaceIds,
    places: IndexVec<PlaceId, Place>,
    shared: FxHashMap<PlaceId, Vec<SharedAccess>>,
}

/// Which place is whose.
#[derive(Debug)]
enum PlaceIds {
    /// Each lock has a row of so many variables.
    Row(usize),
    /// Places have ids in the order of their first accesses.
    Map(FxHashMap<(LockId, ContendedId), PlaceId>),
}

#[derive(Clone, Debug, Default)]
struct Place {
    latest: [Latest; CLASSES],
    /// The classes of accesses that the open exclusive section made.
    open: u8,
}

/// The latest exclusive section with an access of some class.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    turn: Option<TurnId>,
    /// The latest of another thread.
    other: Option<TurnId>,
}

/// The latest shared section of a thread with an access of some class.
#[derive(Debug)]
struct SharedAccess {
    class: usize,
    visit: VisitId,
}

impl Accesses {
    /// No sections yet; learns from `trace` which variables matter.
    pub(super) fn new(trace: &Trace) -> Self {
        let (contended, width) = contended(trace);
        let places_max = trace.names().locks.len().saturating_mul(width);
        let (ids, count) = if places_max <= trace.len() / EVENTS_PER_PLACE {
            (PlaceIds::Row(width), places_max)
        } else {
            (PlaceIds::Map(FxHashMap::default()), 0)
        };
        let places = IndexVec::from_elem(Place::default(), count);
        Self { contended, ids, places, shared: FxHashMap::default() }
    }

    /// `var` as a variable that sections can conflict on, if they can.
    #[inline]
    pub(super) fn contended(&self, var: VarId) -> Option<ContendedId> {
        self.contended[var]
    }

    /// The place of `var` under `lock`.
    #[inline]
    pub(super) fn place(&mut self, lock: LockId, var: ContendedId) -> PlaceId {
        match &mut self.ids {
            PlaceIds::Row(width) => PlaceId::from_index(lock.index() * *width + var.index()),
            PlaceIds::Map(ids) => {
                *ids.entry((lock, var)).or_insert_with(|| self.places.push(Place::default()))
            }
        }
    }

    /// Notes an access by the exclusive section that is open. None if it made one of this class
    /// before; else whether it made none at all.
    #[inline]
    pub(super) fn note(&mut self, place: PlaceId, class: usize) -> Option<bool> {
        let open = &mut self.places[place].open;
        let before = *open;
        *open |= 1 << class;
        (before != *open).then_some(before == 0)
    }

    /// The latest exclusive section of another thread than `thread` that an access of `class`
    /// conflicts with. A section that was dropped may come instead of none.
    #[inline]
    pub(super) fn source(
        &self,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        turns: &Turns,
    ) -> Option<TurnId> {
        let latest = &self.places[place].latest;
        let of_other = |latest: Latest| {
            let by_other = turns.thread(latest.turn?).is_none_or(|by| by != thread);
            if by_other { latest.turn } else { latest.other }
        };
        CONFLICTS[class].iter().filter_map(|&class| of_other(latest[class])).max()
    }

    /// Adds what happens before the shared sections of other threads than `thread` that an access
    /// of `class` in an exclusive section conflicts with. What it added it forgets: by rule (c)
    /// all later exclusive sections have it too.
    pub(super) fn join_shared(
        &mut self,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        readers: &Readers,
        learning: &mut Learning<'_>,
    ) {
        let Some(accesses) = self.shared.get_mut(&place) else { return };
        accesses.retain(|access| {
            let is_source = CONFLICTS[class].contains(&access.class)
                && readers.thread(access.visit.reader) != thread;
            if is_source {
                readers.join(access.visit, learning);
            }
            !is_source
        });
    }

    /// Makes the exclusive section `turn` of `thread`, which ends, the latest at `place`.
    #[inline]
    pub(super) fn end(&mut self, place: PlaceId, turn: TurnId, thread: ThreadId, turns: &Turns) {
        let Place { latest, open } = &mut self.places[place];
        for (class, latest) in latest.iter_mut().enumerate() {
            if *open >> class & 1 == 0 {
                continue;
            }
            // Which thread's a dropped one was no longer matters: nobody needs it.
            if latest.turn.and_then(|last| turns.thread(last)) != Some(thread) {
                latest.other = latest.turn;
            }
            latest.turn = Some(turn);
        }
        *open = 0;
    }

    /// Makes a shared section, which ends, its thread's latest with accesses of `classes`.
    pub(super) fn end_shared(&mut self, place: PlaceId, classes: u8, visit: VisitId) {
        let accesses = self.shared.entry(place).or_default();
        for class in (0..CLASSES).filter(|class| classes >> class & 1 == 1) {
            let same = |access: &&mut SharedAccess| {
                access.class == class && access.visit.reader == visit.reader
            };
            match accesses.iter_mut().find(same) {
                Some(access) => access.visit = visit,
                None => accesses.push(SharedAccess { class, visit }),
            }
        }
    }
}

/// The variables that sections of several threads access, some of them writing, and their number.
fn contended(trace: &Trace) -> (IndexVec<VarId, Option<ContendedId>>, usize) {
    #[derive(Clone, Copy, Default)]
    struct Use {
        by: Option<ThreadId>,
        by_several: bool,
        is_written: bool,
    }
    let (names, columns) = (trace.names(), trace.columns());
    let mut uses: IndexVec<VarId, Use> = IndexVec::from_elem(Use::default(), names.vars.len());
    let mut held: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, names.threads.len());
    for ((&thread, code), &operand) in
        columns.threads.iter().zip(&columns.codes).zip(&columns.operands)
    {
        let thread = ThreadId::from_index(thread as usize);
        match code.kind() {
            OpKind::Acquire | OpKind::AcquireShared => held[thread] += 1,
            OpKind::Release | OpKind::ReleaseShared => held[thread] -= 1,
            OpKind::Read
            | OpKind::UnknownRead
            | OpKind::Write
            | OpKind::AtomicRead
            | OpKind::AtomicWrite
            | OpKind::AtomicUpdate
                if held[thread] > 0 =>
            {
                let own = &mut uses[VarId::from_index(operand as usize)];
                own.by_several |= own.by.is_some_and(|by| by != thread);
                own.by = Some(thread);
                own.is_written |= matches!(
                    code.kind(),
                    OpKind::Write | OpKind::AtomicWrite | OpKind::AtomicUpdate
                );
            }
            _ => {}
        }
    }
    let mut count = 0;
    let contended = uses.iter().map(|own| {
        let id = (own.by_several && own.is_written).then(|| ContendedId::from_index(count));
        count += usize::from(id.is_some());
        id
    });
    (contended.collect(), count)
}
