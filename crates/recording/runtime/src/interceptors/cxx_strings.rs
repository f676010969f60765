//! What the C++ library does to strings and streams.
//!
//! Their functions are in the library, which is not instrumented, for the most part. What they find in an object
//! depends on what other calls have put there: such calls keep their observed order, by a channel for each object that
//! is assumed to order, as with other libraries. If one call reads a line into a string and another thread looks at the
//! string with code of its own, then no call says so: what a call has put into a string is logged as the program's own
//! write.

use core::sync::atomic::{AtomicU64, Ordering};

use super::objects::{self, Object};
use super::program::log_range;
use crate::log::Entry;
use crate::wire::Kind;

/// What a function does to objects that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Effect {
    /// It is not one of these functions.
    None = 0,
    /// It reads or changes them.
    Touches,
    /// So, and the first is a string of which it may change what is kept in the object itself.
    Changes,
    /// So, and it makes a new text in the second, a string.
    Fills,
}

/// How the names of other functions of streams and strings begin: operators, and classes with abbreviations.
const OTHERS: [&[u8]; 14] = [
    b"_ZNSs",
    b"_ZNKSs",
    b"_ZNSi",
    b"_ZNKSi",
    b"_ZNSo",
    b"_ZNKSo",
    b"_ZNSd",
    b"_ZStls",
    b"_ZStrs",
    b"_ZSt7getline",
    b"_ZSt16__ostream_insert",
    b"_ZSt4endl",
    b"_ZSt5flush",
    b"_ZSt2ws",
];

/// What the function `name` of the C++ library does.
pub fn effect(name: &[u8]) -> Effect {
    let starts = |start: &&[u8]| name.starts_with(start);
    // What an object of LLVM's library looks like is not known here.
    let is_gnu_string = name.windows(22).any(|part| part == b"NSt7__cxx1112basic_str");
    if [&b"_ZSt7getline"[..], b"_ZStrs"].iter().any(starts) && is_gnu_string {
        return Effect::Fills;
    }
    let is_constant = name.starts_with(b"_ZNK");
    let Some(member) =
        [&b"_ZNSt"[..], b"_ZNKSt"].iter().find_map(|start| name.strip_prefix(*start))
    else {
        return if OTHERS.iter().any(starts) { Effect::Touches } else { Effect::None };
    };
    // Inline namespaces of GNU's and LLVM's library.
    let member = [&b"7__cxx11"[..], b"3__1"]
        .iter()
        .find_map(|space| member.strip_prefix(*space))
        .unwrap_or(member);
    let digits = member.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match member[digits..].strip_prefix(b"basic_") {
        None => Effect::None,
        Some(class)
            if class.starts_with(b"stringI")
                && is_gnu_string
                && !is_constant
                && !is_static(class) =>
        {
            Effect::Changes
        }
        Some(_) => Effect::Touches,
    }
}

/// Whether a function of GNU's strings is given no string to be called on: its own name, which follows the arguments of
/// the template, starts with `_S_`.
fn is_static(name: &[u8]) -> bool {
    let mut ends = (0..name.len()).filter(|&at| name[at] == b'E');
    ends.any(|end| {
        let own = &name[end + 1..];
        let digits = own.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && own[digits..].starts_with(b"_S_")
    })
}

/// Streams to which all threads may write at any time, and from which nobody learns what others wrote.
static OUTPUTS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// Notes where they are, as long as no other thread can hold the loader's lock. Of a library that is loaded later they
/// are streams as any other, whose order is assumed.
pub unsafe fn find_outputs() {
    const NAMES: [&[u8]; 6] = [
        b"_ZSt4cout\0",
        b"_ZSt4cerr\0",
        b"_ZSt4clog\0",
        b"_ZSt5wcout\0",
        b"_ZSt5wcerr\0",
        b"_ZSt5wclog\0",
    ];
    const DEFAULT: usize = 0;
    for (output, name) in OUTPUTS.iter().zip(NAMES) {
        output.store(super::dlsym(DEFAULT, name.as_ptr()) as u64, Ordering::Relaxed);
    }
}

/// Whether it is one of them that is at `address`.
pub fn is_output(address: u64) -> bool {
    OUTPUTS.iter().any(|output| output.load(Ordering::Relaxed) == address)
}

/// Whether what is at `address` may change: literals do not, nor does code.
pub fn is_variable(address: u64) -> bool {
    objects::find(address).is_none_or(|object: &Object| object.has_variable_at(address))
}

/// A string that a call of the library may change.
#[derive(Clone, Copy, Debug)]
pub struct ChangedString {
    /// Where it is, or 0 if there is none.
    address: u64,
    /// What the object held before.
    before: [u64; 3],
    /// Whether the call makes a new text in any case.
    is_filled: bool,
}

impl ChangedString {
    /// The string that a function with `effect` is about to change, if any.
    pub unsafe fn of(effect: Effect, arguments: &[usize; 6]) -> Self {
        let address = match effect {
            Effect::Changes => arguments[0] as u64,
            Effect::Fills => arguments[1] as u64,
            Effect::Touches | Effect::None => 0,
        };
        // What else is called like a method may have a number there.
        let is_string = (1 << 16..1 << 47).contains(&address)
            && address.is_multiple_of(align_of::<u64>() as u64)
            && is_variable(address);
        let address = if is_string { address } else { 0 };
        let before = if is_string { Self::words(address) } else { [0; 3] };
        Self { address, before, is_filled: effect == Effect::Fills }
    }

    /// Where the text is, its length, and the start of a short one.
    unsafe fn words(address: u64) -> [u64; 3] {
        (address as *const [u64; 3]).read_volatile()
    }

    /// Logs what the call has changed.
    pub unsafe fn log(self, entry: &Entry) {
        if self.address == 0 {
            return;
        }
        let words = Self::words(self.address);
        if self.is_filled || self.before != words {
            log_range(entry, Kind::WriteRange, self.address as usize, size_of_val(&words));
            let [text, length, _] = words;
            log_range(entry, Kind::WriteRange, text as usize, length as usize + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_string_is_not_looked_at() {
        let text = [7_u64, 8, 9];
        let address = text.as_ptr() as usize;
        for (first, expected) in [(address, address), (3, 0), (address + 1, 0), (1 << 50, 0)] {
            // SAFETY: what is read is there.
            let string = unsafe { ChangedString::of(Effect::Changes, &[first, 0, 0, 0, 0, 0]) };
            assert_eq!(string.address, expected as u64);
        }
    }

    #[test]
    fn names_tell_what_changes() {
        let fills = "_ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE";
        let appends = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc";
        let compares = "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc";
        for (name, expected) in [
            (fills, Effect::Fills),
            (appends, Effect::Changes),
            (compares, Effect::Touches),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE10_S_compareEmm",
                Effect::Touches,
            ),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13_S_copy_charsEPcPKcS7_",
                Effect::Touches,
            ),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
                Effect::Changes,
            ),
            (
                "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7replaceEN9__gnu_cxx17__normal_iteratorIPKcS4_EES8_S7_m",
                Effect::Changes,
            ),
            ("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEED1Ev", Effect::Touches),
            (
                "_ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE6appendEPKc",
                Effect::Touches,
            ),
            ("_ZNSolsEi", Effect::Touches),
            ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", Effect::Touches),
            (
                "_ZNSt14basic_ofstreamIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode",
                Effect::Touches,
            ),
            ("_ZNSt18condition_variable10notify_oneEv", Effect::None),
            ("_ZNSt6thread4joinEv", Effect::None),
            ("_ZSt9terminatev", Effect::None),
            ("_ZNSt", Effect::None),
        ] {
            assert_eq!(effect(name.as_bytes()), expected, "{name}");
        }
    }
}
