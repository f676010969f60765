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

use reweave_base::{BitRows, Id, bits};

use crate::code::{Address, CellOf, Cells, Code, Instruction, Register, Symbol, SymbolId};
use crate::machine::{Machine, Resource, Thread};
use crate::observe::ThreadNumber;

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
                // One that has ended with the lock never releases it.
                let owner = machine.locks[lock as usize].owner.filter(|&owner| {
                    !machine.threads[owner as usize].has_ended && !set.contains(&owner)
                });
                set.extend(owner);
            }
            // Only the end of that thread lets the member go on.
            Some(Resource::Thread(thread)) if !set.contains(&thread) => set.push(thread),
            Some(Resource::Thread(_)) => {}
            // Whoever can still notify must be in the set: else the member could be woken, and
            // conflict with the set, by steps outside of it.
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
    // These cannot conflict as long as `member` does not move: they wait for its end.
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
    let used = flow.used(machine.code, instruction).and_then(|used| {
        let SharedUse { shared, changes, place } = used;
        let element = match place {
            Some((cell @ CellOf::Element(of, _), cells)) => {
                // There may be no such element, and then nothing is used.
                Some(machine.cell(thread, cell, cells)? - cells[of as usize].start)
            }
            Some((CellOf::Single(_), _)) | None => None,
        };
        Some(Use { shared, element, changes })
    });
    let run = Use { shared: flow.run(), element: None, changes: false };
    let run = flow.may_fail(instruction).then_some(run);
    match instruction {
        Instruction::Acquire { lock } => {
            let is_free = |number: u32| machine.locks[number as usize].owner.is_none();
            let number = machine.lock_number(thread, lock);
            [used.filter(|_| number.is_some_and(is_free)), run]
        }
        Instruction::Assume { condition } if machine.register(thread, condition) == 0 => {
            [used, None]
        }
        Instruction::Assume { .. } => [None, run],
        _ => [used, run],
    }
}

/// Whether `other` can still do what conflicts with `used`.
fn conflicts(code: &Code, flow: &StaticFlow, other: &Thread, used: Use) -> bool {
    let reaches = |place| flow.reaches(place, used.shared, !used.changes);
    if !other.places().any(reaches) {
        return false;
    }
    let Some(element) = used.element else { return true };
    let rows: Vec<&[u64]> = other.places().map(|place| flow.elements(place)).collect();
    bits::union_members(&rows).any(|number| {
        let access = flow.accesses[number];
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

// What a thread can still do and will still read, known before any run.
//
// For each instruction: which shared things a thread that stands there can still touch or change,
// what it calls and starts included; which elements of arrays among them; which registers it
// can still write, and which it reads before it writes them. All are least fixed points over
// the instructions, backwards. Costs instructions times things, a few times over.

/// The largest program that is looked at, in instructions: the tables grow with its square.
pub(crate) const INSTRUCTIONS_MAX: usize = 1 << 14;

/// Something that threads share: a variable or array, a lock or array, a condition, the run.
pub(crate) type Shared = u32;

/// An access to an element of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementAccess {
    pub(crate) shared: Shared,
    pub(crate) changes: bool,
    /// Which element, of the registers before the access.
    pub(crate) index: Option<SymbolId>,
}

/// What the step of an instruction does to something shared.
struct SharedUse<'c> {
    shared: Shared,
    changes: bool,
    /// Where the element is found that it goes to, if it is an access or an acquire.
    place: Option<(CellOf, &'c [Cells])>,
}

/// What is known of each instruction of a program.
#[derive(Debug)]
pub(crate) struct StaticFlow {
    touches: BitRows,
    changes: BitRows,
    elements: BitRows,
    writes: BitRows,
    live: BitRows,
    pub(crate) accesses: Vec<ElementAccess>,
    is_handle: Vec<bool>,
    may_go_back: Vec<bool>,
    has_division: bool,
    globals_count: u32,
    locks_count: u32,
    conditions_count: u32,
}

impl StaticFlow {
    pub(crate) fn new(code: &Code) -> Self {
        let count = code.instructions.len();
        let shared_count = code.cells.len() + code.locks.len() + code.conditions.len() + 1;
        let has_division = code.instructions.iter().any(|instruction| {
            matches!(instruction, Instruction::Binary { operator, .. } if operator.is_division())
        });
        let mut flow = Self {
            touches: BitRows::new(count, shared_count),
            changes: BitRows::new(count, shared_count),
            elements: BitRows::default(),
            writes: BitRows::new(count, code.registers.len()),
            live: BitRows::new(count, code.registers.len()),
            accesses: Vec::new(),
            is_handle: vec![false; code.registers.len()],
            may_go_back: (0..count as Address).map(|at| may_go_back(code, at)).collect(),
            has_division,
            globals_count: code.cells.len() as u32,
            locks_count: code.locks.len() as u32,
            conditions_count: code.conditions.len() as u32,
        };
        let found = flow.own(code);
        flow.elements = BitRows::new(count, flow.accesses.len());
        for (number, at) in found.into_iter().enumerate() {
            flow.elements.set(at as usize, number);
        }
        flow.spread(code);
        flow.spread_live(code);
        flow
    }

    /// Globals are numbered first, then locks, conditions and the run.
    const fn condition(&self, condition: u32) -> Shared {
        self.globals_count + self.locks_count + condition
    }

    /// The run as a whole: an assumption that fails changes it, a fault touches it.
    const fn run(&self) -> Shared {
        self.condition(self.conditions_count)
    }

    /// What the step of `instruction` may use.
    fn used<'c>(&self, code: &'c Code, instruction: Instruction) -> Option<SharedUse<'c>> {
        let (shared, changes, place) = match instruction {
            Instruction::Read { cell, .. } => (cell.of(), false, Some((cell, &code.cells))),
            Instruction::Write { cell, .. }
            | Instruction::CompareAndSwap { cell, .. }
            | Instruction::FetchAdd { cell, .. } => (cell.of(), true, Some((cell, &code.cells))),
            Instruction::Acquire { lock } => {
                (self.globals_count + lock.of(), true, Some((lock, &code.locks)))
            }
            Instruction::Wait { condition, .. }
            | Instruction::Wake { condition }
            | Instruction::Notify { condition }
            | Instruction::NotifyAll { condition } => (self.condition(condition), true, None),
            Instruction::Assume { .. } => (self.run(), true, None),
            _ => return None,
        };
        let place = place.map(|(cell, cells)| (cell, cells.as_slice()));
        Some(SharedUse { shared, changes, place })
    }

    /// Whether a thread that stands at `at` can still access `shared`, or change it.
    pub(crate) fn reaches(&self, at: Address, shared: Shared, changes_only: bool) -> bool {
        if changes_only {
            self.changes.has(at as usize, shared as usize)
        } else {
            self.touches.has(at as usize, shared as usize)
        }
    }

    /// Which accesses to elements a thread that stands at `at` can still make.
    pub(crate) fn elements(&self, at: Address) -> &[u64] {
        self.elements.row(at as usize)
    }

    /// Whether a thread that stands at `at`, or one that it starts, can still write `register`.
    pub(crate) fn writes(&self, at: Address, register: Register) -> bool {
        self.writes.has(at as usize, register as usize)
    }

    /// The registers that a thread which stands at `at` reads before it writes them.
    pub(crate) fn live(&self, at: Address) -> &[u64] {
        self.live.row(at as usize)
    }

    /// Whether `register` holds a thread.
    pub(crate) fn is_handle(&self, register: Register) -> bool {
        self.is_handle[register as usize]
    }

    /// Whether the step at `at` can lead to an instruction that is not after it, as one step of
    /// every loop does.
    pub(crate) fn may_go_back(&self, at: Address) -> bool {
        self.may_go_back[at as usize]
    }

    /// Whether the step that `instruction` makes can end its thread by a fault.
    pub(crate) const fn may_fail(&self, instruction: Instruction) -> bool {
        self.has_division
            || matches!(
                instruction,
                Instruction::Assert { .. }
                    | Instruction::Release { .. }
                    | Instruction::Wait { .. }
                    | Instruction::Acquire { lock: CellOf::Element(..) }
                    | Instruction::Read { cell: CellOf::Element(..), .. }
                    | Instruction::Write { cell: CellOf::Element(..), .. }
                    | Instruction::CompareAndSwap { cell: CellOf::Element(..), .. }
                    | Instruction::FetchAdd { cell: CellOf::Element(..), .. }
            )
    }

    /// What each instruction does by itself; returns where the accesses to elements are.
    fn own(&mut self, code: &Code) -> Vec<Address> {
        let mut found = Vec::new();
        for (at, &instruction) in code.instructions.iter().enumerate() {
            let at = at as Address;
            if instruction.makes_event() && self.may_fail(instruction) {
                self.touches.set(at as usize, self.run() as usize);
            }
            if let Instruction::Fork { handle: Some(handle), .. } = instruction {
                self.is_handle[handle as usize] = true;
            }
            let Some(SharedUse { shared, changes, place }) = self.used(code, instruction) else {
                continue;
            };
            self.touches.set(at as usize, shared as usize);
            if changes {
                self.changes.set(at as usize, shared as usize);
            }
            if let Some((CellOf::Element(..), _)) = place {
                let index = code.effects[at as usize].index;
                self.accesses.push(ElementAccess { shared, changes, index });
                found.push(at);
            }
        }
        found
    }

    /// Everything that comes after is reached too.
    fn spread(&mut self, code: &Code) {
        for (at, &instruction) in code.instructions.iter().enumerate() {
            if let Some(register) = instruction.written() {
                self.writes.set(at, register as usize);
            }
        }
        let mut grows = true;
        while grows {
            grows = false;
            for at in (0..code.instructions.len() as Address).rev() {
                code.for_each_next(at, true, |next| {
                    grows |= self.touches.unite(at as usize, next as usize);
                    grows |= self.changes.unite(at as usize, next as usize);
                    grows |= self.elements.unite(at as usize, next as usize);
                    grows |= self.writes.unite(at as usize, next as usize);
                });
            }
        }
    }

    /// A register is live where it is read, and before that up to where it is written.
    fn spread_live(&mut self, code: &Code) {
        let count = code.instructions.len();
        let mut own_writes = BitRows::new(count, code.registers.len());
        for (at, &instruction) in code.instructions.iter().enumerate() {
            let at = at as Address;
            code.for_each_read(instruction, |register| {
                self.live.set(at as usize, register as usize);
            });
            if let Some(register) = instruction.written() {
                own_writes.set(at as usize, register as usize);
            }
        }
        let mut grows = true;
        while grows {
            grows = false;
            for at in (0..count as Address).rev() {
                code.for_each_next(at, false, |next| {
                    grows |= self.live.unite_without(
                        at as usize,
                        next as usize,
                        own_writes.row(at as usize),
                    );
                });
            }
        }
    }
}

/// Whether the step at `at` can lead to an instruction that is not after it.
fn may_go_back(code: &Code, at: Address) -> bool {
    if !code.instructions[at as usize].makes_event() {
        return false;
    }
    let mut seen = vec![at];
    let mut place = 0;
    while let Some(&here) = seen.get(place) {
        place += 1;
        let instruction = code.instructions[here as usize];
        if here != at && instruction.makes_event() {
            continue;
        }
        if matches!(instruction, Instruction::Return | Instruction::Call { .. }) {
            return true;
        }
        let mut goes_back = false;
        code.for_each_next(here, false, |next| {
            if next <= at {
                goes_back = true;
            } else if !seen.contains(&next) {
                seen.push(next);
            }
        });
        if goes_back {
            return true;
        }
    }
    false
}

impl Instruction {
    /// Whether it makes an event, and so is a step of its own.
    pub(crate) const fn makes_event(self) -> bool {
        !matches!(
            self,
            Self::Unary { .. }
                | Self::Binary { .. }
                | Self::Copy { .. }
                | Self::Jump { .. }
                | Self::Enter { .. }
                | Self::Begin { .. }
                | Self::Call { .. }
                | Self::Return
                | Self::CountChildren { .. }
                | Self::WhileChildren { .. }
                | Self::Optional { .. }
                | Self::End
        )
    }

    /// The register that it writes.
    const fn written(self) -> Option<Register> {
        match self {
            Self::Unary { to, .. }
            | Self::Binary { to, .. }
            | Self::Copy { to, .. }
            | Self::CountChildren { to }
            | Self::Let { to, .. }
            | Self::Read { to, .. }
            | Self::CompareAndSwap { to, .. }
            | Self::FetchAdd { to, .. } => Some(to),
            Self::Fork { handle, .. } => handle,
            Self::JoinChild { next } => Some(next),
            _ => None,
        }
    }
}

impl Code {
    /// Where a thread can go from the instruction at `at`, and what it does on the way there: a
    /// call goes to what is after it, and through its function; with `starts`, also to what the
    /// threads that it starts do.
    fn for_each_next(&self, at: Address, starts: bool, mut visit: impl FnMut(Address)) {
        match self.instructions[at as usize] {
            Instruction::Jump { target } => visit(target),
            Instruction::Branch { otherwise, .. }
            | Instruction::WhileChildren { otherwise, .. }
            | Instruction::Optional { otherwise } => {
                visit(at + 1);
                visit(otherwise);
            }
            Instruction::Call { function } => {
                visit(self.functions[function.index()]);
                visit(at + 1);
            }
            Instruction::Fork { address, .. } => {
                visit(at + 1);
                if starts {
                    visit(address);
                }
            }
            Instruction::ForkDeclared { thread } => {
                visit(at + 1);
                if starts {
                    visit(self.later[thread as usize].address);
                }
            }
            Instruction::Return | Instruction::End => {}
            _ => visit(at + 1),
        }
    }

    fn for_each_read(&self, instruction: Instruction, mut visit: impl FnMut(Register)) {
        let mut cell = |element: Option<Register>| element.into_iter().for_each(&mut visit);
        match instruction {
            Instruction::Read { cell: of, .. } => cell(of.register()),
            Instruction::Write { cell: of, from } => {
                cell(of.register());
                visit(from);
            }
            Instruction::CompareAndSwap { cell: of, old, new, .. } => {
                cell(of.register());
                visit(old);
                visit(new);
            }
            Instruction::FetchAdd { cell: of, amount: from, .. } => {
                cell(of.register());
                visit(from);
            }
            Instruction::Acquire { lock }
            | Instruction::Release { lock }
            | Instruction::Wait { lock, .. } => cell(lock.register()),
            Instruction::Unary { of, .. } => visit(of),
            Instruction::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Instruction::Copy { from, .. } | Instruction::Let { from, .. } => visit(from),
            Instruction::WhileChildren { since, next, .. } => {
                visit(since);
                visit(next);
            }
            Instruction::Branch { condition, .. }
            | Instruction::Assert { condition }
            | Instruction::Assume { condition } => visit(condition),
            Instruction::Guard { flag } => visit(flag),
            Instruction::Fork { captured, .. } => {
                let captured = captured.0 as usize..captured.1 as usize;
                self.captured[captured].iter().copied().for_each(visit);
            }
            Instruction::Join { handle } => visit(handle),
            Instruction::JoinChild { next } => visit(next),
            Instruction::Jump { .. }
            | Instruction::Enter { .. }
            | Instruction::Begin { .. }
            | Instruction::Call { .. }
            | Instruction::Return
            | Instruction::CountChildren { .. }
            | Instruction::Optional { .. }
            | Instruction::Wake { .. }
            | Instruction::Notify { .. }
            | Instruction::NotifyAll { .. }
            | Instruction::BeginBlock { .. }
            | Instruction::EndBlock { .. }
            | Instruction::ForkDeclared { .. }
            | Instruction::End => {}
        }
    }
}

impl CellOf {
    /// The place of the variable, lock or array that it is of.
    const fn of(self) -> u32 {
        let (Self::Single(of) | Self::Element(of, _)) = self;
        of
    }

    const fn register(&self) -> Option<Register> {
        match self {
            Self::Single(_) => None,
            Self::Element(_, register) => Some(*register),
        }
    }
}
