//! What is written as Parquet reads back as the same events.

#![cfg(feature = "parquet")]

use std::fs::File;
use std::io::{Seek as _, Write as _};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use reweave_format::{Format, write_to};
use reweave_trace::{AccessOp, LockOp, Marker, MemoryOrder, Op, TraceBuilder};

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("there is room for a file");
    file.write_all(bytes).expect("it can be written to");
    file.rewind().expect("it can be read again");
    file
}

fn spelled(row: &Row) -> String {
    let cells = row.get_column_iter().map(|(_, field)| match field {
        Field::Null => "-".to_owned(),
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    });
    cells.collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_are_the_events_and_nothing_is_lost() {
    let mut builder = TraceBuilder::new();
    let (thread, lock, var) = (builder.thread("T1"), builder.lock("m"), builder.var("größe"));
    let site = builder.site("a.c:1");
    builder.push(thread, Op::Lock(LockOp::AcquireShared, lock), site);
    builder.push(thread, Op::Access(AccessOp::Write, var), site);
    builder.value(-5);
    builder.push(thread, Op::Access(AccessOp::AtomicRead(MemoryOrder::Acquire), var), site);
    builder.push(thread, Op::Lock(LockOp::ReleaseShared, lock), site);
    builder.push(thread, Op::Marker(Marker::Branch), site);
    let trace = builder.finish().unwrap();
    let mut out = Vec::new();
    write_to(&trace, &mut out, Format::Parquet).unwrap();
    let reader = SerializedFileReader::new(file(&out)).unwrap();
    let rows: Vec<String> =
        reader.get_row_iter(None).unwrap().map(|row| spelled(&row.unwrap())).collect();
    assert_eq!(
        rows,
        [
            "1 T1 racq m - shared a.c:1 -",
            "2 T1 w größe - - a.c:1 -5",
            "3 T1 ar größe acquire - a.c:1 -",
            "4 T1 rrel m - shared a.c:1 -",
            "5 T1 branch - - - a.c:1 -",
        ]
    );
}

#[test]
fn many_events_make_several_groups() {
    let mut builder = TraceBuilder::new();
    let (thread, var, site) = (builder.thread("T1"), builder.var("x"), builder.site("a.c:1"));
    for _ in 0..140_000 {
        builder.push(thread, Op::Access(AccessOp::Write, var), site);
    }
    let trace = builder.finish().unwrap();
    let mut out = Vec::new();
    write_to(&trace, &mut out, Format::Parquet).unwrap();
    let reader = SerializedFileReader::new(file(&out)).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 140_000);
    assert!(out.len() < 140_000, "{}", out.len());
}
