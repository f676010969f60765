//! Handles of threads: who uses one, and when is it gone?
//!
//! The handle of a thread is gone when another has joined the thread, or when a detached thread ends. Its life is an
//! object if a thread uses the handle that is neither the thread itself nor the one that joins it. A thread that is
//! detached while it runs looks at its end whether it was: it cannot end its life before that. To detach it is a use
//! only where the thread is joined as well. Where a thread is detached that has ended, its life has no end here.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, channel, flag};
use reweave_trace::{AccessOp, MemoryOrder, NameKind, Names, ObjectOp, Op};

use super::{Current, Pass};

/// How handles of threads were used.
#[derive(Clone, Debug, Default)]
pub struct ThreadHandles {
    /// Threads, others that used their handles, and whether that was to detach them.
    uses: FxHashSet<(u32, u32, bool)>,
    /// Who ended the life of the handle of a thread: who joined it, or the thread itself.
    enders: FxHashMap<u32, u32>,
    /// Threads with a handle that another uses than those.
    shared: FxHashSet<u32>,
}

impl ThreadHandles {
    pub fn step(&mut self, thread: u32, event: &Event) {
        match event.kind {
            Kind::Receive if event.flags & flag::MISUSE == 0 => {
                let used = channel::thread(event.address).filter(|&used| used != thread);
                self.uses.extend(used.map(|used| (used, thread, is_to_detach(event))));
            }
            Kind::Join if event.flags & flag::TRY == 0 => {
                self.enders.insert(event.address as u32, thread);
            }
            Kind::Detach if event.extra.is_none() => {
                self.enders.insert(event.address as u32, event.address as u32);
            }
            _ => {}
        }
    }

    pub fn finish(&mut self) {
        let is_shared = |&&(used, user, is_to_detach): &&(u32, u32, bool)| {
            let ender = self.enders.get(&used);
            ender.is_some_and(|&ender| ender != user && !(is_to_detach && ender == used))
        };
        self.shared = self.uses.iter().filter(is_shared).map(|&(used, ..)| used).collect();
    }
}

/// Whether the handle that `event` uses is detached by that.
const fn is_to_detach(event: &Event) -> bool {
    event.flags & flag::OUT != 0
}

impl Pass<'_> {
    /// What the life of the handle of thread `number` is called, if it matters.
    fn thread_handle(&mut self, number: u32) -> Option<String> {
        if !self.first_pass.thread_handles.shared.contains(&number) {
            return None;
        }
        let thread = self.thread_id(number);
        Names::handle_name(NameKind::Thread, self.sink.names().threads.name(thread))
    }

    /// The handle of thread `number` is used.
    pub fn use_thread(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        if current.event.flags & flag::MISUSE != 0 {
            return self.misuse_of_joined(current, number);
        }
        let Some(name) = self.thread_handle(number) else { return Ok(()) };
        let var = self.sink.names().vars.intern(&name);
        let op = if is_to_detach(&current.event) {
            AccessOp::AtomicUpdate
        } else {
            AccessOp::AtomicRead
        };
        self.emit(current, Op::Access(op(MemoryOrder::Relaxed), var), None).map(drop)
    }

    /// The thread of `current` has joined thread `number`.
    pub fn end_joined(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let is_seen = current.event.flags & flag::TRY == 0;
        if is_seen { self.end_thread_handle(current, number) } else { Ok(()) }
    }

    /// The thread of `current` ends.
    pub fn end_detached(&mut self, current: &mut Current) -> io::Result<()> {
        let number = current.number;
        let is_ender = self.first_pass.thread_handles.enders.get(&number) == Some(&number);
        if !is_ender || self.misuses.is_joinable(number) {
            return Ok(());
        }
        let Some(name) = self.thread_handle(number) else { return Ok(()) };
        let var = self.sink.names().vars.intern(&name);
        self.emit(current, Op::Access(AccessOp::AtomicRead(MemoryOrder::Relaxed), var), None)?;
        self.end_thread_handle(current, number)
    }

    fn end_thread_handle(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let is_seen = self.first_pass.sees_links(current.place);
        let Some(name) = self.thread_handle(number).filter(|_| is_seen) else { return Ok(()) };
        let object = self.sink.names().objects.intern(&name);
        self.emit(current, Op::Object(ObjectOp::Free, object), None).map(drop)
    }
}
