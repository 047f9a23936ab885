//! Reads XMLTV: from an address, from an uploaded file, or from a panel.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::account::Account;
use domain::account_addresses::addresses_of;
use domain::egress::Reach;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::xmltv::{Item, XmltvError, XmltvLimits, XmltvReader, XmltvSummary};
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use super::download::{Download, download};
use super::error::GuideError;
use super::input::{ContentMark, GuideContent, GuideContext, GuideInput, GuideSink};
use super::progress::GuidePhase;
use crate::addresses::AccountAddresses;
use crate::fetch::Unpacked;

/// Number of elements between two reports of the progress.
const REPORT_PERIOD: u64 = 256;

/// Elements that are handed over together. A programme can have hundreds of kilobytes.
const BATCH: usize = 64;
/// Batches that wait for the sink.
const BATCHES: usize = 2;

/// Number of bytes that are read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// The guide of a source of the kinds XMLTV and panel.
pub(super) struct XmltvInput {
    context: GuideContext,
    /// How far the address of the source may lead.
    reach: Reach,
}

/// The place of a guide.
enum Place {
    Upload(String),
    Url(UrlPlace),
}

/// An address of a guide.
struct UrlPlace {
    url: SourceUrl,
    headers: RequestHeaders,
    reach: Reach,
    /// The account whose server the guide is on, if it has a way of its own to it.
    account: Option<Arc<Account>>,
}

impl XmltvInput {
    pub(super) fn new(context: GuideContext) -> Self {
        Self { context, reach: Reach::default() }
    }

    /// Lets the address lead only so far, because no admin typed it.
    pub(super) fn within(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    fn place(&self, addresses: &AccountAddresses) -> Result<Place, GuideError> {
        let source = &self.context.source;
        let accounts = self.context.models.accounts.load();
        if source.kind == GuideSourceKind::Panel {
            let account = source.account.and_then(|it| accounts.get(it.0));
            return account.and_then(|it| panel_place(it, addresses)).ok_or(GuideError::NoPanel);
        }
        match (&source.file, &source.url) {
            (Some(name), _) => Ok(Place::Upload(name.clone())),
            (None, Some(url)) => {
                let account = accounts.iter().find(|it| names_guide(it, url)).cloned();
                Ok(Place::Url(UrlPlace {
                    url: account.as_ref().map_or_else(|| url.clone(), |it| addresses.place(it, url)),
                    headers: login_header(source),
                    reach: self.reach,
                    account,
                }))
            }
            (None, None) => Err(GuideError::NoLocation),
        }
    }

    fn open(&self, sink: &mut dyn GuideSink) -> Result<Download, GuideError> {
        let addresses = AccountAddresses::new(self.context.models.clone());
        // Each further address of an account is asked at most once.
        let mut n_asked = 0;
        loop {
            let place = match self.place(&addresses)? {
                Place::Upload(name) => return self.open_upload(&name),
                Place::Url(place) => place,
            };
            let mut context = self.context.clone();
            if let Some(account) = &place.account {
                context.fetch = context.fetch.for_account(account);
            }
            let done = download(&context, &place.url, &place.headers, place.reach, sink);
            let (Err(GuideError::Fetch(error)), Some(account)) = (&done, &place.account) else { return done };
            n_asked += 1;
            // The change of the address is stored by a task.
            let _runtime = self.context.runtime.enter();
            // The guide of a dead server is at the next one, as everything of the account is.
            let is_elsewhere = addresses.guide_failed(account, &place.url, error);
            if !is_elsewhere || n_asked > account.further_addresses.len() {
                return done;
            }
        }
    }

    fn open_upload(&self, name: &str) -> Result<Download, GuideError> {
        let context = &self.context;
        let mut file = File::open(context.uploads.join(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GuideError::NoUpload,
            _ => GuideError::Unread(error),
        })?;
        let (n_bytes, digest) = hash_of(&mut file)?;
        let mark = ContentMark { digest: Some(digest), ..ContentMark::default() };
        if context.has_guide && !context.force && context.state.digest == mark.digest {
            return Ok(Download::Unchanged(mark));
        }
        file.rewind()?;
        Ok(Download::New { file, n_bytes, mark })
    }
}

/// Returns whether a guide at this address is one of an account with a proxy, several addresses, or nodes that may use it: the
/// list of the account names it, or it is on one of the account's servers.
fn names_guide(account: &Account, url: &SourceUrl) -> bool {
    let is_plain = account.proxy.is_none() && account.certificates.is_default();
    if is_plain && account.further_addresses.is_empty() && account.nodes.is_empty() {
        return false;
    }
    let is_host =
        |it: &SourceUrl| it.host().zip(url.host()).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host));
    account.guide_urls.contains(url) || addresses_of(account).iter().any(is_host)
}

/// Returns the place of the guide of a panel account.
fn panel_place(account: &Arc<Account>, addresses: &AccountAddresses) -> Option<Place> {
    let login = account.list.panel().filter(|_| account.is_active)?;
    Some(Place::Url(UrlPlace {
        url: addresses.place(account, &login.guide_url()),
        headers: account.headers.clone(),
        reach: Reach::typed(account.allowed_networks),
        account: Some(Arc::clone(account)),
    }))
}

/// Returns the header for the login of a source, if it has one.
fn login_header(source: &GuideSource) -> RequestHeaders {
    let mut headers = RequestHeaders::default();
    if let (Some(username), Some(password)) = (&source.username, &source.password) {
        let login = STANDARD.encode(format!("{username}:{}", password.expose()));
        headers.set("Authorization", &format!("Basic {login}"));
    }
    headers
}

impl GuideInput for XmltvInput {
    fn run(&mut self, sink: &mut dyn GuideSink) -> Result<GuideContent, GuideError> {
        let (file, n_bytes, mark) = match self.open(sink)? {
            Download::Unchanged(mark) => return Ok(GuideContent::Unchanged(mark)),
            Download::New { file, n_bytes, mark } => (file, n_bytes, mark),
        };
        let n_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { reader: file, n_bytes: n_read.clone() };
        let percent = || {
            let done = n_read.load(Ordering::Relaxed).saturating_mul(100) / n_bytes.max(1);
            u8::try_from(done.min(100)).unwrap_or(100)
        };
        let unpacked = Unpacked::new(BufReader::new(counted), self.context.unpacked_bytes_max)?;
        let bytes = BufReader::with_capacity(BUFFER_BYTES, unpacked);
        // A name that the IANA database no longer has leaves UTC.
        let zone = self.context.source.time_zone.as_deref().and_then(|it| TimeZone::get(it).ok());
        let reader = XmltvReader::new(bytes, XmltvLimits::default()).in_zone(zone);
        read(reader, self.context.force, percent, sink)?;
        Ok(GuideContent::Whole(mark))
    }
}

/// Reads a guide element by element into the sink, while a thread reads the next ones. `force` accepts a guide that is cut
/// off.
fn read(
    reader: XmltvReader<impl BufRead + Send>,
    force: bool,
    percent: impl Fn() -> u8,
    sink: &mut dyn GuideSink,
) -> Result<(), GuideError> {
    sink.progress(GuidePhase::Parsing, 0)?;
    let (mut n_elements, mut n_programmes) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        let (sender, batches) = sync_channel(BATCHES);
        let thread = std::thread::Builder::new().name("guide-reader".to_owned());
        let reading = thread.spawn_scoped(scope, move || read_batches(reader, &sender))?;
        for item in batches.into_iter().flatten() {
            match item {
                Ok(Item::Channel { key, names, icon }) => sink.channel(&key, &names, icon.as_deref())?,
                Ok(Item::Programme { channel, programme }) => {
                    sink.programme(&channel, &programme)?;
                    n_programmes += 1;
                }
                Err(XmltvError::Truncated) if force && n_programmes > 0 => break,
                Err(XmltvError::Truncated) => return Err(GuideError::Truncated { n_programmes }),
                Err(XmltvError::Io(error)) => return Err(GuideError::Unread(error)),
                Err(error) => return Err(GuideError::NotAGuide(error.to_string())),
            }
            n_elements += 1;
            if n_elements.is_multiple_of(REPORT_PERIOD) {
                sink.progress(GuidePhase::Parsing, percent())?;
            }
        }
        sink.damaged(&reading.join().map_err(|_| GuideError::Panicked)?);
        Ok(())
    })
}

/// Hands over the elements of a guide, until nobody wants more. Returns its counts.
fn read_batches(
    mut reader: XmltvReader<impl BufRead>,
    batches: &SyncSender<Vec<Result<Item, XmltvError>>>,
) -> XmltvSummary {
    loop {
        let batch: Vec<_> = reader.by_ref().take(BATCH).collect();
        if batch.is_empty() || batches.send(batch).is_err() {
            return *reader.summary();
        }
    }
}

/// Returns the length of a file in bytes, and its hash.
fn hash_of(file: &mut File) -> io::Result<(u64, [u8; 32])> {
    let (mut n_bytes, mut hash, mut piece) = (0, Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((n_bytes, hash.finalize().into())),
            n => {
                hash.update(&piece[..n]);
                n_bytes += n as u64;
            }
        }
    }
}

/// Counts the bytes that were read.
struct Counted<R> {
    reader: R,
    n_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = self.reader.read(buffer)?;
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        Ok(n_bytes)
    }
}
