//! Sections and the CP edges between them.

use reweave_base::{FxHashMap, IndexVec};
use reweave_trace::views::{Mode, SectionId};
use reweave_trace::{EventId, LockId, ThreadId, Trace, VarId};

use crate::access::{CLASSES, CONFLICTS, class};
use crate::clock::VectorClock;
use crate::hb::HappensBefore;

/// The edges found so far, each from the release of a section to the acquire of a later one.
#[derive(Debug)]
pub(super) struct Edges {
    /// The section that each acquire starts.
    pub(super) starts: FxHashMap<EventId, SectionId>,
    /// The sections that end at an event: with their release or, those that are open to the end,
    /// with their thread's last event.
    pub(super) ends: FxHashMap<EventId, Vec<SectionId>>,
    /// What happens before a release from which an edge leads into the section.
    pub(super) into: IndexVec<SectionId, VectorClock>,
    sections: IndexVec<SectionId, Section>,
    /// Of each lock and thread the sections that can be sources: all of them, and the exclusive
    /// ones.
    sources: FxHashMap<(LockId, ThreadId), [Sources; 2]>,
    /// The threads that have sections on each lock.
    threads: IndexVec<LockId, Vec<ThreadId>>,
}

/// Sections of one thread on one lock, by their acquires.
#[derive(Debug, Default)]
struct Sources {
    sections: Vec<SectionId>,
    /// Of those up to each, the one that ends last: a thread that holds the lock in both modes has
    /// sections that lie within others.
    last_to_end: Vec<SectionId>,
}

#[derive(Debug)]
struct Section {
    thread: ThreadId,
    lock: LockId,
    mode: Mode,
    acquire: EventId,
    /// The acquire's number in its thread, counted from 1.
    acquired: u32,
    /// The release, or the acquire if there is none.
    release: EventId,
    /// The release's number in its thread, where there is one.
    released: Option<u32>,
    /// What happens before the release.
    before_release: VectorClock,
}

impl Edges {
    /// Adds an edge from `source`.
    pub(super) fn add(&mut self, into: SectionId, source: SectionId) {
        let before = &self.sections[source].before_release;
        self.into[into].join(before);
    }

    /// Whether what an edge from `source` gives is there already.
    fn has(&self, into: SectionId, source: SectionId) -> bool {
        let source = &self.sections[source];
        source.released.is_none_or(|time| self.into[into].get(source.thread) >= time)
    }

    /// Looks, at the end of `section` with its `clock`, for the latest section of each thread on
    /// the same lock whose acquire comes before that end by CP.
    pub(super) fn apply_rule_b(
        &self,
        section: SectionId,
        clock: &VectorClock,
        found: &mut Vec<(SectionId, SectionId)>,
    ) {
        let Section { lock, mode, acquire, .. } = self.sections[section];
        for &thread in &self.threads[lock] {
            let seen = clock.get(thread);
            let Some(sources) = self.sources.get(&(lock, thread)) else { continue };
            let sources = &sources[usize::from(mode == Mode::Shared)];
            let count = sources.sections.partition_point(|&id| {
                let source = &self.sections[id];
                source.acquired <= seen && source.acquire < acquire
            });
            if let Some(source) = self.last_ended(sources, count, acquire)
                && !self.has(section, source)
            {
                found.push((section, source));
            }
        }
    }

    /// Of the first `count` of `sources`, the one that ends last before `acquire`.
    fn last_ended(&self, sources: &Sources, count: usize, acquire: EventId) -> Option<SectionId> {
        let release = |id: SectionId| self.sections[id].release;
        let mut best: Option<SectionId> = None;
        for at in (0..count).rev() {
            // Those before it end no later than this one.
            let last = sources.last_to_end[at];
            let has_ended = release(last) < acquire;
            let candidate = if has_ended { last } else { sources.sections[at] };
            if release(candidate) < acquire
                && best.is_none_or(|id| release(id) < release(candidate))
            {
                best = Some(candidate);
            }
            if has_ended {
                break;
            }
        }
        best
    }
}

/// The pass that finds the edges of rule (a).
pub(super) struct Scan<'a> {
    trace: &'a Trace,
    happens_before: HappensBefore,
    edges: Edges,
    /// The sections that each thread is in, with what it accessed in each.
    open: IndexVec<ThreadId, Vec<Open>>,
    /// The latest closed section of each thread that accessed a variable under a lock.
    latest: FxHashMap<(LockId, VarId), Vec<Latest>>,
}

struct Open {
    section: SectionId,
    accesses: FxHashMap<VarId, u8>,
}

/// By kind of access and mode of the section.
struct Latest {
    thread: ThreadId,
    sections: [[Option<SectionId>; 2]; CLASSES],
}

impl<'a> Scan<'a> {
    /// The edges of rule (a), and all that rule (b) needs.
    pub(super) fn edges(trace: &'a Trace) -> Edges {
        let names = trace.names();
        let count = trace.sections().entries().len();
        let mut scan = Self {
            trace,
            happens_before: HappensBefore::new(),
            edges: Edges {
                starts: FxHashMap::default(),
                ends: FxHashMap::default(),
                into: IndexVec::from_elem(VectorClock::default(), count),
                sections: IndexVec::new(),
                sources: FxHashMap::default(),
                threads: IndexVec::from_elem(Vec::new(), names.locks.len()),
            },
            open: (0..names.threads.len()).map(|_| Vec::new()).collect(),
            latest: FxHashMap::default(),
        };
        scan.index_sections();
        for (id, _) in trace.events() {
            scan.step(id);
        }
        scan.close_what_is_open();
        scan.edges
    }

    fn index_sections(&mut self) {
        let number = |id: EventId| self.trace.position(id) + 1;
        for (id, section) in self.trace.sections().entries() {
            let thread = section.thread;
            self.edges.sections.push(Section {
                thread,
                lock: section.lock,
                mode: section.mode,
                acquire: section.acquire,
                acquired: number(section.acquire),
                release: section.release.unwrap_or(section.acquire),
                released: section.release.map(number),
                before_release: VectorClock::default(),
            });
            self.edges.starts.insert(section.acquire, id);
            let users = &mut self.edges.threads[section.lock];
            if !users.contains(&thread) {
                users.push(thread);
            }
            let last = self.trace.lifetime(thread).last.expect("its acquire is an event");
            self.edges.ends.entry(section.release.unwrap_or(last)).or_default().push(id);
            if section.release.is_none() {
                continue;
            }
            let releases = &self.edges.sections;
            let sources = self.edges.sources.entry((section.lock, thread)).or_default();
            let exclusive = section.mode == Mode::Exclusive;
            for sources in sources.iter_mut().take(1 + usize::from(exclusive)) {
                let last = sources.last_to_end.last().copied();
                let last = last.filter(|&last| releases[last].release > releases[id].release);
                sources.sections.push(id);
                sources.last_to_end.push(last.unwrap_or(id));
            }
        }
    }

    fn step(&mut self, id: EventId) {
        let event = self.trace.event(id);
        let clock = self.happens_before.advance(self.trace, id);
        if let Some(&section) = self.edges.starts.get(&id) {
            self.open[event.thread].push(Open { section, accesses: FxHashMap::default() });
        }
        if let Some(var) = event.op.var() {
            for open in &mut self.open[event.thread] {
                *open.accesses.entry(var).or_default() |= 1 << class(event.op);
            }
        }
        let released = Some(self.trace.position(id) + 1);
        let mut ending = self.edges.ends.get(&id).into_iter().flatten();
        let ending = ending.find(|&&section| self.edges.sections[section].released == released);
        let Some(&section) = ending else { return };
        self.edges.sections[section].before_release.copy_from(clock);
        let open = &mut self.open[event.thread];
        let at = open.iter().rposition(|open| open.section == section);
        let ended = open.remove(at.expect("a release ends an open section"));
        self.close(&ended, true);
    }

    fn close_what_is_open(&mut self) {
        for thread in self.open.ids() {
            for open in std::mem::take(&mut self.open[thread]) {
                self.close(&open, false);
            }
        }
    }

    /// Adds the edges of rule (a) into a section, and makes it a source for later ones.
    fn close(&mut self, ended: &Open, is_source: bool) {
        let Section { thread, lock, mode, .. } = self.edges.sections[ended.section];
        let mut found = Vec::new();
        for (&var, &classes) in &ended.accesses {
            let latest = self.latest.entry((lock, var)).or_default();
            let conflicting = (0..CLASSES)
                .filter(|class| classes >> class & 1 == 1)
                .flat_map(|class| CONFLICTS[class])
                .fold(0_u8, |all, class| all | 1 << class);
            for other in latest.iter().filter(|other| other.thread != thread) {
                for class in (0..CLASSES).filter(|class| conflicting >> class & 1 == 1) {
                    let [exclusive, shared] = other.sections[class];
                    found.extend(exclusive);
                    found.extend(shared.filter(|_| mode == Mode::Exclusive));
                }
            }
            if is_source {
                record(latest, thread, mode, classes, ended.section);
            }
        }
        let acquire = self.edges.sections[ended.section].acquire;
        for source in found {
            // Sections still open at the end are closed last: others may have begun after them.
            let earlier = self.edges.sections[source].release < acquire;
            if earlier && !self.edges.has(ended.section, source) {
                self.edges.add(ended.section, source);
            }
        }
    }
}

fn record(latest: &mut Vec<Latest>, thread: ThreadId, mode: Mode, classes: u8, section: SectionId) {
    let at = latest.iter().position(|other| other.thread == thread).unwrap_or_else(|| {
        latest.push(Latest { thread, sections: [[None; 2]; CLASSES] });
        latest.len() - 1
    });
    for class in (0..CLASSES).filter(|class| classes >> class & 1 == 1) {
        latest[at].sections[class][usize::from(mode == Mode::Shared)] = Some(section);
    }
}
