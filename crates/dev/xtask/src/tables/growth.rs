//! How does time grow with the number of events?
//!
//! Synthetic traces of one kind, each twice as long as the one before it; for each how long reading,
//! the relations, the searches that prove, and all of `check` take: one thread, the best of a few.

use std::fmt::Write as _;
use std::hint::black_box;

use reweave_analysis::{Analysis, Settings};
use reweave_base::Id;
use reweave_catalog::{Quiet, run, select};
use reweave_format::{Format, write_to};
use reweave_order::Clocks;
use reweave_order::cp::CausallyPrecedes;
use reweave_order::hb::HappensBefore;
use reweave_order::shb::SchedulableHappensBefore;
use reweave_order::wcp::WeakCausallyPrecedes;
use reweave_races::exact::EXACT;
use reweave_trace::{EventId, Trace};
use reweave_workload::{Config, Shape, generate};

use super::svg::Svg;
use super::{best_of, machine, read};

/// How many events the largest trace has by default.
pub(super) const EVENTS_MAX: usize = 8_000_000;

/// How many the smallest has.
const EVENTS_MIN: usize = 125_000;

const TRIES: usize = 5;

const fn config(events: usize) -> Config {
    Config { events, threads: 8, locks: 64, vars: 20_000, seed: 1, shape: Shape::Guarded }
}

const HEAD: &str = "\
# Growth

Seconds that each part takes on synthetic traces of growing length (the shape `guarded` of `reweave generate`: 8 threads, 64 locks,
20 000 variables), and in brackets how many times as long as in the row before. One thread, the best of five unless that takes
long. Made by `cargo run --release -p xtask -- tables growth --write`; `--events` sets the length of the last row.

- `read`: from the binary format in memory to a validated trace
- `hb`, `shb`, `wcp`, `cp`: the clock of every event; of `cp`, all edges and the clock of every access
- `exact`, `deadlocks`: `races.exact` and `deadlocks.exact`, with a checked schedule for each finding
- `check`: `read`, and all analyses that run by default, to checked findings

";

/// What every measurement starts from.
struct Prepared {
    binary: Vec<u8>,
    trace: Trace,
}

/// One thing to measure; it gives a number that depends on all of the work.
struct Measure {
    name: &'static str,
    color: &'static str,
    run: fn(&Prepared) -> anyhow::Result<usize>,
}

const fn measure(
    name: &'static str,
    color: &'static str,
    run: fn(&Prepared) -> anyhow::Result<usize>,
) -> Measure {
    Measure { name, color, run }
}

#[rustfmt::skip]
const MEASURES: [Measure; 8] = [
    measure("read", "#7f7f7f", |from| Ok(read(&from.binary)?.len())),
    measure("hb", "#17becf", |from| Ok(all_clocks(&from.trace, &mut HappensBefore::new()))),
    measure("shb", "#1f77b4", |from| Ok(all_clocks(&from.trace, &mut SchedulableHappensBefore::new()))),
    measure("wcp", "#2ca02c", |from| Ok(all_clocks(&from.trace, &mut WeakCausallyPrecedes::new(&from.trace)))),
    measure("cp", "#bcbd22", |from| Ok(access_clocks(&from.trace, &CausallyPrecedes::new(&from.trace)))),
    measure("exact", "#ff7f0e", |from| Ok(findings(&from.trace, &[&EXACT]))),
    measure("deadlocks", "#9467bd", |from| Ok(findings(&from.trace, reweave_deadlocks::ANALYSES))),
    measure("check", "#d62728", check),
];

fn all_clocks(trace: &Trace, clocks: &mut impl Clocks) -> usize {
    let ids = (0..trace.len()).map(EventId::from_index);
    ids.map(|id| clock_number(trace, clocks, id)).fold(0, usize::wrapping_add)
}

fn access_clocks(trace: &Trace, order: &CausallyPrecedes) -> usize {
    let mut clocks = order.clocks();
    let accesses = trace.events().filter(|(_, event)| event.op.var().is_some());
    accesses.map(|(id, _)| clock_number(trace, &mut clocks, id)).fold(0, usize::wrapping_add)
}

fn clock_number(trace: &Trace, clocks: &mut impl Clocks, id: EventId) -> usize {
    let thread = trace.event(id).thread;
    clocks.advance(trace, id).get(thread) as usize
}

fn findings(trace: &Trace, analyses: &[&dyn Analysis]) -> usize {
    run(trace, analyses, &Settings::default(), &Quiet).findings.len()
}

fn check(from: &Prepared) -> anyhow::Result<usize> {
    let mut analyses = select("", &[])?;
    analyses.retain(|analysis| analysis.info().is_default);
    Ok(findings(&read(&from.binary)?, &analyses))
}

/// What was measured.
pub(super) struct Growth {
    rows: Vec<Row>,
}

/// The seconds of each measure on a trace.
struct Row {
    events: usize,
    seconds: [f64; MEASURES.len()],
}

impl Growth {
    /// Measures traces of up to `events_max` events.
    pub(super) fn measure(events_max: usize) -> anyhow::Result<Self> {
        let sizes = std::iter::successors(Some(EVENTS_MIN), |events| events.checked_mul(2));
        let sizes = sizes.take_while(|&events| events <= events_max.max(EVENTS_MIN));
        let rows: anyhow::Result<Vec<Row>> = sizes.map(Row::measure).collect();
        Ok(Self { rows: rows? })
    }

    /// The table, with what it shows.
    pub(super) fn table(&self) -> anyhow::Result<String> {
        let mut table = HEAD.to_owned();
        write!(table, "Measured on: {}.\n\n| events |", machine())?;
        MEASURES.iter().try_for_each(|measure| write!(table, " {} |", measure.name))?;
        table.push_str("\n| ---: |");
        table.push_str(&" ---: |".repeat(MEASURES.len()));
        table.push('\n');
        for (at, row) in self.rows.iter().enumerate() {
            write!(table, "| {} |", row.events)?;
            let before = at.checked_sub(1).map(|before| &self.rows[before]);
            for (column, seconds) in row.seconds.iter().enumerate() {
                write!(table, " {seconds:.3}")?;
                if let Some(before) = before {
                    write!(table, " ({:.1})", seconds / before.seconds[column])?;
                }
                table.push_str(" |");
            }
            table.push('\n');
        }
        table.push_str(&self.statement()?);
        table.push_str("\n![Seconds against events, both on logarithmic scales](growth.svg)\n");
        Ok(table)
    }

    /// What a doubling of the events does to the times, from the first row to the last.
    fn statement(&self) -> anyhow::Result<String> {
        let mut statement = String::new();
        let [first, .., last] = &self.rows[..] else { return Ok(statement) };
        let doublings = (self.rows.len() - 1) as f64;
        write!(
            statement,
            "\nOver the table, twice the events take on average so many times as long:"
        )?;
        for (at, measure) in MEASURES.iter().enumerate() {
            let factor = (last.seconds[at] / first.seconds[at]).powf(doublings.recip());
            let before = if at == 0 { "" } else { "," };
            write!(statement, "{before} `{}` {factor:.2}", measure.name)?;
        }
        statement.push_str(". Where the work is linear, that is 2.\n");
        Ok(statement)
    }

    /// The rows as lines, both axes logarithmic.
    pub(super) fn plot(&self) -> String {
        Plot::new(&self.rows).draw(&self.rows)
    }
}

impl Row {
    fn measure(events: usize) -> anyhow::Result<Self> {
        let trace = generate(&config(events));
        let mut binary = Vec::new();
        write_to(&trace, &mut binary, Format::Rwt)?;
        let prepared = Prepared { binary, trace };
        let mut seconds = [0.0; MEASURES.len()];
        for (measure, seconds) in MEASURES.iter().zip(&mut seconds) {
            let (best, result) = best_of(TRIES, || (measure.run)(black_box(&prepared)));
            black_box(result?);
            *seconds = best.as_secs_f64();
        }
        Ok(Self { events, seconds })
    }
}

/// Where things are drawn.
struct Plot {
    /// The logarithms to base 10 at the ends of the axes.
    events: (f64, f64),
    seconds: (f64, f64),
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 430.0;

impl Plot {
    fn new(rows: &[Row]) -> Self {
        let all = || rows.iter().flat_map(|row| row.seconds).map(f64::log10);
        let (lowest, highest) = all().fold((0.0_f64, 0.0_f64), |(lowest, highest), seconds| {
            (lowest.min(seconds), highest.max(seconds))
        });
        let events = |row: Option<&Row>| (row.map_or(EVENTS_MIN, |row| row.events) as f64).log10();
        Self {
            events: (events(rows.first()), events(rows.last()).max(events(rows.first()) + 0.1)),
            seconds: (lowest.floor(), highest.ceil().max(lowest.floor() + 1.0)),
        }
    }

    fn x(&self, events: f64) -> f64 {
        let (from, to) = self.events;
        LEFT + (events.log10() - from) / (to - from) * (RIGHT - LEFT)
    }

    fn y(&self, seconds: f64) -> f64 {
        let (from, to) = self.seconds;
        BOTTOM - (seconds.log10() - from) / (to - from) * (BOTTOM - TOP)
    }

    fn draw(&self, rows: &[Row]) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT, "Seconds against events");
        for exponent in self.seconds.0 as i32..=self.seconds.1 as i32 {
            let seconds = 10.0_f64.powi(exponent);
            svg.horizontal(self.y(seconds), (LEFT, RIGHT), &format!("{seconds} s"));
        }
        for row in rows {
            svg.vertical(self.x(row.events as f64), (TOP, BOTTOM), &short(row.events));
        }
        svg.centred((f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0), "events");
        let mut draw = |at: usize, name: &str, style: &str, points: &[(f64, f64)]| {
            let place = |&(events, seconds)| (self.x(events), self.y(seconds));
            let points: Vec<(f64, f64)> = points.iter().map(place).collect();
            svg.line(&points, &format!("{style} stroke-width=\"2\""));
            svg.legend((RIGHT + 20.0, TOP + 20.0 + 22.0 * at as f64), style, name);
        };
        for (at, Measure { name, color, .. }) in MEASURES.iter().enumerate() {
            let points = rows.iter().map(|row| (row.events as f64, row.seconds[at]));
            draw(at, name, &format!("stroke=\"{color}\""), &points.collect::<Vec<_>>());
        }
        let style = "stroke=\"#999\" stroke-dasharray=\"6 4\"";
        draw(MEASURES.len(), "linear", style, &self.guide());
        svg.finish()
    }

    /// What linear growth looks like: a line through the middle, from edge to edge.
    fn guide(&self) -> [(f64, f64); 2] {
        let (first, last) = self.events;
        let middle = f64::midpoint(self.seconds.0, self.seconds.1);
        let half = ((last - first) / 2.0).min(middle - self.seconds.0);
        let center = f64::midpoint(first, last);
        [-half, half].map(|by| (10.0_f64.powf(center + by), 10.0_f64.powf(middle + by)))
    }
}

/// A number of events, rounded to thousands or millions.
fn short(events: usize) -> String {
    if events.is_multiple_of(1_000_000) {
        format!("{} M", events / 1_000_000)
    } else {
        format!("{} k", events / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Growth {
        let row = |events, seconds| Row { events, seconds: [seconds; MEASURES.len()] };
        Growth { rows: vec![row(500_000, 0.1), row(1_000_000, 0.2), row(2_000_000, 0.4)] }
    }

    #[test]
    fn the_table_tells_times_and_ratios() {
        let table = made_up().table().unwrap();
        assert!(table.contains("\n| 500000 | 0.100 | 0.100 |"), "{table}");
        assert!(table.contains("\n| 1000000 | 0.200 (2.0) |"), "{table}");
        assert!(table.contains("as long: `read` 2.00, `hb` 2.00, "), "{table}");
        assert!(table.contains(", `check` 2.00. Where"), "{table}");
    }

    #[test]
    fn the_plot_has_a_straight_line_for_each_measure() {
        let plot = made_up().plot();
        assert_eq!(plot.matches("<polyline ").count(), MEASURES.len() + 1);
        assert!(plot.contains("<polyline points=\"70.0,430.0 345.0,306.6 620.0,183.2\""), "{plot}");
        for measure in &MEASURES {
            assert!(plot.contains(&format!(">{}</text>", measure.name)), "{plot}");
        }
    }

    #[test]
    fn every_measure_runs_on_a_small_trace() {
        let row = Row::measure(2_000).unwrap();
        assert!(row.seconds.iter().all(|&seconds| seconds > 0.0));
        let one = Growth { rows: vec![row] };
        assert!(!one.table().unwrap().contains("on average"));
        assert!(one.plot().ends_with("</svg>\n"));
    }
}
