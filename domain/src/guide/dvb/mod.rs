//! Guide data inside of a transport stream: events (EIT) and names of services (SDT), as ETSI EN 300 468 defines them.
//!
//! A section arrives complete and with a correct checksum. Whatever is in it: nothing panics, and the result is bounded by
//! the 4 KiB of a section.

mod collection;
mod events;
mod names;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;

use crate::guide::programme::Programme;

pub use self::collection::{
    CollectedProgramme, PROGRAMMES_MAX, SERVICES_MAX, SectionOrigin, ServiceGuide, ServiceGuides,
};
pub use self::text::decode as decode_text;

/// PID of the sections with names of services (SDT).
pub const SERVICES_PID: u16 = 0x11;
/// PID of the sections with events (EIT).
pub const EVENTS_PID: u16 = 0x12;

/// A service of a network, which is a channel for its viewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId {
    /// `original_network_id`.
    pub network: u16,
    /// `transport_stream_id`.
    pub stream: u16,
    /// `service_id`; the programme number in the tables of the stream.
    pub service: u16,
}

impl ServiceId {
    /// Returns the key of the guide channel of a service.
    pub fn key(self) -> String {
        format!("dvb-{}-{}-{}", self.network, self.stream, self.service)
    }
}

/// The contents of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum GuideSection {
    /// Events of a service.
    Events {
        /// The service that they belong to.
        service: ServiceId,
        /// Whether the service is in the stream that was read.
        is_of_this_stream: bool,
        /// The events that have a time and a title.
        programmes: Vec<Programme>,
    },
    /// Names of services.
    Names(Vec<(ServiceId, String)>),
}

/// Reads a section. `None` for other tables, for one that is not in force yet, and for one that is too short.
pub fn read_section(section: &[u8]) -> Option<GuideSection> {
    const IS_CURRENT: u8 = 0x01;
    let head = section.first_chunk::<8>()?;
    if head[5] & IS_CURRENT == 0 {
        return None;
    }
    let extension = u16::from_be_bytes([head[3], head[4]]);
    let body = section.get(8..section.len().checked_sub(4)?)?;
    match head[0] {
        0x42 | 0x46 => names::read(extension, body).map(GuideSection::Names),
        table @ 0x4E..=0x6F => {
            // The even half of the schedule tables, and the first of the two present tables, are of this stream.
            let is_of_this_stream = table == 0x4E || (0x50..=0x5F).contains(&table);
            let (service, programmes) = events::read(extension, body)?;
            Some(GuideSection::Events { service, is_of_this_stream, programmes })
        }
        _ => None,
    }
}

/// Returns tag and data of each descriptor, up to the first invalid length.
fn descriptors(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (data, rest) = rest.split_at_checked(usize::from(*length))?;
        bytes = rest;
        Some((*tag, data))
    })
}

/// Splits bytes with a 12-bit length in front from the rest.
fn length_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length) & 0x0FFF))
}

/// Splits bytes with an 8-bit length in front from the rest.
fn short_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}
