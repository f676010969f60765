//! What functions of the C library read and write in the program's memory, a line for each.
//!
//! A line says how the function is called, its name or names and its arguments; then what it reads,
//! in brackets; then, after a test of its result, what it wrote. What it reads is logged before the call
//! and what it wrote after it, as the program's own accesses where the program called it. The lengths
//! are what the function promises to look at, not what it might: a text up to its end, as many bytes as
//! the result says.
//!
//! All arguments and results are whole registers. Of a number that is an `int` only the lower half is
//! defined, so rules that use one cast it.
//!
//! Which functions are here is decided by what ThreadSanitizer intercepts; a test compares the lists.

use core::ffi::c_int;

use super::memory::allocated;
use super::program::log_range;
use super::text::{compared, length, length_within};
use super::{interceptors, io, streams};
use crate::log::Entry;
use crate::wire::Kind;

// How functions are called.

/// A function that takes no lock that another thread may hold and calls nothing of the program's.
unsafe fn pure<R>(_: &Entry, call: impl FnOnce() -> R) -> R {
    call()
}

/// A function that may take a lock of the library, calls a function of the program, or has to do with the
/// signals that the thread blocks: those are the program's own only outside of the runtime.
unsafe fn calls<R>(entry: &Entry, call: impl FnOnce() -> R) -> R {
    entry.nonblocking(call)
}

/// A function that may let signals through that the thread blocked.
unsafe fn unblocks<R>(entry: &Entry, call: impl FnOnce() -> R) -> R {
    entry.receiving_signals(call)
}

/// A function that may wait for another thread or process.
unsafe fn waits<R>(entry: &Entry, call: impl FnOnce() -> R) -> R {
    entry.blocking(call)
}

// What they access.

/// `count` bytes at `from` are read, if `from` is anywhere.
pub unsafe fn reads(entry: &Entry, from: usize, count: usize) {
    if from != 0 {
        log_range(entry, Kind::ReadRange, from, count);
    }
}

/// `count` bytes at `to` are written, if `to` is anywhere.
pub unsafe fn writes(entry: &Entry, to: usize, count: usize) {
    if to != 0 {
        log_range(entry, Kind::WriteRange, to, count);
    }
}

/// What is at `place` is read and written.
unsafe fn changes(entry: &Entry, place: usize, count: usize) {
    reads(entry, place, count);
    writes(entry, place, count);
}

/// A text is read with its end.
pub unsafe fn text(entry: &Entry, text: usize) {
    if text != 0 {
        reads(entry, text, length(text) + 1);
    }
}

/// A text is read, at most `most` bytes of it.
pub unsafe fn text_within(entry: &Entry, text: usize, most: usize) {
    if text != 0 {
        reads(entry, text, (length_within(text, most) + 1).min(most));
    }
}

/// A text was written.
unsafe fn writes_text(entry: &Entry, to: usize) {
    writes(entry, to, length(to) + 1);
}

/// A text was written if it was to `to`, and is one of the library's own if not.
unsafe fn writes_text_at(entry: &Entry, made: usize, to: usize) {
    if made == to {
        writes_text(entry, made);
    }
}

/// A text was written, to `given` memory or to a block that was allocated for it.
unsafe fn makes_text(entry: &Entry, made: usize, given: usize) {
    if given == 0 {
        allocated(entry, made, length(made) + 1);
    }
    writes_text(entry, made);
}

const WIDE: usize = 4;

/// The characters of the wide text at `text`, of which at most `most` are looked at.
unsafe fn wide_length(text: usize, most: usize) -> usize {
    (0..most).position(|place| *((text + WIDE * place) as *const u32) == 0).unwrap_or(most)
}

/// A wide text is read with its end.
pub unsafe fn wide(entry: &Entry, text: usize) {
    if text != 0 {
        reads(entry, text, WIDE * (wide_length(text, usize::MAX) + 1));
    }
}

/// At most `most` characters of a wide text are read.
pub unsafe fn wide_within(entry: &Entry, text: usize, most: usize) {
    if text != 0 {
        reads(entry, text, WIDE * (wide_length(text, most) + 1).min(most));
    }
}

/// A wide text was put behind the `before` characters at `to`.
unsafe fn adds_wide(entry: &Entry, to: usize, before: usize) {
    writes(entry, to + WIDE * before, WIDE * (wide_length(to + WIDE * before, usize::MAX) + 1));
}

/// A text or wide text of `count` units of `unit` bytes was converted into the room for `most` at
/// `to`, with its end if there was room.
unsafe fn converts(entry: &Entry, to: usize, unit: usize, count: usize, most: usize) {
    writes(entry, to, unit * (count + 1).min(most));
}

/// The pointer at `place`.
unsafe fn pointer(place: usize) -> usize {
    *(place as *const usize)
}

/// The `int` at `place`.
unsafe fn int(place: usize) -> usize {
    usize::try_from(*(place as *const c_int)).unwrap_or(0)
}

/// A record of `count` bytes was written with what it points to, and a pointer to it at `result`, if
/// one was found.
unsafe fn writes_record(
    entry: &Entry,
    (record, count): (usize, usize),
    (texts, texts_length): (usize, usize),
    result: usize,
) {
    writes(entry, result, POINTER);
    if pointer(result) != 0 {
        writes(entry, record, count);
        // All of the room is the function's to write to.
        writes(entry, texts, texts_length);
    }
}

/// A directory entry was written.
unsafe fn writes_entry(entry: &Entry, directory_entry: usize) {
    const LENGTH: usize = 16;
    if directory_entry != 0 {
        writes(entry, directory_entry, usize::from(*((directory_entry + LENGTH) as *const u16)));
    }
}

/// The bytes of an address of the family `family`.
const fn address_bytes(family: usize) -> usize {
    const INTERNET: c_int = 2;
    if family as c_int == INTERNET { 4 } else { 16 }
}

/// The list of addresses at `first` was written.
unsafe fn writes_addresses(entry: &Entry, first: usize) {
    const ADDRESS_LENGTH: usize = 16;
    const ADDRESS: usize = 24;
    const NAME: usize = 32;
    const NEXT: usize = 40;
    let mut at = first;
    while at != 0 {
        writes(entry, at, 48);
        writes(entry, pointer(at + ADDRESS), int(at + ADDRESS_LENGTH));
        if pointer(at + NAME) != 0 {
            writes_text(entry, pointer(at + NAME));
        }
        at = pointer(at + NEXT);
    }
}

/// What is in the folder at `folder` is looked at.
unsafe fn uses_folder(entry: &Entry, folder: usize) {
    if folder != 0 {
        io::note_use(entry, streams::folder_file(folder));
    }
}

/// The handle of a file at `handle` takes so many bytes.
unsafe fn handle_bytes(handle: usize) -> usize {
    if handle == 0 { 0 } else { 8 + int(handle) }
}

/// What a token that ends before the end of the text, which was at `end`, is ended by was written.
unsafe fn ends_token(entry: &Entry, token: usize, end: usize) {
    text(entry, token);
    let token_end = token + length(token);
    if token_end < end {
        writes(entry, token_end, 1);
    }
}

/// The end of the text at `text`, or nothing.
unsafe fn end_of(text: usize) -> usize {
    if text == 0 { 0 } else { text + length(text) }
}

// When they did.

const fn always(_: usize) -> bool {
    true
}

/// The result is an `int` that says that all went well.
const fn zero(result: usize) -> bool {
    result as c_int == 0
}

/// The result is a pointer to something, or a count of at least one.
const fn some(result: usize) -> bool {
    result != 0
}

/// The result is a count of bytes, not an error.
const fn count(result: usize) -> bool {
    result as isize > 0
}

/// The result is a count as an `int`, not an error.
const fn int_count(result: usize) -> bool {
    result as c_int > 0
}

/// The result is not the count that says that a text cannot be converted.
const fn converted(result: usize) -> bool {
    result != usize::MAX
}

// How many bytes.

const INT: usize = size_of::<c_int>();
const POINTER: usize = size_of::<usize>();
const TIME: usize = 8;
const TIMES: usize = 16;
const TIMER: usize = 32;
const LIMITS: usize = 16;
const CALENDAR: usize = 56;
const STATUS: usize = 144;
const FILE_SYSTEM: usize = 120;
const FILE_SYSTEM_V: usize = 112;
/// What the kernel knows of a set of signals; the rest of a `sigset_t` is not looked at.
const SIGNALS: usize = 8;
const USER: usize = 48;
const GROUP: usize = 32;
const HOST: usize = 32;
const PROTOCOL: usize = 24;
const RANDOM_STATE: usize = 24;

/// Defines interceptors by what functions access.
macro_rules! accesses {
    ($($how:ident $names:tt ($($argument:ident),* $(,)?)
        [$($before:ident($($operand:expr),*)),*]
        $($when:ident $result:ident => $($after:ident($($written:expr),*)),+)?;)*) => {
        interceptors! {
            $(
                fn $names($($argument: usize),*) -> usize |entry, call| {
                    $($before(&entry, $($operand),*);)*
                    let result = $how(&entry, call);
                    $(
                        let $result = result;
                        if $when(result) {
                            $($after(&entry, $($written),*);)+
                        }
                    )?
                    result
                }
            )*
        }
    };
}

accesses! {
    // Texts.
    pure strdup(from) [text(from)] some made => makes_text(made, 0);
    pure strndup(from, most) [text_within(from, most)] some made => makes_text(made, 0);
    pure [strstr strcasestr](within, part) [text(within), text(part)];
    pure memmem(from, size, part, part_size) [reads(from, size), reads(part, part_size)];
    pure memrchr(from, byte, size) [reads(from, size)];
    pure strrchr(from, byte) [text(from)];
    pure strchrnul(from, byte) [] always found => reads(from, found - from + 1);
    pure strnlen(from, most) [] always size => reads(from, (size + 1).min(most));
    pure [strspn strcspn](from, set) [text(set)] always size => reads(from, size + 1);
    pure strpbrk(from, set) [text(set), text(from)];
    pure strcasecmp(first, second) [compared(first, second, usize::MAX, u8::to_ascii_lowercase)];
    pure strncasecmp(first, second, most) [compared(first, second, most, u8::to_ascii_lowercase)];
    pure strxfrm(to, from, room) [text(from)] always size => converts(to, 1, size, room);
    calls mktime(calendar) [] always done => changes(calendar, CALENDAR);

    // Files.
    calls [stat stat64 lstat lstat64](path, status) [text(path)] zero done => writes(status, STATUS);
    calls [fstat fstat64](file, status) [] zero done => writes(status, STATUS);
    calls [fstatat fstatat64](folder, path, status, flags) [text(path)]
        zero done => writes(status, STATUS);
    calls readlink(path, to, room) [text(path)] count size => writes(to, size);
    pure realpath(path, to) [text(path)] some made => makes_text(made, to);
    calls [unlink rmdir](path) [text(path)];
    calls [readdir readdir64](folder) [uses_folder(folder)] some found => writes_entry(found);

    // The program's own functions are called for what these compare.
    calls qsort(first, number, size, compare) [reads(first, number * size)]
        always done => writes(first, number * size);
    calls qsort_r(first, number, size, compare, argument) [reads(first, number * size)]
        always done => writes(first, number * size);

    // Signals.
    unblocks [sigprocmask pthread_sigmask](how, new, old) [reads(new, SIGNALS)]
        zero done => writes(old, SIGNALS);
    calls sigpending(set) [] zero done => writes(set, SIGNALS);
    pure [sigemptyset sigfillset](set) [] zero done => writes(set, SIGNALS);

    // Numbers at random.
    pure rand_r(seed) [changes(seed, INT)];
}

/// What not every program that is linked statically should have in it: the linker warns of some, and
/// the others are rarely called.
#[cfg(not(reweave_static))]
pub mod rare {
    use crate::interceptors::{libraries, real_dlsym};
    use crate::wire::flag;

    use super::*;

    accesses! {
        // Texts.
        pure __strndup(from, most) [text_within(from, most)] some made => makes_text(made, 0);
        pure [strxfrm_l __strxfrm_l](to, from, room, locale) [text(from)]
            always size => converts(to, 1, size, room);
        pure strptime(from, format, calendar) [text(from), text(format)]
            some end => writes(calendar, CALENDAR);
        pure strerror_r(error, to, room) [] some made => writes_text_at(made, to);
        pure __xpg_strerror_r(error, to, room) [] zero done => writes_text(to);
        pure wcslen(from) [] always size => reads(from, WIDE * (size + 1));
        pure wcsnlen(from, most) [] always size => reads(from, WIDE * (size + 1).min(most));
        pure wcsdup(from) [wide(from)] some made => allocated(made, WIDE * (wide_length(made, usize::MAX) + 1)), adds_wide(made, 0);
        pure wcscpy(to, from) [wide(from)] always done => adds_wide(to, 0);
        pure wcsncpy(to, from, room) [wide_within(from, room)] always done => writes(to, WIDE * room);
        pure [wmemcpy wmemmove](to, from, count) [reads(from, WIDE * count)]
            always done => writes(to, WIDE * count);
        pure wmemset(to, character, count) [] always done => writes(to, WIDE * count);
        pure stpncpy(to, from, room) [text_within(from, room)] always done => writes(to, room);
        pure memccpy(to, from, byte, size) []
            always end => reads(from, copied(to, end, size)), writes(to, copied(to, end, size));
        pure swab(from, to, size) [reads(from, swapped(size))] always done => writes(to, swapped(size));
        pure [wcsxfrm](to, from, room) [wide(from)] always size => converts(to, WIDE, size, room);
        pure [wcsxfrm_l __wcsxfrm_l](to, from, room, locale) [wide(from)]
            always size => converts(to, WIDE, size, room);
        pure mbstowcs(to, from, room) [text(from)] converted size => converts(to, WIDE, size, room);
        pure wcstombs(to, from, room) [wide(from)] converted size => converts(to, 1, size, room);
        pure mbsrtowcs(to, from, room, state) [text(pointer(from))]
            converted size => converts(to, WIDE, size, room), writes(from, POINTER);
        pure mbsnrtowcs(to, from, most, room, state) [text_within(pointer(from), most)]
            converted size => converts(to, WIDE, size, room), writes(from, POINTER);
        pure wcsrtombs(to, from, room, state) [wide(pointer(from))]
            converted size => converts(to, 1, size, room), writes(from, POINTER);
        pure wcsnrtombs(to, from, most, room, state) [wide_within(pointer(from), most)]
            converted size => converts(to, 1, size, room), writes(from, POINTER);
        pure wcrtomb(to, character, state) [] converted size => writes(to, size);
        pure wctomb(to, character) [] int_count size => writes(to, size as c_int as usize);
        pure setlocale(category, name) [text(name)];
        pure textdomain(name) [text(name)];
        pure __bzero(to, size) [writes(to, size)];
        pure regcomp(expression, pattern, flags) [text(pattern)] zero done => writes(expression, 64);
        pure regexec(expression, within, number, matches, flags) [reads(expression, 64), text(within)]
            zero done => writes(matches, 8 * number);
        pure regerror(error, expression, to, room) [] some size => writes(to, size.min(room));

        // Containers.
        pure insque(element, before) [] always done => linked(element, before);
        pure remque(element) [unlinked(element)];
        calls [tsearch tfind tdelete](key, root, compare) [comes_after(root)] always done => hands_over(root);

        // Times.
        calls [gmtime localtime](time) [reads(time, TIME)] some made => writes(made, CALENDAR);
        calls ctime(time) [reads(time, TIME)] some made => writes_text(made);
        calls ctime_r(time, to) [reads(time, TIME)] some made => writes_text(made);
        calls asctime(calendar) [reads(calendar, CALENDAR)] some made => writes_text(made);
        calls asctime_r(calendar, to) [reads(calendar, CALENDAR)] some made => writes_text(made);
        pure strftime(to, room, format, calendar) [text(format), reads(calendar, CALENDAR)]
            some size => writes(to, size + 1);
        pure clock_getres(clock, to) [] zero done => writes(to, TIMES);
        pure clock_settime(clock, from) [reads(from, TIMES)];
        pure clock_getcpuclockid(process, to) [] zero done => writes(to, INT);
        pure ftime(to) [] zero done => writes(to, 16);
        pure times(to) [] converted ticks => writes(to, 32);
        pure getitimer(which, to) [] zero done => writes(to, TIMER);
        pure timerfd_gettime(file, to) [] zero done => writes(to, TIMER);

        // Files.
        calls [__xstat __xstat64 __lxstat __lxstat64](version, path, status) [text(path)]
            zero done => writes(status, STATUS);
        calls [__fxstat __fxstat64](version, file, status) [] zero done => writes(status, STATUS);
        calls [statfs statfs64](path, to) [text(path)] zero done => writes(to, FILE_SYSTEM);
        calls [fstatfs fstatfs64](file, to) [] zero done => writes(to, FILE_SYSTEM);
        calls [statvfs statvfs64](path, to) [text(path)] zero done => writes(to, FILE_SYSTEM_V);
        calls [fstatvfs fstatvfs64](file, to) [] zero done => writes(to, FILE_SYSTEM_V);
        calls readlinkat(folder, path, to, room) [text(path)] count size => writes(to, size);
        pure canonicalize_file_name(path) [text(path)] some made => makes_text(made, 0);
        pure get_current_dir_name() [] some made => makes_text(made, 0);
        calls [readdir_r readdir64_r](folder, to, result) [uses_folder(folder)]
            zero done => writes(result, POINTER), writes_entry(pointer(result));
        calls [scandir scandir64](path, list, keeps, compare) [text(path)]
            int_count number => writes(list, POINTER), writes(pointer(list), number as c_int as usize * POINTER);
        calls [glob glob64](pattern, flags, failed, to) [text(pattern)] zero done => writes(to, 72);
        calls wordexp(words, to, flags) [text(words)] zero done => writes(to, 24);
        calls [getxattr lgetxattr](path, name, to, room) [text(path), text(name)]
            count size => writes(to, size.min(room));
        calls fgetxattr(file, name, to, room) [text(name)] count size => writes(to, size.min(room));
        calls [listxattr llistxattr](path, to, room) [text(path)] count size => writes(to, size.min(room));
        calls flistxattr(file, to, room) [] count size => writes(to, size.min(room));
        calls name_to_handle_at(folder, path, handle, mount, flags) [text(path)]
            zero done => writes(handle, handle_bytes(handle)), writes(mount, INT);
        calls open_by_handle_at(mount, handle, flags) [reads(handle, handle_bytes(handle))];
        calls fmemopen(buffer, size, mode) [text(mode)];
        calls fdopen(file, mode) [text(mode)];
        pure mincore(first, size, to) [] zero done => writes(to, size.div_ceil(4096));
        pure tcgetattr(file, to) [] zero done => writes(to, 60);
        pure ttyname(file) [] some made => writes_text(made);
        pure ttyname_r(file, to, room) [] zero done => writes_text(to);
        pure ptsname(file) [] some made => writes_text(made);
        pure ptsname_r(file, to, room) [] zero done => writes_text(to);
        pure ctermid(to) [] some made => writes_text(made);
        pure [tmpnam tmpnam_r](to) [] some made => writes_text(made);
        pure tempnam(folder, name) [text(folder), text(name)] some made => makes_text(made, 0);
        waits getpass(prompt) [text(prompt)] some made => writes_text(made);
        pure confstr(name, to, room) [] some size => writes(to, size.min(room));
        calls getmntent_r(stream, to, texts, room) [] some found => writes(to, 40), writes(texts, room);

        // Signals.
        pure [sigandset sigorset](to, first, second) [reads(first, SIGNALS), reads(second, SIGNALS)]
            zero done => writes(to, SIGNALS);
        pure sigaltstack(new, old) [reads(new, 24)] zero done => writes(old, 24);

        // The process and the machine.
        pure uname(to) [] zero done => writes(to, 390);
        pure getentropy(to, size) [] zero done => writes(to, size);
        pure [getrlimit getrlimit64](which, to) [] zero done => writes(to, LIMITS);
        pure [prlimit prlimit64](process, which, new, old) [reads(new, LIMITS)]
            zero done => writes(old, LIMITS);
        pure getrusage(who, to) [] zero done => writes(to, 144);
        pure sysinfo(to) [] zero done => writes(to, 112);
        pure [getresuid getresgid](real, effective, saved) []
            zero done => writes(real, INT), writes(effective, INT), writes(saved, INT);
        pure getgroups(room, to) [] int_count number => writes(to, number.min(room) as c_int as usize * INT);
        calls getgrouplist(name, group, to, number) [text(name), changes(number, INT)]
            int_count found => writes(to, found as c_int as usize * INT);
        calls initgroups(name, group) [text(name)];
        pure getloadavg(to, number) [] int_count number => writes(to, number as c_int as usize * 8);
        pure sched_getaffinity(process, size, to) [] zero done => writes(to, size);
        pure sched_getparam(process, to) [] zero done => writes(to, INT);
        pure [capget](head, data) [reads(head, 8)] zero done => writes(data, 12);
        pure [capset](head, data) [reads(head, 8), reads(data, 12)];
        pure backtrace(to, room) [] int_count number => writes(to, number as c_int as usize * POINTER);
        pure backtrace_symbols(from, number) [reads(from, number as c_int as usize * POINTER)];
        pure random_r(state, to) [] zero done => writes(to, INT);
        pure [drand48_r lrand48_r](state, to) [changes(state, RANDOM_STATE)] zero done => writes(to, 8);

        // Threads and their attributes.
        pure [pthread_attr_getdetachstate pthread_attr_getschedparam pthread_attr_getschedpolicy
              pthread_attr_getinheritsched pthread_attr_getscope pthread_mutexattr_getprioceiling
              pthread_mutexattr_getprotocol pthread_mutexattr_getpshared pthread_mutexattr_getrobust
              pthread_mutexattr_getrobust_np pthread_mutexattr_gettype pthread_rwlockattr_getkind_np
              pthread_rwlockattr_getpshared pthread_condattr_getclock pthread_condattr_getpshared
              pthread_barrierattr_getpshared pthread_getcpuclockid](of, to) [] zero done => writes(to, INT);
        pure [pthread_key_create tss_create](key, destructor) [] zero done => writes(key, INT);
        pure [pthread_attr_getguardsize pthread_attr_getstacksize](of, to) [] zero done => writes(to, POINTER);
        pure pthread_attr_getstack(of, to, size) [] zero done => writes(to, POINTER), writes(size, POINTER);
        pure pthread_attr_getaffinity_np(of, size, to) [] zero done => writes(to, size);
        pure pthread_getschedparam(thread, policy, to) [] zero done => writes(policy, INT), writes(to, INT);
        pure pthread_getname_np(thread, to, room) [] zero done => writes_text(to);
            pure [pthread_setcancelstate pthread_setcanceltype](new, old) [] zero done => writes(old, INT);

        // Networks.
        pure inet_ntop(family, from, to, room) [reads(from, address_bytes(family))] some made => writes_text(made);
        pure inet_pton(family, from, to) [text(from)] int_count done => writes(to, address_bytes(family));
        pure inet_aton(from, to) [text(from)] int_count done => writes(to, 4);
        pure if_indextoname(index, to) [] some made => writes_text(made);
        pure if_nametoindex(name) [text(name)];
        pure bind(socket, address, size) [reads(address, size as u32 as usize)];
        pure getsockopt(socket, level, option, to, size) [reads(size, INT)]
            zero done => writes(to, int(size)), writes(size, INT);
        waits getaddrinfo(node, service, hints, to) [text(node), text(service), reads(hints, 48)]
            zero done => writes(to, POINTER), writes_addresses(pointer(to));
        waits getnameinfo(address, size, node, node_room, service, service_room, flags) [reads(address, size as u32 as usize)]
            zero done => writes_text_if(node, node_room), writes_text_if(service, service_room);
        waits [gethostbyname gethostbyname2](name, family) [text(name)];
        waits gethostbyaddr(address, size, family) [reads(address, size as u32 as usize)];
        waits gethostbyname_r(name, to, texts, room, result, error) [text(name)]
            zero done => writes_record((to, HOST), (texts, room), result);
        waits gethostbyname2_r(name, family, to, texts, room, result, error) [text(name)]
            zero done => writes_record((to, HOST), (texts, room), result);
        waits gethostbyaddr_r(address, size, family, to, texts, room, result, error) [reads(address, size as u32 as usize)]
            zero done => writes_record((to, HOST), (texts, room), result);
        waits gethostent_r(to, texts, room, result, error) []
            zero done => writes_record((to, HOST), (texts, room), result);
        calls getifaddrs(to) [] zero done => writes(to, POINTER);
        pure ether_aton(from) [text(from)] some made => writes(made, 6);
        pure ether_aton_r(from, to) [text(from)] some made => writes(made, 6);
        pure ether_ntoa(address) [reads(address, 6)] some made => writes_text(made);
        pure ether_ntoa_r(address, to) [reads(address, 6)] some made => writes_text(made);
        waits ether_hostton(name, to) [text(name)] zero done => writes(to, 6);
        waits ether_ntohost(to, address) [reads(address, 6)] zero done => writes_text(to);
        pure ether_line(line, to, name) [text(line)] zero done => writes(to, 6), writes_text(name);
        waits getprotobyname(name) [text(name)];
        waits getprotobyname_r(name, to, texts, room, result) [text(name)]
            zero done => writes_record((to, PROTOCOL), (texts, room), result);
        waits getprotobynumber_r(number, to, texts, room, result) []
            zero done => writes_record((to, PROTOCOL), (texts, room), result);
        waits getprotoent_r(to, texts, room, result) []
            zero done => writes_record((to, PROTOCOL), (texts, room), result);
        waits getnetbyname(name) [text(name)];

        // Users and groups.
        calls [getpwnam getgrnam](name) [text(name)];
        calls getpwnam_r(name, to, texts, room, result) [text(name)]
            zero done => writes_record((to, USER), (texts, room), result);
        calls getpwuid_r(id, to, texts, room, result) []
            zero done => writes_record((to, USER), (texts, room), result);
        calls getpwent_r(to, texts, room, result) []
            zero done => writes_record((to, USER), (texts, room), result);
        calls fgetpwent_r(stream, to, texts, room, result) []
            zero done => writes_record((to, USER), (texts, room), result);
        calls getgrnam_r(name, to, texts, room, result) [text(name)]
            zero done => writes_record((to, GROUP), (texts, room), result);
        calls getgrgid_r(id, to, texts, room, result) []
            zero done => writes_record((to, GROUP), (texts, room), result);
        calls getgrent_r(to, texts, room, result) []
            zero done => writes_record((to, GROUP), (texts, room), result);
        calls fgetgrent_r(stream, to, texts, room, result) []
            zero done => writes_record((to, GROUP), (texts, room), result);
    }

    /// How many bytes are swapped in pairs: none of a negative number.
    const fn swapped(size: usize) -> usize {
        if size as isize > 0 { size & !1 } else { 0 }
    }

    /// How many bytes were copied to `to`, if what was looked for ends at `end`, or nowhere.
    const fn copied(to: usize, end: usize, size: usize) -> usize {
        if end == 0 { size } else { end - to }
    }

    /// The list element at `element` was put behind the one at `before`, if there is one.
    unsafe fn linked(entry: &Entry, element: usize, before: usize) {
        writes(entry, element, 2 * POINTER);
        changes(entry, before, POINTER);
        if pointer(element) != 0 {
            writes(entry, pointer(element) + POINTER, POINTER);
        }
    }

    /// The list element at `element` is about to be taken out.
    unsafe fn unlinked(entry: &Entry, element: usize) {
        reads(entry, element, 2 * POINTER);
        let (next, before) = (pointer(element), pointer(element + POINTER));
        if next != 0 {
            writes(entry, next + POINTER, POINTER);
        }
        writes(entry, before, POINTER);
    }

    /// What uses the container at `place`, whose links the C library keeps, comes after all who did before.
    unsafe fn comes_after(entry: &Entry, place: usize) {
        libraries::log_one(entry, Kind::Receive, place as u64, real_dlsym() as u64, flag::ASSUMED);
    }

    unsafe fn hands_over(entry: &Entry, place: usize) {
        libraries::log_one(entry, Kind::Send, place as u64, real_dlsym() as u64, flag::ASSUMED);
    }

    /// A text was written to `to`, if there was `room`.
    unsafe fn writes_text_if(entry: &Entry, to: usize, room: usize) {
        if room as u32 != 0 && to != 0 {
            writes_text(entry, to);
        }
    }

    /// What takes or gives numbers that are not in the registers of whole ones, or needs to know what
    /// was there before.
    pub mod special {
        use super::*;
        use crate::interceptors::io::{note_address, room_at};
        use crate::interceptors::threads;

        interceptors! {
            fn frexp(number: f64, to: usize) -> f64 |entry, call| { writes(&entry, to, INT); call() }
            fn frexpf(number: f32, to: usize) -> f32 |entry, call| { writes(&entry, to, INT); call() }
            fn modf(number: f64, to: usize) -> f64 |entry, call| { writes(&entry, to, 8); call() }
            fn modff(number: f32, to: usize) -> f32 |entry, call| { writes(&entry, to, 4); call() }
            fn strtok(from: usize, set: usize) -> usize |entry, call| {
                text(&entry, set);
                let end = end_of(from);
                let token = call();
                if token != 0 {
                    ends_token(&entry, token, end);
                }
                token
            }
            fn wcscat(to: usize, from: usize) -> usize |entry, call| {
                wide(&entry, from);
                wide(&entry, to);
                let before = wide_length(to, usize::MAX);
                let result = call();
                adds_wide(&entry, to, before);
                result
            }
            fn wcsncat(to: usize, from: usize, most: usize) -> usize |entry, call| {
                wide_within(&entry, from, most);
                wide(&entry, to);
                let before = wide_length(to, usize::MAX);
                let result = call();
                adds_wide(&entry, to, before);
                result
            }
            fn iconv(
                conversion: usize, from: usize, from_left: usize, to: usize, to_left: usize,
            ) -> usize |entry, call| {
                let at = |place: usize| if place == 0 { 0 } else { pointer(place) };
                let before = [at(from), at(to)];
                let result = call();
                reads(&entry, before[0], at(from) - before[0]);
                writes(&entry, before[1], at(to) - before[1]);
                for place in [from, from_left, to, to_left].into_iter().filter(|&place| at(place) != 0) {
                    changes(&entry, place, POINTER);
                }
                result
            }
            fn [getsockname getpeername](socket: c_int, address: usize, size: usize) -> c_int |entry, call| {
                reads(&entry, size, INT);
                let room = room_at(size);
                let result = call();
                if result == 0 {
                    note_address(&entry, address, size, room);
                }
                result
            }
            fn prctl(option: c_int, first: usize, second: usize, third: usize, fourth: usize) -> c_int |entry, call| {
                const SET_NAME: c_int = 15;
                const GET_NAME: c_int = 16;
                match option {
                    SET_NAME => {
                        text_within(&entry, first, 16);
                        return threads::naming_self(&entry, first, call);
                    }
                    GET_NAME => writes(&entry, first, 16),
                    _ => {}
                }
                call()
            }
            fn shmctl(id: c_int, command: c_int, to: usize) -> c_int |entry, call| {
                const SET: c_int = 1;
                const GET: c_int = 2;
                match command {
                    SET => reads(&entry, to, 112),
                    GET => writes(&entry, to, 112),
                    _ => {}
                }
                call()
            }
        }
    }
}
