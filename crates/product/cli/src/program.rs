//! Programs of the language as input: read, checked, their errors shown.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use reweave_exec::{Code, Fault};
use reweave_lang::{Diagnostic, Program, Severity, Source, Style};

use reweave_report::quoted;

use crate::input;

/// A program that can be run.
pub struct Loaded {
    pub source: Source,
    pub program: Program,
    pub code: Code,
}

/// Reads the text at `path`; `-` is standard input.
pub fn read(path: &Path) -> anyhow::Result<Source> {
    let name = input::name(path);
    let limit = Source::BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let outcome = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    outcome.with_context(|| name.clone())?;
    if bytes.len() > Source::BYTES_MAX {
        anyhow::bail!(
            "{name}: too large for a program (the maximum is {} MiB)",
            Source::BYTES_MAX >> 20
        );
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        anyhow::anyhow!("{name}: line {line}: not UTF-8 text")
    })?;
    Ok(Source::new(name, text))
}

/// Rejects what is easily mistaken for a program of the language.
fn refuse_other_files(path: &Path) -> anyhow::Result<()> {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or("");
    let file = quoted(&path.display().to_string());
    let stem = quoted(&path.file_stem().unwrap_or_default().display().to_string());
    let (what, advice) = match end {
        "c" => (
            "but one in C",
            format!("reweave cc -g -pthread {file} -o {stem} && reweave record -- ./{stem}"),
        ),
        "cc" | "cpp" | "cxx" | "C" | "c++" => (
            "but one in C++",
            format!("reweave c++ -g -pthread {file} -o {stem} && reweave record -- ./{stem}"),
        ),
        "rs" => ("but one in Rust", "cargo reweave run".to_owned()),
        "rwt" => ("but a trace", format!("reweave check {file}")),
        _ if input::is_program(path) => {
            let folder = if path.components().count() == 1 { "./" } else { "" };
            ("but an executable", format!("reweave record -- {folder}{file}"))
        }
        _ => return Ok(()),
    };
    anyhow::bail!("{}: not a program of the reweave language {what}; try: {advice}", path.display())
}

/// Reads and checks the program at `path`, and shows its errors on standard error.
pub fn load(path: &Path) -> anyhow::Result<Loaded> {
    refuse_other_files(path)?;
    let source = read(path)?;
    let checked = reweave_lang::check(&source);
    draw(&source, &checked.diagnostics);
    let Some(program) = checked.program else {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
        let count = checked.diagnostics.iter().filter(is_error).count();
        let faults = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
        anyhow::bail!("{}: {faults}; the program was not run", source.name());
    };
    let code = Code::new(&program, &source);
    Ok(Loaded { source, program, code })
}

/// Shows `diagnostics` on standard error, in colour on a terminal.
pub fn draw(source: &Source, diagnostics: &[Diagnostic]) {
    let mut out = anstream::stderr().lock();
    for diagnostic in diagnostics {
        // If that fails, there is nowhere to report it.
        _ = writeln!(out, "{}\n", diagnostic.render(source, Style::Colour));
    }
}

/// A fault of a run, with an excerpt of the source code.
pub fn picture(source: &Source, fault: &Fault) -> String {
    let thread = format!("in thread `{}`", fault.thread);
    Diagnostic::error(fault.span, fault.kind.to_string(), thread).render(source, Style::Colour)
}
