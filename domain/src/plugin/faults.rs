//! Faults of manifests.

use thiserror::Error;

/// Maximum number of faults that are listed.
const FAULTS_MAX: usize = 20;

/// A member that is missing or has a wrong type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path} {reason}")]
pub struct ManifestFault {
    /// Place of the member, such as `actions[1].timeout`.
    pub path: String,
    /// Worded to follow the place.
    pub reason: String,
}

pub(super) fn list_of_faults(faults: &[ManifestFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}

/// The faults that were found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Those with which a plugin would be unsafe or of no use.
    pub(super) errors: Vec<ManifestFault>,
    /// Those that cost only the element that has them.
    pub(super) ignored: Vec<ManifestFault>,
}

impl Faults {
    /// Adds a fault with which the manifest cannot be used.
    pub(super) fn add(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        if self.errors.len() < FAULTS_MAX {
            self.errors.push(ManifestFault { path: path.into(), reason: reason.into() });
        }
    }

    /// Adds a fault of an element that the caller ignores.
    pub(super) fn ignore(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        if self.ignored.len() < FAULTS_MAX {
            self.ignored.push(ManifestFault { path: path.into(), reason: reason.into() });
        }
    }
}
