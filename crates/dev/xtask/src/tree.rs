//! The files of the repository, as far as they are ours: what `.gitignore` names is left out.
//!
//! Checks work on a [`Tree`], not on the disk, so that a test can make one up in three lines.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Files by their path from the root, with forward slashes.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(3).expect("this crate is in `crates/dev`").to_path_buf()
}

impl Tree {
    /// Reads the repository at `root`.
    pub(crate) fn load(root: &Path) -> anyhow::Result<Self> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut skipped: Vec<PathBuf> =
            ignored.lines().filter_map(|line| line.strip_prefix('/')).map(PathBuf::from).collect();
        skipped.push(PathBuf::from(".git"));
        let mut tree = Self::default();
        tree.load_folder(root, Path::new(""), &skipped)?;
        Ok(tree)
    }

    fn load_folder(&mut self, root: &Path, folder: &Path, skip: &[PathBuf]) -> anyhow::Result<()> {
        let entries = fs::read_dir(root.join(folder))
            .with_context(|| format!("cannot list `{}`", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if skip.contains(&path) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.load_folder(root, &path, skip)?;
            } else {
                let content = match fs::read(entry.path()) {
                    Ok(content) => content,
                    // A scratch file of another test, gone in the meantime.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("cannot read `{}`", path.display()));
                    }
                };
                let name = path.to_string_lossy().replace('\\', "/");
                self.files.insert(name, content);
            }
        }
        Ok(())
    }

    /// All files, sorted by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// All files that are text, sorted by path.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter_map(|(path, content)| {
            let text = std::str::from_utf8(content).ok()?;
            (!text.contains('\0')).then_some((path, text))
        })
    }

    /// The Rust sources, sorted by path.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of the file at `path`, if there is one.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// Whether there is a file or a folder at `path`.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(f, _)| f.starts_with(&folder))
    }

    /// The manifests of all crates, `crates/GROUP/NAME/Cargo.toml`, with the crates' names, sorted.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.texts().filter_map(|(path, text)| {
            let folder = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            let (_, name) = folder.split_once('/')?;
            (!name.contains('/')).then_some((name, path, text))
        })
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        let owned = files.map(|(path, text)| (path.into(), text.as_bytes().to_vec()));
        Self { files: owned.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_a_file_is_in_it() {
        let tree = Tree::from([("docs/a/b.md", ""), ("docs-old", "")]);
        assert!(tree.contains("docs/a/b.md") && tree.contains("docs/a") && tree.contains("docs"));
        assert!(!tree.contains("doc") && !tree.contains("docs/b"));
    }

    #[test]
    fn what_is_ignored_is_left_out() {
        let tree = Tree::load(&root()).unwrap();
        assert!(tree.contains("crates/dev/xtask/src/main.rs"));
        assert!(!tree.contains("target") && !tree.contains(".git"));
    }
}
