//! A poset: the start of its object, then anything; and what is read as one, built.
#![no_main]

use reweave_format::{Input, ReadOptions, read_input_from};
use reweave_order::poset::PosetBuilder;

fn check(bytes: &[u8]) {
    let input = match read_input_from(bytes, "fuzz", &ReadOptions::default()) {
        Ok(input) => input,
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz: "), "{error}");
            return;
        }
    };
    let Input::Poset(raw) = input else { return };
    let Ok(mut builder) = PosetBuilder::new(raw.chains_count()) else { return };
    for (chain, clock) in raw.events() {
        if builder.push(chain, clock).is_err() {
            return;
        }
    }
    let poset = builder.finish();
    assert!(poset.is_consistent(&poset.top()));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check(&[b"{\"n\":3,", bytes].concat());
    check(&[b"{\"n\":3,\"events\":[[0,[1,0,0]],", bytes].concat());
});
