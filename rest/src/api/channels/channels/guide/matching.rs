//! Finds guide channels for channels and links them.

use std::collections::HashSet;
use std::sync::Arc;

use domain::auto_sync::AUTO_CHANNELS_MAX;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::matching::{Decision, MatchResult};
use domain::ids::{ChannelId, GuideChannelId};
use resource_derive::Body;
use route_frame::call::Call;
use route_frame::route::Accepted;
use server::reply::Refusal;
use services::matching::MatchReport;
use storage::Write;

use super::lookup::GuideLookup;
use super::view::{DecisionName, MatchedChannelView, MatchedOneView, MatchedView};
use crate::api::channels::channels::filters::find_visible;
use crate::api::channels::channels::numbers::{Changes, put_all};
use crate::api::channels::channels::selection::{MANY, Selection};
use crate::api::channels::channels::view::ChannelView;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::context::RestCall;
use crate::record::RecordCall;

/// Maximum number of channels of one request.
const CHANNELS_MAX: usize = AUTO_CHANNELS_MAX;
/// Maximum number of results in an answer.
const RESULTS_MAX: usize = 1_000;

/// How many channels are matched.
#[derive(Clone, Debug, Body)]
pub(crate) struct MatchOptions {
    /// If true, nothing is changed, and the answer shows what would change.
    preview: Option<bool>,
    /// If true, channels that have a guide channel get the one that is found. Without it, they are left out.
    replace: Option<bool>,
}

/// How one channel is matched.
#[derive(Clone, Debug, Body)]
pub(crate) struct MatchOneOptions {
    /// If true, nothing is changed, and the answer shows what would change.
    preview: Option<bool>,
}

/// A found link: the channel, its guide channel when the matching began, and the new one.
type FoundLink = (ChannelId, Option<GuideChannelId>, GuideChannelId);

/// Without a selection, all channels without a guide channel are matched.
pub(super) async fn match_many(
    call: Call,
    (selection, options): (Selection, MatchOptions),
) -> Result<Accepted<MatchedView>, Refusal> {
    let is_preview = options.preview == Some(true);
    let lookup = GuideLookup::new(&call.rest().models);
    let selected: Vec<Arc<Channel>> = match selection.is_empty() {
        true => {
            let channels = call.rest().models.channels.load();
            let except: HashSet<ChannelId> = selection.except.into_iter().flatten().collect();
            channels.iter().filter(|it| !except.contains(&it.id)).take(CHANNELS_MAX).cloned().collect()
        }
        false => selection.resolve_up_to(&call, CHANNELS_MAX)?.find(&call)?,
    };
    let n_selected = selected.len();
    let is_wanted = |it: &Arc<Channel>| options.replace == Some(true) || lookup.linked(it).is_none();
    let channels: Vec<Arc<Channel>> = selected.into_iter().filter(is_wanted).collect();
    let author = Author::new(&call)?;
    let matching = &call.rest().guide.matching;
    let end = matching.begin();
    let results = matching.find(&call.rest().models, channels.clone(), is_preview, true).await?;

    let (total_count, skipped_count) = (channels.len(), n_selected - channels.len());
    let links = links(&channels, &results);
    let (mut matches_count, mut undo) = (links.len(), None);
    if !is_preview {
        (matches_count, undo) = write_links(&call, links, &author).await?;
    }
    let message = match is_preview {
        true => format!("{matches_count} of {total_count} channels would be linked"),
        false => linked(matches_count, total_count),
    };
    end.complete(matches_count, message.clone());
    let ties_count = results.iter().filter(|it| it.decision == Decision::Tie).count();
    let mut all: Vec<(&Arc<Channel>, &MatchResult)> = channels.iter().zip(&results).collect();
    // A stable order: channels stay as they were selected.
    all.sort_by_key(|it| urgency(it.1.decision));
    let results = all.into_iter().take(RESULTS_MAX).map(|it| MatchedChannelView::new(it.0, it.1, &lookup));
    let results = results.collect();
    let preview = is_preview;
    Ok(Accepted(MatchedView {
        message,
        preview,
        total_count,
        skipped_count,
        matches_count,
        ties_count,
        results,
        undo,
    }))
}

fn linked(n: usize, total: usize) -> String {
    format!("Linked {n} of {total} channels")
}

/// Returns the place of a decision in the list of results.
fn urgency(decision: Decision) -> u8 {
    match decision {
        Decision::Tie => 0,
        Decision::BelowThreshold => 1,
        Decision::Link(_) => 2,
        Decision::NoCandidate => 3,
        Decision::NoName => 4,
    }
}

fn links(channels: &[Arc<Channel>], results: &[MatchResult]) -> Vec<FoundLink> {
    let link = |(channel, result): (&Arc<Channel>, &MatchResult)| match result.decision {
        Decision::Link(to) if channel.guide_channel != Some(to) => {
            Some((channel.id, channel.guide_channel, to))
        }
        _ => None,
    };
    channels.iter().zip(results).filter_map(link).collect()
}

/// Writes links. One commit has up to 10,000 of them; all commits have one handle, as long as its limits allow.
async fn write_links(
    call: &Call,
    links: Vec<FoundLink>,
    author: &Author,
) -> Result<(usize, Option<UndoHandleView>), Refusal> {
    let total = links.len();
    let (mut n_linked, mut undo): (usize, Option<UndoHandleView>) = (0, None);
    for some in links.chunks(MANY) {
        let (some, author, begun) = (some.to_vec(), author.clone(), undo.as_ref().map(|it| it.id));
        let n_before = n_linked;
        let (n, handle) = call
            .write(move |write| {
                let mut log = UndoLog::default();
                let n = write_some(write, some, &mut log)?;
                let undo = log.keep_with(write, &author, &linked(n_before + n, total), begun)?;
                Ok((n, undo))
            })
            .await?;
        n_linked += n;
        undo = handle.or(undo);
    }
    Ok((n_linked, undo))
}

/// Links channels whose link is still as it was with guide channels that still exist. Returns how many.
fn write_some(write: &mut Write<'_>, links: Vec<FoundLink>, log: &mut UndoLog) -> Result<usize, Refusal> {
    let mut changes = Changes::new();
    for (id, seen, to) in links {
        let before = write.get::<Channel>(id.0)?.filter(|it| it.guide_channel == seen);
        let Some(before) = before.filter(|_| write.owner_of::<GuideChannel>(to.0).is_some()) else {
            continue;
        };
        // Found by what the playlist says, so that its offset belongs to it.
        let channel = Channel { guide_channel: Some(to), keeps_stream_offset: true, ..before.clone() };
        changes.push((before, channel));
    }
    Ok(put_all(write, changes, log)?.len())
}

/// Matches a channel also if it has a guide channel.
pub(super) async fn match_one(
    call: Call,
    options: MatchOneOptions,
) -> Result<Accepted<MatchedOneView>, Refusal> {
    let channel = find_visible(&call, call.id()?)?;
    let (author, lookup) = (Author::new(&call)?, GuideLookup::new(&call.rest().models));
    let matching = &call.rest().guide.matching;
    let channels = vec![Arc::clone(&channel)];
    let results = matching.find(&call.rest().models, channels.clone(), true, false).await?;
    let Some(result) = results.first() else { return Err(Refusal::fault("match a channel")) };
    let found = match result.decision {
        Decision::Link(to) => lookup.get(to),
        _ => None,
    };
    let mut undo = None;
    if options.preview != Some(true) {
        (_, undo) = write_links(&call, links(&channels, &results), &author).await?;
    }
    let message = match (found, DecisionName::new(result.decision)) {
        (Some(guide), _) if options.preview == Some(true) => {
            format!("Channel {} would be linked with {}", channel.name, guide.key)
        }
        (Some(guide), _) => format!("Linked channel {} with {}", channel.name, guide.key),
        (None, DecisionName::Tie) => {
            format!("Several guide channels fit channel {} equally well", channel.name)
        }
        (None, _) => format!("No guide channel fits channel {}", channel.name),
    };
    let is_matched = found.is_some();
    let now = find_visible(&call, channel.id.0)?;
    let view: ChannelView = call.render(&*now)?;
    let shown = serde_json::to_value(&view).map_err(|_| Refusal::fault("write a channel"))?;
    matching.report(MatchReport::Single {
        id: channel.id,
        channel: shown,
        is_matched,
        message: message.clone(),
    });
    let result = MatchedChannelView::new(&channel, result, &lookup);
    Ok(Accepted(MatchedOneView { message, matched: is_matched, channel: view, result, undo }))
}
