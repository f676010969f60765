//! What was decided, by the code location of the read.
//!
//! For each location of reads that can see another write, a few instances of each location of
//! such writes are kept, to be proven. Going through all feasible witnesses would take too long
//! where there are hundreds of millions; after [`LOOKS_MAX`] of them only the last of each range is
//! looked at, and the counts of locations are lower bounds.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::{EventId, SiteId, Trace};

use crate::accesses::{Accesses, Reader};
use crate::values::Values;
use crate::verdicts::{Challengers, ReadVerdicts};

/// How many instances of a write's location are kept.
const TRIES_MAX: usize = 2;

/// How many locations of writes a group tells apart.
const WRITES_MAX: usize = 16;

/// How many groups there are at most.
pub(crate) const GROUPS_MAX: usize = 100_000;

/// How many feasible witnesses are gone through one by one.
const LOOKS_MAX: u64 = 20_000_000;

/// Reads at one code location, or of one variable at the end of the run, that can see other writes.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// How many pairs of a read and a write that it can see instead were counted.
    pub(crate) count: u64,
    /// The other writes by code location, in the order in which they were first met.
    pub(crate) writes: Vec<Write>,
    write_of: FxHashMap<Option<SiteId>, usize>,
}

/// The writes at one code location, or the initial value.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) count: u64,
    /// The earliest instances: the read, and the write that it can see.
    pub(crate) tries: Vec<(Reader, Option<EventId>)>,
}

/// What groups are told apart by: the location of a read; or for reads at the end of the run, that of
/// the write that they saw.
type Key = (bool, Option<SiteId>);

/// All groups, in the order in which they were first met.
#[derive(Debug)]
pub(crate) struct Groups<'a, 't> {
    accesses: &'a Accesses<'t>,
    trace: &'t Trace,
    locations: IndexVec<SiteId, SiteId>,
    group_of: FxHashMap<Key, usize>,
    pub(crate) groups: Vec<Group>,
    looks_left: u64,
    /// Whether reads at one location make a group, or each read does.
    is_grouped: bool,
    /// Known if writes that give the same value are to be let go.
    values: Option<&'a Values<'t>>,
    /// How many reads can see another write.
    pub(crate) reads_count: u64,
    /// How many writes were let go, since they would give the same value.
    pub(crate) same_value: u64,
    /// How many reads were not put into a group, there being too many.
    pub(crate) unlisted: u64,
}

impl<'a, 't> Groups<'a, 't> {
    pub(crate) fn new(
        accesses: &'a Accesses<'t>,
        is_grouped: bool,
        values: Option<&'a Values<'t>>,
    ) -> Self {
        let trace = accesses.trace();
        Self {
            accesses,
            trace,
            locations: trace.names().first_sites(),
            group_of: FxHashMap::default(),
            groups: Vec::new(),
            looks_left: LOOKS_MAX,
            is_grouped,
            values,
            reads_count: 0,
            same_value: 0,
            unlisted: 0,
        }
    }

    /// Adds what `reader` can see.
    pub(crate) fn add(&mut self, reader: &Reader, verdicts: &ReadVerdicts) {
        let seen = verdicts.feasible();
        if seen.count() == 0 {
            return;
        }
        self.reads_count += 1;
        let mut writes: Vec<Option<EventId>> = seen.initial.then_some(None).into_iter().collect();
        self.gather(reader, &seen, &mut writes);
        let all = writes.len();
        if let Some(values) = self.values {
            writes.retain(|&write| values.changes(reader, write) != Some(false));
        }
        let same_value = (all - writes.len()) as u64;
        self.same_value += same_value;
        if writes.is_empty() {
            return;
        }
        let Some(at) = self.group(reader) else {
            self.unlisted += 1;
            return;
        };
        self.groups[at].count += seen.count() - same_value;
        for write in writes {
            let site = write.map(|write| self.locations[self.trace.event(write).site]);
            self.groups[at].add(site, reader, write);
        }
    }

    /// Adds the writes that `reader` can see, as far as they are gone through, to `writes`.
    fn gather(&mut self, reader: &Reader, seen: &Challengers, writes: &mut Vec<Option<EventId>>) {
        let lines = self.accesses.lines(reader.var);
        for (line, range) in &seen.ranges {
            let all = self.accesses.writes(&lines[*line as usize]);
            let all = &all[range.start as usize..range.end as usize];
            // The last one is what the read sees most easily.
            let from = if all.len() as u64 <= self.looks_left { 0 } else { all.len() - 1 };
            self.looks_left = self.looks_left.saturating_sub((all.len() - from) as u64);
            writes.extend(all[from..].iter().copied().map(Some));
        }
    }

    /// The group of `reader`, unless there are too many.
    fn group(&mut self, reader: &Reader) -> Option<usize> {
        let location = |event: EventId| self.locations[self.trace.event(event).site];
        let key = match reader.read {
            Some(read) => (true, Some(location(read))),
            None => (false, reader.writer.map(location)),
        };
        let known = self.group_of.get(&key).copied().filter(|_| self.is_grouped);
        if known.is_some() || self.groups.len() >= GROUPS_MAX {
            return known;
        }
        let at = self.groups.len();
        self.groups.push(Group { count: 0, writes: Vec::new(), write_of: FxHashMap::default() });
        self.group_of.insert(key, at);
        Some(at)
    }
}

impl Group {
    fn add(&mut self, site: Option<SiteId>, reader: &Reader, write: Option<EventId>) {
        let next = self.writes.len();
        let at = match self.write_of.get(&site) {
            Some(&at) => at,
            None if next >= WRITES_MAX => return,
            None => {
                self.writes.push(Write { count: 0, tries: Vec::new() });
                self.write_of.insert(site, next);
                next
            }
        };
        let own = &mut self.writes[at];
        own.count += 1;
        if own.tries.len() < TRIES_MAX {
            own.tries.push((*reader, write));
        }
    }
}
