//! Ends of lives: memory that is freed, locks and the like that are destroyed.
//!
//! A trace says that a life ends only where it is seen what the end waits for. Code that was not recorded may count
//! references out of sight and end the life after the last of them. So does Rust's standard library, whose code lies
//! among the program's own: what it did shows in the counters. A block is counted out of sight if an update finds
//! another count than the last one left, or if the thread that frees it was not the last to look at its atomics.
//!
//! Containers whose links are written in a library that was not rebuilt lead to memory by ways that nobody sees
//! change: `std::list` and `std::map` do. So a block is left out if recorded code reads in it what no recorded code
//! wrote, or finds it by such a pointer. Where values are not recorded, as when threads run freely, that does not show,
//! and what C++ programs make by `new` is left out, and so are the ends of their handles. Blocks that a library made are its
//! own. Where there is more memory than values are compared of, nothing ends from there on.

use std::io;

use reweave_runtime::wire::{Event, Kind, flag, handle};
use reweave_trace::{NameKind, Names, ObjectOp, Op};

use super::scan::is_new;
use super::{Current, Pass};
use crate::shadow::WORD_BYTES;

/// What is known of the atomics in a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Who accessed one last.
    last_thread: u32,
    /// What the two counters hold with which blocks of Rust's `Arc` begin.
    stored: [Option<u64>; 2],
    is_out_of_sight: bool,
}

impl Counted {
    /// Thread `number` accesses the atomic that is `offset` bytes into the block.
    pub fn step(&mut self, number: u32, event: &Event, offset: u64) {
        self.last_thread = number;
        let is_counter = 1 << event.size == WORD_BYTES && offset.is_multiple_of(WORD_BYTES);
        let stored = self.stored.get_mut((offset / WORD_BYTES) as usize);
        let Some(stored) = stored.filter(|_| is_counter) else { return };
        if let (Some(stored), Some(found)) = (*stored, event.value)
            && matches!(event.kind, Kind::AtomicLoad | Kind::AtomicUpdate | Kind::AtomicFailed)
        {
            self.is_out_of_sight |= stored != found;
        }
        match event.kind {
            Kind::AtomicUpdate => *stored = event.extra,
            Kind::AtomicStore => *stored = event.value,
            _ => {}
        }
    }
}

/// How functions of Rust's library are called that free memory.
const RUST_NAMES: [&str; 9] = [
    "alloc::",
    "<alloc::",
    "core::",
    "<core::",
    "<std::",
    "std::thread",
    "std::sys",
    "__rdl_",
    "__rust",
];

impl Pass<'_> {
    /// Whether it is seen what the end of a block waits for whose atomics are as `count` says.
    pub fn is_end_seen(&mut self, current: &Current, time: u64, count: Option<Counted>) -> bool {
        let event = current.event;
        let is_linked = self.first_pass.is_linked_unseen(time);
        let is_made = self.memory.library_blocks.contains(&time);
        let is_compared = self.first_pass.is_compared(current.place);
        if event.flags & flag::ASSUMED != 0 || is_linked || is_made || !is_compared {
            return false;
        }
        let Some(count) = count else { return true };
        let is_counted = !count.is_out_of_sight && count.last_thread == current.number;
        is_counted || !self.is_freed_by_rust(event.code)
    }

    /// The block that was allocated at `time` is a library's if that made it, other than by `new`. Without values
    /// it is not known whether what `new` made is linked out of sight.
    pub fn note_maker(&mut self, current: &Current, time: u64) {
        let event = current.event;
        let is_library = event.flags & flag::ASSUMED != 0;
        let has_values = self.first_pass.has_values;
        if !is_library && has_values {
            return;
        }
        let is_new = is_new(&self.symbols.functions(event.code));
        if is_library && !is_new || !has_values && is_new {
            self.memory.library_blocks.insert(time);
        }
    }

    fn is_freed_by_rust(&mut self, code: u64) -> bool {
        let functions = self.symbols.functions(code);
        functions.iter().any(|name| RUST_NAMES.iter().any(|start| name.starts_with(start)))
    }

    /// A lock, condition, barrier or semaphore is destroyed that was used or will be.
    pub fn end_life(&mut self, current: &mut Current) -> io::Result<()> {
        let Event { address, flags, extra, .. } = current.event;
        if flags & flag::ASSUMED != 0 || !self.first_pass.sees_links(current.place) {
            self.misuses.destroyed(current, None, None);
            return Ok(());
        }
        if self.first_pass.is_used_destroyed(address) {
            self.lock(address);
        }
        let (objects, names) = (&self.objects, self.sink.names());
        let lock = objects.locks.used_at(address).filter(|_| extra.is_none());
        let name = match extra {
            None => lock.map(|id| (NameKind::Lock, names.locks.name(id))),
            Some(handle::CONDITION) => {
                let condition = objects.conditions.used_at(address);
                condition.map(|id| (NameKind::Condition, names.conditions.name(id)))
            }
            Some(handle::BARRIER) => {
                let barrier = objects.barriers.used_at(address);
                barrier.map(|id| (NameKind::Barrier, names.barriers.name(id)))
            }
            Some(_) => {
                let semaphore = objects.semaphores.used_at(address);
                semaphore.map(|id| (NameKind::Semaphore, names.semaphores.name(id)))
            }
        };
        let Some(name) = name.and_then(|(kind, name)| Names::handle_name(kind, name)) else {
            return Ok(());
        };
        let object = names.objects.intern(&name);
        // What is destroyed a second time has ended already.
        if !self.ended_handles.insert(object) {
            return Ok(());
        }
        let is_emitted = self.emit(current, Op::Object(ObjectOp::Free, object), None)?;
        if lock.is_some() {
            let event = self.threads[current.thread].last_event.filter(|_| is_emitted);
            self.misuses.destroyed(current, event, lock);
        }
        Ok(())
    }
}
