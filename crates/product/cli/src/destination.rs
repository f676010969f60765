//! Where output goes: standard output, or a file that is replaced whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use clap::{ArgMatches, ValueEnum};
use reweave_format::{Compression, Format};
use reweave_trace::Trace;
use tempfile::TempDir;

use crate::exit::{Interrupted, say};
use crate::interrupt;
use crate::launch::located;
use crate::terminal::{self, FindFile, Fitting};

/// The format of output other than findings, and the file for it.
#[derive(Debug, clap::Args)]
pub struct Output<F: ValueEnum + Send + Sync + 'static> {
    /// Output format [default: by the extension of the output, or text]
    #[arg(long, value_enum)]
    format: Option<F>,
    /// Write the output to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl<F: ValueEnum + Default + Send + Sync + 'static> Output<F> {
    /// Where it goes and in which format.
    pub fn prepare(&self) -> anyhow::Result<(Destination, F)> {
        let format = format_of(self.format.clone(), self.output.as_deref())?;
        Ok((Destination::prepare(self.output.as_deref())?, format))
    }
}

/// The format of output to `path`: `asked`, or by the extension, or the usual one.
pub fn format_of<F: ValueEnum + Default>(
    asked: Option<F>,
    path: Option<&Path>,
) -> anyhow::Result<F> {
    let Some(path) = path.filter(|_| asked.is_none()) else {
        return Ok(asked.unwrap_or_default());
    };
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(extension, _)| name.ends_with(extension));
    let Some((extension, format)) = known else { return Ok(F::default()) };
    F::from_str(format, false).map_err(|_| {
        let names = F::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|it| it.get_name().to_owned()).collect();
        let names = names.join(", ");
        anyhow::anyhow!(
            "cannot write {}: this command has no format for `{extension}`, but {names}; `--format` \
             chooses one whatever the file is called",
            path.display()
        )
    })
}

/// The formats of reports by the extensions of their files.
const EXTENSIONS: [(&str, &str); 11] = [
    (".sarif.json", "sarif"),
    (".sarif", "sarif"),
    (".json", "json"),
    (".html", "html"),
    (".htm", "html"),
    (".xml", "junit"),
    (".csv", "csv"),
    (".dot", "dot"),
    (".gv", "dot"),
    (".txt", "text"),
    (".text", "text"),
];

/// Where output goes. Prepared before the work starts, so that a place that cannot be written to is
/// an error early.
#[derive(Debug)]
pub enum Destination {
    StandardOutput,
    /// Not an ordinary file, such as a device or a pipe: written as it comes.
    Device(PathBuf),
    /// An ordinary file, written in a folder beside it and moved into place at the end.
    File {
        target: PathBuf,
        /// The file as the command line has it.
        name: String,
        folder: TempDir,
    },
}

impl Destination {
    /// Output to `path`, where `-` or none is standard output.
    pub fn prepare(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path.filter(|&path| path != Path::new("-")) else {
            return Ok(Self::StandardOutput);
        };
        Self::prepare_file(path).with_context(|| format!("cannot write {}", path.display()))
    }

    fn prepare_file(path: &Path) -> io::Result<Self> {
        // A link stays a link: its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(there) if there.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
            }
            Ok(there) if !there.is_file() => return Ok(Self::Device(target)),
            Ok(there) if there.permissions().readonly() => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
            }
            _ => {}
        }
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"));
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        if !parent.is_dir() {
            let reason = format!("no such folder: `{}`", parent.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        // The error itself names the temporary folder, which helps nobody.
        let folder = tempfile::Builder::new().prefix(".reweave-").tempdir_in(parent);
        let folder = folder.map_err(|error| io::Error::from(error.kind()))?;
        interrupt::add_unfinished(folder.path());
        Ok(Self::File { target, name: path.display().to_string(), folder })
    }

    /// Writes a report; colours reach terminals only. Of a file it is said on standard error `what` is in
    /// it.
    pub fn write(
        self,
        what: &str,
        report: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        interrupt::writing();
        match self {
            Self::StandardOutput => {
                let colours = AutoStream::choice(&io::stdout());
                send(report, io::stdout().lock(), colours).context("standard output")
            }
            Self::Device(path) => {
                let file = File::options().write(true).open(&path);
                let sent = file.and_then(|file| send(report, file, ColorChoice::Never));
                sent.with_context(|| path.display().to_string())
            }
            Self::File { target, name, folder } => {
                let file = File::create(folder.path().join(FILE));
                let sent = file.and_then(|file| send(report, file, ColorChoice::Never));
                sent.with_context(|| target.display().to_string())?;
                commit(&target, folder)?;
                if !what.is_empty() {
                    say(&format!("reweave: {what} → {name}"));
                }
                Ok(())
            }
        }
    }

    /// Writes a report as text, which fits a terminal, with links to the files that `find_file` finds.
    pub fn write_text(
        self,
        what: &str,
        find_file: FindFile<'_>,
        report: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let is_standard = matches!(self, Self::StandardOutput);
        self.write(what, |out| {
            if !is_standard || !terminal::fits() {
                return report(out);
            }
            let mut out = Fitting::new(out, find_file);
            report(&mut out)?;
            out.finish()
        })
    }

    /// Writes bytes; nothing is left behind if that fails.
    pub fn write_bytes(
        self,
        bytes: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::StandardOutput => bytes(&mut io::stdout().lock()),
            Self::Device(path) => bytes(&mut File::options().write(true).open(&path)?),
            Self::File { target, folder, .. } => {
                let mut file = File::create(folder.path().join(FILE))?;
                bytes(&mut file).with_context(|| target.display().to_string())?;
                commit(&target, folder)
            }
        }
    }

    /// Writes `trace`; nothing is left behind if it is interrupted.
    pub fn write_trace(
        self,
        trace: &Trace,
        format: Format,
        compression: Option<Compression>,
    ) -> anyhow::Result<()> {
        match self {
            Self::StandardOutput => {
                Ok(reweave_format::write(trace, Path::new("-"), format, compression)?)
            }
            Self::Device(path) => Ok(reweave_format::write(trace, &path, format, compression)?),
            Self::File { target, folder, .. } => {
                let file = folder.path().join(FILE);
                let written = reweave_format::write(trace, &file, format, compression);
                written.map_err(|error| {
                    anyhow::anyhow!("cannot write {}: {}", target.display(), error.reason)
                })?;
                if interrupt::is_asked() {
                    return Err(Interrupted.into());
                }
                commit(&target, folder)
            }
        }
    }
}

/// Writes `report` to `out`, with or without its colours.
fn send(
    report: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    out: impl Write + 'static,
    colours: ColorChoice,
) -> io::Result<()> {
    // Buffered on both sides: taking out colours leaves many small pieces.
    let out: Box<dyn Write> = Box::new(BufWriter::new(out));
    let mut out = BufWriter::new(AutoStream::new(out, colours));
    report(&mut out)?;
    out.flush()
}

/// The name of the output until it is complete.
const FILE: &str = "unfinished";

/// Moves the finished file to `target`.
fn commit(target: &Path, folder: TempDir) -> anyhow::Result<()> {
    let file = folder.path().join(FILE);
    let moved = || {
        if let Ok(there) = fs::metadata(target) {
            fs::set_permissions(&file, there.permissions())?;
        }
        fs::rename(&file, target)
    };
    moved().with_context(|| format!("cannot write {}", target.display()))?;
    interrupt::remove_unfinished(folder.path());
    drop(folder);
    Ok(())
}

/// The id of the arguments that name outputs.
const OUTPUT: &str = "output";

/// Rejects a command line whose output is one of the files that it reads.
///
/// A report that replaces its own trace, suppressions or program destroys what cannot be made again,
/// and one slip is enough: `check run.rwt -o run.rwt`. So every file that the arguments name is
/// compared with the output before any work begins, for all commands at once.
pub fn check_overwriting(matches: &ArgMatches) -> anyhow::Result<()> {
    let Some((name, inner)) = matches.subcommand() else { return Ok(()) };
    check_overwriting(inner)?;
    let Ok(Some(output)) = inner.try_get_one::<PathBuf>(OUTPUT) else { return Ok(()) };
    // Converting in place is what was asked for.
    if name == "convert" {
        return Ok(());
    }
    // `--baseline` is compared elsewhere, with a message of its own.
    let ids = inner.ids().map(clap::Id::as_str).filter(|&id| id != OUTPUT && id != "baseline");
    let files = ids.flat_map(|id| inner.try_get_many::<PathBuf>(id).ok().flatten()).flatten();
    let command = inner.try_get_many::<OsString>("command").ok().flatten();
    let program = command.and_then(|mut words| located(words.next()?));
    let read = files.cloned().chain(program).find(|input| is_same_file(output, input));
    let Some(input) = read else { return Ok(()) };
    let file =
        if input == *output { "it" } else { &format!("`{}`, the same file,", input.display()) };
    anyhow::bail!(
        "cannot write {}: the command also reads {file} and would destroy it; choose another output",
        output.display(),
    )
}

/// Whether both paths name the same ordinary file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let facts = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let same = facts(one).zip(facts(other));
    same.is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}
