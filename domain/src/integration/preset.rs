//! The messages for known services: their templates, and how often they may be sent.

use std::time::Duration;

/// A service whose messages are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    Discord,
    Slack,
    Telegram,
    Gotify,
    Ntfy,
    Apprise,
    HomeAssistant,
    CloudEvents,
}

/// How long deliveries to chats are tried, in seconds: later nobody wants to read them.
const CHAT_MAX_AGE_S: u32 = 3_600;
/// How long other deliveries are tried, in seconds.
pub const MAX_AGE_S: u32 = 86_400;

impl Preset {
    /// All services with their names in the API.
    pub const ALL: [(&'static str, Self); 8] = [
        ("discord", Self::Discord),
        ("slack", Self::Slack),
        ("telegram", Self::Telegram),
        ("gotify", Self::Gotify),
        ("ntfy", Self::Ntfy),
        ("apprise", Self::Apprise),
        ("home_assistant", Self::HomeAssistant),
        ("cloudevents", Self::CloudEvents),
    ];

    /// Returns the template of the body. Besides the values of the event it has `summary`, a sentence about it, `event_id`,
    /// `payload`, which is all values together, and the options of the service.
    ///
    /// Limits of texts: Discord 2,000 characters (its API documentation, "Execute Webhook"); Telegram 4,096 (Bot API,
    /// `sendMessage`); ntfy 4,096 bytes, and four bytes are enough for a character ("Message limits"); Slack 40,000, of
    /// which 4,000 are recommended (`chat.postMessage`). Gotify, Apprise and Home Assistant have none.
    pub fn template(self) -> &'static str {
        match self {
            Self::Discord => {
                r#"{"content": "{{ summary|truncate:2000 }}", "allowed_mentions": {"parse": []}}"#
            }
            Self::Slack => {
                r#"{"text": "{{ summary|replace:"&","&amp;"|replace:"<","&lt;"|replace:">","&gt;"|truncate:4000 }}"}"#
            }
            Self::Telegram => r#"{"chat_id": "{{ chat_id }}", "text": "{{ summary|truncate:4096 }}"}"#,
            Self::Gotify => {
                r#"{"title": "{{ event_type|replace:"_"," "|title }}", "message": "{{ summary|truncate:4000 }}", "priority": {% if event_type in "channel_error login_failed" %}8{% else %}4{% endif %}}"#
            }
            Self::Ntfy => {
                r#"{"topic": "{{ topic }}", "title": "{{ event_type|replace:"_"," "|title }}", "message": "{{ summary|truncate:1000 }}", "priority": {% if event_type in "channel_error login_failed" %}4{% else %}3{% endif %}}"#
            }
            Self::Apprise => {
                r#"{"title": "{{ event_type|replace:"_"," "|title }}", "body": "{{ summary|truncate:4000 }}", "type": "{% if event_type == "channel_error" %}failure{% elif event_type in "login_failed channel_failover m3u_blocked epg_blocked" %}warning{% else %}info{% endif %}"}"#
            }
            Self::HomeAssistant => "{{ payload|tojson }}",
            Self::CloudEvents => {
                r#"{"specversion": "1.0", "id": "{{ event_id }}", "source": "/headwater", "type": "headwater.{{ event_type }}", "time": "{{ timestamp }}", "datacontenttype": "application/json", "data": {{ payload|tojson }}}"#
            }
        }
    }

    /// Returns the content type of the body.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::CloudEvents => "application/cloudevents+json",
            _ => "application/json",
        }
    }

    /// Returns the options that an admin has to give.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Telegram => &["chat_id"],
            Self::Ntfy => &["topic"],
            _ => &[],
        }
    }

    /// Returns the least time between two messages: Discord allows 5 in 2 seconds, Slack one a second, Telegram 20 a minute
    /// in a group, and ntfy.sh one in 5 seconds after a burst.
    pub fn pause(self) -> Duration {
        Duration::from_millis(match self {
            Self::Discord => 400,
            Self::Slack => 1_000,
            Self::Telegram => 3_000,
            Self::Ntfy => 5_000,
            Self::Gotify | Self::Apprise | Self::HomeAssistant | Self::CloudEvents => 0,
        })
    }

    /// Returns how long deliveries are tried, in seconds.
    pub fn max_age_s(self) -> u32 {
        match self {
            Self::HomeAssistant | Self::CloudEvents => MAX_AGE_S,
            _ => CHAT_MAX_AGE_S,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::event::{Event, EventBody};
    use crate::template::Template;

    fn values(body: &EventBody) -> Map<String, Value> {
        let payload = serde_json::to_value(Event { at: 0, body: body.clone() }).unwrap();
        let mut values = payload.as_object().unwrap().clone();
        values.insert("payload".into(), payload);
        values.insert("summary".into(), body.summary().into());
        for name in ["event_id", "chat_id", "topic"] {
            values.insert(name.into(), name.into());
        }
        values
    }

    #[test]
    fn every_service_gets_json_for_every_event() {
        for (name, preset) in Preset::ALL {
            for event in EventBody::NAMES {
                let values = values(&EventBody::sample(event).unwrap());
                let names: Vec<&str> = values.keys().map(String::as_str).collect();
                let template = Template::parse(preset.template(), Some(&names))
                    .unwrap_or_else(|fault| panic!("{name} {event}: {fault}"));
                template.check(&values).unwrap_or_else(|fault| panic!("{name} {event}: {fault}"));
                assert!(template.render(&values).unwrap().is_json, "{name} {event}");
            }
        }
    }

    #[test]
    fn texts_are_as_long_as_the_service_takes() {
        let mut values = values(&EventBody::sample("channel_error").unwrap());
        values.insert("summary".into(), "ü\"<".repeat(20_000).into());
        for (preset, key, max) in [
            (Preset::Discord, "content", 2_000),
            (Preset::Telegram, "text", 4_096),
            (Preset::Ntfy, "message", 1_000),
        ] {
            let text = Template::parse(preset.template(), None).unwrap().render(&values).unwrap().text;
            let body: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(body[key].as_str().unwrap().chars().count(), max, "{body}");
        }
        let text =
            Template::parse(Preset::CloudEvents.template(), None).unwrap().render(&values).unwrap().text;
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&body["type"], &body["data"]["event_type"]),
            (&json!("headwater.channel_error"), &json!("channel_error"))
        );
    }
}
