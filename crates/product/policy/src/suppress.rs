//! Suppressions: which findings are tolerated?
//!
//! The syntax is ThreadSanitizer's, so a file that a project has already serves as it is: a line is
//! `kind:pattern`, and blank lines and those that start with `#` are skipped. A pattern is matched
//! against the functions of the calls at each event at fault, their source files, the variables and
//! locks, and the file of code that the event is in; see [`Pattern`] for what it may be. `race_top`
//! looks at the function and the source file of the innermost call alone, and `called_from_lib` at the file of code. `thread`, `signal`
//! and `mutex` name what only ThreadSanitizer looks for: they are read and match nothing.
//!
//! Every kind of fault is a word, and so is `fingerprint`, which names one finding by the start of
//! its fingerprint.
//!
//! Each name is held against the patterns once, however many findings have it.

use reweave_analysis::{Kind, Reported};
use reweave_base::FxHashMap;
use reweave_trace::{Calls, EventId, Frame, Place, Trace};

use crate::error::{ReadError, ReadErrorKind, at, clipped, lines, text};
use crate::nearest::nearest;
use crate::pattern::Pattern;

/// A fingerprint is named by so many digits at least.
const DIGITS_MIN: usize = 8;

/// How many digits a fingerprint has.
const DIGITS_MAX: usize = 16;

/// What a suppression may speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Findings of a kind.
    Of(Kind),
    /// Races whose innermost call matches.
    RaceTop,
    /// What happens in a file of code.
    CalledFromLib,
    /// One finding.
    Fingerprint,
    /// What is never found here.
    Foreign,
}

/// How suppressions spell what they speak of, besides the names of kinds.
const WORDS: [(&str, Word); 6] = [
    ("race_top", Word::RaceTop),
    ("called_from_lib", Word::CalledFromLib),
    ("mutex", Word::Foreign),
    ("thread", Word::Foreign),
    ("signal", Word::Foreign),
    ("fingerprint", Word::Fingerprint),
];

/// Every word that a suppression may start with.
fn words() -> impl Iterator<Item = (&'static str, Word)> {
    Kind::ALL.into_iter().map(|kind| (kind.as_str(), Word::Of(kind))).chain(WORDS)
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
    word: Word,
    pattern: Pattern,
    is_used: bool,
}

/// A suppression that matched nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused<'s> {
    /// The file that it is in.
    pub file: &'s str,
    /// The line, counted from 1.
    pub line: usize,
    /// The line as it was written.
    pub text: &'s str,
}

impl Suppressions {
    /// The suppressions in `bytes`, the content of `file`.
    ///
    /// # Errors
    /// If a line is none.
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
                return Err(wrong(written, ReadErrorKind::NoKind(clipped(written))));
            };
            let Some((_, word)) = words().find(|&(known, _)| known == name) else {
                return Err(wrong(written, unknown(name)));
            };
            // A blank after the colon is no part of what is meant.
            let rest = rest.trim_start();
            if rest.is_empty() {
                return Err(wrong(rest, ReadErrorKind::NoPattern(name.to_owned())));
            }
            let is_start = (DIGITS_MIN..=DIGITS_MAX).contains(&rest.len())
                && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
            let pattern = match word {
                Word::Fingerprint if !is_start => {
                    return Err(wrong(rest, ReadErrorKind::NoFingerprintStart(clipped(rest))));
                }
                Word::Fingerprint => Pattern::new(&format!("^{}", rest.to_ascii_lowercase())),
                _ => Pattern::new(rest),
            };
            entries.push(Entry { line, text: written.to_owned(), word, pattern, is_used: false });
        }
        Ok(Self { file: file.to_owned(), entries })
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Which of `findings`, made of `trace`, are tolerated. All entries that match are used.
    pub fn tolerated(&mut self, trace: &Trace, findings: &[Reported]) -> Vec<bool> {
        let mut seen = Seen::default();
        let tolerated = |reported| {
            let matched = seen.matching(&self.entries, trace, reported);
            for &at in &matched {
                self.entries[at as usize].is_used = true;
            }
            !matched.is_empty()
        };
        findings.iter().map(tolerated).collect()
    }

    /// Those that matched nothing, though `kinds` of faults were looked for.
    pub fn unused(&self, kinds: &[Kind]) -> impl Iterator<Item = Unused<'_>> {
        let is_asked = |word: Word| match word {
            Word::Of(kind) => kinds.contains(&kind),
            Word::RaceTop => kinds.contains(&Kind::Race),
            Word::CalledFromLib | Word::Fingerprint => true,
            Word::Foreign => false,
        };
        let unused = self.entries.iter().filter(|entry| !entry.is_used);
        unused.filter(move |entry| is_asked(entry.word)).map(|Entry { line, text, .. }| Unused {
            file: &self.file,
            line: *line,
            text,
        })
    }

    /// The first that names what is never found here, and how many there are.
    #[must_use]
    pub fn foreign(&self) -> Option<(Unused<'_>, usize)> {
        let mut foreign = self.entries.iter().filter(|entry| entry.word == Word::Foreign);
        let Entry { line, text, .. } = foreign.next()?;
        Some((Unused { file: &self.file, line: *line, text }, 1 + foreign.count()))
    }
}

fn unknown(name: &str) -> ReadErrorKind {
    let names = || words().map(|(name, _)| name);
    let nearest = nearest(name, names());
    let known = names().collect::<Vec<_>>().join(", ");
    ReadErrorKind::UnknownKind { found: clipped(name), nearest, known }
}

/// Which entries match the names that were seen, by their places.
#[derive(Default)]
struct Seen {
    matching: FxHashMap<Box<str>, Vec<u32>>,
}

impl Seen {
    /// The entries whose patterns match `name`.
    fn of(&mut self, entries: &[Entry], name: &str) -> &[u32] {
        if !self.matching.contains_key(name) {
            let places = (0..).zip(entries);
            let places = places.filter(|(_, entry)| entry.pattern.matches(name));
            let places = places.map(|(at, _)| at).collect();
            self.matching.insert(Box::from(name), places);
        }
        self.matching.get(name).map_or(&[], Vec::as_slice)
    }

    /// The entries that speak of `reported`.
    fn matching(&mut self, entries: &[Entry], trace: &Trace, reported: &Reported) -> Vec<u32> {
        let kind = reported.finding.kind;
        let mut matched = Vec::new();
        let mut look = |name: &str, role: Role| {
            let places = self.of(entries, name).iter().copied();
            matched.extend(places.filter(|&at| role.is_for(entries[at as usize].word, kind)));
        };
        look(&reported.fingerprint.to_string(), Role::Fingerprint);
        if let Some(state) = reported.finding.detail.state() {
            look(&state.predicate, Role::Thing);
        }
        for &event in &reported.finding.events {
            each_name(trace, event, &mut look);
        }
        matched.sort_unstable();
        matched.dedup();
        matched
    }
}

/// What a name that is held against patterns is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The innermost call.
    Top,
    /// A call further out.
    Caller,
    /// A variable, a lock, a predicate.
    Thing,
    /// The file of code that an event is in.
    Module,
    /// The finding itself.
    Fingerprint,
}

impl Role {
    /// Whether a suppression that speaks of `word` looks at such names in findings of `kind`.
    fn is_for(self, word: Word, kind: Kind) -> bool {
        match word {
            Word::Of(of) => of == kind && self != Self::Fingerprint,
            Word::RaceTop => kind == Kind::Race && self == Self::Top,
            Word::CalledFromLib => self == Self::Module,
            Word::Fingerprint => self == Self::Fingerprint,
            Word::Foreign => false,
        }
    }
}

/// Hands every name that `event` goes by to `look`.
fn each_name(trace: &Trace, id: EventId, look: &mut dyn FnMut(&str, Role)) {
    let (event, names) = (trace.event(id), trace.names());
    each_location(names.location(event.site).trim(), Role::Top, look);
    let Calls { own, callers } = Calls::new(names, event.site);
    if let Some(own) = own {
        look(own.function, Role::Top);
    }
    for Frame { function, location } in callers {
        look(function, Role::Caller);
        if let Some(location) = location {
            each_location(location, Role::Caller, look);
        }
    }
    let (code, index) = event.op.encode();
    look(names.name(code.kind().operand(), index), Role::Thing);
    let origins = trace.origins();
    let module = origins.and_then(|origins| {
        let origin = origins.get(id)?;
        origins.modules().get(origins.codes().get(origin.code)?.module)
    });
    if let Some(module) = module {
        look(&module.path, Role::Module);
    }
}

/// Hands `location` to `look`, and the file that it names if that is not all of it.
fn each_location(location: &str, role: Role, look: &mut dyn FnMut(&str, Role)) {
    look(location, role);
    if let Some(Place { file, .. }) = Place::new(location) {
        look(file, role);
    }
}
