//! Lives of libraries, timers and streams: who ends one that others use?
//!
//! A timer lives until it is deleted, a stream that leads to no descriptor until it is closed. A library that was loaded
//! while the program runs lives until it is unloaded, by the last of as many `dlclose` as there were `dlopen`. It is used by
//! looking something up in it, by its code, and by accesses to its variables. A life that one thread ends and another uses is
//! an object, and its users read a variable of its name.
//!
//! Which `dlclose` is the last depends on the order of all. So each comes after those before it, also of other libraries, which may need
//! this one: they change one variable.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, HandleStep, flag, handle};
use reweave_trace::{AccessOp, LIBRARY, MemoryOrder, ObjectOp, Op};

use super::events::has_no_operation;
use super::{Current, Pass};
use crate::shadow::Access;

/// What stands for how often libraries were opened that are not closed yet.
const OPEN_LIBRARIES: &str = "open_libraries";

/// What has a life: what it is, one of [`handle`], and its address.
type Key = (u64, u64);

/// A life of a handle.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Which it is at this address, from 1.
    number: u32,
    is_over: bool,
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
    closes_count: u64,
    /// Lives that one thread ended and another used.
    shared: FxHashSet<(Key, u32)>,
    /// Where libraries begin that are unloaded, by the places of the `dlclose`.
    unloaded: FxHashMap<u64, Vec<u64>>,
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
                _ = self.lives.entry(key).or_default().go_on();
            }
            HandleStep::Used if is_library => {}
            HandleStep::Used => self.lives.entry(key).or_default().use_by(thread),
            HandleStep::Ends if is_library => {
                self.closes_count += 1;
                self.closing.insert(thread, (place, is_seen));
            }
            HandleStep::Ends => {
                let life = self.lives.entry(key).or_default();
                if life.end(thread) && is_seen {
                    self.shared.insert((key, life.number));
                }
            }
            HandleStep::Gone => {
                self.loaded.remove(event.address);
                let life = self.lives.entry(key).or_default();
                let is_shared = life.end(thread);
                if let Some(&(place, true)) = self.closing.get(&thread)
                    && is_shared
                {
                    self.shared.insert((key, life.number));
                    self.unloaded.entry(place).or_default().push(event.address);
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
    /// How many other handles have names.
    names_count: FxHashMap<Key, usize>,
    /// The code by which each thread used a library last, if it did nothing but access memory since.
    last_use: FxHashMap<u32, u64>,
}

impl Pass<'_> {
    /// A library was loaded, or is no longer there.
    pub fn load_library(&mut self, event: &Event, step: HandleStep) {
        let key = (handle::LIBRARY, event.address);
        let life = self.handles.lives.entry(key).or_default();
        if step == HandleStep::Gone {
            life.go_on().is_over = true;
            self.handles.loaded.remove(event.address);
            return;
        }
        let number = life.go_on().number;
        if self.first_pass.handles.shared.contains(&(key, number)) {
            let own = self.library(event.address);
            self.handles.loaded.add(event);
            self.handles.names.insert(event.address, format!("{LIBRARY}({own})#{number}"));
        }
    }

    /// What happens at `current` may use a library.
    pub fn use_library(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
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
            let is_end = step == HandleStep::Ends;
            return if is_end { self.close_library(current) } else { Ok(()) };
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

    /// A thread closes a library once. It is unloaded if nobody else has it open.
    fn close_library(&mut self, current: &mut Current) -> io::Result<()> {
        let Handles { closes_count, unloaded, .. } = &self.first_pass.handles;
        if unloaded.is_empty() {
            return Ok(());
        }
        let starts = unloaded.get(&current.place).cloned().unwrap_or_default();
        if *closes_count > 1 {
            let var = self.sink.names().vars.intern(OPEN_LIBRARIES);
            let op = Op::Access(AccessOp::AtomicUpdate(MemoryOrder::Relaxed), var);
            self.emit(current, op, None)?;
        }
        for start in starts {
            self.handles.loaded.remove(start);
            if let Some(name) = self.handles.names.remove(&start) {
                self.end_handle(current, &name)?;
            }
        }
        Ok(())
    }
}
