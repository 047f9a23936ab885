//! Large answers that many players request, built once for all who may see the same: 20,000 channels are megabytes of text,
//! and at the start of an evening many apps ask for them at the same moment.
//!
//! An answer is used as long as the tables that it was built from are the present ones. All answers together, those on
//! their way to slow clients included, have a limit: a new one takes the place of the least recently used ones.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use bytes::Bytes;
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::PersonalPlaylistId;
use domain::lineup::ViewLimits;
use domain::logo::Logo;
use domain::personal_playlist::PersonalPlaylist;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use media::spawn_blocking;
use parking_lot::Mutex;
use route_frame::route::entity_tag;
use server::reply::Refusal;
use services::archives::{ArchiveCache, ChannelArchives};
use storage::{Models, Table};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, error};

use super::growing_text::GrowingText;
use super::marks::{MarkCache, MarkedChannels};

/// Maximum number of kept answers.
const ANSWERS_MAX: usize = 32;
/// Maximum size of all answers, in MiB. While an answer grows, it takes up to twice its size.
const MEBIBYTES_MAX: usize = 192;
const MEBIBYTE: usize = 1 << 20;
/// Maximum number of answers that are built at the same time; each uses one core.
const BUILDING_MAX: usize = 2;
/// Size of the pieces in which text is compressed, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The values that answers of one kind are built from, at one moment.
pub(crate) trait AnswerTables: Clone + Send + 'static {
    /// Everything that an answer depends on besides.
    type Key: PartialEq + Send + 'static;
    /// A text that clones share.
    type Answer: Clone + Send + 'static;

    /// Returns true if nothing was committed in between.
    fn are_same(&self, other: &Self) -> bool;

    /// Returns whether an answer is a part of a list: built quickly, and one of hundreds.
    fn is_part(key: &Self::Key) -> bool;
}

/// Everything that a list of channels depends on, besides the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerKey {
    /// Name of the list.
    pub(super) list: &'static str,
    /// The part of the list that was requested, if only a part was.
    pub(super) part: Option<u32>,
    /// Start of all addresses in the answer.
    pub(super) origin: String,
    pub(super) limits: ViewLimits,
    /// The personal playlists of the user, in order.
    pub(super) playlists: Vec<PersonalPlaylistId>,
    /// Whether the caller may watch the past of channels.
    pub(super) may_catch_up: bool,
    /// Whether the text is compressed.
    pub(super) is_gzip: bool,
}

/// The tables that lists of channels are built from, at one moment.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(super) channels: Arc<Table<Channel>>,
    pub(super) groups: Arc<Table<Group>>,
    pub(super) logos: Arc<Table<Logo>>,
    pub(super) playlists: Arc<Table<PersonalPlaylist>>,
    pub(super) archives: Arc<ChannelArchives>,
    pub(super) marked: Arc<MarkedChannels>,
}

impl Tables {
    pub(super) fn load(models: &Models, archives: &ArchiveCache, marks: &MarkCache) -> Self {
        Self {
            archives: archives.load(models),
            marked: marks.load(models),
            channels: models.channels.load(),
            groups: models.groups.load(),
            logos: models.logos.load(),
            playlists: models.personal_playlists.load(),
        }
    }
}

impl AnswerTables for Tables {
    type Key = AnswerKey;
    type Answer = PreparedAnswer;

    fn are_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.channels, &other.channels)
            && Arc::ptr_eq(&self.groups, &other.groups)
            && Arc::ptr_eq(&self.logos, &other.logos)
            && Arc::ptr_eq(&self.playlists, &other.playlists)
            && Arc::ptr_eq(&self.archives, &other.archives)
            && Arc::ptr_eq(&self.marked, &other.marked)
    }

    fn is_part(key: &AnswerKey) -> bool {
        key.part.is_some()
    }
}

/// A built answer; clones share the text.
#[derive(Clone, Debug)]
pub(crate) struct PreparedAnswer {
    pub(super) text: Bytes,
    pub(super) tag: HeaderValue,
}

/// The kept answers of one kind. Clones share them.
pub(crate) struct PreparedAnswers<T: AnswerTables = Tables>(Arc<Inner<T>>);

impl<T: AnswerTables> Clone for PreparedAnswers<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<T: AnswerTables> {
    /// The least recently used one is first.
    kept: Mutex<VecDeque<KeptAnswer<T>>>,
    building: Arc<Semaphore>,
    mebibytes: Arc<Semaphore>,
}

struct KeptAnswer<T: AnswerTables> {
    key: T::Key,
    tables: T,
    answer: T::Answer,
}

impl PreparedAnswers {
    pub(crate) fn new() -> Self {
        Self::with_limit(MEBIBYTES_MAX)
    }

    /// Returns the kept answer, or the one that `build` writes on a blocking thread.
    ///
    /// # Errors
    /// Returns 503 if all answers together would be too large.
    pub(super) async fn get(
        &self,
        key: AnswerKey,
        tables: Tables,
        build: impl FnOnce(&AnswerKey, &Tables, &mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<PreparedAnswer, Refusal> {
        if let Some(answer) = self.kept(&key, &tables) {
            return Ok(answer);
        }
        // The semaphore is never closed.
        let _turn = self.0.building.acquire().await.map_err(|_| Refusal::bug())?;
        // Another request may have built the same meanwhile.
        if let Some(answer) = self.kept(&key, &tables) {
            return Ok(answer);
        }
        let answers = self.clone();
        let building = spawn_blocking(move || {
            let answer = answers.build(&key, &tables, build)?;
            answers.keep(key, tables, answer.clone());
            Ok::<_, io::Error>(answer)
        });
        match building.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(too_large()),
            Err(panic) => {
                error!("failed to build an answer: {panic}");
                Err(Refusal::bug())
            }
        }
    }

    fn build(
        &self,
        key: &AnswerKey,
        tables: &Tables,
        build: impl FnOnce(&AnswerKey, &Tables, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<PreparedAnswer> {
        let text = CountedText { answers: self, bytes: Vec::new(), permits: Vec::new() };
        let text = if key.is_gzip {
            let mut pieces = BufWriter::with_capacity(PIECE_BYTES, GzEncoder::new(text, Compression::fast()));
            build(key, tables, &mut pieces)?;
            pieces.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?
        } else {
            let mut text = text;
            build(key, tables, &mut text)?;
            text
        };
        let tag = entity_tag(&text.bytes);
        let CountedText { mut bytes, permits, .. } = text;
        bytes.shrink_to_fit();
        Ok(PreparedAnswer { text: Bytes::from_owner(HeldText { bytes, _permits: permits }), tag })
    }
}

impl<T: AnswerTables<Answer = GrowingText>> PreparedAnswers<T> {
    /// Returns the kept text, or the one that `build` begins to write on a blocking thread. The text is read while it is
    /// written.
    ///
    /// # Errors
    /// Returns 503 if all answers together would be too large.
    pub(super) async fn follow(
        &self,
        key: T::Key,
        tables: T,
        build: impl FnOnce(&T::Key, &T, &mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<GrowingText, Refusal>
    where
        T::Key: Clone,
    {
        let text = match self.kept(&key, &tables) {
            Some(text) => text,
            None => self.begin(key, tables, build).await?,
        };
        text.begin().await.map_err(|_| too_large())?;
        Ok(text)
    }

    async fn begin(
        &self,
        key: T::Key,
        tables: T,
        build: impl FnOnce(&T::Key, &T, &mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<GrowingText, Refusal>
    where
        T::Key: Clone,
    {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.0.building).acquire_owned().await.map_err(|_| Refusal::bug())?;
        // Another request may have begun the same meanwhile.
        if let Some(text) = self.kept(&key, &tables) {
            return Ok(text);
        }
        let (text, writer) = GrowingText::new();
        self.keep(key.clone(), tables.clone(), text.clone());
        let (answers, unwritten, key_of_text) = (self.clone(), self.clone(), key.clone());
        let writing = spawn_blocking(move || {
            let _turn = turn;
            let written = writer.write(|| answers.take_mebibyte(), |out| build(&key, &tables, out));
            if let Err(failure) = written {
                answers.drop_kept(&key);
                debug!("a list was not written: {failure}");
            }
        });
        actors::spawn(async move {
            // Without a thread, the next request begins anew.
            if let Err(failure) = writing.await {
                unwritten.drop_kept(&key_of_text);
                debug!("a list was not written: {failure}");
            }
        });
        Ok(text)
    }

    fn drop_kept(&self, key: &T::Key) {
        self.0.kept.lock().retain(|it| it.key != *key);
    }
}

impl<T: AnswerTables> PreparedAnswers<T> {
    /// Keeps answers of at most this size in all, in MiB.
    pub(crate) fn with_limit(mebibytes: usize) -> Self {
        Self(Arc::new(Inner {
            kept: Mutex::default(),
            building: Arc::new(Semaphore::new(BUILDING_MAX)),
            mebibytes: Arc::new(Semaphore::new(mebibytes)),
        }))
    }

    fn kept(&self, key: &T::Key, tables: &T) -> Option<T::Answer> {
        let mut kept = self.0.kept.lock();
        let at = kept.iter().position(|it| it.key == *key && it.tables.are_same(tables))?;
        let found = kept.remove(at)?;
        let answer = found.answer.clone();
        kept.push_back(found);
        Some(answer)
    }

    /// Keeps an answer, and drops those of earlier tables. A part is built quickly, and there may be hundreds of them.
    fn keep(&self, key: T::Key, tables: T, answer: T::Answer) {
        if T::is_part(&key) {
            return;
        }
        let mut kept = self.0.kept.lock();
        kept.retain(|it| it.tables.are_same(&tables) && it.key != key);
        if kept.len() >= ANSWERS_MAX {
            kept.pop_front();
        }
        kept.push_back(KeptAnswer { key, tables, answer });
    }

    /// Takes a permit for one MiB, if necessary from the answers that nobody reads.
    fn take_mebibyte(&self) -> io::Result<OwnedSemaphorePermit> {
        loop {
            if let Ok(permit) = Arc::clone(&self.0.mebibytes).try_acquire_owned() {
                return Ok(permit);
            }
            let oldest = self.0.kept.lock().pop_front();
            oldest.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
    }
}

fn too_large() -> Refusal {
    Refusal::unavailable("too many large answers at the same time").retry_soon()
}

/// A text that takes a permit for each MiB.
struct CountedText<'a> {
    answers: &'a PreparedAnswers,
    bytes: Vec<u8>,
    permits: Vec<OwnedSemaphorePermit>,
}

impl Write for CountedText<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        while self.bytes.len() + piece.len() > self.permits.len() * MEBIBYTE {
            self.permits.push(self.answers.take_mebibyte()?);
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text that returns its permits when the last client has read it.
struct HeldText {
    bytes: Vec<u8>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::ids::ChannelId;
    use storage::Store;
    use uuid::Uuid;

    use super::*;

    async fn models() -> Models {
        let models =
            spawn_blocking(|| Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap());
        models.await.unwrap()
    }

    fn key(n: u32) -> AnswerKey {
        let limits = ViewLimits::none();
        AnswerKey {
            list: "a",
            part: None,
            origin: format!("http://{n}"),
            limits,
            playlists: Vec::new(),
            may_catch_up: true,
            is_gzip: false,
        }
    }

    /// Holds T-mem.3.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_is_built_once_until_a_table_changes() {
        let (models, answers) = (models().await, PreparedAnswers::new());
        let (archives, marks) = (ArchiveCache::default(), MarkCache::default());
        let n_built = Arc::new(AtomicUsize::new(0));
        let get = async |key: AnswerKey| {
            let n_built = Arc::clone(&n_built);
            let building =
                answers.get(key, Tables::load(&models, &archives, &marks), move |_, tables, out| {
                    n_built.fetch_add(1, Ordering::SeqCst);
                    write!(out, "{} channels", tables.channels.len())
                });
            building.await.unwrap()
        };
        let all: Vec<_> = (0..20).map(|_| get(key(1))).collect();
        let first = futures_util::future::join_all(all).await;
        assert!(first.iter().all(|it| it.text == "0 channels" && it.tag == first[0].tag));
        // Two may begin at the same moment.
        assert!(n_built.load(Ordering::SeqCst) <= BUILDING_MAX);
        let before = n_built.load(Ordering::SeqCst);
        models
            .store
            .write(|write| write.put(&Channel::new(ChannelId(1), Uuid::from_u128(1), "a", 0)))
            .await
            .unwrap();
        let changed = get(key(1)).await;
        assert_eq!((&changed.text[..], n_built.load(Ordering::SeqCst)), (&b"1 channels"[..], before + 1));
        assert_ne!(changed.tag, first[0].tag);
        assert_eq!(answers.0.kept.lock().len(), 1, "the earlier answer is dropped");
        get(key(2)).await;
        get(AnswerKey { list: "b", ..key(1) }).await;
        for _ in 0..2 {
            get(AnswerKey { part: Some(7), ..key(1) }).await;
        }
        assert_eq!(n_built.load(Ordering::SeqCst), before + 5, "a part is not kept");
        let gzip = get(AnswerKey { is_gzip: true, ..key(1) }).await;
        let mut text = String::new();
        flate2::read::GzDecoder::new(&gzip.text[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "1 channels");
        for n in 0..40 {
            get(key(n)).await;
        }
        assert_eq!(answers.0.kept.lock().len(), ANSWERS_MAX);
    }

    /// Holds T-mem.3.
    #[tokio::test(flavor = "multi_thread")]
    async fn all_answers_together_have_a_maximum_size() {
        let (models, answers) = (models().await, PreparedAnswers::with_limit(3));
        let (archives, marks) = (ArchiveCache::default(), MarkCache::default());
        let get = async |n: u32, mebibytes: usize| {
            let piece = vec![b'a'; MEBIBYTE];
            let building = answers.get(key(n), Tables::load(&models, &archives, &marks), move |_, _, out| {
                (0..mebibytes).try_for_each(|_| out.write_all(&piece))
            });
            building.await
        };
        assert!(get(1, 4).await.is_err());
        let first = get(1, 2).await.unwrap();
        assert!(get(2, 2).await.is_err(), "the first one is still being read");
        drop(first);
        let second = get(2, 2).await.unwrap();
        assert_eq!(second.text.len(), 2 * MEBIBYTE);
        drop(second);
        assert_eq!(get(3, 1).await.unwrap().text.len(), MEBIBYTE);
        assert_eq!(answers.0.kept.lock().len(), 2);
    }
}
