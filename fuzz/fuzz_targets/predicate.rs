//! Texts of any kind, as predicates over the states of a small trace: refused with a place within the
//! text, or worth the same by tables and by definition.
#![no_main]

use std::sync::OnceLock;

use reweave_base::IndexVec;
use reweave_oracle::predicate as reference;
use reweave_states::predicate::Predicate;
use reweave_trace::{AccessOp, LockOp, Marker, Op, Trace, TraceBuilder};

/// Two threads that take turns with a lock, variables and a local. The second does not tell all.
fn small_trace() -> Trace {
    let mut builder = TraceBuilder::new();
    let (lock, var, local) = (builder.lock("m"), builder.var("x"), builder.local("v"));
    let dotted = builder.var("o.v");
    for (name, value) in [("T1", 1), ("T2", 2)] {
        let thread = builder.thread(name);
        let ops = [
            Op::Lock(LockOp::Acquire, lock),
            Op::Access(AccessOp::Write, var),
            Op::Marker(Marker::Let(local)),
            Op::Access(AccessOp::Write, dotted),
            Op::Lock(LockOp::Release, lock),
        ];
        for (line, op) in ops.into_iter().enumerate() {
            let site = builder.site(&format!("a.c:{line}"));
            builder.push(thread, op, site);
            if op == Op::Access(AccessOp::Write, var) || (op == Op::Marker(Marker::Let(local)) && name == "T1") {
                builder.value(value);
            }
        }
    }
    builder.finish().expect("the threads take turns")
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static TRACE: OnceLock<Trace> = OnceLock::new();
    let trace = TRACE.get_or_init(small_trace);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let predicate = match Predicate::parse(text, trace) {
        Ok(predicate) => predicate,
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= error.text.len());
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // A race is decided by clocks, which the definition does not have.
    let is_race = predicate.expression().leaves.is_empty() && text.contains("race");
    for code in 0..if is_race { 0 } else { 36 } {
        let cut = IndexVec::from_vec(vec![code / 6, code % 6]);
        assert_eq!(predicate.truth(&cut), reference::truth(text, trace, &cut), "at {cut:?}");
        assert_eq!(predicate.is_met(&cut), reference::is_met(text, trace, &cut), "at {cut:?}");
    }
});
