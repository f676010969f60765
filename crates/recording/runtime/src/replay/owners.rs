//! Who holds which lock, so that a cycle of waiting threads is seen when it closes.

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::std_events::{INTERNAL_LOCK_BYTES, VIRTUAL};
use crate::sys;
use crate::thread::Thread;
use crate::wire::Kind;

/// How many locks are followed at most; a power of two.
const LOCKS: usize = 1 << 16;

#[repr(C)]
struct Slot {
    lock: u64,
    owner: *mut Thread,
    depth: u64,
}

static TABLE: AtomicPtr<Slot> = AtomicPtr::new(core::ptr::null_mut());

/// Forgets all owners.
pub fn start() -> Option<()> {
    let table = sys::allocate(LOCKS * size_of::<Slot>())?;
    TABLE.store(table.cast(), Ordering::Release);
    Some(())
}

/// The slot of `lock`, new if there was none; none if the table is full.
unsafe fn slot(lock: u64) -> Option<*mut Slot> {
    let slot = find(lock)?;
    (*slot).lock = lock;
    Some(slot)
}

/// The slot that `lock` has or would get.
unsafe fn find(lock: u64) -> Option<*mut Slot> {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() {
        return None;
    }
    let start = (lock >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    for step in 0..LOCKS {
        let slot = table.add((start as usize + step) % LOCKS);
        if (*slot).lock == lock || (*slot).lock == 0 {
            return Some(slot);
        }
    }
    None
}

/// Who holds `lock`, if that is known.
pub unsafe fn of(lock: u64) -> Option<*mut Thread> {
    let slot = find(lock)?;
    ((*slot).lock == lock && !(*slot).owner.is_null()).then_some((*slot).owner)
}

/// Notes what an event of `thread` did to a lock.
pub unsafe fn note(thread: *mut Thread, lock: u64, kind: Kind) {
    match kind {
        Kind::Lock => {
            if let Some(slot) = slot(lock) {
                let again = (*slot).owner == thread;
                (*slot).depth = if again { (*slot).depth + 1 } else { 1 };
                (*slot).owner = thread;
            }
        }
        Kind::Unlock => {
            if let Some(slot) = slot(lock)
                && (*slot).owner == thread
            {
                (*slot).depth = (*slot).depth.saturating_sub(1);
                if (*slot).depth == 0 {
                    (*slot).owner = core::ptr::null_mut();
                }
            }
        }
        _ => {}
    }
}

/// Whether a word that is a lock says that nobody holds it. Those of Rust's standard library count
/// their holders below the marks of those who wait.
pub const fn is_free(word: u64) -> bool {
    const HOLDERS: u64 = (1 << 30) - 1;
    word & HOLDERS == 0
}

/// Notes what an atomic update of `thread` from `seen` to `stored` did to a word that may be a lock.
/// Of several that share a lock the first is known, until it releases it.
pub unsafe fn note_word(thread: *mut Thread, word: u64, seen: u64, stored: u64) {
    if is_free(stored) {
        note_internal(thread, word);
    }
    let Some(slot) = slot(word) else { return };
    if is_free(stored) || (*slot).owner == thread && stored == seen.wrapping_sub(1) {
        (*slot).owner = core::ptr::null_mut();
    } else if is_free(seen) {
        (*slot).depth = 1;
        (*slot).owner = thread;
    }
}

/// Notes that `thread` freed `word`, which may be that of a lock that Rust's standard library keeps
/// for itself: of such a lock only the surroundings are known.
unsafe fn note_internal(thread: *mut Thread, word: u64) {
    const ALIGNMENT: u64 = 8;
    let last = word & !(ALIGNMENT - 1);
    for back in (0..INTERNAL_LOCK_BYTES).step_by(ALIGNMENT as usize) {
        let lock = last.wrapping_sub(back) | VIRTUAL;
        if of(lock) == Some(thread)
            && let Some(slot) = slot(lock)
        {
            (*slot).owner = core::ptr::null_mut();
        }
    }
}

/// The cycle of threads that wait for each other, if `thread` closes one: for each its number, the
/// code address where it waits, and the lock.
pub unsafe fn cycle(thread: *mut Thread, words: &mut [u64]) -> Option<usize> {
    let mut waiting = thread;
    let mut count = 0;
    loop {
        let triple = words.get_mut(count..count + 3)?;
        let waits_for = (*waiting).waits_for;
        triple.copy_from_slice(&[u64::from((*waiting).entry), (*waiting).waits_at, waits_for]);
        count += 3;
        let owner = if waits_for == 0 { core::ptr::null_mut() } else { (*slot(waits_for)?).owner };
        if owner.is_null() {
            return None;
        }
        if owner == thread {
            return Some(count);
        }
        waiting = owner;
    }
}
