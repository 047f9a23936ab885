//! One programme in the guide of a channel, and its id in the interface.

use std::fmt;
use std::str::FromStr;

use domain::guide::programme::{Programme, ProgrammeId, from_xml, to_xml};
use domain::guide::shift::OFFSET_MINUTES_MAX;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GuideChannelId};
use domain::recording::SHIFTED_ID;
use serde::{Serialize, Serializer};
use storage::guide::{ProgrammeRef, StoredProgramme};

/// Start of the ids of generated programmes.
const GENERATED: &str = "dummy-";

/// The id of a programme: stable as long as the programme keeps channel and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryId {
    /// Of a programme in a guide file, and the minutes by which the channels that show it show it later than their guide. The
    /// offset of its guide source is not among them, so that the id outlives a change of it.
    Stored(ProgrammeId, i16),
    /// Of a generated programme, which belongs to a channel and not to a guide channel: its channel, and its start in
    /// seconds since 1970.
    Generated(ChannelId, i64),
}

/// A number, `<number>_<minutes>` for a moved programme, or `dummy-<channel>-<start>`.
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(id, 0) => id.fmt(f),
            Self::Stored(id, minutes) => write!(f, "{id}{SHIFTED_ID}{minutes}"),
            Self::Generated(channel, start) => write!(f, "{GENERATED}{channel}-{start}"),
        }
    }
}

/// A stored programme is a number, a moved or generated one a text.
impl Serialize for EntryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stored(id, 0) => serializer.serialize_u64(id.0),
            Self::Stored(..) | Self::Generated(..) => serializer.collect_str(self),
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
                let (id, minutes) = match text.split_once(SHIFTED_ID) {
                    Some((id, minutes)) => (id, minutes_of(minutes).ok_or(())?),
                    None => (text, 0),
                };
                let id = number(id).and_then(|it| it.parse().ok()).ok_or(())?;
                Ok(Self::Stored(ProgrammeId(id), minutes))
            }
        }
    }
}

/// Reads the minutes of a moved programme, as they were written.
fn minutes_of(text: &str) -> Option<i16> {
    number(text.strip_prefix('-').unwrap_or(text))?;
    let is_possible = |it: &i16| *it != 0 && it.unsigned_abs() <= OFFSET_MINUTES_MAX.unsigned_abs();
    text.parse().ok().filter(is_possible)
}

/// Returns the text if it contains digits only.
fn number(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())).then_some(text)
}

/// How much later the programmes of a guide are shown than the guide says, in minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuideOffset {
    /// For the channel that shows them.
    pub channel: i16,
    /// For all programmes of the guide source.
    pub source: i16,
}

impl GuideOffset {
    /// Returns the offset of the programmes of a source for a channel that wants them later by these minutes. Generated and
    /// written programmes have none: they say when something is.
    pub fn new(source: &GuideSource, channel: i16) -> Self {
        match source.kind {
            GuideSourceKind::Generated | GuideSourceKind::Written => Self::default(),
            _ => Self { channel, source: source.offset_minutes },
        }
    }

    pub fn seconds(self) -> i64 {
        (i64::from(self.channel) + i64::from(self.source)) * 60
    }

    /// Returns the id of a programme that the guide lets start at this second since 1970. `None` for a start that no id can
    /// contain; guide files have none.
    pub(super) fn id(self, channel: GuideChannelId, start: i64) -> Option<EntryId> {
        ProgrammeId::new(channel, start).map(|it| EntryId::Stored(it, self.channel))
    }
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
    /// Moves a programme of a guide file to the time at which it is shown.
    pub(super) fn from_file(
        channel: GuideChannelId,
        stored: ProgrammeRef<'_>,
        offset: GuideOffset,
    ) -> Option<Self> {
        let (id, seconds) = (offset.id(channel, stored.start)?, offset.seconds());
        let (start, stop) = (stored.start.saturating_add(seconds), stored.stop.saturating_add(seconds));
        Some(Self { id, start, stop, inner: stored.inner.into() })
    }

    pub(super) fn stored(id: ProgrammeId, stored: StoredProgramme, offset: GuideOffset) -> Self {
        let (StoredProgramme { start, stop, inner }, seconds) = (stored, offset.seconds());
        let (start, stop) = (start.saturating_add(seconds), stop.saturating_add(seconds));
        Self { id: EntryId::Stored(id, offset.channel), start, stop, inner }
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
        for id in [
            EntryId::Stored(ProgrammeId(1 << 40), 0),
            EntryId::Stored(ProgrammeId(1 << 40), 180),
            EntryId::Stored(ProgrammeId(7), -90),
            EntryId::Generated(ChannelId(u32::MAX), 1_795_215_600),
        ] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in [
            "",
            "-1",
            "+1",
            "x",
            "1.5",
            "1_",
            "1_0",
            "1_+5",
            "1_--5",
            "1_1441",
            "1_99999",
            "_5",
            "1_5_5",
            "dummy-",
            "dummy-1",
            "dummy-1-",
            "dummy-x-1",
            "dummy--1-2",
        ] {
            assert_eq!(text.parse::<EntryId>(), Err(()), "{text}");
        }
    }
}
