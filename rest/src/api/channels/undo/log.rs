//! Keeps what is needed to undo an operation, within limits.

use actors::now_ms;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::matching::GuideAlias;
use domain::ids::{ChannelId, UserId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::stream::Stream;
use domain::undo::{
    ChangedFields, UNDO_AGE_MS_MAX, UNDO_BYTES_MAX, UNDO_ENTRIES_MAX, UNDO_ENTRY_BYTES_MAX, UNDO_PART_BYTES,
    UndoChange, UndoEntry, UndoPart,
};
use route_frame::call::Call;
use server::reply::Refusal;
use storage::Write;

use super::view::UndoHandleView;

/// The user who does an operation.
#[derive(Clone)]
pub(in crate::api) struct Author {
    user: UserId,
    username: String,
}

impl Author {
    pub(in crate::api) fn new(call: &Call) -> Result<Self, Refusal> {
        let user = call.identity()?;
        Ok(Self { user: user.id, username: user.username.clone() })
    }
}

/// The changes of one operation so far.
#[derive(Default)]
pub(in crate::api) struct UndoLog {
    changes: Vec<UndoChange>,
    /// Names of the uploaded files that the changes refer to.
    files: Vec<String>,
}

impl UndoLog {
    pub(in crate::api) fn edited(&mut self, before: &Channel, after: &Channel) {
        self.changes.extend(UndoChange::from_channel(before, after));
    }

    /// Notes that changed fields of a channel were restored.
    pub(super) fn restored(&mut self, channel: &Channel, fields: ChangedFields) {
        self.changes.push(UndoChange::from_restored(channel, fields));
    }

    pub(in crate::api) fn created(&mut self, channel: &Channel) {
        self.changes.push(UndoChange::ChannelCreated(Box::new(channel.clone())));
    }

    pub(in crate::api) fn deleted(&mut self, channel: Channel) {
        self.changes.push(UndoChange::ChannelDeleted(Box::new(channel)));
    }

    pub(in crate::api) fn group_created(&mut self, group: &Group) {
        self.changes.push(UndoChange::GroupCreated(group.clone()));
    }

    pub(in crate::api) fn group_deleted(&mut self, group: Group) {
        self.changes.push(UndoChange::GroupDeleted(group));
    }

    pub(in crate::api) fn logo_created(&mut self, logo: &Logo) {
        self.files.extend(logo.file.clone());
        self.changes.push(UndoChange::LogoCreated(logo.clone()));
    }

    pub(in crate::api) fn logo_deleted(&mut self, logo: Logo) {
        self.files.extend(logo.file.clone());
        self.changes.push(UndoChange::LogoDeleted(logo));
    }

    pub(in crate::api) fn stream_created(&mut self, stream: &Stream) {
        self.changes.push(UndoChange::StreamCreated(Box::new(stream.clone())));
    }

    pub(in crate::api) fn stream_deleted(&mut self, stream: Stream) {
        self.changes.push(UndoChange::StreamDeleted(Box::new(stream)));
    }

    pub(in crate::api) fn alias_created(&mut self, alias: &GuideAlias) {
        self.changes.push(UndoChange::GuideAliasCreated(alias.clone()));
    }

    /// Returns whether this many aliases were created.
    pub(in crate::api) fn has_aliases(&self, n: usize) -> bool {
        let created = self.changes.iter().filter(|it| matches!(it, UndoChange::GuideAliasCreated(_)));
        created.take(n).count() == n
    }

    pub(in crate::api) fn alias_deleted(&mut self, alias: GuideAlias) {
        self.changes.push(UndoChange::GuideAliasDeleted(alias));
    }

    /// Notes channels that were added to a lineup (`true`) or removed from it (`false`).
    pub(in crate::api) fn lineup_edited(&mut self, lineup: &Lineup, channels: &[(ChannelId, bool)]) {
        self.changes.extend(UndoChange::from_lineup(lineup, channels));
    }

    /// Notes films or series that were merged, split or edited.
    pub(in crate::api) fn titles_changed(&mut self, change: UndoChange) {
        self.changes.push(change);
    }

    /// Adds the changes of another log.
    pub(in crate::api) fn append(&mut self, other: Self) {
        self.changes.extend(other.changes);
        self.files.extend(other.files);
    }

    /// Stores the changes, and drops the oldest operations beyond the limits. Returns the handle, or `None` if nothing
    /// has changed.
    pub(in crate::api) fn keep(
        self,
        write: &mut Write<'_>,
        author: &Author,
        message: &str,
    ) -> Result<Option<UndoHandleView>, Refusal> {
        self.keep_with(write, author, message, None)
    }

    /// Does the same for a further commit of an operation that began with an entry of this id. If the entry is gone, or
    /// would become too large, these changes get an entry of their own.
    pub(in crate::api) fn keep_with(
        self,
        write: &mut Write<'_>,
        author: &Author,
        message: &str,
        begun: Option<u32>,
    ) -> Result<Option<UndoHandleView>, Refusal> {
        if self.changes.is_empty() {
            return Ok(None);
        }
        let n_changes = self.changes.iter().map(UndoChange::count).sum::<usize>();
        let n_changes = u32::try_from(n_changes).unwrap_or(u32::MAX);
        let (parts, bytes) = put_parts(write, self.changes)?;
        let now = now_ms();
        let begun = begun.map(|id| write.get::<UndoEntry>(id)).transpose()?.flatten();
        let mut entry = match begun.filter(|it| it.bytes + bytes <= UNDO_ENTRY_BYTES_MAX) {
            Some(entry) => entry,
            None => UndoEntry {
                id: write.next_id::<UndoEntry>()?,
                at: now,
                user: author.user,
                username: author.username.clone(),
                message: String::new(),
                n_changes: 0,
                bytes: 0,
                parts: Vec::new(),
                files: Vec::new(),
            },
        };
        message.clone_into(&mut entry.message);
        entry.n_changes = entry.n_changes.saturating_add(n_changes);
        entry.bytes += bytes;
        entry.parts.extend(parts);
        entry.files.extend(self.files);
        make_room(write, now, &entry)?;
        write.put(&entry)?;
        Ok(Some(UndoHandleView::new(&entry)))
    }
}

/// Stores the changes in parts. Returns their ids, and the size of all changes in bytes.
fn put_parts(write: &mut Write<'_>, changes: Vec<UndoChange>) -> Result<(Vec<u32>, u64), Refusal> {
    let (mut parts, mut bytes) = (Vec::new(), 0);
    let (mut part, mut part_bytes) = (Vec::new(), 0);
    let mut changes = changes.into_iter().peekable();
    while let Some(change) = changes.next() {
        let n_bytes = change.bytes();
        part_bytes += n_bytes;
        bytes += n_bytes as u64;
        if bytes > UNDO_ENTRY_BYTES_MAX {
            let max = UNDO_ENTRY_BYTES_MAX >> 20;
            return Err(Refusal::bad_request(format!(
                "This changes more than {max} MiB of values, which cannot be undone. Select fewer records."
            )));
        }
        part.push(change);
        if part_bytes >= UNDO_PART_BYTES || changes.peek().is_none() {
            let id = write.next_id::<UndoPart>()?;
            write.put(&UndoPart { id, changes: std::mem::take(&mut part) })?;
            parts.push(id);
            part_bytes = 0;
        }
    }
    Ok((parts, bytes))
}

/// Drops the operations that are too old, and the oldest ones until this one fits.
fn make_room(write: &mut Write<'_>, now: i64, newest: &UndoEntry) -> Result<(), Refusal> {
    let mut entries = write.all::<UndoEntry>()?;
    entries.reverse();
    let (mut n_kept, mut bytes_kept) = (1, newest.bytes);
    for entry in entries.into_iter().filter(|it| it.id != newest.id) {
        let is_current = now.saturating_sub(entry.at) < UNDO_AGE_MS_MAX;
        if is_current && n_kept < UNDO_ENTRIES_MAX && bytes_kept + entry.bytes <= UNDO_BYTES_MAX {
            n_kept += 1;
            bytes_kept += entry.bytes;
        } else {
            // All older ones are dropped too, so that none is kept while a later one is not.
            bytes_kept = UNDO_BYTES_MAX;
            remove(write, &entry)?;
        }
    }
    Ok(())
}

/// Drops an operation.
pub(super) fn remove(write: &mut Write<'_>, entry: &UndoEntry) -> Result<(), Refusal> {
    for id in &entry.parts {
        write.remove::<UndoPart>(*id)?;
    }
    write.remove::<UndoEntry>(entry.id)?;
    Ok(())
}
