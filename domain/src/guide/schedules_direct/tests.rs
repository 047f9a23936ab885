//! Records of the service, and the programmes that they become.

use serde_json::json;

use super::*;
use crate::guide::programme::{CreditRole, ImageKind, Programme, ProgrammeImage, from_xml, to_xml};

fn airing(changes: serde_json::Value) -> Airing {
    let mut all = json!({
        "programID": "EP012345670089", "airDateTime": "2026-01-15T19:00:00Z", "duration": 1800, "md5": "abc",
    });
    all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn info(changes: serde_json::Value) -> ProgramInfo {
    let mut all = json!({ "programID": "EP012345670089", "titles": [{ "title120": "The Show" }] });
    all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn shown(airing_changes: serde_json::Value, info_changes: serde_json::Value) -> Programme {
    programme(&airing(airing_changes), &info(info_changes), &[]).unwrap()
}

#[test]
fn an_episode_becomes_a_programme_with_every_field() {
    let found = shown(
        json!({
            "new": true, "liveTapeDelay": "Live", "isPremiereOrFinale": "Season Finale",
            "audioProperties": ["stereo", "cc", "DD 5.1"], "videoProperties": ["hdtv"],
            "ratings": [{ "body": "USA Parental Rating", "code": "TVPG" }],
            "multipart": { "partNumber": 1, "totalParts": 2 },
        }),
        json!({
            "episodeTitle150": "The One", "originalAirDate": "2026-01-15", "genres": ["Comedy", "series"],
            "descriptions": {
                "description100": [{ "descriptionLanguage": "en", "description": "Short" }],
                "description1000": [{ "descriptionLanguage": "en", "description": "Long" }],
            },
            "entityType": "Episode", "metadata": [{ "TVmaze": { "season": 9 } }, { "Gracenote": { "season": 2, "episode": 5 } }],
            "cast": [
                { "role": "Actor", "name": "Ann", "characterName": "Zoe" },
                { "role": "Guest Star", "name": "Bob" },
                { "role": "Caterer", "name": "Eve" },
            ],
            "crew": [{ "role": "Director", "name": "Dan" }, { "role": "Executive Producer", "name": "Pam" }],
            "contentRating": [{ "body": "USA Parental Rating", "code": "TVPG", "country": "USA" }],
            "contentAdvisory": ["Violence"], "officialURL": "http://show.example/", "duration": 1320,
        }),
    );
    assert_eq!((found.start, found.stop - found.start), (1_768_503_600, 1_800));
    assert_eq!(
        (found.title(), found.sub_title(), found.description()),
        ("The Show", Some("The One"), Some("Long"))
    );
    assert_eq!(found.season_episode(), (Some(2), Some(5)));
    let numbers: Vec<_> = found.episode_numbers.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(numbers, ["1.4.0/2", "S02E05", "EP01234567.0089"]);
    assert!(found.is_new() && found.is_live() && found.is_finale() && !found.is_premiere());
    assert!(!found.is_previously_shown());
    let credits: Vec<_> =
        found.credits.iter().map(|it| (it.role, it.name.as_str(), it.character.as_deref())).collect();
    assert_eq!(
        credits,
        [
            (CreditRole::Director, "Dan", None),
            (CreditRole::Actor, "Ann", Some("Zoe")),
            (CreditRole::Actor, "Bob", None),
            (CreditRole::Producer, "Pam", None),
        ]
    );
    assert_eq!(found.categories().collect::<Vec<_>>(), ["Comedy", "series"]);
    let ratings: Vec<_> = found.ratings.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(ratings, ["TVPG", "Violence"]);
    assert_eq!(found.video.as_ref().unwrap().quality.as_deref(), Some("HDTV"));
    assert_eq!(found.audio.as_ref().unwrap().stereo.as_deref(), Some("dolby digital"));
    assert_eq!((found.subtitles.len(), found.length.unwrap().seconds()), (1, 1_320));
    let mut xml = String::new();
    to_xml(&found, &mut xml);
    assert_eq!(from_xml(found.start, found.stop, &xml).unwrap(), found);
}

#[test]
fn a_film_has_its_year_its_stars_and_its_premiere() {
    let found = shown(
        json!({ "premiere": true }),
        json!({
            "programID": "MV001234560000", "entityType": "Movie", "originalAirDate": "2001-01-01",
            "movie": { "year": 1999, "duration": 7200, "qualityRating": [{ "ratingsBody": "Stars", "rating": "3.5", "maxRating": 4 }] },
            "descriptions": { "description100": [{ "description": "Only short" }] },
        }),
    );
    assert_eq!((found.date.as_deref(), found.year()), (Some("1999"), Some(1999)));
    assert_eq!(found.star_ratings[0].value, "3.5/4");
    assert!(found.is_premiere() && !found.is_previously_shown());
    assert_eq!(found.description(), Some("Only short"));
    assert_eq!(found.categories().collect::<Vec<_>>(), ["Movie"]);
}

#[test]
fn a_repeated_episode_is_previously_shown_and_a_sports_event_names_its_teams() {
    let repeated = shown(json!({}), json!({ "entityType": "Episode", "originalAirDate": "2014-03-02" }));
    assert_eq!(repeated.previously_shown.unwrap().start.as_deref(), Some("20140302"));
    let event = shown(
        json!({}),
        json!({ "entityType": "Sports", "eventDetails": {
            "venue100": "Arena", "teams": [{ "name": "Home", "isHome": true }, { "name": "Away" }],
        }}),
    );
    assert_eq!((event.sub_title(), event.description()), (Some("Away at Home"), Some("Arena")));
}

#[test]
fn records_that_are_not_valid_become_no_programme() {
    let valid = info(json!({}));
    for changes in [
        json!({ "airDateTime": "soon" }),
        json!({ "duration": 0 }),
        json!({ "duration": -5 }),
        json!({ "duration": 10_000_000 }),
    ] {
        assert_eq!(programme(&airing(changes.clone()), &valid, &[]), None, "{changes}");
    }
    assert_eq!(programme(&airing(json!({})), &info(json!({ "titles": null })), &[]), None);
    assert_eq!(programme(&airing(json!({})), &info(json!({ "titles": [{ "title120": " " }] })), &[]), None);
    let odd = shown(
        json!({ "ratings": null, "audioProperties": null }),
        json!({ "programID": "é".repeat(7), "metadata": [{ "Gracenote": 7 }], "descriptions": null, "cast": [{}] }),
    );
    assert_eq!((odd.season_episode(), odd.credits.len()), ((None, None), 0));
}

#[test]
fn stations_have_names_numbers_and_the_wanted_logo() {
    let answer = json!({
        "map": [{ "stationID": "20454", "channel": "4.1" }, { "stationID": "2", "uhfVhf": 7 }],
        "stations": [
            {
                "stationID": "20454", "name": "News One", "callsign": "NEWS",
                "stationLogo": [
                    { "URL": "https://l.example/dark.png", "category": "dark" },
                    { "URL": "https://l.example/white.png", "category": "white" },
                ],
            },
            { "stationID": "2", "callsign": "TWO", "logo": { "URL": "https://l.example/2.png" } },
            { "stationID": "3", "logo": { "URL": "javascript:alert(1)" } },
            { "name": "no id" },
        ],
    });
    let found = stations(&answer, Some("white"));
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].names, ["News One", "NEWS", "4.1"]);
    assert_eq!(found[0].logo.as_deref(), Some("https://l.example/white.png"));
    assert_eq!(
        (&found[1].names[..], found[1].logo.as_deref()),
        (&["TWO".to_owned(), "7".to_owned()][..], Some("https://l.example/2.png"))
    );
    assert_eq!((found[2].names.len(), found[2].logo.as_deref()), (0, None));
    let first = stations(&answer, None);
    assert_eq!(first[0].logo.as_deref(), Some("https://l.example/dark.png"));
}

#[test]
fn lists_for_admins_are_read_leniently() {
    let status = ServiceStatus::from_answer(&json!({
        "account": { "expires": "2027-01-01T00:00:00Z", "messages": ["Pay"], "maxLineups": 8 },
        "systemStatus": [{ "status": "Offline" }],
    }));
    assert_eq!(
        (status.is_online, status.lineups_max, &status.messages[..]),
        (false, 8, &["Pay".to_owned()][..])
    );
    assert_eq!(status.expires_at, Some(1_798_761_600_000));
    assert!(ServiceStatus::from_answer(&json!(null)).is_online);
    let found =
        lineups(&json!({ "lineups": [{ "lineup": "USA-1", "name": "Cable", "isDeleted": true }, {}] }));
    assert_eq!((found.len(), found[0].is_deleted, found[0].name.as_str()), (1, true, "Cable"));
    let found = countries(&json!({
        "Europe": [{ "fullName": "Germany", "shortName": "DEU", "postalCodeExample": "10115" }],
        "Caribbean": [{ "fullName": "Aruba", "shortName": "ABW", "postalCodeExample": "AW", "onePostalCode": true }],
        "Odd": 7,
    }));
    let codes: Vec<_> = found.iter().map(|it| (it.code.as_str(), it.only_postal_code.as_deref())).collect();
    assert_eq!(codes, [("ABW", Some("AW")), ("DEU", None)]);
    let found = headends(
        &json!([{ "transport": "Cable", "location": "City", "lineups": [{ "lineup": "L", "name": "N" }] }, 7]),
    );
    assert_eq!(
        (found[0].id.as_str(), found[0].transport.as_str(), found[0].location.as_str()),
        ("L", "Cable", "City")
    );
    for odd in [json!(null), json!([]), json!("x"), json!({ "code": 7 })] {
        assert!(lineups(&odd).is_empty() && countries(&odd).is_empty() && headends(&odd).is_empty());
        assert!(stations(&odd, None).is_empty());
    }
}

#[test]
fn codes_are_faults_with_the_pause_that_they_need() {
    assert_eq!(ServiceFault::from_code(0), None);
    for (code, fault, pause) in [
        (3000, ServiceFault::Offline, Some(3_600)),
        (4003, ServiceFault::BadLogin, Some(900)),
        (4006, ServiceFault::TokenExpired, None),
        (4009, ServiceFault::TooManyLogins, Some(86_400)),
        (4100, ServiceFault::NoChangesLeft, None),
        (7100, ServiceFault::Queued, None),
        (12, ServiceFault::Other(12), None),
    ] {
        assert_eq!(ServiceFault::from_code(code), Some(fault));
        assert_eq!(fault.pause_seconds(), pause, "{fault:?}");
    }
}

#[test]
fn a_poster_and_a_wide_image_of_a_suitable_size_are_chosen() {
    let image = |uri: &str, width: i64, aspect: &str| Artwork {
        uri: uri.to_owned(),
        width: Some(width.to_string()),
        height: None,
        aspect: Some(aspect.to_owned()),
        category: None,
    };
    let all = [
        image("assets/big.jpg", 2_000, "2x3"),
        image("assets/small.jpg", 240, "2x3"),
        image("https://s3.example/wide.jpg", 480, "16x9"),
        image("assets/banner.jpg", 480, "4x1"),
    ];
    let found = best_images(&all, "https://sd.example/v1");
    let seen: Vec<_> = found.iter().map(|it: &ProgrammeImage| (it.url.as_str(), it.kind, it.size)).collect();
    assert_eq!(
        seen,
        [
            ("https://sd.example/v1/image/assets/small.jpg", Some(ImageKind::Poster), Some(2)),
            ("https://s3.example/wide.jpg", Some(ImageKind::Backdrop), Some(3)),
        ]
    );
    assert_eq!(poster_root("EP012345670089"), "EP01234567");
    assert_eq!(poster_root("MV001234560000"), "MV001234560000");
    assert_eq!(poster_root("é"), "é");
}

#[test]
fn days_are_named_in_utc() {
    assert_eq!(date_of(1_768_503_600), "2026-01-15");
}
