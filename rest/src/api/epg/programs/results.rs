//! Results of searches: programmes with their guide source, channels and streams.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::ids::{ChannelId, StreamId};
use domain::lineup::{ViewLimits, visible};
use domain::stream::Stream;
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::field::Kind;
use route_frame::value::{Shape, Time};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::guide::{EntryId, GuideEntry, GuideLinks, GuideReader};
use storage::{Models, Table};

use super::detail::custom_properties;
use super::values::{ImageAddresses, time};
use crate::api::channels::values::ChannelNumberValue;
use crate::context::RestCall;

/// Maximum number of channels of a result, and of streams.
const CHANNELS_MAX: usize = 20;
const STREAMS_MAX: usize = 50;

/// A programme that was found.
pub(super) struct FoundProgramme {
    pub(super) guide_channel: Arc<GuideChannel>,
    pub(super) entry: GuideEntry,
    /// The minutes by which the channels show it later than their guide.
    pub(super) minutes: i16,
}

/// A programme that was found. With `fields`, only the fields that were requested.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramSearchResult")]
pub(crate) struct SearchResultView {
    /// Same as in the list of programmes.
    #[field(may_be_absent, example = "4503601413783552")]
    id: EntryId,
    /// Title in the first language of the guide, without marks such as `(New)`: the one that rules compare.
    #[field(may_be_absent)]
    title: String,
    /// The title as the guide writes it, for people.
    #[field(may_be_absent)]
    display_title: String,
    /// Title of the episode.
    #[field(may_be_absent)]
    sub_title: Option<String>,
    /// Description.
    #[field(may_be_absent)]
    description: Option<String>,
    /// Start of the programme.
    #[field(may_be_absent)]
    start_time: Time,
    /// End of the programme.
    #[field(may_be_absent)]
    end_time: Time,
    /// Id of the channel in its guide source.
    #[field(may_be_absent, example = "news.example")]
    tvg_id: String,
    /// Further properties: categories, season, episode, date, icon and rating, as far as the guide has them.
    #[field(may_be_absent)]
    custom_properties: Value,
    /// Name of the guide source.
    #[field(may_be_absent)]
    epg_source: String,
    /// Name of the guide channel.
    #[field(may_be_absent)]
    epg_name: String,
    /// URL of the logo of the guide channel. Users other than admins see no credentials in it.
    #[field(may_be_absent)]
    epg_icon_url: Option<String>,
    /// Channels that show the programme and that the caller may watch, at most 20.
    #[field(may_be_absent)]
    channels: Vec<FoundChannelView>,
    /// Streams of these channels, at most 50; none for users of level 0.
    #[field(may_be_absent)]
    streams: Vec<FoundStreamView>,
}

/// A channel that shows a programme.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramChannel")]
pub(crate) struct FoundChannelView {
    /// Id of the channel.
    id: ChannelId,
    /// Name of the channel.
    name: String,
    /// Number of the channel.
    channel_number: Option<ChannelNumberValue>,
    /// Name of the channel group.
    channel_group: Option<String>,
    /// Id of the channel in the guide.
    tvg_id: Option<String>,
}

/// A stream of a channel that shows a programme.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramStream")]
pub(crate) struct FoundStreamView {
    /// Id of the stream.
    id: StreamId,
    /// Name of the stream.
    name: String,
    /// Name of its group in the playlist.
    channel_group: Option<String>,
    /// Id of the stream in the guide of its provider.
    tvg_id: Option<String>,
    /// Name of the playlist account.
    m3u_account: Option<String>,
}

/// The requested fields of a result.
#[derive(Clone, Debug)]
pub(crate) struct SearchResult(Map<String, Value>);

impl Shape for SearchResult {
    const KIND: Kind = SearchResultView::KIND;
}

impl Serialize for SearchResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Everything that results contain besides the programmes.
pub(super) struct ResultContext {
    /// `None` for all.
    fields: Option<HashSet<String>>,
    guides: GuideReader,
    models: Models,
    limits: ViewLimits,
    sees_streams: bool,
    addresses: ImageAddresses,
    groups: Arc<Table<Group>>,
    accounts: Arc<Table<Account>>,
}

impl ResultContext {
    /// Refuses unknown names of fields.
    pub(super) fn new(call: &Call, fields: Option<Vec<String>>) -> Result<Self, Refusal> {
        let known = |name: &String| SearchResultView::RECORD.fields.iter().any(|it| it.name == name);
        if let Some(unknown) = fields.iter().flatten().find(|it| !known(it)) {
            let name: String = unknown.chars().take(100).collect();
            let names: Vec<_> = SearchResultView::RECORD.fields.iter().map(|it| it.name).collect();
            let message = format!("There is no field \"{name}\". Choose from: {}.", names.join(", "));
            return Err(Refusal::field("fields", message));
        }
        Ok(Self {
            fields: fields.map(HashSet::from_iter),
            guides: call.rest().guide.guides.reader(),
            models: call.rest().models.clone(),
            limits: call.view_limits(),
            sees_streams: call.identity()?.may(UserLevel::Standard),
            addresses: ImageAddresses::new(call),
            groups: call.rest().models.groups.load(),
            accounts: call.rest().models.accounts.load(),
        })
    }

    /// Returns the views of programmes. Reads streams, so it blocks.
    pub(super) fn results(&self, found: &[FoundProgramme]) -> Vec<SearchResult> {
        let links = self.guides.links();
        let mut streams = HashMap::new();
        found.iter().map(|it| self.selected(&self.view(it, &links, &mut streams))).collect()
    }

    fn selected(&self, view: &SearchResultView) -> SearchResult {
        let mut members = match serde_json::to_value(view) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        };
        if let Some(fields) = &self.fields {
            members.retain(|name, _| fields.contains(name));
        }
        SearchResult(members)
    }

    fn wants(&self, field: &str) -> bool {
        self.fields.as_ref().is_none_or(|it| it.contains(field))
    }

    fn view(
        &self,
        found: &FoundProgramme,
        links: &GuideLinks,
        streams: &mut HashMap<StreamId, Option<FoundStreamView>>,
    ) -> SearchResultView {
        let FoundProgramme { guide_channel, entry, minutes } = found;
        let programme = entry.programme();
        let source = self.guides.sources.get(guide_channel.source.0);
        let shown_then = links.shown_by(guide_channel.id).filter(|it| it.minutes == *minutes);
        let seen = shown_then.filter(|it| visible(&self.limits, it.channel));
        let channels = seen.filter(|it| self.guides.shows(it, entry)).map(|it| it.channel);
        let channels: Vec<_> = channels.take(CHANNELS_MAX).collect();
        let wants_streams = self.sees_streams && self.wants("streams");
        let of_channels = channels.iter().filter(|_| wants_streams).flat_map(|it| &it.streams);
        let found_streams = of_channels
            .take(STREAMS_MAX)
            .filter_map(|id| streams.entry(*id).or_insert_with(|| self.stream(*id)).clone());
        SearchResultView {
            id: entry.id,
            title: programme.plain_title().into_owned(),
            display_title: programme.title().to_owned(),
            sub_title: programme.sub_title().map(str::to_owned),
            description: programme.description().map(str::to_owned),
            start_time: time(entry.start),
            end_time: time(entry.stop),
            tvg_id: guide_channel.key.clone(),
            custom_properties: custom_properties(&programme, self.addresses),
            epg_source: source.map(|it| it.name.clone()).unwrap_or_default(),
            epg_name: guide_channel.name().to_owned(),
            epg_icon_url: guide_channel.icon.as_deref().map(|it| self.addresses.shown(it)),
            streams: found_streams.collect(),
            channels: channels.into_iter().map(|it| self.channel(it)).collect(),
        }
    }

    fn channel(&self, channel: &Channel) -> FoundChannelView {
        let group = channel.group.and_then(|it| self.groups.get(it.0));
        FoundChannelView {
            id: channel.id,
            name: channel.name.clone(),
            channel_number: channel.number.map(ChannelNumberValue),
            channel_group: group.map(|it| it.name.clone()),
            tvg_id: channel.tvg_id.clone(),
        }
    }

    fn stream(&self, id: StreamId) -> Option<FoundStreamView> {
        let stream = self.models.store.collection::<Stream>().get(id.0).ok()??;
        let account = self.accounts.get(stream.account.0);
        Some(FoundStreamView {
            id,
            name: stream.name().to_owned(),
            channel_group: stream.group().map(str::to_owned),
            tvg_id: stream.tvg_id().map(str::to_owned),
            m3u_account: account.map(|it| it.name.clone()),
        })
    }
}
