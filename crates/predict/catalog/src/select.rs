//! Which analyses there are, and which of them to run.

use reweave_analysis::{Analysis, Info};

const FAMILIES: &[&[&dyn Analysis]] = &[
    reweave_races::ANALYSES,
    reweave_deadlocks::ANALYSES,
    reweave_lifetimes::ANALYSES,
    reweave_atomicity::ANALYSES,
    reweave_determinism::ANALYSES,
    reweave_states::ANALYSES,
    reweave_endings::ANALYSES,
];

/// Families that look at programs, with commands of their own.
const PROGRAM_FAMILIES: &[&str] = &["intervals", "ndseq"];

/// Every analysis, family by family.
pub fn analyses() -> impl Iterator<Item = &'static dyn Analysis> {
    FAMILIES.iter().flat_map(|family| family.iter().copied())
}

/// A name or prefix that no analysis answers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// What there is.
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, known) = (&self.name, self.known.join(", "));
        let family = name.split('.').next().unwrap_or(name);
        if PROGRAM_FAMILIES.contains(&family) {
            return write!(
                f,
                "`{name}` looks at programs, not at traces: `reweave {family} --help` says how"
            );
        }
        write!(f, "no analysis is called `{name}`: there are {known}")
    }
}

impl std::error::Error for UnknownName {}

/// The analyses whose names start with `only`, or the default ones if it is empty; and besides
/// for each name in `with` those whose names start so, or the default ones of that family: where
/// there are none, its first.
///
/// ```
/// let names = |only| {
///     let selected = reweave_catalog::select(only, &[]).unwrap();
///     selected.iter().map(|analysis| analysis.info().name).collect::<Vec<_>>()
/// };
/// assert_eq!(names("races.cp"), ["races.cp"]);
/// assert!(names("").contains(&"races.exact"));
/// assert!(reweave_catalog::select("rases", &[]).is_err());
/// ```
///
/// # Errors
/// If a name matches nothing.
pub fn select(only: &str, with: &[String]) -> Result<Vec<&'static dyn Analysis>, UnknownName> {
    for name in with.iter().map(String::as_str).chain((!only.is_empty()).then_some(only)) {
        if !analyses().any(|analysis| analysis.info().name.starts_with(name)) {
            let known = analyses().map(|analysis| analysis.info().name).collect();
            return Err(UnknownName { name: name.to_owned(), known });
        }
    }
    let wanted = |analysis: &&'static dyn Analysis| {
        let info = analysis.info();
        let is_asked = if only.is_empty() { info.is_default } else { info.name.starts_with(only) };
        is_asked || with.iter().any(|name| is_added(info, name))
    };
    Ok(analyses().filter(wanted).collect())
}

/// Whether `name` adds the analysis: a family adds no more of itself than runs by default.
fn is_added(info: &Info, name: &str) -> bool {
    if name != info.family {
        return info.name.starts_with(name);
    }
    let own = || analyses().map(|analysis| analysis.info()).filter(|info| info.family == name);
    match own().any(|info| info.is_default) {
        true => info.is_default,
        false => own().next() == Some(info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &str, with: &[&str]) -> Vec<&'static str> {
        let with: Vec<String> = with.iter().map(|&name| name.to_owned()).collect();
        select(only, &with).unwrap().iter().map(|analysis| analysis.info().name).collect()
    }

    #[test]
    fn names_are_unique_and_start_with_their_family() {
        let mut names: Vec<_> = analyses().map(|analysis| *analysis.info()).collect();
        for info in &names {
            assert!(info.name.starts_with(&format!("{}.", info.family)), "{}", info.name);
        }
        names.sort_by_key(|info| info.name);
        assert!(names.windows(2).all(|pair| pair[0].name != pair[1].name));
    }

    #[test]
    fn unless_others_are_asked_for_each_family_runs_what_proves_most() {
        let waits = ["races.exact", "deadlocks.exact", "deadlocks.stuck"];
        let lives = ["lifetimes.free", "lifetimes.close", "atomicity.blocks"];
        let endings = ["endings.failure", "endings.stuck", "endings.misuse"];
        assert_eq!(names("", &[]), [waits, lives, endings].concat());
    }

    #[test]
    fn a_prefix_narrows() {
        assert_eq!(names("races.hb", &[]), ["races.hb"]);
        assert_eq!(names("races.s", &[]), ["races.syncp", "races.shb"]);
        assert_eq!(names("races", &[]).len(), reweave_races::ANALYSES.len());
        assert_eq!(names("atomicity", &[]), ["atomicity.blocks", "atomicity.sections"]);
    }

    #[test]
    fn a_family_adds_what_it_runs_by_default_and_a_longer_name_what_it_names() {
        assert_eq!(
            names("races.hb", &["deadlocks"]),
            ["races.hb", "deadlocks.exact", "deadlocks.stuck"]
        );
        assert_eq!(names("races.hb", &["atomicity"]), ["races.hb", "atomicity.blocks"]);
        assert_eq!(names("races.hb", &["races"]), ["races.exact", "races.hb"]);
        assert_eq!(names("races.hb", &["races.c"]), ["races.hb", "races.cp"]);
        assert_eq!(names("races.hb", &["determinism"]), ["races.hb", "determinism.strict"]);
        assert!(names("", &["atomicity.sections"]).contains(&"atomicity.sections"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_exist() {
        let said = |only: &str, with: &[String]| select(only, with).err().unwrap().to_string();
        let known: Vec<_> = analyses().map(|analysis| analysis.info().name).collect();
        let known = known.join(", ");
        let error = said("rases", &[]);
        assert_eq!(error, format!("no analysis is called `rases`: there are {known}"));
        assert!(select("", &["no such family".to_owned()]).is_err());
        for family in ["ndseq", "intervals"] {
            let error = said("", &[family.to_owned()]);
            assert!(error.starts_with(&format!("`{family}` looks at programs")), "{error}");
        }
    }
}
