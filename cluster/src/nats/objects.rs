//! Objects: the object store `HW` of NATS. An object consists of parts, and of a record that names them and is written last.

use std::collections::BTreeSet;

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

/// Lists the uploads that have parts but no record: those that go on, and those that were cut off.
pub(super) async fn unfinished(shared: &Shared, session: u64) -> Result<Vec<String>, EngineError> {
    let live = shared.live(session)?;
    let failed = |error: &dyn std::fmt::Display| refused("list the parts of objects", error);
    let stream = live.jetstream.get_stream(format!("OBJ_{BUCKET}")).await.map_err(|it| failed(&it))?;
    let prefix = format!("$O.{BUCKET}.C.");
    // The parts first: an upload that ends in between has a record.
    let mut parts = stream.info_with_subjects(format!("{prefix}>")).await.map_err(|it| failed(&it))?;
    let mut ids = BTreeSet::new();
    while let Some((subject, _)) = parts.try_next().await.map_err(|it| failed(&it))? {
        ids.extend(subject.strip_prefix(&prefix).map(str::to_owned));
    }
    let mut objects = store(shared, session).await?.list().await.map_err(|it| failed(&it))?;
    while let Some(object) = objects.try_next().await.map_err(|it| failed(&it))? {
        ids.remove(&object.nuid);
    }
    Ok(ids.into_iter().collect())
}

/// Removes the parts of an upload.
pub(super) async fn remove_unfinished(shared: &Shared, session: u64, id: &str) -> Result<(), EngineError> {
    let live = shared.live(session)?;
    let failed = |error: &dyn std::fmt::Display| refused("remove the parts of an object", error);
    let stream = live.jetstream.get_stream(format!("OBJ_{BUCKET}")).await.map_err(|it| failed(&it))?;
    stream.purge().filter(format!("$O.{BUCKET}.C.{id}")).await.map_err(|it| failed(&it))?;
    Ok(())
}
