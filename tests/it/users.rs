//! Users: the first admin, login, revoked permissions, and secrets.

use std::time::Duration;

use domain::event::EventBody;
use domain::login::DeviceLogin;
use serde_json::{Value, json};

use super::support::api::{ADMIN, Api, ApiReply, PASSWORD};
use super::support::client::{PLAYER_AGENT, Request};
use super::support::eventually;
use super::support::gateway::{Setup, TestGateway};
use super::support::users::create_user;
use super::support::websocket::WebSocketClient;

const USERS: &str = "/api/accounts/users/";
const ME: &str = "/api/accounts/users/me/";
/// The password of `anna`, which would be good enough for an admin.
const RIGHT: &str = "right-as-rain";
const LOGINS: &str = "/api/accounts/logins/";
const REFRESH: &str = "/api/accounts/token/refresh/";
const LOG_OUT: &str = "/api/accounts/auth/logout/";
const SET_UP: &str = "/api/accounts/initialize-superuser/";

/// Starts a gateway that does not delay the responses to failed logins.
async fn gateway() -> TestGateway {
    Setup::new().config(|it| it.auth.failure_delay_max = Duration::ZERO).start().await
}

/// Starts a gateway with its first admin, and a user `anna` of this level with password [`RIGHT`].
async fn with_anna(level: u8) -> (TestGateway, Api, Api, String) {
    let gateway = gateway().await;
    let admin = Api::first_admin(&gateway).await;
    let anna = json!({ "username": "anna", "password": RIGHT, "user_level": level });
    let made = admin.post(USERS, anna).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("{USERS}{}/", made.body["id"]);
    let anna = admin.login("anna", RIGHT).await;
    (gateway, admin, anna, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_simultaneous_setups_creates_the_first_admin_and_all_others_learn_that_they_did_not() {
    let gateway = gateway().await;
    let stranger = Api::stranger(&gateway);
    let fresh = stranger.get(SET_UP).await;
    assert_eq!(
        fresh.body,
        json!({
            "superuser_exists": false, "client_ip": "127.0.0.1", "setup_allowed": true, "setup_code_required": false,
        })
    );

    let first = |name: &str| stranger.post(SET_UP, json!({ "username": name, "password": PASSWORD }));
    let (one, other) = tokio::join!(first("one"), first("other"));
    let mut n_created = 0;
    for reply in [one, other, first("third").await] {
        assert_eq!((reply.status, &reply.body["superuser_exists"]), (200, &json!(true)));
        n_created += usize::from(reply.body["created"] == true);
    }
    assert_eq!(n_created, 1);
    let mut who = Vec::new();
    for name in ["one", "other", "third"] {
        if stranger.token(name, PASSWORD).await.status == 200 {
            who.push(name);
        }
    }
    assert!(who == ["one"] || who == ["other"], "{who:?}");
    let me = stranger.login(who[0], PASSWORD).await.get(ME).await.body;
    assert_eq!((&me["user_level"], &me["is_superuser"]), (&json!(10), &json!(true)));
    assert_eq!(gateway.models().users.load().len(), 1);
}

/// Holds T-login.1.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_admin_is_not_created_through_a_proxy_or_a_rebound_name_without_the_setup_code() {
    let gateway = gateway().await;
    let stranger = Api::stranger(&gateway);
    let code = gateway.gateway.setup_code().unwrap();
    let eve = |code: Option<&str>| {
        let body = json!({ "username": "eve", "password": PASSWORD, "setup_code": code.unwrap_or_default() });
        Request::get(SET_UP).method("POST").body("application/json", body.to_string())
    };
    let proxied = |code| eve(code).header("X-Forwarded-For", "203.0.113.9");
    let rebound =
        |code| eve(code).header("Host", "evil.example:9191").header("Origin", "http://evil.example:9191");
    for request in [proxied(None), rebound(None), proxied(Some("0123456789")), eve(Some("0123456789"))] {
        let refused = stranger.ask(request).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(refused.text("detail").contains("setup code"), "{refused:?}");
    }
    assert!(gateway.models().users.load().is_empty());
    let asked = stranger.ask(Request::get(SET_UP).header("X-Forwarded-For", "203.0.113.9")).await;
    assert_eq!(
        (&asked.body["setup_allowed"], &asked.body["setup_code_required"]),
        (&json!(true), &json!(true))
    );

    let made = stranger.ask(proxied(Some(code.expose()))).await;
    assert_eq!((made.status, made.body), (200, json!({ "created": true, "superuser_exists": true })));
    let again = stranger.ask(proxied(Some(code.expose()))).await;
    assert_eq!((again.status, again.body), (200, json!({ "created": false, "superuser_exists": true })));
    assert!(gateway.gateway.setup_code().is_none());
    assert_eq!(stranger.token("eve", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_fields_of_the_first_admin_are_reported_by_name() {
    let gateway = gateway().await;
    let stranger = Api::stranger(&gateway);
    for (body, errors) in [
        (json!({ "username": "root" }), json!({ "password": ["This field is required."] })),
        (
            json!({ "username": "live", "password": "x" }),
            json!({ "username": ["This name is part of an address of the gateway. Choose another one."] }),
        ),
    ] {
        let mut reply = stranger.post(SET_UP, body).await;
        let codes = reply.body.as_object_mut().unwrap().remove("codes");
        assert_eq!((reply.status, reply.body, codes.is_some()), (400, errors, true));
    }
    let broken = Request::get(SET_UP).method("POST").body("application/json", "{not json");
    assert_eq!(stranger.ask(broken).await.status, 400);
    assert_eq!(stranger.get(SET_UP).await.body["superuser_exists"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_api_keys_authenticate_on_both_ports() {
    let (gateway, _, anna, _) = with_anna(0).await;
    let stranger = Api::stranger(&gateway);
    let tokens =
        stranger.post("/api/accounts/auth/login/", json!({ "username": "ANNA", "password": RIGHT })).await;
    let made = anna.post("/api/accounts/api-keys/generate/", json!({})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.text("key");
    assert_eq!((key.len(), made.body["user"]["api_key"].as_str()), (54, Some(key)));
    assert_eq!(anna.get("/api/accounts/api-keys/").await.body, json!({ "key": key }));

    let refreshed =
        stranger.post("/api/accounts/token/refresh/", json!({ "refresh": tokens.text("refresh") })).await;
    let by_scheme = Request::get(ME).header("Authorization", &format!("ApiKey {key}"));
    assert_eq!(stranger.ask(by_scheme).await.status, 200);
    for who in
        [stranger.bearer(tokens.text("access")), stranger.bearer(refreshed.text("access")), stranger.key(key)]
    {
        for address in [gateway.address, gateway.api] {
            let me = who.at(address).get(ME).await;
            assert_eq!((me.status, me.text("username")), (200, "anna"));
        }
    }
    assert_eq!(stranger.get(ME).await.status, 401);
    assert_eq!(stranger.bearer(tokens.text("refresh")).get(ME).await.status, 401);
    assert_eq!(anna.post("/api/accounts/api-keys/revoke/", json!({})).await.body, json!({ "success": true }));
    let refused = stranger.key(key).get(ME).await;
    assert_eq!((refused.status, refused.text("detail")), (401, "Invalid API key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_changes_apply_from_the_next_request() {
    let (gateway, admin, anna, path) = with_anna(10).await;
    let key = anna.post("/api/accounts/api-keys/generate/", json!({})).await.text("key").to_owned();
    let by_key = Api::stranger(&gateway).key(&key);
    let statuses = async || (anna.get(USERS).await.status, by_key.get(USERS).await.status);
    assert_eq!(statuses().await, (200, 200));

    admin.patch(&path, json!({ "user_level": 1 })).await;
    assert_eq!(statuses().await, (403, 403));
    assert_eq!(anna.get(ME).await.body["user_level"], 1);

    admin.patch(&path, json!({ "is_active": false })).await;
    assert_eq!(statuses().await, (401, 401));
    assert_eq!(anna.get(ME).await.text("detail"), "User inactive");
    assert_eq!(anna.token("anna", RIGHT).await.status, 401);

    admin.patch(&path, json!({ "is_active": true })).await;
    assert_eq!(anna.get(ME).await.status, 200);
    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(statuses().await, (401, 401));
    assert_eq!(anna.token("anna", RIGHT).await.status, 401);
    assert_eq!(admin.get(&path).await.body["detail"], "No User matches the given query.");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_requests_do_not_reveal_whether_a_user_exists() {
    let (gateway, admin, _, path) = with_anna(0).await;
    let stranger = Api::stranger(&gateway);
    let shape = |reply: ApiReply| {
        let mut headers = reply.answer.head.headers;
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        (reply.status, reply.answer.bytes, headers)
    };
    let wrong = shape(stranger.token("anna", "wrong").await);
    let unknown = shape(stranger.token("nobody", "wrong").await);
    admin.patch(&path, json!({ "is_active": false })).await;
    let inactive = shape(stranger.token("anna", RIGHT).await);
    assert_eq!(wrong.0, 401);
    assert_eq!((&unknown, &inactive), (&wrong, &wrong));

    let reasons = || -> Vec<String> {
        let events = gateway.events();
        let failures = events.iter().filter_map(|event| match &event.body {
            EventBody::LoginFailed { attempt, reason } => {
                Some(format!("{}: {reason}", attempt.user.as_deref().unwrap_or_default()))
            }
            _ => None,
        });
        failures.collect()
    };
    // Events come after the answers.
    eventually("three events", || reasons().len() >= 3).await;
    assert_eq!(reasons(), ["anna: wrong password", ": unknown user", "anna: inactive user"]);
}

/// Holds T-login.3.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_needs_the_current_one_and_ends_all_other_logins() {
    let (gateway, admin, anna, path) = with_anna(0).await;
    let key = anna.post("/api/accounts/api-keys/generate/", json!({})).await.text("key").to_owned();
    let by_key = Api::stranger(&gateway).key(&key);
    let other = login_on(&anna, "other device").await;
    let own = admin.get(ME).await.body["id"].clone();
    for (who, path) in [(&anna, ME), (&by_key, ME), (&admin, &*format!("{USERS}{own}/"))] {
        for (current, message) in [
            (Value::Null, "The current password is required to change it."),
            (json!("wrong"), "This is not the current password."),
        ] {
            let mut sent =
                json!({ "password": "new one for it", "first_name": "X", "current_password": current });
            if current.is_null() {
                sent.as_object_mut().unwrap().remove("current_password");
            }
            let refused = who.patch(path, sent).await;
            assert_eq!((refused.status, &refused.body["current_password"]), (400, &json!([message])));
        }
        assert_eq!(who.get(ME).await.body["first_name"], "", "nothing is changed");
    }
    let changed = anna.patch(ME, json!({ "password": "new one", "current_password": RIGHT })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(anna.get(ME).await.status, 200, "the device that changed it stays");
    let ended = Api::stranger(&gateway).bearer(other.text("access")).get(ME).await;
    assert_eq!((ended.status, ended.text("code")), (401, "token_not_valid"));
    let refresh = json!({ "refresh": other.text("refresh") });
    assert_eq!(anna.post(REFRESH, refresh).await.status, 401);
    assert_eq!(anna.token("anna", RIGHT).await.status, 401);
    let again = login_on(&anna, "other device").await;
    assert_eq!(again.status, 401, "with the old password");
    assert_eq!(by_key.get(ME).await.status, 200, "an API key stays unless asked");

    // An admin who sets the password of somebody else ends all of that user's logins.
    assert_eq!(admin.patch(&path, json!({ "password": "by the admin" })).await.status, 200);
    assert_eq!(anna.get(ME).await.status, 401);
    assert_eq!(anna.login("anna", "by the admin").await.get(ME).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_also_removes_key_and_player_password_if_asked() {
    let (gateway, admin, anna, path) = with_anna(0).await;
    admin.patch(&path, json!({ "custom_properties": { "xc_password": "remote" } })).await;
    let key = anna.post("/api/accounts/api-keys/generate/", json!({})).await.text("key").to_owned();
    let by_key = Api::stranger(&gateway).key(&key);
    let unasked = anna.patch(ME, json!({ "revoke_secrets": true })).await;
    assert_eq!((unasked.status, by_key.get(ME).await.status), (200, 200), "only together with a password");
    let sent = json!({ "password": "new one", "current_password": RIGHT, "revoke_secrets": true });
    let changed = by_key.patch(ME, sent).await;
    assert_eq!((changed.status, &changed.body["api_key"]), (200, &Value::Null), "{changed:?}");
    assert_eq!(changed.body["custom_properties"].get("xc_password"), None);
    assert_eq!((by_key.get(ME).await.status, anna.get(ME).await.status), (401, 401));
}

/// Logs `anna` in with this program.
async fn login_on(api: &Api, agent: &str) -> ApiReply {
    let body = json!({ "username": "anna", "password": RIGHT }).to_string();
    let request = Request::get("/api/accounts/token/").method("POST").header("User-Agent", agent);
    api.without_credentials().ask(request.body("application/json", body)).await
}

/// Holds T-login.4.
#[tokio::test(flavor = "multi_thread")]
async fn a_logout_and_a_revoked_device_end_their_own_login_only() {
    let (gateway, admin, anna, path) = with_anna(0).await;
    let stranger = Api::stranger(&gateway);
    let (phone, tv) = (login_on(&stranger, "phone").await, login_on(&stranger, "tv").await);
    let refreshed =
        async |tokens: &ApiReply| stranger.post(REFRESH, json!({ "refresh": tokens.text("refresh") })).await;
    let on_phone = stranger.bearer(phone.text("access"));
    let listed = on_phone.get(LOGINS).await.body["results"].take();
    let shown: Vec<_> =
        listed.as_array().unwrap().iter().map(|it| (&it["user_agent"], &it["is_current"])).collect();
    let expected =
        [(json!(PLAYER_AGENT), json!(false)), (json!("phone"), json!(true)), (json!("tv"), json!(false))];
    assert_eq!(shown, expected.iter().map(|(agent, is_current)| (agent, is_current)).collect::<Vec<_>>());
    assert_eq!(listed[1]["ip_address"], "127.0.0.1");

    // Clients that keep their first refresh token, and those that take the new one.
    let first = refreshed(&phone).await;
    let second = refreshed(&first).await;
    for tokens in [&phone, &first, &second] {
        assert_eq!(refreshed(tokens).await.status, 200);
    }
    let path_of = |tokens: &ApiReply| format!("/ws/?token={}", tokens.text("access"));
    let mut socket = WebSocketClient::open(gateway.api, &path_of(&phone), &[]).await.unwrap();
    assert_eq!(on_phone.post(LOG_OUT, json!({})).await.body, json!({ "message": "Logout successful" }));
    for tokens in [&phone, &first, &second] {
        let refused = refreshed(tokens).await;
        assert_eq!((refused.status, refused.text("code")), (401, "token_not_valid"));
        assert_eq!(stranger.bearer(tokens.text("access")).get(ME).await.status, 401);
    }
    assert_eq!(socket.remaining().await.1, Some(1008), "the open socket ends too");
    assert_eq!(refreshed(&tv).await.status, 200);

    // Another user can neither see nor end it; its owner and admins can.
    let tv_path = format!("{LOGINS}{}/", listed[2]["id"]);
    admin.post(USERS, json!({ "username": "eve", "password": "x", "user_level": 1 })).await;
    let eve = admin.login("eve", "x").await;
    let id = path.trim_end_matches('/').rsplit('/').next().unwrap();
    assert_eq!(eve.delete(&tv_path).await.status, 404);
    assert_eq!(eve.get(&format!("{LOGINS}?user_id={id}")).await.status, 403);
    assert_eq!(admin.get(&format!("{LOGINS}?user_id={id}")).await.body["count"], 2);
    assert_eq!(admin.get(&format!("{LOGINS}?user_id=999")).await.status, 404);
    assert_eq!(anna.delete(&tv_path).await.status, 204);
    assert_eq!(refreshed(&tv).await.status, 401);
    assert_eq!(anna.delete(&tv_path).await.status, 404);

    // A log-out with a key ends the login whose refresh token it names.
    let tv = login_on(&stranger, "tv").await;
    let key = anna.post("/api/accounts/api-keys/generate/", json!({})).await.text("key").to_owned();
    let out = |of: &ApiReply| json!({ "refresh": of.text("refresh") });
    assert_eq!(eve.post(LOG_OUT, out(&tv)).await.status, 200);
    assert_eq!(refreshed(&tv).await.status, 200, "not that of another user");
    assert_eq!(stranger.key(&key).post(LOG_OUT, out(&tv)).await.status, 200);
    assert_eq!(refreshed(&tv).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_logs_in_for_every_request_has_one_login_a_minute() {
    let (gateway, admin, anna, path) = with_anna(0).await;
    for _ in 0..20 {
        assert_eq!(login_on(&anna, "restless").await.status, 200);
    }
    assert_eq!(anna.get(LOGINS).await.body["count"], 2);
    // Nothing of a deleted user stays.
    assert_eq!(admin.delete(&path).await.status, 204);
    let logins = gateway.models().store.collection::<DeviceLogin>().all().unwrap();
    assert_eq!(logins.len(), 1, "{logins:?}");
}

/// Holds T-login.5.
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_needs_a_password_that_is_hard_to_guess() {
    let gateway = gateway().await;
    let stranger = Api::stranger(&gateway);
    let short = "The password of an admin must have at least 10 characters.";
    let reply = stranger.post(SET_UP, json!({ "username": ADMIN, "password": "short" })).await;
    assert_eq!((reply.status, &reply.body["password"]), (400, &json!([short])));
    let admin = Api::first_admin(&gateway).await;
    let own = json!({ "password": "short", "current_password": PASSWORD });
    assert_eq!(admin.patch(ME, own).await.body["password"], json!([short]));
    for (sent, message) in [
        (json!({ "username": "boss", "password": "short", "user_level": 10 }), short),
        (
            json!({ "username": "boss", "password": "Boss-boss-2026", "user_level": 10 }),
            "The password of an admin must have at least 8 characters besides the user name.",
        ),
        (json!({ "username": "boss", "password": "short", "user_level": 0, "is_superuser": true }), short),
    ] {
        let reply = admin.post(USERS, sent).await;
        assert_eq!((reply.status, &reply.body["password"]), (400, &json!([message])));
    }
    // A viewer may have a short one, and needs a better one to become an admin.
    let made = admin.post(USERS, json!({ "username": "kid", "password": "kid", "user_level": 0 })).await;
    let path = format!("{USERS}{}/", made.body["id"]);
    let promoted = admin.patch(&path, json!({ "user_level": 10 })).await;
    let weak = "The password of this user is too weak for an admin. Set a longer one.";
    assert_eq!((promoted.status, &promoted.body["password"]), (400, &json!([weak])));
    assert_eq!(admin.patch(&path, json!({ "user_level": 10, "password": RIGHT })).await.status, 200);
    let made = admin.post(USERS, json!({ "username": "adult", "password": RIGHT, "user_level": 1 })).await;
    let path = format!("{USERS}{}/", made.body["id"]);
    assert_eq!(admin.patch(&path, json!({ "is_superuser": true })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_can_change_only_their_own_profile_fields() {
    let (_gateway, admin, anna, path) = with_anna(0).await;
    let properties = json!({ "xc_password": "remote", "hide_adult_content": true, "navOrder": ["a"] });
    admin.patch(&path, json!({ "custom_properties": properties, "stream_limit": 2 })).await;
    let sent = json!({
        "first_name": "Anna", "user_level": 10, "is_superuser": true, "is_staff": true, "is_active": false,
        "stream_limit": 0, "custom_properties": {
            "xc_password": "hack", "hide_adult_content": false, "navOrder": null, "theme": "dark",
        },
    });
    let me = anna.patch(ME, sent).await;
    assert_eq!(me.status, 200, "{me:?}");
    let kept = json!({
        "first_name": "Anna", "user_level": 0, "is_superuser": false, "is_staff": false, "is_active": true,
        "stream_limit": 2,
        "custom_properties": { "xc_password": "remote", "hide_adult_content": true, "theme": "dark" },
    });
    for (key, value) in kept.as_object().unwrap() {
        assert_eq!(&me.body[key], value, "{key}");
    }
    assert_eq!(anna.post("/api/accounts/api-keys/generate/", json!({ "user_id": 1 })).await.status, 403);
    assert_eq!(anna.post("/api/accounts/api-keys/revoke/", json!({ "user_id": 1 })).await.status, 403);
    assert_eq!(admin.post("/api/accounts/api-keys/generate/", json!({ "user_id": 999 })).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_active_superuser_cannot_be_deleted_demoted_or_deactivated() {
    let (_gateway, admin, _, path) = with_anna(10).await;
    let own = format!("{USERS}{}/", admin.get(ME).await.body["id"]);
    let last = "This is the last active superuser. Create another one first.";
    for (sent, field) in
        [(json!({ "is_superuser": false }), "is_superuser"), (json!({ "is_active": false }), "is_active")]
    {
        let reply = admin.patch(&own, sent).await;
        assert_eq!((reply.status, &reply.body[field]), (400, &json!([last])));
    }
    let reply = admin.delete(&own).await;
    assert_eq!((reply.status, &reply.body["detail"]), (400, &json!(last)));
    assert_eq!(admin.patch(&own, json!({ "user_level": 1, "first_name": "still there" })).await.status, 200);

    admin.patch(&path, json!({ "is_superuser": true })).await;
    assert_eq!(admin.patch(&own, json!({ "is_superuser": false, "user_level": 0 })).await.status, 200);
    assert_eq!(admin.get(USERS).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_fields_of_a_user_are_reported_by_name_and_nothing_is_written() {
    let (gateway, admin, _, _) = with_anna(0).await;
    let characters = "Enter a valid username. This value may contain letters, numbers, spaces and signs, except / \\ ? # % and :.";
    let named = |name: &str| json!({ "username": name, "password": "x", "user_level": 0 });
    let with = |key: &str, value: Value| {
        let mut user = named("berta");
        user[key] = value;
        user
    };
    for (body, field, message) in [
        (json!({ "password": "x", "user_level": 0 }), "username", "This field is required."),
        (json!({ "username": "berta", "password": "x" }), "user_level", "This field is required."),
        (json!({ "username": "berta", "user_level": 0 }), "password", "This field is required."),
        (named("a/b c"), "username", characters),
        (named("Anna"), "username", "A user with that username already exists."),
        (with("user_level", json!("abc")), "user_level", "A valid integer is required."),
        (with("user_level", json!(7)), "user_level", "\"7\" is not a valid choice."),
        (with("password", json!("")), "password", "This field may not be blank."),
        (with("email", json!("nobody")), "email", "Enter a valid email address."),
        (
            with("channel_profiles", json!([3])),
            "channel_profiles",
            "Invalid pk \"3\" - object does not exist.",
        ),
        (with("stream_limit", json!(-1)), "stream_limit", "Ensure this value is greater than or equal to 0."),
        (
            with("custom_properties", json!([])),
            "custom_properties",
            "Expected an object of names and values.",
        ),
        (
            with("custom_properties", json!({ "x": "y".repeat(102_400) })),
            "custom_properties",
            "Ensure this field has no more than 102400 bytes as JSON.",
        ),
    ] {
        let reply = admin.post(USERS, body).await;
        assert_eq!((reply.status, &reply.body[field]), (400, &json!([message])));
    }
    assert_eq!(gateway.models().users.load().len(), 2);
}

/// Holds T-url.2.
#[tokio::test(flavor = "multi_thread")]
async fn reserved_user_names_are_refused_and_others_log_in() {
    let gateway = gateway().await;
    let admin = Api::first_admin(&gateway).await;
    for (name, status) in [
        ("api", 400),
        ("LIVE", 400),
        ("movie", 400),
        ("series", 400),
        ("proxy", 400),
        ("hdhr", 400),
        ("static", 400),
        ("ws", 400),
        ("admin", 201),
        ("live2", 201),
    ] {
        let made = admin.post(USERS, json!({ "username": name, "password": "x", "user_level": 0 })).await;
        assert_eq!(made.status, status, "{name}: {made:?}");
        assert_eq!(admin.token(name, "x").await.status == 200, status == 201, "{name}");
    }
}

/// Holds T-acc.2: no response of any route contains the secrets of another user.
#[tokio::test(flavor = "multi_thread")]
async fn no_response_reveals_a_secret_of_another_user() {
    let (_gateway, admin, anna, path) = with_anna(1).await;
    admin.patch(&path, json!({ "custom_properties": { "xc_password": "anna-remote" } })).await;
    let key = anna.post("/api/accounts/api-keys/generate/", json!({})).await.text("key").to_owned();
    let id = path.trim_end_matches('/').rsplit('/').next().unwrap();
    for (name, level, player_password_is_shown) in
        [("standard", 1, false), ("viewer", 0, false), ("boss", 10, true)]
    {
        admin.post(USERS, json!({ "username": name, "password": RIGHT, "user_level": level })).await;
        let who = admin.login(name, RIGHT).await;
        let mut is_shown = false;
        for route in rest::table().iter().filter(|it| it.method == "GET") {
            let path = route.path.replace("{id}", id);
            let text = who.get(&path).await.answer.text();
            assert!(!text.contains("$argon2") && !text.contains(&key), "{name} {path}: {text}");
            is_shown |= text.contains("anna-remote");
        }
        assert_eq!(is_shown, player_password_is_shown, "{name}");
    }
    let own = anna.get(ME).await;
    assert!(own.text("api_key") == key && own.body["custom_properties"]["xc_password"] == "anna-remote");
    assert_eq!(admin.token(ADMIN, PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_plays_with_either_password_until_deactivated() {
    let list = "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\nhttp://127.0.0.1:1/news.ts\n";
    let setup = Setup::new().list(list).config(|it| it.auth.failure_delay_max = Duration::ZERO);
    let gateway = setup.start().await;
    let admin = Api::first_admin(&gateway).await;
    let id = gateway.channel("News").id;
    let made = admin.post(USERS, json!({ "username": "anna", "password": RIGHT, "user_level": 0 })).await;
    let path = format!("{USERS}{}/", made.body["id"]);
    // HEAD checks whether the stream is available, and opens nothing.
    let plays = async |password: &str| {
        let head = Request::head(format!("/live/anna/{password}/{id}.ts"));
        Api::stranger(&gateway).ask(head).await.status
    };
    let check = async |change: Value, right: u16, remote: u16, wrong: u16| {
        assert_eq!(admin.patch(&path, change.clone()).await.status, 200);
        let statuses = (plays(RIGHT).await, plays("remote").await, plays("wrong").await);
        assert_eq!(statuses, (right, remote, wrong), "{change}");
    };
    check(json!({}), 200, 401, 401).await;
    check(json!({ "custom_properties": { "xc_password": "remote" } }), 200, 200, 401).await;
    check(json!({ "password": "another" }), 401, 200, 401).await;
    check(json!({ "custom_properties": { "xc_password": null } }), 401, 401, 401).await;
    check(json!({ "password": RIGHT, "custom_properties": { "xc_password": "remote" } }), 200, 200, 401)
        .await;
    check(json!({ "is_active": false }), 401, 401, 401).await;
    check(json!({ "is_active": true }), 200, 200, 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_setting_lets_players_use_the_player_password_only() {
    let list = "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:1/news.ts\n";
    let setup = Setup::new().list(list).config(|it| it.auth.failure_delay_max = Duration::ZERO);
    let gateway = setup.start().await;
    let admin = Api::first_admin(&gateway).await;
    let id = gateway.channel("News").id;
    let anna = json!({
        "username": "anna", "password": RIGHT, "user_level": 0, "custom_properties": { "xc_password": "remote" },
    });
    assert_eq!(admin.post(USERS, anna).await.status, 201);
    let plays = async |password: &str| {
        let head = Request::head(format!("/live/anna/{password}/{id}.ts"));
        Api::stranger(&gateway).ask(head).await.status
    };
    let rows = admin.get("/api/core/settings/").await.body;
    let rows = rows["results"].as_array().unwrap();
    let row = rows.iter().find(|it| it["key"] == "system_settings").unwrap();
    let path = format!("/api/core/settings/{}/", row["id"]);
    for (setting, expected) in [(Value::Null, 200), (json!(false), 401), (json!(true), 200)] {
        let value = json!({ "value": { "login_password_for_players": setting } });
        assert_eq!(admin.patch(&path, value).await.status, 200);
        assert_eq!((plays(RIGHT).await, plays("remote").await), (expected, 200), "{setting}");
        assert_eq!(admin.token("anna", RIGHT).await.status, 200, "the interface is not affected");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_can_be_chosen_by_its_owner_and_by_admins() {
    const CHOSEN: &str = "k9Qz-7hTmW2xVbN4cRfLpD8sGjAeUy3o";
    const SET: &str = "/api/accounts/api-keys/set/";
    let (gateway, admin, anna, path) = with_anna(0).await;
    let status = async |key: &str| Api::stranger(&gateway).key(key).get(ME).await.status;
    assert_eq!(anna.post(SET, json!({ "key": CHOSEN })).await.body, json!({ "success": true }));
    assert_eq!(status(CHOSEN).await, 200);
    for (sent, message) in [
        ("short", "An API key must have 32 to 512 characters."),
        (&"ab".repeat(20), "An API key must have at least 10 different characters. Use a random one."),
    ] {
        let refused = anna.post(SET, json!({ "key": sent })).await;
        assert_eq!((refused.status, &refused.body["key"]), (400, &json!([message])));
    }
    assert_eq!(anna.post(SET, json!({ "key": CHOSEN, "user_id": 1 })).await.status, 403);
    assert_eq!(admin.post(SET, json!({ "key": CHOSEN })).await.status, 400, "somebody else's");

    // An admin sets the key of another user in its record. Clients send back the `null` that they were shown.
    let other = CHOSEN.replace('k', "K");
    let set = admin.patch(&path, json!({ "api_key": other })).await;
    assert_eq!((set.status, &set.body["api_key"]), (200, &Value::Null), "{set:?}");
    for back in [json!(null), json!("")] {
        assert_eq!(admin.patch(&path, json!({ "api_key": back })).await.status, 200);
    }
    assert_eq!((status(CHOSEN).await, status(&other).await), (401, 200));
    assert_eq!(anna.get(ME).await.text("api_key"), other);
}

/// Holds T-acc.6 for users.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_refused_on_surfaces_that_its_networks_do_not_allow() {
    let list = "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:1/news.ts\n";
    let setup = Setup::new().list(list).config(|it| {
        it.auth.failure_delay_max = Duration::ZERO;
        it.trusted_proxies = "127.0.0.1".parse().unwrap();
    });
    let gateway = setup.start().await;
    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let uuid = gateway.channel("News").uuid;
    let path = format!("{USERS}{}/", anna.id);
    let ask = async |key: &str, request: Request| {
        let request = request.header("X-Forwarded-For", "192.168.1.5").header("X-API-Key", key);
        Api::stranger(&gateway).ask(request).await.status
    };
    let limit = async |path: &str, networks: Value| {
        let body = json!({ "custom_properties": { "allowed_networks": networks } }).to_string();
        let patch = Request::get(path).method("PATCH").body("application/json", body);
        ask(&admin.api_key, patch).await
    };
    let statuses = async || {
        let stream = Request::head(format!("/proxy/ts/stream/{uuid}"));
        let playlist = Request::get("/playlist.m3u");
        let key = anna.api_key.as_str();
        [ask(key, Request::get(ME)).await, ask(key, stream).await, ask(key, playlist).await]
    };
    assert_eq!(statuses().await, [200; 3]);
    for (networks, expected) in [
        (json!({ "UI": ["10.0.0.0/8"] }), [403, 200, 200]),
        (json!({ "STREAMS": ["10.0.0.0/8"], "M3U_EPG": "192.168.1.0/24" }), [200, 403, 200]),
        (json!({ "M3U_EPG": ["10.0.0.0/8"], "UI": [] }), [200, 200, 403]),
        (json!(null), [200; 3]),
    ] {
        assert_eq!(limit(&path, networks.clone()).await, 200, "{networks}");
        assert_eq!(statuses().await, expected, "{networks}");
    }
    let own = format!("{USERS}{}/", admin.id);
    assert_eq!(limit(&own, json!({ "UI": ["10.0.0.0/8"] })).await, 400, "nobody locks themselves out");
    assert_eq!(limit(&own, json!({ "UI": ["192.168.1.0/24"] })).await, 200);
    assert_eq!(limit(&path, json!({ "UI": ["lan"] })).await, 400);

    // Also an open socket.
    let headers = [("x-api-key", anna.api_key.as_str()), ("x-forwarded-for", "192.168.1.5")];
    let mut socket = WebSocketClient::open(gateway.api, "/ws/", &headers).await.unwrap();
    assert_eq!(limit(&path, json!({ "UI": ["10.0.0.0/8"] })).await, 200);
    assert_eq!(socket.remaining().await.1, Some(1008));
    assert_eq!(WebSocketClient::open(gateway.api, "/ws/", &headers).await.err(), Some(403));
}

/// These need a browser.
mod slow {
    use super::*;
    use crate::support::browser::Browser;

    /// Holds T-login.1.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_printed_address_creates_the_first_admin_in_a_browser() {
        let gateway = gateway().await;
        let code = gateway.gateway.setup_code().unwrap();
        let browser = Browser::start().await;
        let open = async |code: &str| {
            browser.opens("about:blank").await;
            browser.opens(&format!("http://{}/setup#{code}", gateway.address)).await;
            let has_form = "return document.querySelector('input[name=password]') !== null && location.hash";
            browser.until("the form, and no code in the history", has_form, |it| *it == "").await;
        };
        let send = async |name: &str| {
            browser.types("input[name=username]", name).await;
            browser.types("input[name=password]", PASSWORD).await;
            browser.clicks("button[type=submit]").await;
        };
        open("0123456789").await;
        send("eve").await;
        let said = "return document.querySelector('[role=alert]')?.textContent";
        let is_refused = |it: &Value| it.as_str().is_some_and(|it| it.contains("This is not the setup code"));
        browser.until("the refusal", said, is_refused).await;
        open(code.expose()).await;
        send("anna").await;
        let step = "return document.querySelector('[aria-current=step]')?.textContent.trim().slice(0, 1)";
        browser.until("the next step", step, |it| *it == "2").await;
        assert_eq!(Api::stranger(&gateway).token("anna", PASSWORD).await.status, 200);
        assert_eq!(gateway.models().users.load().len(), 1);
    }
}
