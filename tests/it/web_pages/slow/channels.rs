//! Channels and streams: editing many at once, and undoing it.

use domain::channel::{Channel, ChannelNumber};
use domain::ids::StreamId;
use serde_json::json;

use crate::support::eventually;
use crate::support::gateway::TestGateway;
use crate::web_pages::page::Page;

/// A gateway with these channels, with one stream each.
async fn gateway(names: &[&str]) -> TestGateway {
    let entry = |(n, name): (usize, &&str)| format!("#EXTINF:-1,{name}\nhttp://127.0.0.1:9/{n}.ts\n");
    let list: String = names.iter().enumerate().map(entry).collect();
    TestGateway::with_list(&format!("#EXTM3U\n{list}")).await
}

fn names(gateway: &TestGateway) -> Vec<String> {
    let mut channels: Vec<Channel> =
        gateway.models().channels.load().iter().map(|it| (**it).clone()).collect();
    channels.sort_by_key(|it| it.number);
    channels.into_iter().map(|it| it.name).collect()
}

fn numbers(gateway: &TestGateway) -> Vec<Option<ChannelNumber>> {
    let mut channels: Vec<Channel> =
        gateway.models().channels.load().iter().map(|it| (**it).clone()).collect();
    channels.sort_by_key(|it| it.id);
    channels.into_iter().map(|it| it.number).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selected_channels_are_renamed_after_a_preview_numbered_deleted_and_all_of_it_is_undone() {
    let gateway = gateway(&["DE: Eins", "DE: Zwei", "News"]).await;
    let before = numbers(&gateway);
    let page = Page::open_as_admin(&gateway, "/channels").await;
    page.lists("Channels", 3, &["DE: Eins", "DE: Zwei", "News"]).await;

    page.selects("Channels", 1).await;
    page.presses("Select all 3").await;
    page.shows("3 selected").await;
    page.presses("Rename").await;
    page.fills("Find (regular expression)", "^DE: ").await;
    page.shows("2 of 3 channels would get another name.").await;
    assert_eq!(names(&gateway), ["DE: Eins", "DE: Zwei", "News"], "a preview changes nothing");
    page.clicks("dialog button", "Rename").await;
    page.shows("Renamed 2 channels.").await;
    page.lists("Channels", 3, &["Eins", "Zwei", "News"]).await;
    page.presses("Undo").await;
    page.lists("Channels", 3, &["DE: Eins", "DE: Zwei", "News"]).await;
    assert_eq!(names(&gateway), ["DE: Eins", "DE: Zwei", "News"]);

    page.presses("Number").await;
    page.fills("First number", "100").await;
    page.clicks("dialog button", "Number").await;
    page.lists("Channels", 2, &["100", "101", "102"]).await;
    page.presses("Undo").await;
    page.lists("Channels", 2, &["1", "2", "3"]).await;
    assert_eq!(numbers(&gateway), before);

    page.presses("Delete 3 channels").await;
    page.clicks("dialog button", "Delete 3 channels").await;
    page.shows("Deleted 3 channels.").await;
    page.shows("No channels yet").await;
    page.presses("Undo").await;
    page.lists("Channels", 3, &["DE: Eins", "DE: Zwei", "News"]).await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_undo_after_another_change_names_the_changed_channel() {
        let gateway = gateway(&["Eins", "Zwei"]).await;
        let page = Page::open_as_admin(&gateway, "/channels").await;
        page.selects("Channels", 1).await;
        page.presses("Edit").await;
        page.chooses("Enabled", "No").await;
        page.presses("Save").await;
        page.shows("Changed 1 channel.").await;
        gateway
            .change(|write| {
                let mut channel = write.get::<Channel>(1)?.expect("it exists");
                channel.enabled = true;
                channel.name = "Other".to_owned();
                write.put(&channel)
            })
            .await;
        page.presses("Undo").await;
        page.shows("Not undone: Other: The channel was changed.").await;
        // Live: the list follows the change of somebody else.
        page.lists("Channels", 3, &["Other", "Zwei"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_order_of_streams_changes_by_buttons_and_position_and_errors_stay_at_their_fields() {
        let gateway = gateway(&["One", "Two"]).await;
        gateway
            .change(|write| {
                let mut channel = write.get::<Channel>(1)?.expect("it exists");
                channel.streams = vec![StreamId(1), StreamId(2)];
                write.put(&channel)
            })
            .await;
        let page = Page::open_as_admin(&gateway, "/channels/1").await;
        let order = "return [...document.querySelectorAll('ol li bdi')].map((it) => it.textContent)";
        page.until_is("both streams", order, json!(["One", "Two"])).await;
        page.presses("Move Two up").await;
        page.until_is("the other order", order, json!(["Two", "One"])).await;
        let stored = || gateway.models().channels.load().get(1).map(|it| it.streams.clone());
        eventually("the stored order", || stored() == Some(vec![StreamId(2), StreamId(1)])).await;

        page.fills("Number", "2").await;
        page.presses("Save").await;
        let wrong = "return document.querySelector('[name=channel_number]')?.ariaInvalid";
        page.until_is("an error at the field", wrong, json!("true")).await;
        page.fills("Number", "7.5").await;
        page.presses("Save").await;
        page.shows("Saved.").await;
        page.lists("Channels", 2, &["2", "7.5"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn streams_become_channels_and_filters_are_in_the_address() {
        let gateway = gateway(&["One", "Two", "Three"]).await;
        gateway
            .change(|write| {
                for id in 1..=3 {
                    write.remove::<Channel>(id)?;
                }
                Ok(())
            })
            .await;
        let page = Page::open_as_admin(&gateway, "/streams?sq=t").await;
        page.lists("Streams", 2, &["Two", "Three"]).await;
        page.shows("2 streams").await;
        page.selects("Streams", 1).await;
        page.presses("Select all 2").await;
        page.presses("Make channels").await;
        page.clicks("dialog button", "Make channels").await;
        page.shows("Created 2 channels.").await;
        assert_eq!(names(&gateway), ["Two", "Three"]);
        page.web.opens("/channels?q=two").await;
        page.lists("Channels", 3, &["Two"]).await;
    }
}
