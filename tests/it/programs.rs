//! Streams that an external program reads instead of the gateway.

use std::path::Path;
use std::time::Duration;

use domain::ids::StreamProfileId;
use domain::stream_profile::{Delivery, StreamProfile};
use serde_json::json;

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Picture, Programme};
use crate::support::upstream::Provider;
use crate::support::{eventually, tools};

/// Assigns a command to the first stream of a channel.
pub async fn run_first(gateway: &TestGateway, channel: &str, command: &str, parameters: String) {
    let stream = gateway.channel(channel).streams[0];
    let profile = StreamProfile {
        id: StreamProfileId(100),
        name: "Mine".to_owned(),
        delivery: Delivery::Command,
        command: command.to_owned(),
        parameters,
        user_agent: None,
        is_active: true,
        locked: false,
        redirect_without_login: false,
    };
    gateway
        .change(move |write| {
            write.put(&profile)?;
            let mut stream = write.get::<domain::stream::Stream>(stream.0)?.expect("a stream");
            stream.stream_profile = Some(profile.id);
            write.put(&stream)
        })
        .await;
}

/// Writes some seconds of a picture to a file.
pub fn recorded(label: &str, folder: &Path) {
    let mut bytes = Vec::new();
    Programme::from(Picture::new(label)).tune_in(Duration::ZERO).take(Duration::from_secs(4), &mut bytes);
    std::fs::write(folder.join("ts"), bytes).unwrap();
}

// Holds T-life.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_keeps_watching_when_the_program_of_the_first_stream_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    recorded("first", folder.path());
    let provider = Provider::start();
    provider.path("/second.ts").plays(Picture::new("second").pids(0x20, 0x41, 0x42));
    let list = provider.playlist(&[("news", "News", "/first.ts"), ("news", "News backup", "/second.ts")]);
    let setup = Setup::new().limited_list(&list, 1).engine(|it| {
        it.stall_timeout = Duration::from_secs(60);
        it.buffering_timeout = Duration::from_secs(60);
    });
    let gateway = setup.start().await;
    // Plays once, ignores SIGTERM, and has a child process.
    let script = "cd \"$1\" && test \"$2\" && ! test -e pid && trap \"\" TERM && echo $$ >pid.new && \
                  mv pid.new pid && cat ts && sleep 1000";
    let parameters = format!("-c '{script}' sh {} {{streamUrl}}", folder.path().display());
    run_first(&gateway, "News", "/bin/sh", parameters).await;

    let player = gateway.watch("News").await;
    player.sees("first").await;
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(Path::new(&format!("/proc/{}", pid.trim())).exists());
    tools::text_of("kill", &["-KILL", pid.trim()]).await;
    player.sees("second").await;
    // The account has one slot. The second stream got it, so the first has released it.
    assert!(
        !Path::new(&format!("/proc/{}", pid.trim())).exists(),
        "the leader of its process group still exists"
    );
    assert!(provider.requests().iter().all(|it| it.path != "/first.ts"), "the gateway read it itself");
    drop(player);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_program_is_missing_is_skipped() {
    let provider = Provider::start();
    provider.path("/second.ts").plays(Picture::new("second"));
    let list = provider.playlist(&[("news", "News", "/first.ts"), ("news", "News backup", "/second.ts")]);
    let gateway = TestGateway::with_list(&list).await;
    run_first(&gateway, "News", "no-such-program", "{streamUrl}".to_owned()).await;
    let player = Player::ask(gateway.address, gateway.get("News")).await;
    player.sees("second").await;
    drop(player);
    gateway.until_idle().await;
}

/// Returns the number of running processes in a group, without zombies.
pub fn n_running(group: &str) -> usize {
    let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = folders.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    let runs = |stat: &String| {
        let fields = stat.rsplit_once(')').map(|it| it.1.split_whitespace().collect::<Vec<_>>());
        fields.is_some_and(|it| it[0] != "Z" && it[2] == group)
    };
    stats.filter(runs).count()
}

/// Returns the process ids of the watchdogs of a gateway.
fn watchdogs(gateway: u32) -> Vec<String> {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().into_string().ok());
    let read =
        |pid: &str, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let is_watchdog = |it: &String| {
        read(it, "cmdline") == "headwater\0watch-programs\0"
            && read(it, "status").contains(&format!("\nPPid:\t{gateway}\n"))
    };
    processes.filter(is_watchdog).collect()
}

/// Starts a gateway with a program that plays, then becomes silent, ignores SIGTERM, and has a child and a grandchild.
/// Returns the gateway, its viewer, and the process group.
async fn silent_program(folder: &Path) -> (Binary, Player, String) {
    recorded("news", folder);
    let data = folder.join("data").display().to_string();
    let out = folder.join("out");
    std::fs::create_dir(&out).unwrap();
    let writable = format!("programs.writable_paths={}", out.display());
    // A silent source must not time out here.
    let patience = ["--set", "engine.stall_timeout=600", "--set", "engine.buffering_timeout=600"];
    let gateway =
        Binary::start(&[&["serve", "--data-dir", &data, "--set", &writable][..], &patience].concat());
    let address = gateway.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;

    let script = "trap \"\" TERM HUP; cd \"$1\"; (sleep 1000; :) & cat ts; echo $$ >out/group.new; \
                  mv out/group.new out/group; sleep 1000; :";
    let parameters = format!("-c '{script}' sh {}", folder.display());
    let profile = json!({ "name": "Mine", "command": "/bin/sh", "parameters": parameters });
    let profile = admin.post("/api/core/streamprofiles/", profile).await;
    let stream = json!({ "name": "news", "url": "http://tv/1.ts", "stream_profile_id": profile.body["id"] });
    let stream = admin.post("/api/channels/streams/", stream).await;
    let channel = json!({ "name": "News", "streams": [stream.body["id"]] });
    let channel = admin.post("/api/channels/channels/", channel).await;
    assert_eq!(
        [profile.status, stream.status, channel.status],
        [201; 3],
        "{profile:?} {stream:?} {channel:?}"
    );

    let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));
    let player = Player::watch(address, &path).await;
    player.sees("news").await;
    eventually("the program to be silent", || out.join("group").exists()).await;
    let group = std::fs::read_to_string(out.join("group")).unwrap().trim().to_owned();
    eventually("all processes to sleep", || n_running(&group) == 4).await;
    (gateway, player, group)
}

// Holds T-life.6, when the gateway itself is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_program_and_its_children_end_when_the_gateway_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gateway, _player, group) = silent_program(folder.path()).await;
    let [watchdog] = &watchdogs(gateway.id())[..] else { panic!("{:?}", watchdogs(gateway.id())) };
    // Signals that a terminal or a service manager sends to all processes do not mean that the gateway ended.
    for signal in ["-HUP", "-INT", "-QUIT", "-TERM"] {
        tools::text_of("kill", &[signal, watchdog]).await;
    }
    gateway.signal("KILL");
    assert_eq!(gateway.ended().await.code(), None);
    eventually("all processes to end", || n_running(&group) == 0).await;
    eventually("the watchdog to end", || n_running(watchdog) == 0).await;
}

// Holds T-life.6, when the watchdog is killed before the gateway, or stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_watchdog_is_replaced_and_knows_the_programs_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gateway, _player, group) = silent_program(folder.path()).await;
    let id = gateway.id();
    let first = watchdogs(id).remove(0);
    tools::text_of("kill", &["-KILL", &first]).await;
    eventually("another watchdog", || watchdogs(id).first().is_some_and(|it| *it != first)).await;
    assert_eq!((watchdogs(id).len(), n_running(&group)), (1, 4), "the program plays on");
    // The new process runs before it has read its input; the pipe keeps the lines.
    gateway.signal("KILL");
    assert_eq!(gateway.ended().await.code(), None);
    eventually("all processes to end", || n_running(&group) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_leaves_neither_programs_nor_its_watchdog() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gateway, _player, group) = silent_program(folder.path()).await;
    let watchdog = watchdogs(gateway.id()).remove(0);
    gateway.signal("TERM");
    assert_eq!(gateway.ended().await.code(), Some(0));
    eventually("all processes to end", || n_running(&group) == 0 && n_running(&watchdog) == 0).await;
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::signal::Clip;
    use crate::support::upstream::{MockResponse, RecordedRequest};

    /// Returns the codecs that ffprobe finds in the recording, in order.
    async fn codecs(player: &Player) -> Vec<String> {
        let file = tools::saved(&player.recording());
        let path = file.path().display().to_string();
        let fields = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
        let text = tools::text_of("ffprobe", &fields).await;
        // ffprobe also lists the streams below their programmes.
        let mut codecs: Vec<_> = text
            .split_whitespace()
            .map(|it| it.trim_matches(',').to_owned())
            .filter(|it| !it.is_empty())
            .collect();
        codecs.sort();
        codecs.dedup();
        codecs
    }

    #[tokio::test]
    async fn a_guard_kills_a_process_that_does_not_report() {
        use std::os::unix::process::ExitStatusExt;
        // The shell is the parent of the guard, whose input stays open and silent.
        let script = "sleep 1000 | \"$0\" guard-gateway; exit 3";
        let mut shell = tokio::process::Command::new("/bin/sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_headwater")])
            .process_group(0)
            .spawn()
            .unwrap();
        let group = shell.id().unwrap().to_string();
        let ended = shell.wait().await.unwrap();
        tools::run("kill", &["-KILL", "--", &format!("-{group}")]).await;
        assert_eq!((ended.signal(), ended.code()), (Some(9), None));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_hls_url_with_one_endless_segment_plays_without_a_program() {
        let provider = Provider::start();
        let playlist = format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:20\n#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:20,\n{}\n",
            provider.url("/live/anna/1.ts")
        );
        let list = provider.path("/live/anna/1.m3u8");
        list.answers(MockResponse::text("application/vnd.apple.mpegurl", playlist));
        provider.path("/live/anna/1.ts").answers(MockResponse::play(Clip::plain().await));
        let gateway =
            TestGateway::with_list(&provider.playlist(&[("news", "News", "/live/anna/1.m3u8")])).await;
        let player = gateway.watch("News").await;
        player.until("four seconds", |r| r.ts.programme_seconds() > 4.0).await;
        assert_eq!(codecs(&player).await, ["aac", "h264"]);
        assert_eq!(gateway.n_events("channel_start"), 1);
        assert_eq!(readers(&provider).1, [""; 0]);
        drop(player);
        gateway.until_idle().await;
    }

    /// Makes an HLS playlist of twelve seconds with ffmpeg, and serves the segments as `/segments/anna/N.m4s`. They are fMP4,
    /// which the gateway does not read itself. Returns the text of the playlist.
    async fn hls(provider: &Provider) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.m3u8").display().to_string();
        let inputs = ["-f", "lavfi", "-i", "testsrc=size=160x90:rate=25", "-f", "lavfi", "-i", "sine"];
        let codecs = ["-t", "12", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
        let muxer =
            ["-f", "hls", "-hls_segment_type", "fmp4", "-hls_time", "2", "-hls_list_size", "0", &file];
        let arguments = [&["-v", "error"][..], &inputs, &codecs, &muxer].concat();
        tools::text_of("ffmpeg", &arguments).await;
        let mut list = std::fs::read_to_string(&file).unwrap();
        let init = std::fs::read(folder.path().join("init.mp4")).unwrap();
        provider.path("/segments/anna/init.mp4").answers(MockResponse::text("video/mp4", init));
        list = list.replace("init.mp4", "/segments/anna/init.mp4");
        for n in 0.. {
            let (name, path) = (format!("list{n}.m4s"), format!("/segments/anna/{n}.m4s"));
            let Ok(segment) = std::fs::read(folder.path().join(&name)) else { break };
            provider.path(&path).answers(MockResponse::text("video/mp4", segment));
            list = list.replace(&name, &path);
        }
        list
    }

    /// Returns the paths that the gateway itself requested, and those that ffmpeg requested.
    fn readers(provider: &Provider) -> (Vec<String>, Vec<String>) {
        let is_own = |agent: Option<&str>| agent.is_some_and(|it| it.starts_with("Headwater/"));
        let (own, program): (Vec<_>, Vec<_>) =
            provider.requests().into_iter().partition(|it| is_own(it.header("user-agent")));
        let paths = |requests: Vec<RecordedRequest>| requests.into_iter().map(|it| it.path).collect();
        (paths(own), paths(program))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn hls_behind_an_address_without_its_ending_plays_through_ffmpeg_on_one_connection() {
        let provider = Provider::start();
        // The provider refuses a second connection.
        provider.limit("anna", 1, 403, Duration::ZERO);
        let list = hls(&provider).await;
        // The redirect sets a cookie that the playlist needs, and the type is wrong.
        let location = "Location: /hls/anna/7?t=1\r\nSet-Cookie: session=s3cret; Path=/\r\n";
        provider.path("/live/anna/7").answers(MockResponse::status_with(302, location));
        provider.path("/hls/anna/7?t=1").answers(MockResponse::text("video/mp2t", list));
        let entries = provider.playlist(&[("news", "News", "/live/anna/7")]);
        let gateway = Setup::new().limited_list(&entries, 1).start().await;
        let player = gateway.watch("News").await;
        player.until("a second", |r| r.ts.programme_seconds() > 1.0).await;
        let (own, program) = readers(&provider);
        assert_eq!(own, ["/live/anna/7", "/hls/anna/7?t=1"]);
        assert_eq!(program[0], "/hls/anna/7?t=1", "the address after the redirect");
        let requests = provider.path("/hls/anna/7?t=1").requests();
        for request in &requests {
            assert_eq!(request.header("cookie"), Some("session=s3cret"), "{requests:?}");
        }
        // The recording of twelve seconds ends, and the channel opens it again.
        player.until("thirteen seconds", |r| r.ts.programme_seconds() > 13.0).await;
        let (own, program) = readers(&provider);
        assert_eq!(own.len(), 2, "the second time ffmpeg opens the address at once: {own:?} {program:?}");
        assert!(program.contains(&"/live/anna/7".to_owned()), "{program:?}");
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
        assert_eq!(codecs(&player).await, ["aac", "h264"]);
        drop(player);
        gateway.until_idle().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_address_that_no_longer_leads_to_a_playlist_is_read_by_the_gateway_again() {
        let provider = Provider::start();
        let list = hls(&provider).await;
        let news = provider.path("/live/anna/7");
        news.answers(MockResponse::text("application/vnd.apple.mpegurl", list));
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/live/anna/7")])).await;
        let player = gateway.watch("News").await;
        player.until("a second", |r| r.ts.programme_seconds() > 1.0).await;
        provider.path("/live/anna/7").plays(Picture::new("news"));
        // ffmpeg plays the recording to its end, opens the address again, and fails.
        player.sees("news").await;
        let (own, program) = readers(&provider);
        assert_eq!(own, ["/live/anna/7", "/live/anna/7"]);
        assert!(program.iter().filter(|it| *it == "/live/anna/7").count() >= 2, "{program:?}");
        drop(player);
        gateway.until_idle().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_playlist_from_the_network_names_no_local_files() {
        let folder = tempfile::tempdir().unwrap();
        recorded("secret", folder.path());
        let file = folder.path().join("secret.ts").display().to_string();
        std::fs::rename(folder.path().join("ts"), &file).unwrap();
        let provider = Provider::start();
        let forms = [
            file.clone(),
            format!("file://{file}"),
            format!("file:{file}"),
            format!("concat:{file}|{file}"),
            format!("crypto+file://{file}"),
            format!("subfile,,start,0,end,1000000,,:{file}"),
            format!("async:file:{file}"),
            format!("cache:file:{file}"),
        ];
        let entries: String = forms.iter().map(|it| format!("#EXTINF:4,\n{it}\n")).collect();
        let list = format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n{entries}#EXT-X-ENDLIST\n");
        for path in ["/live/anna/1", "/live/anna/2.m3u8"] {
            provider.path(path).answers(MockResponse::text("application/x-mpegurl", list.clone()));
        }
        let names = [("one", "One", "/live/anna/1"), ("two", "Two", "/live/anna/2.m3u8")];
        let setup = Setup::new().list(&provider.playlist(&names));
        let gateway = setup.engine(|it| it.start_timeout = Duration::from_secs(5)).start().await;
        let are_refused = async || {
            for name in ["One", "Two"] {
                let player = Player::ask(gateway.address, gateway.get(name)).await;
                assert_eq!(player.status().await, 503, "{name}");
            }
        };
        are_refused().await;
        assert_eq!(readers(&provider).1, [""; 0], "the gateway reads them itself");
        let streams = ["One", "Two"].map(|it| gateway.channel(it).streams[0]);
        gateway
            .change(move |write| {
                for stream in streams {
                    let mut stream = write.get::<domain::stream::Stream>(stream.0)?.expect("a stream");
                    stream.stream_profile = Some(StreamProfileId(3));
                    write.put(&stream)?;
                }
                Ok(())
            })
            .await;
        are_refused().await;
        // ffmpeg read the playlists, because the profile says so, and nothing of the files.
        let (_, program) = readers(&provider);
        for path in ["/live/anna/1", "/live/anna/2.m3u8"] {
            assert!(program.iter().any(|it| it == path), "{program:?}");
        }
        gateway.until_idle().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stream_is_transcoded_by_the_built_in_profile() {
        let clip = Clip::make(
            "programs-mpeg2",
            &["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"],
            &["-t", "20", "-c:v", "mpeg2video", "-g", "12", "-b:v", "800k", "-c:a", "mp2"],
        )
        .await;
        let provider = Provider::start();
        provider.path("/1.ts").answers(MockResponse::play(clip));
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/1.ts")])).await;
        let stream = gateway.channel("News").streams[0];
        gateway
            .change(move |write| {
                let mut stream = write.get::<domain::stream::Stream>(stream.0)?.expect("a stream");
                stream.stream_profile = Some(StreamProfileId(4));
                write.put(&stream)
            })
            .await;
        let player = gateway.watch("News").await;
        player.until("four seconds", |r| r.ts.programme_seconds() > 4.0).await;
        assert_eq!(codecs(&player).await, ["aac", "h264"]);
        drop(player);
        gateway.until_idle().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_player_gets_a_recording_no_faster_than_it_plays() {
        let provider = Provider::start();
        let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/1.ts")])).await;
        // An hour of programme, produced as fast as possible.
        let picture = "-f lavfi -i testsrc=size=160x90:rate=25:duration=3600 -f lavfi -i sine=duration=3600";
        let codecs = "-c:v libx264 -preset ultrafast -g 25 -c:a aac";
        let parameters = format!("-v error {picture} {codecs} -f mpegts pipe:1");
        run_first(&gateway, "News", "ffmpeg", parameters).await;
        let player = gateway.watch("News").await;
        player.until("a picture", |r| r.ts.programme_seconds() > 0.0).await;
        let began = tokio::time::Instant::now();
        player.until("fifteen seconds", |r| r.ts.programme_seconds() > 15.0).await;
        // The first five seconds come at once. A slow machine may take longer.
        let took = began.elapsed().as_secs_f64();
        assert!(took > 15.0 - 5.0 - 2.0, "fifteen seconds came in {took} s");
        player.received(|r| r.ts.assert_clean());
        drop(player);
        gateway.until_idle().await;
    }
}
