//! The checker accepts exactly what a second, naive statement of the definition accepts.

use proptest::prelude::*;
use reweave_base::{Id, IndexVec, Rng};
use reweave_oracle::reachable;
use reweave_oracle::reordering::Definition;
use reweave_testkit::{Scope, Shape, corpus, draw, generate, soak, traces};
use reweave_trace::{After, Checker, EventId, Goal, Reordering, ThreadId, Trace, certify_order};

fn ids(trace: &Trace) -> impl Iterator<Item = EventId> + Clone + use<> {
    (0..trace.len()).map(EventId::from_index)
}

fn numbers(events: &[EventId]) -> Vec<u32> {
    events.iter().map(|event| event.number()).collect()
}

/// A trace with both statements of the definition.
struct Both<'a> {
    trace: &'a Trace,
    definition: Definition<'a>,
    checker: Checker<'a>,
}

impl<'a> Both<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self { trace, definition: Definition::new(trace), checker: Checker::new(trace) }
    }

    /// Whether the definition holds of `schedule` and `goal`, which the checker must find too.
    #[track_caller]
    fn agree(&self, schedule: &[EventId], goal: &Goal) -> bool {
        let defined = self.definition.shows(schedule, goal);
        let checked = self.checker.check(&Reordering::explicit(schedule.to_vec()), goal);
        assert_eq!(
            checked.is_ok(),
            defined,
            "{}\nschedule {:?}\ngoal {goal:?}\nchecker {checked:?}",
            draw(self.trace),
            numbers(schedule)
        );
        defined
    }

    /// Compares on `schedule` and all that goes on from it with distinct events.
    fn agree_on_all_sequences(&self, schedule: &mut Vec<EventId>, pairs_count: &mut usize) {
        self.agree(schedule, &Goal::Enabled(Vec::new()));
        *pairs_count += 1;
        for event in ids(self.trace) {
            if !schedule.contains(&event) {
                schedule.push(event);
                self.agree_on_all_sequences(schedule, pairs_count);
                schedule.pop();
            }
        }
    }

    /// Compares on all correct schedules and whatever is one event longer than a correct one.
    fn agree_on_all_steps(&self, schedule: &mut Vec<EventId>, pairs_count: &mut usize) {
        *pairs_count += 1;
        if self.agree(schedule, &Goal::Enabled(Vec::new())) {
            for event in ids(self.trace) {
                schedule.push(event);
                self.agree_on_all_steps(schedule, pairs_count);
                schedule.pop();
            }
        }
    }
}

const SCOPES: [Scope; 12] = [
    Scope::LOCKS.events(5),
    Scope::SHARED_LOCKS.events(5),
    Scope::FORKS.events(4),
    Scope::NOTIFIES.events(5),
    Scope::TIMEOUTS.events(4),
    Scope::MONITORS.events(4),
    Scope::BARRIERS.threads(3).events(5),
    Scope { parties: Some(2), ..Scope::BARRIERS.threads(3).events(5) },
    Scope::SEMAPHORES.events(5),
    Scope { start: Some(1), ..Scope::SEMAPHORES.events(5) },
    Scope::ATOMICS.events(4),
    Scope::REST.events(3),
];

#[test]
fn agrees_with_the_definition_on_all_sequences_of_all_small_traces() {
    let mut pairs_count = 0;
    for scope in SCOPES {
        scope.for_each(|trace| {
            Both::new(trace).agree_on_all_sequences(&mut Vec::new(), &mut pairs_count);
        });
    }
    assert!(pairs_count > 100_000, "{pairs_count}");
}

/// A sequence that is not correct stays so however it goes on: the checker stops at a bad step,
/// and [`the_definition_holds_of_every_beginning`] says so of the definition. So what holds of
/// all steps holds of all sequences.
#[test]
fn agrees_with_the_definition_on_all_steps_of_all_traces_of_a_larger_scope() {
    let more = usize::from(soak::multiplier() > 1);
    let scopes = [
        Scope::LOCKS.things(2).events(5 + more),
        Scope::SHARED_LOCKS.threads(3).events(5 + more),
        Scope::FORKS.threads(3).events(4 + more),
        Scope::NOTIFIES.threads(3).events(5 + more),
        Scope::TIMEOUTS.threads(3).events(5 + more),
        Scope::MONITORS.events(6 + more),
        Scope::BARRIERS.threads(3).events(6 + more),
        Scope { parties: Some(2), ..Scope::BARRIERS.threads(3).events(6 + more) },
        Scope::SEMAPHORES.threads(3).events(6 + more),
        Scope { start: Some(1), ..Scope::SEMAPHORES.threads(3).events(6 + more) },
    ];
    let mut pairs_count = 0;
    for scope in scopes {
        scope.for_each(|trace| {
            Both::new(trace).agree_on_all_steps(&mut Vec::new(), &mut pairs_count);
        });
    }
    assert!(pairs_count > 100_000, "{pairs_count}");
}

#[test]
fn the_definition_holds_of_every_beginning() {
    fn check(definition: &Definition<'_>, trace: &Trace, schedule: &mut Vec<EventId>, good: bool) {
        let still_good = definition.is_correct(schedule);
        assert!(good || !still_good, "{}\n{:?}", draw(trace), numbers(schedule));
        for event in ids(trace) {
            if !schedule.contains(&event) {
                schedule.push(event);
                check(definition, trace, schedule, still_good);
                schedule.pop();
            }
        }
    }
    for scope in SCOPES {
        let scope = scope.events(scope.events - 1);
        scope.for_each(|trace| check(&Definition::new(trace), trace, &mut Vec::new(), true));
    }
}

/// That the variable that `access` accesses is left with `write`.
fn leaves(trace: &Trace, access: EventId, write: EventId) -> Option<Goal> {
    Some(Goal::Leaves { var: trace.event(access).op.var()?, write })
}

/// Every goal that speaks of at most two events.
fn small_goals(trace: &Trace) -> Vec<Goal> {
    let mut goals =
        vec![Goal::Deadlock(Vec::new()), Goal::Reaches(Vec::new()), Goal::Stuck(Vec::new())];
    let singles = ids(trace);
    let pairs = || ids(trace).flat_map(|left| ids(trace).map(move |right| (left, right)));
    for event in singles.clone() {
        goals.push(Goal::Enabled(vec![event]));
        goals.push(Goal::Deadlock(vec![event]));
        goals.push(Goal::Stuck(vec![event]));
        goals.push(Goal::Reaches(vec![event]));
        let order = |chain: &[EventId], absent: &[EventId], free: Vec<EventId>, after| {
            Goal::Order { chain: chain.to_vec(), absent: absent.to_vec(), free, after }
        };
        goals.push(order(&[event], &[], vec![], After::Stops));
        for after in [After::Stops, After::RunsOn] {
            goals.push(order(&[], &[event], ids(trace).collect(), after));
            goals.push(Goal::Sees { read: event, write: None, after });
        }
    }
    for (left, right) in pairs() {
        goals.push(Goal::Enabled(vec![left, right]));
        goals.push(Goal::Race(left, right));
        goals.push(Goal::Deadlock(vec![left, right]));
        goals.push(Goal::Stuck(vec![left, right]));
        goals.push(Goal::Reaches(vec![left, right]));
        goals.extend(leaves(trace, left, right));
        for after in [After::Stops, After::RunsOn] {
            let (chain, free) = (vec![left, right], vec![left]);
            goals.push(Goal::Order { chain, absent: vec![], free, after });
            goals.push(Goal::Sees { read: left, write: Some(right), after });
        }
    }
    goals
}

#[test]
fn agrees_with_the_definition_on_all_goals_of_all_small_traces() {
    fn all(both: &Both<'_>, goals: &[Goal], schedule: &mut Vec<EventId>, shown: &mut usize) {
        *shown += goals.iter().filter(|goal| both.agree(schedule, goal)).count();
        for event in ids(both.trace) {
            if !schedule.contains(&event) {
                schedule.push(event);
                all(both, goals, schedule, shown);
                schedule.pop();
            }
        }
    }
    for scope in SCOPES.map(|scope| scope.events(3)) {
        let mut shown = 0;
        scope.for_each(|trace| {
            all(&Both::new(trace), &small_goals(trace), &mut Vec::new(), &mut shown);
        });
        assert!(shown > 100, "{scope:?} {shown}");
    }
}

/// Something near `schedule`: one or two events swapped, dropped, repeated, put in, or the end
/// cut off.
fn mutate(trace: &Trace, schedule: &mut Vec<EventId>, rng: &mut Rng) {
    if trace.is_empty() {
        return;
    }
    let any = EventId::from_index(rng.below(trace.len()));
    let Some(last) = schedule.len().checked_sub(1) else {
        schedule.push(any);
        return;
    };
    let (left, right) = (rng.below(last + 1), rng.below(last + 1));
    match rng.below(7) {
        0 => schedule.swap(left, (left + 1).min(last)),
        1 => schedule.swap(left, right),
        2 => _ = schedule.remove(left),
        3 => schedule.insert(right, schedule[left]),
        4 => schedule.truncate(left),
        5 => schedule.insert(left, any),
        _ => {
            let moved = schedule.remove(left);
            schedule.insert(right.min(schedule.len()), moved);
        }
    }
}

/// What could be claimed of `schedule`: much of it about events that are next, some at random.
fn claims(trace: &Trace, schedule: &[EventId], free: &[EventId], rng: &mut Rng) -> Vec<Goal> {
    let all: Vec<EventId> = ids(trace).collect();
    let mut next: Vec<EventId> = Vec::new();
    for &event in all.iter().filter(|event| !schedule.contains(event)) {
        let thread = |id: EventId| trace.event(id).thread;
        if next.iter().all(|&other| thread(other) != thread(event)) {
            next.push(event);
        }
    }
    let mut claims = vec![Goal::Enabled(next.clone()), Goal::Deadlock(next.clone())];
    for _ in 0..6 {
        let pool = if rng.chance(70) { &next } else { &all };
        let mut some = || rng.pick(pool).copied();
        let (Some(first), Some(second), Some(third)) = (some(), some(), some()) else { continue };
        claims.push(Goal::Enabled(vec![first]));
        claims.push(Goal::Enabled(vec![first, second]));
        claims.push(Goal::Race(first, second));
        claims.push(Goal::Deadlock(vec![first, second]));
        claims.push(Goal::Deadlock(vec![first, second, third]));
    }
    for _ in 0..4 {
        let mut some = || rng.pick(&all).copied();
        let (Some(first), Some(second), Some(third)) = (some(), some(), some()) else { continue };
        let (chain, absent) = (vec![first, second], vec![third]);
        for after in [After::Stops, After::RunsOn] {
            let (chain, free) = (chain.clone(), free.to_vec());
            claims.push(Goal::Order { chain, absent: Vec::new(), free, after });
        }
        claims.push(Goal::Order { chain, absent, free: free.to_vec(), after: After::RunsOn });
    }
    for &read in free.iter().chain(rng.pick(&all)) {
        let last_write = schedule.iter().rev().find(|&&event| trace.event(event).op.is_write());
        for write in [None, last_write.copied(), rng.pick(&all).copied()] {
            claims.push(Goal::Sees { read, write, after: After::Stops });
            claims.push(Goal::Sees { read, write, after: After::RunsOn });
        }
        claims.extend(last_write.and_then(|&write| leaves(trace, write, write)));
    }
    claims
}

/// Compares on walks through `trace` and what is near them. Gives how many claims held and how
/// many did not.
fn agree_on_walks(trace: &Trace, walks_count: usize, rng: &mut Rng) -> [usize; 2] {
    let both = Both::new(trace);
    let mut tally = [0; 2];
    let reads: Vec<EventId> = ids(trace).filter(|&id| trace.event(id).op.is_read()).collect();
    for walk in 0..walks_count {
        let free: Vec<EventId> = if walk % 2 == 0 {
            Vec::new()
        } else {
            rng.pick(&reads).copied().into_iter().collect()
        };
        let mut schedule = reachable::walk(trace, &free, rng);
        assert!(!free.is_empty() || both.agree(&schedule, &Goal::Enabled(Vec::new())));
        for _ in 0..4 {
            for goal in claims(trace, &schedule, &free, rng) {
                tally[usize::from(both.agree(&schedule, &goal))] += 1;
            }
            mutate(trace, &mut schedule, rng);
        }
    }
    tally
}

#[test]
fn agrees_with_the_definition_on_walks_and_what_is_near_them() {
    for (name, shape) in Shape::ALL {
        let mut tally = [0; 2];
        for seed in 0..u64::from(soak::cases(12)) {
            let trace = generate::random(shape.events(shape.events.min(40)), seed);
            let [refused, accepted] = agree_on_walks(&trace, 4, &mut Rng::new(seed));
            tally = [tally[0] + refused, tally[1] + accepted];
        }
        assert!(tally.iter().all(|&count| count > 100), "{name}: {tally:?}");
    }
}

/// Walks seldom end in a deadlock, so these come from a search of all reorderings.
#[test]
fn agrees_with_the_definition_on_deadlocks_and_what_is_near_them() {
    let mut deadlocks_count = 0;
    let locks = Shape { vars: 0, locks: 3, events: 20, ..Shape::SMALL };
    let nested = Shape { vars: 0, locks: 2, threads: 2, events: 20, ..Shape::NESTED };
    for shape in [locks, nested] {
        for seed in 0..u64::from(soak::cases(600)) {
            let trace = generate::random(shape, seed);
            let both = Both::new(&trace);
            for deadlock in reachable::predictable(&trace, 2_000).deadlocks.into_values() {
                let mut cycle = deadlock.cycle;
                for _ in 0..cycle.len() {
                    cycle.rotate_left(1);
                    assert!(both.agree(&deadlock.schedule, &Goal::Deadlock(cycle.clone())));
                }
                let shorter = Goal::Deadlock(cycle[1..].to_vec());
                both.agree(&deadlock.schedule, &shorter);
                let earlier = &deadlock.schedule[..deadlock.schedule.len() - 1];
                both.agree(earlier, &Goal::Deadlock(cycle.clone()));
                cycle.reverse();
                both.agree(&deadlock.schedule, &Goal::Deadlock(cycle.clone()));
                cycle.push(cycle[0]);
                both.agree(&deadlock.schedule, &Goal::Deadlock(cycle));
                deadlocks_count += 1;
            }
        }
    }
    assert!(deadlocks_count > 50, "{deadlocks_count}");
}

proptest! {
    #![proptest_config(soak::config(24))]

    #[test]
    fn agrees_with_the_definition_on_what_is_near_walks_through_anything(
        trace in traces(Shape::EVERYTHING.events(30)), seed in 0..u64::MAX,
    ) {
        agree_on_walks(&trace, 3, &mut Rng::new(seed));
    }

    #[test]
    fn agrees_with_the_definition_on_what_is_near_walks_through_signals(
        trace in traces(Shape::SIGNALS.events(30)), seed in 0..u64::MAX,
    ) {
        agree_on_walks(&trace, 3, &mut Rng::new(seed));
    }
}

type Cut = IndexVec<ThreadId, u32>;

fn cut_of(trace: &Trace, events: impl IntoIterator<Item = EventId>) -> Cut {
    let mut cut = IndexVec::from_elem(0, trace.names().threads.len());
    for event in events {
        cut[trace.event(event).thread] += 1;
    }
    cut
}

/// The events of `cut`, in observed order.
fn events_of(trace: &Trace, cut: &Cut) -> Vec<EventId> {
    let mut left = cut.clone();
    let mut takes = |id: &EventId| {
        let left = &mut left[trace.event(*id).thread];
        *left > 0 && std::mem::replace(left, left.saturating_sub(1)) > 0
    };
    ids(trace).filter(|id| takes(id)).collect()
}

/// Whether `schedule` is correct after `cut` and ends as `goal` says. The answer must be the same,
/// to the letter, if the cut is a base and if its events are steps.
#[track_caller]
fn agree_on_base(
    checker: &Checker<'_>,
    trace: &Trace,
    cut: &Cut,
    rest: &[EventId],
    goal: &Goal,
) -> bool {
    let mut explicit = events_of(trace, cut);
    explicit.extend(rest);
    let long = checker.check(&Reordering::explicit(explicit), goal);
    let short = checker.check(&Reordering { base: cut.clone(), schedule: rest.to_vec() }, goal);
    assert_eq!(
        short,
        long,
        "{}\nbase {:?}\nschedule {:?}\ngoal {goal:?}",
        draw(trace),
        cut.as_slice(),
        numbers(rest)
    );
    short.is_ok()
}

/// Every cut of `trace`.
fn cuts(trace: &Trace) -> Vec<Cut> {
    let whole = cut_of(trace, ids(trace));
    let mut cuts = vec![whole.clone()];
    for thread in whole.ids() {
        let shorter = |cut: &Cut, count| {
            let mut cut = cut.clone();
            cut[thread] = count;
            cut
        };
        let all = |cut: Cut| (0..=whole[thread]).map(move |count| shorter(&cut, count));
        cuts = cuts.into_iter().flat_map(all).collect();
    }
    cuts
}

#[test]
fn a_base_is_the_same_as_its_events_for_all_cuts_of_all_small_traces() {
    fn check(
        checker: &Checker<'_>,
        trace: &Trace,
        cut: &Cut,
        rest: &mut Vec<EventId>,
        tally: &mut [usize; 2],
    ) {
        let is_correct = agree_on_base(checker, trace, cut, rest, &Goal::Enabled(Vec::new()));
        tally[usize::from(is_correct)] += 1;
        if is_correct && rest.len() < 3 {
            for event in ids(trace) {
                rest.push(event);
                check(checker, trace, cut, rest, tally);
                rest.pop();
            }
        }
    }
    for scope in SCOPES {
        let mut tally = [0; 2];
        scope.for_each(|trace| {
            let checker = Checker::new(trace);
            for cut in cuts(trace) {
                check(&checker, trace, &cut, &mut Vec::new(), &mut tally);
            }
        });
        assert!(tally.iter().all(|&count| count > 100), "{scope:?}: {tally:?}");
    }
}

#[test]
fn a_base_shows_the_same_goals_as_its_events_on_all_small_traces() {
    for scope in SCOPES.map(|scope| scope.events(3)) {
        scope.for_each(|trace| {
            let checker = Checker::new(trace);
            for goal in small_goals(trace) {
                for cut in cuts(trace) {
                    agree_on_base(&checker, trace, &cut, &[], &goal);
                    for next in ids(trace) {
                        agree_on_base(&checker, trace, &cut, &[next], &goal);
                    }
                }
            }
        });
    }
}

/// A beginning of `walk`, or of what was observed with some threads held back; mostly correct.
fn random_cut(trace: &Trace, walk: &[EventId], rng: &mut Rng) -> Cut {
    if rng.chance(50) {
        return cut_of(trace, walk[..rng.below(walk.len() + 1)].iter().copied());
    }
    let mut cut = cut_of(trace, ids(trace).take(rng.below(trace.len() + 1)));
    for _ in 0..rng.below(3) {
        let thread = ThreadId::from_index(rng.below(cut.len()));
        cut[thread] -= rng.below(cut[thread].min(4) as usize + 1) as u32;
    }
    cut
}

/// Compares on cuts of `trace`, what goes on from them, and what is near that. Gives how many
/// claims held and how many did not.
fn agree_on_bases(trace: &Trace, rng: &mut Rng) -> [usize; 2] {
    let checker = Checker::new(trace);
    let mut tally = [0; 2];
    let reads: Vec<EventId> = ids(trace).filter(|&id| trace.event(id).op.is_read()).collect();
    for round in 0..6 {
        let free: Vec<EventId> = rng.pick(&reads).copied().into_iter().take(round % 2).collect();
        let walk = reachable::walk(trace, &free, rng);
        let cut = random_cut(trace, &walk, rng);
        let base = events_of(trace, &cut);
        let mut rest: Vec<EventId> = walk.into_iter().filter(|id| !base.contains(id)).collect();
        for _ in 0..4 {
            rest.truncate(rng.below(rest.len() + 1));
            let all: Vec<EventId> = base.iter().chain(&rest).copied().collect();
            for goal in claims(trace, &all, &free, rng) {
                let holds = agree_on_base(&checker, trace, &cut, &rest, &goal);
                tally[usize::from(holds)] += 1;
            }
            mutate(trace, &mut rest, rng);
        }
    }
    tally
}

/// The longer traces have more lock events in a thread than the checker cares to go through.
#[test]
fn a_base_is_the_same_as_its_events_in_observed_order() {
    for (name, shape) in Shape::ALL {
        let mut tally = [0; 2];
        for seed in 0..u64::from(soak::cases(40)) {
            let events = if seed % 8 == 0 { 400 } else { shape.events };
            let trace = generate::random(shape.events(events), seed);
            let [refused, accepted] = agree_on_bases(&trace, &mut Rng::new(seed));
            tally = [tally[0] + refused, tally[1] + accepted];
        }
        assert!(tally.iter().all(|&count| count > 1_000), "{name}: {tally:?}");
    }
}

proptest! {
    #![proptest_config(soak::config(48))]

    #[test]
    fn a_base_is_the_same_as_its_events_in_anything(
        trace in traces(Shape::EVERYTHING), seed in 0..u64::MAX,
    ) {
        agree_on_bases(&trace, &mut Rng::new(seed));
    }

    #[test]
    fn a_base_is_the_same_as_its_events_among_signals(
        trace in traces(Shape::SIGNALS), seed in 0..u64::MAX,
    ) {
        agree_on_bases(&trace, &mut Rng::new(seed));
    }
}

#[test]
fn one_checker_serves_several_threads_at_once() {
    let trace = generate::random(Shape::EVERYTHING, 1);
    let checker = Checker::new(&trace);
    std::thread::scope(|scope| {
        for count in 0..4 {
            let (checker, trace) = (&checker, &trace);
            scope.spawn(move || {
                for taken in (0..trace.len()).filter(|taken| taken % 4 == count) {
                    let cut = cut_of(trace, ids(trace).take(taken));
                    let whole: Vec<EventId> = ids(trace).skip(taken).collect();
                    assert!(agree_on_base(
                        checker,
                        trace,
                        &cut,
                        &whole,
                        &Goal::Enabled(Vec::new())
                    ));
                }
            });
        }
    });
}

#[test]
fn the_observed_order_of_every_generated_trace_is_accepted() {
    for (name, shape) in Shape::ALL {
        for seed in 0..u64::from(soak::cases(200)) {
            let trace = generate::random(shape, seed);
            let observed: Vec<EventId> = ids(&trace).collect();
            let certificate = certify_order(&trace, &observed);
            assert!(certificate.is_ok(), "{name} {seed}: {certificate:?}\n{}", draw(&trace));
        }
    }
}

#[test]
fn the_observed_order_of_every_trace_of_the_corpus_is_accepted() {
    for case in corpus::litmus().into_iter().chain(corpus::traces()) {
        let trace = case.trace();
        let observed: Vec<EventId> = ids(&trace).collect();
        let certificate = certify_order(&trace, &observed);
        assert_eq!(certificate.map(|found| found.events_count), Ok(trace.len()), "{}", case.name);
    }
}
