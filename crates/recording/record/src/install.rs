//! The runtime that travels inside the command, as files that compilers and loaders can be given.
//!
//! The files lie in a folder of the user's cache whose name holds the version and a hash of the
//! contents, so that versions live side by side and a program goes on finding the runtime that it
//! was linked with. Every file is written under another name and then renamed, and every process
//! compares all of them before it uses any: many may start at once, and what was cut short or
//! damaged is repaired.
//!
//! The folder is `$REWEAVE_CACHE`, else `$XDG_CACHE_HOME/reweave`, else `$HOME/.cache/reweave`. If
//! the last two cannot be written to, it is one in the temporary folder that only the user may
//! enter.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// The runtime as a shared library.
const SHARED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libreweave_rt.so"));
/// The runtime as an object, for dynamic executables.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reweave_rt.o"));
/// The runtime as an object, for static executables.
const STATIC_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reweave_rt_static.o"));
/// The header for programs.
const HEADER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/reweave.h"));
/// What stands before a header of GNU's C++ library.
const CXX_HEADER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/c++/bits/c++config.h"));
/// The functions of the C library that are wrapped in static executables, one a line.
const WRAPPED: &str = include_str!(concat!(env!("OUT_DIR"), "/wrapped.txt"));

/// Every file: its place in the folder and its contents. Programs that were linked with the shared
/// runtime of a compiler's thread sanitizer ask for it by the names below `swap`.
const FILES: [(&str, &[u8]); 7] = [
    ("libreweave_rt.so", SHARED),
    ("reweave_rt.o", OBJECT),
    ("reweave_rt_static.o", STATIC_OBJECT),
    ("include/reweave.h", HEADER),
    ("include/c++/bits/c++config.h", CXX_HEADER),
    ("swap/libtsan.so.2", SHARED),
    ("swap/libtsan.so.0", SHARED),
];

/// Why there is no runtime to link with.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The command was built for another system.
    #[error("recording needs Linux on x86-64 with the GNU C library")]
    Unsupported,
    /// No folder could be written to.
    #[error("cannot unpack the runtime to {folder}: {error}; set REWEAVE_CACHE to another folder")]
    Write {
        /// The last folder tried.
        folder: String,
        /// What the system said.
        error: io::Error,
    },
}

/// The unpacked runtime.
#[derive(Clone, Debug)]
pub struct Runtime {
    folder: PathBuf,
}

impl Runtime {
    /// The folder that holds it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The shared library.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.folder.join("libreweave_rt.so")
    }

    /// The object that a dynamic executable links to have a runtime of its own.
    #[must_use]
    pub fn object(&self) -> PathBuf {
        self.folder.join("reweave_rt.o")
    }

    /// The object that a static executable links, together with [`Runtime::wrapped`].
    #[must_use]
    pub fn static_object(&self) -> PathBuf {
        self.folder.join("reweave_rt_static.o")
    }

    /// The folder with `reweave.h`.
    #[must_use]
    pub fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// The folder with headers that stand before those of the C++ library.
    #[must_use]
    pub fn cxx_include(&self) -> PathBuf {
        self.folder.join("include/c++")
    }

    /// The folder whose libraries stand in for the shared runtime of a thread sanitizer.
    #[must_use]
    pub fn swap(&self) -> PathBuf {
        self.folder.join("swap")
    }

    /// A script that says `text`, in a file whose name begins with `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn script(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let hash = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        let path = self.folder.join(format!("{name}-{hash:016x}"));
        if !path.is_file() {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
            file.persist(&path)?;
        }
        Ok(path)
    }

    /// The functions that the linker of a static executable must wrap.
    pub fn wrapped(&self) -> impl Iterator<Item = &'static str> + use<> {
        WRAPPED.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    }

    /// A runtime said to be in `folder`.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }
}

/// Makes sure that the runtime is unpacked and says where.
///
/// # Errors
/// If this system cannot record, or no folder can be written to.
pub fn install() -> Result<Runtime, InstallError> {
    if SHARED.is_empty() {
        return Err(InstallError::Unsupported);
    }
    let name = folder_name();
    in_cache(|cache| {
        let folder = cache.join(&name);
        write_all(&folder).map(|()| Runtime { folder })
    })
}

/// The path of `program`, through a link in the cache if it contains a character for which
/// `is_taken`: some tools split what they are given to run and know no quotes.
///
/// # Errors
/// If no folder can be written to or all have such characters too.
pub fn plain_path(program: &Path, is_taken: fn(char) -> bool) -> Result<PathBuf, InstallError> {
    let is_plain = |path: &Path| path.to_str().is_some_and(|text| !text.contains(is_taken));
    if is_plain(program) {
        return Ok(program.to_owned());
    }
    let hash = xxhash_rust::xxh3::xxh3_64(program.as_os_str().as_encoded_bytes());
    in_cache(|cache| {
        let link = cache.join(format!("link-{hash:016x}"));
        if !is_plain(&link) {
            return Err(io::Error::other("the path has characters that separate words"));
        }
        let points_there = || fs::read_link(&link).is_ok_and(|target| target == program);
        if !points_there() {
            fs::create_dir_all(cache)?;
            _ = fs::remove_file(&link);
            // Another process may have made it meanwhile: then it points where it should.
            let made = symlink(program, &link);
            if !points_there() {
                made?;
            }
        }
        Ok(link)
    })
}

/// The name of the folder for this version of the runtime.
fn folder_name() -> String {
    let mut hash = Xxh3::new();
    for (path, contents) in FILES {
        hash.update(path.as_bytes());
        hash.update(&contents.len().to_le_bytes());
        hash.update(contents);
    }
    format!("runtime-{}-{:016x}", env!("CARGO_PKG_VERSION"), hash.digest())
}

/// Does `work` with the first cache folder where it succeeds.
pub(crate) fn in_cache<T>(work: impl Fn(&Path) -> io::Result<T>) -> Result<T, InstallError> {
    let failed =
        |folder: &Path, error| InstallError::Write { folder: folder.display().to_string(), error };
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = set("REWEAVE_CACHE") {
        let folder = std::path::absolute(&folder).unwrap_or_else(|_| folder.into());
        return work(&folder).map_err(|error| failed(&folder, error));
    }
    for folder in homes(set("XDG_CACHE_HOME"), set("HOME")) {
        if let Ok(result) = work(&folder) {
            return Ok(result);
        }
    }
    let folder = std::env::temp_dir().join(format!("reweave-{}", user()));
    make_private(&folder).and_then(|()| work(&folder)).map_err(|error| failed(&folder, error))
}

/// The cache folders that belong to the user. As the convention has it, relative ones do not count.
fn homes(cache: Option<OsString>, home: Option<OsString>) -> impl Iterator<Item = PathBuf> {
    let cache = cache.map(PathBuf::from);
    let home = home.map(|home| PathBuf::from(home).join(".cache"));
    [cache, home]
        .into_iter()
        .flatten()
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("reweave"))
}

/// Writes the files that are missing or wrong.
fn write_all(folder: &Path) -> io::Result<()> {
    for (path, contents) in FILES {
        write(&folder.join(path), contents)?;
    }
    Ok(())
}

/// Makes `contents` the contents of the file at `path`, at once or not at all.
pub(crate) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == contents) {
        return Ok(());
    }
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".part-").tempfile_in(folder)?;
    file.write_all(contents)?;
    // Others may run what this user builds.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// The number of the user that runs this process.
fn user() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid())
}

/// Makes `folder` one that only this user may enter, or says that it is not: anybody may have made
/// it in a temporary folder, and programs will load what lies in it.
fn make_private(folder: &Path) -> io::Result<()> {
    let made = fs::DirBuilder::new().mode(0o700).create(folder);
    let found = fs::symlink_metadata(folder);
    let Ok(found) = found else { return made };
    let is_ours = found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0;
    is_ours.then_some(()).ok_or_else(|| io::Error::other("it is open to other users"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::TempDir::new().unwrap()
    }

    #[test]
    fn what_is_missing_or_damaged_is_written_again() {
        let cache = folder();
        for _ in 0..2 {
            write_all(cache.path()).unwrap();
            for (path, contents) in FILES {
                assert_eq!(fs::read(cache.path().join(path)).unwrap(), contents, "{path}");
            }
            fs::write(cache.path().join("reweave_rt.o"), b"cut").unwrap();
            fs::remove_file(cache.path().join("swap/libtsan.so.2")).unwrap();
        }
    }

    #[test]
    fn many_may_unpack_at_once_and_leave_nothing_else_behind() {
        let cache = folder();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| write_all(cache.path()).unwrap());
            }
        });
        let mut names: Vec<_> = fs::read_dir(cache.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected =
            ["include", "libreweave_rt.so", "reweave_rt.o", "reweave_rt_static.o", "swap"];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_caches_of_the_user_come_in_order_and_are_absolute() {
        let found = |cache: Option<&str>, home: Option<&str>| -> Vec<PathBuf> {
            homes(cache.map(OsString::from), home.map(OsString::from)).collect()
        };
        let path = PathBuf::from;
        assert_eq!(found(None, None), [] as [PathBuf; 0]);
        assert_eq!(found(Some("relative"), Some("/h")), [path("/h/.cache/reweave")]);
        assert_eq!(found(Some("/c"), Some("/h")), [path("/c/reweave"), path("/h/.cache/reweave")]);
    }

    #[test]
    fn a_temporary_folder_that_others_may_enter_is_refused() {
        let place = folder();
        let own = place.path().join("own");
        make_private(&own).unwrap();
        make_private(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        make_private(&own).unwrap_err();
        let link = place.path().join("link");
        symlink(place.path(), &link).unwrap();
        make_private(&link).unwrap_err();
    }
}
