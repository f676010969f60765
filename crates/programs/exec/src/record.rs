//! Recording: a run as a trace with all its layers.
//!
//! Events come with everything that the code knows of them before any run (which registers they
//! use and define, how deep they stand), so that recording one is a few pushes. Blocks and
//! conditions around a thread are stacks that are cut to the depth which the code says.
//!
//! The program layer is the run's guarded transitions: one for each event, in its thread's order,
//! loops unrolled and calls followed. It is made at the end, from the instruction of each event.

mod transitions;

use reweave_base::Id;
use reweave_lang::BlockId;
use reweave_trace::{
    EventId, Flow, Instance, InstanceId, LocalId, MemoryOrder, OpCode, OpKind, StaticBlockId, Step,
    Trace, TraceBuilder, VarId,
};

use crate::code::{Address, Code, OUTSIDE};
use crate::observe::{Happened, Observer, ThreadNumber};

/// What a run is to be recorded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layers {
    /// Events and their values.
    Events,
    /// Also data and control dependence, and statement instances.
    Flow,
    /// Also the guarded transitions.
    Program,
}

/// Makes a trace of what it is told.
pub(crate) struct Recorder<'c> {
    code: &'c Code,
    builder: TraceBuilder,
    flow: Flow,
    layers: Layers,
    /// The code's list of used registers, as locals.
    uses: Vec<LocalId>,
    /// The names, once they are needed, of variables, locks, conditions, blocks and sites.
    cells: Vec<Option<u32>>,
    locks: Vec<Option<u32>>,
    conditions: Vec<Option<u32>>,
    blocks: Vec<Option<u32>>,
    sites: Vec<Option<u32>>,
    trails: Vec<Trail>,
    executions: u32,
    /// The instruction of each event.
    addresses: Vec<Address>,
}

/// What is around the place where a thread stands.
#[derive(Clone, Debug, Default)]
struct Trail {
    scopes: Vec<Scope>,
    /// The branches that decided that the thread came here.
    controls: Vec<EventId>,
    scope_base: usize,
    control_base: usize,
    /// The bases of the callers.
    frames: Vec<(usize, usize)>,
    outer_instance: Option<InstanceId>,
    outer_control: Option<EventId>,
}

/// A block that is being executed, and the statement of it.
#[derive(Clone, Copy, Debug)]
struct Scope {
    block: BlockId,
    execution: u32,
    parent: Option<InstanceId>,
    instance: Option<InstanceId>,
}

impl<'c> Recorder<'c> {
    pub(crate) fn new(code: &'c Code, layers: Layers) -> Self {
        let mut builder = TraceBuilder::new();
        let mut flow = Flow::default();
        if layers >= Layers::Flow {
            for name in &code.names {
                builder.local(name);
            }
            for block in &code.blocks {
                flow.add_block(block.clone());
            }
        }
        Self {
            code,
            builder,
            flow,
            layers,
            uses: code
                .uses
                .iter()
                .map(|&register| LocalId::from_index(register as usize))
                .collect(),
            cells: vec![None; code.memory.len()],
            locks: vec![None; code.locks_count as usize],
            conditions: vec![None; code.conditions.len()],
            blocks: vec![None; code.expected.len()],
            sites: vec![None; code.instructions.len()],
            trails: Vec::new(),
            executions: 0,
            addresses: Vec::new(),
        }
    }

    /// The trace of what was told.
    pub(crate) fn finish(mut self) -> Trace {
        let touched = self.code.focus.iter().filter_map(|&cell| self.cells[cell as usize]);
        let mut focus: Vec<VarId> = touched.map(|var| VarId::from_index(var as usize)).collect();
        focus.sort_unstable();
        if self.layers >= Layers::Program {
            let program = self.transitions();
            self.builder.set_program(program);
        }
        if self.layers >= Layers::Flow {
            for var in focus {
                self.flow.add_focus(var);
            }
            self.builder.set_flow(self.flow);
        }
        self.builder.finish().expect("a run of a program is well formed")
    }

    fn operand(&mut self, what: Happened) -> (OpKind, u32) {
        let code = self.code;
        let names = self.builder.names();
        let mut cell = |table: &mut Vec<Option<u32>>, cell: u32| {
            *table[cell as usize]
                .get_or_insert_with(|| names.vars.intern(&code.cell_name(cell)).index() as u32)
        };
        match what {
            Happened::Let => (OpKind::Let, 0),
            Happened::Branch { .. } => (OpKind::Branch, 0),
            Happened::Read(of) => (OpKind::Read, cell(&mut self.cells, of)),
            Happened::Write(of) => (OpKind::Write, cell(&mut self.cells, of)),
            Happened::AtomicRead(of) => (OpKind::AtomicRead, cell(&mut self.cells, of)),
            Happened::AtomicUpdate(of) => (OpKind::AtomicUpdate, cell(&mut self.cells, of)),
            Happened::Request(lock) => (OpKind::Request, self.lock(lock)),
            Happened::Acquire(lock) => (OpKind::Acquire, self.lock(lock)),
            Happened::Release(lock) => (OpKind::Release, self.lock(lock)),
            Happened::Wait(of) => (OpKind::Wait, self.condition(of)),
            Happened::Wake(of) => (OpKind::Wake, self.condition(of)),
            Happened::Notify(of) => (OpKind::Notify, self.condition(of)),
            Happened::NotifyAll(of) => (OpKind::NotifyAll, self.condition(of)),
            Happened::Begin(of) => (OpKind::Begin, self.block(of)),
            Happened::End(of) => (OpKind::End, self.block(of)),
            Happened::Fork(child) => (OpKind::Fork, child),
            Happened::Join(child) => (OpKind::Join, child),
        }
    }

    fn lock(&mut self, lock: u32) -> u32 {
        let (code, names) = (self.code, self.builder.names());
        let named = &mut self.locks[lock as usize];
        *named.get_or_insert_with(|| names.locks.intern(&code.lock_name(lock)).index() as u32)
    }

    fn condition(&mut self, condition: u32) -> u32 {
        let (name, names) = (&self.code.conditions[condition as usize], self.builder.names());
        let named = &mut self.conditions[condition as usize];
        *named.get_or_insert_with(|| names.conditions.intern(name).index() as u32)
    }

    fn block(&mut self, block: u32) -> u32 {
        let (name, names) = (&self.code.expected[block as usize], self.builder.names());
        let named = &mut self.blocks[block as usize];
        *named.get_or_insert_with(|| names.blocks.intern(name).index() as u32)
    }

    fn site(&mut self, at: Address) -> u32 {
        let (code, names) = (self.code, self.builder.names());
        *self.sites[at as usize].get_or_insert_with(|| {
            let line = code.effects[at as usize].line;
            names.sites.intern(&format!("{}:{line}", code.source)).index() as u32
        })
    }

    fn flow_of(&mut self, thread: ThreadNumber, at: Address, what: Happened) {
        let effect = self.code.effects[at as usize];
        let event = EventId::from_index(self.builder.len() - 1);
        let trail = &mut self.trails[thread as usize];
        let depth = trail.control_base + effect.control_depth as usize;
        let control = match depth {
            0 => trail.outer_control,
            _ => Some(trail.controls[depth - 1]),
        };
        if matches!(what, Happened::Branch { opens: true }) {
            trail.controls.truncate(depth);
            trail.controls.push(event);
        }
        let instance = match effect.scope_depth {
            OUTSIDE if trail.scope_base == 0 => trail.outer_instance,
            OUTSIDE => trail.scopes[trail.scope_base - 1].instance,
            depth => trail.scopes[trail.scope_base + depth as usize].instance,
        };
        let mut step = Step::default();
        step.defines = effect.defines.map(|register| LocalId::from_index(register as usize));
        (step.control, step.instance) = (control, instance);
        let (start, end) = effect.uses;
        self.flow.push(step, &self.uses[start as usize..end as usize]);
        if let Happened::Fork(child) = what {
            let child = &mut self.trails[child as usize];
            (child.outer_instance, child.outer_control) = (instance, control);
        }
    }
}

impl Observer for Recorder<'_> {
    fn thread(&mut self, thread: ThreadNumber, name: &str) {
        let id = self.builder.thread(name);
        assert_eq!(id.index(), thread as usize, "every thread has a name of its own");
        self.trails.push(Trail::default());
    }

    fn event(&mut self, thread: ThreadNumber, at: Address, what: Happened, value: Option<i64>) {
        let (kind, operand) = match what {
            Happened::Let => {
                let register = self.code.effects[at as usize].defines;
                match self.layers {
                    Layers::Events => {
                        let name = &self.code.names[register.unwrap_or(0) as usize];
                        (OpKind::Let, self.builder.local(name).index() as u32)
                    }
                    _ => (OpKind::Let, register.unwrap_or(0)),
                }
            }
            _ => self.operand(what),
        };
        let site = self.site(at);
        self.builder.push_indexes(thread, OpCode::new(kind, MemoryOrder::SeqCst), operand, site);
        if let Some(value) = value {
            self.builder.value(value);
        }
        if self.layers >= Layers::Flow {
            self.flow_of(thread, at, what);
        }
        if self.layers >= Layers::Program {
            self.addresses.push(at);
        }
    }

    fn enter(&mut self, thread: ThreadNumber, block: BlockId, depth: u16) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        let index = trail.scope_base + depth as usize;
        let parent = match index {
            0 => trail.outer_instance,
            _ => trail.scopes[index - 1].instance,
        };
        trail.scopes.truncate(index);
        trail.scopes.push(Scope { block, execution: self.executions, parent, instance: None });
        self.executions += 1;
    }

    fn begin(&mut self, thread: ThreadNumber, position: u32, depth: u16) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        let index = trail.scope_base + depth as usize;
        trail.scopes.truncate(index + 1);
        let scope = &mut trail.scopes[index];
        let block = StaticBlockId::from_index(scope.block.index());
        let Scope { parent, execution, .. } = *scope;
        scope.instance =
            Some(self.flow.add_instance(Instance { parent, block, execution, position }));
    }

    fn call(&mut self, thread: ThreadNumber, at: Address) {
        if self.layers < Layers::Flow {
            return;
        }
        let effect = &self.code.effects[at as usize];
        let trail = &mut self.trails[thread as usize];
        trail.frames.push((trail.scope_base, trail.control_base));
        trail.scope_base += effect.scope_depth as usize + 1;
        trail.scopes.truncate(trail.scope_base);
        trail.control_base += effect.control_depth as usize;
        trail.controls.truncate(trail.control_base);
    }

    fn leave(&mut self, thread: ThreadNumber) {
        if self.layers < Layers::Flow {
            return;
        }
        let trail = &mut self.trails[thread as usize];
        (trail.scope_base, trail.control_base) =
            trail.frames.pop().expect("a function that returns was called");
    }
}
