//! How hard was looked for what a JSON report tells of, so that whoever reads the report can look
//! again in the same way. What is left at its default is left out.

use std::num::NonZeroU32;

use reweave_analysis::Settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings that findings depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsEntry {
    #[serde(skip_serializing_if = "is_false")]
    all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "is_false")]
    values: bool,
    #[serde(skip_serializing_if = "is_false")]
    final_reads: bool,
}

impl SettingsEntry {
    /// What `settings` has that is not at its default; none if that is nothing.
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let budget = settings.budget;
        let entry = Self {
            all: settings.all,
            limit: settings.limit,
            budget: (budget != Settings::default().budget).then_some(budget),
            window: settings.window.and_then(NonZeroU32::new),
            values: settings.differing_values,
            final_reads: settings.final_reads,
        };
        (entry != Self::default()).then_some(entry)
    }

    fn settings(&self) -> Settings {
        let standard = Settings::default();
        Settings {
            all: self.all,
            limit: self.limit,
            budget: self.budget.unwrap_or(standard.budget),
            window: self.window.map(NonZeroU32::get),
            differing_values: self.values,
            final_reads: self.final_reads,
            ..standard
        }
    }
}

/// The settings that the JSON report `document` was made with. How many threads worked is not among
/// them, since nothing depends on it.
///
/// # Errors
/// If `settings` are there and are not those of a report.
pub fn recorded_settings(document: &Value) -> serde_json::Result<Settings> {
    match document.get("settings") {
        None => Ok(Settings::default()),
        Some(settings) => SettingsEntry::deserialize(settings).map(|entry| entry.settings()),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_false(holds: &bool) -> bool {
    !*holds
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_come_back_as_they_were_written() {
        let standard = Settings::default();
        let changed = Settings {
            all: true,
            limit: Some(0),
            budget: 7,
            window: Some(500),
            differing_values: true,
            final_reads: true,
            ..standard
        };
        let all = json!({ "all": true, "limit": 0, "budget": 7, "window": 500, "values": true,
            "final_reads": true });
        let some = Settings { final_reads: true, ..standard };
        for (settings, expected) in [(changed, all), (some, json!({ "final_reads": true }))] {
            let written = json!({ "settings": SettingsEntry::new(&settings) });
            assert_eq!(written["settings"], expected);
            assert_eq!(recorded_settings(&written).unwrap(), settings);
        }
        assert_eq!(SettingsEntry::new(&standard), None);
        assert_eq!(recorded_settings(&json!({})).unwrap(), standard);
    }

    #[test]
    fn settings_that_no_search_can_have_are_refused_and_unknown_ones_let_be() {
        for settings in [json!(1), json!({ "limit": -1 }), json!({ "window": 0 })] {
            assert!(recorded_settings(&json!({ "settings": settings })).is_err());
        }
        let newer = json!({ "settings": { "depth": 3 } });
        assert_eq!(recorded_settings(&newer).unwrap(), Settings::default());
    }
}
