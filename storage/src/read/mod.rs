//! Reading: typed access to the records on the disk, and values in memory that follow the commits.

pub(crate) mod collection;
pub(crate) mod table;
pub(crate) mod view;
