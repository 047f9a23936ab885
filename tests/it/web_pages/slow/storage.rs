//! The folder of recordings: who uses it, its limits, what is protected from them, and a disk that is missing.

use domain::user::UserLevel;
use serde_json::json;

use super::recordings::{LIST, Studio};
use crate::support::api::Api;
use crate::support::until_async;
use crate::support::web::{PASSWORD, Web, person};
use crate::web_audit::slow::{axe, check};
use crate::web_pages::page::Page;

const STORAGE: &str = "/recordings?show=storage";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_sees_who_uses_the_folder_protects_a_recording_and_limits_the_others() {
    let studio = Studio::open().await;
    let root = person(&studio.gateway, "root", UserLevel::Admin).await;
    let admin = Api::stranger_at(studio.gateway.api).login(&root.name, PASSWORD).await;
    let mut ids = Vec::new();
    for title in ["First", "Second"] {
        let id = studio.record(&admin, 0, title).await;
        let path = format!("{LIST}{id}/");
        until_async("a file", async || !admin.get(&path).await.body["file_url"].is_null()).await;
        assert_eq!(admin.post(&format!("{path}stop/"), json!({})).await.status, 200);
        until_async("the end", async || !admin.get(&path).await.body["ended_at"].is_null()).await;
        ids.push(id);
    }
    let page = Page::new(Web::signed_in(&studio.gateway, &root, &format!("/recordings/{}", ids[0])).await);
    page.presses("Protect").await;
    page.shows("The recording is protected.").await;
    page.presses("Do not protect").await;
    page.presses("Protect").await;
    page.presses("All recordings").await;
    page.clicks("[role=tab]", "Done").await;
    page.shows("protected").await;

    page.clicks("[role=tab]", "Storage").await;
    page.shows(&studio.recordings().display().to_string()).await;
    page.shows("2 recordings").await;
    let users = "return [...document.querySelectorAll('section table tbody tr')]
        .map((it) => [it.cells[0].textContent.trim(), it.cells[1].textContent.trim(), it.cells[3].textContent.trim()])";
    page.until_is("who uses it", users, json!([["root", "2", "no limit"]])).await;
    page.fills("Recordings that are kept", "1").await;
    page.presses("Save").await;
    page.shows("Saved.").await;
    // The protected one stays although it is older.
    page.until_is("one recording", users, json!([["root", "1", "no limit"]])).await;
    assert_eq!(admin.get(&format!("{LIST}{}/", ids[0])).await.status, 200);
    assert_eq!(admin.get(&format!("{LIST}{}/", ids[1])).await.status, 404);
    check(&page.web, &axe(), STORAGE).await;

    // The disk is gone.
    std::fs::remove_file(studio.recordings().join(".headwater-recordings")).unwrap();
    let path = format!("{LIST}{}/", ids[0]);
    assert_eq!(admin.patch(&path, json!({ "priority": 60 })).await.status, 200);
    let unmounted = async || {
        let storage = admin.get(&format!("{LIST}storage/")).await;
        storage.body["is_mounted"] == json!(false)
    };
    until_async("a folder without its marker", unmounted).await;
    page.web.opens(STORAGE).await;
    page.shows("The folder is not mounted").await;
    page.web.opens("/health").await;
    page.shows("The folder of the recordings is not mounted").await;
    page.web.is_clean().await;
}
