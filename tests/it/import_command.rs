//! `headwater import`, with the real program.

use crate::support::binary::Binary;
use crate::support::upstream::{Answer, Provider};
use domain::account::{Account, List};
use domain::source_url::SourceUrl;
use storage::Store;
use storage::records::schema;
use tempfile::TempDir;

const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Runs the command to its end on this data folder: the code, and everything it said.
async fn imported(data: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let data = data.path().display().to_string();
    Binary::start(&[&["import", "--data-dir", &data], arguments].concat()).outcome().await
}

/// The accounts as they are kept.
async fn accounts(data: &TempDir) -> Vec<Account> {
    let folder = data.path().to_owned();
    let read = move || {
        let store = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
        store.collection::<Account>().all().unwrap()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_imported_into_an_account_and_again_into_the_same_one() {
    let provider = Provider::start();
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("Anna's.m3u");
    let list =
        format!("{}#EXTINF:-1,Lost\n", provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]));
    std::fs::write(&file, list).unwrap();
    let file = file.to_str().unwrap();
    let (code, said) = imported(&data, &[file, "--max-streams", "2"]).await;
    assert_eq!(code, Some(0), "{said}");
    for part in
        ["2 entries\n  line 6: ", "account \"Anna's\": 2 new, 0 changed, 0 no longer listed, 0 removed"]
    {
        assert!(said.contains(part), "{said}");
    }
    let (code, said) = imported(&data, &[file]).await;
    assert!(code == Some(0) && said.contains("account \"Anna's\": 0 new, 0 changed"), "{said}");

    let url = provider.url("/list?password=hunter2");
    let list = provider.playlist(&[("", "News", NEWS)]);
    provider.path("/list?password=hunter2").answers(Answer::text("text/plain", list));
    let (code, said) = imported(&data, &[&url, "--account", "Anna's"]).await;
    assert!(code == Some(0) && said.contains("1 changed, 1 no longer listed"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let accounts = accounts(&data).await;
    let [_, account] = &accounts[..] else { panic!("{accounts:?}") };
    assert_eq!((account.name.as_str(), account.profiles[0].max_streams), ("Anna's", 2));
    assert_eq!(account.list, List::Url(SourceUrl::new(url)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_which_nothing_is_taken_is_told_with_the_reason_and_leaves_no_account() {
    let provider = Provider::start();
    let data = tempfile::tempdir().unwrap();
    provider.path("/html").answers(Answer::html());
    for (list, reason) in [
        (provider.url("/html"), "headwater: nothing taken from http://"),
        (provider.url("/gone?password=hunter2"), "404"),
        (data.path().join("no.m3u").display().to_string(), "No such file"),
    ] {
        let (code, said) = imported(&data, &[&list]).await;
        assert!(code == Some(1) && said.contains(reason) && !said.contains("hunter2"), "{said}");
    }
    assert_eq!(accounts(&data).await.len(), 1, "the one of streams made by hand");

    let list = |n: usize| (0..n).map(|it| format!("#EXTINF:-1,{it}\nhttp://h/{it}\n")).collect::<String>();
    provider.path("/list").answers(Answer::text("text/plain", list(10)));
    let url = provider.url("/list");
    assert_eq!(imported(&data, &[&url]).await.0, Some(0));
    provider.path("/list").answers(Answer::text("text/plain", list(2)));
    let (code, said) = imported(&data, &[&url]).await;
    assert!(code == Some(1) && said.contains("--confirm"), "{said}");
    let (code, said) = imported(&data, &[&url, "--confirm"]).await;
    assert!(code == Some(0) && said.contains("2 entries"), "{said}");
    let (code, said) = imported(&data, &[&provider.url("/html")]).await;
    assert!(code == Some(1) && said.contains("--account"), "{said}");
}
