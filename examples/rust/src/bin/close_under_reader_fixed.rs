//! `close_under_reader.rs`, fixed: the file is closed when its reader is done.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::thread;

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
    drop(file);
}

fn main() {
    let file = File::open("/dev/zero").unwrap();
    let number = file.as_raw_fd();
    let loader = thread::spawn(move || load(number));
    loader.join().unwrap();
    let closer = thread::spawn(move || shut(file));
    closer.join().unwrap();
}
