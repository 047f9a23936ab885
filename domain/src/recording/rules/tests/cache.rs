//! What a scan finds, and what the cache of matches keeps of it.

use proptest::prelude::*;

use super::*;

/// A guide channel: its content number, and the start, length and title of its programmes, in hours.
type RandomChannel = (u64, Vec<(i64, i64, usize)>);

const TITLES: [&str; 6] = ["Show", "show  two", "The Show", "News &amp; More", "Film", "x1"];

fn random_rule() -> impl Strategy<Value = ProgrammeTest> {
    let texts = [
        (TextMode::Exact, "SHOW"),
        (TextMode::Exact, "News & More"),
        (TextMode::Exact, "Show Two"),
        (TextMode::Contains, "show"),
        (TextMode::Search, "show OR film"),
        (TextMode::Regex, "^the|[0-9]$"),
        (TextMode::Regex, "o"),
    ];
    let key = prop_oneof![Just(None), Just(Some("c0".to_owned())), Just(Some("C2".to_owned()))];
    (0..texts.len(), key, any::<bool>()).prop_map(move |(text, tvg_id, is_described)| {
        let (mode, text) = texts[text];
        let title = Some(TextTest { mode, text: text.to_owned() });
        let description = TextTest { mode: TextMode::Contains, text: "1".to_owned() };
        let description = is_described.then_some(description);
        ProgrammeTest { tvg_id, title, description, ..ProgrammeTest::default() }
    })
}

fn random_guide() -> impl Strategy<Value = Vec<RandomChannel>> {
    let programmes = proptest::collection::vec((0..6i64, 1..4i64, 0..TITLES.len()), 0..12);
    proptest::collection::vec((0..3u64, programmes), 4)
}

/// Programmes of one content number are the same, because files never change.
fn programmes_of(at: usize, content: u64, guides: &[Vec<RandomChannel>]) -> Vec<(i64, i64, usize)> {
    let of_content = guides.iter().find_map(|guide| guide.get(at).filter(|it| it.0 == content));
    let mut start = NOW - 10 * HOUR;
    let laid_out = |(pause, length, title): &(i64, i64, usize)| {
        let begin = start + pause * HOUR;
        start = begin + length * HOUR;
        (begin, start, *title)
    };
    of_content.map(|it| it.1.iter().map(laid_out).collect()).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_was_found_before_gives_the_same_result_as_reading_everything(
        rules in proptest::collection::vec(random_rule(), 1..6),
        other_rules in proptest::collection::vec(random_rule(), 1..3),
        guides in proptest::collection::vec(random_guide(), 1..6),
        hours in proptest::collection::vec(0..8i64, 6),
        changes_rules in 0..6usize,
        followed in proptest::collection::vec((0..4usize, -12..40i64, 1..4i64), 0..4),
    ) {
        let recordings: Vec<_> = (1..).zip(&followed).map(|(id, (channel, start, length))| {
            let key = format!("c{channel}");
            followed_recording(id, &key, NOW + start * HOUR, NOW + (start + length) * HOUR)
        }).collect();
        let mut cache = MatchCache::default();
        let (mut n_read, mut shift) = (0, 0);
        for (n, guide) in guides.iter().enumerate() {
            shift += hours[n];
            let wanted = if n >= changes_rules { &other_rules } else { &rules };
            let rules: Vec<_> = wanted.iter().cloned().map(rule).collect();
            let tests = || RuleSet::tests(&rules, &recordings, |_| None);
            let (from, until) = (NOW + (shift - 8) * HOUR, NOW + (shift + 8) * HOUR);
            let fresh = look(&mut MatchCache::default(), tests(), guide, &guides, &recordings, (from, until), (0, &mut 0));
            let kept = look(&mut cache, tests(), guide, &guides, &recordings, (from, until), (n as u64, &mut n_read));
            prop_assert_eq!(&kept, &fresh);
            // Nothing is read again while nothing changes.
            let before = n_read;
            let again = look(&mut cache, tests(), guide, &guides, &recordings, (from, until), (n as u64, &mut n_read));
            prop_assert_eq!((&again, n_read), (&fresh, before));
        }
    }

    #[test]
    fn rules_find_together_what_each_finds_alone(
        rules in proptest::collection::vec(random_rule(), 1..8),
        guide in random_guide(),
    ) {
        let guides = [guide];
        let find = |rules: &[RecordingRule]| {
            let tests = RuleSet::tests(rules, [], |_| None);
            let all = (i64::MIN / 1000, i64::MAX / 1000);
            look(&mut MatchCache::default(), tests, &guides[0], &guides, &[], all, (0, &mut 0)).0
        };
        let rules: Vec<_> = rules.into_iter().map(rule).collect();
        let mut together = find(&rules);
        let mut alone = Vec::new();
        for (at, rule) in (0..).zip(&rules) {
            let found = find(std::slice::from_ref(rule)).into_iter();
            alone.extend(found.map(|(_, airing)| (RuleSubject::Rule(at), airing)));
        }
        let order = |it: &(RuleSubject, Arc<Airing>)| (it.0, it.1.guide_key.clone(), it.1.start);
        together.sort_by_key(order);
        alone.sort_by_key(order);
        prop_assert_eq!(together, alone);
    }
}

/// A scheduled recording that a user made of a programme.
fn followed_recording(id: u32, key: &str, start: i64, end: i64) -> Recording {
    let mut stage = Stage::new([rule(exact("Show"))]).guide(key, &[1], [programme(1, 2, "Show")]);
    stage.evaluate();
    let mut it = Recording::clone(&stage.recordings[0]);
    it.id = RecordingId(id);
    let followed = it.followed.as_mut().unwrap();
    (followed.rule, followed.start, followed.end) = (None, start * 1000, end * 1000);
    it
}

type Looked = (Vec<(RuleSubject, Arc<Airing>)>, Vec<RecordingId>);

/// Looks at a guide as an evaluation does. Times are seconds since 1970. Counts the channels that are read.
fn look(
    cache: &mut MatchCache,
    tests: Vec<(RuleSubject, ProgrammeTest)>,
    guide: &[RandomChannel],
    guides: &[Vec<RandomChannel>],
    recordings: &[Recording],
    (from, until): (i64, i64),
    (generation, n_read): (u64, &mut usize),
) -> Looked {
    let set = cache.set_of(tests);
    let mut scan = GuideScan::new(&set, recordings);
    cache.exchange_titles(&mut scan);
    let (from_ms, until_ms) = (from.saturating_mul(1000), until.saturating_mul(1000));
    let mut read = HashMap::new();
    for (id, (content, _)) in (0..).zip(guide) {
        let channels: Arc<[ChannelId]> = Arc::new([ChannelId(id)]);
        let key = MatchKey { key: format!("c{id}"), guide_ids: Vec::new(), channels: Arc::clone(&channels) };
        let known = cache.take(id.into(), &key, (1, generation), (from_ms, until_ms), || Some(*content));
        if let Some(known) = known {
            scan.reuse(&key.key, &known.matches, from_ms, until_ms);
            read.insert(id.into(), known);
            continue;
        }
        let Some(mut channel) = scan.channel(&key.key, &[], channels) else { continue };
        *n_read += 1;
        let read_until = until.saturating_add(4 * HOUR);
        for (start, stop, title) in programmes_of(id as usize, *content, guides) {
            if stop > from && start < read_until {
                let inner =
                    format!("<title>{}</title><desc>About {}.</desc>", TITLES[title], start / HOUR % 3);
                channel.programme(start, stop, &inner, || start.to_string());
            }
        }
        if let Some(matches) = channel.finish(from_ms, until_ms) {
            let time = (from_ms, read_until.saturating_mul(1000));
            read.insert(
                id.into(),
                KnownMatches { key, file: (1, generation), content: *content, time, matches },
            );
        }
    }
    cache.exchange_titles(&mut scan);
    cache.replace(read);
    let (found, covered) = scan.finish();
    let mut covered: Vec<_> = covered.into_iter().collect();
    covered.sort_unstable();
    (found, covered)
}
