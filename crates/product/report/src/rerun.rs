//! Commands that run a recorded program again, as a reader can type them.
//!
//! A trace may say how its run was started; then its command stands where `CMD` stands otherwise. It
//! is quoted, so that a shell takes each word for one word, whatever is in it.

use reweave_trace::RunStart;

use crate::Examined;
use crate::finding::quoted;

/// What stands for a command that is not known.
const UNKNOWN: &str = "CMD";

/// A longer command is not printed.
const LETTERS_MAX: usize = 2000;

/// How the program of a trace is run again.
struct Rerun {
    /// Variables that are set before: `MODE=fast `.
    variables: String,
    /// The option with the folder to run it in, unless the reader is there: ` --directory /srv`.
    directory: String,
    /// The program and its arguments; none if they are too long to print.
    command: Option<String>,
}

impl Rerun {
    fn new(examined: &Examined<'_>) -> Self {
        let start = examined.trace.run_start().filter(|start| !start.command.is_empty());
        let Some(start) = start else {
            let [variables, directory] = [String::new(), String::new()];
            return Self { variables, directory, command: Some(UNKNOWN.to_owned()) };
        };
        let variable = |(name, value): &(String, String)| format!("{name}={} ", quoted(value));
        let is_elsewhere = examined.folder.is_some_and(|folder| folder != start.folder);
        let command: Vec<String> = start.command.iter().map(|word| quoted(word)).collect();
        let command = command.join(" ");
        Self {
            variables: start.environment.iter().map(variable).collect(),
            directory: match is_elsewhere && !start.folder.is_empty() {
                true => format!(" --directory {}", quoted(&start.folder)),
                false => String::new(),
            },
            command: (command.len() <= LETTERS_MAX).then_some(command),
        }
    }
}

/// The command that replays the finding that `again` names: a trace, an id and options.
pub fn confirm_line(examined: &Examined<'_>, again: &str) -> String {
    let Rerun { variables, directory, command } = Rerun::new(examined);
    match command {
        Some(command) => format!("{variables}reweave confirm {again}{directory} -- {command}"),
        // The trace has it.
        None => format!("reweave confirm {again}"),
    }
}

/// The command that records another run of the program, with the next seed; none if its command is too
/// long to print.
pub fn record_line(examined: &Examined<'_>) -> Option<String> {
    let Rerun { variables, directory, command } = Rerun::new(examined);
    let start = examined.trace.run_start();
    let seed = start.and_then(|start| start.seed).unwrap_or(1).saturating_add(1);
    let options = start.map_or(&[][..], |start| &start.options);
    let options: String = options.iter().map(|word| format!(" {}", quoted(word))).collect();
    Some(format!("{variables}reweave record --seed {seed}{options}{directory} -- {}", command?))
}

/// How a run was started, for people: what each line is, and what it says.
pub fn start_lines(start: &RunStart) -> Vec<(&'static str, String)> {
    let words = |words: &[String]| {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    };
    let variable = |(name, value): &(String, String)| format!("{name}={}", quoted(value));
    let environment: Vec<String> = start.environment.iter().map(variable).collect();
    let program = match &*start.build_id {
        "" => start.program.clone(),
        id => format!("{}, build id {id}", start.program),
    };
    let lines = [
        ("recorded", [start.time.map(date).unwrap_or_default(), start.tool.clone()].join(" ")),
        ("system", start.system.clone()),
        ("command", words(&start.command)),
        ("variables", environment.join(" ")),
        ("folder", start.folder.clone()),
        ("program", program),
        ("mode", start.mode.clone()),
        ("seed", start.seed.map(|seed| seed.to_string()).unwrap_or_default()),
        ("options", words(&start.options)),
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
