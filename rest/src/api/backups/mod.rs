//! `/api/backups/`: back-ups of the store and of uploaded files.

mod schedule;
#[cfg(test)]
mod tests;

use std::fs::File;

use domain::secret::Secret;
use domain::user::UserLevel;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH};
use http::{HeaderValue, Method, StatusCode};
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, Access};
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::{Accepted, Content, Created, MediaType, NoContent, Route};
use route_frame::upload::Upload;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::backups::{Backups, StoredBackup, Task, TaskRefusal, TaskState};
use storage::backup::{BackupError, BackupSecret, KeyKind, UnlockedArchive};
use tokio_util::io::ReaderStream;
use warp::Reply as _;
use warp::reply::Response as Reply;

use crate::api::text::sentence;
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// A back-up in the data folder.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BackupView {
    /// Name of the archive, a `.tar.gz`.
    #[field(example = "headwater-backup-2026.05.04.03.00.00.tar.gz")]
    name: String,
    /// Size in bytes.
    #[field(example = "49786")]
    size: u64,
    /// When it was made.
    created: Time,
    /// The secret that restores it: its passphrase, or the key file of the installation that made it. `null` for other
    /// files than back-ups.
    restores_with: Option<Named<KeyKind>>,
    /// Version of the program that made it.
    #[field(example = "0.2.0")]
    version: Option<String>,
}

/// Describes a new back-up.
#[derive(Debug, Body)]
pub(crate) struct NewBackup {
    /// Encrypts the secrets in the back-up. Without a passphrase it restores only with the key file of this installation.
    #[field(chars_max = 1024)]
    passphrase: Option<Option<Secret>>,
}

/// The secret of a back-up to restore.
#[derive(Debug, Body)]
pub(crate) struct RestoreSecret {
    /// The passphrase of the back-up, if it has one.
    #[field(chars_max = 1024)]
    passphrase: Option<Option<Secret>>,
    /// Content of the key file of the installation that made the back-up, if it was another one and the back-up has no
    /// passphrase.
    #[field(chars_max = 4096)]
    key: Option<Option<Secret>>,
}

/// A task that has been started.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BackupTaskView {
    /// Message for people.
    #[field(example = "Backup started")]
    detail: &'static str,
    /// Id of the task.
    task_id: String,
    /// Token with which the status can be read without a login.
    task_token: String,
}

/// Progress of a task.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BackupStatusView {
    /// `pending`, `running`, `completed` or `failed`.
    #[field(example = "completed")]
    state: Named<BackupTaskState>,
    /// The result of a completed task.
    result: Option<BackupResultView>,
    /// The reason of a failure.
    error: Option<String>,
}

/// Result of a completed task.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BackupResultView {
    /// Always `completed`.
    #[field(example = "completed")]
    status: &'static str,
    /// Name of the archive.
    filename: String,
    /// Size of a new archive in bytes.
    size: Option<u64>,
    /// After a restoration: says when the restored store is used.
    message: Option<&'static str>,
}

/// A token for a download without a login.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DownloadTokenView {
    /// Valid for at least five minutes.
    token: String,
}

/// Credentials for callers that cannot send headers.
#[derive(Debug, Query)]
pub(crate) struct TokenQuery {
    /// The token of the task or of the download.
    token: Option<String>,
}

choice!(KeyKind { Passphrase = "passphrase", KeyFile = "key_file" });
choice!(
    enum BackupTaskState {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
    }
);

/// `application/gzip`.
#[derive(Debug)]
pub(crate) struct Gzip;

impl MediaType for Gzip {
    const NAME: &'static str = "application/gzip";
}

/// Maximum size of an uploaded archive, in bytes.
const UPLOAD_BYTES_MAX: u64 = 4 << 30;

const LIST: &str = "/api/backups/";
const CREATE: &str = "/api/backups/create/";
const STATUS: &str = "/api/backups/status/{task}/";
const UPLOAD: &str = "/api/backups/upload/";
const RESTORE: &str = "/api/backups/{name}/restore/";
const DELETE: &str = "/api/backups/{name}/delete/";
const TOKEN: &str = "/api/backups/{name}/download-token/";
const DOWNLOAD: &str = "/api/backups/{name}/download/";

pub(super) fn routes() -> Vec<Route> {
    const WAITING: &str =
        "Other back-ups or restorations are waiting, or the gateway has no store of its own.";
    const NO_BACKUP: &str = "There is no back-up of this name.";
    let mut routes = vec![
        Route::get(LIST, ADMIN, "Lists back-ups.", list),
        Route::post(CREATE, ADMIN, "Starts a back-up.", create)
            .refuses(StatusCode::CONFLICT, WAITING)
            .that_reads(),
        Route::get(STATUS, Access::Anyone, "Returns the progress of a back-up or restoration.", status)
            .refuses(StatusCode::UNAUTHORIZED, "The request has neither a login nor a token.")
            .refuses(StatusCode::FORBIDDEN, "The token is not that of the task.")
            .refuses(StatusCode::NOT_FOUND, "There is no such task."),
        Route::post(UPLOAD, ADMIN, "Adds a back-up from a file.", upload)
            .with_upload(UPLOAD_BYTES_MAX)
            .refuses(
                StatusCode::BAD_REQUEST,
                "The file is not a complete back-up that this version can read.",
            ),
        Route::post(RESTORE, ADMIN, "Starts to restore a back-up.", restore)
            .refuses(StatusCode::BAD_REQUEST, "The back-up was changed, or its secret is missing or wrong.")
            .refuses(StatusCode::NOT_FOUND, NO_BACKUP)
            .refuses(StatusCode::CONFLICT, WAITING)
            .that_reads(),
        Route::delete(DELETE, ADMIN, "Deletes a back-up.", delete).refuses(StatusCode::NOT_FOUND, NO_BACKUP),
        Route::get(TOKEN, ADMIN, "Issues a token for a download.", download_token)
            .refuses(StatusCode::NOT_FOUND, NO_BACKUP),
        Route::get(DOWNLOAD, Access::Anyone, "Returns the archive of a back-up.", download)
            .refuses(StatusCode::UNAUTHORIZED, "The request has neither a login nor a token.")
            .refuses(StatusCode::FORBIDDEN, "The token is not for this back-up, or has expired.")
            .refuses(StatusCode::NOT_FOUND, NO_BACKUP),
    ];
    routes.extend(schedule::routes());
    routes
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<BackupView>, Refusal> {
    let listed = blocking(&call, |backups| backups.list()).await?;
    let listed = listed.map_err(|error| Refusal::fault(format_args!("list the back-ups: {error}")))?;
    paging.page_from(&call, listed.into_iter().map(view).collect())
}

async fn create(call: Call, new: NewBackup) -> Result<Accepted<BackupTaskView>, Refusal> {
    let task = call.rest().operation.backups.create(new.passphrase.flatten()).map_err(refused)?;
    Ok(started(&call, &task, "Backup started"))
}

async fn status(call: Call, query: TokenQuery) -> Result<BackupStatusView, Refusal> {
    let task = call.rest().operation.backups.task(call.text("task")?);
    let is_permitted =
        |token: &str| task.as_ref().is_some_and(|it| call.rest().operation.backups.is_task_token(it, token));
    authorize(&call, query.token.as_deref(), "Invalid task token", is_permitted)?;
    let task = task.ok_or_else(|| Refusal::not_found("Task not found"))?;
    Ok(progress(task.state()))
}

async fn upload(call: Call, file: Upload) -> Result<Created<BackupView>, Refusal> {
    let done = blocking(&call, move |backups| {
        let content = file.open().map_err(|source| BackupError::Io { what: "read the upload", source })?;
        backups.upload(file.file_name(), content)
    });
    Ok(Created(view(done.await?.map_err(unreadable)?)))
}

async fn restore(call: Call, secret: RestoreSecret) -> Result<Accepted<BackupTaskView>, Refusal> {
    let name = call.text("name")?.to_owned();
    let wanted = name.clone();
    let unlocked = blocking(&call, move |backups| unlock(backups, &wanted, secret)).await??;
    if call.rest().nodes.node().is_some() {
        return Err(Refusal::bad_request(
            "This gateway is a node of a cluster, whose nodes share one configuration. Stop it, run `headwater restore` and \
             `headwater cluster reseed` on this machine, and start it.",
        ));
    }
    let task = call.rest().operation.backups.restore(name, unlocked).map_err(refused)?;
    Ok(started(&call, &task, "Restore started"))
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let name = call.text("name")?.to_owned();
    let deleted = blocking(&call, move |backups| backups.delete(&name)).await?;
    match deleted.map_err(|error| Refusal::fault(format_args!("delete a back-up: {error}")))? {
        true => Ok(NoContent),
        false => Err(no_backup()),
    }
}

async fn download_token(call: Call) -> Result<DownloadTokenView, Refusal> {
    let name = call.text("name")?.to_owned();
    let wanted = name.clone();
    blocking(&call, move |backups| backups.file(&wanted)).await?.ok_or_else(no_backup)?;
    Ok(DownloadTokenView { token: call.rest().operation.backups.download_token(&name) })
}

async fn download(call: Call, query: TokenQuery) -> Result<Content<Gzip>, Refusal> {
    let name = call.text("name")?.to_owned();
    let is_permitted = |token: &str| call.rest().operation.backups.is_download_token(&name, token);
    authorize(&call, query.token.as_deref(), "Invalid download token", is_permitted)?;
    let wanted = name.clone();
    let file = blocking(&call, move |backups| backups.file(&wanted)).await?.ok_or_else(no_backup)?;
    archive_reply(&call, &name, file)
}

/// Returns a reply that streams an archive.
fn archive_reply(call: &Call, name: &str, file: File) -> Result<Content<Gzip>, Refusal> {
    let size =
        file.metadata().map_err(|error| Refusal::fault(format_args!("read a back-up: {error}")))?.len();
    let mut reply = match call.method == Method::HEAD {
        true => Reply::default(),
        false => warp::reply::stream(ReaderStream::new(tokio::fs::File::from_std(file))).into_response(),
    };
    let headers = reply.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    // Names of archives need no escapes.
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    Ok(Content::from_reply(reply))
}

/// Accepts admins, and callers with a valid token.
fn authorize(
    call: &Call,
    token: Option<&str>,
    wrong_token: &str,
    is_permitted: impl FnOnce(&str) -> bool,
) -> Result<(), Refusal> {
    match (call.identity().ok(), token) {
        (Some(user), _) if user.may(UserLevel::Admin) => Ok(()),
        (_, Some(token)) if is_permitted(token) => Ok(()),
        (_, Some(_)) => Err(Refusal::no_permission().with_detail(wrong_token)),
        (Some(_), None) => Err(Refusal::no_permission()),
        (None, None) => Err(Refusal::unauthorized("Authentication required")),
    }
}

/// Runs a function on a thread that may block.
async fn blocking<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Backups) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let backups = call.rest().operation.backups.clone();
    run_blocking("work with back-ups", move || work(&backups)).await
}

/// Verifies an archive under the secret that was sent, or else under the key file of this installation.
fn unlock(backups: &Backups, name: &str, sent: RestoreSecret) -> Result<UnlockedArchive, Refusal> {
    let archive = backups.open(name).ok_or_else(no_backup)?.map_err(unreadable)?;
    let secret = match (sent.passphrase.flatten(), sent.key.flatten()) {
        (Some(passphrase), _) => BackupSecret::Passphrase(passphrase),
        (None, Some(key)) => BackupSecret::KeyFile(key),
        (None, None) if archive.manifest().key_kind() == KeyKind::Passphrase => {
            return Err(unreadable(BackupError::NeedsPassphrase));
        }
        (None, None) => backups.own_key().map_err(unreadable)?,
    };
    archive.unlock(&secret).map_err(unreadable)
}

fn unreadable(error: BackupError) -> Refusal {
    let detail = sentence(&error);
    let field = match error {
        BackupError::NeedsPassphrase | BackupError::WrongPassphrase => "passphrase",
        BackupError::NeedsKeyFile | BackupError::WrongKeyFile => "key",
        BackupError::Io { .. } | BackupError::Store(_) => return Refusal::unavailable(detail),
        _ => return Refusal::bad_request(detail),
    };
    Refusal::field(field, detail)
}

fn refused(refusal: TaskRefusal) -> Refusal {
    let detail = match refusal {
        TaskRefusal::Disabled => {
            "This gateway has a temporary store, which is neither backed up nor restored."
        }
        TaskRefusal::TooMany => {
            "Other back-ups or restorations are waiting. Try again when they are complete."
        }
    };
    Refusal::status(StatusCode::CONFLICT).with_detail(detail)
}

fn no_backup() -> Refusal {
    Refusal::not_found("Backup file not found")
}

fn started(call: &Call, task: &Task, detail: &'static str) -> Accepted<BackupTaskView> {
    let task_token = call.rest().operation.backups.task_token(task);
    Accepted(BackupTaskView { detail, task_id: task.id.to_string(), task_token })
}

fn progress(state: TaskState) -> BackupStatusView {
    let completed = |filename: String, size, message| {
        let result = BackupResultView { status: "completed", filename, size, message };
        (BackupTaskState::Completed, Some(result), None)
    };
    let (state, result, error) = match state {
        TaskState::Pending => (BackupTaskState::Pending, None, None),
        TaskState::Running => (BackupTaskState::Running, None, None),
        TaskState::Made { name, n_bytes } => completed(name, Some(n_bytes), None),
        TaskState::Restored { name, restarts_now: true } => {
            completed(name, None, Some("The gateway restarts now with the restored store."))
        }
        TaskState::Restored { name, restarts_now: false } => completed(
            name,
            None,
            Some("Restart the gateway: the restored store is used from the next start."),
        ),
        TaskState::Failed(reason) => (BackupTaskState::Failed, None, Some(sentence(&reason))),
    };
    BackupStatusView { state: Named(state), result, error }
}

fn view(backup: StoredBackup) -> BackupView {
    BackupView {
        name: backup.name,
        size: backup.n_bytes,
        created: Time(backup.created_at),
        restores_with: backup.key_kind.map(Named),
        version: backup.program,
    }
}
