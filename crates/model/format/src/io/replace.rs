//! Replacing a file as a whole, or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// Puts what `write` writes in place of the file at `path`.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A symbolic link stays one: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = match fs::metadata(&target) {
        Ok(old) if old.is_dir() => {
            let reason = "expected a file, found a directory";
            return Err(io::Error::new(ErrorKind::IsADirectory, reason));
        }
        Ok(old) if !old.is_file() => {
            let mut file = BufWriter::new(File::options().write(true).open(&target)?);
            write(&mut file)?;
            return file.flush();
        }
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(Permissions::readonly) {
        let reason = "the file is there and may not be changed";
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    }
    // Made as any file is: what the library makes by itself is private, and this is to stay.
    let folder = directory(&target);
    if !folder.is_dir() {
        let reason = format!("there is no folder `{}`", folder.display());
        return Err(io::Error::new(ErrorKind::NotFound, reason));
    }
    let temporary =
        Builder::new().prefix(".reweave-").make_in(&folder, |path| File::create_new(path))?;
    let mut file = BufWriter::new(temporary);
    write(&mut file)?;
    let temporary = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(permissions) = old {
        temporary.as_file().set_permissions(permissions)?;
    }
    // What is renamed over the old file must be whole even if the machine fails right after.
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|failed| failed.error)?;
    Ok(())
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
