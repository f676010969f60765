//! A cut passes exactly if its events can be run in observed order, one by one.

use reweave_base::{IndexVec, Rng};

use super::Base;
use crate::certify::Checker;
use crate::op::OpKind::{
    Acquire, AcquireShared, Alloc, Arrive, AtomicUpdate, Depart, Fork, Free, Join, Notify,
    NotifyAll, Post, Read, Release, ReleaseShared, Request, Take, Timeout, Wait, Wake, Write,
};
use crate::op::{MemoryOrder, NameKind, OpCode, OpKind, ThreadId};
use crate::trace::Trace;
use crate::{Op, TraceBuilder};

/// Events at random, made well formed.
fn random(kinds: &[OpKind], events_count: usize, knows_starts: bool, rng: &mut Rng) -> Trace {
    let mut builder = TraceBuilder::new();
    let threads = ["T1", "T2", "T3"].map(|name| builder.thread(name));
    let site = builder.site("here");
    for kind in NameKind::ALL {
        for name in [b"a", b"b"] {
            builder.names().intern(kind, name).unwrap();
        }
    }
    let barrier = builder.barrier("a");
    builder.declare_parties(barrier, 2);
    if knows_starts {
        let semaphore = builder.semaphore("a");
        builder.declare_start(semaphore, 1);
    }
    for _ in 0..events_count {
        let Some(&kind) = rng.pick(kinds) else { break };
        let operand = match kind.operand() {
            NameKind::None => 0,
            NameKind::Thread => rng.below(threads.len()) as u32,
            _ => rng.below(2) as u32,
        };
        let op = Op::decode(OpCode::new(kind, MemoryOrder::SeqCst), operand);
        builder.push(threads[rng.below(threads.len())], op, site);
    }
    builder.finish_mended().unwrap()
}

fn cuts(checker: &Checker<'_>) -> Vec<IndexVec<ThreadId, u32>> {
    let threads = &checker.tables.threads;
    let mut cuts = vec![IndexVec::from_elem(0, threads.len())];
    for (thread, row) in threads.rows() {
        for cut in std::mem::take(&mut cuts) {
            for count in 0..=row.len() as u32 {
                let mut longer = cut.clone();
                longer[thread] = count;
                cuts.push(longer);
            }
        }
    }
    cuts
}

/// How many cuts do not pass, and how many do.
fn check(kinds: &[OpKind], knows_starts: bool) -> [usize; 2] {
    let mut tally = [0; 2];
    for seed in 0..300 {
        let trace = random(kinds, 14, knows_starts, &mut Rng::new(seed));
        let checker = Checker::new(&trace);
        for cut in cuts(&checker) {
            let run = checker.run_base(&cut, &[]);
            let base = Base::new((&trace, &checker.tables, &checker.cuts), cut.clone());
            let shown = || trace.events().map(|(id, _)| trace.spell(id)).collect::<Vec<_>>();
            // A take may use another post than it did when observed.
            if base.is_some() || !knows_starts {
                assert_eq!(base.is_some(), run.is_ok(), "{:?} {cut:?} {:?}", shown(), run.err());
            }
            tally[usize::from(base.is_some())] += 1;
        }
    }
    tally
}

#[test]
fn a_cut_passes_exactly_if_it_can_be_run() {
    let families: [&[OpKind]; 8] = [
        &[Read, Write, AtomicUpdate],
        &[Acquire, Release, AcquireShared, ReleaseShared],
        &[Fork, Join, Write],
        &[Wait, Wake, Timeout, Notify, NotifyAll],
        &[Acquire, Release, Wait, Wake, Wait, Wake, Notify, NotifyAll, Request],
        &[Arrive, Depart],
        &[Post, Take, Alloc, Free],
        &OpKind::ALL,
    ];
    for kinds in families {
        let tally = check(kinds, false);
        assert!(tally.iter().all(|&count| count > 500), "{kinds:?} {tally:?}");
    }
}

#[test]
fn a_cut_of_semaphores_of_known_start_passes_only_if_it_can_be_run() {
    let tally = check(&[Post, Take], true);
    assert!(tally.iter().all(|&count| count > 500), "{tally:?}");
}
