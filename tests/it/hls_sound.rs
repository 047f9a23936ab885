//! Sound that a player of fMP4 cannot play is converted: for those players only, and once for each channel.

/// These need ffmpeg.
mod slow {
    use std::sync::Arc;

    use crate::hls_output::{Watching, clients, live, open};
    use crate::support::api::Api;
    use crate::support::client::{Player, Request};
    use crate::support::gateway::{Setup, TestGateway};
    use crate::support::signal::{Clip, TEST_PICTURE};
    use crate::support::upstream::Provider;
    use crate::support::users::create_user;
    use crate::support::{eventually, tools};

    const BROWSER: &str =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131 Safari/537.36";
    const SAFARI: &str =
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.4 Safari/605.1.15";
    const BOX: &str = "VLC/3.0.20 LibVLC/3.0.20";

    async fn clip(sound: &str) -> Arc<Clip> {
        let common =
            ["-t", "40", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25"];
        let output = [&common[..], &["-ac", "2", "-c:a", sound]].concat();
        Clip::make(&format!("hls-sound-{sound}"), &TEST_PICTURE, &output).await
    }

    /// Starts a gateway with the channels `MP2`, `AC-3` and `AAC`, named after their sounds.
    async fn set_up(setup: Setup) -> (Provider, TestGateway) {
        let provider = Provider::start();
        let mut entries = Vec::new();
        for (name, path, sound) in
            [("MP2", "/1.ts", "mp2"), ("AC-3", "/2.ts", "ac3"), ("AAC", "/3.ts", "aac")]
        {
            provider.path(path).plays(clip(sound).await);
            entries.push((name, name, path));
        }
        let gateway = setup.list(&provider.playlist(&entries)).start().await;
        (provider, gateway)
    }

    /// Returns the codecs of the newest segment of a player.
    async fn codecs(watching: &Watching<'_>) -> Vec<String> {
        let playlist = watching.playlist().await;
        let mut bytes = Vec::new();
        if let Some((_, map)) = playlist.rsplit_once("#EXT-X-MAP:URI=\"") {
            bytes.extend(watching.fetch(map.split('"').next().unwrap()).await.bytes);
        }
        let segment = playlist.lines().rfind(|it| !it.starts_with('#')).unwrap();
        bytes.extend(watching.fetch(segment).await.bytes);
        codecs_in(&bytes).await
    }

    async fn codecs_in(bytes: &[u8]) -> Vec<String> {
        let file = tools::saved(bytes);
        let path = file.path().display().to_string();
        let shown = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &path];
        let text = tools::text_of("ffprobe", &shown).await;
        let mut codecs: Vec<String> =
            text.lines().map(|it| it.trim_matches(',').to_owned()).filter(|it| !it.is_empty()).collect();
        codecs.sort();
        codecs.dedup();
        codecs
    }

    /// Returns the number of ffmpeg processes below this one.
    fn n_converters() -> usize {
        let pids =
            std::fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().into_string().ok());
        let read = |pid: &str, name: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
        };
        // After the name, which may contain anything: state, parent.
        let parent = |pid: &str| {
            let stat = read(pid, "stat");
            stat.rsplit(')').next()?.split_whitespace().nth(1).map(str::to_owned)
        };
        let own = std::process::id().to_string();
        let is_below = |pid: &str| {
            std::iter::successors(Some(pid.to_owned()), |it| parent(it)).skip(1).any(|it| it == own)
        };
        pids.filter(|it| read(it, "comm") == "ffmpeg\n" && is_below(it)).count()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn browsers_share_one_conversion_of_the_sound_and_others_get_the_channel_as_it_is() {
        let (provider, gateway) = set_up(Setup::new()).await;
        let api = Api::first_admin(&gateway).await;
        let begin = async |channel: &str, query: &str, agent: &str| {
            Watching::begin(&gateway, &format!("{}{query}", open(&gateway, channel)), agent).await
        };
        let set_top_box = begin("MP2", "?container=fmp4", BOX).await;
        assert_eq!(
            (codecs(&set_top_box).await[0].as_str(), gateway.gateway.counts().transcoders),
            ("h264", 0)
        );

        // Several browsers at once, with all formats.
        let one = format!("{BROWSER} one");
        let (plain, quick) = tokio::join!(begin("MP2", "", BROWSER), begin("MP2", "?ll=1", &one));
        let safari = begin("MP2", "", SAFARI).await;
        let path = format!("{}?output_format=fmp4", gateway.path("MP2"));
        let mp4 = Player::ask(gateway.address, Request::get(path).header("User-Agent", BROWSER)).await;
        assert_eq!(mp4.status().await, 200);
        mp4.more_bytes(100_000).await;
        for watching in [&plain, &quick, &safari] {
            assert_eq!(codecs(watching).await, ["aac", "h264"]);
        }
        assert_eq!(codecs_in(&mp4.recording()).await, ["aac", "h264"]);
        assert_eq!(gateway.gateway.counts().transcoders, 1);
        assert_eq!(n_converters(), 1);
        let found = clients(&api, &gateway, "MP2").await;
        assert_eq!(found.len(), 5, "each is one viewer: {found:?}");
        assert!(!codecs(&set_top_box).await.contains(&"aac".to_owned()));

        // Transport streams are not for browsers alone, and AAC needs no conversion.
        let ts = begin("MP2", "?container=ts", BROWSER).await;
        assert_eq!(codecs(&ts).await, ["h264", "mp2"]);
        let plain_sound = begin("AAC", "", BROWSER).await;
        assert_eq!(codecs(&plain_sound).await, ["aac", "h264"]);
        // Apple devices play AC-3 in fMP4, and others do not.
        assert_eq!(codecs(&begin("AC-3", "", SAFARI).await).await, ["ac3", "h264"]);
        assert_eq!(gateway.gateway.counts().transcoders, 1);
        assert_eq!(codecs(&begin("AC-3", "", BROWSER).await).await, ["aac", "h264"]);
        assert_eq!((gateway.gateway.counts().transcoders, n_converters()), (2, 2));

        assert_eq!((provider.open_on("/1.ts"), provider.open_on("/2.ts")), (1, 1));
        drop(mp4);
        eventually("the end of the conversions", || gateway.gateway.counts().transcoders == 0).await;
        gateway.until_idle().await;
        assert_eq!(n_converters(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_user_with_one_seat_hears_the_converted_sound_and_a_conversion_beyond_the_limit_is_refused() {
        let (_provider, gateway) = set_up(Setup::new().engine(|it| it.transcoders_max = 1)).await;
        let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
        let watching = Watching::begin(&gateway, &live(&anna, &gateway, "MP2", "m3u8"), BROWSER).await;
        assert_eq!(codecs(&watching).await, ["aac", "h264"]);
        assert_eq!((gateway.gateway.counts().seats, gateway.gateway.counts().clients), (1, 1));
        let refused = Watching::master(&gateway, &open(&gateway, "AC-3"), BROWSER).await;
        assert_eq!(refused.status(), 503, "{}", refused.text());
        assert!(refused.text().contains("limit of 1 conversions"), "{}", refused.text());
        // The same channel needs no other one.
        let another = Watching::begin(&gateway, &open(&gateway, "MP2"), SAFARI).await;
        assert_eq!(codecs(&another).await, ["aac", "h264"]);
    }
}
