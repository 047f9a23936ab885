//! Edge nodes and accounts that only some nodes may use: gateways in processes of their own, NATS, and a provider that
//! counts.

mod slow {
    use std::fs;

    use actors::now_ms;
    use domain::plugin::MASK;
    use domain::service_key::ServiceKey;
    use domain::setting::CoreSetting;
    use serde_json::{Value, json};
    use storage::Store;
    use storage::records::schema;

    use crate::guide::fixture::guide;
    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, contains_none, join, nats, two_nodes};
    use crate::support::panel::{Panel, listed};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::{Cut, MockResponse, Provider};

    const LIST: &str = "/lists/all.m3u";
    const NEWS: &str = "/live/anna/hunter22/news.ts";
    const LOGO: &str = "/logos/news.png";
    const POSTER: &str = "/posters/heat.png";
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";
    /// The password at the provider.
    const SECRET: &str = "hunter22";
    /// The settings of the completion of films.
    const COMPLETION: &str = "/api/core/settings/14/";
    const KID: &str = "kid";
    const KID_PASSWORD: &str = "a password of the kid";

    /// Makes a channel of an account without a limit. Returns its uuid and the path of the account in the API.
    async fn fill(machine: &Machine, provider: &Provider) -> (String, String) {
        provider.path(NEWS).plays(Picture::new("news"));
        provider.path(LOGO).answers(MockResponse::text("image/png", PNG));
        let (logo, news) = (provider.url(LOGO), provider.url(NEWS));
        let list = format!("#EXTM3U\n#EXTINF:-1 tvg-logo=\"{logo}\",News\n{news}\n");
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let account = json!({ "name": "Provider", "server_url": provider.url(LIST) });
        let account = admin.post("/api/m3u/accounts/", account).await;
        assert_eq!(account.status, 201, "{account:?}");
        let path = format!("/api/m3u/accounts/{}/", account.body["id"]);
        until_async("the import", async || admin.get(&path).await.body["status"] == "success").await;
        let stream = admin.get("/api/channels/streams/").await.body["results"][0]["id"].clone();
        let channel = json!({ "stream_id": stream });
        let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        let kid = json!({ "username": KID, "password": KID_PASSWORD, "user_level": 0 });
        let kid = admin.post("/api/accounts/users/", kid).await;
        assert_eq!(kid.status, 201, "{kid:?}");
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        (channel.text("uuid").to_owned(), path)
    }

    /// Asks for a channel until it plays: a new cluster opens nothing for 20 s.
    async fn plays(node: &Node, path: &str) -> Player {
        loop {
            let player = Player::watch(node.address, path).await;
            match player.status().await {
                200 => {
                    player.sees("news").await;
                    return player;
                }
                status => assert_eq!(status, 503, "{}", node.program.output()),
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_edge_node_has_no_secret_and_plays_what_full_nodes_open_for_it() {
        let nats = nats();
        let provider = Provider::start();
        let machine = Machine::new("attic", &nats);
        let (uuid, _) = fill(&machine, &provider).await;
        let path = format!("/proxy/ts/stream/{uuid}");
        machine.succeeds(&["cluster", "init"]).await;
        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        let cellar = join(&attic, Machine::new("cellar", &nats), "full").await;
        let edge = join(&attic, Machine::new("edge", &nats), "edge").await;
        assert!(edge.machine.folder.path().join("node.json").exists());

        // It serves what viewers need, and says what it does not have.
        edge.lists(&["News"]).await;
        let kid = edge.api.token(KID, KID_PASSWORD).await;
        assert_eq!(kid.status, 200, "{kid:?}");
        for path in ["/api/m3u/accounts/", "/api/channels/streams/", "/api/vod/movies/"] {
            let refused = edge.api.get(path).await;
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.text("detail").contains("edge node"), "{refused:?}");
        }
        // It passes changes on, also of what it does not show itself.
        edge.creates("Sport").await;
        attic.lists(&["News", "Sport"]).await;
        let key = json!({ "value": { "tmdb_api_key": SECRET } });
        assert_eq!(attic.api.patch(COMPLETION, key).await.status, 200);
        let shown = async || edge.api.get(COMPLETION).await.body["value"]["tmdb_api_key"].clone();
        until_async("the mask of the key", async || shown().await == MASK).await;

        // Nobody plays the channel: a full node opens it, and keeps it for the viewer of the edge.
        let player = plays(&edge, &path).await;
        let seen = edge.channel(&uuid).await;
        assert_eq!(seen["node_role"], "edge", "{seen}");
        let origin = seen["source_node"].as_str().unwrap().to_owned();
        player.more_bytes(1_000_000).await;
        assert_eq!(provider.open(), 1);

        // The origin is lost, and another full node takes over.
        let (lost, other) = if origin == "attic" { (attic, cellar) } else { (cellar, attic) };
        lost.killed().await;
        edge.until_origin_is(&uuid, other.machine.name).await;
        player.more_bytes(1_000_000).await;
        assert!(player.is_watching());
        assert_eq!(provider.open(), 1);

        contains_none(edge.machine.folder.path(), &[SECRET]);
        let memory = fs::read_to_string(edge.machine.folder.path().join("node.json")).unwrap();
        let file: Value = serde_json::from_str(&memory).unwrap();
        assert_eq!((&file["role"], &file["data_keys"]["provider"]), (&json!("edge"), &Value::Null));
        let machine = edge.stops().await;
        let reading = tokio::task::spawn_blocking(move || {
            let root = machine.folder.path();
            let store = Store::open(&root.join("store"), &root.join("key"), schema()).expect("a store");
            let keys = store.collection::<ServiceKey>().all().expect("keys");
            let settings = store.collection::<CoreSetting>().all().expect("settings");
            assert!(keys.is_empty() && settings.iter().all(|it| !it.value.to_string().contains(SECRET)));
        });
        reading.await.expect("a thread");
    }

    /// Returns a machine that providers recognise by the user agent of its requests.
    fn known(mut machine: Machine) -> Machine {
        machine.settings.push(format!("user_agent={}", machine.name));
        machine
    }

    /// Returns a panel with a live stream, films and a guide.
    fn panel() -> Panel {
        let panel = Panel::start("anna", SECRET);
        panel.offers(&[(7, "One")]);
        panel.says("get_vod_categories", &json!([{ "category_id": "21", "category_name": "Action" }]));
        panel.says("get_series_categories", &json!([]));
        let film = json!({
            "stream_id": 1, "name": "Heat (1995)", "category_id": "21", "container_extension": "mkv",
            "stream_icon": panel.provider.url(POSTER),
        });
        panel.provider.path(POSTER).answers(MockResponse::text("image/png", PNG));
        panel.says("get_vod_streams", &json!([film]));
        let details = json!({ "info": { "plot": "Two men." }, "movie_data": { "stream_id": 1 } });
        panel.says("get_vod_info&vod_id=1", &details);
        let guide = MockResponse::text("text/xml", guide(2, 20, now_ms() / 1000));
        panel.provider.path(&guide_path()).answers(guide);
        panel
    }

    fn guide_path() -> String {
        format!("/xmltv.php?username=anna&password={SECRET}")
    }

    /// Asserts that only this node has asked a provider. Returns the number of its requests.
    fn only_asked(provider: &Provider, by: &str) -> usize {
        let requests = provider.requests();
        let others: Vec<_> = requests.iter().filter(|it| it.header("user-agent") != Some(by)).collect();
        assert!(others.is_empty(), "{others:?}");
        requests.len()
    }

    /// Waits until a node shows the first picture of a list as the provider sends it.
    async fn shows_picture(node: &Node, list: &str) {
        until_async("the picture", async || {
            let Some(id) = node.api.first_id(list).await else { return false };
            let copy = node.api.get(&format!("{list}{id}/cache/")).await;
            copy.answer.bytes == PNG
        })
        .await;
    }

    /// Waits until a refresh has ended. Returns what has it.
    async fn ended(node: &Node, path: &str) -> Value {
        let mut seen = Value::Null;
        let what = format!("the end of the refresh of {path}: {}", node.program.output());
        until_async(&what, async || {
            seen = node.api.get(path).await.body;
            seen["status"].as_str().is_some_and(|it| !["idle", "fetching", "parsing"].contains(&it))
        })
        .await;
        seen
    }

    async fn refreshed(node: &Node, account: &str) -> Value {
        let begun = node.api.post(&account.replace("accounts", "refresh"), json!({})).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        ended(node, account).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_panel_the_films_and_the_guide_of_an_account_are_fetched_by_its_nodes_only() {
        let nats = nats();
        let panel = panel();
        let attic = known(Machine::new("attic", &nats).with_admin().await);
        let [attic, cellar] = two_nodes(attic, known(Machine::new("cellar", &nats))).await;
        let made = json!({
            "name": "Panel", "account_type": "XC", "server_url": panel.url(), "username": "anna",
            "password": SECRET, "nodes": ["cellar"], "create_epg": true, "enable_vod": true,
            "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true,
        });
        let made = attic.api.post("/api/m3u/accounts/", made).await;
        assert_eq!(made.status, 201, "{made:?}");
        let account = format!("/api/m3u/accounts/{}/", made.body["id"]);

        // The node that writes refreshes, and the other one asks.
        let seen = ended(&attic, &account).await;
        assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("success"), &json!(1)), "{seen}");
        let source = attic.api.get("/api/epg/sources/").await.body[0]["id"].clone();
        let seen = ended(&attic, &format!("/api/epg/sources/{source}/")).await;
        assert_eq!((&seen["status"], &seen["epg_data_count"]), (&json!("success"), &json!(2)), "{seen}");
        let films = "/api/vod/movies/";
        until_async("the film", async || attic.api.get(films).await.body["results"][0].is_object()).await;
        let film = attic.api.get(films).await.body["results"][0]["id"].clone();
        let info = attic.api.get(&format!("{films}{film}/provider-info/")).await;
        assert_eq!((info.status, &info.body["plot"]), (200, &json!("Two men.")), "{info:?}");
        shows_picture(&attic, "/api/vod/vodlogos/").await;
        assert_eq!(panel.provider.path(POSTER).n_requests(), 1);
        for action in ["", "get_live_streams", "get_vod_streams", "get_vod_info&vod_id=1"] {
            assert!(panel.n_questions(action) > 0, "{action}");
        }
        assert_eq!(panel.provider.path(&guide_path()).n_requests(), 1);
        only_asked(&panel.provider, "cellar");

        // A list that breaks off is one here, too.
        let list: Value = (1..1000).map(|id| listed(id, "One")).collect();
        let list = MockResponse::text("application/json", list.to_string()).until(100_000, Cut::End);
        panel.answers("get_live_streams", list);
        let seen = refreshed(&attic, &account).await;
        assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("error"), &json!(1)), "{seen}");
        let reason = seen["last_message"].as_str().unwrap();
        assert!(reason.starts_with("Failed to fetch from \"127.0.0.1\": "), "{reason}");
        assert!(reason.ends_with(" (asked by the node cellar)."), "{reason}");
        panel.offers(&[(7, "One"), (8, "Two")]);

        // Nobody else asks while its node is down, and nothing is lost.
        let cellar = cellar.stops().await;
        until_async("the cellar to leave", async || {
            let body = attic.api.get("/api/core/nodes/").await.body;
            let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
            !nodes.iter().any(|it| it["name"] == "cellar" && it["state"] == "alive")
        })
        .await;
        let n_asked = only_asked(&panel.provider, "cellar");
        let seen = refreshed(&attic, &account).await;
        assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("error"), &json!(1)), "{seen}");
        assert_eq!(seen["last_message"], "None of the nodes of the account runs: cellar.");
        assert_eq!(only_asked(&panel.provider, "cellar"), n_asked);
        let cellar = cellar.serve(&[]).await;
        attic.sees("cellar").await;
        let seen = refreshed(&attic, &account).await;
        assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("success"), &json!(2)), "{seen}");
        only_asked(&panel.provider, "cellar");

        // Any node may fetch again.
        let set = attic.api.patch(&account, json!({ "nodes": [] })).await;
        assert_eq!(set.status, 200, "{set:?}");
        assert_eq!(refreshed(&attic, &account).await["status"], "success");
        assert!(panel.provider.requests().iter().any(|it| it.header("user-agent") == Some("attic")));
        drop(cellar);
    }

    mod night {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn an_account_is_opened_by_its_nodes_only_and_the_others_read_from_them() {
            let nats = nats();
            let provider = Provider::start();
            let machine = known(Machine::new("attic", &nats));
            let (uuid, account) = fill(&machine, &provider).await;
            let path = format!("/proxy/ts/stream/{uuid}");
            machine.succeeds(&["cluster", "init"]).await;
            let mut attic = machine.serve(&[]).await;
            attic.logs_in().await;
            let cellar = join(&attic, known(Machine::new("cellar", &nats)), "full").await;
            let wrong = attic.api.patch(&account, json!({ "nodes": ["no name"] })).await;
            assert_eq!((wrong.status, wrong.body["nodes"].is_array()), (400, true), "{wrong:?}");
            let set = attic.api.patch(&account, json!({ "nodes": ["cellar", "cellar"] })).await;
            assert_eq!((set.status, &set.body["nodes"]), (200, &json!(["cellar"])), "{set:?}");
            let renamed = attic.api.patch(&account, json!({ "name": "Home" })).await;
            assert_eq!(renamed.body["nodes"], json!(["cellar"]), "{renamed:?}");

            // Its list, its guide and its logos come through that node, too.
            assert_eq!(refreshed(&attic, &account).await["status"], "success");
            let lists = provider.path(LIST).requests();
            assert_eq!(lists.last().and_then(|it| it.header("user-agent")), Some("cellar"), "{lists:?}");
            let text = guide(2, 20, now_ms() / 1000);
            provider.path("/guide.xml").answers(MockResponse::text("text/xml", text));
            let source =
                json!({ "name": "Guide", "source_type": "xmltv", "url": provider.url("/guide.xml") });
            let source = attic.api.post("/api/epg/sources/", source).await;
            assert_eq!(source.status, 201, "{source:?}");
            let seen = ended(&attic, &format!("/api/epg/sources/{}/", source.body["id"])).await;
            assert_eq!(seen["status"], "success", "{seen}");
            let guides = provider.path("/guide.xml").requests();
            assert_eq!(guides[0].header("user-agent"), Some("cellar"), "{guides:?}");
            shows_picture(&attic, "/api/channels/logos/").await;
            let logos = provider.path(LOGO).requests();
            assert_eq!(logos.len(), 1, "{logos:?}");
            assert_eq!(logos[0].header("user-agent"), Some("cellar"), "{logos:?}");

            let player = plays(&attic, &path).await;
            let seen = attic.channel(&uuid).await;
            assert_eq!(
                (&seen["source_node"], &seen["node_role"]),
                (&json!("cellar"), &json!("edge")),
                "{seen}"
            );
            cellar.until_origin_is(&uuid, "cellar").await;
            player.more_bytes(500_000).await;
            assert_eq!(provider.open(), 1);
            // Without that node nobody may open it.
            cellar.stops().await;
            drop(player);
            let refused = loop {
                let player = Player::watch(attic.address, &path).await;
                if player.status().await == 503 {
                    break player;
                }
            };
            drop(refused);
            assert_eq!(provider.open(), 0);
        }
    }
}
