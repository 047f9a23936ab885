//! `stream_limit` limits how many things a user watches at one time. A device that changes the channel gives up its old
//! session; other devices are not affected.

use std::time::Duration;

use actors::now_ms;
use domain::allowed_hours::AllowedHours;
use domain::channel::Channel;
use domain::event::EventBody;
use domain::settings::AtLimit;
use domain::user::{User, UserLevel};

use crate::support::client::{Player, Request, fetch};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::{change_user, create_user, delete_user};

/// Starts a gateway with channels `0`, `1`, … of one account with this `max_streams`.
async fn set_up(n: usize, max_streams: u32, at_limit: AtLimit) -> (Provider, TestGateway) {
    let provider = Provider::start();
    let mut list = String::from("#EXTM3U\n");
    for number in 0..n {
        let path = format!("/live/anna/{number}.ts");
        let picture = Picture::new(&number.to_string()).bits_per_second(300_000).frames_per_gop(3);
        provider.path(&path).plays(picture);
        list.push_str(&format!("#EXTINF:-1,{number}\n{}\n", provider.url(&path)));
    }
    let setup = Setup::new().limited_list(&list, max_streams).engine(|it| it.at_limit = at_limit);
    (provider, setup.start().await)
}

fn reasons(gateway: &TestGateway) -> Vec<String> {
    let reason = |body: &EventBody| match body {
        EventBody::ClientDisconnect { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    gateway.events().iter().filter_map(|it| reason(&it.body)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zapping_on_one_device_is_never_refused_and_the_provider_sees_one_connection() {
    // Holds T-life.7 with one seat and one slot.
    let (provider, gateway) = set_up(20, 1, AtLimit::ReplaceOwn).await;
    provider.limit("anna", 1, 403, Duration::ZERO);
    provider.close_delay(Duration::from_millis(30));
    let zapper = create_user(&gateway, "zapper", |it| it.stream_limit = 1).await;
    let mut before: Option<Player> = None;
    for number in 0..20 {
        // As media servers do: the next connection is opened before the last one is closed.
        let label = number.to_string();
        let player = Player::ask(gateway.address, zapper.asks(&gateway, &label, "tv")).await;
        assert_eq!(player.status().await, 200, "channel {number}");
        player.sees(&label).await;
        if let Some(before) = before.replace(player) {
            before.ended().await;
        }
        assert_eq!(gateway.gateway.counts().seats, 1);
    }
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    drop(before);
    gateway.until_idle().await;
    eventually("twenty disconnects", || reasons(&gateway).len() == 20).await;
    let n_replaced = reasons(&gateway).iter().filter(|it| *it == "replaced by the same device").count();
    assert_eq!((n_replaced, gateway.gateway.counts().seats), (19, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zap_of_one_device_on_an_account_without_a_limit_replaces_what_it_watched() {
    let (provider, gateway) = set_up(3, 0, AtLimit::ReplaceOwn).await;
    provider.limit("anna", 1, 458, Duration::ZERO);
    let zapper = create_user(&gateway, "zapper", |it| it.stream_limit = 0).await;
    let mut players = Vec::new();
    for label in ["0", "1", "2"] {
        // The connection to the last channel stays open.
        let player = Player::ask(gateway.address, zapper.asks(&gateway, label, "tv")).await;
        player.sees(label).await;
        players.push(player);
    }
    assert_eq!(provider.refusals(), 1, "one refusal discovers the limit");
}

/// Its first connections stay open: a zap was refused after three seconds if there were two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zap_of_a_device_with_two_connections_is_served() {
    let (provider, gateway) = set_up(3, 1, AtLimit::ReplaceOwn).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 0).await;
    let nameless = |channel: &str| gateway.get(channel).header("User-Agent", "MyTV/3");
    let of_anna = |channel: &str| anna.asks(&gateway, channel, "MyTV/3");
    let asks: [&dyn Fn(&str) -> Request; 2] = [&of_anna, &nameless];
    for ask in asks {
        let mut old = Vec::new();
        for label in ["0", "0", "1"] {
            let player = Player::ask(gateway.address, ask(label)).await;
            player.sees(label).await;
            old.push(player);
        }
        old[0].ended().await;
        old[1].ended().await;
        drop(old);
        gateway.until_idle().await;
    }
    assert_eq!((provider.peak(), provider.refusals()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_media_server_that_shows_many_viewers_as_one_ends_nobody() {
    let (_provider, gateway) = set_up(2, 1, AtLimit::ReplaceOwn).await;
    let ask = |channel: &str, agent: &str| gateway.get(channel).header("User-Agent", agent);
    // By the name of a library.
    let first = Player::ask(gateway.address, ask("0", "Lavf/60.16.100")).await;
    first.sees("0").await;
    assert_eq!(fetch(gateway.address, ask("1", "Lavf/60.16.100")).await.status(), 503);
    first.more_bytes(20_000).await;
    first.leave().await;
    gateway.until_idle().await;
    // By the lineup that its address has read.
    assert_eq!(fetch(gateway.address, Request::get("/lineup.json")).await.status(), 200);
    let second = Player::ask(gateway.address, ask("0", "MediaServer/1")).await;
    second.sees("0").await;
    assert_eq!(fetch(gateway.address, ask("1", "MediaServer/1")).await.status(), 503);
    second.more_bytes(20_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_device_is_refused_at_the_limit_and_the_first_keeps_playing() {
    let (provider, gateway) = set_up(2, 0, AtLimit::ReplaceOwn).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let tv = Player::ask(gateway.address, anna.asks(&gateway, "0", "tv")).await;
    tv.sees("0").await;
    for channel in ["0", "1"] {
        let answer = fetch(gateway.address, anna.asks(&gateway, channel, "phone")).await;
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.header("x-hdhomerun-error"), Some("805 All Tuners In Use"));
        assert_eq!(answer.header("retry-after"), Some("3"));
        assert!(answer.text().contains("limit of 1 "), "{}", answer.text());
    }
    // The limit belongs to one user: other users and anonymous viewers are not affected.
    let bert = create_user(&gateway, "bert", |it| it.stream_limit = 1).await;
    let other = Player::ask(gateway.address, bert.asks(&gateway, "1", "phone")).await;
    let nameless = gateway.watch("1").await;
    other.sees("1").await;
    nameless.sees("1").await;
    tv.more_bytes(50_000).await;
    tv.received(|r| r.ts.assert_clean());
    let metrics = gateway.metrics().await;
    assert_eq!((metrics["headwater_seats"], metrics["headwater_refused_seats_total"]), (3.0, 2.0));
    assert_eq!(provider.peak(), 2);
    tv.leave().await;
    let phone = Player::ask(gateway.address, anna.asks(&gateway, "0", "phone")).await;
    phone.sees("0").await;
    drop((phone, other, nameless));
    gateway.until_idle().await;
    assert_eq!(gateway.gateway.counts().seats, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_that_probes_and_plays_in_parallel_has_one_seat_for_every_url() {
    let (provider, gateway) = set_up(1, 1, AtLimit::Refuse).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let by_key = gateway.get("0").header("X-API-Key", &anna.api_key).header("User-Agent", "tv");
    let short = Request::get(anna.path("1")).header("User-Agent", "tv");
    let mut players = Vec::new();
    for request in [anna.asks(&gateway, "0", "tv"), by_key, short, anna.asks(&gateway, "0", "tv")] {
        players.push(Player::ask(gateway.address, request).await);
    }
    for player in &players {
        player.sees("0").await;
    }
    assert_eq!((gateway.gateway.counts().seats, provider.peak()), (1, 1));
    for player in players {
        assert_eq!(gateway.gateway.counts().seats, 1);
        player.leave().await;
    }
    eventually("all seats to be released", || gateway.gateway.counts().seats == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_refuse_a_device_keeps_its_session_and_a_second_request_is_refused() {
    let (_provider, gateway) = set_up(2, 0, AtLimit::Refuse).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let tv = Player::ask(gateway.address, anna.asks(&gateway, "0", "tv")).await;
    tv.sees("0").await;
    assert_eq!(fetch(gateway.address, anna.asks(&gateway, "1", "tv")).await.status(), 503);
    tv.more_bytes(50_000).await;
    // The player closes its old connection right after the new request, so the seat is released in time.
    let next = Player::ask(gateway.address, anna.asks(&gateway, "1", "tv")).await;
    tv.leave().await;
    next.sees("1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_limit_disconnects_nobody() {
    let (_provider, gateway) = set_up(3, 0, AtLimit::ReplaceOwn).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let devices = ["tv", "phone", "tablet"];
    let mut players = Vec::new();
    for (number, device) in devices.iter().enumerate() {
        let player = Player::ask(gateway.address, anna.asks(&gateway, &number.to_string(), device)).await;
        player.sees(&number.to_string()).await;
        players.push(player);
    }
    change_user(&gateway, &anna, |it| it.stream_limit = 1).await;
    // Neither a new device nor one that changes channels: giving up its own seat would not be enough.
    for device in ["laptop", "tv"] {
        assert_eq!(fetch(gateway.address, anna.asks(&gateway, "2", device)).await.status(), 503, "{device}");
    }
    for player in &players {
        player.more_bytes(20_000).await;
    }
    players.truncate(1);
    eventually("one seat", || gateway.gateway.counts().seats == 1).await;
    let next = Player::ask(gateway.address, anna.asks(&gateway, "2", "tv")).await;
    next.sees("2").await;
    players[0].ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admins_and_their_previews_count_towards_limits() {
    let (_provider, gateway) = set_up(2, 0, AtLimit::ReplaceOwn).await;
    let admin =
        create_user(&gateway, "admin", |it| (it.level, it.stream_limit) = (UserLevel::Admin, 1)).await;
    let tv = Player::ask(gateway.address, admin.asks(&gateway, "0", "tv")).await;
    tv.sees("0").await;
    let stream = gateway.catalogue.streams[0].id;
    let preview = |device: &str| {
        let request = Request::get(format!("/proxy/ts/stream/{stream}")).header("User-Agent", device);
        request.header("X-API-Key", &admin.api_key)
    };
    assert_eq!(fetch(gateway.address, preview("browser")).await.status(), 503);
    let own = Player::ask(gateway.address, preview("tv")).await;
    own.sees("0").await;
    tv.ended().await;
}

/// Holds T-acc.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_whose_channel_becomes_hidden_loses_the_running_stream_and_others_keep_theirs() {
    let (_provider, gateway) = set_up(2, 0, AtLimit::ReplaceOwn).await;
    let admin = create_user(&gateway, "boss", |it| it.level = UserLevel::Admin).await;
    let (news, id) = ("0", gateway.channel("0").id.0);
    let stays = Player::ask(gateway.address, admin.asks(&gateway, news, "tv")).await;
    let rules: [fn(&mut User, &mut Channel); 3] = [
        // The user is lowered.
        |user, _| user.level = UserLevel::Streamer,
        // The channel becomes adult.
        |_, channel| channel.is_adult = true,
        // The channel needs a higher level.
        |_, channel| channel.user_level = UserLevel::Admin,
    ];
    for (n, hide) in rules.into_iter().enumerate() {
        let level = |it: &mut Channel| {
            it.is_adult = false;
            it.user_level = UserLevel::Standard;
        };
        change_channel(&gateway, id, level).await;
        let watches = |it: &mut User| (it.level, it.hide_adult) = (UserLevel::Standard, true);
        let goes = create_user(&gateway, &format!("goes{n}"), watches).await;
        let player = Player::ask(gateway.address, goes.asks(&gateway, news, "tv")).await;
        let other = Player::ask(gateway.address, goes.asks(&gateway, "1", "phone")).await;
        player.sees(news).await;
        other.sees("1").await;
        let user = goes.id.0;
        gateway
            .change(move |write| {
                let mut user = write.get::<User>(user)?.expect("the user exists");
                let mut channel = write.get::<Channel>(id)?.expect("the channel exists");
                hide(&mut user, &mut channel);
                write.put(&user)?;
                write.put(&channel)
            })
            .await;
        player.ended().await;
        other.more_bytes(20_000).await;
        assert_eq!(fetch(gateway.address, goes.asks(&gateway, news, "tv")).await.status(), 404);
    }
    stays.more_bytes(20_000).await;
    stays.received(|r| r.ts.assert_clean());
    assert_eq!(reasons(&gateway)[0], "the user may no longer watch");
}

/// Holds T-acc.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_admin_loses_a_running_preview() {
    let (_provider, gateway) = set_up(1, 0, AtLimit::ReplaceOwn).await;
    let admin = create_user(&gateway, "boss", |it| it.level = UserLevel::Admin).await;
    let preview = Request::get("/proxy/ts/stream/1").header("X-API-Key", &admin.api_key);
    let player = Player::ask(gateway.address, preview).await;
    player.sees("0").await;
    change_user(&gateway, &admin, |it| it.level = UserLevel::Standard).await;
    player.ended().await;
}

async fn change_channel(gateway: &TestGateway, id: u32, change: impl FnOnce(&mut Channel) + Send + 'static) {
    gateway
        .change(move |write| {
            let mut channel = write.get::<Channel>(id)?.expect("the channel exists");
            change(&mut channel);
            write.put(&channel)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_deactivated_expired_or_deleted_user_is_disconnected() {
    let (_provider, gateway) = set_up(1, 0, AtLimit::ReplaceOwn).await;
    let stays = create_user(&gateway, "stays", |_| {}).await;
    let stays = Player::ask(gateway.address, stays.asks(&gateway, "0", "tv")).await;
    let nameless = gateway.watch("0").await;
    for how in ["deactivated", "expired", "expires", "deleted"] {
        let goes = create_user(&gateway, how, |_| {}).await;
        let players = [
            Player::ask(gateway.address, goes.asks(&gateway, "0", "tv")).await,
            Player::ask(gateway.address, gateway.get("0").header("X-API-Key", &goes.api_key)).await,
        ];
        for player in &players {
            player.sees("0").await;
        }
        match how {
            "deactivated" => change_user(&gateway, &goes, |it| it.is_active = false).await,
            "expired" => change_user(&gateway, &goes, |it| it.expires_at = Some(now_ms())).await,
            // Without another change.
            "expires" => change_user(&gateway, &goes, |it| it.expires_at = Some(now_ms() + 1_000)).await,
            _ => delete_user(&gateway, &goes).await,
        }
        for player in &players {
            player.ended().await;
        }
        assert_eq!(fetch(gateway.address, goes.asks(&gateway, "0", "tv")).await.status(), 401);
    }
    gateway.has_clients(2).await;
    for player in [&stays, &nameless] {
        player.more_bytes(20_000).await;
        player.received(|r| r.ts.assert_clean());
    }
    assert_eq!(reasons(&gateway), ["the user may no longer watch"; 8]);
}

/// The streams of a child end by themselves, and the user learns when the hours begin again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_with_the_allowed_hours_and_at_the_sleep_timer_with_an_event() {
    let (_provider, gateway) = set_up(1, 0, AtLimit::ReplaceOwn).await;
    let ended = |gateway: &TestGateway| -> Vec<(String, &'static str)> {
        let of = |body: &EventBody| match body {
            EventBody::ViewingEnded { username, reason, streams: 1, .. } => Some((username.clone(), *reason)),
            _ => None,
        };
        gateway.events().iter().filter_map(|it| of(&it.body)).collect()
    };
    let child = create_user(&gateway, "child", |_| {}).await;
    let sleeper = create_user(&gateway, "sleeper", |_| {}).await;
    let players = [
        Player::ask(gateway.address, child.asks(&gateway, "0", "tv")).await,
        Player::ask(gateway.address, sleeper.asks(&gateway, "0", "phone")).await,
    ];
    for player in &players {
        player.sees("0").await;
    }
    // A table without hours ends them at once.
    let table = serde_json::json!({ "time_zone": "UTC" });
    let hours = AllowedHours::from_object(table.as_object().unwrap()).unwrap();
    change_user(&gateway, &child, |it| it.allowed_hours = Some(hours)).await;
    players[0].ended().await;
    let refused = fetch(gateway.address, child.asks(&gateway, "0", "tv")).await;
    assert_eq!(refused.status(), 403);
    // Without another change.
    change_user(&gateway, &sleeper, |it| it.sleep_until = Some(now_ms() + 1_000)).await;
    players[1].ended().await;
    eventually("two events", || ended(&gateway).len() == 2).await;
    assert_eq!(
        ended(&gateway),
        [("child".to_owned(), "allowed_hours"), ("sleeper".to_owned(), "sleep_timer")]
    );
    // The timer is removed, and the user may watch again.
    let timer = || gateway.models().users.load().get(sleeper.id.0).and_then(|it| it.sleep_until);
    eventually("the timer to be removed", || timer().is_none()).await;
    Player::ask(gateway.address, sleeper.asks(&gateway, "0", "phone")).await.sees("0").await;
    assert_eq!(
        reasons(&gateway)[..2],
        ["the allowed hours of the user are over", "the sleep timer of the user has run out"]
    );
}
