//! Runs what pages show, in folders of their own, and brings pages up to date.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::page::{self, Step};
use super::shown;
use crate::Folder;

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// How often a page that records programs is tried: their threads start when the system lets them, a
/// little earlier or later each time, and a page shows one such run.
const TRIES_MAX: usize = 3;

/// Runs the page at `path`. Gives how many commands were run, or what was printed otherwise than is
/// shown; with `UPDATE_EXPECT` the page is written anew instead.
pub(super) fn page(path: &Path) -> Result<usize, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines: Vec<&str> = text.lines().collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let steps = page::steps(&lines).map_err(|error| format!("{name}: {error}"))?;
    let records = steps.iter().any(|step| matches!(step, Step::Needs(_)));
    let tries_count = if records { TRIES_MAX } else { 1 };
    let mut last = Try::new(&name, &lines, &steps)?;
    for _ in 1..tries_count {
        if !last.faults.is_empty() {
            last = Try::new(&name, &lines, &steps)?;
        }
    }
    if last.faults.is_empty() {
        return Ok(last.commands_count);
    }
    if env::var_os("UPDATE_EXPECT").is_none() {
        return Err(last.faults.join("\n\n"));
    }
    let written = fs::write(path, last.updated.join("\n") + "\n");
    written.map(|()| last.commands_count).map_err(|error| format!("{name}: {error}"))
}

/// What came of running a page once.
struct Try {
    commands_count: usize,
    /// The page as it should be.
    updated: Vec<String>,
    faults: Vec<String>,
}

impl Try {
    fn new(name: &str, lines: &[&str], steps: &[Step]) -> Result<Self, String> {
        let folder = Folder::new();
        let (mut is_run, mut inside, mut copied) = (true, "", 0);
        let mut tried = Self { commands_count: 0, updated: Vec::new(), faults: Vec::new() };
        for step in steps {
            let (command, shown) = match step {
                Step::Needs(tools) => {
                    is_run = tools.iter().all(|tool| has(tool, name));
                    continue;
                }
                Step::Run { command, shown } if is_run => (command, shown),
                step => {
                    put(&folder, step).map_err(|error| format!("{name}: {error}"))?;
                    continue;
                }
            };
            if let Some(below) = command.strip_prefix("cd ") {
                inside = below;
                continue;
            }
            tried.commands_count += 1;
            let printed = printed(&folder.path(inside), command);
            let printed: Vec<&str> = printed.lines().collect();
            let expected = &lines[shown.clone()];
            if !shown::agrees(expected, &printed) {
                let (line, printed) = (shown.start, printed.join("\n"));
                tried.faults.push(format!("{name}:{line}: `{command}` prints\n{printed}"));
            }
            tried.updated.extend(lines[copied..shown.start].iter().map(|it| (*it).to_owned()));
            tried.updated.extend(shown::updated(expected, &printed));
            copied = shown.end;
        }
        tried.updated.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
        Ok(tried)
    }
}

/// Does what a step that runs nothing asks for.
fn put(folder: &Folder, step: &Step) -> Result<(), String> {
    match step {
        Step::Copy(file) => {
            let name = file.rsplit('/').next().unwrap_or(file);
            let copied = fs::copy(root().join(file), folder.path(name));
            copied.map_err(|error| format!("{file}: {error}"))?;
        }
        Step::File { name, content } => {
            let path = folder.path(name);
            let above = path.parent().map_or(Ok(()), fs::create_dir_all);
            above.map_err(|error| format!("{name}: {error}"))?;
            folder.put(name, content);
        }
        Step::Change { name, old, new } => {
            let before = String::from_utf8_lossy(&folder.read(name)).into_owned();
            if before.matches(old.as_str()).count() != 1 {
                return Err(format!("{name} does not have these lines once:\n{old}"));
            }
            folder.put(name, before.replacen(old, new, 1));
        }
        Step::Needs(_) | Step::Run { .. } => {}
    }
    Ok(())
}

/// What `command` prints in `folder`, and how it ends if not with 0. The folder itself is left open.
pub(super) fn printed(folder: &Path, command: &str) -> String {
    let output = shell(folder, command).output().expect("a shell starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let folder = fs::canonicalize(folder).expect("the folder is there");
    let mut text = text.replace(&*folder.to_string_lossy(), "[..]");
    if !output.status.success() {
        let code = output.status.code().expect("it was not killed");
        text += &format!("[exit {code}]\n");
    }
    text
}

/// A shell in `folder` that knows the commands that were built, and nothing of who runs the test.
fn shell(folder: &Path, command: &str) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_reweave")).parent().expect("it is in a folder");
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = [built.to_owned()].into_iter().chain(env::split_paths(&path));
    let mut shell = Command::new("sh");
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["REWEAVE_", "GITHUB_"].iter().any(|start| name.starts_with(start)) {
            shell.env_remove(name);
        }
    }
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "RUSTFLAGS", "CLICOLOR_FORCE"] {
        shell.env_remove(name);
    }
    shell
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", env::join_paths(paths).expect("folders have no colons"))
        .env("REWEAVE_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("book-cache"))
        .envs([("CARGO_NET_OFFLINE", "true"), ("RUST_BACKTRACE", "0"), ("LC_ALL", "C")])
        .stdin(Stdio::null());
    shell
}

/// Whether a tool is there; if not, or if this system cannot record, says what is skipped.
#[allow(clippy::print_stderr, reason = "whoever runs the tests must see what was not tried")]
pub(super) fn has(tool: &str, page: &str) -> bool {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        eprintln!("skipped: commands of {page}: recording needs Linux on x86-64");
        return false;
    }
    let mut command = Command::new(tool);
    let starts = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if starts.is_err() {
        eprintln!("skipped: commands of {page}: no {tool}");
    }
    starts.is_ok()
}
