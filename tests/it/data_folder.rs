//! A data folder for the real binary.

use std::path::PathBuf;

use domain::playlist::catalogue::CatalogueBuilder;
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::stream::RequestHeaders;
use storage::Store;
use storage::records::schema;
use tempfile::TempDir;

use crate::support::binary::Binary;

/// A data folder for the program.
pub struct Data {
    pub folder: TempDir,
}

impl Data {
    pub fn new() -> Data {
        Data { folder: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    pub fn control_socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// Opens the store while no program uses it. Blocks.
    pub fn open(&self) -> Store {
        Store::open(&self.store(), &self.key(), schema()).unwrap()
    }

    /// Creates a store with the channels of this playlist.
    pub async fn with_list(list: String) -> Data {
        let fill = move || {
            let data = Data::new();
            let mut builder = CatalogueBuilder::new();
            let account = builder.account("provider", 1, RequestHeaders::default());
            for item in parse(list.as_bytes(), PlaylistLimits::default()).0 {
                if let PlaylistItem::Entry(entry) = item {
                    builder.entry(account, entry);
                }
            }
            let store = data.open();
            storage::seed(&store).unwrap();
            storage::store_catalogue(&store, builder.build()).unwrap();
            data
        };
        tokio::task::spawn_blocking(fill).await.unwrap()
    }

    /// Starts the program on this folder.
    pub fn run(&self, arguments: &[&str]) -> Binary {
        Binary::start(&[arguments, &["--data-dir", &self.root()]].concat())
    }

    /// Runs the program until it exits; returns the exit code and the output.
    pub async fn ran(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.run(arguments).outcome().await
    }
}
