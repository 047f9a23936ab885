//! Errors of upstreams: the cause, the responsible side, the scope, and whether another attempt can help.
//!
//! No text in this module contains an address, because provider URLs contain user names and passwords.

use std::{fmt, io};

use crate::certificate::RefusedCertificate;

/// The error of an attempt to play from an upstream.
///
/// `Display` completes "failed to play from the upstream: …" and contains no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct UpstreamError {
    cause: Cause,
    /// The server that failed is one that the first server redirected to.
    is_behind_redirect: bool,
}

/// The cause of an upstream error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The address is invalid. The text contains the reason without the address.
    Address(String),
    /// The address may not be connected to. The text contains the reason without the address.
    Forbidden(String),
    /// The host name has no address.
    Dns,
    /// The connection was refused or broke before the request was sent.
    Connect(String),
    /// No connection within `connect_timeout`, which covers name resolution and TLS.
    ConnectTimeout,
    /// The TLS handshake failed, for example because of the certificate or the protocol version, or because the
    /// provider does not use TLS.
    Tls(String),
    /// The certificate of the provider is not accepted.
    Certificate(Box<RefusedCertificate>),
    /// The proxy is out of reach, refuses the connection or does not speak its protocol. The text contains the reason.
    Proxy(String),
    /// The proxy requires a login, or refuses the one of the account.
    ProxyLogin,
    /// The portal refuses the device, or gave no link. The text contains the reason without an address.
    Portal(String),
    /// The proxy cannot reach the provider. The text contains its reason.
    ProxyTarget(String),
    /// The provider answered with a status other than success.
    Status(u16),
    /// A network tuner, or a program that acts as one, answered with this status and this code in `X-HDHomeRun-Error`.
    Tuner {
        /// The status.
        status: u16,
        /// 800 to 899; 805 says that all tuners are in use.
        code: u16,
    },
    /// The provider refused with this status, and its answer says that the region is the reason.
    Region(u16),
    /// More redirects than the limit.
    TooManyRedirects,
    /// A redirect to an address that was already visited.
    RedirectLoop,
    /// A redirect without a usable `Location`.
    BadRedirect,
    /// The response is not HTTP, not even with lenient parsing.
    Protocol(String),
    /// The body is not a transport stream. The text names its type ("text/html", "an HLS playlist").
    NotTs(String),
    /// The body is not a video file. The text names what it is ("a web page").
    NotAFile(String),
    /// The file cannot be read from the requested byte on. The text contains the reason.
    NotSeekable(String),
    /// A successful response without a body.
    Empty,
    /// No payload packet within `first_packet_timeout` after the first connection attempt started.
    FirstPacketTimeout,
    /// No payload packet for `stall_timeout` while playing.
    Stall,
    /// No packet of the programme was readable in time, because all were scrambled.
    Scrambled,
    /// The picture ended, or never came, while the rest of the programme goes on.
    PictureLost,
    /// The same of all sound.
    SoundLost,
    /// The picture stands still: the same access units come again and again.
    PictureStill,
    /// No programme can be found in the tables of the stream, although video or audio arrives. The text contains the
    /// reason.
    NoTables(String),
    /// The stream ended. A live stream has no end.
    Ended,
    /// The connection broke while the stream was being read.
    Reset(String),
    /// No packet boundary was found for longer than `sync_lost_timeout`.
    SyncLost,
    /// The programme clock fell behind the wall clock.
    ClockBehind,
    /// The address scheme is not supported.
    Unsupported(String),
    /// The body is a playlist of segments, and no program that reads it is installed. The text names its format.
    NeedsProgram(String),
    /// A file could not be opened or read.
    File(String),
    /// A program could not be started. The text contains its name and the reason.
    Program(String),
    /// A program ended. The text contains its exit status and its last log line, without secrets.
    Exited(String),
    /// This node lost contact with the cluster, so it has to close its connections before others may open them.
    Revoked,
    /// The gateway panicked while it opened or read the source.
    Panicked,
}

/// The side that is responsible for an upstream error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The provider, or the network between the gateway and the provider.
    Upstream,
    /// The gateway: a setting, a file, or a defect.
    Gateway,
}

/// The part of a plan that an error affects, so that the affected candidates are tried last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The stream: the error occurs with every account profile.
    Stream,
    /// Only this candidate: the provider refused the account, and another profile may be accepted.
    Candidate,
}

/// The kind of a loss, for the next attempt at the same stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// The response ended, the connection broke or the program exited.
    Ended,
    /// A source that had sent stopped sending.
    Silent,
    /// Anything else.
    Other,
}

impl UpstreamError {
    /// Creates an error with this cause.
    pub fn new(cause: Cause) -> Self {
        Self { cause, is_behind_redirect: false }
    }

    /// Notes whether the server that failed is one that the first server redirected to.
    #[must_use]
    pub(crate) fn behind_redirect(self, is_behind_redirect: bool) -> Self {
        Self { is_behind_redirect, ..self }
    }

    /// Returns whether the first server answered, with a redirect to the one that failed.
    pub fn is_behind_redirect(&self) -> bool {
        self.is_behind_redirect
    }

    /// Returns the cause.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Returns the responsible side.
    pub fn side(&self) -> Side {
        match self.cause {
            Cause::Address(_)
            | Cause::Forbidden(_)
            | Cause::ProxyLogin
            | Cause::Unsupported(_)
            | Cause::NeedsProgram(_)
            | Cause::File(_)
            | Cause::Program(_)
            | Cause::Revoked
            | Cause::Panicked => Side::Gateway,
            _ => Side::Upstream,
        }
    }

    /// Returns the scope.
    pub fn scope(&self) -> Scope {
        match self.cause {
            Cause::Status(status) if is_account_refusal(status) => Scope::Candidate,
            Cause::Region(_) | Cause::Portal(_) => Scope::Candidate,
            Cause::Tuner { .. } if self.is_full_now() => Scope::Candidate,
            _ => Scope::Stream,
        }
    }

    /// Returns the kind of loss that this is of a source that played.
    pub fn kind(&self) -> LossKind {
        match self.cause {
            Cause::Ended | Cause::Reset(_) | Cause::Exited(_) => LossKind::Ended,
            Cause::Stall => LossKind::Silent,
            _ => LossKind::Other,
        }
    }

    /// Returns whether the error can mean that the account has too many connections.
    ///
    /// 429 (Too Many Requests), 509 (Bandwidth Limit Exceeded) and the unregistered 456 to 466 are what panels answer
    /// for a full account; many answer 401, 403 or 423 (Locked) in the same case. Missing here: 402 (Payment Required)
    /// and 407 (Proxy Authentication Required), which other connections do not cause, and 503, which providers answer
    /// while they are overloaded. A network tuner that says so means it; its other codes have other causes.
    pub fn can_be_connection_limit(&self) -> bool {
        match self.cause {
            Cause::Status(status) => is_account_refusal(status) && !matches!(status, 402 | 407 | 503),
            _ => self.is_full_now(),
        }
    }

    /// Returns whether the provider says that all its connections are in use now. Others may use them too, so this shows
    /// nothing about later.
    pub fn is_full_now(&self) -> bool {
        self.cause == Cause::Tuner { status: 503, code: 805 }
    }

    /// Returns the status of the response, if it is the cause.
    pub fn status(&self) -> Option<u16> {
        match self.cause {
            Cause::Status(status) | Cause::Region(status) | Cause::Tuner { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns whether an immediate retry of the same candidate can succeed.
    ///
    /// False for timeouts: another one of the same length would keep the viewer from the next candidate. Whether
    /// waiting can help is another question, see [`Self::is_permanent`].
    pub fn can_retry(&self) -> bool {
        match self.cause {
            Cause::Dns
            | Cause::Connect(_)
            | Cause::Proxy(_)
            | Cause::ProxyTarget(_)
            | Cause::Ended
            | Cause::Reset(_)
            | Cause::SyncLost
            | Cause::Exited(_) => true,
            Cause::Status(status) => status >= 500,
            Cause::Tuner { status, .. } => status >= 500 && !self.is_full_now() && !self.is_permanent(),
            _ => false,
        }
    }

    /// Returns whether waiting cannot help, because the cause lasts until somebody changes something: the address, the
    /// account, the provider's offer or a setting of the gateway.
    ///
    /// Such an error ends a start at once if every candidate has one. Any other error ends only the attempt.
    pub fn is_permanent(&self) -> bool {
        match self.cause {
            Cause::Address(_)
            | Cause::Forbidden(_)
            | Cause::Tls(_)
            | Cause::Certificate(_)
            | Cause::ProxyLogin
            | Cause::Region(_)
            | Cause::TooManyRedirects
            | Cause::RedirectLoop
            | Cause::BadRedirect
            | Cause::Protocol(_)
            | Cause::NotTs(_)
            | Cause::NotAFile(_)
            | Cause::NotSeekable(_)
            | Cause::Unsupported(_)
            | Cause::NeedsProgram(_)
            | Cause::File(_)
            | Cause::Program(_)
            | Cause::Panicked => true,
            // Request Timeout, Too Early, Too Many Requests.
            Cause::Status(status) => status < 500 && !matches!(status, 408 | 425 | 429),
            // Unknown channel, and content protection.
            Cause::Tuner { status, code } => status < 500 || matches!(code, 801 | 811),
            Cause::Dns
            | Cause::Connect(_)
            | Cause::ConnectTimeout
            | Cause::Proxy(_)
            | Cause::ProxyTarget(_)
            | Cause::Portal(_)
            | Cause::Empty
            | Cause::FirstPacketTimeout
            | Cause::Stall
            | Cause::Scrambled
            | Cause::PictureLost
            | Cause::SoundLost
            | Cause::PictureStill
            | Cause::NoTables(_)
            | Cause::Ended
            | Cause::Reset(_)
            | Cause::SyncLost
            | Cause::ClockBehind
            | Cause::Revoked
            | Cause::Exited(_) => false,
        }
    }

    /// Returns a label for metrics and events, from a fixed set.
    pub fn label(&self) -> &'static str {
        match self.cause {
            Cause::Address(_) => "address",
            Cause::Forbidden(_) => "forbidden_address",
            Cause::Dns => "dns",
            Cause::Connect(_) => "connect",
            Cause::ConnectTimeout => "connect_timeout",
            Cause::Tls(_) => "tls",
            Cause::Certificate(_) => "certificate",
            Cause::Proxy(_) => "proxy",
            Cause::ProxyLogin => "proxy_login",
            Cause::ProxyTarget(_) => "proxy_target",
            Cause::Portal(_) => "portal",
            Cause::Status(_) => "status",
            Cause::Tuner { code: 805, .. } => "all_tuners_in_use",
            Cause::Tuner { .. } => "tuner",
            Cause::Region(_) => "region",
            Cause::TooManyRedirects => "too_many_redirects",
            Cause::RedirectLoop => "redirect_loop",
            Cause::BadRedirect => "bad_redirect",
            Cause::Protocol(_) => "protocol",
            Cause::NotTs(_) => "not_ts",
            Cause::NotAFile(_) => "not_a_file",
            Cause::NotSeekable(_) => "not_seekable",
            Cause::Empty => "empty",
            Cause::FirstPacketTimeout => "first_packet_timeout",
            Cause::Stall => "stall",
            Cause::Scrambled => "scrambled",
            Cause::PictureLost => "picture_lost",
            Cause::SoundLost => "sound_lost",
            Cause::PictureStill => "picture_still",
            Cause::NoTables(_) => "no_tables",
            Cause::Ended => "ended",
            Cause::Reset(_) => "reset",
            Cause::SyncLost => "sync_lost",
            Cause::ClockBehind => "clock_behind",
            Cause::Unsupported(_) => "unsupported",
            Cause::NeedsProgram(_) => "needs_program",
            Cause::File(_) => "file",
            Cause::Program(_) => "program",
            Cause::Exited(_) => "exited",
            Cause::Revoked => "revoked",
            Cause::Panicked => "panicked",
        }
    }

    /// Converts an I/O error that occurred while a stream was read.
    pub(crate) fn from_read(error: &io::Error) -> Self {
        Self::new(match error.kind() {
            // A body that ends before its announced length counts as the end of the stream.
            io::ErrorKind::UnexpectedEof => Cause::Ended,
            kind => Cause::Reset(kind.to_string()),
        })
    }
}

impl From<Cause> for UpstreamError {
    fn from(cause: Cause) -> Self {
        Self::new(cause)
    }
}

/// Returns whether this status says that the provider refuses the caller, for a reason that it does not name.
pub(crate) fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 423 | 429 | 451 | 456..=466 | 509)
}

/// Returns whether providers use this status for a refused login or for too many connections.
///
/// Statuses 456 to 466 are not registered; panels use them for blocked, expired and full accounts.
fn is_account_refusal(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 407 | 423 | 429 | 456 | 458 | 461 | 462 | 463 | 466 | 503 | 509)
}

/// Returns what a code of a network tuner means, in parentheses.
fn tuner_error(code: u16) -> &'static str {
    match code {
        801 => " (unknown channel)",
        803 => " (system busy)",
        804 => " (tuner in use)",
        806 => " (tune failed)",
        807 => " (no video data)",
        811 => " (content protection required)",
        _ => "",
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Address(why) => write!(f, "invalid address: {why}"),
            Cause::Forbidden(why) => write!(f, "the address is not allowed: {why}"),
            Cause::Dns => f.write_str("the host name has no address"),
            Cause::Connect(why) => write!(f, "connection failed: {why}"),
            Cause::ConnectTimeout => f.write_str("connection timed out"),
            Cause::Tls(why) => write!(f, "TLS handshake failed: {why}"),
            Cause::Certificate(refused) => write!(f, "{refused}"),
            Cause::Proxy(why) => write!(f, "the proxy failed: {why}"),
            Cause::ProxyLogin => f.write_str("the proxy refuses the login of the account"),
            Cause::Portal(why) => f.write_str(why),
            Cause::ProxyTarget(why) => write!(f, "the proxy cannot reach the provider: {why}"),
            Cause::Status(status) if is_refusal(*status) => write!(
                f,
                "refused by the provider (subscription, region, user agent or another device), status {status}"
            ),
            Cause::Status(status) => write!(f, "the provider answered with status {status}"),
            Cause::Tuner { code: 805, .. } => f.write_str("all tuners of the device are in use"),
            Cause::Tuner { code, .. } => write!(f, "the device answered {code}{}", tuner_error(*code)),
            Cause::Region(status) => write!(f, "refused by the provider (region), status {status}"),
            Cause::TooManyRedirects => f.write_str("too many redirects"),
            Cause::RedirectLoop => f.write_str("redirect loop"),
            Cause::BadRedirect => f.write_str("redirect without a valid location"),
            Cause::Protocol(why) => write!(f, "the response is not HTTP: {why}"),
            Cause::NotTs(what) if what == "text/html" => f.write_str(
                "expected a transport stream, got a web page (text/html); the stream profile Streamlink plays pages of video sites",
            ),
            Cause::NotTs(what) => write!(f, "expected a transport stream, got {what}"),
            Cause::NotAFile(what) => write!(f, "expected a video file, got {what}"),
            Cause::NotSeekable(why) => write!(f, "the provider cannot send a part of the file: {why}"),
            Cause::Empty => f.write_str("the response was empty"),
            Cause::FirstPacketTimeout => f.write_str("no video or audio in time"),
            Cause::Stall => f.write_str("video and audio stopped"),
            Cause::Scrambled => f.write_str("the stream is scrambled and cannot be played"),
            Cause::PictureLost => f.write_str("picture lost, while the rest of the stream goes on"),
            Cause::SoundLost => f.write_str("sound lost, while the rest of the stream goes on"),
            Cause::PictureStill => f.write_str("the picture stands still"),
            Cause::NoTables(why) => f.write_str(why),
            Cause::Ended => f.write_str("the stream ended"),
            Cause::Reset(why) => write!(f, "the connection broke: {why}"),
            Cause::SyncLost => f.write_str("the transport stream lost its packet synchronisation"),
            Cause::ClockBehind => f.write_str("the stream is too slow"),
            Cause::Unsupported(what) => write!(f, "{what} is not supported"),
            Cause::NeedsProgram(what) => write!(f, "{what} needs ffmpeg, which is not installed"),
            Cause::File(why) => write!(f, "the file cannot be read: {why}"),
            Cause::Program(why) => write!(f, "the program cannot be started: {why}"),
            Cause::Exited(how) => write!(f, "the program ended {how}"),
            Cause::Revoked => f.write_str("this node has lost contact with the cluster"),
            Cause::Panicked => f.write_str("an internal error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_refusal_affects_the_candidate_and_other_errors_the_stream() {
        for status in [401, 403, 429, 458, 503, 509] {
            assert_eq!(UpstreamError::new(Cause::Status(status)).scope(), Scope::Candidate, "{status}");
        }
        for cause in [
            Cause::Status(404),
            Cause::Status(410),
            Cause::Status(500),
            Cause::NotTs("text/html".into()),
            Cause::Stall,
            Cause::Empty,
            Cause::Tls("certificate expired".into()),
        ] {
            assert_eq!(UpstreamError::new(cause.clone()).scope(), Scope::Stream, "{cause}");
        }
    }

    #[test]
    fn a_refused_login_and_too_many_requests_can_mean_a_full_account() {
        for status in [401, 403, 423, 429, 456, 458, 461, 462, 463, 466, 509] {
            assert!(UpstreamError::new(Cause::Status(status)).can_be_connection_limit(), "{status}");
        }
        for status in [400, 402, 404, 407, 408, 410, 451, 500, 502, 503] {
            assert!(!UpstreamError::new(Cause::Status(status)).can_be_connection_limit(), "{status}");
        }
        assert!(!UpstreamError::new(Cause::Ended).can_be_connection_limit());
    }

    #[test]
    fn only_a_tuner_that_says_that_all_are_in_use_means_full_now() {
        for (status, code, is_full_now, can_retry, is_permanent) in [
            (503, 805, true, false, false),
            (403, 805, false, false, true),
            (503, 801, false, false, true),
            (503, 803, false, true, false),
            (503, 804, false, true, false),
            (503, 806, false, true, false),
            (503, 807, false, true, false),
            (503, 811, false, false, true),
            (404, 801, false, false, true),
        ] {
            let error = UpstreamError::new(Cause::Tuner { status, code });
            let found = (error.is_full_now(), error.can_retry(), error.is_permanent());
            assert_eq!(found, (is_full_now, can_retry, is_permanent), "{status} {code}");
            assert_eq!(error.can_be_connection_limit(), is_full_now, "{status} {code}");
            assert_eq!(error.status(), Some(status));
        }
    }

    #[test]
    fn a_refusal_names_possible_reasons_and_the_region_alone_only_if_the_provider_did() {
        let reasons = "(subscription, region, user agent or another device)";
        for status in [401, 402, 403, 423, 429, 456, 458, 466, 509] {
            let text = UpstreamError::new(Cause::Status(status)).to_string();
            assert_eq!(text, format!("refused by the provider {reasons}, status {status}"));
        }
        for status in [404, 410, 500, 503] {
            let text = UpstreamError::new(Cause::Status(status)).to_string();
            assert_eq!(text, format!("the provider answered with status {status}"));
        }
        let region = UpstreamError::new(Cause::Region(403));
        assert_eq!(region.to_string(), "refused by the provider (region), status 403");
        assert!(!region.can_be_connection_limit() && region.is_permanent());
        let tuner = UpstreamError::new(Cause::Tuner { status: 503, code: 805 });
        assert_eq!(
            (tuner.label(), &*tuner.to_string()),
            ("all_tuners_in_use", "all tuners of the device are in use")
        );
    }

    #[test]
    fn only_errors_that_may_pass_at_once_allow_a_retry() {
        let yes = [
            Cause::Ended,
            Cause::Reset("connection reset".into()),
            Cause::Connect("connection refused".into()),
            Cause::Status(500),
            Cause::Status(503),
            Cause::SyncLost,
        ];
        let no = [
            Cause::Status(404),
            Cause::Status(403),
            Cause::Status(429),
            Cause::NotTs("text/html".into()),
            Cause::Tls("certificate expired".into()),
            Cause::ConnectTimeout,
            Cause::FirstPacketTimeout,
            Cause::Stall,
            Cause::Scrambled,
            Cause::NoTables("the stream announces no programme".into()),
            Cause::TooManyRedirects,
        ];
        for cause in yes {
            assert!(UpstreamError::new(cause.clone()).can_retry(), "{cause}");
        }
        for cause in no {
            assert!(!UpstreamError::new(cause.clone()).can_retry(), "{cause}");
        }
    }

    #[test]
    fn only_errors_that_waiting_cannot_cure_are_permanent() {
        let yes = [
            Cause::Status(400),
            Cause::Status(401),
            Cause::Status(403),
            Cause::Status(404),
            Cause::Status(410),
            Cause::Status(304),
            Cause::NotTs("text/html".into()),
            Cause::Protocol("invalid header".into()),
            Cause::Tls("certificate expired".into()),
            Cause::TooManyRedirects,
            Cause::RedirectLoop,
            Cause::BadRedirect,
            Cause::Address("no host".into()),
            Cause::Unsupported("rtsp".into()),
            Cause::NeedsProgram("an HLS playlist".into()),
            Cause::File("not found".into()),
            Cause::Program("ffmpeg: not found".into()),
            Cause::Panicked,
        ];
        let no = [
            Cause::ConnectTimeout,
            Cause::FirstPacketTimeout,
            Cause::Stall,
            Cause::Scrambled,
            Cause::NoTables("the stream announces no programme".into()),
            Cause::Empty,
            Cause::Status(408),
            Cause::Status(425),
            Cause::Status(429),
            Cause::Status(500),
            Cause::Status(503),
            Cause::Dns,
            Cause::Connect("connection refused".into()),
            Cause::Ended,
            Cause::Reset("connection reset".into()),
            Cause::SyncLost,
            Cause::ClockBehind,
            Cause::Revoked,
            Cause::Exited("with status 1".into()),
        ];
        for cause in yes {
            let error = UpstreamError::new(cause.clone());
            assert!(error.is_permanent() && !error.can_retry(), "{cause}");
        }
        for cause in no {
            assert!(!UpstreamError::new(cause.clone()).is_permanent(), "{cause}");
        }
    }
}
