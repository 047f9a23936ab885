//! Reads data that may be compressed: unpacked if it is, unchanged otherwise.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::bufread::DeflateDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

/// Maximum number of nested compressions: a compressed file, sent by a server that compresses.
const LAYERS_MAX: usize = 2;

/// The first bytes of every gzip file, of every zip archive that is not empty, and of every xz file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZIP: [u8; 4] = *b"PK\x03\x04";
const XZ: [u8; 6] = *b"\xfd7zXZ\0";

/// Maximum memory of the xz decoder, in KiB: what the highest preset of xz needs. A file can ask for 4 GiB.
const XZ_KIB_MAX: u32 = 66 << 10;

/// Maximum number of folders and of other files in front of the file of a zip archive.
const ZIP_SKIPPED_MAX: usize = 100;
/// Maximum number of unpacked bytes of another file in front.
const ZIP_SKIPPED_BYTES_MAX: u64 = 16 << 20;
/// Ends of names of files that are neither lists nor guides.
const OTHER_ENDS: [&str; 8] = [".nfo", ".md", ".url", ".html", ".htm", ".png", ".jpg", ".pdf"];
/// Names of files that are texts about an archive.
const OTHER_NAMES: [&str; 6] = ["readme", "read me", "license", "licence", "changelog", "info"];

/// The unpacked bytes of a playlist, up to a limit. Blocks like the reader below.
pub(crate) struct Unpacked {
    reader: Box<dyn Read + Send>,
    left: u64,
    bytes_max: u64,
}

/// The data is longer than the limit.
#[derive(Debug, thiserror::Error)]
#[error("it is longer than {bytes_max} bytes")]
pub(crate) struct TooLong {
    bytes_max: u64,
}

impl Unpacked {
    /// Creates the reader; detects compression by the first bytes.
    ///
    /// # Errors
    /// The first bytes cannot be read.
    pub(crate) fn new(reader: impl Read + Send + 'static, bytes_max: u64) -> io::Result<Self> {
        let mut reader: Box<dyn Read + Send> = Box::new(reader);
        for _ in 0..LAYERS_MAX {
            let (start, whole) = look(reader)?;
            if start.starts_with(&GZIP) {
                reader = Box::new(MultiGzDecoder::new(whole));
            } else if start.starts_with(&ZIP) {
                reader = first_file(whole)?;
            } else if start == XZ {
                reader = Box::new(XzReader::new_mem_limit(whole, true, XZ_KIB_MAX));
            } else {
                reader = Box::new(whole);
                break;
            }
        }
        Ok(Self { reader, left: bytes_max, bytes_max })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.reader.read(buffer)?;
        let left = self.left.checked_sub(n_bytes as u64);
        self.left = left.ok_or_else(|| io::Error::other(TooLong { bytes_max: self.bytes_max }))?;
        Ok(n_bytes)
    }
}

/// The inspected bytes, followed by the rest.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// Returns the first bytes of the data, and a reader that starts with them.
fn look<R: Read>(mut reader: R) -> io::Result<(Vec<u8>, Whole<R>)> {
    let mut start = Vec::with_capacity(XZ.len());
    reader.by_ref().take(XZ.len() as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(reader)))
}

/// The header of a file in a zip archive: the local file header of the ZIP specification (APPNOTE 4.3.7).
struct ZipFile {
    name: String,
    method: u16,
    is_encrypted: bool,
    /// The length is written behind the data.
    has_no_size: bool,
    n_packed: u64,
}

impl ZipFile {
    /// Reads a header; `None` behind the last file.
    fn read(archive: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; 30];
        archive.read_exact(&mut header[..ZIP.len()])?;
        if header[..ZIP.len()] != ZIP {
            return Ok(None);
        }
        archive.read_exact(&mut header[ZIP.len()..])?;
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (flags, n_name, n_extra) = (short(6), short(26), short(28));
        let n_packed = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
        let mut name = vec![0; usize::from(n_name)];
        archive.read_exact(&mut name)?;
        io::copy(&mut archive.by_ref().take(u64::from(n_extra)), &mut io::sink())?;
        Ok(Some(Self {
            name: String::from_utf8_lossy(&name).to_lowercase(),
            method: short(8),
            is_encrypted: flags & 1 != 0,
            has_no_size: flags & 8 != 0,
            n_packed: n_packed.into(),
        }))
    }

    /// Returns whether the file is neither a list nor a guide: of the system that packed it, or about the archive.
    fn is_other(&self) -> bool {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".txt").unwrap_or(name);
        self.name.starts_with("__macosx/")
            || name.starts_with('.')
            || OTHER_ENDS.iter().any(|it| name.ends_with(it))
            || OTHER_NAMES.contains(&stem)
    }

    /// Reads over the data of the file.
    fn skip(&self, archive: &mut BufReader<impl Read>) -> io::Result<()> {
        if !self.has_no_size {
            let n_bytes = io::copy(&mut archive.take(self.n_packed), &mut io::sink())?;
            return if n_bytes < self.n_packed { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) };
        }
        let mut data = DeflateDecoder::new(&mut *archive).take(ZIP_SKIPPED_BYTES_MAX);
        io::copy(&mut data, &mut io::sink())?;
        // The data descriptor: checksum and two lengths, mostly behind a signature.
        let mut start = [0; 4];
        archive.read_exact(&mut start)?;
        let n_left = if start == *b"PK\x07\x08" { 12 } else { 8 };
        archive.read_exact(&mut [0; 12][..n_left])
    }
}

/// Returns the content of the first list or guide of a zip archive, read from the front, because a download has no end yet.
fn first_file(archive: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut archive = BufReader::new(archive);
    for _ in 0..ZIP_SKIPPED_MAX {
        let Some(file) = ZipFile::read(&mut archive)? else { return refuse("the zip archive has no file") };
        return match file.method {
            _ if file.is_encrypted => refuse("the zip archive has a password"),
            _ if file.name.ends_with('/') && file.n_packed == 0 => continue,
            0 | 8 if file.is_other() && (file.method == 8 || !file.has_no_size) => {
                file.skip(&mut archive)?;
                continue;
            }
            0 if !file.has_no_size => Ok(Box::new(Exactly { reader: archive, left: file.n_packed })),
            8 => Ok(Box::new(DeflateDecoder::new(archive))),
            _ => refuse("the zip archive is compressed in an unsupported way"),
        };
    }
    refuse("the zip archive has no file")
}

/// A part of known length; its end before that is an error.
struct Exactly<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.reader.by_ref().take(self.left).read(buffer)?;
        if n_bytes == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= n_bytes as u64;
        Ok(n_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns one byte at a time, like a slow connection.
    struct Drip(Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n_bytes = buffer.len().min(1);
            self.0.read(&mut buffer[..n_bytes])
        }
    }

    fn unpack(bytes: Vec<u8>, bytes_max: u64) -> Result<String, String> {
        let mut text = String::new();
        let read = Unpacked::new(Drip(Cursor::new(bytes)), bytes_max)
            .and_then(|mut it| it.read_to_string(&mut text));
        read.map(|_| text).map_err(|it| it.to_string())
    }

    #[test]
    fn compression_is_detected_by_the_bytes_and_other_data_is_unchanged() {
        let both = [gzip(b"one "), gzip(b"two")].concat();
        for (bytes, text) in [
            (b"plain".to_vec(), "plain"),
            (b"".to_vec(), ""),
            (b"#".to_vec(), "#"),
            (gzip(b"packed"), "packed"),
            (gzip(b""), ""),
            (both, "one two"),
            (gzip(&gzip(b"packed twice")), "packed twice"),
        ] {
            assert_eq!(unpack(bytes, 100).as_deref(), Ok(text));
        }
    }

    /// Returns an archive with a folder and a file.
    fn zip(name: &str, method: u16, flags: u16, n_packed: usize, packed: &[u8]) -> Vec<u8> {
        let header = |name: &str, method: u16, flags: u16, n_packed: usize| {
            let mut header = ZIP.to_vec();
            for it in [20, flags, method, 0, 0, 0, 0] {
                header.extend_from_slice(&it.to_le_bytes());
            }
            header.extend_from_slice(&u32::try_from(n_packed).unwrap().to_le_bytes());
            header.extend_from_slice(&[0; 4]);
            header.extend_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
            header.extend_from_slice(&3_u16.to_le_bytes());
            [&header, name.as_bytes(), b"abc"].concat()
        };
        let folder = header("lists/", 0, 0, 0);
        [folder, header(name, method, flags, n_packed), packed.to_vec(), b"PK\x01\x02 the directory".to_vec()]
            .concat()
    }

    #[test]
    fn the_first_file_of_a_zip_archive_is_read() {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"packed").unwrap();
        let packed = encoder.finish().unwrap();
        let name = "lists/a.m3u";
        assert_eq!(unpack(zip(name, 8, 8, 0, &packed), 100).as_deref(), Ok("packed"));
        assert_eq!(unpack(zip(name, 8, 0, packed.len(), &packed), 100).as_deref(), Ok("packed"));
        assert_eq!(unpack(zip(name, 0, 0, 5, b"plain"), 100).as_deref(), Ok("plain"));
        assert_eq!(unpack(gzip(&zip(name, 0, 0, 5, b"plain")), 100).as_deref(), Ok("plain"));
        let whole = zip(name, 0, 0, 5, b"plain");
        let end = whole.len() - b"PK\x01\x02 the directory".len();
        for cut in ZIP.len()..end {
            assert!(unpack(whole[..cut].to_vec(), 100).is_err(), "cut at {cut}");
        }
        for (flags, method, reason) in [
            (1, 8, "the zip archive has a password"),
            (8, 0, "the zip archive is compressed in an unsupported way"),
            (0, 14, "the zip archive is compressed in an unsupported way"),
        ] {
            assert_eq!(unpack(zip(name, method, flags, 5, b"plain"), 100), Err(reason.to_owned()));
        }
        assert_eq!(unpack(zip("b/", 0, 0, 0, b""), 100), Err("the zip archive has no file".to_owned()));
    }

    #[test]
    fn other_files_in_front_of_the_list_in_a_zip_archive_are_skipped() {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"packed").unwrap();
        let packed = encoder.finish().unwrap();
        let directory = b"PK\x01\x02 the directory".len();
        let front = |name: &str, method: u16, flags: u16, n_packed: usize, packed: &[u8]| {
            let whole = zip(name, method, flags, n_packed, packed);
            whole[..whole.len() - directory].to_vec()
        };
        let described = |signature: &[u8]| [packed.as_slice(), signature, &[0; 12]].concat();
        let list = zip("lists/a.m3u", 0, 0, 5, b"plain");
        for name in ["__MACOSX/._a.m3u", "README.txt", "a/ReadMe.md", ".DS_Store", "info.nfo", "license"] {
            for other in [
                front(name, 0, 0, 4, b"text"),
                front(name, 8, 0, packed.len(), &packed),
                front(name, 8, 8, 0, &described(b"PK\x07\x08")),
                front(name, 8, 8, 0, &described(b"")),
            ] {
                let archive = [other.as_slice(), &other, &list].concat();
                assert_eq!(unpack(archive, 100).as_deref(), Ok("plain"), "{name}");
            }
        }
        assert_eq!(unpack(zip("channels.txt", 0, 0, 5, b"plain"), 100).as_deref(), Ok("plain"));
        let alone = zip("readme.txt", 0, 0, 5, b"plain");
        assert_eq!(unpack(alone, 100), Err("the zip archive has no file".to_owned()));
    }

    /// `packed`, as xz writes it.
    const XZ_FILE: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3010005706163\
        6b656400000053d0ed84fe0f622500011e06c12fa41d1fb6f37d010000000004595a";
    /// The same for `x`, with a dictionary of 1 GiB.
    const XZ_WITH_LARGE_DICTIONARY: &str = "fd377a585a000004e6d6b44602002101240000005e1fc7f901000078\
        0000000045aeef83f8ee160a00011901a52c81cc1fb6f37d010000000004595a";
    /// 1 MiB of `a`.
    const XZ_BOMB: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3efffff00d95d0030effbbffea3b15ee5\
        f83fb2aa2655f868704170150f8dfd1e4c1b8a42b719f4691871ae66238a8a4d2fa30dd97fa6e38c\
        231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d8f7440cab5f0d6d46e9e5c3\
        7688b79657acb64de1691d6ffb4b88106c42cb883f5c008fd04eaf262894711f3d8f24e1709ea723\
        5fec28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee\
        6fc1704d470cd19111aaad601dbaceb127185c5986e9665258bee976ac59e4e55b0508f9c7daadfc\
        fb522af7e495250000000000cf88d2a7a711ff5c0001f5018080400079977f47b1c467fb02000000\
        0004595a";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            hex.chars().filter_map(|it| it.to_digit(16)).map(|it| u8::try_from(it).unwrap()).collect();
        digits.chunks(2).map(|it| it[0] << 4 | it[1]).collect()
    }

    #[test]
    fn an_xz_file_is_read_with_limited_memory() {
        let file = bytes(XZ_FILE);
        assert_eq!(unpack(file.clone(), 100).as_deref(), Ok("packed"));
        assert_eq!(unpack([file.clone(), file.clone()].concat(), 100).as_deref(), Ok("packedpacked"));
        assert_eq!(unpack(gzip(&file), 100).as_deref(), Ok("packed"));
        for end in XZ.len()..file.len() {
            assert!(unpack(file[..end].to_vec(), 100).is_err(), "cut at {end}");
        }
        for at in XZ.len()..file.len() {
            let mut wrong = file.clone();
            wrong[at] ^= 1;
            assert!(unpack(wrong, 100).is_err(), "changed at {at}");
        }
        assert!(unpack(bytes(XZ_WITH_LARGE_DICTIONARY), 100).is_err());
        assert_eq!(unpack(bytes(XZ_BOMB), 1000), Err("it is longer than 1000 bytes".to_owned()));
        assert_eq!(unpack(bytes(XZ_BOMB), 1 << 20).map(|it| it.len()), Ok(1 << 20));
    }

    #[test]
    fn truncated_compressed_data_is_an_error() {
        let whole = [gzip(b"the first half, "), gzip(b"the second half")].concat();
        let first = gzip(b"the first half, ").len();
        for end in 2..whole.len() {
            // A cut between two members cannot be detected.
            assert_eq!(unpack(whole[..end].to_vec(), 1000).is_ok(), end == first, "cut at {end}");
        }
        let mut wrong = gzip(b"with a checksum");
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert!(unpack(wrong, 1000).is_err());
    }

    #[test]
    fn a_small_file_that_unpacks_to_a_large_one_is_not_read_to_its_end() {
        let bomb = gzip(&vec![b'a'; 1 << 20]);
        assert!(bomb.len() < 2_000);
        assert_eq!(unpack(bomb, 1000), Err("it is longer than 1000 bytes".to_owned()));
        assert_eq!(unpack(gzip(&[b'a'; 1000]), 1000).map(|it| it.len()), Ok(1000));
    }
}
