//! Guides in XMLTV (<https://github.com/XMLTV/xmltv/blob/master/xmltv.dtd>).
//!
//! [`XmltvReader`] reads guides as they arrive, one element at a time and with bounded memory, whatever their encoding
//! and however broken they are. The functions `write_…` write guides that are valid against the DTD.
//!
//! ```text
//!   bytes ─ window ─▶ scan ─▶ one element ─ decode ─▶ roxmltree ─▶ Channel, Programme
//!                                               └─ repair ─┘ if it is damaged
//! ```

mod document;
mod encoding;
mod limits;
mod reader;
mod repair;
mod scan;
mod schema;
mod tag;
mod text;
pub mod time;
mod window;
mod write;

pub use self::limits::{XmltvLimits, XmltvPlace, XmltvSkip, XmltvSummary};
pub use self::reader::{Item, XmltvError, XmltvReader};
pub use self::write::{
    XmltvChannel, write_channel, write_end, write_programme, write_programme_replacing, write_start,
};

#[cfg(test)]
mod tests;
