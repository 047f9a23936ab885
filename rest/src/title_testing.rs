//! Films and series for tests: what everybody sees, what only some see, and secrets that only admins see.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, EpisodeId, ProfileId, VodCategoryId};
use domain::source_url::SourceUrl;
use domain::vod::{
    AccountCategory, Episode, EpisodeFacts, EpisodeOffer, ExternalIds, Relation, RelationId, Title,
    TitleFacts, TitleId, TitleKind, VodCategory, uuid_of,
};
use serde_json::{Map, json};

use crate::testing::{Rest, SECRET};

pub(crate) const DRAMA: VodCategoryId = VodCategoryId(101);
pub(crate) const LATE_NIGHT: VodCategoryId = VodCategoryId(102);
pub(crate) const SPACE: VodCategoryId = VodCategoryId(103);
/// Imported by no account.
pub(crate) const OFF: VodCategoryId = VodCategoryId(104);

fn url(path: &str) -> String {
    format!("http://{SECRET}:{SECRET}@provider.example/{path}?token={SECRET}")
}

fn relation(id: u32, account: u32, category: VodCategoryId, name: &str) -> Relation {
    let facts = TitleFacts { name: name.to_owned(), ..TitleFacts::default() };
    let new = Relation::new(RelationId(id), AccountId(account), category, id.to_string(), 1_600_000_000_000);
    Relation { extension: "mkv".to_owned(), facts, ..new }
}

pub(crate) fn title(id: TitleId, relations: Vec<Relation>) -> Title {
    let new = Title::new(id, uuid_of(id.key(), u128::from(id.key()) << 64), 1_600_000_000_000);
    Title { relations, ..new }
}

fn episode(id: u32, season: u32, number: u32, name: &str) -> Episode {
    let facts = EpisodeFacts {
        name: name.to_owned(),
        description: Some(format!("Plot of {name}")),
        air_date: Some("2022-09-21".to_owned()),
        duration_secs: Some(2400),
        logo: Some(url("e.jpg")),
        ..EpisodeFacts::default()
    };
    Episode {
        id: EpisodeId(id),
        uuid: uuid_of(id, u128::from(id) << 64),
        series: TitleId::series(1).unwrap(),
        season,
        number,
        offers: vec![EpisodeOffer {
            account: AccountId(12),
            relation: RelationId(25),
            provider_id: format!("9{id}"),
            address: Some(SourceUrl::new(url("e.mkv"))),
            extension: "mkv".to_owned(),
            facts,
            last_seen: None,
        }],
        completion: None,
        aliases: Vec::new(),
        created_at: 1_600_000_000_000,
        updated_at: 1_600_000_000_000,
    }
}

/// Stores two accounts, categories, the films 1 (two versions), 2 (adult), 3 (hidden) and 4 (of a category that is not
/// imported), and the series 1 with three episodes.
pub(crate) async fn put_titles(rest: &Rest) {
    for (id, name) in [(12, "One"), (13, "Two")] {
        let list = PlaylistLocation::Url(SourceUrl::new(url("list.m3u")));
        let profile = AccountProfile::default_of(ProfileId(id), "default", 1);
        let account = Account::new(AccountId(id), name, list, profile, 0);
        rest.put([Account { enable_vod: true, ..account }]).await;
    }
    let categories = [
        (DRAMA, "Drama", TitleKind::Movie),
        (LATE_NIGHT, "Late Night", TitleKind::Movie),
        (SPACE, "Space", TitleKind::Series),
        (OFF, SECRET, TitleKind::Movie),
    ];
    rest.put(categories.map(|(id, name, kind)| VodCategory { id, name: name.to_owned(), kind })).await;
    let links = [(12, DRAMA), (12, LATE_NIGHT), (12, SPACE), (13, DRAMA), (13, OFF)];
    rest.put((1..).zip(links).map(|(id, (account, category))| AccountCategory {
        id,
        account: AccountId(account),
        category,
        kind: if category == SPACE { TitleKind::Series } else { TitleKind::Movie },
        provider_ids: vec![id.to_string()],
        enabled: category != OFF,
        custom_properties: Map::new(),
        last_seen: None,
    }))
    .await;

    let mut first = relation(17, 12, DRAMA, "Metropolis");
    first.facts = TitleFacts {
        description: Some("A city".to_owned()),
        year: Some(1927),
        rating: Some("8.3".to_owned()),
        genre: Some("Science Fiction, Drama".to_owned()),
        duration_secs: Some(9180),
        logo: Some(url("p.jpg")),
        ids: ExternalIds { tmdb: Some("19".to_owned()), imdb: Some("tt0017136".to_owned()) },
        ..first.facts
    };
    first.address = Some(SourceUrl::new(url("m.mkv")));
    first.provider_id = url("m.mkv");
    first.last_modified = Some(1_500_000_000);
    let properties = json!({
        "cast": "Brigitte Helm", "director": "Fritz Lang", "direct_source": url("m.mkv"),
        "backdrop_path": [url("b.jpg")], "custom": SECRET,
    });
    first.custom_properties = properties.as_object().unwrap().clone();
    let second = Relation { label: Some("4K".to_owned()), ..relation(18, 13, DRAMA, "Metropolis 4K") };
    let mut adult = relation(19, 12, LATE_NIGHT, "Late");
    adult.facts.is_adult = true;
    let hidden = relation(20, 12, DRAMA, SECRET);
    let off = relation(21, 13, OFF, SECRET);
    let film = |number| TitleId::movie(number).unwrap();
    let mut series = relation(25, 12, SPACE, "Andor");
    series.extension = String::new();
    series.facts.year = Some(2022);
    series.facts.logo = Some(url("s.jpg"));
    rest.put([
        title(film(1), vec![first, second]),
        title(film(2), vec![adult]),
        Title { hidden: true, ..title(film(3), vec![hidden]) },
        title(film(4), vec![off]),
        title(TitleId::series(1).unwrap(), vec![series]),
    ])
    .await;
    rest.put([
        episode(1, 1, 1, "Kassa"),
        episode(2, 1, 2, "That Would Be Me"),
        episode(3, 0, 1, "Making of"),
    ])
    .await;
}
