//! Decides which entries of a playlist are imported, and notes the groups that it names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::account::Account;
use domain::account_group::AccountGroup;
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{AccountGroupId, GroupId};
use domain::playlist::content::StreamContent;
use domain::playlist::delta::{MatchedEntry, StalePolicy};
use domain::playlist::filters::StreamFilters;
use domain::stream::{StreamOverrides, StreamProperties};
use storage::records::link_key;
use storage::{Models, Write};

use super::error::ImportError;
use super::job::Job;

/// Maximum number of groups at which playlists can still create new ones, because people view all groups together. Also
/// the maximum number of groups of one account.
const GROUPS_MAX: usize = 10_000;

/// The filters and groups of an account.
pub(super) struct Selection {
    filters: StreamFilters,
    /// The groups by all their names.
    names: HashMap<String, GroupState>,
    account: Arc<Account>,
    seen: SeenGroups,
}

/// A group, as the account knows it.
#[derive(Clone, Copy)]
struct GroupState {
    /// `None` if the account has no link with the group yet.
    is_enabled: Option<bool>,
}

/// The groups that a playlist names.
#[derive(Default)]
struct SeenGroups {
    /// At most [`GROUPS_MAX`], each with the content of its first entry.
    names: BTreeMap<String, StreamContent>,
    /// The playlist names more groups than could be noted.
    is_incomplete: bool,
}

/// The changes of the groups of an account.
#[derive(Default)]
pub(super) struct GroupChanges {
    /// Names of groups that are linked with the account, and created if they do not exist, with the content of their
    /// first entry.
    new: Vec<(String, StreamContent)>,
    /// Links of groups that the playlist no longer names.
    missing: Vec<AccountGroupId>,
    /// Links of groups that it names again.
    returned: Vec<AccountGroupId>,
}

impl Selection {
    /// Reads the settings of an account.
    ///
    /// # Errors
    /// A filter is invalid.
    pub(super) fn new(job: &Job) -> Result<Self, ImportError> {
        let filters = StreamFilters::new(&job.account.filters)
            .map_err(|(id, cause)| ImportError::Filter { id, cause })?;
        let links = links(&job.models, job.account.id.0);
        let groups = job.models.groups.load();
        let state = |it: &Group| GroupState { is_enabled: links.get(&it.id).map(|it| it.enabled) };
        let names =
            groups.iter().flat_map(|it| it.names().map(|name| (name.to_owned(), state(it)))).collect();
        Ok(Self { filters, names, account: Arc::clone(&job.account), seen: SeenGroups::default() })
    }

    /// Notes the group of an entry and returns whether the entry is imported. Entries without a group are in no group
    /// that could be disabled.
    pub(super) fn keep(&mut self, entry: &MatchedEntry) -> bool {
        if self.is_title(&entry.properties) {
            return false;
        }
        let group = group_of(&entry.properties, &entry.rule);
        if let Some(name) = group {
            self.seen.add(name, entry.properties.content);
        }
        let is_enabled = group.is_none_or(|name| self.is_enabled(name, entry.properties.content));
        is_enabled && self.filters.keep(&entry.properties)
    }

    /// Returns whether an entry with these values is imported.
    pub(super) fn would_keep(&self, properties: &StreamProperties, rule: &StreamOverrides) -> bool {
        if self.is_title(properties) {
            return false;
        }
        let is_enabled = group_of(properties, rule).is_none_or(|it| self.is_enabled(it, properties.content));
        is_enabled && self.filters.keep(properties)
    }

    /// Returns whether an entry is a film or an episode that is imported as such, and not as a stream.
    pub(super) fn is_title(&self, properties: &StreamProperties) -> bool {
        crate::catalogue::playlist::takes(&self.account, properties)
    }

    /// Returns whether a group is imported, to which an entry with this content belongs.
    fn is_enabled(&self, name: &str, content: StreamContent) -> bool {
        let of_first = || self.seen.names.get(name).copied().unwrap_or(content);
        let known = self.names.get(name).and_then(|it| it.is_enabled);
        known.unwrap_or_else(|| self.account.enables_new_group(of_first()))
    }

    /// Forgets the groups seen so far.
    pub(super) fn rewind(&mut self) {
        self.seen = SeenGroups::default();
    }

    /// Returns the changes of the account's groups after the last entry.
    pub(super) fn changes(&self, job: &Job, at: StalePolicy) -> GroupChanges {
        let groups = job.models.groups.load();
        let links = links(&job.models, job.account.id.0);
        let mut room = GROUPS_MAX.saturating_sub(groups.len());
        let mut changes = GroupChanges::default();
        let mut seen = BTreeSet::new();
        for (name, content) in &self.seen.names {
            match groups.one_by("name", name) {
                Some(group) if links.contains_key(&group.id) => drop(seen.insert(group.id)),
                Some(_) => changes.new.push((name.clone(), *content)),
                None if room > 0 => {
                    room -= 1;
                    changes.new.push((name.clone(), *content));
                }
                None => {}
            }
        }
        for link in links.values() {
            match link.last_seen {
                Some(_) if seen.contains(&link.group) => changes.returned.push(link.id),
                None if !seen.contains(&link.group) && !self.seen.is_incomplete => {
                    changes.missing.push(link.id);
                }
                // A group without settings is forgotten like its streams.
                Some(then) if at.is_over(then) && is_plain(link) => changes.missing.push(link.id),
                _ => {}
            }
        }
        changes
    }
}

impl SeenGroups {
    fn add(&mut self, name: &str, content: StreamContent) {
        if self.names.contains_key(name) {
            return;
        }
        if self.names.len() < GROUPS_MAX {
            self.names.insert(name.to_owned(), content);
        } else {
            self.is_incomplete = true;
        }
    }
}

impl GroupChanges {
    /// Writes the changes, each based on the current record.
    pub(super) fn put(
        self,
        write: &mut Write<'_>,
        account: &Account,
        at: StalePolicy,
    ) -> Result<(), ImportError> {
        for (name, content) in self.new {
            let group = match write.by::<Group>("name", &name)?.into_iter().next() {
                Some(group) => group.id,
                None => {
                    let id = GroupId(write.next_id::<Group>()?);
                    write.put(&Group::new(id, name))?;
                    id
                }
            };
            if write.by::<AccountGroup>("link", link_key(account.id, group))?.is_empty() {
                let id = AccountGroupId(write.next_id::<AccountGroup>()?);
                let is_enabled = account.enables_new_group(content);
                write.put(&AccountGroup::new(id, account.id, group, is_enabled))?;
            }
        }
        for id in self.missing {
            match write.get::<AccountGroup>(id.0)? {
                Some(link) if link.last_seen.is_some() && is_plain(&link) => {
                    write.remove::<AccountGroup>(id.0)?;
                }
                Some(mut link) => {
                    link.last_seen.get_or_insert(at.last_good);
                    write.put(&link)?;
                }
                None => {}
            }
        }
        for id in self.returned {
            if let Some(mut link) = write.get::<AccountGroup>(id.0)? {
                link.last_seen = None;
                write.put(&link)?;
            }
        }
        Ok(())
    }
}

/// Returns the links of an account by group.
fn links(models: &Models, account: u32) -> HashMap<GroupId, Arc<AccountGroup>> {
    let links = models.account_groups.load();
    links.by("account", account.to_be_bytes()).map(|it| (it.group, it.clone())).collect()
}

/// Returns whether a link has no settings of an admin.
fn is_plain(link: &AccountGroup) -> bool {
    link.enabled
        && !link.auto_channel_sync
        && link.sync_start.is_none()
        && link.sync_end.is_none()
        && link.custom_properties.is_empty()
}

/// Returns the effective group, if its name is valid.
fn group_of<'a>(properties: &'a StreamProperties, rule: &'a StreamOverrides) -> Option<&'a str> {
    let name = rule.group.as_deref().or(properties.group.as_deref())?;
    (!name.is_empty() && name.chars().count() <= GROUP_NAME_CHARS_MAX).then_some(name)
}
