//! Names and paths as people read them.

use std::path::{Component, Path, PathBuf};

/// How deep the names of C++ may nest before they are left as they are. Names that no compiler makes
/// can take time that grows exponentially with it; all names of large libraries need less.
const CPP_RECURSION_MAX: u32 = 96;

/// The readable form of the symbol `raw`; itself if it is not mangled.
pub(super) fn demangle(raw: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return clean(&without_brackets(&format!("{name:#}")));
    }
    clean(&demangle_cpp(raw).unwrap_or_else(|| raw.to_owned()))
}

fn demangle_cpp(raw: &str) -> Option<String> {
    if !raw.starts_with("_Z") && !raw.starts_with("___Z") {
        return None;
    }
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(CPP_RECURSION_MAX);
    let write = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types()
        .recursion_limit(CPP_RECURSION_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(raw, &parse).ok()?;
    symbol.demangle_with_options(&write).ok()
}

/// `<a::B>::c` as `a::B::c`; the newer way to mangle Rust puts a type into brackets, the older
/// does not. `<a::B as c::D>::e` stays.
fn without_brackets(name: &str) -> String {
    let Some(inner) = name.strip_prefix('<') else { return name.to_owned() };
    let mut depth = 1_usize;
    let mut before = ' ';
    for (place, character) in inner.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = character;
        if depth == 1 && inner[place..].starts_with(" as ") {
            break;
        }
        if depth == 0 {
            return format!("{}{}", &inner[..place], &inner[place + 1..]);
        }
    }
    name.to_owned()
}

/// `text` without the characters that text formats use between fields and frames.
pub(super) fn clean(text: &str) -> String {
    let legal = |character: char| match character {
        '|' => '¦',
        character if character.is_control() => ' ',
        character => character,
    };
    text.chars().map(legal).collect()
}

/// How a source file is called, and whether it belongs to a language's own library.
pub(super) fn source_file(raw: &str, base: &Path) -> (String, bool) {
    let path = normal(Path::new(raw));
    if let Some(inner) = rust_library_file(&path) {
        return (clean(&inner), true);
    }
    let is_library = path.starts_with("/usr/include") || path.starts_with("/usr/lib");
    let shown = match path.strip_prefix(base) {
        Ok(inner) if !base.as_os_str().is_empty() => inner,
        _ => &path,
    };
    (clean(&shown.to_string_lossy()), is_library)
}

/// `std/src/..` for files of Rust's library, wherever its compiler says that they are.
fn rust_library_file(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if let Some(rest) = text.strip_prefix("/rustc/") {
        let (_, inner) = rest.split_once('/')?;
        return Some(inner.strip_prefix("library/").unwrap_or(inner).to_owned());
    }
    text.split_once("/rustlib/src/rust/library/").map(|(_, inner)| inner.to_owned())
}

/// `path` without `.` and `..`, as far as the text alone tells.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(normal.components().next_back(), Some(Component::Normal(_))) =>
            {
                normal.pop();
            }
            _ => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(raw: &str, expected: &str, is_library: bool) {
        assert_eq!(source_file(raw, Path::new("/src/me/bank")), (expected.to_owned(), is_library));
    }

    #[test]
    fn files_below_the_base_are_relative_to_it() {
        check_file("/src/me/bank/src/./main.c", "src/main.c", false);
        check_file("/src/me/bank/build/../src/main.c", "src/main.c", false);
        check_file("/src/me/banks/main.c", "/src/me/banks/main.c", false);
        check_file("main.c", "main.c", false);
    }

    #[test]
    fn files_of_the_language_are_told_apart() {
        let hash = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        check_file(
            &format!("/rustc/{hash}/library/std/src/sys/sync/mutex/futex.rs"),
            "std/src/sys/sync/mutex/futex.rs",
            true,
        );
        check_file("/opt/r/lib/rustlib/src/rust/library/core/src/a.rs", "core/src/a.rs", true);
        check_file("/usr/include/c++/12/mutex", "/usr/include/c++/12/mutex", true);
        check_file("/src/me/bank/core/src/a.rs", "core/src/a.rs", false);
    }

    #[test]
    fn names_are_readable() {
        let cases = [
            ("_ZN4bank8transferEiRSt6vectorIiSaIiEE", "bank::transfer"),
            ("_ZN4bank6Teller4work17h0123456789abcdefE", "bank::Teller::work"),
            ("_RNvMs_NtCs1234_4bank6tellerNtB4_6Teller4work", "bank::teller::Teller::work"),
            ("main", "main"),
            ("counter.0", "counter.0"),
            ("_Zgarbage", "_Zgarbage"),
        ];
        for (raw, expected) in cases {
            assert_eq!(demangle(raw), expected);
        }
        assert_eq!(without_brackets("<a::B<c>>::d::<e>"), "a::B<c>::d::<e>");
        assert_eq!(without_brackets("<a::B as c::D>::e"), "<a::B as c::D>::e");
        assert_eq!(without_brackets("<fn() -> a::B>::e"), "fn() -> a::B::e");
        assert_eq!(clean("operator|\nx"), "operator¦ x");
    }
}
