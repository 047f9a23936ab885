//! Reasons why credentials are rejected, and the responses to them.

use serde_json::json;
use server::reply::Refusal;

/// Reason why a request or a login is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Credentials are required, but the request has none.
    NoCredentials,
    /// The API key belongs to no user.
    ApiKey,
    /// The user is inactive.
    Inactive,
    /// The account of the user has ended.
    Expired,
    /// The access token is invalid or expired.
    Token { expired: bool },
    /// The refresh token is invalid or expired.
    Refresh { expired: bool },
    /// Wrong user name or password, or an inactive user. The response does not reveal which.
    Login,
    /// Too many logins at the same time.
    Busy,
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let token = |expired| if expired { "Token is expired" } else { "Token is invalid" };
        match denied {
            Denied::NoCredentials => Refusal::no_credentials(),
            Denied::ApiKey => Refusal::unauthorized("Invalid API key"),
            Denied::Inactive => Refusal::unauthorized("User inactive"),
            Denied::Expired => Refusal::unauthorized("The account has expired."),
            Denied::Token { expired } => {
                let detail = "Given token not valid for any token type";
                let message = token(expired);
                let message =
                    json!({ "token_class": "AccessToken", "token_type": "access", "message": message });
                let body = json!({ "detail": detail, "code": "token_not_valid", "messages": [message] });
                Refusal::unauthorized(detail).with_body(body)
            }
            Denied::Refresh { expired } => {
                let detail = token(expired);
                let body = json!({ "detail": detail, "code": "token_not_valid" });
                Refusal::unauthorized(detail).with_body(body)
            }
            Denied::Login => Refusal::unauthorized("No active account found with the given credentials"),
            Denied::Busy => Refusal::unavailable("too many simultaneous logins").retry_soon(),
        }
    }
}
