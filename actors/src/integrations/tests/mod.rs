//! Tests of deliveries, against targets on real sockets and real scripts.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use domain::channel::ChannelNumber;
use domain::egress::Distance;
use domain::event::{ChannelRef, Event, EventBody, VodRef};
use domain::integration::{DeliveryLogLimits, Integration, Preset, Signing, Subscription, Target, Webhook};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use media::closer::Closer;
use media::launcher::LauncherSettings;
use serde_json::{Value, json};
use storage::plugin_files::PluginFiles;
use storage::{Store, Write};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::*;
use crate::clock::now_ms;

mod forwarding;
mod plugins;
mod scripts;
mod webhooks;

/// Limit of every wait of a test.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// The reaction of a target to a request.
#[derive(Clone)]
enum Answer {
    /// Status, further headers, body.
    Status(u16, &'static str, String),
    /// Never answers.
    Hang,
    /// Ends the connection without an answer.
    Reset,
    /// Announces more than it sends.
    Lie,
    /// Sends a success, and then a byte now and then for ever.
    Drip,
}

fn status(status: u16, headers: &'static str) -> Answer {
    Answer::Status(status, headers, String::new())
}

#[derive(Clone, Debug)]
struct Request {
    head: String,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> Option<String> {
        let find = |line: &str| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        };
        self.head.lines().find_map(find)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A target of webhooks. It answers as told, and then 200.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    n_connections: Arc<Mutex<usize>>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let n_connections: Arc<Mutex<usize>> = Arc::default();
        let (seen, counted) = (requests.clone(), n_connections.clone());
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                *counted.lock() += 1;
                connections.spawn(serve(socket, seen.clone(), answers.clone()));
            }
        });
        Self { address, requests, n_connections, _task: AbortOnDropHandle::new(task) }
    }

    fn url(&self) -> String {
        format!("http://{}/hooks/token-of-the-target", self.address)
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }

    async fn until_asked(&self, n: usize) -> Vec<Request> {
        until(|| self.requests.lock().len() >= n).await;
        self.requests()
    }
}

async fn serve(
    socket: TcpStream,
    seen: Arc<Mutex<Vec<Request>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if socket.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let request = Request { head, body: String::new() };
        let length = request.header("content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        seen.lock().push(Request { body: String::from_utf8(body).unwrap(), ..request });
        let answer = answers.lock().pop_front().unwrap_or_else(|| status(200, ""));
        match answer {
            Answer::Status(status, headers, body) => {
                let n = body.len();
                let text = format!("HTTP/1.1 {status} So\r\n{headers}Content-Length: {n}\r\n\r\n{body}");
                socket.write_all(text.as_bytes()).await.ok()?;
            }
            Answer::Hang => std::future::pending().await,
            Answer::Drip => {
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
                loop {
                    socket.write_all(b".").await.ok()?;
                    sleep(Duration::from_millis(100)).await;
                }
            }
            Answer::Reset => return None,
            Answer::Lie => {
                socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart").await.ok()?;
                return None;
            }
        }
    }
}

async fn until(is_met: impl Fn() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_met() {
        assert!(Instant::now() < deadline, "it did not happen");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Deliveries on a store of its own.
struct Fixture {
    models: Models,
    outbox: Outbox,
    courier: Option<Courier>,
    integrations: Integrations,
    stop: CancellationToken,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(IntegrationSettings::default()).await
    }

    async fn with(settings: IntegrationSettings) -> Self {
        let models = tokio::task::spawn_blocking(|| {
            Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap()
        });
        Self::on(models.await.unwrap(), settings, [].into())
    }

    fn on(models: Models, settings: IntegrationSettings, own_listeners: Arc<[SocketAddr]>) -> Self {
        Self::on_with(models, settings, own_listeners, "/no/such/folder".as_ref())
    }

    /// Uses the plugins in a data folder, none of which runs.
    fn on_with(
        models: Models,
        settings: IntegrationSettings,
        own_listeners: Arc<[SocketAddr]>,
        data_dir: &Path,
    ) -> Self {
        // Fails in the second test of a process, which finds the provider of the first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let stop = CancellationToken::new();
        let launcher = Launcher::new(LauncherSettings::default());
        let closer = Closer::new(Handle::current());
        let none = Plugins::new(launcher.clone(), closer.clone(), Handle::current(), stop.clone());
        let outbox = Outbox::default();
        let integrations = Integrations::new(launcher, closer, none, outbox.clone(), stop.clone());
        let targets = PluginTargets::read(models.clone(), PluginFiles::new(data_dir));
        let courier = outbox.start(models.store.clone(), models.integrations.clone(), targets.clone(), false);
        let parts = IntegrationParts {
            models: models.clone(),
            plugins: targets,
            own_listeners,
            settings,
            is_edge: false,
        };
        integrations.start(parts);
        Self { models, outbox, courier: Some(courier), integrations, stop }
    }

    /// Adds an integration for all events of films.
    async fn add(&self, target: Target) -> IntegrationId {
        self.add_with(target, |_| {}).await
    }

    async fn add_with(
        &self,
        target: Target,
        change: impl FnOnce(&mut Integration) + Send + 'static,
    ) -> IntegrationId {
        let added = self.models.store.write(move |write| {
            let id = IntegrationId(write.next_id::<Integration>()?);
            let subscription = |(n, event): (u32, &str)| Subscription {
                id: id.0 * 100 + n,
                event: event.to_owned(),
                is_enabled: true,
                template: None,
            };
            let mut integration = Integration {
                id,
                name: format!("Integration {id}"),
                is_enabled: true,
                target,
                subscriptions: (0..)
                    .zip(["vod_start", "vod_stop", "channel_error"])
                    .map(subscription)
                    .collect(),
                parallel: 1,
                max_age_s: None,
                created_at: 0,
                is_trusted: false,
                digest_minutes: None,
            };
            change(&mut integration);
            write.put(&integration)?;
            Ok::<_, storage::Error>(id)
        });
        added.await.unwrap()
    }

    async fn change(&self, id: IntegrationId, change: impl FnOnce(&mut Integration) + Send + 'static) {
        self.write(move |write| {
            let mut integration = write.get::<Integration>(id.0)?.unwrap();
            change(&mut integration);
            write.put(&integration)
        })
        .await;
    }

    async fn write(&self, work: impl FnOnce(&mut Write<'_>) -> storage::Result<()> + Send + 'static) {
        self.models.store.write(work).await.unwrap();
    }

    fn emit(&self, event: Event) {
        self.outbox.offer(&Arc::new(event));
    }

    fn status(&self, id: IntegrationId) -> IntegrationStatus {
        self.integrations.status(id).unwrap()
    }

    async fn until(
        &self,
        id: IntegrationId,
        is_met: impl Fn(&IntegrationStatus) -> bool,
    ) -> IntegrationStatus {
        until(|| self.integrations.status(id).is_some_and(|it| is_met(&it))).await;
        self.status(id)
    }

    fn deliveries(&self, filter: &DeliveryFilter) -> Vec<Delivery> {
        self.integrations.deliveries(filter, 0, 100).unwrap().items
    }

    /// Returns the log of an integration, newest first.
    fn log(&self, id: IntegrationId) -> Vec<DeliveryLogEntry> {
        let filter = LogFilter { to: Some(Recipient::Integration(id)), ..LogFilter::default() };
        self.integrations.log(&filter, 0, 100).unwrap().items
    }

    async fn replay(&self, filter: &DeliveryFilter) -> usize {
        self.change_dead(filter, DeadLetters::replay).await
    }

    async fn change_dead(
        &self,
        filter: &DeliveryFilter,
        change: fn(DeadLetters, &mut Write<'_>) -> storage::Result<usize>,
    ) -> usize {
        let mut n = 0;
        for letters in self.integrations.dead_letters(filter) {
            n += self.models.store.write(move |write| change(letters, write)).await.unwrap();
        }
        n
    }

    async fn until_logged(&self, id: IntegrationId, n: usize) -> Vec<DeliveryLogEntry> {
        until(|| self.log(id).len() >= n).await;
        self.log(id)
    }

    /// Ends it as the gateway does, and returns the store.
    async fn stop(mut self) -> Models {
        self.stop.cancel();
        if let Some(courier) = self.courier.take() {
            courier.stop().await;
        }
        self.integrations.ended().await;
        self.models.clone()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn webhook(url: &str) -> Webhook {
    Webhook {
        url: SourceUrl::new(url),
        method: "POST".to_owned(),
        headers: Vec::new(),
        preset: None,
        options: BTreeMap::new(),
        signing: None,
        ca_certificate: None,
    }
}

fn to(server: &Server) -> Target {
    Target::Webhook(webhook(&server.url()))
}

/// A film that somebody begins to watch.
fn film(name: &str) -> Event {
    let vod = VodRef {
        session: 1,
        uuid: Uuid::from_u128(1),
        is_episode: false,
        name: name.to_owned(),
        ip: [192, 0, 2, 1].into(),
        user_agent: "VLC".to_owned(),
        user: None,
    };
    Event { at: now_ms(), body: EventBody::VodStart { vod } }
}

fn names(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|it| it.json()["content_name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_webhook_gets_each_event_once_in_order_over_one_connection() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let id = fixture.add(to(&server)).await;
    for n in 0..20 {
        fixture.emit(film(&n.to_string()));
    }
    let requests = server.until_asked(20).await;
    assert_eq!(names(&requests), (0..20).map(|it| it.to_string()).collect::<Vec<_>>());
    assert_eq!(*server.n_connections.lock(), 1);
    let first = &requests[0];
    let payload = first.json();
    assert_eq!((&payload["event_type"], &payload["user_agent"]), (&"vod_start".into(), &"VLC".into()));
    let event_id: Uuid = payload["event_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(first.header("webhook-id"), Some(format!("{}_{id}", event_id.simple())));
    assert_eq!(first.header("content-type").as_deref(), Some("application/json"));
    assert!(first.header("webhook-timestamp").is_some() && first.header("webhook-signature").is_none());
    let log = fixture.until_logged(id, 20).await;
    let oldest = &log[19];
    assert!(oldest.is_success && oldest.attempt == 1 && oldest.reason.is_none(), "{oldest:?}");
    assert_eq!((oldest.subscription, oldest.event_id), (Some(id.0 * 100), event_id));
    assert_eq!((&*oldest.request, oldest.answer.as_ref().unwrap().status), (&*first.body, 200));
    fixture.until(id, |it| (it.n_waiting, it.n_dead) == (0, 0)).await;
    assert!(fixture.models.store.collection::<Delivery>().is_empty());
    assert_eq!(server.requests().len(), 20);
}

#[tokio::test]
async fn only_enabled_subscribers_of_enabled_integrations_get_an_event() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let disabled = fixture.add_with(to(&server), |it| it.is_enabled = false).await;
    let muted = fixture.add_with(to(&server), |it| it.subscriptions[0].is_enabled = false).await;
    let other =
        fixture.add_with(to(&server), |it| it.subscriptions.retain(|it| it.event != "vod_start")).await;
    fixture.emit(film("nobody"));
    let id = fixture.add(to(&server)).await;
    fixture.emit(film("one"));
    assert_eq!(names(&server.until_asked(1).await), ["one"]);
    fixture.until_logged(id, 1).await;
    for id in [disabled, muted, other] {
        assert_eq!((fixture.status(id).n_waiting, fixture.log(id).len()), (0, 0));
    }
}

// Holds T-int.1.
// Holds T-run.5.
#[tokio::test]
async fn a_target_that_hangs_or_refuses_delays_no_other() {
    let fixture = Fixture::new().await;
    let (hung, good) = (Server::start([Answer::Hang]).await, Server::start([]).await);
    let refusing = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let hangs = fixture.add(to(&hung)).await;
    let refuses = fixture.add(Target::Webhook(webhook(&format!("http://{refusing}/")))).await;
    fixture.add(to(&good)).await;
    for n in 0..10 {
        fixture.emit(film(&n.to_string()));
    }
    assert_eq!(good.until_asked(10).await.len(), 10);
    let status = fixture.until(hangs, |it| it.n_waiting == 10 && it.n_running == 1).await;
    assert_eq!((status.n_dead, hung.until_asked(1).await.len()), (0, 1));
    let status = fixture.until(refuses, |it| it.failing_since.is_some()).await;
    assert_eq!((status.n_waiting, status.n_dead), (10, 0));
    let log = &fixture.log(refuses)[0];
    assert!(!log.is_success && log.answer.is_none(), "{log:?}");
    // The oldest one is attempted again in some seconds, and the others wait behind it.
    let waiting = fixture
        .deliveries(&DeliveryFilter { to: Some(Recipient::Integration(refuses)), ..Default::default() });
    let oldest = waiting.last().unwrap();
    assert!(oldest.n_attempts == 1 && oldest.reason.is_some(), "{oldest:?}");
    assert!(waiting[..9].iter().all(|it| it.n_attempts == 0));
}

#[tokio::test]
async fn a_busy_target_gets_the_same_delivery_again_and_the_order_stays() {
    let again = "Retry-After: 0\r\n";
    let answers = [408, 425, 429, 500, 503].map(|it| status(it, again));
    let (fixture, server) = (Fixture::new().await, Server::start(answers).await);
    let id = fixture.add(to(&server)).await;
    fixture.emit(film("first"));
    fixture.emit(film("second"));
    let requests = server.until_asked(7).await;
    assert_eq!(names(&requests), ["first", "first", "first", "first", "first", "first", "second"]);
    let ids: Vec<_> = requests.iter().map(|it| it.header("webhook-id").unwrap()).collect();
    assert!(ids[..6].iter().all(|it| *it == ids[0]) && ids[6] != ids[0], "{ids:?}");
    let log = fixture.until_logged(id, 7).await;
    let attempts: Vec<_> = log.iter().rev().map(|it| (it.attempt, it.is_success)).collect();
    assert_eq!(attempts[..6], [(1, false), (2, false), (3, false), (4, false), (5, false), (6, true)]);
    assert!(log[6].reason.as_ref().unwrap().contains("408"), "{:?}", log[6]);
    assert_eq!(fixture.until(id, |it| it.n_waiting == 0).await.failing_since, None);
}

#[tokio::test]
async fn a_target_says_when_it_wants_the_next_attempt() {
    let server = Server::start([status(429, "Retry-After: 3600\r\n"), Answer::Reset]).await;
    let fixture = Fixture::new().await;
    let id = fixture.add(to(&server)).await;
    let before = now_ms();
    fixture.emit(film("one"));
    fixture.until(id, |it| it.failing_since.is_some()).await;
    let waiting = fixture.deliveries(&DeliveryFilter::default());
    let due_in_s = (waiting[0].due_at - before) / 1000;
    assert!((3_600..3_720).contains(&due_in_s), "{waiting:?}");
    // Chats are tried for an hour only.
    let preset = Server::start([status(429, "Retry-After: 3700\r\n")]).await;
    let target = Webhook { preset: Some(Preset::Discord), ..webhook(&preset.url()) };
    let chat = fixture.add(Target::Webhook(target)).await;
    fixture.emit(film("two"));
    assert_eq!(fixture.until(chat, |it| it.n_dead == 1).await.n_waiting, 0);
    assert!(preset.requests()[0].json()["content"].as_str().unwrap().contains("two"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_counts_by_its_status_and_a_reset_is_tried_again() {
    let server = Server::start([Answer::Lie, Answer::Reset]).await;
    let fixture = Fixture::new().await;
    let id = fixture.add(to(&server)).await;
    fixture.emit(film("one"));
    let log = fixture.until_logged(id, 1).await;
    assert!(log[0].is_success && log[0].answer.as_ref().unwrap().body == "part", "{log:?}");
    fixture.emit(film("two"));
    let log = fixture.until_logged(id, 2).await;
    assert!(!log[0].is_success && log[0].answer.is_none() && log[0].reason.is_some(), "{log:?}");
    assert_eq!(fixture.status(id).n_dead, 0);
}

#[tokio::test]
async fn a_target_whose_encryption_fails_is_tried_again() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let url = server.url().replace("http://", "https://");
    let id = fixture.add(Target::Webhook(webhook(&url))).await;
    fixture.emit(film("one"));
    let log = fixture.until_logged(id, 1).await;
    assert!(log[0].answer.is_none() && !log[0].reason.as_ref().unwrap().contains("token-of"), "{log:?}");
    assert_eq!((fixture.status(id).n_waiting, server.requests().len()), (1, 0));
    // Neither can a certificate that is none be used, which no later attempt changes.
    let target = Webhook { ca_certificate: Some("no certificate".to_owned()), ..webhook(&url) };
    let id = fixture.add(Target::Webhook(target)).await;
    fixture.emit(film("two"));
    fixture.until(id, |it| it.n_dead == 1).await;
    assert!(fixture.log(id)[0].reason.as_ref().unwrap().contains("certificate"));
}

#[tokio::test]
async fn a_webhook_with_get_sends_no_body() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let target = Webhook { method: "GET".to_owned(), ..webhook(&server.url()) };
    fixture.add(Target::Webhook(target)).await;
    fixture.emit(film("one"));
    let request = server.until_asked(1).await.remove(0);
    assert!(request.head.starts_with("GET /hooks/") && request.body.is_empty(), "{request:?}");
    assert!(request.header("webhook-id").is_some());
}

#[tokio::test]
async fn events_beyond_the_limit_of_those_that_wait_for_the_disk_are_left_out() {
    let (fixture, server) = (Fixture::new().await, Server::start([Answer::Hang]).await);
    let id = fixture.add(to(&server)).await;
    // Nothing is stored before this task waits.
    for n in 0..outbox::WAITING_EVENTS_MAX + 3 {
        fixture.emit(film(&n.to_string()));
    }
    assert_eq!(fixture.outbox.n_lost(), 3);
    fixture.until(id, |it| it.n_waiting == outbox::WAITING_EVENTS_MAX).await;
}

/// As long as the time limit of a request.
mod slow {
    use super::*;

    #[tokio::test]
    async fn a_target_that_hangs_is_tried_again_and_one_that_drips_counts_by_its_status() {
        let (hung, drips) = (Server::start([Answer::Hang]).await, Server::start([Answer::Drip]).await);
        let fixture = Fixture::new().await;
        let (hangs, drip) = (fixture.add(to(&hung)).await, fixture.add(to(&drips)).await);
        fixture.emit(film("one"));
        fixture.until(drip, |it| it.n_waiting == 0).await;
        let log = fixture.until_logged(drip, 1).await;
        assert!(log[0].is_success && log[0].answer.as_ref().unwrap().body.starts_with("..."), "{log:?}");
        let log = fixture.until_logged(hangs, 1).await;
        assert!(log[0].reason.as_ref().unwrap().contains("within 15 s"), "{log:?}");
        assert_eq!(names(&hung.until_asked(2).await), ["one", "one"]);
    }
}

#[tokio::test]
async fn refused_deliveries_are_dead_letters_that_can_be_sent_again_or_deleted() {
    let elsewhere = Server::start([]).await;
    let location: &'static str = Box::leak(format!("Location: {}\r\n", elsewhere.url()).into());
    let answers = [status(404, ""), status(307, location), status(400, "")];
    let (fixture, server) = (Fixture::new().await, Server::start(answers).await);
    let id = fixture.add(to(&server)).await;
    for name in ["a", "b", "c", "d"] {
        fixture.emit(film(name));
    }
    assert_eq!(fixture.until(id, |it| it.n_dead == 3 && it.n_waiting == 0).await.paused, None);
    assert!(elsewhere.requests().is_empty(), "redirects are not followed");
    let dead = DeliveryFilter { is_dead: Some(true), ..DeliveryFilter::default() };
    let letters = fixture.deliveries(&dead);
    let reasons: Vec<_> = letters.iter().map(|it| it.reason.clone().unwrap()).collect();
    assert!(reasons[1].contains("307, a redirect") && reasons[2].contains("404"), "{reasons:?}");
    let none = DeliveryFilter { event: Some("vod_stop".to_owned()), ..dead.clone() };
    assert_eq!(fixture.replay(&none).await, 0);
    let one = DeliveryFilter { ids: Some([letters[2].id].into()), ..DeliveryFilter::default() };
    assert_eq!(fixture.replay(&one).await, 1);
    let requests = server.until_asked(5).await;
    assert_eq!(names(&requests), ["a", "b", "c", "d", "a"]);
    assert_eq!(requests[4].header("webhook-id"), requests[0].header("webhook-id"));
    fixture.until(id, |it| it.n_dead == 2 && it.n_waiting == 0).await;
    assert_eq!(fixture.change_dead(&DeliveryFilter::default(), DeadLetters::delete).await, 2);
    fixture.until(id, |it| it.n_dead == 0).await;
    assert!(fixture.models.store.collection::<Delivery>().is_empty());
}

#[tokio::test]
async fn a_target_that_is_gone_pauses_its_integration_until_it_is_resumed() {
    let (fixture, server) = (Fixture::new().await, Server::start([status(410, "")]).await);
    let id = fixture.add(to(&server)).await;
    fixture.emit(film("one"));
    fixture.until(id, |it| it.paused.is_some() && it.n_dead == 1 && it.n_waiting == 0).await;
    fixture.emit(film("two"));
    fixture.until(id, |it| it.n_waiting == 1).await;
    assert_eq!(server.requests().len(), 1);
    assert!(fixture.integrations.resume(id).await.unwrap());
    assert_eq!(names(&server.until_asked(2).await), ["one", "two"]);
    let status = fixture.until(id, |it| it.n_waiting == 0).await;
    assert_eq!((status.paused, status.failing_since), (None, None));
    assert!(!fixture.integrations.resume(id).await.unwrap());
}

#[tokio::test]
async fn a_disabled_integration_keeps_what_waits() {
    let (fixture, server) = (Fixture::new().await, Server::start([status(410, "")]).await);
    let id = fixture.add(to(&server)).await;
    fixture.emit(film("gone"));
    fixture.until(id, |it| it.paused.is_some() && it.n_dead == 1).await;
    fixture.emit(film("kept"));
    fixture.until(id, |it| it.n_waiting == 1).await;
    fixture.change(id, |it| it.is_enabled = false).await;
    fixture.integrations.resume(id).await.unwrap();
    fixture.emit(film("not wanted"));
    let good = Server::start([]).await;
    let other = fixture.add(to(&good)).await;
    fixture.emit(film("later"));
    fixture.until_logged(other, 1).await;
    assert_eq!((fixture.status(id).n_waiting, server.requests().len()), (1, 1));
    fixture.change(id, |it| it.is_enabled = true).await;
    assert_eq!(names(&server.until_asked(2).await), ["gone", "kept"]);
    // A deleted one leaves nothing.
    fixture.write(move |write| storage::records::remove_integration(write, id).map(drop)).await;
    until(|| fixture.integrations.status(id).is_none() && fixture.log(id).is_empty()).await;
    assert!(fixture.models.store.collection::<Delivery>().is_empty());
}

#[tokio::test]
async fn what_waits_at_a_stop_is_delivered_after_the_next_start() {
    let server = Server::start([Answer::Hang]).await;
    let fixture = Fixture::new().await;
    let id = fixture.add(to(&server)).await;
    for n in 0..50 {
        fixture.emit(film(&n.to_string()));
    }
    server.until_asked(1).await;
    let models = fixture.stop().await;
    // The courier has stored all of them before it ended.
    assert_eq!(models.store.collection::<Delivery>().len(), 50);
    let fixture = Fixture::on(models, IntegrationSettings::default(), [].into());
    let requests = server.until_asked(51).await;
    let expected: Vec<_> = std::iter::once(0).chain(0..50).map(|it| it.to_string()).collect();
    assert_eq!(names(&requests), expected, "only the one that was attempted is repeated");
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    fixture.until(id, |it| it.n_waiting == 0).await;
    assert_eq!(fixture.until_logged(id, 50).await.len(), 50);
}

#[tokio::test]
async fn an_event_of_a_change_is_stored_with_it_or_not_at_all() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let id = fixture.add(to(&server)).await;
    let outbox = fixture.outbox.clone();
    let failed = fixture.models.store.write(move |write| {
        outbox.enqueue(write, &film("never"))?;
        Err::<(), _>(storage::Error::DamagedRecord("a test".to_owned()))
    });
    assert!(failed.await.is_err());
    let outbox = fixture.outbox.clone();
    fixture.write(move |write| outbox.enqueue(write, &film("with it"))).await;
    assert_eq!(names(&server.until_asked(1).await), ["with it"]);
    fixture.until(id, |it| it.n_waiting == 0).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn several_attempts_at_a_time_keep_the_order_of_each_channel() {
    const CHANNELS: u128 = 6;
    const EVENTS: usize = 20;
    let fixture = Fixture::new().await;
    // Answers later the more requests there are, so that attempts overlap.
    let (listener, log) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (url, seen) = (format!("http://{}/", listener.local_addr().unwrap()), log.clone());
    let n_open: Arc<Mutex<(usize, usize)>> = Arc::default();
    let counted = n_open.clone();
    let _target = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let (seen, counted) = (seen.clone(), counted.clone());
            connections.spawn(async move {
                while let Some(request) = read_one(&mut socket).await {
                    {
                        let mut open = counted.lock();
                        open.0 += 1;
                        open.1 = open.1.max(open.0);
                    }
                    let payload = request.json();
                    let number = |key: &str| payload[key].as_str().unwrap().to_owned();
                    let key = (number("channel_name"), number("error_message"));
                    seen.lock().push((key.clone(), true));
                    sleep(Duration::from_millis(u64::from(payload.to_string().len() as u32 % 7) * 3)).await;
                    seen.lock().push((key, false));
                    counted.lock().0 -= 1;
                    if socket.write_all(b"HTTP/1.1 204 No\r\n\r\n").await.is_err() {
                        return;
                    }
                }
            });
        }
    }));
    let id = fixture.add_with(Target::Webhook(webhook(&url)), |it| it.parallel = 8).await;
    for n in 0..EVENTS {
        for channel in 0..CHANNELS {
            let number: Option<ChannelNumber> = "1".parse().ok();
            let channel = ChannelRef { uuid: Uuid::from_u128(channel), name: channel.to_string(), number };
            let body = EventBody::ChannelError { channel, error_message: n.to_string(), stream: None };
            fixture.emit(Event { at: now_ms(), body });
        }
    }
    let n_all = EVENTS * usize::try_from(CHANNELS).unwrap();
    until(|| log.lock().len() == 2 * n_all).await;
    let mut of: HashMap<String, Vec<(String, bool)>> = HashMap::new();
    for ((channel, n), is_begin) in log.lock().iter() {
        of.entry(channel.clone()).or_default().push((n.clone(), *is_begin));
    }
    let expected: Vec<_> =
        (0..EVENTS).flat_map(|n| [(n.to_string(), true), (n.to_string(), false)]).collect();
    assert!(of.len() == 6 && of.values().all(|it| *it == expected), "{of:?}");
    let most = n_open.lock().1;
    assert!((2..=8).contains(&most), "{most} at a time");
    fixture.until(id, |it| it.n_waiting == 0).await;
}

/// Reads one request of a connection.
async fn read_one(socket: &mut TcpStream) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(socket.read_u8().await.ok()?));
    }
    let request = Request { head, body: String::new() };
    let mut body = vec![0; request.header("content-length")?.parse().ok()?];
    socket.read_exact(&mut body).await.ok()?;
    Some(Request { body: String::from_utf8(body).ok()?, ..request })
}

// Holds T-int.2.
#[tokio::test]
async fn the_log_and_the_queue_are_bounded() {
    let server = Server::start([]).await;
    let log = DeliveryLogLimits { entries_per_integration: 3, ..DeliveryLogLimits::default() };
    let fixture = Fixture::with(IntegrationSettings { log, ..IntegrationSettings::default() }).await;
    let id = fixture.add(to(&server)).await;
    for n in 0..6 {
        fixture.emit(film(&n.to_string()));
    }
    server.until_asked(6).await;
    fixture.until(id, |it| it.n_waiting == 0).await;
    until(|| fixture.log(id).first().is_some_and(|it| it.request.contains("\"content_name\":\"5\""))).await;
    assert_eq!(fixture.log(id).len(), 3);
    assert_eq!(fixture.models.store.collection::<DeliveryLogEntry>().len(), 3);

    let disabled = fixture.add_with(to(&server), |it| it.is_enabled = false).await;
    let n = u32::try_from(domain::integration::WAITING_MAX).unwrap() + 5;
    fixture
        .write(move |write| {
            for _ in 0..n {
                let id = DeliveryId(write.next_id::<Delivery>()?);
                write.put(&Delivery {
                    id,
                    to: Recipient::Integration(disabled),
                    event_id: Uuid::nil(),
                    event: "vod_stop".to_owned(),
                    created_at: 0,
                    payload: "{}".to_owned(),
                    summary: String::new(),
                    channel: None,
                    n_attempts: 0,
                    due_at: 0,
                    reason: None,
                    dead_at: None,
                    run: None,
                    n_crashes: 0,
                    passed_run: None,
                    addresses: Default::default(),
                })?;
            }
            Ok(())
        })
        .await;
    let status = fixture.until(disabled, |it| it.n_dead == 5).await;
    assert_eq!(status.n_waiting, domain::integration::WAITING_MAX);
    let dead = DeliveryFilter {
        is_dead: Some(true),
        to: Some(Recipient::Integration(disabled)),
        ..Default::default()
    };
    until(|| fixture.deliveries(&dead).len() == 5).await;
    let waiting = DeliveryFilter { is_dead: Some(false), ..dead.clone() };
    let oldest_waiting = fixture.integrations.deliveries(&waiting, n as usize - 6, 1).unwrap();
    assert!(fixture.deliveries(&dead).iter().all(|it| it.id < oldest_waiting.items[0].id));
}

// Holds T-int.3.
#[tokio::test]
async fn every_event_that_can_be_subscribed_to_is_delivered() {
    let (fixture, server) = (Fixture::new().await, Server::start([]).await);
    let subscription = |(n, event): (u32, &&str)| Subscription {
        id: n,
        event: (*event).to_owned(),
        is_enabled: true,
        template: None,
    };
    let all: Vec<_> = (0..).zip(EventBody::NAMES.iter()).map(subscription).collect();
    let id = fixture.add_with(to(&server), move |it| it.subscriptions = all).await;
    for body in EventBody::samples() {
        fixture.emit(Event { at: now_ms(), body });
    }
    let requests = server.until_asked(EventBody::NAMES.len()).await;
    let names: Vec<_> =
        requests.iter().map(|it| it.json()["event_type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, EventBody::NAMES);
    fixture.until(id, |it| it.n_waiting == 0).await;
    assert!(requests.iter().all(|it| !it.body.contains("secret")), "credentials of providers");
}
