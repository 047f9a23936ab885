//! Tests of plans from the store.

use domain::channel::Channel;
use domain::core_settings::STREAM_SETTINGS;
use domain::ids::StreamId;
use domain::setting::CoreSetting;
use serde_json::json;

use super::*;
use crate::testing::{models, write};

fn plans(models: &Models) -> StorePlans {
    StorePlans::new(models.clone(), Delivery::Proxy)
}

fn target(models: &Models, name: &str) -> Target {
    let channels = models.channels.load();
    Target::Channel(channels.iter().find(|it| it.name == name).unwrap().uuid)
}

fn change_channel(models: &Models, name: &'static str, change: impl FnOnce(&mut Channel) + Send + 'static) {
    write(models, move |write| {
        let mut channel = write.all::<Channel>()?.into_iter().find(|it| it.name == name).unwrap();
        change(&mut channel);
        write.put(&channel)
    });
}

fn names(plans: &StorePlans, target: Target) -> Vec<String> {
    plans.plan(&target).map_or(vec![], |it| it.candidates.iter().map(|it| it.stream_name.clone()).collect())
}

#[test]
fn the_plan_of_a_channel_follows_the_store() {
    let models = models(&[&[("News", "a"), ("Film", "b")], &[("News", "c")]]);
    let (plans, news) = (plans(&models), target(&models, "News"));
    assert_eq!(names(&plans, news), ["News", "News"]);
    assert!(plans.exists(&news) && !plans.exists(&Target::Channel(Uuid::nil())));

    change_channel(&models, "News", |it| it.streams = vec![StreamId(2), StreamId(99)]);
    assert_eq!(names(&plans, news), ["Film"]);

    change_channel(&models, "News", |it| it.enabled = false);
    assert!(plans.plan(&news).is_none() && !plans.exists(&news));
}

#[test]
fn every_stream_can_be_previewed_with_or_without_a_channel() {
    let models = models(&[&[("News", "a")]]);
    let plans = plans(&models);
    write(&models, |write| write.remove::<Channel>(1).map(drop));
    assert_eq!(names(&plans, Target::Stream(StreamId(1))), ["News"]);
    assert!(plans.exists(&Target::Stream(StreamId(1))) && !plans.exists(&Target::Stream(StreamId(2))));
    assert!(plans.plan(&Target::Stream(StreamId(2))).is_none());
}

#[test]
fn a_stream_is_read_again_only_when_it_may_have_changed() {
    let models = models(&[&[("News", "a")]]);
    let plans = plans(&models);
    let read = || plans.stream(StreamId(1)).unwrap();
    let before = read();
    assert!(Arc::ptr_eq(&before, &read()));
    write(&models, |write| {
        let mut stream = write.get::<Stream>(1)?.unwrap();
        stream.provider.name = "Renamed".to_owned();
        write.put(&stream)
    });
    assert_eq!(read().name(), "Renamed");
    write(&models, |write| write.remove::<Stream>(1).map(drop));
    assert!(plans.stream(StreamId(1)).is_none());
}

#[test]
fn the_stream_cache_is_bounded_and_keeps_used_streams() {
    let models = models(&[&[("News", "a")]]);
    let stream = plans(&models).stream(StreamId(1)).unwrap();
    let mut kept = StreamCache::default();
    for id in 0..10 * GENERATION_SIZE_MAX as u32 {
        kept.put(StreamId(id), 1, stream.clone());
        assert!(kept.get(StreamId(0), 1).is_some(), "asked for every time, gone at {id}");
    }
    assert!(kept.young.len() + kept.old.len() <= 2 * GENERATION_SIZE_MAX);
    assert!(kept.get(StreamId(1), 1).is_none());
    assert!(kept.get(StreamId(0), 2).is_none(), "a stamp of another time");
}

#[test]
fn the_core_settings_provide_the_default_stream_profile() {
    let models = models(&[&[("News", "a")]]);
    let (plans, news) = (plans(&models), target(&models, "News"));
    let delivery = || plans.plan(&news).unwrap().candidates[0].profile;
    assert_eq!(delivery(), Delivery::Proxy);
    let cases =
        [(2, Delivery::Redirect), (1, Delivery::Proxy), (3, Delivery::Command), (99, Delivery::Proxy)];
    for (id, expected) in cases {
        write(&models, move |write| {
            let value = json!({ "default_stream_profile": id });
            let name = String::new();
            write.put(&CoreSetting { id: 1, key: STREAM_SETTINGS.to_owned(), name, value })
        });
        assert_eq!(delivery(), expected, "{id}");
    }
}
