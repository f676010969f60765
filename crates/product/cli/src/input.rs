//! Traces read from files, with progress and warnings.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use reweave_format::{Compression, Format, Input, ReadError, ReadErrorKind, ReadOptions, Reading};
use reweave_report::{Sources, quoted};
use reweave_trace::Trace;

use crate::exit::say;
use crate::interrupt;
use crate::watch::Bar;

/// The name of standard input and standard output on the command line.
const STANDARD: &str = "-";

/// The first bytes of an executable.
const ELF: [u8; 4] = *b"\x7fELF";

/// How many warnings on one trace are printed.
const NOTES_MAX: usize = 20;

/// Reads the trace at `path`; `-` is standard input.
pub fn read(path: &Path, repair: bool) -> anyhow::Result<Reading> {
    refuse_program(path)?;
    let reading = watched(path, repair, reweave_format::read);
    let reading = reading.map_err(|error| unless_source(path, error))?;
    say_notes(path, &reading);
    Ok(reading)
}

/// Reads the trace or the poset at `path`; `-` is standard input.
pub fn read_either(path: &Path, repair: bool) -> anyhow::Result<Input> {
    refuse_program(path)?;
    let input = watched(path, repair, reweave_format::read_input);
    let input = input.map_err(|error| unless_source(path, error))?;
    if let Input::Trace(reading) = &input {
        say_notes(path, reading);
    }
    Ok(input)
}

/// Rejects an executable, which is easily mistaken for the trace of its run.
fn refuse_program(path: &Path) -> anyhow::Result<()> {
    let name = path.display();
    let folder = if path.components().count() == 1 { "./" } else { "" };
    anyhow::ensure!(
        !is_program(path),
        "{name}: this is a program, not a trace; record a run of it first: \
         reweave record -- {folder}{name}"
    );
    Ok(())
}

/// Whether the file at `path` is an executable.
pub fn is_program(path: &Path) -> bool {
    let mut start = [0; ELF.len()];
    // Reading from a pipe here would lose the bytes.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == ELF
}

/// `error`, or a better one if the file at `path` is source code or a report.
fn unless_source(path: &Path, error: ReadError) -> anyhow::Error {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or("");
    let program = path.file_stem().unwrap_or_default().display().to_string();
    let (file, output) = (quoted(&path.display().to_string()), quoted(&program));
    let run = quoted(&format!("./{program}"));
    let advice = match end {
        "c" => format!("reweave cc -g -pthread {file} -o {output} && reweave record -- {run}"),
        "cc" | "cpp" | "cxx" | "C" | "c++" => {
            format!("reweave c++ -g -pthread {file} -o {output} && reweave record -- {run}")
        }
        "rs" => "cargo reweave run".to_owned(),
        "rw" => format!("reweave run {file} -o {}", quoted(&format!("{program}.rwt"))),
        _ if matches!(error.kind, ReadErrorKind::Interrupted) => return error.into(),
        "html" | "htm" | "json" | "sarif" | "csv" | "xml" => {
            return anyhow::anyhow!(
                "{error}; this looks like a report: give the trace that it is about, such as {}",
                quoted(&format!("{program}.rwt"))
            );
        }
        _ => return error.into(),
    };
    if matches!(error.kind, ReadErrorKind::Interrupted | ReadErrorKind::Io(_)) {
        return error.into();
    }
    anyhow::anyhow!(
        "{}: this is source code, not a trace; build it and record a run: {advice}",
        path.display()
    )
}

/// Runs `read` on the file at `path`, with progress.
fn watched<T>(
    path: &Path,
    repair: bool,
    read: impl FnOnce(&Path, &ReadOptions<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let size = std::fs::metadata(path).ok().filter(|there| there.is_file());
    let bar = Bar::new(&name(path), size.map(|there| there.len()));
    let go_on = |bytes: u64| bar.go_on(bytes);
    interrupt::set_waiting(path == Path::new(STANDARD));
    let reading = read(path, &ReadOptions { repair, go_on: Some(&go_on) });
    interrupt::set_waiting(false);
    reading
}

/// Prints the warnings on the trace at `path`.
fn say_notes(path: &Path, reading: &Reading) {
    for note in reading.notes.iter().take(NOTES_MAX) {
        say(&format!("{}: {note}", name(path)));
    }
    if let Some(more) = reading.notes.len().checked_sub(NOTES_MAX).filter(|&more| more > 0) {
        say(&format!("{}: and {more} more", name(path)));
    }
}

/// Where to look for the source code of the program of `trace`, read from `path`: in `folders`, in the
/// current folder, beside the trace, and in the folder that it was recorded in.
pub fn sources(path: &str, trace: &Trace, folders: &[PathBuf]) -> Sources {
    let mut roots = folders.to_vec();
    roots.push(PathBuf::from("."));
    let file = Path::new(path);
    if path != STANDARD {
        roots.extend(
            file.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned),
        );
    }
    // Only for a recorded run is the time of the file the time of the run.
    let facts = trace.origins().and_then(|_| std::fs::metadata(file).ok());
    let ran_in = trace.run_start().map(|start| PathBuf::from(&start.folder));
    let ran_in = ran_in.filter(|folder| folder.is_absolute());
    Sources::new(roots, facts.and_then(|facts| facts.modified().ok())).with_base(ran_in)
}

/// The current folder, as recorded runs name theirs.
pub fn current_folder() -> Option<String> {
    std::env::current_dir().ok()?.into_os_string().into_string().ok()
}

/// The duration that `text` is: in seconds, or with a unit, as in `90s`, `5m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = duration.filter(|it| *it <= DURATION_MAX);
    duration
        .ok_or_else(|| "expected a time in seconds, such as 60 or 0.5, or such as 5m".to_owned())
}

/// The longest time that can be asked for: a year.
const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Rejects `paths` that name standard input more than once.
pub fn check_names(paths: &[PathBuf]) -> anyhow::Result<()> {
    let count = paths.iter().filter(|&path| path == Path::new(STANDARD)).count();
    anyhow::ensure!(count <= 1, "standard input (`-`) can be given only once");
    Ok(())
}

/// The name of the input `path` in messages.
pub fn name(path: &Path) -> String {
    if path == Path::new(STANDARD) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The name of the output `path` in messages.
pub fn output_name(path: &Path) -> String {
    if path == Path::new(STANDARD) {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Values of an option, their names on the command line, and their descriptions.
pub type NamedValues<T> = [(T, &'static str, &'static str)];

/// Parses the name of a value.
pub fn named<T: Copy + Send + Sync>(
    values: &'static NamedValues<T>,
) -> impl TypedValueParser<Value = T> {
    let possible = values.iter().map(|&(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(possible).map(|name| {
        let named = values.iter().find(|(_, known, _)| *known == name);
        named.expect("only names of values are possible").0
    })
}

/// The formats, as the command line and reports spell them.
pub static FORMATS: &NamedValues<Format> = &[
    (Format::Std, "std", "RAPID text, one event per line"),
    (Format::Rwt, "rwt", "binary, the format of reweave"),
    (Format::Columns, "columns", "one column per thread"),
    (Format::JsonLines, "jsonl", "JSON lines, one object per event"),
    (Format::Chrome, "chrome", "for timeline viewers such as ui.perfetto.dev; output only"),
    (Format::Parquet, "parquet", "a table for data tools; output only, with the feature `parquet`"),
];

/// The name of `format` on the command line and in reports.
pub fn format_name(format: Format) -> &'static str {
    FORMATS.iter().find(|(known, ..)| *known == format).map_or("", |&(_, name, _)| name)
}

/// How reports spell `compression`.
pub const fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    }
}

/// The format and compression of output to `path`: `to`, or by the extension; standard output is RAPID
/// text by default.
pub fn format_of_output(
    path: &Path,
    to: Option<Format>,
) -> anyhow::Result<(Format, Option<Compression>)> {
    let (named, compression) = Format::from_name(&path.to_string_lossy());
    let standard = (path == Path::new(STANDARD)).then_some(Format::Std);
    match to.or(named).or(standard) {
        Some(Format::Parquet) if !reweave_format::parquet::IS_THERE => {
            anyhow::bail!("{}: {}", path.display(), reweave_format::parquet::MISSING)
        }
        Some(format) => Ok((format, compression)),
        None => anyhow::bail!(
            "{}: unknown extension: expected .std, .rwt, .trace, .jsonl or .parquet, optionally \
             followed by .gz or .zst; or choose the format with `--to`",
            path.display()
        ),
    }
}
