//! Teams and tasks of OpenMP, as forks, joins and barriers.
//!
//! The question: the runtime says that a thread met a barrier of its team, waited for its tasks, or
//! created one that depends on something. Which events of which threads are ordered by that?
//!
//! The idea: whoever comes after the end of a task joins it. A wait joins the tasks that the thread
//! created, the end of a group those of the group, the end of a region all that is left, and a task
//! joins the earlier ones that it depends on before it does anything. A thread may be joined more
//! than once. At a barrier the tasks of the team are over too: who leaves it first joins them, and
//! all others meet that thread at a second barrier. A team has two barriers by turns: nobody is
//! at one while somebody is still to leave it.
//!
//! Tasks of a set (`mutexinoutset`) hold a lock at the address they depend on while they run.
//!
//! Promised: what is joined is over in the recording. Events are rewritten as [`Stream`] demands:
//! those that are added have the code address 0, and those that come to mean nothing stay.

use std::collections::VecDeque;
use std::io;

use reweave_base::FxHashMap;
use reweave_runtime::wire::{Event, Kind, channel, flag};

use crate::event_log::{Ending, Stream};

/// Rewrites the events of a recording one by one. See the [module](self).
#[derive(Debug, Default)]
pub struct TaskExpander {
    threads: FxHashMap<u32, Thread>,
    teams: FxHashMap<u64, Team>,
    groups: FxHashMap<u32, Vec<u32>>,
    groups_count: u32,
}

/// What is known of a thread that has to do with OpenMP.
#[derive(Debug, Default)]
struct Thread {
    /// The teams that it is a member of, or a task of, the innermost last.
    teams: Vec<Membership>,
    /// The groups that it is in, the innermost last.
    groups: Vec<u32>,
    /// The tasks that it created and did not wait for.
    children: Vec<u32>,
    /// What its tasks depend on, by address.
    dependences: FxHashMap<u64, Dependence>,
    /// The tasks that come before it, until it begins or has waited for them.
    predecessors: Vec<u32>,
    /// What it holds while it runs.
    locks: Vec<u64>,
    /// Where the program has the construct whose code the library is about to call.
    called_from: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Membership {
    team: u64,
    /// How many barriers the thread has left, or had the creator of this task.
    generation: u64,
}

#[derive(Debug, Default)]
struct Team {
    members: Vec<u32>,
    /// By generation, the tasks that its barrier ends.
    tasks: FxHashMap<u64, Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    tasks: Vec<u32>,
    departures: usize,
}

/// The tasks that a new one that depends on an address may come after.
#[derive(Debug, Default)]
struct Dependence {
    writer: Option<u32>,
    set: Vec<u32>,
    readers: Vec<u32>,
}

impl Dependence {
    /// The tasks that one with `flags` comes after; adds `task`.
    fn add(&mut self, task: Option<u32>, flags: u16) -> Vec<u32> {
        let is_set = flags & flag::SET != 0;
        let writes = flags & flag::OUT != 0;
        let mut before: Vec<u32> = self.writer.into_iter().collect();
        if !is_set {
            before.extend(&self.set);
        }
        if is_set || writes {
            before.extend(&self.readers);
        }
        let Some(task) = task else { return before };
        if writes {
            *self = Self { writer: Some(task), ..Self::default() };
        } else if is_set {
            self.set.push(task);
        } else {
            self.readers.push(task);
        }
        before
    }
}

/// An event of our own.
const fn added(kind: Kind, address: u64) -> Event {
    Event::new(kind, address, 0)
}

/// The join of a thread that others may join too.
fn join(thread: u32) -> Event {
    Event { flags: flag::TASK, ..added(Kind::Join, u64::from(thread)) }
}

/// The barrier of `team` for `generation`: its own, or that after it.
fn barrier(team: u64, generation: u64, is_second: bool) -> u64 {
    channel::openmp(team << 2 | (generation & 1) << 1 | u64::from(is_second))
}

impl TaskExpander {
    /// Calls `out` with the events that `event` of `thread` comes to, at least one.
    pub fn rewrite(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let nothing = Event { kind: Kind::Nothing, extra: None, flags: 0, ..event };
        match event.kind {
            Kind::Enter if !self.threads.is_empty() => {
                let state = self.threads.get_mut(&thread);
                let called_from = state.and_then(|state| state.called_from.take());
                out(thread, Event { address: called_from.unwrap_or(event.address), ..event });
            }
            Kind::Fork if event.flags & (flag::MEMBER | flag::TASK) != 0 => {
                out(thread, event);
                self.fork(thread, &event);
            }
            Kind::Begin => {
                out(thread, event);
                self.begin(thread, out);
            }
            Kind::End => self.end(thread, event, out),
            Kind::TeamBegin => {
                out(thread, nothing);
                let membership = Membership { team: event.address, generation: 0 };
                let state = self.threads.entry(thread).or_default();
                state.teams.push(membership);
                state.called_from = Some(event.code);
            }
            Kind::TeamEnd => {
                out(thread, nothing);
                self.end_team(thread, out);
            }
            Kind::TeamArrive | Kind::TeamDepart => self.pass_barrier(thread, event, out),
            Kind::Depend => {
                out(thread, nothing);
                self.depend(thread, &event);
            }
            Kind::TaskWait => {
                out(thread, nothing);
                let state = self.threads.entry(thread).or_default();
                let tasks = match event.flags & flag::OUT {
                    0 => &mut state.children,
                    _ => &mut state.predecessors,
                };
                std::mem::take(tasks).into_iter().for_each(|task| out(thread, join(task)));
            }
            Kind::GroupBegin => {
                out(thread, nothing);
                self.groups_count += 1;
                self.groups.insert(self.groups_count, Vec::new());
                self.threads.entry(thread).or_default().groups.push(self.groups_count);
            }
            Kind::GroupEnd => {
                out(thread, nothing);
                let group = self.threads.entry(thread).or_default().groups.pop();
                let tasks = group.and_then(|group| self.groups.remove(&group));
                tasks.into_iter().flatten().for_each(|task| out(thread, join(task)));
            }
            _ => out(thread, event),
        }
    }

    fn fork(&mut self, parent: u32, event: &Event) {
        let (child, flags) = (event.address as u32, event.flags);
        let creator = self.threads.entry(parent).or_default();
        let membership = creator.teams.last().copied();
        let group = creator.groups.last().copied();
        let mut state = Thread { called_from: Some(event.code), ..Thread::default() };
        if flags & flag::MEMBER != 0 {
            state.teams.extend(membership);
            if let Some(Membership { team, .. }) = membership {
                self.teams.entry(team).or_default().members.push(child);
            }
        } else {
            creator.children.push(child);
            state.teams.extend(membership);
            state.groups.extend(group);
            if let Some(Membership { team, generation }) = membership {
                let team = self.teams.entry(team).or_default();
                team.tasks.entry(generation).or_default().tasks.push(child);
            }
            if let Some(tasks) = group.and_then(|group| self.groups.get_mut(&group)) {
                tasks.push(child);
            }
        }
        self.threads.insert(child, state);
    }

    /// A task joins what it comes after, and takes what it must hold.
    fn begin(&mut self, thread: u32, out: &mut impl FnMut(u32, Event)) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        for task in std::mem::take(&mut state.predecessors) {
            out(thread, join(task));
        }
        state.locks.sort_unstable();
        state.locks.dedup();
        for &lock in &state.locks {
            out(thread, Event { flags: flag::TRY, ..added(Kind::Lock, lock) });
        }
    }

    fn end(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let locks = self.threads.remove(&thread).unwrap_or_default().locks;
        if locks.is_empty() {
            return out(thread, event);
        }
        // What was stored last is said by the next event of the thread.
        out(thread, Event { kind: Kind::Nothing, ..event });
        for lock in locks {
            out(thread, added(Kind::Unlock, lock));
        }
        out(thread, Event { stored: None, number: None, code: 0, ..event });
    }

    fn end_team(&mut self, thread: u32, out: &mut impl FnMut(u32, Event)) {
        let state = self.threads.entry(thread).or_default();
        let Some(Membership { team, .. }) = state.teams.pop() else { return };
        let Team { members, tasks } = self.teams.remove(&team).unwrap_or_default();
        members.into_iter().for_each(|member| out(thread, join(member)));
        let mut tasks: Vec<u32> = tasks.into_values().flat_map(|tasks| tasks.tasks).collect();
        tasks.sort_unstable();
        for &task in &tasks {
            out(thread, join(task));
        }
        state.children.retain(|child| tasks.binary_search(child).is_err());
    }

    fn pass_barrier(&mut self, thread: u32, event: Event, out: &mut impl FnMut(u32, Event)) {
        let state = self.threads.entry(thread).or_default();
        let nothing = Event { kind: Kind::Nothing, flags: 0, ..event };
        // A thread outside of any region is a team of its own.
        let Some(Membership { team, generation }) = state.teams.last_mut() else {
            return out(thread, nothing);
        };
        let address = barrier(*team, *generation, false);
        if event.kind == Kind::TeamArrive {
            return out(thread, Event { kind: Kind::BarrierArrive, address, ..event });
        }
        if event.flags & flag::CANCELLED != 0 {
            // It did not wait. Only the end of the region comes now.
            return out(thread, nothing);
        }
        out(thread, Event { kind: Kind::BarrierDepart, address, ..event });
        let ended = *generation;
        *generation += 1;
        let second = barrier(*team, ended, true);
        let Some(team) = self.teams.get_mut(team) else { return };
        let Some(tasks) = team.tasks.get_mut(&ended) else { return };
        if tasks.departures == 0 {
            for &task in &tasks.tasks {
                out(thread, join(task));
            }
        }
        tasks.departures += 1;
        if tasks.departures > team.members.len() {
            team.tasks.remove(&ended);
        }
        out(thread, added(Kind::BarrierArrive, second));
        out(thread, added(Kind::BarrierDepart, second));
    }

    fn depend(&mut self, thread: u32, event: &Event) {
        let task = event.extra.map(|task| task as u32);
        let creator = self.threads.entry(thread).or_default();
        let dependence = creator.dependences.entry(event.address).or_default();
        let before = dependence.add(task, event.flags);
        let Some(task) = task else { return creator.predecessors.extend(before) };
        let Some(state) = self.threads.get_mut(&task) else { return };
        state.predecessors.extend(before.into_iter().filter(|&before| before != task));
        if event.flags & flag::SET != 0 {
            state.locks.push(event.address);
        }
    }
}

/// A recording in which teams and tasks are threads like all others.
pub struct WithTasks<S> {
    inner: S,
    expander: TaskExpander,
    queue: VecDeque<(u32, Event)>,
}

impl<S: Stream> WithTasks<S> {
    /// Rewrites the events of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, expander: TaskExpander::default(), queue: VecDeque::new() }
    }
}

impl<S: Stream> Stream for WithTasks<S> {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            let Some((thread, event)) = self.inner.next_event()? else { return Ok(None) };
            let queue = &mut self.queue;
            self.expander
                .rewrite(thread, event, &mut |thread, event| queue.push_back((thread, event)));
        }
    }

    fn ending(&self) -> Option<Ending> {
        self.inner.ending()
    }
}

#[cfg(test)]
mod tests;
