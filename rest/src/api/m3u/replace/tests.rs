//! Tests of a replacement on the records of a store.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::auto_sync::ORPHAN_CLEANUP;
use domain::channel::{AutoChannel, Channel, SyncedValues};
use domain::ids::{AccountId, ChannelId, GroupId, PersonalPlaylistId, ProfileId, StreamId, UserId};
use domain::personal_playlist::PersonalPlaylist;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use serde_json::{Value, json};
use uuid::Uuid;

use super::LISTED_MAX;
use crate::testing::{Rest, SECRET};

const PATH: &str = "/api/m3u/accounts/7/replace-with/";

fn stream(id: u32, account: u32, name: &str, guide_id: Option<&str>) -> Stream {
    let url = format!("http://{account}.example/live/anna/{SECRET}/{id}.ts");
    let mut provider = StreamProperties::new(name, SourceUrl::new(url));
    provider.tvg_id = guide_id.map(str::to_owned);
    Stream::new(StreamId(id), AccountId(account), provider, 0)
}

fn channel(id: u32, streams: &[u32]) -> Channel {
    let streams = streams.iter().map(|it| StreamId(*it)).collect();
    let number = id.to_string().parse().ok();
    Channel {
        number,
        streams,
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("c{id}"), 0)
    }
}

/// The channel that a refresh of an account created for a stream.
fn automatic(id: u32, account: u32, stream: u32) -> Channel {
    let number = id.to_string().parse().ok();
    let synced = SyncedValues {
        name: format!("c{id}"),
        number,
        group: None,
        logo: None,
        tvg_id: None,
        stream_profile: None,
        guide_channel: None,
        guide_station: None,
    };
    let auto = AutoChannel {
        account: AccountId(account),
        group: GroupId(1),
        stream: StreamId(stream),
        synced,
        is_detached: false,
    };
    Channel::automatic(ChannelId(id), Uuid::from_u128(id.into()), auto, 0)
}

/// Two accounts with the same channels, and channels of the first.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    let account = |id: u32, name: &str| {
        let profile = AccountProfile::default_of(ProfileId(id), "Default", 1);
        Account::new(AccountId(id), name, PlaylistLocation::None, profile, 0)
    };
    rest.put([account(7, "Old"), account(8, "New"), Account { is_active: false, ..account(9, "Off") }]).await;
    rest.put([
        stream(701, 7, "News HD", Some("news.uk")),
        stream(702, 7, "Sport Today", None),
        stream(703, 7, "Local", None),
        stream(704, 7, "Unused", None),
        stream(801, 8, "UK: News FHD", Some("news.uk")),
        stream(802, 8, "sport today", None),
        stream(803, 8, "Unused", None),
    ])
    .await;
    let automatic = automatic(3, 7, 702);
    rest.put([channel(1, &[703, 701, 802]), channel(2, &[703]), automatic]).await;
    rest
}

fn streams(rest: &Rest) -> Vec<Vec<u32>> {
    let channels = rest.models.channels.load();
    [1, 2, 3].map(|id| channels.get(id).unwrap().streams.iter().map(|it| it.0).collect()).into()
}

/// Undoes all operations, the latest first.
async fn undo_all(rest: &Rest) {
    let entries = rest.admin("GET", "/api/channels/undo/", Value::Null).await.body;
    for entry in entries["results"].as_array().unwrap() {
        let undone = rest.admin("POST", entry["url"].as_str().unwrap(), Value::Null).await;
        assert_eq!(undone.status, 200, "{}", undone.text);
    }
}

#[tokio::test]
async fn a_preview_shows_pairs_with_scores_and_changes_nothing() {
    let rest = stage().await;
    let before = streams(&rest);
    let shown = rest.admin("POST", PATH, json!({ "account": 8, "preview": true })).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert!(!shown.text.contains(SECRET), "{}", shown.text);
    let counts =
        ["channels_count", "pairs_count", "unpaired_count"].map(|it| shown.body[it].as_u64().unwrap());
    assert_eq!((counts, &shown.body["undo"]), ([2, 2, 1], &Value::Null));
    assert_eq!(
        shown.body["pairs"][0],
        json!({
            "stream_id": 701, "name": "News HD", "host": "7.example", "replacement_id": 801,
            "replacement_name": "UK: News FHD", "replacement_host": "8.example", "paired_by": "guide_id",
            "score": 98.0, "channels_count": 1,
        })
    );
    assert_eq!(
        shown.body["unpaired"],
        json!([{
            "stream_id": 703, "name": "Local", "host": "7.example", "reason": "no_match", "channels_count": 2,
        }])
    );
    let page =
        rest.admin("POST", PATH, json!({ "account": 8, "dry_run": true, "offset": 1, "limit": 1 })).await;
    assert_eq!((&page.body["pairs"][0]["stream_id"], &page.body["unpaired"]), (&json!(702), &json!([])));
    assert_eq!(streams(&rest), before);
}

#[tokio::test]
async fn streams_are_replaced_at_their_places_and_an_undo_brings_exactly_the_former_ones_back() {
    let rest = stage().await;
    let before = rest.models.channels.load();
    let done = rest.admin("POST", PATH, json!({ "account": 8, "except": [702] })).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(done.body["unpaired"][0]["reason"], "excepted");
    assert_eq!(streams(&rest), [vec![703, 801, 802], vec![703], vec![702]]);
    rest.admin("POST", PATH, json!({ "account": 8 })).await;
    assert_eq!(streams(&rest), [vec![703, 801, 802], vec![703], vec![802]]);
    let channels = rest.models.channels.load();
    assert_eq!(channels.get(3).map(|it| (it.is_detached(), it.number)), Some((true, "3".parse().ok())));
    let shown = rest.admin("GET", "/api/channels/channels/3/", Value::Null).await.body;
    assert_eq!((&shown["auto_created"], &shown["edited_fields"]), (&json!(false), &json!([])));
    undo_all(&rest).await;
    let channels = rest.models.channels.load();
    for id in [1, 2, 3] {
        let (was, is) = (before.get(id).unwrap(), channels.get(id).unwrap());
        assert_eq!(Channel { updated_at: was.updated_at, ..Channel::clone(is) }, **was);
    }
}

#[tokio::test]
async fn an_undo_names_what_changed_meanwhile() {
    let rest = stage().await;
    let done = rest.admin("POST", PATH, json!({ "account": 8 })).await.body;
    let url = done["undo"]["url"].as_str().unwrap();
    rest.admin("DELETE", "/api/channels/streams/701/", Value::Null).await;
    rest.admin("PATCH", "/api/channels/channels/3/", json!({ "streams": [803] })).await;
    let refused = rest.admin("POST", url, Value::Null).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let conflict =
        |at: usize| (&refused.body["conflicts"][at]["id"], &refused.body["conflicts"][at]["fields"]);
    assert_eq!(
        [conflict(0), conflict(1)],
        [(&json!(3), &json!(["streams"])), (&json!(1), &json!(["streams"]))]
    );
}

#[tokio::test]
async fn only_admins_replace_an_account_and_only_with_another_one_that_plays() {
    let rest = stage().await;
    let before = streams(&rest);
    assert_eq!(rest.standard("POST", PATH, json!({ "account": 8, "preview": true })).await.status, 403);
    for body in [
        json!({}),
        json!({ "account": 7 }),
        json!({ "account": 9 }),
        json!({ "account": 99 }),
        json!({ "account": 1 }),
        json!({ "account": 8, "min_score": 50 }),
        json!({ "account": 8, "limit": LISTED_MAX + 1 }),
    ] {
        let refused = rest.admin("POST", PATH, body.clone()).await;
        assert_eq!(refused.status, 400, "{body}: {}", refused.text);
    }
    let unknown = rest.admin("POST", "/api/m3u/accounts/99/replace-with/", json!({ "account": 8 })).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(streams(&rest), before);
}

#[tokio::test]
async fn automatic_channels_of_the_new_account_for_the_same_streams_are_removed_unless_somebody_uses_them() {
    let rest = stage().await;
    // Two nobody touched, one with another name, one among favourites, one of a stream without a pair.
    let renamed = Channel { name: "Mine".to_owned(), ..automatic(13, 8, 802) };
    rest.put([automatic(11, 8, 801), automatic(12, 8, 802), renamed, automatic(14, 8, 801)]).await;
    rest.put([automatic(15, 8, 803)]).await;
    let favorites = PersonalPlaylist::new(PersonalPlaylistId(1), UserId(1), "Favorites", 0);
    rest.put([PersonalPlaylist { channels: vec![ChannelId(14)], ..favorites }]).await;
    let before = rest.models.channels.load();
    let counts = |it: &Value| ["duplicates_count", "duplicates_kept_count"].map(|name| it[name].as_u64());
    let shown = rest.admin("POST", PATH, json!({ "account": 8, "preview": true })).await.body;
    assert_eq!(counts(&shown), [Some(2), Some(2)]);
    assert_eq!(rest.models.channels.load().iter().count(), 8);
    let done = rest.admin("POST", PATH, json!({ "account": 8 })).await.body;
    assert_eq!(counts(&done), [Some(2), Some(2)]);
    let ids: Vec<u32> = rest.models.channels.load().iter().map(|it| it.id.0).collect();
    assert_eq!(ids, [1, 2, 3, 13, 14, 15]);
    undo_all(&rest).await;
    let channels = rest.models.channels.load();
    assert_eq!(channels.iter().count(), 8);
    for was in before.iter() {
        let is = channels.get(was.id.0).unwrap();
        assert_eq!(Channel { updated_at: was.updated_at, ..Channel::clone(is) }, **was);
    }
}

#[tokio::test]
async fn a_channel_keeps_its_adult_mark_in_step_with_the_streams_of_the_new_account() {
    let rest = stage().await;
    let mut adult = stream(802, 8, "sport today", None);
    adult.provider.is_adult = true;
    rest.put([adult]).await;
    rest.admin("POST", PATH, json!({ "account": 8 })).await;
    let channels = rest.models.channels.load();
    assert_eq!([1, 2, 3].map(|id| channels.get(id).unwrap().is_adult), [true, false, true]);
    undo_all(&rest).await;
    assert_eq!([1, 3].map(|id| rest.models.channels.load().get(id).unwrap().is_adult), [false, false]);
}

#[tokio::test]
async fn a_moved_channel_stays_when_its_former_account_is_deleted() {
    let rest = stage().await;
    let done = rest.admin("POST", PATH, json!({ "account": 8 })).await.body;
    let removes_all = json!({ "custom_properties": { ORPHAN_CLEANUP: "always" } });
    assert_eq!(rest.admin("PATCH", "/api/m3u/accounts/7/", removes_all).await.status, 200);
    assert_eq!(rest.admin("DELETE", "/api/m3u/accounts/7/", Value::Null).await.status, 204);
    assert_eq!(streams(&rest), [vec![801, 802], vec![], vec![802]]);
    let refused = rest.admin("POST", done["undo"]["url"].as_str().unwrap(), Value::Null).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}
