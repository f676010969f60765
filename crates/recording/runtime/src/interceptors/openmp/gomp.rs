//! The interface of gcc's OpenMP library: what compiled code calls.
//!
//! Code that the library is to run for a region or a task is replaced by ours, which becomes the
//! logical thread and runs it. What a task is given is copied by the library into a block of its
//! own; ours has who the task is before the program's part of it.

#![allow(non_snake_case, reason = "programs know these functions by their names")]
#![allow(clippy::too_many_arguments, reason = "as many as the functions that they stand for")]

use core::ffi::{c_int, c_long, c_uint};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::super::{in_library, interceptors, real_address};
use super::locks::{enter_section, leave_section};
use super::{
    Identity, announce, await_turn, barrier, begin_scratch, come_back, fork, inside, is_recorded,
    leave, meeting, new_numbers, new_team, note_library, ompt, run, waiting, with_token,
};
use crate::log::{self, Entry};
use crate::thread::{self, Thread};
use crate::wire::{Kind, flag};
use crate::{replay, scheduler, sys};

/// Asks the library for a number.
macro_rules! ask {
    ($name:ident) => {{
        let function: unsafe extern "C" fn() -> c_int = core::mem::transmute(real_address!($name));
        function()
    }};
}

/// Enters the runtime for a call of this interface, or makes the call as it is: where nothing is
/// recorded, and where clang's library has this interface too and reports what it does itself.
macro_rules! enter {
    ($call:expr) => {
        match log::enter(thread::caller()).filter(|_| !ompt::is_on()) {
            Some(entry) => entry,
            None => return $call,
        }
    };
}

// Parallel regions.

/// A parallel region that begins.
#[derive(Clone, Copy)]
#[repr(C)]
struct Region {
    /// The first word of the argument, where the library looks at it.
    head: usize,
    routine: usize,
    argument: usize,
    code: u64,
    parent: *mut Thread,
    team: u32,
    /// The number of the team's second member; those of the others follow.
    number: u32,
    /// The size of the team, or 0 if it is not recorded.
    size: u32,
    /// The parent's forks before those of the team.
    forks: u32,
}

/// A region, and whether its members are forked.
#[repr(C)]
struct Beginning {
    region: Region,
    is_ready: AtomicU32,
}

/// Runs a parallel region by `call`, which takes what the team runs and its argument.
unsafe fn parallel<R>(
    entry: &Entry,
    [routine, argument, head]: [usize; 3],
    call: impl FnOnce(usize, usize) -> R,
) -> R {
    // It may have been loaded only now.
    note_library(0, real_address!(GOMP_parallel));
    let parent = entry.thread;
    let team = new_team();
    let region = Region {
        head,
        routine,
        argument,
        code: entry.code,
        parent,
        team,
        number: 0,
        size: 0,
        forks: 0,
    };
    let mut beginning = Beginning { region, is_ready: AtomicU32::new(0) };
    entry.log(Kind::TeamBegin, u64::from(team));
    let outer = ((*parent).team, (*parent).ordered_loops);
    let place = &raw mut beginning as usize;
    let result = waiting(parent, || call(run_member as *const () as usize, place));
    ((*parent).team, (*parent).ordered_loops) = outer;
    entry.log(Kind::TeamEnd, u64::from(team));
    result
}

/// Runs a member of a region's team.
unsafe extern "C" fn run_member(beginning: *mut Beginning) {
    let index = ask!(omp_get_thread_num) as u32;
    if index == 0 {
        return run_first(beginning);
    }
    let is_ready = &(*beginning).is_ready;
    while is_ready.load(Ordering::Acquire) == 0 {
        sys::futex_wait(is_ready, 0, 1000);
    }
    // It is on its creator's stack, which stays until all members are done with it.
    let Region { routine, argument, code, parent, team, number, size, forks, .. } =
        (*beginning).region;
    if index >= size {
        return call_routine(routine, argument);
    }
    let entry = replay::child_entry_after(parent, forks + index - 1);
    let identity = Identity { number: number + index - 1, entry, team };
    run(identity, [routine, argument], None, code);
}

/// Forks the team of a region and runs its first member, which is who met the region.
unsafe fn run_first(beginning: *mut Beginning) {
    let region = &raw mut (*beginning).region;
    let parent = (*region).parent;
    let is_recorded = thread::current() == parent;
    if is_recorded {
        scheduler::acquire(parent);
        ((*parent).team, (*parent).ordered_loops) = ((*region).team, 0);
        let size = ask!(omp_get_num_threads) as u32;
        fork_members(region, size);
    }
    let waiting = scheduler::waiting_count();
    (*beginning).is_ready.store(1, Ordering::Release);
    sys::futex_wake(&(*beginning).is_ready, u32::MAX >> 1);
    if is_recorded {
        scheduler::await_waiting(waiting + (*region).size.saturating_sub(1));
        leave(parent);
    }
    call_routine((*region).routine, (*region).argument);
    if is_recorded && come_back(parent) {
        scheduler::release(parent);
    }
}

unsafe fn fork_members(region: *mut Region, size: u32) {
    let entry = inside((*region).parent, (*region).code);
    let Some(number) = new_numbers(size.saturating_sub(1)) else { return };
    ((*region).number, (*region).size) = (number, size);
    (*region).forks = (*entry.thread).forks;
    for index in 1..size {
        fork(&entry, number + index - 1, (*region).team, flag::MEMBER);
    }
}

unsafe fn call_routine(routine: usize, argument: usize) {
    let routine: unsafe extern "C" fn(usize) = core::mem::transmute(routine);
    routine(argument);
}

// Tasks.

/// Flags of a task.
mod task {
    pub const DEPEND: u32 = 1 << 3;
    /// Of the tasks of a loop only: the condition of its `if` holds.
    pub const IF: u32 = 1 << 10;
    pub const NO_GROUP: u32 = 1 << 11;
    pub const REDUCTION: u32 = 1 << 12;
}

/// What the library copies for a task: first what it writes itself in the tasks of a loop.
#[derive(Clone, Copy)]
#[repr(C)]
struct Task {
    range: [u64; 2],
    /// What the library looks at where the tasks of a loop have a reduction.
    head: usize,
    routine: usize,
    /// The program's function that copies, or 0 to copy bytes.
    copier: usize,
    /// What it copies from, until the task has its own; then where that is.
    argument: usize,
    size: usize,
    alignment: usize,
    code: u64,
    creator: *mut Thread,
    /// The dependences, where the task runs at once and its creator waits for them.
    depend: *const usize,
    identity: Identity,
    /// Whether it is a part of its creator.
    is_sequential: bool,
    is_loop: bool,
}

/// The bytes for a task whose data are `size` bytes, of which the program's start aligned.
const fn block_size(size: usize, alignment: usize) -> usize {
    size_of::<Task>() + alignment + size
}

/// Copies `task`, which describes a task, to where the task will find it, and forks it.
unsafe extern "C" fn copy_task(to: *mut Task, task: *const Task) {
    to.write(*task);
    let from = (*task).argument;
    let data = (to.add(1) as usize).next_multiple_of((*task).alignment.max(1));
    (*to).argument = data;
    let thread = (*task).creator;
    if thread::current() != thread {
        return copy_data(&*task, data, from);
    }
    with_token(thread, || {
        let entry = inside(thread, (*task).code);
        if !(*task).is_sequential && (*task).size > 0 {
            // What another task had there is gone.
            entry.log_extra(Kind::Alloc, data as u64, (*task).size as u64);
        }
        leave(thread);
        copy_data(&*task, data, from);
        if !come_back(thread) || (*task).is_sequential {
            return;
        }
        if let Some(number) = new_numbers(1) {
            (*to).identity = fork(&entry, number, (*thread).team, flag::TASK);
            log_dependences(&entry, (*task).depend, Some(number));
        }
    });
}

unsafe fn copy_data(task: &Task, to: usize, from: usize) {
    if task.copier == 0 {
        return crate::interceptors::memory::copy_either(to, from, task.size);
    }
    let copier: unsafe extern "C" fn(usize, usize) = core::mem::transmute(task.copier);
    copier(to, from);
}

/// Runs a task.
unsafe extern "C" fn run_task(task: *mut Task) {
    let Task { routine, argument, code, identity, .. } = *task;
    if (*task).is_loop {
        // Which iterations the task has was written after its data were copied.
        (argument as *mut [u64; 2]).write_unaligned((*task).range);
    }
    if !(*task).is_sequential && identity.number != 0 {
        let index = ask!(omp_get_thread_num) as usize;
        let scratch = ((*task).head != 0).then(|| own_copy((*task).head as *const usize, index));
        return run(identity, [routine, argument], scratch, code);
    }
    let thread = thread::current();
    if !is_recorded(thread) {
        return call_routine(routine, argument);
    }
    with_token(thread, || {
        if !(*task).depend.is_null() {
            log_dependences(&inside(thread, code), (*task).depend, None);
        }
        leave(thread);
        call_routine(routine, argument);
        come_back(thread);
    });
}

/// Logs on what the task `number`, or the running thread, depends.
unsafe fn log_dependences(entry: &Entry, depend: *const usize, number: Option<u32>) {
    if depend.is_null() {
        return;
    }
    let log = |address: usize, flags: u16| {
        let operands =
            log::Operands { flags, extra: number.map(u64::from), ..log::Operands::default() };
        entry.log_with(Kind::Depend, address as u64, operands);
    };
    // An older form has the number of all and of those that write, then the addresses. A newer one
    // starts with 0 and has the numbers of all, of those that write, of sets, and of those that
    // read; then the addresses, and those of objects that name an address and a kind.
    let (count, kinds, first) = if *depend == 0 {
        (*depend.add(1), [*depend.add(2), *depend.add(3), *depend.add(4)], 5)
    } else {
        (*depend, [*depend.add(1), 0, *depend - *depend.add(1)], 2)
    };
    let mut place = 0;
    for (kind, flags) in kinds.into_iter().zip([flag::OUT, flag::SET, 0]) {
        for _ in 0..kind {
            log(*depend.add(first + place), flags);
            place += 1;
        }
    }
    while place < count {
        const READS: usize = 1;
        const IS_SET: usize = 4;
        let object = *depend.add(first + place) as *const usize;
        let flags = match *object.add(1) {
            READS => 0,
            IS_SET => flag::SET,
            _ => flag::OUT,
        };
        log(*object, flags);
        place += 1;
    }
    if number.is_none() {
        entry.log_flags(Kind::TaskWait, 0, flag::OUT);
    }
}

/// Whether tasks of the running thread run at once, whatever the program says.
unsafe fn runs_at_once() -> bool {
    ask!(omp_get_num_threads) == 1 || ask!(omp_in_final) != 0
}

/// What describes a task to [`copy_task`].
unsafe fn new_task(
    entry: &Entry,
    [routine, argument, copier]: [usize; 3],
    [size, alignment]: [usize; 2],
    is_sequential: bool,
) -> Task {
    Task {
        range: [0; 2],
        head: 0,
        routine,
        copier,
        argument,
        size,
        alignment,
        code: entry.code,
        creator: entry.thread,
        depend: core::ptr::null(),
        identity: Identity { number: 0, entry: u32::MAX, team: 0 },
        is_sequential,
        is_loop: false,
    }
}

/// Makes the tasks of a loop by `call`, which takes what describes them, what they run, what copies
/// and how many bytes.
unsafe fn task_loop(
    entry: &Entry,
    mut task: Task,
    flags: u32,
    call: impl FnOnce(usize, usize, usize, usize),
) {
    task.is_loop = true;
    if flags & task::REDUCTION != 0 {
        task.head = *(task.argument as *const usize).add(2);
        REDUCTIONS.add(task.head);
    }
    let has_group = flags & task::NO_GROUP == 0;
    if has_group {
        entry.log(Kind::GroupBegin, 0);
    }
    waiting(entry.thread, || {
        call(
            &raw mut task as usize,
            run_task as *const () as usize,
            copy_task as *const () as usize,
            block_size(task.size, task.alignment),
        );
    });
    if has_group {
        entry.log(Kind::GroupEnd, 0);
    }
    if flags & task::REDUCTION != 0 {
        REDUCTIONS.remove(task.head);
    }
}

// Reductions of tasks. The library has a copy of the variables for each thread of the pool, which
// the tasks that it runs share: for each of them it is other memory.

/// The copy of the pool's thread `index` in a described reduction.
unsafe fn own_copy(description: *const usize, index: usize) -> (u64, u64) {
    let [size, start] = [1, 2].map(|field| *description.add(field));
    ((start + index * size) as u64, size as u64)
}

/// The descriptions of reductions that are under way, in any order.
struct Reductions([AtomicUsize; 256]);

static REDUCTIONS: Reductions = Reductions([const { AtomicUsize::new(0) }; 256]);

impl Reductions {
    fn add(&self, description: usize) {
        let free = |slot: &&AtomicUsize| {
            slot.compare_exchange(0, description, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let _ = self.0.iter().find(free);
    }

    fn remove(&self, description: usize) {
        for slot in &self.0 {
            _ = slot.compare_exchange(description, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The copy that has a variable at `address`: where it is and how long.
    unsafe fn copy(&self, address: usize) -> Option<(u64, u64)> {
        for slot in &self.0 {
            // The size of a copy, where the first is, where the last ends, and the next description.
            const FIELDS: [usize; 4] = [1, 2, 6, 4];
            let mut description = slot.load(Ordering::Acquire) as *const usize;
            while !description.is_null() {
                let [size, start, end, next] = FIELDS.map(|field| *description.add(field));
                if (start..end).contains(&address) && size != 0 {
                    let place = start + (address - start) / size * size;
                    return Some((place as u64, size as u64));
                }
                description = next as *const usize;
            }
        }
        None
    }
}

/// The iteration that `counts` or the arguments of a wait say, as one number.
pub fn iteration(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0x1234_5678, |hash, count| {
        (hash ^ count).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    })
}

/// Notes that the running thread comes to an ordered loop, whose iterations have `dimensions`.
pub unsafe fn note_ordered_loop(dimensions: u32) {
    let thread = thread::current();
    if is_recorded(thread) {
        (*thread).ordered_loops += 1;
        (*thread).dimensions = dimensions;
    }
}

/// Where iterations of the running thread's ordered loop meet.
pub unsafe fn turn(thread: *mut Thread, key: u64) -> u64 {
    meeting((*thread).team, (*thread).ordered_loops, key)
}

/// Lets other threads run.
pub unsafe fn pass_token(entry: &Entry) {
    if scheduler::is_serial() {
        scheduler::pass_token(entry.thread);
    }
}

/// The lock of sections without a name, and that of atomic updates: known by functions that use them.
macro_rules! section {
    ($name:ident) => {
        real_address!($name)
    };
}

interceptors! {
    fn GOMP_parallel(routine: usize, data: usize, threads: c_uint, flags: c_uint) -> () {
        let entry = enter!(real(routine, data, threads, flags));
        parallel(&entry, [routine, data, 0], |routine, data| real(routine, data, threads, flags));
    }
    fn GOMP_parallel_reductions(routine: usize, data: usize, threads: c_uint, flags: c_uint) -> c_uint {
        let entry = enter!(real(routine, data, threads, flags));
        // The library looks at the first word of the data.
        let what = [routine, data, *(data as *const usize)];
        parallel(&entry, what, |routine, data| real(routine, data, threads, flags))
    }
    fn GOMP_parallel_sections(
        routine: usize, data: usize, threads: c_uint, count: c_uint, flags: c_uint,
    ) -> () {
        let entry = enter!(real(routine, data, threads, count, flags));
        parallel(&entry, [routine, data, 0], |routine, data| real(routine, data, threads, count, flags));
    }
    fn [GOMP_parallel_loop_static GOMP_parallel_loop_dynamic GOMP_parallel_loop_guided
        GOMP_parallel_loop_nonmonotonic_dynamic GOMP_parallel_loop_nonmonotonic_guided](
        routine: usize, data: usize, threads: c_uint, start: c_long, end: c_long, step: c_long,
        chunk: c_long, flags: c_uint,
    ) -> () {
        let entry = enter!(real(routine, data, threads, start, end, step, chunk, flags));
        parallel(&entry, [routine, data, 0], |routine, data| {
            real(routine, data, threads, start, end, step, chunk, flags);
        });
    }
    fn [GOMP_parallel_loop_runtime GOMP_parallel_loop_nonmonotonic_runtime
        GOMP_parallel_loop_maybe_nonmonotonic_runtime](
        routine: usize, data: usize, threads: c_uint, start: c_long, end: c_long, step: c_long,
        flags: c_uint,
    ) -> () {
        let entry = enter!(real(routine, data, threads, start, end, step, flags));
        parallel(&entry, [routine, data, 0], |routine, data| {
            real(routine, data, threads, start, end, step, flags);
        });
    }

    fn [GOMP_barrier GOMP_loop_end GOMP_sections_end]() -> () {
        let entry = enter!(real());
        barrier(&entry, || real(), |()| false);
    }
    fn [GOMP_barrier_cancel GOMP_loop_end_cancel GOMP_sections_end_cancel]() -> c_int {
        let entry = enter!(real());
        // The answer is a byte.
        barrier(&entry, || real(), |&answer| answer as u8 != 0)
    }
    fn GOMP_workshare_task_reduction_unregister(is_cancelled: c_int) -> () {
        let entry = enter!(real(is_cancelled));
        if is_cancelled as u8 != 0 {
            return waiting(entry.thread, || real(is_cancelled));
        }
        barrier(&entry, || real(is_cancelled), |()| false);
    }
    fn GOMP_single_copy_start() -> usize {
        let entry = enter!(real());
        let data = waiting(entry.thread, || real());
        if data != 0 {
            // Who was not chosen has waited at a barrier for the one who was.
            entry.log(Kind::TeamArrive, 0);
            entry.log(Kind::TeamDepart, 0);
        }
        data
    }
    fn GOMP_single_copy_end(data: usize) -> () {
        let entry = enter!(real(data));
        barrier(&entry, || real(data), |()| false);
    }

    // Who has done its part lets others have theirs.
    fn GOMP_sections_next() -> c_uint {
        let entry = enter!(real());
        pass_token(&entry);
        real()
    }
    fn [GOMP_loop_dynamic_next GOMP_loop_guided_next GOMP_loop_runtime_next
        GOMP_loop_nonmonotonic_dynamic_next GOMP_loop_nonmonotonic_guided_next
        GOMP_loop_nonmonotonic_runtime_next GOMP_loop_maybe_nonmonotonic_runtime_next
        GOMP_loop_ull_dynamic_next GOMP_loop_ull_guided_next GOMP_loop_ull_runtime_next
        GOMP_loop_ull_nonmonotonic_dynamic_next GOMP_loop_ull_nonmonotonic_guided_next
        GOMP_loop_ull_nonmonotonic_runtime_next GOMP_loop_ull_maybe_nonmonotonic_runtime_next](
        first: usize, last: usize,
    ) -> c_int {
        let entry = enter!(real(first, last));
        pass_token(&entry);
        real(first, last)
    }

    fn GOMP_critical_start() -> () {
        let entry = enter!(real());
        enter_section(&entry, section!(GOMP_critical_start), || real());
    }
    fn GOMP_critical_end() -> () {
        let entry = enter!(real());
        leave_section(&entry, section!(GOMP_critical_start), || real());
    }
    fn GOMP_critical_name_start(lock: usize) -> () {
        let entry = enter!(real(lock));
        enter_section(&entry, lock, || real(lock));
    }
    fn GOMP_critical_name_end(lock: usize) -> () {
        let entry = enter!(real(lock));
        leave_section(&entry, lock, || real(lock));
    }
    fn GOMP_atomic_start() -> () {
        let entry = enter!(real());
        enter_section(&entry, section!(GOMP_atomic_start), || real());
    }
    fn GOMP_atomic_end() -> () {
        let entry = enter!(real());
        leave_section(&entry, section!(GOMP_atomic_start), || real());
    }

    fn [GOMP_loop_ordered_static_start GOMP_loop_ordered_dynamic_start GOMP_loop_ordered_guided_start](
        start: c_long, end: c_long, step: c_long, chunk: c_long, first: usize, last: usize,
    ) -> c_int {
        note_ordered_loop(0);
        real(start, end, step, chunk, first, last)
    }
    fn GOMP_loop_ordered_runtime_start(
        start: c_long, end: c_long, step: c_long, first: usize, last: usize,
    ) -> c_int {
        note_ordered_loop(0);
        real(start, end, step, first, last)
    }
    fn [GOMP_loop_doacross_static_start GOMP_loop_doacross_dynamic_start GOMP_loop_doacross_guided_start
        GOMP_loop_ull_doacross_static_start GOMP_loop_ull_doacross_dynamic_start
        GOMP_loop_ull_doacross_guided_start](
        dimensions: c_uint, counts: usize, chunk: c_long, first: usize, last: usize,
    ) -> c_int {
        note_ordered_loop(dimensions);
        real(dimensions, counts, chunk, first, last)
    }
    fn [GOMP_loop_doacross_runtime_start GOMP_loop_ull_doacross_runtime_start](
        dimensions: c_uint, counts: usize, first: usize, last: usize,
    ) -> c_int {
        note_ordered_loop(dimensions);
        real(dimensions, counts, first, last)
    }
    fn [GOMP_loop_doacross_start GOMP_loop_ull_doacross_start](
        dimensions: c_uint, counts: usize, schedule: c_long, chunk: c_long, first: usize, last: usize,
        reductions: usize, memory: usize,
    ) -> c_int {
        note_ordered_loop(dimensions);
        real(dimensions, counts, schedule, chunk, first, last, reductions, memory)
    }
    fn [GOMP_doacross_post GOMP_doacross_ull_post](counts: *const u64) -> () {
        let entry = enter!(real(counts));
        let dimensions = (*entry.thread).dimensions as usize;
        let counts_of = (0..dimensions).map(|place| *counts.add(place));
        announce(&entry, turn(entry.thread, iteration(counts_of)));
        real(counts);
    }
    // As many as there are dimensions; more are garbage that the library does not look at.
    fn [GOMP_doacross_wait GOMP_doacross_ull_wait](
        a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64,
    ) -> () {
        let entry = enter!(real(a, b, c, d, e, f, g, h));
        waiting(entry.thread, || real(a, b, c, d, e, f, g, h));
        let counts = [a, b, c, d, e, f, g, h].into_iter().take((*entry.thread).dimensions as usize);
        await_turn(&entry, turn(entry.thread, iteration(counts)));
    }
    fn GOMP_ordered_start() -> () {
        let entry = enter!(real());
        waiting(entry.thread, || real());
        await_turn(&entry, turn(entry.thread, 0));
    }
    fn GOMP_ordered_end() -> () {
        let entry = enter!(real());
        announce(&entry, turn(entry.thread, 0));
        real();
    }

    fn GOMP_task(
        routine: usize, data: usize, copier: usize, size: c_long, alignment: c_long, condition: c_int,
        flags: c_uint, depend: *const usize, priority: c_int, detach: usize,
    ) -> () {
        let entry =
            enter!(real(routine, data, copier, size, alignment, condition, flags, depend, priority, detach));
        let is_sequential = condition as u8 == 0 || runs_at_once();
        let (size, alignment) = (size as usize, alignment as usize);
        let mut task = new_task(&entry, [routine, data, copier], [size, alignment], is_sequential);
        let has_dependences = flags & task::DEPEND != 0;
        if has_dependences {
            task.depend = depend;
        }
        let thread = entry.thread;
        let call = || real(
            run_task as *const () as usize,
            &raw mut task as usize,
            copy_task as *const () as usize,
            block_size(size, alignment) as c_long,
            align_of::<Task>() as c_long,
            condition, flags, depend, priority, detach,
        );
        if has_dependences { waiting(thread, call) } else { in_library(thread, call) }
    }
    fn [GOMP_taskloop GOMP_taskloop_ull](
        routine: usize, data: usize, copier: usize, size: c_long, alignment: c_long, flags: c_uint,
        count: usize, priority: c_int, start: u64, end: u64, step: u64,
    ) -> () {
        let entry =
            enter!(real(routine, data, copier, size, alignment, flags, count, priority, start, end, step));
        let is_sequential = flags & task::IF == 0 || runs_at_once();
        let sizes = [size as usize, alignment as usize];
        let task = new_task(&entry, [routine, data, copier], sizes, is_sequential);
        task_loop(&entry, task, flags, |data, routine, copier, size| {
            let alignment = align_of::<Task>() as c_long;
            real(routine, data, copier, size as c_long, alignment, flags, count, priority, start, end, step);
        });
    }
    fn GOMP_taskgroup_reduction_register(description: usize) -> () {
        REDUCTIONS.add(description);
        real(description);
    }
    fn GOMP_taskgroup_reduction_unregister(description: usize) -> () {
        REDUCTIONS.remove(description);
        real(description);
    }
    fn GOMP_task_reduction_remap(count: usize, original_count: usize, places: *mut usize) -> () {
        let entry = enter!(real(count, original_count, places));
        real(count, original_count, places);
        for place in 0..count {
            if let Some(copy) = REDUCTIONS.copy(*places.add(place)) {
                begin_scratch(&entry, copy);
            }
        }
    }
    fn GOMP_taskwait() -> () {
        let entry = enter!(real());
        waiting(entry.thread, || real());
        entry.log(Kind::TaskWait, 0);
    }
    fn GOMP_taskwait_depend(depend: *const usize) -> () {
        let entry = enter!(real(depend));
        waiting(entry.thread, || real(depend));
        log_dependences(&entry, depend, None);
    }
    fn GOMP_taskyield() -> () {
        let entry = enter!(real());
        waiting(entry.thread, || real());
    }
    fn GOMP_taskgroup_start() -> () {
        let entry = enter!(real());
        entry.log(Kind::GroupBegin, 0);
        real();
    }
    fn GOMP_taskgroup_end() -> () {
        let entry = enter!(real());
        waiting(entry.thread, || real());
        entry.log(Kind::GroupEnd, 0);
    }
}
