//! Lives that can end too early: which uses can come after the end of what they use?
//!
//! Candidates follow from one pass: the uses of an object by threads other than the one that ends it,
//! but for those that the end needs ([`MustHappenBefore`]), and those that were observed after it. Each is a
//! question to the engine: can the end come first? Uses under the lock under which the object ends are candidates, too:
//! a lock keeps the two apart but in no order. Where atomics hand something over without ordering it, an access that always comes
//! before a free may still be unordered with it: that is asked next. Not so of an atomic write that the freeing thread saw by
//! an atomic read of the same variable, such as the last count of another thread: the one write follows the other.
//!
//! Uses of what has one name at the same two code locations are one finding. Of the uses of one thread at one place of one
//! object the first and the last are tried, and of such pairs at most [`INSTANCES_MAX`], unless all are
//! asked for.

use reweave_analysis::{
    Class, Counter, Counters, Coverage, Detail, Finding, Identities, Info, Settings, Sink, Subject,
    spelled, too_weak,
};
use reweave_base::{FxHashMap, FxHashSet, Id, IndexVec};
use reweave_driver::{Driver, Evaluated, Evaluator, Group, Predictor, Reorderings, Tried};
use reweave_order::mhb::MustHappenBefore;
use reweave_reorder::{Answer, Query};
use reweave_trace::{
    After, BarrierOp, ConditionOp, EventId, Goal, LockOp, NameKind, ObjectId, ObjectOp, Op, SiteId,
    ThreadId, Trace, VarId,
};

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// How many instances at the same code locations are tried. Most often all are refuted, and each quickly: a program
/// that frees what it took out of a list has one for each element.
const INSTANCES_MAX: usize = 1 << 14;

/// A use that may come after the end of what it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The `free`.
    pub(crate) end: EventId,
    /// The use.
    pub(crate) event: EventId,
    /// Whether the use is an atomic write that the thread which ends the life saw.
    pub(crate) is_seen: bool,
}

/// What has lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lives {
    /// Memory, which accesses use.
    Memory,
    /// Locks, conditions, barriers, semaphores and file descriptors.
    Handles,
}

impl Lives {
    /// Whether `object` has such a life.
    fn include(self, trace: &Trace, object: ObjectId) -> bool {
        trace.names().is_handle(object) == (self == Self::Handles)
    }

    /// Whether any such life ends in `trace`.
    pub(crate) fn end_in(self, trace: &Trace) -> bool {
        !trace.names().objects.is_empty() && ended(trace).any(|it| self.include(trace, it))
    }
}

/// The objects whose lives end in `trace`.
fn ended(trace: &Trace) -> impl Iterator<Item = ObjectId> {
    trace.events().filter_map(|(_, event)| match event.op {
        Op::Object(ObjectOp::Free, object) => Some(object),
        _ => None,
    })
}

/// Which object each event uses.
struct UsedObjects {
    vars: IndexVec<VarId, Option<ObjectId>>,
    /// By the kind and the index of what has a life as a handle.
    handles: FxHashMap<(NameKind, u32), ObjectId>,
}

impl UsedObjects {
    /// Of objects that end; nothing if none does.
    fn new(trace: &Trace, lives: Lives) -> Option<Self> {
        let names = trace.names();
        let mut ends = IndexVec::from_elem(false, names.objects.len());
        for object in ended(trace).filter(|&object| lives.include(trace, object)) {
            ends[object] = true;
        }
        if !ends.entries().any(|(_, &ends)| ends) {
            return None;
        }
        let vars = (0..names.vars.len()).map(VarId::from_index);
        let vars = vars.map(|var| names.object_of(var).filter(|&object| ends[object])).collect();
        let mut handles = FxHashMap::default();
        for kind in [NameKind::Lock, NameKind::Condition, NameKind::Barrier, NameKind::Semaphore] {
            let indexes = (0..names.count(kind) as u32).filter(|_| lives == Lives::Handles);
            let ids = indexes.map(|index| ((kind, index), names.handle(kind, index)));
            let ids = ids.filter_map(|(key, object)| Some((key, object?)));
            handles.extend(ids.filter(|&(_, object)| ends[object]));
        }
        Some(Self { vars, handles })
    }

    /// The object that `op` uses.
    fn of(&self, op: Op) -> Option<ObjectId> {
        match op {
            Op::Access(_, var) => self.vars[var],
            // Who was woken, or let go, may return after others have destroyed what it waited at.
            Op::Condition(ConditionOp::Wake | ConditionOp::Timeout, _)
            | Op::Barrier(BarrierOp::Depart, _)
            | Op::Fence(_)
            | Op::Thread(..)
            | Op::Object(..)
            | Op::Marker(_) => None,
            Op::Lock(..) | Op::Condition(..) | Op::Barrier(..) | Op::Semaphore(..) => {
                if self.handles.is_empty() {
                    return None;
                }
                let (code, index) = op.encode();
                self.handles.get(&(code.kind().operand(), index)).copied()
            }
        }
    }
}

/// The candidates of a trace, by their code locations.
#[derive(Debug, Default)]
struct Candidates {
    /// Those to try at each pair of code locations, and how many there are.
    groups: Vec<(Vec<Use>, u64)>,
    /// Objects that another thread than the one that ends them uses.
    objects_count: u64,
    /// The place of the group at two code locations, of what ends there.
    at: FxHashMap<([SiteId; 2], Class), usize>,
    first_sites: IndexVec<SiteId, SiteId>,
}

/// What threads did to an object that is live, by atomic accesses and otherwise.
type Uses = FxHashMap<(ThreadId, SiteId, bool), Vec<EventId>>;

impl Candidates {
    fn new(driver: &mut Driver<'_, '_>, lives: Lives) -> Self {
        let (trace, all) = (driver.trace(), driver.settings().all);
        let names = trace.names();
        let mut candidates = Self::default();
        if driver.progress(0, 1).is_break() || names.objects.is_empty() {
            return candidates;
        }
        let Some(used) = UsedObjects::new(trace, lives) else { return candidates };
        let is_weak = lives == Lives::Memory && trace.synchronization().is_weak();
        let synchronized = is_weak.then(|| MustHappenBefore::synchronized(trace));
        let needs = synchronized.as_ref().unwrap_or_else(|| driver.subject().engine().mhb());
        candidates.first_sites = names.first_sites();
        let identities = Identities::new(trace);
        let mut live: IndexVec<ObjectId, Uses> =
            (0..names.objects.len()).map(|_| Uses::default()).collect();
        let mut ended: FxHashMap<ObjectId, EventId> = FxHashMap::default();
        let mut counted: FxHashSet<ObjectId> = FxHashSet::default();
        let mut last_reads: FxHashMap<(ThreadId, VarId), EventId> = FxHashMap::default();
        for (id, event) in trace.events() {
            if id.index().is_multiple_of(STRIDE)
                && driver.progress(id.index(), trace.len()).is_break()
            {
                break;
            }
            if let Some(object) = used.of(event.op) {
                let is_atomic_read = event.op.is_atomic() && event.op.is_read();
                if let Some(var) = event.op.var().filter(|_| is_weak && is_atomic_read) {
                    last_reads.insert((event.thread, var), id);
                }
                let key = (event.thread, event.site, event.op.is_atomic());
                let uses = live[object].entry(key).or_default();
                // The first and the last.
                if !all && uses.len() > 1 {
                    uses.pop();
                }
                let (id, is_first) = (begin_of(trace, id), uses.is_empty());
                uses.push(id);
                if let Some(&end) = ended.get(&object).filter(|_| all || is_first)
                    && trace.event(end).thread != event.thread
                {
                    candidates.objects_count += u64::from(counted.insert(object));
                    candidates.add(&identities, trace, Use { end, event: id, is_seen: false }, all);
                }
            }
            let Op::Object(ObjectOp::Free, object) = event.op else { continue };
            ended.insert(object, id);
            let mut uses = std::mem::take(&mut live[object]);
            let ender = event.thread;
            uses.retain(|&(thread, ..), _| thread != ender);
            if !uses.is_empty() {
                candidates.objects_count += u64::from(counted.insert(object));
            }
            let uses = uses.into_values().flatten();
            let mut late: Vec<EventId> =
                uses.filter(|&before| !is_needed(trace, needs, before, id)).collect();
            late.sort_unstable();
            for event in late {
                let op = trace.event(event).op;
                let own = op.var().and_then(|var| last_reads.get(&(ender, var)));
                let is_seen = op.is_atomic() && op.is_write() && own > Some(&event);
                candidates.add(&identities, trace, Use { end: id, event, is_seen }, all);
            }
        }
        candidates
    }

    /// Adds `candidate` to those at its code locations, or as a group of its own if `all` are asked for.
    fn add(&mut self, identities: &Identities<'_>, trace: &Trace, candidate: Use, all: bool) {
        let Use { end, .. } = candidate;
        let sites = [fault_site(trace, candidate), trace.event(end).site];
        let sites = sites.map(|site| self.first_sites[site]);
        let class = identities.class_of(trace.event(end).op);
        let at = *self.at.entry((sites, class)).or_insert(self.groups.len());
        if all || at == self.groups.len() {
            self.groups.push((vec![candidate], 1));
            return;
        }
        let (tried, count) = &mut self.groups[at];
        *count += 1;
        if tried.len() < INSTANCES_MAX {
            tried.push(candidate);
        }
    }
}

/// Where to look for the fault that `candidate` shows: a lock that can be destroyed before it is released can most
/// often be destroyed before it is acquired, and that is one fault.
fn fault_site(trace: &Trace, Use { end, event, .. }: Use) -> SiteId {
    let happening = trace.event(event);
    let Op::Lock(LockOp::Release | LockOp::ReleaseShared, lock) = happening.op else {
        return happening.site;
    };
    let handle = trace.names().handle(NameKind::Lock, lock.index() as u32);
    // A release may also be the begin of a wait on what ends.
    if handle.map(|object| Op::Object(ObjectOp::Free, object)) != Some(trace.event(end).op) {
        return happening.site;
    }
    let mut held = trace.sections().held(happening.thread, event);
    let section = held.find(|section| section.lock == lock);
    section.map_or(happening.site, |section| trace.event(section.acquire).site)
}

/// Where the use at `event` begins: a wait releases its lock and begins in one step.
fn begin_of(trace: &Trace, event: EventId) -> EventId {
    if !matches!(trace.event(event).op, Op::Condition(ConditionOp::Wait, _)) {
        return event;
    }
    let own = trace.thread_events(trace.event(event).thread);
    let before = (trace.position(event) as usize).checked_sub(1).map(|at| own[at]);
    let releases = |id: &EventId| {
        matches!(trace.event(*id).op, Op::Lock(LockOp::Release | LockOp::ReleaseShared, _))
    };
    before.filter(releases).unwrap_or(event)
}

/// Whether `event` happens before `end` in every reordering with that.
fn is_needed(trace: &Trace, needs: &MustHappenBefore<'_>, event: EventId, end: EventId) -> bool {
    needs.before(end).get(trace.event(event).thread) > trace.position(event)
}

/// Looks for uses of what has `lives` that can come after its end; `message` says it of one.
pub(crate) fn run(
    (info, lives): (&'static Info, Lives),
    (subject, settings): (&Subject<'_>, &Settings),
    sink: &mut dyn Sink,
    message: fn(&Trace, Use) -> String,
) -> Coverage {
    let mut driver = Driver::new(subject, settings, sink);
    let Candidates { groups, objects_count, .. } = Candidates::new(&mut driver, lives);
    let trace = subject.trace();
    let mhb = subject.engine().mhb();
    let counts = Counts::default();
    let mut predictor = EndPredictor { trace, mhb, info, lives, message, counts };
    let groups = groups.into_iter().map(|(tried, count)| Group::sampled(tried, count));
    _ = driver.prove(&mut predictor, groups);
    let counters = predictor.counts.counters(objects_count);
    driver.coverage(info, counters)
}

/// How the candidates fared.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    proven: u64,
    refuted: u64,
    unknown: u64,
    unknown_writer: u64,
}

impl Counts {
    fn counters(self, objects_count: u64) -> Counters {
        let mut counters = vec![
            (Counter::SharedObjects, objects_count),
            (Counter::Proven, self.proven),
            (Counter::Refuted, self.refuted),
        ];
        let more =
            [(Counter::Undecided, self.unknown), (Counter::UnknownWriter, self.unknown_writer)];
        counters.extend(more.into_iter().filter(|&(_, count)| count > 0));
        counters
    }
}

/// Asks whether the end can come first.
struct EndPredictor<'a, 't> {
    trace: &'t Trace,
    mhb: &'a MustHappenBefore<'t>,
    info: &'static Info,
    lives: Lives,
    message: fn(&Trace, Use) -> String,
    counts: Counts,
}

impl Predictor for EndPredictor<'_, '_> {
    type Candidate = Use;

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, candidate: &Use) -> Tried {
        let Use { end, event, is_seen } = *candidate;
        // What an access to freed memory sees does not matter: its thread stops there.
        let reads = self.lives == Lives::Memory && self.trace.event(event).op.is_read();
        let chain = vec![end, event];
        let query = Query::order_up_to(&chain, reads);
        let seen = if reads { vec![event] } else { Vec::new() };
        let goal = Goal::Order { chain, absent: Vec::new(), free: seen, after: After::Stops };
        let tried = evaluator.ask([(query, goal)], Reorderings::All);
        let is_weak = self.lives == Lives::Memory && self.trace.synchronization().is_weak();
        if tried.is_witnessed() || !is_weak || is_seen {
            return tried;
        }
        tried.or_better(match evaluator.solver().unordered(end, event) {
            Answer::Feasible(found) => evaluator.prove(found, Goal::Unordered(end, event)),
            Answer::Infeasible(_) => Tried::Refuted,
            Answer::Unknown => Tried::Unknown,
        })
    }

    fn report(&mut self, group: Evaluated<Use>) -> Option<Finding> {
        let Some(proof) = group.proof else {
            let is_open = group.open.is_some();
            *if is_open { &mut self.counts.unknown } else { &mut self.counts.refuted } += 1;
            return None;
        };
        self.counts.proven += 1;
        self.counts.unknown_writer += u64::from(proof.unknown_reads_count() > 0);
        let Info { name, kind, .. } = *self.info;
        let Use { end, event, .. } = group.candidate;
        let (message, detail) = if matches!(proof.goal(), Goal::Unordered(..)) {
            let [freed, used] = [end, event].map(|event| spelled(self.trace, event));
            let weak = too_weak(self.trace, self.mhb, event, end);
            let why =
                if weak.is_empty() { "" } else { ": the atomics between them do not synchronize" };
            let message = format!("{freed} and {used} are ordered by nothing{why}");
            (message, Detail::MemoryOrders(weak))
        } else {
            ((self.message)(self.trace, group.candidate), Detail::None)
        };
        Some(Finding::proven(name, kind, proof, message, group.count, detail))
    }
}
