//! `/api/channels/profiles/{id}/channels/`: which channels are in a lineup; and the lineups of new channels.

use std::collections::{BTreeSet, HashSet};

use domain::channel::Channel;
use domain::ids::{ChannelId, LineupId};
use domain::lineup::Lineup;
use http::Method;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::field::Field;
use route_frame::input::Element;
use route_frame::route::Route;
use route_frame::value::Readable;
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use crate::api::channels::channels::Selection;
use crate::api::channels::undo::{Author, UndoHandleView, UndoLog};
use crate::api::channels::values::{item, no_such};
use crate::context::RestCall;
use crate::record::find;

/// Maximum number of memberships of one request: more than a gateway has channels.
const MEMBERSHIPS_MAX: usize = 50_000;

/// Whether a channel is in the profile.
#[derive(Clone, Debug, Body)]
pub(crate) struct Membership {
    /// Whether the channel is enabled in the profile.
    #[field(example = "true")]
    enabled: bool,
}

/// A channel of a profile after the change.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MembershipView {
    /// Id of the channel.
    #[field(example = "1")]
    channel: ChannelId,
    /// Whether the channel is enabled in the profile.
    enabled: bool,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

/// Whether one of many channels is in the profile.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ChannelMembership", new = NewChannelMembership)]
pub(crate) struct ChannelMembershipView {
    /// Id of the channel.
    #[field(required, aliases = &["channel"], example = "1")]
    channel_id: ChannelId,
    /// Whether the channel is enabled in the profile.
    #[field(required)]
    enabled: bool,
}

impl Readable for ChannelMembershipView {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let new = NewChannelMembership::read_element(value, false).map_err(FieldErrors::first_message)?;
        Ok(Self { channel_id: new.channel_id, enabled: new.enabled })
    }
}

/// Changes of many channels in a profile.
#[derive(Clone, Debug, Body)]
pub(crate) struct Memberships {
    /// The channels; the last entry for a channel counts.
    #[field(aliases = &["channels"], items_max = MEMBERSHIPS_MAX, example = "[{\"channel_id\": 1, \"enabled\": true}]")]
    memberships: Option<Vec<ChannelMembershipView>>,
    /// Instead of `memberships`: whether the channels that `ids` or `filter` selects are enabled in the profile.
    #[field(example = "true")]
    enabled: Option<bool>,
}

/// Result of changing many channels in a profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MembershipsChangedView {
    /// Always `success`: one invalid entry refuses all of them.
    #[field(example = "success")]
    status: &'static str,
    /// Number of entries.
    #[field(example = "2")]
    updated: usize,
    /// Always 0, for clients that read it.
    #[field(example = "0")]
    created: usize,
    /// Always empty, for clients that read it.
    invalid_channels: Vec<ChannelId>,
    /// The handle with which the change can be undone; `null` if nothing has changed.
    undo: Option<UndoHandleView>,
}

pub(super) fn routes() -> Vec<Route> {
    let one = Route::each(
        [Method::PUT, Method::PATCH],
        "/api/channels/profiles/{id}/channels/{channel_id}/",
        ADMIN,
        "Sets whether a channel is enabled in a profile.",
        set_one,
    );
    let many = Route::each(
        [Method::POST, Method::PATCH],
        "/api/channels/profiles/{id}/channels/bulk-update/",
        ADMIN,
        "Sets whether channels are enabled in a profile.",
        set_many,
    );
    one.into_iter().chain(many.into_iter().map(Route::with_bulk_body)).collect()
}

async fn set_one(call: Call, body: Membership) -> Result<MembershipView, Refusal> {
    let (id, channel) = (call.id()?, ChannelId(call.id_of("channel_id")?));
    let author = Author::new(&call)?;
    call.write(move |write| {
        let lineup = find::<Lineup>(write, id)?;
        find::<Channel>(write, channel.0)?;
        let mut changed = lineup.clone();
        changed.set(channel, body.enabled);
        let undo = put(write, &lineup, &changed, [channel].into(), &author)?;
        Ok(MembershipView { channel, enabled: body.enabled, undo })
    })
    .await
}

/// Writes a lineup in which the membership of these channels may have changed. Returns the handle of the undo, or `None` if
/// none has.
fn put(
    write: &mut Write<'_>,
    before: &Lineup,
    lineup: &Lineup,
    channels: BTreeSet<ChannelId>,
    author: &Author,
) -> Result<Option<UndoHandleView>, Refusal> {
    let is_changed = |it: &ChannelId| before.contains(*it) != lineup.contains(*it);
    let changed: Vec<_> =
        channels.into_iter().filter(is_changed).map(|it| (it, lineup.contains(it))).collect();
    let mut log = UndoLog::default();
    log.lineup_edited(lineup, &changed);
    write.put(lineup)?;
    let message = format!("Changed {} channels of the profile {}", changed.len(), lineup.name);
    log.keep(write, author, &message)
}

async fn set_many(
    call: Call,
    (selection, body): (Selection, Memberships),
) -> Result<MembershipsChangedView, Refusal> {
    let id = call.id()?;
    let (is_selected, is_filtered) = (!selection.is_empty(), selection.filter.is_some());
    let changes = match (body.memberships, body.enabled) {
        (Some(_), _) if !selection.is_empty() => {
            let message = "Send either memberships, or the channels and enabled.";
            return Err(Refusal::field("memberships", message));
        }
        (Some(changes), _) => changes,
        (None, _) if selection.is_empty() => return Err(FieldErrors::required("memberships").into()),
        (None, None) => return Err(FieldErrors::required("enabled").into()),
        (None, Some(enabled)) => {
            let selected = selection.resolve_up_to(&call, MEMBERSHIPS_MAX)?.ids.into_iter();
            selected.map(|channel_id| ChannelMembershipView { channel_id, enabled }).collect()
        }
    };
    // A channel that is deleted meanwhile is in no lineup, whatever is stored. One that is created meanwhile has a higher
    // id than all others.
    let channels = call.rest().models.channels.load();
    let newest = channels.iter().last().map(|it| it.id);
    let (updated, author) = (changes.len(), Author::new(&call)?);
    let undo = call
        .write(move |write| {
            let before = find::<Lineup>(write, id)?;
            let mut lineup = before.clone();
            if changes.is_empty() && !is_selected {
                return Err(Refusal::field("memberships", "This list may not be empty."));
            }
            let mut errors = FieldErrors::default();
            let field = if is_selected { "ids" } else { "memberships" };
            for (n, change) in changes.iter().enumerate() {
                match channels.get(change.channel_id.0) {
                    Some(channel) => drop(lineup.set(channel.id, change.enabled)),
                    // Deleted since the filter selected it.
                    None if is_filtered => {}
                    None => errors.add(field, item(n, &no_such(change.channel_id))),
                }
            }
            errors.or(())?;
            let exists = |it: ChannelId| channels.get(it.0).is_some();
            let set = changes.iter().map(|it| it.channel_id).filter(|it| exists(*it)).collect();
            lineup.keep_existing(|it| exists(it) || Some(it) > newest);
            put(write, &before, &lineup, set, &author)
        })
        .await?;
    Ok(MembershipsChangedView { status: "success", updated, created: 0, invalid_channels: Vec::new(), undo })
}

/// The lineups that new channels join, as clients name them. `None` leaves it to each lineup.
pub(in crate::api::channels) type NewMemberships = Option<Vec<LineupId>>;

/// The id that stands for all lineups.
const ALL: LineupId = LineupId(0);

/// Adds an error for each of these lineups that does not exist.
pub(in crate::api::channels) fn check_lineups(
    write: &Write<'_>,
    field: &str,
    wanted: &NewMemberships,
    errors: &mut FieldErrors,
) -> Result<(), Refusal> {
    for id in wanted.iter().flatten().filter(|it| **it != ALL) {
        if write.get::<Lineup>(id.0)?.is_none() {
            errors.add(field, no_such(id));
        }
    }
    Ok(())
}

/// Puts new channels into exactly these lineups: all of them if the list contains 0. `None` leaves it to each lineup.
pub(in crate::api::channels) fn set_lineups(
    write: &mut Write<'_>,
    channels: &[ChannelId],
    wanted: &NewMemberships,
) -> Result<(), Refusal> {
    let Some(wanted) = wanted else { return Ok(()) };
    let wanted: HashSet<LineupId> = wanted.iter().copied().collect();
    for mut lineup in write.all::<Lineup>()? {
        let is_member = wanted.contains(&ALL) || wanted.contains(&lineup.id);
        let n_changed = channels.iter().filter(|it| lineup.set(**it, is_member)).count();
        if n_changed > 0 {
            write.put(&lineup)?;
        }
    }
    Ok(())
}
