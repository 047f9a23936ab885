//! Users of the other service.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use domain::django_hash::DjangoHash;
use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User, UserLevel, check_username, similar_username};
use serde_json::{Map, Value};

use super::household::Household;
use super::ids::IdPicker;
use super::lineups::PlannedLineups;
use super::plan::{Existing, Rules};
use super::report::Report;
use super::row::{JSON_BYTES_MAX, SourceRow, plain};
use super::table::SourceTable;

/// Maximum length of e-mail addresses and of first and last names, in characters.
const TEXT_CHARS_MAX: usize = 150;
/// Maximum length of a player password, in characters.
const PLAYER_PASSWORD_CHARS_MAX: usize = 128;
/// Maximum length of an API key, in bytes.
const API_KEY_BYTES_MAX: usize = 512;

/// A user of the source, as it is written.
#[derive(Debug, Clone)]
pub struct PlannedUser {
    pub source: u32,
    pub user: User,
    /// The API key, whose digest depends on the keys of the installation.
    pub api_key: Option<Secret>,
}

/// Takes users over. One whose name the store has already is skipped.
pub(crate) fn users(
    household: &Household,
    existing: &Existing,
    lineups: &PlannedLineups,
    rules: &Rules<'_>,
    report: &mut Report,
) -> Vec<PlannedUser> {
    let rows = household.rows(SourceTable::Users);
    let mut ids = IdPicker::new(existing.unused.user, rows.iter().filter_map(|it| it.id("id")));
    let mut names: HashSet<String> = existing.users.iter().map(|it| User::name_key(&it.username)).collect();
    let stored_names = names.clone();
    let existing_keys = existing.users.iter().filter_map(|it| it.api_key.as_ref());
    let mut api_keys: HashSet<String> = existing_keys.map(|it| it.key.expose().to_owned()).collect();
    let mut profiles: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (user, profile) in household.user_profiles.iter().collect::<BTreeSet<_>>() {
        profiles.entry(*user).or_default().push(*profile);
    }
    let mut planned = Vec::new();
    for row in rows {
        let kind = report.kind(SourceTable::Users.label());
        let name = row.text("username").unwrap_or_default().trim();
        let what = format!("user {}", plain(name, 60));
        let Some(source) = row.id("id") else {
            kind.skip(what, "its id is missing or too large");
            continue;
        };
        let name = match check_username(name) {
            Ok(name) => {
                if !names.insert(User::name_key(&name)) {
                    kind.skip(what, "a user has this name already");
                    continue;
                }
                name
            }
            Err(error) => {
                let similar = similar_username(name);
                if stored_names.contains(&User::name_key(&similar)) {
                    kind.skip(what, &format!("a user {similar} exists already: {error}"));
                    continue;
                }
                let free = free_name(&similar, &mut names);
                kind.change(&what, &format!("renamed to {free}: {error}"));
                free
            }
        };
        let level = row.integer("user_level").unwrap_or_default();
        let mut user = User::new(UserId(ids.pick(source)), name, level_of_user(level), rules.now);
        if i64::from(user.level.number()) != level {
            kind.change(&what, "the user level does not exist here; the user gets the next lower one");
        }
        fill(&mut user, row, rules);
        let wanted = profiles.get(&source).map_or(&[][..], Vec::as_slice);
        user.lineups = wanted.iter().filter_map(|it| lineups.ids.get(it).copied()).collect();
        if user.lineups.is_empty() && !wanted.is_empty() {
            // Without a lineup, the user would see all channels.
            user.is_active = false;
            kind.change(&what, "the channel profiles do not exist, so the user is inactive");
        }
        let mut api_key = row.text("api_key").map(str::trim);
        if api_key
            .is_some_and(|it| it.len() > API_KEY_BYTES_MAX || !it.bytes().all(|it| it.is_ascii_graphic()))
        {
            kind.change(&what, "the API key is invalid and left out");
            api_key = None;
        }
        if api_key.is_some_and(|it| !api_keys.insert(it.to_owned())) {
            kind.change(&what, "another user has the same API key, so it is left out");
            api_key = None;
        }
        set_properties(&mut user, row.object("custom_properties"), &what, report);
        set_password(&mut user, row, &what, report);
        report.kind(SourceTable::Users.label()).taken += 1;
        planned.push(PlannedUser { source, user, api_key: api_key.map(Secret::new) });
    }
    planned
}

/// Returns the name, or the next one with a number that nobody has, and adds it to the names.
fn free_name(name: &str, names: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|n: u32| {
        let end = format!("_{n}");
        let begin: String = name.chars().take(USERNAME_CHARS_MAX - end.len()).collect();
        begin + &end
    });
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    // The numbers are more than users.
    all.find(|it| names.insert(User::name_key(it))).unwrap_or_default()
}

fn fill(user: &mut User, row: &SourceRow, rules: &Rules<'_>) {
    let text = |column| plain(row.text(column).unwrap_or_default(), TEXT_CHARS_MAX);
    (user.email, user.first_name, user.last_name) = (text("email"), text("first_name"), text("last_name"));
    // The REST interface does not show whether a user is active, and lists active users only.
    user.is_active = row.flag("is_active") != Some(false);
    user.is_staff = row.flag("is_staff") == Some(true);
    user.is_superuser = row.flag("is_superuser") == Some(true);
    let limit = row.integer("stream_limit").unwrap_or_default();
    user.stream_limit = u32::try_from(limit.max(0)).unwrap_or(0);
    user.joined_at = row.time_ms("date_joined").unwrap_or(rules.now);
    user.last_login = row.time_ms("last_login");
    let avatar = row.object("avatar_config");
    if size_of(&avatar) <= JSON_BYTES_MAX {
        user.avatar = avatar;
    }
}

/// Sets the player password and the adult filter, which have fields of their own, and the other properties.
fn set_properties(user: &mut User, mut properties: Map<String, Value>, what: &str, report: &mut Report) {
    user.hide_adult = properties.remove("hide_adult_content") == Some(Value::Bool(true));
    if let Some(Value::String(password)) = properties.remove("xc_password")
        && !password.is_empty()
    {
        let is_valid =
            password.chars().count() <= PLAYER_PASSWORD_CHARS_MAX && !password.chars().any(char::is_control);
        match is_valid {
            true => user.player_password = Some(Secret::new(password)),
            false => report.secret(format!("player password of {what}"), "it is invalid; set another one"),
        }
    }
    match size_of(&properties) <= JSON_BYTES_MAX {
        true => user.custom_properties = properties,
        false => report
            .kind(SourceTable::Users.label())
            .change(what, "the custom properties are too large and left out"),
    }
}

fn set_password(user: &mut User, row: &SourceRow, what: &str, report: &mut Report) {
    let hash = row.text("password").unwrap_or_default();
    if DjangoHash::parse(hash).is_some() {
        user.password = Some(Secret::new(hash));
        return;
    }
    let reason = if hash.is_empty() {
        "it is not shown by this source; set one with: headwater user passwd"
    } else {
        "its hash cannot be verified here; set one with: headwater user passwd"
    };
    report.secret(format!("password of {what}"), reason);
}

fn size_of(value: &Map<String, Value>) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |it| it.len())
}

/// Returns the highest level that permits no more than the given one.
fn level_of_user(level: i64) -> UserLevel {
    let is_low_enough = |it: &UserLevel| i64::from(it.number()) <= level;
    UserLevel::ALL.into_iter().rev().find(is_low_enough).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_never_gets_more_permissions_than_before() {
        for (number, level) in [
            (-1, UserLevel::Streamer),
            (0, UserLevel::Streamer),
            (7, UserLevel::Standard),
            (10, UserLevel::Admin),
            (i64::MAX, UserLevel::Admin),
        ] {
            assert_eq!(level_of_user(number), level, "{number}");
        }
    }
}
