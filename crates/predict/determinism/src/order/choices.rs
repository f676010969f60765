//! Choice graphs: is there a way to order all pairs of scopes of a component without a cycle?
//!
//! Pairs are decided one at a time, as observed first, and what follows from a decision decides
//! others. A graph is looked at when all pairs are ordered, or when a cycle shows that none of
//! those with the same decisions is without one.

use super::bend::{Base, Bend, Halt, Work};
use super::ground::{Point, ScopeId};
use super::reach::{Component, Pairs};

/// A decision: what there was before it, the scope whose turn it was, and the other way round.
type Decision = (Bend, usize, (Point, Point));

/// Room to look for a choice graph.
#[derive(Debug, Default)]
pub(super) struct Choices {
    scopes: Vec<ScopeId>,
    decisions: Vec<Decision>,
    /// How many graphs were looked at.
    pub(super) explored: u64,
}

impl Choices {
    /// Orders all pairs of `component` in `bend`, if that is possible.
    pub(super) fn order(
        &mut self,
        base: Base<'_>,
        bend: &mut Bend,
        component: &Component,
        pairs: &mut Pairs,
        work: &mut Work<'_>,
    ) -> Result<bool, Halt> {
        self.explored = 0;
        self.decisions.clear();
        self.scopes.clear();
        work.spend(component.scopes_count(base.ground) as usize)?;
        self.scopes.extend(component.scopes(base.ground));
        let mut at = 0;
        while let Some(&id) = self.scopes.get(at) {
            work.spend(2 * base.ground.threads_count)?;
            let scope = &base.ground.scopes[id];
            let Some(partner) = pairs.partner(base, bend, scope) else {
                at += 1;
                continue;
            };
            let is_first = base.ground.event(scope.start()) < base.ground.event(partner.start());
            let (early, late) = if is_first { (scope, partner) } else { (partner, scope) };
            work.spend(bend.size())?;
            self.decisions.push((bend.clone(), at, (late.end(), early.start())));
            let mut decided = bend.add(base, early.end(), late.start(), work);
            while decided == Err(Halt::Cycle) {
                self.explored += 1;
                let Some((before, turn, (tail, head))) = self.decisions.pop() else {
                    return Ok(false);
                };
                *bend = before;
                at = turn;
                decided = bend.add(base, tail, head, work);
            }
            decided?;
        }
        self.explored += 1;
        Ok(true)
    }
}
