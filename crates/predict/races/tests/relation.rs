//! The races of each relation are those of its definition, and what is called witnessed can happen.

use crate::common;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_analysis::{Counter, Evidence, Guarantee, Identities, Proof, Settings, Truncation};
use reweave_base::Id as _;
use reweave_oracle::{races, reachable};
use reweave_races::relation::{self, CP, HB, Relation, RelationRaces, SHB, WCP};
use reweave_races::{Counts, Race, TRIES_MAX};
use reweave_testkit::{Scope, Shape, corpus, soak, traces};
use reweave_trace::{Trace, TraceBuilder, certify};

use common::{findings, run};

/// Every analysis of a relation.
const ALL: [(Relation, RelationRaces); 4] =
    [(Relation::HappensBefore, HB), (Relation::Shb, SHB), (Relation::Wcp, WCP), (Relation::Cp, CP)];

#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    let mut lines = String::new();
    for finding in findings(&HB, &trace, true).0 {
        let events: Vec<_> = finding.events.iter().map(|event| event.number()).collect();
        let loose = finding.evidence.proof().map_or(0, Proof::unknown_reads_count);
        let note = if loose > 0 { format!(", loose reads {loose}") } else { String::new() };
        lines += &format!("{events:?} {}{note}\n", finding.guarantee());
    }
    expected.assert_eq(&lines);
}

#[test]
fn a_lock_taken_after_the_access_orders_nothing() {
    check(
        "
        t1      t2
        w(x)
                w(x)
                acq(m)
                rel(m)
        ",
        &expect![[r#"
            [1, 2] witnessed
        "#]],
    );
}

#[test]
fn lock_order_hides_a_race_from_happens_before_alone() {
    let drawing = "
        t1      t2
        acq(m)
        w(x)
        rel(m)
                acq(m)
                rel(m)
                w(x)
        ";
    check(drawing, &expect![""]);
    let trace = reweave_testkit::trace(drawing);
    let found = |relation| relation::pairs(&trace, relation, None).len();
    assert_eq!(Relation::ALL.map(found), [0, 0, 1, 1]);
}

#[test]
fn an_unordered_pair_behind_a_read_that_would_see_another_write_is_no_witness() {
    check(
        "
        t1      t2
        w(x)
        w(y)
                r(y)
                r(x)
        ",
        &expect![[r#"
            [2, 3] witnessed
            [1, 4] unordered
        "#]],
    );
}

#[test]
fn atomic_accesses_race_with_plain_ones_only() {
    check(
        "
        t1      t2      t3
        aw(x)
                arw(x)
                        r(x)
        ",
        &expect![[r#"
            [1, 3] witnessed
            [2, 3] witnessed
        "#]],
    );
}

#[test]
fn a_schedule_that_runs_a_read_of_an_unknown_writer_is_no_witness() {
    check(
        "
        t1      t2
        w(y)
        w(x)
                r?(y)
                w(x)
        ",
        &expect![[r#"
            [1, 3] witnessed
            [2, 4] unordered, loose reads 1
        "#]],
    );
}

#[test]
fn an_instance_that_runs_no_such_read_stands_for_its_location_pair() {
    let trace =
        reweave_testkit::std("T1|w(x)|a\nT2|w(y)|c\nT2|r?(z)|d\nT2|w(x)|b\nT3|w(x)|b\nT4|w(v)|e\n");
    let (findings, _) = findings(&HB, &trace, false);
    let pair = findings.iter().find(|f| f.locations(&trace) == ["a", "b"]).unwrap();
    let events: Vec<_> = pair.events.iter().map(|event| event.number()).collect();
    assert_eq!((events, pair.guarantee(), pair.count), (vec![1, 5], Guarantee::Witnessed, 2));
}

#[test]
fn the_first_causal_race_that_is_only_a_deadlock_is_labelled_so() {
    let case = corpus::litmus().into_iter().find(|case| case.name == "cp_fig9").unwrap();
    let trace = case.trace();
    let (found, _) = findings(&CP, &trace, true);
    let labels: Vec<_> =
        found.iter().map(|finding| (finding.events[0].number(), finding.guarantee())).collect();
    assert_eq!(labels, [(4, Guarantee::First)]);
}

#[test]
fn an_empty_budget_tries_nothing_and_says_so() {
    let trace = reweave_testkit::std("T1|w(x)|1\nT2|w(x)|2\nT3|w(y)|3\nT1|w(y)|4\n");
    let settings = Settings { budget: 0, ..Settings::default() };
    let (found, coverage) = run(&HB, &trace, &settings);
    let witnessed = found.iter().filter(|f| f.guarantee() == Guarantee::Witnessed).count();
    assert_eq!((found.len(), witnessed), (2, 0));
    assert_eq!(coverage.counter(Counter::Untried), Some(2));
    assert_eq!(coverage.truncated, Some(Truncation::Budget));
}

#[test]
fn instances_that_are_not_tried_leave_a_refuted_location_pair_open() {
    // Happens-before leaves the writes of `x` unordered, but the read of `y` keeps them in order.
    let trace = |count| {
        reweave_testkit::std(&format!(
            "{}T1|w(y)|c\nT2|r(y)|d\nT2|w(x)|b\n",
            "T1|w(x)|a\n".repeat(count)
        ))
    };
    for (count, truncated) in [(TRIES_MAX, None), (TRIES_MAX + 1, Some(Truncation::Capped))] {
        let (found, coverage) = findings(&HB, &trace(count), false);
        let refuted = found.iter().find(|it| it.count == count as u64).unwrap();
        assert_eq!(refuted.guarantee(), Guarantee::Unordered);
        assert_eq!(coverage.truncated, truncated);
        assert_eq!(coverage.counter(Counter::Capped), truncated.map(|_| 1));
    }
}

#[test]
fn a_window_keeps_to_pairs_less_than_so_many_events_apart() {
    let trace = reweave_testkit::std("T1|w(x)|1\nT3|w(y)|2\nT3|w(y)|2\nT2|w(x)|3\n");
    let found = |window| relation::pairs(&trace, Relation::Cp, window).len();
    assert_eq!([None, Some(4), Some(3), Some(0)].map(found), [1, 1, 0, 0]);
}

/// What the pairs of the definition come to, counted from the list.
fn counted(trace: &Trace, races: &[Race]) -> Counts {
    let distinct = |mut keys: Vec<(u32, u32)>| {
        keys.sort_unstable();
        keys.dedup();
        keys.len() as u64
    };
    let site = |event| trace.event(event).site.number();
    let sites = |race: &Race| (site(race.first), site(race.second));
    let var = |race: &Race| trace.event(race.second).op.var().map(|var| (var.number(), 0));
    Counts {
        pairs: races.len() as u64,
        second_events: distinct(races.iter().map(|race| (race.second.number(), 0)).collect()),
        vars: distinct(races.iter().filter_map(var).collect()),
        location_pairs: distinct(
            races.iter().map(sites).map(|(a, b)| (a.min(b), a.max(b))).collect(),
        ),
    }
}

/// The races of `relation` by its definition.
fn defined(trace: &Trace, relation: Relation) -> Vec<Race> {
    let pairs = match relation {
        Relation::HappensBefore => races::happens_before(trace),
        Relation::Shb => races::schedulable(trace),
        Relation::Wcp => races::weakly_causal(trace),
        Relation::Cp => races::causal(trace),
    };
    pairs.into_iter().map(|(first, second)| Race { first, second }).collect()
}

/// Everything that must hold of `trace`, whatever it is.
fn hold(trace: &Trace) -> Result<(), TestCaseError> {
    for (relation, analysis) in ALL {
        let defined = defined(trace, relation);
        prop_assert_eq!(&relation::pairs(trace, relation, None), &defined, "{:?}", relation);
        let grouped = relation::races(trace, relation);
        prop_assert_eq!(grouped.counts, counted(trace, &defined));
        let identities = Identities::new(trace);
        let class = |race: &Race| identities.class_of(trace.event(race.second).op);
        for group in &grouped.groups {
            let own = group.earliest.first().map(class);
            let sites_of = |race: &&Race| {
                let [a, b] = [race.first, race.second].map(|event| trace.event(event).site);
                (a.min(b), a.max(b)) == group.sites && Some(class(race)) == own
            };
            let members: Vec<_> = defined.iter().filter(sites_of).copied().collect();
            let earliest = members.len().min(TRIES_MAX);
            prop_assert_eq!(&group.earliest, &members[..earliest]);
            prop_assert_eq!(group.count, members.len() as u64);
        }
        hold_for_findings(trace, &analysis, &defined)?;
    }
    Ok(())
}

fn hold_for_findings(
    trace: &Trace,
    analysis: &RelationRaces,
    defined: &[Race],
) -> Result<(), TestCaseError> {
    let (all, coverage) = findings(analysis, trace, true);
    prop_assert!(coverage.is_complete());
    let told: Vec<Race> = all
        .iter()
        .map(|finding| Race { first: finding.events[0], second: finding.events[1] })
        .collect();
    prop_assert_eq!(&told[..], defined);
    for finding in all {
        let Evidence::Schedule(proof) = &finding.evidence else {
            prop_assert!(finding.guarantee() != Guarantee::Witnessed);
            continue;
        };
        let certificate = certify(trace, proof.reordering(), proof.goal());
        prop_assert!(
            certificate.is_ok_and(|it| it.unknown_reads_count == proof.unknown_reads_count())
        );
        prop_assert_eq!(proof.goal().named(), finding.events);
        let is_sure = proof.unknown_reads_count() == 0;
        prop_assert_eq!(finding.evidence.guarantee() == Guarantee::Witnessed, is_sure);
    }
    Ok(())
}

#[test]
fn races_are_those_of_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::FORKS.threads(3).events(4),
        Scope::ATOMICS.threads(3).events(4),
    ];
    for scope in scopes {
        scope.for_each(|trace| {
            if let Err(error) = hold(trace) {
                panic!("{error}\n{}", reweave_testkit::draw(trace));
            }
        });
    }
}

/// The same events at so many locations in turn.
fn with_few_sites(trace: &Trace, count: usize) -> Trace {
    let mut builder = TraceBuilder::new();
    *builder.names() = trace.names().clone();
    let sites: Vec<_> = (0..count).map(|at| builder.site(&format!("site {at}"))).collect();
    for (id, event) in trace.events() {
        // Not in a fixed round: threads meet each location in changing order.
        builder.push(event.thread, event.op, sites[id.index() * id.index() % 7 % count]);
    }
    builder.finish().expect("the events are the same")
}

/// Whether each race of `narrow` is one of `wide`.
fn within(narrow: &[Race], wide: &[Race]) -> bool {
    narrow.iter().all(|race| wide.contains(race))
}

proptest! {
    #![proptest_config(soak::config(100))]

    #[test]
    fn races_are_those_of_the_definition(trace in traces(Shape::EVERYTHING)) {
        hold(&trace)?;
    }

    #[test]
    fn races_are_those_of_the_definition_among_locks(trace in traces(Shape::LOCKS)) {
        hold(&trace)?;
    }

    #[test]
    fn races_are_those_of_the_definition_where_locations_repeat(
        trace in traces(Shape::LOCKS),
        sites in 1..5_usize,
    ) {
        hold(&with_few_sites(&trace, sites))?;
    }

    #[test]
    fn weaker_relations_have_more_races(trace in traces(Shape::EVERYTHING), window in 1..80_u32) {
        let [hb, shb, wcp, cp] = Relation::ALL.map(|it| relation::pairs(&trace, it, None));
        prop_assert!(within(&shb, &hb));
        prop_assert!(within(&hb, &cp));
        prop_assert!(within(&cp, &wcp));
        prop_assert!(within(&relation::pairs(&trace, Relation::Cp, Some(window)), &cp));
        let all = Some(trace.len() as u32 + 1);
        prop_assert_eq!(relation::pairs(&trace, Relation::Cp, all), cp);
    }

    #[test]
    fn the_first_race_is_real_or_threads_deadlock(trace in traces(Shape::NESTED.events(30))) {
        let found = reachable::predictable(&trace, 200_000);
        if !found.explored.complete {
            return Ok(());
        }
        for (relation, analysis) in ALL {
            let Some(first) = findings(&analysis, &trace, true).0.into_iter().next() else {
                continue;
            };
            let real = first.guarantee() == Guarantee::Witnessed;
            prop_assert!(real || !found.deadlocks.is_empty() || relation == Relation::Shb);
            let labelled = first.guarantee() != Guarantee::Unordered;
            prop_assert!(labelled || relation == Relation::Shb);
        }
    }
}

#[test]
fn the_litmus_cases_have_the_races_listed_for_them() {
    for case in corpus::litmus() {
        let keys = [
            (Relation::HappensBefore, "hb_races"),
            (Relation::Wcp, "wcp_races"),
            (Relation::Cp, "cp_races"),
        ];
        for (relation, key) in keys {
            let found = common::numbers(&relation::pairs(&case.trace(), relation, None));
            assert_eq!(found, case.numbers(key), "{} {key}", case.name);
        }
    }
}

#[test]
fn recorded_traces_have_as_many_races_as_the_definition_gives() {
    for case in corpus::traces() {
        let trace = case.trace();
        let keys = [(Relation::HappensBefore, "HB"), (Relation::Wcp, "WCP"), (Relation::Cp, "CP")];
        for (relation, key) in keys {
            let counts = relation::races(&trace, relation).counts;
            let found =
                [counts.pairs, counts.second_events, counts.vars, counts.location_pairs].map(Some);
            let expected = &case.expected["definition"][key];
            let expected =
                ["pairs", "second_events", "vars", "loc_pairs"].map(|key| expected[key].as_u64());
            assert_eq!(found, expected, "{} {key}", case.name);
        }
    }
}
