//! Names of functions and types as people read them.
//!
//! Symbols are demangled. What the languages add by themselves is left out: the allocators, hashes and orders of
//! containers, name spaces that only tell versions of a library apart, tags of an ABI, and Rust's hashes. So
//! `std::vector<int, std::allocator<int> >` is `std::vector<int>`. Where `REWEAVE_FULL_NAMES` is set, names are left
//! whole.

use std::sync::OnceLock;

/// How deep the names of C++ may nest before they are left as they are. Names that no compiler makes
/// can take time that grows exponentially with it; all names of large libraries need less.
const CPP_RECURSION_MAX: u32 = 96;

/// Longer names are left as they are.
const BYTES_MAX: usize = 1 << 14;

/// Arguments nested deeper than this are left as they are.
const DEPTH_MAX: usize = 64;

/// The readable form of the symbol `raw`; itself if it is not mangled.
#[must_use]
pub fn demangle(raw: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return name_of(&clean(&without_brackets(&format!("{name:#}"))));
    }
    name_of(&clean(&demangle_cpp(raw).unwrap_or_else(|| raw.to_owned())))
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
pub fn clean(text: &str) -> String {
    let legal = |character: char| match character {
        '|' => '¦',
        character if character.is_control() => ' ',
        character => character,
    };
    text.chars().map(legal).collect()
}

/// `name`, of a function or a type, without what the language added to it, unless whole names are wanted.
pub fn name_of(name: &str) -> String {
    static IS_WHOLE: OnceLock<bool> = OnceLock::new();
    let is_whole = *IS_WHOLE.get_or_init(|| std::env::var_os("REWEAVE_FULL_NAMES").is_some());
    if is_whole || name.len() > BYTES_MAX { name.to_owned() } else { self::name(name) }
}

/// Arguments of templates and generics that are what the language takes where nothing is given.
const DEFAULTS: [&str; 9] = [
    "std::allocator<",
    "std::default_delete<",
    "std::char_traits<",
    "std::less<",
    "std::hash<",
    "std::equal_to<",
    "alloc::alloc::Global",
    "std::hash::random::RandomState",
    "std::collections::hash::map::RandomState",
];

/// What stands for what, once the arguments are left out.
const ALIASES: [(&str, &str); 8] = [
    ("std::basic_string<char>", "std::string"),
    ("std::basic_string<wchar_t>", "std::wstring"),
    ("std::basic_string_view<char>", "std::string_view"),
    ("std::basic_ostream<char>", "std::ostream"),
    ("std::basic_istream<char>", "std::istream"),
    ("std::basic_ostringstream<char>", "std::ostringstream"),
    ("std::basic_istringstream<char>", "std::istringstream"),
    ("std::basic_stringstream<char>", "std::stringstream"),
];

/// `name`, of a function or a type, without what the language added to it.
pub fn name(name: &str) -> String {
    let mut text = name.replace("std::__cxx11::", "std::").replace("std::__1::", "std::");
    while let Some(start) = text.find("[abi:") {
        let Some(length) = text[start..].find(']') else { break };
        text.replace_range(start..=start + length, "");
    }
    if !text.contains('<') {
        return text;
    }
    let mut text = short(&text, 0).unwrap_or(text);
    for (long, alias) in ALIASES {
        if text.contains(long) {
            text = text.replace(long, alias);
        }
    }
    text
}

/// `text` with shortened lists of arguments; none if its brackets do not match.
fn short(text: &str, depth: usize) -> Option<String> {
    (depth < DEPTH_MAX).then_some(())?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let (before, inner) = rest.split_at(open);
        out.push_str(before);
        let is_operator = before.ends_with("operator") || before.ends_with("operator<");
        let follows_name = before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if is_operator || !follows_name && !before.ends_with("::") {
            out.push('<');
            rest = &inner[1..];
            continue;
        }
        let (arguments, length) = arguments(&inner[1..])?;
        let mut shortened = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            shortened.push(short(argument.trim(), depth + 1)?);
        }
        let start = out.rfind([' ', '(', ',', '&', '*']).map_or(0, |at| at + 1);
        if is_of_library(&out[start..]) || is_of_library(text) {
            let is_default = |last: &String| DEFAULTS.iter().any(|own| last.starts_with(own));
            while shortened.len() > 1 && shortened.last().is_some_and(is_default) {
                shortened.pop();
            }
        }
        out.push('<');
        out.push_str(&shortened.join(", "));
        out.push('>');
        rest = &inner[1 + length + 1..];
    }
    out.push_str(rest);
    Some(out)
}

fn is_of_library(name: &str) -> bool {
    ["std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::"]
        .iter()
        .any(|space| name.starts_with(space))
}

/// The arguments at the start of `text`, up to the bracket that ends them, and how long they are.
fn arguments(text: &str) -> Option<(Vec<&str>, usize)> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let mut before = ' ';
    for (place, character) in text.char_indices() {
        match character {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            '>' if before == '-' => {}
            '>' if depth == 0 => {
                found.push(&text[start..place]);
                return Some((found, place));
            }
            '>' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
        before = character;
    }
    None
}

/// `name` without the arguments of templates and generics: `wait` of `wait<Lock>`.
pub fn without_arguments(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, inner) = rest.split_at(open);
        out.push_str(before);
        let follows_name = before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match arguments(&inner[1..]) {
            Some((_, length)) if follows_name && !before.ends_with("operator") => {
                rest = &inner[1 + length + 1..];
            }
            _ => {
                out.push('<');
                rest = &inner[1..];
            }
        }
    }
    out + rest
}

/// A type of Rust by the last part of its path: `Vec<Item>`.
pub fn rust_type(name: &str) -> String {
    let name = self::name(name);
    if name.len() > BYTES_MAX {
        return name;
    }
    let mut out = String::with_capacity(name.len());
    let mut path = String::new();
    for character in name.chars() {
        if character.is_alphanumeric() || "_:{}#".contains(character) {
            path.push(character);
            continue;
        }
        out.push_str(last_part(&path));
        out.push(character);
        path.clear();
    }
    out.push_str(last_part(&path));
    for (inner, outer) in [("ArcInner<", "Arc<"), ("RcInner<", "Rc<"), ("RcBox<", "Rc<")] {
        if out.starts_with(inner) {
            out.replace_range(..inner.len(), outer);
        }
    }
    out.replace(", Global>", ">")
}

/// The last part of a path, with the function around it if it is a closure.
fn last_part(path: &str) -> &str {
    let mut parts = path.rmatch_indices("::").map(|(at, _)| at + 2);
    match parts.next() {
        Some(last) if path[last..].starts_with('{') => &path[parts.next().unwrap_or(0)..],
        Some(last) => &path[last..],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_readable() {
        let cases = [
            ("_ZN4bank8transferEiRSt6vectorIiSaIiEE", "bank::transfer"),
            ("_ZN4bank6Teller4work17h0123456789abcdefE", "bank::Teller::work"),
            ("_RNvMs_NtCs1234_4bank6tellerNtB4_6Teller4work", "bank::teller::Teller::work"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int>::push_back"),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
                "std::string::append",
            ),
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

    #[test]
    fn what_languages_add_is_left_out() {
        let cases = [
            ("std::vector<int, std::allocator<int> >::size", "std::vector<int>::size"),
            (
                "std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, \
                 std::unique_ptr<Item, std::default_delete<Item> >, std::less<int>, \
                 std::allocator<std::pair<int const, Item> > >",
                "std::map<std::string, std::unique_ptr<Item>>",
            ),
            ("std::allocator<int>::allocate", "std::allocator<int>::allocate"),
            ("f[abi:cxx11]", "f"),
            (
                "std::operator<< <std::char_traits<char> >",
                "std::operator<< <std::char_traits<char> >",
            ),
            ("Pool<Job, std::allocator<Job> >::run", "Pool<Job, std::allocator<Job>>::run"),
            ("operator<", "operator<"),
            ("a<b", "a<b"),
            ("alloc::vec::Vec<i32, alloc::alloc::Global>::push", "alloc::vec::Vec<i32>::push"),
            ("<bank::Teller as core::ops::Drop>::drop", "<bank::Teller as core::ops::Drop>::drop"),
        ];
        for (long, expected) in cases {
            assert_eq!(name(long), expected);
        }
    }

    #[test]
    fn types_of_rust_are_shown_by_their_last_part() {
        let cases = [
            (
                "alloc::sync::ArcInner<std::sync::poison::mutex::Mutex<demo::Stats>>",
                "Arc<Mutex<Stats>>",
            ),
            ("alloc::vec::Vec<u8, alloc::alloc::Global>", "Vec<u8>"),
            ("demo::main::{closure_env#0}", "main::{closure_env#0}"),
            ("[demo::Item; 4]", "[Item; 4]"),
            ("u64", "u64"),
        ];
        for (long, expected) in cases {
            assert_eq!(rust_type(long), expected);
        }
    }
}
