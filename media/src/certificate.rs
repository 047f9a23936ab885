//! The words for certificates of servers that are not accepted.

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};
use std::{fmt, io};

use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, OtherError};
use sha2::{Digest, Sha256};

/// Maximum number of names of a certificate that are shown, and of characters of each.
const NAMES_MAX: usize = 5;
const NAME_CHARS_MAX: usize = 80;

/// Returns the SHA-256 of a certificate.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// A certificate that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCertificate {
    /// The reason.
    pub problem: CertificateProblem,
    /// Its SHA-256.
    pub fingerprint: [u8; 32],
}

impl RefusedCertificate {
    pub(crate) fn new(error: &rustls::Error, certificate: &CertificateDer<'_>) -> Self {
        let problem = CertificateProblem::new(error, certificate);
        Self { problem, fingerprint: fingerprint(certificate) }
    }

    /// Returns the certificate that caused an error of a TLS or HTTP library, if one did.
    pub fn in_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(rustls::Error::Other(OtherError(inner))) = error.downcast_ref() {
                return inner.downcast_ref();
            }
            // The source of such an error is that of the error inside.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for RefusedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SHA-256 fingerprint ", self.problem)?;
        for (at, byte) in self.fingerprint.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        f.write_str(")")
    }
}

impl Error for RefusedCertificate {}

/// The reason why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateProblem {
    /// Its server has signed it itself.
    SelfSigned,
    /// It was valid until this time, in seconds since 1970.
    Expired(u64),
    /// It is valid from this time on, in seconds since 1970.
    NotYetValid(u64),
    /// It is for these names.
    OtherName(Vec<String>),
    /// An authority signed it that the machine does not know.
    UnknownAuthority,
    /// It cannot be used. The text contains the reason.
    Unsuitable(String),
}

impl CertificateProblem {
    fn new(error: &rustls::Error, certificate: &CertificateDer<'_>) -> Self {
        let rustls::Error::InvalidCertificate(reason) = error else {
            return Self::Unsuitable(error.to_string());
        };
        match reason {
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(not_after.as_secs()),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(not_before.as_secs())
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                // The library prints them as `DnsName("tv.example")`.
                let shown = |it: &String| {
                    let inner = it.split_once('(').map_or(&**it, |it| it.1);
                    let inner = inner.trim_end_matches(')').trim_matches('"');
                    inner.chars().filter(|it| !it.is_control()).take(NAME_CHARS_MAX).collect()
                };
                Self::OtherName(presented.iter().take(NAMES_MAX).map(shown).collect())
            }
            // The library refuses one that is its own authority for another reason first.
            _ if is_self_signed(certificate) => Self::SelfSigned,
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownAuthority,
            _ => Self::Unsuitable(error.to_string().chars().take(NAME_CHARS_MAX).collect()),
        }
    }
}

impl fmt::Display for CertificateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = |seconds: &u64| {
            // Later times cannot be written in this form.
            let seconds = (*seconds).min(253_402_300_799);
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
        };
        match self {
            Self::SelfSigned => f.write_str("the certificate is self-signed"),
            Self::Expired(at) => write!(f, "the certificate expired on {}", date(at)),
            Self::NotYetValid(at) => {
                write!(f, "the certificate is not valid before {}: check the clock of this machine", date(at))
            }
            Self::OtherName(names) if names.is_empty() => {
                f.write_str("the certificate has no name of a server")
            }
            Self::OtherName(names) => write!(f, "the certificate is for other names: {}", names.join(", ")),
            Self::UnknownAuthority => {
                f.write_str("the certificate is signed by an authority that this machine does not know")
            }
            Self::Unsuitable(reason) => write!(f, "the certificate cannot be used: {reason}"),
        }
    }
}

/// Returns whether issuer and subject of a certificate are the same (RFC 5280, section 4.1).
pub fn is_self_signed(der: &[u8]) -> bool {
    /// Returns the tag of an element of DER, its content, and what follows it.
    fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
        let (&tag, rest) = bytes.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7F => (usize::from(first), rest),
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
                (length.iter().fold(0, |all, it| all << 8 | usize::from(*it)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        Some((tag, content, rest))
    }
    let names = || {
        let (_, certificate, _) = element(der)?;
        let (_, mut fields, _) = element(certificate)?;
        // The version may be left out.
        if let (0xA0, _, rest) = element(fields)? {
            fields = rest;
        }
        let (_, _serial, rest) = element(fields)?;
        let (_, _algorithm, rest) = element(rest)?;
        let (_, issuer, rest) = element(rest)?;
        let (_, _validity, rest) = element(rest)?;
        let (_, subject, _) = element(rest)?;
        Some(issuer == subject)
    };
    names() == Some(true)
}
