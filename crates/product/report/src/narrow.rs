//! A schedule for a narrow terminal: a line per event, with the thread in a column of its own.

use std::io::{self, Write};

use anstyle::Style;

use crate::schedule::{Row, Table};
use crate::shown::{clipped, clipped_op};
use crate::site::brief_place;
use crate::text::{BAD, BOLD, CELL_MAX, DIM};

/// How wide the column of events is.
const NUMBER_WIDTH: usize = 8;

/// How long the name of a thread gets.
const THREAD_MAX: usize = 16;

/// How wide the longest location of `table` is.
pub fn locations_width(table: &Table<'_>) -> usize {
    let locations = table.rows.iter().map(|row| match *row {
        Row::Event { event, .. } => brief_place(&table.cell(event).1).chars().count(),
        Row::Gap { .. } | Row::Line => 0,
    });
    locations.max().unwrap_or(0)
}

/// Writes `table`, whose labels are so wide.
pub fn write_table(out: &mut dyn Write, table: &Table<'_>, label_width: usize) -> io::Result<()> {
    let threads: Vec<String> =
        table.headings().iter().map(|name| clipped(name, THREAD_MAX)).collect();
    let width = threads.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(6);
    let ops = table.rows.iter().map(|row| match *row {
        Row::Event { event, .. } => clipped_op(&table.cell(event).0, CELL_MAX).chars().count(),
        Row::Gap { .. } | Row::Line => 0,
    });
    let op_width = ops.max().unwrap_or(0);
    let label = table.label_heading();
    writeln!(out, "  {DIM}{label:>label_width$}{:>NUMBER_WIDTH$}  thread{DIM:#}", "event")?;
    for row in &table.rows {
        match *row {
            Row::Gap { count, place } => {
                writeln!(out, "  {DIM}{}{DIM:#}", table.gap_note(count, place))?;
            }
            Row::Line => writeln!(out, "  {BAD}── the state ──{BAD:#}")?,
            Row::Event { label, event, column } => {
                let (op, location) = table.cell(event);
                let (op, location) = (clipped_op(&op, CELL_MAX), brief_place(&location));
                let style = if label.is_fault() { BAD } else { Style::new() };
                let (label, number) = (label.as_str(), event.number());
                let thread = &threads[column];
                write!(out, "  {style}{label:>label_width$}{style:#}{number:>NUMBER_WIDTH$}")?;
                write!(out, "  {BOLD}{thread:width$}{BOLD:#}  {style}{op}{style:#}")?;
                let gap = op_width - op.chars().count();
                match &*location {
                    "" => writeln!(out)?,
                    place => writeln!(out, "{:gap$}  {DIM}{place}{DIM:#}", "")?,
                }
            }
        }
    }
    match table.hint() {
        Some(hint) => writeln!(out, "  {DIM}{hint}{DIM:#}"),
        None => Ok(()),
    }
}
