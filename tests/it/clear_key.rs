//! Protected streams of playlists: ClearKey with a key in the list plays, others are refused by name.

/// These need ffmpeg, which makes the stream and decrypts it.
mod slow {
    use crate::support::client::{Request, fetch};
    use crate::support::gateway::Setup;
    use crate::support::tools;
    use crate::support::upstream::{MockResponse, Provider};

    const KEY: &str = "ffeeddccbbaa99887766554433221100";
    const KEY_ID: &str = "00112233445566778899aabbccddeeff";
    /// Bytes of a stream that plays, which contain some seconds.
    const ENOUGH: u64 = 150_000;
    const MANIFEST: &str = r#"<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011" type="static"
  mediaPresentationDuration="PT30S" minBufferTime="PT1S"><Period>
  <AdaptationSet mimeType="video/mp4" contentType="video">
    <Representation id="v" bandwidth="200000" codecs="avc1.42c00a" width="160" height="90">
      <BaseURL>picture.mp4</BaseURL>
    </Representation>
  </AdaptationSet>
</Period></MPD>"#;

    /// Makes a picture that is encrypted with the key.
    async fn encrypted() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.mp4").display().to_string();
        let picture = "-f lavfi -i testsrc2=size=160x90:rate=25 -t 30 -c:v libx264 -preset ultrafast -g 25";
        let output = "-pix_fmt yuv420p -movflags +faststart -encryption_scheme cenc-aes-ctr";
        let mut arguments = vec!["-v", "error"];
        arguments.extend(picture.split(' ').chain(output.split(' ')));
        arguments.extend(["-encryption_key", KEY, "-encryption_kid", KEY_ID, &path]);
        tools::text_of("ffmpeg", &arguments).await;
        std::fs::read(&path).unwrap()
    }

    /// Returns the number of pictures in a transport stream that can be decoded.
    async fn n_pictures(stream: &[u8]) -> u32 {
        let file = tools::saved(stream);
        let path = file.path().display().to_string();
        let count = ["-v", "quiet", "-count_frames", "-show_entries", "stream=nb_read_frames"];
        let text =
            tools::text_of("ffprobe", &[&count[..], &["-of", "default=nk=1:nw=1", &path]].concat()).await;
        text.lines().next().and_then(|it| it.parse().ok()).unwrap_or_default()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stream_with_its_clear_key_in_the_list_plays_and_others_are_refused_by_name() {
        let picture = encrypted().await;
        let provider = Provider::start();
        provider.computes(move |request| match request.path.rsplit('/').next()? {
            "list.mpd" => Some(MockResponse::text("application/dash+xml", MANIFEST)),
            "picture.mp4" => Some(MockResponse::text("video/mp4", picture.clone())),
            _ => None,
        });
        let entry = |name: &str, system: &str, licence: &str| {
            let option = "#KODIPROP:inputstream.adaptive.license_";
            let url = provider.url(&format!("/{name}/list.mpd"));
            format!("#EXTINF:-1,{name}\n{option}type={system}\n{option}key={licence}\n{url}\n")
        };
        let list = [
            "#EXTM3U\n".to_owned(),
            entry("clear", "org.w3.clearkey", &format!("{KEY_ID}:{KEY}")),
            entry("widevine", "com.widevine.alpha", "https://licence.example/"),
        ];
        let gateway = Setup::new().list(&list.concat()).start().await;

        let viewer = gateway.watch("clear").await;
        viewer.more_bytes(ENOUGH).await;
        let stream = viewer.recording();
        viewer.leave().await;
        // Without the key, no picture can be decoded.
        let n = n_pictures(&stream).await;
        assert!(n >= 25, "{n} pictures in {} bytes", stream.len());

        let path = format!("/proxy/ts/stream/{}", gateway.channel("widevine").uuid);
        let reply = fetch(gateway.address, Request::get(&path)).await;
        assert!(reply.status() == 503 && reply.text().contains("Widevine"), "{}", reply.text());
        assert!(!provider.requests().iter().any(|it| it.path.contains("widevine")), "nothing is fetched");

        gateway.until_idle().await;
    }
}
