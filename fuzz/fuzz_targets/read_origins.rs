//! Where the events of a trace come from, in our binary format: a block of a few events that is as
//! it should be, then sections of origins whose contents are anything.
#![no_main]

use reweave_format::rwt;

/// The form of a column of numbers that take a byte each.
const BYTE: u8 = 1 << 2;

/// The sections of origins: files, code addresses, and two columns.
const TAGS: [u8; 4] = [128, 129, 130, 131];

fn section(tag: u8, form: u8, body: &[u8]) -> Vec<u8> {
    [&[tag, form][..], &(body.len() as u32).to_le_bytes(), body].concat()
}

/// A frame of `kind` as [`rwt::framed`] takes it.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&(1 + payload.len() as u16).to_le_bytes()[..], &[kind], payload].concat()
}

/// A block in which two threads write two variables at two sites, one event each byte of `sites`,
/// then `sections`.
fn block(sites: &[u8], names: &[u8], sections: &[u8]) -> Vec<u8> {
    let count = (sites.len() as u32).to_le_bytes();
    let threads: Vec<u8> = sites.iter().map(|site| site >> 1 & 1).collect();
    let sites: Vec<u8> = sites.iter().map(|site| site & 1).collect();
    [
        &count[..],
        names,
        &section(32, BYTE, &threads),
        &section(33, BYTE, &vec![1; sites.len()]),
        &section(34, BYTE, &threads),
        &section(35, BYTE, &sites),
        sections,
    ]
    .concat()
}

/// Sections of origins that `bytes` cut themselves into: a tag and a form, a length, so many bytes.
fn sections(mut bytes: &[u8]) -> Vec<u8> {
    let mut sections = Vec::new();
    while let Some((&[head, length], rest)) = bytes.split_first_chunk::<2>() {
        let tag = TAGS[usize::from(head & 3)];
        let (body, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        sections.extend(section(tag, head >> 2, body));
    }
    sections
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[events, split], rest)) = bytes.split_first_chunk::<2>() else { return };
    let (sites, rest) = rest.split_at(usize::from(events % 16).min(rest.len()));
    let (first, second) = rest.split_at(usize::from(split).min(rest.len()));
    let names: Vec<u8> =
        [1, 2, 10].iter().flat_map(|&tag| section(tag, 0, &[2, 1, 1, b'a', b'b'])).collect();
    let events_count = 2 * sites.len() as u64;
    let end = [events_count.to_le_bytes(), 2_u64.to_le_bytes()].concat();
    let frames = [
        frame(0, &block(sites, &names, &sections(first))),
        frame(0, &block(sites, &[], &sections(second))),
        frame(1, &end),
    ];
    reweave_fuzz::check_bytes(&rwt::framed(&frames.concat()));
});
