//! Recordings of several nodes: gateways in processes of their own, and NATS.

mod night {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use cluster::testing::NatsServers;
    use domain::time::iso_millis;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use crate::recordings::{LIST, check_packets, millis};
    use crate::recordings_after::{CONFIG, ONE_PIXEL, SHORT_BREAKS, clip_with_commercials};
    use crate::recordings_missed::part;
    use crate::support::api::{ADMIN, Api, ApiReply, PASSWORD};
    use crate::support::binary::Binary;
    use crate::support::client::Request;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::cluster_content::{ClusterChannel, fill};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::websocket::WebSocketClient;

    /// Starts two nodes with a channel, of which `attic` writes. The servers run until they are dropped.
    async fn two_nodes_with_news() -> (NatsServers, Provider, ClusterChannel, [Node; 2]) {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [news] = fill(&machine, &provider, ["news"], &[]).await;
        let nodes = two_nodes(machine, Machine::new("cellar", &nats)).await;
        (nats, provider, news, nodes)
    }

    /// Records a channel from now on for some seconds; waits for a node that writes. Returns the id.
    async fn record(api: &Api, channel: &ClusterChannel, seconds: i64) -> u64 {
        let mut id = None;
        until_async("a recording", async || {
            let now = actors::now_ms();
            let recording = json!({
                "channel_id": channel.id, "padding_before": 0, "padding_after": 0,
                "start_time": iso_millis(now), "end_time": iso_millis(now + seconds * 1000),
            });
            let made = api.post(LIST, recording).await;
            assert!(matches!(made.status, 201 | 503), "{made:?}");
            id = made.body["id"].as_u64();
            made.status == 201
        })
        .await;
        id.expect("waited for it")
    }

    async fn get(node: &Node, id: u64) -> Value {
        shown(&node.api, id).await
    }

    async fn shown(api: &Api, id: u64) -> Value {
        api.get(&format!("{LIST}{id}/")).await.body
    }

    /// Waits until a gateway shows a recording in a status.
    async fn until_status(api: &Api, id: u64, status: &str) -> Value {
        let mut found = Value::Null;
        until_async(&format!("recording {id} to be {status}"), async || {
            found = shown(api, id).await;
            found["status"] == status
        })
        .await;
        found
    }

    /// Returns the path of the file of a recording on a machine.
    fn path_of(machine: &Machine, recording: &Value) -> PathBuf {
        let name = recording["file_name"].as_str().unwrap_or_else(|| panic!("no file: {recording}"));
        machine.folder.path().join("recordings").join(name)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_node_that_takes_over_records_into_a_folder_of_its_own() {
        let (_nats, _provider, news, [attic, cellar]) = two_nodes_with_news().await;
        let first = record(&attic.api, &news, 4).await;
        let recording = until_status(&attic.api, first, "completed").await;
        let path = path_of(&attic.machine, &recording);
        let stored = fs::read(&path).unwrap();
        check_packets(&stored);
        assert!(!cellar.machine.folder.path().join("recordings").exists());

        let _machine = attic.killed().await;
        let second = record(&cellar.api, &news, 6).await;
        let recording = until_status(&cellar.api, second, "completed").await;
        check_packets(&fs::read(path_of(&cellar.machine, &recording)).unwrap());
        // It may have the same name.
        assert!(fs::read(&path).unwrap() == stored);
    }

    /// Waits until a file is gone from a machine.
    async fn until_gone(path: &std::path::Path) {
        until_async(&format!("{} to be removed", path.display()), async || !path.exists()).await;
    }

    /// Returns status and content of a file of a recording, or of a range of it.
    async fn bytes(node: &Node, id: u64, query: &str, range: Option<&str>) -> (u16, Vec<u8>) {
        let request = Request::get(format!("{LIST}{id}/file/{query}"));
        let request = match range {
            Some(range) => request.header("Range", range),
            None => request,
        };
        let reply = node.api.ask(request).await;
        (reply.status, reply.answer.bytes.to_vec())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_files_of_a_node_play_everywhere_and_a_deleted_one_goes_when_its_node_is_back() {
        let (_nats, _provider, news, [attic, cellar]) = two_nodes_with_news().await;
        let [kept, deleted] = [record(&attic.api, &news, 3).await, record(&attic.api, &news, 3).await];
        let recording = until_status(&attic.api, kept, "completed").await;
        let gone = path_of(&attic.machine, &until_status(&attic.api, deleted, "completed").await);
        let path = path_of(&attic.machine, &recording);
        let stored = fs::read(&path).unwrap();
        let there = until_status(&cellar.api, kept, "completed").await;
        assert_eq!((&there["node"], &there["is_available"]), (&json!("attic"), &json!(true)), "{there}");
        for node in [&attic, &cellar] {
            assert!(bytes(node, kept, "", None).await == (200, stored.clone()), "{}", node.machine.name);
            let part = bytes(node, kept, "", Some("bytes=188-375")).await;
            assert!(part == (206, stored[188..376].to_vec()), "{}", node.machine.name);
            assert_eq!(bytes(node, kept, "", Some("bytes=99999999-")).await.0, 416);
            let head = node.api.ask(Request::get(format!("{LIST}{kept}/file/")).method("HEAD")).await;
            let length = head.answer.header("content-length").map(str::to_owned);
            assert_eq!((head.status, length), (200, Some(stored.len().to_string())));
            let playlist = node.api.get(&format!("{LIST}{kept}/hls/")).await;
            assert!(String::from_utf8_lossy(&playlist.answer.bytes).contains("recording.ts"), "{playlist:?}");
        }
        let stranger = Request::get(format!("{LIST}{kept}/file/"));
        assert_eq!(cellar.api.without_credentials().ask(stranger).await.status, 401);

        let machine = attic.killed().await;
        until_async("the node to be shown as down", async || {
            get(&cellar, kept).await["is_available"] == false
        })
        .await;
        let (status, text) = bytes(&cellar, kept, "", None).await;
        assert!(status == 503 && String::from_utf8_lossy(&text).contains("attic"), "{status}");
        until_async("a node that writes", async || {
            let reply = cellar.api.delete(&format!("{LIST}{deleted}/")).await;
            assert!(matches!(reply.status, 204 | 503), "{reply:?}");
            reply.status == 204
        })
        .await;
        assert!(gone.exists() && path.exists());
        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        until_gone(&gone).await;
        until_async("the other file", async || bytes(&cellar, kept, "", None).await.0 == 200).await;
        // While it runs, the node removes a file at once.
        assert_eq!(cellar.api.delete(&format!("{LIST}{kept}/")).await.status, 204);
        until_gone(&path).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_recording_of_a_lost_node_continues_on_another_and_both_parts_are_its_file() {
        let (_nats, _provider, news, [attic, cellar]) = two_nodes_with_news().await;
        let id = record(&attic.api, &news, 600).await;
        until_async("some packets", async || get(&attic, id).await["file_size"].as_u64() > Some(100_000))
            .await;
        // The other node shows how the file grows.
        let token = Api::stranger_at(cellar.address).token(ADMIN, PASSWORD).await.text("access").to_owned();
        let path = format!("/ws/?token={token}");
        let mut socket = WebSocketClient::open(cellar.address, &path, &[]).await.unwrap();
        let is_there = |it: &Value| it["recordings"][0]["bytes_written"].as_u64() > Some(100_000);
        let progress = socket.until("recording_progress", is_there).await;
        assert_eq!(progress["recordings"][0]["recording_id"], json!(id.to_string()), "{progress}");
        let storage = cellar.api.get(&format!("{LIST}storage/")).await;
        assert!(storage.body["used_bytes"].as_u64() > Some(100_000), "{storage:?}");
        drop(socket);
        let first = path_of(&attic.machine, &get(&attic, id).await);
        let machine = attic.vanishes().await;
        let mut recording = Value::Null;
        until_async(&format!("the second part: {}", cellar.program.output()), async || {
            recording = get(&cellar, id).await;
            recording["node"] == "cellar" && recording["file_size"].as_u64() > Some(50_000)
        })
        .await;
        let parts = recording["parts"].as_array().unwrap().clone();
        assert_eq!((parts.len(), &recording["status"]), (2, &json!("recording")), "{recording}");
        assert_eq!((&parts[0]["node"], &parts[0]["is_available"]), (&json!("attic"), &json!(false)));
        assert!(parts[0]["ended_at"].is_null() && recording["is_available"] == false, "{recording}");
        assert_eq!(bytes(&cellar, id, "?part=1", None).await.0, 503);
        assert_eq!(bytes(&cellar, id, "?part=3", None).await.0, 404);
        // What can be read plays.
        assert_eq!(bytes(&cellar, id, "", Some("bytes=0-187")).await.0, 206);

        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        cellar.sees("attic").await;
        until_async(&format!("the end of the first part: {}", attic.program.output()), async || {
            recording = get(&cellar, id).await;
            !recording["parts"][0]["ended_at"].is_null()
        })
        .await;
        let gaps = recording["gaps"].as_array().unwrap();
        let (begin, end) = (&recording["parts"][0]["ended_at"], &recording["parts"][1]["started_at"]);
        assert!(gaps.iter().any(|it| it["start"] == *begin && it["end"] == *end), "{recording}");
        // Long enough for the other node to have been given up.
        assert!(millis(end) - millis(begin) > 10_000, "{recording}");
        let stopped = attic.api.post(&format!("{LIST}{id}/stop/"), json!({})).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
        until_async("the end", async || {
            recording = get(&attic, id).await;
            recording["status"] == "stopped" && !recording["parts"][1]["ended_at"].is_null()
        })
        .await;
        let second = path_of(&cellar.machine, &recording);
        let [one, two] = [&first, &second].map(|it| fs::read(it).unwrap());
        [&one, &two].into_iter().for_each(|it| drop(check_packets(it)));
        assert_eq!(recording["parts"][0]["file_size"], one.len(), "{recording}");
        let all = [one.as_slice(), two.as_slice()].concat();
        let join = format!("bytes={}-{}", one.len() - 188, one.len() + 187);
        for node in [&attic, &cellar] {
            let name = node.machine.name;
            assert!(bytes(node, id, "?part=1", None).await == (200, one.clone()), "{name}");
            assert!(bytes(node, id, "?part=2", None).await == (200, two.clone()), "{name}");
            assert!(bytes(node, id, "", None).await == (200, all.clone()), "{name}");
            let over_join = bytes(node, id, "", Some(&join)).await;
            assert!(over_join == (206, all[one.len() - 188..one.len() + 188].to_vec()), "{name}");
            let playlist = node.api.get(&format!("{LIST}{id}/hls/")).await.answer;
            let text = String::from_utf8_lossy(&playlist.bytes).into_owned();
            for line in
                ["recording.ts?part=1", "#EXT-X-DISCONTINUITY", "recording.ts?part=2", "#EXT-X-ENDLIST"]
            {
                assert!(text.contains(line), "{name}: {text}");
            }
        }
        let deleted = attic.api.delete(&format!("{LIST}{id}/")).await;
        assert_eq!(deleted.status, 204, "{deleted:?}");
        until_gone(&first).await;
        until_gone(&second).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_node_that_no_longer_writes_hands_its_recording_over_without_a_gap() {
        let (_nats, _provider, news, [attic, cellar]) = two_nodes_with_news().await;
        let id = record(&attic.api, &news, 600).await;
        until_async("some packets", async || get(&attic, id).await["file_size"].as_u64() > Some(50_000))
            .await;
        attic.machine.succeeds(&["cluster", "drain"]).await;
        let mut recording = Value::Null;
        until_async(&format!("the other node to continue: {}", cellar.program.output()), async || {
            recording = get(&cellar, id).await;
            recording["node"] == "cellar" && !recording["parts"][0]["ended_at"].is_null()
        })
        .await;
        assert_eq!(recording["gaps"], json!([]), "{recording}");
        // The first part has ended, and the second one grows.
        let length = |path: &PathBuf| fs::metadata(path).unwrap().len();
        let first = attic.machine.folder.path().join("recordings");
        let first = first.join(recording["parts"][0]["file_name"].as_str().unwrap());
        assert_eq!(recording["parts"][0]["file_size"], length(&first));
        let second = path_of(&cellar.machine, &recording);
        until_async("the second part", async || length(&second) > 100_000).await;
        assert_eq!(recording["parts"][0]["file_size"], length(&first));
    }

    /// Lets a machine search for commercials with a program that waits for a file `released` in the folder that this returns.
    fn hold_comskip(machine: &mut Machine) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let (program, released) = (folder.path().join("slow-comskip"), folder.path().join("released"));
        let waits = format!("while [ ! -e {} ]; do sleep 0.05; done", released.display());
        fs::write(&program, format!("#!/bin/sh\n{waits}\nexec comskip \"$@\"\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        machine.settings.push(format!("programs.comskip={}", program.display()));
        folder
    }

    /// Wants all kinds of work after recordings of a channel, which gets a logo.
    async fn want_work(api: &Api, provider: &Provider, channel: &ClusterChannel) {
        let ok = |reply: ApiReply| assert!(matches!(reply.status, 200 | 201), "{reply:?}");
        ok(api.send("PUT", CONFIG, json!({ "enabled": true, "config": SHORT_BREAKS })).await);
        let settings = api.get("/api/core/settings/").await.body;
        let rows = settings["results"].as_array().unwrap().iter();
        let id = rows.filter(|it| it["key"] == "dvr_settings").map(|it| it["id"].clone()).next().unwrap();
        let value = json!({ "remux": "mkv", "write_nfo": true, "write_artwork": true });
        ok(api.send("PATCH", &format!("/api/core/settings/{id}/"), json!({ "value": value })).await);
        provider.path("/logo.png").answers(MockResponse::text("image/png", ONE_PIXEL));
        let logo = json!({ "name": "News", "url": provider.url("/logo.png") });
        let logo = api.post("/api/channels/logos/", logo).await;
        let change = json!({ "logo_id": logo.body["id"] });
        ok(logo);
        ok(api.send("PATCH", &format!("/api/channels/channels/{}/", channel.id), change).await);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_node_of_a_recording_does_the_work_on_it_while_another_one_writes() {
        let (nats, provider) = (nats(), Provider::start());
        let path = format!("PATH={}", std::env::var("PATH").unwrap_or_default());
        let command = vec!["/usr/bin/env".to_owned(), path];
        let mut machine = Machine::new_at("attic", &nats, command, "127.0.0.1".to_owned());
        let programs = hold_comskip(&mut machine);
        let [news] = fill(&machine, &provider, ["news"], &[]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        want_work(&cellar.api, &provider, &news).await;
        let id = record(&attic.api, &news, 3).await;
        until_async("the search for commercials", async || {
            get(&cellar, id).await["comskip"]["status"] == "running"
        })
        .await;
        let stream = path_of(&attic.machine, &get(&attic, id).await);
        let machine = attic.killed().await;
        clip_with_commercials(&stream).await;
        fs::write(programs.path().join("released"), "").unwrap();
        cellar.creates("the other node writes").await;

        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        let mut recording = Value::Null;
        let done = format!("the work to be done: {} {}", attic.program.output(), cellar.program.output());
        until_async(&done, async || {
            recording = get(&cellar, id).await;
            // The last one.
            recording["artwork"]["status"] == "completed"
        })
        .await;
        assert_eq!(recording["comskip"]["commercials"].as_array().map(Vec::len), Some(1), "{recording}");
        assert_eq!(
            (&recording["remux"]["status"], &recording["node"]),
            (&json!("completed"), &json!("attic")),
            "{recording}"
        );
        let converted = path_of(&attic.machine, &recording);
        assert_eq!((&converted, stream.exists()), (&stream.with_extension("mkv"), false));
        for name in [&recording["nfo_file"], &recording["comskip"]["edl_file"]] {
            let folder = attic.machine.folder.path().join("recordings");
            assert!(folder.join(name.as_str().unwrap_or("none")).exists(), "{recording}");
        }
        let writes = "this node has the job of writing";
        assert!(!attic.program.output().contains(writes) && cellar.program.output().contains(writes));

        let stored = fs::read(&converted).unwrap();
        let picture = format!("{LIST}{id}/artwork/");
        for node in [&attic, &cellar] {
            let name = node.machine.name;
            assert!(bytes(node, id, "", None).await == (200, stored.clone()), "{name}");
            let shown = node.api.ask(Request::get(picture.clone())).await;
            assert_eq!((shown.status, &shown.answer.bytes[..]), (200, ONE_PIXEL), "{name}");
        }
        let stranger = cellar.api.without_credentials().ask(Request::get(picture.clone())).await;
        assert_eq!(stranger.status, 401);
        let _machine = attic.killed().await;
        let lost = cellar.api.get(&picture).await;
        assert!(
            lost.status == 503 && String::from_utf8_lossy(&lost.answer.bytes).contains("attic"),
            "{lost:?}"
        );
    }

    /// Makes a channel with an archive of two days in the store of a machine that is not in a cluster yet. Returns its id.
    async fn with_archive(machine: &Machine, provider: &Provider) -> u64 {
        provider.path("/live/a/news.ts").plays(Picture::new("live"));
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n",
            provider.url("/past/a/{utc}.ts"),
            provider.url("/live/a/news.ts"),
        );
        provider.path("/list.m3u").answers(MockResponse::text("audio/x-mpegurl", list));
        let mut program = machine.run_alone();
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let account = json!({ "name": "A", "server_url": provider.url("/list.m3u"), "max_streams": 2 });
        let made = admin.post("/api/m3u/accounts/", account).await;
        assert_eq!(made.status, 201, "{made:?}");
        let mut stream = Value::Null;
        until_async("the stream", async || {
            stream = admin.get("/api/channels/streams/").await.body["results"][0]["id"].clone();
            stream.is_number()
        })
        .await;
        let channel = json!({ "stream_id": stream });
        let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        channel.body["id"].as_u64().unwrap_or_else(|| panic!("{channel:?}"))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_node_of_a_recording_adds_what_it_lacks_while_another_one_writes() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let channel = with_archive(&machine, &provider).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        // The programme has begun, and its archive does not answer yet.
        let start = actors::now_ms() / 1000 - 20;
        let mut id = None;
        until_async("a recording", async || {
            let recording = json!({
                "channel_id": channel, "padding_before": 0, "padding_after": 0,
                "start_time": iso_millis(start * 1000), "end_time": iso_millis(actors::now_ms() + 5_000),
            });
            id = attic.api.post(LIST, recording).await.body["id"].as_u64();
            id.is_some()
        })
        .await;
        let id = id.expect("waited for it");
        let recording = until_status(&attic.api, id, "completed").await;
        let path = path_of(&attic.machine, &recording);
        let began = |it: &Value| millis(&it["started_at"]) / 1000;
        assert!(began(&recording) > start + 10, "{recording}");
        let machine = attic.killed().await;
        cellar.creates("the other node writes").await;
        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        for second in start..=start + 600 {
            provider.path(&format!("/past/a/{second}.ts")).answers(part("past", 60));
        }
        let mut recording = Value::Null;
        let done = format!("the begin: {} {}", attic.program.output(), cellar.program.output());
        until_async(&done, async || {
            recording = get(&cellar, id).await;
            began(&recording) <= start + 2
        })
        .await;
        assert_eq!((&recording["node"], &recording["gaps"]), (&json!("attic"), &json!([])), "{recording}");
        let stored = fs::read(&path).unwrap();
        let checker = check_packets(&stored);
        assert_eq!(checker.labels, ["past", "live"]);
        assert_eq!(recording["file_size"], stored.len(), "{recording}");
        for node in [&attic, &cellar] {
            assert!(bytes(node, id, "", None).await == (200, stored.clone()), "{}", node.machine.name);
        }
        let writes = "this node has the job of writing";
        assert!(!attic.program.output().contains(writes), "{}", attic.program.output());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_files_of_a_gateway_that_becomes_a_node_are_its_own() {
        let nats = nats();
        let provider = Provider::start();
        let machine = Machine::new("attic", &nats);
        let [news] = fill(&machine, &provider, ["news"], &[]).await;
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
        let api = Api::stranger_at(program.address().await).login(ADMIN, PASSWORD).await;
        let id = record(&api, &news, 3).await;
        let recording = until_status(&api, id, "completed").await;
        assert_eq!((&recording["node"], &recording["is_available"]), (&Value::Null, &json!(true)));
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        let stored = fs::read(path_of(&machine, &recording)).unwrap();
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        until_async("the node of the file", async || get(&cellar, id).await["node"] == "attic").await;
        for node in [&attic, &cellar] {
            assert!(bytes(node, id, "", None).await == (200, stored.clone()), "{}", node.machine.name);
        }
    }
}
