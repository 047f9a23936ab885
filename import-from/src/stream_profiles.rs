//! Stream profiles of the other service.

use std::collections::HashMap;

use domain::command::CommandTemplate;
use domain::ids::StreamProfileId;
use domain::stream_profile::{Delivery, StreamProfile};

use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, free_name};
use super::report::Report;
use super::row::{SourceRow, plain};
use super::table::SourceTable;

/// Maximum length of the name of a stream profile, in characters.
const NAME_CHARS_MAX: usize = 255;
/// Maximum length of a user agent, in characters.
const USER_AGENT_CHARS_MAX: usize = 512;
/// Maximum length of the parameters of a command, in bytes.
const PARAMETERS_BYTES_MAX: usize = 8 * 1024;
/// Id of the built-in profile for streamlink.
const STREAMLINK: StreamProfileId = StreamProfileId(5);

impl Foundation {
    /// Takes stream profiles over. Locked ones become the built-in profile for the same purpose.
    pub(crate) fn add_stream_profiles(
        &mut self,
        household: &Household,
        existing: &Existing,
        report: &mut Report,
    ) {
        let agents = UserAgents::new(household);
        let rows = household.rows(SourceTable::StreamProfiles);
        let sources = rows.iter().filter_map(|it| it.id("id"));
        let mut ids = IdPicker::new(existing.unused.stream_profile, sources);
        let report = report.kind(SourceTable::StreamProfiles.label());
        for row in rows {
            let Some(source) = row.id("id").filter(|it| !self.profile_ids.contains_key(it)) else {
                report.skip("a stream profile", "its id is missing, too large, or occurs twice");
                continue;
            };
            let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
            if let Some(built_in) = built_in(row, &name) {
                report.merged += 1;
                self.profile_ids.insert(source, built_in);
                continue;
            }
            let mut profile = match profile(row, &name, &agents) {
                Ok(profile) => profile,
                Err(reason) => {
                    report.skip(format!("stream profile {name}"), &reason);
                    continue;
                }
            };
            let known = existing.stream_profiles.iter().find(|it| it.name == profile.name);
            if let Some(known) = known.filter(|it| is_same(it, &profile)) {
                report.merged += 1;
                self.profile_ids.insert(source, known.id);
                continue;
            }
            let all = || existing.stream_profiles.iter().chain(&self.stream_profiles);
            profile.name = free_name(&profile.name, |name| all().all(|it| it.name != name));
            if profile.name != name {
                report.change(
                    format!("stream profile {name}"),
                    "another one has this name, so it gets a number",
                );
            }
            profile.id = StreamProfileId(ids.pick(source));
            report.taken += 1;
            self.profile_ids.insert(source, profile.id);
            self.stream_profiles.push(profile);
        }
    }
}

/// Returns whether both profiles do the same.
fn is_same(one: &StreamProfile, other: &StreamProfile) -> bool {
    let rest = |it: &StreamProfile| (it.delivery, it.command.clone(), it.parameters.clone());
    rest(one) == rest(other)
}

/// Returns the built-in profile that a locked one corresponds to.
fn built_in(row: &SourceRow, name: &str) -> Option<StreamProfileId> {
    if row.flag("locked") != Some(true) {
        return None;
    }
    match name.to_ascii_lowercase().as_str() {
        "proxy" => Some(StreamProfile::from_delivery(Delivery::Proxy).id),
        "redirect" => Some(StreamProfile::from_delivery(Delivery::Redirect).id),
        "ffmpeg" => Some(StreamProfile::FFMPEG_COPY),
        "streamlink" => Some(STREAMLINK),
        _ => None,
    }
}

fn profile(row: &SourceRow, name: &str, agents: &UserAgents<'_>) -> Result<StreamProfile, String> {
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let (command, parameters) =
        (row.text("command").unwrap_or_default().trim(), row.text("parameters").unwrap_or_default().trim());
    if parameters.len() > PARAMETERS_BYTES_MAX {
        return Err("its parameters are too long".to_owned());
    }
    CommandTemplate::new(command, parameters)
        .map_err(|error| format!("its command cannot be used: {error}"))?;
    Ok(StreamProfile {
        id: StreamProfileId(0),
        name: name.to_owned(),
        delivery: Delivery::Command,
        command: command.to_owned(),
        parameters: parameters.to_owned(),
        user_agent: agents.text(row.first_id(["user_agent_id", "user_agent"])),
        is_active: row.flag("is_active") != Some(false),
        locked: false,
        redirect_without_login: false,
    })
}

/// The user agents of the other service, by id.
pub(crate) struct UserAgents<'a>(HashMap<u32, &'a SourceRow>);

impl<'a> UserAgents<'a> {
    pub(crate) fn new(household: &'a Household) -> Self {
        Self(household.by_id(SourceTable::UserAgents, "id"))
    }

    /// Returns the value of the header.
    pub(crate) fn text(&self, id: Option<u32>) -> Option<String> {
        let text = self.0.get(&id?)?.text("user_agent")?;
        let is_valid = text.chars().count() <= USER_AGENT_CHARS_MAX && !text.contains(char::is_control);
        is_valid.then(|| text.to_owned())
    }
}
