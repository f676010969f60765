//! The paper's Table 1, its rows beside ours.

use std::collections::BTreeSet;
use std::time::Duration;

use reweave_exec::{Ending, Exploration, Limits, explore, explore_sequential};
use reweave_ndseq::{Inference, Inferrer, RunError, Settings};
use reweave_trace::Trace;
use reweave_workflows::inference::{Request, Validation, infer};

use super::published::PUBLISHED;
use super::{SEED, count, place, runs};
use crate::tables::best_of;
use crate::tables::programs::{Loaded, Size, names};
use crate::tree::Tree;

pub(super) const HEAD: &str = "
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
pub(super) struct Row {
    pub(super) name: String,
    pub(super) inference: Inference,
    /// How many threads the last run has.
    pub(super) threads_count: usize,
    /// How long making ready and searching took, if that was measured.
    pub(super) times: Option<(Duration, Duration)>,
    sizes: [usize; 3],
    place: String,
    correct: String,
}

/// All programs: those of the paper first, in its order.
pub(super) fn order(tree: &Tree) -> Vec<String> {
    let mut order: Vec<String> = PUBLISHED.iter().map(|row| row.program.to_owned()).collect();
    let others: Vec<String> =
        names(tree).into_iter().filter(|name| !order.contains(name)).collect();
    order.extend(others);
    order
}

impl Row {
    pub(super) fn measure(
        tree: &Tree,
        name: &str,
        size: Size,
        with_times: bool,
    ) -> anyhow::Result<Self> {
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

    /// Its row, in the columns of [`HEAD`].
    pub(super) fn row(&self) -> String {
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
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = HEAD.to_owned();
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
    let inferred = infer(source, program, code, &request, &|| true)?;
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
