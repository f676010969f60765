//! What the definition says of all witnesses of a small trace, and what must agree with it.

use crate::common::reference;

use reweave_determinism::{Mode, Witness, WitnessKind, decide};
use reweave_oracle::query::{Query, View};
use reweave_testkit::draw;
use reweave_trace::{EventId, Op, OpKind, SemaphoreOp, Trace};

/// Witnesses, each with whether it is feasible in every mode, as [`Mode::ALL`] lists them.
pub(crate) type Verdicts = Vec<(Witness, [bool; 3])>;

/// How many states the search of correct reorderings may visit.
const STATES_MAX: usize = 1_000_000;

/// How much work is not always enough.
const HASTE: [u64; 4] = [1, 300, 1_000, 3_000];

/// Those of all reads.
pub(crate) fn defined(trace: &Trace) -> Verdicts {
    reference::witnesses(trace).into_iter().map(|witness| verdict(trace, witness)).collect()
}

/// Those of all implicit reads at the end.
pub(crate) fn finals(trace: &Trace) -> Verdicts {
    reference::final_witnesses(trace).into_iter().map(|witness| verdict(trace, witness)).collect()
}

fn verdict(trace: &Trace, witness: Witness) -> (Witness, [bool; 3]) {
    (witness, Mode::ALL.map(|mode| reference::is_feasible(trace, &witness, mode)))
}

/// The witness in words: its read, the writer, the kind and the challenger, by their numbers.
pub(crate) fn spell(witness: &Witness) -> String {
    let number = |event: Option<EventId>, otherwise: &str| {
        event.map_or(otherwise.to_owned(), |event| event.number().to_string())
    };
    let Witness { kind, writer, read, interfering } = *witness;
    format!(
        "{} saw {}, kind {} with {}",
        number(read, "end"),
        number(writer, "init"),
        kind.number(),
        number(interfering, "init")
    )
}

/// What is wrong with what is said of `trace`, if something is.
pub(crate) fn fault(trace: &Trace) -> Option<String> {
    let (reads, finals) = (defined(trace), finals(trace));
    let wrong = broken_relation(trace, &reads)
        .or_else(|| broken_final_relation(trace, &finals))
        .or_else(|| not_as_reordered(trace, &reads))
        .or_else(|| not_as_decided(&reads, |mode| decide::verdicts(trace, mode)))
        .or_else(|| not_as_decided(&finals, |mode| decide::final_verdicts(trace, mode)))
        .or_else(|| wrong_in_haste(trace, &reads));
    wrong.map(|wrong| format!("{wrong}\n{}", draw(trace)))
}

/// A witness that is decided wrongly when the budget ends early, rather than not at all.
fn wrong_in_haste(trace: &Trace, reads: &Verdicts) -> Option<String> {
    // Another haste for each length of trace: there are many traces.
    let work = HASTE[trace.len() % HASTE.len()];
    Mode::ALL.into_iter().enumerate().find_map(|(at, mode)| {
        let hasty = decide::verdicts_within(trace, mode, work);
        hasty.into_iter().zip(reads).find_map(|((witness, hasty), (_, defined))| {
            let is_wrong = hasty.is_some_and(|verdict| verdict != defined[at]);
            is_wrong.then(|| format!("within {work}, {mode}: {} is {hasty:?}", spell(&witness)))
        })
    })
}

/// The witnesses of a read and a challenger whose verdicts contradict each other, if there are any.
///
/// What shows a witness of kind 2 or 3 may end with the read, so its thread may stop there. What
/// shows one of kind 1, cut off at the read, shows kind 3 with the same challenger. In mode *order*
/// that holds but for notifies, of which kind 3 asks more.
fn broken_relation(trace: &Trace, reads: &Verdicts) -> Option<String> {
    let notifies = trace
        .events()
        .any(|(_, event)| matches!(event.op.kind(), OpKind::Notify | OpKind::NotifyAll));
    reads.chunks(WitnessKind::ALL.len()).find_map(|kinds| {
        let [(_, after), (_, between), (_, absent)] = kinds else { unreachable!() };
        let implies = |left: bool, right: bool| !left || right;
        let [after_order, after_prefix, after_strict] = *after;
        let [_, between_prefix, between_strict] = *between;
        let [absent_order, absent_prefix, absent_strict] = *absent;
        let holds = implies(after_strict, after_prefix)
            && between_strict == between_prefix
            && absent_strict == absent_prefix
            && implies(after_prefix, absent_prefix)
            && implies(after_strict, absent_strict)
            && (notifies || implies(after_order, absent_order));
        (!holds).then(|| format!("{kinds:?}"))
    })
}

/// A witness of a final read whose verdicts contradict each other, if there is one.
///
/// All events happen, so nothing stops; and what a correct reordering has in order the mode *order*
/// has too, but for takes of a semaphore whose start is known: these need not use the same posts.
fn broken_final_relation(trace: &Trace, finals: &Verdicts) -> Option<String> {
    let counts = trace.events().any(|(_, event)| match event.op {
        Op::Semaphore(SemaphoreOp::Take, semaphore) => trace.declared().start(semaphore).is_some(),
        _ => false,
    });
    let wrong = finals.iter().find(|(witness, modes)| {
        let [order, prefix, strict] = *modes;
        let is_other_kind = witness.kind != WitnessKind::Between;
        strict != prefix || prefix && !order && !counts || is_other_kind && modes.contains(&true)
    });
    wrong.map(|wrong| format!("{wrong:?}"))
}

/// A witness that the search of correct reorderings takes otherwise.
fn not_as_reordered(trace: &Trace, reads: &Verdicts) -> Option<String> {
    for (witness, modes) in reads {
        for (mode, &expected) in Mode::ALL.into_iter().zip(modes) {
            if mode == Mode::Order && witness.kind != WitnessKind::WriterAbsent {
                // All events happen there, and waits have rules of their own.
                continue;
            }
            let found = match query(witness, mode) {
                Some(query) => query.search(trace, STATES_MAX).known(),
                None => Some(false),
            };
            if found != Some(expected) {
                return Some(format!("{} in mode {mode}: {found:?}", spell(witness)));
            }
        }
    }
    None
}

/// The question about correct reorderings that `witness` is, if it is not infeasible by definition.
fn query(witness: &Witness, mode: Mode) -> Option<Query> {
    let Witness { kind, writer, read, interfering } = *witness;
    let read = read?;
    let mut query = Query {
        must: vec![read],
        order: interfering.map(|interfering| (interfering, read)).into_iter().collect(),
        views: vec![(read, View::Any)],
        stop: if mode == Mode::Strict { vec![read] } else { Vec::new() },
        relaxed: mode == Mode::Order,
        ..Query::default()
    };
    match kind {
        WitnessKind::WriterAfter => query.order.push((read, writer?)),
        WitnessKind::Between => {
            let interfering = interfering?;
            query.order.extend(writer.map(|writer| (writer, interfering)));
        }
        WitnessKind::WriterAbsent => query.absent.push(writer?),
    }
    Some(query)
}

/// A witness that is `decided` otherwise than it is `defined`, or not at all.
fn not_as_decided(
    defined: &Verdicts,
    decided: impl Fn(Mode) -> Vec<(Witness, Option<bool>)>,
) -> Option<String> {
    for (at, mode) in Mode::ALL.into_iter().enumerate() {
        let decided = decided(mode);
        if decided.len() != defined.len() {
            return Some(format!("{} witnesses in mode {mode}", decided.len()));
        }
        for (&(witness, is_feasible), (expected, modes)) in decided.iter().zip(defined) {
            if (witness, is_feasible) != (*expected, Some(modes[at])) {
                let what = spell(&witness);
                return Some(format!("{what} in mode {mode}: {is_feasible:?}, not {}", modes[at]));
            }
        }
    }
    None
}
