//! Predicts concurrency bugs in other runs of a program, from one recorded run.
//!
//! This crate is the interface for programs that embed reweave. It re-exports the few types of the
//! other crates that such a program needs, and adds [`check`] and [`schedule`].
//!
//! 1. Get a [`Trace`]: [`read`] a file, [`read_from`] bytes, or build one with a [`TraceBuilder`].
//! 2. [`check`] it with [`Settings`], or [`select`] analyses and [`run`] them.
//! 3. Look at the [`Outcome`]: each [`Finding`] has its events and its [`Evidence`], which for a
//!    witnessed one is a schedule that an independent checker has accepted.
//! 4. Render a [`report`].
//!
//! A trace is well formed by construction and analyses do no input or output, so only reading and
//! building can fail. The same trace and settings give the same findings.
//!
//! # Check a trace
//!
//! ```
//! use reweave::{Guarantee, Kind, ReadOptions, Settings};
//!
//! // In this run the lock orders the two writes of `x`; in another one they race.
//! let text = "T1|w(x)|bank.c:3\nT1|acq(m)|bank.c:4\nT1|rel(m)|bank.c:5\n\
//!             T2|acq(m)|bank.c:9\nT2|rel(m)|bank.c:10\nT2|w(x)|bank.c:11\n";
//! let trace = reweave::read_from(text.as_bytes(), "bank.std", &ReadOptions::default())?.trace;
//! let outcome = reweave::check(&trace, &Settings::default());
//!
//! let race = &outcome.findings[0];
//! assert_eq!((race.id.as_str(), race.finding.kind), ("R1", Kind::Race));
//! assert_eq!(race.finding.guarantee(), Guarantee::Witnessed);
//! assert_eq!(race.finding.locations(&trace), ["bank.c:11", "bank.c:3"]);
//! assert!(outcome.is_complete());
//! # Ok::<(), reweave::ReadError>(())
//! ```
//!
//! # Look at a schedule
//!
//! ```
//! use reweave::{AccessOp, LockOp, Op, Settings, TraceBuilder};
//!
//! let mut builder = TraceBuilder::new();
//! let [one, two] = ["T1", "T2"].map(|name| builder.thread(name));
//! let (m, x) = (builder.lock("m"), builder.var("x"));
//! let here = builder.site("bank.c:7");
//! builder.push(one, Op::Access(AccessOp::Write, x), here);
//! builder.push(one, Op::Lock(LockOp::Acquire, m), here);
//! builder.push(one, Op::Lock(LockOp::Release, m), here);
//! builder.push(two, Op::Lock(LockOp::Acquire, m), here);
//! builder.push(two, Op::Lock(LockOp::Release, m), here);
//! builder.push(two, Op::Access(AccessOp::Read, x), here);
//! let trace = builder.finish()?;
//!
//! let outcome = reweave::check(&trace, &Settings::default());
//! let proof = outcome.findings[0].finding.evidence.proof().expect("it is witnessed");
//! // T2 uses the lock first; then both accesses are enabled.
//! let schedule = reweave::schedule(&trace, proof.reordering());
//! assert_eq!(schedule.len(), 2);
//! assert!(schedule.iter().all(|&event| trace.event(event).thread == two));
//! assert_eq!(proof.goal().next().len(), 2);
//! // Anyone can check a schedule again, by the definition alone.
//! assert!(reweave::certify(&trace, proof.reordering(), proof.goal()).is_ok());
//! # Ok::<(), reweave::IllFormed>(())
//! ```
//!
//! # Atomics, barriers and the rest
//!
//! ```
//! use reweave::{AccessOp, MemoryOrder, Op, Settings, TraceBuilder};
//!
//! let mut builder = TraceBuilder::new();
//! let [one, two] = ["T1", "T2"].map(|name| builder.thread(name));
//! let (data, ready, here) = (builder.var("data"), builder.var("ready"), builder.site("q.c:7"));
//! builder.push(one, Op::Access(AccessOp::Write, data), here);
//! builder.push(one, Op::Access(AccessOp::AtomicWrite(MemoryOrder::Release), ready), here);
//! builder.push(two, Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), ready), here);
//! builder.push(two, Op::Access(AccessOp::Read, data), here);
//! // The reader has seen the flag, so it comes after the write of the data.
//! assert!(reweave::check(&builder.finish()?, &Settings::default()).findings.is_empty());
//! # Ok::<(), reweave::IllFormed>(())
//! ```
//!
//! # Render a report
//!
//! ```
//! use reweave::report::{Examined, json, text};
//! use reweave::{ReadOptions, Settings};
//!
//! let bytes = b"T1|w(x)|a.c:1\nT2|w(x)|b.c:2\n";
//! let trace = reweave::read_from(&bytes[..], "run.std", &ReadOptions::default())?.trace;
//! let outcome = reweave::check(&trace, &Settings::default());
//! let examined = [Examined::new("run.std", &trace, &outcome)];
//! let (mut for_people, mut for_programs) = (Vec::new(), Vec::new());
//! text(&mut for_people, &examined)?;
//! json(&mut for_programs, &examined)?;
//! assert!(String::from_utf8_lossy(&for_people).contains("1 finding (race 1)"));
//! assert!(for_programs.starts_with(b"{"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[doc(inline)]
pub use reweave_analysis::{
    Analysis, Counter, Counters, Coverage, Detail, Evidence, Finding, Fingerprint, Guarantee, Info,
    Kind, Layer, Listed, Outcome, Proof, Reported, Settings, Truncation, Unshown, WitnessList,
};
#[doc(inline)]
pub use reweave_catalog::{Quiet, UnknownName, Watch, analyses, list_once, run, select};
#[doc(inline)]
pub use reweave_format::{
    Compression, Format, ReadError, ReadErrorKind, ReadOptions, Reading, WriteError, read,
    read_from, write, write_to,
};
#[doc(inline)]
pub use reweave_trace::{
    AccessOp, After, BarrierId, BarrierOp, BlockId, Certificate, ConditionId, ConditionOp, Event,
    EventId, Goal, IllFormed, LockId, LockOp, Marker, MemoryOrder, ObjectId, ObjectOp, Op, Refusal,
    Reordering, Rule, SemaphoreId, SemaphoreOp, SiteId, ThreadId, ThreadOp, Trace, TraceBuilder,
    VarId, certify,
};

/// Which findings count: baselines and suppressions.
pub mod policy {
    #[doc(inline)]
    pub use reweave_policy::{Baseline, Policy, Suppressed, Suppressions};
}

/// Findings as text, JSON, HTML, SARIF, JUnit, annotations and timelines.
pub mod report {
    #[doc(inline)]
    pub use reweave_report::{
        Confirmation, Examined, SetAside, Sources, chrome, explanation_html, explanation_json,
        explanation_text, github, html, json, json_list, junit, sarif, summary, text,
    };
}

/// Runs the default analyses on `trace`: races, deadlocks, and atomicity where blocks are marked.
///
/// [`select`] and [`run`] choose other analyses, show progress and cancel.
#[must_use]
pub fn check(trace: &Trace, settings: &Settings) -> Outcome {
    let analyses: Vec<&dyn Analysis> = analyses().filter(|it| it.info().is_default).collect();
    run(trace, &analyses, settings, &Quiet)
}

/// All events that `reordering` of `trace` runs, in its order.
///
/// A [`Reordering`] stores the events that keep their observed order as one number per thread, which
/// is short but not what a reader wants to see.
#[must_use]
pub fn schedule(trace: &Trace, reordering: &Reordering) -> Vec<EventId> {
    let all = trace.events().map(|(event, _)| event);
    let prefix = all.filter(|&event| trace.is_in_prefix(reordering, event));
    prefix.chain(reordering.schedule.iter().copied()).collect()
}
