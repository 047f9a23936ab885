//! From a channel to its programmes.

use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GuideChannelId};
use serde_json::json;
use services::guide::{DAY, GuideEntry, GuideReader, read_guide};
use uuid::Uuid;

use super::guide_testing::{HOUR, four_days, guide_source, now, programme, put_guide};
use crate::testing::Rest;

fn channel(id: u32, tvg_id: Option<&str>) -> Channel {
    let tvg_id = tvg_id.map(str::to_owned);
    Channel { tvg_id, ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0) }
}

fn titles(found: &[GuideEntry]) -> Vec<String> {
    found.iter().map(|it| it.programme().title().to_owned()).collect()
}

/// Runs a function with the guides as they are now.
async fn with_guides<R: Send + 'static>(rest: &Rest, run: fn(&GuideReader) -> R) -> R {
    let guides = rest.context.guide.guides.reader();
    read_guide(move || Ok(run(&guides))).await.unwrap()
}

#[tokio::test]
async fn a_channel_shows_the_running_and_the_next_programme_of_its_guide() {
    let (rest, now) = (Rest::start().await, now());
    let source = guide_source(1, GuideSourceKind::Xmltv);
    put_guide(&rest, source, vec![(1, "one", four_days(now, "One")), (2, "two", four_days(now, "Two"))])
        .await;
    let found = with_guides(&rest, |guides| {
        let linked = Channel { guide_channel: Some(GuideChannelId(2)), ..channel(2, Some("one")) };
        [channel(1, Some("ONE")), linked, channel(3, None), channel(4, Some("other"))].map(|it| {
            let (running, next) = guides.channel_guide(&it)?.now_and_next(guides.now);
            Some(titles(&[running?, next?]))
        })
    });
    let names = |title: &str| Some(vec![format!("{title} today"), format!("{title} tomorrow")]);
    assert_eq!(found.await, [names("One"), names("Two"), None, None]);
}

#[tokio::test]
async fn a_gap_has_no_running_programme_and_a_next_one() {
    let (rest, now) = (Rest::start().await, now());
    let programmes = vec![programme(now, -9, -5, "Before"), programme(now, 50, 60, "After")];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", programmes)]).await;
    let found = with_guides(&rest, |guides| {
        let (running, next) =
            guides.channel_guide(&channel(1, Some("one"))).unwrap().now_and_next(guides.now);
        (running.is_none(), titles(&[next.unwrap()]))
    });
    assert_eq!(found.await, (true, vec!["After".to_owned()]));
}

#[tokio::test]
async fn the_programme_that_began_last_of_several_at_a_time_runs() {
    let (rest, now) = (Rest::start().await, now());
    let programmes = [(-3, 5, "Long"), (-1, 1, "Short"), (-2, 1, "Other"), (2, 3, "Next")]
        .map(|(from, until, title)| programme(now, from, until, title));
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", programmes.into())]).await;
    let found = with_guides(&rest, |guides| {
        let (running, next) =
            guides.channel_guide(&channel(1, Some("one"))).unwrap().now_and_next(guides.now);
        titles(&[running.unwrap(), next.unwrap()])
    });
    assert_eq!(found.await, ["Short", "Next"]);
}

/// Holds T-epg.2.
#[tokio::test]
async fn an_answer_that_a_refresh_overtakes_has_one_guide() {
    let (rest, now) = (Rest::start().await, now());
    let source = guide_source(1, GuideSourceKind::Xmltv);
    let guide = |title: &str| vec![(1, "one", four_days(now, title)), (2, "two", four_days(now, title))];
    put_guide(&rest, source.clone(), guide("Old")).await;
    let guides = Arc::new(rest.context.guide.guides.reader());
    let read = async |id: u32, tvg_id: &'static str| {
        let guides = Arc::clone(&guides);
        let found = read_guide(move || {
            let guide = guides.channel_guide(&channel(id, Some(tvg_id))).expect("it has a guide");
            Ok(titles(&guide.upcoming(guides.now, 1, guides.now + DAY)))
        });
        found.await.unwrap()
    };
    assert_eq!(read(1, "one").await, ["Old today"]);
    put_guide(&rest, source, guide("New")).await;
    assert_eq!(read(2, "two").await, ["Old today"]);
    let running = with_guides(&rest, |guides| {
        let guide = guides.channel_guide(&channel(2, Some("two"))).unwrap();
        titles(&guide.upcoming(guides.now, 1, guides.now + DAY))
    });
    assert_eq!(running.await, ["New today"]);
}

#[tokio::test]
async fn programmes_part_by_part_are_complete_and_each_part_is_small() {
    let (rest, now) = (Rest::start().await, now());
    let mut programmes: Vec<_> =
        (0..1_000).map(|n| programme(now, 2 * n, 2 * n + 2, &n.to_string())).collect();
    programmes.push(programme(now, 2_000, 2_100, "long"));
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", programmes)]).await;
    let guides = rest.context.guide.guides.reader();
    let compared = read_guide(move || {
        let guide = guides.channel_guide(&channel(1, Some("one"))).unwrap();
        for (from, until) in [(-10, 4_000), (3, 1_077), (3, 4), (2_050, 2_060), (2_100, 2_200), (5, 5)] {
            let overlaps = |(begin, end): (i64, i64)| begin < until && end > from;
            let mut expected: Vec<_> =
                (0..1_000).filter(|n| overlaps((2 * n, 2 * n + 2))).map(|n| n.to_string()).collect();
            expected.extend(overlaps((2_000, 2_100)).then(|| "long".to_owned()));
            let (from, until) = (now + from * HOUR, now + until * HOUR);
            assert_eq!(titles(&guide.programmes(from, until)), expected);
            let (mut n_parts, mut n_bytes_max, mut starts) = (0, 0, Vec::new());
            for part in guide.parts(from, until) {
                let mut n_bytes = 0;
                part.for_each(|_, start, _, inner| {
                    n_bytes += inner.len();
                    starts.push(start);
                });
                (n_parts, n_bytes_max) = (n_parts + 1, n_bytes.max(n_bytes_max));
            }
            assert_eq!((starts.len(), starts.is_sorted()), (expected.len(), true));
            assert!(n_bytes_max < 10_000 && (n_parts > 1 || expected.len() < 100), "{n_parts} {n_bytes_max}");
        }
        Ok(())
    });
    compared.await.unwrap();
}

#[tokio::test]
async fn a_generated_guide_follows_from_the_name_of_the_channel() {
    let rest = Rest::start().await;
    let properties =
        json!({ "title_pattern": "(?<title>Channel) (?<n>\\d+)", "title_template": "{title} no. {n}" });
    let source = GuideSource {
        custom_properties: properties.as_object().unwrap().clone(),
        ..guide_source(1, GuideSourceKind::Generated)
    };
    rest.put([source.clone()]).await;
    rest.put([GuideChannel {
        id: GuideChannelId(1),
        source: source.id,
        key: "dummy".to_owned(),
        names: Vec::new(),
        icon: None,
    }])
    .await;
    let found = with_guides(&rest, |guides| {
        let linked = Channel { guide_channel: Some(GuideChannelId(1)), ..channel(7, None) };
        let guide = guides.channel_guide(&linked).unwrap();
        let running = guide.now_and_next(guides.now).0.unwrap();
        let all = guide.programmes(0, guides.now + 1000 * DAY);
        let is_near = |it: &GuideEntry| (guides.now - 2 * DAY..guides.now + 8 * DAY).contains(&it.start);
        assert!(all.iter().all(is_near), "a name tells nothing about later days");
        let again = guides.generated(&linked, running.start).unwrap().1;
        (titles(std::slice::from_ref(&running)), running.id == again.id, running.id.to_string())
    });
    let (titles, is_same, id) = found.await;
    assert_eq!(titles, ["Channel no. 7"]);
    assert!(is_same && id.starts_with("dummy-7-"), "{id}");
}

#[tokio::test]
async fn an_inactive_source_has_no_programmes() {
    let (rest, now) = (Rest::start().await, now());
    let source = GuideSource { is_active: false, ..guide_source(1, GuideSourceKind::Xmltv) };
    put_guide(&rest, source, vec![(1, "one", four_days(now, "One"))]).await;
    let has_none = with_guides(&rest, |guides| {
        let linked = Channel { guide_channel: Some(GuideChannelId(1)), ..channel(1, Some("one")) };
        guides.channel_guide(&linked).is_none() && guides.file_guide(GuideChannelId(1)).is_none()
    });
    assert!(has_none.await);
}
