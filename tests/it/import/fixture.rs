//! A store, accounts, and a server for their playlists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actors::{Fetch, FetchLimits, ImportError, ImportOptions, ImportSummary, RefreshStatus, import};
use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshRecord};
use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::Stream;
use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use storage::{Error, Models, Store, Write};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

pub const HOUR: i64 = 3_600_000;
pub const DAY: i64 = 24 * HOUR;
/// Time of the first import, in milliseconds since 1970.
pub const START: i64 = 1_900_000_000_000;
/// A number of new or changed streams that is too large for one ordinary write.
pub const MANY: usize = 2_600;

/// A server that answers every request with the same bytes.
pub struct ListServer {
    pub url: String,
    pub answer: Arc<Mutex<(Vec<u8>, After)>>,
    pub heads: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum After {
    Close,
    /// The connection stays open and no more data comes.
    Hold,
}

impl ListServer {
    pub async fn start() -> Self {
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
                    // A client that has read enough may close.
                    let _ = socket.write_all(&bytes).await;
                    if after == After::Hold {
                        let _ = socket.read_u8().await;
                    }
                });
            }
        });
        Self { url, answer, heads }
    }

    pub fn raw(&self, bytes: impl Into<Vec<u8>>, after: After) {
        *self.answer.lock() = (bytes.into(), after);
    }

    pub fn body(&self, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
                .into_bytes();
        answer.extend_from_slice(body);
        self.raw(answer, After::Close);
    }
}

/// A store with accounts whose playlists one server provides.
pub struct ImportFixture {
    pub models: Models,
    pub fetch: Fetch,
    pub server: ListServer,
    /// The folder of the store.
    folder: TempDir,
}

/// The account of most tests, and another one.
pub const A: AccountId = AccountId(2);
pub const B: AccountId = AccountId(3);

impl ImportFixture {
    pub async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap()).await
    }

    /// Opens the store in a folder, and sets the addresses of the playlists.
    pub async fn open(folder: TempDir) -> Self {
        let at = folder.path().to_owned();
        let models = blocking(move || {
            let schema = storage::records::schema();
            let store = Store::open(&at.join("store"), &at.join("key"), schema).unwrap();
            storage::seed(&store).unwrap();
            storage::drop_unused_stream_ids(&store).unwrap();
            Models::new(store).unwrap()
        })
        .await;
        headwater::install_tls();
        let fetch = Fetch::new(FetchLimits::default()).unwrap();
        let fixture = Self { models, fetch, server: ListServer::start().await, folder };
        let list = PlaylistLocation::Url(SourceUrl::new(fixture.server.url.clone()));
        for id in [A, B] {
            fixture.account(id, |it| it.list = list.clone()).await;
        }
        fixture
    }

    /// Closes the store, and returns its folder.
    pub async fn close(self) -> TempDir {
        let Self { models, folder, .. } = self;
        blocking(move || models.store.close()).await;
        folder
    }

    /// Shortens the read timeout, for tests with a silent server.
    pub fn shorten_read_timeout(&mut self) {
        let limits = FetchLimits { read_timeout: Duration::from_millis(500), ..FetchLimits::default() };
        self.fetch = Fetch::new(limits).unwrap();
    }

    /// Creates or changes an account.
    pub async fn account(&self, id: AccountId, change: impl FnOnce(&mut Account)) {
        let list = PlaylistLocation::Url(SourceUrl::new(self.server.url.clone()));
        let profile = AccountProfile::default_of(ProfileId(id.0), "default", 1);
        let stored = self.models.accounts.load().get(id.0).map(|it| Account::clone(it));
        let mut account =
            stored.unwrap_or_else(|| Account::new(id, format!("account {id}"), list, profile, START));
        change(&mut account);
        self.write(move |write| write.put(&account)).await;
    }

    pub async fn write<R: Send + 'static>(
        &self,
        fill: impl FnOnce(&mut Write<'_>) -> Result<R, Error> + Send + 'static,
    ) -> R {
        self.models.store.write(fill).await.unwrap()
    }

    pub async fn import(&self, account: AccountId, at: i64) -> Result<ImportSummary, ImportError> {
        self.import_with(account, ImportOptions { at: Some(at), ..ImportOptions::default() }, |_| {}).await
    }

    pub async fn import_with(
        &self,
        account: AccountId,
        options: ImportOptions,
        report: impl Fn(RefreshStatus) + Send + Sync + 'static,
    ) -> Result<ImportSummary, ImportError> {
        import(&self.models, &self.fetch, account, options, report).await
    }

    /// Returns the streams of an account, ordered by id.
    pub async fn streams(&self, account: AccountId) -> Vec<Stream> {
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

    pub fn refresh(&self, account: AccountId) -> RefreshRecord {
        RefreshRecord::clone(self.models.refreshes.load().get(account.0).unwrap())
    }

    pub fn groups(&self) -> Vec<String> {
        self.models.groups.load().iter().map(|it| it.name.clone()).collect()
    }

    /// Creates a channel with these streams.
    pub async fn channel(&self, id: u32, streams: &[StreamId]) {
        let mut channel =
            Channel::new(ChannelId(id), Uuid::from_u128(u128::from(id)), format!("channel {id}"), START);
        channel.streams = streams.to_vec();
        self.write(move |write| write.put(&channel)).await;
    }

    pub async fn edit(&self, id: StreamId, change: impl FnOnce(&mut Stream) + Send + 'static) {
        self.write(move |write| edit(write, id, change)).await;
    }
}

pub fn edit(write: &mut Write<'_>, id: StreamId, change: impl FnOnce(&mut Stream)) -> Result<(), Error> {
    let mut stream = write.get::<Stream>(id.0)?.expect("the stream exists");
    change(&mut stream);
    write.put(&stream)
}

pub async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Returns a playlist; each entry has a number for its URL, and a name.
pub fn list(entries: impl IntoIterator<Item = (usize, String)>) -> String {
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

pub fn plain(numbers: impl IntoIterator<Item = usize>) -> String {
    list(numbers.into_iter().map(|it| (it, format!("Channel {it}"))))
}

pub fn url(number: usize) -> String {
    format!("http://tv.example:8080/live/anna/hunter2/{number}.ts")
}

/// Returns the id of each URL.
pub fn ids(streams: &[Stream]) -> BTreeMap<String, StreamId> {
    streams.iter().map(|it| (it.provider.url.expose().to_owned(), it.id)).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// Pseudo-random numbers, the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.roll(at + 1));
        }
    }
}
