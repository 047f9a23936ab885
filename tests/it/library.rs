//! Films and series at the surfaces, with the real binary.

use std::path::Path;

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, EpisodeId, ProfileId, VodCategoryId};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::vod::{
    AccountCategory, Episode, EpisodeFacts, EpisodeOffer, Relation, RelationId, Title, TitleFacts, TitleId,
    TitleKind, VodCategory, uuid_of,
};
use serde_json::{Map, json};
use storage::records::schema;
use storage::{Error, Store, Write};

use crate::support::api::Api;
use crate::support::binary::Binary;

const DRAMA: VodCategoryId = VodCategoryId(901);
const SPACE: VodCategoryId = VodCategoryId(902);

fn title(id: TitleId, category: VodCategoryId, name: &str, year: u16) -> Title {
    let facts = TitleFacts { name: name.to_owned(), year: Some(year), ..TitleFacts::default() };
    let relation = RelationId(id.key() + 1000);
    let relation = Relation::new(relation, AccountId(900), category, id.key().to_string(), 0);
    let relation = Relation { extension: "mkv".to_owned(), facts, ..relation };
    let new = Title::new(id, uuid_of(id.key(), u128::from(id.key()) << 64), 0);
    Title { relations: vec![relation], ..new }
}

/// Stores an account with two films and a series with one episode.
pub(crate) fn put_titles(write: &mut Write<'_>) -> Result<(), Error> {
    let list = PlaylistLocation::Url(SourceUrl::new("http://127.0.0.1:1/list.m3u"));
    let profile = AccountProfile::default_of(ProfileId(900), "default", 1);
    let account = Account::new(AccountId(900), "Films", list, profile, 0);
    write.put(&Account { enable_vod: true, ..account })?;
    for (n, id, name, kind) in
        [(901, DRAMA, "Drama", TitleKind::Movie), (902, SPACE, "Space", TitleKind::Series)]
    {
        write.put(&VodCategory { id, name: name.to_owned(), kind })?;
        write.put(&AccountCategory {
            id: n,
            account: AccountId(900),
            category: id,
            kind,
            provider_ids: vec![n.to_string()],
            enabled: true,
            custom_properties: Map::new(),
            last_seen: None,
        })?;
    }
    let series = title(TitleId::series(7).unwrap(), SPACE, "Andor", 2022);
    write.put(&title(TitleId::movie(5).unwrap(), DRAMA, "Metropolis", 1927))?;
    write.put(&title(TitleId::movie(6).unwrap(), DRAMA, "../../Escape", 1981))?;
    write.put(&series)?;
    let facts =
        EpisodeFacts { name: "Kassa".to_owned(), duration_secs: Some(2400), ..EpisodeFacts::default() };
    write.put(&Episode {
        id: EpisodeId(31),
        uuid: uuid_of(31, 31 << 64),
        series: series.id,
        season: 1,
        number: 1,
        offers: vec![EpisodeOffer {
            account: AccountId(900),
            relation: series.relations[0].id,
            provider_id: "31".to_owned(),
            address: None,
            extension: "mp4".to_owned(),
            facts,
            last_seen: None,
        }],
        completion: None,
        aliases: Vec::new(),
        created_at: 0,
        updated_at: 0,
    })?;
    Ok(())
}

async fn run(root: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let root = root.display().to_string();
    let all = [arguments, &["--data-dir", &root]].concat();
    Binary::start(&all).outcome().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_are_exported_by_command_whether_the_gateway_runs_or_not() {
    let (data, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = data.path().to_owned();
    let (code, output) = run(&root, &["user", "add", "kid"]).await;
    assert_eq!(code, Some(0), "{output}");
    let at = root.clone();
    let fill = move || {
        let store = Store::open(&at.join("store"), &at.join("key"), schema()).unwrap();
        store.write_blocking(put_titles).unwrap();
        store.close();
    };
    tokio::task::spawn_blocking(fill).await.unwrap();
    let folder = out.path().join("library");
    let target = folder.display().to_string();
    let export = ["export", "strm", &target, "--user", "kid", "--set", "public_url=https://tv.example"];

    let (code, output) = run(&root, &export[..5]).await;
    assert!(code == Some(1) && output.contains("public_url"), "{output}");
    let (code, output) = run(&root, &export).await;
    assert!(code == Some(0) && output.contains("wrote 3 files"), "{output}");
    let film = folder.join("Movies/Metropolis (1927)/Metropolis (1927).strm");
    let address = std::fs::read_to_string(&film).unwrap();
    assert!(
        address.starts_with("https://tv.example/movie/kid/") && address.ends_with("/5.mkv\n"),
        "{address}"
    );
    assert!(folder.join("Movies/-..-Escape (1981)").is_dir());
    assert!(folder.join("Series/Andor (2022)/Season 01/Andor S01E01 - Kassa.strm").is_file());
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1, "nothing is written elsewhere");

    let mut program = Binary::start(&["serve", "--data-dir", &root.display().to_string()]);
    program.address().await;
    std::fs::remove_file(&film).unwrap();
    let (code, output) = run(&root, &export).await;
    assert!(
        code == Some(0) && output.contains("wrote 1 files") && output.contains("2 unchanged"),
        "{output}"
    );
    assert_eq!(std::fs::read_to_string(&film).unwrap(), address);
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_and_series_reach_apps_over_the_player_port() {
    use crate::support::gateway::Setup;
    use crate::support::users::create_user;

    let gateway = Setup::new().list("#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:1/1.ts\n").start().await;
    gateway.change(put_titles).await;
    create_user(&gateway, "anna", |it| it.player_password = Some(Secret::new("remote"))).await;
    let login = "username=anna&password=remote";
    let api = Api::stranger_at(gateway.address);
    let get = async |query: &str| api.get(&format!("/player_api.php?{login}&{query}")).await;
    let films = get("action=get_vod_streams").await.body;
    let names: Vec<_> = films.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("Metropolis"), &json!("../../Escape")]);
    let info = get("action=get_series_info&series_id=7").await.body;
    assert_eq!(info["episodes"]["1"][0]["id"], "31");
    assert_eq!(get("action=get_vod_info&vod_id=99").await.status, 404);
    let list = api.get(&format!("/get.php?{login}&vod=all")).await;
    assert_eq!(list.status, 200);
}
