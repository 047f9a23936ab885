//! The records of integrations, and their checks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::digest::DIGEST_MINUTES;
use super::preset::{MAX_AGE_S, Preset};
use super::queue::PARALLEL_MAX;
use super::webhook::{METHODS, check_headers};
use crate::egress::{Distance, distance};
use crate::event::{Event, EventBody};
use crate::ids::IntegrationId;
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::template::{Template, TemplateError};

/// Maximum number of characters of a name.
const NAME_CHARS_MAX: usize = 200;
/// Maximum size of a CA certificate in PEM, in bytes.
const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of an address, a path or an option, in bytes.
const TEXT_BYTES_MAX: usize = 2_048;
/// Limits of the time that a script has, in seconds.
pub const SCRIPT_SECONDS: std::ops::RangeInclusive<u32> = 1..=600;
/// Time that a script has without another setting, in seconds.
pub const SCRIPT_SECONDS_DEFAULT: u32 = 30;
/// Limits of the time for which deliveries are tried, in seconds: up to a week.
pub const MAX_AGE_SECONDS: std::ops::RangeInclusive<u32> = 60..=604_800;
/// Maximum number of integrations.
pub const INTEGRATIONS_MAX: usize = 200;
/// An integration whose deliveries fail for this long is paused, in milliseconds.
pub const FAILING_MS_MAX: i64 = 5 * 86_400_000;
/// After a new secret was set, the old one signs as well for this long, in milliseconds.
pub const OLD_SECRET_MS: i64 = 86_400_000;

/// A target that receives events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Integration {
    pub id: IntegrationId,
    pub name: String,
    pub is_enabled: bool,
    pub target: Target,
    pub subscriptions: Vec<Subscription>,
    /// How many deliveries are attempted at a time. With 1 all stay in order, else those of each channel.
    pub parallel: u8,
    /// How long a delivery is tried, in seconds; `None` for the default of the target.
    pub max_age_s: Option<u32>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Whether an admin trusts the target with whole addresses of streams, which contain the logins of providers. It has an
    /// effect only while the target [may be trusted](Target::check_trust).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_trusted: bool,
    /// At least this many minutes pass between two messages: all events of this time are one. `None` sends each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_minutes: Option<u16>,
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Webhook(Webhook),
    Script(Script),
    Plugin(PluginAction),
}

/// An HTTP request for each event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    pub url: SourceUrl,
    /// One of [`METHODS`].
    pub method: String,
    pub headers: Vec<(String, Secret)>,
    pub preset: Option<Preset>,
    /// The options of the preset, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    pub signing: Option<Signing>,
    /// A certificate authority in PEM that the target is checked against as well.
    pub ca_certificate: Option<String>,
}

/// The secrets that sign requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signing {
    /// `whsec_` and the key in Base64.
    pub secret: Secret,
    /// The secret before it, and until when it signs too, in milliseconds since 1970.
    pub old: Option<(Secret, i64)>,
}

/// A program of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// An absolute path.
    pub path: String,
    pub working_directory: Option<String>,
    /// The time that it has, in seconds.
    pub timeout_s: u32,
}

/// An action of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginAction {
    pub key: String,
    pub action: String,
}

/// An event that an integration wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Unique in all integrations.
    pub id: u32,
    /// One of [`EventBody::NAMES`].
    pub event: String,
    pub is_enabled: bool,
    /// The template of the body; `None` for that of the preset, or the payload.
    pub template: Option<String>,
}

/// How an integration fares. It changes with deliveries, and the integration only with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrationState {
    pub id: IntegrationId,
    /// When the first delivery failed after the last one that did not, in milliseconds since 1970.
    #[serde(default)]
    pub failing_since: Option<i64>,
    /// Why nothing is attempted until an admin resumes it.
    #[serde(default)]
    pub paused: Option<String>,
}

/// A field with a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongIntegrationField {
    pub field: &'static str,
    pub reason: String,
}

impl Integration {
    /// Returns the subscription to an event, unless it is disabled.
    pub fn subscription(&self, event: &str) -> Option<&Subscription> {
        self.subscriptions.iter().find(|it| it.is_enabled && it.event == event)
    }

    /// Returns how long a delivery is tried, in seconds.
    pub fn max_age_s(&self) -> u32 {
        self.max_age_s.unwrap_or_else(|| self.preset().map_or(MAX_AGE_S, Preset::max_age_s))
    }

    /// Returns the known service that it is for.
    pub fn preset(&self) -> Option<Preset> {
        match &self.target {
            Target::Webhook(webhook) => webhook.preset,
            Target::Script(_) | Target::Plugin(_) => None,
        }
    }

    /// Returns whether the target gets whole addresses of streams.
    pub fn gets_addresses(&self) -> bool {
        self.is_trusted && self.target.check_trust().is_ok()
    }

    /// Returns the values of a template: those of the payload, the payload itself, a sentence about it, and options.
    pub fn values(&self, payload: Map<String, Value>, event_id: Uuid, summary: String) -> Map<String, Value> {
        let mut values = payload.clone();
        if let Target::Webhook(webhook) = &self.target {
            values.extend(webhook.options.iter().map(|it| (it.0.clone(), it.1.clone().into())));
        }
        values.insert("event_id".to_owned(), event_id.to_string().into());
        values.insert("summary".to_owned(), summary.into());
        values.insert("payload".to_owned(), payload.into());
        values
    }

    /// Returns the values of a template for the example of an event.
    pub fn sample_values(&self, event: &str, at: i64) -> Option<Map<String, Value>> {
        let body = EventBody::sample(event)?;
        let summary = body.summary();
        let Ok(Value::Object(payload)) = serde_json::to_value(Event { at, body }) else { return None };
        Some(self.values(payload, Uuid::nil(), summary))
    }

    /// Reads the template of an event and tries it with values that could break it.
    ///
    /// # Errors
    /// Its syntax is wrong, it uses values that the event does not have, or its JSON breaks.
    pub fn check_template(&self, event: &str, template: &str, at: i64) -> Result<(), TemplateError> {
        let values = self.sample_values(event, at).unwrap_or_default();
        let names: Vec<&str> = values.keys().map(String::as_str).collect();
        Template::parse(template, Some(&names))?.check(&values)
    }

    /// Checks all fields but those that only the machine can tell: whether a script may run.
    ///
    /// # Errors
    /// Each field with a value that cannot be used.
    pub fn check(&self, now: i64) -> Result<(), Vec<WrongIntegrationField>> {
        let mut wrong = Vec::new();
        let mut refuse = |field, reason: String| wrong.push(WrongIntegrationField { field, reason });
        if self.name.trim().is_empty() {
            refuse("name", "This field may not be blank.".to_owned());
        } else if self.name.chars().count() > NAME_CHARS_MAX {
            refuse("name", format!("At most {NAME_CHARS_MAX} characters are allowed."));
        }
        if !(1..=PARALLEL_MAX).contains(&self.parallel) {
            refuse("parallel", format!("Choose a number from 1 to {PARALLEL_MAX}."));
        }
        if self.max_age_s.is_some_and(|it| !MAX_AGE_SECONDS.contains(&it)) {
            let (min, max) = (MAX_AGE_SECONDS.start(), MAX_AGE_SECONDS.end());
            refuse("max_age", format!("Choose a number of seconds from {min} to {max}."));
        }
        if self.digest_minutes.is_some_and(|it| !DIGEST_MINUTES.contains(&it)) {
            let (min, max) = (DIGEST_MINUTES.start(), DIGEST_MINUTES.end());
            refuse("digest_minutes", format!("Choose a number of minutes from {min} to {max}."));
        }
        match &self.target {
            Target::Webhook(webhook) => webhook.check(&mut refuse),
            Target::Script(script) => script.check(&mut refuse),
            Target::Plugin(action) => {
                for (field, text) in [("plugin", &action.key), ("action", &action.action)] {
                    if text.is_empty() {
                        refuse(field, "This field may not be blank.".to_owned());
                    }
                }
            }
        }
        for (n, subscription) in self.subscriptions.iter().enumerate() {
            let event = &subscription.event;
            if !EventBody::NAMES.contains(&&**event) {
                let event: String = event.chars().take(64).collect();
                refuse("subscriptions", format!("Unknown event {event:?}."));
            } else if self.subscriptions[..n].iter().any(|it| it.event == *event) {
                refuse("subscriptions", format!("The event {event:?} is there twice."));
            } else if let Some(template) = &subscription.template
                && let Err(fault) = self.check_template(event, template, now)
            {
                refuse("payload_template", format!("{event}: {fault}"));
            }
        }
        if self.is_trusted
            && let Err(reason) = self.target.check_trust()
        {
            wrong.push(WrongIntegrationField { field: "trusted", reason: reason.to_owned() });
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl Target {
    /// Checks that nobody between the gateway and the target can read what it gets: it runs on this machine, is reached by
    /// HTTPS, or is in a private network. The name of a host is checked when it is resolved.
    ///
    /// # Errors
    /// The reason for people.
    pub fn check_trust(&self) -> Result<(), &'static str> {
        let Self::Webhook(webhook) = self else { return Ok(()) };
        let address = webhook.url.host().and_then(|it| it.parse::<IpAddr>().ok());
        let is_public = address.is_some_and(|it| distance(it) == Some(Distance::Public));
        match webhook.url.scheme().eq_ignore_ascii_case("https") || !is_public {
            true => Ok(()),
            false => Err("Addresses with logins are sent only by HTTPS, or into a private network."),
        }
    }

    /// Returns whether an address leads to the same server, or it is the same script or plugin. Trust is for this one.
    pub fn is_same_recipient(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Webhook(one), Self::Webhook(other)) => one.url.to_string() == other.url.to_string(),
            (Self::Script(one), Self::Script(other)) => one.path == other.path,
            (Self::Plugin(one), Self::Plugin(other)) => one.key == other.key,
            _ => false,
        }
    }
}

impl Webhook {
    fn check(&self, refuse: &mut impl FnMut(&'static str, String)) {
        let is_long = self.url.expose().len() > TEXT_BYTES_MAX;
        if is_long || !self.url.is_http() || self.url.host().is_none() {
            refuse("url", "Enter an address that begins with http:// or https://.".to_owned());
        }
        if !METHODS.contains(&&*self.method) {
            refuse("method", format!("Choose one of {}.", METHODS.join(", ")));
        }
        if let Err(fault) = check_headers(&self.headers) {
            refuse("headers", format!("{fault}."));
        }
        for option in self.preset.map(Preset::options).unwrap_or_default() {
            if self.options.get(*option).is_none_or(|it| it.trim().is_empty()) {
                refuse("options", format!("This service needs {option:?}."));
            }
        }
        if self.options.len() > 8
            || self.options.iter().any(|it| it.0.len() > 64 || it.1.len() > TEXT_BYTES_MAX)
        {
            refuse("options", format!("At most 8 options of {TEXT_BYTES_MAX} bytes are allowed."));
        }
        if self.ca_certificate.as_ref().is_some_and(|it| it.len() > CERTIFICATE_BYTES_MAX) {
            refuse("ca_certificate", format!("At most {CERTIFICATE_BYTES_MAX} bytes are allowed."));
        }
    }
}

impl Script {
    fn check(&self, refuse: &mut impl FnMut(&'static str, String)) {
        let is_path = |it: &str| it.starts_with('/') && it.len() <= TEXT_BYTES_MAX && !it.contains('\0');
        if !is_path(&self.path) {
            refuse("path", "Enter an absolute path.".to_owned());
        }
        if self.working_directory.as_deref().is_some_and(|it| !is_path(it)) {
            refuse("working_directory", "Enter an absolute path.".to_owned());
        }
        if !SCRIPT_SECONDS.contains(&self.timeout_s) {
            let (min, max) = (SCRIPT_SECONDS.start(), SCRIPT_SECONDS.end());
            refuse("timeout", format!("Choose a number of seconds from {min} to {max}."));
        }
    }
}

impl IntegrationState {
    /// Takes the end of an attempt. Returns whether the integration is paused by it.
    pub fn after_attempt(&mut self, is_delivered: bool, is_gone: bool, now: i64) -> bool {
        if is_delivered {
            self.failing_since = None;
            return false;
        }
        let since = *self.failing_since.get_or_insert(now);
        let reason = match () {
            () if is_gone => "the target answered that it is gone (410)",
            () if now.saturating_sub(since) >= FAILING_MS_MAX => "all deliveries failed for five days",
            () => return false,
        };
        self.paused.get_or_insert_with(|| reason.to_owned());
        true
    }

    /// Resumes a paused integration.
    pub fn resume(&mut self) {
        (self.paused, self.failing_since) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook() -> Integration {
        let url = SourceUrl::new("https://hooks.example/hidden");
        let (method, headers) = ("POST".to_owned(), vec![("X-Key".to_owned(), Secret::new("hidden"))]);
        let target = Webhook {
            url,
            method,
            headers,
            preset: None,
            options: BTreeMap::new(),
            signing: Some(Signing { secret: Secret::new("whsec_hidden"), old: None }),
            ca_certificate: None,
        };
        Integration {
            id: IntegrationId(1),
            name: "Chat".to_owned(),
            is_enabled: true,
            target: Target::Webhook(target),
            subscriptions: vec![subscription("channel_start", None)],
            parallel: 1,
            max_age_s: None,
            created_at: 0,
            is_trusted: false,
            digest_minutes: None,
        }
    }

    #[test]
    fn only_targets_that_nobody_overhears_can_be_trusted() {
        let to = |url: &str| match webhook().target {
            Target::Webhook(webhook) => Target::Webhook(Webhook { url: SourceUrl::new(url), ..webhook }),
            other => other,
        };
        let script =
            Target::Script(Script { path: "/srv/a.sh".to_owned(), working_directory: None, timeout_s: 1 });
        for (target, may_be) in [
            (to("https://hooks.example/a"), true),
            (to("https://203.0.113.9/a"), true),
            (to("http://8.8.8.8/a"), false),
            (to("http://[2606:4700::1111]/a"), false),
            (to("http://192.168.1.5:8123/a"), true),
            (to("http://127.0.0.1/a"), true),
            // Its address is known only when it is resolved.
            (to("http://home-assistant.lan/a"), true),
            (script, true),
        ] {
            let integration = Integration { target, is_trusted: true, ..webhook() };
            assert_eq!(integration.gets_addresses(), may_be, "{:?}", integration.target);
            let wrong = integration.check(0).err().unwrap_or_default();
            assert_eq!(wrong.iter().any(|it| it.field == "trusted"), !may_be, "{wrong:?}");
            assert!(!Integration { is_trusted: false, ..integration }.gets_addresses());
        }
        assert!(to("https://a.example/1").is_same_recipient(&to("https://a.example/2")));
        assert!(!to("https://a.example/1").is_same_recipient(&to("http://a.example/1")));
    }

    fn subscription(event: &str, template: Option<&str>) -> Subscription {
        Subscription {
            id: 1,
            event: event.to_owned(),
            is_enabled: true,
            template: template.map(str::to_owned),
        }
    }

    fn wrong(integration: &Integration) -> Vec<&'static str> {
        integration.check(0).err().unwrap_or_default().into_iter().map(|it| it.field).collect()
    }

    #[test]
    fn wrong_fields_are_named() {
        let good = webhook();
        assert_eq!(good.check(0), Ok(()));
        let with = |change: &dyn Fn(&mut Integration)| {
            let mut integration = webhook();
            change(&mut integration);
            wrong(&integration)
        };
        let webhook_with = |change: &dyn Fn(&mut Webhook)| {
            with(&|it| {
                if let Target::Webhook(webhook) = &mut it.target {
                    change(webhook);
                }
            })
        };
        assert_eq!(with(&|it| it.name = "  ".to_owned()), ["name"]);
        assert_eq!(with(&|it| it.parallel = 9), ["parallel"]);
        assert_eq!(with(&|it| it.max_age_s = Some(1)), ["max_age"]);
        assert_eq!(webhook_with(&|it| it.url = SourceUrl::new("ftp://a/b")), ["url"]);
        assert_eq!(webhook_with(&|it| it.method = "BREW".to_owned()), ["method"]);
        assert_eq!(webhook_with(&|it| it.headers[0].0 = "Host".to_owned()), ["headers"]);
        assert_eq!(webhook_with(&|it| it.preset = Some(Preset::Telegram)), ["options"]);
        let subscribed = |them: &[(&str, Option<&str>)]| {
            with(&|it| it.subscriptions = them.iter().map(|it| subscription(it.0, it.1)).collect())
        };
        assert_eq!(subscribed(&[("zzz", None)]), ["subscriptions"]);
        assert_eq!(subscribed(&[("vod_stop", None), ("vod_stop", None)]), ["subscriptions"]);
        assert_eq!(subscribed(&[("vod_stop", Some("{{ channel_name }}"))]), ["payload_template"]);
        assert!(subscribed(&[("vod_stop", Some("{{ content_name }} {{ summary }}"))]).is_empty());
        let script = |path: &str, timeout_s| {
            let script =
                Script { path: path.to_owned(), working_directory: Some("tmp".to_owned()), timeout_s };
            wrong(&Integration { target: Target::Script(script), ..webhook() })
        };
        assert_eq!(script("run.sh", 0), ["path", "working_directory", "timeout"]);
        assert_eq!(script("/srv/run.sh", 600), ["working_directory"]);
        assert!(!format!("{good:?}").contains("hidden"), "{good:?}");
    }

    #[test]
    fn an_integration_that_fails_for_days_is_paused() {
        let mut state = IntegrationState { id: IntegrationId(1), failing_since: None, paused: None };
        assert!(!state.after_attempt(false, false, 1_000));
        assert!(!state.after_attempt(false, false, FAILING_MS_MAX));
        assert!(!state.after_attempt(true, false, FAILING_MS_MAX));
        assert!(!state.after_attempt(false, false, 2_000));
        assert!(state.after_attempt(false, false, 2_000 + FAILING_MS_MAX) && state.paused.is_some());
        state.resume();
        assert!(state.after_attempt(false, true, 5) && state.paused.is_some_and(|it| it.contains("410")));
    }
}
