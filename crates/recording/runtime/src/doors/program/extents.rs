//! Which memory loaded objects take, so that it ends when they are unloaded: what is loaded there
//! next has other variables.

use core::ffi::{c_int, c_void};

use super::{LoadedObject, dl_iterate_phdr};
use crate::log;
use crate::wire::Kind;
use crate::{sys, thread};

/// Objects beyond this many are not followed.
const OBJECTS_MAX: usize = 4095;

/// The kind of a part that is in memory.
const LOADED: u32 = 1;

/// Where objects are loaded.
pub(crate) struct Extents(*mut List);

#[repr(C)]
struct List {
    count: usize,
    places: [(u64, u64); OBJECTS_MAX],
}

impl Extents {
    /// What is loaded now; nothing if there is no memory to say so.
    pub(crate) unsafe fn now() -> Option<Self> {
        let list = sys::allocate(size_of::<List>())?.cast::<List>();
        dl_iterate_phdr(add, list.cast());
        Some(Self(list))
    }

    /// Logs that the memory of objects which were unloaded since is another from now on.
    pub(crate) unsafe fn end_what_is_gone(&self, code: u64) {
        dl_iterate_phdr(remove, self.0.cast());
        let list = &*self.0;
        let gone = || list.places.iter().take(list.count).filter(|(start, end)| start < end);
        let thread = thread::current();
        // What was written there last cannot be read any more.
        if !thread.is_null() && thread != thread::off() {
            let pending = (*thread).pending;
            if gone().any(|&(start, end)| (start..end).contains(&pending)) {
                (*thread).pending = 0;
            }
        }
        if gone().next().is_some()
            && let Some(entry) = log::enter(code)
        {
            for &(start, end) in gone() {
                entry.log_extra(Kind::Alloc, start, end - start);
                entry.log(Kind::Free, start);
            }
        }
    }
}

impl Drop for Extents {
    fn drop(&mut self) {
        // SAFETY: the list is ours, and this is its end.
        unsafe {
            sys::unmap(self.0.cast(), size_of::<List>());
        }
    }
}

/// Where an object begins and ends.
unsafe fn extent(object: &LoadedObject) -> (u64, u64) {
    let (mut start, mut end) = (u64::MAX, 0);
    for place in 0..usize::from(object.headers_count) {
        let header = &*object.headers.add(place);
        if header.kind == LOADED {
            let address = object.address.wrapping_add(header.address);
            start = start.min(address);
            end = end.max(address.saturating_add(header.memory_bytes));
        }
    }
    (start, end)
}

unsafe extern "C" fn add(object: *const LoadedObject, _: usize, list: *mut c_void) -> c_int {
    let list = &mut *list.cast::<List>();
    let Some(place) = list.places.get_mut(list.count) else { return 1 };
    *place = extent(&*object);
    list.count += 1;
    0
}

unsafe extern "C" fn remove(object: *const LoadedObject, _: usize, list: *mut c_void) -> c_int {
    let list = &mut *list.cast::<List>();
    let extent = extent(&*object);
    for place in list.places.iter_mut().take(list.count).filter(|place| **place == extent) {
        *place = (0, 0);
    }
    0
}
