//! Requests of one HLS source: one connection at a time, kept for the next request if the server allows it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{CONNECTION, HeaderValue, RANGE};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::debug;

use crate::dial::DialAddress;
use crate::error::{Cause, UpstreamError};
use crate::source::cookies::CookieJar;
use crate::source::http::HttpUpstream;
use crate::source::remote_file::range;
use crate::source::request::{self, OpenRequest};
use crate::source::target::{HttpTarget, location};
use crate::source::upstream::Upstream;

/// Maximum number of bytes of the body of an error or a redirect that are read, to keep the connection.
const UNUSED_BYTES_MAX: usize = 16 << 10;
/// Longest time for that.
const UNUSED_TIMEOUT: Duration = Duration::from_millis(200);

/// Sends requests over one connection at a time.
pub(super) struct HlsClient {
    pub(super) http: HttpUpstream,
    upstream: Upstream,
    request: OpenRequest,
    /// The server that the secrets of the request are meant for.
    first: HttpTarget,
    cookies: CookieJar,
    connected: Option<Connected>,
    /// The position of the variant that a program would play.
    pub(super) variant: Option<u32>,
}

/// The server of the open connection.
struct Connected {
    address: DialAddress,
    peer: Option<SocketAddr>,
}

/// An address and the server that named it, which decides how near it may lead.
#[derive(Clone)]
pub(crate) struct NamedTarget {
    pub(crate) target: HttpTarget,
    pub(crate) named_by: Option<SocketAddr>,
}

/// The response to a request, and where it came from.
pub(super) struct HlsAnswer {
    pub(super) response: Response<()>,
    /// The address after all redirects.
    pub(super) target: HttpTarget,
    pub(super) peer: Option<SocketAddr>,
}

impl NamedTarget {
    /// Resolves an address of a playlist that this one led to.
    pub(super) fn join(&self, address: &str) -> Result<NamedTarget, UpstreamError> {
        let target = self.target.join(address).map_err(|cause| match cause {
            Cause::BadRedirect => Cause::Address("an address in the playlist is not valid".into()),
            other => other,
        })?;
        Ok(Self { target, named_by: self.named_by })
    }
}

impl HlsClient {
    /// Continues with the connection over which the first playlist arrives.
    pub(super) fn new(
        http: HttpUpstream,
        upstream: Upstream,
        request: OpenRequest,
        first: HttpTarget,
        cookies: CookieJar,
    ) -> Self {
        Self { http, upstream, request, first, cookies, connected: None, variant: None }
    }

    /// Returns the longest time without a byte of a response.
    fn patience(&self) -> Duration {
        self.upstream.settings.first_packet_timeout
    }

    /// Requests an address, or a part of it from the first byte of `part` to the byte before its end, and waits for the head
    /// of the first response other than a redirect.
    ///
    /// # Errors
    /// No response in time, or one that leads nowhere. No connection is open then.
    pub(super) async fn get(
        &mut self,
        from: &NamedTarget,
        part: Option<(u64, Option<u64>)>,
    ) -> Result<HlsAnswer, UpstreamError> {
        let deadline = Instant::now() + self.upstream.settings.connect_timeout + self.patience();
        let answer = timeout_at(deadline, self.follow(from, part)).await;
        let answer = answer.unwrap_or_else(|_| Err(Cause::Stall.into()));
        if answer.is_err() {
            self.reset();
        }
        answer
    }

    /// Reads the next bytes of the body; `None` at its end. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let read = timeout(self.patience(), self.http.read()).await;
        read.unwrap_or_else(|_| Err(Cause::Stall.into()))
    }

    /// Reads a body of at most `bytes_max` bytes to its end.
    pub(super) async fn read_all(
        &mut self,
        early: impl IntoIterator<Item = Bytes>,
        bytes_max: usize,
    ) -> Result<BytesMut, UpstreamError> {
        // A server must not delay the end with a byte now and then.
        let deadline = Instant::now() + self.patience() * 2;
        let reading = async {
            let mut body = BytesMut::new();
            for bytes in early {
                body.extend_from_slice(&bytes);
            }
            loop {
                if body.len() > bytes_max {
                    return Err(Cause::Protocol("the response is too long".into()).into());
                }
                match self.read().await? {
                    Some(bytes) => body.extend_from_slice(&bytes),
                    None => return Ok(body),
                }
            }
        };
        let read = timeout_at(deadline, reading).await.unwrap_or_else(|_| Err(Cause::Stall.into()));
        if read.is_err() {
            self.reset();
        }
        read
    }

    /// Reads the rest of a body that nobody needs, if it is short, so that its connection can be used again.
    pub(super) async fn skip_body(&mut self) {
        let skipping = async {
            let mut n_bytes = 0;
            while let Ok(Some(bytes)) = self.http.read().await {
                n_bytes += bytes.len();
                if n_bytes > UNUSED_BYTES_MAX {
                    break;
                }
            }
        };
        // A connection with an unfinished body is closed before the next request.
        let _ = timeout(UNUSED_TIMEOUT, skipping).await;
    }

    /// Drops the connection.
    pub(super) fn reset(&mut self) {
        self.http.reset();
        self.connected = None;
    }

    async fn follow(
        &mut self,
        from: &NamedTarget,
        part: Option<(u64, Option<u64>)>,
    ) -> Result<HlsAnswer, UpstreamError> {
        let NamedTarget { mut target, mut named_by } = from.clone();
        let mut visited = vec![(target.clone(), self.cookies.n_changes())];
        loop {
            let (response, peer) = self.send(&target, named_by, part).await?;
            self.cookies.store(&target, response.headers());
            let Some(location) = location(response.status(), response.headers()) else {
                return Ok(HlsAnswer { response, target, peer });
            };
            let next = (target.join(&location?)?, self.cookies.n_changes());
            if visited.contains(&next) {
                return Err(Cause::RedirectLoop.into());
            }
            if visited.len() > self.upstream.settings.redirects_max {
                return Err(Cause::TooManyRedirects.into());
            }
            self.skip_body().await;
            (target, named_by) = (next.0.clone(), peer);
            visited.push(next);
        }
    }

    /// Sends one request, over the open connection if that leads to the same server and can be used again.
    async fn send(
        &mut self,
        target: &HttpTarget,
        named_by: Option<SocketAddr>,
        part: Option<(u64, Option<u64>)>,
    ) -> Result<(Response<()>, Option<SocketAddr>), UpstreamError> {
        let is_trusted = self.first.may_share_secrets_with(target);
        // Built before dialling, so that an invalid request opens no connection.
        let mut outgoing = request::request(&self.request, target, is_trusted, &self.cookies.pairs(target))?;
        outgoing.headers_mut().insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        if let Some((start, end)) = part {
            outgoing.headers_mut().insert(RANGE, range(start, end));
        }
        let policy = self.request.policy.clone();
        let check = |to| policy.as_ref().map_or(Ok(()), |it| it.check(to, named_by));
        let kept = self.connected.as_ref().filter(|it| it.address == target.address).map(|it| it.peer);
        if let Some(peer) = kept
            && self.http.can_send_again().await
        {
            // Another server may have named the address.
            peer.map_or(Ok(()), check).map_err(Cause::Forbidden)?;
            match self.http.send_again(outgoing.clone()).await {
                Ok(response) => return Ok((response, peer)),
                Err(error) => debug!("a connection was closed before its next request: {error}"),
            }
        }
        // The provider must never see two connections.
        self.connected = None;
        self.http.hang_up().await;
        let Upstream { dial, settings, .. } = &self.upstream;
        let peer = self.http.dial(&**dial, &target.address, &check, settings.connect_timeout).await?;
        self.connected = Some(Connected { address: target.address.clone(), peer });
        Ok((self.http.send(outgoing).await?, peer))
    }
}
