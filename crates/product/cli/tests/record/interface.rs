//! The public interface of thread sanitizers: every function that the compilers' headers declare is
//! there to be linked with, but for those that a program defines itself to be called back.

use std::collections::BTreeSet;

use super::harness::{Workshop, compilers};

/// The functions that the headers of `compiler` declare.
fn declared(folder: &Workshop, compiler: &str) -> BTreeSet<String> {
    const HEADERS: [&str; 3] =
        ["tsan_interface.h", "tsan_interface_atomic.h", "common_interface_defs.h"];
    let mut names = BTreeSet::new();
    for header in HEADERS {
        folder.put("header.c", &format!("#include <sanitizer/{header}>\n"));
        let output = folder.command(compiler).args(["-E", "-P", "header.c"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != '(');
        let functions = words.filter_map(|word| word.split_once('(')).map(|(name, _)| name);
        let is_public =
            |name: &&str| ["__tsan_", "__sanitizer_"].iter().any(|it| name.starts_with(it));
        names.extend(functions.filter(is_public).map(str::to_owned));
    }
    let is_callback = |name: &str| name.starts_with("__tsan_on_") || name.contains("_weak_hook_");
    names.retain(|name| !is_callback(name));
    names
}

#[test]
fn every_function_that_headers_declare_links() {
    for compiler in compilers("c") {
        let folder = Workshop::with(&[]);
        let names = declared(&folder, compiler);
        // Debian has clang's in a package of its own.
        if names.is_empty() {
            eprintln!("skipped: the headers of {compiler}'s sanitizers are not installed");
            continue;
        }
        assert!(names.contains("__tsan_acquire"), "{compiler}: {names:?}");
        let declarations = names.iter().map(|name| format!("void {name}(void);\n"));
        let uses = names.iter().map(|name| format!("    (void *){name},\n"));
        let text = format!(
            "{}void *functions[] = {{\n{}}};\nint main(void) {{ return !functions[0]; }}\n",
            declarations.collect::<String>(),
            uses.collect::<String>(),
        );
        folder.put("names.c", &text);
        for how in [&[][..], &["--runtime", "static"], &["-static"]] {
            folder.build("names.c", compiler, &[how, &["-fno-builtin"]].concat());
            assert_eq!(folder.run("names", &[]).code, Some(0), "{compiler} {how:?}");
        }
    }
}
