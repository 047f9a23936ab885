//! Tables of filters and orders, and comparisons with a simple search.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::catchup::Archive;
use crate::entry_details::EntryDetails;
use crate::source_url::SourceUrl;
use crate::stream::StreamProperties;

/// Parses `NAME/TVG-ID/GROUP`, with a leading `~` for a stale stream.
fn stream(id: u32, account: u32, text: &str) -> Stream {
    let mut parts = text.trim_start_matches('~').split('/').map(str::to_owned);
    let name = parts.next().unwrap_or_default();
    let properties = StreamProperties {
        tvg_id: parts.next(),
        group: parts.next(),
        content: StreamContent::ALL[id as usize % 4],
        ..StreamProperties::new(name, SourceUrl::new("http://h/1"))
    };
    let mut stream = Stream::new(StreamId(id), AccountId(account), properties, 0);
    stream.last_seen = text.starts_with('~').then_some(0);
    // Those of every third name have an archive.
    let attributes = [("catchup".to_owned(), "shift".to_owned())];
    let archive = Archive::from_attributes(&attributes).filter(|_| stream.name().len() % 3 == 2);
    stream.provider.archive = archive.map(Box::new);
    stream
}

fn shard(account: u32, streams: &[Stream]) -> Shard {
    let mut builder = ShardBuilder::new(AccountId(account));
    streams.iter().for_each(|it| builder.add(it));
    builder.build()
}

fn index(streams: &[Stream]) -> StreamSnapshot {
    let mut index = StreamSnapshot::default();
    for account in 1..=4 {
        let own: Vec<_> = streams.iter().filter(|it| it.account.0 == account).cloned().collect();
        index = index.with(shard(account, &own));
    }
    index
}

fn few() -> Vec<Stream> {
    vec![
        stream(1, 1, "BBC News HD/bbc.uk/UK News"),
        stream(4, 1, "~Česká televize/ct1.cz/Ústí"),
        stream(2, 1, "bbc one//UK"),
        stream(3, 2, "CNN/cnn.us/news"),
        stream(5, 2, "Ab"),
        stream(6, 2, "c/ab.c/UK"),
    ]
}

fn ids(ids: &[u32]) -> HashSet<StreamId> {
    ids.iter().copied().map(StreamId).collect()
}

#[track_caller]
fn check(query: StreamQuery, expected: &[u32]) {
    let index = index(&few());
    let expected: Vec<_> = expected.iter().copied().map(StreamId).collect();
    assert_eq!(index.find(&query, 0, 100), StreamPage { count: expected.len(), ids: expected });
}

#[test]
fn each_filter_finds_its_streams_and_several_filters_their_intersection() {
    let query = StreamQuery::default;
    let text = |it: &str| Some(it.to_owned());
    let groups = |it: &[&str]| Some(it.iter().map(|it| (*it).to_owned()).collect());
    check(query(), &[1, 2, 3, 4, 5, 6]);
    check(StreamQuery { ids: Some(ids(&[4, 1, 99])), ..query() }, &[1, 4]);
    check(StreamQuery { ids: Some(ids(&[4, 1])), only: Some(ids(&[1, 2])), ..query() }, &[1]);
    check(StreamQuery { ids: Some(ids(&[])), ..query() }, &[]);
    check(StreamQuery { without: Some([1, 3, 99].map(StreamId).into()), ..query() }, &[2, 4, 5, 6]);
    check(StreamQuery { ids: Some(ids(&[1, 3])), without: Some([1].map(StreamId).into()), ..query() }, &[3]);
    check(StreamQuery { name: text("BBC"), ..query() }, &[1, 2]);
    check(StreamQuery { name: text("česká"), ..query() }, &[4]);
    check(StreamQuery { name: text("ČESKÁ"), ..query() }, &[4]);
    // A match must not span two names.
    check(StreamQuery { name: text("hdč"), ..query() }, &[]);
    check(StreamQuery { name: text("nnab"), ..query() }, &[]);
    check(StreamQuery { name: text("abc"), ..query() }, &[]);
    check(StreamQuery { name: text(""), ..query() }, &[1, 2, 3, 4, 5, 6]);
    check(StreamQuery { tvg_id: text(".U"), ..query() }, &[1, 3]);
    check(StreamQuery { search: text("news"), ..query() }, &[1, 3]);
    check(StreamQuery { search: text("ab"), ..query() }, &[5, 6]);
    check(StreamQuery { search: text("ÚSTÍ"), ..query() }, &[4]);
    check(StreamQuery { groups: groups(&["UK"]), ..query() }, &[2, 6]);
    check(StreamQuery { groups: groups(&["UK", "news"]), ..query() }, &[2, 3, 6]);
    check(StreamQuery { groups: groups(&["uk"]), ..query() }, &[]);
    check(StreamQuery { accounts: Some([AccountId(2), AccountId(9)].into()), ..query() }, &[3, 5, 6]);
    check(StreamQuery { hide_stale: true, ..query() }, &[1, 2, 3, 5, 6]);
    check(
        StreamQuery {
            name: text("c"),
            groups: groups(&["UK"]),
            accounts: Some([AccountId(2)].into()),
            ..query()
        },
        &[6],
    );
}

#[test]
fn the_memory_of_marks_counts_once() {
    let marked = |id: u32, language: &str| {
        let mut stream = stream(id, 1, "News");
        let mut details = EntryDetails::default();
        details.marks.language = Some(language.to_owned());
        stream.provider.details = Some(Box::new(details));
        stream
    };
    let bytes = |streams: &[Stream]| shard(1, streams).bytes();
    let (short, long) = ("a", "a".repeat(1_001));
    assert_eq!(bytes(&[marked(1, &long)]) - bytes(&[marked(1, short)]), 1_000);
    let shared = bytes(&[marked(1, &long), marked(2, &long)]) - bytes(&[marked(1, short), marked(2, short)]);
    assert_eq!(shared, 1_000);
}

#[test]
fn streams_are_sorted_by_text_ignoring_case_then_by_id() {
    let by = |order, descending| StreamQuery { order, descending, ..StreamQuery::default() };
    check(by(StreamOrder::Id, true), &[6, 5, 4, 3, 2, 1]);
    check(by(StreamOrder::Name, false), &[5, 1, 2, 6, 3, 4]);
    check(by(StreamOrder::Name, true), &[4, 3, 6, 2, 1, 5]);
    check(by(StreamOrder::TvgId, false), &[2, 5, 6, 1, 3, 4]);
    check(by(StreamOrder::Group, false), &[5, 3, 2, 6, 1, 4]);
    check(by(StreamOrder::Account, false), &[1, 2, 4, 3, 5, 6]);
}

#[test]
fn an_edit_is_visible_without_rebuilding_its_shard_and_other_shards_are_shared() {
    let before = index(&few());
    let moved = stream(1, 2, "moved/x/UK");
    let renamed = stream(2, 1, "~renamed//New");
    let after = before.edited([
        (StreamId(1), Some(&moved)),
        (StreamId(2), Some(&renamed)),
        (StreamId(5), None),
        (StreamId(7), Some(&stream(7, 3, "first of its account"))),
        (StreamId(99), None),
    ]);
    assert_eq!(after.ids(&StreamQuery::default()), [1, 2, 3, 4, 6, 7].map(StreamId));
    let by_name = StreamQuery { order: StreamOrder::Name, ..StreamQuery::default() };
    assert_eq!(after.ids(&by_name), [6, 3, 7, 1, 2, 4].map(StreamId));
    assert_eq!((after.len(), before.len(), after.n_edited()), (6, 6, 3));
    let where_is = |id| after.contains(StreamId(id)).map(|it| it.0);
    assert_eq!([1, 2, 3, 5, 7, 99].map(where_is), [Some(2), Some(1), Some(2), None, Some(3), None]);
    let counts = |account| after.account_counts(AccountId(account));
    assert_eq!(counts(1), StreamCounts { n: 2, n_stale: 2 });
    assert_eq!(counts(2), StreamCounts { n: 3, n_stale: 0 });
    assert_eq!(counts(3), StreamCounts { n: 1, n_stale: 0 });
    let groups = |accounts: Option<HashSet<AccountId>>| {
        let groups = after.groups(accounts.as_ref());
        groups.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>()
    };
    assert_eq!(groups(None), ["New 1", "UK 2", "news 1", "Ústí 1"]);
    assert_eq!(groups(Some([AccountId(1)].into())), ["New 1", "Ústí 1"]);

    let replaced = after.with(shard(1, &[renamed, stream(4, 1, "z")]));
    assert!(Arc::ptr_eq(replaced.shard(AccountId(2)).unwrap(), before.shard(AccountId(2)).unwrap()));
    assert_eq!(replaced.ids(&StreamQuery::default()), [1, 2, 3, 4, 6, 7].map(StreamId));
    assert_eq!(replaced.without(AccountId(2)).ids(&StreamQuery::default()), [2, 4, 7].map(StreamId));
}

/// Finds streams by checking one after the other.
fn naive(streams: &BTreeMap<StreamId, Stream>, query: &StreamQuery) -> Vec<StreamId> {
    let lower = |it: Option<&str>| it.unwrap_or_default().to_lowercase();
    let has = |needle: &Option<String>, texts: &[String]| {
        needle.as_ref().is_none_or(|needle| texts.iter().any(|it| it.contains(&needle.to_lowercase())))
    };
    let in_set = |set: &Option<HashSet<StreamId>>, id| set.as_ref().is_none_or(|it| it.contains(&id));
    let mut found: Vec<_> = streams
        .values()
        .filter(|it| {
            let [name, tvg_id, group] = [lower(Some(it.name())), lower(it.tvg_id()), lower(it.group())];
            in_set(&query.ids, it.id)
                && in_set(&query.only, it.id)
                && query.without.as_ref().is_none_or(|ids| !ids.contains(&it.id))
                && has(&query.name, std::slice::from_ref(&name))
                && has(&query.tvg_id, std::slice::from_ref(&tvg_id))
                && has(&query.search, &[name, tvg_id, group])
                && query.groups.as_ref().is_none_or(|names| names.contains(it.group().unwrap_or_default()))
                && query.accounts.as_ref().is_none_or(|accounts| accounts.contains(&it.account))
                && !(query.hide_stale && it.is_stale())
                && query.has_archive.is_none_or(|wanted| wanted == (it.archive_days() > 0))
                && query.contents.as_ref().is_none_or(|contents| contents.contains(&it.content()))
        })
        .collect();
    found.sort_by_key(|it| {
        let text = match query.order {
            StreamOrder::Id => String::new(),
            StreamOrder::Name => lower(Some(it.name())),
            StreamOrder::Group => lower(it.group()),
            StreamOrder::TvgId => lower(it.tvg_id()),
            StreamOrder::Account => format!("{:010}", it.account.0),
        };
        (text, it.id)
    });
    if query.descending {
        found.reverse();
    }
    found.iter().map(|it| it.id).collect()
}

fn text() -> impl Strategy<Value = String> {
    "~?[abAÄ]{0,3}(/[abÄ]{0,2})?(/[abA]{1,2})?"
}

fn query() -> impl Strategy<Value = StreamQuery> {
    let needle = || proptest::option::weighted(0.3, "[abAÄ]{0,2}");
    let set = || {
        proptest::option::weighted(
            0.2,
            vec((0u32..60).prop_map(StreamId), 0..40).prop_map(|it| it.into_iter().collect()),
        )
    };
    let without = proptest::option::weighted(
        0.2,
        vec((0u32..60).prop_map(StreamId), 0..40).prop_map(|it| it.into_iter().collect()),
    );
    let groups =
        proptest::option::weighted(0.3, vec("[abA]{1,2}", 0..3).prop_map(|it| it.into_iter().collect()));
    let accounts = proptest::option::weighted(
        0.3,
        vec((1u32..5).prop_map(AccountId), 0..3).prop_map(|it| it.into_iter().collect()),
    );
    let contents =
        proptest::option::weighted(0.3, vec(proptest::sample::select(&StreamContent::ALL[..]), 0..3));
    let order = prop_oneof![
        Just(StreamOrder::Id),
        Just(StreamOrder::Name),
        Just(StreamOrder::Group),
        Just(StreamOrder::TvgId),
        Just(StreamOrder::Account)
    ];
    (
        (set(), needle(), needle(), needle(), groups),
        (accounts, set(), without, any::<bool>(), contents, order, any::<bool>(), any::<Option<bool>>()),
    )
        .prop_map(
            |(
                (ids, name, tvg_id, search, groups),
                (accounts, only, without, hide_stale, contents, order, descending, has_archive),
            )| StreamQuery {
                ids,
                name,
                tvg_id,
                search,
                groups,
                accounts,
                only,
                without,
                hide_stale,
                has_archive,
                contents,
                order,
                descending,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_snapshot_agrees_with_a_simple_search_through_edits_and_new_shards(
        rows in vec((0u32..60, 1u32..5, text()), 0..60),
        steps in vec((vec((0u32..60, 1u32..5, proptest::option::of(text())), 0..6), proptest::option::of(1u32..5)), 0..4),
        queries in vec((query(), 0usize..20, 0usize..20), 1..8),
    ) {
        let mut model: BTreeMap<StreamId, Stream> = BTreeMap::new();
        for (id, account, text) in rows {
            model.insert(StreamId(id), stream(id, account, &text));
        }
        // Not sorted by id.
        let mut streams: Vec<_> = model.values().cloned().collect();
        streams.reverse();
        let mut index = index(&streams);
        for (edits, replaced) in steps {
            let edits: BTreeMap<_, _> = edits.iter().map(|(id, account, text)| (StreamId(*id), text.as_ref().map(|it| stream(*id, *account, it)))).collect();
            for (id, edit) in &edits {
                match edit {
                    Some(edit) => drop(model.insert(*id, edit.clone())),
                    None => drop(model.remove(id)),
                }
            }
            index = index.edited(edits.iter().map(|(id, edit)| (*id, edit.as_ref())));
            if let Some(account) = replaced {
                let own: Vec<_> = model.values().filter(|it| it.account.0 == account).cloned().collect();
                index = index.with(shard(account, &own));
            }
        }
        prop_assert_eq!(index.len(), model.len());
        for id in (0..60).map(StreamId) {
            prop_assert_eq!(index.contains(id), model.get(&id).map(|it| it.account));
        }
        let mut archives: Vec<_> = index.archives().map(|it| (it.0, it.1)).collect();
        archives.sort_unstable();
        let with_archive = model.values().filter(|it| it.archive_days() > 0);
        prop_assert_eq!(archives, with_archive.map(|it| (it.id, it.account)).collect::<Vec<_>>());
        for account in (1..5).map(AccountId) {
            let own: Vec<_> = model.values().filter(|it| it.account == account).collect();
            let n_stale = own.iter().filter(|it| it.is_stale()).count();
            prop_assert_eq!(index.account_counts(account), StreamCounts { n: own.len(), n_stale });
            let mut groups: BTreeMap<String, usize> = BTreeMap::new();
            own.iter().filter_map(|it| it.group()).for_each(|it| *groups.entry(it.to_owned()).or_default() += 1);
            prop_assert_eq!(index.groups(Some(&[account].into())), groups.into_iter().collect::<Vec<_>>());
        }
        for (query, offset, limit) in queries {
            let expected = naive(&model, &query);
            let page: Vec<_> = expected.iter().skip(offset).take(limit).copied().collect();
            prop_assert_eq!(index.find(&query, offset, limit), StreamPage { count: expected.len(), ids: page });
            prop_assert_eq!(index.ids(&query), expected);
        }
    }
}
