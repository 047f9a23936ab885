//! Everything that is read from the other service except streams, in the form in which it is read.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::row::SourceRow;
use super::table::SourceTable;
use super::titles::SourceTitles;

/// One stream of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelStreamLink {
    pub channel: u32,
    /// Position in the failover order; the smallest is tried first.
    pub order: i32,
    pub stream: u32,
}

/// The channel of the programme guide that a channel is linked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuideChannel {
    pub tvg_id: String,
    pub source: Option<u32>,
}

/// The records of the other service, without its streams.
#[derive(Debug, Clone, Default)]
pub struct Household {
    rows: BTreeMap<SourceTable, Vec<SourceRow>>,
    counts: BTreeMap<SourceTable, usize>,
    pub channel_streams: Vec<ChannelStreamLink>,
    /// Pairs of a channel profile and a channel in it.
    pub memberships: Vec<(u32, u32)>,
    /// Pairs of a user and one of the user's channel profiles.
    pub user_profiles: Vec<(u32, u32)>,
    pub guide_channels: HashMap<u32, GuideChannel>,
    pub(crate) titles: SourceTitles,
}

/// The table has more rows than the import accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {} {}, which is the maximum", .0.rows_max(), .0.label())]
pub struct TooManyRows(pub SourceTable);

impl Household {
    /// Adds a row of any table but the streams.
    ///
    /// # Errors
    /// The table has too many rows.
    pub fn add(&mut self, table: SourceTable, row: SourceRow) -> Result<(), TooManyRows> {
        let count = self.counts.entry(table).or_default();
        *count += 1;
        if *count > table.rows_max() {
            return Err(TooManyRows(table));
        }
        if self.titles.add(table, &row) {
            return Ok(());
        }
        match table {
            SourceTable::ChannelStreams => {
                let order = row.integer("order").and_then(|it| i32::try_from(it).ok()).unwrap_or(i32::MAX);
                if let (Some(channel), Some(stream)) = (row.id("channel_id"), row.id("stream_id")) {
                    self.channel_streams.push(ChannelStreamLink { channel, order, stream });
                }
            }
            SourceTable::Memberships => {
                let ids = (row.id("channel_profile_id"), row.id("channel_id"));
                if let (Some(profile), Some(channel)) = ids
                    && row.flag("enabled") != Some(false)
                {
                    self.memberships.push((profile, channel));
                }
            }
            SourceTable::UserProfiles => {
                if let (Some(user), Some(profile)) = (row.id("user_id"), row.id("channelprofile_id")) {
                    self.user_profiles.push((user, profile));
                }
            }
            SourceTable::EpgData => {
                if let (Some(id), Some(tvg_id)) = (row.id("id"), row.text("tvg_id")) {
                    let source = row.first_id(["epg_source_id", "epg_source"]);
                    self.guide_channels.insert(id, GuideChannel { tvg_id: tvg_id.to_owned(), source });
                }
            }
            _ => self.rows.entry(table).or_default().push(row),
        }
        Ok(())
    }

    /// Adds an object of the REST interface, and the records that are nested in it.
    ///
    /// # Errors
    /// A table has too many rows.
    pub fn add_object(&mut self, table: SourceTable, object: &Map<String, Value>) -> Result<(), TooManyRows> {
        let id = object.get("id").cloned().unwrap_or(Value::Null);
        let list = |name: &str| object.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let pair = |table, a, b, other: Value| SourceRow::new(table, [(a, id.clone()), (b, other)]);
        match table {
            SourceTable::Channels => {
                for (order, stream) in list("streams").into_iter().enumerate() {
                    let mut row = pair(SourceTable::ChannelStreams, "channel_id", "stream_id", stream);
                    row.set("order", order.into());
                    self.add(SourceTable::ChannelStreams, row)?;
                }
                if let Some(Value::Object(values)) = object.get("override") {
                    let mut row = SourceRow::from_object(SourceTable::ChannelOverrides, values);
                    row.set("channel_id", id.clone());
                    self.add(SourceTable::ChannelOverrides, row)?;
                }
            }
            SourceTable::ChannelProfiles => {
                for channel in list("channels") {
                    let row = pair(SourceTable::Memberships, "channel_profile_id", "channel_id", channel);
                    self.add(SourceTable::Memberships, row)?;
                }
            }
            SourceTable::Users => {
                for profile in list("channel_profiles") {
                    let row = pair(SourceTable::UserProfiles, "user_id", "channelprofile_id", profile);
                    self.add(SourceTable::UserProfiles, row)?;
                }
            }
            SourceTable::Accounts => {
                for (field, nested) in [
                    ("profiles", SourceTable::AccountProfiles),
                    ("filters", SourceTable::AccountFilters),
                    ("channel_groups", SourceTable::AccountGroups),
                ] {
                    for value in list(field) {
                        let Value::Object(value) = value else { continue };
                        let mut row = SourceRow::from_object(nested, &value);
                        row.set("m3u_account_id", id.clone());
                        self.add(nested, row)?;
                    }
                }
            }
            _ => {}
        }
        self.add(table, SourceRow::from_object(table, object))
    }

    /// Returns the rows of a table.
    pub fn rows(&self, table: SourceTable) -> &[SourceRow] {
        self.rows.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of rows that were added.
    pub fn count(&self, table: SourceTable) -> usize {
        self.counts.get(&table).copied().unwrap_or_default()
    }

    /// Returns the rows of a table by the id in a column; of several with the same id the first.
    pub fn by_id(&self, table: SourceTable, column: &str) -> HashMap<u32, &SourceRow> {
        let mut found = HashMap::new();
        for row in self.rows(table) {
            if let Some(id) = row.id(column) {
                found.entry(id).or_insert(row);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_records_of_the_rest_interface_become_rows() {
        let mut household = Household::default();
        let mut add = |table, value: Value| household.add_object(table, value.as_object().unwrap()).unwrap();
        add(
            SourceTable::Channels,
            json!({ "id": 3, "name": "News", "streams": [9, 8], "override": { "name": "Other" } }),
        );
        add(SourceTable::ChannelProfiles, json!({ "id": 1, "name": "Kids", "channels": [3] }));
        add(SourceTable::Users, json!({ "id": 2, "username": "anna", "channel_profiles": [1] }));
        add(
            SourceTable::Accounts,
            json!({ "id": 5, "name": "A", "profiles": [{ "id": 7, "name": "P" }], "filters": [], "channel_groups": [{ "channel_group": 4 }] }),
        );
        let link = |order, stream| ChannelStreamLink { channel: 3, order, stream };
        assert_eq!(household.channel_streams, [link(0, 9), link(1, 8)]);
        assert_eq!(
            (household.memberships.as_slice(), household.user_profiles.as_slice()),
            (&[(1, 3)][..], &[(2, 1)][..])
        );
        let profile = &household.rows(SourceTable::AccountProfiles)[0];
        assert_eq!((profile.id("m3u_account_id"), profile.text("name")), (Some(5), Some("P")));
        let group = &household.rows(SourceTable::AccountGroups)[0];
        assert_eq!(group.first_id(["channel_group_id", "channel_group"]), Some(4));
        let changed = household.by_id(SourceTable::ChannelOverrides, "channel_id");
        assert_eq!(changed[&3].text("name"), Some("Other"));
    }

    #[test]
    fn the_number_of_rows_is_limited() {
        let mut household = Household::default();
        let row = SourceRow::new(SourceTable::Settings, [("key", json!("a"))]);
        for _ in 0..SourceTable::Settings.rows_max() {
            assert_eq!(household.add(SourceTable::Settings, row.clone()), Ok(()));
        }
        let error = household.add(SourceTable::Settings, row).unwrap_err();
        assert_eq!(error.to_string(), "there are more than 1000 settings, which is the maximum");
    }
}
