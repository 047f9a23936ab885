//! `max_streams` limits the connections that are open at the provider at any instant. The tests check this at the
//! provider, which counts its own sockets.

use std::time::Duration;

use actors::Target;
use domain::settings::AtLimit;

use crate::support::api::Api;
use crate::support::client::{Player, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Behavior, Cut, MockResponse, Provider};
use crate::support::{WAIT_MAX, eventually};

/// Returns a provider with `n` channels of the account `anna`, and their playlist.
fn provider_of(n: usize) -> (Provider, String) {
    let provider = Provider::start();
    let mut list = String::from("#EXTM3U\n");
    for number in 0..n {
        let path = format!("/live/anna/{number}.ts");
        provider
            .path(&path)
            .plays(Picture::new(&number.to_string()).bits_per_second(300_000).frames_per_gop(3));
        list.push_str(&format!("#EXTINF:-1,Channel {number}\n{}\n", provider.url(&path)));
    }
    (provider, list)
}

async fn gateway_of(list: &str, max_streams: u32) -> TestGateway {
    Setup::new().limited_list(list, max_streams).start().await
}

/// A small random number generator, so that a failed run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zapping_never_opens_more_than_the_account_allows() {
    // Holds T-slot.1 at the provider's sockets: random joins, three ways to leave, failing sources.
    let (provider, list) = provider_of(6);
    provider.limit("anna", 2, 403, Duration::ZERO);
    provider.close_delay(Duration::from_millis(30));
    let gateway = gateway_of(&list, 2).await;
    let mut zappers = tokio::task::JoinSet::new();
    for zapper in 0..5 {
        let address = gateway.address;
        let paths: Vec<String> = (0..6).map(|number| gateway.path(&format!("Channel {number}"))).collect();
        zappers.spawn(async move {
            let mut random = Random(zapper);
            let mut before: Option<Player> = None;
            for _ in 0..12 {
                let next = Player::watch(address, &paths[random.below(6) as usize]).await;
                // Some close the old connection before the new one is answered, some after, and some never wait.
                if random.below(3) == 0 {
                    drop(before.take());
                }
                if random.below(4) > 0 {
                    let status = next.status().await;
                    assert!(matches!(status, 200 | 503), "{status}");
                }
                match (before.take(), random.below(2)) {
                    (Some(old), 0) => old.reset().await,
                    (Some(old), _) => old.leave().await,
                    (None, _) => {}
                }
                before = Some(next);
                tokio::time::sleep(Duration::from_millis(random.below(60))).await;
            }
        });
    }
    let saboteur = async {
        let mut random = Random(99);
        for _ in 0..30 {
            let path = format!("/live/anna/{}.ts", random.below(6));
            provider.path(&path).cut(if random.below(2) == 0 { Cut::Reset } else { Cut::End });
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::join!(saboteur, async { while zappers.join_next().await.transpose().unwrap().is_some() {} });
    gateway.until_idle().await;
    assert!(provider.peak_of("anna") <= 2, "{} simultaneous sockets", provider.peak_of("anna"));
    assert_eq!((provider.refusals(), provider.open()), (0, 0));
    // Nothing has leaked: both slots are available again.
    let players = [gateway.watch("Channel 0").await, gateway.watch("Channel 1").await];
    players[0].sees("0").await;
    players[1].sees("1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_one_per_slot_of_a_thousand_simultaneous_requests_succeeds() {
    // Holds T-slot.2.
    const ASKING: usize = 1_000;
    headwater::raise_file_limit();
    let (provider, list) = provider_of(ASKING);
    let unlimited = |config: &mut config::Config| {
        (config.limits.connections_max, config.limits.connections_per_address_max) = (0, 0);
    };
    let gateway = Setup::new().limited_list(&list, 3).config(unlimited).start().await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..ASKING {
        let (address, path) = (gateway.address, gateway.path(&format!("Channel {number}")));
        asking.spawn(async move {
            let player = Player::watch(address, &path).await;
            (player.status().await, player)
        });
    }
    let answers = asking.join_all().await;
    let count = |status: u16| answers.iter().filter(|it| it.0 == status).count();
    assert_eq!((count(200), count(503)), (3, ASKING - 3));
    assert_eq!((provider.peak(), provider.accepted()), (3, 3));
    drop(answers);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_client_is_told_which_account_is_full_and_when_to_retry() {
    let (_provider, list) = provider_of(2);
    let gateway = gateway_of(&list, 1).await;
    let watching = gateway.watch("Channel 0").await;
    watching.sees("0").await;
    let answer = fetch(gateway.address, gateway.get("Channel 1")).await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.header("retry-after"), Some("3"));
    assert!(answer.header("x-hdhomerun-error").is_some_and(|value| value.starts_with("805")));
    let detail = answer.text();
    assert!(detail.contains("list 1") && detail.contains(" s"), "account and duration: {detail}");
    assert_eq!(gateway.metrics().await["headwater_refused_full_total"], 1.0);
    assert!(watching.is_watching());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_viewer_of_a_channel_needs_no_second_slot() {
    let (provider, list) = provider_of(1);
    let gateway = gateway_of(&list, 1).await;
    let players = [gateway.watch("Channel 0").await, gateway.watch("Channel 0").await];
    for player in &players {
        player.sees("0").await;
    }
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_channel_may_be_requested_before_the_last_one_is_closed() {
    // As media servers do: GET B, then RST A, on an account with one slot.
    let (provider, list) = provider_of(4);
    provider.close_delay(Duration::from_millis(100));
    let gateway = gateway_of(&list, 1).await;
    let mut watching = gateway.watch("Channel 0").await;
    watching.sees("0").await;
    for number in [1, 2, 3, 0, 1] {
        let next = gateway.watch(&format!("Channel {number}")).await;
        watching.reset().await;
        next.sees(&number.to_string()).await;
        next.received(|r| r.ts.assert_clean());
        watching = next;
    }
    assert_eq!((provider.peak(), provider.refusals()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lingering_channel_yields_its_slot_to_a_requested_one() {
    let (provider, list) = provider_of(2);
    provider.close_delay(Duration::from_millis(100));
    let linger = |it: &mut domain::settings::Settings| it.channel_shutdown_delay = WAIT_MAX * 5;
    let gateway = Setup::new().limited_list(&list, 1).engine(linger).start().await;
    for number in [0, 1, 0, 1] {
        let player = gateway.watch(&format!("Channel {number}")).await;
        player.sees(&number.to_string()).await;
        player.received(|r| r.ts.assert_clean());
        player.leave().await;
    }
    assert_eq!((provider.peak(), provider.accepted()), (1, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zap_on_an_account_without_a_limit_plays_although_the_provider_allows_one_connection() {
    for status in [458, 403, 509] {
        let (provider, list) = provider_of(3);
        provider.limit("anna", 1, status, Duration::ZERO);
        let linger = |it: &mut domain::settings::Settings| it.channel_shutdown_delay = WAIT_MAX * 5;
        let gateway = Setup::new().list(&list).engine(linger).start().await;
        let player = gateway.watch("Channel 0").await;
        player.sees("0").await;
        player.leave().await;
        // The first channel lingers and holds the only connection.
        let player = gateway.watch("Channel 1").await;
        player.sees("1").await;
        assert_eq!(player.status().await, 200, "{status}");
        assert_eq!(provider.refusals(), 1, "{status}: one refusal discovers the limit");
        player.leave().await;
        for number in [2, 0] {
            let player = gateway.watch(&format!("Channel {number}")).await;
            player.sees(&number.to_string()).await;
            player.received(|r| r.ts.assert_clean());
            player.leave().await;
        }
        assert_eq!(provider.refusals(), 1, "{status}: the discovered limit costs no further refusal");
        let slots = Api::first_admin(&gateway).await.get("/api/m3u/slots/").await.body;
        let limits: Vec<_> = slots["profiles"].as_array().unwrap().iter().collect();
        assert!(
            limits.iter().any(|it| it["discovered_max_streams"] == 1 && it["max_streams"] == 0),
            "{slots}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_limit_the_next_channel_may_be_requested_before_the_last_one_is_closed() {
    // As media servers do: GET B, then RST A.
    let (provider, list) = provider_of(3);
    provider.limit("anna", 1, 458, Duration::ZERO);
    let gateway = Setup::new().list(&list).start().await;
    let mut watching = gateway.watch("Channel 0").await;
    watching.sees("0").await;
    for number in [1, 2, 0] {
        let next = gateway.watch(&format!("Channel {number}")).await;
        watching.reset().await;
        next.sees(&number.to_string()).await;
        watching = next;
    }
    assert!(provider.refusals() <= 1, "{} refusals", provider.refusals());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discovered_limit_is_given_up_when_the_provider_carries_more() {
    let (provider, list) = provider_of(4);
    provider.limit("anna", 1, 458, Duration::ZERO);
    let gateway = Setup::new().list(&list).engine(|it| it.at_limit = AtLimit::Refuse).start().await;
    let first = gateway.watch("Channel 0").await;
    first.sees("0").await;
    let refused = fetch(gateway.address, gateway.get("Channel 1")).await;
    assert_eq!((refused.status(), provider.refusals()), (503, 1));
    assert!(refused.text().contains("refuses more than 1 stream at once"), "{}", refused.text());
    assert!(first.is_watching());
    // The subscription is extended. The next request waits for the first viewer in vain, and tries.
    provider.limit("anna", 2, 458, Duration::ZERO);
    let second = gateway.watch("Channel 2").await;
    second.sees("2").await;
    provider.limit("anna", 3, 458, Duration::ZERO);
    let third = gateway.watch("Channel 3").await;
    third.sees("3").await;
    assert_eq!(provider.refusals(), 1);
    assert!(first.is_watching() && second.is_watching());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_without_another_connection_is_final_at_once() {
    let (provider, list) = provider_of(2);
    provider.path("/live/anna/0.ts").answers(MockResponse::status(403));
    let gateway = Setup::new().list(&list).start().await;
    for _ in 0..2 {
        let answer = fetch(gateway.address, gateway.get("Channel 0")).await;
        assert_eq!(answer.status(), 503);
        assert!(answer.text().contains("403"), "{}", answer.text());
        gateway.until_idle().await;
    }
    assert_eq!(provider.path("/live/anna/0.ts").n_requests(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_within_one_account_closes_before_it_opens() {
    let provider = Provider::start();
    let paths = ["/live/anna/a.ts", "/live/anna/b.ts", "/live/anna/c.ts"];
    for (path, label) in paths.iter().zip(["a", "b", "c"]) {
        provider.path(path).plays(Picture::new(label));
    }
    provider.limit("anna", 1, 403, Duration::ZERO);
    // The provider counts a connection for a while after the gateway closed it.
    provider.close_delay(Duration::from_millis(250));
    let entries = paths.map(|path| ("news", "News", path));
    let gateway = Setup::new().limited_list(&provider.playlist(&entries), 1).start().await;
    let player = gateway.watch("News").await;
    for (path, label) in paths.iter().zip(["a", "b"]) {
        player.sees(label).await;
        provider.path(path).behaves(Behavior::Stalled);
    }
    player.sees("c").await;
    player.received(|r| r.ts.assert_clean());
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    let n_stalls = || gateway.failovers().iter().filter(|it| it.2 == "stall").count();
    eventually("a failover for each stall", || n_stalls() == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_the_provider_never_closes_is_reset() {
    let (provider, list) = provider_of(2);
    provider.close_delay(WAIT_MAX * 10);
    let gateway = gateway_of(&list, 1).await;
    let player = gateway.watch("Channel 0").await;
    player.sees("0").await;
    player.leave().await;
    let player = gateway.watch("Channel 1").await;
    player.sees("1").await;
    assert_eq!(provider.peak(), 1, "the connection is reset before the slot is reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_reused_only_after_the_release_delay_of_its_provider() {
    let (provider, list) = provider_of(3);
    let while_ = Duration::from_millis(700);
    provider.limit("anna", 1, 403, while_);
    let setup = Setup::new().limited_list(&list, 1).release_delay(while_ + Duration::from_millis(300));
    let gateway = setup.start().await;
    for number in [0, 1, 2] {
        let player = gateway.watch(&format!("Channel {number}")).await;
        player.sees(&number.to_string()).await;
        player.leave().await;
    }
    assert_eq!((provider.refusals(), provider.peak()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_right_after_a_release_is_retried_before_it_counts() {
    let (provider, list) = provider_of(2);
    provider.limit("anna", 1, 403, Duration::from_millis(400));
    let gateway = gateway_of(&list, 1).await;
    let player = gateway.watch("Channel 0").await;
    player.sees("0").await;
    player.leave().await;
    gateway.until_idle().await;
    let player = gateway.watch("Channel 1").await;
    player.sees("1").await;
    assert_eq!(player.status().await, 200);
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_that_leave_while_a_channel_starts_leave_no_slot_behind() {
    // Holds T-slot.3 from outside: the viewer leaves at every moment of a start, and the source fails at every step.
    let provider = Provider::start();
    let answers = [
        MockResponse::play(Picture::new("x")),
        MockResponse::play(Picture::new("x")).after(Duration::from_millis(20)),
        MockResponse::redirect("/live/anna/slow.ts"),
        MockResponse::status(503),
        MockResponse::mute(),
        MockResponse::silent_body(),
        MockResponse::html(),
        MockResponse::play(Picture::new("x")).until(500, Cut::Reset),
    ];
    provider
        .path("/live/anna/slow.ts")
        .answers(MockResponse::play(Picture::new("x")).after(Duration::from_millis(20)));
    let mut list = String::from("#EXTM3U\n");
    let n = answers.len();
    for (number, answer) in answers.into_iter().enumerate() {
        let path = format!("/live/anna/{number}.ts");
        provider.path(&path).answers(answer);
        list.push_str(&format!("#EXTINF:-1,Channel {number}\n{}\n", provider.url(&path)));
    }
    let setup = Setup::new().limited_list(&list, 2).engine(|it| {
        it.channel_shutdown_delay = Duration::ZERO;
        it.first_packet_timeout = Duration::from_millis(500);
    });
    let gateway = setup.start().await;
    let mut random = Random(7);
    for round in 0..80 {
        let player = gateway.watch(&format!("Channel {}", round % n)).await;
        tokio::time::sleep(Duration::from_millis(random.below(40))).await;
        if round % 2 == 0 { player.reset().await } else { player.leave().await }
    }
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
    assert!(provider.peak() <= 2, "{} simultaneous sockets", provider.peak());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnected_client_releases_its_slot() {
    let (provider, list) = provider_of(1);
    let gateway = gateway_of(&list, 1).await;
    let player = gateway.watch("Channel 0").await;
    player.sees("0").await;
    let target = Target::Channel(gateway.catalogue.channels[0].uuid);
    let switchboard = gateway.gateway.switchboard();
    let status = switchboard.status(target).await.unwrap().expect("the channel is live");
    assert!(switchboard.kick(target, status.clients[0].id).await.unwrap());
    player.ended().await;
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
    eventually("the disconnect event", || gateway.n_events("client_disconnect") == 1).await;
}
