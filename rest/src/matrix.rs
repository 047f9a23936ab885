//! Calls every route as every kind of user and with every kind of input. Generated from the table of routes.

use std::collections::{BTreeMap, BTreeSet};

use config::NetworkClass;
use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{
    AccountId, ChannelId, GroupId, IntegrationId, LineupId, OutputProfileId, ProfileId, StreamId, UserGroupId,
};
use domain::integration::{Integration, Signing, Subscription, Target, Webhook};
use domain::lineup::Lineup;
use domain::output_profile::OutputProfile;
use domain::plugin::{Plugin, PluginKey, ReportedParts};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::UserLevel;
use domain::user_group::UserGroup;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use route_frame::access::Access;
use route_frame::call::ParameterKind;
use route_frame::field::{Field, Kind};
use route_frame::input::BodyShape;
use route_frame::route::{AnswerShape, Route};
use serde_json::{Value, json};
use uuid::Uuid;

use super::routes;
use crate::testing::{ADMIN, INACTIVE, REMOTE, Rest, SECRET, STANDARD, STREAMER, SUPERUSER, TRUSTED_PROXY};
use crate::title_testing::put_titles;

/// Holds T-acc.1, T-acc.6 for a third of the callers of each route, which are others for the next route.
#[tokio::test]
async fn every_route_accepts_the_users_that_it_declares_and_no_others() {
    accept_declared_users(3).await;
}

/// Calls every route as every n-th caller.
async fn accept_declared_users(n: usize) {
    let rest = furnished().await;
    for (n_route, route) in deletions_last().into_iter().enumerate() {
        for TestCaller { who, peer, headers, credentials, is_anonymous_for } in
            everybody(&rest).into_iter().skip(n_route % n).step_by(n)
        {
            for path in paths(&route) {
                let method = method(&route);
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let answer = rest.send_from(peer, method, &path, &headers).await;
                // Restored for the next caller, because a call may have deleted a user or revoked a key.
                rest.restore_users().await;
                let is_anonymous = route.network_class.is_some_and(is_anonymous_for);
                // No path contains a valid login.
                let expected = match (rest.access(&route, &path), credentials) {
                    (Access::Anyone, _) => None,
                    (Access::UsersOrNetworks(_) | Access::TitleOrNetworks(_), Credentials::Missing) => {
                        (!is_anonymous).then_some(403)
                    }
                    // They are asked for a login.
                    (Access::PlayersOrNetworks(_), Credentials::Missing) => (!is_anonymous).then_some(401),
                    (
                        Access::From(needed)
                        | Access::FromHeaderOrQuery(needed)
                        | Access::UsersOrNetworks(needed)
                        | Access::TitleOrNetworks(needed)
                        | Access::PlayersOrNetworks(needed),
                        Credentials::Level(level),
                    ) => (level < needed.number()).then_some(403),
                    _ => Some(401),
                };
                match expected {
                    Some(status) => assert_eq!(answer.status, status, "{who}: {method} {path}"),
                    None => {
                        let is_let_in =
                            !matches!(answer.status, 401 | 403) || declares(&route, answer.status);
                        assert!(is_let_in, "{who}: {method} {path}: {} {}", answer.status, answer.text);
                    }
                }
            }
        }
    }
}

/// Holds T-acc.1.
#[tokio::test]
async fn a_route_with_a_login_in_its_path_accepts_active_users_with_their_password() {
    let rest = furnished().await;
    let mut n_routes = 0;
    for route in routes().iter().filter(|it| matches!(it.access, Access::PathLogin)) {
        n_routes += 1;
        for (user, password, is_accepted) in [
            (STREAMER, STREAMER, true),
            (ADMIN, ADMIN, true),
            (STREAMER, ADMIN, false),
            (INACTIVE, INACTIVE, false),
        ] {
            let player_password = rest.user(password).player_password.clone().unwrap();
            let player_password = utf8_percent_encode(player_password.expose(), NON_ALPHANUMERIC).to_string();
            let path = route.path.replace("{user}", &rest.user(user).username);
            let path = path
                .replace("{password}", &player_password)
                .replace("{file}", "1")
                .replace("{stream_file}", "1");
            let answer = rest.send(method(route), &path, &[], "").await;
            assert_eq!(answer.status != 401, is_accepted, "{path}: {} {}", answer.status, answer.text);
        }
    }
    assert!(n_routes > 0);
}

/// Holds T-acc.1.
#[tokio::test]
async fn a_route_with_a_login_in_its_query_accepts_active_users_with_their_password() {
    let rest = furnished().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let mut n_routes = 0;
    for route in routes().iter().filter(|it| matches!(it.access, Access::QueryLogin)) {
        n_routes += 1;
        let (streamer, wrong) = (rest.query_login(STREAMER), rest.query_login(ADMIN));
        let wrong = wrong.replace("administrator", "streamer");
        for (login, is_accepted) in [
            (&*streamer, true),
            (&rest.query_login(INACTIVE), false),
            (&wrong, false),
            ("username=streamer", false),
        ] {
            let path = format!("{}?{login}", route.path);
            let answer = rest.send(method(route), &path, &[], "").await;
            assert_eq!(answer.status != 401, is_accepted, "{path}: {} {}", answer.status, answer.text);
            if route.method == Method::POST {
                let answer = rest.send("POST", &path, &form, login.to_owned()).await;
                assert_eq!(answer.status != 401, is_accepted, "{login}: {} {}", answer.status, answer.text);
            }
        }
    }
    assert!(n_routes > 0);
}

/// Holds T-rest.1 for every nineteenth of all inputs, one route after another, so that each kind of input is sent to some
/// routes.
#[tokio::test]
async fn one_input_in_nineteen_to_a_route_gets_a_documented_answer() {
    get_documented_answers(19).await;
}

mod night {
    /// Holds T-acc.1, T-acc.6.
    #[tokio::test]
    async fn every_route_accepts_every_user_that_it_declares_and_no_other() {
        super::accept_declared_users(1).await;
    }

    /// Holds T-rest.1.
    #[tokio::test]
    async fn every_input_to_a_route_gets_a_documented_answer() {
        super::get_documented_answers(1).await;
    }
}

/// Sends every n-th input. [`Rest`] checks that no handler fails, that each answer conforms to the schema, and that a
/// refusal changes nothing.
async fn get_documented_answers(n: usize) {
    let rest = furnished().await;
    let mut n_inputs = 0;
    let mut is_sent = || {
        n_inputs += 1;
        n_inputs % n == 0
    };
    for route in deletions_last() {
        for path in paths(&route) {
            for query in hostile_queries(&route) {
                if !is_sent() {
                    continue;
                }
                let login = match route.access {
                    Access::QueryLogin => rest.query_login(ADMIN) + "&",
                    _ => String::new(),
                };
                let path = format!("{path}?{login}{query}");
                rest.admin(method(&route), &path, Value::Null).await;
            }
            for body in hostile_bodies(&route) {
                if !is_sent() {
                    continue;
                }
                rest.admin(method(&route), &path, body).await;
            }
        }
        for path in hostile_paths(&route) {
            if !is_sent() {
                continue;
            }
            let answer = rest.admin(method(&route), &path, Value::Null).await;
            assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
        }
    }
}

/// Returns all routes in an order in which the objects of [`furnished`] exist as long as possible.
fn deletions_last() -> Vec<Route> {
    let mut routes = routes();
    routes.sort_by_key(|it| it.method == Method::DELETE);
    routes
}

/// The credentials that a caller sends in a header.
#[derive(Clone, Copy)]
enum Credentials {
    /// The request has none, or only some that are not meant for the gateway.
    Missing,
    Invalid,
    /// Those of a user of this level.
    Level(u8),
}

/// A kind of caller.
struct TestCaller {
    who: &'static str,
    peer: [u8; 4],
    headers: Vec<(&'static str, String)>,
    credentials: Credentials,
    /// Whether the caller needs no credentials for this class.
    is_anonymous_for: fn(NetworkClass) -> bool,
}

/// Returns every kind of caller: with every kind of credentials from a remote network, and without any from everywhere,
/// also behind proxies.
fn everybody(rest: &Rest) -> Vec<TestCaller> {
    let remote = with_credentials(rest).into_iter().map(|(who, name, value, credentials)| TestCaller {
        who,
        peer: REMOTE,
        headers: vec![(name, value)],
        credentials,
        is_anonymous_for: |_| false,
    });
    let local = anonymous().into_iter().map(|(who, peer, forwarded, is_anonymous_for)| TestCaller {
        who,
        peer,
        headers: forwarded.map(|(name, value)| (name, value.to_owned())).into_iter().collect(),
        credentials: Credentials::Missing,
        is_anonymous_for,
    });
    let behind_proxy = TestCaller {
        who: "an admin behind a proxy",
        peer: [192, 168, 1, 9],
        headers: vec![("authorization", rest.bearer(ADMIN)), ("x-forwarded-for", "203.0.113.9".to_owned())],
        credentials: Credentials::Level(10),
        is_anonymous_for: |_| false,
    };
    remote.chain(local).chain([behind_proxy]).collect()
}

/// Name, peer, header of a proxy, and classes that need no credentials, of a caller who sends none.
type AnonymousCaller =
    (&'static str, [u8; 4], Option<(&'static str, &'static str)>, fn(NetworkClass) -> bool);

fn anonymous() -> Vec<AnonymousCaller> {
    let loopback = |class| !matches!(class, NetworkClass::Ui | NetworkClass::XcApi);
    let private = |class| !matches!(class, NetworkClass::Ui | NetworkClass::XcApi | NetworkClass::Metrics);
    let nobody = |_| false;
    let named = |client| Some(("x-forwarded-for", client));
    vec![
        ("loopback", [127, 0, 0, 1], None, loopback),
        ("a local caller", [192, 168, 1, 5], None, private),
        ("behind a proxy", [127, 0, 0, 1], named("127.0.0.1"), nobody),
        ("behind a proxy of the local network", [192, 168, 1, 9], named("192.168.1.5"), nobody),
        ("behind a proxy with another header", [127, 0, 0, 1], Some(("via", "1.1 proxy")), nobody),
        ("remote behind a trusted proxy", TRUSTED_PROXY, named("127.0.0.1, 203.0.113.9"), nobody),
        ("local behind a trusted proxy", TRUSTED_PROXY, named("192.168.1.5"), private),
        ("unknown behind a trusted proxy", TRUSTED_PROXY, named("unknown"), nobody),
        ("a trusted proxy without a client", TRUSTED_PROXY, None, nobody),
    ]
}

/// Returns name, header, header value, and credentials of every kind of caller from a remote network.
fn with_credentials(rest: &Rest) -> Vec<(&'static str, &'static str, String, Credentials)> {
    let bearer = |user| rest.bearer(user);
    let expired = rest.auth.tokens_of(&rest.user(ADMIN), 1_000_000_000).access;
    let refresh = rest.auth.tokens(&rest.user(ADMIN), None).refresh;
    let admin = rest.user(ADMIN);
    let key = admin.api_key.as_ref().map(|it| it.key.expose().to_owned()).unwrap();
    vec![
        ("a caller without credentials", "accept", "*/*".to_owned(), Credentials::Missing),
        ("an invalid token", "authorization", "Bearer a.b.c".to_owned(), Credentials::Invalid),
        ("basic authentication", "authorization", "Basic YTpi".to_owned(), Credentials::Missing),
        ("an invalid key", "x-api-key", "wrong".to_owned(), Credentials::Invalid),
        ("an expired token", "authorization", format!("Bearer {expired}"), Credentials::Invalid),
        ("a refresh token", "authorization", format!("Bearer {refresh}"), Credentials::Invalid),
        ("an inactive user", "authorization", bearer(INACTIVE), Credentials::Invalid),
        ("a streamer", "authorization", bearer(STREAMER), Credentials::Level(0)),
        ("a standard user", "authorization", bearer(STANDARD), Credentials::Level(1)),
        ("an admin", "authorization", bearer(ADMIN), Credentials::Level(10)),
        ("a superuser", "authorization", bearer(SUPERUSER), Credentials::Level(10)),
        ("a key", "x-api-key", key.clone(), Credentials::Level(10)),
        ("a key in the other header", "authorization", format!("ApiKey {key}"), Credentials::Level(10)),
    ]
}

/// Returns whether the route declares a refusal with this status.
fn declares(route: &Route, status: u16) -> bool {
    route.refusals.iter().any(|it| it.0.as_u16() == status)
}

/// Returns the method to call a route with. HEAD for streams, because no provider of this test sends one; a handler that
/// opens a stream for HEAD answers 503 here, and fails the test.
fn method(route: &Route) -> &str {
    match route.answer {
        AnswerShape::StreamOrRedirect(_) => "HEAD",
        _ => route.method.as_str(),
    }
}

/// Returns the paths of a route for a missing and for an existing object.
fn paths(route: &Route) -> Vec<String> {
    if route.path_parameters().next().is_none() {
        return vec![route.path.to_owned()];
    }
    let with = |id: &str, uuid: Uuid, text: &str| {
        let uuid = uuid.to_string();
        let fill = |path: String, name| {
            let value = match ParameterKind::from_name(name) {
                ParameterKind::Id | ParameterKind::File | ParameterKind::StreamFile => id,
                ParameterKind::Uuid => &uuid,
                ParameterKind::Text => text,
            };
            path.replace(&format!("{{{name}}}"), value)
        };
        route.path_parameters().fold(route.path.to_owned(), fill)
    };
    let missing = Uuid::from_u128(9);
    let mut paths = vec![with("999999", missing, "999999"), with("1", UUID, "1")];
    if let Access::Depends { .. } = route.access {
        let texts = [missing.to_string(), UUID.to_string(), "neither".to_owned()];
        paths.extend(texts.map(|it| with("1", UUID, &it)));
    }
    // The existing object is last, because a DELETE removes it.
    paths
}

fn hostile_paths(route: &Route) -> Vec<String> {
    route
        .path_parameters()
        .flat_map(|name| {
            ["-1", "x", "4294967296", "1.5", "%00", "..%2f..%2f", "1e3", "%f0%9f%98%80"].map(|text| {
                let path = route.path.replace(&format!("{{{name}}}"), text);
                route.path_parameters().fold(path, |path, name| path.replace(&format!("{{{name}}}"), "1"))
            })
        })
        .collect()
}

fn hostile_queries(route: &Route) -> Vec<String> {
    let texts = [
        "",
        "-1",
        "0",
        "x",
        "%00",
        "%ff",
        "NaN",
        "1e400",
        "9223372036854775807",
        "99999999999999999999",
        "true",
        "maybe",
        "1,2,x",
        ",,,",
        "%5B%5D",
        "'%22;--",
        "(a%2B)%2B$",
        "-id",
    ];
    let of_field = |field: &Field| texts.map(|text| format!("{}={text}", field.name));
    let mut queries: Vec<String> = route.inputs.query.iter().flat_map(of_field).collect();
    let all = |text: &str| route.inputs.query.iter().map(|it| format!("{}={text}&", it.name)).collect();
    queries.extend(["x", "1", ""].map(all));
    queries.push("unknown=1&&=&%".to_owned());
    queries
}

/// Returns bodies with one invalid field each, and valid values in all others.
fn hostile_bodies(route: &Route) -> Vec<Value> {
    let Some(shape) = route.inputs.body else { return vec![Value::Null] };
    let is_many = matches!(shape, BodyShape::Many(..));
    let fields: Vec<&Field> = shape.fields().filter(|it| it.is_in_bodies()).collect();
    let good =
        || fields.iter().map(|it| (it.name.to_owned(), example(it))).collect::<serde_json::Map<_, _>>();
    let mut objects = vec![Value::from(good()), json!({}), json!({ "unknown": [1] })];
    for field in &fields {
        for value in hostile_values(field) {
            let mut body = good();
            body.insert(field.name.to_owned(), value);
            objects.push(body.into());
        }
    }
    let mut bodies = vec![json!([]), json!("text"), json!(7), json!(true), json!([null, [], {}])];
    bodies.extend(objects.into_iter().map(|it| if is_many { json!([it, it]) } else { it }));
    bodies
}

fn hostile_values(field: &Field) -> Vec<Value> {
    let mut values = vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(999_999),
        json!(""),
        json!("  "),
        json!("\u{0}"),
        json!("line\r\nbreak: x"),
        json!("ä".repeat(field.chars_max.min(20_000) + 1)),
        json!("http://[::1"),
        json!("(a+)+$"),
        json!([]),
        json!([null]),
        json!([1, 1, 1]),
        json!([999_999, "x", {}]),
        json!({}),
        json!({ "a": { "b": [1, { "c": null }] } }),
    ];
    if let Kind::List(_) = field.kind {
        values.push(vec![7; 10_000].into());
    }
    values
}

/// Returns a valid value of a field.
fn example(field: &Field) -> Value {
    let of_text = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
    match field.kind {
        Kind::Text => field.example.unwrap_or("text").into(),
        Kind::Url => "http://provider.example/list".into(),
        Kind::Uuid => UUID.to_string().into(),
        Kind::Time => "2031-05-04T07:08:09Z".into(),
        Kind::Flag => true.into(),
        Kind::Integer | Kind::Number => {
            field.example.map_or_else(|| field.least.unwrap_or(1).into(), of_text)
        }
        Kind::Choice(names) => names[0].into(),
        Kind::NumberChoice(numbers) => numbers[0].into(),
        Kind::Object | Kind::Any => json!({}),
        Kind::List(_) => field.example.map_or_else(|| json!([]), of_text),
        Kind::Either(_) => field.example.map_or_else(|| json!(1), of_text),
        Kind::Record(_) => json!({}),
        Kind::Nullable(_) => Value::Null,
    }
}

const UUID: Uuid = Uuid::from_u128(1);

/// A gateway with one object of each kind, with id 1, and with a provider's password in every place that can contain
/// one.
async fn furnished() -> Rest {
    let rest = Rest::start().await;
    let url = |path: &str| -> SourceUrl {
        SourceUrl::new(format!(
            "http://{SECRET}:{SECRET}@provider.example/live/{SECRET}/{path}?token={SECRET}"
        ))
    };
    let profile = AccountProfile {
        search_pattern: SECRET.to_owned(),
        replace_pattern: SECRET.to_owned(),
        ..AccountProfile::default_of(ProfileId(2), "default", 1)
    };
    rest.put([Account::new(AccountId(2), "provider", PlaylistLocation::Url(url("list.m3u")), profile, 0)])
        .await;
    let facts =
        StreamProperties { group: Some("News".to_owned()), ..StreamProperties::new("one", url("1.ts")) };
    rest.put([Stream::new(StreamId(1), AccountId(2), facts, 0)]).await;
    rest.put([Group::new(GroupId(1), "News")]).await;
    let channel = Channel::new(ChannelId(1), UUID, "one", 0);
    rest.put([Channel { streams: vec![StreamId(1)], group: Some(GroupId(1)), ..channel }]).await;
    // Visible to admins only, which the names of secrets check in every answer.
    rest.put([Group::new(GroupId(2), SECRET)]).await;
    let hidden = Channel::new(ChannelId(2), Uuid::from_u128(2), SECRET, 0);
    rest.put([Channel { user_level: UserLevel::Admin, group: Some(GroupId(2)), ..hidden }]).await;
    let mut lineup = Lineup::new(LineupId(1), SECRET, true);
    lineup.description = SECRET.to_owned();
    rest.put([lineup]).await;
    rest.put([UserGroup { id: UserGroupId(1), name: SECRET.to_owned(), permissions: BTreeSet::new() }]).await;
    let output = OutputProfile::new(OutputProfileId(1), "small");
    rest.put([OutputProfile { command: "ffmpeg".to_owned(), parameters: SECRET.to_owned(), ..output }]).await;
    let webhook = Webhook {
        url: url("hook"),
        method: "POST".to_owned(),
        headers: vec![("X-Key".to_owned(), Secret::new(SECRET))],
        preset: None,
        options: BTreeMap::new(),
        signing: Some(Signing { secret: Secret::new(SECRET), old: None }),
        ca_certificate: None,
    };
    rest.put([Integration {
        id: IntegrationId(1),
        name: SECRET.to_owned(),
        is_enabled: true,
        target: Target::Webhook(webhook),
        subscriptions: vec![Subscription {
            id: 1,
            event: "channel_start".to_owned(),
            is_enabled: true,
            template: Some(SECRET.to_owned()),
        }],
        parallel: 1,
        max_age_s: None,
        created_at: 0,
        is_trusted: false,
        digest_minutes: None,
    }])
    .await;
    let password = json!({ "id": "key", "label": "Key", "type": "string", "input_type": "password" });
    rest.put([Plugin {
        id: 1,
        key: PluginKey::from_folder("1").unwrap(),
        is_enabled: false,
        was_enabled: true,
        granted: None,
        allowed_packages: Vec::new(),
        accepted_gaps: BTreeSet::new(),
        limits: Default::default(),
        settings: serde_json::from_value(json!({ "key": SECRET, "old": SECRET })).unwrap(),
        version: "1.0.0".to_owned(),
        archive: None,
        reported: Some(ReportedParts { fields: vec![password], ..ReportedParts::default() }),
        failed_starts: 0,
        failed: Some(SECRET.to_owned()),
        installed_at: 0,
        updated_at: 0,
    }])
    .await;
    put_titles(&rest).await;
    rest
}
