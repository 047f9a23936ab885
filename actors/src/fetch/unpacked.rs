//! Reads data that may be compressed: unpacked if it is, unchanged otherwise.

use std::io::{self, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Maximum number of nested compressions: a compressed file, sent by a server that compresses.
const LAYERS_MAX: usize = 2;

/// The first two bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

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
            let (is_gzip, whole) = look(reader)?;
            if !is_gzip {
                reader = Box::new(whole);
                break;
            }
            reader = Box::new(MultiGzDecoder::new(whole));
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

/// Returns whether the data is gzip, and a reader that starts with the inspected bytes.
fn look<R: Read>(mut reader: R) -> io::Result<(bool, Whole<R>)> {
    let mut start = Vec::with_capacity(GZIP.len());
    reader.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
    Ok((start == GZIP, Cursor::new(start).chain(reader)))
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
