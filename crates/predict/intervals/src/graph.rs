//! The graphs that values are propagated on: nodes are control points where a thread can be
//! suspended, edges are transactions of one thread and switches between threads.
//!
//! A schedule of a graph is a sequence of transactions, the first from a root, each following the
//! one before it in the same thread or across one switch, order or stop. [`build`] makes the
//! graphs. In [`Mode::Sound`] it promises: every interleaving, complete or not, has for each of
//! its steps a schedule in which that step sees the same values, the last transaction possibly
//! stopping at the step. In [`Mode::Paper`] the graphs are those of the paper, which promises this
//! of two threads and complete interleavings.

use reweave_base::{Id, IndexVec, bits};
use reweave_trace::{LockId, ThreadId};

use crate::ctp::{Action, Ctp, Point, Step, StepId};
use crate::lattice::{Lattice, Location, Reach, StraightLine};
use crate::mats::{self, Choice, Dummy, Pair};
use crate::movers::{self, Strength};

reweave_base::id! {
    /// A node of a graph.
    pub struct NodeId;
}

/// How a graph cuts threads into transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphKind {
    /// The concurrent control flow graph: every access ends a transaction.
    Ccfg,
    /// The transaction sequence graph of plain mutually atomic transactions.
    Tsg,
    /// The one of those that locks leave possible.
    TsgReduced,
}

/// A point where a thread can be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Whose point.
    pub thread: ThreadId,
    /// Which of them.
    pub point: Point,
}

/// What a thread does from one node until it comes to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Where it starts.
    pub from: NodeId,
    /// All steps between, each after all that lead to it.
    pub steps: Vec<StepId>,
    /// The nodes that it can end at, in order.
    pub exits: Vec<NodeId>,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// How it was made.
    pub kind: GraphKind,
    /// Nodes, thread by thread, and in a thread in the order of points.
    pub nodes: IndexVec<NodeId, Node>,
    /// At most one for each node, in the order of nodes. A transaction of several exits counts as
    /// so many edges.
    pub transactions: Vec<Transaction>,
    /// From where to where the processor can pass: `(from, to)`, sorted.
    pub switches: Vec<(NodeId, NodeId)>,
    /// Where a fork starts a thread and where a join waits for one, if those are not among the
    /// switches: `(from, to)`, sorted.
    pub orders: Vec<(NodeId, NodeId)>,
    /// Where a thread can stop for good because no guard holds, and where others may go on then.
    pub stops: Vec<Stop>,
    /// Where threads that nobody forks start.
    pub roots: Vec<NodeId>,
    /// How many mutually atomic transactions it was made of, if it was.
    pub mats_count: Option<usize>,
}

/// A point that a thread may never get past, since every step from it has a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The point; it may lie inside a transaction.
    pub point: Point,
    /// The nodes of other threads from which these go on, in order.
    pub targets: Vec<NodeId>,
}

impl Graph {
    /// How many transaction edges there are.
    pub fn transaction_edges_count(&self) -> usize {
        self.transactions.iter().map(|transaction| transaction.exits.len()).sum()
    }
}

// Which graph a program gets, and how threads are cut at its nodes.

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
/// Mutually atomic transactions are used for straight-line threads: in the paper's mode for
/// every pair, in the sound one for a program of just two threads that neither fork each other nor
/// can block each other for good. Elsewhere threads are cut by [`movers`].
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
    let is_straight_line = ctp
        .threads
        .entries()
        .all(|(thread, data)| !data.points.is_empty() && ctp.is_straight_line(thread));
    let uses_pairs = match settings.mode {
        Mode::Paper => is_straight_line,
        Mode::Sound => is_straight_line && is_plain_pair(ctp, &lattice),
    };
    if uses_pairs {
        return build_pairs(ctp, &lattice, kind, choice, settings);
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
        let locations = lattice.locations(step.thread);
        let holds = |lock: LockId| bits::has(locations.held(locations.of(step.from)), lock.index());
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
        if !ctp.is_straight_line(thread) {
            is_node[points.start] = true;
            for (_, step) in ctp.steps_of(thread) {
                is_node[step.to] |= ctp.is_end(step.to) || step.action != Action::Local;
            }
            continue;
        }
        let line = StraightLine::new(ctp, lattice.locations(thread), thread);
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
    let orders = orders(ctp, lattice, settings.mode, &mut is_node);
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
    let (rows, columns) = (lattice.locations(first), lattice.locations(second));
    is_related
        && !ctp.steps_of(first).any(|(_, left)| {
            ctp.steps_of(second).any(|(_, right)| {
                movers::is_conflict(left.action, right.action)
                    && reach.has(rows.of(left.to), columns.of(right.to))
            })
        })
}

/// From where to where forks and joins order threads, in points, which become nodes. In the sound mode
/// there are none: switches do that.
fn orders(
    ctp: &Ctp,
    lattice: &Lattice,
    mode: Mode,
    is_node: &mut IndexVec<Point, bool>,
) -> Vec<(Point, Point)> {
    let mut orders = Vec::new();
    if mode == Mode::Sound {
        return orders;
    }
    for thread in ctp.threads.ids() {
        let line = ctp
            .is_straight_line(thread)
            .then(|| StraightLine::new(ctp, lattice.locations(thread), thread));
        for (id, step) in ctp.steps_of(thread) {
            let (Action::Fork(child) | Action::Join(child)) = step.action else { continue };
            let position = line.as_ref().and_then(|line| {
                let index = line.accesses.binary_search(&id).ok()?;
                Some((line.points[index], line.points[index + 1]))
            });
            let (before, after) = position.unwrap_or((step.from, step.to));
            let mut points = ctp.points_of(child);
            if matches!(step.action, Action::Fork(_)) {
                orders.extend(points.next().map(|entry| (after, entry)));
            } else {
                let ends = points.filter(|&point| ctp.is_end(point));
                orders.extend(ends.map(|end| (end, before)));
            }
        }
    }
    orders.iter().flat_map(|&(from, to)| [from, to]).for_each(|point| is_node[point] = true);
    orders
}

/// Adds the orders that are not among the switches.
fn add_orders(graph: &mut Graph, orders: &[(Point, Point)]) {
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
struct Frame {
    nodes: IndexVec<NodeId, Node>,
    node_of: IndexVec<Point, Option<NodeId>>,
    transactions: Vec<Transaction>,
}

impl Frame {
    /// Cuts all threads at the given points.
    fn new(ctp: &Ctp, is_node: &IndexVec<Point, bool>) -> Self {
        let mut frame = Self {
            nodes: IndexVec::new(),
            node_of: IndexVec::from_elem(None, ctp.leaving.len()),
            transactions: Vec::new(),
        };
        for thread in ctp.threads.ids() {
            for point in ctp.points_of(thread).filter(|&point| is_node[point]) {
                frame.node_of[point] = Some(frame.nodes.push(Node { thread, point }));
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
    fn node(&self, point: Point) -> Option<NodeId> {
        self.node_of[point]
    }

    /// A graph without switches.
    fn graph(self, ctp: &Ctp, lattice: &Lattice, kind: GraphKind) -> Graph {
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

// Graphs of mutually atomic transactions.
//
// Nodes are where the transactions of some pair begin and end, and where threads do; switches
// are those of the MATs that pass. A position after a dummy access is the thread's end.

/// The graph of the MATs of every pair of threads, which must be straight-line.
fn build_pairs(
    ctp: &Ctp,
    lattice: &Lattice,
    kind: GraphKind,
    choice: Choice,
    settings: &Settings,
) -> Graph {
    let lines: IndexVec<ThreadId, StraightLine> = ctp
        .threads
        .ids()
        .map(|thread| StraightLine::new(ctp, lattice.locations(thread), thread))
        .collect();
    let mut is_node = IndexVec::from_elem(false, ctp.leaving.len());
    for line in lines.iter() {
        is_node[line.points[0]] = true;
        is_node[line.points[line.end()]] = true;
    }
    let dummy = match settings.mode {
        Mode::Sound => Dummy::WhereNeeded,
        Mode::Paper => settings.dummy,
    };
    let (mut switches, mut mats_count) = (Vec::new(), 0);
    for second in ctp.threads.ids() {
        for first in ctp.threads.ids().take(second.index()) {
            let (rows, columns) = (&lines[first], &lines[second]);
            let pair = Pair::new(ctp, lattice, (first, second), (rows, columns), dummy);
            let mats = mats::generate(&pair, choice).mats;
            mats_count += mats.len();
            for mat in mats {
                for (line, begin, end) in
                    [(rows, mat.begin.0, mat.end.0), (columns, mat.begin.1, mat.end.1)]
                {
                    is_node[point(line, begin)] = true;
                    is_node[point(line, end)] = true;
                }
                let [there, back] = mat.switches();
                switches.push((point(rows, there.0), point(columns, there.1)));
                switches.push((point(columns, back.0), point(rows, back.1)));
            }
        }
    }
    let orders = orders(ctp, lattice, settings.mode, &mut is_node);
    let frame = Frame::new(ctp, &is_node);
    let node = |point| frame.node(point).expect("switches are between nodes");
    let mut switches: Vec<(NodeId, NodeId)> =
        switches.into_iter().map(|(from, to)| (node(from), node(to))).collect();
    switches.sort_unstable();
    switches.dedup();
    let mut graph = frame.graph(ctp, lattice, kind);
    let rules = Switches::new(ctp, lattice, settings.switches, &graph.nodes);
    switches.retain(|&(from, to)| rules.passes(from, to));
    graph.switches = switches;
    graph.mats_count = Some(mats_count);
    add_orders(&mut graph, &orders);
    if settings.mode == Mode::Sound {
        graph.stops = stops(ctp, &graph, &rules);
    }
    graph
}

fn point(line: &StraightLine, position: usize) -> Point {
    line.points[position.min(line.end())]
}

/// Where a thread may stop for good since a guard fails, and who goes on then. At its entry it has
/// done nothing that others would have to know.
fn stops(ctp: &Ctp, graph: &Graph, rules: &Switches<'_>) -> Vec<Stop> {
    let may_fail = movers::may_fail(ctp);
    let mut stops = Vec::new();
    for thread in ctp.threads.ids() {
        for point in ctp.points_of(thread).skip(1) {
            let mut steps = ctp.steps_from(point).map(|(id, _)| may_fail[id]).peekable();
            if steps.peek().is_none() || !steps.all(|fails| fails) {
                continue;
            }
            let targets = graph.nodes.entries().filter(|(_, node)| node.thread != thread);
            let targets = targets.map(|(id, _)| id);
            let targets: Vec<NodeId> =
                targets.filter(|&target| rules.resumes(thread, point, target)).collect();
            if !targets.is_empty() {
                stops.push(Stop { point, targets });
            }
        }
    }
    stops
}

// Which switches pass.

/// What the rules ask of a node.
struct Facts<'a> {
    thread: ThreadId,
    location: Location,
    /// From where the thread comes to the node.
    arrivals: &'a [Location],
    /// Where it goes from there.
    successors: Vec<Location>,
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
struct Switches<'a> {
    lattice: &'a Lattice,
    rule: Rule,
    facts: IndexVec<NodeId, Facts<'a>>,
    threads_count: usize,
}

impl<'a> Switches<'a> {
    fn new(ctp: &Ctp, lattice: &'a Lattice, rule: Rule, nodes: &IndexVec<NodeId, Node>) -> Self {
        let facts = nodes.iter().map(|&Node { thread, point }| {
            let locations = lattice.locations(thread);
            let location = locations.of(point);
            let is_entry = point == ctp.threads[thread].points.start;
            Facts {
                thread,
                location,
                arrivals: locations.arrivals(point),
                successors: locations.moves(location).iter().map(|next| next.to).collect(),
                is_entry,
                is_end: ctp.is_end(point),
                is_forked: is_entry && lattice.is_forked(thread),
            }
        });
        Self { lattice, rule, facts: facts.collect(), threads_count: ctp.threads.len() }
    }

    /// All switches that pass between threads that `is_wanted`, sorted.
    fn all(&self, is_wanted: impl Fn(ThreadId, ThreadId) -> bool) -> Vec<(NodeId, NodeId)> {
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
    fn passes(&self, from: NodeId, to: NodeId) -> bool {
        Passage::new(self, from, self.facts[to].thread).leads_to(to)
    }

    /// Whether a thread that stops at `point` can be passed over for `to`.
    fn resumes(&self, thread: ThreadId, point: Point, to: NodeId) -> bool {
        let target = &self.facts[to];
        let location = self.lattice.locations(thread).of(point);
        let reach = self.lattice.reach(thread, target.thread);
        !target.is_end
            && reach.has(location, target.location)
            && target.can_leave(reach.row(location))
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
        let is_together = self.reach.has(from.location, to.location);
        match self.switches.rule {
            Rule::Lattice => {
                let row = self.reach.row(from.location);
                is_together
                    && (from.arrivals.is_empty()
                        || from.arrivals.iter().any(|&place| self.reach.has(place, to.location)))
                    && (to.is_forked || to.can_leave(row))
            }
            Rule::Lockset => {
                let lattice = self.switches.lattice;
                let held = lattice.locations(from.thread).held(from.location);
                let also_held = lattice.locations(to.thread).held(to.location);
                (is_together || !self.is_related) && !bits::meet(held, also_held)
            }
        }
    }
}
