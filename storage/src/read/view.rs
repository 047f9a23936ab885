//! Views: values in memory that follow the records, for code that must not wait for the disk.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::changes::Change;
use crate::engine::shared::Shared;
use crate::error::Result;
use crate::read::collection::Collection;
use crate::read::encoded::EncodedCollection;
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

    /// Returns the number of the last commit.
    pub fn version(&self) -> u64 {
        self.shared.state.read().commit
    }

    pub fn collection<T: Record>(&self) -> Collection<'a, T> {
        Collection::new(self.shared)
    }

    /// Returns access to the encoded records of a collection of the schema.
    pub(crate) fn records(&self, collection: &str) -> EncodedCollection<'a> {
        EncodedCollection::new(self.shared, self.shared.schema.number(collection))
    }
}

/// The writer's part of a view.
pub(crate) struct RegisteredView {
    pub(crate) collections: &'static [&'static str],
    pub(crate) follow: Follow,
    /// Whether an update failed, so that unknown records differ from the store. The next update gets all of them.
    pub(crate) is_behind: bool,
}

/// A new value of a view.
pub(crate) struct Built<T> {
    pub(crate) value: T,
    /// Whether some records could not be read.
    pub(crate) is_behind: bool,
}

/// Updates a view after a commit. Returns whether it is behind, or `None` if it is no longer used.
type Follow = Box<dyn FnMut(&Reader<'_>, &Change) -> Result<Option<bool>> + Send>;
/// Creates a view, on the thread of the writer.
pub(crate) type RegisterView = Box<dyn FnOnce(&Reader<'_>) -> Result<RegisteredView> + Send>;

/// Creates a view with its first value.
pub(crate) fn create<T, F>(
    collections: &'static [&'static str],
    first: Built<T>,
    mut build: F,
) -> (View<T>, RegisteredView)
where
    T: Send + Sync + 'static,
    F: FnMut(&Reader<'_>, Option<(&T, &Change)>) -> Result<Built<T>> + Send + 'static,
{
    let Built { value, is_behind } = first;
    let current = Arc::new(RwLock::new(Arc::new(value)));
    let view = View { current: Arc::clone(&current) };
    let current = Arc::downgrade(&current);
    let follow = Box::new(move |reader: &Reader<'_>, change: &Change| {
        let Some(current) = current.upgrade() else { return Ok(None) };
        let before = Arc::clone(&current.read());
        let Built { value, is_behind } = build(reader, Some((&before, change)))?;
        *current.write() = Arc::new(value);
        Ok(Some(is_behind))
    });
    (view, RegisteredView { collections, follow, is_behind })
}
