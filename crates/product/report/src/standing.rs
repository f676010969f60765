//! Whether a finding happened, and how that is known.
//!
//! What the recorded run itself did is never called a prediction: that an engine found a schedule for it
//! too does not make it one.

use reweave_analysis::{Finding, Guarantee, Kind};
use reweave_trace::{EventId, Goal, Trace};

use crate::confirmation::Replayed;
use crate::schedule::is_prefix;

/// Whether the schedule of `finding` is how the observed run began.
pub fn is_as_observed(trace: &Trace, finding: &Finding) -> bool {
    finding.evidence.proof().is_some_and(|proof| is_prefix(trace, proof.reordering()))
}

/// Whether the recorded run ended like `finding` says: its threads are those that were stuck, where they
/// were stuck.
pub fn happened(trace: &Trace, finding: &Finding) -> bool {
    if finding.guarantee() == Guarantee::Observed {
        return true;
    }
    match finding.evidence.proof().map(|proof| proof.goal()) {
        Some(Goal::Deadlock(events) | Goal::Stuck(events)) => {
            !events.is_empty() && events.iter().all(|&event| is_stuck_at(trace, event))
        }
        _ => false,
    }
}

/// Whether what `finding` shows is that two events have both happened in no order.
fn is_unordered(finding: &Finding) -> bool {
    matches!(finding.evidence.proof().map(|proof| proof.goal()), Some(Goal::Unordered(..)))
}

/// Whether the recorded run ended with a thread stuck at `event`.
pub fn is_stuck_at(trace: &Trace, event: EventId) -> bool {
    let end = trace.run_end().filter(|end| end.kind.is_stuck());
    end.is_some_and(|end| end.threads.iter().any(|thread| thread.event == event))
}

/// Whether `finding` happened and how that is known, in a sentence or two.
pub fn sentence(trace: &Trace, finding: &Finding, replayed: Option<&Replayed>) -> String {
    let mut said = match finding.guarantee() {
        Guarantee::Observed => "It happened in the recorded run.".to_owned(),
        Guarantee::Witnessed if happened(trace, finding) => {
            "It happened: the recorded run ended like this.".to_owned()
        }
        Guarantee::Witnessed if finding.kind == Kind::Predicate => {
            "An independent checker has replayed the run below, which reaches the state.".to_owned()
        }
        Guarantee::Witnessed if is_unordered(finding) && is_as_observed(trace, finding) => {
            "The recorded run shows it: both happened, and nothing orders them. An independent checker has \
             replayed it."
                .to_owned()
        }
        Guarantee::Witnessed if is_as_observed(trace, finding) => {
            "The recorded run came to the point where this can happen. An independent checker has replayed \
             it up to there."
                .to_owned()
        }
        Guarantee::Witnessed => {
            "Predicted, from a run in which it did not show: the schedule below leads to it. An \
             independent checker has replayed that schedule."
                .to_owned()
        }
        other @ (Guarantee::Decided | Guarantee::First | Guarantee::Unordered) => {
            other.meaning().to_owned()
        }
    };
    if let Some(Replayed::Confirmed { times, attempts, .. }) = replayed {
        said +=
            &format!(" It was made to happen in the program, in {times} of {attempts} replays.");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_analysis::{Outcome, Settings};
    use reweave_trace::{EndKind, RunEnd, ThreadEnd, TraceBuilder};

    /// Two threads that hold a lock each and ask for that of the other; they are stuck if the run says
    /// so.
    fn deadlocked(is_stuck: bool) -> (Trace, Outcome) {
        let drawing = "
    T1      T2
    req(m)
    acq(m)
            req(n)
            acq(n)
    req(n)
            req(m)
";
        let mut builder: TraceBuilder = reweave_testkit::fixture::builder(drawing);
        let threads = [5, 6].map(|number| ThreadEnd {
            event: EventId::from_number(number).expect("events are numbered from 1"),
            state: "waits".into(),
        });
        let kind = if is_stuck { EndKind::Deadlock } else { EndKind::Stopped };
        let (text, misuses) = (String::new(), Vec::new());
        builder.set_run_end(RunEnd { kind, text, threads: threads.to_vec(), misuses });
        let trace = builder.finish().expect("it is well formed");
        let analyses = reweave_catalog::select("deadlocks.exact", &[]).expect("there is one");
        let outcome =
            reweave_catalog::run(&trace, &analyses, &Settings::default(), &reweave_catalog::Quiet);
        (trace, outcome)
    }

    #[test]
    fn a_deadlock_that_happened_is_no_prediction() {
        for is_stuck in [true, false] {
            let (trace, outcome) = deadlocked(is_stuck);
            let finding = &outcome.findings[0].finding;
            assert_eq!((finding.kind, finding.guarantee()), (Kind::Deadlock, Guarantee::Witnessed));
            assert_eq!(happened(&trace, finding), is_stuck);
            let said = sentence(&trace, finding, None);
            assert_eq!(said.starts_with("It happened"), is_stuck, "{said}");
            assert!(!said.starts_with("Predicted"), "{said}");
        }
    }
}
