//! What the linker is told: the runtime, before everything else.
//!
//! The loader looks for a symbol in the libraries in the order in which they were linked, so the
//! runtime must come before the C library: otherwise accesses would be recorded but no thread and
//! no lock. Shared libraries leave the hooks undefined, since the executable brings them; two
//! runtimes in one process would each see half of it.

use std::ffi::OsString;

use super::Linkage;
use crate::unpack::Runtime;

/// What is being linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    /// An executable that the loader completes.
    Dynamic,
    /// An executable that is complete.
    Static,
    /// A shared library.
    Library {
        /// Whether every symbol must be found while linking.
        is_closed: bool,
    },
    /// An object made of objects.
    Partial,
}

/// What a linker with these arguments makes.
pub(super) fn product(arguments: &[OsString]) -> Product {
    let has =
        |names: &[&str]| arguments.iter().any(|argument| names.iter().any(|name| argument == name));
    if has(&["-r", "-Ur", "-i", "--relocatable"]) {
        return Product::Partial;
    }
    if has(&["-shared", "--shared", "-Bshareable"]) {
        let is_pair = arguments.windows(2).any(|pair| pair[0] == "-z" && pair[1] == "defs");
        return Product::Library { is_closed: is_pair || has(&["-zdefs", "--no-undefined"]) };
    }
    // By itself `-static` says only how the libraries after it are looked for.
    if has(&["-static"]) && !has(&["-dynamic-linker", "--dynamic-linker"]) {
        return Product::Static;
    }
    Product::Dynamic
}

/// Arguments for a linker: some before all others, some after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Additions {
    pub(super) first: Vec<OsString>,
    pub(super) last: Vec<OsString>,
}

/// What brings the runtime into the product.
pub(super) fn additions(product: Product, linkage: Linkage, runtime: &Runtime) -> Additions {
    let mut additions = Additions::default();
    let first = &mut additions.first;
    match (product, linkage) {
        (Product::Dynamic | Product::Library { is_closed: true }, Linkage::Dynamic) => {
            first.extend(["--push-state", "--no-as-needed"].map(OsString::from));
            first.push(runtime.shared().into());
            first.extend(["--pop-state", "-rpath"].map(OsString::from));
            first.push(runtime.folder().into());
        }
        (Product::Dynamic, Linkage::Static) => {
            first.push(runtime.object().into());
            // Exported, so that the calls of libraries are bound to the executable's runtime.
            first.push("--export-dynamic".into());
            // Before version 2.34 the C library kept these apart.
            let libraries = ["--push-state", "--as-needed", "-ldl", "-lpthread", "--pop-state"];
            first.extend(libraries.map(OsString::from));
        }
        (Product::Static, _) => {
            first.push(runtime.static_object().into());
            first.extend(runtime.wrapped().map(|name| format!("--wrap={name}").into()));
        }
        (Product::Library { is_closed: true }, Linkage::Static) => {
            additions.last.extend(["-z", "undefs"].map(OsString::from));
        }
        (Product::Library { is_closed: false } | Product::Partial, _) => {}
    }
    additions
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Product) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert_eq!(product(&words), expected, "{line}");
    }

    #[test]
    fn the_product_is_read_off_the_arguments() {
        check("-pie -dynamic-linker /lib/ld.so a.o -lc", Product::Dynamic);
        check("-dynamic-linker /lib/ld.so a.o -static -lx -Bdynamic -lc", Product::Dynamic);
        check("-static a.o", Product::Static);
        check("-static -pie --no-dynamic-linker -z text a.o", Product::Static);
        check("-shared a.o", Product::Library { is_closed: false });
        check("-shared -z defs a.o", Product::Library { is_closed: true });
        check("-shared --no-undefined a.o", Product::Library { is_closed: true });
        check("-r a.o b.o", Product::Partial);
    }

    #[test]
    fn libraries_leave_the_runtime_to_the_executable_where_they_may() {
        let runtime = Runtime::at(Path::new("/cache"));
        for linkage in [Linkage::Dynamic, Linkage::Static] {
            for product in [Product::Library { is_closed: false }, Product::Partial] {
                assert_eq!(additions(product, linkage, &runtime), Additions::default());
            }
        }
        let closed = Product::Library { is_closed: true };
        let linked = additions(closed, Linkage::Dynamic, &runtime);
        assert!(linked.first.contains(&"/cache/libreweave_rt.so".into()));
        let left = additions(closed, Linkage::Static, &runtime);
        assert_eq!(left.last, ["-z", "undefs"]);
    }
}
