//! What functions with formats access through their arguments: texts that are printed, and places
//! for what is scanned.
//!
//! A format is gone through with a copy of the list of arguments, as the C library does. It ends at
//! the first conversion that is not known, or that takes its argument by number.

use core::ffi::{c_char, c_int};

use super::library::{text, text_within, wide, wide_within, writes};
use super::memory::allocated;
use super::text::length;
use crate::log::Entry;

/// A list of arguments, as it is passed to functions.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    /// Where in `saved` the next argument is that is a whole number or a pointer.
    whole: u32,
    /// Where the next one is that is a fraction.
    fraction: u32,
    /// The next argument that was not in a register.
    rest: usize,
    saved: usize,
}

const WHOLE_END: u32 = 48;

const FRACTION_END: u32 = 176;

impl Arguments {
    unsafe fn next_rest(&mut self, size: usize) -> usize {
        let place = self.rest;
        self.rest += size;
        place
    }

    /// The next argument that is a whole number or a pointer.
    unsafe fn word(&mut self) -> usize {
        let place = if self.whole < WHOLE_END {
            self.whole += 8;
            self.saved + self.whole as usize - 8
        } else {
            self.next_rest(8)
        };
        *(place as *const usize)
    }

    /// Skips a fraction; a long one is never in a register.
    unsafe fn skip_fraction(&mut self, is_long: bool) {
        if is_long {
            self.rest = self.rest.next_multiple_of(16);
            self.next_rest(16);
        } else if self.fraction < FRACTION_END {
            self.fraction += 16;
        } else {
            self.next_rest(8);
        }
    }
}

/// How long what is converted is, as the letters before the conversion say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Byte,
    Short,
    Usual,
    Long,
    LongFraction,
}

impl Size {
    /// The bytes of a whole number.
    const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Short => 2,
            Self::Usual => 4,
            Self::Long | Self::LongFraction => 8,
        }
    }

    /// The bytes of a fraction that is scanned.
    const fn fraction_bytes(self) -> usize {
        match self {
            Self::Long => 8,
            Self::LongFraction => 16,
            _ => 4,
        }
    }
}

/// A format, from some character on.
struct Format(*const c_char);

impl Format {
    unsafe fn peek(&self) -> u8 {
        *self.0 as u8
    }

    unsafe fn next(&mut self) -> u8 {
        let byte = self.peek();
        if byte != 0 {
            self.0 = self.0.add(1);
        }
        byte
    }

    unsafe fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == byte;
        if is_there {
            self.next();
        }
        is_there
    }

    /// Goes to the next conversion; false if there is none.
    unsafe fn seek(&mut self) -> bool {
        loop {
            match self.next() {
                0 => return false,
                b'%' if !self.take(b'%') => return true,
                _ => {}
            }
        }
    }

    unsafe fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while self.peek().is_ascii_digit() {
            let digit = usize::from(self.next() - b'0');
            number = Some(number.unwrap_or(0_usize).wrapping_mul(10).wrapping_add(digit));
        }
        number
    }

    unsafe fn size(&mut self) -> Size {
        match self.peek() {
            b'h' => {
                self.next();
                if self.take(b'h') { Size::Byte } else { Size::Short }
            }
            b'l' => {
                self.next();
                // What is twice as long is as long for whole numbers; for fractions the library takes
                // it for the longest.
                if self.take(b'l') { Size::LongFraction } else { Size::Long }
            }
            b'L' | b'q' => {
                self.next();
                Size::LongFraction
            }
            b'j' | b'z' | b't' => {
                self.next();
                Size::Long
            }
            _ => Size::Usual,
        }
    }

    /// Skips a set of characters, after its bracket.
    unsafe fn skip_set(&mut self) {
        self.take(b'^');
        self.take(b']');
        while !matches!(self.next(), b']' | 0) {}
    }
}

/// Logs what printing the arguments in `list` by `format` reads, and what it writes where the format
/// says so.
pub unsafe fn prints(entry: &Entry, format: usize, list: usize) {
    text(entry, format);
    let mut format = Format(format as *const c_char);
    let mut arguments = *(list as *const Arguments);
    while format.seek() {
        while matches!(format.peek(), b'-' | b'+' | b' ' | b'#' | b'0' | b'\'' | b'I') {
            format.next();
        }
        if format.take(b'*') {
            arguments.word();
        }
        format.number();
        let mut most = None;
        if format.take(b'.') {
            most = if format.take(b'*') {
                usize::try_from(arguments.word() as c_int).ok()
            } else {
                Some(format.number().unwrap_or(0))
            };
        }
        let size = format.size();
        match format.next() {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b'p' => _ = arguments.word(),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                arguments.skip_fraction(size == Size::LongFraction);
            }
            b's' if size == Size::Long => print_wide(entry, arguments.word(), most),
            b'S' => print_wide(entry, arguments.word(), most),
            b's' => match most {
                Some(most) => text_within(entry, arguments.word(), most),
                None => text_if(entry, arguments.word()),
            },
            b'n' => writes(entry, arguments.word(), size.bytes()),
            b'm' => {}
            _ => return,
        }
    }
}

/// A text is printed; instead of none the library prints a word.
unsafe fn text_if(entry: &Entry, printed: usize) {
    if printed != 0 {
        text(entry, printed);
    }
}

/// A wide text is printed, of which no more than `most` characters are needed for as many bytes.
unsafe fn print_wide(entry: &Entry, printed: usize, most: Option<usize>) {
    match most {
        Some(most) => wide_within(entry, printed, most),
        None => wide(entry, printed),
    }
}

/// A list of arguments, as it was before a call that takes them.
pub struct Scanned(Arguments);

impl Scanned {
    /// Where what is scanned by the arguments in `list` will go; the format is read.
    pub unsafe fn new(entry: &Entry, format: usize, list: usize) -> Self {
        text(entry, format);
        Self(*(list as *const Arguments))
    }

    /// Logs what was written by a call that scanned by `format` and converted `count` things.
    pub unsafe fn written(self, entry: &Entry, format: usize, count: c_int) {
        let mut arguments = self.0;
        let mut format = Format(format as *const c_char);
        let mut left = count;
        while format.seek() {
            let is_skipped = format.take(b'*');
            let width = format.number();
            let is_made = format.take(b'm');
            let size = format.size();
            let conversion = format.next();
            if conversion == b'[' {
                format.skip_set();
            }
            // What was not reached was not written; how much was read is not counted.
            if is_skipped {
                continue;
            }
            if conversion != b'n' {
                left -= 1;
            }
            if left < 0 {
                return;
            }
            let place = arguments.word();
            match conversion {
                b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'n' => {
                    writes(entry, place, size.bytes());
                }
                b'p' => writes(entry, place, 8),
                b'a' | b'e' | b'f' | b'g' | b'A' | b'E' | b'F' | b'G' => {
                    writes(entry, place, size.fraction_bytes());
                }
                b's' | b'[' | b'c' if is_made => {
                    let made = *(place as *const usize);
                    writes(entry, place, 8);
                    allocated(entry, made, length(made) + 1);
                    writes(entry, made, length(made) + 1);
                }
                // Wide characters are not followed.
                b's' | b'[' | b'c' if size == Size::Long => {}
                b's' | b'[' => writes(entry, place, length(place) + 1),
                b'c' => writes(entry, place, width.unwrap_or(1)),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_taken_apart() {
        let sizes = |format: &core::ffi::CStr| {
            let mut format = Format(format.as_ptr());
            let mut found = Vec::new();
            // SAFETY: the format ends.
            unsafe {
                while format.seek() {
                    let width = format.number();
                    let size = format.size().bytes();
                    let conversion = format.next();
                    if conversion == b'[' {
                        format.skip_set();
                    }
                    found.push((width, size, conversion as char));
                }
            }
            found
        };
        assert_eq!(
            sizes(c"100%% %3d %hhd%lld%[^]%d]%zu %"),
            [
                (Some(3), 4, 'd'),
                (None, 1, 'd'),
                (None, 8, 'd'),
                (None, 4, '['),
                (None, 8, 'u'),
                (None, 4, '\0'),
            ]
        );
    }

    #[test]
    fn arguments_are_found_in_registers_and_behind_them() {
        let saved: [usize; 6] = [0, 0, 0, 0, 5, 6];
        let rest: [usize; 6] = [7, 8, 9, 9, 9, 10];
        let (saved, rest) = (saved.as_ptr() as usize, rest.as_ptr() as usize);
        let mut list = Arguments { whole: 32, fraction: FRACTION_END - 16, rest, saved };
        // SAFETY: all places are in the arrays.
        unsafe {
            assert_eq!([list.word(), list.word(), list.word()], [5, 6, 7]);
            list.skip_fraction(false);
            assert_eq!(list.word(), 8);
            list.skip_fraction(false);
            let before = list.rest;
            list.skip_fraction(true);
            assert_eq!(list.rest, before.next_multiple_of(16) + 16);
        }
    }
}
