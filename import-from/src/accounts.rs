//! Playlist accounts of the other service, with their profiles.

use std::collections::{HashMap, HashSet};

use domain::account::{
    Account, AccountProfile, CUSTOM_ACCOUNT, PlaylistLocation, REFRESH_INTERVAL_HOURS, RefreshSchedule,
    STALE_STREAM_DAYS, StreamIdentity,
};
use domain::auto_sync::ORPHAN_CLEANUP;
use domain::ids::{AccountId, ProfileId};
use domain::panel::{PanelAddress, PanelLogin};
use domain::pattern::Pattern;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use serde_json::Value;

use super::account_links::{by_account, set_filters};
use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, PlannedAccount, Rules, free_name};
use super::report::{KindReport, Report};
use super::row::{SourceRow, plain};
use super::stream::URL_BYTES_MAX;
use super::stream_profiles::UserAgents;
use super::table::SourceTable;

/// Maximum length of the name of an account or of its profile, in characters.
const NAME_CHARS_MAX: usize = 255;
/// Maximum number of hours between two refreshes: a year.
const INTERVAL_HOURS_MAX: u32 = 366 * 24;
/// The pattern of a profile that leaves addresses unchanged.
const UNCHANGED: [&str; 2] = ["^(.*)$", "(.*)"];

impl Foundation {
    /// Takes accounts over. One whose name the store has already is not changed, and gets the streams that it lacks.
    pub(crate) fn add_accounts(
        &mut self,
        household: &Household,
        existing: &Existing,
        rules: &Rules<'_>,
        report: &mut Report,
    ) {
        let profiles = by_account(household, SourceTable::AccountProfiles);
        let filters = by_account(household, SourceTable::AccountFilters);
        let rows = household.rows(SourceTable::Accounts);
        let (agents, crons) = (UserAgents::new(household), cron_expressions(household));
        let mut ids = IdPicker::new(existing.unused.account, rows.iter().filter_map(|it| it.id("id")));
        for row in rows {
            let Some(source) = row.id("id").filter(|it| !self.accounts.contains_key(it)) else {
                let report = report.kind(SourceTable::Accounts.label());
                report.skip("an account", "its id is missing, too large, or occurs twice");
                continue;
            };
            let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
            let is_custom = row.flag("locked") == Some(true) && name == Account::custom().name;
            let known = existing.accounts.iter().find(|it| match is_custom {
                true => it.id == CUSTOM_ACCOUNT,
                false => !it.is_custom() && it.name == name,
            });
            let known = known.cloned().or_else(|| is_custom.then(Account::custom));
            if let Some(account) = known {
                report.kind(SourceTable::Accounts.label()).merged += 1;
                self.accounts.insert(source, PlannedAccount { account, is_new: false });
                continue;
            }
            let Some(list) = location(row, &name, report) else { continue };
            // The default profile has the id of its account.
            let id = ids.pick(source);
            let no_profiles = Vec::new();
            let of_account = profiles.get(&source).unwrap_or(&no_profiles);
            let (default, pattern) = default_profile(id, row, of_account);
            let mut account = Account::new(AccountId(id), "", list, default, rules.now);
            let taken: HashSet<&str> = self.accounts.values().map(|it| it.account.name.as_str()).collect();
            let is_free =
                |name: &str| !name.is_empty() && name != Account::custom().name && !taken.contains(name);
            let wanted = if name.is_empty() { "account" } else { &name };
            account.name = free_name(wanted, is_free);
            let kind = report.kind(SourceTable::Accounts.label());
            if account.name != name {
                kind.change(format!("account {}", account.name), "its name was missing or taken");
            }
            if let Err(reason) = pattern {
                kind.change(
                    format!("account {}", account.name),
                    &format!("the pattern of its default profile cannot be used: {reason}"),
                );
            }
            fill(&mut account, row, &agents, &crons, rules, kind);
            let server_group = row.first_id(["server_group_id", "server_group"]);
            account.server_group = server_group.and_then(|it| self.server_group_ids.get(&it).copied());
            set_filters(&mut account, filters.get(&source).unwrap_or(&no_profiles), report);
            for row in of_account.iter().filter(|it| it.flag("is_default") != Some(true)) {
                add_profile(&mut account, ProfileId(ids.fresh()), row, report);
            }
            report.kind(SourceTable::Accounts.label()).taken += 1;
            report.kind(SourceTable::AccountProfiles.label()).taken += account.profiles.len() as u64;
            self.accounts.insert(source, PlannedAccount { account, is_new: true });
        }
    }
}

/// Returns the location of the list; `None` if the account cannot be taken.
fn location(row: &SourceRow, name: &str, report: &mut Report) -> Option<PlaylistLocation> {
    let url = row.text("server_url").map(str::trim).unwrap_or_default();
    let is_url =
        SourceUrl::new(url).is_http() && url.len() <= URL_BYTES_MAX && !url.contains(char::is_control);
    let panel = PanelAddress::parse(url).ok().filter(|_| is_url);
    match (row.text("account_type"), panel) {
        (Some("XC"), Some(address)) => {
            let user = row.text("username").unwrap_or_default();
            let password = row.text("password").unwrap_or_default();
            if user.is_empty() || password.is_empty() {
                report.secret(
                    format!("password of account {name}"),
                    "type it into the account; until then its list is not fetched",
                );
                return Some(PlaylistLocation::None);
            }
            let (username, password) = (user.to_owned(), Secret::new(password));
            Some(PlaylistLocation::Panel(PanelLogin { server: address.server, username, password }))
        }
        (Some("STD") | None, _) if is_url => Some(PlaylistLocation::Url(SourceUrl::new(url))),
        (Some("STD") | None, _) if row.has("file_path") => {
            let kind = report.kind(SourceTable::Accounts.label());
            kind.change(
                format!("account {name}"),
                "its list is an uploaded file, which has to be uploaded again; its streams are taken",
            );
            Some(PlaylistLocation::None)
        }
        (Some("XC" | "STD") | None, _) => {
            let kind = report.kind(SourceTable::Accounts.label());
            kind.change(
                format!("account {name}"),
                "its address is missing or invalid, so its list is not fetched; its streams are taken",
            );
            Some(PlaylistLocation::None)
        }
        (Some(_), _) => {
            let kind = report.kind(SourceTable::Accounts.label());
            kind.skip(format!("account {name}"), "accounts of this type are not supported");
            None
        }
    }
}

/// Sets the values that need no decision.
fn fill(
    account: &mut Account,
    row: &SourceRow,
    agents: &UserAgents<'_>,
    crons: &HashMap<u32, String>,
    rules: &Rules<'_>,
    report: &mut KindReport,
) {
    if row.text("account_type") == Some("XC") {
        account.identity = StreamIdentity::StreamId;
    }
    account.is_active = row.flag("is_active") != Some(false);
    account.headers.user_agent = agents.text(row.first_id(["user_agent_id", "user_agent"]));
    account.stale_stream_days = number(row, "stale_stream_days").unwrap_or(STALE_STREAM_DAYS);
    account.priority = row.integer("priority").and_then(|it| i32::try_from(it).ok()).unwrap_or_default();
    let mut properties = row.object("custom_properties");
    let is_on = |name: &str| properties.get(name) != Some(&Value::Bool(false));
    account.enable_vod = properties.get("enable_vod") == Some(&Value::Bool(true));
    account.auto_enable_new_groups_live = is_on("auto_enable_new_groups_live");
    account.auto_enable_new_groups_vod = is_on("auto_enable_new_groups_vod");
    account.auto_enable_new_groups_series = is_on("auto_enable_new_groups_series");
    if let Some(cleanup) = properties.remove(ORPHAN_CLEANUP).filter(Value::is_string) {
        account.custom_properties.insert(ORPHAN_CLEANUP.to_owned(), cleanup);
    }
    account.created_at = row.time_ms("created_at").unwrap_or(rules.now);
    let hours = number(row, "refresh_interval").unwrap_or(REFRESH_INTERVAL_HOURS);
    account.schedule = RefreshSchedule { interval_hours: hours.min(INTERVAL_HOURS_MAX), cron: String::new() };
    let of_task = row.id("refresh_task_id").and_then(|it| crons.get(&it)).map(String::as_str);
    if let Some(cron) = row.text("cron_expression").or(of_task) {
        match (rules.check_cron)(cron) {
            Ok(()) => account.schedule.cron = cron.to_owned(),
            Err(reason) => report.change(
                format!("account {}", account.name),
                &format!("its cron expression is left out. {reason}"),
            ),
        }
    }
}

/// Returns the default profile, with the limit of the account, and whether its pattern can be used.
fn default_profile(
    id: u32,
    account: &SourceRow,
    profiles: &[&SourceRow],
) -> (AccountProfile, Result<(), String>) {
    let row = profiles.iter().find(|it| it.flag("is_default") == Some(true));
    let of_account = number(account, "max_streams");
    let max_streams = of_account.or_else(|| number(row?, "max_streams")).unwrap_or_default();
    let mut profile = AccountProfile::default_of(ProfileId(id), "Default", max_streams);
    let Some(row) = row else { return (profile, Ok(())) };
    let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
    if !name.is_empty() {
        profile.name = name;
    }
    profile.is_active = row.flag("is_active") != Some(false);
    profile.expires_at = row.time_ms("exp_date");
    let pattern = set_pattern(&mut profile, row);
    (profile, pattern)
}

fn add_profile(account: &mut Account, id: ProfileId, row: &SourceRow, report: &mut Report) {
    let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
    let wanted = if name.is_empty() { "profile" } else { &name };
    let name = free_name(wanted, |name| account.profiles.iter().all(|it| it.name != name));
    let mut profile = AccountProfile::default_of(id, name, number(row, "max_streams").unwrap_or_default());
    profile.is_default = false;
    profile.is_active = row.flag("is_active") != Some(false);
    profile.expires_at = row.time_ms("exp_date");
    if let Err(reason) = set_pattern(&mut profile, row) {
        profile.is_active = false;
        report.kind(SourceTable::AccountProfiles.label()).change(
            format!("profile {} of account {}", profile.name, account.name),
            &format!("it is inactive, because its pattern cannot be used: {reason}"),
        );
    }
    account.profiles.push(profile);
}

/// Sets the pattern, or returns the reason why it is invalid.
fn set_pattern(profile: &mut AccountProfile, row: &SourceRow) -> Result<(), String> {
    let find = row.text("search_pattern").unwrap_or_default();
    let replace = row.text("replace_pattern").unwrap_or_default();
    let is_unchanged = UNCHANGED.contains(&find) && ["$1", "\\1"].contains(&replace);
    if find.is_empty() || is_unchanged {
        return Ok(());
    }
    Pattern::new(find, replace).map_err(|error| error.to_string())?;
    profile.search_pattern = find.to_owned();
    profile.replace_pattern = replace.to_owned();
    Ok(())
}

/// Returns a number that is not negative.
fn number(row: &SourceRow, column: &str) -> Option<u32> {
    row.integer(column).and_then(|it| u32::try_from(it).ok())
}

/// Returns the cron expressions by the id of their scheduled task.
fn cron_expressions(household: &Household) -> HashMap<u32, String> {
    let crontabs = household.by_id(SourceTable::Crontabs, "id");
    let expression = |row: &&SourceRow| {
        let field = |name| row.text(name).unwrap_or("*");
        let fields = ["minute", "hour", "day_of_month", "month_of_year", "day_of_week"].map(field);
        fields.join(" ")
    };
    let of_task = |row: &SourceRow| Some((row.id("id")?, expression(crontabs.get(&row.id("crontab_id")?)?)));
    household.rows(SourceTable::Schedules).iter().filter_map(of_task).collect()
}
