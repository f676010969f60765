//! What compiled code calls in clang's OpenMP library, where its tool interface says too little:
//! it reports that a lock was released when another thread may have it already, and nothing of
//! where the data of tasks and of reductions are.

#![allow(clippy::too_many_arguments, reason = "as many as the functions that they stand for")]

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use super::super::interceptors;
use super::gomp::{iteration, note_ordered_loop, pass_token, turn};
use super::locks::{enter_section, leave_section};
use super::{announce, await_turn, begin_scratch, waiting};
use crate::log::Entry;
use crate::thread;
use crate::wire::{Kind, flag};

/// The bytes of a cache line, to which the library rounds what it reduces into.
const LINE: u64 = 64;

/// The most bytes that a variable of a reduction of tasks has had.
static REDUCED: AtomicU64 = AtomicU64::new(LINE);

/// A variable of a reduction of tasks.
#[repr(C)]
struct Reduced {
    shared: usize,
    original: usize,
    size: usize,
    functions: [usize; 3],
    flags: usize,
}

unsafe fn note_reduction(count: c_int, variables: *const Reduced) {
    for place in 0..count as usize {
        let size = (*variables.add(place)).size as u64;
        REDUCED.fetch_max(size.next_multiple_of(LINE), Ordering::Relaxed);
    }
}

/// The bytes of what the library keeps of a task before the task's own data, at most.
const TASK_HEAD_BYTES: u64 = 384;

/// Makes the tasks of a loop by `call`. The library runs copies of the one that was made last.
unsafe fn making_loop_tasks(entry: Entry, call: impl FnOnce()) {
    let thread = entry.thread;
    (*thread).loop_task_bytes = (*thread).task_bytes + TASK_HEAD_BYTES;
    (*thread).loop_code = entry.code;
    drop(entry);
    call();
    if thread::current() == thread {
        (*thread).loop_task_bytes = 0;
    }
}

interceptors! {
    fn __kmpc_critical(place: usize, thread: c_int, lock: usize) -> () |entry, call| {
        enter_section(&entry, lock, call);
    }
    fn __kmpc_critical_with_hint(place: usize, thread: c_int, lock: usize, hint: c_int) -> () |entry, call| {
        enter_section(&entry, lock, call);
    }
    fn __kmpc_end_critical(place: usize, thread: c_int, lock: usize) -> () |entry, call| {
        leave_section(&entry, lock, call);
    }
    fn __kmpc_ordered(place: usize, thread: c_int) -> () |entry, call| {
        waiting(entry.thread, call);
        await_turn(&entry, turn(entry.thread, 0));
    }
    fn __kmpc_end_ordered(place: usize, thread: c_int) -> () |entry, call| {
        announce(&entry, turn(entry.thread, 0));
        call();
    }
    fn __kmpc_doacross_init(place: usize, thread: c_int, dimensions: c_int, bounds: usize) -> () {
        note_ordered_loop(dimensions as u32);
        real(place, thread, dimensions, bounds);
    }
    fn __kmpc_doacross_post(place: usize, thread: c_int, counts: *const u64) -> () |entry, call| {
        let counts_of = (0..(*entry.thread).dimensions as usize).map(|place| *counts.add(place));
        announce(&entry, turn(entry.thread, iteration(counts_of)));
        call();
    }
    fn __kmpc_doacross_wait(place: usize, thread: c_int, counts: *const u64) -> () |entry, call| {
        waiting(entry.thread, call);
        let counts_of = (0..(*entry.thread).dimensions as usize).map(|place| *counts.add(place));
        await_turn(&entry, turn(entry.thread, iteration(counts_of)));
    }
    fn [__kmpc_dispatch_next_4 __kmpc_dispatch_next_4u __kmpc_dispatch_next_8 __kmpc_dispatch_next_8u](
        place: usize, thread: c_int, is_last: usize, first: usize, last: usize, step: usize,
    ) -> c_int |entry, call| {
        pass_token(&entry);
        call()
    }

    // Who is to add to the shared variables does so alone, or by atomic accesses.
    fn [__kmpc_reduce __kmpc_reduce_nowait](
        place: usize, thread: c_int, count: c_int, size: usize, data: usize, function: usize, lock: usize,
    ) -> c_int |entry, call| {
        const ALONE: c_int = 1;
        let how = waiting(entry.thread, call);
        if how == ALONE {
            entry.log_flags(Kind::Lock, lock as u64, flag::TRY);
            (*entry.thread).reduces = true;
        }
        how
    }
    fn [__kmpc_end_reduce __kmpc_end_reduce_nowait](place: usize, thread: c_int, lock: usize) -> () |entry, call| {
        if core::mem::take(&mut (*entry.thread).reduces) {
            entry.log(Kind::Unlock, lock as u64);
        }
        // The library reports the barrier in it.
        drop(entry);
        call();
    }

    fn __kmpc_omp_task_alloc(
        place: usize, thread: c_int, flags: c_int, size: usize, shared_size: usize, routine: usize,
    ) -> usize |entry, call| {
        let task = call();
        (*entry.thread).task_bytes = (size + shared_size) as u64;
        // What another task had there is gone.
        entry.log_extra(Kind::Alloc, task as u64, (size + shared_size) as u64);
        task
    }
    fn __kmpc_taskloop(
        place: usize, thread: c_int, task: usize, condition: c_int, first: usize, last: usize, step: i64,
        no_group: c_int, schedule: c_int, size: u64, copier: usize,
    ) -> () |entry, call| {
        making_loop_tasks(entry, call);
    }
    fn __kmpc_taskloop_5(
        place: usize, thread: c_int, task: usize, condition: c_int, first: usize, last: usize, step: i64,
        no_group: c_int, schedule: c_int, size: u64, modifier: c_int, copier: usize,
    ) -> () |entry, call| {
        making_loop_tasks(entry, call);
    }
    fn [__kmpc_omp_wait_deps __kmpc_omp_taskwait_deps_51](
        place: usize, thread: c_int, count: c_int, dependences: usize, more_count: c_int, more: usize,
        has_no_wait: c_int,
    ) -> () |entry, call| {
        waiting(entry.thread, call);
        entry.log_flags(Kind::TaskWait, 0, flag::OUT);
    }
    fn [__kmpc_taskred_init __kmpc_task_reduction_init](thread: c_int, count: c_int, data: usize) -> usize {
        note_reduction(count, data as *const Reduced);
        real(thread, count, data)
    }
    fn __kmpc_task_reduction_get_th_data(thread: c_int, group: usize, variable: usize) -> usize |entry, call| {
        let copy = call();
        begin_scratch(&entry, (copy as u64, REDUCED.load(Ordering::Relaxed)));
        copy
    }
}
