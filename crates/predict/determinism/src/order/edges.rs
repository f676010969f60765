//! The edges between threads that every graph of a trace has: what program order and sections leave
//! out.
//!
//! Couples are among them. Of the reads of one write by one thread only the first needs an edge,
//! and the second, in place of the first should that be broken. A couple is *loose* if its writer
//! does not come before its read by other edges, so that some reordering may break it.
//!
//! All arrivals of a barrier's round come before all that wait for it: they are kept as a *hub*
//! between the ones and the others, not pair by pair.
//!
//! Linear in the events.

use reweave_base::{CsrTable, FxHashMap, Id, IndexVec};
use reweave_order::mhb::MustHappenBefore;
use reweave_trace::views::RoundId;
use reweave_trace::{EventId, Op, ThreadId, Trace, VarId};

use super::ground::{Point, SegmentId};

reweave_base::id! {
    /// A round of a barrier, as far as somebody waited for it.
    pub(super) struct HubId;
}

/// Edges as pairs of events.
#[derive(Debug)]
pub(super) struct Links {
    /// The tail of each edge and its head.
    pub(super) pairs: Vec<(EventId, EventId)>,
    /// For each event whether it is a read in a couple of two threads that some reordering may
    /// break.
    pub(super) is_loose: IndexVec<EventId, bool>,
    /// Who arrived.
    tails: Vec<(HubId, EventId)>,
    /// Who waited for them.
    pub(super) heads: Vec<(HubId, EventId)>,
    hubs_count: usize,
}

impl Links {
    pub(super) fn new(trace: &Trace, needs: &MustHappenBefore<'_>) -> Self {
        let mut links = Self {
            pairs: Vec::new(),
            is_loose: IndexVec::from_elem(false, trace.len()),
            tails: Vec::new(),
            heads: Vec::new(),
            hubs_count: 0,
        };
        let mut hubs: FxHashMap<RoundId, HubId> = FxHashMap::default();
        // What each thread read last of each variable, and how often.
        let mut seen: FxHashMap<(ThreadId, VarId), (EventId, u32)> = FxHashMap::default();
        for (id, event) in trace.events() {
            let is_other = |tail: EventId| trace.event(tail).thread != event.thread;
            let pairs = &mut links.pairs;
            let mut add = |tail: EventId| pairs.extend(is_other(tail).then_some((tail, id)));
            if trace.position(id) == 0 {
                trace.lifetime(event.thread).fork.into_iter().for_each(&mut add);
            }
            if matches!(event.op, Op::Barrier(..)) {
                links.wait(trace, id, &mut hubs);
                continue;
            }
            needs.for_each_signal(id, add);
            let (Some(writer), Some(var)) = (trace.writer(id), event.op.var()) else { continue };
            if !is_other(writer) {
                continue;
            }
            let (last, count) = seen.entry((event.thread, var)).or_insert((writer, 0));
            *count = if *last == writer { *count + 1 } else { 1 };
            *last = writer;
            if *count <= 2 {
                links.pairs.push((writer, id));
                let before = needs.before(id).get(trace.event(writer).thread);
                links.is_loose[id] = before <= trace.position(writer);
            }
        }
        links
    }

    /// Adds the edges into `head`, which arrives or departs.
    fn wait(&mut self, trace: &Trace, head: EventId, hubs: &mut FxHashMap<RoundId, HubId>) {
        let signals = trace.signals();
        let Some(round) = signals.needed_round(head) else { return };
        let hub = *hubs.entry(round).or_insert_with(|| {
            let hub = HubId::from_index(self.hubs_count);
            self.hubs_count += 1;
            self.tails.extend(signals.round(round).arrivals.iter().map(|&tail| (hub, tail)));
            hub
        });
        self.heads.push((hub, head));
    }
}

/// Edges by where they start and where they end.
#[derive(Debug)]
pub(super) struct Edges {
    /// By the segment of their tail: its position, and the head.
    pub(super) from: CsrTable<SegmentId, (u32, SegmentId)>,
    /// By their head.
    pub(super) into: CsrTable<SegmentId, Point>,
    /// The hubs that a segment arrives at, and the position of the arrival.
    pub(super) hubs_from: CsrTable<SegmentId, (u32, HubId)>,
    /// The hubs that a segment waits for.
    pub(super) hubs_into: CsrTable<SegmentId, HubId>,
    pub(super) tails: CsrTable<HubId, Point>,
    pub(super) heads: CsrTable<HubId, SegmentId>,
}

impl Edges {
    /// None yet.
    pub(super) fn none() -> Self {
        let segment = SegmentId::from_index(0);
        let hub = HubId::from_index(0);
        let point = Point { thread: ThreadId::from_index(0), position: 0 };
        Self {
            from: CsrTable::group(0, (0, segment), std::iter::empty),
            into: CsrTable::group(0, point, std::iter::empty),
            hubs_from: CsrTable::group(0, (0, hub), std::iter::empty),
            hubs_into: CsrTable::group(0, hub, std::iter::empty),
            tails: CsrTable::group(0, point, std::iter::empty),
            heads: CsrTable::group(0, segment, std::iter::empty),
        }
    }

    /// Those of `links`, each event being at some point, in one of `count` segments.
    pub(super) fn new(
        links: &Links,
        count: usize,
        place: impl Fn(EventId) -> (Point, SegmentId),
    ) -> Self {
        let hubs_count = links.hubs_count;
        let (segment, hub) = (SegmentId::from_index(0), HubId::from_index(0));
        let point = Point { thread: ThreadId::from_index(0), position: 0 };
        let pairs = || links.pairs.iter().map(|&(tail, head)| (place(tail), place(head)));
        let tails = || links.tails.iter().map(|&(hub, tail)| (hub, place(tail)));
        let heads = || links.heads.iter().map(|&(hub, head)| (hub, place(head).1));
        Self {
            from: CsrTable::group(count, (0, segment), || {
                pairs().map(|((tail, from), (_, head))| (from, (tail.position, head)))
            }),
            into: CsrTable::group(count, point, || {
                pairs().map(|((tail, _), (_, head))| (head, tail))
            }),
            hubs_from: CsrTable::group(count, (0, hub), || {
                tails().map(|(hub, (tail, from))| (from, (tail.position, hub)))
            }),
            hubs_into: CsrTable::group(count, hub, || heads().map(|(hub, head)| (head, hub))),
            tails: CsrTable::group(hubs_count, point, || {
                tails().map(|(hub, (tail, _))| (hub, tail))
            }),
            heads: CsrTable::group(hubs_count, segment, heads),
        }
    }
}
