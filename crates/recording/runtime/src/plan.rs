//! What replay is to do: the plan that a recorded program reads when it is to run one schedule.
//!
//! A thread is named by who created it: entry `i` of the thread table is the `child`-th thread,
//! counted from 0, that the thread of entry `parent` created; entry 0 is the main thread. A
//! [`Waypoint`] is a moment in a thread: that it logs its `occurrence`-th event, counted from 0,
//! with one code address. All events count that have a code address, so not the single words.
//!
//! The steps come one after the other. Each names a thread that runs alone until it has done the
//! event of its waypoint, that is, until it comes to its next event or waits; then the next step
//! begins, perhaps of the same thread. If the thread of a step waits for others, say for the end of
//! one, those may go on for which no later step or goal is left. After the last step the goal
//! decides, whose threads go on until they get there:
//!
//! | kind | what is to hold |
//! | --- | --- |
//! | [`GoalKind::Together`] | each thread of the goal stands right before its event, all at once |
//! | [`GoalKind::Blocked`] | each waits for a lock that the thread of the next one holds |
//! | [`GoalKind::Passed`] | all steps are done |
//!
//! [`Pair`]s name two moments, the events of which must be accesses to overlapping addresses: of
//! the goal for `Together`, of the steps for `Passed`. The event of a `Blocked` goal is the one that
//! would log that the lock was taken; its request has the same code address and came before.
//!
//! A plan is a sequence of words, in this order: six of a head, one for each thread, one for each
//! module, two for each code address, two for each step, two for each goal, one for each pair, then
//! the bytes of all module paths. [`Parts::encode`] writes it; [`Plan::new`] looks at all of it once,
//! and from then on nothing that is asked of it fails. Neither allocates.

/// The first word of a plan: its name and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"rwplan\0\x01");

const HEAD_WORDS: usize = 6;

/// A thread, by who created it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The entry of the thread that created it, which comes before its own; 0 for the first.
    pub parent: u32,
    /// The how many-th thread that this was of its parent, from 0.
    pub child: u32,
}

/// A code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// Which module.
    pub module: u32,
    /// Where in its file.
    pub offset: u64,
}

/// A moment of a thread: its `occurrence`-th event, from 0, at `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waypoint {
    /// The entry of the thread.
    pub thread: u32,
    /// The number of the code address.
    pub code: u32,
    /// How many events the thread logged there before.
    pub occurrence: u32,
}

/// Two accesses whose addresses must overlap: places in the list of goals or of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The one.
    pub first: u32,
    /// The other.
    pub second: u32,
}

/// What is to hold after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum GoalKind {
    /// The threads of the goal are right before its events.
    Together,
    /// The threads of the goal wait for locks of each other.
    Blocked,
    /// All steps are done.
    Passed,
}

impl GoalKind {
    /// Every kind, by its number.
    pub const ALL: [Self; 3] = [Self::Together, Self::Blocked, Self::Passed];
}

/// What a plan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The threads, the main thread first, parents before children.
    pub threads: &'a [Thread],
    /// The paths of the files that code addresses are in.
    pub modules: &'a [&'a [u8]],
    /// The code addresses.
    pub codes: &'a [Code],
    /// The steps, in this order.
    pub steps: &'a [Waypoint],
    /// What is to hold after them.
    pub goal_kind: GoalKind,
    /// Of which moments.
    pub goals: &'a [Waypoint],
    /// Which accesses must overlap: two goals for `Together`, two steps for `Passed`.
    pub pairs: &'a [Pair],
}

const fn joined(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn split(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

impl Parts<'_> {
    /// Hands the words of the plan to `put`, one after the other. Whether they make sense is for
    /// [`Plan::new`] to say.
    pub fn encode(&self, put: &mut dyn FnMut(u64)) {
        let count = |length: usize| length as u32;
        put(MAGIC);
        put(self.bytes_count());
        put(joined(count(self.threads.len()), count(self.modules.len())));
        put(joined(count(self.codes.len()), count(self.steps.len())));
        put(joined(count(self.goals.len()), count(self.pairs.len())));
        put(self.goal_kind as u64);
        self.threads.iter().for_each(|thread| put(joined(thread.parent, thread.child)));
        let mut start = 0;
        for path in self.modules {
            put(joined(start, count(path.len())));
            start = start.wrapping_add(count(path.len()));
        }
        for code in self.codes {
            put(u64::from(code.module));
            put(code.offset);
        }
        for waypoint in self.steps.iter().chain(self.goals) {
            put(joined(waypoint.thread, waypoint.code));
            put(u64::from(waypoint.occurrence));
        }
        self.pairs.iter().for_each(|pair| put(joined(pair.first, pair.second)));
        let (mut word, mut filled) = (0, 0);
        for &byte in self.modules.iter().copied().flatten() {
            word |= u64::from(byte) << (8 * filled);
            filled += 1;
            if filled == 8 {
                put(word);
                (word, filled) = (0, 0);
            }
        }
        if filled > 0 {
            put(word);
        }
    }

    /// How many bytes the paths take.
    fn bytes_count(&self) -> u64 {
        self.modules.iter().map(|path| path.len() as u64).sum()
    }
}

/// Why words are no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// They do not start as a plan of this version does.
    Magic,
    /// There are fewer or more of them than the head says.
    Length,
    /// Something names what is not there.
    Range,
}

/// A plan, in the words that it was written in.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    threads: &'a [u64],
    modules: &'a [u64],
    codes: &'a [u64],
    steps: &'a [u64],
    goals: &'a [u64],
    pairs: &'a [u64],
    bytes: &'a [u64],
    goal_kind: GoalKind,
}

impl<'a> Plan<'a> {
    /// The plan that `words` are.
    ///
    /// # Errors
    /// If they are none.
    pub fn new(words: &'a [u64]) -> Result<Self, Invalid> {
        let (head, mut rest) = words.split_at_checked(HEAD_WORDS).ok_or(Invalid::Length)?;
        if head[0] != MAGIC {
            return Err(Invalid::Magic);
        }
        let [threads_count, modules_count] = split(head[2]);
        let [codes_count, steps_count] = split(head[3]);
        let [goals_count, pairs_count] = split(head[4]);
        let mut take = |count: u32, each: u64| {
            let length = usize::try_from(u64::from(count) * each).map_err(|_| Invalid::Length)?;
            let (taken, after) = rest.split_at_checked(length).ok_or(Invalid::Length)?;
            rest = after;
            Ok(taken)
        };
        let mut plan = Self {
            threads: take(threads_count, 1)?,
            modules: take(modules_count, 1)?,
            codes: take(codes_count, 2)?,
            steps: take(steps_count, 2)?,
            goals: take(goals_count, 2)?,
            pairs: take(pairs_count, 1)?,
            bytes: &[],
            goal_kind: GoalKind::Passed,
        };
        plan.bytes = rest;
        if rest.len() as u64 != head[1].div_ceil(8) {
            return Err(Invalid::Length);
        }
        let kind = usize::try_from(head[5]).ok().and_then(|kind| GoalKind::ALL.get(kind));
        plan.goal_kind = *kind.ok_or(Invalid::Range)?;
        if plan.is_in_range(head[1]) { Ok(plan) } else { Err(Invalid::Range) }
    }

    fn is_in_range(&self, bytes_count: u64) -> bool {
        let paths_fit = self.modules.iter().all(|&module| {
            let [start, length] = split(module);
            u64::from(start) + u64::from(length) <= bytes_count
        });
        let is_earlier = |(place, &thread): (usize, &u64)| {
            let [parent, _] = split(thread);
            (parent as usize) < place
        };
        let has_main = self.threads.first().is_some_and(|&main| main == 0);
        let threads_fit = has_main && self.threads.iter().enumerate().skip(1).all(is_earlier);
        let codes_fit = self.codes.chunks_exact(2).all(|code| code[0] < self.modules.len() as u64);
        let waypoint_fits = |words: &[u64]| {
            let [thread, code] = split(words[0]);
            (thread as usize) < self.threads.len()
                && (code as usize) < self.codes.len() / 2
                && words[1] <= u64::from(u32::MAX)
        };
        let mut waypoints = self.steps.chunks_exact(2).chain(self.goals.chunks_exact(2));
        let pairs_of = match self.goal_kind {
            GoalKind::Together => self.goals.len() / 2,
            GoalKind::Passed => self.steps.len() / 2,
            GoalKind::Blocked => 0,
        };
        let pairs_fit =
            self.pairs.iter().all(|&pair| split(pair).iter().all(|&at| (at as usize) < pairs_of));
        paths_fit && threads_fit && codes_fit && waypoints.all(waypoint_fits) && pairs_fit
    }

    /// How many threads there are.
    #[must_use]
    pub const fn threads_count(&self) -> usize {
        self.threads.len()
    }

    /// The thread of entry `place`.
    #[must_use]
    pub fn thread(&self, place: usize) -> Option<Thread> {
        let [parent, child] = split(*self.threads.get(place)?);
        Some(Thread { parent, child })
    }

    /// The entry of the `child`-th thread that the thread of entry `parent` created, from 0; none
    /// if the plan does not speak of it.
    #[must_use]
    pub fn entry_of(&self, parent: u32, child: u32) -> Option<u32> {
        let place = self.threads.iter().skip(1).position(|&it| it == joined(parent, child))?;
        Some(place as u32 + 1)
    }

    /// How many modules there are.
    #[must_use]
    pub const fn modules_count(&self) -> usize {
        self.modules.len()
    }

    /// The path of module `place`, byte by byte.
    #[must_use]
    pub fn module(&self, place: usize) -> Option<impl ExactSizeIterator<Item = u8> + Clone + 'a> {
        let [start, length] = split(*self.modules.get(place)?);
        let bytes = self.bytes;
        Some(Path { bytes, next: start as usize, end: start as usize + length as usize })
    }

    /// How many code addresses there are.
    #[must_use]
    pub const fn codes_count(&self) -> usize {
        self.codes.len() / 2
    }

    /// The code address with the number `place`.
    #[must_use]
    pub fn code(&self, place: usize) -> Option<Code> {
        let words = self.codes.get(place.checked_mul(2)?..)?;
        Some(Code { module: *words.first()? as u32, offset: *words.get(1)? })
    }

    /// How many steps there are.
    #[must_use]
    pub const fn steps_count(&self) -> usize {
        self.steps.len() / 2
    }

    /// The step with the number `place`.
    #[must_use]
    pub fn step(&self, place: usize) -> Option<Waypoint> {
        waypoint(self.steps, place)
    }

    /// What is to hold after the last step.
    #[must_use]
    pub const fn goal_kind(&self) -> GoalKind {
        self.goal_kind
    }

    /// Of how many moments it is to hold.
    #[must_use]
    pub const fn goals_count(&self) -> usize {
        self.goals.len() / 2
    }

    /// The goal with the number `place`.
    #[must_use]
    pub fn goal(&self, place: usize) -> Option<Waypoint> {
        waypoint(self.goals, place)
    }

    /// How many pairs of accesses must overlap.
    #[must_use]
    pub const fn pairs_count(&self) -> usize {
        self.pairs.len()
    }

    /// The pair with the number `place`.
    #[must_use]
    pub fn pair(&self, place: usize) -> Option<Pair> {
        let [first, second] = split(*self.pairs.get(place)?);
        Some(Pair { first, second })
    }
}

fn waypoint(words: &[u64], place: usize) -> Option<Waypoint> {
    let words = words.get(place.checked_mul(2)?..)?;
    let [thread, code] = split(*words.first()?);
    Some(Waypoint { thread, code, occurrence: *words.get(1)? as u32 })
}

/// Some bytes of packed words.
#[derive(Clone, Copy, Debug)]
struct Path<'a> {
    bytes: &'a [u64],
    next: usize,
    end: usize,
}

impl Iterator for Path<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.next >= self.end {
            return None;
        }
        let word = *self.bytes.get(self.next / 8)?;
        let byte = (word >> (8 * (self.next % 8))) as u8;
        self.next += 1;
        Some(byte)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Path<'_> {}

#[cfg(test)]
mod tests;
