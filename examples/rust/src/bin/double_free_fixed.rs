//! `double_free.rs`, fixed: who was given the text frees it.

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
}
