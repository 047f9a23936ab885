//! Files of the packets of live channels: their folder, their index, and the reader that fills them. Recordings are made of
//! them, and the past of channels.

pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod index;
pub(crate) mod intake;
pub(crate) mod loss;
mod settings;

pub(crate) use self::folder::FolderError;
pub use self::folder::RecordingsFolder;
pub use self::index::{AccessPoint, RecordingIndex};
pub(crate) use self::settings::dvr_settings;
