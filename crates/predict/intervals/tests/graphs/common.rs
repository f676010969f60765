//! Small concurrent trace programs, drawn or made of random bytes.

use reweave_base::{Id, IndexVec};
use reweave_intervals::ctp::{Action, Ctp, Owner, Point, Step, StepId, Thread};
use reweave_intervals::graph::{Graph, NodeId};
use reweave_intervals::terms::{Term, Terms};
use reweave_trace::{LockId, Names, ThreadId, VarId};

/// A step of a thread, between points counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) action: Action,
    pub(crate) has_guard: bool,
}

/// The program of these threads, whose variables and locks are numbered below eight.
pub(crate) fn program(threads: &[Vec<Edge>]) -> Ctp {
    let mut names = Names::default();
    let site = names.sites.intern("here");
    let (mut vars, mut locks) = (0, 0);
    for edge in threads.iter().flatten() {
        match edge.action {
            Action::Read(var) | Action::Write(var) | Action::Update(var) => {
                vars = vars.max(var.index() + 1);
            }
            Action::Acquire(lock) | Action::Release(lock) => locks = locks.max(lock.index() + 1),
            Action::Local | Action::Fork(_) | Action::Join(_) => {}
        }
    }
    (0..vars).for_each(|var| _ = names.vars.intern(&format!("v{var}")));
    (0..locks).for_each(|lock| _ = names.locks.intern(&format!("l{lock}")));
    let mut terms = Terms::default();
    let guard = terms.add(Term::Constant(1));
    let mut ctp = Ctp {
        terms,
        slots: (0..vars).map(|var| Owner::Shared(VarId::from_index(var))).collect(),
        initial: IndexVec::from_elem(0, vars),
        threads: IndexVec::new(),
        steps: IndexVec::new(),
        leaving: IndexVec::new(),
        names,
    };
    for edges in threads {
        let thread = ctp.names.threads.intern(&format!("t{}", ctp.threads.len()));
        let first = ctp.leaving.len();
        let first_step = ctp.steps.len();
        let count = edges.iter().map(|edge| edge.to + 1).max().unwrap_or(1);
        for point in 0..count {
            let start = StepId::from_index(ctp.steps.len());
            for edge in edges.iter().filter(|edge| edge.from == point) {
                ctp.steps.push(Step {
                    thread,
                    from: Point::from_index(first + edge.from),
                    to: Point::from_index(first + edge.to),
                    action: edge.action,
                    guard: edge.has_guard.then_some(guard),
                    store: None,
                    define: None,
                    assertion: None,
                    site,
                });
            }
            ctp.leaving.push(start..StepId::from_index(ctp.steps.len()));
        }
        ctp.threads.push(Thread {
            points: Point::from_index(first)..Point::from_index(first + count),
            steps: StepId::from_index(first_step)..StepId::from_index(ctp.steps.len()),
            parent: None,
        });
    }
    for index in 0..ctp.steps.len() {
        let step = ctp.steps[StepId::from_index(index)];
        if let Action::Fork(child) = step.action {
            ctp.threads[child].parent = Some(step.thread);
        }
    }
    ctp
}

/// The edges of a thread that does `actions` one after another.
pub(crate) fn chain(actions: impl IntoIterator<Item = (Action, bool)>) -> Vec<Edge> {
    let edge = |(from, (action, has_guard))| Edge { from, to: from + 1, action, has_guard };
    actions.into_iter().enumerate().map(edge).collect()
}

/// All well-formed threads of up to `length` steps of `words`, which are actions and whether they
/// have a guard; there is one lock.
pub(crate) fn threads_of(words: &[(Action, bool)], length: usize) -> Vec<Vec<Edge>> {
    let mut all: Vec<Vec<(Action, bool)>> = vec![Vec::new()];
    let mut layer = all.clone();
    for _ in 0..length {
        let longer = layer.iter().flat_map(|thread| {
            words.iter().map(|&word| thread.iter().copied().chain([word]).collect())
        });
        layer = longer.filter(|thread: &Vec<(Action, bool)>| is_well_formed(thread)).collect();
        all.extend(layer.iter().cloned());
    }
    all.into_iter().map(chain).collect()
}

fn is_well_formed(thread: &[(Action, bool)]) -> bool {
    let count = |action| thread.iter().filter(|other| other.0 == action).count();
    let position = |action| thread.iter().position(|other| other.0 == action);
    let mut is_held = false;
    for (action, _) in thread {
        match action {
            Action::Acquire(_) if is_held => return false,
            Action::Release(_) if !is_held => return false,
            Action::Acquire(_) => is_held = true,
            Action::Release(_) => is_held = false,
            _ => {}
        }
    }
    let child = ThreadId::from_index(1);
    let (fork, join) = (Action::Fork(child), Action::Join(child));
    count(fork) <= 1
        && count(join) <= 1
        && position(join).is_none_or(|join| position(fork).is_some_and(|fork| fork < join))
}

/// The program of threads of a single path, drawn as words: `Rx` reads, `Wx` writes and `Mx` updates a
/// variable, `Ll` and `Ul` lock and unlock, `F1` and `J1` fork and join, `.` does nothing, and
/// `?` before a word is a guard.
pub(crate) fn drawn(threads: &[&str]) -> Ctp {
    let mut names: [Vec<String>; 2] = Default::default();
    let edges: Vec<Vec<Edge>> = threads
        .iter()
        .map(|text| chain(text.split_whitespace().map(|word| action(word, &mut names))))
        .collect();
    program(&edges)
}

fn action(word: &str, [vars, locks]: &mut [Vec<String>; 2]) -> (Action, bool) {
    let plain = word.trim_start_matches('?');
    let number = |names: &mut Vec<String>, name: &str| {
        names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    };
    let (kind, name) = plain.split_at(1);
    let action = match kind {
        "." => Action::Local,
        "R" => Action::Read(VarId::from_index(number(vars, name))),
        "W" => Action::Write(VarId::from_index(number(vars, name))),
        "M" => Action::Update(VarId::from_index(number(vars, name))),
        "L" => Action::Acquire(LockId::from_index(number(locks, name))),
        "U" => Action::Release(LockId::from_index(number(locks, name))),
        "F" => Action::Fork(ThreadId::from_index(name.parse().expect("threads are numbers"))),
        "J" => Action::Join(ThreadId::from_index(name.parse().expect("threads are numbers"))),
        _ => panic!("{word} is no word"),
    };
    (action, plain != word)
}

/// The position of a node's point in its thread, counted from 0, and the thread.
pub(crate) fn place(ctp: &Ctp, graph: &Graph, node: NodeId) -> (usize, usize) {
    let node = graph.nodes[node];
    let start = ctp.threads[node.thread].points.start;
    (node.thread.index(), node.point.index() - start.index())
}

/// What random threads may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) vars: u8,
    pub(crate) locks: u8,
    /// Out of 16 steps so many have a guard.
    pub(crate) guards: u8,
    pub(crate) branches: bool,
    /// Whether locks may be left held at the end.
    pub(crate) leaks: bool,
}

/// A thread made of bytes: each is a step, and locks are taken and released in any order.
pub(crate) fn thread(bytes: &[u8], shape: Shape) -> Vec<Edge> {
    let mut maker = Maker { shape, edges: Vec::new(), points: 1, held: Vec::new() };
    let mut end = 0;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if shape.branches && byte % 5 == 4 && rest.len() >= 2 {
            let (left, right) = (rest[0], rest[1]);
            rest = &rest[2..];
            end = maker.branch(end, byte, left, right);
        } else {
            end = maker.step(end, byte);
        }
    }
    if !shape.leaks {
        while let Some(lock) = maker.held.pop() {
            end = maker.add(end, Action::Release(LockId::from_index(lock)), false);
        }
    }
    maker.edges
}

struct Maker {
    shape: Shape,
    edges: Vec<Edge>,
    points: usize,
    held: Vec<usize>,
}

impl Maker {
    fn add(&mut self, from: usize, action: Action, has_guard: bool) -> usize {
        let to = self.points;
        self.points += 1;
        self.edges.push(Edge { from, to, action, has_guard });
        to
    }

    fn action(&mut self, byte: u8) -> Action {
        let var = VarId::from_index(usize::from(byte / 8 % self.shape.vars));
        match byte % 8 {
            0 | 1 => Action::Read(var),
            2 => Action::Write(var),
            3 => Action::Update(var),
            4 => Action::Local,
            5 | 6 if self.shape.locks > 0 => {
                let lock = usize::from(byte / 8 % self.shape.locks);
                if self.held.contains(&lock) {
                    return Action::Write(var);
                }
                self.held.push(lock);
                Action::Acquire(LockId::from_index(lock))
            }
            _ if self.held.is_empty() => Action::Write(var),
            _ => {
                let index = usize::from(byte / 8) % self.held.len();
                Action::Release(LockId::from_index(self.held.remove(index)))
            }
        }
    }

    fn step(&mut self, from: usize, byte: u8) -> usize {
        let action = self.action(byte);
        self.add(from, action, byte / 16 < self.shape.guards)
    }

    /// Two ways that meet again: each one step behind a guard, inside which locks balance.
    fn branch(&mut self, from: usize, byte: u8, left: u8, right: u8) -> usize {
        let held = self.held.clone();
        let guard =
            if byte.is_multiple_of(2) { Action::Local } else { Action::Read(VarId::from_index(0)) };
        let mut ends = Vec::new();
        for way in [left, right] {
            self.held.clone_from(&held);
            let mut end = self.add(from, guard, true);
            if way % 4 > 0 {
                end = self.step(end, way);
            }
            while self.held.len() > held.len() {
                let lock = self.held.pop().expect("it holds more");
                end = self.add(end, Action::Release(LockId::from_index(lock)), false);
            }
            // A way that released what it did not take leaves the others in doubt.
            ends.push((end, self.held.clone()));
        }
        self.held = ends[0].1.iter().copied().filter(|lock| ends[1].1.contains(lock)).collect();
        let meeting = self.points;
        self.points += 1;
        for (end, _) in ends {
            self.edges.push(Edge {
                from: end,
                to: meeting,
                action: Action::Local,
                has_guard: false,
            });
        }
        meeting
    }
}
