//! The version of their data that the nodes of a cluster write, as a store says.

use domain::cluster::version::{ClusterVersion, FIRST_VERSION};
use storage::{Store, Write};

/// The only record of [`ClusterVersion`].
pub const CLUSTER_VERSION_ID: u32 = 1;

/// Returns whether a store may get records that came with this version: all nodes with which it is shared read them.
/// Blocks.
pub fn may_have(store: &Store, version: u32) -> storage::Result<bool> {
    let is_shared = store.log_status().borrow().is_some();
    Ok(!is_shared || written(store)? >= version)
}

/// Returns the same inside a write to this store.
pub fn may_put(write: &Write<'_>, store: &Store, version: u32) -> storage::Result<bool> {
    let is_shared = store.log_status().borrow().is_some();
    let record = write.get::<ClusterVersion>(CLUSTER_VERSION_ID)?;
    Ok(!is_shared || record.map_or(FIRST_VERSION, |it| it.version) >= version)
}

/// Returns the version that the nodes write, as this store says. Blocks.
pub fn written(store: &Store) -> storage::Result<u32> {
    let record = store.collection::<ClusterVersion>().get(CLUSTER_VERSION_ID)?;
    Ok(record.map_or(FIRST_VERSION, |it| it.version))
}
