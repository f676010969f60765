//! Relevant events: those that a specification does not let a serial order forget (Definition 5).
//!
//! Targets are relevant (R1), and so is what flows into a relevant event (R4). A branch is relevant
//! if no `if (*)` encloses it (R2), or if the smallest one that does encloses a relevant event: it
//! cannot be skipped then (R3).
//!
//! A fixpoint, computed with a queue. The executions of the `if (*)` are *regions*: they nest, so
//! each event has an innermost one and each region one around it. When an event turns out to be
//! relevant, it touches the regions around it up to the first that was touched before, and a
//! touched region makes relevant the branches that it is the innermost region of. Every event, edge
//! and region is looked at once. Events are found in the order of their distance from the targets,
//! so the chain of causes of each is a shortest.
//!
//! The rules of branches may be put on other events too ([`Regions::new`]): inference asks for
//! specifications that enclose what they make irrelevant. And with a region for every execution of
//! every statement the fixpoint is the forced set (see [`forced`]).
//!
//! `oracle::ndseq` is the definition to the letter.

use std::collections::VecDeque;

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::InstanceId;

use crate::events::NodeId;
use crate::placement::Placement;
use crate::run::Run;

reweave_base::id! {
    /// One execution of statements that an `if (*)` encloses.
    pub(crate) struct RegionId;
}

/// What can be skipped: the executions of the `if (*)`, and what is in them.
#[derive(Clone, Debug)]
pub struct Regions {
    innermost: IndexVec<NodeId, Option<RegionId>>,
    parents: IndexVec<RegionId, Option<RegionId>>,
    /// For each region the events that it makes relevant when it cannot be skipped.
    bound: CsrTable<RegionId, NodeId>,
    /// The bound events that nothing encloses.
    free: Vec<NodeId>,
}

/// The events that must be kept, and why.
#[derive(Clone, Debug)]
pub struct Relevance {
    /// Whether each event, or junction, is kept.
    pub is_member: IndexVec<NodeId, bool>,
    causes: IndexVec<NodeId, Option<NodeId>>,
}

impl Regions {
    /// The regions of `placements`, none of which overlap, in `run`. The rules of branches hold for
    /// the events that are `bound`.
    pub fn new(run: &Run<'_>, placements: &[Placement], bound: impl Fn(NodeId) -> bool) -> Self {
        let scopes = &run.scopes;
        let mut ranges = Vec::new();
        for placement in placements {
            for &execution in scopes.executions_of(placement.block) {
                let members = scopes.members_within(execution, placement.first, placement.last);
                let range = scopes.range(members);
                if !range.is_empty() {
                    ranges.push((range.start, range.end));
                }
            }
        }
        ranges.sort_unstable_by_key(|&(start, end)| (start, usize::MAX - end));
        ranges.dedup();
        let mut innermost = IndexVec::from_elem(None, run.events.len());
        let mut parents: IndexVec<RegionId, Option<RegionId>> = IndexVec::new();
        let mut open: Vec<(RegionId, usize)> = Vec::new();
        let mut next = ranges.into_iter().peekable();
        for (index, &node) in scopes.order().iter().enumerate() {
            while open.last().is_some_and(|&(_, end)| end <= index) {
                open.pop();
            }
            while let Some((_, end)) = next.next_if(|&(start, _)| start == index) {
                let region = parents.push(open.last().map(|&(region, _)| region));
                open.push((region, end));
            }
            innermost[node] = open.last().map(|&(region, _)| region);
        }
        Self::bind(innermost, parents, bound)
    }

    /// A region for every execution of every statement: as much as any placements can skip.
    pub fn finest(run: &Run<'_>) -> Self {
        let region = |id: InstanceId| RegionId::from_index(id.index());
        let innermost = run.events.nodes().map(|node| run.events.instance(node).map(region));
        let parents = run.scopes.parents().iter().map(|parent| parent.map(region));
        Self::bind(innermost.collect(), parents.collect(), |node| run.events.is_branch(node))
    }

    fn bind(
        innermost: IndexVec<NodeId, Option<RegionId>>,
        parents: IndexVec<RegionId, Option<RegionId>>,
        bound: impl Fn(NodeId) -> bool,
    ) -> Self {
        let is_free = |node: &NodeId| innermost[*node].is_none() && bound(*node);
        let free = innermost.ids().filter(is_free).collect();
        let rows = CsrTable::group(parents.len(), NodeId::from_index(0), || {
            let bound_nodes = innermost.entries().filter(|&(node, _)| bound(node));
            bound_nodes.filter_map(|(node, region)| region.map(|region| (region, node)))
        });
        Self { innermost, parents, bound: rows, free }
    }
}

impl Relevance {
    /// What made `node` relevant; none if it is so by itself.
    pub fn cause(&self, node: NodeId) -> Option<NodeId> {
        self.causes[node]
    }
}

/// The events of `run` that are relevant, given what can be skipped.
pub fn relevant(run: &Run<'_>, regions: &Regions) -> Relevance {
    let nodes_count = run.dependences.nodes_count();
    let mut search = Search {
        found: Relevance {
            is_member: IndexVec::from_elem(false, nodes_count),
            causes: IndexVec::from_elem(None, nodes_count),
        },
        queue: VecDeque::new(),
    };
    for &node in run.targets.iter().chain(&regions.free) {
        search.mark(node, None, false);
    }
    let mut is_touched = IndexVec::from_elem(false, regions.parents.len());
    while let Some(node) = search.queue.pop_front() {
        for &source in run.dependences.sources(node) {
            search.mark(source, Some(node), run.dependences.is_junction(source));
        }
        if run.dependences.is_junction(node) {
            continue;
        }
        let mut next = regions.innermost[node];
        while let Some(region) = next.filter(|&region| !is_touched[region]) {
            is_touched[region] = true;
            for &bound in regions.bound.row(region) {
                search.mark(bound, Some(node), false);
            }
            next = regions.parents[region];
        }
    }
    search.found
}

/// The fixpoint under way.
struct Search {
    found: Relevance,
    queue: VecDeque<NodeId>,
}

impl Search {
    /// Notes that `node` is kept because of `cause`. A junction is no step of its own: it comes
    /// next, so that distances are counted in events.
    fn mark(&mut self, node: NodeId, cause: Option<NodeId>, is_junction: bool) {
        if std::mem::replace(&mut self.found.is_member[node], true) {
            return;
        }
        self.found.causes[node] = cause;
        if is_junction {
            self.queue.push_front(node);
        } else {
            self.queue.push_back(node);
        }
    }
}

// The slice and the forced set: events that are relevant whatever is enclosed.
//
// The dynamic slice is everything that reaches a target over data and control dependence; it is
// part of every relevant set (Lemma 1 of Burnim et al.). The *forced set* is the largest such set:
// what stays relevant when every single statement may be skipped on its own. It has the targets,
// what flows into a member, and each branch whose own statement's execution contains a member.
//
// The forced set decides whether there is a specification at all: enclosing more never makes an
// event relevant, and enclosing every single statement is allowed, so some placements make a run
// serializable if and only if its conflicts inside the forced set have no cycle.
//
// Linear. `oracle::ndseq` has both by their definitions.

/// For each event, or junction, whether a target depends on it.
pub fn slice(run: &Run<'_>) -> IndexVec<NodeId, bool> {
    let mut is_member = IndexVec::from_elem(false, run.dependences.nodes_count());
    let mut rest = run.targets.clone();
    for &target in &rest {
        is_member[target] = true;
    }
    while let Some(node) = rest.pop() {
        let is_event = !run.dependences.is_junction(node);
        let control = if is_event { run.events.control(node) } else { None };
        for &source in run.dependences.sources(node).iter().chain(&control) {
            if !std::mem::replace(&mut is_member[source], true) {
                rest.push(source);
            }
        }
    }
    is_member
}

/// The events that no placement makes irrelevant, and why.
pub fn forced(run: &Run<'_>) -> Relevance {
    relevant(run, &Regions::finest(run))
}
