//! A guide source with a server for its guide, refreshed without a gateway.

use std::fmt::Write as _;
use std::path::PathBuf;

use actors::{
    Fetch, FetchLimits, GuideError, GuideOptions, GuideParts, GuideRefreshStatus, GuideServices,
    GuideSummary, refresh_guide,
};
use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideState;
use domain::ids::GuideSourceId;
use domain::source_url::SourceUrl;
use storage::guide::GuideFiles;
use storage::{Models, Store};
use tempfile::TempDir;

use crate::import::fixture::{ListServer, blocking};

/// Time of the first refresh, in milliseconds since 1970: 2030-03-17T17:46:40Z.
pub const START: i64 = 1_900_000_000_000;
pub const DAY: i64 = 24 * 3_600_000;
pub const SOURCE: GuideSourceId = GuideSourceId(1);
/// Credentials in the address of the server.
pub const PASSWORD: &str = "hunter2";

pub struct GuideFixture {
    pub models: Models,
    pub parts: GuideParts,
    pub server: ListServer,
    _folder: TempDir,
}

/// Returns the dependencies of refreshes, with a store that has one source.
pub async fn guide_parts(source: GuideSource, uploads: PathBuf) -> GuideParts {
    headwater::install_tls();
    let (models, files) = blocking(move || {
        let store = Store::temporary(storage::records::schema()).unwrap();
        store.write_blocking(move |write| write.put(&source)).unwrap();
        (Models::new(store).unwrap(), GuideFiles::temporary().unwrap())
    })
    .await;
    GuideParts {
        models,
        files,
        fetch: Fetch::new(FetchLimits::default()).unwrap(),
        services: GuideServices::default(),
        uploads,
        unpacked_bytes_max: 64 << 20,
    }
}

impl GuideFixture {
    /// Creates a source whose guide the server has.
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = ListServer::start().await;
        let mut source = GuideSource::new(SOURCE, "Guide", GuideSourceKind::Xmltv, START);
        source.url = Some(SourceUrl::new(server.url.clone()));
        let parts = guide_parts(source, folder.path().join("uploads")).await;
        let models = parts.models.clone();
        Self { models, parts, server, _folder: folder }
    }

    pub async fn refresh(&self, at: i64) -> Result<GuideSummary, GuideError> {
        self.refresh_with(GuideOptions { at: Some(at), ..GuideOptions::default() }, |_| {}).await
    }

    pub async fn force(&self, at: i64) -> Result<GuideSummary, GuideError> {
        self.refresh_with(GuideOptions { at: Some(at), force: true, ..GuideOptions::default() }, |_| {}).await
    }

    pub async fn refresh_with(
        &self,
        options: GuideOptions,
        report: impl Fn(GuideRefreshStatus) + Send + Sync + 'static,
    ) -> Result<GuideSummary, GuideError> {
        refresh_guide(&self.parts, SOURCE, options, report).await
    }

    pub fn state(&self) -> GuideState {
        GuideState::clone(self.models.guide_states.load().get(SOURCE.0).expect("a refresh has ended"))
    }

    pub async fn change(&self, change: impl FnOnce(&mut GuideSource)) {
        let mut source = GuideSource::clone(self.models.guide_sources.load().get(SOURCE.0).unwrap());
        change(&mut source);
        self.models.store.write(move |write| write.put(&source)).await.unwrap();
    }

    /// Returns the guide channels, ordered by key.
    pub async fn channels(&self) -> Vec<GuideChannel> {
        let store = self.models.store.clone();
        blocking(move || {
            let mut channels = Vec::new();
            let all = store.collection::<GuideChannel>();
            all.for_each_of(u64::from(SOURCE.0), |it| channels.push(it)).unwrap();
            channels.sort_by(|one: &GuideChannel, other| one.key.cmp(&other.key));
            channels
        })
        .await
    }

    /// Returns every programme as `key start title`, ordered by key and start.
    pub async fn programmes(&self) -> Vec<String> {
        let channels = self.channels().await;
        let file = self.parts.files.file(SOURCE);
        blocking(move || {
            let mut found = Vec::new();
            for channel in channels {
                for it in file.iter().flat_map(|it| it.programmes(channel.id, i64::MIN, i64::MAX).unwrap()) {
                    let title = it.inner.split("<title").nth(1).and_then(|it| it.split(['>', '<']).nth(1));
                    found.push(format!("{} {} {}", channel.key, it.start, title.unwrap_or_default()));
                }
            }
            found
        })
        .await
    }
}

/// Returns a guide in XMLTV: channels `c0`, `c1`, …, each with a programme per hour from `from` on, in seconds since 1970.
pub fn guide(n_channels: usize, n_programmes: usize, from: i64) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n".to_owned();
    for channel in 0..n_channels {
        writeln!(text, "<channel id=\"c{channel}\"><display-name>Channel {channel}</display-name></channel>")
            .unwrap();
    }
    for channel in 0..n_channels {
        for number in 0..n_programmes {
            let start = from + 3_600 * i64::try_from(number).unwrap();
            let [start, stop] = [start, start + 3_600].map(xmltv_time);
            writeln!(
                text,
                "<programme start=\"{start}\" stop=\"{stop}\" channel=\"c{channel}\">\
                 <title>Show {number} of {channel}</title></programme>"
            )
            .unwrap();
        }
    }
    text + "</tv>\n"
}

/// Returns a time as XMLTV writes it.
pub fn xmltv_time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap().strftime("%Y%m%d%H%M%S +0000").to_string()
}
