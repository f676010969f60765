//! Predictable use after free: which accesses can come after the free of what they access?
//!
//! A use after free is a correct reordering in which a thread frees an object and another thread then
//! accesses a part of it. In the observed run the access came first, since whatever uses the same
//! memory later is another object. What the access sees does not matter: its thread stops there.
//!
//! Candidates follow from one pass: the accesses to an object by threads other than the one that frees it,
//! but for those that the free needs ([`MustHappenBefore`]). Each is a question to the engine: can
//! the free come first? Accesses under the lock under which the object is freed are candidates, too:
//! a lock keeps the two apart but in no order.
//!
//! Uses at the same two code locations are one finding. Of the accesses of one thread at one place to one
//! object the first and the last are tried, and of such pairs at most [`TRIES_MAX`], unless all are
//! asked for.
//!
//! Sound: each finding is a schedule that the checker accepted. Complete if all are asked for, but for
//! budgets. A recorded program whose references are counted in code that was not rebuilt, such as Rust's
//! standard library as it comes, may wait for the last use out of sight; so this does not run unless
//! it is asked for. Memory that no `free` event ends is not looked at, nor are accesses that are no
//! events: what one thread alone accesses is no part of a recorded trace.
//!
//! Costs the pass and a query for each candidate. `oracle::lifetimes` is the definition.

use reweave_analysis::{
    Analysis, Counter, Counters, Coverage, Detail, Finding, Gathered, Guarantee, Info, Kind, Layer,
    Settings, Sink, Subject, spelled,
};
use reweave_base::{FxHashMap, Id, IndexVec};
use reweave_driver::{
    Driver, Evaluated, Evaluator, Group, Predictor, Reorderings, TRIES_MAX, Tried,
};
use reweave_order::mhb::MustHappenBefore;
use reweave_reorder::Query;
use reweave_trace::{After, EventId, Goal, ObjectId, ObjectOp, Op, SiteId, ThreadId, Trace, VarId};

/// How many events are gone through between two looks at whether to stop.
const STRIDE: usize = 1 << 16;

/// An access that may come after the free of what it accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The free.
    pub free: EventId,
    /// The access, which was observed before it.
    pub access: EventId,
}

/// What `subject` has of uses after free, as findings.
#[must_use]
pub fn uses(subject: &Subject<'_>, settings: &Settings) -> Vec<Finding> {
    let mut sink = Gathered::default();
    UseAfterFree.run(subject, settings, &mut sink);
    sink.findings
}

/// The candidates of a trace, by their code locations.
#[derive(Debug, Default)]
struct Candidates {
    /// Those to try at each pair of code locations, and how many there are.
    groups: Vec<(Vec<Use>, u64)>,
    /// Objects that another thread than the one that frees them accesses.
    objects_count: u64,
}

/// What threads other than the one that frees it did to an object that is live.
type Accesses = FxHashMap<(ThreadId, SiteId), Vec<EventId>>;

impl Candidates {
    fn new(driver: &mut Driver<'_, '_>) -> Self {
        let (trace, all) = (driver.trace(), driver.settings().all);
        let names = trace.names();
        let mut candidates = Self::default();
        if driver.progress(0, 1).is_break() || names.objects.is_empty() {
            return candidates;
        }
        let needs = driver.subject().engine().mhb();
        let vars = (0..names.vars.len()).map(VarId::from_index);
        let object_of: IndexVec<VarId, Option<ObjectId>> =
            vars.map(|var| names.object_of(var)).collect();
        let first_sites = names.first_sites();
        let mut live: IndexVec<ObjectId, Accesses> =
            (0..names.objects.len()).map(|_| Accesses::default()).collect();
        let mut at: FxHashMap<(SiteId, SiteId), usize> = FxHashMap::default();
        for (id, event) in trace.events() {
            if id.index().is_multiple_of(STRIDE)
                && driver.progress(id.index(), trace.len()).is_break()
            {
                break;
            }
            match event.op {
                Op::Access(_, var) => {
                    let Some(object) = object_of[var] else { continue };
                    let accesses = live[object].entry((event.thread, event.site)).or_default();
                    // The first and the last.
                    if !all && accesses.len() > 1 {
                        accesses.pop();
                    }
                    accesses.push(id);
                }
                Op::Object(ObjectOp::Free, object) => {
                    let mut late = std::mem::take(&mut live[object]);
                    late.retain(|&(thread, _), _| thread != event.thread);
                    candidates.objects_count += u64::from(!late.is_empty());
                    let mut late: Vec<EventId> = late
                        .into_values()
                        .flatten()
                        .filter(|&access| !is_needed(trace, needs, access, id))
                        .collect();
                    late.sort_unstable();
                    for access in late {
                        let sites = [access, id].map(|event| first_sites[trace.event(event).site]);
                        let at = *at.entry((sites[0], sites[1])).or_insert(candidates.groups.len());
                        candidates.add(at, Use { free: id, access }, all);
                    }
                }
                _ => {}
            }
        }
        candidates
    }

    /// Adds `candidate` to the group at `at`, or as a group of its own if `all` are asked for.
    fn add(&mut self, at: usize, candidate: Use, all: bool) {
        if all || at == self.groups.len() {
            self.groups.push((vec![candidate], 1));
            return;
        }
        let (tried, count) = &mut self.groups[at];
        *count += 1;
        if tried.len() < TRIES_MAX {
            tried.push(candidate);
        }
    }
}

/// Whether `access` happens before `free` in every reordering with that.
fn is_needed(trace: &Trace, needs: &MustHappenBefore<'_>, access: EventId, free: EventId) -> bool {
    needs.before(free).get(trace.event(access).thread) > trace.position(access)
}

/// The search for uses after free as one of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct UseAfterFree;

const INFO: Info = Info {
    name: "lifetimes.free",
    family: "lifetimes",
    kind: Kind::UseAfterFree,
    guarantee: Guarantee::Witnessed,
    needs: Layer::Events,
    is_default: false,
    summary: "memory that a thread can access after another has freed it",
    paper: "our own, after Smaragdakis et al., POPL 2012, Definition 4",
};

impl Analysis for UseAfterFree {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let mut driver = Driver::new(subject, settings, sink);
        let Candidates { groups, objects_count } = Candidates::new(&mut driver);
        let mut predictor = FreePredictor { trace: subject.trace(), counts: Counts::default() };
        let groups = groups.into_iter().map(|(tried, count)| Group::new(tried, count));
        _ = driver.prove(&mut predictor, groups);
        let counters = predictor.counts.counters(objects_count);
        driver.coverage(&INFO, counters)
    }
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

/// Asks whether the free can come first.
struct FreePredictor<'t> {
    trace: &'t Trace,
    counts: Counts,
}

impl Predictor for FreePredictor<'_> {
    type Candidate = Use;

    fn evaluate(&self, evaluator: &mut Evaluator<'_, '_>, candidate: &Use) -> Tried {
        let Use { free, access } = *candidate;
        let reads = self.trace.event(access).op.is_read();
        let chain = vec![free, access];
        let query = Query::order_up_to(&chain, reads);
        let seen = if reads { vec![access] } else { Vec::new() };
        let goal = Goal::Order { chain, absent: Vec::new(), free: seen, after: After::Stops };
        evaluator.ask([(query, goal)], Reorderings::All)
    }

    fn report(&mut self, group: Evaluated<Use>) -> Option<Finding> {
        let Some(proof) = group.proof else {
            let counter = if group.open.is_some() {
                &mut self.counts.unknown
            } else {
                &mut self.counts.refuted
            };
            *counter += 1;
            return None;
        };
        self.counts.proven += 1;
        self.counts.unknown_writer += u64::from(proof.unknown_reads_count() > 0);
        let Use { free, access } = group.candidate;
        let [freed, accessed] = [free, access].map(|event| spelled(self.trace, event));
        let names = self.trace.names();
        let thread = |event| names.threads.name(self.trace.event(event).thread);
        let (by, user) = (thread(free), thread(access));
        let message = format!("{accessed} in {user} can come after {freed} in {by}");
        let finding =
            Finding::proven(INFO.name, INFO.kind, proof, message, group.count, Detail::None);
        Some(finding)
    }
}
