//! The slice and the forced set: events that are relevant whatever is enclosed.
//!
//! The dynamic slice is everything that reaches a target over data and control dependence; it is
//! part of every relevant set (Lemma 1 of Burnim et al.). The *forced set* is the largest such set:
//! what stays relevant when every single statement may be skipped on its own. It has the targets,
//! what flows into a member, and each branch whose own statement's execution contains a member.
//!
//! The forced set decides whether there is a specification at all: enclosing more never makes an
//! event relevant, and enclosing every single statement is allowed, so some placements make a run
//! serializable if and only if its conflicts inside the forced set have no cycle.
//!
//! Linear. `oracle::ndseq` has both by their definitions.

use reweave_base::IndexVec;

use crate::events::NodeId;
use crate::relevant::{Regions, Relevance, relevant};
use crate::run::Run;

/// For each event, or junction, whether a target depends on it.
#[must_use]
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
#[must_use]
pub fn forced(run: &Run<'_>) -> Relevance {
    relevant(run, &Regions::finest(run))
}
