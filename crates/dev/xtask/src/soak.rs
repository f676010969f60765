//! `soak`: run the random tests for longer than a change can wait.
//!
//! Randomised tests read `REWEAVE_SOAK` and try so many times their usual number of cases, in
//! release mode; those that name no number of their own follow `PROPTEST_CASES`. With `--fuzz`,
//! every fuzz target runs too, from the files in `fuzz/seeds` that it has.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::tree::Tree;

/// How long to soak.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many times their usual number of cases the tests try.
    #[arg(long, value_name = "N", default_value_t = 100)]
    times: u32,
    /// How many cases a property test tries that names no usual number.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cases: u64,
    /// Run each fuzz target for so many seconds afterwards; needs nightly Rust and cargo-fuzz.
    #[arg(long, value_name = "SECONDS")]
    fuzz: Option<u64>,
}

/// An allocation that is too large fails, as it does without a sanitizer.
const ALLOCATION: &str = "allocator_may_return_null=1:max_allocation_size_mb=1024";

/// One program to run.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    arguments: Vec<String>,
    settings: Vec<(&'static str, String)>,
}

/// Runs everything: one failure hides no other.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let tree = Tree::load(root)?;
    if args.fuzz.is_some() {
        check_fuzz_tools()?;
    }
    for step in steps(&tree, args) {
        println!("soak: cargo {}", step.arguments.join(" "));
        let status = Command::new("cargo")
            .args(&step.arguments)
            .envs(step.settings)
            .current_dir(root)
            .status()
            .context("cannot run cargo")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("soak: nothing found");
    Ok(ExitCode::SUCCESS)
}

fn check_fuzz_tools() -> anyhow::Result<()> {
    let works = |arguments: &[&str]| {
        Command::new("cargo").args(arguments).output().is_ok_and(|output| output.status.success())
    };
    if !works(&["+nightly", "--version"]) {
        bail!("fuzzing needs nightly Rust: `rustup toolchain install nightly` installs it");
    }
    if !works(&["+nightly", "fuzz", "--version"]) {
        bail!("fuzzing needs cargo-fuzz: `cargo install cargo-fuzz` installs it");
    }
    Ok(())
}

fn steps(tree: &Tree, args: &Args) -> Vec<Step> {
    let words = ["test", "--release", "--no-fail-fast"];
    let mut arguments: Vec<String> = words.map(String::from).into();
    for package in packages_to_soak(tree) {
        arguments.extend(["--package".into(), package]);
    }
    let settings =
        vec![("PROPTEST_CASES", args.cases.to_string()), ("REWEAVE_SOAK", args.times.to_string())];
    let mut steps = vec![Step { arguments, settings }];
    if let Some(seconds) = args.fuzz {
        steps.extend(fuzz_targets(tree).map(|target| {
            let words = ["+nightly", "fuzz", "run", target, "--"].map(String::from);
            let limit = format!("-max_total_time={seconds}");
            let arguments = words.into_iter().chain([limit]).chain(seeds(tree, target)).collect();
            Step { arguments, settings: vec![("ASAN_OPTIONS", ALLOCATION.into())] }
        }));
    }
    steps
}

/// The packages whose manifest asks for proptest, or whose tests ask how long to run.
fn packages_to_soak(tree: &Tree) -> impl Iterator<Item = String> {
    tree.manifests().filter_map(|(name, path, text)| {
        let folder = path.strip_suffix("Cargo.toml")?;
        let asks = |(source, text): (&str, &str)| {
            source.starts_with(folder) && name != "xtask" && text.contains("soak::")
        };
        let has_properties = text.lines().any(|line| line.starts_with("proptest"));
        (has_properties || tree.sources().any(asks)).then(|| format!("reweave-{name}"))
    })
}

/// The option that gives `target` the files to start from, if there are any.
fn seeds(tree: &Tree, target: &str) -> Option<String> {
    let folder = format!("fuzz/seeds/{target}/");
    let files = tree.files().map(|(path, _)| path).filter(|path| path.starts_with(&folder));
    let files: Vec<&str> = files.collect();
    (!files.is_empty()).then(|| format!("-seed_inputs={}", files.join(",")))
}

fn fuzz_targets(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.sources()
        .filter_map(|(path, _)| path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::from([
            ("crates/group/base/Cargo.toml", "[dependencies]\n"),
            ("crates/group/base/src/lib.rs", ""),
            ("crates/group/cli/Cargo.toml", "[dependencies]\n"),
            ("crates/group/cli/tests/record.rs", "for seed in 0..soak::cases(3) {}"),
            ("crates/group/order/Cargo.toml", "[dev-dependencies]\nproptest.workspace = true\n"),
            ("fuzz/fuzz_targets/rwt.rs", ""),
            ("fuzz/seeds/std_text/a", ""),
            ("fuzz/seeds/std_text/b", ""),
            ("fuzz/fuzz_targets/std_text.rs", ""),
        ])
    }

    fn commands(args: &Args) -> Vec<String> {
        steps(&tree(), args).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn only_crates_whose_tests_can_run_for_longer_are_tested() {
        let args = Args { times: 3, cases: 7, fuzz: None };
        let command = "test --release --no-fail-fast --package reweave-cli --package reweave-order";
        assert_eq!(commands(&args), [command]);
        let settings = &steps(&tree(), &args)[0].settings;
        assert_eq!(settings[0], ("PROPTEST_CASES", "7".into()));
        assert_eq!(settings[1], ("REWEAVE_SOAK", "3".into()));
    }

    #[test]
    fn every_fuzz_target_runs_when_asked_for() {
        let args = Args { times: 3, cases: 7, fuzz: Some(60) };
        let seeds = "-seed_inputs=fuzz/seeds/std_text/a,fuzz/seeds/std_text/b";
        assert_eq!(
            commands(&args)[1..],
            [
                "+nightly fuzz run rwt -- -max_total_time=60".to_owned(),
                format!("+nightly fuzz run std_text -- -max_total_time=60 {seeds}"),
            ]
        );
    }
}
