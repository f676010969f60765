//! Watching a program while it is recorded: is there a state that meets a predicate?
//!
//! Every event goes, as it is drained, to a worker that follows what the predicates speak of
//! ([`reweave_record::live`]) and inserts the changes into an online detector for each predicate,
//! which searches the states that each change adds. A state that meets a predicate is reported as
//! soon as it is found; then the predicate is done.
//!
//! Promised: a predicate is met exactly if `states find` finds it met in the trace of the same run,
//! unless the verdict says that the search was cut short. States are those of the
//! trace-order-preserving relation: some run reaches each.
//!
//! Memory is bounded, however long the program runs: so many events wait for the worker, and so
//! many steps are kept for states to come. So is time: see `Budgeted`. When the worker does not
//! keep up, the collector waits for it, its ring fills, and the program waits in turn: it is slowed
//! to the speed of the search, and nothing is lost.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use reweave_analysis::Modality;
use reweave_base::Id as _;
use reweave_order::poset::ChainId;
use reweave_record::collect::{announced_process, map_file};
use reweave_record::live::{Follower, Step, Subject};
use reweave_record::wire::{Event, Kind};
use reweave_states::online::{
    Budget, End, Interval, Least, OnlineDetector, Options, Search, State,
};
use reweave_states::predicate::running::{self, Running};

/// Events that are handed to the worker at a time.
const BATCH_EVENTS: usize = 4096;

/// How many batches may wait for the worker.
const BATCHES_MAX: usize = 16;

/// How many states a search may visit to begin with, and how many it can save up.
const CREDIT_MAX: u64 = 1 << 24;

/// How many states each step adds to the credit.
const CREDIT_PER_STEP: u64 = 256;

/// How much the search for one predicate may use. The worker searches itself, at once.
const OPTIONS: Options =
    Options { workers: 0, queue_max: 0, states_max: CREDIT_MAX, events_max: 1 << 16 };

/// The result of watching for one predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The predicate.
    pub text: String,
    /// A description of the first state found, if there was one.
    pub found: Option<String>,
    /// Whether some states were not searched, though nothing was found.
    pub is_cut_short: bool,
    /// Names that no process had.
    pub missing: Vec<String>,
}

/// What goes to the worker.
enum Item {
    Process { place: usize, pid: u64 },
    Map { number: u64, text: String },
    Events(Vec<(u32, Event)>),
}

/// A program that is watched.
pub struct Watching {
    sender: SyncSender<Item>,
    worker: JoinHandle<Vec<Verdict>>,
    batch: Vec<(u32, Event)>,
    directory: PathBuf,
    announcement: Event,
    is_over: Arc<AtomicBool>,
}

impl Watching {
    /// Watches for what `questions` ask in the processes that announce themselves in `directory`.
    /// `report` is called, on another thread, with what is found; source files below `base` are
    /// named relative to it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        questions: Vec<Running>,
        directory: &Path,
        base: &Path,
        report: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(BATCHES_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let base = base.to_owned();
        let work = move || Worker::new(questions, &base, Box::new(report), flag).run(&receiver);
        let worker = thread::Builder::new().name("watch".into()).spawn(work)?;
        Ok(Self {
            sender,
            worker,
            batch: Vec::with_capacity(BATCH_EVENTS),
            directory: directory.to_owned(),
            announcement: Event::new(Kind::Switch, 0, 0),
            is_over,
        })
    }

    /// Takes the next event, as it is drained. Waits if too many wait for the worker.
    #[inline]
    pub fn step(&mut self, thread: u32, event: &Event) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        if let Some(place) = announced_process(event) {
            self.flush();
            self.announcement = *event;
            self.send(Item::Process { place, pid: event.extra.unwrap_or(0) });
            return;
        }
        if event.kind == Kind::Maps {
            self.flush();
            let path = map_file(&self.directory, &self.announcement, event.address);
            // Without a map nothing has a name, and the verdict says what was not found.
            let text = fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            self.send(Item::Map { number: event.address, text });
        }
        self.batch.push((thread, *event));
        if self.batch.len() >= BATCH_EVENTS {
            self.flush();
        }
    }

    /// Hands the worker what was taken so far.
    pub fn flush(&mut self) {
        if !self.batch.is_empty() {
            let batch = mem::replace(&mut self.batch, Vec::with_capacity(BATCH_EVENTS));
            self.send(Item::Events(batch));
        }
    }

    fn send(&self, item: Item) {
        // A worker that is gone has panicked; `finish` passes the panic on.
        let _ = self.sender.send(item);
    }

    /// The verdicts, in the order of the questions, once the program has ended.
    ///
    /// # Panics
    /// If the worker did.
    #[must_use]
    pub fn finish(mut self) -> Vec<Verdict> {
        self.flush();
        drop(self.sender);
        self.worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What a subject was last changed to by a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// Its place among all changes, from 1; 0 if there was none.
    order: u64,
    value: Option<i64>,
    thread: u32,
    code: u64,
}

/// What each subject was last changed to by a thread, as it was after one of its steps.
type Label = Box<[Mark]>;

/// What each subject was last changed to in a state that was found.
type Seen = Arc<Mutex<Option<Vec<Mark>>>>;

type IsMet = Box<dyn Fn(&State<'_, Label>) -> bool + Send + Sync>;

/// A search that does not take more time than it may.
///
/// Threads that do not synchronize have more states with every step, and a program that is watched
/// waits for its watcher. So the search has a credit of states, earns a few with each step, and
/// skips a step whose states may cost more than it has.
struct Budgeted<S> {
    inner: S,
    credit: AtomicU64,
    has_skipped: AtomicBool,
}

impl<S: Search> Search for Budgeted<S> {
    type Label = S::Label;
    type Answer = S::Answer;

    fn search(&self, interval: &Interval<S::Label>, budget: &mut Budget<'_>) -> End {
        // An upper bound: states are at most the product of the ranges.
        let bounds = interval.least().iter().zip(interval.greatest());
        let states = bounds
            .map(|(&least, &greatest)| u64::from(greatest.saturating_sub(least)) + 1)
            .fold(1, u64::saturating_mul);
        let credit = self.credit.load(Ordering::Relaxed).saturating_add(CREDIT_PER_STEP);
        let credit = credit.min(CREDIT_MAX);
        let left = credit.checked_sub(states);
        self.credit.store(left.unwrap_or(credit), Ordering::Relaxed);
        if left.is_none() {
            self.has_skipped.store(true, Ordering::Relaxed);
            return End::Short;
        }
        self.inner.search(interval, budget)
    }

    fn answer(self, chains_count: usize) -> S::Answer {
        self.inner.answer(chains_count)
    }
}

/// The search of one process for one predicate.
struct Detector {
    online: OnlineDetector<Budgeted<Least<Label, IsMet>>>,
    seen: Seen,
    /// The label of each thread's last step.
    labels: Vec<Vec<Mark>>,
    order: u64,
    is_refused: bool,
}

impl Detector {
    /// Starts with a state in which nothing has changed yet.
    fn new(question: &Arc<Running>, initial: Vec<Option<i64>>) -> Self {
        let seen = Seen::default();
        let found = Arc::clone(&seen);
        let asked = Arc::clone(question);
        let count = initial.len();
        let is_met: IsMet = Box::new(move |state| {
            let last = |place: usize| {
                let marks = state.frontier().map(|(.., label)| label[place]);
                let last = marks.max_by_key(|mark| mark.order).filter(|mark| mark.order > 0);
                last.unwrap_or(Mark { value: initial[place], ..Mark::default() })
            };
            let is_met = asked.is_met(|place| last(place).value);
            if is_met {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.get_or_insert_with(|| (0..count).map(last).collect());
            }
            is_met
        });
        let search = Budgeted {
            inner: Least::new(is_met),
            credit: AtomicU64::new(CREDIT_MAX),
            has_skipped: AtomicBool::new(false),
        };
        let online = OnlineDetector::new(search, OPTIONS);
        // Chain 0 never runs. It keeps the detector from dropping events early: a thread that has
        // done nothing yet may start at any state.
        let is_refused = online.declare(ChainId::from_index(0)).is_err();
        Self { online, seen, labels: Vec::new(), order: 0, is_refused }
    }

    /// Takes the next step of a process.
    fn step(&mut self, step: &Step, subjects_count: usize) {
        self.order += 1;
        let blank = || vec![Mark::default(); subjects_count];
        if self.labels.len() <= step.chain {
            self.labels.resize_with(step.chain + 1, blank);
        }
        let label = &mut self.labels[step.chain];
        let (value, thread, code) = (step.value, step.thread, step.code);
        label[step.subject] = Mark { order: self.order, value, thread, code };
        let clock: Vec<u32> = std::iter::once(0).chain(step.clock.iter().copied()).collect();
        let chain = ChainId::from_index(step.chain + 1);
        let inserted = self.online.insert(chain, &clock, label.as_slice().into());
        self.is_refused |= inserted.is_err();
    }

    /// Whether some states were not searched.
    fn lacks_states(self) -> bool {
        let has_skipped = self.online.search().has_skipped.load(Ordering::Relaxed);
        self.is_refused || has_skipped || !self.online.finish().answer.is_certain
    }

    /// The first state that was found.
    fn found(&self) -> Option<Vec<Mark>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One process that is followed.
struct Process {
    pid: u64,
    follower: Follower,
    detectors: Vec<Option<Detector>>,
}

/// What the worker knows.
struct Worker {
    questions: Vec<Arc<Running>>,
    base: PathBuf,
    report: Box<dyn Fn(&str) + Send>,
    is_over: Arc<AtomicBool>,
    processes: Vec<Option<Process>>,
    current: usize,
    verdicts: Vec<Verdict>,
}

impl Worker {
    fn new(
        questions: Vec<Running>,
        base: &Path,
        report: Box<dyn Fn(&str) + Send>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        let verdict =
            |question: &Running| Verdict { text: question.text().to_owned(), ..Verdict::default() };
        Self {
            verdicts: questions.iter().map(verdict).collect(),
            questions: questions.into_iter().map(Arc::new).collect(),
            base: base.to_owned(),
            report,
            is_over,
            processes: Vec::new(),
            current: 0,
        }
    }

    fn run(mut self, receiver: &Receiver<Item>) -> Vec<Verdict> {
        while let Ok(item) = receiver.recv() {
            if self.is_over.load(Ordering::Relaxed) {
                // The rest is only drained.
                continue;
            }
            match item {
                Item::Process { place, pid } => self.switch_to(place, pid),
                Item::Map { number, text } => {
                    if let Some(process) = self.process() {
                        process.follower.add_map(number, &text);
                    }
                }
                Item::Events(events) => {
                    for (thread, event) in events {
                        let Some(process) = self.process() else { break };
                        process.follower.take(thread, event);
                        self.search();
                    }
                }
            }
        }
        self.finish()
    }

    fn process(&mut self) -> Option<&mut Process> {
        self.processes.get_mut(self.current)?.as_mut()
    }

    fn switch_to(&mut self, place: usize, pid: u64) {
        self.current = place;
        if self.processes.len() <= place {
            self.processes.resize_with(place + 1, || None);
        }
        let questions = &self.questions;
        let base = &self.base;
        let verdicts = &self.verdicts;
        self.processes[place].get_or_insert_with(|| {
            let mut follower =
                Follower::new(questions.iter().map(|question| subjects(question)), base);
            for (question, verdict) in verdicts.iter().enumerate() {
                if verdict.found.is_some() {
                    follower.close(question);
                }
            }
            Process { pid, follower, detectors: questions.iter().map(|_| None).collect() }
        });
    }

    /// Searches the steps of the current process so far.
    fn search(&mut self) {
        while let Some(process) = self.processes.get_mut(self.current).and_then(Option::as_mut) {
            let Some(step) = process.follower.next_step() else { return };
            let question = step.question;
            let subjects_count = self.questions[question].subjects().len();
            let detector = process.detector(question, &self.questions[question]);
            detector.step(&step, subjects_count);
            self.report_found(question);
        }
    }

    /// Reports what was found for `question` in the current process, if anything was.
    fn report_found(&mut self, question: usize) {
        let Some(process) = self.processes.get_mut(self.current).and_then(Option::as_mut) else {
            return;
        };
        let Some(found) = process.detectors[question].as_ref().and_then(Detector::found) else {
            return;
        };
        let mut text = description(&self.questions[question], &found, &mut process.follower);
        if self.current > 0 {
            _ = write!(text, " (process {})", process.pid);
        }
        (self.report)(&text);
        self.verdicts[question].found = Some(text);
        for process in self.processes.iter_mut().flatten() {
            process.follower.close(question);
            process.detectors[question] = None;
        }
        if self.verdicts.iter().all(|verdict| verdict.found.is_some()) {
            self.is_over.store(true, Ordering::Relaxed);
            self.processes.clear();
        }
    }

    fn finish(mut self) -> Vec<Verdict> {
        for place in 0..self.processes.len() {
            self.current = place;
            if let Some(process) = self.process() {
                process.follower.finish();
                self.search();
            }
            self.conclude();
        }
        self.verdicts
    }

    /// Adds to the verdicts the result of the current process, which has ended.
    fn conclude(&mut self) {
        for question in 0..self.questions.len() {
            let asked = Arc::clone(&self.questions[question]);
            if self.verdicts[question].found.is_some() {
                continue;
            }
            let Some(process) = self.process() else { return };
            // Where nothing changed there is still the state at the start.
            process.detector(question, &asked);
            self.report_found(question);
            let Some(process) = self.process() else { return };
            let Some(detector) = process.detectors[question].take() else { continue };
            let missing = process.follower.missing(question);
            let is_lost = process.follower.is_cut_short(question) || detector.lacks_states();
            let verdict = &mut self.verdicts[question];
            verdict.is_cut_short |= is_lost;
            // A name that one process has is there, though others lack it.
            verdict.missing = match self.current {
                0 => missing,
                _ => missing.into_iter().filter(|it| verdict.missing.contains(it)).collect(),
            };
        }
    }
}

impl Process {
    /// The search for `question`, which is `asked`.
    fn detector(&mut self, question: usize, asked: &Arc<Running>) -> &mut Detector {
        let follower = &self.follower;
        self.detectors[question].get_or_insert_with(|| {
            let initial = (0..asked.subjects().len()).map(|at| follower.initial(question, at));
            Detector::new(asked, initial.collect())
        })
    }
}

/// What a predicate speaks of, as it is followed.
fn subjects(question: &Running) -> Vec<Subject> {
    let subject = |(subject, _): (&running::Subject, &str)| match subject {
        running::Subject::Variable { name } => Subject::Variable { name: name.clone() },
        running::Subject::Holds { thread, lock } => {
            // Threads are called as in a trace; what is no such name never runs.
            let number = match thread.as_str() {
                "main" => Some(0),
                name => name.strip_prefix('T').and_then(|number| number.parse().ok()),
            };
            Subject::Holds { thread: number.unwrap_or(u32::MAX), lock: lock.clone() }
        }
    };
    question.subjects().map(subject).collect()
}

/// Describes a state; a fragment of a sentence.
fn description(question: &Running, seen: &[Mark], follower: &mut Follower) -> String {
    let verb = match question.modality() {
        Modality::Possibly | Modality::Definitely => "meets",
        Modality::Always | Modality::Never => "breaks",
    };
    let mut parts = Vec::new();
    for ((subject, spelled), mark) in question.subjects().zip(seen) {
        let value = match (subject, mark.value) {
            (running::Subject::Holds { .. }, Some(value)) => (value == 1).to_string(),
            (running::Subject::Variable { .. }, Some(value)) => value.to_string(),
            (_, None) => "unknown".to_owned(),
        };
        let place = match (mark.order, mark.thread) {
            (0, _) => "at the start".to_owned(),
            (_, 0) => format!("main, {}", follower.location(mark.code)),
            (_, thread) => format!("T{thread}, {}", follower.location(mark.code)),
        };
        parts.push(format!("{spelled} = {value} ({place})"));
    }
    format!("a state can be reached that {verb} {}: {}", question.text(), parts.join(", "))
}
