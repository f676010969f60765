//! Plain accesses, and functions entered and left.
//!
//! A hook hands its return address, which reports where in the program it is, on to its body as the
//! next argument.

use core::arch::naked_asm;

use crate::interceptors::memory;
use crate::log::{self, Operands, access, call_stack};
use crate::predict::SECOND_HALF;
use crate::wire::{Kind, flag};
use crate::{replay, scheduler, sys};

/// Logs an access of `1 << SIZE` bytes; of sixteen as two of eight. It may be the second of a hook.
#[inline(always)]
unsafe fn log_access<const SIZE: u32, const CONTINUES: bool>(kind: Kind, address: u64, code: u64) {
    if SIZE < 4 {
        return access::<CONTINUES>(kind, SIZE, address, code);
    }
    access::<CONTINUES>(kind, 3, address, code);
    access::<true>(kind, SECOND_HALF, address + 8, code);
}

unsafe extern "C" fn read<const SIZE: u32>(address: u64, code: u64) {
    log_access::<SIZE, false>(Kind::Read, address, code);
}

/// Nothing about it is expected, so it is logged whatever it sees.
unsafe extern "C" fn volatile_read<const SIZE: u32>(address: u64, code: u64) {
    if SIZE > 3 {
        return read::<SIZE>(address, code);
    }
    let Some(entry) = log::enter(code) else { return };
    if (*entry.thread).ignored.hides(Kind::Read) {
        return;
    }
    if scheduler::is_serial() && replay::is_on() {
        replay::before(entry.thread, code, [address, 1 << SIZE], Kind::Read);
    }
    let operands = Operands {
        size: SIZE as u8,
        flags: flag::VOLATILE,
        value: Some(log::load(address, SIZE)),
        ..Operands::default()
    };
    entry.log_with(Kind::AtomicLoad, address, operands);
}

unsafe extern "C" fn write<const SIZE: u32>(address: u64, code: u64) {
    log_access::<SIZE, false>(Kind::Write, address, code);
}

unsafe extern "C" fn update<const SIZE: u32>(address: u64, code: u64) {
    log_access::<SIZE, false>(Kind::Read, address, code);
    log_access::<SIZE, true>(Kind::Write, address, code);
}

/// No frame is larger, for all that we look at.
const FRAME_BYTES_MAX: u64 = 1 << 20;

/// A function was entered that was called from `called_from`, with these values of the registers that point to the
/// stack and, if it keeps one, to its frame. If so, where it was called from stands above what that points to.
unsafe extern "C" fn enter(called_from: u64, stack: u64, base: u64) {
    let end = frame_end(stack, base);
    // In a function that keeps no frame pointer it may be the end of all memory, at the border of a page.
    let is_memory = !base.is_multiple_of(4096) || sys::is_readable(base + 8);
    let is_frame = end != 0 && is_memory && *((base + 8) as *const u64) == called_from;
    call_stack(Kind::Enter, called_from, if is_frame { end } else { 0 });
}

unsafe extern "C" fn leave(stack: u64, base: u64) {
    call_stack(Kind::Leave, 0, frame_end(stack, base));
}

/// Where the frame ends to which `base` may point: behind the caller's value of that and where it is called from; 0 if
/// it points to none. In a function that keeps no frame pointer it can be anything.
const fn frame_end(stack: u64, base: u64) -> u64 {
    let is_near = base.wrapping_sub(stack) < FRAME_BYTES_MAX;
    let may_be_frame = is_near && base.is_multiple_of(16);
    if may_be_frame { base.wrapping_add(16) } else { 0 }
}

unsafe extern "C" fn read_range(address: u64, length: u64, code: u64) {
    range(Kind::ReadRange, address, length, code);
}

unsafe extern "C" fn write_range(address: u64, length: u64, code: u64) {
    range(Kind::WriteRange, address, length, code);
}

unsafe fn range(kind: Kind, address: u64, length: u64, code: u64) {
    if length != 0 {
        log::range(kind, address, length, code);
    }
}

/// An object's table of virtual functions is set: written only if that changes it.
unsafe extern "C" fn set_table(place: *const u64, table: u64, code: u64) {
    if place.read_volatile() != table {
        access::<false>(Kind::Write, 3, place as u64, code);
    }
}

unsafe extern "C" fn copy(to: usize, from: usize, count: usize, code: u64) -> usize {
    memory::log_copy(code, to, from, count);
    memory::copy_either(to, from, count);
    to
}

unsafe extern "C" fn fill(to: usize, byte: i32, count: usize, code: u64) -> usize {
    memory::log_fill(code, to, byte, count);
    memory::fill(to, byte, count);
    to
}

/// Defines hooks that add their return address to `register` and go on to their body.
macro_rules! hooks {
    ($register:literal: $($name:ident => $body:path,)*) => {
        $(
            #[unsafe(naked)]
            #[cfg_attr(reweave_export, unsafe(no_mangle))]
            unsafe extern "C" fn $name() {
                naked_asm!(concat!("mov ", $register, ", [rsp]"), "jmp {}", sym $body)
            }
        )*
    };
}

/// Defines the hooks of one kind of access for all sizes.
macro_rules! sized_hooks {
    ($($prefix:literal => $body:ident;)*) => {
        $(
            sized_hooks! { @ $prefix, "1" => $body::<0> }
            sized_hooks! { @ $prefix, "2" => $body::<1> }
            sized_hooks! { @ $prefix, "4" => $body::<2> }
            sized_hooks! { @ $prefix, "8" => $body::<3> }
            sized_hooks! { @ $prefix, "16" => $body::<4> }
        )*
    };
    (@ $prefix:literal, $bytes:literal => $body:path) => {
        const _: () = {
            #[unsafe(naked)]
            #[cfg_attr(reweave_export, unsafe(export_name = concat!("__tsan_", $prefix, $bytes)))]
            unsafe extern "C" fn hook() {
                naked_asm!("mov rsi, [rsp]", "jmp {}", sym $body)
            }
        };
    };
}

sized_hooks! {
    "read" => read;
    "write" => write;
    "read_write" => update;
    "unaligned_read" => read;
    "unaligned_write" => write;
    "unaligned_read_write" => update;
    "volatile_read" => volatile_read;
    "volatile_write" => write;
    "unaligned_volatile_read" => volatile_read;
    "unaligned_volatile_write" => write;
}

hooks! { "rsi":
    __tsan_vptr_read => read::<3>,
}

hooks! { "rdx":
    __tsan_read_range => read_range,
    __tsan_write_range => write_range,
    __tsan_vptr_update => set_table,
}

hooks! { "rcx":
    __tsan_memcpy => copy,
    __tsan_memmove => copy,
    __tsan_memset => fill,
}

/// The argument is where the function was called from.
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_func_entry(called_from: u64) {
    naked_asm!("mov rsi, rsp", "mov rdx, rbp", "jmp {}", sym enter)
}

#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!("mov rdi, rsp", "mov rsi, rbp", "jmp {}", sym leave)
}
