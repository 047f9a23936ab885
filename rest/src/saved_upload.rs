//! Uploaded files that a record keeps: each belongs to one record, and is replaced by the next one.

use std::sync::Arc;

use media::spawn_blocking;
use node::uploads::share_upload;
use route_frame::call::Call;
use route_frame::upload::{FILE, Upload};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::files::Folder;
use tracing::warn;
use uuid::Uuid;

use crate::context::{RestCall, RestContext};

/// A saved file. It is removed again unless the record that uses it was written.
pub(crate) struct SavedUpload {
    pub(crate) name: String,
    folder: Folder,
    context: Arc<RestContext>,
    is_kept: bool,
}

impl SavedUpload {
    /// Saves an uploaded file under a new name with this extension.
    pub(crate) async fn save(
        call: &Call,
        file: Upload,
        folder: Folder,
        extension: &str,
    ) -> Result<Self, Refusal> {
        if file.n_bytes() == 0 {
            return Err(FieldErrors::new(FILE, "The submitted file is empty.").into());
        }
        let name = format!("{}.{extension}", Uuid::new_v4());
        let (context, to) = (Arc::clone(call.rest()), name.clone());
        match spawn_blocking(move || context.files.save(folder, &to, file.open()?)).await {
            Ok(Ok(())) => {
                let saved = SavedUpload { name, folder, context: Arc::clone(call.rest()), is_kept: false };
                share_upload(&call.rest().nodes, folder, &saved.name).await?;
                Ok(saved)
            }
            Ok(Err(error)) => {
                warn!("failed to store an uploaded file: {error}");
                Err(Refusal::unavailable("The file cannot be stored: the data folder refuses it."))
            }
            Err(error) => Err(Refusal::fault(format_args!("store an uploaded file: {error}"))),
        }
    }

    /// Keeps the file, because a record uses it now.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for SavedUpload {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = self.context.files.remove(self.folder, &self.name)
        {
            warn!("failed to remove an uploaded file that nothing uses: {error}");
        }
    }
}

/// Removes an uploaded file that no record uses any more.
pub(crate) async fn remove_upload(call: &Call, folder: Folder, name: String) {
    let context = Arc::clone(call.rest());
    if !matches!(spawn_blocking(move || context.files.remove(folder, &name)).await, Ok(Ok(()))) {
        warn!("failed to remove an uploaded file that nothing uses");
    }
}
