//! Values for the examples of events, by which integrations and templates are tested.

use uuid::Uuid;

use super::{CallerRef, ChannelRef, ChannelsRef, ClientRef, RecordingRef, RefreshRef, StreamRef, VodRef};
use crate::ids::{ChannelId, StreamId};
use crate::source_url::SourceUrl;
use crate::stream_profile::Delivery;

pub(super) fn channel() -> ChannelRef {
    ChannelRef { uuid: Uuid::from_u128(7), name: "News".to_owned(), number: "4.1".parse().ok() }
}

pub(super) fn channels() -> ChannelsRef {
    ChannelsRef::new([(ChannelId(7), channel())])
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

pub(super) fn caller() -> CallerRef {
    CallerRef { user: Some("guest".to_owned()), ip: [192, 0, 2, 1].into(), user_agent: "VLC".to_owned() }
}

pub(super) fn source() -> RefreshRef {
    RefreshRef { id: 3, name: "Provider".to_owned() }
}

pub(super) fn recording() -> RecordingRef {
    RecordingRef {
        id: 5,
        owner: None,
        program_title: "Film".to_owned(),
        file_path: "/data/film.ts".to_owned(),
        path_changes: true,
    }
}

pub(super) fn vod() -> VodRef {
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
