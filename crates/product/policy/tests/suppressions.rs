//! Which findings a policy removes.

use expect_test::{Expect, expect};
use reweave_analysis::{Detail, Evidence, Finding, Fingerprint, Kind, Outcome, Reported};
use reweave_base::Id as _;
use reweave_policy::{Baseline, Policy, Suppressed, Suppressions};
use reweave_trace::{AccessOp, Code, EventId, LockOp, Module, Op, Origin, Trace, TraceBuilder};

/// A race on `hits` and a deadlock over `books` and `cash`, with calls and files of code.
fn bank() -> (Trace, Vec<Reported>) {
    let mut builder = TraceBuilder::new();
    let [first, second] = ["T1", "T2"].map(|name| builder.thread(name));
    let hits = builder.var("hits");
    let [books, cash] = ["books", "cash"].map(|name| builder.lock(name));
    let module = Module { path: "/opt/lib/libbank.so".to_owned(), build_id: String::new() };
    let module = builder.origins().add_module(module);
    let code = builder.origins().add_code(Code { module, offset: 64 });
    let mut push = |thread, op, location: &str, stack: &[&str]| {
        let site = builder.names().site(location, stack.iter().copied());
        let event = EventId::from_index(builder.len());
        builder.push(thread, op, site);
        builder.origin(Origin { code, occurrence: 0 });
        event
    };
    let main = "main (src/main.c:9)";
    let race = [
        push(
            first,
            Op::Access(AccessOp::Write, hits),
            "src/bank.c:3",
            &["count (src/bank.c:3)", main],
        ),
        push(
            second,
            Op::Access(AccessOp::Write, hits),
            "src/bank.c:5",
            &["count_twice (src/bank.c:5)", main],
        ),
    ];
    push(first, Op::Lock(LockOp::Acquire, books), "src/bank.c:20", &[main]);
    let one = push(first, Op::Lock(LockOp::Acquire, cash), "src/bank.c:21", &[main]);
    push(first, Op::Lock(LockOp::Release, cash), "src/bank.c:22", &[main]);
    push(first, Op::Lock(LockOp::Release, books), "src/bank.c:23", &[main]);
    push(second, Op::Lock(LockOp::Acquire, cash), "src/bank.c:30", &[main]);
    let other = push(second, Op::Lock(LockOp::Acquire, books), "src/bank.c:31", &[main]);
    let trace = builder.finish().expect("threads take turns");
    let reported = |id: &str, kind, events: &[EventId]| {
        let finding = Finding {
            analysis: "some",
            kind,
            events: events.to_vec(),
            message: String::new(),
            count: 1,
            evidence: Evidence::Unordered,
            detail: Detail::None,
        };
        let fingerprint = Fingerprint::new(&trace, &finding);
        Reported::new(id.to_owned(), fingerprint, finding)
    };
    let findings =
        vec![reported("D1", Kind::Deadlock, &[one, other]), reported("R1", Kind::Race, &race)];
    (trace, findings)
}

/// For each line of suppressions, what it leaves out.
#[track_caller]
fn check(text: &str, expected: Expect) {
    let (trace, findings) = bank();
    let mut told = String::new();
    for line in text.lines() {
        let mut suppressions = Suppressions::parse("s", line.as_bytes()).expect("it is one");
        let matched = suppressions.matching(&trace, &findings);
        let out = findings.iter().zip(matched).filter(|(_, is_out)| is_out[0]);
        let ids: Vec<&str> = out.map(|(reported, _)| reported.id.as_str()).collect();
        assert_eq!(ids.is_empty(), suppressions.unused(&Kind::ALL).count() == 1, "{line}");
        let out = if ids.is_empty() { "nothing".to_owned() } else { ids.join(" ") };
        told += &format!("{line} -> {out}\n");
    }
    expected.assert_eq(&told);
}

#[test]
fn names_of_all_sorts_are_matched() {
    check(
        "race:count\nrace:^count$\nrace:main\nrace:src/main.c\nrace:^src/bank.c$\nrace:bank.c:5\n\
         race:^hits$\nrace: ^hits$\nrace:libbank\nrace:books\nrace:nowhere",
        expect![[r#"
            race:count -> R1
            race:^count$ -> R1
            race:main -> R1
            race:src/main.c -> R1
            race:^src/bank.c$ -> R1
            race:bank.c:5 -> R1
            race:^hits$ -> R1
            race: ^hits$ -> R1
            race:libbank -> R1
            race:books -> nothing
            race:nowhere -> nothing
        "#]],
    );
}

#[test]
fn a_kind_of_suppression_looks_at_its_own_findings_and_names() {
    check(
        "race_top:count_twice\nrace_top:bank.c\nrace_top:libbank\nrace_top:main\nrace_top:hits\ndeadlock:books\ndeadlock:main\n\
         deadlock:hits\ncalled_from_lib:libbank.so\ncalled_from_lib:main\natomicity:*",
        expect![[r#"
            race_top:count_twice -> R1
            race_top:bank.c -> R1
            race_top:libbank -> nothing
            race_top:main -> nothing
            race_top:hits -> nothing
            deadlock:books -> D1
            deadlock:main -> D1
            deadlock:hits -> nothing
            called_from_lib:libbank.so -> D1 R1
            called_from_lib:main -> nothing
            atomicity:* -> nothing
        "#]],
    );
}

#[test]
fn a_fingerprint_names_one_finding() {
    let (trace, findings) = bank();
    let fingerprint = findings[1].fingerprint.to_string();
    for text in [fingerprint.clone(), fingerprint.to_uppercase(), fingerprint[..8].to_owned()] {
        let line = format!("fingerprint:{text}");
        let mut suppressions = Suppressions::parse("s", line.as_bytes()).unwrap();
        assert_eq!(suppressions.matching(&trace, &findings), [[false], [true]], "{line}");
    }
}

/// A race that is at two places: at the second, `main` holds nothing.
fn race_at_two_places() -> (Trace, Vec<Reported>) {
    let (trace, mut findings) = bank();
    let mut race = findings.remove(1);
    let place = findings.remove(0).finding;
    let place = Finding { kind: Kind::Race, ..place };
    race.places.push((Fingerprint::new(&trace, &place), place));
    (trace, vec![race])
}

#[test]
fn a_fault_goes_when_all_its_places_do_and_else_shows_one_that_is_left() {
    let check = |lines: &str, shown: Option<usize>, left: usize, is_used: bool| {
        let (trace, findings) = race_at_two_places();
        let places: Vec<Finding> = findings[0].findings().cloned().collect();
        let suppressions = Suppressions::parse("s", lines.as_bytes()).expect("they are some");
        let mut policy = Policy { baseline: None, suppressions: vec![suppressions] };
        let mut outcome = Outcome { findings, ..Outcome::default() };
        let removed = policy.filter(&trace, &mut outcome, None);
        let found = outcome.findings.first();
        assert_eq!(found.map(|it| &it.finding), shown.map(|at| &places[at]), "{lines}");
        assert_eq!(found.map_or(0, |it| it.findings().count()), left, "{lines}");
        assert_eq!(removed.suppressed, u64::from(left == 0), "{lines}");
        assert_eq!(policy.unused(&Kind::ALL).count() == 0, is_used, "{lines}");
    };
    check("race:nowhere", Some(0), 2, false);
    check("race:hits", Some(1), 1, true);
    check("race:books", Some(0), 1, true);
    check("race:hits\nrace:books", None, 0, true);
    // Whoever names a fault means all of it, by whichever place.
    let (_, findings) = race_at_two_places();
    for name in findings[0].fingerprints() {
        check(&format!("fingerprint:{name}"), None, 0, true);
    }
}

#[test]
fn a_new_place_of_a_known_fault_is_new() {
    let (trace, findings) = race_at_two_places();
    let names: Vec<String> = findings[0].fingerprints().map(|it| it.to_string()).collect();
    let report = |names: &[String]| {
        let places = names[1..].iter().map(|name| format!("{{\"fingerprint\": \"{name}\"}}"));
        format!(
            "{{\"schema\": \"reweave/1\", \"findings\": [{{\"fingerprint\": \"{}\", \
             \"kind\": \"race\", \"places\": [{}]}}]}}",
            names[0],
            places.collect::<Vec<_>>().join(", ")
        )
    };
    let mut turned = names.clone();
    turned.rotate_left(1);
    for (text, shown) in [
        (report(&names), None),
        (report(&turned), None),
        (report(&names[..1]), Some(1)),
        (report(&names[1..]), Some(0)),
        (names[1].clone(), None),
    ] {
        let baseline = Baseline::parse("known", text.as_bytes()).expect("it is one");
        let mut policy = Policy { baseline: Some(baseline), suppressions: Vec::new() };
        let mut outcome = Outcome { findings: findings.clone(), ..Outcome::default() };
        let removed = policy.filter(&trace, &mut outcome, None);
        let left: Vec<String> =
            outcome.findings.iter().map(|it| it.fingerprint.to_string()).collect();
        let expected: Vec<String> = shown.map(|at| names[at].clone()).into_iter().collect();
        assert_eq!(left, expected, "{text}");
        assert_eq!(removed.known, u64::from(shown.is_none()));
        assert_eq!(policy.not_found(&Kind::ALL).count(), 0);
    }
}

#[test]
fn what_is_left_keeps_its_name_and_all_that_match_are_used() {
    let (trace, findings) = bank();
    let known = findings[0].fingerprint.to_string();
    let parse = |text: &str| Suppressions::parse("s", text.as_bytes()).unwrap();
    let mut policy = Policy {
        baseline: Some(Baseline::parse("base", known.as_bytes()).unwrap()),
        suppressions: vec![parse("race:hits\nrace:count"), parse("deadlock:cash\nrace:x")],
    };
    let mut outcome = Outcome { findings: findings.clone(), ..Outcome::default() };
    let removed = policy.filter(&trace, &mut outcome, None);
    assert_eq!(removed, Suppressed { known: 0, suppressed: 2 });
    let unused: Vec<usize> = policy.unused(&Kind::ALL).map(|unused| unused.line).collect();
    assert_eq!((unused, policy.not_found(&Kind::ALL).count()), (vec![2], 0));
    policy.suppressions.clear();
    let mut outcome = Outcome { findings, ..Outcome::default() };
    assert_eq!(
        policy.filter(&trace, &mut outcome, Some(5)),
        Suppressed { known: 1, suppressed: 0 }
    );
    assert_eq!(outcome.findings[0].id, "R1");
}
