//! What a lock passes on, and what its holders learn of the sections before theirs.

use reweave_base::{FxHashMap, Id};
use reweave_trace::ThreadId;

use super::accesses::{Accesses, PlaceId};
use super::past::{Learning, Readers, Span, TurnId, Turns};
use crate::clock::VectorClock;

/// A thread and how many events it had.
type Moment = (ThreadId, u32);

/// A lock after the events so far.
#[derive(Debug, Default)]
pub(super) struct Lock {
    /// Of the last exclusive release.
    last: Option<Moment>,
    passed: Passed,
    turns: Turns,
    hold: Option<Hold>,
    /// The places that the open exclusive section accessed.
    places: Vec<PlaceId>,
    /// How many exclusive acquires are to come.
    acquires_left: u32,
    /// Only where it was taken in shared mode.
    shared: Option<Box<Shared>>,
}

/// What releases pass on to acquires.
#[derive(Debug, Default)]
struct Passed {
    /// What happens before them, themselves included.
    happened: VectorClock,
    /// What comes before them by WCP.
    weak: VectorClock,
}

/// A section that is open.
#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    /// How often the lock was acquired and not given back.
    depth: u32,
    acquired: u32,
    /// The first turn that the holder's WCP clock need not have.
    next: TurnId,
}

/// What shared mode takes.
#[derive(Debug, Default)]
struct Shared {
    /// By the shared releases since the last exclusive one.
    passed: Passed,
    readers: Readers,
    open: Vec<Visitor>,
}

/// A shared section that is open.
#[derive(Debug)]
struct Visitor {
    hold: Hold,
    /// The turn that was to come when it began.
    after: TurnId,
    /// The classes of accesses made at each place.
    places: FxHashMap<PlaceId, u8>,
}

impl Hold {
    const fn new((thread, acquired): Moment, next: TurnId) -> Self {
        Self { thread, depth: 1, acquired, next }
    }

    const fn beginning(&self) -> Moment {
        (self.thread, self.acquired)
    }

    const fn span(&self, released: u32) -> Span {
        Span { thread: self.thread, acquired: self.acquired, released }
    }
}

impl Passed {
    fn join_into(&self, happened: &mut VectorClock, weak: &mut VectorClock) {
        happened.join(&self.happened);
        weak.join(&self.weak);
    }
}

impl Lock {
    /// Says that one more exclusive acquire is to come.
    pub(super) fn expect_acquire(&mut self) {
        self.acquires_left += 1;
    }

    /// Takes the lock alone, by a thread with these clocks. Whether a section starts.
    pub(super) fn acquire(
        &mut self,
        moment: Moment,
        happened: &mut VectorClock,
        weak: &mut VectorClock,
    ) -> bool {
        self.acquires_left -= 1;
        if let Some(hold) = &mut self.hold {
            hold.depth += 1;
            return false;
        }
        self.pass_on(moment.0, happened, weak);
        if let Some(shared) = &self.shared {
            shared.passed.join_into(happened, weak);
        }
        self.hold = Some(Hold::new(moment, self.turns.first()));
        true
    }

    /// Takes the lock in shared mode, by a thread with these clocks. Whether a section starts.
    pub(super) fn acquire_shared(
        &mut self,
        moment: Moment,
        happened: &mut VectorClock,
        weak: &mut VectorClock,
    ) -> bool {
        if let Some(visitor) = self.visitor(moment.0) {
            visitor.hold.depth += 1;
            return false;
        }
        self.pass_on(moment.0, happened, weak);
        let hold = Hold::new(moment, self.turns.first_beyond(weak));
        let (after, places) = (self.turns.next(), FxHashMap::default());
        let shared = self.shared.get_or_insert_default();
        shared.open.push(Visitor { hold, after, places });
        true
    }

    fn pass_on(&self, thread: ThreadId, happened: &mut VectorClock, weak: &mut VectorClock) {
        // What happens before the thread's next event already has passed on all it can.
        let is_known = |(by, time): Moment| by == thread || happened.get(by) >= time;
        if self.last.is_some_and(|last| !is_known(last)) {
            self.passed.join_into(happened, weak);
        }
    }

    fn visitor(&mut self, thread: ThreadId) -> Option<&mut Visitor> {
        self.shared.as_mut()?.open.iter_mut().find(|visitor| visitor.hold.thread == thread)
    }

    /// Rule (a) at an access of `class` in the exclusive section, whose thread has the WCP clock
    /// `weak`.
    #[inline]
    pub(super) fn access(
        &mut self,
        accesses: &mut Accesses,
        place: PlaceId,
        class: usize,
        weak: &mut VectorClock,
    ) {
        let Some(hold) = &mut self.hold else { return };
        // No section of another thread ends while this one is open: to ask once is enough.
        let Some(is_first) = accesses.note(place, class) else { return };
        if is_first {
            self.places.push(place);
        }
        if let Some(source) = accesses.source(place, class, hold.thread, &self.turns) {
            hold.next = self.turns.join(hold.next, source, weak);
        }
        if let Some(shared) = &self.shared {
            let mut learning = Learning { turns: &self.turns, next: hold.next, clock: weak };
            accesses.join_shared(place, class, hold.thread, &shared.readers, &mut learning);
            hold.next = learning.next;
        }
    }

    /// Rule (a) at an access of `class` in the shared section of `thread`.
    pub(super) fn access_shared(
        &mut self,
        accesses: &Accesses,
        place: PlaceId,
        class: usize,
        thread: ThreadId,
        weak: &mut VectorClock,
    ) {
        let first = self.turns.first();
        let Some(Visitor { hold, places, .. }) = self.visitor(thread) else { return };
        let classes = places.entry(place).or_default();
        if *classes >> class & 1 == 1 {
            return;
        }
        *classes |= 1 << class;
        // The thread may itself have held the lock alone in between, and dropped some.
        let from = hold.next.max(first);
        let Some(source) = accesses.source(place, class, thread, &self.turns) else { return };
        let next = self.turns.join(from, source, weak);
        if let Some(visitor) = self.visitor(thread) {
            visitor.hold.next = next;
        }
    }

    /// Gives the lock back, held alone, at `time` of a thread with these clocks: rule (b). Whether
    /// the section ends.
    pub(super) fn release(
        &mut self,
        accesses: &mut Accesses,
        time: u32,
        happened: &VectorClock,
        weak: &mut VectorClock,
    ) -> bool {
        let Some(hold) = &mut self.hold else { return false };
        hold.depth -= 1;
        if hold.depth > 0 {
            return false;
        }
        let hold = *hold;
        self.hold = None;
        let mut next = self.turns.join_begun(hold.next, hold.beginning(), weak);
        if let Some(shared) = &mut self.shared {
            let mut learning = Learning { turns: &self.turns, next, clock: weak };
            while shared.readers.join_begun(hold.beginning(), &mut learning) {
                let (next, clock) = (learning.next, &mut *learning.clock);
                learning.next = self.turns.join_begun(next, hold.beginning(), clock);
            }
            next = learning.next;
            shared.passed.happened.clear();
            shared.passed.weak.clear();
        }
        self.turns.drop_before(next);
        let turn = self.turns.push(hold.span(time), &self.passed.happened, happened);
        self.passed.happened.copy_from(happened);
        self.passed.weak.copy_from(weak);
        self.last = Some((hold.thread, time));
        for place in self.places.drain(..) {
            accesses.end(place, turn, hold.thread, &self.turns);
        }
        true
    }

    /// Gives the lock back, held in shared mode, at `time` of `thread` with these clocks: rule
    /// (b). Whether the section ends.
    pub(super) fn release_shared(
        &mut self,
        accesses: &mut Accesses,
        (thread, time): Moment,
        happened: &VectorClock,
        weak: &mut VectorClock,
    ) -> bool {
        let Some(shared) = &mut self.shared else { return false };
        let of_thread = |visitor: &Visitor| visitor.hold.thread == thread;
        let Some(at) = shared.open.iter().position(of_thread) else { return false };
        shared.open[at].hold.depth -= 1;
        if shared.open[at].hold.depth > 0 {
            return false;
        }
        let Visitor { hold, after, places } = shared.open.swap_remove(at);
        // The thread may itself have held the lock alone in between, and dropped some.
        let from = hold.next.max(self.turns.first());
        self.turns.join_begun(from, hold.beginning(), weak);
        // Only exclusive sections come after shared ones.
        if self.acquires_left == 0 {
            return true;
        }
        shared.passed.happened.join(happened);
        shared.passed.weak.join(weak);
        let visit = if after == self.turns.next() {
            shared.readers.push(hold.span(time), after, &self.passed.happened, happened)
        } else {
            // The turns since are its own thread's and do not come before it as a whole.
            let (first, nothing) = (TurnId::from_index(0), VectorClock::default());
            shared.readers.push(hold.span(time), first, &nothing, happened)
        };
        for (place, classes) in places {
            accesses.end_shared(place, classes, visit);
        }
        true
    }
}
