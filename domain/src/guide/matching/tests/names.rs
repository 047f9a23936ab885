//! Names and keys, and their normal forms.

use super::*;

/// Checks the words, the country, the time shift and the quality of names.
#[test]
fn names_as_providers_write_them_have_one_normal_form() {
    use Quality::{High, Standard, Ultra};
    let rows: &[(&str, &str, &str, u8, Quality)] = &[
        // Quality.
        ("BBC One HD", "bbc 1", "", 0, High),
        ("BBC ONE FHD", "bbc 1", "", 0, High),
        ("BBC One ᴴᴰ", "bbc 1", "", 0, High),
        ("BBC One UHD 4K", "bbc 1", "", 0, Ultra),
        ("Sky Sports F1 ⁴ᴷ", "sky sports f 1", "", 0, Ultra),
        ("RTL (1080p)", "rtl", "", 0, High),
        ("RTL [H.265]", "rtl", "", 0, Standard),
        ("RTL H265", "rtl", "", 0, Standard),
        ("RTL HEVC 50fps", "rtl", "", 0, Standard),
        ("RTL (1080p60)", "rtl", "", 0, High),
        ("RTL 576i25", "rtl", "", 0, Standard),
        ("RTL 2160p50", "rtl", "", 0, Ultra),
        ("RTL Full HD", "rtl", "", 0, High),
        ("RTL HD+", "rtl", "", 0, High),
        ("ESPNHD", "espn", "", 0, High),
        ("HD", "hd", "", 0, Standard),
        // Countries before the name.
        ("UK: BBC One", "bbc 1", "uk", 0, Standard),
        ("UK | BBC One", "bbc 1", "uk", 0, Standard),
        ("|UK| BBC One", "bbc 1", "uk", 0, Standard),
        ("[UK] BBC One", "bbc 1", "uk", 0, Standard),
        ("(UK) BBC One", "bbc 1", "uk", 0, Standard),
        ("UK - BBC One", "bbc 1", "uk", 0, Standard),
        ("UK▎BBC One", "bbc 1", "uk", 0, Standard),
        ("UK ★ BBC One", "bbc 1", "uk", 0, Standard),
        ("UK BBC One", "bbc 1", "uk", 0, Standard),
        ("GB: BBC One", "bbc 1", "uk", 0, Standard),
        ("DE: RTL", "rtl", "de", 0, Standard),
        ("GERMANY: RTL", "rtl", "de", 0, Standard),
        ("Germany | RTL HD", "rtl", "de", 0, High),
        ("4K| DE: RTL", "rtl", "de", 0, Ultra),
        ("VIP | DE | RTL", "rtl", "de", 0, Standard),
        ("AR: MBC 1", "mbc 1", "", 0, Standard),
        ("EX-YU: Pink", "pink", "", 0, Standard),
        // Countries after the name.
        ("BBC One (UK)", "bbc 1", "uk", 0, Standard),
        ("CNN (US)", "cnn", "us", 0, Standard),
        ("Eurosport 1 PL", "eurosport 1", "pl", 0, Standard),
        ("RTL |DE|", "rtl", "de", 0, Standard),
        ("Discovery | Germany", "discovery", "de", 0, Standard),
        ("Discovery Deutschland", "discovery", "de", 0, Standard),
        ("RTL DE HD", "rtl", "de", 0, High),
        ("NAT GEO", "nat geo", "", 0, Standard),
        ("FOX IT", "fox it", "", 0, Standard),
        ("France 2", "france 2", "", 0, Standard),
        ("France 24", "france 24", "", 0, Standard),
        ("UK", "uk", "", 0, Standard),
        // Time shifts, and a plus that is none.
        ("ITV+1", "itv", "", 1, Standard),
        ("ITV2 +1 HD", "itv 2", "", 1, High),
        ("Channel 4 (+1)", "channel 4", "", 1, Standard),
        ("Film4 + 1", "film 4", "", 1, Standard),
        ("Пятница +2ч", "пятница ч", "", 2, Standard),
        ("RTL +24h", "rtl", "", 24, Standard),
        ("Canal+ Sport", "canal plus sport", "", 0, Standard),
        ("CANAL+", "canal plus", "", 0, Standard),
        ("Canal+ 1", "canal plus 1", "", 0, Standard),
        ("Disney+ HD", "disney plus", "", 0, High),
        // Numbers, signs and scripts.
        ("BBC1", "bbc 1", "", 0, Standard),
        ("Rai Due", "rai 2", "", 0, Standard),
        ("Sky Sports 01", "sky sports 1", "", 0, Standard),
        ("A&E", "a and e", "", 0, Standard),
        ("A and E", "a and e", "", 0, Standard),
        ("M.T.V. Live", "mtv live", "", 0, Standard),
        ("Nick Jr.", "nick jr", "", 0, Standard),
        ("Nick's Party", "nicks party", "", 0, Standard),
        ("SAT.1", "sat 1", "", 0, Standard),
        ("E! Entertainment", "e entertainment", "", 0, Standard),
        ("Télé-Québec", "tele quebec", "", 0, Standard),
        ("Россия 1 HD", "россия 1", "", 0, High),
        ("NHK総合", "nhk総合", "", 0, Standard),
        // Decorations of providers.
        ("★ RTL ★", "rtl", "", 0, Standard),
        ("RTL (Backup)", "rtl", "", 0, Standard),
        ("RTL RAW", "rtl", "", 0, Standard),
        ("WWE Raw", "wwe raw", "", 0, Standard),
        ("RTL [VIP] [Multi]", "rtl", "", 0, Standard),
        ("US: (P) RTL", "rtl", "us", 0, Standard),
        ("RTL (P)", "rtl", "", 0, Standard),
        ("Sling: CNN", "cnn", "", 0, Standard),
        ("PLUTO | US | CNN", "cnn", "us", 0, Standard),
        ("Prime Time", "prime time", "", 0, Standard),
        ("Sport (1)", "sport 1", "", 0, Standard),
        ("Sky Cinema (East)", "sky cinema east", "", 0, Standard),
    ];
    for (name, words, country, shift, quality) in rows {
        let it = NormalName::new(name, &NameRules::default());
        let found = (
            it.words.join(" "),
            it.country.map(|it| it.to_string()).unwrap_or_default(),
            it.shift,
            it.quality,
        );
        let expected = ((*words).to_owned(), (*country).to_owned(), *shift, *quality);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn headings_and_numbers_are_not_names() {
    for name in
        ["##### SPORT #####", "=== UK ===", "★★★ NEWS ★★★", "--- DE ---", "13.1", "", "  ", "|||", "24/7"]
    {
        assert!(!NormalName::new(name, &NameRules::default()).is_usable(), "{name}");
    }
    for name in ["ONE", "W", "E!", "## RTL", "3sat", "新聞"] {
        assert!(NormalName::new(name, &NameRules::default()).is_usable(), "{name}");
    }
}

#[test]
fn common_words_are_left_out_of_the_core_unless_too_little_is_left() {
    for (name, core) in [
        ("The Discovery Channel", "discovery"),
        ("CNN TV", "cnn"),
        ("Channel 4", "channel 4"),
        ("TV 2", "tv 2"),
        ("W Channel", "w channel"),
        ("The One", "the 1"),
    ] {
        assert_eq!(NormalName::new(name, &NameRules::default()).core().join(" "), core);
    }
}

#[test]
fn texts_of_the_settings_are_ignored_regardless_of_case() {
    let texts = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
    let rules =
        NameRules {
            prefixes: texts(&["Sling: "]), suffixes: texts(&[" - Premium"]), parts: texts(&["ΣSX"])
        };
    for (name, words) in [
        ("SLING: CNN", "cnn"),
        ("CNN - premium", "cnn"),
        ("Fox σsx News", "fox news"),
        ("Sling: ", "sling"),
        ("News Sling: ", "news sling"),
        // Another station could have what is left.
        ("Sling: X", "sling x"),
        ("ΣSX 1", "σsx 1"),
    ] {
        assert_eq!(NormalName::new(name, &rules).words.join(" "), words, "{name}");
    }
}

#[test]
fn keys_have_one_normal_form() {
    for (key, text, country, shift) in [
        ("BBCOne.uk", "bbc1", "uk", 0),
        ("bbc1.uk", "bbc1", "uk", 0),
        ("BBC One.uk", "bbc1", "uk", 0),
        ("BBC1.uk@HD", "bbc1", "uk", 0),
        ("BBC.One.HD.uk", "bbc1", "uk", 0),
        ("RTLZwei.de", "rtl2", "de", 0),
        ("CNN", "cnn", "", 0),
        ("ITV1+1.uk", "itv1", "uk", 1),
        ("Sky.Sports.Main.Event.HD.gb", "skysportsmainevent", "uk", 0),
        ("Sport12.uk", "sport12", "uk", 0),
        ("Sport.1.2.uk", "sport1.2", "uk", 0),
    ] {
        let it = NormalKey::parse(key).unwrap();
        let found = (it.text.as_str(), it.country.map(|it| it.to_string()).unwrap_or_default(), it.shift);
        assert_eq!(found, (text, country.to_owned(), shift), "{key}");
    }
    for key in ["", "0", "none", "N/A", "12345", "-", "7.de"] {
        assert_eq!(NormalKey::parse(key), None, "{key}");
    }
}

#[test]
fn the_station_is_a_part_of_the_keys_of_some_services() {
    for (key, bare, number) in [
        ("I20453.json.schedulesdirect.org", false, Some("20453")),
        ("I4.20453.zap2it.com", false, Some("20453")),
        ("20453.labs.zap2it.com", false, Some("20453")),
        ("20453", true, Some("20453")),
        ("20453", false, None),
        ("20453.example.com", false, None),
        ("cnn.us", true, None),
    ] {
        assert_eq!(station(key, bare), number, "{key}");
    }
}
