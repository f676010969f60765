//! When two findings are the same fault, and what a finding is called in every report.
//!
//! The question: what would a programmer repair? One variable without its lock gives a pair of code
//! locations for each two places that access it, other pairs in the next run, and other line numbers after
//! the next change.
//!
//! The idea: a finding has *marks*, and findings that share one are the same fault; so are those that share one
//! with a third. A finding's marks say
//! - which code locations it is at, and what its fingerprint is;
//! - for what is between accesses, what it is about and where one side of it is: two pairs on one variable with
//!   a place in common lack the same lock;
//! - what it is about and how each side is protected: which locks are held, and whether it is atomic;
//! - for what is about waiting, the locks in their cyclic order, or what is waited for;
//! - for a block that is not atomic, what it accesses and the function that it is in;
//! - for too weak memory orders, the atomics that are too weak: all that they hand over is one fault.
//!
//! What a finding is about is a name without what only tells equals apart: `slots[3].next` and `slots[7].next` are
//! one member, and so are `Item#2.refs` and `Item#9.refs`. What is no member, as
//! in a block without a type, goes by the calls that allocated the block as well.
//!
//! Between traces, marks that do not say where a finding is count only for recordings of one program.
//!
//! A [`Fingerprint`] is made of the kind of fault and, for each event at fault, of what it is about, its function,
//! and the text of its source line. Where a trace does not hold the text, the function has to do; where it
//! does not hold the function either, the location.
//!
//! Costs a pass over the trace where it has objects, and a few look-ups for each finding.

use std::cell::OnceCell;

use reweave_base::FxHashMap;
use reweave_trace::views::Mode;
use reweave_trace::{
    Calls, EventId, Frame, NameKind, ObjectId, ObjectOp, Op, Place, SiteId, ThreadOp, Trace,
};
use xxhash_rust::xxh3::xxh3_64;

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

/// Tells faults of a trace apart. See the [module](self).
#[derive(Debug)]
pub struct Identities<'t> {
    trace: &'t Trace,
    /// Where each object was allocated.
    allocations: OnceCell<FxHashMap<ObjectId, SiteId>>,
}

/// What something is called for as long as the program has it.
struct Name {
    text: String,
    /// Whether nothing else has this name.
    is_known: bool,
}

impl<'t> Identities<'t> {
    /// Those of `trace`.
    #[must_use]
    pub const fn new(trace: &'t Trace) -> Self {
        Self { trace, allocations: OnceCell::new() }
    }

    /// The fingerprint of `finding`. Addresses, threads and positions have no part in it, nor have operations: of a
    /// line such as `x++` one run may show the read and another the write.
    #[must_use]
    pub fn fingerprint(&self, finding: &Finding) -> Fingerprint {
        let mut text = String::from(finding.kind.as_str());
        if let Some(state) = finding.detail.state() {
            // Wherever it is met, it is the same predicate.
            text.extend(["\n", state.modality.as_str(), "\n", &state.predicate]);
            return Fingerprint::hashed(&text);
        }
        let (events, is_final) = self.sides(finding);
        let side = |&event: &EventId| {
            format!("{}\t{}", self.operand(event, Reach::Traces).text, self.place(event).text)
        };
        let mut sides: Vec<String> = events.iter().map(side).collect();
        sides.extend(is_final.then(String::new));
        sides.sort_unstable();
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
        let mut marks = Marks { kind: finding.kind, all: Vec::new() };
        let (events, _) = self.sides(finding);
        let places: Vec<Option<String>> =
            events.iter().map(|&event| self.location(event, reach)).collect();
        // In another program the same names and lines are something else.
        let program = match reach {
            Reach::Trace => Some(String::new()),
            Reach::Traces => events.first().and_then(|&event| self.module(event)),
        };
        match reach {
            Reach::Trace => marks.add("at", &finding.locations(self.trace).join("\n")),
            Reach::Traces => {}
        }
        if reach == Reach::Trace || places.iter().all(Option::is_some) {
            marks.add("named", &self.fingerprint(finding).to_string());
        }
        let about = self.subject(finding, &events, reach);
        let is_weak = matches!(&finding.detail, Detail::MemoryOrders(weak) if !weak.is_empty());
        if has_sides(finding.kind) && !is_weak {
            for place in places.iter().flatten() {
                marks.add("side", &about.with(place));
            }
        }
        let Some(program) = program else { return marks.all };
        match (&finding.detail, finding.kind) {
            (Detail::MemoryOrders(weak), _) if is_weak => {
                marks.add("orders", &self.atomics(weak, reach).with(&program));
            }
            (_, Kind::Deadlock | Kind::Stuck) => {
                let is_named = about.is_known && !about.text.is_empty();
                marks.add_if(is_named, "waiting", &about.with(&program));
            }
            (_, Kind::Atomicity) => {
                let block = self.function(events[0]).or_else(|| places[0].clone());
                let block = block.map(|block| block + &program);
                marks.add_if(block.is_some(), "block", &about.with(&block.unwrap_or_default()));
            }
            // What was done wrong once may be done wrong elsewhere.
            (_, Kind::Misuse | Kind::Failure | Kind::Predicate) => {}
            (_, Kind::Race | Kind::UseAfterFree | Kind::UseAfterClose | Kind::Nondeterminism) => {
                let protection = self.protection(&events, reach) + &program;
                marks.add_if(about.is_known, "protected", &about.with(&protection));
            }
        }
        marks.all
    }

    /// The events at fault that say what a finding is and where; and whether it is about what a variable holds in
    /// the end.
    fn sides(&self, finding: &Finding) -> (Vec<EventId>, bool) {
        let Some(detail) = finding.detail.nondeterminism() else {
            let (events, kind) = (&finding.events, finding.kind);
            let is_leak = kind == Kind::Misuse
                && matches!(self.trace.event(events[0]).op, Op::Thread(ThreadOp::Fork, _));
            // What a thread did last that nobody joined says nothing of the fault.
            return (events[..if is_leak { 1 } else { events.len() }].to_vec(), false);
        };
        // Whatever the read can see.
        match detail.read {
            Some(read) => (vec![read], false),
            None => (detail.writer.into_iter().collect(), true),
        }
    }

    /// What `finding` is about.
    fn subject(&self, finding: &Finding, events: &[EventId], reach: Reach) -> Name {
        let name = |&event: &EventId| self.operand(event, reach);
        match finding.kind {
            Kind::Deadlock => {
                let names: Vec<Name> = events.iter().map(name).collect();
                Name {
                    is_known: names.iter().all(|name| name.is_known),
                    text: cycle(names.into_iter().map(|name| name.text).collect()),
                }
            }
            Kind::UseAfterFree | Kind::UseAfterClose => {
                let ends = |event: &&EventId| {
                    matches!(self.trace.event(**event).op, Op::Object(ObjectOp::Free, _))
                };
                joined(events.iter().filter(ends).map(name))
            }
            Kind::Stuck => {
                // Who waits for a thread that waits, or for its lock, is not the cause.
                let rank = |event: &EventId| match self.trace.event(*event).op {
                    Op::Thread(..) => 2,
                    Op::Lock(..) => 1,
                    _ => 0,
                };
                let cause = events.iter().map(rank).min();
                let is_cause = |event: &&EventId| Some(rank(event)) == cause;
                joined(events.iter().filter(is_cause).map(name))
            }
            _ => joined(events.iter().map(name)),
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
                Name { text: location.to_owned(), is_known: Place::new(location).is_some() }
            }
            (function, text) => {
                let function = function.unwrap_or_default();
                Name { text: format!("{function}\t{}", text.unwrap_or("")), is_known: true }
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
        match code.kind().operand() {
            // Threads have numbers, and nothing is no name.
            NameKind::None | NameKind::Thread => Name { text: String::new(), is_known: true },
            kind => self.named(self.trace.names().name(kind, index), reach),
        }
    }

    /// What the thing with `name` is called for as long as the program has it.
    fn named(&self, name: &str, reach: Reach) -> Name {
        let names = self.trace.names();
        let Some(object) = names.object_around(name) else { return plain(name, reach) };
        let whole = names.objects.name(object);
        let (word, part) = (word_of(whole), folded(&name[whole.len()..]));
        match word {
            "stack" => Name { text: word.to_owned(), is_known: false },
            "block" | "frame" | "descriptor" => {
                let Some(maker) = self.maker(object, reach) else { return plain(name, reach) };
                // Where a variable is in its frame is the compiler's choice.
                let is_whole = word == "frame" && reach == Reach::Traces;
                let part = if is_whole { "" } else { &part };
                Name { text: format!("{word} of {maker}{part}"), is_known: true }
            }
            _ => {
                let Name { text, is_known } = plain(whole, reach);
                // A member says what it is. Numbers in a block are whatever the block is for.
                let maker = self.maker(object, reach).filter(|_| !part.contains('.'));
                let maker = maker.map_or_else(String::new, |maker| format!(" of {maker}"));
                Name { text: text + &maker + &part, is_known }
            }
        }
    }

    /// Where `object` was allocated, if that was recorded: by which calls in a trace, by which functions and what
    /// the line reads in any.
    fn maker(&self, object: ObjectId, reach: Reach) -> Option<String> {
        let allocations = self.allocations.get_or_init(|| {
            let alloc = |event: reweave_trace::Event| match event.op {
                Op::Object(ObjectOp::Alloc, object) => Some((object, event.site)),
                _ => None,
            };
            self.trace.events().filter_map(|(_, event)| alloc(event)).collect()
        });
        let (names, site) = (self.trace.names(), *allocations.get(&object)?);
        let frames = names.stack(site).map(Frame::new).filter(is_of_program).take(ALLOCATING_MAX);
        let call = |frame: Frame<'_>| match reach {
            Reach::Trace => format!("{} ({})", frame.function, frame.location.unwrap_or("")),
            Reach::Traces => lasting_function(frame.function),
        };
        let mut calls: Vec<String> = frames.map(call).collect();
        let text = names.source_text(site).filter(|_| reach == Reach::Traces);
        let is_known = !calls.is_empty();
        calls.extend(text.map(str::to_owned));
        is_known.then(|| calls.join(" of "))
    }
}

/// The marks of a finding of a kind.
struct Marks {
    kind: Kind,
    all: Vec<u64>,
}

impl Marks {
    fn add(&mut self, word: &str, text: &str) {
        self.all.push(xxh3_64(format!("{}\n{word}\n{text}", self.kind.as_str()).as_bytes()));
    }

    fn add_if(&mut self, is_so: bool, word: &str, text: &str) {
        if is_so {
            self.add(word, text);
        }
    }
}

impl Name {
    /// This, at `place`.
    fn with(&self, place: &str) -> String {
        format!("{}\n{place}", self.text)
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

/// `names`, each once.
fn joined(names: impl Iterator<Item = Name>) -> Name {
    let (mut texts, mut is_known) = (Vec::new(), true);
    for name in names {
        is_known &= name.is_known;
        texts.push(name.text);
    }
    texts.sort_unstable();
    texts.dedup();
    Name { text: texts.join("\n"), is_known }
}

/// `names`, which follow each other in a cycle, from wherever it is read.
fn cycle(names: Vec<String>) -> String {
    let turned = |by: usize| -> Vec<&str> {
        let (before, after) = names.split_at(by);
        after.iter().chain(before).map(String::as_str).collect()
    };
    (0..names.len()).map(turned).min().unwrap_or_default().join("\n")
}

/// The word that `name` starts with, if more than a word: `block` of `block#1` and of `block@a.c:3#1`.
fn word_of(name: &str) -> &str {
    name.split(['#', '@', '(']).next().unwrap_or(name)
}

/// What recorders call things that nothing names, before a number.
const NAMELESS: [&str; 7] =
    ["lock", "condition", "barrier", "semaphore", "memory", "block", "frame"];

/// What something that is no part of an object is called.
fn plain(name: &str, reach: Reach) -> Name {
    let word = word_of(name);
    let is_numbered = name[word.len()..].starts_with('#') && NAMELESS.contains(&word);
    let is_address = name.starts_with("0x");
    if is_address || is_numbered || name.starts_with("stack(") {
        let is_lock = word != "memory" && !is_address && word != "stack";
        let text = match reach {
            // What is one thing in a trace may be told apart in it.
            Reach::Trace if is_lock => name.to_owned(),
            _ if is_address => String::new(),
            _ => word.to_owned(),
        };
        return Name { text, is_known: false };
    }
    let folded = folded(name);
    let text = if reach == Reach::Traces { without_file(&folded) } else { folded };
    Name { text, is_known: true }
}

/// `name` without what tells equals apart: numbers of objects and of lives, indices of elements, addresses.
fn folded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(['#', '\'', '[', '@']) {
        let (before, mark) = rest.split_at(at);
        text += before;
        let after = &mark[1..];
        let inner = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let is_number = inner.len() < after.len();
        let range =
            inner.strip_prefix("..").map(|it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
        rest = match (
            &mark[..1],
            inner.strip_prefix(']'),
            range.and_then(|it| it.strip_prefix(']')),
        ) {
            ("[", Some(inner), _) if is_number => {
                text += "[]";
                inner
            }
            ("[", None, Some(inner)) if is_number => {
                text += "[..]";
                inner
            }
            ("#" | "'", ..) if is_number => inner,
            ("@", ..) if after.starts_with("0x") => {
                after[2..].trim_start_matches(|letter: char| letter.is_ascii_hexdigit())
            }
            (mark, ..) => {
                text += mark;
                after
            }
        };
    }
    text + rest
}

/// `name` without the file that tells it from others: `count` of `count@src/bank.c`.
fn without_file(name: &str) -> String {
    let Some((own, file)) = name.split_once('@') else { return name.to_owned() };
    // The name of a file ends with its extension; members of the variable come behind it.
    let stem = file.rfind('/').map_or(0, |at| at + 1);
    let extension = file[stem..].find('.').map_or(file.len(), |at| stem + at + 1);
    let end = file[extension..].find(|letter: char| !letter.is_alphanumeric());
    format!("{own}{}", end.map_or("", |end| &file[extension + end..]))
}

/// The name of a function without what compilers add: offsets, clones, numbers of closures.
fn lasting_function(name: &str) -> String {
    let name = name.split("+0x").next().unwrap_or(name);
    let clones = [".constprop.", ".part.", ".isra.", ".cold", ".llvm."];
    let end = clones.iter().filter_map(|clone| name.find(clone)).min().unwrap_or(name.len());
    folded(&name[..end])
}

/// Whether `frame` is of the program itself, as far as its place says.
fn is_of_program(frame: &Frame<'_>) -> bool {
    let libraries = ["/usr/include/", "/usr/lib/", "std/src/", "core/src/", "alloc/src/"];
    frame.location.is_some_and(|place| {
        Place::new(place).is_some() && !libraries.iter().any(|start| place.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tells_equals_apart_is_no_part_of_a_name() {
        for (name, expected) in [
            ("stats.bytes", "stats.bytes"),
            ("slots[3].next", "slots[].next"),
            ("grid[1][22]", "grid[][]"),
            ("buffer[16..4096]", "buffer[..]"),
            ("Item#12.refs", "Item.refs"),
            ("x'2", "x"),
            ("x@0x4010+8", "x+8"),
            ("count@src/bank.c", "count@src/bank.c"),
            ("map[key].value", "map[key].value"),
            ("a[1", "a[1"),
            ("größe[1..2]#x'", "größe[..]#x'"),
        ] {
            assert_eq!(folded(name), expected, "{name}");
        }
        for (name, expected) in [
            ("count@src/bank.c", "count"),
            ("count@bank.c+8", "count+8"),
            ("count@bank.c.next", "count.next"),
            ("count@Makefile", "count"),
        ] {
            assert_eq!(without_file(name), expected, "{name}");
        }
    }

    #[test]
    fn what_compilers_add_is_no_part_of_a_function() {
        for (name, expected) in [
            ("work.constprop.0", "work"),
            ("work.isra.0.cold", "work"),
            ("libx.so.1+0x1234", "libx.so.1"),
            ("bank::main::{closure#0}", "bank::main::{closure}"),
            ("operator[]", "operator[]"),
        ] {
            assert_eq!(lasting_function(name), expected, "{name}");
        }
    }

    #[test]
    fn a_cycle_begins_anywhere() {
        let of = |names: [&str; 3]| cycle(names.map(str::to_owned).to_vec());
        assert_eq!(of(["b", "c", "a"]), of(["a", "b", "c"]));
        assert_ne!(of(["b", "a", "c"]), of(["a", "b", "c"]));
    }
}
