//! From a program to the ranges of its values: runs, their concurrent trace program, its analysis,
//! and schedules for what may go wrong.
//!
//! Ranges speak of all interleavings of the runs that were recorded. If in none of them a thread can
//! leave the recorded paths, these are all runs of the program, and an assertion that holds is
//! proved. One that may fail is asked about symbolically; a schedule that breaks it is run before
//! it is reported.

use reweave_exec::scheduler::{Scheduler, View};
use reweave_exec::{
    Code, Ending, Fault, FaultKind, Layers, Run, Settings as RunSettings, ThreadNumber, run,
};
use reweave_intervals::analyse::{self, Analysis, AnalysisError};
use reweave_intervals::answers;
use reweave_intervals::ctp::{Action, Ctp, CtpError, Step, StepId};
use reweave_intervals::domain::Domain;
use reweave_intervals::graph::{self, GraphKind, build};
use reweave_intervals::schedule::minimize_switches;
use reweave_intervals::symbolic::{self, Question, StepRanges, Widths};
use reweave_intervals::terms::Term;
use reweave_trace::{Binary, ConditionOp, Event, Op, SiteId, ThreadId, Trace};

use crate::inference::Trouble;
use crate::runs::{Plan, repeat};

/// What to find out, and from what.
#[derive(Clone, Debug)]
pub struct Request {
    /// The runs.
    pub plan: Plan,
    /// How ranges are found.
    pub settings: analyse::Settings,
    /// How long to look for schedules, if at all.
    pub search: Option<symbolic::Settings>,
    /// Lines of which to say whether they can be reached.
    pub reach: Vec<u32>,
}

/// Why there are no ranges.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// A run did not come to its end.
    #[error(
        "line {line}: the run with seed {seed} was cut off after {steps} steps, with a loop that it did not unroll; \
         ranges are of whole runs: let it take more steps, or shorten the loop"
    )]
    CutOff {
        /// Which run.
        seed: u64,
        /// How long it was.
        steps: u64,
        /// Where it was.
        line: u32,
    },
    /// A run started too many threads.
    #[error(
        "the run with seed {seed} started more threads than a run may; ranges are of whole runs"
    )]
    Threads {
        /// Which run.
        seed: u64,
    },
    /// It was stopped before there was anything to report.
    #[error("stopped before there was a whole run")]
    Stopped,
    /// The runs make no program.
    #[error(transparent)]
    Program(#[from] CtpError),
    /// The program is too large.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}

/// What was found out.
#[derive(Debug)]
pub struct Ranges<D> {
    /// How many runs it is about.
    pub runs_count: usize,
    /// How many more there were, which were left out since they failed.
    pub left_out_count: usize,
    /// Whether a run that it is about came to its end without a fault.
    pub has_end: bool,
    /// Whether a run failed or ended in a deadlock.
    pub has_fault: bool,
    /// Whether every interleaving was looked at, and not only those of the paper's graph.
    pub is_sound: bool,
    /// What went wrong in runs themselves.
    pub troubles: Vec<Trouble>,
    /// The program of the runs.
    pub ctp: Ctp,
    /// Its graphs, values and answers.
    pub analysis: Analysis<D>,
    /// Every assertion.
    pub assertions: Vec<Assertion>,
    /// The lines that were asked about.
    pub reached: Vec<Reached>,
    /// Whether the interleavings of the runs are all runs of the program.
    pub is_closed: bool,
}

/// An assertion, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// Where.
    pub site: SiteId,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Whether a schedule was searched that breaks it.
    pub is_searched: bool,
}

/// What becomes of an assertion.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It holds in every interleaving of the runs, by the ranges alone.
    Holds,
    /// It holds in every interleaving of the runs; ranges leave it open, the search does not.
    HoldsBySearch,
    /// It fails in this run, which was tried.
    Fails(Shown),
    /// It may fail, for all that is known.
    MayFail,
    /// No interleaving of the runs comes to it.
    NotReached,
}

/// A line, and whether it can be reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// Which.
    pub line: u32,
    /// In which run; none if in no interleaving of the runs, or if that is not known.
    pub shown: Option<Shown>,
    /// Whether it is known.
    pub is_known: bool,
}

/// A run that shows what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The thread and the line of each of its steps.
    pub steps: Vec<(String, String)>,
}

/// Runs `code` as `request` says, and finds the ranges of its values.
///
/// # Errors
/// If a run is cut off, has no program, or is too large.
pub fn find<D: Domain>(
    code: &Code,
    request: &Request,
    goes_on: &dyn Fn() -> bool,
) -> Result<Ranges<D>, RangesError> {
    let gathered = gather(code, &request.plan, goes_on)?;
    let used = used(&gathered);
    let traces: Vec<&Trace> = used.iter().map(|(_, run)| &run.trace).collect();
    let mut ctp = Ctp::new(&traces)?;
    ctp.propagate_constants();
    // Where runs that are left out came to has a name, too.
    for (_, run) in &gathered {
        for (_, site) in run.trace.names().sites.entries() {
            ctp.names.sites.intern(site);
        }
    }
    let analysis = analyse::analyse::<D>(&ctp, &request.settings, goes_on)?;
    let searcher = Searcher::new(code, &ctp, &analysis, request, &gathered);
    let assertions = searcher.assertions(goes_on);
    let is_closed = is_sound(request)
        && analysis.answers.closed
        && used.iter().all(|(_, run)| is_whole(run))
        && !may_end_early(&ctp, &assertions);
    let reached = request.reach.iter().map(|&line| searcher.reach(line, goes_on)).collect();
    let troubled = gathered.iter().filter(|(_, run)| !is_whole(run));
    let troubles = troubled.map(|(seed, run)| Trouble::new(*seed, run)).collect();
    let runs_count = used.len();
    Ok(Ranges {
        runs_count,
        left_out_count: gathered.len() - runs_count,
        has_end: used.iter().any(|(_, run)| is_whole(run)),
        has_fault: gathered.iter().any(|(_, run)| is_faulty(run)),
        is_sound: is_sound(request),
        troubles,
        assertions,
        reached,
        analysis,
        ctp,
        is_closed,
    })
}

fn is_sound(request: &Request) -> bool {
    request.settings.graph.mode == graph::Mode::Sound
}

fn is_whole(run: &Run) -> bool {
    run.ending == Ending::Finished && run.faults.is_empty()
}

fn is_faulty(run: &Run) -> bool {
    !run.faults.is_empty() || matches!(run.ending, Ending::Deadlock(_))
}

/// The runs that the program is made of: those without a fault, if there are any. A thread that ends
/// by a fault lets others go on that wait for its end, which no way of the program does.
fn used(gathered: &[(u64, Run)]) -> Vec<&(u64, Run)> {
    let faultless: Vec<_> = gathered.iter().filter(|(_, run)| run.faults.is_empty()).collect();
    if faultless.is_empty() { gathered.iter().collect() } else { faultless }
}

/// Whether an assertion may end a thread that others wait for. They go on then, earlier than the
/// program of the runs has it.
fn may_end_early(ctp: &Ctp, assertions: &[Assertion]) -> bool {
    let is_joined =
        |thread: ThreadId| ctp.steps.iter().any(|step| step.action == Action::Join(thread));
    let holds = |site: SiteId| {
        let found = assertions.iter().find(|assertion| assertion.site == site);
        found.is_some_and(|assertion| {
            !matches!(assertion.verdict, Verdict::Fails(_) | Verdict::MayFail)
        })
    };
    let mut asserting = ctp.steps.iter().filter(|step| step.assertion.is_some());
    asserting.any(|step| !holds(step.site) && is_joined(step.thread))
}

/// The runs that `plan` asks for.
fn gather(
    code: &Code,
    plan: &Plan,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<(u64, Run)>, RangesError> {
    let mut gathered: Vec<(u64, Run)> = Vec::new();
    let mut error = None;
    let plan = Plan { settings: RunSettings { layers: Layers::Program, ..plan.settings }, ..*plan };
    repeat(code, &plan, goes_on, |seed, run| {
        match run.ending {
            Ending::Steps => {
                let steps = run.schedule.0.len() as u64;
                let line = last_line(&run.trace);
                error = Some(RangesError::CutOff { seed, steps, line });
            }
            Ending::Threads => error = Some(RangesError::Threads { seed }),
            Ending::Stopped => return false,
            Ending::Finished | Ending::Deadlock(_) | Ending::Assumption(_) => {
                gathered.push((seed, run));
            }
        }
        error.is_none()
    });
    match error {
        Some(error) => Err(error),
        None if gathered.is_empty() => Err(RangesError::Stopped),
        None => Ok(gathered),
    }
}

fn last_line(trace: &Trace) -> u32 {
    let site = trace.events().last().map(|(_, event)| event.site);
    site.and_then(|site| trace.names().line(site)).unwrap_or(0)
}

/// Whether an assertion at `line` fails in `run`.
fn breaks(run: &Run, line: Option<u32>) -> bool {
    let fits = |fault: &Fault| fault.kind == FaultKind::Assertion && Some(fault.line) == line;
    run.faults.iter().any(fits)
}

/// Looks for schedules.
struct Searcher<'a, D> {
    code: &'a Code,
    ctp: &'a Ctp,
    analysis: &'a Analysis<D>,
    request: &'a Request,
    runs: &'a [(u64, Run)],
    ranges: StepRanges,
}

impl<'a, D: Domain> Searcher<'a, D> {
    fn new(
        code: &'a Code,
        ctp: &'a Ctp,
        analysis: &'a Analysis<D>,
        request: &'a Request,
        runs: &'a [(u64, Run)],
    ) -> Self {
        Self { code, ctp, analysis, request, runs, ranges: StepRanges::new(analysis.best()) }
    }

    fn assertions(&self, goes_on: &dyn Fn() -> bool) -> Vec<Assertion> {
        let judge = |(site, verdict): &(SiteId, answers::Verdict<D>)| {
            let line = self.ctp.names.line(*site);
            let observed = self.runs.iter().find(|(_, run)| breaks(run, line));
            let mut is_searched = false;
            let verdict = match (observed, verdict) {
                (Some((_, run)), _) => Verdict::Fails(Shown::new(run)),
                (None, answers::Verdict::Holds) => Verdict::Holds,
                (None, answers::Verdict::NotReached) => Verdict::NotReached,
                (None, answers::Verdict::MayFail { .. }) => {
                    let found = self.fails(*site, goes_on);
                    is_searched = found.is_some();
                    found.unwrap_or(Verdict::MayFail)
                }
            };
            Assertion { site: *site, verdict, is_searched }
        };
        let mut judged: Vec<Assertion> =
            self.analysis.answers.assertions.iter().map(judge).collect();
        self.add_observed(&mut judged);
        judged
    }

    /// Adds assertions that only runs came to that were left out.
    fn add_observed(&self, judged: &mut Vec<Assertion>) {
        for (_, run) in self.runs {
            for fault in run.faults.iter().filter(|fault| fault.kind == FaultKind::Assertion) {
                let names = &self.ctp.names;
                let mut sites = names.sites.entries().map(|(site, _)| site);
                if let Some(site) = sites.find(|&site| names.line(site) == Some(fault.line))
                    && judged.iter().all(|assertion| assertion.site != site)
                {
                    let verdict = Verdict::Fails(Shown::new(run));
                    judged.push(Assertion { site, verdict, is_searched: false });
                }
            }
        }
        judged.sort_by_key(|assertion| self.ctp.names.line(assertion.site));
    }

    fn steps_at(&self, at: impl Fn(SiteId) -> bool) -> Vec<StepId> {
        self.ctp.steps.entries().filter(|(_, step)| at(step.site)).map(|(id, _)| id).collect()
    }

    /// Whether the assertion at `site` fails in some interleaving; none if that is not searched.
    fn fails(&self, site: SiteId, goes_on: &dyn Fn() -> bool) -> Option<Verdict> {
        let settings = self.request.search.filter(|_| goes_on())?;
        let mut steps = self.steps_at(|of| of == site);
        steps.retain(|&id| self.ctp.steps[id].assertion.is_some());
        Some(match self.ask(&Question::Fails(steps), &settings) {
            symbolic::Answer::Impossible => Verdict::HoldsBySearch,
            symbolic::Answer::Possible(order) => {
                // Whether it went as thought, or the same assertion failed before, is all one.
                let (_, run) = self.follow(&order);
                let line = self.ctp.names.line(site);
                if breaks(&run, line) { Verdict::Fails(Shown::new(&run)) } else { Verdict::MayFail }
            }
            symbolic::Answer::Unconfirmed(_) | symbolic::Answer::Exhausted => Verdict::MayFail,
        })
    }

    fn reach(&self, line: u32, goes_on: &dyn Fn() -> bool) -> Reached {
        let reached = |run: &Run| {
            let is_there =
                |(_, event): (_, Event)| run.trace.names().line(event.site) == Some(line);
            run.trace.events().position(is_there)
        };
        if let Some((run, place)) = self.runs.iter().find_map(|(_, run)| Some((run, reached(run)?)))
        {
            let mut shown = Shown::new(run);
            shown.steps.truncate(place + 1);
            return Reached { line, shown: Some(shown), is_known: true };
        }
        let never = Reached { line, shown: None, is_known: true };
        let unknown = Reached { is_known: false, ..never.clone() };
        let steps = self.steps_at(|site| self.ctp.names.line(site) == Some(line));
        if steps.is_empty() {
            return unknown;
        }
        let values = &self.analysis.best().steps;
        if is_sound(self.request) && steps.iter().all(|&step| !values[step].reached) {
            return never;
        }
        let Some(settings) = self.request.search.filter(|_| goes_on()) else { return unknown };
        match self.ask(&Question::Reaches(steps), &settings) {
            symbolic::Answer::Impossible => never,
            symbolic::Answer::Possible(order) => {
                let (is_followed, run) = self.follow(&order);
                let shown = is_followed.then(|| Shown::new(&run));
                Reached { line, is_known: is_followed, shown }
            }
            symbolic::Answer::Unconfirmed(_) | symbolic::Answer::Exhausted => unknown,
        }
    }

    fn ask(&self, question: &Question, settings: &symbolic::Settings) -> symbolic::Answer {
        let ctp = self.guarded(question);
        // Whatever the graphs that were asked for, a search must miss nothing.
        let sound = build(&ctp, GraphKind::TsgReduced, &graph::Settings::default());
        let units = symbolic::transactions(&sound);
        // Ranges of another mode may leave out what happens.
        let widths =
            if is_sound(self.request) { Widths::Ranges(&self.ranges) } else { Widths::Fixed(64) };
        symbolic::ask(&ctp, &units, widths, question, settings).0
    }

    /// The program in which nobody gets past an assertion that fails, unless it is asked about.
    fn guarded(&self, question: &Question) -> Ctp {
        let mut ctp = self.ctp.clone();
        let asked = match question {
            Question::Fails(steps) => &steps[..],
            Question::Reaches(_) => &[],
        };
        for id in ctp.steps.ids().collect::<Vec<_>>() {
            let step = &mut ctp.steps[id];
            if let Some(assertion) = step.assertion
                && !asked.contains(&id)
            {
                let both = |guard| ctp.terms.add(Term::Binary(Binary::And, guard, assertion));
                step.guard = Some(step.guard.map_or(assertion, both));
            }
        }
        ctp
    }

    fn follow(&self, order: &[StepId]) -> (bool, Run) {
        follow(
            self.code,
            self.ctp,
            &minimize_switches(self.ctp, order),
            &self.request.plan.settings,
        )
    }
}

/// Runs `code` so that its threads take steps as in `order`, and whether they do to its end.
pub fn follow(code: &Code, ctp: &Ctp, order: &[StepId], settings: &RunSettings) -> (bool, Run) {
    let steps = order.iter().map(|&id| &ctp.steps[id]);
    let steps: Vec<&Step> = steps.filter(|step| !ctp.is_passing(step.action)).collect();
    let names: Vec<&str> = steps.iter().map(|step| ctp.names.threads.name(step.thread)).collect();
    let mut following = Following { names: &names, is_lost: false };
    let settings = RunSettings { layers: Layers::Events, ..*settings };
    let made = run(code, &mut following, &settings);
    (!following.is_lost && took(&made.trace, ctp, &steps), made)
}

/// Whether the events of `trace` are those `steps`: the same threads took steps, but they must have
/// been the same steps, too.
fn took(trace: &Trace, ctp: &Ctp, steps: &[&Step]) -> bool {
    // A wait begins in the step that releases the lock.
    let mut events = trace
        .events()
        .filter(|(_, event)| !matches!(event.op, Op::Condition(ConditionOp::Wait, _)));
    steps.iter().all(|step| {
        let site = events.next().map(|(_, event)| trace.names().location(event.site));
        site == Some(ctp.names.location(step.site))
    })
}

impl Shown {
    fn new(run: &Run) -> Self {
        let names = run.trace.names();
        let step = |event: Event| {
            (names.threads.name(event.thread).to_owned(), names.location(event.site).to_owned())
        };
        let steps = run.trace.events().map(|(_, event)| step(event)).collect();
        Self { steps }
    }
}

/// A scheduler that follows an order of threads by name, and stops at its end.
struct Following<'a> {
    names: &'a [&'a str],
    is_lost: bool,
}

impl Scheduler for Following<'_> {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        let step = usize::try_from(view.steps_count()).ok()?;
        let &name = self.names.get(step)?;
        let found = ready.iter().position(|&thread| view.name(thread) == name);
        self.is_lost |= found.is_none();
        found
    }
}
