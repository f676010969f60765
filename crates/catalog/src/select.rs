//! Which analyses there are, and which of them to run.

use reweave_analysis::Analysis;

const FAMILIES: &[&[&dyn Analysis]] = &[reweave_races::ANALYSES];

/// Families that run unless others are asked for.
const DEFAULT_FAMILIES: &[&str] = &["races", "deadlocks", "atomicity"];

/// Families that are to come. Whoever asks for one has not misspelt it.
pub const PLANNED_FAMILIES: &[&str] =
    &["deadlocks", "determinism", "atomicity", "states", "ndseq", "intervals"];

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
        if PLANNED_FAMILIES.contains(&family) {
            return write!(f, "`{name}` is not in this version: there is {known}");
        }
        write!(f, "no analysis is called `{name}`: there is {known}")
    }
}

impl std::error::Error for UnknownName {}

/// The analyses whose names start with `only`, or those of the default families if it is empty;
/// and the families of `with` besides.
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
        let asked = if only.is_empty() {
            DEFAULT_FAMILIES.contains(&info.family)
        } else {
            info.name.starts_with(only)
        };
        asked || with.iter().any(|name| info.name.starts_with(name.as_str()))
    };
    Ok(analyses().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_prefix_narrows_and_an_unknown_one_is_refused() {
        let names = |only: &str| -> Vec<_> {
            select(only, &[]).unwrap().iter().map(|analysis| analysis.info().name).collect()
        };
        assert_eq!(names("races.hb"), ["races.hb"]);
        assert!(names("").contains(&"races.hb"));
        let error = select("rases", &[]).err().unwrap();
        assert_eq!(error.to_string(), "no analysis is called `rases`: there is races.hb");
        assert!(select("", &["no such family".to_owned()]).is_err());
        let error = select("", &["determinism".to_owned()]).err().unwrap();
        assert_eq!(error.to_string(), "`determinism` is not in this version: there is races.hb");
    }
}
