//! The fields of integrations and subscriptions, and their views.

use std::sync::Arc;

use actors::{IntegrationStatus, now_ms};
use domain::ids::IntegrationId;
use domain::integration::{Integration, IntegrationState, Preset, Subscription, Target};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use storage::Table;

use crate::choice::{Choice, Named, choice};
use crate::context::RestCall;
use crate::record::{Lookup, Render};

choice!(
    /// Where events go.
    enum TargetType {
        Webhook = "webhook",
        Script = "script",
        Plugin = "plugin",
    }
);

choice!(
    /// How an integration fares.
    enum State {
        Ok = "ok",
        Failing = "failing",
        Paused = "paused",
        Disabled = "disabled",
    }
);

choice!(
    /// The methods of webhooks.
    enum WebhookMethod {
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Get = "GET",
        Delete = "DELETE",
    }
);

choice!(Preset {
    Discord = "discord",
    Slack = "slack",
    Telegram = "telegram",
    Gotify = "gotify",
    Ntfy = "ntfy",
    Apprise = "apprise",
    HomeAssistant = "home_assistant",
    CloudEvents = "cloudevents",
});

choice!(
    /// The events that integrations can subscribe to.
    enum EventName {
        ChannelStart = "channel_start",
        ChannelStop = "channel_stop",
        ChannelReconnect = "channel_reconnect",
        ChannelError = "channel_error",
        ChannelFailover = "channel_failover",
        StreamSwitch = "stream_switch",
        RecordingStart = "recording_start",
        RecordingEnd = "recording_end",
        EpgRefresh = "epg_refresh",
        M3uRefresh = "m3u_refresh",
        ClientConnect = "client_connect",
        ClientDisconnect = "client_disconnect",
        LoginFailed = "login_failed",
        EpgBlocked = "epg_blocked",
        M3uBlocked = "m3u_blocked",
        VodStart = "vod_start",
        VodStop = "vod_stop",
        NodeState = "node_state",
        RecordingReady = "recording_ready",
        RecordingFailed = "recording_failed",
        EpgError = "epg_error",
        M3uError = "m3u_error",
        AccountFull = "account_full",
        StreamUnhealthy = "stream_unhealthy",
        DiskLow = "disk_low",
        BackupDone = "backup_done",
        BackupFailed = "backup_failed",
        ChannelCreated = "channel_created",
        ChannelChanged = "channel_changed",
        ChannelRemoved = "channel_removed",
        UserLogin = "user_login",
        PluginRun = "plugin_run",
        ViewingEnded = "viewing_ended",
    }
);

/// An integration: a webhook, a script or an action of a plugin that receives events.
///
/// The settings of the target are fields of their own and members of `config`, which clients may send instead. Secrets are
/// never returned: an address shows its host only, and the values of headers are `***`. Sent back like this, they stay.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewIntegration, edit = IntegrationEdit)]
pub(crate) struct IntegrationView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: IntegrationId,
    /// Name of the integration.
    #[field(required, chars_max = 200, example = "Chat")]
    pub(super) name: String,
    /// `webhook` sends a request, `script` runs a program of the operator, `plugin` runs an action of a plugin.
    #[field(required, example = "webhook")]
    pub(super) r#type: Named<TargetType>,
    /// A disabled integration receives no new events. Those that wait stay until it is enabled.
    #[field(edit)]
    pub(super) enabled: bool,
    /// Address of a webhook. Answers show its host only.
    #[field(edit, blank, chars_max = 2_048, example = "https://hooks.example/services/T0/B0")]
    pub(super) url: Option<String>,
    /// Method of a webhook; `POST` by default.
    #[field(edit, example = "POST")]
    pub(super) method: Option<Named<WebhookMethod>>,
    /// Headers of a webhook. Replaces all headers that were set before. Answers show `***` instead of values.
    #[field(edit)]
    pub(super) headers: Map<String, Value>,
    /// The known service that a webhook is for. It determines the body, unless an event has a template.
    #[field(edit, example = "discord")]
    pub(super) preset: Option<Named<Preset>>,
    /// Options of the preset, by name. Templates can use them.
    #[field(edit)]
    pub(super) options: Map<String, Value>,
    /// Certificate authority in PEM that the target of a webhook is checked against as well.
    #[field(edit, blank, chars_max = 65_536, example = "")]
    pub(super) ca_certificate: Option<String>,
    /// Whether requests of a webhook are signed.
    is_signed: bool,
    /// Until when requests are also signed with the secret before the present one.
    old_secret_until: Option<Time>,
    /// Absolute path of a script.
    #[field(edit, blank, aliases = &["path"], chars_max = 2_048, example = "/srv/scripts/notify.sh")]
    pub(super) script_path: Option<String>,
    /// Folder that a script runs in, as an absolute path; `null` selects the folder of the script.
    #[field(edit, blank, chars_max = 2_048, example = "/srv/scripts")]
    pub(super) working_directory: Option<String>,
    /// Seconds that a script has; 30 by default.
    #[field(edit, example = "30")]
    pub(super) timeout: Option<u32>,
    /// Key of a plugin.
    #[field(edit, blank, chars_max = 200, example = "cleaner")]
    pub(super) plugin: Option<String>,
    /// Id of an action of the plugin.
    #[field(edit, blank, chars_max = 200, example = "clean")]
    pub(super) action: Option<String>,
    /// The settings of the target as one object: `url`, `method`, `headers`, `preset`, `options` and `ca_certificate` of a
    /// webhook, `path`, `working_directory` and `timeout` of a script, `plugin` and `action` of a plugin.
    #[field(edit)]
    pub(super) config: Map<String, Value>,
    /// The events that the integration receives.
    #[field(edit, items_max = 100, example = "[\"channel_start\"]")]
    pub(super) events: Vec<Named<EventName>>,
    /// Templates of bodies by event. Replaces all templates that were set before.
    #[field(edit)]
    pub(super) payload_templates: Map<String, Value>,
    /// The subscriptions to events.
    subscriptions: Vec<EventSubscriptionView>,
    /// How many deliveries are attempted at a time. With 1 all stay in order, else those of each channel.
    #[field(edit, example = "1")]
    pub(super) parallel: u32,
    /// Seconds for which a delivery is tried; `null` is an hour for chats and a day for others.
    #[field(edit, example = "86400")]
    pub(super) max_age: Option<u32>,
    /// Minutes that pass at least between two messages, from 1 to 1440: all events of this time are one message, whose payload
    /// has `count`, `events` and `sentences`, and whose `summary` names them. Templates of events do not apply to it. `null`
    /// sends each event.
    #[field(edit, example = "null")]
    pub(super) digest_minutes: Option<u32>,
    /// Whether payloads have whole addresses of streams (`stream_url`, `channel_url`, `new_url`, `previous_stream_url`) with the
    /// logins of providers. Only for targets by HTTPS, in a private network, or on this machine; off after the target is
    /// another one. The log, dead letters, previews and tests have addresses without logins.
    #[field(edit)]
    pub(super) trusted: bool,
    /// A warning about a trusted target; `null` for one that is not trusted.
    trust_warning: Option<String>,
    /// How it fares. `failing`: the last attempt failed. `paused`: nothing is attempted until an admin resumes it.
    state: Named<State>,
    /// Why it is paused.
    paused_reason: Option<String>,
    /// When the first delivery failed after the last one that did not.
    failing_since: Option<Time>,
    /// Number of deliveries that wait.
    #[field(example = "0")]
    waiting: usize,
    /// Number of dead letters: deliveries that failed for good.
    #[field(example = "0")]
    dead: usize,
    /// When the integration was created.
    created_at: Time,
}

/// A subscription of an integration to an event.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewEventSubscription, edit = EventSubscriptionEdit)]
pub(crate) struct EventSubscriptionView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: u32,
    /// The event.
    #[field(required, example = "channel_start")]
    pub(super) event: Named<EventName>,
    /// Whether the event is delivered.
    #[field(edit)]
    pub(super) enabled: bool,
    /// Template of the body; `null` selects that of the preset, or the payload of the event.
    #[field(edit, blank, chars_max = 65_536, example = "{\"text\": \"{{ channel_name }}\"}")]
    pub(super) payload_template: Option<String>,
    /// Id of the integration.
    #[field(required, example = "1")]
    pub(super) integration: IntegrationId,
}

/// Warns in the answer about a target that is trusted.
const TRUST_WARNING: &str = "This target gets the whole addresses of streams, with the logins at the providers. \
                             Everybody who reads what it gets can use them.";

/// Replaces the values of headers in answers.
pub(super) const HIDDEN: &str = "***";

/// Data that views of integrations depend on.
pub(crate) struct IntegrationLookup {
    states: Arc<Table<IntegrationState>>,
    statuses: Vec<IntegrationStatus>,
    now: i64,
}

impl Lookup for IntegrationLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self {
            states: call.rest().models.integration_states.load(),
            statuses: call.rest().operation.integrations.statuses(),
            now: now_ms(),
        })
    }
}

impl Render for Integration {
    type View = IntegrationView;
    type Lookup = IntegrationLookup;

    fn view(&self, lookup: &IntegrationLookup) -> IntegrationView {
        let state = lookup.states.get(self.id.0);
        let (stored, failing_since) =
            state.map(|it| (it.paused.clone(), it.failing_since)).unwrap_or_default();
        let status = lookup.statuses.iter().find(|it| it.id == self.id);
        // A missing plugin is not a stored state.
        let paused = stored.or_else(|| status?.paused.clone().filter(|_| is_plugin(&self.target)));
        let signing = match &self.target {
            Target::Webhook(webhook) => webhook.signing.as_ref(),
            Target::Script(_) | Target::Plugin(_) => None,
        };
        let old_until = signing.and_then(|it| it.old.as_ref()).map(|it| it.1);
        let shown = ShownTarget::new(&self.target);
        let enabled = self.subscriptions.iter().filter(|it| it.is_enabled);
        let templates = self.subscriptions.iter().filter_map(|it| Some((&it.event, it.template.as_ref()?)));
        IntegrationView {
            id: self.id,
            name: self.name.clone(),
            r#type: Named(TargetType::from_target(&self.target)),
            enabled: self.is_enabled,
            config: shown.config(&self.target),
            url: shown.url,
            method: shown.method,
            headers: shown.headers,
            preset: shown.preset,
            options: shown.options,
            ca_certificate: shown.ca_certificate,
            is_signed: signing.is_some(),
            old_secret_until: old_until.filter(|it| *it > lookup.now).map(Time),
            script_path: shown.path,
            working_directory: shown.working_directory,
            timeout: shown.timeout,
            plugin: shown.plugin,
            action: shown.action,
            events: enabled.filter_map(|it| EventName::from_name(&it.event)).map(Named).collect(),
            payload_templates: templates.map(|it| (it.0.clone(), it.1.clone().into())).collect(),
            subscriptions: self.subscriptions.iter().filter_map(|it| subscription_view(self, it)).collect(),
            parallel: self.parallel.into(),
            max_age: self.max_age_s,
            digest_minutes: self.digest_minutes.map(u32::from),
            trusted: self.is_trusted,
            trust_warning: self.is_trusted.then(|| TRUST_WARNING.to_owned()),
            state: Named(match (self.is_enabled, &paused, failing_since) {
                (false, ..) => State::Disabled,
                (true, Some(_), _) => State::Paused,
                (true, None, Some(_)) => State::Failing,
                (true, None, None) => State::Ok,
            }),
            paused_reason: paused,
            failing_since: failing_since.map(Time),
            waiting: status.map_or(0, |it| it.n_waiting),
            dead: status.map_or(0, |it| it.n_dead),
            created_at: Time(self.created_at),
        }
    }
}

fn is_plugin(target: &Target) -> bool {
    matches!(target, Target::Plugin(_))
}

/// Returns the view of a subscription. `None` for an event of another version of the gateway.
pub(super) fn subscription_view(
    integration: &Integration,
    subscription: &Subscription,
) -> Option<EventSubscriptionView> {
    Some(EventSubscriptionView {
        id: subscription.id,
        event: Named(EventName::from_name(&subscription.event)?),
        enabled: subscription.is_enabled,
        payload_template: subscription.template.clone(),
        integration: integration.id,
    })
}

impl TargetType {
    pub(super) fn from_target(target: &Target) -> Self {
        match target {
            Target::Webhook(_) => Self::Webhook,
            Target::Script(_) => Self::Script,
            Target::Plugin(_) => Self::Plugin,
        }
    }
}

/// The settings of a target as answers show them: without secrets.
#[derive(Default)]
pub(super) struct ShownTarget {
    pub(super) url: Option<String>,
    pub(super) method: Option<Named<WebhookMethod>>,
    pub(super) headers: Map<String, Value>,
    pub(super) preset: Option<Named<Preset>>,
    pub(super) options: Map<String, Value>,
    pub(super) ca_certificate: Option<String>,
    pub(super) path: Option<String>,
    pub(super) working_directory: Option<String>,
    pub(super) timeout: Option<u32>,
    pub(super) plugin: Option<String>,
    pub(super) action: Option<String>,
}

impl ShownTarget {
    pub(super) fn new(target: &Target) -> Self {
        match target {
            Target::Webhook(webhook) => Self {
                url: Some(webhook.url.to_string()),
                method: WebhookMethod::from_name(&webhook.method).map(Named),
                headers: webhook.headers.iter().map(|it| (it.0.clone(), HIDDEN.into())).collect(),
                preset: webhook.preset.map(Named),
                options: webhook.options.iter().map(|it| (it.0.clone(), it.1.clone().into())).collect(),
                ca_certificate: webhook.ca_certificate.clone(),
                ..Self::default()
            },
            Target::Script(script) => Self {
                path: Some(script.path.clone()),
                working_directory: script.working_directory.clone(),
                timeout: Some(script.timeout_s),
                ..Self::default()
            },
            Target::Plugin(action) => Self {
                plugin: Some(action.key.clone()),
                action: Some(action.action.clone()),
                ..Self::default()
            },
        }
    }

    /// Returns the settings of this type of target as one object.
    fn config(&self, target: &Target) -> Map<String, Value> {
        let config = match target {
            Target::Webhook(_) => json!({
                "url": self.url, "method": self.method, "headers": self.headers, "preset": self.preset,
                "options": self.options, "ca_certificate": self.ca_certificate,
            }),
            Target::Script(_) => json!({
                "path": self.path, "working_directory": self.working_directory, "timeout": self.timeout,
            }),
            Target::Plugin(_) => json!({ "plugin": self.plugin, "action": self.action }),
        };
        match config {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::event::EventBody;
    use domain::integration::METHODS;

    use super::*;

    #[test]
    fn the_names_of_the_api_are_those_of_the_gateway() {
        assert_eq!(EventName::NAMES, EventBody::NAMES);
        assert_eq!(WebhookMethod::NAMES, METHODS);
        assert_eq!(Preset::NAMES, Preset::ALL.map(|it| it.0));
    }
}
