//! Memory: allocated, freed, mapped, copied and set.

use core::arch::asm;
use core::ffi::{c_int, c_long};

use super::program::log_range;
use super::{doors, enter_or};
use crate::log::{self, Entry};
use crate::thread;
use crate::wire::Kind;

/// The allocator itself, under names that need no look-up: looking up allocates.
mod allocator {
    #[cfg(not(reweave_static))]
    unsafe extern "C" {
        #[link_name = "__libc_malloc"]
        pub(super) fn malloc(size: usize) -> usize;
        #[link_name = "__libc_calloc"]
        pub(super) fn calloc(count: usize, size: usize) -> usize;
        #[link_name = "__libc_realloc"]
        pub(super) fn realloc(block: usize, size: usize) -> usize;
        #[link_name = "__libc_free"]
        pub(super) fn free(block: usize);
        #[link_name = "__libc_memalign"]
        pub(super) fn memalign(alignment: usize, size: usize) -> usize;
    }
    #[cfg(reweave_static)]
    unsafe extern "C" {
        #[link_name = "__real_malloc"]
        pub(super) fn malloc(size: usize) -> usize;
        #[link_name = "__real_calloc"]
        pub(super) fn calloc(count: usize, size: usize) -> usize;
        #[link_name = "__real_realloc"]
        pub(super) fn realloc(block: usize, size: usize) -> usize;
        #[link_name = "__real_free"]
        pub(super) fn free(block: usize);
        #[link_name = "__real_memalign"]
        pub(super) fn memalign(alignment: usize, size: usize) -> usize;
    }
    unsafe extern "C" {
        pub(super) fn malloc_usable_size(block: usize) -> usize;
    }
}

/// Logs that a block of `size` bytes was allocated, if one was.
unsafe fn allocated(entry: &Entry, block: usize, size: usize) -> usize {
    if block != 0 {
        entry.log_extra(Kind::Alloc, block as u64, size as u64);
    }
    block
}

/// Copies bytes from the front.
#[inline]
unsafe fn copy(to: usize, from: usize, count: usize) {
    asm!(
        "rep movsb",
        inout("rdi") to => _,
        inout("rsi") from => _,
        inout("rcx") count => _,
        options(nostack, preserves_flags),
    );
}

/// Copies bytes from the end.
#[inline]
unsafe fn copy_back(to: usize, from: usize, count: usize) {
    asm!(
        "std",
        "rep movsb",
        "cld",
        inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
        inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _,
        inout("rcx") count => _,
        options(nostack),
    );
}

/// Copies between places that may overlap.
pub(crate) unsafe fn copy_either(to: usize, from: usize, count: usize) {
    if to.wrapping_sub(from) >= count {
        copy(to, from, count);
    } else {
        copy_back(to, from, count);
    }
}

/// Sets bytes.
#[inline]
pub(crate) unsafe fn fill(to: usize, byte: c_int, count: usize) {
    asm!(
        "rep stosb",
        inout("rdi") to => _,
        in("al") byte as u8,
        inout("rcx") count => _,
        options(nostack, preserves_flags),
    );
}

/// Logs that code at `code` reads `count` bytes at `from` and writes as many at `to`.
pub(crate) unsafe fn log_copy(code: u64, to: usize, from: Option<usize>, count: usize) {
    if count == 0 {
        return;
    }
    if let Some(entry) = log::enter(code) {
        if let Some(from) = from {
            log_range(&entry, Kind::ReadRange, from, count);
        }
        log_range(&entry, Kind::WriteRange, to, count);
    }
}

/// What `mmap` answers when it fails.
const FAILED: usize = usize::MAX;

doors! {
    fn malloc(size: usize) -> usize {
        let entry = enter_or!(allocator::malloc(size));
        allocated(&entry, allocator::malloc(size), size)
    }

    fn calloc(count: usize, size: usize) -> usize {
        let entry = enter_or!(allocator::calloc(count, size));
        allocated(&entry, allocator::calloc(count, size), count.wrapping_mul(size))
    }

    fn realloc(block: usize, size: usize) -> usize {
        let entry = enter_or!(allocator::realloc(block, size));
        let before = if block == 0 { 0 } else { allocator::malloc_usable_size(block) };
        if block != 0 {
            entry.log(Kind::Free, block as u64);
        }
        let moved = allocator::realloc(block, size);
        if moved == 0 && block != 0 && size != 0 {
            // Nothing happened: the block lives on.
            allocated(&entry, block, before);
            return 0;
        }
        allocated(&entry, moved, size)
    }

    fn free(block: usize) -> () {
        if block == 0 {
            return;
        }
        let entry = enter_or!(allocator::free(block));
        entry.log(Kind::Free, block as u64);
        allocator::free(block);
    }

    fn memalign(alignment: usize, size: usize) -> usize {
        let entry = enter_or!(allocator::memalign(alignment, size));
        allocated(&entry, allocator::memalign(alignment, size), size)
    }

    fn aligned_alloc(alignment: usize, size: usize) -> usize {
        let entry = enter_or!(allocator::memalign(alignment, size));
        allocated(&entry, allocator::memalign(alignment, size), size)
    }

    fn posix_memalign(block: *mut usize, alignment: usize, size: usize) -> c_int {
        const INVALID: c_int = 22;
        const NO_MEMORY: c_int = 12;
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
            return INVALID;
        }
        let entry = log::enter(thread::caller());
        let place = allocator::memalign(alignment, size);
        if place == 0 {
            return NO_MEMORY;
        }
        if let Some(entry) = &entry {
            allocated(entry, place, size);
        }
        block.write(place);
        0
    }

    fn valloc(size: usize) -> usize {
        let entry = enter_or!(allocator::memalign(4096, size));
        allocated(&entry, allocator::memalign(4096, size), size)
    }

    fn pvalloc(size: usize) -> usize {
        let size = size.next_multiple_of(4096);
        let entry = enter_or!(allocator::memalign(4096, size));
        allocated(&entry, allocator::memalign(4096, size), size)
    }

    fn mmap(
        place: usize, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long,
    ) -> usize {
        let call = || real::mmap(place, length, protection, flags, file, offset);
        // What was written last is told before something else is in its place.
        let entry = enter_or!(call()).flushed();
        let result = call();
        if result != FAILED {
            allocated(&entry, result, length);
        }
        result
    }

    fn munmap(place: usize, length: usize) -> c_int {
        let entry = enter_or!(real::munmap(place, length));
        entry.log_extra(Kind::Free, place as u64, length as u64);
        real::munmap(place, length)
    }

    fn mremap(place: usize, before: usize, after: usize, flags: c_int, new: usize) -> usize {
        let entry = enter_or!(real::mremap(place, before, after, flags, new));
        entry.log_extra(Kind::Free, place as u64, before as u64);
        let result = real::mremap(place, before, after, flags, new);
        if result == FAILED {
            allocated(&entry, place, before);
        } else {
            allocated(&entry, result, after);
        }
        result
    }

    fn shmdt(place: usize) -> c_int {
        drop(enter_or!(real::shmdt(place)).flushed());
        real::shmdt(place)
    }

    fn mprotect(place: usize, length: usize, protection: c_int) -> c_int {
        // What was written last is told before it can no longer be read.
        drop(enter_or!(real::mprotect(place, length, protection)).flushed());
        real::mprotect(place, length, protection)
    }

    fn memcpy(to: usize, from: usize, count: usize) -> usize {
        log_copy(thread::caller(), to, Some(from), count);
        copy(to, from, count);
        to
    }

    fn memmove(to: usize, from: usize, count: usize) -> usize {
        log_copy(thread::caller(), to, Some(from), count);
        copy_either(to, from, count);
        to
    }

    fn memset(to: usize, byte: c_int, count: usize) -> usize {
        log_copy(thread::caller(), to, None, count);
        fill(to, byte, count);
        to
    }

    // What these become where the compiler knows how much room there is.
    fn __memcpy_chk(to: usize, from: usize, count: usize, room: usize) -> usize {
        if room < count {
            return real::__memcpy_chk(to, from, count, room);
        }
        log_copy(thread::caller(), to, Some(from), count);
        copy(to, from, count);
        to
    }

    fn __memmove_chk(to: usize, from: usize, count: usize, room: usize) -> usize {
        if room < count {
            return real::__memmove_chk(to, from, count, room);
        }
        log_copy(thread::caller(), to, Some(from), count);
        copy_either(to, from, count);
        to
    }

    fn __memset_chk(to: usize, byte: c_int, count: usize, room: usize) -> usize {
        if room < count {
            return real::__memset_chk(to, byte, count, room);
        }
        log_copy(thread::caller(), to, None, count);
        fill(to, byte, count);
        to
    }
}
