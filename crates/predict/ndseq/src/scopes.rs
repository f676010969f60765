//! Scopes: which events lie inside which executions of which statements.
//!
//! Instances of statements form a tree. Its instances are numbered from the outside in, those of
//! one execution of a block side by side in the order of the block, and the events are sorted by
//! the number of their instance. Then the events of an instance, and those of a run of neighbouring
//! statements in one execution of a block, are a contiguous range of that order.
//!
//! Instances of one block count as one execution of it if they have the same parent too, which is
//! so in every run of a program.
//!
//! Linear but for one sorting.

use std::ops::Range;

use reweave_base::{CsrTable, Id, IndexVec};
use reweave_trace::{Flow, InstanceId, StaticBlockId};

use crate::events::{Events, NodeId};

reweave_base::id! {
    /// One execution of one block of statements.
    pub struct ExecutionId;
}

/// One execution of a block.
#[derive(Clone, Copy, Debug)]
struct Execution {
    block: StaticBlockId,
    /// Its instances, as a range of the sorted instances.
    members: (u32, u32),
}

/// The events of a run, sorted by what they lie inside of.
#[derive(Clone, Debug)]
pub struct Scopes {
    parents: IndexVec<InstanceId, Option<InstanceId>>,
    positions: IndexVec<InstanceId, u32>,
    places: IndexVec<InstanceId, Place>,
    sorted: Vec<InstanceId>,
    executions: IndexVec<ExecutionId, Execution>,
    by_block: CsrTable<StaticBlockId, ExecutionId>,
    order: Vec<NodeId>,
    starts: Vec<u32>,
}

/// Where an instance stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    execution: ExecutionId,
    number: u32,
    /// How many instances it and those inside it are.
    size: u32,
}

impl Scopes {
    /// The scopes of `events`, whose flow layer is `flow`.
    pub fn new(flow: &Flow, events: &Events) -> Self {
        let parents: IndexVec<InstanceId, _> =
            flow.instances().map(|(_, instance)| instance.parent).collect();
        let mut sorted: Vec<InstanceId> = parents.ids().collect();
        sorted.sort_unstable_by_key(|&id| {
            let instance = flow.instance(id);
            (instance.parent, instance.block, instance.execution, instance.position, id)
        });
        let mut executions: IndexVec<ExecutionId, Execution> = IndexVec::new();
        let mut of_instance = IndexVec::from_elem(ExecutionId::from_index(0), sorted.len());
        let mut previous = None;
        for (index, &id) in sorted.iter().enumerate() {
            let instance = flow.instance(id);
            let key = (instance.parent, instance.block, instance.execution);
            if previous.replace(key) != Some(key) {
                let members = (index as u32, index as u32);
                executions.push(Execution { block: instance.block, members });
            }
            let last = ExecutionId::from_index(executions.len() - 1);
            executions[last].members.1 = index as u32 + 1;
            of_instance[id] = last;
        }
        let by_block = CsrTable::group(flow.blocks().len(), ExecutionId::from_index(0), || {
            executions.entries().map(|(id, execution)| (execution.block, id))
        });
        let places = places(&parents, &sorted, &of_instance);
        let (order, starts) = order(events, &places);
        let positions = flow.instances().map(|(_, instance)| instance.position).collect();
        Self { parents, positions, places, sorted, executions, by_block, order, starts }
    }

    /// The instance around each instance.
    pub const fn parents(&self) -> &IndexVec<InstanceId, Option<InstanceId>> {
        &self.parents
    }

    /// Which statement of its block `instance` executes.
    pub fn position(&self, instance: InstanceId) -> u32 {
        self.positions[instance]
    }

    /// The execution of a block that `instance` is part of.
    pub fn execution(&self, instance: InstanceId) -> ExecutionId {
        self.places[instance].execution
    }

    /// Of which block it is an execution.
    pub fn block(&self, execution: ExecutionId) -> StaticBlockId {
        self.executions[execution].block
    }

    /// All executions of blocks.
    pub fn executions(&self) -> impl Iterator<Item = ExecutionId> + use<> {
        self.executions.ids()
    }

    /// The executions of `block`.
    pub fn executions_of(&self, block: StaticBlockId) -> &[ExecutionId] {
        self.by_block.row(block)
    }

    /// The instances of `execution`, in the order of the block.
    pub fn members(&self, execution: ExecutionId) -> &[InstanceId] {
        let (start, end) = self.executions[execution].members;
        &self.sorted[start as usize..end as usize]
    }

    /// Those of them that execute the statements `first` to `last`.
    pub fn members_within(&self, execution: ExecutionId, first: u32, last: u32) -> &[InstanceId] {
        let members = self.members(execution);
        let start = members.partition_point(|&id| self.positions[id] < first);
        let end = members.partition_point(|&id| self.positions[id] <= last);
        &members[start..end.max(start)]
    }

    /// The instances directly inside `instance`.
    pub fn children(&self, instance: InstanceId) -> &[InstanceId] {
        // Sorted by parent first, so they lie side by side.
        let parent = Some(instance);
        let start = self.sorted.partition_point(|&id| self.parents[id] < parent);
        let count = self.sorted[start..].partition_point(|&id| self.parents[id] == parent);
        &self.sorted[start..start + count]
    }

    /// The events, sorted by instance; those of no instance are not among them.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// Where in the order the events of `members` and of what is inside them lie; `members` are
    /// neighbours in one execution of a block.
    pub fn range(&self, members: &[InstanceId]) -> Range<usize> {
        let (Some(&first), Some(&last)) = (members.first(), members.last()) else { return 0..0 };
        let end = self.places[last].number + self.places[last].size;
        let start = self.starts[self.places[first].number as usize];
        start as usize..self.starts[end as usize] as usize
    }

    /// The events of `instance` itself, not those inside it.
    pub fn own(&self, instance: InstanceId) -> &[NodeId] {
        let number = self.places[instance].number as usize;
        &self.order[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    /// For each instance whether an event that `is_member` lies inside it.
    pub fn holding(
        &self,
        events: &Events,
        is_member: &IndexVec<NodeId, bool>,
    ) -> IndexVec<InstanceId, bool> {
        let mut holds = IndexVec::from_elem(false, self.parents.len());
        for node in events.nodes().filter(|&node| is_member[node]) {
            let mut next = events.instance(node);
            while let Some(instance) = next.filter(|&id| !holds[id]) {
                holds[instance] = true;
                next = self.parents[instance];
            }
        }
        holds
    }
}

/// Numbers the instances so that each comes before those inside it and siblings keep the order
/// of `sorted`.
fn places(
    parents: &IndexVec<InstanceId, Option<InstanceId>>,
    sorted: &[InstanceId],
    executions: &IndexVec<InstanceId, ExecutionId>,
) -> IndexVec<InstanceId, Place> {
    let place = |&execution| Place { execution, number: 0, size: 1 };
    let mut places: IndexVec<InstanceId, Place> = executions.iter().map(place).collect();
    for (id, parent) in parents.entries().rev() {
        if let Some(parent) = *parent {
            places[parent].size += places[id].size;
        }
    }
    let mut next_outermost = 0;
    let mut next_inside: IndexVec<InstanceId, u32> = IndexVec::from_elem(0, parents.len());
    // A parent has a smaller id than its children, so it is numbered before them.
    for &id in sorted {
        let next = parents[id].map_or(&mut next_outermost, |parent| &mut next_inside[parent]);
        places[id].number = *next;
        *next += places[id].size;
        next_inside[id] = places[id].number + 1;
    }
    places
}

/// The events sorted by the number of their instance, and where those of each number start.
fn order(events: &Events, places: &IndexVec<InstanceId, Place>) -> (Vec<NodeId>, Vec<u32>) {
    let number = |node| events.instance(node).map(|id| places[id].number as usize);
    let mut starts = vec![0_u32; places.len() + 1];
    for number in events.nodes().filter_map(number) {
        starts[number + 1] += 1;
    }
    for index in 0..places.len() {
        starts[index + 1] += starts[index];
    }
    let mut next = starts.clone();
    let mut order = vec![NodeId::from_index(0); starts[places.len()] as usize];
    for node in events.nodes() {
        let Some(number) = number(node) else { continue };
        order[next[number] as usize] = node;
        next[number] += 1;
    }
    (order, starts)
}
