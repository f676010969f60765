//! Calls between the program and libraries that were not rebuilt.
//!
//! Such a library may order threads out of sight. Where one of its functions is known to
//! ([`known`]), calls of it are logged as what they do. Of all others every call is taken to order:
//! it *releases* to a channel when it begins, and before the thread's next event in the program's own
//! code it *acquires* from it. Code of the program that the library calls acquires what was released
//! to the library, and releases when it returns. So two calls are ordered as they were observed,
//! which can hide a race and never invent one; these channels are marked as assumed, and `check`
//! counts what they may hide.
//!
//! A library with atomic updates or locks in it has one channel for all calls, since it may hand from
//! one object to another. One that has neither can only have passed on what it was given: there, each
//! object that a call names is a channel.
//!
//! Calls are seen where they leave an instrumented object, by its table of addresses: slots for calls
//! alone are pointed to stubs. A slot from which code may also take the address stays as it is, since
//! a function has one address for all; the calls through it are changed to go through a slot of ours.
//! A stub keeps all registers and jumps on, so the library's function returns to its caller as if
//! nothing had been there.
//!
//! A library that was linked into the object has no such slots. Whoever links makes slots for it.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering};

use super::cxx_strings::{self, ChangedString, Effect};
use super::known::{self, Line};
use super::objects::{self, Import, Object, Sort, StaticCode};
use super::real_address;
use crate::log::{self, Entry, Operands};
use crate::sys;
use crate::thread::{self, Thread};
use crate::wire::{Kind, channel, flag};

/// Callbacks within callbacks beyond this many release only when the outermost one returns.
const CALLBACKS_MAX: usize = 8;

/// The objects that one call may name.
const OBJECTS_MAX: usize = 3;

/// What a call of a library released to, and must acquire from once it is over.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The channel for all calls of the library, or 0 if the objects are the channels.
    shared_channel: u64,
    /// Arguments that may be objects.
    objects: [u64; OBJECTS_MAX],
    count: u32,
    /// What it does, if it is one of the C++ library.
    effect: Effect,
    /// What it changes that code of the program may look at.
    string: ChangedString,
    /// Code of the library, by which the recorder finds its name.
    library: u64,
    /// Where the call is.
    code: u64,
}

/// Code of the program that a library has called.
#[derive(Clone, Copy, Debug)]
struct Callback {
    /// How many functions were entered before it.
    calls: i64,
    /// Through what it gets and hands over what the library orders, or 0 if by nothing.
    channel: u64,
    /// Whether that the library orders is assumed.
    flags: u16,
    code: u64,
    /// The call within which it came.
    outer: Call,
}

/// What a thread has to do with libraries.
#[derive(Clone, Copy, Debug)]
pub struct Boundary {
    /// How many functions of the program have been entered and not left.
    pub calls: i64,
    /// How many callbacks have been entered and not left.
    pub depth: u32,
    /// If a library that may have counted references has called the program: how many functions had been entered with
    /// the one that it called, else 0.
    pub called_back: i64,
    /// Whether the last call was not followed by an event of the program yet.
    pub is_due: bool,
    /// Whether the thread is in a call of a known library that runs what others handed to it.
    pub dispatches: u32,
    /// Whether threads that it creates run what the program asked for, though a library creates them.
    pub creates: bool,
    /// Whether it was created so.
    pub was_asked_for: bool,
    last: Call,
    callbacks: [Callback; CALLBACKS_MAX],
}

/// The channel for all calls of the group of `object`.
fn group_channel(object: &Object) -> u64 {
    channel::address(channel::id(channel::LIBRARY, object.group()))
}

impl Call {
    fn objects(&self) -> &[u64] {
        &self.objects[..self.count as usize]
    }

    fn channels(&self) -> &[u64] {
        match self.shared_channel {
            0 => self.objects(),
            _ => core::slice::from_ref(&self.shared_channel),
        }
    }

    /// Logs what the call hands over, or takes.
    unsafe fn log(&self, entry: &Entry, kind: Kind) {
        for &address in self.channels() {
            log_one(entry, kind, address, self.library, flag::ASSUMED);
        }
    }

    /// Logs the objects that the library may have looked at by now: the C++ library waits for none of the program's.
    unsafe fn log_objects(&self, entry: &Entry) {
        if self.effect != Effect::None {
            return;
        }
        for &address in self.objects() {
            entry.log_unplanned(Kind::Argument, address, None);
        }
    }
}

/// Whether what decides that code at `code` waits is recorded: the code is, or it is a function of the C++
/// library, which waits for whoever calls it.
pub unsafe fn checks_are_seen(code: u64) -> bool {
    objects::is_instrumented(code) || objects::is_in_cxx_library(code)
}

/// Logs that something was handed to `channel` of the library that has `code`, or taken from it.
pub unsafe fn log_one(entry: &Entry, kind: Kind, channel: u64, code: u64, flags: u16) {
    let tries = if kind == Kind::Receive { flag::TRY } else { 0 };
    let operands = Operands { flags: flags | tries, extra: Some(code), ..Operands::default() };
    entry.log_with(kind, channel, operands);
}

/// Acquires what the last call of a library may have handed to `thread`, which is about to log an
/// event in code at `code`. While the library itself is at work the call is not over.
#[cold]
pub unsafe fn resume(thread: *mut Thread, code: u64) {
    if !objects::is_instrumented(code) {
        // The next event is looked at again.
        (*thread).needs_safepoint.store(1, Ordering::Relaxed);
        return;
    }
    acquire_last(thread);
}

/// As [`resume`], where the event is surely the program's own.
#[cold]
pub unsafe fn acquire_last(thread: *mut Thread) {
    let boundary = &mut (*thread).boundary;
    boundary.is_due = false;
    let call = boundary.last;
    let entry = ManuallyDrop::new(Entry { thread, code: call.code });
    call.string.log(&entry);
    call.log(&entry, Kind::Receive);
    call.log_objects(&entry);
}

/// The call of a library that a signal handler interrupts in `thread`: what the handler does comes while
/// it is not over.
pub unsafe fn interrupted(thread: *const Thread) -> Option<Call> {
    let Boundary { is_due, last, .. } = (*thread).boundary;
    is_due.then_some(last)
}

/// Goes on with `call` once the handler has returned.
pub unsafe fn go_on(thread: *mut Thread, call: Call) {
    (*thread).boundary.last = call;
    await_end(thread);
}

/// A function of the program was entered from code at `code`, which is not in the program itself. The last call of a
/// library may not be over (`may_be_in_call`).
#[cold]
pub unsafe fn entered(thread: *mut Thread, code: u64, may_be_in_call: bool) {
    let Some(object) = objects::find(code) else { return };
    let boundary = &mut (*thread).boundary;
    // What a thread begins with is called by no code of the program.
    if boundary.calls > 0 && boundary.called_back == 0 && may_count(object, code) {
        boundary.called_back = boundary.calls + 1;
    }
    let mut channel = group_channel(object);
    let flags = match object.sort() {
        Sort::Foreign => flag::ASSUMED,
        // What a known library calls at once orders nothing, unlike what it runs for others.
        Sort::Known if is_run_for_others(boundary) => 0,
        // The C++ library uses functions of strings that the program has, too, and goes on.
        _ if may_be_in_call
            && boundary.last.effect != Effect::None
            && objects::is_in_cxx_library(code) =>
        {
            channel = 0;
            0
        }
        _ => return,
    };
    if boundary.depth as usize >= CALLBACKS_MAX {
        return;
    }
    let callback = Callback { calls: boundary.calls, channel, flags, code, outer: boundary.last };
    boundary.callbacks[boundary.depth as usize] = callback;
    boundary.depth += 1;
    if channel != 0 {
        let entry = ManuallyDrop::new(Entry { thread, code });
        log_one(&entry, Kind::Receive, channel, code, flags);
    }
}

/// Whether the code at `code` in `object` may count references to what it then has the program destroy.
unsafe fn may_count(object: &Object, code: u64) -> bool {
    matches!(object.sort(), Sort::Known | Sort::Foreign) || objects::is_in_cxx_library(code)
}

/// Whether a known library that calls the program runs what others handed to it: it was asked to, or
/// the thread is its own.
const fn is_run_for_others(boundary: &Boundary) -> bool {
    boundary.dispatches > 0 || (boundary.calls == 0 && !boundary.was_asked_for)
}

/// A function of the program is about to be left, with `calls` others around it, and a callback is
/// under way.
#[cold]
pub unsafe fn left(thread: *mut Thread) {
    let boundary = &mut (*thread).boundary;
    let callback = boundary.callbacks[boundary.depth as usize - 1];
    if boundary.calls > callback.calls {
        return;
    }
    boundary.depth -= 1;
    boundary.last = callback.outer;
    let Callback { channel, flags, code, .. } = callback;
    if flags & flag::ASSUMED != 0 && boundary.last.channels().is_empty() {
        boundary.last = Call { shared_channel: channel, library: code, code, ..boundary.last };
    }
    if channel != 0 {
        let entry = ManuallyDrop::new(Entry { thread, code });
        log_one(&entry, Kind::Send, channel, code, flags);
    }
    if !boundary.last.channels().is_empty() {
        await_end(thread);
    }
}

/// Code of the program that a library has called is about to change an atomic word in `order`, one of
/// C's. The library may look at the word before the callback is over, as it does where its headers
/// bring code of their own.
#[inline]
pub unsafe fn release_early(entry: &Entry, order: c_int) {
    const RELEASE: c_int = 3;
    // A compare-and-swap that will fail releases too: that comes before it is known.
    if (*entry.thread).boundary.depth > 0 && order & 7 >= RELEASE {
        release_to_caller(entry.thread);
    }
}

#[cold]
unsafe fn release_to_caller(thread: *mut Thread) {
    let boundary = &(*thread).boundary;
    let Callback { channel, flags, code, .. } = boundary.callbacks[boundary.depth as usize - 1];
    // Known libraries order as the table says and not otherwise.
    if flags & flag::ASSUMED != 0 {
        let entry = ManuallyDrop::new(Entry { thread, code });
        log_one(&entry, Kind::Send, channel, code, flags);
    }
}

/// The next event of the program in `thread` comes after a call.
unsafe fn await_end(thread: *mut Thread) {
    (*thread).boundary.is_due = true;
    (*thread).needs_safepoint.store(1, Ordering::Relaxed);
}

/// What stands between a call and the function that it is for.
#[repr(C)]
pub struct Stub {
    code: [u8; 28],
    /// What the function does to strings and streams, if it is of the C++ library.
    effect: Effect,
    /// The function.
    pub target: usize,
    /// The object that has it.
    object: *const Object,
    /// What it does, if that is known.
    pub line: *const Line,
    /// Another function of the library that `line` needs.
    pub helper: usize,
}

const _: () = assert!(core::mem::offset_of!(Stub, target) == 32, "stubs find it there");

impl Stub {
    /// The channel for all that is handed to the library of the function.
    pub unsafe fn library_channel(&self) -> u64 {
        group_channel(&*self.object)
    }

    /// Writes the instructions: the address of this into `r11`, then a jump to `entry`.
    unsafe fn write(place: *mut Self, entry: usize) {
        let code = &mut (*place).code;
        // `endbr64`, `mov r11, place`, `jmp [rip]`, and the address behind it.
        code[..6].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0x49, 0xbb]);
        code[6..14].copy_from_slice(&(place as u64).to_le_bytes());
        code[14..20].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        code[20..28].copy_from_slice(&(entry as u64).to_le_bytes());
    }
}

/// Where a stub of a function that is not known goes.
#[unsafe(naked)]
unsafe extern "C" fn cross() {
    core::arch::naked_asm!(
        "sub rsp, 200",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        // How many vector registers a variadic function is given, and the outer frame of a nested one.
        "mov [rsp + 48], rax",
        "mov [rsp + 56], r10",
        "mov [rsp + 64], r11",
        "movups [rsp + 72], xmm0",
        "movups [rsp + 88], xmm1",
        "movups [rsp + 104], xmm2",
        "movups [rsp + 120], xmm3",
        "movups [rsp + 136], xmm4",
        "movups [rsp + 152], xmm5",
        "movups [rsp + 168], xmm6",
        "movups [rsp + 184], xmm7",
        "mov rdi, r11",
        "mov rsi, rsp",
        "mov rdx, [rsp + 200]",
        "call {}",
        "movups xmm0, [rsp + 72]",
        "movups xmm1, [rsp + 88]",
        "movups xmm2, [rsp + 104]",
        "movups xmm3, [rsp + 120]",
        "movups xmm4, [rsp + 136]",
        "movups xmm5, [rsp + 152]",
        "movups xmm6, [rsp + 168]",
        "movups xmm7, [rsp + 184]",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "mov rax, [rsp + 48]",
        "mov r10, [rsp + 56]",
        "mov r11, [rsp + 64]",
        "add rsp, 200",
        "jmp [r11 + 32]",
        sym crossing,
    )
}

/// A call at `code` goes to a function that is not known.
unsafe extern "C" fn crossing(stub: *const Stub, arguments: *const [usize; 6], code: u64) {
    // Parts of what was linked without being instrumented may call each other by the same slots.
    if objects::is_foreign(code) {
        return;
    }
    thread::set_caller(code);
    let Some(entry) = log::enter(code) else { return };
    let object = &*(*stub).object;
    let library = (*stub).target as u64;
    let words = *arguments;
    let effect = (*stub).effect;
    let is_text = effect != Effect::None;
    if is_text && cxx_strings::is_output(words[0] as u64) {
        return;
    }
    let string = ChangedString::of(effect, &words);
    let mut call = Call {
        shared_channel: 0,
        objects: [0; OBJECTS_MAX],
        count: 0,
        effect,
        string,
        library,
        code,
    };
    let is_object = |&&word: &&usize| {
        (1 << 16..1 << 47).contains(&(word as u64))
            && (!is_text || cxx_strings::is_variable(word as u64))
    };
    for &word in words[..OBJECTS_MAX].iter().filter(is_object) {
        call.objects[call.count as usize] = word as u64;
        call.count += 1;
    }
    // What a known library does besides what the table says, it does to what it is given, as the C++ library does.
    if is_text || object.sort() == Sort::Known {
        if call.count == 0 {
            return;
        }
    } else if object.can_synchronize() || call.count == 0 {
        call.shared_channel = group_channel(object);
    }
    call.log(&entry, Kind::Send);
    (*entry.thread).boundary.last = call;
    await_end(entry.thread);
}

/// Where a stub of a known function goes: its caller is returned to from here.
#[unsafe(naked)]
unsafe extern "C" fn call_known() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 48",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "mov rdi, r11",
        "mov rsi, rsp",
        "mov rdx, [rbp + 8]",
        "call {}",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        sym known::called,
    )
}

// Binding: which calls go where.

/// How often somebody asked for what is loaded to be looked at, since the last time all was done.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Points calls of objects that were loaded since the last time to stubs. Says whether one is still
/// being loaded.
pub unsafe fn bind_new_objects() -> bool {
    // Who waited here might hold the loader's lock, for which the other waits.
    if ASKED.fetch_add(1, Ordering::AcqRel) > 0 {
        return false;
    }
    loop {
        let asked = ASKED.load(Ordering::Acquire);
        let mut stubs = Stubs::new();
        let is_any_left = objects::refresh(|object| bind(object, &mut stubs));
        objects::add_static_code(|code| bind_static_code(code, &mut stubs));
        stubs.seal();
        if ASKED.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return is_any_left;
        }
    }
}

/// Slots from which addresses may be taken, and the stubs for calls through them.
struct Taken {
    pairs: *mut [u64; 2],
    count: usize,
}

/// More such slots than this in one object are left alone.
const TAKEN_MAX: usize = 16384;

const READ_WRITE: usize = 3;
const READ_ONLY: usize = 1;
const READ_EXECUTE: usize = 5;
const ALL: usize = 7;
const PAGE: u64 = 4096;

unsafe fn bind(object: &'static Object, stubs: &mut Stubs) {
    if matches!(object.sort(), Sort::System | Sort::None) {
        return;
    }
    let Some(pairs) = sys::allocate(TAKEN_MAX * 16) else { return };
    let mut taken = Taken { pairs: pairs.cast(), count: 0 };
    let [from, to] = [0, 1].map(|at: usize| object.constant[at].load(Ordering::Relaxed));
    let (from, length) =
        (from & !(PAGE - 1), (to & !(PAGE - 1)).saturating_sub(from & !(PAGE - 1)));
    let constant = (from as *mut u8, length as usize);
    sys::protect(constant.0, constant.1, READ_WRITE);
    objects::each_import(object, |import| {
        if let Some(stub) = stub_for(object, &import, stubs) {
            if import.is_call {
                (import.slot as *mut usize).write_volatile(stub);
            } else if taken.count < TAKEN_MAX {
                *taken.pairs.add(taken.count) = [import.slot, stub as u64];
                taken.count += 1;
            }
        }
    });
    sys::protect(constant.0, constant.1, READ_ONLY);
    if taken.count > 0 {
        redirect_calls(object, &taken);
    }
    sys::unmap(pairs, TAKEN_MAX * 16);
}

/// The stub for calls of `object` through the slot of `import`, if they need one.
unsafe fn stub_for(object: &'static Object, import: &Import, stubs: &mut Stubs) -> Option<usize> {
    if import.name.starts_with(b"__tsan_") {
        return None;
    }
    let target = resolve(object, import)?;
    let is_instrumented = object.is_instrumented.load(Ordering::Relaxed);
    stub_to(target, import.name, is_instrumented, stubs)
}

/// The stub for calls, by code that may be instrumented, of the function `name` at `target`.
unsafe fn stub_to(
    target: usize,
    name: &[u8],
    is_instrumented: bool,
    stubs: &mut Stubs,
) -> Option<usize> {
    let holder = objects::find(target as u64)?;
    if !holder.has_code_at(target as u64) {
        return None;
    }
    let none = (core::ptr::null(), 0);
    if objects::is_in_cxx_library(target as u64) {
        let effect = cxx_strings::effect(name);
        let crosses = is_instrumented && effect != Effect::None;
        return if crosses {
            stubs.add(cross as *const () as usize, (target, holder), none, effect)
        } else {
            None
        };
    }
    if !matches!(holder.sort(), Sort::Known | Sort::Foreign) {
        return None;
    }
    if let Some((line, helper)) = known::find(name) {
        let helper = helper.bytes().map_or(0, |name| super::dlsym(DEFAULT, name.as_ptr()));
        return stubs.add(
            call_known as *const () as usize,
            (target, holder),
            (line, helper),
            Effect::None,
        );
    }
    let is_plain = holder.sort() == Sort::Known && known::is_plain(name);
    let crosses = is_instrumented && !is_plain;
    if crosses {
        stubs.add(cross as *const () as usize, (target, holder), none, Effect::None)
    } else {
        None
    }
}

/// Points the calls of code that was linked without being instrumented to stubs.
unsafe fn bind_static_code(code: &StaticCode, stubs: &mut Stubs) {
    for call in code.calls() {
        if let Some(stub) = stub_to(call.target, call.name(), true, stubs) {
            (&raw mut call.target).write_volatile(stub);
        }
    }
}

const DEFAULT: usize = 0;
const NEXT: usize = usize::MAX;

/// The function that `import` of `object` leads to.
unsafe fn resolve(object: &'static Object, import: &Import) -> Option<usize> {
    let known = *(import.slot as *const usize);
    if !object.holds(known as u64) {
        return Some(known).filter(|&known| known != 0);
    }
    // Not looked up yet: the slot leads back to the object, whose own name for the function may too.
    let mut name = [0; NAME_MAX];
    let name = terminated(import.name, &mut name)?;
    let is_elsewhere = |&found: &usize| found != 0 && !object.holds(found as u64);
    let found = [DEFAULT, NEXT].map(|scope| super::dlsym(scope, name.as_ptr()));
    found.into_iter().find(is_elsewhere).or_else(|| {
        // In an object whose names others do not see.
        const LAZY_IF_LOADED: i32 = 1 | 4;
        let open: unsafe extern "C" fn(usize, i32) -> usize =
            core::mem::transmute(real_address!(dlopen));
        let close: unsafe extern "C" fn(usize) -> i32 =
            core::mem::transmute(real_address!(dlclose));
        let handle = open(object.path().as_ptr() as usize, LAZY_IF_LOADED);
        if handle == 0 {
            return None;
        }
        let found = super::dlsym(handle, name.as_ptr());
        close(handle);
        Some(found).filter(is_elsewhere)
    })
}

/// The longest name that is looked up, with its end.
pub const NAME_MAX: usize = 1024;

/// `name` with a zero byte behind it.
fn terminated<'a>(name: &[u8], room: &'a mut [u8; NAME_MAX]) -> Option<&'a [u8]> {
    room.get_mut(..name.len())?.copy_from_slice(name);
    *room.get_mut(name.len())? = 0;
    Some(&room[..=name.len()])
}

/// Makes the calls of `object` that go through slots of `taken` go through slots of ours.
unsafe fn redirect_calls(object: &Object, taken: &Taken) {
    let pairs = core::slice::from_raw_parts(taken.pairs, taken.count);
    let lowest = pairs.iter().map(|pair| pair[0]).min().unwrap_or(0);
    let highest = pairs.iter().map(|pair| pair[0]).max().unwrap_or(0);
    let length = (pairs.len() * 8).next_multiple_of(PAGE as usize);
    // Code reaches 31 bits far.
    let Some(slots) = sys::allocate_near(object.end(), length) else { return };
    let slots = slots.cast::<u64>();
    for (at, pair) in pairs.iter().enumerate() {
        *slots.add(at) = pair[1];
    }
    let [start, end] = object.code();
    let mut at = start;
    while at + 6 <= end {
        // `call [rip + distance]` and `jmp [rip + distance]`.
        let bytes = at as *const u8;
        if *bytes == 0xff && matches!(*bytes.add(1), 0x15 | 0x25) {
            let distance = bytes.add(2).cast::<i32>().read_unaligned();
            let slot = (at + 6).wrapping_add_signed(i64::from(distance));
            if (lowest..=highest).contains(&slot)
                && let Some(number) = pairs.iter().position(|pair| pair[0] == slot)
                && let Ok(distance) = i32::try_from(slots.add(number) as i64 - (at + 6) as i64)
            {
                let first = (at + 2) & !(PAGE - 1);
                let pages = ((at + 6 - first).next_multiple_of(PAGE)) as usize;
                if sys::protect(first as *mut u8, pages, ALL) {
                    bytes.add(2).cast_mut().cast::<i32>().write_unaligned(distance);
                    sys::protect(first as *mut u8, pages, READ_EXECUTE);
                }
            }
        }
        at += 1;
    }
}

/// Memory for stubs.
struct Stubs {
    place: *mut Stub,
    count: usize,
}

/// The stubs for which memory is taken at once.
const STUBS: usize = 1024;

impl Stubs {
    const fn new() -> Self {
        Self { place: core::ptr::null_mut(), count: STUBS }
    }

    /// A stub that goes to `entry`, for a function and the object that has it.
    unsafe fn add(
        &mut self,
        entry: usize,
        (target, object): (usize, &'static Object),
        (line, helper): (*const Line, usize),
        effect: Effect,
    ) -> Option<usize> {
        if self.count == STUBS {
            self.seal();
            // They may be run before the last of them is made.
            let place = sys::allocate(STUBS * size_of::<Stub>())?;
            if !sys::protect(place, STUBS * size_of::<Stub>(), ALL) {
                return None;
            }
            self.place = place.cast();
            self.count = 0;
        }
        let place = self.place.add(self.count);
        self.count += 1;
        ((*place).target, (*place).object) = (target, object);
        ((*place).line, (*place).helper, (*place).effect) = (line, helper, effect);
        Stub::write(place, entry);
        Some(place as usize)
    }

    /// Makes the stubs so far what can be run and no longer changed.
    unsafe fn seal(&mut self) {
        if !self.place.is_null() {
            sys::protect(self.place.cast(), STUBS * size_of::<Stub>(), READ_EXECUTE);
        }
        self.place = core::ptr::null_mut();
        self.count = STUBS;
    }
}
