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

mod block;
mod bulk;
mod changes;
mod check;
mod collection;
mod compact;
mod damage;
mod disk;
mod error;
mod evidence;
mod format;
#[cfg(fuzzing)]
pub mod fuzzing;
mod load;
mod models;
mod plan;
mod record;
pub mod records;
mod salvage;
mod shared;
mod space;
mod start;
mod state;
mod store;
mod stream_index;
mod table;
mod value;
mod vault;
mod view;
mod witness;
mod write;
mod writer;

pub use self::bulk::BulkWrite;
pub use self::changes::{Change, ChangeMessage, ChangedIds, Changes, CollectionChange};
pub use self::check::{CheckReport, check};
pub use self::collection::Collection;
pub use self::damage::{Damage, DamagedItem};
pub use self::error::{Error, Result};
pub use self::models::{Models, seed, store_catalogue};
pub use self::record::{CollectionKind, Keys, RECORD_BYTES_MAX, Record, Schema, decode};
pub use self::salvage::{SalvageReport, salvage};
pub use self::store::{Reader, Store, StoreStatistics};
pub use self::stream_index::{NotReady, StreamIndex};
pub use self::table::Table;
pub use self::vault::{Sealed, Vault};
pub use self::view::View;
pub use self::write::Write;
