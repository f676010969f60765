//! A name for a finding that survives reruns.

use std::fmt::{self, Display, Formatter};

use reweave_trace::Trace;
use xxhash_rust::xxh3::xxh3_64;

use crate::finding::Finding;

/// A hash of what kind of fault a finding is and of the code locations at fault, or of the
/// predicate that a state meets. Addresses, thread
/// names and positions have no part in it, so another run of the same program that shows the same
/// fault gives the same fingerprint. Nor have operations: of a line such as `x++` one run may show
/// the read and another the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of `finding`, made of `trace`.
    #[must_use]
    pub fn new(trace: &Trace, finding: &Finding) -> Self {
        let mut text = String::from(finding.kind.as_str());
        if let Some(state) = finding.detail.state() {
            // Wherever it is met, it is the same predicate.
            text.extend(["\n", state.modality.as_str(), "\n", &state.predicate]);
            return Self(xxh3_64(text.as_bytes()));
        }
        for location in finding.locations(trace) {
            // A location cannot hold a line feed.
            text.push('\n');
            text.push_str(location);
        }
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
        assert_eq!(fingerprint(["T1", "T2"], "x", ["a.c:1", "b.c:2"], 0), "6bc8b0affd9bf809");
    }
}
