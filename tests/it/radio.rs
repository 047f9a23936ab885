//! Radio stations: audio without a container, with titles, on a real socket.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::hls_output::{Watching, open};
use crate::support::api::Api;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::{tools, until_async};

const APPLE: &str = "AppleCoreMedia/1.0.0.21E219 (iPhone; U; CPU OS 17_4 like Mac OS X; en_us)";
const TITLE: &str = "Björk - It's Oh So Quiet";
/// Bytes between two titles.
const INTERVAL: usize = 4_096;
/// Length of the sound of a station.
const SECONDS: usize = 40;

/// A station of the server.
#[derive(Clone)]
struct Station {
    /// The head of the response, without its empty line.
    head: &'static str,
    /// It sends titles if they are asked for.
    has_titles: bool,
    sound: Arc<Vec<u8>>,
}

/// A server of stations.
struct Stations {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// Path, and whether titles were asked for.
    requests: Vec<(String, bool)>,
    n_open: BTreeMap<String, usize>,
    peak: usize,
}

impl Stations {
    async fn start(stations: BTreeMap<&'static str, Station>) -> Stations {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let of_task = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, stations.clone(), Arc::clone(&of_task)));
            }
        });
        Stations { address, seen, _task: AbortOnDropHandle::new(task) }
    }

    fn list(&self, names: &[&str]) -> String {
        let entry = |it: &&str| format!("#EXTINF:-1 tvg-id=\"{it}\",{it}\nhttp://{}/{it}\n", self.address);
        format!("#EXTM3U\n{}", names.iter().map(entry).collect::<String>())
    }

    /// Returns whether each request for a station asked for titles.
    fn asked(&self, name: &str) -> Vec<bool> {
        let seen = self.seen.lock();
        seen.requests.iter().filter(|it| it.0 == name).map(|it| it.1).collect()
    }
}

async fn serve(mut socket: TcpStream, stations: BTreeMap<&'static str, Station>, seen: Arc<Mutex<Seen>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = socket.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let path = head.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
    let is_asked = head.contains("icy-metadata: 1");
    let station = stations.iter().find(|it| it.0.eq_ignore_ascii_case(&path));
    let Some((name, station)) = station.map(|(name, it)| ((*name).to_owned(), it.clone())) else { return };
    {
        let mut seen = seen.lock();
        seen.requests.push((name.clone(), is_asked));
        let n_open = seen.n_open.entry(name.clone()).or_default();
        *n_open += 1;
        seen.peak = seen.peak.max(seen.n_open[&name]);
    }
    let (mut reader, mut writer) = socket.split();
    tokio::select! {
        // The client has left.
        _ = reader.read_u8() => {}
        _ = send(&mut writer, &station, is_asked && station.has_titles) => {}
    }
    *seen.lock().n_open.get_mut(&name).unwrap() -= 1;
}

/// Sends a burst of two seconds, and the rest at its rate.
async fn send(
    out: &mut (impl AsyncWriteExt + Unpin),
    station: &Station,
    has_titles: bool,
) -> std::io::Result<()> {
    let line = if has_titles { format!("icy-metaint: {INTERVAL}\r\n") } else { String::new() };
    out.write_all(format!("{}{line}\r\n", station.head).as_bytes()).await?;
    let began = Instant::now();
    let rate = station.sound.len() / SECONDS;
    for (index, piece) in station.sound.chunks(INTERVAL).enumerate() {
        let at = Duration::from_secs_f64((index * INTERVAL) as f64 / rate as f64);
        sleep_until(began + at.saturating_sub(Duration::from_secs(2))).await;
        out.write_all(piece).await?;
        if has_titles {
            let mut block =
                if index == 0 { format!("StreamTitle='{TITLE}';") } else { String::new() }.into_bytes();
            block.resize(block.len().next_multiple_of(16), 0);
            block.insert(0, (block.len() / 16) as u8);
            out.write_all(&block).await?;
        }
    }
    std::future::pending().await
}

/// Makes a sound with ffmpeg.
async fn sound(name: &str, output: &[&str]) -> Arc<Vec<u8>> {
    let path = tools::clips().join(format!("radio-{name}"));
    if !path.exists() {
        let made = path.with_extension(format!("made-{}", std::process::id()));
        let (length, made_name) = (SECONDS.to_string(), made.display().to_string());
        let input = ["-v", "error", "-y", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100"];
        let arguments = [&input[..], &["-t", &length], output, &[&made_name]].concat();
        let run = tools::run("ffmpeg", &arguments).await;
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        std::fs::rename(&made, &path).unwrap();
    }
    Arc::new(std::fs::read(&path).unwrap())
}

/// Watches a channel as a transport stream. Returns codec and rate of its streams.
async fn probed(gateway: &TestGateway, channel: &str) -> String {
    let viewer = gateway.watch(channel).await;
    viewer.more_bytes(60_000).await;
    let file = tools::saved(&viewer.recording());
    viewer.leave().await;
    let path = file.path().display().to_string();
    let shown = ["-v", "error", "-show_entries", "stream=codec_name,sample_rate", "-of", "csv=p=0", &path];
    let text = tools::text_of("ffprobe", &shown).await;
    text.lines().next().unwrap_or_default().trim_matches(',').to_owned()
}

async fn title(api: &Api, gateway: &TestGateway, channel: &str) -> Option<String> {
    let status = api.get(&format!("/proxy/ts/status/{}", gateway.channel(channel).uuid)).await;
    status.body["title"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_radio_station_plays_in_every_form_and_shows_its_title() {
    let mp3 = sound("44.mp3", &["-c:a", "libmp3lame", "-b:a", "128k", "-f", "mp3"]).await;
    let slow = sound("22.mp3", &["-c:a", "libmp3lame", "-ar", "22050", "-b:a", "64k", "-f", "mp3"]).await;
    let aac = sound("44.aac", &["-c:a", "aac", "-b:a", "96k", "-f", "adts"]).await;
    let core = sound("24.aac", &["-c:a", "aac", "-ar", "24000", "-b:a", "48k", "-f", "adts"]).await;
    let station =
        |head, has_titles, sound: &Arc<Vec<u8>>| Station { head, has_titles, sound: Arc::clone(sound) };
    let icecast = "HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: Radio\r\nicy-br: 128\r\n";
    let stations = Stations::start(BTreeMap::from([
        ("mp3", station(icecast, true, &mp3)),
        ("slow", station("ICY 200 OK\r\nicy-name:Radio\r\ncontent-type:audio/mpeg\r\n", true, &slow)),
        ("aac", station("HTTP/1.1 200 OK\r\nContent-Type: audio/aac\r\n", false, &aac)),
        ("core", station("HTTP/1.0 200 OK\r\nContent-Type: audio/aacp\r\nicy-br: 48\r\n", true, &core)),
    ]))
    .await;
    let gateway = Setup::new().list(&stations.list(&["mp3", "slow", "aac", "core"])).start().await;
    for (name, expected) in
        [("mp3", "mp3,44100"), ("slow", "mp3,22050"), ("aac", "aac,44100"), ("core", "aac,24000")]
    {
        assert_eq!(probed(&gateway, name).await, expected, "{name}");
    }
    assert_eq!(stations.asked("mp3"), [false, true]);
    assert_eq!(stations.asked("aac"), [false], "a station that does not speak ICY is not asked");
    assert_eq!(stations.seen.lock().peak, 1, "one socket at a time");

    let api = Api::first_admin(&gateway).await;
    let viewer = gateway.watch("slow").await;
    until_async("the title", async || title(&api, &gateway, "slow").await.as_deref() == Some(TITLE)).await;
    viewer.leave().await;

    // A phone gets transport streams with the sound as it is.
    let master = Watching::master(&gateway, &open(&gateway, "mp3"), APPLE).await.text();
    assert!(master.contains("CODECS=\"mp4a.40.34\"") && !master.contains("RESOLUTION"), "{master}");
    let watching = Watching::begin(&gateway, &open(&gateway, "mp3"), APPLE).await;
    let playlist = watching.playlist().await;
    assert!(!playlist.contains("EXT-X-MAP"), "{playlist}");
    let segment = playlist.lines().find(|it| !it.starts_with('#')).unwrap();
    let bytes = watching.fetch(segment).await.bytes;
    assert_eq!((bytes.len() % 188, bytes[0]), (0, 0x47), "{segment}");
}

/// These convert with ffmpeg.
mod slow {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ogg_and_flac_are_converted_on_the_one_connection_of_the_channel() {
        let vorbis = sound("vorbis.ogg", &["-c:a", "libvorbis", "-f", "ogg"]).await;
        let opus = sound("opus.ogg", &["-c:a", "libopus", "-b:a", "96k", "-f", "ogg"]).await;
        let flac = sound("sound.flac", &["-c:a", "flac", "-f", "flac"]).await;
        let station =
            |head, sound: &Arc<Vec<u8>>| Station { head, has_titles: false, sound: Arc::clone(sound) };
        let ogg = "HTTP/1.0 200 OK\r\nContent-Type: application/ogg\r\nicy-name: Radio\r\n";
        let stations = Stations::start(BTreeMap::from([
            ("vorbis", station(ogg, &vorbis)),
            ("opus", station(ogg, &opus)),
            ("flac", station("HTTP/1.0 200 OK\r\nContent-Type: audio/flac\r\n", &flac)),
        ]))
        .await;
        let gateway = Setup::new().list(&stations.list(&["vorbis", "opus", "flac"])).start().await;
        for (name, expected) in [("vorbis", "aac,44100"), ("opus", "aac,48000"), ("flac", "aac,44100")] {
            assert_eq!(probed(&gateway, name).await, expected, "{name}");
            assert!(stations.asked(name).iter().all(|asks_titles| !asks_titles), "{name}");
        }
        assert_eq!(stations.seen.lock().peak, 1, "the program has no connection of its own");
        gateway.until_idle().await;
    }
}
