//! Channel numbers: finds free ones, and exchanges those of many channels.

use std::collections::{BTreeSet, HashMap};

use actors::now_ms;
use domain::channel::{Channel, ChannelNumber};
use domain::ids::ChannelId;
use server::reply::Refusal;
use storage::{Table, Write};

use crate::api::channels::undo::UndoLog;

/// Numbers that were taken when the set was built, so that a write has to check only a few.
pub(super) struct Taken {
    numbers: BTreeSet<ChannelNumber>,
}

impl Taken {
    pub(super) fn new(channels: &Table<Channel>) -> Self {
        Self { numbers: channels.iter().filter_map(|it| it.number).collect() }
    }

    /// Returns the lowest free whole number from `start` on, and marks it as taken.
    pub(super) fn next_from(
        &mut self,
        write: &Write<'_>,
        start: ChannelNumber,
    ) -> Result<ChannelNumber, Refusal> {
        let mut number = Some(start);
        while let Some(it) = number {
            // Another write may have taken the number since the set was built.
            if self.numbers.insert(it) && holder(write, it)?.is_none() {
                return Ok(it);
            }
            number = it.next();
        }
        Err(Refusal::field("channel_number", "No channel number is left."))
    }

    /// Returns the lowest free whole number.
    pub(super) fn lowest(&mut self, write: &Write<'_>) -> Result<ChannelNumber, Refusal> {
        self.next_from(write, FIRST)
    }

    /// Returns the whole number after the highest.
    pub(super) fn after_highest(&mut self, write: &Write<'_>) -> Result<ChannelNumber, Refusal> {
        let next = ChannelNumber::next_after([self.numbers.last().copied()]);
        self.next_from(
            write,
            next.ok_or_else(|| Refusal::field("channel_number", "No channel number is left."))?,
        )
    }

    /// Takes this number. Returns false if another channel has it.
    pub(super) fn take(&mut self, write: &Write<'_>, number: ChannelNumber) -> Result<bool, Refusal> {
        Ok(self.numbers.insert(number) && holder(write, number)?.is_none())
    }
}

const FIRST: ChannelNumber = ChannelNumber::ONE;

/// Returns the channel that has this number.
pub(super) fn holder(write: &Write<'_>, number: ChannelNumber) -> Result<Option<Channel>, Refusal> {
    Ok(write.by::<Channel>("number", number.to_string())?.into_iter().next())
}

/// Pairs of a channel before and after the change. Each channel occurs once.
pub(in crate::api::channels) type Changes = Vec<(Channel, Channel)>;

/// Returns the positions of the changes whose new number conflicts with another channel.
pub(in crate::api::channels) fn conflicts(
    write: &Write<'_>,
    changes: &Changes,
) -> Result<Vec<usize>, Refusal> {
    let after: HashMap<ChannelId, Option<ChannelNumber>> =
        changes.iter().map(|it| (it.1.id, it.1.number)).collect();
    let mut given: BTreeSet<ChannelNumber> =
        changes.iter().filter(|it| it.0.number == it.1.number).filter_map(|it| it.1.number).collect();
    let mut conflicts = Vec::new();
    for (n, (before, channel)) in changes.iter().enumerate() {
        let Some(number) = channel.number.filter(|it| before.number != Some(*it)) else { continue };
        let is_kept = |it: &Channel| after.get(&it.id).is_none_or(|after| *after == Some(number));
        let is_another = holder(write, number)?.is_some_and(|it| it.id != channel.id && is_kept(&it));
        if !given.insert(number) || is_another {
            conflicts.push(n);
        }
    }
    Ok(conflicts)
}

/// Writes the changed channels, and notes the changes. They may exchange numbers.
pub(in crate::api::channels) fn put_all(
    write: &mut Write<'_>,
    changes: Changes,
    log: &mut UndoLog,
) -> Result<Vec<Channel>, Refusal> {
    put_each(write, changes, |before, channel| log.edited(before, channel))
}

/// Writes the changed channels, and calls a function with each as it was and as it is. They may exchange numbers.
pub(in crate::api::channels) fn put_each(
    write: &mut Write<'_>,
    changes: Changes,
    mut note: impl FnMut(&Channel, &Channel),
) -> Result<Vec<Channel>, Refusal> {
    for (before, channel) in &changes {
        if before.number.is_some() && before.number != channel.number {
            write.put(&Channel { number: None, ..channel.clone() })?;
        }
    }
    let mut channels = Vec::with_capacity(changes.len());
    for (before, mut channel) in changes {
        if channel != before {
            channel.updated_at = now_ms();
            write.put(&channel)?;
            note(&before, &channel);
        }
        channels.push(channel);
    }
    Ok(channels)
}
