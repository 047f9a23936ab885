//! Media servers find the emulated tuner by UDP, if the discovery is on.

use std::net::{Ipv4Addr, SocketAddr};

use config::Discovery;
use domain::discovery::hdhomerun::{device_number, request};
use domain::tuner::device_uuid;
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::support::WAIT_MAX;
use crate::support::api::Api;
use crate::support::client::{Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::users::create_user;

/// Starts a gateway that answers on free ports of the loopback address.
async fn gateway(change: impl FnOnce(&mut Discovery)) -> TestGateway {
    let mut discovery =
        Discovery { enabled: true, interface: Ipv4Addr::LOCALHOST, hdhomerun_port: 0, ssdp_port: 0 };
    change(&mut discovery);
    Setup::new().config(move |it| it.discovery = discovery).start().await
}

/// A client of the discovery.
struct Searcher(UdpSocket);

impl Searcher {
    async fn new() -> Searcher {
        Searcher(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap())
    }

    async fn send(&self, to: SocketAddr, message: &[u8]) {
        self.0.send_to(message, to).await.unwrap();
    }

    async fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 2_000];
        let received = timeout(WAIT_MAX, self.0.recv_from(&mut buffer)).await.expect("an answer").unwrap();
        buffer[..received.0].to_vec()
    }
}

fn search(target: &str) -> Vec<u8> {
    format!("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: {target}\r\n\r\n")
        .into_bytes()
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|it| it == part.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tuner_is_not_announced_unless_the_discovery_is_on() {
    let gateway = gateway(|it| it.enabled = false).await;
    assert_eq!(gateway.gateway.discovery_addresses(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_for_hdhomerun_devices_finds_every_device_with_a_valid_number() {
    let gateway = gateway(|_| {}).await;
    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&admin.api_key);
    assert_eq!(admin.post("/api/hdhr/devices/", json!({ "device_id": "bedroom" })).await.status, 201);
    let address = gateway.gateway.discovery_addresses().unwrap().hdhomerun.unwrap();
    let searcher = Searcher::new().await;
    // Anything else is ignored.
    for message in [&b""[..], b"\x00\x02", &[0xFF; 1_500], &request(Some(1))] {
        searcher.send(address, message).await;
    }
    searcher.send(address, &request(None)).await;
    let origin = format!("http://{}", gateway.address);
    for (id, base) in [("12345678", origin.clone()), ("bedroom", format!("{origin}/tuner/bedroom"))] {
        let reply = searcher.receive().await;
        assert_eq!(reply[..2], [0, 3]);
        let number = device_number(id).to_be_bytes();
        assert!(reply.windows(6).any(|it| it == [&[2, 4][..], &number].concat()), "{id} {reply:02x?}");
        assert!(contains(&reply, &format!("{base}/lineup.json")), "{id} {reply:02x?}");
    }
    // One device alone.
    searcher.send(address, &request(Some(device_number("bedroom")))).await;
    assert!(contains(&searcher.receive().await, "/tuner/bedroom"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_for_upnp_devices_leads_to_the_description_of_the_tuner() {
    let gateway = gateway(|_| {}).await;
    let address = gateway.gateway.discovery_addresses().unwrap().ssdp.unwrap();
    let searcher = Searcher::new().await;
    searcher.send(address, b"M-SEARCH * HTTP/1.1\r\n\r\n").await;
    searcher.send(address, &search("urn:other")).await;
    let uuid = format!("uuid:{}", device_uuid("12345678"));
    for target in ["upnp:rootdevice", &uuid, "urn:schemas-upnp-org:device:MediaServer:1"] {
        searcher.send(address, &search(target)).await;
        let answer = String::from_utf8(searcher.receive().await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(&format!("\r\nST: {target}\r\n")) && answer.contains(&uuid), "{answer}");
        let location = answer.lines().find_map(|it| it.strip_prefix("LOCATION: ")).unwrap();
        let path = location.strip_prefix(&format!("http://{}", gateway.address)).unwrap();
        let description = fetch(gateway.address, Request::get(path)).await.text();
        assert!(description.contains(&format!("<UDN>{uuid}</UDN>")), "{description}");
    }
    searcher.send(address, &search("ssdp:all")).await;
    for _ in 0..3 {
        assert!(contains(&searcher.receive().await, &uuid));
    }
}

/// A sender that asks without a pause gets a few answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_answers_to_one_sender_is_limited() {
    let gateway = gateway(|_| {}).await;
    let address = gateway.gateway.discovery_addresses().unwrap().hdhomerun.unwrap();
    let (flood, other) = (Searcher::new().await, Searcher::new().await);
    for _ in 0..200 {
        flood.send(address, &request(None)).await;
    }
    // It still answers, when the next second begins.
    loop {
        other.send(address, &request(None)).await;
        if timeout(std::time::Duration::from_millis(200), other.receive()).await.is_ok() {
            break;
        }
    }
    let mut n_answers = 0;
    let mut buffer = [0; 2_000];
    while flood.0.try_recv_from(&mut buffer).is_ok() {
        n_answers += 1;
    }
    assert!((1..100).contains(&n_answers), "{n_answers} answers to 200 requests");
}

mod slow {
    use serde_json::Value;

    use super::{device_number, gateway};
    use crate::support::client::{Request, fetch};
    use crate::support::tools::text_of;

    /// The program of the manufacturer knows only one port.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_program_of_the_manufacturer_finds_the_tuner() {
        let gateway = gateway(|it| it.hdhomerun_port = domain::discovery::hdhomerun::PORT).await;
        let text = text_of("hdhomerun_config", &["discover", "127.0.0.1"]).await;
        let number = format!("{:08X}", device_number("12345678"));
        assert!(text.contains(&number) && text.contains("127.0.0.1"), "{text}");
        let device = fetch(gateway.address, Request::get("/discover.json")).await.text();
        assert_eq!(serde_json::from_str::<Value>(&device).unwrap()["DeviceID"], "12345678");
    }
}
