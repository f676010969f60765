//! How the usual cases are repaired. Modest: only the program's author knows what is meant.

use std::collections::BTreeSet;

use reweave_analysis::{Detail, Finding, Guarantee, Kind, WeakAccess};
use reweave_trace::views::{CriticalSection, Mode};
use reweave_trace::{AccessOp, EventId, Goal, MemoryOrder, Op, Trace};

use super::argument::{Wait, listed, waits};
use super::why::{ended_handle, is_of_ended_thread, is_of_frame};
use crate::Place;
use crate::site::{Site, place};

/// What usually repairs `finding`, a paragraph each; empty if nothing is known.
pub fn paragraphs(trace: &Trace, finding: &Finding) -> Vec<String> {
    if !matches!(finding.guarantee(), Guarantee::Witnessed | Guarantee::Observed) {
        return Vec::new();
    }
    match finding.kind {
        Kind::Race | Kind::UseAfterFree if let Detail::MemoryOrders(weak) = &finding.detail => {
            memory_orders(trace, weak)
        }
        Kind::UseAfterFree if is_of_ended_thread(trace, finding) => vec![
            "Let the thread wait until the other is done before it ends, or let both use memory that lives on: \
             static, or from the heap."
                .to_owned(),
        ],
        Kind::UseAfterFree if is_of_frame(trace, finding) => vec![
            "Wait for the other thread before the function returns, or let it use memory that lives on: \
             static, or from the heap."
                .to_owned(),
        ],
        Kind::Race => match finding.events[..] {
            [first, second] => race(trace, first, second),
            _ => Vec::new(),
        },
        Kind::Deadlock => deadlock(trace, finding),
        Kind::Atomicity => atomicity(trace, finding),
        Kind::Nondeterminism => vec![
            "If the result must be the same in every run, the usual fix is to order the \
             accesses: join the writing thread, or wait on a condition or a channel, before the \
             read."
                .to_owned(),
        ],
        Kind::Stuck => super::stuck::fix(trace, finding),
        Kind::UseAfterClose if ended_handle(trace, finding) == "library" => vec![
            "Unload the library when nobody can use it any more: join the threads that do before, or let each open it \
             by itself."
                .to_owned(),
        ],
        Kind::UseAfterClose if ended_handle(trace, finding) != "descriptor" => vec![
            "Let the last user destroy it: join the threads that use it before, or count the users."
                .to_owned(),
        ],
        Kind::Misuse => {
            vec![super::misuse::fix(trace, finding).unwrap_or(finding.kind.info().fix).to_owned()]
        }
        // What the predicate is for is not ours to say.
        kind if kind != Kind::Predicate => vec![kind.info().fix.to_owned()],
        _ => Vec::new(),
    }
}

/// Where `event` is, for a sentence.
pub(super) fn at(trace: &Trace, event: EventId) -> String {
    let location = trace.names().location(trace.event(event).site);
    match place(location) {
        place if place.is_empty() => format!("event {}", event.number()),
        place => place.into_owned(),
    }
}

/// Whether `event` is in a file of Rust.
fn is_rust(trace: &Trace, event: EventId) -> bool {
    is_in_file(trace, event, ".rs")
}

/// Whether `event` is in a file whose name ends so.
fn is_in_file(trace: &Trace, event: EventId, end: &str) -> bool {
    let location = trace.names().location(trace.event(event).site);
    location.split(':').next().is_some_and(|path| path.ends_with(end))
}

/// Which accesses to strengthen, and how.
fn memory_orders(trace: &Trace, weak: &[WeakAccess]) -> Vec<String> {
    if let Some(lock) = weak.iter().find_map(|it| it.tried_lock(trace)) {
        return vec![format!(
            "An attempt to take `{lock}` that fails orders nothing. The usual fix is to take it, or to tell \
             the other thread by an atomic variable that is stored with release order and loaded with \
             acquire order."
        )];
    }
    let mut weak = weak.to_vec();
    // An update that is too weak on both sides is one line to change.
    weak.dedup_by(|second, first| {
        let is_update =
            |event| matches!(trace.event(event).op, Op::Access(AccessOp::AtomicUpdate(_), _));
        let is_same = trace.event(first.event).site == trace.event(second.event).site
            && is_update(first.event)
            && is_update(second.event);
        if is_same && first.needed != second.needed {
            first.needed = MemoryOrder::AcqRel;
        }
        is_same
    });
    let one = |&WeakAccess { event, needed }: &WeakAccess| {
        let happening = trace.event(event);
        let place = at(trace, event);
        let access = match happening.op {
            Op::Access(AccessOp::AtomicRead(_), _) => "load",
            Op::Access(AccessOp::AtomicWrite(_), _) => "store",
            _ => "read-modify-write",
        };
        let order = match (is_rust(trace, event), needed) {
            (true, MemoryOrder::Release) => "Ordering::Release",
            (true, MemoryOrder::Acquire) => "Ordering::Acquire",
            (true, _) => "Ordering::AcqRel",
            (false, MemoryOrder::Release) => "memory_order_release",
            (false, MemoryOrder::Acquire) => "memory_order_acquire",
            (false, _) => "memory_order_acq_rel",
        };
        format!("`{order}` on the {access} at {place}")
    };
    let needed: Vec<String> = weak.iter().map(one).collect();
    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
    match needed[..] {
        [] => vec![
            "The usual fix is to let the thread that comes first release an atomic variable, and the \
             other acquire it."
                .to_owned(),
        ],
        _ => vec![format!("The usual fix is {}.", listed(&needed))],
    }
}

/// The locks that `site` is under, for a sentence.
fn locks(site: &Site<'_>) -> String {
    let names: Vec<String> = site.locks.iter().map(|(name, _)| format!("`{name}`")).collect();
    listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// How to guard `bare`, which is under no lock, against `guarded`, which is under some.
fn one_sided(trace: &Trace, guarded: EventId, bare: EventId) -> String {
    let site = Site::new(trace, guarded);
    let [here, there] = [guarded, bare].map(|event| at(trace, event));
    let is_alone = |&&(_, mode): &&(&str, Mode)| mode == Mode::Exclusive;
    match site.locks.iter().find(is_alone) {
        None if trace.event(guarded).op.is_write() => format!(
            "{} is held in shared mode at {here}, where the variable is written. The usual fix is to take \
             it for writing there, and around {there} as well.",
            locks(&site)
        ),
        None => format!(
            "The usual fix is to take {} for writing around {there}; it is held in shared mode at \
             {here}.",
            locks(&site)
        ),
        Some((name, _)) if here == there => {
            format!(
                "`{name}` is not always held at {here}. The usual fix is to take it whenever that runs."
            )
        }
        Some((name, _)) => {
            format!(
                "The usual fix is to take `{name}` around {there} as well, as is done at {here}."
            )
        }
    }
}

fn race(trace: &Trace, first: EventId, second: EventId) -> Vec<String> {
    let [one, other] = [first, second].map(|event| Site::new(trace, event));
    let [here, there] = [first, second].map(|event| at(trace, event));
    let is_same_function = one.function().is_some() && one.function() == other.function();
    let shared = one.locks.iter().find(|(name, _)| other.locks.iter().any(|(it, _)| it == name));
    let mut fixes = Vec::new();
    fixes.push(match (one.locks.is_empty(), other.locks.is_empty(), shared) {
        (_, _, Some((name, _))) => format!(
            "Both hold `{name}`, but in shared mode where one of them writes. The usual fix is to take \
             `{name}` for writing around the write."
        ),
        (true, true, None) if here == there => format!(
            "Neither side holds a lock. The usual fix is to take one lock around {here}, which both run."
        ),
        (true, true, None) => format!(
            "Neither side holds a lock. The usual fix is to take the same lock around {here} and \
             {there}{}.",
            if is_same_function {
                ", and to hold it from the first to the last where one thread does both"
            } else {
                ""
            }
        ),
        (false, true, None) => one_sided(trace, first, second),
        (true, false, None) => one_sided(trace, second, first),
        (false, false, None) => format!(
            "Each side holds a lock, but not the same: {} at {here}, {} at {there}. The usual fix is to \
             guard the variable by one of them everywhere.",
            locks(&one),
            locks(&other)
        ),
    });
    let update = [first, second].into_iter().find(|&event| is_update(trace, event));
    let is_read = [first, second].iter().any(|&event| trace.event(event).op.is_read());
    let is_bare = one.locks.is_empty() && other.locks.is_empty();
    if update.is_none() && is_bare && is_read && here != there && is_same_function {
        fixes.push(once(trace, first));
    } else if update.is_none()
        && (is_checked(trace, first, second) || is_checked(trace, second, first))
    {
        fixes.push(
            "If the read without the lock only looks whether the variable is set, it can stay as it is where the \
             variable is atomic: stored with release order and loaded with acquire order."
                .to_owned(),
        );
    } else if update.is_none() && is_bare && is_read && here != there {
        fixes.push(
            "If the variable only tells one thread that another is done, an atomic one is enough: stored with \
             release order and loaded with acquire order."
                .to_owned(),
        );
    }
    if let Some(event) = update {
        fixes.push(format!(
            "{} reads and then writes the variable. If it is a plain counter, an atomic variable \
             is enough; then every access to it must be atomic.",
            at(trace, event)
        ));
    }
    fixes
}

/// How code that sets a variable at first use, as at `event`, runs once.
fn once(trace: &Trace, event: EventId) -> String {
    let how = match (is_rust(trace, event), is_in_file(trace, event, ".c")) {
        (true, _) => "`OnceLock` or `LazyLock`",
        (_, true) => "`pthread_once`",
        _ => "`std::call_once`, or a `static` variable of the function",
    };
    format!(
        "If the variable is set at first use, {how} does that once, whichever thread comes first."
    )
}

/// Whether `bare` reads, under no lock, what `guarded` writes under one.
fn is_checked(trace: &Trace, bare: EventId, guarded: EventId) -> bool {
    let has_locks = |event| !Site::new(trace, event).locks.is_empty();
    let [read, write] = [bare, guarded].map(|event| trace.event(event).op);
    read.is_read() && write.is_write() && !has_locks(bare) && has_locks(guarded)
}

/// Whether `event` is half of an update such as `x += 1`: a read and then a write, at one place.
fn is_update(trace: &Trace, event: EventId) -> bool {
    let happening = trace.event(event);
    let events = trace.thread_events(happening.thread);
    let position = trace.position(event) as usize;
    let other = match happening.op {
        Op::Access(AccessOp::Write, _) => {
            position.checked_sub(1).and_then(|before| events.get(before))
        }
        Op::Access(AccessOp::Read, _) => events.get(position + 1),
        _ => None,
    };
    other.is_some_and(|&other| {
        let other = trace.event(other);
        let is_same = other.site == happening.site && other.op.var() == happening.op.var();
        let is_known = Place::new(trace.names().location(happening.site)).is_some();
        is_known && is_same && other.op.is_write() != happening.op.is_write()
    })
}

fn deadlock(trace: &Trace, finding: &Finding) -> Vec<String> {
    let Some(Goal::Deadlock(events)) = finding.evidence.proof().map(|proof| proof.goal()) else {
        return vec![
            "The usual fix is to take these locks in the same order everywhere.".to_owned(),
        ];
    };
    let names = trace.names();
    let has_lock_of_all =
        !events.iter().any(|&event| is_rust(trace, event) || is_in_file(trace, event, ".c"));
    let waits = waits(trace, events);
    let orders = waits.iter().map(|wait| {
        let thread = names.threads.name(wait.section.thread);
        let [held, wanted] = [wait.section.lock, wait.wants].map(|lock| names.locks.name(lock));
        format!("{thread} takes `{held}` before `{wanted}`")
    });
    let locks: BTreeSet<&str> =
        waits.iter().map(|wait| names.locks.name(wait.section.lock)).collect();
    let order: Vec<String> = locks.iter().map(|name| format!("`{name}`")).collect();
    let orders: Vec<String> = orders.collect();
    let places = |wait: &Wait| [at(trace, wait.section.acquire), at(trace, wait.event)];
    if waits.windows(2).all(|two| places(&two[0]) == places(&two[1])) {
        return vec![format!(
            "{}, at the same lines of code: the caller decides which lock comes first. The usual fix is to acquire \
             them there {}in an order that does not depend on the call, such as that of their addresses.",
            orders.join("; "),
            if has_lock_of_all {
                "at once (`std::scoped_lock` or `std::lock` in C++), or "
            } else {
                ""
            },
        )];
    }
    vec![format!(
        "{}. The usual fix is one order for all of them, say {}, wherever more than one is held. Where that is impossible, {}back off and retry \
         when the next one is taken (`trylock`), or use one lock for both.",
        orders.join("; "),
        order.join(" before "),
        if has_lock_of_all { "acquire all at once (`std::lock` in C++), " } else { "" },
    )]
}

fn atomicity(trace: &Trace, finding: &Finding) -> Vec<String> {
    let names = trace.names();
    let ends = [finding.events.first(), finding.events.last()];
    let [Some(&first), Some(&last)] = ends else { return Vec::new() };
    let held = |event: EventId| -> Vec<&CriticalSection> {
        let sections = trace.sections().held(trace.event(event).thread, event);
        sections.filter(|section| section.mode == Mode::Exclusive).collect()
    };
    let before = held(first);
    let again = held(last);
    let is_taken_twice = |section: &&&CriticalSection| {
        let is_other = |later: &&CriticalSection| {
            later.lock == section.lock && later.acquire != section.acquire
        };
        again.iter().any(is_other)
    };
    let is_one_thread = trace.event(first).thread == trace.event(last).thread;
    match before.iter().find(is_taken_twice).filter(|_| is_one_thread) {
        Some(section) => {
            let is_bare = |&&event: &&EventId| held(event).iter().all(|it| it.lock != section.lock);
            let bare = finding.events.iter().find(is_bare);
            let also = bare.map_or(String::new(), |&event| {
                format!(", and to take it around {} as well", at(trace, event))
            });
            let functions = [first, last].map(|event| Site::new(trace, event).function());
            let is_apart = functions.iter().all(Option::is_some) && functions[0] != functions[1];
            let apart = match is_apart {
                true => " These are in different functions: let their caller hold it, and not them.",
                false => "",
            };
            vec![format!(
                "`{}` is released in the middle of the block and acquired again. The usual fix is to \
                 hold it from {} to {}{also}.{apart}",
                names.locks.name(section.lock),
                at(trace, first),
                at(trace, last),
            )]
        }
        None => vec![
            "The usual fix is to hold one lock over the whole block, and the same lock wherever else \
             these variables are used."
                .to_owned(),
        ],
    }
}
