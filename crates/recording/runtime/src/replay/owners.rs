//! Who holds which lock, so that a cycle of waiting threads is seen when it closes.

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::std_events::{INTERNAL_LOCK_BYTES, VIRTUAL};
use crate::sys;
use crate::thread::Thread;
use crate::wire::Kind;

/// How many locks are followed at most; a power of two.
const LOCKS: usize = 1 << 16;

/// How many threads that share a lock are known; of more, those who came first.
const HOLDERS: usize = 8;

#[repr(C)]
struct Slot {
    lock: u64,
    holders: [Holder; HOLDERS],
}

/// A thread that holds a lock, and how often; no thread if the depth is 0.
#[derive(Clone, Copy)]
#[repr(C)]
struct Holder {
    thread: *mut Thread,
    depth: u64,
}

const NOBODY: Holder = Holder { thread: core::ptr::null_mut(), depth: 0 };

impl Slot {
    /// The threads that hold it.
    fn threads(&self) -> impl Iterator<Item = *mut Thread> {
        self.holders.iter().filter(|holder| holder.depth > 0).map(|holder| holder.thread)
    }

    /// `thread` has it, and nobody else unless it `is_shared`.
    fn acquire(&mut self, thread: *mut Thread, is_shared: bool) {
        if !is_shared {
            // What others were not seen to release they do not hold any more.
            let others = self.holders.iter_mut().filter(|holder| holder.thread != thread);
            others.for_each(|holder| *holder = NOBODY);
        }
        let own = self.holders.iter().position(|holder| holder.thread == thread);
        let place = own.or_else(|| self.holders.iter().position(|holder| holder.depth == 0));
        if let Some(place) = place {
            let depth = self.holders[place].depth + 1;
            self.holders[place] = Holder { thread, depth };
        }
    }

    /// `thread` has it once less.
    fn release(&mut self, thread: *mut Thread) {
        if let Some(own) = self.holders.iter_mut().find(|holder| holder.thread == thread) {
            own.depth = own.depth.saturating_sub(1);
            if own.depth == 0 {
                *own = NOBODY;
            }
        }
    }
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

/// Whether `is_wanted` holds of a thread that is known to hold `lock`.
pub unsafe fn any(lock: u64, is_wanted: impl FnMut(*mut Thread) -> bool) -> bool {
    find(lock).is_some_and(|slot| (*slot).lock == lock && (*slot).threads().any(is_wanted))
}

/// Notes what an event of `thread` did to a lock, in shared mode or not.
pub unsafe fn note(thread: *mut Thread, lock: u64, kind: Kind, is_shared: bool) {
    match kind {
        Kind::Lock => {
            if let Some(slot) = slot(lock) {
                (*slot).acquire(thread, is_shared);
            }
        }
        Kind::Unlock => {
            if let Some(slot) = slot(lock) {
                (*slot).release(thread);
            }
        }
        _ => {}
    }
}

/// Whether a word that is a lock says that nobody holds it. Those of Rust's standard library count
/// their holders below the marks of those who wait.
pub const fn is_free(word: u64) -> bool {
    const COUNT: u64 = (1 << 30) - 1;
    word & COUNT == 0
}

/// Notes what an atomic update of `thread` from `seen` to `stored` did to a word that may be a lock.
/// Of several that share a lock the first is known, until it releases it.
pub unsafe fn note_word(thread: *mut Thread, word: u64, seen: u64, stored: u64) {
    if is_free(stored) {
        note_internal(thread, word);
    }
    let Some(slot) = slot(word) else { return };
    if is_free(stored) {
        (*slot).holders = [NOBODY; HOLDERS];
    } else if stored == seen.wrapping_sub(1) && (*slot).threads().any(|it| it == thread) {
        (*slot).release(thread);
    } else if is_free(seen) {
        (*slot).holders = [NOBODY; HOLDERS];
        (*slot).acquire(thread, false);
    }
}

/// Notes that `thread` freed `word`, which may be that of a lock that Rust's standard library keeps
/// for itself: of such a lock only the surroundings are known.
unsafe fn note_internal(thread: *mut Thread, word: u64) {
    const ALIGNMENT: u64 = 8;
    let last = word & !(ALIGNMENT - 1);
    for back in (0..INTERNAL_LOCK_BYTES).step_by(ALIGNMENT as usize) {
        let lock = last.wrapping_sub(back) | VIRTUAL;
        if any(lock, |holder| holder == thread)
            && let Some(slot) = slot(lock)
        {
            (*slot).holders = [NOBODY; HOLDERS];
        }
    }
}

/// The cycle of threads that wait for each other which `thread` closes, if there is one that
/// `is_wanted`: for each its number, the code address where it waits, and the lock.
pub unsafe fn cycle(
    thread: *mut Thread,
    words: &mut [u64],
    is_wanted: &dyn Fn(&[u64]) -> bool,
) -> Option<usize> {
    follow(thread, thread, words, 0, is_wanted)
}

/// Goes on from `waiting` to who holds what it waits for, until that is `first`. Paths end where
/// `words` does, which keeps their number small.
unsafe fn follow(
    first: *mut Thread,
    waiting: *mut Thread,
    words: &mut [u64],
    count: usize,
    is_wanted: &dyn Fn(&[u64]) -> bool,
) -> Option<usize> {
    let waits_for = (*waiting).waits_for;
    let triple = words.get_mut(count..count + 3)?;
    triple.copy_from_slice(&[u64::from((*waiting).entry), (*waiting).waits_at, waits_for]);
    let count = count + 3;
    if waits_for == 0 {
        return None;
    }
    // Who shares a lock and wants it alone waits for the others.
    let others = |holder: &*mut Thread| *holder != waiting;
    for holder in (*slot(waits_for)?).threads().filter(others) {
        if holder == first {
            if is_wanted(&words[..count]) {
                return Some(count);
            }
        } else if let Some(count) = follow(first, holder, words, count, is_wanted) {
            return Some(count);
        }
    }
    None
}
