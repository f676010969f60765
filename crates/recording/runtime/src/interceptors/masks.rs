//! Functions that save, set or pass on the signals that the running thread blocks.
//!
//! A thread blocks all signals while one waits for the end of a hook and for the next safepoint. What
//! such a function saved then would block them for good when it is restored, a program that it starts
//! would never be interrupted, and what it set would be undone. So the signal is delivered first.
//!
//! These functions are not called but jumped to: some return twice, some do not return, and some take
//! as many arguments as they are given.

use super::{handlers, real_address};

macro_rules! jumps {
    ($($name:ident)*) => {
        /// The functions that are intercepted here.
        #[cfg(test)]
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            const _: () = {
                unsafe extern "C" fn before() -> usize {
                    handlers::deliver_outside();
                    real_address!($name)
                }
                $crate::interceptors::masks::jump! { $name }
            };
        )*
    };
}

/// The exported entry, which passes on all registers that may hold an argument.
macro_rules! jump {
    (@ $symbol:expr, [$($before:literal)*], $($operand:tt)*) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(export_name = $symbol))]
        unsafe extern "C" fn trampoline() {
            core::arch::naked_asm!(
                $($before,)*
                "push rdi
                 push rsi
                 push rdx
                 push rcx
                 push r8
                 push r9
                 push rax
                 call {before}
                 mov r11, rax
                 pop rax
                 pop r9
                 pop r8
                 pop rcx
                 pop rdx
                 pop rsi
                 pop rdi
                 jmp r11",
                before = sym before,
                $($operand)*
            )
        }
    };
    ($name:ident) => {
        #[cfg(not(reweave_static))]
        $crate::interceptors::masks::jump! { @ stringify!($name), [], }
        // The C library in a static program comes here before it has set up the storage of threads.
        #[cfg(reweave_static)]
        unsafe extern "C" {
            #[link_name = concat!("__real_", stringify!($name))]
            fn real();
        }
        #[cfg(reweave_static)]
        $crate::interceptors::masks::jump! {
            @ concat!("__wrap_", stringify!($name)),
            ["cmp byte ptr [rip + {started}], 0" "je {real}"],
            started = sym $crate::process::STARTED,
            real = sym real,
        }
    };
}
use jump;

jumps! { __sigsetjmp execv execve execvp setjmp }

/// What a static program rarely calls.
#[cfg(not(reweave_static))]
pub mod rare {
    use super::*;

    jumps! {
        _Fork
        __xpg_sigpause
        clone
        execl
        execle
        execlp
        execveat
        execvpe
        fexecve
        getcontext
        setcontext
        sigblock
        sighold
        sigpause
        sigrelse
        sigsetmask
        swapcontext
    }
}
