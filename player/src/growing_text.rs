//! Compressed texts that clients read while they are written: the first bytes of a large list are sent before its last
//! entry was read. Clients that come later read the same text from its start.

use std::io::{self, BufWriter, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use futures_util::stream::unfold;
use futures_util::{Stream, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Size of the parts in which text is compressed, in bytes.
const PART_BYTES: usize = 16 << 10;
/// Length at which compressed text becomes a piece for clients, in bytes.
const PIECE_BYTES: usize = 32 << 10;
/// Size of the parts in which a piece is unpacked, in bytes. A part is unpacked in less than a tenth of a millisecond, so
/// that tasks on the same thread need not wait.
const UNPACKED_AT_ONCE: usize = 2 << 10;

/// A text that is compressed, and complete or not yet. Clones share it.
#[derive(Clone)]
pub(crate) struct GrowingText(watch::Receiver<Progress>);

/// The text that was written so far.
#[derive(Default)]
struct Progress {
    pieces: Vec<Bytes>,
    state: State,
    /// One for each MiB. They are returned when no client reads the text any more.
    permits: Vec<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Growing,
    Complete,
    Failed,
}

impl GrowingText {
    /// Returns an empty text and its writer.
    pub(super) fn new() -> (Self, TextWriter) {
        let (sender, progress) = watch::channel(Progress::default());
        (Self(progress), TextWriter(sender))
    }

    /// Waits for the first piece, so that a text that cannot be written is an error before an answer begins. Returns the
    /// length of the compressed text if it is complete.
    pub(super) async fn begin(&self) -> io::Result<Option<usize>> {
        let mut progress = self.0.clone();
        let begun = |it: &Progress| !it.pieces.is_empty() || it.state != State::Growing;
        let now = progress.wait_for(begun).await.map_err(|_| incomplete())?;
        match now.state {
            State::Failed => Err(incomplete()),
            State::Complete => Ok(Some(now.pieces.iter().map(Bytes::len).sum())),
            State::Growing => Ok(None),
        }
    }

    /// Returns the compressed text piece by piece. A text that cannot be completed ends with an error.
    pub(super) fn packed(self) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
        unfold(Some((self.0, 0)), async |reader| {
            let (mut progress, at) = reader?;
            match piece(&mut progress, at).await {
                Ok(piece) => piece.map(|it| (Ok(it), Some((progress, at + 1)))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Returns the text itself piece by piece.
    pub(super) fn unpacked(self) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
        let unpacker =
            Unpacker { progress: self.0, at: 0, packed: Bytes::new(), text: GzDecoder::new(Vec::new()) };
        unfold(Some(unpacker), async |unpacker| {
            let mut unpacker = unpacker?;
            match unpacker.next().await {
                Ok(text) => text.map(|it| (Ok(it), Some(unpacker))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

/// Waits for a piece; `None` after the last one.
async fn piece(progress: &mut watch::Receiver<Progress>, at: usize) -> io::Result<Option<Bytes>> {
    let written = |it: &Progress| it.pieces.len() > at || it.state != State::Growing;
    // The writer is gone only if it panicked, or if the text is complete.
    let now = progress.wait_for(written).await.map_err(|_| incomplete())?;
    match (now.pieces.get(at), now.state) {
        (Some(piece), _) => Ok(Some(piece.clone())),
        (None, State::Complete) => Ok(None),
        (None, _) => Err(incomplete()),
    }
}

fn incomplete() -> io::Error {
    io::Error::other("the text is not complete")
}

/// A text that is unpacked while it is sent.
struct Unpacker {
    progress: watch::Receiver<Progress>,
    /// Number of pieces that were read.
    at: usize,
    /// The rest of the last one.
    packed: Bytes,
    text: GzDecoder<Vec<u8>>,
}

impl Unpacker {
    /// Returns the next part, which is not empty; `None` after the last one.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if self.packed.is_empty() {
                let Some(piece) = piece(&mut self.progress, self.at).await? else { return Ok(None) };
                (self.packed, self.at) = (piece, self.at + 1);
            }
            let part = self.packed.split_to(self.packed.len().min(UNPACKED_AT_ONCE));
            self.text.write_all(&part)?;
            // Moves what was unpacked into the vector.
            self.text.flush()?;
            if !self.text.get_ref().is_empty() {
                return Ok(Some(std::mem::take(self.text.get_mut()).into()));
            }
        }
    }
}

/// The writer's part of a text.
pub(super) struct TextWriter(watch::Sender<Progress>);

impl TextWriter {
    /// Compresses what `write` writes. Blocks. `permit` is called for each MiB.
    ///
    /// # Errors
    /// Returns the error of `write` or of `permit`; clients then get a text that ends early.
    pub(super) fn write(
        self,
        permit: impl Fn() -> io::Result<OwnedSemaphorePermit>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let written = self.write_pieces(&permit, write);
        self.0.send_modify(|it| {
            it.state = if written.is_ok() { State::Complete } else { State::Failed };
        });
        written
    }

    fn write_pieces(
        &self,
        permit: &dyn Fn() -> io::Result<OwnedSemaphorePermit>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let pieces = Pieces { progress: &self.0, permit, piece: Vec::new(), n_bytes: 0, n_permits: 0 };
        let text = PromptText { encoder: GzEncoder::new(pieces, Compression::fast()), is_begun: false };
        let mut parts = BufWriter::with_capacity(PART_BYTES, text);
        write(&mut parts)?;
        // A text of one part needs no early piece.
        parts.get_mut().is_begun = true;
        let text = parts.into_inner().map_err(io::IntoInnerError::into_error)?;
        text.encoder.finish()?.publish();
        Ok(())
    }
}

/// A text whose first part is compressed for itself: the compression otherwise collects some hundred KiB.
struct PromptText<W: Write> {
    encoder: GzEncoder<W>,
    is_begun: bool,
}

impl<W: Write> Write for PromptText<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.encoder.write_all(part)?;
        if !std::mem::replace(&mut self.is_begun, true) {
            self.encoder.flush()?;
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects compressed text into pieces.
struct Pieces<'a> {
    progress: &'a watch::Sender<Progress>,
    permit: &'a dyn Fn() -> io::Result<OwnedSemaphorePermit>,
    piece: Vec<u8>,
    n_bytes: usize,
    n_permits: usize,
}

impl Pieces<'_> {
    fn publish(&mut self) {
        if !self.piece.is_empty() {
            let piece = Bytes::from(std::mem::take(&mut self.piece).into_boxed_slice());
            self.progress.send_modify(|it| it.pieces.push(piece));
        }
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, packed: &[u8]) -> io::Result<usize> {
        self.n_bytes += packed.len();
        while self.n_bytes > self.n_permits << 20 {
            let permit = (self.permit)()?;
            self.progress.send_modify(|it| it.permits.push(permit));
            self.n_permits += 1;
        }
        self.piece.extend_from_slice(packed);
        if self.piece.len() >= PIECE_BYTES {
            self.publish();
        }
        Ok(packed.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.publish();
        Ok(())
    }
}

/// Collects a stream of pieces.
///
/// # Errors
/// Returns an error if the text cannot be completed.
pub(super) async fn whole(pieces: impl Stream<Item = io::Result<Bytes>>) -> io::Result<Bytes> {
    let add = async |mut text: Vec<u8>, piece: Bytes| {
        text.extend_from_slice(&piece);
        Ok(text)
    };
    pieces.try_fold(Vec::new(), add).await.map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use futures_util::StreamExt;
    use tokio::sync::Semaphore;

    use super::*;

    /// Generous: a machine may be busy.
    const WAIT_MAX: Duration = Duration::from_secs(60);

    fn permits(n: usize) -> impl Fn() -> io::Result<OwnedSemaphorePermit> {
        let permits = Arc::new(Semaphore::new(n));
        move || Arc::clone(&permits).try_acquire_owned().map_err(io::Error::other)
    }

    /// A line that does not compress well.
    fn line(n: u64) -> String {
        format!("{:x}\n", u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_piece_arrives_before_the_text_is_complete() {
        for is_packed in [true, false] {
            let (text, writer) = GrowingText::new();
            let (go_on, wait) = mpsc::channel();
            let writing = tokio::task::spawn_blocking(move || {
                writer.write(permits(9), |out| {
                    (0..4_000).try_for_each(|n| out.write_all(line(n).as_bytes()))?;
                    // Fails if nobody got a piece.
                    wait.recv_timeout(WAIT_MAX).map_err(io::Error::other)?;
                    (4_000..9_000).try_for_each(|n| out.write_all(line(n).as_bytes()))
                })
            });
            assert_eq!(text.begin().await.unwrap(), None);
            let later = text.clone();
            let pieces = if is_packed { text.packed().left_stream() } else { text.unpacked().right_stream() };
            let mut pieces = std::pin::pin!(pieces);
            let first = pieces.next().await.unwrap().unwrap();
            assert!(!first.is_empty());
            go_on.send(()).unwrap();
            let rest = whole(pieces).await.unwrap();
            writing.await.unwrap().unwrap();
            let expected: String = (0..9_000).map(line).collect();
            let same = whole(later.clone().unpacked()).await.unwrap();
            assert_eq!(same, expected.as_bytes());
            let packed = whole(later.clone().packed()).await.unwrap();
            assert_eq!(later.begin().await.unwrap(), Some(packed.len()));
            let got = [first, rest].concat();
            assert_eq!(got, if is_packed { &packed[..] } else { expected.as_bytes() });
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_text_that_fails_ends_with_an_error_and_never_looks_complete() {
        let fails_at = async |n_good: u64, n_permits: usize| {
            let (text, writer) = GrowingText::new();
            let writing = tokio::task::spawn_blocking(move || {
                writer.write(permits(n_permits), |out| {
                    (0..n_good).try_for_each(|n| out.write_all(line(n).as_bytes()))?;
                    Err(io::Error::other("fails"))
                })
            });
            assert!(writing.await.unwrap().is_err());
            let begun = text.begin().await;
            let ends = [whole(text.clone().packed()).await, whole(text.unpacked()).await];
            assert!(ends.iter().all(Result::is_err));
            begun
        };
        assert!(fails_at(1, 1).await.is_err());
        assert!(fails_at(20_000, 1).await.is_err());
        assert!(fails_at(20_000, 0).await.is_err());
        let (text, writer) = GrowingText::new();
        drop(writer);
        assert!(text.begin().await.is_err() && whole(text.packed()).await.is_err(), "the writer is gone");
    }
}
