//! Decodes values like an opening store does, but continues after damaged ones.

use crate::engine::block::Block;
use crate::engine::value::{DiskKey, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::{CollectionKind, RecordType, Schema};
use crate::recovery::damage::Damage;
use crate::recovery::scan::ScannedValues;

/// Decodes values of all collections of a schema.
pub(crate) struct RecordInspector<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) vault: &'a Vault,
}

impl RecordInspector<'_> {
    /// Returns an error if the key file belongs to another store. Accepts it if the proof in the metadata is lost.
    pub(crate) fn refuse_wrong_key(&self, read: &ScannedValues) -> Result<()> {
        let meta = read.values.get(&DiskKey::Meta.encode());
        let Some((_, proof)) = meta.and_then(|it| it.payload.split_first()) else { return Ok(()) };
        self.vault.unseal(b"meta", proof).map(drop)
    }

    /// Returns the readable part of a value and its number of records. Removes damaged records from a block and reports
    /// them as damage.
    pub(crate) fn readable_part(
        &self,
        disk_key: &DiskKey,
        mut value: Value,
        damage: &mut Damage,
    ) -> Option<(Value, u64)> {
        let Some((type_number, collection)) = self.record_type(disk_key) else {
            return matches!(disk_key, DiskKey::Counter(_)).then_some((value, 0));
        };
        let readable = match self.plain(type_number, disk_key, &value) {
            Err(error) => Err(error),
            Ok(bytes) => match disk_key {
                DiskKey::Block { .. } => Block::decode(&bytes).and_then(|mut block| {
                    let before = block.records.len();
                    block.records.retain(|(id, bytes)| {
                        let read = (type_number.read)(bytes);
                        let is_valid = read.as_ref().is_ok_and(|it| it.0 == *id);
                        if !is_valid {
                            let other = |_| Error::DamagedRecord("it contains another id".to_owned());
                            let why = read.map_or_else(|error| error, other);
                            damage.add(format!("record {id} of {collection}"), &why);
                        }
                        is_valid
                    });
                    if block.records.len() < before {
                        value.payload = self.sealed(type_number, disk_key, block.encode())?;
                    }
                    Ok(block.records.len() as u64)
                }),
                _ => match (type_number.read)(&bytes) {
                    Ok((id, ..)) if matches!(disk_key, DiskKey::Single { id: wanted, .. } if *wanted != id) => {
                        Err(Error::DamagedRecord(format!("it contains the id {id}")))
                    }
                    other => other.map(|_| 1),
                },
            },
        };
        match readable {
            Ok(0) => None,
            Ok(n) => Some((value, n)),
            Err(error) => {
                damage.add(disk_key.to_string(), &error);
                None
            }
        }
    }

    /// Returns whether this version knows the collection of a key.
    pub(crate) fn knows(&self, disk_key: &DiskKey) -> bool {
        match disk_key {
            DiskKey::Counter(collection) => self.schema.position(collection).is_some(),
            _ => self.record_type(disk_key).is_some(),
        }
    }

    fn record_type<'a>(&self, disk_key: &'a DiskKey) -> Option<(&RecordType, &'a str)> {
        let collection = collection_of(disk_key)?;
        let type_number = &self.schema.record_types[self.schema.position(collection)?];
        let is_block = matches!(disk_key, DiskKey::Block { .. });
        (is_block == (type_number.kind == CollectionKind::Paged)).then_some((type_number, collection))
    }

    fn plain(&self, type_number: &RecordType, disk_key: &DiskKey, value: &Value) -> Result<Vec<u8>> {
        type_number.unseal(self.vault, disk_key, &value.payload)
    }

    fn sealed(&self, type_number: &RecordType, disk_key: &DiskKey, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match type_number.is_sealed {
            true => self.vault.seal(&disk_key.stem(), &bytes),
            false => Ok(bytes),
        }
    }
}

pub(crate) fn collection_of(disk_key: &DiskKey) -> Option<&str> {
    match disk_key {
        DiskKey::Block { collection, .. } | DiskKey::Single { collection, .. } => Some(collection),
        _ => None,
    }
}
