//! A word to those who ask for a command that is to come.

/// Commands that are to come.
const PLANNED: &[&str] = &[];

/// What to say to someone who asks for the unknown command `name`, if it is known to us.
pub(crate) fn of_command(name: &str) -> Option<String> {
    PLANNED
        .contains(&name)
        .then(|| format!("`{name}` is not in this version; `reweave --help` says what is"))
}
