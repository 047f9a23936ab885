//! What is shown of a stream.

use std::sync::Arc;

use domain::account::RefreshRecord;
use domain::group::Group;
use domain::ids::{AccountId, GroupId, StreamId, StreamProfileId};
use domain::stream::Stream;
use domain::user::UserLevel;
use storage::Table;

use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::api::channels::values::ChannelNumberValue;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::view;
use crate::rest::frame::value::Time;

view! {
    /// A stream: one address that a channel can play from.
    StreamRecord {
        /// Given by the gateway. A stream keeps it over all refreshes.
        id: StreamId [example("7")],
        /// Its name.
        name: String [example("News HD")],
        /// Where it is: whole for admins; for others scheme, host and port, because the rest may be a login.
        url: String [example("http://provider.example/live/7.ts")],
        /// The playlist account that it comes from; `null` of a stream made by hand.
        m3u_account: Option<AccountId> [example("2")],
        /// Was it made by hand?
        is_custom: bool,
        /// Address of a picture.
        logo_url: Option<String>,
        /// Its id in a guide.
        tvg_id: Option<String> [example("news.example")],
        /// Its channel group, if there is one of that name.
        channel_group: Option<GroupId> [example("3")],
        /// The name of its group.
        channel_group_name: Option<String> [example("News")],
        /// The channel number that the provider gives it.
        stream_chno: Option<ChannelNumberValue> [example("4.1")],
        /// How it is handed on, where that is not left to the channel.
        stream_profile_id: Option<StreamProfileId>,
        /// The same for as long as there is this stream, and no other one's. Made of ids, so it tells no address.
        stream_hash: String [example("0000000200000007")],
        /// Always `null`: no stream is a file.
        local_file: Option<String>,
        /// Has it vanished from its list?
        is_stale: bool,
        /// When it was last in its list; `null` of a stream made by hand.
        last_seen: Option<Time>,
        /// When it was first seen, or made.
        created_at: Time,
        /// When something of it last changed.
        updated_at: Time,
        /// What the provider says, where an admin or a rule says otherwise. For admins; for others `null`.
        provider: Option<ProviderFacts>,
    }
}

view! {
    /// What a provider says about a stream.
    ProviderFacts {
        /// Its name.
        name: String,
        /// Where it is.
        url: String,
        /// Its id in a guide.
        tvg_id: Option<String>,
        /// The name of its group.
        channel_group_name: Option<String>,
        /// Address of a picture.
        logo_url: Option<String>,
    }
}

/// Shows streams to one caller.
pub(in crate::rest::api::channels) struct StreamViews {
    is_admin: bool,
    groups: Arc<Table<Group>>,
    refreshes: Arc<Table<RefreshRecord>>,
}

impl StreamViews {
    pub(in crate::rest::api::channels) fn of(call: &Call) -> Result<Self, Refusal> {
        let models = &call.app.models;
        Ok(Self {
            is_admin: call.user()?.may(UserLevel::Admin),
            groups: models.groups.load(),
            refreshes: models.refreshes.load(),
        })
    }

    pub(in crate::rest::api::channels) fn stream(&self, stream: &Stream) -> StreamRecord {
        let is_custom = stream.account == domain::account::CUSTOM_ACCOUNT;
        let group = stream.group().and_then(|it| self.groups.one_by("name", it));
        let group_name = group.map(|it| it.name.as_str()).or(stream.group());
        let seen_with_list = || {
            let refresh = self.refreshes.get(stream.account.0);
            refresh.and_then(|it| it.good_at).unwrap_or(stream.added_at)
        };
        let last_seen = stream.last_seen.or_else(|| (!is_custom).then(seen_with_list));
        let url = match self.is_admin {
            true => stream.url().expose().to_owned(),
            false => stream.url().to_string(),
        };
        StreamRecord {
            id: stream.id,
            name: stream.name().to_owned(),
            url,
            m3u_account: Some(stream.account).filter(|_| !is_custom),
            is_custom,
            logo_url: stream.logo().map(str::to_owned),
            tvg_id: stream.tvg_id().map(str::to_owned),
            channel_group: group.map(|it| it.id),
            channel_group_name: group_name.map(str::to_owned),
            stream_chno: stream.provider.number.map(ChannelNumberValue),
            stream_profile_id: stream.stream_profile,
            stream_hash: format!("{:08x}{:08x}", stream.account.0, stream.id.0),
            local_file: None,
            is_stale: stream.is_stale(),
            last_seen: last_seen.map(Time),
            created_at: Time(stream.added_at),
            updated_at: Time(stream.updated_at),
            provider: Some(stream).filter(|_| self.is_admin).and_then(hidden),
        }
    }
}

/// What is hidden under edits, if anything is.
fn hidden(stream: &Stream) -> Option<ProviderFacts> {
    if stream.manual.is_empty() && stream.rule.is_empty() {
        return None;
    }
    let facts = &stream.provider;
    Some(ProviderFacts {
        name: facts.name.clone(),
        url: facts.url.expose().to_owned(),
        tvg_id: facts.tvg_id.clone(),
        channel_group_name: facts.group.clone(),
        logo_url: facts.logo.clone(),
    })
}

/// Runs what looks at many streams where it holds up nobody.
pub(in crate::rest::api::channels) async fn blocking<R: Send + 'static>(
    run: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Result<R, Refusal> {
    let done = tokio::task::spawn_blocking(run).await;
    done.map_err(|error| Refusal::fault(format_args!("look at streams: {error}")))?
}

/// Reads these streams, in this order; those that are not there are left out. For a thread that may block.
pub(in crate::rest::api::channels) fn read(app: &App, ids: &[StreamId]) -> Result<Vec<Stream>, Refusal> {
    let streams = app.models.store.collection::<Stream>();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(streams.get(id.0)?);
    }
    Ok(found)
}
