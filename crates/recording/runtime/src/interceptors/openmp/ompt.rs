//! The tool interface of clang's OpenMP library: what it reports of teams, tasks and waits.
//!
//! The library asks for a tool by the name `ompt_start_tool`, finds ours first, and from then on
//! calls back. A word of each task is ours: what kind of thread it is ([`State`]).

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{
    Identity, begin, end, fork, inside, is_recorded, new_numbers, new_team, note_fulfilled, resume,
    stack_frame, suspend_task, with_token,
};
use crate::log::{self, Entry, Operands};
use crate::thread::{self, Thread};
use crate::wire::{Kind, flag};
use crate::{process, replay, scheduler, sys};

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether the library of clang is at work and reports what it does.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

type Lookup = unsafe extern "C" fn(*const c_char) -> usize;

/// What the library wants to know of a tool.
#[repr(C)]
struct Tool {
    initialize: unsafe extern "C" fn(Lookup, c_int, *mut u64) -> c_int,
    finalize: unsafe extern "C" fn(*mut u64),
    data: u64,
}

struct Global(core::cell::UnsafeCell<Tool>);

// SAFETY: only the library writes to it, and only to the word that it keeps for us.
unsafe impl Sync for Global {}

static TOOL: Global = Global(core::cell::UnsafeCell::new(Tool { initialize, finalize, data: 0 }));

#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn ompt_start_tool(_: c_uint, _: *const c_char) -> *mut c_void {
    if process::is_on() { TOOL.0.get().cast() } else { ptr::null_mut() }
}

unsafe extern "C" fn initialize(lookup: Lookup, _: c_int, _: *mut u64) -> c_int {
    let set = lookup(c"ompt_set_callback".as_ptr());
    if set == 0 {
        return 0;
    }
    let set: unsafe extern "C" fn(c_int, usize) -> c_int = core::mem::transmute(set);
    for (event, callback) in [
        (3, on_parallel_begin as *const () as usize),
        (4, on_parallel_end as *const () as usize),
        (5, on_task_create as *const () as usize),
        (6, on_task_schedule as *const () as usize),
        (7, on_implicit_task as *const () as usize),
        (16, on_wait as *const () as usize),
        (18, on_dependences as *const () as usize),
        (23, on_sync_region as *const () as usize),
    ] {
        set(event, callback);
    }
    super::find_libraries();
    IS_ON.store(true, Ordering::Relaxed);
    1
}

unsafe extern "C" fn finalize(_: *mut u64) {}

const BEGIN: c_int = 1;

/// Does `body` on behalf of the running thread, which called the library from `code`, if it is
/// recorded.
unsafe fn on_behalf(code: u64, body: impl FnOnce(&Entry)) {
    let thread = thread::current();
    if !is_recorded(thread) {
        return;
    }
    if (*thread).depth == 0 {
        if let Some(entry) = log::enter(code) {
            body(&entry);
        }
        return;
    }
    // It is in an interceptor, and may have given up the token for its call.
    with_token(thread, || body(&inside(thread, code)));
}

// Regions.

/// A parallel region, in memory of its own.
struct Region {
    code: u64,
    parent: *mut Thread,
    /// The team that the parent is in otherwise, and where it began that.
    outer: (u32, u64),
    team: u32,
    /// The number of the team's second member; those of the others follow.
    number: u32,
    size: u32,
    /// The parent's forks before those of the team.
    forks: u32,
    is_ready: AtomicU32,
}

const REGION_BYTES: usize = 4096;

unsafe extern "C" fn on_parallel_begin(
    _: *mut u64,
    _: usize,
    data: *mut u64,
    _: c_uint,
    _: c_int,
    code: u64,
) {
    *data = 0;
    on_behalf(code, |entry| {
        let Some(region) = sys::allocate(REGION_BYTES) else { return };
        let region = region.cast::<Region>();
        let parent = entry.thread;
        let team = new_team();
        region.write(Region {
            code,
            parent,
            outer: ((*parent).team, (*parent).region_code),
            team,
            number: 0,
            size: 0,
            forks: 0,
            is_ready: AtomicU32::new(0),
        });
        *data = region as u64;
        entry.log(Kind::TeamBegin, u64::from(team));
        ((*parent).team, (*parent).region_code) = (team, code);
    });
    enter_library();
}

/// The running thread is in the library until [`leave_library`]: what is called there on its behalf
/// is not the program's, and the library has locks that others may wait for.
unsafe fn enter_library() {
    let thread = thread::current();
    if is_recorded(thread) && (*thread).depth == 0 {
        (*thread).depth = 1;
        scheduler::settle(thread);
        scheduler::release(thread);
        (*thread).is_in_region = true;
    }
}

unsafe fn leave_library() {
    let thread = thread::current();
    if is_recorded(thread) && core::mem::take(&mut (*thread).is_in_region) {
        scheduler::acquire(thread);
        super::leave(thread);
    }
}

unsafe extern "C" fn on_parallel_end(data: *mut u64, _: *mut u64, _: c_int, code: u64) {
    let region = core::mem::take(&mut *data) as *mut Region;
    if region.is_null() {
        return;
    }
    on_behalf(code, |entry| {
        if entry.thread == (*region).parent {
            entry.log(Kind::TeamEnd, u64::from((*region).team));
            ((*entry.thread).team, (*entry.thread).region_code) = (*region).outer;
        }
    });
    leave_library();
    sys::unmap(region.cast(), REGION_BYTES);
}

unsafe extern "C" fn on_implicit_task(
    scope: c_int,
    parallel: *mut u64,
    task: *mut u64,
    size: c_uint,
    index: c_uint,
    _: c_int,
) {
    // Members end where they come to the last barrier of the region.
    if scope != BEGIN {
        return;
    }
    *task = State::Beneath.word();
    let region = if parallel.is_null() { 0 } else { *parallel } as *mut Region;
    if region.is_null() {
        return;
    }
    if index == 0 {
        return fork_members(region, size);
    }
    while (*region).is_ready.load(Ordering::Acquire) == 0 {
        sys::futex_wait(&(*region).is_ready, 0, 1000);
    }
    if index >= (*region).size {
        return;
    }
    let entry = replay::child_entry_after((*region).parent, (*region).forks + index - 1);
    let number = (*region).number + index - 1;
    let identity = Identity { number, entry, team: (*region).team };
    if let Some(thread) = begin(identity, stack_frame!(), (*region).code) {
        (*thread).is_member = true;
        super::leave(thread);
    }
}

unsafe fn fork_members(region: *mut Region, size: u32) {
    let parent = (*region).parent;
    on_behalf((*region).code, |entry| {
        if entry.thread != parent {
            return;
        }
        let Some(number) = new_numbers(size.saturating_sub(1)) else { return };
        ((*region).number, (*region).size) = (number, size);
        (*region).forks = (*parent).forks;
        for index in 1..size {
            fork(entry, number + index - 1, (*region).team, flag::MEMBER);
        }
        let waiting = scheduler::waiting_count();
        let_members_begin(region);
        scheduler::await_waiting(waiting + size.saturating_sub(1));
    });
    let_members_begin(region);
    leave_library();
}

unsafe fn let_members_begin(region: *mut Region) {
    (*region).is_ready.store(1, Ordering::Release);
    sys::futex_wake(&(*region).is_ready, u32::MAX >> 1);
}

// Waiting.

/// Kinds of regions in which threads synchronize.
mod region {
    pub const IMPLICIT: i32 = 2;
    pub const TASKWAIT: i32 = 5;
    pub const TASKGROUP: i32 = 6;
    pub const REDUCTION: i32 = 7;
    pub const PARALLEL: i32 = 9;
}

unsafe extern "C" fn on_sync_region(
    kind: c_int,
    scope: c_int,
    _: *mut u64,
    _: *mut u64,
    code: u64,
) {
    let thread = thread::current();
    if !is_recorded(thread) {
        return;
    }
    let is_begin = scope == BEGIN;
    // Of the last barrier of a region the library does not say where its members come from.
    let is_last = code == 0 && matches!(kind, region::IMPLICIT | region::PARALLEL);
    if is_begin && is_last && (*thread).is_member && (*thread).depth == 0 {
        if log::enter(code).map(core::mem::forget).is_some() {
            end(thread, stack_frame!(), 0);
        }
        return;
    }
    on_behalf(code, |entry| match (kind, is_begin) {
        (region::TASKWAIT, false) => entry.log(Kind::TaskWait, 0),
        (region::TASKGROUP, true) => entry.log(Kind::GroupBegin, 0),
        (region::TASKGROUP, false) => entry.log(Kind::GroupEnd, 0),
        (region::TASKWAIT | region::REDUCTION, _) => {}
        (_, true) => entry.log(Kind::TeamArrive, 0),
        (_, false) => entry.log(Kind::TeamDepart, 0),
    });
    // Who began the region leaves the library when it is over.
    if is_begin && code != 0 && code == (*thread).region_code {
        enter_library();
    }
}

/// The running thread begins to wait in the library, which may run tasks meanwhile, or ends to.
unsafe extern "C" fn on_wait(_: c_int, scope: c_int, _: *mut u64, _: *mut u64, code: u64) {
    let thread = thread::current();
    if !is_recorded(thread) {
        return;
    }
    if scope == BEGIN {
        // Who is in an interceptor has given up the token already.
        if (*thread).depth == 0
            && let Some(entry) = log::enter(code)
        {
            core::mem::forget(entry);
            (*thread).is_waiting = true;
            scheduler::release(thread);
        }
    } else if core::mem::take(&mut (*thread).is_waiting) {
        scheduler::acquire(thread);
        note_fulfilled(thread);
        super::leave(thread);
    }
}

// Tasks.

/// What the library remembers of a task for us.
#[derive(Clone, Copy)]
enum State {
    /// An implicit task, or one that is not recorded.
    Beneath,
    /// A part of the thread with this number, which created it.
    Part(u32),
    /// A thread of its own that has not begun.
    New(Identity),
    /// A thread of its own.
    Begun(*mut Thread),
}

impl State {
    const TAG: u32 = 62;
    const PART: u64 = 1;
    const NEW: u64 = 2;
    const ENTRY_MASK: u32 = (1 << 30) - 1;

    const fn word(self) -> u64 {
        match self {
            Self::Beneath => 0,
            Self::Part(creator) => Self::PART << Self::TAG | creator as u64,
            // No plan has as many entries.
            Self::New(Identity { number, entry, .. }) => {
                Self::NEW << Self::TAG | ((entry & Self::ENTRY_MASK) as u64) << 32 | number as u64
            }
            Self::Begun(_) => 0,
        }
    }

    unsafe fn new(data: *const u64) -> Self {
        if data.is_null() {
            return Self::Beneath;
        }
        let word = *data;
        match word >> Self::TAG {
            Self::PART => Self::Part(word as u32),
            Self::NEW => {
                let entry = (word >> 32) as u32 & Self::ENTRY_MASK;
                let entry = if entry == Self::ENTRY_MASK { u32::MAX } else { entry };
                Self::New(Identity { number: word as u32, entry, team: 0 })
            }
            _ if word == 0 => Self::Beneath,
            _ => Self::Begun(word as *mut Thread),
        }
    }
}

unsafe extern "C" fn on_task_create(
    _: *mut u64,
    _: usize,
    task: *mut u64,
    flags: c_uint,
    _: c_int,
    code: u64,
) {
    const INITIAL: c_uint = 1;
    const TASKWAIT: c_uint = 0x10;
    const UNDEFERRED: c_uint = 0x0800_0000;
    const MERGED: c_uint = 0x8000_0000;
    if flags & INITIAL != 0 {
        *task = State::Beneath.word();
        return;
    }
    *task = State::Part(u32::MAX).word();
    // Of the tasks of a loop the library says that it creates them itself.
    let is_own = super::is_library(code) && is_recorded(thread::current());
    let code = if is_own { (*thread::current()).loop_code } else { code };
    on_behalf(code, |entry| {
        let thread = entry.thread;
        if flags & (TASKWAIT | UNDEFERRED | MERGED) != 0 {
            *task = State::Part((*thread).number).word();
            return;
        }
        let bytes = (*thread).loop_task_bytes;
        if bytes != 0 {
            // Tasks of a loop are copied by the library, to where others may have been.
            entry.log_extra(Kind::Alloc, task.add(1) as u64, bytes);
        }
        if let Some(number) = new_numbers(1) {
            *task = State::New(fork(entry, number, (*thread).team, flag::TASK)).word();
        }
    });
}

/// What a task depends on, as the library says it.
#[repr(C)]
struct Dependence {
    address: u64,
    kind: c_int,
}

unsafe extern "C" fn on_dependences(task: *mut u64, dependences: *const Dependence, count: c_int) {
    const READS: c_int = 1;
    const IS_SET: c_int = 4;
    const SOURCE: c_int = 5;
    const SINK: c_int = 6;
    let number = match State::new(task) {
        State::New(identity) => Some(u64::from(identity.number)),
        State::Part(_) => None,
        State::Beneath | State::Begun(_) => return,
    };
    on_behalf(0, |entry| {
        for place in 0..count as usize {
            let Dependence { address, kind } = *dependences.add(place);
            let flags = match kind {
                SOURCE | SINK => return,
                READS => 0,
                IS_SET => flag::SET,
                _ => flag::OUT,
            };
            let operands = Operands { flags, extra: number, ..Operands::default() };
            entry.log_with(Kind::Depend, address, operands);
        }
    });
}

/// The kernel's thread goes from the task `prior` to the task `next`.
unsafe extern "C" fn on_task_schedule(prior: *mut u64, status: c_int, next: *mut u64) {
    const COMPLETE: c_int = 1;
    const CANCEL: c_int = 3;
    let thread = thread::current();
    let is_over = matches!(status, COMPLETE | CANCEL);
    if let State::Begun(prior_thread) = State::new(prior)
        && prior_thread == thread
    {
        let leaves = match State::new(next) {
            _ if is_over => true,
            State::Beneath => true,
            State::Part(creator) => creator != (*thread).number,
            State::New(_) => false,
            State::Begun(next) => next == (*thread).beneath,
        };
        if is_over {
            *prior = State::Beneath.word();
        }
        if leaves {
            let was_inside = (*thread).depth != 0;
            if was_inside || log::enter(0).map(core::mem::forget).is_some() {
                if is_over {
                    end(thread, stack_frame!(), 0);
                } else {
                    suspend_task(thread, stack_frame!());
                }
            }
            // What the thread goes back to was running before.
            return;
        }
    }
    match State::new(next) {
        State::New(identity) => {
            let team = if is_recorded(thread) { (*thread).team } else { 0 };
            if let Some(thread) = begin(Identity { team, ..identity }, stack_frame!(), 0) {
                *next = thread as u64;
                super::leave(thread);
            }
        }
        State::Begun(next) if next != thread => resume(next, stack_frame!()),
        State::Begun(_) | State::Beneath | State::Part(_) => {}
    }
}
