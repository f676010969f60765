//! The oracle's definitions, asked about the witnesses of this crate.

use reweave_determinism::{Mode, Witness, WitnessKind};
use reweave_oracle::choice_graphs::{self, Outcome};
use reweave_oracle::nondeterminism as oracle;
use reweave_trace::{EventId, Trace};

fn plain(witness: &Witness) -> oracle::Witness {
    let Witness { kind, writer, read, interfering } = *witness;
    let kind = match kind {
        WitnessKind::WriterAfter => oracle::WitnessKind::WriterAfter,
        WitnessKind::Between => oracle::WitnessKind::Between,
        WitnessKind::WriterAbsent => oracle::WitnessKind::WriterAbsent,
    };
    oracle::Witness { kind, writer, read, interfering }
}

fn own(witness: oracle::Witness) -> Witness {
    let oracle::Witness { kind, writer, read, interfering } = witness;
    let kind = match kind {
        oracle::WitnessKind::WriterAfter => WitnessKind::WriterAfter,
        oracle::WitnessKind::Between => WitnessKind::Between,
        oracle::WitnessKind::WriterAbsent => WitnessKind::WriterAbsent,
    };
    Witness { kind, writer, read, interfering }
}

/// Every witness of every read, also those that are infeasible by definition.
pub(crate) fn witnesses(trace: &Trace) -> Vec<Witness> {
    oracle::witnesses(trace).into_iter().map(own).collect()
}

/// Every witness of the implicit reads at the end of the run.
pub(crate) fn final_witnesses(trace: &Trace) -> Vec<Witness> {
    oracle::final_witnesses(trace).into_iter().map(own).collect()
}

/// Whether some order of events that counts in `mode` shows `witness`.
pub(crate) fn is_feasible(trace: &Trace, witness: &Witness, mode: Mode) -> bool {
    let mode = match mode {
        Mode::Order => oracle::Mode::Order,
        Mode::Prefix => oracle::Mode::Prefix,
        Mode::Strict => oracle::Mode::Strict,
    };
    oracle::is_feasible(trace, &plain(witness), mode)
}

/// How the phases decide `witness`, which is of kind 1 or 2.
pub(crate) fn outcome(trace: &Trace, witness: &Witness) -> Outcome {
    choice_graphs::outcome(trace, &plain(witness))
}

/// Whether `order` is one of all events that shows `witness`, which is of kind 1 or 2.
pub(crate) fn is_shown(trace: &Trace, witness: &Witness, order: &[EventId]) -> bool {
    choice_graphs::is_shown(trace, &plain(witness), order)
}
