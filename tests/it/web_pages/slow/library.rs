//! The library: films in a grid, found, opened and played with seeking, and who watches them.

use std::path::Path;

use domain::account::Account;
use domain::ids::{AccountId, VodCategoryId};
use domain::source_url::SourceUrl;
use domain::user::UserLevel;
use domain::vod::{
    AccountCategory, Relation, RelationId, Title, TitleFacts, TitleId, TitleKind, VodCategory, uuid_of,
};
use serde_json::{Value, json};

use crate::support::client::{Request, fetch};
use crate::support::files::FileProvider;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::tools;
use crate::support::web::{Web, person};
use crate::web_pages::page::Page;

const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";
/// The position that the page shows for a transport stream, in seconds.
const POSITION: &str = "return Number(document.querySelector('input[type=range]')?.value ?? 0)";
const TITLES: &str =
    "return [...document.querySelectorAll('main ul li a .name')].map((it) => it.textContent)";
const DRAMA: VodCategoryId = VodCategoryId(901);
const FILMS: [(u32, &str, u16); 3] = [(1, "Metropolis", 1927), (2, "Ronin", 1998), (3, "Zodiac", 2007)];

/// A gateway with three films on an account with one slot: an MP4 file, a transport stream, and a Matroska file.
struct Cinema {
    gateway: TestGateway,
    providers: Vec<FileProvider>,
}

/// Makes a minute of pictures and sound, once per target directory.
pub(super) async fn film(extension: &str) -> Vec<u8> {
    let path = tools::clips().join(format!("film.{extension}"));
    if !path.exists() {
        // Two tests may make it at the same time; the last rename wins and both files are equal.
        let draft = tools::clips().join(format!("film.{}.draft.{extension}", uuid::Uuid::new_v4()));
        let text = draft.to_string_lossy().into_owned();
        let mut arguments = vec!["-hide_banner", "-loglevel", "error", "-y"];
        arguments.extend(["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"]);
        arguments.extend(["-t", "60", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50"]);
        arguments.extend(["-pix_fmt", "yuv420p", "-c:a", "aac"]);
        // Too large to be read ahead as a whole, so that it is still being read while it is watched.
        if extension == "ts" {
            arguments.extend(["-muxrate", "6M"]);
        }
        arguments.push(&text);
        tools::text_of("ffmpeg", &arguments).await;
        std::fs::rename(&draft, &path).expect("the target directory can be written");
    }
    std::fs::read(Path::new(&path)).expect("the film can be read")
}

fn title(account: AccountId, id: TitleId, name: &str, year: u16, url: String) -> Title {
    let mut relation =
        Relation::new(RelationId(100 + id.number()), account, DRAMA, id.number().to_string(), 0);
    relation.extension = url.rsplit('.').next().unwrap_or_default().to_owned();
    relation.facts = TitleFacts { name: name.to_owned(), year: Some(year), ..TitleFacts::default() };
    relation.address = Some(SourceUrl::new(url));
    Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), u128::from(id.key()) << 64), 0) }
}

impl Cinema {
    async fn open() -> Cinema {
        let mut providers = Vec::new();
        for extension in ["mp4", "ts", "mkv"] {
            providers.push(FileProvider::start(film(extension).await).await);
        }
        let list = format!("#EXTM3U\n#EXTINF:-1,Live\n{}\n", providers[0].url("/live/1.ts"));
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let account = gateway.catalogue.accounts[0].id;
        let urls = ["/film.mp4", "/film.ts", "/film.mkv"];
        let titles: Vec<Title> = FILMS
            .iter()
            .zip(providers.iter().zip(urls))
            .map(|((id, name, year), (provider, path))| {
                let id = TitleId::movie(*id).expect("a small id");
                title(account, id, name, *year, provider.url(path))
            })
            .collect();
        gateway
            .change(move |write| {
                let own = write.get::<Account>(account.0)?.expect("the account of the list");
                write.put(&Account { enable_vod: true, ..own })?;
                write.put(&VodCategory { id: DRAMA, name: "Drama".to_owned(), kind: TitleKind::Movie })?;
                write.put(&AccountCategory {
                    id: 1,
                    account,
                    category: DRAMA,
                    kind: TitleKind::Movie,
                    provider_ids: vec!["1".to_owned()],
                    enabled: true,
                    custom_properties: serde_json::Map::new(),
                    last_seen: None,
                })?;
                titles.iter().try_for_each(|it| write.put(it))
            })
            .await;
        Cinema { gateway, providers }
    }

    /// Opens a path as a new user.
    async fn page(&self, name: &str, level: UserLevel, path: &str) -> Page {
        let user = person(&self.gateway, name, level).await;
        Page::new(Web::signed_in(&self.gateway, &user, path).await)
    }
}

/// Waits until the value of a script is above a number.
async fn passes(page: &Page, what: &str, script: &str, seconds: f64) {
    page.until(what, script, |it: &Value| it.as_f64().is_some_and(|it| it > seconds)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_finds_films_and_plays_them_with_seeking_over_one_connection() {
    let cinema = Cinema::open().await;
    let page = cinema.page("kid", UserLevel::Streamer, "/library").await;
    page.until_is("three films", TITLES, json!(["Metropolis", "Ronin", "Zodiac"])).await;
    page.chooses("Order", "Newest first").await;
    page.until_is("another order", TITLES, json!(["Zodiac", "Ronin", "Metropolis"])).await;
    page.fills("Search films and series", "metro").await;
    page.until_is("one film", TITLES, json!(["Metropolis"])).await;

    // An MP4 file: the browser seeks by itself.
    page.browser().clicks("main ul li a").await;
    page.shows("1927").await;
    page.presses("Play").await;
    passes(&page, "a film that moves", TIME, 1.0).await;
    page.browser().script("document.querySelector('video').currentTime = 40").await;
    passes(&page, "a film that moves after a seek", TIME, 41.0).await;
    assert_eq!(cinema.providers[0].peak(), 1);

    // The way back keeps the filters, and the player gives its connection back.
    page.presses("All titles").await;
    page.until_is("one film", TITLES, json!(["Metropolis"])).await;
    page.web.opens("/library/movie-2").await;
    page.presses("Play").await;
    passes(&page, "a transport stream that moves", TIME, 1.0).await;
    let seek = "const it = document.querySelector('input[type=range]');
        it.value = 40;
        for (const name of ['input', 'change']) it.dispatchEvent(new Event(name, { bubbles: true }));";
    page.browser().script(seek).await;
    passes(&page, "a transport stream that moves after a seek", POSITION, 41.0).await;
    assert_eq!(cinema.providers[1].peak(), 1);

    page.web.opens("/library/movie-3?play=film").await;
    page.shows("This browser cannot play files of the kind Matroska (MKV).").await;

    // The playlist has an address that plays it elsewhere, with the password for player apps.
    let (name, playlist) = page.browser().saves(page.presses("Open in another player")).await;
    let playlist = String::from_utf8(playlist).unwrap();
    assert!(name == "title.m3u" && playlist.starts_with("#EXTM3U\n#EXTINF:-1,Zodiac\n"), "{name} {playlist}");
    let address = playlist.lines().last().unwrap();
    assert!(address.contains("/movie/kid/") && address.ends_with("/3.mkv"), "{address}");
    let path = &address[address.find("/movie/").unwrap()..];
    let whole = fetch(cinema.gateway.address, Request::head(path)).await;
    assert_eq!((whole.status(), whole.header("content-type")), (200, Some("video/x-matroska")));
    page.web.is_clean().await;
}

/// Stories beside the one that CI plays.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_sees_who_watches_a_film_and_disconnects_the_player() {
        let cinema = Cinema::open().await;
        // A browser reads a file as fast as it can, and what was read completely plays without the gateway.
        cinema.providers[1].slow_after(12 << 20);
        let page = cinema.page("root", UserLevel::Admin, "/library/movie-2?play=film").await;
        passes(&page, "a film that moves", TIME, 0.5).await;
        let admin = person(&cinema.gateway, "other", UserLevel::Admin).await;
        let now = Page::new(Web::signed_in(&cinema.gateway, &admin, "/now").await);
        now.shows("Films and series").await;
        now.shows("Ronin").await;
        now.presses("Disconnect root").await;
        now.shows("was disconnected").await;
        now.web.is_clean().await;
    }
}
