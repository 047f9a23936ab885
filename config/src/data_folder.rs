//! The data folder: the paths of everything that is kept in it.

use std::path::{Path, PathBuf};

/// Folder of all persistent data. The key file is beside the store and not in it, so that a copy of the store alone
/// reveals no password.
#[derive(Clone, Debug)]
pub struct DataFolder {
    root: PathBuf,
}

impl DataFolder {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub fn key(&self) -> PathBuf {
        self.root.join("key")
    }

    /// Returns the path of the file of this node of a cluster.
    pub fn node(&self) -> PathBuf {
        self.root.join("node.json")
    }

    /// Returns the path of the socket over which commands reach the running gateway.
    pub fn control_socket(&self) -> PathBuf {
        self.root.join("control.sock")
    }
}
