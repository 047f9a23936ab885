//! `/api/connect/preview/`, and what templates can use: `/api/connect/presets/` and `/api/connect/events/`.

use actors::now_ms;
use domain::ids::IntegrationId;
use domain::integration::{Integration, Preset, Target};
use domain::template::{Filter, Template, TemplateError};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::edit::{blank_webhook, options_of};
use super::integrations::blank_integration;
use super::view::EventName;
use crate::choice::{Choice, Named};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// A template to try with the sample of an event.
#[derive(Debug, Body)]
pub(crate) struct TemplateTrial {
    /// The event.
    #[field(example = "channel_start")]
    event: Named<EventName>,
    /// The template; `null` selects that of the preset, or the payload of the event.
    #[field(blank, chars_max = 65_536, example = "{\"text\": \"{{ channel_name }}\"}")]
    payload_template: Option<Option<String>>,
    /// Id of an integration whose preset and options apply where the body has none.
    #[field(example = "1")]
    integration: Option<Option<IntegrationId>>,
    /// The preset.
    preset: Option<Option<Named<Preset>>>,
    /// Options of the preset. One that is missing has its name as value.
    options: Option<Map<String, Value>>,
}

/// The text that a template makes of the sample of an event.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TemplatePreviewView {
    /// The text; `null` if the template has a fault.
    #[field(example = "{\"text\": \"News\"}")]
    rendered: Option<String>,
    /// Whether the text is JSON.
    is_json: bool,
    /// Whether the text is blank, so that nothing would be sent.
    is_blank: bool,
    /// The content type that it would be sent with.
    #[field(example = "application/json")]
    content_type: Option<String>,
    /// The fault, with which the template cannot be saved.
    error: Option<TemplateFaultView>,
}

/// A fault of a template.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TemplateFaultView {
    /// The first line is 1.
    #[field(example = "1")]
    line: usize,
    /// The first character of a line is 1.
    #[field(example = "14")]
    column: usize,
    /// The fault in a sentence.
    message: String,
}

/// A known service.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PresetView {
    /// Name of the preset.
    #[field(example = "telegram")]
    preset: Named<Preset>,
    /// Name of the service.
    #[field(example = "Telegram")]
    label: &'static str,
    /// Options that an integration has to have.
    #[field(example = "[\"chat_id\"]")]
    options: Vec<&'static str>,
    /// The template of the body.
    payload_template: &'static str,
    /// The content type of the body.
    #[field(example = "application/json")]
    content_type: &'static str,
    /// Least time between two messages, in milliseconds.
    #[field(example = "3000")]
    pause_ms: u32,
    /// Seconds for which a delivery is tried.
    #[field(example = "3600")]
    max_age: u32,
}

/// An event that integrations can subscribe to.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ConnectEventView {
    /// Name of the event.
    #[field(example = "channel_start")]
    event: Named<EventName>,
    /// A sentence about the sample.
    #[field(example = "News plays \"News 1\" of Provider.")]
    summary: String,
    /// A sample of the payload. Its keys are values of templates, besides `summary` and `payload`.
    payload: Map<String, Value>,
    /// Names of the filters of templates.
    #[field(example = "[\"replace\", \"title\"]")]
    filters: Vec<&'static str>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/api/connect/preview/",
            ADMIN,
            "Returns the text that a template makes of the sample of an event.",
            preview,
        )
        .with_properties_body()
        .that_reads(),
        Route::get("/api/connect/presets/", ADMIN, "Lists known services.", presets),
        Route::get("/api/connect/events/", ADMIN, "Lists events with their samples.", events),
    ]
}

async fn preview(call: Call, trial: TemplateTrial) -> Result<TemplatePreviewView, Refusal> {
    let event = trial.event.0.name();
    let mut integration = match trial.integration.flatten() {
        Some(id) => {
            let integrations = call.rest().models.integrations.load();
            let known = integrations.get(id.0).ok_or_else(|| Refusal::no_such("integration", id))?;
            (**known).clone()
        }
        None => blank_integration(Target::Webhook(blank_webhook())),
    };
    let mut errors = FieldErrors::default();
    if let Target::Webhook(webhook) = &mut integration.target {
        if let Some(preset) = trial.preset {
            webhook.preset = preset.map(|it| it.0);
        }
        if let Some(options) = trial.options {
            webhook.options = options_of(options, &mut |field, reason| errors.add(field, reason));
        }
        for name in webhook.preset.map(Preset::options).unwrap_or_default() {
            webhook.options.entry((*name).to_owned()).or_insert_with(|| (*name).to_owned());
        }
    }
    errors.or(())?;
    let preset = integration.preset();
    let template = trial.payload_template.flatten().filter(|it| !it.is_empty());
    let template = template.as_deref().or(preset.map(Preset::template));
    let content_type = preset.map_or("application/json", Preset::content_type);
    Ok(match rendered(&integration, event, template) {
        Ok((text, is_json)) => TemplatePreviewView {
            is_blank: text.trim().is_empty(),
            content_type: Some(if is_json { content_type } else { "text/plain; charset=utf-8" }.to_owned()),
            is_json,
            rendered: Some(text),
            error: None,
        },
        Err(TemplateError { line, column, reason }) => TemplatePreviewView {
            rendered: None,
            is_json: false,
            is_blank: false,
            content_type: None,
            error: Some(TemplateFaultView { line, column, message: reason }),
        },
    })
}

/// Returns the text of a template, and whether it is JSON. Without a template it is the payload.
fn rendered(
    integration: &Integration,
    event: &str,
    template: Option<&str>,
) -> Result<(String, bool), TemplateError> {
    let now = now_ms();
    let Some(template) = template else {
        return Ok((Value::Object(sample(integration, event, now).1).to_string(), true));
    };
    integration.check_template(event, template, now)?;
    let values = integration.sample_values(event, now).unwrap_or_default();
    let rendered = Template::parse(template, None)?.render(&values)?;
    Ok((rendered.text, rendered.is_json))
}

/// Returns a sentence about the sample of an event, and its payload.
fn sample(integration: &Integration, event: &str, at: i64) -> (String, Map<String, Value>) {
    let mut values = integration.sample_values(event, at).unwrap_or_default();
    let summary = values.remove("summary").and_then(|it| it.as_str().map(str::to_owned));
    values.remove("payload");
    (summary.unwrap_or_default(), values)
}

async fn presets(call: Call, paging: WholeOrPages) -> Result<Page<PresetView>, Refusal> {
    let view = |(_, preset): (&str, Preset)| PresetView {
        preset: Named(preset),
        label: label(preset),
        options: preset.options().to_vec(),
        payload_template: preset.template(),
        content_type: preset.content_type(),
        pause_ms: u32::try_from(preset.pause().as_millis()).unwrap_or(u32::MAX),
        max_age: preset.max_age_s(),
    };
    paging.page_from(&call, Preset::ALL.map(view).into())
}

fn label(preset: Preset) -> &'static str {
    match preset {
        Preset::Discord => "Discord",
        Preset::Slack => "Slack",
        Preset::Telegram => "Telegram",
        Preset::Gotify => "Gotify",
        Preset::Ntfy => "ntfy",
        Preset::Apprise => "Apprise",
        Preset::HomeAssistant => "Home Assistant",
        Preset::CloudEvents => "CloudEvents 1.0",
    }
}

async fn events(call: Call, paging: WholeOrPages) -> Result<Page<ConnectEventView>, Refusal> {
    let integration = blank_integration(Target::Webhook(blank_webhook()));
    let now = now_ms();
    let view = |name: &&'static str| {
        let event = EventName::from_name(name)?;
        let (summary, payload) = sample(&integration, name, now);
        let filters = Filter::ALL.iter().map(|it| it.0).collect();
        Some(ConnectEventView { event: Named(event), summary, payload, filters })
    };
    paging.page_from(&call, EventName::NAMES.iter().filter_map(view).collect())
}
