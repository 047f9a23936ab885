//! The edit of an integration, checked before anything is written.

use std::collections::BTreeMap;

use actors::now_ms;
use domain::integration::{
    Integration, PluginAction, Preset, SCRIPT_SECONDS_DEFAULT, Script, Subscription, Target, Webhook,
};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use resource_derive::Body;
use route_frame::input::Element;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;

use super::view::{EventName, HIDDEN, IntegrationEdit, ShownTarget, TargetType, WebhookMethod};
use crate::choice::{Choice, Named};
use crate::record::set;

/// The field that contains the settings of the target as one object.
const CONFIG: &str = "config";

/// The settings of a target.
#[derive(Debug, Default, Body)]
struct TargetSettings {
    /// Address of a webhook.
    #[field(blank, chars_max = 2_048)]
    url: Option<Option<String>>,
    /// Method of a webhook.
    method: Option<Option<Named<WebhookMethod>>>,
    /// Headers of a webhook.
    headers: Option<Option<Map<String, Value>>>,
    /// The known service that a webhook is for.
    preset: Option<Option<Named<Preset>>>,
    /// Options of the preset.
    options: Option<Option<Map<String, Value>>>,
    /// A certificate authority in PEM.
    #[field(blank, chars_max = 65_536)]
    ca_certificate: Option<Option<String>>,
    /// Path of a script.
    #[field(blank, aliases = &["script_path"], chars_max = 2_048)]
    path: Option<Option<String>>,
    /// Folder that a script runs in.
    #[field(blank, chars_max = 2_048)]
    working_directory: Option<Option<String>>,
    /// Seconds that a script has.
    timeout: Option<Option<u32>>,
    /// Key of a plugin.
    #[field(blank, chars_max = 200)]
    plugin: Option<Option<String>>,
    /// Id of an action of the plugin.
    #[field(blank, chars_max = 200)]
    action: Option<Option<String>>,
}

/// An edit whose fields have the right types.
pub(super) struct IntegrationChange {
    edit: IntegrationEdit,
    target: TargetSettings,
    pub(super) names: FieldNames,
}

/// The names by which a client called the fields of an integration.
#[derive(Clone, Debug)]
pub(super) struct FieldNames {
    /// The settings of the target that were sent outside of `config`.
    at_top: Vec<&'static str>,
    has_config: bool,
}

impl FieldNames {
    /// Returns the field of an answer that names the reason why a field is refused. Clients that send `config` look for it
    /// there.
    pub(super) fn label(&self, name: &'static str) -> &'static str {
        let is_of_target = TargetSettings::RECORD.fields.iter().any(|it| it.name == name);
        match name {
            _ if self.has_config && is_of_target && !self.at_top.contains(&name) => CONFIG,
            "path" => "script_path",
            "subscriptions" => "events",
            "payload_template" => "payload_templates",
            other => other,
        }
    }
}

impl IntegrationChange {
    /// Reads an edit. A setting of the target at the top level outranks one in `config`, unless it is what the integration
    /// shows already: clients send whole records back.
    pub(super) fn new(mut edit: IntegrationEdit, before: Option<&Integration>) -> Result<Self, FieldErrors> {
        let config = edit.config.take();
        let has_config = config.is_some();
        let inside = config.map(|it| TargetSettings::read_element(&Value::Object(it), true));
        let mut target = inside.transpose().map_err(|it| it.inside(CONFIG))?.unwrap_or_default();
        let shown = before.map(|it| ShownTarget::new(&it.target)).unwrap_or_default();
        let mut at_top = Vec::new();
        macro_rules! take {
            ($($name:literal: $sent:expr, $shown:ident => $into:ident);+ $(;)?) => {$(
                if let Some(sent) = $sent.filter(|it| *it != shown.$shown) {
                    at_top.push($name);
                    target.$into = Some(sent.into());
                }
            )+};
        }
        take! {
            "url": edit.url.take(), url => url;
            "method": edit.method.take(), method => method;
            "headers": edit.headers.take(), headers => headers;
            "preset": edit.preset.take(), preset => preset;
            "options": edit.options.take(), options => options;
            "ca_certificate": edit.ca_certificate.take(), ca_certificate => ca_certificate;
            "path": edit.script_path.take(), path => path;
            "working_directory": edit.working_directory.take(), working_directory => working_directory;
            "timeout": edit.timeout.take(), timeout => timeout;
            "plugin": edit.plugin.take(), plugin => plugin;
            "action": edit.action.take(), action => action;
        }
        Ok(Self { edit, target, names: FieldNames { at_top, has_config } })
    }

    /// Applies the edit and checks the result, apart from what only the machine can tell. New subscriptions have the id 0.
    pub(super) fn apply(self, integration: &mut Integration) -> Result<(), FieldErrors> {
        let Self { edit, target, names } = self;
        let mut errors = FieldErrors::default();
        set(&mut integration.name, edit.name);
        set(&mut integration.is_enabled, edit.enabled);
        if let Some(parallel) = edit.parallel {
            // A number that does not fit is as wrong as the one that it becomes.
            integration.parallel = u8::try_from(parallel).unwrap_or(u8::MAX);
        }
        set(&mut integration.max_age_s, edit.max_age);
        if let Some(minutes) = edit.digest_minutes {
            integration.digest_minutes = minutes.map(|it| u16::try_from(it).unwrap_or(u16::MAX));
        }
        let before = integration.target.clone();
        let kind = edit.r#type.map_or(TargetType::from_target(&integration.target), |it| it.0);
        let mut refuse = |name: &'static str, reason: String| errors.add(names.label(name), reason);
        target.apply(kind, &mut integration.target, &mut refuse);
        // An admin trusts one target, and not the next one. Clients send whole records back, so only a change sets it.
        let is_same = integration.target.is_same_recipient(&before);
        integration.is_trusted = match edit.trusted {
            Some(trusted) if is_same || trusted != integration.is_trusted => trusted,
            _ => integration.is_trusted && is_same,
        };
        if let Some(events) = edit.events {
            subscribe(&mut integration.subscriptions, &events);
        }
        if let Some(templates) = edit.payload_templates {
            set_templates(&mut integration.subscriptions, templates, &mut refuse);
        }
        for wrong in integration.check(now_ms()).err().unwrap_or_default() {
            refuse(wrong.field, wrong.reason);
        }
        errors.or(())
    }
}

impl TargetSettings {
    /// Changes the target, or replaces it by one of another type.
    fn apply(self, kind: TargetType, target: &mut Target, refuse: &mut impl FnMut(&'static str, String)) {
        match kind {
            TargetType::Webhook => {
                let mut webhook = match target {
                    Target::Webhook(webhook) => webhook.clone(),
                    Target::Script(_) | Target::Plugin(_) => blank_webhook(),
                };
                self.apply_to_webhook(&mut webhook, refuse);
                *target = Target::Webhook(webhook);
            }
            TargetType::Script => {
                let mut script = match target {
                    Target::Script(script) => script.clone(),
                    Target::Webhook(_) | Target::Plugin(_) => blank_script(),
                };
                set(&mut script.path, self.path.map(Option::unwrap_or_default));
                set(&mut script.working_directory, self.working_directory.map(filled));
                set(&mut script.timeout_s, self.timeout.map(|it| it.unwrap_or(SCRIPT_SECONDS_DEFAULT)));
                *target = Target::Script(script);
            }
            TargetType::Plugin => {
                let mut action = match target {
                    Target::Plugin(action) => action.clone(),
                    Target::Webhook(_) | Target::Script(_) => {
                        PluginAction { key: String::new(), action: String::new() }
                    }
                };
                set(&mut action.key, self.plugin.map(Option::unwrap_or_default));
                set(&mut action.action, self.action.map(Option::unwrap_or_default));
                *target = Target::Plugin(action);
            }
        }
    }

    fn apply_to_webhook(self, webhook: &mut Webhook, refuse: &mut impl FnMut(&'static str, String)) {
        if let Some(url) = self.url.map(Option::unwrap_or_default)
            && url != webhook.url.to_string()
        {
            // What an answer shows instead of the path.
            if url.contains('…') {
                refuse("url", "Enter the whole address.".to_owned());
            }
            webhook.url = SourceUrl::new(url);
        }
        set(
            &mut webhook.method,
            self.method.map(|it| it.map_or(WebhookMethod::Post, |it| it.0).name().to_owned()),
        );
        if let Some(headers) = self.headers.map(Option::unwrap_or_default) {
            webhook.headers = headers_of(headers, &webhook.headers, refuse);
        }
        set(&mut webhook.preset, self.preset.map(|it| it.map(|it| it.0)));
        if let Some(options) = self.options.map(Option::unwrap_or_default) {
            webhook.options = options_of(options, refuse);
        }
        set(&mut webhook.ca_certificate, self.ca_certificate.map(filled));
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|it| !it.is_empty())
}

/// A webhook without an address, which has to be set.
pub(super) fn blank_webhook() -> Webhook {
    Webhook {
        url: SourceUrl::new(""),
        method: WebhookMethod::Post.name().to_owned(),
        headers: Vec::new(),
        preset: None,
        options: BTreeMap::new(),
        signing: None,
        ca_certificate: None,
    }
}

fn blank_script() -> Script {
    Script { path: String::new(), working_directory: None, timeout_s: SCRIPT_SECONDS_DEFAULT }
}

/// Reads headers. A hidden value is the one that the header has.
fn headers_of(
    sent: Map<String, Value>,
    known: &[(String, Secret)],
    refuse: &mut impl FnMut(&'static str, String),
) -> Vec<(String, Secret)> {
    let mut headers = Vec::new();
    for (name, value) in sent {
        let shown: String = name.chars().take(64).collect();
        match value.as_str() {
            Some(HIDDEN) => match known.iter().find(|it| it.0.eq_ignore_ascii_case(&name)) {
                Some(known) => headers.push((name, known.1.clone())),
                None => refuse("headers", format!("Enter the value of the header {shown:?}.")),
            },
            Some(text) => headers.push((name, Secret::new(text))),
            None => refuse("headers", format!("The value of the header {shown:?} is not a text.")),
        }
    }
    headers
}

/// Reads options. Numbers, such as the id of a chat, count as texts.
pub(super) fn options_of(
    sent: Map<String, Value>,
    refuse: &mut impl FnMut(&'static str, String),
) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    for (name, value) in sent {
        match value {
            Value::String(text) => drop(options.insert(name, text)),
            Value::Number(number) => drop(options.insert(name, number.to_string())),
            _ => {
                let name: String = name.chars().take(64).collect();
                refuse("options", format!("The value of the option {name:?} is not a text."));
            }
        }
    }
    options
}

/// Enables the subscriptions to these events and removes other enabled ones. Disabled ones stay with their templates.
fn subscribe(subscriptions: &mut Vec<Subscription>, events: &[Named<EventName>]) {
    let is_wanted = |event: &str| events.iter().any(|it| it.0.name() == event);
    subscriptions.retain(|it| !it.is_enabled || is_wanted(&it.event));
    for event in events {
        match subscriptions.iter_mut().find(|it| it.event == event.0.name()) {
            Some(known) => known.is_enabled = true,
            None => subscriptions.push(Subscription {
                id: 0,
                event: event.0.name().to_owned(),
                is_enabled: true,
                template: None,
            }),
        }
    }
}

/// Sets the templates by event, and removes all others.
fn set_templates(
    subscriptions: &mut [Subscription],
    mut sent: Map<String, Value>,
    refuse: &mut impl FnMut(&'static str, String),
) {
    for subscription in subscriptions {
        subscription.template = match sent.remove(&subscription.event) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => filled(Some(text)),
            Some(_) => {
                refuse("payload_templates", format!("{}: This is not a text.", subscription.event));
                None
            }
        };
    }
    for (event, template) in sent {
        let event: String = event.chars().take(64).collect();
        if EventName::from_name(&event).is_none() {
            refuse("payload_templates", format!("Unknown event {event:?}."));
        } else if template.as_str().is_some_and(|it| !it.is_empty()) {
            refuse("payload_templates", format!("{event}: The integration does not receive this event."));
        }
    }
}
