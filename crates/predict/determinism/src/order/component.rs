//! Which choices of the order of two scopes could close a cycle through a witness?
//!
//! In the contracted graph each contracted component of overlapping scopes is one vertex, and an
//! edge that may be chosen joins two scopes, both ways, that nothing orders. A cycle through an
//! edge of the witness stays within the strongly connected component of its ends, so only the
//! choices in there matter (`S_choice` of the paper). What a vertex can reach is a suffix of each
//! thread, what can reach it a prefix, and the component is their intersection.
//!
//! A scope joins the first rival of each queue that is not entirely before it, and all later ones.
//! So of a suffix only the first scope of each queue matters, and of these only those that do not
//! know all that is reached already; mostly the first few scopes decide it.

use reweave_base::Id;
use reweave_trace::ThreadId;

use super::graph::{EventGraph, NEVER, Point, Scope, ScopeId};
use super::overlay::{ClosedGraph, Incomplete, Overlay, Work};

/// How many choices are counted: two to the power of so many does not fit a number.
pub(super) const CHOICES_MAX: u64 = 64;

/// The vertices of a strongly connected component: of each thread the events from `first` on, up to
/// `behind`.
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
    pub(super) fn scopes(&self, graph: &EventGraph<'_>) -> impl Iterator<Item = ScopeId> {
        let scopes = graph.threads().flat_map(|thread| self.scopes_of(graph, thread));
        scopes.filter(|&id| graph.scopes[id].release != NEVER)
    }

    /// How many scopes are in it.
    pub(super) fn scopes_count(&self, graph: &EventGraph<'_>) -> u32 {
        graph.threads().map(|thread| self.scopes_of(graph, thread).len() as u32).sum()
    }

    fn scopes_of(
        &self,
        graph: &EventGraph<'_>,
        thread: ThreadId,
    ) -> impl ExactSizeIterator<Item = ScopeId> + use<> {
        let (first, behind) = (self.first[thread.index()], self.behind[thread.index()]);
        graph.scopes_from(thread, first..behind.max(first))
    }
}

/// What can be reached, forward or backward, step by step.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    cut: Vec<u32>,
    /// Threads of which more is reached than was propagated.
    changed: Vec<ThreadId>,
    is_changed: Vec<bool>,
    /// How far each thread's scopes have joined all that they can.
    joined: Vec<u32>,
}

impl Reachability {
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

    /// Sets `first` to what `from` reaches at once: of each thread the events from there on.
    pub(super) fn start_forward(&mut self, graph: &EventGraph<'_>, from: Point, first: &mut [u32]) {
        self.forget();
        graph.whole(first);
        self.joined.copy_from_slice(first);
        self.reach_from(graph, from.thread, from.position, first);
    }

    /// Adds to `first` what can be reached from there, in so many steps; whether that is all.
    pub(super) fn go_forward(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        first: &mut [u32],
        steps_max: usize,
        work: &mut Work<'_>,
    ) -> Result<bool, Incomplete> {
        let graph = closed.graph;
        for _ in 0..steps_max {
            let Some(thread) = self.next() else { return Ok(true) };
            work.spend(2 * graph.threads_count)?;
            let start = Point { thread, position: first[thread.index()] };
            let mut cut = std::mem::take(&mut self.cut);
            overlay.after(closed, start, &mut cut);
            for other in graph.threads().filter(|&other| other != thread) {
                self.reach_from(graph, other, cut[other.index()], first);
            }
            self.cut = cut;
            self.choose_later(closed, overlay, start, first, work)?;
        }
        Ok(self.changed.is_empty())
    }

    /// Adds the contracted component at `position` of `thread`, and all after it.
    fn reach_from(
        &mut self,
        graph: &EventGraph<'_>,
        thread: ThreadId,
        position: u32,
        first: &mut [u32],
    ) {
        let known = &mut first[thread.index()];
        if position < *known {
            let start = graph.contracted_start(thread, position);
            if start < *known {
                *known = start;
                self.note(thread);
            }
        }
    }

    /// Adds what the scopes from `start` on join, without those that have joined all they can.
    fn choose_later(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        start: Point,
        first: &mut [u32],
        work: &mut Work<'_>,
    ) -> Result<(), Incomplete> {
        let (graph, thread) = (closed.graph, start.thread);
        let queues_count = graph.queues_of(thread).len();
        let end = std::mem::replace(&mut self.joined[thread.index()], start.position);
        let mut scopes = graph.scopes_from(thread, start.position..end);
        for id in scopes.by_ref().take(queues_count) {
            work.spend(graph.threads_count)?;
            if !self.join_later(closed, overlay, &graph.scopes[id], first) {
                return Ok(());
            }
        }
        if scopes.next().is_none() {
            return Ok(());
        }
        for queue in graph.queues_of(thread) {
            work.spend(graph.threads_count)?;
            if let Some(scope) = graph.first_from(queue, start.position) {
                self.join_later(closed, overlay, scope, first);
            }
        }
        Ok(())
    }

    /// Adds what `scope` joins; no if neither it nor any later scope can join more than is reached.
    fn join_later(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        scope: &Scope,
        first: &mut [u32],
    ) -> bool {
        let graph = closed.graph;
        let mut cut = std::mem::take(&mut self.cut);
        overlay.before(closed, scope.start(), &mut cut);
        let is_open = |other: ThreadId| {
            let at = other.index();
            other != scope.thread && graph.has_scopes_between(other, cut[at], first[at])
        };
        let is_any_open = graph.threads().any(is_open);
        if is_any_open {
            for queue in graph.rivals(scope) {
                let seen = cut[queue.thread.index()];
                if let Some(rival) = graph.first_ending_from(queue, seen) {
                    self.reach_from(graph, queue.thread, rival.acquire, first);
                }
            }
        }
        self.cut = cut;
        is_any_open
    }

    /// Sets `behind` to what reaches `to` at once: of each thread the events before there.
    pub(super) fn start_backward(&mut self, graph: &EventGraph<'_>, to: Point, behind: &mut [u32]) {
        self.forget();
        behind.fill(0);
        self.joined.fill(0);
        self.reach_up_to(graph, to.thread, to.position, behind);
    }

    /// Adds to `behind` what can reach it, in so many steps; whether that is all.
    pub(super) fn go_backward(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        behind: &mut [u32],
        steps_max: usize,
        work: &mut Work<'_>,
    ) -> Result<bool, Incomplete> {
        let graph = closed.graph;
        for _ in 0..steps_max {
            let Some(thread) = self.next() else { return Ok(true) };
            work.spend(graph.threads_count)?;
            let last = Point { thread, position: behind[thread.index()] - 1 };
            let mut cut = std::mem::take(&mut self.cut);
            overlay.before(closed, last, &mut cut);
            for other in graph.threads().filter(|&other| other != thread) {
                if let Some(position) = cut[other.index()].checked_sub(1) {
                    self.reach_up_to(graph, other, position, behind);
                }
            }
            self.cut = cut;
            self.choose_earlier(closed, overlay, last, behind, work)?;
        }
        Ok(self.changed.is_empty())
    }

    /// Adds the contracted component at `position` of `thread`, and all before it.
    fn reach_up_to(
        &mut self,
        graph: &EventGraph<'_>,
        thread: ThreadId,
        position: u32,
        behind: &mut [u32],
    ) {
        let known = &mut behind[thread.index()];
        if position >= *known {
            *known = graph.contracted_end(thread, position);
            self.note(thread);
        }
    }

    /// Adds what the scopes up to `last` join, without those that have joined all they can.
    fn choose_earlier(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        last: Point,
        behind: &mut [u32],
        work: &mut Work<'_>,
    ) -> Result<(), Incomplete> {
        let (graph, thread) = (closed.graph, last.thread);
        let queues_count = graph.queues_of(thread).len();
        let behind_joined = &mut self.joined[thread.index()];
        let start = std::mem::replace(behind_joined, last.position + 1);
        let mut scopes = graph.scopes_down_to(thread, start..last.position + 1);
        for id in scopes.by_ref().take(queues_count) {
            work.spend(2 * graph.threads_count)?;
            if !self.join_earlier(closed, overlay, &graph.scopes[id], behind) {
                return Ok(());
            }
        }
        if scopes.next().is_none() {
            return Ok(());
        }
        for queue in graph.queues_of(thread) {
            work.spend(2 * graph.threads_count)?;
            let scope = graph.last_before(queue, last.position);
            if let Some(scope) = scope.filter(|scope| scope.release != NEVER) {
                self.join_earlier(closed, overlay, scope, behind);
            }
        }
        Ok(())
    }

    /// Adds what `scope` joins; no if neither it nor any earlier scope can join more than is
    /// reached.
    fn join_earlier(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        scope: &Scope,
        behind: &mut [u32],
    ) -> bool {
        let graph = closed.graph;
        let mut cut = std::mem::take(&mut self.cut);
        overlay.after(closed, scope.end(), &mut cut);
        let is_open = |other: ThreadId| {
            let at = other.index();
            other != scope.thread && graph.has_scopes_between(other, behind[at], cut[at])
        };
        let is_any_open = graph.threads().any(is_open);
        if is_any_open {
            for queue in graph.rivals(scope) {
                let until = cut[queue.thread.index()];
                if let Some(rival) = graph.last_before(queue, until) {
                    self.reach_up_to(graph, queue.thread, rival.acquire, behind);
                }
            }
        }
        self.cut = cut;
        is_any_open
    }
}

/// The pairs of scopes that nothing orders.
#[derive(Debug, Default)]
pub(super) struct UnorderedPairs {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl UnorderedPairs {
    pub(super) fn new(threads_count: usize) -> Self {
        Self { before: vec![0; threads_count], after: vec![0; threads_count] }
    }

    /// How many pairs of `component` nothing orders; [`CHOICES_MAX`] may stand for more.
    pub(super) fn count(
        &mut self,
        closed: ClosedGraph<'_>,
        overlay: &Overlay,
        component: &Component,
        work: &mut Work<'_>,
    ) -> Result<u64, Incomplete> {
        let mut count = 0;
        for id in component.scopes(closed.graph) {
            work.spend(2 * closed.graph.threads_count)?;
            let scope = &closed.graph.scopes[id];
            self.set_cuts(closed, overlay, scope);
            for queue in closed.graph.rivals(scope).filter(|queue| queue.thread > scope.thread) {
                let at = queue.thread.index();
                let range = closed.graph.range(queue, self.before[at], self.after[at]);
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
        closed: ClosedGraph<'a>,
        overlay: &Overlay,
        scope: &Scope,
    ) -> Option<&'a Scope> {
        self.set_cuts(closed, overlay, scope);
        let graph = closed.graph;
        let mut rivals = graph.rivals(scope).filter(|queue| queue.thread > scope.thread);
        rivals.find_map(|queue| {
            let at = queue.thread.index();
            let range = graph.range(queue, self.before[at], self.after[at]);
            (!range.is_empty()).then(|| &graph.scopes[graph.queued(range.start)])
        })
    }

    fn set_cuts(&mut self, closed: ClosedGraph<'_>, overlay: &Overlay, scope: &Scope) {
        overlay.before(closed, scope.start(), &mut self.before);
        overlay.after(closed, scope.end(), &mut self.after);
    }
}
