//! `/api/accounts/auth/browser/`: logins that a browser keeps in a cookie which no script can read.
//!
//! Only these routes read the cookie, and they require a header that pages of other origins cannot send for this host. All
//! other routes need the access token that `renew/` answers, which a page keeps in memory.

use std::sync::Arc;

use actors::now_ms;
use domain::login::{BrowserLogin, CookieUse, DeviceLogin, REFRESH_SECONDS, STAY_SECONDS};
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, SET_COOKIE};
use resource_derive::{Body, View};
use route_frame::access::Access;
use route_frame::call::{Call, cookies};
use route_frame::route::{Answer, AnswerShape, Route};
use route_frame::value::Shape;
use serde::Serialize;
use server::reply::Refusal;
use tracing::warn;
use url::Url;

use super::setup::is_on_this_machine;
use super::user_rules::PASSWORD_CHARS_MAX;
use super::{logins, tokens};
use crate::context::RestCall;
use crate::record::find;

/// Credentials of a login in a browser.
#[derive(Clone, Debug, Body)]
pub(crate) struct SignIn {
    /// Compared regardless of case.
    #[field(chars_max = USERNAME_CHARS_MAX, example = "anna")]
    username: String,
    /// The login password, not the player password.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    password: Secret,
    /// Whether the login lasts for 30 days without use instead of 24 hours.
    stay_signed_in: Option<bool>,
}

/// An access token of a browser.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct BrowserTokenView {
    /// Valid for 30 minutes; for `Authorization: Bearer`. `null` if the browser is not signed in.
    access: Option<String>,
}

/// An answer that sets the cookie, if one is given.
pub(crate) struct WithCookie {
    answer: BrowserTokenView,
    cookie: Option<HeaderValue>,
}

impl Answer for WithCookie {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::One(BrowserTokenView::KIND);

    fn into_reply(self) -> warp::reply::Response {
        let mut reply = self.answer.into_reply();
        if let Some(cookie) = self.cookie {
            reply.headers_mut().insert(SET_COOKIE, cookie);
        }
        reply
    }
}

const PATH: &str = "/api/accounts/auth/browser/";

pub(super) fn routes() -> Vec<Route> {
    let foreign = "The request does not come from a page of this host.";
    let from_page = |route: Route| route.refuses(StatusCode::FORBIDDEN, foreign);
    vec![
        from_page(Route::post(
            PATH,
            Access::Anyone,
            "Starts a login that the browser keeps in a cookie.",
            sign_in,
        ))
        .refuses(StatusCode::UNAUTHORIZED, tokens::WRONG_LOGIN),
        from_page(Route::post(
            "/api/accounts/auth/browser/renew/",
            Access::Anyone,
            "Returns an access token for the cookie, or `null` without a login.",
            renew,
        )),
        from_page(Route::post(
            "/api/accounts/auth/browser/logout/",
            Access::Anyone,
            "Ends the login of the cookie.",
            sign_out,
        )),
    ]
}

async fn sign_in(call: Call, body: SignIn) -> Result<WithCookie, Refusal> {
    check_page(&call)?;
    let (address, agent) = (call.caller.address(), &call.caller.agent);
    let user = call.rest().auth.login(&body.username, body.password.expose(), address, agent).await?;
    let idle_seconds_max = if body.stay_signed_in == Some(true) { STAY_SECONDS } else { REFRESH_SECONDS };
    begin(&call, &user, idle_seconds_max).await
}

/// Starts a login of this user in the browser.
async fn begin(call: &Call, user: &User, idle_seconds_max: i64) -> Result<WithCookie, Refusal> {
    let (value, digest) = call.rest().auth.new_cookie();
    let browser = BrowserLogin { digest, previous: None, replaced_at: now_ms(), idle_seconds_max };
    let login = logins::begin_in_browser(call, user, browser).await?;
    Ok(answer(call, user, &login, Some(&value)))
}

/// Returns the admin of the demo for a page in a browser on the same machine, which needs no password. `None` on all other
/// gateways.
fn demo_admin(call: &Call) -> Option<Arc<User>> {
    let demo = call.rest().demo.get().filter(|_| is_on_this_machine(call))?;
    call.rest().models.users.load().get(demo.admin.0).filter(|it| it.is_active).cloned()
}

async fn renew(call: Call) -> Result<WithCookie, Refusal> {
    check_page(&call)?;
    let now = now_ms();
    let found = cookie(&call).and_then(|it| call.rest().auth.login_of_cookie(&it));
    let used = found.and_then(|(digest, user, login)| {
        let used = login.browser.as_ref()?.cookie_use(&digest, now)?;
        Some((used, user, login))
    });
    let Some((used, user, login)) = used else {
        return match demo_admin(&call) {
            Some(user) => begin(&call, &user, REFRESH_SECONDS).await,
            None => Ok(signed_out(&call)),
        };
    };
    match used {
        CookieUse::Replayed => {
            warn!(user.id = user.id.0, client.address = %call.caller.address(), "a replaced cookie was used again, so its login has ended");
            logins::end(&call, vec![login.key]).await?;
            Ok(signed_out(&call))
        }
        CookieUse::Current if !login.was_just_used(now) => {
            let value = replace(&call, &login).await;
            Ok(answer(&call, &user, &login, value.as_ref()))
        }
        CookieUse::Current | CookieUse::JustReplaced => Ok(answer(&call, &user, &login, None)),
    }
}

async fn sign_out(call: Call) -> Result<WithCookie, Refusal> {
    check_page(&call)?;
    if let Some((_, _, login)) = cookie(&call).and_then(|it| call.rest().auth.login_of_cookie(&it)) {
        logins::end(&call, vec![login.key]).await?;
    }
    Ok(signed_out(&call))
}

/// Replaces the value of the cookie. Returns `None`, and the present one stays, if another request was faster or the store
/// refuses writes.
async fn replace(call: &Call, login: &DeviceLogin) -> Option<Secret> {
    let (value, digest) = call.rest().auth.new_cookie();
    if !call.rest().auth.is_stored(login.key) {
        return logins::continue_in_memory(call, login, digest).await.then_some(value);
    }
    let (id, before, now) = (login.id.0, login.browser.as_ref()?.digest, now_ms());
    let (address, agent) = (call.caller.address().to_canonical(), call.caller.agent.clone());
    let written = call.write(move |write| {
        let mut login = find::<DeviceLogin>(write, id)?;
        let Some(browser) = login.browser.as_mut().filter(|it| it.digest == before) else { return Ok(false) };
        browser.replace(digest, now);
        write.put(&DeviceLogin { used_at: now, address, agent, ..login })?;
        Ok(true)
    });
    match written.await {
        Ok(is_replaced) => is_replaced.then_some(value),
        Err(refusal) => {
            warn!(login.id = id, "failed to replace the cookie of a login: {refusal}");
            None
        }
    }
}

/// Returns an access token, with the cookie if it has a new value.
fn answer(call: &Call, user: &User, login: &DeviceLogin, value: Option<&Secret>) -> WithCookie {
    let access = call.rest().auth.tokens(user, logins::named_in_tokens(call, login)).access;
    let cookie = value.and_then(|it| set_cookie(call, it.expose(), login.idle_seconds_max()));
    WithCookie { answer: BrowserTokenView { access: Some(access) }, cookie }
}

/// Returns the answer without a login, which removes a cookie if the browser sent one.
fn signed_out(call: &Call) -> WithCookie {
    let cookie = cookie(call).and_then(|_| set_cookie(call, "", 0));
    WithCookie { answer: BrowserTokenView { access: None }, cookie }
}

fn cookie_name(call: &Call) -> String {
    format!("headwater_login_{}", call.rest().auth.installation())
}

/// Returns the value of the cookie of this installation.
fn cookie(call: &Call) -> Option<String> {
    cookies(&call.headers, &cookie_name(call)).next().map(str::to_owned)
}

fn set_cookie(call: &Call, value: &str, seconds: i64) -> Option<HeaderValue> {
    let is_https = origin(&call.headers).is_some_and(|it| it.starts_with("https://"));
    let secure = if is_https { "; Secure" } else { "" };
    let name = cookie_name(call);
    let path = format!("{}{PATH}", page_base(call)?);
    let text = format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ORIGIN)?.to_str().ok()
}

/// Refuses requests that a page of another origin, or no page, has sent.
fn check_page(call: &Call) -> Result<(), Refusal> {
    let is_json = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).is_some_and(|it| {
        it.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    });
    if is_json && page_base(call).is_some() {
        return Ok(());
    }
    Err(Refusal::status(StatusCode::FORBIDDEN).with_detail(
        "Send JSON from a page of this host: the header Origin must name the host and port of the public address, or of the \
         header Host. A reverse proxy must pass the header Host on, or public_url must name its address.",
    ))
}

/// Returns the path below which the page reaches the gateway, without a slash at the end; `None` if `Origin` names neither
/// host and port of the public address, nor those of `Host`. The scheme is not compared, because TLS ends at proxies.
fn page_base(call: &Call) -> Option<String> {
    let page = origin(&call.headers)?.split_once("://")?.1;
    let public = Url::parse(&call.origin()).ok()?;
    let port = public.port().map(|it| format!(":{it}")).unwrap_or_default();
    if page.eq_ignore_ascii_case(&format!("{}{port}", public.host_str()?)) {
        return Some(public.path().trim_end_matches('/').to_owned());
    }
    let host = call.headers.get(HOST)?.to_str().ok()?;
    host.eq_ignore_ascii_case(page).then(String::new)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use domain::ids::DeviceLoginId;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::testing::{Answer as TestAnswer, Rest};

    const RENEW: &str = "/api/accounts/auth/browser/renew/";
    const LOGOUT: &str = "/api/accounts/auth/browser/logout/";

    async fn post(rest: &Rest, path: &str, cookie: &str, origin: &str, body: &str) -> TestAnswer {
        let mut headers =
            vec![("content-type", "application/json"), ("host", "tv.example:9191"), ("origin", origin)];
        if !cookie.is_empty() {
            headers.push(("cookie", cookie));
        }
        rest.send("POST", path, &headers, body.to_owned()).await
    }

    /// Returns name and value of the cookie that an answer sets.
    fn set(answer: &TestAnswer) -> Option<String> {
        let header = answer.headers.get(SET_COOKIE)?.to_str().unwrap();
        Some(header.split(';').next().unwrap().to_owned())
    }

    /// Creates a user with a password, signs it in, and returns the cookie.
    async fn signed_in(rest: &Rest, origin: &str) -> (TestAnswer, String) {
        let user = json!({ "username": "anna", "password": "right", "user_level": 0 });
        assert_eq!(rest.admin("POST", "/api/accounts/users/", user).await.status, 201);
        let body = json!({ "username": "anna", "password": "right", "stay_signed_in": true }).to_string();
        let answer = post(rest, PATH, "", origin, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let cookie = set(&answer).unwrap();
        (answer, cookie)
    }

    /// Moves the last use of all logins into the past.
    async fn pass(rest: &Rest, ms: i64) {
        let logins = rest.models.store.collection::<DeviceLogin>().all().unwrap();
        rest.put(logins.into_iter().map(|mut it| {
            it.used_at -= ms;
            if let Some(browser) = &mut it.browser {
                browser.replaced_at -= ms;
            }
            it
        }))
        .await;
    }

    async fn status(rest: &Rest, access: &Value) -> u16 {
        let bearer = format!("Bearer {}", access.as_str().unwrap_or("none"));
        rest.send("GET", "/api/accounts/users/me/", &[("authorization", &bearer)], "").await.status
    }

    const HERE: &str = "http://tv.example:9191";

    #[tokio::test]
    async fn a_browser_stays_signed_in_by_a_cookie_that_is_replaced_when_it_is_used() {
        let rest = Rest::start().await;
        let (answer, first) = signed_in(&rest, "https://tv.example:9191").await;
        let header = answer.headers[SET_COOKIE].to_str().unwrap();
        for part in
            ["; HttpOnly", "; SameSite=Strict", "; Secure", "; Max-Age=2592000", &format!("; Path={PATH}")]
        {
            assert!(header.contains(part), "{header}");
        }
        assert_eq!(status(&rest, &answer.body["access"]).await, 200);
        // A reload a moment later writes nothing.
        let reloaded = post(&rest, RENEW, &first, HERE, "").await;
        assert_eq!((set(&reloaded), status(&rest, &reloaded.body["access"]).await), (None, 200));

        pass(&rest, 120_000).await;
        let renewed = post(&rest, RENEW, &first, HERE, "").await;
        let second = set(&renewed).unwrap();
        assert_ne!(first, second);
        // Another page of the same browser renews at the same moment.
        let other = post(&rest, RENEW, &first, HERE, "").await;
        assert_eq!((set(&other), status(&rest, &other.body["access"]).await), (None, 200));

        // Much later, the first value can only come from somebody who has copied it.
        pass(&rest, 120_000).await;
        let stolen = post(&rest, RENEW, &first, HERE, "").await;
        assert_eq!((stolen.status, &stolen.body), (200, &json!({ "access": null })));
        assert_eq!(post(&rest, RENEW, &second, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(status(&rest, &renewed.body["access"]).await, 401, "the login has ended");
    }

    #[tokio::test]
    async fn signing_out_ends_the_login_of_the_cookie() {
        let rest = Rest::start().await;
        let (answer, cookie) = signed_in(&rest, HERE).await;
        assert!(!answer.headers[SET_COOKIE].to_str().unwrap().contains("Secure"));
        let out = post(&rest, LOGOUT, &cookie, HERE, "").await;
        assert_eq!((out.status, &out.body), (200, &json!({ "access": null })));
        assert!(out.headers[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(status(&rest, &answer.body["access"]).await, 401);
        for cookie in [&*cookie, "", "headwater_login_00000000=x", "other=1"] {
            let answer = post(&rest, RENEW, cookie, HERE, "").await;
            assert_eq!((answer.status, answer.body), (200, json!({ "access": null })), "{cookie}");
        }
    }

    #[tokio::test]
    async fn only_pages_of_the_same_host_may_use_the_cookie() {
        let rest = Rest::start().await;
        let (_, cookie) = signed_in(&rest, HERE).await;
        for origin in
            ["http://evil.example", "http://tv.example", "http://tv.example:9191.evil.example", "null", ""]
        {
            for path in [PATH, RENEW, LOGOUT] {
                let body = json!({ "username": "anna", "password": "right" }).to_string();
                let answer = post(&rest, path, &cookie, origin, &body).await;
                assert_eq!((answer.status, set(&answer)), (403, None), "{origin} {path}");
            }
        }
        let headers = [("host", "tv.example:9191"), ("origin", HERE), ("cookie", &*cookie)];
        assert_eq!(rest.send("POST", RENEW, &headers, "").await.status, 403, "without a content type");
        // No other route takes the cookie for credentials.
        assert_eq!(rest.send("GET", "/api/accounts/users/me/", &headers, "").await.status, 401);
    }

    #[tokio::test]
    async fn a_page_behind_a_proxy_under_another_name_stays_signed_in() {
        let rest = Rest::start().await;
        signed_in(&rest, HERE).await;
        let body = json!({ "username": "anna", "password": "right" }).to_string();
        let sign_in = async |origin: &str| {
            let answer = post(&rest, PATH, "", origin, &body).await;
            let cookie = answer.headers.get(SET_COOKIE).map(|it| it.to_str().unwrap().to_owned());
            (answer.status, cookie.unwrap_or_default())
        };
        // The header Host names the gateway behind the proxy.
        assert_eq!(sign_in("https://watch.example").await.0, 403);
        let settings = rest.admin("GET", "/api/core/settings/", Value::Null).await.body;
        let of_system = settings["results"].as_array().unwrap_or_else(|| settings.as_array().unwrap());
        let of_system = of_system.iter().find(|it| it["key"] == "system_settings").unwrap();
        let path = format!("/api/core/settings/{}/", of_system["id"]);
        let public = json!({ "value": { "public_url": "https://watch.example/tv" } });
        let set = rest.admin("PATCH", &path, public).await;
        assert_eq!(set.status, 200, "{}", set.text);

        let (status, cookie) = sign_in("https://watch.example").await;
        assert!(status == 200 && cookie.contains(&format!("; Path=/tv{PATH};")), "{status} {cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let renewed = post(&rest, RENEW, cookie, "https://watch.example", "").await;
        assert_eq!(self::status(&rest, &renewed.body["access"]).await, 200);
        // At home, the gateway is reached directly.
        let (status, cookie) = sign_in(HERE).await;
        assert!(status == 200 && cookie.contains(&format!("; Path={PATH};")), "{status} {cookie}");
        for foreign in
            ["https://watch.example.evil.example", "https://evil.example", "https://watch.example:8443"]
        {
            assert_eq!(sign_in(foreign).await, (403, String::new()), "{foreign}");
        }
    }

    /// Signs anna in, and returns the access token and the cookie.
    async fn sign_in(rest: &Rest) -> (String, String) {
        let body = json!({ "username": "anna", "password": "right" }).to_string();
        let answer = post(rest, PATH, "", HERE, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        (answer.body["access"].as_str().unwrap().to_owned(), set(&answer).unwrap())
    }

    async fn me(rest: &Rest, access: &str) -> u16 {
        status(rest, &json!(access)).await
    }

    /// The logins of the owner of an access token: whether each is the current one, and its id.
    async fn logins(rest: &Rest, access: &str) -> Vec<(bool, u64)> {
        let bearer = format!("Bearer {access}");
        let listed = rest.send("GET", "/api/accounts/logins/", &[("authorization", &bearer)], "").await.body;
        let view = |it: &Value| (it["is_current"].as_bool().unwrap(), it["id"].as_u64().unwrap());
        listed["results"].as_array().unwrap().iter().map(view).collect()
    }

    async fn end_login(rest: &Rest, access: &str, id: u64) -> u16 {
        let path = format!("/api/accounts/logins/{id}/");
        rest.send("DELETE", &path, &[("authorization", &format!("Bearer {access}"))], "").await.status
    }

    // With a full disk, nobody could sign in to the page to see why: the route answered 503, while a program got a token.
    #[tokio::test]
    async fn a_browser_signs_in_while_the_store_refuses_writes_and_the_login_obeys_all_rules() {
        let rest = Rest::start().await;
        signed_in(&rest, HERE).await;
        rest.models.store.close();
        let (access, first) = sign_in(&rest).await;
        assert_eq!(me(&rest, &access).await, 200);
        let listed = logins(&rest, &access).await;
        assert_eq!(listed.iter().map(|it| it.0).collect::<Vec<_>>(), [false, true], "the stored one is kept");

        // The cookie is replaced, and a copy of the former one ends the login.
        let memory = rest.auth.memory_logins();
        let reloaded = post(&rest, RENEW, &first, HERE, "").await;
        assert_eq!((set(&reloaded), status(&rest, &reloaded.body["access"]).await), (None, 200));
        memory.pass(120_000);
        let renewed = post(&rest, RENEW, &first, HERE, "").await;
        let second = set(&renewed).unwrap();
        let other = post(&rest, RENEW, &first, HERE, "").await;
        assert_eq!((set(&other), status(&rest, &other.body["access"]).await), (None, 200));
        memory.pass(120_000);
        assert_eq!(post(&rest, RENEW, &first, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(post(&rest, RENEW, &second, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(me(&rest, &access).await, 401);

        // A log-out ends it, by the cookie and by the token.
        let (access, cookie) = sign_in(&rest).await;
        assert_eq!(post(&rest, LOGOUT, &cookie, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(me(&rest, &access).await, 401);
        let (access, cookie) = sign_in(&rest).await;
        let bearer = format!("Bearer {access}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        assert_eq!(rest.send("POST", "/api/accounts/auth/logout/", &headers, "{}").await.status, 200);
        assert_eq!(post(&rest, RENEW, &cookie, HERE, "").await.body, json!({ "access": null }));

        // So do its owner and admins, and nobody else.
        let (one, _) = sign_in(&rest).await;
        let (two, _) = sign_in(&rest).await;
        let id = logins(&rest, &one).await.iter().find(|it| it.0).unwrap().1;
        assert_eq!(
            rest.standard("DELETE", &format!("/api/accounts/logins/{id}/"), Value::Null).await.status,
            404
        );
        assert_eq!(end_login(&rest, &two, id).await, 204);
        assert_eq!((me(&rest, &one).await, me(&rest, &two).await), (401, 200));
        assert_eq!(end_login(&rest, &two, id).await, 404);

        // A device that always signs in again ends only its own logins.
        for _ in 0..8 {
            sign_in(&rest).await;
        }
        assert_eq!(me(&rest, &two).await, 401);
        // Without use, it ends.
        let (_, cookie) = sign_in(&rest).await;
        memory.pass(REFRESH_SECONDS * 1000 + 60_000);
        assert_eq!(post(&rest, RENEW, &cookie, HERE, "").await.body, json!({ "access": null }));
    }

    /// Signs anna in as while the store refuses writes, and returns the access token and the cookie.
    fn in_memory(rest: &Rest) -> (String, String, Uuid) {
        let anna = rest.models.users.load().one_by("username", User::name_key("anna")).unwrap().clone();
        let (value, digest) = rest.auth.new_cookie();
        let browser =
            BrowserLogin { digest, previous: None, replaced_at: now_ms(), idle_seconds_max: REFRESH_SECONDS };
        let login = DeviceLogin {
            id: DeviceLoginId(0),
            user: anna.id,
            key: Uuid::new_v4(),
            generation: anna.generation,
            created_at: now_ms(),
            used_at: now_ms(),
            address: Ipv4Addr::LOCALHOST.into(),
            agent: String::new(),
            browser: Some(browser),
        };
        let login = rest.auth.memory_logins().add(login, now_ms());
        let cookie = format!("headwater_login_{}={}", rest.auth.installation(), value.expose());
        (rest.auth.tokens(&anna, Some(&login)).access, cookie, login.key)
    }

    #[tokio::test]
    async fn a_login_in_memory_is_stored_when_its_cookie_is_replaced_and_goes_on() {
        let rest = Rest::start().await;
        signed_in(&rest, HERE).await;
        let (access, first, key) = in_memory(&rest);
        rest.auth.memory_logins().pass(120_000);
        assert!(!rest.auth.is_stored(key));
        let renewed = post(&rest, RENEW, &first, HERE, "").await;
        let second = set(&renewed).unwrap();
        assert!(rest.auth.is_stored(key) && rest.auth.memory_logins().by_key(key).is_none());
        assert_eq!((me(&rest, &access).await, status(&rest, &renewed.body["access"]).await), (200, 200));
        for cookie in [&first, &second] {
            assert!(post(&rest, RENEW, cookie, HERE, "").await.body["access"].is_string());
        }
        assert_eq!(logins(&rest, &access).await.len(), 2);
        assert_eq!(post(&rest, LOGOUT, &second, HERE, "").await.status, 200);
        assert_eq!((me(&rest, &access).await, rest.auth.is_stored(key)), (401, false));
    }

    #[tokio::test]
    async fn a_new_password_ends_logins_in_memory_except_for_the_one_that_set_it() {
        let rest = Rest::start().await;
        signed_in(&rest, HERE).await;
        let (own, own_cookie, key) = in_memory(&rest);
        let (other, other_cookie, _) = in_memory(&rest);
        let bearer = format!("Bearer {own}");
        let body = json!({ "password": "new", "current_password": "right" }).to_string();
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let changed = rest.send("PATCH", "/api/accounts/users/me/", &headers, body).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert!(rest.auth.is_stored(key), "stored with the password");
        assert_eq!((me(&rest, &own).await, me(&rest, &other).await), (200, 401));
        assert!(post(&rest, RENEW, &own_cookie, HERE, "").await.body["access"].is_string());
        assert_eq!(post(&rest, RENEW, &other_cookie, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(logins(&rest, &own).await.len(), 1);

        // An admin ends all of them by changing it, and by deactivating or deleting the user.
        let (access, cookie, _) = in_memory(&rest);
        let path = {
            let anna = rest.models.users.load().one_by("username", User::name_key("anna")).unwrap().id;
            format!("/api/accounts/users/{anna}/")
        };
        assert_eq!(rest.admin("PATCH", &path, json!({ "password": "newer" })).await.status, 200);
        assert_eq!(me(&rest, &access).await, 401);
        assert_eq!(post(&rest, RENEW, &cookie, HERE, "").await.body, json!({ "access": null }));
        let (access, cookie, _) = in_memory(&rest);
        assert_eq!(me(&rest, &access).await, 200);
        assert_eq!(rest.admin("PATCH", &path, json!({ "is_active": false })).await.status, 200);
        assert_ne!(me(&rest, &access).await, 200);
        assert_eq!(post(&rest, RENEW, &cookie, HERE, "").await.body, json!({ "access": null }));
        assert_eq!(rest.admin("PATCH", &path, json!({ "is_active": true })).await.status, 200);
        assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
        assert_eq!(me(&rest, &access).await, 401);
        assert_eq!(post(&rest, RENEW, &cookie, HERE, "").await.body, json!({ "access": null }));
    }
}
