//! Inputs that once broke something, kept in `fuzz/regressions`, break nothing.

use crate::robust;

#[test]
fn old_finds_stay_fixed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/regressions");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of old finds is there") {
        let path = entry.expect("the folder can be listed").path();
        // What was found in other readers than those of traces is in folders.
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).expect("the file can be read");
        robust::check_bytes(&bytes);
        count += 1;
    }
    assert!(count >= 6, "old finds have gone missing");
}
