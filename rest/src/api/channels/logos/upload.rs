//! `/api/channels/logos/upload/`: logos from files, and the files that no logo needs.

use std::collections::HashSet;
use std::sync::Arc;

use actors::now_ms;
use domain::ids::LogoId;
use domain::logo::{LOGO_NAME_CHARS_MAX, Logo, logo_copy_path};
use domain::undo::UNDO_AGE_MS_MAX;
use media::spawn_blocking;
use node::uploads::share_upload;
use resource_derive::Body;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Created;
use route_frame::upload::Upload;
use server::reply::Refusal;
use services::files::Folder;
use services::image_types::ImageType;
use tracing::warn;
use uuid::Uuid;

use super::view::LogoView;
use crate::context::RestCall;
use crate::record::RecordCall;

/// A logo from a file.
#[derive(Clone, Debug, Body)]
pub(crate) struct LogoUpload {
    /// Name of the logo; that of the file by default.
    #[field(chars_max = LOGO_NAME_CHARS_MAX, example = "News")]
    name: Option<String>,
}

pub(super) async fn upload(
    call: Call,
    (body, file): (LogoUpload, Upload),
) -> Result<Created<LogoView>, Refusal> {
    let of_file = file.file_name().map(stem).filter(|it| !it.is_empty());
    let name = body.name.or(of_file).unwrap_or_else(|| "Logo".to_owned());
    let name: String = name.chars().take(LOGO_NAME_CHARS_MAX).collect();
    let read = run_blocking("read an upload", move || file.bytes()).await?;
    let bytes = read.map_err(|error| Refusal::fault(format_args!("read an upload: {error}")))?;
    let image_type = ImageType::from_content(&bytes)
        .ok_or_else(|| Refusal::field("file", "Upload a PNG, JPEG, GIF, WebP or SVG image."))?;
    let file = format!("{}.{}", Uuid::new_v4().simple(), image_type.extension());
    // Until the record is stored, the file would look unused.
    let held = call.rest().pictures.logo_files.lock().await;
    let (context, saved) = (Arc::clone(call.rest()), file.clone());
    let saved =
        run_blocking("save a logo", move || context.files.save(Folder::Logos, &saved, &bytes[..])).await?;
    saved.map_err(|error| Refusal::unavailable(format!("The logo cannot be saved: {error}.")))?;
    if let Err(refusal) = share_upload(&call.rest().nodes, Folder::Logos, &file).await {
        drop(held);
        remove_unused_files(&call).await;
        return Err(refusal);
    }
    let created = call
        .create(move |_, id| {
            let id = LogoId(id);
            let url = logo_copy_path(id);
            Ok(Logo {
                id,
                name,
                url,
                file: Some(file),
                named_by: None,
                guide_source: None,
                updated_at: now_ms(),
            })
        })
        .await;
    drop(held);
    if created.is_err() {
        remove_unused_files(&call).await;
    }
    created
}

/// Returns the name of a file without folders and extension.
fn stem(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |it| it.0);
    stem.chars().filter(|it| !it.is_control()).collect::<String>().trim().to_owned()
}

/// Deletes the uploaded files that neither a logo nor an undo needs. Returns their number.
pub(super) async fn remove_unused_files(call: &Call) -> usize {
    let _held = call.rest().pictures.logo_files.lock().await;
    let context = Arc::clone(call.rest());
    let removing = spawn_blocking(move || {
        let names = context.files.names(Folder::Logos)?;
        let (logos, entries) = (context.models.logos.load(), context.models.undo.load());
        let is_current = |at: i64| now_ms().saturating_sub(at) < UNDO_AGE_MS_MAX;
        let of_logos = logos.iter().filter_map(|it| it.file.clone());
        let of_entries = entries.iter().filter(|it| is_current(it.at)).flat_map(|it| it.files.clone());
        let needed: HashSet<String> = of_logos.chain(of_entries).collect();
        let mut n_removed = 0;
        for name in names.iter().filter(|it| !needed.contains(*it)) {
            context.files.remove(Folder::Logos, name)?;
            n_removed += 1;
        }
        std::io::Result::Ok(n_removed)
    });
    match removing.await {
        Ok(Ok(n_removed)) => n_removed,
        Ok(Err(error)) => {
            warn!("failed to delete unused logo files: {error}");
            0
        }
        Err(error) => {
            warn!("failed to delete unused logo files: {error}");
            0
        }
    }
}
