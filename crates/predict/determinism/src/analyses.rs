//! The analyses of nondeterminism: one for each mode.
//!
//! Reads are decided in batches, each within a share of what is left of the budget when its batch
//! starts, so that a batch cannot spend more than an eighth of it. Those for which that is too little
//! get a larger share once more. A quarter of the budget is kept for proving the groups; when that is
//! spent, each still gets a try at a schedule. With [`Settings::all`] every witness is listed with its
//! verdict, up to [`WITNESSES_MAX`], and each read that can see another write is a finding.
//!
//! Besides what deciding takes, memory is linear in the accesses, the groups and the list: witnesses
//! themselves are ranges, and those of a batch are let go when it is counted.

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject, Truncation,
    WitnessVerdict,
};
use reweave_reorder::{Budget, Solver};

use crate::accesses::{Accesses, Reader};
use crate::decide::{Decided, Decider, expand};
use crate::groups::Groups;
use crate::order::OrderGraph;
use crate::proofs::Proofs;
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
    /// Groups that there was no time to tell of.
    untold: u64,
}

impl Totals {
    fn add(&mut self, decider: &Decider<'_, '_>, reader: &Reader, decided: &Decided) {
        let interfering_writes = decider.accesses.challengers_of(reader);
        self.witnesses += 3 * interfering_writes;
        let (feasible, undecided) = decided.verdicts.counts();
        self.feasible += feasible;
        let absent = decided.verdicts.of(WitnessKind::WriterAbsent);
        let declined = if decider.is_too_large() { undecided - absent.unknown.count() } else { 0 };
        self.declined += declined;
        self.undecided += undecided - declined;
        self.phases.add(&decided.phases);
        // Kind 3 has no choice graphs: the engine decides it.
        let (feasible, unknown) = (absent.feasible.count(), absent.unknown.count());
        self.phases.feasible += feasible;
        self.phases.infeasible += interfering_writes - feasible - unknown;
    }

    /// Adds the witnesses of `reader`, of which none was decided.
    fn leave(&mut self, accesses: &Accesses<'_>, reader: &Reader) {
        let count = 3 * accesses.challengers_of(reader);
        self.witnesses += count;
        self.undecided += count;
    }
}

/// One run of an analysis.
struct Pass<'a, 's, 't> {
    subject: &'a Subject<'t>,
    settings: &'s Settings,
    decider: &'a Decider<'a, 't>,
    values: &'a Values<'t>,
    groups: Groups<'a, 't>,
    totals: Totals,
    work_left: u64,
    truncated: Option<Truncation>,
}

impl<'a, 't> Pass<'a, '_, 't> {
    /// Decides all reads and counts; a break if nobody wants more.
    fn decide(&mut self, readers: &[Reader], sink: &mut dyn Sink) -> ControlFlow<()> {
        // That there is a list says that it was asked for, even if nothing is on it.
        if self.settings.all {
            sink.listed(&[])?;
        }
        for (at, batch) in readers.chunks(BATCH).enumerate() {
            sink.progress((at * BATCH) as u64, readers.len() as u64);
            let reason = match (self.work_left, sink.is_cancelled()) {
                (_, true) => Some(Truncation::Cancelled),
                (0, false) => Some(Truncation::Budget),
                _ => None,
            };
            if let Some(reason) = reason {
                self.truncated = Some(reason);
                for reader in &readers[at * BATCH..] {
                    self.totals.leave(self.decider.accesses, reader);
                }
                return ControlFlow::Continue(());
            }
            for (reader, decided) in batch.iter().zip(&self.decide_batch(batch)) {
                self.totals.add(self.decider, reader, decided);
                self.groups.add(reader, &decided.verdicts);
                self.list(reader, decided, sink)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Decides `batch`, those that take too much once more.
    fn decide_batch(&mut self, batch: &[Reader]) -> Vec<Decided> {
        let share = |left: u64, count: usize| (left / SHARE / count as u64).max(1);
        let mut all = self.decider.decide(batch, share(self.work_left, BATCH));
        self.work_left = all.iter().fold(self.work_left, |left, it| left.saturating_sub(it.work));
        let is_open = |&at: &usize| all[at].verdicts.counts().1 > 0;
        let open: Vec<usize> = (0..batch.len()).filter(is_open).collect();
        for again in open.chunks(AGAIN_BATCH) {
            if self.work_left == 0 {
                break;
            }
            let readers: Vec<Reader> = again.iter().map(|&at| batch[at]).collect();
            let decided = self.decider.decide(&readers, share(self.work_left, AGAIN_BATCH));
            for (&at, decided) in again.iter().zip(decided) {
                self.work_left = self.work_left.saturating_sub(decided.work);
                all[at] = decided;
            }
        }
        all
    }

    /// Lists the witnesses of `reader`, if that was asked for.
    fn list(&mut self, reader: &Reader, decided: &Decided, sink: &mut dyn Sink) -> ControlFlow<()> {
        let count = 3 * self.decider.accesses.challengers_of(reader);
        if !self.settings.all {
            return ControlFlow::Continue(());
        }
        if self.totals.unlisted > 0 || self.totals.listed + count > WITNESSES_MAX {
            self.totals.unlisted += count;
            return ControlFlow::Continue(());
        }
        self.totals.listed += count;
        let mut list = Vec::with_capacity(count as usize);
        expand(self.decider.accesses, reader, &decided.verdicts, |witness, is_feasible| {
            list.push(WitnessVerdict {
                witness_kind: witness.kind.number(),
                is_feasible,
                writer: witness.writer,
                read: witness.read,
                interfering: witness.interfering,
            });
        });
        sink.listed(&list)
    }

    /// Makes a finding of each group.
    fn tell(&mut self, info: &'static Info, mode: Mode, sink: &mut dyn Sink) {
        let groups = &self.groups.groups;
        let mut work_left = self.work_left.saturating_add(self.settings.budget / PROOFS_SHARE);
        for (at, batch) in groups.chunks(PROOFS_BATCH).enumerate() {
            sink.progress((at * PROOFS_BATCH) as u64, groups.len() as u64);
            // Who asks to stop still wants what was found: as much as can be proven at once.
            if at > 0 && sink.is_cancelled() {
                self.truncated = Some(Truncation::Cancelled);
                self.totals.untold = (groups.len() - at * PROOFS_BATCH) as u64;
                return;
            }
            let share = work_left / SHARE / PROOFS_BATCH as u64;
            let budget = Budget { work: share.max(LAST_WORK), ..Budget::default() };
            let worker = || Proofs {
                analysis: info.name,
                mode: mode.as_str(),
                subject: self.subject,
                accesses: self.decider.accesses,
                solver: Solver::new(self.subject.engine(), budget),
                values: self.values,
                differing_values: self.settings.differing_values,
                is_hurried: work_left == 0,
            };
            let told = self.decider.map(batch, worker, |proofs, group| proofs.tell(group));
            for told in told {
                work_left = work_left.saturating_sub(told.work);
                if told.finding.is_some_and(|finding| sink.found(finding).is_break()) {
                    return;
                }
            }
        }
    }

    fn coverage(&self, analysis: &'static str, mode: Mode) -> Coverage {
        let Totals { phases, .. } = self.totals;
        let mut counters = vec![
            ("witnesses", self.totals.witnesses),
            ("feasible", self.totals.feasible),
            ("reads", self.groups.reads_count),
        ];
        if mode == Mode::Order {
            counters.extend([
                ("infeasible_phase1", phases.infeasible),
                ("feasible_phase1", phases.feasible),
                ("with_choices", phases.with_choices),
                ("choice_graphs", phases.explored_graphs),
                ("possible_choice_graphs", phases.possible_graphs),
            ]);
        }
        let more = [
            ("undecided", self.totals.undecided),
            ("declined", self.totals.declined),
            ("unlisted_witnesses", self.totals.unlisted),
            ("untried", self.totals.untold),
            ("unlisted", self.groups.unlisted),
            ("same_value", self.groups.same_value),
        ];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        let Totals { undecided, declined, .. } = self.totals;
        let is_short = undecided + declined + self.groups.unlisted > 0;
        let truncated = self.truncated.or(is_short.then_some(Truncation::Budget));
        let truncated = truncated.or((self.totals.unlisted > 0).then_some(Truncation::Limit));
        Coverage { analysis, truncated, counters }
    }
}

impl Analysis for Determinism {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let analysis = self.info.name;
        if sink.is_cancelled() {
            let truncated = Some(Truncation::Cancelled);
            return Coverage { analysis, truncated, counters: Vec::new() };
        }
        let accesses = Accesses::new(subject.trace());
        let graph = (self.mode == Mode::Order).then(|| OrderGraph::new(&accesses));
        let (engine, graph) = (subject.engine(), graph.as_ref());
        let decider = Decider::new(&accesses, engine, graph, self.mode, settings.threads);
        let values = Values::new(subject.trace());
        let mut readers: Vec<Reader> = accesses.couples().iter().map(Reader::from).collect();
        if settings.final_reads {
            readers.extend(accesses.final_readers());
        }
        let mut pass = Pass {
            subject,
            settings,
            decider: &decider,
            values: &values,
            groups: Groups::new(
                &accesses,
                !settings.all,
                settings.differing_values.then_some(&values),
            ),
            totals: Totals::default(),
            work_left: settings.budget - settings.budget / PROOFS_SHARE,
            truncated: None,
        };
        if pass.decide(&readers, sink).is_continue() {
            pass.tell(self.info, self.mode, sink);
        }
        pass.coverage(analysis, self.mode)
    }
}
