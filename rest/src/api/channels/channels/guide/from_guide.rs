//! Names, logos and guide ids that channels take over from their guide channels.

use std::collections::HashMap;
use std::sync::Arc;

use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel};
use domain::guide::channel::GuideChannel;
use domain::ids::ChannelId;
use resource_derive::View;
use route_frame::call::Call;
use serde::Serialize;
use server::reply::Refusal;
use storage::Write;

use super::lookup::GuideLookup;
use crate::api::channels::channels::numbers::{Changes, put_all};
use crate::api::channels::channels::selection::Selection;
use crate::api::channels::logos::{NamedBy, logo_of_address};
use crate::api::channels::streams::TVG_ID_CHARS_MAX;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::context::RestCall;

/// Result of taking over values from guide channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FromGuideView {
    /// Always true.
    success: bool,
    /// Message for people.
    #[field(example = "Changed the names of 2 channels")]
    message: String,
    /// Number of channels that have changed.
    #[field(example = "2")]
    updated_count: usize,
    /// Number of selected channels.
    #[field(example = "3")]
    channel_count: usize,
    /// Number of selected channels without a guide channel, or whose guide channel does not have the value.
    #[field(example = "1")]
    skipped_count: usize,
    /// Always `null`, because the work is done.
    task_id: Option<String>,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// The value that channels take over.
#[derive(Clone, Copy)]
enum Taken {
    Name,
    Logo,
    TvgId,
}

pub(super) async fn set_names(call: Call, selection: Selection) -> Result<FromGuideView, Refusal> {
    take_over(call, selection, Taken::Name).await
}

pub(super) async fn set_logos(call: Call, selection: Selection) -> Result<FromGuideView, Refusal> {
    take_over(call, selection, Taken::Logo).await
}

pub(super) async fn set_tvg_ids(call: Call, selection: Selection) -> Result<FromGuideView, Refusal> {
    take_over(call, selection, Taken::TvgId).await
}

async fn take_over(call: Call, selection: Selection, taken: Taken) -> Result<FromGuideView, Refusal> {
    let (selected, author) = (selection.resolve(&call)?, Author::new(&call)?);
    let lookup = GuideLookup::new(&call.rest().models);
    let guides: HashMap<ChannelId, Arc<GuideChannel>> = selected
        .find(&call)?
        .into_iter()
        .filter_map(|it| Some((it.id, Arc::clone(lookup.guide_channel(&it)?))))
        .collect();
    call.write(move |write| {
        let (mut log, mut changes) = (UndoLog::default(), Changes::new());
        let channels = selected.load(write)?;
        let (channel_count, mut skipped_count) = (channels.len(), 0);
        for before in channels {
            let after = match guides.get(&before.id) {
                Some(guide) => taken.apply(write, &before, guide, &mut log)?,
                None => None,
            };
            match after {
                Some(after) if after == before => {}
                Some(after) => changes.push((before, after)),
                None => skipped_count += 1,
            }
        }
        let updated_count = changes.len();
        put_all(write, changes, &mut log)?;
        let what = match taken {
            Taken::Name => "names",
            Taken::Logo => "logos",
            Taken::TvgId => "guide ids",
        };
        let message = format!("Changed the {what} of {updated_count} channels");
        let undo = log.keep(write, &author, &message)?;
        Ok(FromGuideView {
            success: true,
            message,
            updated_count,
            channel_count,
            skipped_count,
            task_id: None,
            undo,
        })
    })
    .await
}

impl Taken {
    /// Returns the channel after the change; `None` if the guide channel does not have a valid value.
    fn apply(
        self,
        write: &mut Write<'_>,
        before: &Channel,
        guide: &GuideChannel,
        log: &mut UndoLog,
    ) -> Result<Option<Channel>, Refusal> {
        let mut after = before.clone();
        match self {
            Self::Name => {
                let name: String =
                    guide.names.first().map(String::as_str).unwrap_or_default().trim().to_owned();
                let is_valid = !name.is_empty() && !name.contains(char::is_control);
                if !is_valid || name.chars().count() > CHANNEL_NAME_CHARS_MAX {
                    return Ok(None);
                }
                after.name = name;
            }
            Self::TvgId => {
                let is_valid = !guide.key.contains(char::is_control) && !guide.key.trim().is_empty();
                if !is_valid || guide.key.chars().count() > TVG_ID_CHARS_MAX {
                    return Ok(None);
                }
                after.tvg_id = Some(guide.key.trim().to_owned());
            }
            Self::Logo => {
                let Some(url) = guide.icon.as_deref().map(str::trim).filter(|it| !it.is_empty()) else {
                    return Ok(None);
                };
                let name = guide.names.first().unwrap_or(&before.name);
                let logo = logo_of_address(write, url, name, NamedBy::Guide(guide.source), log)?;
                let Some(logo) = logo else { return Ok(None) };
                (after.logo_id, after.logo) = (Some(logo.id), Some(logo.url));
            }
        }
        Ok(Some(after))
    }
}
