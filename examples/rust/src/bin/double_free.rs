//! A text that two threads free.
//!
//! Wrong: the printer owns what it was given, and `main` makes a second owner of it.
//! Every run: nothing shows with the usual C library: each thread has a cache of free memory of its own.
//! reweave: misuse, with both places.

use std::thread;

struct Text([u8; 100]);

fn print(text: usize) {
    let text = unsafe { Box::from_raw(text as *mut Text) };
    println!("{}", String::from_utf8_lossy(&text.0[..5]));
}

fn main() {
    let text = Box::into_raw(Box::new(Text([b'-'; 100])));
    let address = text as usize;
    thread::spawn(move || print(address)).join().unwrap();
    drop(unsafe { Box::from_raw(text) });
}
