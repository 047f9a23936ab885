//! Rules of recordings over REST: the preview says beforehand what a rule then does.

use serde_json::{Value, json};

use crate::guide::fixture::xmltv_time;
use crate::recordings::{LIST, Studio, millis};
use crate::support::until_async;
use crate::support::upstream::MockResponse;

const RULES: &str = "/api/channels/series-rules/";
const GUIDE: &str = "/guide.xml";
const HOUR: i64 = 3_600;

/// A studio whose channel shows four episodes of a series, most of them twice.
struct Series {
    studio: Studio,
    /// Seconds since 1970.
    now: i64,
}

impl Series {
    async fn open() -> Series {
        let (studio, now) = (Studio::start().await, actors::now_ms() / 1000);
        let episode = |(number, from): &(u32, i64)| {
            let [start, stop] = [*from, from + 1].map(|it| xmltv_time(now + it * HOUR + HOUR / 2));
            format!(
                "<programme start=\"{start}\" stop=\"{stop}\" channel=\"news\"><title>The Show</title>\
                 <episode-num system=\"xmltv_ns\">0.{}.</episode-num></programme>\n",
                number - 1
            )
        };
        let shown = [(3, -5), (1, -1), (2, 2), (1, 4), (3, 5), (2, 7), (4, 9)];
        let programmes: String = shown.iter().map(episode).collect();
        let guide = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n\
             <channel id=\"news\"><display-name>News</display-name></channel>\n{programmes}</tv>\n"
        );
        studio.provider.path(GUIDE).answers(MockResponse::text("text/xml", guide));
        let body = json!({ "name": "Guide", "source_type": "xmltv", "url": studio.provider.url(GUIDE) });
        let made = studio.admin.post("/api/epg/sources/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let source = format!("/api/epg/sources/{}/", made.body["id"]);
        let admin = &studio.admin;
        until_async("the guide", async || admin.get(&source).await.body["program_count"] == shown.len())
            .await;
        let series = Series { studio, now };
        // The channel finds its guide a moment later.
        let all = json!({ "tvg_id": "news", "title": "The Show" });
        until_async("the programmes of the channel", async || !series.matches(&all).await.is_empty()).await;
        series
    }

    fn hours(&self, time: &Value) -> i64 {
        (millis(time) / 1000 - self.now - HOUR / 2) / HOUR
    }

    async fn matches(&self, rule: &Value) -> Vec<Value> {
        let found = self.studio.admin.post(&format!("{RULES}preview/"), rule.clone()).await;
        assert_eq!(found.status, 200, "{found:?}");
        found.body["matches"].as_array().unwrap().clone()
    }

    /// Returns the preview of a rule as `episode@start mark reason`, with the start in hours.
    async fn preview(&self, rule: &Value) -> Vec<String> {
        let show = |it: &Value| {
            assert_eq!(it["channel_name"], "News", "{it}");
            let (hours, mark) = (self.hours(&it["start_time"]), it["mark"].as_str().unwrap());
            let reason = it["reason"].as_str().map(|it| format!(" {it}")).unwrap_or_default();
            format!("{}@{hours} {mark}{reason}", it["episode"])
        };
        self.matches(rule).await.iter().map(show).collect()
    }

    /// Returns the scheduled recordings as `episode@start`.
    async fn scheduled(&self) -> Vec<String> {
        let list = self.studio.admin.get(&format!("{LIST}?status=scheduled")).await.body;
        let episode = |it: &Value| it["custom_properties"]["program"]["episode"].clone();
        let show = |it: &Value| format!("{}@{}", episode(it), self.hours(&it["start_time"]));
        let mut all: Vec<_> = list["results"].as_array().unwrap().iter().map(show).collect();
        all.sort();
        all
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_marks_each_showing_with_what_the_rule_then_does() {
    let series = Series::open().await;
    let (studio, admin) = (&series.studio, &series.studio.admin);
    let all = json!({ "tvg_id": "news", "title": "The Show" });
    let new = json!({ "tvg_id": "news", "title": "The Show", "mode": "new" });
    let before = ["1@-1 skipped begun", "2@2 scheduled", "1@4 scheduled", "3@5 scheduled", "2@7 alternative"];
    assert_eq!(series.preview(&all).await[..5], before);

    // The running episode is recorded, and has a complete copy.
    let program = series.matches(&all).await[0]["id"].clone();
    let channel = admin.get("/api/channels/channels/").await.body["results"][0]["id"].clone();
    let made = admin.post(LIST, json!({ "channel_id": channel, "program_id": program })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].as_u64().unwrap();
    studio.until_size(id, 200_000).await;
    assert_eq!(series.preview(&all).await[0], "1@-1 scheduled running");
    let put = json!({ "status": "completed" });
    assert_eq!(admin.send("PUT", &format!("{LIST}{id}/"), put).await.status, 200);
    studio.finished(id).await;
    let expected = [
        "1@-1 recorded by_hand",
        "2@2 scheduled",
        "1@4 recorded by_hand",
        "3@5 scheduled",
        "2@7 alternative",
        "4@9 scheduled",
    ];
    assert_eq!(series.preview(&all).await, expected);
    let marked = [
        "1@-1 not_new shown_before",
        "2@2 scheduled",
        "1@4 not_new shown_before",
        "3@5 not_new shown_before",
        "2@7 alternative",
        "4@9 scheduled",
    ];
    assert_eq!(series.preview(&new).await, marked);
    assert_eq!(series.scheduled().await, [] as [&str; 0], "previews make nothing");

    // The rule does what it said, and says the same once it exists.
    assert_eq!(admin.post(RULES, new.clone()).await.status, 200);
    assert_eq!(series.scheduled().await, ["2@2", "4@9"]);
    assert_eq!(series.preview(&new).await, marked);
    let as_all = series.preview(&all).await;
    assert_eq!(as_all, expected, "the rule as it would be after a change");
    let other = json!({ "title": "The Show" });
    let of_other = series.preview(&other).await;
    let others = [
        "2@2 scheduled other_rule",
        "3@5 scheduled",
        "2@7 alternative other_rule",
        "4@9 scheduled other_rule",
    ];
    assert_eq!([1, 3, 4, 5].map(|it| of_other[it].clone()), others);
    let off = json!({ "tvg_id": "news", "title": "The Show", "enabled": false });
    assert!(series.preview(&off).await.iter().all(|it| it.ends_with(" skipped rule_off")));

    // An episode whose recording a user deletes is not recorded again, not even after the rule itself was deleted.
    let list = admin.get(&format!("{LIST}?status=scheduled")).await.body;
    let first = format!("{LIST}{}/", list["results"][0]["id"]);
    assert_eq!(admin.delete(&first).await.status, 204);
    let deleted = ["2@2 recorded deleted", "2@7 recorded deleted"];
    let of_deleted = async || {
        let found = series.preview(&new).await;
        [1, 4].map(|it| found[it].clone())
    };
    assert_eq!(of_deleted().await, deleted);
    assert_eq!(admin.delete(&format!("{RULES}news/")).await.status, 204);
    assert_eq!(of_deleted().await, deleted);
    assert_eq!(admin.post(RULES, new.clone()).await.status, 200);
    assert_eq!(series.scheduled().await, ["4@9"]);
    assert_eq!(of_deleted().await, deleted);
}
