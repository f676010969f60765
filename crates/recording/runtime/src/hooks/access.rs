//! Plain accesses, and functions entered and left.
//!
//! A hook hands its return address, which tells where in the program it is, on to its body as the
//! next argument.

use core::arch::naked_asm;

use crate::doors::memory;
use crate::log::{self, access, call_stack};
use crate::wire::Kind;

unsafe extern "C" fn read<const SIZE: u32>(address: u64, code: u64) {
    access(Kind::Read, SIZE, address, code);
}

unsafe extern "C" fn write<const SIZE: u32>(address: u64, code: u64) {
    access(Kind::Write, SIZE, address, code);
}

unsafe extern "C" fn update<const SIZE: u32>(address: u64, code: u64) {
    access(Kind::Read, SIZE, address, code);
    access(Kind::Write, SIZE, address, code);
}

unsafe extern "C" fn read_16(address: u64, code: u64) {
    access(Kind::Read, 3, address, code);
    access(Kind::Read, 3, address + 8, code);
}

unsafe extern "C" fn write_16(address: u64, code: u64) {
    access(Kind::Write, 3, address, code);
    access(Kind::Write, 3, address + 8, code);
}

unsafe extern "C" fn update_16(address: u64, code: u64) {
    read_16(address, code);
    write_16(address, code);
}

unsafe extern "C" fn enter(called_from: u64) {
    call_stack(Kind::Enter, called_from);
}

unsafe extern "C" fn leave() {
    call_stack(Kind::Leave, 0);
}

unsafe extern "C" fn read_range(address: u64, length: u64, code: u64) {
    range(Kind::ReadRange, address, length, code);
}

unsafe extern "C" fn write_range(address: u64, length: u64, code: u64) {
    range(Kind::WriteRange, address, length, code);
}

unsafe fn range(kind: Kind, address: u64, length: u64, code: u64) {
    if length != 0
        && let Some(entry) = log::enter(code)
    {
        entry.log_extra(kind, address, length);
    }
}

/// An object's table of virtual functions is set: written only if that changes it.
unsafe extern "C" fn set_table(place: *const u64, table: u64, code: u64) {
    if place.read_volatile() != table {
        access(Kind::Write, 3, place as u64, code);
    }
}

unsafe extern "C" fn copy(to: usize, from: usize, count: usize, code: u64) -> usize {
    memory::log_copy(code, to, Some(from), count);
    memory::copy_either(to, from, count);
    to
}

unsafe extern "C" fn fill(to: usize, byte: i32, count: usize, code: u64) -> usize {
    memory::log_copy(code, to, None, count);
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

hooks! { "rsi":
    __tsan_read1 => read::<0>,
    __tsan_read2 => read::<1>,
    __tsan_read4 => read::<2>,
    __tsan_read8 => read::<3>,
    __tsan_read16 => read_16,
    __tsan_write1 => write::<0>,
    __tsan_write2 => write::<1>,
    __tsan_write4 => write::<2>,
    __tsan_write8 => write::<3>,
    __tsan_write16 => write_16,
    __tsan_read_write1 => update::<0>,
    __tsan_read_write2 => update::<1>,
    __tsan_read_write4 => update::<2>,
    __tsan_read_write8 => update::<3>,
    __tsan_read_write16 => update_16,
    __tsan_unaligned_read1 => read::<0>,
    __tsan_unaligned_read2 => read::<1>,
    __tsan_unaligned_read4 => read::<2>,
    __tsan_unaligned_read8 => read::<3>,
    __tsan_unaligned_read16 => read_16,
    __tsan_unaligned_write1 => write::<0>,
    __tsan_unaligned_write2 => write::<1>,
    __tsan_unaligned_write4 => write::<2>,
    __tsan_unaligned_write8 => write::<3>,
    __tsan_unaligned_write16 => write_16,
    __tsan_unaligned_read_write1 => update::<0>,
    __tsan_unaligned_read_write2 => update::<1>,
    __tsan_unaligned_read_write4 => update::<2>,
    __tsan_unaligned_read_write8 => update::<3>,
    __tsan_unaligned_read_write16 => update_16,
    __tsan_volatile_read1 => read::<0>,
    __tsan_volatile_read2 => read::<1>,
    __tsan_volatile_read4 => read::<2>,
    __tsan_volatile_read8 => read::<3>,
    __tsan_volatile_read16 => read_16,
    __tsan_volatile_write1 => write::<0>,
    __tsan_volatile_write2 => write::<1>,
    __tsan_volatile_write4 => write::<2>,
    __tsan_volatile_write8 => write::<3>,
    __tsan_volatile_write16 => write_16,
    __tsan_unaligned_volatile_read1 => read::<0>,
    __tsan_unaligned_volatile_read2 => read::<1>,
    __tsan_unaligned_volatile_read4 => read::<2>,
    __tsan_unaligned_volatile_read8 => read::<3>,
    __tsan_unaligned_volatile_read16 => read_16,
    __tsan_unaligned_volatile_write1 => write::<0>,
    __tsan_unaligned_volatile_write2 => write::<1>,
    __tsan_unaligned_volatile_write4 => write::<2>,
    __tsan_unaligned_volatile_write8 => write::<3>,
    __tsan_unaligned_volatile_write16 => write_16,
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

/// The argument is where the function was called from; nothing is to be added.
#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_func_entry(called_from: u64) {
    naked_asm!("jmp {}", sym enter)
}

#[unsafe(naked)]
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!("jmp {}", sym leave)
}

/// Attributes of functions that ask for silence, which we do not keep: nothing is reported here.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_ignore_thread_begin() {}

#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __tsan_ignore_thread_end() {}
