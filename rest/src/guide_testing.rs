//! Guides for tests, written as a refresh writes them.

use actors::now_ms;
use domain::guide::channel::GuideChannel;
use domain::guide::programme::{LocalText, Programme, to_xml};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::{GuideChannelId, GuideSourceId};

use crate::testing::Rest;

/// Length of an hour, in seconds.
pub(crate) const HOUR: i64 = 60 * 60;

/// Returns an active source without a guide.
pub(crate) fn guide_source(id: u32, kind: GuideSourceKind) -> GuideSource {
    GuideSource::new(GuideSourceId(id), format!("Guide {id}"), kind, 0)
}

/// Returns a programme from `from` to `until`, in hours from `now`.
pub(crate) fn programme(now: i64, from: i64, until: i64, title: &str) -> Programme {
    Programme {
        start: now + from * HOUR,
        stop: now + until * HOUR,
        titles: vec![LocalText::new(title)],
        descriptions: vec![LocalText::new(format!("About {title}."))],
        ..Programme::default()
    }
}

/// Returns four programmes of 24 hours each, of which the second one runs now.
pub(crate) fn four_days(now: i64, title: &str) -> Vec<Programme> {
    let names = ["yesterday", "today", "tomorrow", "later"];
    let programme =
        |(n, name): (i64, &str)| programme(now, 24 * n - 36, 24 * n - 12, &format!("{title} {name}"));
    (0..).zip(names).map(programme).collect()
}

/// Returns the time, in seconds since 1970.
pub(crate) fn now() -> i64 {
    now_ms() / 1000
}

/// A guide channel for tests: its id, its key, and its programmes.
pub(crate) type TestChannel<'a> = (u32, &'a str, Vec<Programme>);

/// Writes the next guide of a source.
pub(crate) async fn put_guide(rest: &Rest, source: GuideSource, channels: Vec<TestChannel<'_>>) {
    let (files, id, time_zone) =
        (rest.context.guide.guides.files.clone(), source.id, source.time_zone.clone());
    let records = channels.iter().map(|(channel, key, _)| GuideChannel {
        id: GuideChannelId(*channel),
        source: id,
        key: (*key).to_owned(),
        names: vec![format!("Name of {key}")],
        icon: None,
    });
    let records: Vec<_> = records.collect();
    let all: Vec<(u32, Vec<Programme>)> = channels.into_iter().map(|it| (it.0, it.2)).collect();
    let writing = tokio::task::spawn_blocking(move || {
        let mut writer = files.begin(id).unwrap();
        for (channel, it) in all.iter().flat_map(|(channel, all)| all.iter().map(|it| (*channel, it))) {
            let mut inner = String::new();
            to_xml(it, &mut inner);
            writer.add(GuideChannelId(channel), it.start, it.stop, &inner).unwrap();
        }
        writer.finish().unwrap()
    });
    let finished = writing.await.unwrap();
    let generation = finished.generation();
    rest.put([source]).await;
    rest.put(records).await;
    let state = GuideState { status: GuideStatus::Success, generation, time_zone, ..GuideState::new(id) };
    rest.put([state]).await;
    let files = rest.context.guide.guides.files.clone();
    tokio::task::spawn_blocking(move || files.install(finished)).await.unwrap();
}
