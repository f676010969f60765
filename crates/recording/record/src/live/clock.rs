//! Clocks of a running program: how many followed events of each chain come before a moment.
//!
//! Most events are not followed and change no clock, so clocks are shared until they differ: to
//! hand one on costs a count.

use std::rc::Rc;

/// What comes before a moment; nothing, at first.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Option<Rc<Vec<u32>>>);

impl Clock {
    /// Whether nothing comes before.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many events of `chain` come before.
    pub(super) fn get(&self, chain: usize) -> u32 {
        self.0.as_ref().and_then(|times| times.get(chain)).copied().unwrap_or(0)
    }

    /// Whether all that `other` holds comes before.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(theirs)) => {
                Rc::ptr_eq(own, theirs)
                    || (theirs.len() <= own.len()
                        && own.iter().zip(&**theirs).all(|(own, theirs)| theirs <= own))
            }
        }
    }

    /// Puts all that `other` holds before.
    #[inline]
    pub(super) fn join(&mut self, other: &Self) {
        if self.covers(other) {
            return;
        }
        if other.covers(self) {
            *self = other.clone();
            return;
        }
        let (Some(own), Some(theirs)) = (&mut self.0, &other.0) else { return };
        let own = Rc::make_mut(own);
        own.resize(own.len().max(theirs.len()), 0);
        for (own, &theirs) in own.iter_mut().zip(&**theirs) {
            *own = (*own).max(theirs);
        }
    }

    /// Adds an event of `chain`.
    pub(super) fn tick(&mut self, chain: usize) {
        let times = Rc::make_mut(self.0.get_or_insert_default());
        times.resize(times.len().max(chain + 1), 0);
        times[chain] = times[chain].saturating_add(1);
    }
}

/// Puts a moment with `clock` after all that `last` holds, and what comes next after it.
pub(super) fn meet(last: &mut Clock, clock: &mut Clock) {
    clock.join(last);
    last.clone_from(clock);
}
