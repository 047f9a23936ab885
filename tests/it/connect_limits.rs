//! Limits of deliveries: how much of an answer is read, how often services get messages, and how many scripts run.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::connect::{LIST, Studio, id_of};
use crate::support::{eventually, until_async};

/// The part of an answer that is read.
const READ_BYTES: usize = 64 << 10;
/// The part of it that is kept.
const KEPT_BYTES: usize = 4 << 10;

/// A server whose answers do not end.
struct EndlessServer {
    url: String,
    /// The sizes of the answers whose connections were closed.
    sent: Arc<Mutex<Vec<usize>>>,
    _task: AbortOnDropHandle<()>,
}

impl EndlessServer {
    async fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let sent: Arc<Mutex<Vec<usize>>> = Arc::default();
        let counted = sent.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(answer_for_ever(socket, status, counted.clone()));
            }
        });
        Self { url, sent, _task: AbortOnDropHandle::new(task) }
    }
}

async fn answer_for_ever(mut socket: TcpStream, status: u16, sent: Arc<Mutex<Vec<usize>>>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|it| it == b"\r\n\r\n") {
        if !socket.read_buf(&mut request).await.is_ok_and(|n| n > 0) {
            return;
        }
    }
    let head = format!("HTTP/1.1 {status} So\r\nContent-Type: text/plain\r\n\r\n");
    if socket.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let mut n_sent = 0;
    while let Ok(n) = socket.write(&[b'x'; READ_BYTES]).await {
        n_sent += n;
    }
    sent.lock().push(n_sent);
}

/// Returns how much the kernel may keep of a connection that nobody reads.
fn kernel_bytes() -> usize {
    let max_of = |name: &str| {
        let sizes = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        sizes.split_whitespace().last().unwrap().parse::<usize>().unwrap()
    };
    max_of("tcp_rmem") + max_of("tcp_wmem")
}

// Holds T-int.1.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_never_ends_is_cut() {
    let studio = Studio::start().await;
    for (status, expected) in [(200, "success"), (400, "failed")] {
        let server = EndlessServer::start(status).await;
        let body =
            json!({ "name": "Endless", "type": "webhook", "url": server.url, "events": ["login_failed"] });
        let id = id_of(&studio.admin.post(LIST, body).await);
        studio.fail_login(&format!("a device of {status}")).await;
        let of_target = format!("integration={id}");
        until_async("the log", async || !studio.logged(&of_target).await.is_empty()).await;
        let logged = studio.logged(&of_target).await.remove(0);
        assert_eq!((&logged["status"], &logged["attempt"]), (&json!(expected), &json!(1)), "{logged}");
        let answer = &logged["response_payload"];
        assert_eq!(answer["status_code"], status);
        assert_eq!(answer["body"], "x".repeat(KEPT_BYTES));
        eventually("the end of the connection", || !server.sent.lock().is_empty()).await;
        let n_sent = server.sent.lock()[0];
        assert!(n_sent >= READ_BYTES, "{n_sent} bytes are less than what is read");
        assert!(n_sent <= READ_BYTES + kernel_bytes(), "{n_sent} bytes were read");
        assert_eq!(studio.admin.delete(&format!("{LIST}{id}/")).await.status, 204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_four_scripts_run_at_the_same_time() {
    const SCRIPTS: usize = 7;
    const AT_ONCE: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("scripts");
    let [running, counts] = ["running", "counts"].map(|it| scripts.join(it));
    for dir in [&scripts, &running, &counts] {
        std::fs::create_dir(dir).unwrap();
    }
    let script = scripts.join("wait.sh");
    // It notes how many run with it, and waits until it may end.
    let text = "#!/bin/sh\n: > running/$$\nls running | wc -l > counts/$$\n\
                until [ -e release ]; do sleep 0.02; done\nrm running/$$\n";
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let dirs = format!("integrations.script_dirs=[\"{}\"]", scripts.display());
    let studio = Studio::start_with(folder, &["--set", &dirs]).await;
    let mut ids = Vec::new();
    for n in 0..SCRIPTS {
        let config = json!({ "path": script.display().to_string(), "timeout": 600 });
        let body = json!({
            "name": format!("Script {n}"), "type": "script", "config": config, "events": ["login_failed"],
        });
        ids.push(id_of(&studio.admin.post(LIST, body).await));
    }
    studio.fail_login("anna").await;
    for id in ids {
        until_async("a delivery", async || studio.integration(id).await["waiting"] == 1).await;
    }
    let started = || -> Vec<usize> {
        let files = std::fs::read_dir(&counts).unwrap().map(|it| std::fs::read_to_string(it.unwrap().path()));
        files.filter_map(|it| it.ok()?.trim().parse().ok()).collect()
    };
    eventually("the first scripts", || started().len() >= AT_ONCE).await;
    std::fs::write(scripts.join("release"), "").unwrap();
    until_async("all scripts", async || studio.logged("status=success").await.len() == SCRIPTS).await;
    let counts = started();
    assert_eq!(counts.len(), SCRIPTS);
    assert_eq!(counts.iter().max(), Some(&AT_ONCE), "{counts:?}");
    assert_eq!(std::fs::read_dir(&running).unwrap().count(), 0);
}

mod slow {
    use std::time::Duration;

    use serde_json::json;

    use crate::connect::Studio;

    #[tokio::test(flavor = "multi_thread")]
    async fn services_get_no_message_sooner_than_they_allow() {
        let studio = Studio::start().await;
        let services = [
            ("discord", 400, json!({})),
            ("slack", 1_000, json!({})),
            ("telegram", 3_000, json!({ "options": { "chat_id": "-1001" } })),
            ("ntfy", 5_000, json!({ "options": { "topic": "tv" } })),
        ];
        for (name, _, more) in &services {
            let mut more = more.clone();
            more["preset"] = json!(name);
            studio.webhook(&format!("/{name}"), &["login_failed"], more).await;
        }
        for agent in ["anna", "berta", "clara"] {
            studio.fail_login(agent).await;
        }
        for (name, pause_ms, _) in services {
            let sent = studio.target.received(&format!("/{name}"), 3).await;
            for pair in sent.windows(2) {
                let pause = pair[1].at - pair[0].at;
                assert!(pause >= Duration::from_millis(pause_ms), "{name} after {pause:?}");
            }
        }
    }
}
