//! One HTTP connection to a provider, owned by the task that reads it.
//!
//! hyper's client connection is polled inside the same future as the body, never spawned: whoever holds
//! this value holds the socket, and nobody else does. Its `Drop` hands socket and permit to the closer,
//! so that every way out (an error, a dropped future, an aborted task, a panic) ends the same.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::Permit;
use crate::closer::{Closer, close_gently};
use crate::dial::{BoxedSocket, Dial, DialAddress};
use crate::error::{Cause, UpstreamError};

/// Longest head of an answer. Providers' heads are short; this bounds what a hostile one can make us keep.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most bytes that hyper reads ahead; also the longest piece of body that it hands out.
const READ_BYTES_MAX: usize = 256 << 10;

/// The connection, in whatever state it is, and the permit to have it.
pub(super) struct Line {
    state: State,
    /// Taken only by `Drop`, and declared after the socket: it never comes back before the socket is gone.
    permit: Option<Box<dyn Permit>>,
    closer: Closer,
}

enum State {
    /// Nothing is open.
    Down,
    /// Connected; no request sent, or the connection is being closed before the next is dialled.
    Raw(BoxedSocket),
    Http(Box<Http>),
}

struct Http {
    // The body first: it holds no socket, and hyper wants its receiver gone before the connection.
    body: Option<Incoming>,
    connection: http1::Connection<TokioIo<BoxedSocket>, Empty<Bytes>>,
    /// The connection has said that it is done and must not be polled again.
    is_done: bool,
    /// Kept to the end: without it hyper takes an idle connection for one to close.
    _sender: http1::SendRequest<Empty<Bytes>>,
}

impl Line {
    pub(super) fn new(permit: Box<dyn Permit>, closer: Closer) -> Self {
        Self { state: State::Down, permit: Some(permit), closer }
    }

    /// Dials; whatever was open before must have been hung up.
    pub(super) async fn dial(
        &mut self,
        dial: &dyn Dial,
        address: &DialAddress,
        timeout: Duration,
    ) -> Result<(), UpstreamError> {
        debug_assert!(matches!(self.state, State::Down), "one socket at a time");
        let count = self.closer.count();
        let socket = dial.dial(address, timeout).await?;
        self.state = State::Raw(count.on(socket));
        Ok(())
    }

    /// Sends the request and waits for the head of the answer; the body is then read with [`Line::read`].
    pub(super) async fn ask(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<()>, UpstreamError> {
        let State::Raw(socket) = std::mem::replace(&mut self.state, State::Down) else {
            return Err(Cause::Connect("not connected".into()).into());
        };
        // The handshake only builds values and never waits, so the socket is never inside a future that
        // somebody could drop.
        let (mut sender, connection) = http1::Builder::new()
            .http09_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .title_case_headers(true)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(READ_BYTES_MAX)
            .handshake(TokioIo::new(socket))
            .await
            .map_err(|error| from_head(&error))?;
        let answer = sender.send_request(request);
        self.state = State::Http(Box::new(Http { body: None, connection, is_done: false, _sender: sender }));
        let State::Http(http) = &mut self.state else { unreachable!("set in the line above") };

        let mut answer = pin!(answer);
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(|error| from_head(&error)));
            }
            let done = http.drive(cx);
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(|error| from_head(&error)));
            }
            match done {
                Poll::Pending => Poll::Pending,
                // Done without an answer: hyper tells the reason through the answer, so this is a bare end.
                Poll::Ready(()) => Poll::Ready(Err(Cause::Ended.into())),
            }
        })
        .await?;
        let (parts, body) = answer.into_parts();
        http.body = Some(body);
        Ok(Response::from_parts(parts, ()))
    }

    /// The next piece of the body; `None` at its end. May be cancelled: nothing is lost.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        poll_fn(|cx| match &mut self.state {
            State::Http(http) => http.poll_read(cx),
            State::Down | State::Raw(_) => Poll::Ready(Ok(None)),
        })
        .await
    }

    /// Closes the connection and keeps the permit, for a redirect: the next hop is dialled only when
    /// this one is gone.
    pub(super) async fn hang_up(&mut self) {
        // Stays in the state while it closes, so that a drop in the middle still finds it.
        if let Some(socket) = self.take_socket() {
            self.state = State::Raw(socket);
        }
        if let State::Raw(socket) = &mut self.state {
            close_gently(socket).await;
        }
        self.state = State::Down;
    }

    fn take_socket(&mut self) -> Option<BoxedSocket> {
        match std::mem::replace(&mut self.state, State::Down) {
            State::Down => None,
            State::Raw(socket) => Some(socket),
            State::Http(http) => Some(http.connection.into_parts().io.into_inner()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        match self.take_socket() {
            Some(socket) => self.closer.close(socket, permit),
            None => drop(permit),
        }
    }
}

impl Http {
    /// Moves bytes between socket and body. Errors reach whoever waits for the answer or the body.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_done {
            return Poll::Ready(());
        }
        // Without hyper's own shutdown: closing is the closer's work.
        let polled = self.connection.poll_without_shutdown(cx);
        self.is_done = polled.is_ready();
        polled.map(|_| ())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        if let Poll::Ready(read) = self.poll_body(cx) {
            return Poll::Ready(read);
        }
        // Asking the body made room; now the connection fills it.
        let done = self.drive(cx);
        match self.poll_body(cx) {
            // A connection that is done leaves nothing to wait for.
            Poll::Pending if done.is_ready() => Poll::Ready(Ok(None)),
            read => read,
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(None)) };
        loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(from_body(&error))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Ok(Some(bytes))),
                    // Trailers and empty pieces say nothing.
                    _ => {}
                },
            }
        }
    }
}

/// Whether the answer has no head that hyper could read, so that one may stand inside the body.
pub(super) fn is_headless(answer: &Response<()>) -> bool {
    answer.version() == Version::HTTP_09
}

/// A failure before the head of the answer was complete.
fn from_head(error: &hyper::Error) -> UpstreamError {
    if let Some(error) = io_inside(error) {
        return UpstreamError::from_read(error);
    }
    let cause = if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        Cause::Reset("closed without an answer".into())
    } else if error.is_parse_too_large() {
        Cause::Protocol("the head is too long".into())
    } else if error.is_parse() {
        Cause::Protocol("the head makes no sense".into())
    } else {
        Cause::Protocol("the answer cannot be read".into())
    };
    cause.into()
}

/// A failure while the body was read.
fn from_body(error: &hyper::Error) -> UpstreamError {
    match io_inside(error) {
        Some(error) => UpstreamError::from_read(error),
        None if error.is_incomplete_message() => Cause::Ended.into(),
        None => Cause::Reset("the body cannot be read".into()).into(),
    }
}

/// The socket's own error, where hyper wraps one. A length or chunk that ends too early is one too.
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
