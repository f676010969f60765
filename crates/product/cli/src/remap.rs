//! `--remap OLD=NEW`: what files of a trace are called here.

use std::borrow::Cow;

use reweave_trace::{Place, Trace};

/// Files at or below one path are at or below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    old: String,
    new: String,
}

impl Remap {
    /// The remapping that `text` says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let split = text.split_once('=').filter(|(old, _)| !old.trim_end_matches('/').is_empty());
        let (old, new) = split.ok_or("expected OLD=NEW, such as /build/src=src")?;
        let trimmed = |path: &str| path.trim_end_matches('/').to_owned();
        let new = if new.starts_with('/') && trimmed(new).is_empty() { "/" } else { new };
        Ok(Self { old: trimmed(old), new: if new == "/" { new.to_owned() } else { trimmed(new) } })
    }

    /// As the command line says it.
    pub fn text(&self) -> String {
        format!("{}={}", self.old, self.new)
    }

    /// What `file` is called here, if it is remapped.
    fn file(&self, file: &str) -> Option<String> {
        let rest = file.strip_prefix(&self.old)?;
        if rest.is_empty() {
            return Some(self.new.clone()).filter(|new| !new.is_empty());
        }
        // Whole names of folders only.
        let rest = rest.strip_prefix('/')?;
        Some(match &*self.new {
            "" => rest.to_owned(),
            new => format!("{}/{rest}", new.trim_end_matches('/')),
        })
    }
}

/// `trace` with the files that `remaps` says; where several apply, by that of the longest path.
pub fn remapped(trace: Trace, remaps: &[Remap]) -> Trace {
    if remaps.is_empty() {
        return trace;
    }
    trace.with_locations(&|location| renamed(location, remaps))
}

/// What `location` is called here, if its file is remapped.
fn renamed(location: &str, remaps: &[Remap]) -> Option<String> {
    // A stack may name a file without a line.
    let file = Place::new(location).map_or(location.trim(), |place| place.file);
    let applying = remaps.iter().filter_map(|remap| Some((remap.old.len(), remap.file(file)?)));
    let (_, new) = applying.max_by_key(|&(length, _)| length)?;
    let rest = location.trim().strip_prefix(file).map_or(Cow::Borrowed(""), Cow::Borrowed);
    Some(format!("{new}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(remaps: &[&str], location: &str, expected: Option<&str>) {
        let remaps: Vec<Remap> = remaps.iter().map(|text| Remap::parse(text).unwrap()).collect();
        assert_eq!(renamed(location, &remaps).as_deref(), expected, "{location}");
    }

    #[test]
    fn whole_names_of_folders_and_files_are_remapped() {
        check(&["/build/src=src"], "/build/src/a.c:12", Some("src/a.c:12"));
        check(&["/build/src/=src/"], "/build/src/a.c:12:5", Some("src/a.c:12:5"));
        check(&["/build/src=src"], "/build/srcs/a.c:12", None);
        check(&["a.c=b.c"], "a.c:3", Some("b.c:3"));
        check(&["/build="], "/build/a.c:3", Some("a.c:3"));
        check(&["src=/"], "src/a.c:3", Some("/a.c:3"));
        check(&["/build=."], "main+0x12", None);
    }

    #[test]
    fn the_longest_path_that_applies_decides() {
        let remaps = ["/b=one", "/b/lib=two"];
        check(&remaps, "/b/a.c:1", Some("one/a.c:1"));
        check(&remaps, "/b/lib/a.c:1", Some("two/a.c:1"));
    }

    #[test]
    fn what_names_no_path_is_refused() {
        for text in ["", "=", "=x", "/=x", "src"] {
            assert!(Remap::parse(text).is_err(), "{text}");
        }
    }
}
