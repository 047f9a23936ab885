//! Uploaded playlists: a file of the data folder belongs to one account, and is replaced by the next one.

use actors::now_ms;
use domain::account::{Account, PlaylistLocation};
use http::StatusCode;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::upload::Upload;
use server::reply::Refusal;
use services::files::Folder;

use super::built_in::{LOCKED, find_unlocked};
use super::logins;
use super::refresh::refresh_if_possible;
use super::view::M3UAccountView;
use crate::context::RestCall;
use crate::record::RecordCall;
use crate::saved_upload::{SavedUpload, remove_upload};

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
    let known = call.rest().models.accounts.load().get(id).cloned();
    if known.ok_or_else(Refusal::unknown::<Account>)?.is_custom() {
        return Err(Refusal::bad_request(LOCKED));
    }
    let saved = save(&call, file).await?;
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

/// Saves an uploaded playlist under a new name.
pub(super) async fn save(call: &Call, file: Upload) -> Result<SavedUpload, Refusal> {
    SavedUpload::save(call, file, Folder::Playlists, "m3u").await
}

/// Removes the uploaded file of a list that no account uses any more.
pub(super) async fn remove(call: &Call, list: &PlaylistLocation) {
    if let PlaylistLocation::Upload(name) = list {
        remove_upload(call, Folder::Playlists, name.clone()).await;
    }
}
