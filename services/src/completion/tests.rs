//! Runs against a pretend catalogue, which answers as the real one documents, or lies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actors::{Fetch, FetchLimits};
use domain::core_settings::COMPLETION_SETTINGS;
use domain::ids::{AccountId, EpisodeId, VodCategoryId};
use domain::setting::CoreSetting;
use domain::vod::{
    Episode, EpisodeFacts, EpisodeOffer, ExternalIds, Relation, RelationId, Title, TitleFacts, TitleId,
    uuid_of,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use storage::{Models, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const TOKEN: &str = "eyJh.eyJz.c2ln";
const DELAYS: Delays = Delays { between: Duration::ZERO, after_failure: Duration::from_millis(1) };

/// An answer that is not the documented one.
#[derive(Clone)]
enum Lie {
    /// Status line and headers, and the body.
    Answer(&'static str, String),
    /// Accepts the request and never answers.
    Silence,
}

/// The pretend catalogue.
#[derive(Clone)]
struct Catalogue {
    address: String,
    /// Paths and queries of all requests.
    requests: Arc<Mutex<Vec<String>>>,
    /// Answers to the next requests.
    lies: Arc<Mutex<VecDeque<Lie>>>,
}

impl Catalogue {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/3", listener.local_addr().unwrap());
        let catalogue = Self { address, requests: Arc::default(), lies: Arc::default() };
        let server = catalogue.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(server.clone().serve(socket));
            }
        });
        catalogue
    }

    async fn serve(self, mut socket: TcpStream) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut piece = [0; 4096];
            match socket.read(&mut piece).await {
                Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                _ => return,
            }
        }
        let text = String::from_utf8_lossy(&request);
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_known = path.contains(&format!("api_key={KEY}"))
            || text.to_ascii_lowercase().contains(&format!("bearer {}", TOKEN.to_ascii_lowercase()));
        self.requests.lock().push(path.clone());
        let lie = self.lies.lock().pop_front();
        let (head, body) = match lie {
            Some(Lie::Silence) => return std::future::pending().await,
            Some(Lie::Answer(head, body)) => (head, body),
            None if !is_known => ("HTTP/1.1 401 Unauthorized", r#"{"status_code":7}"#.to_owned()),
            None => match truth(&path) {
                Some(answer) => ("HTTP/1.1 200 OK", answer.to_string()),
                None => ("HTTP/1.1 404 Not Found", r#"{"status_code":34}"#.to_owned()),
            },
        };
        let answer = format!("{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let _ = socket.write_all(answer.as_bytes()).await;
    }

    fn lie(&self, lies: &[Lie]) {
        self.lies.lock().extend(lies.iter().cloned());
    }

    fn n_requests(&self) -> usize {
        self.requests.lock().len()
    }
}

fn truth(path: &str) -> Option<Value> {
    let (path, query) = path.split_once('?')?;
    let heat = json!({
        "id": 949, "title": "Heat", "original_title": "Heat", "release_date": "1995-12-15", "overview": "A thief.",
        "vote_average": 7.9, "vote_count": 7000, "poster_path": "/h.jpg", "backdrop_path": "/b.jpg",
        "imdb_id": "tt0113277",
    });
    let andor = json!({
        "id": 83867, "name": "Andor", "original_name": "Andor", "first_air_date": "2022-09-21",
        "external_ids": { "imdb_id": "tt9253284" },
    });
    let twin = json!({ "id": 1, "title": "Twin", "original_title": "Twin", "release_date": "2001-01-01" });
    let page = |results: &[&Value]| json!({ "page": 1, "results": results, "total_pages": 1 });
    Some(match path.strip_prefix("/3/")? {
        "configuration" => json!({ "images": { "secure_base_url": "https://image.example/t/p/" } }),
        "search/movie" if query.contains("query=heat") && query.contains("year=1995") => page(&[&heat]),
        "search/movie" if query.contains("query=twin") => {
            page(&[&twin, &json!({ "id": 2, "title": "Twin", "release_date": "2001-05-05" })])
        }
        "search/tv" if query.contains("query=andor") => page(&[&andor]),
        "search/movie" | "search/tv" => page(&[]),
        "movie/949" => heat,
        "tv/83867" => andor,
        "tv/83867/season/1" => json!({ "episodes": [
            { "id": 5, "episode_number": 1, "name": "Kassa", "overview": "A search.", "air_date": "2022-09-21" },
            { "id": 6, "episode_number": 2, "name": "That Would Be Me" },
        ] }),
        _ => return None,
    })
}

fn relation(id: u32, name: &str, tmdb: Option<&str>, year: Option<u16>) -> Relation {
    let new = Relation::new(RelationId(id), AccountId(id), VodCategoryId(1), id.to_string(), 0);
    let ids = ExternalIds { tmdb: tmdb.map(str::to_owned), imdb: None };
    Relation { facts: TitleFacts { name: name.to_owned(), year, ids, ..TitleFacts::default() }, ..new }
}

fn title(id: TitleId, relation: Relation) -> Title {
    Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), 7 << 64), 0) }
}

fn film(number: u32) -> TitleId {
    TitleId::movie(number).unwrap()
}

fn episode(id: u32, number: u32) -> Episode {
    let offer = EpisodeOffer {
        account: AccountId(25),
        relation: RelationId(25),
        provider_id: id.to_string(),
        address: None,
        extension: String::new(),
        facts: EpisodeFacts { name: format!("Andor S01E{number:02}"), ..EpisodeFacts::default() },
        last_seen: None,
    };
    Episode {
        id: EpisodeId(id),
        uuid: uuid_of(id, 3 << 64),
        series: TitleId::series(9).unwrap(),
        season: 1,
        number,
        offers: vec![offer],
        completion: None,
        aliases: Vec::new(),
        created_at: 0,
        updated_at: 0,
    }
}

/// The films 1 and 2, which are the same, 3 of which there are two, 4 that is unknown, and the series 9.
async fn library(catalogue: &Catalogue, key: &str, titles: Vec<Title>) -> (Models, Completions) {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Store::temporary(storage::records::schema()).unwrap();
    let value = json!({
        "completion_enabled": true, "tmdb_api_key": key, "tmdb_address": catalogue.address,
    });
    let setting = CoreSetting { id: 1, key: COMPLETION_SETTINGS.to_owned(), name: String::new(), value };
    let written = store.write(move |write| {
        write.put(&setting)?;
        [episode(1, 1), episode(2, 2)].iter().try_for_each(|it| write.put(it))?;
        titles.iter().try_for_each(|it| write.put(it))
    });
    written.await.unwrap();
    let models = spawn_blocking(move || Models::new(store).unwrap()).await.unwrap();
    let fetch = Fetch::new(FetchLimits::default()).unwrap();
    (models.clone(), Completions::with_delays(models, fetch, DELAYS))
}

fn some_titles() -> Vec<Title> {
    vec![
        title(film(1), relation(21, "EN - Heat (1995) 4K", None, None)),
        title(film(2), relation(22, "Hitze", Some("949"), None)),
        title(film(3), relation(23, "Twin", None, Some(2001))),
        title(film(4), relation(24, "Home video", None, Some(1990))),
        title(TitleId::series(9).unwrap(), relation(25, "Andor (2022)", None, None)),
    ]
}

/// Runs to the end.
async fn run(completions: &Completions, titles: Option<Vec<TitleId>>) -> CompletionProgress {
    completions.start(titles).unwrap();
    completions.0.ended.notified().await;
    completions.progress()
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_are_completed_once_and_those_with_the_same_id_are_joined() {
    let catalogue = Catalogue::start().await;
    let (models, completions) = library(&catalogue, KEY, some_titles()).await;
    let ended = run(&completions, None).await;
    assert_eq!((ended.n_found, ended.n_ambiguous, ended.n_unknown, ended.n_failed), (3, 1, 1, 0));
    assert_eq!((ended.n_joined, &*ended.message, ended.is_running), (1, "", false));
    let heat = models.vod.get(film(2)).unwrap().unwrap();
    assert_eq!((heat.id, heat.relations.len()), (film(1), 2), "the films of two accounts are one");
    assert_eq!((heat.name(), heat.year(), heat.rating()), ("Heat", Some(1995), Some("7.9")));
    assert_eq!((heat.tmdb_id(), heat.imdb_id()), (Some("949"), Some("tt0113277")));
    assert_eq!(heat.logo(), Some("https://image.example/t/p/w500/h.jpg"));
    assert_eq!(heat.stated_name(), "EN - Heat (1995) 4K", "the value of the account is kept");
    let twin = models.vod.get(film(3)).unwrap().unwrap();
    assert_eq!((twin.name(), twin.tmdb_id()), ("Twin", None), "a wrong film is worse than none");
    let series = TitleId::series(9).unwrap();
    let episodes = models.vod.episodes_of(series).unwrap();
    assert_eq!(episodes.iter().map(Episode::name).collect::<Vec<_>>(), ["Kassa", "That Would Be Me"]);
    assert_eq!(
        run(&completions, None).await.n_titles,
        1,
        "the joined film has the id that one account states"
    );
    let n_requests = catalogue.n_requests();
    assert_eq!(run(&completions, None).await.n_titles, 0, "all have an answer");
    assert_eq!(catalogue.n_requests(), n_requests);
    assert_eq!(run(&completions, Some(vec![series])).await.n_found, 1, "an admin asks again");
    assert!(catalogue.n_requests() > n_requests);
    assert_eq!(completions.remove_all().await.unwrap().unwrap(), 4);
    let heat = models.vod.get(film(1)).unwrap().unwrap();
    assert_eq!((heat.name(), heat.logo()), ("EN - Heat (1995) 4K", None));
    assert_eq!(models.vod.episodes_of(series).unwrap()[0].name(), "Andor S01E01");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_tried_again_and_a_lie_costs_only_its_title() {
    let catalogue = Catalogue::start().await;
    let titles = vec![
        title(film(1), relation(21, "Heat", Some("949"), None)),
        title(film(2), relation(22, "Hitze", Some("949"), None)),
    ];
    let (models, completions) = library(&catalogue, KEY, titles).await;
    let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0";
    let (broken, ok) = ("HTTP/1.1 500 Internal Server Error", "HTTP/1.1 200 OK");
    catalogue.lie(&[Lie::Answer(busy, String::new()), Lie::Answer(broken, String::new())]);
    let ended = run(&completions, None).await;
    assert_eq!((ended.n_found, ended.n_failed), (2, 0), "{}", ended.message);
    let long = "[".repeat(5 << 20);
    for lie in [
        Lie::Answer(ok, String::new()),
        Lie::Answer(ok, "<html>blocked</html>".to_owned()),
        Lie::Answer(ok, r#"{"id":"949","title":7}"#.to_owned()),
        Lie::Answer("HTTP/1.1 200 OK\r\nContent-Type: image/png", "\u{1}\u{2}".to_owned()),
        Lie::Answer(ok, long),
    ] {
        let truth = Lie::Answer(ok, truth("/3/configuration?").unwrap().to_string());
        catalogue.lie(&[truth, lie]);
        let ended = run(&completions, Some(vec![film(1), film(1)])).await;
        assert_eq!((ended.n_found, ended.n_failed), (1, 1), "{}", ended.message);
        assert!(!ended.message.is_empty() && !ended.message.contains(KEY), "{}", ended.message);
        assert_eq!(models.vod.get(film(1)).unwrap().unwrap().name(), "Heat", "what was known stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_or_a_long_pause_ends_the_run_without_showing_the_key() {
    let catalogue = Catalogue::start().await;
    let (models, completions) = library(&catalogue, "wrong-k3y", some_titles()).await;
    let ended = run(&completions, None).await;
    assert_eq!((&*ended.message, catalogue.n_requests()), ("TMDB refuses the key", 1));
    assert!(models.vod.get(film(1)).unwrap().unwrap().completion.is_none());
    let (_, completions) = library(&catalogue, TOKEN, some_titles()).await;
    let pause = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600";
    catalogue.lie(&[Lie::Answer(pause, String::new())]);
    assert_eq!(run(&completions, None).await.message, "TMDB asks to wait 3600 s");
    let ended = run(&completions, None).await;
    assert_eq!(ended.n_found, 3, "a token of version 4 is sent in a header: {}", ended.message);
    assert!(catalogue.requests.lock().iter().all(|it| !it.contains(TOKEN)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_stopped_and_the_next_one_continues() {
    let catalogue = Catalogue::start().await;
    let (_, completions) = library(&catalogue, KEY, some_titles()).await;
    let answer = |path: &str| Lie::Answer("HTTP/1.1 200 OK", truth(path).unwrap().to_string());
    // The first title is answered, the second one never.
    catalogue.lie(&[
        answer("/3/configuration?"),
        answer("/3/search/movie?query=heat&primary_release_year=1995"),
        answer("/3/movie/949?"),
        Lie::Silence,
    ]);
    completions.start(None).unwrap();
    assert_eq!(completions.start(None), Err(CompletionRefusal::Busy));
    while catalogue.n_requests() < 4 {
        tokio::task::yield_now().await;
    }
    assert!(completions.stop());
    completions.0.ended.notified().await;
    let stopped = completions.progress();
    assert_eq!((stopped.n_found, &*stopped.message), (1, "the completion was stopped"));
    assert!(!completions.stop());
    let ended = run(&completions, None).await;
    assert_eq!(ended.n_titles, 4, "the first title is not asked for again");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_unless_it_is_turned_on_with_a_key_and_an_import_starts_it() {
    let catalogue = Catalogue::start().await;
    let (models, completions) = library(&catalogue, "", some_titles()).await;
    assert_eq!(completions.start(None), Err(CompletionRefusal::NoKey));
    let set = async |value: Value| {
        let setting = CoreSetting { id: 1, key: COMPLETION_SETTINGS.to_owned(), name: String::new(), value };
        models.store.write(move |write| write.put(&setting)).await.unwrap();
    };
    set(json!({ "tmdb_api_key": KEY, "tmdb_address": catalogue.address })).await;
    let mut settings = models.store.changes();
    let following = tokio::spawn(completions.clone().follow());
    set(json!({ "tmdb_api_key": KEY, "tmdb_address": catalogue.address, "completion_enabled": true })).await;
    assert!(settings.next_in(CoreSetting::COLLECTION).await);
    while completions.progress().ended_at.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(completions.progress().n_found, 3);
    following.abort();
}
