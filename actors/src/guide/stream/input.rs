//! The guide of a source: the collected programmes, and those of the former guide beside them.

use std::collections::BTreeMap;

use domain::guide::channel::GuideChannel;
use domain::guide::dvb::{CollectedProgramme, ServiceGuide, ServiceId};
use serde_json::json;
use storage::guide::StoredProgramme;

use super::StreamGuides;
use crate::guide::collector::Window;
use crate::guide::error::GuideError;
use crate::guide::input::{ContentMark, GuideContent, GuideContext, GuideInput, GuideSink};
use crate::guide::progress::GuidePhase;

/// Reads the guide of a source from what was collected.
pub(in crate::guide) struct StreamInput {
    context: GuideContext,
    guides: StreamGuides,
}

/// A guide channel: its names, and its programmes by start.
#[derive(Default)]
struct Collected {
    names: Vec<String>,
    programmes: BTreeMap<i64, CollectedProgramme>,
}

impl StreamInput {
    pub(in crate::guide) fn new(context: GuideContext) -> Self {
        let guides = context.services.stream_guides.clone();
        Self { context, guides }
    }

    /// Returns what was collected, by the key of the guide channel.
    fn collected(&self) -> BTreeMap<String, Collected> {
        let property = self.context.source.custom_properties.get("include_other_services");
        let with_others = property == Some(&json!(true));
        let guides = self.guides.shared.guides.lock();
        let mut all = BTreeMap::<String, Collected>::new();
        let mut add = |key: String, service: ServiceId, guide: &ServiceGuide| {
            let entry = all.entry(key).or_default();
            entry.names.push(guide.name.clone().unwrap_or_else(|| service.key()));
            entry.programmes.extend(guide.programmes.iter().map(|(start, it)| (*start, it.clone())));
        };
        for (service, guide) in guides.services().filter(|it| !it.1.programmes.is_empty()) {
            if guide.keys.is_empty() && with_others {
                add(service.key(), service, guide);
            }
            for key in &guide.keys {
                add(key.clone(), service, guide);
            }
        }
        all
    }
}

impl GuideInput for StreamInput {
    fn run(&mut self, sink: &mut dyn GuideSink) -> Result<GuideContent, GuideError> {
        sink.progress(GuidePhase::Parsing, 0)?;
        let collected = self.collected();
        let context = &self.context;
        if collected.is_empty() && context.has_guide {
            return Ok(GuideContent::Unchanged(ContentMark::default()));
        }
        for (key, channel) in &collected {
            sink.channel(key, &channel.names, None)?;
            for (start, (stop, inner)) in &channel.programmes {
                sink.stored(key, &StoredProgramme { start: *start, stop: *stop, inner: inner.clone() })?;
            }
        }
        // A restart forgets what was collected before, and tables cover a part of the guide at a time.
        let Some(former) = context.files.file(context.source.id) else {
            return Ok(GuideContent::Whole(ContentMark::default()));
        };
        let Window { since, .. } = Window::new(&context.source, context.now.div_euclid(1000));
        let mut known = Vec::new();
        let channels = context.models.store.collection::<GuideChannel>();
        channels.for_each_of(u64::from(context.source.id.0), |it| known.push(it))?;
        for channel in known {
            let new = collected.get(&channel.key).map(|it| &it.programmes);
            let mut kept = former.programmes(channel.id, since, i64::MAX)?;
            kept.retain(|it| !new.is_some_and(|new| overlaps(new, it)));
            if !kept.is_empty() && new.is_none() {
                sink.channel(&channel.key, &channel.names, channel.icon.as_deref())?;
            }
            for programme in kept {
                sink.stored(&channel.key, &programme)?;
            }
        }
        Ok(GuideContent::Whole(ContentMark::default()))
    }

    /// Channels come and go with what is watched.
    fn may_shrink(&self) -> bool {
        true
    }
}

/// Returns whether a programme overlaps one of these, which do not overlap each other.
fn overlaps(all: &BTreeMap<i64, CollectedProgramme>, one: &StoredProgramme) -> bool {
    all.range(..one.stop).next_back().is_some_and(|(_, (stop, _))| *stop > one.start)
}
