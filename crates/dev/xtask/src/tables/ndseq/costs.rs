//! What the inference takes, and what slicing and grouping save.

use std::fmt::Write as _;

use reweave_ndseq::{Answer, Known, Settings, infer};
use reweave_trace::Trace;

use super::comparison::Row;
use super::{count, runs};
use crate::tables::programs::Size;
use crate::tables::{Shown, best_of};
use crate::tree::Tree;

pub(super) const HEAD: &str = "
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

/// How often a time is taken.
const TRIES: usize = 3;

/// What is compared.
const WAYS: [(&str, Known, bool); 4] = [
    ("targets", Known::Targets, false),
    ("slice", Known::Slice, false),
    ("forced", Known::Forced, false),
    ("grouped", Known::Forced, true),
];

/// The table of what inference took.
pub(super) fn table(rows: &[Row]) -> String {
    let rows: String = rows.iter().map(row).collect();
    format!("{HEAD}{rows}")
}

/// The row of one program, in the columns of [`HEAD`].
pub(super) fn row(row: &Row) -> String {
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
pub(super) fn optimisations(
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
        for (word, known, grouping) in WAYS {
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
