//! Which specifications are inferred from runs of rebuilt programs, and what does it take, beside
//! what the paper on NDetermin printed?
//!
//! The paper's programs are rebuilt in `corpus/programs`. The first table has the columns of the
//! paper's Table 1, the second what the inference took, the third what slicing and grouping save,
//! the fourth how much of an answer is the seed. Counts repeat exactly.

mod published;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use reweave_exec::{Ending, Exploration, Limits, Run, explore, explore_sequential};
use reweave_ndseq::{
    Answer, Inference, Inferrer, Known, Placement, RunError, Settings, Unneeded, infer,
};
use reweave_trace::Trace;
use reweave_workflows::inference::{self, Request, Validation};

use super::programs::{Loaded, RUNS, Size, names};
use super::{Shown, best_of, machine};
use crate::tree::Tree;
use published::PUBLISHED;

/// The seed of the first of the runs that are looked at together.
const SEED: u64 = 1;

const HEAD: &str = "\
# Nondeterministic sequential specifications

Where `if (*)` must stand, inferred from five runs of each program of [`corpus/programs`](../../corpus/README.md), beside the
published numbers. Made by `cargo run --release -p xtask -- tables ndseq --full --write`; without `--full` the programs are small.

The published numbers are those of Table 1 of Burnim, Elmas, Necula and Sen, *NDetermin: Inferring Nondeterministic Sequential
Specifications for Parallelism Correctness* (UCB/EECS-2011-143). **The programs are ours, not theirs**: written anew in our language, in
the style of the benchmarks and with their parallel structure, their synchronisation and their faults, but much shorter and with
fixed-point numbers. Sizes were chosen to come near the published numbers of events where that is cheap. So that events and slices
differ is no result. Nor is every count of `if (*)`:

- `stack` counts its swaps, so that no task mistakes a top that went and came back for one that stayed. Without the count it was
  impossible, as soon as a run showed that; its results were right all the same.
- `meshrefine` has two kinds of tasks, each with a loop that tries again, because two is what is published. A version with a worklist that
  all tasks share was impossible: the order in which they take contradicts that in which they commit.
- `queue` is as in the literature. Its small runs need 2, most of them; its large runs are impossible, see the last table.

The other counts came out as published at once.

As in the paper the five runs are directed towards races; the seeds are 1 to 5.
";

/// The tables.
pub(super) fn table(tree: &Tree, with_times: bool, is_full: bool) -> anyhow::Result<String> {
    let size = if is_full { Size::Large } else { Size::Small };
    let mut table = HEAD.to_owned();
    if with_times {
        write!(table, "\nMeasured on: {}.\n", machine())?;
    }
    let mut rows = Vec::new();
    for name in order(tree) {
        rows.push(Row::measure(tree, &name, size, with_times)?);
    }
    table.push_str(&comparison(&rows));
    table.push_str(&costs(&rows));
    table.push_str(&optimisations(tree, &rows, size, with_times)?);
    table.push_str(&seeds(tree)?);
    Ok(table)
}

/// How many placements an answer has, in a word.
fn count(answer: &Answer) -> String {
    match answer {
        Answer::Unneeded(_) => "0".to_owned(),
        Answer::Specification(placements) => placements.len().to_string(),
        Answer::Impossible(_) => "impossible".to_owned(),
        Answer::NoneLeft => "none left".to_owned(),
        Answer::Exhausted { lower_bound, .. } => format!("at least {lower_bound}"),
    }
}

/// Where the placements of an answer stand, or why there are none.
fn place(answer: &Answer, trace: &Trace) -> String {
    match answer {
        Answer::Unneeded(Unneeded::Serializable) => "serializable".to_owned(),
        Answer::Unneeded(Unneeded::IrrelevantConflicts) => "conflicts do not matter".to_owned(),
        Answer::Unneeded(Unneeded::OwnPlacements) => "its own do".to_owned(),
        Answer::Specification(placements) => lines(placements, trace),
        Answer::Impossible(_) => "a cycle of conflicts that all matter".to_owned(),
        Answer::NoneLeft | Answer::Exhausted { .. } => String::new(),
    }
}

fn lines(placements: &[Placement], trace: &Trace) -> String {
    let lines = placements.iter().filter_map(|placement| placement.lines(trace.flow()?));
    let lines: Vec<String> = lines.map(|(first, last)| format!("{first}–{last}")).collect();
    format!("lines {}", lines.join(", "))
}

/// A program and what its first runs are.
fn runs(tree: &Tree, name: &str, size: Size) -> anyhow::Result<(Loaded, Vec<Run>)> {
    let loaded = Loaded::new(tree, name, size)?;
    let runs = loaded.runs(SEED)?;
    Ok((loaded, runs))
}

const COMPARISON_HEAD: &str = "
## Beside the paper

*Lines* are those of the application and of the library it uses; ours are without comments. *Focus* are statements that write the
program's result. *Events* are those of the last of the five runs, as far as they count: accesses of shared variables, assignments of
locals, and branches; *sliced out* are those on which the result does not depend. The second column of our rows says where the `if (*)`
stand.

*Correct?* was answered by hand in the paper. Ours goes through **all** runs of the small program and all runs of the sequential program
that is inferred for it, and is *yes* if every result of the first is one of the second, and the assertions of the second hold. Before it
stands the number of `if (*)` for the small program, in brackets behind it how many results the two have. Where there is no specification
it says how many of the results the program has in no run of one task after the other.

| benchmark | | lines | parallel constructs | focus | events | sliced out | `if (*)` | correct? |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

/// How often a time is taken.
const TRIES: usize = 3;

/// What was measured of one program.
struct Row {
    name: String,
    inference: Inference,
    /// How many threads the last run has.
    threads_count: usize,
    /// How long making ready and searching took, if that was measured.
    times: Option<(Duration, Duration)>,
    sizes: [usize; 3],
    place: String,
    correct: String,
}

/// All programs: those of the paper first, in its order.
fn order(tree: &Tree) -> Vec<String> {
    let mut order: Vec<String> = PUBLISHED.iter().map(|row| row.program.to_owned()).collect();
    let others: Vec<String> =
        names(tree).into_iter().filter(|name| !order.contains(name)).collect();
    order.extend(others);
    order
}

impl Row {
    fn measure(tree: &Tree, name: &str, size: Size, with_times: bool) -> anyhow::Result<Self> {
        let (loaded, runs) = runs(tree, name, size)?;
        let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
        let (ready, solved, inference) = timed(&traces, if with_times { TRIES } else { 1 })?;
        let last = traces[traces.len() - 1];
        Ok(Self {
            name: name.to_owned(),
            threads_count: last.names().threads.len(),
            times: with_times.then_some((ready, solved)),
            sizes: [
                loaded.lines_count(),
                loaded.constructs_count(),
                loaded.focus_statements_count(),
            ],
            place: place(&inference.answer, last),
            correct: correct(&Loaded::new(tree, name, Size::Small)?)?,
            inference,
        })
    }

    /// Its row, in the columns of [`COMPARISON_HEAD`].
    fn row(&self) -> String {
        let (events, sliced_out) = self
            .inference
            .statistics
            .runs
            .last()
            .map_or((0, 0), |run| (run.events, run.sliced_out));
        let [lines, constructs, focus_statements] = self.sizes;
        let is_published = PUBLISHED.iter().any(|row| row.program == self.name);
        let name = if is_published {
            format!("our program, `{}`", self.name)
        } else {
            format!("`{}`", self.name)
        };
        format!(
            "| {name} | {} | {lines} | {constructs} | {focus_statements} | {events} | \
             {sliced_out} | {} | {} |\n",
            self.place,
            count(&self.inference.answer),
            self.correct,
        )
    }
}

/// What is inferred from `traces`, and the best times of at most `tries` for making ready and for
/// the rest.
fn timed(traces: &[&Trace], tries: usize) -> Result<(Duration, Duration, Inference), RunError> {
    let once = || {
        let (ready, inferrer) = best_of(1, || Inferrer::new(traces, &Settings::default()));
        let mut inferrer = inferrer?;
        let (solved, inference) = best_of(1, || inferrer.infer());
        Ok((ready, solved, inference))
    };
    let (mut ready_best, mut solved_best, mut last) = once()?;
    for _ in 1..tries {
        let (ready, solved, inference) = once()?;
        ready_best = ready_best.min(ready);
        solved_best = solved_best.min(solved);
        last = inference;
    }
    Ok((ready_best, solved_best, last))
}

/// The table of `rows`, those of the paper between them.
fn comparison(rows: &[Row]) -> String {
    let mut table = COMPARISON_HEAD.to_owned();
    for row in rows {
        let published = PUBLISHED.iter().find(|published| published.program == row.name);
        table.push_str(&published.map_or(String::new(), |published| published.row()));
        table.push_str(&row.row());
    }
    table
}

/// Whether what is inferred for a program holds for all its runs.
fn correct(loaded: &Loaded) -> anyhow::Result<String> {
    let limits = Limits::default();
    let request = Request {
        plan: Loaded::plan(SEED),
        settings: Settings::default(),
        validation: Some(limits),
    };
    let Loaded { source, program, code, .. } = loaded;
    let inferred = inference::infer(source, program, code, &request, &|| true)?;
    let count = count(&inferred.inference.answer);
    Ok(match inferred.validation {
        Validation::Valid { parallel, sequential } => {
            let repeated = inferred.runs.len() as u32 > request.plan.runs_count;
            let more = if repeated || !inferred.rejected.is_empty() { ", repeated" } else { "" };
            format!("{count}: yes ({parallel}, {sequential}{more})")
        }
        Validation::Faulty(_) | Validation::Deadlock(_) => {
            format!("{count}: no, the program fails")
        }
        Validation::Unknown => format!("{count}: too many runs to tell"),
        Validation::NotAsked => {
            let parallel = results(&explore(code, &limits));
            let sequential = results(&explore_sequential(code, &limits));
            let strange = parallel.difference(&sequential).count();
            format!("{count}: {strange} of {} results", parallel.len())
        }
    })
}

fn results<W>(exploration: &Exploration<W>) -> BTreeSet<Vec<i64>> {
    let outcomes = exploration.outcomes.iter().map(|(outcome, _)| outcome);
    let finished = outcomes.filter(|outcome| outcome.ending == Ending::Finished);
    finished.map(|outcome| outcome.result.clone()).collect()
}

const COSTS_HEAD: &str = "
## What it takes

*Cyclic* are the runs, of five, whose conflicts have a cycle. Where none has, where no cycle matters, or where one matters whatever is
left out, no solver is asked, and there are no variables. *Kept* are the events of the last run that matter whatever is left out;
*candidates* are the ranges of statements that an `if (*)` could enclose; *cycles* are the clauses of cycles, found as needed in so many
*rounds*. Times are of all five runs together, on one core, the best of three: *ready* is from the runs in memory to the first question
for the solver, *solved* from there to the answer. The paper gives no times but \"milliseconds\" for most and \"several seconds\" for
a few large ones.

| program | threads | cyclic | kept | candidates | variables | clauses | cycles | rounds | ready | solved |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const OPTIMISATIONS_HEAD: &str = "
## What is known beforehand

The programs that need the solver, or would without the forced set. *Targets*: only the last writes of the result are known to be kept,
constraint (A) of the paper. *Slice*: the dynamic slice is, constraint (A'). *Forced*: all that can be known is; this is what is used,
and it answers *impossible* without the solver. *Grouped*: moreover events of a statement that is not needed share a variable, section
4.3 of the paper, which may cost placements. Times are of all, from the runs in memory to the answer. Clauses are made only for what a
cycle leads to, so that slicing saves less here than it would where whole runs are encoded.

| program | known | variables | clauses | cycles | rounds | `if (*)` | time |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// What is compared.
const COMPARED: [(&str, Known, bool); 4] = [
    ("targets", Known::Targets, false),
    ("slice", Known::Slice, false),
    ("forced", Known::Forced, false),
    ("grouped", Known::Forced, true),
];

/// The table of what inference took.
fn costs(rows: &[Row]) -> String {
    let rows: String = rows.iter().map(costs_row).collect();
    format!("{COSTS_HEAD}{rows}")
}

/// The row of one program, in the columns of [`COSTS_HEAD`].
fn costs_row(row: &Row) -> String {
    let statistics = &row.inference.statistics;
    let cyclic = statistics.runs.iter().filter(|run| !run.is_serializable).count();
    let kept = statistics.runs.last().map_or(0, |run| run.forced);
    let (ready, solved) = row.times.map_or((String::new(), String::new()), |(ready, solved)| {
        (Shown(ready).to_string(), Shown(solved).to_string())
    });
    let solved = if statistics.clauses == 0 { String::new() } else { solved };
    format!(
        "| {} | {} | {cyclic} | {kept} | {} | {} | {} | {} | {} | {ready} | {solved} |\n",
        row.name,
        row.threads_count,
        statistics.candidates,
        statistics.variables,
        statistics.clauses,
        statistics.cycles,
        statistics.rounds,
    )
}

/// The table of what is known beforehand.
fn optimisations(
    tree: &Tree,
    rows: &[Row],
    size: Size,
    with_times: bool,
) -> anyhow::Result<String> {
    let mut table = OPTIMISATIONS_HEAD.to_owned();
    let tries = if with_times { TRIES } else { 1 };
    for row in rows.iter().filter(|row| !matches!(row.inference.answer, Answer::Unneeded(_))) {
        let (_, runs) = runs(tree, &row.name, size)?;
        let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
        for (word, known, grouping) in COMPARED {
            let settings = Settings { known, grouping, ..Settings::default() };
            let (time, inference) = best_of(tries, || infer(&traces, &settings));
            let inference = inference?;
            let statistics = &inference.statistics;
            writeln!(
                table,
                "| {} | {word} | {} | {} | {} | {} | {} | {} |",
                row.name,
                statistics.variables,
                statistics.clauses,
                statistics.cycles,
                statistics.rounds,
                count(&inference.answer),
                if with_times { Shown(time).to_string() } else { String::new() },
            )?;
        }
    }
    Ok(table)
}

const SEEDS_HEAD: &str = "
## How much is the seed

The small programs, a hundred times five runs each, with seeds from 1 on: how often each number of `if (*)` is inferred. Programs all of
whose answers are 0 are left out.

Fewer than published, or none at all: the five runs did not show all that can happen. That `queue` is sometimes impossible is no fault
of the queue. A task that finds `tail` one behind moves it on for the task that it belongs to, a third task sees that, and only then
does the first one append its own node. So the first task comes both before and after the third, and the result depends on where `tail`
was. No sequential run does the same, with or without `if (*)`, though one has the same result: the method is stricter than it need be.
The large runs show this too; the published one has 325 events.

| program | published | inferred |
| --- | ---: | --- |
";

/// How many times five runs are looked at.
const SETS: u64 = 100;

/// The table.
fn seeds(tree: &Tree) -> anyhow::Result<String> {
    let mut table = SEEDS_HEAD.to_owned();
    for name in order(tree) {
        let loaded = Loaded::new(tree, &name, Size::Small)?;
        let counts = answers(&loaded)?;
        if counts.keys().all(|count| count == "0") {
            continue;
        }
        let published = PUBLISHED.iter().find(|row| row.program == name);
        let published = published.map_or(String::new(), |row| {
            row.placements.map_or("impossible".to_owned(), |count| count.to_string())
        });
        let counts: Vec<String> =
            counts.iter().map(|(count, times)| format!("{count}: {times}")).collect();
        writeln!(table, "| {} | {published} | {} |", loaded.name, counts.join(", "))?;
    }
    Ok(table)
}

/// How often each number of placements is inferred.
fn answers(loaded: &Loaded) -> anyhow::Result<BTreeMap<String, u32>> {
    let mut counts = BTreeMap::new();
    for set in 0..SETS {
        let runs = loaded.runs(1 + set * u64::from(RUNS))?;
        let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
        let answer = infer(&traces, &Settings::default())?.answer;
        *counts.entry(count(&answer)).or_default() += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tree::root;
    use reweave_lang::format;

    fn expected(tree: &Tree) -> BTreeMap<String, String> {
        let path = "corpus/programs/expected.json";
        let (_, text) = tree.texts().find(|&(found, _)| found == path).unwrap();
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let word = |value: &serde_json::Value| match value {
            serde_json::Value::String(word) => word.clone(),
            number => number.to_string(),
        };
        let entries = json.as_object().unwrap().iter();
        entries.map(|(name, case)| (name.clone(), word(&case["placements"]))).collect()
    }

    #[test]
    fn every_program_has_the_expected_answer() {
        let tree = Tree::load(&root()).unwrap();
        let mut found = BTreeMap::new();
        for name in names(&tree) {
            let (_, runs) = runs(&tree, &name, Size::Small).unwrap();
            let traces: Vec<&Trace> = runs.iter().map(|run| &run.trace).collect();
            let answer = infer(&traces, &Settings::default()).unwrap().answer;
            if name == "fig1" {
                assert_eq!(place(&answer, traces[0]), "lines 5–10");
            }
            found.insert(name, count(&answer));
        }
        assert_eq!(found, expected(&tree));
    }

    #[test]
    fn what_is_expected_is_what_is_published() {
        let tree = Tree::load(&root()).unwrap();
        let expected = expected(&tree);
        for row in PUBLISHED {
            let published =
                row.placements.map_or("impossible".to_owned(), |count| count.to_string());
            assert_eq!(expected[row.program], published, "{}", row.name);
        }
    }

    #[test]
    fn programs_are_in_the_one_layout_but_for_the_figure() {
        let tree = Tree::load(&root()).unwrap();
        for name in names(&tree).iter().filter(|name| *name != "fig1") {
            let source = Loaded::new(&tree, name, Size::Small).unwrap().source;
            assert_eq!(format(&source).unwrap(), source.text(), "{name}");
        }
    }

    #[test]
    fn every_program_can_be_large() {
        let tree = Tree::load(&root()).unwrap();
        for name in names(&tree) {
            let small = Loaded::new(&tree, &name, Size::Small).unwrap();
            let large = Loaded::new(&tree, &name, Size::Large).unwrap();
            assert_eq!(small.lines_count(), large.lines_count(), "{name}");
        }
    }

    #[test]
    fn rows_have_the_columns_of_their_heads() {
        let tree = Tree::load(&root()).unwrap();
        let row = Row::measure(&tree, "fig1", Size::Small, false).unwrap();
        let columns = |row: &str| row.lines().last().unwrap().matches('|').count();
        assert_eq!(columns(&PUBLISHED[0].row()), columns(COMPARISON_HEAD));
        assert_eq!(columns(&row.row()), columns(COMPARISON_HEAD));
        assert_eq!(columns(&costs_row(&row)), columns(COSTS_HEAD));
    }
}
