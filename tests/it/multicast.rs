//! Streams in datagrams, in and out, with real multicast in a network namespace of each test.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use media::rtp::{RtpHeader, write_header};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::namespace::{self, ip, run};
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::Provider;
use crate::support::{eventually, tools, until_async};

const DATAGRAM: usize = 7 * 188;
/// The interfaces of the namespace besides loopback: traffic on them stays in it.
const INTERFACES: [(&str, &str, &str); 2] =
    [("mc0", "192.0.2.1/24", "2001:db8:1::1/64"), ("mc1", "198.51.100.1/24", "2001:db8:2::1/64")];

/// Runs this test again in a network namespace of its own, with two interfaces and a route for multicast. Returns whether
/// the caller is inside.
fn is_inside(test: &str) -> bool {
    if !namespace::is_inside(&format!("multicast::{test}")) {
        return false;
    }
    for (name, v4, v6) in INTERFACES {
        // The other end of the pair only has to be up. Some kernels have no dummy interfaces.
        let other = format!("{name}-end");
        ip(&["link", "add", name, "type", "veth", "peer", "name", &other]);
        ip(&["link", "set", name, "up", "multicast", "on"]);
        ip(&["link", "set", &other, "up"]);
        ip(&["address", "add", v4, "dev", name]);
        ip(&["-6", "address", "add", v6, "dev", name, "nodad"]);
    }
    ip(&["link", "set", "lo", "up"]);
    ip(&["route", "add", "224.0.0.0/4", "dev", "mc0"]);
    true
}

/// The form of the datagrams of a sender.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Udp,
    Rtp,
}

/// A sender of a picture in real time, until it is dropped.
struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sender {
    /// Sends from this address, on its interface.
    fn start(label: &str, form: Form, from: &str, to: String) -> Self {
        let from: IpAddr = from.parse().unwrap();
        let socket = socket2::Socket::new(
            if from.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 },
            socket2::Type::DGRAM,
            None,
        )
        .unwrap();
        match from {
            IpAddr::V4(from) => socket.set_multicast_if_v4(&from).unwrap(),
            IpAddr::V6(_) => {
                let interface = if from.to_string().contains(":1::") { "mc0" } else { "mc1" };
                socket.bind_device(Some(interface.as_bytes())).unwrap();
            }
        }
        socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
        let socket = UdpSocket::from(socket);
        let stop = Arc::new(AtomicBool::new(false));
        let (is_stopped, label) = (stop.clone(), label.to_owned());
        let thread = std::thread::spawn(move || {
            let mut tuned = Programme::from(Picture::new(&label)).tune_in(Duration::ZERO);
            let (start, mut bytes, mut sequence) = (Instant::now(), Vec::new(), 65_000_u16);
            while !is_stopped.load(Ordering::Relaxed) {
                tuned.take(start.elapsed(), &mut bytes);
                let mut datagrams: Vec<_> =
                    bytes.drain(..bytes.len() / DATAGRAM * DATAGRAM).collect::<Vec<_>>();
                for payload in datagrams.chunks_mut(DATAGRAM) {
                    let mut datagram = Vec::new();
                    if form == Form::Rtp {
                        let header = RtpHeader { payload_type: 33, sequence, timestamp: 0, sender: 7 };
                        write_header(&header, &mut datagram);
                        sequence = sequence.wrapping_add(1);
                    }
                    datagram.extend_from_slice(payload);
                    let _ = socket.send_to(&datagram, to.as_str());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn list(entries: &[(&str, &str)]) -> String {
    let entry = |(name, url): &(&str, &str)| format!("#EXTINF:-1 tvg-id=\"{name}\",{name}\n{url}\n");
    format!("#EXTM3U\n{}", entries.iter().map(entry).collect::<String>())
}

/// Returns the groups of IPv4 that the namespace has joined, as the kernel writes them.
fn groups() -> String {
    std::fs::read_to_string("/proc/self/net/igmp").unwrap()
}

/// Returns the number of sockets with a port.
fn n_sockets(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    table
        .lines()
        .filter(|it| it.split_whitespace().nth(1).is_some_and(|it| it.ends_with(&format!(":{port:04X}"))))
        .count()
}

#[test]
fn a_group_is_joined_once_for_all_viewers_and_left_after_the_last() {
    if !is_inside("a_group_is_joined_once_for_all_viewers_and_left_after_the_last") {
        return;
    }
    run(async {
        let _sender = Sender::start("news", Form::Udp, "192.0.2.1", "239.1.1.1:5000".to_owned());
        let gateway = TestGateway::with_list(&list(&[("News", "udp://@239.1.1.1:5000")])).await;
        assert!(!groups().contains("010101EF"), "{}", groups());
        let one = gateway.watch("News").await;
        let two = gateway.watch("News").await;
        one.sees("news").await;
        two.sees("news").await;
        assert!(groups().contains("010101EF"), "{}", groups());
        assert_eq!(n_sockets(5000), 1, "one join for both");
        one.leave().await;
        two.more_bytes(100_000).await;
        two.leave().await;
        gateway.until_idle().await;
        assert!(!groups().contains("010101EF"), "{}", groups());
        assert_eq!(n_sockets(5000), 0);
    });
}

#[test]
fn groups_are_received_from_the_chosen_interface_and_source_in_every_form() {
    if !is_inside("groups_are_received_from_the_chosen_interface_and_source_in_every_form") {
        return;
    }
    run(async {
        // The same group on two interfaces, and from two sources.
        let to = || "232.1.1.1:5000".to_owned();
        let _left = Sender::start("left", Form::Udp, "192.0.2.1", to());
        let _right = Sender::start("right", Form::Rtp, "198.51.100.1", to());
        let _six = Sender::start("six", Form::Rtp, "2001:db8:1::1", "[ff15::1]:5000".to_owned());
        let _other = Sender::start("other", Form::Udp, "2001:db8:2::1", "[ff15::1]:5000".to_owned());
        // Two senders of one group of IPv6 on one interface.
        ip(&["-6", "address", "add", "2001:db8:1::2/64", "dev", "mc0", "nodad"]);
        let of_senders = || "[ff35::1]:5002".to_owned();
        let _chosen = Sender::start("chosen", Form::Rtp, "2001:db8:1::1", of_senders());
        let _foreign = Sender::start("foreign", Form::Rtp, "2001:db8:1::2", of_senders());
        let _here = Sender::start("here", Form::Udp, "127.0.0.1", "127.0.0.1:5001".to_owned());
        let entries = [
            ("default", "udp://@232.1.1.1:5000", "left"),
            ("name", "rtp://@232.1.1.1:5000?iface=mc1", "right"),
            ("address", "udp://232.1.1.1:5000?localaddr=198.51.100.1", "right"),
            ("source", "udp://192.0.2.1@232.1.1.1:5000", "left"),
            ("sources", "rtp://232.1.1.1:5000?sources=203.0.113.1,198.51.100.1&iface=mc1", "right"),
            ("zone", "udp://@[ff15::1%25mc1]:5000", "other"),
            ("six", "rtp://@[ff15::1]:5000?iface=mc0&pkt_size=1316", "six"),
            ("six source", "rtp://[2001:db8:1::1]@[ff35::1]:5002?iface=mc0", "chosen"),
            ("six sources", "rtp://[ff35::1%25mc0]:5002?sources=2001:db8::9,2001:db8:1::2", "foreign"),
            ("unicast", "udp://@:5001", "here"),
        ];
        let urls: Vec<_> = entries.iter().map(|it| (it.0, it.1)).collect();
        let gateway = TestGateway::with_list(&list(&urls)).await;
        for (name, url, label) in entries {
            let player = gateway.watch(name).await;
            player.sees(label).await;
            player.more_bytes(100_000).await;
            let seen = player.recording();
            let labels = ["left", "right", "six", "other", "chosen", "foreign", "here"];
            for other in labels.into_iter().filter(|it| *it != label) {
                let marker = format!("<<{other}>>");
                assert!(!seen.windows(marker.len()).any(|it| it == marker.as_bytes()), "{url} has {other}");
            }
            player.leave().await;
            gateway.until_idle().await;
        }
        // The interface of the configuration is for addresses that name none.
        let setup = Setup::new().list(&list(&[("default", "udp://@232.1.1.1:5000")]));
        let gateway = setup.engine(|it| it.multicast_interface = Some("mc1".to_owned())).start().await;
        let player = gateway.watch("default").await;
        player.sees("right").await;
    });
}

#[test]
fn a_silent_group_fails_over_to_another_stream() {
    if !is_inside("a_silent_group_fails_over_to_another_stream") {
        return;
    }
    run(async {
        let sender = Sender::start("group", Form::Rtp, "192.0.2.1", "239.1.1.1:5000".to_owned());
        let provider = Provider::start();
        provider.path("/second.ts").plays(Picture::new("second").pids(0x20, 0x41, 0x42));
        let second = provider.url("/second.ts");
        let entries = format!(
            "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\nrtp://@239.1.1.1:5000\n#EXTINF:-1 tvg-id=\"news\",News backup\n{second}\n"
        );
        let gateway = TestGateway::with_list(&entries).await;
        let player = gateway.watch("News").await;
        player.sees("group").await;
        drop(sender);
        player.sees("second").await;
        assert!(!groups().contains("010101EF"), "the silent group is left: {}", groups());
        player.leave().await;
        gateway.until_idle().await;
    });
}

/// Returns the status of the only live channel.
async fn live(admin: &Api) -> Option<Value> {
    let status = admin.get("/proxy/ts/status").await.body;
    status["channels"].as_array()?.first().cloned()
}

#[test]
fn a_channel_is_sent_as_datagrams_always_or_while_it_is_watched() {
    if !is_inside("a_channel_is_sent_as_datagrams_always_or_while_it_is_watched") {
        return;
    }
    run(async {
        let provider = Provider::start();
        provider.path("/live.ts").plays(Picture::new("news"));
        let gateway =
            Setup::new().limited_list(&list(&[("News", &provider.url("/live.ts"))]), 1).start().await;
        let admin = Api::first_admin(&gateway).await;
        let path = format!("/api/channels/channels/{}/", gateway.channel("News").id);
        assert_eq!(admin.get(&path).await.body["udp_output"], Value::Null);
        for (output, message) in [
            (json!({ "address": "http://239.1.1.1:5000" }), "udp://"),
            (json!({ "address": "udp://tv.example:5000" }), "IP address"),
            (json!({ "address": "udp://239.1.1.1" }), "port"),
            (json!({ "address": "udp://239.1.1.1:5000", "interface": "a b" }), "interface"),
            (json!({ "address": "udp://239.1.1.1:5000", "ttl": 256 }), "255"),
            (json!({ "address": "udp://239.1.1.1:5000", "mode": "never" }), "choice"),
            (json!({}), "required"),
        ] {
            let refused = admin.patch(&path, json!({ "udp_output": output })).await;
            let errors = refused.body["udp_output"].to_string();
            assert!(refused.status == 400 && errors.contains(message), "{output}: {refused:?}");
        }
        // A set-top box that receives RTP, and one that receives plain datagrams.
        let plain = receiver("239.1.1.1:5000");
        let output = json!({ "address": "udp://239.1.1.1:5000", "interface": "mc0", "mode": "watched" });
        let set = admin.patch(&path, json!({ "udp_output": output })).await;
        let shown =
            json!({ "address": "udp://239.1.1.1:5000", "interface": "mc0", "ttl": 1, "mode": "watched" });
        assert_eq!((set.status, &set.body["udp_output"]), (200, &shown));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(provider.requests().is_empty(), "nobody watches");
        let player = gateway.watch("News").await;
        player.sees("news").await;
        assert_eq!(received(&plain, 200), "news");
        let clients = live(&admin).await.unwrap()["clients"].clone();
        let client = clients.as_array().unwrap().iter().find(|it| it["output_format"] == "udp").cloned();
        assert_eq!(client.expect("the output is a client")["ip_address"], "239.1.1.1");
        player.leave().await;
        gateway.until_idle().await;

        let rtp = receiver("239.1.1.2:5004");
        let output = json!({ "address": "rtp://239.1.1.2:5004", "interface": "192.0.2.1", "ttl": 3 });
        assert_eq!(admin.patch(&path, json!({ "udp_output": output })).await.status, 200);
        assert_eq!(received(&rtp, 200), "news");
        until_async("the output in the status", async || {
            live(&admin).await.is_some_and(|it| it["clients"][0]["output_format"] == "rtp")
        })
        .await;
        assert_eq!(provider.requests().len(), 2);
        // Without one, nothing is sent and the channel ends.
        assert_eq!(admin.patch(&path, json!({ "udp_output": null })).await.status, 200);
        gateway.until_idle().await;
    });
}

/// Returns a socket that has joined a group on the first interface.
fn receiver(group: &str) -> UdpSocket {
    let address: SocketAddr = group.parse().unwrap();
    let socket = UdpSocket::bind(address).unwrap();
    let IpAddr::V4(group) = address.ip() else { panic!("{group}") };
    socket.join_multicast_v4(&group, &"192.0.2.1".parse().unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// Reads datagrams, and checks their form and that they are spread over time. Returns the label of the stream.
fn received(socket: &UdpSocket, n: usize) -> String {
    let is_rtp = socket.local_addr().unwrap().port() == 5004;
    let (mut buffer, mut next, mut all, mut times) = ([0; 2048], None, Vec::new(), Vec::new());
    for _ in 0..n {
        let length = socket.recv(&mut buffer).expect("datagrams");
        times.push(Instant::now());
        let payload = match is_rtp {
            false => &buffer[..length],
            true => {
                let (header, payload) = RtpHeader::parse_ts(&buffer[..length]).expect("RTP");
                assert_eq!((header.payload_type, length - payload.len()), (33, 12));
                assert_eq!(header.sequence, next.unwrap_or(header.sequence), "in order");
                next = Some(header.sequence.wrapping_add(1));
                payload
            }
        };
        assert!(payload.len() <= DATAGRAM && payload.len().is_multiple_of(188), "{}", payload.len());
        assert!(payload.chunks(188).all(|it| it[0] == 0x47));
        all.extend_from_slice(payload);
    }
    // A megabit per second: 200 datagrams take two seconds.
    let span = times[n - 1] - times[0];
    assert!(span > Duration::from_secs(1), "{n} datagrams in {span:?}");
    let at = memchr::memmem::find(&all, b"<<").expect("a label");
    let end = memchr::memmem::find(&all[at..], b">>").expect("a label");
    String::from_utf8_lossy(&all[at + 2..at + end]).into_owned()
}

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str], folder: &std::path::Path) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("this test needs {program}: just tools ({error})")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

mod slow {
    use super::*;

    /// Writes half a minute of a clip that decodes.
    async fn clip(folder: &std::path::Path) -> String {
        let path = folder.join("clip.ts").display().to_string();
        let arguments = "-hide_banner -loglevel error -y -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i \
                         sine=frequency=440:sample_rate=48000 -t 30 -c:v libx264 -preset ultrafast -g 25 -pix_fmt \
                         yuv420p -b:v 600k -c:a aac -f mpegts";
        let mut arguments: Vec<_> = arguments.split_whitespace().collect();
        arguments.push(&path);
        tools::text_of("ffmpeg", &arguments).await;
        path
    }

    #[test]
    fn ffmpeg_sends_and_ffprobe_receives_datagrams_through_a_channel() {
        if !is_inside("slow::ffmpeg_sends_and_ffprobe_receives_datagrams_through_a_channel") {
            return;
        }
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let clip = clip(folder.path()).await;
            for (output, from, to) in [
                ("mpegts", "udp://239.1.1.1:5000?localaddr=192.0.2.1&pkt_size=1316", "udp://239.1.1.9:5002"),
                ("rtp_mpegts", "rtp://239.1.1.1:5000?localaddr=192.0.2.1", "rtp://239.1.1.9:5004"),
            ] {
                let arguments = [
                    "-loglevel",
                    "error",
                    "-re",
                    "-stream_loop",
                    "-1",
                    "-i",
                    &clip,
                    "-c",
                    "copy",
                    "-f",
                    output,
                    from,
                ];
                let _sender = Running::start("ffmpeg", &arguments, folder.path());
                let gateway = TestGateway::with_list(&list(&[("News", "udp://@239.1.1.1:5000")])).await;
                let admin = Api::first_admin(&gateway).await;
                let path = format!("/api/channels/channels/{}/", gateway.channel("News").id);
                let sent =
                    admin.patch(&path, json!({ "udp_output": { "address": to, "interface": "mc0" } })).await;
                assert_eq!(sent.status, 200, "{sent:?}");
                let probe = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"];
                let url = format!("{to}?localaddr=192.0.2.1&timeout=20000000");
                let found = tools::text_of("ffprobe", &[&probe[..], &[&url]].concat()).await;
                assert!(found.contains("h264") && found.contains("aac"), "{to}: {found}");
                // Some seconds arrive without a gap.
                let decode = ["-v", "warning", "-i", &url, "-t", "5", "-f", "null", "-"];
                let decoded = tools::run("ffmpeg", &decode).await;
                let errors = String::from_utf8_lossy(&decoded.stderr).into_owned();
                assert!(decoded.status.success() && !errors.contains("Packet corrupt"), "{to}: {errors}");
                drop(gateway);
            }
        });
    }

    #[test]
    fn srt_rtmp_and_rtsp_of_real_servers_play_through_ffmpeg() {
        if !is_inside("slow::srt_rtmp_and_rtsp_of_real_servers_play_through_ffmpeg") {
            return;
        }
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let clip = clip(folder.path()).await;
            let send = |output: &str, extra: &[&str], url: &str| {
                let input = ["-loglevel", "error", "-re", "-stream_loop", "-1", "-i", &clip, "-c", "copy"];
                let arguments = [&input[..], extra, &["-f", output, url]].concat();
                Running::start("ffmpeg", &arguments, folder.path())
            };
            let srt = send("mpegts", &[], "srt://127.0.0.1:9001?mode=listener");
            let rtmp =
                send("flv", &["-bsf:a", "aac_adtstoasc", "-listen", "1"], "rtmp://127.0.0.1:9002/live/news");
            let film = folder.path().join("clip.mp4").display().to_string();
            let copy = ["-loglevel", "error", "-i", &clip, "-c:v", "copy", "-an", &film];
            tools::text_of("ffmpeg", &copy).await;
            let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rtsp_server.py");
            // Debian installs GStreamer for its own Python only.
            let rtsp = Running::start("/usr/bin/python3", &[server, "8554", &film], folder.path());
            let gateway = TestGateway::with_list(&list(&[
                ("srt", "srt://127.0.0.1:9001"),
                ("rtmp", "rtmp://127.0.0.1:9002/live/news"),
                ("rtsp", "rtsp://127.0.0.1:8554/news"),
            ]))
            .await;
            for name in ["srt", "rtmp", "rtsp"] {
                // A server may still be starting.
                until_async("a stream of a real server", async || {
                    let player = Player::ask(gateway.address, gateway.get(name)).await;
                    player.status().await == 200 && {
                        player.more_bytes(200_000).await;
                        let recording = tools::saved(&player.recording());
                        let probe = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"];
                        let path = recording.path().display().to_string();
                        let found = tools::text_of("ffprobe", &[&probe[..], &[&path]].concat()).await;
                        found.contains("h264")
                    }
                })
                .await;
                eventually("the end of the channel", || gateway.gateway.system().counts().channels == 0)
                    .await;
            }
            drop((srt, rtmp, rtsp));
        });
    }
}
