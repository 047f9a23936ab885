//! `/api/channels/logos/{id}/cache/` and the same with a version: the image of a logo. Every logo has one at once: a
//! placeholder, where the gateway has no copy or none yet.

use bytes::Bytes;
use domain::logo::Logo;
use media::spawn_blocking;
use node::uploads::fetch_upload;
use route_frame::call::Call;
use server::reply::Refusal;
use services::files::Folder;
use services::logo_cache::{logo_state, way_to_logo};

use crate::context::RestCall;
use crate::images::{Image, PictureName};

pub(super) async fn image(call: Call) -> Result<Image, Refusal> {
    show(&call, None).await
}

pub(super) async fn image_of_version(call: Call) -> Result<Image, Refusal> {
    show(&call, Some(&PictureName::from_call(&call)?)).await
}

async fn show(call: &Call, name: Option<&PictureName>) -> Result<Image, Refusal> {
    let logo = call.rest().models.logos.load().get(call.id()?).cloned();
    let logo = logo.ok_or_else(Refusal::unknown::<Logo>)?;
    let bytes = match &logo.file {
        Some(file) => uploaded(call, file).await,
        None => call.rest().pictures.logo_cache.get(&logo.url, way_to_logo(&call.rest().models, &logo)).await,
    };
    let is_present = name.is_some_and(|it| it.is_version_of(&logo_state(&logo)));
    let image = bytes.and_then(|it| Image::new(it, &call.headers)).map(|it| it.kept_long(is_present));
    Ok(image.unwrap_or_else(|| Image::placeholder(&call.headers)))
}

/// Returns an uploaded file; `None` if it cannot be read.
async fn uploaded(call: &Call, file: &str) -> Option<Bytes> {
    let path = call.rest().files.path(Folder::Logos, file).ok()?;
    fetch_upload(&call.rest().nodes, Folder::Logos, file).await;
    let read = spawn_blocking(move || std::fs::read(path)).await;
    read.ok()?.ok().map(Bytes::from)
}
