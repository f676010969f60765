//! Events in any order, repaired: what comes out is well formed, and repairing it again changes nothing.
#![no_main]

use reweave_trace::{Op, OpCode, TraceBuilder};

/// Three bytes an event: a thread, an operation, an operand; few of each, so that they meet.
fn build(bytes: &[u8]) -> TraceBuilder {
    let mut builder = TraceBuilder::new();
    let site = builder.site("here");
    for triple in bytes.chunks_exact(3) {
        let Some(code) = OpCode::from_byte(triple[1]) else { continue };
        let thread = builder.thread(&format!("{}", triple[0] % 5));
        let name = if triple[2] & 8 == 0 { "" } else { "T" };
        let name = format!("{name}{}", triple[2] % 5);
        let operand = builder.names().intern(code.kind().operand(), name.as_bytes());
        builder.push(thread, Op::decode(code, operand.expect("text")), site);
    }
    builder
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let repaired =
        build(bytes).finish_repaired().expect("events that name what exists can be repaired");
    if build(bytes).finish().is_ok() {
        // Two spellings of a thread are merged although nothing is ill-formed.
        let merged = repaired.repairs().iter().all(|repair| repair.event.is_none());
        assert!(merged, "{:?}", repaired.repairs());
    }
    reweave_fuzz::check_trace(&repaired);
});
