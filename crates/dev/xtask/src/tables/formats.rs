//! How large is a trace in each format, and how fast is it read?

use std::fmt::Write as _;

use reweave_format::{Format, write_to};
use reweave_trace::Trace;
use reweave_workload::{Config, Shape, generate};

use super::{best_of, read, traces};
use crate::tree::Tree;

const HEAD: &str = "\
# Formats

Bytes of each trace in each format, the same in bytes an event, and how many million events a second are read into a validated
trace (best of three, one core, from memory; of one machine, for comparing the columns). Made by `cargo run --release -p xtask -- tables formats --write`.

| trace | events | `.std` | `.jsonl` | `.std.zst` | `.rwt` | `.std` B/event | `.rwt` B/event | `.std` M/s | `.rwt` M/s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const ZSTD_LEVEL: i32 = 3;
const EVENTS_SYNTHETIC: usize = 1_000_000;
const TRIES: usize = 3;

/// The table over all traces of the corpus, and over synthetic ones if rates are asked for.
pub(super) fn table(tree: &Tree, with_rates: bool) -> anyhow::Result<String> {
    let mut table = HEAD.to_owned();
    for recorded in traces(tree, "corpus/") {
        let (name, trace) = recorded?;
        table.push_str(&row(name, &trace, with_rates)?);
    }
    if with_rates {
        for shape in Shape::ALL {
            let config = Config { events: EVENTS_SYNTHETIC, shape, ..Config::default() };
            let name = format!("synthetic/{}", shape.as_str());
            table.push_str(&row(&name, &generate(&config), with_rates)?);
        }
    }
    Ok(table)
}

fn row(name: &str, trace: &Trace, with_rates: bool) -> anyhow::Result<String> {
    let [std, jsonl, rwt] = [Format::Std, Format::JsonLines, Format::Rwt].map(|format| {
        let mut bytes = Vec::new();
        write_to(trace, &mut bytes, format).map(|()| bytes)
    });
    let (std, jsonl, rwt) = (std?, jsonl?, rwt?);
    let squeezed = zstd::bulk::compress(&std, ZSTD_LEVEL)?;
    let events = trace.len();
    let mut row = format!("| {name} | {events}");
    for bytes in [&std, &jsonl, &squeezed, &rwt] {
        write!(row, " | {}", bytes.len())?;
    }
    for bytes in [&std, &rwt] {
        write!(row, " | {:.2}", bytes.len() as f64 / events.max(1) as f64)?;
    }
    for bytes in [&std, &rwt] {
        if with_rates {
            let (time, reading) = best_of(TRIES, || read(bytes));
            reading?;
            write!(row, " | {:.1}", events as f64 / time.as_secs_f64() / 1e6)?;
        } else {
            row.push_str(" |");
        }
    }
    row.push_str(" |\n");
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_sizes_and_leaves_rates_out() {
        let std = "T1|w(x)|a\nT2|r(x)|b\n";
        let tree = Tree::from([("corpus/litmus/two.std", std), ("corpus/README.md", "")]);
        let table = table(&tree, false).unwrap();
        let row = table.strip_prefix(HEAD).unwrap();
        assert!(row.starts_with("| litmus/two | 2 | 20 | "), "{row}");
        assert!(row.contains(" | 10.00 | ") && row.ends_with(" | | |\n"), "{row}");
        assert_eq!(row.lines().count(), 1);
    }

    #[test]
    fn a_trace_that_cannot_be_read_is_named() {
        let tree = Tree::from([("corpus/bad.std", "T1|nonsense|a\n")]);
        assert!(format!("{:#}", table(&tree, false).unwrap_err()).contains("cannot read bad"));
    }
}
