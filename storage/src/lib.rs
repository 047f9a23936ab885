//! Persistent storage: typed records on sled, written by one thread, durable before a write is answered.
//!
//! A [`Store`] holds records of the types that implement [`Record`]. Reads use [`Store::collection`]. Writes use
//! [`Store::write`], which runs a function on the writer thread and returns when its changes are durable, all or none.
//! [`Store::bulk_write`] writes hundreds of thousands of records. [`Store::changes`] subscribes to commits. A [`View`],
//! such as that of a [`Table`], gives the current state without waiting for the disk.
//!
//! This crate uses neither actors nor HTTP. Code that carries packets must not call it: a read may wait as long as the
//! write of one slice takes, some milliseconds at most.
//!
//! Reading order: `record`, `encoding`, `store`, `write` (a write, the writer thread and the life of a value), `engine`
//! (sled, its faults, and keys and values), `read`, `backup`, `recovery` (checks at open, `check`, `salvage` and
//! migrations), `models` (the collections of the gateway). In a cluster, [`log`] comes before the commit. Programmes are not
//! records: see [`guide`].

pub mod backup;
mod changes;
mod encoding;
mod engine;
mod error;
mod folders;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod guide;
pub mod log;
mod models;
pub mod plugin_files;
mod read;
mod record;
pub mod records;
mod recovery;
#[cfg(test)]
mod small_disk;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod write;

pub use self::changes::{Change, ChangeMessage, ChangedIds, Changes, CollectionChange};
pub use self::encoding::{append_value, take_value};
pub use self::engine::statistics::StoreStatistics;
pub use self::error::{Error, Fault, Result, StopReason};
pub use self::folders::create_folder;
pub use self::models::stream_index::{NotReady, StreamIndex};
pub use self::models::vod::{
    CompletedRecord, EPISODES_MAX, FoundEpisodes, FoundTitles, LandError, LandedEpisodes, LandedTitles,
    PackedList, TitleSync, VodTitles, category_id, edit_title, merge_titles, restore_titles, split_title,
};
pub use self::models::vod_index::VodIndex;
pub use self::models::{
    LostStreamIds, Models, StreamIdChanges, drop_unused_stream_ids, link_logo, link_logos, seed,
    store_catalogue,
};
pub use self::read::collection::Collection;
pub use self::read::table::Table;
pub use self::read::view::{Reader, View};
pub use self::record::{CollectionKind, Keys, RECORD_BYTES_MAX, Record, Schema, Sharing, decode};
pub use self::recovery::check::{CheckReport, check};
pub use self::recovery::damage::{Damage, DamagedItem};
pub use self::recovery::salvage::{SalvageReport, salvage};
pub use self::store::Store;
pub use self::write::Write;
pub use self::write::bulk::BulkWrite;
