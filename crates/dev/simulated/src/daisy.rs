//! A small file system: inodes and blocks with locks of their own, allocation, and one disk whose
//! head is moved and used in separate steps.
//!
//! Users write and read files of their own and share the disk. Each inode and each block is taken by
//! a flag that a lock guards: 0 is free, 1 taken, 2 taken and someone may wait, so that only those
//! who must notify do.

use std::rc::Rc;

use reweave_trace::{ConditionId, LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 50;

/// How many users there are, the first thread among them.
const USERS: usize = 3;

/// How many bytes a block has.
const BYTES: usize = 3;

/// How often a transfer goes over a block.
const PASSES: usize = 3;

/// How large a file system is, and how much it is used.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) files: usize,
    /// How many operations each user does.
    pub(crate) operations: usize,
}

/// What one user at a time may take.
struct Guard {
    lock: LockId,
    freed: ConditionId,
    taken: VarId,
}

struct File {
    inode: Guard,
    block: Guard,
    kind: VarId,
    size: VarId,
    links: VarId,
    is_used: VarId,
    bytes: [VarId; BYTES],
}

struct Disk {
    lock: LockId,
    /// Where the head is: the variable that all users write and read most.
    position: VarId,
    length: VarId,
    allocator: LockId,
    changed: ConditionId,
    free_blocks: VarId,
    free_inodes: VarId,
    cursor: VarId,
    magic: VarId,
    block_size: VarId,
    version: VarId,
    root: VarId,
    files: Vec<File>,
}

pub(crate) fn trace(seed: u64, size: Size) -> Trace {
    run(seed, SLICE, move |me| main(me, size))
}

fn guard(me: &Thread, name: &str) -> Guard {
    Guard {
        lock: me.mutex(name),
        freed: me.condition(&format!("{name}.freed")),
        taken: me.var(&format!("{name}.taken"), 0),
    }
}

fn file(me: &Thread, number: usize) -> File {
    let field = |name: &str| me.var(&format!("inode{number}.{name}"), 1);
    File {
        inode: guard(me, &format!("inode{number}")),
        block: guard(me, &format!("block{number}")),
        kind: field("kind"),
        size: field("size"),
        links: field("links"),
        is_used: me.var(&format!("block{number}.is_used"), 0),
        bytes: [0, 1, 2].map(|byte| me.var(&format!("block{number}.byte{byte}"), 0)),
    }
}

async fn main(me: Thread, size: Size) {
    let disk = Rc::new(Disk {
        lock: me.mutex("disk"),
        position: me.var("disk.position", 0),
        length: me.var("disk.length", 1_024),
        allocator: me.mutex("allocator"),
        changed: me.condition("allocator.changed"),
        free_blocks: me.var("allocator.free_blocks", size.files as i64),
        free_inodes: me.var("allocator.free_inodes", size.files as i64),
        cursor: me.var("allocator.cursor", 0),
        magic: me.var("super.magic", 0xda15),
        block_size: me.var("super.block_size", BYTES as i64),
        version: me.var("super.version", 1),
        root: me.var("super.root", 0),
        files: (0..size.files).map(|number| file(&me, number)).collect(),
    });
    for field in [disk.magic, disk.version, disk.root] {
        me.read(field).await;
    }
    for file in &disk.files {
        allocate(&me, &disk, file).await;
    }
    let mut users = Vec::new();
    for number in 1..USERS {
        let disk = Rc::clone(&disk);
        users.push(me.fork(&format!("user{number}"), move |me| user(me, disk, size, number)).await);
    }
    user(me.clone(), Rc::clone(&disk), size, 0).await;
    for user in users {
        me.join(user).await;
    }
    me.read(disk.free_blocks).await;
}

/// Works on files of one's own, then lists all.
async fn user(me: Thread, disk: Rc<Disk>, size: Size, number: usize) {
    let own: Vec<usize> = (number..disk.files.len()).step_by(USERS).collect();
    for operation in 0..size.operations {
        let number = own[me.draw(own.len())];
        let file = &disk.files[number];
        take(&me, &file.inode).await;
        me.read(file.kind).await;
        match operation % 3 {
            0 => write(&me, &disk, number, operation as i64).await,
            1 => read(&me, &disk, number).await,
            _ => stat(&me, &disk, file).await,
        }
        give(&me, &file.inode).await;
        me.work(3).await;
    }
    for file in &disk.files {
        me.read(file.size).await;
    }
}

async fn take(me: &Thread, guard: &Guard) {
    me.lock(guard.lock).await;
    let mut mark = 1;
    while me.test(me.read(guard.taken).await != 0).await {
        mark = 2;
        me.write(guard.taken, mark).await;
        me.wait(guard.freed, guard.lock).await;
    }
    me.write(guard.taken, mark).await;
    me.unlock(guard.lock).await;
}

async fn give(me: &Thread, guard: &Guard) {
    me.lock(guard.lock).await;
    let mark = me.read(guard.taken).await;
    me.write(guard.taken, 0).await;
    if me.test(mark == 2).await {
        me.notify(guard.freed).await;
    }
    me.unlock(guard.lock).await;
}

async fn write(me: &Thread, disk: &Disk, number: usize, value: i64) {
    let file = &disk.files[number];
    me.lock(disk.allocator).await;
    me.read(file.is_used).await;
    me.notify(disk.changed).await;
    me.unlock(disk.allocator).await;
    transfer(me, disk, number, Some(value)).await;
    me.write(file.size, BYTES as i64).await;
}

async fn read(me: &Thread, disk: &Disk, number: usize) {
    me.read(disk.files[number].size).await;
    transfer(me, disk, number, None).await;
}

/// Reads or writes the bytes of a block. The head is moved and used without a lock of its own, so
/// that another user may move it in between: the program's fault.
async fn transfer(me: &Thread, disk: &Disk, number: usize, value: Option<i64>) {
    let file = &disk.files[number];
    take(me, &file.block).await;
    me.lock(disk.lock).await;
    me.read(disk.length).await;
    me.write(disk.position, (number * BYTES) as i64).await;
    me.unlock(disk.lock).await;
    for pass in 0..PASSES {
        for (index, &byte) in file.bytes.iter().enumerate() {
            if pass + index > 0 {
                me.write(disk.position, (number * BYTES + index) as i64).await;
            }
            me.read(disk.block_size).await;
            me.test(me.read(disk.position).await < me.read(disk.length).await).await;
            match value {
                Some(value) => me.write(byte, value).await,
                None => {
                    me.read(byte).await;
                }
            }
            me.read(disk.position).await;
        }
    }
    me.lock(disk.lock).await;
    me.read(disk.position).await;
    me.unlock(disk.lock).await;
    give(me, &file.block).await;
}

async fn stat(me: &Thread, disk: &Disk, file: &File) {
    me.read(file.size).await;
    me.read(file.links).await;
    me.read(disk.free_blocks).await;
    me.read(disk.free_inodes).await;
}

async fn allocate(me: &Thread, disk: &Disk, file: &File) {
    me.lock(disk.allocator).await;
    if me.test(me.read(file.is_used).await == 0).await {
        me.write(file.is_used, 1).await;
        me.add(disk.cursor, 1).await;
        me.add(disk.free_blocks, -1).await;
    }
    me.unlock(disk.allocator).await;
}
