//! Files of the data folder in the object store of the cluster, encrypted, under a name that follows from their content.
//!
//! Memory: some chunks of 64 KiB. Which files exist is in records; this only transfers them. Other objects of the store
//! are left alone.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Engine, EngineError};
use domain::cluster::shared_file::{SHARED_FILE_BYTES_MAX, SharedFile};
use media::spawn_blocking;
use sha2::{Digest, Sha256};
use storage::log::{
    FILE_CHUNK_BYTES, FILE_HEADER_BYTES, FileOpener, FileSealer, LogKeys, SEALED_CHUNK_BYTES,
};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use tokio::time::timeout;

/// First part of the names of these objects.
const PREFIX: &str = "file.";
/// Longest time of a transfer. The largest file needs less on a link of 20 Mbit/s.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(500);

/// Why a file was not transferred. For people, without contents.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("NATS cannot be reached")]
    NoSession,
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the transfer took too long")]
    TimedOut,
    #[error("the object store does not have the file")]
    Missing,
    #[error("the file in the object store is not the expected one")]
    Other,
    #[error("the file has {0} bytes, and files of at most {SHARED_FILE_BYTES_MAX} are shared")]
    TooLong(u64),
    #[error(transparent)]
    Store(#[from] storage::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file as it is in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// SHA-256 of the content.
    pub digest: [u8; 32],
    /// Size of the content.
    pub bytes: u64,
    pub name: String,
}

/// Transfers files to the object store and from it.
#[derive(Clone, Debug)]
pub struct FileExchange {
    engine: Arc<dyn Engine>,
}

impl FileExchange {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    fn session(&self) -> Result<u64, FileError> {
        let session = self.engine.state().borrow().session();
        session.map(|it| it.number).ok_or(FileError::NoSession)
    }

    /// Writes a file to the object store. It is there when this returns. If it `is_secret`, only full nodes can read it.
    ///
    /// # Errors
    /// An object that is not complete may be left, which nobody can read.
    pub async fn put(&self, keys: &LogKeys, path: &Path, is_secret: bool) -> Result<StoredObject, FileError> {
        let of_file = path.to_owned();
        let measuring = spawn_blocking(move || digest_of(&of_file));
        let (digest, bytes) = measuring.await.map_err(io::Error::other)??;
        if bytes > SHARED_FILE_BYTES_MAX {
            return Err(FileError::TooLong(bytes));
        }
        let sealer = FileSealer::new(keys, is_secret, &digest)?;
        let name = format!("{PREFIX}{}", sealer.name());
        let session = self.session()?;
        let (into, mut body) = duplex(SEALED_CHUNK_BYTES);
        let sealing = seal_into(File::open(path).await?, sealer, into);
        let putting = async { Ok::<_, FileError>(self.engine.put_object(session, &name, &mut body).await?) };
        // The first error ends both: neither side would notice that the other has stopped.
        let both = timeout(TRANSFER_TIMEOUT, async { tokio::try_join!(sealing, putting) }).await;
        let (n_sealed, ()) = both.map_err(|_| FileError::TimedOut)??;
        if n_sealed != bytes {
            return Err(FileError::Io(io::Error::other("the file was changed while it was read")));
        }
        Ok(StoredObject { digest, bytes, name })
    }

    /// Writes the content of a file to a new file, and makes it durable.
    ///
    /// # Errors
    /// The new file may exist, and is useless.
    pub async fn fetch(&self, keys: &LogKeys, file: &SharedFile, into: &Path) -> Result<(), FileError> {
        let session = self.session()?;
        let fetching = async {
            let object = self.engine.object(session, &file.object).await?.ok_or(FileError::Missing)?;
            let name = file.object.strip_prefix(PREFIX).ok_or(FileError::Other)?;
            let into = File::options().write(true).create_new(true).mode(0o600).open(into).await?;
            open_into(object, keys, name, file, into).await
        };
        timeout(TRANSFER_TIMEOUT, fetching).await.map_err(|_| FileError::TimedOut)?
    }

    /// Lists the names of all objects that are such files, also of incomplete ones.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub async fn names(&self) -> Result<Vec<String>, FileError> {
        let objects = self.engine.objects(self.session()?).await?;
        Ok(objects.into_iter().map(|it| it.name).filter(|it| it.starts_with(PREFIX)).collect())
    }

    /// Lists the ids of uploads that are not complete, of any object.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub async fn unfinished(&self) -> Result<Vec<String>, FileError> {
        Ok(self.engine.unfinished_uploads(self.session()?).await?)
    }

    /// Removes the parts of an upload that was cut off.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub async fn remove_unfinished(&self, id: &str) -> Result<(), FileError> {
        Ok(self.engine.remove_upload(self.session()?, id).await?)
    }

    /// Removes an object that is such a file.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub async fn remove(&self, name: &str) -> Result<(), FileError> {
        if !name.starts_with(PREFIX) {
            return Err(FileError::Other);
        }
        Ok(self.engine.remove_object(self.session()?, name).await?)
    }
}

/// Returns digest and size of a file. Blocks.
///
/// # Errors
/// If the file cannot be read.
pub fn digest_of(path: &Path) -> io::Result<([u8; 32], u64)> {
    let mut file = std::fs::File::open(path)?;
    let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; FILE_CHUNK_BYTES]);
    loop {
        let n = io::Read::read(&mut file, &mut buffer)?;
        if n == 0 {
            return Ok((digest.finalize().into(), bytes));
        }
        digest.update(&buffer[..n]);
        bytes += n as u64;
    }
}

/// Returns the number of bytes that were read. Without an error, the last chunk was written.
async fn seal_into(
    mut file: File,
    mut sealer: FileSealer,
    mut into: impl AsyncWrite + Unpin,
) -> Result<u64, FileError> {
    into.write_all(&sealer.header()).await?;
    let (mut chunk, mut bytes) = (vec![0; FILE_CHUNK_BYTES], 0);
    loop {
        let n = fill(&mut file, &mut chunk).await?;
        bytes += n as u64;
        into.write_all(&sealer.seal(&chunk[..n])?).await?;
        if n < chunk.len() {
            into.shutdown().await?;
            return Ok(bytes);
        }
    }
}

async fn open_into(
    mut object: impl AsyncRead + Unpin,
    keys: &LogKeys,
    name: &str,
    expected: &SharedFile,
    mut into: File,
) -> Result<(), FileError> {
    let mut header = [0; FILE_HEADER_BYTES];
    object.read_exact(&mut header).await?;
    let mut opener = FileOpener::new(keys, name, header)?;
    let (mut sealed, mut digest, mut bytes) = (vec![0; SEALED_CHUNK_BYTES], Sha256::new(), 0);
    loop {
        let n = fill(&mut object, &mut sealed).await?;
        let chunk = opener.open(&sealed[..n])?;
        bytes += chunk.len() as u64;
        if bytes > expected.bytes {
            return Err(FileError::Other);
        }
        digest.update(&chunk);
        into.write_all(&chunk).await?;
        if n < sealed.len() {
            break;
        }
    }
    let is_expected = bytes == expected.bytes && digest.finalize()[..] == expected.digest;
    if !is_expected {
        return Err(FileError::Other);
    }
    into.flush().await?;
    Ok(into.sync_all().await?)
}

/// Reads until the buffer is full or there is no more. Returns the number of bytes.
async fn fill(from: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match from.read(&mut buffer[n..]).await {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use cluster::testing::MemoryStore;

    use super::*;

    fn record(stored: &StoredObject) -> SharedFile {
        SharedFile {
            id: 1,
            folder: "logos".to_owned(),
            name: "a.png".to_owned(),
            digest: stored.digest,
            bytes: stored.bytes,
            is_secret: false,
            object: stored.name.clone(),
            shared_at: 0,
        }
    }

    #[tokio::test]
    async fn a_file_of_any_size_arrives_as_it_was_and_the_store_sees_nothing_of_it() {
        let store = MemoryStore::default();
        let engine = Arc::new(store.connect());
        let exchange = FileExchange::new(engine.clone());
        let folder = tempfile::tempdir().unwrap();
        let keys = LogKeys::new().unwrap();
        for bytes in
            [0, 1, FILE_CHUNK_BYTES - 1, FILE_CHUNK_BYTES, FILE_CHUNK_BYTES + 1, 5 * FILE_CHUNK_BYTES]
        {
            let content = b"plain text ".repeat(bytes / 11 + 1)[..bytes].to_vec();
            let path = folder.path().join(format!("from-{bytes}"));
            std::fs::write(&path, &content).unwrap();
            let stored = exchange.put(&keys, &path, bytes % 2 == 0).await.unwrap();
            assert_eq!(stored.bytes, bytes as u64);
            assert_eq!(
                exchange.put(&keys, &path, bytes % 2 == 0).await.unwrap(),
                stored,
                "one name per content"
            );
            let session = exchange.session().unwrap();
            let mut object = engine.object(session, &stored.name).await.unwrap().unwrap();
            let mut sealed = Vec::new();
            object.read_to_end(&mut sealed).await.unwrap();
            assert!(!sealed.windows(10).any(|it| it == b"plain text"));
            let into = folder.path().join(format!("into-{bytes}"));
            exchange.fetch(&keys, &record(&stored), &into).await.unwrap();
            assert!(std::fs::read(&into).unwrap() == content, "{bytes}");

            let other = SharedFile { digest: [0; 32], ..record(&stored) };
            let refused = exchange.fetch(&keys, &other, &folder.path().join(format!("other-{bytes}"))).await;
            assert!(matches!(refused, Err(FileError::Other)), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_truncated_object_and_one_that_grew_are_refused() {
        let store = MemoryStore::default();
        let engine = Arc::new(store.connect());
        let exchange = FileExchange::new(engine.clone());
        let folder = tempfile::tempdir().unwrap();
        let keys = LogKeys::new().unwrap();
        let path = folder.path().join("from");
        std::fs::write(&path, vec![7; FILE_CHUNK_BYTES + 10]).unwrap();
        let stored = exchange.put(&keys, &path, false).await.unwrap();
        let session = exchange.session().unwrap();
        let mut sealed = Vec::new();
        engine.object(session, &stored.name).await.unwrap().unwrap().read_to_end(&mut sealed).await.unwrap();
        let whole = sealed.len();
        let longer = [&sealed[..], &[0; 50]].concat();
        for wrong in
            [&sealed[..whole - 1], &sealed[..FILE_HEADER_BYTES + SEALED_CHUNK_BYTES], &sealed[..3], &longer]
        {
            engine.put_object(session, &stored.name, &mut &*wrong).await.unwrap();
            let into = folder.path().join(format!("into-{}", wrong.len()));
            assert!(exchange.fetch(&keys, &record(&stored), &into).await.is_err(), "{}", wrong.len());
        }
        exchange.remove(&stored.name).await.unwrap();
        let missing = exchange.fetch(&keys, &record(&stored), &folder.path().join("into")).await;
        assert!(matches!(missing, Err(FileError::Missing)), "{missing:?}");
    }

    #[tokio::test]
    async fn objects_of_others_are_neither_listed_nor_removed() {
        let store = MemoryStore::default();
        let engine = Arc::new(store.connect());
        let exchange = FileExchange::new(engine.clone());
        let session = exchange.session().unwrap();
        for name in ["snapshot.1", "file.abc"] {
            engine.put_object(session, name, &mut &b"x"[..]).await.unwrap();
        }
        assert_eq!(exchange.names().await.unwrap(), ["file.abc"]);
        assert!(matches!(exchange.remove("snapshot.1").await, Err(FileError::Other)));
        exchange.remove("file.abc").await.unwrap();
        assert_eq!(exchange.names().await.unwrap(), Vec::<String>::new());
        assert_eq!(engine.objects(session).await.unwrap().len(), 1);
        engine.disconnect();
        assert!(matches!(exchange.names().await, Err(FileError::NoSession)));
    }
}
