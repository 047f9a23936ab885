//! The same records stored directly in redb: one value per record, indexes as tables, no compression or encryption.

use std::path::Path;

use domain::channel::Channel;
use domain::stream::Stream;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

const STREAMS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("streams");
const BY_ACCOUNT: TableDefinition<'_, (u32, u32), ()> = TableDefinition::new("streams by account");
const BY_URL: TableDefinition<'_, (&str, u32), ()> = TableDefinition::new("streams by url");
const CHANNELS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("channels");
const BY_UUID: TableDefinition<'_, &[u8], u32> = TableDefinition::new("channels by uuid");
/// The same cache size as the store uses.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

pub(crate) struct Plain {
    database: Database,
}

impl Plain {
    pub(crate) fn open(folder: &Path) -> Self {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        Self { database: builder.create(folder.join("plain.redb")).expect("redb opens") }
    }

    /// Writes all streams in one transaction, as an import does.
    pub(crate) fn import(&self, streams: impl Iterator<Item = Stream>) {
        let write = self.database.begin_write().expect("the transaction starts");
        {
            let mut records = write.open_table(STREAMS).expect("a table");
            let mut by_account = write.open_table(BY_ACCOUNT).expect("a table");
            let mut by_url = write.open_table(BY_URL).expect("a table");
            for stream in streams {
                let id = stream.id.0;
                let bytes = rmp_serde::to_vec_named(&stream).expect("the record is encoded");
                records.insert(id, &*bytes).expect("the record is accepted");
                by_account.insert((stream.account.0, id), ()).expect("the record is accepted");
                by_url.insert((stream.url().expose(), id), ()).expect("the record is accepted");
            }
        }
        write.commit().expect("the write is committed");
    }

    /// Writes a channel; it is durable on return.
    pub(crate) fn put(&self, channel: &Channel) {
        let write = self.database.begin_write().expect("the transaction starts");
        {
            let mut records = write.open_table(CHANNELS).expect("a table");
            let mut by_uuid = write.open_table(BY_UUID).expect("a table");
            let bytes = rmp_serde::to_vec_named(channel).expect("the record is encoded");
            records.insert(channel.id.0, &*bytes).expect("the record is accepted");
            by_uuid.insert(&channel.uuid.as_bytes()[..], channel.id.0).expect("the record is accepted");
        }
        write.commit().expect("the write is committed");
    }

    pub(crate) fn stream(&self, id: u32) -> Option<Stream> {
        let read = self.database.begin_read().expect("the transaction starts");
        let records = read.open_table(STREAMS).expect("a table");
        let found = records.get(id).expect("the store can be read")?;
        Some(rmp_serde::from_slice(found.value()).expect("the store can be read"))
    }

    pub(crate) fn for_each(&self, mut see: impl FnMut(Stream)) {
        let read = self.database.begin_read().expect("the transaction starts");
        let records = read.open_table(STREAMS).expect("a table");
        for item in records.iter().expect("the store can be read") {
            let (_, value) = item.expect("the store can be read");
            see(rmp_serde::from_slice(value.value()).expect("the store can be read"));
        }
    }
}
