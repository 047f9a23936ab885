//! The code that proves to the gateway that somebody can read what it printed at its start.

use std::fmt;

use data_encoding::HEXLOWER;
use domain::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;

use super::keys::random;

/// Number of random bytes in a code. Few enough to type it, and too many to guess it over a network.
const CODE_BYTES: usize = 10;

/// The setup code of one run of the gateway. It is valid until the first admin has been created with it.
pub struct SetupCode(Mutex<Option<Secret>>);

impl fmt::Debug for SetupCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetupCode(…)")
    }
}

impl SetupCode {
    pub fn generate() -> Self {
        let code = HEXLOWER.encode(&random::<CODE_BYTES>());
        Self(Mutex::new(Some(Secret::new(code))))
    }

    /// Returns the code for the operator, or `None` if it was used.
    pub fn text(&self) -> Option<Secret> {
        self.0.lock().clone()
    }

    /// Returns whether this is the code. Takes equally long for every wrong one.
    pub fn fits(&self, sent: &str) -> bool {
        let Some(code) = self.text() else { return false };
        let key: [u8; 32] = random();
        let mac = |text: &str| Hmac::<Sha256>::new_from_slice(&key).map(|it| it.chain_update(text));
        let (Ok(expected), Ok(sent)) = (mac(code.expose()), mac(sent.trim())) else { return false };
        expected.verify(&sent.finalize().into_bytes()).is_ok()
    }

    /// Makes the code invalid.
    pub fn expire(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_code_fits_until_it_expires_and_another_one_never() {
        let (code, other) = (SetupCode::generate(), SetupCode::generate());
        let text = code.text().unwrap();
        assert_eq!(text.expose().len(), 2 * CODE_BYTES);
        assert!(
            code.fits(text.expose()) && code.fits(&format!(" {}\n", text.expose())),
            "pasted with spaces"
        );
        assert!(!other.fits(text.expose()) && !code.fits("") && !code.fits(&text.expose()[1..]));
        code.expire();
        assert!(!code.fits(text.expose()) && !code.fits("") && code.text().is_none());
    }

    #[test]
    fn a_setup_code_does_not_print_itself() {
        let code = SetupCode::generate();
        assert!(!format!("{code:?}").contains(code.text().unwrap().expose()));
    }
}
