//! On random programs answers agree with all interleavings.

use proptest::prelude::*;
use reweave_base::Rng;
use reweave_intervals::ctp::{Ctp, StepId};
use reweave_intervals::graph::{self, GraphKind, build};
use reweave_intervals::schedule::replay;
use reweave_intervals::symbolic::{
    Answer, Question, Settings, Unit, Widths, ask, single_steps, transactions,
};
use reweave_testkit::soak;

use crate::symbolic::oracle::explore;
use crate::symbolic::programs::{Shape, random_program, random_units};

const STATES_MAX: usize = 60_000;

fn shape() -> impl Strategy<Value = Shape> {
    let size = prop_oneof![(Just(2_usize), 1..=6_usize), (Just(3_usize), 1..=4_usize)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (size, flags).prop_map(|((threads, statements), (branches, forks, counts))| Shape {
        threads,
        statements,
        branches,
        forks,
        counts,
    })
}

#[track_caller]
fn check(ctp: &Ctp, units: &[Unit], widths: Widths<'_>, question: &Question, expected: bool) {
    let (answer, _) = ask(ctp, units, widths, question, &Settings::default());
    match answer {
        Answer::Possible(schedule) => {
            assert_eq!(replay(ctp, &schedule, question), Some(schedule.len()));
            assert!(expected, "{question:?} must not be possible");
        }
        Answer::Impossible => assert!(!expected, "{question:?} is possible"),
        other => panic!("{question:?}: {other:?}"),
    }
}

/// Asks everything about every step that is worth asking.
fn check_all(ctp: &Ctp, units: &[Unit], widths: Widths<'_>, random: &mut Rng) {
    let mut asked: Vec<StepId> = ctp.steps.ids().filter(|_| random.chance(40)).collect();
    asked.truncate(5);
    for step in asked {
        let Some(truth) = explore(ctp, units, &[step], STATES_MAX) else { return };
        let reaches = Question::Reaches(vec![step]);
        check(ctp, units, widths, &reaches, truth.ranges.reached[step]);
        if ctp.steps[step].assertion.is_some() {
            check(ctp, units, widths, &Question::Fails(vec![step]), truth.fails[step]);
        }
    }
    let all: Vec<StepId> = ctp.steps.ids().collect();
    if let Some(truth) = explore(ctp, units, &all, STATES_MAX) {
        let expected = truth.fails.iter().any(|&fails| fails);
        check(ctp, units, widths, &Question::Fails(all), expected);
    }
}

proptest! {
    #![proptest_config(soak::config(150))]

    #[test]
    fn answers_with_64_bits_agree_with_all_interleavings(seed: u64, shape in shape()) {
        let mut random = Rng::new(seed);
        let ctp = random_program(&mut random, shape);
        check_all(&ctp, &single_steps(&ctp), Widths::Fixed(64), &mut random);
    }

    #[test]
    fn answers_with_ranges_agree_with_all_interleavings(seed: u64, shape in shape()) {
        let mut random = Rng::new(seed);
        let ctp = random_program(&mut random, shape);
        let units = single_steps(&ctp);
        if let Some(truth) = explore(&ctp, &units, &[], STATES_MAX) {
            check_all(&ctp, &units, Widths::Ranges(&truth.ranges), &mut random);
        }
    }

    #[test]
    fn answers_about_units_agree_with_interleavings_of_units(
        seed: u64,
        shape in shape(),
        percent in 20..80_usize,
    ) {
        let mut random = Rng::new(seed);
        let ctp = random_program(&mut random, shape);
        let units = random_units(&ctp, &mut random, percent);
        check_all(&ctp, &units, Widths::Fixed(64), &mut random);
        if let Some(truth) = explore(&ctp, &single_steps(&ctp), &[], STATES_MAX) {
            check_all(&ctp, &units, Widths::Ranges(&truth.ranges), &mut random);
        }
    }

    #[test]
    fn answers_about_transactions_agree_with_all_interleavings(seed: u64, shape in shape()) {
        let mut random = Rng::new(seed);
        let ctp = random_program(&mut random, shape);
        let Some(truth) = explore(&ctp, &single_steps(&ctp), &[], STATES_MAX) else {
            return Ok(());
        };
        for kind in [GraphKind::Ccfg, GraphKind::Tsg, GraphKind::TsgReduced] {
            let units = transactions(&build(&ctp, kind, &graph::Settings::default()));
            for step in ctp.steps.ids().filter(|_| random.chance(30)) {
                let widths = Widths::Ranges(&truth.ranges);
                let reaches = Question::Reaches(vec![step]);
                check(&ctp, &units, widths, &reaches, truth.ranges.reached[step]);
                if ctp.steps[step].assertion.is_some() {
                    check(&ctp, &units, widths, &Question::Fails(vec![step]), truth.fails[step]);
                }
            }
        }
    }

    #[test]
    fn an_answer_of_32_bits_is_possible_only_if_it_is(seed: u64, shape in shape()) {
        let mut random = Rng::new(seed);
        let ctp = random_program(&mut random, shape);
        let units = single_steps(&ctp);
        let all: Vec<StepId> = ctp.steps.ids().collect();
        let question = Question::Fails(all.clone());
        let (answer, _) = ask(&ctp, &units, Widths::Fixed(32), &question, &Settings::default());
        if let (Answer::Possible(_), Some(truth)) = (answer, explore(&ctp, &units, &all, STATES_MAX)) {
            prop_assert!(truth.fails.iter().any(|&fails| fails));
        }
    }
}
