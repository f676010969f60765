//! Everything that is promised of a predicate, checked at every state.

use reweave_base::{Id, IndexVec};
use reweave_oracle::predicate;
use reweave_order::poset::{ChainId, EventRole, Relation, TracePoset, raw};
use reweave_states::Bounds;
use reweave_states::detect::least_linear;
use reweave_states::mdd::Fold as _;
use reweave_states::predicate::{Class, Conjunction, PosetPredicate, Predicate};
use reweave_testkit::std;
use reweave_trace::{ThreadId, Trace};

use crate::reference::states;

type Cut = IndexVec<ThreadId, u32>;

/// Two threads, a lock, a variable with values and a local.
pub(crate) fn counter() -> Trace {
    std("\
t1|acq(m)|a.c:1:3
t1|r(x)|a.c:2:5|0
t1|let(seen)|a.c:2:1|0
t1|w(x)|a.c:3:5|1
t1|rel(m)|a.c:4:3
t2|w(y)|b.c:1|7
t2|acq(m)|b.c:2
t2|w(x)|b.c:3|2
t2|rel(m)|b.c:4
main|arw(n)|c.c:1|5
")
}

/// The poset of those events of `trace` that matter to `predicate`.
fn relevant_poset(trace: &Trace, predicate: &Predicate, relation: Relation) -> TracePoset {
    let place = |_: &Trace, event| match predicate.is_relevant(event) {
        true => EventRole::Event,
        false => EventRole::Outside,
    };
    TracePoset::new(trace, relation, place).expect("it is small")
}

/// Every state of `trace`.
pub(crate) fn cuts(trace: &Trace, relation: Relation) -> Vec<Cut> {
    let threads = trace.names().threads.entries().map(|(thread, _)| thread).collect();
    let poset = TracePoset::of_threads(trace, relation, threads, raw).expect("it is small");
    let bounds = Bounds::all(poset.poset());
    states(poset.poset(), &bounds).into_iter().map(IndexVec::from_vec).collect()
}

/// What the poset has of `cut`.
fn projected(trace: &Trace, poset: &TracePoset, cut: &Cut) -> Vec<u32> {
    let of_chain = |chain: ChainId| {
        let events = (1..=poset.poset().length(chain)).filter_map(|at| poset.first(chain, at));
        events.filter(|&event| trace.position(event) < cut[poset.threads()[chain]]).count() as u32
    };
    poset.poset().chains().map(of_chain).collect()
}

/// Whether the state meets the predicate, told chain by chain in an order that starts anywhere.
fn folded(placed: &PosetPredicate, state: &[u32], start: usize) -> bool {
    let fold = placed.fold();
    let mut memory = fold.start();
    for at in 0..state.len() {
        let chain = (start + at) % state.len();
        match fold.step(&memory, ChainId::from_index(chain), state[chain]) {
            Some(next) => memory = next,
            None => return false,
        }
    }
    fold.is_met(&memory)
}

/// Whether the class says that `at` meets the goal; none if it does not say.
fn by_class<C: Id>(class: &Class<C>, at: impl Fn(C) -> u32) -> Option<bool> {
    match class {
        Class::Constant(is_met) => Some(*is_met),
        Class::Conjunctive(any) | Class::Linear(any) => {
            Some(any.iter().any(|one: &Conjunction<C>| one.is_met(&at)))
        }
        Class::Sum(sum) => Some(sum.is_met(&at)),
        Class::Pairwise | Class::Stable | Class::Fold => None,
    }
}

/// The least of some states, which is one of them if what they meet is linear.
fn meet<'s>(mut states: impl Iterator<Item = &'s Vec<u32>>) -> Option<Vec<u32>> {
    let first = states.next()?.clone();
    Some(states.fold(first, |least, state| {
        least.iter().zip(state).map(|(one, other)| *one.min(other)).collect()
    }))
}

/// The least states by the algorithms of the class are those by the definition.
fn check_least(placed: &PosetPredicate, poset: &TracePoset) {
    let poset = poset.poset();
    let all = states(poset, &Bounds::all(poset));
    let (Class::Conjunctive(any) | Class::Linear(any)) = placed.class() else { return };
    for one in any {
        let meets = |state: &&Vec<u32>| one.is_met(|chain| state[chain.index()]);
        let least = meet(all.iter().filter(meets));
        let found = least_linear(poset, |cut| one.forbidden(cut));
        assert_eq!(found, least, "{one:?}");
    }
}

/// Everything that is promised of `text`, at every state of `trace`.
#[track_caller]
pub(crate) fn check_everywhere(text: &str, trace: &Trace, relation: Relation) {
    let predicate = Predicate::parse(text, trace).unwrap_or_else(|error| panic!("{error}"));
    let poset = relevant_poset(trace, &predicate, relation);
    let placed = predicate.on(trace, &poset);
    let threads = predicate.threads();
    for cut in cuts(trace, relation) {
        let place = || format!("`{text}` at {cut:?}: {:?}", predicate.goal());
        let is_met = predicate::is_met(text, trace, &cut);
        assert_eq!(predicate.truth(&cut), predicate::truth(text, trace, &cut), "{}", place());
        assert_eq!(predicate.is_met(&cut), is_met, "{}", place());
        let class = predicate.class();
        let said = by_class(class, |thread| cut[thread]);
        assert_eq!(said.unwrap_or(is_met), is_met, "{} {class:?}", place());
        let state = projected(trace, &poset, &cut);
        assert_eq!(placed.is_met(&state), is_met, "{} on chains", place());
        let said = by_class(placed.class(), |chain| state[chain.index()]);
        assert_eq!(said.unwrap_or(is_met), is_met, "{} {:?}", place(), placed.class());
        for start in 0..state.len().max(1) {
            assert_eq!(folded(&placed, &state, start), is_met, "{} folded", place());
        }
        for (thread, &count) in cut.entries() {
            let Some(&next) = trace.thread_events(thread).get(count as usize) else { continue };
            let mut after = cut.clone();
            after[thread] += 1;
            if !predicate.is_relevant(next) || !threads.contains(&thread) {
                assert_eq!(predicate.is_met(&after), is_met, "{} after {next:?}", place());
            }
            if predicate.is_stable() && is_met {
                assert!(predicate.is_met(&after), "{} is stable", place());
            }
        }
    }
    check_least(&placed, &poset);
}
