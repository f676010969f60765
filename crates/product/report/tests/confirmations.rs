//! What reports say of findings that were replayed in the program.

use std::io::{self, Write};

use expect_test::{Expect, expect};
use reweave_analysis::Settings;
use reweave_catalog::Quiet;
use reweave_report::{Confirmation, Examined, Replayed};

type Report = fn(&mut dyn Write, &[Examined<'_>]) -> io::Result<()>;

fn render(examined: &Examined<'_>, report: Report) -> String {
    let mut out = Vec::new();
    report(&mut out, &[*examined]).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    anstream::adapter::strip_str(&text).to_string()
}

/// What reports say of a race that was replayed.
#[track_caller]
fn check_replayed(replayed: Replayed, report: Report, expected: &Expect) {
    let trace = reweave_testkit::std("T1|w(x)|a.c:1\nT2|w(x)|b.c:9\n");
    let analyses = reweave_catalog::select("races.exact", &[]).expect("there is such an analysis");
    let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
    let confirmations = [Confirmation { id: "R1".to_owned(), replayed }];
    let examined = Examined::new("run.std", &trace, &outcome);
    let examined = Examined { confirmations: &confirmations, ..examined };
    let said = render(&examined, report);
    // Of a page it is what a reader without a script sees.
    let said = said.split_once("<noscript>").map_or(said.as_str(), |(_, plain)| plain);
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| line.contains("onfirmed")).expect("it says so");
    // With a mark before each, so that what stands before the first is seen.
    let marked = lines[at..].iter().take(3).map(|line| format!("|{line}\n"));
    expected.assert_eq(&marked.collect::<String>());
}

fn seen() -> Replayed {
    let details = "T1 and T2 stood before <x>".to_owned();
    Replayed::Confirmed { times: 3, attempts: 3, details }
}

fn unseen() -> Replayed {
    Replayed::NotConfirmed { reason: "T1 never came to a.c:1 in 60 seconds".to_owned() }
}

#[test]
fn text_says_which_findings_happened_in_replays() {
    check_replayed(
        seen(),
        reweave_report::text,
        &expect![[r#"
            |  confirmed: 3 of 3
            |    T1 and T2 stood before <x>
            |
        "#]],
    );
    check_replayed(
        unseen(),
        reweave_report::text,
        &expect![[r#"
            |  not confirmed
            |    T1 never came to a.c:1 in 60 seconds. This does not mean that it cannot happen.
            |
        "#]],
    );
}

#[test]
fn pages_say_which_findings_happened_in_replays() {
    check_replayed(
        seen(),
        reweave_report::html,
        &expect![[r#"
            |  confirmed: 3 of 3
            |    T1 and T2 stood before &lt;x&gt;</pre>
            |</article>
        "#]],
    );
    check_replayed(
        unseen(),
        reweave_report::html,
        &expect![[r#"
            |  not confirmed
            |    T1 never came to a.c:1 in 60 seconds. This does not mean that it cannot happen.</pre>
            |</article>
        "#]],
    );
}

#[test]
fn json_says_which_findings_happened_in_replays() {
    check_replayed(
        seen(),
        reweave_report::json,
        &expect![[r#"
            |      "confirmed": {
            |        "times": 3,
            |        "attempts": 3
        "#]],
    );
    check_replayed(
        unseen(),
        reweave_report::json,
        &expect![[r#"
            |      "not_confirmed": {
            |        "reason": "T1 never came to a.c:1 in 60 seconds"
            |      }
        "#]],
    );
}

#[test]
fn one_finding_and_what_came_of_it_can_be_told_alone() {
    let trace = reweave_testkit::std("T1|w(x)|a.c:1\nT2|w(x)|b.c:9\nT2|w(y)|\nT1|w(y)|\n");
    let analyses = reweave_catalog::select("races.exact", &[]).expect("there is such an analysis");
    let outcome = reweave_catalog::run(&trace, &analyses, &Settings::default(), &Quiet);
    let confirmations = [Confirmation { id: "R1".to_owned(), replayed: unseen() }];
    let examined = Examined::new("run.std", &trace, &outcome);
    let examined = Examined { confirmations: &confirmations, ..examined };
    let mut out = Vec::new();
    let first = &outcome.findings[0];
    reweave_report::confirmation_text(&mut out, &examined, first).expect("a vector takes anything");
    let text = String::from_utf8(out).expect("reports are UTF-8");
    expect![[r#"
        run.std: 4 events, 2 threads, 0 locks, 2 variables

        R1 race  witnessed  races.exact aaff632a90290b3e
          `w(x)` at a.c:1 and `w(x)` at b.c:9 can happen at the same time
            event 1, T1: w(x) at a.c:1, holding no lock
            event 2, T2: w(x) at b.c:9, holding no lock
          not confirmed
            T1 never came to a.c:1 in 60 seconds. This does not mean that it cannot happen.
    "#]]
    .assert_eq(&anstream::adapter::strip_str(&text).to_string());
    let mut out = Vec::new();
    reweave_report::confirmation_json(&mut out, &examined, first).expect("a vector takes anything");
    let json = String::from_utf8(out).expect("reports are UTF-8");
    assert_eq!(json.matches("\"fingerprint\"").count(), 1);
    assert!(json.contains("\"not_confirmed\""));
}
