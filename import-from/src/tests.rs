//! The conversion of a small household, and of one that is broken everywhere.

use std::collections::HashMap;

use domain::account::{CUSTOM_ACCOUNT, PlaylistLocation};
use domain::core_settings::SettingChecks;
use domain::ids::{AccountId, ChannelId, GroupId, StreamId, StreamProfileId};
use domain::settings::Settings;
use domain::stream_profile::StreamProfile;
use domain::user::UserLevel;
use serde_json::{Value, json};

use super::*;

/// Builds a household from rows as a database export has them.
fn household(rows: &[(SourceTable, Value)]) -> Household {
    let mut household = Household::default();
    for (table, row) in rows {
        let row = row.as_object().unwrap();
        let row = SourceRow::new(*table, row.iter().map(|(name, value)| (name.as_str(), value.clone())));
        household.add(*table, row).unwrap();
    }
    household
}

/// Returns an empty store with the initial records.
fn empty() -> Existing {
    Existing {
        stream_profiles: StreamProfile::built_in().to_vec(),
        accounts: vec![domain::account::Account::custom()],
        unused: UnusedIds { stream_profile: 6, account: 2, ..UnusedIds::default() },
        ..Existing::default()
    }
}

/// Converts a household; each of these streams of the source gets the same id.
fn convert(household: &Household, existing: &Existing, streams: &[u32]) -> (Foundation, Dependents, Report) {
    let settings = Settings::default();
    let rules = Rules {
        settings: SettingChecks {
            base: &settings,
            has_stream_profile: &|it| it.0 <= 5,
            has_time_zone: &|it| it == "Europe/Berlin",
            log_level_error: &|_| None,
            public_url_error: &|_| None,
            has_user_agent: &|_| false,
            has_output_profile: &|_| false,
            cron_error: &|_| None,
            network_errors: &|_| Vec::new(),
        },
        check_cron: &|it| if it.starts_with('x') { Err("It is wrong.".to_owned()) } else { Ok(()) },
        now: 1000,
    };
    let mut report = Report::default();
    let foundation = Foundation::new(household, existing, &rules, &mut report);
    let ids: HashMap<u32, StreamId> = streams.iter().map(|it| (*it, StreamId(*it))).collect();
    let dependents = foundation.dependents(household, existing, &ids, &rules, &mut report);
    (foundation, dependents, report)
}

const UUID: &str = "a7ff78a1-58a7-458f-9878-8178c06af1b4";
const HASH: &str = "pbkdf2_sha256$1000$salt$aGFzaA==";

fn small() -> Vec<(SourceTable, Value)> {
    vec![
        (SourceTable::Groups, json!({ "id": "4", "name": "News" })),
        (SourceTable::UserAgents, json!({ "id": "1", "name": "TiviMate", "user_agent": "TiviMate/5" })),
        (
            SourceTable::StreamProfiles,
            json!({ "id": "1", "name": "ffmpeg", "command": "ffmpeg", "locked": "t" }),
        ),
        (
            SourceTable::StreamProfiles,
            json!({ "id": "9", "name": "mine", "command": "ffmpeg", "parameters": "-i {streamUrl} -", "locked": "f", "user_agent_id": "1" }),
        ),
        (SourceTable::Accounts, json!({ "id": "1", "name": "custom", "locked": "t" })),
        (
            SourceTable::Accounts,
            json!({ "id": "2", "name": "Std One", "server_url": "http://tv.example/list.m3u", "account_type": "STD",
                "max_streams": "2", "is_active": "t", "user_agent_id": "1", "server_group_id": "3", "refresh_interval": "12", "refresh_task_id": "8" }),
        ),
        (SourceTable::Schedules, json!({ "id": "8", "crontab_id": "3" })),
        (
            SourceTable::Crontabs,
            json!({ "id": "3", "minute": "0", "hour": "4", "day_of_month": "*", "month_of_year": "*", "day_of_week": "*" }),
        ),
        (
            SourceTable::AccountProfiles,
            json!({ "id": "2", "m3u_account_id": "2", "name": "Std One Default", "is_default": "t", "max_streams": "2",
                "search_pattern": "^(.*)$", "replace_pattern": "$1" }),
        ),
        (
            SourceTable::AccountProfiles,
            json!({ "id": "3", "m3u_account_id": "2", "name": "P2", "is_default": "f", "max_streams": "1",
                "search_pattern": "u/p", "replace_pattern": "u2/p2" }),
        ),
        (SourceTable::ServerGroups, json!({ "id": "3", "name": "Shared" })),
        (
            SourceTable::AccountFilters,
            json!({ "id": "9", "m3u_account_id": "2", "filter_type": "name", "regex_pattern": "^ZZZ", "exclude": "t", "order": "1" }),
        ),
        (
            SourceTable::AccountGroups,
            json!({ "id": "8", "m3u_account_id": "2", "channel_group_id": "4", "enabled": "t", "auto_channel_sync": "t",
                "auto_sync_channel_start": "300", "custom_properties": "{\"stream_profile_id\": 1, \"custom_logo_id\": 5, \"custom_epg_id\": 1, \"channel_profile_ids\": [2, 404]}" }),
        ),
        (SourceTable::Logos, json!({ "id": "5", "name": "News", "url": "http://tv.example/news.png" })),
        (
            SourceTable::EpgSources,
            json!({ "id": "1", "name": "Guide One", "source_type": "xmltv", "url": "http://tv.example/guide.xml", "priority": "5" }),
        ),
        (SourceTable::EpgData, json!({ "id": "7", "tvg_id": "news.guide", "epg_source_id": "1" })),
        (
            SourceTable::Channels,
            json!({ "id": "11", "uuid": UUID, "name": "News One", "channel_number": "6.5", "channel_group_id": "4",
                "logo_id": "5", "epg_data_id": "7", "stream_profile_id": "9", "user_level": "1", "is_adult": "f", "auto_created": "t", "auto_created_by_id": "2" }),
        ),
        (SourceTable::ChannelStreams, json!({ "channel_id": "11", "stream_id": "21", "order": "1" })),
        (SourceTable::ChannelStreams, json!({ "channel_id": "11", "stream_id": "22", "order": "0" })),
        (
            SourceTable::Users,
            json!({ "id": "3", "username": "anna", "password": HASH, "user_level": "10", "is_active": "t",
                "api_key": "key-of-anna", "stream_limit": "2",
                "custom_properties": "{\"xc_password\": \"remote\", \"hide_adult_content\": true, \"navOrder\": [1]}" }),
        ),
        (SourceTable::ChannelProfiles, json!({ "id": "2", "name": "Kids" })),
        (SourceTable::Memberships, json!({ "channel_profile_id": "2", "channel_id": "11", "enabled": "t" })),
        (SourceTable::UserProfiles, json!({ "user_id": "3", "channelprofile_id": "2" })),
        (
            SourceTable::Settings,
            json!({ "id": "16", "key": "system_settings", "value": "{\"time_zone\": \"Europe/Berlin\"}" }),
        ),
        (
            SourceTable::Settings,
            json!({ "id": "7", "key": "proxy_settings", "value": "{\"buffering_timeout\": 15, \"channel_shutdown_delay\": 9}" }),
        ),
    ]
}

#[test]
fn an_empty_store_gets_everything_under_its_old_ids() {
    let (foundation, dependents, report) = convert(&household(&small()), &empty(), &[21, 22]);
    assert_eq!((foundation.groups[0].id, foundation.groups[0].name.as_str()), (GroupId(4), "News"));
    let profile = &foundation.stream_profiles[0];
    assert_eq!((profile.id, profile.user_agent.as_deref()), (StreamProfileId(9), Some("TiviMate/5")));
    assert_eq!(foundation.stream_profile(1), Some(StreamProfile::FFMPEG_COPY));
    let agent = &foundation.user_agents[0];
    assert_eq!((agent.id, agent.name.as_str(), agent.user_agent.as_str()), (1, "TiviMate", "TiviMate/5"));
    assert_eq!(foundation.account(Some(1)), Some(CUSTOM_ACCOUNT));
    let account = &foundation.accounts[&2].account;
    assert_eq!((account.id, account.name.as_str()), (AccountId(2), "Std One"));
    assert!(
        matches!(&account.list, PlaylistLocation::Url(url) if url.expose() == "http://tv.example/list.m3u")
    );
    assert_eq!(account.headers.user_agent.as_deref(), Some("TiviMate/5"));
    assert_eq!((account.schedule.interval_hours, account.schedule.cron.as_str()), (12, "0 4 * * *"));
    let limits: Vec<_> = account.profiles.iter().map(|it| (it.is_default, it.max_streams)).collect();
    assert_eq!(limits, [(true, 2), (false, 1)]);
    assert_eq!(account.profiles[1].search_pattern, "u/p");
    assert_ne!(account.profiles[1].id.0, account.id.0);

    assert_eq!((foundation.server_groups[0].id.0, account.server_group.map(|it| it.0)), (3, Some(3)));
    let filter = &account.filters[0];
    assert_eq!((filter.pattern.as_str(), filter.exclude, filter.order), ("^ZZZ", true, 1));
    let link = &dependents.account_groups[0];
    assert_eq!((link.account, link.group, link.sync_start), (AccountId(2), GroupId(4), "300".parse().ok()));
    assert_eq!(
        Value::from(link.custom_properties.clone()),
        json!({ "stream_profile_id": 3, "custom_logo_id": 5, "custom_epg_id": 1, "channel_profile_ids": [2] }),
        "with the ids of the store"
    );

    let channel = &dependents.channels[0];
    assert_eq!((channel.id, channel.uuid.to_string().as_str()), (ChannelId(11), UUID));
    assert_eq!((channel.number, channel.group), ("6.5".parse().ok(), Some(GroupId(4))));
    assert_eq!(channel.streams, [StreamId(22), StreamId(21)]);
    let auto = channel.auto.as_ref().unwrap();
    assert_eq!((auto.account, auto.group, auto.stream), (AccountId(2), GroupId(4), StreamId(22)));
    assert_eq!((auto.synced.name.as_str(), auto.synced.number), ("News One", "6.5".parse().ok()));
    assert_eq!(channel.tvg_id.as_deref(), Some("news.guide"), "of the guide, because the channel has none");
    assert_eq!(channel.logo.as_deref(), Some("http://tv.example/news.png"));
    assert_eq!((channel.logo_id.map(|it| it.0), foundation.logos[0].id.0), (Some(5), 5));
    assert_eq!((channel.stream_profile, channel.user_level), (Some(StreamProfileId(9)), UserLevel::Standard));
    assert_eq!(foundation.guide_sources[0].name, "Guide One");
    let guide = &foundation.guide_channels[0];
    assert_eq!((guide.source, guide.key.as_str()), (foundation.guide_sources[0].id, "news.guide"));
    assert_eq!(channel.guide_channel, Some(guide.id));

    let planned = &dependents.users[0];
    let user = &planned.user;
    assert_eq!((user.id.0, user.level, user.stream_limit), (3, UserLevel::Admin, 2));
    assert_eq!(user.password.as_ref().map(|it| it.expose()), Some(HASH));
    assert_eq!(user.player_password.as_ref().map(|it| it.expose()), Some("remote"));
    assert_eq!(planned.api_key.as_ref().map(|it| it.expose()), Some("key-of-anna"));
    assert!(user.hide_adult && user.custom_properties.len() == 1);

    let lineup = &dependents.lineups[0];
    assert_eq!((lineup.id.0, lineup.name.as_str(), lineup.has_new_channels), (2, "Kids", true));
    assert!(lineup.contains(channel.id) && user.lineups == [lineup.id]);

    let settings: Vec<_> = dependents.settings.iter().map(|it| (it.key.as_str(), it.value.clone())).collect();
    assert_eq!(
        settings,
        [
            ("system_settings", json!({ "time_zone": "Europe/Berlin" })),
            ("proxy_settings", json!({ "channel_shutdown_delay": 9 })),
        ]
    );
    assert_eq!(report.numbers("channels"), (1, 0, 0, 0), "{report}");
    assert_eq!(report.numbers("users"), (1, 0, 0, 0), "{report}");
}

#[test]
fn a_store_with_data_keeps_its_records_and_gets_only_what_it_lacks() {
    let source = household(&small());
    let (foundation, dependents, _) = convert(&source, &empty(), &[21, 22]);
    let mut existing = empty();
    existing.groups = foundation.groups.clone();
    existing.stream_profiles.extend(foundation.stream_profiles.iter().cloned());
    existing
        .accounts
        .extend(foundation.accounts.values().filter(|it| it.is_new).map(|it| it.account.clone()));
    existing.server_groups = foundation.server_groups.clone();
    existing.logos = foundation.logos.clone();
    existing.channels = dependents.channels.clone();
    existing.lineups = dependents.lineups.clone();
    existing.users = dependents.users.iter().map(|it| it.user.clone()).collect();
    existing.settings = dependents.settings.clone();
    existing.user_agents = foundation.user_agents.clone();
    existing.unused = UnusedIds {
        group: 5,
        stream_profile: 10,
        server_group: 4,
        account_group: 9,
        account: 5,
        stream: 23,
        logo: 6,
        channel: 12,
        lineup: 3,
        user: 4,
        setting: 3,
        user_agent: 2,
        guide_source: 2,
        guide_channel: 2,
    };
    let (again, nothing, report) = convert(&source, &existing, &[21, 22]);
    assert!(again.groups.is_empty() && again.stream_profiles.is_empty());
    assert!(again.accounts.values().all(|it| !it.is_new));
    assert!(
        nothing.channels.is_empty()
            && nothing.lineups.is_empty()
            && nothing.users.is_empty()
            && nothing.settings.is_empty()
    );
    assert_eq!((report.numbers("channels"), report.numbers("channel groups")), ((0, 1, 0, 0), (0, 1, 0, 0)));
    assert_eq!(report.numbers("users"), (0, 0, 0, 1), "a user of the same name may be somebody else");

    let other = Existing { channels: Vec::new(), groups: Vec::new(), ..existing };
    let (renumbered, dependents, _) = convert(&source, &other, &[21, 22]);
    assert_eq!((renumbered.groups[0].id, dependents.channels[0].id), (GroupId(5), ChannelId(12)));
    assert_eq!(
        (dependents.channels[0].uuid.to_string().as_str(), dependents.channels[0].group),
        (UUID, Some(GroupId(5)))
    );
}

#[test]
fn a_broken_source_is_taken_as_far_as_it_makes_sense() {
    let mut rows = small();
    rows.extend([
        (SourceTable::Groups, json!({ "id": "4", "name": "Twice" })),
        (SourceTable::Groups, json!({ "id": "99999999999", "name": "Far" })),
        (SourceTable::Groups, json!({ "id": "6", "name": "News\u{1}" })),
        (SourceTable::Accounts, json!({ "id": "3", "name": "Std One", "server_url": "ftp://x", "cron_expression": "x" })),
        (SourceTable::Accounts, json!({ "id": "4", "name": "Box", "account_type": "MAC" })),
        (SourceTable::Accounts, json!({ "id": "5", "name": "Panel", "account_type": "XC", "server_url": "http://p.example", "username": "u", "max_streams": "-7" })),
        (SourceTable::AccountProfiles, json!({ "id": "9", "m3u_account_id": "3", "name": "", "search_pattern": "(?=a)" })),
        (SourceTable::StreamProfiles, json!({ "id": "12", "name": "bad", "command": "sh", "parameters": "{oops} \"" })),
        // One number and one uuid twice, and references to nothing.
        (SourceTable::Channels, json!({ "id": "12", "uuid": UUID, "name": "", "channel_number": "6.5", "channel_group_id": "77", "logo_id": "77", "epg_data_id": "77", "stream_profile_id": "12", "user_level": "5", "hidden_from_output": "t" })),
        (SourceTable::Channels, json!({ "id": "13", "uuid": "none", "name": "Loud", "channel_number": "1e20" })),
        (SourceTable::Channels, json!({ "id": "13", "name": "Twice" })),
        (SourceTable::ChannelOverrides, json!({ "channel_id": "13", "name": "Quiet", "channel_number": "7" })),
        (SourceTable::ChannelStreams, json!({ "channel_id": "13", "stream_id": "404", "order": "x" })),
        (SourceTable::ChannelStreams, json!({ "channel_id": "13", "stream_id": "21", "order": "9" })),
        (SourceTable::ChannelStreams, json!({ "channel_id": "404", "stream_id": "21", "order": "9" })),
        (SourceTable::Users, json!({ "id": "4", "username": "live", "password": HASH })),
        (SourceTable::Users, json!({ "id": "5", "username": "ANNA", "password": HASH })),
        (SourceTable::Users, json!({ "id": "6", "username": "bert", "password": "!", "user_level": "7", "api_key": "key-of-anna", "custom_properties": "[1]" })),
        (SourceTable::ChannelProfiles, json!({ "id": "2", "name": "Twice" })),
        (SourceTable::ChannelProfiles, json!({ "id": "4", "name": "" })),
        (SourceTable::Memberships, json!({ "channel_profile_id": "404", "channel_id": "11" })),
        (SourceTable::UserProfiles, json!({ "user_id": "6", "channelprofile_id": "4" })),
        (SourceTable::Settings, json!({ "id": "1", "key": "system_settings", "value": "[]" })),
        (SourceTable::Settings, json!({ "id": "2", "key": "dvr_settings", "value": "{\"a\": 1}" })),
    ]);
    let (foundation, dependents, report) = convert(&household(&rows), &empty(), &[21, 22]);
    let text = report.to_string();
    assert_eq!(report.numbers("channel groups"), (1, 1, 0, 2), "{text}");
    assert_eq!(foundation.group_name(6), Some("News"), "merged with the group of this name");
    assert_eq!(foundation.account(Some(4)), None);
    let second = &foundation.accounts[&3].account;
    assert_eq!((second.name.as_str(), &second.list), ("Std One (2)", &PlaylistLocation::None));
    assert!(!second.profiles[1].is_active);
    assert_eq!(foundation.accounts[&5].account.profiles[0].max_streams, 0);

    let by_id = |id| dependents.channels.iter().find(|it| it.id == ChannelId(id)).unwrap();
    let (first, twin, quiet) = (by_id(11), by_id(12), by_id(13));
    assert_eq!((first.uuid.to_string().as_str(), first.number), (UUID, "6.5".parse().ok()));
    assert!(twin.uuid != first.uuid && !twin.enabled && twin.group.is_none());
    assert_eq!((twin.name.as_str(), twin.user_level), ("Channel 12", UserLevel::Admin));
    assert_eq!((quiet.name.as_str(), quiet.number), ("Quiet", "7".parse().ok()));
    assert_eq!(quiet.streams, [StreamId(21)]);
    assert_eq!(twin.number, "8".parse().ok(), "the next one after the largest");

    assert_eq!(
        dependents.users.iter().map(|it| it.user.username.as_str()).collect::<Vec<_>>(),
        ["anna", "live_", "bert"]
    );
    let bert = &dependents.users[2];
    assert!(bert.user.password.is_none() && bert.api_key.is_none());
    assert_eq!(bert.user.level, UserLevel::Standard);
    assert!(!bert.user.is_active, "the user's only channel profile was skipped");
    let kids = &dependents.lineups[0];
    assert_eq!(
        (dependents.lineups.len(), kids.contains(ChannelId(11)), kids.contains(ChannelId(12))),
        (1, true, false)
    );
    for part in [
        "skipped: account Box: accounts of this type are not supported",
        "password of account Panel",
        "password of user bert",
        "its cron expression is left out. It is wrong.",
        "stream profile bad: its command cannot be used",
        "its uuid is missing or invalid",
        "another channel has its uuid",
        "1 of its 2 streams were skipped or do not exist",
        "settings dvr_settings",
        "changed: user live: renamed to live_: this name is part of the addresses",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn user_agents_are_taken_once_and_the_default_one_stays_the_default() {
    let agent = |id: &str, name: &str, value: &str| {
        (SourceTable::UserAgents, json!({ "id": id, "name": name, "user_agent": value, "is_active": "t" }))
    };
    let chosen = json!({ "id": "1", "key": "stream_settings", "value": "{\"default_user_agent\": \"3\"}" });
    let rows = [
        agent("1", "TiviMate", "TiviMate/5"),
        agent("3", "VLC", "VLC/3"),
        agent("4", "VLC", "VLC/4"),
        agent("4", "twice", "Twice/1"),
        agent("5", "broken", "a\nb"),
        (SourceTable::Settings, chosen),
    ];
    let (foundation, dependents, _) = convert(&household(&rows), &empty(), &[]);
    let taken: Vec<_> = foundation.user_agents.iter().map(|it| (it.id, it.name.as_str())).collect();
    assert_eq!(taken, [(1, "TiviMate"), (3, "VLC"), (4, "VLC (2)")]);
    assert_eq!(dependents.settings[0].value, json!({ "default_user_agent": 3 }));

    // A second import finds them by their values.
    let existing = Existing {
        user_agents: foundation.user_agents,
        unused: UnusedIds { user_agent: 5, ..empty().unused },
        ..empty()
    };
    let (again, _, _) = convert(&household(&rows), &existing, &[]);
    assert_eq!(again.user_agents, []);
}

#[test]
fn titles_keep_their_ids_and_uuids_as_far_as_these_are_free() {
    use domain::ids::VodCategoryId;
    use domain::vod::{MatchReason, TitleId, TitleKind, uuid_of};
    use uuid::Uuid;

    let uuid = |n: u128| Uuid::from_u128(n << 64 | 1).to_string();
    let film = |id: u32, n: u128, tmdb: &str| {
        (
            SourceTable::Movies,
            json!({ "id": id.to_string(), "uuid": uuid(n), "name": "Heat", "year": "1995", "tmdb_id": tmdb }),
        )
    };
    let offers = |film: u32, stream: &str, account: u32| {
        let row = json!({ "m3u_account_id": account.to_string(), "movie_id": film.to_string(), "category_id": "9", "stream_id": stream, "container_extension": "mkv" });
        (SourceTable::MovieOffers, row)
    };
    let episode = |id: u32, n: u128| {
        (
            SourceTable::Episodes,
            json!({ "id": id.to_string(), "uuid": uuid(n), "series_id": "12", "season_number": "1", "episode_number": "3" }),
        )
    };
    let episode_offer = |episode: u32, stream: &str| {
        (
            SourceTable::EpisodeOffers,
            json!({ "m3u_account_id": "2", "episode_id": episode.to_string(), "stream_id": stream }),
        )
    };
    let mut rows = small();
    rows.extend([
        (SourceTable::VodCategories, json!({ "id": "9", "name": "Action", "category_type": "movie" })),
        (
            SourceTable::AccountVodCategories,
            json!({ "m3u_account_id": "2", "category_id": "9", "enabled": "f" }),
        ),
        film(12, 1, "949"),
        film(3, 2, "0"),
        film(14, 3, "1"),
        film(15, 4, "2"),
        (SourceTable::Movies, json!({ "id": "16", "uuid": "x", "name": "No uuid" })),
        (SourceTable::Movies, json!({ "id": "-1", "uuid": "x", "name": "No id" })),
        (SourceTable::Series, json!({ "id": "12", "uuid": uuid(12), "name": "Gamma" })),
        offers(12, "70", 2),
        offers(12, "71", 2),
        offers(3, "72", 2),
        offers(14, "70", 2),
        offers(15, "73", 99),
        offers(16, "74", 2),
        (
            SourceTable::SeriesOffers,
            json!({ "m3u_account_id": "2", "series_id": "12", "external_series_id": "7" }),
        ),
        episode(20, 20),
        episode(21, 21),
        episode(22, 22),
        episode_offer(20, "90"),
        episode_offer(21, "91"),
    ]);
    let household = household(&rows);
    let (foundation, _, _) = convert(&household, &empty(), &[]);
    let known = KnownTitles { unused_number: 5, unused_episode: 1, ..KnownTitles::default() };
    let mut report = Report::default();
    let random = |id| uuid_of(id, 7 << 64);
    let mut planned = foundation.titles(&household, &known, 1000, &random, &mut report);
    assert_eq!(report.numbers("films"), (3, 0, 2, 3), "{report}");
    let account = foundation.accounts[&2].account.id;
    let categories: Vec<_> = planned.categories.iter().map(|it| (it.0, it.1.as_str())).collect();
    assert_eq!(categories, [(TitleKind::Movie, "Action"), (TitleKind::Series, "Uncategorized")]);
    assert_eq!(planned.links[0], (account, 0, false), "a disabled category stays so");
    let next = planned.next_number;
    let titles = planned.take_titles(&[VodCategoryId(40), VodCategoryId(41)]);
    let ids: Vec<_> = titles.iter().map(|it| (it.id.kind(), it.id.number())).collect();
    // The store had number 3 before.
    assert_eq!(
        ids,
        [
            (TitleKind::Movie, 12),
            (TitleKind::Movie, ids[1].1),
            (TitleKind::Movie, 16),
            (TitleKind::Series, 12)
        ]
    );
    assert!(ids[1].1 > 16, "{ids:?}");
    assert_eq!((titles[0].uuid.to_string(), titles[1].uuid.to_string()), (uuid(1), uuid(2)));
    let first = &titles[0].relations;
    assert_eq!(first.iter().map(|it| &*it.provider_id).collect::<Vec<_>>(), ["70", "71"]);
    assert_eq!(
        (&first[0].reason, &first[1].reason),
        (&MatchReason::First, &MatchReason::TmdbId("949".to_owned()))
    );
    assert_eq!((first[0].category, titles[1].relations[0].facts.ids.is_empty()), (VodCategoryId(40), true));
    let mut numbers: Vec<u32> = titles.iter().flat_map(|it| it.relations.iter().map(|it| it.id.0)).collect();
    numbers.push(ids[1].1);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6, "numbers are used once");
    assert!(numbers.iter().all(|it| (17..next).contains(it)), "{numbers:?}");
    // Two episodes with one number are one, and both ids lead to it.
    let [episode] = &planned.episodes[..] else { panic!("{:?}", planned.episodes) };
    assert_eq!((episode.id.0, episode.aliases[0].id.0, episode.offers.len()), (20, 21, 2));
    assert_eq!(episode.series, TitleId::series(12).unwrap());
    assert_eq!(report.numbers("episodes"), (2, 0, 0, 1), "{report}");
}

#[test]
fn titles_and_episodes_never_have_the_numbers_of_recordings() {
    use domain::ids::VodCategoryId;
    use domain::recording::RECORDING_NUMBER_FIRST;
    use domain::vod::uuid_of;
    use uuid::Uuid;

    let number = RECORDING_NUMBER_FIRST + 1;
    let uuid = |n: u128| Uuid::from_u128(n << 64 | 1).to_string();
    let id = number.to_string();
    let mut rows = small();
    rows.extend([
        (SourceTable::Movies, json!({ "id": id, "uuid": uuid(1), "name": "Heat" })),
        (SourceTable::Movies, json!({ "id": "4", "uuid": uuid(2), "name": "Ronin" })),
        (SourceTable::Series, json!({ "id": id, "uuid": uuid(3), "name": "Gamma" })),
        (SourceTable::MovieOffers, json!({ "m3u_account_id": "2", "movie_id": id, "stream_id": "70" })),
        (SourceTable::MovieOffers, json!({ "m3u_account_id": "2", "movie_id": "4", "stream_id": "71" })),
        (
            SourceTable::SeriesOffers,
            json!({ "m3u_account_id": "2", "series_id": id, "external_series_id": "7" }),
        ),
        (
            SourceTable::Episodes,
            json!({ "id": id, "uuid": uuid(4), "series_id": id, "season_number": "1", "episode_number": "3" }),
        ),
        (SourceTable::EpisodeOffers, json!({ "m3u_account_id": "2", "episode_id": id, "stream_id": "90" })),
    ]);
    let household = household(&rows);
    let (foundation, _, _) = convert(&household, &empty(), &[]);
    let mut report = Report::default();
    let random = |id| uuid_of(id, 7 << 64);
    let known = KnownTitles { unused_number: 1, unused_episode: 1, ..KnownTitles::default() };
    let mut planned = foundation.titles(&household, &known, 1000, &random, &mut report);
    let episode = planned.episodes[0].id.0;
    let next = planned.next_number;
    let titles = planned.take_titles(&[VodCategoryId(40), VodCategoryId(41)]);
    let numbers: Vec<_> = titles.iter().map(|it| it.id.number()).chain([episode]).collect();
    assert!(numbers.len() == 4 && numbers.contains(&4), "{numbers:?}");
    assert!(next < 100 && numbers.iter().all(|it| (1..100).contains(it)), "{numbers:?}");
    assert!(report.to_string().contains("one of recordings"), "{report}");
}

#[test]
fn an_imported_guide_without_an_interval_is_refreshed_daily_and_one_with_0_is_asked_about() {
    let guide = |id: u32, more: Value| {
        let mut row = json!({ "id": id.to_string(), "name": id.to_string(), "source_type": "xmltv" });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (SourceTable::EpgSources, row)
    };
    let url = "http://tv.example/guide.xml";
    let rows = [
        guide(1, json!({ "url": url })),
        guide(2, json!({ "url": url, "refresh_interval": null })),
        guide(3, json!({ "url": url, "refresh_interval": "0" })),
        guide(4, json!({ "url": url, "refresh_interval": "6" })),
        guide(5, json!({ "url": "/data/guide.xml" })),
        guide(6, json!({ "source_type": "dummy" })),
    ];
    let (foundation, _, _) = convert(&household(&rows), &empty(), &[]);
    let intervals: Vec<_> =
        foundation.guide_sources.iter().map(|it| (it.schedule.interval_hours, it.needs_schedule())).collect();
    assert_eq!(intervals, [(24, false), (24, false), (0, true), (6, false), (0, false), (0, false)]);
}
