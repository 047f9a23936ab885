//! Collects a guide: gives its channels their ids, and passes its programmes on to the guide file.

use std::collections::HashMap;

use domain::guide::channel::GuideChannel;
use domain::guide::marks::with_marks;
use domain::guide::programme::{self, Programme};
use domain::guide::shift::OFFSET_MINUTES_MAX;
use domain::guide::source::GuideSource;
use domain::guide::xmltv::{XmltvPlace, XmltvSkip, XmltvSummary};
use domain::ids::{GuideChannelId, GuideSourceId};
use storage::guide::{GuideWriter, StoredProgramme};
use storage::{BulkWrite, Store};

use super::error::GuideError;
use super::input::GuideSink;
use super::progress::GuidePhase;

/// Seconds of a day.
pub(super) const DAY_SECONDS: i64 = 86_400;
/// Maximum number of channels of a guide. The largest known have a third of it.
pub const GUIDE_CHANNELS_MAX: usize = 150_000;

/// Maximum number of programmes of a guide.
const GUIDE_PROGRAMMES_MAX: u64 = 20_000_000;

/// The largest id of a guide channel: ids of programmes contain it, and have to be exact numbers in JavaScript.
pub(super) const CHANNEL_ID_MAX: u32 = (1 << 21) - 1;

/// Maximum length of the key of a guide channel, in bytes. A channel with a longer one is left out.
const KEY_BYTES_MAX: usize = 1024;
/// Maximum number of names of a guide channel. More are left out.
const NAMES_MAX: usize = 32;
/// Maximum length of a name of a guide channel, in characters. A longer one is cut.
const NAME_CHARS_MAX: usize = 512;
/// Maximum length of the address of an icon, in bytes. A longer one is left out.
const ICON_BYTES_MAX: usize = 2048;

/// Programmes that begin later than this are left out, in seconds.
const FUTURE_SECONDS_MAX: i64 = 366 * 86_400;

/// The guide file lets a programme that does not say when it ends last at most so long, in seconds.
const OPEN_SECONDS_MAX: i64 = 6 * 3_600;

/// A guide channel during a refresh.
struct Entry {
    id: GuideChannelId,
    names: Vec<String>,
    icon: Option<String>,
    /// Whether this guide contains it.
    is_seen: bool,
    /// The channel as it is stored, without its key.
    stored: Option<(Vec<String>, Option<String>)>,
}

/// The times within which programmes are taken, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Programmes that end before this are left out.
    pub(super) since: i64,
    /// Programmes that end after this count for the comparison with the former guide.
    pub(super) now: i64,
}

impl Window {
    /// Returns the window of a refresh at `now`.
    pub(super) fn new(source: &GuideSource, now: i64) -> Self {
        // A programme that is over for the guide is still due on a channel that shows it later.
        let latest = (i64::from(OFFSET_MINUTES_MAX) + i64::from(source.offset_minutes.max(0))) * 60;
        let kept = i64::from(source.history_days) * DAY_SECONDS;
        Self { since: now - kept.max(latest), now }
    }
}

/// Counts of a guide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) n_channels: u64,
    /// Programmes that were taken, duplicates included.
    pub(super) n_programmes: u64,
    /// Those of them that have not ended.
    pub(super) n_upcoming: u64,
    /// Elements that were left out because they are damaged.
    pub(super) n_skipped: u64,
    /// Elements that were damaged, and stay without the damaged part.
    pub(super) n_repaired: u64,
    /// Programmes that do not end after their start.
    pub(super) n_stops_wrong: u64,
    /// The first element that was left out, and why.
    pub(super) first_skip: Option<(XmltvPlace, XmltvSkip)>,
}

/// The receiver of a guide.
pub(super) struct Collector<'a> {
    store: &'a Store,
    source: GuideSourceId,
    writer: GuideWriter,
    window: Window,
    channels: HashMap<String, Entry>,
    /// Reserves ids; begun with the first new channel.
    bulk: Option<BulkWrite<GuideChannel>>,
    counts: Counts,
    /// The inside of a programme, reused.
    inner: String,
    report: &'a dyn Fn(GuidePhase, u8, Counts) -> Result<(), GuideError>,
}

/// The collected guide.
pub(super) struct Collected {
    pub(super) writer: GuideWriter,
    pub(super) counts: Counts,
    /// Reserved ids of new channels.
    pub(super) bulk: Option<BulkWrite<GuideChannel>>,
    /// The channels of the guide, and those that it no longer names.
    pub(super) channels: CollectedChannels,
}

/// The channels of a guide after a refresh.
#[derive(Debug, Default)]
pub(super) struct CollectedChannels {
    pub(super) present: Vec<GuideChannel>,
    pub(super) gone: Vec<GuideChannel>,
    /// Whether one of those that are present is new or differs from its record.
    pub(super) has_changes: bool,
}

/// Returns the key of a guide channel. `None` if it is blank or too long.
pub(super) fn usable_key(key: &str) -> Option<&str> {
    Some(key.trim()).filter(|it| !it.is_empty() && it.len() <= KEY_BYTES_MAX)
}

/// Adds the names that a guide channel does not have, cut to their maximum length, as long as it has few.
pub(super) fn add_names(names: &mut Vec<String>, more: &[String]) {
    for name in more {
        let name: String = name.trim().chars().take(NAME_CHARS_MAX).collect();
        if !name.is_empty() && names.len() < NAMES_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        store: &'a Store,
        source: GuideSourceId,
        writer: GuideWriter,
        window: Window,
        report: &'a dyn Fn(GuidePhase, u8, Counts) -> Result<(), GuideError>,
    ) -> Result<Self, GuideError> {
        let mut channels = HashMap::new();
        store.collection::<GuideChannel>().for_each_of(u64::from(source.0), |it| {
            let stored = Some((it.names.clone(), it.icon.clone()));
            let entry = Entry { id: it.id, names: it.names, icon: it.icon, is_seen: false, stored };
            channels.insert(it.key, entry);
        })?;
        let (bulk, counts, inner) = (None, Counts::default(), String::new());
        Ok(Self { store, source, writer, window, channels, bulk, counts, inner, report })
    }

    /// Returns the collected guide.
    pub(super) fn finish(self) -> Collected {
        let mut channels = CollectedChannels::default();
        for (key, entry) in self.channels {
            let Entry { id, mut names, icon, is_seen, stored } = entry;
            if is_seen && names.is_empty() {
                names.push(key.clone());
            }
            channels.has_changes |= is_seen && stored.is_none_or(|it| it != (names.clone(), icon.clone()));
            let channel = GuideChannel { id, source: self.source, key, names, icon };
            if is_seen { channels.present.push(channel) } else { channels.gone.push(channel) }
        }
        // In a stable order, so that the same guide gives the same blocks.
        channels.present.sort_unstable_by_key(|it| it.id);
        channels.gone.sort_unstable_by_key(|it| it.id);
        Collected { writer: self.writer, counts: self.counts, bulk: self.bulk, channels }
    }

    /// Returns the channel with this key, which is new if the source had none. `None` if it cannot be taken.
    fn entry(&mut self, key: &str) -> Result<Option<&mut Entry>, GuideError> {
        let Some(key) = usable_key(key) else { return Ok(None) };
        if !self.channels.contains_key(key) {
            let id = self.new_id()?;
            let entry = Entry { id, names: Vec::new(), icon: None, is_seen: false, stored: None };
            self.channels.insert(key.to_owned(), entry);
        }
        let entry = self.channels.get_mut(key).expect("it was inserted above");
        if !entry.is_seen {
            entry.is_seen = true;
            // The names of this guide count, and not those of the former one.
            entry.names.clear();
            entry.icon = None;
            self.counts.n_channels += 1;
        }
        Ok(Some(entry))
    }

    fn new_id(&mut self) -> Result<GuideChannelId, GuideError> {
        let max = GUIDE_CHANNELS_MAX as u64;
        if self.channels.len() >= 2 * GUIDE_CHANNELS_MAX || self.counts.n_channels >= max {
            return Err(GuideError::TooMany { what: "channels", max });
        }
        let bulk = match &mut self.bulk {
            Some(bulk) => bulk,
            None => self.bulk.insert(self.store.bulk_write(u64::from(self.source.0))?),
        };
        let id = bulk.next_id()?;
        if id > CHANNEL_ID_MAX {
            return Err(GuideError::TooMany { what: "channels in its life", max: u64::from(CHANNEL_ID_MAX) });
        }
        Ok(GuideChannelId(id))
    }
}

impl GuideSink for Collector<'_> {
    fn channel(&mut self, key: &str, names: &[String], icon: Option<&str>) -> Result<(), GuideError> {
        let Some(entry) = self.entry(key)? else {
            self.counts.n_skipped += 1;
            return Ok(());
        };
        add_names(&mut entry.names, names);
        let icon = icon.map(str::trim).filter(|it| !it.is_empty() && it.len() <= ICON_BYTES_MAX);
        if entry.icon.is_none() {
            entry.icon = icon.map(str::to_owned);
        }
        Ok(())
    }

    fn programme(&mut self, key: &str, programme: &Programme) -> Result<(), GuideError> {
        let programme = with_marks(programme);
        self.put(key, (programme.start, programme.stop), |inner| programme::to_xml(&programme, inner))
    }

    fn stored(&mut self, key: &str, programme: &StoredProgramme) -> Result<(), GuideError> {
        self.put(key, (programme.start, programme.stop), |inner| inner.push_str(&programme.inner))
    }

    fn skipped(&mut self, n: u64) {
        self.counts.n_skipped += n;
    }

    fn damaged(&mut self, found: &XmltvSummary) {
        self.counts.n_skipped += found.n_skipped();
        self.counts.n_repaired += found.repaired;
        self.counts.n_stops_wrong += found.stops_wrong;
        self.counts.first_skip = self.counts.first_skip.or(found.first_skip);
    }

    fn progress(&mut self, phase: GuidePhase, percent: u8) -> Result<(), GuideError> {
        (self.report)(phase, percent, self.counts)
    }
}

impl Collector<'_> {
    /// Adds a programme. `write` writes the inside of its element.
    fn put(
        &mut self,
        key: &str,
        (start, stop): (i64, i64),
        write: impl FnOnce(&mut String),
    ) -> Result<(), GuideError> {
        let Window { since, now } = self.window;
        // The guide file decides when a programme ends that does not say it.
        let end = if stop > start { stop } else { start.saturating_add(OPEN_SECONDS_MAX) };
        if end <= since || start > now.saturating_add(FUTURE_SECONDS_MAX) {
            return Ok(());
        }
        if self.counts.n_programmes >= GUIDE_PROGRAMMES_MAX {
            return Err(GuideError::TooMany { what: "programmes", max: GUIDE_PROGRAMMES_MAX });
        }
        let Some(id) = self.entry(key)?.map(|it| it.id) else {
            self.counts.n_skipped += 1;
            return Ok(());
        };
        self.inner.clear();
        write(&mut self.inner);
        self.writer.add(id, start, stop, &self.inner)?;
        self.counts.n_programmes += 1;
        self.counts.n_upcoming += u64::from(end > now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::guide::source::GuideSourceKind;

    use super::*;

    #[test]
    fn programmes_stay_as_long_as_a_late_channel_can_show_them() {
        for (days, minutes, expected) in
            [(0, 0, 24 * 60), (0, 90, 25 * 60 + 30), (0, -90, 24 * 60), (1, 0, 24 * 60), (2, 90, 48 * 60)]
        {
            let source = GuideSource::new(GuideSourceId(1), "", GuideSourceKind::Xmltv, 0);
            let source = GuideSource { history_days: days, offset_minutes: minutes, ..source };
            let window = Window::new(&source, 1_900_000_000);
            assert_eq!(window.now - window.since, expected * 60, "{days} days, {minutes} minutes");
        }
    }
}
