//! Suppressions: which findings are tolerated?
//!
//! The syntax is ThreadSanitizer's, so existing files work as they are: a line is `kind:pattern`;
//! blank lines and lines that start with `#` are skipped. A [`Pattern`] is matched against the
//! functions and source files of the call stack at each event of a place of the finding, the variables and
//! locks, and the module (the executable or shared library) that the event is in. `race_top` looks
//! only at the innermost call, `called_from_lib` only at the module. `mutex` and `thread` are
//! ThreadSanitizer's words for `misuse`. `signal` names faults that only ThreadSanitizer reports; it is
//! accepted and matches nothing.
//!
//! Our own kinds are `atomicity`, `predicate` and `nondeterminism`, and `fingerprint`,
//! which names one finding by the start of its fingerprint.
//!
//! Each distinct name is matched against the patterns once, however many findings have it.

use reweave_analysis::{Finding, Fingerprint, Kind, Reported};
use reweave_base::FxHashMap;
use reweave_trace::{Calls, EventId, Frame, Place, Trace};

use crate::error::{ReadError, ReadErrorKind, at, clipped, lines, nearest, text};
use crate::pattern::Pattern;

/// How many digits of a fingerprint are needed, and how many it has.
const FINGERPRINT_DIGITS: std::ops::RangeInclusive<usize> = 8..=16;

/// What a suppression applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Findings of a kind.
    Of(Kind),
    /// Races whose innermost call matches.
    RaceTop,
    /// Findings with an event in a module that matches.
    CalledFromLib,
    /// One finding.
    Fingerprint,
}

/// The kinds of suppressions besides those named after the kind of finding.
const TARGETS: [(&str, Target); 6] = [
    ("race_top", Target::RaceTop),
    ("called_from_lib", Target::CalledFromLib),
    ("mutex", Target::Of(Kind::Misuse)),
    ("thread", Target::Of(Kind::Misuse)),
    ("signal", Target::Of(Kind::Misuse)),
    ("fingerprint", Target::Fingerprint),
];

/// Every kind that a suppression may start with.
fn targets() -> impl Iterator<Item = (&'static str, Target)> {
    Kind::ALL.into_iter().map(|kind| (kind.as_str(), Target::Of(kind))).chain(TARGETS)
}

/// The suppressions of one file.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    file: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    line: usize,
    text: String,
    target: Target,
    pattern: Pattern,
    is_used: bool,
}

/// A line of a suppression file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suppression<'s> {
    /// The name of the file.
    pub file: &'s str,
    /// The line, counted from 1.
    pub line: usize,
    /// The text of the line.
    pub text: &'s str,
}

impl Suppressions {
    /// Parses `bytes`, the content of `file`.
    ///
    /// # Errors
    /// If a line is not a suppression.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let mut entries = Vec::new();
        for (line, bytes) in lines(bytes) {
            let whole = text(file, line, bytes)?;
            let written = whole.trim_start();
            if written.is_empty() || written.starts_with('#') {
                continue;
            }
            let wrong = |part: &str, kind| at(file, line, whole, part, kind);
            let Some((name, rest)) = written.split_once(':') else {
                return Err(wrong(written, ReadErrorKind::MissingKind(clipped(written))));
            };
            let Some((_, target)) = targets().find(|&(known, _)| known == name) else {
                return Err(wrong(written, unknown_kind(name)));
            };
            // A space after the colon is not part of the pattern.
            let rest = rest.trim_start();
            if rest.is_empty() {
                return Err(wrong(rest, ReadErrorKind::MissingPattern(name.to_owned())));
            }
            let pattern = if target == Target::Fingerprint {
                let is_prefix = FINGERPRINT_DIGITS.contains(&rest.len())
                    && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_prefix {
                    return Err(wrong(rest, ReadErrorKind::NotAFingerprintPrefix(clipped(rest))));
                }
                Pattern::new(&format!("^{}", rest.to_ascii_lowercase()))
            } else {
                Pattern::new(rest)
            };
            entries.push(Entry { line, text: written.to_owned(), target, pattern, is_used: false });
        }
        Ok(Self { file: file.to_owned(), entries })
    }

    /// Whether there are no suppressions.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// For each place of each of `findings`, made of `trace`, whether a suppression matches it. Every entry
    /// that matches counts as used from now on.
    pub fn matching(&mut self, trace: &Trace, findings: &[Reported]) -> Vec<Vec<bool>> {
        let mut cache = MatchCache::default();
        let entries = &mut self.entries;
        let use_all = |matched: &[u32], entries: &mut Vec<Entry>| {
            for &at in matched {
                entries[at as usize].is_used = true;
            }
            !matched.is_empty()
        };
        let of_places = |reported: &Reported| {
            // Whoever names a fault means all of it.
            let is_named = use_all(&naming_entries(entries, reported.fingerprints()), entries);
            let is_matched = |finding: &Finding| {
                let matched = matching_entries(entries, &mut cache, trace, finding);
                use_all(&matched, entries) || is_named
            };
            reported.findings().map(is_matched).collect()
        };
        findings.iter().map(of_places).collect()
    }

    /// Suppressions that matched nothing, though `kinds` of faults were searched.
    pub fn unused(&self, kinds: &[Kind]) -> impl Iterator<Item = Suppression<'_>> {
        let is_searched = |target: Target| match target {
            Target::Of(kind) => kinds.contains(&kind),
            Target::RaceTop => kinds.contains(&Kind::Race),
            Target::CalledFromLib | Target::Fingerprint => true,
        };
        let unused = self.entries.iter().filter(|entry| !entry.is_used);
        unused.filter(move |entry| is_searched(entry.target)).map(|entry| self.line_of(entry))
    }

    fn line_of<'s>(&'s self, entry: &'s Entry) -> Suppression<'s> {
        Suppression { file: &self.file, line: entry.line, text: &entry.text }
    }
}

fn unknown_kind(name: &str) -> ReadErrorKind {
    let names: Vec<&str> = targets().map(|(name, _)| name).collect();
    let nearest = nearest(name, names.iter().copied());
    ReadErrorKind::UnknownKind { found: clipped(name), nearest, known: names.join(", ") }
}

/// For each name seen so far, the positions of the entries whose patterns match it.
type MatchCache = FxHashMap<Box<str>, Vec<u32>>;

/// The positions of the entries that name a fault which is called any of `names`.
fn naming_entries(entries: &[Entry], names: impl Iterator<Item = Fingerprint>) -> Vec<u32> {
    // Without such an entry the names, which may be many, need not be spelled.
    if entries.iter().all(|entry| entry.target != Target::Fingerprint) {
        return Vec::new();
    }
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    let is_named = |entry: &Entry| names.iter().any(|name| entry.pattern.matches(name));
    let named = (0..).zip(entries);
    let named = named.filter(|(_, it)| it.target == Target::Fingerprint && is_named(it));
    named.map(|(at, _)| at).collect()
}

/// The positions of the entries that suppress `finding` by a name that belongs to it.
fn matching_entries(
    entries: &[Entry],
    cache: &mut MatchCache,
    trace: &Trace,
    finding: &Finding,
) -> Vec<u32> {
    let kind = finding.kind;
    let mut matched = Vec::new();
    let mut visit = |name: &str, role: Role| {
        if !cache.contains_key(name) {
            let all = (0..).zip(entries).filter(|(_, entry)| entry.pattern.matches(name));
            cache.insert(Box::from(name), all.map(|(at, _)| at).collect());
        }
        let positions = cache[name].iter().copied();
        matched.extend(positions.filter(|&at| role.applies(entries[at as usize].target, kind)));
    };
    if let Some(state) = finding.detail.state() {
        visit(&state.predicate, Role::Object);
    }
    for &event in &finding.events {
        each_name(trace, event, &mut visit);
    }
    matched.sort_unstable();
    matched.dedup();
    matched
}

/// What a name that patterns are matched against is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The innermost call.
    Top,
    /// An outer call.
    Caller,
    /// A variable, a lock, a predicate.
    Object,
    /// The executable or shared library that an event is in.
    Module,
}

impl Role {
    /// Whether a suppression of `target` looks at such names in findings of `kind`.
    fn applies(self, target: Target, kind: Kind) -> bool {
        match target {
            Target::Of(of) => of == kind,
            Target::RaceTop => kind == Kind::Race && self == Self::Top,
            Target::CalledFromLib => self == Self::Module,
            Target::Fingerprint => false,
        }
    }
}

/// Passes every name that belongs to the event `id` to `visit`.
fn each_name(trace: &Trace, id: EventId, visit: &mut dyn FnMut(&str, Role)) {
    let (event, names) = (trace.event(id), trace.names());
    each_location(names.location(event.site).trim(), Role::Top, visit);
    let Calls { own, callers } = Calls::new(names, event.site);
    if let Some(own) = own {
        visit(own.function, Role::Top);
    }
    for Frame { function, location } in callers {
        visit(function, Role::Caller);
        if let Some(location) = location {
            each_location(location, Role::Caller, visit);
        }
    }
    let (code, index) = event.op.encode();
    visit(names.name(code.kind().operand(), index), Role::Object);
    let module = trace.origins().and_then(|origins| {
        let code = origins.codes().get(origins.get(id)?.code)?;
        origins.modules().get(code.module)
    });
    if let Some(module) = module {
        visit(&module.path, Role::Module);
    }
}

/// Passes `location` to `visit`, and its file if it also names a line.
fn each_location(location: &str, role: Role, visit: &mut dyn FnMut(&str, Role)) {
    visit(location, role);
    if let Some(Place { file, .. }) = Place::new(location) {
        visit(file, role);
    }
}
