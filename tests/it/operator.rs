//! Commands of the operator before and beside the running gateway: from a list to channels, and `doctor`.

use std::path::Path;

use domain::account::{Account, PlaylistLocation};
use domain::panel::PanelLogin;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use storage::Store;
use storage::records::schema;

use crate::support::binary::Binary;
use crate::support::client::{Request, fetch};
use crate::support::panel::Panel;

const USER: &str = "anna-at-panel";
const PASSWORD: &str = "hunter2-kept";

/// Runs a command on a data folder; returns the exit code and the output.
async fn ran(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = data.display().to_string();
    let arguments: Vec<&str> = ["--data-dir", &folder].into_iter().chain(arguments.iter().copied()).collect();
    Binary::start(&arguments).outcome().await
}

/// Returns the lines of the playlist that the gateway gives to players.
async fn playlist(data: &Path) -> Vec<String> {
    let folder = data.display().to_string();
    let mut program = Binary::start(&["serve", "--data-dir", &folder]);
    let address = program.address().await;
    let reply = fetch(address, Request::get("/playlist.m3u")).await;
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    reply.text().lines().map(str::to_owned).collect()
}

const LIST: &str = "#EXTM3U\n\
    #EXTINF:-1 tvg-id=\"one\" group-title=\"News\",One\nhttp://127.0.0.1:9/1\n\
    #EXTINF:-1 tvg-id=\"one\" group-title=\"News\",One HD\nhttp://127.0.0.1:9/2\n\
    #EXTINF:-1 group-title=\"Sport\",Two\nhttp://127.0.0.1:9/3\n\
    #EXTINF:-1 group-title=\"Films\" tvg-type=\"movie\",A Film\nhttp://127.0.0.1:9/4.mp4\n\
    #EXTINF:-1,##### UK #####\nhttp://127.0.0.1:9/5\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_becomes_channels_at_once_and_its_films_and_separators_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let (data, list) = (folder.path().join("data"), folder.path().join("tv.m3u"));
    std::fs::write(&list, LIST).unwrap();
    let list = list.display().to_string();

    let (code, preview) = ran(&data, &["import", &list, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{preview}");
    for text in ["would make 2 channel(s)", "One (2 stream(s))", "1 film, 1 separator line"] {
        assert!(preview.contains(text), "{text}: {preview}");
    }
    assert!(!data.exists(), "a preview writes nothing");

    let (code, output) = ran(&data, &["import", &list, "--groups", "News"]).await;
    assert!(code == Some(0) && output.contains("made 1 channel(s)"), "{output}");
    assert!(output.contains("5 entries (3 channels, 1 film, 1 separator line)"), "{output}");
    let (code, output) = ran(&data, &["import", &list]).await;
    assert!(code == Some(0) && output.contains("made 1 channel(s)"), "{output}");
    let (code, output) = ran(&data, &["import", &list]).await;
    assert!(code == Some(0) && output.contains("made 0 channel(s)"), "{output}");
    let names: Vec<_> =
        playlist(&data).await.iter().filter_map(|it| it.rsplit_once(',').map(|it| it.1.to_owned())).collect();
    assert_eq!(names, ["One", "Two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_another_provider_adds_its_streams_to_the_channels_that_exist() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let list = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let first = list("first.m3u", LIST);
    let second = list(
        "second.m3u",
        "#EXTM3U\n#EXTINF:-1 tvg-id=\"ONE\",Uno\nhttp://127.0.0.1:9/a\n#EXTINF:-1,two\nhttp://127.0.0.1:9/b\n\
         #EXTINF:-1,Three\nhttp://127.0.0.1:9/c\n#EXTINF:-1 tvg-id=\"One\",Ein\nhttp://127.0.0.1:9/d\n\
         #EXTINF:-1 tvg-id=\"four\",Four\nhttp://127.0.0.1:9/e\n\
         #EXTINF:-1 tvg-id=\"FOUR\",Vier\nhttp://127.0.0.1:9/f\n",
    );
    let (code, output) = ran(&data, &["import", &first, "--no-channels"]).await;
    assert!(code == Some(0) && !output.contains("channel(s)"), "{output}");
    assert_eq!(ran(&data, &["import", &first]).await.0, Some(0));
    let (code, output) = ran(&data, &["import", &second, "--dry-run"]).await;
    // In another case, an id is that of a channel that existed, and not that of another entry.
    let expected = ["would make 3 channel(s)", "3 channel(s) exist already"];
    assert!(code == Some(0) && expected.iter().all(|it| output.contains(it)), "{output}");
    let (code, output) = ran(&data, &["import", &second]).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("made 3 channel(s), added 3 stream(s) to channels that existed"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_what_is_wrong_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (data, list) = (folder.path().join("data"), folder.path().join("tv.m3u"));
    let doctor = async || ran(&data, &["doctor"]).await;

    let (code, output) = doctor().await;
    assert!(code == Some(0) && output.contains("it does not exist yet"), "{output}");
    assert!(!data.exists(), "doctor changes nothing");

    std::fs::write(&list, LIST).unwrap();
    assert_eq!(ran(&data, &["import", &list.display().to_string()]).await.0, Some(0));
    let (code, output) = doctor().await;
    assert!(code == Some(0) && output.contains("account \"tv\": its file is there"), "{output}");
    assert!(output.contains("ffmpeg"), "{output}");

    std::fs::remove_file(&list).unwrap();
    let (code, output) = doctor().await;
    assert!(code == Some(1) && output.contains("PROBLEM  account \"tv\""), "{output}");
    assert!(output.contains("1 problem(s)"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_asks_each_provider_beside_the_running_gateway_and_shows_no_login() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let root = data.display().to_string();
    let mut panel = Panel::start(USER, PASSWORD);
    panel.offers(&[(7, "One")]);
    let list = folder.path().join("tv.m3u");
    std::fs::write(&list, LIST).unwrap();
    assert_eq!(ran(&data, &["import", &list.display().to_string()]).await.0, Some(0));
    let login = PanelLogin {
        server: SourceUrl::new(panel.url().trim_end_matches('/')),
        username: USER.to_owned(),
        password: Secret::new(PASSWORD),
    };
    let store = data.clone();
    let change = move || {
        let store = Store::open(&store.join("store"), &store.join("key"), schema()).unwrap();
        let mut accounts = store.collection::<Account>().all().unwrap();
        let account = accounts.iter_mut().find(|it| it.name == "tv").unwrap();
        account.list = PlaylistLocation::Panel(login);
        let account = account.clone();
        store.write_blocking(move |write| write.put(&account)).unwrap();
        store.close();
    };
    tokio::task::spawn_blocking(change).await.unwrap();
    let mut program = Binary::start(&["serve", "--data-dir", &root]);
    program.address().await;
    let (code, output) = ran(&data, &["doctor"]).await;
    assert!(code == Some(0) && output.contains("account \"tv\": the panel accepts the login"), "{output}");
    panel.change_password("another-one");
    let (code, output) = ran(&data, &["doctor"]).await;
    assert!(code == Some(1) && output.contains("refuses the user name or the password"), "{output}");
    assert!(!output.contains(PASSWORD) && !output.contains(USER), "{output}");
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn config_prints_every_value_with_its_origin_and_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headwater.toml");
    std::fs::write(
        &file,
        "[play]\nlists = [\"http://tv.example/get.php?username=anna&password=hunter2-kept\"]\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let arguments = ["--config", &file, "--set", "engine.stall_timeout=4", "config"];
    let (code, output) = ran(&folder.path().join("data"), &arguments).await;
    assert_eq!(code, Some(0), "{output}");
    for line in [
        "stall_timeout = 4.0  # option --set; default: 5.0",
        "player_listen = \"127.0.0.1:0\"  # option; default: \"[::]:9191\"",
        "format = \"text\"  # default",
    ] {
        assert!(output.lines().any(|it| it == line), "{line}: {output}");
    }
    assert!(output.contains("tv.example") && output.contains(&format!("# file {file}")), "{output}");
    assert!(!output.contains(PASSWORD), "{output}");
}
