//! States by 128 bits.
//!
//! Two states are the same if nothing that can still happen tells them apart. So threads go by
//! their names, whatever order they started in; a thread that has ended counts only as far as it
//! left something behind; and of its registers a thread has only those that it will still read.
//! Different states have the same 128 bits with a chance that can be neglected.

use std::hash::{Hash, Hasher};

use super::bits::ones;
use super::flow::StaticFlow;
use crate::machine::{Machine, Thread};
use crate::observe::ThreadNumber;

/// Mixes numbers to 128 bits. Each half takes in a number by a bijection, so it forgets nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    left: u64,
    right: u64,
}

impl Digest {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { left: seed ^ 0x243f_6a88_85a3_08d3, right: !seed ^ 0x1319_8a2e_0370_7344 }
    }

    pub(crate) const fn add(&mut self, number: u64) {
        let left = (self.left ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let right = (self.right.rotate_left(29) ^ number).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.left = left ^ left >> 32;
        self.right = right ^ right >> 29;
    }

    pub(crate) const fn value(self) -> u128 {
        (mixed(self.left) as u128) << 64 | mixed(self.right) as u128
    }
}

/// A bijection in which every bit depends on every other.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.value() as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(number));
        }
    }
}

/// What tells `machine` from other states of the same program.
pub(crate) fn state(machine: &Machine<'_>, flow: &StaticFlow) -> u128 {
    let identity = |thread: ThreadNumber| machine.threads[thread as usize].identity;
    let mut all = Digest::new(0);
    for &value in &machine.memory {
        all.add(value as u64);
    }
    for (number, lock) in machine.locks.iter().enumerate() {
        if let Some(owner) = lock.owner {
            all.add(number as u64);
            all.add(identity(owner));
            all.add(u64::from(lock.count));
        }
    }
    for (number, condition) in machine.conditions.iter().enumerate() {
        let mut sum = 0_u128;
        for (thread, signals) in condition.standing() {
            let mut one = Digest::new(number as u64);
            one.add(identity(thread));
            one.add(signals);
            sum = sum.wrapping_add(one.value());
        }
        all.add(condition.signals_count() as u64);
        all.add((sum >> 64) as u64);
        all.add(sum as u64);
    }
    // Neither threads nor faults have an order.
    let mut sum = 0_u128;
    for thread in machine.threads.iter().filter(|thread| !thread.has_ended) {
        sum = sum.wrapping_add(of_thread(machine, thread, flow));
    }
    for fault in &machine.faults {
        let mut one = Digest::new(1);
        fault.hash(&mut one);
        sum = sum.wrapping_add(one.value());
    }
    all.add((sum >> 64) as u64);
    all.add(sum as u64);
    all.value()
}

fn of_thread(machine: &Machine<'_>, thread: &Thread, flow: &StaticFlow) -> u128 {
    let identity = |thread: u64| {
        machine.threads.get(thread as usize).map_or(u64::MAX, |thread| thread.identity)
    };
    let mut one = Digest::new(2);
    one.add(thread.identity);
    one.add(u64::from(thread.at));
    one.add(u64::from(thread.forks_count));
    one.add(thread.frames.len() as u64);
    for &frame in &thread.frames {
        one.add(u64::from(frame));
    }
    one.add(thread.children.len() as u64);
    for &child in &thread.children {
        one.add(identity(u64::from(child)));
    }
    let places: Vec<&[u64]> = thread.places().map(|place| flow.live(place)).collect();
    for register in ones(&places) {
        let value = thread.registers[register as usize] as u64;
        one.add(if flow.is_handle(register) { identity(value) } else { value });
    }
    one.value()
}
