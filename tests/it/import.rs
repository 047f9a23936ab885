//! Playlists become streams: what stays, what goes, and what no provider can spoil.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actors::{Fetch, FetchLimits, ImportError, ImportOptions, Imported, Phase, Progress, import};
use domain::account::{Account, AccountProfile, Identity, List, Outcome, Refresh, Rule, RuleField};
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{AccountId, ChannelId, GroupId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Headers, Stream};
use flate2::{Compression, write::GzEncoder};
use parking_lot::Mutex;
use storage::{Error, Ids, Models, News, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// When the stories begin.
const START: i64 = 1_900_000_000_000;
/// So many new or changed streams are more than an ordinary write takes.
const MANY: usize = 2_600;

/// A server that answers every request with the same bytes, whatever they are.
struct ListServer {
    url: String,
    answer: Arc<Mutex<(Vec<u8>, After)>>,
    heads: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum After {
    Close,
    /// The connection stays and nothing comes any more.
    Hold,
}

impl ListServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/get.php?username=anna&password=hunter2", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new((Vec::new(), After::Close)));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (answers, seen) = (answer.clone(), heads.clone());
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (answers, seen) = (answers.clone(), seen.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = socket.read_u8().await else { return };
                        head.push(byte);
                    }
                    seen.lock().push(String::from_utf8(head).unwrap());
                    let (bytes, after) = answers.lock().clone();
                    // A client that has read enough closes.
                    let _ = socket.write_all(&bytes).await;
                    if after == After::Hold {
                        let _ = socket.read_u8().await;
                    }
                });
            }
        });
        Self { url, answer, heads }
    }

    fn raw(&self, bytes: impl Into<Vec<u8>>, after: After) {
        *self.answer.lock() = (bytes.into(), after);
    }

    fn body(&self, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
                .into_bytes();
        answer.extend_from_slice(body);
        self.raw(answer, After::Close);
    }
}

/// A store with accounts whose lists one server has.
struct House {
    models: Models,
    fetch: Fetch,
    server: ListServer,
}

/// The account of most stories, and another one.
const A: AccountId = AccountId(2);
const B: AccountId = AccountId(3);

impl House {
    async fn new() -> Self {
        let models = blocking(|| {
            let store = Store::temporary(storage::records::schema()).unwrap();
            storage::begin(&store).unwrap();
            Models::of(store).unwrap()
        })
        .await;
        headwater::install_tls();
        let limits = FetchLimits { read_timeout: Duration::from_millis(500), ..FetchLimits::default() };
        let house = Self { models, fetch: Fetch::new(limits).unwrap(), server: ListServer::start().await };
        for id in [A, B] {
            house.account(id, |_| {}).await;
        }
        house
    }

    /// Puts an account, changed as wanted.
    async fn account(&self, id: AccountId, change: impl FnOnce(&mut Account)) {
        let list = List::Url(SourceUrl::new(self.server.url.clone()));
        let profile = AccountProfile::default_of(ProfileId(id.0), "default", 1);
        let stored = self.models.accounts.load().get(id.0).map(|it| Account::clone(it));
        let mut account =
            stored.unwrap_or_else(|| Account::new(id, format!("account {id}"), list, profile, START));
        change(&mut account);
        self.write(move |write| write.put(&account)).await;
    }

    async fn write<R: Send + 'static>(
        &self,
        fill: impl FnOnce(&mut storage::Write<'_>) -> Result<R, Error> + Send + 'static,
    ) -> R {
        self.models.store.write(fill).await.unwrap()
    }

    async fn import(&self, account: AccountId, at: i64) -> Result<Imported, ImportError> {
        self.import_with(account, ImportOptions { at: Some(at), ..ImportOptions::default() }, |_| {}).await
    }

    async fn import_with(
        &self,
        account: AccountId,
        options: ImportOptions,
        report: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Result<Imported, ImportError> {
        import(&self.models, &self.fetch, account, options, report).await
    }

    /// The streams of an account, by id.
    async fn streams(&self, account: AccountId) -> Vec<Stream> {
        let store = self.models.store.clone();
        blocking(move || {
            let mut streams = Vec::new();
            let streams_of = store.collection::<Stream>();
            streams_of.for_each_of(u64::from(account.0), |it| streams.push(it)).unwrap();
            streams.sort_by_key(|it: &Stream| it.id);
            streams
        })
        .await
    }

    fn refresh(&self, account: AccountId) -> Refresh {
        Refresh::clone(self.models.refreshes.load().get(account.0).unwrap())
    }

    fn groups(&self) -> Vec<String> {
        self.models.groups.load().iter().map(|it| it.name.clone()).collect()
    }

    /// A channel that plays these streams.
    async fn channel(&self, id: u32, streams: &[StreamId]) {
        let mut channel =
            Channel::new(ChannelId(id), Uuid::from_u128(u128::from(id)), format!("channel {id}"), START);
        channel.streams = streams.to_vec();
        self.write(move |write| write.put(&channel)).await;
    }

    async fn edit(&self, id: StreamId, change: impl FnOnce(&mut Stream) + Send + 'static) {
        self.write(move |write| edit(write, id, change)).await;
    }
}

fn edit(write: &mut storage::Write<'_>, id: StreamId, change: impl FnOnce(&mut Stream)) -> Result<(), Error> {
    let mut stream = write.get::<Stream>(id.0)?.expect("it is there");
    change(&mut stream);
    write.put(&stream)
}

async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// A list; each entry is a number for its address, and a name.
fn list(entries: impl IntoIterator<Item = (usize, String)>) -> String {
    let mut text = "#EXTM3U\n".to_owned();
    for (number, name) in entries {
        let group = number % 7;
        text += &format!(
            "#EXTINF:-1 tvg-id=\"id{number}\" group-title=\"Group {group}\",{name}\n{}\n",
            url(number)
        );
    }
    text
}

fn plain(numbers: impl IntoIterator<Item = usize>) -> String {
    list(numbers.into_iter().map(|it| (it, format!("Channel {it}"))))
}

fn url(number: usize) -> String {
    format!("http://tv.example:8080/live/anna/hunter2/{number}.ts")
}

/// Id of each address.
fn ids(streams: &[Stream]) -> BTreeMap<String, StreamId> {
    streams.iter().map(|it| (it.provider.url.expose().to_owned(), it.id)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.roll(at + 1));
        }
    }
}

// Holds T-id.1.
#[tokio::test]
async fn a_stream_keeps_its_id_over_ten_refreshes_with_shuffles_renames_and_gaps() {
    let house = House::new().await;
    let mut dice = Dice(7);
    let mut known = BTreeMap::new();
    for round in 0..10 {
        let mut entries = Vec::new();
        for number in 0..300 {
            if dice.roll(10) > 0 {
                entries.push((number, format!("Name {number} of {}", dice.roll(3))));
            }
        }
        dice.shuffle(&mut entries);
        house.server.body(list(entries.iter().cloned()));
        house.import(A, START + round * HOUR).await.unwrap();
        let streams = house.streams(A).await;
        let now = ids(&streams);
        for (url, id) in &known {
            assert_eq!(now.get(url), Some(id), "round {round}: {url}");
        }
        let unique: BTreeSet<_> = now.values().collect();
        assert_eq!(
            (unique.len(), now.len()),
            (streams.len(), streams.len()),
            "round {round}: one id, one thing"
        );
        for (number, name) in &entries {
            let stream = streams.iter().find(|it| it.provider.url.expose() == url(*number)).unwrap();
            assert_eq!((stream.name(), stream.is_stale()), (name.as_str(), false), "round {round}");
        }
        assert_eq!(streams.iter().filter(|it| !it.is_stale()).count(), entries.len());
        known = now;
    }
}

#[tokio::test]
async fn a_changed_password_or_host_changes_no_id_where_the_account_goes_by_stream_ids() {
    let house = House::new().await;
    house.account(A, |it| it.identity = Identity::StreamId).await;
    house.server.body(plain(1..50));
    house.import(A, START).await.unwrap();
    let before: Vec<_> = house.streams(A).await.iter().map(|it| it.id).collect();
    house.server.body(plain(1..50).replace("hunter2", "correct-horse").replace("tv.example", "tv2.example"));
    let imported = house.import(A, START + HOUR).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 49, 0));
    let after = house.streams(A).await;
    assert_eq!(after.iter().map(|it| it.id).collect::<Vec<_>>(), before);
    assert!(
        after
            .iter()
            .all(|it| it.url().expose().starts_with("http://tv2.example:8080/live/anna/correct-horse/"))
    );
}

#[tokio::test]
async fn what_vanished_is_stale_then_removed_after_its_days_but_never_while_a_channel_plays_it() {
    let house = House::new().await;
    house.server.body(plain(0..10));
    house.import(A, START).await.unwrap();
    let first = ids(&house.streams(A).await);
    let (used, unused) = (first[&url(8)], first[&url(9)]);
    house.channel(1, &[used]).await;
    house.server.body(plain(0..8));
    let stale_at = |streams: &[Stream]| -> Vec<_> {
        streams.iter().filter_map(|it| Some((it.id, it.last_seen?))).collect()
    };

    let imported = house.import(A, START + DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (2, 0));
    assert_eq!(
        stale_at(&house.streams(A).await),
        [(used, START), (unused, START)],
        "last seen with the last good list"
    );
    let imported = house.import(A, START + 6 * DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (0, 0), "seven days are not over");
    let imported = house.import(A, START + 7 * DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (0, 1));
    assert_eq!(stale_at(&house.streams(A).await), [(used, START)]);
    house.import(A, START + 70 * DAY).await.unwrap();
    assert_eq!(stale_at(&house.streams(A).await), [(used, START)]);

    // It comes back as what it was; the one that was removed is a new one.
    house.server.body(plain(0..10));
    let imported = house.import(A, START + 71 * DAY).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed), (1, 1));
    let streams = house.streams(A).await;
    assert!(stale_at(&streams).is_empty());
    assert_eq!(ids(&streams)[&url(8)], used);
    assert!(!first.values().any(|it| *it == ids(&streams)[&url(9)]), "an id is never given out again");
}

// Holds T-sync.1.
#[tokio::test]
async fn an_answer_that_is_no_good_list_changes_nothing_and_says_why_without_credentials() {
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    let whole = |status: &str, body: &str| (head(status, body.len()) + body).into_bytes();
    let ok = |body: &str| whole("200 OK", body);
    let good = plain(0..100);
    // A little less: exactly one half is still enough.
    let half = &good[..good.len() * 45 / 100];
    let mut cut_gzip = gzip(good.as_bytes());
    cut_gzip.truncate(cut_gzip.len() - 9);
    let packed = |body: Vec<u8>| [head("200 OK", body.len()).into_bytes(), body].concat();
    let hls = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\none.ts\n";
    let cases: Vec<(&str, Vec<u8>, After, &str)> = vec![
        ("nothing", ok(""), After::Close, "There is no entry in the list."),
        ("an empty list", ok("#EXTM3U\n"), After::Close, "There is no entry in the list."),
        (
            "a page",
            ok("<!DOCTYPE html><html><body>expired</body></html>"),
            After::Close,
            "This is no playlist.",
        ),
        ("null", ok("null"), After::Close, "There is no entry in the list."),
        ("{}", ok("{}"), After::Close, "This is no playlist."),
        ("[]", ok("[]"), After::Close, "This is no playlist."),
        ("false", ok("false"), After::Close, "There is no entry in the list."),
        ("500", whole("500 Oops", &good), After::Close, "\"127.0.0.1\" answered 500 Internal Server Error."),
        ("401", whole("401 No", &good), After::Close, "\"127.0.0.1\" answered 401 Unauthorized."),
        ("no answer", Vec::new(), After::Close, "Failed to fetch from \"127.0.0.1\": "),
        ("silence", Vec::new(), After::Hold, "Failed to fetch from \"127.0.0.1\": "),
        ("half a list", ok(half), After::Close, "The list has 4 the last good one had 100;"),
        (
            "a body cut short",
            (head("200 OK", good.len()) + half).into_bytes(),
            After::Close,
            "Failed to fetch from",
        ),
        (
            "silence within",
            (head("200 OK", good.len()) + half).into_bytes(),
            After::Hold,
            "Failed to fetch from",
        ),
        (
            "a chunk cut short",
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n", half.len())
                .into(),
            After::Close,
            "Failed to fetch from",
        ),
        ("cut gzip", packed(cut_gzip), After::Close, "Failed to read the list to its end: "),
        ("a stream of its own", ok(hls), After::Close, "This is the playlist of one HLS stream"),
        (
            "another encoding",
            whole("200 OK\r\nContent-Encoding: br", &good),
            After::Close,
            "\"127.0.0.1\" answered in an encoding",
        ),
        (
            "files of ours",
            ok("#EXTM3U\n#EXTINF:-1,x\nfile:///etc/passwd\n"),
            After::Close,
            "There is no entry in the list.",
        ),
    ];
    let house = House::new().await;
    house.server.body(&good);
    house.import(A, START).await.unwrap();
    house.channel(1, &[house.streams(A).await[0].id]).await;
    let stored = house.streams(A).await;
    let groups = house.groups();
    let before = house.refresh(A);
    assert_eq!((stored.len(), groups.len(), before.outcome, before.n_good), (100, 7, Outcome::Success, 100));
    for (day, (what, answer, after, said)) in (1..).zip(cases) {
        house.server.raw(answer, after);
        let refused = house.import(A, START + day * 30 * DAY).await;
        assert!(refused.is_err(), "{what}: {refused:?}");
        assert_eq!(house.streams(A).await, stored, "{what}");
        assert_eq!(house.groups(), groups, "{what}");
        let refresh = house.refresh(A);
        let waits = what == "half a list";
        assert_eq!(
            refresh.outcome,
            if waits { Outcome::AwaitingConfirmation } else { Outcome::Error },
            "{what}"
        );
        assert!(refresh.message.starts_with(said), "{what}: {}", refresh.message);
        for secret in ["hunter2", "anna", "get.php"] {
            assert!(!refresh.message.contains(secret), "{what}: {}", refresh.message);
        }
        assert_eq!(
            (refresh.good_at, refresh.n_good),
            (before.good_at, before.n_good),
            "{what}: what was good stays"
        );
        assert_eq!(refresh.tried_at, START + day * 30 * DAY, "{what}");
    }
    // And the good list, long after, finds everything as it was.
    house.server.body(&good);
    let imported = house.import(A, START + 1000 * DAY).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale, imported.n_removed), (0, 0, 0, 0));
    assert_eq!(house.refresh(A).outcome, Outcome::Success);
}

#[tokio::test]
async fn a_list_that_shrank_by_half_is_taken_once_an_admin_agrees() {
    let house = House::new().await;
    house.server.body(plain(0..100));
    house.import(A, START).await.unwrap();
    house.server.body(plain(0..50));
    let imported = house.import(A, START + HOUR).await.unwrap();
    assert_eq!(imported.n_stale, 50, "half is still enough");
    house.server.body(plain(0..24));
    for _ in 0..2 {
        let refused = house.import(A, START + 2 * HOUR).await;
        assert!(matches!(refused, Err(ImportError::Shrunken { before: 50, now: 24 })), "{refused:?}");
    }
    let options = ImportOptions { confirm: true, at: Some(START + 3 * HOUR), ..ImportOptions::default() };
    assert_eq!(house.import_with(A, options.clone(), |_| {}).await.unwrap().n_stale, 26);
    assert_eq!((house.refresh(A).outcome, house.refresh(A).n_good), (Outcome::Success, 24));
    // Nobody can agree to nothing.
    house.server.body("");
    assert!(matches!(house.import_with(A, options, |_| {}).await, Err(ImportError::Empty)));
}

// Holds T-sync.2.
#[tokio::test]
async fn the_same_list_again_writes_nothing_but_how_it_ended() {
    for n_entries in [100, MANY] {
        let house = House::new().await;
        // Twice the same address, and an entry without a group or a guide id, are no exception.
        let text = plain((0..n_entries).chain([3, 3])) + "#EXTINF:-1,Plain\nhttp://tv.example/plain\n";
        house.server.body(&text);
        let imported = house.import(A, START).await.unwrap();
        assert_eq!(imported.n_new as usize, n_entries + 3);
        let stored = house.streams(A).await;
        let fingerprint = house.models.store.collection::<Stream>().fingerprint_of(2);
        let mut changes = house.models.store.changes();
        let imported = house.import(A, START + HOUR).await.unwrap();
        assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
        let Some(News::Changed(change)) = changes.try_next() else { panic!("the refresh is recorded") };
        let touched: Vec<_> = change.touched.iter().map(|it| (it.collection, it.ids.clone())).collect();
        assert_eq!(touched, [("refreshes", Ids::Few(vec![2]))]);
        assert_eq!(changes.try_next(), None);
        assert_eq!(house.models.store.collection::<Stream>().fingerprint_of(2), fingerprint);
        assert_eq!(house.streams(A).await, stored);
    }
}

// Holds T-sync.3.
#[tokio::test]
async fn a_refresh_leaves_the_rows_of_every_other_account_as_they_are() {
    let house = House::new().await;
    let mut dice = Dice(11);
    // Both have the same addresses, so nothing but the account tells them apart.
    house.server.body(plain(0..MANY));
    house.import(B, START).await.unwrap();
    let theirs = house.streams(B).await;
    let their_refresh = house.refresh(B);
    for round in 0..12 {
        let n_entries = [50, MANY + 100][dice.roll(2)];
        let first = dice.roll(1000);
        let mut entries: Vec<_> =
            (first..first + n_entries).map(|it| (it, format!("{it} {}", dice.roll(4)))).collect();
        dice.shuffle(&mut entries);
        house.server.body(if dice.roll(6) == 0 { "<html>".to_owned() } else { list(entries) });
        let options =
            ImportOptions { confirm: true, at: Some(START + round * 4 * DAY), ..ImportOptions::default() };
        let _ = house.import_with(A, options, |_| {}).await;
        assert_eq!(house.streams(B).await, theirs, "round {round}");
        assert_eq!(house.refresh(B), their_refresh);
    }
    let mine = house.streams(A).await;
    assert!(!mine.is_empty() && mine.iter().all(|it| theirs.iter().all(|other| it.id != other.id)));
}

// Holds T-sync.4.
#[tokio::test]
async fn what_admins_changed_outlives_refreshes_and_clearing_it_shows_what_the_provider_says_now() {
    for n_entries in [20, MANY] {
        let house = House::new().await;
        house.server.body(plain(0..n_entries));
        house.import(A, START).await.unwrap();
        let id = ids(&house.streams(A).await)[&url(5)];
        house
            .edit(id, |it| {
                it.manual.name = Some("Ours".to_owned());
                it.manual.group = Some(String::new());
                it.stream_profile = Some(domain::ids::StreamProfileId(1));
            })
            .await;
        for round in 1..=3 {
            house.server.body(list((0..n_entries).rev().map(|it| (it, format!("Theirs {it}.{round}")))));
            let imported = house.import(A, START + round * HOUR).await.unwrap();
            assert_eq!(imported.n_changed as usize, n_entries);
            let stream = house.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
            assert_eq!((stream.name(), stream.group()), ("Ours", None));
            assert_eq!(stream.stream_profile, Some(domain::ids::StreamProfileId(1)));
            assert_eq!(stream.provider.name, format!("Theirs 5.{round}"));
        }
        house.edit(id, |it| it.manual = Default::default()).await;
        let stream = house.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
        assert_eq!((stream.name(), stream.group()), ("Theirs 5.3", Some("Group 5")));
    }
}

#[tokio::test]
async fn rules_of_an_account_apply_to_what_is_listed_and_change_with_the_next_refresh() {
    let house = House::new().await;
    let rule = |find: &str, replace: &str| {
        vec![Rule { field: RuleField::Name, find: find.to_owned(), replace: replace.to_owned() }]
    };
    house.account(A, |it| it.rules = rule("^Channel ", "")).await;
    house.server.body(plain(1..5));
    house.import(A, START).await.unwrap();
    let names = async || house.streams(A).await.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names().await, ["1", "2", "3", "4"]);
    house.account(A, |it| it.rules = Vec::new()).await;
    assert_eq!(house.import(A, START + HOUR).await.unwrap().n_changed, 4);
    assert_eq!(names().await, ["Channel 1", "Channel 2", "Channel 3", "Channel 4"]);
    house.account(A, |it| it.rules = rule("(", "")).await;
    assert!(matches!(house.import(A, START + 2 * HOUR).await, Err(ImportError::Rules(_))));
    assert!(house.refresh(A).message.starts_with("The account has a rule that cannot be used: rule 1: "));
}

/// Admins go on working while a large list lands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_admins_do_while_a_large_list_is_imported_is_not_lost() {
    let house = House::new().await;
    house.server.body(plain(0..MANY * 4));
    house.import(A, START).await.unwrap();
    let first = house.streams(A).await;
    house.server.body(list((0..MANY * 4).map(|it| (it, format!("Renamed {it}")))));
    // Somebody edits one stream after the other, and deletes some, from before the comparison until after the landing.
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let (models, is_over, ids) =
            (house.models.clone(), is_over.clone(), first.iter().map(|it| it.id).collect::<Vec<_>>());
        tokio::spawn(async move {
            let (mut edited, mut deleted) = (Vec::new(), Vec::new());
            for (number, id) in ids.into_iter().enumerate() {
                if is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                let done: Result<(), Error> = models
                    .store
                    .write(move |write| {
                        if number % 5 == 0 {
                            assert!(write.remove::<Stream>(id.0)?);
                            return Ok(());
                        }
                        edit(write, id, |it| it.manual.name = Some("Ours".to_owned()))
                    })
                    .await;
                done.unwrap();
                if number % 5 == 0 { deleted.push(id) } else { edited.push(id) }
            }
            (edited, deleted)
        })
    };
    house.import(A, START + HOUR).await.unwrap();
    is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    let (edited, deleted) = writer.await.unwrap();
    assert!(edited.len() > 20 && deleted.len() > 5, "nothing happened meanwhile: {} edits", edited.len());
    let streams = house.streams(A).await;
    let of = |id: &StreamId| streams.iter().find(|it| it.id == *id);
    for id in &edited {
        let stream = of(id).unwrap_or_else(|| panic!("stream {id} is lost"));
        assert_eq!(stream.name(), "Ours", "the edit of stream {id} is lost");
        assert!(stream.provider.name.starts_with("Renamed "), "the list of stream {id} is lost");
    }
    for id in &deleted {
        assert!(of(id).is_none(), "stream {id} is back");
    }
    assert!(streams.iter().all(|it| it.provider.name.starts_with("Renamed ")));
}

#[tokio::test]
async fn an_account_that_is_deleted_or_switched_off_meanwhile_gets_nothing() {
    type Change = fn(&mut storage::Write<'_>) -> Result<(), Error>;
    let switched_off: Change = |write| {
        let account = write.get::<Account>(A.0)?.expect("it is there");
        write.put(&Account { is_active: false, ..account })
    };
    let deleted: Change = |write| write.remove::<Account>(A.0).map(drop);
    let moved: Change = |write| {
        let account = write.get::<Account>(A.0)?.expect("it is there");
        write.put(&Account { list: List::Url(SourceUrl::new("http://elsewhere.example/")), ..account })
    };
    for change in [switched_off, deleted, moved] {
        for n_entries in [10, MANY] {
            let house = House::new().await;
            house.server.body(plain(0..n_entries));
            let store = house.models.store.clone();
            let options = ImportOptions { at: Some(START), ..ImportOptions::default() };
            let refused = house
                .import_with(A, options, move |progress| {
                    if progress.phase == Phase::Writing {
                        store.write_blocking(change).unwrap();
                    }
                })
                .await;
            assert!(matches!(refused, Err(ImportError::AccountChanged)), "{refused:?}");
            assert!(house.streams(A).await.is_empty());
            assert!(house.groups().is_empty());
        }
    }
    let house = House::new().await;
    assert!(matches!(house.import(AccountId(99), START).await, Err(ImportError::NoSuchAccount)));
    assert!(matches!(house.import(AccountId(1), START).await, Err(ImportError::NoList)));
    house.account(A, |it| it.is_active = false).await;
    assert!(matches!(house.import(A, START).await, Err(ImportError::Inactive)));
}

#[tokio::test]
async fn an_import_that_is_stopped_writes_nothing() {
    let house = House::new().await;
    house.server.body(plain(0..MANY));
    for phase in [Phase::Fetching, Phase::Parsing, Phase::Comparing, Phase::Writing] {
        let options = ImportOptions::default();
        let stop = options.stop.clone();
        let stopped = house
            .import_with(A, options, move |progress| {
                if progress.phase == phase {
                    stop.cancel();
                }
            })
            .await;
        assert!(matches!(stopped, Err(ImportError::Stopped)), "{phase:?}: {stopped:?}");
        assert!(house.streams(A).await.is_empty(), "{phase:?}");
        assert!(house.models.refreshes.load().is_empty(), "{phase:?}: it was not the list's fault");
    }
    // A server that says nothing is not waited for.
    house.server.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n#EXTM3U", After::Hold);
    let options = ImportOptions::default();
    let stop = options.stop.clone();
    let stopped = house
        .import_with(A, options, move |it| {
            if it.bytes > 0 {
                stop.cancel()
            }
        })
        .await;
    assert!(matches!(stopped, Err(ImportError::Stopped)), "{stopped:?}");
}

#[tokio::test]
async fn groups_that_a_list_names_are_made_once_and_one_that_was_renamed_is_not_made_again() {
    let house = House::new().await;
    let mut renamed = Group::new(GroupId(40), "Group 1");
    renamed.rename("News");
    house.write(move |write| write.put(&renamed)).await;
    house.server.body(plain(0..MANY));
    house.import(A, START).await.unwrap();
    house.import(B, START).await.unwrap();
    let mut groups = house.groups();
    groups.sort_unstable();
    assert_eq!(groups, ["Group 0", "Group 2", "Group 3", "Group 4", "Group 5", "Group 6", "News"]);
    // The list itself is as the provider wrote it.
    assert_eq!(house.streams(A).await[1].group(), Some("Group 1"));
    // A name that is too long for a group is cut.
    let long = "é".repeat(300);
    house
        .server
        .body(plain(0..MANY) + &format!("#EXTINF:-1 group-title=\"{long}\",x\nhttp://tv.example/x\n"));
    house.import(A, START + HOUR).await.unwrap();
    assert!(house.groups().contains(&"é".repeat(255)));
}

#[tokio::test]
async fn a_list_may_be_packed_and_may_be_a_file_and_only_a_file_of_ours_may_name_others() {
    let house = House::new().await;
    let text = plain(0..10) + "#EXTINF:-1,Film\nfile:///films/one.ts\n";
    house.server.body(gzip(text.as_bytes()));
    let imported = house.import(A, START).await.unwrap();
    assert_eq!((imported.n_entries, imported.n_problems), (10, 1));
    assert_eq!(imported.problems[0].line, 22, "{:?}", imported.problems);
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("list.m3u", text.clone().into_bytes()), ("list.m3u.gz", gzip(text.as_bytes()))] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        house.account(B, |it| it.list = List::File(path.to_str().unwrap().to_owned())).await;
        assert_eq!(house.import(B, START).await.unwrap().n_entries, 11);
    }
    let nowhere = [folder.path().to_owned(), folder.path().join("missing"), "/dev/zero".into()];
    for path in nowhere {
        house.account(B, |it| it.list = List::File(path.to_str().unwrap().to_owned())).await;
        assert!(matches!(house.import(B, START).await, Err(ImportError::File(_))), "{}", path.display());
    }
}

#[tokio::test]
async fn an_account_sends_its_own_headers() {
    let house = House::new().await;
    let headers = Headers {
        user_agent: Some("Box/1".to_owned()),
        referrer: Some("http://r.example/".to_owned()),
        extra: vec![("X-Token".to_owned(), "k1".to_owned())],
    };
    house.account(A, |it| it.headers = headers).await;
    house.server.body(plain(0..3));
    house.import(A, START).await.unwrap();
    let head = house.server.heads.lock().concat().to_ascii_lowercase();
    for line in ["user-agent: box/1", "referer: http://r.example/", "x-token: k1"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn how_far_an_import_is_can_be_seen_from_outside() {
    let house = House::new().await;
    house.server.body(plain(0..MANY));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    house.import_with(A, ImportOptions::default(), move |it| told.lock().push(it)).await.unwrap();
    let seen = seen.lock();
    let mut phases: Vec<_> = seen.iter().map(|it| it.phase).collect();
    phases.dedup();
    assert_eq!(phases, [Phase::Fetching, Phase::Parsing, Phase::Comparing, Phase::Writing, Phase::Done]);
    assert!(seen.windows(2).all(|it| it[0].bytes <= it[1].bytes && it[0].entries <= it[1].entries));
    let last = seen.last().unwrap();
    assert_eq!(
        (last.entries as usize, last.n_new as usize, last.outcome),
        (MANY, MANY, Some(Outcome::Success))
    );
    assert!(last.message.starts_with("2600 entries: 2600 new, "), "{}", last.message);
}

#[tokio::test]
async fn two_entries_with_one_address_are_two_streams_and_stay_those_two() {
    let house = House::new().await;
    let twice = |first: &str, second: &str| {
        format!(
            "#EXTM3U\n#EXTINF:-1,{first}\nhttp://tv.example/1\n#EXTINF:-1,{second}\nhttp://tv.example/1\n"
        )
    };
    house.server.body(twice("One", "Two"));
    house.import(A, START).await.unwrap();
    let before = house.streams(A).await;
    house.server.body(twice("One", "Zwei"));
    assert_eq!(house.import(A, START + HOUR).await.unwrap().n_changed, 1);
    let after = house.streams(A).await;
    assert_eq!(after[0], before[0]);
    assert_eq!((after[1].id, after[1].name()), (before[1].id, "Zwei"));
}

mod slow {
    use super::*;

    // Holds T-pl.6.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn half_a_million_entries_are_imported_and_come_again_without_a_change() {
        const ENTRIES: usize = 500_000;
        let house = House::new().await;
        house.server.body(plain(0..ENTRIES));
        assert_eq!(house.import(A, START).await.unwrap().n_new as usize, ENTRIES);
        assert_eq!(house.models.store.collection::<Stream>().len_of(2), ENTRIES);
        let imported = house.import(A, START + HOUR).await.unwrap();
        assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
    }
}
