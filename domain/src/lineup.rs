//! Lineups, which select channels; the rule that decides which channels a viewer may see; and their order and numbers in
//! lists for players.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, ChannelNumber};
use crate::ids::{ChannelId, GroupId, LineupId};
use crate::playlist::tags::PlaylistTags;
use crate::user::{User, UserLevel};

/// Maximum length of a lineup's name, in characters.
pub const LINEUP_NAME_CHARS_MAX: usize = 100;

/// A named selection of channels. The interface calls it a channel profile.
///
/// It stores the exceptions from a default and not the channels themselves. So a new channel needs no write, a deleted
/// channel is in no lineup, and a lineup with all channels is small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineup {
    pub id: LineupId,
    /// Unique. Part of addresses of tuners.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// Whether channels without an exception, and therefore new ones, are in the lineup.
    pub has_new_channels: bool,
    /// The channels for which the opposite holds. May contain ids of deleted channels, which are never used again.
    pub exceptions: BTreeSet<ChannelId>,
    /// Additional tags of playlists of this lineup.
    #[serde(default)]
    pub tags: PlaylistTags,
}

impl Lineup {
    /// Creates a lineup with all channels, or with none, now and later.
    pub fn new(id: LineupId, name: impl Into<String>, has_new_channels: bool) -> Self {
        let (name, description) = (name.into(), String::new());
        let tags = PlaylistTags::default();
        Self { id, name, description, has_new_channels, exceptions: BTreeSet::new(), tags }
    }

    /// Returns whether an existing channel is in the lineup.
    pub fn contains(&self, channel: ChannelId) -> bool {
        self.has_new_channels != self.exceptions.contains(&channel)
    }

    /// Adds a channel, or removes it. Returns whether that was a change.
    pub fn set(&mut self, channel: ChannelId, is_member: bool) -> bool {
        match is_member == self.has_new_channels {
            true => self.exceptions.remove(&channel),
            false => self.exceptions.insert(channel),
        }
    }

    /// Decides whether new channels are added. `channels` are all existing ones, which stay in the lineup or out of it.
    pub fn set_new_channels(&mut self, has_new_channels: bool, channels: impl Iterator<Item = ChannelId>) {
        if has_new_channels != self.has_new_channels {
            self.exceptions = channels.filter(|it| self.contains(*it) != has_new_channels).collect();
            self.has_new_channels = has_new_channels;
        }
    }

    /// Forgets the exceptions for channels that no longer exist.
    pub fn keep_existing(&mut self, exists: impl Fn(ChannelId) -> bool) {
        self.exceptions.retain(|it| exists(*it));
    }
}

/// The limits of what a viewer may see, with the lineups of a user as they are at one moment. Two viewers with equal limits
/// see the same channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewLimits {
    level: UserLevel,
    hides_adult: bool,
    /// The channels of these lineups only. `None` sets no limit.
    lineups: Option<Vec<Arc<Lineup>>>,
    /// The channels of these groups only. `None` sets no limit.
    groups: Option<BTreeSet<GroupId>>,
}

impl ViewLimits {
    /// For admins, and for everybody while no user exists.
    pub fn none() -> Self {
        Self { level: UserLevel::Admin, hides_adult: false, lineups: None, groups: None }
    }

    /// For callers without credentials: those of a viewer of the lowest level, who sees channels marked as adult only if a
    /// rule allows them.
    pub fn anonymous(allows_adult: bool) -> Self {
        Self { level: UserLevel::Streamer, hides_adult: !allows_adult, lineups: None, groups: None }
    }

    /// For a user. A lineup that does not exist has no channels, so a user never sees more because a lineup is missing.
    pub fn from_user(user: &User, lineup: impl Fn(LineupId) -> Option<Arc<Lineup>>) -> Self {
        if user.effective_level() == UserLevel::Admin {
            return Self::none();
        }
        let lineups = || user.lineups.iter().filter_map(|it| lineup(*it)).collect();
        let lineups = (!user.lineups.is_empty()).then(lineups);
        let groups = (!user.channel_groups.is_empty()).then(|| user.channel_groups.iter().copied().collect());
        Self { level: user.level, hides_adult: user.hide_adult, lineups, groups }
    }

    /// Returns the level of the viewer.
    pub fn level(&self) -> UserLevel {
        self.level
    }

    /// Returns whether adult content is hidden, or only some lineups or groups are seen.
    pub fn selects(&self) -> bool {
        self.hides_adult || self.lineups.is_some() || self.groups.is_some()
    }
}

/// Returns whether a viewer with these limits may see and watch the channel. Lists, playlists, guides, tuners, playback
/// and notifications all use this rule.
pub fn visible(limits: &ViewLimits, channel: &Channel) -> bool {
    let is_in_lineup = || match &limits.lineups {
        Some(lineups) => lineups.iter().any(|it| it.contains(channel.id)),
        None => true,
    };
    let is_in_group = || match &limits.groups {
        Some(groups) => channel.group.is_some_and(|it| groups.contains(&it)),
        None => true,
    };
    channel.enabled
        && limits.level >= channel.user_level
        && !(limits.hides_adult && channel.is_adult)
        && is_in_lineup()
        && is_in_group()
}

/// Compares two channels by their place in lists for players: by number, those without one last, then by name.
pub fn list_order(one: &Channel, other: &Channel) -> Ordering {
    let place = |it: &Channel| (it.number.is_none(), it.number);
    place(one).cmp(&place(other)).then_with(|| one.name.cmp(&other.name)).then_with(|| one.id.cmp(&other.id))
}

/// Returns the channels that a viewer may see, in the order of lists for players.
pub fn visible_in_order<'a>(
    limits: &ViewLimits,
    channels: impl IntoIterator<Item = &'a Arc<Channel>>,
) -> Vec<&'a Arc<Channel>> {
    visible_by_groups(limits, channels, |_| u32::MAX)
}

/// Does the same, with the groups that have a place first, in the order of their places. `place` returns that of a group, and
/// the largest number for a group without one.
pub fn visible_by_groups<'a>(
    limits: &ViewLimits,
    channels: impl IntoIterator<Item = &'a Arc<Channel>>,
    place: impl Fn(GroupId) -> u32,
) -> Vec<&'a Arc<Channel>> {
    let seen = channels.into_iter().filter(|it| visible(limits, it));
    let mut seen: Vec<_> = seen.map(|it| (it.group.map_or(u32::MAX, &place), it)).collect();
    seen.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| list_order(one.1, other.1)));
    seen.into_iter().map(|it| it.1).collect()
}

/// Returns the number of a channel for players that take whole numbers only: its own number if that is whole, else one
/// above all numbers that a channel can have. Unique, the same for every user, and stable as long as the number is.
pub fn whole_number(channel: &Channel) -> u64 {
    let own = channel.number.and_then(ChannelNumber::as_whole);
    own.map_or_else(|| u64::from(ChannelNumber::WHOLE_MAX) + 1 + u64::from(channel.id.0), u64::from)
}

/// Returns the id by which playlists, guides and tuners name a channel: its number such as `4` or `4.1`, or `id-7` for the
/// channel 7 without a number. Unique, and the same for every user.
pub fn guide_channel_id(channel: &Channel) -> String {
    channel.number.map_or_else(|| format!("id-{}", channel.id), |it| it.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::ids::UserId;

    const KIDS: LineupId = LineupId(1);
    const NEWS: LineupId = LineupId(2);

    fn channel(id: u32) -> Channel {
        Channel::new(ChannelId(id), Uuid::from_u128(id.into()), "a", 0)
    }

    fn members(lineup: &Lineup) -> Vec<u32> {
        (1..=5).filter(|id| lineup.contains(ChannelId(*id))).collect()
    }

    #[test]
    fn a_lineup_keeps_its_channels_when_it_stops_adding_new_ones() {
        let mut lineup = Lineup::new(KIDS, "Kids", true);
        assert!(lineup.set(ChannelId(2), false) && !lineup.set(ChannelId(2), false));
        assert_eq!(members(&lineup), [1, 3, 4, 5]);
        // 4 and 5 do not exist yet.
        lineup.set_new_channels(false, (1..=3).map(ChannelId));
        assert_eq!(members(&lineup), [1, 3]);
        assert!(lineup.set(ChannelId(4), true));
        lineup.set_new_channels(true, (1..=4).map(ChannelId));
        assert_eq!(members(&lineup), [1, 3, 4, 5]);
        lineup.keep_existing(|it| it != ChannelId(2));
        assert!(lineup.exceptions.is_empty());
    }

    /// Sees channels 1 and 2 of these lineups: 1 is in the first, 2 in the second.
    fn sees(user: &User, channel: &Channel) -> bool {
        let lineup = |id: LineupId| {
            let mut lineup = Lineup::new(id, "a", false);
            lineup.set(ChannelId(id.0), true);
            [KIDS, NEWS].contains(&id).then(|| Arc::new(lineup))
        };
        visible(&ViewLimits::from_user(user, lineup), channel)
    }

    #[test]
    fn a_user_sees_the_channels_of_any_of_the_assigned_lineups() {
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        for (lineups, expected) in [
            (vec![], [true, true, true]),
            (vec![KIDS], [true, false, false]),
            (vec![KIDS, NEWS], [true, true, false]),
            (vec![LineupId(9)], [false, false, false]),
        ] {
            user.lineups = lineups;
            assert_eq!([1, 2, 3].map(|id| sees(&user, &channel(id))), expected, "{:?}", user.lineups);
        }
        user.is_superuser = true;
        assert!(sees(&user, &channel(3)), "admins see all enabled channels");
        assert!(!sees(&user, &Channel { enabled: false, ..channel(3) }));
    }

    #[test]
    fn groups_of_a_user_limit_what_is_visible_beside_the_lineups() {
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        let channels = [1, 2, 3].map(|id| Channel { group: (id < 3).then_some(GroupId(id)), ..channel(id) });
        // Groups, lineups, and which channels are seen: 1 and 2 are in the groups of their numbers and in the two lineups, 3
        // in none.
        for (groups, lineups, expected) in [
            (vec![], vec![], [true, true, true]),
            (vec![1], vec![], [true, false, false]),
            (vec![1, 2], vec![], [true, true, false]),
            (vec![1, 2], vec![NEWS], [false, true, false]),
            (vec![1], vec![NEWS], [false, false, false]),
            // A deleted group.
            (vec![9], vec![], [false, false, false]),
        ] {
            user.channel_groups = groups.into_iter().map(GroupId).collect();
            user.lineups = lineups;
            let seen = [0, 1, 2].map(|n| sees(&user, &channels[n]));
            assert_eq!(seen, expected, "{:?} {:?}", user.channel_groups, user.lineups);
        }
        user.level = UserLevel::Admin;
        assert!(sees(&user, &channels[2]), "admins see all");
    }

    #[test]
    fn level_adult_content_and_state_limit_what_is_visible() {
        let limits = |level, hides_adult| ViewLimits { level, hides_adult, lineups: None, groups: None };
        let adult = Channel { is_adult: true, ..channel(1) };
        let standard = Channel { user_level: UserLevel::Standard, ..channel(1) };
        let off = Channel { enabled: false, ..channel(1) };
        for (limits, expected) in [
            (limits(UserLevel::Streamer, false), [true, true, false, false]),
            (limits(UserLevel::Streamer, true), [true, false, false, false]),
            (limits(UserLevel::Standard, true), [true, false, true, false]),
            (ViewLimits::anonymous(false), [true, false, false, false]),
            (ViewLimits::anonymous(true), [true, true, false, false]),
            (ViewLimits::none(), [true, true, true, false]),
        ] {
            let seen = [&channel(1), &adult, &standard, &off].map(|it| visible(&limits, it));
            assert_eq!(seen, expected, "{limits:?}");
        }
    }

    fn numbered(id: u32, name: &str, number: Option<&str>) -> Arc<Channel> {
        let number = number.map(|it| it.parse().unwrap());
        Arc::new(Channel { number, name: name.to_owned(), ..channel(id) })
    }

    #[test]
    fn channels_are_listed_by_number_then_by_name_and_those_without_a_number_last() {
        let channels = [
            numbered(1, "B", None),
            numbered(2, "Ten", Some("10")),
            numbered(3, "Nine and a half", Some("9.5")),
            numbered(4, "A", None),
            Arc::new(Channel { enabled: false, ..(*numbered(5, "Off", Some("1"))).clone() }),
            numbered(6, "A", None),
        ];
        let listed = visible_in_order(&ViewLimits::none(), &channels);
        assert_eq!(listed.iter().map(|it| it.id.0).collect::<Vec<_>>(), [3, 2, 4, 6, 1]);
    }

    #[test]
    fn groups_with_a_place_come_first_and_their_channels_stay_together() {
        let of = |id, number, group| {
            Arc::new(Channel { group: Some(GroupId(group)), ..(*numbered(id, "A", Some(number))).clone() })
        };
        let channels = [
            of(1, "1", 7),
            of(2, "2", 8),
            of(3, "3", 9),
            of(4, "4", 7),
            numbered(5, "A", Some("5")),
            of(6, "6", 9),
        ];
        let place = |it: GroupId| match it.0 {
            9 => 1,
            8 => 2,
            _ => u32::MAX,
        };
        let listed = visible_by_groups(&ViewLimits::none(), &channels, place);
        assert_eq!(listed.iter().map(|it| it.id.0).collect::<Vec<_>>(), [3, 6, 2, 1, 4, 5]);
    }

    #[test]
    fn whole_numbers_and_guide_ids_are_unique_and_follow_the_channel_number() {
        let expected = [
            (numbered(1, "a", Some("4")), 4, "4"),
            (numbered(2, "a", Some("4.1")), 100_000_002, "4.1"),
            (numbered(3, "a", None), 100_000_003, "id-3"),
            (numbered(4, "a", Some("99999999")), 99_999_999, "99999999"),
            (numbered(5, "a", Some("0")), 0, "0"),
            (numbered(u32::MAX, "a", None), 4_394_967_295, "id-4294967295"),
        ];
        for (channel, number, id) in expected {
            assert_eq!((whole_number(&channel), &*guide_channel_id(&channel)), (number, id));
        }
    }

    proptest! {
        #[test]
        fn a_lineup_contains_what_was_last_set(
            has_new in any::<bool>(),
            changes in proptest::collection::vec((1u32..6, any::<bool>(), any::<Option<bool>>()), 0..20),
        ) {
            let mut lineup = Lineup::new(KIDS, "a", has_new);
            let mut expected = [has_new; 5];
            for (id, is_member, has_new) in changes {
                lineup.set(ChannelId(id), is_member);
                expected[id as usize - 1] = is_member;
                if let Some(has_new) = has_new {
                    lineup.set_new_channels(has_new, (1..=5).map(ChannelId));
                }
            }
            let expected: Vec<u32> = (1..=5).filter(|id| expected[*id as usize - 1]).collect();
            prop_assert_eq!(members(&lineup), expected);
        }
    }
}
