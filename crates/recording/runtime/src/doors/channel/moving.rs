//! What the kernel moves from one descriptor to another, or to a pipe without a copy.

use super::*;

/// Makes a call that moves bytes from one descriptor to another.
unsafe fn moving(entry: &Entry, from: c_int, to: c_int, call: impl FnOnce() -> isize) -> isize {
    let channel = table::of(from);
    note_send(entry, table::of(to));
    let result = outside(entry.thread, call);
    note_result(entry, channel, result);
    // What was taken is handed over with all that came before it.
    if channel.is_some() {
        note_send(entry, table::of(to));
    }
    result
}

doors! {
    fn sendfile(to: c_int, from: c_int, offset: usize, count: usize) -> isize {
        let entry = enter_or!(real::sendfile(to, from, offset, count));
        moving(&entry, from, to, || real::sendfile(to, from, offset, count))
    }

    fn sendfile64(to: c_int, from: c_int, offset: usize, count: usize) -> isize {
        let entry = enter_or!(real::sendfile64(to, from, offset, count));
        moving(&entry, from, to, || real::sendfile64(to, from, offset, count))
    }

    fn splice(
        from: c_int, from_offset: usize, to: c_int, to_offset: usize, count: usize,
        flags: c_uint,
    ) -> isize {
        let call = || real::splice(from, from_offset, to, to_offset, count, flags);
        let entry = enter_or!(call());
        moving(&entry, from, to, call)
    }

    fn tee(from: c_int, to: c_int, count: usize, flags: c_uint) -> isize {
        let entry = enter_or!(real::tee(from, to, count, flags));
        moving(&entry, from, to, || real::tee(from, to, count, flags))
    }

    fn vmsplice(file: c_int, list: *const Part, count: usize, flags: c_uint) -> isize {
        let call = || real::vmsplice(file, list, count, flags);
        let entry = enter_or!(call());
        taking(&entry, file, parts(list, count), call)
    }
}
