//! The data keys of a cluster: what protects the records in log entries and snapshots.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};

use crate::engine::vault::{Vault, random};
use crate::error::{Error, Result};

/// Maximum number of generations in a ring. Entries of older ones are long compacted.
const GENERATIONS_MAX: usize = 64;

/// A secret key of 32 bytes. `Debug` omits it; its serialized form contains it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DataKey(pub(crate) [u8; 32]);

impl DataKey {
    /// # Errors
    /// If the system has no random bytes.
    pub fn random() -> Result<Self> {
        random().map(Self)
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(…)")
    }
}

impl From<DataKey> for String {
    fn from(key: DataKey) -> Self {
        HEXLOWER.encode(&key.0)
    }
}

impl TryFrom<String> for DataKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        HEXLOWER_PERMISSIVE
            .decode(text.as_bytes())
            .ok()
            .and_then(|it| it.try_into().ok())
            .map(Self)
            .ok_or("invalid data key")
    }
}

/// The generations of one data key. The newest encrypts; the others decrypt what is older than the last rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<u32, DataKey>", into = "BTreeMap<u32, DataKey>")]
pub struct KeyRing {
    keys: BTreeMap<u32, DataKey>,
}

impl KeyRing {
    /// Creates a ring with one random key, of generation 1.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new() -> Result<Self> {
        Ok(Self { keys: BTreeMap::from([(1, DataKey::random()?)]) })
    }

    /// Returns the ring with one more random key, which encrypts from now on. All nodes need it before it is used.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn rotated(&self) -> Result<Self> {
        let mut keys = self.keys.clone();
        let next =
            self.current().0.checked_add(1).ok_or_else(|| Error::Key("no generation left".to_owned()))?;
        keys.insert(next, DataKey::random()?);
        while keys.len() > GENERATIONS_MAX {
            keys.pop_first();
        }
        Ok(Self { keys })
    }

    /// Returns the ring without the generations before this one, which no entry and no snapshot needs any more. The newest
    /// stays.
    pub fn without_before(&self, generation: u32) -> Self {
        let newest = self.current().0;
        let keys = self.keys.iter().filter(|it| *it.0 >= generation.min(newest));
        Self { keys: keys.map(|it| (*it.0, it.1.clone())).collect() }
    }

    /// Returns the generation that encrypts.
    pub fn generation(&self) -> u32 {
        self.current().0
    }

    pub(crate) fn current(&self) -> (u32, &DataKey) {
        let (generation, key) = self.keys.last_key_value().expect("a ring has at least one key");
        (*generation, key)
    }

    pub(crate) fn key(&self, generation: u32) -> Option<&DataKey> {
        self.keys.get(&generation)
    }

    /// Encrypts with the newest generation, which is returned.
    pub(crate) fn seal(&self, associated: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        Vault::new(&self.current().1.0).seal(associated, bytes)
    }

    pub(crate) fn unseal(&self, generation: u32, associated: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let key = self.key(generation).ok_or_else(|| {
            Error::Key(format!("this node does not have generation {generation} of the data key"))
        })?;
        let wrong = |_| Error::LogBroken(format!("generation {generation} of the data key does not fit"));
        Vault::new(&key.0).unseal(associated, bytes).map_err(wrong)
    }
}

impl From<KeyRing> for BTreeMap<u32, DataKey> {
    fn from(ring: KeyRing) -> Self {
        ring.keys
    }
}

impl TryFrom<BTreeMap<u32, DataKey>> for KeyRing {
    type Error = &'static str;

    fn try_from(keys: BTreeMap<u32, DataKey>) -> Result<Self, Self::Error> {
        match keys.len() {
            1..=GENERATIONS_MAX => Ok(Self { keys }),
            _ => Err("a ring has 1 to 64 keys"),
        }
    }
}

/// The data keys that a node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogKeys {
    /// For what all nodes hold.
    pub cluster: KeyRing,
    /// For what only full nodes hold. `None` on an edge node.
    pub provider: Option<KeyRing>,
}

impl LogKeys {
    /// Creates the keys of a new cluster.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new() -> Result<Self> {
        Ok(Self { cluster: KeyRing::new()?, provider: Some(KeyRing::new()?) })
    }

    /// Returns the keys that an edge node gets.
    pub fn for_edge(&self) -> Self {
        Self { cluster: self.cluster.clone(), provider: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_ring_decrypts_both_generations_and_a_node_without_the_new_one_says_so() {
        let old = KeyRing::new().unwrap();
        let new = old.rotated().unwrap();
        assert_eq!((old.generation(), new.generation()), (1, 2));
        let (first, second) = (old.seal(b"a", b"one").unwrap(), new.seal(b"a", b"two").unwrap());
        assert_eq!(new.unseal(1, b"a", &first).unwrap(), b"one");
        assert_eq!(new.unseal(2, b"a", &second).unwrap(), b"two");
        let missing = old.unseal(2, b"a", &second).unwrap_err();
        assert!(missing.to_string().contains("generation 2"), "{missing}");
        assert!(new.without_before(2).unseal(1, b"a", &first).is_err());
        assert_eq!(new.without_before(9).generation(), 2);
        assert!(new.unseal(1, b"b", &first).is_err(), "the associated data is not authenticated");
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = LogKeys::new().unwrap();
        let key = String::from(keys.cluster.current().1.clone());
        assert!(!format!("{keys:?}").contains(&key));
        let text = serde_json::to_string(&keys).unwrap();
        assert_eq!(serde_json::from_str::<LogKeys>(&text).unwrap(), keys);
        assert!(serde_json::from_str::<KeyRing>("{}").is_err());
    }
}
