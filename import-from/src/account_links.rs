//! Records that belong to accounts of the other service: server groups, filters, and the groups of their playlists.

use std::collections::{BTreeMap, HashSet};

use domain::account::Account;
use domain::account_group::AccountGroup;
use domain::channel::ChannelNumber;
use domain::ids::{AccountGroupId, GroupId, ServerGroupId};
use domain::playlist::filters::{FILTER_CHARS_MAX, FILTERS_MAX, FilterField, StreamFilter};
use domain::server_group::{SERVER_GROUP_NAME_CHARS_MAX, ServerGroup};
use serde_json::{Map, Value};

use super::household::Household;
use super::ids::IdPicker;
use super::lineups::PlannedLineups;
use super::plan::{Existing, Foundation};
use super::report::Report;
use super::row::{JSON_BYTES_MAX, SourceRow, plain};
use super::table::SourceTable;

/// Maximum number of groups of one account. They are written together with it.
const LINKS_PER_ACCOUNT_MAX: usize = 5_000;
/// Properties of a linked group whose values are ids.
const GROUP_OVERRIDE: &str = "group_override";
const STREAM_PROFILE: &str = "stream_profile_id";
const CHANNEL_PROFILES: &str = "channel_profile_ids";
const CUSTOM_LOGO: &str = "custom_logo_id";
const CUSTOM_GUIDE: &str = "custom_epg_id";

impl Foundation {
    /// Merges server groups by their names.
    pub(crate) fn add_server_groups(
        &mut self,
        household: &Household,
        existing: &Existing,
        report: &mut Report,
    ) {
        let rows = household.rows(SourceTable::ServerGroups);
        let sources = rows.iter().filter_map(|it| it.id("id"));
        let mut ids = IdPicker::new(existing.unused.server_group, sources);
        let kind = report.kind(SourceTable::ServerGroups.label());
        for row in rows {
            let name = plain(row.text("name").unwrap_or_default(), SERVER_GROUP_NAME_CHARS_MAX);
            let source =
                row.id("id").filter(|it| !self.server_group_ids.contains_key(it) && !name.is_empty());
            let Some(source) = source else {
                kind.skip(
                    format!("server group {name}"),
                    "its name or id is missing, or its id occurs twice",
                );
                continue;
            };
            let known = existing.server_groups.iter().chain(&self.server_groups).find(|it| it.name == name);
            if let Some(known) = known {
                kind.merged += 1;
                self.server_group_ids.insert(source, known.id);
                continue;
            }
            let group = ServerGroup { id: ServerGroupId(ids.pick(source)), name, max_streams: 0 };
            kind.taken += 1;
            self.server_group_ids.insert(source, group.id);
            self.server_groups.push(group);
        }
    }

    /// Takes the groups over that the playlists of new accounts name.
    pub(crate) fn account_groups(
        &self,
        household: &Household,
        existing: &Existing,
        lineups: &PlannedLineups,
        report: &mut Report,
    ) -> Vec<AccountGroup> {
        let mut ids = IdPicker::new(existing.unused.account_group, []);
        let kind = report.kind(SourceTable::AccountGroups.label());
        let (mut planned, mut links, mut n_links) = (Vec::new(), HashSet::new(), BTreeMap::new());
        for row in household.rows(SourceTable::AccountGroups) {
            let account = row.id("m3u_account_id").and_then(|it| self.accounts.get(&it));
            let Some(account) = account else {
                kind.skip("a group of an account", "its account was skipped or does not exist");
                continue;
            };
            if !account.is_new {
                kind.merged += 1;
                continue;
            }
            let account = account.account.id;
            let source = row.first_id(["channel_group_id", "channel_group"]);
            let Some(group) = source.and_then(|it| self.group_ids.get(&it).copied()) else {
                kind.skip(format!("a group of account {account}"), "the group does not exist");
                continue;
            };
            if !links.insert((account, group)) {
                kind.skip(format!("group {group} of account {account}"), "it occurs twice");
                continue;
            }
            let id = AccountGroupId(ids.fresh());
            let mut link = AccountGroup::new(id, account, group, row.flag("enabled") != Some(false));
            link.auto_channel_sync = row.flag("auto_channel_sync") == Some(true);
            if *n_links.entry(account).and_modify(|it| *it += 1).or_insert(1) > LINKS_PER_ACCOUNT_MAX {
                kind.skip(format!("group {group} of account {account}"), "the account has too many groups");
                continue;
            }
            let number = |column| row.number(column).and_then(|it| it.parse::<ChannelNumber>().ok());
            link.sync_start = number("auto_sync_channel_start");
            link.sync_end =
                number("auto_sync_channel_end").filter(|it| link.sync_start.is_none_or(|start| *it >= start));
            link.custom_properties = self.properties(row.object("custom_properties"), lineups);
            kind.taken += 1;
            planned.push(link);
        }
        planned
    }

    /// Replaces the ids in the properties of a linked group by those of the store.
    fn properties(&self, mut properties: Map<String, Value>, lineups: &PlannedLineups) -> Map<String, Value> {
        if serde_json::to_string(&properties).map_or(usize::MAX, |it| it.len()) > JSON_BYTES_MAX {
            return Map::new();
        }
        properties.retain(|_, value| !value.is_null());
        replace(&mut properties, CUSTOM_GUIDE, |it| self.guide_source_ids.get(&it).map(|it| it.0));
        replace(&mut properties, GROUP_OVERRIDE, |it| self.group_ids.get(&it).map(|it| it.0));
        replace(&mut properties, STREAM_PROFILE, |it| self.profile_ids.get(&it).map(|it| it.0));
        replace(&mut properties, CUSTOM_LOGO, |it| self.logo_ids.get(&it).map(|it| it.0));
        if let Some(Value::Array(profiles)) = properties.get_mut(CHANNEL_PROFILES) {
            let found = profiles.iter().filter_map(|it| lineups.ids.get(&id(it)?));
            *profiles = found.map(|it| it.0.into()).collect();
        }
        properties
    }

    /// Returns the group of the playlist for whose streams a refresh created a channel in this group.
    pub(crate) fn synced_group(&self, links: &[&SourceRow], channel_group: u32) -> Option<GroupId> {
        let source = |row: &SourceRow| row.first_id(["channel_group_id", "channel_group"]);
        let target = |row: &SourceRow| {
            let properties = row.object("custom_properties");
            properties.get(GROUP_OVERRIDE).and_then(id).or_else(|| source(row))
        };
        let is_synced = |row: &&&SourceRow| row.flag("auto_channel_sync") == Some(true);
        let mut of_group = links.iter().filter(is_synced).filter(|it| target(it) == Some(channel_group));
        self.group_ids.get(&source(of_group.next()?)?).copied()
    }
}

fn replace(properties: &mut Map<String, Value>, name: &str, find: impl Fn(u32) -> Option<u32>) {
    let Some(value) = properties.get(name) else { return };
    match id(value).and_then(find) {
        Some(id) => drop(properties.insert(name.to_owned(), id.into())),
        None => drop(properties.remove(name)),
    }
}

fn id(value: &Value) -> Option<u32> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u32::try_from(number).ok()
}

/// Returns the rows of a table by their account.
pub(crate) fn by_account(household: &Household, table: SourceTable) -> BTreeMap<u32, Vec<&SourceRow>> {
    let mut found: BTreeMap<u32, Vec<&SourceRow>> = BTreeMap::new();
    for row in household.rows(table) {
        found.entry(row.id("m3u_account_id").unwrap_or_default()).or_default().push(row);
    }
    found
}

/// Sets the filters of an account.
pub(crate) fn set_filters(account: &mut Account, rows: &[&SourceRow], report: &mut Report) {
    let kind = report.kind(SourceTable::AccountFilters.label());
    for row in rows {
        let what = format!("a filter of account {}", account.name);
        let field = match row.text("filter_type") {
            Some("group") => FilterField::Group,
            Some("name") => FilterField::Name,
            Some("url") => FilterField::Url,
            _ => {
                kind.skip(what, "its type is unknown");
                continue;
            }
        };
        let pattern = row.text("regex_pattern").unwrap_or_default();
        if account.filters.len() >= FILTERS_MAX || pattern.chars().count() > FILTER_CHARS_MAX {
            kind.skip(what, "it is too long, or the account has too many");
            continue;
        }
        let filter = StreamFilter {
            id: account.last_filter_id + 1,
            field,
            pattern: pattern.to_owned(),
            exclude: row.flag("exclude") == Some(true),
            order: row.integer("order").and_then(|it| i32::try_from(it).ok()).unwrap_or_default(),
            custom_properties: row.object("custom_properties"),
        };
        if let Err(error) = filter.compile() {
            kind.skip(what, &format!("its pattern cannot be used: {error}"));
            continue;
        }
        account.last_filter_id = filter.id;
        account.filters.push(filter);
        kind.taken += 1;
    }
}
