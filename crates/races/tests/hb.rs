//! The happens-before races of a trace are those of the definition, and what is called witnessed
//! can happen.

use std::ops::ControlFlow;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use reweave_analysis::{
    Analysis, Coverage, Evidence, Finding, Guarantee, Proof, Settings, Sink, Subject, Truncation,
};
use reweave_base::Id as _;
use reweave_races::hb::{self, Counts, HappensBeforeRaces, Race};
use reweave_testkit::{Scope, Shape, corpus, oracle, soak, traces};
use reweave_trace::{Trace, TraceBuilder, certify};

#[derive(Default)]
struct Keep(Vec<Finding>);

impl Sink for Keep {
    fn found(&mut self, finding: Finding) -> ControlFlow<()> {
        self.0.push(finding);
        ControlFlow::Continue(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _: u64, _: u64) {}
}

fn findings(trace: &Trace, all: bool) -> (Vec<Finding>, Coverage) {
    let mut kept = Keep::default();
    let settings = Settings { all, ..Settings::default() };
    let coverage = HappensBeforeRaces.run(&Subject::new(trace), &settings, &mut kept);
    (kept.0, coverage)
}

#[track_caller]
fn check(drawing: &str, expected: &Expect) {
    let trace = reweave_testkit::trace(drawing);
    let line = |finding: &Finding| {
        let events: Vec<_> = finding.events.iter().map(|event| event.number()).collect();
        let loose = finding.evidence.proof().map_or(0, Proof::loose_reads_count);
        let note = if loose > 0 { format!(", loose reads {loose}") } else { String::new() };
        format!("{events:?} {}{note}\n", finding.guarantee())
    };
    expected.assert_eq(&findings(&trace, true).0.iter().map(line).collect::<String>());
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
fn lock_order_hides_a_race() {
    check(
        "
        t1      t2
        acq(m)
        w(x)
        rel(m)
                acq(m)
                rel(m)
                w(x)
        ",
        &expect![""],
    );
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
    let (findings, _) = findings(&trace, false);
    let pair = findings.iter().find(|f| f.locations(&trace) == ["a", "b"]).unwrap();
    let events: Vec<_> = pair.events.iter().map(|event| event.number()).collect();
    assert_eq!((events, pair.guarantee(), pair.count), (vec![1, 5], Guarantee::Witnessed, 2));
}

/// Two threads that write one variable at `count` locations each.
fn crossing(count: usize) -> Trace {
    let lines = (0..count).map(|at| format!("T1|w(x)|a{at}\nT2|w(x)|b{at}\n"));
    reweave_testkit::std(&lines.collect::<String>())
}

#[test]
fn a_budget_is_spent_on_every_location_pair_once_before_any_is_tried_again() {
    // The first pairs fail: their reads would see other writes. The last one passes.
    let trace = reweave_testkit::std(
        "T1|w(x)|1\nT1|w(y)|2\nT2|r(y)|3\nT2|r(x)|4\nT2|r(x)|4\nT2|r(x)|4\nT1|w(v)|5\nT3|w(v)|6\n",
    );
    let tried = |replays: u64| {
        let mut kept = Keep::default();
        let settings = Settings { budget: replays * trace.len() as u64, ..Settings::default() };
        let coverage = HappensBeforeRaces.run(&Subject::new(&trace), &settings, &mut kept);
        let witnessed = kept.0.iter().filter(|f| f.guarantee() == Guarantee::Witnessed).count();
        (kept.0.len(), witnessed, coverage.counter("untried"), coverage.truncated)
    };
    assert_eq!(tried(3), (3, 2, None, Some(Truncation::Budget)));
    assert_eq!(tried(4), (3, 2, None, Some(Truncation::Budget)));
    assert_eq!(tried(5), (3, 2, None, None));
    assert_eq!(tried(1), (3, 1, Some(2), Some(Truncation::Budget)));
    assert_eq!(tried(0), (3, 0, Some(3), Some(Truncation::Budget)));
}

#[test]
fn with_all_each_pair_is_told_once_though_some_are_tried_first() {
    let trace = crossing(12);
    let (findings, coverage) = findings(&trace, true);
    let mut pairs: Vec<_> = findings.iter().map(|finding| finding.events.clone()).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!((pairs.len(), findings.len()), (144, 144));
    assert_eq!(coverage.counter("pairs"), Some(144));
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
    Counts {
        pairs: races.len() as u64,
        second_events: distinct(races.iter().map(|race| (race.second.number(), 0)).collect()),
        vars: distinct(
            races
                .iter()
                .filter_map(|race| trace.event(race.second).op.var())
                .map(|var| (var.number(), 0))
                .collect(),
        ),
        location_pairs: distinct(
            races.iter().map(sites).map(|(a, b)| (a.min(b), a.max(b))).collect(),
        ),
    }
}

/// Everything that must hold of `trace`, whatever it is.
fn hold(trace: &Trace) -> Result<(), TestCaseError> {
    let defined = hb::reference::races(trace);
    prop_assert_eq!(&hb::pairs(trace), &defined);
    let grouped = hb::races(trace);
    prop_assert_eq!(grouped.counts, counted(trace, &defined));
    let total: u64 = grouped.groups.iter().map(|group| group.count).sum();
    prop_assert_eq!(total, grouped.counts.pairs);
    for group in &grouped.groups {
        let sites_of = |race: &&Race| {
            let [a, b] = [race.first, race.second].map(|event| trace.event(event).site);
            (a.min(b), a.max(b)) == group.sites
        };
        let members: Vec<_> = defined.iter().filter(sites_of).copied().collect();
        let earliest = members.len().min(hb::TRIES_MAX);
        prop_assert_eq!(&group.earliest, &members[..earliest]);
    }
    let (all, _) = findings(trace, true);
    let mut told: Vec<Race> = all
        .iter()
        .map(|finding| Race { first: finding.events[0], second: finding.events[1] })
        .collect();
    told.sort_unstable_by_key(|race| (race.second, race.first));
    prop_assert_eq!(told, defined);
    for finding in all {
        let Evidence::Schedule(proof) = &finding.evidence else {
            prop_assert_eq!(finding.guarantee(), Guarantee::Unordered);
            continue;
        };
        let certificate = certify(trace, proof.reordering(), proof.goal());
        prop_assert!(certificate.is_ok_and(|it| it.loose_reads_count == proof.loose_reads_count()));
        prop_assert_eq!(proof.then(), finding.events);
        let is_sure = proof.loose_reads_count() == 0;
        prop_assert_eq!(finding.evidence.guarantee() == Guarantee::Witnessed, is_sure);
    }
    Ok(())
}

#[test]
fn races_are_those_of_the_definition_on_every_small_trace() {
    let scopes = [
        Scope::LOCKS.events(6),
        Scope::LOCKS.threads(3).things(2),
        Scope::FORKS.threads(3).events(5),
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

proptest! {
    #![proptest_config(soak::config(200))]

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
    fn the_first_race_can_always_happen(trace in traces(Shape::GENERAL)) {
        if let Some(first) = findings(&trace, true).0.first() {
            prop_assert_eq!(first.guarantee(), Guarantee::Witnessed);
        }
    }

    #[test]
    fn what_is_witnessed_is_predictable(trace in traces(Shape::SMALL)) {
        let possible = oracle::predictable_races(&trace);
        for finding in findings(&trace, true).0 {
            if finding.guarantee() == Guarantee::Witnessed {
                prop_assert!(possible.contains(&(finding.events[0], finding.events[1])));
            }
        }
    }
}

#[test]
fn the_litmus_cases_have_the_races_listed_for_them() {
    for case in corpus::litmus() {
        let mut found: Vec<Vec<u32>> = hb::pairs(&case.trace())
            .iter()
            .map(|race| vec![race.first.number(), race.second.number()])
            .collect();
        found.sort_unstable();
        assert_eq!(found, case.numbers("hb_races"), "{}", case.name);
    }
}

#[test]
fn recorded_traces_have_as_many_races_as_the_definition_gives() {
    for case in corpus::traces() {
        let (_, coverage) = findings(&case.trace(), false);
        let expected = &case.expected["definition"]["HB"];
        let keys = ["pairs", "second_events", "vars", "loc_pairs"];
        let counters = ["pairs", "second_events", "vars", "location_pairs"];
        let found = counters.map(|name| coverage.counter(name));
        assert_eq!(found, keys.map(|key| expected[key].as_u64()), "{}", case.name);
    }
}
