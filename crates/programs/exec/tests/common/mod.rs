//! What the tests share: programs from their text, and random small programs.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod generate;
pub(crate) mod replayed;

use reweave_exec::scheduler::Random;
use reweave_exec::{Code, Run, Settings, run};
use reweave_lang::{Source, check};

/// The program `text`, compiled.
#[track_caller]
pub(crate) fn code(text: &str) -> Code {
    let source = Source::new("p.rw", text);
    let checked = check(&source);
    let Some(program) = checked.program else {
        panic!("{text}\n{:#?}", checked.diagnostics);
    };
    Code::new(&program, &source)
}

/// The run of `text` that `seed` chooses.
#[track_caller]
pub(crate) fn random_run(text: &str, seed: u64) -> Run {
    run(&code(text), &mut Random::new(seed), &Settings::default())
}
