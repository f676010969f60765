//! `tables`: what is measured, as Markdown that can be kept beside the code.
//!
//! Counts and sizes repeat exactly; times and rates are of the machine at hand and are left out
//! unless this command was built in release mode.

mod comparison;
mod cp;
mod determinism;
mod formats;
mod growth;
mod intervals;
mod ndseq;
mod openmp;
mod programs;
pub(crate) mod recording;
mod states;
mod svg;

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use reweave_format::{ReadOptions, read_from};
use reweave_trace::Trace;

use crate::tree::Tree;

/// Which table, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which table.
    #[arg(value_enum, default_value = "formats")]
    name: Name,
    /// How many events the largest trace of `growth` has.
    #[arg(long, default_value_t = growth::EVENTS_MAX)]
    events: usize,
    /// Also run what takes more than a minute in `states`; take the large programs in `ndseq`; search
    /// with large formulas in `intervals`.
    #[arg(long)]
    full: bool,
    /// Also write it to `docs/tables`.
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    /// Sizes and reading rates of the formats, over the corpus and synthetic traces.
    Formats,
    /// What ThreadSanitizer, Helgrind and reweave report of the programs in `examples`.
    Comparison,
    /// What CP finds in the recorded traces, beside the paper's numbers, and what of it is proven.
    Cp,
    /// Feasible witnesses of nondeterminism in rebuilt programs, beside the paper's numbers, and in
    /// the recorded traces.
    Determinism,
    /// How time grows with the number of events, as a table and a plot.
    Growth,
    /// Graphs, ranges and searches of rebuilt programs, beside the paper's numbers.
    Intervals,
    /// Where `if (*)` must stand in rebuilt programs, beside the paper's numbers.
    Ndseq,
    /// What ThreadSanitizer, with Archer and without, and reweave report of OpenMP programs.
    Openmp,
    /// What it costs to record programs, next to gcc's thread sanitizer.
    Recording,
    /// How long going through global states takes, and finding races by it, beside the paper's
    /// numbers.
    States,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let with_times = !cfg!(debug_assertions);
    let tree = Tree::load(root)?;
    let files = match args.name {
        Name::Formats => vec![("formats.md", formats::table(&tree, with_times)?)],
        Name::Comparison => vec![("comparison.md", comparison::table(root)?)],
        Name::Cp => vec![("cp.md", cp::table(&tree, with_times)?)],
        Name::Determinism => vec![("determinism.md", determinism::table(&tree, with_times)?)],
        Name::Intervals => {
            vec![("intervals.md", intervals::table(&tree, with_times, args.full)?)]
        }
        Name::Ndseq => vec![("ndseq.md", ndseq::table(&tree, with_times, args.full)?)],
        Name::Openmp => vec![("openmp.md", openmp::table(root)?)],
        Name::Recording => {
            ensure!(with_times, "times mean nothing here: build with `cargo run --release`");
            vec![("recording.md", recording::table()?)]
        }
        Name::States => {
            let states = states::States::measure(with_times, args.full)?;
            let mut files = vec![("states.md", states.table()?)];
            if with_times {
                files.push(("states.svg", states.plot()));
            }
            files
        }
        Name::Growth => {
            ensure!(with_times, "times mean nothing here: build with `cargo run --release`");
            let growth = growth::Growth::measure(args.events)?;
            vec![("growth.md", growth.table()?), ("growth.svg", growth.plot())]
        }
    };
    let (_, table) = &files[0];
    print!("{table}");
    if args.write {
        let folder = root.join("docs/tables");
        fs::create_dir_all(&folder)?;
        for (file, content) in &files {
            let path = folder.join(file);
            fs::write(&path, content)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The trace in `bytes`.
fn read(bytes: &[u8]) -> anyhow::Result<Trace> {
    Ok(read_from(bytes, "memory", &ReadOptions::default())?.trace)
}

/// The traces in RAPID text below `folder` of `tree`, each with its name: the path without both ends.
fn traces<'t>(
    tree: &'t Tree,
    folder: &'t str,
) -> impl Iterator<Item = anyhow::Result<(&'t str, Trace)>> {
    tree.files().filter_map(move |(path, content)| {
        let name = path.strip_prefix(folder)?.strip_suffix(".std")?;
        let trace = read(content).with_context(|| format!("cannot read {name}"));
        Some(trace.map(|trace| (name, trace)))
    })
}

/// What takes longer in all is not repeated: little disturbs long times.
const LONG: Duration = Duration::from_secs(4);

/// The best time of at most `tries` runs of `run`, and what the last one gave.
fn best_of<T>(tries: usize, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut once = || {
        let start = Instant::now();
        let result = run();
        (start.elapsed(), result)
    };
    let (mut best, mut last) = once();
    let mut spent = best;
    for _ in 1..tries {
        if spent > LONG {
            break;
        }
        let (time, result) = once();
        best = best.min(time);
        spent += time;
        last = result;
    }
    (best, last)
}

/// A time with three figures, in the unit that suits it.
struct Shown(Duration);

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let (value, unit) = match seconds {
            1.0.. => (seconds, "s"),
            1e-3.. => (seconds * 1e3, "ms"),
            _ => (seconds * 1e6, "µs"),
        };
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// The machine at hand and the day, as far as the system says.
fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{model}, {cores} cores, {}", date(since.as_secs() / 86_400))
}

/// The day that is `days` after the first of January 1970.
fn date(days: u64) -> String {
    // Years are taken to begin in March, so that a leap day is the last of its year; 400 years have
    // 146 097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let days = [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_453, "2025-12-31"),
        ];
        for (number, text) in days {
            assert_eq!(date(number), text);
        }
    }

    #[test]
    fn times_have_three_figures() {
        let shown = |nanoseconds| Shown(Duration::from_nanos(nanoseconds)).to_string();
        assert_eq!(shown(1_234), "1.23 µs");
        assert_eq!(shown(45_678_900), "45.7 ms");
        assert_eq!(shown(123_400_000_000), "123 s");
    }
}
