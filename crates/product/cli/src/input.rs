//! Traces read from files, with progress and a word on what was noticed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use reweave_format::{Compression, Format, Input, ReadError, ReadErrorKind, ReadOptions, Reading};
use reweave_report::{Sources, quoted};
use reweave_trace::Trace;

use crate::exit::say;
use crate::interrupt;
use crate::watch::Bar;

/// What the command line calls standard input and standard output.
const STANDARD: &str = "-";

/// How programs begin.
const ELF: [u8; 4] = *b"\x7fELF";

/// How many notes on one trace are said.
const NOTES_MAX: usize = 20;

/// Reads the trace at `path`; `-` is standard input.
pub(crate) fn read(path: &Path, repair: bool) -> anyhow::Result<Reading> {
    refuse_program(path)?;
    let reading = watched(path, repair, reweave_format::read);
    let reading = reading.map_err(|error| unless_source(path, error))?;
    say_notes(path, &reading);
    Ok(reading)
}

/// Reads the trace or the poset at `path`; `-` is standard input.
pub(crate) fn read_either(path: &Path, repair: bool) -> anyhow::Result<Input> {
    refuse_program(path)?;
    let input = watched(path, repair, reweave_format::read_input);
    let input = input.map_err(|error| unless_source(path, error))?;
    if let Input::Trace(reading) = &input {
        say_notes(path, reading);
    }
    Ok(input)
}

/// Refuses a program, which is easily taken for the trace of a run of it.
fn refuse_program(path: &Path) -> anyhow::Result<()> {
    // Anything but a file, such as a pipe, would lose what is read of it here.
    if !path.is_file() {
        return Ok(());
    }
    let mut start = [0; ELF.len()];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok();
    let name = path.display();
    let folder = if path.components().count() == 1 { "./" } else { "" };
    anyhow::ensure!(
        !is_read || start != ELF,
        "{name}: this is a program, not a trace; record a run of it first: \
         reweave record -- {folder}{name}"
    );
    Ok(())
}

/// `error`, or what to do with the file at `path` if it is the code of a program.
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
        _ => return error.into(),
    };
    if matches!(error.kind, ReadErrorKind::Interrupted | ReadErrorKind::Io(_)) {
        return error.into();
    }
    anyhow::anyhow!(
        "{}: this is source code, not a trace; build it and record a run of it: {advice}",
        path.display()
    )
}

/// What `read` makes of the file at `path`, with progress.
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

/// Says what was noticed of the trace at `path`.
fn say_notes(path: &Path, reading: &Reading) {
    for note in reading.notes.iter().take(NOTES_MAX) {
        say(&format!("{}: {note}", name(path)));
    }
    if let Some(more) = reading.notes.len().checked_sub(NOTES_MAX).filter(|&more| more > 0) {
        say(&format!("{}: and {more} more", name(path)));
    }
}

/// Where the code of the program behind `trace`, read from `path`, is looked for: in `folders`, here,
/// and beside the trace.
pub(crate) fn sources(path: &str, trace: &Trace, folders: &[PathBuf]) -> Sources {
    let mut roots = folders.to_vec();
    roots.push(PathBuf::from("."));
    let file = Path::new(path);
    if path != STANDARD {
        roots.extend(
            file.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned),
        );
    }
    // Only of a recorded run does the file tell when it was.
    let facts = trace.origins().and_then(|_| std::fs::metadata(file).ok());
    Sources::new(roots, facts.and_then(|facts| facts.modified().ok()))
}

/// Refuses `paths` that name standard input more than once.
pub(crate) fn check_names(paths: &[PathBuf]) -> anyhow::Result<()> {
    let count = paths.iter().filter(|&path| path == Path::new(STANDARD)).count();
    anyhow::ensure!(count <= 1, "standard input can be given once");
    Ok(())
}

/// What messages call the trace at `path`.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new(STANDARD) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// What messages call the output at `path`.
pub(crate) fn output_name(path: &Path) -> String {
    if path == Path::new(STANDARD) {
        "standard output".to_owned()
    } else {
        path.display().to_string()
    }
}

/// A format as the command line spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatName {
    /// RAPID text, an event a line
    Std,
    /// ours, binary
    Rwt,
    /// a column per thread
    Columns,
    /// JSON lines, an object an event
    Jsonl,
    /// for timeline viewers such as ui.perfetto.dev; written only
    Chrome,
    /// a table for data tools, in builds with the feature `parquet`; written only
    Parquet,
}

impl FormatName {
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Std => Format::Std,
            Self::Rwt => Format::Rwt,
            Self::Columns => Format::Columns,
            Self::Jsonl => Format::JsonLines,
            Self::Chrome => Format::Chrome,
            Self::Parquet => Format::Parquet,
        }
    }
}

/// How the command line and reports spell `format`.
pub(crate) const fn format_word(format: Format) -> &'static str {
    match format {
        Format::Std => "std",
        Format::Rwt => "rwt",
        Format::Columns => "columns",
        Format::JsonLines => "jsonl",
        Format::Chrome => "chrome",
        Format::Parquet => "parquet",
    }
}

/// How reports spell `compression`.
pub(crate) const fn compression_word(compression: Compression) -> &'static str {
    match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    }
}

/// The format and compression of output to `path`: `to` if it is given, or what the file's name
/// says; standard output is RAPID text unless something else is asked for.
pub(crate) fn format_of_output(
    path: &Path,
    to: Option<FormatName>,
) -> anyhow::Result<(Format, Option<Compression>)> {
    let (named, compression) = Format::from_name(&path.to_string_lossy());
    let standard = (path == Path::new(STANDARD)).then_some(Format::Std);
    match to.map(FormatName::format).or(named).or(standard) {
        Some(Format::Parquet) if !reweave_format::parquet::IS_THERE => {
            anyhow::bail!("{}: {}", path.display(), reweave_format::parquet::MISSING)
        }
        Some(format) => Ok((format, compression)),
        None => anyhow::bail!(
            "{}: its name does not say which format to write: expected .std, .rwt, .trace, .jsonl \
             or .parquet, perhaps with .gz or .zst; or use `--to`",
            path.display()
        ),
    }
}
