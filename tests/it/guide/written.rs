//! Programmes that clients write.

use actors::{WrittenEdit, WrittenError};
use domain::guide::channel::GuideChannel;
use domain::guide::programme::{LocalText, Programme, ProgrammeId};
use domain::ids::GuideSourceId;
use serde_json::json;

use super::sources::GuideStory;
use crate::import::fixture::blocking;

fn programme(title: &str, start: i64, stop: i64) -> Box<Programme> {
    let titles = vec![LocalText { lang: None, text: title.to_owned() }];
    Box::new(Programme { start, stop, titles, ..Programme::default() })
}

impl GuideStory {
    /// Returns the titles of the programmes of a source, by channel and start.
    async fn titles(&self, source: GuideSourceId) -> Vec<String> {
        let models = self.gateway.models().clone();
        let file = self.gateway.gateway.guide_files().file(source);
        blocking(move || {
            let mut channels = Vec::new();
            let all = models.store.collection::<GuideChannel>();
            all.for_each_of(u64::from(source.0), |it| channels.push(it)).unwrap();
            channels.sort_by_key(|it: &GuideChannel| it.id);
            let mut titles = Vec::new();
            for channel in channels {
                for it in file.iter().flat_map(|it| it.programmes(channel.id, i64::MIN, i64::MAX).unwrap()) {
                    titles.push(it.inner.replace("<title>", "").replace("</title>", ""));
                }
            }
            titles
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programmes_are_written_changed_and_removed_all_at_once() {
    let story = GuideStory::new().await;
    let path = story.create(json!({ "name": "Own", "source_type": "written" })).await;
    let id = story.admin.get(&path).await.body["id"].as_u64().unwrap();
    let source = GuideSourceId(u32::try_from(id).unwrap());
    let guides = story.gateway.gateway.system().guide_refreshes();
    let now = actors::now_ms() / 1000;
    let put = |title: &str, start: i64| WrittenEdit::Put {
        key: "own.example".to_owned(),
        programme: programme(title, start, start + 600),
        replaces: None,
    };
    let ids = guides.write_programmes(source, vec![put("One", now), put("Two", now + 600)]).await.unwrap();
    assert_eq!(story.titles(source).await, ["One", "Two"]);
    assert_eq!((ids.len(), ids[1].start()), (2, now + 600));
    // Moved and renamed.
    let moved = WrittenEdit::Put {
        key: "own.example".to_owned(),
        programme: programme("Three", now + 1_200, now + 1_800),
        replaces: Some(ids[0]),
    };
    guides.write_programmes(source, vec![moved]).await.unwrap();
    assert_eq!(story.titles(source).await, ["Two", "Three"]);
    guides.write_programmes(source, vec![WrittenEdit::Remove(ids[1])]).await.unwrap();
    assert_eq!(story.titles(source).await, ["Three"]);

    // Nothing of an edit counts if a part of it is wrong.
    let unknown = vec![put("Four", now + 9_000), WrittenEdit::Remove(ids[1])];
    let refused = guides.write_programmes(source, unknown).await;
    assert!(matches!(refused, Err(WrittenError::NoSuchProgramme)), "{refused:?}");
    let backwards = WrittenEdit::Put {
        key: "own.example".to_owned(),
        programme: programme("Back", now, now - 1),
        replaces: None,
    };
    let refused = guides.write_programmes(source, vec![backwards]).await;
    assert!(matches!(refused, Err(WrittenError::Times)), "{refused:?}");
    assert_eq!(story.titles(source).await, ["Three"]);

    // Edits at the same time follow each other.
    let edits = (0..8).map(|it| guides.write_programmes(source, vec![put("More", now + 10_000 + it * 600)]));
    for done in futures_util::future::join_all(edits).await {
        done.unwrap();
    }
    assert_eq!(story.titles(source).await.len(), 9);

    // Other sources are not written.
    let other = story.create(json!({ "name": "dummy", "source_type": "dummy" })).await;
    let id = story.admin.get(&other).await.body["id"].as_u64().unwrap();
    let other = GuideSourceId(u32::try_from(id).unwrap());
    let refused = guides.write_programmes(other, vec![WrittenEdit::Remove(ProgrammeId(1))]).await;
    assert!(matches!(refused, Err(WrittenError::NotWritten)), "{refused:?}");
}
