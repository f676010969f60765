//! Small concurrent trace programs: written by hand, and at random.

use std::ops::Range;

use reweave_base::{Id, IndexVec, Rng};
use reweave_intervals::ctp::{Action, Ctp, Owner, Point, Step, StepId, Thread};
use reweave_intervals::symbolic::Unit;
use reweave_intervals::terms::{Slot, Term, TermId, Terms};
use reweave_trace::{Binary, LocalId, LockId, Names, ThreadId, Unary, VarId};

/// Builds a program, a thread after the other. All threads have the same locals.
pub(crate) struct Builder {
    pub(crate) terms: Terms,
    names: Names,
    initial: Vec<i64>,
    locals_count: usize,
    threads: Vec<(Vec<Step>, usize, Option<ThreadId>)>,
}

impl Builder {
    pub(crate) fn new(initial: &[i64], locks_count: usize, locals_count: usize) -> Self {
        let mut names = Names::default();
        for var in 0..initial.len() {
            names.vars.intern(&format!("x{var}"));
        }
        for lock in 0..locks_count {
            names.locks.intern(&format!("l{lock}"));
        }
        for local in 0..locals_count {
            names.locals.intern(&format!("t{local}"));
        }
        names.sites.intern("here");
        let (terms, initial) = (Terms::default(), initial.to_vec());
        Self { terms, names, initial, locals_count, threads: Vec::new() }
    }

    pub(crate) fn thread(&mut self, parent: Option<ThreadId>) -> ThreadId {
        let name = format!("thread{}", self.threads.len());
        self.threads.push((Vec::new(), 1, parent));
        self.names.threads.intern(&name)
    }

    pub(crate) fn shared(var: usize) -> Slot {
        Slot::from_index(var)
    }

    /// The slot of a local of the thread under construction.
    pub(crate) fn local(&self, local: usize) -> Slot {
        let before = self.initial.len() + (self.threads.len() - 1) * self.locals_count;
        Slot::from_index(before + local)
    }

    pub(crate) fn number(&mut self, number: i64) -> TermId {
        self.terms.add(Term::Constant(number))
    }

    pub(crate) fn slot(&mut self, slot: Slot) -> TermId {
        self.terms.add(Term::Slot(slot))
    }

    pub(crate) fn binary(&mut self, operator: Binary, left: TermId, right: TermId) -> TermId {
        self.terms.add(Term::Binary(operator, left, right))
    }

    /// A point of the thread under construction, after all before.
    pub(crate) fn point(&mut self) -> Point {
        let (_, points_count, _) = self.threads.last_mut().unwrap();
        *points_count += 1;
        Point::from_index(*points_count - 1)
    }

    pub(crate) fn step(&mut self, from: Point, to: Point, action: Action) -> &mut Step {
        let thread = ThreadId::from_index(self.threads.len() - 1);
        let (steps, ..) = self.threads.last_mut().unwrap();
        let site = reweave_trace::SiteId::from_index(0);
        steps.push(Step {
            thread,
            from,
            to,
            action,
            guard: None,
            store: None,
            define: None,
            assertion: None,
            site,
        });
        steps.last_mut().unwrap()
    }

    /// A step from the last point to a new one.
    pub(crate) fn next(&mut self, action: Action) -> &mut Step {
        let (_, points_count, _) = self.threads.last().unwrap();
        let from = Point::from_index(points_count - 1);
        let to = self.point();
        self.step(from, to, action)
    }

    pub(crate) fn finish(self) -> Ctp {
        let mut ctp = Ctp {
            terms: self.terms,
            slots: IndexVec::default(),
            initial: IndexVec::default(),
            threads: IndexVec::default(),
            steps: IndexVec::default(),
            leaving: IndexVec::default(),
            names: self.names,
        };
        for (var, &value) in self.initial.iter().enumerate() {
            ctp.slots.push(Owner::Shared(VarId::from_index(var)));
            ctp.initial.push(value);
        }
        for (thread, (mut steps, points_count, parent)) in self.threads.into_iter().enumerate() {
            for local in 0..self.locals_count {
                let owner = ThreadId::from_index(thread);
                ctp.slots.push(Owner::Local(owner, LocalId::from_index(local)));
                ctp.initial.push(0);
            }
            steps.sort_by_key(|step| step.from);
            let (points, first) = (ctp.leaving.len(), ctp.steps.len());
            let moved = |point: Point| Point::from_index(points + point.index());
            for step in steps {
                ctp.steps.push(Step { from: moved(step.from), to: moved(step.to), ..step });
            }
            let mut at = first;
            for point in points..points + points_count {
                let start = at;
                while at < ctp.steps.len()
                    && ctp.steps[StepId::from_index(at)].from.index() == point
                {
                    at += 1;
                }
                ctp.leaving.push(StepId::from_index(start)..StepId::from_index(at));
            }
            let range = |start: usize, end: usize| -> Range<Point> {
                Point::from_index(start)..Point::from_index(end)
            };
            ctp.threads.push(Thread {
                points: range(points, points + points_count),
                steps: StepId::from_index(first)..StepId::from_index(at),
                parent,
            });
        }
        ctp
    }
}

/// What random programs look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) threads: usize,
    pub(crate) statements: usize,
    pub(crate) branches: bool,
    pub(crate) forks: bool,
    /// The first variable is only ever added to.
    pub(crate) counts: bool,
}

struct Author<'a> {
    builder: Builder,
    random: &'a mut Rng,
    shape: Shape,
    /// How many threads the one under construction may fork and join.
    children: usize,
}

const VARS: usize = 2;
const LOCALS: usize = 2;

/// A program of `shape`.
pub(crate) fn random_program(random: &mut Rng, shape: Shape) -> Ctp {
    let initial = [random.below(3) as i64, random.below(3) as i64 - 1];
    let builder = Builder::new(&initial, 2, LOCALS);
    let mut author = Author { builder, random, shape, children: 0 };
    for thread in 0..shape.threads {
        let parent = (shape.forks && thread > 0).then(|| ThreadId::from_index(0));
        author.builder.thread(parent);
        let children = if shape.forks && thread == 0 { shape.threads - 1 } else { 0 };
        author.children = children;
        // A fork may be missing here, to come in a branch or not at all.
        for child in 0..children {
            if author.random.chance(20) {
                continue;
            }
            author.builder.next(Action::Fork(ThreadId::from_index(child + 1)));
        }
        author.statements(shape.statements, &mut Vec::new());
        if children > 0 && author.random.chance(70) {
            author.builder.next(Action::Join(ThreadId::from_index(children)));
            author.access();
        }
    }
    author.builder.finish()
}

impl Author<'_> {
    fn statements(&mut self, count: usize, held: &mut Vec<usize>) {
        let mut left = count;
        while left > 0 {
            left -= 1;
            match self.random.below(10) {
                0..=1 if self.shape.branches && left > 0 => self.branch(held),
                2..=4 if left > 0 => {
                    let lock = self.random.below(2);
                    // Now and then a thread takes what it holds, and stops there for good.
                    if held.contains(&lock) && !self.random.chance(10) {
                        continue;
                    }
                    let id = LockId::from_index(lock);
                    self.builder.next(Action::Acquire(id));
                    held.push(lock);
                    let inner = 1 + self.random.below(left);
                    self.statements(inner, held);
                    left -= inner.min(left);
                    held.pop();
                    self.builder.next(Action::Release(id));
                }
                _ => self.access(),
            }
        }
    }

    /// Two ways that meet again, with guards that exclude each other or not.
    fn branch(&mut self, held: &mut Vec<usize>) {
        let condition = self.condition(None);
        let other = match self.random.below(3) {
            0 => None,
            1 => Some(self.condition(None)),
            _ => Some(self.builder.terms.add(Term::Unary(Unary::Not, condition))),
        };
        self.builder.next(Action::Local);
        let from = Point::from_index(self.points_count() - 1);
        let mut ends = Vec::new();
        for guard in [Some(condition), other] {
            let to = self.builder.point();
            self.builder.step(from, to, Action::Local).guard = guard;
            let inner = self.random.below(2);
            self.statements(inner, held);
            ends.push(Point::from_index(self.points_count() - 1));
        }
        let meet = self.builder.point();
        for end in ends {
            self.builder.step(end, meet, Action::Local);
        }
    }

    fn points_count(&self) -> usize {
        self.builder.threads.last().unwrap().1
    }

    fn leaf(&mut self, var: Option<usize>) -> TermId {
        match self.random.below(4) {
            0 => {
                let number = self.random.below(6) as i64 - 2;
                self.builder.number(number)
            }
            1 | 2 if var.is_some() => self.builder.slot(Builder::shared(var.unwrap())),
            _ => {
                let slot = self.builder.local(self.random.below(LOCALS));
                self.builder.slot(slot)
            }
        }
    }

    fn value(&mut self, var: Option<usize>) -> TermId {
        const USUAL: [Binary; 4] = [Binary::Add, Binary::Subtract, Binary::Add, Binary::BitXor];
        const RARE: [Binary; 7] = [
            Binary::Multiply,
            Binary::Divide,
            Binary::Remainder,
            Binary::ShiftLeft,
            Binary::ShiftRight,
            Binary::BitAnd,
            Binary::BitOr,
        ];
        let left = self.leaf(var);
        let operator = match self.random.below(10) {
            0..=3 => return left,
            4..=8 => *self.random.pick(&USUAL).unwrap(),
            _ => *self.random.pick(&RARE).unwrap(),
        };
        let right = self.leaf(var);
        self.builder.binary(operator, left, right)
    }

    fn condition(&mut self, var: Option<usize>) -> TermId {
        let operator = *self.random.pick(Binary::TESTS).unwrap();
        let (left, right) = (self.value(var), self.leaf(None));
        self.builder.binary(operator, left, right)
    }

    fn access(&mut self) {
        if self.children > 0 && self.random.chance(12) {
            let child = ThreadId::from_index(1 + self.random.below(self.children));
            let forks = self.random.chance(50);
            self.builder.next(if forks { Action::Fork(child) } else { Action::Join(child) });
        }
        let var = self.random.below(VARS);
        let id = VarId::from_index(var);
        let local = self.builder.local(self.random.below(LOCALS));
        let with_guard = self.random.chance(20);
        let with_assertion = self.random.chance(30);
        let (action, readable) = match self.random.below(7) {
            0..=2 => (Action::Read(id), Some(var)),
            3..=4 => (Action::Write(id), None),
            5 => (Action::Update(id), Some(var)),
            _ => (Action::Local, None),
        };
        let counts = self.shape.counts && var == 0;
        let (action, readable) = match action {
            Action::Write(_) if counts => (Action::Update(id), Some(var)),
            _ => (action, readable),
        };
        let guard = with_guard.then(|| self.condition(readable));
        let assertion = with_assertion.then(|| self.condition(readable));
        let value = match action {
            Action::Update(_) if counts => {
                let found = self.builder.slot(Builder::shared(var));
                let added = self.builder.number(self.random.below(4) as i64);
                self.builder.binary(Binary::Add, found, added)
            }
            _ => self.value(readable),
        };
        let copied = readable.map(|var| self.builder.slot(Builder::shared(var)));
        let step = self.builder.next(action);
        (step.guard, step.assertion) = (guard, assertion);
        match action {
            Action::Write(_) => step.store = Some((Builder::shared(var), value)),
            Action::Update(_) => {
                step.store = Some((Builder::shared(var), value));
                step.define = Some((local, copied.unwrap()));
            }
            Action::Read(_) if !with_guard => step.define = Some((local, copied.unwrap())),
            _ => step.define = Some((local, value)),
        }
    }
}

/// Units that start at entries and at points taken at random.
pub(crate) fn random_units(ctp: &Ctp, random: &mut Rng, percent: usize) -> Vec<Unit> {
    let mut is_node: IndexVec<Point, bool> =
        ctp.leaving.ids().map(|_| random.chance(percent)).collect();
    for thread in ctp.threads.iter() {
        is_node[thread.points.start] = true;
    }
    let mut units = Vec::new();
    for from in ctp.leaving.ids().filter(|&point| is_node[point]) {
        let mut is_inside = IndexVec::from_elem(false, ctp.leaving.len());
        is_inside[from] = true;
        let mut steps = Vec::new();
        for (id, step) in ctp.steps.entries() {
            if is_inside[step.from] {
                steps.push(id);
                is_inside[step.to] = !is_node[step.to];
            }
        }
        if !steps.is_empty() {
            units.push(Unit { from, steps });
        }
    }
    units
}
