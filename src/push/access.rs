//! Who a socket belongs to, and when they may no longer see what they saw.

use std::sync::Arc;

use domain::user::User;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use storage::{ChangeMessage, Changes, Record};

use crate::app::App;
use crate::auth::Denied;

/// The sub-protocol in which a browser, which can set no header, may show its token: `bearer, TOKEN`.
pub(super) const BEARER: &str = "bearer";

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Why a socket may tell nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The credentials are not good any more: expired, taken back, the user inactive or gone.
    Credentials,
    /// The user may do more or less than at the beginning.
    Level,
}

/// The user of a socket, looked up again whenever something about users is committed and when the token ends.
pub(super) struct Access {
    app: Arc<App>,
    /// What was shown, as headers show it. Never printed.
    credentials: HeaderMap,
    changes: Changes,
    /// The store was closed: nothing changes any more.
    is_closed: bool,
    user: Arc<User>,
}

/// What a request shows of its user, as headers would: by header, else by `?token=`, else by sub-protocol.
pub(super) fn credentials(headers: &HeaderMap, query: &str) -> Option<HeaderMap> {
    let mut shown = HeaderMap::new();
    for name in [AUTHORIZATION, API_KEY] {
        if let Some(value) = headers.get(&name) {
            shown.insert(name, value.clone());
        }
    }
    if is_ours(&shown) {
        return Some(shown);
    }
    let of_query = url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, value)| name == "token" && !value.is_empty())
        .map(|(_, token)| token.into_owned());
    let token = of_query.or_else(|| token_beside_bearer(headers))?;
    // Bytes that no header may have are in no token of ours: an empty one is as bad.
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    Some(HeaderMap::from_iter([(AUTHORIZATION, value.unwrap_or(HeaderValue::from_static("Bearer")))]))
}

/// Are there credentials for us among these? Other schemes are those of a proxy before us.
fn is_ours(shown: &HeaderMap) -> bool {
    let scheme = |value: &HeaderValue| {
        let text = value.as_bytes().trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        text[..end].eq_ignore_ascii_case(b"bearer") || text[..end].eq_ignore_ascii_case(b"apikey")
    };
    shown.contains_key(API_KEY) || shown.get(AUTHORIZATION).is_some_and(scheme)
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    values.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).map(str::trim)
}

/// Whether the other side waits for us to choose the sub-protocol.
pub(super) fn offers_bearer(headers: &HeaderMap) -> bool {
    offered(headers).any(|it| it == BEARER)
}

fn token_beside_bearer(headers: &HeaderMap) -> Option<String> {
    let mut offered = offered(headers).skip_while(|it| *it != BEARER);
    offered.nth(1).map(str::to_owned)
}

impl Access {
    /// Subscribes before it looks, so that nothing that is committed meanwhile is overlooked.
    pub(super) fn of(app: &Arc<App>, credentials: HeaderMap) -> Result<Self, Denied> {
        let changes = app.models.store.changes();
        let user = app.auth.user_of(&credentials)?.ok_or(Denied::Nobody)?;
        Ok(Self { app: Arc::clone(app), credentials, changes, is_closed: false, user })
    }

    /// The user as of the last look.
    pub(super) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Looks again. From memory.
    pub(super) fn look(&mut self) -> Result<(), Lost> {
        let user = self.app.auth.user_of(&self.credentials).ok().flatten().ok_or(Lost::Credentials)?;
        if user.id != self.user.id {
            return Err(Lost::Credentials);
        }
        if user.effective_level() != self.user.effective_level() {
            return Err(Lost::Level);
        }
        self.user = user;
        Ok(())
    }

    /// Waits until the access is lost. Cancel-safe.
    pub(super) async fn lost(&mut self) -> Lost {
        loop {
            let token_ends = async {
                match self.app.auth.good_for(&self.credentials) {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            let changes = &mut self.changes;
            let news = async {
                match self.is_closed {
                    true => std::future::pending().await,
                    false => changes.next().await,
                }
            };
            let news = tokio::select! {
                news = news => Some(news),
                () = token_ends => None,
            };
            match news {
                Some(ChangeMessage::Changed(change)) if change.of(User::COLLECTION).is_none() => continue,
                Some(ChangeMessage::Closed) => self.is_closed = true,
                Some(ChangeMessage::Changed(_) | ChangeMessage::Lagged) | None => {}
            }
            if let Err(lost) = self.look() {
                return lost;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_from_a_header_else_the_query_else_the_sub_protocol() {
        // (headers, query, the authorization header that they come to)
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
            let shown = credentials(&pairs.collect(), query);
            let shown = shown.as_ref().map(|it| it[AUTHORIZATION].to_str().unwrap());
            assert_eq!(shown, expected, "{headers:?} {query}");
        }
        let key = HeaderMap::from_iter([(API_KEY, HeaderValue::from_static("k"))]);
        assert_eq!(credentials(&key, "token=q").unwrap()[API_KEY], "k");
    }
}
