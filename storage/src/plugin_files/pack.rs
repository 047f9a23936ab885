//! Packing of an installed plugin into an archive, for the other nodes of a cluster. What is packed can be unpacked.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::{ENTRIES_MAX, UNPACKED_BYTES_MAX};

const DEFLATED: u16 = 8;
const BUFFER_BYTES: usize = 64 * 1024;

/// A file of the plugin as the directory of the archive names it.
struct Packed {
    name: String,
    checksum: u32,
    compressed: u32,
    size: u32,
    start: u32,
    mode: u32,
}

/// Writes an archive of a folder, whose root has this name. Links and other special files are left out.
///
/// # Errors
/// The folder cannot be read, is larger than an archive may be, or the archive cannot be written.
pub(super) fn pack(folder: &Path, root: &str, archive: &mut (impl Write + Seek)) -> io::Result<()> {
    let mut names = Vec::new();
    collect(folder, root, &mut names)?;
    names.sort();
    let (mut files, mut n_bytes) = (Vec::with_capacity(names.len()), 0);
    for name in names {
        let path = folder.join(name.strip_prefix(root).unwrap_or(&name).trim_start_matches('/'));
        let file = pack_file(&path, name, archive)?;
        n_bytes += u64::from(file.size);
        if n_bytes > UNPACKED_BYTES_MAX {
            return Err(io::Error::other("the files of the plugin are too large for an archive"));
        }
        files.push(file);
    }
    let start = position(archive)?;
    for file in &files {
        let made_by_unix = [0x14, 0x03];
        archive.write_all(b"PK\x01\x02")?;
        archive.write_all(&made_by_unix)?;
        archive.write_all(&0x14_u16.to_le_bytes())?;
        archive.write_all(&common(file))?;
        archive.write_all(&name_length(&file.name)?.to_le_bytes())?;
        archive.write_all(&[0; 8])?;
        archive.write_all(&(file.mode << 16).to_le_bytes())?;
        archive.write_all(&file.start.to_le_bytes())?;
        archive.write_all(file.name.as_bytes())?;
    }
    let end = position(archive)?;
    let n_files = u16::try_from(files.len()).map_err(io::Error::other)?.to_le_bytes();
    archive.write_all(b"PK\x05\x06\x00\x00\x00\x00")?;
    archive.write_all(&n_files)?;
    archive.write_all(&n_files)?;
    archive.write_all(&(end - start).to_le_bytes())?;
    archive.write_all(&start.to_le_bytes())?;
    archive.write_all(&[0; 2])
}

/// Adds the names of the files below a folder.
fn collect(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // An archive has only such names.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (name, kind) = (format!("{prefix}/{name}"), entry.file_type()?);
        if kind.is_dir() {
            collect(&entry.path(), &name, names)?;
        } else if kind.is_file() {
            names.push(name);
        }
        if names.len() > ENTRIES_MAX {
            return Err(io::Error::other("the plugin has too many files for an archive"));
        }
    }
    Ok(())
}

/// Writes a file. Its sizes are known after that, and then put into its head.
fn pack_file(path: &Path, name: String, archive: &mut (impl Write + Seek)) -> io::Result<Packed> {
    let mut content = File::open(path)?;
    let is_executable = content.metadata()?.permissions().mode() & 0o111 != 0;
    let mode = 0o100_000 | if is_executable { 0o755 } else { 0o644 };
    let start = position(archive)?;
    let mut file = Packed { name, checksum: 0, compressed: 0, size: 0, start, mode };
    write_head(&file, archive)?;
    let begin = position(archive)?;
    let mut encoder = DeflateEncoder::new(&mut *archive, Compression::default());
    let (mut sum, mut buffer) = (crc32fast::Hasher::new(), vec![0; BUFFER_BYTES]);
    let mut size: u64 = 0;
    loop {
        let n_read = content.read(&mut buffer)?;
        if n_read == 0 {
            break;
        }
        size += n_read as u64;
        if size > UNPACKED_BYTES_MAX {
            return Err(io::Error::other("a file of the plugin is too large for an archive"));
        }
        sum.update(&buffer[..n_read]);
        encoder.write_all(&buffer[..n_read])?;
    }
    encoder.finish()?;
    let end = position(archive)?;
    file.size = u32::try_from(size).map_err(io::Error::other)?;
    (file.checksum, file.compressed) = (sum.finalize(), end - begin);
    archive.seek(io::SeekFrom::Start(start.into()))?;
    write_head(&file, archive)?;
    archive.seek(io::SeekFrom::Start(end.into()))?;
    Ok(file)
}

fn write_head(file: &Packed, archive: &mut impl Write) -> io::Result<()> {
    archive.write_all(b"PK\x03\x04")?;
    archive.write_all(&0x14_u16.to_le_bytes())?;
    archive.write_all(&common(file))?;
    archive.write_all(&name_length(&file.name)?.to_le_bytes())?;
    archive.write_all(&[0; 2])?;
    archive.write_all(file.name.as_bytes())
}

/// Returns the part that both heads of a file have.
fn common(file: &Packed) -> Vec<u8> {
    /// Names are UTF-8.
    const FLAGS: u16 = 1 << 11;
    let mut common = [FLAGS.to_le_bytes(), DEFLATED.to_le_bytes()].concat();
    // No time, so that equal files make equal archives.
    common.extend([0; 4]);
    for number in [file.checksum, file.compressed, file.size] {
        common.extend(number.to_le_bytes());
    }
    common
}

fn name_length(name: &str) -> io::Result<u16> {
    u16::try_from(name.len()).map_err(io::Error::other)
}

fn position(archive: &mut impl Seek) -> io::Result<u32> {
    u32::try_from(archive.stream_position()?).map_err(io::Error::other)
}
