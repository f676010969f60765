//! Formatted output to descriptors and streams.
//!
//! These functions take any number of arguments, so they are not called but jumped to, after what they
//! may hand over was noted: a stream writes when it is full, or always if it has no buffer.

use super::*;
use crate::{log, thread};

/// What the first argument of a function is.
#[derive(Clone, Copy)]
enum Target {
    File,
    Stream,
}

/// Logs that something may be handed to `first`.
unsafe fn note(first: usize, target: Target) {
    let channel = match target {
        Target::File => table::of(first as c_int),
        Target::Stream => streams::channel_of(first),
    };
    if channel.is_some()
        && let Some(entry) = log::enter(thread::caller())
    {
        note_send(&entry.flushed(), channel);
    }
}

/// Calls a function with the first argument and jumps to where it says, with every register that can
/// hold an argument as it was.
macro_rules! jump {
    ($($before:tt)*) => {
        core::arch::naked_asm!(
            "mov r10, [rsp]",
            "mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]",
            "mov fs:[r11], r10",
            "push rax",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 128",
            "movaps [rsp], xmm0",
            "movaps [rsp + 16], xmm1",
            "movaps [rsp + 32], xmm2",
            "movaps [rsp + 48], xmm3",
            "movaps [rsp + 64], xmm4",
            "movaps [rsp + 80], xmm5",
            "movaps [rsp + 96], xmm6",
            "movaps [rsp + 112], xmm7",
            "call {}",
            "mov r11, rax",
            "movaps xmm0, [rsp]",
            "movaps xmm1, [rsp + 16]",
            "movaps xmm2, [rsp + 32]",
            "movaps xmm3, [rsp + 48]",
            "movaps xmm4, [rsp + 64]",
            "movaps xmm5, [rsp + 80]",
            "movaps xmm6, [rsp + 96]",
            "movaps xmm7, [rsp + 112]",
            "add rsp, 128",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "pop rax",
            "jmp r11",
            $($before)*,
        )
    };
}
/// Defines doors that note something and jump to the real function with all its arguments.
macro_rules! jumping_doors {
    ($($name:ident: $target:ident;)*) => {
        /// What stands here.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            mod $name {
                use super::{Target, note};

                #[unsafe(naked)]
                #[cfg_attr(
                    all(reweave_export, not(reweave_static)),
                    unsafe(export_name = stringify!($name))
                )]
                #[cfg_attr(
                    all(reweave_export, reweave_static),
                    unsafe(export_name = concat!("__wrap_", stringify!($name)))
                )]
                unsafe extern "C" fn door() {
                    jump!(sym before)
                }

                /// Notes what is handed over, and says where the real function is.
                unsafe extern "C" fn before(first: usize) -> usize {
                    note(first, Target::$target);
                    real()
                }

                #[cfg(not(reweave_static))]
                unsafe fn real() -> usize {
                    #[cfg_attr(reweave_export, used, unsafe(link_section = "reweave_doors"))]
                    static WAY: crate::doors::Way =
                        crate::doors::Way::to(concat!(stringify!($name), "\0"));
                    WAY.find()
                }

                #[cfg(reweave_static)]
                unsafe fn real() -> usize {
                    unsafe extern "C" {
                        #[link_name = concat!("__real_", stringify!($name))]
                        fn real();
                    }
                    real as *const () as usize
                }
            }
        )*
    };
}

jumping_doors! {
    dprintf: File;
    vdprintf: File;
    __dprintf_chk: File;
    __vdprintf_chk: File;
    fprintf: Stream;
    vfprintf: Stream;
    __fprintf_chk: Stream;
    __vfprintf_chk: Stream;
}
