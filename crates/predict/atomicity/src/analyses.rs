//! The analyses of atomicity: blocks that the observed run, or another, does not run at once.
//!
//! What the accesses of the run as observed show comes first, each set of code locations and variables once,
//! with how many blocks show it; the evidence is the run itself up to there. Then what other runs can
//! show, at other sets of these, each proven by a schedule; the count is that of the
//! patterns that nothing simple rules out, of which one is proven. Patterns on two variables are
//! looked for in blocks of which nothing is reported yet. Last come blocks of which still nothing is
//! reported, each once, and which the observed run breaks by other events than accesses: most often
//! another thread took a lock that the block gave up on its way. Code of a block that is handed another variable
//! is another block.
//!
//! The driver tries every set once before any is tried again; where the budget does not
//! last, or where not all patterns of a set that is not proven were tried, the coverage says so. What
//! the observed run shows is looked for whatever the budget is.

use std::hash::Hash;
use std::mem;
use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Class, Counter, Counters, Coverage, Detail, Evidence, Finding, Guarantee, Identities,
    Info, Instances, Kind, Layer, Proof, Settings, Sink, Subject, Truncation, spelled,
};
use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_driver::{Driver, Evaluated, Evaluator, Group, Open, Predictor, Reorderings, Tried};
use reweave_reorder::{Budget, Query};
use reweave_trace::{After, EventId, Goal, Reordering, ThreadId, Trace};

use crate::blocks::{self, Block, BlockName, BlockRunId, Blocks};
use crate::observed::{self, Violation};
use crate::predicted::{self, Candidates, Extent, Pattern, Width};

/// How many blocks are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 10;

/// Which part of the budget the search for patterns may take.
const SEARCH_SHARE: u64 = 64;

/// An analysis of certain blocks.
#[derive(Clone, Copy, Debug)]
pub struct Atomicity {
    info: &'static Info,
    blocks: fn(&Trace) -> Blocks,
}

/// Blocks that the trace marks.
pub const MARKED: Atomicity = Atomicity {
    info: &Info {
        name: "atomicity.blocks",
        family: "atomicity",
        kind: Kind::Atomicity,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: true,
        summary: "marked blocks that another thread can spoil",
        paper: "Flanagan, Freund and Yi, PLDI 2008; Lu et al., ASPLOS 2006",
    },
    blocks: blocks::marked,
};

/// Every critical section.
pub const SECTIONS: Atomicity = Atomicity {
    info: &Info {
        name: "atomicity.sections",
        family: "atomicity",
        kind: Kind::Atomicity,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "critical sections that another thread can spoil",
        paper: "Flanagan, Freund and Yi, PLDI 2008; Lu et al., ASPLOS 2006",
    },
    blocks: blocks::sections,
};

impl Analysis for Atomicity {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut driver = Driver::new(subject, settings, sink);
        if driver.check_cancelled().is_break() {
            return driver.coverage(self.info, Vec::new());
        }
        let trace = subject.trace();
        let blocks = (self.blocks)(trace);
        let (info, counts, settled) = (self.info, Counts::default(), Vec::new());
        let mut report = Report {
            trace,
            identities: Identities::new(trace),
            all: settings.all,
            blocks: &blocks,
            reported: FxHashSet::default(),
            reported_chains: FxHashSet::default(),
            broken: Handled::default(),
            undecided: Handled::default(),
            verdicts: Verdicts { info, trace, blocks: &blocks, counts, settled },
        };
        // A break means that it was stopped, or that no more findings are wanted.
        if let ControlFlow::Continue(otherwise) = report.report_observed(&mut driver)
            && report.report_predicted(&mut driver).is_continue()
        {
            _ = report.report_otherwise(&mut driver, otherwise);
        }
        let counters = report.counters();
        driver.coverage(self.info, counters)
    }
}

/// What blocks are runs of: their name and code location.
type Code<'t> = (BlockName, &'t str);

/// Of what code something is known, and what was used there. A helper may be handed something else.
type Handled<'t> = FxHashMap<Code<'t>, FxHashSet<Class>>;

/// What was reported so far.
struct Report<'a, 't> {
    trace: &'t Trace,
    identities: Identities<'t>,
    /// Whether every instance is a finding of its own.
    all: bool,
    blocks: &'a Blocks,
    /// What was reported as observed, or, where every instance is, its events.
    reported: FxHashSet<Instances<'t>>,
    reported_chains: FxHashSet<Vec<EventId>>,
    /// Blocks whose accesses something was reported of.
    broken: Handled<'t>,
    /// Blocks of which a pattern is neither proven nor refuted.
    undecided: Handled<'t>,
    verdicts: Verdicts<'a, 't>,
}

/// What there is to say of what is proven.
struct Verdicts<'a, 't> {
    info: &'static Info,
    trace: &'t Trace,
    blocks: &'a Blocks,
    counts: Counts,
    /// Patterns that were reported, and whether they are proven.
    settled: Vec<(Pattern, bool)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    violations: u64,
    patterns: u64,
    location_sets: u64,
    proven: u64,
    untried: u64,
    capped: u64,
    undecided: u64,
}

impl<'t> Report<'_, 't> {
    fn counters(&self) -> Counters {
        let Counts { violations, patterns, location_sets, proven, untried, capped, undecided } =
            self.verdicts.counts;
        let mut counters = vec![
            (Counter::Blocks, self.blocks.len() as u64),
            (Counter::Violations, violations),
            (Counter::Patterns, patterns),
            (Counter::LocationSets, location_sets),
            (Counter::Proven, proven),
        ];
        let rest = [
            (Counter::Untried, untried),
            (Counter::Capped, capped),
            (Counter::Undecided, undecided),
        ];
        counters.extend(rest.into_iter().filter(|&(_, count)| count > 0));
        counters
    }

    /// Which findings one of `chain` would be one of.
    fn instances(&self, chain: &[EventId]) -> Instances<'t> {
        self.identities.instances_at(self.verdicts.info.kind, chain)
    }

    /// What `block` is a run of.
    fn code(&self, block: BlockRunId) -> Code<'t> {
        let block = &self.blocks[block];
        (block.name, self.trace.names().location(self.trace.event(block.begin).site))
    }

    /// What those of `chain` are on that are of `block`; what all are, where it comes to the block by program order
    /// alone.
    fn own_classes(&self, block: BlockRunId, chain: &[EventId]) -> FxHashSet<Class> {
        let block = &self.blocks[block];
        let is_own = |event: &EventId| block.holds(self.trace, *event);
        let has_own = chain.iter().any(is_own);
        let own = chain.iter().filter(|&event| !has_own || is_own(event));
        own.map(|&event| self.identities.class_of(self.trace.event(event).op)).collect()
    }

    /// Whether `block` uses any of `classes`.
    fn uses(&self, block: BlockRunId, classes: &FxHashSet<Class>) -> bool {
        let mut ops =
            self.blocks[block].events(self.trace).iter().map(|&it| self.trace.event(it).op);
        ops.any(|op| classes.contains(&self.identities.class_of(op)))
    }

    /// Whether the code of `block` is one of `handled`, with something that this run of it uses.
    fn is_handled(&self, handled: &Handled<'t>, block: BlockRunId) -> bool {
        handled.get(&self.code(block)).is_some_and(|classes| self.uses(block, classes))
    }

    /// Notes that accesses of `chain` break `block`, or that this is not known.
    fn note(&mut self, block: BlockRunId, chain: &[EventId], is_proven: bool) {
        let (code, classes) = (self.code(block), self.own_classes(block, chain));
        let handled = if is_proven { &mut self.broken } else { &mut self.undecided };
        handled.entry(code).or_default().extend(classes);
    }

    /// Makes a finding of each set of locations and variables at which the observed run breaks a block by
    /// accesses; gives what it breaks otherwise.
    fn report_observed(&mut self, driver: &mut Driver<'_, 't>) -> ControlFlow<(), Vec<Violation>> {
        let trace = self.trace;
        // Not paid from the budget, so that what it finds does not depend on that.
        let steps = 64 * trace.len() as u64 + 1_000_000;
        let violations = observed::violations(trace, self.blocks, steps);
        self.verdicts.counts.violations = violations.all.len() as u64;
        if violations.untried > 0 {
            self.verdicts.counts.untried += violations.untried;
            driver.truncate(Truncation::Capped);
        }
        let is_access = |&event: &EventId| trace.event(event).op.var().is_some();
        let (by_accesses, otherwise): (Vec<Violation>, Vec<Violation>) =
            violations.all.into_iter().partition(|one| one.chain.iter().all(is_access));
        for violation in &by_accesses {
            self.note(violation.block, &violation.chain, true);
        }
        let keys = by_accesses.iter().map(|one| self.instances(&one.chain)).collect();
        self.report_violations(driver, by_accesses, keys)?;
        ControlFlow::Continue(otherwise)
    }

    /// Makes a finding of each block of which nothing is reported yet and that the observed run breaks
    /// by other events than accesses.
    fn report_otherwise(
        &mut self,
        driver: &mut Driver<'_, 't>,
        violations: Vec<Violation>,
    ) -> ControlFlow<()> {
        // Else it is not known whether there is something better to report.
        if driver.truncated().is_some() {
            return ControlFlow::Continue(());
        }
        let is_new = |one: &Violation| !self.is_handled(&self.broken, one.block);
        let violations: Vec<Violation> =
            violations.into_iter().filter(|one| self.all || is_new(one)).collect();
        let mut groups: FxHashMap<Code<'t>, Vec<FxHashSet<Class>>> = FxHashMap::default();
        let keys = violations.iter().map(|one| {
            let code = self.code(one.block);
            let known = groups.entry(code).or_default();
            let at = known.iter().position(|classes| self.uses(one.block, classes));
            let at = at.unwrap_or_else(|| {
                known.push(self.own_classes(one.block, &one.chain));
                known.len() - 1
            });
            (code, at)
        });
        let keys = keys.collect();
        self.report_violations(driver, violations, keys)
    }

    /// Makes a finding of the first of all `violations` that have the same of `keys`, or of each if every
    /// instance is to be one.
    fn report_violations<K: Hash + Eq>(
        &mut self,
        driver: &mut Driver<'_, 't>,
        violations: Vec<Violation>,
        keys: Vec<K>,
    ) -> ControlFlow<()> {
        let mut group_of: FxHashMap<K, usize> = FxHashMap::default();
        let mut groups: Vec<Group<Violation>> = Vec::new();
        for (violation, key) in violations.into_iter().zip(keys) {
            let at = match self.all {
                true => groups.len(),
                false => *group_of.entry(key).or_insert(groups.len()),
            };
            if let Some(group) = groups.get_mut(at) {
                group.count += 1;
            } else {
                self.reported.insert(self.instances(&violation.chain));
                self.reported_chains.insert(violation.chain.clone());
                groups.push(Group::represented_by(violation));
            }
        }
        driver.prove(&mut ObservedViolations(&mut self.verdicts), groups)
    }

    /// Makes a finding of each further set of locations and variables that another run shows to break a block.
    fn report_predicted(&mut self, driver: &mut Driver<'_, 't>) -> ControlFlow<()> {
        if self.blocks.is_empty() {
            return ControlFlow::Continue(());
        }
        let needs = driver.subject().engine().mhb();
        let extent = if self.all { Extent::All } else { Extent::Some };
        let steps = driver.settings().budget / SEARCH_SHARE;
        let mut candidates = Candidates::new(needs, self.trace, self.blocks, extent, steps);
        for width in [Width::One, Width::Two] {
            let steps_left = candidates.steps_left();
            let groups = self.candidates(driver, &mut candidates, width)?;
            driver.charge(steps_left - candidates.steps_left());
            let counts = &mut self.verdicts.counts;
            counts.location_sets += groups.len() as u64;
            counts.patterns += groups.iter().map(|group| group.count).sum::<u64>();
            let groups = self.left_to_prove(driver, groups);
            driver.prove(&mut PredictedPatterns(&mut self.verdicts), groups)?;
            for (pattern, is_proven) in mem::take(&mut self.verdicts.settled) {
                self.note(pattern.block, &pattern.chain(), is_proven);
            }
        }
        ControlFlow::Continue(())
    }

    fn candidates(
        &self,
        driver: &mut Driver<'_, 't>,
        candidates: &mut Candidates<'_, 't>,
        width: Width,
    ) -> ControlFlow<(), Vec<predicted::Group>> {
        let mut looks = 0;
        let (groups, is_whole) = candidates.find(width, |block| {
            looks += 1;
            if looks % STRIDE == 0 && driver.progress(looks, self.blocks.len()).is_break() {
                return None;
            }
            // Two variables matter where each by itself is in order. Where that is not known, a
            // larger budget would report another pattern instead.
            let is_in_order =
                || [&self.broken, &self.undecided].iter().all(|it| !self.is_handled(it, block));
            Some(self.all || width == Width::One || is_in_order())
        });
        if !is_whole {
            driver.check_cancelled()?;
            let is_full = candidates.is_full();
            driver.truncate(if is_full { Truncation::Capped } else { Truncation::Budget });
        }
        ControlFlow::Continue(groups)
    }

    /// What is left of `groups` to be proven.
    fn left_to_prove(
        &mut self,
        driver: &mut Driver<'_, 't>,
        groups: Vec<predicted::Group>,
    ) -> Vec<Group<Pattern>> {
        if self.all {
            if groups.iter().any(predicted::Group::is_cut) {
                driver.truncate(Truncation::Capped);
            }
            let patterns = groups.into_iter().flat_map(|group| group.kept);
            let is_new = |pattern: &Pattern| !self.reported_chains.contains(&pattern.chain());
            return patterns.filter(is_new).map(|it| Group::new(vec![it], 1)).collect();
        }
        let (kept, empty): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| !group.kept.is_empty());
        // There was no room for a pattern of these.
        if !empty.is_empty() {
            self.verdicts.counts.untried += empty.len() as u64;
            driver.truncate(Truncation::Capped);
        }
        let is_new = |group: &predicted::Group| {
            !self.reported.contains(&self.instances(&group.kept[0].chain()))
        };
        let to_prove = |group: predicted::Group| Group::new(group.kept, group.count);
        kept.into_iter().filter(is_new).map(to_prove).collect()
    }
}

impl Verdicts<'_, '_> {
    fn finding(
        &self,
        events: Vec<EventId>,
        message: String,
        count: u64,
        proof: Option<Proof>,
    ) -> Finding {
        Finding {
            analysis: self.info.name,
            kind: self.info.kind,
            events,
            message,
            count,
            evidence: proof.map_or(Evidence::Unordered, Evidence::Schedule),
            detail: Detail::None,
        }
    }
}

/// Violations that the observed run shows: the run itself is the proof.
struct ObservedViolations<'r, 'a, 't>(&'r mut Verdicts<'a, 't>);

impl Predictor for ObservedViolations<'_, '_, '_> {
    type Candidate = Violation;

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, violation: &Violation) -> Tried {
        let chain = &violation.chain;
        let Some(whole) = up_to(evaluator.trace(), chain) else { return Tried::Refused };
        let goal = in_order(chain, Vec::new());
        let tried = evaluator.prove(whole, goal.clone());
        if tried.is_witnessed() {
            return tried;
        }
        // Most reads of unknown writers have nothing to do with it.
        let least = evaluator.solver().sync_preserving(&Query::order(chain));
        least.map_or(tried.clone(), |least| tried.or_better(evaluator.prove(least, goal)))
    }

    fn report(&mut self, group: Evaluated<Violation>) -> Option<Finding> {
        let verdicts = &mut *self.0;
        if group.open == Some(Open::Untried) {
            verdicts.counts.untried += 1;
        }
        let Violation { block, kind, chain } = group.candidate;
        let block = &verdicts.blocks[block];
        let message = match kind {
            observed::Kind::Interleaved => {
                between_message(verdicts.trace, block, &chain, Certainty::Observed)
            }
            observed::Kind::Overlap => overlap_message(verdicts.trace, block, &chain),
        };
        Some(verdicts.finding(chain, message, group.count, group.proof))
    }
}

/// The observed run up to the end of `chain`.
fn up_to(trace: &Trace, chain: &[EventId]) -> Option<Reordering> {
    let last = *chain.last()?;
    let count = |thread: ThreadId| {
        trace.thread_events(thread).partition_point(|&event| event <= last) as u32
    };
    let base: IndexVec<ThreadId, u32> =
        trace.names().threads.entries().map(|(thread, _)| count(thread)).collect();
    Some(Reordering { base, schedule: Vec::new() })
}

/// That the events of `chain` come in this order, whatever the reads in `free` see.
fn in_order(chain: &[EventId], free: Vec<EventId>) -> Goal {
    Goal::Order { chain: chain.to_vec(), absent: Vec::new(), free, after: After::Stops }
}

/// Patterns that another run may show.
struct PredictedPatterns<'r, 'a, 't>(&'r mut Verdicts<'a, 't>);

impl Predictor for PredictedPatterns<'_, '_, '_> {
    type Candidate = Pattern;

    // There are many patterns, and most are easy: it does not pay to search long for one.
    fn query_budget(&self, usual: Budget) -> Budget {
        let work = usual.work.min(100_000_000);
        Budget { decisions: 64, completions: 32, work, states: 50_000 }
    }

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, pattern: &Pattern) -> Tried {
        evaluator.ask(predicted::questions(self.0.trace, pattern), Reorderings::All)
    }

    fn report(&mut self, group: Evaluated<Pattern>) -> Option<Finding> {
        let verdicts = &mut *self.0;
        match group.open {
            Some(Open::Untried) => verdicts.counts.untried += 1,
            Some(Open::Capped) => verdicts.counts.capped += u64::from(group.proof.is_none()),
            Some(Open::Unknown) => verdicts.counts.undecided += 1,
            // The driver counts these.
            Some(Open::Refused) => {}
            // Refuted.
            None if group.proof.is_none() => return None,
            None => {}
        }
        let pattern = group.candidate;
        verdicts.counts.proven += u64::from(group.is_witnessed());
        verdicts.settled.push((pattern, group.is_witnessed()));
        let chain = pattern.chain();
        let certainty = if group.proof.is_some() { Certainty::Possible } else { Certainty::Open };
        let block = &verdicts.blocks[pattern.block];
        let message = between_message(verdicts.trace, block, &chain, certainty);
        Some(verdicts.finding(chain, message, group.count, group.proof))
    }
}

/// Whether something was observed or is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Observed,
    Possible,
    /// Not known to be possible.
    Open,
}

/// That the events within `chain` come between its first and last, of `block`.
fn between_message(
    trace: &Trace,
    block: &Block,
    chain: &[EventId],
    certainty: Certainty,
) -> String {
    let [first, others @ .., last] = chain else { return not_atomic(trace, block) };
    let verb = match certainty {
        Certainty::Observed => "came",
        Certainty::Possible => "can come",
        Certainty::Open => "may come",
    };
    let others = listed(trace, others);
    let (first, last) = (spelled(trace, *first), spelled(trace, *last));
    let start = not_atomic(trace, block);
    format!("{start}: {others} {verb} between {first} and {last}")
}

/// That the events of `chain` leave no order for `block` and others.
fn overlap_message(trace: &Trace, block: &Block, chain: &[EventId]) -> String {
    let start = not_atomic(trace, block);
    let events = listed(trace, chain);
    format!("{start}, nor are those it overlaps with: {events} came in this order")
}

fn not_atomic(trace: &Trace, block: &Block) -> String {
    let names = trace.names();
    let thread = names.threads.name(block.thread);
    match block.name {
        BlockName::Marked(name) => {
            format!("block `{}` of {thread} is not atomic", names.blocks.name(name))
        }
        BlockName::Section(lock) => {
            format!("the section of {thread} on `{}` is not atomic", names.locks.name(lock))
        }
    }
}

/// The events as a list, each with its thread where that is another than the one before it.
fn listed(trace: &Trace, events: &[EventId]) -> String {
    let mut thread: Option<ThreadId> = None;
    let mut text = String::new();
    for (at, &event) in events.iter().enumerate() {
        if at > 0 {
            text.push_str(if at + 1 == events.len() { " and " } else { ", " });
        }
        let own = trace.event(event).thread;
        if thread != Some(own) {
            text.push_str(trace.names().threads.name(own));
            text.push_str("'s ");
        }
        thread = Some(own);
        text.push_str(&spelled(trace, event));
    }
    text
}
