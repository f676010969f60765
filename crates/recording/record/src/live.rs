//! Following a program while it runs.
//!
//! The collector shows every event as it is drained. [`Follower`] makes of them what a search of
//! global states needs: the writes of the variables, and the sections of the locks, that somebody
//! asked about, each with its value and a clock that says what comes before it, in observed order.
//! [`crate::watchdog::WaitGraph`] notices threads that wait for each other for ever.
//!
//! Promised: the steps of a program from its start to its end are those that the trace of the same
//! recording has, unless [`Follower::is_cut_short`] says otherwise. Memory is bounded: by the memory
//! that the program touches, up to a limit, and by what it has alive, never by the number of events.
//!
//! An event costs what decoding it ([`crate::decode`]) and recognizing locks ([`crate::locks`]) cost,
//! and a look into a table.

use std::collections::VecDeque;
use std::path::Path;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind};

use crate::convert::{part, tells_stored};
use crate::decode::Decoder;
use crate::locks::LockRecognizer;
use crate::order::{Clock, Order, Ticks};
use crate::shadow::{Access, WORD_BYTES};
use crate::symbols::Symbols;
use crate::tasks::TaskExpander;

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

impl Subject {
    fn name(&self) -> &str {
        match self {
            Self::Variable { name } | Self::Holds { lock: name, .. } => name,
        }
    }
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
    decoder: Decoder,
    expander: TaskExpander,
    recognizer: LockRecognizer,
    symbols: Symbols,
    order: Order,
    followed: Followed,
    is_cut_short: bool,
    /// Whether memory is as the program found it when it started.
    is_fresh: bool,
}

impl Follower {
    /// Follows what each of the `questions` asks about; source files below `base` are named
    /// relative to it.
    #[must_use]
    pub fn new(questions: impl IntoIterator<Item = Vec<Subject>>, base: &Path) -> Self {
        let questions = questions.into_iter().map(Question::new).collect();
        Self {
            decoder: Decoder::default(),
            expander: TaskExpander::default(),
            recognizer: LockRecognizer::default(),
            symbols: Symbols::new(base),
            order: Order::default(),
            followed: Followed { questions, ..Followed::default() },
            is_cut_short: false,
            is_fresh: true,
        }
    }

    /// Adds the memory map `number` of the process. Comes before the event that speaks of it.
    pub fn add_map(&mut self, number: u64, text: &str) {
        self.symbols.add_map(number, text);
    }

    /// Says where what has the names that are asked about is, if not by the maps: for tests.
    #[doc(hidden)]
    pub fn locate(&mut self, address_of: impl FnMut(&str) -> Option<u64>) {
        let mut address_of = address_of;
        self.followed.resolve(|name| address_of(name).map(|address| (address, None)));
    }

    /// Takes the next event of the recording, as it was drained.
    pub fn take(&mut self, thread: u32, event: Event) {
        if self.is_cut_short {
            return;
        }
        if let Some(event) = self.decoder.take(thread, event) {
            self.locks(thread, event);
        }
        while let Some((thread, event)) = self.decoder.next_decoded() {
            self.locks(thread, event);
        }
        if self.followed.is_full || self.order.is_full() {
            self.is_cut_short = true;
            self.followed.settle();
        }
    }

    fn locks(&mut self, thread: u32, event: Event) {
        if event.kind == Kind::Maps {
            self.symbols.select(event.address);
            let (symbols, is_fresh) = (&mut self.symbols, self.is_fresh);
            self.followed.resolve(|name| {
                let address = address_of(symbols, name)?;
                let is_zeroed = is_fresh && symbols.is_zeroed(address);
                Some((address, is_zeroed.then_some(0)))
            });
        }
        // What was forked begins with the memory of another process.
        self.is_fresh &= event.kind != Kind::Begin || event.extra.is_none();
        let (followed, order) = (&mut self.followed, &mut self.order);
        let mut step = |thread: u32, event: Event| {
            followed.look(thread, &event);
            order.step(thread, &event, followed);
        };
        let (recognizer, symbols) = (&mut self.recognizer, &mut self.symbols);
        let mut locks = |thread, event| recognizer.rewrite(symbols, thread, event, &mut step);
        self.expander.rewrite(thread, event, &mut locks);
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
        self.followed.questions.get(question)?.subjects.get(subject)?.initial
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
    if let Some(address) = symbols.address_of(name).or_else(|| symbols.address_of_member(name)) {
        return Some(address);
    }
    let (base, offset) = name.rsplit_once('+')?;
    let offset: u64 = offset.parse().ok()?;
    symbols.address_of(base)?.checked_add(offset)
}

// What is followed of a running program: the writes of some variables, the holders of some locks.
//
// The values are those that [`crate::convert`] would put into the trace and that a predicate over
// the trace would find there: what a plain write stored is reported by a later event of its thread; of
// what an update or a range wrote, and of what was there at first, the value is what a read saw
// before the next write. So a step is held until it is settled what it is worth, and those after it
// with it.

/// The most steps of a question that are held.
const HELD_MAX: usize = 1 << 14;

/// The most chains, of all questions.
const CHAINS_MAX: usize = 1 << 10;

/// Steps that wait until their values are settled.
#[derive(Default)]
struct Question {
    subjects: Vec<Known>,
    held: VecDeque<Held>,
    /// How many steps were handed out.
    passed: u64,
    /// The places of its chains in clocks.
    chains: Vec<usize>,
    /// Whether nobody wants to know any more.
    is_closed: bool,
    /// Whether some value was given up or turned out to be another one.
    is_inexact: bool,
}

struct Known {
    subject: Subject,
    /// What it is worth before any step. Settled with the first step.
    initial: Option<i64>,
    is_initial_settled: bool,
    /// The number of its last write, if that can still be reported.
    last: Option<u64>,
    depth: u32,
}

struct Held {
    step: Step,
    /// Whether the next event of its thread reports the value.
    awaits_thread: bool,
    /// Whether a read may still report the value.
    awaits_read: bool,
}

impl Held {
    const fn is_settled(&self) -> bool {
        self.step.value.is_some() || !(self.awaits_thread || self.awaits_read)
    }
}

impl Question {
    fn new(subjects: Vec<Subject>) -> Self {
        let known = |subject: Subject| Known {
            is_initial_settled: matches!(subject, Subject::Holds { .. }),
            initial: matches!(subject, Subject::Holds { .. }).then_some(0),
            subject,
            last: None,
            depth: 0,
        };
        Self { subjects: subjects.into_iter().map(known).collect(), ..Self::default() }
    }

    fn held(&mut self, number: u64) -> Option<&mut Held> {
        let place = number.checked_sub(self.passed)?;
        self.held.get_mut(usize::try_from(place).ok()?)
    }

    /// A read saw `value` in the subject at `place`.
    fn read(&mut self, place: usize, value: Option<i64>) {
        let Some(value) = value else { return };
        let known = &mut self.subjects[place];
        match known.last {
            None if !known.is_initial_settled => {
                known.initial = Some(value);
                known.is_initial_settled = true;
            }
            None => {}
            Some(last) => {
                if let Some(held) = self.held(last).filter(|held| held.awaits_read) {
                    held.step.value.get_or_insert(value);
                }
            }
        }
    }

    /// Nothing more will report the present value of the subject at `place`.
    fn overwrite(&mut self, place: usize) {
        let known = &mut self.subjects[place];
        known.is_initial_settled = true;
        if let Some(last) = known.last.take()
            && let Some(held) = self.held(last)
        {
            held.awaits_read = false;
        }
    }

    /// The next step whose value is settled.
    fn next(&mut self) -> Option<Step> {
        if self.held.len() > HELD_MAX {
            self.is_inexact = true;
            for known in &mut self.subjects {
                known.is_initial_settled = true;
            }
            if let Some(held) = self.held.front_mut() {
                (held.awaits_thread, held.awaits_read) = (false, false);
            }
        }
        let is_begun = self.subjects.iter().all(|known| known.is_initial_settled);
        if !is_begun || !self.held.front()?.is_settled() {
            return None;
        }
        self.passed += 1;
        self.held.pop_front().map(|held| held.step)
    }
}

/// The bytes of a variable: from its first up to the next border of an access.
struct Cell {
    start: u64,
    end: u64,
    /// All bits of all values so far.
    bits: u64,
    /// Question and place of those that it is the variable of.
    subjects: Vec<(usize, usize)>,
}

impl Cell {
    /// What of `value`, accessed as `access` says, is in it.
    fn part(&mut self, value: Option<u64>, access: Access) -> Option<i64> {
        if access.start > self.start || access.end < self.end {
            return None;
        }
        let value = part(value?, access.start, self.start, self.end);
        self.bits |= value as u64;
        Some(value)
    }
}

/// A value that the next event of a thread reports.
struct Awaited {
    access: Access,
    cell: usize,
    question: usize,
    number: u64,
}

/// All that is followed.
#[derive(Default)]
struct Followed {
    questions: Vec<Question>,
    cells: Vec<Cell>,
    /// The cells of a word, by address.
    words: FxHashMap<u64, Vec<usize>>,
    /// The first word with a cell, and the one after the last.
    bounds: (u64, u64),
    /// Who is asked about a lock, by its address.
    locks: FxHashMap<u64, Vec<(usize, usize, u32)>>,
    /// The places in clocks, and within the question, of its threads.
    chains: FxHashMap<(usize, u32), (usize, usize)>,
    awaited: FxHashMap<u32, Vec<Awaited>>,
    /// Whether there are more threads than are followed.
    is_full: bool,
}

impl Followed {
    /// Looks up by `find` where what has no address yet is, and what is there at first if that is known.
    fn resolve(&mut self, mut find: impl FnMut(&str) -> Option<(u64, Option<i64>)>) {
        for question in 0..self.questions.len() {
            for place in 0..self.questions[question].subjects.len() {
                let subject = &self.questions[question].subjects[place].subject;
                if self.is_resolved(question, place) {
                    continue;
                }
                let Some((address, initial)) = find(subject.name()) else { continue };
                match *subject {
                    Subject::Variable { .. } => {
                        self.questions[question].subjects[place].initial = initial;
                        self.add_cell(address, (question, place));
                    }
                    Subject::Holds { thread, .. } => {
                        self.locks.entry(address).or_default().push((question, place, thread));
                    }
                }
            }
        }
    }

    /// Whether it is known where the subject at `place` of `question` is.
    fn is_resolved(&self, question: usize, place: usize) -> bool {
        match self.questions[question].subjects[place].subject {
            Subject::Variable { .. } => {
                self.cells.iter().any(|cell| cell.subjects.contains(&(question, place)))
            }
            Subject::Holds { thread, .. } => {
                self.locks.values().any(|all| all.contains(&(question, place, thread)))
            }
        }
    }

    /// The names that were not found.
    fn missing(&self, question: usize) -> Vec<String> {
        let subjects = self.questions[question].subjects.iter().enumerate();
        let missing = subjects.filter(|(place, _)| !self.is_resolved(question, *place));
        missing.map(|(_, known)| known.subject.name().to_owned()).collect()
    }

    fn add_cell(&mut self, start: u64, subject: (usize, usize)) {
        if let Some(cell) = self.cells.iter_mut().find(|cell| cell.start == start) {
            cell.subjects.push(subject);
            return;
        }
        let word = start / WORD_BYTES;
        let end = (word + 1) * WORD_BYTES;
        self.cells.push(Cell { start, end, bits: 0, subjects: vec![subject] });
        let cells = &self.cells;
        let list = self.words.entry(word).or_default();
        list.push(cells.len() - 1);
        list.sort_by_key(|&cell| cells[cell].start);
        let (low, high) = self.bounds;
        self.bounds = match high {
            0 => (word, word + 1),
            _ => (low.min(word), high.max(word + 1)),
        };
    }

    /// The cells that `access` touches, in order, once they are cut at its borders.
    fn touched(&mut self, access: Access) -> Vec<usize> {
        let (low, high) = self.bounds;
        let (first, last) = (access.start / WORD_BYTES, (access.end - 1) / WORD_BYTES);
        if last < low || first >= high {
            return Vec::new();
        }
        let mut touched = Vec::new();
        for word in first.max(low)..=last.min(high - 1) {
            for &place in self.words.get(&word).map_or(&[][..], Vec::as_slice) {
                let cell = &mut self.cells[place];
                for border in [access.start, access.end] {
                    if cell.start < border && border < cell.end {
                        cell.end = border;
                        let is_other = cell.bits >> (8 * (border - cell.start)) != 0;
                        for &(question, _) in &cell.subjects {
                            self.questions[question].is_inexact |= is_other;
                        }
                    }
                }
                if access.start < cell.end && cell.start < access.end {
                    touched.push(place);
                }
            }
        }
        touched
    }

    /// Takes what `event` says of values.
    fn look(&mut self, thread: u32, event: &Event) {
        if !self.awaited.is_empty()
            && tells_stored(event)
            && let Some(all) = self.awaited.remove(&thread)
        {
            for Awaited { access, cell, question, number } in all {
                let value = self.cells[cell].part(event.stored, access);
                if let Some(held) = self.questions[question].held(number) {
                    held.awaits_thread = false;
                    held.step.value = held.step.value.or(value);
                }
            }
        }
        let reads = matches!(
            event.kind,
            Kind::Read | Kind::ReadRange | Kind::AtomicLoad | Kind::AtomicFailed
        );
        if let Some(access) = Access::new(event).filter(|_| reads) {
            for cell in self.touched(access) {
                let value = match event.kind {
                    Kind::ReadRange => None,
                    _ => self.cells[cell].part(event.value, access),
                };
                for &(question, place) in &self.cells[cell].subjects {
                    self.questions[question].read(place, value);
                }
            }
        }
    }

    /// The next step that is settled, of any question.
    fn next(&mut self) -> Option<Step> {
        let open = self.questions.iter_mut().filter(|question| !question.is_closed);
        open.into_iter().find_map(Question::next)
    }

    /// Nothing more will be reported: all is settled.
    fn settle(&mut self) {
        for question in &mut self.questions {
            for known in &mut question.subjects {
                known.is_initial_settled = true;
            }
            for held in &mut question.held {
                (held.awaits_thread, held.awaits_read) = (false, false);
            }
        }
    }

    /// Counts a step in `clock` and holds it; gives its number.
    fn push(
        &mut self,
        (question, place): (usize, usize),
        event: &Event,
        thread: u32,
        held: Held,
        clock: &mut Clock,
    ) -> Option<u64> {
        let count = self.chains.len();
        if count >= CHAINS_MAX && !self.chains.contains_key(&(question, thread)) {
            self.is_full = true;
            return None;
        }
        let asked = &mut self.questions[question];
        let chains = &mut asked.chains;
        let &mut (at, chain) = self.chains.entry((question, thread)).or_insert_with(|| {
            chains.push(count);
            (count, chains.len() - 1)
        });
        clock.tick(at);
        let clock = asked.chains.iter().map(|&at| clock.get(at)).collect();
        let step =
            Step { question, subject: place, chain, clock, thread, code: event.code, ..held.step };
        asked.held.push_back(Held { step, ..held });
        Some(asked.passed + asked.held.len() as u64 - 1)
    }
}

impl Ticks for Followed {
    fn write(&mut self, thread: u32, event: &Event, access: Access, clock: &mut Clock) {
        for cell in self.touched(access) {
            let value = match event.kind {
                Kind::AtomicStore => self.cells[cell].part(event.value, access),
                _ => None,
            };
            for at in 0..self.cells[cell].subjects.len() {
                let (question, place) = self.cells[cell].subjects[at];
                if self.questions[question].is_closed {
                    continue;
                }
                self.questions[question].overwrite(place);
                let awaits_thread = event.kind == Kind::Write;
                let step = Step { value, ..Step::default() };
                let held = Held { step, awaits_thread, awaits_read: true };
                let Some(number) = self.push((question, place), event, thread, held, clock) else {
                    continue;
                };
                self.questions[question].subjects[place].last = Some(number);
                if awaits_thread {
                    let awaited = Awaited { access, cell, question, number };
                    self.awaited.entry(thread).or_default().push(awaited);
                }
            }
        }
    }

    fn lock(&mut self, thread: u32, event: &Event, address: u64, takes: bool, clock: &mut Clock) {
        let Some(asked) = self.locks.get(&address) else { return };
        let own: Vec<(usize, usize)> = asked
            .iter()
            .filter(|(question, _, of)| *of == thread && !self.questions[*question].is_closed)
            .map(|&(question, place, _)| (question, place))
            .collect();
        for (question, place) in own {
            let depth = &mut self.questions[question].subjects[place].depth;
            *depth = if takes { *depth + 1 } else { depth.saturating_sub(1) };
            let value = Some(i64::from(*depth > 0));
            let step = Step { value, ..Step::default() };
            let held = Held { step, awaits_thread: false, awaits_read: false };
            self.push((question, place), event, thread, held, clock);
        }
    }
}
