//! Inputs that once broke something, kept in `fuzz/regressions` by target, break nothing; nor do
//! short inputs of one byte over and over.

use crate::robust;

use std::fs;
use std::path::Path;

#[test]
fn old_finds_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/regressions");
    for (target, check) in robust::CHECKS {
        // Not every target has found something.
        let Ok(entries) = fs::read_dir(folder.join(target)) else { continue };
        for entry in entries {
            let path = entry.expect("the folder can be listed").path();
            check(&fs::read(&path).expect("the file can be read"));
        }
    }
}

#[test]
fn monotonous_inputs_break_nothing() {
    for (_, check) in robust::CHECKS {
        check(&[]);
        for byte in 0..=255 {
            check(&[byte; 64]);
        }
    }
}
