//! Everything together, over a store of its own.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use domain::ids::UserId;
use domain::user::UserLevel;
use http::header::HeaderName;
use http_body_util::BodyExt as _;
use storage::{Error, Store};
use tokio::sync::mpsc;
use tokio::task::block_in_place;

use super::*;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const KEYS: ServerKeys = ServerKeys { tokens: [1; 32], lookup: [2; 32] };

/// A store with one user, and what is told.
struct House {
    auth: Auth,
    store: Store,
    told: mpsc::UnboundedReceiver<Event>,
}

impl House {
    /// `anna` with password `right` and player password `remote`.
    fn new() -> Self {
        Self::with(AuthLimits { failure_delay_max: Duration::ZERO, ..AuthLimits::default() })
    }

    fn with(limits: AuthLimits) -> Self {
        block_in_place(|| Self::blocking(&limits))
    }

    fn blocking(limits: &AuthLimits) -> Self {
        let store = Store::temporary(storage::records::schema()).unwrap();
        let (tell, told) = mpsc::unbounded_channel();
        let auth = Auth::over(store.table().unwrap(), &KEYS, limits, move |event| tell.send(event).unwrap());
        let anna = User {
            password: Some(hash_password("right")),
            player_password: Some(Secret::new("remote")),
            api_key: Some(auth.new_api_key()),
            ..User::new(UserId(1), "anna", UserLevel::Standard, 0)
        };
        store.write_blocking(move |write| write.put(&anna)).unwrap();
        Self { auth, store, told }
    }

    fn anna(&self) -> Arc<User> {
        self.auth.0.users.load().get(1).unwrap().clone()
    }

    fn change(&self, change: impl FnOnce(&mut User)) {
        let mut anna = User::clone(&self.anna());
        change(&mut anna);
        block_in_place(|| self.store.write_blocking(move |write| write.put(&anna))).unwrap();
    }

    async fn login(&self, username: &str, password: &str) -> Result<Arc<User>, Denied> {
        self.auth.login(username, password, ADDRESS, "agent").await
    }

    async fn player(&self, username: &str, password: &str) -> Result<Arc<User>, Denied> {
        self.auth.player(username, password, ADDRESS, "agent").await
    }

    /// What was told since the last time, as subscribers get it.
    fn told(&mut self) -> Vec<serde_json::Value> {
        let told = std::iter::from_fn(|| self.told.try_recv().ok());
        told.map(|event| serde_json::to_value(event).unwrap()).collect()
    }
}

fn headers(of: &[(&str, &str)]) -> HeaderMap {
    of.iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_logs_in_with_its_password_and_a_player_with_either() {
    let house = House::new();
    for (username, password, by_account, by_player) in [
        ("anna", "right", true, true),
        ("ANNA", "right", true, true),
        ("anna", "remote", false, true),
        ("anna", "wrong", false, false),
        ("anna", "", false, false),
        ("berta", "right", false, false),
        ("", "", false, false),
    ] {
        assert_eq!(house.login(username, password).await.is_ok(), by_account, "{username} {password}");
        assert_eq!(house.player(username, password).await.is_ok(), by_player, "{username} {password}");
    }
    house.change(|it| it.player_password = Some(Secret::new("")));
    assert_eq!(house.player("anna", "").await, Err(Denied::Login), "an empty player password lets nobody in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_login_is_told_with_its_reason_and_without_the_password() {
    let mut house = House::new();
    house.login("anna", "hunter2").await.unwrap_err();
    house.player("nobody\r\n", "hunter2").await.unwrap_err();
    house.change(|it| it.is_active = false);
    house.login("anna", "right").await.unwrap_err();
    house.player("anna", "remote").await.unwrap_err();
    let told = house.told();
    let of = |key: &str| told.iter().map(|it| it[key].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("reason"), ["wrong password", "unknown user", "inactive user", "wrong password"]);
    assert_eq!(of("user"), ["anna", "nobody", "anna", "anna"]);
    assert_eq!(of("client_ip"), ["127.0.0.1"; 4]);
    assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_ends_what_the_old_one_opened() {
    let house = House::new();
    let tokens = house.auth.tokens(&house.login("anna", "right").await.unwrap());
    assert!(house.auth.user_of_token(&tokens.access).is_ok() && house.auth.refresh(&tokens.refresh).is_ok());
    let password = house.auth.hash("new".to_owned()).await.unwrap();
    house.change(|it| {
        it.password = Some(password);
        it.generation += 1;
    });
    assert_eq!(house.login("anna", "right").await, Err(Denied::Login), "not from memory either");
    assert_eq!(house.auth.user_of_token(&tokens.access), Err(Denied::Token { expired: false }));
    assert_eq!(house.auth.refresh(&tokens.refresh), Err(Denied::Refresh { expired: false }));
    assert!(house.login("anna", "new").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_lowered_inactive_or_gone_is_so_at_the_next_use() {
    let house = House::new();
    let anna = house.login("anna", "right").await.unwrap();
    let tokens = house.auth.tokens(&anna);
    let key = headers(&[("x-api-key", anna.api_key.as_ref().unwrap().key.expose())]);
    let bearer = headers(&[("authorization", &format!("Bearer {}", tokens.access))]);
    let level = |headers| house.auth.user_of(headers).unwrap().unwrap().effective_level();

    house.change(|it| it.level = UserLevel::Streamer);
    assert_eq!((level(&bearer), level(&key)), (UserLevel::Streamer, UserLevel::Streamer));

    house.change(|it| it.is_active = false);
    assert_eq!(house.auth.user_of(&bearer), Err(Denied::Inactive));
    assert_eq!(house.auth.user_of(&key), Err(Denied::Inactive));
    assert_eq!(house.auth.refresh(&tokens.refresh), Err(Denied::Inactive));
    assert_eq!(house.login("anna", "right").await, Err(Denied::Login), "remembered, and inactive");
    assert_eq!(house.player("anna", "remote").await, Err(Denied::Login));

    let gone = |write: &mut storage::Write<'_>| write.remove::<User>(1);
    block_in_place(|| house.store.write_blocking::<_, Error, _>(gone)).unwrap();
    assert_eq!(house.auth.user_of(&bearer), Err(Denied::Token { expired: false }));
    assert_eq!(house.auth.user_of(&key), Err(Denied::ApiKey));
    assert_eq!(house.auth.refresh(&tokens.refresh), Err(Denied::Refresh { expired: false }));
    assert_eq!(house.login("anna", "right").await, Err(Denied::Login));
}

#[test]
fn credentials_are_found_where_programs_put_them() {
    let house = House::new();
    let anna = house.anna();
    let key = anna.api_key.as_ref().unwrap().key.expose();
    let token = house.auth.tokens(&anna).access;
    let (bad_token, bad_key) = (Err(Denied::Token { expired: false }), Err(Denied::ApiKey));
    for (shown, found) in [
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
        let shown: Vec<_> = shown.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let result = house.auth.user_of(&headers(&shown)).map(|user| user.is_some());
        assert_eq!(result, found, "{shown:?}");
    }
    let mut garbage = HeaderMap::new();
    garbage.insert("x-api-key", HeaderValue::from_bytes(b"\xff\xfe").unwrap());
    assert_eq!(house.auth.user_of(&garbage), Err(Denied::ApiKey));
}

/// With the longest delay there is: whoever logs in correctly does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_correct_login_is_not_slowed_by_somebody_who_guesses_from_the_same_address() {
    let limits = AuthLimits { failure_delay_max: Duration::from_secs(3600), ..AuthLimits::default() };
    let mut house = House::with(limits);
    for _ in 0..20 {
        let auth = house.auth.clone();
        tokio::spawn(async move { auth.login("anna", "wrong", ADDRESS, "agent").await });
    }
    // Every guess was looked at; most of the answers are held back for as long as this test would never wait.
    for _ in 0..20 {
        house.told.recv().await.unwrap();
    }
    assert!(house.login("anna", "right").await.is_ok());
    assert!(house.player("anna", "remote").await.is_ok());
}

#[tokio::test]
async fn each_refusal_has_the_shape_that_programs_know() {
    let message =
        |text: &str| json!([{ "token_class": "AccessToken", "token_type": "access", "message": text }]);
    let any = "Given token not valid for any token type";
    for (denied, status, body) in [
        (Denied::Nobody, 401, json!({ "detail": "Authentication credentials were not provided." })),
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
        (Denied::Busy, 503, json!({ "detail": "too many log in at once" })),
    ] {
        let (head, sent) = Refusal::from(denied).into_response().into_parts();
        let sent = sent.collect().await.unwrap().to_bytes();
        assert_eq!(head.status.as_u16(), status, "{denied:?}");
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&sent).unwrap(), body, "{denied:?}");
        assert_eq!(head.headers.contains_key("www-authenticate"), status == 401, "{denied:?}");
        assert_eq!(head.headers.contains_key("retry-after"), status == 503, "{denied:?}");
    }
}

#[test]
fn nothing_prints_a_secret() {
    let house = House::new();
    let tokens = house.auth.tokens(&house.anna());
    let printed = format!("{:?} {:?} {:?}", house.auth, tokens, house.anna());
    for secret in
        [&tokens.access[..], "remote", "$argon2", house.anna().api_key.as_ref().unwrap().key.expose()]
    {
        assert!(!printed.contains(secret), "{printed}");
    }
}
