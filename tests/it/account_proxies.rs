//! Proxies of accounts: everything of a provider comes through the proxy, whose failures are named as such, and which
//! resolves names.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::{Panel, listed};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};

const ACCOUNTS: &str = "/api/m3u/accounts/";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

/// Creates an account and waits for the end of its first refresh. Returns its path.
async fn account(admin: &Api, body: Value) -> String {
    let made = admin.post(ACCOUNTS, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("{ACCOUNTS}{}/", made.body["id"]);
    ended(admin, &path).await;
    path
}

/// Waits until no refresh of the account runs. Returns the account.
async fn ended(admin: &Api, account: &str) -> Value {
    let mut seen = Value::Null;
    until_async("the end of the refresh", async || {
        seen = admin.get(account).await.body;
        !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap_or("idle"))
    })
    .await;
    seen
}

async fn refreshed(admin: &Api, account: &str) -> Value {
    let begun = admin.post(&account.replace("accounts", "refresh"), json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    ended(admin, account).await
}

/// Creates a channel from the stream with this name. Returns its stream path.
async fn channel(admin: &Api, stream: &str) -> String {
    let all = admin.get("/api/channels/streams/?ordering=id").await.body;
    let found = all["results"].as_array().and_then(|it| it.iter().find(|it| it["name"] == stream));
    let id = found.unwrap_or_else(|| panic!("{all}"))["id"].clone();
    let made = admin.post("/api/channels/channels/from-stream/", json!({ "stream_id": id })).await;
    assert_eq!(made.status, 201, "{made:?}");
    format!("/proxy/ts/stream/{}", made.text("uuid"))
}

async fn plays(gateway: &TestGateway, path: &str, picture: &str) {
    let player = Player::watch(gateway.address, path).await;
    player.sees(picture).await;
    player.leave().await;
    gateway.until_idle().await;
}

/// Asserts that a channel is refused with this reason.
async fn is_refused(gateway: &TestGateway, path: &str, reason: &str) {
    let answer = Player::watch(gateway.address, path).await.answer().await;
    let text = answer.text();
    assert!(answer.status() == 503 && text.contains(reason), "{} {text}", answer.status());
    gateway.until_idle().await;
}

/// A SOCKS 5 proxy that knows names of its own, and records the names that it is asked for.
struct Socks {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Socks {
    async fn start(names: HashMap<&'static str, SocketAddr>) -> Socks {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (names, log) = (Arc::new(names), asked.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (names, log) = (names.clone(), log.clone());
                tokio::spawn(async move { serve(socket, &names, &log).await });
            }
        });
        Socks { address, asked }
    }
}

/// Serves one connection. Addresses are refused: only names are accepted.
async fn serve(
    mut client: TcpStream,
    names: &HashMap<&'static str, SocketAddr>,
    log: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await.ok()?;
    let mut methods = vec![0; head[1].into()];
    client.read_exact(&mut methods).await.ok()?;
    client.write_all(&[5, 0]).await.ok()?;
    let mut request = [0; 5];
    client.read_exact(&mut request).await.ok()?;
    if request[3] != 3 {
        log.lock().push("an address".to_owned());
        return None;
    }
    let mut name = vec![0; request[4].into()];
    client.read_exact(&mut name).await.ok()?;
    let mut port = [0; 2];
    client.read_exact(&mut port).await.ok()?;
    let name = String::from_utf8(name).ok()?;
    log.lock().push(name.clone());
    let Some(address) = names.get(name.as_str()) else {
        return client.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).await.ok();
    };
    let mut server = TcpStream::connect(address).await.ok()?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.ok()?;
    copy_bidirectional(&mut client, &mut server).await.ok().map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_resolved_by_the_proxy_only() {
    let provider = Provider::start();
    let server: SocketAddr = provider.url("")["http://".len()..].parse().unwrap();
    let socks = Socks::start(HashMap::from([("tv.invalid", server)])).await;
    let list =
        "#EXTM3U\n#EXTINF:-1,News\nhttp://tv.invalid/news.ts\n#EXTINF:-1,Gone\nhttp://gone.invalid/1.ts\n";
    provider.path("/list").answers(MockResponse::text("audio/x-mpegurl", list));
    provider.path("/news.ts").plays(Picture::new("news"));
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let path = account(
        &admin,
        json!({
            "name": "Provider", "server_url": "http://tv.invalid/list",
            "proxy": format!("socks5://{}", socks.address),
        }),
    )
    .await;
    let seen = admin.get(&path).await.body;
    assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("success"), &json!(2)), "{seen}");
    let (news, gone) = (channel(&admin, "News").await, channel(&admin, "Gone").await);
    plays(&gateway, &news, "news").await;
    is_refused(&gateway, &gone, "the proxy cannot reach the provider: host unreachable").await;
    let asked = socks.asked.lock().clone();
    assert!(asked.iter().all(|it| ["tv.invalid", "gone.invalid"].contains(&it.as_str())), "{asked:?}");
    assert_eq!(asked.iter().filter(|it| *it == "tv.invalid").count(), 2, "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_login_of_a_proxy_is_never_shown_and_stays_when_it_is_sent_back() {
    let provider = Provider::start();
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    // Nothing listens there.
    let path = account(
        &admin,
        json!({
            "name": "Provider", "server_url": provider.url("/list"),
            "proxy": "http://anna:hunter2-kept@127.0.0.1:9",
        }),
    )
    .await;
    let seen = admin.get(&path).await.body;
    assert_eq!((&seen["proxy"], &seen["status"]), (&json!("http://***@127.0.0.1:9"), &json!("error")));
    assert!(seen["last_message"].as_str().unwrap().contains("proxy"), "{seen}");
    assert!(!seen.to_string().contains("hunter2-kept") && !seen.to_string().contains("anna"), "{seen}");
    assert_eq!(provider.accepted(), 0, "nothing was fetched around the proxy");
    let proxy = || {
        let accounts = gateway.models().accounts.load();
        let account = accounts.iter().find(|it| it.name == "Provider").cloned();
        account.unwrap().proxy.as_ref().map(|it| it.expose())
    };
    let changed = admin.patch(&path, json!({ "proxy": "socks5h://***@127.0.0.1:8" })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(proxy().as_deref(), Some("socks5://anna:hunter2-kept@127.0.0.1:8"));
    for (value, message) in [
        ("ftp://h:1", "begins with http://"),
        ("http://***@other:1", "again"),
        ("http://h:1/x", "after its port"),
        ("http://a b:1", "host"),
        ("http://h:0", "port"),
    ] {
        let refused = admin.patch(&path, json!({ "proxy": value })).await;
        let text = refused.body["proxy"].to_string();
        assert!(refused.status == 400 && text.contains(message), "{value} {refused:?}");
    }
    assert_eq!(admin.patch(&path, json!({ "proxy": null })).await.status, 200);
    assert_eq!(proxy(), None);
    let refused = admin.patch(&path, json!({ "further_addresses": ["ftp://h"] })).await;
    assert!(refused.status == 400 && !refused.body["further_addresses"].is_null(), "{refused:?}");
}

/// With real proxies.
mod slow {
    use std::process::Stdio;

    use tokio::process::{Child, Command};

    use super::*;

    /// A running proxy, which connects from 127.0.0.1 and records what it is asked for.
    struct RealProxy {
        child: Child,
        folder: tempfile::TempDir,
        address: SocketAddr,
    }

    impl RealProxy {
        /// An HTTP proxy that requires the login `anna`, `secret`.
        async fn tinyproxy() -> RealProxy {
            let (folder, address) = (tempfile::tempdir().unwrap(), unused_address());
            let log = folder.path().join("log");
            let text = format!(
                "Port {}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nLogFile \"{}\"\nLogLevel Connect\n\
                 BasicAuth anna secret\n",
                address.port(),
                log.display()
            );
            std::fs::write(folder.path().join("tinyproxy.conf"), text).unwrap();
            let mut command = Command::new("tinyproxy");
            command.args(["-d", "-c"]).arg(folder.path().join("tinyproxy.conf")).stdout(Stdio::null());
            Self::started(command, folder, address).await
        }

        /// A SOCKS 5 proxy with the same login.
        async fn microsocks() -> RealProxy {
            let (folder, address) = (tempfile::tempdir().unwrap(), unused_address());
            let log = std::fs::File::create(folder.path().join("log")).unwrap();
            let mut command = Command::new("microsocks");
            let port = address.port().to_string();
            command.args(["-i", "127.0.0.1", "-p", &port, "-u", "anna", "-P", "secret"]).stderr(log);
            Self::started(command, folder, address).await
        }

        async fn started(mut command: Command, folder: tempfile::TempDir, address: SocketAddr) -> RealProxy {
            let child = command.stdin(Stdio::null()).kill_on_drop(true).spawn();
            let child = child.unwrap_or_else(|error| panic!("this test needs a proxy ({error}): just tools"));
            until_async("the proxy", async || TcpStream::connect(address).await.is_ok()).await;
            RealProxy { child, folder, address }
        }

        /// Returns the number of requests for this port.
        fn n_requests(&self, port: u16) -> usize {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
            let is_request = |it: &&str| {
                it.contains(&format!(":{port}")) && (it.contains("connected to") || it.contains("Request"))
            };
            log.lines().filter(is_request).count()
        }
    }

    /// Returns an address that is free now. Another process could take it before the proxy does; the test then fails.
    fn unused_address() -> SocketAddr {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everything_of_an_account_comes_through_its_http_proxy() {
        comes_through(RealProxy::tinyproxy().await, "http").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everything_of_an_account_comes_through_its_socks_proxy() {
        comes_through(RealProxy::microsocks().await, "socks5").await;
    }

    async fn comes_through(mut proxy: RealProxy, scheme: &str) {
        let panel = Panel::start("anna-at-panel", "hunter2-kept");
        let provider = &panel.provider;
        let port = provider.url("").rsplit(':').next().unwrap().parse().unwrap();
        panel.offers(&[(7, "One")]);
        let mut one = listed(7, "One");
        one["stream_icon"] = json!(provider.url("/logo.png"));
        panel.says("get_live_streams", &json!([one]));
        panel.says("get_vod_categories", &json!([{ "category_id": "5", "category_name": "Films" }]));
        panel.says("get_series_categories", &json!([]));
        panel.says(
            "get_vod_streams",
            &json!([{ "num": 1, "name": "Film", "stream_id": 70, "category_id": "5", "container_extension": "mp4" }]),
        );
        provider.path("/logo.png").answers(MockResponse::text("image/png", PNG));
        let film = MockResponse::text("video/mp4", vec![7; 100_000]);
        let film_path = "/movie/anna-at-panel/hunter2-kept/70.mp4";
        provider.path(film_path).answers(film);
        let guide_path = "/xmltv.php?username=anna-at-panel&password=hunter2-kept";
        let guide = "<?xml version=\"1.0\"?><tv><channel id=\"7.example\"><display-name>One</display-name></channel></tv>";
        provider.path(guide_path).answers(MockResponse::text("text/xml", guide));

        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        let path = account(
            &admin,
            json!({
                "name": "Panel", "account_type": "XC", "server_url": panel.url(), "username": "anna-at-panel",
                "password": "hunter2-kept", "enable_vod": true, "auto_enable_new_groups_vod": true,
                "auto_enable_new_groups_series": true, "create_epg": true,
                "proxy": format!("{scheme}://anna:secret@{}", proxy.address),
            }),
        )
        .await;
        let seen = admin.get(&path).await.body;
        assert_eq!(seen["status"], "success", "{seen}");
        let one = channel(&admin, "One").await;
        plays(&gateway, &one, "One").await;
        until_async("the guide", async || provider.path(guide_path).n_requests() > 0).await;
        until_async("the logo", async || {
            let Some(id) = admin.first_id("/api/channels/logos/").await else { return false };
            let copy = Request::get(format!("/api/channels/logos/{id}/cache/"));
            fetch(gateway.api, copy).await.bytes == PNG
        })
        .await;
        let mut uuid = String::new();
        until_async("the film", async || {
            let films = admin.get("/api/vod/movies/").await.body;
            uuid = films["results"][0]["uuid"].as_str().unwrap_or_default().to_owned();
            !uuid.is_empty()
        })
        .await;
        let answer = fetch(gateway.address, Request::get(format!("/proxy/vod/movie/{uuid}"))).await;
        assert_eq!((answer.status(), answer.bytes.len()), (200, 100_000), "{}", answer.text());

        let n_accepted = || usize::try_from(provider.accepted()).unwrap();
        assert!(n_accepted() >= 8, "{}", n_accepted());
        let is_all = async || proxy.n_requests(port) == n_accepted();
        until_async("the log of the proxy with all connections that the provider sees", is_all).await;

        // Another password than that of the proxy.
        let wrong = format!("{scheme}://anna:wrong@{}", proxy.address);
        assert_eq!(admin.patch(&path, json!({ "proxy": wrong })).await.status, 200);
        refreshed(&admin, &path).await;
        until_async("the reason of the refresh", async || {
            let seen = admin.get(&path).await.body;
            let message = seen["last_message"].as_str().unwrap_or_default();
            // tinyproxy answers as the provider would, so that nobody can tell the two apart.
            message.contains("proxy refuses the login") || (scheme == "http" && message.contains("401"))
        })
        .await;
        is_refused(&gateway, &one, "the proxy refuses the login of the account").await;

        let right = format!("{scheme}://anna:secret@{}", proxy.address);
        assert_eq!(admin.patch(&path, json!({ "proxy": right })).await.status, 200);
        assert_eq!(refreshed(&admin, &path).await["status"], "success");
        proxy.child.kill().await.unwrap();
        is_refused(&gateway, &one, "the proxy failed").await;
        let seen = refreshed(&admin, &path).await;
        assert!(
            seen["status"] == "error" && seen["last_message"].as_str().unwrap().contains("proxy"),
            "{seen}"
        );
    }
}
