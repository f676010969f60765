//! From blocks to findings.

use std::hash::Hash;
use std::ops::ControlFlow;

use reweave_analysis::{
    Coverage, Detail, Evidence, Finding, Kind, Proof, Settings, Sink, Subject, Truncation,
};
use reweave_base::{FxHashMap, FxHashSet, IndexVec};
use reweave_reorder::{Budget, Engine, Query, Solver};
use reweave_trace::{After, EventId, Goal, Reordering, ThreadId};

use super::message::{self, Mood};
use crate::blocks::{BlockName, BlockRunId, Blocks};
use crate::observed::{self, Violation};
use crate::predicted::{Candidates, Decision, Extent, Group, Pattern, Width, decide};

/// How many patterns are decided between two looks at whether to stop.
const BATCH: usize = 64;

/// How many blocks are gone through between two looks at whether to stop.
const STRIDE: u64 = 1 << 10;

/// What one try costs.
const TRY_COST: u64 = 10_000;

/// What a step in the search for patterns costs.
const STEP_COST: u64 = 64;

/// How much one question to the engine may take.
const QUERY: Budget = Budget { decisions: 64, completions: 32, work: 100_000_000, states: 50_000 };

/// Makes findings while they are wanted.
pub(super) struct Report<'a, 's, 't> {
    analysis: &'static str,
    subject: &'a Subject<'t>,
    settings: &'a Settings,
    blocks: &'a Blocks,
    sink: &'s mut dyn Sink,
    tries_left: u64,
    truncated: Option<Truncation>,
    /// The locations of what was told as observed, or, where every instance is, its events.
    told: FxHashSet<Vec<&'t str>>,
    told_chains: FxHashSet<Vec<EventId>>,
    /// Blocks, by name and code location, whose accesses something was told of.
    spoiled: FxHashSet<(BlockName, &'t str)>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    violations: u64,
    patterns: u64,
    location_sets: u64,
    proven: u64,
    untried: u64,
    unknown: u64,
    refused: u64,
}

/// A set of locations of which no pattern is proven yet.
struct Open {
    group: Group,
    /// A try that passed but for reads whose writer was not observed.
    loose: Option<Box<(Pattern, Proof)>>,
    is_unknown: bool,
}

impl<'a, 's, 't> Report<'a, 's, 't> {
    pub(super) fn new(
        analysis: &'static str,
        subject: &'a Subject<'t>,
        settings: &'a Settings,
        blocks: &'a Blocks,
        sink: &'s mut dyn Sink,
    ) -> Self {
        Self {
            analysis,
            subject,
            settings,
            blocks,
            sink,
            tries_left: settings.budget / TRY_COST,
            truncated: None,
            told: FxHashSet::default(),
            told_chains: FxHashSet::default(),
            spoiled: FxHashSet::default(),
            counts: Counts::default(),
        }
    }

    pub(super) fn coverage(self) -> Coverage {
        let Counts { violations, patterns, location_sets, proven, untried, unknown, refused } =
            self.counts;
        let mut counters = vec![
            ("blocks", self.blocks.len() as u64),
            ("violations", violations),
            ("patterns", patterns),
            ("location_sets", location_sets),
            ("proven", proven),
        ];
        let rest = [("untried", untried), ("unknown", unknown), ("refused", refused)];
        counters.extend(rest.into_iter().filter(|&(_, count)| count > 0));
        Coverage { analysis: self.analysis, truncated: self.truncated, counters }
    }

    fn truncate(&mut self, reason: Truncation) {
        self.truncated = self.truncated.or(Some(reason));
    }

    /// Stops here if someone asked for it.
    fn look_up(&mut self) -> ControlFlow<()> {
        if self.sink.is_cancelled() {
            self.truncate(Truncation::Cancelled);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn locations(&self, chain: &[EventId]) -> Vec<&'t str> {
        let trace = self.subject.trace();
        let location = |&event: &EventId| trace.names().location(trace.event(event).site);
        let mut locations: Vec<&str> = chain.iter().map(location).collect();
        locations.sort_unstable();
        locations
    }

    /// What `block` is a run of.
    fn code(&self, block: BlockRunId) -> (BlockName, &'t str) {
        let trace = self.subject.trace();
        let block = &self.blocks[block];
        (block.name, trace.names().location(trace.event(block.begin).site))
    }

    /// Makes a finding of each set of locations at which the observed run breaks a block by
    /// accesses; gives what it breaks otherwise.
    pub(super) fn report_observed(&mut self) -> ControlFlow<(), Vec<Violation>> {
        let trace = self.subject.trace();
        // Not paid from the budget, so that what it finds does not depend on that.
        let steps = 64 * trace.len() as u64 + 1_000_000;
        let violations = observed::violations(trace, self.blocks, steps);
        self.counts.violations = violations.all.len() as u64;
        if violations.untried > 0 {
            self.counts.untried += violations.untried;
            self.truncate(Truncation::Budget);
        }
        let is_access = |&event: &EventId| trace.event(event).op.var().is_some();
        let (by_accesses, otherwise): (Vec<Violation>, Vec<Violation>) =
            violations.all.into_iter().partition(|one| one.chain.iter().all(is_access));
        for violation in &by_accesses {
            self.spoiled.insert(self.code(violation.block));
        }
        let locations = |report: &Self, one: &Violation| report.locations(&one.chain);
        self.tell_violations(by_accesses, locations)?;
        ControlFlow::Continue(otherwise)
    }

    /// Makes a finding of each block of which nothing is told yet and that the observed run breaks
    /// by other events than accesses.
    pub(super) fn report_otherwise(&mut self, violations: Vec<Violation>) -> ControlFlow<()> {
        // Else it is not known whether there is something better to tell.
        if self.truncated.is_some() {
            return ControlFlow::Continue(());
        }
        let is_new = |one: &Violation| !self.spoiled.contains(&self.code(one.block));
        let violations: Vec<Violation> =
            violations.into_iter().filter(|one| self.settings.all || is_new(one)).collect();
        self.tell_violations(violations, |report, one| report.code(one.block))
    }

    /// Makes a finding of the first of all violations that have the same key, or of each if every
    /// instance is to be one.
    fn tell_violations<K: Hash + Eq>(
        &mut self,
        violations: Vec<Violation>,
        key: impl Fn(&Self, &Violation) -> K,
    ) -> ControlFlow<()> {
        let trace = self.subject.trace();
        let mut group_of: FxHashMap<K, usize> = FxHashMap::default();
        let mut groups: Vec<(Violation, u64)> = Vec::new();
        for violation in violations {
            let at = match self.settings.all {
                true => groups.len(),
                false => *group_of.entry(key(self, &violation)).or_insert(groups.len()),
            };
            match groups.get_mut(at) {
                Some((_, count)) => *count += 1,
                None => groups.push((violation, 1)),
            }
        }
        for (violation, count) in groups {
            self.look_up()?;
            self.told.insert(self.locations(&violation.chain));
            self.told_chains.insert(violation.chain.clone());
            let proof = self.prove_observed(&violation.chain);
            let block = &self.blocks[violation.block];
            let message = match violation.kind {
                observed::Kind::Spoiled => {
                    message::between(trace, block, &violation.chain, Mood::Observed)
                }
                observed::Kind::Overlap => message::overlap(trace, block, &violation.chain),
            };
            self.tell(violation.chain, message, count, proof)?;
        }
        ControlFlow::Continue(())
    }

    /// The observed run up to the end of `chain`, as a proof.
    fn prove_observed(&mut self, chain: &[EventId]) -> Option<Proof> {
        let Some(tries_left) = self.tries_left.checked_sub(1) else {
            self.counts.untried += 1;
            self.truncate(Truncation::Budget);
            return None;
        };
        self.tries_left = tries_left;
        let trace = self.subject.trace();
        let last = *chain.last()?;
        let count = |thread: ThreadId| {
            trace.thread_events(thread).partition_point(|&event| event <= last) as u32
        };
        let base: IndexVec<ThreadId, u32> =
            trace.names().threads.entries().map(|(thread, _)| count(thread)).collect();
        let goal = Goal::Order {
            chain: chain.to_vec(),
            absent: Vec::new(),
            free: Vec::new(),
            after: After::Stops,
        };
        let whole = Reordering { base, schedule: Vec::new() };
        let proof = self.subject.prove(whole, goal.clone()).ok()?;
        if proof.unknown_reads_count() == 0 {
            return Some(proof);
        }
        // Most reads of unknown writers have nothing to do with it.
        let mut solver = Solver::new(self.subject.engine(), QUERY);
        let least = solver.sync_preserving(&Query::order(chain))?;
        Some(self.subject.prove(least, goal).unwrap_or(proof))
    }

    /// Makes a finding of each further set of locations that another run shows to break a block.
    pub(super) fn report_predicted(&mut self) -> ControlFlow<()> {
        if self.blocks.is_empty() {
            return ControlFlow::Continue(());
        }
        let (trace, blocks) = (self.subject.trace(), self.blocks);
        let needs = self.subject.engine().mhb();
        let extent = if self.settings.all { Extent::All } else { Extent::Some };
        let steps = self.settings.budget / STEP_COST;
        let mut candidates = Candidates::new(needs, trace, blocks, extent, steps);
        for width in [Width::One, Width::Two] {
            let groups = self.candidates(&mut candidates, width)?;
            self.counts.location_sets += groups.len() as u64;
            self.counts.patterns += groups.iter().map(|group| group.count).sum::<u64>();
            if self.settings.all {
                self.report_all(groups)?;
            } else {
                self.report_groups(groups)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn candidates(
        &mut self,
        candidates: &mut Candidates<'_, '_>,
        width: Width,
    ) -> ControlFlow<(), Vec<Group>> {
        let mut looks = 0;
        let (groups, is_whole) = candidates.find(width, |block| {
            looks += 1;
            if looks % STRIDE == 0 {
                self.sink.progress(looks, self.blocks.len() as u64);
                if self.sink.is_cancelled() {
                    return None;
                }
            }
            // Two variables matter where each by itself is in order.
            let is_known = width == Width::Two && self.spoiled.contains(&self.code(block));
            Some(self.settings.all || !is_known)
        });
        if !is_whole {
            self.look_up()?;
            self.truncate(Truncation::Budget);
        }
        ControlFlow::Continue(groups)
    }

    /// Makes a finding of each of `groups` that is proven or not refuted.
    fn report_groups(&mut self, groups: Vec<Group>) -> ControlFlow<()> {
        let is_new = |group: &Group| {
            let first = group.kept.first();
            first.is_none_or(|pattern| !self.told.contains(&self.locations(&pattern.chain())))
        };
        let groups = groups.into_iter().filter(is_new);
        let open = |group| Open { group, loose: None, is_unknown: false };
        let mut open: Vec<Open> = groups.map(open).collect();
        for round in 0.. {
            let (now, ended): (Vec<Open>, Vec<Open>) =
                open.into_iter().partition(|open| round < open.group.kept.len());
            for group in ended {
                self.close(group)?;
            }
            if now.is_empty() {
                break;
            }
            open = self.round(now, round)?;
        }
        ControlFlow::Continue(())
    }

    /// Tries the pattern numbered `round` of each of `open`; gives those that are still open.
    fn round(&mut self, open: Vec<Open>, round: usize) -> ControlFlow<(), Vec<Open>> {
        let mut still_open = Vec::new();
        let mut queue = open.into_iter();
        while queue.len() > 0 {
            self.look_up()?;
            let wanted = BATCH.min(self.tries_left.min(BATCH as u64) as usize);
            if wanted == 0 {
                break;
            }
            let batch: Vec<Open> = queue.by_ref().take(wanted).collect();
            self.tries_left -= batch.len() as u64;
            let patterns: Vec<Pattern> = batch.iter().map(|open| open.group.kept[round]).collect();
            let decisions = decide_all(self.subject.engine(), &patterns, self.settings.threads);
            for ((open, pattern), decision) in batch.into_iter().zip(patterns).zip(decisions) {
                still_open.extend(self.take(open, pattern, decision)?);
            }
        }
        // Those for which the budget did not last.
        for open in queue {
            self.counts.untried += 1;
            self.truncate(Truncation::Budget);
            self.tell_open(&open)?;
        }
        ControlFlow::Continue(still_open)
    }

    /// Tells what came of trying `pattern`; gives the group back if another may be tried.
    fn take(
        &mut self,
        mut open: Open,
        pattern: Pattern,
        decision: Decision,
    ) -> ControlFlow<(), Option<Open>> {
        match self.proof_of(decision, &mut open.is_unknown) {
            Some(proof) if proof.unknown_reads_count() == 0 => {
                self.counts.proven += 1;
                self.spoiled.insert(self.code(pattern.block));
                self.tell_pattern(pattern, open.group.count, Some(proof))?;
                return ControlFlow::Continue(None);
            }
            Some(proof) if open.loose.is_none() => {
                open.loose = Some(Box::new((pattern, proof)));
            }
            _ => {}
        }
        ControlFlow::Continue(Some(open))
    }

    fn proof_of(&mut self, decision: Decision, is_unknown: &mut bool) -> Option<Proof> {
        match decision {
            Decision::Shown(reordering, goal) => {
                let proof = self.subject.prove(reordering, goal).ok();
                self.counts.refused += u64::from(proof.is_none());
                proof
            }
            Decision::Refuted => None,
            Decision::Unknown => {
                *is_unknown = true;
                None
            }
        }
    }

    /// All patterns of `open` that are kept were tried.
    fn close(&mut self, open: Open) -> ControlFlow<()> {
        if open.is_unknown {
            self.counts.unknown += 1;
        } else if open.group.is_cut() {
            self.counts.untried += 1;
        } else if open.loose.is_none() {
            return ControlFlow::Continue(());
        }
        if open.is_unknown || open.group.is_cut() {
            self.truncate(Truncation::Budget);
        }
        self.tell_open(&open)
    }

    fn tell_open(&mut self, open: &Open) -> ControlFlow<()> {
        match (&open.loose, open.group.kept.first()) {
            (Some(loose), _) => {
                let (pattern, proof) = (**loose).clone();
                self.tell_pattern(pattern, open.group.count, Some(proof))
            }
            (None, Some(&pattern)) => self.tell_pattern(pattern, open.group.count, None),
            (None, None) => ControlFlow::Continue(()),
        }
    }

    /// Makes a finding of each pattern that is proven or not refuted.
    fn report_all(&mut self, groups: Vec<Group>) -> ControlFlow<()> {
        if groups.iter().any(Group::is_cut) {
            self.truncate(Truncation::Budget);
        }
        let patterns: Vec<Pattern> = groups.into_iter().flat_map(|group| group.kept).collect();
        let mut rest = patterns.as_slice();
        while !rest.is_empty() {
            self.look_up()?;
            let wanted = rest.len().min(BATCH);
            let batch = rest.split_off(..wanted).unwrap_or_default();
            let tried = wanted.min(self.tries_left.min(BATCH as u64) as usize);
            self.tries_left -= tried as u64;
            let engine = self.subject.engine();
            let mut decisions = decide_all(engine, &batch[..tried], self.settings.threads);
            decisions.resize_with(wanted, || Decision::Unknown);
            for (&pattern, decision) in batch.iter().zip(decisions) {
                if self.told_chains.contains(&pattern.chain()) {
                    continue;
                }
                let is_refuted = decision == Decision::Refuted;
                let mut is_unknown = false;
                let proof = self.proof_of(decision, &mut is_unknown);
                if is_unknown {
                    self.counts.unknown += 1;
                    self.truncate(Truncation::Budget);
                }
                self.counts.proven += u64::from(proof.is_some());
                if !is_refuted {
                    self.tell_pattern(pattern, 1, proof)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn tell_pattern(
        &mut self,
        pattern: Pattern,
        count: u64,
        proof: Option<Proof>,
    ) -> ControlFlow<()> {
        let trace = self.subject.trace();
        let chain = pattern.chain();
        let mood = if proof.is_some() { Mood::Possible } else { Mood::Open };
        let message = message::between(trace, &self.blocks[pattern.block], &chain, mood);
        self.tell(chain, message, count, proof)
    }

    fn tell(
        &mut self,
        events: Vec<EventId>,
        message: String,
        count: u64,
        proof: Option<Proof>,
    ) -> ControlFlow<()> {
        let evidence = proof.map_or(Evidence::Unordered, Evidence::Schedule);
        let analysis = self.analysis;
        let kind = Kind::Atomicity;
        self.sink.found(Finding {
            analysis,
            kind,
            events,
            message,
            count,
            evidence,
            detail: Detail::None,
        })
    }
}

/// Decides each of `patterns`, on so many threads.
fn decide_all(engine: &Engine<'_>, patterns: &[Pattern], threads: usize) -> Vec<Decision> {
    let work = |patterns: &[Pattern]| -> Vec<Decision> {
        let mut solver = Solver::new(engine, QUERY);
        patterns.iter().map(|pattern| decide(&mut solver, engine.trace(), pattern)).collect()
    };
    let share = patterns.len().div_ceil(threads.max(1)).max(1);
    if share >= patterns.len() {
        return work(patterns);
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> =
            patterns.chunks(share).map(|part| scope.spawn(move || work(part))).collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .flat_map(|part| part.unwrap_or_else(|fault| std::panic::resume_unwind(fault)))
            .collect()
    })
}
