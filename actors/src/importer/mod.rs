//! Playlists become streams: fetched, compared with what is stored, and what differs is written.
mod compare;
mod error;
mod landing;
mod progress;
mod reading;
mod run;
mod spool;

pub use error::ImportError;
pub use progress::{Phase, Progress};
pub use run::{ImportOptions, Imported, import};
