//! The requests of the operator, and how they are executed on the store.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use actors::now_ms;
use anyhow::{Context, bail, ensure};
use config::{DataFolder, PublicUrl};
use domain::account::Account;
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use domain::cluster::version::MemberVersions;
use domain::ids::UserId;
use domain::login::DeviceLogin;
use domain::secret::{Secret, ServerKeys};
use domain::user::{PasswordHash, User, UserLevel, check_admin_password, check_username, is_last_superuser};
use node::file::NodeFile;
use node::join::{create_token, remove_node};
use node::versions::{self, Raised};
use serde::{Deserialize, Serialize};
use services::auth::{PASSWORD_BYTES_MAX, SERVER_KEYS, hash_password, random};
use services::backups::uploaded_files;
use services::files::Files;
use services::strm_export::{ExportChoices, ExportOrder, ExportReport};
use storage::backup::{BackupSecret, create_backup};
use storage::records::remove_playlists_of;
use storage::{Error, Models, Store, Write};

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
    /// Replaces the key that signs tokens, which ends all logins.
    RotateTokenKey,
    /// Lists all accounts with their logins, so that a command can try them.
    ListAccounts,
    /// Writes STRM files. Missing values are those of the settings.
    ExportStrm {
        folder: Option<String>,
        username: Option<String>,
        has_nfo: Option<bool>,
        /// That of the configuration.
        public_url: Option<PublicUrl>,
    },
    /// Writes a back-up to a new file.
    BackUp { file: PathBuf, passphrase: Option<Secret> },
    /// Makes a token with which a machine joins the cluster in this role.
    JoinToken { role: NodeRole },
    /// Begins or ends the drain of this node of the cluster.
    Drain { is_draining: bool },
    /// Revokes the certificates of a node of the cluster, and gives the others new data keys.
    RemoveNode { node: NodeId },
    /// Raises the version that the nodes of the cluster write, to the highest that these nodes read.
    Finalize { members: Vec<MemberVersions>, is_forced: bool },
    /// Replaces the running gateway by a new process. The reply comes when that is prepared.
    Restart,
}

/// Answer to a request that succeeded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    Done,
    /// The version of the nodes was raised, unless it stayed the same.
    Finalized(Raised),
    /// The text of a join token.
    Token {
        token: Secret,
    },
    Users {
        users: Vec<UserSummary>,
    },
    Accounts {
        accounts: Vec<Account>,
    },
    BackedUp {
        records: u64,
        bytes: u64,
    },
    Exported {
        folder: String,
        report: ExportReport,
    },
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
    /// Returns whether the request changes what all nodes of a cluster share.
    pub(super) fn is_shared(&self) -> bool {
        match self {
            Self::AddUser { .. }
            | Self::SetPassword { .. }
            | Self::DeleteUser { .. }
            | Self::RotateTokenKey
            | Self::JoinToken { .. }
            | Self::RemoveNode { .. }
            | Self::Finalize { .. } => true,
            Self::ListUsers
            | Self::ListAccounts
            | Self::ExportStrm { .. }
            | Self::BackUp { .. }
            | Self::Drain { .. }
            | Self::Restart => false,
        }
    }

    /// Returns whether the request makes sense without a store, which it then creates.
    pub(super) fn may_create_store(&self) -> bool {
        matches!(self, Self::AddUser { .. })
    }
}

/// Executes a request on the store of a data folder. `models` are those of the running gateway. Blocks, for the disk and
/// for the hash of a password.
pub(super) fn execute(
    folder: &DataFolder,
    store: &Store,
    models: Option<&Models>,
    request: ControlRequest,
) -> anyhow::Result<ControlReply> {
    match request {
        ControlRequest::AddUser { name, level, is_superuser, password } => {
            let name = check_username(&name)?;
            let mut user = User::new(UserId(0), &name, level, now_ms());
            user.is_superuser = is_superuser;
            user.is_staff = is_superuser;
            let hash = hashed(&password, &name)?;
            check_strength(&user, &password, &hash)?;
            user.set_password(hash);
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
        ControlRequest::JoinToken { role } => {
            let token = create_token(store, role, now_ms())?;
            Ok(ControlReply::Token { token: Secret::new(token.to_text()) })
        }
        ControlRequest::RemoveNode { node } => {
            let file = NodeFile::read(&folder.node())?.context("this gateway belongs to no cluster")?;
            remove_node(store, &file, node, now_ms())?;
            Ok(ControlReply::Done)
        }
        ControlRequest::Finalize { members, is_forced } => {
            let raised = store.write_blocking(move |write| versions::raise(write, members, is_forced))?;
            Ok(ControlReply::Finalized(raised))
        }
        // The running gateway does not get here.
        ControlRequest::Drain { .. } => bail!("no gateway runs on this data folder"),
        ControlRequest::Restart => bail!("no gateway runs on this data folder"),
        ControlRequest::ListUsers => {
            let users = store.collection::<User>().all()?;
            Ok(ControlReply::Users { users: users.into_iter().map(summary).collect() })
        }
        ControlRequest::SetPassword { name, password, revoke_secrets } => {
            let hash = hashed(&password, &name)?;
            change(store, move |write| {
                let mut user = named(write, &name)?;
                check_strength(&user, &password, &hash)?;
                user.set_password(hash);
                end_logins(write, &user)?;
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
            end_logins(write, &user)?;
            remove_playlists_of(write, user.id)?;
            write.remove::<User>(user.id.0)?;
            Ok(())
        }),
        ControlRequest::ListAccounts => {
            Ok(ControlReply::Accounts { accounts: store.collection::<Account>().all()? })
        }
        ControlRequest::ExportStrm { folder, username, has_nfo, public_url } => {
            let models = match models {
                Some(models) => models.clone(),
                None => Models::new(store.clone())?,
            };
            let choices = ExportChoices { folder, username, has_nfo };
            let order = ExportOrder::new(&models, choices, public_url.as_ref())?;
            let report = order.run(&models)?;
            Ok(ControlReply::Exported { folder: order.folder.display().to_string(), report })
        }
        ControlRequest::BackUp { file, passphrase } => back_up(folder, store, &file, passphrase),
        ControlRequest::RotateTokenKey => change(store, |write| {
            let keys = write.get::<ServerKeys>(SERVER_KEYS)?.context("the store has no keys")?;
            write.put(&ServerKeys { tokens: random(), ..keys })?;
            for login in write.all::<DeviceLogin>()? {
                write.remove::<DeviceLogin>(login.id.0)?;
            }
            Ok(())
        }),
    }
}

fn back_up(
    folder: &DataFolder,
    store: &Store,
    path: &Path,
    passphrase: Option<Secret>,
) -> anyhow::Result<ControlReply> {
    let secret = match passphrase {
        Some(passphrase) => BackupSecret::Passphrase(passphrase),
        None => BackupSecret::from_key_file(&folder.key())?,
    };
    let uploads = uploaded_files(&Files::new(folder.root()))?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("failed to create {}", path.display()))?;
    let made = create_backup(store, &uploads, &secret, now_ms(), &mut file);
    let manifest = made.inspect_err(|_| {
        // A part of a back-up is refused when it is restored.
        let _ = fs::remove_file(path);
    })?;
    let records = manifest.collections.iter().map(|it| it.records).sum();
    Ok(ControlReply::BackedUp { records, bytes: file.metadata()?.len() })
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

fn end_logins(write: &mut Write<'_>, user: &User) -> anyhow::Result<()> {
    for login in write.by::<DeviceLogin>("user", user.id.0.to_be_bytes())? {
        write.remove::<DeviceLogin>(login.id.0)?;
    }
    Ok(())
}

/// Refuses a password that is too weak for an admin.
fn check_strength(user: &User, password: &Secret, hash: &PasswordHash) -> anyhow::Result<()> {
    if user.effective_level() == UserLevel::Admin && hash.is_weak {
        check_admin_password(password.expose(), &user.username)?;
    }
    Ok(())
}

fn hashed(password: &Secret, username: &str) -> anyhow::Result<PasswordHash> {
    let password = password.expose();
    ensure!(!password.is_empty(), "the password is empty");
    ensure!(password.len() <= PASSWORD_BYTES_MAX, "the password is longer than {PASSWORD_BYTES_MAX} bytes");
    let is_weak = check_admin_password(password, username).is_err();
    Ok(PasswordHash { hash: hash_password(password), is_weak })
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
