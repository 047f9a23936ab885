//! The record types of the gateway: the collection and the index keys of each.

mod account;
mod account_addresses;
mod account_group;
mod audit;
mod channel;
mod cluster;
mod group;
mod guide_alias;
mod guide_channel;
mod guide_marks;
mod guide_source;
mod guide_state;
mod health;
mod integration;
mod lineup;
mod login;
mod logo;
mod notice;
mod output_profile;
mod personal_playlist;
mod plugin;
mod profile_info;
mod recording;
mod recording_rule;
mod refresh;
mod server_group;
mod service_key;
mod setting;
mod stream;
mod stream_ids;
mod stream_profile;
mod title_favorites;
mod tuner_device;
mod undo;
mod user;
mod user_agent;
mod user_group;
pub(crate) mod vod;

pub use self::account::next_profile_id;
pub use self::account_group::link_key;
pub use self::audit::append_audit_entry;
pub use self::integration::{remove_integration, remove_runs_of_plugin};
pub use self::personal_playlist::remove_playlists_of;
pub use self::plugin::{remove_plugin_values, set_plugin_value};
pub use self::service_key::{separate_service_keys, set_service_key};
pub use self::vod::{category_key, category_link_key, external_id_key};

use crate::record::Schema;

/// Returns the schema with all record types of the gateway.
pub fn schema() -> Schema {
    Schema::new()
        .with::<domain::account::Account>()
        .with::<domain::account::RefreshRecord>()
        .with::<domain::account_addresses::AddressRecord>()
        .with::<domain::account_group::AccountGroup>()
        .with::<domain::audit::AuditEntry>()
        .with::<domain::channel::Channel>()
        .with::<domain::cluster::certificate::ClusterAuthority>()
        .with::<domain::cluster::certificate::NodeCertificate>()
        .with::<domain::cluster::certificate::SealedKeys>()
        .with::<domain::cluster::shared_file::SharedFile>()
        .with::<domain::cluster::token::JoinTicket>()
        .with::<domain::cluster::version::ClusterVersion>()
        .with::<domain::group::Group>()
        .with::<domain::guide::channel::GuideChannel>()
        .with::<domain::guide::matching::GuideAlias>()
        .with::<domain::guide::schedules_direct::GuideMarks>()
        .with::<domain::guide::source::GuideSource>()
        .with::<domain::guide::state::GuideState>()
        .with::<domain::integration::Delivery>()
        .with::<domain::integration::DeliveryLogEntry>()
        .with::<domain::integration::Integration>()
        .with::<domain::integration::IntegrationState>()
        .with::<domain::integration::OutboxEvent>()
        .with::<domain::lineup::Lineup>()
        .with::<domain::health::StreamHealth>()
        .with::<domain::login::DeviceLogin>()
        .with::<crate::log::LogPosition>()
        .with::<domain::logo::Logo>()
        .with::<domain::notice::Notice>()
        .with::<domain::notice::DismissedNotices>()
        .with::<domain::output_profile::OutputProfile>()
        .with::<domain::personal_playlist::PersonalPlaylist>()
        .with::<domain::plugin::Plugin>()
        .with::<domain::plugin::PluginSchedules>()
        .with::<domain::plugin::PluginValue>()
        .with::<domain::panel::ProfileInfo>()
        .with::<domain::recording::LeftFiles>()
        .with::<domain::recording::Recording>()
        .with::<domain::recording::rules::RecordingRule>()
        .with::<domain::recording::rules::RuleMemory>()
        .with::<domain::secret::ServerKeys>()
        .with::<domain::server_group::ServerGroup>()
        .with::<domain::service_key::ServiceKey>()
        .with::<domain::setting::CoreSetting>()
        .with::<domain::stream::Stream>()
        .with::<domain::stream_ids::StreamIdPage>()
        .with::<domain::stream_profile::StreamProfile>()
        .with::<domain::tuner::TunerDevice>()
        .with::<domain::undo::UndoEntry>()
        .with::<domain::undo::UndoPart>()
        .with::<domain::user::User>()
        .with::<domain::user_group::UserGroup>()
        .with::<domain::user_agent::UserAgent>()
        .with::<domain::vod::AccountCategory>()
        .with::<domain::vod::Episode>()
        .with::<domain::vod::Title>()
        .with::<domain::vod::TitleFavorites>()
        .with::<domain::vod::TitleDetails>()
        .with::<domain::vod::VodCategory>()
        .with::<domain::vod::VodSync>()
}

#[cfg(test)]
mod tests {
    use domain::cluster::version::{OWN_VERSIONS, SERVICE_KEYS_VERSION};

    use super::*;
    use crate::record::Sharing;

    /// Lists the collections of a kind of sharing, in alphabetical order.
    fn shared_as(sharing: Sharing, is_sealed: Option<bool>) -> Vec<&'static str> {
        let record_types = schema().record_types;
        let mut names: Vec<_> = record_types
            .iter()
            .filter(|it| it.sharing == sharing && is_sealed.is_none_or(|sealed| it.is_sealed == sealed))
            .map(|it| it.name)
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_new_collection_reaches_other_nodes_only_on_purpose() {
        assert_eq!(
            shared_as(Sharing::Local, None),
            ["deliveries", "delivery_log", "log_positions", "outbox_events", "stream_health"]
        );
        assert_eq!(
            shared_as(Sharing::FullNodes, None),
            [
                "account_addresses",
                "accounts",
                "cluster_authority",
                "guide_marks",
                "guide_sources",
                "integration_states",
                "integrations",
                "join_tickets",
                "plugin_schedules",
                "plugin_values",
                "plugins",
                "profile_infos",
                "service_keys",
                "stream_ids",
                "stream_profiles",
                "streams",
                "undo",
                "undo_parts",
                "user_agents",
                "vod_details",
                "vod_episodes",
                "vod_titles",
            ]
        );
    }

    /// Nodes of the version before this one cannot read a new collection or a new version of records. Until
    /// `cluster finalize`, a node must not write them: raise `OWN_VERSIONS`, write what is new only if the cluster writes that
    /// version, and then change the file.
    #[test]
    fn the_formats_of_shared_records_change_only_with_the_version_of_the_cluster() {
        let record_types = schema().record_types;
        let shared = record_types.iter().filter(|it| it.sharing != Sharing::Local);
        let mut formats: Vec<_> = shared.map(|it| format!("{} {}", it.name, it.version)).collect();
        formats.sort_unstable();
        let golden: Vec<_> = include_str!("../../tests/golden/shared-records-4.txt").lines().collect();
        assert_eq!(formats, golden, "version {} of the cluster", OWN_VERSIONS.newest);
        assert_eq!(OWN_VERSIONS.newest, 4, "shared-records-4.txt is of version 4");
        let before: Vec<_> = include_str!("../../tests/golden/shared-records-3.txt").lines().collect();
        assert!(before.iter().all(|it| golden.contains(it)), "nodes still write version 3");
        let added: Vec<_> = golden.into_iter().filter(|it| !before.contains(it)).collect();
        assert_eq!((added, SERVICE_KEYS_VERSION), (vec!["service_keys 1"], 4));
    }

    #[test]
    fn nodes_without_provider_secrets_get_only_the_secrets_that_viewers_need() {
        // Settings are encrypted because earlier versions kept keys of services in them.
        let needed = ["logins", "logos", "output_profiles", "server_keys", "settings", "users"];
        assert_eq!(shared_as(Sharing::AllNodes, Some(true)), needed);
    }
}
