//! Examples of events, for tests of integrations and of templates.

use uuid::Uuid;

use super::{CallerRef, ChannelRef, ClientRef, EventBody, RecordingRef, RefreshRef, StreamRef, VodRef};
use crate::ids::StreamId;
use crate::source_url::SourceUrl;
use crate::stream_profile::Delivery;

pub(super) fn channel() -> ChannelRef {
    ChannelRef { uuid: Uuid::from_u128(7), name: "News".to_owned(), number: "4.1".parse().ok() }
}

pub(super) fn stream(id: u32) -> StreamRef {
    StreamRef {
        id: StreamId(id),
        name: format!("News {id}"),
        url: SourceUrl::new(format!("http://user:secret@tv.example:8080/live/secret/{id}.ts?secret")),
        profile_used: Delivery::Proxy,
        account_name: "Provider".to_owned(),
    }
}

pub(super) fn client() -> ClientRef {
    ClientRef { connection_id: u64::MAX, ip: [192, 0, 2, 1].into(), user_agent: "VLC".to_owned(), user: None }
}

fn caller() -> CallerRef {
    CallerRef { user: Some("guest".to_owned()), ip: [192, 0, 2, 1].into(), user_agent: "VLC".to_owned() }
}

impl EventBody {
    /// Returns one of each event, with values of an example; first those that integrations can subscribe to.
    pub fn samples() -> Vec<Self> {
        samples()
    }

    /// Returns the example of the event with this name.
    pub fn sample(name: &str) -> Option<Self> {
        samples().into_iter().find(|it| it.name() == name)
    }
}

fn samples() -> Vec<EventBody> {
    let source = || RefreshRef { id: 3, name: "Provider".to_owned() };
    let recording = || RecordingRef {
        id: 5,
        owner: None,
        program_title: "Film".to_owned(),
        file_path: "/data/film.ts".to_owned(),
    };
    let (cause, reason) = (|| "stall".to_owned(), || "closed".to_owned());
    vec![
        EventBody::ChannelStart { channel: channel(), stream: stream(1) },
        EventBody::ChannelStop {
            channel: channel(),
            stream: Some(stream(1)),
            reason: reason(),
            runtime_seconds: 60,
            total_bytes: 9,
        },
        EventBody::ChannelReconnect { channel: channel(), stream: stream(1), cause: cause(), gap_ms: 40 },
        EventBody::ChannelError {
            channel: channel(),
            error_message: "nothing plays".to_owned(),
            stream: None,
        },
        EventBody::ChannelFailover {
            channel: channel(),
            from: stream(1),
            to: stream(2),
            cause: cause(),
            gap_ms: 40,
        },
        EventBody::StreamSwitch {
            channel: channel(),
            from: stream(1),
            to: stream(2),
            cause: cause(),
            gap_ms: 0,
        },
        EventBody::RecordingStart { channel: channel(), recording: recording() },
        EventBody::RecordingEnd {
            channel: channel(),
            recording: recording(),
            duration_seconds: 60,
            file_size_bytes: 9,
            interrupted: false,
        },
        EventBody::EpgRefresh {
            source: source(),
            channels: 3,
            programs_updated: 10,
            skipped_programs: 1,
            unmapped_channels: 2,
            is_unchanged: false,
            duration_seconds: 2,
        },
        EventBody::M3uRefresh {
            source: source(),
            total_processed: 9,
            streams_created: 1,
            streams_updated: 2,
            streams_stale: 4,
            streams_deleted: 3,
            duration_seconds: 2,
        },
        EventBody::ClientConnect { channel: channel(), client: client() },
        EventBody::ClientDisconnect {
            channel: channel(),
            client: client(),
            reason: reason(),
            duration_seconds: 60,
            bytes_sent: 9,
        },
        EventBody::LoginFailed { attempt: caller(), reason: reason() },
        EventBody::EpgBlocked { attempt: caller(), reason: reason() },
        EventBody::M3uBlocked { attempt: caller(), reason: reason() },
        EventBody::VodStart { vod: vod() },
        EventBody::VodStop { vod: vod(), duration_seconds: 60, bytes_sent: 9 },
        EventBody::NodeState { node: "attic".to_owned(), state: "expired" },
        EventBody::AccountExpiring {
            account: source(),
            profile_id: 3,
            profile_name: "second".to_owned(),
            expires_at: 1_893_456_000_000,
            days: 7,
        },
        EventBody::StoreStopped { reason: reason() },
        EventBody::StoreResumed,
        EventBody::ComskipStatus {
            channel: channel(),
            recording: recording(),
            status: "completed",
            detail: "2 commercials".to_owned(),
        },
    ]
}

fn vod() -> VodRef {
    VodRef {
        session: 7,
        uuid: Uuid::from_u128(7),
        is_episode: false,
        name: "Film".to_owned(),
        ip: client().ip,
        user_agent: "VLC/3.0".to_owned(),
        user: None,
    }
}
