//! Streams of the C library, which read and write descriptors without a call that we could see.
//!
//! What goes through the formatted functions is seen when the stream is flushed or closed.

use super::*;

unsafe extern "C" {
    fn fileno(stream: usize) -> c_int;
}

/// Where `stream` leads.
unsafe fn channel_of(stream: usize) -> Channel {
    if stream == 0 { None } else { table::of(fileno(stream)) }
}

/// Makes a call that reads from `stream`; `length` says how many bytes at `address` it filled.
unsafe fn reading<R: Copy>(
    entry: &Entry,
    stream: usize,
    call: impl FnOnce() -> R,
    filled: impl FnOnce(R) -> (usize, usize),
) -> R {
    let channel = channel_of(stream);
    let result = match channel {
        Some(_) => outside(entry.thread, call),
        None => inside(entry.thread, call),
    };
    note_receive(entry, channel, true);
    let (address, length) = filled(result);
    log_range(entry, Kind::WriteRange, address, length);
    result
}

/// Makes a call that writes `length` bytes from `address` to `stream`.
unsafe fn writing<R>(
    entry: &Entry,
    stream: usize,
    address: usize,
    length: usize,
    call: impl FnOnce() -> R,
) -> R {
    log_range(entry, Kind::ReadRange, address, length);
    let channel = channel_of(stream);
    note_send(entry, channel);
    match channel {
        Some(_) => outside(entry.thread, call),
        None => inside(entry.thread, call),
    }
}

/// The bytes of the text at `text` with its end.
unsafe fn text_bytes(text: usize) -> usize {
    match text {
        0 => 0,
        _ => core::ffi::CStr::from_ptr(text as *const _).count_bytes() + 1,
    }
}

doors! {
    fn fread(to: usize, size: usize, count: usize, stream: usize) -> usize {
        let entry = enter_or!(real::fread(to, size, count, stream));
        let call = || real::fread(to, size, count, stream);
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }

    fn __fread_chk(to: usize, room: usize, size: usize, count: usize, stream: usize) -> usize {
        let call = || real::__fread_chk(to, room, size, count, stream);
        let entry = enter_or!(call());
        reading(&entry, stream, call, |read| (to, size.wrapping_mul(read)))
    }

    fn fgets(to: usize, room: c_int, stream: usize) -> usize {
        let entry = enter_or!(real::fgets(to, room, stream));
        let call = || real::fgets(to, room, stream);
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }

    fn __fgets_chk(to: usize, size: usize, room: c_int, stream: usize) -> usize {
        let call = || real::__fgets_chk(to, size, room, stream);
        let entry = enter_or!(call());
        reading(&entry, stream, call, |text| (text, text_bytes(text)))
    }

    fn getline(line: *mut usize, room: usize, stream: usize) -> isize {
        let entry = enter_or!(real::getline(line, room, stream));
        let call = || real::getline(line, room, stream);
        reading(&entry, stream, call, |read| (*line, usize::try_from(read + 1).unwrap_or(0)))
    }

    fn getdelim(line: *mut usize, room: usize, end: c_int, stream: usize) -> isize {
        let call = || real::getdelim(line, room, end, stream);
        let entry = enter_or!(call());
        reading(&entry, stream, call, |read| (*line, usize::try_from(read + 1).unwrap_or(0)))
    }

    fn fgetc(stream: usize) -> c_int {
        let entry = enter_or!(real::fgetc(stream));
        reading(&entry, stream, || real::fgetc(stream), |_| (0, 0))
    }

    fn getc(stream: usize) -> c_int {
        let entry = enter_or!(real::getc(stream));
        reading(&entry, stream, || real::getc(stream), |_| (0, 0))
    }

    fn fwrite(from: usize, size: usize, count: usize, stream: usize) -> usize {
        let entry = enter_or!(real::fwrite(from, size, count, stream));
        let call = || real::fwrite(from, size, count, stream);
        writing(&entry, stream, from, size.wrapping_mul(count), call)
    }

    fn fputs(text: usize, stream: usize) -> c_int {
        let entry = enter_or!(real::fputs(text, stream));
        writing(&entry, stream, text, text_bytes(text), || real::fputs(text, stream))
    }

    fn fputc(character: c_int, stream: usize) -> c_int {
        let entry = enter_or!(real::fputc(character, stream));
        writing(&entry, stream, 0, 0, || real::fputc(character, stream))
    }

    fn putc(character: c_int, stream: usize) -> c_int {
        let entry = enter_or!(real::putc(character, stream));
        writing(&entry, stream, 0, 0, || real::putc(character, stream))
    }

    fn fflush(stream: usize) -> c_int {
        let entry = enter_or!(real::fflush(stream));
        writing(&entry, stream, 0, 0, || real::fflush(stream))
    }

    fn fclose(stream: usize) -> c_int {
        let entry = enter_or!(real::fclose(stream));
        if stream != 0 {
            descriptors::close_channel(&entry, fileno(stream));
        }
        writing(&entry, 0, 0, 0, || real::fclose(stream))
    }
}
