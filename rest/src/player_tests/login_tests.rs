//! Logins of players with names and passwords as providers give them.

use data_encoding::BASE64;
use domain::channel::Channel;
use domain::ids::ChannelId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use url::form_urlencoded;
use uuid::Uuid;

use crate::testing::{Rest, SECRET, STREAMER};

#[tokio::test]
async fn users_with_signs_in_name_and_password_log_in_in_every_form_of_address() {
    let rest = Rest::start().await;
    rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "one", 0)]).await;
    for (name, password) in [
        ("pro!one", "a$b:c"),
        ("user~1+2", "p+w:+"),
        ("a&b=c", "x&y=z;"),
        ("us er", "pass word"),
        ("Andr\u{e9} '\"*", "{}|^`<>"),
        ("\u{65e5}\u{672c}", "/\\?#%"),
    ] {
        let user = json!({
            "username": name, "password": "of the account", "user_level": 0,
            "custom_properties": { "xc_password": password },
        });
        let made = rest.admin("POST", "/api/accounts/users/", user).await;
        assert_eq!(made.status, 201, "{name}: {}", made.text);

        let query: String = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("username", name), ("password", password)])
            .finish();
        let panel = rest.send("GET", &format!("/player_api.php?{query}"), &[], "").await;
        assert_eq!(panel.body["user_info"]["auth"], 1, "{name}: {}", panel.text);
        assert_eq!(panel.body["user_info"]["username"], name);

        let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut paths = vec![format!("{}/{}", encoded(name), encoded(password))];
        // Everything that a path may contain as it is; a plus is a plus.
        let is_plain =
            |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&it));
        if is_plain(name) && is_plain(password) {
            paths.push(format!("{name}/{password}"));
        }
        for path in paths {
            let stream = rest.send("HEAD", &format!("/live/{path}/1.ts"), &[], "").await;
            assert_eq!(stream.status, 200, "{path}: {}", stream.text);
        }
        let basic = format!("Basic {}", BASE64.encode(format!("{name}:{password}").as_bytes()));
        let list = rest.send("GET", "/output/m3u", &[("authorization", &basic)], "").await;
        assert_eq!(list.status, 200, "{name}: {}", list.text);
        assert!(list.text.contains(&format!("/live/{}/", encoded_segment(name))), "{name}: {}", list.text);
    }
}

/// Returns a text as it stands in addresses of the gateway.
fn encoded_segment(text: &str) -> String {
    const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, SEGMENT).to_string()
}

#[tokio::test]
async fn the_end_of_an_account_is_in_the_answers_and_ends_the_login() {
    let rest = Rest::start().await;
    rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "one", 0)]).await;
    let user = "/api/accounts/users/1/";
    let (login, bearer) = (rest.query_login(STREAMER), rest.bearer(STREAMER));
    let panel = async || rest.send("GET", &format!("/player_api.php?{login}"), &[], "").await;
    let changed = rest.admin("PATCH", user, json!({ "exp_date": "2100-01-31T12:00:00Z" })).await;
    assert_eq!((changed.status, &changed.body["exp_date"]), (200, &json!("2100-01-31T12:00:00.000Z")));
    assert_eq!(panel().await.body["user_info"]["exp_date"], "4105080000");

    rest.admin("PATCH", user, json!({ "exp_date": "2020-01-31T12:00:00Z" })).await;
    let expired = panel().await;
    assert_eq!((expired.status, &expired.body["detail"]), (401, &json!("The account has expired.")));
    let wrong = rest.send("GET", "/player_api.php?username=streamer&password=wrong", &[], "").await;
    assert_eq!(wrong.body["detail"], "No active account found with the given credentials");
    let path = format!("/live/streamer/{SECRET}%20{STREAMER}/1.ts");
    assert_eq!(rest.send("HEAD", &path, &[], "").await.status, 401);
    let me = async || rest.send("GET", "/api/accounts/users/me/", &[("authorization", &bearer)], "").await;
    assert_eq!(me().await.status, 401);

    rest.admin("PATCH", user, json!({ "exp_date": null })).await;
    assert_eq!(panel().await.body["user_info"]["exp_date"], "2147483647");
    assert_eq!(me().await.status, 200);
    for field in
        [json!({ "exp_date": "soon" }), json!({ "exp_date": "2100-01-31T12:00:00Z", "user_level": 10 })]
    {
        let refused = rest.admin("PATCH", user, field).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(refused.body["exp_date"].is_array(), "{}", refused.text);
    }
}
