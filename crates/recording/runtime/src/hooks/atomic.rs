//! Atomic accesses, executed here so that the order of the log is the order of modifications.
//!
//! With turns, nothing comes between an operation and its record. Without, one of 64 locks, chosen
//! by the address, holds them together. All run sequentially consistent; the order that was asked
//! for is recorded.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

use crate::log::{self, Entry, More};
use crate::thread::{self, Spin, Thread};
use crate::wire::Kind;
use crate::{replay, turn};

static LOCKS: [Spin; 64] = [const { Spin::new() }; 64];

/// Forgets who held the locks, in a child process that has only the thread that forked.
pub(crate) fn reset() {
    LOCKS.iter().for_each(Spin::reset);
}

/// Gives back the locks that `thread` holds: it jumped away from what it held them for.
pub(crate) unsafe fn let_go(thread: *mut Thread) {
    LOCKS.iter().for_each(|lock| lock.let_go(owner(thread)));
}

/// As whom `thread` holds locks.
#[inline]
unsafe fn owner(thread: *mut Thread) -> u32 {
    (*thread).task.max(1)
}

/// Runs `body`, which executes and logs an operation on the `1 << size` bytes at `address`, as one
/// step. A plan may want the thread to stand before it.
#[inline]
unsafe fn one_step<R>(entry: &Entry, address: usize, size: u32, body: impl FnOnce() -> R) -> R {
    if turn::is_serial() {
        if replay::is_on() {
            // What it will have been is not known yet, and does not matter to who stands before it.
            let place = [address as u64, 1 << size];
            replay::before(entry.thread, entry.code, place, Kind::AtomicLoad);
        }
        return body();
    }
    // If there is no such memory, that is found out before others have to wait.
    (address as *const u8).read_volatile();
    LOCKS[(address >> 3) % LOCKS.len()].hold(owner(thread::current()), body)
}

/// Waits until no operation that is under way on the `length` bytes at `address` is still to be
/// logged.
pub(crate) unsafe fn await_steps(address: usize, length: usize) {
    if !turn::is_serial() {
        let owner = owner(thread::current());
        for word in address >> 3..=(address + length - 1) >> 3 {
            LOCKS[word % LOCKS.len()].hold(owner, || ());
        }
    }
}

/// What an atomic operation did.
struct Done {
    kind: Kind,
    seen: u64,
    stored: u64,
}

#[inline]
unsafe fn log_atomic(entry: &Entry, address: usize, size: u32, order: c_int, done: &Done) {
    let stores = done.kind == Kind::AtomicUpdate;
    let more = More {
        size,
        order: order as u32 & 7,
        flags: 0,
        extra: stores.then_some(done.stored),
        value: Some(if done.kind == Kind::AtomicStore { done.stored } else { done.seen }),
    };
    entry.log_more(done.kind, address as u64, more);
    if stores {
        replay::updated(entry.thread, address as u64, done.seen, done.stored);
    }
}

/// Defines a hook that is another one: on this machine no exchange fails without a reason.
macro_rules! alias_hook {
    ($name:ident => $other:ident) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!("jmp {}", sym $other)
        }
    };
}

macro_rules! updates {
    ($atomic:ty, $int:ty, $size:literal, $($name:ident: |$before:ident, $operand:ident| $after:expr;)*) => {
        $(
            hook!($name, (address: *const $atomic, operand: $int, order: c_int) -> $int, {
                let apply = |$before: $int, $operand: $int| -> $int { $after };
                let execute = || {
                    let mut before = (*address).load(Ordering::SeqCst);
                    loop {
                        let after = apply(before, operand);
                        let result = (*address).compare_exchange_weak(
                            before, after, Ordering::SeqCst, Ordering::SeqCst,
                        );
                        match result {
                            Ok(_) => return before,
                            Err(now) => before = now,
                        }
                    }
                };
                let Some(entry) = log::enter(thread::caller()) else { return execute() };
                one_step(&entry, address as usize, $size, || {
                    let before = execute();
                    let stored = u64::from(apply(before, operand));
                    let done = Done { kind: Kind::AtomicUpdate, seen: u64::from(before), stored };
                    log_atomic(&entry, address as usize, $size, order, &done);
                    before
                })
            });
        )*
    };
}

macro_rules! atomics {
    ($atomic:ty, $int:ty, $size:literal, $load:ident, $store:ident, $strong:ident, $weak:ident,
     $value:ident, $exchange:ident, $add:ident, $sub:ident, $and:ident, $or:ident, $xor:ident,
     $nand:ident) => {
        hook!($load, (address: *const $atomic, order: c_int) -> $int, {
            let Some(entry) = log::enter(thread::caller()) else {
                return (*address).load(Ordering::SeqCst);
            };
            one_step(&entry, address as usize, $size, || {
                let seen = (*address).load(Ordering::SeqCst);
                let done = Done { kind: Kind::AtomicLoad, seen: u64::from(seen), stored: 0 };
                log_atomic(&entry, address as usize, $size, order, &done);
                seen
            })
        });

        hook!($store, (address: *const $atomic, value: $int, order: c_int) -> (), {
            let Some(entry) = log::enter(thread::caller()) else {
                return (*address).store(value, Ordering::SeqCst);
            };
            one_step(&entry, address as usize, $size, || {
                let done = Done { kind: Kind::AtomicStore, seen: 0, stored: u64::from(value) };
                log_atomic(&entry, address as usize, $size, order, &done);
                (*address).store(value, Ordering::SeqCst);
            });
        });

        hook!(
            $strong,
            (address: *const $atomic, expected: *mut $int, value: $int, order: c_int,
             failure: c_int) -> c_int,
            {
                let before = expected.read();
                let seen = compare_exchange(
                    &raw const *address as usize, $size, u64::from(before), order, failure,
                    u64::from(value),
                    || match (*address).compare_exchange(
                        before, value, Ordering::SeqCst, Ordering::SeqCst,
                    ) {
                        Ok(seen) | Err(seen) => u64::from(seen),
                    },
                ) as $int;
                if seen != before {
                    log::access(Kind::Write, $size, expected as u64, thread::caller());
                    expected.write(seen);
                }
                c_int::from(seen == before)
            }
        );

        alias_hook!($weak => $strong);

        hook!(
            $value,
            (address: *const $atomic, before: $int, value: $int, order: c_int, failure: c_int)
                -> $int,
            {
                compare_exchange(
                    &raw const *address as usize, $size, u64::from(before), order, failure,
                    u64::from(value),
                    || match (*address).compare_exchange(
                        before, value, Ordering::SeqCst, Ordering::SeqCst,
                    ) {
                        Ok(seen) | Err(seen) => u64::from(seen),
                    },
                ) as $int
            }
        );

        updates! { $atomic, $int, $size,
            $exchange: |_before, operand| operand;
            $add: |before, operand| before.wrapping_add(operand);
            $sub: |before, operand| before.wrapping_sub(operand);
            $and: |before, operand| before & operand;
            $or: |before, operand| before | operand;
            $xor: |before, operand| before ^ operand;
            $nand: |before, operand| !(before & operand);
        }
    };
}

/// Executes and logs a compare-and-swap; gives what was seen.
unsafe fn compare_exchange(
    address: usize,
    size: u32,
    expected: u64,
    order: c_int,
    failure: c_int,
    value: u64,
    execute: impl Fn() -> u64,
) -> u64 {
    let Some(entry) = log::enter(thread::caller()) else { return execute() };
    one_step(&entry, address, size, || {
        let seen = execute();
        let succeeded = seen == expected;
        let kind = if succeeded { Kind::AtomicUpdate } else { Kind::AtomicFailed };
        let order = if succeeded { order } else { failure };
        log_atomic(&entry, address, size, order, &Done { kind, seen, stored: value });
        seen
    })
}

atomics!(
    AtomicU8,
    u8,
    0,
    __tsan_atomic8_load,
    __tsan_atomic8_store,
    __tsan_atomic8_compare_exchange_strong,
    __tsan_atomic8_compare_exchange_weak,
    __tsan_atomic8_compare_exchange_val,
    __tsan_atomic8_exchange,
    __tsan_atomic8_fetch_add,
    __tsan_atomic8_fetch_sub,
    __tsan_atomic8_fetch_and,
    __tsan_atomic8_fetch_or,
    __tsan_atomic8_fetch_xor,
    __tsan_atomic8_fetch_nand
);
atomics!(
    AtomicU16,
    u16,
    1,
    __tsan_atomic16_load,
    __tsan_atomic16_store,
    __tsan_atomic16_compare_exchange_strong,
    __tsan_atomic16_compare_exchange_weak,
    __tsan_atomic16_compare_exchange_val,
    __tsan_atomic16_exchange,
    __tsan_atomic16_fetch_add,
    __tsan_atomic16_fetch_sub,
    __tsan_atomic16_fetch_and,
    __tsan_atomic16_fetch_or,
    __tsan_atomic16_fetch_xor,
    __tsan_atomic16_fetch_nand
);
atomics!(
    AtomicU32,
    u32,
    2,
    __tsan_atomic32_load,
    __tsan_atomic32_store,
    __tsan_atomic32_compare_exchange_strong,
    __tsan_atomic32_compare_exchange_weak,
    __tsan_atomic32_compare_exchange_val,
    __tsan_atomic32_exchange,
    __tsan_atomic32_fetch_add,
    __tsan_atomic32_fetch_sub,
    __tsan_atomic32_fetch_and,
    __tsan_atomic32_fetch_or,
    __tsan_atomic32_fetch_xor,
    __tsan_atomic32_fetch_nand
);
atomics!(
    AtomicU64,
    u64,
    3,
    __tsan_atomic64_load,
    __tsan_atomic64_store,
    __tsan_atomic64_compare_exchange_strong,
    __tsan_atomic64_compare_exchange_weak,
    __tsan_atomic64_compare_exchange_val,
    __tsan_atomic64_exchange,
    __tsan_atomic64_fetch_add,
    __tsan_atomic64_fetch_sub,
    __tsan_atomic64_fetch_and,
    __tsan_atomic64_fetch_or,
    __tsan_atomic64_fetch_xor,
    __tsan_atomic64_fetch_nand
);

mod wide;

hook!(__tsan_atomic_thread_fence, (order: c_int) -> (), {
    fence(Ordering::SeqCst);
    if let Some(entry) = log::enter(thread::caller()) {
        entry.log_more(Kind::Fence, 0, More { order: order as u32 & 7, ..More::default() });
    }
});

hook!(__tsan_atomic_signal_fence, (_order: c_int) -> (), {
    compiler_fence(Ordering::SeqCst);
});
