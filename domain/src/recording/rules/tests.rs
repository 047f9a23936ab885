use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::guide::marks::with_marks;
use crate::guide::programme::{EpisodeNumber, LocalText, PreviouslyShown, Programme, to_xml};
use crate::ids::{RecordingId, RecordingRuleId};
use crate::recording::{RecordedFile, Recording, RecordingInput, RecordingStatus};

const HOUR: i64 = 3600;
/// A Monday, 12:00 in UTC, in seconds.
const NOW: i64 = 1_795_435_200;

/// Rules, a guide and the recordings that followed from them so far.
struct Stage {
    rules: Vec<Arc<RecordingRule>>,
    recordings: Vec<Arc<Recording>>,
    memories: HashMap<RecordingRuleId, Arc<RuleMemory>>,
    /// Guide channels with their key, their channels and their programmes.
    guide: Vec<(String, Vec<u32>, Vec<Programme>)>,
    /// Seconds since 1970.
    now: i64,
    zone: TimeZone,
    n_new_max: usize,
}

impl Stage {
    fn new(rules: impl IntoIterator<Item = RecordingRule>) -> Stage {
        Stage {
            rules: rules.into_iter().map(Arc::new).collect(),
            recordings: Vec::new(),
            memories: HashMap::new(),
            guide: Vec::new(),
            now: NOW,
            zone: TimeZone::UTC,
            n_new_max: 20_000,
        }
    }

    fn guide(
        mut self,
        key: &str,
        channels: &[u32],
        programmes: impl IntoIterator<Item = Programme>,
    ) -> Stage {
        self.guide.retain(|it| it.0 != key);
        self.guide.push((key.to_owned(), channels.to_vec(), programmes.into_iter().collect()));
        self
    }

    /// Reads the guide, and runs a plan on what was found.
    fn planned<T>(&self, run: impl FnOnce(PlanInput<'_>) -> T) -> T {
        let set = RuleSet::new(self.rules.iter().map(|it| &**it), self.recordings.iter().map(|it| &**it));
        let mut scan = GuideScan::new(&set, self.recordings.iter().map(|it| &**it));
        scan.set_guide_ids(self.guide.iter().map(|it| it.0.as_str()));
        for (key, channels, programmes) in &self.guide {
            let channels: Arc<[ChannelId]> = channels.iter().map(|it| ChannelId(*it)).collect();
            let Some(mut channel) = scan.channel(key, &[], channels) else { continue };
            for it in programmes {
                let mut inner = String::new();
                to_xml(it, &mut inner);
                channel.programme(it.start, it.stop, &inner, || format!("{key}-{}", it.start));
            }
            channel.finish(i64::MIN, i64::MAX);
        }
        let (airings, covered) = scan.finish();
        run(PlanInput {
            rules: &self.rules,
            recordings: &self.recordings,
            memories: &self.memories,
            airings,
            covered: &covered,
            channel: &|id| Some((format!("channel {id}"), Uuid::from_u128(id.0.into()))),
            // Channel 66 belongs to others.
            may_record: &|_, channel| channel.0 != 66,
            padding: (60, 120),
            zone: &self.zone,
            now: self.now * 1000,
            n_new_max: self.n_new_max,
        })
    }

    /// Plans and applies the changes. Returns their number.
    fn evaluate(&mut self) -> usize {
        let changes = self.planned(plan);
        let n = changes.len();
        for change in changes {
            match change {
                PlannedChange::Create(recording) => {
                    let id = RecordingId(self.recordings.iter().map(|it| it.id.0).max().unwrap_or(0) + 1);
                    self.recordings.push(Arc::new(Recording { id, ..*recording }));
                }
                PlannedChange::Update { before, after } => {
                    let at = self.recordings.iter().position(|it| *it == before).unwrap();
                    self.recordings[at] = Arc::new(*after);
                }
                PlannedChange::Remove(recording) => self.recordings.retain(|it| it.id != recording.id),
                PlannedChange::Remember { rule, old } => {
                    let memory = self.memories.entry(rule).or_insert_with(|| Arc::new(RuleMemory::new(rule)));
                    old.into_iter().for_each(|it| Arc::make_mut(memory).add_old(it));
                }
            }
        }
        n
    }

    /// Evaluates, and returns the recordings as `channel@start-end`, in hours from NOW.
    fn scheduled(&mut self) -> Vec<String> {
        self.evaluate();
        self.show()
    }

    /// Returns the preview of the first rule as `channel@start mark reason`, with the start in hours from NOW.
    fn preview(&self) -> Vec<String> {
        let show = |it: MarkedAiring| {
            let hours = (it.airing.start / 1000 - NOW) as f64 / HOUR as f64;
            let channel = it.channel.map_or("-".to_owned(), |it| it.to_string());
            let reason = it.reason.map(|it| format!(" {it:?}")).unwrap_or_default();
            format!("{channel}@{hours} {:?}{reason}", it.mark)
        };
        self.planned(preview).into_iter().map(show).collect()
    }

    fn show(&self) -> Vec<String> {
        let hours = |ms: i64| (ms / 1000 - NOW) as f64 / HOUR as f64;
        let all = self.recordings.iter();
        let mut all: Vec<_> = all.map(|it| (it.start, it)).collect();
        all.sort_by_key(|it| (it.0, it.1.id));
        all.into_iter()
            .map(|(_, it)| format!("{}@{}-{}", it.channel, hours(it.start), hours(it.end)))
            .collect()
    }

    fn edit(&mut self, at: usize, change: impl FnOnce(&mut Recording)) {
        change(Arc::make_mut(&mut self.recordings[at]));
    }
}

fn programme(from: i64, until: i64, title: &str) -> Programme {
    Programme {
        start: NOW + from * HOUR,
        stop: NOW + until * HOUR,
        titles: vec![LocalText::new(title)],
        ..Programme::default()
    }
}

fn episode(from: i64, title: &str, number: u32) -> Programme {
    let value = format!("0.{}.", number - 1);
    let number = EpisodeNumber { system: Some("xmltv_ns".to_owned()), value };
    Programme { episode_numbers: vec![number], ..programme(from, from + 1, title) }
}

fn rule(test: ProgrammeTest) -> RecordingRule {
    RecordingRule {
        id: RecordingRuleId(1),
        list: RuleList::Series,
        name: String::new(),
        enabled: true,
        selection: RuleSelection::Programmes(test),
        channel: None,
        keep: 0,
        quota_bytes: 0,
        padding_before: None,
        padding_after: None,
        priority: 50,
        owner: None,
        created_at: NOW * 1000,
        updated_at: NOW * 1000,
    }
}

fn title(mode: TextMode, text: &str) -> ProgrammeTest {
    ProgrammeTest { title: Some(TextTest { mode, text: text.to_owned() }), ..ProgrammeTest::default() }
}

fn exact(text: &str) -> ProgrammeTest {
    title(TextMode::Exact, text)
}

#[test]
fn texts_are_compared_in_the_way_of_the_mode() {
    let check = |test: ProgrammeTest, title: &str, description: &str, expected: bool| {
        let descriptions = vec![LocalText::new(description)];
        let shown = Programme { descriptions, ..programme(1, 2, title) };
        let mut stage = Stage::new([rule(test.clone())]).guide("a.tv", &[1], [shown]);
        assert_eq!(!stage.scheduled().is_empty(), expected, "{test:?} {title}");
    };
    use TextMode::{Contains, Exact, Regex, Search};
    check(title(Exact, "The  Show "), "the show", "", true);
    check(title(Exact, "Müller & Söhne"), "MÜLLER & SÖHNE", "", true);
    check(title(Exact, "The Show"), "The Show Two", "", false);
    check(title(Contains, "HOW t"), "The Show Two", "", true);
    check(title(Contains, "how x"), "The Show Two", "", false);
    check(title(Search, "two show"), "The Show: Two", "", true);
    check(title(Search, "two sho"), "The Show: Two", "", false);
    check(title(Search, "news OR two"), "The Show: Two", "", true);
    check(title(Search, "\"show: two\""), "The Show: Two", "", true);
    check(title(Regex, "^the .* two$"), "The Show: Two", "", true);
    check(title(Regex, "^show"), "The Show: Two", "", false);
    let on = |id: &str| ProgrammeTest { tvg_id: Some(id.to_owned()), ..exact("The Show") };
    check(on("A.TV"), "The Show", "", true);
    check(on("b.tv"), "The Show", "", false);
    let about = |mode, text: &str| Some(TextTest { mode, text: text.to_owned() });
    check(ProgrammeTest { description: about(Contains, "murder"), ..exact("x") }, "x", "A Murder.", true);
    check(ProgrammeTest { description: about(Contains, "murder"), ..exact("x") }, "x", "Love.", false);
    let only_description = ProgrammeTest { description: about(Regex, "mur+der"), ..ProgrammeTest::default() };
    check(only_description, "any", "A murder.", true);
}

#[test]
fn titles_are_compared_without_their_marks() {
    use TextMode::{Contains, Exact, Regex};
    let check = |test: ProgrammeTest, title: &str, expected: bool| {
        for tvg_id in [None, Some("a.tv".to_owned())] {
            let test = ProgrammeTest { tvg_id, ..test.clone() };
            let mut stage = Stage::new([rule(test.clone())]).guide("a.tv", &[1], [programme(1, 2, title)]);
            assert_eq!(!stage.scheduled().is_empty(), expected, "{test:?} {title}");
        }
    };
    check(title(Exact, "Harbour Lights"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Exact, "Harbour Lights"), "New: Harbour Lights S01 E05 [HD]", true);
    check(title(Exact, "Harbour Lights"), "Harbour Lights Extra ᴺᵉʷ", false);
    check(title(Exact, "Harbour Lights ᴺᵉʷ"), "Harbour Lights", true);
    check(title(Exact, "Harbour Lights (N)"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Exact, "Harbour Lights S01 E05"), "Harbour Lights S01 E05", true);
    check(title(Exact, "Harbour Lights S01 E05"), "Harbour Lights S01 E06", false);
    check(title(Exact, "Harbour Lights (2005)"), "Harbour Lights (1963)", false);
    check(title(Regex, "lights$"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Regex, "ᴺᵉʷ$"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Contains, "our lights"), "Harbour (New) Lights", true);
}

#[test]
fn a_rule_with_a_guide_id_means_the_channel_with_its_case_first() {
    let of = |tvg_id: &str| rule(ProgrammeTest { tvg_id: Some(tvg_id.to_owned()), ..exact("Show") });
    let both = |tvg_id: &str| {
        Stage::new([of(tvg_id)])
            .guide("News.uk", &[1], [episode(1, "Show", 1)])
            .guide("news.uk", &[2], [episode(2, "Show", 2)])
            .scheduled()
    };
    assert_eq!(both("News.uk"), ["1@1-2"]);
    assert_eq!(both(" news.uk"), ["2@2-3"]);
    // No channel has this one.
    assert_eq!(both("NEWS.UK"), ["1@1-2", "2@2-3"]);
    // The channel that is meant shows nothing of it.
    let mut other = Stage::new([of("News.uk")]).guide("News.uk", &[1], [episode(1, "Film", 1)]).guide(
        "news.uk",
        &[2],
        [episode(2, "Show", 2)],
    );
    assert_eq!(other.scheduled(), [] as [&str; 0]);
}

#[test]
fn marks_count_for_new_only_and_for_episodes() {
    let marked = |from: i64, title: &str| {
        let shown = programme(from, from + 1, title);
        with_marks(&shown).into_owned()
    };
    let new_only = rule(ProgrammeTest { only_new: true, ..exact("Lights") });
    let shown = [
        marked(1, "Lights (R)"),
        marked(3, "Lights ᴺᵉʷ S1E5"),
        marked(5, "Lights S1 Ep5 (R)"),
        marked(7, "Lights (N) S1E6"),
    ];
    let mut stage = Stage::new([new_only]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@3-4", "1@7-8"]);
    let titles: Vec<_> = stage.recordings.iter().map(|it| it.title().to_owned()).collect();
    assert_eq!(titles, ["Lights", "Lights"]);
    let shown = [
        Programme { sub_titles: vec![LocalText::new("Boats (New)")], ..programme(1, 2, "Lights (HD)") },
        Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(3, 4, "Lights") },
    ];
    let mut stage = Stage::new([rule(exact("Lights"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@1-2"], "one episode");
}

#[test]
fn every_invalid_field_of_a_rule_is_named() {
    let check = |rule: RecordingRule, expected: &[&str]| {
        let wrong = rule.check().err().unwrap_or_default();
        assert_eq!(wrong.iter().map(|it| it.field).collect::<Vec<_>>(), expected, "{wrong:?}");
    };
    check(rule(exact("x")), &[]);
    check(rule(ProgrammeTest::default()), &["title"]);
    check(rule(exact("  ")), &["title"]);
    for pattern in ["(", "a(?=b)", "(a)\\1", "((((a{1000}){1000}){1000}))", &"a".repeat(501)] {
        check(rule(title(TextMode::Regex, pattern)), &["title"]);
    }
    check(rule(title(TextMode::Search, "\"open")), &["title"]);
    check(RecordingRule { priority: 101, keep: KEEP_MAX + 1, ..rule(exact("x")) }, &["priority", "keep"]);
    check(RecordingRule { padding_before: Some(u32::MAX), ..rule(exact("x")) }, &["padding_before"]);
    let weekly = |days: &[u8], start, end| {
        let times = WeeklyTimes { days: days.to_vec(), start, end, from: None, until: None };
        RecordingRule {
            selection: RuleSelection::Weekly(times),
            channel: Some(ChannelId(1)),
            ..rule(exact("x"))
        }
    };
    check(weekly(&[0, 6], 0, 60), &[]);
    check(weekly(&[7], 0, 60), &["days_of_week"]);
    check(weekly(&[], 60, 60), &["days_of_week", "end_time"]);
    check(RecordingRule { channel: None, ..weekly(&[0], 0, 60) }, &["channel"]);
}

#[test]
fn only_rules_that_no_map_finds_are_compared_with_every_programme() {
    let check = |test: ProgrammeTest, expected: bool| assert_eq!(rule(test).is_pattern(), expected);
    let on = |test| ProgrammeTest { tvg_id: Some("a.tv".to_owned()), ..test };
    check(exact("x"), false);
    check(on(title(TextMode::Contains, "x")), false);
    check(title(TextMode::Contains, "x"), true);
    check(on(title(TextMode::Regex, "x")), true);
}

#[test]
fn one_showing_of_an_episode_is_recorded_and_another_one_if_it_fails() {
    let shown = [episode(1, "Show", 1), episode(5, "Show", 2), episode(9, "Show", 1), episode(13, "Show", 1)];
    let mut stage = Stage::new([rule(exact("show"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@1-2", "1@5-6"]);
    assert_eq!(stage.evaluate(), 0, "nothing changes the second time");
    stage.now = NOW + 3 * HOUR;
    let fails = |it: &mut Recording| it.apply(RecordingInput::EndedWithoutFile, None, 0).unwrap();
    stage.edit(0, fails);
    assert_eq!(stage.scheduled(), ["1@1-2", "1@5-6", "1@9-10"]);
    stage.edit(2, |it| it.status = RecordingStatus::Completed);
    stage.now = NOW + 11 * HOUR;
    assert_eq!(stage.evaluate(), 0);
}

#[test]
fn episodes_are_recognised_by_id_number_subtitle_or_description() {
    let check = |change: fn(&mut Programme, i64), n_expected: usize| {
        let shown = [1, 2, 11].map(|n| {
            let mut it = programme(n, n + 1, "Show");
            change(&mut it, n % 10);
            it
        });
        let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
        assert_eq!(stage.scheduled().len(), n_expected);
    };
    check(|_, _| {}, 3);
    check(|it, n| it.sub_titles = vec![LocalText::new(format!("Part {n}"))], 2);
    check(|it, n| it.descriptions = vec![LocalText::new(format!("What happens in {n}."))], 2);
    check(
        |it, n| {
            let value = format!("EP0123.{n}");
            it.episode_numbers = vec![EpisodeNumber { system: Some("dd_progid".to_owned()), value }];
        },
        2,
    );
    // The id of a series identifies no episode.
    check(
        |it, _| {
            let value = "SH0123.0000".to_owned();
            it.episode_numbers = vec![EpisodeNumber { system: Some("dd_progid".to_owned()), value }];
        },
        3,
    );
}

#[test]
fn the_preferred_channel_comes_first_and_forbidden_ones_never() {
    let on = |channel: Option<u32>| RecordingRule { channel: channel.map(ChannelId), ..rule(exact("Show")) };
    let check = |channel: Option<u32>, expected: &[&str]| {
        let mut stage = Stage::new([on(channel)])
            .guide("a", &[66, 1, 2], [episode(1, "Show", 1), episode(3, "Show", 2)])
            .guide("b", &[3], [episode(5, "Show", 1)]);
        assert_eq!(stage.scheduled(), expected);
    };
    check(None, &["1@1-2", "1@3-4"]);
    check(Some(2), &["2@1-2", "2@3-4"]);
    check(Some(3), &["1@3-4", "3@5-6"]);
    check(Some(66), &["1@1-2", "1@3-4"]);
}

#[test]
fn new_is_what_the_guide_says_or_what_was_never_seen_before() {
    let new = || rule(ProgrammeTest { only_new: true, ..exact("Show") });
    let was_new = Programme { is_new: true, ..episode(20, "Show", 1) };
    let repeat = Programme { previously_shown: Some(PreviouslyShown::default()), ..episode(30, "Show", 4) };
    let shown =
        [episode(-5, "Show", 1), episode(-4, "Show", 2), episode(8, "Show", 2), episode(9, "Show", 3)];
    let mut stage = Stage::new([new()]).guide("a", &[1], shown.into_iter().chain([was_new, repeat]));
    assert_eq!(stage.scheduled(), ["1@9-10", "1@20-21"], "episode 2 was seen, 4 is a repetition");
    // The guide forgets the past; the rule does not.
    let later = [episode(40, "Show", 2), episode(41, "Show", 5)];
    let mut stage = stage.guide("a", &[1], later);
    stage.recordings.clear();
    assert_eq!(stage.scheduled(), ["1@41-42"]);
    // An interrupted recording of a new episode is tried again.
    stage.edit(0, |it| it.status = RecordingStatus::Interrupted);
    stage.now = NOW + 45 * HOUR;
    let mut stage = stage.guide("a", &[1], [episode(41, "Show", 5), episode(50, "Show", 5)]);
    assert_eq!(stage.scheduled(), ["1@41-42", "1@50-51"]);
}

/// Holds T-dvr.4.
#[test]
fn a_moved_programme_moves_its_recording_and_edits_stay() {
    let mut stage =
        Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1), programme(5, 6, "x")]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    for hour in 6..26 {
        let filler = programme(0, 40, "other");
        stage = stage.guide("a", &[1], [filler, episode(hour, "Show", 1)]);
        assert_eq!(stage.scheduled(), [format!("1@{hour}-{}", hour + 1)], "no second recording");
        assert_eq!(
            stage.recordings[0].programme.as_ref().unwrap().id,
            Some(format!("a-{}", NOW + hour * HOUR))
        );
    }
    stage.edit(0, |it| it.end += 1_800_000);
    let filler = || programme(0, 40, "other");
    stage = stage.guide("a", &[1], [filler(), episode(24, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@24-26.5"], "the end was edited");
    stage.edit(0, |it| it.start += 900_000);
    stage = stage.guide("a", &[1], [filler(), episode(10, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@24.25-26.5"], "both were edited");
}

#[test]
fn a_programme_without_an_identity_is_followed_by_its_title() {
    let filler = || programme(-10, 40, "other");
    let shown = |hours: [i64; 2]| hours.map(|it| programme(it, it + 1, "News"));
    let mut stage = Stage::new([rule(exact("News"))]).guide("a", &[1], shown([5, 10]));
    assert_eq!(stage.scheduled(), ["1@5-6", "1@10-11"]);
    let all = |hours| [filler()].into_iter().chain(shown(hours));
    stage = stage.guide("a", &[1], all([6, 10]));
    assert_eq!(stage.scheduled(), ["1@6-7", "1@10-11"]);
    stage = stage.guide("a", &[1], all([6, 30]));
    assert_eq!(stage.scheduled(), ["1@6-7", "1@10-11", "1@30-31"], "too far away to be the same");
}

#[test]
fn the_end_of_a_running_recording_follows_its_programme() {
    let mut stage = Stage::new([rule(exact("Match"))]).guide("a", &[1], [programme(1, 3, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-3"]);
    stage.now = NOW + 2 * HOUR;
    stage.edit(0, |it| it.status = RecordingStatus::Recording);
    let mut stage = stage.guide("a", &[1], [programme(1, 4, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-4"], "it takes longer");
    let mut stage = stage.guide("a", &[1], [programme(0, 2, "Before"), programme(2, 5, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-5"], "it began later; what runs has begun");
    let mut stage = stage.guide("a", &[1], [programme(0, 1, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-5"], "an end in the past is none");
}

#[test]
fn a_broken_guide_cancels_nothing() {
    let mut stage =
        Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1), episode(50, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    for rest in
        [vec![], vec![episode(50, "Show", 1)], vec![programme(20, 60, "other"), episode(50, "Show", 1)]]
    {
        stage = stage.guide("a", &[1], rest);
        assert_eq!(stage.scheduled(), ["1@5-6"], "the guide has nothing at that time");
    }
    stage = stage.guide("a", &[1], [programme(4, 8, "Football"), episode(50, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@50-51"], "something else is shown at that time");
    stage = stage.guide("a", &[1], [programme(4, 80, "Football")]);
    assert_eq!(stage.scheduled(), ["1@50-51"]);
}

#[test]
fn a_deleted_recording_is_not_made_again() {
    let shown = || [episode(1, "Show", 1), episode(5, "Show", 1), programme(8, 9, "Show")];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown());
    assert_eq!(stage.scheduled(), ["1@1-2", "1@8-9"]);
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    for it in std::mem::take(&mut stage.recordings) {
        memory.add_done(it.followed.as_ref().unwrap().episode);
    }
    stage.memories.insert(memory.id, Arc::new(memory));
    assert_eq!(stage.scheduled(), [] as [&str; 0]);
}

#[test]
fn episodes_that_a_former_version_stored_are_recognised() {
    // As they were computed while texts counted with their marks, and numbers in texts did not count.
    let cases: [(Programme, u64); 5] = [
        (
            Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(1, 2, "Lights (New)") },
            0x8e28_346d_21bf_ded7,
        ),
        (episode(1, "Lights ᴺᵉʷ", 5), 0xcfc5_54d5_f368_f099),
        (
            Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(1, 2, "Lights S1E5") },
            0x839d_1529_7cb8_ec9c,
        ),
        (
            Programme { descriptions: vec![LocalText::new("Of boats. (R)")], ..programme(1, 2, "Lights") },
            0x66c2_d4d2_4fbe_8f86,
        ),
        (episode(1, "Lights (1998)", 5), 0xedd3_67b2_e069_33d0),
    ];
    for (shown, former) in cases {
        let shown = with_marks(&shown).into_owned();
        let stored: EpisodeKey =
            serde_json::from_value(serde_json::json!({ "hash": former, "is_known": true })).unwrap();
        assert_ne!(EpisodeKey::from_programme(&shown, "a"), stored);
        let title = shown.title().to_owned();
        // A deleted recording, and one that the former version made.
        let stage = || Stage::new([rule(exact("Lights"))]).guide("a", &[1], [shown.clone()]);
        assert_eq!(stage().scheduled(), ["1@1-2"], "{title}");
        let mut deleted = stage();
        let memory = RuleMemory { done: vec![stored], ..RuleMemory::new(RecordingRuleId(1)) };
        deleted.memories.insert(memory.id, Arc::new(memory));
        assert_eq!(
            deleted.scheduled(),
            [] as [&str; 0],
            "{title}: {:x?}",
            EpisodeKey::former_of(&shown, "a")
        );
        let mut old = stage();
        old.rules = vec![Arc::new(rule(ProgrammeTest { only_new: true, ..exact("Lights") }))];
        let memory = RuleMemory { old: vec![stored], ..RuleMemory::new(RecordingRuleId(1)) };
        old.memories.insert(memory.id, Arc::new(memory));
        let is_new = shown.is_new();
        assert_eq!(old.scheduled().len(), usize::from(is_new), "{title}");
        let mut planned = stage();
        planned.scheduled();
        let recording = Arc::make_mut(&mut planned.recordings[0]);
        recording.followed.as_mut().unwrap().episode = stored;
        assert_eq!(planned.scheduled(), ["1@1-2"], "{title}: one recording");
    }
}

#[test]
fn what_a_rule_remembers_is_bounded() {
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    let day = |n: i64| {
        EpisodeKey::from_day(CivilDay(
            Timestamp::from_second(n * 86_400).unwrap().to_zoned(TimeZone::UTC).date(),
        ))
    };
    for n in 0..REMEMBERED_MAX as i64 + 10 {
        memory.add_done(day(n));
        memory.add_done(day(n));
    }
    assert_eq!((memory.done.len(), memory.done[0]), (REMEMBERED_MAX, day(10)));
}

#[test]
fn a_recording_by_hand_follows_its_programme_and_takes_the_episode_of_a_rule() {
    let filler = || programme(-10, 40, "other");
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    stage.edit(0, |it| it.followed.as_mut().unwrap().rule = None);
    stage.rules = vec![Arc::new(RecordingRule { id: RecordingRuleId(2), ..rule(exact("Show")) })];
    stage = stage.guide("a", &[1], [filler(), episode(7, "Show", 1), episode(30, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@7-8"]);
    stage.rules.clear();
    stage = stage.guide("a", &[1], [filler(), episode(9, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@9-10"], "also without any rule");
    stage = stage.guide("a", &[1], [filler(), episode(39, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@9-10"], "another day is another showing");
}

#[test]
fn only_the_newest_recordings_stay_if_a_rule_keeps_some() {
    let mut stage = Stage::new([RecordingRule { keep: 2, ..rule(exact("Show")) }]);
    stage = stage.guide("a", &[1], (1..6).map(|n| episode(n, "Show", n as u32)));
    assert_eq!(stage.scheduled().len(), 5, "those to come do not count");
    for at in 0..4 {
        let file =
            RecordedFile { path: at.to_string(), bytes: 1, started_at: 0, ended_at: Some(1), node: None };
        stage.edit(at, |it| (it.status, it.file) = (RecordingStatus::Completed, Some(file)));
    }
    stage.now = NOW + 5 * HOUR - 60;
    stage.guide.clear();
    assert_eq!(stage.scheduled(), ["1@3-4", "1@4-5", "1@5-6"]);
}

#[test]
fn two_rules_of_one_user_make_one_recording_and_the_limit_holds() {
    let other =
        RecordingRule { id: RecordingRuleId(2), priority: 90, ..rule(title(TextMode::Contains, "sho")) };
    let shown = || (1..9).map(|n| episode(n, "Show", n as u32));
    let mut stage = Stage::new([rule(exact("Show")), other]).guide("a", &[1], shown());
    stage.n_new_max = 3;
    assert_eq!(stage.scheduled(), ["1@1-2", "1@2-3", "1@3-4"]);
    assert!(stage.recordings.iter().all(|it| it.rule() == Some(RecordingRuleId(2)) && it.priority == 90));
}

#[test]
fn a_preview_names_the_result_of_each_showing_and_its_reason() {
    let shown = [
        episode(-30, "Show", 9),
        episode(1, "Show", 1),
        episode(2, "Show", 2),
        episode(3, "Show", 1),
        episode(4, "Show", 3),
        episode(5, "Show", 4),
        programme(6, 70, "Show"),
        episode(80, "Show", 9),
    ];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
    stage.n_new_max = 4;
    let fresh = [
        "1@1 Scheduled",
        "1@2 Scheduled",
        "1@3 Alternative",
        "1@4 Scheduled",
        "1@5 Skipped TooMany",
        "1@6 Skipped TooMany",
        "1@80 Scheduled",
    ];
    assert_eq!(stage.preview(), fresh);
    assert_eq!(stage.recordings, [], "a preview makes nothing");
    stage.n_new_max = 20_000;
    // Episode 9 was shown first.
    assert_eq!(stage.scheduled(), ["1@1-2", "1@2-3", "1@4-5", "1@5-6", "1@80-81"]);
    stage.edit(1, |it| it.status = RecordingStatus::Recording);
    stage.edit(3, |it| it.status = RecordingStatus::Stopped);
    stage.edit(4, |it| it.followed.as_mut().unwrap().rule = None);
    let deleted = stage.recordings.remove(2);
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    memory.add_done(deleted.followed.as_ref().unwrap().episode);
    stage.memories.insert(memory.id, Arc::new(memory));
    stage.now = NOW + HOUR + 60;
    let later = [
        "1@1 Scheduled Running",
        "1@2 Recorded Deleted",
        "1@3 Alternative",
        "1@4 Recorded Stopped",
        "1@5 Scheduled ByHand",
        "1@6 Skipped TooLong",
        "1@80 Scheduled",
    ];
    assert_eq!(stage.preview(), later);

    let channels = [episode(-1, "Show", 1), episode(2, "Show", 2)];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], channels);
    stage = stage.guide("b", &[66], [episode(3, "Show", 2), episode(4, "Show", 3)]);
    stage.now = NOW - 60;
    let hidden = ["1@-1 Skipped Begun", "1@2 Scheduled", "-@3 Skipped NoChannel", "-@4 Skipped NoChannel"];
    assert_eq!(stage.preview(), hidden);
}

#[test]
fn a_preview_names_the_episodes_that_are_not_new() {
    let new = RecordingRule { channel: Some(ChannelId(2)), ..rule(exact("Show")) };
    let new = RecordingRule {
        selection: RuleSelection::Programmes(ProgrammeTest { only_new: true, ..exact("Show") }),
        ..new
    };
    let repeat = Programme { previously_shown: Some(PreviouslyShown::default()), ..episode(5, "Show", 2) };
    let marked_new = Programme { is_new: true, ..episode(6, "Show", 3) };
    let shown = [episode(-30, "Show", 1), episode(-29, "Show", 3), episode(4, "Show", 1), repeat, marked_new];
    let stage = Stage::new([new]).guide("a", &[1, 2], shown);
    assert_eq!(stage.preview(), ["2@4 NotNew ShownBefore", "2@5 NotNew Repeat", "2@6 Scheduled"]);
}

fn weekly(days: &[u8], start: u32, end: u32) -> WeeklyTimes {
    WeeklyTimes { days: days.to_vec(), start, end, from: None, until: None }
}

/// Holds T-dvr.5 and T-time.2.
#[test]
fn weekly_times_are_those_of_the_wall_clock_on_both_days_of_a_clock_change() {
    let check = |zone: &str, day: &str, start: u32, end: u32, expected: (&str, &str)| {
        let zone = TimeZone::get(zone).unwrap();
        let day: CivilDay = day.parse().unwrap();
        let midnight = zone.to_timestamp(day.0.to_datetime(jiff::civil::Time::midnight())).unwrap();
        let times =
            WeeklyTimes { from: Some(day), until: Some(day), ..weekly(&[0, 1, 2, 3, 4, 5, 6], start, end) };
        let from = midnight.as_millisecond() - 3 * 86_400_000;
        let found = times.occurrences(&zone, from, from + 7 * 86_400_000);
        let show = |ms: i64| Timestamp::from_millisecond(ms).unwrap().to_string();
        let found: Vec<_> = found.iter().map(|it| (show(it.start), show(it.end))).collect();
        assert_eq!(found, [(expected.0.to_owned(), expected.1.to_owned())]);
    };
    let minutes = |hour: u32, minute: u32| hour * 3600 + minute * 60;
    let berlin = "Europe/Berlin";
    // 02:30 does not exist: it becomes 03:30 in summer time.
    check(
        berlin,
        "2027-03-28",
        minutes(2, 30),
        minutes(4, 0),
        ("2027-03-28T01:30:00Z", "2027-03-28T02:00:00Z"),
    );
    check(
        berlin,
        "2027-03-28",
        minutes(1, 0),
        minutes(3, 0),
        ("2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z"),
    );
    // 02:30 exists twice: the first one.
    check(
        berlin,
        "2027-10-31",
        minutes(2, 30),
        minutes(3, 30),
        ("2027-10-31T00:30:00Z", "2027-10-31T02:30:00Z"),
    );
    check(
        berlin,
        "2027-10-30",
        minutes(23, 0),
        minutes(1, 0),
        ("2027-10-30T21:00:00Z", "2027-10-30T23:00:00Z"),
    );
    check(
        "Pacific/Kiritimati",
        "2027-01-01",
        0,
        minutes(1, 0),
        ("2026-12-31T10:00:00Z", "2026-12-31T11:00:00Z"),
    );
    check(
        "Pacific/Pago_Pago",
        "2027-01-01",
        minutes(23, 0),
        minutes(1, 0),
        ("2027-01-02T10:00:00Z", "2027-01-02T12:00:00Z"),
    );
}

#[test]
fn a_weekly_rule_records_its_days_once() {
    let times = weekly(&[0, 2], 18 * 3600, 19 * 3600);
    let weekly = |times| RecordingRule {
        selection: RuleSelection::Weekly(times),
        channel: Some(ChannelId(7)),
        name: "Evening".to_owned(),
        ..rule(exact("x"))
    };
    let mut stage = Stage::new([weekly(times.clone())]);
    let expected = ["7@6-7", "7@54-55", "7@174-175", "7@222-223"];
    assert_eq!(stage.scheduled(), expected);
    assert_eq!(stage.recordings[0].title(), "Evening");
    assert_eq!(stage.evaluate(), 0);
    // After a move to another zone the wall clock counts.
    stage.zone = TimeZone::get("Asia/Tokyo").unwrap();
    stage.now -= 6 * HOUR;
    let moved = stage.scheduled();
    assert_eq!((moved.len(), &*moved[0]), (4, "7@-3--2"), "{moved:?}");
    let until = "2026-11-24".parse().ok();
    let mut short = Stage::new([weekly(WeeklyTimes { until, ..times })]);
    assert_eq!(short.scheduled(), ["7@6-7"]);
}

#[test]
fn days_survive_storage() {
    let times = WeeklyTimes { from: "2026-02-28".parse().ok(), ..weekly(&[1], 0, 1) };
    let text = serde_json::to_string(&times).unwrap();
    assert!(text.contains("\"2026-02-28\""), "{text}");
    assert_eq!(serde_json::from_str::<WeeklyTimes>(&text).unwrap(), times);
    assert!("2026-02-30".parse::<CivilDay>().is_err());
}

#[test]
fn two_showings_that_move_and_turn_out_to_be_one_episode_cancel_nothing() {
    let shown = [programme(64, 67, "Show"), programme(162, 163, "Show")];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@64-67", "1@162-163"]);
    // The first one is that episode now. The other one stays, because its programme may only be missing.
    let mut stage = stage.guide(
        "a",
        &[1],
        [episode(65, "Show", 2), Programme { stop: NOW + 163 * HOUR, ..episode(160, "Show", 2) }],
    );
    assert_eq!(stage.scheduled(), ["1@65-66", "1@162-163"]);
    assert_eq!(stage.evaluate(), 0);
}

fn any_programmes() -> impl Strategy<Value = Vec<Programme>> {
    let one = (-20..200i64, 1..4i64, 0..4u32, any::<bool>()).prop_map(|(from, hours, n, is_new)| {
        let it = if n == 0 { programme(from, from + hours, "Show") } else { episode(from, "Show", n) };
        Programme { stop: it.start + hours * HOUR, is_new, ..it }
    });
    prop::collection::vec(one, 0..12).prop_map(|mut all| {
        all.sort_by_key(|it| it.start);
        all.dedup_by_key(|it| it.start);
        all
    })
}

proptest! {
    /// Holds T-dvr.4: whatever guides follow each other, no episode is recorded twice, nothing that is scheduled disappears,
    /// and an unchanged guide ends the changes.
    #[test]
    fn any_sequence_of_guides_schedules_each_episode_once(
        guides in prop::collection::vec((any_programmes(), any_programmes()), 1..6),
        only_new: bool,
    ) {
        let mut stage = Stage::new([rule(ProgrammeTest { only_new, ..exact("Show") })]);
        for (a, b) in guides {
            stage = stage.guide("a", &[1], a).guide("b", &[2], b);
            let before = stage.recordings.clone();
            let marked = stage.planned(preview);
            stage.evaluate();
            // The preview says which of the showings have a recording.
            for it in marked {
                let is_followed = |of: &Arc<Recording>| {
                    let followed = of.followed.as_ref().unwrap();
                    let place = (followed.guide_key.as_str(), followed.start, followed.episode);
                    place == (&*it.airing.guide_key, it.airing.start, it.airing.episode)
                };
                let is_scheduled = it.mark == AiringMark::Scheduled;
                prop_assert_eq!(stage.recordings.iter().any(is_followed), is_scheduled, "{:?}", it);
            }
            let shows = |key: &str, start: i64| {
                let of_key = stage.guide.iter().filter(|it| it.0 == key).flat_map(|it| &it.2);
                of_key.filter(|it| it.start * 1000 == start).map(|it| EpisodeKey::from_programme(it, key)).next()
            };
            for gone in before.iter().filter(|it| stage.recordings.iter().all(|left| left.id != it.id)) {
                let followed = gone.followed.as_ref().unwrap();
                let episode = shows(&followed.guide_key, gone.start);
                let has_other = stage.recordings.iter().any(|it| it.followed.as_ref().map(|it| it.episode) == episode);
                prop_assert!(episode.is_some() && has_other, "a guide cancels nothing but doubles: {:?}", gone);
            }
            let known = stage.recordings.iter().filter_map(|it| it.followed.as_ref()).filter(|it| it.episode.is_known());
            let mut episodes: Vec<_> = known.map(|it| it.episode).collect();
            let n = episodes.len();
            episodes.sort_unstable();
            episodes.dedup();
            prop_assert_eq!(episodes.len(), n, "each episode once");
            for it in &stage.recordings {
                prop_assert!(it.start < it.end && it.start > NOW * 1000, "{:?}", it);
            }
            // What the first plan frees or takes can matter to the next one, but it ends.
            prop_assert!((0..3).any(|_| stage.evaluate() == 0), "the same guide again");
        }
    }

    #[test]
    fn every_day_of_a_week_has_its_recording_in_every_zone(zone in prop::sample::select(vec![
        "Pacific/Pago_Pago", "America/St_Johns", "America/New_York", "UTC", "Europe/London", "Africa/Casablanca",
        "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Kiritimati", "Europe/Dublin",
    ]), from in 1_700_000_000_000..1_900_000_000_000i64, start in 0..86_400u32, length in 3 * 3_600..86_400u32) {
        let zone = TimeZone::get(zone).unwrap();
        let times = weekly(&[0, 1, 2, 3, 4, 5, 6], start, (start + length) % 86_400);
        let found = times.occurrences(&zone, from, from + 14 * 86_400_000);
        prop_assert!((13..=16).contains(&found.len()), "{}", found.len());
        for pair in found.windows(2) {
            prop_assert_eq!(pair[0].day.0.tomorrow().unwrap(), pair[1].day.0);
            prop_assert!(pair[0].start < pair[1].start);
        }
    }
}

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
            let tests = || RuleSet::tests(&rules, &recordings);
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
            let tests = RuleSet::tests(rules, []);
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
