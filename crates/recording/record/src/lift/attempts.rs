//! Where a thread first tried to take the lock that it then waited for.
//!
//! A replay runs another schedule, in which a lock that was waited for may be free. So what is
//! logged where a lock is taken slowly is told as if it had been taken where it was first tried: the
//! trace counts the events of a code address as a run does in which no lock is ever waited for.

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, flag};

/// How an event counts among those of its thread at its code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As one of its own.
    One,
    /// As one with the event before it at the address.
    WithLast,
    /// As one with the event after it at the address.
    WithNext,
}

/// Flags that no runtime sets.
const WITH_LAST: u16 = 1 << 15;
const WITH_NEXT: u16 = 1 << 14;
const _: () = assert!(
    (flag::TRY | flag::TIMED_OUT | flag::RECURSIVE | flag::SHARED) & (WITH_LAST | WITH_NEXT) == 0,
    "the runtime has flags of its own"
);

impl Count {
    /// How `event` counts.
    #[must_use]
    pub const fn new(event: &Event) -> Self {
        if event.flags & WITH_LAST != 0 {
            Self::WithLast
        } else if event.flags & WITH_NEXT != 0 {
            Self::WithNext
        } else {
            Self::One
        }
    }

    const fn flags(self) -> u16 {
        match self {
            Self::One => 0,
            Self::WithLast => WITH_LAST,
            Self::WithNext => WITH_NEXT,
        }
    }
}

/// What a thread did last to get a lock.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    lock: u64,
    /// Where it looked at the lock before it tried, if it did.
    look: Option<u64>,
    /// Where it tried in vain.
    trial: Option<u64>,
}

/// The attempts of all threads.
#[derive(Default)]
pub(super) struct Attempts {
    last: FxHashMap<u32, Attempt>,
    /// Where a lock is tried after it was looked at and found free, by where it was looked at.
    trials: FxHashMap<u64, u64>,
}

impl Attempts {
    /// `thread` looks at `lock` to see whether it may be tried.
    pub(super) fn look(&mut self, thread: u32, lock: u64, code: u64) {
        self.last.insert(thread, Attempt { lock, look: Some(code), trial: None });
    }

    /// `thread` tried to take `lock` at `code`; if it did not succeed, it will wait.
    pub(super) fn try_it(&mut self, thread: u32, lock: u64, code: u64, succeeded: bool) {
        let before = self.last.remove(&thread).filter(|attempt| attempt.lock == lock);
        let look = before.and_then(|attempt| attempt.look);
        if let Some(look) = look {
            self.trials.insert(look, code);
        }
        if !succeeded {
            self.last.insert(thread, Attempt { lock, look, trial: Some(code) });
        }
    }

    /// Puts `event`, which says that `thread` asks for or took the lock at its address slowly, where
    /// the lock was first tried.
    pub(super) fn place(&mut self, thread: u32, event: &mut Event, is_taken: bool) {
        let last = match is_taken {
            true => self.last.remove(&thread),
            false => self.last.get(&thread).copied(),
        };
        let Some(attempt) = last.filter(|last| last.lock == event.address) else { return };
        let trial = attempt.look.and_then(|look| self.trials.get(&look));
        let (code, count) = match (attempt.trial, trial) {
            (Some(code), _) => (code, Count::WithLast),
            (None, Some(&code)) if is_taken => (code, Count::One),
            (None, Some(&code)) => (code, Count::WithNext),
            // No replay comes by where it was taken unless it waits there too.
            (None, None) if is_taken => (0, Count::One),
            (None, None) => return,
        };
        event.code = code;
        event.flags |= count.flags();
    }
}
