//! Uploaded playlists: a file of the data folder belongs to one account, and is replaced by the next one.

use actors::now_ms;
use domain::account::{Account, PlaylistLocation};
use http::StatusCode;
use tracing::warn;
use uuid::Uuid;

use super::accounts::refresh_if_possible;
use super::view::M3UAccountView;
use super::{LOCKED, find_unlocked, logins};
use crate::files::Folder;
use crate::http::reply::Refusal;
use crate::rest::frame::access::ADMIN;
use crate::rest::frame::call::Call;
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::route::Route;
use crate::rest::frame::upload::Upload;

const UPLOAD: &str = "/api/m3u/accounts/{id}/upload/";

/// Maximum size of an uploaded playlist, in bytes. The largest known have half of it, and compressed ones a twentieth.
pub(super) const PLAYLIST_BYTES_MAX: u64 = 256 << 20;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            UPLOAD,
            ADMIN,
            "Replaces the playlist of an account by an uploaded file, and imports it.",
            upload,
        )
        .with_upload(PLAYLIST_BYTES_MAX)
        .refuses(StatusCode::BAD_REQUEST, LOCKED),
    ]
}

async fn upload(call: Call, file: Upload) -> Result<M3UAccountView, Refusal> {
    let id = call.id()?;
    let known = call.app.models.accounts.load().get(id).cloned();
    if known.ok_or_else(Refusal::unknown::<Account>)?.is_custom() {
        return Err(Refusal::bad_request(LOCKED));
    }
    let saved = Saved::of(&call, file).await?;
    let list = PlaylistLocation::Upload(saved.name.clone());
    let (account, before) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            let before = std::mem::replace(&mut account.list, list);
            logins::forget_answers(write, &mut account)?;
            account.updated_at = now_ms();
            write.put(&account)?;
            Ok((account, before))
        })
        .await?;
    saved.keep();
    remove(&call, &before).await;
    refresh_if_possible(&call, &account, true).await;
    call.render(&account)
}

/// A saved file. It is removed again unless the account that uses it was written.
pub(super) struct Saved {
    pub(super) name: String,
    app: std::sync::Arc<crate::app::App>,
    is_kept: bool,
}

impl Saved {
    /// Saves an uploaded playlist under a new name.
    pub(super) async fn of(call: &Call, file: Upload) -> Result<Self, Refusal> {
        if file.len() == 0 {
            return Err(FieldErrors::of("file", "The submitted file is empty.").into());
        }
        let name = format!("{}.m3u", Uuid::new_v4());
        let (app, to) = (call.app.clone(), name.clone());
        let saved = tokio::task::spawn_blocking(move || app.files.save(Folder::Playlists, &to, file.open()?));
        match saved.await {
            Ok(Ok(())) => Ok(Saved { name, app: call.app.clone(), is_kept: false }),
            Ok(Err(error)) => {
                warn!("failed to store an uploaded playlist: {error}");
                Err(Refusal::unavailable("The file cannot be stored: the data folder refuses it."))
            }
            Err(error) => Err(Refusal::fault(format_args!("store an uploaded playlist: {error}"))),
        }
    }

    /// Keeps the file, because an account uses it now.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = self.app.files.remove(Folder::Playlists, &self.name)
        {
            warn!("failed to remove an uploaded playlist that no account uses: {error}");
        }
    }
}

/// Removes the uploaded file of a list that no account uses any more.
pub(super) async fn remove(call: &Call, list: &PlaylistLocation) {
    let PlaylistLocation::Upload(name) = list else { return };
    let (app, name) = (call.app.clone(), name.clone());
    let removed = tokio::task::spawn_blocking(move || app.files.remove(Folder::Playlists, &name)).await;
    if !matches!(removed, Ok(Ok(()))) {
        warn!("failed to remove an uploaded playlist that no account uses");
    }
}
