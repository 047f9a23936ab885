//! Typed reads of one collection.
//!
//! A read of one record takes some microseconds, or as long as the slice that is being written. Reads of more than a few
//! records belong on a thread that may block.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use crate::engine::shared::Shared;
use crate::error::Result;
use crate::read::encoded::EncodedCollection;
use crate::record::{CollectionKind, Key, Keys, Record, decode, digest, has_key};

/// Returns the digest of a record of a collection.
pub(crate) fn record_digest(shared: &Shared, collection: &str, id: u32) -> Result<Option<u64>> {
    let records = EncodedCollection::new(shared, shared.schema.number(collection));
    let mut found = None;
    records.read(id, &mut |bytes| {
        found = Some(digest(bytes));
        Ok(())
    })?;
    Ok(found)
}

/// The committed records of one type.
pub struct Collection<'a, T> {
    records: EncodedCollection<'a>,
    record: PhantomData<fn() -> T>,
}

impl<'a, T: Record> Collection<'a, T> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let records = EncodedCollection::new(shared, shared.schema.number(T::COLLECTION));
        Self { records, record: PhantomData }
    }

    /// Returns the number of records. Cheap.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, id: u32) -> Result<Option<T>> {
        let mut found = None;
        self.records.read(id, &mut |bytes| {
            found = Some(decode(bytes)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns a number that changes whenever the record may have changed: the commit that last wrote the record or its
    /// block. Returns `None` if the record does not exist. Does not read the disk. Survives reopening.
    pub fn stamp(&self, id: u32) -> Option<u64> {
        self.records.stamp(id)
    }

    /// Returns a number that changes whenever any record of this owner may have changed. Does not read the disk, and
    /// takes some tens of microseconds for an owner with half a million records. Survives reopening, and is the same for
    /// all owners without records. Paged collections only.
    pub fn fingerprint_of(&self, owner: u64) -> u64 {
        const { assert!(matches!(T::KIND, CollectionKind::Paged), "fingerprints are for paged collections") };
        self.records.fingerprint_of(owner)
    }

    /// Lists all records with this value of an index, by id.
    pub fn by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Vec<T>> {
        self.by_key(&Key::new(index, value.as_ref()))
    }

    fn by_key(&self, key: &Key) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for id in self.records.candidates(key) {
            // The record may have been removed since, or another value may have the same hash.
            if let Some(record) = self.get(id)?
                && has_key(&Keys::from_record(&record), key)
            {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Returns the record with this value of a unique index.
    pub fn one_by(&self, index: &'static str, value: impl AsRef<[u8]>) -> Result<Option<T>> {
        Ok(self.by(index, value)?.into_iter().next())
    }

    /// Lists all ids in order.
    pub fn ids(&self) -> Vec<u32> {
        self.records.ids()
    }

    /// Returns whether damaged blocks of this owner were set aside, and nothing has replaced them yet.
    pub fn is_incomplete(&self, owner: u64) -> bool {
        self.records.misses(|it| it == owner)
    }

    /// Returns whether damaged blocks of any owner were set aside, and nothing has replaced them yet.
    pub(crate) fn is_any_incomplete(&self) -> bool {
        self.records.misses(|_| true)
    }

    /// Returns whether a record of a paged collection has an id in this range. Does not read the disk.
    pub(crate) fn has_id_in(&self, ids: RangeInclusive<u32>) -> bool {
        self.records.has_id_in(&ids)
    }

    /// Returns the owner of a record of a paged collection, if the record exists. Does not read the disk.
    pub fn owner_of(&self, id: u32) -> Option<u64> {
        self.records.owner_of(id)
    }

    /// Lists the owners of a paged collection that have records.
    pub fn owners(&self) -> Vec<u64> {
        self.records.owners()
    }

    /// Returns the number of records of an owner. Cheap.
    pub fn len_of(&self, owner: u64) -> usize {
        self.records.len_of(owner)
    }

    /// Lists all records; single ones by id, paged ones by owner and block.
    pub fn all(&self) -> Result<Vec<T>> {
        let mut found = Vec::with_capacity(self.len());
        self.for_each(|record| found.push(record))?;
        Ok(found)
    }

    /// Visits all records without holding them all in memory: single ones by id, paged ones by owner and block. Each
    /// commit that happens meanwhile may be visible or not.
    pub fn for_each(&self, mut visit: impl FnMut(T)) -> Result<()> {
        self.records.for_each(&mut |bytes| {
            visit(decode(bytes)?);
            Ok(())
        })
    }

    /// Visits the records of one owner, in the order of blocks. Records that are replaced meanwhile are visited in their
    /// old state.
    pub fn for_each_of(&self, owner: u64, mut visit: impl FnMut(T)) -> Result<()> {
        self.records.while_of(owner, &mut |bytes| {
            visit(decode(bytes)?);
            Ok(true)
        })
    }

    /// Does the same as [`Collection::for_each_of`], until `visit` returns false.
    pub fn while_of(&self, owner: u64, mut visit: impl FnMut(T) -> bool) -> Result<()> {
        self.records.while_of(owner, &mut |bytes| Ok(visit(decode(bytes)?)))
    }

    /// Does the same for the records with some ids. Blocks without any of them are not read. For owners with some thousand
    /// records.
    pub(crate) fn while_of_ids(
        &self,
        owner: u64,
        is_wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(T) -> bool,
    ) -> Result<()> {
        self.records.while_of_ids(owner, &is_wanted, &mut |bytes| Ok(visit(decode(bytes)?)))
    }
}
