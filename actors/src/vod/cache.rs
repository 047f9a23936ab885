//! The beginning and the end of films that were opened, in memory and by option also on disk.
//!
//! Players read both before they play: the end has the index of many containers. The bytes of a file are dropped when its
//! length or its validator changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::vod_session::{KnownBytes, Pieces};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::disk::FilmDisk;

/// Number of bytes that are kept of the beginning and of the end of a file, each.
pub(crate) const EDGE_BYTES: u64 = 2 << 20;
/// Maximum number of bytes of all files in memory, unless a setting says otherwise.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of files. Of a file without bytes, the length is remembered.
const FILES_MAX: usize = 4_096;
/// Time after which the provider is asked again whether a file is still the same. Without it a file that is small enough to
/// be here whole would stay as it was for ever.
const CONFIRMED_FOR: Duration = Duration::from_secs(3_600);

/// Identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) file: Uuid,
    pub(crate) length: u64,
    /// The entity tag or the date that the provider sends.
    pub(crate) validator: Option<String>,
}

impl FileVersion {
    /// Returns whether both can be the same content. A provider with several servers may send a validator from some only.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let validators = self.validator.as_ref().zip(other.validator.as_ref());
        (self.file, self.length) == (other.file, other.length) && validators.is_none_or(|it| it.0 == it.1)
    }
}

struct CachedFile {
    version: FileVersion,
    pieces: Pieces,
    /// Number of bytes that are on disk.
    n_saved: usize,
    last_used: u64,
    /// When the provider sent this version last.
    confirmed_at: Instant,
}

#[derive(Default)]
struct Inner {
    files: HashMap<Uuid, CachedFile>,
    n_bytes: usize,
    clock: u64,
}

/// The cache. Its lock is held for the time of one look-up.
pub(crate) struct FileCache {
    inner: Mutex<Inner>,
    bytes_max: usize,
    disk: Option<Arc<FilmDisk>>,
}

/// How much is kept of films.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilmCacheSettings {
    /// Maximum number of bytes in memory.
    pub memory_bytes: usize,
    /// A folder for more, and the maximum number of its bytes.
    pub disk: Option<(PathBuf, u64)>,
}

impl Default for FilmCacheSettings {
    fn default() -> Self {
        Self { memory_bytes: CACHE_BYTES_MAX, disk: None }
    }
}

impl Default for FileCache {
    fn default() -> Self {
        Self::new(FilmCacheSettings::default())
    }
}

impl FileCache {
    pub(crate) fn new(settings: FilmCacheSettings) -> Self {
        let disk = settings.disk.map(|(folder, bytes_max)| Arc::new(FilmDisk::new(folder, bytes_max)));
        Self { inner: Mutex::default(), bytes_max: settings.memory_bytes, disk }
    }

    pub(crate) fn disk(&self) -> Option<&Arc<FilmDisk>> {
        self.disk.as_ref()
    }

    /// Returns whether no byte of a file is in memory.
    pub(crate) fn lacks(&self, file: Uuid) -> bool {
        self.inner.lock().files.get(&file).is_none_or(|it| it.pieces.n_bytes() == 0)
    }

    /// Keeps what was read from the disk, unless another content of the file is known.
    pub(crate) fn restore(&self, version: &FileVersion, parts: Vec<(u64, Bytes)>) {
        if self.version(version.file).is_some_and(|it| !it.agrees_with(version)) {
            return;
        }
        self.remember(version);
        for (at, bytes) in parts {
            self.record(version, at, &bytes);
        }
        if let Some(file) = self.inner.lock().files.get_mut(&version.file) {
            file.n_saved = file.pieces.n_bytes();
        }
    }

    /// Returns what is in memory of a file if it is more than on disk, and counts it as saved.
    pub(crate) fn take_unsaved(&self, file: Uuid) -> Option<(FileVersion, Vec<(u64, Bytes)>)> {
        let mut inner = self.inner.lock();
        let file = inner.files.get_mut(&file).filter(|it| it.pieces.n_bytes() > it.n_saved)?;
        file.n_saved = file.pieces.n_bytes();
        Some((file.version.clone(), file.pieces.iter().map(|(at, bytes)| (at, bytes.clone())).collect()))
    }

    /// Returns what is remembered about a file; `None` if the provider has to be asked again.
    pub(crate) fn version(&self, file: Uuid) -> Option<FileVersion> {
        let inner = self.inner.lock();
        let file = inner.files.get(&file).filter(|it| it.confirmed_at.elapsed() < CONFIRMED_FOR)?;
        Some(file.version.clone())
    }

    /// Remembers a file as its provider sends it now. What is known of another content is dropped.
    pub(crate) fn remember(&self, version: &FileVersion) {
        let mut inner = self.inner.lock();
        let known = inner.files.get(&version.file).map(|it| it.version.agrees_with(version));
        if known == Some(false) {
            inner.remove(version.file);
        }
        let last_used = inner.tick();
        let confirmed_at = Instant::now();
        let new = || CachedFile {
            version: version.clone(),
            pieces: Pieces::default(),
            n_saved: 0,
            last_used,
            confirmed_at,
        };
        let file = inner.files.entry(version.file).or_insert_with(new);
        (file.last_used, file.confirmed_at) = (last_used, confirmed_at);
        inner.shrink(self.bytes_max, version.file);
    }

    /// Keeps the part of these bytes that is at the beginning or at the end of the file.
    pub(crate) fn record(&self, version: &FileVersion, at: u64, bytes: &Bytes) {
        let end = at + bytes.len() as u64;
        let tail = version.length.saturating_sub(EDGE_BYTES);
        if at >= EDGE_BYTES && end <= tail {
            return;
        }
        let mut inner = self.inner.lock();
        let last_used = inner.tick();
        let Some(file) = inner.files.get_mut(&version.file).filter(|it| it.version.agrees_with(version))
        else {
            return;
        };
        file.last_used = last_used;
        let before = file.pieces.n_bytes();
        for part in [at..end.min(EDGE_BYTES), at.max(tail).max(EDGE_BYTES)..end] {
            if part.start < part.end && file.pieces.end_of_run(part.start) < part.end {
                // A copy, because a slice would keep the buffer of the connection.
                let slice = &bytes[(part.start - at) as usize..(part.end - at) as usize];
                file.pieces.insert(part.start, Bytes::copy_from_slice(slice));
            }
        }
        let n_new = file.pieces.n_bytes() - before;
        inner.n_bytes += n_new;
        inner.shrink(self.bytes_max, version.file);
    }

    /// Returns the number of bytes of all files.
    pub(crate) fn n_bytes(&self) -> usize {
        self.inner.lock().n_bytes
    }

    fn look_up<T>(&self, version: &FileVersion, find: impl FnOnce(&Pieces) -> T) -> Option<T> {
        let inner = self.inner.lock();
        let file = inner.files.get(&version.file).filter(|it| it.version.agrees_with(version))?;
        Some(find(&file.pieces))
    }
}

impl Inner {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn remove(&mut self, file: Uuid) {
        if let Some(file) = self.files.remove(&file) {
            self.n_bytes -= file.pieces.n_bytes();
        }
    }

    /// Drops the files that were not used for the longest time, but not `kept`.
    fn shrink(&mut self, bytes_max: usize, kept: Uuid) {
        while self.n_bytes > bytes_max || self.files.len() > FILES_MAX {
            let others = self.files.iter().filter(|it| *it.0 != kept);
            let others = others.filter(|it| self.files.len() > FILES_MAX || it.1.pieces.n_bytes() > 0);
            let Some((file, _)) = others.min_by_key(|it| it.1.last_used) else { return };
            let file = *file;
            match self.files.get_mut(&file) {
                // Its length stays known.
                Some(it) if self.n_bytes > bytes_max => {
                    self.n_bytes -= it.pieces.n_bytes();
                    it.pieces.clear();
                }
                _ => self.remove(file),
            }
        }
    }
}

/// The cached bytes of one content of a file.
#[derive(Clone)]
pub(crate) struct KnownFile {
    pub(crate) cache: Arc<FileCache>,
    /// `None` as long as nothing is known about the file.
    pub(crate) version: Option<FileVersion>,
}

impl KnownBytes for KnownFile {
    fn piece(&self, at: u64) -> Option<Bytes> {
        self.cache.look_up(self.version.as_ref()?, |it| it.piece(at)).flatten()
    }

    fn known_until(&self, at: u64) -> u64 {
        let Some(version) = &self.version else { return at };
        // In the middle of the file, nothing has to be looked up.
        if at >= EDGE_BYTES && at + EDGE_BYTES < version.length {
            return at;
        }
        self.cache.look_up(version, |it| it.end_of_run(at)).unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u128, length: u64, validator: &str) -> FileVersion {
        let validator = Some(validator).filter(|it| !it.is_empty()).map(str::to_owned);
        FileVersion { file: Uuid::from_u128(number), length, validator }
    }

    fn known(cache: &Arc<FileCache>, version: &FileVersion) -> KnownFile {
        KnownFile { cache: cache.clone(), version: Some(version.clone()) }
    }

    #[test]
    fn the_edges_of_a_file_are_kept_and_its_middle_is_not() {
        let cache = Arc::new(FileCache::default());
        let film = version(1, 10 << 20, "a");
        cache.remember(&film);
        let mut at = 0;
        while at < film.length {
            cache.record(&film, at, &Bytes::from(vec![at as u8; 60_000.min((film.length - at) as usize)]));
            at += 60_000;
        }
        let known = known(&cache, &film);
        assert_eq!(known.known_until(0), EDGE_BYTES);
        assert_eq!(known.known_until(EDGE_BYTES), EDGE_BYTES);
        assert_eq!(known.known_until(film.length - EDGE_BYTES), film.length);
        assert_eq!(known.piece(film.length - 1).map(|it| it.len()), Some(1));
        assert_eq!(cache.n_bytes() as u64, 2 * EDGE_BYTES);
    }

    #[test]
    fn another_content_of_the_file_drops_the_bytes() {
        let cache = Arc::new(FileCache::default());
        let film = version(1, 1000, "a");
        cache.remember(&film);
        cache.record(&film, 0, &Bytes::from_static(b"old"));
        assert_eq!(known(&cache, &film).known_until(0), 3);
        cache.remember(&version(1, 1000, ""));
        assert_eq!(known(&cache, &film).known_until(0), 3, "a server without a validator");
        for other in [version(1, 1000, "b"), version(1, 1001, "a")] {
            cache.remember(&film);
            cache.record(&film, 0, &Bytes::from_static(b"old"));
            cache.remember(&other);
            assert_eq!(known(&cache, &film).known_until(0), 0);
            assert_eq!((known(&cache, &other).known_until(0), cache.n_bytes()), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_provider_is_asked_again_after_an_hour() {
        let cache = Arc::new(FileCache::default());
        let small = version(1, 100, "a");
        cache.remember(&small);
        cache.record(&small, 0, &Bytes::from_static(&[7; 100]));
        tokio::time::advance(CONFIRMED_FOR - Duration::from_secs(1)).await;
        assert_eq!(cache.version(small.file), Some(small.clone()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.version(small.file), None);

        // The same content is confirmed, and its bytes are still here.
        cache.remember(&small);
        assert_eq!(cache.version(small.file), Some(small.clone()));
        assert_eq!(known(&cache, &small).known_until(0), 100);
    }

    #[test]
    fn the_file_that_was_not_used_for_the_longest_time_is_dropped_first() {
        let cache = Arc::new(FileCache { bytes_max: 2000, ..FileCache::default() });
        let films = [1, 2, 3].map(|it| version(it, 900, "a"));
        for film in &films {
            cache.remember(film);
            cache.record(film, 0, &Bytes::from(vec![0; 900]));
            cache.record(&films[0], 0, &Bytes::from(vec![0; 900]));
        }
        let known = |at: usize| known(&cache, &films[at]).known_until(0);
        assert_eq!([known(0), known(1), known(2)], [900, 0, 900]);
        assert_eq!(cache.version(films[1].file), Some(films[1].clone()), "its length stays known");
        assert_eq!(cache.n_bytes(), 1800);
    }
}
