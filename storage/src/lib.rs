//! What is remembered: typed records on sled, one writer, durable before the answer.
//!
//! A [`Store`] keeps nouns that implement [`Record`]. Everyone reads through [`Store::collection`]; everyone writes
//! through [`Store::write`], which runs a function on the one writer thread and answers when what it wrote is on the
//! disk, whole. What comes by the hundred thousand goes through [`Store::bulk`]. Who wants to know what changed
//! subscribes to [`Store::changes`]; who must not wait for a disk keeps a [`View`], of a [`Table`] for instance.
//!
//! This room knows no actor and no HTTP. Nothing that carries packets calls it: reads may wait as long as a slice of a
//! write takes, some milliseconds at most.
//!
//! Reading order: `record`, `store`, `write`, `writer` (how a commit lands), `disk` (sled and its faults), `load`
//! (what is checked at open), `check` and `salvage` (what can be done when that fails), `compact` and `format` (how everything is
//! written anew).

mod changes;
mod engine;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod models;
mod read;
mod record;
pub mod records;
mod recovery;
mod store;
mod write;

pub use self::changes::{Change, ChangeMessage, ChangedIds, Changes, CollectionChange};
pub use self::engine::vault::{Sealed, Vault};
pub use self::error::{Error, Result};
pub use self::models::stream_index::{NotReady, StreamIndex};
pub use self::models::{Models, seed, store_catalogue};
pub use self::read::collection::Collection;
pub use self::read::table::Table;
pub use self::read::view::View;
pub use self::record::{CollectionKind, Keys, RECORD_BYTES_MAX, Record, Schema, decode};
pub use self::recovery::check::{CheckReport, check};
pub use self::recovery::damage::{Damage, DamagedItem};
pub use self::recovery::salvage::{SalvageReport, salvage};
pub use self::store::{Reader, Store, StoreStatistics};
pub use self::write::Write;
pub use self::write::bulk::BulkWrite;
