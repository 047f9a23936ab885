//! Files that the nodes of a cluster share: uploads and guides, with gateways in processes of their own, and NATS.

mod night {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::guide::fixture::guide;
    use crate::support::client::Request;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::until_async;

    const STREAM: &str = "Stream of the playlist";
    const PROGRAMME: &str = "Show 0 of 0";

    fn svg(text: &str) -> String {
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><title>{text}</title></svg>")
    }

    async fn upload(node: &Node, path: &str, content_type: &str, content: String) -> Value {
        let request = Request::get(path).method("POST").body(content_type, content);
        let reply = node.api.ask(request).await;
        assert!(matches!(reply.status, 200 | 201), "{path}: {reply:?}");
        reply.body
    }

    /// Returns the image of a logo.
    async fn logo(node: &Node, made: &Value) -> String {
        node.api.get(&format!("/api/channels/logos/{}/cache/", made["id"])).await.answer.text()
    }

    /// Waits until a node shows the streams of the playlist and the programmes of the guide.
    async fn shows_all(node: &Node) {
        let name = node.machine.name;
        until_async(&format!("{name} to have the streams: {}", node.program.output()), async || {
            node.api.get("/api/channels/streams/").await.body.to_string().contains(STREAM)
        })
        .await;
        until_async(&format!("{name} to have the guide: {}", node.program.output()), async || {
            node.api.get("/output/epg").await.answer.text().contains(PROGRAMME)
        })
        .await;
        for folder in ["playlists", "guides"] {
            until_async(&format!("{name} to have the uploads of {folder}"), async || {
                files(&node.machine.folder.path().join("uploads").join(folder)).len() == 1
            })
            .await;
        }
    }

    fn files(folder: &Path) -> Vec<Vec<u8>> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let paths = entries.map(|it| it.unwrap().path());
        // One may just get its name.
        paths
            .filter(|it| it.extension().is_none_or(|it| it != "part~"))
            .filter_map(|it| fs::read(it).ok())
            .collect()
    }

    /// Returns whether a file in a folder contains a text.
    fn contains(folder: &Path, text: &str) -> bool {
        fs::read_dir(folder).unwrap().any(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                return contains(&path, text);
            }
            fs::read(&path).unwrap().windows(text.len()).any(|it| it == text.as_bytes())
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn uploads_and_guides_are_on_all_nodes_and_survive_the_one_that_answered() {
        let nats = nats();
        let attic = Machine::new("attic", &nats).with_admin().await;
        let [attic, cellar] = two_nodes(attic, Machine::new("cellar", &nats)).await;

        // All through the node that only passes writes on.
        let first = upload(&cellar, "/api/channels/logos/upload/", "image/svg+xml", svg("first logo")).await;
        assert!(logo(&cellar, &first).await.contains("first logo"));
        assert!(logo(&attic, &first).await.contains("first logo"));
        let channel = json!({ "name": "News", "tvg_id": "c0", "logo_id": first["id"] });
        let channel = cellar.api.post("/api/channels/channels/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        let account = cellar.api.post("/api/m3u/accounts/", json!({ "name": "Files" })).await;
        assert_eq!(account.status, 201, "{account:?}");
        let list = format!("#EXTM3U\n#EXTINF:-1,{STREAM}\nhttp://127.0.0.1:9/hunter22.ts\n");
        let path = format!("/api/m3u/accounts/{}/upload/", account.body["id"]);
        upload(&cellar, &path, "audio/x-mpegurl", list).await;
        let now = actors::now_ms() / 1000;
        let text = guide(1, 20, now - now % 3_600);
        upload(&cellar, "/api/epg/sources/upload/", "application/xml", text).await;
        for node in [&cellar, &attic] {
            shows_all(node).await;
        }

        let second =
            upload(&cellar, "/api/channels/logos/upload/", "image/svg+xml", svg("second logo")).await;
        attic.killed().await;
        assert!(logo(&cellar, &second).await.contains("second logo"));
        // It writes now, and imports its own copy of the playlist.
        cellar.creates("Films").await;
        let path = format!("/api/m3u/accounts/{}/", account.body["id"]);
        let before = cellar.api.get(&path).await.body["updated_at"].clone();
        let refresh = format!("/api/m3u/refresh/{}/", account.body["id"]);
        let refreshed = cellar.api.post(&refresh, json!({})).await;
        assert!(matches!(refreshed.status, 200 | 202), "{refreshed:?}");
        until_async(&format!("the refresh: {}", cellar.program.output()), async || {
            let body = cellar.api.get(&path).await.body;
            body["updated_at"] != before && body["status"] == "success"
        })
        .await;

        let token = cellar.machine.succeeds(&["cluster", "token"]).await;
        let mut third = Machine::new("third", &nats).serve(&["--join", token.trim()]).await;
        third.logs_in().await;
        shows_all(&third).await;
        assert!(logo(&third, &first).await.contains("first logo"));
        assert!(logo(&third, &second).await.contains("second logo"));

        let is_here = |text| contains(&cellar.machine.folder.path().join("uploads"), text);
        for text in ["first logo", "second logo", STREAM, "hunter22", PROGRAMME] {
            assert!(is_here(text), "{text}: the search finds nothing");
            assert!(!contains(&nats.data(0), text), "{text}");
        }
    }
}
