//! Text and times that the C library writes to the program's memory.
//!
//! What it writes is logged as the program's own write, where it was called: a value that nobody was
//! seen to write would seem to be there from the start, and what the program does because of it could
//! be moved before it. Functions that take any number of arguments are reached by a trampoline that makes
//! a list of them, as a compiler would, and calls the form that takes a list.

use core::ffi::{c_int, c_long};

use super::formats::{Scanned, prints};
use super::memory::allocated;
use super::program::log_range;
use super::{interceptors, note_caller};
use crate::log::Entry;
use crate::wire::Kind;

/// The bytes of the text at `text`, without its end.
pub unsafe fn length(text: usize) -> usize {
    if text == 0 { 0 } else { length_within(text, usize::MAX) }
}

/// The bytes of the text at `text`, of which at most `most` are looked at.
pub unsafe fn length_within(text: usize, most: usize) -> usize {
    (0..most).position(|place| *((text + place) as *const u8) == 0).unwrap_or(most)
}

/// Logs that `read` bytes at `from` become `written` at `to`.
unsafe fn copied(entry: &Entry, from: usize, read: usize, to: usize, written: usize) {
    log_range(entry, Kind::ReadRange, from, read);
    log_range(entry, Kind::WriteRange, to, written);
}

/// Logs that the texts at `first` and `second` are compared, at most `most` bytes of them, as `fold`
/// makes them.
pub unsafe fn compared(
    entry: &Entry,
    first: usize,
    second: usize,
    most: usize,
    fold: impl Fn(&u8) -> u8,
) {
    let byte = |text: usize, place: usize| fold(&*((text + place) as *const u8));
    let is_last =
        |&place: &usize| byte(first, place) != byte(second, place) || byte(first, place) == 0;
    let bytes = (0..most).find(is_last).map_or(most, |place| place + 1);
    log_range(entry, Kind::ReadRange, first, bytes);
    log_range(entry, Kind::ReadRange, second, bytes);
}

/// Logs that a text of `result` bytes was written to the `room` bytes at `to`.
unsafe fn printed(entry: &Entry, to: usize, room: usize, result: c_int) -> c_int {
    if let Ok(length) = usize::try_from(result) {
        log_range(entry, Kind::WriteRange, to, (length + 1).min(room));
    }
    result
}

/// Logs that a text of `result` bytes was made, and a pointer to it at `to`.
unsafe fn made(entry: &Entry, to: usize, result: c_int) -> c_int {
    if let Ok(length) = usize::try_from(result) {
        written(entry, to, POINTER_BYTES);
        allocated(entry, *(to as *const usize), length + 1);
        written(entry, *(to as *const usize), length + 1);
    }
    result
}

/// Logs that the number at `text` was read up to `found`, and says so at `end` if that is anywhere.
unsafe fn number_ends(entry: &Entry, text: usize, found: usize, end: usize) {
    log_range(entry, Kind::ReadRange, text, (found - text) + 1);
    written(entry, end, POINTER_BYTES);
    if end != 0 {
        *(end as *mut usize) = found;
    }
}

/// Logs that `bytes` bytes at `to` were written, if `to` is anywhere.
unsafe fn written(entry: &Entry, to: usize, bytes: usize) {
    if to != 0 {
        log_range(entry, Kind::WriteRange, to, bytes);
    }
}

const TIME_BYTES: usize = 8;

const SPAN_BYTES: usize = 16;

const CALENDAR_BYTES: usize = 56;

const POINTER_BYTES: usize = size_of::<usize>();

/// Defines functions that take any number of arguments after the first ones, by the form that takes
/// a list. The list is in the register after those of the first arguments.
macro_rules! variadic_interceptors {
    ($($name:ident: $fixed:literal, $list:literal => $form:ident;)*) => {
        $(
            #[cfg(not(reweave_static))]
            variadic_interceptors! { @ stringify!($name), $name, $fixed, $list, $form, [], }
            #[cfg(reweave_static)]
            variadic_interceptors! {
                @ concat!("__wrap_", stringify!($name)), $name, $fixed, $list, $form,
                ["cmp byte ptr [rip + {started}], 0" "je {real}"],
                started = sym crate::process::STARTED,
                real = sym variadic::$name,
            }
        )*

        #[cfg(test)]
        pub const VARIADIC: &[&str] = &[$(stringify!($name)),*];

        #[cfg(reweave_static)]
        mod variadic {
            unsafe extern "C" {
                $(
                    #[link_name = concat!("__real_", stringify!($name))]
                    pub fn $name();
                )*
            }
        }
    };
    (@ $symbol:expr, $name:ident, $fixed:literal, $list:literal, $form:ident,
     [$($before:literal)*], $($operand:tt)*) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(export_name = $symbol))]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                $($before,)*
                note_caller!(),
                // A list of 24 bytes, and 176 for what came in registers.
                "sub rsp, 0xd8",
                "mov [rsp + 0x20], rdi",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 0x50], xmm0",
                "movaps [rsp + 0x60], xmm1",
                "movaps [rsp + 0x70], xmm2",
                "movaps [rsp + 0x80], xmm3",
                "movaps [rsp + 0x90], xmm4",
                "movaps [rsp + 0xa0], xmm5",
                "movaps [rsp + 0xb0], xmm6",
                "movaps [rsp + 0xc0], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], 8 * ", $fixed),
                "mov dword ptr [rsp + 4], 48",
                "lea r10, [rsp + 0xe0]",
                "mov [rsp + 8], r10",
                "lea r10, [rsp + 0x20]",
                "mov [rsp + 16], r10",
                concat!("mov ", $list, ", rsp"),
                "call {form}",
                "add rsp, 0xd8",
                "ret",
                form = sym $form::body,
                $($operand)*
            )
        }
    };
}

pub(super) use variadic_interceptors;

variadic_interceptors! {
    sprintf: "2", "rdx" => vsprintf;
    snprintf: "3", "rcx" => vsnprintf;
    __sprintf_chk: "4", "r8" => __vsprintf_chk;
    __snprintf_chk: "5", "r9" => __vsnprintf_chk;
    asprintf: "2", "rdx" => vasprintf;
    __asprintf_chk: "3", "rcx" => __vasprintf_chk;
    sscanf: "2", "rdx" => vsscanf;
    __isoc99_sscanf: "2", "rdx" => __isoc99_vsscanf;
}

interceptors! {
    fn [strcpy stpcpy](to: usize, from: usize) -> usize |entry, call| {
        let bytes = length(from) + 1;
        copied(&entry, from, bytes, to, bytes);
        call()
    }
    fn strncpy(to: usize, from: usize, count: usize) -> usize |entry, call| {
        copied(&entry, from, (length_within(from, count) + 1).min(count), to, count);
        call()
    }
    fn strcat(to: usize, from: usize) -> usize |entry, call| {
        let (before, bytes) = (length(to), length(from) + 1);
        log_range(&entry, Kind::ReadRange, to, before + 1);
        copied(&entry, from, bytes, to + before, bytes);
        call()
    }
    fn strncat(to: usize, from: usize, count: usize) -> usize |entry, call| {
        let (before, bytes) = (length(to), length_within(from, count));
        log_range(&entry, Kind::ReadRange, to, before + 1);
        copied(&entry, from, (bytes + 1).min(count), to + before, bytes + 1);
        call()
    }
    fn __strcpy_chk(to: usize, from: usize, room: usize) -> usize |entry, call| {
        let bytes = length(from) + 1;
        copied(&entry, from, bytes, to, bytes.min(room));
        call()
    }
    fn __strcat_chk(to: usize, from: usize, room: usize) -> usize |entry, call| {
        let (before, bytes) = (length(to), length(from) + 1);
        log_range(&entry, Kind::ReadRange, to, before + 1);
        copied(&entry, from, bytes, to + before, bytes.min(room));
        call()
    }
    fn __strncpy_chk(to: usize, from: usize, count: usize, room: usize) -> usize |entry, call| {
        let read = (length_within(from, count) + 1).min(count);
        copied(&entry, from, read, to, count.min(room));
        call()
    }
    fn strlen(text: usize) -> usize |entry, call| {
        let result = call();
        log_range(&entry, Kind::ReadRange, text, result + 1);
        result
    }
    fn strcmp(first: usize, second: usize) -> c_int |entry, call| {
        compared(&entry, first, second, usize::MAX, |&byte| byte);
        call()
    }
    fn strncmp(first: usize, second: usize, most: usize) -> c_int |entry, call| {
        compared(&entry, first, second, most, |&byte| byte);
        call()
    }
    fn [memcmp bcmp](first: usize, second: usize, count: usize) -> c_int |entry, call| {
        log_range(&entry, Kind::ReadRange, first, count);
        log_range(&entry, Kind::ReadRange, second, count);
        call()
    }
    fn strchr(text: usize, character: c_int) -> usize |entry, call| {
        let result = call();
        let bytes = if result == 0 { length(text) } else { result - text };
        log_range(&entry, Kind::ReadRange, text, bytes + 1);
        result
    }
    fn memchr(from: usize, character: c_int, count: usize) -> usize |entry, call| {
        let result = call();
        let bytes = if result == 0 { count } else { result - from + 1 };
        log_range(&entry, Kind::ReadRange, from, bytes);
        result
    }
    fn bzero(to: usize, count: usize) -> () |entry, call| {
        log_range(&entry, Kind::WriteRange, to, count);
        call();
    }
    fn bcopy(from: usize, to: usize, count: usize) -> () |entry, call| {
        copied(&entry, from, count, to, count);
        call();
    }
    fn mempcpy(to: usize, from: usize, count: usize) -> usize |entry, call| {
        copied(&entry, from, count, to, count);
        call()
    }
    fn vsprintf(to: usize, format: usize, list: usize) -> c_int |entry, call| {
        prints(&entry, format, list);
        printed(&entry, to, usize::MAX, call())
    }
    fn vsnprintf(to: usize, room: usize, format: usize, list: usize) -> c_int |entry, call| {
        prints(&entry, format, list);
        printed(&entry, to, room, call())
    }
    fn __vsprintf_chk(
        to: usize, flag: c_int, room: usize, format: usize, list: usize,
    ) -> c_int |entry, call| {
        prints(&entry, format, list);
        printed(&entry, to, room, call())
    }
    fn __vsnprintf_chk(
        to: usize, most: usize, flag: c_int, room: usize, format: usize, list: usize,
    ) -> c_int |entry, call| {
        prints(&entry, format, list);
        printed(&entry, to, most, call())
    }
    fn vasprintf(to: usize, format: usize, list: usize) -> c_int |entry, call| {
        prints(&entry, format, list);
        made(&entry, to, call())
    }
    fn __vasprintf_chk(to: usize, flag: c_int, format: usize, list: usize) -> c_int |entry, call| {
        prints(&entry, format, list);
        made(&entry, to, call())
    }
    fn [vsscanf __isoc99_vsscanf](from: usize, format: usize, list: usize) -> c_int |entry, call| {
        log_range(&entry, Kind::ReadRange, from, length(from) + 1);
        let scanned = Scanned::new(&entry, format, list);
        let result = call();
        scanned.written(&entry, format, result);
        result
    }
    fn [strtol strtoul strtoll strtoull strtoimax strtoumax](
        text: usize, end: usize, base: c_int,
    ) -> c_long |entry, call| {
        let mut own = 0;
        let result = real(text, &raw mut own as usize, base);
        number_ends(&entry, text, own, end);
        result
    }
    fn strtod(text: usize, end: usize) -> f64 |entry, call| {
        let mut own = 0;
        let result = real(text, &raw mut own as usize);
        number_ends(&entry, text, own, end);
        result
    }
    fn time(to: usize) -> c_long |entry, call| { written(&entry, to, TIME_BYTES); call() }
    fn clock_gettime(clock: c_int, to: usize) -> c_int |entry, call| {
        written(&entry, to, SPAN_BYTES);
        call()
    }
    fn gettimeofday(to: usize, zone: usize) -> c_int |entry, call| { written(&entry, to, SPAN_BYTES); call() }
    fn [localtime_r gmtime_r](time: usize, to: usize) -> usize |entry, call| {
        copied(&entry, time, TIME_BYTES, to, CALENDAR_BYTES);
        call()
    }
    fn getcwd(to: usize, room: usize) -> usize |entry, call| {
        let result = call();
        if to == 0 {
            allocated(&entry, result, length(result) + 1);
        }
        written(&entry, result, length(result) + 1);
        result
    }
    fn gethostname(to: usize, room: usize) -> c_int |entry, call| {
        let result = call();
        if result == 0 {
            written(&entry, to, (length_within(to, room) + 1).min(room));
        }
        result
    }
    fn getrandom(to: usize, count: usize, flags: c_int) -> isize |entry, call| {
        let result = call();
        written(&entry, to, usize::try_from(result).unwrap_or(0));
        result
    }
}
