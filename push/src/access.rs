//! The user of a socket, and the detection of lost permissions.

use std::sync::Arc;

use config::NetworkClass;
use domain::login::DeviceLogin;
use domain::secret::ServerKeys;
use domain::user::User;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use server::caller::Caller;
use server::reply::Refusal;
use services::auth::Denied;
use storage::{Change, ChangeMessage, Changes, Record};
use tokio::sync::watch;

use crate::context::PushContext;

/// Path of the WebSocket.
pub(super) const PATH: &str = "/ws/";
/// Sub-protocol with which a browser, which cannot set headers, passes its token: `bearer, TOKEN`.
pub(super) const BEARER: &str = "bearer";

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Reason why a socket must not send anything more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessLoss {
    /// The credentials are no longer valid: expired or revoked, or the user was deactivated or deleted.
    Credentials,
    /// The level of the user has changed.
    Level,
}

/// The user of a socket. Checked again when a user record changes, when a login ends, and when the token expires.
pub(super) struct Access {
    context: Arc<PushContext>,
    /// Credentials in the form of headers. Never printed.
    credentials: HeaderMap,
    changes: Changes,
    /// The store was closed, so nothing can change any more.
    is_closed: bool,
    /// The ends of logins that are not in the store.
    login_ends: watch::Receiver<()>,
    user: Arc<User>,
    caller: Caller,
}

/// Returns the credentials of a request in the form of headers: from a header, else from `?token=`, else from the
/// sub-protocol.
pub(super) fn credentials(headers: &HeaderMap, query: &str) -> Option<HeaderMap> {
    let mut found = HeaderMap::new();
    for name in [AUTHORIZATION, API_KEY] {
        if let Some(value) = headers.get(&name) {
            found.insert(name, value.clone());
        }
    }
    if has_credentials(&found) {
        return Some(found);
    }
    let of_query = url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, value)| name == "token" && !value.is_empty())
        .map(|(_, token)| token.into_owned());
    let token = of_query.or_else(|| token_after_bearer(headers))?;
    // A token with bytes that are not allowed in a header is invalid; an empty one is rejected the same way.
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    Some(HeaderMap::from_iter([(AUTHORIZATION, value.unwrap_or(HeaderValue::from_static("Bearer")))]))
}

/// Returns true if the headers contain credentials of a supported scheme. Others are meant for a reverse proxy.
fn has_credentials(headers: &HeaderMap) -> bool {
    let scheme = |value: &HeaderValue| {
        let text = value.as_bytes().trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        text[..end].eq_ignore_ascii_case(b"bearer") || text[..end].eq_ignore_ascii_case(b"apikey")
    };
    headers.contains_key(API_KEY) || headers.get(AUTHORIZATION).is_some_and(scheme)
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    values.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).map(str::trim)
}

/// Returns true if the client offers the sub-protocol and expects the server to select it.
pub(super) fn offers_bearer(headers: &HeaderMap) -> bool {
    offered(headers).any(|it| it == BEARER)
}

fn token_after_bearer(headers: &HeaderMap) -> Option<String> {
    let mut offered = offered(headers).skip_while(|it| *it != BEARER);
    offered.nth(1).map(str::to_owned)
}

impl Access {
    /// Subscribes to changes before it looks up the user, so that no change in between is missed.
    pub(super) fn new(
        context: &Arc<PushContext>,
        credentials: HeaderMap,
        caller: Caller,
    ) -> Result<Self, Refusal> {
        let (changes, login_ends) = (context.models.store.changes(), context.auth.memory_logins().ends());
        let user = context.auth.user_of(&credentials)?.ok_or(Denied::NoCredentials)?;
        context.networks.check_user(&user, &caller, NetworkClass::Ui, PATH)?;
        Ok(Self {
            context: Arc::clone(context),
            credentials,
            changes,
            is_closed: false,
            login_ends,
            user,
            caller,
        })
    }

    /// Returns the user as of the last check.
    pub(super) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Checks the credentials again. Reads only memory.
    pub(super) fn check(&mut self) -> Result<(), AccessLoss> {
        let user =
            self.context.auth.user_of(&self.credentials).ok().flatten().ok_or(AccessLoss::Credentials)?;
        if user.id != self.user.id
            || self.context.networks.check_user(&user, &self.caller, NetworkClass::Ui, PATH).is_err()
        {
            return Err(AccessLoss::Credentials);
        }
        if user.effective_level() != self.user.effective_level() {
            return Err(AccessLoss::Level);
        }
        self.user = user;
        Ok(())
    }

    /// Waits until access is lost. Cancel-safe.
    pub(super) async fn lost(&mut self) -> AccessLoss {
        loop {
            let token_ends = async {
                match self.context.auth.expires_in(&self.credentials) {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            let changes = &mut self.changes;
            let message = async {
                match self.is_closed {
                    true => std::future::pending().await,
                    false => changes.next().await,
                }
            };
            let message = tokio::select! {
                message = message => Some(message),
                () = token_ends => None,
                Ok(()) = self.login_ends.changed() => None,
            };
            match message {
                Some(ChangeMessage::Changed(change)) if !may_end_access(&change) => continue,
                Some(ChangeMessage::Closed) => self.is_closed = true,
                Some(ChangeMessage::Changed(_) | ChangeMessage::Lagged) | None => {}
            }
            if let Err(lost) = self.check() {
                return lost;
            }
        }
    }
}

/// Returns whether a commit can have invalidated credentials or permissions.
fn may_end_access(change: &Change) -> bool {
    [User::COLLECTION, DeviceLogin::COLLECTION, ServerKeys::COLLECTION]
        .iter()
        .any(|it| change.ids(it).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_from_a_header_else_the_query_else_the_sub_protocol() {
        // (headers, query, the resulting authorization header)
        let none: &[(&str, &str)] = &[];
        let cases = [
            (none, "", None),
            (none, "tokens=a", None),
            (none, "token=", None),
            (none, "a=b&token=x.y.z", Some("Bearer x.y.z")),
            (none, "token=x%2Ey", Some("Bearer x.y")),
            (none, "token=%0d%0aX:1", Some("Bearer")),
            (&[("authorization", "Bearer h")], "token=q", Some("Bearer h")),
            (&[("authorization", "ApiKey h")], "token=q", Some("ApiKey h")),
            (&[("authorization", "Basic YTpi")], "token=q", Some("Bearer q")),
            (&[("authorization", "Basic YTpi")], "", None),
            (&[("sec-websocket-protocol", "bearer, t.o.k")], "", Some("Bearer t.o.k")),
            (&[("sec-websocket-protocol", "chat,bearer,t")], "", Some("Bearer t")),
            (&[("sec-websocket-protocol", "bearer, t")], "token=q", Some("Bearer q")),
            (&[("sec-websocket-protocol", "bearer")], "", None),
            (&[("sec-websocket-protocol", "t")], "", None),
        ];
        for (headers, query, expected) in cases {
            let pairs = headers.iter().map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            });
            let found = credentials(&pairs.collect(), query);
            let found = found.as_ref().map(|it| it[AUTHORIZATION].to_str().unwrap());
            assert_eq!(found, expected, "{headers:?} {query}");
        }
        let key = HeaderMap::from_iter([(API_KEY, HeaderValue::from_static("k"))]);
        assert_eq!(credentials(&key, "token=q").unwrap()[API_KEY], "k");
    }
}
