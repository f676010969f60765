//! The answers of `find` are those of looking at every state of the whole trace, and at every
//! path; and what it finds is a run that the checker accepts.

use proptest::prelude::*;
use reweave_analysis::{Analysis, Counter, Detail, Gathered, Guarantee, Settings, Subject};
use reweave_base::{Id, IndexVec, Rng};
use reweave_oracle::predicate;
use reweave_order::poset::{Poset, Relation, TracePoset, raw};
use reweave_states::Bounds;
use reweave_states::analyses::{Find, Race};
use reweave_states::detect::definitely;
use reweave_states::enumerate::lexical;
use reweave_states::find::{Answer, find, find_online};
use reweave_states::predicate::{Class, Leaf, Modality, Predicate};
use reweave_testkit::generate::random;
use reweave_testkit::{Scope, Shape, soak, std, traces};
use reweave_trace::{EventId, ThreadId, Trace, VarId};

/// More states than these are not enumerated.
const STATES_MAX: usize = 3_000;

/// The states of all events of `trace`, if they are few.
fn states(poset: &Poset) -> Option<Vec<Vec<u32>>> {
    let mut states = Vec::new();
    let whole = lexical(poset, &Bounds::all(poset), |state| {
        states.push(state.to_vec());
        match states.len() < STATES_MAX {
            true => std::ops::ControlFlow::Continue(()),
            false => std::ops::ControlFlow::Break(()),
        }
    });
    whole.is_ok().then_some(states)
}

/// A predicate over what `trace` has.
fn predicate(trace: &Trace, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let body = expression(trace, &mut rng, 3);
    match rng.below(6) {
        0 => format!("never({body})"),
        1 => format!("always({body})"),
        2 | 3 => format!("definitely({body})"),
        _ => format!("possibly({body})"),
    }
}

fn expression(trace: &Trace, rng: &mut Rng, depth: usize) -> String {
    if depth > 0 && rng.chance(60) {
        let left = expression(trace, rng, depth - 1);
        let right = expression(trace, rng, depth - 1);
        return match rng.below(5) {
            0 | 1 => format!("({left} && {right})"),
            2 => format!("({left} || {right})"),
            3 => format!("!({left})"),
            _ => format!("({left} => {right})"),
        };
    }
    let threads: Vec<&str> = trace.names().threads.entries().map(|(_, name)| name).collect();
    let vars: Vec<&str> = trace.names().vars.entries().map(|(_, name)| name).collect();
    let locks: Vec<&str> = trace.names().locks.entries().map(|(_, name)| name).collect();
    let thread = rng.pick(&threads).copied().unwrap_or("none");
    let other = rng.pick(&threads).copied().unwrap_or("none");
    let number = rng.below(5);
    match rng.below(9) {
        0 => match rng.pick(&vars) {
            Some(var) => format!("`{var}` >= {number}"),
            None => "true".to_owned(),
        },
        1 => match (rng.pick(&vars), rng.pick(&vars)) {
            (Some(one), Some(two)) => format!("`{one}` + `{two}` == {number}"),
            _ => "false".to_owned(),
        },
        2 => match rng.pick(&locks) {
            Some(lock) => format!("holds(\"{thread}\", \"{lock}\")"),
            None => format!("started(\"{thread}\")"),
        },
        3 => match rng.pick(&locks) {
            Some(lock) => format!("count(t: holds(t, \"{lock}\")) >= {}", 1 + rng.below(2)),
            None => format!("count(t: done(t)) >= {number}"),
        },
        4 => format!("position(\"{thread}\") == {number}"),
        5 => format!("position(\"{thread}\") + {number} <= position(\"{other}\")"),
        6 => format!("done(\"{thread}\")"),
        7 => format!("position(\"{thread}\") + position(\"{other}\") >= {number}"),
        _ => format!("sum(t: position(t)) % 3 == {}", rng.below(3)),
    }
}

/// The variable that a leaf is, if several threads write it.
fn shared<C>(leaf: &Leaf<C>) -> Option<VarId> {
    match leaf {
        Leaf::Local(_) => None,
        Leaf::Shared(shared) => Some(shared.var),
    }
}

/// Compares the search with every state of `trace`.
fn check(trace: &Trace, text: &str, relation: Relation) {
    let parsed = Predicate::parse(text, trace).unwrap_or_else(|error| panic!("{error}"));
    let made = TracePoset::new(trace, relation, raw).expect("it is small");
    let Some(states) = states(made.poset()) else { return };
    let cut = |state: &[u32]| {
        let mut cut: IndexVec<ThreadId, u32> = IndexVec::from_elem(0, trace.names().threads.len());
        for (chain, &index) in made.poset().chains().zip(state) {
            cut[made.threads()[chain]] = index;
        }
        cut
    };
    let is_met = |state: &[u32]| predicate::is_met(text, trace, &cut(state));
    let weight = |cut: &IndexVec<ThreadId, u32>| -> usize {
        let is_held = |event: &&EventId| {
            let held = cut.get(trace.event(**event).thread).copied().unwrap_or(0);
            trace.position(**event) < held
        };
        parsed.relevant_events().iter().filter(is_held).count()
    };
    let holds = |small: &IndexVec<ThreadId, u32>, large: &IndexVec<ThreadId, u32>| {
        small.entries().all(|(thread, &count)| count <= large.get(thread).copied().unwrap_or(0))
    };
    let least = states.iter().filter(|state| is_met(state)).map(|state| weight(&cut(state))).min();
    let expected = match parsed.modality() {
        Modality::Definitely => {
            // The writes of a variable that it speaks of come as observed.
            let vars: Vec<VarId> = parsed.goal().leaves.iter().filter_map(shared).collect();
            let poset = made.poset().ordered(|chain, index| {
                let op = trace.event(made.first(chain, index)?).op;
                let var = op.var().filter(|var| op.is_write() && vars.contains(var));
                var.map(Id::index)
            });
            definitely(&poset, usize::MAX, &|| false, is_met).expect("there is room")
        }
        _ => least.is_some(),
    };
    let answer = find(trace, &parsed, relation, u64::MAX, &|| false).expect("it is small");
    assert_eq!(answer.is_met, Some(expected), "{text}: {answer:?}");
    assert!(!answer.is_cut_short);
    assert_eq!(answer.state.is_some(), expected, "{text}: {answer:?}");
    let online =
        find_online(trace, &parsed, relation, 2, u64::MAX, &|| false).expect("it is small");
    assert_eq!(online.is_met, answer.is_met, "{text}: {online:?}");
    let weights = [&online, &answer].map(|answer| answer.state.as_ref().map(weight));
    assert_eq!(weights[0], weights[1], "{text}: {online:?}");
    let Some(state) = answer.state else { return };
    assert!(predicate::is_met(text, trace, &state), "{text}: {state:?}");
    assert_eq!(Some(weight(&state)), least, "{text}: {state:?} by {}", answer.method);
    let mut smaller = states.iter().filter(|other| is_met(other)).map(|other| cut(other));
    assert!(!smaller.any(|other| holds(&other, &state) && !holds(&state, &other)), "{text}");
}

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn it_agrees_with_every_state(drawn in traces(Shape::EVERYTHING.events(14)), seed in any::<u64>()) {
        let text = predicate(&drawn.0, seed);
        check(&drawn.0, &text, Relation::TraceOrderPreserving);
        check(&drawn.0, &text, Relation::HappensBefore);
    }

    #[test]
    fn what_it_finds_in_the_kept_order_the_checker_accepts(
        drawn in traces(Shape::EVERYTHING.events(30)),
        seed in any::<u64>(),
    ) {
        let trace = &drawn.0;
        let text = predicate(trace, seed);
        let predicates = vec![Predicate::parse(&text, trace).unwrap()];
        let find = Find { predicates, relation: Relation::TraceOrderPreserving, is_online: false };
        let mut gathered = Gathered::default();
        let coverage = find.run(&Subject::new(trace), &Settings::default(), &mut gathered);
        prop_assert_eq!(coverage.counter(Counter::Met), Some(gathered.findings.len() as u64));
        for finding in gathered.findings {
            prop_assert!(finding.evidence.proof().is_some(), "{}", text);
            // One run does not show what every run does.
            let is_definite = finding.detail.state().unwrap().modality == Modality::Definitely;
            let is_decided = finding.guarantee() == Guarantee::Decided;
            prop_assert_eq!(is_decided, is_definite, "{}", text);
        }
    }
}

#[test]
fn it_agrees_on_every_small_trace() {
    let texts = ["always(!done(t1) || done(t2))", "definitely(count(t: started(t)) == 1)"];
    for scope in [Scope::LOCKS, Scope::FORKS, Scope::NOTIFIES, Scope::BARRIERS] {
        scope.for_each(|trace| {
            let has = |name| trace.names().threads.entries().any(|(_, own)| own == name);
            if has("t1") && has("t2") {
                for text in texts {
                    check(trace, text, Relation::TraceOrderPreserving);
                }
            }
        });
    }
}

/// Two threads fill in a result and say that it is there; the other way round in the second.
const PUBLISHED: &str = "\
T1|w(data)|a.c:1|5
T1|w(ready)|a.c:2|1
T2|w(ready2)|b.c:1|1
T2|w(data2)|b.c:2|7
T1|acq(m)|a.c:3
T1|rel(m)|a.c:4
T2|acq(m)|b.c:3
T2|rel(m)|b.c:4
T2|r(data)|b.c:5|5
";

fn answer(text: &str) -> Answer {
    let trace = std(PUBLISHED);
    let predicate = Predicate::parse(text, &trace).expect("it is a predicate");
    find(&trace, &predicate, Relation::TraceOrderPreserving, u64::MAX, &|| false)
        .expect("it is small")
}

#[track_caller]
fn method(text: &str, method: &str, state: Option<[u32; 2]>) {
    let answer = answer(text);
    assert_eq!((answer.method, answer.is_met), (method, Some(state.is_some())));
    let found = answer
        .state
        .map(|found| [0, 1].map(|thread| found.as_slice().get(thread).copied().unwrap_or(0)));
    assert_eq!(found, state);
}

#[test]
fn each_class_has_its_way() {
    method("at(T1, \"a.c:3\") && at(T2, \"b.c:2\")", "conjunctive", Some([3, 2]));
    method("holds(T1, m) && holds(T2, m)", "conjunctive", None);
    method("position(T1) <= position(T2) && started(T1)", "linear", Some([1, 1]));
    method("done(T1) && done(T2)", "conjunctive", Some([4, 5]));
    method("position(T1) + position(T2) >= 8", "sum", Some([4, 4]));
    method("position(T1) * position(T2) == 6", "fold", Some([3, 2]));
    method("never(1 > 2)", "constant", None);
    method("always(1 > 2)", "constant", Some([0, 0]));
    method("definitely(started(T1) && started(T2))", "stable", Some([1, 1]));
    method("definitely(position(T1) == 2)", "conjunctive", Some([2, 0]));
    method("definitely(position(T1) == 2 && position(T2) == 1)", "conjunctive", None);
    method("race", "pairwise", None);
}

#[test]
fn a_race_is_told_with_its_state_and_by_variable() {
    let trace = std("T1|w(x)|a\nT1|w(y)|b\nT2|r(y)|c\nT2|w(x)|d\nT1|w(z)|e\nT2|w(z)|f\n");
    let mut gathered = Gathered::default();
    let coverage = Race.run(&Subject::new(&trace), &Settings::default(), &mut gathered);
    assert_eq!(coverage.counter(Counter::ExaminedVars), Some(3));
    let told: Vec<(String, Guarantee)> = gathered
        .findings
        .iter()
        .map(|finding| {
            let Detail::State(state) = &finding.detail else { panic!("it is a state") };
            (state.predicate.clone(), finding.guarantee())
        })
        .collect();
    let expected = [
        ("race on y", Guarantee::Witnessed),
        // Between the two writes of x comes a read that would see something else.
        ("race on x", Guarantee::Unordered),
        ("race on z", Guarantee::Witnessed),
    ];
    let expected: Vec<_> = expected.map(|(text, sure)| (text.to_owned(), sure)).into();
    assert_eq!(told, expected);
    let predicate = Predicate::parse("race", &trace).unwrap();
    assert!(matches!(predicate.class(), Class::Pairwise));
    let answer = find(&trace, &predicate, Relation::TraceOrderPreserving, 1, &|| false).unwrap();
    assert_eq!(answer.state.unwrap().as_slice(), [2, 1]);
}

#[test]
fn what_depends_on_the_order_of_writes_is_said_of_the_observed_one_alone() {
    let trace = std("T1|w(x)|a|1\nT2|w(x)|b|2\n");
    let holds = |text| {
        let predicate = Predicate::parse(text, &trace).unwrap();
        find(&trace, &predicate, Relation::TraceOrderPreserving, u64::MAX, &|| false)
            .unwrap()
            .is_met
    };
    // Were the writes free, a path would end with the other value, and the table says 2.
    assert_eq!(holds("definitely(x == 1)"), Some(true));
    assert_eq!(holds("possibly(x == 2 && !started(T1))"), Some(true));
    assert_eq!(holds("definitely(position(T1) == 1 && !started(T2))"), Some(false));
}

#[test]
fn a_search_that_is_cut_short_is_never_wrong() {
    let mut rng = Rng::new(5);
    for seed in 0..300 {
        let trace = random(Shape::EVERYTHING.events(14), seed);
        let text = predicate(&trace, rng.next());
        let parsed = Predicate::parse(&text, &trace).unwrap();
        let ask = |work_max| {
            find(&trace, &parsed, Relation::TraceOrderPreserving, work_max, &|| false).unwrap()
        };
        let whole = ask(u64::MAX);
        for work_max in [0, 1, 10, 100] {
            let short = ask(work_max);
            assert!(short.is_met.is_none_or(|is_met| Some(is_met) == whole.is_met), "{text}");
            assert!(short.is_met.is_some() || short.is_cut_short, "{text}");
            assert!(short.state.is_none_or(|state| parsed.is_met(&state)), "{text}");
        }
    }
}
