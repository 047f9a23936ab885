//! Hidden channels, on every route that a user of level 0 or 1 may read. Generated from the table of routes.

use std::collections::BTreeSet;

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSourceKind;
use domain::ids::{
    AccountGroupId, AccountId, ChannelId, GroupId, GuideChannelId, GuideSourceId, LineupId, LogoId,
    ProfileId, StreamId,
};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::{User, UserLevel};
use http::Method;
use route_frame::access::Access;
use route_frame::call::ParameterKind;
use route_frame::route::{AnswerShape, Route};
use serde_json::{Value, json};
use uuid::Uuid;

use super::routes;
use crate::guide_testing::{four_days, guide_source, now, put_guide};
use crate::testing::{ADMIN, Rest, STANDARD, STREAMER};

/// Its name, the change of the channel, and that of the user.
type Hide = (&'static str, fn(Channel) -> Channel, fn(&mut User));

/// Part of every text of the hidden channel, and of what only it uses.
const HIDDEN: &str = "moonlight";
/// The same for a visible channel.
const SHOWN: &str = "sunshine";
/// The same for things that no channel uses.
const UNUSED: &str = "twilight";

const ACCOUNT: AccountId = AccountId(2);
const LINEUP: LineupId = LineupId(1);

/// Stores a channel with a stream, a group, a logo and a guide channel of this id, all named by one word; without the channel if
/// `change` returns none.
async fn put_things(rest: &Rest, id: u32, word: &str, change: impl FnOnce(Channel) -> Option<Channel>) {
    let logo = format!("http://logos.example/{word}.png");
    let facts = StreamProperties {
        tvg_id: Some(format!("{word}.example")),
        group: Some(format!("Group {word}")),
        logo: Some(logo.clone()),
        ..StreamProperties::new(
            format!("Stream {word}"),
            SourceUrl::new(format!("http://{word}.example/{id}.ts")),
        )
    };
    rest.put([Stream::new(StreamId(id), ACCOUNT, facts, 0)]).await;
    rest.put([Group::new(GroupId(id), format!("Group {word}"))]).await;
    rest.put([AccountGroup::new(AccountGroupId(id), ACCOUNT, GroupId(id), true)]).await;
    rest.put([Logo {
        id: LogoId(id),
        name: format!("Logo {word}"),
        url: logo.clone(),
        file: None,
        named_by: None,
        guide_source: None,
        updated_at: 0,
    }])
    .await;
    let channel = Channel {
        streams: vec![StreamId(id)],
        group: Some(GroupId(id)),
        logo_id: Some(LogoId(id)),
        logo: Some(logo),
        guide_channel: Some(GuideChannelId(id)),
        number: id.to_string().parse().ok(),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {word}"), 0)
    };
    rest.put(change(channel)).await;
}

/// Starts a gateway with things of each word, of which the id is 1, 2 and 3.
async fn stage(hide: impl FnOnce(Channel) -> Channel) -> Rest {
    let rest = Rest::start().await;
    let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
    let list = PlaylistLocation::Url(SourceUrl::new("http://provider.example/list.m3u"));
    rest.put([Account::new(ACCOUNT, "provider", list, profile, 0)]).await;
    put_things(&rest, 1, SHOWN, Some).await;
    put_things(&rest, 2, HIDDEN, |it| Some(hide(it))).await;
    put_things(&rest, 3, UNUSED, |_| None).await;
    let words = [SHOWN, HIDDEN, UNUSED];
    let guide = (1..).zip(words).map(|(id, word)| (id, word, four_days(now(), word))).collect();
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), guide).await;
    rest.put((1..).zip(words).map(|(id, word)| GuideChannel {
        id: GuideChannelId(id),
        source: GuideSourceId(1),
        key: format!("{word}.example"),
        names: vec![format!("Name of {word}")],
        icon: Some(format!("http://icons.example/{word}.png")),
    }))
    .await;
    let mut lineup = Lineup::new(LINEUP, "kids", false);
    lineup.set(ChannelId(1), true);
    rest.put([lineup]).await;
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
    rest
}

/// Returns the requests to a route that reads, each with a body; none for a stream of a channel.
fn requests(route: &Route, programmes: &[String]) -> Vec<(String, Value)> {
    let is_stream = matches!(route.answer, AnswerShape::StreamOrRedirect(_));
    if is_stream || !(route.method == Method::GET || route.only_reads) {
        return Vec::new();
    }
    let uuids = [1, 2, 3].map(|id| Uuid::from_u128(id).to_string());
    let body = match route.method == Method::GET {
        true => Value::Null,
        false => json!({
            "ids": [1, 2, 3], "uuids": uuids, "epg_data_ids": [1, 2, 3], "channel_ids": [1, 2, 3], "format": "m3u",
        }),
    };
    let filled = |id: usize| {
        route.path_parameters().fold(route.path.to_owned(), |path, name| {
            let value = match ParameterKind::from_name(name) {
                ParameterKind::Uuid => uuids[id].clone(),
                _ if name == "program" => programmes.get(id).cloned().unwrap_or_default(),
                _ => (id + 1).to_string(),
            };
            path.replace(&format!("{{{name}}}"), &value)
        })
    };
    let paths: BTreeSet<String> = (0..3).map(filled).collect();
    let mut all: Vec<String> = paths.iter().cloned().collect();
    let takes = |name: &str| route.inputs.query.iter().any(|it| it.name == name);
    let wanted =
        [("search", HIDDEN), ("name", HIDDEN), ("channel_group", "2"), ("assigned", "2"), ("ids", "1,2,3")];
    for (name, value) in wanted.into_iter().filter(|it| takes(it.0)) {
        all.extend(paths.iter().map(|it| format!("{it}?{name}={value}")));
    }
    all.into_iter().map(|it| (it, body.clone())).collect()
}

/// Returns the routes whose answers to a user contain a word.
async fn routes_with(rest: &Rest, user: u32, word: &str) -> BTreeSet<String> {
    // Numbers of the programmes, as a user who sees everything finds them.
    let listed = rest.admin("GET", "/api/epg/programs/?page_size=50", Value::Null).await.body;
    let programme = |word: &str| {
        let found = listed["results"].as_array().unwrap().iter();
        let mut found = found.filter(|it| it["title"].as_str().unwrap().contains(word));
        found.next().unwrap()["id"].to_string()
    };
    let programmes = [SHOWN, HIDDEN, UNUSED].map(programme);
    let mut with = BTreeSet::new();
    for route in routes() {
        if matches!(route.access, Access::Anyone | Access::QueryLogin | Access::PathLogin) {
            continue;
        }
        for (path, body) in requests(&route, &programmes) {
            let answer = rest.ask(user, route.method.as_str(), &path, body).await;
            // The filters of a request can be in the addresses of the pages before and after, and in refusals.
            let text = answer.text.replace(&format!("={HIDDEN}"), "=").replace(&format!("\"{HIDDEN}\""), "");
            if answer.status < 400 && text.to_lowercase().contains(word) {
                with.insert(format!("{} {}", route.method, route.path));
            }
        }
    }
    with
}

/// Returns a user of the same id with other limits.
fn changed(rest: &Rest, user: u32, change: impl FnOnce(&mut User)) -> User {
    let mut changed = (*rest.user(user)).clone();
    change(&mut changed);
    changed
}

/// Holds T-acc.3 for the REST interface.
#[tokio::test]
async fn a_hidden_channel_is_on_no_route_and_neither_is_what_only_it_uses() {
    let hides: [Hide; 4] = [
        ("adult", |it| Channel { is_adult: true, ..it }, |it| it.hide_adult = true),
        ("lineup", |it| it, |it| it.lineups = vec![LINEUP]),
        ("level", |it| Channel { user_level: UserLevel::Admin, ..it }, |_| {}),
        ("disabled", |it| Channel { enabled: false, ..it }, |_| {}),
    ];
    for (why, hide, limit) in hides {
        let rest = stage(hide).await;
        for user in [STREAMER, STANDARD] {
            rest.put([changed(&rest, user, limit)]).await;
            let leaks = routes_with(&rest, user, HIDDEN).await;
            assert!(leaks.is_empty(), "{why}: the user {user} finds the channel at {leaks:#?}");
        }
        let unused = routes_with(&rest, STANDARD, UNUSED).await;
        let is_limited = ["adult", "lineup"].contains(&why);
        assert_eq!(unused.is_empty(), is_limited, "{why}: {unused:#?}");
    }
}

#[tokio::test]
async fn what_a_visible_channel_uses_is_on_the_same_routes_for_limited_users() {
    let rest = stage(|it| Channel { is_adult: true, ..it }).await;
    let of_admin = routes_with(&rest, ADMIN, HIDDEN).await;
    let before = routes_with(&rest, STANDARD, SHOWN).await;
    assert_eq!(routes_with(&rest, STANDARD, HIDDEN).await, before, "nothing is hidden yet");
    for path in [
        "/api/channels/streams/",
        "/api/channels/streams/{id}/",
        "/api/channels/streams/groups/",
        "/api/channels/logos/",
        "/api/channels/logos/{id}/",
        "/api/channels/groups/",
        "/api/epg/epgdata/",
        "/api/epg/programs/",
        "/api/epg/programs/search/",
        "/api/epg/programs/{program}/",
        "/api/m3u/accounts/",
    ] {
        let route = format!("GET {path}");
        assert!(of_admin.contains(&route) && before.contains(&route), "{route} names the channel");
    }
    rest.put([changed(&rest, STANDARD, |it| it.hide_adult = true)]).await;
    assert_eq!(routes_with(&rest, STANDARD, SHOWN).await, before);
    let counts =
        ["/api/channels/streams/", "/api/channels/logos/", "/api/epg/programs/search/?search=moonlight"];
    for (path, expected) in counts.into_iter().zip([1, 1, 0]) {
        let listed = rest.standard("GET", path, Value::Null).await;
        assert_eq!(listed.body["count"], expected, "{path}: {}", listed.text);
    }
}
