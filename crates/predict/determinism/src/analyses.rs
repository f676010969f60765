//! The analyses of nondeterminism: one for each mode.
//!
//! Reads are decided in batches, each within a share of what is left of the budget when its batch
//! starts, so that a batch cannot spend more than an eighth of it. Those for which that is too little
//! get a larger share once more. A quarter of the budget is kept for proving the groups; when that is
//! used up, each still gets a try at a schedule. With [`Settings::all`] every witness is listed with its
//! verdict, up to [`WITNESSES_MAX`], and each read that can see another write is a finding.
//!
//! Besides what deciding takes, memory is linear in the accesses, the groups and the list: witnesses
//! themselves are ranges, and those of a batch are let go when it is counted.

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Counter, Counters, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject,
    Truncation, WitnessVerdict,
};
use reweave_driver::{Driver, Workers};

use crate::accesses::{Accesses, ReadsFrom};
use crate::decide::{Decided, ReadDecider, expand};
use crate::groups::{GroupEvaluator, Groups};
use crate::order::OrderGraph;
use crate::values::Values;
use crate::verdicts::Phases;
use crate::witness::{Mode, WitnessKind};

/// How many reads are decided at a time.
const BATCH: usize = 64;

/// How many of those that took too much are decided once more at a time.
const AGAIN_BATCH: usize = 8;

/// How many groups are proven at a time.
const PROOFS_BATCH: usize = 16;

/// Which part of what is left of the budget a batch may cost at most.
const SHARE: u64 = 8;

/// Which part of the budget is kept for proofs.
const PROOFS_SHARE: u64 = 4;

/// How much one query of a proof may cost even when there is no budget left: what was found is to be
/// shown.
const LAST_WORK: u64 = 1_000_000;

/// How many witnesses are listed at most.
pub const WITNESSES_MAX: u64 = 10_000_000;

/// An analysis by one mode.
#[derive(Clone, Copy, Debug)]
pub struct Determinism {
    info: &'static Info,
    mode: Mode,
}

/// Runs of which the report holds whatever the program does with the other value.
pub const STRICT: Determinism = Determinism {
    info: &Info {
        name: "determinism.strict",
        family: "determinism",
        kind: Kind::Nondeterminism,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "reads that can see another write; their thread goes no further",
        paper: "our own, after Sinha, Malik and Gupta, FMCAD 2012",
    },
    mode: Mode::Strict,
};

/// Runs in which the thread of the read may go on.
pub const PREFIX: Determinism = Determinism {
    info: &Info {
        name: "determinism.prefix",
        family: "determinism",
        kind: Kind::Nondeterminism,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "reads that can see another write; their thread may go on",
        paper: "our own, after Sinha, Malik and Gupta, FMCAD 2012",
    },
    mode: Mode::Prefix,
};

/// What the paper decides.
pub const ORDER: Determinism = Determinism {
    info: &Info {
        name: "determinism.order",
        family: "determinism",
        kind: Kind::Nondeterminism,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "the paper's two phases: orders of all events that keep writes before reads",
        paper: "Sinha, Malik and Gupta, FMCAD 2012",
    },
    mode: Mode::Order,
};

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    witnesses: u64,
    feasible: u64,
    undecided: u64,
    /// Witnesses of kinds 1 and 2 that mode `order` does not decide of a trace of this size, whatever
    /// the budget.
    declined: u64,
    phases: Phases,
    listed: u64,
    unlisted: u64,
    /// Groups that there was no time to report.
    unreported: u64,
}

impl Totals {
    fn add(&mut self, interfering_writes: u64, is_too_large: bool, decided: &Decided) {
        self.witnesses += 3 * interfering_writes;
        let (feasible, undecided) = decided.verdicts.counts();
        self.feasible += feasible;
        let absent = decided.verdicts.of_kind(WitnessKind::WriterAbsent);
        let declined = if is_too_large { undecided - absent.unknown.count() } else { 0 };
        self.declined += declined;
        self.undecided += undecided - declined;
        self.phases.add(&decided.phases);
        // Kind 3 has no choice graphs: the engine decides it.
        let (feasible, unknown) = (absent.feasible.count(), absent.unknown.count());
        self.phases.feasible += feasible;
        self.phases.infeasible += interfering_writes - feasible - unknown;
    }

    /// Adds the witnesses of `reader`, of which none was decided.
    fn leave(&mut self, accesses: &Accesses<'_>, reader: &ReadsFrom) {
        let count = 3 * accesses.interfering_count(reader);
        self.witnesses += count;
        self.undecided += count;
    }
}

/// One run of an analysis.
struct Pass<'a, 't> {
    accesses: &'a Accesses<'t>,
    groups: Groups<'a, 't>,
    totals: Totals,
    /// Whether mode `order` decides nothing of kinds 1 and 2, the trace being too large for it.
    is_too_large: bool,
}

impl<'t> Pass<'_, 't> {
    /// Decides all reads and counts; a break if nobody wants more.
    fn decide(
        &mut self,
        driver: &mut Driver<'_, 't>,
        workers: &Workers<'_, ReadDecider<'_, 't>>,
        readers: &mut [ReadsFrom],
    ) -> ControlFlow<()> {
        // That there is a list says that it was asked for, even if nothing is on it.
        let all = driver.settings().all;
        if all {
            driver.listed(&[])?;
        }
        let total = readers.len();
        for start in (0..total).step_by(BATCH) {
            let is_stopped = driver.progress(start, total).is_break();
            if is_stopped || driver.work_left() == 0 {
                driver.truncate(Truncation::Budget);
                for reader in &readers[start..] {
                    self.totals.leave(self.accesses, reader);
                }
                return ControlFlow::Continue(());
            }
            let batch = &mut readers[start..total.min(start + BATCH)];
            let all_decided = decide_batch(driver, workers, batch);
            for (reader, decided) in batch.iter().zip(&all_decided) {
                let interfering_writes = self.accesses.interfering_count(reader);
                self.totals.add(interfering_writes, self.is_too_large, decided);
                self.groups.add(reader, &decided.verdicts);
                if all {
                    self.list(driver, reader, decided)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Lists the witnesses of `reader`.
    fn list(
        &mut self,
        driver: &mut Driver<'_, 't>,
        reader: &ReadsFrom,
        decided: &Decided,
    ) -> ControlFlow<()> {
        let count = 3 * self.accesses.interfering_count(reader);
        if self.totals.unlisted > 0 || self.totals.listed + count > WITNESSES_MAX {
            self.totals.unlisted += count;
            return ControlFlow::Continue(());
        }
        self.totals.listed += count;
        let mut list = Vec::with_capacity(count as usize);
        expand(self.accesses, reader, &decided.verdicts, |witness, is_feasible| {
            list.push(WitnessVerdict {
                witness_kind: witness.kind.number(),
                is_feasible,
                writer: witness.writer,
                read: witness.read,
                interfering: witness.interfering,
            });
        });
        driver.listed(&list)
    }

    /// Makes a finding of each group.
    fn report(
        &mut self,
        driver: &mut Driver<'_, 't>,
        workers: &Workers<'_, GroupEvaluator<'_, 't>>,
    ) -> ControlFlow<()> {
        let groups = &mut self.groups.groups;
        let total = groups.len();
        for (at, batch) in groups.chunks_mut(PROOFS_BATCH).enumerate() {
            // Who asks to stop still wants what was found: as much as can be proven at once.
            if driver.progress(at * PROOFS_BATCH, total).is_break() && at > 0 {
                self.totals.unreported = (total - at * PROOFS_BATCH) as u64;
                return ControlFlow::Break(());
            }
            let share = driver.work_left() / SHARE / PROOFS_BATCH as u64;
            let is_best_effort = driver.work_left() == 0;
            let findings = driver.map(workers, batch, |evaluator, group| {
                evaluator.evaluate(group, share.max(LAST_WORK), is_best_effort)
            });
            findings.into_iter().flatten().try_for_each(|finding| driver.found(finding))?;
        }
        ControlFlow::Continue(())
    }

    fn counters(&self, mode: Mode) -> Counters {
        let Totals { phases, .. } = self.totals;
        let mut counters = vec![
            (Counter::Witnesses, self.totals.witnesses),
            (Counter::Feasible, self.totals.feasible),
            (Counter::Reads, self.groups.reads_count),
        ];
        if mode == Mode::Order {
            counters.extend([
                (Counter::InfeasiblePhase1, phases.infeasible),
                (Counter::FeasiblePhase1, phases.feasible),
                (Counter::WithChoices, phases.with_choices),
                (Counter::ChoiceGraphs, phases.explored_graphs),
                (Counter::PossibleChoiceGraphs, phases.possible_graphs),
            ]);
        }
        let more = [
            (Counter::Undecided, self.totals.undecided),
            (Counter::Declined, self.totals.declined),
            (Counter::UnlistedWitnesses, self.totals.unlisted),
            (Counter::Untried, self.totals.unreported),
            (Counter::Unlisted, self.groups.unlisted),
            (Counter::SameValue, self.groups.same_value),
        ];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        counters
    }
}

/// Decides `batch`, those that take too much once more.
fn decide_batch<'t>(
    driver: &mut Driver<'_, 't>,
    workers: &Workers<'_, ReadDecider<'_, 't>>,
    batch: &mut [ReadsFrom],
) -> Vec<Decided> {
    let mut decide = |readers: &mut [ReadsFrom], count: usize| {
        let share = (driver.work_left() / SHARE / count as u64).max(1);
        let decided = driver.map(workers, readers, |decider, reader| {
            let decided = decider.decide(reader, share);
            let work = decided.work;
            (decided, work)
        });
        (decided, driver.work_left())
    };
    let (mut all, mut work_left) = decide(batch, BATCH);
    let is_open = |&at: &usize| all[at].verdicts.counts().1 > 0;
    let open: Vec<usize> = (0..batch.len()).filter(is_open).collect();
    for again in open.chunks(AGAIN_BATCH) {
        if work_left == 0 {
            break;
        }
        let mut readers: Vec<ReadsFrom> = again.iter().map(|&at| batch[at]).collect();
        let decided;
        (decided, work_left) = decide(&mut readers, AGAIN_BATCH);
        for (&at, decided) in again.iter().zip(decided) {
            all[at] = decided;
        }
    }
    all
}

impl Analysis for Determinism {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut driver = Driver::new(subject, settings, sink);
        if driver.check_cancelled().is_break() {
            return driver.coverage(self.info, Vec::new());
        }
        let Self { info, mode } = *self;
        let accesses = Accesses::new(subject.trace());
        let graph = (mode == Mode::Order).then(|| OrderGraph::new(&accesses));
        let (engine, graph) = (subject.engine(), graph.as_ref());
        let values = Values::new(subject.trace());
        let differing_values = settings.differing_values;
        let mut readers = accesses.edges().to_vec();
        if settings.final_reads {
            readers.extend(accesses.final_reads());
        }
        let mut pass = Pass {
            accesses: &accesses,
            groups: Groups::new(&accesses, !settings.all, differing_values.then_some(&values)),
            totals: Totals::default(),
            is_too_large: graph.is_some_and(OrderGraph::is_too_large),
        };
        let kept_for_proofs = settings.budget / PROOFS_SHARE;
        driver.reserve(kept_for_proofs);
        let deciders = Workers::new(|| ReadDecider::new(&accesses, engine, graph, mode));
        if pass.decide(&mut driver, &deciders, &mut readers).is_continue() {
            driver.release(kept_for_proofs);
            let evaluators = Workers::new(|| {
                GroupEvaluator::new(info, mode, subject, &accesses, &values, differing_values)
            });
            _ = pass.report(&mut driver, &evaluators);
        }
        let Totals { undecided, declined, unlisted, .. } = pass.totals;
        if undecided > 0 {
            driver.truncate(Truncation::Budget);
        }
        // None of these depends on the budget.
        if declined + pass.groups.unlisted + unlisted > 0 {
            driver.truncate(Truncation::Capped);
        }
        let counters = pass.counters(mode);
        driver.coverage(info, counters)
    }
}
