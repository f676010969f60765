//! Barriers.

use core::ffi::{c_int, c_uint};

use super::{doors, enter_or, outside};
use crate::wire::Kind;

doors! {
    fn pthread_barrier_init(barrier: usize, attributes: usize, parties: c_uint) -> c_int {
        let entry = enter_or!(real::pthread_barrier_init(barrier, attributes, parties));
        entry.log_extra(Kind::BarrierInit, barrier as u64, u64::from(parties));
        real::pthread_barrier_init(barrier, attributes, parties)
    }

    fn pthread_barrier_wait(barrier: usize) -> c_int {
        let entry = enter_or!(real::pthread_barrier_wait(barrier));
        entry.log(Kind::BarrierArrive, barrier as u64);
        let result = outside(entry.thread, || real::pthread_barrier_wait(barrier));
        entry.log(Kind::BarrierDepart, barrier as u64);
        result
    }
}
