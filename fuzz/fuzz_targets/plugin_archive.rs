//! Archives of plugins: no archive panics, leads out of its folder, or unpacks to more than allowed.

#![no_main]

use std::collections::BTreeSet;
use std::io::{self, Cursor, Write};

use libfuzzer_sys::fuzz_target;
use storage::plugin_files::{ArchiveTarget, UNPACKED_BYTES_MAX, unpack};

/// Remembers which files are written.
#[derive(Default)]
struct Counted {
    files: BTreeSet<String>,
}

/// A file that is counted only.
struct CountedFile {
    n_bytes: u64,
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.n_bytes += bytes.len() as u64;
        assert!(self.n_bytes <= UNPACKED_BYTES_MAX, "a file is larger than all may be");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check(path: &[String]) {
    let is_inside =
        |it: &String| !it.is_empty() && it != "." && it != ".." && !it.contains(['/', '\\', '\0']);
    assert!(!path.is_empty() && path.iter().all(is_inside), "{path:?} leads elsewhere");
}

impl ArchiveTarget for Counted {
    type File = CountedFile;

    fn folder(&mut self, path: &[String]) -> io::Result<()> {
        check(path);
        Ok(())
    }

    fn file(&mut self, path: &[String], _: bool) -> io::Result<CountedFile> {
        check(path);
        assert!(self.files.insert(path.join("/").to_lowercase()), "{path:?} is written twice");
        Ok(CountedFile { n_bytes: 0 })
    }
}

fuzz_target!(|archive: &[u8]| {
    let mut target = Counted::default();
    if unpack(Cursor::new(archive), "plugin.zip", &mut target).is_ok() {
        assert!(!target.files.is_empty(), "a plugin has a file");
    }
});
