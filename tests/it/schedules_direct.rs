//! Guide sources at Schedules Direct: their refreshes, and their lineups over the REST interface.

use actors::{GuideError, GuideOptions, GuideParts, GuideSummary, refresh_guide};
use domain::guide::channel::GuideChannel;
use domain::guide::programme::{Programme, from_xml};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::GuideSourceId;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::user::UserLevel;
use serde_json::{Value, json};
use storage::Models;

use crate::guide::fixture::guide_parts;
use crate::import::fixture::blocking;
use crate::support::api::{Api, ApiReply};
use crate::support::gateway::Setup;
use crate::support::schedules_direct::{PASSWORD, SchedulesDirectServer, USERNAME};
use crate::support::until_async;
use crate::support::users::create_user;

/// 2030-03-17T17:46:40Z, in milliseconds.
const START: i64 = 1_900_000_000_000;
const HOUR: i64 = 3_600_000;
const SOURCE: GuideSourceId = GuideSourceId(1);

/// A source that is refreshed without a gateway.
struct ServiceFixture {
    service: SchedulesDirectServer,
    models: Models,
    parts: GuideParts,
}

impl ServiceFixture {
    async fn new(password: &'static str) -> Self {
        let service = SchedulesDirectServer::start();
        service.has_lineup("USA-NJ1-X");
        service.day(
            "20454",
            "2030-03-17",
            1,
            &[("EP012345670001", "18:00", 1_800), ("MV012345670000", "18:30", 5_400)],
        );
        service.day("20454", "2030-03-18", 1, &[("EP012345670002", "18:00", 1_800)]);
        service.day("7", "2030-03-17", 1, &[("EP012345670001", "20:00", 1_800)]);
        for (id, title) in [("EP012345670001", "One"), ("EP012345670002", "Two"), ("MV012345670000", "Film")]
        {
            service.program(id, title);
        }
        let mut source = GuideSource::new(SOURCE, "Guide", GuideSourceKind::SchedulesDirect, START);
        source.url = Some(SourceUrl::new(service.url()));
        source.username = Some(USERNAME.to_owned());
        source.password = Some(Secret::new(password));
        let parts = guide_parts(source, std::env::temp_dir()).await;
        let models = parts.models.clone();
        Self { service, models, parts }
    }

    async fn refresh(&self, at: i64) -> Result<GuideSummary, GuideError> {
        let options = GuideOptions { at: Some(at), ..GuideOptions::default() };
        refresh_guide(&self.parts, SOURCE, options, |_| {}).await
    }

    /// Returns the programmes of each guide channel, by its key.
    async fn guide(&self) -> Vec<(String, Vec<Programme>)> {
        let (store, file) = (self.models.store.clone(), self.parts.files.file(SOURCE).expect("a guide"));
        blocking(move || {
            let mut channels = Vec::new();
            let all = store.collection::<GuideChannel>();
            all.for_each_of(u64::from(SOURCE.0), |it| channels.push((it.key, it.id))).unwrap();
            channels.sort();
            let read = |(key, id)| {
                let stored = file.programmes(id, i64::MIN, i64::MAX).unwrap();
                let programmes = stored.iter().map(|it| from_xml(it.start, it.stop, &it.inner).unwrap());
                (key, programmes.collect())
            };
            channels.into_iter().map(read).collect()
        })
        .await
    }

    async fn titles(&self) -> Vec<String> {
        let guide = self.guide().await;
        let titles = |(key, programmes): &(String, Vec<Programme>)| {
            let titles: Vec<_> = programmes.iter().map(Programme::title).collect();
            format!("{key}: {}", titles.join(", "))
        };
        guide.iter().map(titles).collect()
    }
}

#[tokio::test]
async fn a_guide_has_the_stations_and_programmes_of_the_lineups() {
    let fixture = ServiceFixture::new(PASSWORD).await;
    let summary = fixture.refresh(START).await.unwrap();
    assert_eq!((summary.n_channels, summary.n_programmes, summary.n_skipped), (2, 4, 0));
    assert_eq!(fixture.titles().await, ["20454: One, Film, Two", "7: One"]);
    let guide = fixture.guide().await;
    let first = &guide[0].1[0];
    assert_eq!((first.season_episode(), first.is_new()), ((Some(2), Some(5)), true));
    assert_eq!(first.icon(), Some("https://images.example/EP01234567.jpg"));
    let requests = fixture.service.take_requests();
    assert_eq!(
        requests,
        [
            "POST /token",
            "GET /status",
            "GET /lineups",
            "GET /lineups/USA%2DNJ1%2DX",
            "POST /schedules/md5",
            "POST /schedules",
            "POST /programs",
            "POST /metadata/programs",
        ]
    );
}

#[tokio::test]
async fn only_changed_days_are_fetched_and_not_within_two_hours() {
    let fixture = ServiceFixture::new(PASSWORD).await;
    fixture.refresh(START).await.unwrap();
    fixture.service.take_requests();
    assert!(fixture.refresh(START + HOUR).await.unwrap().is_unchanged);
    assert_eq!(fixture.service.take_requests(), [""; 0], "the service wants two hours between");

    fixture.service.day("20454", "2030-03-18", 2, &[("EP012345670003", "19:00", 1_800)]);
    fixture.service.program("EP012345670003", "Three");
    let summary = fixture.refresh(START + 2 * HOUR).await.unwrap();
    assert_eq!((summary.is_unchanged, summary.n_channels), (false, 2));
    assert_eq!(fixture.titles().await, ["20454: One, Film, Three", "7: One"]);
    assert_eq!(
        fixture.service.bodies("POST /schedules"),
        [json!([{ "stationID": "20454", "date": ["2030-03-18"] }])]
    );
    assert_eq!(fixture.service.bodies("POST /programs"), [json!(["EP012345670003"])]);
    assert!(!fixture.service.take_requests().contains(&"POST /token".to_owned()), "a token lasts a day");

    assert!(fixture.refresh(START + 4 * HOUR).await.unwrap().is_unchanged);
    let requests = fixture.service.take_requests();
    assert_eq!(
        requests,
        ["GET /status", "GET /lineups", "GET /lineups/USA%2DNJ1%2DX", "POST /schedules/md5"]
    );
}

#[tokio::test]
async fn a_day_that_the_service_is_preparing_keeps_its_former_programmes_and_is_fetched_again() {
    let fixture = ServiceFixture::new(PASSWORD).await;
    fixture.refresh(START).await.unwrap();
    // A programme that the service does not have yet.
    fixture.service.day("20454", "2030-03-18", 2, &[("EP012345670009", "19:00", 1_800)]);
    fixture.refresh(START + 3 * HOUR).await.unwrap();
    let former = ["20454: One, Film, Two", "7: One"];
    assert_eq!(fixture.titles().await, former);
    fixture.service.take_requests();
    fixture.service.program("EP012345670009", "Nine");
    fixture.refresh(START + 6 * HOUR).await.unwrap();
    assert_eq!(fixture.service.bodies("POST /programs"), [json!(["EP012345670009"])]);
    let new = ["20454: One, Film, Nine", "7: One"];
    assert_eq!(fixture.titles().await, new);
    // A day without a version.
    fixture.service.has_no_day("20454", "2030-03-18");
    fixture.refresh(START + 9 * HOUR).await.unwrap();
    assert_eq!(fixture.titles().await, new);
}

#[tokio::test]
async fn an_expired_token_is_replaced_once_and_the_refresh_continues() {
    let fixture = ServiceFixture::new(PASSWORD).await;
    fixture.refresh(START).await.unwrap();
    fixture.service.take_requests();
    fixture.service.forget_tokens();
    fixture.refresh(START + 3 * HOUR).await.unwrap();
    let requests = fixture.service.take_requests();
    assert_eq!(requests[..3], ["GET /status", "POST /token", "GET /status"]);
    // A service that refuses every token is asked for one more, and not again.
    fixture.service.refuses("/status", 4006, 2);
    let error = fixture.refresh(START + 6 * HOUR).await.unwrap_err();
    assert_eq!(error.sentence(), "The login at Schedules Direct has expired.");
    assert_eq!(fixture.service.take_requests(), ["GET /status", "POST /token", "GET /status"]);
}

#[tokio::test]
async fn a_refusal_that_would_come_again_pauses_all_requests_and_keeps_the_guide() {
    for (path, code, message) in [
        ("/token", 4009, "Schedules Direct: the daily quota of logins is used up."),
        ("/status", 3000, "Schedules Direct is offline for maintenance."),
        ("/status", 4001, "The account at Schedules Direct has expired."),
    ] {
        let fixture = ServiceFixture::new(PASSWORD).await;
        fixture.refresh(START).await.unwrap();
        fixture.service.forget_tokens();
        fixture.service.take_requests();
        fixture.service.refuses(path, code, 1);
        let error = fixture.refresh(START + 3 * HOUR).await.unwrap_err();
        assert_eq!(error.sentence(), message, "{code}");
        let n_requests = fixture.service.take_requests().len();
        assert!(n_requests <= 3, "{code}: {n_requests} requests");
        for n in 4..8 {
            let error = fixture.refresh(START + n * HOUR).await.unwrap_err().sentence();
            assert!(error.starts_with(message.trim_end_matches('.')) && error.contains("minutes"), "{error}");
        }
        assert_eq!(fixture.service.take_requests(), [""; 0], "{code}");
        assert_eq!(fixture.titles().await.len(), 2, "the former guide stays");
    }
    let fixture = ServiceFixture::new("wrong").await;
    let error = fixture.refresh(START).await.unwrap_err().sentence();
    assert_eq!(error, "Schedules Direct refuses the user name or password.");
    fixture.refresh(START).await.unwrap_err();
    assert_eq!(fixture.service.take_requests(), ["POST /token"]);
}

#[tokio::test]
async fn maintenance_and_an_account_without_lineups_are_reported() {
    let fixture = ServiceFixture::new(PASSWORD).await;
    fixture.service.is_offline(true);
    let error = fixture.refresh(START).await.unwrap_err();
    assert_eq!(error.sentence(), "Schedules Direct is offline for maintenance.");
    fixture.service.is_offline(false);
    fixture.service.refuses("/lineups", 4102, 1);
    let error = fixture.refresh(START).await.unwrap_err();
    assert_eq!(error.sentence(), "The account at Schedules Direct has no lineups; add one.");
    fixture.refresh(START).await.unwrap();
}

async fn made(admin: &Api, service: &SchedulesDirectServer) -> String {
    let source = json!({
        "name": "Guide", "source_type": "schedules_direct", "url": service.url(), "username": USERNAME,
        "password": PASSWORD,
    });
    let made = admin.post("/api/epg/sources/", source).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert!(!made.answer.text().contains(PASSWORD), "{made:?}");
    let source = format!("/api/epg/sources/{}/", made.body["id"]);
    // Otherwise its requests would be among those of the test.
    until_async("the end of the first refresh", async || {
        let shown = admin.get(&source).await.body;
        ["success", "error"].contains(&shown["status"].as_str().unwrap())
    })
    .await;
    source
}

fn has_no_secret(reply: &ApiReply) {
    let text = reply.answer.text();
    assert!(!text.contains(PASSWORD) && !text.contains("secret-token"), "{text}");
}

#[tokio::test]
async fn an_admin_searches_adds_and_removes_lineups_and_gets_their_guide() {
    let service = SchedulesDirectServer::start();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    service.day("20454", &date, 1, &[("EP012345670001", "00:00", 86_400)]);
    service.program("EP012345670001", "One");
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let source = made(&admin, &service).await;
    let lineups = format!("{source}sd-lineups/");
    let listed = admin.get(&lineups).await;
    assert_eq!((listed.status, &listed.body["lineups"]), (200, &json!([])), "{listed:?}");
    assert_eq!((&listed.body["changes_remaining"], &listed.body["max_lineups"]), (&Value::Null, &json!(4)));
    assert_eq!(listed.body["countries"][0]["code"], "USA");
    has_no_secret(&listed);
    service.take_requests();
    assert_eq!(admin.get(&lineups).await.body, listed.body);
    assert!(!service.take_requests().iter().any(|it| it.starts_with("GET /")), "it is shown from memory");

    let place = json!({ "country": "USA", "postal_code": "60030" });
    let found = admin.post(&format!("{lineups}search/"), place).await;
    assert_eq!(found.body["lineups"][0]["lineup"], "USA-IL1-X", "{found:?}");
    let nowhere =
        admin.post(&format!("{lineups}search/"), json!({ "country": "USA", "postal_code": "x" })).await;
    assert_eq!(nowhere.status, 400, "{nowhere:?}");

    let added = admin.post(&lineups, json!({ "lineup": "USA-IL1-X" })).await;
    assert_eq!((added.status, &added.body["changes_remaining"]), (200, &json!(5)), "{added:?}");
    until_async("the guide of the lineup", async || {
        let source = admin.get(&source).await.body;
        source["status"] == "success" && source["epg_data_count"] == 1
    })
    .await;
    let again = admin.post(&lineups, json!({ "lineup": "USA-IL1-X" })).await;
    assert_eq!(
        (again.status, again.text("detail")),
        (400, "The account at Schedules Direct has this lineup already.")
    );
    let listed = admin.get(&lineups).await;
    assert_eq!(listed.body["lineups"][0]["lineup"], "USA-IL1-X");
    assert_eq!(listed.body["changes_remaining"], 5);
    let removed = admin.delete(&format!("{lineups}?lineup=USA-IL1-X")).await;
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(admin.get(&lineups).await.body["lineups"], json!([]));
}

#[tokio::test]
async fn lineups_can_be_seen_but_not_changed_without_being_an_admin() {
    let service = SchedulesDirectServer::start();
    service.has_lineup("USA-IL1-X");
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let source = made(&admin, &service).await;
    let lineups = format!("{source}sd-lineups/");
    let user = create_user(&gateway, "kid", |it| it.level = UserLevel::Standard).await;
    let standard = Api::stranger(&gateway).key(&user.api_key);
    let listed = standard.get(&lineups).await;
    assert_eq!(listed.status, 200, "{listed:?}");
    has_no_secret(&listed);
    assert_eq!(standard.post(&lineups, json!({ "lineup": "a" })).await.status, 403);
    let other = json!({ "name": "Dummy", "source_type": "dummy" });
    let other = admin.post("/api/epg/sources/", other).await;
    let wrong = admin.get(&format!("/api/epg/sources/{}/sd-lineups/", other.body["id"])).await;
    assert_eq!(
        (wrong.status, wrong.text("detail")),
        (400, "The guide source is not of the type schedules_direct.")
    );
    assert_eq!(admin.post(&lineups, json!({})).await.status, 400);
    service.refuses("/lineups", 4100, 1);
    let refused = admin.post(&lineups, json!({ "lineup": "b" })).await;
    assert_eq!(
        (refused.status, refused.text("detail")),
        (400, "Schedules Direct: the daily quota of lineup changes is used up.")
    );
    assert_eq!(admin.get(&lineups).await.body["changes_remaining"], 0);
}
