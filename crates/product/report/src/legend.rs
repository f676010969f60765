//! What the names in a finding mean: what the program calls its threads and who started them, and what recorders call things
//! that have no name in the program, such as `Item#1`.

use std::sync::OnceLock;

use reweave_analysis::Finding;
use reweave_base::IndexVec;
use reweave_trace::{EventId, LockId, LockOp, ObjectId, ObjectOp, Op, ThreadId, Trace, VarId};

use crate::shown::shown;
use crate::site::{brief_place, own_place};

/// How many threads and names are explained.
const EXPLAINED_MAX: usize = 4;

/// Answers about the names of one trace.
#[derive(Debug)]
pub struct Legend<'t> {
    trace: &'t Trace,
    /// Where each object was born, found when it is first asked for.
    births: OnceLock<IndexVec<ObjectId, Option<EventId>>>,
}

impl<'t> Legend<'t> {
    pub const fn new(trace: &'t Trace) -> Self {
        Self { trace, births: OnceLock::new() }
    }

    /// What readers must know of the names in `finding`, a sentence without its full stop each;
    /// nothing of a state, in which no event is at fault.
    pub fn lines(&self, finding: &Finding) -> Vec<String> {
        if finding.detail.state().is_some() {
            return Vec::new();
        }
        let lines = [self.threads(finding), self.names(finding)];
        lines.into_iter().flatten().map(|line| shown(&line).into_owned()).collect()
    }

    /// Where the threads of `finding` were started, and what the program calls them, in a sentence; none if the trace
    /// does not say.
    fn threads(&self, finding: &Finding) -> Option<String> {
        let mut threads: Vec<ThreadId> =
            finding.events.iter().map(|&event| self.trace.event(event).thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let start = |&thread: &ThreadId| {
            let fork = self.trace.lifetime(thread).fork?;
            Some((self.called(thread), self.at(fork, "")))
        };
        let starts = threads.iter().filter_map(start);
        let starts = starts.enumerate().map(|(at, (thread, place))| match at {
            0 => format!("{thread} was started{place}"),
            _ => format!("{thread}{place}"),
        });
        // Of the first thread no trace says who started it.
        let is_first = |thread: &ThreadId| self.trace.lifetime(*thread).fork.is_none();
        let first = threads.iter().filter(|&thread| is_first(thread)).filter_map(|&thread| {
            let name = given_name(self.trace, thread)?;
            Some(format!("{} is called `{name}`", self.trace.names().threads.name(thread)))
        });
        let parts: Vec<String> = starts.chain(first).take(EXPLAINED_MAX).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The name of `thread` in the trace, with what the program calls it.
    fn called(&self, thread: ThreadId) -> String {
        let name = self.trace.names().threads.name(thread);
        match given_name(self.trace, thread) {
            Some(given) => format!("{name} `{given}`"),
            None => name.to_owned(),
        }
    }

    /// What the names in `finding` mean that the recorder made up.
    fn names(&self, finding: &Finding) -> Option<String> {
        // Only recorders make names up; those of other traces are the program's own.
        self.trace.origins()?;
        let (mut vars, mut locks) = (Vec::new(), Vec::new());
        for &event in &finding.events {
            let happening = self.trace.event(event);
            vars.extend(happening.op.var());
            locks.extend(asked_for(happening.op));
            let held = self.trace.sections().held(happening.thread, event);
            locks.extend(held.map(|section| section.lock));
        }
        vars.sort_unstable();
        vars.dedup();
        locks.sort_unstable();
        locks.dedup();
        let vars = vars.into_iter().filter_map(|var| self.var(var));
        let locks = locks.into_iter().filter_map(|lock| self.lock(lock));
        let mut lines: Vec<String> = vars.chain(locks).collect();
        lines.dedup();
        lines.truncate(EXPLAINED_MAX);
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    /// What a variable without a symbol of its own is.
    fn var(&self, var: VarId) -> Option<String> {
        let name = self.trace.names().vars.name(var);
        if name.starts_with("memory#") {
            let what = "memory without a symbol, such as a stack or a mapping";
            return Some(format!("{name} is in {what}"));
        }
        self.part(name)
    }

    /// What a lock without a symbol of its own is.
    fn lock(&self, lock: LockId) -> Option<String> {
        let name = self.trace.names().locks.name(lock);
        if !name.starts_with("lock#") {
            return self.part(name);
        }
        let sections = self.trace.sections();
        let first = sections.on_lock(lock).first()?;
        let taken = self.at(sections.get(*first).acquire, "first acquired");
        Some(format!("{name} is a lock outside global variables, {taken}"))
    }

    /// What a variable or a lock called `name` is in, if that is allocated memory or the frame of a function.
    fn part(&self, name: &str) -> Option<String> {
        if let Some((function, variable)) = local(name) {
            return Some(format!("{variable} is a local variable of {function}"));
        }
        let names = self.trace.names();
        let id = names.object_around(name)?;
        let object = names.objects.name(id);
        if names.is_frame(id) {
            return Some(format!("{object} is what threads share of the variables of a function"));
        }
        let birth = self.births().get(id).copied().flatten()?;
        let born = self.at(birth, "allocated");
        let offset = name[object.len()..].strip_prefix('+');
        Some(match offset.filter(|offset| offset.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(offset) => format!("{name} is byte {offset} of {object}, {born}"),
            None => format!("{object} was {born}"),
        })
    }

    /// `verb` where and by whom `event` was.
    fn at(&self, event: EventId, verb: &str) -> String {
        let (happening, names) = (self.trace.event(event), self.trace.names());
        let place = brief_place(own_place(self.trace, event));
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        let verb = match happening.op {
            Op::Object(ObjectOp::Alloc, object)
                if names.objects.name(object).starts_with("descriptor(") =>
            {
                "opened"
            }
            _ => verb,
        };
        format!("{verb}{at} by {}", names.threads.name(happening.thread))
    }

    fn births(&self) -> &IndexVec<ObjectId, Option<EventId>> {
        // A pass over the whole trace, so only if some name needs it.
        self.births.get_or_init(|| {
            let mut births = IndexVec::from_elem(None, self.trace.names().objects.len());
            for (id, event) in self.trace.events() {
                if let Op::Object(ObjectOp::Alloc, object) = event.op {
                    births[object] = Some(id);
                }
            }
            births
        })
    }
}

/// What the program calls `thread`, fit to stand between backquotes.
fn given_name(trace: &Trace, thread: ThreadId) -> Option<String> {
    Some(trace.names().given_name(thread)?.replace('`', "'"))
}

/// The function and the variable of `main().pool.size`, if `name` is of that form.
fn local(name: &str) -> Option<(&str, &str)> {
    let (function, rest) = name.split_once("()")?;
    let (number, path) = rest.split_once('.')?;
    let is_number = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    let is_numbered = number.strip_prefix('#').is_some_and(is_number);
    (number.is_empty() || is_numbered).then_some(())?;
    let end = path.find(['.', '[', '+', '\'']).unwrap_or(path.len());
    let function = function.rsplit_once(").").map_or(function, |(_, function)| function);
    Some((function, &path[..end]))
}

/// The lock that `op` asks for or takes.
pub const fn asked_for(op: Op) -> Option<LockId> {
    match op {
        Op::Lock(
            LockOp::Acquire | LockOp::AcquireShared | LockOp::Request | LockOp::RequestExclusive,
            lock,
        ) => Some(lock),
        _ => None,
    }
}
