//! A guide of any size, and its refreshes over the interface.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::test_support::api::Api;

const CHANNELS: u64 = 2_000;
const DAYS: i64 = 14;
const DAY: i64 = 86_400;
/// Stands for the number of the channel, with as many digits.
const CHANNEL: &str = "@@@@";

/// Serves a guide in XMLTV, whose titles contain the number of the version, and returns its address. The text is made when
/// it is requested, so that it is in no memory; a channel of it is a copy of the first one with another number.
pub fn serve(n_programmes: u64, version: Arc<AtomicU64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/guide.xml", listener.local_addr().expect("an address"));
    let begin = (actors::now_ms() / 1000).div_euclid(DAY) * DAY;
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            let mut lines = BufReader::new(socket.try_clone().expect("a handle")).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|it| !it.is_empty())) {}
            let mut out = BufWriter::with_capacity(1 << 16, socket);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n<tv>\n";
            out.write_all(head.as_bytes()).expect("the client reads");
            let channel = channel(n_programmes / CHANNELS, begin, version.load(Ordering::SeqCst));
            for number in 0..CHANNELS {
                let text = channel.replace(CHANNEL, &format!("{number:04}"));
                out.write_all(text.as_bytes()).expect("the client reads");
            }
            out.write_all(b"</tv>\n").and_then(|()| out.flush()).expect("the client reads");
        }
    });
    url
}

/// Returns the programmes of one channel, about 150 bytes each.
fn channel(n_programmes: u64, begin: i64, version: u64) -> String {
    let mut text =
        format!("<channel id=\"c{CHANNEL}\"><display-name>Channel {CHANNEL}</display-name></channel>\n");
    let duration = DAYS * DAY / n_programmes.max(1) as i64;
    let time = |seconds| {
        let time = jiff::Timestamp::from_second(seconds).expect("a time of today");
        time.strftime("%Y%m%d%H%M%S +0000").to_string()
    };
    for number in 0..n_programmes {
        let start = begin + number as i64 * duration;
        let [start, stop] = [start, start + duration].map(time);
        writeln!(
            text,
            "<programme start=\"{start}\" stop=\"{stop}\" channel=\"c{CHANNEL}\"><title>Word{} of {version}</title>\
             <desc>About word{} and word{}.</desc></programme>",
            number * 7 % 1_999,
            number * 31 % 19_997,
            number * 127 % 7_919,
        )
        .expect("writing to a String succeeds");
    }
    text
}

/// Creates a source with the guide, waits for its refresh, and returns its id.
pub async fn import(admin: &Api, url: &str, n_programmes: u64) -> u64 {
    let body = json!({ "name": "Guide", "source_type": "xmltv", "url": url });
    let made = admin.post("/api/epg/sources/", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].as_u64().expect("a source has an id");
    over(admin, id, &made.body["updated_at"], n_programmes).await;
    id
}

/// Refreshes the source and waits for the end.
pub async fn refresh(admin: &Api, source: u64, n_programmes: u64) {
    let before = admin.get(&path(source)).await.body["updated_at"].clone();
    let begun = admin.post("/api/epg/import/", json!({ "id": source })).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    over(admin, source, &before, n_programmes).await;
}

fn path(source: u64) -> String {
    format!("/api/epg/sources/{source}/")
}

/// Waits until a refresh has ended after this time.
async fn over(admin: &Api, source: u64, before: &Value, n_programmes: u64) {
    loop {
        let seen = admin.get(&path(source)).await.body;
        assert_ne!(seen["status"], "error", "{seen}");
        if seen["status"] == "success" && seen["updated_at"] != *before {
            // Those of the past may be left out or kept.
            let n_found = seen["program_count"].as_u64().unwrap_or_default();
            assert!(n_found >= n_programmes / 2, "{seen}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
