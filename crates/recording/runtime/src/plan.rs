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
//! the bytes of all module paths. [`Plan::words`] writes it; [`Plan::new`] looks at all of it once,
//! and from then on all that it names is there. Reading does not allocate.

/// The first word of a plan: its name and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"rwplan\0\x01");

const HEAD_WORDS: usize = 6;

/// What a part of a plan is made of.
///
/// # Safety
/// It is aligned as a word, has the size of some words, and any words are a value of it.
unsafe trait Words: Copy {}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[repr(C, align(8))]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            // SAFETY: numbers that fill whole words.
            unsafe impl Words for $name {}
        )*
    };
}

parts! {
    /// A thread, by who created it.
    Thread {
        /// The entry of the thread that created it, which comes before its own; 0 for the first.
        parent: u32,
        /// The how many-th thread that this was of its parent, from 0.
        child: u32,
    }

    /// A file that code addresses are in: where its path is among the bytes of all.
    Module {
        /// The first byte.
        start: u32,
        /// How many bytes.
        length: u32,
    }

    /// A code address.
    Code {
        /// Which module.
        module: u64,
        /// Where in its file.
        offset: u64,
    }

    /// A moment of a thread: its `occurrence`-th event, from 0, at `code`.
    Waypoint {
        /// The entry of the thread.
        thread: u32,
        /// The number of the code address.
        code: u32,
        /// How many events the thread logged there before, which has 32 bits.
        occurrence: u64,
    }

    /// Two accesses whose addresses must overlap: places in the list of goals or of steps.
    Pair {
        /// The one.
        first: u32,
        /// The other.
        second: u32,
    }
}

/// The parts that `words` are.
const fn from_words<T: Words>(words: &[u64]) -> &[T] {
    // SAFETY: aligned, as long, and any words are a value.
    unsafe {
        core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words) / size_of::<T>())
    }
}

/// The words of `parts`.
#[cfg(not(reweave_export))]
const fn as_words<T: Words>(parts: &[T]) -> &[u64] {
    // SAFETY: aligned, and as long.
    unsafe { core::slice::from_raw_parts(parts.as_ptr().cast(), size_of_val(parts) / 8) }
}

/// What is to hold after the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum GoalKind {
    /// The threads of the goal are right before its events.
    Together,
    /// The threads of the goal wait for locks of each other.
    Blocked,
    /// All steps are done.
    #[default]
    Passed,
}

impl GoalKind {
    /// Every kind, by its number.
    pub const ALL: [Self; 3] = [Self::Together, Self::Blocked, Self::Passed];
}

#[cfg(not(reweave_export))]
const fn joined(low: usize, high: usize) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn split(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
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
    /// The threads, the main thread first, parents before children.
    pub threads: &'a [Thread],
    /// The files that code addresses are in.
    pub modules: &'a [Module],
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
    /// The paths of the modules.
    pub paths: &'a [u8],
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
            threads: from_words(take(threads_count, 1)?),
            modules: from_words(take(modules_count, 1)?),
            codes: from_words(take(codes_count, 2)?),
            steps: from_words(take(steps_count, 2)?),
            goal_kind: GoalKind::Passed,
            goals: from_words(take(goals_count, 2)?),
            pairs: from_words(take(pairs_count, 1)?),
            paths: &[],
        };
        if rest.len() as u64 != head[1].div_ceil(8) {
            return Err(Invalid::Length);
        }
        // SAFETY: the bytes of words, of which there are at least so many.
        plan.paths = unsafe { core::slice::from_raw_parts(rest.as_ptr().cast(), head[1] as usize) };
        let kind = usize::try_from(head[5]).ok().and_then(|kind| GoalKind::ALL.get(kind));
        plan.goal_kind = *kind.ok_or(Invalid::Range)?;
        if plan.is_in_range() { Ok(plan) } else { Err(Invalid::Range) }
    }

    fn is_in_range(&self) -> bool {
        let path_fits = |module: &Module| self.find_path(*module).is_some();
        let is_earlier = |(place, thread): (usize, &Thread)| (thread.parent as usize) < place;
        let has_main = self.threads.first() == Some(&Thread::default());
        let threads_fit = has_main && self.threads.iter().enumerate().skip(1).all(is_earlier);
        let codes_fit = self.codes.iter().all(|code| code.module < self.modules.len() as u64);
        let waypoint_fits = |waypoint: &Waypoint| {
            (waypoint.thread as usize) < self.threads.len()
                && (waypoint.code as usize) < self.codes.len()
                && waypoint.occurrence <= u64::from(u32::MAX)
        };
        let mut waypoints = self.steps.iter().chain(self.goals);
        let pairs_of = match self.goal_kind {
            GoalKind::Together => self.goals.len(),
            GoalKind::Passed => self.steps.len(),
            GoalKind::Blocked => 0,
        };
        let pair_fits = |pair: &Pair| pair.first.max(pair.second) < pairs_of as u32;
        self.modules.iter().all(path_fits)
            && threads_fit
            && codes_fit
            && waypoints.all(waypoint_fits)
            && self.pairs.iter().all(pair_fits)
    }

    fn find_path(&self, module: Module) -> Option<&'a [u8]> {
        self.paths.get(module.start as usize..)?.get(..module.length as usize)
    }

    /// The path of `module`.
    #[must_use]
    pub fn path(&self, module: Module) -> &'a [u8] {
        self.find_path(module).unwrap_or_default()
    }

    /// The entry of the `child`-th thread that the thread of entry `parent` created, from 0; none
    /// if the plan does not speak of it.
    #[must_use]
    pub fn entry_of(&self, parent: u32, child: u32) -> Option<u32> {
        let wanted = Thread { parent, child };
        let place = self.threads.iter().skip(1).position(|&thread| thread == wanted)?;
        Some(place as u32 + 1)
    }

    /// The words of the plan. Whether they make sense is for [`Plan::new`] to say.
    #[cfg(not(reweave_export))]
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![
            MAGIC,
            self.paths.len() as u64,
            joined(self.threads.len(), self.modules.len()),
            joined(self.codes.len(), self.steps.len()),
            joined(self.goals.len(), self.pairs.len()),
            self.goal_kind as u64,
        ];
        words.extend_from_slice(as_words(self.threads));
        words.extend_from_slice(as_words(self.modules));
        words.extend_from_slice(as_words(self.codes));
        words.extend_from_slice(as_words(self.steps));
        words.extend_from_slice(as_words(self.goals));
        words.extend_from_slice(as_words(self.pairs));
        words.extend(self.paths.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }));
        words
    }
}

#[cfg(test)]
mod tests;
