//! What the tests have in common: predicates, and detectors that look for them.

use reweave_base::{Id, Rng};
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::Bounds;
use reweave_states::enumerate::lexical;
use reweave_states::online::{
    Least, LeastState, OnlineDetector, Options, Outcome, Search, State, replay,
};
use reweave_workload::posets;

use crate::reference;

pub(crate) fn chain(index: usize) -> ChainId {
    ChainId::from_index(index)
}

/// Every combination of few and many workers and places in the queue.
pub(crate) fn options() -> impl Iterator<Item = Options> {
    let sizes = [(0, 0), (0, 1), (0, 1000), (1, 0), (1, 1), (3, 0), (3, 1), (3, 4)];
    sizes.into_iter().map(|(workers, queue_max)| Options { workers, queue_max, ..limits() })
}

pub(crate) fn limits() -> Options {
    Options { workers: 0, queue_max: 4, states_max: u64::MAX, events_max: usize::MAX }
}

pub(crate) fn of_spec(text: &str) -> Poset {
    let clocks = text.parse::<posets::Spec>().expect("the text names a poset").make();
    let mut builder = PosetBuilder::new(clocks.chains_count).expect("there are few chains");
    for (chain, clock) in clocks.events {
        builder.push(chain, &clock).expect("clocks are of a poset");
    }
    builder.finish()
}

pub(crate) fn states_count(poset: &Poset) -> u64 {
    let mut count = 0;
    let all = lexical(poset, &Bounds::all(poset), |_| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(all, Ok(()));
    count
}

/// What is true of a state, by some function of where each thread is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// The labels of the last events add up to at least so much.
    Sum(i64),
    /// One state in so many, in no order.
    Scattered(u64),
    Never,
}

/// The label of an event.
pub(crate) fn value(chain: ChainId, index: u32) -> i64 {
    Rng::new(chain.index() as u64 * 1000 + u64::from(index)).below(100) as i64
}

impl Asked {
    /// By the labels; `indices` may be short of threads that have done nothing.
    fn is_met(self, indices: &[u32], labels: impl Iterator<Item = i64>) -> bool {
        match self {
            Self::Sum(least) => labels.sum::<i64>() >= least,
            Self::Scattered(one_in) => {
                let done = indices.iter().enumerate().filter(|&(_, &index)| index > 0);
                let mix = |code: u64, (at, &index): (usize, &u32)| {
                    Rng::new(code ^ (at as u64 * 977 + u64::from(index))).next()
                };
                done.fold(5, mix).is_multiple_of(one_in)
            }
            Self::Never => false,
        }
    }

    pub(crate) fn online(self, state: &State<'_, i64>) -> bool {
        self.is_met(state.indices(), state.frontier().map(|(.., &label)| label))
    }

    pub(crate) fn offline(self, poset: &Poset) -> Option<Vec<u32>> {
        reference::least(poset, |indices| {
            let last = indices.iter().enumerate().filter(|&(_, &index)| index > 0);
            self.is_met(indices, last.map(|(at, &index)| value(chain(at), index)))
        })
    }
}

/// In which order events are inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Recorded,
    /// Another one that respects the poset.
    Drawn(u64),
}

/// Inserts the events of `poset`, labelled with their values.
pub(crate) fn insert_all(
    poset: &Poset,
    order: Order,
    detector: &OnlineDetector<impl Search<Label = i64>>,
) {
    let Order::Drawn(seed) = order else {
        return replay(poset, value, detector).expect("the detector is new");
    };
    let mut rng = Rng::new(seed);
    let mut state = vec![0; poset.chains_count()];
    poset.chains().for_each(|chain| detector.declare(chain).expect("it has not ended"));
    for _ in 0..poset.len() {
        let enabled: Vec<ChainId> = poset
            .chains()
            .filter(|&chain| state[chain.index()] < poset.length(chain))
            .filter(|&chain| {
                let clock = poset.clock(chain, state[chain.index()] + 1).iter().zip(&state);
                clock.enumerate().all(|(at, (needed, held))| at == chain.index() || needed <= held)
            })
            .collect();
        let chain = enabled[rng.below(enabled.len())];
        state[chain.index()] += 1;
        let index = state[chain.index()];
        let inserted = detector.insert(chain, poset.clock(chain, index), value(chain, index));
        inserted.expect("all before it is inserted");
    }
}

pub(crate) fn detect(
    poset: &Poset,
    asked: Asked,
    order: Order,
    options: Options,
) -> Outcome<LeastState> {
    let search = Least::new(move |state: &State<'_, i64>| asked.online(state));
    let detector = OnlineDetector::new(search, options);
    insert_all(poset, order, &detector);
    detector.finish()
}

/// The answer has a number for each thread that did something or comes before one that did.
pub(crate) fn padded(mut answer: LeastState, chains_count: usize) -> LeastState {
    if let Some(least) = &mut answer.least {
        least.resize(chains_count, 0);
    }
    answer
}

/// A detector that looks at every state.
pub(crate) fn never(
    options: Options,
) -> OnlineDetector<impl Search<Label = (), Answer = LeastState>> {
    OnlineDetector::new(Least::new(|_: &State<'_, ()>| false), options)
}
