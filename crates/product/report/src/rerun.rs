//! Commands that run a recorded program again, as a reader can type them.
//!
//! A trace may say how its run was started; then its command stands where `CMD` stands otherwise. It
//! is quoted, so that a shell takes each word for one word, whatever is in it.

use reweave_trace::{RunStart, is_variable_name};

use crate::Examined;
use crate::finding::quoted;

/// What stands for a command that is not known.
const UNKNOWN: &str = "CMD";

/// A longer command is not printed.
const LETTERS_MAX: usize = 2000;

/// Options of `record` that a recorded run may have had and that harm nobody, without and with values.
const FLAGS: [&str; 2] = ["--no-values", "--all-memory"];
const WITH_VALUES: [&str; 7] =
    ["--mode", "--limit", "--time-limit", "--exit-wait", "--stall-timeout", "--keep", "--keep-env"];

/// A recorded command, as one types it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCommand {
    /// Variables that are set before: `MODE=fast `.
    pub variables: String,
    /// The option with the folder to run it in, unless the reader is there: ` --directory /srv`.
    pub directory: String,
    /// The program and its arguments.
    pub words: String,
}

impl RecordedCommand {
    /// That of `start`, for a reader who is in the folder `here`, or in that of the run.
    #[must_use]
    pub fn new(start: &RunStart, here: Option<&str>) -> Self {
        let is_elsewhere = here.is_some_and(|here| here != start.folder);
        let directory = (is_elsewhere && !start.folder.is_empty())
            .then(|| format!(" --directory {}", quoted(&start.folder)));
        // Names cannot be quoted: what a shell takes for more than a name is left out.
        let variables = start.environment.iter().filter(|(name, _)| is_variable_name(name));
        let variables = variables.map(|(name, value)| format!("{name}={} ", quoted(value)));
        Self {
            variables: variables.collect(),
            directory: directory.unwrap_or_default(),
            words: typed(&start.command),
        }
    }

    /// The whole line: the recorded command behind `command`, one of ours.
    #[must_use]
    pub fn after(&self, command: &str) -> String {
        let Self { variables, directory, words } = self;
        format!("{variables}{command}{directory} -- {words}")
    }
}

/// `words` as one types them.
fn typed(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// What the trace says of the command that made it, if it says so.
fn recorded<'a>(examined: &Examined<'a>) -> Option<&'a RunStart> {
    examined.trace.run_start().filter(|start| !start.command.is_empty())
}

/// The command of the trace, if it is the reader's own.
///
/// What somebody else recorded is not theirs to paste: `confirm` shows it, and asks.
fn own(examined: &Examined<'_>) -> Option<RecordedCommand> {
    let start = recorded(examined).filter(|_| examined.is_own)?;
    Some(RecordedCommand::new(start, examined.folder))
}

/// The command that replays the finding that `again` names: a trace, an id and options.
pub fn confirm_line(examined: &Examined<'_>, again: &str) -> String {
    let line = format!("reweave confirm {again}");
    match (recorded(examined), own(examined)) {
        (None, _) => format!("{line} -- {UNKNOWN}"),
        (_, Some(command)) if command.words.len() <= LETTERS_MAX => command.after(&line),
        // The trace has it.
        _ => line,
    }
}

/// The command that records another run of the program, with the next seed; none if its command is too
/// long to print.
pub fn record_line(examined: &Examined<'_>) -> Option<String> {
    let start = examined.trace.run_start();
    let seed = start.and_then(|start| start.seed).unwrap_or(1).saturating_add(1);
    let options = start.map_or(&[][..], |start| &start.options);
    let line = format!("reweave record --seed {seed}{}", kept_options(options));
    match own(examined) {
        Some(command) => (command.words.len() <= LETTERS_MAX).then(|| command.after(&line)),
        None => Some(format!("{line} -- {UNKNOWN}")),
    }
}

/// Of the recorded `options` those that change nothing but how a run is recorded: a trace may hold any others.
fn kept_options(options: &[String]) -> String {
    let mut kept = String::new();
    let mut words = options.iter().map(String::as_str);
    while let Some(name) = words.next() {
        if FLAGS.contains(&name) {
            kept += &format!(" {name}");
        } else if WITH_VALUES.contains(&name)
            && let Some(value) = words.next().filter(|value| !value.starts_with('-'))
        {
            kept += &format!(" {name} {}", quoted(value));
        }
    }
    kept
}

/// How a run was started, for people: what each line is, and what it says.
pub fn start_lines(start: &RunStart) -> Vec<(&'static str, String)> {
    let RecordedCommand { variables, words, .. } = RecordedCommand::new(start, None);
    let program = match &*start.build_id {
        "" => start.program.clone(),
        id => format!("{}, build id {id}", start.program),
    };
    let lines = [
        ("recorded", [start.time.map(date).unwrap_or_default(), start.tool.clone()].join(" ")),
        ("system", start.system.clone()),
        ("command", words),
        ("variables", variables),
        ("folder", start.folder.clone()),
        ("program", program),
        ("mode", start.mode.clone()),
        ("seed", start.seed.map(|seed| seed.to_string()).unwrap_or_default()),
        ("options", typed(&start.options)),
    ];
    let lines = lines.map(|(name, text)| (name, text.trim().to_owned()));
    lines.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// The time that is `seconds` after the start of 1970, as `2026-11-19T06:04:31Z`.
pub fn date(seconds: u64) -> String {
    // Days are counted from the first of March, so that a leap day is the last of its year.
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (year, day) = (400 * era + year, day - (153 * month + 2) / 5 + 1);
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(date(1_795_068_271), "2026-11-19T06:04:31Z");
        assert_eq!(date(4_107_542_400), "2100-03-01T00:00:00Z");
        assert!(date(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn only_options_of_the_recording_are_printed() {
        let options = "--mode free -o victim --no-values --keep -o --keep counter --output=x";
        let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
        assert_eq!(kept_options(&options), " --mode free --no-values --keep counter");
    }

    #[test]
    fn a_variable_is_no_command() {
        let variable = |name: &str| (name.to_owned(), "1 2".to_owned());
        let environment = ["A", "X=1; ls; Y", "$(ls)", ""].map(variable).into();
        let start = RunStart { environment, ..RunStart::default() };
        assert_eq!(RecordedCommand::new(&start, None).variables, "A='1 2' ");
    }

    #[test]
    fn what_somebody_else_recorded_is_not_run_unasked() {
        let mut builder = reweave_trace::TraceBuilder::new();
        let command = vec!["./bank".to_owned()];
        builder.set_run_start(RunStart { command, seed: Some(4), ..RunStart::default() });
        let trace = builder.finish().unwrap();
        let outcome = reweave_analysis::Outcome::default();
        let examined = Examined::new("x.rwt", &trace, &outcome);
        let lines = |is_own| {
            let examined = Examined { is_own, ..examined };
            (confirm_line(&examined, "x.rwt R1"), record_line(&examined).unwrap())
        };
        let (confirm, record) = lines(false);
        assert_eq!(confirm, "reweave confirm x.rwt R1");
        assert_eq!(record, "reweave record --seed 5 -- CMD");
        let (confirm, record) = lines(true);
        assert_eq!(confirm, "reweave confirm x.rwt R1 -- ./bank");
        assert_eq!(record, "reweave record --seed 5 -- ./bank");
    }

    #[test]
    fn what_is_not_known_of_the_start_is_left_out() {
        assert_eq!(start_lines(&RunStart::default()), []);
        let start = RunStart { seed: Some(2), build_id: "0f".into(), ..RunStart::default() };
        let start = RunStart { program: "/srv/bank".into(), ..start };
        let lines = start_lines(&start);
        assert_eq!(
            lines,
            [("program", "/srv/bank, build id 0f".to_owned()), ("seed", "2".to_owned())]
        );
    }
}
