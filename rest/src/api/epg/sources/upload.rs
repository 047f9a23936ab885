//! Uploaded guides: a file of the data folder belongs to one source, and is replaced by the next one.

use domain::guide::source::{GuideSource, GuideSourceKind};
use http::StatusCode;
use resource_derive::Body;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, Route};
use route_frame::upload::Upload;
use server::reply::Refusal;
use services::files::Folder;

use super::edit::SourceChange;
use super::records::{forget_content, new_source, touch};
use super::refreshes::{after_update, refresh_if_possible};
use super::view::{EPGSourceEdit, EPGSourceView};
use crate::context::RestCall;
use crate::record::{RecordCall, find};
use crate::saved_upload::SavedUpload;

const NEW: &str = "/api/epg/sources/upload/";
const REPLACE: &str = "/api/epg/sources/{id}/upload/";

/// Maximum size of an uploaded guide, in bytes. The largest known have a quarter of it when they are compressed.
const GUIDE_BYTES_MAX: u64 = 512 << 20;

/// A guide source from a file.
#[derive(Clone, Debug, Body)]
pub(crate) struct EPGUpload {
    /// Unique name; that of the file by default.
    #[field(chars_max = 255, example = "Guide")]
    name: Option<String>,
    /// Of two sources with a channel of the same id, the one with the larger number is used.
    #[field(example = "0")]
    priority: Option<i32>,
}

pub(super) fn routes() -> Vec<Route> {
    const NO_FILE: &str = "The source is not of the type xmltv.";
    vec![
        Route::post(NEW, ADMIN, "Creates a guide source from an uploaded file, and reads it.", create)
            .with_upload(GUIDE_BYTES_MAX),
        Route::post(
            REPLACE,
            ADMIN,
            "Replaces the guide of a source by an uploaded file, and reads it.",
            replace,
        )
        .with_upload(GUIDE_BYTES_MAX)
        .refuses(StatusCode::BAD_REQUEST, NO_FILE),
    ]
}

async fn create(call: Call, (body, file): (EPGUpload, Upload)) -> Result<Created<EPGSourceView>, Refusal> {
    let of_file = file.file_name().map(stem).filter(|it| !it.is_empty());
    let name = body.name.or(of_file).unwrap_or_else(|| "Guide".to_owned());
    let name = name.chars().take(255).collect();
    let change = EPGSourceEdit { name: Some(name), priority: body.priority, ..EPGSourceEdit::default() };
    let change = SourceChange::new(change)?;
    let saved = save(&call, file).await?;
    let name = saved.name.clone();
    let source = call
        .write(move |write| {
            let mut source = new_source(write, GuideSourceKind::Xmltv)?;
            change.apply(write, &mut source, Some(name))?;
            write.put(&source)?;
            Ok(source)
        })
        .await?;
    saved.keep();
    let view = call.render(&source)?;
    refresh_if_possible(&call, &source, true).await;
    Ok(Created(view))
}

async fn replace(call: Call, file: Upload) -> Result<EPGSourceView, Refusal> {
    let id = call.id()?;
    let known = call.rest().models.guide_sources.load().get(id).cloned();
    check_kind(&*known.ok_or_else(Refusal::unknown::<GuideSource>)?)?;
    let saved = save(&call, file).await?;
    let (change, name) = (SourceChange::new(EPGSourceEdit::default())?, saved.name.clone());
    let (source, before) = call
        .write(move |write| {
            let before = find::<GuideSource>(write, id)?;
            check_kind(&before)?;
            let mut source = before.clone();
            change.apply(write, &mut source, Some(name))?;
            touch(&mut source, &before);
            write.put(&source)?;
            forget_content(write, source.id)?;
            Ok((source, before))
        })
        .await?;
    saved.keep();
    after_update(&call, &source, &before).await;
    call.render(&source)
}

fn check_kind(source: &GuideSource) -> Result<(), Refusal> {
    match source.kind {
        GuideSourceKind::Xmltv => Ok(()),
        _ => Err(Refusal::bad_request("Only a guide source of the type xmltv has a file.")),
    }
}

async fn save(call: &Call, file: Upload) -> Result<SavedUpload, Refusal> {
    SavedUpload::save(call, file, Folder::Guides, "xmltv").await
}

/// Returns the name of a file without folders and without the extensions of guides.
fn stem(file_name: &str) -> String {
    let mut name = file_name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    for ending in [".gz", ".xz", ".zip", ".xmltv", ".xml"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_after_its_file_without_folders_and_extensions() {
        for (file, name) in [
            ("guide.xml", "guide"),
            ("guide.xml.gz", "guide"),
            ("C:\\guides\\My guide.xmltv.xz", "My guide"),
            ("../../etc/passwd", "passwd"),
            (".xml", ""),
        ] {
            assert_eq!(stem(file), name);
        }
    }
}
