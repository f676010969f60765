//! How long does it take to find the racy variables of a running program, by going through its
//! states and otherwise?

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, ensure};
use reweave_base::{Id, IndexVec};
use reweave_order::poset::{ChainId, Poset, Relation, TracePoset, collections};
use reweave_races::epoch;
use reweave_simulated::{Counts, Monitored};
use reweave_states::enumerate::{Gather, Lexical, ParaMount};
use reweave_states::online::{self, Access, Form, Options, Summary, collected};
use reweave_states::{Bounds, mdd, pairwise};
use reweave_trace::{Trace, VarId};

use super::super::{Shown, best_of};

const TRIES: usize = 3;

/// The seed of every run.
const SEED: u64 = 1;

const SIZES_HEAD: &str = "
## Races in running programs

After Table 2 of the paper, in which a detector that goes through the states of a running program is compared with others. **The
programs are ours, not theirs** (`crates/dev/simulated/src/monitored`): programs of the same kinds, with as many threads and
variables, made so that as many variables are raced on as the paper's detector found. So that this number agrees is no result; what
matters is that all ways of finding them agree with each other, without which this table is not made. A row is one run, with
seed 1.

*Events* are those of the run, *collections* those of its poset by happens-before, in which accesses of a thread with no
synchronisation between them are one event, as in the paper. *States* are those of that poset. *Looked at* are those that the
detector by states has to go through: not those whose last event accesses nothing.

| program | threads | variables | racy, published | racy | which | events | collections | states | looked at |
| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |
";

const TIMES_HEAD: &str = "
Times of the paper's detectors, and beneath them ours on our programs. Theirs are of whole runs of Java programs, with the injection
of code that watches them; ours are of what is done with the events. The two cannot be compared with each other, but those of a row can.

- *base*: the program alone; ours is how long the simulated run takes.
- *states, online*: ParaMount with the paper's predicate. Ours gets one event at a time in the recorded order, while its
  workers search.
- *pairs, online*: the same, but each event is compared with those that are concurrent with it, and no states are enumerated.
- *states, offline*: ParaMount over the lexical algorithm on the whole poset, each state with a look at every pair of its last events.
- *RV runtime*: offline, breadth first.
- *pairs, offline*: the first race of each variable, by clocks.
- *epochs*: FastTrack's way; published, FastTrack. It reports a race in the correct set, on fields that are set when an object is made;
  in our runs that is not an access.

| program | base | states, online | racy | pairs, online | states, offline | RV runtime | racy | pairs, offline | epochs | racy |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The paper's Table 2 as printed: base and ParaMount; RV runtime and epochs, each with how many
/// variables it finds racy.
const PUBLISHED: [(Monitored, [&str; 3]); 10] = {
    use Monitored as M;
    [
        (M::Banking, ["3 ms | 72 ms", "32000 ms | 1", "40 ms | 1"]),
        (M::SetFaulty, ["61 ms | 152 ms", "37000 ms | 3", "428 ms | 1"]),
        (M::SetCorrect, ["94 ms | 110 ms", "39000 ms | 3", "468 ms | 1"]),
        (M::ArrayList1, ["3 ms | 7 ms", "exception | 4, before that", "29 ms | 3"]),
        (M::ArrayList2, ["4 ms | 5 ms", "exception | ", "4 ms | 0"]),
        (M::Sor, ["19 ms | 81 ms", "41000 ms | 0", "179 ms | 0"]),
        (M::Elevator, ["16000 ms | 16000 ms", "83000 ms | 0", "16000 ms | 0"]),
        (M::Tsp, ["7 ms | 114 ms", "exception | ", "146 ms | 1"]),
        (M::RayTracer, ["32 ms | 1240 ms", "o.o.m. | 0", "998 ms | 1"]),
        (M::Hedc, ["241 ms | 940 ms", "exception | ", "1140 ms | 4"]),
    ]
};

/// The tables of all programs.
pub(super) fn tables(with_times: bool) -> anyhow::Result<String> {
    let rows = PUBLISHED.iter().map(|published| Row::measure(published.0, with_times));
    let rows: Vec<Row> = rows.collect::<anyhow::Result<_>>()?;
    let mut tables = SIZES_HEAD.to_owned();
    tables.extend(rows.iter().map(Row::sizes));
    if with_times {
        tables.push_str(TIMES_HEAD);
        for (published, row) in PUBLISHED.iter().zip(&rows) {
            writeln!(tables, "{}\n{}", published_times(published), row.times())?;
        }
    }
    Ok(tables)
}

fn published_times((program, [paramount, runtime, epochs]): &(Monitored, [&str; 3])) -> String {
    let (name, racy) = (program.as_str(), program.published().racy);
    format!("| **{name}**, published | {paramount} | {racy} | | | {runtime} | | {epochs} |")
}

/// All that is reported of a program.
struct Row {
    program: Monitored,
    counts: Counts,
    collections: usize,
    states: String,
    /// What the detector by states did.
    summary: Summary,
    racy: Vec<String>,
    /// Of the run alone, of states and of pairs online, of both offline, and of epochs.
    times: [Duration; 6],
}

impl Row {
    /// Runs `program` and finds its racy variables in all ways, which must find the same.
    fn measure(program: Monitored, with_times: bool) -> anyhow::Result<Self> {
        let tries = if with_times { TRIES } else { 1 };
        let (base, trace) = best_of(tries, || program.run(SEED));
        let (epochs, racy) = best_of(tries, || epoch::racy_variables(&trace));
        let racy: BTreeSet<VarId> = racy.into_iter().collect();
        let agree = |way: &str, found: &BTreeSet<VarId>| {
            ensure!(*found == racy, "{}: {way} finds other racy variables", program.as_str());
            Ok(())
        };
        let (offline_pairs, pairs) = best_of(tries, || pairwise::first_races(&trace));
        agree("going through pairs", &pairs.iter().map(|pair| pair.var).collect())?;
        let (offline_states, found) = best_of(tries, || by_states(&trace));
        agree("going through states", &found?)?;
        let online = |form| -> anyhow::Result<(Duration, Summary)> {
            let options = Options { states_max: u64::MAX, ..Options::default() };
            let (time, outcome) = best_of(tries, || online::races(&trace, form, options));
            let outcome = outcome?;
            ensure!(outcome.summary.is_complete(), "{}: not all was looked at", program.as_str());
            agree("the detector", &outcome.answer)?;
            Ok((time, outcome.summary))
        };
        let (online_states, summary) = online(Form::States)?;
        let (online_pairs, _) = online(Form::Pairs)?;
        let poset = TracePoset::new(&trace, Relation::HappensBefore, collections)?;
        let all = Bounds::all(poset.poset());
        let states = mdd::count(poset.poset(), &all, &mdd::Limits::default(), &|| false);
        Ok(Self {
            program,
            counts: Counts::new(&trace),
            collections: poset.poset().len(),
            states: states.count.to_string(),
            summary,
            racy: racy.iter().map(|&var| trace.names().vars.name(var).to_owned()).collect(),
            times: [base, online_states, online_pairs, offline_states, offline_pairs, epochs],
        })
    }

    fn sizes(&self) -> String {
        let Self { program, counts, collections, states, summary, racy, .. } = self;
        let names: Vec<String> = racy.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {collections} | {states} | {} |\n",
            program.as_str(),
            counts.threads,
            counts.vars,
            program.published().racy,
            racy.len(),
            names.join(", "),
            counts.events,
            summary.states,
        )
    }

    fn times(&self) -> String {
        let [base, online_states, online_pairs, offline_states, offline_pairs, epochs] =
            self.times.map(Shown);
        let racy = self.racy.len();
        format!(
            "| our program | {base} | {online_states} | {racy} | {online_pairs} | {offline_states} \
             | | | {offline_pairs} | {epochs} | {racy} |"
        )
    }
}

/// The racy variables of `trace`, by a look at all states of its poset.
fn by_states(trace: &Trace) -> anyhow::Result<BTreeSet<VarId>> {
    let recorded = TracePoset::new(trace, Relation::HappensBefore, collections)?;
    let members = online::members(trace, &recorded, collections);
    let labels = members.iter().map(|events| {
        let label = |events: &Vec<_>| collected(events.iter().map(|&id| trace.event(id).op));
        events.iter().map(label).collect()
    });
    let labels: IndexVec<ChainId, Vec<Box<[Access]>>> = labels.collect();
    let run = Labelled { poset: recorded.poset(), labels: &labels };
    let empty = Frontiers { run, racy: BTreeSet::new() };
    let gathered = ParaMount { within: Lexical }.gather(recorded.poset(), &empty);
    let gathered = gathered.ok().context("the lexical algorithm ends early only if asked to")?;
    Ok(gathered.racy)
}

/// A poset, and what each of its events accesses.
#[derive(Clone, Copy)]
struct Labelled<'a> {
    poset: &'a Poset,
    labels: &'a IndexVec<ChainId, Vec<Box<[Access]>>>,
}

impl<'a> Labelled<'a> {
    /// The last event of each thread in `state`, if it accesses anything.
    fn last_events(self, state: &[u32]) -> impl Iterator<Item = (ChainId, &'a [Access])> {
        let last = move |(chain, &index): (ChainId, &u32)| {
            let label = &self.labels[chain][index.checked_sub(1)? as usize];
            (!label.is_empty()).then_some((chain, &**label))
        };
        self.poset.chains().zip(state).filter_map(last)
    }

    /// Whether the last events of two chains in `state` are concurrent; that both are last does not
    /// make them so.
    fn are_concurrent(self, state: &[u32], [one, other]: [ChainId; 2]) -> bool {
        let is_before = |first: ChainId, second: ChainId| {
            let clock = self.poset.clock(second, state[second.index()]);
            clock[first.index()] >= state[first.index()]
        };
        !is_before(one, other) && !is_before(other, one)
    }
}

/// The variables on which last events of two threads race, in the states so far.
#[derive(Clone)]
struct Frontiers<'a> {
    run: Labelled<'a>,
    racy: BTreeSet<VarId>,
}

impl Gather for Frontiers<'_> {
    fn visit(&mut self, state: &[u32]) -> ControlFlow<()> {
        for (one, own) in self.run.last_events(state) {
            for (other, accesses) in self.run.last_events(state).filter(|&(other, _)| other > one) {
                if self.run.are_concurrent(state, [one, other]) {
                    self.racy.extend(raced(own, accesses));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn join(&mut self, later: Self) {
        self.racy.extend(later.racy);
    }
}

/// The variables of accesses of the one and the other that conflict; both are sorted by variable.
fn raced<'a>(own: &'a [Access], others: &'a [Access]) -> impl Iterator<Item = VarId> + 'a {
    let racing = own.iter().filter(|access| {
        let first = others.partition_point(|other| other.var < access.var);
        let same = others[first..].iter().take_while(|other| other.var == access.var);
        same.clone().any(|other| access.conflicts_with(*other))
    });
    racing.map(|access| access.var)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_rows_are_those_of_the_programs() {
        let programs = PUBLISHED.map(|(program, _)| program);
        assert_eq!(programs, Monitored::ALL);
    }

    #[test]
    fn the_kept_table_tells_what_all_ways_find() {
        let kept = std::fs::read_to_string(crate::tree::root().join("docs/tables/states.md"));
        let kept = kept.unwrap();
        for program in Monitored::ALL {
            let row = Row::measure(program, false).unwrap();
            assert!(kept.contains(&row.sizes()), "{}", row.sizes());
        }
    }

    #[test]
    fn as_many_variables_are_raced_on_as_published_whatever_the_seed() {
        for program in Monitored::ALL {
            for seed in 0..20 {
                let racy = epoch::racy_variables(&program.run(seed)).len() as u64;
                assert_eq!(racy, program.published().racy, "{program:?} {seed}");
            }
        }
    }

    #[test]
    fn what_is_published_has_the_columns_of_what_is_measured() {
        let row = Row::measure(Monitored::ArrayList1, false).unwrap();
        let columns = |row: &str| row.matches('|').count();
        assert_eq!(columns(&published_times(&PUBLISHED[3])), columns(&row.times()));
        for (head, row) in [(SIZES_HEAD, row.sizes()), (TIMES_HEAD, row.times())] {
            let rule = head.lines().last().unwrap_or_default();
            assert_eq!(columns(rule), columns(&row), "{row}");
        }
    }
}
