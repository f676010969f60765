//! The programs of `corpus/programs`, small as they stand there, and large.
//!
//! A program says in comments of the form `// full: old => new` what to replace in its text to
//! make it large. What is replaced stands there once.

use anyhow::{Context, bail, ensure};
use reweave_exec::{Code, Run, Settings};
use reweave_lang::{GlobalId, Place, Program, Source, StatementKind, Style, check};
use reweave_workflows::inference::gather;
use reweave_workflows::runs::{Plan, SchedulerKind};

use crate::tree::Tree;

/// Where the programs are.
const FOLDER: &str = "corpus/programs/";
/// What starts a line that says what to replace.
const REPLACEMENT: &str = "// full: ";
/// How many runs are looked at together, as in the paper.
pub(super) const RUNS: u32 = 5;

/// How large a program is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As it stands.
    Small,
    /// With its replacements.
    Large,
}

/// A program that can be run.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) program: Program,
    pub(super) code: Code,
}

/// The names of all programs, sorted.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let name =
        |(path, _): (&str, &str)| Some(path.strip_prefix(FOLDER)?.strip_suffix(".rw")?.to_owned());
    // Those in folders of their own are for other tables.
    tree.texts().filter_map(name).filter(|name| !name.contains('/')).collect()
}

impl Loaded {
    /// The program `name` at a size.
    pub(super) fn new(tree: &Tree, name: &str, size: Size) -> anyhow::Result<Self> {
        let path = format!("{FOLDER}{name}.rw");
        let found = tree.texts().find(|&(candidate, _)| candidate == path);
        let (_, text) = found.with_context(|| format!("there is no `{path}`"))?;
        let text = match size {
            Size::Small => text.to_owned(),
            Size::Large => enlarged(text).with_context(|| format!("cannot enlarge `{path}`"))?,
        };
        let source = Source::new(&path, text);
        let checked = check(&source);
        let Some(program) = checked.program else {
            let errors = checked.diagnostics.iter();
            let errors: Vec<String> =
                errors.map(|diagnostic| diagnostic.render(&source, Style::Plain)).collect();
            bail!("{}", errors.join("\n"));
        };
        let code = Code::new(&program, &source);
        Ok(Self { name: name.to_owned(), source, program, code })
    }

    /// How it is run: as the paper does, towards races.
    pub(super) fn plan(seed: u64) -> Plan {
        let settings = Settings { steps_max: 100_000_000, ..Settings::default() };
        Plan { scheduler: SchedulerKind::RaceDirected, seed, runs_count: RUNS, settings }
    }

    /// Its runs from `seed` on.
    pub(super) fn runs(&self, seed: u64) -> anyhow::Result<Vec<Run>> {
        let gathered = gather(&self.code, &Self::plan(seed), &|| true);
        let trouble = gathered.troubles.first();
        ensure!(trouble.is_none(), "a run of `{}` fails: {trouble:?}", self.name);
        Ok(gathered.runs.into_iter().map(|observed| observed.run).collect())
    }

    /// How many lines it has, without comments and blank ones.
    pub(super) fn lines_count(&self) -> usize {
        let lines = self.source.text().lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
    }

    /// How many `coforeach` and `cobegin` it has.
    pub(super) fn constructs_count(&self) -> usize {
        let starts_threads = |kind: &StatementKind| {
            matches!(kind, StatementKind::ForEachThread { .. } | StatementKind::Threads { .. })
        };
        self.statements().filter(|&kind| starts_threads(kind)).count()
    }

    /// How many of its statements write what is its result.
    pub(super) fn focus_statements_count(&self) -> usize {
        let is_focus = |global: GlobalId| self.program.focus.contains(&global);
        let written = |kind: &StatementKind| match kind {
            StatementKind::Store { place: Place { global, .. }, .. }
            | StatementKind::CompareAndSwap { place: Place { global, .. }, .. }
            | StatementKind::FetchAdd { place: Place { global, .. }, .. } => Some(*global),
            _ => None,
        };
        self.statements().filter_map(written).filter(|&global| is_focus(global)).count()
    }

    fn statements(&self) -> impl Iterator<Item = &StatementKind> {
        let statements = self.program.blocks.iter().flat_map(|block| &block.statements);
        statements.map(|statement| &statement.kind)
    }
}

/// `text` with its replacements. Lines keep their numbers.
fn enlarged(text: &str) -> anyhow::Result<String> {
    let mut replacements = Vec::new();
    let mut result = String::with_capacity(text.len());
    for line in text.lines() {
        match line.strip_prefix(REPLACEMENT) {
            Some(rest) => {
                let replacement = rest.split_once(" => ");
                replacements.push(replacement.with_context(|| format!("no ` => ` in `{line}`"))?);
                result.push_str("//");
            }
            None => result.push_str(line),
        }
        result.push('\n');
    }
    for (old, new) in replacements {
        let count = result.matches(old).count();
        ensure!(count == 1, "`{old}` is there {count} times");
        result = result.replacen(old, new, 1);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_stands_there_once() {
        let small = "// full: let n = 2 => let n = 20\nlet n = 2;\n";
        assert_eq!(enlarged(small).unwrap(), "//\nlet n = 20;\n");
        assert!(enlarged("// full: let n = 2 => let n = 20\n").is_err());
        assert!(enlarged("// full: n = 2 => n = 20\nn = 2; n = 2;\n").is_err());
        assert!(enlarged("// full: n = 2\nn = 2;\n").is_err());
    }
}
