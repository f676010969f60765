//! Atomic accesses of 128 bits: logged as two of 64.

use core::arch::asm;
use core::ffi::c_int;

use super::{Done, log_atomic, one_step};
use crate::log::{self, Entry};
use crate::thread;
use crate::wire::Kind;

/// What was at `address`, which becomes `value` if it was `expected`.
unsafe fn swap_if(address: *mut u128, expected: u128, value: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // The register that the instruction wants for the low half is not ours to name; the others are
    // named so that none of them is that one.
    asm!(
        "xchg rsi, rbx",
        "lock cmpxchg16b [rdi]",
        "mov rbx, rsi",
        inout("rsi") value as u64 => _,
        in("rdi") address,
        in("rcx") (value >> 64) as u64,
        inout("rax") low,
        inout("rdx") high,
        options(nostack),
    );
    u128::from(low) | u128::from(high) << 64
}

unsafe fn log_halves(
    entry: &Entry,
    address: *mut u128,
    order: c_int,
    kind: Kind,
    values: [u128; 2],
) {
    let [seen, stored] = values;
    for (offset, shift) in [(0, 0), (8, 64)] {
        let done = Done { kind, seen: (seen >> shift) as u64, stored: (stored >> shift) as u64 };
        log_atomic(entry, address as usize + offset, 3, order, &done);
    }
}

/// Applies `change` to what is at `address`; gives what was there.
unsafe fn update(address: *mut u128, change: impl Fn(u128) -> u128) -> u128 {
    let mut before = swap_if(address, 0, 0);
    loop {
        let seen = swap_if(address, before, change(before));
        if seen == before {
            return before;
        }
        before = seen;
    }
}

unsafe fn logged_update(
    address: *mut u128,
    order: c_int,
    kind: Kind,
    change: impl Fn(u128) -> u128,
) -> u128 {
    let Some(entry) = log::enter(thread::caller()) else { return update(address, change) };
    one_step(&entry, address as usize, 4, || {
        let before = update(address, &change);
        log_halves(&entry, address, order, kind, [before, change(before)]);
        before
    })
}

unsafe fn compare(
    address: *mut u128,
    expected: u128,
    value: u128,
    order: c_int,
    failure: c_int,
) -> u128 {
    let Some(entry) = log::enter(thread::caller()) else {
        return swap_if(address, expected, value);
    };
    one_step(&entry, address as usize, 4, || {
        let seen = swap_if(address, expected, value);
        let (kind, order) = if seen == expected {
            (Kind::AtomicUpdate, order)
        } else {
            (Kind::AtomicFailed, failure)
        };
        log_halves(&entry, address, order, kind, [seen, value]);
        seen
    })
}

hook!(__tsan_atomic128_load, (address: *mut u128, order: c_int) -> u128, {
    logged_update(address, order, Kind::AtomicLoad, |before| before)
});

hook!(__tsan_atomic128_store, (address: *mut u128, value: u128, order: c_int) -> (), {
    logged_update(address, order, Kind::AtomicStore, |_| value);
});

hook!(
    __tsan_atomic128_compare_exchange_strong,
    (address: *mut u128, expected: *mut u128, value: u128, order: c_int, failure: c_int) -> c_int,
    {
        let before = expected.read();
        let seen = compare(address, before, value, order, failure);
        if seen != before {
            if let Some(entry) = log::enter(thread::caller()) {
                entry.log_extra(Kind::WriteRange, expected as u64, 16);
            }
            expected.write(seen);
        }
        c_int::from(seen == before)
    }
);

alias_hook!(
    __tsan_atomic128_compare_exchange_weak => __tsan_atomic128_compare_exchange_strong
);

hook!(
    __tsan_atomic128_compare_exchange_val,
    (address: *mut u128, before: u128, value: u128, order: c_int, failure: c_int) -> u128,
    { compare(address, before, value, order, failure) }
);

macro_rules! wide_updates {
    ($($name:ident: |$before:ident, $operand:ident| $after:expr;)*) => {
        $(
            hook!($name, (address: *mut u128, operand: u128, order: c_int) -> u128, {
                let apply = |$before: u128, $operand: u128| -> u128 { $after };
                logged_update(address, order, Kind::AtomicUpdate, |before| apply(before, operand))
            });
        )*
    };
}

wide_updates! {
    __tsan_atomic128_exchange: |_before, operand| operand;
    __tsan_atomic128_fetch_add: |before, operand| before.wrapping_add(operand);
    __tsan_atomic128_fetch_sub: |before, operand| before.wrapping_sub(operand);
    __tsan_atomic128_fetch_and: |before, operand| before & operand;
    __tsan_atomic128_fetch_or: |before, operand| before | operand;
    __tsan_atomic128_fetch_xor: |before, operand| before ^ operand;
    __tsan_atomic128_fetch_nand: |before, operand| !(before & operand);
}
