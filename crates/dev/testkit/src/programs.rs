//! Programs in C and C++ that are free of races by construction.
//!
//! A program has threads that share plain memory, its cells. A cell is guarded by a lock in all
//! threads, or passed from one thread to the next by hand-overs, or published once and then only
//! read. Whoever has a cell may let others access it in a structure that ends before it goes on. What
//! locks, hand-overs and structures there are stands in tables, one entry each.
//!
//! Everything is emitted in one order that all threads follow, and nothing waits for what comes later
//! in it, so every program ends in every schedule. What it prints does not depend on the schedule.
//!
//! A *mutant* lacks one protection: it shows that silence about the others means something.

mod cells;
mod frame;
mod handovers;
mod locks;
mod structures;

use reweave_base::Rng;

use cells::CELLS;
use frame::{ABSEIL_INCLUDES, CPP_INCLUDES, ENDS, LIBRARY, LIBRARY_INTERFACE, PRELUDE, STARTS};
use handovers::HANDOVERS;
use locks::LOCKS;
use structures::STRUCTURES;

/// What a mechanism needs besides the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    C,
    Cpp,
    Glib,
    OpenMp,
    Plain,
    Abseil,
    Tbb,
}

impl Needs {
    fn package(self) -> Option<&'static str> {
        match self {
            Self::Glib => Some("glib-2.0"),
            Self::Abseil => Some("absl_synchronization"),
            Self::Tbb => Some("tbb"),
            Self::Nothing | Self::C | Self::Cpp | Self::OpenMp | Self::Plain => None,
        }
    }

    fn includes(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::C => "#include <stdatomic.h>\n#include <threads.h>\n",
            Self::Cpp => CPP_INCLUDES,
            Self::Glib => "#include <glib.h>\n",
            Self::OpenMp => "#include <omp.h>\n",
            Self::Plain => LIBRARY_INTERFACE,
            Self::Abseil => ABSEIL_INCLUDES,
            Self::Tbb => "#include <tbb/tbb.h>\n",
        }
    }
}

/// How an instance of a hand-over may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Several times, by one giver and one taker.
    Rounds,
    /// Several times, and several may take the same.
    Many,
    Once,
    /// Once, by several takers.
    OnceMany,
    /// The giver waits for the taker, too.
    Meeting,
    MeetingOnce,
}

#[derive(Debug)]
struct Handover {
    name: &'static str,
    needs: Needs,
    knows_tsan: bool,
    usage: Use,
    declare: &'static str,
    setup: &'static str,
    give: &'static str,
    take: &'static str,
    teardown: &'static str,
}

const HANDOVER: Handover = Handover {
    name: "",
    needs: Needs::Nothing,
    knows_tsan: true,
    usage: Use::Rounds,
    declare: "",
    setup: "",
    give: "",
    take: "",
    teardown: "",
};

#[derive(Debug)]
struct Lock {
    name: &'static str,
    needs: Needs,
    knows_tsan: bool,
    declare: &'static str,
    setup: &'static str,
    /// Ways to acquire it.
    acquires: &'static [&'static str],
    release: &'static str,
    /// Ways to acquire it for reading, if readers can share it.
    shared: &'static [&'static str],
    /// Releases it after reading, if that is another call.
    release_shared: &'static str,
    teardown: &'static str,
}

const LOCK: Lock = Lock {
    name: "",
    needs: Needs::Nothing,
    knows_tsan: true,
    declare: "",
    setup: "",
    acquires: &[],
    release: "",
    shared: &[],
    release_shared: "",
    teardown: "",
};

#[derive(Debug)]
struct Structure {
    name: &'static str,
    needs: Needs,
    knows_tsan: bool,
    declare: &'static str,
    setup: &'static str,
    run: &'static str,
    teardown: &'static str,
    /// Whether the cell is accessed in a handler that may interrupt anything.
    is_in_handler: bool,
}

const STRUCTURE: Structure = Structure {
    name: "",
    needs: Needs::Nothing,
    knows_tsan: true,
    declare: "",
    setup: "",
    run: "",
    teardown: "",
    is_in_handler: false,
};

/// Which libraries a program may use. The first programs use one after the other.
const FLAVOURS: [&[Needs]; 6] = [
    &[Needs::C],
    &[Needs::Cpp],
    &[Needs::C, Needs::Glib],
    &[Needs::C, Needs::OpenMp],
    &[Needs::C, Needs::Plain],
    &[Needs::Cpp, Needs::Abseil, Needs::Tbb],
];

/// How often each flavour comes, in percent; what takes long to compile comes less often.
const SHARES: [usize; 6] = [45, 15, 14, 12, 10, 4];

/// How many programs, from the first on, use every mechanism together.
pub const COVERING: u64 = FLAVOURS.len() as u64;

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of every mechanism.
    Any,
    /// Of mechanisms that ThreadSanitizer knows.
    KnownToTsan,
    /// Of every mechanism, with one protection left out.
    Mutant,
}

/// A generated program.
#[derive(Debug)]
pub struct Program {
    /// `c` or `cpp`.
    pub extension: &'static str,
    /// Its text.
    pub source: String,
    /// What it is made of.
    pub mechanisms: Vec<&'static str>,
    /// The packages, by their names for `pkg-config`, that it needs.
    pub packages: Vec<&'static str>,
    /// Whether it is built with `-fopenmp`.
    pub uses_openmp: bool,
    /// The source of a library called `plain` that it is linked with, which is built without us.
    pub library: Option<&'static str>,
}

/// The program of `seed`.
#[must_use]
pub fn program(seed: u64, kind: Kind) -> Program {
    let whole = Draft::new(seed, kind, None).finish();
    if kind != Kind::Mutant {
        return whole.0;
    }
    let dropped = Rng::new(seed ^ 0x6d75_7461_6e74).below(whole.1.max(1));
    Draft::new(seed, kind, Some(dropped)).finish().0
}

/// A step of the program, in the order that all threads follow.
#[derive(Clone, Copy, Debug)]
enum Step {
    Handover(usize),
    Lock(usize),
    Structure(usize),
}

/// An instance of a hand-over: its number, the threads of its rounds, and how many there were.
#[derive(Clone, Copy)]
struct Channel {
    kind: &'static Handover,
    number: usize,
    threads: Option<(usize, usize)>,
    rounds: usize,
}

/// An instance of a lock: its number and the cells that it guards.
struct Guard {
    kind: &'static Lock,
    number: usize,
    cells: Vec<usize>,
}

/// A take that is not emitted yet: by which thread, of which channel, and which of the cells
/// that are passed on it brings.
struct Pending {
    thread: usize,
    channel: usize,
    code: String,
    place: usize,
}

/// A program in the making.
struct Draft {
    rng: Rng,
    kind: Kind,
    flavour: usize,
    /// Whether every mechanism of this program's part of the tables is used.
    covers: Option<usize>,
    /// The protection to leave out, and how many came so far.
    dropped: Option<usize>,
    protections: usize,
    mechanisms: Vec<&'static str>,
    declarations: String,
    setup: String,
    teardown: String,
    /// What each thread does; the first is main.
    bodies: Vec<String>,
    instances: usize,
    signals: usize,
    /// How many cells there are.
    cells: usize,
    /// Cells that are passed on, and who has them; none while they are on their way or published.
    owners: Vec<(usize, Option<usize>)>,
    channels: Vec<Channel>,
    guards: Vec<Guard>,
    structures: Vec<&'static Structure>,
    pending: Vec<Pending>,
}

impl Draft {
    fn new(seed: u64, kind: Kind, dropped: Option<usize>) -> Self {
        let mut rng = Rng::new(seed);
        let covers =
            usize::try_from(seed).ok().filter(|&seed| seed < FLAVOURS.len() && kind == Kind::Any);
        let flavour = covers.unwrap_or_else(|| {
            let mut at = rng.below(100);
            SHARES
                .iter()
                .position(|&share| {
                    at < share || {
                        at -= share;
                        false
                    }
                })
                .unwrap_or(0)
        });
        let threads = 2 + if covers.is_some() { 0 } else { rng.below(4) };
        Self {
            rng,
            kind,
            flavour,
            covers,
            dropped,
            protections: 0,
            mechanisms: Vec::new(),
            declarations: String::new(),
            setup: String::new(),
            teardown: String::new(),
            bodies: vec![String::new(); threads],
            instances: 0,
            signals: 0,
            cells: 0,
            owners: Vec::new(),
            channels: Vec::new(),
            guards: Vec::new(),
            structures: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The program, and how many protections it has.
    fn finish(mut self) -> (Program, usize) {
        for _ in 0..2 + self.rng.below(3) {
            let owner = self.rng.below(self.bodies.len());
            let cell = self.new_cell(false);
            self.owners.push((cell, Some(owner)));
        }
        // A handler may interrupt anything, so it gets a cell that it can access anywhere.
        let owner = self.rng.below(self.bodies.len());
        let cell = self.new_cell(true);
        self.owners.push((cell, Some(owner)));
        let mut steps = self.choose();
        for place in (1..steps.len()).rev() {
            steps.swap(place, self.rng.below(place + 1));
        }
        for step in steps {
            match step {
                Step::Handover(channel) => self.hand_over(channel),
                Step::Lock(guard) => self.access_guarded(guard),
                Step::Structure(structure) => self.run_structure(structure),
            }
            if self.rng.chance(30) {
                self.take_pending(|_| true);
            }
        }
        while !self.pending.is_empty() {
            self.take_pending(|_| true);
        }
        self.render()
    }

    /// Chooses mechanisms, makes instances of them, and says how often each is used.
    fn choose(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for kind in self.chosen(HANDOVERS, |it| (it.name, it.needs, it.knows_tsan), 3) {
            let number = self.instance(kind.declare, kind.setup, kind.teardown);
            let uses = match kind.usage {
                Use::Rounds | Use::Many | Use::Meeting if self.covers.is_none() => {
                    1 + self.rng.below(3)
                }
                _ => 1,
            };
            steps.extend((0..uses).map(|_| Step::Handover(self.channels.len())));
            self.channels.push(Channel { kind, number, threads: None, rounds: 0 });
        }
        for kind in self.chosen(LOCKS, |it| (it.name, it.needs, it.knows_tsan), 2) {
            let number = self.instance(kind.declare, kind.setup, kind.teardown);
            let uses = if self.covers.is_some() { 2 } else { 2 + self.rng.below(4) };
            steps.extend((0..uses).map(|_| Step::Lock(self.guards.len())));
            let cells = (0..1 + self.rng.below(2)).map(|_| self.new_cell(false)).collect();
            self.guards.push(Guard { kind, number, cells });
        }
        for kind in self.chosen(STRUCTURES, |it| (it.name, it.needs, it.knows_tsan), 2) {
            steps.push(Step::Structure(self.structures.len()));
            self.structures.push(kind);
        }
        steps
    }

    /// Some entries of a table: at random, up to `most`; or this program's part of the whole table.
    fn chosen<T>(
        &mut self,
        table: &'static [T],
        about: impl Fn(&T) -> (&'static str, Needs, bool),
        most: usize,
    ) -> Vec<&'static T> {
        let own = FLAVOURS[self.flavour];
        let special = own[own.len() - 1];
        let fits = |entry: &T| {
            let (_, needs, knows_tsan) = about(entry);
            let is_there = needs == Needs::Nothing || own.contains(&needs);
            is_there && (knows_tsan || self.kind != Kind::KnownToTsan)
        };
        let usable: Vec<&'static T> = table.iter().filter(|entry| fits(entry)).collect();
        let chosen: Vec<&'static T> = if let Some(part) = self.covers {
            let is_of_part = |(place, entry): &(usize, &T)| match about(entry).1 {
                Needs::Nothing => place % FLAVOURS.len() == part,
                needs => own.contains(&needs) && !FLAVOURS[..part].concat().contains(&needs),
            };
            table.iter().enumerate().filter(is_of_part).map(|(_, entry)| entry).collect()
        } else {
            let special: Vec<&'static T> =
                usable.iter().copied().filter(|entry| about(entry).1 == special).collect();
            let count = 1 + self.rng.below(most);
            let mut chosen = Vec::new();
            for _ in 0..count {
                // Half of them are what this flavour is for.
                let from =
                    if !special.is_empty() && self.rng.chance(50) { &special } else { &usable };
                chosen.extend(self.rng.pick(from));
            }
            chosen
        };
        self.mechanisms.extend(chosen.iter().map(|entry| about(entry).0));
        chosen
    }

    /// Declares an instance and gives its number.
    fn instance(&mut self, declare: &str, setup: &str, teardown: &str) -> usize {
        self.instances += 1;
        let number = self.instances;
        // Each instance has a signal of its own, of which there are few.
        if [declare, setup].iter().any(|code| code.contains("SIGNAL($)")) {
            self.signals += 1;
            let signal = format!("#define SIGNAL_{number} (SIGRTMIN + {})", self.signals);
            add(&mut self.declarations, &signal);
        }
        for (text, code) in [
            (&mut self.declarations, declare),
            (&mut self.setup, setup),
            (&mut self.teardown, teardown),
        ] {
            add(text, &numbered(code, number));
        }
        number
    }

    /// Declares a cell, the function that accesses it and the one that reads it.
    fn new_cell(&mut self, is_in_handler: bool) -> usize {
        let fits = |kind: &&cells::Cell| kind.is_safe_in_handlers || !is_in_handler;
        let kinds: Vec<&cells::Cell> = CELLS.iter().filter(fits).collect();
        let kind = kinds[self.rng.below(kinds.len())];
        self.cells += 1;
        let functions = format!(
            "{}\nstatic void touch_$(int k) {{ {} }}\nstatic long digest_$(void) {{ return {}; }}",
            kind.declare, kind.touch, kind.digest
        );
        add(&mut self.declarations, &numbered(&functions, self.cells));
        self.cells
    }

    fn touch(&mut self, cell: usize) -> String {
        format!("touch_{cell}({});", 1 + self.rng.below(9))
    }

    /// Whether the next protection is to be left out.
    fn is_dropped(&mut self) -> bool {
        self.protections += 1;
        self.dropped == Some(self.protections - 1)
    }

    /// One of the cells that somebody has, among `cells`.
    fn owned(&mut self, is_wanted: impl Fn(usize, usize) -> bool) -> Option<(usize, usize)> {
        let owned = self.owners.iter().enumerate();
        let owned = owned.filter_map(|(place, &(_, owner))| Some((place, owner?)));
        let owned: Vec<_> = owned.filter(|&(place, owner)| is_wanted(place, owner)).collect();
        self.rng.pick(&owned).copied()
    }

    fn another_thread(&mut self, thread: usize) -> usize {
        (thread + 1 + self.rng.below(self.bodies.len() - 1)) % self.bodies.len()
    }

    fn hand_over(&mut self, channel: usize) {
        self.take_pending(|pending| pending.channel == channel);
        let Channel { kind, number, threads, rounds } = self.channels[channel];
        let place_and_giver = match threads {
            Some((giver, _)) => self.owned(|_, owner| owner == giver),
            None => self.owned(|_, _| true),
        };
        let giver = threads.map(|(giver, _)| giver).or(place_and_giver.map(|(_, giver)| giver));
        let giver = giver.unwrap_or(0);
        let taker = match threads {
            Some((_, taker)) => taker,
            None => self.another_thread(giver),
        };
        let round = rounds + 1;
        self.channels[channel].threads = Some((giver, taker));
        self.channels[channel].rounds = round;
        let code = |code: &str| numbered(code, number).replace('@', &round.to_string());
        let is_meeting = matches!(kind.usage, Use::Meeting | Use::MeetingOnce);
        let is_dropped = self.is_dropped();
        let give = if is_dropped && is_meeting { String::new() } else { code(kind.give) };
        let take = if is_dropped { String::new() } else { code(kind.take) };
        let place = place_and_giver.map(|(place, _)| place);
        let touched = place.map_or_else(String::new, |place| self.touch(self.owners[place].0));
        let mut given = format!("{touched} {give}");
        if !is_meeting && !self.guards.is_empty() && self.rng.chance(15) {
            let guard = self.rng.below(self.guards.len());
            given = self.within(guard, &given);
        }
        add(&mut self.bodies[giver], &given);
        let Some(place) = place else {
            add(&mut self.bodies[taker], &take);
            return;
        };
        let is_many = matches!(kind.usage, Use::Many | Use::OnceMany);
        let others = self.owned(|other, _| other != place);
        let is_last = place + 1 == self.owners.len();
        self.owners[place].1 = None;
        if is_many && others.is_some() && !is_last && self.rng.chance(30) {
            self.publish(giver, taker, self.owners[place].0, &take);
            return;
        }
        self.pending.push(Pending { thread: taker, channel, code: take, place });
        if is_meeting || self.rng.chance(50) {
            self.take_pending(|pending| pending.channel == channel);
        }
    }

    /// Several threads take the same, and all only read the cell from then on.
    fn publish(&mut self, giver: usize, taker: usize, cell: usize, take: &str) {
        for thread in 0..self.bodies.len() {
            if thread == taker || thread != giver && self.rng.chance(60) {
                add(&mut self.bodies[thread], &format!("{take} keep(digest_{cell}());"));
            }
        }
        add(&mut self.bodies[giver], &format!("keep(digest_{cell}());"));
    }

    /// Emits the takes that are wanted, in their order.
    fn take_pending(&mut self, is_wanted: impl Fn(&Pending) -> bool) {
        for pending in std::mem::take(&mut self.pending) {
            if !is_wanted(&pending) {
                self.pending.push(pending);
                continue;
            }
            let (cell, owner) = &mut self.owners[pending.place];
            let cell = *cell;
            *owner = Some(pending.thread);
            let touched = self.touch(cell);
            add(&mut self.bodies[pending.thread], &format!("{} {touched}", pending.code));
        }
    }

    /// `code` while a lock is held.
    fn within(&mut self, guard: usize, code: &str) -> String {
        let &Guard { kind, number, .. } = &self.guards[guard];
        let acquire = self.rng.pick(kind.acquires).expect("a lock can be acquired");
        numbered(&format!("{{ {acquire} {code} {} }}", kind.release), number)
    }

    fn access_guarded(&mut self, guard: usize) {
        let thread = self.rng.below(self.bodies.len());
        let &Guard { kind, number, .. } = &self.guards[guard];
        let cells = self.guards[guard].cells.clone();
        let reads = !kind.shared.is_empty() && self.rng.chance(40);
        let accesses: String = if reads {
            cells.iter().map(|cell| format!("keep(digest_{cell}());")).collect()
        } else {
            cells.iter().map(|&cell| self.touch(cell)).collect()
        };
        let ways = if reads { kind.shared } else { kind.acquires };
        let acquire = *self.rng.pick(ways).expect("a lock can be acquired");
        let release = match kind.release_shared {
            other if reads && !other.is_empty() => other,
            _ => kind.release,
        };
        let block = self.rng.below(10);
        // Who waits on a condition lets others in: what stands around that is not atomic.
        let is_mutex = kind.declare.contains("pthread_mutex_t l_$")
            && !kind.declare.contains("pthread_cond_t");
        let mut code = match block {
            0 => format!("BLOCK_BEGIN(\"inside\"); {accesses} BLOCK_END();"),
            _ => accesses,
        };
        if !self.is_dropped() {
            code = numbered(&format!("{{ {acquire} {code} {release} }}"), number);
        }
        if block == 1 && is_mutex {
            code = format!("BLOCK_BEGIN(\"around\"); {code} BLOCK_END();");
        }
        // Locks are nested in the order of their numbers.
        if guard > 0 && self.rng.chance(20) {
            let outer = self.rng.below(guard);
            let also = self.touch(self.guards[outer].cells[0]);
            code = self.within(outer, &format!("{also} {code}"));
        }
        add(&mut self.bodies[thread], &code);
    }

    fn run_structure(&mut self, structure: usize) {
        let kind = self.structures[structure];
        let last = self.owners.len() - 1;
        let find = |draft: &mut Self| draft.owned(|place, _| place == last || !kind.is_in_handler);
        let found = find(self).or_else(|| {
            self.take_pending(|_| true);
            find(self)
        });
        let Some((place, owner)) = found else { return };
        let touch = self.touch(self.owners[place].0);
        let [declare, run] = [kind.declare, kind.run].map(|code| code.replace("TOUCH", &touch));
        let number = self.instance(&declare, kind.setup, kind.teardown);
        add(&mut self.bodies[owner], &numbered(&run, number));
    }

    fn render(mut self) -> (Program, usize) {
        let own = FLAVOURS[self.flavour];
        let is_cpp = own.contains(&Needs::Cpp);
        let mut starts = String::new();
        let mut joins = String::new();
        for thread in 1..self.bodies.len() {
            let usable = STARTS.iter();
            let usable = usable.filter(|it| it.needs == Needs::Nothing || own.contains(&it.needs));
            let usable: Vec<_> = usable.collect();
            let kind = if self.kind == Kind::KnownToTsan || self.rng.chance(50) {
                usable[0]
            } else {
                usable[self.rng.below(usable.len())]
            };
            let body = format!("static void run_$(void) {{\n{}}}\n", self.bodies[thread]);
            for (text, code) in [
                (&mut self.declarations, &*format!("{body}{}", kind.declare)),
                (&mut starts, kind.start),
                (&mut joins, kind.join),
            ] {
                add(text, &numbered(code, thread));
            }
        }
        let end = if self.rng.chance(50) { &ENDS[0] } else { &ENDS[self.rng.below(ENDS.len())] };
        let digests: String =
            (1..=self.cells).map(|cell| format!("printf(\"%ld\\n\", digest_{cell}());")).collect();
        let includes: String = own.iter().map(|needs| needs.includes()).collect();
        let parts = [
            PRELUDE,
            &includes,
            &self.declarations,
            &format!("static void report(void) {{ {digests} fflush(stdout); }}"),
            end.declare,
            "int main(void) {",
            &self.setup,
            end.setup,
            &starts,
            &self.bodies[0],
            &joins,
            &self.teardown,
            end.last,
            "}\n",
        ];
        let program = Program {
            extension: if is_cpp { "cpp" } else { "c" },
            source: parts.join("\n"),
            mechanisms: self.mechanisms,
            packages: own.iter().filter_map(|needs| needs.package()).collect(),
            uses_openmp: own.contains(&Needs::OpenMp),
            library: own.contains(&Needs::Plain).then_some(LIBRARY),
        };
        (program, self.protections)
    }
}

/// `code` as a line of its own.
fn add(text: &mut String, code: &str) {
    if !code.is_empty() {
        text.push_str(code);
        text.push('\n');
    }
}

/// `code` of the instance `number`.
fn numbered(code: &str, number: usize) -> String {
    code.replace("SIGNAL($)", "SIGNAL_$").replace('$', &number.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_first_programs_use_every_mechanism() {
        let used: BTreeSet<&str> =
            (0..COVERING).flat_map(|seed| program(seed, Kind::Any).mechanisms).collect();
        let names = HANDOVERS.iter().map(|it| it.name);
        let names = names.chain(LOCKS.iter().map(|it| it.name));
        let all: BTreeSet<&str> = names.chain(STRUCTURES.iter().map(|it| it.name)).collect();
        assert_eq!(all.len(), HANDOVERS.len() + LOCKS.len() + STRUCTURES.len());
        assert_eq!(used, all);
    }

    #[test]
    fn a_mutant_lacks_one_protection() {
        for seed in 100..200 {
            let (whole, mutant) = (program(seed, Kind::Any), program(seed, Kind::Mutant));
            assert!(mutant.source.len() < whole.source.len(), "{seed}");
        }
    }
}
