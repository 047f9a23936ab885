//! Reading: typed access to the records on the disk, and values in memory that follow the commits.

pub(crate) mod collection;
mod encoded;
mod shards;
pub(crate) mod snapshot;
pub(crate) mod table;
pub(crate) mod view;
