//! The appearance of a user in clients.

use data_encoding::HEXLOWER;
use domain::user::User;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::files::AVATARS_PATH;
use sha2::{Digest, Sha256};
use url::Url;

use super::properties;
use super::user_rules::check_email;

const FIELD: &str = "avatar_config";
const TYPES: [&str; 4] = ["gravatar", "initials", "upload", "url"];
/// Maximum length of initials, in characters.
const INITIALS_CHARS_MAX: usize = 4;
/// Maximum length of a URL, in characters.
const URL_CHARS_MAX: usize = 2_048;
/// Maximum length of a colour, in characters.
const COLOR_CHARS_MAX: usize = 32;

/// Checks the members that the interface defines. Others are data of clients.
pub fn check(config: &Map<String, Value>) -> Result<(), Refusal> {
    properties::check_size(FIELD, config)?;
    check_look(config, "")?;
    if let Some(email) = text(config, "email", "")? {
        check_email(email.to_owned()).map_err(|_| wrong("email", "Enter a valid email address."))?;
    }
    match config.get("fallback") {
        None | Some(Value::Null) => {}
        Some(Value::Object(fallback)) => check_look(fallback, "fallback.")?,
        Some(_) => return Err(wrong("fallback", "Expected an object of names and values.")),
    }
    let url = text(config, "url", "")?.unwrap_or_default();
    let is_web = |it: Url| matches!(it.scheme(), "http" | "https") && it.has_host();
    let is_valid = url.is_empty() || url.starts_with(AVATARS_PATH) || Url::parse(url).is_ok_and(is_web);
    if !is_valid || url.chars().count() > URL_CHARS_MAX {
        return Err(wrong("url", "Enter a valid URL."));
    }
    match config.get("type").and_then(Value::as_str) {
        Some("url") if url.is_empty() => Err(wrong("url", "This field is required for the type url.")),
        // The picture may come afterwards.
        Some("upload") if !url.is_empty() && !url.starts_with(AVATARS_PATH) => {
            Err(wrong("url", "The address of an uploaded picture is given by the upload."))
        }
        _ => Ok(()),
    }
}

/// Checks the members that an avatar and its fallback have in common.
fn check_look(config: &Map<String, Value>, prefix: &str) -> Result<(), Refusal> {
    if let Some(kind) = text(config, "type", prefix)?
        && !TYPES.contains(&kind)
    {
        return Err(wrong(&format!("{prefix}type"), &format!("Choose one of: {}.", TYPES.join(", "))));
    }
    if text(config, "initials", prefix)?.is_some_and(|it| it.chars().count() > INITIALS_CHARS_MAX) {
        let message = format!("Ensure this has no more than {INITIALS_CHARS_MAX} characters.");
        return Err(wrong(&format!("{prefix}initials"), &message));
    }
    for name in ["color", "background"] {
        if text(config, name, prefix)?.is_some_and(|it| !is_color(it)) {
            return Err(wrong(&format!("{prefix}{name}"), "Enter a colour, such as #1c7ed6 or blue."));
        }
    }
    Ok(())
}

/// Returns a member that must be a text, if it is present.
fn text<'a>(config: &'a Map<String, Value>, name: &str, prefix: &str) -> Result<Option<&'a str>, Refusal> {
    match config.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&format!("{prefix}{name}"), "Expected a text.")),
    }
}

/// Returns whether this is `#` with hexadecimal digits, or a name. Clients write it into style sheets.
fn is_color(text: &str) -> bool {
    let is_hex = |it: &str| [3, 4, 6, 8].contains(&it.len()) && it.bytes().all(|it| it.is_ascii_hexdigit());
    let is_name = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it));
    text.len() <= COLOR_CHARS_MAX && text.strip_prefix('#').map_or_else(|| is_name(text), is_hex)
}

fn wrong(member: &str, message: &str) -> Refusal {
    Refusal::field(FIELD, format!("{member}: {message}"))
}

/// Returns the address of the picture of a user, if the type of the avatar has one. Uploaded pictures are below `origin`.
pub(super) fn url_of(user: &User, origin: &str) -> Option<String> {
    let member = |name: &str| user.avatar.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    match member("type")? {
        "upload" | "url" => {
            let on_gateway =
                |it: &str| if it.starts_with('/') { format!("{origin}{it}") } else { it.to_owned() };
            member("url").map(on_gateway)
        }
        "gravatar" => {
            let email = member("email").unwrap_or(&user.email).trim().to_lowercase();
            let digest = Sha256::digest(email.as_bytes());
            let hash = HEXLOWER.encode(&digest);
            // `d=404`: a client shows the fallback if there is no picture.
            (!email.is_empty()).then(|| format!("https://www.gravatar.com/avatar/{hash}?d=404"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::UserId;
    use domain::user::UserLevel;
    use serde_json::json;

    use super::*;

    fn checked(config: Value) -> Result<(), String> {
        check(config.as_object().unwrap()).map_err(|it| format!("{it:?}"))
    }

    #[test]
    fn an_avatar_of_each_type_is_accepted_and_a_wrong_member_is_refused_by_name() {
        for config in [
            json!({}),
            json!({ "type": "initials", "initials": "AB", "color": "#1c7ed6", "background": "blue.6" }),
            json!({ "type": "gravatar", "email": "a@b.example" }),
            json!({ "type": "url", "url": "https://a.example/a.png" }),
            json!({ "type": "upload", "url": format!("{AVATARS_PATH}1-aa.png") }),
            json!({ "type": "upload" }),
            json!({ "fallback": { "type": "initials", "initials": "Ä", "color": null }, "else": [1] }),
        ] {
            assert_eq!(checked(config.clone()), Ok(()), "{config}");
        }
        for (config, member) in [
            (json!({ "type": "picture" }), "type: Choose"),
            (json!({ "type": 7 }), "type: Expected"),
            (json!({ "type": "url" }), "url: This field is required"),
            (
                json!({ "type": "upload", "url": "https://a.example/a.png" }),
                "url: The address of an uploaded",
            ),
            (json!({ "url": "javascript:alert(1)" }), "url: Enter"),
            (json!({ "url": "/etc/passwd" }), "url: Enter"),
            (json!({ "initials": "ABCDE" }), "initials: Ensure"),
            (json!({ "color": "red;}" }), "color: Enter"),
            (json!({ "email": "nobody" }), "email: Enter"),
            (json!({ "fallback": [] }), "fallback: Expected"),
            (json!({ "fallback": { "background": "#12" } }), "fallback.background: Enter"),
        ] {
            let refusal = checked(config.clone()).unwrap_err();
            assert!(refusal.contains(member), "{config}: {refusal}");
        }
    }

    #[test]
    fn a_picture_has_an_address_and_initials_have_none() {
        let mut anna = User::new(UserId(1), "anna", UserLevel::Streamer, 0);
        anna.email = "MyEmailAddress@example.com ".to_owned();
        let hash = "84059b07d4be67b806386c0aad8070a23f18836bbaae342275dc0a83414c32ee";
        let gravatar = format!("https://www.gravatar.com/avatar/{hash}?d=404");
        for (config, expected) in [
            (json!({}), None),
            (json!({ "type": "initials", "url": "https://a.example/a.png" }), None),
            (json!({ "type": "gravatar" }), Some(gravatar.as_str())),
            (json!({ "type": "url", "url": "https://a.example/a.png" }), Some("https://a.example/a.png")),
            (
                json!({ "type": "upload", "url": "/api/accounts/avatars/a.png" }),
                Some("http://tv/api/accounts/avatars/a.png"),
            ),
        ] {
            anna.avatar = config.as_object().unwrap().clone();
            assert_eq!(url_of(&anna, "http://tv").as_deref(), expected, "{config}");
        }
    }
}
