//! `/api/core/settings/check/`: checks a setting before it is saved.

use std::collections::BTreeMap;

use config::{FOREIGN_NAMES, NetworkRules};
use domain::core_settings::NETWORK_ACCESS;
use resource_derive::Body;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use serde_json::{Value, json};
use server::reply::Refusal;

use crate::context::RestCall;

/// A setting that is checked and not saved.
#[derive(Clone, Debug, Body)]
pub(crate) struct SettingCheck {
    /// Key of the setting; only `network_access` has checks beyond those of saving it.
    #[field(chars_max = 255, example = "network_access")]
    key: String,
    /// The value to check.
    value: Option<Value>,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Checks which networks of a setting would shut the caller out.";
    vec![Route::post("/api/core/settings/check/", STREAMER, summary, check).that_reads()]
}

/// Answers the networks of each class that would shut the caller out, and the address of the caller. Networks that cannot
/// be read are listed as `data`, with `error` set, as clients of similar services expect.
async fn check(call: Call, sent: SettingCheck) -> Result<Value, Refusal> {
    let client_ip = call.caller.address();
    let value = sent.value.filter(|_| sent.key == NETWORK_ACCESS);
    let (rules, wrong) = NetworkRules::new(&call.rest().config, value.as_ref());
    if !wrong.is_empty() {
        let texts: Vec<_> = wrong.iter().flat_map(|it| it.texts.clone()).collect();
        let reasons: BTreeMap<_, _> = wrong.into_iter().map(|it| (it.member, it.reason)).collect();
        return Ok(json!({ "error": true, "message": "Invalid CIDR(s)", "data": texts, "reasons": reasons }));
    }
    let mut answer = json!({ "client_ip": client_ip });
    for (name, class) in FOREIGN_NAMES {
        let networks = rules.connect(class);
        let is_sent = value.as_ref().is_some_and(|it| it.get(name).is_some());
        let shut_out = match call.caller.is_in(networks) || !is_sent {
            true => Vec::new(),
            false => networks.to_string().split(", ").map(str::to_owned).collect(),
        };
        answer[name] = json!(shut_out);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use domain::channel::Channel;
    use domain::ids::ChannelId;
    use uuid::Uuid;

    use super::*;
    use crate::testing::Rest;

    const PATH: &str = "/api/core/settings/check/";

    #[tokio::test]
    async fn networks_that_would_shut_the_caller_out_are_listed_before_they_are_saved() {
        let rest = Rest::start().await;
        let value = json!({ "UI": "10.0.0.0/8", "STREAMS": "192.0.2.0/24" });
        let body = json!({ "key": "network_access", "value": value });
        let answer = rest.streamer("POST", PATH, body).await;
        let expected = json!({
            "UI": ["10.0.0.0/8"], "STREAMS": [], "XC_API": [], "M3U_EPG": [], "client_ip": "192.0.2.7",
        });
        assert_eq!((answer.status, answer.body), (200, expected));
        let body = json!({ "key": "network_access", "value": { "UI": "banana" } });
        let answer = rest.streamer("POST", PATH, body).await.body;
        assert_eq!((&answer["error"], &answer["data"]), (&json!(true), &json!(["banana"])));
        let other = rest.admin("POST", PATH, json!({ "key": "stream_settings", "value": {} })).await;
        assert_eq!((other.status, &other.body["UI"]), (200, &json!([])));
    }

    #[tokio::test]
    async fn network_rules_take_effect_with_the_next_request_and_cannot_shut_their_admin_out() {
        let rest = Rest::start().await;
        let one = "/api/core/settings/4/";
        let refused = rest.admin("PATCH", one, json!({ "value": { "UI": "10.0.0.0/8" } })).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body["UI"][0].as_str().unwrap().contains("192.0.2.7"), "{}", refused.text);
        let refused = rest.admin("PUT", one, json!({ "value": { "M3U_EPG": "127.0.0.1/8,banana" } })).await;
        assert!(refused.status == 400 && refused.text.contains("banana"), "{}", refused.text);

        let list = async || rest.send_from([10, 0, 0, 9], "GET", "/playlist.m3u", &[]).await.status;
        assert_eq!(list().await, 200);
        let closed = rest.admin("PATCH", one, json!({ "value": { "M3U_EPG": "192.168.0.0/16" } })).await;
        assert_eq!(closed.status, 200, "{}", closed.text);
        assert_eq!(list().await, 403);
        let opened = rest.admin("PATCH", one, json!({ "value": { "M3U_EPG": "10.0.0.0/24" } })).await;
        assert_eq!(opened.status, 200, "{}", opened.text);
        assert_eq!(list().await, 200);
    }

    #[tokio::test]
    async fn an_adult_channel_is_listed_without_a_user_only_if_a_rule_allows_it() {
        let rest = Rest::start().await;
        let channel = Channel::new(ChannelId(7), Uuid::from_u128(7), "Late Night", 0);
        rest.put([Channel { is_adult: true, ..channel }]).await;
        let lists = async || {
            rest.send_from([10, 0, 0, 9], "GET", "/playlist.m3u", &[]).await.text.contains("Late Night")
        };
        assert!(!lists().await);
        let set = async |value: bool| {
            let body = json!({ "value": { "adult_without_user": value } });
            assert_eq!(rest.admin("PATCH", "/api/core/settings/4/", body).await.status, 200);
        };
        set(true).await;
        assert!(lists().await);
        set(false).await;
        assert!(!lists().await);
    }
}
