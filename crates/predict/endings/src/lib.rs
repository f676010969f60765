//! How the recorded run itself ended, and what it did on the way that it must not do: threads that wait for
//! ever, crashes, failed assertions; misuse of locks, conditions and threads.
//!
//! Nothing is predicted here. The recorder wrote how the run ended ([`RunEnd`]), and a run that ended
//! badly is a finding of its own: it happened. There is at most one for a trace. A deadlock is one like those that are
//! predicted, so that it is called the same in every run; its schedule is the recorded run up to there. Misuse at the
//! same code locations is one finding.
//!
//! ```
//! use reweave_analysis::{Analysis as _, Gathered, Settings, Subject};
//! use reweave_endings::Stuck;
//! use reweave_trace::{EndKind, EventId, LockOp, Op, RunEnd, ThreadEnd, TraceBuilder};
//!
//! let mut builder = TraceBuilder::new();
//! let (thread, lock, site) = (builder.thread("T1"), builder.lock("m"), builder.site("a.c:3"));
//! builder.push(thread, Op::Lock(LockOp::Request, lock), site);
//! let state = "waits for lock m, which it holds itself".to_owned();
//! let event = EventId::from_number(1).expect("there is one");
//! let threads = vec![ThreadEnd { event, state }];
//! builder.set_run_end(RunEnd { kind: EndKind::SelfDeadlock, text: String::new(), threads, misuses: Vec::new() });
//! let trace = builder.finish()?;
//!
//! let mut found = Gathered::default();
//! Stuck.run(&Subject::new(&trace), &Settings::default(), &mut found);
//! assert!(found.findings[0].message.contains("T1 waits for lock m"));
//! # Ok::<(), reweave_trace::IllFormed>(())
//! ```

use reweave_analysis::{
    Analysis, Coverage, Detail, Evidence, Finding, Guarantee, Identities, Info, Instances, Kind,
    Layer, Proof, Settings, Sink, Subject, located,
};
use reweave_base::FxHashMap;
use reweave_trace::{
    EndKind, EventId, Goal, Misuse, Reordering, RunEnd, ThreadEnd, ThreadId, Trace,
};

/// Every analysis of this family.
pub const ANALYSES: &[&dyn Analysis] = &[&Failed, &Stuck, &Misused];

/// The family of these analyses.
pub const FAMILY: &str = "endings";

/// Threads of the recorded run that waited for ever.
#[derive(Clone, Copy, Debug)]
pub struct Stuck;

/// A crash or a failed assertion of the recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

/// Misuse of locks, conditions and threads in the recorded run.
#[derive(Clone, Copy, Debug)]
pub struct Misused;

const STUCK: Info = Info {
    name: "endings.stuck",
    family: FAMILY,
    kind: Kind::Stuck,
    guarantee: Guarantee::Observed,
    needs: Layer::Events,
    is_default: true,
    summary: "threads that waited for ever in the recorded run itself",
    paper: "",
};

const FAILED: Info = Info {
    name: "endings.failure",
    kind: Kind::Failure,
    summary: "a crash or a failed assertion in the recorded run itself",
    ..STUCK
};

const MISUSED: Info = Info {
    name: "endings.misuse",
    kind: Kind::Misuse,
    summary: "locks, conditions, threads, memory and files that the recorded run itself misused",
    ..STUCK
};

impl Analysis for Stuck {
    fn info(&self) -> &'static Info {
        &STUCK
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        report(subject, &STUCK, EndKind::is_stuck, sink)
    }
}

impl Analysis for Failed {
    fn info(&self) -> &'static Info {
        &FAILED
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        report(subject, &FAILED, EndKind::is_failure, sink)
    }
}

/// Whether `info` has anything to say of `trace`.
#[must_use]
pub fn applies(info: &Info, trace: &Trace) -> bool {
    trace.run_end().is_some_and(|run_end| match info.kind {
        Kind::Misuse => !run_end.misuses.is_empty(),
        Kind::Failure => run_end.kind.is_failure(),
        _ => run_end.kind.is_stuck(),
    })
}

fn report(
    subject: &Subject<'_>,
    info: &'static Info,
    is_of: fn(EndKind) -> bool,
    sink: &mut dyn Sink,
) -> Coverage {
    let trace = subject.trace();
    if let Some(run_end) = trace.run_end().filter(|run_end| is_of(run_end.kind)) {
        let events: Vec<EventId> = run_end.threads.iter().map(|thread| thread.event).collect();
        let is_deadlock = run_end.kind == EndKind::Deadlock;
        let shown = if is_deadlock { deadlocked(subject, &events) } else { None };
        // A break would only say that no more are wanted, and there are none.
        _ = sink.found(Finding {
            analysis: info.name,
            kind: if is_deadlock { Kind::Deadlock } else { info.kind },
            events,
            message: message(trace, run_end),
            count: 1,
            evidence: Evidence::Observed(shown),
            detail: Detail::None,
        });
    }
    Coverage { analysis: info.name, truncated: None, counters: Vec::new() }
}

/// The recorded run up to where threads were blocked at `cycle`. There is none where the recorder did not see what
/// they hold, or what they asked for.
fn deadlocked(subject: &Subject<'_>, cycle: &[EventId]) -> Option<Proof> {
    let trace = subject.trace();
    let last = *cycle.iter().max()?;
    let count = |thread: ThreadId| {
        let own = trace.thread_events(thread);
        own.partition_point(|event| event < &last && !cycle.contains(event)) as u32
    };
    let base = trace.names().threads.entries().map(|(thread, _)| count(thread)).collect();
    let run = Reordering { base, schedule: Vec::new() };
    subject.prove(run, Goal::Deadlock(cycle.to_vec())).ok()
}

impl Analysis for Misused {
    fn info(&self) -> &'static Info {
        &MISUSED
    }

    fn run(&self, subject: &Subject<'_>, _: &Settings, sink: &mut dyn Sink) -> Coverage {
        let trace = subject.trace();
        let mut findings: Vec<Finding> = Vec::new();
        let identities = Identities::new(trace);
        let mut places: FxHashMap<Instances<'_>, usize> = FxHashMap::default();
        for misuse in trace.run_end().map_or(&[][..], |run_end| &run_end.misuses) {
            let finding = misused(trace, misuse);
            let at = *places.entry(identities.instances(&finding)).or_insert(findings.len());
            match findings.get_mut(at) {
                Some(known) => known.count += 1,
                None => findings.push(finding),
            }
        }
        for finding in findings {
            if sink.found(finding).is_break() {
                break;
            }
        }
        Coverage { analysis: MISUSED.name, truncated: None, counters: Vec::new() }
    }
}

fn misused(trace: &Trace, misuse: &Misuse) -> Finding {
    let (names, event) = (trace.names(), trace.event(misuse.event));
    let place = located(names.location(event.site));
    let message = format!("{} {}{place}", names.threads.name(event.thread), misuse.text);
    Finding {
        analysis: MISUSED.name,
        kind: MISUSED.kind,
        events: [misuse.event].into_iter().chain(misuse.other).collect(),
        message,
        count: 1,
        evidence: Evidence::Observed(None),
        detail: Detail::Misuse(misuse.kind),
    }
}

/// What happened, in a sentence.
fn message(trace: &Trace, run_end: &RunEnd) -> String {
    let said = match run_end.text.split_whitespace().collect::<Vec<_>>().join(" ") {
        text if text.is_empty() => String::new(),
        text => format!(": {text}"),
    };
    let threads: Vec<String> = run_end.threads.iter().map(|it| state(trace, it)).collect();
    let threads = threads.join("; ");
    match run_end.kind {
        EndKind::Deadlock => format!("the recorded run deadlocked: {threads}"),
        EndKind::SelfDeadlock => {
            format!("a thread of the recorded run waited for itself: {threads}")
        }
        EndKind::AbandonedLock => {
            format!(
                "a thread of the recorded run waited for a lock that nobody can release: {threads}"
            )
        }
        EndKind::Hang => format!("the recorded run hung: {threads}"),
        EndKind::Crash => format!("the recorded run crashed{said}: {threads}"),
        EndKind::FailedAssertion => format!("the recorded run failed: {threads}{said}"),
        EndKind::Exited | EndKind::Stopped => format!("the recorded run ended: {threads}{said}"),
    }
}

fn state(trace: &Trace, end: &ThreadEnd) -> String {
    let (names, event) = (trace.names(), trace.event(end.event));
    let place = located(names.location(event.site));
    format!("{} {}{place}", names.threads.name(event.thread), end.state)
}
