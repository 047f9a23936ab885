//! Builds accounts, streams and channels from playlists, without a store.
//!
//! Entries with the same guide id, or without an id but with the same name, form one channel; see [`channel_key`]. Its
//! failover order is the order in which they were found, across all playlists. A channel keeps its uuid from run to run,
//! because the uuid is derived from the id or name of its first entry.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use crate::account::{Account, AccountProfile, CUSTOM_ACCOUNT, PlaylistLocation};
use crate::channel::{Channel, ChannelNumber};
use crate::group::Group;
use crate::ids::{AccountId, ChannelId, GroupId, ProfileId, StreamId};
use crate::playlist::content::ContentCounts;
use crate::playlist::delta;
use crate::playlist::m3u::PlaylistEntry;
use crate::stream::{RequestHeaders, Stream};

/// The records of one or more playlists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    pub accounts: Vec<Account>,
    pub groups: Vec<Group>,
    pub streams: Vec<Stream>,
    /// In the order found; each has a number.
    pub channels: Vec<Channel>,
    /// Entries of a kind that is not imported at all.
    pub left_out: ContentCounts,
}

/// Builds a catalogue from playlists and their entries.
#[derive(Debug, Default)]
pub struct CatalogueBuilder {
    catalogue: Catalogue,
    /// Position of each channel by its key.
    positions: HashMap<String, usize>,
    groups: HashMap<String, GroupId>,
    /// Numbers requested by playlists.
    numbers: BTreeSet<ChannelNumber>,
}

/// The namespace of channel uuids. Changing it would invalidate every address that a player has stored.
const NAMESPACE: Uuid = Uuid::from_u128(0x6f0d_4a52_93c1_4e0b_8d2a_51b7_c0e6_9f34);

impl CatalogueBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a playlist as an account with one profile. `max_streams` 0 is unlimited. A number is appended to a name
    /// that is taken.
    pub fn account(&mut self, name: &str, max_streams: u32, headers: RequestHeaders) -> AccountId {
        // The first id and its name belong to the account of manually created streams.
        let number = next_id(self.catalogue.accounts.len()) + CUSTOM_ACCOUNT.0;
        let custom = Account::custom().name;
        let is_free = |it: &str| it != custom && self.catalogue.accounts.iter().all(|other| other.name != it);
        let mut free = name.to_owned();
        // Ends, because different numbers give different names.
        for n in 2.. {
            if is_free(&free) {
                break;
            }
            free = format!("{name} {n}");
        }
        let profile = AccountProfile::default_of(ProfileId(number), &free, max_streams);
        let account = Account::new(AccountId(number), free, PlaylistLocation::None, profile, 0);
        self.catalogue.accounts.push(Account { headers, ..account });
        AccountId(number)
    }

    /// Adds an entry of the account's playlist. Films, episodes and separator lines are only counted.
    pub fn entry(&mut self, account: AccountId, entry: PlaylistEntry) {
        let properties = delta::stream_properties(entry);
        if !properties.content.is_live() {
            self.catalogue.left_out.add(properties.content);
            return;
        }
        let key = channel_key(properties.tvg_id.as_deref(), &properties.name);
        let uuid = channel_uuid(properties.tvg_id.as_deref(), &properties.name);
        let group = properties.group.as_deref().map(|name| self.group(name));
        let id = StreamId(next_id(self.catalogue.streams.len()));
        let stream = Stream::new(id, account, properties, 0);
        let position = *self.positions.entry(key).or_insert_with(|| {
            let id = ChannelId(next_id(self.catalogue.channels.len()));
            let mut channel = Channel::new(id, uuid, stream.name(), 0);
            channel.tvg_id = stream.tvg_id().map(str::to_owned);
            self.catalogue.channels.push(channel);
            self.catalogue.channels.len() - 1
        });
        let channel = &mut self.catalogue.channels[position];
        channel.streams.push(stream.id);
        // A later stream provides the values that the first one lacks.
        channel.group = channel.group.or(group);
        channel.logo = channel.logo.take().or_else(|| stream.logo().map(str::to_owned));
        channel.guide_station = channel.guide_station.take().or_else(|| stream.station().map(str::to_owned));
        let is_adult = channel.is_adult || stream.is_adult();
        channel.follow_adult_mark(is_adult);
        if channel.number.is_none()
            && let Some(number) = stream.provider.number
            && self.numbers.insert(number)
        {
            channel.number = Some(number);
        }
        self.catalogue.streams.push(stream);
    }

    /// Returns the group of this name; creates it if it does not exist.
    fn group(&mut self, name: &str) -> GroupId {
        if let Some(id) = self.groups.get(name) {
            return *id;
        }
        let id = GroupId(next_id(self.catalogue.groups.len()));
        self.catalogue.groups.push(Group::new(id, name));
        self.groups.insert(name.to_owned(), id);
        id
    }

    /// Assigns the free whole numbers, from 1, to channels without a number.
    ///
    /// This happens last, so that no channel without a requested number takes one that a later channel requests.
    pub fn build(mut self) -> Catalogue {
        let mut free = (1..=ChannelNumber::WHOLE_MAX)
            .filter_map(ChannelNumber::whole)
            .filter(|it| !self.numbers.contains(it));
        for channel in &mut self.catalogue.channels {
            if channel.number.is_none() {
                channel.number = free.next();
            }
        }
        self.catalogue
    }
}

/// Returns the text that streams of one channel have in common: the guide id, or without one the name regardless of case.
/// The number of spaces does not count.
pub fn channel_key(tvg_id: Option<&str>, name: &str) -> String {
    let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match tvg_id.map(normal).filter(|it| !it.is_empty()) {
        Some(id) => id,
        // A name never equals an id, which has no line break.
        None => format!("\n{}", normal(name).to_lowercase()),
    }
}

/// Returns the uuid of the channel with this guide id, or with this name if it has no id.
pub fn channel_uuid(tvg_id: Option<&str>, name: &str) -> Uuid {
    let key = tvg_id.map_or_else(|| format!("name:{name}"), |id| format!("tvg-id:{id}"));
    Uuid::new_v5(&NAMESPACE, key.as_bytes())
}

/// Returns whether a text is an id. Some providers write one of these words into every entry, which would combine all
/// their channels into one.
pub(crate) fn is_id(text: &str) -> bool {
    !["", "0", "-", "-1", "none", "null", "undefined", "unknown", "n/a"]
        .iter()
        .any(|it| text.eq_ignore_ascii_case(it))
}

/// Ids begin with 1, because some clients treat 0 as none.
fn next_id(n_before: usize) -> u32 {
    u32::try_from(n_before + 1).expect("less than four billion entries fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playlist::m3u::{self, PlaylistItem, PlaylistLimits};

    /// Builds a catalogue of these playlists; each line contains the attributes and name of an entry, and its address
    /// is `http://LIST/LINE`, from 1.
    fn catalogue(lists: &[&[&str]]) -> Catalogue {
        let mut builder = CatalogueBuilder::new();
        for (lines, list) in lists.iter().zip(1..) {
            let account = builder.account(&format!("list {list}"), list, RequestHeaders::default());
            for (line, number) in lines.iter().zip(1..) {
                let text = format!("#EXTINF:-1 {line}\nhttp://{list}/{number}");
                for item in m3u::parse(text.as_bytes(), PlaylistLimits::default()).0 {
                    if let PlaylistItem::Entry(entry) = item {
                        builder.entry(account, entry);
                    }
                }
            }
        }
        builder.build()
    }

    /// Compares the channels, written as `number name addresses`.
    #[track_caller]
    fn check(lists: &[&[&str]], expected: &[&str]) {
        let catalogue = catalogue(lists);
        let url = |id: &StreamId| {
            catalogue.streams.iter().find(|it| it.id == *id).unwrap().url().expose()[7..].to_owned()
        };
        let show = |it: &Channel| {
            let urls: Vec<_> = it.streams.iter().map(url).collect();
            format!("{} {} {}", it.number.unwrap(), it.name, urls.join(" "))
        };
        assert_eq!(catalogue.channels.iter().map(show).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn playlists_of_the_same_name_become_accounts_with_different_names() {
        let mut builder = CatalogueBuilder::new();
        for name in ["tv.example", "tv.example", "custom", "tv.example"] {
            builder.account(name, 0, RequestHeaders::default());
        }
        let names: Vec<_> = builder.build().accounts.into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["tv.example", "tv.example 2", "custom 2", "tv.example 3"]);
    }

    #[test]
    fn entries_with_the_same_guide_id_or_name_become_one_channel_across_playlists() {
        let one = [r#"tvg-id="a",A"#, ",B", ",C"].as_slice();
        let two = [",B", r#"tvg-id="a",Other"#, ",A", r#"tvg-id="b",B"#].as_slice();
        check(&[&[",News  One", ",NEWS one"]], &["1 News  One 1/1 1/2"]);
        let cases = [r#"tvg-id="rtl",A"#, r#"tvg-id="RTL",B"#, r#"tvg-id="rtl",C"#];
        check(&[&cases], &["1 A 1/1 1/3", "2 B 1/2"]);
        check(&[one, two], &["1 A 1/1 2/2", "2 B 1/2 2/1", "3 C 1/3", "4 A 2/3", "5 B 2/4"]);
    }

    #[test]
    fn films_episodes_and_separator_lines_are_counted_and_become_no_channels() {
        let lines = [r#"tvg-type="movie",A"#, r#"tvg-type="series",B"#, ",##### UK #####", ",C"];
        check(&[&lines], &["1 C 1/4"]);
        let left_out = catalogue(&[&lines]).left_out;
        assert_eq!(left_out.to_string(), "1 film, 1 episode, 1 separator line");
    }

    #[test]
    fn a_placeholder_is_not_a_guide_id() {
        check(
            &[&[r#"tvg-id="none",A"#, r#"tvg-id="None",B"#, r#"tvg-id="0",C"#]],
            &["1 A 1/1", "2 B 1/2", "3 C 1/3"],
        );
    }

    #[test]
    fn a_channel_gets_its_requested_number_if_free_else_the_next_free_one() {
        check(
            &[&[
                ",A",
                r#"tvg-chno="1",B"#,
                r#"tvg-chno="3",C"#,
                r#"tvg-chno="1",D"#,
                ",E",
                r#"tvg-chno="4.1",F"#,
            ]],
            &["2 A 1/1", "1 B 1/2", "3 C 1/3", "4 D 1/4", "5 E 1/5", "4.1 F 1/6"],
        );
        check(&[&[",A", r#"tvg-chno="7",A"#]], &["7 A 1/1 1/2"]);
        check(&[&[r#"tvg-chno="-5",A"#]], &["1 A 1/1"]);
    }

    #[test]
    fn a_channel_gets_group_and_logo_from_the_first_stream_that_has_them() {
        let catalogue = catalogue(&[&[",A", r#"group-title="G" tvg-logo="L",A"#, r#"group-title="H",A"#]]);
        let channel = &catalogue.channels[0];
        assert_eq!((channel.group, channel.logo.as_deref()), (Some(GroupId(1)), Some("L")));
        assert_eq!(catalogue.groups.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["G", "H"]);
    }

    #[test]
    fn a_channel_is_adult_if_one_of_its_streams_is_marked() {
        let catalogue = catalogue(&[&[",A", ",B"], &[r#"is_adult="1",A"#]]);
        assert_eq!(catalogue.channels.iter().map(|it| it.is_adult).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn each_playlist_is_an_account_with_its_own_limit() {
        let catalogue = catalogue(&[&[",A"], &[",B"]]);
        let profiles: Vec<_> = catalogue
            .accounts
            .iter()
            .flat_map(|it| &it.profiles)
            .map(|it| (it.id.0, it.max_streams))
            .collect();
        assert_eq!(profiles, [(2, 1), (3, 2)]);
        assert_eq!(catalogue.streams.iter().map(|it| it.account.0).collect::<Vec<_>>(), [2, 3]);
    }

    // Players store these addresses: the expected values must never change.
    #[test]
    fn a_channel_keeps_its_uuid_from_run_to_run() {
        let first = catalogue(&[&[r#"tvg-id="a",A"#, ",B"]]);
        let second = catalogue(&[&[",B"], &[r#"tvg-chno="9" tvg-id="a",Renamed"#]]);
        assert_eq!(first.channels[0].uuid, second.channels[1].uuid);
        assert_eq!(first.channels[1].uuid, second.channels[0].uuid);
        assert_eq!(channel_uuid(Some("a"), "A").to_string(), "b9d4bf45-f634-5991-9a6c-f96f25a580af");
        assert_eq!(channel_uuid(None, "B").to_string(), "a35cd791-4177-552d-a758-13d5d6814aa5");
    }
}
