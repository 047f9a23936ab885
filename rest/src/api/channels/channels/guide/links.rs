//! Links channels with guide channels by hand. Matching learns these links.

use std::collections::HashSet;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::ids::{ChannelId, GuideChannelId};
use resource_derive::{Body, View};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use super::learn::learn;
use crate::api::channels::channels::numbers::{Changes, put_all};
use crate::api::channels::channels::selection::MANY;
use crate::api::channels::channels::view::ChannelView;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::{item, no_such};
use crate::record::{RecordCall, find};

/// Sets the guide channel of a channel, if it exists, and learns the link.
pub(in crate::api::channels::channels) fn set_guide(
    write: &mut Write<'_>,
    channel: &mut Channel,
    wanted: Option<GuideChannelId>,
    field: &str,
    errors: &mut FieldErrors,
    log: &mut UndoLog,
) -> Result<(), Refusal> {
    let guide = wanted.map(|it| write.get::<GuideChannel>(it.0)).transpose()?.flatten();
    if let Some(id) = wanted.filter(|_| guide.is_none()) {
        errors.add(field, no_such(id));
        return Ok(());
    }
    if channel.guide_channel != wanted {
        channel.keeps_stream_offset = false;
    }
    channel.guide_channel = wanted;
    learn(write, channel, guide.as_ref(), log)
}

/// A guide channel for a channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct GuideLink {
    /// Id of the guide channel; `null` removes the link.
    #[field(example = "12")]
    epg_data_id: Option<Option<GuideChannelId>>,
}

/// Result of linking one channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct GuideLinkView {
    /// Message for people.
    #[field(example = "Linked channel News with news.example")]
    message: String,
    /// The channel after the change.
    channel: ChannelView,
    /// State of the guide, for clients that show it: its programmes are shown at once.
    #[field(example = "No refresh is needed")]
    task_status: &'static str,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

pub(super) async fn set_one(call: Call, link: GuideLink) -> Result<GuideLinkView, Refusal> {
    let wanted = link.epg_data_id.ok_or_else(|| FieldErrors::required("epg_data_id"))?;
    let (id, author) = (call.id()?, Author::new(&call)?);
    let (channel, message, undo) = call
        .write(move |write| {
            let before = find::<Channel>(write, id)?;
            let (mut channel, mut log) = (before.clone(), UndoLog::default());
            let mut errors = FieldErrors::default();
            set_guide(write, &mut channel, wanted, "epg_data_id", &mut errors, &mut log)?;
            errors.or(())?;
            let guide = wanted.map(|it| write.get::<GuideChannel>(it.0)).transpose()?.flatten();
            let message = match guide {
                Some(guide) => format!("Linked channel {} with {}", channel.name, guide.key),
                None => format!("Removed the guide channel of channel {}", channel.name),
            };
            let channel = put_all(write, vec![(before, channel)], &mut log)?.pop();
            let channel = channel.ok_or_else(|| Refusal::fault("write a channel"))?;
            let undo = log.keep(write, &author, &message)?;
            Ok((channel, message, undo))
        })
        .await?;
    Ok(GuideLinkView { message, channel: call.render(&channel)?, task_status: "No refresh is needed", undo })
}

/// Guide channels for channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct GuideLinks {
    /// The channels, each once.
    #[field(items_max = MANY)]
    associations: Vec<GuideAssociation>,
}

/// A guide channel for one of several channels.
#[derive(Clone, Debug, Body)]
pub(crate) struct GuideAssociation {
    /// Id of the channel.
    #[field(example = "7")]
    channel_id: ChannelId,
    /// Id of the guide channel; `null` removes the link.
    #[field(example = "12")]
    epg_data_id: Option<Option<GuideChannelId>>,
}

impl Shape for GuideAssociation {
    const KIND: Kind = Kind::Record(&GuideAssociation::RECORD);
}

impl Readable for GuideAssociation {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

/// Result of linking many channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct GuideLinksView {
    /// Always true.
    success: bool,
    /// Number of channels of the request.
    #[field(example = "2")]
    channels_updated: usize,
    /// Number of guides that were fetched again: none, because the programmes of all guide channels are known.
    #[field(example = "0")]
    programs_refreshed: usize,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

pub(super) async fn set_many(call: Call, links: GuideLinks) -> Result<GuideLinksView, Refusal> {
    let author = Author::new(&call)?;
    call.write(move |write| {
        let (mut errors, mut log) = (FieldErrors::default(), UndoLog::default());
        let (mut changes, mut seen) = (Changes::new(), HashSet::new());
        for (n, link) in links.associations.into_iter().enumerate() {
            let id = link.channel_id;
            let before = match write.get::<Channel>(id.0)? {
                _ if !seen.insert(id) => Err(format!("Channel {id} is listed more than once.")),
                None => Err(no_such(id)),
                Some(channel) => Ok(channel),
            };
            let (before, wanted) = match (before, link.epg_data_id) {
                (Ok(before), Some(wanted)) => (before, wanted),
                (Ok(_), None) => {
                    errors.add("associations", item(n, "epg_data_id: This field is required."));
                    continue;
                }
                (Err(message), _) => {
                    errors.add("associations", item(n, &format!("channel_id: {message}")));
                    continue;
                }
            };
            let (mut channel, mut of_item) = (before.clone(), FieldErrors::default());
            set_guide(write, &mut channel, wanted, "epg_data_id", &mut of_item, &mut log)?;
            if let Err(error) = of_item.or(()) {
                errors.add("associations", item(n, &error.first_message()));
            }
            changes.push((before, channel));
        }
        errors.or(())?;
        let channels_updated = put_all(write, changes, &mut log)?.len();
        let undo =
            log.keep(write, &author, &format!("Set the guide channels of {channels_updated} channels"))?;
        Ok(GuideLinksView { success: true, channels_updated, programs_refreshed: 0, undo })
    })
    .await
}
