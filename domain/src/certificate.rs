//! Which certificates of the servers of a provider are accepted.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The certificates of the servers of an account that are accepted, besides those that authorities of the machine have signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateCheck {
    /// Whether certificates are checked. Otherwise each one is accepted.
    pub verify: bool,
    /// A certificate that is accepted whatever its names, dates and authority are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// Certificates of further authorities, as PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

impl Default for CertificateCheck {
    fn default() -> Self {
        Self { verify: true, fingerprint: None, authority: None }
    }
}

impl CertificateCheck {
    /// Returns whether this is the check of an account without settings for it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the check for the candidates of the account to share; `None` if it has no settings for it.
    pub fn shared(&self) -> Option<Arc<Self>> {
        (!self.is_default()).then(|| Arc::new(self.clone()))
    }
}

/// The SHA-256 of a certificate in its binary form (DER). Printed as `12:AB:…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 32]);

/// Reason why a text is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected the SHA-256 fingerprint of a certificate: 64 hexadecimal digits")]
pub struct FingerprintError;

impl Fingerprint {
    /// Parses 64 hexadecimal digits in the forms that programs print: with colons or blanks, and behind `sha256:` or
    /// `SHA256 Fingerprint=`.
    ///
    /// # Errors
    /// The text is not a fingerprint.
    pub fn parse(text: &str) -> Result<Self, FingerprintError> {
        let lower = text.trim().to_ascii_lowercase();
        let prefixes = ["sha256 fingerprint=", "sha-256:", "sha256:"];
        let digits = prefixes.iter().find_map(|it| lower.strip_prefix(it)).unwrap_or(&lower);
        let mut values =
            digits.chars().filter(|it| *it != ':' && !it.is_whitespace()).map(|it| it.to_digit(16));
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            let mut digit = || values.next().flatten().ok_or(FingerprintError);
            *byte = (digit()? << 4 | digit()?) as u8;
        }
        if values.next().is_some() { Err(FingerprintError) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        Self::parse(&text)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_in_the_forms_that_programs_print() {
        let digits: String = (0..32).map(|it| format!("{it:02x}")).collect();
        let colons = (0..32).map(|it| format!("{it:02X}")).collect::<Vec<_>>().join(":");
        let expected = Fingerprint(std::array::from_fn(|it| it as u8));
        for text in [
            digits.clone(),
            digits.to_uppercase(),
            colons.clone(),
            colons.replace(':', " "),
            format!("  sha256:{digits}\n"),
            format!("SHA256 Fingerprint={colons}"),
            format!("sha256 Fingerprint={colons}"),
        ] {
            assert_eq!(Fingerprint::parse(&text), Ok(expected), "{text}");
        }
        assert_eq!(expected.to_string(), colons);
        for text in ["", "12:34", "é", &digits[1..], &format!("{digits}0"), &digits.replace('a', "g")] {
            assert_eq!(Fingerprint::parse(text), Err(FingerprintError), "{text}");
        }
    }

    #[test]
    fn a_record_without_the_setting_has_its_certificates_checked() {
        let read: CertificateCheck = serde_json::from_str("{}").unwrap();
        assert!(read.is_default() && read.verify);
        let check =
            CertificateCheck { fingerprint: Some(Fingerprint([7; 32])), ..CertificateCheck::default() };
        let text = serde_json::to_string(&check).unwrap();
        assert_eq!(serde_json::from_str::<CertificateCheck>(&text).unwrap(), check);
    }
}
