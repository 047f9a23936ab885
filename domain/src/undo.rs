//! Undo of operations on many records: the values before an operation, and after it, so that later changes are noticed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::Channel;
use crate::group::Group;
use crate::guide::matching::GuideAlias;
use crate::ids::{ChannelId, UserId};
use crate::lineup::Lineup;
use crate::logo::Logo;
use crate::stream::Stream;
use crate::vod::regroup::TitleShape;

/// Time for which an operation can be undone, in milliseconds.
pub const UNDO_AGE_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of operations that can be undone; the oldest are dropped.
pub const UNDO_ENTRIES_MAX: usize = 100;
/// Maximum size of the values of one operation, in bytes.
pub const UNDO_ENTRY_BYTES_MAX: u64 = 32 << 20;
/// Maximum size of the values of all operations, in bytes; the oldest are dropped.
pub const UNDO_BYTES_MAX: u64 = 64 << 20;
/// Size after which the values continue in another part, in bytes. A part is one record of the store.
pub const UNDO_PART_BYTES: usize = 128 << 10;

/// Maximum number of channels in one [`UndoChange::LineupEdited`], so that it fits a part.
const LINEUP_CHANNELS_MAX: usize = 5_000;

/// An operation that can be undone. Its values are in [`UndoPart`]s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoEntry {
    pub id: u32,
    /// Milliseconds since 1970.
    pub at: i64,
    pub user: UserId,
    /// Name of the user at that time.
    pub username: String,
    /// The operation, as a message for people.
    pub message: String,
    /// Number of changed records.
    pub n_changes: u32,
    /// Size of the values.
    pub bytes: u64,
    /// Ids of the parts, in order.
    pub parts: Vec<u32>,
    /// Names of the uploaded files that the values refer to.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A part of the values of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoPart {
    pub id: u32,
    pub changes: Vec<UndoChange>,
}

/// The change of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum UndoChange {
    ChannelEdited {
        id: u32,
        name: String,
        fields: ChangedFields,
    },
    ChannelCreated(Box<Channel>),
    ChannelDeleted(Box<Channel>),
    /// A group that was created because a channel needed it.
    GroupCreated(Group),
    GroupDeleted(Group),
    /// A logo that was created because a channel needed it.
    LogoCreated(Logo),
    LogoDeleted(Logo),
    StreamCreated(Box<Stream>),
    StreamDeleted(Box<Stream>),
    /// A name that the operation linked with a guide channel.
    GuideAliasCreated(GuideAlias),
    GuideAliasDeleted(GuideAlias),
    /// Channels that were added to a lineup (`true`) or removed from it (`false`).
    LineupEdited {
        id: u32,
        name: String,
        channels: Vec<(ChannelId, bool)>,
    },
    /// Films or series that were merged, split or edited. Several if they exchanged relations.
    TitlesChanged {
        before: Vec<TitleShape>,
        after: Vec<TitleShape>,
    },
}

/// The values of the changed fields before and after the operation, by the name in the record.
pub type ChangedFields = BTreeMap<String, (Value, Value)>;

impl UndoChange {
    /// Compares a channel before and after an operation. Returns `None` if nothing but its time of change differs.
    pub fn from_channel(before: &Channel, after: &Channel) -> Option<Self> {
        if before == after {
            return None;
        }
        let (old, mut new) = (fields_of(before), fields_of(after));
        let mut fields = ChangedFields::new();
        for (name, value) in old {
            let now = new.remove(&name).unwrap_or_default();
            if now != value && name != TIME_OF_CHANGE {
                fields.insert(name, (value, now));
            }
        }
        // A record leaves some fields out that have no value.
        fields.extend(new.into_iter().map(|(name, value)| (name, (Value::Null, value))));
        let (id, name) = (after.id.0, after.name.clone());
        (!fields.is_empty()).then_some(Self::ChannelEdited { id, name, fields })
    }

    /// Describes channels that were added to a lineup (`true`) or removed from it (`false`).
    pub fn from_lineup(lineup: &Lineup, channels: &[(ChannelId, bool)]) -> impl Iterator<Item = Self> {
        channels.chunks(LINEUP_CHANNELS_MAX).map(|it| {
            let (id, name) = (lineup.id.0, lineup.name.clone());
            Self::LineupEdited { id, name, channels: it.to_vec() }
        })
    }

    /// Describes the restoration of changed fields. Returns what [`UndoChange::from_channel`] would for it, in less time.
    pub fn from_restored(channel: &Channel, fields: ChangedFields) -> Self {
        let fields = fields.into_iter().map(|(name, (before, after))| (name, (after, before))).collect();
        Self::ChannelEdited { id: channel.id.0, name: channel.name.clone(), fields }
    }

    /// Returns the number of changes, as users count them.
    pub fn count(&self) -> usize {
        match self {
            Self::LineupEdited { channels, .. } => channels.len(),
            _ => 1,
        }
    }

    /// Returns the size in bytes as JSON, which is close to its size in the store.
    pub fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |it| it.len())
    }
}

/// A field that every change sets, and that no undo restores.
const TIME_OF_CHANGE: &str = "updated_at";

fn fields_of(channel: &Channel) -> Map<String, Value> {
    match serde_json::to_value(channel) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Returns the channel with its changed fields as they were before. If some of them changed again since, returns the
/// names of these fields.
pub fn restored(now: &Channel, fields: &ChangedFields) -> Result<Channel, Vec<String>> {
    let mut values = fields_of(now);
    let is_changed = |(name, (_, after)): (&String, &(Value, Value))| {
        (values.get(name).unwrap_or(&Value::Null) != after).then(|| name.clone())
    };
    let changed: Vec<String> = fields.iter().filter_map(is_changed).collect();
    if !changed.is_empty() {
        return Err(changed);
    }
    for (name, (before, _)) in fields {
        match before {
            // A record leaves some fields out that have no value.
            Value::Null => values.remove(name),
            before => values.insert(name.clone(), before.clone()),
        };
    }
    serde_json::from_value(Value::Object(values)).map_err(|_| fields.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{ChannelId, StreamId};

    fn channel() -> Channel {
        let properties = Map::from_iter([("a".to_owned(), Value::from(vec![0.1]))]);
        Channel {
            number: Some("4.1".parse().unwrap()),
            streams: vec![StreamId(2), StreamId(1)],
            custom_properties: properties,
            ..Channel::new(ChannelId(7), Uuid::from_u128(1), "News", 5)
        }
    }

    fn fields(before: &Channel, after: &Channel) -> ChangedFields {
        match UndoChange::from_channel(before, after) {
            Some(UndoChange::ChannelEdited { fields, .. }) => fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_changed_fields_are_kept_and_restored() {
        let before = channel();
        let after = Channel { number: None, streams: Vec::new(), updated_at: 9, ..before.clone() };
        let fields = fields(&before, &after);
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["number", "streams"]);
        let renamed = Channel { name: "World".to_owned(), ..after };
        let restored = restored(&renamed, &fields).unwrap();
        assert_eq!(restored, Channel { name: "World".to_owned(), updated_at: 9, ..before });
        let change = UndoChange::from_channel(&renamed, &restored);
        assert_eq!(change, Some(UndoChange::from_restored(&restored, fields)));
    }

    #[test]
    fn a_field_that_a_record_leaves_out_is_restored() {
        let before = channel();
        let after = Channel { moved_streams: vec![StreamId(2)], guide_offset: Some(5), ..before.clone() };
        assert_eq!(restored(&after, &fields(&before, &after)).unwrap(), before);
        assert_eq!(restored(&before, &fields(&after, &before)).unwrap(), after);
    }

    #[test]
    fn a_field_that_changed_again_is_named() {
        let before = channel();
        let after = Channel { name: "World".to_owned(), number: None, ..before.clone() };
        let fields = fields(&before, &after);
        let later = Channel { name: "Sports".to_owned(), ..after };
        assert_eq!(restored(&later, &fields), Err(vec!["name".to_owned()]));
    }

    #[test]
    fn many_channels_of_a_lineup_are_several_changes_that_fit_parts() {
        let lineup = Lineup::new(crate::ids::LineupId(u32::MAX), "x".repeat(100), true);
        let channels: Vec<_> = (0..50_000).map(|it| (ChannelId(u32::MAX - it), it % 2 == 0)).collect();
        let changes: Vec<_> = UndoChange::from_lineup(&lineup, &channels).collect();
        assert_eq!(changes.iter().map(UndoChange::count).sum::<usize>(), 50_000);
        assert!(changes.iter().all(|it| it.bytes() <= UNDO_PART_BYTES), "{}", changes[0].bytes());
        assert_eq!(UndoChange::from_lineup(&lineup, &[]).count(), 0);
    }

    #[test]
    fn a_time_of_change_alone_is_not_a_change() {
        assert_eq!(UndoChange::from_channel(&channel(), &Channel { updated_at: 9, ..channel() }), None);
    }
}
