//! The envelope of every answer, and what portals send instead of one.

use serde_json::Value;

use crate::playlist::m3u::text::decode;

/// Maximum length of an answer that is not a list of channels, in bytes. A link has some hundred bytes, and all genres
/// have some ten thousand.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Why an answer of a portal cannot be used. Completes "failed to …: ", and contains no value of the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortalError {
    /// Not the device is refused, but its token: it has ended.
    #[error("the portal refuses the device (authorization failed)")]
    Unauthorized,
    /// The device is blocked, or its login is wrong. Contains the message of the portal.
    #[error("the portal refuses the device: {0}")]
    Refused(String),
    #[error("the portal asks for a user name and a password")]
    LoginRequired,
    #[error("the portal refuses the user name or the password")]
    LoginRefused,
    #[error("the portal gave no token to the device; check its MAC address")]
    NoToken,
    #[error("the portal sent an empty answer")]
    Nothing,
    #[error("the portal sent a web page instead of its answer")]
    WebPage,
    #[error("the answer of the portal is cut off, or is not valid JSON")]
    Damaged,
    #[error("the server does not answer like a portal; check its address")]
    NotAPortal,
    #[error("the answer of the portal is too long")]
    TooLong,
    /// The portal gave no link. Contains its reason.
    #[error("the portal gave no link: {0}")]
    NoLink(String),
}

impl PortalError {
    /// Returns whether the token was refused, so that another handshake can help.
    pub fn is_unauthorized(&self) -> bool {
        *self == Self::Unauthorized
    }

    /// Returns whether the portal refuses the device itself, so that asking again soon cannot help.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Unauthorized | Self::Refused(_) | Self::LoginRequired | Self::LoginRefused | Self::NoToken
        )
    }

    /// Returns whether another entry point may be the right one.
    pub fn is_wrong_place(&self) -> bool {
        matches!(self, Self::Nothing | Self::WebPage | Self::NotAPortal | Self::Damaged)
    }
}

/// Returns the meaning of the beginning of an answer in another format than JSON; `None` if it may be JSON.
pub fn check_text(start: &[u8]) -> Option<PortalError> {
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start).trim_ascii_start();
    let says =
        |text: &str| start.get(..text.len()).is_some_and(|it| it.eq_ignore_ascii_case(text.as_bytes()));
    match start.first() {
        None => Some(PortalError::Nothing),
        Some(b'{') => None,
        Some(b'<') => Some(PortalError::WebPage),
        _ if says("Authorization failed") || says("Access denied") || says("Unauthorized") => {
            Some(PortalError::Unauthorized)
        }
        _ => Some(PortalError::NotAPortal),
    }
}

/// Returns the value of `js` in an answer. Portals write warnings of PHP before it, in HTML.
///
/// # Errors
/// It is not the answer of a portal.
pub fn read_answer(bytes: &[u8]) -> Result<Value, PortalError> {
    if bytes.len() > ANSWER_BYTES_MAX {
        return Err(PortalError::TooLong);
    }
    let text = decode(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    let json = match check_text(text.as_bytes()) {
        None => text,
        Some(PortalError::WebPage) => match text.find("{\"js\"") {
            Some(at) => &text[at..],
            None => return Err(PortalError::WebPage),
        },
        Some(error) => return Err(error),
    };
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Object(mut answer))) => answer.remove("js").ok_or(PortalError::NotAPortal),
        _ => Err(PortalError::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_whatever_surrounds_it_and_everything_else_is_told_apart() {
        for (text, expected) in [
            (r#"{"js":{"token":"T"},"text":"generated in: 0.1s"}"#, Ok(json!({ "token": "T" }))),
            ("\u{feff} {\"js\":false}", Ok(json!(false))),
            (r#"{"js":[]}"#, Ok(json!([]))),
            (r#"{"js":null}"#, Ok(json!(null))),
            ("<br />\n<b>Warning</b>: x<br />{\"js\":{\"id\":\"1\"}}", Ok(json!({ "id": "1" }))),
            (r#"{"js":{"id":1}}trailing"#, Ok(json!({ "id": 1 }))),
            ("", Err(PortalError::Nothing)),
            ("  \r\n", Err(PortalError::Nothing)),
            ("Authorization failed.", Err(PortalError::Unauthorized)),
            (" authorization FAILED", Err(PortalError::Unauthorized)),
            ("Access denied.", Err(PortalError::Unauthorized)),
            ("<html><body>404</body></html>", Err(PortalError::WebPage)),
            ("Too many requests", Err(PortalError::NotAPortal)),
            ("false", Err(PortalError::NotAPortal)),
            ("[]", Err(PortalError::NotAPortal)),
            ("{}", Err(PortalError::NotAPortal)),
            (r#"{"user_info":{}}"#, Err(PortalError::NotAPortal)),
            (r#"{"js":{"token":"#, Err(PortalError::Damaged)),
        ] {
            assert_eq!(read_answer(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(read_answer(&vec![b' '; ANSWER_BYTES_MAX + 1]), Err(PortalError::TooLong));
        assert_eq!(read_answer(b"{\"js\":\"T\xe9l\xe9\"}"), Ok(json!("Télé")));
    }
}
