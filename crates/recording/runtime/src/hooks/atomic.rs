//! Atomic accesses, executed here so that the order of the log is the order of modifications.
//!
//! Where one thread runs at a time, nothing comes between an operation and its record. Else one of 64 locks, chosen
//! by the address, holds them together. All run sequentially consistent; the order that was asked
//! for is recorded. Accesses of 128 bits are logged as two of 64.

use core::arch::asm;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

use crate::interceptors::libraries;
use crate::log::{self, Entry, Operands};
use crate::predict::SECOND_HALF;
use crate::thread::{self, Spin, Thread};
use crate::wire::Kind;
use crate::{replay, scheduler};

static LOCKS: [Spin; 64] = [const { Spin::new() }; 64];

/// Forgets who held the locks, in a child process that has only the thread that forked.
pub fn reset() {
    LOCKS.iter().for_each(Spin::reset);
}

/// Releases the locks that `thread` holds: it jumped away from what it held them for.
pub unsafe fn release_if_held(thread: *mut Thread) {
    LOCKS.iter().for_each(|lock| lock.release_if_held(owner(thread)));
}

/// As whom `thread` holds locks.
#[inline]
unsafe fn owner(thread: *mut Thread) -> u32 {
    (*thread).task.max(1)
}

/// Runs `body`, which executes and logs an operation on the word at `address`, as one step. A plan
/// may want the thread to stop before it.
#[inline]
unsafe fn atomically<W, R>(entry: &Entry, address: *mut W, body: impl FnOnce() -> R) -> R {
    if scheduler::is_serial() {
        if replay::is_on() {
            // What it will have been is not known yet, and does not matter to who stands before it.
            let place = [address as u64, size_of::<W>() as u64];
            replay::before(entry.thread, entry.code, place, Kind::AtomicLoad);
        }
        return body();
    }
    // If there is no such memory, that is found out before others have to wait.
    address.cast::<u8>().read_volatile();
    LOCKS[(address as usize >> 3) % LOCKS.len()].hold(owner(thread::current()), body)
}

/// Waits until no operation that is under way on the `length` bytes at `address` is still to be
/// logged.
pub unsafe fn await_atomics(address: usize, length: usize) {
    if !scheduler::is_serial() {
        let owner = owner(thread::current());
        for word in address >> 3..=(address + length - 1) >> 3 {
            LOCKS[word % LOCKS.len()].hold(owner, || ());
        }
    }
}

/// A number that is accessed atomically as a whole.
trait Word: Copy + PartialEq {
    /// The binary logarithm of its bytes.
    const SIZE: u8;

    unsafe fn load(address: *mut Self) -> Self;

    unsafe fn store(address: *mut Self, value: Self);

    /// What was at `address`, which becomes `value` if it was `expected`.
    unsafe fn compare_exchange(address: *mut Self, expected: Self, value: Self) -> Self;

    /// Its eight bytes from byte `offset` on, or all if it has fewer.
    fn part(self, offset: usize) -> u64;
}

macro_rules! words {
    ($($int:ty, $atomic:ty, $size:literal;)*) => {
        $(
            impl Word for $int {
                const SIZE: u8 = $size;

                #[inline(always)]
                unsafe fn load(address: *mut Self) -> Self {
                    (*address.cast::<$atomic>()).load(Ordering::SeqCst)
                }

                #[inline(always)]
                unsafe fn store(address: *mut Self, value: Self) {
                    (*address.cast::<$atomic>()).store(value, Ordering::SeqCst);
                }

                #[inline(always)]
                unsafe fn compare_exchange(address: *mut Self, expected: Self, value: Self) -> Self {
                    let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                    match (*address.cast::<$atomic>())
                        .compare_exchange(expected, value, success, failure)
                    {
                        Ok(seen) | Err(seen) => seen,
                    }
                }

                #[inline(always)]
                fn part(self, _: usize) -> u64 {
                    u64::from(self)
                }
            }
        )*
    };
}

words! {
    u8, AtomicU8, 0;
    u16, AtomicU16, 1;
    u32, AtomicU32, 2;
    u64, AtomicU64, 3;
}

impl Word for u128 {
    const SIZE: u8 = 4;

    unsafe fn load(address: *mut Self) -> Self {
        // The machine has no other atomic load of this width.
        Self::compare_exchange(address, 0, 0)
    }

    unsafe fn store(address: *mut Self, value: Self) {
        execute(address, |_| value);
    }

    unsafe fn compare_exchange(address: *mut Self, expected: Self, value: Self) -> Self {
        let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
        // The instruction wants the low half in `rbx`, which is the compiler's; the other registers
        // are named so that none of them is that one.
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
        Self::from(low) | Self::from(high) << 64
    }

    fn part(self, offset: usize) -> u64 {
        (self >> (8 * offset)) as u64
    }
}

/// Logs an operation on the word at `address`, which held `seen` and was to become `stored`.
#[inline]
unsafe fn log_atomic<W: Word>(
    entry: &Entry,
    address: *mut W,
    order: c_int,
    kind: Kind,
    [seen, stored]: [W; 2],
) {
    for offset in (0..size_of::<W>()).step_by(8) {
        let (address, stores) = (address as u64 + offset as u64, kind == Kind::AtomicUpdate);
        let (seen, stored) = (seen.part(offset), stored.part(offset));
        let operands = Operands {
            size: W::SIZE.min(3),
            order: order as u8 & 7,
            flags: 0,
            extra: stores.then_some(stored),
            value: Some(if kind == Kind::AtomicStore { stored } else { seen }),
        };
        entry.log_with(kind, address, operands);
        if stores {
            replay::updated(entry.thread, address, seen, stored);
        }
    }
}

#[inline]
unsafe fn load<W: Word>(address: *mut W, order: c_int) -> W {
    let Some(entry) = log::enter(thread::caller()) else { return W::load(address) };
    atomically(&entry, address, || {
        let seen = W::load(address);
        log_atomic(&entry, address, order, Kind::AtomicLoad, [seen, seen]);
        seen
    })
}

#[inline]
unsafe fn store<W: Word>(address: *mut W, value: W, order: c_int) {
    let Some(entry) = log::enter(thread::caller()) else { return W::store(address, value) };
    libraries::release_early(&entry, order);
    atomically(&entry, address, || {
        log_atomic(&entry, address, order, Kind::AtomicStore, [value, value]);
        W::store(address, value);
    });
}

/// Executes and logs a compare-and-swap; gives what was seen.
#[inline]
unsafe fn compare_exchange<W: Word>(
    address: *mut W,
    expected: W,
    value: W,
    order: c_int,
    failure: c_int,
) -> W {
    let execute = || W::compare_exchange(address, expected, value);
    let Some(entry) = log::enter(thread::caller()) else { return execute() };
    libraries::release_early(&entry, order);
    atomically(&entry, address, || {
        let seen = execute();
        let succeeded = seen == expected;
        let kind = if succeeded { Kind::AtomicUpdate } else { Kind::AtomicFailed };
        let order = if succeeded { order } else { failure };
        log_atomic(&entry, address, order, kind, [seen, value]);
        seen
    })
}

/// The form of it that gets what it expects by reference, and writes there what was seen instead.
#[inline]
unsafe fn compare_exchange_at<W: Word>(
    address: *mut W,
    expected: *mut W,
    value: W,
    order: c_int,
    failure: c_int,
) -> c_int {
    let before = expected.read();
    let seen = compare_exchange(address, before, value, order, failure);
    if seen != before {
        let code = thread::caller();
        let place = expected as u64;
        log::access::<false>(Kind::Write, u32::from(W::SIZE.min(3)), place, code);
        if size_of::<W>() > 8 {
            log::access::<true>(Kind::Write, SECOND_HALF, place + 8, code);
        }
        expected.write(seen);
    }
    c_int::from(seen == before)
}

/// Applies `change` to the word at `address`; gives what was there.
#[inline(always)]
unsafe fn execute<W: Word>(address: *mut W, change: impl Fn(W) -> W) -> W {
    let mut before = W::load(address);
    loop {
        let seen = W::compare_exchange(address, before, change(before));
        if seen == before {
            return before;
        }
        before = seen;
    }
}

#[inline]
unsafe fn update<W: Word>(address: *mut W, order: c_int, change: impl Fn(W) -> W) -> W {
    let Some(entry) = log::enter(thread::caller()) else { return execute(address, change) };
    libraries::release_early(&entry, order);
    atomically(&entry, address, || {
        let before = execute(address, &change);
        log_atomic(&entry, address, order, Kind::AtomicUpdate, [before, change(before)]);
        before
    })
}

macro_rules! updates {
    ($bits:literal, $int:ty, $($name:literal: |$before:ident, $operand:ident| $after:expr;)*) => {
        $(
            hook!(
                concat!("__tsan_atomic", $bits, "_", $name),
                (address: *mut $int, $operand: $int, order: c_int) -> $int,
                { update(address, order, |$before| $after) }
            );
        )*
    };
}

/// Defines the hooks of one width.
macro_rules! atomics {
    ($bits:literal, $int:ty) => {
        hook!(
            concat!("__tsan_atomic", $bits, "_load"),
            (address: *mut $int, order: c_int) -> $int,
            { load(address, order) }
        );
        hook!(
            concat!("__tsan_atomic", $bits, "_store"),
            (address: *mut $int, value: $int, order: c_int) -> (),
            { store(address, value, order) }
        );
        hook!(
            concat!("__tsan_atomic", $bits, "_compare_exchange_strong"),
            (address: *mut $int, expected: *mut $int, value: $int, order: c_int, failure: c_int)
                -> c_int,
            { compare_exchange_at(address, expected, value, order, failure) }
        );
        // On this machine no exchange fails without a reason.
        hook!(
            concat!("__tsan_atomic", $bits, "_compare_exchange_weak"),
            (address: *mut $int, expected: *mut $int, value: $int, order: c_int, failure: c_int)
                -> c_int,
            { compare_exchange_at(address, expected, value, order, failure) }
        );
        hook!(
            concat!("__tsan_atomic", $bits, "_compare_exchange_val"),
            (address: *mut $int, before: $int, value: $int, order: c_int, failure: c_int) -> $int,
            { compare_exchange(address, before, value, order, failure) }
        );
        updates! { $bits, $int,
            "exchange": |_before, operand| operand;
            "fetch_add": |before, operand| before.wrapping_add(operand);
            "fetch_sub": |before, operand| before.wrapping_sub(operand);
            "fetch_and": |before, operand| before & operand;
            "fetch_or": |before, operand| before | operand;
            "fetch_xor": |before, operand| before ^ operand;
            "fetch_nand": |before, operand| !(before & operand);
        }
    };
}

atomics!("8", u8);
atomics!("16", u16);
atomics!("32", u32);
atomics!("64", u64);
atomics!("128", u128);

hook!("__tsan_atomic_thread_fence", (order: c_int) -> (), {
    fence(Ordering::SeqCst);
    if let Some(entry) = log::enter(thread::caller()) {
        let operands = Operands { order: order as u8 & 7, ..Operands::default() };
        entry.log_with(Kind::Fence, 0, operands);
    }
});

hook!("__tsan_atomic_signal_fence", (_order: c_int) -> (), {
    compiler_fence(Ordering::SeqCst);
});
