//! Every later version must read the files of all released versions.
//!
//! `records.json` has an entry for each record type and version, and for each case that a first one cannot have as well: the
//! encoded bytes, and their content. `store-1.bin` is a complete small store of the first format. `store-2.bin` is one of
//! the second format, as a crash leaves it: with a long record in pieces, the leftovers of a bulk write, and a record that
//! was set aside. `backup-1.tar.gz` is a back-up with the same records. Existing entries never change:
//! `cargo test -p storage --test it golden::write -- --ignored` adds the missing ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::account::{
    Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord, RefreshSchedule, Rule,
    RuleField, StreamIdentity,
};
use domain::account_group::AccountGroup;
use domain::audit::AuditEntry;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::matching::{AliasName, GuideAlias, Subject};
use domain::guide::schedules_direct::{DayMark, GuideMarks};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::health::{FailureSide, Measurement, StreamHealth};
use domain::ids::{
    AccountGroupId, AccountId, ChannelId, DeviceLoginId, EpisodeId, GroupId, GuideChannelId, GuideSourceId,
    LineupId, LogoId, OutputProfileId, PermissionId, PersonalPlaylistId, ProfileId, RecordingId,
    ServerGroupId, StreamId, StreamProfileId, TunerDeviceId, UserGroupId, UserId, VodCategoryId,
};
use domain::lineup::Lineup;
use domain::login::DeviceLogin;
use domain::logo::Logo;
use domain::notice::{DismissedNotices, Notice, NoticeKind, NoticePriority};
use domain::output_profile::{LeftOutKind, OutputProfile};
use domain::panel::{ExpiryNotice, LoginState, ProfileInfo};
use domain::personal_playlist::PersonalPlaylist;
use domain::recording::{Gap, RecordedFile, RecordedProgramme, Recording, RecordingStatus};
use domain::secret::{Secret, ServerKeys};
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamOverrides, StreamProperties};
use domain::stream_ids::{StreamIdPage, StreamKey};
use domain::stream_profile::StreamProfile;
use domain::tuner::TunerDevice;
use domain::undo::{UndoChange, UndoEntry, UndoPart};
use domain::user::{ApiKey, User, UserLevel};
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;
use domain::vod::regroup::TitleShape;
use domain::vod::{
    AccountCategory, Episode, EpisodeAlias, EpisodeFacts, EpisodeOffer, ExternalIds, KindSync, MatchReason,
    Relation, RelationId, Title, TitleAlias, TitleDetails, TitleEdits, TitleFacts, TitleFavorites, TitleId,
    TitleKind, VodCategory, VodSync, uuid_of,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use storage::backup::{Archive, BackupSecret, create_backup};
use storage::records::schema;
use storage::{Record, Schema, Store};
use uuid::Uuid;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn account() -> Account {
    let mut headers = RequestHeaders::default();
    assert!(headers.set("User-Agent", "player/1.0") && headers.set("X-Token", "abc"));
    let list =
        PlaylistLocation::Url(SourceUrl::new("http://tv.example/get.php?username=user&password=secret"));
    let profile = AccountProfile {
        search_pattern: "user/secret".to_owned(),
        replace_pattern: "other/login".to_owned(),
        ..AccountProfile::default_of(ProfileId(2), "Default", 2)
    };
    Account {
        headers,
        release_delay: Duration::from_millis(1_500),
        identity: StreamIdentity::StreamId,
        rules: vec![Rule { field: RuleField::Name, find: "^UK: ".to_owned(), replace: String::new() }],
        schedule: RefreshSchedule { interval_hours: 24, cron: "0 4 * * *".to_owned() },
        ..Account::new(AccountId(2), "Provider", list, profile, 1_700_000_000_000)
    }
}

fn account_group() -> AccountGroup {
    AccountGroup {
        auto_channel_sync: true,
        sync_start: Some("100".parse().unwrap()),
        sync_end: Some("199.5".parse().unwrap()),
        last_seen: Some(1_700_000_000_000),
        ..AccountGroup::new(AccountGroupId(1), AccountId(2), GroupId(3), true)
    }
}

fn server_group() -> ServerGroup {
    ServerGroup { id: ServerGroupId(1), name: "Provider".to_owned(), max_streams: 2 }
}

fn guide_source() -> GuideSource {
    GuideSource {
        id: GuideSourceId(2),
        name: "Guide".to_owned(),
        kind: GuideSourceKind::Xmltv,
        url: Some(SourceUrl::new("http://guide.example/xmltv.php?username=u&password=p")),
        username: Some("u".to_owned()),
        password: Some(Secret::new("p")),
        account: Some(AccountId(3)),
        file: Some("guide.xml".to_owned()),
        is_active: true,
        schedule: RefreshSchedule { interval_hours: 24, cron: "0 4 * * *".to_owned() },
        priority: 5,
        history_days: 3,
        custom_properties: json!({ "timezone": "UTC" }).as_object().cloned().unwrap(),
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_000_001,
    }
}

fn guide_state() -> GuideState {
    GuideState {
        status: GuideStatus::Success,
        message: "3 channels".to_owned(),
        generation: 7,
        n_channels: 3,
        n_programmes: 108,
        etag: Some("\"abc\"".to_owned()),
        last_modified: Some("Sat, 21 Nov 2026 00:00:00 GMT".to_owned()),
        digest: Some([7; 32]),
        origin: None,
        tried_at: Some(1_700_000_000_000),
        good_at: Some(1_700_000_000_000),
        ..GuideState::new(GuideSourceId(2))
    }
}

fn guide_marks() -> GuideMarks {
    let mut marks = GuideMarks::new(GuideSourceId(2), 20_468);
    marks.fetched_at = 1_700_000_000_000;
    marks.set("20454", 20_469, &DayMark::of("BqiRNaIeZ2XIZ7Wq"));
    marks
}

fn guide_channel() -> GuideChannel {
    GuideChannel {
        id: GuideChannelId(9),
        source: GuideSourceId(2),
        key: "news.example".to_owned(),
        names: vec!["News".to_owned(), "News HD".to_owned()],
        icon: Some("http://logos.example/news.png".to_owned()),
    }
}

fn guide_alias() -> GuideAlias {
    let channel = Subject { name: "UK: News HD", tvg_id: Some("news.uk"), ..Subject::default() };
    GuideAlias {
        id: 3,
        name: AliasName::of(&channel).unwrap(),
        channel_name: "UK: News HD".to_owned(),
        tvg_id: Some("news.uk".to_owned()),
        source: GuideSourceId(2),
        key: "news.example".to_owned(),
        learned_at: 1_700_000_000_000,
    }
}

fn tuner_device() -> TunerDevice {
    TunerDevice {
        id: TunerDeviceId(1),
        friendly_name: "Bedroom".to_owned(),
        device_id: "bedroom".to_owned(),
        tuner_count: 2,
        lineup: Some(LineupId(3)),
    }
}

fn audit_entry() -> AuditEntry {
    AuditEntry {
        id: 6,
        at: 1_700_000_000_003,
        user: UserId(5),
        username: "Anna".to_owned(),
        address: [192, 0, 2, 1].into(),
        user_agent: "curl/8.0".to_owned(),
        method: "PATCH".to_owned(),
        path: "/api/channels/channels/{id}/".to_owned(),
        fields: vec!["name".to_owned()],
        records: vec![("channels".to_owned(), 4)],
        n_records: 1,
    }
}

fn refresh() -> RefreshRecord {
    RefreshRecord {
        account: AccountId(2),
        outcome: RefreshOutcome::Success,
        message: "2 streams".to_owned(),
        tried_at: 1_700_000_000_002,
        good_at: Some(1_700_000_000_001),
        n_good: 2,
        digest: Some([7; 32]),
        ..RefreshRecord::new(AccountId(2))
    }
}

fn profile_info() -> ProfileInfo {
    let user_info = json!({ "status": "Active", "exp_date": "1893456000", "max_connections": 2 });
    ProfileInfo {
        state: LoginState::Active,
        user_info: user_info.as_object().unwrap().clone(),
        answered_at: Some(1_700_000_000_000),
        tried_at: 1_700_000_000_001,
        error: "an empty answer".to_owned(),
        notice: Some(ExpiryNotice { expires_at: 1_893_456_000_000, days: 7 }),
        ..ProfileInfo::new(ProfileId(2), AccountId(2))
    }
}

fn channel() -> Channel {
    Channel {
        number: Some("4.1".parse().unwrap()),
        group: Some(GroupId(3)),
        tvg_id: Some("news.example".to_owned()),
        streams: vec![StreamId(2), StreamId(1)],
        stream_profile: Some(StreamProfileId(1)),
        user_level: UserLevel::Standard,
        ..Channel::new(ChannelId(4), Uuid::from_u128(0x1234_5678_9abc_def0), "News", 1_700_000_000_000)
    }
}

fn group() -> Group {
    let mut group = Group::new(GroupId(3), "Free");
    group.rename("News");
    group
}

fn lineup() -> Lineup {
    let mut lineup = Lineup::new(LineupId(7), "Kids", true);
    lineup.description = "For children".to_owned();
    lineup.set(ChannelId(4), false);
    lineup.set(ChannelId(70_000), false);
    lineup
}

fn personal_playlist() -> PersonalPlaylist {
    let mut playlist = PersonalPlaylist::new(PersonalPlaylistId(3), UserId(5), "Evening", 1_700_000_000_000);
    playlist.set_channels([ChannelId(70_000), ChannelId(4)]);
    playlist.assigned_to.insert(UserId(6));
    playlist
}

fn server_keys() -> ServerKeys {
    ServerKeys { tokens: [1; 32], lookup: [2; 32] }
}

fn login() -> DeviceLogin {
    DeviceLogin {
        id: DeviceLoginId(6),
        user: UserId(5),
        key: Uuid::from_u128(0xfedc_ba98),
        generation: 3,
        created_at: 1_700_000_000_000,
        used_at: 1_700_000_060_000,
        address: "2001:db8::5".parse().unwrap(),
        agent: "player/1.0".to_owned(),
        browser: None,
    }
}

fn setting() -> CoreSetting {
    let value = json!({ "buffering_timeout": 15 });
    CoreSetting { id: 1, key: "proxy_settings".to_owned(), name: "Proxy Settings".to_owned(), value }
}

fn stream(id: u32) -> Stream {
    let provider = StreamProperties {
        group: Some("Free".to_owned()),
        logo: Some("http://tv.example/logo.png".to_owned()),
        number: Some("7".parse().unwrap()),
        ..StreamProperties::new(
            format!("Stream {id}"),
            SourceUrl::new(format!("http://tv.example/live/user/secret/{id}.ts")),
        )
    };
    Stream {
        rule: StreamOverrides { name: Some("by rule".to_owned()), ..StreamOverrides::default() },
        manual: StreamOverrides { tvg_id: Some("by hand".to_owned()), ..StreamOverrides::default() },
        last_seen: (id == 2).then_some(1_700_000_000_000),
        ..Stream::new(StreamId(id), AccountId(2), provider, 1_600_000_000_000)
    }
}

fn stream_ids() -> StreamIdPage {
    let mut page = StreamIdPage::new(0);
    for stream in [stream(1), stream(7)] {
        let key = StreamKey::of(stream.account, StreamIdentity::Url, &stream.provider);
        page.set(stream.id, Some(key));
    }
    page
}

fn health() -> StreamHealth {
    let mut health = StreamHealth::new(StreamId(2));
    health.opened(120, 1_700_000_000_000);
    health.failed("status", FailureSide::Stream, 1_700_000_001_000);
    let measurement = Measurement {
        bitrate_kbps: Some(4_000),
        video_codec: Some("H.264".to_owned()),
        audio_codec: Some("AAC".to_owned()),
        picture: Some((1920, 1080)),
    };
    health.measured(measurement, 1_700_000_002_000);
    health
}

fn logo() -> Logo {
    Logo {
        id: LogoId(7),
        name: "News".to_owned(),
        url: "http://tv.example/logo.png".to_owned(),
        file: None,
        named_by: Some(AccountId(2)),
        guide_source: None,
        updated_at: 1_700_000_000_000,
    }
}

fn notice() -> Notice {
    Notice {
        id: 3,
        key: "maintenance".to_owned(),
        kind: NoticeKind::Announcement,
        priority: NoticePriority::High,
        title: "Maintenance".to_owned(),
        message: "The gateway restarts tonight.".to_owned(),
        action_data: "{\"link\":\"/status\"}".to_owned(),
        is_active: true,
        for_admins: false,
        expires_at: Some(1_800_000_000_000),
        created_at: 1_700_000_000_000,
    }
}

fn recording() -> Recording {
    Recording {
        id: RecordingId(4),
        channel: ChannelId(2),
        channel_name: "News".to_owned(),
        channel_uuid: uuid_of(4, 2),
        programme: Some(RecordedProgramme {
            id: Some("4503601413783552".to_owned()),
            title: "Evening".to_owned(),
            sub_title: Some("Part two".to_owned()),
            description: Some("What happened.".to_owned()),
            tvg_id: Some("news.example".to_owned()),
            season: Some(3),
            episode: Some(7),
            year: Some(2026),
            is_movie: true,
        }),
        start: 1_700_000_000_000,
        end: 1_700_003_600_000,
        padding_before: 60,
        padding_after: 300,
        priority: 70,
        status: RecordingStatus::Interrupted,
        reason: Some("the disk is full".to_owned()),
        gaps: vec![Gap {
            start: 1_700_000_001_000,
            end: Some(1_700_000_009_000),
            reason: "no data arrived".to_owned(),
        }],
        file: Some(RecordedFile {
            path: "TV_Shows/Evening/S03E07.ts".to_owned(),
            bytes: 188_000,
            started_at: 1_700_000_000_100,
            ended_at: Some(1_700_000_900_000),
        }),
        owner: Some(UserId(5)),
        created_at: 1_699_000_000_000,
        updated_at: 1_700_000_900_001,
    }
}

fn dismissed_notices() -> DismissedNotices {
    DismissedNotices { user: UserId(5), keys: ["disk_low".to_owned(), "maintenance".to_owned()].into() }
}

fn output_profile() -> OutputProfile {
    OutputProfile {
        left_out_pids: [0x1234].into(),
        left_out_kinds: [LeftOutKind::Teletext, LeftOutKind::Data].into(),
        stream_profile: Some(StreamProfileId(7)),
        user_agent_pattern: "^Kodi".to_owned(),
        position: 2,
        ..OutputProfile::new(OutputProfileId(4), "Small")
    }
}

fn undo() -> UndoEntry {
    UndoEntry {
        id: 8,
        at: 1_700_000_000_000,
        user: UserId(5),
        username: "Anna".to_owned(),
        message: "Deleted 1 channels".to_owned(),
        n_changes: 1,
        bytes: 500,
        parts: vec![9],
        files: vec!["7-1.png".to_owned()],
    }
}

fn undo_part() -> UndoPart {
    let after = Channel { name: "World".to_owned(), number: None, ..channel() };
    let edited = UndoChange::of_channel(&channel(), &after).expect("a change");
    let changes = vec![
        edited,
        UndoChange::ChannelDeleted(Box::new(channel())),
        UndoChange::ChannelCreated(Box::new(channel())),
        UndoChange::GroupCreated(group()),
        UndoChange::GroupDeleted(group()),
        UndoChange::LogoCreated(logo()),
        UndoChange::LogoDeleted(logo()),
    ]
    .into_iter()
    .chain(UndoChange::of_lineup(&lineup(), &[(ChannelId(11), true), (ChannelId(12), false)]))
    .collect();
    UndoPart { id: 9, changes }
}

/// The kinds of changes that came after those of [`undo_part`].
fn undo_part_of_lineups() -> UndoPart {
    let mut changes = vec![
        UndoChange::StreamCreated(Box::new(stream(1))),
        UndoChange::StreamDeleted(Box::new(stream(2))),
        UndoChange::GuideAliasCreated(guide_alias()),
        UndoChange::GuideAliasDeleted(guide_alias()),
    ];
    changes.extend(UndoChange::of_lineup(&lineup(), &[(ChannelId(11), true), (ChannelId(12), false)]));
    UndoPart { id: 10, changes }
}

/// The change of titles, which came later.
fn undo_part_of_titles() -> UndoPart {
    let (before, after) = (vec![TitleShape::of(&title()), TitleShape::of(&title_of_reasons())], Vec::new());
    UndoPart { id: 11, changes: vec![UndoChange::TitlesChanged { before, after }] }
}

fn stream_profile() -> StreamProfile {
    let [proxy, ..] = StreamProfile::built_in();
    proxy
}

fn user() -> User {
    let key = ApiKey { key: Secret::new("key"), digest: [9; 32] };
    User {
        password: Some(Secret::new("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA")),
        player_password: Some(Secret::new("player")),
        api_key: Some(key),
        stream_limit: 2,
        last_login: Some(1_700_000_000_000),
        ..User::new(UserId(5), "Anna", UserLevel::Standard, 1_600_000_000_000)
    }
}

fn user_group() -> UserGroup {
    UserGroup {
        id: UserGroupId(8),
        name: "Family".to_owned(),
        permissions: [PermissionId(4), PermissionId(12)].into(),
    }
}

fn user_agent() -> UserAgent {
    UserAgent {
        id: 7,
        name: "VLC".to_owned(),
        user_agent: "VLC/3.0.21 LibVLC/3.0.21".to_owned(),
        description: "A player".to_owned(),
        is_active: true,
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_000_001,
    }
}

fn title_facts() -> TitleFacts {
    TitleFacts {
        name: "EN - Heat (1995) 4K".to_owned(),
        description: Some("A thief and a detective.".to_owned()),
        year: Some(1995),
        rating: Some("8.3".to_owned()),
        genre: Some("Crime".to_owned()),
        duration_secs: Some(10_200),
        logo: Some("http://tv.example/heat.jpg".to_owned()),
        is_adult: true,
        ids: ExternalIds { tmdb: Some("949".to_owned()), imdb: Some("tt0113277".to_owned()) },
    }
}

fn title() -> Title {
    let id = TitleId::movie(7).unwrap();
    let properties = json!({ "director": "M. Mann" }).as_object().cloned().unwrap();
    let relation = Relation {
        address: Some(SourceUrl::new("http://tv.example/movie/user/secret/55.mkv")),
        extension: "mkv".to_owned(),
        label: Some("EN 4K".to_owned()),
        facts: title_facts(),
        details: Some(Box::new(TitleFacts { year: Some(1995), ..TitleFacts::default() })),
        details_at: Some(1_700_000_000_001),
        last_modified: Some(1_600_000_000),
        episodes_at: Some(1_700_000_000_002),
        episodes_of: Some(1_500_000_000),
        last_seen: Some(1_700_000_000_003),
        reason: MatchReason::TmdbId("949".to_owned()),
        is_pinned: true,
        custom_properties: properties.clone(),
        ..Relation::new(RelationId(8), AccountId(2), VodCategoryId(5), "55", 1_700_000_000_000)
    };
    let edits = TitleEdits {
        name: Some("Heat".to_owned()),
        description: Some(String::new()),
        year: Some(0),
        rating: Some("R".to_owned()),
        genre: Some("Thriller".to_owned()),
        duration_secs: Some(1),
        logo: Some(String::new()),
        is_adult: Some(false),
        tmdb: Some("949".to_owned()),
        imdb: Some(String::new()),
    };
    let alias = TitleAlias {
        id: TitleId::movie(3).unwrap(),
        uuid: Uuid::from_u128(0x1234),
        relations: vec![RelationId(8)],
    };
    Title {
        relations: vec![relation],
        edits,
        hidden: true,
        aliases: vec![alias],
        custom_properties: properties,
        ..Title::new(id, uuid_of(id.key(), 7), 1_700_000_000_000)
    }
}

/// A title with the reasons that the first one does not have.
fn title_of_reasons() -> Title {
    let reasons = [
        MatchReason::First,
        MatchReason::ImdbId("tt1".to_owned()),
        MatchReason::NameAndYear,
        MatchReason::Admin,
    ];
    let relation = |(at, reason): (u32, MatchReason)| Relation {
        reason,
        ..Relation::new(RelationId(10 + at), AccountId(2), VodCategoryId(5), at.to_string(), 0)
    };
    let id = TitleId::series(9).unwrap();
    Title {
        relations: (0..).zip(reasons).map(relation).collect(),
        ..Title::new(id, uuid_of(id.key(), 7), 1_700_000_000_000)
    }
}

fn title_details() -> TitleDetails {
    TitleDetails {
        relation: RelationId(8),
        account: AccountId(2),
        loaded_at: 1_700_000_000_000,
        properties: json!({ "cast": "A, B", "bitrate": 4_000 }).as_object().cloned().unwrap(),
    }
}

fn episode() -> Episode {
    let facts = EpisodeFacts {
        name: "Pilot".to_owned(),
        description: Some("The first one.".to_owned()),
        air_date: Some("2008-01-20".to_owned()),
        rating: Some("9".to_owned()),
        duration_secs: Some(3_480),
        logo: Some("http://tv.example/1.jpg".to_owned()),
        ids: ExternalIds { tmdb: Some("62085".to_owned()), imdb: None },
        custom_properties: json!({ "bitrate": 4_000 }).as_object().cloned().unwrap(),
    };
    let offer = EpisodeOffer {
        account: AccountId(2),
        relation: RelationId(10),
        provider_id: "901".to_owned(),
        address: Some(SourceUrl::new("http://tv.example/series/user/secret/901.mkv")),
        extension: "mkv".to_owned(),
        facts,
        last_seen: Some(1_700_000_000_000),
    };
    Episode {
        id: EpisodeId(4),
        uuid: uuid_of(4, 7),
        series: TitleId::series(9).unwrap(),
        season: 0,
        number: 1,
        offers: vec![offer],
        aliases: vec![EpisodeAlias { id: EpisodeId(2), uuid: Uuid::from_u128(5) }],
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_000_001,
    }
}

fn vod_category() -> VodCategory {
    VodCategory { id: VodCategoryId(5), name: "EN | Action".to_owned(), kind: TitleKind::Movie }
}

fn account_category() -> AccountCategory {
    AccountCategory {
        id: 6,
        account: AccountId(2),
        category: VodCategoryId(5),
        kind: TitleKind::Movie,
        provider_ids: vec!["12".to_owned(), "13".to_owned()],
        enabled: true,
        custom_properties: json!({ "note": "x" }).as_object().cloned().unwrap(),
        last_seen: Some(1_700_000_000_000),
    }
}

fn title_favorites() -> TitleFavorites {
    let titles = vec![TitleId::movie(7).unwrap(), TitleId::series(7).unwrap()];
    TitleFavorites { user: UserId(3), titles, updated_at: 1_700_000_000_000 }
}

fn vod_sync() -> VodSync {
    let of_kind = KindSync {
        outcome: RefreshOutcome::Success,
        message: "3 films".to_owned(),
        tried_at: 1_700_000_000_001,
        good_at: Some(1_700_000_000_000),
        n_good: 3,
        earlier: [(VodCategoryId(5), 1_600_000_000_000)].into(),
    };
    VodSync { account: AccountId(2), series: Some(of_kind.clone()), movies: Some(of_kind) }
}

/// Returns a record of every type, as this version writes it.
fn now() -> Vec<Value> {
    vec![
        written(&account()),
        written(&account_group()),
        written(&audit_entry()),
        written(&channel()),
        written(&group()),
        written(&guide_channel()),
        written(&guide_alias()),
        written(&guide_marks()),
        written(&guide_source()),
        written(&guide_state()),
        written(&lineup()),
        written(&personal_playlist()),
        written(&refresh()),
        written(&server_group()),
        written(&server_keys()),
        written(&login()),
        written(&profile_info()),
        written(&notice()),
        written(&dismissed_notices()),
        written(&recording()),
        written(&output_profile()),
        written(&setting()),
        written(&stream(1)),
        written(&stream_ids()),
        written(&stream_profile()),
        written(&user()),
        written(&user_group()),
        written(&health()),
        written(&logo()),
        written(&tuner_device()),
        written(&undo()),
        written(&undo_part()),
        written_as("lineups", &undo_part_of_lineups()),
        written_as("titles", &undo_part_of_titles()),
        written(&user_agent()),
        written(&title()),
        written_as("reasons", &title_of_reasons()),
        written(&title_details()),
        written(&episode()),
        written(&vod_category()),
        written(&account_category()),
        written(&vod_sync()),
        written(&title_favorites()),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Encodes a record as this version writes it.
fn written<T: Record>(record: &T) -> Value {
    let mut bytes = vec![T::VERSION];
    bytes.extend(rmp_serde::to_vec_named(record).unwrap());
    let says = serde_json::to_value(record).unwrap();
    json!({ "collection": T::COLLECTION, "version": T::VERSION, "bytes": hex(&bytes), "says": says })
}

/// Encodes another record of a type, for values that the first one cannot have as well.
fn written_as<T: Record>(case: &str, record: &T) -> Value {
    let mut line = written(record);
    line["case"] = case.into();
    line
}

/// Returns whether two lines are of the same type, version and case.
fn is_same(one: &Value, other: &Value) -> bool {
    ["collection", "version", "case"].iter().all(|it| one[*it] == other[*it])
}

fn reads<T: Record>(line: &Value) {
    let record: T = storage::decode(&bytes(line["bytes"].as_str().unwrap())).unwrap();
    let says = serde_json::to_value(&record).unwrap();
    // Back-ups contain records as JSON.
    let again: T = serde_json::from_slice(&serde_json::to_vec(&record).unwrap()).unwrap();
    assert_eq!(written(&again), written(&record), "{} differs after a back-up", T::COLLECTION);
    // Later fields have their defaults; all others are unchanged.
    assert!(contains(&says, &line["says"]), "{}: {says} has not all of {}", T::COLLECTION, line["says"]);
}

/// Returns whether a value is another one, apart from fields that only the first one has.
fn contains(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(name, value)| now.get(name).is_some_and(|it| contains(it, value)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| contains(now, then))
        }
        _ => now == then,
    }
}

fn records() -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(golden("records.json")).unwrap()).unwrap()
}

#[test]
fn records_of_every_released_version_still_decode() {
    let lines = records();
    for line in &lines {
        match line["collection"].as_str().unwrap() {
            Account::COLLECTION => reads::<Account>(line),
            AccountGroup::COLLECTION => reads::<AccountGroup>(line),
            AuditEntry::COLLECTION => reads::<AuditEntry>(line),
            Channel::COLLECTION => reads::<Channel>(line),
            Group::COLLECTION => reads::<Group>(line),
            Lineup::COLLECTION => reads::<Lineup>(line),
            GuideChannel::COLLECTION => reads::<GuideChannel>(line),
            GuideAlias::COLLECTION => reads::<GuideAlias>(line),
            GuideMarks::COLLECTION => reads::<GuideMarks>(line),
            GuideSource::COLLECTION => reads::<GuideSource>(line),
            GuideState::COLLECTION => reads::<GuideState>(line),
            PersonalPlaylist::COLLECTION => reads::<PersonalPlaylist>(line),
            RefreshRecord::COLLECTION => reads::<RefreshRecord>(line),
            ServerGroup::COLLECTION => reads::<ServerGroup>(line),
            ServerKeys::COLLECTION => reads::<ServerKeys>(line),
            DeviceLogin::COLLECTION => reads::<DeviceLogin>(line),
            CoreSetting::COLLECTION => reads::<CoreSetting>(line),
            ProfileInfo::COLLECTION => reads::<ProfileInfo>(line),
            Notice::COLLECTION => reads::<Notice>(line),
            DismissedNotices::COLLECTION => reads::<DismissedNotices>(line),
            Recording::COLLECTION => reads::<Recording>(line),
            OutputProfile::COLLECTION => reads::<OutputProfile>(line),
            Stream::COLLECTION => reads::<Stream>(line),
            StreamProfile::COLLECTION => reads::<StreamProfile>(line),
            User::COLLECTION => reads::<User>(line),
            UserGroup::COLLECTION => reads::<UserGroup>(line),
            StreamHealth::COLLECTION => reads::<StreamHealth>(line),
            Logo::COLLECTION => reads::<Logo>(line),
            TunerDevice::COLLECTION => reads::<TunerDevice>(line),
            UndoEntry::COLLECTION => reads::<UndoEntry>(line),
            StreamIdPage::COLLECTION => reads::<StreamIdPage>(line),
            UndoPart::COLLECTION => reads::<UndoPart>(line),
            UserAgent::COLLECTION => reads::<UserAgent>(line),
            Title::COLLECTION => reads::<Title>(line),
            TitleDetails::COLLECTION => reads::<TitleDetails>(line),
            Episode::COLLECTION => reads::<Episode>(line),
            VodCategory::COLLECTION => reads::<VodCategory>(line),
            AccountCategory::COLLECTION => reads::<AccountCategory>(line),
            VodSync::COLLECTION => reads::<VodSync>(line),
            TitleFavorites::COLLECTION => reads::<TitleFavorites>(line),
            other => panic!("unknown collection {other}"),
        }
    }
    // This version has its entries too.
    for now in now() {
        let is_present = lines.iter().any(|it| is_same(it, &now));
        assert!(is_present, "no golden record of {} {} {}", now["collection"], now["version"], now["case"]);
    }
}

#[test]
fn every_kind_of_change_that_can_be_undone_has_a_golden_record() {
    // A new kind does not compile here: it needs a golden record of its own.
    let number = |change: &UndoChange| match change {
        UndoChange::ChannelEdited { .. } => 0,
        UndoChange::ChannelCreated(_) => 1,
        UndoChange::ChannelDeleted(_) => 2,
        UndoChange::GroupCreated(_) => 3,
        UndoChange::GroupDeleted(_) => 4,
        UndoChange::LogoCreated(_) => 5,
        UndoChange::LogoDeleted(_) => 6,
        UndoChange::StreamCreated(_) => 7,
        UndoChange::StreamDeleted(_) => 8,
        UndoChange::GuideAliasCreated(_) => 9,
        UndoChange::GuideAliasDeleted(_) => 10,
        UndoChange::LineupEdited { .. } => 11,
        UndoChange::TitlesChanged { .. } => 12,
    };
    let parts = records().into_iter().filter(|it| it["collection"] == UndoPart::COLLECTION);
    let mut found: Vec<i32> = parts
        .map(|it| storage::decode::<UndoPart>(&bytes(it["bytes"].as_str().unwrap())).unwrap())
        .flat_map(|it| it.changes.iter().map(number).collect::<Vec<_>>())
        .collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..=12).collect::<Vec<_>>());
}

/// A setting that is stored in pieces.
fn long_setting() -> CoreSetting {
    let values: Vec<String> = (0..4_000).map(|at| format!("value {at} of a long list")).collect();
    CoreSetting { id: 2, key: "long".to_owned(), name: "Long".to_owned(), value: json!(values) }
}

/// Writes a record that cannot be read as a refresh.
#[derive(Serialize, Deserialize)]
struct Unreadable {
    id: u32,
}

impl Record for Unreadable {
    const COLLECTION: &'static str = RefreshRecord::COLLECTION;

    fn id(&self) -> u32 {
        self.id
    }
}

/// Sets such a record aside.
#[derive(Serialize, Deserialize)]
struct MayBeMissed {
    id: u32,
    message: String,
}

impl Record for MayBeMissed {
    const COLLECTION: &'static str = RefreshRecord::COLLECTION;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

#[test]
fn a_store_of_the_second_format_opens_as_a_crash_left_it() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&golden("store-2.bin"), folder.path());
    let open = || Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    for _ in 0..2 {
        let store = open();
        assert_eq!(store.collection::<Account>().all().unwrap(), [account()]);
        assert_eq!(store.collection::<Channel>().all().unwrap(), [channel()]);
        assert_eq!(store.collection::<CoreSetting>().all().unwrap(), [setting(), long_setting()]);
        assert_eq!(store.collection::<Stream>().all().unwrap(), (1..=250).map(stream).collect::<Vec<_>>());
        assert_eq!(store.set_aside(), [format!("record 9 of {}", RefreshRecord::COLLECTION)]);
    }
    open().write_blocking(|write| write.put(&stream(251))).unwrap();
}

#[test]
fn a_store_of_the_first_version_opens() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&golden("store-1.bin"), folder.path());
    let store = Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    assert_eq!(store.collection::<Account>().all().unwrap(), [account()]);
    assert_eq!(store.collection::<Channel>().all().unwrap(), [channel()]);
    assert_eq!(
        store.collection::<Channel>().one_by("uuid", channel().uuid.as_bytes()).unwrap(),
        Some(channel())
    );
    assert_eq!(store.collection::<Stream>().all().unwrap(), (1..=250).map(stream).collect::<Vec<_>>());
    store.write_blocking(|write| write.put(&stream(251))).unwrap();
}

/// The passphrase of golden back-ups.
fn passphrase() -> BackupSecret {
    BackupSecret::Passphrase(Secret::new("correct horse"))
}

/// Writes the records of the golden stores.
fn fill(store: &Store) {
    let fill = |write: &mut storage::Write<'_>| {
        write.put(&account())?;
        write.put(&channel())?;
        write.put(&group())?;
        write.put(&refresh())?;
        write.put(&server_keys())?;
        write.put(&setting())?;
        write.put(&long_setting())?;
        write.put(&stream_profile())?;
        write.put(&user())
    };
    store.write_blocking(fill).unwrap();
    let mut bulk = store.bulk_write::<Stream>(2).unwrap();
    (1..=250).try_for_each(|id| bulk.put(&stream(id))).unwrap();
    bulk.commit(|_, _| Ok::<_, storage::Error>(())).unwrap();
}

/// Holds T-bak.1: back-ups of every released version stay here and are never written again.
#[test]
fn a_back_up_of_each_version_restores_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let (store, key) = (folder.path().join("store"), folder.path().join("key"));
    let archive = Archive::open(&golden("backup-1.tar.gz")).unwrap().unlock(&passphrase()).unwrap();
    let mut no_files = |_: &str, _: &str, _: &[u8]| panic!("the back-up has no files");
    archive.restore(&store, &key, &schema(), &mut no_files).unwrap();
    let store = Store::open(&store, &key, schema()).unwrap();
    assert_eq!(store.collection::<Account>().all().unwrap(), [account()]);
    assert_eq!(store.collection::<Channel>().all().unwrap(), [channel()]);
    assert_eq!(store.collection::<Group>().all().unwrap(), [group()]);
    assert_eq!(store.collection::<CoreSetting>().all().unwrap(), [setting(), long_setting()]);
    assert_eq!(store.collection::<Stream>().all().unwrap(), (1..=250).map(stream).collect::<Vec<_>>());
    assert_eq!(store.collection::<User>().all().unwrap(), [user()]);
    store.write_blocking(|write| write.put(&stream(251))).unwrap();
}

#[test]
#[ignore = "writes the golden files of this version"]
fn write() {
    let now = now();
    let mut lines = if golden("records.json").exists() { records() } else { Vec::new() };
    for line in now {
        if !lines.iter().any(|it| is_same(it, &line)) {
            lines.push(line);
        }
    }
    fs::write(golden("records.json"), serde_json::to_string_pretty(&lines).unwrap() + "\n").unwrap();
    if !golden("backup-1.tar.gz").exists() {
        let store = Store::temporary(schema()).unwrap();
        fill(&store);
        let mut file = File::create(golden("backup-1.tar.gz")).unwrap();
        create_backup(&store, &[], &passphrase(), 1_700_000_000_000, &mut file).unwrap();
    }
    if golden("store-2.bin").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open =
        |schema| Store::open(&folder.path().join("store"), &folder.path().join("key"), schema).unwrap();
    open(Schema::new().with::<Unreadable>())
        .write_blocking(|write| write.put(&Unreadable { id: 9 }))
        .unwrap();
    assert_eq!(open(Schema::new().with::<MayBeMissed>()).set_aside().len(), 1);
    let store = open(schema());
    fill(&store);
    // Some blocks are on the disk and belong to no commit when the files are read.
    let mut unfinished = store.bulk_write::<Stream>(3).unwrap();
    let of_another = |id: u32| Stream { account: AccountId(3), ..stream(id) };
    (1_001..=3_050).try_for_each(|id| unfinished.put(&of_another(id))).unwrap();
    pack(folder.path(), &golden("store-2.bin"));
}

/// Packs all files of a folder into one compressed file. Databases are mostly zeros.
fn pack(folder: &Path, into: &Path) {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    let mut encoder =
        flate2::write::DeflateEncoder::new(File::create(into).unwrap(), flate2::Compression::best());
    encoder.write_all(&rmp_serde::to_vec(&files).unwrap()).unwrap();
    encoder.finish().unwrap();
}

fn unpack(from: &Path, folder: &Path) {
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(File::open(from).unwrap()).read_to_end(&mut bytes).unwrap();
    let files: BTreeMap<String, Vec<u8>> = rmp_serde::from_slice(&bytes).unwrap();
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
