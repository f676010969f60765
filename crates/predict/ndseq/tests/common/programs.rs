//! Small structured programs and their runs, made directly as traces with a flow layer.
//!
//! A run need not be one that values allow: whether a branch is taken and a compare-and-swap
//! succeeds is chosen like the schedule. What chooses is a parameter, so that runs can be drawn at
//! random or gone through one by one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use reweave_base::Rng;
use reweave_trace::{
    AccessOp, EventId, Extent, Flow, Instance, InstanceId, LocalId, LockOp, Marker, MemoryOrder,
    Op, StaticBlock, StaticBlockId, Step, ThreadId, ThreadOp, Trace, TraceBuilder,
};

/// A statement; blocks, variables and locals are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Let {
        local: usize,
        uses: Vec<usize>,
    },
    Read {
        local: usize,
        var: usize,
    },
    UnknownRead {
        local: usize,
        var: usize,
    },
    Write {
        var: usize,
        uses: Vec<usize>,
    },
    AtomicWrite {
        var: usize,
        uses: Vec<usize>,
    },
    Swap {
        local: usize,
        var: usize,
        uses: Vec<usize>,
    },
    If {
        condition: usize,
        body: usize,
    },
    While {
        condition: usize,
        body: usize,
    },
    Optional {
        body: usize,
    },
    Call {
        body: usize,
    },
    Parallel {
        bodies: Vec<usize>,
        captured: Vec<usize>,
    },
    /// Starts a thread that nobody waits for.
    Fork {
        body: usize,
        captured: Vec<usize>,
    },
    Sync,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    inside: Option<(usize, usize)>,
    pub(crate) is_optional: bool,
    pub(crate) statements: Vec<Statement>,
}

/// A program: its blocks, those that are the bodies of its threads, and its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) blocks: Vec<Block>,
    pub(crate) threads: Vec<usize>,
    pub(crate) focus: Vec<usize>,
    functions: Vec<usize>,
}

const VARS: usize = 3;
const LOCALS: usize = 4;

impl Program {
    fn block(&mut self, inside: Option<(usize, usize)>) -> usize {
        self.blocks.push(Block { inside, ..Block::default() });
        self.blocks.len() - 1
    }

    /// A program of threads with these bodies, whose result are the variables `focus`.
    pub(crate) fn new(
        bodies: &[Vec<Statement>],
        blocks: &[Vec<Statement>],
        focus: &[usize],
    ) -> Self {
        let mut program = Self { focus: focus.to_vec(), ..Self::default() };
        for statements in blocks {
            let block = program.block(None);
            program.blocks[block].statements.clone_from(statements);
        }
        for statements in bodies {
            let block = program.block(None);
            program.blocks[block].statements.clone_from(statements);
            program.threads.push(block);
        }
        program
    }

    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut program = Self::default();
        if rng.chance(25) {
            let body = program.block(None);
            program.functions.push(body);
            program.fill(body, 2, 2, rng);
        }
        let is_contended = rng.chance(60);
        let bodies = 1 + rng.below(2);
        for index in 0..bodies {
            let body = program.block(None);
            if is_contended {
                program.fill_contended(body, index, rng);
            } else {
                let length = 1 + rng.below(3);
                program.fill(body, length, 0, rng);
            }
            program.threads.push(body);
        }
        // Threads that run the same body are what retry loops are about.
        let threads_count = if is_contended { 2 * bodies } else { 2 + rng.below(2) };
        while program.threads.len() < threads_count {
            let body = program.threads[program.threads.len() % bodies];
            program.threads.push(body);
        }
        program.focus.push(0);
        if rng.chance(30) {
            program.focus.push(1);
        }
        program
    }

    fn fill(&mut self, block: usize, length: usize, depth: usize, rng: &mut Rng) {
        for position in 0..length {
            self.blocks[block].statements.push(Statement::Sync);
            let statement = self.statement(block, position, depth, rng);
            self.blocks[block].statements[position] = statement;
        }
    }

    /// A retry loop, with or without something beside it or around it.
    fn fill_contended(&mut self, block: usize, var: usize, rng: &mut Rng) {
        let retry_at = rng.below(2);
        for position in 0..=retry_at {
            self.blocks[block].statements.push(Statement::Sync);
            let at = (block, position);
            let statement = if position < retry_at {
                self.statement(block, position, 2, rng)
            } else if rng.chance(25) {
                let body = self.block(Some(at));
                self.blocks[body].statements.push(Statement::Sync);
                self.blocks[body].statements[0] = self.retry((body, 0), var, rng);
                self.blocks[body].is_optional = rng.chance(50);
                match (self.blocks[body].is_optional, rng.chance(50)) {
                    (true, _) => Statement::Optional { body },
                    (false, true) => Statement::If { condition: 0, body },
                    (false, false) => {
                        Statement::Parallel { bodies: vec![body; 2], captured: vec![3] }
                    }
                }
            } else {
                self.retry(at, var, rng)
            };
            self.blocks[block].statements[position] = statement;
        }
    }

    fn body(&mut self, at: (usize, usize), depth: usize, rng: &mut Rng) -> usize {
        let body = self.block(Some(at));
        let length = 1 + rng.below(2);
        self.fill(body, length, depth + 1, rng);
        body
    }

    fn statement(
        &mut self,
        block: usize,
        position: usize,
        depth: usize,
        rng: &mut Rng,
    ) -> Statement {
        let at = (block, position);
        let local = rng.below(LOCALS);
        let var = if rng.chance(60) { 0 } else { rng.below(VARS) };
        let uses = |rng: &mut Rng| (0..rng.below(3)).map(|_| rng.below(LOCALS)).collect::<Vec<_>>();
        if depth < 3 && rng.chance(45) {
            return match rng.below(13) {
                0..4 => self.retry(at, var, rng),
                4..7 => Statement::If { condition: local, body: self.body(at, depth, rng) },
                7 | 8 => Statement::While { condition: local, body: self.body(at, depth, rng) },
                9 => {
                    let body = self.body(at, depth, rng);
                    self.blocks[body].is_optional = true;
                    Statement::Optional { body }
                }
                10 => match self.functions.first() {
                    Some(&body) if body != block && depth < 2 => Statement::Call { body },
                    _ => Statement::Sync,
                },
                11 => Statement::Fork { body: self.body(at, depth + 1, rng), captured: uses(rng) },
                _ => {
                    let count = 1 + rng.below(2);
                    let bodies = (0..count).map(|_| self.body(at, depth + 1, rng)).collect();
                    Statement::Parallel { bodies, captured: uses(rng) }
                }
            };
        }
        match rng.below(12) {
            0 | 1 => Statement::Let { local, uses: uses(rng) },
            2..5 => Statement::Read { local, var },
            5 => Statement::UnknownRead { local, var },
            6..8 => Statement::Write { var, uses: uses(rng) },
            8 => Statement::AtomicWrite { var, uses: uses(rng) },
            9 | 10 => Statement::Swap { local, var, uses: uses(rng) },
            _ => Statement::Sync,
        }
    }

    /// The loop of a compare-and-swap that is tried again until it succeeds.
    fn retry(&mut self, at: (usize, usize), var: usize, rng: &mut Rng) -> Statement {
        let body = self.block(Some(at));
        let mut statements = vec![Statement::Read { local: 0, var }];
        if rng.chance(50) {
            statements.push(Statement::Let { local: 1, uses: vec![0] });
        }
        statements.push(Statement::Swap { local: 2, var, uses: vec![0, 1] });
        let position = statements.len();
        statements.push(Statement::Sync);
        self.blocks[body].statements = statements;
        self.blocks[body].is_optional = rng.chance(5);
        let success = self.block(Some((body, position)));
        self.blocks[success].statements = vec![Statement::Let { local: 3, uses: vec![] }];
        self.blocks[body].statements[position] = Statement::If { condition: 2, body: success };
        Statement::While { condition: 3, body }
    }

    /// A run of the program: `choose(n)` decides between `n` ways to go on.
    pub(crate) fn run(&self, events_max: usize, choose: &mut dyn FnMut(usize) -> usize) -> Trace {
        let mut scripts = Scripts {
            program: self,
            flow: Flow::default(),
            scripts: Vec::new(),
            executions: 0,
            events_left: events_max,
        };
        for block in &self.blocks {
            scripts.flow.add_block(StaticBlock {
                inside: block.inside.map(|(outer, at)| (block_id(outer), at as u32)),
                is_optional: block.is_optional,
                statements: block.statements.iter().map(|_| Extent::default()).collect(),
            });
        }
        for &body in &self.threads {
            scripts.scripts.push(Script { is_started: true, ..Script::default() });
            let thread = scripts.scripts.len() - 1;
            scripts.block(thread, body, None, None, choose);
        }
        scripts.interleave(choose)
    }
}

fn block_id(index: usize) -> StaticBlockId {
    StaticBlockId::from_number(index as u32 + 1).unwrap()
}

/// What a thread does, in order.
#[derive(Default)]
struct Script {
    is_started: bool,
    items: Vec<Item>,
    next: usize,
}

struct Item {
    act: Act,
    uses: Vec<usize>,
    defines: Option<usize>,
    /// The branch that decided it: the thread and the item.
    control: Option<(usize, usize)>,
    instance: InstanceId,
    event: Option<EventId>,
}

#[derive(Clone, Copy)]
enum Act {
    Branch,
    Let,
    Read(usize),
    UnknownRead(usize),
    Write(usize),
    AtomicWrite(usize),
    Update(usize),
    FailedUpdate(usize),
    Fork(usize),
    Join(usize),
    Acquire,
    Release,
}

type Control = Option<(usize, usize)>;
type Choose<'c> = &'c mut dyn FnMut(usize) -> usize;

struct Scripts<'p> {
    program: &'p Program,
    flow: Flow,
    scripts: Vec<Script>,
    executions: u32,
    events_left: usize,
}

impl Scripts<'_> {
    fn block(
        &mut self,
        thread: usize,
        block: usize,
        parent: Option<InstanceId>,
        control: Control,
        choose: Choose<'_>,
    ) {
        let execution = self.executions;
        self.executions += 1;
        let program = self.program;
        for (position, statement) in program.blocks[block].statements.iter().enumerate() {
            if self.events_left == 0 {
                return;
            }
            let instance = self.flow.add_instance(Instance {
                parent,
                block: block_id(block),
                execution,
                position: position as u32,
            });
            self.statement(thread, statement, instance, control, choose);
        }
    }

    fn push(&mut self, thread: usize, item: Item) -> Control {
        if !matches!(item.act, Act::Fork(_) | Act::Join(_) | Act::Acquire | Act::Release) {
            self.events_left = self.events_left.saturating_sub(1);
        }
        self.scripts[thread].items.push(item);
        Some((thread, self.scripts[thread].items.len() - 1))
    }

    fn statement(
        &mut self,
        thread: usize,
        statement: &Statement,
        instance: InstanceId,
        control: Control,
        choose: Choose<'_>,
    ) {
        let item = |act, uses: &[usize], defines| Item {
            act,
            uses: uses.to_vec(),
            defines,
            control,
            instance,
            event: None,
        };
        match statement {
            Statement::Let { local, uses } => {
                self.push(thread, item(Act::Let, uses, Some(*local)));
            }
            Statement::Read { .. }
            | Statement::UnknownRead { .. }
            | Statement::Write { .. }
            | Statement::AtomicWrite { .. }
            | Statement::Swap { .. } => {
                let (act, uses, defines) = access(statement, choose);
                self.push(thread, item(act, uses, defines));
            }
            Statement::If { condition, body } => {
                let branch = self.push(thread, item(Act::Branch, &[*condition], None));
                if choose(2) == 1 {
                    self.block(thread, *body, Some(instance), branch, choose);
                }
            }
            Statement::While { condition, body } => {
                for _ in 0..choose(3) {
                    let branch = self.push(thread, item(Act::Branch, &[*condition], None));
                    self.block(thread, *body, Some(instance), branch, choose);
                }
                self.push(thread, item(Act::Branch, &[*condition], None));
            }
            Statement::Optional { body } | Statement::Call { body } => {
                self.block(thread, *body, Some(instance), control, choose);
            }
            Statement::Parallel { bodies, captured } => {
                let mut children = Vec::new();
                for &body in bodies {
                    self.scripts.push(Script::default());
                    let child = self.scripts.len() - 1;
                    children.push(child);
                    self.push(thread, item(Act::Fork(child), captured, None));
                    self.block(child, body, Some(instance), control, choose);
                }
                for child in children {
                    self.push(thread, item(Act::Join(child), &[], None));
                }
            }
            Statement::Fork { body, captured } => {
                self.scripts.push(Script::default());
                let child = self.scripts.len() - 1;
                self.push(thread, item(Act::Fork(child), captured, None));
                self.block(child, *body, Some(instance), control, choose);
            }
            Statement::Sync => {
                self.push(thread, item(Act::Acquire, &[], None));
                self.push(thread, item(Act::Release, &[], None));
            }
        }
    }

    fn can_go_on(&self, thread: usize) -> bool {
        let script = &self.scripts[thread];
        let Some(item) = script.items.get(script.next) else { return false };
        let is_over = |child: usize| self.scripts[child].next == self.scripts[child].items.len();
        script.is_started
            && match item.act {
                Act::Join(child) => self.scripts[child].is_started && is_over(child),
                _ => true,
            }
    }

    fn interleave(mut self, choose: Choose<'_>) -> Trace {
        let mut builder = TraceBuilder::new();
        for thread in 0..self.scripts.len() {
            builder.thread(&format!("t{thread}"));
        }
        for local in 0..LOCALS {
            builder.local(&format!("l{local}"));
        }
        for var in 0..VARS {
            builder.var(&format!("x{var}"));
        }
        let site = builder.site("");
        let mut events = 0;
        loop {
            let ready: Vec<usize> =
                (0..self.scripts.len()).filter(|&thread| self.can_go_on(thread)).collect();
            if ready.is_empty() {
                break;
            }
            let thread = ready[if ready.len() > 1 { choose(ready.len()) } else { 0 }];
            let next = self.scripts[thread].next;
            self.scripts[thread].next += 1;
            if let Act::Fork(child) = self.scripts[thread].items[next].act {
                self.scripts[child].is_started = true;
            }
            let control = self.scripts[thread].items[next].control;
            let control = control.map(|(thread, item)| self.scripts[thread].items[item].event);
            let item = &mut self.scripts[thread].items[next];
            events += 1;
            item.event = EventId::from_number(events);
            let local = |index: usize| LocalId::from_number(index as u32 + 1).unwrap();
            let mut step = Step::default();
            step.defines = item.defines.map(local);
            step.control = control.map(|event| event.expect("the branch came before"));
            step.instance = Some(item.instance);
            let uses: Vec<LocalId> = item.uses.iter().map(|&index| local(index)).collect();
            let op = operation(item.act, step.defines, &mut builder, thread);
            self.flow.push(step, &uses);
            builder.push(ThreadId::from_number(thread as u32 + 1).unwrap(), op, site);
        }
        for &var in &self.program.focus {
            let var = builder.var(&format!("x{var}"));
            self.flow.add_focus(var);
        }
        builder.set_flow(self.flow);
        builder.finish().unwrap()
    }
}

/// What an access does, the locals that it reads and the one that it assigns.
fn access<'s>(statement: &'s Statement, choose: Choose<'_>) -> (Act, &'s [usize], Option<usize>) {
    match statement {
        Statement::Read { local, var } => (Act::Read(*var), &[], Some(*local)),
        Statement::UnknownRead { local, var } => (Act::UnknownRead(*var), &[], Some(*local)),
        Statement::Write { var, uses } => (Act::Write(*var), uses, None),
        Statement::AtomicWrite { var, uses } => (Act::AtomicWrite(*var), uses, None),
        Statement::Swap { local, var, uses } => {
            let fails = choose(2) == 0;
            let act = if fails { Act::FailedUpdate(*var) } else { Act::Update(*var) };
            (act, uses, Some(*local))
        }
        other => unreachable!("{other:?} is no access"),
    }
}

fn operation(act: Act, defines: Option<LocalId>, builder: &mut TraceBuilder, thread: usize) -> Op {
    let lock = builder.lock(&format!("m{thread}"));
    let mut var = |index: usize| builder.var(&format!("x{index}"));
    let thread = |index: usize| ThreadId::from_number(index as u32 + 1).unwrap();
    match act {
        Act::Branch => Op::Marker(Marker::Branch),
        Act::Let => Op::Marker(Marker::Let(defines.unwrap())),
        Act::Read(x) => Op::Access(AccessOp::Read, var(x)),
        Act::UnknownRead(x) => Op::Access(AccessOp::UnknownRead, var(x)),
        Act::Write(x) => Op::Access(AccessOp::Write, var(x)),
        Act::AtomicWrite(x) => Op::Access(AccessOp::AtomicWrite(MemoryOrder::Release), var(x)),
        Act::Update(x) => Op::Access(AccessOp::AtomicUpdate(MemoryOrder::SeqCst), var(x)),
        Act::FailedUpdate(x) => Op::Access(AccessOp::AtomicRead(MemoryOrder::SeqCst), var(x)),
        Act::Fork(child) => Op::Thread(ThreadOp::Fork, thread(child)),
        Act::Join(child) => Op::Thread(ThreadOp::Join, thread(child)),
        Act::Acquire => Op::Lock(LockOp::Acquire, lock),
        Act::Release => Op::Lock(LockOp::Release, lock),
    }
}

/// Calls `visit` once for every way to answer the choices that it asks for.
pub(crate) fn for_all_choices(mut visit: impl FnMut(Choose<'_>)) {
    // What was chosen so far, and between how many.
    let mut choices: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut at = 0;
        visit(&mut |bound| {
            if at == choices.len() {
                choices.push((0, bound));
            }
            at += 1;
            choices[at - 1].0
        });
        while choices.last().is_some_and(|&(choice, bound)| choice + 1 == bound) {
            choices.pop();
        }
        let Some(last) = choices.last_mut() else { return };
        last.0 += 1;
    }
}
