//! Which choices of the order of two scopes could close a cycle through a witness?
//!
//! In the contracted graph each knot of overlapping scopes is one vertex, and an edge that may be
//! chosen joins two scopes, both ways, that nothing orders. A cycle through an edge of the witness
//! stays within the strongly connected component of its ends, so only the choices in there matter
//! (`S_choice`). What a vertex can reach is a suffix of each thread, what can reach it a prefix,
//! and the component is what they share.
//!
//! A scope joins the first rival of each queue that is not wholly before it, and all later ones. So
//! of a suffix only the first scope of each queue matters, and of these only those that do not know
//! of all that is reached already; mostly the first few scopes settle it.

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::bend::{Base, Bend, Halt, Work};
use super::ground::{Ground, NEVER, Point, Scope, ScopeId};

/// How many choices are counted: two to the power of so many does not fit a number any more.
pub(super) const CHOICES_MAX: u64 = 64;

/// The vertices of a component: of each thread the events from `first` on, up to `behind`.
#[derive(Clone, Debug, Default)]
pub(super) struct Component {
    pub(super) first: Vec<u32>,
    pub(super) behind: Vec<u32>,
}

impl Component {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { first: vec![0; threads_count], behind: vec![0; threads_count] }
    }

    /// The scopes in it that end.
    pub(super) fn scopes(&self, ground: &Ground<'_>) -> impl Iterator<Item = ScopeId> {
        let scopes = ground.threads().flat_map(|thread| self.scopes_of(ground, thread));
        scopes.filter(|&id| ground.scopes[id].release != NEVER)
    }

    /// How many scopes are in it.
    pub(super) fn scopes_count(&self, ground: &Ground<'_>) -> u32 {
        ground.threads().map(|thread| self.scopes_of(ground, thread).len() as u32).sum()
    }

    fn scopes_of(
        &self,
        ground: &Ground<'_>,
        thread: ThreadId,
    ) -> impl ExactSizeIterator<Item = ScopeId> + use<> {
        let (first, behind) = (self.first[thread.index()], self.behind[thread.index()]);
        ground.scopes_from(thread, first..behind.max(first))
    }
}

/// What is being reached, one way or the other.
#[derive(Debug, Default)]
pub(super) struct Reach {
    cut: Vec<u32>,
    /// Threads of which more is reached than was passed on.
    changed: Vec<ThreadId>,
    is_changed: Vec<bool>,
    /// How far each thread's scopes have joined all that they can.
    joined: Vec<u32>,
}

impl Reach {
    pub(super) fn new(threads_count: usize) -> Self {
        Self {
            cut: vec![0; threads_count],
            changed: Vec::new(),
            is_changed: vec![false; threads_count],
            joined: vec![0; threads_count],
        }
    }

    fn note(&mut self, thread: ThreadId) {
        if !std::mem::replace(&mut self.is_changed[thread.index()], true) {
            self.changed.push(thread);
        }
    }

    fn next(&mut self) -> Option<ThreadId> {
        let thread = self.changed.pop()?;
        self.is_changed[thread.index()] = false;
        Some(thread)
    }

    fn forget(&mut self) {
        while self.next().is_some() {}
    }

    /// Makes `first` what `from` can reach for sure: of each thread the events from there on.
    pub(super) fn start_forward(&mut self, ground: &Ground<'_>, from: Point, first: &mut [u32]) {
        self.forget();
        ground.whole(first);
        self.joined.copy_from_slice(first);
        self.reach_from(ground, from.thread, from.position, first);
    }

    /// Adds to `first` what can be reached from there, in so many steps; whether that is all.
    pub(super) fn go_forward(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        first: &mut [u32],
        steps_max: usize,
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        let ground = base.ground;
        for _ in 0..steps_max {
            let Some(thread) = self.next() else { return Ok(true) };
            work.spend(2 * ground.threads_count)?;
            let start = Point { thread, position: first[thread.index()] };
            let mut cut = std::mem::take(&mut self.cut);
            bend.after(base, start, &mut cut);
            for other in ground.threads().filter(|&other| other != thread) {
                self.reach_from(ground, other, cut[other.index()], first);
            }
            self.cut = cut;
            self.choose_later(base, bend, start, first, work)?;
        }
        Ok(self.changed.is_empty())
    }

    /// Adds the knot at `position` of `thread`, and all after it.
    fn reach_from(
        &mut self,
        ground: &Ground<'_>,
        thread: ThreadId,
        position: u32,
        first: &mut [u32],
    ) {
        let known = &mut first[thread.index()];
        if position < *known {
            let start = ground.knot_start(thread, position);
            if start < *known {
                *known = start;
                self.note(thread);
            }
        }
    }

    /// Adds what the scopes from `start` on join, those that have joined all they can left out.
    fn choose_later(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        start: Point,
        first: &mut [u32],
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let (ground, thread) = (base.ground, start.thread);
        let queues_count = ground.queues_of(thread).len();
        let end = std::mem::replace(&mut self.joined[thread.index()], start.position);
        let mut scopes = ground.scopes_from(thread, start.position..end);
        for id in scopes.by_ref().take(queues_count) {
            work.spend(ground.threads_count)?;
            if !self.join_later(base, bend, &ground.scopes[id], first) {
                return Ok(());
            }
        }
        if scopes.next().is_none() {
            return Ok(());
        }
        for queue in ground.queues_of(thread) {
            work.spend(ground.threads_count)?;
            if let Some(scope) = ground.first_from(queue, start.position) {
                self.join_later(base, bend, scope, first);
            }
        }
        Ok(())
    }

    /// Adds what `scope` joins; no if neither it nor any later scope can join more than is reached.
    fn join_later(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        scope: &Scope,
        first: &mut [u32],
    ) -> bool {
        let ground = base.ground;
        let mut cut = std::mem::take(&mut self.cut);
        bend.before(base, scope.start(), &mut cut);
        let is_open = |other: ThreadId| {
            let at = other.index();
            other != scope.thread && ground.has_scopes_between(other, cut[at], first[at])
        };
        let is_any_open = ground.threads().any(is_open);
        if is_any_open {
            for queue in ground.rivals(scope) {
                let seen = cut[queue.thread.index()];
                if let Some(rival) = ground.first_ending_from(queue, seen) {
                    self.reach_from(ground, queue.thread, rival.acquire, first);
                }
            }
        }
        self.cut = cut;
        is_any_open
    }

    /// Makes `behind` what can reach `to` for sure: of each thread the events before there.
    pub(super) fn start_backward(&mut self, ground: &Ground<'_>, to: Point, behind: &mut [u32]) {
        self.forget();
        behind.fill(0);
        self.joined.fill(0);
        self.reach_up_to(ground, to.thread, to.position, behind);
    }

    /// Adds to `behind` what can reach it, in so many steps; whether that is all.
    pub(super) fn go_backward(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        behind: &mut [u32],
        steps_max: usize,
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        let ground = base.ground;
        for _ in 0..steps_max {
            let Some(thread) = self.next() else { return Ok(true) };
            work.spend(ground.threads_count)?;
            let last = Point { thread, position: behind[thread.index()] - 1 };
            let mut cut = std::mem::take(&mut self.cut);
            bend.before(base, last, &mut cut);
            for other in ground.threads().filter(|&other| other != thread) {
                if let Some(position) = cut[other.index()].checked_sub(1) {
                    self.reach_up_to(ground, other, position, behind);
                }
            }
            self.cut = cut;
            self.choose_earlier(base, bend, last, behind, work)?;
        }
        Ok(self.changed.is_empty())
    }

    /// Adds the knot at `position` of `thread`, and all before it.
    fn reach_up_to(
        &mut self,
        ground: &Ground<'_>,
        thread: ThreadId,
        position: u32,
        behind: &mut [u32],
    ) {
        let known = &mut behind[thread.index()];
        if position >= *known {
            *known = ground.knot_end(thread, position);
            self.note(thread);
        }
    }

    /// Adds what the scopes up to `last` join, those that have joined all they can left out.
    fn choose_earlier(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        last: Point,
        behind: &mut [u32],
        work: &mut Work<'_>,
    ) -> Result<(), Halt> {
        let (ground, thread) = (base.ground, last.thread);
        let queues_count = ground.queues_of(thread).len();
        let behind_joined = &mut self.joined[thread.index()];
        let start = std::mem::replace(behind_joined, last.position + 1);
        let mut scopes = ground.scopes_down_to(thread, start..last.position + 1);
        for id in scopes.by_ref().take(queues_count) {
            work.spend(2 * ground.threads_count)?;
            if !self.join_earlier(base, bend, &ground.scopes[id], behind) {
                return Ok(());
            }
        }
        if scopes.next().is_none() {
            return Ok(());
        }
        for queue in ground.queues_of(thread) {
            work.spend(2 * ground.threads_count)?;
            let scope = ground.last_before(queue, last.position);
            if let Some(scope) = scope.filter(|scope| scope.release != NEVER) {
                self.join_earlier(base, bend, scope, behind);
            }
        }
        Ok(())
    }

    /// Adds what `scope` joins; no if neither it nor any earlier scope can join more than is
    /// reached.
    fn join_earlier(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        scope: &Scope,
        behind: &mut [u32],
    ) -> bool {
        let ground = base.ground;
        let mut cut = std::mem::take(&mut self.cut);
        bend.after(base, scope.end(), &mut cut);
        let is_open = |other: ThreadId| {
            let at = other.index();
            other != scope.thread && ground.has_scopes_between(other, behind[at], cut[at])
        };
        let is_any_open = ground.threads().any(is_open);
        if is_any_open {
            for queue in ground.rivals(scope) {
                let until = cut[queue.thread.index()];
                if let Some(rival) = ground.last_before(queue, until) {
                    self.reach_up_to(ground, queue.thread, rival.acquire, behind);
                }
            }
        }
        self.cut = cut;
        is_any_open
    }
}

/// The pairs of scopes that nothing orders.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Pairs {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { before: vec![0; threads_count], after: vec![0; threads_count] }
    }

    /// How many pairs of `component` nothing orders; [`CHOICES_MAX`] may stand for more.
    pub(super) fn count(
        &mut self,
        base: Base<'_>,
        bend: &Bend,
        component: &Component,
        work: &mut Work<'_>,
    ) -> Result<u64, Halt> {
        let mut count = 0;
        for id in component.scopes(base.ground) {
            work.spend(2 * base.ground.threads_count)?;
            let scope = &base.ground.scopes[id];
            self.see(base, bend, scope);
            for queue in base.ground.rivals(scope).filter(|queue| queue.thread > scope.thread) {
                let at = queue.thread.index();
                let range = base.ground.range(queue, self.before[at], self.after[at]);
                count += u64::from(range.end.saturating_sub(range.start));
            }
            if count >= CHOICES_MAX {
                return Ok(CHOICES_MAX);
            }
        }
        Ok(count)
    }

    /// A scope of a later thread that nothing orders with `scope`.
    pub(super) fn partner<'a>(
        &mut self,
        base: Base<'a>,
        bend: &Bend,
        scope: &Scope,
    ) -> Option<&'a Scope> {
        self.see(base, bend, scope);
        let ground = base.ground;
        let mut rivals = ground.rivals(scope).filter(|queue| queue.thread > scope.thread);
        rivals.find_map(|queue| {
            let at = queue.thread.index();
            let range = ground.range(queue, self.before[at], self.after[at]);
            (!range.is_empty()).then(|| &ground.scopes[ground.queued(range.start)])
        })
    }

    fn see(&mut self, base: Base<'_>, bend: &Bend, scope: &Scope) {
        bend.before(base, scope.start(), &mut self.before);
        bend.after(base, scope.end(), &mut self.after);
    }
}
