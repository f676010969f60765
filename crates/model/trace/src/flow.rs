//! The flow layer: what each event depends on.
//!
//! Specification inference needs, besides the order of events, the data and control dependence
//! between them, the statement instance that made each, and the blocks of the source in which
//! those statements stand. A trace carries this layer only if its producer could see it.
//!
//! A local belongs to a thread: the same [`LocalId`] in two threads is two locals. A thread that is
//! forked starts with a copy of the locals that its `fork` event uses; what the parent wrote last
//! to each counts as its writer.

use reweave_base::{Id, IndexVec};

use crate::names::Names;
use crate::op::{EventId, LocalId, VarId};

reweave_base::id! {
    /// One execution of one statement.
    pub struct InstanceId;
    /// A block of statements in the source.
    pub struct StaticBlockId;
}

/// What every event of a trace depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    steps: IndexVec<EventId, Step>,
    locals: Vec<LocalId>,
    instances: IndexVec<InstanceId, Instance>,
    blocks: IndexVec<StaticBlockId, StaticBlock>,
    focus: Vec<VarId>,
}

/// A block of statements in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticBlock {
    /// The statement whose body it is, by block and position; none for the body of a thread or a
    /// function.
    pub inside: Option<(StaticBlockId, u32)>,
    /// Whether it is the body of an `if (*)`, which the sequential program may skip.
    pub is_optional: bool,
    /// Its statements, in order.
    pub statements: Vec<Extent>,
}

/// Where a statement stands in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
    /// The line of its first token, counted from 1.
    pub first_line: u32,
    /// The line of its last token.
    pub last_line: u32,
}

/// What one event depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    uses: (u32, u32),
    /// The local that the event assigned.
    pub defines: Option<LocalId>,
    /// The branch event that decided that this event runs.
    pub control: Option<EventId>,
    /// The statement instance that made the event.
    pub instance: Option<InstanceId>,
}

/// One execution of one statement, inside the one that encloses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The enclosing statement's instance; none for a statement of a thread's body.
    pub parent: Option<InstanceId>,
    /// The block in which the statement stands.
    pub block: StaticBlockId,
    /// Which execution of that block this is, counted over the whole trace.
    pub execution: u32,
    /// Which statement of the block it is.
    pub position: u32,
}

impl Flow {
    /// Adds what the next event, in observed order, depends on; it read the locals `uses`.
    pub fn push(&mut self, step: Step, uses: &[LocalId]) -> EventId {
        let start = self.locals.len() as u32;
        self.locals.extend_from_slice(uses);
        self.steps.push(Step { uses: (start, self.locals.len() as u32), ..step })
    }

    /// Adds a statement instance; its parent must have been added before.
    pub fn add_instance(&mut self, instance: Instance) -> InstanceId {
        self.instances.push(instance)
    }

    /// Adds a block of the source; the one that it is inside of must have been added before.
    pub fn add_block(&mut self, block: StaticBlock) -> StaticBlockId {
        self.blocks.push(block)
    }

    /// Says that `var` is part of the program's result.
    pub fn add_focus(&mut self, var: VarId) {
        self.focus.push(var);
    }

    /// What `event` depends on.
    #[must_use]
    pub fn step(&self, event: EventId) -> &Step {
        &self.steps[event]
    }

    /// The locals that `event` read.
    #[must_use]
    pub fn uses(&self, event: EventId) -> &[LocalId] {
        let (start, end) = self.steps[event].uses;
        &self.locals[start as usize..end as usize]
    }

    /// The statement instance `id`.
    #[must_use]
    pub fn instance(&self, id: InstanceId) -> Instance {
        self.instances[id]
    }

    /// All statement instances with their ids, each after the one that encloses it.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = (InstanceId, &Instance)> {
        self.instances.entries()
    }

    /// The blocks of the source, each after the one that it is inside of.
    #[must_use]
    pub const fn blocks(&self) -> &IndexVec<StaticBlockId, StaticBlock> {
        &self.blocks
    }

    /// The shared variables that are the program's result.
    #[must_use]
    pub fn focus(&self) -> &[VarId] {
        &self.focus
    }

    /// `instance` and those around it, from the inside out.
    pub fn enclosing(&self, instance: InstanceId) -> impl Iterator<Item = Instance> {
        let first = Some(self.instances[instance]);
        std::iter::successors(first, |inner| inner.parent.map(|outer| self.instances[outer]))
    }

    /// Whether it speaks of `events_count` events and of nothing that is not there.
    pub(crate) fn fits(&self, events_count: usize, names: &Names) -> bool {
        self.steps.len() == events_count
            && self.locals.iter().all(|local| local.index() < names.locals.len())
            && self.steps.entries().all(|(event, step)| {
                step.control.is_none_or(|branch| branch < event)
                    && step.defines.is_none_or(|local| local.index() < names.locals.len())
                    && step.instance.is_none_or(|id| id.index() < self.instances.len())
            })
            && self.focus.iter().all(|var| var.index() < names.vars.len())
            && self.blocks_fit()
    }

    fn blocks_fit(&self) -> bool {
        let stands = |block: StaticBlockId, position: u32| {
            let block = self.blocks.get(block);
            block.is_some_and(|block| (position as usize) < block.statements.len())
        };
        let inside = |(id, block): (StaticBlockId, &StaticBlock)| {
            block.inside.is_none_or(|(outer, position)| outer < id && stands(outer, position))
        };
        self.blocks.entries().all(inside)
            && self.instances.entries().all(|(id, instance)| {
                instance.parent.is_none_or(|outer| outer < id)
                    && stands(instance.block, instance.position)
            })
    }
}
