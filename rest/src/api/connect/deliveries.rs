//! `/api/connect/deliveries/`: events that wait for an integration or a plugin, and dead letters.

use std::collections::BTreeSet;

use actors::{DeadLetters, DeliveryFilter};
use domain::ids::{DeliveryId, IntegrationId};
use domain::integration::{Delivery, Integration, Recipient};
use domain::plugin::Plugin;
use resource_derive::{Body, Query, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::filter::read_filter;
use route_frame::route::{NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::{FieldErrors, NO_FIELD};
use server::reply::Refusal;
use storage::{Table, Write};
use uuid::Uuid;

use super::logs::{CauseName, PluginFilter, blocking, object_of};
use super::view::EventName;
use crate::choice::{Choice, Named, choice};
use crate::context::RestCall;
use crate::list::{Page, Paging};

const LIST: &str = "/api/connect/deliveries/";
const ONE: &str = "/api/connect/deliveries/{id}/";
const REPLAY_ONE: &str = "/api/connect/deliveries/{id}/replay/";
const REPLAY: &str = "/api/connect/deliveries/replay/";
const DELETE: &str = "/api/connect/deliveries/bulk-delete/";

/// Maximum number of ids in a body.
const IDS_MAX: usize = 10_000;

choice!(
    /// The state of a delivery.
    enum DeliveryState {
        Waiting = "waiting",
        Dead = "dead",
    }
);

/// Filters of the list of deliveries.
#[derive(Debug, Query)]
pub(crate) struct DeliveryFilters {
    /// Id of an integration.
    #[field(example = "1")]
    integration: Option<IntegrationId>,
    /// Key of a plugin whose actions run for events and at times.
    #[field(example = "cleaner")]
    plugin: Option<String>,
    /// An event.
    #[field(example = "channel_start")]
    event: Option<Named<EventName>>,
    /// State of the deliveries.
    state: Option<Named<DeliveryState>>,
    /// Deliveries of events from this time on.
    since: Option<Time>,
    /// Deliveries of events before this time.
    before: Option<Time>,
}

/// An event on its way to an integration.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ConnectDeliveryView {
    /// Increases with each delivery.
    #[field(example = "3")]
    id: DeliveryId,
    /// Id of the integration; `null` for a plugin whose action runs.
    #[field(example = "1")]
    integration: Option<IntegrationId>,
    /// Name of the integration.
    #[field(example = "Chat")]
    integration_name: Option<String>,
    /// Key of the plugin whose action runs; `null` for an integration.
    #[field(example = "cleaner")]
    plugin: Option<String>,
    /// Id of the action.
    #[field(example = "clean")]
    action: Option<String>,
    /// Why it is there.
    #[field(example = "event")]
    cause: Named<CauseName>,
    /// `waiting` for its next attempt, or `dead`: it failed for good, and an admin can replay it.
    #[field(example = "dead")]
    state: Named<DeliveryState>,
    /// The event; `schedule` for a time of a schedule.
    #[field(example = "channel_start")]
    event: String,
    /// The same in all attempts to deliver the event.
    event_id: Uuid,
    /// A sentence about the event.
    #[field(example = "News plays \"News 1\" of Provider.")]
    summary: String,
    /// When the event happened, or was replayed.
    created_at: Time,
    /// Number of attempts so far.
    #[field(example = "2")]
    attempts: u32,
    /// When the next attempt is due; `null` for a dead letter.
    due_at: Option<Time>,
    /// When it became a dead letter.
    dead_at: Option<Time>,
    /// Why the last attempt failed.
    error_message: Option<String>,
    /// The payload of the event.
    payload: Map<String, Value>,
}

/// Selects dead letters.
#[derive(Debug, Body)]
pub(crate) struct DeadLetterSelection {
    /// Ids of dead letters.
    #[field(items_max = IDS_MAX, example = "[3]")]
    ids: Option<Vec<DeliveryId>>,
    /// Selects dead letters by the filters of the list; `{}` selects all.
    filter: Option<Map<String, Value>>,
}

/// The number of changed dead letters.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DeadLetterCountView {
    /// Number of dead letters that were replayed or deleted.
    #[field(example = "3")]
    count: usize,
}

/// 50 deliveries per page by default, at most 250.
type Pages = Paging<50, 250>;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, ADMIN, "Lists deliveries that wait and dead letters, the newest first.", list),
        Route::post(REPLAY, ADMIN, "Replays dead letters, selected by id or by filter.", replay)
            .with_properties_body(),
        Route::post(DELETE, ADMIN, "Deletes dead letters, selected by id or by filter.", delete)
            .with_properties_body(),
        Route::post(REPLAY_ONE, ADMIN, "Replays a dead letter.", replay_one),
        Route::delete(ONE, ADMIN, "Deletes a dead letter.", delete_one),
    ]
}

impl DeliveryFilters {
    fn filter(self, plugins: &Table<Plugin>) -> Result<DeliveryFilter, FieldErrors> {
        Ok(DeliveryFilter {
            to: PluginFilter { integration: self.integration, plugin: self.plugin }.recipient(plugins)?,
            is_dead: self.state.map(|it| it.0 == DeliveryState::Dead),
            event: self.event.map(|it| it.0.name().to_owned()),
            ids: None,
            since: self.since.map(|it| it.0),
            before: self.before.map(|it| it.0),
        })
    }
}

async fn list(
    call: Call,
    (filters, paging): (DeliveryFilters, Pages),
) -> Result<Page<ConnectDeliveryView>, Refusal> {
    let (offset, limit) = paging.window();
    let (integrations, plugins) = (call.rest().models.integrations.load(), call.rest().models.plugins.load());
    let (queue, filter) = (call.rest().operation.integrations.clone(), filters.filter(&plugins)?);
    let found = blocking(move || queue.deliveries(&filter, offset, limit)).await?;
    let views = found.items.into_iter().map(|it| view(it, &integrations, &plugins)).collect();
    paging.envelope(&call, found.n_all, views)
}

async fn replay(call: Call, selection: DeadLetterSelection) -> Result<DeadLetterCountView, Refusal> {
    let filter = selection.filter(&call.rest().models.plugins.load())?;
    change(&call, filter, DeadLetters::replay).await
}

async fn delete(call: Call, selection: DeadLetterSelection) -> Result<DeadLetterCountView, Refusal> {
    let filter = selection.filter(&call.rest().models.plugins.load())?;
    change(&call, filter, DeadLetters::delete).await
}

async fn replay_one(call: Call) -> Result<NoContent, Refusal> {
    found(change(&call, one(call.id()?), DeadLetters::replay).await?)
}

async fn delete_one(call: Call) -> Result<NoContent, Refusal> {
    found(change(&call, one(call.id()?), DeadLetters::delete).await?)
}

fn one(id: u32) -> DeliveryFilter {
    DeliveryFilter { ids: Some([DeliveryId(id)].into()), ..DeliveryFilter::default() }
}

fn found(changed: DeadLetterCountView) -> Result<NoContent, Refusal> {
    if changed.count == 0 { Err(Refusal::unknown::<Delivery>()) } else { Ok(NoContent) }
}

/// Changes dead letters, some in each write. Each write is in the activity log.
async fn change(
    call: &Call,
    filter: DeliveryFilter,
    change: fn(DeadLetters, &mut Write<'_>) -> storage::Result<usize>,
) -> Result<DeadLetterCountView, Refusal> {
    let (mut count, queue) = (0, call.rest().operation.integrations.clone());
    for letters in run_blocking("select dead letters", move || queue.dead_letters(&filter)).await? {
        count += call.write(move |write| Ok(change(letters, write)?)).await?;
    }
    Ok(DeadLetterCountView { count })
}

impl DeadLetterSelection {
    /// Returns the filter. A body that selects nothing is refused, because it would select everything.
    fn filter(self, plugins: &Table<Plugin>) -> Result<DeliveryFilter, FieldErrors> {
        match (self.ids.map(BTreeSet::from_iter), self.filter) {
            (Some(ids), None) => Ok(DeliveryFilter { ids: Some(ids), ..DeliveryFilter::default() }),
            (ids, Some(filter)) => {
                let filter = read_filter::<DeliveryFilters>(&filter)?.filter(plugins)?;
                if filter.is_dead == Some(false) {
                    return Err(FieldErrors::new("filter", "state: Only dead letters can be selected."));
                }
                Ok(DeliveryFilter { ids, ..filter })
            }
            (None, None) => Err(FieldErrors::new(NO_FIELD, "Give ids or a filter.")),
        }
    }
}

fn view(
    delivery: Delivery,
    integrations: &Table<Integration>,
    plugins: &Table<Plugin>,
) -> ConnectDeliveryView {
    let is_dead = delivery.dead_at.is_some();
    let integration = delivery.to.integration();
    let cause = delivery.run.as_ref().map(|it| it.cause()).unwrap_or_default();
    ConnectDeliveryView {
        id: delivery.id,
        integration,
        integration_name: integration.and_then(|it| integrations.get(it.0)).map(|it| it.name.clone()),
        plugin: match delivery.to {
            Recipient::Integration(_) => None,
            Recipient::Plugin(id) => plugins.get(id).map(|it| it.key.to_string()),
        },
        action: delivery.run.map(|it| it.action),
        cause: Named(CauseName::from_cause(cause)),
        state: Named(if is_dead { DeliveryState::Dead } else { DeliveryState::Waiting }),
        event: delivery.event,
        event_id: delivery.event_id,
        summary: delivery.summary,
        created_at: Time(delivery.created_at),
        attempts: delivery.n_attempts,
        due_at: (!is_dead).then_some(Time(delivery.due_at)),
        dead_at: delivery.dead_at.map(Time),
        error_message: delivery.reason,
        payload: object_of(&delivery.payload),
    }
}
