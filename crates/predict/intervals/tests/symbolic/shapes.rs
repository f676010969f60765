//! Small programs with known answers.

use reweave_base::{Id, IndexVec};
use reweave_intervals::ctp::{Action, Ctp, StepId};
use reweave_intervals::symbolic::{
    Answer, Question, Settings, StepRanges, Unit, Widths, ask, single_steps,
};
use reweave_trace::{Binary, LockId, ThreadId, VarId};

use crate::symbolic::programs::Builder;

/// Two threads that count under a lock, and leave what they saw last.
///
/// ```text
/// main: fork 1, 2; join 1, 2; y = Y; assert y != wanted
/// 1, 2: rounds × { lock; t = X; X = t + 1; unlock }; Y = t
/// ```
struct Counters {
    ctp: Ctp,
    rounds: usize,
}

impl Counters {
    fn new(rounds: usize, wanted: i64) -> Self {
        let mut builder = Builder::new(&[0, 0], 1, 1);
        let (x, y) = (VarId::from_index(0), VarId::from_index(1));
        let workers = [1, 2].map(ThreadId::from_index);
        let main = builder.thread(None);
        let joins = workers.map(Action::Join);
        for action in workers.map(Action::Fork).into_iter().chain(joins) {
            builder.next(action);
        }
        let local = builder.local(0);
        let value = builder.slot(Builder::shared(1));
        builder.next(Action::Read(y)).define = Some((local, value));
        let (read, number) = (builder.slot(local), builder.number(wanted));
        let claim = builder.binary(Binary::NotEqual, read, number);
        builder.next(Action::Local).assertion = Some(claim);
        for _ in workers {
            builder.thread(Some(main));
            let local = builder.local(0);
            let (seen, shared) = (builder.slot(local), builder.slot(Builder::shared(0)));
            let one = builder.number(1);
            let next = builder.binary(Binary::Add, seen, one);
            for _ in 0..rounds {
                builder.next(Action::Acquire(LockId::from_index(0)));
                builder.next(Action::Read(x)).define = Some((local, shared));
                builder.next(Action::Write(x)).store = Some((Builder::shared(0), next));
                builder.next(Action::Release(LockId::from_index(0)));
            }
            builder.next(Action::Write(y)).store = Some((Builder::shared(1), seen));
        }
        Self { ctp: builder.finish(), rounds }
    }

    fn question(&self) -> Question {
        let asserts = |step: &StepId| self.ctp.steps[*step].assertion.is_some();
        Question::Fails(self.ctp.steps.ids().filter(asserts).collect())
    }

    /// Whole critical sections.
    fn sections(&self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        for unit in single_steps(&self.ctp) {
            let follows = |last: &StepId| {
                let step = &self.ctp.steps[*last];
                step.to == unit.from
                    && matches!(
                        step.action,
                        Action::Acquire(_) | Action::Read(_) | Action::Write(_)
                    )
                    && step.thread.index() > 0
            };
            match units.last_mut() {
                Some(last) if last.steps.last().is_some_and(follows) => {
                    last.steps.extend(unit.steps);
                }
                _ => units.push(unit),
            }
        }
        units
    }

    /// What steps assign: in each round as much as the other thread's rounds add.
    fn ranges(&self) -> StepRanges {
        let none = IndexVec::from_elem(None, self.ctp.steps.len());
        let reached = IndexVec::from_elem(true, self.ctp.steps.len());
        let mut ranges = StepRanges { reached, stored: none.clone(), defined: none };
        let last = self.rounds as i64;
        for thread in self.ctp.threads.ids() {
            let mut round = 0;
            for (id, step) in self.ctp.steps_of(thread) {
                let is_count = step.action != Action::Read(VarId::from_index(1))
                    && step.store.is_none_or(|(slot, _)| slot == Builder::shared(0));
                let seen = (round, round + last);
                let kept = (last - 1, 2 * last - 1);
                ranges.defined[id] = step.define.map(|_| if is_count { seen } else { kept });
                let stored = if is_count { (seen.0 + 1, seen.1 + 1) } else { kept };
                ranges.stored[id] = step.store.map(|_| stored);
                round += i64::from(is_count && step.store.is_some());
            }
        }
        ranges
    }
}

#[track_caller]
fn check(rounds: usize, wanted: i64, expected: bool) {
    let counters = Counters::new(rounds, wanted);
    let ranges = counters.ranges();
    for units in [single_steps(&counters.ctp), counters.sections()] {
        for widths in [Widths::Fixed(32), Widths::Ranges(&ranges)] {
            let question = counters.question();
            let (answer, _) = ask(&counters.ctp, &units, widths, &question, &Settings::default());
            let is_possible = match answer {
                Answer::Possible(_) => true,
                Answer::Impossible => false,
                other => panic!("{other:?} with {widths:?}"),
            };
            assert_eq!(is_possible, expected, "{} units, {widths:?}", units.len());
        }
    }
}

#[test]
fn what_two_counters_saw_last_is_one_less_than_their_rounds_or_more() {
    for (wanted, expected) in [(0, false), (1, false), (2, true), (4, true), (5, true), (6, false)]
    {
        check(3, wanted, expected);
    }
}

#[test]
fn a_formula_with_ranges_and_sections_is_smaller() {
    let counters = Counters::new(4, 1);
    let ranges = counters.ranges();
    let size = |units: &[Unit], widths| {
        let (_, statistics) =
            ask(&counters.ctp, units, widths, &counters.question(), &Settings::default());
        statistics.clauses
    };
    let (singles, sections) = (single_steps(&counters.ctp), counters.sections());
    assert!(size(&singles, Widths::Ranges(&ranges)) < size(&singles, Widths::Fixed(32)));
    assert!(size(&sections, Widths::Ranges(&ranges)) < size(&sections, Widths::Fixed(32)));
    assert!(size(&sections, Widths::Ranges(&ranges)) < size(&singles, Widths::Ranges(&ranges)));
}

#[test]
fn a_budget_that_runs_out_is_said() {
    let counters = Counters::new(4, 1);
    let units = single_steps(&counters.ctp);
    for settings in [
        Settings { conflicts_max: 0, ..Settings::default() },
        Settings { clauses_max: 10, ..Settings::default() },
        Settings { clauses_max: 1000, ..Settings::default() },
    ] {
        let (answer, _) =
            ask(&counters.ctp, &units, Widths::Fixed(64), &counters.question(), &settings);
        assert_eq!(answer, Answer::Exhausted, "{settings:?}");
    }
}

#[test]
fn nothing_that_is_asked_is_impossible() {
    let counters = Counters::new(1, 0);
    let units = single_steps(&counters.ctp);
    let far = StepId::from_index(1000);
    for question in [Question::Reaches(Vec::new()), Question::Fails(vec![far])] {
        let (answer, _) =
            ask(&counters.ctp, &units, Widths::Fixed(64), &question, &Settings::default());
        assert_eq!(answer, Answer::Impossible);
    }
}

/// ```text
/// x is 1 at first   1: x = 4294967296   2: y = x; only if y == 0
/// ```
#[test]
fn what_32_bits_cannot_hold_is_not_confirmed() {
    let mut builder = Builder::new(&[1], 0, 1);
    let x = VarId::from_index(0);
    builder.thread(None);
    let large = builder.number(1 << 32);
    builder.next(Action::Write(x)).store = Some((Builder::shared(0), large));
    builder.thread(None);
    let local = builder.local(0);
    let (shared, seen) = (builder.slot(Builder::shared(0)), builder.slot(local));
    builder.next(Action::Read(x)).define = Some((local, shared));
    let zero = builder.number(0);
    let is_zero = builder.binary(Binary::Equal, seen, zero);
    builder.next(Action::Local).guard = Some(is_zero);
    let ctp = builder.finish();
    let steps: Vec<StepId> = ctp.steps.ids().collect();
    let question = Question::Reaches(vec![steps[2]]);
    let answer = |widths| ask(&ctp, &single_steps(&ctp), widths, &question, &Settings::default()).0;
    assert_eq!(answer(Widths::Fixed(32)), Answer::Unconfirmed(steps.clone()));
    assert_eq!(answer(Widths::Fixed(64)), Answer::Impossible);
}
