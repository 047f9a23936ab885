//! The records that follow once the ids of all streams are known.

use std::collections::HashMap;

use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::ids::StreamId;
use domain::lineup::Lineup;
use domain::setting::CoreSetting;

use super::household::Household;
use super::lineups::lineups;
use super::plan::{Existing, Foundation, Rules};
use super::report::Report;
use super::users::{PlannedUser, users};

/// The records that refer to streams, and those that refer to channels.
#[derive(Debug, Clone, Default)]
pub struct Dependents {
    pub channels: Vec<Channel>,
    /// New lineups, and those of the store that get channels.
    pub lineups: Vec<Lineup>,
    /// Written together with their accounts.
    pub account_groups: Vec<AccountGroup>,
    pub users: Vec<PlannedUser>,
    pub settings: Vec<CoreSetting>,
}

impl Foundation {
    /// Converts channels, channel profiles, users and settings. `stream_ids` are the streams in the store by the ids of the source.
    pub fn dependents(
        &self,
        household: &Household,
        existing: &Existing,
        stream_ids: &HashMap<u32, StreamId>,
        rules: &Rules<'_>,
        report: &mut Report,
    ) -> Dependents {
        let channels = self.channels(household, existing, stream_ids, rules, report);
        let lineups = lineups(household, existing, &channels, report);
        let users = users(household, existing, &lineups, rules, report);
        let account_groups = self.account_groups(household, existing, &lineups, report);
        let settings = self.settings(household, existing, rules, report);
        Dependents { channels: channels.new, lineups: lineups.changed, account_groups, users, settings }
    }
}
