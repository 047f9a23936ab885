//! Creates channels from streams.

use std::collections::HashSet;

use actors::{any_adult, now_ms};
use domain::account::CUSTOM_ACCOUNT;
use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel, ChannelNumber};
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{ChannelId, GroupId, StreamId};
use domain::name_cleaning::{NameCleaner, NameKind};
use domain::playlist::content::StreamContent;
use domain::stream::Stream;
use resource_derive::{Body, View};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::route::Created;
use route_frame::value::{Readable, Shape};
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::{Models, Table, Write};
use uuid::Uuid;

use super::edit::{LINEUPS_MAX, check_streams};
use super::merge::{Merge, MergeBy, MergeTargets};
use super::numbers::Taken;
use super::selection::{MANY, too_many};
use super::view::ChannelView;
use crate::api::channels::lineups::{NewMemberships, check_lineups, set_lineups};
use crate::api::channels::logos::{NamedBy, logo_of_address};
use crate::api::channels::streams::select;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::{ChannelNumberValue, Text};
use crate::choice::{Choice as _, Named};
use crate::context::RestCall;
use crate::record::{RecordCall, find};

/// Selects a stream for a new channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct FromStream {
    /// Id of the stream.
    #[field(example = "1")]
    stream_id: StreamId,
    /// Number of the channel. 0 selects the lowest free whole number, -1 the one after the highest. By default the
    /// channel gets the provider's number if it is free, otherwise the lowest free one.
    #[field(aliases = &["number"], example = "0")]
    channel_number: Option<Option<NumberWish>>,
    /// Name of the channel; the name of the stream by default.
    #[field(chars_max = CHANNEL_NAME_CHARS_MAX)]
    name: Option<Text>,
    /// Ids of the channel profiles in which the channel is enabled; `[0]` is all and `[]` is none. By default each
    /// profile decides by its `add_new_channels`.
    #[field(items_max = LINEUPS_MAX, example = "[0]")]
    channel_profile_ids: Option<NewMemberships>,
    /// `tvg_id`, `name` or `tvg_id_or_name`: if a channel has the same guide id, or the same name regardless of case, the
    /// stream is added to that channel, and no channel is created. `tvg_id_or_name` compares the names of those without
    /// a guide id.
    merge_by: Option<Option<Named<MergeBy>>>,
}

/// Selects streams for new channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct FromStreams {
    /// Ids of the streams in the order of the channel numbers, each once.
    #[field(aliases = &["ids"], items_max = MANY, example = "[1]")]
    stream_ids: Option<Vec<StreamId>>,
    /// Instead of ids: filters of the list of streams; without `content_type`, films, series and separator lines are left
    /// out.
    #[field(example = "{\"channel_group_name\": \"News\"}")]
    filter: Option<Map<String, Value>>,
    /// Ids of streams to leave out.
    #[field(items_max = MANY, example = "[2]")]
    except: Option<Vec<StreamId>>,
    /// `tvg_id`, `name` or `tvg_id_or_name`: streams with the same guide id, or the same name regardless of case, become
    /// one channel with several streams, and are added to a channel that has it already. `tvg_id_or_name` compares the
    /// names of those without a guide id.
    merge_by: Option<Option<Named<MergeBy>>>,
    /// Number of the first channel; the others follow, and numbers of other channels are skipped. 0 selects the lowest
    /// free whole number, -1 the one after the highest. By default each channel gets the provider's number if it is
    /// free, otherwise the lowest free one.
    #[field(example = "0")]
    starting_channel_number: Option<Option<NumberWish>>,
    /// Ids of the channel profiles in which the channels are enabled; `[0]` is all and `[]` is none. By default each
    /// profile decides by its `add_new_channels`.
    #[field(items_max = LINEUPS_MAX, example = "[0]")]
    channel_profile_ids: Option<NewMemberships>,
}

/// The created channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChannelsMadeView {
    /// Message for people.
    #[field(example = "Created 2 channels")]
    message: String,
    /// Number of created channels.
    #[field(example = "2")]
    created_count: usize,
    /// Number of streams that were added to channels that existed already.
    #[field(example = "0")]
    merged_count: usize,
    /// Ids of the created channels, in the order of the request.
    #[field(example = "[7, 8]")]
    channel_ids: Vec<ChannelId>,
    /// Ids of the existing channels to which streams were added.
    #[field(example = "[]")]
    merged_channel_ids: Vec<ChannelId>,
    /// The handle with which the operation can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// Requested number of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberWish {
    Lowest,
    AfterHighest,
    At(ChannelNumber),
}

impl Shape for NumberWish {
    const KIND: Kind = Kind::Number;
}

impl Readable for NumberWish {
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()) {
            Some(0) => Ok(Self::Lowest),
            Some(-1) => Ok(Self::AfterHighest),
            _ => ChannelNumberValue::read(value, field).map(|it| Self::At(it.0)),
        }
    }
}

pub(super) async fn from_stream(call: Call, body: FromStream) -> Result<Created<ChannelView>, Refusal> {
    let channels = call.rest().models.channels.load();
    let mut taken = Taken::new(&channels);
    let mut targets = body.merge_by.flatten().map(|it| MergeTargets::new(it.0, &channels));
    let cleaner = call.rest().models.name_cleaner();
    let channel = call
        .write(move |write| {
            let stream = find::<Stream>(write, body.stream_id.0)?;
            let lineups = body.channel_profile_ids.flatten();
            let mut errors = FieldErrors::default();
            check_lineups(write, "channel_profile_ids", &lineups, &mut errors)?;
            errors.or(())?;
            let mut log = UndoLog::default();
            let shown = shown_name(&cleaner, &stream);
            if let Some(targets) = &mut targets
                && let Some(channel) = targets.add(write, &stream, &shown)?.into_channel()?
            {
                return Ok(channel);
            }
            let number = match body.channel_number.flatten() {
                None => number_of_provider(write, &stream, &mut taken)?,
                Some(NumberWish::Lowest) => taken.lowest(write)?,
                Some(NumberWish::AfterHighest) => taken.after_highest(write)?,
                Some(NumberWish::At(number)) => match taken.take(write, number)? {
                    true => number,
                    false => return Err(Refusal::taken("channel_number")),
                },
            };
            let channel = make(write, &stream, number, body.name.map_or(shown, |it| it.0), &mut log)?;
            set_lineups(write, &[channel.id], &lineups)?;
            Ok(channel)
        })
        .await?;
    Ok(Created(call.render(&channel)?))
}

pub(super) async fn from_streams(
    call: Call,
    body: FromStreams,
) -> Result<Created<ChannelsMadeView>, Refusal> {
    let FromStreams { stream_ids, filter, except, merge_by, starting_channel_number, channel_profile_ids } =
        body;
    let (mut ids, is_named) = match (stream_ids, filter) {
        (Some(_), Some(_)) => {
            return Err(Refusal::field("filter", "Send either stream_ids or filter."));
        }
        (Some(ids), None) => (ids, true),
        (None, Some(mut filter)) => {
            // Films, series and separator lines become channels only if they are named.
            filter.entry("content_type").or_insert_with(|| StreamContent::Live.name().into());
            (select(&call, &filter).await?, false)
        }
        (None, None) => return Err(FieldErrors::required("stream_ids").into()),
    };
    let except: HashSet<StreamId> = except.into_iter().flatten().collect();
    ids.retain(|it| !except.contains(it));
    if ids.len() > MANY {
        return Err(too_many("streams", ids.len(), MANY));
    }
    let lineups = channel_profile_ids.flatten();
    let channels = call.rest().models.channels.load();
    let cleaner = call.rest().models.name_cleaner();
    let mut maker =
        Maker::new(&channels, merge_by.flatten().map(|it| it.0), starting_channel_number.flatten(), cleaner);
    drop(channels);
    let author = Author::new(&call)?;
    call.write(move |write| {
        let mut errors = FieldErrors::default();
        check_lineups(write, "channel_profile_ids", &lineups, &mut errors)?;
        if is_named {
            check_streams(write, "stream_ids", &ids, &mut errors);
        }
        errors.or(())?;
        for id in ids {
            // A stream that a filter selected may have been deleted meanwhile.
            if let Some(stream) = write.get::<Stream>(id.0)? {
                maker.add(write, &stream)?.into_channel()?;
            }
        }
        set_lineups(write, &maker.created, &lineups)?;
        maker.finish(write, &author).map(Created)
    })
    .await
}

/// Creates channels from streams, one after the other.
struct Maker {
    taken: Taken,
    targets: Option<MergeTargets>,
    wish: Option<NumberWish>,
    cleaner: NameCleaner,
    /// The last number, if the numbers follow a number that the client chose.
    next: Option<ChannelNumber>,
    log: UndoLog,
    created: Vec<ChannelId>,
}

impl Maker {
    fn new(
        channels: &Table<Channel>,
        merge_by: Option<MergeBy>,
        wish: Option<NumberWish>,
        cleaner: NameCleaner,
    ) -> Self {
        Self {
            taken: Taken::new(channels),
            targets: merge_by.map(|it| MergeTargets::new(it, channels)),
            wish,
            cleaner,
            next: None,
            log: UndoLog::default(),
            created: Vec::new(),
        }
    }

    /// Adds a stream to the channel with its key, or else makes a channel. Changes nothing if that channel is full.
    fn add(&mut self, write: &mut Write<'_>, stream: &Stream) -> Result<Merge, Refusal> {
        let name = shown_name(&self.cleaner, stream);
        if let Some(targets) = &mut self.targets {
            match targets.add(write, stream, &name)? {
                Merge::NoChannel => {}
                merged => return Ok(merged),
            }
        }
        let number = match self.wish {
            None => number_of_provider(write, stream, &mut self.taken)?,
            Some(NumberWish::Lowest) => self.taken.lowest(write)?,
            Some(NumberWish::AfterHighest) => self.taken.after_highest(write)?,
            Some(NumberWish::At(first)) => {
                let number = self.taken.next_from(write, self.next.unwrap_or(first))?;
                self.next = Some(number);
                number
            }
        };
        let mut log = UndoLog::default();
        let channel = make(write, stream, number, name.clone(), &mut log)?;
        self.created.push(channel.id);
        match &mut self.targets {
            Some(targets) => targets.created(stream, &name, channel),
            None => self.log.created(&channel),
        }
        self.log.append(log);
        Ok(Merge::NoChannel)
    }

    fn finish(mut self, write: &mut Write<'_>, author: &Author) -> Result<ChannelsMadeView, Refusal> {
        let mut merged = (0, Vec::new());
        if let Some(targets) = self.targets {
            merged = targets.finish(write, &mut self.log)?;
        }
        let (merged_count, merged_channel_ids) = merged;
        let created_count = self.created.len();
        let mut message = format!("Created {created_count} channels");
        if merged_count > 0 {
            message += &format!(" and added {merged_count} streams to channels");
        }
        let undo = self.log.keep(write, author, &message)?;
        Ok(ChannelsMadeView {
            message,
            created_count,
            merged_count,
            channel_ids: self.created,
            merged_channel_ids,
            undo,
        })
    }
}

/// Makes channels of streams, as the playlist of a command becomes channels: streams with the same guide id, or without
/// one the same name regardless of case, become one channel, or are added to the channel that has it already.
pub struct ChannelMaker {
    maker: Maker,
    n_full: usize,
}

impl ChannelMaker {
    /// Begins with the channels that exist.
    pub fn new(models: &Models) -> Self {
        let (channels, cleaner) = (models.channels.load(), models.name_cleaner());
        Self { maker: Maker::new(&channels, Some(MergeBy::TvgIdOrName), None, cleaner), n_full: 0 }
    }

    /// Makes a channel of a stream, or adds it to one.
    pub fn add(&mut self, write: &mut Write<'_>, stream: &Stream) -> Result<(), Refusal> {
        if let Merge::Full(_) = self.maker.add(write, stream)? {
            self.n_full += 1;
        }
        Ok(())
    }

    /// Returns the ids of the channels that were made, in their order.
    pub fn created(&self) -> &[ChannelId] {
        &self.maker.created
    }

    /// Returns the number of streams that were added to channels that existed before.
    pub fn n_merged(&self) -> usize {
        self.maker.targets.as_ref().map_or(0, MergeTargets::n_streams)
    }

    /// Returns the number of streams that were left out because their channel has the maximum number of streams.
    pub fn n_full(&self) -> usize {
        self.n_full
    }
}

/// Returns the provider's number if it has one that is free, otherwise the lowest free number.
fn number_of_provider(
    write: &Write<'_>,
    stream: &Stream,
    taken: &mut Taken,
) -> Result<ChannelNumber, Refusal> {
    match stream.provider.number {
        Some(number) if !number.is_zero() && taken.take(write, number)? => Ok(number),
        _ => taken.lowest(write),
    }
}

/// Returns the name of a stream as people see it.
fn shown_name(cleaner: &NameCleaner, stream: &Stream) -> String {
    let cleaned = cleaner.clean(NameKind::Channel, stream.account, stream.name());
    cleaned.unwrap_or_else(|| stream.name().to_owned())
}

/// Creates a channel with the metadata of the stream. Notes the group and the logo that it creates.
fn make(
    write: &mut Write<'_>,
    stream: &Stream,
    number: ChannelNumber,
    name: String,
    log: &mut UndoLog,
) -> Result<Channel, Refusal> {
    let id = ChannelId(write.next_id::<Channel>()?);
    let name: String = name.chars().take(CHANNEL_NAME_CHARS_MAX).collect();
    let mut channel = Channel {
        number: Some(number),
        group: group_of(write, stream, log)?,
        tvg_id: stream.tvg_id().map(str::to_owned),
        guide_station: stream.station().map(str::to_owned),
        streams: vec![stream.id],
        ..Channel::new(id, Uuid::new_v4(), name, now_ms())
    };
    channel.follow_adult_mark(any_adult(write, &channel.streams, channel.group)?);
    if let Some(url) = stream.logo() {
        let is_typed = stream.account == CUSTOM_ACCOUNT;
        let named_by = if is_typed { NamedBy::Admin } else { NamedBy::Account(stream.account) };
        let logo = logo_of_address(write, url, &channel.name, named_by, log)?;
        (channel.logo_id, channel.logo) = (logo.map(|it| it.id), Some(url.to_owned()));
    }
    write.put(&channel)?;
    Ok(channel)
}

/// Returns the channel group with the name of the stream's group. Creates it if it does not exist.
fn group_of(write: &mut Write<'_>, stream: &Stream, log: &mut UndoLog) -> Result<Option<GroupId>, Refusal> {
    let Some(name) = stream.group().filter(|it| it.chars().count() <= GROUP_NAME_CHARS_MAX) else {
        return Ok(None);
    };
    if let Some(group) = write.by::<Group>("name", name)?.first() {
        return Ok(Some(group.id));
    }
    let group = Group::new(GroupId(write.next_id::<Group>()?), name);
    write.put(&group)?;
    log.group_created(&group);
    Ok(Some(group.id))
}
