//! When two findings are the same fault, and what a finding is called in every report.
//!
//! The question: what would a programmer repair? One variable without its lock gives a pair of code
//! locations for each two places that access it, other pairs in the next run, and other line numbers after
//! the next change.
//!
//! The idea: a finding has *marks*, and findings that share one are the same fault; so are those that share one
//! with a third. All have the kind of fault, and of misuse the rule that was broken. There are marks
//! - of place: what a finding is about and all code locations that it is at; and its fingerprint;
//! - of sides, for what is between accesses: what it is about and where one side of it is, since two pairs on one
//!   variable with a place in common lack the same lock;
//! - of cause: what it is about and how each side is protected; the locks in their cyclic order, or what is waited
//!   for; what a block that is not atomic accesses, and its function; the atomics whose memory orders are too weak.
//!
//! What a finding is about is a name without what only tells equals apart: `slots[3].next` and `slots[7].next` are
//! one member, and so are `Item#2.refs` and `Item#9.refs`. What is no member, as
//! in a block without a type, goes by the calls that allocated the block as well. What stands for the life of a thing
//! goes by that thing.
//!
//! Between traces, marks that do not say where a finding is count only for recordings of one program.
//!
//! A [`Fingerprint`] is made of the kind of fault and, for each event at fault, of what it is about, its function,
//! and the text of its source line. Where a trace does not hold the text, the function has to do; where it
//! does not hold the function either, the location.
//!
//! Costs a pass over the trace where it has objects, and a few look-ups for each finding. Names are made once.

mod names;

use std::cell::{OnceCell, RefCell};

use reweave_base::FxHashMap;
use reweave_trace::views::Mode;
use reweave_trace::{
    Calls, EventId, Frame, MisuseKind, NameKind, ObjectId, ObjectOp, Op, Place, SiteId, ThreadId,
    ThreadOp, Trace,
};
use xxhash_rust::xxh3::xxh3_64;

use self::names::{
    Made, Name, cycle, folded, is_of_program, joined, lasting_function, member_of_local, plain,
    turn,
};
use crate::detail::{Detail, WeakAccess};
use crate::finding::Finding;
use crate::fingerprint::Fingerprint;
use crate::kind::Kind;

/// How many functions name the place that allocated a block: allocators are called through others.
const ALLOCATING_MAX: usize = 3;

/// Among which findings faults are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of one trace.
    Trace,
    /// Those of several, perhaps of different builds and programs.
    Traces,
}

/// Tells faults of a trace apart, by their marks.
#[derive(Debug)]
pub struct Identities<'t> {
    trace: &'t Trace,
    /// Where objects were allocated and threads forked.
    origins: OnceCell<Origins>,
    classes: RefCell<Classes>,
}

/// Where the things of a trace come from.
#[derive(Debug, Default)]
struct Origins {
    allocations: FxHashMap<ObjectId, SiteId>,
    forks: FxHashMap<ThreadId, SiteId>,
}

/// What has the same name for as long as the program has it; that which has none is of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u32);

#[derive(Debug, Default)]
struct Classes {
    numbers: FxHashMap<String, u32>,
    known: FxHashMap<(NameKind, u32), Class>,
}

/// Of which findings one is shown for all: those at the same code locations that are about the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instances<'t> {
    kind: Kind,
    rule: Option<MisuseKind>,
    sides: Vec<(&'t str, Option<Class>)>,
}

/// What the marks of a finding are made of.
struct Aspects<'f> {
    finding: &'f Finding,
    reach: Reach,
    /// The events at fault that say what it is and where.
    events: Vec<EventId>,
    /// Where these are, as far as that says anything.
    places: Vec<Option<String>>,
    about: Name,
}

impl<'t> Identities<'t> {
    /// Those of `trace`.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, origins: OnceCell::new(), classes: RefCell::default() }
    }

    /// The fingerprint of `finding`. Addresses, threads and positions have no part in it, nor have operations: of a
    /// line such as `x++` one run may show the read and another the write.
    #[must_use]
    pub fn fingerprint(&self, finding: &Finding) -> Fingerprint {
        let mut text = fault_text(finding);
        if let Some(state) = finding.detail.state() {
            // Wherever it is met, it is the same predicate.
            text.extend(["\n", state.modality.as_str(), "\n", &state.predicate]);
            return Fingerprint::hashed(&text);
        }
        let (events, is_final) = self.sides(finding);
        let side = |&event: &EventId| {
            let on = self.operand(self.target(finding, event), Reach::Traces);
            format!("{}\t{}", on.text, self.place(event).text)
        };
        let mut sides: Vec<String> = events.iter().map(side).collect();
        sides.extend(is_final.then(String::new));
        arrange(finding.kind, &mut sides);
        for side in sides {
            // Neither a name nor a location can hold a line feed.
            text.extend(["\n", &side]);
        }
        Fingerprint::hashed(&text)
    }

    /// The marks of `finding`: it is the same fault as what shares one of them. A global state has none.
    #[must_use]
    pub fn marks(&self, finding: &Finding, reach: Reach) -> Vec<u64> {
        if finding.detail.state().is_some() {
            return Vec::new();
        }
        let (events, _) = self.sides(finding);
        let places = events.iter().map(|&event| self.location(event, reach)).collect();
        let about = self.subject(finding, &events, |event| self.operand(event, reach));
        let aspects = Aspects { finding, reach, events, places, about };
        let mut marks = Marks { fault: fault_text(finding), all: Vec::new() };
        self.mark_place(&aspects, &mut marks);
        self.mark_sides(&aspects, &mut marks);
        self.mark_cause(&aspects, &mut marks);
        marks.all
    }

    /// Marks where the fault is.
    fn mark_place(&self, aspects: &Aspects<'_>, marks: &mut Marks) {
        let Aspects { finding, reach, events, places, about } = aspects;
        let names = self.trace.names();
        let is_specific = match reach {
            // A helper that two callers hand different variables is no fault of both. Where nothing names
            // what it is about, all code in common has to do: a loop over a buffer is one fault.
            Reach::Trace => {
                let at = |event: &EventId| names.location(self.trace.event(*event).site);
                let mut locations: Vec<&str> = events.iter().map(at).collect();
                locations.sort_unstable();
                let accessed = member_of_local(about.if_known());
                marks.add("at", &format!("{accessed}\n{}", locations.join("\n")));
                // Without the text of the line a fingerprint says no more than the function.
                events
                    .iter()
                    .all(|&event| names.source_text(self.trace.event(event).site).is_some())
            }
            Reach::Traces => places.iter().all(Option::is_some),
        };
        if is_specific {
            marks.add("named", &self.fingerprint(finding).to_string());
        }
    }

    /// Marks each side of a fault that is between several: who forgets a lock races with all who have it.
    fn mark_sides(&self, aspects: &Aspects<'_>, marks: &mut Marks) {
        let Aspects { finding, reach, events, places, about } = aspects;
        if !has_sides(finding.kind) || is_of_orders(finding) {
            return;
        }
        let exact = match reach {
            _ if about.is_known => None,
            // One accessor for all memory is no fault of all who call it.
            Reach::Trace => Some(self.subject(finding, events, |event| self.spelled(event))),
            Reach::Traces => return,
        };
        let about = exact.as_ref().unwrap_or(about);
        for place in places.iter().flatten() {
            marks.add("side", &about.with(place));
        }
    }

    /// Marks what lets the fault happen, wherever it is met.
    fn mark_cause(&self, aspects: &Aspects<'_>, marks: &mut Marks) {
        let Aspects { finding, reach, events, places, about } = aspects;
        // In another program the same names and lines are something else.
        let program = match reach {
            Reach::Trace => Some(String::new()),
            Reach::Traces => events.first().and_then(|&event| self.module(event)),
        };
        let Some(program) = program else { return };
        match (&finding.detail, finding.kind) {
            (Detail::MemoryOrders(weak), _) if !weak.is_empty() => {
                marks.add("orders", &self.atomics(weak, *reach).with(&program));
            }
            (_, Kind::Deadlock | Kind::Stuck) => self.mark_waiting(aspects, &program, marks),
            (_, Kind::Atomicity) => {
                let block = self.function(events[0]).or_else(|| places[0].clone());
                let block = block.map(|block| block + &program);
                marks.add_if(block.is_some(), "block", &about.with(&block.unwrap_or_default()));
            }
            // What was done wrong once may be done wrong elsewhere.
            (_, Kind::Misuse | Kind::Failure | Kind::Predicate) => {}
            (_, Kind::Race | Kind::UseAfterFree | Kind::UseAfterClose | Kind::Nondeterminism) => {
                let protection = self.protection(events, *reach) + &program;
                marks.add_if(about.is_known, "protected", &about.with(&protection));
            }
        }
    }

    /// Marks what is waited for. Other elements of an array, and other objects of a type, are other locks: the
    /// same fault only where the same code takes them.
    fn mark_waiting(&self, aspects: &Aspects<'_>, program: &str, marks: &mut Marks) {
        let Aspects { finding, reach, events, about, .. } = aspects;
        if !about.is_known || about.text.is_empty() {
            return;
        }
        if !about.is_folded {
            marks.add("waiting", &about.with(program));
            return;
        }
        for event in self.causes(finding, events) {
            let code = [self.location(event, *reach), self.function(event)];
            for code in code.into_iter().flatten() {
                marks.add("waiting", &about.with(&format!("{code}\n{program}")));
            }
        }
    }

    /// Which findings `finding` is one of that are at the same code locations and about the same. States go by
    /// their predicates, not by this.
    #[must_use]
    pub fn instances(&self, finding: &Finding) -> Instances<'t> {
        let (events, is_final) = self.sides(finding);
        let side = |&event: &EventId| self.side(event, self.target(finding, event));
        let mut sides: Vec<_> = events.iter().map(side).collect();
        sides.extend(is_final.then_some(("", None)));
        self.arranged(finding.kind, finding.detail.misuse(), sides)
    }

    /// Which findings of `kind` one with these `events` at fault would be one of.
    #[must_use]
    pub fn instances_at(&self, kind: Kind, events: &[EventId]) -> Instances<'t> {
        let sides = events.iter().map(|&event| self.side(event, event)).collect();
        self.arranged(kind, None, sides)
    }

    /// Where `event` is, and what `target` is on.
    fn side(&self, event: EventId, target: EventId) -> (&'t str, Option<Class>) {
        let location = self.trace.names().location(self.trace.event(event).site);
        (location, Some(self.class_of(self.trace.event(target).op)))
    }

    /// Findings with these `sides`, from wherever they are read.
    fn arranged(
        &self,
        kind: Kind,
        rule: Option<MisuseKind>,
        mut sides: Vec<(&'t str, Option<Class>)>,
    ) -> Instances<'t> {
        // Where names do not count, neither does which lock comes after which.
        match self.trace.origins() {
            Some(_) => arrange(kind, &mut sides),
            None => sides.sort_unstable(),
        }
        Instances { kind, rule, sides }
    }

    /// The class of what `op` is on: what has another name is of another class. In traces that were not recorded all
    /// is of one, since names such as `V17` may tell the objects of one class apart: there the code alone counts.
    #[must_use]
    pub fn class_of(&self, op: Op) -> Class {
        if self.trace.origins().is_none() {
            return Class(0);
        }
        let (code, index) = op.encode();
        let kind = code.kind().operand();
        if let Some(&class) = self.classes.borrow().known.get(&(kind, index)) {
            return class;
        }
        let name = self.name(kind, index, Reach::Trace);
        let Classes { numbers, known } = &mut *self.classes.borrow_mut();
        let next = numbers.len() as u32;
        let accessed = member_of_local(name.if_known()).to_owned();
        let class = Class(*numbers.entry(accessed).or_insert(next));
        known.insert((kind, index), class);
        class
    }

    /// The events at fault that say what a finding is and where; and whether it is about what a variable holds in
    /// the end.
    fn sides(&self, finding: &Finding) -> (Vec<EventId>, bool) {
        let Some(detail) = finding.detail.nondeterminism() else {
            // What makes a misuse one, such as who holds the lock, is where nothing is wrong.
            let count = if finding.kind == Kind::Misuse { 1 } else { finding.events.len() };
            return (finding.events[..count].to_vec(), false);
        };
        // Whatever the read can see.
        match detail.read {
            Some(read) => (vec![read], false),
            None => (detail.writer.into_iter().collect(), true),
        }
    }

    /// What `finding` is about, whose `events` are on what `name` says.
    fn subject(
        &self,
        finding: &Finding,
        events: &[EventId],
        name: impl Fn(EventId) -> Name,
    ) -> Name {
        let ends =
            |event: &EventId| matches!(self.trace.event(*event).op, Op::Object(ObjectOp::Free, _));
        let events = events.iter().copied();
        match finding.kind {
            Kind::Deadlock => cycle(events.map(name)),
            Kind::UseAfterFree | Kind::UseAfterClose => joined(events.filter(ends).map(name)),
            Kind::Stuck => joined(self.causes(finding, &finding.events).into_iter().map(name)),
            Kind::Race
            | Kind::Misuse
            | Kind::Failure
            | Kind::Atomicity
            | Kind::Nondeterminism
            | Kind::Predicate => joined(events.map(|event| name(self.target(finding, event)))),
        }
    }

    /// Those of the `events` of a finding about waiting that wait for what is its cause: who waits for a thread that
    /// waits, or for its lock, is not.
    fn causes(&self, finding: &Finding, events: &[EventId]) -> Vec<EventId> {
        let rank = |event: &EventId| match self.trace.event(*event).op {
            _ if finding.kind != Kind::Stuck => 0,
            Op::Thread(..) => 2,
            Op::Lock(..) => 1,
            _ => 0,
        };
        let cause = events.iter().map(rank).min();
        events.iter().copied().filter(|event| Some(rank(event)) == cause).collect()
    }

    /// The event that is on what the side of `finding` at `event` is about. Where misuse was done may be a mark that a
    /// recorder has left; then it is what made that misuse, such as the acquire of what was released.
    fn target(&self, finding: &Finding, event: EventId) -> EventId {
        let (code, _) = self.trace.event(event).op.encode();
        match finding.events.get(1) {
            Some(&other)
                if finding.kind == Kind::Misuse && code.kind().operand() == NameKind::None =>
            {
                other
            }
            _ => event,
        }
    }

    /// The atomics that are too weak.
    fn atomics(&self, weak: &[WeakAccess], reach: Reach) -> Name {
        let name = |access: &WeakAccess| match access.tried_lock(self.trace) {
            Some(lock) => self.named(lock, reach),
            None => self.operand(access.event, reach),
        };
        joined(weak.iter().map(name))
    }

    /// How the sides of a finding are protected: the locks that each holds, and whether it is atomic.
    fn protection(&self, events: &[EventId], reach: Reach) -> String {
        let side = |&id: &EventId| {
            let event = self.trace.event(id);
            let held = self.trace.sections().held(event.thread, id).map(|section| {
                let lock = self.trace.names().locks.name(section.lock);
                let shared = if section.mode == Mode::Shared { " shared" } else { "" };
                format!("{}{shared}", self.named(lock, reach).text)
            });
            let mut held: Vec<String> = held.collect();
            held.extend(event.op.is_atomic().then(|| "atomic".to_owned()));
            held.sort_unstable();
            held.dedup();
            held.join(",")
        };
        let mut sides: Vec<String> = events.iter().map(side).collect();
        sides.sort_unstable();
        sides.join(" | ")
    }

    /// The file of code that `event` is in, where that is known: a variable of another program is another.
    fn module(&self, event: EventId) -> Option<String> {
        let origins = self.trace.origins()?;
        let code = origins.codes().get(origins.get(event)?.code)?;
        origins.modules().get(code.module).map(|module| module.path.clone())
    }

    /// Where `event` is, if that says anything.
    fn location(&self, event: EventId, reach: Reach) -> Option<String> {
        let location = self.trace.names().location(self.trace.event(event).site);
        match reach {
            Reach::Trace => (!location.trim().is_empty()).then(|| location.to_owned()),
            Reach::Traces => {
                let place = self.place(event);
                place.is_known.then_some(place.text)
            }
        }
    }

    /// Where `event` is, by what edits elsewhere do not change.
    fn place(&self, event: EventId) -> Name {
        let (names, site) = (self.trace.names(), self.trace.event(event).site);
        let text = names.source_text(site);
        match (self.function(event), text) {
            (None, None) => {
                let location = names.location(site);
                let is_known = Place::new(location).is_some();
                Name { text: location.to_owned(), is_known, is_folded: false }
            }
            (function, text) => {
                let function = function.unwrap_or_default();
                Name { text: format!("{function}\t{}", text.unwrap_or("")), ..Name::EMPTY }
            }
        }
    }

    /// The function that `event` is in, and where that is a library's, the one of the program that called it.
    fn function(&self, event: EventId) -> Option<String> {
        let (names, site) = (self.trace.names(), self.trace.event(event).site);
        let location = names.location(site);
        let Calls { own, callers } = Calls::new(names, site);
        let own = match own {
            Some(frame) => lasting_function(frame.function),
            None if location.contains("+0x") => lasting_function(location),
            None => return None,
        };
        if Place::new(location).is_some() {
            return Some(own);
        }
        let caller = callers.iter().find(|frame| is_of_program(frame));
        let caller = caller.map(|frame| lasting_function(frame.function));
        Some([Some(own), caller].into_iter().flatten().collect::<Vec<_>>().join(" of "))
    }

    /// What the operation of `event` is on.
    fn operand(&self, event: EventId, reach: Reach) -> Name {
        let (code, index) = self.trace.event(event).op.encode();
        self.name(code.kind().operand(), index, reach)
    }

    /// What the operation of `event` is on, as the trace spells it.
    fn spelled(&self, event: EventId) -> Name {
        let (code, index) = self.trace.event(event).op.encode();
        let text = self.trace.names().name(code.kind().operand(), index).to_owned();
        Name { text, ..Name::EMPTY }
    }

    /// What the thing of `kind` at `index` is called.
    fn name(&self, kind: NameKind, index: u32, reach: Reach) -> Name {
        match kind {
            // Threads have numbers, and nothing is no name.
            NameKind::None | NameKind::Thread => Name::EMPTY,
            kind => self.named(self.trace.names().name(kind, index), reach),
        }
    }

    /// What the thing with `name` is called for as long as the program has it.
    fn named(&self, name: &str, reach: Reach) -> Name {
        let names = self.trace.names();
        let Some(object) = names.object_around(name) else { return plain(name, reach) };
        let whole = names.objects.name(object);
        let rest = &name[whole.len()..];
        let (part, is_folded) = (folded(rest), folded(name) != name);
        match Made::new(names, object) {
            Made::Stack => match part.strip_prefix('.') {
                // Which variable of which function.
                Some(local) => Name { text: local.to_owned(), is_known: true, is_folded: true },
                None => plain(name, reach),
            },
            Made::Anonymous(word) => {
                let Some(maker) = self.maker(object, reach) else { return plain(name, reach) };
                // Where a variable is in its frame is the compiler's choice.
                let is_whole = word == "frame" && reach == Reach::Traces;
                let part = if is_whole { "" } else { &part };
                Name { text: format!("{word} of {maker}{part}"), is_known: true, is_folded: true }
            }
            Made::Handle("thread", thread) => {
                let forker = names.threads.get(thread).and_then(|it| self.forker(it, reach));
                let text = forker.map_or_else(String::new, |it| format!("thread of {it}"));
                Name { is_known: !text.is_empty(), text, is_folded: true }
            }
            Made::Handle(word, inner) => {
                let inner = self.named(inner, reach);
                Name { text: format!("{word} of {}{part}", inner.text), ..inner }
            }
            Made::Typed => {
                let Name { text, is_known, .. } = plain(whole, reach);
                // A member says what it is. Numbers in a block are whatever the block is for.
                let maker = self.maker(object, reach).filter(|_| !part.contains('.'));
                let maker = maker.map_or_else(String::new, |maker| format!(" of {maker}"));
                Name { text: text + &maker + &part, is_known, is_folded }
            }
        }
    }

    /// Where `object` was allocated, if that was recorded: by which calls in a trace, by which functions and what
    /// the line reads in any.
    fn maker(&self, object: ObjectId, reach: Reach) -> Option<String> {
        let (names, site) = (self.trace.names(), *self.origins().allocations.get(&object)?);
        let frames = names.stack(site).map(Frame::new).filter(is_of_program).take(ALLOCATING_MAX);
        let mut calls: Vec<String> = frames.map(|frame| called(frame, reach)).collect();
        let text = names.source_text(site).filter(|_| reach == Reach::Traces);
        let is_known = !calls.is_empty();
        calls.extend(text.map(str::to_owned));
        is_known.then(|| calls.join(" of "))
    }

    /// Which function forked `thread`, and in a trace, where.
    fn forker(&self, thread: ThreadId, reach: Reach) -> Option<String> {
        let site = *self.origins().forks.get(&thread)?;
        let frame = self.trace.names().stack(site).map(Frame::new).find(is_of_program)?;
        Some(called(frame, reach))
    }

    fn origins(&self) -> &Origins {
        self.origins.get_or_init(|| {
            let mut origins = Origins::default();
            for (_, event) in self.trace.events() {
                match event.op {
                    Op::Object(ObjectOp::Alloc, object) => {
                        origins.allocations.insert(object, event.site);
                    }
                    Op::Thread(ThreadOp::Fork, thread) => {
                        origins.forks.insert(thread, event.site);
                    }
                    _ => {}
                }
            }
            origins
        })
    }
}

/// A function that was called, in a trace with the place in it.
fn called(frame: Frame<'_>, reach: Reach) -> String {
    match reach {
        Reach::Trace => format!("{} ({})", frame.function, frame.location.unwrap_or("")),
        Reach::Traces => lasting_function(frame.function),
    }
}

/// What a fault of `finding` is, whatever it is about: its kind, and of a misuse the rule.
fn fault_text(finding: &Finding) -> String {
    let kind = finding.kind.as_str();
    finding
        .detail
        .misuse()
        .map_or_else(|| kind.to_owned(), |rule| format!("{kind} {}", rule.as_str()))
}

/// Brings the `sides` of a finding of `kind` into an order that does not depend on the run. The other way round, the
/// same locks are another cycle.
fn arrange<T: Ord>(kind: Kind, sides: &mut [T]) {
    match kind {
        Kind::Deadlock => turn(sides),
        _ => sides.sort_unstable(),
    }
}

/// Whether `finding` is about memory orders that are too weak.
const fn is_of_orders(finding: &Finding) -> bool {
    matches!(&finding.detail, Detail::MemoryOrders(weak) if !weak.is_empty())
}

/// The marks of a finding.
struct Marks {
    /// What is part of each.
    fault: String,
    all: Vec<u64>,
}

impl Marks {
    fn add(&mut self, word: &str, text: &str) {
        self.all.push(xxh3_64(format!("{}\n{word}\n{text}", self.fault).as_bytes()));
    }

    fn add_if(&mut self, is_so: bool, word: &str, text: &str) {
        if is_so {
            self.add(word, text);
        }
    }
}

/// Whether what is at fault is between the sides of a finding of `kind`, each of which may have several others.
const fn has_sides(kind: Kind) -> bool {
    match kind {
        Kind::Race
        | Kind::UseAfterFree
        | Kind::UseAfterClose
        | Kind::Misuse
        | Kind::Nondeterminism => true,
        Kind::Failure | Kind::Stuck | Kind::Deadlock | Kind::Atomicity | Kind::Predicate => false,
    }
}
