//! Confirming a finding: its schedule is replayed in the program that the trace is of, until it is
//! seen to happen.
//!
//! A plan is made of the schedule and handed to whoever can run the program under it, several times
//! if need be: what a program does between the events of a trace differs from run to run.
//!
//! Promised: a finding is called confirmed only if a replay saw it happen. One that is not confirmed
//! may still happen: the program may have got other input, or the replay have lost its way.

use reweave_analysis::Finding;
use reweave_record::plan::{Outcome, Plan};
use reweave_record::replay::INTERRUPTED;
use reweave_trace::Trace;

/// How many attempts are made at most if no number is asked for.
pub const ATTEMPTS_MAX: u32 = 3;

/// What came of the attempts to confirm a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many attempts saw it happen.
    pub confirmed: u32,
    /// How many there were.
    pub attempts: u32,
    /// What the first of those that saw it saw.
    pub details: Option<String>,
    /// Why the others did not see it, or why there were none; each reason once.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// Whether an attempt saw it happen.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed > 0
    }

    /// Why not all attempts saw it.
    pub fn reason(&self) -> String {
        self.reasons.join("; ")
    }

    /// The verdict on what cannot be replayed.
    fn refused(reason: String) -> Self {
        Self { reasons: vec![reason], ..Self::default() }
    }

    fn add(&mut self, outcome: Outcome) {
        self.attempts += 1;
        match outcome {
            Outcome::Confirmed { details } => {
                self.confirmed += 1;
                self.details.get_or_insert(details);
            }
            Outcome::NotConfirmed { reason } if !self.reasons.contains(&reason) => {
                self.reasons.push(reason);
            }
            Outcome::NotConfirmed { .. } => {}
        }
    }
}

/// Has the schedule of `finding`, which was found in `trace`, replayed by `replay`, which is given
/// the plan and the number of the attempt, counted from 0. There are `attempts` of them; without a
/// number, attempts go on until one saw it happen, up to [`ATTEMPTS_MAX`].
///
/// # Errors
/// If `replay` cannot so much as try.
pub fn confirm<E>(
    trace: &Trace,
    finding: &Finding,
    attempts: Option<u32>,
    replay: &mut dyn FnMut(&Plan, u32) -> Result<Outcome, E>,
) -> Result<Verdict, E> {
    let Some(proof) = finding.evidence.proof() else {
        let reason = "no schedule proves it, so there is none to replay";
        return Ok(Verdict::refused(reason.to_owned()));
    };
    let plan = match Plan::new(trace, proof.reordering(), proof.goal()) {
        Ok(plan) => plan,
        Err(error) => return Ok(Verdict::refused(error.to_string())),
    };
    let mut verdict = Verdict::default();
    let attempts_max = attempts.unwrap_or(ATTEMPTS_MAX);
    while verdict.attempts < attempts_max && (attempts.is_some() || !verdict.is_confirmed()) {
        let outcome = replay(&plan, verdict.attempts)?;
        let is_interrupted =
            matches!(&outcome, Outcome::NotConfirmed { reason } if reason.starts_with(INTERRUPTED));
        verdict.add(outcome);
        if is_interrupted {
            break;
        }
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use reweave_analysis::{Detail, Evidence, Kind, Subject};
    use reweave_trace::{
        AccessOp, Code, Goal, Module, Op, Origin, Reordering, ThreadOp, TraceBuilder,
    };

    /// Two writes without order, by a thread and one that it created.
    fn racing(has_origins: bool) -> Trace {
        let mut builder = TraceBuilder::new();
        let module = builder.origins().add_module(Module::default());
        let code = builder.origins().add_code(Code { module, offset: 7 });
        let [main, other] = ["main", "other"].map(|name| builder.thread(name));
        let (var, site) = (builder.var("x"), builder.site("a.c:1"));
        let events = [
            (main, Op::Thread(ThreadOp::Fork, other)),
            (main, Op::Access(AccessOp::Write, var)),
            (other, Op::Access(AccessOp::Write, var)),
        ];
        for (thread, op) in events {
            builder.push(thread, op, site);
            if has_origins {
                let occurrence =
                    u32::from(thread == main && op == Op::Access(AccessOp::Write, var));
                builder.origin(Origin { code, occurrence });
            }
        }
        builder.finish().unwrap()
    }

    fn race(trace: &Trace, is_proven: bool) -> Finding {
        let [fork, first, second] = [1, 2, 3].map(|number| trace.numbered(number).unwrap());
        let subject = Subject::new(trace);
        let proof = subject.prove(Reordering::explicit(vec![fork]), Goal::Race(first, second));
        Finding {
            analysis: "races.exact",
            kind: Kind::Race,
            events: vec![first, second],
            message: String::new(),
            count: 1,
            evidence: if is_proven {
                Evidence::Schedule(proof.unwrap())
            } else {
                Evidence::Unordered
            },
            detail: Detail::None,
        }
    }

    /// The verdict where the attempts go as `outcomes` says: seen or not.
    fn verdict(attempts: Option<u32>, outcomes: &[bool]) -> Verdict {
        let trace = racing(true);
        let mut fake = |plan: &Plan, attempt: u32| -> Result<Outcome, Infallible> {
            assert_eq!((plan.steps.len(), plan.goals.len()), (1, 2));
            Ok(if outcomes[attempt as usize] {
                Outcome::Confirmed { details: format!("attempt {attempt}") }
            } else {
                Outcome::NotConfirmed { reason: "it timed out".to_owned() }
            })
        };
        confirm(&trace, &race(&trace, true), attempts, &mut fake).unwrap()
    }

    #[test]
    fn one_attempt_that_sees_it_is_enough() {
        let verdict = verdict(None, &[true]);
        assert_eq!((verdict.confirmed, verdict.attempts), (1, 1));
        assert_eq!(verdict.details.as_deref(), Some("attempt 0"));
    }

    #[test]
    fn attempts_go_on_while_none_saw_it_unless_a_number_is_asked_for() {
        let verdict = |attempts, outcomes| {
            let verdict = verdict(attempts, outcomes);
            (verdict.confirmed, verdict.attempts, verdict.reasons.len())
        };
        assert_eq!(verdict(None, &[false, true]), (1, 2, 1));
        assert_eq!(verdict(None, &[false; 3]), (0, 3, 1));
        assert_eq!(verdict(Some(1), &[false]), (0, 1, 1));
        assert_eq!(verdict(Some(4), &[true, false, true, false]), (2, 4, 1));
    }

    #[test]
    fn what_cannot_be_replayed_is_not_attempted_and_the_reason_is_said() {
        let refused = |has_origins: bool, is_proven: bool| {
            let trace = racing(has_origins);
            let mut never = |_: &Plan, _: u32| -> Result<Outcome, String> { Err("tried".into()) };
            let finding = race(&trace, is_proven);
            let verdict = confirm(&trace, &finding, None, &mut never).unwrap();
            assert_eq!((verdict.attempts, verdict.is_confirmed()), (0, false));
            verdict.reason()
        };
        assert!(refused(true, false).contains("no schedule proves it"));
        assert!(refused(false, true).contains("reweave record"));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let trace = racing(true);
        let mut broken = |_: &Plan, _: u32| Err("no such file");
        assert_eq!(confirm(&trace, &race(&trace, true), None, &mut broken), Err("no such file"));
    }
}
