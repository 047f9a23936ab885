//! Providers whose certificates no authority of the machine has signed.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::reverse_proxy::{ReverseProxy, unused_address};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::{tools, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";

/// A provider behind nginx, with a certificate of its own.
struct SecureProvider {
    _provider: Provider,
    _nginx: ReverseProxy,
    folder: tempfile::TempDir,
    base: String,
}

impl SecureProvider {
    async fn start() -> SecureProvider {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (key, certificate) = (file("key.pem"), file("certificate.pem"));
        let made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3"];
        let names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
        let files = ["-keyout", &key, "-out", &certificate];
        tools::text_of("openssl", &[&["req", "-x509"][..], &made, &names, &files].concat()).await;

        let (provider, address) = (Provider::start(), unused_address());
        let base = format!("https://{address}");
        let to = provider.url("");
        let server = format!(
            "server {{\nlisten {address} ssl;\nssl_certificate {certificate};\nssl_certificate_key {key};\n\
             location / {{\nproxy_pass {to};\nproxy_buffering off;\nproxy_http_version 1.1;\n}}\n}}\n"
        );
        let nginx = ReverseProxy::nginx(&server, address).await;
        provider.path("/news.ts").plays(Picture::new("news"));
        let list = format!("#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\n{base}/news.ts\n");
        provider.path("/list.m3u").answers(MockResponse::text("audio/x-mpegurl", list));
        let guide = "<tv><channel id=\"news\"><display-name>News</display-name></channel>\
                     <programme channel=\"news\" start=\"20300101000000 +0000\" stop=\"20300101010000 +0000\">\
                     <title>Late</title></programme></tv>";
        provider.path("/guide.xml").answers(MockResponse::text("application/xml", guide));
        SecureProvider { _provider: provider, _nginx: nginx, folder, base }
    }

    fn certificate(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("certificate.pem")).unwrap()
    }

    /// Returns the fingerprint of the certificate as openssl prints it.
    async fn fingerprint(&self) -> String {
        let file = self.folder.path().join("certificate.pem").display().to_string();
        tools::text_of("openssl", &["x509", "-in", &file, "-noout", "-fingerprint", "-sha256"]).await
    }
}

/// Creates an account with the list of a provider; returns its path.
async fn account(admin: &Api, name: &str, provider: &SecureProvider) -> String {
    let list = format!("{}/list.m3u", provider.base);
    let made = admin.post(ACCOUNTS, json!({ "name": name, "account_type": "STD", "server_url": list })).await;
    assert_eq!(made.status, 201, "{made:?}");
    format!("{ACCOUNTS}{}/", made.body["id"])
}

/// Waits until a refresh of the account has ended like this; returns the account.
async fn ended(admin: &Api, account: &str, status: &str) -> Value {
    let mut seen = Value::Null;
    until_async(&format!("the status {status}"), async || {
        seen = admin.get(account).await.body;
        seen["status"] == status
    })
    .await;
    seen
}

/// Changes an account, which is refreshed then, and waits until that has ended well.
async fn accepts(admin: &Api, account: &str, change: Value) {
    let fails = admin.post(&account.replace("accounts", "refresh"), json!({})).await;
    assert_eq!(fails.status, 202, "{fails:?}");
    ended(admin, account, "error").await;
    let changed = admin.patch(account, change).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    ended(admin, account, "success").await;
}

async fn plays(gateway: &TestGateway, path: &str) {
    let player = Player::watch(gateway.address, path).await;
    player.sees("news").await;
    drop(player);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_with_a_self_signed_certificate_plays_by_choice() {
    let provider = SecureProvider::start().await;
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let strict = account(&admin, "Strict", &provider).await;
    let refused = ended(&admin, &strict, "error").await;
    let message = refused["last_message"].as_str().unwrap();
    assert!(message.contains("certificate is self-signed"), "{message}");
    assert_eq!(refused["verify_certificate"], true);

    let fingerprint = provider.fingerprint().await;
    let printed = fingerprint.trim().rsplit_once('=').unwrap().1.to_owned();
    assert!(message.contains(&printed), "{message} {fingerprint}");
    let chosen = account(&admin, "Chosen", &provider).await;
    ended(&admin, &chosen, "error").await;

    accepts(&admin, &chosen, json!({ "certificate_fingerprint": fingerprint })).await;
    let streams = admin.get("/api/channels/streams/").await.body;
    let from = json!({ "stream_id": streams["results"][0]["id"] });
    let channel = admin.post("/api/channels/channels/from-stream/", from).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));
    plays(&gateway, &path).await;
    let guide = json!({
        "name": "Guide", "source_type": "xmltv", "url": format!("{}/guide.xml", provider.base),
    });
    let guide = admin.post("/api/epg/sources/", guide).await;
    assert_eq!(guide.status, 201, "{guide:?}");
    ended(&admin, &format!("/api/epg/sources/{}/", guide.body["id"]), "success").await;

    let none = json!({ "certificate_fingerprint": "" });
    assert_eq!(admin.patch(&chosen, none).await.body["certificate_fingerprint"], Value::Null);
    accepts(&admin, &chosen, json!({ "certificate_authority": provider.certificate() })).await;
    plays(&gateway, &path).await;

    let conditions = async || admin.get("/api/core/health/").await.body["problems"].to_string();
    assert!(!conditions().await.contains("account_certificate"));
    admin.patch(&chosen, json!({ "certificate_authority": null })).await;
    accepts(&admin, &chosen, json!({ "verify_certificate": false })).await;
    plays(&gateway, &path).await;
    assert!(
        conditions().await.contains("Account \\\"Chosen\\\" accepts any certificate"),
        "{}",
        conditions().await
    );

    admin.post(&strict.replace("accounts", "refresh"), json!({})).await;
    ended(&admin, &strict, "error").await;
    for (field, value) in [("certificate_fingerprint", "12:34"), ("certificate_authority", "no certificate")]
    {
        let wrong = admin.patch(&chosen, json!({ field: value })).await;
        assert_eq!(wrong.status, 400, "{wrong:?}");
        assert!(wrong.body.to_string().contains(field), "{wrong:?}");
    }
}
