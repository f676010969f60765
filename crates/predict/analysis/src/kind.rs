//! The kinds of fault: one table, from which reports, policies and options take what they say.
//!
//! A new kind is one entry of [`kinds!`], at the place of its severity, and an arm of
//! [`Kind::is_shown_by`]; the JSON schema has its name and the letter of its ids.

use std::fmt::{self, Display, Formatter};

use reweave_trace::Goal;

/// What is said of a kind of fault, whichever finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// How reports, suppressions and options spell it.
    pub name: &'static str,
    /// The letter that the ids of its findings start with, as in `R1`.
    pub letter: char,
    /// What code scanners call it.
    pub rule: &'static str,
    /// The weaknesses that it is an instance of, by their numbers in the common enumeration (CWE).
    pub weaknesses: &'static [u16],
    /// What happens, in a sentence.
    pub summary: &'static str,
    /// The same in detail, and what is attached.
    pub description: &'static str,
    /// Why a proven one is a fault, in paragraphs.
    pub why: &'static [&'static str],
    /// The usual fix, in Markdown that reads well as plain text too.
    pub fix: &'static str,
    /// Whether finding it needs recorded memory accesses.
    pub needs_accesses: bool,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $info:expr;)+) => {
        /// The kinds of fault, the worst first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)+ }

        impl Kind {
            /// Every kind, the worst first.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            /// What is said of it.
            #[must_use]
            pub const fn info(self) -> &'static KindInfo {
                match self { $(Self::$kind => &$info,)+ }
            }
        }
    };
}

kinds! {
    /// The recorded run crashed, or an assertion failed in it.
    Failure: KindInfo {
        name: "failure",
        letter: 'F',
        rule: "FailedRun",
        weaknesses: &[617, 754],
        summary: "The recorded run crashed, or an assertion failed in it.",
        description: "The program ended by a signal that stands for a fault, by a failed assertion, \
                      by `abort` or by a panic while it was recorded. Nothing is predicted: it \
                      happened, at the last event of the thread that is named.",
        why: &[
            "The program did not end as it should. What a schedule made it do in this run it can do \
             in every run with that schedule; the recording holds what led there.",
        ],
        fix: "Look at what the thread that failed read last, and which thread wrote that. Other \
              findings on the same variables often name the cause.",
        needs_accesses: false,
    };
    /// Threads that wait for ever.
    Stuck: KindInfo {
        name: "stuck",
        letter: 'S',
        rule: "StuckThread",
        weaknesses: &[833, 667],
        summary: "Threads wait for ever.",
        description: "Threads wait for what no thread of the program does any more: a notify that came \
                      before, a lock that nobody releases, the end of a thread that waits itself. Either it \
                      happened in the recorded run, or a schedule that leads there is attached as a \
                      code flow; the message says which. What code does that did not run is not known.",
        why: &[
            "A thread that waits for something that no thread of the program can do any more never \
             goes on. Whoever waits for it waits as well.",
        ],
        fix: "Let whoever takes a lock release it on every way out. Wait on a condition in a loop \
              over a predicate that is changed under the same lock, so that a signal before the wait \
              is not lost.",
        needs_accesses: false,
    };
    /// Threads that wait for each other for ever.
    Deadlock: KindInfo {
        name: "deadlock",
        letter: 'D',
        rule: "Deadlock",
        weaknesses: &[833],
        summary: "Threads can wait for each other for ever.",
        description: "Each of some threads can come to wait for a lock that the next of them holds. \
                      As a rule a schedule that leads there is attached as a code flow; the message \
                      says how far to rely on the result.",
        why: &[
            "Each of these threads waits for a lock that another of them holds, in a circle. None can \
             go on, so none ever releases what it holds, and whoever needs one of these locks \
             later waits as well.",
            "In the schedule below each takes the lock that it holds before any of them gets the next.",
        ],
        fix: "Take the locks in the same order everywhere, or take one lock around both, or give up \
              what is held when the next lock cannot be had (try-lock).",
        needs_accesses: false,
    };
    /// Memory that is accessed after it was freed.
    UseAfterFree: KindInfo {
        name: "use-after-free",
        letter: 'U',
        rule: "UseAfterFree",
        weaknesses: &[416, 362],
        summary: "A thread can access memory after another has freed it.",
        description: "A thread can free memory before another thread accesses it for the last time. \
                      In most recorded runs the access came first. A schedule in which it does not is \
                      attached as a code flow.",
        why: &[
            "One thread frees the memory, and nothing makes it wait until the other is done with it. An \
             access after that reads or changes whatever is there by then: nothing, or what belongs to \
             another part of the program.",
            "Locks around both do not help: they keep the two apart, but not in this order.",
        ],
        fix: "Let the last user free the memory: join the other thread before, or count the references. \
              Or guard all uses by one lock, under which they look the memory up anew, and take it out of \
              what they can find under the same lock before it is freed.",
        needs_accesses: true,
    };
    /// A handle that is used after it was closed.
    UseAfterClose: KindInfo {
        name: "use-after-close",
        letter: 'C',
        rule: "UseAfterClose",
        weaknesses: &[672, 910, 362],
        summary: "A thread can use a lock, a file or a library after another has destroyed, closed or unloaded it.",
        description: "A thread can destroy a lock, a condition, a barrier or a semaphore, join a thread, close a file \
                      descriptor or a stream, delete a timer or unload a library, before another thread uses it for \
                      the last time. In most recorded runs the use came first. A schedule in which it does not is attached as a code flow.",
        why: &[
            "One thread ends what the other still uses, and nothing makes it wait. What a destroyed lock does is \
             not defined. The number of a closed descriptor can be given to another file at once: the use then \
             reads or writes there.",
        ],
        fix: "Let the last user close it: join the other thread before, or count the users. To end a thread that \
              waits for input, shut the connection down or tell it by another way, join it, and close then.",
        needs_accesses: false,
    };
    /// Locks, threads, memory or files that the recorded run misused.
    Misuse: KindInfo {
        name: "misuse",
        letter: 'M',
        rule: "Misuse",
        weaknesses: &[667, 764, 765, 772, 832, 415, 910, 479],
        summary: "The recorded run misused a lock, a thread, memory or a file.",
        description: "A mutex was released or waited with that its thread did not hold, or destroyed while \
                      it was held; a thread was neither joined nor detached, or used after that; or memory was freed twice, a destroyed \
                      lock asked for, a closed file descriptor used, or a function called in a signal handler that is \
                      not safe there. Nothing is predicted: it \
                      happened, at the events that are named.",
        why: &[
            "POSIX, C and C++ do not say what happens if a thread releases a mutex that it does not hold, waits \
             on a condition with one, or destroys one that is held. It may work with this library, and \
             not with the next one; the lock does not guard what it should.",
            "Memory that is freed twice may be given to two parts of the program at once. A closed descriptor may be \
             another file's by now.",
            "A handler of a signal may interrupt the very function that it calls: `malloc`, `printf` and locks then find \
             their own data half changed, or wait for themselves.",
            "A thread that ends and is neither joined nor detached keeps its memory as long as the program runs.",
        ],
        fix: "Release a mutex in the thread that acquired it, once for each time; to let one thread wait for \
              another, use a semaphore or a condition. Destroy, free and close when nobody can use it any more. Join each \
              thread, or detach it. In a signal handler set an atomic flag or write to a pipe, and do the rest elsewhere.",
        needs_accesses: false,
    };
    /// Two conflicting accesses at once.
    Race: KindInfo {
        name: "race",
        letter: 'R',
        rule: "DataRace",
        weaknesses: &[362, 366],
        summary: "Two threads can access the same memory at the same time.",
        description: "Two threads can be about to access the same memory, at least one of them to \
                      write it, and nothing orders the two. As a rule a schedule that leads there \
                      is attached as a code flow; the message says how far to rely on the result.",
        why: &[
            "Two threads access the same variable, at least one of them writes, and nothing makes one \
             wait for the other. One write can undo the other, and a read can come too early or see \
             half of a write; C, C++ and Rust do not say what a program with a race does.",
        ],
        fix: "Hold the same lock around both accesses, or make the variable atomic, or let \
              one thread wait for the other before it goes on.",
        needs_accesses: true,
    };
    /// A block whose result another thread can spoil.
    Atomicity: KindInfo {
        name: "atomicity",
        letter: 'A',
        rule: "AtomicityViolation",
        weaknesses: &[362, 367, 662],
        summary: "Another thread can come in between the steps of a block.",
        description: "A block that is expected to be atomic can be spoiled: another thread's access \
                      can come between two of its steps, with a result that no undisturbed run of \
                      the block has.",
        why: &[
            "The block is to take effect as if nothing came in between. Here an access of another \
             thread comes between two of its own, and no order of whole blocks gives the same: what \
             the block has read or written is out of date before it ends.",
            "There need not be a race: each access may be guarded by a lock, if the lock is \
             released in between.",
        ],
        fix: "Hold one lock over the whole block, not one for each step, or check again what \
              was checked before.",
        needs_accesses: false,
    };
    /// A global state that meets a predicate.
    Predicate: KindInfo {
        name: "predicate",
        letter: 'P',
        rule: "GlobalState",
        weaknesses: &[],
        summary: "A global state meets a predicate, or breaks one that should hold.",
        description: "Some order of the observed events passes a state in which the given predicate \
                      holds, or in which one that should always hold does not.",
        why: &["The schedule below leads to a state that meets the predicate."],
        fix: "Look at the state and at the run that reaches it. If it is not wanted, add what \
              keeps the threads from being there together.",
        needs_accesses: false,
    };
    /// A result that depends on the schedule.
    Nondeterminism: KindInfo {
        name: "nondeterminism",
        letter: 'N',
        rule: "ScheduleDependentRead",
        weaknesses: &[662],
        summary: "What a read sees depends on the schedule.",
        description: "A read can see another write than the one it saw, so that a result can differ \
                      from run to run, whether or not there is a data race.",
        why: &["The result depends on the schedule."],
        fix: "If the result should not depend on the schedule, let the reader wait for the \
              writer (join, a condition, a barrier), or combine the results in a fixed order.",
        needs_accesses: true,
    };
}

impl Kind {
    /// How reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.info().name
    }

    /// The letter that the ids of its findings start with, as in `R1`.
    #[must_use]
    pub const fn letter(self) -> char {
        self.info().letter
    }

    /// Whether a schedule that ends as `goal` says shows a fault of this kind.
    #[must_use]
    pub const fn is_shown_by(self, goal: &Goal) -> bool {
        match self {
            Self::Deadlock => matches!(goal, Goal::Deadlock(_)),
            Self::Race => matches!(goal, Goal::Race(..) | Goal::Unordered(..)),
            Self::Atomicity | Self::UseAfterClose => matches!(goal, Goal::Order { .. }),
            Self::UseAfterFree => matches!(goal, Goal::Order { .. } | Goal::Unordered(..)),
            Self::Predicate => matches!(goal, Goal::Reaches(_) | Goal::Race(..)),
            Self::Nondeterminism => matches!(goal, Goal::Sees { .. } | Goal::Leaves { .. }),
            Self::Stuck => matches!(goal, Goal::Stuck(_)),
            // These happened in the recorded run, and need no other.
            Self::Failure | Self::Misuse => false,
        }
    }

    /// The kind that is spelled `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_worst_first_and_their_letters_differ() {
        assert!(Kind::ALL.is_sorted());
        let mut letters = Kind::ALL.map(Kind::letter);
        letters.sort_unstable();
        assert!(letters.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(Kind::ALL.into_iter().all(|kind| Kind::named(kind.as_str()) == Some(kind)));
    }
}
