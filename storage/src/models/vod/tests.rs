//! Stories of accounts that list films and series.

use std::collections::{BTreeMap, BTreeSet};

use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshOutcome};
use domain::core_settings::NAME_SETTINGS;
use domain::ids::{AccountId, EpisodeId, ProfileId, VodCategoryId};
use domain::setting::CoreSetting;
use domain::undo::UndoChange;
use domain::vod::{
    AccountCategory, Completion, CompletionOutcome, Episode, EpisodeFacts, ExternalIds, FoundCategory,
    FoundDetails, FoundEpisode, FoundTitle, MatchReason, Relation, RelationId, Title, TitleAlias, TitleFacts,
    TitleId, TitleKind, VodCategory, VodSync, uuid_of,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::Error;
use crate::records::schema;

/// Number, name and relations of a title: account and provider's id.
type ListedTitle = (u32, String, Vec<(u32, String)>);

fn title(id: TitleId) -> Title {
    let relation = RelationId(id.number() + 100);
    Title {
        relations: vec![Relation::new(relation, AccountId(2), VodCategoryId(1), "55", 0)],
        ..Title::new(id, uuid_of(id.key(), 7 << 64), 0)
    }
}

#[test]
fn a_title_is_found_by_its_id_its_uuid_its_relations_and_those_of_merged_titles() {
    let store = Store::temporary(schema()).unwrap();
    let (film, series) = (TitleId::movie(7).unwrap(), TitleId::series(8).unwrap());
    let (gone, foreign) = (TitleId::movie(3).unwrap(), Uuid::from_u128(99));
    let gone_uuid = uuid_of(gone.key(), 1 << 64);
    let mut one = title(film);
    one.aliases.push(TitleAlias { id: gone, uuid: gone_uuid, relations: Vec::new() });
    let mut other = title(series);
    other.uuid = foreign;
    let (of_film, of_series) = (one.uuid, other.uuid);
    store
        .write_blocking(move |write| {
            write.put(&one)?;
            write.put(&other)?;
            Ok::<_, Error>(())
        })
        .unwrap();
    let titles = VodTitles::new(&store);
    let id = |found: Result<Option<Title>>| found.unwrap().map(|it| it.id);
    assert_eq!(id(titles.get(film)), Some(film));
    assert_eq!(id(titles.get(gone)), Some(film));
    assert_eq!(id(titles.get(TitleId::movie(8).unwrap())), None);
    assert_eq!(id(titles.by_uuid(TitleKind::Movie, of_film)), Some(film));
    assert_eq!(id(titles.by_uuid(TitleKind::Movie, gone_uuid)), Some(film));
    assert_eq!(id(titles.by_uuid(TitleKind::Series, of_series)), Some(series));
    assert_eq!(id(titles.by_uuid(TitleKind::Movie, of_series)), None);
    assert_eq!(id(titles.by_uuid(TitleKind::Movie, uuid_of(film.key(), 8 << 64))), None);
    assert_eq!(id(titles.by_relation(RelationId(108))), Some(series));
    let of_app = |number| titles.by_stream_id(TitleKind::Movie, number).unwrap().map(|it| (it.0.id, it.1));
    assert_eq!(of_app(7), Some((film, None)));
    assert_eq!(of_app(107), Some((film, Some(RelationId(107)))));
    assert_eq!((of_app(108), of_app(9)), (None, None));
    let mut all = Vec::new();
    titles.for_each(|it| all.push(it.id)).unwrap();
    assert_eq!(all, [film, series]);
}

#[test]
fn episodes_are_listed_by_season_and_number_and_found_by_uuid() {
    let store = Store::temporary(schema()).unwrap();
    let series = TitleId::series(8).unwrap();
    let episode = |id: u32, series: TitleId, season: u32, number: u32| Episode {
        id: EpisodeId(id),
        uuid: uuid_of(id, 3 << 64),
        series,
        season,
        number,
        offers: Vec::new(),
        completion: None,
        aliases: Vec::new(),
        created_at: 0,
        updated_at: 0,
    };
    let other = TitleId::series(9).unwrap();
    let all = [
        episode(1, series, 2, 1),
        episode(2, series, 1, 2),
        episode(3, other, 1, 1),
        episode(4, series, 1, 1),
    ];
    store.write_blocking(move |write| all.iter().try_for_each(|it| write.put(it))).unwrap();
    let titles = VodTitles::new(&store);
    let listed: Vec<u32> = titles.episodes_of(series).unwrap().iter().map(|it| it.id.0).collect();
    assert_eq!(listed, [4, 2, 1]);
    assert_eq!(titles.episode_by_uuid(uuid_of(3, 3 << 64)).unwrap().unwrap().series, other);
    assert_eq!(titles.episode(EpisodeId(4)).unwrap().unwrap().name(), "S01E01");
    assert_eq!(titles.episode_by_uuid(uuid_of(3, 4 << 64)).unwrap(), None);
}

const ACCOUNT: AccountId = AccountId(2);
const OTHER: AccountId = AccountId(3);
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A store with accounts, of which each has an enabled category of films and one of series.
struct Shelf {
    store: Store,
    titles: VodTitles,
    categories: [VodCategoryId; 2],
    now: i64,
}

impl Shelf {
    fn new() -> Self {
        let store = Store::temporary(schema()).unwrap();
        let titles = VodTitles::new(&store);
        let mut shelf = Self { store, titles, categories: [VodCategoryId(0); 2], now: 1_700_000_000_000 };
        for id in [ACCOUNT, OTHER, AccountId(4)] {
            shelf.put_account(id, 0);
            for (at, kind) in TitleKind::ALL.into_iter().enumerate() {
                let found = vec![FoundCategory {
                    kind,
                    provider_id: "1".to_owned(),
                    name: format!("All {}", kind.name()),
                }];
                let links = shelf.titles.land_categories(id, kind, found, true, shelf.now).unwrap();
                shelf.categories[at] = links[0].category;
            }
        }
        shelf
    }

    fn put_account(&self, id: AccountId, priority: i32) {
        let profile = AccountProfile::default_of(ProfileId(id.0), "Default", 1);
        let mut account = Account::new(id, format!("Account {id}"), PlaylistLocation::None, profile, 0);
        account.priority = priority;
        self.store.write_blocking(move |write| write.put(&account)).unwrap();
    }

    fn found(&self, kind: TitleKind, id: &str, name: &str, tmdb: &str, imdb: &str) -> FoundTitle {
        let category = self.categories[usize::from(kind == TitleKind::Series)];
        let mut found = FoundTitle::new(id, category, name);
        found.facts.ids = ExternalIds { tmdb: Some(tmdb.to_owned()), imdb: Some(imdb.to_owned()) };
        found
    }

    fn film(&self, id: &str, name: &str, tmdb: &str) -> FoundTitle {
        self.found(TitleKind::Movie, id, name, tmdb, "")
    }

    fn sync(&self, account: AccountId, kind: TitleKind) -> TitleSync {
        TitleSync { account, kind, asked: None, is_confirmed: false, stale_days: 1, now: self.now }
    }

    fn land(&mut self, account: AccountId, found: &[FoundTitle]) -> Result<LandedTitles, LandError> {
        self.now += 1_000;
        self.titles.land_titles(&self.sync(account, TitleKind::Movie), found, &|| false)
    }

    /// Lists number, name and relations of all titles: account and provider's id.
    fn list(&self) -> Vec<ListedTitle> {
        let mut all = Vec::new();
        let relation = |it: &Relation| (it.account.0, it.provider_id.clone());
        self.titles
            .for_each(|it| {
                all.push((it.id.number(), it.name().to_owned(), it.relations.iter().map(relation).collect()))
            })
            .unwrap();
        all.sort();
        all
    }

    /// Lists the provider's ids of all titles.
    fn groups(&self) -> BTreeSet<BTreeSet<(u32, String)>> {
        self.list().into_iter().map(|it| it.2.into_iter().collect()).collect()
    }

    fn only(&self) -> Title {
        let mut all = Vec::new();
        self.titles.for_each(|it| all.push(it)).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

fn relations(of: &[(u32, &str)]) -> Vec<(u32, String)> {
    of.iter().map(|it| (it.0, it.1.to_owned())).collect()
}

#[test]
fn names_are_cleaned_by_the_rules_and_join_titles_of_several_accounts() {
    let mut shelf = Shelf::new();
    let found = [shelf.film("1", "VOD ✪ Ronin [4K]", ""), shelf.film("2", "EN - Heat (1995)", "949")];
    let other = [shelf.film("7", "Ronin 4K", "")];
    shelf.land(ACCOUNT, &found).unwrap();
    shelf.land(OTHER, &other).unwrap();
    assert_eq!(shelf.list().len(), 3);
    let value = json!({ "clean_movies": true, "patterns": ["^VOD ✪ => "] });
    let setting =
        CoreSetting { id: 1, key: NAME_SETTINGS.to_owned(), name: "Names".to_owned(), value: value.clone() };
    let put = |shelf: &Shelf, value: Value| {
        let setting = CoreSetting { value, ..setting.clone() };
        shelf.store.write_blocking(move |write| write.put(&setting)).unwrap();
    };
    put(&shelf, value);
    assert_eq!(shelf.titles.clean_names(shelf.now, &|| false).unwrap(), 3);
    assert_eq!(shelf.titles.clean_names(shelf.now, &|| false).unwrap(), 0);
    let names = |shelf: &Shelf| shelf.list().into_iter().map(|it| it.1).collect::<BTreeSet<_>>();
    assert_eq!(names(&shelf), ["Heat (1995)", "Ronin"].map(str::to_owned).into());
    shelf.land(ACCOUNT, &found).unwrap();
    assert_eq!(shelf.titles.clean_names(shelf.now, &|| false).unwrap(), 0);
    // A new entry is cleaned and joined while it is imported.
    shelf.land(OTHER, &[other[0].clone(), shelf.film("8", "VOD ✪ Ronin", "")]).unwrap();
    let joined = shelf.list().into_iter().filter(|it| it.1 == "Ronin").map(|it| it.2.len());
    assert_eq!(joined.max(), Some(2));
    put(&shelf, json!({}));
    shelf.land(ACCOUNT, &found).unwrap();
    assert!(names(&shelf).contains("VOD ✪ Ronin [4K]") && names(&shelf).contains("EN - Heat (1995)"));
}

#[test]
fn the_same_film_of_two_accounts_is_one_title_with_the_values_of_the_preferred_account() {
    let mut shelf = Shelf::new();
    shelf.put_account(OTHER, 10);
    let landed = shelf
        .land(ACCOUNT, &[shelf.film("1", "EN - Heat (1995)", "949"), shelf.film("2", "Ronin", "0")])
        .unwrap();
    assert_eq!((landed.n_found, landed.n_new, landed.to_string()), (2, 2, "2 titles, 2 new".to_owned()));
    let heat = shelf.list()[0].0;
    shelf.land(OTHER, &[shelf.film("7", "Hitze", "949"), shelf.film("8", "RONIN 4K", "null")]).unwrap();
    let [one, other] = shelf.list().try_into().unwrap();
    assert_eq!(one, (heat, "Hitze".to_owned(), relations(&[(3, "7"), (2, "1")])));
    assert_eq!((&*other.1, other.2), ("RONIN 4K", relations(&[(3, "8"), (2, "2")])));
    let title = shelf.titles.get(TitleId::movie(heat).unwrap()).unwrap().unwrap();
    assert_eq!((title.year(), title.tmdb_id()), (Some(1995), Some("949")), "the year is in a name");
    assert_eq!(title.relations[0].reason, MatchReason::TmdbId("949".to_owned()));
    assert_eq!(title.relations[1].label.as_deref(), Some("EN"));
    // The priorities change, and the next import of either account applies them.
    shelf.put_account(ACCOUNT, 20);
    shelf.land(OTHER, &[shelf.film("7", "Hitze", "949"), shelf.film("8", "RONIN 4K", "null")]).unwrap();
    assert_eq!(shelf.list()[0].1, "EN - Heat (1995)");
}

#[test]
fn versions_of_one_account_are_relations_of_one_title_and_none_is_lost() {
    let mut shelf = Shelf::new();
    let found = [
        shelf.film("1", "EN - Heat", "949"),
        shelf.film("2", "DE - Heat", "949"),
        shelf.film("3", "Heat 4K", "949"),
        shelf.film("3", "Heat 4K", "949"),
    ];
    let landed = shelf.land(ACCOUNT, &found).unwrap();
    assert_eq!((landed.n_new, landed.n_twice), (3, 1));
    let title = shelf.only();
    let labels: Vec<_> = title.relations.iter().map(|it| it.label.as_deref().unwrap_or_default()).collect();
    assert_eq!(labels, ["EN", "DE", "4K"]);
    let numbers: BTreeSet<u32> =
        title.relations.iter().map(|it| it.id.0).chain([title.id.number()]).collect();
    assert_eq!(numbers.len(), 4, "an app can name each of them by a number");
    for relation in &title.relations {
        let found = shelf.titles.by_stream_id(TitleKind::Movie, relation.id.0).unwrap();
        assert_eq!(found.map(|it| (it.0.id, it.1)), Some((title.id, Some(relation.id))));
    }
}

#[test]
fn an_import_that_finds_the_same_again_writes_no_title() {
    let mut shelf = Shelf::new();
    let found: Vec<_> = (0..300)
        .map(|it| shelf.film(&it.to_string(), &format!("Film {it} (2001)"), &it.to_string()))
        .collect();
    shelf.land(ACCOUNT, &found).unwrap();
    let before = shelf.list();
    let fingerprints = |shelf: &Shelf| {
        let titles = shelf.store.collection::<Title>();
        titles.owners().into_iter().map(|it| titles.fingerprint_of(it)).collect::<Vec<_>>()
    };
    let written = fingerprints(&shelf);
    let landed = shelf.land(ACCOUNT, &found).unwrap();
    assert_eq!((landed.n_new, landed.n_changed, landed.n_stale), (0, 0, 0));
    assert_eq!((fingerprints(&shelf), shelf.list()), (written, before));
    let sync = shelf.store.collection::<VodSync>().get(ACCOUNT.0).unwrap().unwrap();
    let title = shelf.titles.get(TitleId::movie(shelf.list()[0].0).unwrap()).unwrap().unwrap();
    assert_eq!(
        sync.last_seen(TitleKind::Movie, &title.relations[0]),
        Some(shelf.now),
        "it was seen nevertheless"
    );
}

#[test]
fn an_empty_list_and_one_without_most_titles_change_nothing_until_an_admin_confirms() {
    let mut shelf = Shelf::new();
    let found: Vec<_> = (0..10).map(|it| shelf.film(&it.to_string(), &format!("Film {it}"), "")).collect();
    shelf.land(ACCOUNT, &found).unwrap();
    let before = shelf.list();
    assert!(matches!(shelf.land(ACCOUNT, &[]), Err(LandError::Empty)));
    let error = shelf.land(ACCOUNT, &found[..4]).unwrap_err();
    assert!(matches!(error, LandError::Unfamiliar { n_known: 10, n_seen: 4 }), "{error}");
    assert_eq!(error.outcome(), RefreshOutcome::AwaitingConfirmation);
    assert_eq!(shelf.list(), before);
    assert!(shelf.only_stale().is_empty());
    let sync = TitleSync { is_confirmed: true, ..shelf.sync(ACCOUNT, TitleKind::Movie) };
    let landed = shelf.titles.land_titles(&sync, &found[..4], &|| false).unwrap();
    assert_eq!((landed.n_stale, shelf.only_stale().len()), (6, 6));
}

/// Apps, favourites and positions use the numbers of titles.
#[test]
fn titles_keep_their_numbers_when_the_provider_numbers_its_list_anew() {
    let films = |shelf: &Shelf, first: u32| -> Vec<FoundTitle> {
        let name = |it: u32| if it < 6 { format!("Film {it} ({})", 2001 + it) } else { format!("Film {it}") };
        (0..9).map(|it| shelf.film(&(first + it).to_string(), &name(it), "")).collect()
    };
    let mut shelf = Shelf::new();
    shelf.land(ACCOUNT, &films(&shelf, 300)).unwrap();
    let numbers = |shelf: &Shelf| -> Vec<_> { shelf.list().into_iter().map(|it| (it.0, it.1)).collect() };
    let before = numbers(&shelf);
    // All ids are new; some are those of other films before; and all of them are.
    for first in [900, 904, 905, 896] {
        shelf.land(ACCOUNT, &films(&shelf, first)).unwrap();
        assert_eq!(numbers(&shelf), before, "{first}");
        for title in shelf.list() {
            let stored = shelf.titles.get(TitleId::movie(title.0).unwrap()).unwrap().unwrap();
            let position = before.iter().position(|it| it.0 == title.0).unwrap() as u32;
            let played = &stored.relations[0];
            assert_eq!(played.provider_id, (first + position).to_string(), "{first}: {}", title.1);
            assert!(!played.is_stale());
        }
    }
    // Another list is still refused.
    let other: Vec<_> = (0..9).map(|it| shelf.film(&format!("7{it}"), &format!("Other {it}"), "")).collect();
    assert!(matches!(shelf.land(ACCOUNT, &other), Err(LandError::Unfamiliar { n_seen: 0, .. })));
}

impl Shelf {
    /// Lists the provider's ids of stale relations.
    fn only_stale(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.titles
            .for_each(|it| {
                all.extend(it.relations.iter().filter(|it| it.is_stale()).map(|it| it.provider_id.clone()))
            })
            .unwrap();
        all
    }
}

#[test]
fn a_missing_film_is_stale_first_returns_under_its_id_and_is_removed_after_its_time() {
    let mut shelf = Shelf::new();
    let both = [shelf.film("1", "Heat", "949"), shelf.film("2", "Ronin", "8195")];
    shelf.land(ACCOUNT, &both).unwrap();
    let before = shelf.list();
    shelf.land(ACCOUNT, &both[..1]).unwrap();
    assert_eq!((shelf.only_stale(), shelf.list()), (vec!["2".to_owned()], before.clone()));
    shelf.land(ACCOUNT, &both).unwrap();
    assert_eq!((shelf.only_stale().len(), shelf.list()), (0, before.clone()));
    shelf.land(ACCOUNT, &both[..1]).unwrap();
    shelf.now += DAY;
    let landed = shelf.land(ACCOUNT, &both[..1]).unwrap();
    assert_eq!((landed.n_removed, shelf.list().len()), (1, 1));
    // It has a new id then, and no other title has ever had it.
    shelf.land(ACCOUNT, &both).unwrap();
    let after = shelf.list();
    assert!(after.iter().all(|it| it.1 != "Ronin" || it.0 > before[1].0));
}

#[test]
fn a_list_of_some_categories_says_nothing_of_the_others_and_a_disabled_category_loses_its_films() {
    let mut shelf = Shelf::new();
    let category = |name: &str, id: &str| FoundCategory {
        kind: TitleKind::Movie,
        provider_id: id.to_owned(),
        name: name.to_owned(),
    };
    let all = vec![category("Action", "5"), category("Drama", "6"), category("", "")];
    let links =
        shelf.titles.land_categories(ACCOUNT, TitleKind::Movie, all.clone(), false, shelf.now).unwrap();
    let store = shelf.store.clone();
    let id = |name: &str| {
        let key = crate::records::category_key(TitleKind::Movie, name);
        store.collection::<VodCategory>().one_by("name", key).unwrap().unwrap().id
    };
    let (action, drama, none) = (id("Action"), id("Drama"), id("Uncategorized"));
    let enabled = |it: &AccountCategory| it.enabled;
    assert_eq!((links.len(), links.iter().filter(|it| enabled(it)).count()), (4, 1), "new ones are disabled");
    let next_group = store.write_blocking(|write| write.next_id::<domain::group::Group>()).unwrap();
    assert!(links.iter().all(|it| it.category.0 < next_group), "no group gets the id of a category");
    let enable = |shelf: &Shelf, categories: &[VodCategoryId], enabled| {
        let links =
            shelf.store.collection::<AccountCategory>().by("account", ACCOUNT.0.to_be_bytes()).unwrap();
        for link in links.into_iter().filter(|it| categories.contains(&it.category)) {
            shelf.store.write_blocking(move |write| write.put(&AccountCategory { enabled, ..link })).unwrap();
        }
    };
    enable(&shelf, &[action, drama, none], true);
    let film = |id: &str, name: &str, category| FoundTitle::new(id, category, name);
    let found = [
        film("1", "A", action),
        film("2", "B", drama),
        film("3", "C", none),
        film("4", "D", VodCategoryId(99)),
    ];
    let landed = shelf.land(ACCOUNT, &found).unwrap();
    assert_eq!((landed.n_new, landed.n_left_out), (3, 1));
    // Only one category was asked for.
    let sync = TitleSync { asked: Some([action].into()), ..shelf.sync(ACCOUNT, TitleKind::Movie) };
    let landed = shelf.titles.land_titles(&sync, &found[..1], &|| false).unwrap();
    assert_eq!((landed.n_stale, shelf.only_stale().len()), (0, 0));
    // A renamed category stays enabled, because the provider keeps its id.
    let links = shelf
        .titles
        .land_categories(ACCOUNT, TitleKind::Movie, vec![category("Dramas", "6")], false, shelf.now)
        .unwrap();
    let dramas = id("Dramas");
    assert!(links.iter().any(|it| it.category == dramas && it.enabled));
    assert!(links.iter().any(|it| it.category == drama && it.last_seen.is_some()));
    enable(&shelf, &[drama], false);
    let landed = shelf.land(ACCOUNT, &[film("1", "A", action), film("3", "C", none)]).unwrap();
    assert_eq!((landed.n_stale, shelf.only_stale()), (1, vec!["2".to_owned()]));
}

#[test]
fn titles_that_turn_out_to_be_one_are_merged_and_both_ids_lead_to_it() {
    let mut shelf = Shelf::new();
    shelf.land(ACCOUNT, &[shelf.found(TitleKind::Movie, "1", "Heat", "949", "")]).unwrap();
    shelf.land(OTHER, &[shelf.found(TitleKind::Movie, "1", "Heat", "", "tt0113277")]).unwrap();
    let [one, other] = shelf.list().try_into().unwrap();
    let uuid = shelf.titles.get(TitleId::movie(other.0).unwrap()).unwrap().unwrap().uuid;
    let landed =
        shelf.land(AccountId(4), &[shelf.found(TitleKind::Movie, "5", "Heat", "949", "tt0113277")]).unwrap();
    assert_eq!(landed.n_merged, 1);
    let title = shelf.only();
    assert_eq!((title.id.number(), title.relations.len()), (one.0, 3));
    let by_id = shelf.titles.get(TitleId::movie(other.0).unwrap()).unwrap().unwrap();
    let by_uuid = shelf.titles.by_uuid(TitleKind::Movie, uuid).unwrap().unwrap();
    assert_eq!((by_id.id, by_uuid.id), (title.id, title.id));
    assert!(
        title.relations.iter().filter(|it| it.reason != MatchReason::First).count() >= 2,
        "each merge has a reason"
    );
}

#[test]
fn titles_that_an_interrupted_import_left_apart_are_merged_by_the_next_one() {
    let mut shelf = Shelf::new();
    let list = [shelf.film("1", "Heat", "949")];
    shelf.land(ACCOUNT, &list).unwrap();
    let known = shelf.only();
    let id = TitleId::movie(known.id.number() + 50).unwrap();
    let mut other = Title::new(id, uuid_of(id.key(), 1 << 64), 0);
    let category = known.relations[0].category;
    let mut relation = Relation::new(RelationId(id.number() + 1), OTHER, category, "9", 0);
    relation.facts = known.relations[0].facts.clone();
    other.relations.push(relation);
    shelf.store.write_blocking(move |write| write.put(&other)).unwrap();
    let landed = shelf.land(ACCOUNT, &list).unwrap();
    assert_eq!((landed.n_merged, landed.n_changed), (1, 0));
    let title = shelf.only();
    assert_eq!((title.id, title.relations.len(), title.aliases[0].id), (known.id, 2, id));
}

#[test]
fn a_provider_with_many_films_of_one_name_makes_no_title_of_any_size() {
    let mut shelf = Shelf::new();
    let film = |it: u32| {
        let mut found = shelf.film(&it.to_string(), "Film", "");
        found.facts.description = Some("A long text. ".repeat(300));
        found
    };
    let list: Vec<_> = (0..400).map(film).collect();
    assert_eq!(shelf.land(ACCOUNT, &list).unwrap().n_new, 400);
    let sizes: Vec<usize> = shelf.list().iter().map(|it| it.2.len()).collect();
    assert_eq!((sizes.iter().sum::<usize>(), sizes.iter().max()), (400, Some(&50)));
    let landed = shelf.land(ACCOUNT, &list).unwrap();
    assert_eq!((landed.n_new, landed.n_changed), (0, 0));
}

#[test]
fn details_complete_a_film_outlive_a_refresh_and_may_show_that_it_is_another_one() {
    let mut shelf = Shelf::new();
    let list = [shelf.film("1", "Heat", ""), shelf.film("2", "Ronin", "8195")];
    shelf.land(ACCOUNT, &list).unwrap();
    shelf.land(OTHER, &[shelf.film("9", "Heat", "949")]).unwrap();
    let heat = shelf.list()[0].0;
    let relation = shelf.titles.get(TitleId::movie(heat).unwrap()).unwrap().unwrap().relations[0].id;
    let facts = TitleFacts {
        description: Some("A thief.".to_owned()),
        ids: ExternalIds { tmdb: Some("949".to_owned()), imdb: None },
        ..TitleFacts::default()
    };
    let properties = json!({ "director": "M. Mann" }).as_object().cloned().unwrap();
    let found = FoundDetails { facts, properties: properties.clone() };
    let title = shelf.titles.land_details(relation, found, shelf.now).unwrap();
    assert_eq!((title.id.number(), title.relations.len(), title.description()), (heat, 2, Some("A thief.")));
    assert_eq!(shelf.titles.details(relation).unwrap().unwrap().properties, properties);
    assert_eq!(shelf.list().len(), 2);
    let mut changed = list.clone();
    changed[0].facts.genre = Some("Crime".to_owned());
    shelf.land(ACCOUNT, &changed).unwrap();
    let title = shelf.titles.get(title.id).unwrap().unwrap();
    assert_eq!((title.genre(), title.description()), (Some("Crime"), Some("A thief.")));
    let unknown = shelf.titles.land_details(RelationId(999), FoundDetails::default(), shelf.now);
    assert!(matches!(unknown, Err(LandError::TitleGone)));
}

#[test]
fn a_provider_that_uses_an_id_for_another_film_gets_another_title() {
    let mut shelf = Shelf::new();
    shelf.land(ACCOUNT, &[shelf.film("1", "Heat", "949"), shelf.film("2", "Ronin", "8195")]).unwrap();
    let before = shelf.list();
    // The id is corrected, so it is the same film.
    shelf.land(ACCOUNT, &[shelf.film("1", "Heat 4K", "950"), shelf.film("2", "Ronin", "8195")]).unwrap();
    assert_eq!(shelf.list()[0].0, before[0].0);
    // Name and id are those of another film.
    shelf.land(ACCOUNT, &[shelf.film("1", "Alien", "348"), shelf.film("2", "Ronin", "8195")]).unwrap();
    let after = shelf.list();
    assert!(after.iter().all(|it| it.0 != before[0].0), "{after:?}");
    assert!(after.iter().any(|it| it.1 == "Alien"));
}

#[test]
fn an_admin_merges_splits_and_edits_and_takes_it_back_and_a_refresh_respects_it() {
    let mut shelf = Shelf::new();
    let list = [
        shelf.film("1", "Heat", "949"),
        shelf.film("2", "Heat (DC)", "7"),
        shelf.film("3", "Heat DE", "949"),
    ];
    shelf.land(ACCOUNT, &list).unwrap();
    let before = shelf.groups();
    let [one, other] = shelf.list().try_into().unwrap();
    let id = |number| TitleId::movie(number).unwrap();
    let (into, from, now) = (id(one.0), id(other.0), shelf.now);
    let merged =
        shelf.store.write_blocking(move |write| merge_titles(write, into, from, now)).unwrap().unwrap();
    shelf.land(ACCOUNT, &list).unwrap();
    assert_eq!(shelf.only().relations.len(), 3);
    let undo = |shelf: &Shelf, change: UndoChange| {
        let UndoChange::TitlesChanged { before, after } = change else { panic!("of titles") };
        shelf.store.write_blocking(move |write| restore_titles(write, &before, &after, now)).unwrap()
    };
    undo(&shelf, merged.clone()).unwrap();
    assert_eq!(shelf.groups(), before);
    undo(&shelf, merged).unwrap();
    assert_eq!(shelf.groups(), before, "a second time changes nothing");
    // The split relation stays apart, although it has the id.
    let relation = shelf.titles.get(into).unwrap().unwrap().relations[1].id;
    let split = move |write: &mut Write<'_>| split_title(write, into, &[relation], now);
    let (off, change) = shelf.store.write_blocking(split).unwrap().unwrap();
    let mut changed = list.clone();
    changed.iter_mut().for_each(|it| it.facts.genre = Some("Crime".to_owned()));
    shelf.land(ACCOUNT, &changed).unwrap();
    assert_eq!(shelf.list().len(), 3);
    assert_eq!(shelf.titles.get(off).unwrap().unwrap().genre(), Some("Crime"));
    undo(&shelf, change).unwrap();
    assert_eq!(shelf.groups(), before);
    assert_eq!(shelf.titles.get(off).unwrap().unwrap().id, into, "the id of the split title stays valid");
    let edit =
        move |write: &mut Write<'_>| edit_title(write, into, |it| it.edits.name = Some("H".to_owned()), now);
    let change = shelf.store.write_blocking(edit).unwrap().unwrap();
    shelf.land(ACCOUNT, &list).unwrap();
    assert_eq!(shelf.titles.get(into).unwrap().unwrap().name(), "H");
    undo(&shelf, change).unwrap();
    assert_eq!(shelf.titles.get(into).unwrap().unwrap().name(), "Heat");
    assert!(shelf.store.write_blocking(edit_nothing(into)).unwrap().is_none());
}

fn edit_nothing(id: TitleId) -> impl FnOnce(&mut Write<'_>) -> Result<Option<UndoChange>> + Send + 'static {
    move |write| edit_title(write, id, |_| {}, 0)
}

fn episode(season: u32, number: u32, id: &str) -> FoundEpisode {
    FoundEpisode {
        season,
        number,
        provider_id: id.to_owned(),
        address: None,
        extension: "mkv".to_owned(),
        facts: EpisodeFacts { name: format!("Episode {id}"), ..EpisodeFacts::default() },
    }
}

#[test]
fn episodes_keep_their_ids_through_refreshes_renumbering_and_merges_of_their_series() {
    let mut shelf = Shelf::new();
    let series = |id: &str, tmdb: &str| shelf_series(&shelf, id, tmdb);
    let (one, other) = (series("1", "1396"), series("1", "2"));
    shelf.titles.land_titles(&shelf.sync(ACCOUNT, TitleKind::Series), &[one.clone()][..], &|| false).unwrap();
    shelf.titles.land_titles(&shelf.sync(OTHER, TitleKind::Series), &[other][..], &|| false).unwrap();
    let mut all = Vec::new();
    shelf.titles.for_each(|it| all.push(it)).unwrap();
    let [first, second] = <[Title; 2]>::try_from(all).unwrap();
    let land = |shelf: &mut Shelf, title: &Title, episodes: Vec<FoundEpisode>| {
        shelf.now += 1_000;
        let found = vec![FoundEpisodes { relation: title.relations[0].id, episodes }];
        shelf.titles.land_episodes(found, 1, shelf.now).unwrap().remove(0)
    };
    assert!(first.relations[0].needs_episodes());
    let landed =
        land(&mut shelf, &first, vec![episode(1, 1, "11"), episode(1, 2, "12"), episode(0, 1, "1")]).unwrap();
    assert_eq!((landed.n_found, landed.n_new), (3, 3));
    land(&mut shelf, &second, vec![episode(1, 1, "91"), episode(1, 3, "93")]).unwrap();
    let listed = |shelf: &Shelf, id| {
        let all = shelf.titles.episodes_of(id).unwrap();
        all.iter().map(|it| (it.season, it.number, it.id, it.offers.len())).collect::<Vec<_>>()
    };
    let before = listed(&shelf, first.id);
    assert_eq!(before.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(), [(0, 1), (1, 1), (1, 2)]);
    assert!(!shelf.titles.get(first.id).unwrap().unwrap().relations[0].needs_episodes());
    // An empty answer changes nothing, an episode with another number is the same episode.
    assert!(matches!(land(&mut shelf, &first, Vec::new()), Err(LandError::Empty)));
    let landed =
        land(&mut shelf, &first, vec![episode(1, 1, "11"), episode(2, 1, "12"), episode(0, 1, "1")]).unwrap();
    assert_eq!((landed.n_new, landed.n_stale), (0, 0));
    let after = listed(&shelf, first.id);
    assert_eq!((after[2].0, after[2].1, after[2].2), (2, 1, before[2].2));
    // A missing one is stale first.
    assert_eq!(land(&mut shelf, &first, vec![episode(1, 1, "11"), episode(2, 1, "12")]).unwrap().n_stale, 1);
    assert_eq!(listed(&shelf, first.id).len(), 3);
    shelf.now += DAY;
    assert_eq!(
        land(&mut shelf, &first, vec![episode(1, 1, "11"), episode(2, 1, "12")]).unwrap().n_removed,
        1
    );
    // Both series are one: the second one's episodes follow it, with aliases.
    let of_second = shelf.titles.episodes_of(second.id).unwrap();
    let (into, from, now) = (first.id, second.id, shelf.now);
    let change =
        shelf.store.write_blocking(move |write| merge_titles(write, into, from, now)).unwrap().unwrap();
    let places: Vec<_> = listed(&shelf, into).iter().map(|it| (it.0, it.1, it.3)).collect();
    assert_eq!(places, [(1, 1, 2), (1, 3, 1), (2, 1, 1)]);
    for old in &of_second {
        let now = shelf.titles.episode_by_uuid(old.uuid).unwrap().unwrap();
        assert_eq!((now.series, now.season, now.number), (into, old.season, old.number));
        assert_eq!(shelf.titles.episode(old.id).unwrap().unwrap().id, now.id);
    }
    let UndoChange::TitlesChanged { before, after } = change else { panic!("of titles") };
    shelf.store.write_blocking(move |write| restore_titles(write, &before, &after, now)).unwrap().unwrap();
    let again = shelf.titles.episodes_of(from).unwrap();
    let ids = |all: &[Episode]| all.iter().map(|it| (it.id, it.uuid)).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&of_second));
    // The account is deleted, and its series with it.
    shelf.store.write_blocking(|write| write.remove::<Account>(ACCOUNT.0)).unwrap();
    shelf.titles.remove_missing_accounts().unwrap();
    assert!(
        shelf
            .store
            .collection::<AccountCategory>()
            .by("account", ACCOUNT.0.to_be_bytes())
            .unwrap()
            .is_empty()
    );
    assert!(
        shelf.titles.get(first.id).unwrap().is_none()
            && shelf.titles.episodes_of(first.id).unwrap().is_empty()
    );
    assert_eq!(ids(&shelf.titles.episodes_of(second.id).unwrap()), ids(&of_second));
}

fn shelf_series(shelf: &Shelf, id: &str, tmdb: &str) -> FoundTitle {
    shelf.found(TitleKind::Series, id, "Breaking", tmdb, "")
}

#[test]
fn a_large_list_is_written_in_ranges_and_changed_again_with_edits_kept() {
    let mut shelf = Shelf::new();
    let film = |shelf: &Shelf, it: u32, genre: &str| {
        let mut found = shelf.film(&it.to_string(), &format!("Film {it}"), &(it + 1).to_string());
        found.facts.genre = Some(genre.to_owned());
        found
    };
    let all: Vec<_> = (0..6_000).map(|it| film(&shelf, it, "Drama")).collect();
    assert_eq!(shelf.land(ACCOUNT, &all).unwrap().n_new, 6_000);
    let before = shelf.list();
    assert_eq!(before.len(), 6_000);
    let (id, now) = (TitleId::movie(before[100].0).unwrap(), shelf.now);
    let edit = move |write: &mut Write<'_>| edit_title(write, id, |it| it.hidden = true, now);
    shelf.store.write_blocking(edit).unwrap();
    // Another order, other values, and a tenth is missing.
    let mut changed: Vec<_> =
        (0..6_000).filter(|it| it % 10 != 0).map(|it| film(&shelf, it, "Crime")).collect();
    changed.reverse();
    let landed = shelf.land(ACCOUNT, &changed).unwrap();
    assert_eq!((landed.n_new, landed.n_changed, landed.n_stale), (0, 5_400, 600));
    assert_eq!(shelf.list(), before);
    assert!(shelf.titles.get(id).unwrap().unwrap().hidden);
    // Another account with the same films in another order.
    shelf.land(OTHER, &changed).unwrap();
    assert_eq!(shelf.list().iter().map(|it| it.2.len()).sum::<usize>(), 11_400);
    assert_eq!(shelf.list().len(), 6_000);
}

#[test]
fn numbers_of_titles_and_relations_are_not_used_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    let mut used = BTreeSet::new();
    for round in 0..3_u32 {
        let store = open();
        let mut shelf = Shelf::new();
        (shelf.store, shelf.titles) = (store.clone(), VodTitles::new(&store));
        let account = AccountId(round + 2);
        shelf.put_account(account, 0);
        let found = vec![FoundCategory {
            kind: TitleKind::Movie,
            provider_id: "1".to_owned(),
            name: "All".to_owned(),
        }];
        let links = shelf.titles.land_categories(account, TitleKind::Movie, found, true, 0).unwrap();
        shelf.categories[0] = links[0].category;
        let film = shelf.film("1", &format!("Film {round}"), "");
        shelf.land(account, &[film]).unwrap();
        shelf
            .titles
            .for_each(|title| {
                if title.relations[0].account == account {
                    assert!(used.insert(title.id.number()));
                    assert!(used.insert(title.relations[0].id.0));
                }
            })
            .unwrap();
    }
    assert_eq!(used.len(), 6);
}

/// An entry of a random list: provider's id, name, year, TMDB id and IMDb id.
type Entry = (u8, u8, u8, u8, u8);

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::btree_map(0u8..12, (0u8..4, 0u8..2, 0u8..4, 0u8..4), 1..10).prop_map(|it| {
        it.into_iter().map(|(id, (name, year, tmdb, imdb))| (id, name, year, tmdb, imdb)).collect()
    })
}

fn film_of(shelf: &Shelf, entry: &Entry) -> FoundTitle {
    let (id, name, year, tmdb, imdb) = *entry;
    let mut found = shelf.found(
        TitleKind::Movie,
        &id.to_string(),
        &format!("Name{name}"),
        // 0 is none.
        &tmdb.to_string(),
        &if imdb == 0 { "null".to_owned() } else { format!("tt{imdb}") },
    );
    found.facts.year = Some(1990 + u16::from(year));
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_titles_do_not_depend_on_the_order_of_accounts_or_entries(
        lists in (entries(), entries(), entries()),
        order in Just([0usize, 1, 2]).prop_shuffle(),
        is_reversed in any::<bool>(),
    ) {
        let lists = [(ACCOUNT, lists.0), (OTHER, lists.1), (AccountId(4), lists.2)];
        let groups = |order: [usize; 3], is_reversed: bool| {
            let mut shelf = Shelf::new();
            for (account, entries) in order.map(|it| &lists[it]) {
                let mut found: Vec<_> = entries.iter().map(|it| film_of(&shelf, it)).collect();
                if is_reversed {
                    found.reverse();
                }
                shelf.land(*account, &found).unwrap();
            }
            shelf.groups()
        };
        prop_assert_eq!(groups([0, 1, 2], false), groups(order, is_reversed));
    }

    #[test]
    fn every_id_that_a_title_ever_had_leads_to_its_relations(
        first in entries(),
        rounds in prop::collection::vec((entries(), any::<bool>()), 1..5),
    ) {
        let mut shelf = Shelf::new();
        let found: Vec<_> = first.iter().map(|it| film_of(&shelf, it)).collect();
        shelf.land(ACCOUNT, &found).unwrap();
        let mut known: BTreeMap<(u32, String), TitleId> = BTreeMap::new();
        for (entries, of_first) in rounds {
            shelf.titles.for_each(|title| {
                for it in &title.relations {
                    known.insert((it.account.0, it.provider_id.clone()), title.id);
                }
            }).unwrap();
            // A refresh changes categories, names and order, and another account adds ids.
            let mut found: Vec<_> = match of_first {
                true => first.iter().map(|it| film_of(&shelf, &(it.0, it.1, it.2, it.3, 0))).collect(),
                false => entries.iter().map(|it| film_of(&shelf, it)).collect(),
            };
            found.iter_mut().for_each(|it| it.facts.name.push_str(" 4K"));
            found.reverse();
            let account = if of_first { ACCOUNT } else { OTHER };
            let sync = TitleSync { is_confirmed: true, ..shelf.sync(account, TitleKind::Movie) };
            shelf.titles.land_titles(&sync, &found[..], &|| false).unwrap();
            for ((account, provider_id), id) in known.iter().filter(|it| it.0.0 == ACCOUNT.0) {
                let title = shelf.titles.get(*id).unwrap().expect("an id stays valid");
                let has_it = title.relations_of(AccountId(*account)).any(|it| it.provider_id == *provider_id);
                prop_assert!(has_it, "{} {:?}", provider_id, title);
            }
        }
    }
}

/// Stores the answer of a catalogue about a film.
fn complete(shelf: &Shelf, title: TitleId, name: &str, year: u16, tmdb: &str) {
    let ids = ExternalIds { tmdb: Some(tmdb.to_owned()), imdb: None };
    let facts = TitleFacts { name: name.to_owned(), year: Some(year), ids, ..TitleFacts::default() };
    let completion =
        Completion { outcome: CompletionOutcome::Found, facts: Some(facts), ..Completion::default() };
    let record = CompletedRecord { title, completion, episodes: Vec::new() };
    shelf.titles.put_completions(vec![record], shelf.now).unwrap();
}

#[test]
fn completed_titles_are_joined_by_their_id_and_still_get_entries_of_their_name() {
    let mut shelf = Shelf::new();
    shelf.land(ACCOUNT, &[shelf.film("1", "Heat (1995)", ""), shelf.film("2", "Ronin (1998)", "")]).unwrap();
    shelf.land(OTHER, &[shelf.film("7", "Ronin - Im Netz", "8195")]).unwrap();
    let ids: Vec<TitleId> = shelf.list().iter().map(|it| TitleId::movie(it.0).unwrap()).collect();
    assert_eq!(shelf.titles.join_same(shelf.now, &|| false).unwrap(), 0);
    complete(&shelf, ids[0], "Heat", 1995, "949");
    complete(&shelf, ids[1], "Ronin", 1998, "8195");
    assert_eq!(shelf.titles.join_same(shelf.now, &|| false).unwrap(), 1);
    let entries = [shelf.film("8", "HEAT 4K (1995)", ""), shelf.film("9", "Hitze", "949")];
    shelf.land(AccountId(4), &entries).unwrap();
    let listed: Vec<_> = shelf.list().into_iter().map(|it| (it.1, it.2)).collect();
    let heat = relations(&[(2, "1"), (4, "8"), (4, "9")]);
    assert_eq!(listed, [("Heat".to_owned(), heat), ("Ronin".to_owned(), relations(&[(2, "2"), (3, "7")]))]);
    assert_eq!(shelf.titles.remove_completions(shelf.now, &|| false).unwrap(), 2);
    assert!(shelf.list().iter().any(|it| it.1 == "Heat (1995)"));
    let stopped = shelf.titles.remove_completions(shelf.now, &|| true);
    assert_eq!(stopped.unwrap(), 0, "nothing is left to remove");
}
