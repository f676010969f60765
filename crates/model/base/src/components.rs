//! Strongly connected components: which nodes of a graph lie on a cycle together?
//!
//! Tarjan's algorithm, with its calls on a stack of its own. Linear in nodes and edges.

use crate::{Id, IndexVec};

crate::id! {
    /// A strongly connected component; its id is greater than those of the components it leads to.
    pub struct ComponentId;
    /// When a node was visited.
    struct VisitId;
}

/// For each of `nodes_count` nodes that is reached from `roots` its strongly connected component;
/// none for the others.
///
/// ```
/// use reweave_base::{Id, id, strong_components};
///
/// id! {
///     /// A town.
///     struct TownId;
/// }
///
/// let roads = [vec![1], vec![0, 2], vec![]];
/// let towns = (0..3).map(TownId::from_index);
/// let found = strong_components(3, towns, |town| {
///     roads[town.index()].iter().map(|&to| TownId::from_index(to))
/// });
/// let numbers: Vec<u32> = found.iter().flatten().map(|component| component.number()).collect();
/// assert_eq!(numbers, [2, 2, 1]);
/// ```
pub fn strong_components<N: Id, S: Iterator<Item = N>>(
    nodes_count: usize,
    roots: impl IntoIterator<Item = N>,
    successors: impl Fn(N) -> S,
) -> IndexVec<N, Option<ComponentId>> {
    let mut walk = Walk {
        visits: IndexVec::from_elem(None, nodes_count),
        visits_count: 0,
        open: Vec::new(),
        components: IndexVec::from_elem(None, nodes_count),
        components_count: 0,
    };
    // The nodes on the path from a root, each with its successors to come and the earliest visit of
    // an open node that it is known to reach.
    let mut path: Vec<(N, S, VisitId)> = Vec::new();
    for root in roots {
        if walk.visits[root].is_none() {
            path.push((root, successors(root), walk.enter(root)));
        }
        while let Some((node, rest, low)) = path.last_mut() {
            let node = *node;
            if let Some(next) = rest.next() {
                match walk.visits[next] {
                    None => path.push((next, successors(next), walk.enter(next))),
                    Some(visit) if walk.components[next].is_none() => *low = visit.min(*low),
                    Some(_) => {}
                }
                continue;
            }
            let low = *low;
            path.pop();
            if let Some((_, _, before)) = path.last_mut() {
                *before = low.min(*before);
            }
            if walk.visits[node] == Some(low) {
                walk.close(node);
            }
        }
    }
    walk.components
}

struct Walk<N> {
    visits: IndexVec<N, Option<VisitId>>,
    visits_count: usize,
    /// The visited nodes whose component is not known yet.
    open: Vec<N>,
    components: IndexVec<N, Option<ComponentId>>,
    components_count: usize,
}

impl<N: Id> Walk<N> {
    fn enter(&mut self, node: N) -> VisitId {
        let visit = VisitId::from_index(self.visits_count);
        self.visits[node] = Some(visit);
        self.visits_count += 1;
        self.open.push(node);
        visit
    }

    /// Makes a component of the open nodes from `first` on.
    fn close(&mut self, first: N) {
        let component = ComponentId::from_index(self.components_count);
        self.components_count += 1;
        while let Some(node) = self.open.pop() {
            self.components[node] = Some(component);
            if node == first {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    crate::id! {
        /// A node.
        struct NodeId;
    }

    fn components(nodes_count: usize, edges: &[(usize, usize)]) -> Vec<u32> {
        let mut successors = vec![Vec::new(); nodes_count];
        for &(from, to) in edges {
            successors[from].push(NodeId::from_index(to));
        }
        let nodes = (0..nodes_count).map(NodeId::from_index);
        let found =
            strong_components(nodes_count, nodes, |node| successors[node.index()].iter().copied());
        found.iter().map(|component| component.unwrap().number()).collect()
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
            let found = components(nodes_count, &edges);
            let reached = reached(nodes_count, &edges);
            for left in 0..nodes_count {
                for right in 0..nodes_count {
                    let are_one = reached[left][right] && reached[right][left];
                    assert_eq!(found[left] == found[right], are_one, "{edges:?}");
                    assert!(!reached[left][right] || found[left] >= found[right], "{edges:?}");
                }
            }
        }
    }

    #[test]
    fn only_what_roots_reach_is_visited() {
        let found = strong_components(3, [NodeId::from_index(1)], |node: NodeId| {
            (node.index() == 1).then(|| NodeId::from_index(2)).into_iter()
        });
        let [first, second] = [0, 1].map(ComponentId::from_index);
        assert_eq!(found.as_slice(), [None, Some(second), Some(first)]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let edges: Vec<(usize, usize)> = (1..200_000).map(|node| (node - 1, node)).collect();
        assert_eq!(components(200_000, &edges).into_iter().max(), Some(200_000));
    }
}
