//! Hooks: what compilers call before every access to memory and instead of every atomic one, and
//! what programs call to announce synchronization that compilers do not see.

/// Defines a hook, which is exported as `$symbol`: it notes where it was called from and goes on to
/// its body.
macro_rules! hook {
    ($symbol:expr, ($($argument:ident: $type:ty),*) $(-> $result:ty)?, $body:block) => {
        const _: () = {
            #[unsafe(naked)]
            #[cfg_attr(reweave_export, unsafe(export_name = $symbol))]
            unsafe extern "C" fn hook($($argument: $type),*) $(-> $result)? {
                unsafe extern "C" fn body($($argument: $type),*) $(-> $result)? $body
                core::arch::naked_asm!(
                    $crate::interceptors::note_caller!(),
                    "jmp {}",
                    sym body,
                )
            }
        };
    };
}

mod access;
mod annotations;
pub mod atomic;
