//! A channel of the lineup, and its number.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::ids::{AccountId, ChannelId, GroupId, GuideChannelId, LogoId, StreamId, StreamProfileId};
use crate::timeshift::TimeShiftMode;
use crate::udp_output::UdpOutput;
use crate::user::UserLevel;

/// A channel: a lineup entry that viewers choose, with the streams that can play it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    pub id: ChannelId,
    /// The identifier in its address. Never changes.
    pub uuid: Uuid,
    pub name: String,
    /// Unique.
    pub number: Option<ChannelNumber>,
    #[serde(default)]
    pub group: Option<GroupId>,
    /// Address of the logo: that of the logo record, if there is one.
    #[serde(default)]
    pub logo: Option<String>,
    /// The logo record. Channels of an earlier version have only an address.
    #[serde(default)]
    pub logo_id: Option<LogoId>,
    /// Its id in a programme guide.
    #[serde(default)]
    pub tvg_id: Option<String>,
    /// The guide channel that an admin or the matching linked. Without one, the guide channel with its `tvg_id` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_channel: Option<GuideChannelId>,
    /// Guide channels that fill the hours and the fields that those before them lack, in order. They follow the linked guide
    /// channel, or the one with its `tvg_id`.
    #[serde(default)]
    pub further_guides: Vec<GuideChannelId>,
    /// Minutes by which its programmes are later than its guide says; `None` leaves it to its first stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_offset: Option<i16>,
    /// Whether the offset of its first stream also applies to the linked guide channel. The offset belongs to the guide that
    /// the playlist names, so that a link by hand does without it unless an admin wants it.
    #[serde(default)]
    pub keeps_stream_offset: bool,
    /// Its station in a guide that some players bring themselves. Kept for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_station: Option<String>,
    /// The failover order; the first stream is tried first.
    pub streams: Vec<StreamId>,
    /// Whether a start tries the streams by their health first; equally healthy ones are in the failover order.
    #[serde(default)]
    pub healthiest_first: bool,
    /// The delivery of its streams that have no stream profile of their own.
    #[serde(default)]
    pub stream_profile: Option<StreamProfileId>,
    pub enabled: bool,
    /// Hidden from users of a lower level.
    #[serde(default)]
    pub user_level: UserLevel,
    /// Hidden from users who hide adult content.
    #[serde(default)]
    pub is_adult: bool,
    /// The mark of its streams that `is_adult` follows. If the two differ, a person decided so, and the marks of the streams
    /// no longer count.
    #[serde(default)]
    pub adult_by_streams: bool,
    /// When its past is kept; `None` leaves it to the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeshift: Option<TimeShiftMode>,
    /// Where it is also sent as datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_output: Option<Box<UdpOutput>>,
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
    /// Streams that took the places of streams of another account. While the channel has them, no refresh creates another
    /// channel for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_streams: Vec<StreamId>,
    /// Present if a refresh created the channel for a stream of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Box<AutoChannel>>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

/// The origin of a channel that a refresh created, and the values that the last refresh gave it.
///
/// A value of the channel that differs was changed by an admin and is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutoChannel {
    pub account: AccountId,
    /// The group of the playlist.
    pub group: GroupId,
    pub stream: StreamId,
    pub synced: SyncedValues,
    /// Whether a stream of another account took the place of its stream. No refresh changes or removes the channel then, or
    /// creates another one for its stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_detached: bool,
}

/// The values of a channel that refreshes set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedValues {
    pub name: String,
    #[serde(default)]
    pub number: Option<ChannelNumber>,
    #[serde(default)]
    pub group: Option<GroupId>,
    #[serde(default)]
    pub logo: Option<String>,
    #[serde(default)]
    pub tvg_id: Option<String>,
    #[serde(default)]
    pub stream_profile: Option<StreamProfileId>,
    /// The guide channel that the settings of the group choose; `None` leaves the choice to admins and to matching.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_channel: Option<GuideChannelId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_station: Option<String>,
}

/// Maximum number of further guide channels of a channel.
pub const FURTHER_GUIDES_MAX: usize = 4;
/// Maximum length of a channel's name, in characters.
pub const CHANNEL_NAME_CHARS_MAX: usize = 255;

impl Channel {
    /// Creates a channel with a name and nothing else.
    pub fn new(id: ChannelId, uuid: Uuid, name: impl Into<String>, at: i64) -> Self {
        Self {
            id,
            uuid,
            name: name.into(),
            number: None,
            group: None,
            logo: None,
            logo_id: None,
            tvg_id: None,
            guide_channel: None,
            further_guides: Vec::new(),
            guide_offset: None,
            keeps_stream_offset: false,
            guide_station: None,
            streams: Vec::new(),
            healthiest_first: false,
            stream_profile: None,
            enabled: true,
            user_level: UserLevel::default(),
            is_adult: false,
            adult_by_streams: false,
            timeshift: None,
            udp_output: None,
            custom_properties: Map::new(),
            moved_streams: Vec::new(),
            auto: None,
            created_at: at,
            updated_at: at,
        }
    }

    /// Returns the minutes by which its programmes are later than those of a guide channel that it shows: its own offset, or
    /// that of its first stream. `of_stream` returns that of a stream.
    pub fn offset_from(&self, shown: GuideChannelId, of_stream: impl FnOnce(StreamId) -> i16) -> i16 {
        if let Some(own) = self.guide_offset {
            return own;
        }
        let is_linked = self.guide_channel == Some(shown) || self.further_guides.contains(&shown);
        // A link by the settings of its group follows the playlist.
        let by_group = self.auto.as_ref().is_some_and(|it| it.synced.guide_channel == Some(shown));
        match self.streams.first() {
            Some(first) if !is_linked || by_group || self.keeps_stream_offset => of_stream(*first),
            _ => 0,
        }
    }

    /// Returns the origin of the channel if a refresh created it and still sets its values.
    pub fn followed(&self) -> Option<&AutoChannel> {
        self.auto.as_deref().filter(|it| !it.is_detached)
    }

    /// Returns whether a refresh created the channel, and a stream of another account took the place of its stream.
    pub fn is_detached(&self) -> bool {
        self.auto.as_ref().is_some_and(|it| it.is_detached)
    }

    /// Returns the streams of another account that it took over, as far as it still has them.
    pub fn taken_streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.moved_streams.iter().copied().filter(|it| self.streams.contains(it))
    }

    /// Returns whether a person decided, against its streams, whether it is adult content.
    pub fn is_adult_by_hand(&self) -> bool {
        self.is_adult != self.adult_by_streams
    }

    /// Puts other streams at the places of those that are keys of `replacements`. An automatic channel without the stream of
    /// its account belongs to the admin, until a replacement brings that stream back. Returns whether anything changed.
    pub fn replace_streams(&mut self, replacements: &HashMap<StreamId, StreamId>) -> bool {
        if !self.streams.iter().any(|it| replacements.contains_key(it)) {
            return false;
        }
        let mut taken: HashSet<StreamId> = self.moved_streams.iter().copied().collect();
        taken.extend(self.streams.iter().filter_map(|it| replacements.get(it)));
        let mut seen = HashSet::new();
        let after = self.streams.iter().map(|it| replacements.get(it).copied().unwrap_or(*it));
        // One that the channel has already plays at its first place.
        self.streams = after.filter(|it| seen.insert(*it)).collect();
        if let Some(auto) = &mut self.auto {
            auto.is_detached = replacements.contains_key(&auto.stream)
                || (auto.is_detached && !self.streams.contains(&auto.stream));
        }
        let own = self.followed().map(|it| it.stream);
        self.moved_streams =
            self.streams.iter().copied().filter(|it| taken.contains(it) && Some(*it) != own).collect();
        true
    }

    /// Takes over whether one of its streams is marked as adult content, unless a person decided otherwise. Returns whether
    /// anything changed.
    pub fn follow_adult_mark(&mut self, is_marked: bool) -> bool {
        if self.is_adult_by_hand() || self.is_adult == is_marked {
            return false;
        }
        (self.is_adult, self.adult_by_streams) = (is_marked, is_marked);
        true
    }

    /// Applies the decision of a person. `is_marked` is whether one of its streams is marked as adult content. The channel
    /// follows its streams again if the decision is the same.
    pub fn set_adult_by_hand(&mut self, is_adult: bool, is_marked: bool) {
        (self.is_adult, self.adult_by_streams) = (is_adult, is_marked);
    }
}

/// A channel number: whole as `4`, or with up to three decimals as `4.1`. Never negative.
///
/// Stored exactly, so that equal numbers always compare as equal. Serialised as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelNumber {
    thousandths: u64,
}

/// The reason why a channel number is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelNumberError {
    #[error("a channel number consists of digits and at most one dot, such as 4 or 4.1")]
    NotANumber,
    #[error("a channel number is at most {}", ChannelNumber::WHOLE_MAX)]
    TooLarge,
    #[error("a channel number has at most three decimals")]
    TooManyDecimals,
}

impl ChannelNumber {
    /// The largest whole number.
    pub const WHOLE_MAX: u32 = 99_999_999;

    /// The first number of an automatic numbering.
    pub const ONE: Self = Self { thousandths: 1000 };

    /// Creates a whole number. `None` above [`ChannelNumber::WHOLE_MAX`].
    pub fn whole(number: u32) -> Option<Self> {
        (number <= Self::WHOLE_MAX).then_some(Self { thousandths: u64::from(number) * 1000 })
    }

    /// Returns the number if it has no decimals.
    pub fn as_whole(self) -> Option<u32> {
        let is_whole = self.thousandths.is_multiple_of(1000);
        u32::try_from(self.thousandths / 1000).ok().filter(|_| is_whole)
    }

    /// Returns whether the number is zero, which many providers write for "none".
    pub fn is_zero(self) -> bool {
        self.thousandths == 0
    }

    /// Returns the number plus one: 5.5 after 4.5. `None` above the maximum.
    pub fn next(self) -> Option<Self> {
        let thousandths = self.thousandths + 1000;
        (thousandths <= u64::from(Self::WHOLE_MAX) * 1000).then_some(Self { thousandths })
    }

    /// Returns the next whole number after the largest of these; 1 if there are none. `None` above the maximum.
    pub fn next_after(numbers: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let largest = numbers.into_iter().flatten().max().map_or(0, |it| it.thousandths / 1000);
        u32::try_from(largest + 1).ok().and_then(Self::whole)
    }
}

impl FromStr for ChannelNumber {
    type Err = ChannelNumberError;

    fn from_str(text: &str) -> Result<Self, ChannelNumberError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |it: &str| !it.is_empty() && it.bytes().all(|digit| digit.is_ascii_digit());
        if !is_digits(whole) || !is_digits(decimals) {
            return Err(ChannelNumberError::NotANumber);
        }
        if decimals.len() > 3 {
            return Err(ChannelNumberError::TooManyDecimals);
        }
        let whole: u64 = whole.parse().map_err(|_| ChannelNumberError::TooLarge)?;
        let decimals: u64 = format!("{decimals:0<3}").parse().map_err(|_| ChannelNumberError::NotANumber)?;
        let thousandths = whole.checked_mul(1000).ok_or(ChannelNumberError::TooLarge)? + decimals;
        if thousandths > u64::from(Self::WHOLE_MAX) * 1000 {
            return Err(ChannelNumberError::TooLarge);
        }
        Ok(Self { thousandths })
    }
}

impl fmt::Display for ChannelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.thousandths / 1000, self.thousandths % 1000);
        if decimals == 0 {
            return f.pad(&whole.to_string());
        }
        f.pad(format!("{whole}.{decimals:03}").trim_end_matches('0'))
    }
}

impl fmt::Debug for ChannelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelNumber({self})")
    }
}

impl Serialize for ChannelNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChannelNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> ChannelNumber {
        text.parse().unwrap()
    }

    #[test]
    fn a_channel_follows_the_adult_mark_of_its_streams_until_a_person_decides() {
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "a", 0);
        assert!(!channel.follow_adult_mark(false));
        assert!(channel.follow_adult_mark(true) && channel.is_adult && !channel.is_adult_by_hand());
        assert!(channel.follow_adult_mark(false) && !channel.is_adult);

        channel.follow_adult_mark(true);
        channel.set_adult_by_hand(false, true);
        for is_marked in [true, false, true] {
            assert!(!channel.follow_adult_mark(is_marked) && !channel.is_adult, "a person unmarked it");
        }
        channel.set_adult_by_hand(true, true);
        assert!(channel.follow_adult_mark(false) && !channel.is_adult, "it follows again");

        channel.set_adult_by_hand(true, false);
        for is_marked in [true, false] {
            assert!(!channel.follow_adult_mark(is_marked) && channel.is_adult, "a person marked it");
        }
        // The streams are marked by now.
        channel.set_adult_by_hand(false, true);
        assert!(!channel.follow_adult_mark(true) && !channel.is_adult, "a person unmarked it");
    }

    #[test]
    fn the_guide_of_a_channel_has_its_offset_or_that_of_its_first_stream_unless_it_was_linked_by_hand() {
        let (linked, other) = (GuideChannelId(1), GuideChannelId(2));
        let offset = |channel: &Channel, shown| {
            channel.offset_from(shown, |it| if it == StreamId(7) { 60 } else { 90 })
        };
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "a", 0);
        assert_eq!(offset(&channel, other), 0, "without a stream");
        channel.streams = vec![StreamId(7), StreamId(8)];
        assert_eq!(offset(&channel, other), 60);
        channel.guide_channel = Some(linked);
        assert_eq!((offset(&channel, linked), offset(&channel, other)), (0, 60));
        channel.keeps_stream_offset = true;
        assert_eq!(offset(&channel, linked), 60);
        channel.guide_offset = Some(-30);
        assert_eq!((offset(&channel, linked), offset(&channel, other)), (-30, -30), "no sum");
        channel.guide_offset = Some(0);
        assert_eq!(offset(&channel, other), 0);
    }

    #[test]
    fn a_replaced_stream_has_the_place_of_the_former_one_and_a_way_back_restores_the_channel() {
        let all = |ids: &[u32]| ids.iter().copied().map(StreamId).collect::<Vec<_>>();
        let pairs = |of: &[(u32, u32)]| of.iter().map(|it| (StreamId(it.0), StreamId(it.1))).collect();
        for (before, replaced, after, taken) in [
            (&[7, 1, 9][..], &[(1, 21)][..], &[7, 21, 9][..], &[21][..]),
            (&[1, 2], &[(1, 22), (2, 21)], &[22, 21], &[22, 21]),
            // It has the other stream already.
            (&[1, 7, 21], &[(1, 21)], &[21, 7], &[21]),
            (&[21, 1], &[(1, 21)], &[21], &[21]),
            (&[7, 8], &[(1, 21)], &[7, 8], &[]),
        ] {
            let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "a", 0);
            channel.streams = all(before);
            assert_eq!(channel.replace_streams(&pairs(replaced)), before != after, "{before:?}");
            assert_eq!((&channel.streams, &channel.moved_streams), (&all(after), &all(taken)));
            assert_eq!(channel.taken_streams().collect::<Vec<_>>(), all(taken));
            channel.streams.clear();
            assert_eq!(channel.taken_streams().count(), 0, "an admin removed them");
        }

        let synced = SyncedValues {
            name: "a".to_owned(),
            number: None,
            group: None,
            logo: None,
            tvg_id: None,
            stream_profile: None,
            guide_channel: None,
            guide_station: None,
        };
        let auto = AutoChannel {
            account: AccountId(2),
            group: GroupId(3),
            stream: StreamId(1),
            synced,
            is_detached: false,
        };
        let mut channel = Channel::automatic(ChannelId(1), Uuid::nil(), auto, 0);
        let before = channel.clone();
        assert!(channel.replace_streams(&pairs(&[(1, 21)])));
        assert!(channel.is_detached() && channel.followed().is_none() && channel.edited_values().is_empty());
        assert!(channel.replace_streams(&pairs(&[(21, 31)])));
        assert_eq!((channel.is_detached(), &channel.moved_streams), (true, &all(&[31])));
        assert!(channel.replace_streams(&pairs(&[(31, 1)])));
        assert_eq!(channel, before);
    }

    #[test]
    fn a_channel_that_was_adult_before_its_streams_had_marks_stays_so() {
        let mut stored = serde_json::to_value(Channel::new(ChannelId(1), Uuid::nil(), "a", 0)).unwrap();
        stored["is_adult"] = true.into();
        stored.as_object_mut().unwrap().remove("adult_by_streams");
        let mut channel: Channel = serde_json::from_value(stored).unwrap();
        assert!(channel.is_adult_by_hand());
        assert!(!channel.follow_adult_mark(true) && !channel.follow_adult_mark(false) && channel.is_adult);
    }

    #[test]
    fn a_number_is_written_in_its_shortest_form() {
        for (read, written) in [
            ("4", "4"),
            ("4.0", "4"),
            ("4.10", "4.1"),
            ("4.001", "4.001"),
            ("0.5", "0.5"),
            ("007", "7"),
            ("99999999", "99999999"),
        ] {
            assert_eq!(number(read).to_string(), written);
        }
        assert_eq!(format!("{:>5}|{:<5}", number("4.1"), number("4")), "  4.1|4    ");
    }

    #[test]
    fn an_invalid_number_is_refused_with_the_reason() {
        use ChannelNumberError::{NotANumber, TooLarge, TooManyDecimals};
        for text in ["", "-5", "+5", "abc", "NaN", "inf", "4.", ".5", "4.1.2", "1e3", "4,1", " 4", "٤"] {
            assert_eq!(text.parse::<ChannelNumber>(), Err(NotANumber), "{text:?}");
        }
        assert_eq!("1.2345".parse::<ChannelNumber>(), Err(TooManyDecimals));
        for text in ["100000000", "99999999.001", "99999999999999999999", "18446744073709551"] {
            assert_eq!(text.parse::<ChannelNumber>(), Err(TooLarge), "{text:?}");
        }
    }

    #[test]
    fn the_next_number_is_the_whole_number_after_the_largest() {
        assert_eq!(ChannelNumber::next_after([]), Some(number("1")));
        assert_eq!(
            ChannelNumber::next_after([Some(number("7")), None, Some(number("4"))]),
            Some(number("8"))
        );
        assert_eq!(ChannelNumber::next_after([Some(number("7.9"))]), Some(number("8")));
        assert_eq!(ChannelNumber::next_after([Some(number("99999999"))]), None);
    }

    #[test]
    fn adding_one_keeps_the_decimals() {
        assert_eq!(ChannelNumber::ONE.next(), Some(number("2")));
        assert_eq!(number("4.5").next(), Some(number("5.5")));
        assert_eq!(number("99999998.001").next(), None);
        assert_eq!(number("99999999").next(), None);
    }

    proptest! {
        #[test]
        fn a_number_survives_writing_and_reading(thousandths in 0..=99_999_999_000_u64) {
            let it = ChannelNumber { thousandths };
            prop_assert_eq!(it.to_string().parse::<ChannelNumber>(), Ok(it));
            let text = serde_json::to_string(&it).unwrap();
            prop_assert_eq!(serde_json::from_str::<ChannelNumber>(&text).unwrap(), it);
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC*|[0-9.+-]{0,30}") {
            let _ = text.parse::<ChannelNumber>();
        }
    }
}
