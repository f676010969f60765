//! Which threads must be tried in a state, so that no ending is missed.
//!
//! A set of threads is *persistent* if nothing that the others can do, as long as the set does not
//! move, matters to the next step of any in the set. It is enough to try the steps of one such set:
//! the others' come later as well as earlier (Godefroid, *Partial-Order Methods for the
//! Verification of Concurrent Systems*, 1996, chapter 4). From one thread the set grows: by those
//! that can still do what conflicts with the next step of a member, and by the one that a member
//! waits for.
//!
//! What conflicts: two accesses to one cell, one of them writing; two acquires of one lock;
//! anything on one condition variable. Nothing else does. A release, or an acquire of a lock that
//! the thread holds, does not: no other can use the lock meanwhile. Starting a thread does not:
//! threads go by name. Joining one that has ended does not. An assumption that fails ends the run
//! for all, and a run that ends so counts by its faults alone, so it conflicts with steps that may
//! be faults and with other assumptions.

use super::bits::ones;
use super::flow::{Shared, StaticFlow};
use crate::code::{CellOf, Cells, Code, Instruction, Symbol, SymbolId};
use crate::machine::{Machine, Resource, Thread};
use crate::observe::ThreadNumber;
use reweave_base::Id;

/// What a step does to something shared.
#[derive(Clone, Copy, Debug)]
struct Use {
    shared: Shared,
    /// Which element, if it is an array.
    element: Option<u32>,
    changes: bool,
}

/// How deep an index may be nested to be computed before its access.
const INDEX_DEPTH_MAX: u32 = 16;

/// Those of `enabled`, the threads that can take a step, that are to be tried.
pub(super) fn threads(
    machine: &Machine<'_>,
    flow: &StaticFlow,
    enabled: &[ThreadNumber],
) -> Vec<ThreadNumber> {
    let mut best = enabled.to_vec();
    for &first in enabled {
        if best.len() == 1 {
            break;
        }
        let set = closure(machine, flow, first);
        let tried: Vec<ThreadNumber> =
            enabled.iter().copied().filter(|thread| set.contains(thread)).collect();
        if tried.len() < best.len() {
            best = tried;
        }
    }
    best
}

/// The smallest persistent set that we know of with `first` in it.
fn closure(machine: &Machine<'_>, flow: &StaticFlow, first: ThreadNumber) -> Vec<ThreadNumber> {
    let mut set = vec![first];
    let mut place = 0;
    while let Some(&member) = set.get(place) {
        place += 1;
        match machine.blocked_on(member) {
            Some(Resource::Lock(lock)) => {
                // One that has ended with the lock never gives it back.
                let owner = machine.locks[lock as usize].owner.filter(|&owner| {
                    !machine.threads[owner as usize].has_ended && !set.contains(&owner)
                });
                set.extend(owner);
            }
            Some(Resource::Thread(thread)) if !set.contains(&thread) => set.push(thread),
            Some(Resource::Thread(_)) => {}
            Some(Resource::Condition(condition)) => {
                let wake = Use { shared: flow.condition(condition), element: None, changes: true };
                extend(&mut set, machine, flow, member, wake);
            }
            None => {
                for used in uses(machine, flow, member).into_iter().flatten() {
                    extend(&mut set, machine, flow, member, used);
                }
            }
        }
    }
    set
}

/// Adds to `set` the threads that can still conflict with what the next step of `member` uses.
fn extend(
    set: &mut Vec<ThreadNumber>,
    machine: &Machine<'_>,
    flow: &StaticFlow,
    member: ThreadNumber,
    used: Use,
) {
    let held = held_by(machine, member);
    for number in 0..machine.threads.len() as ThreadNumber {
        let other = &machine.threads[number as usize];
        let is_out = other.has_ended || set.contains(&number) || held.contains(&number);
        if !is_out && conflicts(machine.code, flow, other, used) {
            set.push(number);
        }
    }
}

/// The threads that can only join until `thread` has ended.
fn held_by(machine: &Machine<'_>, thread: ThreadNumber) -> Vec<ThreadNumber> {
    let mut held = Vec::new();
    let mut child = thread;
    while let Some(parent) = machine.threads[child as usize].parent {
        if machine.threads[parent as usize].has_ended {
            break;
        }
        let joins = match machine.next(parent) {
            Instruction::JoinChild { next } => {
                let next = machine.register(parent, next) as usize;
                machine.threads[parent as usize].children[next..].contains(&child)
            }
            Instruction::Join { handle } => {
                machine.register(parent, handle) as ThreadNumber == child
            }
            _ => false,
        };
        if !joins {
            break;
        }
        held.push(parent);
        child = parent;
    }
    held
}

/// What the next step of `thread`, which can take one, uses.
fn uses(machine: &Machine<'_>, flow: &StaticFlow, thread: ThreadNumber) -> [Option<Use>; 2] {
    let instruction = machine.next(thread);
    let on = |shared, element, changes| Some(Use { shared, element, changes });
    let global = |cell, changes| {
        let (CellOf::Single(of) | CellOf::Element(of, _)) = cell;
        let element = element(machine, thread, cell, &machine.code.cells)?;
        on(flow.global(of), element, changes)
    };
    let run = on(flow.run(), None, false).filter(|_| flow.may_fail(instruction));
    match instruction {
        Instruction::Read { cell, .. } => [global(cell, false), run],
        Instruction::Write { cell, .. }
        | Instruction::CompareAndSwap { cell, .. }
        | Instruction::FetchAdd { cell, .. } => [global(cell, true), run],
        Instruction::Acquire { lock } => {
            let (CellOf::Single(of) | CellOf::Element(of, _)) = lock;
            let element = element(machine, thread, lock, &machine.code.locks);
            let number = machine.lock_number(thread, lock);
            let is_free = |number: u32| machine.locks[number as usize].owner.is_none();
            let used = element.filter(|_| number.is_some_and(is_free));
            [used.and_then(|element| on(flow.lock(of), element, true)), run]
        }
        Instruction::AcquireAtomic => {
            let is_free = machine.locks[0].owner.is_none();
            [on(flow.atomic(), None, true).filter(|_| is_free), run]
        }
        Instruction::Wait { condition, .. }
        | Instruction::Wake { condition }
        | Instruction::Notify { condition }
        | Instruction::NotifyAll { condition } => [on(flow.condition(condition), None, true), run],
        Instruction::Assume { condition } if machine.register(thread, condition) == 0 => {
            [on(flow.run(), None, true), None]
        }
        _ => [None, run],
    }
}

/// Which element `cell` names, if it is an array; none at all if there is no such element.
fn element<I: Id>(
    machine: &Machine<'_>,
    thread: ThreadNumber,
    cell: CellOf<I>,
    cells: &[Cells],
) -> Option<Option<u32>> {
    let number = machine.cell(thread, cell, cells)?;
    Some(match cell {
        CellOf::Single(_) => None,
        CellOf::Element(of, _) => Some(number - cells[of.index()].start),
    })
}

/// Whether `other` can still do what conflicts with `used`.
fn conflicts(code: &Code, flow: &StaticFlow, other: &Thread, used: Use) -> bool {
    let reaches = |place| flow.reaches(place, used.shared, !used.changes);
    if !other.places().any(reaches) {
        return false;
    }
    let Some(element) = used.element else { return true };
    let rows: Vec<&[u64]> = other.places().map(|place| flow.elements(place)).collect();
    ones(&rows).any(|number| {
        let access = flow.accesses[number as usize];
        access.shared == used.shared
            && (access.changes || used.changes)
            && access.index.is_none_or(|index| {
                value(code, flow, other, index, INDEX_DEPTH_MAX)
                    .is_none_or(|value| value == i64::from(element))
            })
    })
}

/// What `symbol` is whenever `thread` comes to use it; none if that is not known yet.
fn value(
    code: &Code,
    flow: &StaticFlow,
    thread: &Thread,
    symbol: SymbolId,
    depth_max: u32,
) -> Option<i64> {
    let depth_max = depth_max.checked_sub(1)?;
    match code.symbols[symbol as usize] {
        Symbol::Constant(value) => Some(value),
        Symbol::Register(register) => {
            let is_written = thread.places().any(|place| flow.writes(place, register));
            (!is_written).then(|| thread.registers[register as usize])
        }
        Symbol::Accessed => None,
        Symbol::Unary(operator, operand) => {
            Some(operator.apply(value(code, flow, thread, operand, depth_max)?))
        }
        Symbol::Binary(operator, left, right) => {
            let left = value(code, flow, thread, left, depth_max)?;
            operator.apply(left, value(code, flow, thread, right, depth_max)?)
        }
    }
}
