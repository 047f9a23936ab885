//! The live state of the gateway.
//!
//! This crate holds everything that ends with the process: live channels, their clients, the leases, and the
//! measurements of the last second. Actors make decisions. Packets never pass through a mailbox; pump, ring and tail in
//! `media` carry them.
//!
//! Reading order: [`system`] (start order and supervision), [`switchboard`] (the only way to join a live channel),
//! [`seats`] (the limit per user), [`channel`] (failover order, source, ring, clients), [`slots`] (the limit per
//! account profile), [`client`], [`bandwidth`], [`events`]. Viewers with HLS have a session instead of a connection:
//! [`hls`]. Films have no channel: [`vod`]. Recordings read channels like clients: [`recorder`], and so does what keeps
//! their past: [`timeshift`], and what sends them as datagrams: [`udp_outputs`]. Independent of these:
//! [`importer`], which imports playlists into the store, [`catalogue`], which imports films and series, and [`trials`],
//! which test stream profiles. Plugins are processes: [`plugins`].
//!
//! Requests go down, notifications go up: an actor may wait for a reply only from an actor below it, and a live channel
//! never waits for another actor. Every request has a deadline ([`ask`]).

mod addresses;
mod ask;
mod bandwidth;
mod catalogue;
mod certificates;
mod channel;
mod channels;
mod client;
mod clock;
mod cluster;
mod egress;
mod events;
mod fetch;
mod guide;
mod health;
mod hls;
mod importer;
mod integrations;
mod live_settings;
mod matching;
mod memory;
mod panel_counts;
mod permissions;
mod plans;
mod playlist;
mod plugins;
mod portals;
mod predecessor;
mod programs;
mod recorder;
mod recording_files;
mod refresh;
mod registry;
mod reload;
mod schedule;
mod seats;
mod slots;
mod switchboard;
mod system;
mod tasks;
#[cfg(test)]
mod testing;
mod timeline;
mod timeshift;
mod transcoders;
mod trials;
mod udp_outputs;
mod viewer;
mod vod;
mod writer;

pub use self::addresses::AccountAddresses;
pub use self::ask::AskError;
pub use self::catalogue::{
    DetailsUpdate, DetailsUpdateStart, EpisodeLoad, OpenOutcome, VOD_INTERVAL, VodError, VodImporter,
    VodPhase, VodRefreshStart, VodRefreshStatus,
};
pub use self::channel::{
    ChannelNode, ChannelParts, ChannelStatus, ClientStatus, NodeConnecting, NodeDialer, NodeSocket,
    SegmentViewing, SegmenterStatus, SharedChannels, SwitchOutcome, SwitchTo, WatchRefusal, WatchReply,
};
pub use self::client::SegmentMeter;
pub use self::clock::now_ms;
#[cfg(feature = "testing")]
pub use self::cluster::testing::TestMember;
pub use self::cluster::{
    Cluster, ClusterLink, ClusterParts, ClusterView, CompleteStore, Configuration, ConfigurationView,
    DrainChanges, EffectReceivers, FileError, FileExchange, MemberEnds, NodeDrain, NodeState, NodeView,
    PredecessorMessage, PredecessorPort, ReadKeys, ReadLoad, SlotTables, SnapshotLimits, SnapshotName,
    SnapshotParts, SnapshotView, StoredObject, digest_of, link as cluster_link, read_usable_snapshot,
    store_snapshot,
};
pub use self::events::{Events, NumberedEvent};
pub use self::fetch::{
    AccountRequest, AnswerHead, AskedPause, Fetch, FetchBody, FetchError, FetchLimits, NodeFetcher,
    RelayedAnswer, RelayedBody, RelayedError, Relaying, Validators,
};
pub use self::guide::{
    GUIDE_CHANNELS_MAX, GuideError, GuideOptions, GuideParts, GuidePhase, GuidePreview, GuideRefreshStart,
    GuideRefreshStatus, GuideRefreshes, GuideServices, GuideSummary, SchedulesDirect, ServiceAccount,
    ServiceError, WrittenEdit, WrittenError, is_same_guide, refresh_guide,
};
pub use self::health::{HealthTable, StreamFacts};
pub use self::hls::{HlsRefusal, HlsRequest, HlsSession, HlsSessions, SessionEnd, SessionUse, lacks_sound};
pub use self::importer::{
    ImportError, ImportOptions, ImportSummary, Importer, LoginCheckStart, PreviewError, PreviewedChange,
    PreviewedStream, RefreshPhase, RefreshPreview, RefreshPreviews, RefreshStart, RefreshStatus,
    RenamedChannel, RepackError, SyncSummary, any_adult, ask_panel, clean_channel_names, import, mark_group,
    renamed_channels, repack_group,
};
pub use self::integrations::{
    ButtonLog, DeadLetters, DeliveryCounts, DeliveryFilter, IntegrationError, IntegrationParts,
    IntegrationSettings, IntegrationStatus, Integrations, LogFilter, Page, PluginTargets, TestResult,
};
pub use self::live_settings::LiveSettings;
pub use self::matching::{GuideMatches, find_together, guide_matches, match_after_refresh, matcher};
pub use self::permissions::{VisibleRecordings, may_watch, view_limits, vod_limits};
pub use self::plans::{Plans, Redirects, StorePlans, Target, is_played_address};
pub use self::playlist::{
    PROBLEMS_REPORTED_MAX, PlaylistFindings, PlaylistReadError, PlaylistSource, read_playlist,
};
pub use self::plugins::{
    API_BODY_BYTES_MAX, ApiAnswer, ApiCall, InstalledPlugin, Pending, PluginBackend, PluginCaller,
    PluginError, PluginFolders, PluginNote, PluginNotification, PluginResources, PluginRun, PluginScan,
    PluginSettings, PluginStatus, PluginTimings, Plugins, RunAnswer, RunRefusal, RunResult, RunStage,
    ShownSchedule, UnsupportedName,
};
pub use self::portals::PortalLink;
pub use self::predecessor::{Predecessor, PredecessorParts, RingConnector};
pub use self::programs::Programs;
pub use self::recorder::{
    AfterSettings, Artwork, FileReport, FindArtwork, Recorder, RecordingPools, RecordingProgress,
    RecordingRoom, RemovalReport, ReportFiles, remember_deleted,
};
pub use self::recording_files::{AccessPoint, RecordingIndex, RecordingsFolder};
pub use self::registry::{DurationCounts, MetricsSnapshot};
pub use self::reload::{AddressRule, effective_settings};
pub use self::schedule::{check_cron, check_time_zone, next_cron_time};
pub use self::seats::{SeatInfo, SeatParts, SeatRequest};
pub use self::slots::{
    CoolingSlot, FullPool, LeaseInfo, LeasePurpose, OtherSlot, SharedLease, SlotElsewhere, SlotsSnapshot,
    WaitingRequest,
};
pub use self::switchboard::{ChannelOverview, NoStill, StopOutcome, Switchboard, WatchRequest};
#[cfg(any(test, feature = "testing"))]
pub use self::system::SystemActor;
pub use self::system::{Draining, StartError, System, SystemParts};
pub use self::tasks::spawn;
pub use self::timeline::{ChannelRun, RunEntry, RunEntryKind, RunEntryStream};
pub use self::timeshift::{PastPart, PastReader, PastSession, TimeShift};
pub use self::trials::{Trial, TrialOutcome, TrialRefusal, TrialRequest, TrialSource, Trials};
pub use self::udp_outputs::{UdpOutputState, UdpOutputs};
pub use self::viewer::{Identity, Viewer};
pub use self::vod::{
    FilmCacheSettings, PartClock, ReportedPosition, Vod, VodAnswer, VodBody, VodFacts, VodHead,
    VodInterrupted, VodProfile, VodRefusal, VodRequest, VodSessionInfo, VodTitle,
};
pub use self::writer::role_changed;
