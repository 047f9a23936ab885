//! A file at a provider, such as a film, that is read from any byte on.
//!
//! One connection at a time: the next one opens after the last one is gone. The permit stays with the value. What a
//! provider sends is checked before a byte is passed on: the position, the length, and whether it is a file at all.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
    LAST_MODIFIED, RANGE,
};
use http::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::cookies::CookieJar;
use super::http::{HttpUpstream, is_headless};
use super::probe::playlist_format;
use super::request::{self, OpenRequest, PlaylistFormat};
use super::target::{HttpTarget, location};
use super::upstream::Upstream;
use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;

/// Maximum length of a piece that [`RemoteFile::read`] returns, in bytes.
pub const FILE_PIECE_BYTES_MAX: usize = 64 << 10;
/// Maximum time from the first connection attempt to the head of the response, redirects included. Longer than for live
/// streams, because providers read films from slow disks.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are skipped if a provider ignores the requested position.
const SKIPPED_BYTES_MAX: u64 = 8 << 20;
/// Maximum length of a body whose beginning is read to find out whether it is a playlist of segments.
const PLAYLIST_BYTES_MAX: u64 = 4 << 20;
/// Minimum length of a playlist.
const PLAYLIST_BYTES_MIN: u64 = 16;
/// Number of leading bytes that show it.
const PLAYLIST_HEAD_BYTES: u64 = 256;
/// Maximum length of a validator that is kept.
const VALIDATOR_BYTES_MAX: usize = 256;

/// A file at a provider.
pub struct RemoteFile {
    http: HttpUpstream,
    upstream: Upstream,
    /// The address after all redirects; used first next time.
    place: Option<Place>,
    /// The address that was made for the file; used until it fails.
    made: Option<String>,
    /// Bytes that were read and have not been returned.
    pending: Bytes,
    /// Bytes of the body before the requested position.
    n_skipped: u64,
    /// Bytes of the body that are still to come.
    n_left: u64,
    has_delivered: bool,
}

/// An address that redirects led to.
#[derive(Clone)]
struct Place {
    target: HttpTarget,
    /// The server that named it.
    named_by: Option<SocketAddr>,
    cookies: CookieJar,
}

/// An open part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Length of the whole file.
    pub length: u64,
    /// Strong entity tag or date of the file at this provider, if it sends any.
    pub validator: Option<String>,
    /// Content type as the provider declares it, without parameters and in lower case.
    pub content_type: Option<String>,
    /// Host and port of the final address. Contains no credentials.
    pub place: String,
}

impl RemoteFile {
    /// Creates the value with the permit for its connections; opens none.
    pub fn new(permit: Box<dyn Permit>, upstream: Upstream) -> Self {
        let http = HttpUpstream::new(permit, upstream.closer.clone()).with_read_bytes(FILE_PIECE_BYTES_MAX);
        Self {
            http,
            upstream,
            place: None,
            made: None,
            pending: Bytes::new(),
            n_skipped: 0,
            n_left: 0,
            has_delivered: false,
        }
    }

    /// Opens a connection that begins at the byte `at`, and ends with the byte before `end` if that is given. An earlier
    /// connection must have been closed. Cancelling closes it. An address that has to be made is made again when the one
    /// made before has failed.
    ///
    /// # Errors
    /// The reason why the part is not available. The permit is kept.
    pub async fn open(
        &mut self,
        request: &OpenRequest,
        at: u64,
        end: Option<u64>,
    ) -> Result<FilePart, UpstreamError> {
        let Some(maker) = &request.address_maker else { return self.open_in_time(request, at, end).await };
        if let Some(url) = self.made.clone() {
            let known = OpenRequest { url, ..request.clone() };
            match self.open_in_time(&known, at, end).await {
                Err(error) if *error.cause() != Cause::Status(StatusCode::RANGE_NOT_SATISFIABLE.as_u16()) => {
                    debug!("the address that was made for a file failed: {error}");
                    self.forget_place();
                }
                opened => return opened,
            }
        }
        let made = OpenRequest { url: maker.address().await?, ..request.clone() };
        let opened = self.open_in_time(&made, at, end).await?;
        self.made = Some(made.url);
        Ok(opened)
    }

    async fn open_in_time(
        &mut self,
        request: &OpenRequest,
        at: u64,
        end: Option<u64>,
    ) -> Result<FilePart, UpstreamError> {
        self.reset();
        let deadline = Instant::now() + HEAD_TIMEOUT;
        let opened = timeout_at(deadline, self.open_at(request, at, end)).await;
        opened.unwrap_or_else(|_| Err(Cause::ConnectTimeout.into())).inspect_err(|_| self.reset())
    }

    /// Drops the connection, which resets it, so that the provider sees at once that it is gone. The permit is kept.
    pub fn reset(&mut self) {
        self.http.reset();
        self.pending = Bytes::new();
        (self.n_skipped, self.n_left) = (0, 0);
    }

    /// Forgets where redirects led to and what was made, because the next part is of another file.
    pub fn forget_place(&mut self) {
        (self.place, self.made) = (None, None);
    }

    /// Reads the next bytes, at most [`FILE_PIECE_BYTES_MAX`]; `None` at the end of the part. Cancel-safe.
    ///
    /// # Errors
    /// The connection broke, or ended early.
    pub async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            if !self.pending.is_empty() {
                let n_bytes = self.pending.len().min(FILE_PIECE_BYTES_MAX);
                return Ok(Some(self.pending.split_to(n_bytes)));
            }
            if self.n_left == 0 {
                return Ok(None);
            }
            let Some(bytes) = self.http.read().await? else { return Err(Cause::Ended.into()) };
            self.accept(bytes);
            if !self.has_delivered {
                self.has_delivered = true;
                self.http.delivers();
            }
        }
    }

    /// Gives back an empty buffer of bytes that were read before, so that no other one is allocated for the next ones.
    pub fn reuse(&mut self, buffer: BytesMut) {
        self.http.reuse(buffer);
    }

    /// Keeps the requested ones of the next bytes of the body.
    fn accept(&mut self, mut bytes: Bytes) {
        let n_skipped = self.n_skipped.min(bytes.len() as u64);
        self.n_skipped -= n_skipped;
        let _ = bytes.split_to(n_skipped as usize);
        // A body may be longer than declared.
        bytes.truncate(usize::try_from(self.n_left).unwrap_or(usize::MAX));
        self.n_left -= bytes.len() as u64;
        self.pending = bytes;
    }

    /// Closes the connection and returns the permit, for a program that connects instead.
    pub async fn into_permit(self) -> Option<Box<dyn Permit>> {
        self.http.into_permit().await
    }

    async fn open_at(
        &mut self,
        request: &OpenRequest,
        at: u64,
        end: Option<u64>,
    ) -> Result<FilePart, UpstreamError> {
        if let Some(place) = self.place.clone() {
            match self.follow(request, place, at, end).await {
                Ok(part) => return Ok(part),
                // Addresses of redirects expire. Another cause shows again at the first address.
                Err(error) => {
                    debug!("the remembered address of a redirect failed: {error}");
                    self.place = None;
                    self.http.reset();
                }
            }
        }
        let target = HttpTarget::parse(&request.url)?;
        self.follow(request, Place { target, named_by: None, cookies: CookieJar::default() }, at, end).await
    }

    /// Sends the request to an address and to those that it redirects to.
    async fn follow(
        &mut self,
        request: &OpenRequest,
        mut place: Place,
        at: u64,
        end: Option<u64>,
    ) -> Result<FilePart, UpstreamError> {
        let first = HttpTarget::parse(&request.url)?;
        let settings = self.upstream.settings.clone();
        let mut visited = vec![(place.target.clone(), 0)];
        loop {
            let Place { target, named_by, cookies } = &mut place;
            // Built before dialling, so that an invalid request opens no connection.
            let is_trusted = first.may_share_secrets_with(target);
            let mut outgoing = request::request(request, target, is_trusted, &cookies.pairs(target))?;
            outgoing.headers_mut().insert(RANGE, range(at, end));
            let check = |to| request.policy.as_ref().map_or(Ok(()), |it| it.check(to, *named_by));
            let dial = self.upstream.clone().on_behalf_of(request).dial;
            let is_redirected = *target != first;
            let dialled = self.http.dial(&*dial, &target.address, &check, settings.connect_timeout).await;
            let peer = dialled.map_err(|it| it.behind_redirect(is_redirected))?;
            let response = self.http.send(outgoing).await.map_err(|it| it.behind_redirect(is_redirected))?;
            cookies.store(target, response.headers());
            if let Some(location) = location(response.status(), response.headers()) {
                let next = (target.join(&location?)?, cookies.n_changes());
                if visited.contains(&next) {
                    return Err(Cause::RedirectLoop.into());
                }
                if visited.len() > settings.redirects_max {
                    return Err(Cause::TooManyRedirects.into());
                }
                // The provider must never see two connections.
                self.http.hang_up().await;
                (place.target, place.named_by) = (next.0.clone(), peer);
                visited.push(next);
                continue;
            }
            let is_redirected = place.target != first;
            let address = place.target.address.to_string();
            let head =
                PartHead::from_response(&response, at).map_err(|it| it.behind_redirect(is_redirected))?;
            (self.n_skipped, self.n_left) = (head.n_skipped, head.n_bytes);
            self.http.read_plainly(&response)?;
            // Panels declare playlists as anything; a film is never that short.
            let shows_beginning = head.n_skipped == at && head.n_bytes >= PLAYLIST_BYTES_MIN;
            if shows_beginning && head.length <= PLAYLIST_BYTES_MAX {
                self.check_for_playlist(head.n_bytes.saturating_add(at)).await?;
            }
            self.place = is_redirected.then_some(place);
            return Ok(FilePart {
                length: head.length,
                validator: validator(response.headers()),
                content_type: media_type(response.headers()),
                place: address,
            });
        }
    }
}

impl RemoteFile {
    /// Reads the beginning of a body of this length.
    async fn check_for_playlist(&mut self, n_bytes: u64) -> Result<(), UpstreamError> {
        let mut head = BytesMut::new();
        while (head.len() as u64) < n_bytes.min(PLAYLIST_HEAD_BYTES) {
            let Some(bytes) = self.http.read().await? else { return Err(Cause::Ended.into()) };
            head.extend_from_slice(&bytes);
        }
        if let Some(format) = playlist_format(&head) {
            return Err(Cause::NeedsProgram(format.description().to_owned()).into());
        }
        self.accept(head.freeze());
        Ok(())
    }
}

/// The parts of a response that say what its body is.
#[derive(Debug, PartialEq, Eq)]
struct PartHead {
    length: u64,
    /// Bytes of the body in front of the requested position.
    n_skipped: u64,
    /// Bytes of the body after them.
    n_bytes: u64,
}

impl PartHead {
    fn from_response(response: &Response<()>, at: u64) -> Result<Self, UpstreamError> {
        let (status, headers) = (response.status(), response.headers());
        match status {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => return Err(Cause::Empty.into()),
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
            _ => return Err(Cause::Status(status.as_u16()).into()),
        }
        if is_headless(response) {
            return Err(Cause::NotAFile("a response without a head".into()).into());
        }
        let media_type = media_type(headers);
        if let Some(format) = media_type.as_deref().and_then(PlaylistFormat::from_content_type) {
            return Err(Cause::NeedsProgram(format.description().to_owned()).into());
        }
        if let Some(what) = media_type.as_deref().and_then(other_content) {
            return Err(Cause::NotAFile(what.into()).into());
        }
        let is_encoded = |it: &HeaderValue| !it.as_bytes().eq_ignore_ascii_case(b"identity");
        if headers.get(CONTENT_ENCODING).is_some_and(is_encoded) {
            return Err(Cause::NotSeekable("it compresses the file".into()).into());
        }
        let declared = number(headers, CONTENT_LENGTH.as_str())?;
        let head = if status == StatusCode::PARTIAL_CONTENT {
            let range = headers.get(CONTENT_RANGE).and_then(|it| it.to_str().ok()).and_then(content_range);
            let Some((start, end, length)) = range else {
                return Err(Cause::NotSeekable("it does not say which part it sends".into()).into());
            };
            if start != at {
                return Err(Cause::NotSeekable("it sends another part than requested".into()).into());
            }
            if declared.is_some_and(|it| it != end - start) {
                return Err(Cause::NotSeekable("the length of the part contradicts itself".into()).into());
            }
            Self { length, n_skipped: 0, n_bytes: end - start }
        } else {
            let Some(length) = declared else {
                return Err(Cause::NotSeekable("it does not tell the length of the file".into()).into());
            };
            if at > SKIPPED_BYTES_MAX {
                return Err(Cause::NotSeekable("it ignores the requested position".into()).into());
            }
            if at >= length {
                return Err(Cause::Status(StatusCode::RANGE_NOT_SATISFIABLE.as_u16()).into());
            }
            Self { length, n_skipped: at, n_bytes: length - at }
        };
        if head.n_bytes == 0 { Err(Cause::Empty.into()) } else { Ok(head) }
    }
}

/// Returns the value of `Range`.
pub(super) fn range(at: u64, end: Option<u64>) -> HeaderValue {
    let last = end.map(|it| it.saturating_sub(1).to_string()).unwrap_or_default();
    HeaderValue::try_from(format!("bytes={at}-{last}")).expect("digits are valid in a header")
}

/// Parses `Content-Range` into the first byte, the byte after the last one, and the length of the file.
fn content_range(value: &str) -> Option<(u64, u64, u64)> {
    let value = value.trim();
    let unit = value.get(..5).filter(|it| it.eq_ignore_ascii_case("bytes"))?;
    // Some servers write `bytes=` or `bytes:`.
    let value = value[unit.len()..].trim_start_matches([' ', '=', ':']);
    let (part, length) = value.split_once('/')?;
    let (first, last) = part.split_once('-')?;
    let (start, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let (end, length) = (last.checked_add(1)?, length.trim().parse().ok()?);
    (start < end && end <= length).then_some((start, end, length))
}

/// Returns the number in a header; `None` if the header is missing.
fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, UpstreamError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|it| it.trim().parse().ok());
    let wrong = || Cause::Protocol(format!("the header {name} is not a number"));
    Ok(Some(number.ok_or_else(wrong)?))
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Returns what a body of this content type is if it cannot be a video file.
fn other_content(media_type: &str) -> Option<&'static str> {
    match media_type {
        "text/html" => Some("a web page"),
        "application/json" => Some("JSON"),
        "multipart/byteranges" => Some("a body of several parts"),
        _ => None,
    }
}

/// Returns what identifies the version of a file: a strong entity tag, else the date of its last change.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text =
        |name| headers.get(name)?.to_str().ok().map(str::trim).filter(|it| it.len() <= VALIDATOR_BYTES_MAX);
    let tag = text(ETAG).filter(|it| it.starts_with('"') && it.len() > 2);
    tag.or_else(|| text(LAST_MODIFIED)).filter(|it| !it.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, headers: &[(&str, &str)], at: u64) -> Result<(u64, u64, u64), String> {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let head = PartHead::from_response(&response.body(()).unwrap(), at).map_err(|it| it.to_string())?;
        Ok((head.length, head.n_skipped, head.n_bytes))
    }

    #[test]
    fn the_requested_part_is_accepted() {
        let of = |range: &'static str| [("content-range", range)];
        assert_eq!(head(206, &of("bytes 0-999/1000"), 0), Ok((1000, 0, 1000)));
        assert_eq!(head(206, &of("bytes 500-999/1000"), 500), Ok((1000, 0, 500)));
        // A server may send less than requested.
        assert_eq!(head(206, &of("bytes 500-509/1000"), 500), Ok((1000, 0, 10)));
        assert_eq!(head(200, &[("content-length", "1000")], 0), Ok((1000, 0, 1000)));
        assert_eq!(head(200, &[("content-length", "1000")], 300), Ok((1000, 300, 700)));
    }

    #[test]
    fn a_response_that_could_be_other_bytes_is_refused() {
        let far = SKIPPED_BYTES_MAX + 1;
        for (status, headers, at) in [
            (206, &[("content-range", "bytes 0-999/1000")][..], 500),
            (206, &[("content-range", "bytes 500-999/*")], 500),
            (206, &[("content-range", "bytes 500-1000/1000")], 500),
            (206, &[("content-range", "bytes 500-999/1000"), ("content-length", "7")], 500),
            (206, &[], 500),
            (200, &[], 0),
            (200, &[("content-length", "99999999999")], far),
            (200, &[("content-length", "1000")], 1000),
            (200, &[("content-length", "0")], 0),
            (200, &[("content-length", "1000"), ("content-encoding", "gzip")], 0),
            (200, &[("content-length", "1000"), ("content-type", "text/html; charset=utf-8")], 0),
            (200, &[("content-length", "1000"), ("content-type", "application/x-mpegURL")], 0),
            (416, &[("content-range", "bytes */1000")], 500),
            (204, &[], 0),
            (403, &[], 0),
        ] {
            assert!(head(status, headers, at).is_err(), "{status} {headers:?} at {at}");
        }
    }

    #[test]
    fn only_a_strong_tag_or_a_date_identifies_a_file() {
        let of = |headers: &[(&'static str, &str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            });
            validator(&headers.collect())
        };
        assert_eq!(of(&[("etag", "\"a\""), ("last-modified", "then")]).as_deref(), Some("\"a\""));
        assert_eq!(of(&[("etag", "W/\"a\""), ("last-modified", "then")]).as_deref(), Some("then"));
        assert_eq!(of(&[("etag", "W/\"a\"")]), None);
        assert_eq!(of(&[]), None);
    }
}
