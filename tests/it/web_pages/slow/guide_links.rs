//! Guide channels of channels: matching with a preview, choices by hand, many at once, and learned names.

use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{GuideChannelId, GuideSourceId};
use serde_json::json;

use crate::support::eventually;
use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

/// Guide channels by their keys and names; their ids begin at 11.
const GUIDE: [(&str, &str); 5] = [
    ("BBCOne.uk", "BBC One"),
    ("BBCTwo.uk", "BBC Two"),
    ("ABC1", "ABC"),
    ("ABC2", "ABC"),
    ("udave.uk", "U&Dave"),
];

/// A channel that one guide channel fits, one that two fit, and one whose name the guide spells in another way.
async fn gateway() -> TestGateway {
    let list = "#EXTM3U\n#EXTINF:-1,UK: BBC 1 FHD\nhttp://127.0.0.1:9/1.ts\n\
                #EXTINF:-1,ABC HD\nhttp://127.0.0.1:9/2.ts\n#EXTINF:-1,UK: Dave\nhttp://127.0.0.1:9/3.ts\n";
    let gateway = TestGateway::with_list(list).await;
    gateway
        .change(|write| {
            write.put(&GuideSource::new(GuideSourceId(1), "Europe", GuideSourceKind::Xmltv, 0))?;
            for (id, (key, name)) in (11..).zip(GUIDE) {
                write.put(&GuideChannel {
                    id: GuideChannelId(id),
                    source: GuideSourceId(1),
                    key: key.to_owned(),
                    names: vec![name.to_owned()],
                    icon: None,
                })?;
            }
            Ok(())
        })
        .await;
    gateway
}

/// Waits until a channel has this link.
async fn is_linked(gateway: &TestGateway, channel: &str, guide: Option<u32>) {
    let wanted = guide.map(GuideChannelId);
    eventually(&format!("{channel} with the guide channel {guide:?}"), || {
        gateway.models().channels.load().iter().any(|it| it.name == channel && it.guide_channel == wanted)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_are_matched_after_a_preview_undone_and_linked_by_hand() {
    let gateway = gateway().await;
    let page = Page::open_as_admin(&gateway, "/channels").await;
    page.presses("Guide channels").await;
    page.shows("1 of 3 channels would be linked. For 1 channel, several guide channels fit").await;
    page.lists("Results", 2, &["ABC HD", "UK: Dave", "UK: BBC 1 FHD"]).await;
    is_linked(&gateway, "UK: BBC 1 FHD", None).await;

    // What is not wanted is left out.
    page.clicks("input[type=checkbox]", "Link UK: BBC 1 FHD").await;
    page.shows("Link 0 channels").await;
    page.clicks("input[type=checkbox]", "Link UK: BBC 1 FHD").await;
    page.presses("Link 1 channel").await;
    page.shows("Linked 1 of 3 channels").await;
    page.lists("Results", 2, &["ABC HD", "UK: Dave"]).await;
    is_linked(&gateway, "UK: BBC 1 FHD", Some(11)).await;
    page.presses("Undo").await;
    page.lists("Results", 2, &["ABC HD", "UK: Dave", "UK: BBC 1 FHD"]).await;
    is_linked(&gateway, "UK: BBC 1 FHD", None).await;

    // Of two that fit, an admin chooses one.
    page.presses("Choose the guide channel of ABC HD").await;
    page.shows("Several guide channels fit equally well. Choose one.").await;
    page.presses("Use ABC (ABC2)").await;
    page.lists("Results", 2, &["UK: Dave", "UK: BBC 1 FHD"]).await;
    is_linked(&gateway, "ABC HD", Some(14)).await;
    // A search finds what no rule does.
    page.presses("Choose the guide channel of UK: Dave").await;
    page.fills("Another guide channel", "u&d").await;
    page.clicks("[role=option]", "U&Dave udave.uk").await;
    page.presses("Use the chosen one").await;
    page.lists("Results", 2, &["UK: BBC 1 FHD"]).await;
    is_linked(&gateway, "UK: Dave", Some(15)).await;

    // Both choices were learned, and one is forgotten. The link stays.
    page.presses("Learned names").await;
    page.shows("ABC2").await;
    page.presses("Forget UK: Dave").await;
    page.shows("Forgot UK: Dave.").await;
    page.lists("Learned names", 1, &["ABC HD"]).await;
    is_linked(&gateway, "UK: Dave", Some(15)).await;
    page.web.is_clean().await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_guide_channel_is_set_in_the_editor_for_many_channels_and_from_the_guide() {
        let gateway = gateway().await;
        let dave = gateway.channel("UK: Dave").id;
        let page = Page::open_as_admin(&gateway, &format!("/channels/{dave}")).await;
        page.fills("Guide channel", "dave").await;
        page.clicks("[role=option]", "U&Dave udave.uk").await;
        page.presses("Save").await;
        page.shows("Saved.").await;
        is_linked(&gateway, "UK: Dave", Some(15)).await;
        // The page opened again shows the name.
        page.web.opens(&format!("/channels/{dave}")).await;
        let shown = "return document.querySelector('[name=epg_data_id]')?.value";
        page.until_is("the guide channel", shown, json!("U&Dave")).await;
        page.presses("Suggestions for the guide").await;
        page.presses("Remove the guide channel").await;
        page.until_is("no guide channel", shown, json!("")).await;
        is_linked(&gateway, "UK: Dave", None).await;
        page.presses("Close").await;

        // Two channels get the same one, and take its name.
        page.lists("Channels", 3, &["UK: BBC 1 FHD", "ABC HD", "UK: Dave"]).await;
        page.selects("Channels", 1).await;
        page.selects("Channels", 2).await;
        page.presses("Edit").await;
        page.fills("Guide channel", "two").await;
        page.clicks("[role=option]", "BBC Two BBCTwo.uk").await;
        page.presses("Save").await;
        page.shows("Changed 2 channels.").await;
        is_linked(&gateway, "UK: BBC 1 FHD", Some(12)).await;
        is_linked(&gateway, "ABC HD", Some(12)).await;
        page.presses("More actions").await;
        page.presses("Take the names from the guide").await;
        page.shows("Changed 2 of 2 channels.").await;
        page.lists("Channels", 3, &["BBC Two", "BBC Two", "UK: Dave"]).await;

        // Matching the selected ones only.
        page.presses("Clear selection").await;
        page.selects("Channels", 3).await;
        page.presses("More actions").await;
        page.presses("Find guide channels").await;
        page.shows("0 of 1 channel would be linked.").await;
        page.web.is_clean().await;
    }
}
