//! The pictures of recordings: that of the programme in the guide, otherwise the logo of the channel. Addresses are
//! fetched like those of logos, under the same limits and no nearer than the guide or playlist that named them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use actors::{Artwork, FindArtwork};
use bytes::Bytes;
use domain::logo::Logo;
use domain::recording::{ArtworkOrigin, Recording};
use media::spawn_blocking;
use node::uploads::fetch_upload;
use services::files::Folder;
use services::guide::{EntryId, read_guide};
use services::image_types::PictureFormat;
use services::logo_cache::{ImageWay, way_to_guide_image, way_to_logo};

use crate::context::RestContext;

/// Finds pictures in the guides and logos of the gateway, as long as it runs.
pub struct RecordingArtwork(
    /// Weak, because it keeps this.
    pub Weak<RestContext>,
);

impl FindArtwork for RecordingArtwork {
    fn find(
        &self,
        recording: Arc<Recording>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Artwork>, String>> + Send + '_>> {
        Box::pin(async move {
            let context = self.0.upgrade().ok_or("the gateway stops")?;
            find(&context, &recording).await
        })
    }
}

async fn find(context: &Arc<RestContext>, recording: &Recording) -> Result<Option<Artwork>, String> {
    let mut fault = None;
    if let Some((url, way)) = programme_picture(context, recording).await {
        match context
            .pictures
            .logo_cache
            .fetch(&url, way)
            .await
            .and_then(|it| artwork(it, ArtworkOrigin::Programme))
        {
            Ok(found) => return Ok(Some(found)),
            Err(reason) => fault = Some(reason),
        }
    }
    let channel = context.models.channels.load().get(recording.channel.0).cloned();
    let logo = channel.and_then(|it| context.models.logos.load().get(it.logo_id?.0).cloned());
    match (logo, fault) {
        (Some(logo), _) => {
            logo_picture(context, &logo).await.and_then(|it| artwork(it, ArtworkOrigin::Channel)).map(Some)
        }
        (None, Some(reason)) => Err(reason),
        (None, None) => Ok(None),
    }
}

/// Returns the address of the picture that stands for a programme, and how far it may lead.
async fn programme_picture(context: &Arc<RestContext>, recording: &Recording) -> Option<(String, ImageWay)> {
    let id: EntryId = recording.programme.as_ref()?.id.as_ref()?.parse().ok()?;
    let guides = context.guide.guides.reader();
    let (channels, channel) = (context.models.channels.load(), recording.channel);
    let found = read_guide(move || {
        Ok(match id {
            EntryId::Stored(id, minutes) => {
                let found = guides.pictured(id, minutes, &|it| it.id == channel);
                found.map(|(channel, entry)| (channel.source, entry))
            }
            EntryId::Generated(channel, start) => {
                let found = channels.get(channel.0).and_then(|it| guides.generated(it, start));
                found.map(|(guide, entry)| (guide.guide_channel.source, entry))
            }
        }
        .and_then(|(source, entry)| Some((source, entry.programme().picture()?.to_owned()))))
    });
    let (source, url) = found.await.ok().flatten()?;
    let way = way_to_guide_image(&context.models, source);
    Some((url, way))
}

async fn logo_picture(context: &Arc<RestContext>, logo: &Logo) -> Result<Bytes, String> {
    let Some(file) = &logo.file else {
        return context.pictures.logo_cache.fetch(&logo.url, way_to_logo(&context.models, logo)).await;
    };
    let path = context.files.path(Folder::Logos, file).map_err(|error| error.to_string())?;
    fetch_upload(&context.nodes, Folder::Logos, file).await;
    let read = spawn_blocking(move || std::fs::read(path)).await;
    let bytes = read.map_err(|_| "a thread for files failed")?.map_err(|error| error.to_string())?;
    Ok(bytes.into())
}

/// Checks that media servers show it: what they find beside a file is a PNG, JPEG or WebP.
fn artwork(bytes: Bytes, origin: ArtworkOrigin) -> Result<Artwork, String> {
    match PictureFormat::from_content(&bytes) {
        Some(format @ (PictureFormat::Png | PictureFormat::Jpeg | PictureFormat::Webp)) => {
            Ok(Artwork { bytes, extension: format.extension(), origin })
        }
        _ => Err("it is neither PNG nor JPEG nor WebP".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use domain::channel::Channel;
    use domain::egress::Distance;
    use domain::guide::programme::{Programme, ProgrammeIcon, ProgrammeId};
    use domain::guide::source::GuideSourceKind;
    use domain::guide::state::GuideState;
    use domain::ids::{ChannelId, GuideChannelId, LogoId, RecordingId};
    use domain::recording::{RecordedProgramme, RecordingStatus};
    use services::testing::{PNG, server};
    use uuid::Uuid;

    use super::*;
    use crate::guide_testing::{guide_source, now, programme, put_guide};
    use crate::testing::Rest;

    const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'/>";

    /// A recording of a programme of the guide with this key.
    fn recording(id: Option<ProgrammeId>) -> Recording {
        let id = id.map(|it| it.to_string());
        let uuid = Uuid::from_u128(1);
        Recording {
            programme: Some(RecordedProgramme { id, ..RecordedProgramme::default() }),
            status: RecordingStatus::Completed,
            ..Recording::new(RecordingId(1), ChannelId(1), uuid, "News", 0..1, 0)
        }
    }

    #[tokio::test]
    async fn the_picture_is_that_of_the_programme_or_the_logo_of_the_channel() {
        let rest = Rest::start().await;
        let ((png, n_requests), (svg, _)) = (server(PNG).await, server(SVG).await);
        let at = now();
        let with = |from, url: &str| {
            let icon = ProgrammeIcon { src: url.to_owned(), width: None, height: None };
            Programme { icons: vec![icon], ..programme(at, from, from + 1, "Show") }
        };
        let (good, wrong, bare) = (with(0, &png), with(1, &svg), programme(at, 2, 3, "Show"));
        let ids = [&good, &wrong, &bare].map(|it| ProgrammeId::new(GuideChannelId(5), it.start));
        put_guide(&rest, guide_source(3, GuideSourceKind::Xmltv), vec![(5, "a", vec![good, wrong, bare])])
            .await;
        let state = rest.models.guide_states.load().get(3).cloned().unwrap();
        let near = |origin| GuideState { origin: Some(origin), ..GuideState::clone(&state) };
        rest.put([near(Distance::Loopback)]).await;
        rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "News".to_owned(), 0)]).await;
        let found = async |id| find(&rest.context, &recording(id)).await;
        let origin =
            |it: Result<Option<Artwork>, String>| it.map(|it| it.map(|it| (it.origin, it.extension)));
        assert_eq!(origin(found(ids[0]).await), Ok(Some((ArtworkOrigin::Programme, "png"))));
        assert!(found(ids[1]).await.unwrap_err().contains("neither PNG"), "media servers show no SVG");
        assert_eq!((found(ids[2]).await, found(None).await), (Ok(None), Ok(None)));

        // A further guide has the picture of a programme that the channel shows an hour later.
        put_guide(&rest, guide_source(4, GuideSourceKind::Xmltv), vec![(6, "b", vec![with(2, &png)])]).await;
        rest.put([Channel {
            guide_channel: Some(GuideChannelId(5)),
            further_guides: vec![GuideChannelId(6)],
            guide_offset: Some(60),
            ..Channel::new(ChannelId(1), Uuid::from_u128(1), "News".to_owned(), 0)
        }])
        .await;
        let id = format!("{}_60", ids[2].unwrap());
        let programme = Some(RecordedProgramme { id: Some(id), ..RecordedProgramme::default() });
        let moved = find(&rest.context, &Recording { programme, ..recording(None) }).await;
        assert_eq!(origin(moved), Ok(Some((ArtworkOrigin::Programme, "png"))));

        let logo = Logo {
            id: LogoId(7),
            name: "News".to_owned(),
            url: png,
            file: None,
            named_by: None,
            guide_source: None,
            updated_at: 0,
        };
        rest.put([logo]).await;
        let channel = Channel::new(ChannelId(1), Uuid::from_u128(1), "News".to_owned(), 0);
        rest.put([Channel { logo_id: Some(LogoId(7)), ..channel }]).await;
        for id in [ids[1], ids[2], None] {
            assert_eq!(origin(found(id).await), Ok(Some((ArtworkOrigin::Channel, "png"))), "{id:?}");
        }

        // A guide from the internet does not lead to this machine.
        let before = n_requests.load(Ordering::Relaxed);
        rest.put([near(Distance::Public)]).await;
        rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "News".to_owned(), 0)]).await;
        assert!(found(ids[0]).await.is_err());
        assert_eq!(n_requests.load(Ordering::Relaxed), before);
    }
}
