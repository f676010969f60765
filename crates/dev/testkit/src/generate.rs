//! Well-formed traces of a given shape, at random.
//!
//! A trace is made by running threads that do not follow any program: at each turn one of the
//! threads does one of the things it could do just then. Which, is read off a list of numbers, one
//! a turn, so a trace is well formed by construction, and leaving out or lowering numbers gives
//! another, simpler one. That is how the strategies shrink.
//!
//! Each turn costs the number of things that could be done.

mod simulate;

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;

use proptest::strategy::Strategy;
use reweave_base::Rng;
use reweave_trace::Trace;

use crate::fixture;

/// What the traces to generate are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many threads there are.
    pub threads: usize,
    /// How many variables there are.
    pub vars: usize,
    /// How many locks there are.
    pub locks: usize,
    /// How many condition variables there are.
    pub conditions: usize,
    /// How many barriers there are; of every second one the number of parties is known.
    pub barriers: usize,
    /// How many semaphores there are; of every second one the start value is known.
    pub semaphores: usize,
    /// How many objects there are to allocate.
    pub objects: usize,
    /// How many blocks there are to enter.
    pub blocks: usize,
    /// How many locks a thread holds at most at a time.
    pub held_max: usize,
    /// How many turns there are at most; a turn gives an event unless nobody can do anything.
    pub events: usize,
    /// Whether threads but the first start with a fork and may be joined.
    pub forks: bool,
    /// Whether threads take locks that they hold already.
    pub reentrant: bool,
    /// Whether locks are taken in shared mode too.
    pub shared: bool,
    /// Whether there are atomic accesses and fences.
    pub atomics: bool,
    /// Whether there are reads whose writer is not known.
    pub loose: bool,
    /// Whether there are requests, branches and assignments of locals.
    pub notes: bool,
    /// Whether accesses have values.
    pub values: bool,
}

impl Shape {
    const BARE: Self = Self {
        threads: 3,
        vars: 2,
        locks: 2,
        conditions: 0,
        barriers: 0,
        semaphores: 0,
        objects: 0,
        blocks: 0,
        held_max: 2,
        events: 60,
        forks: false,
        reentrant: false,
        shared: false,
        atomics: false,
        loose: false,
        notes: false,
        values: false,
    };

    /// Few enough events that every reordering can be searched: accesses and locks.
    pub const SMALL: Self = Self { events: 14, ..Self::BARE };
    /// Accesses, locks, forks and joins.
    pub const GENERAL: Self = Self { threads: 4, vars: 4, locks: 3, forks: true, ..Self::BARE };
    /// Many locks, few variables.
    pub const LOCKS: Self = Self { threads: 4, locks: 6, held_max: 3, ..Self::BARE };
    /// Locks in each other and in themselves, in both modes, given back in any order.
    pub const NESTED: Self =
        Self { vars: 1, locks: 3, held_max: 5, reentrant: true, shared: true, ..Self::BARE };
    /// Many short-lived threads.
    pub const FORKS: Self = Self { threads: 8, locks: 1, forks: true, ..Self::BARE };
    /// Waits, notifies and timeouts.
    pub const SIGNALS: Self = Self { threads: 4, vars: 1, conditions: 2, ..Self::BARE };
    /// Barriers.
    pub const BARRIERS: Self = Self { threads: 4, vars: 1, locks: 0, barriers: 2, ..Self::BARE };
    /// Semaphores.
    pub const SEMAPHORES: Self = Self { vars: 1, locks: 0, semaphores: 2, ..Self::BARE };
    /// Atomic accesses and fences among plain ones, some of unknown writers.
    pub const ATOMICS: Self = Self { locks: 1, atomics: true, loose: true, ..Self::BARE };
    /// Every operation that there is.
    pub const EVERYTHING: Self = Self {
        threads: 4,
        conditions: 1,
        barriers: 2,
        semaphores: 2,
        objects: 2,
        blocks: 2,
        held_max: 3,
        events: 100,
        forks: true,
        reentrant: true,
        shared: true,
        atomics: true,
        loose: true,
        notes: true,
        values: true,
        ..Self::BARE
    };

    /// Every shape with its name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("small", Self::SMALL),
        ("general", Self::GENERAL),
        ("locks", Self::LOCKS),
        ("nested", Self::NESTED),
        ("forks", Self::FORKS),
        ("signals", Self::SIGNALS),
        ("barriers", Self::BARRIERS),
        ("semaphores", Self::SEMAPHORES),
        ("atomics", Self::ATOMICS),
        ("everything", Self::EVERYTHING),
    ];

    /// The same with so many events at most.
    #[must_use]
    pub const fn events(self, events: usize) -> Self {
        Self { events, ..self }
    }
}

/// A generated trace, which shows itself as a figure when a test fails.
pub struct Drawn(pub Trace);

impl Deref for Drawn {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.0
    }
}

impl Debug for Drawn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", fixture::draw(&self.0))
    }
}

/// The trace of `shape` that `seed` stands for.
#[must_use]
pub fn random(shape: Shape, seed: u64) -> Trace {
    let mut rng = Rng::new(seed);
    let choices: Vec<u16> = (0..shape.events).map(|_| (rng.next() >> 48) as u16).collect();
    from_choices(shape, &choices)
}

/// The trace of `shape` that comes of these choices, one a turn.
///
/// # Panics
/// If the simulation made an ill-formed trace, which is a fault of it or of the trace model.
#[must_use]
pub fn from_choices(shape: Shape, choices: &[u16]) -> Trace {
    match simulate::run(shape, choices).finish() {
        Ok(trace) => trace,
        Err(error) => panic!("simulated from {choices:?}: {error}"),
    }
}

/// Traces of `shape`, shorter ones included; they shrink by leaving out events.
pub fn traces(shape: Shape) -> impl Strategy<Value = Drawn> {
    let choices = proptest::collection::vec(proptest::num::u16::ANY, 0..=shape.events);
    choices.prop_map(move |choices| Drawn(from_choices(shape, &choices)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reweave_trace::OpKind;

    #[test]
    fn every_operation_is_generated() {
        let mut seen = [false; OpKind::ALL.len()];
        for seed in 0..50 {
            for (_, event) in random(Shape::EVERYTHING, seed).events() {
                seen[event.op.kind() as usize] = true;
            }
        }
        let missing: Vec<_> =
            OpKind::ALL.into_iter().filter(|&kind| !seen[kind as usize]).collect();
        assert_eq!(missing, []);
    }

    #[test]
    fn a_seed_always_gives_the_same_trace() {
        for (name, shape) in Shape::ALL {
            assert_eq!(random(shape, 7), random(shape, 7), "{name}");
            assert_ne!(random(shape, 7), random(shape, 8), "{name}");
        }
    }

    #[test]
    fn most_turns_give_an_event() {
        for (name, shape) in Shape::ALL {
            let events: usize = (0..50).map(|seed| random(shape, seed).len()).sum();
            assert!(events >= 50 * shape.events * 9 / 10, "{name}: {events}");
        }
    }

    #[test]
    fn a_figure_gives_its_trace_again() {
        for (name, shape) in Shape::ALL {
            let shape = Shape { values: false, ..shape };
            for seed in 0..50 {
                let figure = fixture::draw(&random(shape, seed));
                assert_eq!(fixture::draw(&fixture::trace(&figure)), figure, "{name}");
            }
        }
    }
}
