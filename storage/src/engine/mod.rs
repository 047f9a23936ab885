//! The parts that readers and the writer share: sled, keys and values, encryption, the commit file, and the directory
//! of all records in memory.

pub(crate) mod block;
pub(crate) mod block_cache;
pub(crate) mod commit_file;
pub(crate) mod disk;
pub(crate) mod disk_watch;
pub(crate) mod folder;
pub(crate) mod kept_values;
pub(crate) mod memory_copy;
pub(crate) mod pieces;
pub(crate) mod shared;
pub(crate) mod slice_writer;
pub(crate) mod space;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod value;
pub(crate) mod vault;
