//! Answers that are long texts: playlists and guides of any number of channels, in bounded memory.
//!
//! A text is written piece by piece, on threads that may block, while the connection sends the pieces before. A text that
//! is short enough is sent whole, with its length.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::Stream;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use media::spawn_blocking;
use route_frame::route::{Answer, AnswerShape, MediaTypes, client_has};
use server::WarpBody;
use server::encoding::accepts_gzip;
use server::reply::Refusal;
use tokio::sync::mpsc;
use warp::Reply as _;
use warp::reply::Response as Reply;

/// Length of a text at which a piece of it is sent, in bytes.
const PIECE_BYTES: usize = 32 << 10;
/// Maximum number of pieces that wait for the connection.
const PIECES_MAX: usize = 2;

/// Writes the next part of a text, such as one entry, and returns whether another one follows.
type WritePart = Box<dyn FnMut(&mut String) -> bool + Send>;

/// How a text is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As the client accepts it.
    Negotiated,
    /// The body is a gzip file: for addresses that end with `.gz`.
    GzipFile,
}

/// The properties of a long text.
pub struct LongTextHead {
    /// One of the media types of the answer, or that of gzip files.
    pub media_type: &'static str,
    /// Name under which browsers save the text. Needs no escapes.
    pub file_name: &'static str,
    /// Entity tag. Without one, the text is always sent.
    pub tag: Option<HeaderValue>,
    pub coding: Coding,
}

/// 200 with a long text, or 304 if the client has it.
pub struct LongText<M> {
    reply: Reply,
    media_types: PhantomData<M>,
}

impl<M: MediaTypes> LongText<M> {
    /// The answer of another node, which is one of the same kind.
    pub fn from_reply(reply: Reply) -> Self {
        Self { reply, media_types: PhantomData }
    }

    /// Writes the text and answers with its first piece.
    pub async fn new(
        request: &HeaderMap,
        head: LongTextHead,
        write: impl FnMut(&mut String) -> bool + Send + 'static,
    ) -> Result<Self, Refusal> {
        let mut reply = if head.tag.as_ref().is_some_and(|it| client_has(request, it)) {
            let mut reply = Reply::default();
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
            reply
        } else {
            let is_compressed = head.coding == Coding::GzipFile || accepts_gzip(request);
            let body = body(Text::new(Box::new(write), is_compressed)).await?;
            let mut reply = body.into_reply();
            let headers = reply.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(head.media_type));
            if is_compressed && head.coding == Coding::Negotiated {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{}\"", head.file_name)) {
                headers.insert(CONTENT_DISPOSITION, name);
            }
            reply
        };
        let headers = reply.headers_mut();
        if let Some(tag) = head.tag {
            headers.insert(ETAG, tag);
        }
        // Clients ask each time; the answer is then short.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding, Authorization, X-API-Key"));
        Ok(Self { reply, media_types: PhantomData })
    }
}

impl<M: MediaTypes> Answer for LongText<M> {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(M::NAMES);

    fn into_reply(self) -> Reply {
        self.reply
    }
}

/// A text that is being written.
struct Text {
    write: WritePart,
    /// The part that is not yet in a piece, uncompressed.
    part: String,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

/// A piece of a text.
struct Piece {
    bytes: Bytes,
    is_last: bool,
}

impl Text {
    fn new(write: WritePart, is_compressed: bool) -> Self {
        let encoder = is_compressed.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        Text { write, part: String::with_capacity(PIECE_BYTES + PIECE_BYTES / 8), encoder }
    }

    /// Writes the next piece, which is empty only if it is the last one.
    fn next(&mut self) -> io::Result<Piece> {
        loop {
            let mut has_more = true;
            while has_more && self.part.len() < PIECE_BYTES {
                has_more = (self.write)(&mut self.part);
            }
            let Some(encoder) = &mut self.encoder else {
                let next = String::with_capacity(if has_more { self.part.capacity() } else { 0 });
                let text = std::mem::replace(&mut self.part, next);
                return Ok(Piece { bytes: text.into(), is_last: !has_more });
            };
            encoder.write_all(self.part.as_bytes())?;
            self.part.clear();
            if !has_more {
                encoder.try_finish()?;
            }
            if !has_more || encoder.get_ref().len() >= PIECE_BYTES {
                let bytes = std::mem::take(encoder.get_mut());
                return Ok(Piece { bytes: bytes.into(), is_last: !has_more });
            }
        }
    }
}

/// Writes the next piece on a thread that may block.
async fn next_piece(mut text: Text) -> io::Result<(Text, Piece)> {
    let written = spawn_blocking(move || {
        let piece = text.next()?;
        Ok((text, piece))
    });
    written.await.map_err(io::Error::other)?
}

/// The body of an answer.
enum Body {
    Whole(Bytes),
    Pieces(Pieces),
}

impl Body {
    fn into_reply(self) -> Reply {
        match self {
            Body::Whole(bytes) => Response::new(WarpBody::from(bytes)),
            Body::Pieces(pieces) => warp::reply::stream(pieces).into_response(),
        }
    }
}

async fn body(text: Text) -> Result<Body, Refusal> {
    let written = next_piece(text).await;
    let (text, first) = written.map_err(|it| Refusal::fault(format_args!("write a long text: {it}")))?;
    if first.is_last {
        return Ok(Body::Whole(first.bytes));
    }
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    actors::spawn(send_pieces(text, first, sender));
    Ok(Body::Pieces(Pieces(Some(receiver))))
}

/// Sends all pieces, until the connection is gone. Nothing is written while the connection does not take pieces.
async fn send_pieces(mut text: Text, first: Piece, pieces: mpsc::Sender<Piece>) {
    let mut piece = first;
    loop {
        let is_last = piece.is_last;
        if pieces.send(piece).await.is_err() || is_last {
            return;
        }
        match next_piece(text).await {
            Ok(next) => (text, piece) = next,
            // The receiver reports the missing end.
            Err(error) => return tracing::error!("failed to write a long text: {error}"),
        }
    }
}

/// The pieces of a text, as a body. `None` after the last one.
struct Pieces(Option<mpsc::Receiver<Piece>>);

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.0 else { return Poll::Ready(None) };
        let piece = ready!(receiver.poll_recv(context));
        if piece.as_ref().is_none_or(|it| it.is_last) {
            self.0 = None;
        }
        // A text that ends early must not look complete.
        Poll::Ready(Some(
            piece.map(|it| it.bytes).ok_or_else(|| io::Error::other("the text is not complete")),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use flate2::read::GzDecoder;
    use futures_util::StreamExt;
    use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
    use http_body_util::BodyExt;

    use super::*;

    /// Media types of the tests.
    struct Plain;

    impl MediaTypes for Plain {
        const NAMES: &'static [&'static str] = &["text/plain"];
    }

    /// Writes `n` lines.
    fn lines(n: usize) -> impl FnMut(&mut String) -> bool + Send + 'static {
        let mut written = 0;
        move |out| {
            *out += &format!("line {written} of {n}\n");
            written += 1;
            written < n
        }
    }

    fn whole(n: usize) -> String {
        let (mut text, mut write) = (String::new(), lines(n));
        while write(&mut text) {}
        text
    }

    fn head(coding: Coding) -> LongTextHead {
        let tag = Some(HeaderValue::from_static("W/\"1\""));
        LongTextHead { media_type: "text/plain", file_name: "a.txt", tag, coding }
    }

    async fn get(accepted: &str, coding: Coding, n: usize) -> (HeaderMap, Vec<u8>) {
        let request = HeaderMap::from_iter([(ACCEPT_ENCODING, accepted.parse().unwrap())]);
        let reply = LongText::<Plain>::new(&request, head(coding), lines(n)).await.unwrap().into_reply();
        let (head, body) = reply.into_parts();
        (head.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn a_long_text_arrives_whole_plain_and_compressed() {
        for n in [1, 100, 50_000] {
            let (headers, bytes) = get("identity", Coding::Negotiated, n).await;
            assert_eq!((headers.get(CONTENT_ENCODING), String::from_utf8(bytes).unwrap()), (None, whole(n)));
            let (headers, bytes) = get("br, gzip;q=0.5", Coding::Negotiated, n).await;
            assert_eq!((&headers[CONTENT_ENCODING], unpacked(&bytes)), (&"gzip".parse().unwrap(), whole(n)));
            let (headers, bytes) = get("identity", Coding::GzipFile, n).await;
            assert_eq!((headers.get(CONTENT_ENCODING), unpacked(&bytes)), (None, whole(n)));
        }
    }

    #[tokio::test]
    async fn a_client_that_has_the_text_gets_304_and_nothing_is_written() {
        let request = HeaderMap::from_iter([(IF_NONE_MATCH, "\"0\", W/\"1\"".parse().unwrap())]);
        let never = |_: &mut String| panic!("written");
        let reply = LongText::<Plain>::new(&request, head(Coding::Negotiated), never).await.unwrap();
        let reply = reply.into_reply();
        assert_eq!(reply.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(reply.headers()[ETAG], "W/\"1\"");
    }

    /// Holds T-mem.4.
    #[tokio::test]
    async fn no_more_is_written_than_fits_the_waiting_pieces() {
        let (counter, mut lines) = (Arc::new(AtomicUsize::new(0)), lines(1 << 30));
        let count = Arc::clone(&counter);
        let write = move |out: &mut String| {
            count.fetch_add(1, Ordering::Relaxed);
            lines(out)
        };
        let body = body(Text::new(Box::new(write), false)).await.unwrap();
        let Body::Pieces(mut pieces) = body else { panic!("it is long") };
        for _ in 0..5 {
            assert!(pieces.next().await.unwrap().unwrap().len() >= PIECE_BYTES);
        }
        // Of at most 25 bytes each; one piece is being written or waits to be sent.
        let n_max = (5 + PIECES_MAX + 2) * (PIECE_BYTES + 25) / 13;
        assert!(counter.load(Ordering::Relaxed) < n_max);
    }

    #[tokio::test]
    async fn a_text_that_fails_ends_with_an_error() {
        let mut n = 0;
        let write = move |out: &mut String| {
            n += 1;
            assert!(n < 10_000, "fails");
            *out += "a long line of a text that fails\n";
            true
        };
        let request = HeaderMap::new();
        let reply = LongText::<Plain>::new(&request, head(Coding::Negotiated), write).await.unwrap();
        assert!(reply.into_reply().into_body().collect().await.is_err());
    }
}
