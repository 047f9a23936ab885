//! `/api/connect/integrations/`: targets that receive events.

use std::sync::Arc;

use actors::now_ms;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::ids::IntegrationId;
use domain::integration::{
    INTEGRATIONS_MAX, Integration, IntegrationState, OLD_SECRET_MS, PluginAction, Signing, Target, Webhook,
    WrongIntegrationField,
};
use domain::secret::Secret;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::{ShownSecret, Time};
use serde::Serialize;
use server::reply::Refusal;
use services::auth::random;
use storage::Write;
use storage::records::remove_integration;

use super::edit::{FieldNames, IntegrationChange, blank_webhook};
use super::view::{IntegrationEdit, IntegrationView, NewIntegration, TargetType};
use crate::choice::Named;
use crate::context::RestCall;
use crate::list::{Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find};

const LIST: &str = "/api/connect/integrations/";
const ONE: &str = "/api/connect/integrations/{id}/";
const RESUME: &str = "/api/connect/integrations/{id}/resume/";
const SECRET: &str = "/api/connect/integrations/{id}/secret/";

/// Number of bytes of a generated key. Standard Webhooks names 24 to 64.
const KEY_BYTES: usize = 32;
/// The beginning of a signing secret.
const SECRET_PREFIX: &str = "whsec_";

/// Filters of the list of integrations.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Type of the integrations.
    r#type: Option<Named<TargetType>>,
    /// Whether they are enabled.
    enabled: Option<bool>,
}

/// A new secret for the signatures of a webhook.
#[derive(Debug, Body)]
pub(crate) struct NewSecret {
    /// A secret of the target: `whsec_` and 24 to 64 bytes in Base64. Leave it out to get a new one.
    #[field(chars_max = 128)]
    secret: Option<Secret>,
}

/// The secret that signs the requests of a webhook. This is the only answer that contains it.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SigningSecretView {
    /// `whsec_` and the key in Base64.
    #[field(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: ShownSecret,
    /// Until when requests are also signed with the secret before it.
    old_secret_until: Option<Time>,
}

pub(super) fn routes() -> Vec<Route> {
    const UNSIGNED: &str = "Only webhooks have a secret.";
    vec![
        Route::get(LIST, ADMIN, "Lists integrations.", list),
        Route::post(LIST, ADMIN, "Creates an integration.", create).with_properties_body(),
        Route::get(ONE, ADMIN, "Returns an integration.", retrieve),
        Route::put(ONE, ADMIN, "Updates an integration.", update).with_properties_body(),
        Route::patch(ONE, ADMIN, "Partially updates an integration.", update).with_properties_body(),
        Route::delete(ONE, ADMIN, "Deletes an integration with its deliveries and its log.", delete),
        Route::post(RESUME, ADMIN, "Starts a paused integration again.", resume),
        Route::post(
            SECRET,
            ADMIN,
            "Sets a new secret for signatures. The one before it signs as well for a day.",
            rotate_secret,
        )
        .refuses(StatusCode::BAD_REQUEST, UNSIGNED),
        Route::delete(SECRET, ADMIN, "Removes the secrets. Further requests are unsigned.", remove_secret)
            .refuses(StatusCode::BAD_REQUEST, UNSIGNED),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<IntegrationView>, Refusal> {
    let integrations = call.rest().models.integrations.load();
    let is_of_type = |it: &Integration| {
        filters.r#type.is_none_or(|wanted| wanted.0 == TargetType::from_target(&it.target))
    };
    let found: Vec<_> = integrations
        .iter()
        .filter(|it| matches(filters.search.as_ref(), [&it.name]))
        .filter(|it| is_of_type(it) && filters.enabled.is_none_or(|wanted| wanted == it.is_enabled))
        .collect();
    let lookup = <Integration as Render>::Lookup::load(&call)?;
    paging.render_with(&call, &found, |it| it.view(&lookup))
}

async fn retrieve(call: Call) -> Result<IntegrationView, Refusal> {
    call.retrieve(&call.rest().models.integrations.load())
}

async fn create(call: Call, new: NewIntegration) -> Result<Created<IntegrationView>, Refusal> {
    let mut made = blank_integration(Target::Webhook(blank_webhook()));
    let change = IntegrationChange::new(new.into(), None)?;
    let names = change.names.clone();
    change.apply(&mut made)?;
    check_target(&call, None, &made, &names).await?;
    call.create(move |write, id| {
        if write.all::<Integration>()?.len() >= INTEGRATIONS_MAX {
            let message = format!("There are {INTEGRATIONS_MAX} integrations already. Delete one first.");
            return Err(Refusal::bad_request(message));
        }
        made.id = IntegrationId(id);
        number_subscriptions(write, &mut made)?;
        Ok(made)
    })
    .await
}

async fn update(call: Call, edit: IntegrationEdit) -> Result<IntegrationView, Refusal> {
    let before = call.rest().models.integrations.load();
    let before = before.get(call.id()?).ok_or_else(Refusal::unknown::<Integration>)?;
    let mut after = (**before).clone();
    let change = IntegrationChange::new(edit.clone(), Some(before))?;
    let names = change.names.clone();
    change.apply(&mut after)?;
    check_target(&call, Some(before), &after, &names).await?;
    call.update(move |write, integration: &mut Integration| {
        IntegrationChange::new(edit, Some(integration))?.apply(integration)?;
        number_subscriptions(write, integration)
    })
    .await
}

/// Checks what only the machine can tell of a target that is another one, or that is enabled.
async fn check_target(
    call: &Call,
    before: Option<&Arc<Integration>>,
    after: &Integration,
    names: &FieldNames,
) -> Result<(), Refusal> {
    let was_enabled = before.is_some_and(|it| it.is_enabled);
    if before.is_some_and(|it| it.target == after.target) && (was_enabled || !after.is_enabled) {
        return Ok(());
    }
    let checked = match &after.target {
        Target::Webhook(webhook) => call.rest().operation.integrations.check_webhook(webhook),
        Target::Script(script) => {
            let (integrations, script) = (call.rest().operation.integrations.clone(), script.clone());
            run_blocking("check a script", move || integrations.check_script(&script)).await?
        }
        Target::Plugin(action) => check_action(call, action).await?,
    };
    checked.map_err(|wrong| Refusal::field(names.label(wrong.field), wrong.reason))
}

/// Checks that a plugin is installed and has an action.
async fn check_action(
    call: &Call,
    action: &PluginAction,
) -> Result<Result<(), WrongIntegrationField>, Refusal> {
    let PluginAction { key, action } = action;
    let record = call.rest().models.plugins.load().one_by("key", key).cloned();
    let (context, found) = (Arc::clone(call.rest()), record.clone());
    let plugin = run_blocking("read a plugin", move || {
        let key = found?.key.clone();
        context.plugins.installed.read(&key, record)
    });
    let plugin = plugin.await?;
    let [key, action_id] = [key, action].map(|it| it.chars().take(64).collect::<String>());
    let wrong = |field, reason| Err(WrongIntegrationField { field, reason });
    Ok(match plugin {
        None => wrong("plugin", format!("There is no plugin {key:?}.")),
        Some(plugin) if plugin.actions().iter().any(|it| it.get("id").is_some_and(|it| it == action)) => {
            Ok(())
        }
        Some(_) => wrong("action", format!("The plugin {key:?} has no action {action_id:?}.")),
    })
}

/// Returns an integration without a name, an id and events.
pub(super) fn blank_integration(target: Target) -> Integration {
    Integration {
        id: IntegrationId(0),
        name: String::new(),
        is_enabled: true,
        target,
        subscriptions: Vec::new(),
        parallel: 1,
        max_age_s: None,
        created_at: now_ms(),
        is_trusted: false,
        digest_minutes: None,
    }
}

async fn resume(call: Call) -> Result<IntegrationView, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<Integration>(write, id)?;
        if let Some(mut state) = write.get::<IntegrationState>(id)? {
            state.resume();
            write.put(&state)?;
        }
        Ok(())
    })
    .await?;
    retrieve(call).await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<Integration>(write, id)?;
        remove_integration(write, IntegrationId(id))?;
        Ok(NoContent)
    })
    .await
}

async fn rotate_secret(call: Call, new: NewSecret) -> Result<SigningSecretView, Refusal> {
    let id = call.id()?;
    let secret = match new.secret {
        Some(chosen) if is_signing_secret(chosen.expose()) => chosen,
        Some(_) => {
            let message = "Enter whsec_ followed by 24 to 64 bytes in Base64.";
            return Err(Refusal::field("secret", message));
        }
        None => Secret::new(format!("{SECRET_PREFIX}{}", BASE64.encode(random::<KEY_BYTES>()))),
    };
    let until = now_ms().saturating_add(OLD_SECRET_MS);
    let shown = ShownSecret(secret.clone());
    let old_until = call
        .write(move |write| {
            let mut integration = find::<Integration>(write, id)?;
            let webhook = webhook_of(&mut integration)?;
            let old = webhook.signing.take().map(|it| (it.secret, until)).filter(|it| it.0 != secret);
            let old_until = old.as_ref().map(|it| it.1);
            webhook.signing = Some(Signing { secret, old });
            write.put(&integration)?;
            Ok(old_until)
        })
        .await?;
    Ok(SigningSecretView { secret: shown, old_secret_until: old_until.map(Time) })
}

async fn remove_secret(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        let mut integration = find::<Integration>(write, id)?;
        webhook_of(&mut integration)?.signing = None;
        write.put(&integration)?;
        Ok(NoContent)
    })
    .await
}

fn webhook_of(integration: &mut Integration) -> Result<&mut Webhook, Refusal> {
    match &mut integration.target {
        Target::Webhook(webhook) => Ok(webhook),
        Target::Script(_) | Target::Plugin(_) => Err(Refusal::bad_request("Only webhooks have a secret.")),
    }
}

/// Returns whether a text is a secret as Standard Webhooks describes it.
fn is_signing_secret(text: &str) -> bool {
    let key = text.strip_prefix(SECRET_PREFIX).and_then(|it| BASE64.decode(it).ok());
    key.is_some_and(|it| (24..=64).contains(&it.len()))
}

/// Gives new subscriptions their ids, which no other subscription ever had.
pub(super) fn number_subscriptions(
    write: &mut Write<'_>,
    integration: &mut Integration,
) -> Result<(), Refusal> {
    for subscription in integration.subscriptions.iter_mut().filter(|it| it.id == 0) {
        // Shared with the ids of integrations, because a subscription is not a record of its own.
        subscription.id = write.next_id::<Integration>()?;
    }
    Ok(())
}
