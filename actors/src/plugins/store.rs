//! The small values that a plugin stores: one JSON file of at most 1 MiB, which the plugin itself cannot open.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// Maximum size of all values with their keys, in bytes.
const BYTES_MAX: usize = 1 << 20;
/// Maximum length of a key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// The stored values.
#[derive(Debug)]
pub(super) struct Storage {
    path: PathBuf,
    values: Map<String, Value>,
}

impl Storage {
    /// Reads the file; one that does not exist is empty. Blocks.
    ///
    /// # Errors
    /// It cannot be read, or is no JSON.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let values = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, values })
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    /// Sets a value, or removes it, and writes the file. Blocks.
    ///
    /// # Errors
    /// The sentence why the values are as before.
    pub(super) fn set(&mut self, key: &str, value: Option<Value>) -> Result<(), String> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(format!("a key of the storage has 1 to {KEY_BYTES_MAX} bytes"));
        }
        let before = match value {
            Some(value) => self.values.insert(key.to_owned(), value),
            None => self.values.remove(key),
        };
        let done = self.write();
        if done.is_err() {
            match before {
                Some(before) => self.values.insert(key.to_owned(), before),
                None => self.values.remove(key),
            };
        }
        done
    }

    fn write(&self) -> Result<(), String> {
        let bytes = serde_json::to_vec(&self.values).map_err(|error| error.to_string())?;
        if bytes.len() > BYTES_MAX {
            return Err("the storage of a plugin has at most 1 MiB".to_owned());
        }
        let write = || {
            if let Some(folder) = self.path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let new = self.path.with_extension("new");
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error: io::Error| format!("the storage cannot be written: {}", error.kind()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_survive_and_a_refused_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Storage::open(folder.path().join("a/storage.json")).unwrap();
        let mut storage = open();
        storage.set("a", Some(json!({"x": 1}))).unwrap();
        storage.set("b", Some(json!("old"))).unwrap();
        let large = json!("x".repeat(BYTES_MAX));
        assert_eq!(
            storage.set("b", Some(large)),
            Err("the storage of a plugin has at most 1 MiB".to_owned())
        );
        assert_eq!(storage.get("b"), Some(&json!("old")));
        assert!(storage.set("", Some(json!(1))).is_err());
        storage.set("nothing", None).unwrap();
        let again = open();
        assert_eq!((again.keys(), again.get("a")), (vec!["a", "b"], Some(&json!({"x": 1}))));
    }
}
