//! Which graph a program gets, and how threads are cut at its nodes.

use reweave_base::{Id, IndexVec};
use reweave_trace::{LockId, ThreadId};

use super::switches::Switches;
use super::{Graph, GraphKind, Node, NodeId, Transaction, pairs};
use crate::ctp::{Action, Ctp, Point, Step};
use crate::lattice::bits;
use crate::lattice::{Lattice, Line};
use crate::mats::{Choice, Dummy};
use crate::movers::{self, Strength};

/// Between which points of two threads the processor can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Those that can be reached together, one thread having just arrived at its point, and the
    /// other being able to leave its own.
    Lattice,
    /// Those at which the threads hold no lock both.
    Lockset,
}

/// What a graph is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All interleavings are covered, incomplete ones too.
    Sound,
    /// As in the paper, for comparison.
    Paper,
}

/// How graphs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which switches are kept.
    pub switches: Rule,
    /// What the graph is for.
    pub mode: Mode,
    /// Whether the last accesses of two threads are made to conflict. [`Mode::Sound`] does so
    /// where needed in any case.
    pub dummy: Dummy,
}

impl Default for Settings {
    fn default() -> Self {
        Self { switches: Rule::Lattice, mode: Mode::Sound, dummy: Dummy::WhereNeeded }
    }
}

/// The graph of `ctp`.
///
/// Mutually atomic transactions are used where threads have one way each: in the paper's mode for
/// every pair, in the sound one for a program of just two threads that neither fork each other nor
/// can block each other for good. Elsewhere threads are cut by [`movers`](crate::movers).
#[must_use]
pub fn build(ctp: &Ctp, kind: GraphKind, settings: &Settings) -> Graph {
    let lattice = Lattice::new(ctp);
    let (choice, strength) = match kind {
        GraphKind::Ccfg => {
            let is_node = access_points(ctp, &lattice, settings.mode);
            return of_points(ctp, &lattice, kind, settings, is_node);
        }
        GraphKind::Tsg => (Choice::First, Strength::Plain),
        GraphKind::TsgReduced => (Choice::Feasible, Strength::Reduced),
    };
    let is_straight = ctp
        .threads
        .entries()
        .all(|(thread, data)| !data.points.is_empty() && ctp.is_straight(thread));
    let uses_pairs = match settings.mode {
        Mode::Paper => is_straight,
        Mode::Sound => is_straight && is_plain_pair(ctp, &lattice),
    };
    if uses_pairs {
        return pairs::build(ctp, &lattice, kind, choice, settings);
    }
    let is_node = movers::boundaries(ctp, &lattice, strength);
    of_points(ctp, &lattice, kind, &Settings { mode: Mode::Sound, ..*settings }, is_node)
}

/// Whether there are two threads that neither fork nor join, and they cannot come to a deadlock,
/// alone or together.
fn is_plain_pair(ctp: &Ctp, lattice: &Lattice) -> bool {
    let mut threads = ctp.threads.ids();
    let (Some(first), Some(second), None) = (threads.next(), threads.next(), threads.next()) else {
        return false;
    };
    let is_plain = |step: &Step| {
        let stations = lattice.stations(step.thread);
        let holds = |lock: LockId| bits::has(stations.held(stations.of(step.from)), lock.index());
        match step.action {
            Action::Local | Action::Read(_) | Action::Write(_) | Action::Update(_) => true,
            Action::Acquire(lock) => !holds(lock),
            Action::Release(lock) => holds(lock),
            Action::Fork(_) | Action::Join(_) => false,
        }
    };
    ctp.steps.iter().all(is_plain) && !lattice.has_deadlock(first, second)
}

/// The points where the concurrent control flow graph suspends threads.
fn access_points(ctp: &Ctp, lattice: &Lattice, mode: Mode) -> IndexVec<Point, bool> {
    let mut is_node = IndexVec::from_elem(false, ctp.leaving.len());
    let may_fail = movers::may_fail(ctp);
    for thread in ctp.threads.ids() {
        let points = &ctp.threads[thread].points;
        if points.is_empty() {
            continue;
        }
        if !ctp.is_straight(thread) {
            is_node[points.start] = true;
            for (_, step) in ctp.steps_of(thread) {
                let is_end = ctp.steps_from(step.to).next().is_none();
                is_node[step.to] |= is_end || step.action != Action::Local;
            }
            continue;
        }
        let line = Line::new(ctp, lattice.stations(thread), thread);
        line.points.iter().for_each(|&point| is_node[point] = true);
        // What follows the last access may fail after others saw that one.
        let last = line.accesses.last().map(|&last| ctp.steps[last]);
        if let Some(last) = last.filter(|last| mode == Mode::Sound && last.action != Action::Local)
        {
            let mut point = last.to;
            while let Some((id, step)) = ctp.steps_from(point).next() {
                is_node[point] |= may_fail[id];
                point = step.to;
            }
        }
    }
    is_node
}

/// The graph whose nodes are the given points, with all switches between them that pass.
fn of_points(
    ctp: &Ctp,
    lattice: &Lattice,
    kind: GraphKind,
    settings: &Settings,
    mut is_node: IndexVec<Point, bool>,
) -> Graph {
    let orders = match settings.mode {
        Mode::Sound => Vec::new(),
        Mode::Paper => orders(ctp, lattice),
    };
    orders.iter().for_each(|&(from, to)| {
        is_node[from] = true;
        is_node[to] = true;
    });
    let mut graph = Frame::new(ctp, &is_node).graph(ctp, lattice, kind);
    let rules = Switches::new(ctp, lattice, settings.switches, &graph.nodes);
    graph.switches = rules.all(|first, second| {
        settings.mode == Mode::Sound || !is_only_ordered(ctp, lattice, first, second)
    });
    add_orders(&mut graph, &orders);
    graph
}

/// Whether one thread forks the other and nothing that they do side by side conflicts, so that
/// the paper has no switches between them.
fn is_only_ordered(ctp: &Ctp, lattice: &Lattice, first: ThreadId, second: ThreadId) -> bool {
    let is_related = lattice.child_towards(first, second).is_some()
        || lattice.child_towards(second, first).is_some();
    let reach = lattice.reach(first, second);
    let (rows, columns) = (lattice.stations(first), lattice.stations(second));
    is_related
        && !ctp.steps_of(first).any(|(_, left)| {
            ctp.steps_of(second).any(|(_, right)| {
                movers::is_conflict(left.action, right.action)
                    && reach.has(rows.of(left.to), columns.of(right.to))
            })
        })
}

/// From where to where forks and joins order threads, in points.
pub(super) fn orders(ctp: &Ctp, lattice: &Lattice) -> Vec<(Point, Point)> {
    let mut orders = Vec::new();
    for thread in ctp.threads.ids() {
        let line =
            ctp.is_straight(thread).then(|| Line::new(ctp, lattice.stations(thread), thread));
        for (id, step) in ctp.steps_of(thread) {
            let (Action::Fork(child) | Action::Join(child)) = step.action else { continue };
            let position = line.as_ref().and_then(|line| {
                let index = line.accesses.binary_search(&id).ok()?;
                Some((line.points[index], line.points[index + 1]))
            });
            let (before, after) = position.unwrap_or((step.from, step.to));
            let points = &ctp.threads[child].points;
            let range = points.start.index()..points.end.index();
            if matches!(step.action, Action::Fork(_)) {
                orders.extend(range.take(1).map(|_| (after, points.start)));
                continue;
            }
            let ends = range.map(Point::from_index);
            let ends = ends.filter(|&end| ctp.steps_from(end).next().is_none());
            orders.extend(ends.map(|end| (end, before)));
        }
    }
    orders
}

/// Adds the orders that are not among the switches.
pub(super) fn add_orders(graph: &mut Graph, orders: &[(Point, Point)]) {
    let node = |point: Point| graph.nodes.as_slice().binary_search_by_key(&point, |n| n.point);
    let mut pairs: Vec<(NodeId, NodeId)> = orders
        .iter()
        .filter_map(|&(from, to)| Some((node(from).ok()?, node(to).ok()?)))
        .map(|(from, to)| (NodeId::from_index(from), NodeId::from_index(to)))
        .filter(|pair| graph.switches.binary_search(pair).is_err())
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    graph.orders = pairs;
}

/// Nodes and transactions.
pub(super) struct Frame {
    nodes: IndexVec<NodeId, Node>,
    node_of: IndexVec<Point, Option<NodeId>>,
    transactions: Vec<Transaction>,
}

impl Frame {
    /// Cuts all threads at the given points.
    pub(super) fn new(ctp: &Ctp, is_node: &IndexVec<Point, bool>) -> Self {
        let mut frame = Self {
            nodes: IndexVec::new(),
            node_of: IndexVec::from_elem(None, ctp.leaving.len()),
            transactions: Vec::new(),
        };
        for thread in ctp.threads.ids() {
            let points = &ctp.threads[thread].points;
            for point in (points.start.index()..points.end.index()).map(Point::from_index) {
                if is_node[point] {
                    frame.node_of[point] = Some(frame.nodes.push(Node { thread, point }));
                }
            }
        }
        let mut reached_from = IndexVec::from_elem(None, ctp.leaving.len());
        for node in frame.nodes.ids() {
            frame.add_transaction(ctp, node, &mut reached_from);
        }
        frame
    }

    /// Collects the steps from `from` to the next nodes. Points lie in topological order, so one
    /// pass over them sees each after all that lead to it.
    fn add_transaction(
        &mut self,
        ctp: &Ctp,
        from: NodeId,
        reached_from: &mut IndexVec<Point, Option<NodeId>>,
    ) {
        let start = self.nodes[from].point;
        let mut transaction = Transaction { from, steps: Vec::new(), exits: Vec::new() };
        reached_from[start] = Some(from);
        let (mut index, mut furthest) = (start.index(), start.index());
        while index <= furthest {
            let point = Point::from_index(index);
            index += 1;
            if reached_from[point] != Some(from) {
                continue;
            }
            if let Some(exit) = self.node_of[point].filter(|_| point != start) {
                transaction.exits.push(exit);
                continue;
            }
            for (id, step) in ctp.steps_from(point) {
                transaction.steps.push(id);
                reached_from[step.to] = Some(from);
                furthest = furthest.max(step.to.index());
            }
        }
        if !transaction.steps.is_empty() {
            self.transactions.push(transaction);
        }
    }

    /// The node at `point`, if there is one.
    pub(super) fn node(&self, point: Point) -> Option<NodeId> {
        self.node_of[point]
    }

    /// A graph without switches.
    pub(super) fn graph(self, ctp: &Ctp, lattice: &Lattice, kind: GraphKind) -> Graph {
        let roots = ctp
            .threads
            .entries()
            .filter(|(thread, data)| !data.points.is_empty() && !lattice.is_forked(*thread))
            .filter_map(|(_, data)| self.node_of[data.points.start])
            .collect();
        Graph {
            kind,
            nodes: self.nodes,
            transactions: self.transactions,
            switches: Vec::new(),
            orders: Vec::new(),
            stops: Vec::new(),
            roots,
            mats_count: None,
        }
    }
}
