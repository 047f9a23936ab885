//! Join tokens: no text panics, and an accepted one prints as the same text.

#![no_main]

use domain::cluster::token::{JoinToken, TOKEN_CHARS_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(token) = text.parse::<JoinToken>() else { return };
    assert!(text.trim().len() <= TOKEN_CHARS_MAX);
    assert_eq!(token.to_text(), text.trim());
    assert!(!format!("{token:?}").contains(token.to_text().rsplit('-').next().unwrap_or_default()));
});
