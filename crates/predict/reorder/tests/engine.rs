//! The engine answers as the search through all states does, and the checker takes its schedules.

use crate::asked;

use proptest::prelude::*;
use reweave_oracle::query::Answer as Defined;
use reweave_oracle::reachable;
use reweave_reorder::{Answer, Budget, Engine, Query, Refuted, Solver, View, with_fewer_switches};
use reweave_testkit::{Scope, Shape, draw, soak, traces};
use reweave_trace::{
    AccessOp, After, Checker, EventId, Goal, LockOp, Op, Reordering, SemaphoreOp, ThreadOp, Trace,
};

/// How many states the oracle may visit.
const STATES_MAX: usize = 300_000;

/// A question with what its answer should show.
type Case = (Query, Goal);

/// Why the engine's answers to `cases` are wrong, if one is.
fn fault(trace: &Trace, cases: &[Case]) -> Option<String> {
    let engine = Engine::new(trace);
    let mut solver = Solver::new(&engine, Budget::default());
    let checker = Checker::new(trace);
    for (query, goal) in cases {
        let answer = solver.solve(query);
        let expected = asked::oracle(trace, query, STATES_MAX);
        let wrong = match (&answer, &expected) {
            (_, Defined::Unknown) => continue,
            (Answer::Feasible(reordering), _) => {
                if let Err(refusal) = checker.check(reordering, goal) {
                    Some(format!("refused: {refusal}"))
                } else if expected == Defined::Infeasible {
                    Some("the oracle finds none".to_owned())
                } else {
                    let other = with_fewer_switches(trace, reordering, goal);
                    let refusal = other.and_then(|other| checker.check(&other, goal).err());
                    refusal.map(|refusal| format!("refused with fewer switches: {refusal}"))
                }
            }
            (Answer::Infeasible(_), Defined::Infeasible) => None,
            (Answer::Infeasible(why), Defined::Feasible(found)) => {
                let numbers: Vec<u32> = found.iter().map(|id| id.number()).collect();
                Some(format!("refuted by {why:?}, but {numbers:?}"))
            }
            (Answer::Unknown, _) => Some("unknown".to_owned()),
        };
        if let Some(wrong) = wrong {
            return Some(format!("{query:?}: {wrong}\n{}", draw(trace)));
        }
    }
    None
}

fn ids(trace: &Trace) -> Vec<EventId> {
    trace.events().map(|(id, _)| id).collect()
}

/// All pairs of conflicting accesses of different threads.
fn races(trace: &Trace) -> Vec<Case> {
    let mut cases = Vec::new();
    for first in ids(trace) {
        for second in ids(trace).into_iter().filter(|&second| first < second) {
            let (left, right) = (trace.event(first), trace.event(second));
            if left.thread != right.thread && left.op.conflicts_with(right.op) {
                let query = Query::enabled(&[first, second]);
                cases.push((query, Goal::Race(first, second)));
            }
        }
    }
    cases
}

/// All pairs of acquires in different threads, each inside a section on the other's lock.
fn deadlocks(trace: &Trace) -> Vec<Case> {
    let acquired = |id: EventId| match trace.event(id).op {
        Op::Lock(LockOp::Acquire, lock) => Some(lock),
        _ => None,
    };
    let holds = |id: EventId, lock| {
        let thread = trace.event(id).thread;
        trace.sections().held(thread, id).any(|section| section.lock == lock)
    };
    let mut cases = Vec::new();
    for first in ids(trace) {
        for second in ids(trace).into_iter().filter(|&second| first < second) {
            let (Some(left), Some(right)) = (acquired(first), acquired(second)) else { continue };
            let is_cycle = holds(first, right) && holds(second, left);
            let is_new = !holds(first, left) && !holds(second, right);
            if is_cycle && is_new && trace.event(first).thread != trace.event(second).thread {
                let query = Query::enabled(&[first, second]);
                cases.push((query, Goal::Deadlock(vec![first, second])));
            }
        }
    }
    cases
}

/// Every read with every other write that it might see.
fn views(trace: &Trace) -> Vec<Case> {
    let mut cases = Vec::new();
    for read in ids(trace) {
        let op = trace.event(read).op;
        let Some(var) = op
            .var()
            .filter(|_| op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _)))
        else {
            continue;
        };
        let writes = trace.accesses(var).iter().copied();
        let writes = writes.filter(|&write| trace.event(write).op.is_write() && write != read);
        for write in writes.map(Some).chain([None]) {
            if write != trace.writer(read) {
                let goal = Goal::Sees { read, write, after: After::Stops };
                cases.push((Query::sees(read, write), goal));
            }
        }
    }
    cases
}

/// Some chains of two and three events, their last free to see anything; some with an event absent.
fn chains(trace: &Trace, seed: u64) -> Vec<Case> {
    let mut rng = reweave_base::Rng::new(seed);
    let all = ids(trace);
    let mut cases = Vec::new();
    for _ in 0..12 {
        let count = 2 + rng.below(2);
        let mut chain: Vec<EventId> = Vec::new();
        for _ in 0..count {
            chain.extend(rng.pick(&all).copied().filter(|event| !chain.contains(event)));
        }
        let Some(&last) = chain.last() else { continue };
        let op = trace.event(last).op;
        let reads = op.is_read() && !matches!(op, Op::Access(AccessOp::UnknownRead, _));
        let mut query = match rng.below(3) {
            0 => Query::order(&chain),
            1 => Query::order_up_to(&chain, reads),
            _ => {
                let views = if reads { vec![(last, View::Any)] } else { Vec::new() };
                Query { views, ..Query::order(&chain) }
            }
        };
        let absent: Vec<EventId> =
            rng.pick(&all).copied().filter(|_| seed.is_multiple_of(2)).into_iter().collect();
        query.absent.clone_from(&absent);
        let free = query.views.iter().map(|&(read, _)| read).collect();
        let after = if query.stop.is_empty() { After::RunsOn } else { After::Stops };
        cases.push((query, Goal::Order { chain, absent, free, after }));
    }
    cases
}

#[test]
fn answers_are_right_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2).events(4),
        Scope::SHARED_LOCKS.threads(3).events(4),
        Scope::FORKS.threads(3).events(5),
        Scope::NOTIFIES.events(5),
        Scope::TIMEOUTS.events(5),
        Scope::MONITORS.events(5),
        Scope::BARRIERS.threads(3).events(5),
        Scope::SEMAPHORES.events(5),
        Scope { start: Some(0), ..Scope::SEMAPHORES.events(5) },
        Scope { start: Some(1), ..Scope::SEMAPHORES.events(5) },
        Scope::ATOMICS.threads(3).events(4),
        Scope::REST.events(4),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            let mut cases = races(trace);
            cases.extend(deadlocks(trace));
            cases.extend(views(trace));
            cases.extend(chains(trace, trace.len() as u64));
            assert_eq!(fault(trace, &cases).unwrap_or_default(), "");
        });
    }
}

#[test]
fn litmus_cases_have_exactly_the_races_and_deadlocks_of_all_reorderings() {
    for case in reweave_testkit::corpus::litmus() {
        let trace = case.trace();
        let engine = Engine::new(&trace);
        let numbers = |events: &[EventId]| events.iter().map(|id| id.number()).collect::<Vec<_>>();
        let found: Vec<Vec<u32>> = races(&trace)
            .into_iter()
            .filter(|(query, _)| matches!(engine.solve(query), Answer::Feasible(_)))
            .map(|(query, _)| numbers(&query.enabled))
            .collect();
        assert_eq!(found, case.numbers("predictable_races"), "{}", case.name);
        for blocked in case.numbers("predictable_deadlocks") {
            let events: Vec<EventId> =
                blocked.iter().map(|&number| trace.numbered(number).unwrap()).collect();
            let answer = engine.solve(&Query::enabled(&events));
            assert!(matches!(answer, Answer::Feasible(_)), "{} {blocked:?}", case.name);
        }
    }
}

#[test]
fn a_thread_that_holds_a_lock_in_both_modes_ends_with_the_one_it_gives_back_last() {
    let trace = reweave_testkit::std(
        "T7|w(x1)|1\nT7|r(x21)|2\nT4|w(x21)|3\nT7|acq(l4)|4\nT7|r(x1)|5\nT7|r(x6)|6\nT3|w(x3)|7\n\
         T4|w(x1)|8\nT4|r(x3)|9\nT4|w(x0)|10\nT7|rel(l4)|11\nT2|racq(l4)|12\nT2|acq(l4)|13\n\
         T2|w(x3)|14\nT2|rel(l4)|15\nT2|r(x0)|16\nT2|rrel(l4)|17\nT2|w(x6)|18\n",
    );
    assert_eq!(fault(&trace, &races(&trace)).unwrap_or_default(), "");
}

#[test]
fn a_thread_that_is_put_off_whole_runs_after_its_fork_though_its_name_came_first() {
    let mut builder = reweave_trace::TraceBuilder::new();
    for name in ["T3", "T1", "T2"] {
        builder.thread(name);
    }
    let named = reweave_testkit::std(
        "T1|acq(k)|1\nT1|fork(T3)|2\nT3|acq(l)|3\nT3|w(x)|4\nT3|rel(l)|5\nT1|join(T3)|6\n\
         T1|rel(k)|7\nT2|acq(k)|8\nT2|rel(k)|9\nT2|acq(l)|10\nT2|rel(l)|11\nT2|w(x)|12\n",
    );
    let (lock, var) = (builder.lock("k"), builder.var("x"));
    let (inner, site) = (builder.lock("l"), builder.site("here"));
    for (_, event) in named.events() {
        let mut thread = |id| builder.thread(named.names().threads.name(id));
        let op = match event.op {
            Op::Thread(ThreadOp::Fork, child) => Op::Thread(ThreadOp::Fork, thread(child)),
            Op::Thread(ThreadOp::Join, child) => Op::Thread(ThreadOp::Join, thread(child)),
            Op::Access(AccessOp::Write, _) => Op::Access(AccessOp::Write, var),
            Op::Lock(LockOp::Acquire, of) if named.names().locks.name(of) == "k" => {
                Op::Lock(LockOp::Acquire, lock)
            }
            Op::Lock(LockOp::Release, of) if named.names().locks.name(of) == "k" => {
                Op::Lock(LockOp::Release, lock)
            }
            Op::Lock(LockOp::Acquire, _) => Op::Lock(LockOp::Acquire, inner),
            Op::Lock(LockOp::Release, _) => Op::Lock(LockOp::Release, inner),
            other => other,
        };
        let thread = thread(event.thread);
        builder.push(thread, op, site);
    }
    let trace = builder.finish().unwrap();
    assert_eq!(fault(&trace, &races(&trace)).unwrap_or_default(), "");
}

#[test]
fn what_threads_do_alone_does_not_multiply_the_states_of_a_semaphore() {
    let mut builder = reweave_trace::TraceBuilder::new();
    let (semaphore, x, site) = (builder.semaphore("s"), builder.var("x"), builder.site("here"));
    builder.declare_start(semaphore, 1);
    for number in 1..=6 {
        let thread = builder.thread(&format!("T{number}"));
        let alone = builder.var(&format!("alone{number}"));
        for _ in 0..10 {
            builder.push(thread, Op::Access(AccessOp::Write, alone), site);
            builder.push(thread, Op::Access(AccessOp::Read, alone), site);
        }
        builder.push(thread, Op::Semaphore(SemaphoreOp::Take, semaphore), site);
        builder.push(thread, Op::Access(AccessOp::Write, x), site);
        builder.push(thread, Op::Semaphore(SemaphoreOp::Post, semaphore), site);
    }
    let trace = builder.finish().unwrap();
    let engine = Engine::new(&trace);
    let mut solver = Solver::new(&engine, Budget { states: 1_000, ..Budget::default() });
    for (query, _) in races(&trace) {
        assert_eq!(solver.solve(&query), Answer::Infeasible(Refuted::Exhausted));
    }
}

#[test]
fn a_release_at_which_a_wait_begins_is_not_run_early() {
    // Once T3 waits, T2 could not notify without waking it.
    let trace = reweave_testkit::trace(
        "
        T1      T2        T3
        start(s)=1
        w(x)
        take(s)
        post(s)
                take(s)
                post(s)
                notify(c)
                w(x)
                          acq(m)
                          rel(m)
                          wait(c)
        ",
    );
    assert_eq!(fault(&trace, &races(&trace)).unwrap_or_default(), "");
}

#[test]
fn what_the_goal_does_not_need_is_not_run() {
    let mut builder = reweave_trace::TraceBuilder::new();
    let (semaphore, x, site) = (builder.semaphore("s"), builder.var("x"), builder.site("here"));
    builder.declare_start(semaphore, 1);
    let (alone, uninvolved) = (builder.var("alone"), builder.thread("T0"));
    for _ in 0..10_000 {
        builder.push(uninvolved, Op::Access(AccessOp::Write, alone), site);
    }
    for name in ["T1", "T2"] {
        let thread = builder.thread(name);
        builder.push(thread, Op::Semaphore(SemaphoreOp::Take, semaphore), site);
        builder.push(thread, Op::Semaphore(SemaphoreOp::Post, semaphore), site);
        builder.push(thread, Op::Access(AccessOp::Write, x), site);
    }
    let trace = builder.finish().unwrap();
    let engine = Engine::new(&trace);
    let mut solver = Solver::new(&engine, Budget { states: 100, ..Budget::default() });
    let all = ids(&trace);
    let query = Query::enabled(&[all[10_002], all[10_005]]);
    assert!(matches!(solver.solve(&query), Answer::Feasible(_)));
    assert!(solver.take_work() < 10_000);
}

#[test]
fn steps_in_no_order_are_put_thread_by_thread_unless_they_were_observed_so() {
    let trace = reweave_testkit::std(
        "T3|w(z)|1\nT1|w(a)|2\nT2|w(b)|3\nT1|w(a)|4\nT2|w(b)|5\nT1|w(x)|6\nT2|w(x)|7\n",
    );
    let all = ids(&trace);
    let goal = Goal::Race(all[5], all[6]);
    let switches = |reordering: &Reordering| {
        let thread = |at: usize| trace.event(reordering.schedule[at]).thread;
        (1..reordering.schedule.len()).filter(|&at| thread(at - 1) != thread(at)).count()
    };
    let given = Reordering::explicit(all[1..5].to_vec());
    let other = with_fewer_switches(&trace, &given, &goal).expect("there is a better one");
    assert_eq!((switches(&given), switches(&other)), (3, 1));
    Checker::new(&trace).check(&other, &goal).expect("it leads to the same");
    let observed = Reordering::explicit(all[..5].to_vec());
    assert_eq!(with_fewer_switches(&trace, &observed, &goal), None);
}

/// Whether the oracle of queries finds the races that a search of all states does.
fn oracle_fault(trace: &Trace) -> Option<String> {
    let found = reachable::predictable(trace, STATES_MAX);
    if !found.explored.complete {
        return None;
    }
    races(trace).into_iter().find_map(|(query, _)| {
        let expected = found.races.contains_key(&(query.enabled[0], query.enabled[1]));
        let answer = asked::oracle(trace, &query, STATES_MAX);
        (answer.known() == Some(!expected))
            .then(|| format!("{query:?}: {answer:?}, not {expected}\n{}", draw(trace)))
    })
}

macro_rules! answers_are_right {
    ($($name:ident: $shape:expr;)+) => {
        proptest! {
            #![proptest_config(soak::config(120))]
            $(
                #[test]
                fn $name(trace in traces($shape), seed in any::<u64>()) {
                    let mut cases = races(&trace);
                    cases.extend(deadlocks(&trace));
                    cases.extend(views(&trace));
                    cases.extend(chains(&trace, seed));
                    prop_assert_eq!(fault(&trace, &cases).unwrap_or_default(), "");
                    prop_assert_eq!(oracle_fault(&trace).unwrap_or_default(), "");
                }
            )+
        }
    };
}

answers_are_right! {
    answers_are_right_on_small_traces: Shape::SMALL;
    answers_are_right_on_general_traces: Shape::GENERAL.events(24);
    answers_are_right_on_locks: Shape::LOCKS.events(26);
    answers_are_right_on_nested_locks: Shape::NESTED.events(26);
    answers_are_right_on_forks: Shape::FORKS.events(24);
    answers_are_right_on_signals: Shape::SIGNALS.events(24);
    answers_are_right_on_barriers: Shape::BARRIERS.events(24);
    answers_are_right_on_semaphores: Shape::SEMAPHORES.events(18);
    answers_are_right_on_tokens_and_locks:
        Shape { locks: 1, semaphores: 1, ..Shape::SEMAPHORES.events(20) };
    answers_are_right_on_tokens_and_waits:
        Shape { threads: 3, semaphores: 1, ..Shape::SIGNALS.events(18) };
    answers_are_right_on_tokens_and_atomics:
        Shape { semaphores: 1, ..Shape::ATOMICS.events(18) };
    answers_are_right_on_atomics: Shape::ATOMICS.events(20);
    answers_are_right_on_everything: Shape::EVERYTHING.events(22);
}
