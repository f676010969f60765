//! What to do with a finding: the commands that explain it and that replay it, as they can be typed.

use reweave_analysis::{Guarantee, Reported, Settings};

use crate::Examined;

/// The analyses that run where nothing else is asked for.
const DEFAULT: [&str; 3] = ["races.exact", "deadlocks.exact", "atomicity.blocks"];

/// The analysis that is asked for by its predicates.
const ASKED: &str = "states.find";

/// What `explain` and `confirm` are given to find `reported` again.
fn again(examined: &Examined<'_>, reported: &Reported) -> String {
    let dash = if examined.path.starts_with('-') { "./" } else { "" };
    let finding = &reported.finding;
    let state = finding.detail.state().filter(|_| finding.analysis == ASKED);
    // Asked for alone, the second of two predicates is the first.
    let name = match state {
        Some(_) => reported.fingerprint.to_string(),
        None => reported.id.clone(),
    };
    let mut words = vec![format!("{dash}{}", quoted(examined.path)), name];
    match state {
        Some(state) => {
            words.extend(["--predicate".to_owned(), quoted(&state.predicate)]);
            words.extend(["--order".to_owned(), state.order.as_str().to_owned()]);
        }
        None => words.extend(analyses(examined)),
    }
    let Settings { all, limit, budget, window, differing_values, final_reads, threads: _ } =
        examined.outcome.settings;
    let mut flag = |is_set: bool, word: &str| {
        if is_set {
            words.push(word.to_owned());
        }
    };
    flag(all, "--all");
    flag(differing_values, "--values");
    flag(final_reads, "--final-reads");
    flag(!examined.trace.repairs().is_empty(), "--repair");
    let default = Settings::default();
    words.extend(limit.map(|limit| format!("--limit {limit}")));
    words.extend(window.map(|window| format!("--window {window}")));
    words.extend((budget != default.budget).then(|| format!("--budget {budget}")));
    words.join(" ")
}

/// The options that have the same analyses run.
fn analyses(examined: &Examined<'_>) -> Vec<String> {
    let ran: Vec<&str> = examined.outcome.coverage.iter().map(|it| it.analysis).collect();
    let with = |names: Vec<&str>| names.into_iter().map(|name| format!("--with {name}")).collect();
    if ran.is_empty() || DEFAULT.iter().all(|name| ran.contains(name)) {
        return with(ran.into_iter().filter(|name| !DEFAULT.contains(name)).collect());
    }
    let mut options = vec![format!("--only {}", ran[0])];
    options.extend::<Vec<String>>(with(ran[1..].to_vec()));
    options
}

/// The command that explains `reported`; none if its trace cannot be read again.
pub(crate) fn explain(examined: &Examined<'_>, reported: &Reported) -> Option<String> {
    examined.is_kept.then(|| format!("reweave explain {}", again(examined, reported)))
}

/// The command that replays `reported`; none if the trace is of no real program, or nothing proves it.
pub(crate) fn confirm(examined: &Examined<'_>, reported: &Reported) -> Option<String> {
    let is_recorded = examined.is_kept && examined.trace.origins().is_some();
    let is_proven = reported.finding.guarantee() == Guarantee::Witnessed;
    let is_open = examined.replayed(&reported.id).is_none();
    let words = || format!("reweave confirm {} -- CMD", again(examined, reported));
    (is_recorded && is_proven && is_open).then(words)
}

/// `word` as a shell takes it for one word.
///
/// ```
/// assert_eq!(reweave_report::quoted("run.rwt"), "run.rwt");
/// assert_eq!(reweave_report::quoted("my run.rwt"), "'my run.rwt'");
/// ```
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_the_catalog() {
        let selected = reweave_catalog::select("", &[]).unwrap();
        let mut names: Vec<&str> = selected.iter().map(|it| it.info().name).collect();
        let mut default = DEFAULT;
        names.sort_unstable();
        default.sort_unstable();
        assert_eq!(names, default);
    }

    #[test]
    fn a_word_stays_a_word() {
        assert_eq!(quoted("a/b.rwt"), "a/b.rwt");
        assert_eq!(quoted("my run.rwt"), "'my run.rwt'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
