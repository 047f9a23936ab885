//! Links of channels with guide channels, through the interface.

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{GuideChannelId, GuideSourceId};
use serde_json::{Value, json};
use services::matching::MatchReport;
use tokio_util::sync::CancellationToken;

use crate::testing::Rest;

const LIST: &str = "/api/channels/channels/";

fn source(id: u32, priority: i32) -> GuideSource {
    let new = GuideSource::new(GuideSourceId(id), format!("Guide {id}"), GuideSourceKind::Xmltv, 0);
    GuideSource { priority, ..new }
}

fn guide_channel(id: u32, source: u32, key: &str, name: &str) -> GuideChannel {
    GuideChannel {
        id: GuideChannelId(id),
        source: GuideSourceId(source),
        key: key.to_owned(),
        names: vec![name.to_owned()],
        icon: Some(format!("http://logos.example/{key}.png")),
    }
}

/// Starts a gateway with a guide.
async fn stage() -> Rest {
    let rest = Rest::start().await;
    rest.put([source(1, 0), source(2, 0)]).await;
    rest.put([
        guide_channel(11, 1, "BBCOne.uk", "BBC One"),
        guide_channel(12, 1, "BBCTwo.uk", "BBC Two"),
        guide_channel(13, 1, "ABC1", "ABC"),
        guide_channel(14, 1, "ABC2", "ABC"),
        guide_channel(15, 1, "udave.uk", "U&Dave"),
    ])
    .await;
    rest.put([guide_channel(21, 2, "news.example", "News")]).await;
    rest
}

/// Creates a channel and returns its id.
async fn make(rest: &Rest, body: Value) -> Value {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body["id"].clone()
}

/// Creates a channel with a link that nobody taught, and returns its id.
async fn make_linked(rest: &Rest, name: &str, guide: u32) -> Value {
    let id = make(rest, json!({ "name": name })).await;
    let channel = rest.models.channels.load().get(id.as_u64().unwrap() as u32).cloned().unwrap();
    rest.put([Channel { guide_channel: Some(GuideChannelId(guide)), ..Channel::clone(&channel) }]).await;
    id
}

/// Returns the linked guide channel, and the one whose programmes are shown.
async fn guides(rest: &Rest, id: &Value) -> (Value, Value) {
    let channel = rest.admin("GET", &format!("{LIST}{id}/"), Value::Null).await.body;
    (channel["epg_data_id"].clone(), channel["effective_epg_data_id"].clone())
}

async fn matched(rest: &Rest, body: Value) -> Value {
    let done = rest.admin("POST", &format!("{LIST}match-epg/"), body).await;
    assert_eq!(done.status, 202, "{}", done.text);
    done.body
}

#[tokio::test]
async fn channels_without_a_link_are_matched_and_the_links_can_be_undone() {
    let rest = stage().await;
    let one = make(&rest, json!({ "name": "UK: BBC 1 FHD" })).await;
    let two = make(&rest, json!({ "name": "x", "tvg_id": "bbctwo.UK" })).await;
    let tie = make(&rest, json!({ "name": "ABC HD" })).await;
    let linked = make(&rest, json!({ "name": "BBC One", "epg_data_id": 12 })).await;
    assert_eq!(guides(&rest, &two).await, (json!(null), json!(12)), "the guide id is enough to show a guide");

    let preview = matched(&rest, json!({ "preview": true })).await;
    assert_eq!((&preview["matches_count"], &preview["undo"]), (&json!(2), &json!(null)), "{preview}");
    let first = &preview["results"][0];
    assert_eq!(
        (&first["channel_id"], &first["decision"], &first["epg_data_id"]),
        (&tie, &json!("tie"), &json!(null))
    );
    assert_eq!(first["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(first["candidates"][0]["reasons"], json!(["same name"]));
    assert_eq!(guides(&rest, &one).await.0, json!(null), "a preview changes nothing");

    let done = matched(&rest, json!({})).await;
    assert_eq!(
        (&done["matches_count"], &done["total_count"], &done["skipped_count"], &done["ties_count"]),
        (&json!(2), &json!(3), &json!(1), &json!(1)),
        "{done}"
    );
    assert_eq!(guides(&rest, &one).await, (json!(11), json!(11)));
    assert_eq!(guides(&rest, &two).await.0, json!(12));
    assert_eq!(guides(&rest, &tie).await, (json!(null), json!(null)));
    assert_eq!(guides(&rest, &linked).await.0, json!(12), "a link stays");
    let again = matched(&rest, json!({})).await;
    assert_eq!((&again["matches_count"], &again["undo"]), (&json!(0), &json!(null)));

    let undone = rest.admin("POST", done["undo"]["url"].as_str().unwrap(), json!({})).await;
    assert_eq!(undone.status, 200, "{}", undone.text);
    assert_eq!((guides(&rest, &one).await.0, guides(&rest, &two).await.0), (json!(null), json!(null)));
}

#[tokio::test]
async fn channels_are_selected_by_ids_or_by_a_filter_with_exceptions() {
    let rest = stage().await;
    let one = make(&rest, json!({ "name": "BBC One", "channel_group_id": null })).await;
    let two = make_linked(&rest, "BBC Two", 21).await;
    let done = matched(&rest, json!({ "filter": { "search": "bbc" }, "except": [one] })).await;
    assert_eq!((&done["total_count"], &done["skipped_count"]), (&json!(0), &json!(1)), "{done}");
    let done = matched(&rest, json!({ "channel_ids": [two], "replace": true })).await;
    assert_eq!((&done["matches_count"], guides(&rest, &two).await.0), (&json!(1), json!(12)));
    assert_eq!(guides(&rest, &one).await.0, json!(null));
    let done = matched(&rest, json!({ "channel_ids": [] })).await;
    assert_eq!(done["total_count"], 0, "an empty selection is none");
    let wrong = rest.admin("POST", &format!("{LIST}match-epg/"), json!({ "channel_ids": [999] })).await;
    assert_eq!(
        (wrong.status, &wrong.body["ids"][0]),
        (400, &json!("Invalid pk \"999\" - object does not exist."))
    );
}

#[tokio::test]
async fn one_channel_is_matched_with_an_explanation() {
    let rest = stage().await;
    let mut reports = rest.context().guide.matching.subscribe();
    let id = make_linked(&rest, "BBC Two HD", 11).await;
    let path = format!("{LIST}{id}/match-epg/");
    let preview = rest.admin("POST", &path, json!({ "preview": true })).await;
    assert_eq!(
        (preview.status, &preview.body["channel"]["epg_data_id"]),
        (202, &json!(11)),
        "{}",
        preview.text
    );
    let done = rest.admin("POST", &path, json!({})).await.body;
    assert_eq!((&done["matched"], &done["channel"]["epg_data_id"]), (&json!(true), &json!(12)), "{done}");
    assert_eq!(done["result"]["candidates"][0]["name"], "BBC Two");
    for _ in 0..2 {
        let report = reports.try_recv().unwrap();
        assert!(matches!(report, MatchReport::Single { is_matched: true, .. }), "{report:?}");
    }
    let tie = make(&rest, json!({ "name": "ABC" })).await;
    let refused = rest.admin("POST", &format!("{LIST}{tie}/match-epg/"), json!({})).await;
    assert_eq!(
        (refused.status, &refused.body["matched"], &refused.body["result"]["decision"]),
        (202, &json!(false), &json!("tie"))
    );
    assert_eq!(rest.admin("POST", &format!("{LIST}999/match-epg/"), json!({})).await.status, 404);
}

#[tokio::test]
async fn a_run_reports_its_progress_and_its_end() {
    let rest = stage().await;
    make(&rest, json!({ "name": "BBC One" })).await;
    let mut reports = rest.context().guide.matching.subscribe();
    matched(&rest, json!({})).await;
    let progress =
        MatchReport::Progress { total: 1, matched: 0, remaining: 1, current: "BBC One".to_owned() };
    assert_eq!(reports.try_recv().unwrap(), progress);
    let message = "Linked 1 of 1 channels".to_owned();
    let finished = MatchReport::Finished { is_complete: true, matched: 1, message };
    assert_eq!(reports.try_recv().unwrap(), finished);
    drop(rest.context().guide.matching.begin());
    let ended = reports.try_recv().unwrap();
    assert!(matches!(ended, MatchReport::Finished { is_complete: false, matched: 0, .. }), "{ended:?}");
}

#[tokio::test]
async fn a_link_by_an_admin_is_learned_and_can_be_forgotten() {
    let rest = stage().await;
    let first = make(&rest, json!({ "name": "UK: Dave" })).await;
    let path = format!("{LIST}{first}/set-epg/");
    let set = rest.admin("POST", &path, json!({ "epg_data_id": 15 })).await;
    assert_eq!(set.status, 200, "{}", set.text);
    assert_eq!(set.body["message"], "Linked channel UK: Dave with udave.uk");
    assert_eq!(set.body["channel"]["epg_data_id"], 15);
    let aliases = "/api/channels/guide-aliases/";
    let learned = rest.admin("GET", aliases, Value::Null).await.body["results"].clone();
    assert_eq!(
        (&learned[0]["channel_name"], &learned[0]["tvg_id"]),
        (&json!("UK: Dave"), &json!("udave.uk"))
    );

    let second = make(&rest, json!({ "name": "UK | DAVE HD" })).await;
    matched(&rest, json!({})).await;
    assert_eq!(guides(&rest, &second).await.0, json!(15));
    rest.admin("PATCH", &format!("{LIST}{second}/"), json!({ "epg_data_id": null })).await;
    let names = async || rest.admin("GET", aliases, Value::Null).await.body["count"].clone();
    assert_eq!(names().await, 0, "a removed link is forgotten");
    matched(&rest, json!({})).await;
    assert_eq!(guides(&rest, &second).await.0, json!(null));

    rest.admin("PATCH", &format!("{LIST}{second}/"), json!({ "epg_data_id": 15 })).await;
    let one = rest.admin("GET", aliases, Value::Null).await.body["results"][0]["id"].clone();
    assert_eq!(rest.admin("GET", &format!("{aliases}{one}/"), Value::Null).await.body["epg_source"], 1);
    assert_eq!(rest.admin("DELETE", &format!("{aliases}{one}/"), Value::Null).await.status, 204);
    assert_eq!(names().await, 0);
    // A generated guide says nothing about the name.
    rest.put([GuideSource { kind: GuideSourceKind::Generated, ..source(3, 0) }]).await;
    rest.put([guide_channel(31, 3, "events", "Events")]).await;
    rest.admin("POST", &path, json!({ "epg_data_id": 31 })).await;
    assert_eq!((guides(&rest, &first).await.0, names().await), (json!(31), json!(0)));
    let events = make(&rest, json!({ "name": "Events" })).await;
    matched(&rest, json!({})).await;
    assert_eq!(guides(&rest, &events).await.0, json!(null));
}

#[tokio::test]
async fn an_admin_settles_ties_for_channels_of_the_same_name() {
    let rest = stage().await;
    let first = make(&rest, json!({ "name": "ABC HD" })).await;
    let set = rest.admin("POST", &format!("{LIST}{first}/set-epg/"), json!({ "epg_data_id": 14 })).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let second = make(&rest, json!({ "name": "ABC" })).await;
    let foreign = make(&rest, json!({ "name": "UK: ABC" })).await;
    let done = matched(&rest, json!({})).await;
    assert_eq!((&done["matches_count"], &done["ties_count"]), (&json!(1), &json!(1)), "{done}");
    assert_eq!((guides(&rest, &second).await.0, guides(&rest, &foreign).await.0), (json!(14), json!(null)));

    // Very many links of channels to guide channels of their names do not displace what was learned.
    rest.put((0..150).map(|it| guide_channel(100 + it, 1, &format!("s{it}.uk"), &format!("Station {it}"))))
        .await;
    let mut links = Vec::new();
    for it in 0..150 {
        let id = make(&rest, json!({ "name": format!("Station {it} HD") })).await;
        links.push(json!({ "channel_id": id, "epg_data_id": 100 + it }));
    }
    let set = rest.admin("POST", &format!("{LIST}batch-set-epg/"), json!({ "associations": links })).await;
    assert_eq!((set.status, &set.body["channels_updated"]), (200, &json!(150)), "{}", set.text);
    let aliases = rest.admin("GET", "/api/channels/guide-aliases/", Value::Null).await.body;
    assert_eq!(aliases["count"], 101);
}

#[tokio::test]
async fn links_are_set_for_many_channels_together_or_not_at_all() {
    let rest = stage().await;
    let (a, b) = (
        make(&rest, json!({ "name": "a" })).await,
        make(&rest, json!({ "name": "b", "epg_data_id": 11 })).await,
    );
    let path = format!("{LIST}batch-set-epg/");
    let link = |channel: &Value, guide: Value| json!({ "channel_id": channel, "epg_data_id": guide });
    let done = rest
        .admin("POST", &path, json!({ "associations": [link(&a, json!(12)), link(&b, json!(null))] }))
        .await;
    assert_eq!((done.status, &done.body["channels_updated"]), (200, &json!(2)), "{}", done.text);
    assert_eq!((&done.body["success"], &done.body["programs_refreshed"]), (&json!(true), &json!(0)));
    assert_eq!((guides(&rest, &a).await.0, guides(&rest, &b).await.0), (json!(12), json!(null)));
    let aliases =
        async || rest.admin("GET", "/api/channels/guide-aliases/", Value::Null).await.body["count"].clone();
    assert_eq!(aliases().await, 1);
    let undone = rest.admin("POST", done.body["undo"]["url"].as_str().unwrap(), json!({})).await;
    assert_eq!(undone.status, 200, "{}", undone.text);
    assert_eq!((guides(&rest, &a).await.0, guides(&rest, &b).await.0), (json!(null), json!(11)));
    assert_eq!(aliases().await, 1, "the undo forgets a and learns b again");

    let wrong = [link(&a, json!(12)), link(&json!(999), json!(12)), link(&a, json!(11)), link(&b, json!(99))];
    let refused = rest.admin("POST", &path, json!({ "associations": wrong })).await;
    let errors = json!({ "associations": [
        "Item 2: channel_id: Invalid pk \"999\" - object does not exist.",
        format!("Item 3: channel_id: Channel {a} is listed more than once."),
        "Item 4: epg_data_id: Invalid pk \"99\" - object does not exist.",
    ] });
    assert_eq!((refused.status, refused.body), (400, errors));
    let missing = rest.admin("POST", &path, json!({ "associations": [{ "channel_id": a }] })).await;
    assert_eq!(missing.status, 400, "{}", missing.text);
    assert_eq!(guides(&rest, &a).await.0, json!(null));
    let one = rest.admin("POST", &format!("{LIST}{a}/set-epg/"), json!({ "epg_data_id": 99999 })).await;
    let message = json!({ "epg_data_id": ["Invalid pk \"99999\" - object does not exist."] });
    assert_eq!((one.status, one.body), (400, message));
    let one = rest.admin("POST", &format!("{LIST}{a}/set-epg/"), json!({})).await;
    assert_eq!((one.status, one.body), (400, json!({ "epg_data_id": ["This field is required."] })));
}

#[tokio::test]
async fn channels_take_over_values_from_their_guide_channels() {
    let rest = stage().await;
    let one = make(&rest, json!({ "name": "first", "epg_data_id": 11 })).await;
    let two = make(&rest, json!({ "name": "second", "tvg_id": "bbctwo.uk" })).await;
    let none = make(&rest, json!({ "name": "third" })).await;
    let ids = json!({ "channel_ids": [one, two, none] });
    let show = async |id: &Value| rest.admin("GET", &format!("{LIST}{id}/"), Value::Null).await.body;
    let mut undo = Value::Null;
    for path in ["set-names-from-epg/", "set-logos-from-epg/", "set-tvg-ids-from-epg/"] {
        let done = rest.admin("POST", &format!("{LIST}{path}"), ids.clone()).await;
        assert_eq!(done.status, 200, "{}", done.text);
        let counts = [&done.body["updated_count"], &done.body["channel_count"], &done.body["skipped_count"]];
        assert_eq!(counts, [&json!(2), &json!(3), &json!(1)], "{path}");
        let again = rest.admin("POST", &format!("{LIST}{path}"), ids.clone()).await.body;
        assert_eq!((&again["updated_count"], &again["undo"]), (&json!(0), &json!(null)));
        undo = done.body["undo"]["url"].clone();
    }
    for (id, name, key) in [(&one, "BBC One", "BBCOne.uk"), (&two, "BBC Two", "BBCTwo.uk")] {
        let channel = show(id).await;
        assert_eq!((&channel["name"], &channel["tvg_id"]), (&json!(name), &json!(key)));
        assert_eq!(channel["logo_url"], format!("http://logos.example/{key}.png"));
        let logo = channel["logo_id"].as_u64().unwrap() as u32;
        let logo = rest.models.logos.load().get(logo).cloned().unwrap();
        assert_eq!(logo.guide_source, Some(GuideSourceId(1)), "the address may lead as far as its guide");
    }
    assert_eq!(show(&none).await["name"], "third");
    let undone = rest.admin("POST", undo.as_str().unwrap(), json!({})).await;
    assert_eq!((undone.status, &show(&one).await["tvg_id"]), (200, &json!(null)));
}

#[tokio::test]
async fn channels_are_filtered_and_ordered_by_their_guide_channels() {
    let rest = stage().await;
    for (name, guide) in [("a", json!(21)), ("b", json!(12)), ("c", json!(11)), ("d", json!(null))] {
        make(&rest, json!({ "name": name, "epg_data_id": guide })).await;
    }
    make(&rest, json!({ "name": "e", "tvg_id": "news.EXAMPLE" })).await;
    let list = async |query: &str| {
        let listed = rest.admin("GET", &format!("{LIST}?{query}"), Value::Null).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let names = listed.body["results"].as_array().unwrap().iter();
        names.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (query, names) in [
        ("epg=true", "abce"),
        ("epg=false", "d"),
        ("epg=null", "d"),
        ("epg=News", "ae"),
        ("epg=bbcone.uk,null", "cd"),
        ("epg=12", "b"),
        ("epg=nothing", ""),
        ("ordering=epg_data__name", "cbaed"),
    ] {
        assert_eq!(list(query).await, names, "{query}");
    }
    let summary = rest.streamer("GET", &format!("{LIST}summary/?epg=News"), Value::Null).await.body;
    assert_eq!(summary[1]["epg_data_id"], 21);
}

#[tokio::test]
async fn settings_decide_how_channels_are_matched() {
    let rest = stage().await;
    let id = make(&rest, json!({ "name": "Homecast - BBC One" })).await;
    assert_eq!(matched(&rest, json!({ "preview": true })).await["matches_count"], 0);
    let settings = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
    let row = settings["results"].as_array().unwrap().iter().find(|it| it["key"] == "epg_settings").unwrap();
    let value = json!({ "epg_match_mode": "advanced", "epg_match_ignore_prefixes": ["homecast -"] });
    let path = format!("/api/core/settings/{}/", row["id"]);
    let set = rest.admin("PATCH", &path, json!({ "value": value })).await;
    assert_eq!(set.status, 200, "{}", set.text);
    matched(&rest, json!({})).await;
    assert_eq!(guides(&rest, &id).await.0, json!(11));
}

#[tokio::test]
async fn after_a_refresh_channels_are_matched_only_if_the_settings_want_it() {
    let rest = stage().await;
    let id = make(&rest, json!({ "name": "BBC One" })).await;
    let shown = make(&rest, json!({ "name": "BBC Two", "tvg_id": "news.example" })).await;
    let run_until = async |stop: CancellationToken| {
        let models = rest.models.clone();
        let run = tokio::task::spawn_blocking(move || actors::match_after_refresh(&models, &stop));
        run.await.unwrap().unwrap()
    };
    let run = async || run_until(CancellationToken::new()).await;
    assert_eq!(run().await, 0);
    let path = "/api/core/settings/9/";
    let set = rest.admin("PATCH", path, json!({ "value": { "epg_match_after_refresh": true } })).await;
    assert_eq!((set.status, &set.body["key"]), (200, &json!("epg_settings")), "{}", set.text);
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert_eq!(run_until(stopped).await, 0);
    assert_eq!(run().await, 1);
    assert_eq!(guides(&rest, &id).await.0, json!(11));
    assert_eq!(guides(&rest, &shown).await.0, json!(null), "it shows a guide already");
    assert_eq!(run().await, 0);
}
