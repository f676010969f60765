//! The table, a group of rows at a time.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use reweave_trace::views::Mode;
use reweave_trace::{Event, EventId, NameKind, OpKind, Trace};

/// The columns, as the format itself spells them.
const COLUMNS: &str = "
    message trace {
        REQUIRED INT32 event (INTEGER(32, false));
        REQUIRED BYTE_ARRAY thread (UTF8);
        REQUIRED BYTE_ARRAY op (UTF8);
        OPTIONAL BYTE_ARRAY on (UTF8);
        OPTIONAL BYTE_ARRAY order (UTF8);
        OPTIONAL BYTE_ARRAY mode (UTF8);
        REQUIRED BYTE_ARRAY location (UTF8);
        OPTIONAL INT64 value;
    }
";

/// How many rows a group has.
const GROUP_ROWS: usize = 1 << 17;

/// Writes `trace` to `out`.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let columns = parse_message_type(COLUMNS).map_err(failed)?;
    let event = ColumnPath::from("event");
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("reweave {}", env!("CARGO_PKG_VERSION")))
        .set_column_dictionary_enabled(event.clone(), false)
        .set_column_encoding(event, Encoding::DELTA_BINARY_PACKED)
        .build();
    let written = Written::default();
    let mut file =
        SerializedFileWriter::new(written.clone(), Arc::new(columns), Arc::new(properties))
            .map_err(failed)?;
    let events: Vec<EventId> = trace.events().map(|(id, _)| id).collect();
    for rows in events.chunks(GROUP_ROWS) {
        let mut group = file.next_row_group().map_err(failed)?;
        write_group(trace, rows, &mut group)?;
        group.close().map_err(failed)?;
        written.pass_on(out)?;
    }
    file.close().map_err(failed)?;
    written.pass_on(out)
}

fn write_group<W: Write + Send>(
    trace: &Trace,
    rows: &[EventId],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> io::Result<()> {
    let names = trace.names();
    let event = |id: EventId| trace.event(id);
    let kind = |id: EventId| event(id).op.kind();
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    let number = rows.iter().map(|id| id.number() as i32).collect();
    put(group, Column::Number(number))?;
    let each = |of: &dyn Fn(Event) -> ByteArray| rows.iter().map(|&id| of(event(id))).collect();
    put(group, Column::Text(each(&|event| text(names.threads.name(event.thread)))))?;
    put(group, Column::Text(each(&|event| text(event.op.kind().as_str()))))?;
    let on = |&id: &EventId| {
        let (code, operand) = event(id).op.encode();
        let what = code.kind().operand();
        (what != NameKind::None).then(|| text(names.name(what, operand)))
    };
    put(group, Column::MaybeText(rows.iter().map(on).collect()))?;
    let order = |&id: &EventId| {
        kind(id).has_order().then(|| text(event(id).op.encode().0.order().as_str()))
    };
    put(group, Column::MaybeText(rows.iter().map(order).collect()))?;
    let mode = |&id: &EventId| mode(kind(id)).map(text);
    put(group, Column::MaybeText(rows.iter().map(mode).collect()))?;
    put(group, Column::Text(each(&|event| text(names.location(event.site)))))?;
    put(group, Column::MaybeNumber(rows.iter().map(|&id| trace.value(id)).collect()))
}

/// How an operation of `kind` takes or releases a lock, if it does.
const fn mode(kind: OpKind) -> Option<&'static str> {
    match kind {
        OpKind::Acquire | OpKind::Release => Some(Mode::Exclusive.as_str()),
        OpKind::AcquireShared | OpKind::ReleaseShared => Some(Mode::Shared.as_str()),
        _ => None,
    }
}

/// The cells of a column.
enum Column {
    Number(Vec<i32>),
    MaybeNumber(Vec<Option<i64>>),
    Text(Vec<ByteArray>),
    MaybeText(Vec<Option<ByteArray>>),
}

/// Writes the next column of `group`.
fn put<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: Column,
) -> io::Result<()> {
    let mut next = group.next_column().map_err(failed)?.expect("there are as many as are written");
    let written = match (next.untyped(), column) {
        (ColumnWriter::Int32ColumnWriter(out), Column::Number(cells)) => {
            out.write_batch(&cells, None, None)
        }
        (ColumnWriter::ByteArrayColumnWriter(out), Column::Text(cells)) => {
            out.write_batch(&cells, None, None)
        }
        (ColumnWriter::Int64ColumnWriter(out), Column::MaybeNumber(cells)) => {
            let (cells, levels) = present(cells);
            out.write_batch(&cells, Some(&levels), None)
        }
        (ColumnWriter::ByteArrayColumnWriter(out), Column::MaybeText(cells)) => {
            let (cells, levels) = present(cells);
            out.write_batch(&cells, Some(&levels), None)
        }
        _ => unreachable!("the columns are written in their order"),
    };
    written.map_err(failed)?;
    next.close().map_err(failed)
}

/// The cells that are there, and for each cell whether it is.
fn present<T>(cells: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let levels = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    (cells.into_iter().flatten().collect(), levels)
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// What was written and not yet passed on: the library wants something that can go to another
/// thread.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn pass_on(&self, out: &mut dyn Write) -> io::Result<()> {
        // A thread that panicked leaves whole bytes all the same.
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&bytes)?;
        bytes.clear();
        Ok(())
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
