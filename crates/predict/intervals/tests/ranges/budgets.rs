//! Where a budget runs out, the answer is wider and says so, and is still true.

use reweave_base::Id;
use reweave_intervals::ctp::{Action, Ctp, StepId};
use reweave_intervals::domain::{Domain, Interval};
use reweave_intervals::propagate::{Mode, Settings, Values, propagate};
use reweave_intervals::terms::Term;
use reweave_trace::{Binary, VarId};

use crate::ranges::common::{Cut, Draft, Sketch};

/// Two threads, each `p = X; X = p + 1`, and then the first asserts `p < 2`.
fn counters() -> Ctp {
    let mut sketch = Sketch::default();
    sketch.shared.push(("X".into(), 0));
    sketch.locals = vec![vec![("p".into(), 0)], vec![("q".into(), 0)]];
    for thread in 0..2 {
        let (shared, local) = (sketch.shared_slot(0), sketch.local_slot(thread, 0));
        let (x, p) = (sketch.term(Term::Slot(shared)), sketch.term(Term::Slot(local)));
        let (one, two) = (sketch.term(Term::Constant(1)), sketch.term(Term::Constant(2)));
        let sum = sketch.term(Term::Binary(Binary::Add, p, one));
        let test = sketch.term(Term::Binary(Binary::Less, p, two));
        let var = VarId::from_index(0);
        let read = Draft { define: Some((local, x)), ..Draft::new(0, 1, Action::Read(var)) };
        let write = Draft { store: Some((shared, sum)), ..Draft::new(1, 2, Action::Write(var)) };
        let assertion = Draft { assertion: Some(test), ..Draft::new(2, 3, Action::Local) };
        let steps = [read, write, assertion];
        sketch.steps.push(steps[..3 - thread].to_vec());
    }
    sketch.finish()
}

fn values(settings: Settings) -> Values<Interval> {
    let ctp = counters();
    propagate(&ctp, &Cut::everywhere(&ctp).graph(&ctp), &settings)
}

/// What the first thread writes.
fn written(values: &Values<Interval>) -> Interval {
    values.steps[StepId::from_index(1)].stored.expect("it is reached")
}

#[test]
fn without_rounds_or_work_everything_is_possible() {
    let default = Settings::default();
    for settings in [Settings { rounds_max: 1, ..default }, Settings { work_max: 0, ..default }] {
        for mode in [Mode::Copy, Mode::Own, Mode::Both] {
            let values = values(Settings { mode, ..settings });
            assert!(values.exhausted);
            assert_eq!(written(&values), Interval::TOP);
            assert!(values.steps.iter().all(|step| step.reached));
            let asserted = values.steps[StepId::from_index(2)].asserted.as_ref();
            assert!(asserted.is_some_and(|asserted| asserted.failing.is_some()));
        }
    }
}

#[test]
fn without_paths_less_is_looked_ahead() {
    let wide = values(Settings { lookahead: 5, paths_max: 1 << 20, ..Settings::default() });
    assert_eq!((wide.lookahead, wide.exhausted), (5, false));
    assert_eq!(written(&wide).bounds(), (1, 2));
    let narrow = values(Settings { lookahead: 5, paths_max: 1, ..Settings::default() });
    assert_eq!((narrow.lookahead, narrow.exhausted), (1, false));
    assert_eq!(narrow.steps, values(Settings::default()).steps);
}
