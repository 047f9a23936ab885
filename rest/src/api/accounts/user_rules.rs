//! Rules of the names, email addresses and passwords of users.

use domain::user::{USERNAME_CHARS_MAX, UsernameError, check_username};
use server::reply::Refusal;

/// Maximum length of a password, in characters.
pub(super) const PASSWORD_CHARS_MAX: usize = 128;
/// Maximum length of other texts, in characters.
pub(super) const CHARS_MAX: usize = 254;

/// Returns the name as it is stored, if a user may have it.
pub(super) fn check_name(name: &str) -> Result<String, Refusal> {
    let message = match check_username(name) {
        Ok(name) => return Ok(name),
        Err(UsernameError::Characters) => {
            "Enter a valid username. This value may contain letters, numbers, spaces and signs, \
             except / \\ ? # % and :."
                .to_owned()
        }
        Err(UsernameError::Spaces) => {
            "Enter a valid username. This value must not begin or end with a space.".to_owned()
        }
        Err(UsernameError::Length) => format!("Ensure this field has 1 to {USERNAME_CHARS_MAX} characters."),
        Err(UsernameError::Reserved) => {
            "This name is part of an address of the gateway. Choose another one.".to_owned()
        }
    };
    Err(Refusal::field("username", message))
}

/// Accepts an empty text, or an `@` with text on both sides.
pub(super) fn check_email(email: String) -> Result<String, Refusal> {
    let is_address = |it: &str| {
        let has_sides = it.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        has_sides && !it.contains(char::is_whitespace)
    };
    match email.is_empty() || is_address(&email) {
        true => Ok(email),
        false => Err(Refusal::field("email", "Enter a valid email address.")),
    }
}
