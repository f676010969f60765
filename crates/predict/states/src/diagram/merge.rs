//! Merging: level after level, whatever the windows carry.
//!
//! An [`Algebra`] says what a window carries, say the number of ways in which it comes about, and
//! how that goes along the arcs to the next level.
//!
//! The order in which chains are fixed decides how many windows there are. The order given is tried
//! first. If that takes more windows than the soft limit, each level fixes the chain that leaves
//! the fewest windows, which costs as many merges as there are chains; then both again, up to the
//! hard limit.
//!
//! What does not fit is gone through in [`batches`]: as many windows of the next level as there is
//! room for, and from those on, before the rest of the level is taken. That is exact as well; equal
//! windows of different batches are not merged, which costs time. With room for one window it is a
//! walk through all states, with room for all it is the merge.

use reweave_order::poset::ChainId;

use super::limits::{Limits, Meter, Reason};
use super::number::Narrow;
use super::windows::{Arcs, Choices, Cursor, Lane, Level, Room, Space, fill};

/// What windows carry.
pub(super) trait Algebra<I> {
    /// What the windows of a level carry.
    type Carried;

    /// How many chains are left for the end.
    const LEFT: usize;

    /// What the only window carries before any chain is fixed.
    fn start(&mut self) -> Self::Carried;

    /// Whether window `node` needs to be gone on with.
    fn is_live(carried: &Self::Carried, node: usize) -> bool;

    /// What the windows of the next level carry.
    fn step(
        &mut self,
        at: Step,
        carried: &Self::Carried,
        meter: &mut Meter<'_>,
    ) -> Result<Self::Carried, Halt>;

    /// Takes windows of which at most [`Self::LEFT`] chains are not fixed. Does nothing if it
    /// fails.
    fn finish(
        &mut self,
        space: &Space<'_, I>,
        windows: (&Level<I>, &Self::Carried),
        meter: &mut Meter<'_>,
    ) -> Result<(), Halt>;

    /// About how many bytes it keeps.
    fn bytes(&self, carried: &Self::Carried) -> usize;
}

/// A chain being fixed.
pub(super) struct Step {
    /// How many were fixed before it.
    pub(super) level: usize,
    /// Which it is.
    pub(super) chain: ChainId,
    /// Where its numbers lead.
    pub(super) arcs: Arcs,
    /// To how many windows.
    pub(super) next_count: usize,
}

/// Why it did not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// A number did not fit.
    Narrow,
    /// A limit was met.
    Full(Reason),
}

impl From<Narrow> for Halt {
    fn from(_: Narrow) -> Self {
        Self::Narrow
    }
}

impl From<Reason> for Halt {
    fn from(reason: Reason) -> Self {
        Self::Full(reason)
    }
}

/// A merge that did not get to its end: the last level that it has whole.
pub(super) struct Cut<I, A: Algebra<I>> {
    pub(super) algebra: A,
    pub(super) level: Level<I>,
    pub(super) carried: A::Carried,
    pub(super) reason: Reason,
}

/// Either an end or where it was cut short; a number that did not fit if neither.
pub(super) type Merged<I, A> = Result<Result<A, Box<Cut<I, A>>>, Narrow>;

/// How the chain to be fixed next is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the order given.
    Given,
    /// The one that leaves the fewest windows.
    Fewest,
}

/// Merges all levels of `space`, whatever order of chains that takes.
pub(super) fn merge<I: Lane, A: Algebra<I>>(
    space: &Space<'_, I>,
    make: impl Fn() -> A,
    limits: &Limits,
    meter: &mut Meter<'_>,
) -> Merged<I, A> {
    let soft = limits.windows_soft.min(limits.windows_max);
    let mut deepest: Option<Box<Cut<I, A>>> = None;
    for windows_max in [soft, limits.windows_max] {
        for way in [Way::Given, Way::Fewest] {
            let room = Room { windows: windows_max, bytes: limits.bytes_max };
            let cut = match attempt(space, make(), way, room, meter)? {
                Ok(algebra) => return Ok(Ok(algebra)),
                Err(cut) => cut,
            };
            let reason = cut.reason;
            // The fewer chains are left, the less is left to do.
            if deepest.as_ref().is_none_or(|old| cut.level.places.len() < old.level.places.len()) {
                deepest = Some(cut);
            }
            if let Some(deepest) = deepest.as_mut().filter(|_| reason.is_final()) {
                deepest.reason = reason;
                break;
            }
        }
        let is_final = deepest.as_ref().is_some_and(|cut| cut.reason.is_final());
        if is_final || soft == limits.windows_max {
            break;
        }
    }
    Ok(Err(deepest.expect("there was at least one attempt, and it was cut short")))
}

fn attempt<I: Lane, A: Algebra<I>>(
    space: &Space<'_, I>,
    mut algebra: A,
    way: Way,
    room: Room,
    meter: &mut Meter<'_>,
) -> Merged<I, A> {
    let mut level = space.start();
    let mut carried = algebra.start();
    let halt = loop {
        if level.places.len() <= A::LEFT {
            match algebra.finish(space, (&level, &carried), meter) {
                Ok(()) => return Ok(Ok(algebra)),
                Err(halt) => break halt,
            }
        }
        let kept = level.bytes() + algebra.bytes(&carried);
        let room = Room { bytes: room.bytes.saturating_sub(kept), ..room };
        let chosen = choose(space, (&level, &carried, &algebra), way, room, meter);
        let (chain, next, arcs) = match chosen {
            Ok(chosen) => chosen,
            Err(reason) => break Halt::Full(reason),
        };
        let fixed = space.free.len() - level.places.len();
        let step = Step { level: fixed, chain, arcs, next_count: next.count };
        match algebra.step(step, &carried, meter) {
            Ok(next_carried) => (level, carried) = (next, next_carried),
            Err(halt) => break halt,
        }
    };
    match halt {
        Halt::Narrow => Err(Narrow),
        Halt::Full(reason) => Ok(Err(Box::new(Cut { algebra, level, carried, reason }))),
    }
}

/// Fixes one more chain of `level`: which, and what that leads to.
fn choose<I: Lane, A: Algebra<I>>(
    space: &Space<'_, I>,
    (level, carried, _): (&Level<I>, &A::Carried, &A),
    way: Way,
    mut room: Room,
    meter: &mut Meter<'_>,
) -> Result<(ChainId, Level<I>, Arcs), Reason> {
    let mut best = None;
    let mut reason = Reason::Windows;
    let tried = match way {
        Way::Given => 1,
        Way::Fewest => level.places.len(),
    };
    for at in 0..tried {
        let mut cursor = Cursor::default();
        let choices = Choices::new(space, &level.places, at);
        meter.spend(choices.work())?;
        let is_live = |node| A::is_live(carried, node);
        let (next, arcs) = fill((level, &choices), &mut cursor, room, is_live, meter)?;
        if cursor.node < level.count {
            // A trial that is no better than the best so far is no reason.
            if best.is_none() && next.count < room.windows {
                reason = Reason::Memory;
            }
            continue;
        }
        room.windows = next.count.saturating_sub(1);
        let is_least = next.count <= 1;
        best = Some((space.tables.order[level.places[at]], next, arcs));
        if is_least {
            break;
        }
    }
    best.ok_or(reason)
}

/// Windows of a level on the way through batches, and how far they were taken.
pub(super) struct Frame<I, C> {
    pub(super) level: Level<I>,
    pub(super) carried: C,
    pub(super) cursor: Cursor,
}

/// What is left when batches were ended before all was taken.
pub(super) struct Unfinished<I, A: Algebra<I>> {
    pub(super) algebra: A,
    /// The windows that were not taken whole, from their cursors on.
    pub(super) frames: Vec<Frame<I, A::Carried>>,
    pub(super) reason: Reason,
}

/// Goes on where a merge was cut short, in batches of at most so many windows as there is `room`
/// for.
pub(super) fn batches<I: Lane, A: Algebra<I>>(
    space: &Space<'_, I>,
    cut: Cut<I, A>,
    room: Room,
    meter: &mut Meter<'_>,
) -> Result<Result<A, Box<Unfinished<I, A>>>, Narrow> {
    let Cut { mut algebra, level, carried, .. } = cut;
    let chains_count = space.free.len();
    let start = chains_count - level.places.len();
    // The chains that are left are fixed in one order everywhere.
    let mut choices: Vec<Choices<I>> = Vec::new();
    let mut frames = vec![Frame { level, carried, cursor: Cursor::default() }];
    while let Some(frame) = frames.last_mut() {
        let fixed = chains_count - frame.level.places.len();
        let done = if frame.level.places.len() <= A::LEFT {
            algebra.finish(space, (&frame.level, &frame.carried), meter).map(|()| None)
        } else if frame.cursor.node == frame.level.count {
            Ok(None)
        } else {
            if choices.len() == fixed - start {
                choices.push(Choices::new(space, &frame.level.places, 0));
            }
            let chain = space.tables.order[frame.level.places[0]];
            let at = (fixed, chain, &choices[fixed - start]);
            batch(&mut algebra, frame, at, room, meter).map(Some)
        };
        match done {
            Ok(Some(next)) => frames.push(next),
            Ok(None) => drop(frames.pop()),
            Err(Halt::Narrow) => return Err(Narrow),
            Err(Halt::Full(reason)) => {
                return Ok(Err(Box::new(Unfinished { algebra, frames, reason })));
            }
        }
    }
    Ok(Ok(algebra))
}

/// The next batch of `frame`, which moves on.
fn batch<I: Lane, A: Algebra<I>>(
    algebra: &mut A,
    frame: &mut Frame<I, A::Carried>,
    (fixed, chain, choices): (usize, ChainId, &Choices<I>),
    room: Room,
    meter: &mut Meter<'_>,
) -> Result<Frame<I, A::Carried>, Halt> {
    let mut cursor = frame.cursor;
    let is_live = |node| A::is_live(&frame.carried, node);
    let (next, arcs) = fill((&frame.level, choices), &mut cursor, room, is_live, meter)?;
    let step = Step { level: fixed, chain, arcs, next_count: next.count };
    let carried = algebra.step(step, &frame.carried, meter)?;
    frame.cursor = cursor;
    Ok(Frame { level: next, carried, cursor: Cursor::default() })
}
