//! Tests of the plan of automatic channels, and of channels that follow it.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::account::{AccountProfile, PlaylistLocation};
use crate::account_group::AccountGroup;
use crate::ids::{AccountGroupId, GuideSourceId, ProfileId};
use crate::name_cleaning::NameCleaner;

const A: AccountId = AccountId(2);
const NEWS: GroupId = GroupId(3);

/// Channels of a lineup, and the streams of an account.
#[derive(Clone, Default)]
struct Lineup {
    channels: Vec<Channel>,
    streams: Vec<SyncStream>,
    cleanup: OrphanCleanup,
    packed: Option<GroupId>,
}

fn number(text: &str) -> ChannelNumber {
    text.parse().unwrap()
}

fn stream(id: u32, name: &str) -> SyncStream {
    SyncStream {
        guide_channel: None,
        station: None,
        id: StreamId(id),
        group: NEWS,
        name: name.to_owned(),
        tvg_id: None,
        logo: None,
        number: None,
        updated_at: 0,
        position: None,
        is_missing: false,
    }
}

fn settings(start: Option<&str>, end: Option<&str>, properties: Value) -> SyncSettings {
    let mut link = AccountGroup::new(AccountGroupId(1), A, NEWS, true);
    (link.sync_start, link.sync_end) = (start.map(number), end.map(number));
    link.custom_properties = properties.as_object().unwrap().clone();
    SyncSettings::read(&link).unwrap()
}

impl Lineup {
    fn new(names: &[&str]) -> Self {
        let streams = (1..).zip(names).map(|(id, name)| stream(id, name)).collect();
        Self { streams, ..Self::default() }
    }

    fn plan(&self, settings: &SyncSettings) -> SyncPlan {
        let input = SyncInput {
            account: A,
            cleanup: self.cleanup,
            groups: &[(NEWS, settings.clone())],
            streams: self.streams.clone(),
            packed: self.packed,
        };
        plan_sync(input, self.channels.iter())
    }

    /// Carries out the plan, and checks that a second one is empty.
    fn sync(&mut self, settings: &SyncSettings) -> SyncPlan {
        let plan = self.plan(settings);
        self.channels.retain(|it| !plan.removals.contains(&it.id));
        for (id, auto) in &plan.updates {
            self.channels.iter_mut().find(|it| it.id == *id).unwrap().follow(auto.clone());
        }
        for auto in &plan.creations {
            let id = ChannelId(self.channels.iter().map(|it| it.id.0).max().unwrap_or(0) + 1);
            self.channels.push(Channel::automatic(id, auto_channel_uuid(auto), auto.clone(), 0));
        }
        let packed = self.packed.take();
        let again = self.plan(settings);
        assert!(again.is_empty(), "a second synchronisation changes something: {again:?}");
        self.packed = packed;
        plan
    }

    fn channel(&mut self, stream: u32) -> &mut Channel {
        let is_of = |it: &&mut Channel| it.auto.as_ref().is_some_and(|auto| auto.stream.0 == stream);
        self.channels.iter_mut().find(is_of).unwrap()
    }

    /// Adds a channel of an admin.
    fn manual(&mut self, of_number: &str) {
        let mut channel = Channel::new(ChannelId(1_000), Uuid::nil(), "manual", 0);
        channel.number = Some(number(of_number));
        self.channels.push(channel);
    }

    /// Checks all channels, written as `number name`.
    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let show = |it: &Channel| {
            let number = it.number.map_or_else(|| "-".to_owned(), |it| it.to_string());
            format!("{number} {}", it.name)
        };
        assert_eq!(self.channels.iter().map(show).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn each_stream_gets_a_channel_that_follows_it_and_ends_with_it() {
    let mut lineup = Lineup::new(&["One", "Two"]);
    let settings = settings(Some("100"), None, json!({}));
    lineup.sync(&settings);
    lineup.check(&["100 One", "101 Two"]);
    assert_eq!((lineup.channels[0].group, &*lineup.channels[0].streams), (Some(NEWS), &[StreamId(1)][..]));
    let uuid = lineup.channel(1).uuid;
    lineup.streams[0].name = "Uno".to_owned();
    lineup.streams[0].logo = Some("http://l/1.png".to_owned());
    assert_eq!(lineup.sync(&settings).updates.len(), 1);
    lineup.check(&["100 Uno", "101 Two"]);
    assert_eq!(lineup.channels[0].logo.as_deref(), Some("http://l/1.png"));
    let gone = lineup.streams.remove(0);
    lineup.sync(&settings);
    lineup.check(&["101 Two"]);
    lineup.streams.push(gone);
    lineup.sync(&settings);
    lineup.check(&["101 Two", "100 Uno"]);
    assert_eq!(lineup.channel(1).uuid, uuid, "a channel that returns has its old address");
}

#[test]
fn channels_follow_the_guide_that_their_group_chooses() {
    let mut lineup = Lineup::new(&["One", "Two"]);
    lineup.streams[0].guide_channel = Some(GuideChannelId(7));
    let settings = settings(None, None, json!({ "custom_epg_id": 3, "force_dummy_epg": true }));
    assert_eq!((settings.custom_guide, settings.without_guide), (Some(GuideSourceId(3)), false));
    lineup.sync(&settings);
    assert_eq!(lineup.channel(1).guide_channel, Some(GuideChannelId(7)));
    lineup.channel(1).guide_channel = Some(GuideChannelId(9));
    assert_eq!(lineup.channel(1).edited_values(), ["epg_data_id"]);
    lineup.streams[0].guide_channel = Some(GuideChannelId(8));
    lineup.sync(&settings);
    assert_eq!(lineup.channel(1).guide_channel, Some(GuideChannelId(9)), "an admin chose it");
    lineup.channel(1).guide_channel = Some(GuideChannelId(8));
    lineup.streams[0].guide_channel = None;
    lineup.sync(&settings);
    assert_eq!(lineup.channel(1).guide_channel, None);
}

#[test]
fn a_matched_link_does_not_count_as_a_change_of_an_automatic_channel() {
    let mut lineup = Lineup::new(&["One"]);
    let settings = settings(None, None, json!({}));
    lineup.sync(&settings);
    lineup.channel(1).guide_channel = Some(GuideChannelId(7));
    assert!(!lineup.channel(1).is_customized());
    lineup.sync(&settings);
    assert_eq!(lineup.channel(1).guide_channel, Some(GuideChannelId(7)), "a refresh keeps it");
}

#[test]
fn a_group_can_have_channels_without_a_guide_id() {
    let mut lineup = Lineup::new(&["One"]);
    lineup.streams[0].tvg_id = Some("one.uk".to_owned());
    lineup.sync(&settings(None, None, json!({ "force_dummy_epg": true })));
    assert_eq!(lineup.channel(1).tvg_id, None);
    lineup.sync(&settings(None, None, json!({ "force_dummy_epg": false })));
    assert_eq!(lineup.channel(1).tvg_id.as_deref(), Some("one.uk"));
}

#[test]
fn a_missing_stream_that_may_return_keeps_its_channel_as_it_is() {
    let mut lineup = Lineup::new(&["One", "Two"]);
    let settings = settings(None, None, json!({}));
    lineup.sync(&settings);
    lineup.streams[0] =
        SyncStream { is_missing: true, name: "other".to_owned(), ..lineup.streams[0].clone() };
    lineup.streams.push(SyncStream { is_missing: true, ..stream(3, "never there") });
    assert!(lineup.sync(&settings).is_empty());
    lineup.check(&["1 One", "2 Two"]);
}

#[test]
fn a_new_stream_that_looks_the_same_takes_the_place_of_a_missing_one() {
    let plain = settings(Some("100"), None, json!({}));
    let mut lineup = Lineup::new(&["News", "News", "Film", "Sport"]);
    lineup.sync(&plain);
    let edited = lineup.channels[1].id;
    lineup.channels[1].name = "Mine".to_owned();
    lineup.channels[2].streams.push(StreamId(77));
    let before = lineup.channels.clone();
    // Nothing recognises the streams again: one is gone, the others are missing, and three new ones look the same.
    lineup.streams.iter_mut().take(3).for_each(|it| it.is_missing = true);
    lineup.streams.remove(0);
    lineup.streams.extend([stream(11, "News"), stream(12, "Film"), stream(13, "Film")]);
    let plan = lineup.sync(&plain);
    assert_eq!((plan.creations.len(), plan.creations[0].stream), (1, StreamId(13)));
    // The channel that an admin changed comes first, and the other one of the same name is removed.
    assert_eq!(plan.removals, [before[0].id]);
    let channel = |id: ChannelId| lineup.channels.iter().find(|it| it.id == id).unwrap();
    let (news, film) = (channel(edited), channel(before[2].id));
    assert_eq!(
        (news.name.as_str(), &news.streams, news.number),
        ("Mine", &vec![StreamId(11)], before[1].number)
    );
    assert_eq!(film.streams, [StreamId(12), StreamId(77)]);
    assert_eq!(channel(before[3].id), &before[3]);
}

// Holds T-sync.4 for channels.
#[test]
fn values_that_an_admin_changed_survive_and_all_others_follow_the_provider() {
    let mut lineup = Lineup::new(&["One"]);
    let settings = settings(Some("5"), None, json!({}));
    lineup.sync(&settings);
    let channel = lineup.channel(1);
    assert!(!channel.is_customized() && channel.edited_values().is_empty());
    let mut adult = channel.clone();
    adult.follow_adult_mark(true);
    assert!(!adult.is_customized(), "nobody changed it");
    // Matching links a guide, and its offset follows the playlist.
    let linked =
        Channel { guide_channel: Some(GuideChannelId(5)), keeps_stream_offset: true, ..channel.clone() };
    assert!(!linked.is_customized(), "nobody changed it");
    adult.set_adult_by_hand(false, true);
    assert!(adult.is_customized());
    channel.name = "Mine".to_owned();
    channel.number = Some(number("77"));
    assert_eq!(lineup.channel(1).edited_values(), ["name", "channel_number"]);
    for round in 0..3 {
        lineup.streams[0].name = format!("One {round}");
        lineup.streams[0].tvg_id = Some(format!("one.{round}"));
        lineup.sync(&settings);
        lineup.check(&["77 Mine"]);
        assert_eq!(lineup.channels[0].tvg_id, Some(format!("one.{round}")));
    }
    // A value that is set back to that of the provider follows it again.
    lineup.channel(1).name = "One 2".to_owned();
    lineup.streams[0].name = "One 3".to_owned();
    lineup.sync(&settings);
    lineup.check(&["77 One 3"]);
}

#[test]
fn a_channel_that_an_admin_changed_or_linked_is_removed_only_if_the_account_says_so() {
    type Edit = fn(&mut Channel);
    let edits: [Edit; 8] = [
        // Its stream has none.
        |it| it.guide_station = Some("12345".to_owned()),
        |it| it.name = "Mine".to_owned(),
        |it| it.number = None,
        |it| it.streams.push(StreamId(9)),
        |it| it.streams.clear(),
        |it| it.enabled = false,
        |it| it.user_level = UserLevel::Admin,
        |it| drop(it.custom_properties.insert("a".to_owned(), json!(1))),
    ];
    for edit in edits {
        for (cleanup, expected) in
            [(OrphanCleanup::PreserveCustomized, 1), (OrphanCleanup::Always, 0), (OrphanCleanup::Never, 2)]
        {
            let mut lineup = Lineup { cleanup, ..Lineup::new(&["One", "Two"]) };
            let settings = settings(None, None, json!({}));
            lineup.sync(&settings);
            edit(lineup.channel(1));
            lineup.streams.clear();
            lineup.sync(&settings);
            assert_eq!(lineup.channels.len(), expected, "{cleanup:?}");
        }
    }
}

#[test]
fn a_channel_whose_stream_was_replaced_stays_as_it_is_and_no_other_is_created() {
    let settings = settings(Some("100"), None, json!({}));
    let mut lineup = Lineup::new(&["News", "Sport"]);
    lineup.cleanup = OrphanCleanup::Always;
    lineup.sync(&settings);
    assert!(lineup.channel(1).replace_streams(&HashMap::from([(StreamId(1), StreamId(901))])));
    let before = lineup.channel(1).clone();
    assert_eq!((before.streams.as_slice(), before.is_detached()), (&[StreamId(901)][..], true));
    lineup.streams[0].name = "Renamed".to_owned();
    lineup.sync(&settings);
    lineup.streams.clear();
    lineup.sync(&settings);
    assert_eq!(lineup.channels, [before]);
}

#[test]
fn a_stream_that_a_channel_of_another_provider_took_over_gets_no_channel() {
    let settings = settings(Some("100"), None, json!({}));
    let mut lineup = Lineup::new(&["One", "Two"]);
    lineup.manual("100");
    lineup.channels[0].streams = vec![StreamId(9)];
    assert!(lineup.channels[0].replace_streams(&HashMap::from([(StreamId(9), StreamId(1))])));
    lineup.sync(&settings);
    lineup.check(&["100 manual", "101 Two"]);
    // An automatic channel whose stream is gone does not take it either.
    lineup.cleanup = OrphanCleanup::Never;
    lineup.streams[0].name = "Two".to_owned();
    lineup.streams.remove(1);
    assert!(lineup.plan(&settings).is_empty());
    // An automatic channel of its own, from before, stays and follows it.
    let mut own = lineup.clone();
    own.channel(2).auto.as_mut().unwrap().stream = StreamId(1);
    own.streams[0].name = "Uno".to_owned();
    own.sync(&settings);
    own.check(&["100 manual", "101 Uno"]);
    // An admin took the stream out of the channel.
    lineup.channels[0].streams.clear();
    lineup.streams[0].name = "One".to_owned();
    lineup.sync(&settings);
    lineup.check(&["100 manual", "101 Two", "102 One"]);
}

#[test]
fn only_channels_of_the_account_are_removed() {
    let mut lineup = Lineup::new(&["One"]);
    lineup.manual("1");
    let settings = settings(None, None, json!({}));
    lineup.sync(&settings);
    lineup.check(&["1 manual", "2 One"]);
    lineup.channel(1).auto.as_mut().unwrap().account = AccountId(7);
    lineup.streams.clear();
    lineup.sync(&settings);
    lineup.check(&["1 manual", "2 One"]);
}

#[test]
fn the_setting_of_an_account_decides_about_orphans() {
    let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
    let mut account = Account::new(A, "a", PlaylistLocation::None, profile, 0);
    assert_eq!(OrphanCleanup::from_account(&account), OrphanCleanup::PreserveCustomized);
    for (value, expected) in [
        (json!("always"), OrphanCleanup::Always),
        (json!("never"), OrphanCleanup::Never),
        (json!("preserve_customized"), OrphanCleanup::PreserveCustomized),
        (json!(null), OrphanCleanup::PreserveCustomized),
    ] {
        account.custom_properties.insert(ORPHAN_CLEANUP.to_owned(), value);
        assert_eq!(OrphanCleanup::from_account(&account), expected);
    }
}

#[test]
fn fixed_numbers_fill_the_free_places_of_their_range_and_no_more() {
    let mut lineup = Lineup::new(&["One", "Two", "Three", "Four"]);
    lineup.manual("11");
    let range = settings(Some("10"), Some("13"), json!({}));
    let plan = lineup.sync(&range);
    lineup.check(&["11 manual", "10 One", "12 Two", "13 Three"]);
    assert_eq!(plan.n_without_number, 1);
    // The others keep their numbers, and the gap is filled.
    lineup.streams.remove(1);
    lineup.sync(&range);
    lineup.check(&["11 manual", "10 One", "13 Three", "12 Four"]);
    // Numbers outside a new range change.
    lineup.sync(&settings(Some("12"), Some("30"), json!({})));
    lineup.check(&["11 manual", "14 One", "13 Three", "12 Four"]);
}

#[test]
fn compact_numbers_have_no_gaps() {
    let mut lineup = Lineup::new(&["One", "Two", "Three"]);
    let mut range = settings(Some("10"), None, json!({}));
    lineup.sync(&range);
    lineup.streams.remove(0);
    lineup.sync(&range);
    lineup.check(&["11 Two", "12 Three"]);
    lineup.packed = Some(NEWS);
    lineup.sync(&range);
    lineup.check(&["10 Two", "11 Three"]);
    lineup.packed = None;
    range.is_compact = true;
    lineup.streams.remove(0);
    lineup.sync(&range);
    lineup.check(&["10 Three"]);
}

#[test]
fn numbers_of_the_provider_are_used_where_they_are_free() {
    let mut lineup = Lineup::new(&["One", "Two", "Three"]);
    lineup.manual("7");
    (lineup.streams[0].number, lineup.streams[1].number) = (Some(number("7")), Some(number("4.1")));
    let provider = json!({ "channel_numbering_mode": "provider", "channel_numbering_fallback": "500" });
    let provider = settings(None, None, provider);
    lineup.sync(&provider);
    lineup.check(&["7 manual", "500 One", "4.1 Two", "501 Three"]);
    // The provider exchanges two numbers, and the first one becomes free.
    lineup.channels.remove(0);
    (lineup.streams[0].number, lineup.streams[1].number) = (Some(number("4.1")), Some(number("7")));
    lineup.sync(&provider);
    lineup.check(&["4.1 One", "7 Two", "501 Three"]);
}

#[test]
fn the_next_available_numbers_are_the_lowest() {
    let mut lineup = Lineup::new(&["One", "Two"]);
    lineup.manual("2");
    lineup.sync(&settings(None, None, json!({ "channel_numbering_mode": "next_available" })));
    lineup.check(&["2 manual", "1 One", "3 Two"]);
}

#[test]
fn names_are_selected_changed_and_sorted() {
    let names = ["UK: News 10", "UK: News 9", "UK: Adult", "DE: News", "UK: "];
    let of = |properties: Value| {
        let mut lineup = Lineup::new(&names);
        lineup.sync(&settings(None, None, properties));
        lineup.channels.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    let select = json!({
        "name_match_regex": "^UK", "name_match_exclude_regex": "Adult",
        "name_regex_pattern": "^UK: ", "name_replace_pattern": "", "channel_sort_order": "name",
    });
    assert_eq!(of(select), ["UK: ", "News 9", "News 10"], "a name never becomes empty");
    let reversed = json!({ "channel_sort_order": "name", "channel_sort_reverse": true });
    assert_eq!(of(reversed), ["UK: News 10", "UK: News 9", "UK: Adult", "UK: ", "DE: News"]);
    assert_eq!(of(json!({ "channel_sort_order": "" })), names);
}

#[test]
fn channels_get_the_cleaned_name_after_the_pattern_of_their_group() {
    let rules = json!({ "clean_channels": true, "patterns": ["^News => The News"] });
    let cleaner = Arc::new(NameCleaner::from_setting(Some(&rules)));
    let of_group = settings(None, None, json!({ "name_regex_pattern": "^XX\\s+" }));
    let mut lineup = Lineup::new(&["UK: BBC One FHD", "XX News ᴴᴰ", "HD"]);
    lineup.sync(&SyncSettings { cleaner, ..of_group.clone() });
    let names = |lineup: &Lineup| lineup.channels.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&lineup), ["BBC One", "The News", "HD"]);
    assert_eq!(lineup.streams[0].name, "UK: BBC One FHD");
    lineup.channels[0].name = "One".to_owned();
    lineup.sync(&of_group);
    assert_eq!(names(&lineup), ["One", "News ᴴᴰ", "HD"]);
}

#[test]
fn channels_can_have_another_group_and_a_stream_profile() {
    let mut lineup = Lineup::new(&["One"]);
    lineup.sync(&settings(None, None, json!({ "group_override": 8, "stream_profile_id": "2" })));
    let channel = &lineup.channels[0];
    assert_eq!((channel.group, channel.stream_profile.map(|it| it.0)), (Some(GroupId(8)), Some(2)));
}

#[test]
fn invalid_settings_are_refused_with_their_name() {
    for (properties, field) in [
        (json!({ "name_regex_pattern": "(" }), "name_regex_pattern"),
        (json!({ "name_match_regex": "(?=a)" }), "name_match_regex"),
        (json!({ "name_match_exclude_regex": 7 }), "name_match_exclude_regex"),
        (json!({ "channel_sort_order": "size" }), "channel_sort_order"),
        (json!({ "channel_numbering_mode": "random" }), "channel_numbering_mode"),
        (json!({ "channel_numbering_fallback": -1 }), "channel_numbering_fallback"),
        (json!({ "group_override": "x" }), "group_override"),
        (json!({ "compact_numbering": "yes" }), "compact_numbering"),
        (json!({ "channel_profile_ids": [1, "x"] }), "channel_profile_ids"),
    ] {
        let mut link = AccountGroup::new(AccountGroupId(1), A, NEWS, true);
        link.custom_properties = properties.as_object().unwrap().clone();
        assert_eq!(SyncSettings::read(&link).unwrap_err().field, field);
    }
    let mut link = AccountGroup::new(AccountGroupId(1), A, NEWS, true);
    (link.sync_start, link.sync_end) = (Some(number("10")), Some(number("5")));
    assert_eq!(SyncSettings::read(&link).unwrap_err().field, "auto_sync_channel_end");
}

/// One step between two synchronisations.
#[derive(Clone, Debug)]
enum Step {
    Add(u32, Option<u32>),
    Remove(u32),
    Rename(u32),
    EditNumber(u32, u32),
    EditName(u32),
    Manual(u32),
    Range(u32, u32),
    Mode(u8, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let stream = 1u32..12;
    prop_oneof![
        4 => (stream.clone(), prop::option::of(1u32..20)).prop_map(|(id, number)| Step::Add(id, number)),
        2 => stream.clone().prop_map(Step::Remove),
        1 => stream.clone().prop_map(Step::Rename),
        2 => (stream.clone(), 1u32..20).prop_map(|(id, number)| Step::EditNumber(id, number)),
        1 => stream.prop_map(Step::EditName),
        1 => (1u32..20).prop_map(Step::Manual),
        1 => (1u32..10, 0u32..12).prop_map(|(start, n)| Step::Range(start, n)),
        1 => (0u8..3, any::<bool>()).prop_map(|(mode, is_compact)| Step::Mode(mode, is_compact)),
    ]
}

proptest! {
    /// Holds T-sync.9: no number is given twice, what an admin changed stays, no channel of an admin is touched, and a second
    /// synchronisation changes nothing.
    #[test]
    fn numbers_never_collide_and_manual_values_stay(steps in prop::collection::vec(step(), 0..40)) {
        let mut lineup = Lineup::default();
        let mut settings = SyncSettings::default();
        for step in steps {
            let is_free = |lineup: &Lineup, it| lineup.channels.iter().all(|channel| channel.number != Some(it));
            match step {
                Step::Add(id, of_provider) => {
                    lineup.streams.retain(|it| it.id.0 != id);
                    let of_provider = of_provider.and_then(ChannelNumber::whole);
                    lineup.streams.push(SyncStream { number: of_provider, ..stream(id, "name") });
                }
                Step::Remove(id) => lineup.streams.retain(|it| it.id.0 != id),
                Step::Rename(id) => lineup.streams.iter_mut().filter(|it| it.id.0 == id).for_each(|it| it.name += "x"),
                Step::EditNumber(id, to) => {
                    let to = ChannelNumber::whole(to).unwrap();
                    let of = |it: &&mut Channel| it.auto.as_ref().is_some_and(|auto| auto.stream.0 == id);
                    if is_free(&lineup, to) && let Some(it) = lineup.channels.iter_mut().find(of) {
                        it.number = Some(to);
                    }
                }
                Step::EditName(id) => {
                    let of = |it: &&mut Channel| it.auto.as_ref().is_some_and(|auto| auto.stream.0 == id);
                    lineup.channels.iter_mut().find(of).into_iter().for_each(|it| it.name = "edited".to_owned());
                }
                Step::Manual(to) => {
                    let to = ChannelNumber::whole(to).unwrap();
                    if is_free(&lineup, to) {
                        let id = lineup.channels.iter().map(|it| it.id.0).max().unwrap_or(0) + 1;
                        let mut channel = Channel::new(ChannelId(id), Uuid::from_u128(id.into()), "manual", 0);
                        channel.number = Some(to);
                        lineup.channels.push(channel);
                    }
                }
                Step::Range(start, n) => {
                    settings.start = ChannelNumber::whole(start);
                    settings.end = (n > 0).then(|| ChannelNumber::whole(start + n).unwrap());
                }
                Step::Mode(mode, is_compact) => {
                    settings.mode = [NumberingMode::Fixed, NumberingMode::Provider, NumberingMode::NextAvailable]
                        [usize::from(mode)];
                    settings.is_compact = is_compact;
                }
            }
            let before = lineup.channels.clone();
            lineup.sync(&settings);
            let numbers: Vec<_> = lineup.channels.iter().filter_map(|it| it.number).collect();
            let distinct: HashSet<_> = numbers.iter().collect();
            prop_assert_eq!(distinct.len(), numbers.len(), "{:?}", numbers);
            for channel in before {
                let after = lineup.channels.iter().find(|it| it.id == channel.id);
                if channel.is_customized() {
                    let after = after.expect("a changed channel stays");
                    if channel.auto.is_none() {
                        prop_assert_eq!(after, &channel);
                    }
                    let edited = channel.edited_values();
                    prop_assert!(!edited.contains(&"name") || after.name == channel.name);
                    prop_assert!(!edited.contains(&"channel_number") || after.number == channel.number);
                }
            }
        }
    }
}
