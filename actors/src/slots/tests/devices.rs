//! Tests of the number of tuners that a device states.

use domain::egress::{AllowedNetworks, Distance, Reach};
use domain::plan::Candidate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::advance;

use super::*;
use crate::fetch::{Fetch, FetchLimits};
use crate::slots::device_question::DeviceQuestion;
use crate::slots::devices::answer_questions;
use crate::testing::{self, models, stream};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the pool of a device: a host without a login and without a configured limit.
fn device() -> SlotPool {
    SlotPool { scope: LimitScope::Host(1), ..pool(1, 0) }
}

/// Returns a candidate with this pool and address.
fn candidate(pool: SlotPool, url: &str) -> Candidate {
    Candidate { pool, ..testing::candidate(&stream(1, "News"), url) }
}

/// Opens a connection of a candidate; the device says that all its tuners are in use.
async fn full_now(holder: &mut Holder, candidate: &Candidate) {
    holder.ask_for(1, vec![SlotCandidate::new(0, candidate)], join());
    let (_, lease) = holder.granted().await;
    let id = lease.id();
    // The socket is closed before the refusal is handled.
    drop(lease);
    holder.slots.full_now(id, &candidate.pool);
}

#[tokio::test(start_paused = true)]
async fn a_zap_gets_the_last_tuner_that_a_device_states_before_it_is_refused() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    let _watched = playing(&mut c, &device()).await;
    let lease = playing(&mut a, &device()).await;
    fixture.table.tuners_stated(&device(), 2);
    let snapshot = fixture.table.snapshot();
    assert_eq!(
        (snapshot.stated_limit(ProfileId(1), 0), snapshot.discovered_limit(ProfileId(1), 0)),
        (Some(2), None)
    );
    assert_eq!(snapshot.stated_limit(ProfileId(1), 1), None, "the account was changed");
    b.ask(2, &[device()], join());
    fixture.slots.kept(3, c.asked_to_yield().await);
    a.asked_to_yield().await;
    assert!(b.messages.try_recv().is_err(), "granted beyond the number of tuners");
    drop(lease);
    let _granted = b.granted().await;
    // Another host and another login have tuners of their own.
    a.ask(2, &[SlotPool { scope: LimitScope::Host(2), ..device() }], join());
    let _other = a.granted().await;
}

#[tokio::test(start_paused = true)]
async fn stated_tuners_are_believed_for_a_day_and_until_the_device_carries_more() {
    let fixture = SlotsFixture::new().await;
    let (mut a, mut b, mut c) = (fixture.holder(1).await, fixture.holder(2).await, fixture.holder(3).await);
    let stated = || fixture.table.snapshot().stated_limit(ProfileId(1), 0);
    let _watched = playing(&mut a, &device()).await;
    fixture.table.tuners_stated(&device(), 1);
    // One viewer at a time who waited in vain finds out whether it is true.
    let asked_at = Instant::now();
    b.ask(1, &[device()], join());
    c.ask(1, &[device()], join());
    let (_, mut lease) = b.granted().await;
    assert_eq!(asked_at.elapsed(), domain::settings::TOLD_WAIT);
    let full = c.full().await;
    assert!(full.is_told);
    assert_eq!(
        full.to_string(),
        "all tuners of the device of account \"account 1\" are in use (1 by this gateway)"
    );
    assert_eq!(stated(), Some(1));
    lease.delivers();
    assert_eq!(stated(), None);
    c.ask(2, &[device()], join());
    let _third = c.granted().await;

    let other = SlotPool { scope: LimitScope::Host(2), ..device() };
    fixture.table.tuners_stated(&other, 4);
    advance(24 * HOUR - MINUTE).await;
    assert_eq!(stated(), Some(4));
    advance(MINUTE).await;
    assert_eq!(stated(), None);
}

#[tokio::test(start_paused = true)]
async fn a_full_device_is_asked_for_its_tuners_once_a_day_and_after_an_hour_without_an_answer() {
    let fixture = SlotsFixture::new().await;
    let mut questions = fixture.table.device_questions();
    let mut n_asked = || {
        let mut n_asked = 0;
        while let Ok(DeviceQuestion { pool, .. }) = questions.try_recv() {
            assert_eq!(pool.scope, LimitScope::Host(1));
            n_asked += 1;
        }
        n_asked
    };
    let mut a = fixture.holder(1).await;
    let full = candidate(device(), "http://10.0.0.9:5004/auto/v5");
    for (step, expected) in [(Duration::ZERO, 1), (MINUTE, 0), (58 * MINUTE, 0), (MINUTE, 1), (MINUTE, 0)] {
        advance(step).await;
        full_now(&mut a, &full).await;
        assert_eq!(n_asked(), expected, "{step:?}");
    }
    fixture.table.tuners_stated(&device(), 2);
    for (step, expected) in [(2 * HOUR, 0), (22 * HOUR - MINUTE, 0), (MINUTE, 1)] {
        advance(step).await;
        full_now(&mut a, &full).await;
        assert_eq!(n_asked(), expected, "{step:?}");
    }
    // A login is not that of a device, a configured limit needs no question, and other kinds of sources describe nothing.
    advance(48 * HOUR).await;
    for other in [
        candidate(SlotPool { scope: LimitScope::Login(1), ..device() }, "http://10.0.0.9:5004/auto/v5"),
        candidate(SlotPool { max_streams: 5, ..device() }, "http://10.0.0.9:5004/auto/v5"),
        candidate(SlotPool { scope: LimitScope::Host(3), ..device() }, "rtsp://10.0.0.9/v5"),
    ] {
        full_now(&mut a, &other).await;
        assert_eq!(n_asked(), 0, "{:?}", other.pool);
    }
}

/// A server that answers every request in the same way, and counts them.
async fn server(status: &'static str, body: &'static str) -> (u16, Arc<parking_lot::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = requests.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            seen.lock().push(String::from_utf8(head).unwrap().to_ascii_lowercase());
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (port, requests)
}

#[tokio::test]
async fn a_device_states_its_tuners_on_another_port_than_it_streams_from() {
    let description = r#"{"FriendlyName":"Attic","DeviceID":"1013A1B5","TunerCount":"3"}"#;
    let (streams, asked_first) = server("503 Full\r\nX-HDHomeRun-Error: 805 All Tuners In Use", "no").await;
    let (describes, asked_last) = server("200 OK", description).await;
    let fixture = SlotsFixture::new().await;
    // Fails in the second test of a process, which finds the provider of the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let fetch = Fetch::new(FetchLimits::default()).unwrap();
    let questions = fixture.table.device_questions();
    let asking = answer_questions(fixture.table.clone(), questions, models(&[]), fetch, describes);
    let _asking = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(asking));

    let mut a = fixture.holder(1).await;
    let url = format!("http://127.0.0.1:{streams}/auto/v5?secret=s3cret");
    let mut full = candidate(device(), &url);
    full.headers.user_agent = Some("Attic/1".to_owned());
    assert!(full.headers.set("X-Token", "s3cret"));
    // A public list does not lead into the network of the gateway, not even to a question.
    let public = Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist);
    let elsewhere = SlotPool { scope: LimitScope::Host(2), ..device() };
    full_now(&mut a, &Candidate { reach: public, pool: elsewhere, ..full.clone() }).await;
    full_now(&mut a, &full).await;
    while fixture.table.snapshot().stated_limit(ProfileId(1), 0) != Some(3) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for requests in [asked_first, asked_last] {
        let requests = requests.lock();
        let [request] = &requests[..] else { panic!("expected one request, got {requests:?}") };
        assert!(request.starts_with("get /discover.json http/1.1\r\n"), "{request}");
        assert!(request.contains("user-agent: attic/1") && !request.contains("s3cret"), "{request}");
    }
}
