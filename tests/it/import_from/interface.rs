//! The REST interface of the other service, as far as the import asks it.

use std::collections::HashMap;
use std::sync::Arc;

use domain::channel::Channel;
use domain::logo::Logo;
use domain::stream::Stream;
use domain::user::User;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{BACKUP, Data, NEWS, NEWS_UUID, PASSWORD, counts, provider, watch_news};
use crate::support::client::{Request, fetch};
use crate::support::gateway::Setup;
use crate::support::upstream::Provider;

const KEY: &str = "secret-key-of-the-old-service";
const TOKEN: &str = "token-of-the-old-service";

/// A server with the answers of the interface, by path without the query.
struct OldService {
    address: String,
}

impl OldService {
    async fn start(answers: HashMap<&'static str, Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let answers = Arc::new(answers);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(socket, answers.clone()));
            }
        });
        Self { address }
    }
}

async fn answer(mut socket: TcpStream, answers: Arc<HashMap<&'static str, Value>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = socket.read_u8().await else { return };
        head.push(byte.to_ascii_lowercase());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split_once("content-length: ").and_then(|it| it.1.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).await.unwrap();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_known = head.contains(&format!("x-api-key: {KEY}")) || head.contains(&format!("bearer {TOKEN}"));
    let (status, value) = match answers.get(path) {
        _ if path == "/api/accounts/token/" => {
            let login: Value = serde_json::from_slice(&body).unwrap();
            match login == json!({ "username": "Anna", "password": PASSWORD }) {
                true => (200, json!({ "access": TOKEN, "refresh": "x" })),
                false => (401, json!({ "detail": "No active account found with the given credentials" })),
            }
        }
        _ if !is_known => (401, json!({ "detail": "Invalid API key" })),
        Some(Value::Array(pages)) if path.ends_with("/streams/") => {
            let number =
                query.split("page=").nth(1).and_then(|it| it.split('&').next()?.parse::<usize>().ok());
            let number = number.unwrap();
            let next = (number < pages.len()).then(|| "http://elsewhere.example/".to_owned());
            (200, json!({ "count": 3, "next": next, "previous": null, "results": pages[number - 1] }))
        }
        Some(value) => (200, value.clone()),
        None => (404, json!({ "detail": "Not found." })),
    };
    // A text is the body itself.
    let body = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let reply = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have gone.
    let _ = socket.write_all(reply.as_bytes()).await;
}

fn answers(provider: &Provider) -> HashMap<&'static str, Value> {
    let stream = |id: u32, name: &str, url: String, account: u32| {
        json!({ "id": id, "name": name, "url": url, "m3u_account": account, "logo_url": null, "tvg_id": "",
            "channel_group": 4, "stream_profile_id": null, "is_custom": account == 1, "is_stale": false,
            "last_seen": "2026-11-20T23:16:07.477264Z", "stream_chno": 2.1 })
    };
    HashMap::from([
        ("/api/channels/groups/", json!([{ "id": 4, "name": "News", "channel_count": 1 }])),
        (
            "/api/m3u/accounts/",
            json!([
                { "id": 1, "name": "custom", "locked": true, "account_type": "STD", "profiles": [] },
                { "id": 2, "name": "Std One", "server_url": provider.url("/list.m3u"), "account_type": "STD",
                  "max_streams": 2, "is_active": true, "refresh_interval": 0, "cron_expression": "", "password": "",
                  "profiles": [{ "id": 2, "name": "Std One Default", "is_default": true, "max_streams": 2,
                      "search_pattern": "^(.*)$", "replace_pattern": "$1", "is_active": true }],
                  "channel_groups": [], "filters": [] },
            ]),
        ),
        (
            "/api/channels/streams/",
            json!([
                [
                    stream(21, "News One", provider.url(NEWS), 2),
                    stream(22, "News Backup", provider.url(BACKUP), 2)
                ],
                [stream(23, "Night", provider.url(NEWS), 1)],
            ]),
        ),
        (
            "/api/channels/channels/",
            json!([{ "id": 11, "uuid": NEWS_UUID, "name": "News", "channel_number": 6.5, "channel_group_id": 4,
                "streams": [21, 22], "user_level": 0, "is_adult": false, "hidden_from_output": false,
                "logo_id": null, "epg_data_id": null, "tvg_id": "news.one", "override": null }]),
        ),
        (
            "/api/accounts/users/",
            json!([{ "id": 7, "username": "anna", "user_level": 10, "is_superuser": true, "channel_profiles": [],
                "custom_properties": { "xc_password": "tv" }, "api_key": null, "stream_limit": 0 }]),
        ),
        (
            "/api/core/settings/",
            json!([{ "id": 16, "key": "system_settings", "value": { "time_zone": "UTC" } }]),
        ),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_household_moves_over_the_rest_interface() {
    let (provider, data) = (provider(), Data::new());
    let service = OldService::start(answers(&provider)).await;
    let variable = format!("HEADWATER_SOURCE_API_KEY={KEY}");
    let (code, report) = data.import_with(&[&variable], &[&service.address]).await;
    assert_eq!(code, Some(0), "{report}");
    for part in ["channels: 1 taken", "streams: 3 taken", "password of user anna", "logos: not read"] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    let (streams, channels) = data
        .read(|store| {
            (store.collection::<Stream>().all().unwrap(), store.collection::<Channel>().all().unwrap())
        })
        .await;
    let mut ids: Vec<_> = streams.iter().map(|it| (it.id.0, it.account.0)).collect();
    ids.sort_unstable();
    assert_eq!(ids, [(21, 2), (22, 2), (23, 1)]);
    assert_eq!(channels[0].streams.iter().map(|it| it.0).collect::<Vec<_>>(), [21, 22]);
    let gateway = data.gateway().await;
    watch_news(&gateway, "news").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_with_a_password_is_sent_in_the_body_and_a_wrong_one_changes_nothing() {
    let (provider, data) = (provider(), Data::new());
    let service = OldService::start(answers(&provider)).await;
    let source = [service.address.as_str(), "--username", "Anna"];
    let (code, output) = data.import_with(&["HEADWATER_SOURCE_PASSWORD=wrong"], &source).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("failed to log in") && output.contains("401"), "{output}");
    assert_eq!(data.read(counts).await, [0, 1, 0, 0, 0]);
    let (code, output) = data.import(&source).await;
    assert!(code == Some(1) && output.contains("HEADWATER_SOURCE_PASSWORD"), "{output}");
    let variable = format!("HEADWATER_SOURCE_PASSWORD={PASSWORD}");
    let (code, output) = data.import_with(&[&variable], &source).await;
    assert_eq!(code, Some(0), "{output}");
    let with_password = service.address.replace("://", "://anna:x@");
    let (code, output) = data.import_with(&[&variable], &[&with_password]).await;
    assert!(code == Some(1) && output.contains("leave the credentials out"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploaded_logos_move_with_their_files() {
    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>";
    let (provider, data) = (provider(), Data::new());
    let mut answers = answers(&provider);
    let logos = json!([
        { "id": 3, "name": "Uploaded", "url": "/data/logos/uploaded.svg" },
        { "id": 4, "name": "Lost", "url": "/data/logos/lost.svg" },
        { "id": 5, "name": "Forged", "url": "http://tv.example/a.png", "fetched_file": "../../key" },
    ]);
    answers.insert("/api/channels/logos/", logos);
    answers.insert("/api/channels/logos/3/cache/", json!(SVG));
    answers.insert("/api/channels/logos/4/cache/", json!("no image"));
    answers.get_mut("/api/channels/channels/").unwrap()[0]["logo_id"] = json!(3);
    let service = OldService::start(answers).await;
    let variable = format!("HEADWATER_SOURCE_API_KEY={KEY}");
    for _ in 0..2 {
        let (code, report) = data.import_with(&[&variable], &[&service.address]).await;
        assert_eq!(code, Some(0), "{report}");
        assert!(report.contains("logo Lost"), "{report}");
    }
    let (logos, channels) = data
        .read(|store| {
            (store.collection::<Logo>().all().unwrap(), store.collection::<Channel>().all().unwrap())
        })
        .await;
    let names: Vec<_> = logos.iter().map(|it| (it.id.0, it.name.as_str(), it.file.is_some())).collect();
    assert_eq!(names, [(3, "Uploaded", true), (5, "Forged", false)]);
    assert_eq!((channels[0].logo_id, channels[0].logo.as_ref()), (Some(logos[0].id), Some(&logos[0].url)));
    let files = data.root().join("uploads/logos");
    let names: Vec<_> = std::fs::read_dir(&files).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, [logos[0].file.as_deref().unwrap()], "the second import needs no file");
    assert_eq!(std::fs::read_to_string(files.join(&names[0])).unwrap(), SVG);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploaded_pictures_of_users_move_with_their_files_and_invalid_avatars_are_left_out() {
    const GIF: &str = "GIF89a and so on";
    let (provider, data) = (provider(), Data::new());
    let mut answers = answers(&provider);
    let user = |id: u32, name: &str, avatar: Value| {
        json!({ "id": id, "username": name, "user_level": 0, "channel_profiles": [], "custom_properties": {},
            "avatar_config": avatar })
    };
    let users = answers.get_mut("/api/accounts/users/").unwrap().as_array_mut().unwrap();
    let linked = json!({ "type": "url", "url": "https://a.example/a.png" });
    users.extend([
        user(8, "bert", json!({ "type": "upload", "url": "/media/avatars/bert.gif", "color": "#1c7ed6" })),
        user(9, "lost", json!({ "type": "upload", "url": "/media/avatars/lost.gif" })),
        user(10, "page", json!({ "type": "upload", "url": "/media/avatars/page.gif" })),
        user(11, "forged", json!({ "type": "upload", "url": "/api/accounts/avatars/7-other.png" })),
        user(12, "script", json!({ "type": "url", "url": "javascript:alert(1)" })),
        user(13, "linked", linked.clone()),
    ]);
    answers.insert("/media/avatars/bert.gif", json!(GIF));
    answers.insert("/media/avatars/page.gif", json!("<!DOCTYPE html>"));
    let service = OldService::start(answers).await;
    let variable = format!("HEADWATER_SOURCE_API_KEY={KEY}");
    let (code, dry) = data.import_with(&[&variable], &[&service.address, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{dry}");
    let (code, report) = data.import_with(&[&variable], &[&service.address]).await;
    assert_eq!(code, Some(0), "{report}");
    for report in [dry, report] {
        for name in ["lost", "page", "forged"] {
            let line = format!("user {name}: the picture has to be uploaded again");
            assert!(report.contains(&line), "{report}");
        }
        assert!(report.contains("user script: the avatar is not valid"), "{report}");
        assert!(
            !report.contains("changed: user bert") && !report.contains("changed: user linked"),
            "{report}"
        );
    }
    let avatars = data.read(|store| {
        let users = store.collection::<User>().all().unwrap().into_iter();
        users.map(|it| (it.username, Value::Object(it.avatar))).collect::<HashMap<_, _>>()
    });
    let avatars = avatars.await;
    assert!(["lost", "page", "forged", "script"].iter().all(|it| avatars[*it] == json!({})), "{avatars:?}");
    assert_eq!(avatars["linked"], linked);
    assert_eq!((&avatars["bert"]["type"], &avatars["bert"]["color"]), (&json!("upload"), &json!("#1c7ed6")));
    let url = avatars["bert"]["url"].as_str().unwrap();
    let names = std::fs::read_dir(data.root().join("uploads/avatars")).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.iter().map(|it| format!("/api/accounts/avatars/{it}")).collect::<Vec<_>>(), [url]);
    assert!(names[0].starts_with("8-"), "by the id of the user: {names:?}");
    let root = data.root();
    let gateway = Setup::new().folder(&root).config(|it| it.data_dir = root.clone()).start().await;
    let picture = fetch(gateway.address, Request::get(format!("{url}/"))).await;
    assert_eq!((picture.status(), picture.text().as_str()), (200, GIF));
}
