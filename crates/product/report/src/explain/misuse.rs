//! What is wrong with a misuse, and how it is repaired: by its kind.

use reweave_analysis::Finding;
use reweave_trace::{EventId, MisuseKind, Trace};

/// What kind of misuse `finding` is.
fn kind(trace: &Trace, finding: &Finding) -> Option<MisuseKind> {
    let (&event, other) = (finding.events.first()?, finding.events.get(1).copied());
    let mut misuses = trace.run_end()?.misuses.iter();
    misuses.find(|misuse| misuse.event == event && misuse.other == other).map(|it| it.kind)
}

/// What the thread of `event` does there, if that is a misuse; a trace has no operation for it.
pub fn action(trace: &Trace, event: EventId) -> Option<&'static str> {
    let misuse = trace.run_end()?.misuses.iter().find(|misuse| misuse.event == event)?;
    Some(match misuse.kind {
        MisuseKind::ReleaseNotHeld | MisuseKind::ReleaseOfOthers => {
            "releases a mutex that it does not hold"
        }
        MisuseKind::DestroyHeld => "destroys a mutex that is held",
        MisuseKind::WaitWithoutLock => "waits without the lock",
        MisuseKind::ThreadLeak => "ends, neither joined nor detached",
        MisuseKind::DoubleFree => "frees memory that is free",
        MisuseKind::UseDestroyed => "uses what was destroyed",
        MisuseKind::UseClosed => "uses a file descriptor that is closed",
        MisuseKind::UnsafeInHandler => "calls a function that is not safe in a signal handler",
        MisuseKind::UseFreed => "uses memory that was freed",
        MisuseKind::UseJoined => "uses the handle of a thread that is gone",
    })
}

/// Why `finding` is a fault; none if its kind is not known.
pub fn why(trace: &Trace, finding: &Finding) -> Option<&'static str> {
    Some(match kind(trace, finding)? {
        MisuseKind::ReleaseNotHeld | MisuseKind::ReleaseOfOthers => {
            "Only the thread that acquired a mutex may release it. What happens otherwise is not defined: it \
             may work with this library and not with the next one, and the mutex does not guard what it should, \
             since its holder is put out without knowing."
        }
        MisuseKind::DestroyHeld => {
            "A mutex that is held must not be destroyed: its holder still relies on it, and releases memory that \
             is no mutex any more."
        }
        MisuseKind::WaitWithoutLock => {
            "A wait on a condition gives up a lock and takes it again. Without holding the lock, what the wait \
             does is not defined, and a notify can be lost."
        }
        MisuseKind::ThreadLeak => {
            "A thread that ends and is neither joined nor detached keeps its memory as long as the program runs."
        }
        MisuseKind::DoubleFree => {
            "Memory that is freed twice may be given to two parts of the program at once, and the allocator's \
             own lists are damaged: the program fails later, and elsewhere."
        }
        MisuseKind::UseDestroyed => {
            "What a destroyed lock does is not defined. It may keep nobody out, or never let anybody in."
        }
        MisuseKind::UseClosed => {
            "The number of a closed file descriptor is given to the next file that is opened: the use then reads \
             or writes there."
        }
        MisuseKind::UnsafeInHandler => {
            "A handler of a signal may interrupt the very function that it calls: `malloc`, `printf` and locks \
             then find their own data half changed, or wait for themselves."
        }
        MisuseKind::UseFreed => {
            "Memory that was freed may hold anything by now: nothing, or what belongs to another part of the \
             program."
        }
        MisuseKind::UseJoined => {
            "The handle of a thread is gone once the thread was joined, and it belongs to nobody once it was \
             detached. Another thread may have the same handle by then, or nobody: to use it is not defined."
        }
    })
}

/// What usually repairs `finding`; none if its kind is not known.
pub fn fix(trace: &Trace, finding: &Finding) -> Option<&'static str> {
    Some(match kind(trace, finding)? {
        MisuseKind::ReleaseNotHeld => {
            "The usual fix is one release for each time that the thread acquires the mutex, on every way through \
             the code."
        }
        MisuseKind::ReleaseOfOthers => {
            "The usual fix is to release the mutex in the thread that acquired it. To let one thread wait until \
             another is done, use a semaphore, or a condition with a flag."
        }
        MisuseKind::DestroyHeld => {
            "The usual fix is to destroy the mutex when all threads that use it have ended, after they were \
             joined."
        }
        MisuseKind::WaitWithoutLock => {
            "The usual fix is to take the lock before the wait, look at what is waited for under it, and wait in \
             a loop."
        }
        MisuseKind::ThreadLeak => {
            "The usual fix is to join the thread, or to detach it when it is started."
        }
        MisuseKind::DoubleFree => {
            "The usual fix is one owner that frees the memory; whoever hands it on does not free it."
        }
        MisuseKind::UseDestroyed => {
            "The usual fix is to destroy the lock when nobody can use it any more: after all threads that do were \
             joined."
        }
        MisuseKind::UseClosed => {
            "The usual fix is one owner that closes the descriptor, when nobody can use it any more; join the \
             threads that use it before."
        }
        MisuseKind::UnsafeInHandler => {
            "The usual fix is to set an atomic flag in the handler, or to write to a pipe, and to do the rest \
             elsewhere."
        }
        MisuseKind::UseFreed => {
            "The usual fix is to free the memory after its last use, by its last user."
        }
        MisuseKind::UseJoined => {
            "The usual fix is one owner of the thread, which joins it or detaches it once, after the last use of \
             its handle."
        }
    })
}
