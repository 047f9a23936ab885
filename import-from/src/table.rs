//! The tables of the other service that are read, and their columns.

/// A table of the other service's database, and the records of its REST interface that correspond to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceTable {
    Groups,
    UserAgents,
    StreamProfiles,
    Logos,
    EpgSources,
    EpgData,
    ServerGroups,
    Accounts,
    AccountProfiles,
    AccountFilters,
    AccountGroups,
    Streams,
    Channels,
    ChannelStreams,
    ChannelOverrides,
    ChannelProfiles,
    Memberships,
    Users,
    UserProfiles,
    Settings,
    Schedules,
    Crontabs,
    VodCategories,
    AccountVodCategories,
    Movies,
    Series,
    Episodes,
    MovieOffers,
    SeriesOffers,
    EpisodeOffers,
}

/// Properties of a table.
struct TableProperties {
    table: SourceTable,
    /// The end of its name in the database. The part before it is the name of a Django application, which changed once.
    suffix: &'static str,
    /// Its name for people.
    label: &'static str,
    /// The columns that are read; a column of the database and the field of the REST interface may have two names.
    columns: &'static [&'static str],
    /// Maximum number of rows.
    rows_max: usize,
}

/// Maximum number of streams. Their index takes 16 bytes each in memory, their texts are in a temporary file.
pub const STREAMS_MAX: usize = 2_000_000;
/// The member of a logo that names its file, which was fetched from the other service.
pub const LOGO_FILE: &str = "fetched_file";
/// Maximum number of films, and of series.
const TITLES_MAX: usize = 1_000_000;
/// Maximum number of episodes.
const EPISODES_MAX: usize = 4_000_000;
/// Maximum number of channels.
pub const CHANNELS_MAX: usize = 100_000;

const TABLES: [TableProperties; 30] = [
    TableProperties {
        table: SourceTable::Groups,
        suffix: "channels_channelgroup",
        label: "channel groups",
        columns: &["id", "name"],
        rows_max: 100_000,
    },
    TableProperties {
        table: SourceTable::UserAgents,
        suffix: "core_useragent",
        label: "user agents",
        columns: &["id", "name", "user_agent", "description", "is_active"],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::StreamProfiles,
        suffix: "core_streamprofile",
        label: "stream profiles",
        columns: &[
            "id",
            "name",
            "command",
            "parameters",
            "is_active",
            "locked",
            "user_agent_id",
            "user_agent",
        ],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::Logos,
        suffix: "channels_logo",
        label: "logos",
        columns: &["id", "name", "url", LOGO_FILE],
        rows_max: 500_000,
    },
    TableProperties {
        table: SourceTable::EpgSources,
        suffix: "epg_epgsource",
        label: "guide sources",
        columns: &[
            "id",
            "name",
            "source_type",
            "url",
            "username",
            "password",
            "is_active",
            "refresh_interval",
            "priority",
            "custom_properties",
            "created_at",
        ],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::EpgData,
        suffix: "epg_epgdata",
        label: "guide channels",
        columns: &["id", "tvg_id", "epg_source_id", "epg_source"],
        rows_max: 1_000_000,
    },
    TableProperties {
        table: SourceTable::ServerGroups,
        suffix: "m3u_servergroup",
        label: "server groups",
        columns: &["id", "name"],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::Accounts,
        suffix: "m3u_m3uaccount",
        label: "playlist accounts",
        columns: &[
            "id",
            "name",
            "server_url",
            "file_path",
            "account_type",
            "username",
            "password",
            "max_streams",
            "is_active",
            "locked",
            "user_agent_id",
            "user_agent",
            "server_group_id",
            "server_group",
            "refresh_interval",
            "cron_expression",
            "refresh_task_id",
            "stale_stream_days",
            "priority",
            "custom_properties",
            "created_at",
        ],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::AccountProfiles,
        suffix: "m3u_m3uaccountprofile",
        label: "account profiles",
        columns: &[
            "id",
            "m3u_account_id",
            "name",
            "is_default",
            "is_active",
            "max_streams",
            "search_pattern",
            "replace_pattern",
            "exp_date",
        ],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::AccountFilters,
        suffix: "m3u_m3ufilter",
        label: "filters of accounts",
        columns: &[
            "id",
            "m3u_account_id",
            "filter_type",
            "regex_pattern",
            "exclude",
            "order",
            "custom_properties",
        ],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::AccountGroups,
        suffix: "channels_channelgroupm3uaccount",
        label: "groups of accounts",
        columns: &[
            "id",
            "m3u_account_id",
            "channel_group_id",
            "channel_group",
            "enabled",
            "auto_channel_sync",
            "auto_sync_channel_start",
            "auto_sync_channel_end",
            "custom_properties",
        ],
        rows_max: 100_000,
    },
    TableProperties {
        table: SourceTable::Streams,
        suffix: "channels_stream",
        label: "streams",
        columns: &[
            "id",
            "name",
            "url",
            "m3u_account_id",
            "m3u_account",
            "logo_url",
            "tvg_id",
            "channel_group_id",
            "channel_group",
            "stream_profile_id",
            "is_custom",
            "is_stale",
            "is_adult",
            "last_seen",
            "stream_chno",
            "updated_at",
        ],
        rows_max: STREAMS_MAX,
    },
    TableProperties {
        table: SourceTable::Channels,
        suffix: "channels_channel",
        label: "channels",
        columns: &[
            "id",
            "uuid",
            "name",
            "channel_number",
            "channel_group_id",
            "logo_id",
            "tvg_id",
            "tvc_guide_stationid",
            "epg_data_id",
            "stream_profile_id",
            "user_level",
            "is_adult",
            "hidden_from_output",
            "auto_created",
            "auto_created_by_id",
            "auto_created_by",
            "created_at",
        ],
        rows_max: CHANNELS_MAX,
    },
    TableProperties {
        table: SourceTable::ChannelStreams,
        suffix: "channels_channelstream",
        label: "streams of channels",
        columns: &["channel_id", "stream_id", "order"],
        rows_max: STREAMS_MAX,
    },
    TableProperties {
        table: SourceTable::ChannelOverrides,
        suffix: "channels_channeloverride",
        label: "manual values of channels",
        columns: &[
            "channel_id",
            "name",
            "channel_number",
            "channel_group_id",
            "logo_id",
            "tvg_id",
            "tvc_guide_stationid",
            "epg_data_id",
            "stream_profile_id",
        ],
        rows_max: CHANNELS_MAX,
    },
    TableProperties {
        table: SourceTable::ChannelProfiles,
        suffix: "channels_channelprofile",
        label: "channel profiles",
        columns: &["id", "name"],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::Memberships,
        suffix: "channels_channelprofilemembership",
        label: "channels of channel profiles",
        columns: &["channel_profile_id", "channel_id", "enabled"],
        rows_max: 10_000_000,
    },
    TableProperties {
        table: SourceTable::Users,
        suffix: "accounts_user",
        label: "users",
        columns: &[
            "id",
            "username",
            "password",
            "email",
            "first_name",
            "last_name",
            "is_active",
            "is_staff",
            "is_superuser",
            "user_level",
            "api_key",
            "stream_limit",
            "custom_properties",
            "avatar_config",
            "last_login",
            "date_joined",
        ],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::UserProfiles,
        suffix: "accounts_user_channel_profiles",
        label: "channel profiles of users",
        columns: &["user_id", "channelprofile_id"],
        rows_max: 1_000_000,
    },
    TableProperties {
        table: SourceTable::Settings,
        suffix: "core_coresettings",
        label: "settings",
        columns: &["id", "key", "value"],
        rows_max: 1_000,
    },
    TableProperties {
        table: SourceTable::Schedules,
        suffix: "django_celery_beat_periodictask",
        label: "schedules",
        columns: &["id", "crontab_id"],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::Crontabs,
        suffix: "django_celery_beat_crontabschedule",
        label: "cron expressions",
        columns: &["id", "minute", "hour", "day_of_month", "month_of_year", "day_of_week"],
        rows_max: 10_000,
    },
    TableProperties {
        table: SourceTable::VodCategories,
        suffix: "vod_vodcategory",
        label: "categories of films and series",
        columns: &["id", "name", "category_type"],
        rows_max: 100_000,
    },
    TableProperties {
        table: SourceTable::AccountVodCategories,
        suffix: "vod_m3uvodcategoryrelation",
        label: "categories of films and series of accounts",
        columns: &["m3u_account_id", "category_id", "enabled"],
        rows_max: 1_000_000,
    },
    TableProperties {
        table: SourceTable::Movies,
        suffix: "vod_movie",
        label: "films",
        columns: &["id", "uuid", "name", "year", "tmdb_id", "imdb_id", "is_adult", "created_at"],
        rows_max: TITLES_MAX,
    },
    TableProperties {
        table: SourceTable::Series,
        suffix: "vod_series",
        label: "series",
        columns: &["id", "uuid", "name", "year", "tmdb_id", "imdb_id", "created_at"],
        rows_max: TITLES_MAX,
    },
    TableProperties {
        table: SourceTable::Episodes,
        suffix: "vod_episode",
        label: "episodes",
        columns: &["id", "uuid", "name", "series_id", "season_number", "episode_number", "created_at"],
        rows_max: EPISODES_MAX,
    },
    TableProperties {
        table: SourceTable::MovieOffers,
        suffix: "vod_m3umovierelation",
        label: "films of accounts",
        columns: &["m3u_account_id", "movie_id", "category_id", "stream_id", "container_extension"],
        rows_max: 2 * TITLES_MAX,
    },
    TableProperties {
        table: SourceTable::SeriesOffers,
        suffix: "vod_m3useriesrelation",
        label: "series of accounts",
        columns: &["m3u_account_id", "series_id", "category_id", "external_series_id"],
        rows_max: 2 * TITLES_MAX,
    },
    TableProperties {
        table: SourceTable::EpisodeOffers,
        suffix: "vod_m3uepisoderelation",
        label: "episodes of accounts",
        columns: &["m3u_account_id", "episode_id", "stream_id", "container_extension"],
        rows_max: 2 * EPISODES_MAX,
    },
];

/// Tables that are not imported, with their names for people. Their rows are counted for the report.
pub const UNUSED_TABLES: [(&str, &str); 9] = [
    ("channels_recording", "recordings"),
    ("channels_recurringrecordingrule", "recurring recording rules"),
    ("connect_integration", "outgoing integrations"),
    ("connect_eventsubscription", "subscriptions of outgoing integrations"),
    ("core_outputprofile", "output profiles"),
    ("epg_programdata", "guide programmes, which are fetched again"),
    ("hdhr_hdhrdevice", "tuner devices"),
    ("plugins_pluginconfig", "plugins"),
    ("accounts_oidcprovider", "single sign-on providers"),
];

impl SourceTable {
    /// Returns all tables.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLES.iter().map(|it| it.table)
    }

    /// Finds the table with this name in the database, without a schema.
    pub fn named(name: &str) -> Option<Self> {
        TABLES.iter().find(|it| has_suffix(name, it.suffix)).map(|it| it.table)
    }

    /// Returns the name for people.
    pub fn label(self) -> &'static str {
        self.properties().label
    }

    /// Returns the end of the name in the database.
    pub fn suffix(self) -> &'static str {
        self.properties().suffix
    }

    /// Returns the column with this name, if it is read.
    pub fn column(self, name: &str) -> Option<&'static str> {
        self.properties().columns.iter().find(|it| **it == name).copied()
    }

    /// Returns the maximum number of rows.
    pub fn rows_max(self) -> usize {
        self.properties().rows_max
    }

    /// Returns the columns without which a row has no meaning.
    pub fn required_columns(self) -> &'static [&'static str] {
        match self {
            Self::ChannelStreams => &["channel_id", "stream_id"],
            Self::ChannelOverrides => &["channel_id"],
            Self::Memberships => &["channel_profile_id", "channel_id"],
            Self::UserProfiles => &["user_id", "channelprofile_id"],
            Self::Users => &["id", "username"],
            Self::Settings => &["key", "value"],
            Self::AccountProfiles | Self::AccountFilters => &["id", "m3u_account_id"],
            Self::AccountGroups => &["m3u_account_id", "channel_group_id"],
            Self::Logos => &["id", "url"],
            Self::VodCategories => &["id", "name", "category_type"],
            Self::AccountVodCategories => &["m3u_account_id", "category_id"],
            Self::Movies | Self::Series => &["id", "uuid", "name"],
            Self::Episodes => &["id", "uuid", "series_id"],
            Self::MovieOffers => &["m3u_account_id", "movie_id", "stream_id"],
            Self::SeriesOffers => &["m3u_account_id", "series_id", "external_series_id"],
            Self::EpisodeOffers => &["m3u_account_id", "episode_id", "stream_id"],
            Self::EpgData | Self::Schedules | Self::Crontabs => &["id"],
            _ => &["id", "name"],
        }
    }

    fn properties(self) -> &'static TableProperties {
        // The test below checks that every table has an entry.
        TABLES.iter().find(|it| it.table == self).unwrap_or(&TABLES[0])
    }
}

/// Returns the name for people of a table that is not read but reported.
pub fn unused_table(name: &str) -> Option<&'static str> {
    UNUSED_TABLES.iter().find(|it| has_suffix(name, it.0)).map(|it| it.1)
}

/// Returns whether the name is the suffix, or ends with it after an underscore.
fn has_suffix(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|it| it.is_empty() || it.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_the_end_of_their_names() {
        for table in SourceTable::all() {
            assert_eq!(table.properties().table, table);
            assert_eq!(SourceTable::named(table.suffix()), Some(table), "{}", table.suffix());
            for column in table.required_columns() {
                assert_eq!(table.column(column), Some(*column), "{}", table.label());
            }
        }
        for (name, table) in [
            ("dispatcharr_channels_channel", Some(SourceTable::Channels)),
            ("dispatcharr_channels_channelstream", Some(SourceTable::ChannelStreams)),
            ("dispatcharr_channels_stream", Some(SourceTable::Streams)),
            ("m3u_m3uaccountprofile", Some(SourceTable::AccountProfiles)),
            ("accounts_user_groups", None),
            ("mychannels_channel", None),
        ] {
            assert_eq!(SourceTable::named(name), table, "{name}");
        }
        assert_eq!(unused_table("dispatcharr_channels_recording"), Some("recordings"));
        assert_eq!(unused_table("django_session"), None);
    }
}
