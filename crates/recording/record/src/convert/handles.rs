//! Lives of libraries, timers and streams: who ends one that others use?
//!
//! A timer lives until it is deleted, a stream that leads to no descriptor until it is closed. A library that was loaded
//! while the program runs lives until it is unloaded, by the last of as many `dlclose` as there were `dlopen`. It is used by
//! looking something up in it, by its code, and by accesses to its variables. A life that one thread ends and another uses is
//! an object, and its users read a variable of its name.
//!
//! Which `dlclose` is the last depends on the order of all, and the loader counts out of sight. So libraries end only where one thread
//! closes all that are closed. They do when the call is over: what their own destructors wait for comes before.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, HandleStep, Kind, flag, handle};
use reweave_trace::{AccessOp, LIBRARY, MemoryOrder, ObjectOp, Op};

use super::events::has_no_operation;
use super::{Current, Pass};
use crate::shadow::Access;

/// What has a life: what it is, one of [`handle`], and its address.
type Key = (u64, u64);

/// A life of a handle.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Which it is at this address, from 1.
    number: u32,
    is_over: bool,
    /// The place where it was made, if that is known.
    since: u64,
    user: Option<u32>,
    has_several_users: bool,
}

impl Life {
    /// What is used now: the next life, if this one is over.
    fn go_on(&mut self) -> &mut Self {
        if self.number == 0 || self.is_over {
            *self = Self { number: self.number + 1, ..Self::default() };
        }
        self
    }

    fn use_by(&mut self, thread: u32) {
        let life = self.go_on();
        life.has_several_users |= *life.user.get_or_insert(thread) != thread;
    }

    /// `thread` ends it. Says whether another used it.
    fn end(&mut self, thread: u32) -> bool {
        let life = self.go_on();
        life.is_over = true;
        life.has_several_users || life.user.is_some_and(|user| user != thread)
    }
}

/// Where libraries are: the first address, and the first behind.
#[derive(Clone, Debug, Default)]
struct Loaded(Vec<(u64, u64)>);

impl Loaded {
    fn add(&mut self, event: &Event) {
        self.remove(event.address);
        self.0.push((event.address, event.address.saturating_add(event.value.unwrap_or(0))));
    }

    fn remove(&mut self, start: u64) {
        self.0.retain(|&(known, _)| known != start);
    }

    /// Where the library begins that `event` uses.
    fn used_by(&self, event: &Event) -> Option<u64> {
        if self.0.is_empty() || has_no_operation(event.kind) {
            return None;
        }
        let is_used = event.handle_step() == Some(HandleStep::Used);
        let is_inside = is_used || Access::new(event).is_some();
        let holds = |&&(start, end): &&(u64, u64)| {
            let within = start..end;
            within.contains(&event.code) || is_inside && within.contains(&event.address)
        };
        self.0.iter().find(holds).map(|&(start, _)| start)
    }
}

/// How handles were used.
#[derive(Clone, Debug, Default)]
pub struct Handles {
    lives: FxHashMap<Key, Life>,
    loaded: Loaded,
    /// The last `dlclose` of each thread: its place, and whether it is seen why.
    closing: FxHashMap<u32, (u64, bool)>,
    has_several_closers: bool,
    /// Lives that one thread ended and another used.
    shared: FxHashSet<(Key, u32)>,
    /// Which lives of libraries were made, by the places where that is said.
    made: FxHashMap<u64, u32>,
    /// Where it is said that a library is gone that others used.
    unloaded: FxHashSet<u64>,
}

impl Handles {
    pub fn step(&mut self, thread: u32, event: &Event, place: u64) {
        if let (Some(step), Some(what)) = (event.handle_step(), event.extra) {
            self.step_handle(thread, event, place, (step, what));
        }
        if let Some(start) = self.loaded.used_by(event) {
            self.lives.entry((handle::LIBRARY, start)).or_default().use_by(thread);
        }
    }

    fn step_handle(
        &mut self,
        thread: u32,
        event: &Event,
        place: u64,
        (step, what): (HandleStep, u64),
    ) {
        let is_seen = event.flags & flag::ASSUMED == 0;
        let key = (what, event.address);
        let is_library = what == handle::LIBRARY;
        match step {
            HandleStep::Made => {
                self.loaded.add(event);
                let life = self.lives.entry(key).or_default();
                // One of which nobody saw the end is over now.
                life.is_over = true;
                let life = life.go_on();
                life.since = place;
                self.made.insert(place, life.number);
            }
            HandleStep::Used if is_library => {}
            HandleStep::Used => self.lives.entry(key).or_default().use_by(thread),
            HandleStep::Ends if is_library => {
                self.closing.insert(thread, (place, is_seen));
                self.has_several_closers = self.closing.len() > 1;
            }
            HandleStep::Ends => {
                let life = self.lives.entry(key).or_default();
                if life.end(thread) && is_seen {
                    self.shared.insert((key, life.number));
                }
            }
            HandleStep::Gone => {
                let Some(&(closing, is_close_seen)) = self.closing.get(&thread) else { return };
                let life = self.lives.entry(key).or_default();
                // What was loaded at the same place meanwhile lives on.
                if life.since > closing {
                    return;
                }
                self.loaded.remove(event.address);
                if life.end(thread) && is_seen && is_close_seen {
                    self.shared.insert((key, life.number));
                    self.unloaded.insert(place);
                }
            }
        }
    }
}

/// Which life each handle has in the last pass.
#[derive(Debug, Default)]
pub struct OpenHandles {
    lives: FxHashMap<Key, Life>,
    /// Libraries with lives that matter.
    loaded: Loaded,
    /// What the lives of libraries are called.
    names: FxHashMap<u64, String>,
    /// Where libraries began that are gone.
    gone: FxHashSet<u64>,
    /// How many other handles have names.
    names_count: FxHashMap<Key, usize>,
    /// The code by which each thread used a library last, if it did nothing but access memory since.
    last_use: FxHashMap<u32, u64>,
}

impl Pass<'_> {
    /// At `place` a library was loaded, or is no longer there.
    pub fn load_library(&mut self, event: &Event, step: HandleStep, place: u64) {
        let Handles { made, unloaded, shared, has_several_closers, .. } = &self.first_pass.handles;
        if *has_several_closers {
            return;
        }
        if step == HandleStep::Gone {
            self.handles.gone.extend(unloaded.contains(&place).then_some(event.address));
            return;
        }
        let Some(&number) = made.get(&place) else { return };
        if shared.contains(&((handle::LIBRARY, event.address), number)) {
            let own = self.library(event.address);
            self.handles.loaded.add(event);
            self.handles.names.insert(event.address, format!("{LIBRARY}({own})#{number}"));
        }
    }

    /// What happens at `current` may use a library.
    pub fn use_library(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        // Right after a library is gone, its memory is said to be another.
        if event.kind == Kind::Alloc && self.handles.gone.remove(&event.address) {
            return self.unload_library(current);
        }
        let Some(start) = self.handles.loaded.used_by(&event) else {
            if !self.handles.last_use.is_empty() && Access::new(&event).is_none() {
                self.handles.last_use.remove(&current.number);
            }
            return Ok(());
        };
        // Nothing that lets others go on lies between the two.
        if self.handles.last_use.insert(current.number, event.code) == Some(event.code) {
            return Ok(());
        }
        let Some(name) = self.handles.names.get(&start).cloned() else { return Ok(()) };
        self.read_life(current, &name)
    }

    fn read_life(&mut self, current: &mut Current, name: &str) -> io::Result<()> {
        let var = self.sink.names().vars.intern(name);
        let op = Op::Access(AccessOp::AtomicRead(MemoryOrder::Relaxed), var);
        self.emit(current, op, None).map(drop)
    }

    fn end_handle(&mut self, current: &mut Current, name: &str) -> io::Result<()> {
        if !self.first_pass.sees_links(current.place) {
            return Ok(());
        }
        let object = self.sink.names().objects.intern(name);
        self.emit(current, Op::Object(ObjectOp::Free, object), None).map(drop)
    }

    /// A handle is used or about to end.
    pub fn step_handle(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let (Some(step), Some(what)) = (event.handle_step(), event.extra) else { return Ok(()) };
        if what == handle::LIBRARY {
            return Ok(());
        }
        let key = (what, event.address);
        let life = self.handles.lives.entry(key).or_default().go_on();
        let number = life.number;
        life.is_over = step == HandleStep::Ends;
        if !self.first_pass.handles.shared.contains(&(key, number)) {
            return Ok(());
        }
        let word = if what == handle::TIMER { "timer" } else { "stream" };
        let known = self.handles.names_count.len() + 1;
        let own = *self.handles.names_count.entry(key).or_insert(known);
        let name = format!("{word}({own})#{number}");
        match step {
            HandleStep::Ends => self.end_handle(current, &name),
            _ => self.read_life(current, &name),
        }
    }

    /// The library is gone whose memory `current` says to be another.
    fn unload_library(&mut self, current: &mut Current) -> io::Result<()> {
        let start = current.event.address;
        self.handles.loaded.remove(start);
        let Some(name) = self.handles.names.remove(&start) else { return Ok(()) };
        self.end_handle(current, &name)
    }
}
