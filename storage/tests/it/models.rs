//! The gateway's own store: its initial records, and its read models.

use domain::account::Account;
use domain::ids::StreamProfileId;
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::secret::ServerKeys;
use domain::stream::{RequestHeaders, Stream};
use domain::stream_profile::StreamProfile;
use storage::records::schema;
use storage::{Error, Models, Store, seed, store_catalogue};

/// Creates a catalogue of two playlists with one channel in common.
fn catalogue() -> Catalogue {
    let mut builder = CatalogueBuilder::new();
    let lists = [
        "#EXTINF:-1 tvg-id=\"one\" group-title=\"News\",One\nhttp://a.example/1\n#EXTINF:-1,Two\nhttp://a.example/2\n",
        "#EXTINF:-1 tvg-id=\"one\",Uno\nhttp://b.example/1\n",
    ];
    for (name, list) in ["a", "b"].into_iter().zip(lists) {
        let account = builder.account(name, 1, RequestHeaders::default());
        for item in parse(list.as_bytes(), PlaylistLimits::default()).0 {
            if let PlaylistItem::Entry(entry) = item {
                builder.entry(account, entry);
            }
        }
    }
    builder.build()
}

#[test]
fn a_new_store_is_seeded_once_and_keeps_its_records_at_the_next_start() {
    let store = Store::temporary(schema()).unwrap();
    seed(&store).unwrap();
    let keys = store.collection::<ServerKeys>().get(1).unwrap().unwrap();
    assert_ne!(keys.tokens, keys.lookup);
    let version = store.version();
    seed(&store).unwrap();
    assert_eq!(store.version(), version, "the second seeding wrote something");
    assert_eq!(store.collection::<ServerKeys>().all().unwrap(), [keys]);
    assert_eq!(store.collection::<Account>().all().unwrap(), [Account::custom()]);
    assert_eq!(store.collection::<StreamProfile>().all().unwrap(), StreamProfile::built_in());
}

#[test]
fn seeding_keeps_stream_profiles_with_the_id_or_name_of_a_built_in_one() {
    let store = Store::temporary(schema()).unwrap();
    let [proxy, _, copy, transcode, _] = StreamProfile::built_in();
    let mine = [
        StreamProfile { id: copy.id, name: "mine".to_owned(), ..proxy.clone() },
        StreamProfile { id: StreamProfileId(9), name: transcode.name, ..proxy },
    ];
    let put = mine.clone();
    store.write_blocking(move |write| put.iter().try_for_each(|it| write.put(it))).unwrap();
    seed(&store).unwrap();
    let all = store.collection::<StreamProfile>().all().unwrap();
    assert_eq!(all.iter().map(|it| it.id.0).collect::<Vec<_>>(), [1, 2, 3, 5, 9]);
    assert!(mine.iter().all(|it| all.contains(it)));
}

#[test]
fn seeding_updates_the_built_in_stream_profiles_of_an_earlier_version() {
    let store = Store::temporary(schema()).unwrap();
    let [_, _, copy, ..] = StreamProfile::built_in();
    let old = StreamProfile { parameters: "-i {streamUrl}".to_owned(), ..copy };
    store.write_blocking(move |write| write.put(&old)).unwrap();
    seed(&store).unwrap();
    assert_eq!(store.collection::<StreamProfile>().all().unwrap(), StreamProfile::built_in());
}

#[test]
fn seeding_keeps_the_setting_of_a_built_in_stream_profile() {
    let store = Store::temporary(schema()).unwrap();
    let [_, redirect, ..] = StreamProfile::built_in();
    let open = StreamProfile { redirect_without_login: true, ..redirect };
    store.write_blocking(move |write| write.put(&open)).unwrap();
    seed(&store).unwrap();
    let all = store.collection::<StreamProfile>().all().unwrap();
    assert_eq!(
        all.iter().map(|it| it.redirect_without_login).collect::<Vec<_>>(),
        [false, true, false, false, false]
    );
}

#[test]
fn a_catalogue_is_stored_under_its_own_ids_and_later_records_get_others() {
    let store = Store::temporary(schema()).unwrap();
    seed(&store).unwrap();
    let catalogue = catalogue();
    store_catalogue(&store, catalogue.clone()).unwrap();
    let models = Models::new(store.clone()).unwrap();
    let (accounts, channels) = (models.accounts.load(), models.channels.load());
    assert!(accounts.iter().skip(1).map(|it| &**it).eq(&catalogue.accounts));
    assert!(models.groups.load().iter().map(|it| &**it).eq(&catalogue.groups));
    assert!(channels.iter().map(|it| &**it).eq(&catalogue.channels));
    assert_eq!(channels.one_by("uuid", catalogue.channels[1].uuid.as_bytes()).unwrap().name, "Two");
    let mut streams = store.collection::<Stream>().all().unwrap();
    streams.sort_by_key(|it| it.id);
    assert_eq!(streams, catalogue.streams);
    assert_eq!(models.streams.load().ids(&Default::default()).len(), streams.len());
    let next = store.write_blocking(|write| write.next_id::<Stream>()).unwrap();
    assert!(streams.iter().all(|it| it.id.0 < next), "{next} was assigned already");
}

#[test]
fn two_accounts_with_the_same_name_are_refused() {
    let store = Store::temporary(schema()).unwrap();
    let mut catalogue = catalogue();
    catalogue.accounts[1].name = "a".to_owned();
    assert!(matches!(store_catalogue(&store, catalogue), Err(Error::Taken { index: "name", .. })));
}
