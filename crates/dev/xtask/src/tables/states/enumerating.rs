//! How long does it take to go through all states of a poset, in the paper's ways and in ours?

use std::fmt::{self, Display, Formatter};
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, ensure};
use rayon::{ThreadPool, ThreadPoolBuilder};
use reweave_base::{Id, Rng};
use reweave_order::poset::{ChainId, Poset, PosetBuilder};
use reweave_states::Bounds;
use reweave_states::by_chain::{self, Additive, Count, Plan};
use reweave_states::enumerate::{
    BreadthFirst, Enumerate, Gather, Lexical, ParaMount, Stopped, lexical,
};
use reweave_states::mdd::{self, Diagram, Overflow};
use reweave_workload::posets::{Clocks, Spec};

use super::super::{Shown, best_of};
use super::published::{Published, THREADS};

const TRIES: usize = 3;

/// What would take longer is left out unless asked for.
const SECONDS_MAX: f64 = 60.0;

/// About how long the ways of going through states take for each on one thread, in nanoseconds:
/// from which follows what would take too long.
const BREADTH_FIRST: f64 = 150.0;
const LEXICAL: f64 = 15.0;
const FAST: f64 = 0.6;

const POSETS_HEAD: &str = "
## The posets

After Table 1 of the paper. **The posets are look-alikes**: they have the paper's numbers of threads and events, and about as many
states; nothing else is known of the paper's own. Only `bank` is presumably the same: 8 threads of 12 events with no order between them
have 13^8 states, which are the published 815 million. The others are drawn at random (`reweave_workload::posets`: for each event a thread,
and with a probability another thread after whose last event it comes); probability and seed were chosen such that the number of
states comes near the published one. That holds for `tsp`, `hedc` and `elevator` too, which are runs of programs in the paper.

*Room* is what breadth-first search keeps at most: the states of two sizes at once, with 4 bytes a thread. It gets 2 GiB, as in the
paper; ours is known before it starts, from how many states there are of each size. *Hits* are the states that meet an
additive predicate, see below. *Width* is the number of nodes of the widest level of the decision diagram.

| benchmark | poset | threads | events | states, published | states | room | hits | width |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const TIMES_HEAD: &str = "
## Going through all states

Breadth first, by ParaMount over that, in lexical order, and by ParaMount over that, with the number of threads in brackets. Times are by
the wall clock; theirs are of Java on an Intel i7 at 1.6 GHz, ours are the best of three unless that takes long. The visitor counts.
Published `o.o.m.` and our *no room*: more than 2 GiB. A dash: would take more than a minute or so and was not run
(`--full` runs it). Empty: more threads than this machine has cores. The paper prints 2.3 s for `tsp` with 8 threads in lexical order, where 4 take
0.4 s; 0.23 s is presumably meant.

| benchmark | BFS | (1) | (2) | (4) | (8) | lexical | (1) | (2) | (4) | (8) |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const FAST_HEAD: &str = "
![Speed-up against threads: ParaMount over breadth-first search and over the lexical algorithm, published and ours, and fast enumeration](states.svg)

## Fast enumeration and the decision diagram

The same states by algorithms that the paper does not have. *Fast*: thread by thread, with an additive predicate evaluated at every state; each
thread's position has a value below 100, and a state is a hit if the sum is at least 60 times the number of threads. The number
of threads is in brackets. *Counting*: the same on one thread, with the states of the last two threads in closed form. *Diagram*: the
decision diagram, which gives the number of states without enumerating them. In brackets nanoseconds for each state.

| benchmark | states | lexical | fast (1) | (2) | (4) | (8) | counting | diagram |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The poset of these clocks.
fn poset(clocks: &Clocks) -> anyhow::Result<Poset> {
    let mut builder = PosetBuilder::new(clocks.chains_count)?;
    for (chain, clock) in &clocks.events {
        builder.push(*chain, clock)?;
    }
    Ok(builder.finish())
}

/// How long something took, or why it was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Time(Duration),
    /// It would not fit into memory.
    NoRoom,
    /// It would take too long.
    TooLong,
    /// There are not as many cores.
    NoCores,
}

impl Cell {
    pub(super) fn seconds(self) -> Option<f64> {
        match self {
            Self::Time(time) => Some(time.as_secs_f64()),
            Self::NoRoom | Self::TooLong | Self::NoCores => None,
        }
    }

    /// With how much of it each of `states` took.
    fn for_each(self, states: u64) -> String {
        match self.seconds() {
            Some(seconds) => format!("{self} ({:.2})", seconds * 1e9 / states.max(1) as f64),
            None => self.to_string(),
        }
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => Shown(*time).fmt(f),
            Self::NoRoom => f.write_str("no room"),
            Self::TooLong => f.write_str("—"),
            Self::NoCores => Ok(()),
        }
    }
}

/// All that is reported of a poset.
pub(super) struct Row {
    pub(super) published: &'static Published,
    sizes: Sizes,
    pub(super) times: Option<Times>,
}

/// What does not depend on the machine.
struct Sizes {
    chains: usize,
    events: usize,
    states: u64,
    /// What breadth-first search keeps at most, in bytes.
    room: u64,
    hits: u64,
    width: usize,
}

pub(super) struct Times {
    pub(super) breadth_first: Cell,
    pub(super) over_breadth_first: [Cell; THREADS.len()],
    pub(super) lexical: Cell,
    pub(super) over_lexical: [Cell; THREADS.len()],
    pub(super) fast: [Cell; THREADS.len()],
    counting: Cell,
    diagram: Cell,
}

impl Row {
    /// Measures the poset of `published`; with `is_full`, also what takes long.
    pub(super) fn measure(
        published: &'static Published,
        with_times: bool,
        is_full: bool,
    ) -> anyhow::Result<Self> {
        let poset = poset(&published.spec.parse::<Spec>()?.make())?;
        let sizes = Sizes::new(&poset).with_context(|| published.name)?;
        let bench = Bench { poset: &poset, sizes: &sizes, is_full };
        let times =
            with_times.then(|| bench.times().with_context(|| published.name)).transpose()?;
        Ok(Self { published, sizes, times })
    }

    pub(super) fn sizes(&self) -> String {
        let Sizes { chains, events, states, room, hits, width } = self.sizes;
        format!(
            "| {} | `{}` | {chains} | {events} | {} | {states} | {:.1} MiB | {hits} | {width} |\n",
            self.published.name,
            self.published.spec,
            self.published.states,
            room as f64 / f64::from(1 << 20),
        )
    }

    fn paper_times(&self, times: &Times) -> String {
        let cells =
            |cells: &[Cell]| cells.iter().map(|cell| format!(" {cell} |")).collect::<String>();
        format!(
            "| our poset |{}{}{}{}\n",
            cells(&[times.breadth_first]),
            cells(&times.over_breadth_first),
            cells(&[times.lexical]),
            cells(&times.over_lexical),
        )
    }

    fn our_times(&self, times: &Times) -> String {
        let states = self.sizes.states;
        let mut cells = vec![times.lexical];
        cells.extend(times.fast);
        cells.push(times.counting);
        let cells: String =
            cells.iter().map(|cell| format!(" {} |", cell.for_each(states))).collect();
        format!("| {} | {states} |{cells} {} |\n", self.published.name, times.diagram)
    }
}

/// The tables of `rows`.
pub(super) fn tables(rows: &[Row]) -> String {
    let mut tables = POSETS_HEAD.to_owned();
    tables.extend(rows.iter().map(Row::sizes));
    let timed: Vec<(&Row, &Times)> =
        rows.iter().filter_map(|row| Some((row, row.times.as_ref()?))).collect();
    if timed.is_empty() {
        return tables;
    }
    tables.push_str(TIMES_HEAD);
    for (row, times) in &timed {
        tables.push_str(&row.published.times());
        tables.push_str(&row.paper_times(times));
    }
    tables.push_str(FAST_HEAD);
    tables.extend(timed.iter().map(|(row, times)| row.our_times(times)));
    tables
}

/// The values of the predicate: for each chain, below 100 for each number of its events.
fn additive(poset: &Poset) -> Additive {
    /// As many more are drawn for each chain as the vectors of those who first measured this needed,
    /// so that hits can be compared.
    const PADDING: usize = 16;
    let mut rng = Rng::new(7);
    let values = poset.chains().map(|chain| {
        let drawn = (0..=poset.length(chain) as usize + PADDING).map(|_| rng.below(100) as i64);
        drawn.collect::<Vec<i64>>()
    });
    Additive { values: values.collect(), threshold: 60 * poset.chains_count() as i64 }
}

impl Sizes {
    /// All of it by the decision diagram.
    fn new(poset: &Poset) -> anyhow::Result<Self> {
        let limits = mdd::Limits { bytes_max: 8 << 30, ..mdd::Limits::default() };
        let diagram = Diagram::build(poset, &Bounds::all(poset), &limits, &|| false)?;
        let histogram =
            |values: &dyn Fn(ChainId, u32) -> i64| -> Result<Vec<(i128, u64)>, Overflow> {
                let histogram = diagram.histogram(values, &limits, &|| false)?;
                let few = |count: &mdd::Count| u64::try_from(count).unwrap_or(u64::MAX);
                Ok(histogram.iter().map(|(sum, count)| (*sum, few(count))).collect())
            };
        let by_size = histogram(&|_, index| i64::from(index))?;
        // There are states of every size.
        let two = by_size.windows(2).map(|two| two[0].1 + two[1].1).max().unwrap_or(1);
        let predicate = additive(poset);
        let by_sum = histogram(&|chain, index| predicate.values[chain.index()][index as usize])?;
        let is_hit = |&&(sum, _): &&(i128, u64)| sum >= i128::from(predicate.threshold);
        Ok(Self {
            chains: poset.chains_count(),
            events: poset.len(),
            states: by_size.iter().map(|&(_, count)| count).sum(),
            room: two * poset.chains_count() as u64 * size_of::<u32>() as u64,
            hits: by_sum.iter().filter(is_hit).map(|&(_, count)| count).sum(),
            width: diagram.width(),
        })
    }
}

/// Counts states.
#[derive(Clone)]
struct Tally(u64);

impl Gather for Tally {
    fn visit(&mut self, _: &[u32]) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn join(&mut self, later: Self) {
        self.0 += later.0;
    }
}

/// A poset to be measured.
struct Bench<'a> {
    poset: &'a Poset,
    sizes: &'a Sizes,
    is_full: bool,
}

impl Bench<'_> {
    fn times(&self) -> anyhow::Result<Times> {
        let plan = || Plan::new(self.poset, &Bounds::all(self.poset));
        let predicate = additive(self.poset);
        let unlimited = by_chain::Limits::default();
        Ok(Times {
            breadth_first: self.breadth_first()?,
            over_breadth_first: self.paramount(BREADTH_FIRST, BreadthFirst::default())?,
            lexical: self.time(LEXICAL, self.sizes.states, || {
                let mut tally = Tally(0);
                lexical(self.poset, &Bounds::all(self.poset), |state| tally.visit(state))
                    .map(|()| tally.0)
            })?,
            over_lexical: self.paramount(LEXICAL, Lexical)?,
            fast: self.on_threads(|pool, threads| {
                self.time(FAST, self.sizes.hits, || match threads {
                    1 => predicate.count(&plan(), &unlimited),
                    _ => pool.install(|| predicate.count_split(&plan(), &unlimited)),
                })
            })?,
            counting: self.time(FAST, self.sizes.states, || {
                let mut count = Count::default();
                plan().visit(&mut count, (), &unlimited).map(|()| count.states as u64)
            })?,
            diagram: self.time(0.0, self.sizes.states, || {
                let limits = mdd::Limits::default();
                let counted = mdd::count(self.poset, &Bounds::all(self.poset), &limits, &|| false);
                let count = u64::try_from(&counted.count).unwrap_or(0);
                counted.overflow.map_or(Ok(count), Err)
            })?,
        })
    }

    fn breadth_first(&self) -> anyhow::Result<Cell> {
        let algorithm = BreadthFirst::default();
        if self.sizes.room > (algorithm.entries_max * size_of::<u32>()) as u64 {
            return Ok(Cell::NoRoom);
        }
        self.time(BREADTH_FIRST, self.sizes.states, || {
            let mut tally = Tally(0);
            algorithm
                .visit(self.poset, &Bounds::all(self.poset), |state| tally.visit(state))
                .map(|()| tally.0)
        })
    }

    fn paramount<E: Enumerate + Copy + Send>(
        &self,
        nanoseconds: f64,
        within: E,
    ) -> anyhow::Result<[Cell; THREADS.len()]> {
        self.on_threads(|pool, _| {
            self.time(nanoseconds, self.sizes.states, || {
                let gathered = pool.install(|| ParaMount { within }.gather(self.poset, &Tally(0)));
                gathered.map(|tally| tally.0).map_err(|(_, stopped): (Tally, Stopped)| stopped)
            })
        })
    }

    /// What `measure` gives with pools of as many threads as there are columns, where there are as
    /// many cores.
    fn on_threads(
        &self,
        measure: impl Fn(&ThreadPool, usize) -> anyhow::Result<Cell>,
    ) -> anyhow::Result<[Cell; THREADS.len()]> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut cells = [Cell::NoCores; THREADS.len()];
        for (&threads, cell) in
            THREADS.iter().zip(&mut cells).filter(|&(&threads, _)| threads <= cores)
        {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
            *cell = measure(&pool, threads)?;
        }
        Ok(cells)
    }

    /// How long `run` takes, which must give `expected`, unless that would be too long with so many
    /// nanoseconds a state.
    fn time<E: fmt::Debug>(
        &self,
        nanoseconds: f64,
        expected: u64,
        run: impl FnMut() -> Result<u64, E>,
    ) -> anyhow::Result<Cell> {
        if !self.is_full && self.sizes.states as f64 * nanoseconds > SECONDS_MAX * 1e9 {
            return Ok(Cell::TooLong);
        }
        let (time, found) = best_of(TRIES, run);
        ensure!(
            matches!(found, Ok(found) if found == expected),
            "expected {expected} states, found {found:?}"
        );
        Ok(Cell::Time(time))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use reweave_workload::posets::{grid, random};

    use super::super::published::PUBLISHED;
    use super::*;

    /// The rows that take hardly any time to size up.
    fn small() -> impl Iterator<Item = Row> {
        let is_small = |row: &&Published| !["d-10K", "elevator"].contains(&row.name);
        PUBLISHED.iter().filter(is_small).map(|row| Row::measure(row, false, false).unwrap())
    }

    /// A row with made-up times.
    pub(in super::super) fn made_up(published: &'static Published) -> Row {
        let seconds = |seconds: f64| Cell::Time(Duration::from_secs_f64(seconds));
        let by_threads = [seconds(2.0), seconds(1.0), Cell::NoCores, Cell::NoCores];
        let sizes =
            Sizes { chains: 2, events: 3, states: 500_000_000, room: 1 << 21, hits: 7, width: 1 };
        let times = Times {
            breadth_first: Cell::NoRoom,
            over_breadth_first: [Cell::TooLong; THREADS.len()],
            lexical: seconds(2.0),
            over_lexical: by_threads,
            fast: by_threads,
            counting: seconds(0.1),
            diagram: seconds(0.001),
        };
        Row { published, sizes, times: Some(times) }
    }

    #[test]
    fn the_kept_table_tells_the_sizes_of_the_posets() {
        let kept = std::fs::read_to_string(crate::tree::root().join("docs/tables/states.md"));
        let kept = kept.unwrap();
        for row in small() {
            assert!(kept.contains(&row.sizes()), "{}", row.sizes());
        }
    }

    #[test]
    fn the_posets_are_those_of_the_corpus() {
        let path = crate::tree::root().join("corpus/posets/posets_bench.json");
        let corpus = std::fs::read_to_string(path).unwrap();
        let known = PUBLISHED.iter().filter(|row| corpus.contains(&format!("\"{}\"", row.spec)));
        let known: Vec<&str> = known.map(|row| row.name).collect();
        assert_eq!(known, ["d-300", "d-500", "d-10K", "bank", "hedc", "elevator"]);
        for row in small().filter(|row| row.published.name != "tsp") {
            let states = format!("\"states\": {}", row.sizes.states);
            assert!(corpus.contains(&states), "{states}");
        }
    }

    #[test]
    fn every_way_finds_as_many_states_and_hits_as_the_diagram() {
        let poset = poset(&random(4, 40, 0.4, 3)).unwrap();
        let sizes = Sizes::new(&poset).unwrap();
        let times = Bench { poset: &poset, sizes: &sizes, is_full: false }.times().unwrap();
        assert!(times.breadth_first.seconds().is_some());
        let wrong = Sizes { hits: sizes.hits + 1, ..sizes };
        let times = Bench { poset: &poset, sizes: &wrong, is_full: false }.times();
        let reason = times.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(reason.contains(&format!("expected {}", wrong.hits)), "{reason}");
    }

    #[test]
    fn room_is_what_breadth_first_search_needs() {
        let poset = poset(&random(4, 40, 0.4, 3)).unwrap();
        let entries = Sizes::new(&poset).unwrap().room as usize / size_of::<u32>();
        let run = |entries_max| {
            let mut count = |_: &[u32]| ControlFlow::Continue(());
            BreadthFirst { entries_max }.visit(&poset, &Bounds::all(&poset), &mut count)
        };
        assert_eq!(run(entries), Ok(()));
        assert_eq!(run(entries - 1), Err(Stopped::Memory));
    }

    #[test]
    fn what_takes_too_long_is_run_only_when_asked_for() {
        let poset = poset(&grid(8, 12)).unwrap();
        let sizes = Sizes::new(&poset).unwrap();
        let run = |is_full| {
            let bench = Bench { poset: &poset, sizes: &sizes, is_full };
            bench.time(BREADTH_FIRST, 5, || Ok::<_, Stopped>(5)).unwrap()
        };
        assert_eq!(run(false), Cell::TooLong);
        assert!(run(true).seconds().is_some());
    }

    #[test]
    fn what_is_published_has_the_columns_of_what_is_measured() {
        let row = made_up(&PUBLISHED[0]);
        let times = row.times.as_ref().unwrap();
        let columns = |row: &str| row.matches('|').count();
        assert_eq!(columns(&PUBLISHED[0].times()), columns(&row.paper_times(times)));
        for (head, row) in [
            (POSETS_HEAD, row.sizes()),
            (TIMES_HEAD, row.paper_times(times)),
            (FAST_HEAD, row.our_times(times)),
        ] {
            let rule = head.lines().last().unwrap_or_default();
            assert_eq!(columns(rule), columns(&row), "{row}");
        }
    }

    #[test]
    fn the_tables_tell_times_and_why_there_are_none() {
        let tables = tables(&[made_up(&PUBLISHED[0])]);
        let expected = "| our poset | no room | — | — | — | — | 2.00 s | 2.00 s | 1.00 s |  |  |\n";
        assert!(tables.contains(expected), "{tables}");
        let expected = "| d-300 | 500000000 | 2.00 s (4.00) | 2.00 s (4.00) | 1.00 s (2.00) |  |  \
                        | 100 ms (0.20) | 1.00 ms |\n";
        assert!(tables.contains(expected), "{tables}");
    }
}
