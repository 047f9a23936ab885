//! Views: values in memory that follow the records, for code that must not wait for the disk.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::changes::Change;
use crate::engine::shared::Shared;
use crate::error::Result;
use crate::read::collection::Collection;
use crate::record::Record;

/// An immutable value that is replaced after each commit to its collections, before that commit is answered.
pub struct View<T> {
    current: Arc<RwLock<Arc<T>>>,
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self { current: Arc::clone(&self.current) }
    }
}

impl<T> View<T> {
    /// Returns the value after the last commit. Never waits for the disk.
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }
}

/// Read access for the function that builds a view, while the writer waits.
pub struct Reader<'a> {
    shared: &'a Shared,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared }
    }

    pub fn collection<T: Record>(&self) -> Collection<'a, T> {
        Collection::new(self.shared)
    }
}

/// The writer's part of a view.
pub(crate) struct RegisteredView {
    pub(crate) collections: &'static [&'static str],
    pub(crate) follow: Follow,
}

/// Updates a view after a commit. Returns false if the view is no longer used.
type Follow = Box<dyn FnMut(&Reader<'_>, &Change) -> Result<bool> + Send>;
/// Creates a view, on the thread of the writer.
pub(crate) type RegisterView = Box<dyn FnOnce(&Reader<'_>) -> Option<RegisteredView> + Send>;

/// Creates a view with its first value.
pub(crate) fn create<T, F>(
    collections: &'static [&'static str],
    first: T,
    mut build: F,
) -> (View<T>, RegisteredView)
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
        let after = Arc::new(build(reader, Some((&before, change)))?);
        *current.write() = after;
        Ok(true)
    });
    (view, RegisteredView { collections, follow })
}
