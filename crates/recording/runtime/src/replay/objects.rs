//! Code addresses of a plan, as they are in this process.
//!
//! A plan names code by the file it is in; where files are loaded differs from run to run. The
//! addresses are looked up when the plan is read and again when a library was loaded.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::interceptors::program::{LoadedObject, dl_iterate_phdr};
use crate::plan::Plan;
use crate::{process, sys};

/// For each slot of a hash table a code address and 1 + its number in the plan.
static TABLE: AtomicPtr<[u64; 2]> = AtomicPtr::new(core::ptr::null_mut());
static SLOTS: AtomicUsize = AtomicUsize::new(0);

/// Looks up all code addresses of `plan`.
pub unsafe fn start(plan: &Plan<'_>) -> Option<()> {
    let slots = ((plan.codes.len() + 1) * 2).next_power_of_two();
    TABLE.store(sys::allocate(slots * 16)?.cast(), Ordering::Release);
    SLOTS.store(slots, Ordering::Release);
    resolve(plan);
    Some(())
}

/// Looks the addresses up again, since more code may be loaded now.
pub unsafe fn resolve(plan: &Plan<'_>) {
    dl_iterate_phdr(visit, core::ptr::from_ref(plan).cast_mut().cast());
}

unsafe extern "C" fn visit(object: *const LoadedObject, _: usize, plan: *mut c_void) -> c_int {
    let plan = &*plan.cast::<Plan<'_>>();
    let mut buffer = [0_u8; 512];
    let name = match CStr::from_ptr((*object).name) {
        own if own.is_empty() => link(c"/proc/self/exe", &mut buffer),
        library => file(library, &mut buffer),
    };
    for (number, code) in plan.codes.iter().enumerate() {
        let module = plan.modules.get(code.module as usize);
        if module.is_some_and(|&module| is_same(plan.path(module), name)) {
            insert((*object).address.wrapping_add(code.offset), number);
        }
    }
    0
}

/// The path of the file that `name` leads to, since a plan has the names of files and a library is
/// mostly loaded by that of a link to it; `name` itself if it leads nowhere.
fn file<'a>(name: &'a CStr, buffer: &'a mut [u8; 512]) -> &'a [u8] {
    const OPEN: usize = 2;
    const CLOSE: usize = 3;
    const PATH_ONLY_AND_CLOSE_ON_EXEC: usize = 0x20_0000 | 0x8_0000;
    let arguments = [name.as_ptr() as usize, PATH_ONLY_AND_CLOSE_ON_EXEC, 0, 0, 0, 0];
    // SAFETY: the name ends with a zero.
    let descriptor = unsafe { sys::call(OPEN, arguments) };
    let Ok(descriptor) = usize::try_from(descriptor) else { return name.to_bytes() };
    let path = process::Path::from(b"/proc/self/fd/").number(descriptor as u32);
    let found = link(CStr::from_bytes_until_nul(path.bytes()).unwrap_or(c""), buffer);
    // SAFETY: the descriptor is ours.
    unsafe { sys::call(CLOSE, [descriptor, 0, 0, 0, 0, 0]) };
    if found.is_empty() { name.to_bytes() } else { found }
}

/// Where the link at `path` leads; empty if nowhere.
fn link<'a>(path: &CStr, buffer: &'a mut [u8; 512]) -> &'a [u8] {
    const READLINK: usize = 89;
    let arguments = [path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
    // SAFETY: the kernel writes at most the buffer's length.
    let length = unsafe { sys::call(READLINK, arguments) };
    &buffer[..usize::try_from(length).unwrap_or(0).min(512)]
}

/// Whether two paths have the same last part: a program may have been moved since.
fn is_same(path: &[u8], name: &[u8]) -> bool {
    // Compared byte by byte: whole slices would be compared by a function that we intercept.
    let (path, name) = (last_part(path), last_part(name));
    !name.is_empty() && path.iter().eq(name)
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

unsafe fn find(address: u64) -> *mut [u64; 2] {
    let (table, slots) = (TABLE.load(Ordering::Acquire), SLOTS.load(Ordering::Acquire));
    let mut place = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    loop {
        let slot = table.add(place & (slots - 1));
        if (*slot)[0] == address || (*slot)[1] == 0 {
            return slot;
        }
        place += 1;
    }
}

unsafe fn insert(address: u64, number: usize) {
    *find(address) = [address, number as u64 + 1];
}

/// The number of the code address `address` in the plan, if it is in it.
pub unsafe fn number(_: &Plan<'_>, address: u64) -> Option<u32> {
    if address == 0 {
        return None;
    }
    let [_, number] = *find(address);
    (number != 0).then(|| number as u32 - 1)
}
