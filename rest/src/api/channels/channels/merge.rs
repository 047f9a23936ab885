//! Adds streams to the channels with the same guide id or name, instead of creating channels.

use std::collections::{BTreeMap, HashMap};

use actors::now_ms;
use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::playlist::catalogue::channel_key;
use domain::stream::Stream;
use server::reply::Refusal;
use storage::{Table, Write};

use super::adult::follow_marks;
use super::edit::STREAMS_MAX;
use crate::api::channels::undo::UndoLog;
use crate::choice::choice;

choice!(
    enum MergeBy {
        TvgId = "tvg_id",
        Name = "name",
        TvgIdOrName = "tvg_id_or_name",
    }
);

impl MergeBy {
    /// Returns the text by which streams and channels are compared; `None` if nothing can have the same.
    fn key(self, name: &str, tvg_id: Option<&str>) -> Option<String> {
        let text = match self {
            Self::TvgId => tvg_id.unwrap_or_default(),
            Self::Name => name,
            Self::TvgIdOrName => return Some(channel_key(tvg_id, name)),
        };
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Guide ids that differ in case are two channels.
        let key = if self == Self::Name { words.to_lowercase() } else { words };
        (!key.is_empty()).then_some(key)
    }
}

/// The result of adding a stream.
pub(super) enum Merge {
    /// No channel has its key.
    NoChannel,
    /// This channel plays it.
    Into(Box<Channel>),
    /// This channel has the maximum number of streams.
    Full(ChannelId),
}

impl Merge {
    /// Returns the channel that plays the stream, if there is one; a full channel is an error of the request.
    pub(super) fn into_channel(self) -> Result<Option<Channel>, Refusal> {
        match self {
            Self::NoChannel => Ok(None),
            Self::Into(channel) => Ok(Some(*channel)),
            Self::Full(id) => {
                let message = format!("Channel {id} would have more than {STREAMS_MAX} streams.");
                Err(Refusal::field("merge_by", message))
            }
        }
    }
}

/// The channels with each guide id or name.
pub struct ChannelKeys {
    by: MergeBy,
    channels: HashMap<String, ChannelId>,
    /// Channels that existed before, by their keys in lower case: for a stream whose key no channel has exactly.
    in_any_case: HashMap<String, ChannelId>,
}

impl ChannelKeys {
    /// Returns the keys by which `headwater import` finds the channels that exist.
    pub fn new_for_import<'a>(channels: impl IntoIterator<Item = &'a Channel>) -> Self {
        Self::new(MergeBy::TvgIdOrName, channels)
    }

    /// Of several channels with the same key, the one with the lowest number counts.
    fn new<'a>(by: MergeBy, channels: impl IntoIterator<Item = &'a Channel>) -> Self {
        let mut all: Vec<_> = channels.into_iter().collect();
        all.sort_by_key(|it| (it.number.is_none(), it.number, it.id));
        let mut keys = Self { by, channels: HashMap::new(), in_any_case: HashMap::new() };
        for channel in all {
            if let Some(key) = by.key(&channel.name, channel.tvg_id.as_deref()) {
                keys.in_any_case.entry(key.to_lowercase()).or_insert(channel.id);
                keys.channels.entry(key).or_insert(channel.id);
            }
        }
        keys
    }

    /// Returns the channel to which a stream with this name and guide id is added: one with its key, or else one that existed
    /// before with its key in another case.
    pub fn find(&self, name: &str, tvg_id: Option<&str>) -> Option<ChannelId> {
        let key = self.by.key(name, tvg_id)?;
        self.channels.get(&key).or_else(|| self.in_any_case.get(&key.to_lowercase())).copied()
    }
}

/// The channels to which streams are added.
pub(super) struct MergeTargets {
    keys: ChannelKeys,
    /// Channels that this operation created, which are kept for the undo when they are complete.
    created: BTreeMap<ChannelId, Channel>,
    /// Channels that existed before, as they were.
    merged: BTreeMap<ChannelId, Channel>,
    n_streams: usize,
}

impl MergeTargets {
    pub(super) fn new(by: MergeBy, channels: &Table<Channel>) -> Self {
        let keys = ChannelKeys::new(by, channels.iter().map(|it| &**it));
        Self { keys, created: BTreeMap::new(), merged: BTreeMap::new(), n_streams: 0 }
    }

    /// Adds a stream to the channel with its key, if there is one. `name` is the name of its channel.
    pub(super) fn add(
        &mut self,
        write: &mut Write<'_>,
        stream: &Stream,
        name: &str,
    ) -> Result<Merge, Refusal> {
        let id = self.keys.find(name, stream.tvg_id());
        let before = id.map_or(Ok(None), |it| write.get::<Channel>(it.0))?;
        let (Some(id), Some(before)) = (id, before) else { return Ok(Merge::NoChannel) };
        if before.streams.contains(&stream.id) {
            return Ok(Merge::Into(Box::new(before)));
        }
        if before.streams.len() >= STREAMS_MAX {
            return Ok(Merge::Full(id));
        }
        let mut channel = Channel { updated_at: now_ms(), ..before.clone() };
        channel.streams.push(stream.id);
        follow_marks(write, &before, &mut channel)?;
        write.put(&channel)?;
        match self.created.get_mut(&id) {
            Some(created) => *created = channel.clone(),
            None => {
                self.n_streams += 1;
                self.merged.entry(id).or_insert(before);
            }
        }
        Ok(Merge::Into(Box::new(channel)))
    }

    /// Adds the streams with the key of this one to its new channel from now on.
    pub(super) fn created(&mut self, stream: &Stream, name: &str, channel: Channel) {
        // The name of the channel can be cut.
        if let Some(key) = self.keys.by.key(name, stream.tvg_id()) {
            self.keys.channels.insert(key, channel.id);
        }
        self.created.insert(channel.id, channel);
    }

    /// Returns the number of streams that were added to channels that existed before.
    pub(super) fn n_streams(&self) -> usize {
        self.n_streams
    }

    /// Notes all changes. Returns the number of streams that were added to channels that existed before, and the ids of
    /// these channels.
    pub(super) fn finish(
        self,
        write: &Write<'_>,
        log: &mut UndoLog,
    ) -> Result<(usize, Vec<ChannelId>), Refusal> {
        for channel in self.created.values() {
            log.created(channel);
        }
        for before in self.merged.values() {
            if let Some(after) = write.get::<Channel>(before.id.0)? {
                log.edited(before, &after);
            }
        }
        Ok((self.n_streams, self.merged.into_keys().collect()))
    }
}
