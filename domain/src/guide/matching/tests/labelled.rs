//! Names whose right guide channel is known: how many links are right, and how many channels of a guide are linked.

use std::collections::BTreeMap;

use super::*;

/// The least share of links that are right, and of channels in the guide that are linked.
const PRECISION_MIN: f64 = 0.998;
const RECALL_MIN: f64 = 0.95;

const BRANDS: [&str; 24] = [
    "Sky",
    "BBC",
    "ITV",
    "RTL",
    "Canal+",
    "Nova",
    "TVN",
    "Rai",
    "Antena",
    "Kanal",
    "Discovery Channel",
    "History",
    "Disney Channel",
    "MTV",
    "Eurosport",
    "beIN Sports",
    "ESPN",
    "Fox",
    "CNN",
    "HBO",
    "Comedy Central",
    "Star",
    "Televisión",
    "USA Network",
];
const PARTS: [&str; 12] =
    ["", "One", "Two", "4", "Sport", "Sport 2", "News", "Cinema", "Kids", "Extra", "Première", "Wild"];
const COUNTRIES: [(&str, &str); 14] = [
    ("uk", "United Kingdom"),
    ("us", "USA"),
    ("de", "Germany"),
    ("fr", "France"),
    ("it", "Italy"),
    ("es", "Spain"),
    ("nl", "Netherlands"),
    ("be", "Belgium"),
    ("no", "Norway"),
    ("pl", "Poland"),
    ("ro", "Romania"),
    ("at", "Austria"),
    ("ch", "Switzerland"),
    ("ca", "Canada"),
];
const QUALITIES: [&str; 9] = ["", "", "HD", "FHD", "4K", "ᴴᴰ", "(1080p60)", "H265", "SD"];

/// Ways of writing the name `{n}` of a channel with the code `{c}` or the name `{w}` of its country, and its group; `{b}` is a
/// group of this country, whose name says nothing.
const FORMS: [(&str, &str); 26] = [
    ("{c}: {n}", "Sports"),
    ("|{c}| {n}", "Sports"),
    ("[{c}] {n}", "{b}"),
    ("{c} - {n}", ""),
    ("{c} | {n}", "{b}"),
    ("{c}▎{n}", "Sports"),
    ("{n} ({c})", "{b}"),
    ("{n} | {c}", ""),
    ("{n} ★ {c}", "Sports"),
    ("★ {n}", "{c} | Sports"),
    ("{n}", "{w}"),
    ("{n}", "{c}: VIP"),
    ("{n}", "|{c}| Movies"),
    ("{c} {n}", "Sports"),
    ("{c} {n}", "{b}"),
    ("{w} {n}", ""),
    ("{w}: {n}", "Sports"),
    ("#{c} {n}", "Sports"),
    ("#{c}: {n}", "{b}"),
    ("{c} (P) {n}", "Sports"),
    ("{c} VIP {n}", ""),
    ("PRIME: {c}: {n}", "Sports"),
    ("PLUTO | {c} | {n}", "{b}"),
    ("{c}: {n} [VIP]", ""),
    // Only the group says something.
    ("{n}", "{b}"),
    ("(P) {n}", "{b}"),
];

/// A channel of a list with its place in the guide.
struct Labelled {
    form: &'static str,
    name: String,
    group: String,
    place: Option<usize>,
}

/// The guide: every part of each brand in each country, except every eleventh.
fn listed() -> Vec<(String, String, usize)> {
    let mut rows = Vec::new();
    for (country, (code, _)) in COUNTRIES.iter().enumerate() {
        for name in BRANDS.iter().flat_map(|brand| PARTS.iter().map(move |part| format!("{brand} {part}"))) {
            let name = name.trim().to_owned();
            rows.push((format!("{}.{code}", name.replace(' ', "")), name, country));
        }
    }
    let is_listed = |it: &(usize, (String, String, usize))| !it.0.is_multiple_of(11);
    rows.into_iter().enumerate().filter(is_listed).map(|it| it.1).collect()
}

/// Each station of each country once, in one of the forms.
fn offered(guide: &[(String, String, usize)]) -> Vec<Labelled> {
    let mut channels = Vec::new();
    let mut n = 0_usize;
    for (country, (code, word)) in COUNTRIES.iter().enumerate() {
        let code = code.to_uppercase();
        let bouquet = format!("Bouquet {}", 70 + country);
        for station in BRANDS.iter().flat_map(|brand| PARTS.iter().map(move |part| format!("{brand} {part}")))
        {
            let station = station.trim();
            let place = guide.iter().position(|it| it.1 == station && it.2 == country);
            // Numbers without a common factor, so that all combinations occur.
            n += 1;
            let (form, group) = FORMS[n % FORMS.len()];
            let written = match n % 5 {
                0 => station.to_uppercase(),
                1 => station.replace("One", "1").replace("Two", "2"),
                _ => station.to_owned(),
            };
            let name = format!("{written} {}", QUALITIES[n % QUALITIES.len()]);
            let fill = |text: &str| {
                text.replace("{w}", &word.to_uppercase()).replace("{c}", &code).replace("{b}", &bouquet)
            };
            let name = fill(form).replace("{n}", name.trim());
            channels.push(Labelled { form, name, group: fill(group), place });
        }
    }
    channels
}

#[test]
fn names_of_a_labelled_list_are_linked_rightly_and_almost_all_of_them() {
    let listed = listed();
    let rows: Vec<(&str, &str)> = listed.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let guide = guide(&rows);
    let channels = offered(&listed);
    let subjects: Vec<Subject<'_>> = channels
        .iter()
        .map(|it| Subject { group: Some(it.group.as_str()).filter(|it| !it.is_empty()), ..named(&it.name) })
        .collect();
    let mut results: Vec<MatchResult> = subjects.iter().map(|it| guide.find(it, false)).collect();
    guide.compare_groups(&subjects, [], &mut results);
    let (mut right, mut wrong, mut missed) = (0, Vec::new(), BTreeMap::<&str, Vec<&str>>::new());
    for (channel, result) in channels.iter().zip(&results) {
        match result.decision {
            Decision::Link(id) if Some(id.0 as usize - 1) == channel.place => right += 1,
            Decision::Link(id) => wrong.push((&channel.name, &channel.group, rows[id.0 as usize - 1].0)),
            _ if channel.place.is_some() => missed.entry(channel.form).or_default().push(&channel.name),
            _ => {}
        }
    }
    let n_listed = channels.iter().filter(|it| it.place.is_some()).count();
    let precision = f64::from(right) / (f64::from(right) + wrong.len() as f64);
    let recall = f64::from(right) / n_listed as f64;
    assert!(
        precision >= PRECISION_MIN && recall >= RECALL_MIN,
        "precision {precision:.4}, recall {recall:.4}\nwrong: {wrong:?}\nmissed: {missed:#?}"
    );
}
