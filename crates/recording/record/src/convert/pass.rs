//! The last pass: every event of the recording in turn.

use std::io;

use reweave_base::{FxHashMap, FxHashSet, Id};
use reweave_runtime::wire::{Event, Kind};
use reweave_trace::{
    Code, CodeId, ConditionOp, EventId, Module, ModuleId, Op, Origin, SiteId, ThreadId,
};

use super::Summary;
use super::memory::Memory;
use super::naming::{Symbols, legal_site};
use super::preview::{Ahead, MAIN, Preview};
use super::rules::{Impossible, Rules};
use super::sink::{Converted, Sink};
use super::stacks::{Context, Contexts, Stack};
use super::synchronisation::{Objects, Waiting};
use crate::lift::Count;
use crate::spool::Stream;

/// What is known of a thread.
#[derive(Default)]
pub(super) struct Thread {
    id: Option<ThreadId>,
    stack: Stack,
    /// How many events it logged, by code address.
    logged: FxHashMap<u64, u32>,
    pub(super) waiting: Option<Waiting>,
    /// The lock that it asked for last, until it has one.
    pub(super) asked: Option<reweave_trace::LockId>,
    /// The atomic blocks that it is in, the last begun last.
    pub(super) blocks: Vec<reweave_trace::BlockId>,
}

/// The event that is being converted.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) event: Event,
    pub(super) thread: usize,
    pub(super) number: u32,
    /// Its place in the stream.
    pub(super) place: u64,
    occurrence: u32,
    /// Once something was emitted for it.
    site: Option<SiteId>,
    origin: Option<Origin>,
}

/// All that the last pass knows.
pub(super) struct Pass<'a> {
    pub(super) symbols: &'a mut dyn Symbols,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) preview: Preview,
    pub(super) rules: Rules,
    pub(super) objects: Objects,
    pub(super) memory: Memory,
    pub(super) threads: Vec<Thread>,
    places: FxHashMap<u32, usize>,
    contexts: Contexts,
    sites: FxHashMap<(Context, u64), SiteId>,
    codes: FxHashMap<u64, Option<CodeId>>,
    code_ids: FxHashMap<(ModuleId, u64), CodeId>,
    modules: FxHashMap<String, ModuleId>,
    pub(super) summary: Summary,
}

/// Converts all of `stream`.
pub(super) fn run<S: Stream>(
    stream: S,
    preview: Preview,
    loose: FxHashSet<u64>,
    symbols: &mut dyn Symbols,
    sink: &mut dyn Sink,
) -> io::Result<Summary> {
    let summary = Summary {
        unforked: preview.unforked.clone(),
        sync_only: !preview.has_accesses,
        is_free: preview.is_free,
        ..Summary::default()
    };
    let mut pass = Pass {
        symbols,
        sink,
        preview,
        rules: Rules::default(),
        objects: Objects::new(),
        memory: Memory::new(loose),
        threads: Vec::new(),
        places: FxHashMap::default(),
        contexts: Contexts::new(),
        sites: FxHashMap::default(),
        codes: FxHashMap::default(),
        code_ids: FxHashMap::default(),
        modules: FxHashMap::default(),
        summary,
    };
    let mut ahead = Ahead::new(stream);
    while let Some((number, event)) = ahead.next()? {
        pass.step(&mut ahead, number, event)?;
    }
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
        let thread = self.thread(number);
        let state = &mut self.threads[thread];
        match event.kind {
            Kind::Enter => {
                state.stack.enter(event.address);
                return Ok(());
            }
            Kind::Leave => {
                state.stack.leave();
                return Ok(());
            }
            _ => {}
        }
        let logged = state.logged.entry(event.code).or_default();
        let occurrence = match Count::new(&event) {
            Count::One => {
                *logged = logged.saturating_add(1);
                *logged - 1
            }
            Count::WithLast => logged.saturating_sub(1),
            Count::WithNext => *logged,
        };
        let mut current =
            Current { event, thread, number, place, occurrence, site: None, origin: None };
        self.convert(&mut current, ahead)
    }

    fn convert<S: Stream>(
        &mut self,
        current: &mut Current,
        ahead: &mut Ahead<S>,
    ) -> io::Result<()> {
        match current.event.kind {
            Kind::Nothing
            | Kind::Stored
            | Kind::Run
            | Kind::Switch
            | Kind::Begin
            | Kind::End
            | Kind::ForkFailed
            | Kind::Enter
            | Kind::Leave
            | Kind::FutexWait
            | Kind::FutexAwake
            | Kind::FutexWake => Ok(()),
            Kind::Read
            | Kind::Write
            | Kind::ReadRange
            | Kind::WriteRange
            | Kind::AtomicLoad
            | Kind::AtomicStore
            | Kind::AtomicUpdate
            | Kind::AtomicFailed => self.access(current, ahead),
            Kind::Alloc | Kind::Free => self.change_blocks(current),
            Kind::Escaped => {
                self.summary.escaped += 1;
                Ok(())
            }
            Kind::Maps => {
                self.symbols.maps(current.event.address);
                // The same address may be other code now.
                self.sites.clear();
                self.codes.clear();
                Ok(())
            }
            Kind::Fence
            | Kind::LockRequest
            | Kind::Lock
            | Kind::Unlock
            | Kind::LockInit
            | Kind::LockDestroy
            | Kind::Fork
            | Kind::Join
            | Kind::Wait
            | Kind::Wake
            | Kind::Signal
            | Kind::Broadcast
            | Kind::BarrierInit
            | Kind::BarrierArrive
            | Kind::BarrierDepart
            | Kind::SemaphoreInit
            | Kind::SemaphorePost
            | Kind::SemaphoreTake
            | Kind::BlockBegin
            | Kind::BlockEnd
            | Kind::OnceDone
            | Kind::Unpark
            | Kind::Park
            | Kind::Send
            | Kind::Receive => self.synchronise(current),
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
    pub(super) fn thread_id(&mut self, number: u32) -> ThreadId {
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

    /// Counts an event that cannot have happened.
    pub(super) fn refuse(&mut self, why: Impossible) {
        *self.summary.impossible.entry(why).or_default() += 1;
    }

    /// Adds an event to the trace if it can have happened; says whether it did.
    pub(super) fn emit(
        &mut self,
        current: &mut Current,
        op: Op,
        value: Option<i64>,
    ) -> io::Result<bool> {
        match self.try_emit(current, op, value)? {
            Ok(()) => Ok(true),
            Err(why) => {
                self.refuse(why);
                Ok(false)
            }
        }
    }

    /// Adds an event to the trace, or says why it cannot have happened.
    pub(super) fn try_emit(
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
            && let Some(condition) = self.rules.waits_on(thread)
        {
            // It does something, so it waits no longer, whatever ended its wait.
            self.refuse("wait that goes on while its thread does");
            self.push(current, thread, Op::Condition(ConditionOp::Timeout, condition), None)?;
        }
        if let Err(why) = self.rules.step(thread, op) {
            return Ok(Err(why));
        }
        self.write(current, thread, op, value)?;
        Ok(Ok(()))
    }

    fn push(
        &mut self,
        current: &mut Current,
        thread: ThreadId,
        op: Op,
        value: Option<i64>,
    ) -> io::Result<()> {
        match self.rules.step(thread, op) {
            Ok(()) => self.write(current, thread, op, value),
            Err(why) => {
                self.refuse(why);
                Ok(())
            }
        }
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
                *current.site.insert(self.site(current.thread, current.event.code))
            }
        };
        self.summary.events += 1;
        self.sink.push(Converted { thread, op, site, value, origin: current.origin })
    }

    fn site(&mut self, thread: usize, code: u64) -> SiteId {
        let context = self.threads[thread].stack.context(&mut self.contexts);
        if let Some(&site) = self.sites.get(&(context, code)) {
            return site;
        }
        let calls = self.contexts.calls(context);
        let text = match (code, &calls[..]) {
            // What the program did not log itself stands where its function was called.
            (0, [call, stack @ ..]) => self.symbols.site(*call, stack),
            (0, []) => String::new(),
            (_, stack) => self.symbols.site(code, stack),
        };
        let site = self.sink.names().sites.intern(&legal_site(&text));
        self.sites.insert((context, code), site);
        site
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
