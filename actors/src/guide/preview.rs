//! Reads the channels of a guide that is not a source yet, to show what it would give.

use std::sync::Arc;

use domain::guide::programme::Programme;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideState;
use domain::guide::xmltv::XmltvSummary;
use domain::ids::GuideSourceId;
use domain::source_url::SourceUrl;
use storage::guide::StoredProgramme;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::collector::GUIDE_CHANNELS_MAX;
use super::error::GuideError;
use super::input::{GuideContext, GuideInput, GuideSink};
use super::progress::GuidePhase;
use super::run::GuideParts;
use super::xmltv::XmltvInput;
use crate::clock::now_ms;

/// Programmes that are read at most. Nearly all guides name their channels before.
const PROGRAMMES_MAX: u64 = 50_000;

/// The channels of a guide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidePreview {
    /// Key and names of each channel.
    pub channels: Vec<(String, Vec<String>)>,
    n_programmes: u64,
    /// Whether enough was read, so that the rest is left out.
    is_full: bool,
}

/// Reads the guide at this address. Dropping the future stops the reading soon after.
pub(super) async fn preview(parts: GuideParts, url: SourceUrl) -> Result<GuidePreview, GuideError> {
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
        let mut sink = PreviewSink { found: GuidePreview::default(), stop };
        match XmltvInput::new(context).run(&mut sink) {
            Err(GuideError::Stopped) if sink.found.is_full => Ok(sink.found),
            done => done.map(|_| sink.found),
        }
    };
    spawn_blocking(work).await.unwrap_or(Err(GuideError::Panicked))
}

struct PreviewSink {
    found: GuidePreview,
    stop: CancellationToken,
}

impl PreviewSink {
    fn check(&self) -> Result<(), GuideError> {
        if self.found.is_full || self.stop.is_cancelled() { Err(GuideError::Stopped) } else { Ok(()) }
    }
}

impl GuideSink for PreviewSink {
    fn channel(&mut self, key: &str, names: &[String], _icon: Option<&str>) -> Result<(), GuideError> {
        self.found.channels.push((key.to_owned(), names.to_vec()));
        self.found.is_full = self.found.channels.len() >= GUIDE_CHANNELS_MAX;
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
