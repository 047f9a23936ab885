//! Ids of programmes, which are stable over refreshes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::GuideChannelId;

/// A programme: its guide channel and its start. It fits the whole numbers of JavaScript, 53 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgrammeId(pub u64);

impl ProgrammeId {
    /// The greatest id of a guide channel that can have programmes.
    pub const CHANNEL_MAX: GuideChannelId = GuideChannelId((1 << 21) - 1);
    /// The earliest start, 2000-01-01, in seconds since 1970-01-01.
    pub const START_MIN: i64 = 946_684_800;
    /// The latest start, in the year 2136.
    pub const START_MAX: i64 = Self::START_MIN + u32::MAX as i64;

    /// Returns the id of a programme that starts at this second since 1970-01-01; `None` if channel or start are out of
    /// range.
    pub fn new(channel: GuideChannelId, start: i64) -> Option<Self> {
        let since = u32::try_from(start.checked_sub(Self::START_MIN)?).ok()?;
        (channel <= Self::CHANNEL_MAX).then_some(Self(u64::from(channel.0) << 32 | u64::from(since)))
    }

    /// Returns the guide channel; `None` if no programme can have this id.
    pub fn channel(self) -> Option<GuideChannelId> {
        let channel = GuideChannelId(u32::try_from(self.0 >> 32).ok()?);
        (channel <= Self::CHANNEL_MAX).then_some(channel)
    }

    /// Returns the start in seconds since 1970-01-01.
    pub fn start(self) -> i64 {
        Self::START_MIN + i64::from(self.0 as u32)
    }
}

impl fmt::Display for ProgrammeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_channel_and_start_and_fits_the_numbers_of_javascript() {
        for (channel, start) in [
            (0, ProgrammeId::START_MIN),
            (1, 1_735_689_600),
            (ProgrammeId::CHANNEL_MAX.0, ProgrammeId::START_MAX),
        ] {
            let id = ProgrammeId::new(GuideChannelId(channel), start).unwrap();
            assert_eq!((id.channel(), id.start()), (Some(GuideChannelId(channel)), start));
            assert!(id.0 < 1 << 53);
        }
    }

    #[test]
    fn what_does_not_fit_has_no_id() {
        let channel = GuideChannelId(1);
        for start in [i64::MIN, 0, ProgrammeId::START_MIN - 1, ProgrammeId::START_MAX + 1, i64::MAX] {
            assert_eq!(ProgrammeId::new(channel, start), None, "{start}");
        }
        assert_eq!(ProgrammeId::new(GuideChannelId(1 << 21), ProgrammeId::START_MIN), None);
        for id in [1 << 53, u64::MAX] {
            assert_eq!(ProgrammeId(id).channel(), None, "{id}");
        }
    }
}
