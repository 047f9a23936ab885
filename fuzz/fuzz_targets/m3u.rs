//! Playlists of any kind: nothing panics, every item is within its limits, and the split into pieces makes no
//! difference. The parsed items are built into a catalogue, written and parsed again.
#![no_main]

use domain::playlist::catalogue::CatalogueBuilder;
use domain::playlist::m3u::{self, PlaylistItem, PlaylistLimits, PlaylistParser};
use domain::playlist::write::{self, OutputEntry};
use domain::stream::RequestHeaders;
use libfuzzer_sys::fuzz_target;

/// Small limits, so that small inputs reach them.
const LIMITS: PlaylistLimits = PlaylistLimits {
    line_bytes_max: 256,
    name_chars_max: 32,
    url_bytes_max: 64,
    attributes_max: 3,
    entries_max: 20,
};

fuzz_target!(|data: &[u8]| {
    // The first byte determines the size of the pieces.
    let Some((cut, playlist)) = data.split_first() else { return };
    let (items, summary) = m3u::parse(playlist, LIMITS);

    let mut again = Vec::new();
    let mut parser = PlaylistParser::new(LIMITS);
    for piece in playlist.chunks(usize::from(*cut).max(1)) {
        parser.push(piece, &mut |item| again.push(item));
    }
    let summary_again = parser.finish(&mut |item| again.push(item));
    // Compared by their debug output as well, because NaN durations are not equal to themselves.
    assert_eq!(format!("{items:?}"), format!("{again:?}"));
    assert_eq!(items, again);
    assert_eq!(summary, summary_again);

    let mut builder = CatalogueBuilder::new();
    let account = builder.account("fuzz", 0, RequestHeaders::default());
    let mut n_entries = 0;
    for item in items {
        let PlaylistItem::Entry(entry) = item else { continue };
        n_entries += 1;
        assert!(!entry.name.is_empty() && entry.name.chars().count() <= LIMITS.name_chars_max);
        assert!(entry.url.expose().len() <= LIMITS.url_bytes_max);
        assert!(!format!("{}{}", entry.name, entry.url.expose()).contains(char::is_control));
        assert!(entry.attributes.len() <= LIMITS.attributes_max);
        builder.entry(account, entry);
    }
    assert_eq!(n_entries, summary.entries);

    let catalogue = builder.build();
    assert_eq!(catalogue.channels.iter().map(|it| it.streams.len() as u64).sum::<u64>(), n_entries);
    let mut out = String::new();
    write::write_header(&mut out, None, None);
    for channel in &catalogue.channels {
        let group = catalogue.groups.iter().find(|it| Some(it.id) == channel.group);
        let line = OutputEntry {
            name: &channel.name,
            url: "http://gateway.example/1",
            tvg_id: channel.tvg_id.as_deref().unwrap_or_default(),
            tvg_logo: channel.logo.as_deref().unwrap_or_default(),
            tvg_chno: channel.number,
            station: channel.guide_station.as_deref().unwrap_or_default(),
            group: group.map_or("", |it| it.name.as_str()),
            ..OutputEntry::default()
        };
        write::write_entry(&mut out, &line);
    }
    let (items, summary) = m3u::parse(out.as_bytes(), PlaylistLimits::default());
    assert_eq!(summary.entries, catalogue.channels.len() as u64);
    let urls = items
        .iter()
        .filter_map(|it| if let PlaylistItem::Entry(it) = it { Some(it.url.expose()) } else { None });
    urls.for_each(|url| assert_eq!(url, "http://gateway.example/1"));
});
