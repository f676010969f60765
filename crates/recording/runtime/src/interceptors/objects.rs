//! What is loaded: the program's own objects, the system's libraries, and libraries that came compiled.
//!
//! An object is *instrumented* if it calls the compiler's hooks. Of the others, those of the system
//! (the C and C++ libraries, the loader, the runtime itself) are what interceptors stand before.
//! The rest are *foreign*: what they do to memory and how they order threads is not seen, except for
//! *known* ones, whose functions that order threads are in the table of [`super::known`].
//!
//! Foreign libraries that need each other, directly or through others, are one group: what is handed
//! to one can come out of another.
//!
//! Code that was linked into an object without being instrumented, such as a static library, is an
//! object of its own *within* that. The linker was made to keep it together, and to say where it is.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::known;
use super::program::{LoadedObject, ProgramHeader, dl_iterate_phdr};

/// Objects beyond this many are not followed.
const OBJECTS_MAX: usize = 1024;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sort {
    /// No object: the entry is free.
    None,
    /// The program, or a library of it that is instrumented.
    Program,
    /// The C library, the loader, the C++ library, the runtime.
    System,
    /// A library that is not instrumented, but whose functions that order threads are known.
    Known,
    /// Any other library.
    Foreign,
}

/// A loaded object.
#[derive(Debug)]
pub struct Object {
    start: AtomicU64,
    end: AtomicU64,
    /// Where its code starts and ends.
    code: [AtomicU64; 2],
    /// What its loader makes read-only after it is set up.
    pub constant: [AtomicU64; 2],
    /// Where its variables are.
    variables: [AtomicU64; 2],
    pub base: AtomicU64,
    dynamic: AtomicU64,
    name: AtomicU64,
    sort: AtomicU32,
    pub is_instrumented: AtomicBool,
    /// Whether its calls lead where they should.
    pub is_bound: AtomicBool,
    is_seen: AtomicBool,
    /// Whether it was said that it is there.
    is_announced: AtomicBool,
    /// Whether it is code within another object.
    is_within: AtomicBool,
    /// The place of the object that stands for its group.
    group: AtomicU32,
    /// Whether it, or of one that stands for its group any of that, can order threads by itself.
    can_synchronize: AtomicBool,
}

impl Object {
    const fn new() -> Self {
        // SAFETY: zero is a value of every field: numbers and flags.
        unsafe { core::mem::zeroed() }
    }

    pub fn sort(&self) -> Sort {
        match self.sort.load(Ordering::Relaxed) {
            1 => Sort::Program,
            2 => Sort::System,
            3 => Sort::Known,
            4 => Sort::Foreign,
            _ => Sort::None,
        }
    }

    pub fn holds(&self, address: u64) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&address)
    }

    pub fn has_code_at(&self, address: u64) -> bool {
        let [start, end] = self.code();
        (start..end).contains(&address)
    }

    /// Whether what it has at `address`, if anything, may change.
    pub fn has_variable_at(&self, address: u64) -> bool {
        let [start, end] = [0, 1].map(|at: usize| self.variables[at].load(Ordering::Relaxed));
        (start..end).contains(&address)
    }

    pub fn code(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.code[at].load(Ordering::Relaxed))
    }

    pub fn start(&self) -> u64 {
        self.start.load(Ordering::Relaxed)
    }

    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// The number of its group.
    pub fn group(&self) -> u32 {
        self.group.load(Ordering::Relaxed)
    }

    /// Whether something in its group can order threads by itself.
    pub fn can_synchronize(&self) -> bool {
        OBJECTS[self.group() as usize].can_synchronize.load(Ordering::Relaxed)
    }

    /// Its path; empty for the program itself.
    pub unsafe fn path(&self) -> &'static CStr {
        CStr::from_ptr(self.name.load(Ordering::Relaxed) as *const c_char)
    }
}

static OBJECTS: [Object; OBJECTS_MAX] = [const { Object::new() }; OBJECTS_MAX];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Whether what the program started with is known.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Calls `visit` with each instrumented library that was loaded since the last time, but for those that the program
/// started with. Others may order threads out of sight before they are unloaded.
pub fn each_new_library(mut visit: impl FnMut(&Object)) {
    let had_started = HAS_STARTED.swap(true, Ordering::Relaxed);
    for object in all().filter(|object| !object.is_within.load(Ordering::Relaxed)) {
        let is_new = !object.is_announced.swap(true, Ordering::Relaxed) && had_started;
        if is_new && object.is_instrumented.load(Ordering::Relaxed) {
            visit(object);
        }
    }
}

/// Where the program itself is, if it is instrumented, up to code in it that is not: most code is
/// there.
static MAIN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether `code` is in the program itself and that is instrumented.
#[inline(always)]
pub fn is_in_main(code: u64) -> bool {
    (MAIN[0].load(Ordering::Relaxed)..MAIN[1].load(Ordering::Relaxed)).contains(&code)
}

/// All objects that are known.
pub fn all() -> impl Iterator<Item = &'static Object> {
    let count = COUNT.load(Ordering::Acquire) as usize;
    OBJECTS.iter().take(count).filter(|object| object.sort() != Sort::None)
}

/// The object that `address` is in, the innermost.
pub fn find(address: u64) -> Option<&'static Object> {
    let is_within = |object: &&Object| object.is_within.load(Ordering::Relaxed);
    let mut found = all().filter(|object| object.holds(address));
    let first = found.next()?;
    if is_within(&first) {
        return Some(first);
    }
    Some(found.find(is_within).unwrap_or(first))
}

/// Whether `code` is in a library that was not rebuilt.
#[inline]
pub fn is_foreign(code: u64) -> bool {
    !is_in_main(code)
        && find(code).is_some_and(|object| matches!(object.sort(), Sort::Known | Sort::Foreign))
}

/// Whether `code` is in an object that is instrumented.
#[inline]
pub fn is_instrumented(code: u64) -> bool {
    is_in_main(code)
        || find(code).is_some_and(|object| object.is_instrumented.load(Ordering::Relaxed))
}

/// Whether `address` is in the code of an object that is instrumented.
pub fn is_code(address: u64) -> bool {
    let object = find(address).filter(|object| object.is_instrumented.load(Ordering::Relaxed));
    object.is_some_and(|object| object.has_code_at(address) && object.has_code_at(address - 8))
}

/// Whether `code` is in the C++ library.
pub unsafe fn is_in_cxx_library(code: u64) -> bool {
    find(code).is_some_and(|object| {
        let name = file_name(object.path().to_bytes());
        [&b"libstdc++.so"[..], b"libc++.so"].iter().any(|start| name.starts_with(start))
    })
}

/// What was loaded between `start` and `end` is gone: what is loaded there next is another.
pub fn forget_within(start: u64, end: u64) {
    for object in all().filter(|object| (start..end).contains(&object.start())) {
        object.sort.store(Sort::None as u32, Ordering::Relaxed);
        object.end.store(0, Ordering::Relaxed);
    }
}

/// Looks what is loaded now, and calls `bind` with each object that was not there before. Says
/// whether one is still being loaded, and must be looked at again.
pub unsafe fn refresh(mut bind: impl FnMut(&'static Object)) -> bool {
    for object in &OBJECTS {
        object.is_seen.store(false, Ordering::Relaxed);
    }
    dl_iterate_phdr(note, core::ptr::null_mut());
    let is_seen = |object: &&Object| object.is_seen.load(Ordering::Relaxed);
    for object in all().filter(|object| object.is_within.load(Ordering::Relaxed)) {
        let start = object.start.load(Ordering::Relaxed);
        let is_loaded = all().filter(is_seen).any(|outer| outer.holds(start));
        object.is_seen.store(is_loaded, Ordering::Relaxed);
    }
    for object in all().filter(|object| !is_seen(object)) {
        object.sort.store(Sort::None as u32, Ordering::Relaxed);
        object.end.store(0, Ordering::Relaxed);
    }
    let is_new = |object: &&Object| !object.is_bound.load(Ordering::Relaxed);
    for object in all().filter(is_new) {
        classify(object);
    }
    join_groups();
    let mut is_any_left = false;
    for object in all().filter(is_new) {
        if is_ready(object) {
            object.is_bound.store(true, Ordering::Relaxed);
            bind(object);
        } else {
            is_any_left = true;
        }
    }
    is_any_left
}

/// Whether the loader has filled the slots of `object`: those of weak symbols may stay empty.
unsafe fn is_ready(object: &Object) -> bool {
    let length = object.end() - object.start.load(Ordering::Relaxed);
    // Until then a slot is empty, or says where in the object's file a call leads at first.
    let is_fixed = object.base.load(Ordering::Relaxed) == 0;
    let filled_min = if is_fixed { 1 } else { length };
    let mut is_ready = true;
    each_import(object, |import| {
        is_ready &= import.is_weak || *(import.slot as *const u64) >= filled_min;
    });
    is_ready
}

unsafe extern "C" fn note(loaded: *const LoadedObject, _: usize, _: *mut c_void) -> c_int {
    let loaded = &*loaded;
    let headers = core::slice::from_raw_parts(loaded.headers, usize::from(loaded.headers_count));
    let [start, end] = extent(loaded.address, headers, |header| header.kind == LOADED);
    if let Some(object) = all().find(|object| {
        object.start.load(Ordering::Relaxed) == start
            && object.end() == end
            && object.name.load(Ordering::Relaxed) == loaded.name as u64
    }) {
        object.is_seen.store(true, Ordering::Relaxed);
        return 0;
    }
    let Some(place) = OBJECTS.iter().position(|object| object.sort() == Sort::None) else {
        return 1;
    };
    let object = &OBJECTS[place];
    let part = |wanted: u32| extent(loaded.address, headers, |header| header.kind == wanted);
    let code = extent(loaded.address, headers, |header| {
        header.kind == LOADED && header.flags & EXECUTABLE != 0
    });
    object.start.store(start, Ordering::Relaxed);
    object.end.store(end, Ordering::Relaxed);
    object.base.store(loaded.address, Ordering::Relaxed);
    object.dynamic.store(part(DYNAMIC)[0], Ordering::Relaxed);
    object.name.store(loaded.name as u64, Ordering::Relaxed);
    let constant = part(CONSTANT);
    let [first, end_of_variables] = extent(loaded.address, headers, |header| {
        header.kind == LOADED && header.flags & WRITABLE != 0
    });
    object.variables[0].store(first.max(constant[1]), Ordering::Relaxed);
    object.variables[1].store(end_of_variables, Ordering::Relaxed);
    for at in 0..2 {
        object.code[at].store(code[at], Ordering::Relaxed);
        object.constant[at].store(constant[at], Ordering::Relaxed);
    }
    object.group.store(place as u32, Ordering::Relaxed);
    for flag in [
        &object.is_instrumented,
        &object.is_bound,
        &object.is_within,
        &object.is_announced,
        &object.can_synchronize,
    ] {
        flag.store(false, Ordering::Relaxed);
    }
    object.is_seen.store(true, Ordering::Relaxed);
    object.sort.store(Sort::System as u32, Ordering::Relaxed);
    COUNT.fetch_max(place as u32 + 1, Ordering::Release);
    0
}

// Code that was linked without being instrumented, and the calls of it.
//
// The tables are made by whoever links, beside the stubs that calls go through at first.

/// A static library, or an object file.
#[repr(C)]
#[derive(Debug)]
struct Part {
    start: u64,
    end: u64,
    name: *const c_char,
    /// Whether it calls what orders threads.
    orders_threads: u64,
}

/// A function of a part that instrumented code calls.
#[repr(C)]
#[derive(Debug)]
pub struct StaticCall {
    /// Where calls of it go.
    pub target: usize,
    name: *const c_char,
}

impl StaticCall {
    /// The name of the function.
    pub unsafe fn name(&self) -> &'static [u8] {
        CStr::from_ptr(self.name).to_bytes()
    }
}

/// What an object says of such code in it.
#[repr(C)]
#[derive(Debug)]
pub struct StaticCode {
    next: *mut Self,
    parts: [*const Part; 2],
    calls: [*mut StaticCall; 2],
}

impl StaticCode {
    unsafe fn parts(&self) -> &'static [Part] {
        let [start, end] = self.parts;
        core::slice::from_raw_parts(start, end.offset_from_unsigned(start))
    }

    /// The calls of it.
    pub unsafe fn calls(&self) -> &'static mut [StaticCall] {
        let [start, end] = self.calls;
        core::slice::from_raw_parts_mut(start, end.offset_from_unsigned(start))
    }
}

/// The tables that nobody has looked at yet.
static STATIC_CODE: AtomicPtr<StaticCode> = AtomicPtr::new(core::ptr::null_mut());

/// Called by the constructor of an object that has such code, perhaps before ours.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __reweave_static_code(code: *mut StaticCode) {
    let mut first = STATIC_CODE.load(Ordering::Relaxed);
    loop {
        (*code).next = first;
        match STATIC_CODE.compare_exchange(first, code, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Called when such an object is about to be unloaded.
#[cfg_attr(reweave_export, unsafe(no_mangle))]
unsafe extern "C" fn __reweave_static_code_gone(code: *mut StaticCode) {
    // What nobody has looked at yet goes back, but for this.
    let mut next = STATIC_CODE.swap(core::ptr::null_mut(), Ordering::AcqRel);
    while !next.is_null() {
        let current = next;
        next = (*current).next;
        if current != code {
            __reweave_static_code(current);
        }
    }
    for part in (*code).parts() {
        let is_it = |object: &&Object| {
            object.is_within.load(Ordering::Relaxed)
                && object.start.load(Ordering::Relaxed) == part.start
        };
        for object in all().filter(is_it) {
            object.sort.store(Sort::None as u32, Ordering::Relaxed);
            object.end.store(0, Ordering::Relaxed);
        }
    }
}

/// Whether there is a table that nobody has looked at yet.
pub fn has_new_static_code() -> bool {
    !STATIC_CODE.load(Ordering::Relaxed).is_null()
}

/// Adds the parts of objects that said so since the last time, and calls `bind` with each table.
pub unsafe fn add_static_code(mut bind: impl FnMut(&StaticCode)) {
    let mut next = STATIC_CODE.swap(core::ptr::null_mut(), Ordering::AcqRel);
    while !next.is_null() {
        let linked = &*next;
        next = linked.next;
        // They may call each other, so they are one group.
        let mut group = None;
        for part in linked.parts() {
            let Some(object) = add_part(part) else { break };
            let place = object.group();
            let group = *group.get_or_insert(place);
            object.group.store(group, Ordering::Relaxed);
            if object.can_synchronize.load(Ordering::Relaxed) {
                OBJECTS[group as usize].can_synchronize.store(true, Ordering::Relaxed);
            }
        }
        bind(linked);
    }
}

unsafe fn add_part(part: &Part) -> Option<&'static Object> {
    let place = OBJECTS.iter().position(|object| object.sort() == Sort::None)?;
    let object = &OBJECTS[place];
    object.start.store(part.start, Ordering::Relaxed);
    object.end.store(part.end, Ordering::Relaxed);
    object.code[0].store(part.start, Ordering::Relaxed);
    object.code[1].store(part.end, Ordering::Relaxed);
    for bound in object.constant.iter().chain(&object.variables) {
        bound.store(0, Ordering::Relaxed);
    }
    object.base.store(0, Ordering::Relaxed);
    object.dynamic.store(0, Ordering::Relaxed);
    object.name.store(part.name as u64, Ordering::Relaxed);
    object.group.store(place as u32, Ordering::Relaxed);
    object.is_instrumented.store(false, Ordering::Relaxed);
    for flag in [&object.is_bound, &object.is_seen, &object.is_within] {
        flag.store(true, Ordering::Relaxed);
    }
    let is_known = known::is_known_library(object.path().to_bytes());
    let can_synchronize = !is_known && (part.orders_threads != 0 || has_atomics(object));
    object.can_synchronize.store(can_synchronize, Ordering::Relaxed);
    let sort = if is_known { Sort::Known } else { Sort::Foreign };
    object.sort.store(sort as u32, Ordering::Relaxed);
    COUNT.fetch_max(place as u32 + 1, Ordering::Release);
    // It follows the code of the program itself.
    if is_in_main(part.start) {
        MAIN[1].store(part.start, Ordering::Relaxed);
    }
    Some(object)
}

const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const CONSTANT: u32 = 0x6474_e552;
const EXECUTABLE: u32 = 1;
const WRITABLE: u32 = 2;

/// Where the parts of an object are that `is_wanted`; from 0 to 0 if there are none.
fn extent(
    base: u64,
    headers: &[ProgramHeader],
    is_wanted: impl Fn(&ProgramHeader) -> bool,
) -> [u64; 2] {
    let parts = headers.iter().filter(|header| is_wanted(header)).map(|header| {
        let start = base.wrapping_add(header.address);
        [start, start.saturating_add(header.memory_bytes)]
    });
    let around = |all: [u64; 2], part: [u64; 2]| [all[0].min(part[0]), all[1].max(part[1])];
    parts.reduce(around).unwrap_or([0, 0])
}

/// Libraries of the system and those of OpenMP, which have interceptors of their own, by how their
/// names begin.
const SYSTEM: [&str; 24] = [
    "libc.so",
    "libc-2",
    "libm.so",
    "libm-2",
    "libmvec.so",
    "libpthread",
    "libdl.so",
    "libdl-2",
    "librt.so",
    "librt-2",
    "ld-linux",
    "ld-2",
    "libgcc_s.so",
    "libstdc++.so",
    "libc++.so",
    "libc++abi.so",
    "libunwind.so",
    "libreweave_rt",
    "libtsan.so",
    "linux-vdso",
    "libgomp.so",
    "libomp.so",
    "libomp-",
    "libiomp5.so",
];

/// The last part of a path.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Decides what `object` is.
unsafe fn classify(object: &Object) {
    let own = classify as *const () as u64;
    let path = object.path().to_bytes();
    let name = file_name(path);
    let is_main = path.is_empty();
    let has_runtime = object.holds(own);
    let is_system = SYSTEM.iter().any(|start| name.starts_with(start.as_bytes()));
    let mut is_instrumented = has_runtime && is_main;
    let mut can_synchronize = false;
    if !is_system && (is_main || !has_runtime) {
        each_import(object, |import| {
            is_instrumented |= import.name.starts_with(b"__tsan_");
            can_synchronize |= known::orders_threads(import.name);
        });
    }
    let sort = if is_main || is_instrumented {
        Sort::Program
    } else if is_system || has_runtime {
        Sort::System
    } else if known::is_known_library(name) {
        Sort::Known
    } else {
        Sort::Foreign
    };
    if sort == Sort::Foreign {
        // On this machine plain loads and stores of a variable can be enough.
        can_synchronize |= has_atomics(object) || uses_variables(object);
    }
    object.is_instrumented.store(is_instrumented, Ordering::Relaxed);
    object.can_synchronize.store(can_synchronize, Ordering::Relaxed);
    object.sort.store(sort as u32, Ordering::Relaxed);
    let start = object.start.load(Ordering::Relaxed);
    // What is in it and not instrumented is left out later, once.
    if is_main && is_instrumented && MAIN[0].swap(start, Ordering::Relaxed) != start {
        MAIN[1].store(object.end(), Ordering::Relaxed);
    }
}

/// Makes one group of foreign libraries where one needs another.
unsafe fn join_groups() {
    let foreign = || all().filter(|object| object.sort() == Sort::Foreign);
    for object in foreign() {
        let Some(tables) = Tables::new(object) else { continue };
        for name in tables.needed() {
            let needed = foreign().find(|other| {
                let own = Tables::new(other).and_then(|tables| tables.own_name());
                own.unwrap_or_else(|| file_name(other.path().to_bytes())) == name
            });
            if let Some(needed) = needed {
                let (kept, joined) = (object.group(), needed.group());
                let (kept, joined) = (kept.min(joined), kept.max(joined));
                for member in foreign().filter(|member| member.group() == joined) {
                    member.group.store(kept, Ordering::Relaxed);
                }
            }
        }
    }
    for object in foreign().filter(|object| object.can_synchronize.load(Ordering::Relaxed)) {
        OBJECTS[object.group() as usize].can_synchronize.store(true, Ordering::Relaxed);
    }
}

/// Whether code of `object` looks as if it had atomic updates. What only looks so does no harm: more
/// is taken to be ordered.
unsafe fn has_atomics(object: &Object) -> bool {
    let [start, end] = object.code();
    let code = core::slice::from_raw_parts(start as *const u8, (end - start) as usize);
    code.windows(8).enumerate().any(|(at, bytes)| {
        let before = if at == 0 { 0 } else { code[at - 1] };
        is_atomic(before, bytes)
    })
}

/// Whether code of `object` looks as if it accessed variables of its own by their addresses, other than
/// those that every object has.
unsafe fn uses_variables(object: &Object) -> bool {
    let [start, end] = object.code();
    let code = core::slice::from_raw_parts(start as *const u8, (end - start) as usize);
    let [from, to] = [0, 1].map(|at: usize| object.variables[at].load(Ordering::Relaxed));
    // What code at the end of a program compares, sets and loads; it comes before all other.
    let mut usual = [0; 2];
    code.windows(6).enumerate().any(|(at, bytes)| {
        let &[operation, form, ref distance @ ..] = bytes else { return false };
        // A jump by a slot, or a push of one.
        let is_slot = operation == 0xff && matches!(form, 0x25 | 0x35);
        if form & 0xc7 != 0x05 || is_slot {
            return false;
        }
        let Ok(&distance) = <&[u8; 4]>::try_from(distance) else { return false };
        let distance = i32::from_le_bytes(distance);
        let next = start + at as u64 + 6;
        // An operand may follow.
        let targets = [0, 1, 2, 4].map(|more| (next + more).wrapping_add_signed(distance.into()));
        let usual_place = match (operation, form) {
            (0x80, 0x3d) => Some((0, targets[1])),
            (0x8b, 0x3d) => Some((1, targets[0])),
            _ => None,
        };
        if let Some((place, target)) = usual_place
            && usual[place] == 0
        {
            usual[place] = target;
        }
        let is_usual = targets.iter().any(|target| usual.contains(target));
        !is_usual && targets.iter().any(|target| (from..to).contains(target))
    })
}

/// Whether `bytes` begin with an instruction that updates memory atomically, or a full fence.
fn is_atomic(before: u8, bytes: &[u8]) -> bool {
    let in_memory = |form: u8| form >> 6 != 3;
    match bytes[0] {
        // A locked instruction, perhaps with a prefix for wide operands.
        0xf0 => {
            let at = if bytes[1] & 0xf0 == 0x40 || bytes[1] == 0x66 { 2 } else { 1 };
            match bytes[at] {
                0x0f => {
                    matches!(
                        bytes[at + 1],
                        0xb0 | 0xb1 | 0xc0 | 0xc1 | 0xc7 | 0xab | 0xb3 | 0xbb | 0xba
                    ) && in_memory(bytes[at + 2])
                }
                0x00 | 0x01 | 0x08 | 0x09 | 0x20 | 0x21 | 0x28..=0x31 | 0x86 | 0x87 => {
                    in_memory(bytes[at + 1])
                }
                0x80 | 0x81 | 0x83 | 0xfe | 0xff => in_memory(bytes[at + 1]),
                _ => false,
            }
        }
        // An exchange, which needs no prefix; not the operands of a move, nor a jump.
        0x86 | 0x87 => !matches!(before, 0x0f | 0x63 | 0x89 | 0x8b | 0x8d) && in_memory(bytes[1]),
        0x0f => bytes[1] == 0xae && bytes[2] == 0xf0,
        _ => false,
    }
}

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: u64,
}

/// The tables by which an object names others.
struct Tables {
    entries: &'static [Dynamic],
    base: u64,
    strings: u64,
    symbols: *const Symbol,
}

impl Tables {
    unsafe fn new(object: &Object) -> Option<Self> {
        const STRINGS: u64 = 5;
        const SYMBOLS: u64 = 6;
        let first = object.dynamic.load(Ordering::Relaxed) as *const Dynamic;
        if first.is_null() {
            return None;
        }
        let mut count = 0;
        while (*first.add(count)).tag != 0 {
            count += 1;
        }
        let entries = core::slice::from_raw_parts(first, count);
        let base = object.base.load(Ordering::Relaxed);
        let mut tables = Self { entries, base, strings: 0, symbols: core::ptr::null() };
        tables.strings = tables.address(STRINGS)?;
        tables.symbols = tables.address(SYMBOLS)? as *const Symbol;
        Some(tables)
    }

    fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }

    /// The address that the entry says. The loader has added where the object is, but for objects
    /// of the kernel.
    fn address(&self, tag: u64) -> Option<u64> {
        self.value(tag).map(|value| if value < self.base { self.base + value } else { value })
    }

    unsafe fn text(&self, offset: u64) -> &'static [u8] {
        CStr::from_ptr((self.strings + offset) as *const c_char).to_bytes()
    }

    unsafe fn own_name(&self) -> Option<&'static [u8]> {
        const OWN_NAME: u64 = 14;
        Some(self.text(self.value(OWN_NAME)?))
    }

    fn needed(&self) -> impl Iterator<Item = &'static [u8]> {
        const NEEDED: u64 = 1;
        let needed = self.entries.iter().filter(|entry| entry.tag == NEEDED);
        // SAFETY: the loader has read the same names.
        needed.map(|entry| unsafe { self.text(entry.value) })
    }

    /// The relocations at the address that one entry says, and as many bytes as the other.
    unsafe fn relocations(&self, place: u64, bytes: u64) -> &'static [Relocation] {
        match (self.address(place), self.value(bytes)) {
            (Some(place), Some(bytes)) if bytes > 0 => core::slice::from_raw_parts(
                place as *const Relocation,
                bytes as usize / size_of::<Relocation>(),
            ),
            _ => &[],
        }
    }
}

/// A function or variable of another object, and where its address is kept.
pub struct Import {
    pub name: &'static [u8],
    pub slot: u64,
    /// Whether the slot is for calls alone.
    pub is_call: bool,
    is_weak: bool,
}

/// Calls `visit` with each import of `object`.
pub unsafe fn each_import(object: &Object, mut visit: impl FnMut(Import)) {
    const ADDRESS: u64 = 6;
    const CALL: u64 = 7;
    const WEAK: u8 = 2;
    let Some(tables) = Tables::new(object) else { return };
    // Those of calls and all others.
    for [place, bytes] in [[23, 2], [7, 8]] {
        for relocation in tables.relocations(place, bytes) {
            let kind = relocation.info & u64::from(u32::MAX);
            let symbol = &*tables.symbols.add((relocation.info >> 32) as usize);
            if matches!(kind, ADDRESS | CALL) && symbol.section == 0 {
                let name = tables.text(u64::from(symbol.name));
                let slot = tables.base.wrapping_add(relocation.offset);
                let is_weak = symbol.info >> 4 == WEAK;
                visit(Import { name, slot, is_call: kind == CALL, is_weak });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_synchronize_are_known() {
        let atomic: [(&str, u8, &[u8]); 6] = [
            ("lock cmpxchg [rdi], ecx", 0, &[0xf0, 0x0f, 0xb1, 0x0f]),
            ("lock xadd [rdi], rax", 0, &[0xf0, 0x48, 0x0f, 0xc1, 0x07]),
            ("lock add dword ptr [rip], 1", 0, &[0xf0, 0x83, 0x05]),
            ("xchg [rdi], eax", 0xc0, &[0x87, 0x07]),
            ("mfence", 0, &[0x0f, 0xae, 0xf0]),
            ("lock dec dword ptr [rdi]", 0, &[0xf0, 0xff, 0x0f]),
        ];
        let plain: [(&str, u8, &[u8]); 4] = [
            ("mov rax, [rdi + 16]", 0x8b, &[0x87, 0x10]),
            ("ja", 0x0f, &[0x87, 0x10]),
            ("xchg ecx, eax", 0, &[0x87, 0xc1]),
            ("-16, then add eax, 1", 0x45, &[0xf0, 0x83, 0xc0, 0x01]),
        ];
        for (cases, expected) in [(&atomic[..], true), (&plain[..], false)] {
            for &(text, before, bytes) in cases {
                let mut padded = [0x90; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                assert_eq!(is_atomic(before, &padded), expected, "{text}");
            }
        }
    }

    #[test]
    fn what_is_loaded_is_sorted() {
        // SAFETY: nothing is bound.
        assert!(!unsafe { refresh(|_| {}) });
        let here = find(what_is_loaded_is_sorted as *const () as u64).expect("it is loaded");
        assert_eq!(here.sort(), Sort::Program);
        assert!(!is_foreign(here.code()[0]));
        // SAFETY: it is only looked up.
        let function = unsafe { super::super::real_dlsym() } as u64;
        assert_eq!(find(function).expect("it is loaded").sort(), Sort::System);
    }
}
