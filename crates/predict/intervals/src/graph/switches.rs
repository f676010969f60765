//! Which switches pass.

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use super::build::Rule;
use super::{Node, NodeId};
use crate::ctp::{Ctp, Point};
use crate::lattice::bits;
use crate::lattice::{Lattice, Reach, Station};

/// What the rules ask of a node.
struct Facts<'a> {
    thread: ThreadId,
    station: Station,
    /// From where the thread comes to the node.
    arrivals: &'a [Station],
    /// Where it goes from there.
    successors: Vec<Station>,
    is_entry: bool,
    is_end: bool,
    /// The entry of a forked thread: it is kept as a target even if the thread cannot go on at
    /// once, since what it does on its own before has to be seen too.
    is_forked: bool,
}

impl Facts<'_> {
    /// Whether the thread can go on from the node while another is where `row` says what it can
    /// be together with. A thread that has only steps left that nobody notices always can.
    #[inline]
    fn can_leave(&self, row: &[u64]) -> bool {
        self.successors.is_empty()
            || self.successors.iter().any(|next| bits::has(row, next.index()))
    }
}

/// The rules, and the nodes they speak of.
pub(super) struct Switches<'a> {
    lattice: &'a Lattice,
    rule: Rule,
    facts: IndexVec<NodeId, Facts<'a>>,
    threads_count: usize,
}

impl<'a> Switches<'a> {
    pub(super) fn new(
        ctp: &Ctp,
        lattice: &'a Lattice,
        rule: Rule,
        nodes: &IndexVec<NodeId, Node>,
    ) -> Self {
        let facts = nodes.iter().map(|&Node { thread, point }| {
            let stations = lattice.stations(thread);
            let station = stations.of(point);
            let is_entry = point == ctp.threads[thread].points.start;
            Facts {
                thread,
                station,
                arrivals: stations.arrivals(point),
                successors: stations.moves(station).iter().map(|next| next.to).collect(),
                is_entry,
                is_end: ctp.steps_from(point).next().is_none(),
                is_forked: is_entry && lattice.is_forked(thread),
            }
        });
        Self { lattice, rule, facts: facts.collect(), threads_count: ctp.threads.len() }
    }

    /// All switches that pass between threads that `is_wanted`, sorted.
    pub(super) fn all(
        &self,
        is_wanted: impl Fn(ThreadId, ThreadId) -> bool,
    ) -> Vec<(NodeId, NodeId)> {
        let threads: Vec<ThreadId> = (0..self.threads_count).map(ThreadId::from_index).collect();
        let mut nodes: IndexVec<ThreadId, Vec<NodeId>> =
            IndexVec::from_elem(Vec::new(), self.threads_count);
        for (node, facts) in self.facts.entries() {
            nodes[facts.thread].push(node);
        }
        let mut switches = Vec::new();
        for &first in &threads {
            let others: Vec<ThreadId> = threads
                .iter()
                .copied()
                .filter(|&second| first != second && is_wanted(first, second))
                .collect();
            for &from in &nodes[first] {
                for &second in &others {
                    let passage = Passage::new(self, from, second);
                    let targets = nodes[second].iter().filter(|&&to| passage.leads_to(to));
                    switches.extend(targets.map(|&to| (from, to)));
                }
            }
        }
        switches
    }

    /// Whether the switch between two threads passes.
    pub(super) fn passes(&self, from: NodeId, to: NodeId) -> bool {
        Passage::new(self, from, self.facts[to].thread).leads_to(to)
    }

    /// Whether a thread that stops at `point` can be passed over for `to`.
    pub(super) fn resumes(&self, thread: ThreadId, point: Point, to: NodeId) -> bool {
        let target = &self.facts[to];
        let station = self.lattice.stations(thread).of(point);
        let reach = self.lattice.reach(thread, target.thread);
        !target.is_end && reach.has(station, target.station) && target.can_leave(reach.row(station))
    }
}

/// The switches from a node to the nodes of another thread.
struct Passage<'a> {
    switches: &'a Switches<'a>,
    from: &'a Facts<'a>,
    reach: Reach<'a>,
    is_related: bool,
}

impl<'a> Passage<'a> {
    fn new(switches: &'a Switches<'a>, from: NodeId, second: ThreadId) -> Self {
        let lattice = switches.lattice;
        let from = &switches.facts[from];
        let is_related = lattice.child_towards(from.thread, second).is_some()
            || lattice.child_towards(second, from.thread).is_some();
        Self { switches, from, reach: lattice.reach(from.thread, second), is_related }
    }

    #[inline]
    fn leads_to(&self, to: NodeId) -> bool {
        let (from, to) = (self.from, &self.switches.facts[to]);
        if from.is_entry || to.is_end {
            return false;
        }
        let is_together = self.reach.has(from.station, to.station);
        match self.switches.rule {
            Rule::Lattice => {
                let row = self.reach.row(from.station);
                is_together
                    && (from.arrivals.is_empty()
                        || from.arrivals.iter().any(|&place| self.reach.has(place, to.station)))
                    && (to.is_forked || to.can_leave(row))
            }
            Rule::Lockset => {
                let lattice = self.switches.lattice;
                let held = lattice.stations(from.thread).held(from.station);
                let also_held = lattice.stations(to.thread).held(to.station);
                (is_together || !self.is_related) && !bits::meet(held, also_held)
            }
        }
    }
}
