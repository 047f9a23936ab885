//! Films, episodes and the past of channels on nodes that may not open their accounts: gateways in processes of their own,
//! NATS, and a provider that counts.

mod night {
    use cluster::testing::NatsServers;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::{Player, Reading, Request, Response, fetch};
    use crate::support::cluster::{Machine, Node, contains_none, join, nats, nodes, two_nodes};
    use crate::support::files::FileProvider;
    use crate::support::namespace::{Machines, ROUTER, is_inside, run};
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::{tools, until_async};

    const LIST: &str = "/lists/all.m3u";
    /// The password at the provider.
    const SECRET: &str = "hunter22";
    /// The first and last 2 MiB are cached.
    const LENGTH: usize = 12_000_000;
    /// A rate at which no film of these tests ends.
    const SLOWLY: Reading = Reading::BytesPerSecond(50_000);

    /// The paths that players ask for.
    struct Library {
        film: String,
        film_of_app: String,
        episode: String,
        past: String,
        /// Path of the account in the API.
        account: String,
        /// Where the list of the account is.
        _lists: Provider,
    }

    /// Makes an account of two connections with a channel with an archive, a film and a series, in the store of a machine that
    /// is not in a cluster yet.
    async fn fill(machine: &Machine, files: &FileProvider) -> Library {
        let lists = Provider::start();
        let address = |path: &str| files.url(&path.replace("SECRET", SECRET));
        let list = format!(
            "#EXTM3U\n\
             #EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n\
             #EXTINF:-1 group-title=\"Films\",A Film (2019)\n{}\n\
             #EXTINF:-1 group-title=\"Series\",A Series S01E01 Pilot\n{}\n",
            address("/past/SECRET/{utc}-{duration}.ts"),
            address("/live/anna/SECRET/1.ts"),
            address("/movie/anna/SECRET/3.mkv"),
            address("/series/anna/SECRET/4.mkv"),
        );
        lists.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let create = async |path: &str, body: Value| {
            let made = admin.post(path, body).await;
            assert_eq!(made.status, 201, "{made:?}");
            made.body
        };
        let account = json!({
            "name": "Provider", "server_url": lists.url(LIST), "max_streams": 2, "enable_vod": true,
            "auto_enable_new_groups_vod": true, "auto_enable_new_groups_series": true,
        });
        let account = format!("/api/m3u/accounts/{}/", create("/api/m3u/accounts/", account).await["id"]);
        let first = async |path: &str| {
            let mut found = Value::Null;
            until_async(path, async || {
                let all = admin.get(path).await.body;
                found = all.get("results").unwrap_or(&all)[0].clone();
                found.is_object()
            })
            .await;
            found
        };
        let film = first("/api/vod/movies/").await;
        let series = first("/api/vod/series/").await;
        let episode = first(&format!("/api/vod/series/{}/episodes/", series["id"])).await;
        let stream = first("/api/channels/streams/?name=News").await;
        let channel =
            create("/api/channels/channels/from-stream/", json!({ "stream_id": stream["id"] })).await;
        let user = json!({
            "username": "kid", "password": "a password of the kid", "user_level": 0,
            "custom_properties": { "xc_password": "tv" },
        });
        create("/api/accounts/users/", user).await;
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        let text = |it: &Value| it["uuid"].as_str().unwrap().to_owned();
        let yesterday = Timestamp::now().as_second() / 60 * 60 - 86_400;
        Library {
            film: format!("/proxy/vod/movie/{}", text(&film)),
            film_of_app: format!("/movie/kid/tv/{}.mkv", film["id"]),
            episode: format!("/proxy/vod/episode/{}", text(&episode)),
            past: format!("/proxy/catchup/{}?start={yesterday}&duration=10", text(&channel)),
            account,
            _lists: lists,
        }
    }

    fn film() -> Vec<u8> {
        let mut file: Vec<u8> =
            (0..LENGTH as u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        // The beginning of a Matroska file.
        file[..8].copy_from_slice(b"\x1a\x45\xdf\xa3\x01\0\0\0");
        file
    }

    fn get(path: &str, range: &str) -> Request {
        let request = Request::get(path).header("User-Agent", "app");
        if range.is_empty() { request } else { request.header("Range", range) }
    }

    /// Asks until the answer is another one than 503: a new cluster opens nothing for 20 s.
    async fn answers(node: &Node, request: impl Fn() -> Request) -> Response {
        let mut answer = None;
        until_async(&format!("{} to play: {}", node.machine.name, node.program.output()), async || {
            let reply = fetch(node.address, request()).await;
            let is_there = reply.status() != 503;
            answer = Some(reply);
            is_there
        })
        .await;
        answer.unwrap()
    }

    /// Begins to play. The slots of viewers who have left may be used for a moment.
    async fn plays(node: &Node, request: impl Fn() -> Request) -> Player {
        loop {
            let player = Player::ask(node.address, request()).await;
            match player.status().await {
                206 => return player,
                status => assert_eq!(status, 503, "{}", node.program.output()),
            }
        }
    }

    /// Requests a range and compares the whole answer.
    async fn reads(node: &Node, file: &[u8], path: &str, range: &str, part: std::ops::Range<usize>) {
        let answer = answers(node, || get(path, range)).await;
        let status = if range.is_empty() { 200 } else { 206 };
        assert_eq!(answer.status(), status, "{path} {range}: {}", answer.text());
        assert_eq!(answer.header("content-length"), Some(&*part.len().to_string()), "{path} {range}");
        let expected = format!("bytes {}-{}/{}", part.start, part.end.saturating_sub(1), file.len());
        assert_eq!(answer.header("content-range"), (status == 206).then_some(&*expected), "{path} {range}");
        assert!(answer.bytes == file[part], "{path} {range}: other bytes");
    }

    /// Returns the name of the node that reads a film for somebody, as a node shows it.
    async fn reader(node: &Node) -> String {
        let mut name = String::new();
        until_async("a session", async || {
            let body = node.api.get("/proxy/vod/stats").await.body;
            let text = body.to_string();
            let found = text.split_once("\"node\":\"").and_then(|it| it.1.split_once('"'));
            name = found.map(|it| it.0.to_owned()).unwrap_or_default();
            !name.is_empty()
        })
        .await;
        name
    }

    async fn until_closed(files: &FileProvider) {
        until_async("no connection at the provider", async || files.n_open() == 0).await;
    }

    /// Starts `attic` and `cellar` with the titles of a provider, all of which are this file.
    async fn two_full_nodes(nats: &NatsServers, file: &[u8]) -> (Library, FileProvider, [Node; 2]) {
        let files = FileProvider::start(file.to_vec()).await;
        let machine = Machine::new("attic", nats);
        let library = fill(&machine, &files).await;
        (library, files, two_nodes(machine, Machine::new("cellar", nats)).await)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_edge_node_plays_films_episodes_and_the_past_through_full_nodes() {
        let (nats, file) = (nats(), film());
        let (library, files, [attic, cellar]) = two_full_nodes(&nats, &file).await;
        files.limit(2);
        let edge = join(&attic, Machine::new("edge", &nats), "edge").await;

        // A film, whole and in parts, and what is known of it.
        reads(&edge, &file, &library.film, "", 0..LENGTH).await;
        reads(&edge, &file, &library.film_of_app, "bytes=9000000-", 9_000_000..LENGTH).await;
        reads(&edge, &file, &library.film_of_app, "bytes=1000-1999", 1_000..2_000).await;
        reads(&edge, &file, &library.film_of_app, "bytes=-500", LENGTH - 500..LENGTH).await;
        let answer = answers(&edge, || get(&library.film_of_app, "bytes=20000000-")).await;
        assert_eq!(answer.status(), 416, "{}", answer.text());
        let head = answers(&edge, || Request::head(library.film_of_app.as_str())).await;
        assert_eq!((head.status(), head.header("content-length")), (200, Some(&*LENGTH.to_string())));
        assert_eq!((head.header("content-type"), head.bytes.len()), (Some("video/x-matroska"), 0));
        reads(&edge, &file, &library.episode, "bytes=8000000-", 8_000_000..LENGTH).await;
        reads(&edge, &file, &library.past, "", 0..LENGTH).await;
        reads(&edge, &file, &library.past, "bytes=11999000-", 11_999_000..LENGTH).await;
        // Who has no login is refused there as well.
        let refused = fetch(edge.address, get(&library.film_of_app.replace("tv", "radio"), "")).await;
        assert!([401, 403, 404].contains(&refused.status()), "{}", refused.text());
        // Apps find the film.
        let list = "/player_api.php?username=kid&password=tv&action=get_vod_streams";
        let list = fetch(edge.address, Request::get(list)).await.text();
        assert!(list.contains("A Film") && !list.contains(SECRET), "{list}");
        // And the past of the channel, as soon as the edge node knows of it.
        let panel = async |parameters: &str| {
            let path = format!("/player_api.php?username=kid&password=tv{parameters}");
            fetch(edge.address, Request::get(path)).await.text()
        };
        until_async("the past of the channel in the lists of the edge node", async || {
            panel("&action=get_live_streams").await.contains("\"tv_archive_duration\":2")
        })
        .await;
        let with_login = |path: &str| format!("{path}?username=kid&password=tv&vod=all");
        let kept = fetch(edge.address, Request::get(with_login("/get.php"))).await.text();
        let all = fetch(edge.address, Request::get(with_login("/panel_api.php"))).await.text();
        assert!(kept.contains("catchup-days=\"2\"") && kept.contains("A Film"), "{kept}");
        assert!(kept.contains(&edge.address.to_string()), "{kept}");
        assert!(all.contains("\"tv_archive\":1") && all.contains("\"Films\""), "{all}");
        // An admin gets the addresses of the provider, but not there.
        let direct = |vod| Request::get(format!("/api/playlist.m3u?direct=true{vod}"));
        let at_full_node = attic.api.ask(direct("")).await.answer.text();
        assert!(at_full_node.contains(SECRET), "{at_full_node}");
        for vod in ["", "&vod=all"] {
            let reply = edge.api.ask(direct(vod)).await.answer.text();
            assert!(reply.contains("News") && !reply.contains(SECRET), "{reply}");
        }
        until_closed(&files).await;

        // The limit of the account holds for the viewers of all nodes, and a viewer who leaves makes room.
        files.slow_after(500_000);
        let watch = |agent: &str| {
            let film = Request::get(library.film.as_str()).header("User-Agent", agent);
            film.header("Range", "bytes=4000000-").reading(SLOWLY)
        };
        let one = plays(&edge, || watch("one")).await;
        let other = plays(&attic, || watch("other")).await;
        let third = fetch(edge.address, watch("third")).await;
        assert_eq!(third.status(), 503, "{}", third.text());
        assert!(
            third.header("retry-after").is_some() && third.text().contains("Provider"),
            "{}",
            third.text()
        );
        other.leave().await;
        one.leave().await;
        until_closed(&files).await;
        assert_eq!((files.peak(), files.n_refused()), (2, 0));

        // The node that reads is lost: the answer ends, and the player asks again.
        let player = plays(&edge, || watch("one")).await;
        player.more_bytes(100_000).await;
        let name = reader(&edge).await;
        let lost = if name == "attic" { attic } else { cellar };
        assert_eq!(lost.machine.name, name);
        lost.killed().await;
        player.ended().await;
        reads(&edge, &file, &library.film_of_app, "bytes=5000000-5100000", 5_000_000..5_100_001).await;
        assert_eq!(files.n_refused(), 0);
        contains_none(edge.machine.folder.path(), &[SECRET]);
        assert!(!edge.program.output().contains(SECRET));
    }

    #[test]
    fn a_film_ends_when_the_machine_of_its_edge_node_vanishes() {
        if is_inside("cluster_edge_titles::slow::a_film_ends_when_the_machine_of_its_edge_node_vanishes") {
            run(vanishing_edge());
        }
    }

    async fn vanishing_edge() {
        let (full, edge, server) = (1, 2, 3);
        let mut machines = Machines::new(3);
        let on = |at| (Machines::host(at), Machines::command(at));
        let nats = NatsServers::start_on(&tools::installed("bin/nats-server"), vec![on(server)]);
        let machine = |name, at| Machine::new_at(name, &nats, Machines::command(at), Machines::host(at));
        let files = FileProvider::start_at(ROUTER.parse().unwrap(), film()).await;
        let attic = machine("attic", full);
        let library = fill(&attic, &files).await;
        let attic = nodes([attic]).await.remove(0);
        let node = join(&attic, machine("edge", edge), "edge").await;
        files.slow_after(500_000);
        let watched = || Request::get(library.film.as_str()).header("Range", "bytes=4000000-");
        let player = plays(&node, || watched().reading(SLOWLY)).await;
        player.more_bytes(100_000).await;
        assert_eq!((reader(&attic).await.as_str(), files.n_open()), ("attic", 1));
        for other in [full, server] {
            machines.cut(edge, other);
            machines.cut(other, edge);
        }
        until_closed(&files).await;
        until_async("the end of the session", async || {
            !attic.api.get("/proxy/vod/stats").await.body.to_string().contains("\"node\"")
        })
        .await;
        machines.restore();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_film_of_an_account_of_other_nodes_is_read_by_one_of_them() {
        let (nats, file) = (nats(), film());
        let (library, files, [attic, cellar]) = two_full_nodes(&nats, &file).await;
        let set = attic.api.patch(&library.account, json!({ "nodes": ["cellar"] })).await;
        assert_eq!(set.status, 200, "{set:?}");
        reads(&attic, &file, &library.film, "bytes=9000000-", 9_000_000..LENGTH).await;
        reads(&attic, &file, &library.past, "", 0..LENGTH).await;
        until_closed(&files).await;
        files.slow_after(500_000);
        let player = Player::ask(attic.address, Request::get(library.film.as_str()).reading(SLOWLY)).await;
        assert_eq!(player.status().await, 200);
        assert_eq!(reader(&attic).await, "cellar");
        player.leave().await;
        until_closed(&files).await;
        cellar.stops().await;
        let refused = fetch(attic.address, get(&library.film, "")).await;
        assert_eq!(refused.status(), 503, "{}", refused.text());
        assert_eq!(files.n_open(), 0);
    }
}
