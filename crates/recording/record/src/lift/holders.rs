//! Who holds which lifted lock, so that what is written is well-formed whatever was missed.
//!
//! A guard may be made in the part of the standard library that is not seen and end in code that
//! is: `io::stdin().lock()`. Its release alone would be a release of a lock that nobody holds, so it
//! is left out. The other way round, a lock that is taken while somebody seems to hold it has been
//! given back unseen, and that is made up for.

use reweave_base::FxHashMap;

/// The holders of one lock.
#[derive(Default)]
struct Holders {
    exclusive: Option<u32>,
    /// Threads that share it, each with how many times.
    shared: Vec<(u32, u32)>,
}

/// A lock and its mode, given back by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) thread: u32,
    pub(super) is_shared: bool,
}

/// The holders of all lifted locks, by address.
#[derive(Default)]
pub(super) struct Locks {
    holders: FxHashMap<u64, Holders>,
}

impl Locks {
    /// Notes that `thread` takes `lock`; `given` is called for each hold that must have ended.
    pub(super) fn take(
        &mut self,
        thread: u32,
        lock: u64,
        is_shared: bool,
        mut given: impl FnMut(Given),
    ) {
        let holders = self.holders.entry(lock).or_default();
        if let Some(thread) = holders.exclusive.take() {
            given(Given { thread, is_shared: false });
        }
        if is_shared {
            match holders.shared.iter_mut().find(|(sharer, _)| *sharer == thread) {
                Some((_, count)) => *count += 1,
                None => holders.shared.push((thread, 1)),
            }
            return;
        }
        for (thread, count) in holders.shared.drain(..) {
            for _ in 0..count {
                given(Given { thread, is_shared: true });
            }
        }
        holders.exclusive = Some(thread);
    }

    /// Whether `thread` holds `lock`, and if so, whether it shares it.
    pub(super) fn mode(&self, thread: u32, lock: u64) -> Option<bool> {
        let holders = self.holders.get(&lock)?;
        let shares = || holders.shared.iter().any(|(sharer, _)| *sharer == thread);
        match holders.exclusive {
            Some(holder) => (holder == thread).then_some(false),
            None => shares().then_some(true),
        }
    }

    /// Notes that `thread` gives `lock` back, and says whether it was known to hold it.
    pub(super) fn give(&mut self, thread: u32, lock: u64, is_shared: bool) -> bool {
        let Some(holders) = self.holders.get_mut(&lock) else { return false };
        let was_held = if is_shared {
            let place = holders.shared.iter().position(|(sharer, _)| *sharer == thread);
            if let Some(place) = place {
                holders.shared[place].1 -= 1;
                if holders.shared[place].1 == 0 {
                    holders.shared.remove(place);
                }
            }
            place.is_some()
        } else {
            holders.exclusive.take_if(|holder| *holder == thread).is_some()
        };
        if holders.exclusive.is_none() && holders.shared.is_empty() {
            self.holders.remove(&lock);
        }
        was_held
    }
}
