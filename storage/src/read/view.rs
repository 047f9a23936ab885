//! Read models: values in memory that follow the records, for paths that must not wait for a disk.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::changes::Change;
use crate::error::Result;
use crate::store::Reader;

/// An immutable value that is replaced after each commit that concerns it, before the commit is answered.
pub struct View<T> {
    current: Arc<RwLock<Arc<T>>>,
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self { current: Arc::clone(&self.current) }
    }
}

impl<T> View<T> {
    /// The value after the last commit. Never waits for the disk.
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }
}

/// A view as the writer keeps it.
pub(crate) struct Kept {
    pub(crate) collections: &'static [&'static str],
    pub(crate) follow: Follow,
}

/// Brings a view up to date. False once nobody holds it.
type Follow = Box<dyn FnMut(&Reader<'_>, &Change) -> Result<bool> + Send>;
/// Makes a view, on the writer's thread.
pub(crate) type Keep = Box<dyn FnOnce(&Reader<'_>) -> Option<Kept> + Send>;

pub(crate) fn keep<T, F>(collections: &'static [&'static str], first: T, mut make: F) -> (View<T>, Kept)
where
    T: Send + Sync + 'static,
    F: FnMut(&Reader<'_>, Option<(&T, &Change)>) -> Result<T> + Send + 'static,
{
    let current = Arc::new(RwLock::new(Arc::new(first)));
    let view = View { current: Arc::clone(&current) };
    let current = Arc::downgrade(&current);
    let follow = Box::new(move |reader: &Reader<'_>, change: &Change| {
        let Some(current) = current.upgrade() else { return Ok(false) };
        let before = Arc::clone(&current.read());
        let after = Arc::new(make(reader, Some((&before, change)))?);
        *current.write() = after;
        Ok(true)
    });
    (view, Kept { collections, follow })
}
