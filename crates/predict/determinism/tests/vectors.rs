//! The worked witnesses: every verdict in every mode, as an explicit search found them.

use crate::common;

use common::{reference, vectors};
use reweave_determinism::{Mode, Witness, WitnessKind, decide};
use reweave_testkit::{events, trace};
use reweave_trace::Trace;

/// How many witnesses are feasible in each mode.
const FEASIBLE: [(Mode, usize); 3] = [(Mode::Order, 630), (Mode::Prefix, 618), (Mode::Strict, 573)];

/// Compares `verdicts`, given for all witnesses of a trace in a mode, with every vector.
#[track_caller]
fn check(verdicts: impl Fn(&Trace, Mode) -> Vec<(Witness, Option<bool>)>) {
    for vector in vectors::all() {
        for mode in Mode::ALL {
            let verdicts = verdicts(&vector.trace, mode);
            assert_eq!(verdicts.len(), vector.witnesses.len(), "{}", vector.name);
            for expected in &vector.witnesses {
                let found = verdicts.iter().find(|(witness, _)| *witness == expected.witness);
                let is_feasible = found.and_then(|&(_, is_feasible)| is_feasible);
                let what = format!("{}: {expected:?} in mode {mode}", vector.name);
                assert_eq!(is_feasible, Some(expected.is_feasible(mode)), "{what}");
            }
        }
    }
}

/// What the definition says of all witnesses of `trace`.
fn defined(trace: &Trace, mode: Mode) -> Vec<(Witness, Option<bool>)> {
    let witnesses = reference::witnesses(trace).into_iter();
    let verdict = |witness| (witness, Some(reference::is_feasible(trace, &witness, mode)));
    witnesses.map(verdict).collect()
}

#[test]
fn the_vectors_are_as_many_as_they_were() {
    let all = vectors::all();
    let witnesses = all.iter().flat_map(|vector| &vector.witnesses).count();
    assert_eq!((all.len(), witnesses), (131, 1_890));
    for (mode, count) in FEASIBLE {
        let all = all.iter().flat_map(|vector| &vector.witnesses);
        assert_eq!(all.filter(|witness| witness.is_feasible(mode)).count(), count, "{mode}");
    }
}

#[test]
fn the_definition_agrees_with_every_worked_witness() {
    check(defined);
}

#[test]
fn every_worked_witness_is_decided_as_it_should_be() {
    check(decide::verdicts);
}

/// The paper calls its algorithm sound. It is for its graph alone, in which an edge says that a
/// read comes after the write it saw. The edge does not keep other writes from coming in between,
/// and a read that sees one of those has another value in hand from then on.
///
/// Here the last read saw the last write, 4, and is challenged by the first, 1: is 4, 1, 5 an
/// order of events? The graph has 2 before 4 (program order), 4 before 1 (asked for), and 1 before
/// 3 before 5 (program order), which has no cycle; nor does the couple of 2 and 3 close one. So
/// mode `order` says yes, by 2, 4, 1, 3, 5. But there 3 reads what 1 wrote; and since 2 and 4 come
/// before 1, and 1 comes right before 3 in its thread, no order lets 3 see 2.
#[test]
fn the_paper_takes_five_events_as_feasible_that_are_not() {
    let trace = trace(
        "
        t1    t2
        w(x)
              w(x)
        r(x)
              w(x)
        r(x)
        ",
    );
    let [writer, read, interfering] = events(&[4, 5, 1])[..] else { unreachable!() };
    let witness = Witness {
        kind: WitnessKind::Between,
        writer: Some(writer),
        read: Some(read),
        interfering: Some(interfering),
    };
    assert!(reference::witnesses(&trace).contains(&witness));
    let feasible = Mode::ALL.map(|mode| reference::is_feasible(&trace, &witness, mode));
    assert_eq!(feasible, [true, false, false]);
    for (mode, is_feasible) in Mode::ALL.into_iter().zip(feasible) {
        let verdict = (witness, Some(is_feasible));
        assert!(decide::verdicts(&trace, mode).contains(&verdict), "{mode}");
    }
}
