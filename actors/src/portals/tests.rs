//! Tests of devices, against a small portal on a real socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::egress::AllowedNetworks;
use domain::ids::{AccountId, ProfileId};
use domain::portal::{
    MacAddress, PortalDevice, PortalMedia, PortalPlace, PortalQuestion, PortalStreamAddress,
};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use media::Permit;
use media::source::AddressMaker;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::yield_now;

use super::{PortalClient, PortalFailure, PortalLink};
use crate::fetch::{Fetch, FetchLimits};

/// Answers questions by their action. A token is valid until the next handshake, or until it is ended.
#[derive(Default)]
struct FakePortal {
    n_handshakes: AtomicUsize,
    /// Refuses every question after a handshake.
    refuses: Mutex<bool>,
    /// Answers no question after a handshake.
    fails: Mutex<bool>,
    /// The number of the handshake whose token is valid.
    valid: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl FakePortal {
    async fn start() -> (Arc<Self>, String) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let portal = Arc::new(Self::default());
        let answering = portal.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let portal = answering.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = socket.read_u8().await else { return };
                        head.push(byte);
                    }
                    let (status, body) = portal.answer(&String::from_utf8(head).unwrap());
                    let length = body.len();
                    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{body}");
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        (portal, address)
    }

    fn answer(&self, head: &str) -> (u16, String) {
        let target = head.split(' ').nth(1).unwrap();
        if !target.starts_with("/server/load.php?") {
            return (404, String::new());
        }
        let action = target.split("action=").nth(1).and_then(|it| it.split('&').next()).unwrap();
        self.asked.lock().push(action.to_owned());
        if action == "handshake" {
            let number = self.n_handshakes.fetch_add(1, Ordering::Relaxed) + 1;
            self.valid.store(number, Ordering::Relaxed);
            return (200, format!("{{\"js\":{{\"token\":\"T{number}\"}}}}"));
        }
        if *self.fails.lock() {
            return (500, String::new());
        }
        let bearer = format!("bearer t{}\r\n", self.valid.load(Ordering::Relaxed));
        let is_refused = *self.refuses.lock() && action != "get_profile";
        if is_refused || !head.to_ascii_lowercase().contains(&bearer) {
            return (200, "Authorization failed.".to_owned());
        }
        let js = match action {
            "get_simple_data_table" => {
                r#"{"total_items":"1","data":[{"id":"55","start_timestamp":"100","stop_timestamp":200}]}"#
            }
            "create_link" if target.contains("type=tv_archive") => {
                assert!(target.contains("&cmd=auto%20%2Fmedia%2F55.mpg&"), "{target}");
                r#"{"cmd":"ffmpeg http://127.0.0.1:9/archive.mpg?token=a","error":""}"#
            }
            "create_link" => r#"{"cmd":"ffmpeg http://127.0.0.1:9/7.ts?token=a","error":""}"#,
            _ => r#"{"id":1,"status":0}"#,
        };
        (200, format!("{{\"js\":{js}}}"))
    }

    fn n_handshakes(&self) -> usize {
        self.n_handshakes.load(Ordering::Relaxed)
    }

    /// Another box shakes hands.
    fn ends_token(&self) {
        self.valid.store(usize::MAX, Ordering::Relaxed);
    }

    fn n_asked(&self, action: &str) -> usize {
        self.asked.lock().iter().filter(|it| *it == action).count()
    }
}

fn fetch() -> Fetch {
    Fetch::new(FetchLimits::default()).unwrap()
}

fn client(fetch: &Fetch, server: &str) -> PortalClient {
    client_of(fetch, server, "00:1A:79:12:34:56")
}

fn client_of(fetch: &Fetch, server: &str, mac: &str) -> PortalClient {
    let place = PortalPlace { server: SourceUrl::new(server), endpoint: None };
    let device = PortalDevice::new(MacAddress::parse(mac).unwrap());
    let profile =
        AccountProfile { device: Some(Box::new(device)), ..AccountProfile::default_of(ProfileId(2), "a", 0) };
    let list = PlaylistLocation::Portal(place.clone());
    let mut account = Account::new(AccountId(2), "a", list, profile, 0);
    account.allowed_networks = AllowedNetworks::Loopback;
    let profile = account.profiles[0].clone();
    PortalClient::new(fetch, &account, &profile, place).unwrap()
}

/// Returns the stored address of a channel.
fn stored(id: &str, cmd: Secret, needs_link: bool) -> PortalStreamAddress {
    PortalStreamAddress { media: PortalMedia::Channel, id: id.to_owned(), cmd, needs_link }
}

#[tokio::test]
async fn all_that_ask_for_a_device_share_one_handshake() {
    let (portal, server) = FakePortal::start().await;
    let fetch = fetch();
    let asking = (0..4).map(|_| {
        let client = client(&fetch.clone().within(FetchLimits::default()), &server);
        tokio::spawn(async move { client.ask(&PortalQuestion::Genres).await.map(drop) })
    });
    let asking: Vec<_> = asking.collect();
    for asked in asking {
        asked.await.unwrap().unwrap();
    }
    assert_eq!((portal.n_handshakes(), portal.n_asked("get_genres")), (1, 4));
    // The entry point that has answered is not searched again.
    let endpoint = client(&fetch, &server).endpoint().await.unwrap();
    assert_eq!(endpoint.expose(), format!("{server}/server/load.php"));
}

#[tokio::test]
async fn a_token_that_another_box_has_ended_is_renewed_and_a_refused_device_waits() {
    let (portal, server) = FakePortal::start().await;
    let fetch = fetch();
    let client = client(&fetch, &server);
    client.ask(&PortalQuestion::Genres).await.unwrap();
    portal.ends_token();
    client.ask(&PortalQuestion::Genres).await.unwrap();
    assert_eq!(portal.n_handshakes(), 2);
    *portal.refuses.lock() = true;
    let refused = client.ask(&PortalQuestion::Genres).await.unwrap_err();
    assert!(refused.is_unauthorized(), "{refused}");
    assert_eq!(portal.n_handshakes(), 3, "one new handshake");
    let n_asked = portal.asked.lock().len();
    for _ in 0..3 {
        let waits = client.ask(&PortalQuestion::Genres).await.unwrap_err();
        assert!(matches!(waits, PortalFailure::Waits(_)), "{waits}");
    }
    assert_eq!(portal.asked.lock().len(), n_asked, "nothing is asked while it waits");
}

/// Holds T-portal.1.
#[tokio::test]
async fn handshakes_are_bounded_at_a_portal_that_answers_nothing_else() {
    let (portal, server) = FakePortal::start().await;
    let fetch = fetch();
    *portal.fails.lock() = true;
    for _ in 0..10 {
        client(&fetch, &server).ask(&PortalQuestion::Genres).await.unwrap_err();
    }
    assert_eq!(portal.n_handshakes(), 5, "the maximum in ten minutes");
}

#[tokio::test]
async fn another_device_begins_a_session_of_its_own() {
    let (portal, server) = FakePortal::start().await;
    let fetch = fetch();
    let first = client(&fetch, &server);
    first.ask(&PortalQuestion::Genres).await.unwrap();
    let other = client_of(&fetch, &server, "00:1A:79:AB:CD:EF");
    other.ask(&PortalQuestion::Genres).await.unwrap();
    assert!(!Arc::ptr_eq(first.session(), other.session()));
    // What still plays with the first device does not take the session of the other one.
    assert!(Arc::ptr_eq(other.session(), client_of(&fetch, &server, "00:1A:79:AB:CD:EF").session()));
    assert_eq!(portal.n_handshakes(), 2);
}

#[tokio::test]
async fn a_link_that_the_gateway_cannot_read_is_refused_without_its_address() {
    let (_portal, server) = FakePortal::start().await;
    let client = client(&fetch(), &server);
    for (cmd, scheme) in [("ffmpeg rtsp://s.example/secret", "rtsp"), ("rtmp://s.example/secret", "rtmp")] {
        let address = stored("7", Secret::new(cmd), false);
        let error = PortalLink::new(client.clone(), address).address().await.unwrap_err();
        let expected = format!("the portal gave no link: the gateway cannot read its kind ({scheme})");
        assert_eq!(error.to_string(), expected);
    }
}

/// A permit that does nothing.
struct AnyPermit;

impl Permit for AnyPermit {
    fn delivers(&mut self) {}
    fn closing(&mut self) {}
}

#[tokio::test]
async fn a_link_is_made_at_each_opening_and_the_portal_is_told_only_of_what_plays() {
    let (portal, server) = FakePortal::start().await;
    let fetch = fetch();
    let cmd = Secret::new("ffrt http://localhost/ch/7_");
    let address = stored("7", cmd, true);
    let link = Arc::new(PortalLink::new(client(&fetch, &server), address.clone()));
    let mut permit = link.clone().held_by(Box::new(AnyPermit));
    assert!(portal.asked.lock().is_empty(), "nothing is asked before the opening");
    for n_made in 1..=2 {
        assert_eq!(link.address().await.unwrap(), "http://127.0.0.1:9/7.ts?token=a");
        assert_eq!(portal.n_asked("create_link"), n_made);
    }
    assert_eq!(portal.n_asked("get_events"), 0);
    permit.delivers();
    permit.delivers();
    while portal.n_asked("get_events") == 0 {
        yield_now().await;
    }
    let session = link.session();
    assert_eq!(session.n_playing.load(Ordering::Relaxed), 1);
    permit.closing();
    drop(permit);
    assert_eq!(session.n_playing.load(Ordering::Relaxed), 0);

    // A link in the command is not asked for.
    let cmd = Secret::new("ffmpeg http://127.0.0.1:9/8.ts");
    let direct = stored("8", cmd, false);
    let direct = PortalLink::new(client(&fetch, &server), direct);
    assert_eq!(direct.address().await.unwrap(), "http://127.0.0.1:9/8.ts");
    assert_eq!((portal.n_asked("create_link"), portal.n_handshakes()), (2, 1));
    *portal.refuses.lock() = true;
    let error = link.address().await.unwrap_err();
    assert_eq!(error.to_string(), "the portal refuses the device (authorization failed)");
    assert_eq!((error.label(), error.is_permanent(), error.can_retry()), ("portal", false, false));
}

#[tokio::test]
async fn the_past_of_a_channel_is_the_programme_at_its_time_in_the_archive() {
    let (portal, server) = FakePortal::start().await;
    let channel = stored("7", Secret::new("ffrt http://localhost/ch/7_"), true);
    let channel = channel.url(&SourceUrl::new(server.as_str()));
    let client = client(&fetch(), &server);
    let past = |at: i64| {
        let url = PortalStreamAddress::archive_at(&channel, at).unwrap();
        PortalLink::new(client.clone(), PortalStreamAddress::parse(&url).unwrap())
    };
    assert_eq!(past(150).address().await.unwrap(), "http://127.0.0.1:9/archive.mpg?token=a");
    let error = past(500).address().await.unwrap_err();
    assert_eq!(error.to_string(), "the portal gave no link: it has no programme at this time");
    // Once, and on the day of the time and the next one.
    assert_eq!((portal.n_asked("get_simple_data_table"), portal.n_asked("create_link")), (3, 1));
}
