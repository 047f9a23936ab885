//! Plans of films and episodes.

use super::*;
use crate::ids::VodCategoryId;
use crate::playlist::delta::stream_properties;
use crate::playlist::m3u::{self, PlaylistItem, PlaylistLimits};
use crate::playlist::titles::{ListedFile, listed_title};
use crate::stream::StreamOverrides;
use crate::vod::{Relation, RelationId};

#[test]
fn a_protected_film_is_refused_by_name_or_left_to_players() {
    let entry = |lines: &str| {
        let text = format!("#EXTINF:-1 tvg-type=\"movie\",Film\n{lines}\nhttp://h/film.mp4\n");
        let (items, _) = m3u::parse(text.as_bytes(), PlaylistLimits::default());
        let entry = items.into_iter().find_map(|it| match it {
            PlaylistItem::Entry(entry) => Some(entry),
            _ => None,
        });
        let title = listed_title(stream_properties(entry.unwrap()), StreamOverrides::default()).unwrap();
        let ListedFile::Film { address, .. } = title.file else { panic!("a film") };
        let mut relation = Relation::new(RelationId(1), AccountId(1), VodCategoryId(1), "7", 0);
        (relation.address, relation.custom_properties) = (Some(address), title.properties);
        TitleVersion::from_movie(&relation)
    };
    let kodi = "#KODIPROP:inputstream.adaptive.license_type=";
    let clear = entry("");
    let proxied = records(&[], &[account(1, 1)], Delivery::Proxy);
    for (system, named) in [
        ("com.widevine.alpha", "Widevine"),
        ("com.microsoft.playready", "PlayReady"),
        ("org.w3.clearkey", "ClearKey"),
        ("acme", "DRM"),
    ] {
        let version = entry(&format!("{kodi}{system}"));
        assert_eq!(plan_title("Film", std::slice::from_ref(&version), &proxied), []);
        let problem = title_problem(std::slice::from_ref(&version)).unwrap().to_string();
        assert!(problem.contains(&format!("protected by {named}")), "{problem}");
        // Another file of the film plays.
        let both = [version.clone(), clear.clone()];
        assert_eq!((plan_title("Film", &both, &proxied).len(), title_problem(&both)), (1, None));
        let redirected = records(&[], &[account(1, 1)], Delivery::Redirect);
        assert_eq!(plan_title("Film", &[version], &redirected).len(), 1);
    }
    assert_eq!(
        (plan_title("Film", std::slice::from_ref(&clear), &proxied).len(), title_problem(&[clear])),
        (1, None)
    );
}

#[test]
fn files_of_a_title_are_ordered_by_the_priority_of_their_accounts_and_then_by_health() {
    let mut accounts = [account(1, 2), account(2, 1), account(3, 1)];
    accounts[2].priority = 5;
    let version = |account: u32| TitleVersion {
        account: AccountId(account),
        kind: TitleFileKind::Movie,
        provider_id: "7".to_owned(),
        address: Some(SourceUrl::new(format!("http://h{account}/7.mp4"))),
        extension: "mp4".to_owned(),
        is_stale: false,
        protection: None,
    };
    let mut versions = [version(1), version(2), version(3)];
    let mut records = records(&[], &accounts, Delivery::Proxy);
    let order = |versions: &[TitleVersion], records: &TestRecords| -> Vec<u32> {
        plan_title("Film", versions, records).iter().map(|it| it.candidate.pool.profile.0).collect()
    };
    assert_eq!(order(&versions, &records), [30, 11, 10, 20]);
    records.file_ranks = vec![(ProfileId(11), 102), (ProfileId(30), 102)];
    assert_eq!(order(&versions, &records), [30, 10, 20, 11], "the priority counts first");
    records.file_ranks = vec![(ProfileId(20), 1)];
    assert_eq!(order(&versions, &records), [30, 20, 11, 10]);
    versions[2].is_stale = true;
    assert_eq!(order(&versions, &records), [20, 11, 10, 30]);
}
