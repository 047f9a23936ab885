//! Objects: the object store `HW` of NATS.

use async_nats::jetstream::object_store::{DeleteErrorKind, GetErrorKind, ObjectMetadata, ObjectStore};
use futures_util::TryStreamExt;
use tokio::io::AsyncRead;

use super::records::refused;
use super::session::Shared;
use super::streams::BUCKET;
use crate::engine::{EngineError, ObjectInfo};

async fn store(shared: &Shared, session: u64) -> Result<ObjectStore, EngineError> {
    let live = shared.live(session)?;
    let store = live.jetstream.get_object_store(BUCKET).await;
    store.map_err(|it| refused("open the object store", &it))
}

pub(super) async fn put(
    shared: &Shared,
    session: u64,
    name: &str,
    mut body: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<(), EngineError> {
    let store = store(shared, session).await?;
    let meta = ObjectMetadata { name: name.to_owned(), ..ObjectMetadata::default() };
    store.put(meta, &mut body).await.map_err(|it| refused("store an object", &it))?;
    Ok(())
}

pub(super) async fn open(
    shared: &Shared,
    session: u64,
    name: &str,
) -> Result<Option<Box<dyn AsyncRead + Send + Unpin>>, EngineError> {
    let store = store(shared, session).await?;
    match store.get(name).await {
        Ok(object) => Ok(Some(Box::new(object))),
        Err(error) if error.kind() == GetErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused("open an object", &error)),
    }
}

pub(super) async fn remove(shared: &Shared, session: u64, name: &str) -> Result<(), EngineError> {
    let store = store(shared, session).await?;
    match store.delete(name).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == DeleteErrorKind::NotFound => Ok(()),
        Err(error) => Err(refused("remove an object", &error)),
    }
}

pub(super) async fn list(shared: &Shared, session: u64) -> Result<Vec<ObjectInfo>, EngineError> {
    let store = store(shared, session).await?;
    let objects = store.list().await.map_err(|it| refused("list the objects", &it))?;
    let objects = objects.map_ok(|it| ObjectInfo { name: it.name, bytes: it.size as u64 });
    objects.try_collect().await.map_err(|it| refused("list the objects", &it))
}
