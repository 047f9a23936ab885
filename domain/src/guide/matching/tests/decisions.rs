//! Channels and guides, and which are linked.

use super::*;

#[test]
fn names_of_one_channel_are_linked() {
    for (channel, other) in [
        ("UK: BBC One FHD", "BBC One"),
        ("BBC1 HD", "BBC One"),
        ("US| CNN ᴴᴰ", "CNN"),
        ("DE: RTL Zwei HEVC", "RTL 2"),
        ("SkySports F1", "Sky Sports F1 HD"),
        ("Discovery", "Discovery Channel"),
        ("The History Channel", "History"),
        ("National Geographic HD", "National Geographic Channel"),
        ("Canal+ Sport", "Canal Plus Sport"),
        ("Télé Québec", "Tele-Quebec"),
        ("HBO", "HBO East"),
        ("Nickelodean", "Nickelodeon"),
        ("ITV 2 +1", "ITV2+1"),
        ("News BBC", "BBC News"),
        ("Canale 5 TV", "Canale 5"),
        ("Nova Television", "TV Nova"),
        ("FR: TF1 4K", "TF1"),
    ] {
        assert_eq!(
            link(&guide(&[("a", other), ("b", "Other Channel")]), &named(channel)),
            Some(1),
            "{channel}"
        );
    }
}

#[test]
fn names_of_different_channels_are_not_linked() {
    for (channel, other) in [
        ("BBC One", "BBC Two"),
        ("BBC One", "BBC One London"),
        ("ITV 2", "ITV 2 +1"),
        ("ITV 2 +1", "ITV 2"),
        ("ITV 2 +1", "ITV 2 +24"),
        ("CNN", "CNN International"),
        ("HBO", "HBO West"),
        ("HBO", "HBO 2"),
        ("News", "News Middle East"),
        ("Nova Sport", "Nova Sports"),
        ("Cinema", "Cinemax"),
        ("UK: Gold", "US: Gold"),
        ("RTL (NL)", "RTL (DE)"),
        ("Sky Sport", "Sky Sport Austria"),
        ("Fox", "Fox News"),
        ("Sky 1 Sport 2", "Sky 2 Sport 1"),
        ("Eurosport 1", "Eurosport 2"),
        ("Canal+", "Canal"),
        ("ТНТ", "TNT"),
        ("##### BBC One #####", "BBC One"),
        ("4", "Channel 4"),
        ("Disney Junior", "Disney Channel"),
        ("One Sport", "Sport 1"),
        ("TV 2 Sport", "Sport 2"),
        ("Sport TV 1", "Sport 1"),
        ("Travel TV", "Travel Channel"),
        ("Sport 1 2", "Sport 12"),
        ("Sport 12 TV", "Sport 1 2"),
        ("France 24", "France 2 4"),
    ] {
        let found = guide(&[("a", other)]).find(&named(channel), true);
        assert!(!matches!(found.decision, Decision::Link(_)), "{channel}: {found:?}");
    }
}

#[test]
fn the_country_of_a_channel_comes_from_its_name_its_guide_id_or_its_group() {
    let guide = guide(&[("gold.uk", "Gold"), ("gold.de", "Gold"), ("gold.us", "Gold")]);
    assert_eq!(guide.find(&named("Gold"), false).decision, Decision::Tie);
    assert_eq!(link(&guide, &named("DE: Gold")), Some(2));
    assert_eq!(link(&guide, &Subject { tvg_id: Some("x.us"), ..named("Gold") }), Some(3));
    for group in ["UK", "UK | Entertainment", "UK Sports", "United Kingdom", "|UK| VIP"] {
        assert_eq!(link(&guide, &Subject { group: Some(group), ..named("Gold") }), Some(1), "{group}");
    }
    for group in ["UK / US", "UK | Germany", "News"] {
        assert_eq!(link(&guide, &Subject { group: Some(group), ..named("Gold") }), None, "{group}");
    }
    // The name says more than the group.
    assert_eq!(link(&guide, &Subject { group: Some("UK"), ..named("DE: Gold") }), Some(2));
    assert_eq!(link(&guide, &named("FR: Gold")), None);
}

#[test]
fn the_preferred_country_decides_where_nothing_else_does() {
    let settings = MatchSettings { preferred_country: Country::from_text("us"), ..MatchSettings::default() };
    let rows: &[Row<'_>] = &[(1, 0, "gold.uk", &["Gold"]), (1, 0, "gold.us", &["Gold"])];
    let guide = matcher(rows, &[], settings);
    assert_eq!(link(&guide, &named("Gold")), Some(2));
    assert_eq!(link(&guide, &named("UK: Gold")), Some(1));
}

#[test]
fn a_country_that_one_name_of_a_guide_channel_states_counts_for_all_of_its_names() {
    let rows: &[Row<'_>] = &[
        (1, 0, "11", &["Gold (UK)", "Gold HD"]),
        (1, 0, "gold.de", &["Gold"]),
        (1, 0, "13", &["Gold (FR)", "Gold HD (FR)"]),
        // Of several countries, each counts for its name only.
        (1, 0, "14", &["Silver (UK)", "Silver (DE)", "Silver Extra"]),
    ];
    let guide = matcher(rows, &[], MatchSettings::default());
    assert_eq!(guide.find(&named("Gold HD"), false).decision, Decision::Tie, "any of three countries");
    assert_eq!(link(&guide, &named("UK: Gold")), Some(1));
    assert_eq!(link(&guide, &named("DE: Gold HD")), Some(2));
    assert_eq!(link(&guide, &named("AT: Gold HD")), None);
    assert_eq!(link(&guide, &named("DE: Silver")), Some(4));
    assert_eq!(link(&guide, &named("FR: Silver")), None);
    assert_eq!(link(&guide, &named("FR: Silver Extra")), Some(4));
}

#[test]
fn a_plus_in_a_key_is_not_a_time_shift_if_it_belongs_to_the_name() {
    let guide = guide(&[
        ("Canal+4.fr", "Canal+ 4"),
        ("Canal+4+1.fr", "Canal+ 4 +1"),
        ("itv1.uk", "ITV 1"),
        ("itv1+1.uk", "ITV 1"),
    ]);
    assert_eq!(link(&guide, &named("FR: CANAL+ 4 HD")), Some(1));
    assert_eq!(link(&guide, &named("FR: Canal+ 4 +1")), Some(2));
    assert_eq!(link(&guide, &named("FR: Canal+ 4 +4")), None);
    assert_eq!(link(&guide, &named("UK: ITV 1")), Some(3));
    assert_eq!(link(&guide, &named("UK: ITV 1 +1")), Some(4));
}

#[test]
fn other_scripts_need_the_same_country() {
    let guide = guide(&[("1tv.ru", "Первый канал"), ("x.ru", "Мир")]);
    assert_eq!(link(&guide, &named("RU: Pervyi Kanal")), Some(1));
    assert_eq!(link(&guide, &named("Pervyi Kanal")), None);
    assert_eq!(link(&guide, &named("Первый канал HD")), Some(1));
}

#[test]
fn guide_ids_and_stations_count_before_names() {
    let guide = guide(&[
        ("BBCOne.uk", "BBC One"),
        ("I20453.json.schedulesdirect.org", "KABC"),
        ("itv1plus.uk", "ITV 1 +1"),
    ]);
    let id = |tvg_id, name| Subject { tvg_id: Some(tvg_id), ..named(name) };
    assert_eq!(link(&guide, &id("bbcone.UK", "Something else")), Some(1), "regardless of case");
    assert_eq!(link(&guide, &id("bbc1.uk@HD", "Something else")), Some(1), "in another spelling");
    assert_eq!(link(&guide, &id("bbc1.de", "Something else")), None);
    assert_eq!(link(&guide, &id("bbc1.uk", "Something else +1")), None);
    assert_eq!(link(&guide, &id("none", "BBC One")), Some(1));
    let station = Subject { station: Some("20453"), ..named("ABC") };
    assert_eq!(guide.find(&station, false).candidates[0].reasons, [Reason::SameStation]);
}

/// The beginning of the name is a country only if the guide has the rest of it there.
#[test]
fn a_country_before_a_name_without_a_separator_is_confirmed_by_the_guide() {
    let rows = [
        ("wave.us", "Wave"),
        ("amber.us", "Amber Movies"),
        ("one.uk", "Crown One"),
        ("erste.de", "Erstes Programm"),
        ("polska.pl", "Polska 1"),
        ("une.fr", "Une"),
        ("uno.it", "Rete Uno"),
        ("sport.us", "Sportline"),
        ("usa.us", "USA Network"),
        ("net.us", "Network"),
        ("limits.no", "Limits"),
        ("f24.fr", "France 24"),
        ("rtl.de", "RTL"),
        ("rtl.nl", "RTL"),
    ];
    let guide = guide(&rows);
    for (name, key) in [
        ("USA Wave", Some("wave.us")),
        ("US Wave HD", Some("wave.us")),
        ("US WAVE", Some("wave.us")),
        ("IT RETE UNO HD", Some("uno.it")),
        ("USA AMBER MOVIES", Some("amber.us")),
        ("USA Amber Movies UHD", Some("amber.us")),
        ("UK Crown One HD", Some("one.uk")),
        ("DE Erstes Programm HD", Some("erste.de")),
        ("GERMANY Erstes Programm", Some("erste.de")),
        ("UNITED KINGDOM Crown One", Some("one.uk")),
        ("PL Polska 1 HD", Some("polska.pl")),
        ("FR Une FHD", Some("une.fr")),
        ("IT Rete Uno HD", Some("uno.it")),
        ("US (P) Sportline", Some("sport.us")),
        ("#US Sportline", Some("sport.us")),
        ("US VIP Sportline", Some("sport.us")),
        ("Sportline (1080p60)", Some("sport.us")),
        ("DE RTL HD", Some("rtl.de")),
        ("NL RTL HD", Some("rtl.nl")),
        ("USA Network", Some("usa.us")),
        ("FRANCE 24", Some("f24.fr")),
        ("Germany Erstes Programm", Some("erste.de")),
        ("Deutschland Erstes Programm", Some("erste.de")),
        ("United Kingdom Crown One", Some("one.uk")),
        ("France Une HD", Some("une.fr")),
        ("Italia Rete Uno", Some("uno.it")),
        ("Wave US", Some("wave.us")),
        ("France 24", Some("f24.fr")),
        // The guide does not confirm these.
        ("France Deux", None),
        ("Spain Wave", None),
        ("WAVE IN", None),
        ("AT RTL HD", None),
        ("DE Wave", None),
        ("NO LIMITS", None),
        ("Us Wave", None),
        ("US Sportline 3", None),
        ("FR Une+1", None),
        ("Sportline 3", None),
        ("Une+1", None),
        ("Kino Une Stars", None),
    ] {
        let found = link(&guide, &named(name)).map(|it| rows[it as usize - 1].0);
        assert_eq!(found, key, "{name}");
    }
}

#[test]
fn a_guide_id_in_its_exact_case_counts_before_one_in_another_case() {
    let guide = guide(&[("rtl", "RTL Radio"), ("RTL", "RTL Television"), ("Vox", "Vox")]);
    for (id, expected) in [("rtl", 1), ("RTL", 2), ("Rtl", 1), ("VOX", 3)] {
        assert_eq!(link(&guide, &Subject { tvg_id: Some(id), ..named("x") }), Some(expected), "{id}");
    }
}

#[test]
fn equally_good_candidates_are_refused_and_listed() {
    let guide = guide(&[("abc1", "ABC"), ("abc2", "ABC"), ("abc3", "ABC News")]);
    let found = guide.find(&named("ABC HD"), false);
    assert_eq!(found.decision, Decision::Tie);
    let ids: Vec<u32> = found.candidates.iter().map(|it| it.channel.0).collect();
    assert_eq!(ids, [1, 2]);
    let found = guide.find(&named("ABC HD"), true);
    assert_eq!(found.candidates.len(), 3, "a list for people has the others too");
}

#[test]
fn the_quality_decides_between_names_that_are_otherwise_the_same() {
    let guide = guide(&[("a", "BBC One"), ("b", "BBC One HD"), ("c", "BBC One UHD")]);
    assert_eq!(link(&guide, &named("BBC One SD")), Some(1));
    assert_eq!(link(&guide, &named("BBC One FHD")), Some(2));
    assert_eq!(link(&guide, &named("BBC One 4K")), Some(3));
}

#[test]
fn the_source_of_the_highest_priority_wins() {
    let rows: &[Row<'_>] = &[
        (1, 0, "x", &["CNN"]),
        (2, 5, "y", &["CNN"]),
        (3, 5, "cnn.us", &["CNN"]),
        (4, 9, "z", &["CNN East"]),
    ];
    let all = matcher(rows, &[], MatchSettings::default());
    assert_eq!(link(&all, &Subject { tvg_id: Some("Z"), ..named("x") }), Some(4));
    // Two sources of one priority are two opinions, unless both name the country of the channel or have one key.
    assert_eq!(
        all.find(&named("CNN"), false).decision,
        Decision::Link(GuideChannelId(2)),
        "no country is stated"
    );
    assert_eq!(link(&all, &named("US: CNN")), Some(3));
    let twins: &[Row<'_>] =
        &[(2, 0, "cnn.us", &["CNN"]), (1, 0, "CNN.us", &["CNN"]), (3, 0, "cnn2.us", &["CNN"])];
    assert_eq!(link(&matcher(twins, &[], MatchSettings::default()), &named("US: CNN HD")), Some(2));
}

#[test]
fn a_learned_name_is_linked_again() {
    let taught = Subject { tvg_id: Some("wrong.uk"), ..named("UK: Dave") };
    let alias = GuideAlias {
        id: 1,
        name: AliasName::from_channel(&taught).unwrap(),
        channel_name: taught.name.to_owned(),
        tvg_id: Some("wrong.uk".to_owned()),
        source: GuideSourceId(1),
        key: "U&Dave.uk".to_owned(),
        learned_at: 0,
    };
    let rows: &[Row<'_>] =
        &[(1, 0, "U&Dave.uk", &["U&Dave"]), (1, 0, "wrong.uk", &["Wrong"]), (1, 0, "right.uk", &["R"])];
    let guide = matcher(rows, &[alias], MatchSettings::default());
    assert_eq!(link(&guide, &taught), Some(1));
    assert_eq!(link(&guide, &named("UK | DAVE FHD")), Some(1), "another form of the name");
    assert_eq!(
        link(&guide, &Subject { tvg_id: Some("right.uk"), ..taught }),
        Some(3),
        "its own guide id counts"
    );
    assert_eq!(link(&guide, &named("DE: Dave")), None, "another country");
    assert_eq!(link(&guide, &named("UK: Dave +1")), None, "another time shift");
}

#[test]
fn the_threshold_decides_what_is_linked() {
    let rows: &[Row<'_>] = &[(1, 0, "a", &["BBC News London"])];
    let at = |threshold| matcher(rows, &[], MatchSettings { threshold, ..MatchSettings::default() });
    let found = at(85).find(&named("BBC News"), false);
    assert_eq!(
        (found.decision, found.candidates[0].reasons[0]),
        (Decision::BelowThreshold, Reason::SomeWords)
    );
    assert_eq!(link(&at(50), &named("BBC News")), Some(1));
    assert_eq!(link(&at(100), &named("BBC News London HD")), Some(1));
}

#[test]
fn a_name_of_very_many_guide_channels_is_a_tie() {
    let keys: Vec<String> = (0..3_000).map(|it| format!("k{it}")).collect();
    let rows: Vec<(&str, &str)> = keys.iter().map(|it| (it.as_str(), "Local News")).collect();
    let found = guide(&rows).find(&named("Local News"), false);
    assert_eq!((found.decision, found.candidates.len()), (Decision::Tie, CANDIDATES_MAX));
}
