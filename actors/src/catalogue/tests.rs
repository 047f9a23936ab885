//! Imports of films and series, against a panel on a real socket that can lie.

use std::collections::HashMap;

use domain::account::{AccountProfile, PlaylistLocation};
use domain::egress::AllowedNetworks;
use domain::ids::ProfileId;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::vod::{AccountCategory, Episode, Title};
use serde_json::{Value, json};
use storage::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::fetch::FetchLimits;

const ACCOUNT: AccountId = AccountId(2);
/// Longer than any answer of a panel on this machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The answer of a panel to one question: the status, further header lines, and the body.
#[derive(Clone)]
enum Answer {
    Json(Value),
    Raw(String),
    Status(u16, &'static str),
    /// A list that never ends.
    Endless,
}

#[derive(Default)]
struct PanelState {
    answers: HashMap<String, Answer>,
    /// The questions, by action and id.
    asked: Vec<String>,
    n_open: usize,
    peak: usize,
}

struct Panel {
    address: String,
    state: Arc<Mutex<PanelState>>,
}

impl Panel {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(PanelState::default()));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = shared.clone();
                tokio::spawn(async move {
                    {
                        let mut state = state.lock();
                        state.n_open += 1;
                        state.peak = state.peak.max(state.n_open);
                    }
                    Self::serve(socket, &state).await;
                    state.lock().n_open -= 1;
                });
            }
        });
        Self { address, state }
    }

    async fn serve(mut socket: TcpStream, state: &Mutex<PanelState>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match socket.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let query = head.split(' ').nth(1).unwrap_or_default();
        let question = query.split_once("&action=").map_or("", |it| it.1).to_owned();
        let answer = {
            let mut state = state.lock();
            state.asked.push(question.clone());
            state.answers.get(&question).cloned()
        };
        let (status, headers, body) = match answer {
            None => (404, "", String::new()),
            Some(Answer::Json(value)) => (200, "Content-Type: application/json\r\n", value.to_string()),
            Some(Answer::Raw(body)) => (200, "Content-Type: text/html\r\n", body),
            Some(Answer::Status(status, headers)) => (status, headers, String::new()),
            Some(Answer::Endless) => {
                let mut piece = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[".to_owned();
                while socket.write_all(piece.as_bytes()).await.is_ok() {
                    piece = "{\"stream_id\":1},".repeat(64);
                }
                return;
            }
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let _ = socket.write_all(answer.as_bytes()).await;
        let _ = socket.shutdown().await;
    }

    fn says(&self, question: &str, answer: Value) {
        self.answers(question, Answer::Json(answer));
    }

    fn answers(&self, question: &str, answer: Answer) {
        self.state.lock().answers.insert(question.to_owned(), answer);
    }

    /// Returns the questions since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().asked)
    }

    fn peak(&self) -> usize {
        self.state.lock().peak
    }
}

struct Fixture {
    panel: Panel,
    models: Models,
    importer: VodImporter,
    stop: CancellationToken,
}

fn account(panel: &str, id: AccountId) -> Account {
    let login = PanelLogin {
        server: SourceUrl::new(format!("http://{panel}")),
        username: "anna".to_owned(),
        password: Secret::new("hunter2".to_owned()),
    };
    let profile = AccountProfile::default_of(ProfileId(id.0), "Default", 0);
    Account {
        allowed_networks: AllowedNetworks::Loopback,
        enable_vod: true,
        auto_enable_new_groups_vod: false,
        auto_enable_new_groups_series: false,
        ..Account::new(id, "Panel", PlaylistLocation::Panel(login), profile, 0)
    }
}

fn film(id: u32, name: &str, category: &str) -> Value {
    json!({ "stream_id": id, "name": name, "category_id": category, "container_extension": "mkv", "added": "1" })
}

fn series(id: u32, name: &str, modified: u32) -> Value {
    json!({ "series_id": id, "name": name, "category_id": "31", "last_modified": modified.to_string() })
}

fn episodes(numbers: &[u32]) -> Value {
    let all: Vec<Value> = numbers
        .iter()
        .map(|it| json!({ "id": format!("9{it}"), "episode_num": it, "title": "E", "container_extension": "mp4", "season": 1 }))
        .collect();
    json!({ "info": { "name": "Gamma", "plot": "P" }, "episodes": { "1": all } })
}

impl Fixture {
    async fn new(change: impl FnOnce(&mut Account) + Send + 'static) -> Self {
        Self::with(change, Duration::ZERO).await
    }

    async fn with(change: impl FnOnce(&mut Account) + Send + 'static, interval: Duration) -> Self {
        let panel = Panel::start().await;
        let mut own = account(&panel.address, ACCOUNT);
        change(&mut own);
        let models = tokio::task::spawn_blocking(move || {
            let store = Store::temporary(storage::records::schema()).unwrap();
            store.write_blocking(move |write| write.put(&own)).unwrap();
            Models::new(store).unwrap()
        });
        let models = models.await.unwrap();
        let stop = CancellationToken::new();
        let importer = VodImporter::new(stop.clone());
        let limits = FetchLimits { bytes_max: 1 << 20, ..FetchLimits::default() };
        // Fails at the second call.
        let _ = rustls::crypto::ring::default_provider().install_default();
        importer.start(models.clone(), Fetch::new(limits).unwrap(), interval);
        let fixture = Self { panel, models, importer, stop };
        let category =
            |id: &str, name: &str| json!({ "category_id": id, "category_name": name, "parent_id": 0 });
        fixture.panel.says("get_vod_categories", json!([category("21", "Action"), category("22", "Drama")]));
        fixture.panel.says("get_series_categories", json!([category("31", "Crime")]));
        let films = json!([film(1, "Heat (1995)", "21"), film(2, "Up (2009)", "22"), film(3, "Alone", "")]);
        fixture.panel.says("get_vod_streams", films.clone());
        fixture.panel.says("get_vod_streams&category_id=21", json!([films[0]]));
        fixture.panel.says("get_vod_streams&category_id=22", json!([films[1]]));
        let all = json!([series(7, "Gamma", 100), series(8, "Delta", 100)]);
        fixture.panel.says("get_series", all.clone());
        fixture.panel.says("get_series&category_id=31", all);
        fixture.panel.says("get_series_info&series_id=7", episodes(&[1, 2]));
        fixture.panel.says("get_series_info&series_id=8", episodes(&[1]));
        fixture.panel.says(
            "get_vod_info&vod_id=1",
            json!({ "info": { "plot": "Two men.", "duration_secs": "10200" }, "movie_data": { "stream_id": 1 } }),
        );
        fixture
    }

    /// Refreshes the account, and returns the result.
    async fn refresh(&self) -> VodRefreshStatus {
        self.refresh_with(false).await
    }

    async fn refresh_with(&self, confirm: bool) -> VodRefreshStatus {
        let VodRefreshStart::Started { job } = self.importer.refresh(ACCOUNT, confirm) else {
            panic!("it does not start")
        };
        self.until(async || {
            self.importer.progress_of(ACCOUNT).filter(|it| it.job == job && it.phase == VodPhase::Done)
        })
        .await
    }

    async fn until<R>(&self, condition: impl AsyncFn() -> Option<R>) -> R {
        let waiting = async {
            loop {
                if let Some(found) = condition().await {
                    return found;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.expect("it happens")
    }

    /// Enables these categories, by name.
    async fn enable(&self, names: &'static [&'static str]) {
        let categories = self.models.vod_categories.load();
        let wanted: Vec<_> =
            categories.iter().filter(|it| names.contains(&it.name.as_str())).map(|it| it.id).collect();
        let models = self.models.clone();
        tokio::task::spawn_blocking(move || {
            models.store.write_blocking(move |write| {
                for mut link in write.all::<AccountCategory>()? {
                    link.enabled = wanted.contains(&link.category);
                    write.put(&link)?;
                }
                Ok::<_, storage::Error>(())
            })
        })
        .await
        .unwrap()
        .unwrap();
        self.until(async || {
            let links = self.models.vod_account_categories.load();
            (links.iter().filter(|it| it.enabled).count() >= names.len()).then_some(())
        })
        .await;
    }

    /// Imports everything.
    async fn import_all(&self) {
        self.refresh().await;
        self.enable(&["Action", "Drama", "Crime", "Uncategorized"]).await;
        let done = self.refresh().await;
        assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::Success), "{done:?}");
        self.panel.asked();
    }

    async fn titles(&self) -> Vec<Title> {
        let models = self.models.clone();
        let read = move || {
            let mut all = Vec::new();
            models.vod.for_each(|it| all.push(it)).unwrap();
            all
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }

    /// Returns the names of the titles that are not stale, sorted.
    async fn names(&self) -> Vec<String> {
        let all = self.titles().await;
        let mut names: Vec<_> =
            all.iter().filter(|it| !it.is_stale()).map(|it| it.name().to_owned()).collect();
        names.sort();
        names
    }

    async fn title(&self, name: &str) -> Title {
        self.titles().await.into_iter().find(|it| it.name() == name).expect(name)
    }

    async fn episodes(&self, name: &str) -> Vec<Episode> {
        let (series, models) = (self.title(name).await.id, self.models.clone());
        tokio::task::spawn_blocking(move || models.vod.episodes_of(series).unwrap()).await.unwrap()
    }

    async fn open(&self, name: &str) -> OpenOutcome {
        self.importer.open(self.title(name).await.id, None, PATIENCE).await
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

const ALL: [&str; 5] = ["Alone", "Delta", "Gamma", "Heat (1995)", "Up (2009)"];

#[tokio::test]
async fn only_titles_of_enabled_categories_are_asked_for_and_imported() {
    let fixture = Fixture::new(|_| {}).await;
    let done = fixture.refresh().await;
    assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::Success), "{done:?}");
    assert_eq!(fixture.panel.asked(), ["get_vod_categories", "get_series_categories"]);
    assert!(fixture.titles().await.is_empty());
    let mut names: Vec<_> = fixture.models.vod_categories.load().iter().map(|it| it.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["Action", "Crime", "Drama", "Uncategorized", "Uncategorized"]);

    fixture.enable(&["Action", "Crime"]).await;
    fixture.refresh().await;
    let asked = [
        "get_vod_categories",
        "get_vod_streams&category_id=21",
        "get_series_categories",
        "get_series&category_id=31",
    ];
    assert_eq!(fixture.panel.asked(), asked);
    assert_eq!(fixture.names().await, ["Delta", "Gamma", "Heat (1995)"]);

    // Titles without a category are in no list but the whole one.
    fixture.enable(&["Action", "Uncategorized"]).await;
    fixture.refresh().await;
    let asked = ["get_vod_categories", "get_vod_streams", "get_series_categories", "get_series"];
    assert_eq!(fixture.panel.asked(), asked);
    assert!(fixture.names().await.contains(&"Alone".to_owned()));
    assert_eq!(fixture.panel.peak(), 1, "one question at a time");
}

#[tokio::test]
async fn new_categories_are_imported_if_the_account_says_so() {
    let fixture = Fixture::new(|it| it.auto_enable_new_groups_vod = true).await;
    fixture.refresh().await;
    assert_eq!(fixture.names().await, ["Alone", "Heat (1995)", "Up (2009)"]);
}

/// Holds T-sync.1.
#[tokio::test]
async fn an_answer_other_than_a_list_changes_nothing() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    assert_eq!(fixture.names().await, ALL);
    let links = fixture.models.vod_account_categories.load().len();
    let good = ["get_vod_categories", "get_vod_streams"]
        .map(|it| (it, fixture.panel.state.lock().answers[it].clone()));
    for question in ["get_vod_categories", "get_vod_streams"] {
        for answer in [
            Answer::Json(json!([])),
            Answer::Json(json!({})),
            Answer::Json(json!(null)),
            Answer::Json(json!(false)),
            Answer::Json(json!({ "user_info": { "auth": 0 } })),
            Answer::Raw("<!DOCTYPE html><html>Blocked</html>".to_owned()),
            Answer::Raw("[{\"stream_id\":1,\"name\":\"Heat (1995)\",\"category_id\":\"21\"},".to_owned()),
            Answer::Raw(format!("{}1", "[".repeat(100_000))),
            Answer::Raw(String::new()),
            Answer::Status(500, ""),
            Answer::Status(401, ""),
            Answer::Endless,
        ] {
            fixture.panel.answers(question, answer);
            let done = fixture.refresh().await;
            assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::Error), "{done:?}");
            assert!(!done.message.contains("hunter2") && done.message.contains(':'), "{}", done.message);
            assert_eq!(fixture.names().await, ALL, "{}", done.message);
        }
        good.iter().for_each(|(question, answer)| fixture.panel.answers(question, answer.clone()));
    }
    let stored = fixture.models.vod_account_categories.load();
    assert_eq!((stored.len(), stored.iter().filter(|it| it.enabled).count()), (links, links));
    let done = fixture.refresh().await;
    assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::Success), "{done:?}");
}

#[tokio::test]
async fn a_list_without_most_titles_waits_for_an_admin_and_missing_ones_become_stale() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    let only = json!([film(1, "Heat (1995)", "21")]);
    fixture.panel.says("get_vod_streams", only);
    let done = fixture.refresh().await;
    assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::AwaitingConfirmation), "{done:?}");
    assert_eq!(fixture.names().await, ALL);
    let done = fixture.refresh_with(true).await;
    assert_eq!(done.outcome, Some(domain::account::RefreshOutcome::Success), "{done:?}");
    assert_eq!(fixture.names().await, ["Delta", "Gamma", "Heat (1995)"]);
    assert_eq!(fixture.titles().await.len(), 5, "they are kept for some days");
}

#[tokio::test]
async fn broken_elements_are_counted_and_spoil_no_other() {
    let fixture = Fixture::new(|it| it.auto_enable_new_groups_vod = true).await;
    let list = "Warning: x in a.php\n[{\"stream_id\":1,\"name\":\"Heat (1995)\",\"category_id\":21},{oops},null,\
        {\"name\":\"no id\"},{\"stream_id\":\"2\",\"name\":[\"Up (2009)\"],\"category_ids\":\"[22]\",\"rating\":{}}]";
    fixture.panel.answers("get_vod_streams", Answer::Raw(list.to_owned()));
    let done = fixture.refresh().await;
    assert_eq!(fixture.names().await, ["Heat (1995)", "Up (2009)"], "{}", done.message);
    assert!(done.message.contains("3 left out"), "{}", done.message);
}

#[tokio::test]
async fn details_are_loaded_when_a_film_is_opened_and_kept() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    assert_eq!(fixture.open("Heat (1995)").await, OpenOutcome::Loaded);
    assert_eq!(fixture.panel.asked(), ["get_vod_info&vod_id=1"]);
    let film = fixture.title("Heat (1995)").await;
    assert_eq!(film.description(), Some("Two men."));
    assert_eq!(fixture.open("Heat (1995)").await, OpenOutcome::Loaded);
    assert_eq!(fixture.panel.asked(), [""; 0], "they are young");
    // A refresh of the list keeps them.
    fixture.refresh().await;
    assert_eq!(fixture.title("Heat (1995)").await.description(), Some("Two men."));

    fixture.panel.answers("get_vod_info&vod_id=2", Answer::Raw("<html>no</html>".to_owned()));
    fixture.panel.asked();
    for _ in 0..3 {
        let OpenOutcome::Failed(message) = fixture.open("Up (2009)").await else { panic!("it fails") };
        assert!(message.contains("web page"), "{message}");
    }
    assert_eq!(fixture.panel.asked(), ["get_vod_info&vod_id=2"], "not asked again at once");
    let unknown = TitleId::movie(9_999).unwrap();
    assert_eq!(fixture.importer.open(unknown, None, PATIENCE).await, OpenOutcome::NoSuchTitle);
}

#[tokio::test]
async fn episodes_are_loaded_when_a_series_is_opened_and_again_when_it_changed() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    assert_eq!(fixture.episodes("Gamma").await.len(), 0);
    assert_eq!(fixture.open("Gamma").await, OpenOutcome::Loaded);
    assert_eq!(fixture.episodes("Gamma").await.len(), 2);
    assert_eq!(fixture.open("Gamma").await, OpenOutcome::Loaded);
    assert_eq!(fixture.panel.asked(), ["get_series_info&series_id=7"]);

    // The list announces new episodes of both; only those of the series that was opened are loaded.
    fixture.panel.says("get_series", json!([series(7, "Gamma", 200), series(8, "Delta", 200)]));
    fixture
        .panel
        .says("get_series&category_id=31", json!([series(7, "Gamma", 200), series(8, "Delta", 200)]));
    fixture.panel.says("get_series_info&series_id=7", episodes(&[1, 2, 3]));
    fixture.refresh().await;
    fixture.until(async || (fixture.episodes("Gamma").await.len() == 3).then_some(())).await;
    assert!(!fixture.panel.asked().contains(&"get_series_info&series_id=8".to_owned()));

    // An empty answer removes none.
    fixture
        .panel
        .says("get_series&category_id=31", json!([series(7, "Gamma", 300), series(8, "Delta", 300)]));
    fixture.panel.says("get_series", json!([series(7, "Gamma", 300), series(8, "Delta", 300)]));
    fixture.panel.says("get_series_info&series_id=7", json!({ "info": {}, "episodes": [] }));
    fixture.refresh().await;
    fixture
        .until(async || {
            fixture.panel.asked().contains(&"get_series_info&series_id=7".to_owned()).then_some(())
        })
        .await;
    assert!(matches!(fixture.open("Gamma").await, OpenOutcome::Failed(_)));
    assert_eq!(fixture.episodes("Gamma").await.iter().filter(|it| !it.is_stale()).count(), 3);
}

#[tokio::test]
async fn all_episodes_are_loaded_if_the_account_says_so_one_question_at_a_time() {
    let fixture = Fixture::new(|it| it.load_all_episodes = true).await;
    fixture.refresh().await;
    fixture.enable(&["Crime"]).await;
    fixture.refresh().await;
    let n = async |name| fixture.episodes(name).await.len();
    fixture.until(async || (n("Gamma").await == 2 && n("Delta").await == 1).then_some(())).await;
    fixture.until(async || fixture.importer.episode_loads().is_empty().then_some(())).await;
    assert_eq!(fixture.panel.peak(), 1);
}

#[tokio::test]
async fn a_panel_that_asks_to_wait_is_left_alone() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    fixture.panel.answers("get_series_info&series_id=7", Answer::Status(429, "Retry-After: 3600\r\n"));
    let OpenOutcome::Postponed(wait) = fixture.open("Gamma").await else { panic!("it is refused") };
    assert!(wait > Duration::from_secs(3000), "{wait:?}");
    assert_eq!(fixture.panel.asked().len(), 1);
    // Nothing else is asked either.
    let film = fixture.title("Heat (1995)").await.id;
    let seen = fixture.importer.open(film, None, Duration::from_secs(1)).await;
    assert!(matches!(seen, OpenOutcome::Postponed(_)), "{seen:?}");
    assert!(matches!(fixture.importer.refresh(ACCOUNT, false), VodRefreshStart::Started { .. }));
    assert!(matches!(fixture.importer.refresh(ACCOUNT, false), VodRefreshStart::AlreadyRunning { .. }));
    assert_eq!(fixture.panel.asked(), [""; 0]);
}

#[tokio::test]
async fn many_viewers_of_one_title_cause_one_question() {
    let fixture = Arc::new(Fixture::new(|_| {}).await);
    fixture.import_all().await;
    let series = fixture.title("Gamma").await.id;
    let viewers: Vec<_> = (0..20)
        .map(|_| {
            let fixture = fixture.clone();
            tokio::spawn(async move { fixture.importer.open(series, None, PATIENCE).await })
        })
        .collect();
    for viewer in viewers {
        assert_eq!(viewer.await.unwrap(), OpenOutcome::Loaded);
    }
    assert_eq!(fixture.panel.asked(), ["get_series_info&series_id=7"]);
    assert_eq!(fixture.panel.peak(), 1);
}

#[tokio::test]
async fn an_account_without_a_panel_or_without_the_wish_is_not_asked() {
    let fixture = Fixture::new(|it| it.enable_vod = false).await;
    assert_eq!(fixture.importer.refresh(ACCOUNT, false), VodRefreshStart::NotWanted);
    assert_eq!(fixture.importer.refresh(AccountId(9), false), VodRefreshStart::NoSuchAccount);
    let fixture = Fixture::new(|it| it.list = PlaylistLocation::None).await;
    assert_eq!(fixture.importer.refresh(ACCOUNT, false), VodRefreshStart::NoPanel);
    let fixture = Fixture::new(|it| it.is_active = false).await;
    assert_eq!(fixture.importer.refresh(ACCOUNT, false), VodRefreshStart::Inactive);
    assert_eq!(fixture.panel.asked(), [""; 0]);
}

impl Fixture {
    async fn update(&self, names: &[&str]) -> (DetailsUpdate, usize) {
        let mut titles = Vec::new();
        for name in names {
            titles.push(self.title(name).await.id);
        }
        match self.importer.update_details(titles).await.unwrap() {
            DetailsUpdateStart::Started { update, n_titles } => (update, n_titles),
            DetailsUpdateStart::Busy => panic!("no other update runs"),
        }
    }

    /// Waits for the end of an update.
    async fn updated(&self, job: Uuid) -> DetailsUpdate {
        self.until(async || self.importer.updates().into_iter().find(|it| it.job == job && it.is_done()))
            .await
    }
}

#[tokio::test]
async fn details_of_many_titles_are_updated_on_request_though_they_are_young() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    assert_eq!(fixture.open("Heat (1995)").await, OpenOutcome::Loaded);
    assert_eq!(fixture.open("Gamma").await, OpenOutcome::Loaded);
    fixture.panel.asked();
    fixture.panel.says("get_vod_info&vod_id=1", json!({ "info": { "plot": "Another." }, "movie_data": {} }));
    fixture.panel.says("get_series_info&series_id=7", episodes(&[1, 2, 3]));

    // The panel does not know the second film.
    let (update, n_titles) = fixture.update(&["Heat (1995)", "Up (2009)", "Gamma"]).await;
    assert_eq!((update.n_questions, n_titles), (3, 3));
    let done = fixture.updated(update.job).await;
    assert_eq!((done.n_done, done.n_failed, done.n_left()), (2, 1, 0), "{done:?}");
    assert!(done.message.contains("404") && !done.message.contains("hunter2"), "{}", done.message);
    assert_eq!(
        fixture.panel.asked(),
        ["get_vod_info&vod_id=1", "get_vod_info&vod_id=2", "get_series_info&series_id=7"]
    );
    assert_eq!(fixture.title("Heat (1995)").await.description(), Some("Another."));
    assert_eq!(fixture.episodes("Gamma").await.len(), 3);
    assert_eq!(fixture.panel.peak(), 1, "one question at a time");
}

#[tokio::test]
async fn an_update_of_details_obeys_a_panel_that_asks_to_wait_and_ends_with_the_account() {
    let fixture = Fixture::new(|_| {}).await;
    fixture.import_all().await;
    let refusal = Answer::Status(429, "Retry-After: 3600\r\n");
    fixture.panel.answers("get_vod_info&vod_id=1", refusal);
    let (first, _) = fixture.update(&["Heat (1995)", "Up (2009)"]).await;
    fixture.until(async || (!fixture.panel.asked().is_empty()).then_some(())).await;
    // A title that waits already is not asked for twice.
    let (second, n_titles) = fixture.update(&["Up (2009)"]).await;
    assert_eq!((second.n_questions, second.is_done(), n_titles), (0, true, 1));
    fixture
        .until(async || {
            let postponed = fixture.importer.with(ACCOUNT, |it| it.pace.refused_for(Instant::now()));
            (!postponed.is_zero()).then_some(())
        })
        .await;
    assert!(fixture.panel.asked().is_empty());
    let models = fixture.models.clone();
    let remove = move || models.store.write_blocking(|write| write.remove::<Account>(ACCOUNT.0));
    tokio::task::spawn_blocking(remove).await.unwrap().unwrap();
    fixture.until(async || fixture.models.accounts.load().get(ACCOUNT.0).is_none().then_some(())).await;
    fixture.importer.check().await;
    let done = fixture.updated(first.job).await;
    assert_eq!((done.n_done, done.n_failed), (0, 2), "{done:?}");
}
