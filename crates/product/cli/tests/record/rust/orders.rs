//! Structures made of atomics: a counted reference and a stack. With the argument `weak` one order of
//! each is too weak.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread;

/// A counted reference, as `Arc` is.
struct Counted(*const Inner);

struct Inner {
    count: AtomicUsize,
    value: UnsafeCell<u64>,
    decrement: Ordering,
}

unsafe impl Send for Counted {}

impl Counted {
    fn new(value: u64, is_weak: bool) -> Self {
        let decrement = if is_weak { Ordering::Relaxed } else { Ordering::AcqRel };
        let count = AtomicUsize::new(1);
        Self(Box::into_raw(Box::new(Inner { count, value: UnsafeCell::new(value), decrement })))
    }

    fn inner(&self) -> &Inner {
        unsafe { &*self.0 }
    }

    fn get(&self) -> u64 {
        unsafe { *self.inner().value.get() }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.inner().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let inner = self.inner();
        if inner.count.fetch_sub(1, inner.decrement) == 1 {
            // Whoever is last clears the value; the memory is left alone.
            unsafe { *inner.value.get() = 0 }
        }
    }
}

/// A stack of Treiber's kind, from which nothing is freed.
struct Stack {
    head: AtomicPtr<Node>,
    push: Ordering,
}

struct Node {
    value: u64,
    next: *mut Node,
}

impl Stack {
    fn push(&self, value: u64) {
        let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            unsafe { (*node).next = head }
            match self.head.compare_exchange(head, node, self.push, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self) -> Option<u64> {
        let mut head = self.head.load(Ordering::Acquire);
        while !head.is_null() {
            let next = unsafe { (*head).next };
            match self.head.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(unsafe { (*head).value }),
                Err(now) => head = now,
            }
        }
        None
    }
}

fn references(is_weak: bool) {
    let first = Counted::new(7, is_weak);
    let threads: Vec<_> = (0..2)
        .map(|_| first.clone())
        .map(|own| thread::spawn(move || assert_eq!(own.get(), 7)))
        .collect();
    drop(first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn stack(is_weak: bool) {
    let push = if is_weak { Ordering::Relaxed } else { Ordering::Release };
    let stack = Stack { head: AtomicPtr::new(ptr::null_mut()), push };
    thread::scope(|scope| {
        scope.spawn(|| (1..=5).for_each(|value| stack.push(value)));
        scope.spawn(|| {
            let mut left = 5;
            while left > 0 {
                match stack.pop() {
                    Some(value) => left -= u64::from(value > 0),
                    None => thread::yield_now(),
                }
            }
        });
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_weak = arguments.get(2).is_some_and(|word| word == "weak");
    match arguments[1].as_str() {
        "references" => references(is_weak),
        _ => stack(is_weak),
    }
}
