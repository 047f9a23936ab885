//! What an import writes, before it writes anything.
//!
//! Two steps: the [`Foundation`] contains the records that streams refer to. Once the ids of all streams are known, the
//! others follow: channels, users and settings, see [`Foundation::dependents`].

use std::collections::{BTreeMap, HashMap};

use domain::account::Account;
use domain::channel::Channel;
use domain::core_settings::SettingChecks;
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::ids::{
    AccountId, GroupId, GuideChannelId, GuideSourceId, LogoId, ServerGroupId, StreamProfileId,
};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use domain::user_agent::UserAgent;

use super::household::Household;
use super::ids::IdPicker;
use super::report::Report;
use super::row::plain;
use super::table::SourceTable;

/// The records that the store already has, and the first id of each collection that no record ever had.
#[derive(Debug, Default)]
pub struct Existing {
    pub groups: Vec<Group>,
    pub stream_profiles: Vec<StreamProfile>,
    pub server_groups: Vec<ServerGroup>,
    pub accounts: Vec<Account>,
    pub logos: Vec<Logo>,
    pub channels: Vec<Channel>,
    pub lineups: Vec<Lineup>,
    pub users: Vec<User>,
    pub settings: Vec<CoreSetting>,
    pub user_agents: Vec<UserAgent>,
    pub guide_sources: Vec<GuideSource>,
    pub guide_channels: Vec<GuideChannel>,
    pub unused: UnusedIds,
}

/// The first id of each collection that no record ever had.
#[derive(Debug, Clone, Copy)]
pub struct UnusedIds {
    pub group: u32,
    pub stream_profile: u32,
    pub server_group: u32,
    pub account_group: u32,
    /// Of accounts and of account profiles.
    pub account: u32,
    pub stream: u32,
    pub logo: u32,
    pub channel: u32,
    pub lineup: u32,
    pub user: u32,
    pub setting: u32,
    pub user_agent: u32,
    pub guide_source: u32,
    pub guide_channel: u32,
}

impl Default for UnusedIds {
    fn default() -> Self {
        Self {
            group: 1,
            stream_profile: 1,
            server_group: 1,
            account_group: 1,
            account: 1,
            stream: 1,
            logo: 1,
            channel: 1,
            lineup: 1,
            user: 1,
            setting: 1,
            user_agent: 1,
            guide_source: 1,
            guide_channel: 1,
        }
    }
}

/// The rules of the gateway that the conversion needs.
pub struct Rules<'a> {
    pub settings: SettingChecks<'a>,
    /// Returns the reason why a cron expression is invalid.
    pub check_cron: &'a dyn Fn(&str) -> Result<(), String>,
    /// The time of the import, in milliseconds since 1970.
    pub now: i64,
}

/// An account of the source in the store.
#[derive(Debug, Clone)]
pub struct PlannedAccount {
    /// As it is written; an account that exists is not changed.
    pub account: Account,
    pub is_new: bool,
}

/// The records that streams refer to, and where those of the source are found in them.
#[derive(Debug, Clone, Default)]
pub struct Foundation {
    pub groups: Vec<Group>,
    pub user_agents: Vec<UserAgent>,
    pub stream_profiles: Vec<StreamProfile>,
    pub server_groups: Vec<ServerGroup>,
    pub logos: Vec<Logo>,
    pub guide_sources: Vec<GuideSource>,
    /// Those that channels are linked with.
    pub guide_channels: Vec<GuideChannel>,
    /// By the id of the source. Contains the account of manually created streams under the id that it has there.
    pub accounts: BTreeMap<u32, PlannedAccount>,
    pub(crate) group_ids: HashMap<u32, GroupId>,
    pub(crate) user_agent_ids: HashMap<u32, u32>,
    pub(crate) logo_ids: HashMap<u32, LogoId>,
    pub(crate) guide_source_ids: HashMap<u32, GuideSourceId>,
    pub(crate) guide_channel_ids: HashMap<u32, GuideChannelId>,
    pub(crate) server_group_ids: HashMap<u32, ServerGroupId>,
    pub(crate) group_names: HashMap<u32, String>,
    pub(crate) profile_ids: HashMap<u32, StreamProfileId>,
}

impl Foundation {
    /// Converts everything that streams refer to.
    pub fn new(household: &Household, existing: &Existing, rules: &Rules<'_>, report: &mut Report) -> Self {
        let mut foundation = Self::default();
        foundation.add_groups(household, existing, report);
        foundation.add_user_agents(household, existing, rules, report);
        foundation.add_stream_profiles(household, existing, report);
        foundation.add_server_groups(household, existing, report);
        foundation.add_accounts(household, existing, rules, report);
        foundation.add_logos(household, existing, rules, report);
        foundation.add_guides(household, existing, rules, report);
        foundation
    }

    /// Returns the account for the streams of an account of the source; `None` if it is not taken.
    pub fn account(&self, source: Option<u32>) -> Option<AccountId> {
        match source {
            Some(source) => self.accounts.get(&source).map(|it| it.account.id),
            None => Some(domain::account::CUSTOM_ACCOUNT),
        }
    }

    /// Returns the name of a group of the source.
    pub fn group_name(&self, source: u32) -> Option<&str> {
        self.group_names.get(&source).map(String::as_str)
    }

    /// Returns the stream profile in the store for one of the source.
    pub fn stream_profile(&self, source: u32) -> Option<StreamProfileId> {
        self.profile_ids.get(&source).copied()
    }

    /// Merges groups by their names; an alias counts as a name.
    fn add_groups(&mut self, household: &Household, existing: &Existing, report: &mut Report) {
        let rows = household.rows(SourceTable::Groups);
        let mut ids = IdPicker::new(existing.unused.group, rows.iter().filter_map(|it| it.id("id")));
        let mut by_name: HashMap<String, (GroupId, String)> = HashMap::new();
        for group in &existing.groups {
            let entry = (group.id, group.name.clone());
            by_name.extend(group.names().map(|name| (name.to_owned(), entry.clone())));
        }
        let report = report.kind(SourceTable::Groups.label());
        for row in rows {
            let Some(source) = row.id("id") else {
                report.skip("a group", "its id is missing or too large");
                continue;
            };
            let given = row.text("name").unwrap_or_default();
            let name = plain(given, GROUP_NAME_CHARS_MAX);
            if name.is_empty() || self.group_ids.contains_key(&source) {
                report.skip(format!("group {source}"), "its name is missing, or its id occurs twice");
                continue;
            }
            if let Some((id, name)) = by_name.get(&name) {
                report.merged += 1;
                self.group_ids.insert(source, *id);
                self.group_names.insert(source, name.clone());
                continue;
            }
            if name != given {
                report.change(format!("group {name}"), "its name is shortened or has control characters");
            }
            report.taken += 1;
            let group = Group::new(GroupId(ids.pick(source)), name.as_str());
            by_name.insert(name.clone(), (group.id, name.clone()));
            self.group_ids.insert(source, group.id);
            self.group_names.insert(source, name);
            self.groups.push(group);
        }
    }
}

/// Returns the name if it is free, otherwise the name with the first number that makes it free.
pub(crate) fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut free = name.to_owned();
    let mut number = 2_u32;
    // Ends, because different numbers give different names.
    while !is_free(&free) {
        free = format!("{name} ({number})");
        number += 1;
    }
    free
}
