//! The callers that a route accepts, and how they authenticate.

use std::sync::Arc;

use domain::ids::PermissionId;
use domain::user::{User, UserLevel};
use server::reply::Refusal;
use services::auth::basic_login;

use super::call::{Call, Parameters};

/// The callers that a route accepts. Every route must declare them. Credentials are an access token or an API key in a
/// header, unless the variant names others.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Everyone. Invalid credentials are treated like missing ones.
    Anyone,
    /// Users of at least this level.
    From(UserLevel),
    /// Users of at least this level, who may also send an access token as the query parameter `token`. For players that
    /// cannot send headers.
    FromHeaderOrQuery(UserLevel),
    /// Users of at least this level, and callers without credentials from the networks that need none for this route.
    UsersOrNetworks(UserLevel),
    /// The same for films and episodes: users may also send an access token, or a token that plays
    /// this title only, as the query parameter `token`. The title is the parameter `{uuid}`.
    TitleOrNetworks(UserLevel),
    /// The same for playlists and guides, which players fetch with what people type as an address: users may also send
    /// their name and password as the parameters `username` and `password` of the query, or by `Authorization: Basic`.
    /// Callers from other networks are asked for them with 401, because many programs send them only then.
    PlayersOrNetworks(UserLevel),
    /// The user whose name and password are the parameters `{user}` and `{password}` of the path, from any network.
    PathLogin,
    /// The user whose name and password are the parameters `username` and `password` of the query or, with POST, of a
    /// form, from any network. Wrong passwords are answered and slowed down as for [`Access::PathLogin`]. Used by the
    /// requests of player apps: `player_api.php`, `panel_api.php`, `get.php`, `xmltv.php`.
    QueryLogin,
    /// Depends on the parameters of the path: one of the other variants.
    Depends { on: fn(&Parameters) -> Access, description: &'static str },
}

/// Any user.
pub const STREAMER: Access = Access::From(UserLevel::Streamer);
pub const STANDARD: Access = Access::From(UserLevel::Standard);
pub const ADMIN: Access = Access::From(UserLevel::Admin);

impl Access {
    /// Returns the user of a request that has this access, or `None` if it needs no user. A permission can take the place of a
    /// level.
    pub(super) async fn authenticate(
        self,
        call: &Call,
        permission: Option<PermissionId>,
    ) -> Result<Option<Arc<User>>, Refusal> {
        let auth = &call.frame.auth;
        match self.for_parameters(&call.parameters) {
            Self::Anyone => Ok(auth.user_of(&call.headers).ok().flatten()),
            Self::From(level) => {
                let user = auth.user_of(&call.headers)?.ok_or_else(Refusal::no_credentials)?;
                if user.may_with(level, permission) { Ok(Some(user)) } else { Err(Refusal::no_permission()) }
            }
            Self::FromHeaderOrQuery(level) => {
                let user = match auth.user_of(&call.headers)? {
                    None => call.query.single("token").map(|it| auth.user_of_token(it)).transpose()?,
                    user => user,
                };
                permitted(user, level)
            }
            Self::UsersOrNetworks(level) => match auth.user_of(&call.headers)? {
                None => call.check_anonymous().map(|()| None),
                user => permitted(user, level),
            },
            Self::TitleOrNetworks(level) => {
                let user = match (auth.user_of(&call.headers)?, call.query.single("token")) {
                    (None, Some(token)) => {
                        let of_title = auth.user_of_play_token(token, call.uuid()?);
                        Some(of_title.or_else(|_| auth.user_of_token(token))?)
                    }
                    (user, _) => user,
                };
                match user {
                    None => call.check_anonymous().map(|()| None),
                    user => permitted(user, level),
                }
            }
            Self::PlayersOrNetworks(level) => {
                player_or_network(call, level).await.map_err(Refusal::asking_for_login)
            }
            Self::PathLogin => player(call, call.text("user")?, call.text("password")?).await,
            Self::QueryLogin => {
                let (username, password) = call.query_login().ok_or_else(Refusal::no_credentials)?;
                player(call, username, password).await
            }
            Self::Depends { .. } => {
                Err(Refusal::fault(format_args!("choose the access of {}", call.pattern)))
            }
        }
    }

    /// Returns the access for these parameters, which is not `Depends`.
    pub fn for_parameters(self, parameters: &Parameters) -> Self {
        match self {
            Self::Depends { on, .. } => on(parameters),
            access => access,
        }
    }

    /// Returns the minimum level of the user, or `None` if callers need no credentials in a header or in the query.
    pub fn level(self) -> Option<UserLevel> {
        match self {
            Self::From(level) | Self::FromHeaderOrQuery(level) => Some(level),
            Self::Anyone
            | Self::UsersOrNetworks(_)
            | Self::TitleOrNetworks(_)
            | Self::PlayersOrNetworks(_)
            | Self::PathLogin
            | Self::QueryLogin
            | Self::Depends { .. } => None,
        }
    }
}

/// Returns the user for [`Access::PlayersOrNetworks`]. A login in the query comes before one in the header, which may be
/// meant for a proxy.
async fn player_or_network(call: &Call, level: UserLevel) -> Result<Option<Arc<User>>, Refusal> {
    let user = match call.frame.auth.user_of(&call.headers)? {
        Some(user) => Some(user),
        None if call.has_query_login() => {
            let (username, password) = call.query_login().ok_or_else(Refusal::no_credentials)?;
            player(call, username, password).await?
        }
        None => match basic_login(&call.headers)? {
            Some((username, password)) => player(call, &username, password.expose()).await?,
            // Not the 403 of the network: a login helps.
            None => return call.check_anonymous().map(|()| None).map_err(|_| Refusal::no_credentials()),
        },
    };
    permitted(user, level)
}

/// Logs a player in.
async fn player(call: &Call, username: &str, password: &str) -> Result<Option<Arc<User>>, Refusal> {
    let caller = &call.caller;
    Ok(Some(call.frame.auth.player(username, password, caller.address(), &caller.agent).await?))
}

fn permitted(user: Option<Arc<User>>, level: UserLevel) -> Result<Option<Arc<User>>, Refusal> {
    let user = user.ok_or_else(Refusal::no_credentials)?;
    if user.may(level) { Ok(Some(user)) } else { Err(Refusal::no_permission()) }
}
