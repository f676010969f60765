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
//! What other number the kernel would give in another order of events is not asked: that a call returns
//! what it returned is taken as given, as for all that comes from outside of the program.

use std::io;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, channel};
use reweave_trace::{ASSUMED, ASSUMED_DESCRIPTORS, AccessOp, LockOp, MemoryOrder, Op};

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

/// How the numbers of descriptors were used.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    uses: FxHashMap<u32, Uses>,
}

impl Descriptors {
    pub fn step(&mut self, thread: u32, event: &Event) {
        if matches!(event.kind, Kind::Send | Kind::Receive)
            && let Some(number) = channel::descriptor(event.address)
        {
            self.uses.entry(number).or_default().step(thread, event.kind == Kind::Send);
        }
    }

    fn rule(&self, number: u32) -> Rule {
        self.uses.get(&number).map_or(Rule::Nothing, Uses::rule)
    }
}

impl Pass<'_> {
    /// The number of a descriptor was given to the thread, or is about to be closed.
    pub fn use_descriptor(&mut self, current: &mut Current) -> io::Result<()> {
        let Some(number) = channel::descriptor(current.event.address) else { return Ok(()) };
        let is_close = current.event.kind == Kind::Send;
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
