//! Condition variables: who may wake.

use crate::observe::ThreadNumber;

/// A condition variable, between two steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    /// Counts waits and notifies, to tell which came first.
    clock: u64,
    /// Those that wait, with the time since when, in order of time.
    waiting: Vec<(u64, ThreadNumber)>,
    /// Notifies that have not woken anyone yet, each with its time.
    signals: Vec<u64>,
    /// Those that a notify of all lets wake.
    released: Vec<ThreadNumber>,
}

impl Condition {
    /// `thread` starts to wait; returns since when.
    pub(super) fn wait(&mut self, thread: ThreadNumber) -> u64 {
        self.clock += 1;
        self.waiting.push((self.clock, thread));
        self.clock
    }

    /// One of those that wait now may wake, unless each of them may already.
    pub(super) fn notify(&mut self) {
        self.clock += 1;
        if self.signals.len() < self.waiting.len() {
            self.signals.push(self.clock);
        }
    }

    /// All that wait now may wake.
    pub(super) fn notify_all(&mut self) {
        self.clock += 1;
        self.signals.clear();
        self.released.extend(self.waiting.drain(..).map(|(_, thread)| thread));
    }

    /// Whether `thread`, which has waited since `since`, may wake.
    pub(super) fn can_wake(&self, thread: ThreadNumber, since: u64) -> bool {
        self.signals.last().is_some_and(|&signal| signal > since) && self.is_waiting(thread)
            || self.released.contains(&thread)
    }

    fn is_waiting(&self, thread: ThreadNumber) -> bool {
        self.waiting.iter().any(|&(_, waiting)| waiting == thread)
    }

    /// `thread` wakes, by the first notify that can have woken it: a later one may be the only one
    /// for a thread that came later.
    pub(super) fn wake(&mut self, thread: ThreadNumber, since: u64) {
        if let Some(place) = self.released.iter().position(|&released| released == thread) {
            self.released.remove(place);
            return;
        }
        if let Some(place) = self.signals.iter().position(|&signal| signal > since) {
            self.signals.remove(place);
        }
        self.waiting.retain(|&(_, waiting)| waiting != thread);
    }

    /// How many notifies have not woken anyone yet.
    pub(crate) fn signals_count(&self) -> usize {
        self.signals.len()
    }

    /// Those that wait or were let go all at once, each with how many of the notifies may wake it;
    /// more than that, and when it all happened, does not matter any more.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (ThreadNumber, u64)> {
        let waiting = self.waiting.iter().map(|&(since, thread)| {
            let before = self.signals.partition_point(|&signal| signal < since);
            (thread, (self.signals.len() - before) as u64)
        });
        waiting.chain(self.released.iter().map(|&thread| (thread, u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(condition: &Condition) -> Vec<(ThreadNumber, u64)> {
        condition.standing().collect()
    }

    #[test]
    fn a_notify_is_for_those_that_waited_before_it() {
        let (mut early, mut late) = (Condition::default(), Condition::default());
        let first = early.wait(0);
        early.notify();
        let second = early.wait(1);
        assert!(early.can_wake(0, first) && !early.can_wake(1, second));
        assert_eq!(standing(&early), [(0, 1), (1, 0)]);

        let first = late.wait(0);
        let second = late.wait(1);
        late.notify();
        assert!(late.can_wake(0, first) && late.can_wake(1, second));
        assert_eq!(standing(&late), [(0, 1), (1, 1)]);
        late.wake(1, second);
        assert!(!late.can_wake(0, first));
    }

    #[test]
    fn each_that_wakes_leaves_the_later_notifies_to_the_others() {
        let mut condition = Condition::default();
        let first = condition.wait(0);
        condition.notify();
        let second = condition.wait(1);
        condition.notify();
        condition.notify();
        assert_eq!(condition.signals_count(), 2, "a third has no one to wake");
        condition.wake(0, first);
        assert!(condition.can_wake(1, second));
        let third = condition.wait(2);
        assert!(!condition.can_wake(2, third));
        condition.notify_all();
        assert!(condition.can_wake(1, second) && condition.can_wake(2, third));
        assert_eq!(standing(&condition), [(1, u64::MAX), (2, u64::MAX)]);
    }
}
