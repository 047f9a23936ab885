//! Thirty days of lists as they are in the field, with edits in between: no channel without a stream, none twice, and every
//! edit stays.

use std::collections::BTreeMap;

use crate::account_group::AccountGroup;
use crate::auto_sync::{OrphanCleanup, SyncInput, SyncSettings, SyncStream, auto_channel_uuid, plan_sync};
use crate::channel::Channel;
use crate::ids::{AccountGroupId, ChannelId, GroupId, StreamId};
use crate::playlist::delta::model::{ACCOUNT, RefreshCase, compare, refresh};
use crate::playlist::m3u::{PlaylistEntry, PlaylistItem, PlaylistLimits, parse};
use crate::stream::Stream;

const DAY: i64 = 24 * 60 * 60 * 1000;
/// The groups of the lists.
const GROUPS: [&str; 2] = ["Local", "World"];

/// An entry of a day. `station` is what a viewer knows it as, whatever the list says.
#[derive(Clone)]
struct Entry {
    station: u32,
    name: String,
    group: &'static str,
    guide_id: String,
    url: String,
}

/// An account, its streams and its automatic channels.
struct Gateway {
    case: RefreshCase,
    streams: Vec<Stream>,
    last_id: u32,
    channels: Vec<Channel>,
    /// The channel of each station, with the name that an admin gave it.
    of_stations: BTreeMap<u32, (ChannelId, Option<String>)>,
}

impl Gateway {
    fn new() -> Self {
        Self {
            case: RefreshCase::new(1000 * DAY),
            streams: Vec::new(),
            last_id: 0,
            channels: Vec::new(),
            of_stations: BTreeMap::new(),
        }
    }

    /// Refreshes with the list of the next day; at once twice, which changes nothing.
    fn day(&mut self, day: u32, list: &[Entry]) {
        let text: String = list
            .iter()
            .map(|it| {
                let Entry { name, group, guide_id, url, .. } = it;
                format!("#EXTINF:-1 tvg-id=\"{guide_id}\" group-title=\"{group}\",{name}\n{url}\n")
            })
            .collect();
        let items = parse(text.as_bytes(), PlaylistLimits::default()).0.into_iter();
        let entries: Vec<PlaylistEntry> = items
            .filter_map(|it| match it {
                PlaylistItem::Entry(entry) => Some(entry),
                _ => None,
            })
            .collect();
        assert_eq!(entries.len(), list.len());
        (self.case.at.last_good, self.case.at.now) = (self.case.at.now, self.case.at.now + DAY);
        let mut known = compare(&self.streams, &entries, &self.case);
        entries.iter().for_each(|it| drop(known.match_entry(it.clone())));
        assert!(
            known.seen_again().is_plausible() && known.panel_ids().is_trusted(),
            "day {day}: nobody is asked"
        );
        for _ in 0..2 {
            self.case.used = self.channels.iter().flat_map(|it| it.streams.clone()).collect();
            self.streams = refresh(&self.streams, &entries, &self.case, &mut self.last_id);
            self.sync();
            self.check(day, list);
        }
    }

    /// Lets the channels follow the streams.
    fn sync(&mut self) {
        let groups: Vec<(GroupId, SyncSettings)> = (1..)
            .zip(GROUPS)
            .map(|(id, _)| {
                let mut link = AccountGroup::new(AccountGroupId(id), ACCOUNT, GroupId(id), true);
                link.sync_start = format!("{}", 1000 * id).parse().ok();
                (GroupId(id), SyncSettings::read(&link).unwrap())
            })
            .collect();
        let stream = |it: &Stream| SyncStream {
            id: it.id,
            group: GroupId(1 + u32::from(it.group() == Some(GROUPS[1]))),
            name: it.name().to_owned(),
            tvg_id: it.tvg_id().map(str::to_owned),
            station: None,
            logo: None,
            guide_channel: None,
            number: None,
            updated_at: it.updated_at,
            position: None,
            is_missing: it.is_stale(),
        };
        let at = self.case.at;
        let is_wanted = |it: &&Stream| it.last_seen.is_none_or(|then| !at.is_over(then));
        let streams = self.streams.iter().filter(is_wanted).map(stream).collect();
        let cleanup = OrphanCleanup::default();
        let input = SyncInput { account: ACCOUNT, cleanup, groups: &groups, streams, packed: None };
        let plan = plan_sync(input, self.channels.iter());
        self.channels.retain(|it| !plan.removals.contains(&it.id));
        for (id, auto) in plan.updates {
            self.channels.iter_mut().find(|it| it.id == id).unwrap().follow(auto);
        }
        for auto in plan.creations {
            let id = ChannelId(1 + self.channels.iter().map(|it| it.id.0).max().unwrap_or(0));
            self.channels.push(Channel::automatic(id, auto_channel_uuid(&auto), auto, 0));
        }
    }

    /// Checks that each station of the list has the channel that it had, with today's address and the edits.
    fn check(&mut self, day: u32, list: &[Entry]) {
        for entry in list {
            let is_of_entry = |it: &&Stream| !it.is_stale() && it.url().expose() == entry.url;
            let stream = self.streams.iter().find(is_of_entry).unwrap();
            let of_stream = |it: &&Channel| it.streams.contains(&stream.id);
            let channels: Vec<&Channel> = self.channels.iter().filter(of_stream).collect();
            assert_eq!(channels.len(), 1, "day {day}: {}", entry.name);
            let channel = channels[0];
            let known = self.of_stations.entry(entry.station).or_insert((channel.id, None));
            assert_eq!(known.0, channel.id, "day {day}: {} has another channel", entry.name);
            let name = known.1.as_ref().unwrap_or(&entry.name);
            assert_eq!(&channel.name, name, "day {day}");
        }
        let listed: Vec<ChannelId> = list.iter().map(|it| self.of_stations[&it.station].0).collect();
        let is_playing = |id: &StreamId| self.streams.iter().any(|it| it.id == *id && !it.is_stale());
        for channel in &self.channels {
            let is_listed = listed.contains(&channel.id);
            assert_eq!(channel.streams.iter().any(is_playing), is_listed, "day {day}: {}", channel.name);
        }
    }

    /// Renames the channel of a station, as an admin does.
    fn rename(&mut self, station: u32, name: &str) {
        let known = self.of_stations.get_mut(&station).unwrap();
        known.1 = Some(name.to_owned());
        let channel = self.channels.iter_mut().find(|it| it.id == known.0).unwrap();
        channel.name = name.to_owned();
        channel.number = format!("{}", 9000 + station).parse().ok();
    }

    fn number(&self, station: u32) -> String {
        let id = self.of_stations[&station].0;
        self.channels.iter().find(|it| it.id == id).unwrap().number.unwrap().to_string()
    }
}

fn entry(station: u32, name: impl Into<String>, group: usize, guide_id: &str, url: String) -> Entry {
    Entry { station, name: name.into(), group: GROUPS[group], guide_id: guide_id.to_owned(), url }
}

/// Returns a token of a day.
fn token(day: u32, station: u32) -> String {
    format!("{:016x}", u64::from(day * 1000 + station + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The list of a service whose ids stay, while every address changes, and the order, too.
fn plex(day: u32) -> Vec<Entry> {
    let of_station = |station: u32| {
        let name = match station % 10 == day % 10 {
            true => format!("Station {station} Today"),
            false => format!("Station {station}"),
        };
        let url = format!("http://epg.example/{}/{day}/{station}.m3u8", token(day, station));
        entry(
            station,
            name,
            usize::from(station.is_multiple_of(3)),
            &format!("5e20b730f2f8d5003d7391{station:02x}"),
            url,
        )
    };
    (0..60).map(|it| of_station((it * 7 + day * 13) % 60)).collect()
}

/// The list of a service with tokens, names in two groups, an id of two qualities, and a time-shifted channel that takes the
/// place of the original.
fn pluto(day: u32) -> Vec<Entry> {
    let url = |station: u32| match station % 2 {
        0 => format!(
            "http://cdn.example/stitch/{}/master.m3u8?sid={}",
            token(day, station),
            token(day, station)
        ),
        _ => format!("http://cdn.example/live/{station}/master.m3u8?jwt={}", token(day, station)),
    };
    let mut list: Vec<Entry> = (0..20)
        .flat_map(|it| {
            let name = format!("Show {it}");
            [entry(it, name.clone(), 0, "", url(it)), entry(20 + it, name, 1, "", url(20 + it))]
        })
        .collect();
    list.push(entry(40, "Sport HD", 0, "sport", url(40)));
    if day < 10 {
        list.push(entry(42, "Sport SD", 0, "sport", url(42)));
    }
    list.push(match day < 15 {
        true => entry(44, "Film", 0, "film", url(44)),
        false => entry(46, "Film +1", 0, "film", url(46)),
    });
    list
}

/// The list of a panel: numbers stay, logins and hosts change, and some names.
fn panel(day: u32) -> Vec<Entry> {
    let (host, login) = (["a", "b", "c"][(day / 10) as usize % 3], day / 7);
    let of_station = |station: u32| {
        let name = match (station + day) % 9 {
            0 => format!("UK: Station {station} HD"),
            _ => format!("Station {station}"),
        };
        let url = format!("http://{host}.example:8080/live/user{login}/secret{login}/{}.ts", 500 + station);
        entry(station, name, usize::from(station > 30), "", url)
    };
    (0..50).map(|it| of_station((it * 3 + day) % 50)).collect()
}

// Holds T-sync.10.
#[test]
fn thirty_days_of_changing_addresses_leave_every_channel_and_every_edit() {
    for (list, edited) in [(plex as fn(u32) -> Vec<Entry>, [3, 17]), (pluto, [5, 40]), (panel, [2, 33])] {
        let mut gateway = Gateway::new();
        for day in 0..30 {
            gateway.day(day, &list(day));
            if day == 4 {
                gateway.rename(edited[0], "Mine");
            }
            if day == 8 {
                gateway.rename(edited[1], "Mine, too");
            }
        }
        assert_eq!(edited.map(|it| gateway.number(it)), edited.map(|it| (9000 + it).to_string()));
    }
}

#[test]
fn any_order_of_two_refreshes_leaves_the_same_channels() {
    for list in [plex as fn(u32) -> Vec<Entry>, panel] {
        let of = |days: [u32; 3]| {
            let mut gateway = Gateway::new();
            days.into_iter().for_each(|day| gateway.day(day, &list(day)));
            gateway.of_stations
        };
        assert_eq!(of([0, 1, 2]), of([0, 2, 1]));
    }
}
