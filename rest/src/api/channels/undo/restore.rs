//! Restores the values before an operation, or reports why it cannot.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use actors::now_ms;
use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::matching::GuideAlias;
use domain::ids::{ChannelId, StreamId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::undo::{ChangedFields, UndoChange, UndoEntry, UndoPart, restored};
use domain::vod::regroup::TitleShape;
use http::StatusCode;
use serde_json::{Value, json};
use server::reply::Refusal;
use storage::{Record, Write};

use super::log::UndoLog;
use crate::api::channels::channels::numbers::{Changes, conflicts, put_each};
use crate::api::channels::streams::compare_whole_lists;

/// Maximum number of conflicts that a refusal lists.
const CONFLICTS_LISTED_MAX: usize = 100;

/// The things that prevent an undo.
#[derive(Default)]
struct Conflicts {
    listed: Vec<Value>,
    n: usize,
}

impl Conflicts {
    /// Adds a conflict. `fields` are the names of fields in the record.
    fn add(&mut self, record: &str, id: u32, name: &str, fields: &[String], message: &str) {
        self.n += 1;
        if self.listed.len() < CONFLICTS_LISTED_MAX {
            let fields: Vec<&str> = fields.iter().map(|it| name_in_interface(it)).collect();
            self.listed.push(
                json!({ "record": record, "id": id, "name": name, "fields": fields, "message": message }),
            );
        }
    }

    fn refuse(&mut self) -> Result<(), Refusal> {
        if self.n == 0 {
            return Ok(());
        }
        let detail =
            format!("The operation cannot be undone: {} records have changed since, or are in use.", self.n);
        let conflicts = std::mem::take(&mut self.listed);
        let body = json!({ "detail": detail, "conflicts": conflicts });
        Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail).with_body(body))
    }
}

/// Returns the name of a field of a channel as the interface spells it.
fn name_in_interface(field: &str) -> &str {
    match field {
        "number" => "channel_number",
        "group" => "channel_group_id",
        "logo" => "logo_url",
        "stream_profile" => "stream_profile_id",
        "guide_channel" => "epg_data_id",
        "further_guides" => "further_epg_data_ids",
        "guide_offset" => "epg_offset_minutes",
        "keeps_stream_offset" => "epg_follows_stream",
        same => same,
    }
}

/// Restores the values before an operation. Returns the changes, with which this can be undone in turn.
pub(super) fn restore(write: &mut Write<'_>, entry: &UndoEntry) -> Result<UndoLog, Refusal> {
    let mut undo = Restoration::default();
    for part in &entry.parts {
        let part = write.get::<UndoPart>(*part)?;
        for change in part.into_iter().flat_map(|it| it.changes) {
            undo.change(write, change)?;
        }
    }
    undo.finish(write)
}

/// The records that an undo changes.
#[derive(Default)]
struct Restoration {
    conflicts: Conflicts,
    edited: Changes,
    /// The fields of these channels, by id.
    edited_fields: HashMap<u32, ChangedFields>,
    /// Whether records to which channels refer exist, by collection and id. Many channels refer to the same.
    references: HashMap<(&'static str, u32), bool>,
    /// Channels to delete.
    created: Vec<Channel>,
    /// Channels to create.
    deleted: Vec<Channel>,
    groups_created: Vec<Group>,
    groups_deleted: Vec<Group>,
    logos_created: Vec<Logo>,
    logos_deleted: Vec<Logo>,
    /// Streams to delete.
    streams_created: Vec<Stream>,
    /// Streams to create.
    streams_deleted: Vec<Stream>,
    /// Streams that cannot be created again, each of which is a conflict already.
    streams_refused: HashSet<StreamId>,
    /// Aliases to delete.
    aliases_created: Vec<GuideAlias>,
    /// Aliases to create.
    aliases_deleted: Vec<GuideAlias>,
    /// By id: the name of a lineup, and channels that were added to it or removed from it.
    lineups: BTreeMap<u32, (String, Vec<(ChannelId, bool)>)>,
    /// Films and series before and after an operation, in the order of the operations.
    titles: Vec<(Vec<TitleShape>, Vec<TitleShape>)>,
}

impl Restoration {
    /// Compares one change with the present records.
    fn change(&mut self, write: &Write<'_>, change: UndoChange) -> Result<(), Refusal> {
        match change {
            UndoChange::ChannelEdited { id, name, fields } => self.edited(write, id, &name, fields)?,
            UndoChange::ChannelCreated(channel) => match write.get::<Channel>(channel.id.0)? {
                Some(now) if now == *channel => self.created.push(now),
                now => {
                    let changed = now.map(|it| UndoChange::from_channel(&channel, &it)).unwrap_or_default();
                    let fields = match changed {
                        Some(UndoChange::ChannelEdited { fields, .. }) => fields.into_keys().collect(),
                        _ => Vec::new(),
                    };
                    let message = if fields.is_empty() {
                        "The channel was deleted."
                    } else {
                        "The channel was changed."
                    };
                    self.conflicts.add("channel", channel.id.0, &channel.name, &fields, message);
                }
            },
            UndoChange::ChannelDeleted(channel) => self.deleted.push(*channel),
            UndoChange::GroupCreated(group) => self.groups_created.push(group),
            UndoChange::GroupDeleted(group) => self.groups_deleted.push(group),
            UndoChange::LogoCreated(logo) => self.logos_created.push(logo),
            UndoChange::LogoDeleted(logo) => self.logos_deleted.push(logo),
            UndoChange::StreamCreated(stream) => self.streams_created.push(*stream),
            UndoChange::StreamDeleted(stream) => self.streams_deleted.push(*stream),
            UndoChange::GuideAliasCreated(alias) => self.aliases_created.push(alias),
            UndoChange::GuideAliasDeleted(alias) => self.aliases_deleted.push(alias),
            UndoChange::LineupEdited { id, name, channels } => {
                self.lineups.entry(id).or_insert((name, Vec::new())).1.extend(channels);
            }
            UndoChange::TitlesChanged { before, after } => self.titles.push((before, after)),
        }
        Ok(())
    }

    fn edited(
        &mut self,
        write: &Write<'_>,
        id: u32,
        name: &str,
        fields: ChangedFields,
    ) -> Result<(), Refusal> {
        let Some(now) = write.get::<Channel>(id)? else {
            self.conflicts.add("channel", id, name, &[], "The channel was deleted.");
            return Ok(());
        };
        match restored(&now, &fields) {
            Ok(before) => {
                self.edited.push((now, before));
                self.edited_fields.insert(id, fields);
            }
            Err(changed) => {
                self.conflicts.add("channel", id, &now.name, &changed, "The channel was changed.");
            }
        }
        Ok(())
    }

    /// Writes everything, unless there is a conflict.
    fn finish(mut self, write: &mut Write<'_>) -> Result<UndoLog, Refusal> {
        let mut log = UndoLog::default();
        // Deletions come first, because they free numbers and addresses that others get back.
        for channel in std::mem::take(&mut self.created) {
            write.remove::<Channel>(channel.id.0)?;
            log.deleted(channel);
        }
        self.restore_groups_and_logos(write, &mut log)?;
        self.restore_streams(write, &mut log)?;
        for n in conflicts(write, &self.edited)? {
            let (_, channel) = &self.edited[n];
            let fields = ["number".to_owned()];
            self.conflicts.add("channel", channel.id.0, &channel.name, &fields, NUMBER_TAKEN);
        }
        let edited = std::mem::take(&mut self.edited);
        for (now, channel) in &edited {
            self.check_references(write, channel)?;
            self.check_streams(write, now, channel);
        }
        if self.conflicts.n == 0 {
            let mut fields = std::mem::take(&mut self.edited_fields);
            put_each(write, edited, |_, channel| {
                if let Some(fields) = fields.remove(&channel.id.0) {
                    log.restored(channel, fields);
                }
            })?;
        }
        for channel in std::mem::take(&mut self.deleted) {
            self.create(write, channel, &mut log)?;
        }
        self.delete_streams(write, &mut log)?;
        self.restore_lineups(write, &mut log)?;
        self.restore_titles(write, &mut log)?;
        self.conflicts.refuse()?;
        self.delete_unused(write, &mut log)?;
        self.restore_aliases(write, &mut log)?;
        Ok(log)
    }

    fn restore_groups_and_logos(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        for group in std::mem::take(&mut self.groups_deleted) {
            let mut is_taken = false;
            for name in group.names() {
                is_taken |= !write.by::<Group>("name", name)?.is_empty();
            }
            if is_taken {
                self.conflicts.add("channel_group", group.id.0, &group.name, &[], "The name is taken.");
            } else {
                write.put(&group)?;
                log.group_created(&group);
            }
        }
        for logo in std::mem::take(&mut self.logos_deleted) {
            if write.by::<Logo>("url", &logo.url)?.is_empty() {
                write.put(&logo)?;
                log.logo_created(&logo);
            } else {
                self.conflicts.add("logo", logo.id.0, &logo.name, &[], "The address is taken.");
            }
        }
        Ok(())
    }

    /// Creates deleted streams again. Where a refresh has created one for the same entry since, the next refresh keeps
    /// the older one.
    fn restore_streams(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        let mut accounts = BTreeSet::new();
        for stream in std::mem::take(&mut self.streams_deleted) {
            let message = match write.get::<Account>(stream.account.0)? {
                None => "The account of the stream was deleted.",
                Some(_) if write.owner_of::<Stream>(stream.id.0).is_some() => "The stream exists again.",
                Some(_) => {
                    write.put(&stream)?;
                    log.stream_created(&stream);
                    accounts.insert(stream.account);
                    continue;
                }
            };
            self.conflicts.add("stream", stream.id.0, stream.name(), &[], message);
            self.streams_refused.insert(stream.id);
        }
        compare_whole_lists(write, accounts)
    }

    /// Deletes streams that an undo created, unless they changed or a channel uses them by now.
    fn delete_streams(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        let mut accounts = BTreeSet::new();
        for stream in std::mem::take(&mut self.streams_created) {
            let now = write.get::<Stream>(stream.id.0)?;
            let message = match &now {
                None => "The stream was deleted.",
                Some(now) if *now != stream => "The stream was changed.",
                Some(_) if !write.by::<Channel>("stream", stream.id.0.to_be_bytes())?.is_empty() => {
                    "A channel uses the stream."
                }
                Some(_) => {
                    write.remove::<Stream>(stream.id.0)?;
                    accounts.insert(stream.account);
                    log.stream_deleted(stream);
                    continue;
                }
            };
            self.conflicts.add("stream", stream.id.0, stream.name(), &[], message);
        }
        compare_whole_lists(write, accounts)
    }

    /// Creates a deleted channel again. Streams that were deleted since are left out.
    fn create(
        &mut self,
        write: &mut Write<'_>,
        mut channel: Channel,
        log: &mut UndoLog,
    ) -> Result<(), Refusal> {
        if let Some(number) = channel.number
            && !write.by::<Channel>("number", number.to_string())?.is_empty()
        {
            let fields = ["number".to_owned()];
            self.conflicts.add("channel", channel.id.0, &channel.name, &fields, NUMBER_TAKEN);
        }
        self.check_references(write, &channel)?;
        if self.conflicts.n == 0 {
            channel.streams.retain(|it| write.owner_of::<Stream>(it.0).is_some());
            write.put(&channel)?;
            log.created(&channel);
        }
        Ok(())
    }

    /// Adds a conflict if the channel refers to a deleted record.
    fn check_references(&mut self, write: &Write<'_>, channel: &Channel) -> Result<(), Refusal> {
        let has_group = self.exists::<Group>(write, channel.group.map(|it| it.0))?;
        let has_logo = self.exists::<Logo>(write, channel.logo_id.map(|it| it.0))?;
        let has_profile = self.exists::<StreamProfile>(write, channel.stream_profile.map(|it| it.0))?;
        let found = [(has_group, "group"), (has_logo, "logo_id"), (has_profile, "stream_profile")];
        let missing: Vec<String> = found.iter().filter(|it| !it.0).map(|it| it.1.to_owned()).collect();
        if !missing.is_empty() {
            let message = "A record that the channel used was deleted.";
            self.conflicts.add("channel", channel.id.0, &channel.name, &missing, message);
        }
        Ok(())
    }

    /// Adds a conflict if a stream that the channel would get back was deleted.
    fn check_streams(&mut self, write: &Write<'_>, now: &Channel, before: &Channel) {
        let is_gone = |it: &&StreamId| {
            let is_new = !now.streams.contains(it) && !self.streams_refused.contains(it);
            is_new && write.owner_of::<Stream>(it.0).is_none()
        };
        let n_gone = before.streams.iter().filter(is_gone).count();
        if n_gone > 0 {
            let message = format!("Streams that the channel had were deleted: {n_gone}.");
            self.conflicts.add("channel", before.id.0, &before.name, &["streams".to_owned()], &message);
        }
    }

    /// Takes changes of films and series back, the last one first.
    fn restore_titles(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        for (before, after) in std::mem::take(&mut self.titles).into_iter().rev() {
            match storage::restore_titles(write, &before, &after, now_ms())? {
                Ok(()) => log.titles_changed(UndoChange::TitlesChanged { before: after, after: before }),
                Err(changed) => {
                    for title in after.iter().filter(|it| changed.contains(&it.name)) {
                        let (kind, number) = (title.id.kind().name(), title.id.number());
                        self.conflicts.add(
                            kind,
                            number,
                            &title.name,
                            &[],
                            "The title was changed or removed.",
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes channels from lineups again, or adds them again. A channel that was deleted since is in no lineup.
    fn restore_lineups(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        for (id, (name, channels)) in std::mem::take(&mut self.lineups) {
            let Some(mut lineup) = write.get::<Lineup>(id)? else {
                self.conflicts.add("channel_profile", id, &name, &[], "The channel profile was deleted.");
                continue;
            };
            let (mut restored, mut n_changed) = (Vec::with_capacity(channels.len()), 0);
            for (channel, is_member) in channels {
                if write.get::<Channel>(channel.0)?.is_none() {
                    continue;
                }
                match lineup.contains(channel) == is_member {
                    true => restored.push((channel, !is_member)),
                    false => n_changed += 1,
                }
            }
            if n_changed > 0 {
                let message = format!("Channels of the profile were changed: {n_changed}.");
                self.conflicts.add("channel_profile", id, &lineup.name, &["channels".to_owned()], &message);
                continue;
            }
            for (channel, is_member) in &restored {
                lineup.set(*channel, *is_member);
            }
            write.put(&lineup)?;
            log.lineup_edited(&lineup, &restored);
        }
        Ok(())
    }

    /// Returns whether a record exists, or none is referred to.
    fn exists<T: Record>(&mut self, write: &Write<'_>, id: Option<u32>) -> Result<bool, Refusal> {
        let Some(id) = id else { return Ok(true) };
        let key = (T::COLLECTION, id);
        if let Some(exists) = self.references.get(&key) {
            return Ok(*exists);
        }
        let exists = write.get::<T>(id)?.is_some();
        self.references.insert(key, exists);
        Ok(exists)
    }

    /// Forgets names that the operation taught, and learns those again that it forgot. Names that were taught since stay.
    fn restore_aliases(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        for alias in std::mem::take(&mut self.aliases_created) {
            if write.get::<GuideAlias>(alias.id)?.as_ref() == Some(&alias) {
                write.remove::<GuideAlias>(alias.id)?;
                log.alias_deleted(alias);
            }
        }
        for alias in std::mem::take(&mut self.aliases_deleted) {
            if write.by::<GuideAlias>("name", alias.name.as_str())?.is_empty() {
                write.put(&alias)?;
                log.alias_created(&alias);
            }
        }
        Ok(())
    }

    /// Deletes the groups and logos that the operation created, unless something uses them by now.
    fn delete_unused(&mut self, write: &mut Write<'_>, log: &mut UndoLog) -> Result<(), Refusal> {
        for group in &self.groups_created {
            let is_same = write.get::<Group>(group.id.0)?.as_ref() == Some(group);
            if is_same && write.by::<Channel>("group", group.id.0.to_be_bytes())?.is_empty() {
                write.remove::<Group>(group.id.0)?;
                log.group_deleted(group.clone());
            }
        }
        for logo in &self.logos_created {
            let is_same = write.get::<Logo>(logo.id.0)?.as_ref() == Some(logo);
            if is_same && write.by::<Channel>("logo", logo.id.0.to_be_bytes())?.is_empty() {
                write.remove::<Logo>(logo.id.0)?;
                log.logo_deleted(logo.clone());
            }
        }
        Ok(())
    }
}

const NUMBER_TAKEN: &str = "Another channel has the number now.";
