//! A name for a finding that survives reruns.

use std::fmt::{self, Display, Formatter};

use reweave_trace::Trace;
use xxhash_rust::xxh3::xxh3_64;

use crate::finding::Finding;
use crate::identity::Identities;

/// A hash of what kind of fault a finding is and, for each event at fault, of the variable or lock, the function and
/// the text of the source line; or of the predicate that a state meets. [`Identities`] makes it. Another run of the same program that shows
/// the same fault gives the same fingerprint, and so does the program after a change elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of `finding`, made of `trace`. For many findings ask [`Identities`].
    #[must_use]
    pub fn new(trace: &Trace, finding: &Finding) -> Self {
        Identities::new(trace).fingerprint(finding)
    }

    /// The fingerprint of what is said by `text`.
    pub(crate) fn hashed(text: &str) -> Self {
        Self(xxh3_64(text.as_bytes()))
    }

    /// The fingerprint that `text` spells, as reports do; none if it spells none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_whole.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl Display for Fingerprint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detail, Evidence, Kind};
    use reweave_trace::{AccessOp, Marker, Op, TraceBuilder};

    fn fingerprint(threads: [&str; 2], var: &str, locations: [&str; 2], before: usize) -> String {
        let mut builder = TraceBuilder::new();
        let [first, second] = threads.map(|name| builder.thread(name));
        let [here, there] = locations.map(|location| builder.site(location));
        let var = builder.var(var);
        for _ in 0..before {
            builder.push(first, Op::Marker(Marker::Branch), here);
        }
        builder.push(first, Op::Access(AccessOp::Write, var), here);
        builder.push(second, Op::Access(AccessOp::Read, var), there);
        let trace = builder.finish().unwrap();
        let finding = Finding {
            analysis: "races.some",
            kind: Kind::Race,
            events: trace.events().skip(before).map(|(id, _)| id).collect(),
            message: String::new(),
            count: 1,
            evidence: Evidence::Unordered,
            detail: Detail::None,
        };
        Fingerprint::new(&trace, &finding).to_string()
    }

    #[test]
    fn threads_addresses_and_positions_have_no_part_in_it() {
        let one = fingerprint(["T1", "T2"], "0x10", ["a.c:1", "b.c:2"], 0);
        let other = fingerprint(["pool-7", "main"], "0x99", ["a.c:1", "b.c:2"], 5);
        assert_eq!(one, other);
    }

    #[test]
    fn locations_have() {
        let one = fingerprint(["T1", "T2"], "x", ["a.c:1", "b.c:2"], 0);
        assert_ne!(one, fingerprint(["T1", "T2"], "x", ["a.c:1", "b.c:3"], 0));
        assert_eq!(one, fingerprint(["T1", "T2"], "x", ["b.c:2", "a.c:1"], 0));
    }

    /// The fingerprint of a race on `x` between two lines of `add`, in `file` from line `from` on.
    fn of_lines(var: &str, function: &str, file: &str, from: u32, texts: [&str; 2]) -> String {
        let sites = [0, 1].map(|at| {
            let line = from + at;
            let text = texts[at as usize];
            format!("{file}:{line}\n{function} ({file}:{line})\nmain ({file}:90){text}")
        });
        fingerprint(["T1", "T2"], var, [&sites[0], &sites[1]], 0)
    }

    #[test]
    fn a_line_goes_by_its_function_and_its_text() {
        let texts = ["\nsource#12", "\nsource#34"];
        let one = of_lines("x", "add", "a.c", 7, texts);
        assert_eq!(one, of_lines("x", "add", "src/b.c", 12, texts));
        assert_eq!(one, of_lines("x", "add.part.0", "a.c", 7, texts));
        assert_ne!(one, of_lines("y", "add", "a.c", 7, texts));
        assert_ne!(one, of_lines("x", "sub", "a.c", 7, texts));
        assert_ne!(one, of_lines("x", "add", "a.c", 7, ["\nsource#12", "\nsource#35"]));
        // Where nobody has looked at the text, the function has to do.
        let bare = of_lines("x", "add", "a.c", 7, ["", ""]);
        assert_eq!(bare, of_lines("x", "add", "a.c", 8, ["", ""]));
        assert_ne!(bare, one);
    }

    #[test]
    fn elements_and_objects_of_a_type_are_one() {
        let of = |var: &str| fingerprint(["T1", "T2"], var, ["a.c:1", "b.c:2"], 0);
        assert_eq!(of("slots[3].next"), of("slots[7].next"));
        assert_ne!(of("slots[3].next"), of("slots[3].last"));
        assert_eq!(of("Item#2.refs"), of("Item#9.refs"));
        assert_eq!(of("count@a.c"), of("count@src/b.c"));
    }

    #[test]
    fn it_is_read_as_it_is_spelled_and_nothing_else_is() {
        let text = fingerprint(["T1", "T2"], "x", ["a.c:1", "b.c:2"], 0);
        assert_eq!(Fingerprint::parse(&text).map(|it| it.to_string()), Some(text));
        for text in ["", "6bc8b0af", "+bc8b0affd9bf809", "6bc8b0affd9bf80g", "6bc8b0affd9bf8090"] {
            assert_eq!(Fingerprint::parse(text), None, "{text}");
        }
    }

    #[test]
    fn it_never_changes_from_version_to_version() {
        assert_eq!(fingerprint(["T1", "T2"], "x", ["a.c:1", "b.c:2"], 0), "d8e790296d177112");
    }
}
