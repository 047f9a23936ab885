//! Records of every type, as the golden files have them.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::account::{
    Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord, RefreshSchedule, Rule,
    RuleField, StreamIdentity,
};
use domain::account_addresses::{AddressFailure, AddressRecord};
use domain::account_group::AccountGroup;
use domain::allowed_hours::AllowedHours;
use domain::audit::AuditEntry;
use domain::channel::{AutoChannel, Channel, SyncedValues};
use domain::cluster::certificate::{ClusterAuthority, NodeCertificate, SealedKeys};
use domain::cluster::record::NodeId;
use domain::cluster::token::{JoinTicket, NodeRole};
use domain::entry_details::{ChannelMarks, EntryDetails, KeptAttribute, OptionForm, PlayerOption};
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
    RecordingRuleId, ServerGroupId, StreamId, StreamProfileId, TunerDeviceId, UserGroupId, UserId,
    VodCategoryId,
};
use domain::lineup::Lineup;
use domain::login::DeviceLogin;
use domain::logo::Logo;
use domain::notice::{DismissedNotices, Notice, NoticeKind, NoticePriority};
use domain::output_profile::{LeftOutKind, OutputProfile};
use domain::panel::{ExpiryNotice, LiveForm, LoginState, PanelLogin, ProfileInfo};
use domain::personal_playlist::PersonalPlaylist;
use domain::playout::Lack;
use domain::plugin::{PluginKey, PluginValue};
use domain::portal::{MacAddress, PortalDevice, PortalPlace};
use domain::recording::rules::{
    DayHours, NewBy, ProgrammeConditions, ProgrammeTest, QualityWish, RecordingRule, RuleList, RuleMemory,
    RuleSelection, TextMode, TextTest, WeeklyTimes,
};
use domain::recording::{
    AfterRecording, FollowedAiring, Gap, LeftFiles, RecordedFile, RecordedProgramme, Recording,
    RecordingStatus,
};
use domain::secret::{Secret, ServerKeys};
use domain::server_group::ServerGroup;
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamOverrides, StreamProperties};
use domain::stream_identity::IdentityKey;
use domain::stream_ids::{StreamIdPage, StreamKey};
use domain::stream_profile::StreamProfile;
use domain::tuner::TunerDevice;
use domain::udp_output::{UdpOutput, UdpOutputMode};
use domain::undo::{UndoChange, UndoEntry, UndoPart};
use domain::user::{ApiKey, User, UserLevel};
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;
use domain::vod::regroup::TitleShape;
use domain::vod::{
    AccountCategory, Episode, EpisodeAlias, EpisodeFacts, EpisodeOffer, ExternalIds, KindSync, MatchReason,
    Relation, RelationId, Title, TitleAlias, TitleDetails, TitleEdits, TitleFacts, TitleFavorites, TitleId,
    TitleKind, VodCategory, VodSync, WatchProgress, WatchedId, WatchedItem, uuid_of,
};
use serde_json::json;
use uuid::Uuid;

pub(super) fn account() -> Account {
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

pub(super) fn account_group() -> AccountGroup {
    AccountGroup {
        auto_channel_sync: true,
        sync_start: Some("100".parse().unwrap()),
        sync_end: Some("199.5".parse().unwrap()),
        last_seen: Some(1_700_000_000_000),
        ..AccountGroup::new(AccountGroupId(1), AccountId(2), GroupId(3), true)
    }
}

pub(super) fn server_group() -> ServerGroup {
    ServerGroup { id: ServerGroupId(1), name: "Provider".to_owned(), max_streams: 2 }
}

pub(super) fn guide_source() -> GuideSource {
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
        is_schedule_chosen: false,
        priority: 5,
        history_days: 3,
        time_zone: None,
        offset_minutes: 0,
        custom_properties: json!({ "timezone": "UTC" }).as_object().cloned().unwrap(),
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_000_001,
    }
}

/// A guide source whose schedule was chosen.
pub(super) fn guide_source_with_schedule() -> GuideSource {
    GuideSource { is_schedule_chosen: true, ..guide_source() }
}

/// A guide source whose times have a zone and an offset.
pub(super) fn guide_source_with_times() -> GuideSource {
    GuideSource { time_zone: Some("Europe/Amsterdam".to_owned()), offset_minutes: -90, ..guide_source() }
}

pub(super) fn guide_state() -> GuideState {
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

/// A state whose guide was read in a zone.
pub(super) fn guide_state_in_zone() -> GuideState {
    GuideState { time_zone: Some("Europe/Amsterdam".to_owned()), ..guide_state() }
}

pub(super) fn guide_marks() -> GuideMarks {
    let mut marks = GuideMarks::new(GuideSourceId(2), 20_468);
    marks.fetched_at = 1_700_000_000_000;
    marks.set("20454", 20_469, &DayMark::from_checksum("BqiRNaIeZ2XIZ7Wq"));
    marks
}

pub(super) fn guide_channel() -> GuideChannel {
    GuideChannel {
        id: GuideChannelId(9),
        source: GuideSourceId(2),
        key: "news.example".to_owned(),
        names: vec!["News".to_owned(), "News HD".to_owned()],
        icon: Some("http://logos.example/news.png".to_owned()),
    }
}

pub(super) fn guide_alias() -> GuideAlias {
    let channel = Subject { name: "UK: News HD", tvg_id: Some("news.uk"), ..Subject::default() };
    GuideAlias {
        id: 3,
        name: AliasName::from_channel(&channel).unwrap(),
        channel_name: "UK: News HD".to_owned(),
        tvg_id: Some("news.uk".to_owned()),
        source: GuideSourceId(2),
        key: "news.example".to_owned(),
        learned_at: 1_700_000_000_000,
    }
}

pub(super) fn cluster_authority() -> ClusterAuthority {
    ClusterAuthority { certificate: vec![48, 1, 2], key: Secret::new("302e") }
}

pub(super) fn node_certificate() -> NodeCertificate {
    NodeCertificate {
        id: 4,
        node: NodeId(4),
        role: NodeRole::Edge,
        fingerprint: [1; 32],
        serial: [2; 16],
        sealing_key: [3; 32],
        issued_at: 1_700_000_000_000,
        revoked_at: Some(1_700_000_100_000),
    }
}

pub(super) fn sealed_keys() -> SealedKeys {
    SealedKeys { node: NodeId(4), sealed: vec![1, 2, 3] }
}

pub(super) fn join_ticket() -> JoinTicket {
    JoinTicket {
        id: 5,
        digest: [7; 32],
        role: NodeRole::Edge,
        created_at: 1_700_000_000_000,
        used_by: Some(NodeId(4)),
    }
}

pub(super) fn plugin_value() -> PluginValue {
    PluginValue {
        id: 3,
        plugin: PluginKey::from_folder("weather").unwrap(),
        key: "token".to_owned(),
        value: Secret::new(r#"{"text":"secret","until":1700000000}"#),
    }
}

pub(super) fn tuner_device() -> TunerDevice {
    TunerDevice {
        id: TunerDeviceId(1),
        friendly_name: "Bedroom".to_owned(),
        device_id: "bedroom".to_owned(),
        tuner_count: 2,
        lineup: Some(LineupId(3)),
    }
}

pub(super) fn audit_entry() -> AuditEntry {
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

pub(super) fn refresh() -> RefreshRecord {
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

pub(super) fn profile_info() -> ProfileInfo {
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

pub(super) fn channel() -> Channel {
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

/// A channel that is also sent as datagrams.
pub(super) fn channel_with_udp_output() -> Channel {
    let output = UdpOutput {
        address: "rtp://[ff15::1]:5004".parse().unwrap(),
        interface: Some("eth0".to_owned()),
        ttl: 4,
        mode: UdpOutputMode::Watched,
    };
    Channel { udp_output: Some(Box::new(output)), ..channel() }
}

/// A channel whose guide has an offset.
pub(super) fn channel_with_guide_offset() -> Channel {
    Channel { guide_offset: Some(-90), keeps_stream_offset: true, ..channel() }
}

/// A channel with several guides.
pub(super) fn channel_with_further_guides() -> Channel {
    Channel { further_guides: vec![GuideChannelId(9), GuideChannelId(3)], ..channel() }
}

/// An automatic channel whose stream was replaced by one of another account.
pub(super) fn detached_channel() -> Channel {
    let synced = SyncedValues {
        name: "News".to_owned(),
        number: Some("4.1".parse().unwrap()),
        group: Some(GroupId(3)),
        logo: None,
        tvg_id: Some("news.example".to_owned()),
        stream_profile: None,
        guide_channel: None,
        guide_station: None,
    };
    let auto = AutoChannel {
        account: AccountId(2),
        group: GroupId(3),
        stream: StreamId(7),
        synced,
        is_detached: true,
    };
    Channel {
        streams: vec![StreamId(21)],
        moved_streams: vec![StreamId(21)],
        auto: Some(Box::new(auto)),
        ..channel()
    }
}

/// A channel that a person unmarked as adult content.
pub(super) fn channel_of_adult_streams() -> Channel {
    Channel { is_adult: false, adult_by_streams: true, ..channel() }
}

pub(super) fn account_addresses() -> AddressRecord {
    AddressRecord {
        active: Some(SourceUrl::new("http://second.example:8080")),
        changed_at: 1_700_000_000_001,
        cause: "connect".to_owned(),
        failures: vec![AddressFailure {
            address: SourceUrl::new("http://first.example"),
            at: 1_700_000_000_000,
        }],
        ..AddressRecord::new(AccountId(2))
    }
}

/// An account whose panel serves another form of addresses than it names.
pub(super) fn account_addresses_of_panel() -> AddressRecord {
    let mut record = AddressRecord::new(AccountId(2));
    record.form_found(LiveForm::NoExtension, 1_700_000_000_002);
    record
}

/// An account of a panel, with a form of addresses that an admin chose.
pub(super) fn account_of_panel() -> Account {
    let list = PlaylistLocation::Panel(PanelLogin {
        server: SourceUrl::new("http://panel.example"),
        username: "anna".to_owned(),
        password: Secret::new("hunter2"),
    });
    let profile = AccountProfile::default_of(ProfileId(2), "Default", 1);
    let account = Account::new(AccountId(2), "Panel", list, profile, 1_700_000_000_000);
    Account { live_form: Some(LiveForm::M3u8), ..account }
}

/// An account with an order of keys of its own.
pub(super) fn account_with_identity_keys() -> Account {
    let identity_keys = vec![IdentityKey::GuideId, IdentityKey::Address];
    Account { identity_keys, ..account_of_panel() }
}

/// An account of a portal, with the device of its profile.
pub(super) fn account_of_portal() -> Account {
    let list = PlaylistLocation::Portal(PortalPlace {
        server: SourceUrl::new("http://portal.example"),
        endpoint: Some(SourceUrl::new("http://portal.example/portal.php")),
    });
    let mut device = PortalDevice::new(MacAddress::parse("00:1A:79:12:34:56").unwrap());
    (device.serial_number, device.device_id) = (Secret::new("0123456789"), Secret::new("AB"));
    (device.device_id2, device.signature) = (Secret::new("CD"), Secret::new("EF"));
    (device.username, device.password) = ("anna".to_owned(), Secret::new("hunter2"));
    device.model = "MAG322".to_owned();
    let profile = AccountProfile {
        device: Some(Box::new(device)),
        ..AccountProfile::default_of(ProfileId(2), "Default", 0)
    };
    Account::new(AccountId(2), "Portal", list, profile, 1_700_000_000_000)
}

pub(super) fn group() -> Group {
    let mut group = Group::new(GroupId(3), "Free");
    group.rename("News");
    group
}

/// A group that is marked as adult content.
pub(super) fn adult_group() -> Group {
    Group { is_adult: true, ..Group::new(GroupId(9), "Late night") }
}

pub(super) fn lineup() -> Lineup {
    let mut lineup = Lineup::new(LineupId(7), "Kids", true);
    lineup.description = "For children".to_owned();
    lineup.set(ChannelId(4), false);
    lineup.set(ChannelId(70_000), false);
    lineup
}

pub(super) fn personal_playlist() -> PersonalPlaylist {
    let mut playlist = PersonalPlaylist::new(PersonalPlaylistId(3), UserId(5), "Evening", 1_700_000_000_000);
    playlist.set_channels([ChannelId(70_000), ChannelId(4)]);
    playlist.assigned_to.insert(UserId(6));
    playlist
}

pub(super) fn server_keys() -> ServerKeys {
    ServerKeys { tokens: [1; 32], lookup: [2; 32] }
}

pub(super) fn login() -> DeviceLogin {
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

pub(super) fn service_key() -> ServiceKey {
    ServiceKey { id: ServiceKey::TMDB, value: Secret::new("0123456789abcdef") }
}

pub(super) fn setting() -> CoreSetting {
    let value = json!({ "buffering_timeout": 15 });
    CoreSetting { id: 1, key: "proxy_settings".to_owned(), name: "Proxy Settings".to_owned(), value }
}

pub(super) fn stream(id: u32) -> Stream {
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

/// A stream that its provider marks as adult content.
pub(super) fn adult_stream() -> Stream {
    let mut stream = stream(1);
    stream.provider.is_adult = true;
    stream
}

/// A stream whose guide has an offset.
pub(super) fn stream_with_guide_offset() -> Stream {
    let mut stream = stream(1);
    stream.provider.guide_offset = 180;
    stream
}

/// A stream with marks and options for players, and with headers of an admin.
pub(super) fn stream_with_details() -> Stream {
    let mut stream = stream(1);
    stream.provider.details = Some(Box::new(EntryDetails {
        station: Some("10001".to_owned()),
        channel_id: Some("gs-1".to_owned()),
        marks: ChannelMarks {
            is_radio: true,
            language: Some("en".to_owned()),
            country: Some("UK".to_owned()),
        },
        attributes: vec![KeptAttribute { name: "parent-code".to_owned(), value: "1234".to_owned() }],
        options: vec![PlayerOption {
            form: OptionForm::Kodi,
            name: "inputstream.adaptive.manifest_type".to_owned(),
            value: "mpd".to_owned(),
        }],
    }));
    assert!(stream.manual.headers.set("User-Agent", "Box/1.0"));
    stream
}

/// A group that an admin has ordered.
pub(super) fn ordered_group() -> Group {
    Group { position: Some(3), ..group() }
}

/// An account with a stream profile for its streams.
pub(super) fn account_with_stream_profile() -> Account {
    Account { stream_profile: Some(StreamProfileId(5)), ..account() }
}

pub(super) fn stream_ids() -> StreamIdPage {
    let mut page = StreamIdPage::new(0);
    for stream in [stream(1), stream(7)] {
        let key = StreamKey::new(stream.account, StreamIdentity::Url, &stream.provider);
        page.set(stream.id, Some(key));
    }
    page
}

pub(super) fn health() -> StreamHealth {
    let mut health = StreamHealth::new(StreamId(2));
    health.opened(120, 1_700_000_000_000);
    health.failed("status", FailureSide::Stream, 1_700_000_001_000);
    let measurement = Measurement {
        bitrate_kbps: Some(4_000),
        video_codec: Some("H.264".to_owned()),
        audio_codec: Some("AAC".to_owned()),
        picture: Some((1920, 1080)),
        group_ms: None,
        moves: false,
    };
    health.measured(measurement, 1_700_000_002_000);
    health
}

/// A stream whose groups of pictures were measured, and whose picture stands still.
pub(super) fn health_with_groups() -> StreamHealth {
    let mut health = health();
    let at = 1_700_000_002_000;
    health.measured(Measurement { group_ms: Some(2_500), ..Measurement::default() }, at);
    health.lacks(Lack::Motion, true, at);
    health
}

pub(super) fn logo() -> Logo {
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

pub(super) fn notice() -> Notice {
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

pub(super) fn recording() -> Recording {
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
            episode_id: None,
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
            is_lost: false,
        }],
        file: Some(RecordedFile {
            path: "TV_Shows/Evening/S03E07.ts".to_owned(),
            bytes: 188_000,
            started_at: 1_700_000_000_100,
            ended_at: Some(1_700_000_900_000),
            node: None,
        }),
        earlier_parts: Vec::new(),
        followed: None,
        after: AfterRecording::default(),
        owner: Some(UserId(5)),
        protected: true,
        created_at: 1_699_000_000_000,
        updated_at: 1_700_000_900_001,
    }
}

pub(super) fn recording_of_two_nodes() -> Recording {
    let recording = recording();
    let part = |node: &str| RecordedFile { node: Some(node.to_owned()), ..recording.file.clone().unwrap() };
    Recording { earlier_parts: vec![part("attic")], file: Some(part("cellar")), ..recording.clone() }
}

pub(super) fn left_files() -> LeftFiles {
    LeftFiles {
        id: 3,
        node: "attic".to_owned(),
        recording: RecordingId(4),
        paths: vec!["TV_Shows/Evening/S03E07.ts".to_owned()],
    }
}

pub(super) fn recording_of_a_rule() -> Recording {
    let followed = FollowedAiring {
        rule: Some(RecordingRuleId(9)),
        further_rules: Vec::new(),
        guide_key: "news.example".to_owned(),
        episode: serde_json::from_value(json!({ "hash": u64::MAX, "is_known": true })).unwrap(),
        channel: ChannelId(2),
        start: 1_700_000_000_000,
        end: 1_700_003_600_000,
        padding_before: 60,
        padding_after: 300,
        priority: 70,
    };
    Recording { followed: Some(followed), ..recording() }
}

pub(super) fn recording_of_two_rules() -> Recording {
    let mut recording = recording_of_a_rule();
    let further_rules = vec![RecordingRuleId(10), RecordingRuleId(12)];
    recording.followed = recording.followed.map(|it| FollowedAiring { further_rules, ..it });
    let episode_id = Some("EP012345670001".to_owned());
    recording.programme = recording.programme.map(|it| RecordedProgramme { episode_id, ..it });
    Recording { padding_before: -60, padding_after: -300, ..recording }
}

pub(super) fn recording_rule() -> RecordingRule {
    let text = |mode, text: &str| Some(TextTest { mode, text: text.to_owned() });
    RecordingRule {
        id: RecordingRuleId(9),
        list: RuleList::Series,
        name: "Crime".to_owned(),
        enabled: true,
        selection: RuleSelection::Programmes(ProgrammeTest {
            tvg_id: Some("news.example".to_owned()),
            title: text(TextMode::Exact, "Evening"),
            description: text(TextMode::Regex, "mur+der"),
            only_new: true,
            conditions: ProgrammeConditions::default(),
        }),
        channel: Some(ChannelId(2)),
        keep: 5,
        quota_bytes: 50_000_000_000,
        padding_before: Some(60),
        padding_after: Some(300),
        priority: 70,
        owner: Some(UserId(5)),
        created_at: 1_699_000_000_000,
        updated_at: 1_700_000_900_001,
    }
}

pub(super) fn recording_rule_with_conditions() -> RecordingRule {
    let conditions = ProgrammeConditions {
        channels: vec![ChannelId(2), ChannelId(7)],
        groups: vec![GroupId(4)],
        days: vec![0, 6],
        hours: Some(DayHours { from: 72_000, until: 3_600 }),
        zone: Some("Europe/Berlin".to_owned()),
        season_from: Some(3),
        minutes_min: Some(20),
        minutes_max: Some(90),
        new_by: NewBy::Identity,
        quality: QualityWish::High,
        skip_library: true,
    };
    let test = ProgrammeTest { only_new: true, conditions, ..ProgrammeTest::default() };
    RecordingRule {
        selection: RuleSelection::Programmes(test),
        padding_before: Some(-60),
        padding_after: Some(-300),
        ..recording_rule()
    }
}

pub(super) fn weekly_recording_rule_in_zone() -> RecordingRule {
    let mut rule = weekly_recording_rule();
    if let RuleSelection::Weekly(times) = &mut rule.selection {
        times.zone = Some("America/New_York".to_owned());
    }
    rule
}

pub(super) fn weekly_recording_rule() -> RecordingRule {
    let times = WeeklyTimes {
        days: vec![0, 6],
        start: 84_600,
        end: 1_800,
        from: "2026-02-28".parse().ok(),
        until: "2026-12-31".parse().ok(),
        zone: None,
    };
    RecordingRule { list: RuleList::Recurring, selection: RuleSelection::Weekly(times), ..recording_rule() }
}

pub(super) fn rule_memory() -> RuleMemory {
    let key = |hash: u64, is_known: bool| {
        serde_json::from_value(json!({ "hash": hash, "is_known": is_known })).unwrap()
    };
    RuleMemory {
        id: RecordingRuleId(9),
        done: vec![key(7, true), key(8, false)],
        old: vec![key(u64::MAX, true)],
    }
}

pub(super) fn dismissed_notices() -> DismissedNotices {
    DismissedNotices { user: UserId(5), keys: ["disk_low".to_owned(), "maintenance".to_owned()].into() }
}

pub(super) fn output_profile() -> OutputProfile {
    OutputProfile {
        left_out_pids: [0x1234].into(),
        left_out_kinds: [LeftOutKind::Teletext, LeftOutKind::Data].into(),
        stream_profile: Some(StreamProfileId(7)),
        user_agent_pattern: "^Kodi".to_owned(),
        position: 2,
        ..OutputProfile::new(OutputProfileId(4), "Small")
    }
}

pub(super) fn undo() -> UndoEntry {
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

pub(super) fn undo_part() -> UndoPart {
    let after = Channel { name: "World".to_owned(), number: None, ..channel() };
    let edited = UndoChange::from_channel(&channel(), &after).expect("a change");
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
    .chain(UndoChange::from_lineup(&lineup(), &[(ChannelId(11), true), (ChannelId(12), false)]))
    .collect();
    UndoPart { id: 9, changes }
}

/// The kinds of changes that came after those of [`undo_part`].
pub(super) fn undo_part_of_lineups() -> UndoPart {
    let mut changes = vec![
        UndoChange::StreamCreated(Box::new(stream(1))),
        UndoChange::StreamDeleted(Box::new(stream(2))),
        UndoChange::GuideAliasCreated(guide_alias()),
        UndoChange::GuideAliasDeleted(guide_alias()),
    ];
    changes.extend(UndoChange::from_lineup(&lineup(), &[(ChannelId(11), true), (ChannelId(12), false)]));
    UndoPart { id: 10, changes }
}

/// The change of titles, which came later.
pub(super) fn undo_part_of_titles() -> UndoPart {
    let (before, after) =
        (vec![TitleShape::from_title(&title()), TitleShape::from_title(&title_of_reasons())], Vec::new());
    UndoPart { id: 11, changes: vec![UndoChange::TitlesChanged { before, after }] }
}

/// A profile that redirects viewers without a login.
pub(super) fn open_stream_profile() -> StreamProfile {
    let [_, redirect, ..] = StreamProfile::built_in();
    StreamProfile { redirect_without_login: true, ..redirect }
}

pub(super) fn stream_profile() -> StreamProfile {
    let [proxy, ..] = StreamProfile::built_in();
    proxy
}

pub(super) fn user() -> User {
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

/// A user whose permissions an admin has confirmed.
pub(super) fn user_with_grants() -> User {
    let granted = BTreeSet::from([PermissionId(12), PermissionId(37)]);
    User { permissions: granted.clone(), granted, ..user() }
}

pub(super) fn user_with_an_end() -> User {
    User {
        expires_at: Some(1_893_456_000_000),
        expiry_notice: Some(ExpiryNotice { expires_at: 1_893_456_000_000, days: 7 }),
        ..user()
    }
}

/// A child with hours, groups of channels and a sleep timer.
pub(super) fn user_with_hours() -> User {
    let mut days: [Vec<(u16, u16)>; 7] = Default::default();
    days[5] = vec![(540, 720), (840, 1_170)];
    User {
        allowed_hours: Some(AllowedHours { time_zone: "Europe/Berlin".to_owned(), days }),
        sleep_until: Some(1_893_456_000_000),
        channel_groups: vec![GroupId(3), GroupId(4)],
        ..user()
    }
}

pub(super) fn user_group() -> UserGroup {
    UserGroup {
        id: UserGroupId(8),
        name: "Family".to_owned(),
        permissions: [PermissionId(4), PermissionId(12)].into(),
    }
}

pub(super) fn user_agent() -> UserAgent {
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

pub(super) fn title_facts() -> TitleFacts {
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

pub(super) fn title() -> Title {
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
pub(super) fn title_of_reasons() -> Title {
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

pub(super) fn title_details() -> TitleDetails {
    TitleDetails {
        relation: RelationId(8),
        account: AccountId(2),
        loaded_at: 1_700_000_000_000,
        properties: json!({ "cast": "A, B", "bitrate": 4_000 }).as_object().cloned().unwrap(),
    }
}

pub(super) fn episode() -> Episode {
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
        completion: None,
        aliases: vec![EpisodeAlias { id: EpisodeId(2), uuid: Uuid::from_u128(5) }],
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_000_001,
    }
}

pub(super) fn vod_category() -> VodCategory {
    VodCategory { id: VodCategoryId(5), name: "EN | Action".to_owned(), kind: TitleKind::Movie }
}

pub(super) fn account_category() -> AccountCategory {
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

pub(super) fn title_favorites() -> TitleFavorites {
    let titles = vec![TitleId::movie(7).unwrap(), TitleId::series(7).unwrap()];
    TitleFavorites { titles, updated_at: 1_700_000_000_000, ..TitleFavorites::new(UserId(3)) }
}

pub(super) fn watch_progress() -> TitleFavorites {
    let film = WatchedItem {
        id: WatchedId::Movie(TitleId::movie(7).unwrap()),
        position_secs: 1_200,
        duration_secs: Some(9_180),
        is_watched: true,
        n_watched: 2,
        at: 1_700_000_000_000,
    };
    let id = WatchedId::Episode(EpisodeId(31));
    let episode = WatchedItem { id, duration_secs: None, is_watched: false, n_watched: 0, ..film.clone() };
    TitleFavorites { progress: WatchProgress { items: vec![film, episode] }, ..title_favorites() }
}

pub(super) fn vod_sync() -> VodSync {
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

/// A setting that is stored in pieces.
pub(super) fn long_setting() -> CoreSetting {
    let values: Vec<String> = (0..4_000).map(|at| format!("value {at} of a long list")).collect();
    CoreSetting { id: 2, key: "long".to_owned(), name: "Long".to_owned(), value: json!(values) }
}
