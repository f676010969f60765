//! Random and enumerated programs and graphs.

use std::collections::BTreeSet;

use reweave_base::{Id, Rng};
use reweave_intervals::ctp::{Action, Ctp, Point};
use reweave_intervals::graph::Graph;
use reweave_intervals::terms::{Slot, Term, TermId};
use reweave_trace::{Binary, LockId, ThreadId, Unary, VarId};

use crate::ranges::common::{Cut, Draft, Sketch, points};

const ARITHMETIC: [Binary; 8] = [
    Binary::Add,
    Binary::Add,
    Binary::Subtract,
    Binary::Multiply,
    Binary::Divide,
    Binary::Remainder,
    Binary::BitAnd,
    Binary::ShiftLeft,
];

/// A program of two or three threads with two shared variables, two locals each and two locks:
/// every action, guards, branches, assertions and divisions.
pub(crate) fn program(seed: u64) -> Ctp {
    let mut rng = Rng::new(seed);
    let threads_count = 2 + usize::from(rng.chance(40));
    let mut maker = Maker { sketch: Sketch::default(), thread: 0, drafts: Vec::new(), at: 0 };
    for name in ["X", "Y"] {
        maker.sketch.shared.push((name.into(), rng.below(4) as i64 - 1));
    }
    for thread in 0..threads_count {
        let local = |name: &str| (format!("{name}{thread}"), rng.below(3) as i64);
        let locals = ["p", "q"].map(local).to_vec();
        maker.sketch.locals.push(locals);
    }
    let child = (threads_count == 3 && rng.chance(50)).then_some(2);
    for thread in 0..threads_count {
        let is_parent = thread == 0 && child.is_some();
        (maker.thread, maker.at) = (thread, 0);
        let parts = 1 + rng.below(if threads_count == 2 { 4 } else { 2 });
        let forked = rng.below(parts);
        for part in 0..parts {
            if is_parent && part == forked {
                maker.fork(&mut rng);
            }
            maker.part(&mut rng);
        }
        if is_parent && rng.chance(60) {
            maker.step(Draft::new(0, 0, Action::Join(ThreadId::from_index(2))));
            if rng.chance(50) {
                maker.part(&mut rng);
            }
        }
        maker.sketch.steps.push(std::mem::take(&mut maker.drafts));
        maker.sketch.parents.push((child == Some(thread)).then_some(0));
    }
    maker.sketch.finish()
}

struct Maker {
    sketch: Sketch,
    thread: usize,
    drafts: Vec<Draft>,
    /// The point that the next step starts from; all points so far are at most this.
    at: usize,
}

impl Maker {
    /// Adds a step from where the thread is to a new point.
    fn step(&mut self, draft: Draft) {
        self.drafts.push(Draft { from: self.at, to: self.at + 1, ..draft });
        self.at += 1;
    }

    fn part(&mut self, rng: &mut Rng) {
        match rng.below(10) {
            0..=5 => self.simple(rng),
            6 | 7 => {
                let lock = LockId::from_index(rng.below(2));
                self.step(Draft::new(0, 0, Action::Acquire(lock)));
                self.simple(rng);
                if rng.chance(30) {
                    self.simple(rng);
                }
                self.step(Draft::new(0, 0, Action::Release(lock)));
            }
            _ => self.branch(rng),
        }
    }

    /// Two ways that part here and meet again; both, one or none of them may be open.
    fn branch(&mut self, rng: &mut Rng) {
        let first = self.test(rng, None);
        let second = match rng.chance(60) {
            true => self.sketch.term(Term::Unary(Unary::Not, first)),
            false => self.test(rng, None),
        };
        let split = self.at;
        let middle = [split + 1, split + 2];
        for (guard, point) in [first, second].into_iter().zip(middle) {
            let local = Draft { guard: Some(guard), ..Draft::new(split, point, Action::Local) };
            self.drafts.push(local);
        }
        for point in middle {
            let draft = self.draft(rng);
            self.drafts.push(Draft { from: point, to: split + 3, ..draft });
        }
        self.at = split + 3;
    }

    /// Forks the third thread, in any case or only on one of two ways.
    fn fork(&mut self, rng: &mut Rng) {
        let fork = Draft::new(0, 0, Action::Fork(ThreadId::from_index(2)));
        if rng.chance(60) {
            self.step(fork);
            return;
        }
        let test = self.test(rng, None);
        let otherwise = self.sketch.term(Term::Unary(Unary::Not, test));
        let local = Draft::new(0, 0, Action::Local);
        let (from, to) = (self.at, self.at + 1);
        self.drafts.push(Draft { from, to, guard: Some(test), ..fork });
        self.drafts.push(Draft { from, to, guard: Some(otherwise), ..local });
        self.at += 1;
    }

    fn simple(&mut self, rng: &mut Rng) {
        let draft = self.draft(rng);
        self.step(draft);
    }

    /// One step that takes no lock.
    fn draft(&mut self, rng: &mut Rng) -> Draft {
        let shared = rng.below(2);
        let var = VarId::from_index(shared);
        let slot = self.sketch.shared_slot(shared);
        let local = self.sketch.local_slot(self.thread, rng.below(2));
        let mut draft = Draft::new(0, 0, Action::Local);
        match rng.below(6) {
            0 | 1 => {
                draft.action = Action::Read(var);
                draft.define = Some((local, self.number(rng, Some(slot), 1)));
            }
            2 | 3 => {
                draft.action = Action::Write(var);
                draft.store = Some((slot, self.number(rng, None, 2)));
            }
            4 => {
                draft.action = Action::Update(var);
                draft.store = Some((slot, self.number(rng, Some(slot), 2)));
                draft.define = rng.chance(50).then(|| (local, self.number(rng, Some(slot), 0)));
            }
            _ => draft.define = Some((local, self.number(rng, None, 2))),
        }
        let seen = matches!(draft.action, Action::Read(_) | Action::Update(_)).then_some(slot);
        if rng.chance(20) {
            draft.guard = Some(self.test(rng, seen));
        }
        if rng.chance(20) {
            draft.assertion = Some(self.test(rng, seen));
        }
        draft
    }

    fn leaf(&mut self, rng: &mut Rng, seen: Option<Slot>) -> TermId {
        let term = match seen {
            Some(slot) if rng.chance(50) => Term::Slot(slot),
            _ if rng.chance(60) => Term::Slot(self.sketch.local_slot(self.thread, rng.below(2))),
            _ => Term::Constant(rng.below(5) as i64 - 1),
        };
        self.sketch.term(term)
    }

    fn number(&mut self, rng: &mut Rng, seen: Option<Slot>, depth: usize) -> TermId {
        if depth == 0 || rng.chance(35) {
            return self.leaf(rng, seen);
        }
        let left = self.number(rng, seen, depth - 1);
        if rng.chance(10) {
            return self.sketch.term(Term::Unary(Unary::Negate, left));
        }
        let right = self.number(rng, seen, depth - 1);
        let operator = *rng.pick(&ARITHMETIC).expect("there are some");
        self.sketch.term(Term::Binary(operator, left, right))
    }

    fn test(&mut self, rng: &mut Rng, seen: Option<Slot>) -> TermId {
        let left = self.number(rng, seen, 1);
        let right = self.leaf(rng, seen);
        let operator = *rng.pick(Binary::TESTS).expect("there are some");
        self.sketch.term(Term::Binary(operator, left, right))
    }
}

/// Any graph over `ctp`, whether or not it stands for its interleavings.
pub(crate) fn graph(ctp: &Ctp, seed: u64) -> Graph {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let (cuts, passes) = (20 + rng.below(81), 20 + rng.below(81));
    let mut cut = Cut::default();
    let all = points(ctp);
    cut.nodes.extend(all.iter().map(|&(_, point)| point).filter(|_| rng.chance(cuts)));
    for &(thread, from) in &all {
        for &(other, to) in &all {
            if thread != other && rng.chance(passes) {
                cut.switches.insert((from, to));
            } else if thread != other && rng.chance(10) {
                cut.orders.insert((from, to));
            }
        }
        if rng.chance(30) {
            let others = all.iter().filter(|&&(other, _)| other != thread);
            let targets: BTreeSet<Point> =
                others.map(|&(_, point)| point).filter(|_| rng.chance(60)).collect();
            cut.stops.push((from, targets));
        }
    }
    cut.graph(ctp)
}

/// All programs of two threads, each of two steps out of a few kinds.
pub(crate) fn small_programs() -> impl Iterator<Item = Ctp> {
    const KINDS: usize = 8;
    (0..KINDS.pow(4)).map(|code| {
        let mut sketch = Sketch::default();
        sketch.shared.push(("X".into(), 0));
        sketch.locals = vec![vec![("p".into(), 0)], vec![("q".into(), 1)]];
        let mut code = code;
        for thread in 0..2 {
            let mut steps = Vec::new();
            for index in 0..2 {
                let draft = kind(&mut sketch, thread, code % KINDS);
                steps.push(Draft { from: index, to: index + 1, ..draft });
                code /= KINDS;
            }
            sketch.steps.push(steps);
        }
        sketch.finish()
    })
}

fn kind(sketch: &mut Sketch, thread: usize, kind: usize) -> Draft {
    let var = VarId::from_index(0);
    let (shared, local) = (sketch.shared_slot(0), sketch.local_slot(thread, 0));
    let (x, p) = (sketch.term(Term::Slot(shared)), sketch.term(Term::Slot(local)));
    let one = sketch.term(Term::Constant(1));
    let mut binary = |operator, left, right| sketch.term(Term::Binary(operator, left, right));
    let draft = |action| Draft::new(0, 0, action);
    match kind {
        0 => Draft { define: Some((local, x)), ..draft(Action::Read(var)) },
        1 => Draft {
            store: Some((shared, binary(Binary::Add, p, one))),
            ..draft(Action::Write(var))
        },
        2 => {
            Draft { store: Some((shared, binary(Binary::Add, x, x))), ..draft(Action::Update(var)) }
        }
        3 => draft(Action::Acquire(LockId::from_index(0))),
        4 => Draft { guard: Some(binary(Binary::Less, p, one)), ..draft(Action::Local) },
        5 => Draft { assertion: Some(binary(Binary::Less, p, one)), ..draft(Action::Local) },
        6 => {
            Draft { define: Some((local, binary(Binary::Divide, one, p))), ..draft(Action::Local) }
        }
        _ => Draft {
            guard: Some(binary(Binary::NotEqual, x, p)),
            define: Some((local, x)),
            ..draft(Action::Read(var))
        },
    }
}
