//! Which findings count, as the command line says it: what is known, tolerated, or no reason to fail.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::Context as _;
use clap::builder::PossibleValue;
use reweave_analysis::{Kind, Outcome};
use reweave_policy::{Baseline, Gate, Suppressions};
use reweave_report::{SetAside, counted, quoted};
use reweave_trace::Trace;

use crate::exit::{self, say};
use crate::overwriting::is_same_file;

/// Larger baselines and lists of suppressions are not read.
const BYTES_MAX: u64 = 256 << 20;

/// How many unused entries are told one by one.
const TOLD_MAX: usize = 20;

/// Which findings count.
#[derive(Debug, clap::Args)]
pub(crate) struct GateArgs {
    /// Leave out what this JSON report, or this list of fingerprints, has: only what is new counts
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Leave out what this file of suppressions names, in ThreadSanitizer's syntax; may be given
    /// several times
    #[arg(long, value_name = "FILE")]
    suppress: Vec<PathBuf>,
    /// Exit with 66 only over findings of this kind; several with commas between them. With `none`
    /// the exit code is 0 whatever is found or left unsearched
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',', default_value = "any")]
    fail_on: Vec<FailOn>,
}

/// Which kinds of faults are a reason to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailOn {
    Any,
    None,
    Of(Kind),
}

impl clap::ValueEnum for FailOn {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<FailOn>> = LazyLock::new(|| {
            [FailOn::Any, FailOn::None].into_iter().chain(Kind::ALL.map(FailOn::Of)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Any => "any",
            Self::None => "none",
            Self::Of(kind) => kind.as_str(),
        }))
    }
}

impl FailOn {
    fn has(self, kind: Kind) -> bool {
        self == Self::Any || self == Self::Of(kind)
    }
}

/// What findings have to pass before they count.
pub(crate) struct Checkpoint<'a> {
    args: &'a GateArgs,
    gate: Gate,
    /// How many findings a report may have.
    limit: Option<usize>,
    /// The kinds that were looked for.
    kinds: Vec<Kind>,
    /// Whether all was looked for that there is.
    is_complete: bool,
}

impl GateArgs {
    /// Whether the exit code is 0 whatever is found.
    fn never_fails(&self) -> bool {
        !self.fail_on.is_empty() && self.fail_on.iter().all(|&it| it == FailOn::None)
    }

    /// Whether findings of `kind` make the command fail.
    fn is_failing(&self, kind: Kind) -> bool {
        self.fail_on.is_empty() || self.fail_on.iter().any(|it| it.has(kind))
    }

    /// The kinds whose findings are a reason to fail.
    pub(crate) fn fails_on(&self) -> Vec<Kind> {
        match self.never_fails() {
            // How the command ends has no part in what is an error.
            true => Kind::ALL.to_vec(),
            false => Kind::ALL.into_iter().filter(|&kind| self.is_failing(kind)).collect(),
        }
    }

    /// Reads the files; `output`, the report to be, may not be one of them.
    pub(crate) fn open(&self, output: Option<&Path>) -> anyhow::Result<Checkpoint<'_>> {
        let baseline = self.baseline.as_deref();
        let is_itself = output.zip(baseline).is_some_and(|(one, other)| is_same_file(one, other));
        anyhow::ensure!(
            !is_itself,
            "{}: a report that leaves out what the baseline has cannot become that baseline; make a \
             new one without `--baseline`",
            output.unwrap_or(Path::new("")).display()
        );
        let mut gate = Gate::default();
        if let Some(path) = baseline {
            let name = path.display().to_string();
            anyhow::ensure!(
                path.exists(),
                "cannot read {name}: there is no such file; a report makes a baseline: \
                 reweave check TRACE --format json -o {}",
                quoted(&name)
            );
            gate.baseline = Some(Baseline::parse(&name, &content(path)?)?);
        }
        for path in &self.suppress {
            let bytes = content(path)?;
            let suppressions = Suppressions::parse(&path.display().to_string(), &bytes)?;
            if let Some((first, count)) = suppressions.foreign() {
                let more = match count {
                    1 => String::new(),
                    _ => format!(", and {} more like it", count - 1),
                };
                say(&format!(
                    "{}:{}: `{}`{more}: reweave never reports such things",
                    first.file, first.line, first.text
                ));
            }
            gate.suppressions.push(suppressions);
        }
        Ok(Checkpoint { args: self, gate, limit: None, kinds: Vec::new(), is_complete: true })
    }
}

impl Checkpoint<'_> {
    /// The limit to look with, where `limit` findings are to be shown: those that are set aside do
    /// not count.
    pub(crate) fn widened(&mut self, limit: Option<usize>) -> Option<usize> {
        if self.gate.is_open() {
            return limit;
        }
        self.limit = limit;
        None
    }

    /// Takes out of `outcome`, of a search for `kinds`, what does not count.
    pub(crate) fn sift(
        &mut self,
        trace: &Trace,
        outcome: &mut Outcome,
        kinds: impl Iterator<Item = Kind>,
    ) -> SetAside {
        self.kinds.extend(kinds);
        self.is_complete &= outcome.is_complete();
        let aside = self.gate.sift(trace, outcome, self.limit);
        SetAside { known: aside.known, suppressed: aside.suppressed }
    }

    /// Says which entries of the files are of no use any more; to be asked only after a search of
    /// every trace, since what was not looked at may have what they name.
    pub(crate) fn tell(&self) {
        let but = if self.is_complete { "" } else { ", but not everything was searched" };
        let unused = self.gate.unused(&self.kinds);
        let unused =
            unused.map(|it| format!("{}:{}: `{}` matched nothing{but}", it.file, it.line, it.text));
        tell_some(&unused.collect::<Vec<_>>());
        let (Some(path), Some(known)) = (&self.args.baseline, &self.gate.baseline) else { return };
        let unmet: Vec<String> =
            self.gate.unmet(&self.kinds).map(|it| it.fingerprint.to_string()).collect();
        if !unmet.is_empty() {
            let count = unmet.len();
            let more = count.saturating_sub(TOLD_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let listed = unmet[..count.min(TOLD_MAX)].join(", ");
            say(&format!(
                "{}: {count} of {} not found any more{but}: {listed}{more}",
                path.display(),
                counted(known.len() as u64, "known finding"),
            ));
        }
    }

    /// The exit code of a search with these outcomes.
    pub(crate) fn code<'o>(&self, outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> ExitCode {
        // A report that never fails does not fail for what was left unsearched either.
        if self.args.never_fails() {
            return ExitCode::SUCCESS;
        }
        exit::of_gated_search(outcomes, |kind| self.args.is_failing(kind))
    }
}

fn content(path: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        let count = File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match count as u64 > BYTES_MAX {
            true => Err(io::Error::other("it has more than 256 MB")),
            false => Ok(bytes),
        }
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

fn tell_some(lines: &[String]) {
    lines.iter().take(TOLD_MAX).for_each(|line| say(line));
    if lines.len() > TOLD_MAX {
        say(&format!("and {} more", lines.len() - TOLD_MAX));
    }
}
