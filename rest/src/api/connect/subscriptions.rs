//! `/api/connect/subscriptions/` and the subscriptions of one integration.

use std::sync::Arc;

use actors::now_ms;
use domain::ids::IntegrationId;
use domain::integration::{Integration, Subscription};
use http::StatusCode;
use resource_derive::{Body, Query};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::input::Many;
use route_frame::route::{Created, NoContent, Route};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::integrations::number_subscriptions;
use super::view::{
    EventName, EventSubscriptionEdit, EventSubscriptionView, NewEventSubscription, subscription_view,
};
use crate::choice::{Choice, Named};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{find, set, set_text};

const LIST: &str = "/api/connect/subscriptions/";
const ONE: &str = "/api/connect/subscriptions/{id}/";
const OF_INTEGRATION: &str = "/api/connect/integrations/{id}/subscriptions/";
const SET: &str = "/api/connect/integrations/{id}/subscriptions/set/";

/// Maximum number of subscriptions in a body. One of each event is useful.
const MANY: usize = 100;

/// Filters of the list of subscriptions.
#[derive(Debug, Query)]
struct Filters {
    /// Id of an integration.
    integration: Option<IntegrationId>,
    /// An event.
    event: Option<Named<EventName>>,
}

/// A subscription that an integration shall have.
#[derive(Debug, Body)]
pub(crate) struct WantedSubscription {
    /// The event.
    #[field(example = "channel_start")]
    event: Named<EventName>,
    /// Whether the event is delivered; it is by default.
    enabled: Option<bool>,
    /// Template of the body; `null` selects that of the preset, or the payload of the event.
    #[field(blank, chars_max = 65_536, example = "{\"text\": \"{{ event_type }}\"}")]
    payload_template: Option<Option<String>>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, ADMIN, "Lists subscriptions of integrations to events.", list),
        Route::post(LIST, ADMIN, "Creates a subscription.", create).with_properties_body(),
        Route::get(ONE, ADMIN, "Returns a subscription.", retrieve),
        Route::put(ONE, ADMIN, "Updates a subscription.", update).with_properties_body(),
        Route::patch(ONE, ADMIN, "Partially updates a subscription.", update).with_properties_body(),
        Route::delete(ONE, ADMIN, "Deletes a subscription.", delete),
        Route::get(OF_INTEGRATION, ADMIN, "Lists the subscriptions of an integration.", list_of),
        Route::put(SET, ADMIN, "Replaces the subscriptions of an integration.", replace)
            .with_bulk_body()
            .refuses(StatusCode::BAD_REQUEST, "An event is there twice, or a template has a fault."),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<EventSubscriptionView>, Refusal> {
    let integrations = call.rest().models.integrations.load();
    let wanted = integrations.iter().filter(|it| filters.integration.is_none_or(|wanted| wanted == it.id));
    let mut found: Vec<_> = wanted.flat_map(|it| views(it)).collect();
    if let Some(Named(event)) = filters.event {
        found.retain(|it| it.event.0 == event);
    }
    paging.render_with(&call, &found, Clone::clone)
}

fn views(integration: &Integration) -> Vec<EventSubscriptionView> {
    integration.subscriptions.iter().filter_map(|it| subscription_view(integration, it)).collect()
}

async fn list_of(call: Call, paging: WholeOrPages) -> Result<Page<EventSubscriptionView>, Refusal> {
    let integrations = call.rest().models.integrations.load();
    let integration = integrations.get(call.id()?).ok_or_else(Refusal::unknown::<Integration>)?;
    paging.page_from(&call, views(integration))
}

async fn retrieve(call: Call) -> Result<EventSubscriptionView, Refusal> {
    let (integration, id) = (integration_of(&call)?, call.id()?);
    view_of(&integration, id)
}

async fn create(call: Call, new: NewEventSubscription) -> Result<Created<EventSubscriptionView>, Refusal> {
    let made = call.write(move |write| {
        let mut integration = write
            .get::<Integration>(new.integration.0)?
            .ok_or_else(|| Refusal::no_such("integration", new.integration))?;
        integration.subscriptions.push(Subscription {
            id: 0,
            event: new.event.0.name().to_owned(),
            is_enabled: new.enabled.unwrap_or(true),
            template: new.payload_template.flatten().filter(|it| !it.is_empty()),
        });
        check(&integration)?;
        number_subscriptions(write, &mut integration)?;
        write.put(&integration)?;
        Ok(integration)
    });
    let made = made.await?;
    let id = made.subscriptions.last().map_or(0, |it| it.id);
    view_of(&made, id).map(Created)
}

async fn update(call: Call, edit: EventSubscriptionEdit) -> Result<EventSubscriptionView, Refusal> {
    let (integration, id) = (integration_of(&call)?.id, call.id()?);
    if edit.integration.is_some_and(|it| it != integration) {
        return Err(Refusal::field("integration", "A subscription stays with its integration."));
    }
    let changed = call.write(move |write| {
        let mut integration = find::<Integration>(write, integration.0)?;
        let known = integration.subscriptions.iter_mut().find(|it| it.id == id);
        let known = known.ok_or_else(Refusal::unknown::<Subscription>)?;
        set(&mut known.event, edit.event.map(|it| it.0.name().to_owned()));
        set(&mut known.is_enabled, edit.enabled);
        set_text(&mut known.template, edit.payload_template);
        check(&integration)?;
        write.put(&integration)?;
        Ok(integration)
    });
    view_of(&changed.await?, id)
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let (integration, id) = (integration_of(&call)?.id, call.id()?);
    call.write(move |write| {
        let mut integration = find::<Integration>(write, integration.0)?;
        integration.subscriptions.retain(|it| it.id != id);
        write.put(&integration)?;
        Ok(NoContent)
    })
    .await
}

async fn replace(
    call: Call,
    Many(wanted): Many<WantedSubscription, MANY>,
) -> Result<Vec<EventSubscriptionView>, Refusal> {
    let id = call.id()?;
    let changed = call.write(move |write| {
        let mut integration = find::<Integration>(write, id)?;
        let known = std::mem::take(&mut integration.subscriptions);
        integration.subscriptions = wanted
            .into_iter()
            .map(|it| {
                let event = it.event.0.name();
                Subscription {
                    id: known.iter().find(|it| it.event == event).map_or(0, |it| it.id),
                    event: event.to_owned(),
                    is_enabled: it.enabled.unwrap_or(true),
                    template: it.payload_template.flatten().filter(|it| !it.is_empty()),
                }
            })
            .collect();
        check(&integration)?;
        number_subscriptions(write, &mut integration)?;
        write.put(&integration)?;
        Ok(integration)
    });
    Ok(views(&changed.await?))
}

/// Checks an integration whose subscriptions have changed.
fn check(integration: &Integration) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    for wrong in integration.check(now_ms()).err().unwrap_or_default() {
        let field = if wrong.field == "subscriptions" { "event" } else { wrong.field };
        errors.add(field, wrong.reason);
    }
    errors.or(())
}

/// Returns the integration of the subscription whose id is in the path.
fn integration_of(call: &Call) -> Result<Arc<Integration>, Refusal> {
    let (integrations, id) = (call.rest().models.integrations.load(), call.id()?);
    let found = integrations.iter().find(|it| it.subscriptions.iter().any(|it| it.id == id));
    found.cloned().ok_or_else(Refusal::unknown::<Subscription>)
}

fn view_of(integration: &Integration, id: u32) -> Result<EventSubscriptionView, Refusal> {
    let found = integration.subscriptions.iter().find(|it| it.id == id);
    found.and_then(|it| subscription_view(integration, it)).ok_or_else(Refusal::unknown::<Subscription>)
}
