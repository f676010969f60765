//! Pages to be looked at.

use std::fs;
use std::path::{Path, PathBuf};

use reweave_analysis::{
    Detail, Evidence, Finding, Fingerprint, GlobalState, Kind, Modality, Outcome, Reported,
    Settings, Subject,
};
use reweave_catalog::Quiet;
use reweave_order::poset::Relation;
use reweave_report::{Confirmation, Examined, Replayed, SetAside, Sources};
use reweave_testkit::events;
use reweave_trace::{EndKind, EventId, Goal, Reordering, RunEnd, ThreadEnd, Trace};

use crate::browser::driver::artefacts;

/// A race that a lock handed over by accident hides, a deadlock that did not happen, a block that can
/// be spoiled, and a read that can see something else.
pub(crate) const BANK: &str = "\
main|fork(teller)|bank.c:40
main|fork(auditor)|bank.c:41
teller|w(rate)|bank.c:12
teller|acq(vault)|bank.c:13
teller|w(balance)|bank.c:14
teller|rel(vault)|bank.c:15
auditor|acq(vault)|bank.c:24
auditor|r(limit)|bank.c:25
auditor|acq(book)|bank.c:26
auditor|w(entries)|bank.c:27
auditor|rel(book)|bank.c:28
auditor|rel(vault)|bank.c:29
auditor|r(rate)|bank.c:30
teller|acq(book)|bank.c:16
teller|acq(vault)|bank.c:17
teller|r(balance)|bank.c:18
teller|rel(vault)|bank.c:19
teller|rel(book)|bank.c:20
main|begin(report)|bank.c:43
main|acq(vault)|bank.c:44
main|r(balance)|bank.c:45
main|rel(vault)|bank.c:46
main|acq(vault)|bank.c:47
main|w(balance)|bank.c:48
main|rel(vault)|bank.c:49
main|end(report)|bank.c:50
auditor|acq(vault)|bank.c:31
auditor|w(balance)|bank.c:32
auditor|rel(vault)|bank.c:33
main|join(teller)|bank.c:51
main|join(auditor)|bank.c:52
";

/// What the analyses `only` find in `trace`.
pub(crate) fn found(trace: &Trace, only: &[&str]) -> Outcome {
    let analyses: Vec<_> = only
        .iter()
        .flat_map(|only| reweave_catalog::select(only, &[]).expect("there is such an analysis"))
        .collect();
    reweave_catalog::run(trace, &analyses, &Settings::default(), &Quiet)
}

/// Writes what is reported to a page called `name`.
pub(crate) fn page(name: &str, examined: &[Examined<'_>]) -> PathBuf {
    let mut out = Vec::new();
    reweave_report::html(&mut out, examined).expect("a vector takes anything");
    kept(name, &out)
}

/// Keeps `bytes` as a page called `name`.
pub(crate) fn kept(name: &str, bytes: &[u8]) -> PathBuf {
    let path = artefacts().join(format!("{name}.html"));
    fs::write(&path, bytes).expect("there is room for a page");
    path
}

/// A program of 60 lines that does about what [`BANK`] does.
pub(crate) fn write_bank(folder: &Path) {
    let mut lines: Vec<String> = (1..=60).map(|line| format!("    step({line});")).collect();
    for (line, text) in [
        (12, "    rate = 3;                     /* set before the money moves */"),
        (13, "    pthread_mutex_lock(&vault);"),
        (14, "    balance = balance - amount;"),
        (15, "    pthread_mutex_unlock(&vault);"),
        (24, "    pthread_mutex_lock(&vault);"),
        (25, "    long seen = limit;"),
        (30, "    return seen * rate;           /* nothing orders this read */"),
    ] {
        lines[line - 1] = text.to_owned();
    }
    fs::write(folder.join("bank.c"), lines.join("\n")).expect("there is room for a file");
}

/// The page of [`BANK`], with code, a confirmed finding, and some set aside.
pub(crate) fn bank(name: &str) -> PathBuf {
    let trace = reweave_testkit::std(BANK);
    let outcome = found(
        &trace,
        &["races.exact", "deadlocks.exact", "atomicity.blocks", "determinism.strict"],
    );
    let folder = tempfile::tempdir().expect("there is room for a folder");
    write_bank(folder.path());
    let sources = Sources::new(vec![folder.path().to_owned()], None);
    let id = outcome.findings[0].id.clone();
    let details = "It stopped with both threads waiting.".to_owned();
    let replayed = Replayed::Confirmed { times: 3, attempts: 3, details };
    let confirmations = [Confirmation { id, replayed }];
    let examined = Examined {
        sources: &sources,
        confirmations: &confirmations,
        set_aside: SetAside { known: 2, suppressed: 1 },
        ..Examined::new("bank.std", &trace, &outcome)
    };
    page(name, &[examined])
}

/// A global state in which money is missing.
pub(crate) fn state() -> (Trace, Outcome) {
    let drawing = "
    T1      T2      T3
    w(a)
    w(b)
                    let(i)
    acq(m)
    w(a)
            r(b)
    w(b)
    rel(m)
            acq(m)
            w(seen)
            rel(m)
";
    let mut builder = reweave_testkit::fixture::builder(drawing);
    for (number, value) in [(1, 10), (2, 0), (3, 7), (5, 5), (6, 0), (7, 5), (10, 1)] {
        builder.value_of(events(&[number])[0], value);
    }
    let trace = builder.finish().expect("it is well formed");
    let values = [("a", "5"), ("b", "0"), ("holds(T1, m)", "true")];
    let state = GlobalState {
        predicate: "a + b < 10 && holds(T1, m)".to_owned(),
        modality: Modality::Never,
        order: Relation::TraceOrderPreserving,
        method: "conjunctive",
        cut: [4, 1, 0].into_iter().collect(),
        values: values.map(|(term, value)| (term.to_owned(), Some(value.to_owned()))).to_vec(),
    };
    let entries = state.cut.entries().filter(|&(_, &count)| count > 0);
    let frontier: Vec<EventId> =
        entries.map(|(thread, &count)| trace.thread_events(thread)[count as usize - 1]).collect();
    let reordering = Reordering { base: state.cut.clone(), schedule: Vec::new() };
    let proof = Subject::new(&trace).prove(reordering, Goal::Reaches(frontier.clone()));
    let finding = Finding {
        analysis: "states.find",
        kind: Kind::Predicate,
        events: frontier,
        message: format!("a state meets `{}`", state.predicate),
        count: 1,
        evidence: proof.map_or(Evidence::Unordered, Evidence::Schedule),
        detail: Detail::State(Box::new(state)),
    };
    let fingerprint = Fingerprint::new(&trace, &finding);
    let findings = vec![Reported::new("P1".to_owned(), fingerprint, finding)];
    (trace, Outcome { findings, ..Outcome::default() })
}

/// Thirty workers that meet at a barrier; one waits for another, and two of them race at the end.
pub(crate) fn workers() -> Trace {
    let workers = || 1..=30;
    let mut text: Vec<String> =
        workers().map(|at| format!("main|fork(worker{at})|app.c:11")).collect();
    for at in workers().cycle().take(600) {
        for op in ["acq(queue)", "w(size)", "rel(queue)"] {
            text.push(format!("worker{at}|{op}|app.c:20"));
        }
    }
    for op in ["arrive(phase)", "depart(phase)"] {
        text.extend(workers().map(|at| format!("worker{at}|{op}|app.c:30")));
    }
    let rest = [
        "worker1|acq(m)|app.c:40",
        "worker1|rel(m)|app.c:41",
        "worker1|wait(ready)|app.c:41",
        "worker2|w(flag)|app.c:50",
        "worker2|notify(ready)|app.c:51",
        "worker1|wake(ready)|app.c:41",
        "worker1|acq(m)|app.c:41",
        "worker1|rel(m)|app.c:43",
        "worker1|w(flag)|app.c:44",
        "worker7|r(flag)|app.c:61",
        "main|join(worker1)|app.c:12",
        "main|join(worker2)|app.c:12",
    ];
    text.extend(rest.map(str::to_owned));
    reweave_testkit::std(&text.join("\n"))
}

/// Thirty workers that meet at a barrier again and again, and after each time two of them write a
/// variable: two hundred races.
pub(crate) fn many_workers() -> Trace {
    let workers = || 1..=30;
    let mut text: Vec<String> =
        workers().map(|at| format!("main|fork(worker{at})|crowd.c:11")).collect();
    for round in 0..200 {
        for op in ["arrive(phase)", "depart(phase)"] {
            text.extend(workers().map(|at| format!("worker{at}|{op}|crowd.c:30")));
        }
        for at in [round % 30 + 1, (round + 7) % 30 + 1] {
            text.push(format!("worker{at}|w(item.field{round})|crowd.c:{}", 100 + 50 * at + round));
        }
    }
    reweave_testkit::std(&text.join("\n"))
}

/// A run that ended in a deadlock, and what `analyses` find in it.
pub(crate) fn deadlocked(analyses: &[&str]) -> (Trace, Outcome) {
    let drawing = "
    main      T1      T2
    fork(T1)
    fork(T2)
              req(m)
              acq(m)
                      req(n)
                      acq(n)
              req(n)
                      req(m)
";
    let mut builder = reweave_testkit::fixture::builder(drawing);
    let states = [(7, "waits for lock n, which T2 holds"), (8, "waits for lock m, which T1 holds")];
    let threads = states
        .map(|(number, state)| ThreadEnd { event: events(&[number])[0], state: state.to_owned() });
    let (text, misuses) = (String::new(), Vec::new());
    builder.set_run_end(RunEnd {
        kind: EndKind::Deadlock,
        text,
        threads: threads.to_vec(),
        misuses,
    });
    let trace = builder.finish().expect("it is well formed");
    let outcome = found(&trace, analyses);
    (trace, outcome)
}

/// How many files the places of [`many_races`] are in, on either side.
const MANY_FILES: usize = 97;

/// How many lines each round of [`many_races`] has in a file.
const MANY_LINES: usize = 5;

/// Two threads that share `count` variables, each at places of its own: the one writes under a lock,
/// the other reads after giving another lock back.
pub(crate) fn many_races(count: usize) -> Trace {
    let rounds = (0..count).map(|at| {
        let (file, first) = (at % MANY_FILES, at / MANY_FILES * MANY_LINES + 1);
        let line = |thread: &str, folder: &str, offset: usize, op: &str| {
            format!("{thread}|{op}|src/{folder}/part{file}.c:{}\n", first + offset)
        };
        let write = format!("w(shared.field{at})");
        let read = format!("r(shared.field{at})");
        let worker = ["w(own.size)", "acq(store.lock)", "r(own.size)", &write, "rel(store.lock)"];
        let reader = ["acq(view.lock)", "w(view.size)", "r(view.size)", "rel(view.lock)", &read];
        let worker = worker.iter().enumerate().map(|(at, op)| line("worker", "store", at, op));
        let reader = reader.iter().enumerate().map(|(at, op)| line("reader", "view", at, op));
        worker.chain(reader).collect::<String>()
    });
    reweave_testkit::std(&rounds.collect::<String>())
}

/// Writes the code that `many_races(count)` is of below `folder`.
pub(crate) fn write_many(folder: &Path, count: usize) {
    let lines = count.div_ceil(MANY_FILES) * MANY_LINES + 3;
    for side in ["store", "view"] {
        let folder = folder.join("src").join(side);
        fs::create_dir_all(&folder).expect("there is room for a folder");
        for file in 0..MANY_FILES {
            let line = |line| format!("    {side}_step(part{file}, shared, {line});\n");
            let text: String = (1..=lines).map(line).collect();
            fs::write(folder.join(format!("part{file}.c")), text).expect("there is room");
        }
    }
}
