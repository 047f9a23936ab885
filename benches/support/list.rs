//! A provider's playlist of any size.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Serves the playlist, generated on the fly, and returns its URL. One entry in `changed_every` has another name; none
/// at `u64::MAX`. At 0, all entries have another address.
pub(crate) fn serve(entries: u64, changed_every: Arc<AtomicU64>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/list.m3u", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            let mut lines = BufReader::new(socket.try_clone().expect("a handle")).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|it| !it.is_empty())) {}
            let every = changed_every.load(Ordering::SeqCst);
            let mut out = BufWriter::with_capacity(1 << 16, socket);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: audio/x-mpegurl\r\nConnection: close\r\n\r\n#EXTM3U\n";
            let mut text = head.to_owned();
            for number in 0..entries {
                entry(&mut text, number, every != 0 && every != u64::MAX && number.is_multiple_of(every));
                if every == 0 {
                    text = text.replace("provider.example:8080/live/user/password", "cdn.example/token0815");
                }
                out.write_all(text.as_bytes()).expect("the client reads");
                text.clear();
            }
            out.flush().expect("the client reads");
        }
    });
    url
}

/// Appends an entry: two lines, and a third one for one entry in eight; one name in sixteen is not ASCII.
pub(crate) fn entry(text: &mut String, number: u64, is_changed: bool) {
    let group = number / 250;
    let name = if number.is_multiple_of(16) { "Télévision" } else { "Channel" };
    let mark = if is_changed { " NEW" } else { "" };
    writeln!(
        text,
        "#EXTINF:-1 tvg-id=\"{name}{number}.example\" tvg-name=\"{name} {number} HD\" \
         tvg-logo=\"http://logos.example/images/{number}.png\" group-title=\"Group {group}, all\",{name} {number} HD{mark}"
    )
    .expect("writing to a String succeeds");
    if number.is_multiple_of(8) {
        text.push_str("#EXTVLCOPT:http-user-agent=Example/1.0\n");
    }
    writeln!(text, "http://provider.example:8080/live/user/password/{number}.ts")
        .expect("writing to a String succeeds");
}
