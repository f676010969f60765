//! What was decided, by the code location of the read and what it reads; and which writes the reads there really see.
//!
//! For each location of reads of one variable that can see another write, a few instances of each location of
//! such writes are kept, to be proven. Going through all feasible witnesses would take too long
//! where there are hundreds of millions; after [`LOOKS_MAX`] of them only the last of each range is
//! looked at, and the counts of locations are lower bounds.
//!
//! A feasible witness says that some other write comes between; what the read then sees may be yet
//! another one, of which the same run then shows a witness of the same kind. So for each location of
//! writes the engine is asked for a run that shows a witness, with the read last, and what the read
//! sees in it is what the finding shows. Locations that no such run shows are asked for by name,
//! a few a group. The checker has to accept every run.

use reweave_analysis::{
    Alternative, Class, Detail, Evidence, Finding, Identities, Info, Nondeterminism, Proof,
    Subject, spelled,
};
use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_driver::Evaluator;
use reweave_reorder::{Answer, Budget, Query};
use reweave_trace::views::Mode as LockMode;
use reweave_trace::{AccessOp, After, EventId, Goal, Op, Reordering, SiteId, Trace};

use crate::accesses::{Accesses, ReadsFrom};
use crate::values::Values;
use crate::verdicts::{ReadVerdicts, WriteRanges};
use crate::witness::{Mode, WitnessKind};

/// How many instances of a write's location are kept.
const TRIES_MAX: usize = 2;

/// How many locations of writes a group tells apart.
const WRITES_MAX: usize = 16;

/// How many groups there are at most.
pub(crate) const GROUPS_MAX: usize = 100_000;

/// How many feasible witnesses are gone through one by one.
const LOOKS_MAX: u64 = 20_000_000;

/// Reads of one variable at one code location, or at the end of the run, that can see other writes.
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
    pub(crate) tries: Vec<(ReadsFrom, Option<EventId>)>,
}

/// What distinguishes groups: the location of a read, or for reads at the end of the run, that of the write that they
/// saw; and what is read. A helper may be handed different variables.
type Key = (bool, Option<SiteId>, Class);

/// All groups, in the order in which they were first met.
#[derive(Debug)]
pub(crate) struct Groups<'a, 't> {
    accesses: &'a Accesses<'t>,
    trace: &'t Trace,
    identities: Identities<'t>,
    locations: IndexVec<SiteId, SiteId>,
    group_of: FxHashMap<Key, usize>,
    pub(crate) groups: Vec<Group>,
    looks_left: u64,
    /// Whether reads of one variable at one location make a group, or each read does.
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
            identities: Identities::new(trace),
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
    pub(crate) fn add(&mut self, reader: &ReadsFrom, verdicts: &ReadVerdicts) {
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
    fn gather(
        &mut self,
        reader: &ReadsFrom,
        seen: &WriteRanges,
        writes: &mut Vec<Option<EventId>>,
    ) {
        let lists = self.accesses.lists(reader.var);
        for (list, range) in &seen.ranges {
            let all = self.accesses.writes(&lists[*list as usize]);
            let all = &all[range.start as usize..range.end as usize];
            // The last one is what the read sees most easily.
            let from = if all.len() as u64 <= self.looks_left { 0 } else { all.len() - 1 };
            self.looks_left = self.looks_left.saturating_sub((all.len() - from) as u64);
            writes.extend(all[from..].iter().copied().map(Some));
        }
    }

    /// The group of `reader`, unless there are too many.
    fn group(&mut self, reader: &ReadsFrom) -> Option<usize> {
        let location = |event: EventId| self.locations[self.trace.event(event).site];
        let class = self.identities.class_of(Op::Access(AccessOp::Read, reader.var));
        let key = match reader.read {
            Some(read) => (true, Some(location(read)), class),
            None => (false, reader.writer.map(location), class),
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
    fn add(&mut self, site: Option<SiteId>, reader: &ReadsFrom, write: Option<EventId>) {
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

/// A write that a read was shown to see.
struct Shown {
    reader: ReadsFrom,
    alternative: Alternative,
    proof: Proof,
}

/// All writes that the reads of a group were shown to see, one for each code location.
struct AllShown<'t> {
    trace: &'t Trace,
    all: Vec<Shown>,
    /// Whether any was shown, kept or not.
    is_proven: bool,
}

impl AllShown<'_> {
    /// The one at the location of `write`.
    fn at(&mut self, write: Option<EventId>) -> Option<&mut Shown> {
        let trace = self.trace;
        let mut all = self.all.iter_mut();
        all.find(|shown| is_same_place(trace, shown.alternative.write, write))
    }

    fn has(&mut self, write: Option<EventId>) -> bool {
        self.at(write).is_some()
    }

    /// Notes that there are `count` instances of `write`.
    fn count(&mut self, write: Option<EventId>, count: u64) {
        if let Some(shown) = self.at(write) {
            shown.alternative.count = count;
        }
    }
}

/// Proves what groups stand for.
pub(crate) struct GroupEvaluator<'a, 't> {
    info: &'static Info,
    mode: Mode,
    accesses: &'a Accesses<'t>,
    evaluator: Evaluator<'a, 't>,
    values: &'a Values<'t>,
    /// Whether to leave out writes that would give the same value.
    differing_values: bool,
}

/// How many locations of writes of a group are asked for by name.
const NAMED_MAX: usize = 4;

impl<'a, 't> GroupEvaluator<'a, 't> {
    pub(crate) fn new(
        info: &'static Info,
        mode: Mode,
        subject: &'a Subject<'t>,
        accesses: &'a Accesses<'t>,
        values: &'a Values<'t>,
        differing_values: bool,
    ) -> Self {
        let evaluator = Evaluator::new(subject, Budget::default());
        Self { info, mode, accesses, evaluator, values, differing_values }
    }

    fn trace(&self) -> &'t Trace {
        self.evaluator.trace()
    }

    /// The finding that `group` is, none if nothing is left of it, and the work that it took: at most
    /// `work` for each query. If it is to be a best effort, one write is enough.
    pub(crate) fn evaluate(
        &mut self,
        group: &Group,
        work: u64,
        is_best_effort: bool,
    ) -> (Option<Finding>, u64) {
        self.evaluator.solver().limit(work);
        let mut shown = AllShown { trace: self.trace(), all: Vec::new(), is_proven: false };
        let mut missing: Vec<&Write> = Vec::new();
        for write in &group.writes {
            if is_best_effort && !shown.all.is_empty() {
                break;
            }
            for &(reader, interfering) in &write.tries {
                if shown.has(interfering) {
                    break;
                }
                if let Some((proof, seen)) = self.prove(&reader, interfering) {
                    self.add(&mut shown, &reader, seen, proof);
                }
            }
            if !shown.has(write.tries[0].1) {
                missing.push(write);
            }
        }
        // What a run for the asking does not show is asked for by name, as long as it is not much.
        for write in missing.into_iter().take(if is_best_effort { 0 } else { NAMED_MAX }) {
            let (reader, interfering) = write.tries[0];
            if let Some(proof) = self.prove_named(&reader, interfering) {
                self.add(&mut shown, &reader, interfering, proof);
            }
        }
        for write in &group.writes {
            shown.count(write.tries[0].1, write.count);
        }
        let finding = match (shown.all.is_empty(), shown.is_proven) {
            (false, _) => Some(self.finding(group, shown.all)),
            // What was proven gives the same value.
            (true, true) => None,
            (true, false) => {
                let (reader, interfering) = group.writes[0].tries[0];
                Some(self.unproven(group, &reader, interfering))
            }
        };
        (finding, self.evaluator.take_work())
    }

    /// Adds to `shown` that `reader` sees `write`, unless that would give the same value and is
    /// left out.
    fn add(
        &mut self,
        shown: &mut AllShown<'t>,
        reader: &ReadsFrom,
        write: Option<EventId>,
        proof: Proof,
    ) {
        shown.is_proven = true;
        let changes_value = self.values.changes(reader, write);
        if shown.has(write) || self.differing_values && changes_value == Some(false) {
            return;
        }
        let is_race_free = self.is_race_free(reader, write);
        let alternative =
            Alternative { write, read: reader.read, count: 1, is_race_free, changes_value };
        shown.all.push(Shown { reader: *reader, alternative, proof });
    }

    /// A run that shows a witness of `reader` and `interfering`, and what the read sees in it: that
    /// may be yet another write, of which the run then shows a witness.
    fn prove(
        &mut self,
        reader: &ReadsFrom,
        interfering: Option<EventId>,
    ) -> Option<(Proof, Option<EventId>)> {
        let Some(read) = reader.read else {
            return self.prove_final(reader.writer?, interfering?);
        };
        let (writer, enabled) = (reader.writer, vec![read]);
        let must: Vec<EventId> = interfering.into_iter().collect();
        let absent = writer.into_iter().collect();
        let without = Query { must, absent, enabled: enabled.clone(), ..Query::default() };
        let order = writer.zip(interfering).into_iter().collect();
        let between = Query { order, enabled, ..Query::default() };
        for query in [without, between] {
            let Answer::Feasible(mut run) = self.evaluator.solver().solve(&query) else { continue };
            run.schedule.push(read);
            let write = self.trace().last_write(&run, reader.var, Some(read));
            let goal = Goal::Sees { read, write, after: After::Stops };
            // The checker refuses a read that sees what it saw.
            if let Some(proof) = self.evaluator.prove(run, goal).proof() {
                return Some((proof, write));
            }
        }
        None
    }

    /// A run in which the read of `reader` sees `interfering`.
    fn prove_named(&mut self, reader: &ReadsFrom, interfering: Option<EventId>) -> Option<Proof> {
        let read = reader.read?;
        if self.is_overwritten(reader, read, interfering) {
            return None;
        }
        let Answer::Feasible(run) = self.evaluator.solver().solve(&Query::sees(read, interfering))
        else {
            return None;
        };
        let goal = Goal::Sees { read, write: interfering, after: After::Stops };
        self.evaluator.prove(run, goal).proof()
    }

    /// Whether another write has to come between `interfering` and `read`.
    fn is_overwritten(
        &self,
        reader: &ReadsFrom,
        read: EventId,
        interfering: Option<EventId>,
    ) -> bool {
        let (trace, needs) = (self.trace(), self.evaluator.subject().engine().mhb());
        let before = needs.before(read);
        self.accesses.lists(reader.var).iter().any(|list| {
            let needed = before.get(list.thread);
            let writes = self.accesses.writes(list);
            let count = writes.partition_point(|&write| trace.position(write) < needed);
            let last = writes[..count].last().filter(|&&last| Some(last) != interfering);
            last.is_some_and(|&last| {
                interfering.is_none_or(|interfering| {
                    let thread = trace.event(interfering).thread;
                    needs.past(last).get(thread) > trace.position(interfering)
                })
            })
        })
    }

    /// A run of all events in which `interfering` comes after `writer`, and what comes last.
    fn prove_final(
        &mut self,
        writer: EventId,
        interfering: EventId,
    ) -> Option<(Proof, Option<EventId>)> {
        let trace = self.trace();
        let must = self.accesses.last_events();
        let var = trace.event(writer).op.var()?;
        let order = vec![(writer, interfering)];
        let Answer::Feasible(run) =
            self.evaluator.solver().solve(&Query { must, order, ..Query::default() })
        else {
            return None;
        };
        let last = trace.last_write(&run, var, None)?;
        let goal = Goal::Leaves { var, write: last };
        self.evaluator.prove(run, goal).proof().map(|proof| (proof, Some(last)))
    }

    /// Whether no two of what the read saw, what it sees and itself can be next at once and mind;
    /// none if that is not known.
    fn is_race_free(&mut self, reader: &ReadsFrom, write: Option<EventId>) -> Option<bool> {
        let mut is_known = true;
        let pairs = [(reader.read, reader.writer), (reader.read, write), (reader.writer, write)];
        for (one, other) in pairs.into_iter().filter_map(|(one, other)| one.zip(other)) {
            match self.can_race(one, other) {
                Some(true) => return Some(false),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(true)
    }

    fn can_race(&mut self, one: EventId, other: EventId) -> Option<bool> {
        let trace = self.trace();
        let (left, right) = (trace.event(one), trace.event(other));
        let is_quiet = !left.op.conflicts_with(right.op)
            || left.thread == right.thread
            || self.share_a_lock(one, other);
        if is_quiet {
            return Some(false);
        }
        match self.evaluator.solver().solve(&Query::enabled(&[one, other])) {
            Answer::Feasible(_) => Some(true),
            Answer::Infeasible(_) => Some(false),
            Answer::Unknown => None,
        }
    }

    /// Whether both happen inside sections of a lock that exclude each other.
    fn share_a_lock(&self, left: EventId, right: EventId) -> bool {
        let (trace, sections) = (self.trace(), self.trace().sections());
        let held = |event: EventId| sections.held(trace.event(event).thread, event);
        held(left).any(|one| {
            held(right).any(|other| {
                one.lock == other.lock
                    && (one.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive)
            })
        })
    }

    fn finding(&self, group: &Group, mut shown: Vec<Shown>) -> Finding {
        // The worst is shown; of equals the first.
        shown.sort_by_key(|shown| shown.alternative.rank());
        let mut all = shown.into_iter();
        let first = all.next().expect("there is one");
        let Shown { reader, alternative, proof } = first;
        let others: Vec<Alternative> = all.map(|shown| shown.alternative).collect();
        let kind = kind_of(self.trace(), &reader, proof.reordering());
        let detail = self.detail(&reader, &alternative, kind, others);
        self.made(group, Evidence::Schedule(proof), detail)
    }

    /// What the order of events allows, but no correct reordering was found for.
    fn unproven(&self, group: &Group, reader: &ReadsFrom, write: Option<EventId>) -> Finding {
        let alternative = Alternative {
            write,
            read: reader.read,
            count: group.count,
            is_race_free: None,
            changes_value: self.values.changes(reader, write),
        };
        let detail = self.detail(reader, &alternative, WitnessKind::Between, Vec::new());
        self.made(group, Evidence::Unordered, detail)
    }

    fn detail(
        &self,
        reader: &ReadsFrom,
        alternative: &Alternative,
        kind: WitnessKind,
        others: Vec<Alternative>,
    ) -> Nondeterminism {
        Nondeterminism {
            witness_kind: kind.number(),
            mode: self.mode.as_str(),
            writer: reader.writer,
            read: reader.read,
            interfering: alternative.write,
            count: alternative.count,
            is_race_free: alternative.is_race_free,
            changes_value: alternative.changes_value,
            others,
        }
    }

    fn made(&self, group: &Group, evidence: Evidence, detail: Nondeterminism) -> Finding {
        let trace = self.trace();
        let Nondeterminism { writer, read, interfering, .. } = detail;
        let named = |event: Option<EventId>| {
            event.map_or_else(|| "the initial value".to_owned(), |event| spelled(trace, event))
        };
        let var = writer.and_then(|writer| trace.event(writer).op.var());
        let var = var.map_or("", |var| trace.names().vars.name(var));
        let (saw, sees) = (named(writer), named(interfering));
        let message = match (read, &evidence) {
            (Some(read), Evidence::Schedule(_)) => {
                format!("{} saw {saw}; it can see {sees} instead", spelled(trace, read))
            }
            (Some(read), _) => format!(
                "{} saw {saw}; by the order of events alone it could see {sees}, but no correct run was \
                 found in which it sees another write",
                spelled(trace, read)
            ),
            (None, Evidence::Schedule(_)) => {
                format!("`{var}` was last written by {saw}; it can be {sees} instead")
            }
            (None, _) => format!(
                "`{var}` was last written by {saw}; {sees} could come after it, but no correct run \
                 was found that ends with another write"
            ),
        };
        Finding {
            analysis: self.info.name,
            kind: self.info.kind,
            // Those that the goal of a proof names.
            events: [interfering, read].into_iter().flatten().collect(),
            message,
            count: group.count,
            evidence,
            detail: Detail::Nondeterminism(Box::new(detail)),
        }
    }
}

/// Whether two writes are at the same code location, or both the initial value.
fn is_same_place(trace: &Trace, left: Option<EventId>, right: Option<EventId>) -> bool {
    let location =
        |write: Option<EventId>| write.map(|write| trace.names().location(trace.event(write).site));
    location(left) == location(right)
}

/// How `run` breaks the reads-from edge of `reader`.
fn kind_of(trace: &Trace, reader: &ReadsFrom, run: &Reordering) -> WitnessKind {
    let (Some(read), Some(writer)) = (reader.read, reader.writer) else {
        return WitnessKind::Between;
    };
    let place = |event: EventId| match trace.is_in_prefix(run, event) {
        true => Some((0, event.index())),
        false => run.schedule.iter().position(|&other| other == event).map(|at| (1, at)),
    };
    match place(writer) {
        None => WitnessKind::WriterAbsent,
        Some(wrote) if Some(wrote) < place(read) => WitnessKind::Between,
        Some(_) => WitnessKind::WriterAfter,
    }
}
