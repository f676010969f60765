//! Pools of memory of GNU's C++ library (`std::pmr`), which are compiled into the library and called through tables
//! of virtual functions.
//!
//! A pool gives a block again that it got back. If nobody saw that, a thread could seem to use the block before
//! another has given it back. So what a pool gives is allocated, and what it gets back is freed, as by `malloc`.

#![allow(non_snake_case, reason = "programs know these functions by their names")]

#[cfg(not(reweave_static))]
pub mod dynamic {
    use crate::interceptors::memory;
    use crate::log;
    use crate::thread;

    /// What `give` gives of a pool, for the code at `code`: `size` bytes.
    unsafe fn given(code: u64, size: usize, give: impl FnOnce() -> usize) -> usize {
        let block = give();
        if let Some(entry) = log::enter(code) {
            memory::allocated(&entry, block, size);
        }
        block
    }

    /// The pool is about to get `size` bytes at `block` back from the code at `code`.
    unsafe fn got_back(code: u64, block: usize, size: usize) {
        if size != 0
            && let Some(entry) = log::enter(code)
        {
            memory::freed(&entry, block, Some(size));
        }
    }

    crate::interceptors::interceptors! {
        fn [_ZNSt3pmr26synchronized_pool_resource11do_allocateEmm
            _ZNSt3pmr28unsynchronized_pool_resource11do_allocateEmm](
            pool: usize, size: usize, alignment: usize,
        ) -> usize {
            given(thread::caller(), size, || real(pool, size, alignment))
        }
        fn [_ZNSt3pmr26synchronized_pool_resource13do_deallocateEPvmm
            _ZNSt3pmr28unsynchronized_pool_resource13do_deallocateEPvmm](
            pool: usize, block: usize, size: usize, alignment: usize,
        ) -> () {
            got_back(thread::caller(), block, size);
            real(pool, block, size, alignment);
        }
    }
}
