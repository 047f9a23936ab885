//! One HTTP connection to a provider, owned by the task that reads it.
//!
//! hyper's client connection is polled inside the same future as the body and never spawned, so the owner of
//! this value is the only owner of the socket. `Drop` hands socket and permit to the closer, so that an
//! error, a dropped future, an aborted task and a panic all end the same way.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::TRANSFER_ENCODING;
use http::{Request, Response, Version};
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;

use crate::closer::{Closer, close_gently};
use crate::dial::{AddressCheck, BoxedSocket, Dial, DialAddress, Dialled};
use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;

/// Maximum length of a response head. Providers send short heads; the limit bounds the memory that a hostile
/// one can use.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Room below which a buffer counts as full.
const ROOM_BYTES_MIN: usize = 8 << 10;
/// Maximum number of bytes that are read ahead of a live stream.
const READ_BYTES_MAX: usize = 256 << 10;

/// The connection in any state, and its permit.
pub(super) struct HttpUpstream {
    state: ConnectionState,
    /// Taken only by `Drop`. Declared after the socket, so that it is never returned before the socket is
    /// gone.
    permit: Option<Box<dyn Permit>>,
    closer: Closer,
    /// Maximum number of bytes that hyper reads ahead; also the longest piece of a body that it returns.
    read_bytes_max: usize,
}

enum ConnectionState {
    /// No connection.
    Closed,
    /// Connected without a request, or closing before the next connection.
    Raw(BoxedSocket),
    Http(Box<Http>),
    Plain(Box<Plain>),
}

/// The rest of a body that is nothing but the bytes that the socket has.
///
/// hyper allocates its whole buffer again while a piece of it is in use, so that a short piece that is kept occupies as
/// much memory as a long one. Here pieces share a buffer until it is full.
struct Plain {
    socket: BoxedSocket,
    /// Bytes that hyper has read already, the last part first.
    early: Vec<Bytes>,
    buffer: BytesMut,
    /// The empty buffer that is used next.
    spare: Option<BytesMut>,
}

struct Http {
    // Dropped first: it owns no socket, and hyper expects its receiver to be gone before the connection.
    body: Option<Incoming>,
    connection: http1::Connection<TokioIo<BoxedSocket>, Empty<Bytes>>,
    /// The connection has finished and must not be polled again.
    is_done: bool,
    /// Kept until the end: without a sender hyper closes an idle connection.
    sender: http1::SendRequest<Empty<Bytes>>,
}

impl HttpUpstream {
    pub(super) fn new(permit: Box<dyn Permit>, closer: Closer) -> Self {
        Self { state: ConnectionState::Closed, permit: Some(permit), closer, read_bytes_max: READ_BYTES_MAX }
    }

    /// Takes a socket that is connected already.
    pub(super) fn over(socket: BoxedSocket, permit: Box<dyn Permit>, closer: Closer) -> Self {
        let socket = closer.count_socket().attach(socket);
        let mut upstream = Self::new(permit, closer);
        upstream.state = ConnectionState::Raw(socket);
        upstream
    }

    /// Sets the maximum number of bytes that are read ahead on connections that open from now on.
    pub(super) fn with_read_bytes(mut self, read_bytes_max: usize) -> Self {
        self.read_bytes_max = read_bytes_max;
        self
    }

    /// Records that the connection delivers payload.
    pub(super) fn delivers(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.delivers();
        }
    }

    /// Opens a connection, and returns the address of the server if it has one. An earlier connection must have been
    /// closed.
    pub(super) async fn dial(
        &mut self,
        dial: &dyn Dial,
        address: &DialAddress,
        check: &AddressCheck<'_>,
        timeout: Duration,
    ) -> Result<Option<SocketAddr>, UpstreamError> {
        debug_assert!(matches!(self.state, ConnectionState::Closed), "one socket at a time");
        let count = self.closer.count_socket();
        let Dialled { socket, peer } = dial.dial(address, check, timeout).await?;
        self.state = ConnectionState::Raw(count.attach(socket));
        Ok(peer)
    }

    /// Returns whether the open connection takes another request: the last response was read to its end, and neither side
    /// has asked to close it. The server may still close it before the next request arrives.
    pub(super) async fn can_send_again(&mut self) -> bool {
        let ConnectionState::Http(http) = &mut self.state else { return false };
        poll_fn(|cx| Poll::Ready(http.is_idle(cx))).await
    }

    /// Sends the request over a connection that [`HttpUpstream::can_send_again`] was true for, and waits for the head of the
    /// response.
    pub(super) async fn send_again(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<()>, UpstreamError> {
        match &mut self.state {
            ConnectionState::Http(http) => http.exchange(request).await,
            _ => Err(Cause::Connect("not connected".into()).into()),
        }
    }

    /// Sends the request and waits for the head of the response. The body is then read with
    /// [`HttpUpstream::read`].
    pub(super) async fn send(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<()>, UpstreamError> {
        let ConnectionState::Raw(socket) = std::mem::replace(&mut self.state, ConnectionState::Closed) else {
            return Err(Cause::Connect("not connected".into()).into());
        };
        // The handshake only builds values and never waits, so the socket is never inside a future that could
        // be dropped.
        let (sender, connection) = http1::Builder::new()
            .http09_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .title_case_headers(true)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(self.read_bytes_max)
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| from_head(&error))?;
        self.state = ConnectionState::Http(Box::new(Http { body: None, connection, is_done: false, sender }));
        let ConnectionState::Http(http) = &mut self.state else { unreachable!("set in the line above") };
        http.exchange(request).await
    }

    /// Reads the next piece of the body; `None` at its end. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        if let ConnectionState::Plain(plain) = &mut self.state {
            return plain.read(self.read_bytes_max).await;
        }
        poll_fn(|cx| match &mut self.state {
            ConnectionState::Http(http) => http.poll_read(cx),
            _ => Poll::Ready(Ok(None)),
        })
        .await
    }

    /// Reads the rest of the body from the socket itself, if the head of the response allows it. The caller then has to
    /// know where the body ends.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) fn read_plainly(&mut self, response: &Response<()>) -> Result<(), UpstreamError> {
        if response.headers().contains_key(TRANSFER_ENCODING) {
            return Ok(());
        }
        let http = match std::mem::replace(&mut self.state, ConnectionState::Closed) {
            ConnectionState::Http(http) => http,
            other => {
                self.state = other;
                return Ok(());
            }
        };
        let Http { body, connection, .. } = *http;
        let mut early = Vec::new();
        // Nothing moves while the connection is not polled.
        let drained = body.map_or(Ok(()), |body| drain(body, &mut early));
        let parts = connection.into_parts();
        early.push(parts.read_buf);
        early.reverse();
        let (socket, buffer, spare) = (parts.io.into_inner(), BytesMut::new(), None);
        self.state = ConnectionState::Plain(Box::new(Plain { socket, early, buffer, spare }));
        drained
    }

    /// Gives back an empty buffer of bytes that were read before, so that no other one is allocated.
    pub(super) fn reuse(&mut self, buffer: BytesMut) {
        if let ConnectionState::Plain(plain) = &mut self.state {
            plain.spare = Some(buffer);
        }
    }

    /// Closes the connection and keeps the permit, for a redirect: the next connection is opened only after
    /// this one is gone.
    pub(super) async fn hang_up(&mut self) {
        // The socket stays in `state` while it closes, so that a drop meanwhile finds it.
        if let Some(socket) = self.take_socket() {
            self.state = ConnectionState::Raw(socket);
        }
        if let ConnectionState::Raw(socket) = &mut self.state {
            close_gently(socket).await;
        }
        self.state = ConnectionState::Closed;
    }

    /// Drops the connection, which resets it, and keeps the permit.
    pub(super) fn reset(&mut self) {
        drop(self.take_socket());
    }

    /// Closes the connection and returns the permit, for a program that connects instead.
    pub(super) async fn into_permit(mut self) -> Option<Box<dyn Permit>> {
        self.hang_up().await;
        self.permit.take()
    }

    fn take_socket(&mut self) -> Option<BoxedSocket> {
        match std::mem::replace(&mut self.state, ConnectionState::Closed) {
            ConnectionState::Closed => None,
            ConnectionState::Raw(socket) => Some(socket),
            ConnectionState::Http(http) => Some(http.connection.into_parts().io.into_inner()),
            ConnectionState::Plain(plain) => Some(plain.socket),
        }
    }
}

impl Drop for HttpUpstream {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        match self.take_socket() {
            Some(socket) => self.closer.close(socket, permit),
            None => drop(permit),
        }
    }
}

impl Http {
    /// Sends a request and waits for the head of the response.
    async fn exchange(&mut self, request: Request<Empty<Bytes>>) -> Result<Response<()>, UpstreamError> {
        let mut response = pin!(self.sender.send_request(request));
        let response = poll_fn(|cx| {
            if let Poll::Ready(response) = response.as_mut().poll(cx) {
                return Poll::Ready(response.map_err(|error| from_head(&error)));
            }
            let done = drive(&mut self.connection, &mut self.is_done, cx);
            if let Poll::Ready(response) = response.as_mut().poll(cx) {
                return Poll::Ready(response.map_err(|error| from_head(&error)));
            }
            match done {
                Poll::Pending => Poll::Pending,
                // The connection ended without a response. hyper reports errors through the response future,
                // so this is a plain end.
                Poll::Ready(()) => Poll::Ready(Err(Cause::Ended.into())),
            }
        })
        .await?;
        let (parts, body) = response.into_parts();
        self.body = Some(body);
        Ok(Response::from_parts(parts, ()))
    }

    /// Returns whether the connection waits for the next request.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        let has_ended = self.body.as_ref().is_none_or(Body::is_end_stream);
        has_ended && self.drive(cx).is_pending() && matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())))
    }

    /// Moves bytes between socket and body. Errors are reported to the task that waits for the response or
    /// the body.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        drive(&mut self.connection, &mut self.is_done, cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        if let Poll::Ready(read) = self.poll_body(cx) {
            return Poll::Ready(read);
        }
        // Polling the body freed buffer space; now the connection fills it.
        let done = self.drive(cx);
        match self.poll_body(cx) {
            // After the connection has finished nothing more can arrive.
            Poll::Pending if done.is_ready() => Poll::Ready(Ok(None)),
            read => read,
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(None)) };
        let read = poll_body(body, cx);
        if matches!(read, Poll::Ready(Ok(None))) {
            // It must not be polled again.
            self.body = None;
        }
        read
    }
}

fn drive(
    connection: &mut http1::Connection<TokioIo<BoxedSocket>, Empty<Bytes>>,
    is_done: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if *is_done {
        return Poll::Ready(());
    }
    // Without hyper's own shutdown: the closer shuts the connection down.
    let polled = connection.poll_without_shutdown(cx);
    *is_done = polled.is_ready();
    polled.map(|_| ())
}

impl Plain {
    /// Reads the next bytes, at most `bytes_max`; `None` when the server has closed. Cancel-safe.
    async fn read(&mut self, bytes_max: usize) -> Result<Option<Bytes>, UpstreamError> {
        while let Some(bytes) = self.early.pop() {
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        if self.buffer.capacity() < ROOM_BYTES_MIN {
            let spare = self.spare.take().filter(|it| it.capacity() >= bytes_max);
            self.buffer = spare.unwrap_or_else(|| BytesMut::with_capacity(bytes_max));
        }
        let read = self.socket.read_buf(&mut self.buffer).await;
        let n_bytes = read.map_err(|error| UpstreamError::from_read(&error))?;
        Ok((n_bytes > 0).then(|| self.buffer.split().freeze()))
    }
}

fn poll_body(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
    loop {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(from_body(&error))),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Ok(Some(bytes))),
                // Trailers and empty frames contain no data.
                _ => {}
            },
        }
    }
}

/// Takes what the connection has passed on of a body.
fn drain(mut body: Incoming, into: &mut Vec<Bytes>) -> Result<(), UpstreamError> {
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(bytes)) = poll_body(&mut body, &mut cx)? {
        into.push(bytes);
    }
    Ok(())
}

/// Returns whether the response had no head that hyper could parse, so that the body may start with one.
pub(super) fn is_headless(response: &Response<()>) -> bool {
    response.version() == Version::HTTP_09
}

/// Converts an error that occurred before the head of the response was complete.
fn from_head(error: &hyper::Error) -> UpstreamError {
    if let Some(error) = io_inside(error) {
        return UpstreamError::from_read(error);
    }
    let cause = if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        Cause::Reset("closed without a response".into())
    } else if error.is_parse_too_large() {
        Cause::Protocol("the response head is too long".into())
    } else if error.is_parse() {
        Cause::Protocol("the response head is malformed".into())
    } else {
        Cause::Protocol("the response cannot be parsed".into())
    };
    cause.into()
}

/// Converts an error that occurred while the body was read.
fn from_body(error: &hyper::Error) -> UpstreamError {
    match io_inside(error) {
        Some(error) => UpstreamError::from_read(error),
        None if error.is_incomplete_message() => Cause::Ended.into(),
        None => Cause::Reset("the response body cannot be parsed".into()).into(),
    }
}

/// Returns the I/O error inside a hyper error, if there is one. A body that ends before its length is also an
/// I/O error.
fn io_inside(error: &hyper::Error) -> Option<&std::io::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(it) = source {
        if let Some(error) = it.downcast_ref::<std::io::Error>() {
            return Some(error);
        }
        source = it.source();
    }
    None
}
