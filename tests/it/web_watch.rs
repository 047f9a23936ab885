//! Playing channels in a page, with the clips of the demo.

/// These need a browser.
mod slow {
    use domain::user::UserLevel;
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::gateway::TestGateway;
    use crate::support::signal::{Clip, TEST_PICTURE};
    use crate::support::upstream::Provider;
    use crate::support::web::{Web, person};

    const TIME: &str = "return document.querySelector('video')?.currentTime ?? 0";

    /// Starts the demo with the programs of this machine, because it converts sound with ffmpeg.
    fn demo() -> Binary {
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        Binary::start_with(&["env", &path], &["demo", "--source-listen", "127.0.0.1:0"])
    }

    /// Waits until the video has played for this many more seconds.
    async fn plays_on(web: &Web, seconds: f64) {
        let before = web.browser.script(TIME).await.as_f64().unwrap();
        let moves = |it: &Value| it.as_f64().is_some_and(|it| it > before + seconds);
        web.browser.until("a video that moves", TIME, moves).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_demo_plays_in_the_page_and_its_button_stops_a_source() {
        let program = demo();
        let address = program.address().await;
        let web = Web::at(address).await;
        // Signed in without a password, as the page is on the same machine.
        web.opens("/").await;
        web.is_at("/now").await;
        web.reads("main", "Nothing plays").await;
        web.clicks("Watch a channel").await;
        web.reads("main table", "Test Card").await;
        let channels = "return document.querySelectorAll('main tbody tr').length";
        web.browser.until("three channels", channels, |it| *it == 3).await;
        web.browser.clicks("main tbody tr a").await;
        web.has("video[data-state=playing]").await;
        plays_on(&web, 2.0).await;

        // The source stops; the page plays on from the other one, whose sound has another codec.
        let channel = web.browser.script("return location.pathname.split('/')[2]").await;
        let token = "return fetch('/api/accounts/auth/browser/renew/', { method: 'POST', body: '{}',
            headers: { 'Content-Type': 'application/json' } }).then((it) => it.json()).then((it) => it.access)";
        let token = web.browser.script(token).await;
        let api = Api::stranger_at(address).bearer(token.as_str().unwrap());
        let status = api.get(&format!("/proxy/ts/status/{}", channel.as_str().unwrap())).await;
        let source = match status.text("channel_name") {
            "Test Card" => "testcard-a",
            "Fractal" => "fractal-a",
            _ => "colours-a",
        };
        let stopped = api.post(&format!("/api/demo/sources/{source}/"), json!({ "is_running": false })).await;
        assert_eq!(stopped.status, 200, "{stopped:?}");
        web.browser.until("the other stream", TIME, |_| program.output().contains("failed over")).await;
        web.reads("main", "The sound is converted for this browser.").await;
        web.has("video[data-state=playing]").await;
        plays_on(&web, 2.0).await;

        web.opens("/now").await;
        web.clicks(&format!("Start {source}")).await;
        web.clicks(&format!("Stop {source}")).await;
        web.clicks(&format!("Start {source}")).await;
        web.is_clean().await;
    }

    /// Stories beside the one that CI plays.
    mod night {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_channel_that_does_not_exist_is_said_to_be_unknown() {
            let program = demo();
            let web = Web::at(program.address().await).await;
            web.opens("/watch/00000000-0000-0000-0000-000000000001").await;
            web.reads("main [role=alert]", "There is no such channel").await;
            web.reads("main", "The channel does not play").await;
            // The browser reports the refused stream.
            assert!(web.browser.console().await.iter().all(|it| it.contains("404")));
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_viewer_watches_a_channel_with_ac_3_sound() {
            let output = [
                "-t",
                "60",
                "-c:v",
                "libx264",
                "-preset",
                "ultrafast",
                "-g",
                "25",
                "-pix_fmt",
                "yuv420p",
                "-c:a",
                "ac3",
            ];
            let clip = Clip::make("watch-ac3", &TEST_PICTURE, &output).await;
            let provider = Provider::start();
            provider.path("/news.ts").plays(clip);
            let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
            let kid = person(&gateway, "kid", UserLevel::Streamer).await;
            let path = format!("/watch/{}", gateway.channel("News").uuid);
            let web = Web::signed_in(&gateway, &kid, &path).await;
            web.has("video[data-state=playing]").await;
            plays_on(&web, 2.0).await;
            web.reads("main", "The sound is converted for this browser.").await;
            let sound = "return document.querySelector('video').webkitAudioDecodedByteCount";
            web.browser.until("sound", sound, |it| it.as_u64() > Some(0)).await;
            assert_eq!(gateway.gateway.counts().transcoders, 1);
            // The provider sees one connection, although the page has asked twice.
            assert_eq!(provider.open(), 1);
            web.is_clean().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_viewer_chooses_a_sound_that_the_browser_does_not_offer() {
            let output = "-map 0:v -map 1:a -map 1:a -metadata:s:a:0 language=deu -metadata:s:a:1 language=eng \
                -t 60 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac";
            let output: Vec<&str> = output.split_whitespace().collect();
            let clip = Clip::make("watch-sounds", &TEST_PICTURE, &output).await;
            let provider = Provider::start();
            provider.path("/news.ts").plays(clip);
            let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
            let kid = person(&gateway, "kid", UserLevel::Streamer).await;
            let path = format!("/watch/{}", gateway.channel("News").uuid);
            let web = Web::signed_in(&gateway, &kid, &path).await;
            web.has("video[data-state=playing]").await;
            plays_on(&web, 2.0).await;
            // The label of the sound that plays; controls hide by themselves, so a script clicks.
            let on = "const all = [...document.querySelectorAll('.controls [role=menuitem]')];
                return all.find((it) => it.querySelector('svg'))?.textContent.trim() ?? ''";
            web.browser.until("the first sound", on, |it| it == "German").await;
            let choose = "const all = [...document.querySelectorAll('.controls [role=menuitem]')];
                all.find((it) => it.textContent.trim() === 'English').click(); return true";
            web.browser.script(choose).await;
            web.browser.until("the second sound", on, |it| it == "English").await;
            web.has("video[data-state=playing]").await;
            plays_on(&web, 2.0).await;
            let sound = "return document.querySelector('video').webkitAudioDecodedByteCount";
            web.browser.until("sound", sound, |it| it.as_u64() > Some(0)).await;
            assert_eq!((provider.open(), gateway.gateway.counts().transcoders), (1, 0));
            web.is_clean().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn a_channel_goes_on_in_a_small_frame_and_now_shows_its_picture() {
            let output = "-t 60 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac";
            let output: Vec<&str> = output.split(' ').collect();
            let clip = Clip::make("watch-small", &TEST_PICTURE, &output).await;
            let provider = Provider::start();
            provider.path("/news.ts").plays(clip);
            let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
            let root = person(&gateway, "root", UserLevel::Admin).await;
            let path = format!("/watch/{}", gateway.channel("News").uuid);
            let web = Web::signed_in(&gateway, &root, &path).await;
            web.has("video[data-state=playing]").await;
            plays_on(&web, 2.0).await;
            web.browser.clicks("nav a[href$='/channels']").await;
            web.is_at("/channels").await;
            web.has("aside[data-state=playing] video").await;
            plays_on(&web, 2.0).await;
            web.browser.clicks("aside a").await;
            web.is_at(&path).await;
            plays_on(&web, 2.0).await;
            web.browser.clicks("nav a[href$='/now']").await;
            web.is_at("/now").await;
            let picture = "return document.querySelector('.still video')?.videoWidth ?? 0";
            web.browser.until("a picture of the channel", picture, |it| it.as_u64() > Some(0)).await;
            // All of it is one viewer, and the picture is none.
            gateway.has_clients(1).await;
            assert_eq!(provider.accepted(), 1);
            web.browser.clicks("aside button[aria-label='Stop watching']").await;
            gateway.until_idle().await;
            web.is_clean().await;
        }

        /// `just picture` saves what this test sees as the picture of the README.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn now_shows_the_channels_of_the_demo_and_a_failover() {
            let program = demo();
            let address = program.address().await;
            let mut players = Vec::new();
            for path in program.streams().await {
                let player = Player::watch(address, &path).await;
                player.until("some seconds", |it| it.ts.programme_seconds() > 1.0).await;
                players.push(player);
            }
            let web = Web::at(address).await;
            web.browser.resizes(1280, 720).await;
            web.opens("/now").await;
            let states = "return [...document.querySelectorAll('tr[data-channel]')].map((it) => it.cells[0].textContent.trim())";
            web.browser
                .until("three channels", states, |it| *it == json!(["● playing", "● playing", "● playing"]))
                .await;
            web.clicks("Stop testcard-a").await;
            let failovers = "return [...document.querySelectorAll('tr[data-channel]')].map((it) => it.cells[5].textContent.trim())";
            let one = |it: &Value| it.as_array().is_some_and(|it| it.contains(&json!("1")));
            web.browser.until("a failover", failovers, one).await;
            web.browser
                .until("three channels", states, |it| *it == json!(["● playing", "● playing", "● playing"]))
                .await;
            if let Ok(file) = std::env::var("HEADWATER_PICTURE") {
                std::fs::write(file, web.browser.screenshot().await).unwrap();
            }
            web.clicks("Timeline: Test Card").await;
            web.reads("tr[data-event=failed_over]", "Test Card").await;
            let lanes = "return document.querySelectorAll('[data-lane]').length";
            web.browser.until("a lane for each stream", lanes, |it| *it == 2).await;
            web.is_clean().await;
        }
    }
}
