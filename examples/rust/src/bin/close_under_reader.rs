//! A file that is closed while another thread may still read it.
//!
//! Wrong: the reader has the number of the descriptor, and nothing makes the thread that closes the file wait. The number
//! can be given to another file at once, which the reader then reads.
//! An ordinary run: the file is closed long after it was read.
//! reweave: the read can come after the close.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::thread;
use std::time::Duration;

unsafe extern "C" {
    fn read(file: RawFd, bytes: *mut u8, count: usize) -> isize;
}

fn load(file: RawFd) {
    let mut byte = 0;
    if unsafe { read(file, &mut byte, 1) } == 1 {
        println!("loaded");
    }
}

fn shut(file: File) {
    thread::sleep(Duration::from_millis(20)); // that must be enough
    drop(file);
}

fn main() {
    let file = File::open("/dev/zero").unwrap();
    let number = file.as_raw_fd();
    let loader = thread::spawn(move || load(number));
    let closer = thread::spawn(move || shut(file));
    loader.join().unwrap();
    closer.join().unwrap();
}
