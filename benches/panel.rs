//! How long does the import of a large panel account take, and how much memory?
//!
//! A panel on this machine lists 100,000 live streams in 400 categories. They are imported into a new store, and then
//! again without a change. The process contains only the store, its views and the import, so the peak memory is theirs.
//!
//! `cargo bench --bench panel -- [--streams 100000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/importing.rs"]
mod importing;
#[path = "support/memory.rs"]
mod memory;
#[expect(dead_code, reason = "this bench computes no percentiles")]
mod support;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{TcpListener, TcpStream};

use domain::account::PlaylistLocation;
use domain::panel::PanelLogin;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use serde_json::{Value, json};

use self::importing::{Importing, option};

const CATEGORIES: u64 = 400;

fn main() {
    let streams = option("--streams", 100_000);
    let login = PanelLogin {
        server: SourceUrl::new(serve(streams)),
        username: "user".to_owned(),
        password: Secret::new("password"),
    };
    let importing = Importing::new(PlaylistLocation::Panel(login));
    let (first, new) = importing.run("new");
    assert_eq!((first.n_new, first.n_changed), (streams, 0));
    let (second, same) = importing.run("without a change");
    assert_eq!((second.n_new, second.n_changed), (0, 0));
    support::record("panel", json!({ "streams": streams, "new": new, "without_a_change": same }));
}

/// Serves a panel with this many streams, generated on the fly, and returns its address.
fn serve(streams: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            answer(socket.expect("a connection"), streams);
        }
    });
    url
}

fn answer(socket: TcpStream, streams: u64) {
    let mut lines = BufReader::new(socket.try_clone().expect("a handle")).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().is_some_and(|line| line.is_ok_and(|it| !it.is_empty())) {}
    let mut out = BufWriter::with_capacity(1 << 16, socket);
    let mut send = |text: &str| out.write_all(text.as_bytes()).expect("the client reads");
    send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
    if request.contains("get_live_categories") {
        let category =
            |id: u64| json!({ "category_id": id.to_string(), "category_name": format!("Group {id}") });
        send(&Value::from((1..=CATEGORIES).map(category).collect::<Vec<_>>()).to_string());
    } else if request.contains("get_live_streams") {
        let mut text = String::new();
        for id in 1..=streams {
            text.clear();
            text.push(if id == 1 { '[' } else { ',' });
            stream(&mut text, id);
            send(&text);
        }
        send("]");
    } else {
        send(&json!({ "user_info": { "auth": 1, "status": "Active", "exp_date": null } }).to_string());
    }
    out.flush().expect("the client reads");
}

fn stream(text: &mut String, id: u64) {
    let category = id % CATEGORIES + 1;
    write!(
        text,
        "{{\"num\":{id},\"name\":\"Channel {id} HD\",\"stream_type\":\"live\",\"stream_id\":{id},\
         \"stream_icon\":\"http:\\/\\/logos.example\\/{id}.png\",\"epg_channel_id\":\"channel{id}.example\",\
         \"added\":\"1600000000\",\"is_adult\":\"0\",\"category_id\":\"{category}\",\"category_ids\":[{category}],\
         \"custom_sid\":\"\",\"tv_archive\":0,\"direct_source\":\"\",\"tv_archive_duration\":0}}"
    )
    .expect("writing to a String succeeds");
}
