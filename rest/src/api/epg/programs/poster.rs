//! `/api/epg/programs/{program}/poster/`: the image of a programme, as a copy of the gateway like those of logos.

use std::sync::Arc;

use route_frame::call::Call;
use server::reply::Refusal;
use services::guide::{EntryId, read_guide};
use services::logo_cache::way_to_guide_image;

use super::values::unknown;
use crate::context::RestCall;
use crate::images::Image;

pub(super) async fn image(call: Call) -> Result<Image, Refusal> {
    let id: EntryId = call.text("program")?.parse().map_err(|()| unknown())?;
    let guides = call.rest().guide.guides.reader();
    let context = Arc::clone(call.rest());
    let (url, source) = read_guide(move || {
        let (source, entry) = match id {
            EntryId::Stored(id, minutes) => {
                let found = guides.pictured(id, minutes, &|_| true);
                let (channel, entry) = found.ok_or_else(unknown)?;
                (channel.source, entry)
            }
            EntryId::Generated(channel, start) => {
                let channel = context.models.channels.load().get(channel.0).cloned().ok_or_else(unknown)?;
                let (guide, entry) = guides.generated(&channel, start).ok_or_else(unknown)?;
                (guide.guide_channel.source, entry)
            }
        };
        let url = entry.programme().picture().map(str::to_owned);
        Ok((url, guides.sources.get(source.0).cloned()))
    })
    .await?;
    let image = match (url, source) {
        (Some(url), Some(source)) => {
            let copy = call
                .rest()
                .pictures
                .logo_cache
                .get(&url, way_to_guide_image(&call.rest().models, source.id))
                .await;
            copy.and_then(|it| Image::new(it, &call.headers))
        }
        _ => None,
    };
    Ok(image.unwrap_or_else(|| Image::placeholder(&call.headers)))
}
