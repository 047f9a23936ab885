//! Reading and rendering of guide sources. `tests/it/guide` tests the refreshes over real sockets.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::{AccountId, ChannelId, GuideChannelId, GuideSourceId, ProfileId};
use domain::panel::PanelLogin;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use serde_json::{Value, json};
use uuid::Uuid;

use super::LIST;
use crate::testing::{Rest, SECRET};

const IMPORT: &str = "/api/epg/import/";

async fn make(rest: &Rest, body: Value) -> u32 {
    let made = rest.admin("POST", LIST, body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    u32::try_from(made.body["id"].as_u64().unwrap()).unwrap()
}

fn one(id: u32) -> String {
    format!("{LIST}{id}/")
}

fn xmltv(name: &str) -> Value {
    json!({ "name": name, "source_type": "xmltv" })
}

fn account(id: u32, list: PlaylistLocation) -> Account {
    let profile = AccountProfile::default_of(ProfileId(id), "default", 1);
    Account::new(AccountId(id), format!("account {id}"), list, profile, 0)
}

#[tokio::test]
async fn a_source_is_created_updated_by_field_and_deleted() {
    let rest = Rest::start().await;
    let made = rest.admin("POST", LIST, xmltv(" Guide ")).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = u32::try_from(made.body["id"].as_u64().unwrap()).unwrap();
    let mut expected = json!({
        "id": id, "name": "Guide", "source_type": "xmltv", "url": null, "username": null, "account": null,
        "is_active": true, "file_path": null, "refresh_interval": 0, "needs_interval": false, "cron_expression": "", "priority": 0,
        "history_days": 7, "default_time_zone": null, "offset_minutes": 0, "status": "idle", "last_message": null, "last_message_code": null, "created_at": made.body["created_at"],
        "updated_at": null, "custom_properties": {}, "epg_data_count": 0, "program_count": 0,
        "has_channels": false,
    });
    assert_eq!(made.body, expected);
    for (field, value) in [
        ("name", json!("Other")),
        ("refresh_interval", json!(12)),
        ("url", json!("https://u:p@guide.example/guide.xml?key=k")),
        ("username", json!("anna")),
        ("is_active", json!(false)),
        ("refresh_interval", json!(24)),
        ("cron_expression", json!("30 4 * * *")),
        ("priority", json!(-3)),
        ("history_days", json!(0)),
        ("default_time_zone", json!("Europe/Amsterdam")),
        ("offset_minutes", json!(-90)),
        ("custom_properties", json!({ "a": [1] })),
        ("url", Value::Null),
        ("is_active", json!(true)),
    ] {
        let changed = rest.admin("PATCH", &one(id), json!({ field: value })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        expected[field] = value;
        expected["status"] = if expected["is_active"] == true { "idle" } else { "disabled" }.into();
        expected["updated_at"] = changed.body["updated_at"].clone();
        assert!(!expected["updated_at"].is_null(), "{field}");
        assert_eq!(changed.body, expected, "{field}");
    }
    // A whole object as it was read can be sent back.
    let same = rest.admin("PUT", &one(id), expected.clone()).await;
    assert_eq!((same.status, &same.body), (200, &expected), "{}", same.text);
    assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    let gone = rest.admin("GET", &one(id), Value::Null).await;
    assert_eq!(gone.body, json!({ "detail": "No EPGSource matches the given query." }));
}

/// Guides that were added by their address were never refreshed, and empty after some days.
#[tokio::test]
async fn a_guide_with_an_address_is_refreshed_daily_unless_the_client_chose_otherwise() {
    let rest = Rest::start().await;
    let url = json!("http://guide.example/guide.xml");
    let login = PanelLogin {
        server: SourceUrl::new("http://panel.example"),
        username: "u".to_owned(),
        password: Secret::new("p"),
    };
    rest.put([account(5, PlaylistLocation::Panel(login))]).await;
    for (more, expected) in [
        (json!({ "source_type": "xmltv", "url": url }), 24),
        (json!({ "source_type": "xmltv", "url": url, "refresh_interval": 6 }), 6),
        (json!({ "source_type": "xmltv", "url": url, "refresh_interval": 0 }), 0),
        (json!({ "source_type": "xmltv", "url": url, "cron_expression": "30 4 * * *" }), 0),
        (json!({ "source_type": "xmltv", "url": "" }), 0),
        (json!({ "source_type": "panel", "account": 5 }), 24),
        (json!({ "source_type": "schedules_direct", "username": "u", "password": "p" }), 24),
        (json!({ "source_type": "dummy" }), 0),
        (json!({ "source_type": "stream" }), 0),
        (json!({ "source_type": "written" }), 0),
    ] {
        let mut body = json!({ "name": more.to_string() });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = rest.admin("POST", LIST, body).await;
        assert_eq!((made.status, &made.body["refresh_interval"]), (201, &json!(expected)), "{more}");
        assert_eq!(made.body["needs_interval"], false, "{more}");
    }
    let late = make(&rest, xmltv("late")).await;
    let changed = rest.admin("PATCH", &one(late), json!({ "url": url })).await;
    assert_eq!(changed.body["refresh_interval"], 24, "an address that was added later");
    let changed = rest.admin("PATCH", &one(late), json!({ "refresh_interval": 0 })).await;
    let changed = (changed.status, rest.admin("PATCH", &one(late), json!({ "name": "later" })).await);
    assert_eq!(
        (changed.0, &changed.1.body["refresh_interval"]),
        (200, &json!(0)),
        "it stays as it was chosen"
    );
}

#[tokio::test]
async fn admins_are_asked_once_about_guides_that_an_earlier_version_never_refreshed() {
    let rest = Rest::start().await;
    let old = |id: u32| GuideSource {
        url: Some(SourceUrl::new("http://guide.example/guide.xml")),
        ..GuideSource::new(GuideSourceId(id), format!("Old {id}"), GuideSourceKind::Xmltv, 0)
    };
    rest.put([old(1), old(2)]).await;
    let asked = async || {
        let told = rest.admin("GET", "/api/core/notifications/", Value::Null).await.body;
        let told = told["notifications"].as_array().unwrap().clone();
        let is_question =
            |it: &&Value| it["notification_key"].as_str().unwrap().starts_with("guide_unscheduled");
        let titles: Vec<_> = told.iter().filter(is_question).map(|it| it["title"].to_string()).collect();
        let health = rest.admin("GET", "/api/core/health/", Value::Null).await.body;
        let kinds = health["problems"].as_array().unwrap();
        assert_eq!(kinds.iter().filter(|it| it["kind"] == "guide_unscheduled").count(), titles.len());
        titles
    };
    assert_eq!(asked().await, [r#""Guides \"Old 1\" and \"Old 2\" are never refreshed""#]);
    // Another change leaves the question open.
    let changed = rest.admin("PATCH", &one(1), json!({ "name": "First", "priority": 3 })).await;
    assert_eq!(
        (&changed.body["refresh_interval"], &changed.body["needs_interval"]),
        (&json!(0), &json!(true))
    );
    let accepted = rest.admin("PATCH", &one(1), json!({ "refresh_interval": 24 })).await.body;
    assert_eq!((&accepted["refresh_interval"], &accepted["needs_interval"]), (&json!(24), &json!(false)));
    assert_eq!(asked().await, [r#""Guide \"Old 2\" is never refreshed""#]);
    let declined = rest.admin("PATCH", &one(2), json!({ "refresh_interval": 0 })).await.body;
    assert_eq!((&declined["refresh_interval"], &declined["needs_interval"]), (&json!(0), &json!(false)));
    assert_eq!(asked().await, [""; 0]);
    // Nobody is asked again when a schedule is removed later.
    rest.admin("PATCH", &one(1), json!({ "refresh_interval": 0 })).await;
    assert_eq!(asked().await, [""; 0]);
}

#[tokio::test]
async fn invalid_sources_are_refused_by_field() {
    let rest = Rest::start().await;
    let id = make(&rest, xmltv("Guide")).await;
    rest.put([account(5, PlaylistLocation::File("/list".to_owned()))]).await;
    let with = |field: &str, value: Value| {
        let mut body = xmltv("Other");
        body[field] = value;
        body
    };
    let required = json!(["This field is required."]);
    for (body, errors) in [
        (json!({}), json!({ "name": required, "source_type": required })),
        (
            with("source_type", json!("zz")),
            json!({
                "source_type": [
                    "\"zz\" is not a valid choice. \
                     Choose one of: xmltv, schedules_direct, dummy, panel, stream, written."
                ],
            }),
        ),
        (with("url", json!("nope nope")), json!({ "url": ["Enter a valid URL."] })),
        (with("url", json!("file:///etc/passwd")), json!({ "url": ["Enter a valid URL."] })),
        (xmltv("Guide"), json!({ "name": ["This field must be unique."] })),
        (
            with("history_days", json!(61)),
            json!({ "history_days": ["Ensure this value is less than or equal to 60."] }),
        ),
        (
            with("account", json!(5)),
            json!({ "account": ["Only a source of the type panel has an account."] }),
        ),
        (
            with("source_type", json!("panel")),
            json!({ "account": ["This field is required for sources of the type panel."] }),
        ),
        (
            json!({ "name": "p", "source_type": "panel", "account": 5 }),
            json!({ "account": ["The account is not of the type XC or STALKER."] }),
        ),
        (
            json!({ "name": "p", "source_type": "panel", "account": 99 }),
            json!({ "account": ["Invalid pk \"99\" - object does not exist."] }),
        ),
    ] {
        let refused = rest.admin("POST", LIST, body.clone()).await;
        assert_eq!((refused.status, &refused.body), (400, &errors), "{body}");
    }
    let cron = rest.admin("PATCH", &one(id), json!({ "cron_expression": "hello" })).await;
    assert_eq!(cron.status, 400);
    let kind = rest.admin("PATCH", &one(id), json!({ "source_type": "dummy" })).await;
    assert_eq!(kind.body, json!({ "source_type": ["The type of a guide source cannot be changed."] }));
}

#[tokio::test]
async fn logins_addresses_and_properties_of_sources_are_for_admins_only() {
    let rest = Rest::start().await;
    let body = json!({
        "name": "Guide", "source_type": "schedules_direct", "url": format!("http://guide.example/{SECRET}"),
        "username": format!("user {SECRET}"), "password": format!("password {SECRET}"),
        "custom_properties": { "token": SECRET },
    });
    let id = make(&rest, body).await;
    let stored = rest.models.guide_sources.load().get(id).cloned().unwrap();
    assert_eq!(stored.password, Some(Secret::new(format!("password {SECRET}"))));
    let shown = rest.standard("GET", &one(id), Value::Null).await;
    assert_eq!(
        (&shown.body["url"], &shown.body["username"]),
        (&json!("http://guide.example/"), &Value::Null)
    );
    assert_eq!(shown.body["custom_properties"], json!({}));
    let shown = rest.admin("GET", &one(id), Value::Null).await;
    assert!(!shown.text.contains("password"), "{}", shown.text);
    // Left out, it is kept; null removes it, except where a login is required.
    let has_password = |id: u32| rest.models.guide_sources.load().get(id).unwrap().password.is_some();
    rest.admin("PATCH", &one(id), json!({ "name": "New" })).await;
    assert!(has_password(id));
    assert_eq!(rest.admin("PATCH", &one(id), json!({ "password": null })).await.status, 400);
    assert!(has_password(id));
    let other = make(&rest, json!({ "name": "Other", "source_type": "xmltv", "password": "p" })).await;
    assert!(has_password(other));
    rest.admin("PATCH", &one(other), json!({ "password": null })).await;
    assert!(!has_password(other));
}

#[tokio::test]
async fn a_source_of_schedules_direct_needs_a_login() {
    let rest = Rest::start().await;
    let required = json!(["This field is required for sources of the type schedules_direct."]);
    let kind = json!({ "name": "SD", "source_type": "schedules_direct" });
    let with = |login: Value| {
        let mut body = kind.clone();
        body.as_object_mut().unwrap().extend(login.as_object().unwrap().clone());
        body
    };
    for (login, errors) in [
        (json!({}), json!({ "username": required, "password": required })),
        (json!({ "username": "anna" }), json!({ "password": required })),
        (json!({ "username": " ", "password": "p" }), json!({ "username": required })),
        (json!({ "username": "anna", "password": "" }), json!({ "password": required })),
        (json!({ "username": null, "password": "p" }), json!({ "username": required })),
    ] {
        let refused = rest.admin("POST", LIST, with(login.clone())).await;
        assert_eq!((refused.status, &refused.body), (400, &errors), "{login}");
    }
    let id = make(&rest, with(json!({ "username": "anna", "password": "p" }))).await;
    let refused = rest.admin("PATCH", &one(id), json!({ "username": "" })).await;
    assert_eq!((refused.status, &refused.body), (400, &json!({ "username": required })));
    // One that was stored without a login can be switched off.
    rest.put([GuideSource::new(GuideSourceId(90), "Old", GuideSourceKind::SchedulesDirect, 0)]).await;
    let changed = rest.admin("PATCH", &one(90), json!({ "is_active": false })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
}

#[tokio::test]
async fn a_source_of_generated_programmes_has_one_guide_channel_and_is_not_refreshed() {
    let rest = Rest::start().await;
    let id = make(&rest, json!({ "name": "Dummy Sports", "source_type": "dummy" })).await;
    let channel = || rest.models.guide.load().source_channels(GuideSourceId(id))[0].clone();
    assert_eq!((&*channel().key, channel().name()), ("dummy_dummy_sports", "Dummy Sports"));
    let before = channel().id;
    let renamed = rest.admin("PATCH", &one(id), json!({ "name": "Films" })).await;
    assert_eq!(renamed.body["epg_data_count"], 1);
    assert_eq!((channel().id, channel().name()), (before, "Films"));
    let refused = rest.admin("POST", IMPORT, json!({ "id": id })).await;
    // Refreshes are not set up here; `tests/it/guide` has the answers of a gateway.
    assert_eq!(refused.status, 404);
}

#[tokio::test]
async fn a_deleted_source_takes_its_guide_and_the_links_to_it_along() {
    let rest = Rest::start().await;
    let [id, other] = [make(&rest, xmltv("a")).await, make(&rest, xmltv("b")).await];
    let guide_channel = |id: u32, source: u32| GuideChannel {
        id: GuideChannelId(id),
        source: GuideSourceId(source),
        key: format!("c{id}"),
        names: Vec::new(),
        icon: None,
    };
    rest.put([guide_channel(11, id), guide_channel(12, other)]).await;
    rest.put([GuideState { status: GuideStatus::Success, ..GuideState::new(GuideSourceId(id)) }]).await;
    let linked = |number: u32, to: u32| Channel {
        guide_channel: Some(GuideChannelId(to)),
        ..Channel::new(ChannelId(number), Uuid::from_u128(number.into()), format!("channel {number}"), 0)
    };
    rest.put([linked(1, 11), linked(2, 12)]).await;
    assert_eq!(rest.admin("GET", &one(id), Value::Null).await.body["has_channels"], true);
    assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    let channels = rest.models.channels.load();
    let links: Vec<_> = channels.iter().map(|it| it.guide_channel).collect();
    assert_eq!(links, [None, Some(GuideChannelId(12))]);
    assert!(rest.models.guide_states.load().is_empty());
    let left: Vec<_> = rest.models.guide.load().iter().map(|it| it.id.0).collect();
    assert_eq!(left, [12]);
}

#[tokio::test]
async fn an_account_that_leads_to_another_panel_has_another_guide() {
    let rest = Rest::start().await;
    let login = PanelLogin {
        server: SourceUrl::new("http://panel.example"),
        username: "anna".to_owned(),
        password: Secret::new("secret"),
    };
    rest.put([account(5, PlaylistLocation::Panel(login))]).await;
    let id = make(&rest, json!({ "name": "p", "source_type": "panel", "account": 5 })).await;
    let known = GuideState { etag: Some("\"1\"".to_owned()), ..GuideState::new(GuideSourceId(id)) };
    rest.put([known]).await;
    let changed = rest.admin("PATCH", "/api/m3u/accounts/5/", json!({ "username": "ben" })).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(rest.models.guide_states.load().get(id).unwrap().etag, None);
}
