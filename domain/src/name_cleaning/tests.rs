use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ACCOUNT: AccountId = AccountId(3);

fn all() -> NameCleaner {
    NameCleaner::new(NameCleaning { movies: true, series: true, channels: true, ..NameCleaning::default() })
}

/// Checks the names that are shown.
#[track_caller]
fn check(kind: NameKind, rows: &[(&str, &str)]) {
    let cleaner = all();
    for (name, expected) in rows {
        let shown = cleaner.clean(kind, ACCOUNT, name);
        assert_eq!(shown.as_deref().unwrap_or(name), *expected, "{name:?}");
        let again = cleaner.clean(kind, ACCOUNT, expected);
        assert_eq!(again, None, "{expected:?} changes once more");
    }
}

#[test]
fn films_lose_marks_of_language_quality_and_file_names_and_nothing_of_their_title() {
    check(
        NameKind::Movie,
        &[
            ("EN - Heat (1995) 4K", "Heat (1995)"),
            ("|DE| Das Boot [UHD]", "Das Boot"),
            ("┃FR┃ Le Fabuleux Destin d'Amélie Poulain (2001)", "Le Fabuleux Destin d'Amélie Poulain (2001)"),
            ("[FR] Intouchables - 2011", "Intouchables (2011)"),
            ("4K-DE - Heat (1995)", "Heat (1995)"),
            ("4K-NF - Roma [2018]", "Roma (2018)"),
            ("D+ - Soul (2020)", "Soul (2020)"),
            ("IT: La vita è bella", "La vita è bella"),
            ("IT: Chapter Two (2019)", "IT: Chapter Two (2019)"),
            ("ES| El laberinto del fauno HD", "El laberinto del fauno"),
            ("PL - Zimna wojna 1080p", "Zimna wojna"),
            ("RU | Вий (1967) FHD", "Вий (1967)"),
            ("AR - مدينة الرب (2002)", "مدينة الرب (2002)"),
            ("TR: Kış Uykusu [MULTI]", "Kış Uykusu"),
            ("JP - 千と千尋の神隠し 【4K】", "千と千尋の神隠し"),
            ("Heat 4K (1995)", "Heat (1995)"),
            ("Heat (1995) (MULTI) HEVC", "Heat (1995)"),
            ("Heat VOSTFR", "Heat"),
            ("Heat - VOSTFR", "Heat"),
            ("Heat MULTI", "Heat"),
            ("Heat ᵁᴴᴰ", "Heat"),
            ("🇩🇪 Das Boot", "Das Boot"),
            ("★ Heat ★", "Heat"),
            ("The.Matrix.1999.1080p.BluRay.x264-GROUP.mkv", "The Matrix (1999)"),
            ("Das.Leben.der.Anderen.2006.German.DL.1080p.BluRay", "Das Leben der Anderen (2006)"),
            ("Blade.Runner.2049.2017.2160p", "Blade Runner 2049 (2017)"),
            ("Wonder.Woman.1984", "Wonder Woman 1984"),
            ("Heat 1995 1080p x264-GROUP", "Heat 1995"),
            ("Heat (1995) [Multi-Sub] [Dual Audio]", "Heat (1995)"),
            ("Amélie (Français) (2001)", "Amélie (2001)"),
            ("HEAT (1995) MULTI", "HEAT (1995)"),
            ("[4K] [EN] Dune: Part Two (2024)", "Dune: Part Two (2024)"),
            ("Top Gun: Maverick (2022) IMAX", "Top Gun: Maverick (2022)"),
            ("NL SUBS - Ant-Man", "Ant-Man"),
            ("IT - (2017)", "IT (2017)"),
            ("｜DE｜ Das Boot［4K］", "Das Boot"),
            ("🎬 EN: Heat 🎬", "Heat"),
            ("I ♥ Huckabees", "I ♥ Huckabees"),
            ("WALL·E", "WALL·E"),
            ("The_Lives_of_Others_(2006)", "The Lives of Others (2006)"),
            ("Dune  Part\u{a0}Two  Dolby Vision", "Dune Part Two"),
            ("X-Men", "X-Men"),
            ("Spider-Man: No Way Home", "Spider-Man: No Way Home"),
            ("Mission: Impossible", "Mission: Impossible"),
            ("MIB: International", "MIB: International"),
            ("S.W.A.T.", "S.W.A.T."),
            ("Charlotte's Web", "Charlotte's Web"),
            ("Step Up 3D", "Step Up 3D"),
            ("The Sub", "The Sub"),
            ("Birdman (or The Unexpected Virtue)", "Birdman (or The Unexpected Virtue)"),
            ("Blade Runner 2049 (2017)", "Blade Runner 2049 (2017)"),
            ("#Alive", "#Alive"),
            ("M*A*S*H", "M*A*S*H"),
            ("UP - (2009)", "UP (2009)"),
            ("1917", "1917"),
            ("4K", "4K"),
            ("[DE]", "[DE]"),
            ("---", "---"),
        ],
    );
}

#[test]
fn series_keep_the_country_and_the_words_that_belong_to_them() {
    check(
        NameKind::Series,
        &[
            ("The Office (US)", "The Office (US)"),
            ("EN - The Office (US) [4K]", "The Office (US)"),
            ("House of Cards (UK)", "House of Cards (UK)"),
            ("NF - Dark (DE) 4K", "Dark"),
            ("DE: Tatort", "Tatort"),
            ("CSI: Miami", "CSI: Miami"),
            ("24: Legacy", "24: Legacy"),
            ("FBI: Most Wanted", "FBI: Most Wanted"),
            ("La casa de papel (ES) [HD]", "La casa de papel"),
            ("Money_Heist_2017", "Money Heist 2017"),
            ("Mr.Robot", "Mr.Robot"),
            ("M.A.S.H", "M.A.S.H"),
            ("#1 Happy Family USA", "#1 Happy Family USA"),
        ],
    );
}

#[test]
fn channels_lose_country_quality_and_decorations_and_keep_their_number_and_delay() {
    check(
        NameKind::Channel,
        &[
            ("UK: BBC One FHD", "BBC One"),
            ("UK | Sky Sports Main Event 4K", "Sky Sports Main Event"),
            ("UK ✪ ITV 1 HD", "ITV 1"),
            ("UK: Sky Sports F1 UHD/4K", "Sky Sports F1"),
            ("UK - BBC Three HD (Backup)", "BBC Three"),
            ("SE| TV4 FHD SE", "TV4"),
            ("CA EN: CBC Toronto", "CBC Toronto"),
            ("EPL: Arsenal vs Chelsea", "EPL: Arsenal vs Chelsea"),
            ("US: ABC (WABC) New York HD 60fps", "ABC (WABC) New York"),
            ("⚽ DE│Sky Bundesliga 1 [Multi-Audio]", "Sky Bundesliga 1"),
            ("US| ESPN 2 ᴴᴰ ᴿᴬᵂ", "ESPN 2"),
            ("|FR| TF1 HD", "TF1"),
            ("[DE] Das Erste HEVC", "Das Erste"),
            ("DE - ZDF (1080p50)", "ZDF"),
            ("GERMANY: RTL RAW", "RTL"),
            ("EX-YU: Arena Sport 1 50FPS", "Arena Sport 1"),
            ("🇬🇧 BBC Two", "BBC Two"),
            ("PL: TVN [VIP]", "TVN"),
            ("AR | الجزيرة HD", "الجزيرة"),
            ("##### UK SPORTS #####", "UK SPORTS"),
            ("=== News ===", "News"),
            ("BBC_One_HD", "BBC One"),
            ("ITV +1", "ITV +1"),
            ("Fox (US)", "Fox"),
            ("Canal+ Sport", "Canal+ Sport"),
            ("E! Entertainment", "E! Entertainment"),
            ("France 24", "France 24"),
            ("DAZN 1 - F1", "DAZN 1 - F1"),
            ("24/7 Friends", "24/7 Friends"),
            ("FR: 6ter", "6ter"),
            ("HD", "HD"),
        ],
    );
}

#[test]
fn rules_apply_to_kinds_and_accounts_and_to_nothing_by_default() {
    let other = AccountId(4);
    let clean = |settings: Value, kind: NameKind, account: AccountId| {
        let cleaner = NameCleaner::new(NameCleaning::from_setting(Some(&settings)));
        (cleaner.clean(kind, account, "EN - Heat").is_some(), cleaner.are_none())
    };
    for (settings, kind, account, expected) in [
        (json!({}), NameKind::Movie, ACCOUNT, (false, true)),
        (json!({ "clean_movies": true }), NameKind::Movie, ACCOUNT, (true, false)),
        (json!({ "clean_movies": true }), NameKind::Series, ACCOUNT, (false, false)),
        (json!({ "clean_accounts": [3] }), NameKind::Series, ACCOUNT, (true, false)),
        (json!({ "clean_accounts": ["3"] }), NameKind::Channel, ACCOUNT, (true, false)),
        (json!({ "clean_accounts": [3] }), NameKind::Movie, other, (false, false)),
        (json!({ "clean_movies": true, "keep_accounts": [4] }), NameKind::Movie, other, (false, false)),
        (json!({ "clean_movies": true, "keep_accounts": [4] }), NameKind::Movie, ACCOUNT, (true, false)),
        (json!({ "patterns": ["^EN - => "] }), NameKind::Movie, ACCOUNT, (true, false)),
        (json!({ "patterns": ["series: ^EN - => "] }), NameKind::Movie, ACCOUNT, (false, false)),
        (json!({ "patterns": ["series: ^EN - => "] }), NameKind::Series, ACCOUNT, (true, false)),
        // One that was valid once.
        (json!({ "patterns": ["("], "clean_movies": true }), NameKind::Movie, ACCOUNT, (true, false)),
    ] {
        assert_eq!(clean(settings.clone(), kind, account), expected, "{settings} {kind:?} {account}");
    }
}

#[test]
fn own_patterns_come_first_and_never_leave_an_empty_name() {
    let settings =
        json!({ "patterns": ["^VOD ✪  => ", "movie: (.+), The$ => The $1"], "clean_movies": true });
    let cleaner = NameCleaner::new(NameCleaning::from_setting(Some(&settings)));
    let clean = |name: &str| cleaner.clean(NameKind::Movie, ACCOUNT, name);
    assert_eq!(clean("VOD ✪ EN - Matrix, The").as_deref(), Some("The EN - Matrix"));
    assert_eq!(clean("VOD ✪ Heat [4K]").as_deref(), Some("Heat"));
    let everything = NameCleaner::new(NameCleaning::from_setting(Some(&json!({ "patterns": [".* => "] }))));
    assert_eq!(everything.clean(NameKind::Movie, ACCOUNT, "Heat"), None);
    let long = NameCleaner::new(NameCleaning::from_setting(Some(&json!({ "patterns": ["a => aaaaaaaa"] }))));
    let longest = long.clean(NameKind::Movie, ACCOUNT, &"a".repeat(200)).unwrap();
    assert_eq!(longest.len(), NAME_CHARS_MAX);
}

#[test]
fn each_invalid_pattern_is_named_with_its_reason() {
    for (value, part) in [
        (json!(["a"]), "pattern 1: write it as PATTERN => REPLACEMENT"),
        (json!(["a => b", "(?=a) => "]), "pattern 2: look-ahead and look-behind are not supported"),
        (json!([" => b"]), "pattern 1: the pattern is empty"),
        (
            json!(["(secret => b", "a => $7"]),
            "pattern 1: invalid pattern: unclosed group; pattern 2: the rep",
        ),
        (json!(["x".repeat(3_000)]), "too long"),
        (json!(vec!["a => b"; PATTERNS_MAX + 1]), "up to 50 texts"),
        (json!("a => b"), "up to 50 texts"),
        (json!([1]), "up to 50 texts"),
    ] {
        let error = NameCleaning::default().set("patterns", &value).unwrap_err();
        assert!(error.contains(part) && !error.contains("secret"), "{error}");
    }
    for (name, value) in [
        ("clean_movies", json!("yes")),
        ("clean_accounts", json!([0])),
        ("keep_accounts", json!(["a"])),
        ("other", json!(1)),
    ] {
        assert!(NameCleaning::default().set(name, &value).is_err(), "{name} {value}");
    }
    let settings = NameCleaning {
        series: true,
        keep_accounts: vec![ACCOUNT],
        patterns: vec!["a => b".to_owned()],
        ..NameCleaning::default()
    };
    assert_eq!(NameCleaning::from_setting(Some(&Value::from(settings.to_setting()))), settings);
}

/// Names of the parts that providers join.
fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "EN",
        "DE",
        "|",
        "[",
        "]",
        "(",
        ")",
        " - ",
        ": ",
        "4K",
        "HD",
        "MULTI",
        "ᴴᴰ",
        "🇩🇪",
        "1995",
        "(1995)",
        "Heat",
        "Das Boot",
        "Вий",
        "七人の侍",
        "_",
        ".",
        " ",
        "#",
        "##",
        "★",
        "┃",
        "x264-GRP",
        "3D",
        "é",
        "US",
        "IT",
        "-",
        "—",
        "【",
        "】",
        "web",
        "WEB",
        "\u{200B}",
        "NF",
        ".mkv",
        "Dolby Vision",
        "+1",
        "\t",
    ]);
    prop::collection::vec(part, 0..9).prop_map(|it| it.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cleaned_name_is_never_empty_and_stays_when_it_is_cleaned_again(name in name()) {
        let cleaner = all();
        for kind in NameKind::ALL {
            let Some(cleaned) = cleaner.clean(kind, ACCOUNT, &name) else { continue };
            prop_assert!(cleaned.contains(char::is_alphanumeric), "{name:?} {cleaned:?}");
            prop_assert_eq!(&cleaned, cleaned.trim());
            prop_assert_eq!(cleaner.clean(kind, ACCOUNT, &cleaned), None, "{:?} {:?}", name, cleaned);
        }
    }

    #[test]
    fn no_name_breaks_the_rules(name in "\\PC{0,40}") {
        let cleaner = all();
        for kind in NameKind::ALL {
            let cleaned = cleaner.clean(kind, ACCOUNT, &name);
            prop_assert!(cleaned.is_none_or(|it| it.contains(char::is_alphanumeric)));
        }
    }
}
