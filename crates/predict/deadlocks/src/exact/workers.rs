//! Several threads, one list of independent things to do.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does `work` on each of `items`, on up to `threads_max` threads, each with a state of its own
/// that `state` makes.
pub(super) fn for_each<T: Send, S>(
    items: &mut [T],
    threads_max: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &mut T) + Sync,
) {
    let threads_count = threads_max.min(items.len());
    let queue = Mutex::new(items.iter_mut());
    let run = || {
        let mut own = state();
        loop {
            // The queue is whole whatever happened to others: nobody fails while holding it.
            let item = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { break };
            work(&mut own, item);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads_count {
            scope.spawn(run);
        }
        run();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_whatever_the_number_of_threads() {
        for threads_max in [0, 1, 2, 5, 100] {
            for items_count in [0, 1, 3, 50] {
                let mut items: Vec<u32> = (0..items_count).collect();
                for_each(&mut items, threads_max, || (), |(), item| *item += 1);
                assert!(items.iter().copied().eq(1..=items_count));
            }
        }
    }
}
