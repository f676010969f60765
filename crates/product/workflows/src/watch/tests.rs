//! What is found while a program runs is what is found in its trace.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use reweave_order::poset::Relation;
use reweave_record::convert::{self, Exit, Kept, convert};
use reweave_record::decode::Decoded;
use reweave_record::event_log::Stream;
use reweave_record::live::Follower;
use reweave_record::locks::WithLocks;
use reweave_record::symbols::Symbols;
use reweave_record::wire::{Event, Kind, channel, flag};
use reweave_states::find::find;
use reweave_states::predicate::Predicate;
use reweave_states::predicate::running::Running;
use reweave_trace::{Trace, TraceBuilder};

use super::{Detector, subjects};

const NAMES: [(&str, u64); 7] = [
    ("x", 0x1000),
    ("y", 0x1008),
    ("z", 0x1010),
    ("m", 0x2000),
    ("n", 0x2040),
    ("c", 0x2080),
    ("s", 0x20c0),
];

fn address_of(name: &str) -> Option<u64> {
    NAMES.iter().find(|(own, _)| *own == name).map(|(_, address)| *address)
}

const QUESTIONS: [&str; 9] = [
    "x == 1 && y == 0",
    "x == 0 && y == 1",
    "x == 1 && y == 2",
    "x + y == 3",
    "x == 2 && z == 2",
    "always(x >= y)",
    "holds(T1, m) && x == 2",
    "holds(T1, m) && holds(T2, n)",
    "holds(T1, n) && holds(T2, n)",
];

/// A recording.
struct Recorded(VecDeque<(u32, Event)>);

impl Stream for Recorded {
    fn next_event(&mut self) -> io::Result<Option<(u32, Event)>> {
        Ok(self.0.pop_front())
    }
}

/// Names of data, and none of code.
struct Named;

impl convert::Symbols for Named {
    fn site(&mut self, code: u64, _: &[u64]) -> String {
        format!("{code:#x}")
    }

    fn data(&mut self, address: u64) -> Option<(String, u64)> {
        let known = NAMES.iter().find(|(_, start)| (*start..start + 8).contains(&address));
        known.map(|(name, start)| ((*name).to_owned(), address - start))
    }

    fn maps(&mut self, _: u64) {}

    fn origin(&mut self, _: u64) -> Option<(String, u64)> {
        None
    }
}

/// Something that a thread does, as far as it can: three threads, three variables, two locks.
#[derive(Clone, Debug)]
enum Act {
    Write { var: usize, value: u64, size: u8 },
    Store { var: usize, value: u64 },
    Update { var: usize, value: u64 },
    Read { var: usize, size: u8, is_known: bool },
    Load { var: usize },
    Take { lock: usize, is_shared: bool },
    Give { lock: usize },
    Signal,
    Wait,
    Wake,
    Post,
    TakeToken,
    Send,
    Receive { takes: bool },
    Allocate { block: u64 },
    Free { block: u64 },
    WriteBlock { block: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let size = prop_oneof![4 => Just(2_u8), 1 => Just(3_u8)];
    prop_oneof![
        6 => (0..3_usize, 0..3_u64, size.clone())
            .prop_map(|(var, value, size)| Act::Write { var, value, size }),
        2 => (0..3_usize, 0..3_u64).prop_map(|(var, value)| Act::Store { var, value }),
        1 => (0..3_usize, 0..3_u64).prop_map(|(var, value)| Act::Update { var, value }),
        5 => (0..3_usize, size, any::<bool>())
            .prop_map(|(var, size, is_known)| Act::Read { var, size, is_known }),
        1 => (0..3_usize).prop_map(|var| Act::Load { var }),
        4 => (0..2_usize, any::<bool>()).prop_map(|(lock, is_shared)| Act::Take { lock, is_shared }),
        4 => (0..2_usize).prop_map(|lock| Act::Give { lock }),
        1 => Just(Act::Signal),
        1 => Just(Act::Wait),
        2 => Just(Act::Wake),
        1 => Just(Act::Post),
        1 => Just(Act::TakeToken),
        2 => Just(Act::Send),
        2 => any::<bool>().prop_map(|takes| Act::Receive { takes }),
        1 => (0..2_u64).prop_map(|block| Act::Allocate { block }),
        1 => (0..2_u64).prop_map(|block| Act::Free { block }),
        2 => (0..2_u64).prop_map(|block| Act::WriteBlock { block }),
    ]
}

/// The events of what threads do, one after the other; what is stored is told by the next event.
fn events(acts: &[(u32, Act)]) -> Vec<(u32, Event)> {
    let mut memory = [0_u64; 3];
    let mut stored: [Option<u64>; 3] = [None; 3];
    let mut all = Vec::new();
    let forks = [(0, Kind::Fork, 1), (0, Kind::Fork, 2), (1, Kind::Begin, 1), (2, Kind::Begin, 2)];
    all.extend(forks.map(|(thread, kind, child)| (thread, Event::new(kind, child, 1))));
    for (place, (thread, act)) in acts.iter().enumerate() {
        let address = |place: usize| NAMES[place].1;
        let new = |kind: Kind, address: u64| Event::new(kind, address, 100 + place as u64);
        let pending = stored[*thread as usize].take();
        let mut event = match act {
            Act::Write { var, value, size } => {
                memory[*var] = *value;
                stored[*thread as usize] = Some(*value);
                Event { size: *size, ..new(Kind::Write, address(*var)) }
            }
            Act::Store { var, value } => {
                memory[*var] = *value;
                Event { size: 2, value: Some(*value), ..new(Kind::AtomicStore, address(*var)) }
            }
            Act::Update { var, value } => {
                let (seen, extra) = (Some(memory[*var]), Some(*value));
                memory[*var] = *value;
                let update = new(Kind::AtomicUpdate, address(*var));
                Event { size: 2, order: 4, value: seen, extra, ..update }
            }
            Act::Read { var, size, is_known } => {
                let value = is_known.then_some(memory[*var]);
                Event { size: *size, value, ..new(Kind::Read, address(*var)) }
            }
            Act::Load { var } => {
                Event { size: 2, value: Some(memory[*var]), ..new(Kind::AtomicLoad, address(*var)) }
            }
            Act::Take { lock, is_shared } => {
                let flags = if *is_shared { flag::SHARED } else { 0 };
                Event { flags, ..new(Kind::Lock, address(3 + lock)) }
            }
            Act::Give { lock } => new(Kind::Unlock, address(3 + lock)),
            Act::Signal => new(Kind::Signal, address(5)),
            Act::Wait => Event { extra: Some(address(3)), ..new(Kind::Wait, address(5)) },
            Act::Wake => Event { extra: Some(address(3)), ..new(Kind::Wake, address(5)) },
            Act::Post => new(Kind::SemaphorePost, address(6)),
            Act::TakeToken => new(Kind::SemaphoreTake, address(6)),
            Act::Send => new(Kind::Send, channel::address(1)),
            Act::Receive { takes } => {
                let flags = if *takes { 0 } else { flag::TRY };
                Event { flags, ..new(Kind::Receive, channel::address(1)) }
            }
            Act::Allocate { block } => {
                Event { extra: Some(16), ..new(Kind::Alloc, 0x9000 + block * 64) }
            }
            Act::Free { block } => new(Kind::Free, 0x9000 + block * 64),
            Act::WriteBlock { block } => Event { size: 3, ..new(Kind::Write, 0x9000 + block * 64) },
        };
        event.stored = pending;
        all.push((*thread, event));
    }
    all
}

/// Whether a thread does what it cannot do now: waits without its lock, or acts while it waits.
fn possible(acts: Vec<(u32, Act)>) -> Vec<(u32, Act)> {
    let mut owner: [Option<u32>; 2] = [None; 2];
    let mut readers: [[u32; 3]; 2] = [[0; 3]; 2];
    let mut waits = [false; 3];
    let (mut signals, mut tokens) = (0, 0);
    let mut kept = Vec::new();
    for (thread, act) in acts {
        let at = thread as usize;
        let is_free = |owner: Option<u32>, readers: [u32; 3]| owner.is_none() && readers == [0; 3];
        let is_possible = match act {
            Act::Wake => waits[at] && signals > 0 && is_free(owner[0], readers[0]),
            _ if waits[at] => false,
            Act::Take { lock, is_shared: true } => owner[lock].is_none(),
            Act::Take { lock, is_shared: false } => is_free(owner[lock], readers[lock]),
            Act::Give { lock } => owner[lock] == Some(thread) || readers[lock][at] > 0,
            Act::Wait => owner[0] == Some(thread),
            Act::TakeToken => tokens > 0,
            _ => true,
        };
        if !is_possible {
            continue;
        }
        match act {
            Act::Wake => (waits[at], signals, owner[0]) = (false, signals - 1, Some(thread)),
            Act::Wait => (waits[at], owner[0]) = (true, None),
            Act::Take { lock, is_shared: true } => readers[lock][at] += 1,
            Act::Take { lock, is_shared: false } => owner[lock] = Some(thread),
            Act::Give { lock } if owner[lock] == Some(thread) => owner[lock] = None,
            Act::Give { lock } => readers[lock][at] -= 1,
            Act::Signal => signals = waits.iter().filter(|waits| **waits).count().min(signals + 1),
            Act::Post => tokens += 1,
            Act::TakeToken => tokens -= 1,
            _ => {}
        }
        kept.push((thread, act));
    }
    kept
}

fn trace(events: &[(u32, Event)]) -> Trace {
    let symbols = Rc::new(RefCell::new(Symbols::new(Path::new("/"))));
    let open = || {
        let recorded = Recorded(events.iter().copied().collect());
        Ok(WithLocks::new(Decoded::new(recorded), Rc::clone(&symbols)))
    };
    let mut builder = TraceBuilder::new();
    // Like the trace, the follower speaks of the lifetimes of blocks that threads contend for alone.
    let names = NAMES.map(|(name, _)| name.to_owned());
    let kept = Kept::Contended { names: &names };
    convert(open, kept, &Exit::default(), &mut Named, &mut builder).expect("memory does not fail");
    builder.finish().expect("what is converted is well formed")
}

/// Whether each question is found while the events come; none if that was cut short.
fn online(events: &[(u32, Event)], questions: &[Arc<Running>]) -> Vec<Option<bool>> {
    let all = questions.iter().map(|question| subjects(question));
    let mut follower = Follower::new(all, Path::new("/"));
    follower.locate(address_of);
    let mut detectors: Vec<Option<Detector>> = questions.iter().map(|_| None).collect();
    let start = |follower: &Follower, at: usize| {
        let count = questions[at].subjects().len();
        Detector::new(&questions[at], (0..count).map(|place| follower.initial(at, place)).collect())
    };
    for end in 0..=events.len() {
        match events.get(end) {
            Some(&(thread, event)) => follower.take(thread, event),
            None => follower.finish(),
        }
        while let Some(step) = follower.next_step() {
            let at = step.question;
            let detector = detectors[at].get_or_insert_with(|| start(&follower, at));
            detector.step(&step, questions[at].subjects().len());
        }
    }
    let answer = |(at, detector): (usize, Option<Detector>)| {
        let detector = detector.unwrap_or_else(|| start(&follower, at));
        let is_found = detector.found().is_some();
        let is_lost = detector.lacks_states() || follower.is_cut_short(at);
        (is_found || !is_lost).then_some(is_found)
    };
    detectors.into_iter().enumerate().map(answer).collect()
}

/// What is found is the same while the program runs and in its trace.
fn compare(acts: Vec<(u32, Act)>) -> Result<(), TestCaseError> {
    let events = events(&possible(acts));
    let trace = trace(&events);
    let known: Vec<(&str, Arc<Running>, Predicate)> = QUESTIONS
        .iter()
        .filter_map(|text| {
            // What the trace does not name cannot be asked of it.
            let predicate = Predicate::parse(text, &trace).ok()?;
            Some((*text, Arc::new(Running::parse(text).expect("it can be asked")), predicate))
        })
        .collect();
    let questions: Vec<Arc<Running>> = known.iter().map(|(_, it, _)| Arc::clone(it)).collect();
    for ((text, _, predicate), online) in known.iter().zip(online(&events, &questions)) {
        let relation = Relation::TraceOrderPreserving;
        let offline = find(&trace, predicate, relation, u64::MAX, &|| false).unwrap();
        prop_assert_eq!(online, offline.is_met, "{}", text);
    }
    Ok(())
}

#[test]
fn a_block_that_one_thread_allocates_and_another_alone_uses_orders_nothing() {
    let write = |var, value| Act::Write { var, value, size: 2 };
    let acts = vec![
        (0, write(0, 0)),
        (1, write(0, 1)),
        (1, Act::Allocate { block: 1 }),
        (0, Act::WriteBlock { block: 1 }),
        (0, Act::Free { block: 1 }),
        (0, write(1, 1)),
        (0, write(0, 0)),
    ];
    compare(acts).unwrap();
}

#[test]
fn who_finds_a_channel_empty_comes_after_who_took_from_it() {
    let write = |var, value| Act::Write { var, value, size: 2 };
    let acts = vec![
        (1, write(0, 0)),
        (2, write(0, 1)),
        (2, Act::Receive { takes: true }),
        (1, Act::Receive { takes: false }),
        (1, write(1, 1)),
        (1, write(0, 0)),
    ];
    compare(acts).unwrap();
}

proptest! {
    #![proptest_config(reweave_testkit::soak::config(300))]

    #[test]
    fn what_is_found_while_the_program_runs_is_found_in_its_trace(
        acts in vec((0..3_u32, act()), 0..40),
    ) {
        compare(acts)?;
    }
}
