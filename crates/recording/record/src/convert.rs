//! From a recording to a trace.
//!
//! The recording is read twice (three times if its threads ran freely). The first pass finds which
//! memory is shared and how it must be cut ([`crate::shadow`]); the last emits an event for each
//! access to such a cell and for all synchronization, in observed order, with names, call stacks,
//! values and origins. In between, the accesses of a `free` recording are searched for those whose
//! order is not known (`order`).
//!
//! What is promised: the trace is well formed whatever the recording is. An event that contradicts
//! those before it, such as the release of a lock that unseen code took, is left out and counted in
//! [`Summary::impossible`]. Every access to shared memory is kept; nothing is folded. Variables,
//! locks and the rest are distinguished by address *and* lifetime.
//!
//! | recorded | in the trace |
//! | --- | --- |
//! | access | `r`, `w`, `ar`, `aw`, `arw` for each cell; a failed compare-and-swap is `ar` |
//! | read of what no recorded access wrote | `r?`; before an atomic one, `r?` of a variable for it |
//! | lock, unlock | `acq` or `racq`; `rel` or `rrel`, as the thread holds the lock |
//! | lock found taken (`attempts`) | `ar` of what its holder writes by `aw` in its sections |
//! | wait, wake | `rel(m) wait(c)`, `wake(c) acq(m)`; `timeout(c)` where nobody can have woken it |
//! | fork that failed | nothing |
//! | allocation, release | `alloc`, `free` if a cell of the block is shared (`lives`) |
//! | lock, condition and so on destroyed | `free` of what stands for its life |
//! | library, timer or stream used, ended | `ar`, `free` of what stands for its life (`handles`) |
//! | send, receive | `arw.rel` of what was sent; `ar.acq` of it, `arw` of what was taken |
//! | number of a descriptor given, closed | `acq`, `rel`, or as receive and send (`descriptors`) |
//! | the same, and used, by several threads | `alloc`, `free`, `ar` of what stands for its life |
//! | futex calls | nothing |
//! | update or store that is a lock (`word_locks`) | `ar acq`; `rel` |
//! | look at a word that has not changed (`spins`) | the first and the last of a row |
//! | where a thread is stuck or failed | its last event, or a `branch` added for it ([`Exit`]) |
//!
//! Memory grows with the memory that the program touched and the names in the trace, not with the
//! number of events, if the [`Sink`] is a file.

mod attempts;
mod descriptors;
mod ending;
mod events;
mod handles;
mod lives;
mod misuses;
mod names;
mod places;
mod rules;
mod scan;
mod sink;
mod spins;
mod thread_handles;
mod unseen;
mod word_locks;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use reweave_base::{FxHashMap, FxHashSet, Id};
use reweave_runtime::shared::Mode;
use reweave_runtime::wire::{Event, HandleStep, Kind, flag};
use reweave_trace::{
    ASSUMED, ASSUMED_UNSEEN, AccessOp, Code, CodeId, ConditionOp, EventId, LockOp, Marker,
    MemoryOrder, Module, ModuleId, ObjectId, Op, Origin, RunStart, SiteId, ThreadId,
};

use crate::collect::Recording;
use crate::decode::Decoded;
use crate::event_log::{Ending, Reader, Stream};
use crate::frames::WithFrames;
use crate::locks::{Count, WithLocks};
use crate::symbols;
use crate::tasks::WithTasks;
use crate::watchdog::Process;
use attempts::Attempts;
use descriptors::OpenDescriptors;
use events::{Memory, Objects, Waiting};
use handles::OpenHandles;
use misuses::Misuses;
use names::{Birth, Content, Context, Contexts, Stack, legal_site, thread_name};
use rules::{Impossible, Rules};
use scan::{Ahead, FirstPass, MAIN, cells_with_unknown_writers};
use spins::Spins;
use unseen::AssumedOrder;
use word_locks::{Meaning, WordLocks};

pub use ending::Exit;
pub(crate) use events::part;
pub use names::Symbols;
pub(crate) use names::{at_offset, of_cell};
pub(crate) use scan::tells_stored;
pub use sink::{Converted, FileSink, Sink};

/// What became of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events of the trace.
    pub events: u64,
    /// Events of the recording.
    pub recorded: u64,
    /// Accesses to memory that threads do not contend for: left out.
    pub local_accesses: u64,
    /// What was left out because it cannot have happened, and how often.
    pub impossible: BTreeMap<&'static str, u64>,
    /// Waits that ended though nobody can have woken them.
    pub spurious_wakes: u64,
    /// Reads whose writer is not known: plain ones where threads ran freely, and those that saw what
    /// no recorded access had written.
    pub unknown_reads: u64,
    /// Threads of the trace.
    pub threads: usize,
    /// Threads that ran but were never forked, other than the first: the program's calls did not
    /// all go through the runtime, so the order of its events is not known.
    pub unforked: Vec<u32>,
    /// Global variables that were to be kept and that no access was to.
    pub missing: Vec<String>,
    /// How often a thread ran unseen for a while.
    pub escaped: u64,
    /// Whether no access to memory was recorded at all.
    pub sync_only: bool,
    /// Whether threads ran freely.
    pub is_free: bool,
    /// Events beyond the most that a trace can hold: left out.
    pub beyond_limit: u64,
    /// How the recording ended, if its stream says so.
    pub ending: Option<Ending>,
    /// Whether the rest of the recording was left out, since somebody asked to stop.
    pub is_cut_short: bool,
}

impl Summary {
    /// Whether any of what was left out as impossible may have ordered threads.
    #[must_use]
    pub fn lacks_synchronization(&self) -> bool {
        self.impossible.keys().any(|what| !rules::HARMLESS.contains(what))
    }
}

/// Which accesses to memory are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// Those to memory that threads contend for, and to the global variables `names`.
    Contended {
        /// As the trace calls them.
        names: &'a [String],
    },
    /// All.
    All,
}

/// Converts the recording that `open` opens from its beginning, as often as it is called; of its
/// accesses those that are `kept`. The trace says how the run ended, by its last events and by
/// `exit`.
///
/// # Errors
/// If the recording cannot be read or the trace cannot be written.
pub fn convert<S: Stream>(
    mut open: impl FnMut() -> io::Result<S>,
    kept: Kept<'_>,
    exit: &Exit,
    symbols: &mut dyn Symbols,
    sink: &mut dyn Sink,
) -> io::Result<Summary> {
    let mut first_pass = FirstPass::new(&mut open()?, kept, symbols)?;
    let unknown_writers = if first_pass.is_free {
        cells_with_unknown_writers(&mut open()?, &mut first_pass.cells)?
    } else {
        FxHashSet::default()
    };
    let unseen = std::mem::take(&mut first_pass.unseen);
    let assumed = unseen::assumed_order(&mut open, first_pass.is_free, unseen, symbols)?;
    run(open()?, (first_pass, unknown_writers, assumed), exit, symbols, sink)
}

// The last pass: every event of the recording, one after the other.

/// What is known of a thread.
#[derive(Default)]
struct Thread {
    id: Option<ThreadId>,
    stack: Stack,
    /// How many events it logged, by code address.
    logged: FxHashMap<u64, u32>,
    waiting: Option<Waiting>,
    /// The lock that it asked for last, until it has one.
    asked: Option<reweave_trace::LockId>,
    /// The atomic blocks that it is in, the last begun last.
    blocks: Vec<reweave_trace::BlockId>,
    /// What it did last.
    last_event: Option<EventId>,
    /// Whether the trace says that synchronization may be missing before what it does next.
    is_doubted: bool,
    /// What the program called it last; empty if it does not.
    given_name: String,
}

/// What is to be said of the wait of `event` which begins with `op`: that it does not last for ever, or is not
/// known to, or that nothing decides about it.
fn kind_of_wait(event: &Event, op: Op) -> Option<Marker> {
    let (flags, begins) = match event.kind {
        Kind::Wait => (
            flag::TIMED_OUT | flag::ASSUMED,
            match event.extra {
                Some(_) => matches!(op, Op::Lock(LockOp::Release | LockOp::ReleaseShared, _)),
                None => matches!(op, Op::Condition(..)),
            },
        ),
        Kind::SemaphoreTake => (flag::TRY, matches!(op, Op::Semaphore(..))),
        Kind::BarrierDepart => (flag::TRY, matches!(op, Op::Barrier(..))),
        Kind::Join => (flag::TRY, matches!(op, Op::Thread(..))),
        _ => return None,
    };
    let is_unchecked = event.kind == Kind::Wait && event.flags & flag::UNCHECKED != 0;
    if !begins {
        None
    } else if event.flags & flags != 0 {
        Some(Marker::Timed)
    } else {
        is_unchecked.then_some(Marker::Unchecked)
    }
}

/// The event that is being converted.
#[derive(Clone, Copy)]
struct Current {
    event: Event,
    thread: usize,
    number: u32,
    /// Its place in the stream.
    place: u64,
    occurrence: u32,
    /// Once something was emitted for it.
    site: Option<SiteId>,
    origin: Option<Origin>,
    /// Where the function around it was last seen to be, for what is no access.
    near: Option<u64>,
}

/// All that the last pass knows.
struct Pass<'a> {
    symbols: &'a mut dyn Symbols,
    sink: &'a mut dyn Sink,
    first_pass: FirstPass,
    /// What writes that were not seen are assumed to order.
    assumed: AssumedOrder,
    word_locks: WordLocks,
    spins: Spins,
    rules: Rules,
    objects: Objects,
    attempts: Attempts,
    memory: Memory,
    threads: Vec<Thread>,
    places: FxHashMap<u32, usize>,
    contexts: Contexts,
    sites: FxHashMap<(Context, u64, Option<u64>), SiteId>,
    codes: FxHashMap<u64, Option<CodeId>>,
    code_ids: FxHashMap<(ModuleId, u64), CodeId>,
    modules: FxHashMap<String, ModuleId>,
    /// Who waits for what.
    waits: Process,
    misuses: Misuses,
    descriptors: OpenDescriptors,
    handles: OpenHandles,
    /// What stands for locks and the like that were destroyed.
    ended_handles: FxHashSet<ObjectId>,
    /// Who did something last.
    last_thread: Option<u32>,
    /// Whether memory is as the program found it when it started: not in a process that was forked.
    is_fresh: bool,
    summary: Summary,
}

/// Converts all of `stream`.
fn run<S: Stream>(
    stream: S,
    (mut first_pass, unknown_writers, assumed): (FirstPass, FxHashSet<u64>, AssumedOrder),
    exit: &Exit,
    symbols: &mut dyn Symbols,
    sink: &mut dyn Sink,
) -> io::Result<Summary> {
    let summary = Summary {
        unforked: first_pass.unforked.clone(),
        missing: first_pass.missing.clone(),
        sync_only: !first_pass.has_accesses,
        is_free: first_pass.is_free,
        ..Summary::default()
    };
    let word_locks = WordLocks::with(std::mem::take(&mut first_pass.word_locks));
    let spins = Spins::with(std::mem::take(&mut first_pass.spins));
    let mut pass = Pass {
        symbols,
        sink,
        first_pass,
        assumed,
        word_locks,
        spins,
        rules: Rules::default(),
        objects: Objects::new(),
        attempts: Attempts::default(),
        memory: Memory::new(unknown_writers),
        threads: Vec::new(),
        places: FxHashMap::default(),
        contexts: Contexts::new(),
        sites: FxHashMap::default(),
        codes: FxHashMap::default(),
        code_ids: FxHashMap::default(),
        modules: FxHashMap::default(),
        waits: Process::recognized(),
        misuses: Misuses::default(),
        descriptors: OpenDescriptors::default(),
        handles: OpenHandles::default(),
        ended_handles: FxHashSet::default(),
        last_thread: None,
        is_fresh: true,
        summary,
    };
    pass.sink.declare_requested_waits();
    let mut ahead = Ahead::new(stream);
    while let Some((number, event)) = ahead.next()? {
        pass.step(&mut ahead, number, event)?;
    }
    pass.end(exit)?;
    pass.give_names();
    pass.summary.threads = pass.sink.names().threads.len();
    pass.summary.ending = ahead.into_inner().ending();
    Ok(pass.summary)
}

impl Pass<'_> {
    fn step<S: Stream>(
        &mut self,
        ahead: &mut Ahead<S>,
        number: u32,
        event: Event,
    ) -> io::Result<()> {
        let place = self.summary.recorded;
        self.summary.recorded += 1;
        if self.summary.lacks_synchronization() {
            self.doubt(number, &event)?;
        }
        if self.assumed.is_empty() {
            return self.step_within(ahead, number, event, place);
        }
        if self.assumed.is_unknown_at(place) {
            self.assume(number, &event, AccessOp::UnknownRead, 0)?;
            self.summary.unknown_reads += 1;
        }
        for channel in self.assumed.acquired_at(place).to_vec() {
            self.assume(number, &event, AccessOp::AtomicRead(MemoryOrder::Acquire), channel)?;
        }
        let release = AccessOp::AtomicWrite(MemoryOrder::Release);
        if let Some(channel) = self.assumed.released_at(place, true) {
            self.assume(number, &event, release, channel)?;
        }
        self.step_within(ahead, number, event, place)?;
        if let Some(channel) = self.assumed.released_at(place, false) {
            self.assume(number, &event, release, channel)?;
        }
        Ok(())
    }

    /// Synchronization was left out, so it is not known what a thread does from here on comes after: as if
    /// it read what an unknown thread wrote, which no schedule proves anything beyond.
    fn doubt(&mut self, number: u32, event: &Event) -> io::Result<()> {
        let (place, thread) = (self.thread(number), self.thread_id(number));
        // A thread that waits does nothing before its wait is over.
        let is_idle =
            events::has_no_operation(event.kind) || self.rules.monitor.waits_on(thread).is_some();
        if is_idle || std::mem::replace(&mut self.threads[place].is_doubted, true) {
            return Ok(());
        }
        self.summary.unknown_reads += 1;
        self.assume(number, event, AccessOp::UnknownRead, 0)
    }

    /// Adds what a thread does by the way, at `event`, to what stands for an unseen write.
    fn assume(&mut self, number: u32, event: &Event, op: AccessOp, channel: u32) -> io::Result<()> {
        let name = format!("{ASSUMED}({ASSUMED_UNSEEN})#{channel}");
        let var = self.sink.names().vars.intern(&name);
        let thread = self.thread(number);
        let site = Some(self.site(thread, event.code, None));
        // It is no event of the program's, so a plan does not wait for it.
        let mut current = Current {
            event: *event,
            thread,
            number,
            place: 0,
            occurrence: 0,
            site,
            origin: None,
            near: None,
        };
        self.emit(&mut current, Op::Access(op, var), None).map(drop)
    }

    fn step_within<S: Stream>(
        &mut self,
        ahead: &mut Ahead<S>,
        number: u32,
        event: Event,
        place: u64,
    ) -> io::Result<()> {
        self.waits.step(number, &event);
        self.last_thread = Some(number);
        let meaning = self.word_locks.step(self.symbols, number, &event);
        let is_repeated =
            self.spins.is_repeated(number, &event, place) || meaning == Meaning::Inner;
        if is_repeated || self.repeats_attempt(number, &event, meaning) {
            // Not counted either: another run may not have to wait, or not as long.
            return Ok(());
        }
        let thread = self.thread(number);
        if self.step_uncounted((thread, number), &event, place)? {
            return Ok(());
        }
        let state = &mut self.threads[thread];
        let logged = state.logged.entry(event.code).or_default();
        let occurrence = match Count::new(&event) {
            Count::One => {
                *logged = logged.saturating_add(1);
                *logged - 1
            }
            Count::WithLast => logged.saturating_sub(1),
            Count::WithNext => *logged,
        };
        match event.kind {
            Kind::Escaped => self.summary.escaped += 1,
            Kind::End => self.misuses.end(number),
            Kind::Begin if event.extra.is_some() => self.is_fresh = false,
            Kind::Maps => {
                self.symbols.maps(event.address);
                // The same address may be other code now.
                self.sites.clear();
                self.codes.clear();
                self.memory.births.forget_code();
            }
            _ => {}
        }
        let mut current = self.current((thread, number), event, (place, occurrence));
        if !self.attempts.has_no_early() {
            self.come_after_early_attempt(&mut current)?;
        }
        self.use_library(&mut current)?;
        match meaning {
            Meaning::Acquire { waits } => self.acquire_word(&mut current, waits),
            Meaning::Release => self.release_lock(&mut current),
            Meaning::Attempt => self.find_taken(&mut current),
            Meaning::Other | Meaning::Inner => self.convert(&mut current, ahead),
        }
    }

    /// Events that no plan counts. Says whether `event` is one, and is done with.
    fn step_uncounted(
        &mut self,
        (thread, number): (usize, u32),
        event: &Event,
        place: u64,
    ) -> io::Result<bool> {
        match (event.kind, event.handle_step()) {
            (Kind::Enter, _) => self.threads[thread].stack.enter(event.address, event.code),
            (Kind::Leave, _) => self.threads[thread].stack.leave(),
            (Kind::Argument, _) => self.misuses.allocated_unseen(event),
            (Kind::Block | Kind::Unblock, _) => {}
            (Kind::Interrupted, _) if event.extra.is_none() => {}
            (Kind::Detach, _) => self.detach(number, event)?,
            (_, Some(step @ (HandleStep::Made | HandleStep::Gone))) => {
                self.load_library(event, step, place);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is to be known of `event` while it is converted.
    fn current(
        &mut self,
        (thread, number): (usize, u32),
        event: Event,
        (place, occurrence): (u64, u32),
    ) -> Current {
        let near = self.pass(thread, &event);
        Current { event, thread, number, place, occurrence, site: None, origin: None, near }
    }

    /// The innermost function of `thread` is at `event`: where it was before, for what is no access.
    fn pass(&mut self, thread: usize, event: &Event) -> Option<u64> {
        let stack = &mut self.threads[thread].stack;
        match event.kind {
            Kind::Read
            | Kind::Write
            | Kind::AtomicLoad
            | Kind::AtomicStore
            | Kind::AtomicUpdate
            | Kind::AtomicFailed => {
                stack.pass(event.code);
                None
            }
            // Functions of libraries have these for their callers.
            Kind::ReadRange | Kind::WriteRange if !self.symbols.is_of_system(event.code) => {
                stack.pass(event.code);
                None
            }
            _ => stack.inside(),
        }
    }

    fn thread(&mut self, number: u32) -> usize {
        let threads = &mut self.threads;
        *self.places.entry(number).or_insert_with(|| {
            threads.push(Thread::default());
            threads.len() - 1
        })
    }

    /// The name of the thread numbered `number`.
    fn thread_id(&mut self, number: u32) -> ThreadId {
        let place = self.thread(number);
        if let Some(id) = self.threads[place].id {
            return id;
        }
        let threads = &mut self.sink.names().threads;
        let id = match number {
            MAIN => threads.intern("main"),
            _ => threads.intern(&format!("T{number}")),
        };
        self.threads[place].id = Some(id);
        id
    }

    /// Says what the program calls the threads of the trace. A name that is the program's own is none: threads that are
    /// given no name have that one.
    fn give_names(&mut self) {
        let program = self.symbols.program().unwrap_or_default();
        let own = thread_name(program.as_bytes());
        let names = self.sink.names();
        for Thread { id, given_name, .. } in &self.threads {
            if let Some(id) = id.filter(|_| !given_name.is_empty() && *given_name != own) {
                names.give_name(id, given_name);
            }
        }
    }

    /// Counts an event that cannot have happened.
    fn refuse(&mut self, why: Impossible) {
        *self.summary.impossible.entry(why).or_default() += 1;
    }

    /// Adds an event to the trace if it can have happened; says whether it did.
    fn emit(&mut self, current: &mut Current, op: Op, value: Option<i64>) -> io::Result<bool> {
        match self.try_emit(current, op, value)? {
            Ok(()) => Ok(true),
            Err(why) => {
                self.refuse(why);
                Ok(false)
            }
        }
    }

    /// Adds an event to the trace, or says why it cannot have happened.
    fn try_emit(
        &mut self,
        current: &mut Current,
        op: Op,
        value: Option<i64>,
    ) -> io::Result<Result<(), Impossible>> {
        if self.summary.events >= EventId::COUNT_MAX as u64 {
            self.summary.beyond_limit += 1;
            return Ok(Ok(()));
        }
        let thread = self.thread_id(current.number);
        if !matches!(op, Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _))
            && let Some(condition) = self.rules.monitor.waits_on(thread)
        {
            // It does something, so it waits no longer, whatever ended its wait.
            self.refuse("wait that goes on while its thread does");
            let timeout = Op::Condition(ConditionOp::Timeout, condition);
            match self.rules.step(thread, timeout) {
                Ok(()) => self.write(current, thread, timeout, None)?,
                Err(why) => self.refuse(why),
            }
        }
        // What says that a section begins or ends is within it.
        if let Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) = op
            && self.rules.hold(thread, lock).is_some()
        {
            self.mark_section(current, lock)?;
        }
        if let Err(why) = self.rules.step(thread, op) {
            return Ok(Err(why));
        }
        if let Some(marker) = kind_of_wait(&current.event, op) {
            self.write(current, thread, Op::Marker(marker), None)?;
        }
        self.write(current, thread, op, value)?;
        if let Op::Lock(LockOp::Acquire | LockOp::AcquireShared, lock) = op {
            self.mark_section(current, lock)?;
        }
        Ok(Ok(()))
    }

    fn write(
        &mut self,
        current: &mut Current,
        thread: ThreadId,
        op: Op,
        value: Option<i64>,
    ) -> io::Result<()> {
        let site = match current.site {
            Some(site) => site,
            None => {
                current.origin = self.origin(current.event.code, current.occurrence);
                *current.site.insert(self.site(current.thread, current.event.code, current.near))
            }
        };
        self.attempts.interrupt(current.number);
        self.threads[current.thread].last_event = ending::next_event(self.summary.events);
        self.summary.events += 1;
        self.sink.push(Converted { thread, op, site, value, origin: current.origin })
    }

    /// Where `thread` is at `code`. If that is in a library of the system, the function that called it stands behind it,
    /// where it is seen to be around then: at `near`, if it is not known better.
    fn site(&mut self, thread: usize, code: u64, near: Option<u64>) -> SiteId {
        let near = near.filter(|_| code != 0 && self.symbols.is_of_system(code));
        let context = self.threads[thread].stack.context(&mut self.contexts);
        if let Some(&site) = self.sites.get(&(context, code, near)) {
            return site;
        }
        let mut calls = self.contexts.calls(context);
        calls.splice(..0, near);
        let text = match (code, &calls[..]) {
            // What a thread begins with is called by the recorder.
            (0, [call, ..]) if self.is_of_runtime(*call) => String::new(),
            // What the program did not log itself stands where its function was called.
            (0, [call, stack @ ..]) => self.symbols.site(*call, stack),
            (0, []) => String::new(),
            (_, stack) => self.symbols.site(code, stack),
        };
        let site = self.sink.names().sites.intern(&legal_site(&text));
        self.sites.insert((context, code, near), site);
        site
    }

    fn is_of_runtime(&mut self, code: u64) -> bool {
        self.symbols.functions(code).iter().any(|name| name.starts_with("reweave_rt::"))
    }

    fn origin(&mut self, code: u64, occurrence: u32) -> Option<Origin> {
        if code == 0 {
            return None;
        }
        let id = match self.codes.get(&code) {
            Some(&id) => id,
            None => {
                let id = self.code_id(code);
                self.codes.insert(code, id);
                id
            }
        };
        id.map(|code| Origin { code, occurrence })
    }

    fn code_id(&mut self, code: u64) -> Option<CodeId> {
        let (path, offset) = self.symbols.origin(code)?;
        let module = match self.modules.get(&path) {
            Some(&module) => module,
            None => {
                let build_id = self.symbols.build_id(&path);
                let module = Module { path: path.clone(), build_id };
                let id = self.sink.origins().add_module(module);
                self.modules.insert(path, id);
                id
            }
        };
        let origins = self.sink.origins();
        let add = || origins.add_code(Code { module, offset });
        Some(*self.code_ids.entry((module, offset)).or_insert_with(add))
    }
}

/// The names of a process, for both who rewrites its events and who converts them.
impl Symbols for Rc<RefCell<symbols::Symbols>> {
    fn site(&mut self, code: u64, stack: &[u64]) -> String {
        self.borrow_mut().site(code, stack)
    }

    fn data(&mut self, address: u64) -> Option<(String, u64)> {
        self.borrow_mut().data(address)
    }

    fn member(&mut self, address: u64, size: u64) -> Option<String> {
        self.borrow_mut().member(address, size)
    }

    fn object(&mut self, address: u64) -> Option<String> {
        self.borrow_mut().object(address)
    }

    fn born(&mut self, birth: &Birth<'_>) -> (Option<Content>, String) {
        self.borrow_mut().born(birth)
    }

    fn content_path(&mut self, content: &Content, offset: u64, size: Option<u64>) -> String {
        self.borrow_mut().content_path(content, offset, size)
    }

    fn local(
        &mut self,
        code: u64,
        end: u64,
        place: (u64, Option<u64>),
    ) -> Option<(String, Option<String>)> {
        self.borrow_mut().local(code, end, place)
    }

    fn is_of_system(&mut self, code: u64) -> bool {
        self.borrow_mut().is_of_system(code)
    }

    fn is_zeroed(&mut self, address: u64) -> bool {
        self.borrow_mut().is_zeroed(address)
    }

    fn is_global(&mut self, address: u64) -> bool {
        self.borrow_mut().is_global(address)
    }

    fn maps(&mut self, number: u64) {
        self.borrow_mut().select(number);
    }

    fn origin(&mut self, code: u64) -> Option<(String, u64)> {
        let mut symbols = self.borrow_mut();
        symbols.origin(code).map(|(path, offset)| (path.to_owned(), offset))
    }

    fn library(&mut self, code: u64) -> Option<String> {
        self.borrow_mut().library(code).map(str::to_owned)
    }

    fn program(&mut self) -> Option<String> {
        self.borrow().program().map(str::to_owned)
    }

    fn build_id(&mut self, path: &str) -> String {
        self.borrow_mut().build_id(path).unwrap_or_default().to_owned()
    }

    fn functions(&mut self, code: u64) -> Vec<String> {
        let mut symbols = self.borrow_mut();
        symbols.frames(code).iter().map(|frame| frame.function.clone()).collect()
    }
}

/// How far each pass may get after somebody asked to stop.
const PASSES_END: [Duration; 3] =
    [Duration::from_millis(900), Duration::from_millis(1100), Duration::from_millis(1700)];

/// Between so many events it is looked whether somebody asked to stop.
const LOOK_EVERY: u64 = 1 << 12;

/// So many events are converted in any case.
const EVENTS_MIN: u64 = 1 << 20;

/// How a recording is converted.
#[derive(Clone, Copy)]
pub struct Conversion<'a> {
    /// Source files below it are named relative to it.
    pub base: &'a Path,
    /// Which accesses are kept.
    pub kept: Kept<'a>,
    /// How the run was started, where that is to be said.
    pub start: Option<&'a RunStart>,
    /// How the run ended.
    pub exit: &'a Exit,
    /// How long ago somebody asked to stop: then the trace ends where the time does.
    pub asked: &'a dyn Fn() -> Option<Duration>,
    /// Told now and then the number of the pass, from 1, and how many events it has read.
    pub progress: &'a dyn Fn(u32, u64),
}

impl<'a> Conversion<'a> {
    /// Everything that threads contend for, of a run that ended by itself.
    #[must_use]
    pub fn new(base: &'a Path) -> Self {
        const EXITED: &Exit = &Exit { failure: None, is_hang: false, is_stopped: false };
        let kept = Kept::Contended { names: &[] };
        Self { base, kept, start: None, exit: EXITED, asked: &|| None, progress: &|_, _| {} }
    }
}

/// The start of a stream: as much as there is time for, and no more than passes before had.
struct Timely<'a, S> {
    stream: S,
    asked: &'a dyn Fn() -> Option<Duration>,
    progress: &'a dyn Fn(u32, u64),
    pass: u32,
    end: Duration,
    count: u64,
    count_max: Rc<Cell<u64>>,
}

impl<S: Stream> Stream for Timely<'_, S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        let is_late = || (self.asked)().is_some_and(|asked| asked >= self.end);
        if self.count.is_multiple_of(LOOK_EVERY) {
            (self.progress)(self.pass, self.count);
        }
        if self.count >= EVENTS_MIN && self.count.is_multiple_of(LOOK_EVERY) && is_late() {
            self.count_max.set(self.count_max.get().min(self.count));
        }
        if self.count >= self.count_max.get() {
            return Ok(None);
        }
        self.count += 1;
        self.stream.next_event()
    }

    fn ending(&self) -> Option<Ending> {
        self.stream.ending()
    }
}

/// Writes the trace of `recording` to `out`.
///
/// # Errors
/// If the recording cannot be read or the trace cannot be written.
pub fn write_trace(
    recording: &Recording,
    conversion: &Conversion<'_>,
    out: &mut dyn Write,
) -> io::Result<Summary> {
    let stage = tracing::info_span!(
        "convert recording",
        recorded = recording.events,
        events = tracing::field::Empty,
    );
    let stage = stage.entered();
    let Conversion { base, kept, start, exit, asked, progress } = *conversion;
    let mut pass = 0;
    let mut symbols = symbols::Symbols::new(base);
    for (number, text) in (0..).zip(&recording.maps) {
        symbols.add_map(number, text);
    }
    let symbols = Rc::new(RefCell::new(symbols));
    let count_max = Rc::new(Cell::new(u64::MAX));
    // The second of three passes is left out where threads did not run freely.
    let mut ends =
        PASSES_END.iter().filter(|&&end| recording.mode == Mode::Free || end != PASSES_END[1]);
    let open = || {
        symbols.borrow_mut().select(0);
        let reader = Reader::new(BufReader::new(File::open(&recording.event_log)?))?;
        let decoded = WithFrames::new(WithTasks::new(Decoded::new(reader)));
        let stream = WithLocks::new(decoded, Rc::clone(&symbols));
        let end = ends.next().copied().unwrap_or(PASSES_END[2]);
        let count_max = Rc::clone(&count_max);
        pass += 1;
        Ok(Timely { stream, asked, progress, pass, end, count: 0, count_max })
    };
    let mut sink = FileSink::new(BufWriter::new(out))?;
    if let Some(start) = start {
        sink.start(start)?;
    }
    let mut summary = convert(open, kept, exit, &mut Rc::clone(&symbols), &mut sink)?;
    summary.is_cut_short = count_max.get() != u64::MAX;
    sink.finish()?.flush()?;
    stage.record("events", summary.events);
    Ok(summary)
}
