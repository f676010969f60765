//! Which findings count, by the command line: `--baseline`, `--suppress`, `--fail-on`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use reweave_analysis::{Kind, Outcome};
use reweave_policy::{Baseline, Policy, Suppressions};
use reweave_report::{SetAside, counted, quoted};
use reweave_trace::Trace;

use crate::destination::is_same_file;
use crate::exit::{self, say};

/// Larger baselines and suppression files are not read.
const BYTES_MAX: u64 = 256 << 20;

/// How many stale entries are listed.
const LISTED_MAX: usize = 20;

/// Which findings count.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    /// Hide findings that this JSON report or list of fingerprints has
    ///
    /// Only new findings are shown and count for the exit code.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Hide findings that match this ThreadSanitizer suppression file
    ///
    /// May be given several times.
    #[arg(long, value_name = "FILE")]
    suppress: Vec<PathBuf>,
    /// Exit with 66 only for findings of these kinds, comma-separated
    ///
    /// With `none` the exit code is 0, whatever is found or left unsearched.
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = ANY,
          value_parser = clap::builder::PossibleValuesParser::new(fail_on_values()))]
    fail_on: Vec<String>,
}

const ANY: &str = "any";
const NONE: &str = "none";

fn fail_on_values() -> Vec<&'static str> {
    [ANY, NONE].into_iter().chain(Kind::ALL.map(Kind::as_str)).collect()
}

/// A policy in use: what it was applied to, and what has to be said of it at the end.
pub struct PolicyCheck<'a> {
    args: &'a PolicyArgs,
    policy: Policy,
    /// The maximum number of findings in a report.
    limit: Option<usize>,
    /// The kinds that were searched.
    kinds: Vec<Kind>,
    /// Whether every search was complete.
    is_complete: bool,
}

impl PolicyArgs {
    /// Whether the exit code is 0 whatever is found.
    fn never_fails(&self) -> bool {
        !self.fail_on.is_empty() && self.fail_on.iter().all(|it| it == NONE)
    }

    /// Whether findings of `kind` make the command fail.
    fn is_failing(&self, kind: Kind) -> bool {
        self.fail_on.is_empty() || self.fail_on.iter().any(|it| it == ANY || it == kind.as_str())
    }

    /// The kinds whose findings reports show as errors.
    pub fn fails_on(&self) -> Vec<Kind> {
        // `none` concerns the exit code alone.
        let all = Kind::ALL.into_iter();
        all.filter(|&kind| self.never_fails() || self.is_failing(kind)).collect()
    }

    /// Reads the files. `output`, where the report will be written, must not be the baseline.
    pub fn open(&self, output: Option<&Path>) -> anyhow::Result<PolicyCheck<'_>> {
        let mut policy = Policy::default();
        if let Some(path) = &self.baseline {
            let name = path.display().to_string();
            anyhow::ensure!(
                !output.is_some_and(|output| is_same_file(output, path)),
                "{name}: cannot overwrite the baseline with a report that hides its findings; to make \
                 a new baseline, leave out `--baseline`"
            );
            anyhow::ensure!(
                path.exists(),
                "cannot read {name}: no such file; to make a baseline: \
                 reweave check TRACE --format json -o {}",
                quoted(&name)
            );
            policy.baseline = Some(Baseline::parse(&name, &content(path)?)?);
        }
        for path in &self.suppress {
            let suppressions = Suppressions::parse(&path.display().to_string(), &content(path)?)?;
            policy.suppressions.push(suppressions);
        }
        Ok(PolicyCheck { args: self, policy, limit: None, kinds: Vec::new(), is_complete: true })
    }
}

impl PolicyCheck<'_> {
    /// The limit to search with, where `limit` findings are to be shown: none if some will be
    /// removed, since these do not count.
    pub fn search_limit(&mut self, limit: Option<usize>) -> Option<usize> {
        if self.policy.is_empty() {
            return limit;
        }
        self.limit = limit;
        None
    }

    /// Removes from `outcome`, of a search for `kinds`, what does not count.
    pub fn filter(
        &mut self,
        trace: &Trace,
        outcome: &mut Outcome,
        kinds: impl Iterator<Item = Kind>,
    ) -> SetAside {
        self.kinds.extend(kinds);
        self.is_complete &= outcome.is_complete();
        let removed = self.policy.filter(trace, outcome, self.limit);
        SetAside { known: removed.known, suppressed: removed.suppressed }
    }

    /// Lists the entries that match nothing any more. Only meaningful after every trace was searched,
    /// since another one may have what they name.
    pub fn report_stale(&self) {
        let caveat = if self.is_complete { "" } else { " (the search was incomplete)" };
        let unused: Vec<_> = self.policy.unused(&self.kinds).collect();
        for it in unused.iter().take(LISTED_MAX) {
            say(&format!("{}:{}: `{}` matched nothing{caveat}", it.file, it.line, it.text));
        }
        if unused.len() > LISTED_MAX {
            say(&format!("and {} more", unused.len() - LISTED_MAX));
        }
        let (Some(path), Some(known)) = (&self.args.baseline, &self.policy.baseline) else {
            return;
        };
        let missing = self.policy.not_found(&self.kinds).map(|it| it.fingerprint.to_string());
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return;
        }
        let more = missing.len().saturating_sub(LISTED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        say(&format!(
            "{}: {} of {} no longer found{caveat}: {}{more}",
            path.display(),
            missing.len(),
            counted(known.len() as u64, "known finding"),
            missing[..missing.len().min(LISTED_MAX)].join(", "),
        ));
    }

    /// The exit code of a search with these outcomes.
    pub fn exit_code<'o>(&self, outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> ExitCode {
        // `none` also forgives an incomplete search.
        if self.args.never_fails() {
            return ExitCode::SUCCESS;
        }
        exit::of_filtered_search(outcomes, |kind| self.args.is_failing(kind))
    }
}

fn content(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        let count = File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if count as u64 > BYTES_MAX {
            return Err(io::Error::other("it is larger than 256 MiB"));
        }
        Ok(bytes)
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}
