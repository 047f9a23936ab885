//! The gateway's own collections: its read models in memory, and the records that a new store starts with.

mod follower;
mod guide_index;
mod lasting_ids;
mod link_logos;
mod seed;
pub(crate) mod stream_index;
pub(crate) mod vod;
pub(crate) mod vod_index;

use domain::account::{Account, RefreshRecord};
use domain::account_addresses::AddressRecord;
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::core_settings::{COMPLETION_SETTINGS, NAME_SETTINGS};
use domain::group::Group;
use domain::guide::index::GuideIndex;
use domain::guide::matching::GuideAlias;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::integration::{Integration, IntegrationState};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::name_cleaning::NameCleaner;
use domain::notice::{DismissedNotices, Notice};
use domain::output_profile::OutputProfile;
use domain::panel::ProfileInfo;
use domain::personal_playlist::PersonalPlaylist;
use domain::plugin::{Plugin, PluginSchedules};
use domain::recording::rules::{RecordingRule, RuleMemory};
use domain::recording::{LeftFiles, Recording};
use domain::server_group::{ServerGroup, ServerGroupMembers};
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::stream_profile::StreamProfile;
use domain::tmdb::CompletionSettings;
use domain::tuner::TunerDevice;
use domain::undo::UndoEntry;
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;
use domain::vod::{AccountCategory, TitleFavorites, VodCategory, VodSync};

pub use self::lasting_ids::{LostStreamIds, StreamIdChanges, drop_unused_stream_ids};
pub use self::link_logos::{link_logo, link_logos};
pub use self::seed::{seed, store_catalogue};
use crate::error::Result;
use crate::models::stream_index::StreamIndex;
use crate::models::vod::VodTitles;
use crate::models::vod_index::VodIndex;
use crate::read::table::Table;
use crate::read::view::View;
use crate::store::Store;

/// The store, and its read models: the small collections and the index of all streams in memory. Clones share them.
#[derive(Clone)]
pub struct Models {
    pub store: Store,
    pub accounts: View<Table<Account>>,
    pub account_addresses: View<Table<AddressRecord>>,
    pub account_groups: View<Table<AccountGroup>>,
    pub refreshes: View<Table<RefreshRecord>>,
    pub profile_infos: View<Table<ProfileInfo>>,
    pub channels: View<Table<Channel>>,
    pub groups: View<Table<Group>>,
    pub guide_aliases: View<Table<GuideAlias>>,
    pub guide_sources: View<Table<GuideSource>>,
    pub guide_states: View<Table<GuideState>>,
    /// All guide channels.
    pub guide: View<GuideIndex>,
    pub integrations: View<Table<Integration>>,
    pub integration_states: View<Table<IntegrationState>>,
    pub lineups: View<Table<Lineup>>,
    pub server_groups: View<Table<ServerGroup>>,
    pub logos: View<Table<Logo>>,
    pub notices: View<Table<Notice>>,
    pub dismissed_notices: View<Table<DismissedNotices>>,
    pub output_profiles: View<Table<OutputProfile>>,
    pub personal_playlists: View<Table<PersonalPlaylist>>,
    pub plugins: View<Table<Plugin>>,
    pub plugin_schedules: View<Table<PluginSchedules>>,
    pub recordings: View<Table<Recording>>,
    /// Files of deleted recordings on other nodes.
    pub left_files: View<Table<LeftFiles>>,
    pub recording_rules: View<Table<RecordingRule>>,
    pub rule_memories: View<Table<RuleMemory>>,
    pub service_keys: View<Table<ServiceKey>>,
    pub settings: View<Table<CoreSetting>>,
    pub stream_profiles: View<Table<StreamProfile>>,
    pub tuner_devices: View<Table<TunerDevice>>,
    pub undo: View<Table<UndoEntry>>,
    pub users: View<Table<User>>,
    pub user_groups: View<Table<UserGroup>>,
    pub user_agents: View<Table<UserAgent>>,
    pub streams: StreamIndex,
    pub title_favorites: View<Table<TitleFavorites>>,
    pub vod_categories: View<Table<VodCategory>>,
    /// The links of accounts with categories of films and series.
    pub vod_account_categories: View<Table<AccountCategory>>,
    pub vod_syncs: View<Table<VodSync>>,
    /// Films, series and episodes, read from the store.
    pub vod: VodTitles,
    /// All films and series in memory, for lists.
    pub vod_index: VodIndex,
}

impl Models {
    /// Reads the small collections and all streams. Call it once and clone the result. Blocks.
    pub fn new(store: Store) -> Result<Self> {
        Ok(Self {
            accounts: store.table()?,
            account_addresses: store.table()?,
            account_groups: store.table()?,
            refreshes: store.table()?,
            profile_infos: store.table()?,
            channels: store.table()?,
            groups: store.table()?,
            guide_aliases: store.table()?,
            guide_sources: store.table()?,
            guide_states: store.table()?,
            guide: guide_index::guide_index(&store)?,
            integrations: store.table()?,
            integration_states: store.table()?,
            lineups: store.table()?,
            server_groups: store.table()?,
            logos: store.table()?,
            notices: store.table()?,
            dismissed_notices: store.table()?,
            output_profiles: store.table()?,
            personal_playlists: store.table()?,
            plugins: store.table()?,
            plugin_schedules: store.table()?,
            recordings: store.table()?,
            left_files: store.table()?,
            recording_rules: store.table()?,
            rule_memories: store.table()?,
            service_keys: store.table()?,
            settings: store.table()?,
            stream_profiles: store.table()?,
            tuner_devices: store.table()?,
            undo: store.table()?,
            users: store.table()?,
            user_groups: store.table()?,
            user_agents: store.table()?,
            streams: StreamIndex::start(&store)?,
            title_favorites: store.table()?,
            vod_categories: store.table()?,
            vod_account_categories: store.table()?,
            vod_syncs: store.table()?,
            vod: VodTitles::new(&store),
            vod_index: VodIndex::start(&store)?,
            store,
        })
    }

    /// Returns the rules by which names of films, series and channels are cleaned.
    pub fn name_cleaner(&self) -> NameCleaner {
        let settings = self.settings.load();
        NameCleaner::from_setting(settings.one_by("key", NAME_SETTINGS).map(|it| &it.value))
    }

    /// Returns how films and series are completed.
    pub fn completion_settings(&self) -> CompletionSettings {
        let settings = self.settings.load();
        let value = settings.one_by("key", COMPLETION_SETTINGS).map(|it| &it.value);
        let mut completion = CompletionSettings::from_setting(value);
        // Until all nodes of a cluster have the records, the key is in the setting.
        if let Some(key) = self.service_keys.load().get(ServiceKey::TMDB) {
            completion.api_key = Some(key.value.clone());
        }
        completion
    }

    /// Returns the server group of an account, with all its accounts.
    pub fn server_group_of(&self, account: &Account) -> Option<ServerGroupMembers> {
        let group = self.server_groups.load().get(account.server_group?.0).cloned()?;
        Some(ServerGroupMembers::new(group, self.accounts.load().iter().map(|it| &**it)))
    }
}
