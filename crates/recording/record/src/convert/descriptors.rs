//! Numbers of file descriptors: what does it order that the kernel gives a number again only after it
//! was closed?
//!
//! Programs keep what belongs to a file in tables by its number. Who holds a number has it alone, from
//! when it was given to when it is closed, so holds of one number exclude each other as critical
//! sections of a lock do. How this enters the trace depends on who uses the number in the whole run:
//!
//! - one thread alone: nothing needs to be said;
//! - all are given it who close it: holds are critical sections of a lock, which nobody waits for. A
//!   reordering may change which of them comes first;
//! - one thread is given it every time, others close it: each hold comes after the close before it,
//!   in every run in which that thread is given the number twice;
//! - otherwise, as where a connection is accepted by several threads and closed by others, holds would
//!   be sections that another thread ends than began them, which the trace model does not have. They
//!   keep their observed order, and that is marked as assumed: what it may hide is counted by `check`.
//!
//! A life of a number, from when it was given to when it is closed, that one thread closes and another uses is an
//! object: it is allocated, read and freed, so that it can be asked whether it can be closed too early.
//!
//! What other number the kernel would give in another order of events is not asked: that a call returns
//! what it returned is taken as given, as for all that comes from outside of the program.

use std::io;

use reweave_base::{FxHashMap, FxHashSet};
use reweave_runtime::wire::{Event, Kind, channel, flag};
use reweave_trace::{
    ASSUMED, ASSUMED_DESCRIPTORS, AccessOp, DESCRIPTOR, EventId, LockOp, MemoryOrder, ObjectOp, Op,
};

use super::{Current, Pass};

/// What holds of one number are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Nothing,
    Sections,
    Ordered,
    Assumed,
}

/// How a number was used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// Who was given the number last and has not closed it.
    holder: Option<u32>,
    /// Who used it first.
    first_user: Option<u32>,
    /// Who was given it first.
    first_opener: Option<u32>,
    has_several_users: bool,
    has_several_openers: bool,
    /// Whether it was given after it had been closed.
    is_given_again: bool,
    /// Whether somebody closed it who was not given it.
    is_handed_over: bool,
    /// Whether it was closed without having been given, or given without having been closed, so that
    /// not everything was seen.
    has_gaps: bool,
}

impl Uses {
    fn step(&mut self, thread: u32, is_close: bool) {
        self.has_several_users |= *self.first_user.get_or_insert(thread) != thread;
        if is_close {
            match self.holder.take() {
                Some(holder) => self.is_handed_over |= holder != thread,
                None => self.has_gaps = true,
            }
        } else {
            self.is_given_again |= self.holder.is_none() && self.first_opener.is_some();
            self.has_several_openers |= *self.first_opener.get_or_insert(thread) != thread;
            self.has_gaps |= self.holder.replace(thread).is_some();
        }
    }

    const fn rule(&self) -> Rule {
        if !self.has_several_users {
            Rule::Nothing
        } else if self.has_gaps {
            Rule::Assumed
        } else if !self.is_given_again {
            Rule::Nothing
        } else if !self.has_several_openers {
            Rule::Ordered
        } else if !self.is_handed_over {
            Rule::Sections
        } else {
            Rule::Assumed
        }
    }
}

/// A life of a number.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// How often the number was given by then.
    given: u32,
    user: Option<u32>,
    has_several_users: bool,
    /// Who closed it, and whether it is seen why.
    closed_by: Option<(u32, bool)>,
}

impl Life {
    /// Whether a thread used it other than `thread`.
    fn is_used_by_another(&self, thread: u32) -> bool {
        self.has_several_users || self.user.is_some_and(|user| user != thread)
    }
}

/// Whether `event` is a use that was refused, since the number is not open.
const fn is_refused(event: &Event) -> bool {
    event.is_descriptor_use() && event.flags & flag::MISUSE != 0
}

/// Whether a life of a number begins with `event`: it is given, or it is closed though it was closed, so that nobody saw
/// who gave it.
const fn begins_life(event: &Event, is_closed: bool) -> bool {
    let is_given = matches!(event.kind, Kind::Receive) && !event.is_descriptor_use();
    is_given || is_closed && matches!(event.kind, Kind::Send)
}

/// How the numbers of descriptors were used.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    uses: FxHashMap<u32, Uses>,
    lives: FxHashMap<u32, Life>,
    /// Lives that one thread closed and another used, by the number and how often it was given by then.
    shared: FxHashSet<(u32, u32)>,
}

impl Descriptors {
    pub fn step(&mut self, thread: u32, event: &Event) {
        if !matches!(event.kind, Kind::Send | Kind::Receive) {
            return;
        }
        let Some(number) = channel::descriptor(event.address) else { return };
        let life = self.lives.entry(number).or_default();
        if is_refused(event) {
            if let Some((closer, true)) = life.closed_by
                && closer != thread
            {
                self.shared.insert((number, life.given));
            }
            return;
        }
        let (is_use, is_close) = (event.is_descriptor_use(), event.kind == Kind::Send);
        if begins_life(event, life.closed_by.is_some()) {
            *life = Life { given: life.given + 1, ..Life::default() };
        }
        if is_use {
            // What is used though it was closed is refused, or of a life that nobody saw begin.
            if life.closed_by.is_none() {
                life.has_several_users |= *life.user.get_or_insert(thread) != thread;
            }
            return;
        }
        if is_close {
            let is_seen = event.flags & flag::ASSUMED == 0;
            life.closed_by = Some((thread, is_seen));
            if is_seen && life.is_used_by_another(thread) {
                self.shared.insert((number, life.given));
            }
        }
        self.uses.entry(number).or_default().step(thread, is_close);
    }

    fn rule(&self, number: u32) -> Rule {
        self.uses.get(&number).map_or(Rule::Nothing, Uses::rule)
    }
}

/// Which life each number has in the last pass.
#[derive(Debug, Default)]
pub struct OpenDescriptors {
    lives: FxHashMap<u32, OpenLife>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OpenLife {
    given: u32,
    /// Who closed it, and at which event.
    closed: Option<(u32, Option<EventId>)>,
}

impl Pass<'_> {
    /// The number of a descriptor was given to the thread, is used, or is about to be closed.
    pub fn use_descriptor(&mut self, current: &mut Current) -> io::Result<()> {
        let event = current.event;
        let Some(number) = channel::descriptor(event.address) else { return Ok(()) };
        if is_refused(&event) {
            return self.use_closed_descriptor(current, number);
        }
        let life = self.descriptors.lives.entry(number).or_default();
        if begins_life(&event, life.closed.is_some()) {
            *life = OpenLife { given: life.given + 1, closed: None };
        }
        if event.is_descriptor_use() {
            return self.use_open_descriptor(current, number);
        }
        let is_close = event.kind == Kind::Send;
        if is_close {
            self.end_descriptor(current, number)?;
        }
        self.order_descriptor(current, number, is_close)?;
        if let Some(name) = self.shared_life(number).filter(|_| !is_close) {
            let object = self.sink.names().objects.intern(&name);
            self.emit(current, Op::Object(ObjectOp::Alloc, object), None)?;
        }
        Ok(())
    }

    /// What the life of `number` is called, if one thread closes it and another uses it.
    fn shared_life(&self, number: u32) -> Option<String> {
        let given = self.descriptors.lives.get(&number).map_or(0, |life| life.given);
        let is_shared = self.first_pass.descriptors.shared.contains(&(number, given));
        is_shared.then(|| format!("{DESCRIPTOR}({number})#{given}"))
    }

    fn end_descriptor(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let mut event = None;
        let is_seen = self.first_pass.sees_links(current.place);
        if let Some(name) = self.shared_life(number).filter(|_| is_seen) {
            let object = self.sink.names().objects.intern(&name);
            let is_emitted = self.emit(current, Op::Object(ObjectOp::Free, object), None)?;
            event = self.threads[current.thread].last_event.filter(|_| is_emitted);
        }
        self.descriptors.lives.entry(number).or_default().closed = Some((current.number, event));
        Ok(())
    }

    fn use_closed_descriptor(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let life = self.descriptors.lives.get(&number).copied().unwrap_or_default();
        match life.closed {
            Some((closer, event)) if closer != current.number => {
                self.misuse_of_closed(current, number, (closer, event))
            }
            _ => Ok(()),
        }
    }

    fn use_open_descriptor(&mut self, current: &mut Current, number: u32) -> io::Result<()> {
        let is_closed =
            self.descriptors.lives.get(&number).is_some_and(|life| life.closed.is_some());
        let Some(name) = self.shared_life(number).filter(|_| !is_closed) else { return Ok(()) };
        let var = self.sink.names().vars.intern(&name);
        let op = Op::Access(AccessOp::AtomicRead(MemoryOrder::Relaxed), var);
        self.emit(current, op, None).map(drop)
    }

    /// Puts the holds of `number` into an order, as its rule says.
    fn order_descriptor(
        &mut self,
        current: &mut Current,
        number: u32,
        is_close: bool,
    ) -> io::Result<()> {
        let names = self.sink.names();
        let op = match self.first_pass.descriptors.rule(number) {
            Rule::Nothing => return Ok(()),
            Rule::Sections => {
                let op = if is_close { LockOp::Release } else { LockOp::Acquire };
                Op::Lock(op, names.locks.intern(&format!("descriptor({number})")))
            }
            rule @ (Rule::Ordered | Rule::Assumed) => {
                let var = names.vars.intern(&match rule {
                    Rule::Assumed => format!("{ASSUMED}({ASSUMED_DESCRIPTORS})#{number}"),
                    _ => format!("descriptor({number})"),
                });
                let op = match (is_close, rule) {
                    (true, _) => AccessOp::AtomicUpdate(MemoryOrder::Release),
                    (false, Rule::Ordered) => AccessOp::AtomicRead(MemoryOrder::Acquire),
                    // Perhaps nobody was seen to close it in between.
                    (false, _) => AccessOp::AtomicUpdate(MemoryOrder::AcqRel),
                };
                Op::Access(op, var)
            }
        };
        self.emit(current, op, None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule for a number that was used as `events` say: a thread, and whether it closed.
    #[track_caller]
    fn check(events: &[(u32, bool)], expected: Rule) {
        let mut uses = Uses::default();
        for &(thread, is_close) in events {
            uses.step(thread, is_close);
        }
        assert_eq!(uses.rule(), expected, "{events:?}");
    }

    const OPEN: bool = false;
    const CLOSE: bool = true;

    #[test]
    fn what_is_used_by_one_thread_or_given_once_needs_no_rule() {
        check(&[(1, OPEN)], Rule::Nothing);
        check(&[(1, OPEN), (2, CLOSE)], Rule::Nothing);
        check(&[(1, OPEN), (1, CLOSE), (1, OPEN), (1, CLOSE)], Rule::Nothing);
        check(&[(1, CLOSE), (1, OPEN)], Rule::Nothing);
    }

    #[test]
    fn who_closes_what_it_was_given_has_critical_sections() {
        check(&[(1, OPEN), (1, CLOSE), (2, OPEN), (2, CLOSE)], Rule::Sections);
        check(&[(1, OPEN), (1, CLOSE), (2, OPEN)], Rule::Sections);
    }

    #[test]
    fn who_is_given_a_number_twice_comes_after_its_close() {
        check(&[(1, OPEN), (2, CLOSE), (1, OPEN)], Rule::Ordered);
        check(&[(1, OPEN), (2, CLOSE), (1, OPEN), (3, CLOSE), (1, OPEN)], Rule::Ordered);
    }

    #[test]
    fn anything_else_is_assumed() {
        check(&[(1, OPEN), (2, CLOSE), (3, OPEN)], Rule::Assumed);
        // What was not seen: how it was first given, that it was closed, that it was given.
        check(&[(1, CLOSE), (2, OPEN)], Rule::Assumed);
        check(&[(1, OPEN), (2, OPEN), (2, CLOSE), (1, OPEN)], Rule::Assumed);
        check(&[(1, OPEN), (2, CLOSE), (2, CLOSE), (1, OPEN)], Rule::Assumed);
        check(&[(1, OPEN), (2, OPEN)], Rule::Assumed);
        check(&[(1, CLOSE), (2, CLOSE)], Rule::Assumed);
    }
}
