//! The REST interface without sockets, on a temporary store, for tests of resources.
//!
//! ```text
//! let rest = Rest::start().await;
//! let created = rest.admin("POST", "/api/channels/groups/", json!({ "name": "News" })).await;
//! assert_eq!((created.status, &created.body["name"]), (201, &json!("News")));
//! ```
//!
//! Every request also checks that the answer conforms to the published schema (holds T-rest.2), that a refusal has
//! changed nothing (holds T-sync.5), that no handler fails (holds T-rest.1), that only admins receive secrets
//! (holds T-acc.2), that browsers do not guess the type of JSON, and that no address of a picture has a query.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actors::{FilmCacheSettings, StorePlans, System, SystemParts};
use bytes::Bytes;
use config::{AuthLimits, Config, ContainerProxy, Limits};
use domain::ids::UserId;
use domain::query::Query;
use domain::secret::Secret;
use domain::settings::Settings;
use domain::user::{User, UserLevel};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use media::{Connection, Launcher, MemoryDial};
use node::tls::install_tls;
use parking_lot::Mutex;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::context::FrameContext;
use route_frame::openapi;
use route_frame::route::Route;
use route_frame::router::Router;
use serde_json::{Map, Value};
use server::Routes;
use server::accept::LocalAddr;
use server::admission::Admission;
use server::caller::Caller;
use server::origin::Origins;
use server::reply::JSON;
use services::auth::Auth;
use services::http_client::fetch;
use services::recent_log::RecentLog;
use storage::guide::GuideFiles;
use storage::{Models, Record, Store};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tower_service::Service;
use url::form_urlencoded;
use warp::Filter;

use super::context::Contexts;
use super::{Port, conform, routes};
use crate::context::RestContext;

/// Maximum size of a body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 100_000;
/// Address of the test client, which belongs to no local network.
pub(crate) const REMOTE: [u8; 4] = [192, 0, 2, 7];
/// Address of a proxy that the test gateway trusts.
pub(crate) const TRUSTED_PROXY: [u8; 4] = [192, 168, 1, 2];
/// Part of every secret that [`Rest::start`] stores. Tests use it in the secrets that they create.
pub(crate) const SECRET: &str = "hidden-5p1c3";

/// The interface with its store and users.
pub(crate) struct Rest {
    pub(crate) models: Models,
    pub(crate) auth: Auth,
    pub(crate) context: Arc<RestContext>,
    pub(crate) frame: Arc<FrameContext>,
    pub(crate) system: Arc<System>,
    /// The users as created at the start.
    users: [User; 5],
    routes: Routes,
    router: Router,
    origins: Origins,
    /// The published description of each route that answered.
    descriptions: Mutex<HashMap<(Method, &'static str), Arc<Value>>>,
    /// Requests that are not answered yet, and all requests.
    n_open: AtomicU64,
    n_sent: AtomicU64,
    /// The data folder, except for the store.
    _folder: TempDir,
}

// Ids of the users.

pub(crate) const STREAMER: u32 = 1;
pub(crate) const STANDARD: u32 = 2;
pub(crate) const ADMIN: u32 = 3;
/// Has the lowest level, and passes every check of level.
pub(crate) const SUPERUSER: u32 = 4;
pub(crate) const INACTIVE: u32 = 5;

/// An answer with its body read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// `null` if the body is empty or not JSON. Without the codes of a refusal, which `codes` has.
    pub(crate) body: Value,
    /// The members `code`, `values` and `codes` of a refusal.
    pub(crate) codes: Map<String, Value>,
}

impl Answer {
    /// Moves the codes of a refusal out of its body, so that tests compare what clients without them read.
    fn take_codes(&mut self) {
        let Some(members) = self.body.as_object_mut().filter(|_| self.status >= 400) else { return };
        let has_own =
            members.contains_key("messages") || members.get("code") == Some(&"token_not_valid".into());
        for name in ["code", "values", "codes"].iter().filter(|it| !has_own || **it != "code") {
            // A field may have this name, with its messages.
            if members.get(*name).is_some_and(|it| !it.is_array()) {
                self.codes.extend(members.remove_entry(*name));
            }
        }
    }
}

impl Rest {
    pub(crate) async fn start() -> Rest {
        Self::start_with(|_| {}).await
    }

    /// Starts with other settings.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Rest {
        let models = tokio::task::spawn_blocking(|| {
            let store = Store::temporary(storage::records::schema())?;
            storage::seed(&store)?;
            Models::new(store)
        });
        let models = models.await.unwrap().unwrap();
        let engine = Settings::default();
        let plans = Arc::new(StorePlans::new(models.clone(), engine.default_stream_profile));
        // No provider is reachable.
        let parts = SystemParts {
            dial: Arc::new(MemoryDial::new()),
            packets: Handle::current(),
            launcher: Launcher::default(),
            films: FilmCacheSettings::default(),
            cluster: None,
        };
        let system = System::start(engine, plans, parts).await.unwrap();
        let system = Arc::new(system);
        let limits = Limits {
            body_bytes_max: BODY_BYTES_MAX,
            body_timeout: Duration::from_millis(100),
            ..Limits::default()
        };
        let auth = AuthLimits { failure_delay_max: Duration::ZERO, ..AuthLimits::default() };
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config {
            data_dir: folder.path().to_owned(),
            limits,
            auth,
            trusted_proxies: IpAddr::from(TRUSTED_PROXY).to_string().parse().unwrap(),
            container_proxy: ContainerProxy::None,
            ..Config::default()
        };
        change(&mut config);
        let origins = Origins::new(&config);
        let Contexts { frame, rest: context, players: _ } = contexts(config, models.clone(), &system).await;
        let frame = Arc::new(frame);
        let auth = context.auth.clone();
        let router = Router::new(routes());
        let users = users(&auth);
        let routes = crate::filter(Arc::clone(&frame), Port::Player);
        let rest = Rest {
            models,
            auth,
            context,
            frame,
            system,
            users,
            routes,
            router,
            origins,
            n_open: AtomicU64::new(0),
            n_sent: AtomicU64::new(0),
            descriptions: Mutex::default(),
            _folder: folder,
        };
        rest.restore_users().await;
        rest
    }

    /// Returns the access of a route for the parameters of a path.
    pub(crate) fn access(&self, route: &Route, path: &str) -> Access {
        let found = self.router.find(path).expect("the path fits the route");
        route.access.for_parameters(&found.parameters)
    }

    /// Restores the users as created at the start.
    pub(crate) async fn restore_users(&self) {
        let now = self.models.users.load();
        let changed = self.users.iter().filter(|it| now.get(it.id.0).is_none_or(|now| **now != **it));
        let changed: Vec<User> = changed.cloned().collect();
        if !changed.is_empty() {
            self.put(changed).await;
        }
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.context.config.data_dir
    }

    /// Lets the gateway make back-ups of its store, under a key file of their own.
    pub(crate) fn enable_backups(&self) {
        std::fs::write(self.data_dir().join("key"), format!("headwater key 1\n{}\n", "5c".repeat(32)))
            .unwrap();
        self.context.operation.backups.enable();
    }

    /// Lets admins read these lines of the log.
    pub(crate) fn show_log(&self, log: RecentLog) {
        self.context.operation.recent_log.set(log).unwrap();
    }

    /// Writes records directly to the store.
    pub(crate) async fn put<T: Record>(&self, records: impl IntoIterator<Item = T>) {
        let records: Vec<T> = records.into_iter().collect();
        let written = self.models.store.write(move |write| records.iter().try_for_each(|it| write.put(it)));
        written.await.unwrap();
    }

    /// Returns the services behind the interface.
    pub(crate) fn context(&self) -> &Arc<RestContext> {
        &self.context
    }

    /// Returns a call of this route without credentials and parameters.
    pub(crate) fn call(&self, route: &Route) -> Call {
        let (peer, local): (SocketAddr, SocketAddr) =
            (([192, 0, 2, 7], 4711).into(), ([192, 0, 2, 1], 9191).into());
        let headers = HeaderMap::new();
        let origin = self.origins.origin(peer.ip(), local.ip(), &headers);
        let caller = Caller::new(Arc::new(Connection::new(1, peer)), origin, local, &headers);
        Call::new(Arc::clone(&self.frame), route, caller)
    }

    /// Sends a request as an admin, with a body unless it is `null`.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask(ADMIN, method, path, body).await
    }

    /// Sends a request as a user of level 1.
    pub(crate) async fn standard(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask(STANDARD, method, path, body).await
    }

    /// Sends a request as a user of level 0.
    pub(crate) async fn streamer(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask(STREAMER, method, path, body).await
    }

    pub(crate) async fn ask(&self, user: u32, method: &str, path: &str, body: Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, &[("authorization", &self.bearer(user))], text).await
    }

    /// Returns the value of the header `Authorization` for a user.
    pub(crate) fn bearer(&self, user: u32) -> String {
        format!("Bearer {}", self.auth.tokens(&self.user(user), None).access)
    }

    pub(crate) fn user(&self, id: u32) -> Arc<User> {
        self.models.users.load().get(id).unwrap().clone()
    }

    /// Sends a request with these headers and this body, unchanged.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.send_body(method, path, headers, Full::new(body.into())).await
    }

    /// Sends a request without a body, and returns headers and body as they are.
    pub(crate) async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (HeaderMap, Bytes) {
        let request = self.request(REMOTE, method, path, headers).body(Full::new(Bytes::new())).unwrap();
        let mut service = warp::service(self.routes.clone().map(|it| it));
        let (head, body) = service.call(request).await.unwrap().into_parts();
        (head.headers, body.collect().await.unwrap().to_bytes())
    }

    /// Sends a request without a body, and returns the status and the length of each piece of the answer.
    pub(crate) async fn send_pieces(&self, path: &str, headers: &[(&str, &str)]) -> (u16, Vec<usize>) {
        let request = self.request(REMOTE, "GET", path, headers).body(Full::new(Bytes::new())).unwrap();
        let mut service = warp::service(self.routes.clone().map(|it| it));
        let (head, mut body) = service.call(request).await.unwrap().into_parts();
        let mut lengths = Vec::new();
        while let Some(frame) = body.frame().await {
            lengths.extend(frame.unwrap().data_ref().map(Bytes::len));
        }
        (head.status.as_u16(), lengths)
    }

    /// Starts a request on a connection from this address.
    fn request(
        &self,
        peer: [u8; 4],
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> http::request::Builder {
        let (peer, local): (SocketAddr, SocketAddr) = ((peer, 4711).into(), ([192, 0, 2, 1], 9191).into());
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .extension(Arc::new(Connection::new(1, peer)))
            .extension(LocalAddr(local));
        // Programs without one get some lists in another form.
        if !headers.iter().any(|it| it.0.eq_ignore_ascii_case("user-agent")) {
            request = request.header("user-agent", "tests");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let origin = self.origins.origin(peer.ip(), local.ip(), &sent_headers(headers));
        request.extension(origin)
    }

    /// Sends a request without a body on a connection from this address.
    pub(crate) async fn send_from(
        &self,
        peer: [u8; 4],
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.send_body_from(peer, method, path, headers, Full::new(Bytes::new())).await
    }

    /// Sends a request with a streamed body.
    pub(crate) async fn send_body<B>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: B,
    ) -> Answer
    where
        B: hyper::body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Sync + 'static,
    {
        self.send_body_from(REMOTE, method, path, headers, body).await
    }

    async fn send_body_from<B>(
        &self,
        peer: [u8; 4],
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: B,
    ) -> Answer
    where
        B: hyper::body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Sync + 'static,
    {
        let sent = sent_headers(headers);
        let (n_open, n_sent) =
            (self.n_open.fetch_add(1, Ordering::SeqCst), self.n_sent.fetch_add(1, Ordering::SeqCst));
        let before = (n_open == 0).then(|| self.models.store.version());
        // Authenticated before the request, which may revoke the credentials.
        let user = self.auth.user_of(&sent).ok().flatten().or_else(|| self.user_of_query(path));
        let request = self.request(peer, method, path, headers).body(body).unwrap();
        let mut service = warp::service(self.routes.clone().map(|it| it));
        let (head, body) = service.call(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body =
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or_default() };
        let codes = Map::new();
        let mut answer = Answer { status: head.status.as_u16(), headers: head.headers, text, body, codes };
        self.n_open.fetch_sub(1, Ordering::SeqCst);
        let is_alone = self.n_sent.load(Ordering::SeqCst) == n_sent + 1;
        self.check(method, path, user.as_deref(), before.filter(|_| is_alone), &answer);
        answer.take_codes();
        answer
    }

    /// Returns the user whose name and player password are in the query of a path.
    fn user_of_query(&self, path: &str) -> Option<Arc<User>> {
        let query = Query::parse(path.split_once('?')?.1);
        let (name, password) = (query.single("username")?, query.single("password")?);
        let user = self.models.users.load().one_by("username", User::name_key(name)).cloned()?;
        user.player_password.as_ref().is_some_and(|it| it.expose() == password).then_some(user)
    }

    /// Returns name and player password of a user as parameters of a query.
    pub(crate) fn query_login(&self, user: u32) -> String {
        let user = self.user(user);
        let password = user.player_password.as_ref().map_or("", |it| it.expose());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("username", &user.username).append_pair("password", password).finish()
    }

    /// Checks the promises that hold for every answer. `before` is the version of the store, unless other requests ran
    /// meanwhile.
    fn check(&self, method: &str, path: &str, user: Option<&User>, before: Option<u64>, answer: &Answer) {
        let said = format!("{method} {path}: {} {}", answer.status, answer.text);
        // 502 tells of another server.
        assert!(answer.status < 500 || answer.status == 502, "the handler failed: {said}");
        if answer.status >= 400
            && let Some(before) = before
        {
            assert_eq!(self.models.store.version(), before, "a refusal changed something: {said}");
        }
        let is_admin = user.is_some_and(|it| it.may(UserLevel::Admin));
        // Users may see their own player password.
        let own = user.and_then(|it| it.player_password.as_ref()).map_or(SECRET, |it| it.expose());
        let encoded =
            format!("password={}", form_urlencoded::byte_serialize(own.as_bytes()).collect::<String>());
        let others = answer.text.replace(&format!("{own}\""), "\"").replace(&encoded, "");
        assert!(is_admin || !others.contains(SECRET), "the answer contains a secret: {said}");
        let is_json = answer.headers.get(CONTENT_TYPE).is_some_and(|it| it == JSON);
        let options = answer.headers.get(X_CONTENT_TYPE_OPTIONS);
        assert!(
            !is_json || options.is_some_and(|it| it == "nosniff"),
            "a browser may guess the type: {said}"
        );
        for address in picture_addresses(&answer.text) {
            let last = address.rsplit('/').next().unwrap_or_default();
            let is_unreserved = |it: char| it.is_ascii_alphanumeric() || "-._~".contains(it);
            assert!(last.chars().all(is_unreserved), "a player that encodes {last} breaks {address}");
        }

        let path = path.split('?').next().unwrap_or_default();
        let method: Method = method.parse().unwrap();
        let Some(found) = self.router.find(path) else { return };
        let Some(route) = found.route(&method).filter(|_| path != "/api") else { return };
        let key = (route.method.clone(), route.path);
        let mut descriptions = self.descriptions.lock();
        // That of one route is made in a hundredth of the time of the whole document.
        let description = descriptions
            .entry(key)
            .or_insert_with(|| Arc::new(openapi::document(std::slice::from_ref(route))));
        let wrong = conform::check(description, route, answer);
        assert!(wrong.is_empty(), "the answer differs from the schema: {wrong:#?}\n{said}");
    }
}

/// Returns the addresses of pictures of the gateway in an answer, up to the end of their attribute, text or line.
fn picture_addresses(text: &str) -> impl Iterator<Item = &str> {
    const PLACES: [&str; 5] = ["/cache/", "/image/", "/poster/", "/artwork/", "/avatars/"];
    let parts = text.match_indices("/api/").map(|(at, _)| &text[at..]);
    let addresses = parts.filter_map(|it| it.split(['"', '\'', '<', '`', '\\', '\n', ' ']).next());
    // Not the paths of the published schema.
    addresses.filter(|it| !it.contains('{') && PLACES.iter().any(|at| it.contains(at)))
}

fn sent_headers(headers: &[(&str, &str)]) -> HeaderMap {
    let sent = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    HeaderMap::from_iter(sent)
}

/// Makes the contexts of a test around a started system. Nothing is refreshed: a background write would look
/// like a change by a refused request.
async fn contexts(config: Config, models: Models, system: &Arc<System>) -> Contexts {
    let system = Arc::clone(system);
    let building = tokio::task::spawn_blocking(move || {
        let guide_files = GuideFiles::temporary()?;
        system.accept_written_guides(models.clone(), guide_files.clone());
        install_tls();
        let fetch = fetch(&config).unwrap();
        Contexts::new(config, models, guide_files, &system, fetch, Admission::new(0, 0))
    });
    building.await.unwrap().unwrap()
}

/// Returns one user of each kind. The admin has an API key.
fn users(auth: &Auth) -> [User; 5] {
    let user = |id: u32, name: &str, level| User {
        password: Some(Secret::new(format!("{SECRET} no hash"))),
        player_password: Some(Secret::new(format!("{SECRET} {id}"))),
        ..User::new(UserId(id), name, level, 0)
    };
    [
        user(STREAMER, "streamer", UserLevel::Streamer),
        user(STANDARD, "standard", UserLevel::Standard),
        User { api_key: Some(auth.new_api_key()), ..user(ADMIN, "administrator", UserLevel::Admin) },
        User { is_superuser: true, ..user(SUPERUSER, "superuser", UserLevel::Streamer) },
        User { is_active: false, ..user(INACTIVE, "inactive", UserLevel::Admin) },
    ]
}
