//! `/api/channels/logos/{id}/cache/`: the image of a logo. Every logo has one at once: a placeholder, where the gateway has
//! no copy or none yet.

use bytes::Bytes;
use domain::egress::{AllowedNetworks, Distance, Reach, reach_of_account};
use domain::logo::Logo;

use crate::files::Folder;
use crate::http::reply::Refusal;
use crate::images::Image;
use crate::rest::frame::call::Call;

pub(super) async fn image(call: Call) -> Result<Image, Refusal> {
    let logo = call.app.models.logos.load().get(call.id()?).cloned();
    let logo = logo.ok_or_else(Refusal::unknown::<Logo>)?;
    let bytes = match &logo.file {
        Some(file) => uploaded(&call, file).await,
        None => call.app.logo_cache.get(&logo.url, reach(&call, &logo)).await,
    };
    let image = bytes.and_then(|it| Image::new(it, &call.headers));
    Ok(image.unwrap_or_else(|| Image::placeholder(&call.headers)))
}

/// Returns an uploaded file; `None` if it cannot be read.
async fn uploaded(call: &Call, file: &str) -> Option<Bytes> {
    let path = call.app.files.path(Folder::Logos, file).ok()?;
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    read.ok()?.ok().map(Bytes::from)
}

/// Returns the addresses that a logo may lead to: no nearer than the playlist that named it.
fn reach(call: &Call, logo: &Logo) -> Reach {
    let models = &call.app.models;
    if let Some(source) = logo.guide_source {
        let origin = models.guide_states.load().get(source.0).and_then(|it| it.origin);
        // A source that was deleted, or a file of an admin.
        return Reach::named_by(origin.unwrap_or(Distance::Public), AllowedNetworks::OfPlaylist);
    }
    let Some(account) = logo.named_by else { return Reach::default() };
    match models.accounts.load().get(account.0) {
        Some(account) => reach_of_account(account, models.refreshes.load().get(account.id.0).map(|it| &**it)),
        // The account was deleted.
        None => Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist),
    }
}
