//! Strongly connected components: which nodes of a graph lie on a cycle together?
//!
//! Tarjan's algorithm, with its calls on a stack of its own. Linear in nodes and edges.

use reweave_base::{CsrTable, Id, IndexVec};

reweave_base::id! {
    /// A node of a graph.
    pub(super) struct NodeId;
}

/// For each node of `graph`, a list of successors a node, the number of its component.
pub(super) fn components(graph: &CsrTable<NodeId, NodeId>) -> IndexVec<NodeId, u32> {
    let mut walk = Walk {
        visited_count: 0,
        visits: IndexVec::from_elem(UNSEEN, graph.len()),
        lows: IndexVec::from_elem(UNSEEN, graph.len()),
        open: Vec::new(),
        components_count: 0,
        components: IndexVec::from_elem(UNSEEN, graph.len()),
    };
    for root in (0..graph.len()).map(NodeId::from_index) {
        if walk.visits[root] == UNSEEN {
            walk.run(graph, root);
        }
    }
    walk.components
}

/// Stands for a number that is not known yet.
const UNSEEN: u32 = u32::MAX;

struct Walk {
    visited_count: u32,
    /// When each node was visited.
    visits: IndexVec<NodeId, u32>,
    /// The earliest visit of an open node that each node is known to reach.
    lows: IndexVec<NodeId, u32>,
    /// The visited nodes whose component is not known yet.
    open: Vec<NodeId>,
    components_count: u32,
    components: IndexVec<NodeId, u32>,
}

impl Walk {
    fn run(&mut self, graph: &CsrTable<NodeId, NodeId>, root: NodeId) {
        // The nodes on the way from the root, each with how many successors were looked at.
        let mut way = vec![(root, 0)];
        self.enter(root);
        while let Some((node, looked_at)) = way.last_mut() {
            let node = *node;
            if let Some(&next) = graph.row(node).get(*looked_at) {
                *looked_at += 1;
                if self.visits[next] == UNSEEN {
                    self.enter(next);
                    way.push((next, 0));
                } else if self.components[next] == UNSEEN {
                    self.lows[node] = self.lows[node].min(self.visits[next]);
                }
                continue;
            }
            way.pop();
            if let Some(&(before, _)) = way.last() {
                self.lows[before] = self.lows[before].min(self.lows[node]);
            }
            if self.lows[node] == self.visits[node] {
                self.close(node);
            }
        }
    }

    fn enter(&mut self, node: NodeId) {
        self.visits[node] = self.visited_count;
        self.lows[node] = self.visited_count;
        self.visited_count += 1;
        self.open.push(node);
    }

    /// Makes a component of the open nodes from `first` on.
    fn close(&mut self, first: NodeId) {
        while let Some(node) = self.open.pop() {
            self.components[node] = self.components_count;
            if node == first {
                break;
            }
        }
        self.components_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_base::Rng;

    fn graph(nodes_count: usize, edges: &[(usize, usize)]) -> CsrTable<NodeId, NodeId> {
        let edges = || edges.iter().copied();
        CsrTable::group(nodes_count, NodeId::from_index(0), || {
            edges().map(|(from, to)| (NodeId::from_index(from), NodeId::from_index(to)))
        })
    }

    /// For each pair of nodes whether the second can be reached from the first.
    fn reached(nodes_count: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let mut reached = vec![vec![false; nodes_count]; nodes_count];
        for (node, row) in reached.iter_mut().enumerate() {
            row[node] = true;
        }
        for _ in 0..nodes_count {
            for &(from, to) in edges {
                for row in &mut reached {
                    row[to] |= row[from];
                }
            }
        }
        reached
    }

    #[test]
    fn nodes_are_in_one_component_exactly_if_each_reaches_the_other() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let nodes_count = 1 + rng.below(9);
            let edges: Vec<(usize, usize)> = (0..rng.below(16))
                .map(|_| (rng.below(nodes_count), rng.below(nodes_count)))
                .collect();
            let found = components(&graph(nodes_count, &edges));
            let reached = reached(nodes_count, &edges);
            for (left, row) in reached.iter().enumerate() {
                for (right, &is_reached) in row.iter().enumerate() {
                    let [one, other] = [left, right].map(|node| found[NodeId::from_index(node)]);
                    assert_eq!(one == other, is_reached && reached[right][left], "{edges:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let edges: Vec<(usize, usize)> = (1..200_000).map(|node| (node - 1, node)).collect();
        let found = components(&graph(200_000, &edges));
        assert_eq!(found.iter().max(), Some(&199_999));
    }
}
