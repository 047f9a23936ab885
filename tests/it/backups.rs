//! Back-ups and restorations with the real binary.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::{Api, ApiReply};
use crate::support::binary::Binary;
use crate::support::eventually;

const GROUPS: &str = "/api/channels/groups/";

/// Runs a command on a data folder, and returns its exit code and output.
async fn run(root: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let root = root.display().to_string();
    let all = [arguments, &["--data-dir", &root]].concat();
    Binary::start(&all).outcome().await
}

fn serve(root: &Path) -> Binary {
    Binary::start(&["serve", "--data-dir", &root.display().to_string()])
}

async fn stop(mut program: Binary) {
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
}

async fn groups(admin: &Api) -> Vec<String> {
    let listed = admin.get(GROUPS).await.body;
    let names = listed["results"].as_array().unwrap().iter();
    names.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

async fn add_group(admin: &Api, name: &str) {
    assert_eq!(admin.post(GROUPS, json!({ "name": name })).await.status, 201);
}

/// Waits for a task, and returns its result.
async fn finished(admin: &Api, started: ApiReply) -> Value {
    assert_eq!(started.status, 202, "{started:?}");
    let path = format!("/api/backups/status/{}/", started.text("task_id"));
    loop {
        let status = admin.get(&path).await.body;
        match status["state"].as_str() {
            Some("completed") => return status["result"].clone(),
            Some("pending" | "running") => tokio::time::sleep(Duration::from_millis(50)).await,
            _ => panic!("{status}"),
        }
    }
}

/// Returns the addresses for players that the program has printed, one for each of its starts.
fn addresses(program: &Binary) -> Vec<SocketAddr> {
    let output = program.output();
    let lines =
        output.lines().filter_map(|line| line.split_once("/playlist.m3u")?.0.rsplit("http://").next());
    lines.filter_map(|it| it.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_back_up_by_command_while_the_gateway_runs_restores_on_another_machine() {
    let (here, there): (TempDir, TempDir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = here.path().join("saved.tar.gz").display().to_string();
    let program = serve(here.path());
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    add_group(&admin, "News").await;
    let (code, output) = run(here.path(), &["backup", &file]).await;
    assert!(code == Some(0) && output.contains("key file"), "{output}");
    let (code, output) = run(here.path(), &["backup", &file]).await;
    assert!(code == Some(1) && output.contains("failed to create"), "an existing file is kept: {output}");
    add_group(&admin, "Later").await;
    stop(program).await;

    let (code, output) = run(there.path(), &["restore", &file]).await;
    assert!(code == Some(1) && output.contains("--key-file"), "{output}");
    let key = here.path().join("key").display().to_string();
    let (code, output) = run(there.path(), &["restore", &file, "--key-file", &key]).await;
    assert!(code == Some(0) && output.contains("restored the back-up"), "{output}");
    let program = serve(there.path());
    // The login of the other machine is part of the back-up.
    let admin = admin.at(program.address().await);
    assert_eq!(groups(&admin).await, ["News"]);
    stop(program).await;
    let (code, output) = run(there.path(), &["check"]).await;
    assert_eq!(code, Some(0), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restoration_in_the_interface_restarts_the_gateway_with_the_restored_store() {
    let data = tempfile::tempdir().unwrap();
    let program = serve(data.path());
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    add_group(&admin, "News").await;
    let made = finished(&admin, admin.post("/api/backups/create/", json!({})).await).await;
    add_group(&admin, "Later").await;
    let path = format!("/api/backups/{}/restore/", made["filename"].as_str().unwrap());
    let restored = finished(&admin, admin.post(&path, json!({})).await).await;
    assert!(restored["message"].as_str().unwrap().contains("restarts now"), "{restored}");
    eventually("the second start of the gateway", || addresses(&program).len() == 2).await;
    let admin = admin.at(addresses(&program)[1]);
    assert_eq!(groups(&admin).await, ["News"]);
    stop(program).await;
}
