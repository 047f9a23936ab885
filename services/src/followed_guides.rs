//! The guides of the channels that recordings follow, and which of them have changed so that the times of their programmes are
//! others.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::state::GuideState;
use domain::ids::{GuideSourceId, RecordingId};
use domain::recording::{FollowedAiring, Recording};
use storage::guide::GuideFile;
use storage::{Models, Table};

use crate::guide::{GuideReader, Guides};

/// The zone of the times without one in the present file of each guide source.
pub(crate) type GuideZones = BTreeMap<GuideSourceId, Option<String>>;

/// The guides at one moment.
pub(crate) struct FollowedGuides {
    channels: Arc<Table<Channel>>,
    reader: GuideReader,
    zones: GuideZones,
}

/// The guide of the channel of a recording.
pub(crate) struct FollowedGuide {
    /// As recordings name it.
    pub(crate) key: String,
    source: GuideSourceId,
}

impl FollowedGuides {
    pub(crate) fn new(models: &Models, guides: &Guides) -> Self {
        Self {
            channels: models.channels.load(),
            reader: guides.reader(),
            zones: zones(models, &guides.files.present()),
        }
    }

    /// Returns the guide that the channel of a recording shows now. `None` if it has none, or if a user chose another channel
    /// for the recording.
    pub(crate) fn guide_of(&self, recording: &Recording) -> Option<FollowedGuide> {
        let followed = recording.followed.as_ref().filter(|it| it.channel == recording.channel)?;
        self.shown(followed)
    }

    fn shown(&self, followed: &FollowedAiring) -> Option<FollowedGuide> {
        let channel = self.channels.get(followed.channel.0).filter(|it| it.enabled)?;
        let guide = self.reader.channel_guide(channel).filter(|it| !it.is_placeholder)?;
        let key = match guide.is_generated() {
            true => channel.uuid.to_string(),
            false => guide.guide_channel.key.clone(),
        };
        Some(FollowedGuide { key, source: guide.guide_channel.source })
    }

    /// Returns the recordings whose channel has another guide than they follow, or one with another zone than at the last
    /// call: the guide need not have a programme at their old times to say where their programmes are now.
    pub(crate) fn moved(&self, recordings: &[Arc<Recording>], known: &mut GuideZones) -> Vec<RecordingId> {
        let has_other_zone = |it: GuideSourceId| {
            self.zones.get(&it).zip(known.get(&it)).is_some_and(|(now, then)| now != then)
        };
        let is_moved = |it: &FollowedAiring| {
            let is_of_guide = !it.guide_key.is_empty();
            let shown = is_of_guide.then(|| self.shown(it)).flatten();
            shown.is_some_and(|shown| {
                !shown.key.eq_ignore_ascii_case(&it.guide_key) || has_other_zone(shown.source)
            })
        };
        let live = recordings.iter().filter(|it| !it.status.is_final());
        let moved = live.filter(|it| it.followed.as_ref().is_some_and(is_moved)).map(|it| it.id).collect();
        // Those without a file of the present state keep what is known.
        known.extend(self.zones.clone());
        moved
    }
}

/// Returns the zones of the guides whose present file is that of their state: a state can be stored some time before its file
/// is installed.
fn zones(models: &Models, files: &BTreeMap<GuideSourceId, Arc<GuideFile>>) -> GuideZones {
    let states = models.guide_states.load();
    let is_present =
        |it: &&Arc<GuideState>| files.get(&it.source).is_some_and(|file| file.generation() == it.generation);
    states.iter().filter(is_present).map(|it| (it.source, it.time_zone.clone())).collect()
}
