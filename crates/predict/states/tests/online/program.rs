//! A program that runs, its clocks, and what is found meanwhile.

use std::sync::Mutex;

use proptest::prelude::*;
use reweave_base::Id;
use reweave_order::hb::HappensBefore;
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::online::{Least, LeastState, OnlineDetector, Refused, Search, State};
use reweave_testkit::{Scope, Shape, soak, traces};
use reweave_trace::{LockId, LockOp, Op, ThreadId, ThreadOp, Trace};

use crate::online::clocks::Clocks;
use crate::online::common::{Asked, chain, options, padded, value};

proptest! {
    #![proptest_config(soak::config(60))]

    #[test]
    fn clocks_of_a_program_of_locks_and_forks_are_happens_before(drawn in traces(Shape::GENERAL)) {
        check_clocks(&drawn);
    }
}

#[track_caller]
fn check_clocks(trace: &Trace) {
    let clocks = Clocks::new();
    let mut order = HappensBefore::new();
    let to_chain = |thread: ThreadId| chain(thread.index());
    for (id, event) in trace.events() {
        let thread = to_chain(event.thread);
        let made = match event.op {
            Op::Lock(LockOp::Acquire, lock) => clocks.acquire(thread, lock),
            Op::Lock(LockOp::Release, lock) => clocks.release(thread, lock),
            Op::Thread(ThreadOp::Fork, child) => clocks.fork(thread, to_chain(child)),
            Op::Thread(ThreadOp::Join, child) => clocks.join(thread, to_chain(child)),
            _ => clocks.local(thread),
        };
        let expected = order.advance(trace, id);
        for at in 0..trace.names().threads.len() {
            let number = made.get(at).copied().unwrap_or(0);
            assert_eq!(number, expected.get(ThreadId::from_index(at)), "{id:?}");
        }
    }
}

#[test]
fn clocks_of_all_small_programs_are_happens_before() {
    Scope::LOCKS.for_each(check_clocks);
    Scope::FORKS.for_each(check_clocks);
}

/// Threads that take turns at two locks, and what they inserted, in its order.
fn run_program(detector: &OnlineDetector<impl Search<Label = i64>>) -> Result<Poset, Refused> {
    const THREADS: usize = 3;
    let clocks = Clocks::new();
    let locks = [Mutex::new(()), Mutex::new(())];
    let inserted: Mutex<Vec<(usize, Vec<u32>)>> = Mutex::default();
    let insert = |thread: ChainId, clock: Vec<u32>| {
        // A lock around the insertion too, so that the list has its order.
        let mut inserted = inserted.lock().expect("nobody panics");
        detector.insert(thread, &clock, value(thread, clock[thread.index()]))?;
        inserted.push((thread.index(), clock));
        Ok(())
    };
    let run = |thread: ChainId| {
        for turn in 0..2 {
            insert(thread, clocks.local(thread))?;
            let at = (turn + thread.index()) % 2;
            let held = locks[at].lock().expect("nobody panics");
            insert(thread, clocks.acquire(thread, LockId::from_index(at)))?;
            insert(thread, clocks.release(thread, LockId::from_index(at)))?;
            drop(held);
        }
        detector.end(thread)
    };
    let main = chain(THREADS);
    insert(main, clocks.local(main))?;
    for child in (0..THREADS).map(chain) {
        insert(main, clocks.fork(main, child))?;
        detector.declare(child)?;
    }
    std::thread::scope(|scope| {
        let started = (0..THREADS).map(chain).map(|child| scope.spawn(move || run(child)));
        let started: Vec<_> = started.collect();
        started.into_iter().try_for_each(|child| child.join().expect("nobody panics"))
    })?;
    for child in (0..THREADS).map(chain) {
        insert(main, clocks.join(main, child))?;
    }
    let mut builder = PosetBuilder::new(THREADS + 1).expect("there are few chains");
    for (chain, mut clock) in inserted.into_inner().expect("nobody panics") {
        clock.resize(THREADS + 1, 0);
        builder.push(chain, &clock).expect("the detector took it");
    }
    Ok(builder.finish())
}

#[test]
fn a_running_program_is_searched_as_it_runs() {
    for round in 0..soak::cases(20) {
        for options in options() {
            let asked = Asked::Sum(200 + i64::from(round) * 5);
            let search = Least::new(move |state: &State<'_, i64>| asked.online(state));
            let detector = OnlineDetector::new(search, options);
            let poset = run_program(&detector).unwrap();
            let answer = padded(detector.finish().answer, 4);
            assert_eq!(answer, LeastState { least: asked.offline(&poset), is_certain: true });
        }
    }
}
