//! Guessing the next plain access, so that what a loop does need not be written down.
//!
//! A thread remembers, for each place in the code, the address of the access that it expects there
//! next (the last one, moved on by the last stride) and which place came after it last time. An
//! access that is wholly as expected is only counted. Whoever reads the recording keeps the same
//! tables, fed with the same events, and so knows what was counted.
//!
//! Where values are recorded, an access must also see what was last seen at that address, and the
//! write before it must have stored what was there before. What was last seen is kept in a table
//! by address; two addresses that share an entry push each other out, on both sides alike.
//!
//! What a write stored is looked at by the hook after it, or the one after that: compilers announce
//! the copy of a structure as a write and then a read, before they load and store. So a read of other
//! bytes leaves open what the write before it stored.

use crate::wire::{Kind, shift};

/// How many places in the code a thread remembers; a power of two.
pub const SLOTS: usize = 512;

/// The size by which the second half of an access of sixteen bytes is known. What the first half stored
/// is never reported: its place in the log has no value.
pub const SECOND_HALF: u32 = 4;

/// How many addresses are remembered with what was last seen there; a power of two.
pub const LAST_VALUES: usize = 1 << 18;

/// What is expected at one place in the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// The place and the kind of access; see [`key`].
    pub key: u64,
    /// The address that is expected next.
    pub address: u64,
    /// How far apart the last two addresses were.
    pub stride: u64,
    /// The slot of the access that came after this one.
    pub follow: u64,
}

/// Whether a read of `1 << size` bytes at `address`, the first since the write at `pending`, leaves open
/// what that stored: the store may still be to come.
#[inline(always)]
#[must_use]
pub const fn leaves_open(pending: (u64, u32), address: u64, size: u32) -> bool {
    let bytes = 1 << if size == SECOND_HALF { 3 } else { size };
    address.wrapping_sub(pending.0) >= 1 << pending.1 && pending.0.wrapping_sub(address) >= bytes
}

/// The place `code` and the kind and size of an access there, in one word.
#[inline(always)]
#[must_use]
pub const fn key(kind: Kind, size: u32, code: u64) -> u64 {
    code | (kind as u64) << shift::KIND | (size as u64) << shift::SIZE
}

/// The address and size of an access, in one word that is not 0.
#[inline(always)]
#[must_use]
pub const fn tag(address: u64, size: u32) -> u64 {
    let size = if size == SECOND_HALF { 3 } else { size };
    address | ((size + 1) as u64) << shift::SIZE
}

/// What the runtime remembers of `value`, seen at `address`: one word, half of what the address and
/// the value would take. That another value at another address looks the same is as likely as to
/// guess 64 bits.
#[inline(always)]
#[must_use]
pub const fn mark(address: u64, size: u32, value: u64) -> u64 {
    value ^ tag(address, size).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Where the access `key` is remembered.
#[inline(always)]
#[must_use]
pub const fn slot_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
}

/// Where what was seen at `address` is remembered.
#[inline(always)]
#[must_use]
pub const fn value_slot(address: u64) -> usize {
    // Words side by side are remembered side by side; halves of a word do not share a place.
    (address >> 3 ^ address >> 21 ^ (address & 7) << 13) as usize & (LAST_VALUES - 1)
}

impl Slot {
    /// Learns that the access `key` went to `address`.
    #[inline]
    pub const fn learn(&mut self, key: u64, address: u64) {
        if self.key == key {
            let last = self.address.wrapping_sub(self.stride);
            self.stride = address.wrapping_sub(last);
            self.address = address.wrapping_add(self.stride);
        } else {
            (self.key, self.address, self.stride) = (key, address, 0);
        }
    }
}

const _: () = assert!(SLOTS == 1 << (64 - 55), "a slot is chosen by the top bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_learned_from_two_accesses() {
        let mut slot = Slot::default();
        let key = key(Kind::Read, 3, 0x1234);
        slot.learn(key, 100);
        assert_eq!(slot.address, 100);
        slot.learn(key, 108);
        assert_eq!(slot.address, 116);
    }

    #[test]
    fn every_key_has_a_slot_and_every_address_a_memory() {
        for number in (0..1 << 20).step_by(7) {
            assert!(slot_of(key(Kind::Write, 2, number << 20)) < SLOTS);
            assert!(value_slot(number << 21) < LAST_VALUES);
        }
    }
}
