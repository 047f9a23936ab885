//! The data folder: the paths of everything that is kept in it.

use std::path::{Path, PathBuf};

/// Folder of all persistent data. The key file is beside the store and not in it, so that a copy of the store alone
/// reveals no password.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    root: PathBuf,
}

impl DataFolder {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.root.join("key")
    }

    /// Returns the path of the file of this node of a cluster.
    pub(crate) fn node(&self) -> PathBuf {
        self.root.join("node.json")
    }

    /// Returns the path of the socket over which commands reach the running gateway.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.root.join("control.sock")
    }
}
