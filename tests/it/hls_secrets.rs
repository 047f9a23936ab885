//! The token of a session of HLS stands for its viewer: neither it nor a login is ever logged or shown to others.

/// These need ffmpeg, which makes the picture.
mod slow {
    use std::net::SocketAddr;

    use serde_json::json;

    use crate::hls_output::OUTPUT;
    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::{Request, Response, fetch};
    use crate::support::signal::{Clip, TEST_PICTURE};
    use crate::support::until_async;
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::websocket::WebSocketClient;

    /// The password of a login, that of player apps, and what a provider knows the account by.
    const LOGIN: &str = "login-of-anna-kept";
    const REMOTE: &str = "remote-of-anna-kept";
    const AT_PROVIDER: &str = "hunter2-kept";
    const OF_SEGMENTS: &str = "token-of-segments-kept";
    /// The channels: one that plays, one whose stream is gone, and one whose segments are refused.
    const STREAMS: [(&str, &str); 3] = [
        ("News", "/live/anna/hunter2-kept/news.ts"),
        ("Gone", "/live/anna/hunter2-kept/gone.ts"),
        ("Refused", "/live/anna/hunter2-kept/list.m3u8?auth=token-of-segments-kept"),
    ];

    struct Fixture {
        provider: Provider,
        program: Binary,
        address: SocketAddr,
        admin: Api,
        anna: Api,
        /// Id and UUID of each channel.
        channels: Vec<(u64, String)>,
    }

    impl Fixture {
        async fn new(folder: &tempfile::TempDir) -> Fixture {
            let provider = Provider::start();
            provider.path(STREAMS[0].1).plays(Clip::make("hls", &TEST_PICTURE, &OUTPUT).await);
            provider.computes(|request| {
                let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:1,\n\
                                1.ts?auth=token-of-segments-kept\n#EXTINF:1,\n2.ts?auth=token-of-segments-kept\n";
                let is_list = request.path.contains("/list.m3u8");
                is_list.then(|| MockResponse::text("application/vnd.apple.mpegurl", playlist))
            });
            let mut list = "#EXTM3U\n".to_owned();
            for (name, path) in STREAMS {
                list += &format!("#EXTINF:-1,{name}\n{}\n", provider.url(path));
            }
            let path = format!("/get.php?username=anna&password={AT_PROVIDER}");
            provider.path(&path).answers(MockResponse::text("audio/x-mpegurl", list));

            let program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
            let address = program.address().await;
            let admin = Api::stranger_at(address).become_first_admin().await;
            let settings = json!({ "value": { "log_level": "trace" } });
            assert_eq!(admin.patch("/api/core/settings/3/", settings).await.status, 200);
            let account = json!({ "name": "Provider", "server_url": provider.url(&path) });
            let account = admin.post("/api/m3u/accounts/", account).await;
            assert_eq!(account.status, 201, "{account:?}");
            let account = format!("/api/m3u/accounts/{}/", account.body["id"]);
            until_async("the list", async || admin.get(&account).await.body["status"] == "success").await;
            let mut channels = Vec::new();
            for (name, _) in STREAMS {
                let all = admin.get("/api/channels/streams/?ordering=id").await.body;
                let stream = all["results"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
                let body = json!({ "stream_id": stream["id"] });
                let made = admin.post("/api/channels/channels/from-stream/", body).await;
                assert_eq!(made.status, 201, "{made:?}");
                channels.push((made.body["id"].as_u64().unwrap(), made.text("uuid").to_owned()));
            }
            let user = json!({
                "username": "anna", "password": LOGIN, "user_level": 1,
                "custom_properties": { "xc_password": REMOTE },
            });
            let made = admin.post("/api/accounts/users/", user).await;
            assert_eq!(made.status, 201, "{made:?}");
            let anna = Api::stranger_at(address).login("anna", LOGIN).await;
            Fixture { provider, program, address, admin, anna, channels }
        }

        async fn get(&self, path: &str) -> Response {
            fetch(self.address, Request::get(path)).await
        }

        /// Begins to watch. Returns the address of the folder of the session, and its token.
        async fn session(&self, path: &str) -> (String, String) {
            let master = self.get(path).await;
            assert_eq!(master.status(), 200, "{}", master.text());
            let text = master.text();
            let media = text.lines().find(|it| !it.starts_with('#')).unwrap();
            let folder = media.strip_suffix("/index.m3u8").unwrap();
            let token = folder.rsplit('/').next().unwrap();
            assert_eq!(token.len(), 32);
            (folder.to_owned(), token.to_owned())
        }

        /// Reads a playlist, a segment and things that do not exist. Returns the texts of all refusals.
        async fn plays(&self, folder: &str) -> Vec<String> {
            let playlist = self.get(&format!("{folder}/index.m3u8")).await;
            assert_eq!(playlist.status(), 200);
            let text = playlist.text();
            let segment = text.lines().rfind(|it| !it.starts_with('#')).unwrap();
            assert_eq!(self.get(&format!("{folder}/{segment}")).await.status(), 200);
            let mut refused = vec![text.clone()];
            for name in ["7.ts", "7.m4s", "x", "index.m3u8?_HLS_msn=x", "index.m3u8?_HLS_part=1"] {
                let answer = self.get(&format!("{folder}/{name}")).await;
                assert!([400, 404].contains(&answer.status()), "{name}: {}", answer.text());
                refused.push(format!("{:?} {}", answer.head, answer.text()));
            }
            refused
        }
    }

    /// Returns everything that a caller can read about what plays.
    async fn readings(api: &Api, uuid: &str) -> String {
        let mut text = String::new();
        for path in [
            "/proxy/ts/status",
            &format!("/proxy/ts/status/{uuid}"),
            &format!("/proxy/ts/timeline/{uuid}"),
            "/proxy/stats",
            "/metrics",
            "/api/core/health/",
            "/api/core/system-events/",
            "/api/core/notifications/",
            "/api/core/logs/",
            "/api/connect/events/",
            "/api/channels/channels/",
            "/api/channels/streams/",
        ] {
            let answer = api.get(path).await.answer;
            text += &format!("{path}: {} {}\n", answer.status(), answer.text());
        }
        text
    }

    /// Holds T-acc.2 for players of HLS.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_token_of_a_session_and_no_login_is_logged_or_shown() {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::new(&folder).await;
        let Fixture { provider, address, admin, anna, channels, .. } = &fixture;
        let (id, uuid) = &channels[0];
        let access = Api::stranger_at(*address).token("anna", LOGIN).await;
        let access = access.text("access").to_owned();

        // All the while, the WebSocket of this user is open.
        let mut listener =
            WebSocketClient::open(*address, &format!("/ws/?token={access}"), &[]).await.unwrap();

        let live = format!("/live/anna/{REMOTE}/{id}.m3u8");
        let (ts, first) = fixture.session(&format!("{live}?container=ts")).await;
        let (fmp4, second) = fixture.session(&format!("{live}?container=fmp4")).await;
        let (quick, third) = fixture.session(&format!("{live}?ll=1")).await;
        let of_token = format!("/proxy/hls/{uuid}/index.m3u8?container=ts&output_profile=0&token={access}");
        let (_, fourth) = fixture.session(&of_token).await;
        let mut answers = Vec::new();
        for folder in [&ts, &fmp4, &quick] {
            answers.extend(fixture.plays(folder).await);
        }
        // What fails: a channel without its stream, one whose segments are refused, a wrong password, a bad request.
        for (channel, _) in &channels[1..] {
            let failed = fixture.get(&format!("/live/anna/{REMOTE}/{channel}.m3u8")).await;
            assert_eq!(failed.status(), 503, "{}", failed.text());
            answers.push(failed.text());
        }
        for path in [
            format!("/live/anna/{REMOTE}/{id}.m3u8?utc=1700000000"),
            format!("/live/anna/{REMOTE}/{id}.m3u8?output_profile=77"),
            format!("/live/anna/{REMOTE}/99999.m3u8"),
            format!("/live/nobody/{REMOTE}/{id}.m3u8"),
            format!("/proxy/hls/{uuid}/index.m3u8?token={access}x"),
        ] {
            let refused = fixture.get(&path).await;
            assert!((400..500).contains(&refused.status()), "{path}: {}", refused.status());
            answers.push(format!("{:?} {}", refused.head, refused.text()));
        }
        let (of_admin, of_anna) = (readings(admin, uuid).await, readings(anna, uuid).await);
        // Every session and the channel end.
        let clients = admin.get(&format!("/proxy/ts/status/{uuid}")).await.body["clients"].clone();
        assert!(clients.as_array().is_some_and(|it| it.len() >= 3), "{clients}");
        let stopped = admin.post(&format!("/proxy/ts/stop/{uuid}"), json!({})).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
        for folder in [&ts, &fmp4, &quick] {
            let answer = fixture.get(&format!("{folder}/index.m3u8")).await;
            answers.push(answer.text());
        }
        let (later_of_admin, later_of_anna) = (readings(admin, uuid).await, readings(anna, uuid).await);
        let mut frames = String::new();
        for _ in 0..10 {
            frames += &format!("{}\n", listener.next().await.unwrap());
        }
        assert!(
            provider.requests().iter().any(|it| it.path.contains("1.ts?auth")),
            "a segment was asked for"
        );
        fixture.program.signal("TERM");
        let (code, log) = fixture.program.outcome().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("TRACE") && log.contains("segmenter started"), "{log}");
        let tokens = [&*first, &second, &third, &fourth];
        let secrets = [LOGIN, REMOTE, &access, AT_PROVIDER, OF_SEGMENTS];
        let check = |what: &str, text: &str, secrets: &[&str]| {
            for secret in secrets {
                let found = text.lines().find(|it| it.contains(secret));
                assert_eq!(found, None, "{what} contains {secret}");
            }
        };
        for secrets in [&tokens[..], &secrets[..]] {
            check("the log", &log, secrets);
            check("what anna reads", &(of_anna.clone() + &later_of_anna), secrets);
            check("the WebSocket", &frames, secrets);
            check("an answer", &answers.join("\n"), secrets);
        }
        // Admins may see the addresses of a provider, and nothing of a viewer.
        let of_admin = of_admin + &later_of_admin;
        check("what an admin reads", &of_admin, &tokens);
        check("what an admin reads", &of_admin, &[LOGIN, REMOTE, &access]);
    }
}
