//! Reads the channels of a guide that is not a source yet, to show what it would give.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use domain::egress::Reach;
use domain::guide::programme::Programme;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideState;
use domain::guide::xmltv::XmltvSummary;
use domain::ids::GuideSourceId;
use domain::source_url::SourceUrl;
use media::spawn_blocking;
use storage::guide::StoredProgramme;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::collector::{GUIDE_CHANNELS_MAX, add_names, usable_key};
use super::error::GuideError;
use super::input::{GuideContext, GuideInput, GuideSink};
use super::progress::GuidePhase;
use super::run::GuideParts;
use super::xmltv::XmltvInput;
use crate::clock::now_ms;

/// Programmes that are read at most. Nearly all guides name their channels before.
const PROGRAMMES_MAX: u64 = 50_000;
/// Maximum length of all keys and names that are kept, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Maximum time of one preview.
const PREVIEW_MAX: Duration = Duration::from_secs(60);

/// The channels of a guide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidePreview {
    /// Key and names of each channel; one entry for each key.
    pub channels: Vec<(String, Vec<String>)>,
    n_programmes: u64,
    /// Whether enough was read, so that the rest is left out.
    is_full: bool,
}

/// Reads the guide at this address, which may lead as far as `reach`. Dropping the future stops the reading soon after.
pub(super) async fn preview(
    parts: GuideParts,
    url: SourceUrl,
    reach: Reach,
) -> Result<GuidePreview, GuideError> {
    let done = timeout(PREVIEW_MAX, read(parts, url, reach)).await;
    done.unwrap_or(Err(GuideError::Slow { seconds: PREVIEW_MAX.as_secs() }))
}

async fn read(parts: GuideParts, url: SourceUrl, reach: Reach) -> Result<GuidePreview, GuideError> {
    let stop = CancellationToken::new();
    let _stop_when_dropped = stop.clone().drop_guard();
    let (id, now) = (GuideSourceId(0), now_ms());
    let source = GuideSource { url: Some(url), ..GuideSource::new(id, "", GuideSourceKind::Xmltv, now) };
    let context = GuideContext {
        source: Arc::new(source),
        state: GuideState::new(id),
        models: parts.models,
        fetch: parts.fetch,
        services: parts.services,
        runtime: Handle::current(),
        stop: stop.clone(),
        uploads: parts.uploads,
        files: parts.files,
        now,
        force: true,
        has_guide: false,
        unpacked_bytes_max: parts.unpacked_bytes_max,
    };
    let work = move || {
        let mut sink = PreviewSink::new(stop);
        match XmltvInput::new(context).within(reach).run(&mut sink) {
            Err(GuideError::Stopped) if sink.found.is_full => Ok(sink.found),
            done => done.map(|_| sink.found),
        }
    };
    spawn_blocking(work).await.unwrap_or(Err(GuideError::Panicked))
}

struct PreviewSink {
    found: GuidePreview,
    /// The position of the channel of each key.
    positions: HashMap<String, usize>,
    /// Length of all keys and names, in bytes.
    n_bytes: usize,
    stop: CancellationToken,
}

impl PreviewSink {
    fn new(stop: CancellationToken) -> Self {
        Self { found: GuidePreview::default(), positions: HashMap::new(), n_bytes: 0, stop }
    }

    fn check(&self) -> Result<(), GuideError> {
        if self.found.is_full || self.stop.is_cancelled() { Err(GuideError::Stopped) } else { Ok(()) }
    }
}

impl GuideSink for PreviewSink {
    fn channel(&mut self, key: &str, names: &[String], _icon: Option<&str>) -> Result<(), GuideError> {
        let Some(key) = usable_key(key) else { return self.check() };
        let channels = &mut self.found.channels;
        let at = match self.positions.entry(key.to_owned()) {
            Entry::Occupied(at) => *at.get(),
            Entry::Vacant(place) => {
                channels.push((key.to_owned(), Vec::new()));
                // The key is kept twice.
                self.n_bytes += 2 * key.len();
                *place.insert(channels.len() - 1)
            }
        };
        if let Some((_, known)) = channels.get_mut(at) {
            let n_before = known.len();
            add_names(known, names);
            self.n_bytes += known.iter().skip(n_before).map(String::len).sum::<usize>();
        }
        self.found.is_full |= channels.len() >= GUIDE_CHANNELS_MAX || self.n_bytes >= TEXT_BYTES_MAX;
        self.check()
    }

    fn programme(&mut self, _key: &str, _programme: &Programme) -> Result<(), GuideError> {
        self.found.n_programmes += 1;
        self.found.is_full |= self.found.n_programmes >= PROGRAMMES_MAX;
        self.check()
    }

    fn stored(&mut self, _key: &str, _programme: &StoredProgramme) -> Result<(), GuideError> {
        self.check()
    }

    fn skipped(&mut self, _n: u64) {}

    fn damaged(&mut self, _found: &XmltvSummary) {}

    fn progress(&mut self, _phase: GuidePhase, _percent: u8) -> Result<(), GuideError> {
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use domain::egress::{AllowedNetworks, Distance};
    use storage::guide::GuideFiles;
    use storage::{Models, Store};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::fetch::{Fetch, FetchLimits};
    use crate::guide::services::GuideServices;

    async fn parts() -> GuideParts {
        // An error means that another test installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let opened = spawn_blocking(|| {
            let store = Store::temporary(storage::records::schema()).unwrap();
            (Models::new(store).unwrap(), GuideFiles::temporary().unwrap())
        });
        let (models, files) = opened.await.unwrap();
        GuideParts {
            models,
            files,
            fetch: Fetch::new(FetchLimits::default()).unwrap(),
            services: GuideServices::default(),
            uploads: std::env::temp_dir(),
            unpacked_bytes_max: 1 << 20,
        }
    }

    /// Answers each request with a guide of one channel.
    async fn serve() -> SourceUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = SourceUrl::new(format!("http://{}/guide.xml", listener.local_addr().unwrap()));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                let guide = "<tv><channel id=\"a\"><display-name>A</display-name></channel></tv>";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{guide}",
                    guide.len()
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        url
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_playlist_from_the_internet_leads_no_preview_to_this_machine() {
        let (parts, url) = (parts().await, serve().await);
        let public = Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist);
        let refused = preview(parts.clone(), url.clone(), public).await;
        assert!(matches!(refused, Err(GuideError::Fetch(_))), "{refused:?}");
        for allowed in [
            Reach::named_by(Distance::Loopback, AllowedNetworks::OfPlaylist),
            Reach::named_by(Distance::Public, AllowedNetworks::Loopback),
        ] {
            let found = preview(parts.clone(), url.clone(), allowed).await.unwrap();
            assert_eq!(found.channels, [("a".to_owned(), vec!["A".to_owned()])]);
        }
    }

    fn sink() -> PreviewSink {
        PreviewSink::new(CancellationToken::new())
    }

    #[test]
    fn a_preview_keeps_one_entry_for_each_key_and_bounded_texts() {
        let mut sink = sink();
        let long = "x".repeat(1_000);
        let names: Vec<String> = (0..50).map(|it| format!("{it} {long}")).collect();
        let (long_key, all) = ("k".repeat(2_000), names.as_slice());
        for (key, names) in [("a", &all[..2]), (" a ", &all[1..]), ("", all), (long_key.as_str(), all)] {
            sink.channel(key, names, None).unwrap();
        }
        let [(key, kept)] = sink.found.channels.as_slice() else { panic!("{:?}", sink.found.channels.len()) };
        assert_eq!((key.as_str(), kept.len()), ("a", 32));
        assert!(kept.iter().all(|it| it.chars().count() <= 512));
    }

    #[test]
    fn a_preview_ends_when_its_texts_are_too_long() {
        let mut sink = sink();
        let names: Vec<String> = (0..32).map(|it| format!("{it} {}", "\u{1f600}".repeat(510))).collect();
        let ended = (0..GUIDE_CHANNELS_MAX).find(|it| sink.channel(&it.to_string(), &names, None).is_err());
        assert!(ended.is_some_and(|it| it < 2_000) && sink.found.is_full, "{ended:?}");
    }
}
