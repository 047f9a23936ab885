//! Why a source ended or never began: whose side it was, whom it blames, and whether another try can help.
//!
//! No text in here carries an address: provider URLs hold user names and passwords.

use std::{fmt, io};

/// The failure of an attempt to play from an upstream.
///
/// What it prints completes "failed to play from the upstream: …" and never names an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct UpstreamError {
    cause: Cause,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The address cannot be used at all; the text says why, without the address.
    Address(String),
    /// The host name has no address.
    Dns,
    /// The connection was refused or broke before the request was sent.
    Connect(String),
    /// No connection within `connect_timeout`, names and TLS included.
    ConnectTimeout,
    /// The TLS handshake failed: certificate, protocol version, no TLS at all.
    Tls(String),
    /// The provider answered with a status that is not a stream.
    Status(u16),
    /// More redirects than we follow.
    TooManyRedirects,
    /// A redirect that leads back to where we have been.
    RedirectLoop,
    /// A redirect without a usable `Location`.
    BadRedirect,
    /// The answer is not HTTP, not even loosely.
    Protocol(String),
    /// The body is something else; the text names it ("text/html", "an HLS playlist").
    NotTs(String),
    /// The answer was a success without a body.
    Empty,
    /// No payload packet within `first_packet_timeout` of the start of the dial.
    FirstPacketTimeout,
    /// No payload packet for `stall_timeout` while playing.
    Stall,
    /// The stream came to an end; a live stream does not end.
    Ended,
    /// The connection broke while the stream was being read.
    Reset(String),
    /// No packet boundary was found for longer than `sync_lost_timeout`.
    SyncLost,
    /// The programme clock fell behind the wall clock.
    ClockBehind,
    /// A kind of address that we cannot play yet.
    Unsupported(String),
    /// A file could not be opened or read.
    File(String),
    /// A program could not be started; the text names it and says why.
    Program(String),
    /// A program ended; the text says how, and what it said last, without secrets.
    Exited(String),
    /// Our own code panicked while it opened or read the source.
    Panicked,
}

/// Whose failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The provider's, or the network's between us.
    Upstream,
    /// Ours: a setting, a file, a bug.
    Ours,
}

/// Whom a failure blames, so that the right candidates are tried last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The stream: every account profile would meet the same.
    Stream,
    /// This candidate only: the provider refused the account, another profile may be let in.
    Candidate,
}

impl UpstreamError {
    /// An error of this cause.
    pub fn new(cause: Cause) -> Self {
        Self { cause }
    }

    /// What went wrong.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// Whose failure it was.
    pub fn side(&self) -> Side {
        match self.cause {
            Cause::Address(_)
            | Cause::Unsupported(_)
            | Cause::File(_)
            | Cause::Program(_)
            | Cause::Panicked => Side::Ours,
            _ => Side::Upstream,
        }
    }

    /// Whom it blames.
    pub fn scope(&self) -> Scope {
        match self.cause {
            Cause::Status(status) if blames_the_account(status) => Scope::Candidate,
            _ => Scope::Stream,
        }
    }

    /// Whether the same candidate may succeed at once.
    ///
    /// False also for time-outs: they were long enough, and waiting them out again would keep the
    /// viewer from the next candidate.
    pub fn can_retry(&self) -> bool {
        match self.cause {
            Cause::Dns
            | Cause::Connect(_)
            | Cause::Ended
            | Cause::Reset(_)
            | Cause::SyncLost
            | Cause::Exited(_) => true,
            Cause::Status(status) => status >= 500,
            _ => false,
        }
    }

    /// One word for metrics and events; from a fixed set.
    pub fn label(&self) -> &'static str {
        match self.cause {
            Cause::Address(_) => "address",
            Cause::Dns => "dns",
            Cause::Connect(_) => "connect",
            Cause::ConnectTimeout => "connect_timeout",
            Cause::Tls(_) => "tls",
            Cause::Status(_) => "status",
            Cause::TooManyRedirects => "too_many_redirects",
            Cause::RedirectLoop => "redirect_loop",
            Cause::BadRedirect => "bad_redirect",
            Cause::Protocol(_) => "protocol",
            Cause::NotTs(_) => "not_ts",
            Cause::Empty => "empty",
            Cause::FirstPacketTimeout => "first_packet_timeout",
            Cause::Stall => "stall",
            Cause::Ended => "ended",
            Cause::Reset(_) => "reset",
            Cause::SyncLost => "sync_lost",
            Cause::ClockBehind => "clock_behind",
            Cause::Unsupported(_) => "unsupported",
            Cause::File(_) => "file",
            Cause::Program(_) => "program",
            Cause::Exited(_) => "exited",
            Cause::Panicked => "panicked",
        }
    }

    /// What a socket said while a stream was being read.
    pub(crate) fn from_read(error: &io::Error) -> Self {
        Self::new(match error.kind() {
            // A body that ends before its promised length is an end like any other.
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

/// Statuses with which providers refuse a login or say that it has too many connections.
/// 456 to 466 are not registered anywhere: panels use them for blocked, expired and full lines.
fn blames_the_account(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 407 | 423 | 429 | 456 | 458 | 461 | 462 | 463 | 466 | 503 | 509)
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Address(why) => write!(f, "the address cannot be used: {why}"),
            Cause::Dns => f.write_str("the host name has no address"),
            Cause::Connect(why) => write!(f, "no connection: {why}"),
            Cause::ConnectTimeout => f.write_str("no connection in time"),
            Cause::Tls(why) => write!(f, "the secure connection failed: {why}"),
            Cause::Status(status) => write!(f, "the provider answered with status {status}"),
            Cause::TooManyRedirects => f.write_str("the provider redirected too often"),
            Cause::RedirectLoop => f.write_str("the provider redirects in a circle"),
            Cause::BadRedirect => f.write_str("the provider redirected to nowhere"),
            Cause::Protocol(why) => write!(f, "the answer is not HTTP: {why}"),
            Cause::NotTs(what) => write!(f, "expected a transport stream, got {what}"),
            Cause::Empty => f.write_str("the answer was empty"),
            Cause::FirstPacketTimeout => f.write_str("no picture or sound in time"),
            Cause::Stall => f.write_str("picture and sound stopped coming"),
            Cause::Ended => f.write_str("the stream ended"),
            Cause::Reset(why) => write!(f, "the connection broke: {why}"),
            Cause::SyncLost => f.write_str("the stream turned into something that is no transport stream"),
            Cause::ClockBehind => f.write_str("the stream comes too slowly"),
            Cause::Unsupported(what) => write!(f, "{what} cannot be played yet"),
            Cause::File(why) => write!(f, "the file cannot be read: {why}"),
            Cause::Program(why) => write!(f, "the program cannot be started: {why}"),
            Cause::Exited(how) => write!(f, "the program ended {how}"),
            Cause::Panicked => f.write_str("an internal error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_account_blames_the_candidate_and_the_rest_the_stream() {
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
    fn only_what_may_succeed_at_once_is_worth_a_retry() {
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
            Cause::TooManyRedirects,
        ];
        for cause in yes {
            assert!(UpstreamError::new(cause.clone()).can_retry(), "{cause}");
        }
        for cause in no {
            assert!(!UpstreamError::new(cause.clone()).can_retry(), "{cause}");
        }
    }
}
