//! `/api/channels/logos/{id}/cache/`: the image of a logo.

use bytes::Bytes;
use domain::egress::{AllowedNetworks, Distance, Reach, reach_of_account};
use domain::logo::Logo;

use crate::files::Folder;
use crate::http::reply::Refusal;
use crate::images::Image;
use crate::logo_cache::NoLogo;
use crate::rest::frame::call::Call;

pub(super) async fn image(call: Call) -> Result<Image, Refusal> {
    let logo = call.app.models.logos.load().get(call.id()?).cloned();
    let logo = logo.ok_or_else(Refusal::unknown::<Logo>)?;
    let missing = || Refusal::not_found("The image is not available.");
    let bytes = match &logo.file {
        Some(file) => {
            let path = call.app.files.path(Folder::Logos, file).map_err(|_| missing())?;
            let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
            read.ok().and_then(Result::ok).map(Bytes::from).ok_or_else(missing)?
        }
        None => {
            let fetched = call.app.logo_cache.get(&logo.url, reach(&call, &logo)).await;
            fetched.map_err(|reason| match reason {
                NoLogo::NotAvailable => missing(),
                NoLogo::Busy => Refusal::unavailable("Too many logos are being fetched.").retry_soon(),
            })?
        }
    };
    Image::new(bytes, &call.headers).ok_or_else(missing)
}

/// Returns the addresses that a logo may lead to: no nearer than the playlist that named it.
fn reach(call: &Call, logo: &Logo) -> Reach {
    let Some(account) = logo.named_by else { return Reach::default() };
    let models = &call.app.models;
    match models.accounts.load().get(account.0) {
        Some(account) => reach_of_account(account, models.refreshes.load().get(account.id.0).map(|it| &**it)),
        // The account was deleted.
        None => Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist),
    }
}
