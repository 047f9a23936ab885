//! Copies of logos on the disk, so that players need no access to the servers of logos, and these are asked rarely.
//!
//! A copy is fetched when it is requested first, and again after a day, in the background. The first request waits for it
//! for a short time, because a player such as Kodi keeps what it gets first, a placeholder too. Players request the logos
//! of a whole list at once, so nobody waits for a host that was slow before. A fetch that fails is not repeated for some
//! minutes; a copy that exists is used meanwhile. The copies are limited in number and size, and may be deleted at any
//! time.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actors::{Fetch, FetchLimits};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use domain::account::Account;
use domain::account_addresses::{addresses_of, at_address};
use domain::egress::{AllowedNetworks, Distance, Reach, reach_of_account};
use domain::ids::{AccountId, GuideSourceId};
use domain::logo::{Logo, logo_copy_path};
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use media::spawn_blocking;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use storage::Models;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::image_types::{ImageType, image_version};

#[cfg(test)]
mod tests;

/// Maximum size of a logo, in bytes.
pub const LOGO_BYTES_MAX: u64 = 5 << 20;
/// Maximum size of all copies, in bytes; the oldest are deleted.
const COPIES_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of copies.
const COPIES_MAX: usize = 50_000;
/// Time after which a copy is fetched again.
const FRESH_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Time for which a failed fetch is not repeated.
const FAILURE_TIME: Duration = Duration::from_secs(300);
/// Maximum number of remembered failures.
const FAILURES_MAX: usize = 10_000;
/// Time for which a request waits for the first copy.
const FIRST_COPY_WAIT: Duration = Duration::from_secs(2);
/// Time for which nobody waits for a host that did not answer within [`FIRST_COPY_WAIT`].
const SLOW_HOST_TIME: Duration = Duration::from_secs(300);
/// Maximum number of remembered slow hosts.
const SLOW_HOSTS_MAX: usize = 1_000;
/// Maximum number of fetches at one time.
const FETCHES_MAX: usize = 8;
/// Maximum number of fetches that run or wait. With more, a logo is fetched when it is requested again.
const FETCHES_WAITING_MAX: usize = 1_000;
/// Maximum time of a fetch.
const FETCH_TIME_MAX: Duration = Duration::from_secs(10);

/// Returns the address of the copy of a logo, which anybody may read. Its last segment changes with the logo, so that
/// clients do not show an old one.
pub fn logo_copy_address(origin: &str, logo: &Logo) -> String {
    format!("{origin}{}{}", logo_copy_path(logo.id), image_version(&logo_state(logo)))
}

/// Returns what the version of a logo is made from.
pub fn logo_state(logo: &Logo) -> String {
    format!("{} {}", logo.updated_at, logo.url)
}

/// The way to an image: how far its address may lead, through which proxy or node, and to which of an account's servers.
#[derive(Clone, Debug)]
pub struct ImageWay {
    reach: Reach,
    /// The account whose proxy and nodes are used.
    account: Option<Arc<Account>>,
    /// All addresses of the account, and the one in use; `None` without an account that has several.
    server: Option<(Vec<SourceUrl>, SourceUrl)>,
}

impl ImageWay {
    /// An image that this account named.
    pub fn from_account(models: &Models, account: AccountId) -> Self {
        match models.accounts.load().get(account.0) {
            Some(account) => {
                let refreshes = models.refreshes.load();
                let refresh = refreshes.get(account.id.0).map(|it| &**it);
                let reach = reach_of_account(account, refresh);
                Self { reach, account: Some(Arc::clone(account)), server: server_of(models, account) }
            }
            // The account was deleted.
            None => Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist).into(),
        }
    }
}

impl From<Reach> for ImageWay {
    fn from(reach: Reach) -> Self {
        Self { reach, account: None, server: None }
    }
}

/// The copies of logos.
pub struct LogoCache {
    folder: PathBuf,
    fetch: Fetch,
    first_copy_wait: Duration,
    state: Mutex<State>,
    /// Permits for fetches.
    fetches: Semaphore,
}

#[derive(Default)]
struct State {
    /// `None` until the folder was read.
    copies: Option<Copies>,
    /// The failed fetches by name of the copy, and when they may be repeated.
    failures: HashMap<String, Instant>,
    /// The hosts that nobody waits for, and until when.
    slow_hosts: HashMap<String, Instant>,
    /// The logos that are being fetched or wait for it, so that each is fetched once. The sender is dropped at the end.
    fetching: HashMap<String, watch::Receiver<()>>,
}

/// The files of the folder.
#[derive(Default)]
struct Copies {
    by_name: HashMap<String, (SystemTime, u64)>,
    by_age: BTreeMap<(SystemTime, String), u64>,
    bytes: u64,
}

impl LogoCache {
    /// Uses a folder, which is created when it is needed, and a client with other limits.
    pub fn new(folder: PathBuf, fetch: Fetch) -> Self {
        Self::with_times(folder, fetch, FETCH_TIME_MAX, FIRST_COPY_WAIT)
    }

    /// Does the same with other times: the maximum of a fetch, and how long a request waits for it.
    fn with_times(folder: PathBuf, fetch: Fetch, time_max: Duration, first_copy_wait: Duration) -> Self {
        let limits = FetchLimits {
            connect_timeout: time_max / 2,
            read_timeout: time_max,
            total_timeout: time_max,
            bytes_max: LOGO_BYTES_MAX,
        };
        Self {
            folder,
            fetch: fetch.within(limits),
            first_copy_wait,
            state: Mutex::default(),
            fetches: Semaphore::new(FETCHES_MAX),
        }
    }

    /// Returns the copy of the image at an address, if there is one or if its first fetch ends within
    /// [`FIRST_COPY_WAIT`]. A copy that is missing or old is fetched in the background.
    pub async fn get(self: &Arc<Self>, url: &str, way: impl Into<ImageWay>) -> Option<Bytes> {
        let way = way.into();
        let name = file_name(url, way.reach);
        match self.look_up(url, way).await {
            (None, Some(fetch)) => match self.has_ended_soon(url, fetch).await {
                true => self.read(&name).await.map(|it| it.0),
                false => None,
            },
            (copy, _) => copy,
        }
    }

    /// Returns the copy that exists, and the fetch that runs.
    async fn look_up(
        self: &Arc<Self>,
        url: &str,
        way: impl Into<ImageWay>,
    ) -> (Option<Bytes>, Option<watch::Receiver<()>>) {
        let way = way.into();
        let name = file_name(url, way.reach);
        match self.read(&name).await {
            Some((bytes, true)) => (Some(bytes), None),
            Some((bytes, false)) => (Some(bytes), self.fetch_in_background(name, url, way)),
            None => (None, self.fetch_in_background(name, url, way)),
        }
    }

    /// Waits for the end of a fetch, unless its host was slow before. Returns whether it ended.
    async fn has_ended_soon(&self, url: &str, mut fetch: watch::Receiver<()>) -> bool {
        let Some(host) = SourceUrl::new(url).host().map(str::to_owned) else { return false };
        if self.state.lock().slow_hosts.get(&host).is_some_and(|until| *until > Instant::now()) {
            return false;
        }
        // The sender is dropped when the fetch ends, which is an error here.
        let has_ended = timeout(self.first_copy_wait, fetch.changed()).await.is_ok();
        if !has_ended {
            note(&mut self.state.lock().slow_hosts, &host, SLOW_HOST_TIME, SLOW_HOSTS_MAX);
        }
        has_ended
    }

    /// Starts a fetch, unless it runs, is useless, or too many wait already. Returns the end of the one that runs.
    fn fetch_in_background(
        self: &Arc<Self>,
        name: String,
        url: &str,
        way: ImageWay,
    ) -> Option<watch::Receiver<()>> {
        let mut state = self.state.lock();
        if let Some(running) = state.fetching.get(&name) {
            return Some(running.clone());
        }
        let has_failed = state.failures.get(&name).is_some_and(|until| *until > Instant::now());
        if has_failed || state.fetching.len() >= FETCHES_WAITING_MAX {
            return None;
        }
        let (ended, running) = watch::channel(());
        state.fetching.insert(name.clone(), running.clone());
        let fetching = Fetching { cache: Arc::clone(self), name, _ended: ended };
        let url = url.to_owned();
        actors::spawn(async move { fetching.run(&url, &way).await });
        Some(running)
    }

    /// Fetches an image and waits for it; a fresh copy is used. For work in the background.
    ///
    /// # Errors
    /// The reason why it cannot be fetched.
    pub async fn fetch(self: &Arc<Self>, url: &str, way: impl Into<ImageWay>) -> Result<Bytes, String> {
        let way = way.into();
        if let Some((bytes, true)) = self.read(&file_name(url, way.reach)).await {
            return Ok(bytes);
        }
        let _permit = self.fetches.acquire().await.map_err(|_| "the gateway stops")?;
        self.download(url, &way).await
    }

    async fn download(&self, url: &str, way: &ImageWay) -> Result<Bytes, String> {
        let fetch = way.account.as_ref().map_or_else(|| self.fetch.clone(), |it| self.fetch.for_account(it));
        let placed = way.server.as_ref().map(|(all, used)| at_address(&SourceUrl::new(url), all, used));
        let url = placed.as_ref().map_or(url, SourceUrl::expose);
        let mut body =
            fetch.get(url, &RequestHeaders::default(), way.reach).await.map_err(|it| it.with_causes())?;
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await.map_err(|it| it.with_causes())? {
            bytes.extend_from_slice(&piece);
        }
        match ImageType::from_content(&bytes) {
            Some(_) => Ok(bytes.into()),
            None => Err("it is not an image".to_owned()),
        }
    }

    fn note_failure(&self, name: &str) {
        note(&mut self.state.lock().failures, name, FAILURE_TIME, FAILURES_MAX);
    }

    /// Returns the copy, and whether it is fresh.
    async fn read(self: &Arc<Self>, name: &str) -> Option<(Bytes, bool)> {
        let (cache, name) = (Arc::clone(self), name.to_owned());
        let reading = spawn_blocking(move || {
            let copied_at = {
                let mut state = cache.state.lock();
                let copies = state.copies.get_or_insert_with(|| Copies::new(&cache.folder));
                copies.by_name.get(&name)?.0
            };
            let bytes = fs::read(cache.folder.join(&name)).ok()?;
            let age = SystemTime::now().duration_since(copied_at).unwrap_or_default();
            Some((Bytes::from(bytes), age < FRESH_TIME))
        });
        reading.await.ok()?
    }

    fn save(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let temporary = self.folder.join(format!(".{name}"));
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        drop(file);
        fs::rename(&temporary, self.folder.join(name))?;
        let mut state = self.state.lock();
        let copies = state.copies.get_or_insert_with(|| Copies::new(&self.folder));
        copies.add(name.to_owned(), SystemTime::now(), bytes.len() as u64);
        while let Some(oldest) = copies.surplus() {
            fs::remove_file(self.folder.join(&oldest))?;
        }
        Ok(())
    }
}

/// A logo that is being fetched or waits for it, until this is dropped.
struct Fetching {
    cache: Arc<LogoCache>,
    name: String,
    /// Tells those who wait that it has ended.
    _ended: watch::Sender<()>,
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.cache.state.lock().fetching.remove(&self.name);
    }
}

impl Fetching {
    async fn run(self, url: &str, way: &ImageWay) {
        let cache = &self.cache;
        let Ok(_permit) = cache.fetches.acquire().await else { return };
        let bytes = match cache.download(url, way).await {
            Ok(bytes) => bytes,
            Err(reason) => {
                debug!("failed to fetch a logo: {reason}");
                return cache.note_failure(&self.name);
            }
        };
        if let Some(host) = SourceUrl::new(url).host() {
            cache.state.lock().slow_hosts.remove(host);
        }
        let (saving, name) = (Arc::clone(cache), self.name.clone());
        let saved = spawn_blocking(move || saving.save(&name, &bytes)).await;
        if let Ok(Err(error)) = saved {
            debug!("failed to keep a logo: {error}");
            // Without a copy it would be fetched with each request.
            cache.note_failure(&self.name);
        }
    }
}

impl Copies {
    fn new(folder: &Path) -> Self {
        let mut copies = Self::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.metadata() {
                Ok(about) if about.is_file() && !name.starts_with('.') => {
                    let copied_at = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    copies.add(name, copied_at, about.len());
                }
                _ => {}
            }
        }
        copies
    }

    fn add(&mut self, name: String, at: SystemTime, bytes: u64) {
        if let Some((before, size)) = self.by_name.insert(name.clone(), (at, bytes)) {
            self.by_age.remove(&(before, name.clone()));
            self.bytes -= size;
        }
        self.by_age.insert((at, name), bytes);
        self.bytes += bytes;
    }

    /// Removes the oldest copy if there are too many. Returns its name.
    fn surplus(&mut self) -> Option<String> {
        if self.bytes <= COPIES_BYTES_MAX && self.by_name.len() <= COPIES_MAX {
            return None;
        }
        let ((_, name), bytes) = self.by_age.pop_first()?;
        self.by_name.remove(&name);
        self.bytes -= bytes;
        Some(name)
    }
}

/// Returns the way to a logo: no nearer than the playlist or guide that named it, and that of its account.
pub fn way_to_logo(models: &Models, logo: &Logo) -> ImageWay {
    if let Some(source) = logo.guide_source {
        return way_to_guide_image(models, source);
    }
    logo.named_by.map_or_else(|| Reach::default().into(), |it| ImageWay::from_account(models, it))
}

/// Returns the way to an image: no nearer than the guide that named it, and that of its account.
pub fn way_to_guide_image(models: &Models, source: GuideSourceId) -> ImageWay {
    let origin = models.guide_states.load().get(source.0).and_then(|it| it.origin);
    let account = models.guide_sources.load().get(source.0).and_then(|it| it.account);
    // A source that was deleted, or a file of an admin.
    let reach = Reach::named_by(origin.unwrap_or(Distance::Public), AllowedNetworks::OfPlaylist);
    let account = account.and_then(|it| models.accounts.load().get(it.0).cloned());
    let server = account.as_ref().and_then(|it| server_of(models, it));
    ImageWay { reach, account, server }
}

/// Returns all addresses of an account that has several, and the one in use. A picture that cannot be fetched does not
/// change it.
fn server_of(models: &Models, account: &Account) -> Option<(Vec<SourceUrl>, SourceUrl)> {
    if account.further_addresses.is_empty() {
        return None;
    }
    let addresses = addresses_of(account);
    let records = models.account_addresses.load();
    let used = match records.get(account.id.0) {
        Some(record) => record.in_use(&addresses).cloned(),
        None => addresses.first().cloned(),
    };
    used.map(|it| (addresses, it))
}

/// Notes a name for a time, among so many at most.
fn note(names: &mut HashMap<String, Instant>, name: &str, time: Duration, names_max: usize) {
    let now = Instant::now();
    if names.len() >= names_max {
        names.retain(|_, until| *until > now);
    }
    if names.len() >= names_max {
        names.clear();
    }
    names.insert(name.to_owned(), now + time);
}

/// Returns the name of the copy of an address. An address that may lead farther has another copy, so that nobody gets an
/// image through it that they may not fetch.
fn file_name(url: &str, reach: Reach) -> String {
    let digest = Sha256::digest(format!("{reach:?} {url}"));
    HEXLOWER.encode(&digest[..20])
}
