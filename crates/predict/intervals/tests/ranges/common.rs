//! Small programs and graphs made by hand.

use std::collections::BTreeSet;

use reweave_base::{Id, IndexVec};
use reweave_intervals::ctp::{Action, Ctp, Owner, Point, Step, StepId, Thread};
use reweave_intervals::graph::{Graph, GraphKind, Node, NodeId, Stop, Transaction};
use reweave_intervals::terms::{Slot, Term, TermId, Terms};
use reweave_trace::{Names, ThreadId};

/// A step of a draft: points are counted from 0 in each thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) action: Action,
    pub(crate) guard: Option<TermId>,
    pub(crate) store: Option<(Slot, TermId)>,
    pub(crate) define: Option<(Slot, TermId)>,
    pub(crate) assertion: Option<TermId>,
}

impl Draft {
    pub(crate) const fn new(from: usize, to: usize, action: Action) -> Self {
        Self { from, to, action, guard: None, store: None, define: None, assertion: None }
    }
}

/// A program being drawn up: shared variables, locals of each thread, terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    pub(crate) shared: Vec<(String, i64)>,
    pub(crate) locals: Vec<Vec<(String, i64)>>,
    pub(crate) terms: Terms,
    /// For each thread its steps; they lead from lower points to higher ones.
    pub(crate) steps: Vec<Vec<Draft>>,
    pub(crate) parents: Vec<Option<usize>>,
}

impl Sketch {
    pub(crate) fn shared_slot(&self, index: usize) -> Slot {
        assert!(index < self.shared.len());
        Slot::from_index(index)
    }

    pub(crate) fn local_slot(&self, thread: usize, index: usize) -> Slot {
        let before: usize = self.locals[..thread].iter().map(Vec::len).sum();
        Slot::from_index(self.shared.len() + before + index)
    }

    /// The slot called `name`.
    pub(crate) fn slot(&self, name: &str) -> Slot {
        let all = self.shared.iter().chain(self.locals.iter().flatten());
        let index = all.map(|(name, _)| name).position(|other| other == name);
        Slot::from_index(index.expect("there is such a slot"))
    }

    pub(crate) fn term(&mut self, term: Term) -> TermId {
        self.terms.add(term)
    }

    pub(crate) fn finish(self) -> Ctp {
        let mut names = Names::default();
        let mut slots = IndexVec::new();
        let mut initial = IndexVec::new();
        for (name, value) in &self.shared {
            slots.push(Owner::Shared(names.vars.intern(name)));
            initial.push(*value);
        }
        for (thread, locals) in self.locals.iter().enumerate() {
            names.threads.intern(&format!("t{thread}"));
            for (name, value) in locals {
                let owner = Owner::Local(ThreadId::from_index(thread), names.locals.intern(name));
                slots.push(owner);
                initial.push(*value);
            }
        }
        names.locks.intern("l");
        names.locks.intern("m");
        let mut ctp = Ctp {
            terms: self.terms,
            slots,
            initial,
            threads: IndexVec::new(),
            steps: IndexVec::new(),
            leaving: IndexVec::new(),
            names,
        };
        for (thread, mut steps) in self.steps.into_iter().enumerate() {
            steps.sort_by_key(|step| (step.from, step.to));
            let parent = self.parents.get(thread).copied().flatten();
            add_thread(&mut ctp, thread, &steps, parent);
        }
        ctp
    }
}

fn add_thread(ctp: &mut Ctp, thread: usize, drafts: &[Draft], parent: Option<usize>) {
    let points_count = drafts.iter().map(|step| step.to + 1).max().unwrap_or(1);
    let (first_point, first_step) = (ctp.leaving.len(), ctp.steps.len());
    let point = |index: usize| Point::from_index(first_point + index);
    for (index, draft) in drafts.iter().enumerate() {
        ctp.steps.push(Step {
            thread: ThreadId::from_index(thread),
            from: point(draft.from),
            to: point(draft.to),
            action: draft.action,
            guard: draft.guard,
            store: draft.store,
            define: draft.define,
            assertion: draft.assertion,
            site: ctp.names.sites.intern(&format!("t{thread}:{}", index + 1)),
        });
    }
    for index in 0..points_count {
        let before = drafts.iter().take_while(|step| step.from < index).count();
        let until = drafts.iter().take_while(|step| step.from <= index).count();
        let id = |position: usize| StepId::from_index(first_step + position);
        ctp.leaving.push(id(before)..id(until));
    }
    ctp.threads.push(Thread {
        points: point(0)..point(points_count),
        steps: StepId::from_index(first_step)..StepId::from_index(first_step + drafts.len()),
        parent: parent.map(ThreadId::from_index),
    });
}

/// Where threads are cut and what passes between, by point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    pub(crate) nodes: BTreeSet<Point>,
    pub(crate) switches: BTreeSet<(Point, Point)>,
    pub(crate) orders: BTreeSet<(Point, Point)>,
    pub(crate) stops: Vec<(Point, BTreeSet<Point>)>,
}

impl Cut {
    /// Every point is a node, and the processor can pass from each to each of other threads.
    pub(crate) fn everywhere(ctp: &Ctp) -> Self {
        let points: Vec<(ThreadId, Point)> = points(ctp);
        let mut cut =
            Self { nodes: points.iter().map(|&(_, point)| point).collect(), ..Self::default() };
        for &(thread, from) in &points {
            for &(other, to) in &points {
                if thread != other {
                    cut.switches.insert((from, to));
                }
            }
        }
        cut
    }

    /// The graph of it. Entries and ends are nodes in any case.
    pub(crate) fn graph(mut self, ctp: &Ctp) -> Graph {
        for (thread, point) in points(ctp) {
            let leaving = &ctp.leaving[point];
            if leaving.start == leaving.end || point == ctp.threads[thread].points.start {
                self.nodes.insert(point);
            }
        }
        let mut nodes: IndexVec<NodeId, Node> = IndexVec::new();
        let mut of: IndexVec<Point, Option<NodeId>> = IndexVec::from_elem(None, ctp.leaving.len());
        for (thread, point) in points(ctp) {
            if self.nodes.contains(&point) {
                of[point] = Some(nodes.push(Node { thread, point }));
            }
        }
        let edges = |set: &BTreeSet<(Point, Point)>| {
            let ends = set.iter().filter_map(|&(from, to)| of[from].zip(of[to]));
            ends.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let targets = |set: &BTreeSet<Point>| set.iter().filter_map(|&to| of[to]).collect();
        let entry = |thread: &Thread| thread.parent.is_none().then(|| of[thread.points.start]);
        Graph {
            kind: GraphKind::Ccfg,
            transactions: nodes
                .ids()
                .filter_map(|node| transaction(ctp, &nodes, &of, node))
                .collect(),
            switches: edges(&self.switches),
            orders: edges(&self.orders),
            stops: self
                .stops
                .iter()
                .map(|(point, set)| Stop { point: *point, targets: targets(set) })
                .collect(),
            roots: ctp.threads.iter().filter_map(entry).flatten().collect(),
            mats_count: None,
            nodes,
        }
    }
}

/// All points with whose they are.
pub(crate) fn points(ctp: &Ctp) -> Vec<(ThreadId, Point)> {
    let of = |(id, thread): (ThreadId, &Thread)| {
        let range = thread.points.start.index()..thread.points.end.index();
        range.map(move |index| (id, Point::from_index(index))).collect::<Vec<_>>()
    };
    ctp.threads.entries().flat_map(of).collect()
}

fn transaction(
    ctp: &Ctp,
    nodes: &IndexVec<NodeId, Node>,
    of: &IndexVec<Point, Option<NodeId>>,
    from: NodeId,
) -> Option<Transaction> {
    let mut steps = Vec::new();
    let mut exits = BTreeSet::new();
    let mut inside = BTreeSet::from([nodes[from].point]);
    while let Some(point) = inside.pop_first() {
        for (id, step) in ctp.steps_from(point) {
            steps.push(id);
            match of[step.to] {
                Some(exit) => {
                    exits.insert(exit);
                }
                None => {
                    inside.insert(step.to);
                }
            }
        }
    }
    let exits = exits.into_iter().collect();
    (!steps.is_empty()).then_some(Transaction { from, steps, exits })
}
