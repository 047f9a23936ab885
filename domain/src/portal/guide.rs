//! The guide of a portal: `{"js":{"data":{"CHANNEL":[programme, …], …}}}`, and the forms in which the programmes name their
//! channel themselves.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::guide::programme::{Credit, CreditRole, LocalText, Programme};
use crate::ids::AccountId;
use crate::panel::{Element, ElementParser, LooseValue};
use crate::playlist::m3u::text::decode;

/// Hours of the guide that are asked for, the longest first. Portals keep a week; some cannot send it at once.
pub const GUIDE_HOURS: [u32; 2] = [168, 24];
/// Maximum size of the programmes of one channel, in bytes. A week has some hundred kilobytes.
pub const GUIDE_CHANNEL_BYTES_MAX: usize = 4 << 20;

/// Longer programmes are mistakes, in seconds.
const DURATION_MAX: i64 = 7 * 86_400;
/// Maximum number of people with one role.
const PEOPLE_MAX: usize = 50;

/// A programme as portals call its fields.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RawProgramme {
    id: LooseValue,
    ch_id: LooseValue,
    name: LooseValue,
    descr: LooseValue,
    category: LooseValue,
    director: LooseValue,
    actor: LooseValue,
    start_timestamp: LooseValue,
    stop_timestamp: LooseValue,
    time: LooseValue,
    time_to: LooseValue,
    duration: LooseValue,
}

/// Returns the key of the guide channel of a channel without an id of its own for guides. No other account has it.
pub fn guide_key(account: AccountId, id: &str) -> String {
    format!("portal-{account}-{id}")
}

/// Reads an element of a guide: the programmes of a channel under its id, or one programme. Calls `out` for each with the id
/// of its channel. `zone` is that of times without one. Returns the number of programmes that were left out.
pub fn read_programmes(element: Element<'_>, zone: &TimeZone, out: &mut impl FnMut(&str, Programme)) -> u64 {
    let Element::Value { key, json } = element else { return 1 };
    let key = key.map(|it| decode(it).into_owned());
    let json = json.trim_ascii();
    if json.starts_with(b"{")
        && let Some((channel, programme)) = read_programme(json, zone)
    {
        return match channel.or(key) {
            Some(channel) => {
                out(&channel, programme);
                0
            }
            None => 1,
        };
    }
    if matches!(json, b"null" | b"false" | b"\"\"") {
        return 0;
    }
    let mut n_skipped = 0;
    let mut parser = ElementParser::new(ElementParser::ELEMENT_BYTES_MAX);
    let mut each = |element: Element<'_>| {
        let read = match element {
            Element::Value { json, .. } => read_programme(json, zone),
            Element::TooLong => None,
        };
        match read.and_then(|(own, it)| Some((key.clone().or(own)?, it))) {
            Some((channel, programme)) => out(&channel, programme),
            None => n_skipped += 1,
        }
    };
    parser.push(json, &mut each);
    n_skipped
}

/// Reads a programme, with the id of its channel if it names one.
fn read_programme(json: &[u8], zone: &TimeZone) -> Option<(Option<String>, Programme)> {
    let raw: RawProgramme = serde_json::from_str(&decode(json)).ok()?;
    let start = time(&raw.start_timestamp, &raw.time, zone)?;
    let title = raw.name.text()?;
    let by_duration = || raw.duration.whole().filter(|it| *it > 0).map(|it| start.saturating_add(it));
    let stop = time(&raw.stop_timestamp, &raw.time_to, zone).or_else(by_duration);
    // The guide repairs a programme that does not end.
    let stop = stop.filter(|it| (start..=start.saturating_add(DURATION_MAX)).contains(it)).unwrap_or(start);
    let text = |it: &LooseValue| it.text().map(LocalText::new).into_iter().collect();
    let people = |it: &LooseValue, role: CreditRole| -> Vec<Credit> {
        let names = it.text().unwrap_or_default();
        let names = names.split(',').map(str::trim).filter(|it| !it.is_empty()).take(PEOPLE_MAX);
        names.map(|it| Credit::new(role, it)).collect()
    };
    let mut credits = people(&raw.director, CreditRole::Director);
    credits.extend(people(&raw.actor, CreditRole::Actor));
    let programme = Programme {
        start,
        stop,
        // Shows that the archive of the portal has the programme under its time.
        catchup_id: raw.id.text(),
        titles: vec![LocalText::new(title)],
        descriptions: text(&raw.descr),
        categories: text(&raw.category),
        credits,
        ..Programme::default()
    };
    Some((raw.ch_id.text(), programme))
}

/// Returns a time in seconds since 1970: a number of them, or `2030-01-31 20:15:00` in a zone.
fn time(seconds: &LooseValue, clock: &LooseValue, zone: &TimeZone) -> Option<i64> {
    const SECONDS_MAX: i64 = 100_000_000_000;
    let is_time = |it: &i64| (1..SECONDS_MAX).contains(it);
    seconds.whole().filter(is_time).or_else(|| {
        let clock: DateTime = clock.text()?.parse().ok()?;
        Some(zone.to_timestamp(clock).ok()?.as_second()).filter(is_time)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::portal::PortalListParser;

    fn read(js: &Value) -> (Vec<(String, i64, i64, String)>, u64) {
        let (mut found, mut n_skipped) = (Vec::new(), 0);
        let mut parser = PortalListParser::new(GUIDE_CHANNEL_BYTES_MAX);
        let zone = TimeZone::get("Europe/Paris").unwrap();
        let mut out = |element: Element<'_>| {
            n_skipped += read_programmes(element, &zone, &mut |channel, it| {
                found.push((channel.to_owned(), it.start, it.stop, it.title().to_owned()));
            });
        };
        parser.push(json!({ "js": js }).to_string().as_bytes(), &mut out);
        parser.finish(&mut out).unwrap();
        (found, n_skipped)
    }

    fn programme(id: u32, name: &str) -> Value {
        json!({
            "id": id.to_string(), "ch_id": "7", "name": name, "descr": "About it", "category": "News",
            "director": "A B", "actor": "C D, E F", "duration": 1800, "time": "2026-11-30 08:00:00",
            "start_timestamp": "1796022000", "stop_timestamp": "1796023800", "mark_archive": 0,
        })
    }

    #[test]
    fn the_programmes_of_a_portal_are_found_in_every_form_of_its_guide() {
        let one = || ("7".to_owned(), 1_796_022_000, 1_796_023_800, "One".to_owned());
        for js in [
            json!({ "data": { "7": [programme(1, "One")] } }),
            json!({ "data": { "7": { "0": programme(1, "One") } } }),
            json!({ "data": [programme(1, "One")] }),
            json!({ "data": { "0": programme(1, "One") } }),
            json!([programme(1, "One")]),
            json!({ "data": { "7": [programme(1, "One")], "8": [], "9": null, "10": false } }),
        ] {
            assert_eq!(read(&js), (vec![one()], 0), "{js}");
        }
    }

    #[test]
    fn a_damaged_programme_costs_only_itself() {
        let changed = |name: &str, value: Value| {
            let mut it = programme(2, "Two");
            it[name] = value;
            it
        };
        for damaged in [
            changed("name", json!(null)),
            changed("name", json!("")),
            json!({ "name": "no time" }),
            json!("text"),
            json!([1]),
            json!(null),
            changed("descr", json!("x".repeat(70_000))),
        ] {
            let js = json!({ "data": { "7": [programme(1, "One"), damaged, programme(3, "Three")] } });
            let (found, n_skipped) = read(&js);
            assert_eq!((found.len(), n_skipped), (2, 1), "{damaged:.80}");
        }
        // Without a time in seconds, that of the clock counts; a programme that does not end is repaired later.
        let mut clock = changed("start_timestamp", json!(null));
        clock["stop_timestamp"] = json!("");
        let (found, _) = read(&json!({ "data": { "7": [clock] } }));
        assert_eq!((found[0].1, found[0].2), (1_796_022_000, 1_796_023_800));
        for stop in [json!(0), json!("1"), json!(1_996_022_000_i64)] {
            let mut endless = changed("stop_timestamp", stop);
            endless["duration"] = json!(0);
            let (found, _) = read(&json!({ "data": { "7": [endless] } }));
            assert_eq!(found[0].1, found[0].2);
        }
    }

    #[test]
    fn a_programme_keeps_its_texts_and_people() {
        let zone = TimeZone::UTC;
        let (channel, found) = read_programme(programme(5, "News").to_string().as_bytes(), &zone).unwrap();
        assert_eq!((channel.as_deref(), found.catchup_id.as_deref()), (Some("7"), Some("5")));
        assert_eq!((found.description(), found.categories().next()), (Some("About it"), Some("News")));
        let people: Vec<_> = found.credits.iter().map(|it| (it.role, it.name.as_str())).collect();
        let expected =
            [(CreditRole::Director, "A B"), (CreditRole::Actor, "C D"), (CreditRole::Actor, "E F")];
        assert_eq!(people, expected);
        assert_eq!(guide_key(AccountId(2), "7"), "portal-2-7");
    }
}
