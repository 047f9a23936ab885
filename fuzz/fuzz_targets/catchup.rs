//! Starts and archives: nothing panics, a start is near the present, and an address keeps to its maximum and its scheme.
#![no_main]

use domain::catchup::{Archive, ArchiveTimes, ProviderZone, parse_start};
use domain::source_url::SourceUrl;
use libfuzzer_sys::fuzz_target;

/// The address, the attributes of an entry, the start, two times, and the id of a programme in the archive.
type Input = (String, Vec<(String, String)>, String, i64, i64, Option<String>);

fuzz_target!(|input: Input| {
    let (start, attributes, live, duration, now, catchup_id) = input;
    let parsed = parse_start(&start);
    let start = parsed.unwrap_or(now);
    assert!(parsed.is_err() || (600_000_000..7_300_000_000).contains(&start), "{start}");
    let Some(archive) = Archive::from_attributes(&attributes) else { return };
    assert!((1..=365).contains(&archive.days));
    let times = ArchiveTimes { start, duration, now };
    let zone = ProviderZone::named("Europe/Paris").unwrap_or(ProviderZone::utc());
    let live = SourceUrl::new(live);
    let source = archive.source.as_ref();
    if let Some(address) = archive.address_of(catchup_id.as_deref(), &live, source, times, &zone) {
        assert!(address.is_http() && address.expose().len() <= 8 << 10);
    }
});
