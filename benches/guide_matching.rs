//! How soon are 20,000 channels matched with 50,000 guide channels on one core, and how many links are right?
//!
//! The channels are generated from the guide channels as providers write names: with countries before or after the name, with
//! or without a separator, in the group only, or in the other channels of the group only, qualities, decorations, capitals, numbers as words, and without spaces. A part of them is in no guide, or
//! only in that of another country or with another time shift. Each channel knows its guide channel, so precision is the
//! share of links that are right, and recall the share of channels in a guide that are linked.
//!
//! `cargo bench --bench guide_matching -- [--channels 20000] [--guide 50000] [--wrong 20]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[expect(dead_code, reason = "this bench has no server")]
mod support;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use domain::guide::matching::{Decision, GuideEntry, MatchResult, MatchSettings, Matcher, Subject};
use domain::ids::{GuideChannelId, GuideSourceId};
use serde_json::json;

const BRANDS: [&str; 40] = [
    "Sky",
    "BBC",
    "ITV",
    "RTL",
    "ProSieben",
    "Canal+",
    "Nova",
    "TVN",
    "Polsat",
    "Rai",
    "Mediaset",
    "Antena",
    "Kanal",
    "Discovery Channel",
    "National Geographic",
    "History",
    "Cartoon Network",
    "Nickelodeon",
    "Disney Channel",
    "MTV",
    "Eurosport",
    "beIN Sports",
    "DAZN",
    "ESPN",
    "Fox",
    "CNN",
    "Viasat",
    "Cinemax",
    "HBO",
    "Comedy Central",
    "Animal Planet",
    "Travel Channel",
    "Food Network",
    "Paramount Network",
    "Sony",
    "Star",
    "Zee",
    "Colors",
    "Globo",
    "Televisión",
];
const PARTS: [&str; 25] = [
    "",
    "One",
    "Two",
    "Three",
    "4",
    "5",
    "Sport",
    "Sport 2",
    "News",
    "Cinema",
    "Action",
    "Comedy",
    "Drama",
    "Kids",
    "Junior",
    "Music",
    "Max",
    "Extra",
    "Gold",
    "Première",
    "Family",
    "Life",
    "Wild",
    "Docs",
    "Crime",
];
const COUNTRIES: [(&str, &str); 25] = [
    ("uk", "United Kingdom"),
    ("us", "USA"),
    ("de", "Germany"),
    ("fr", "France"),
    ("it", "Italy"),
    ("es", "Spain"),
    ("pt", "Portugal"),
    ("nl", "Netherlands"),
    ("be", "Belgium"),
    ("se", "Sweden"),
    ("no", "Norway"),
    ("dk", "Denmark"),
    ("fi", "Finland"),
    ("pl", "Poland"),
    ("cz", "Czechia"),
    ("hu", "Hungary"),
    ("ro", "Romania"),
    ("bg", "Bulgaria"),
    ("gr", "Greece"),
    ("tr", "Turkey"),
    ("rs", "Serbia"),
    ("hr", "Croatia"),
    ("at", "Austria"),
    ("ch", "Switzerland"),
    ("ca", "Canada"),
];
const SYLLABLES: [&str; 16] = [
    "ba", "re", "lo", "mi", "tu", "san", "ver", "del", "kor", "pas", "nia", "sol", "tek", "rum", "gal", "von",
];

/// A small generator with a fixed seed, so that every run has the same names.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// A local station, such as `Radio Versan`.
    fn station(&mut self) -> String {
        let mut word: String = (0..3).map(|_| self.pick(&SYLLABLES)).collect();
        word[..1].make_ascii_uppercase();
        format!("{} {word}", self.pick(&["Tele", "Canal", "Radio", "Kanal", "Local", "City"]))
    }
}

/// A guide channel: which station it is, where, and with which time shift.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Station {
    name: String,
    country: usize,
    shift: u8,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |name: &str, default: usize| {
        let at = arguments.iter().position(|it| it == name);
        at.and_then(|it| arguments.get(it + 1)?.parse().ok()).unwrap_or(default)
    };
    let (n_channels, n_guide) = (argument("--channels", 20_000), argument("--guide", 50_000));
    let dice = &mut Dice(7);

    let stations = stations(n_guide, dice);
    let guide: Vec<(String, Vec<String>)> =
        stations.iter().enumerate().map(|(n, it)| listed(it, n, dice)).collect();
    let entries = || {
        guide.iter().zip(1..).map(|((key, names), id)| GuideEntry {
            id: GuideChannelId(id),
            source: GuideSourceId(1),
            priority: 0,
            has_station_keys: false,
            key,
            names,
        })
    };
    let known: HashMap<&Station, usize> = stations.iter().zip(0..).collect();
    let channels: Vec<(String, Option<String>, Option<usize>)> = (0..n_channels)
        .map(|_| {
            let at = dice.below(stations.len());
            let mut station = stations[at].clone();
            // A fifth is in no guide: another part of the brand, another country, or another time shift.
            if dice.is(20) {
                match dice.below(3) {
                    0 => station.name.push_str(" Plus Ultra"),
                    1 => station.country = dice.below(COUNTRIES.len()),
                    _ => station.shift = 1 + dice.below(3) as u8,
                }
            }
            let place = known.get(&station).copied();
            let (name, group) = offered(&station, dice);
            (name, group, place)
        })
        .collect();

    let start = Instant::now();
    let matcher = Matcher::new(entries(), [].iter(), MatchSettings::default());
    let built = start.elapsed();
    let (mut right, mut wrong, mut ties) = (0, Vec::new(), 0);
    let start = Instant::now();
    let subjects: Vec<Subject<'_>> = channels
        .iter()
        .map(|(name, group, _)| Subject { name, group: group.as_deref(), ..Subject::default() })
        .collect();
    let mut results: Vec<MatchResult> = subjects.iter().map(|it| matcher.find(it, false)).collect();
    matcher.compare_groups(&subjects, [], &mut results);
    let matched = start.elapsed();
    for ((name, group, place), result) in channels.iter().zip(&results) {
        match result.decision {
            Decision::Link(id) if *place == Some(id.0 as usize - 1) => right += 1,
            Decision::Link(id) => wrong.push((name, group, &guide[id.0 as usize - 1])),
            Decision::Tie => ties += 1,
            _ => {}
        }
    }
    for (name, group, (key, names)) in wrong.iter().take(argument("--wrong", 0)) {
        println!("wrong: {name} (group {group:?}) is linked with {names:?} {key}");
    }
    let in_guide = channels.iter().filter(|it| it.2.is_some()).count();
    let precision = f64::from(right) / (f64::from(right) + wrong.len() as f64);
    let recall = f64::from(right) / in_guide as f64;
    let seconds = (built + matched).as_secs_f64();
    println!(
        "{n_channels} channels, {n_guide} guide channels: {seconds:.2} s (index {:.2} s)",
        built.as_secs_f64()
    );
    println!("precision {:.4}, recall {:.4}; {} wrong links, {ties} ties", precision, recall, wrong.len());
    let results = json!({
        "channels": n_channels, "guide_channels": n_guide, "seconds": seconds, "index_seconds": built.as_secs_f64(),
        "precision": precision, "recall": recall, "wrong": wrong.len(), "ties": ties,
    });
    support::record("guide_matching", results);
}

/// Returns distinct stations: brands in all countries, some with a time shift, and local stations.
fn stations(n: usize, dice: &mut Dice) -> Vec<Station> {
    let mut stations = Vec::with_capacity(n);
    for country in 0..COUNTRIES.len() {
        for name in BRANDS.iter().flat_map(|brand| PARTS.iter().map(move |part| format!("{brand} {part}"))) {
            let station = Station { name: name.trim().to_owned(), country, shift: 0 };
            if dice.is(3) {
                stations.push(Station { shift: 1, ..station.clone() });
            }
            stations.push(station);
        }
    }
    let mut seen = HashSet::new();
    while stations.len() < n {
        let station = Station { name: dice.station(), country: dice.below(COUNTRIES.len()), shift: 0 };
        if seen.insert(station.clone()) {
            stations.push(station);
        }
    }
    stations.truncate(n);
    stations
}

/// Returns key and names of a station as a guide lists it. A tenth has keys without a country.
fn listed(station: &Station, n: usize, dice: &mut Dice) -> (String, Vec<String>) {
    let (code, _) = COUNTRIES[station.country];
    let shift = if station.shift > 0 { format!(" +{}", station.shift) } else { String::new() };
    let mut names = vec![format!("{}{shift}", station.name)];
    if dice.is(30) {
        names.push(format!("{} HD{shift}", station.name));
    }
    if dice.is(10) {
        names[0] = format!("{} ({})", names[0], code.to_uppercase());
        return (format!("{n}"), names);
    }
    (format!("{}{shift}.{code}", station.name.replace(' ', "")), names)
}

/// Returns name and group of a station as a provider offers it.
fn offered(station: &Station, dice: &mut Dice) -> (String, Option<String>) {
    let (code, country) = COUNTRIES[station.country];
    let code = code.to_uppercase();
    let mut name = station.name.clone();
    if dice.is(20) {
        for (word, digit) in [("One", "1"), ("Two", "2"), ("Three", "3"), ("Sport 2", "Sport Two")] {
            name = name.replace(word, digit);
        }
    }
    if dice.is(10) {
        name = name.replace("Sport ", "Sport");
    }
    if dice.is(20) {
        name = name.to_uppercase();
    }
    if dice.is(60) {
        name = format!(
            "{name} {}",
            dice.pick(&["HD", "FHD", "UHD", "4K", "HEVC", "ᴴᴰ", "H265", "[1080p]", "SD", "RAW"])
        );
    }
    if station.shift > 0 {
        name = format!("{name} +{}", station.shift);
    }
    let group = dice.pick(&["Sports", "Movies", "General", "VIP"]);
    // A group of one country whose name says nothing.
    let bouquet = format!("Bouquet {}", 70 + station.country);
    match dice.below(16) {
        0..=2 => (format!("{code}: {name}"), Some(group.to_owned())),
        3 => (format!("|{code}| {name}"), Some(group.to_owned())),
        4 => (format!("{code} - {name}"), None),
        5 => (format!("{name} ({code})"), None),
        6 => (format!("★ {name}"), Some(format!("{code} | {group}"))),
        7 => (name, Some(country.to_owned())),
        8 => (name, Some(format!("{code}: {group}"))),
        // Without a separator.
        9 | 10 => (format!("{code} {name}"), Some(group.to_owned())),
        11 => (format!("{} {name}", country.to_uppercase()), None),
        12 => (format!("#{code} {name} (1080p60)"), Some(group.to_owned())),
        13 => (format!("{code} (P) {name}"), Some(bouquet)),
        // Nothing but the other channels of the group states the country.
        14 => (name, Some(bouquet)),
        // Nothing states the country.
        _ => (name, Some(group.to_owned())),
    }
}
