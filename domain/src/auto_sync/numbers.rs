//! Assigns numbers to automatic channels.

use std::collections::{BTreeSet, HashMap};

use super::{NumberingMode, SyncSettings, SyncStream};
use crate::channel::{Channel, ChannelNumber};
use crate::ids::{ChannelId, GroupId};

/// The free and the taken numbers during a synchronisation.
pub(super) struct Numbering {
    taken: BTreeSet<ChannelNumber>,
    /// Channels that may get another number, and whether they do not prefer their present one.
    released: HashMap<ChannelId, bool>,
    /// The number from which the search of a group goes on. Numbers only become taken, so none before it is free.
    next: HashMap<GroupId, ChannelNumber>,
}

impl Numbering {
    pub(super) fn new(taken: Vec<ChannelNumber>) -> Self {
        Self { taken: taken.into_iter().collect(), released: HashMap::new(), next: HashMap::new() }
    }

    /// Frees the number of a channel that has to get another one. A number that an admin set is kept.
    pub(super) fn release_invalid(
        &mut self,
        channel: &Channel,
        stream: &SyncStream,
        settings: &SyncSettings,
        is_packed: bool,
    ) {
        let is_edited = channel.auto.as_ref().is_none_or(|it| it.synced.number != channel.number);
        if is_edited {
            return;
        }
        let is_valid = channel.number.is_some_and(|number| match settings.mode {
            NumberingMode::Fixed | NumberingMode::NextAvailable => settings.is_in_range(number),
            NumberingMode::Provider => match stream.number {
                Some(wanted) => wanted == number,
                None => settings.is_in_range(number),
            },
        });
        let is_providers = settings.mode == NumberingMode::Provider && channel.number == stream.number;
        if !is_valid || (is_packed && !is_providers) {
            self.released.insert(channel.id, is_packed);
            if let Some(number) = channel.number {
                self.taken.remove(&number);
            }
        }
    }

    /// Returns the synchronised number of an existing channel.
    pub(super) fn number_of(
        &mut self,
        channel: &Channel,
        stream: &SyncStream,
        settings: &SyncSettings,
    ) -> Option<ChannelNumber> {
        let Some(is_packed) = self.released.get(&channel.id).copied() else {
            return channel.auto.as_ref().and_then(|it| it.synced.number);
        };
        if let Some(number) = self.provider_number(stream, settings) {
            return Some(number);
        }
        let present = channel.number.filter(|it| !is_packed && settings.is_in_range(*it));
        if let Some(number) = present.filter(|it| self.taken.insert(*it)) {
            return Some(number);
        }
        // Without a free number of its range, the channel keeps its number if that is still free.
        self.next(stream, settings).or_else(|| channel.number.filter(|it| self.taken.insert(*it)))
    }

    /// Takes the number of the provider, if it decides and the number is free.
    fn provider_number(&mut self, stream: &SyncStream, settings: &SyncSettings) -> Option<ChannelNumber> {
        let wanted = stream.number.filter(|_| settings.mode == NumberingMode::Provider);
        wanted.filter(|it| self.taken.insert(*it))
    }

    /// Takes the number for a stream; `None` if none is left.
    pub(super) fn next(&mut self, stream: &SyncStream, settings: &SyncSettings) -> Option<ChannelNumber> {
        if let Some(number) = self.provider_number(stream, settings) {
            return Some(number);
        }
        let mut number = self.next.get(&stream.group).copied().unwrap_or_else(|| settings.first());
        // Ends, because every iteration skips a number that is taken.
        while settings.is_in_range(number) {
            let is_free = self.taken.insert(number);
            let after = number.next();
            self.next.insert(stream.group, after.unwrap_or(number));
            if is_free {
                return Some(number);
            }
            number = after?;
        }
        None
    }
}
