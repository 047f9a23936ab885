//! Executes the decisions of the state machine: requests playlists, keys and segments, one after the other, and passes the
//! bytes of the segments on as they arrive.
//!
//! One future does everything. It moves only while the source is read, so nothing is read ahead of the pump, except by the
//! network.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap};
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info};

use super::client::{HlsAnswer, HlsClient, NamedTarget};
use super::decrypt::Decryptor;
use super::outlet::{Outlet, SegmentStart};
use crate::error::{Cause, UpstreamError};
use crate::hls::{
    HlsMachine, HlsPlaylist, HlsStep, MediaPlaylist, PLAYLIST_BYTES_MAX, SegmentJob, VariantLimits, Variants,
    variant_for_program,
};
use crate::source::http::is_headless;
use crate::source::probe::{GZIP_MAGIC, Probe, Probed};
use crate::ts::table_reader::TableHints;

/// Maximum length of the body of a key; the key itself has 16 bytes.
const KEY_BYTES_MAX: usize = 1 << 10;
/// Number of times that the rest of a segment is requested after its connection broke.
const RESUMES_MAX: u32 = 3;
/// Pause before that.
const RESUME_PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of bytes that are skipped if a server ignores the requested range.
const SKIPPED_BYTES_MAX: u64 = 64 << 20;
/// Number of requests for a playlist in a row that may fail before another variant is tried.
const FAILED_LOADS_MAX: u32 = 3;
/// The same before anything was played.
const FAILED_LOADS_AT_START_MAX: u32 = 2;

/// The first playlist, whose response was recognised as one.
pub(super) struct FirstPlaylist {
    /// The beginning of its text.
    pub(super) early: Vec<Bytes>,
    /// The address of the request.
    pub(super) requested: NamedTarget,
    /// The address after all redirects, which names what the playlist contains.
    pub(super) found: NamedTarget,
}

/// Reads one HLS stream.
pub(super) struct Driver {
    client: HlsClient,
    outlet: Outlet,
    limits: VariantLimits,
    machine: HlsMachine,
    /// Start of the time of the machine.
    began: Instant,
    /// The variants that are not tried yet, and the address of the playlist that names them.
    variants: Variants,
    master: NamedTarget,
    /// The address of the media playlist as it was named, and after redirects.
    named: NamedTarget,
    found: NamedTarget,
    n_failed_loads: u32,
    /// The reason of the last failure.
    last_error: Option<UpstreamError>,
    /// Present until the first payload has arrived.
    probe: Option<Probe>,
}

/// The end of the reading of one segment before its end.
enum SegmentFailure {
    /// A request for the rest may help.
    Broken(UpstreamError),
    /// The rest is not available.
    Lost(UpstreamError),
    /// The whole source has to end.
    Source(UpstreamError),
}

/// A segment while it is read, over one connection or several.
struct Transfer {
    job: SegmentJob,
    place: NamedTarget,
    decryptor: Option<Decryptor>,
    /// Number of bytes of the segment that were received.
    n_received: u64,
    /// Length of the file, once it is known.
    length: Option<u64>,
    has_sent: bool,
}

impl Driver {
    pub(super) fn new(
        client: HlsClient,
        outlet: Outlet,
        limits: VariantLimits,
        hints: TableHints,
        first: &FirstPlaylist,
    ) -> Self {
        Self {
            client,
            outlet,
            limits,
            machine: HlsMachine::new(Duration::ZERO),
            began: Instant::now(),
            variants: Variants::default(),
            master: first.found.clone(),
            named: first.requested.clone(),
            found: first.found.clone(),
            n_failed_loads: 0,
            last_error: None,
            probe: Some(Probe::new(None, hints)),
        }
    }

    /// Runs until the stream ends or fails. Returns the client, with the permit, and the reason.
    pub(super) async fn run(mut self, first: FirstPlaylist) -> (HlsClient, UpstreamError) {
        let Err(error) = self.try_run(first.early).await;
        (self.client, error)
    }

    async fn try_run(&mut self, early: Vec<Bytes>) -> Result<std::convert::Infallible, UpstreamError> {
        let text = self.client.read_all(early, PLAYLIST_BYTES_MAX).await?;
        match parse(&text)? {
            HlsPlaylist::Media(list) => self.loaded(list, Duration::ZERO)?,
            HlsPlaylist::Master(master) => {
                self.client.variant = variant_for_program(&master, self.limits);
                self.variants = Variants::new(master, self.limits);
                if self.variants.is_empty() {
                    let what = "an HLS playlist whose sound is in playlists of its own";
                    return Err(Cause::NeedsProgram(what.into()).into());
                }
                self.next_variant()?;
            }
        }
        loop {
            match self.machine.next(self.now()) {
                HlsStep::Load => self.load().await?,
                HlsStep::Wait(until) => sleep_until(self.began + until).await,
                HlsStep::Key(address) => self.key(address).await?,
                HlsStep::Segment(job) => self.segment(job).await?,
                HlsStep::Ended => return Err(Cause::Ended.into()),
                HlsStep::Silent => {
                    let silence = if self.probe.is_some() { Cause::FirstPacketTimeout } else { Cause::Stall };
                    return Err(self.last_error.take().unwrap_or(silence.into()));
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Requests the playlist again.
    async fn load(&mut self) -> Result<(), UpstreamError> {
        let began = self.now();
        let mut loaded = self.media_playlist(self.found.clone()).await;
        if loaded.is_err() && self.found.target != self.named.target {
            // Addresses of redirects expire. Another cause shows again at the first address.
            debug!("the remembered address of a redirect failed");
            loaded = self.media_playlist(self.named.clone()).await;
        }
        match loaded {
            Ok((list, found)) => {
                self.found = found;
                self.loaded(list, began)
            }
            Err(error) => {
                debug!("a playlist could not be read: {error}");
                self.n_failed_loads += 1;
                self.machine.load_failed(self.now());
                let has_list = self.machine.target().is_some();
                let most = if has_list { FAILED_LOADS_MAX } else { FAILED_LOADS_AT_START_MAX };
                let is_over = self.n_failed_loads >= most || !has_list && error.is_permanent();
                self.failed(error.clone());
                match is_over && (!has_list || !self.variants.is_empty()) {
                    true => self.next_variant(),
                    false => Ok(()),
                }
            }
        }
    }

    async fn media_playlist(
        &mut self,
        from: NamedTarget,
    ) -> Result<(MediaPlaylist, NamedTarget), UpstreamError> {
        let HlsAnswer { response, target, peer } = self.client.get(&from, None).await?;
        self.check(&response).await?;
        let text = self.client.read_all([], PLAYLIST_BYTES_MAX).await?;
        match parse(&text)? {
            HlsPlaylist::Media(list) => Ok((list, NamedTarget { target, named_by: peer })),
            HlsPlaylist::Master(_) => Err(Cause::NotTs("a list of variants inside of another".into()).into()),
        }
    }

    /// Takes over a version of the playlist.
    fn loaded(&mut self, list: MediaPlaylist, began: Duration) -> Result<(), UpstreamError> {
        self.n_failed_loads = 0;
        let n_before = self.machine.n_skipped();
        self.machine.loaded(list, began, self.now());
        if let Some(what) = self.machine.needs_program() {
            return Err(Cause::NeedsProgram(what).into());
        }
        if let Some(target) = self.machine.target() {
            self.outlet.set_target(target);
        }
        let n_skipped = self.machine.n_skipped() - n_before;
        if n_skipped > 0 {
            info!(n_skipped, "segments left the playlist before they could be read");
            self.outlet.count_skipped(self.machine.n_skipped());
        }
        Ok(())
    }

    /// Starts with the next variant.
    ///
    /// # Errors
    /// None is left: the reason why the last one failed.
    fn next_variant(&mut self) -> Result<(), UpstreamError> {
        let Some(variant) = self.variants.take_next() else {
            return Err(self.last_error.take().unwrap_or(Cause::Stall.into()));
        };
        debug!(bits_per_second = variant.bits_per_second, height = ?variant.height, "reading a variant");
        let named = self.master.join(&variant.address)?;
        (self.named, self.found) = (named.clone(), named);
        self.n_failed_loads = 0;
        self.client.variant = Some(variant.position);
        self.machine.change_variant(self.now());
        Ok(())
    }

    async fn key(&mut self, address: String) -> Result<(), UpstreamError> {
        match self.requested_key(&address).await {
            Ok(key) => {
                self.machine.key_loaded(address, key);
                Ok(())
            }
            Err(error) => self.segment_failed(error),
        }
    }

    async fn requested_key(&mut self, address: &str) -> Result<[u8; 16], UpstreamError> {
        let answer = self.client.get(&self.found.join(address)?, None).await?;
        self.check(&answer.response).await?;
        let body = self.client.read_all([], KEY_BYTES_MAX).await?;
        let key = body[..].try_into();
        key.map_err(|_| {
            Cause::Protocol("the key of the segments has another length than 16 bytes".into()).into()
        })
    }

    async fn segment(&mut self, job: SegmentJob) -> Result<(), UpstreamError> {
        let place = match self.found.join(&job.address) {
            Ok(place) => place,
            Err(error) => return self.segment_failed(error),
        };
        let decryptor = job.cipher.map(Decryptor::new);
        let mut transfer = Transfer { job, place, decryptor, n_received: 0, length: None, has_sent: false };
        let mut n_resumes = 0;
        let error = loop {
            match self.transfer(&mut transfer).await {
                Ok(()) => {
                    self.machine.segment_done();
                    self.outlet.count_read();
                    self.last_error = None;
                    return Ok(());
                }
                Err(SegmentFailure::Source(error)) => return Err(error),
                Err(SegmentFailure::Broken(error)) if transfer.n_received > 0 && n_resumes < RESUMES_MAX => {
                    debug!("a segment broke off: {error}");
                    n_resumes += 1;
                    self.client.reset();
                    sleep(RESUME_PAUSE).await;
                }
                Err(SegmentFailure::Broken(error) | SegmentFailure::Lost(error)) => break error,
            }
        };
        self.client.reset();
        if !transfer.has_sent {
            return self.segment_failed(error);
        }
        debug!("the rest of a segment is not available: {error}");
        self.machine.segment_cut();
        self.outlet.count_read();
        self.failed(error);
        Ok(())
    }

    /// Notes that a segment or its key is not available at present.
    fn segment_failed(&mut self, error: UpstreamError) -> Result<(), UpstreamError> {
        debug!("a segment could not be read: {error}");
        let n_before = self.machine.n_skipped();
        let has_variant_failed = self.machine.segment_failed(self.now());
        if self.machine.n_skipped() > n_before {
            info!("a segment was skipped: {error}");
            self.outlet.count_skipped(self.machine.n_skipped());
        }
        self.failed(error);
        if has_variant_failed { self.next_variant() } else { Ok(()) }
    }

    fn failed(&mut self, error: UpstreamError) {
        self.outlet.set_error(error.clone());
        self.last_error = Some(error);
    }

    /// Requests a segment, or what is missing of it, and passes its bytes on.
    async fn transfer(&mut self, it: &mut Transfer) -> Result<(), SegmentFailure> {
        let range = it.job.range;
        let start = range.map_or(0, |it| it.start) + it.n_received;
        let end = range.map(|it| it.start.saturating_add(it.length));
        let part = (start > 0 || end.is_some()).then_some((start, end));
        let answer = self.client.get(&it.place, part).await.map_err(SegmentFailure::Broken)?;
        let response = &answer.response;
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE && it.has_sent && it.length.is_none() {
            // A response without a length broke off exactly at its end.
            self.client.skip_body().await;
            return self.finish(it).await;
        }
        self.check(response).await.map_err(SegmentFailure::Broken)?;
        let body = BodyPosition::from_response(response, start)?;
        if it.length.zip(body.length).is_some_and(|(before, now)| before != now) {
            return Err(SegmentFailure::Lost(Cause::Protocol("the segment has changed".into()).into()));
        }
        it.length = it.length.or(body.length);
        let wanted = end.map(|it| it - start);
        let mut left = body.left.into_iter().chain(wanted).min();
        let mut n_skipped = body.n_skipped;
        while left != Some(0) {
            let Some(mut bytes) = self.client.read().await.map_err(SegmentFailure::Broken)? else { break };
            let skipped = n_skipped.min(bytes.len() as u64);
            n_skipped -= skipped;
            drop(bytes.split_to(skipped as usize));
            if let Some(left) = &mut left {
                bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes.len() as u64;
            }
            if bytes.is_empty() {
                continue;
            }
            it.n_received += bytes.len() as u64;
            let plain = match &mut it.decryptor {
                Some(decryptor) => decryptor.push(bytes),
                None => bytes,
            };
            self.pass_on(it, plain).await?;
        }
        if left.is_some_and(|it| it > 0) || n_skipped > 0 {
            return Err(SegmentFailure::Broken(Cause::Ended.into()));
        }
        if it.n_received == 0 {
            return Err(SegmentFailure::Broken(Cause::Empty.into()));
        }
        self.finish(it).await
    }

    /// Passes on what was held back of a segment.
    async fn finish(&mut self, it: &mut Transfer) -> Result<(), SegmentFailure> {
        match it.decryptor.take() {
            Some(decryptor) => self.pass_on(it, decryptor.finish()).await,
            None => Ok(()),
        }
    }

    async fn pass_on(&mut self, it: &mut Transfer, bytes: Bytes) -> Result<(), SegmentFailure> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(probe) = &mut self.probe {
            match probe.push(&bytes) {
                Ok(Probed::More) => {}
                Ok(Probed::Payload) => {
                    self.client.http.delivers();
                    self.probe = None;
                }
                Ok(other) => {
                    let what = format!("{} instead of a segment", other.description());
                    return Err(SegmentFailure::Source(Cause::NotTs(what).into()));
                }
                Err(cause) => return Err(SegmentFailure::Source(cause.into())),
            }
        }
        let is_first = !std::mem::replace(&mut it.has_sent, true);
        let start = is_first.then_some(SegmentStart { breaks: it.job.breaks });
        self.outlet.send(start, bytes).await;
        Ok(())
    }

    /// Checks the status of a response. The body of an error is read, so that its connection can be used again.
    async fn check(&mut self, response: &Response<()>) -> Result<(), UpstreamError> {
        let status = response.status();
        if matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT) {
            return Err(Cause::Empty.into());
        }
        if !status.is_success() {
            self.client.skip_body().await;
            return Err(Cause::Status(status.as_u16()).into());
        }
        if is_headless(response) {
            return Err(Cause::Protocol("a response without a head".into()).into());
        }
        Ok(())
    }
}

/// The position of a body in its file.
#[derive(Debug, PartialEq, Eq)]
struct BodyPosition {
    /// Bytes in front of the requested position.
    n_skipped: u64,
    /// Bytes from there to the end of the body, if it is known.
    left: Option<u64>,
    /// Length of the file, if it is known.
    length: Option<u64>,
}

impl BodyPosition {
    /// Returns the position of the body of a successful response to a request that begins at the byte `start`.
    fn from_response(response: &Response<()>, start: u64) -> Result<Self, SegmentFailure> {
        let declared = content_length(response.headers());
        let lost = |why: &str| SegmentFailure::Lost(Cause::NotSeekable(why.into()).into());
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let range = response.headers().get(CONTENT_RANGE).and_then(|it| it.to_str().ok());
            // Some servers name no range if it is the one that was requested.
            let Some((first, length)) = range.and_then(content_range) else {
                return Ok(Self { n_skipped: 0, left: declared, length: None });
            };
            let n_skipped = start.checked_sub(first).filter(|it| *it <= SKIPPED_BYTES_MAX);
            let n_skipped = n_skipped.ok_or_else(|| lost("it sends another part than requested"))?;
            return Ok(Self { n_skipped, left: declared.map(|it| it.saturating_sub(n_skipped)), length });
        }
        if start > SKIPPED_BYTES_MAX {
            return Err(lost("it ignores the requested position"));
        }
        Ok(Self { n_skipped: start, left: declared.map(|it| it.saturating_sub(start)), length: declared })
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Parses `Content-Range` into the first byte and the length of the file, if it is known.
fn content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let value = value.trim().trim_start_matches(|it: char| it.is_ascii_alphabetic() || " =:".contains(it));
    let (part, length) = value.split_once('/')?;
    let (first, _) = part.split_once('-')?;
    Some((first.trim().parse().ok()?, length.trim().parse().ok()))
}

/// Reads a playlist, which some servers compress although nobody asked for it.
fn parse(text: &[u8]) -> Result<HlsPlaylist, UpstreamError> {
    let unpacked = text.starts_with(&GZIP_MAGIC).then(|| unpack(text)).transpose()?;
    let text = unpacked.as_deref().unwrap_or(text);
    HlsPlaylist::parse(text).map_err(|error| Cause::Protocol(error.to_string()).into())
}

/// Unpacks a text of limited length.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, UpstreamError> {
    let mut text = Vec::new();
    // One byte more, so that a text that is too long is recognised.
    let read = GzDecoder::new(packed).take(PLAYLIST_BYTES_MAX as u64 + 1).read_to_end(&mut text);
    read.map_err(|_| Cause::Protocol("the compressed playlist is damaged".into()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_body_follows_from_its_head() {
        let check =
            |status: u16, headers: &[(&str, &str)], start: u64, expected: Option<(u64, Option<u64>)>| {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(*name, *value);
                }
                let position = BodyPosition::from_response(&response.body(()).unwrap(), start).ok();
                assert_eq!(position.map(|it| (it.n_skipped, it.left)), expected, "{status} {headers:?}");
            };
        let length = ("content-length", "100");
        check(200, &[length], 0, Some((0, Some(100))));
        check(200, &[], 0, Some((0, None)));
        check(200, &[length], 30, Some((30, Some(70))));
        check(200, &[length], SKIPPED_BYTES_MAX + 1, None);
        check(206, &[length, ("content-range", "bytes 30-129/500")], 30, Some((0, Some(100))));
        check(206, &[length, ("content-range", "bytes=20-119/*")], 30, Some((10, Some(90))));
        check(206, &[length, ("content-range", "bytes 40-139/500")], 30, None);
        check(206, &[length], 30, Some((0, Some(100))));
    }
}
