//! Events in any order at all can be repaired, and once is enough.

use proptest::prelude::*;
use reweave_trace::{Op, OpCode, OpKind, Trace, TraceBuilder, certify_order};

/// A thread, an operation and an operand; few of each, so that they meet.
type Event = (u8, u8, u8);

fn build(events: &[Event]) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let site = builder.site("here");
    for &(thread, kind, operand) in events {
        let kind = OpKind::ALL[kind as usize % OpKind::ALL.len()];
        let code = OpCode::new(kind, Default::default());
        let thread = builder.thread(["0", "1", "2", "3", "T1", "TT1"][thread as usize % 6]);
        // Some names of threads are other spellings of those that run.
        let name = ["0", "1", "2", "T0", "T1", "T2", "TT1"][operand as usize % 7];
        let operand = builder.names().intern(kind.operand(), name.as_bytes()).expect("text");
        builder.push(thread, Op::decode(code, operand), site);
    }
    if let Some(barrier) = builder.names().barriers.get("0") {
        builder.declare_parties(barrier, 2);
    }
    if let Some(semaphore) = builder.names().semaphores.get("0") {
        builder.declare_start(semaphore, 1);
    }
    builder
}

fn rebuilt(trace: &Trace) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    builder.names().clone_from(trace.names());
    builder.append(trace.columns());
    builder
}

proptest! {
    #![proptest_config(reweave_testkit::soak::config(1_000))]

    #[test]
    fn whatever_comes_is_repaired_and_stays_so(
        events in prop::collection::vec(any::<Event>(), 0..40),
    ) {
        let repaired = build(&events).finish_repaired().expect("all names exist");
        let observed: Vec<_> = repaired.events().map(|(id, _)| id).collect();
        prop_assert!(certify_order(&repaired, &observed).is_ok());
        let again = rebuilt(&repaired).finish_repaired().expect("all names exist");
        prop_assert_eq!(again.repairs(), []);
        prop_assert_eq!(again.columns(), repaired.columns());
    }

    #[test]
    fn what_is_well_formed_is_left_alone(
        events in prop::collection::vec(any::<Event>(), 0..12),
    ) {
        let Ok(trace) = build(&events).finish() else { return Ok(()) };
        if trace.two_spellings().is_empty() {
            let repaired = build(&events).finish_repaired().expect("all names exist");
            prop_assert_eq!(repaired.repairs(), []);
            prop_assert_eq!(repaired.columns(), trace.columns());
        }
    }
}
