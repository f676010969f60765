//! `soak`: run the random tests for longer than a change can wait.
//!
//! Randomised tests read `REWEAVE_SOAK` and try so many times their usual number of cases, in
//! release mode; those that name no number of their own follow `PROPTEST_CASES`. With `--fuzz`,
//! every fuzz target runs too.

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

/// One program to run.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    arguments: Vec<String>,
    settings: Vec<(&'static str, String)>,
}

/// Runs everything, and stops at the first failure.
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
    let mut arguments: Vec<String> = ["test", "--release"].map(String::from).into();
    for package in packages_with_properties(tree) {
        arguments.extend(["--package".into(), package]);
    }
    let settings =
        vec![("PROPTEST_CASES", args.cases.to_string()), ("REWEAVE_SOAK", args.times.to_string())];
    let mut steps = vec![Step { arguments, settings }];
    if let Some(seconds) = args.fuzz {
        steps.extend(fuzz_targets(tree).map(|target| Step {
            arguments: vec![
                "+nightly".into(),
                "fuzz".into(),
                "run".into(),
                target.into(),
                "--".into(),
                format!("-max_total_time={seconds}"),
            ],
            settings: Vec::new(),
        }));
    }
    steps
}

/// The packages whose manifest asks for proptest.
fn packages_with_properties(tree: &Tree) -> impl Iterator<Item = String> {
    tree.manifests().filter_map(|(name, _, text)| {
        let asks = text.lines().any(|line| line.starts_with("proptest"));
        asks.then(|| format!("reweave-{name}"))
    })
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
            ("crates/base/Cargo.toml", "[dependencies]\n"),
            ("crates/order/Cargo.toml", "[dev-dependencies]\nproptest.workspace = true\n"),
            ("fuzz/fuzz_targets/rwt.rs", ""),
            ("fuzz/fuzz_targets/std_text.rs", ""),
        ])
    }

    fn commands(args: &Args) -> Vec<String> {
        steps(&tree(), args).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn only_crates_with_properties_are_tested() {
        let args = Args { times: 3, cases: 7, fuzz: None };
        assert_eq!(commands(&args), ["test --release --package reweave-order"]);
        let settings = &steps(&tree(), &args)[0].settings;
        assert_eq!(settings[0], ("PROPTEST_CASES", "7".into()));
        assert_eq!(settings[1], ("REWEAVE_SOAK", "3".into()));
    }

    #[test]
    fn every_fuzz_target_runs_when_asked_for() {
        let args = Args { times: 3, cases: 7, fuzz: Some(60) };
        assert_eq!(
            commands(&args)[1..],
            [
                "+nightly fuzz run rwt -- -max_total_time=60",
                "+nightly fuzz run std_text -- -max_total_time=60",
            ]
        );
    }
}
