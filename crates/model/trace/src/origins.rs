//! Origins: which instruction of the recorded program made an event, and the how many-th time.
//!
//! An optional layer. A recorded event knows its code address, as a module and an offset in its
//! file, and its *occurrence*: it was the k-th event, counted from 0, that its thread logged with
//! that code address. What was logged once may be several events of the trace, such as a wide
//! access that is cut into cells; these share their origin. Both numbers are the same in every run
//! in which the thread goes the same way, so replay can wait for them where running numbers would
//! have shifted.
//!
//! Eight bytes an event, nothing while no event has one.

use reweave_base::{Id, IndexVec};

use crate::op::EventId;

reweave_base::id! {
    /// A file with code that a recorded program had loaded.
    pub struct ModuleId;
    /// A code address of a recorded program.
    pub struct CodeId;
}

/// A file with code that a recorded program had loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Module {
    /// Where it was.
    pub path: String,
    /// What its linker called this build of it; empty where that is not known.
    pub build_id: String,
}

/// A code address of a recorded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// The file.
    pub module: ModuleId,
    /// Where in the file.
    pub offset: u64,
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The instruction that made it.
    pub code: CodeId,
    /// How many events its thread had logged there before.
    pub occurrence: u32,
}

const _: () = assert!(size_of::<Option<Origin>>() == 8, "eight bytes an event");

/// Where the events of a trace come from, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    modules: IndexVec<ModuleId, Module>,
    codes: IndexVec<CodeId, Code>,
    events: IndexVec<EventId, Option<Origin>>,
}

impl Origins {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The files that the code addresses are of.
    #[must_use]
    pub const fn modules(&self) -> &IndexVec<ModuleId, Module> {
        &self.modules
    }

    /// The code addresses that the origins are of.
    #[must_use]
    pub const fn codes(&self) -> &IndexVec<CodeId, Code> {
        &self.codes
    }

    /// Adds a file, which may be there already: whoever adds them keeps them apart.
    pub fn add_module(&mut self, module: Module) -> ModuleId {
        self.modules.push(module)
    }

    /// Adds a code address, which may be there already: whoever adds them keeps them apart.
    ///
    /// # Panics
    /// If its module is not there.
    pub fn add_code(&mut self, code: Code) -> CodeId {
        assert!(code.module.index() < self.modules.len(), "the module is there already");
        self.codes.push(code)
    }

    /// Where `event` comes from, if that is known.
    #[inline]
    #[must_use]
    pub fn get(&self, event: EventId) -> Option<Origin> {
        self.events.get(event).copied().flatten()
    }

    /// Says where `event` comes from.
    ///
    /// # Panics
    /// If the code address is not there.
    pub fn set(&mut self, event: EventId, origin: Origin) {
        assert!(origin.code.index() < self.codes.len(), "the code address is there already");
        *self.events.get_or_default(event) = Some(origin);
    }

    /// Forgets where events come from and keeps the files and code addresses: a recorder that
    /// writes a block at a time counts events anew in each.
    pub fn clear_events(&mut self) {
        self.events.as_mut_vec().clear();
    }

    /// Keeps the first files, code addresses and events only, for a reader that has read too far:
    /// code addresses in files and events from code addresses that are not kept go too.
    pub fn truncate(&mut self, modules_count: usize, codes_count: usize, events_count: usize) {
        self.modules.as_mut_vec().truncate(modules_count);
        let is_in_reach = |code: &Code| code.module.index() < modules_count;
        let reach = self.codes.iter().take(codes_count).take_while(|&code| is_in_reach(code));
        let codes_count = reach.count();
        self.codes.as_mut_vec().truncate(codes_count);
        self.events.as_mut_vec().truncate(events_count);
        for origin in self.events.as_mut_vec() {
            *origin = origin.filter(|origin| origin.code.index() < codes_count);
        }
    }

    /// Up to where events may have an origin: those from here on have none.
    #[must_use]
    pub const fn events_count(&self) -> usize {
        self.events.len()
    }

    /// The same with the events in the order that `events` gives, by the number that each had.
    pub(crate) fn reordered(self, events: &IndexVec<EventId, Option<EventId>>) -> Self {
        if self.events.is_empty() {
            return self;
        }
        let moved = events.iter().map(|before| before.and_then(|before| self.get(before)));
        Self { events: moved.collect(), ..self }
    }

    /// The layer as a trace of `events_count` events has it: none if no event has an origin.
    pub(crate) fn trimmed(mut self, events_count: usize) -> Option<Self> {
        let events = self.events.as_mut_vec();
        events.truncate(events_count);
        while events.last() == Some(&None) {
            events.pop();
        }
        events.shrink_to_fit();
        (!events.is_empty()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{AccessOp, LockOp, Op, Trace, TraceBuilder};

    /// A builder whose origins know one code address.
    fn builder() -> (TraceBuilder, CodeId) {
        let mut builder = TraceBuilder::new();
        let module = Module { path: "/bin/bank".to_owned(), build_id: "c0ffee".to_owned() };
        let module = builder.origins().add_module(module);
        let code = builder.origins().add_code(Code { module, offset: 0x1234 });
        (builder, code)
    }

    /// Which event has which occurrence.
    #[track_caller]
    fn check(trace: &Trace, expected: &Expect) {
        let lines = trace.events().map(|(id, _)| {
            let origin = trace.origins().and_then(|origins| origins.get(id));
            let occurrence = origin.map_or("-".to_owned(), |it| it.occurrence.to_string());
            format!("{} {occurrence}\n", trace.spell(id))
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn events_say_where_they_come_from_where_that_is_known() {
        let (mut builder, code) = builder();
        let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("a.c:1"));
        for occurrence in [Some(3), None, Some(4), None] {
            builder.push(thread, Op::Access(AccessOp::Write, var), site);
            if let Some(occurrence) = occurrence {
                builder.origin(Origin { code, occurrence });
            }
        }
        let trace = builder.finish().unwrap();
        check(
            &trace,
            &expect![[r#"
                T1|w(x) 3
                T1|w(x) -
                T1|w(x) 4
                T1|w(x) -
            "#]],
        );
        let origins = trace.origins().unwrap();
        assert_eq!((origins.modules().len(), origins.codes()[code].offset), (1, 0x1234));
    }

    #[test]
    fn a_trace_none_of_whose_events_has_an_origin_has_no_such_layer() {
        let (mut builder, _) = builder();
        let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("a.c:1"));
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
        assert_eq!(builder.finish().unwrap().origins(), None);
    }

    #[test]
    fn repair_keeps_origins_with_their_events_and_gives_none_to_what_it_puts_in() {
        let (mut builder, code) = builder();
        let [first, second] = ["T1", "T2"].map(|name| builder.thread(name));
        let (lock, other) = (builder.lock("m"), builder.lock("n"));
        let site = builder.site("a.c:1");
        // A release that never matched is dropped; a lock handed over unseen is released and
        // taken again.
        let events = [
            (first, Op::Lock(LockOp::Release, other)),
            (first, Op::Lock(LockOp::Acquire, lock)),
            (second, Op::Lock(LockOp::Acquire, lock)),
            (second, Op::Lock(LockOp::Release, lock)),
            (first, Op::Lock(LockOp::Acquire, other)),
            (first, Op::Lock(LockOp::Release, lock)),
        ];
        for (occurrence, (thread, op)) in (0..).zip(events) {
            builder.push(thread, op, site);
            builder.origin(Origin { code, occurrence });
        }
        check(
            &builder.finish_repaired().unwrap(),
            &expect![[r#"
                T1|acq(m) 1
                T1|rel(m) -
                T2|acq(m) 2
                T2|rel(m) 3
                T1|acq(m) -
                T1|acq(n) 4
                T1|rel(m) 5
            "#]],
        );
    }
}
