//! Recordings in players: as films of a panel, with a seat; from a time on; and as HLS, also while they run.

use domain::recording::FILM_CATEGORY;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::recordings::{LIST, Studio};
use crate::support::api::{ADMIN, PASSWORD};
use crate::support::client::{Player, Reading, Request, fetch};
use crate::support::{tools, until_async};

const PLAYER_PASSWORD: &str = "player/password 1";

/// Creates a user who may watch one stream at a time.
async fn anna(studio: &Studio) {
    let user = json!({
        "username": "anna", "password": "a-long-password-1", "user_level": 0, "stream_limit": 1,
        "custom_properties": { "xc_password": PLAYER_PASSWORD },
    });
    let made = studio.admin.post("/api/accounts/users/", user).await;
    assert_eq!(made.status, 201, "{made:?}");
}

async fn panel(studio: &Studio, action: &str) -> Value {
    let password = utf8_percent_encode(PLAYER_PASSWORD, NON_ALPHANUMERIC);
    let path = format!("/player_api.php?username=anna&password={password}&action={action}");
    let answer = fetch(studio.address, Request::get(path)).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    serde_json::from_slice(&answer.bytes).unwrap()
}

async fn stop(studio: &Studio, id: u64) -> Vec<u8> {
    let stopped = studio.admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    studio.finished(id).await
}

/// Returns whether the first packet of the picture in some bytes is a key frame.
pub(crate) async fn begins_with_key_frame(bytes: &[u8]) -> bool {
    let file = tools::saved(bytes);
    let path = file.path().to_string_lossy().into_owned();
    let entries =
        ["-v", "error", "-select_streams", "v", "-show_entries", "packet=flags", "-of", "csv=p=0", &path];
    let text = tools::text_of("ffprobe", &entries).await;
    text.lines().next().is_some_and(|it| it.starts_with('K'))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_plays_a_recording_that_runs_as_a_film_with_one_seat() {
    let studio = Studio::start().await;
    anna(&studio).await;
    let id = studio.record().await;
    studio.until_size(id, 400_000).await;
    let films = panel(&studio, "get_vod_streams").await;
    let number = films[0]["stream_id"].as_u64().unwrap();
    assert_eq!(films[0]["category_id"], FILM_CATEGORY.to_string(), "{films}");
    let password = utf8_percent_encode(PLAYER_PASSWORD, NON_ALPHANUMERIC);
    for kind in ["movie", "series"] {
        let path = format!("/{kind}/anna/{password}/{number}.ts");
        let part = fetch(studio.address, Request::get(&path).header("Range", "bytes=188-375")).await;
        assert_eq!((part.status(), part.bytes.len()), (206, 188), "{kind}");
        let head = fetch(studio.address, Request::head(&path)).await;
        assert_eq!((head.status(), head.header("content-type")), (200, Some("video/mp2t")), "{kind}");
    }
    let path = format!("/movie/anna/{password}/{number}.ts");
    let follower = Player::watch(studio.address, &path).await;
    follower.sees("news").await;
    follower.more_bytes(300_000).await;
    // The same device seeks, and another one is over the limit.
    let part = fetch(studio.address, Request::get(&path).header("Range", "bytes=0-187")).await;
    assert_eq!(part.status(), 206);
    let other = Request::get(&path).header("User-Agent", "Other/1.0").reading(Reading::Freely);
    let refused = fetch(studio.address, other).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")), "{}", refused.text());
    let bytes = stop(&studio, id).await;
    follower.ended().await;
    assert_eq!(follower.recording(), bytes, "a follower gets the whole file");
    let unknown = fetch(studio.address, Request::get(format!("/movie/anna/{password}/2000009999.ts"))).await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(studio.provider.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_plays_from_a_time_on_and_as_hls_while_it_grows() {
    let studio = Studio::start().await;
    let id = studio.record().await;
    let token = studio.admin.token(ADMIN, PASSWORD).await;
    let token = token.text("access").to_owned();
    let hls = format!("{LIST}{id}/hls/?token={token}");
    let playlist = async || fetch(studio.address, Request::get(&hls)).await.text();
    until_async("two segments", async || playlist().await.matches("#EXTINF").count() >= 2).await;
    let growing = playlist().await;
    assert!(growing.contains("#EXT-X-PLAYLIST-TYPE:EVENT") && !growing.contains("ENDLIST"), "{growing}");
    // From the fifth second on, while it runs.
    let file = format!("{LIST}{id}/file/?token={token}&start=5");
    let range = Request::get(&file).header("Range", "bytes=0-187999");
    let part = fetch(studio.address, range).await;
    assert_eq!((part.status(), part.bytes.len()), (206, 188_000), "{}", part.text());
    assert!(begins_with_key_frame(&part.bytes).await);
    let bytes = stop(&studio, id).await;
    let whole = playlist().await;
    let entries = |it: &str| it.trim_end_matches("#EXT-X-ENDLIST\n").to_owned();
    assert!(whole.starts_with(&growing) && whole.ends_with("#EXT-X-ENDLIST\n"), "{growing}\n{whole}");
    // The segments follow each other without a gap, and each begins with a key frame.
    let mut end = 0;
    for range in entries(&whole).lines().filter_map(|it| it.strip_prefix("#EXT-X-BYTERANGE:")) {
        let (length, offset) = range.split_once('@').unwrap();
        let (length, offset): (usize, usize) = (length.parse().unwrap(), offset.parse().unwrap());
        assert_eq!(offset, end, "{whole}");
        end = offset + length;
        assert!(begins_with_key_frame(&bytes[offset..end]).await, "{range}");
    }
    assert_eq!(end, bytes.len());
    let url = format!("http://{}{hls}", studio.address);
    let packets =
        ["-v", "error", "-show_entries", "packet=codec_type,stream_index,dts_time", "-of", "csv=p=0", &url];
    let times = tools::DecodingTimes::from_packets(&tools::text_of("ffprobe", &packets).await);
    assert_eq!(times.n_streams, 2);
    assert!(times.seconds > 11.0, "{}", times.seconds);
    // An instant, and one after the end.
    let started = studio.get(id).await["started_at"].as_str().unwrap().to_owned();
    let at = |start: &str| format!("{LIST}{id}/file/?token={token}&start={start}");
    let from_start = fetch(studio.address, Request::get(at(&started))).await;
    assert!(from_start.status() == 200 && from_start.bytes.len() > bytes.len() / 2);
    assert_eq!(fetch(studio.address, Request::get(at("86400"))).await.status(), 416);
    assert_eq!(fetch(studio.address, Request::get(at("soon"))).await.status(), 400);
}
