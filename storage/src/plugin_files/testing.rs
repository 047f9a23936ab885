//! Archives of plugins for tests, harmless and hostile ones, written byte by byte.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::ENTRIES_MAX;

/// A manifest with the required members only.
pub const SMALL_MANIFEST: &[u8] = br#"{"name":"Demo","version":"1.0.0","description":"d"}"#;

/// An entry of an archive, with the claims that are written about it.
#[derive(Clone)]
pub struct ArchivePart {
    pub name: Vec<u8>,
    pub content: Vec<u8>,
    pub is_deflated: bool,
    pub mode: u32,
    pub flags: u16,
    pub method: Option<u16>,
    /// Size that is claimed instead of the true one.
    pub size: Option<u32>,
    /// Name in the header before the content, if it differs.
    pub header_name: Option<Vec<u8>>,
    pub checksum: Option<u32>,
}

/// Returns a file with this content, or an empty folder if its name ends with a slash.
pub fn part(name: &str, content: &[u8]) -> ArchivePart {
    ArchivePart {
        name: name.as_bytes().to_vec(),
        content: content.to_vec(),
        is_deflated: content.len() > 16,
        mode: 0,
        flags: 0,
        method: None,
        size: None,
        header_name: None,
        checksum: None,
    }
}

/// Writes an archive.
pub fn archive(parts: &[ArchivePart]) -> Vec<u8> {
    let (mut all, mut directory) = (Vec::new(), Vec::new());
    for part in parts {
        let mut packed = part.content.clone();
        if part.is_deflated {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&part.content).expect("memory takes all bytes");
            packed = encoder.finish().expect("memory takes all bytes");
        }
        let start = all.len() as u32;
        let method = part.method.unwrap_or(if part.is_deflated { 8 } else { 0 });
        let checksum = part.checksum.unwrap_or_else(|| crc32fast::hash(&part.content));
        let size = part.size.unwrap_or(part.content.len() as u32);
        let mut common = Vec::new();
        common.extend(part.flags.to_le_bytes());
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        for number in [checksum, packed.len() as u32, size] {
            common.extend(number.to_le_bytes());
        }
        let header_name = part.header_name.as_ref().unwrap_or(&part.name);
        all.extend(b"PK\x03\x04\x14\x00");
        all.extend(&common);
        all.extend((header_name.len() as u16).to_le_bytes());
        all.extend([0; 2]);
        all.extend(header_name);
        all.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x03\x14\x00");
        directory.extend(common);
        directory.extend((part.name.len() as u16).to_le_bytes());
        directory.extend([0; 8]);
        directory.extend((part.mode << 16).to_le_bytes());
        directory.extend(start.to_le_bytes());
        directory.extend(&part.name);
    }
    let start = all.len() as u32;
    let n_parts = (parts.len() as u16).to_le_bytes();
    all.extend(&directory);
    all.extend(b"PK\x05\x06\x00\x00\x00\x00");
    all.extend(n_parts);
    all.extend(n_parts);
    all.extend((directory.len() as u32).to_le_bytes());
    all.extend(start.to_le_bytes());
    all.extend([0; 2]);
    all
}

/// The files of a good plugin.
pub fn demo() -> Vec<ArchivePart> {
    vec![
        part("demo/", b""),
        part("demo/plugin.json", SMALL_MANIFEST),
        part("demo/plugin.py", b"class Plugin:\n    pass\n"),
        ArchivePart { mode: 0o100_755, ..part("demo/bin/tool", b"#!/bin/sh\n") },
        part("__MACOSX/demo/plugin.py", b"x"),
    ]
}

/// Returns archives that are refused, each with a part of the refusal.
pub fn hostile_archives() -> Vec<(Vec<u8>, String)> {
    let with = |added: ArchivePart| archive(&[demo(), vec![added]].concat());
    let manifest = |content: &[u8]| archive(&[part("d/plugin.py", b"x"), part("d/plugin.json", content)]);
    let x = || part("demo/x", b"content of an entry");
    let many: Vec<ArchivePart> = (0..ENTRIES_MAX).map(|it| part(&format!("demo/{it}"), b"")).collect();
    let archives = [
        (with(part("demo/../../x", b"")), "\"demo/../../x\" leads out of the folder"),
        (with(part("/etc/x", b"")), "\"/etc/x\" has an absolute path"),
        (with(part("C:/x", b"")), "drive"),
        (with(part("demo\\x", b"")), "backslash"),
        (with(part("demo/a\0", b"")), "NUL"),
        (with(ArchivePart { mode: 0o120_777, ..x() }), "\"demo/x\" is a link"),
        (with(ArchivePart { mode: 0o020_666, ..x() }), "\"demo/x\" is a device"),
        (with(ArchivePart { mode: 0o010_666, ..x() }), "pipe"),
        (with(ArchivePart { mode: 0o040_755, ..x() }), "folder with the name of a file"),
        (with(ArchivePart { flags: 1, ..x() }), "\"demo/x\" is encrypted"),
        (with(ArchivePart { method: Some(99), ..x() }), "is encrypted"),
        (with(ArchivePart { method: Some(14), ..x() }), "not supported"),
        (with(part("demo/plugin.py", b"")), "name of another entry"),
        (with(part("demo/PLUGIN.py", b"")), "upper and lower case"),
        (with(part("demo/plugin.py/x", b"")), "both a file and a folder"),
        (with(ArchivePart { size: Some(5), ..x() }), "\"demo/x\" has a false size"),
        (with(ArchivePart { size: Some(500), ..x() }), "\"demo/x\" has a false size"),
        (with(ArchivePart { is_deflated: false, size: Some(500), ..x() }), "false size"),
        (with(ArchivePart { checksum: Some(1), ..x() }), "checksum"),
        (with(ArchivePart { header_name: Some(b"demo/y".to_vec()), ..x() }), "contradicts its own header"),
        (
            with(ArchivePart { size: Some(201 << 20), ..x() }),
            "\"demo/x\" the files exceed the maximum of 200 MiB",
        ),
        (with(part("two/plugin.json", SMALL_MANIFEST)), "several plugins: demo, two"),
        (archive(&[part("readme.txt", b"x")]), "no plugin"),
        (archive(&[]), "no plugin"),
        (archive(&[part("d/plugin.json", SMALL_MANIFEST)]), "has no code"),
        (manifest(b"{"), "not valid JSON"),
        (manifest(b"{}"), "name is required"),
        (manifest(&vec![b' '; 300_000]), "more than 256 KiB"),
        (archive(&[demo(), many].concat()), "exceeds the maximum of 2000 files"),
        (overlapping(), "the entries \"demo/a\" and \"demo/b\" overlap"),
        (b"PK\x03\x04".to_vec(), "not a zip archive"),
    ];
    archives.into_iter().map(|(bytes, text)| (bytes, text.to_owned())).collect()
}

/// Returns an archive in which the content of an entry goes on into the header of the next one.
fn overlapping() -> Vec<u8> {
    let parts = [part("demo/a", b"12345678"), part("demo/b", b"12345678")];
    let mut bytes = archive(&[demo(), parts.to_vec()].concat());
    let name = b"demo/a";
    let is_name = |at: &usize| bytes[*at..].starts_with(name);
    let places: Vec<usize> = (0..bytes.len()).filter(is_name).collect();
    // The sizes in the header before the content, and in the directory.
    for size in [places[0] - 12, places[0] - 8, places[1] - 26, places[1] - 22] {
        bytes[size] = 30;
    }
    bytes
}
