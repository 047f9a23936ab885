//! Output profiles: what is changed in a stream for some clients, without effect on the others.

use std::collections::BTreeSet;
use std::path::Path;

use domain::ids::OutputProfileId;
use domain::output_profile::{LeftOutKind, OutputProfile};
use domain::stream_profile::Delivery;
use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::create_user;
use crate::support::{eventually, tools};

const VIDEO_PID: u16 = 0x100;
const AUDIO_PID: u16 = 0x101;

/// Starts a gateway with the channels `News` and `Late`.
async fn set_up(setup: Setup) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path("/news.ts").plays(Picture::new("news"));
    provider.path("/late.ts").plays(Picture::new("late"));
    let list = provider.playlist(&[("news", "News", "/news.ts"), ("late", "Late", "/late.ts")]);
    let gateway = setup.list(&list).start().await;
    (provider, gateway)
}

fn profile(id: u32) -> OutputProfile {
    OutputProfile::new(OutputProfileId(id), format!("profile {id}"))
}

fn radio(id: u32) -> OutputProfile {
    OutputProfile { left_out_kinds: [LeftOutKind::Video].into(), ..profile(id) }
}

/// A profile whose program is a shell script.
fn script(id: u32, script: &str, argument: &Path) -> OutputProfile {
    OutputProfile {
        command: "/bin/sh".to_owned(),
        parameters: format!("-c '{script}' sh {}", argument.display()),
        ..profile(id)
    }
}

async fn store(gateway: &TestGateway, profiles: impl IntoIterator<Item = OutputProfile>) {
    let profiles: Vec<_> = profiles.into_iter().collect();
    gateway.change(move |write| profiles.iter().try_for_each(|it| write.put(it))).await;
}

/// Watches a channel with an output profile.
async fn with_profile(gateway: &TestGateway, channel: &str, id: u32) -> Player {
    Player::watch(gateway.address, &format!("{}?output_profile={id}", gateway.path(channel))).await
}

/// Waits until the announced streams of a player are these.
async fn gets(player: &Player, pids: &[u16]) {
    let expected: BTreeSet<u16> = pids.iter().copied().collect();
    let is_it = |it: &BTreeSet<u16>| *it == expected;
    player
        .until("the announced streams", move |r| {
            r.ts.payload_packets > 50 && is_it(&r.ts.announced.keys().copied().collect())
        })
        .await;
}

/// Returns the output profiles of the clients of a channel, by user agent.
async fn profiles_of_clients(api: &Api, gateway: &TestGateway, channel: &str) -> Vec<(String, Value)> {
    let status = api.get(&format!("/proxy/ts/status/{}", gateway.channel(channel).uuid)).await;
    let clients = status.body["clients"].as_array().unwrap();
    let agent = |it: &Value| it["user_agent"].as_str().unwrap().to_owned();
    let mut found: Vec<_> = clients.iter().map(|it| (agent(it), it["output_profile"].clone())).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_left_out_for_the_clients_of_a_profile_and_for_nobody_else() {
    let (provider, gateway) = set_up(Setup::new()).await;
    store(&gateway, [radio(1), OutputProfile { left_out_pids: [AUDIO_PID].into(), ..profile(2) }]).await;
    let whole = gateway.watch("News").await;
    let without_video = with_profile(&gateway, "News", 1).await;
    let also_without_video = with_profile(&gateway, "News", 1).await;
    let without_audio = with_profile(&gateway, "News", 2).await;
    gets(&whole, &[VIDEO_PID, AUDIO_PID]).await;
    gets(&without_video, &[AUDIO_PID]).await;
    gets(&also_without_video, &[AUDIO_PID]).await;
    gets(&without_audio, &[VIDEO_PID]).await;
    for player in [&whole, &without_video, &also_without_video, &without_audio] {
        assert_eq!(player.status().await, 200);
        player.received(|r| r.ts.assert_clean());
    }
    without_audio.sees("news").await;
    assert_eq!(provider.requests().len(), 1, "one connection to the provider");
    let counts = gateway.gateway.counts();
    assert_eq!((counts.clients, counts.channels, counts.leases), (4, 1, 1));
    // Every viewer counts once, and the tasks that make the renditions do not.
    let players = [&whole, &without_video, &also_without_video, &without_audio];
    let n_received: u64 = players.iter().map(|it| it.received(|r| r.n_bytes)).sum();
    eventually("the bytes that were received", || gateway.gateway.counts().bytes_out >= n_received / 2).await;
    assert!(gateway.gateway.counts().bytes_out < 3 * n_received);
    drop((whole, without_video, also_without_video, without_audio));
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_follows_from_address_user_user_agent_and_default_in_this_order() {
    let (_provider, gateway) = set_up(Setup::new()).await;
    let of_agent = OutputProfile { user_agent_pattern: "Kodi".to_owned(), ..radio(2) };
    let inactive = OutputProfile { is_active: false, ..radio(5) };
    store(&gateway, [radio(1), of_agent, radio(3), radio(4), inactive]).await;
    let api = Api::first_admin(&gateway).await;
    let default = json!({ "value": { "default_output_profile": 4 } });
    assert_eq!(api.patch("/api/core/settings/2/", default).await.status, 200);
    let anna = create_user(&gateway, "anna", |it| {
        it.level = UserLevel::Streamer;
        it.custom_properties.insert("output_profile".to_owned(), json!("3"));
    })
    .await;
    let news = gateway.path("News");
    let file = format!("{}.ts", gateway.channel("News").id);
    let ask = async |path: String, agent: &str| {
        let player = Player::ask(gateway.address, Request::get(path).header("User-Agent", agent)).await;
        assert_eq!(player.status().await, 200, "{agent}");
        player
    };
    let players = [
        ask(format!("{news}?output_profile=1"), "1 Kodi by address").await,
        ask(format!("{}?output_profile=0", anna.live(&file)), "2 Kodi of anna, none by address").await,
        ask(anna.live(&file), "3 Kodi of anna").await,
        ask(news.clone(), "4 Kodi").await,
        ask(news.clone(), "5 another").await,
    ];
    let found: Vec<_> =
        profiles_of_clients(&api, &gateway, "News").await.into_iter().map(|it| it.1).collect();
    assert_eq!(found, [json!(1), Value::Null, json!(3), json!(2), json!(4)]);

    for (query, field) in [
        ("output_profile=9", "output_profile"),
        ("output_profile=5", "output_profile"),
        ("output_profile=x", "output_profile"),
        ("output_format=mkv", "output_format"),
    ] {
        let refused = fetch(gateway.address, Request::get(format!("{news}?{query}"))).await;
        assert_eq!(refused.status(), 400, "{query}");
        assert!(refused.text().contains(field), "{}", refused.text());
    }
    let refused = fetch(gateway.address, Request::get(format!("{news}?output_format=mkv"))).await;
    assert!(refused.text().contains("mpegts"), "names what exists: {}", refused.text());
    drop(players);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_program_converts_a_channel_for_all_viewers_and_they_stay_when_it_dies() {
    let folder = tempfile::tempdir().unwrap();
    let (provider, gateway) = set_up(Setup::new()).await;
    // Notes its process id, then copies its input to its output.
    let program = script(1, "echo $$ >>\"$1\"/pids; exec cat", folder.path());
    store(&gateway, [OutputProfile { left_out_kinds: [LeftOutKind::Audio].into(), ..program }]).await;
    let pids = || std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
    let players = [with_profile(&gateway, "News", 1).await, with_profile(&gateway, "News", 1).await];
    for player in &players {
        player.sees("news").await;
        gets(player, &[VIDEO_PID]).await;
    }
    assert_eq!((pids().lines().count(), gateway.gateway.counts().transcoders), (1, 1), "one for both");
    assert_eq!(provider.requests().len(), 1, "one connection to the provider");

    tools::text_of("kill", &["-KILL", pids().trim()]).await;
    eventually("another program", || pids().lines().count() == 2).await;
    for player in &players {
        let n_before = player.received(|r| r.ts.payload_packets);
        player.until("packets of the other program", move |r| r.ts.payload_packets > n_before + 100).await;
        assert!(player.is_watching());
        player.received(|r| r.ts.assert_clean());
    }
    assert_eq!((provider.requests().len(), gateway.gateway.counts().transcoders), (1, 1));
    drop(players);
    gateway.until_idle().await;
    eventually("the program to end", || gateway.gateway.counts().transcoders == 0).await;
    let last = pids().lines().last().unwrap().to_owned();
    assert!(!Path::new(&format!("/proc/{last}")).exists(), "the program still runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_with_the_last_viewer_of_its_profile_while_others_watch_the_channel() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, gateway) = set_up(Setup::new()).await;
    store(&gateway, [script(1, "exec cat", folder.path())]).await;
    let whole = gateway.watch("News").await;
    let converted = with_profile(&gateway, "News", 1).await;
    converted.sees("news").await;
    assert_eq!(gateway.gateway.counts().transcoders, 1);
    converted.leave().await;
    eventually("the program to end", || gateway.gateway.counts().transcoders == 0).await;
    whole.more_bytes(100_000).await;
    drop(whole);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_beyond_the_limit_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, gateway) = set_up(Setup::new().engine(|it| it.transcoders_max = 1)).await;
    store(&gateway, [script(1, "exec cat", folder.path())]).await;
    let first = with_profile(&gateway, "News", 1).await;
    first.sees("news").await;
    let refused = with_profile(&gateway, "Late", 1).await.answer().await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")));
    assert!(refused.text().contains("limit of 1 conversions"), "{}", refused.text());
    let same = with_profile(&gateway, "News", 1).await;
    same.sees("news").await;
    gateway.watch("Late").await.sees("late").await;
    drop((first, same));
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_never_delivers_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, gateway) = set_up(Setup::new()).await;
    store(&gateway, [script(1, "echo no such codec >&2; exit 3", folder.path())]).await;
    let refused = with_profile(&gateway, "News", 1).await.answer().await;
    assert_eq!(refused.status(), 503);
    for part in ["profile 1", "status 3", "no such codec"] {
        assert!(refused.text().contains(part), "{part}: {}", refused.text());
    }
    gateway.until_idle().await;
    assert_eq!(gateway.gateway.counts().transcoders, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_profile_applies_to_new_viewers() {
    let (_provider, gateway) = set_up(Setup::new()).await;
    store(&gateway, [radio(1)]).await;
    let before = with_profile(&gateway, "News", 1).await;
    gets(&before, &[AUDIO_PID]).await;
    store(&gateway, [OutputProfile { left_out_pids: [AUDIO_PID].into(), ..profile(1) }]).await;
    let after = with_profile(&gateway, "News", 1).await;
    gets(&after, &[VIDEO_PID]).await;
    before.more_bytes(10_000).await;
    gets(&before, &[AUDIO_PID]).await;
    drop((before, after));
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_profile_applies_to_a_channel_that_redirects() {
    let setup = Setup::new().engine(|it| it.default_stream_profile = Delivery::Redirect);
    let (_provider, gateway) = set_up(setup).await;
    store(&gateway, [radio(1)]).await;
    let path = format!("{}?output_profile=1", gateway.path("News"));
    assert_eq!(fetch(gateway.address, Request::get(path)).await.status(), 302);
}

mod slow {
    use super::*;
    use crate::support::signal::Clip;

    /// Watches a clip in MPEG-2 with a profile, and returns the codecs that ffprobe finds in some seconds of it.
    async fn codecs(parameters: &str) -> Vec<String> {
        let command =
            OutputProfile { command: "ffmpeg".to_owned(), parameters: parameters.to_owned(), ..profile(1) };
        codecs_of("output_profile=1", Some(command)).await
    }

    /// Does the same with this query, after this profile was stored.
    async fn codecs_of(query: &str, profile: Option<OutputProfile>) -> Vec<String> {
        let inputs = [
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=320x180:rate=25",
            "-f",
            "lavfi",
            "-i",
            "sine=frequency=440:sample_rate=48000",
        ];
        let output = ["-t", "20", "-g", "25", "-pix_fmt", "yuv420p", "-c:v", "mpeg2video", "-c:a", "mp2"];
        let clip = Clip::make("profiles-mpeg2", &inputs, &output).await;
        let provider = Provider::start();
        provider.path("/news.ts").plays(clip);
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
        store(&gateway, profile).await;
        let path = format!("{}?{query}", gateway.path("News"));
        let watch = async || Player::watch(gateway.address, &path).await;
        let players = [watch().await, watch().await];
        let mut found = Vec::new();
        for player in &players {
            player.until("some seconds", |r| r.ts.programme_seconds() > 4.0).await;
            player.received(|r| r.ts.assert_clean());
            let file = tools::saved(&player.recording());
            let path = file.path().to_string_lossy().into_owned();
            let shown = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
            let text = tools::text_of("ffprobe", &shown).await;
            found = text
                .lines()
                .map(|it| it.trim().trim_matches(',').to_owned())
                .filter(|it| !it.is_empty())
                .collect();
            found.sort();
            found.dedup();
        }
        assert_eq!((provider.requests().len(), gateway.gateway.counts().transcoders), (1, 1));
        drop(players);
        gateway.until_idle().await;
        found
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ffmpeg_converts_mpeg_2_to_h264_for_all_viewers_of_a_profile() {
        let parameters = "-nostdin -loglevel warning -analyzeduration 1000000 -i {streamUrl} -map 0:v:0 -map 0:a:0 \
             -c:v libx264 -preset ultrafast -tune zerolatency -g 25 -c:a aac -f mpegts -muxdelay 0 -flush_packets 1 pipe:1";
        assert_eq!(codecs(parameters).await, ["aac", "h264"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sound_for_browsers_is_converted_and_the_picture_is_copied() {
        assert_eq!(codecs_of("sound=aac", None).await, ["aac", "mpeg2video"]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ffmpeg_copies_a_stream_into_another_multiplex() {
        let parameters = "-nostdin -loglevel warning -analyzeduration 1000000 -i {streamUrl} -map 0:v:0 -c copy \
             -mpegts_start_pid 0x200 -mpegts_pmt_start_pid 0x40 -f mpegts -muxdelay 0 -flush_packets 1 pipe:1";
        assert_eq!(codecs(parameters).await, ["mpeg2video"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn playlists_and_tuners_ask_for_the_profile_of_their_own_address() {
    let (_provider, gateway) = set_up(Setup::new()).await;
    store(&gateway, [radio(1)]).await;
    let text = |path: &'static str| {
        let asked = fetch(gateway.address, Request::get(path));
        async move { asked.await.text() }
    };
    let news = format!("http://{}{}", gateway.address, gateway.path("News"));
    let playlist = text("/output/m3u?output_profile=1").await;
    assert!(playlist.contains(&format!("\n{news}?output_profile=1\n")), "{playlist}");
    for unknown in ["/output/m3u?output_profile=9", "/output/m3u?output_profile=small", "/output/m3u"] {
        let playlist = text(unknown).await;
        assert!(playlist.contains(&format!("\n{news}\n")), "{playlist}");
    }
    for (place, query) in [("1", "?output_profile=1"), ("0", "?output_profile=0"), ("9", "")] {
        let device =
            fetch(gateway.address, Request::get(format!("/tuner/output_profile/{place}/discover.json")));
        let device: Value = serde_json::from_str(&device.await.text()).unwrap();
        let base = format!("http://{}/tuner/output_profile/{place}", gateway.address);
        assert_eq!(
            (&device["BaseURL"], &device["LineupURL"]),
            (&json!(base), &json!(format!("{base}/lineup.json")))
        );
        let lineup =
            fetch(gateway.address, Request::get(format!("/hdhr/output_profile/{place}/lineup.json")));
        let lineup: Value = serde_json::from_str(&lineup.await.text()).unwrap();
        assert_eq!(lineup[0]["URL"], format!("{news}{query}"), "{lineup}");
    }
    // As Jellyfin asks for it.
    let path = format!("{}?output_profile=1?transcode=heavy", gateway.path("News"));
    gets(&Player::watch(gateway.address, &path).await, &[AUDIO_PID]).await;
}
