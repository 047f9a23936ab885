//! User agents of the other service.

use domain::user_agent::UserAgent;

use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, Rules, free_name};
use super::report::Report;
use super::row::plain;
use super::table::SourceTable;

/// Maximum length of the name of a user agent and of its value, in characters.
const CHARS_MAX: usize = 512;
/// Maximum length of a description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 255;

impl Foundation {
    /// Takes user agents over. One whose value the store has already is not changed.
    pub(crate) fn add_user_agents(
        &mut self,
        household: &Household,
        existing: &Existing,
        rules: &Rules<'_>,
        report: &mut Report,
    ) {
        let rows = household.rows(SourceTable::UserAgents);
        let mut ids = IdPicker::new(existing.unused.user_agent, rows.iter().filter_map(|it| it.id("id")));
        let kind = report.kind(SourceTable::UserAgents.label());
        for row in rows {
            let value = row.text("user_agent").unwrap_or_default().trim();
            let name = plain(row.text("name").unwrap_or(value), CHARS_MAX);
            let is_valid = !value.is_empty()
                && value.chars().count() <= CHARS_MAX
                && value.chars().all(|it| it.is_ascii() && !it.is_control());
            let source = row.id("id").filter(|it| !self.user_agent_ids.contains_key(it));
            let Some(source) = source.filter(|_| is_valid && !name.is_empty()) else {
                kind.skip(
                    format!("user agent {name}"),
                    "its id, name or value is missing or cannot be used, or its id occurs twice",
                );
                continue;
            };
            let all = || existing.user_agents.iter().chain(&self.user_agents);
            if let Some(known) = all().find(|it| it.user_agent == value) {
                kind.merged += 1;
                self.user_agent_ids.insert(source, known.id);
                continue;
            }
            let free = free_name(&name, |name| all().all(|it| it.name != name));
            if free != name {
                kind.change(format!("user agent {name}"), "another one has this name, so it gets a number");
            }
            kind.taken += 1;
            let agent = UserAgent {
                id: ids.pick(source),
                name: free,
                user_agent: value.to_owned(),
                description: plain(row.text("description").unwrap_or_default(), DESCRIPTION_CHARS_MAX),
                is_active: row.flag("is_active") != Some(false),
                created_at: rules.now,
                updated_at: rules.now,
            };
            self.user_agent_ids.insert(source, agent.id);
            self.user_agents.push(agent);
        }
    }
}
