//! The requests of the operator, and how they are executed on the store.

use actors::now_ms;
use anyhow::{Context, bail, ensure};
use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{User, UserLevel, check_username, is_last_superuser};
use serde::{Deserialize, Serialize};
use storage::{Error, Store, Write};

use crate::auth::{PASSWORD_BYTES_MAX, hash_password};

/// A request of the operator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(crate) enum ControlRequest {
    /// Creates a user.
    AddUser { name: String, level: UserLevel, is_superuser: bool, password: Secret },
    /// Lists all users.
    ListUsers,
    /// Replaces the password of a user, which ends all logins. Also removes the API key and the player password if
    /// asked.
    SetPassword { name: String, password: Secret, revoke_secrets: bool },
    /// Deletes a user.
    DeleteUser { name: String },
}

/// Answer to a request that succeeded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    Done,
    Users { users: Vec<UserSummary> },
}

/// A user in the list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UserSummary {
    pub(crate) id: UserId,
    pub(crate) username: String,
    pub(crate) level: UserLevel,
    pub(crate) is_superuser: bool,
    pub(crate) is_active: bool,
    /// Milliseconds since 1970.
    pub(crate) last_login: Option<i64>,
}

impl ControlRequest {
    /// Returns whether the request makes sense without a store, which it then creates.
    pub(super) fn may_create_store(&self) -> bool {
        matches!(self, Self::AddUser { .. })
    }
}

/// Executes a request. Blocks, for the disk and for the hash of a password.
pub(super) fn execute(store: &Store, request: ControlRequest) -> anyhow::Result<ControlReply> {
    match request {
        ControlRequest::AddUser { name, level, is_superuser, password } => {
            check_username(&name)?;
            let hash = hashed(&password)?;
            let mut user = User::new(UserId(0), &name, level, now_ms());
            user.password = Some(hash);
            user.is_superuser = is_superuser;
            user.is_staff = is_superuser;
            let written = store.write_blocking(move |write| {
                user.id = UserId(write.next_id::<User>()?);
                write.put(&user)
            });
            match written {
                Err(Error::Taken { .. }) => bail!("user {name} already exists"),
                written => written?,
            }
            Ok(ControlReply::Done)
        }
        ControlRequest::ListUsers => {
            let users = store.collection::<User>().all()?;
            Ok(ControlReply::Users { users: users.into_iter().map(summary).collect() })
        }
        ControlRequest::SetPassword { name, password, revoke_secrets } => {
            let hash = hashed(&password)?;
            change(store, move |write| {
                let mut user = named(write, &name)?;
                user.set_password(hash);
                if revoke_secrets {
                    user.revoke_secrets();
                }
                Ok(write.put(&user)?)
            })
        }
        ControlRequest::DeleteUser { name } => change(store, move |write| {
            let user = named(write, &name)?;
            if is_last_superuser(&write.all::<User>()?, user.id) {
                bail!("user {name} is the last active superuser; create another one first");
            }
            write.remove::<User>(user.id.0)?;
            Ok(())
        }),
    }
}

/// Runs a function as one transaction: an error discards its changes.
fn change(
    store: &Store,
    change: impl FnOnce(&mut Write<'_>) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<ControlReply> {
    store.write_blocking(move |write| change(write).map_err(WriteError))?;
    Ok(ControlReply::Done)
}

/// An error of a transaction: a refusal, or an error of the store.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct WriteError(anyhow::Error);

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

fn named(write: &Write<'_>, name: &str) -> anyhow::Result<User> {
    let found = write.by::<User>("username", User::name_key(name))?;
    found.into_iter().next().with_context(|| format!("there is no user {name}"))
}

fn hashed(password: &Secret) -> anyhow::Result<Secret> {
    let password = password.expose();
    ensure!(!password.is_empty(), "the password is empty");
    ensure!(password.len() <= PASSWORD_BYTES_MAX, "the password is longer than {PASSWORD_BYTES_MAX} bytes");
    Ok(hash_password(password))
}

fn summary(user: User) -> UserSummary {
    UserSummary {
        id: user.id,
        level: user.effective_level(),
        username: user.username,
        is_superuser: user.is_superuser,
        is_active: user.is_active,
        last_login: user.last_login,
    }
}
