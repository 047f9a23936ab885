//! The answers with the stream of a channel, and with a file.

use std::io;
use std::ops::Range;
use std::pin::Pin;

use actors::{VodBody, VodFacts};
use bytes::Bytes;
use domain::plan::Redirection;
use domain::source_url::SourceUrl;
use futures_util::stream::poll_fn;
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use parking_lot::Mutex;
use route_frame::route::{Answer, AnswerShape, Content, MediaType, StreamOrRedirect};
use server::accept::LiveBody;
use server::reply::{Refusal, TunerError};
use server::socket::LongBody;
use warp::reply::Response as Reply;

use super::ranges::{RangedFile, describe_stream, unsatisfiable};

/// Disables response buffering in reverse proxies.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A transport stream.
pub(super) struct TransportStream;

impl MediaType for TransportStream {
    const NAME: &'static str = "video/mp2t";
}

/// Creates the response of a stream with this body. The connection closes with the stream, because media servers keep
/// idle connections to tuners open.
pub(super) fn streaming(body: impl warp::Reply) -> StreamOrRedirect<TransportStream> {
    let content = Content::from_reply(body.into_response());
    StreamOrRedirect::Stream(content.with_header(ACCEL_BUFFERING, "no").with_header(CONNECTION, "close"))
}

/// Creates the response of fragments with this body. The connection closes with them, as for a transport stream.
pub(super) fn fragmented(body: impl warp::Reply) -> StreamOrRedirect<TransportStream> {
    let mut reply = body.into_response();
    reply.extensions_mut().insert(LiveBody);
    let content = Content::from_reply(reply)
        .with_header(CONTENT_TYPE, "video/mp4")
        .with_header(ACCEL_BUFFERING, "no")
        .with_header(CONNECTION, "close");
    StreamOrRedirect::Stream(content)
}

/// Redirects to the stream at its provider.
pub(super) fn redirect(url: &SourceUrl) -> Result<StreamOrRedirect<TransportStream>, Refusal> {
    let location = HeaderValue::from_str(url.expose()).map_err(|_| {
        Refusal::unavailable("the URL of the stream is not valid in a Location header")
            .with_tuner_error(TunerError::TuneFailed)
    })?;
    Ok(StreamOrRedirect::Redirect(location))
}

/// A file or a part of it: 200, 206 or 416; or 302 to the provider.
pub(super) struct FileAnswer(Reply);

impl FileAnswer {
    /// Returns the answer with a file of the gateway.
    pub(super) fn from_file(mut reply: Reply) -> Self {
        reply.headers_mut().insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        Self(reply)
    }

    /// A title, or a part of it.
    pub(super) fn from_title(mut reply: Reply, facts: &VodFacts, part: Option<&Range<u64>>) -> Self {
        let VodFacts { content_type, length, ref tag } = *facts;
        let file = RangedFile { media_type: content_type, length, tag: Some(tag), grows: false };
        file.describe(&mut reply, part);
        Self::from_file(reply)
    }

    /// A title that a program reads: a transport stream without length and ranges.
    pub(super) fn stream(body: VodBody) -> Self {
        Self::from_stream(body_reply(body))
    }

    /// The headers of a transport stream without length and ranges.
    pub(super) fn stream_head() -> Self {
        Self::from_stream(Reply::default())
    }

    /// A transport stream without length and ranges.
    pub(super) fn from_bytes(bytes: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        // Not locked: the body has to be a value that threads can share.
        let mut bytes = Mutex::new(Box::pin(bytes));
        let bytes = poll_fn(move |cx| bytes.get_mut().as_mut().poll_next(cx));
        Self::from_stream(warp::Reply::into_response(warp::reply::stream(bytes)))
    }

    /// The answer 416 of a file with this length.
    pub(super) fn unsatisfiable(length: u64) -> Self {
        Self(unsatisfiable(length))
    }

    /// Redirects to the file. The address may contain the credentials of the account, so that only users get it, unless the
    /// stream profile says otherwise.
    pub(super) fn redirect(is_user: bool, to: &Redirection) -> Result<Self, Refusal> {
        if !is_user && !to.without_login {
            let detail = "this title is played directly from its provider, which requires a login";
            return Err(Refusal::unauthorized(detail));
        }
        let location = HeaderValue::from_str(to.url.expose());
        let location = location.map_err(|_| {
            Refusal::status(StatusCode::BAD_GATEWAY)
                .with_detail("the URL of the file is not valid in a Location header")
        })?;
        let mut reply = Reply::default();
        *reply.status_mut() = StatusCode::FOUND;
        reply.headers_mut().insert(LOCATION, location);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        Ok(Self(reply))
    }

    fn from_stream(mut reply: Reply) -> Self {
        describe_stream(&mut reply);
        Self::from_file(reply)
    }
}

/// Returns the reply with the bytes of a title.
pub(super) fn body_reply(body: VodBody) -> Reply {
    let mut reply = warp::Reply::into_response(warp::reply::stream(title_bytes(body)));
    reply.extensions_mut().insert(LongBody);
    reply
}

/// Returns the bytes of a title, with the errors of a stream of bytes.
pub(super) fn title_bytes(mut body: VodBody) -> impl Stream<Item = io::Result<Bytes>> {
    poll_fn(move |cx| Pin::new(&mut body).poll_next(cx)).map(|it| it.map_err(io::Error::other))
}

impl Answer for FileAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::StreamOrRedirect(&["video/*"]);

    fn into_reply(self) -> Reply {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_a_url_that_is_invalid_in_a_header_is_refused() {
        assert!(redirect(&SourceUrl::new("http://a.example/\r\nx: y")).is_err());
        let response = redirect(&SourceUrl::new("http://a.example/1.ts")).unwrap().into_reply();
        assert_eq!(
            (response.status(), &response.headers()["location"]),
            (StatusCode::FOUND, &HeaderValue::from_static("http://a.example/1.ts"))
        );
        assert_eq!(response.headers()["cache-control"], "no-cache, no-store");
    }

    #[test]
    fn only_users_are_redirected_to_a_provider_unless_its_profile_says_otherwise() {
        let url = SourceUrl::new("http://u:p@a.example/movie/1.mkv");
        let [closed, open] =
            [false, true].map(|without_login| Redirection { url: url.clone(), without_login });
        let Err(refusal) = FileAnswer::redirect(false, &closed) else { panic!("it is refused") };
        assert_eq!(refusal.into_response().status(), StatusCode::UNAUTHORIZED);
        for (is_user, to) in [(true, &closed), (true, &open), (false, &open)] {
            let reply = FileAnswer::redirect(is_user, to).unwrap_or_else(|it| panic!("{it}")).into_reply();
            assert_eq!(
                (reply.status(), &reply.headers()["location"]),
                (StatusCode::FOUND, &HeaderValue::from_static("http://u:p@a.example/movie/1.mkv"))
            );
            assert!(reply.headers()["cache-control"].to_str().unwrap().contains("no-store"));
        }
    }
}
