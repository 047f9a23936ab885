//! The values that a plugin stores: records, which all full nodes of a cluster have.
//!
//! Until all nodes of a cluster read such records, and in earlier versions of the gateway, the values are in a JSON
//! file of one node, which the plugin itself cannot open. The next start of the process makes records of them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use domain::plugin::{PluginKey, PluginValue};
use domain::secret::Secret;
use media::spawn_blocking;
use serde_json::{Map, Value};
use storage::records::set_plugin_value;
use storage::{Store, create_folder};

/// Maximum size of all values with their keys as JSON, in bytes.
const BYTES_MAX: usize = 1 << 20;
/// Maximum number of values. One write makes records of a whole file.
const VALUES_MAX: usize = 20_000;
/// Maximum length of a key, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// The stored values of one plugin. Nobody else changes them while it has a process.
pub(super) struct Storage {
    plugin: PluginKey,
    values: Map<String, Value>,
    place: Place,
}

/// Where the values are.
enum Place {
    Records(Store),
    File(PathBuf),
}

/// Why the values cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum StorageError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] storage::Error),
    #[error("their file has {0} of them, and the storage of a plugin at most {VALUES_MAX}")]
    TooMany(usize),
}

impl Storage {
    /// Reads the values: from this store, which takes over those of the file, or without a store from the file. Blocks.
    ///
    /// # Errors
    /// They cannot be read or taken over, or the file is not JSON.
    pub(super) fn open(plugin: PluginKey, store: Option<Store>, file: PathBuf) -> Result<Self, StorageError> {
        let (values, place) = match store {
            Some(store) => (read_or_take_over(&store, &plugin, &file)?, Place::Records(store)),
            None => (read_file(&file)?, Place::File(file)),
        };
        Ok(Self { plugin, values, place })
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.values.keys().map(String::as_str).collect()
    }

    /// Sets a value, or removes it. Returns once that is durable; in a cluster, once the log has it.
    ///
    /// # Errors
    /// The sentence why the values are as before.
    pub(super) async fn set(&mut self, key: &str, value: Option<Value>) -> Result<(), String> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(format!("a key of the storage has 1 to {KEY_BYTES_MAX} bytes"));
        }
        let before = self.values.get(key);
        if before == value.as_ref() {
            return Ok(());
        }
        if before.is_none() && self.values.len() >= VALUES_MAX {
            return Err(format!("the storage of a plugin has at most {VALUES_MAX} values"));
        }
        let mut after = self.values.clone();
        match value.clone() {
            Some(value) => after.insert(key.to_owned(), value),
            None => after.remove(key),
        };
        let all = serde_json::to_vec(&after).map_err(|error| error.to_string())?;
        if all.len() > BYTES_MAX {
            return Err("the storage of a plugin has at most 1 MiB".to_owned());
        }
        let written = match &self.place {
            Place::Records(store) => {
                let (plugin, key, value) = (self.plugin.clone(), key.to_owned(), value.map(text_of));
                let written = store.write(move |write| set_plugin_value(write, &plugin, key, value));
                written.await.map_err(|error| error.to_string())
            }
            Place::File(path) => {
                let path = path.clone();
                let written = spawn_blocking(move || write_file(&path, &all)).await;
                written.map_err(io::Error::other).flatten().map_err(|error| error.kind().to_string())
            }
        };
        written.map_err(|reason| format!("the storage cannot be written: {reason}"))?;
        self.values = after;
        Ok(())
    }
}

/// Reads the records of a plugin. If it has none, makes records of the values in its file, in one write. Removes the
/// file after that: if the gateway is killed in between, the next start finds the records. Blocks.
fn read_or_take_over(
    store: &Store,
    plugin: &PluginKey,
    file: &Path,
) -> Result<Map<String, Value>, StorageError> {
    let mut values = read_records(store, plugin)?;
    // Records are newer than any file, such as that of a node which was the first to run the plugin.
    if values.is_empty() {
        values = read_file(file)?;
        make_records(store, plugin, &values)?;
    }
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(values),
    }
}

/// Blocks.
fn make_records(store: &Store, plugin: &PluginKey, values: &Map<String, Value>) -> Result<(), StorageError> {
    if values.len() > VALUES_MAX {
        return Err(StorageError::TooMany(values.len()));
    }
    let (plugin, values) = (plugin.clone(), values.clone());
    store.write_blocking(move |write| {
        let mut values = values.into_iter();
        values.try_for_each(|(key, value)| set_plugin_value(write, &plugin, key, Some(text_of(value))))
    })?;
    Ok(())
}

fn text_of(value: Value) -> Secret {
    Secret::new(value.to_string())
}

/// Blocks.
fn read_records(store: &Store, plugin: &PluginKey) -> Result<Map<String, Value>, StorageError> {
    let records = store.collection::<PluginValue>().by("plugin", plugin.as_str())?;
    let read = |it: PluginValue| Ok((it.key, serde_json::from_str(it.value.expose())?));
    Ok(records.into_iter().map(read).collect::<io::Result<_>>()?)
}

/// Returns the values in a file, none if it does not exist. Blocks.
fn read_file(path: &Path) -> io::Result<Map<String, Value>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(error),
    }
}

/// Replaces a file. Blocks.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    create_folder(folder, 0o700)?;
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use storage::records::schema;
    use tempfile::TempDir;

    use super::*;

    /// The store and the folder of a plugin between two processes.
    struct Bench {
        folder: TempDir,
        store: Option<Store>,
    }

    impl Bench {
        fn without_records() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), store: None }
        }

        async fn with_records() -> Self {
            let store = spawn_blocking(|| Store::temporary(schema()).unwrap()).await.unwrap();
            Self { folder: tempfile::tempdir().unwrap(), store: Some(store) }
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("demo/storage.json")
        }

        /// Writes the file of an earlier version.
        fn write_file(&self, values: &Value) {
            write_file(&self.file(), values.to_string().as_bytes()).unwrap();
        }

        async fn open(&self) -> Result<Storage, StorageError> {
            self.open_as("demo").await
        }

        async fn open_as(&self, plugin: &str) -> Result<Storage, StorageError> {
            let (plugin, store) = (PluginKey::from_folder(plugin).unwrap(), self.store.clone());
            let file = self.file();
            spawn_blocking(move || Storage::open(plugin, store, file)).await.unwrap()
        }
    }

    #[tokio::test]
    async fn values_survive_and_a_refused_one_changes_nothing() {
        for bench in [Bench::without_records(), Bench::with_records().await] {
            let mut storage = bench.open().await.unwrap();
            storage.set("a", Some(json!({"x": 1.5}))).await.unwrap();
            storage.set("b", Some(json!("old"))).await.unwrap();
            let large = json!("x".repeat(BYTES_MAX));
            assert_eq!(
                storage.set("b", Some(large)).await,
                Err("the storage of a plugin has at most 1 MiB".to_owned())
            );
            assert_eq!(storage.get("b"), Some(&json!("old")));
            for key in ["", &"x".repeat(KEY_BYTES_MAX + 1)] {
                assert!(storage.set(key, Some(json!(1))).await.is_err());
            }
            storage.set("c", Some(json!(null))).await.unwrap();
            storage.set("c", None).await.unwrap();
            storage.set("nothing", None).await.unwrap();
            let again = bench.open().await.unwrap();
            assert_eq!((again.keys(), again.get("a")), (vec!["a", "b"], Some(&json!({"x": 1.5}))));
            assert_eq!(again.get("b"), Some(&json!("old")));
            assert_eq!(bench.file().exists(), bench.store.is_none());
        }
    }

    #[tokio::test]
    async fn a_plugin_has_its_own_values_and_not_too_many() {
        let bench = Bench::with_records().await;
        let mut storage = bench.open().await.unwrap();
        storage.set("a", Some(json!(1))).await.unwrap();
        let mut other = bench.open_as("other").await.unwrap();
        assert_eq!(other.get("a"), None);
        other.values = (0..VALUES_MAX).map(|it| (it.to_string(), json!(it))).collect();
        let refused = other.set("one more", Some(json!(1))).await.unwrap_err();
        assert!(refused.contains("at most 20000 values"), "{refused}");
        other.set("0", Some(json!("another"))).await.unwrap();
        other.set("0", None).await.unwrap();
        other.set("one more", Some(json!(1))).await.unwrap();
    }

    #[tokio::test]
    async fn values_stay_in_the_file_until_all_nodes_read_records_of_them() {
        let mut bench = Bench::without_records();
        let mut storage = bench.open().await.unwrap();
        storage.set("a", Some(json!([1]))).await.unwrap();
        bench.store = Bench::with_records().await.store;
        assert!(bench.store.as_ref().unwrap().collection::<PluginValue>().is_empty());
        // The process goes on as it began.
        storage.set("b", Some(json!(2))).await.unwrap();
        let storage = bench.open().await.unwrap();
        assert_eq!((storage.get("a"), storage.get("b")), (Some(&json!([1])), Some(&json!(2))));
        assert!(!bench.file().exists());
    }

    #[tokio::test]
    async fn a_file_becomes_records_once_also_if_the_gateway_is_killed_in_between() {
        let bench = Bench::with_records().await;
        bench.write_file(&json!({"token": "old", "n": 1}));
        let mut storage = bench.open().await.unwrap();
        assert_eq!((storage.keys(), storage.get("token")), (vec!["n", "token"], Some(&json!("old"))));

        // Killed after the records were committed and before the file was removed; later, the file of another node that
        // ran the plugin long ago.
        for value in ["old", "new"] {
            storage.set("token", Some(json!(value))).await.unwrap();
            bench.write_file(&json!({"token": "old", "n": 1}));
            storage = bench.open().await.unwrap();
            assert_eq!((storage.get("token"), storage.get("n")), (Some(&json!(value)), Some(&json!(1))));
            assert!(!bench.file().exists());
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_taken_over_stays_and_says_why() {
        let bench = Bench::with_records().await;
        fs::create_dir_all(bench.file().parent().unwrap()).unwrap();
        fs::write(bench.file(), "{\"a\": 1").unwrap();
        let refused = bench.open().await.err().unwrap().to_string();
        assert!(refused.contains("EOF while parsing"), "{refused}");
        let values = (0..=VALUES_MAX).map(|it| (it.to_string(), json!(it)));
        bench.write_file(&Value::Object(values.collect()));
        let refused = bench.open().await.err().unwrap().to_string();
        assert_eq!(refused, "their file has 20001 of them, and the storage of a plugin at most 20000");

        // Another node writes the configuration.
        bench.write_file(&json!({"a": 1}));
        let store = bench.store.clone().unwrap();
        let begun = spawn_blocking(move || store.begin_log(uuid::Uuid::new_v4(), 0));
        begun.await.unwrap().unwrap();
        assert!(matches!(bench.open().await, Err(StorageError::Store(storage::Error::NotWriter))));
        assert!(
            bench.file().exists() && bench.store.as_ref().unwrap().collection::<PluginValue>().is_empty()
        );
    }
}
