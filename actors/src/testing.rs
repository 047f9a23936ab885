//! Shared helpers of the tests.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cluster::EngineLog;
use cluster::testing::MemoryStore;
use domain::egress::Reach;
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::limits::LimitScope;
use domain::output_format::StreamFormat;
use domain::plan::{Candidate, Plan, SlotPool};
use domain::playlist::catalogue::CatalogueBuilder;
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::settings::Settings;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, SourceKind};
use domain::stream_profile::Delivery;
use media::launcher::Launcher;
use media::meter::Connection;
use media::ring::{EndReason, Tail};
use media::testing::{Behaviour, MemoryDial, MemoryProvider, labels_in};
use parking_lot::Mutex;
use ractor::{ActorProcessingErr, ActorRef, Message};
use storage::log::LogKeys;
use storage::{Models, Store};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::channel::{ChannelStatus, WatchReply};
use crate::plans::{Plans, Target};
use crate::seats::SeatRequest;
use crate::slots::{LeaseTable, SlotTable};
use crate::switchboard::WatchRequest;
use crate::system::{System, SystemParts};
use crate::viewer::{Identity, Viewer};
use crate::vod::FilmCacheSettings;

/// Lets a store follow the log of a cluster of its own. It can then become the writer. Blocks.
pub(crate) fn follow_log(store: &Store) {
    let engine = MemoryStore::default().connect();
    let log = Arc::new(EngineLog::new(Arc::new(engine), 0));
    store.begin_log(Uuid::from_u128(7), 0).unwrap();
    store.attach_log(log, LogKeys::new().unwrap()).unwrap();
}

/// An actor that stores its messages for a test.
struct Inbox<M>(std::marker::PhantomData<fn(M)>);

impl<M: Message> ractor::Actor for Inbox<M> {
    type Msg = M;
    type State = mpsc::UnboundedSender<M>;
    type Arguments = mpsc::UnboundedSender<M>;

    async fn pre_start(
        &self,
        _myself: ActorRef<M>,
        out: mpsc::UnboundedSender<M>,
    ) -> Result<mpsc::UnboundedSender<M>, ActorProcessingErr> {
        Ok(out)
    }

    async fn handle(
        &self,
        _myself: ActorRef<M>,
        message: M,
        out: &mut mpsc::UnboundedSender<M>,
    ) -> Result<(), ActorProcessingErr> {
        // The send fails when the test has ended.
        let _ = out.send(message);
        Ok(())
    }
}

/// Creates an actor, and a receiver for its messages.
pub(crate) async fn inbox<M: Message>() -> (ActorRef<M>, mpsc::UnboundedReceiver<M>) {
    let (tx, rx) = mpsc::unbounded_channel();
    let (actor, _) =
        ractor::Actor::spawn(None, Inbox(std::marker::PhantomData), tx).await.expect("an inbox starts");
    (actor, rx)
}

/// A system with an in-memory provider. Channel `1` has the streams `a`, `b`, … of provider `tv`, each with an account
/// of its own by default.
pub(crate) struct Scenario {
    pub(crate) system: System,
    pub(crate) provider: MemoryProvider,
    dial: MemoryDial,
    /// The plans of the scenario, if it has its own.
    plans: Option<Arc<FixedPlans>>,
}

/// One stream of a channel: its path, and its account profile with its limit.
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    pub(crate) account: u32,
    pub(crate) max_streams: u32,
    pub(crate) release_delay: Duration,
    pub(crate) profile: Delivery,
    pub(crate) leaves_still_picture: bool,
}

/// A stream with an unlimited account of its own.
pub(crate) fn stream(id: u32, name: &'static str) -> Stream {
    Stream {
        id,
        name,
        account: id,
        max_streams: 0,
        release_delay: Duration::ZERO,
        profile: Delivery::Proxy,
        leaves_still_picture: false,
    }
}

/// A stream on an account that others may share.
pub(crate) fn limited(id: u32, name: &'static str, account: u32, max_streams: u32) -> Stream {
    Stream { account, max_streams, ..stream(id, name) }
}

/// Returns the channel with this number.
pub(crate) fn channel(number: u32) -> Target {
    Target::Channel(Uuid::from_u128(u128::from(number)))
}

/// Returns the candidate of a stream at this address.
pub(crate) fn candidate(stream: &Stream, url: &str) -> Candidate {
    Candidate {
        proxy: None,
        certificates: None,
        stream: StreamId(stream.id),
        stream_name: stream.name.to_owned(),
        url: SourceUrl::new(url),
        program: None,
        leaves_still_picture: stream.leaves_still_picture,
        kind: SourceKind::HttpTs,
        headers: RequestHeaders::default(),
        reach: Reach::default(),
        profile: stream.profile,
        redirect_without_login: false,
        live_form: None,
        details: None,
        command: None,
        pool: SlotPool {
            account: AccountId(stream.account),
            account_name: format!("account {}", stream.account),
            profile: ProfileId(stream.account),
            max_streams: stream.max_streams,
            release_delay: stream.release_delay,
            crash_cooling: None,
            changed_at: 0,
            scope: LimitScope::Unknown,
            shared: None,
        },
    }
}

/// Returns the plan of the channel with this number.
pub(crate) fn plan(number: u32, candidates: Vec<Candidate>) -> Plan {
    Plan {
        uuid: Uuid::from_u128(u128::from(number)),
        name: format!("Channel {number}"),
        number: None,
        candidates,
        n_elsewhere: 0,
        unplayable: Vec::new(),
        for_players: None,
    }
}

/// Returns the plan of a channel whose streams are at one provider.
fn plan_at_tv(number: u32, streams: &[Stream]) -> Plan {
    let at_tv = |it: &Stream| candidate(it, &format!("http://tv:80/{}", it.name));
    plan(number, streams.iter().map(at_tv).collect())
}

/// Fixed plans of a scenario.
#[derive(Default)]
struct FixedPlans {
    plans: Mutex<HashMap<Target, Arc<Plan>>>,
    inactive: Mutex<HashSet<AccountId>>,
}

impl Plans for FixedPlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        self.plans.lock().get(target).cloned()
    }

    fn is_active(&self, pool: &SlotPool) -> bool {
        !self.inactive.lock().contains(&pool.account)
    }
}

impl Scenario {
    /// Creates channels 1, 2, … with these streams; every stream plays.
    pub(crate) async fn new<const N: usize>(settings: Settings, channels: [&[Stream]; N]) -> Self {
        Self::with_table(settings, channels, |of_node| of_node).await
    }

    /// Creates channels as [`Self::of`] does, whose leases come from another table than that of the node.
    pub(crate) async fn with_table<const N: usize>(
        settings: Settings,
        channels: [&[Stream]; N],
        leases: impl FnOnce(Arc<SlotTable>) -> Arc<dyn LeaseTable>,
    ) -> Self {
        let dial = MemoryDial::new();
        let provider = dial.provider("tv:80");
        let mut plans = HashMap::new();
        for (number, streams) in (1..).zip(channels) {
            for it in streams {
                provider.set(&format!("/{}", it.name), Behaviour::play(it.name));
                let preview = plan_at_tv(1000 + it.id, std::slice::from_ref(it));
                plans.insert(Target::Stream(StreamId(it.id)), Arc::new(preview));
            }
            plans.insert(channel(number), Arc::new(plan_at_tv(number, streams)));
        }
        let plans = Arc::new(FixedPlans { plans: Mutex::new(plans), ..FixedPlans::default() });
        let scenario = Self::with_parts(settings, plans.clone(), dial, provider, leases).await;
        Self { plans: Some(plans), ..scenario }
    }

    /// Changes the streams of a channel, like a commit.
    pub(crate) async fn replan(&self, number: u32, streams: &[Stream]) {
        self.replan_silently(number, streams);
        self.system.switchboard().reload().await.expect("the switchboard answers");
    }

    /// Changes the streams of a channel like a commit of which live channels have not heard yet.
    pub(crate) fn replan_silently(&self, number: u32, streams: &[Stream]) {
        let plans = self.plans.as_ref().expect("a scenario with plans of its own");
        plans.plans.lock().insert(channel(number), Arc::new(plan_at_tv(number, streams)));
    }

    /// Removes a channel like a commit of which live channels have not heard yet.
    pub(crate) fn remove_silently(&self, number: u32) {
        let plans = self.plans.as_ref().expect("a scenario with plans of its own");
        plans.plans.lock().remove(&channel(number));
    }

    /// Deactivates an account, for films that already play.
    pub(crate) fn deactivate(&self, account: u32) {
        let plans = self.plans.as_ref().expect("a scenario with plans of its own");
        plans.inactive.lock().insert(AccountId(account));
    }

    /// Creates a scenario with other plans.
    pub(crate) async fn with_provider(
        settings: Settings,
        plans: Arc<dyn Plans>,
        dial: MemoryDial,
        provider: MemoryProvider,
    ) -> Self {
        Self::with_parts(settings, plans, dial, provider, |of_node| of_node).await
    }

    async fn with_parts(
        settings: Settings,
        plans: Arc<dyn Plans>,
        dial: MemoryDial,
        provider: MemoryProvider,
        leases: impl FnOnce(Arc<SlotTable>) -> Arc<dyn LeaseTable>,
    ) -> Self {
        let parts = SystemParts {
            dial: Arc::new(dial.clone()),
            packets: Handle::current(),
            launcher: Launcher::default(),
            films: FilmCacheSettings::default(),
            cluster: None,
        };
        let system = System::start_with(settings, plans, parts, leases).await.expect("starts");
        Self { system, provider, dial, plans: None }
    }

    /// Starts another system with the same provider and the same plans, whose leases come from another table than that of
    /// the node.
    pub(crate) async fn beside(
        &self,
        settings: Settings,
        leases: impl FnOnce(Arc<SlotTable>) -> Arc<dyn LeaseTable>,
    ) -> Self {
        let plans = self.plans.clone().expect("a scenario with plans of its own");
        let (dial, provider) = (self.dial.clone(), self.provider.clone());
        let other = Self::with_parts(settings, plans.clone(), dial, provider, leases).await;
        Self { plans: Some(plans), ..other }
    }

    /// Creates a scenario from a store and follows it; each stream plays under the last part of its address.
    pub(crate) async fn with_store(settings: Settings, plans: Arc<dyn Plans>, models: Models) -> Self {
        let dial = MemoryDial::new();
        let provider = dial.provider("tv:80");
        let streams = models.store.collection::<domain::stream::Stream>().all().expect("streams");
        for stream in streams {
            let name = stream.url().expose().rsplit('/').next().expect("a path").to_owned();
            provider.set(&format!("/{name}"), Behaviour::play(&name));
        }
        let scenario = Self::with_provider(settings.clone(), plans, dial, provider).await;
        scenario.system.follow(models, settings, Arc::new(|_, _| true));
        scenario
    }

    /// Requests to watch without a login.
    pub(crate) async fn ask(&self, target: Target) -> WatchReply {
        self.ask_as(target, None, "player").await.0
    }

    /// Requests to watch as this user with this program. Returns the viewer's connection too.
    pub(crate) async fn ask_as(
        &self,
        target: Target,
        user: Option<&str>,
        agent: &str,
    ) -> (WatchReply, Arc<Connection>) {
        self.ask_with(target, user, agent, None).await
    }

    /// Requests to watch with a seat; the program identifies the device.
    pub(crate) async fn ask_seated(
        &self,
        target: Target,
        seat: SeatRequest,
        device: &str,
    ) -> (WatchReply, Arc<Connection>) {
        self.ask_with(target, Some(&format!("user {}", seat.user)), device, Some(seat)).await
    }

    async fn ask_with(
        &self,
        target: Target,
        user: Option<&str>,
        agent: &str,
        seat: Option<SeatRequest>,
    ) -> (WatchReply, Arc<Connection>) {
        let (agent, identity) = (agent.to_owned(), Identity::default());
        let address = IpAddr::from([10, 0, 0, 1]);
        let viewer = Viewer { user: user.map(str::to_owned), address, agent, identity };
        self.ask_for(target, viewer, seat).await
    }

    /// Requests to watch as this viewer.
    pub(crate) async fn ask_for(
        &self,
        target: Target,
        viewer: Viewer,
        seat: Option<SeatRequest>,
    ) -> (WatchReply, Arc<Connection>) {
        let connection = Arc::new(Connection::new(1, SocketAddr::new(viewer.address, 4711)));
        let request = WatchRequest {
            target,
            viewer,
            connection: connection.clone(),
            seat,
            rendition: None,
            format: StreamFormat::Ts,
        };
        (self.system.switchboard().watch(request).await.expect("the switchboard answers"), connection)
    }

    /// Watches and waits for the first real chunk.
    pub(crate) async fn watch(&self, target: Target) -> TestViewer {
        match self.ask(target).await {
            WatchReply::Tail { mut tail, .. } => {
                tail.ready().await.expect("it plays");
                TestViewer { tail }
            }
            other => panic!("expected a tail of {target}, got {other:?}"),
        }
    }

    pub(crate) async fn status(&self, target: Target) -> Option<ChannelStatus> {
        self.system.switchboard().status(target).await.expect("the switchboard answers")
    }

    /// Returns the names of the events so far.
    pub(crate) fn event_names(&self) -> Vec<&'static str> {
        self.system.events().recent().iter().map(|it| it.body.name()).collect()
    }

    /// Waits until no channel, lease, socket or seat is left.
    pub(crate) async fn is_quiet(&self) {
        for _ in 0..6000 {
            let counts = self.system.counts();
            if (counts.channels, counts.clients, counts.leases, counts.sockets_open, counts.seats)
                == (0, 0, 0, 0, 0)
            {
                assert_eq!(self.provider.n_open(), 0, "the provider sees a socket that we do not");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("something is left after ten minutes: {:?}", self.system.counts());
    }
}

/// Creates a store with these playlists of `(channel, stream)`, each with its own account; the streams are at
/// `http://tv:80/`.
pub(crate) fn models(lists: &[&[(&str, &str)]]) -> Models {
    let mut catalogue = CatalogueBuilder::new();
    for list in lists {
        let account = catalogue.account("tv", 1, RequestHeaders::default());
        for (channel, stream) in *list {
            let text = format!("#EXTINF:-1,{channel}\nhttp://tv:80/{stream}\n");
            for item in parse(text.as_bytes(), PlaylistLimits::default()).0 {
                if let PlaylistItem::Entry(entry) = item {
                    catalogue.entry(account, entry);
                }
            }
        }
    }
    let catalogue = catalogue.build();
    // In another thread, because blocking is not allowed on the runtime.
    let made = std::thread::spawn(move || {
        let store = Store::temporary(storage::records::schema())?;
        storage::seed(&store)?;
        storage::store_catalogue(&store, catalogue)?;
        Models::new(store)
    });
    made.join().expect("no panic").expect("a store")
}

/// Writes without advancing the paused time.
pub(crate) fn write<F>(models: &Models, fill: F)
where
    F: FnOnce(&mut storage::Write<'_>) -> storage::Result<()> + Send + 'static,
{
    let store = models.store.clone();
    let written = std::thread::spawn(move || store.write_blocking(fill));
    written.join().expect("no panic").expect("it is written");
}

/// A viewer that reads.
pub(crate) struct TestViewer {
    pub(crate) tail: Tail,
}

impl TestViewer {
    /// Reads until the picture contains this label.
    pub(crate) async fn sees(&mut self, label: &str) {
        loop {
            let bytes =
                self.tail.chunk().await.unwrap_or_else(|end| panic!("no {label} before the end: {end}"));
            if labels_in(&bytes).iter().any(|it| it == label) {
                return;
            }
        }
    }

    /// Reads to the end, and returns its reason.
    pub(crate) async fn ends(&mut self) -> EndReason {
        loop {
            if let Err(end) = self.tail.chunk().await {
                return end;
            }
        }
    }
}

/// Settings without delays that tests do not need.
pub(crate) fn settings() -> Settings {
    Settings { ring_budget_bytes: Some(64 << 20), ..Settings::default() }
}
