//! The layers of recorded traces agree with each other and with the run, whatever the program.

use crate::common;

use common::code;
use common::generate::{Shape, programs};
use proptest::prelude::*;
use reweave_exec::scheduler::{Random, Replay};
use reweave_exec::{Layers, Settings, run};
use reweave_testkit::soak;

const SHORT: Settings = Settings { steps_max: 300, threads_max: 100, layers: Layers::Program };

proptest! {
    #![proptest_config(soak::config(300))]

    #[test]
    fn transitions_compute_every_value_of_the_run(
        text in programs(Shape { statements_max: 20, ..Shape::SMALL }),
        seed: u64,
    ) {
        let code = code(&text);
        let run = run(&code, &mut Random::new(seed), &SHORT);
        let computed = common::replayed::check(&run.trace);
        let names = code.result_names();
        for (name, value) in names.iter().zip(run.result(&code)) {
            if let Some(&computed) = computed.get(name) {
                prop_assert_eq!(computed, value, "{}", name);
            }
        }
    }

    #[test]
    fn a_schedule_repeats_its_run(text in programs(Shape::SMALL), seed: u64) {
        let code = code(&text);
        let first = run(&code, &mut Random::new(seed), &SHORT);
        let again = run(&code, &mut Random::new(seed), &SHORT);
        let replayed = run(&code, &mut Replay::new(&first.schedule), &SHORT);
        for other in [&again, &replayed] {
            prop_assert_eq!(&first.trace, &other.trace);
            prop_assert_eq!(&first.ending, &other.ending);
            prop_assert_eq!(&first.faults, &other.faults);
            prop_assert_eq!(&first.schedule, &other.schedule);
            prop_assert_eq!(&first.memory, &other.memory);
        }
    }

    #[test]
    fn what_is_recorded_does_not_change_the_run(text in programs(Shape::SMALL), seed: u64) {
        let code = code(&text);
        let full = run(&code, &mut Random::new(seed), &SHORT);
        for layers in [Layers::Events, Layers::Flow] {
            let other = run(&code, &mut Random::new(seed), &Settings { layers, ..SHORT });
            prop_assert_eq!(full.trace.len(), other.trace.len());
            for (id, event) in full.trace.events() {
                prop_assert_eq!(full.trace.spell(id), other.trace.spell(id));
                prop_assert_eq!(event.thread, other.trace.event(id).thread);
                prop_assert_eq!(full.trace.value(id), other.trace.value(id));
            }
            prop_assert_eq!(full.trace.flow().filter(|_| layers >= Layers::Flow), other.trace.flow());
        }
    }
}
