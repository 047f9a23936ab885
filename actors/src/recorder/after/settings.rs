//! The settings of the work after recordings.

use std::path::PathBuf;

/// The settings of the work after recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterSettings {
    /// The program comskip: a name to find in `PATH`, or an absolute path.
    pub comskip: String,
    /// The file with its configuration, which need not exist.
    pub comskip_config: PathBuf,
    /// A folder for temporary files, which is created when it is needed. Files in it are removed.
    pub scratch: PathBuf,
}
