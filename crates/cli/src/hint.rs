//! A word to those who ask for a command that is to come.

use reweave_catalog::PLANNED_FAMILIES;

/// Commands that are to come, besides those of the families.
const PLANNED: &[&str] = &["cc", "c++", "record", "confirm"];

/// What to say to someone who asks for the unknown command `name`, if it is known to us.
pub(crate) fn of_command(name: &str) -> Option<String> {
    let is_planned = PLANNED_FAMILIES.contains(&name) || PLANNED.contains(&name);
    is_planned.then(|| format!("`{name}` is not in this version; `reweave --help` says what is"))
}
