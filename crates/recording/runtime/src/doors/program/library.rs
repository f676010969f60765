//! Where the code of the C library is.
//!
//! While a thread waits in a call, doors are entered by handlers of signals, which are the program's,
//! and by the C library, whose call it is. They are told apart by where they were called from. That
//! needs a C library of its own: this is not part of static programs.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use super::{LoadedObject, dl_iterate_phdr};

/// The C library, its threads where they are apart, and the loader.
const PARTS: usize = 3;

/// The first address of each part, and the first after it.
static EXTENTS: [[AtomicU64; 2]; PARTS] = [const { [const { AtomicU64::new(0) }; 2] }; PARTS];

/// Whether the code at `code` is the C library's.
pub(crate) fn has(code: u64) -> bool {
    EXTENTS.iter().any(|[start, end]| {
        (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&code)
    })
}

/// Finds the C library, by a function of each of its parts.
pub(crate) unsafe fn find() {
    const DEFAULT: usize = 0;
    const NEXT: usize = usize::MAX;
    let mut functions = [
        crate::doors::dlsym(NEXT, c"dl_iterate_phdr".as_ptr().cast()) as u64,
        crate::doors::dlsym(NEXT, c"pthread_create".as_ptr().cast()) as u64,
        crate::doors::dlsym(DEFAULT, c"__tls_get_addr".as_ptr().cast()) as u64,
    ];
    dl_iterate_phdr(note_extent, (&raw mut functions).cast());
}

unsafe extern "C" fn note_extent(
    object: *const LoadedObject,
    _size: usize,
    functions: *mut c_void,
) -> c_int {
    const LOADED: u32 = 1;
    let functions = &*functions.cast::<[u64; PARTS]>();
    let (mut start, mut end) = (u64::MAX, 0);
    for place in 0..usize::from((*object).headers_count) {
        let part = &*(*object).headers.add(place);
        if part.kind == LOADED {
            let from = (*object).address.wrapping_add(part.address);
            start = start.min(from);
            end = end.max(from.wrapping_add(part.memory_bytes));
        }
    }
    for (&function, extent) in functions.iter().zip(&EXTENTS) {
        if (start..end).contains(&function) {
            extent[0].store(start, Ordering::Relaxed);
            extent[1].store(end, Ordering::Relaxed);
        }
    }
    0
}
