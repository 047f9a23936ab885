//! One programme in the guide of a channel, and its id in the interface.

use std::fmt;
use std::str::FromStr;

use domain::guide::programme::{Programme, ProgrammeId, from_xml, to_xml};
use domain::ids::{ChannelId, GuideChannelId};
use serde::{Serialize, Serializer};
use storage::guide::{ProgrammeRef, StoredProgramme};

/// Start of the ids of generated programmes.
const GENERATED: &str = "dummy-";

/// The id of a programme: stable as long as the programme keeps channel and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryId {
    /// Of a programme in a guide file.
    Stored(ProgrammeId),
    /// Of a generated programme, which belongs to a channel and not to a guide channel: its channel, and its start in
    /// seconds since 1970.
    Generated(ChannelId, i64),
}

/// A number, or `dummy-<channel>-<start>`.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(id) => id.fmt(f),
            Self::Generated(channel, start) => write!(f, "{GENERATED}{channel}-{start}"),
        }
    }
}

/// A stored programme is a number, a generated one a text.
impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stored(id) => serializer.serialize_u64(id.0),
            Self::Generated(..) => serializer.collect_str(self),
        }
    }
}

impl FromStr for EntryId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.strip_prefix(GENERATED) {
            Some(rest) => {
                let (channel, start) = rest.split_once('-').ok_or(())?;
                let channel = number(channel).and_then(|it| it.parse().ok()).ok_or(())?;
                let start = number(start).and_then(|it| it.parse().ok()).ok_or(())?;
                Ok(Self::Generated(ChannelId(channel), start))
            }
            None => {
                let id = number(text).and_then(|it| it.parse().ok()).ok_or(())?;
                Ok(Self::Stored(ProgrammeId(id)))
            }
        }
    }
}

/// Returns the text if it contains digits only.
fn number(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())).then_some(text)
}

/// A programme, not yet parsed.
#[derive(Clone, Debug)]
pub struct GuideEntry {
    pub id: EntryId,
    /// Seconds since 1970.
    pub start: i64,
    pub stop: i64,
    /// The inside of its element in XMLTV.
    pub inner: Box<str>,
}

impl GuideEntry {
    /// `None` for a start that no id can contain; guide files have none.
    pub(super) fn from_file(channel: GuideChannelId, stored: ProgrammeRef<'_>) -> Option<Self> {
        let id = EntryId::Stored(ProgrammeId::new(channel, stored.start)?);
        Some(Self { id, start: stored.start, stop: stored.stop, inner: stored.inner.into() })
    }

    pub(super) fn stored(id: ProgrammeId, stored: StoredProgramme) -> Self {
        let StoredProgramme { start, stop, inner } = stored;
        Self { id: EntryId::Stored(id), start, stop, inner }
    }

    /// Writes a programme that belongs to this id.
    pub fn written(id: EntryId, programme: &Programme) -> Self {
        let mut inner = String::new();
        to_xml(programme, &mut inner);
        Self { id, start: programme.start, stop: programme.stop, inner: inner.into() }
    }

    pub fn is_running(&self, now: i64) -> bool {
        self.start <= now && now < self.stop
    }

    /// Parses the programme. A damaged one has only its times.
    pub fn programme(&self) -> Programme {
        let empty = || Programme { start: self.start, stop: self.stop, ..Programme::default() };
        from_xml(self.start, self.stop, &self.inner).unwrap_or_else(|_| empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is() {
        for id in
            [EntryId::Stored(ProgrammeId(1 << 40)), EntryId::Generated(ChannelId(u32::MAX), 1_795_215_600)]
        {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "-1", "+1", "x", "1.5", "dummy-", "dummy-1", "dummy-1-", "dummy-x-1", "dummy--1-2"] {
            assert_eq!(text.parse::<EntryId>(), Err(()), "{text}");
        }
    }
}
