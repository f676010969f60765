//! Memory: allocated, freed, mapped, copied and set.

use core::arch::asm;
use core::arch::x86_64::__m128i;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::program::{log_range, log_range_of};
use super::{enter_or, flags_of_begin, flags_of_end, interceptors, keeping_errno, objects};
use crate::log::{self, Entry, Operands};
use crate::wire::{Kind, flag};
use crate::{sys, thread};

/// The allocator itself, under names that need no look-up: looking up allocates.
mod allocator {
    macro_rules! allocator {
        ($($name:ident($($argument:ident),*) $(-> $result:ty)?;)*) => {
            unsafe extern "C" {
                $(
                    #[cfg_attr(not(reweave_static), link_name = concat!("__libc_", stringify!($name)))]
                    #[cfg_attr(reweave_static, link_name = concat!("__real_", stringify!($name)))]
                    pub fn $name($($argument: usize),*) $(-> $result)?;
                )*
                pub fn malloc_usable_size(block: usize) -> usize;
            }
        };
    }
    allocator! {
        malloc(size) -> usize;
        calloc(count, size) -> usize;
        realloc(block, size) -> usize;
        free(block);
        memalign(alignment, size) -> usize;
    }
}

/// Logs that a block of `size` bytes was allocated, if one was.
pub unsafe fn allocated(entry: &Entry, block: usize, size: usize) -> usize {
    allocated_so(entry, block, size, 0)
}

/// The same of memory that is as `flags` say.
unsafe fn allocated_so(entry: &Entry, block: usize, size: usize, flags: u16) -> usize {
    if block != 0 {
        let (flags, extra) = (flags | flags_of_begin(entry), Some(size as u64));
        let operands =
            Operands { flags, extra, value: call_of_library(entry), ..Operands::default() };
        entry.log_with(Kind::Alloc, block as u64, operands);
    }
    block
}

/// How many places on the stack are looked at for a call of a library.
const PLACES_MAX: usize = 32;

/// Where recorded code called the library that allocates, such as `operator new`: the innermost return address of such
/// code on the stack. What the library left there of earlier calls may look the same.
unsafe fn call_of_library(entry: &Entry) -> Option<u64> {
    const PAGE_MASK: u64 = PAGE as u64 - 1;
    if !cfg!(reweave_static) && objects::is_instrumented(entry.code) {
        return None;
    }
    let slot = thread::caller_slot();
    // Another interceptor may have been entered since.
    if slot.is_null() || !slot.is_aligned() || *slot != entry.code {
        return None;
    }
    for place in 1..PLACES_MAX {
        // Stacks are aligned to two words where functions are called.
        let slot = slot.add(2 * place);
        let is_first_of_page = slot as u64 & PAGE_MASK < 2 * size_of::<u64>() as u64;
        if is_first_of_page && !sys::is_readable(slot as u64) {
            break;
        }
        let address = *slot;
        if objects::is_code(address) && follows_call(address) && !is_in_new(address) {
            return Some(address);
        }
    }
    None
}

/// Whether the code at `address` is in a function of the C++ library that only calls `operator new`. A static program
/// has that among its own code, if it has it.
fn is_in_new(address: u64) -> bool {
    /// None of the functions is longer.
    const LENGTH_MAX: u64 = 64;
    macro_rules! is_in {
        ($($name:literal)*) => {
            false $(|| {
                let start: u64;
                // SAFETY: reads where the linker found the function; 0 if nowhere.
                unsafe {
                    asm!(
                        concat!(".weak ", $name),
                        concat!("mov {0}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                        out(reg) start,
                        options(nostack, readonly, pure, preserves_flags),
                    );
                }
                start != 0 && address.wrapping_sub(start) < LENGTH_MAX
            })*
        };
    }
    cfg!(reweave_static)
        && is_in!(
            "_ZnwmRKSt9nothrow_t"
            "_ZnamRKSt9nothrow_t"
            "_ZnwmSt11align_val_tRKSt9nothrow_t"
            "_ZnamSt11align_val_tRKSt9nothrow_t"
        )
}

/// Whether the instruction before the code at `address` is a call, as far as its bytes tell.
unsafe fn follows_call(address: u64) -> bool {
    const NEAR: u8 = 0xe8;
    const INDIRECT: u8 = 0xff;
    let start = address - size_of::<u64>() as u64;
    let stays = cfg!(reweave_static) || objects::is_in_main(address);
    // A library may be unloaded by now.
    let bytes =
        if stays { Some((start as *const u64).read_unaligned()) } else { sys::read_word(start, 8) };
    let Some(bytes) = bytes.map(u64::to_le_bytes) else { return false };
    let byte = |before: usize| bytes[bytes.len() - before];
    let is_indirect = |length| byte(length) == INDIRECT && byte(length - 1) >> 3 & 7 == 2;
    byte(5) == NEAR || (2..=7).any(is_indirect)
}

/// A block that was allocated out of sight and that no event tells of yet.
struct Hidden {
    /// Where it is, [`CLAIMED`] while that is being written, or 0.
    block: AtomicUsize,
    size: AtomicUsize,
}

const CLAIMED: usize = 1;

static HIDDEN: [Hidden; 16] =
    [const { Hidden { block: AtomicUsize::new(0), size: AtomicUsize::new(0) } }; 16];

/// Whether there was one for which there was no room.
static IS_HIDDEN_FULL: AtomicBool = AtomicBool::new(false);

static HAS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// Notes that `block` was allocated out of sight: by a thread that is in the runtime already, where it must
/// not write to the log.
unsafe fn hidden(block: usize) -> usize {
    if block == 0 {
        return block;
    }
    let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
    let is_mine = |it: &&Hidden| it.block.compare_exchange(0, CLAIMED, success, failure).is_ok();
    match HIDDEN.iter().find(is_mine) {
        Some(hidden) => {
            hidden.size.store(allocator::malloc_usable_size(block), Ordering::Relaxed);
            hidden.block.store(block, Ordering::Release);
        }
        None => IS_HIDDEN_FULL.store(true, Ordering::Relaxed),
    }
    HAS_HIDDEN.store(true, Ordering::Release);
    block
}

/// Logs what was allocated out of sight, before anything but accesses is logged: what a thread accessed so is not
/// taken for freed.
#[inline]
pub unsafe fn tell_hidden(entry: &Entry) {
    if HAS_HIDDEN.load(Ordering::Relaxed) {
        log_hidden(entry);
    }
}

#[cold]
unsafe fn log_hidden(entry: &Entry) {
    HAS_HIDDEN.swap(false, Ordering::Acquire);
    for hidden in &HIDDEN {
        let block = hidden.block.load(Ordering::Acquire);
        if block > CLAIMED {
            let size = hidden.size.load(Ordering::Relaxed) as u64;
            hidden.block.store(0, Ordering::Release);
            entry.log_unplanned(Kind::Argument, block as u64, Some(size));
        }
    }
    if IS_HIDDEN_FULL.swap(false, Ordering::Relaxed) {
        entry.log_unplanned(Kind::Argument, 0, Some(0));
    }
}

/// What the C library writes into the second word of each block that its caches hold, and takes out when it
/// gives the block away; 0 if it does not. A number that no other word is likely to have.
static FREED_MARK: AtomicUsize = AtomicUsize::new(0);

unsafe fn second_word(block: usize) -> usize {
    core::ptr::read_volatile((block as *const usize).add(1))
}

/// Looks how the C library marks what was freed.
pub unsafe fn learn_freed_mark() {
    const SIZE: usize = 1000;
    let blocks = [allocator::malloc(SIZE), allocator::malloc(SIZE)];
    if blocks.contains(&0) {
        return;
    }
    for block in blocks {
        allocator::free(block);
    }
    let [mark, other] = blocks.map(|block| second_word(block));
    if mark == other {
        FREED_MARK.store(mark, Ordering::Relaxed);
    }
}

/// Logs that the memory at `block` is about to be freed: `length` bytes, where that is known.
pub unsafe fn freed(entry: &Entry, block: usize, length: Option<usize>) {
    let mark = FREED_MARK.load(Ordering::Relaxed);
    let is_again = mark != 0 && length.is_none() && second_word(block) == mark;
    let misuse = if is_again { flag::MISUSE } else { 0 };
    let flags = flags_of_end(entry) | misuse;
    let extra = length.map(|length| length as u64);
    // Of what a library made within a call that is intercepted nobody saw the size.
    let is_library = flags & flag::ASSUMED != 0 && length.is_none();
    let value = is_library.then(|| allocator::malloc_usable_size(block) as u64);
    let operands = Operands { flags, extra, value, ..Operands::default() };
    entry.log_with(Kind::Free, block as u64, operands);
}

/// Copies up to 32 bytes. All are read before one is written, so places may overlap.
#[inline]
unsafe fn copy_few(to: usize, from: usize, count: usize) {
    /// Copies between one and two of `T`: the first and the last, which may overlap.
    #[inline]
    unsafe fn ends<T>(to: usize, from: usize, count: usize) {
        let last = count - size_of::<T>();
        let first_read = (from as *const T).read_unaligned();
        let last_read = ((from + last) as *const T).read_unaligned();
        (to as *mut T).write_unaligned(first_read);
        ((to + last) as *mut T).write_unaligned(last_read);
    }
    match count {
        0 => {}
        1 => (to as *mut u8).write((from as *const u8).read()),
        2..4 => ends::<u16>(to, from, count),
        4..8 => ends::<u32>(to, from, count),
        8..16 => ends::<u64>(to, from, count),
        _ => ends::<__m128i>(to, from, count),
    }
}

/// Copies bytes from the end, to a place that may overlap if it is after the other.
#[inline]
unsafe fn copy_back(to: usize, from: usize, count: usize) {
    if count <= 32 {
        return copy_few(to, from, count);
    }
    // The last bytes are read first and written last, so that all others are written at borders of
    // sixteen bytes.
    let last = ((from + count - 16) as *const __m128i).read_unaligned();
    let aligned = count - (to + count) % 16;
    let rest = aligned % 32;
    if aligned > rest {
        // In assembly, since compilers know how to make a call of `memmove` out of such a loop. The
        // processor's own way is slow in this direction.
        asm!(
            "2:",
            "movdqu {first}, [{from} + {whole} - 16]",
            "movdqu {second}, [{from} + {whole} - 32]",
            "movdqa [{to} + {whole} - 16], {first}",
            "movdqa [{to} + {whole} - 32], {second}",
            "sub {whole}, 32",
            "jnz 2b",
            from = in(reg) from + rest,
            to = in(reg) to + rest,
            whole = inout(reg) aligned - rest => _,
            first = out(xmm_reg) _,
            second = out(xmm_reg) _,
            options(nostack),
        );
    }
    copy_few(to, from, rest);
    ((to + count - 16) as *mut __m128i).write_unaligned(last);
}

/// Copies bytes from the front.
#[inline]
unsafe fn copy(to: usize, from: usize, count: usize) {
    if count <= 32 {
        return copy_few(to, from, count);
    }
    asm!(
        "rep movsb",
        inout("rdi") to => _,
        inout("rsi") from => _,
        inout("rcx") count => _,
        options(nostack, preserves_flags),
    );
}

/// Copies between places that may overlap.
pub unsafe fn copy_either(to: usize, from: usize, count: usize) {
    if to.wrapping_sub(from) >= count {
        copy(to, from, count);
    } else {
        copy_back(to, from, count);
    }
}

/// Sets bytes.
#[inline]
pub unsafe fn fill(to: usize, byte: c_int, count: usize) {
    asm!(
        "rep stosb",
        inout("rdi") to => _,
        in("al") byte as u8,
        inout("rcx") count => _,
        options(nostack, preserves_flags),
    );
}

/// Logs that code at `code` reads `count` bytes at `from` and writes as many at `to`.
pub unsafe fn log_copy(code: u64, to: usize, from: usize, count: usize) {
    if count > 0
        && let Some(entry) = log::enter(code)
    {
        log_range(&entry, Kind::ReadRange, from, count);
        log_range(&entry, Kind::WriteRange, to, count);
    }
}

/// Logs that code at `code` fills `count` bytes at `to`.
pub unsafe fn log_fill(code: u64, to: usize, byte: c_int, count: usize) {
    if count > 0
        && let Some(entry) = log::enter(code)
    {
        log_range_of(&entry, Kind::WriteRange, to, count, Some(byte as u8));
    }
}

/// What `mmap` answers when it fails.
const FAILED: usize = usize::MAX;

/// The bytes of a page: mappings begin and end at its borders, whatever length is asked for.
const PAGE: usize = 4096;

/// Logs that the pages with the `length` bytes at `place` are about to be released, if they are.
unsafe fn unmapped(entry: &Entry, place: usize, length: usize) {
    let length = length.checked_next_multiple_of(PAGE).unwrap_or(0);
    // A length of 0 would mean a whole block, and what is not at a border is refused.
    if length != 0 && place.is_multiple_of(PAGE) {
        freed(entry, place, Some(length));
    }
}

/// Logs that the pages with the `length` bytes at `place` were mapped.
unsafe fn mapped(entry: &Entry, place: usize, length: usize) {
    if length != 0 {
        allocated(entry, place, length.checked_next_multiple_of(PAGE).unwrap_or(length));
    }
}

/// Changes the size of a mapping where it is, if that can be.
unsafe fn resize(entry: &Entry, place: usize, before: usize, after: usize) -> bool {
    let pages = |length: usize| length.checked_next_multiple_of(PAGE).unwrap_or(length);
    let [before, after] = [before, after].map(pages);
    if after < before {
        unmapped(entry, place.wrapping_add(after), before - after);
    }
    let is_done = keeping_errno(|| mremap::real(place, before, after, 0, 0)) == place;
    if is_done && after > before {
        mapped(entry, place.wrapping_add(before), after - before);
    }
    is_done
}

interceptors! {
    fn malloc(size: usize) -> usize {
        let entry = enter_or!(hidden(allocator::malloc(size)));
        entry.note_unsafe_call();
        allocated(&entry, allocator::malloc(size), size)
    }
    fn calloc(count: usize, size: usize) -> usize {
        let entry = enter_or!(hidden(allocator::calloc(count, size)));
        entry.note_unsafe_call();
        let block = allocator::calloc(count, size);
        allocated_so(&entry, block, count.wrapping_mul(size), flag::ZEROED)
    }
    fn realloc(block: usize, size: usize) -> usize {
        let entry = enter_or!(hidden(allocator::realloc(block, size)));
        entry.note_unsafe_call();
        let before = if block == 0 { 0 } else { allocator::malloc_usable_size(block) };
        if block != 0 {
            freed(&entry, block, None);
        }
        let moved = allocator::realloc(block, size);
        if moved == 0 && block != 0 && size != 0 {
            // Nothing happened: the block lives on.
            allocated(&entry, block, before);
            return 0;
        }
        allocated(&entry, moved, size)
    }
    fn reallocarray(block: usize, count: usize, size: usize) -> usize {
        match count.checked_mul(size) {
            Some(size) => realloc::body(block, size),
            None => real(block, count, size),
        }
    }
    fn free(block: usize) -> () {
        if block == 0 {
            return;
        }
        let entry = enter_or!(allocator::free(block));
        entry.note_unsafe_call();
        freed(&entry, block, None);
        allocator::free(block);
    }
    fn [memalign aligned_alloc](alignment: usize, size: usize) -> usize {
        let entry = enter_or!(hidden(allocator::memalign(alignment, size)));
        entry.note_unsafe_call();
        allocated(&entry, allocator::memalign(alignment, size), size)
    }
    fn posix_memalign(block: *mut usize, alignment: usize, size: usize) -> c_int {
        const INVALID: c_int = 22;
        const NO_MEMORY: c_int = 12;
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
            return INVALID;
        }
        let entry = log::enter(thread::caller());
        if let Some(entry) = &entry {
            entry.note_unsafe_call();
        }
        let place = allocator::memalign(alignment, size);
        if place == 0 {
            return NO_MEMORY;
        }
        if let Some(entry) = &entry {
            allocated(entry, place, size);
            log_range(entry, Kind::WriteRange, block as usize, size_of::<usize>());
        } else {
            hidden(place);
        }
        block.write(place);
        0
    }
    fn valloc(size: usize) -> usize { memalign::body(PAGE, size) }
    fn pvalloc(size: usize) -> usize { memalign::body(PAGE, size.next_multiple_of(PAGE)) }
    fn [mmap mmap64](
        place: usize, length: usize, protection: c_int, flags: c_int, file: c_int, offset: c_long,
    ) -> usize |entry, call| {
        // What was written last is reported before something else is in its place.
        let entry = entry.flushed();
        let result = call();
        if result != FAILED {
            mapped(&entry, result, length);
        }
        result
    }
    fn munmap(place: usize, length: usize) -> c_int |entry, call| { unmapped(&entry, place, length); call() }
    fn mremap(place: usize, before: usize, after: usize, flags: c_int, new: usize) -> usize |entry, call| {
        const MAY_MOVE: c_int = 1;
        let entry = entry.flushed();
        // A mapping that stays where it is keeps its memory.
        let can_stay = flags & !MAY_MOVE == 0 && before != 0 && after != 0;
        if can_stay && resize(&entry, place, before, after) {
            return place;
        }
        // A length of 0 asks for a second mapping of the same memory.
        if can_stay && flags == 0 {
            return call();
        }
        unmapped(&entry, place, before);
        let result = call();
        let (place, length) = if result == FAILED { (place, before) } else { (result, after) };
        mapped(&entry, place, length);
        result
    }
    fn shmdt(place: usize) -> c_int |entry, call| { drop(entry.flushed()); call() }
    fn mprotect(place: usize, length: usize, protection: c_int) -> c_int |entry, call| {
        // What was written last is reported before it can no longer be read.
        drop(entry.flushed());
        call()
    }
    fn memcpy(to: usize, from: usize, count: usize) -> usize {
        log_copy(thread::caller(), to, from, count);
        copy(to, from, count);
        to
    }
    fn memmove(to: usize, from: usize, count: usize) -> usize {
        log_copy(thread::caller(), to, from, count);
        copy_either(to, from, count);
        to
    }
    fn memset(to: usize, byte: c_int, count: usize) -> usize {
        log_fill(thread::caller(), to, byte, count);
        fill(to, byte, count);
        to
    }

    // What these become where the compiler knows how much room there is.
    fn __memcpy_chk(to: usize, from: usize, count: usize, room: usize) -> usize {
        if room < count {
            return real(to, from, count, room);
        }
        memcpy::body(to, from, count)
    }
    fn __memmove_chk(to: usize, from: usize, count: usize, room: usize) -> usize {
        if room < count {
            return real(to, from, count, room);
        }
        memmove::body(to, from, count)
    }
    fn __memset_chk(to: usize, byte: c_int, count: usize, room: usize) -> usize {
        if room < count {
            return real(to, byte, count, room);
        }
        memset::body(to, byte, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_between_places_that_overlap_are_exact() {
        const ROOM: usize = 512;
        let before: Vec<u8> = (0..ROOM).map(|at| (at * 7 + at / 256) as u8).collect();
        let places = [0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100];
        for (to, from) in places.iter().flat_map(|to| places.map(|from| (*to, from))) {
            for count in 0..=260 {
                let mut expected = before.clone();
                expected.copy_within(from..from + count, to);
                let mut moved = before.clone();
                let start = moved.as_mut_ptr() as usize;
                // SAFETY: both places are in the vector.
                unsafe { copy_either(start + to, start + from, count) };
                assert_eq!(moved, expected, "{count} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn bytes_are_set_and_no_others() {
        for count in 0..100 {
            let mut bytes = [1_u8; 128];
            // SAFETY: the place is in the array.
            unsafe { fill(bytes.as_mut_ptr() as usize + 3, 0x1ff, count) };
            let is_set = |at: usize| (3..3 + count).contains(&at);
            assert!((0..128).all(|at| bytes[at] == if is_set(at) { 0xff } else { 1 }));
        }
    }
}
