//! What can be told of a program while it runs.
//!
//! The collector shows every event as it is drained. [`Follower`] makes of them what a search of
//! global states needs: the writes of the variables, and the sections of the locks, that somebody
//! asked about, each with its value and a clock that says what comes before it, in observed order.
//! [`stall::Stalls`] notices threads that wait for each other for ever.
//!
//! Promised: what is told of a program from its start to its end is what the trace of the same
//! recording tells, unless [`Follower::is_cut_short`] says otherwise. Memory is bounded: by the memory
//! that the program touches, up to a limit, and by what it has alive, never by the number of events.
//!
//! An event costs what telling it again ([`crate::expand`]) and lifting it ([`crate::lift`]) cost,
//! and a look into a table.

mod clock;
mod memory;
mod order;
pub mod stall;
mod values;

use std::path::Path;

use reweave_runtime::wire::{Event, Kind};

use crate::expand::Expander;
use crate::lift::Lifter;
use crate::symbols::Symbols;
use order::Order;
use values::{Followed, Question};

/// Something of a program that somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The value of a global variable, named as in the trace.
    Variable {
        /// Its name: `x`, or `x+8` for what begins eight bytes into `x`.
        name: String,
    },
    /// Whether a thread holds a global lock.
    Holds {
        /// The number of the thread.
        thread: u32,
        /// The name of the lock.
        lock: String,
    },
}

/// A change of what is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Which question it belongs to.
    pub question: usize,
    /// Which of its subjects is another now.
    pub subject: usize,
    /// The thread, as the how many-th that changed something the question asks about.
    pub chain: usize,
    /// For each such thread how many steps of the question come before this one or are it.
    pub clock: Vec<u32>,
    /// What the subject is worth now, if that is known; 1 or 0 for a lock that is held or not.
    pub value: Option<i64>,
    /// The number of the thread.
    pub thread: u32,
    /// Where in the code.
    pub code: u64,
}

/// Follows one process.
pub struct Follower {
    expander: Expander,
    lifter: Lifter,
    symbols: Symbols,
    order: Order,
    followed: Followed,
    is_cut_short: bool,
}

impl Follower {
    /// Follows what each of the `questions` asks about; source files below `base` are named
    /// relative to it.
    #[must_use]
    pub fn new(questions: impl IntoIterator<Item = Vec<Subject>>, base: &Path) -> Self {
        let questions = questions.into_iter().map(Question::new).collect();
        Self {
            expander: Expander::new(),
            lifter: Lifter::new(),
            symbols: Symbols::new(base),
            order: Order::default(),
            followed: Followed::new(questions),
            is_cut_short: false,
        }
    }

    /// Adds the memory map `number` of the process. Comes before the event that speaks of it.
    pub fn add_map(&mut self, number: u64, text: &str) {
        self.symbols.add_map(number, text);
    }

    /// Says where what has the names that are asked about is, if not by the maps: for tests.
    #[doc(hidden)]
    pub fn locate(&mut self, address_of: impl FnMut(&str) -> Option<u64>) {
        self.followed.resolve(address_of);
    }

    /// Takes the next event of the recording, as it was drained.
    pub fn take(&mut self, thread: u32, event: Event) {
        if self.is_cut_short {
            return;
        }
        if let Some(event) = self.expander.take(thread, event) {
            self.lift(thread, event);
        }
        while let Some((thread, event)) = self.expander.next_told() {
            self.lift(thread, event);
        }
        if self.followed.is_full || self.order.is_full() {
            self.is_cut_short = true;
            self.followed.settle();
        }
    }

    fn lift(&mut self, thread: u32, event: Event) {
        if event.kind == Kind::Maps {
            self.symbols.select(event.address);
            let symbols = &mut self.symbols;
            self.followed.resolve(|name| address_of(symbols, name));
        }
        let (followed, order) = (&mut self.followed, &mut self.order);
        let mut step = |thread: u32, event: Event| {
            followed.look(thread, &event);
            order.step(thread, &event, followed);
        };
        self.lifter.rewrite(&mut self.symbols, thread, event, &mut step);
    }

    /// The next step whose value is settled, each question's in observed order.
    pub fn next_step(&mut self) -> Option<Step> {
        self.followed.next()
    }

    /// The process has ended: all that is left is settled.
    pub fn finish(&mut self) {
        self.followed.settle();
    }

    /// What a subject of `question` is worth before any step; known once there is one.
    #[must_use]
    pub fn initial(&self, question: usize, subject: usize) -> Option<i64> {
        self.followed.questions.get(question)?.initial(subject)
    }

    /// The names that `question` asks about and that the program does not have.
    #[must_use]
    pub fn missing(&self, question: usize) -> Vec<String> {
        self.followed.missing(question)
    }

    /// Follows nothing more for `question`.
    pub fn close(&mut self, question: usize) {
        if let Some(question) = self.followed.questions.get_mut(question) {
            question.is_closed = true;
        }
    }

    /// Whether the steps of `question` are not all that the trace has, with their values: the program
    /// had more than is followed, or accessed a variable in parts.
    #[must_use]
    pub fn is_cut_short(&self, question: usize) -> bool {
        let question = self.followed.questions.get(question);
        self.is_cut_short || question.is_some_and(|question| question.is_inexact)
    }

    /// Where `code` is, as `bank.c:12`.
    pub fn location(&mut self, code: u64) -> String {
        self.symbols.location(code)
    }
}

/// Where what the trace calls `name` is: a global, or some bytes into one.
fn address_of(symbols: &mut Symbols, name: &str) -> Option<u64> {
    if let Some(address) = symbols.address_of(name) {
        return Some(address);
    }
    let (base, offset) = name.rsplit_once('+')?;
    let offset: u64 = offset.parse().ok()?;
    symbols.address_of(base)?.checked_add(offset)
}
