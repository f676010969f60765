//! Files that are opened by name, some of which are pipes.
//!
//! Whoever opens a pipe waits until the other end is open, too: both come after what was done before.

use super::streams::file_of;
use super::*;

/// The folder from which names start.
const HERE: c_int = -100;

/// Makes a call that opens the file at `path`, seen from `folder`; `file` says as what.
unsafe fn opening<R: Copy>(
    entry: &Entry,
    (folder, path): (c_int, usize),
    call: impl FnOnce() -> R,
    file: impl FnOnce(R) -> c_int,
) -> R {
    let pipe = table::Status::at(folder, path).and_then(|status| status.pipe());
    let Some(id) = pipe else {
        return inside(entry.thread, call);
    };
    note_send(entry, pipe);
    let result = outside(entry.thread, call);
    let file = file(result);
    if file >= 0 {
        note_receive(entry, pipe, false);
        table::set(file, id);
    }
    result
}

/// Defines doors of calls that open a file at a path and answer with a descriptor.
macro_rules! opening_doors {
    ($(fn $name:ident($($argument:ident: $type:ty),*) at $folder:expr, $path:ident;)*) => {
        doors! {
            $(
                fn $name($($argument: $type),*) -> c_int {
                    let entry = enter_or!(real::$name($($argument),*));
                    let call = || real::$name($($argument),*);
                    opening(&entry, ($folder, $path), call, |file| file)
                }
            )*
        }
    };
}

opening_doors! {
    fn open(path: usize, flags: c_int, mode: c_uint) at HERE, path;
    fn open64(path: usize, flags: c_int, mode: c_uint) at HERE, path;
    fn openat(folder: c_int, path: usize, flags: c_int, mode: c_uint) at folder, path;
    fn openat64(folder: c_int, path: usize, flags: c_int, mode: c_uint) at folder, path;
    fn creat(path: usize, mode: c_uint) at HERE, path;
    fn creat64(path: usize, mode: c_uint) at HERE, path;
    fn __open_2(path: usize, flags: c_int) at HERE, path;
    fn __open64_2(path: usize, flags: c_int) at HERE, path;
    fn __openat_2(folder: c_int, path: usize, flags: c_int) at folder, path;
    fn __openat64_2(folder: c_int, path: usize, flags: c_int) at folder, path;
}

/// Doors of calls that answer with a stream.
pub(crate) mod as_streams {
    use super::*;

    doors! {
        fn fopen(path: usize, mode: usize) -> usize {
            let entry = enter_or!(real::fopen(path, mode));
            opening(&entry, (HERE, path), || real::fopen(path, mode), |made| file_of(made))
        }

        fn fopen64(path: usize, mode: usize) -> usize {
            let entry = enter_or!(real::fopen64(path, mode));
            opening(&entry, (HERE, path), || real::fopen64(path, mode), |made| file_of(made))
        }

        fn freopen(path: usize, mode: usize, stream: usize) -> usize {
            let call = || real::freopen(path, mode, stream);
            let entry = enter_or!(call());
            reopening(&entry, path, stream, call)
        }

        fn freopen64(path: usize, mode: usize, stream: usize) -> usize {
            let call = || real::freopen64(path, mode, stream);
            let entry = enter_or!(call());
            reopening(&entry, path, stream, call)
        }
    }
}

/// Makes a call that closes `stream` and opens the file at `path` in its place.
unsafe fn reopening(
    entry: &Entry,
    path: usize,
    stream: usize,
    call: impl FnOnce() -> usize,
) -> usize {
    // Without a path the same file is opened in another mode.
    if path == 0 {
        return inside(entry.thread, call);
    }
    descriptors::closing(entry, file_of(stream), || {
        opening(entry, (HERE, path), call, |made| file_of(made))
    })
}
