//! Futures of GNU's C++ library that become ready when a thread ends, as by
//! `std::promise::set_value_at_thread_exit`. The library makes them ready in code of its own, which
//! it has called once the variables of the thread are destroyed. What the thread did would not come
//! before what a thread does that got the value, so the change is logged right before that call.

#![allow(non_snake_case, reason = "programs know the function by its name")]

#[cfg(not(reweave_static))]
pub mod dynamic {
    use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use crate::log::{self, Operands};
    use crate::wire::{Kind, order};

    /// What the library calls at the end of a thread, by its binary interface: `callback` with this.
    #[repr(C)]
    struct MakeReady {
        next: *mut MakeReady,
        callback: usize,
        /// A `std::weak_ptr`: the future's state, and who counts its users.
        state: usize,
        counts: usize,
    }

    /// Where a state says whether it is ready, and what it says then.
    const STATUS_OFFSET: usize = 16;
    const IS_READY: u32 = 1;
    /// Where the users of a state are counted.
    const USERS_OFFSET: usize = 8;

    /// The library's own callback, which is the same for all.
    static CALLBACK: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn make_ready(ready: *mut MakeReady) {
        let callback = CALLBACK.load(Ordering::Relaxed);
        let MakeReady { state, counts, .. } = *ready;
        let load = |address: usize| (*(address as *const AtomicU32)).load(Ordering::Relaxed);
        // Without users, there is no state any more.
        if counts != 0
            && load(counts + USERS_OFFSET) != 0
            && let Some(entry) = log::enter(callback as u64)
        {
            let (status, order) = (state + STATUS_OFFSET, order::RELEASE);
            let seen = load(status);
            let [extra, value] = [seen | IS_READY, seen].map(|value| Some(u64::from(value)));
            let operands = Operands { size: 2, order, extra, value, flags: 0 };
            entry.log_with(Kind::AtomicUpdate, status as u64, operands);
        }
        let callback: unsafe extern "C" fn(*mut MakeReady) = core::mem::transmute(callback);
        callback(ready);
    }

    crate::interceptors::interceptors! {
        fn _ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv(ready: usize) -> () {
            real(ready);
            let ready = ready as *mut MakeReady;
            CALLBACK.store((*ready).callback, Ordering::Relaxed);
            (*ready).callback = make_ready as *const () as usize;
        }
    }
}
