//! Gives channels whose stream is missing the new stream that looks the same, so that numbers, addresses and changes by
//! admins do not end with a stream that nothing else recognised.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::settings::SyncSettings;
use super::{SyncStream, channel_name};
use crate::channel::Channel;
use crate::ids::{AccountId, GroupId, StreamId};

/// The values by which a channel and a stream are the same: group, name and guide id.
type Likeness = (GroupId, String, Option<String>);

/// Adds a channel for each wanted stream without one if a channel of this account with the same values is left alone.
/// Changed channels come first, then those with the least number.
pub(super) fn adopt<'a>(
    account: AccountId,
    by_stream: &mut HashMap<StreamId, &'a Channel>,
    wanted: &[SyncStream],
    settings: &HashMap<GroupId, &SyncSettings>,
) {
    let present: HashSet<StreamId> = wanted.iter().filter(|it| !it.is_missing).map(|it| it.id).collect();
    let is_new = |it: &&SyncStream| !it.is_missing && !by_stream.contains_key(&it.id);
    let new: Vec<&SyncStream> = wanted.iter().filter(is_new).collect();
    if new.is_empty() {
        return;
    }
    let mut left: HashMap<Likeness, Vec<&'a Channel>> = HashMap::new();
    for channel in by_stream.values().copied() {
        if let Some(auto) = channel.auto.as_deref().filter(|it| !present.contains(&it.stream)) {
            let likeness = (auto.group, auto.synced.name.clone(), auto.synced.tvg_id.clone());
            left.entry(likeness).or_default().push(channel);
        }
    }
    for channels in left.values_mut() {
        // The first one is the last, where it is taken. A channel of another provider keeps its streams, and comes after those
        // that need one.
        channels.sort_by_key(|it| Reverse((it.is_detached(), !it.is_customized(), it.number, it.id)));
    }
    for stream in new {
        let Some(settings) = settings.get(&stream.group) else { continue };
        let tvg_id = stream.tvg_id.clone().filter(|_| !settings.without_guide);
        let likeness = (stream.group, channel_name(account, &stream.name, settings), tvg_id);
        if let Some(channel) = left.get_mut(&likeness).and_then(Vec::pop) {
            if let Some(auto) = &channel.auto {
                by_stream.remove(&auto.stream);
            }
            by_stream.insert(stream.id, channel);
        }
    }
}
