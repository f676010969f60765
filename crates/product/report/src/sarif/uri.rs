//! Names of files as URIs.

use std::fmt::Write as _;

/// The URI of the file that is called `name`; relative if the name is.
pub(crate) fn of_file(name: &str) -> String {
    let plain = name.strip_prefix("./").filter(|rest| !rest.is_empty()).unwrap_or(name);
    // A relative reference that starts with two slashes would name another machine.
    match plain.starts_with('/') {
        true => format!("file://{}", encoded(plain)),
        false => encoded(plain),
    }
}

/// Whether the URI of the file that is called `name` is a relative one.
pub(crate) fn is_relative(name: &str) -> bool {
    !of_file(name).starts_with("file:")
}

/// `path` with every byte but those that mean nothing in a URI, and slashes, as `%2F`.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            other => _ = write!(out, "%{other:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_uris_that_say_nothing_else() {
        for (name, uri) in [
            ("src/bank.c", "src/bank.c"),
            ("./a.c", "a.c"),
            ("/srv/a b/c++.cc", "file:///srv/a%20b/c%2B%2B.cc"),
            ("http://x/%41?q#f", "http%3A//x/%2541%3Fq%23f"),
            ("größe.c", "gr%C3%B6%C3%9Fe.c"),
            ("//host/a.c", "file:////host/a.c"),
            (".//a.c", "file:///a.c"),
        ] {
            assert_eq!(of_file(name), uri);
        }
    }
}
