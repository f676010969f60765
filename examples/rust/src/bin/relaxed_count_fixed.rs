//! `relaxed_count.rs`, fixed: each count releases what its thread did, and the last one acquires it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

struct Page {
    references: AtomicUsize,
    lines: [UnsafeCell<u32>; 2],
}

struct PageRef(*mut Page);

// Each thread writes a line of its own.
unsafe impl Send for PageRef {}

impl PageRef {
    fn write(&self, line: usize) {
        unsafe { *(*self.0).lines[line].get() = 1 };
    }
}

impl Drop for PageRef {
    fn drop(&mut self) {
        let references = unsafe { &(*self.0).references };
        if references.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

fn main() {
    let lines = [UnsafeCell::new(0), UnsafeCell::new(0)];
    let page = Box::into_raw(Box::new(Page { references: AtomicUsize::new(2), lines }));
    let writers = [PageRef(page), PageRef(page)].into_iter().enumerate();
    let writers: Vec<_> =
        writers.map(|(line, page)| thread::spawn(move || page.write(line))).collect();
    for writer in writers {
        writer.join().unwrap();
    }
    println!("written and gone");
}
