//! Hooks: what compilers call before every access to memory and instead of every atomic one, and
//! what programs call to tell of synchronisation that compilers do not see.

/// Defines a hook that notes where it was called from and goes on to its body.
macro_rules! hook {
    ($name:ident, ($($argument:ident: $type:ty),*) $(-> $result:ty)?, $body:block) => {
        #[unsafe(naked)]
        #[cfg_attr(reweave_export, unsafe(no_mangle))]
        unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            unsafe extern "C" fn body($($argument: $type),*) $(-> $result)? $body
            core::arch::naked_asm!(
                "mov r10, [rsp]",
                "mov r11, qword ptr [rip + reweave_caller@GOTTPOFF]",
                "mov fs:[r11], r10",
                "jmp {}",
                sym body,
            )
        }
    };
}

mod access;
mod annotations;
pub(crate) mod atomic;
