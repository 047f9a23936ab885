//! Tests of the whole module over a temporary store.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use domain::ids::UserId;
use domain::user::UserLevel;
use http::header::HeaderName;
use http_body_util::BodyExt as _;
use serde_json::json;
use server::reply::Refusal;
use storage::{Error, Store, Write};
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use uuid::Uuid;

use super::*;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A store with one user, and the published events.
struct Fixture {
    auth: Auth,
    store: Store,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Fixture {
    /// Creates the user `anna` with password `right` and player password `remote`.
    fn new() -> Self {
        Self::with(AuthLimits { failure_delay_max: Duration::ZERO, ..AuthLimits::default() })
    }

    fn with(limits: AuthLimits) -> Self {
        block_in_place(|| Self::blocking(&limits))
    }

    fn blocking(limits: &AuthLimits) -> Self {
        let store = Store::temporary(storage::records::schema()).unwrap();
        storage::seed(&store).unwrap();
        let (publish, events) = mpsc::unbounded_channel();
        let users = store.table().unwrap();
        let auth =
            Auth::from_parts(&store, users, limits, move |event| publish.send(event).unwrap()).unwrap();
        let anna = User {
            password: Some(hash_password("right")),
            player_password: Some(Secret::new("remote")),
            api_key: Some(auth.new_api_key()),
            ..User::new(UserId(1), "anna", UserLevel::Standard, 0)
        };
        store.write_blocking(move |write| write.put(&anna)).unwrap();
        Self { auth, store, events }
    }

    fn anna(&self) -> Arc<User> {
        self.auth.0.users.load().get(1).unwrap().clone()
    }

    fn change(&self, change: impl FnOnce(&mut User)) {
        let mut anna = User::clone(&self.anna());
        change(&mut anna);
        self.write(move |write| write.put(&anna));
    }

    /// Logs anna in on another device.
    fn tokens(&self) -> Tokens {
        let anna = self.anna();
        let login = DeviceLogin {
            id: DeviceLoginId(1),
            user: anna.id,
            key: Uuid::new_v4(),
            generation: anna.generation,
            created_at: now_ms(),
            used_at: now_ms(),
            address: ADDRESS,
            agent: "agent".to_owned(),
            browser: None,
        };
        let tokens = self.auth.tokens(&anna, Some(&login));
        self.write(move |write| write.put(&login));
        tokens
    }

    fn write(&self, fill: impl FnOnce(&mut Write<'_>) -> Result<(), Error> + Send + 'static) {
        block_in_place(|| self.store.write_blocking(fill)).unwrap();
    }

    async fn login(&self, username: &str, password: &str) -> Result<Arc<User>, Denied> {
        self.auth.login(username, password, ADDRESS, "agent").await
    }

    async fn player(&self, username: &str, password: &str) -> Result<Arc<User>, Denied> {
        self.auth.player(username, password, ADDRESS, "agent").await
    }

    /// Returns the events since the last call, as subscribers receive them.
    fn new_events(&mut self) -> Vec<serde_json::Value> {
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        events.map(|event| serde_json::to_value(event).unwrap()).collect()
    }
}

fn headers(of: &[(&str, &str)]) -> HeaderMap {
    of.iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_accepts_the_account_password_and_players_either_password() {
    let fixture = Fixture::new();
    for (username, password, by_account, by_player) in [
        ("anna", "right", true, true),
        ("ANNA", "right", true, true),
        ("anna", "remote", false, true),
        ("anna", "wrong", false, false),
        ("anna", "", false, false),
        ("berta", "right", false, false),
        ("", "", false, false),
    ] {
        assert_eq!(fixture.login(username, password).await.is_ok(), by_account, "{username} {password}");
        assert_eq!(fixture.player(username, password).await.is_ok(), by_player, "{username} {password}");
    }
    fixture.change(|it| it.player_password = Some(Secret::new("")));
    assert_eq!(
        fixture.player("anna", "").await,
        Err(Denied::Login),
        "an empty player password matches nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_login_is_an_event_with_the_reason_but_without_the_password() {
    let mut fixture = Fixture::new();
    fixture.login("anna", "hunter2").await.unwrap_err();
    fixture.player("hunter2\r\n", "hunter2").await.unwrap_err();
    fixture.change(|it| it.is_active = false);
    fixture.login("anna", "right").await.unwrap_err();
    fixture.player("anna", "remote").await.unwrap_err();
    let events = fixture.new_events();
    let of = |key: &str| events.iter().map(|it| it[key].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("reason"), ["wrong password", "unknown user", "inactive user"]);
    assert_eq!(of("client_ip"), ["127.0.0.1"; 3]);
    let users: Vec<_> = events.iter().map(|it| it["user"].as_str()).collect();
    assert_eq!(users, [Some("anna"), Some(""), Some("anna")], "an unknown name may be a password");
    assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_invalidates_tokens_and_cached_logins() {
    let fixture = Fixture::new();
    fixture.login("anna", "right").await.unwrap();
    let tokens = fixture.tokens();
    assert!(
        fixture.auth.user_of_token(&tokens.access).is_ok() && fixture.auth.refresh(&tokens.refresh).is_ok()
    );
    let password = fixture.auth.hash("new".to_owned()).await.unwrap();
    fixture.change(|it| {
        it.password = Some(password);
        it.generation += 1;
    });
    assert_eq!(fixture.login("anna", "right").await, Err(Denied::Login), "not from the cache either");
    assert_eq!(fixture.auth.user_of_token(&tokens.access), Err(Denied::Token { expired: false }));
    assert_eq!(fixture.auth.refresh(&tokens.refresh).map(drop), Err(Denied::Refresh { expired: false }));
    assert!(fixture.login("anna", "new").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_end_with_their_login_and_those_of_another_user_or_key_are_rejected() {
    let fixture = Fixture::new();
    let (access, refresh) = (Err(Denied::Token { expired: false }), Err(Denied::Refresh { expired: false }));
    let state = |tokens: &Tokens| {
        let user = fixture.auth.user_of_token(&tokens.access).map(|it| it.id);
        (user, fixture.auth.refresh(&tokens.refresh).map(|it| it.0.id))
    };
    let (valid, ended) = ((Ok(UserId(1)), Ok(UserId(1))), (access, refresh));
    let tokens = fixture.tokens();
    assert_eq!(state(&tokens), valid);
    let without_login = fixture.auth.tokens(&fixture.anna(), None);
    assert_eq!(state(&without_login), (Ok(UserId(1)), refresh), "cannot be revoked, so not refreshed");

    let change = |change: fn(&mut DeviceLogin)| {
        fixture.write(move |write| {
            let mut login = write.get::<DeviceLogin>(1)?.unwrap();
            change(&mut login);
            write.put(&login)
        });
    };
    change(|it| it.user = UserId(2));
    assert_eq!(state(&tokens), ended);
    change(|it| it.user = UserId(1));
    assert_eq!(state(&tokens), valid);
    change(|it| it.key = Uuid::new_v4());
    assert_eq!(state(&tokens), ended, "another login with the same id");

    let tokens = fixture.tokens();
    fixture.change(|it| it.generation += 1);
    assert_eq!(state(&tokens), ended);
    change(|it| it.generation += 1);
    assert_eq!(state(&tokens), valid, "the login follows its user");

    fixture.write(|write| {
        let keys = write.get::<ServerKeys>(SERVER_KEYS)?.unwrap();
        write.put(&ServerKeys { tokens: [9; 32], ..keys })
    });
    assert_eq!(state(&tokens), ended, "signed with the former key");
    let tokens = fixture.tokens();
    assert_eq!(state(&tokens), valid);
    fixture.write(|write| write.remove::<DeviceLogin>(1).map(drop));
    assert_eq!(state(&tokens), ended);
}

/// A login in memory of a user on a device.
fn memory_login(user: u32, agent: &str, used_at: i64) -> DeviceLogin {
    DeviceLogin {
        id: DeviceLoginId(0),
        user: UserId(user),
        key: Uuid::new_v4(),
        generation: 0,
        created_at: used_at,
        used_at,
        address: ADDRESS,
        agent: agent.to_owned(),
        browser: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_the_store_refused_ends_as_a_stored_one_and_with_the_signing_key() {
    let fixture = Fixture::new();
    let (anna, memory) = (fixture.anna(), fixture.auth.memory_logins());
    let mut ends = memory.ends();
    let login = memory.add(memory_login(1, "agent", now_ms()), now_ms());
    let tokens = fixture.auth.tokens(&anna, Some(&login));
    let is_valid = || fixture.auth.user_of_token(&tokens.access).is_ok();
    assert!(is_valid());
    assert_eq!(fixture.auth.logins_of(&anna), std::slice::from_ref(&login));
    fixture.change(|it| it.generation += 1);
    assert!(!is_valid() && fixture.auth.logins_of(&fixture.anna()).is_empty());
    fixture.change(|it| it.generation -= 1);
    assert!(is_valid());
    ends.mark_unchanged();
    memory.end(login.key);
    assert!(!is_valid() && ends.has_changed().unwrap(), "open sockets are checked again");

    let login = memory.add(memory_login(1, "agent", now_ms()), now_ms());
    assert!(memory.by_key(login.key).is_some());
    fixture.write(|write| {
        let keys = write.get::<ServerKeys>(SERVER_KEYS)?.unwrap();
        write.put(&ServerKeys { tokens: [9; 32], ..keys })
    });
    assert!(memory.by_key(login.key).is_none() && fixture.auth.logins_of(&anna).is_empty());
    let tokens = fixture.auth.tokens(&anna, Some(&login));
    assert!(fixture.auth.user_of_token(&tokens.access).is_err(), "also with a token of the new key");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_logins_in_memory_is_limited_for_each_device_each_user_and_all_users() {
    let fixture = Fixture::new();
    let memory = fixture.auth.memory_logins();
    let is_there = |it: &Arc<DeviceLogin>| memory.by_key(it.key).is_some();
    let now = now_ms();
    let add = |user: u32, agent: &str, at: i64| memory.add(memory_login(user, agent, now + at), now + at);
    let of_device: Vec<_> = (0..9).map(|n| add(1, "restless", n)).collect();
    assert_eq!(of_device.iter().map(is_there).collect::<Vec<_>>(), [vec![false], vec![true; 8]].concat());
    let of_user: Vec<_> = (0..64).map(|n| add(1, &format!("device {n}"), 100 + n)).collect();
    assert!(of_user.iter().all(is_there) && !of_device.iter().any(is_there));
    let others: Vec<_> = (2..=1_000).map(|user| add(user, "agent", 200 + i64::from(user))).collect();
    assert!(others.iter().all(is_there));
    let n_of_user = of_user.iter().filter(|it| is_there(it)).count();
    assert_eq!(n_of_user, 1, "1,000 in all, without those not used for longest");
    let ids: BTreeSet<_> = others.iter().map(|it| it.id).collect();
    assert_eq!(ids.len(), others.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_changes_apply_from_the_next_use() {
    let fixture = Fixture::new();
    let anna = fixture.login("anna", "right").await.unwrap();
    let tokens = fixture.tokens();
    let key = headers(&[("x-api-key", anna.api_key.as_ref().unwrap().key.expose())]);
    let bearer = headers(&[("authorization", &format!("Bearer {}", tokens.access))]);
    let level = |headers| fixture.auth.user_of(headers).unwrap().unwrap().effective_level();

    fixture.change(|it| it.level = UserLevel::Streamer);
    assert_eq!((level(&bearer), level(&key)), (UserLevel::Streamer, UserLevel::Streamer));

    fixture.change(|it| it.is_active = false);
    assert_eq!(fixture.auth.user_of(&bearer), Err(Denied::Inactive));
    assert_eq!(fixture.auth.user_of(&key), Err(Denied::Inactive));
    assert_eq!(fixture.auth.refresh(&tokens.refresh).map(drop), Err(Denied::Inactive));
    assert_eq!(fixture.login("anna", "right").await, Err(Denied::Login), "cached, but inactive");
    assert_eq!(fixture.player("anna", "remote").await, Err(Denied::Login));

    let gone = |write: &mut Write<'_>| write.remove::<User>(1);
    block_in_place(|| fixture.store.write_blocking::<_, Error, _>(gone)).unwrap();
    assert_eq!(fixture.auth.user_of(&bearer), Err(Denied::Token { expired: false }));
    assert_eq!(fixture.auth.user_of(&key), Err(Denied::ApiKey));
    assert_eq!(fixture.auth.refresh(&tokens.refresh).map(drop), Err(Denied::Refresh { expired: false }));
    assert_eq!(fixture.login("anna", "right").await, Err(Denied::Login));
}

#[test]
fn credentials_are_read_from_every_supported_header() {
    let fixture = Fixture::new();
    let anna = fixture.anna();
    let key = anna.api_key.as_ref().unwrap().key.expose();
    let token = fixture.auth.tokens(&anna, None).access;
    let (bad_token, bad_key) = (Err(Denied::Token { expired: false }), Err(Denied::ApiKey));
    for (presented, found) in [
        (vec![], Ok(false)),
        (vec![("authorization", format!("Bearer {token}"))], Ok(true)),
        (vec![("authorization", format!("bearer  {token} "))], Ok(true)),
        (vec![("authorization", format!("ApiKey {key}"))], Ok(true)),
        (vec![("x-api-key", key.to_owned())], Ok(true)),
        (vec![("authorization", "Basic YTpi".to_owned())], Ok(false)),
        (vec![("authorization", "Basic YTpi".to_owned()), ("x-api-key", key.to_owned())], Ok(true)),
        (vec![("authorization", "Bearer x".to_owned()), ("x-api-key", key.to_owned())], bad_token),
        (vec![("authorization", format!("Bearer {key}"))], bad_token),
        (vec![("authorization", "Bearer".to_owned())], bad_token),
        (vec![("authorization", "ApiKey".to_owned())], bad_key),
        (vec![("x-api-key", token.clone())], bad_key),
        (vec![("x-api-key", String::new())], bad_key),
        (vec![("authorization", format!("ApiKey {}", &key[1..]))], bad_key),
    ] {
        let presented: Vec<_> = presented.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let result = fixture.auth.user_of(&headers(&presented)).map(|user| user.is_some());
        assert_eq!(result, found, "{presented:?}");
    }
    let mut garbage = HeaderMap::new();
    garbage.insert("x-api-key", HeaderValue::from_bytes(b"\xff\xfe").unwrap());
    assert_eq!(fixture.auth.user_of(&garbage), Err(Denied::ApiKey));
}

#[test]
fn a_login_by_basic_has_a_name_and_a_password_in_utf_8() {
    let read = |value: &[u8]| {
        let value = HeaderValue::from_bytes(value).unwrap();
        let login = basic_login(&HeaderMap::from_iter([(AUTHORIZATION, value)]));
        login.map(|it| it.map(|(name, password)| format!("{name} {}", password.expose())))
    };
    let found = |text: &str| Ok(Some(text.to_owned()));
    for (value, expected) in [
        // RFC 7617, sections 2 and 2.1.
        (&b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="[..], found("Aladdin open sesame")),
        (b"basic  dGVzdDoxMjPCow== ", found("test 123\u{a3}")),
        (b"BASIC YTpiOmM=", found("a b:c")),
        (b"Basic Og==", found(" ")),
        (b"Basic", Err(Denied::Login)),
        (b"Basic YWJj", Err(Denied::Login)),
        (b"Basic \xff\xfe", Err(Denied::Login)),
        (b"Basic /zpi", Err(Denied::Login)),
        (b"Bearer YTpi", Ok(None)),
        (b"", Ok(None)),
    ] {
        assert_eq!(read(value), expected, "{}", String::from_utf8_lossy(value));
    }
    assert_eq!(basic_login(&HeaderMap::new()).map(|it| it.is_some()), Ok(false));
}

/// Uses delays that the test could never wait for. Holds T-guess.2.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_has_logged_in_before_is_not_delayed_by_guesses_of_others_at_its_address() {
    let limits = AuthLimits {
        failure_delay_max: Duration::from_secs(3600),
        // So that each login is verified.
        remember_login: Duration::ZERO,
    };
    let fixture = Fixture::with(limits);
    assert!(fixture.login("anna", "right").await.is_ok());
    let anna = Some(fixture.anna().id);
    fixture
        .auth
        .0
        .throttle
        .fail(Attempt { user: anna, username: "anna", address: ADDRESS, agent: "other" }, 12);
    let guess = || {
        let auth = fixture.auth.clone();
        tokio::spawn(async move { auth.login("anna", "wrong", ADDRESS, "other").await })
    };
    // Until the share of the address is used up by guesses that wait for an hour.
    while tokio::time::timeout(Duration::from_millis(10), guess()).await.is_err() {}
    assert_eq!(guess().await.unwrap(), Err(Denied::Busy));
    assert!(fixture.login("anna", "right").await.is_ok());
    assert!(fixture.player("anna", "remote").await.is_ok());
}

/// Holds T-guess.1.
#[tokio::test(flavor = "multi_thread")]
async fn after_failures_neither_the_player_password_nor_a_cached_one_is_compared_early() {
    let limits = AuthLimits { failure_delay_max: Duration::from_secs(3600), ..AuthLimits::default() };
    let fixture = Fixture::with(limits);
    assert!(fixture.login("anna", "right").await.is_ok());
    let other = async |password: &str| {
        let player = fixture.auth.player("anna", password, [192, 0, 2, 1].into(), "other");
        tokio::time::timeout(Duration::from_millis(200), player).await.ok()
    };
    let address = [192, 0, 2, 1].into();
    fixture.auth.0.throttle.fail(Attempt { user: None, username: "anna", address, agent: "other" }, 12);
    assert_eq!(other("right").await, None);
    assert_eq!(other("remote").await, None);
}

#[tokio::test]
async fn each_refusal_has_the_body_that_api_clients_expect() {
    let message =
        |text: &str| json!([{ "token_class": "AccessToken", "token_type": "access", "message": text }]);
    let any = "Given token not valid for any token type";
    for (denied, status, body) in [
        (Denied::NoCredentials, 401, json!({ "detail": "Authentication credentials were not provided." })),
        (Denied::ApiKey, 401, json!({ "detail": "Invalid API key" })),
        (Denied::Inactive, 401, json!({ "detail": "User inactive" })),
        (
            Denied::Token { expired: false },
            401,
            json!({ "detail": any, "code": "token_not_valid", "messages": message("Token is invalid") }),
        ),
        (
            Denied::Token { expired: true },
            401,
            json!({ "detail": any, "code": "token_not_valid", "messages": message("Token is expired") }),
        ),
        (
            Denied::Refresh { expired: false },
            401,
            json!({ "detail": "Token is invalid", "code": "token_not_valid" }),
        ),
        (
            Denied::Refresh { expired: true },
            401,
            json!({ "detail": "Token is expired", "code": "token_not_valid" }),
        ),
        (Denied::Login, 401, json!({ "detail": "No active account found with the given credentials" })),
        (Denied::Busy, 503, json!({ "detail": "too many simultaneous logins" })),
    ] {
        let (head, sent) = Refusal::from(denied).into_response().into_parts();
        let sent = sent.collect().await.unwrap().to_bytes();
        assert_eq!(head.status.as_u16(), status, "{denied:?}");
        let mut sent = serde_json::from_slice::<serde_json::Value>(&sent).unwrap();
        let members = sent.as_object_mut().unwrap();
        let code = members.get("code").cloned();
        assert!(code.is_some(), "{denied:?} has no code");
        // Beside what clients expect.
        if members.remove("values").is_some() && body.get("code").is_none() {
            members.remove("code");
        }
        assert_eq!(sent, body, "{denied:?}");
        assert_eq!(head.headers.contains_key("www-authenticate"), status == 401, "{denied:?}");
        assert_eq!(head.headers.contains_key("retry-after"), status == 503, "{denied:?}");
    }
}

#[test]
fn debug_output_contains_no_secret() {
    let fixture = Fixture::new();
    let tokens = fixture.auth.tokens(&fixture.anna(), None);
    let printed = format!("{:?} {:?} {:?}", fixture.auth, tokens, fixture.anna());
    for secret in
        [&tokens.access[..], "remote", "$argon2", fixture.anna().api_key.as_ref().unwrap().key.expose()]
    {
        assert!(!printed.contains(secret), "{printed}");
    }
}
