//! Streams of the C library, which read and write descriptors without a call that we could see.
//!
//! What `printf` and its like put into standard output is seen when that is flushed or closed; what
//! writes to a stream that is named is seen at once (`formatted`).

use super::super::text::length;
use super::super::{BUSY, acquire, acquired, release};
use super::*;
use crate::{log, thread};

unsafe extern "C" {
    fn fileno(stream: usize) -> c_int;
}

/// The descriptor of `stream`, or -1.
pub(super) unsafe fn file_of(stream: usize) -> c_int {
    if stream == 0 {
        return -1;
    }
    let error = __errno_location();
    let before = *error;
    let file = fileno(stream);
    // That a stream in memory has none is nothing that the program asked about.
    *error = before;
    file
}

/// Where `stream` leads.
pub(super) unsafe fn channel_of(stream: usize) -> Channel {
    table::of(file_of(stream))
}

/// Makes a call that reads from `stream`; `length` says how many bytes at `address` it filled.
unsafe fn reading<R: Copy>(
    entry: &Entry,
    stream: usize,
    call: impl FnOnce() -> R,
    filled: impl FnOnce(R) -> (usize, usize),
) -> R {
    let channel = channel_of(stream);
    let result = match channel {
        Some(_) => outside(entry.thread, call),
        None => inside(entry.thread, call),
    };
    note_receive(entry, channel, true);
    let (address, length) = filled(result);
    log_range(entry, Kind::WriteRange, address, length);
    result
}

/// Makes a call that writes `length` bytes from `address` to `stream`.
unsafe fn writing<R>(
    entry: &Entry,
    stream: usize,
    address: usize,
    length: usize,
    call: impl FnOnce() -> R,
) -> R {
    log_range(entry, Kind::ReadRange, address, length);
    let channel = channel_of(stream);
    note_send(entry, channel);
    match channel {
        Some(_) => outside(entry.thread, call),
        None => inside(entry.thread, call),
    }
}

/// Makes a call that reads a line from `stream` to memory that it finds at `line`, as much as it finds
/// at `room`, and that it may change for other memory.
unsafe fn getting_line(
    entry: &Entry,
    stream: usize,
    (line, room): (*mut usize, usize),
    call: impl FnOnce() -> isize,
) -> isize {
    let word = size_of::<usize>();
    log_range(entry, Kind::ReadRange, line as usize, word);
    log_range(entry, Kind::ReadRange, room, word);
    let before = (*line, *(room as *const usize));
    let filled = |read| (*line, usize::try_from(read + 1).unwrap_or(0));
    let result = reading(entry, stream, call, filled);
    if before != (*line, *(room as *const usize)) {
        log_range(entry, Kind::WriteRange, line as usize, word);
        log_range(entry, Kind::WriteRange, room, word);
    }
    result
}

/// The bytes of the text at `text` with its end.
unsafe fn text_bytes(text: usize) -> usize {
    if text == 0 { 0 } else { length(text) + 1 }
}

doors! {
    fn fread(to: usize, size: usize, count: usize, stream: usize) -> usize {
        let entry = enter_or!(real::fread(to, size, count, stream));
        let call = || real::fread(to, size, count, stream);
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }

    fn __fread_chk(to: usize, room: usize, size: usize, count: usize, stream: usize) -> usize {
        let call = || real::__fread_chk(to, room, size, count, stream);
        let entry = enter_or!(call());
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }

    fn fgets(to: usize, room: c_int, stream: usize) -> usize {
        let entry = enter_or!(real::fgets(to, room, stream));
        let call = || real::fgets(to, room, stream);
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }

    fn __fgets_chk(to: usize, size: usize, room: c_int, stream: usize) -> usize {
        let call = || real::__fgets_chk(to, size, room, stream);
        let entry = enter_or!(call());
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }

    fn getline(line: *mut usize, room: usize, stream: usize) -> isize {
        let entry = enter_or!(real::getline(line, room, stream));
        let call = || real::getline(line, room, stream);
        getting_line(&entry, stream, (line, room), call)
    }

    fn getdelim(line: *mut usize, room: usize, end: c_int, stream: usize) -> isize {
        let call = || real::getdelim(line, room, end, stream);
        let entry = enter_or!(call());
        getting_line(&entry, stream, (line, room), call)
    }

    // What `getline` is where the header has a shorter way.
    fn __getdelim(line: *mut usize, room: usize, end: c_int, stream: usize) -> isize {
        let call = || real::__getdelim(line, room, end, stream);
        let entry = enter_or!(call());
        getting_line(&entry, stream, (line, room), call)
    }

    fn fgetc(stream: usize) -> c_int {
        let entry = enter_or!(real::fgetc(stream));
        reading(&entry, stream, || real::fgetc(stream), |_| (0, 0))
    }

    fn getc(stream: usize) -> c_int {
        let entry = enter_or!(real::getc(stream));
        reading(&entry, stream, || real::getc(stream), |_| (0, 0))
    }

    fn fwrite(from: usize, size: usize, count: usize, stream: usize) -> usize {
        let entry = enter_or!(real::fwrite(from, size, count, stream));
        let call = || real::fwrite(from, size, count, stream);
        writing(&entry, stream, from, size.wrapping_mul(count), call)
    }

    fn fputs(text: usize, stream: usize) -> c_int {
        let entry = enter_or!(real::fputs(text, stream));
        writing(&entry, stream, text, text_bytes(text), || real::fputs(text, stream))
    }

    fn fputc(character: c_int, stream: usize) -> c_int {
        let entry = enter_or!(real::fputc(character, stream));
        writing(&entry, stream, 0, 0, || real::fputc(character, stream))
    }

    fn putc(character: c_int, stream: usize) -> c_int {
        let entry = enter_or!(real::putc(character, stream));
        writing(&entry, stream, 0, 0, || real::putc(character, stream))
    }

    fn fflush(stream: usize) -> c_int {
        let entry = enter_or!(real::fflush(stream));
        writing(&entry, stream, 0, 0, || real::fflush(stream))
    }

    fn flockfile(stream: usize) -> () {
        let Some(entry) = log::enter(thread::caller()) else {
            return real::flockfile(stream);
        };
        let attempt = || if real::ftrylockfile(stream) == 0 { 0 } else { BUSY };
        let wait = || {
            real::flockfile(stream);
            0
        };
        acquire(&entry, stream, flag::RECURSIVE, attempt, wait);
    }

    fn ftrylockfile(stream: usize) -> c_int {
        let entry = enter_or!(real::ftrylockfile(stream));
        let flags = flag::TRY | flag::RECURSIVE;
        acquired(&entry, stream, flags, real::ftrylockfile(stream))
    }

    fn funlockfile(stream: usize) -> () {
        let Some(entry) = log::enter(thread::caller()) else {
            return real::funlockfile(stream);
        };
        release(&entry, stream);
        real::funlockfile(stream);
    }

    fn fclose(stream: usize) -> c_int {
        let entry = enter_or!(real::fclose(stream));
        let call = || writing(&entry, 0, 0, 0, || real::fclose(stream));
        descriptors::closing(&entry, file_of(stream), call)
    }
}
