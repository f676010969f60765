//! Streams of the C library, which read and write descriptors without a call that we could see, and
//! files that are opened by name.
//!
//! What a stream has in its buffer is taken to be handed over when it is put there: that orders more
//! than it must and never less.

use core::ffi::{c_int, c_uint};

use super::channels;
use super::formats::{Scanned, prints};
use super::io::{closing, leaving, note_open, note_receive, note_send, note_use};
use super::objects::is_instrumented;
use super::program::{log_range, note_handle};
use super::text::{length, variadic_interceptors};
use super::{BUSY, acquire, acquired, flags_of_end, interceptors, keeping_errno, note_caller};
use crate::log::Entry;
use crate::wire::{Kind, flag, handle};

unsafe extern "C" {
    fn fileno(stream: usize) -> c_int;
    fn dirfd(folder: usize) -> c_int;
}

/// The descriptor of `stream`, or -1.
pub unsafe fn file_of(stream: usize) -> c_int {
    if stream == 0 {
        return -1;
    }
    // A stream in memory has none, and the program did not ask.
    keeping_errno(|| fileno(stream))
}

/// The descriptor of the folder at `folder`.
pub unsafe fn folder_file(folder: usize) -> c_int {
    keeping_errno(|| dirfd(folder))
}

/// Code of the program is about to use `stream`, which leads to `file`, or has a life of its own.
unsafe fn note_stream_use(entry: &Entry, stream: usize, file: c_int) {
    if file >= 0 {
        note_use(entry, file);
    } else if stream != 0 && is_instrumented(entry.code) {
        note_handle(entry, handle::STREAM, stream as u64, flag::SHARED);
    }
}

/// Makes a call that reads from `stream`; `length` says how many bytes at `address` it filled.
unsafe fn reading<R: Copy>(
    entry: &Entry,
    stream: usize,
    call: impl FnOnce() -> R,
    filled: impl FnOnce(R) -> (usize, usize),
) -> R {
    entry.note_unsafe_call();
    let file = file_of(stream);
    let channel = channels::of(file);
    note_stream_use(entry, stream, file);
    let result = match channel {
        Some(_) => entry.blocking(call),
        None => within_lock(entry, stream, file, || entry.nonblocking(call)),
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
    entry.note_unsafe_call();
    log_range(entry, Kind::ReadRange, address, length);
    let file = file_of(stream);
    let channel = channels::of(file);
    note_stream_use(entry, stream, file);
    note_send(entry, channel);
    match channel {
        Some(_) => entry.blocking(call),
        None => within_lock(entry, stream, file, || entry.nonblocking(call)),
    }
}

/// Makes a call that reads or writes `stream`. If it leads to no `file`, what it leads to may be code of the program, which
/// the C library calls while it holds the lock of the stream.
unsafe fn within_lock<R>(entry: &Entry, stream: usize, file: c_int, call: impl FnOnce() -> R) -> R {
    if stream == 0 || file >= 0 {
        return call();
    }
    lock(entry, stream, || flockfile::real(stream));
    let result = call();
    entry.log(Kind::Unlock, stream as u64);
    funlockfile::real(stream);
    result
}

/// Acquires the lock of `stream`, which a thread may hold several times.
unsafe fn lock(entry: &Entry, stream: usize, call: impl Fn()) {
    let attempt = || if ftrylockfile::real(stream) == 0 { 0 } else { BUSY };
    let blocking = || {
        call();
        0
    };
    acquire(entry, stream, flag::RECURSIVE, attempt, blocking);
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

// Files that are opened by name, some of which are pipes.
//
// Whoever opens a pipe waits until the other end is open, too: both come after what was done before.

/// The folder from which names start.
const HERE: c_int = -100;

/// Makes a call that opens the file at `path`, seen from `folder`; `file` says as what.
unsafe fn opening<R: Copy>(
    entry: &Entry,
    (folder, path): (c_int, usize),
    call: impl FnOnce() -> R,
    file: impl FnOnce(R) -> c_int,
) -> R {
    let pipe = channels::Status::at(folder, path).and_then(|status| status.pipe());
    let Some(id) = pipe else {
        let result = entry.nonblocking(call);
        note_open(entry, file(result));
        return result;
    };
    note_send(entry, pipe);
    let result = entry.blocking(call);
    let file = note_open(entry, file(result));
    if file >= 0 {
        note_receive(entry, pipe, false);
        channels::set(file, id);
    }
    result
}

/// Makes a call that closes `stream` and opens the file at `path` in its place.
unsafe fn reopening(
    entry: &Entry,
    path: usize,
    stream: usize,
    call: impl FnOnce() -> usize,
) -> usize {
    // Without a path the same file is opened in another mode.
    if path == 0 {
        return entry.nonblocking(call);
    }
    leaving(entry, file_of(stream), || opening(entry, (HERE, path), call, |made| file_of(made)))
}

// Formatted output and input.

/// Makes a call that prints the arguments in `list` by `format` to `stream`: a stream writes when it
/// is full, or always if it has no buffer.
unsafe fn printing(
    entry: &Entry,
    stream: usize,
    (format, list): (usize, usize),
    call: impl FnOnce() -> c_int,
) -> c_int {
    prints(entry, format, list);
    writing(entry, stream, 0, 0, call)
}

/// Makes a call that prints the arguments in `list` by `format` to `file`.
unsafe fn printing_to_file(
    entry: &Entry,
    file: c_int,
    (format, list): (usize, usize),
    call: impl FnOnce() -> c_int,
) -> c_int {
    prints(entry, format, list);
    let channel = channels::of(file);
    note_send(entry, channel);
    match channel {
        Some(_) => entry.blocking(call),
        None => entry.nonblocking(call),
    }
}

/// Makes a call that scans what comes from `stream` by `format` to where the arguments in `list` say.
unsafe fn scanning(
    entry: &Entry,
    stream: usize,
    (format, list): (usize, usize),
    call: impl FnOnce() -> c_int,
) -> c_int {
    let scanned = Scanned::new(entry, format, list);
    let result = reading(entry, stream, call, |_| (0, 0));
    scanned.written(entry, format, result);
    result
}

unsafe extern "C" {
    static stdin: usize;
    static stdout: usize;
}

variadic_interceptors! {
    printf: "1", "rsi" => vprintf;
    fprintf: "2", "rdx" => vfprintf;
    dprintf: "2", "rdx" => vdprintf;
    __printf_chk: "2", "rdx" => __vprintf_chk;
    __fprintf_chk: "3", "rcx" => __vfprintf_chk;
    __dprintf_chk: "3", "rcx" => __vdprintf_chk;
    scanf: "1", "rsi" => vscanf;
    fscanf: "2", "rdx" => vfscanf;
    __isoc99_scanf: "1", "rsi" => __isoc99_vscanf;
    __isoc99_fscanf: "2", "rdx" => __isoc99_vfscanf;
}

interceptors! {
    // Streams of the C library, which read and write descriptors without a call that we could see.
    fn fread(to: usize, size: usize, count: usize, stream: usize) -> usize |entry, call| {
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }
    fn __fread_chk(to: usize, room: usize, size: usize, count: usize, stream: usize) -> usize |entry, call| {
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }
    fn fgets(to: usize, room: c_int, stream: usize) -> usize |entry, call| {
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }
    fn __fgets_chk(to: usize, size: usize, room: c_int, stream: usize) -> usize |entry, call| {
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }
    fn getline(line: *mut usize, room: usize, stream: usize) -> isize |entry, call| {
        getting_line(&entry, stream, (line, room), call)
    }
    fn [getdelim __getdelim](
        line: *mut usize, room: usize, end: c_int, stream: usize,
    ) -> isize |entry, call| {
        getting_line(&entry, stream, (line, room), call)
    }
    fn [fgetc getc](stream: usize) -> c_int |entry, call| { reading(&entry, stream, call, |_| (0, 0)) }
    fn fwrite(from: usize, size: usize, count: usize, stream: usize) -> usize |entry, call| {
        writing(&entry, stream, from, size.wrapping_mul(count), call)
    }
    fn puts(text: usize) -> c_int |entry, call| {
        writing(&entry, stdout, text, text_bytes(text), call)
    }
    fn vprintf(format: usize, list: usize) -> c_int |entry, call| {
        printing(&entry, stdout, (format, list), call)
    }
    fn vfprintf(stream: usize, format: usize, list: usize) -> c_int |entry, call| {
        printing(&entry, stream, (format, list), call)
    }
    fn vdprintf(file: c_int, format: usize, list: usize) -> c_int |entry, call| {
        printing_to_file(&entry, file, (format, list), call)
    }
    fn __vprintf_chk(flag: c_int, format: usize, list: usize) -> c_int |entry, call| {
        printing(&entry, stdout, (format, list), call)
    }
    fn __vfprintf_chk(stream: usize, flag: c_int, format: usize, list: usize) -> c_int |entry, call| {
        printing(&entry, stream, (format, list), call)
    }
    fn __vdprintf_chk(file: c_int, flag: c_int, format: usize, list: usize) -> c_int |entry, call| {
        printing_to_file(&entry, file, (format, list), call)
    }
    fn [vscanf __isoc99_vscanf](format: usize, list: usize) -> c_int |entry, call| {
        scanning(&entry, stdin, (format, list), call)
    }
    fn [vfscanf __isoc99_vfscanf](stream: usize, format: usize, list: usize) -> c_int |entry, call| {
        scanning(&entry, stream, (format, list), call)
    }
    fn fputs(text: usize, stream: usize) -> c_int |entry, call| {
        writing(&entry, stream, text, text_bytes(text), call)
    }
    fn [fputc putc](character: c_int, stream: usize) -> c_int |entry, call| {
        writing(&entry, stream, 0, 0, call)
    }
    fn fflush(stream: usize) -> c_int |entry, call| { writing(&entry, stream, 0, 0, call) }
    fn flockfile(stream: usize) -> () |entry, call| {
        lock(&entry, stream, call);
    }
    fn ftrylockfile(stream: usize) -> c_int |entry, call| {
        let result = call();
        let answer = if result == 0 { 0 } else { BUSY };
        acquired(&entry, stream, flag::TRY | flag::RECURSIVE, answer);
        result
    }
    fn funlockfile(stream: usize) -> () |entry, call| {
        entry.log(Kind::Unlock, stream as u64);
        call();
    }
    fn fclose(stream: usize) -> c_int |entry, call| {
        let file = file_of(stream);
        if file < 0 && stream != 0 {
            note_handle(&entry, handle::STREAM, stream as u64, flag::OUT | flags_of_end(&entry));
        }
        closing(&entry, file, || writing(&entry, 0, 0, 0, call))
    }

    // Files that are opened by name, some of which are pipes.
    fn [open open64](path: usize, flags: c_int, mode: c_uint) -> c_int |entry, call| {
        opening(&entry, (HERE, path), call, |file| file)
    }
    fn [openat openat64](folder: c_int, path: usize, flags: c_int, mode: c_uint) -> c_int |entry, call| {
        opening(&entry, (folder, path), call, |file| file)
    }
    fn [creat creat64](path: usize, mode: c_uint) -> c_int |entry, call| {
        opening(&entry, (HERE, path), call, |file| file)
    }
    fn [__open_2 __open64_2](path: usize, flags: c_int) -> c_int |entry, call| {
        opening(&entry, (HERE, path), call, |file| file)
    }
    fn [__openat_2 __openat64_2](folder: c_int, path: usize, flags: c_int) -> c_int |entry, call| {
        opening(&entry, (folder, path), call, |file| file)
    }
    fn [fopen fopen64](path: usize, mode: usize) -> usize |entry, call| {
        opening(&entry, (HERE, path), call, |made| file_of(made))
    }
    fn opendir(path: usize) -> usize |entry, call| {
        log_range(&entry, Kind::ReadRange, path, length(path) + 1);
        let folder = entry.nonblocking(call);
        if folder != 0 {
            note_open(&entry, dirfd(folder));
        }
        folder
    }
    fn closedir(folder: usize) -> c_int |entry, call| {
        let file = if folder == 0 { -1 } else { dirfd(folder) };
        closing(&entry, file, || entry.nonblocking(call))
    }
    fn [mkstemp mkstemp64](path: usize) -> c_int |entry, call| { note_open(&entry, entry.nonblocking(call)) }
    fn [mkostemp mkostemp64](path: usize, flags: c_int) -> c_int |entry, call| {
        note_open(&entry, entry.nonblocking(call))
    }
    fn shm_open(name: usize, flags: c_int, mode: c_uint) -> c_int |entry, call| {
        note_open(&entry, entry.nonblocking(call))
    }
    fn [tmpfile tmpfile64]() -> usize |entry, call| {
        let stream = entry.nonblocking(call);
        note_open(&entry, file_of(stream));
        stream
    }
    fn [freopen freopen64](path: usize, mode: usize, stream: usize) -> usize |entry, call| {
        reopening(&entry, path, stream, call)
    }
}
