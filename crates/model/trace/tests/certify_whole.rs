//! Runs of all events: the checker and the definition agree on what variables are left with.

use reweave_base::{Id, Rng};
use reweave_oracle::reordering::Definition;
use reweave_testkit::{Shape, draw, generate, soak};
use reweave_trace::{Checker, EventId, Goal, Reordering, Trace};

fn ids(trace: &Trace) -> impl Iterator<Item = EventId> + Clone + use<> {
    (0..trace.len()).map(EventId::from_index)
}

/// All events of `trace`, in another correct order if there is one near.
fn whole_run(trace: &Trace, definition: &Definition<'_>, rng: &mut Rng) -> Vec<EventId> {
    let mut whole: Vec<EventId> = ids(trace).collect();
    for _ in 0..3 * trace.len() {
        let at = rng.below(trace.len() - 1);
        whole.swap(at, at + 1);
        if !definition.is_correct(&whole) {
            whole.swap(at, at + 1);
        }
    }
    whole
}

/// What became of the claims that a variable is left with some write.
#[derive(Debug, Default)]
struct Counts {
    as_observed: usize,
    with_another: usize,
    refused: usize,
}

/// Compares on `schedule`, for every variable that is accessed and every event as its last write.
fn compare(trace: &Trace, definition: &Definition<'_>, schedule: &[EventId], counts: &mut Counts) {
    let checker = Checker::new(trace);
    let reordering = Reordering::explicit(schedule.to_vec());
    let var_of = |event| trace.event(event).op.var();
    let vars = trace.names().vars.entries().map(|(var, _)| var);
    for (var, write) in vars.flat_map(|var| ids(trace).map(move |write| (var, write))) {
        let goal = Goal::Leaves { var, write };
        let defined = definition.shows(schedule, &goal);
        let checked = checker.check(&reordering, &goal);
        let numbers: Vec<u32> = schedule.iter().map(|event| event.number()).collect();
        assert_eq!(checked.is_ok(), defined, "{}{numbers:?} {goal:?} {checked:?}", draw(trace));
        let is_observed = !ids(trace).any(|other| {
            other > write && trace.event(other).op.is_write() && var_of(other) == Some(var)
        });
        match (defined, is_observed) {
            (true, true) => counts.as_observed += 1,
            (true, false) => counts.with_another += 1,
            (false, _) => counts.refused += 1,
        }
    }
}

#[test]
fn agrees_with_the_definition_on_runs_of_all_events_and_what_is_near_them() {
    let mut counts = Counts::default();
    for (_, shape) in Shape::ALL {
        for seed in 0..u64::from(soak::cases(100)) {
            let trace = generate::random(shape.events(shape.events.min(12)), seed);
            if trace.len() < 2 {
                continue;
            }
            let (definition, mut rng) = (Definition::new(&trace), Rng::new(seed));
            let mut schedule = whole_run(&trace, &definition, &mut rng);
            compare(&trace, &definition, &schedule, &mut counts);
            let (left, right) = (rng.below(schedule.len()), rng.below(schedule.len()));
            schedule.swap(left, right);
            compare(&trace, &definition, &schedule, &mut counts);
            schedule.swap(left, right);
            schedule.remove(right);
            compare(&trace, &definition, &schedule, &mut counts);
        }
    }
    let Counts { as_observed, with_another, refused } = counts;
    assert!(as_observed > 1_000 && with_another > 20 && refused > 1_000, "{counts:?}");
}
