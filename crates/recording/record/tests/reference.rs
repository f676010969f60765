//! The oracle's definition of cells, asked about a recording.

use reweave_oracle::cells::{self, Cell};
use reweave_record::shadow::Access;
use reweave_runtime::wire::{Event, Kind};

/// The cells that the access at `place` in `events` covers, as far as they are kept, by address.
pub(crate) fn cells_of(events: &[(u32, Event)], place: usize) -> Vec<Cell> {
    let plain: Vec<(u32, cells::Event)> =
        events.iter().map(|(thread, event)| (*thread, plain(event))).collect();
    cells::cells_of(&plain, place)
}

fn plain(event: &Event) -> cells::Event {
    if let Some(Access { start, end, writes, .. }) = Access::new(event) {
        return cells::Event::Access(cells::Access { start, end, writes });
    }
    let (start, length) = (event.address, event.extra.unwrap_or(0));
    match event.kind {
        Kind::Alloc => cells::Event::Alloc { start, length },
        Kind::Free => cells::Event::Free { start, length },
        Kind::Fork => cells::Event::Fork(event.address as u32),
        Kind::Join => cells::Event::Join(event.address as u32),
        _ => cells::Event::Other,
    }
}
