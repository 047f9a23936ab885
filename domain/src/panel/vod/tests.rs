//! What panels really send: wrong types, three shapes of episodes, and text before the JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::panel::elements::{Element, ListEnd, NotAList};

/// Values of every type, as panels send them in any field.
fn values_of_any_type() -> Vec<Value> {
    vec![
        json!(7),
        json!(7.5),
        json!(-1),
        json!("7"),
        json!("text"),
        json!(""),
        json!("0"),
        json!("null"),
        json!(null),
        json!(true),
        json!([]),
        json!(["7"]),
        json!({}),
        json!({ "a": { "b": [1] } }),
    ]
}

fn movie() -> Value {
    json!({
        "num": 1, "name": "EN - Heat (1995)", "title": "Heat", "stream_type": "movie", "stream_id": 2001,
        "stream_icon": "http://l.example/h.jpg", "rating": "8.3", "rating_5based": 4.2, "added": "1700000000",
        "is_adult": "0", "category_id": "21", "category_ids": [21, 22], "container_extension": "mkv",
        "custom_sid": null, "direct_source": "", "tmdb": "949", "imdb_id": "tt0113277", "year": "1995",
        "plot": "Two\nmen.", "cast": "A, B", "director": "M", "genre": "Crime", "release_date": "1995-12-15",
        "youtube_trailer": "abc", "episode_run_time": "170", "backdrop_path": ["http://l.example/b.jpg"],
    })
}

fn series() -> Value {
    json!({
        "num": 1, "name": "Gamma", "series_id": 3001, "cover": "http://l.example/s.jpg", "plot": "P", "cast": "C",
        "director": "D", "genre": "Drama", "releaseDate": "2019-01-01", "last_modified": "1700000000",
        "rating": "8", "rating_5based": 4, "backdrop_path": [], "youtube_trailer": "", "episode_run_time": "45",
        "category_id": "31", "category_ids": [31],
    })
}

fn read<T>(reader: fn(&[u8]) -> Result<T, ElementProblem>, value: &Value) -> Result<T, ElementProblem> {
    reader(value.to_string().as_bytes())
}

/// Holds T-pl.3.
#[test]
fn no_type_of_any_field_makes_a_title_unreadable_except_its_id() {
    for (title, id, other_id) in [(movie(), "stream_id", "id"), (series(), "series_id", "id")] {
        let is_read = |it: &Value| {
            if id == "stream_id" { read(read_movie, it).is_ok() } else { read(read_series, it).is_ok() }
        };
        let fields: Vec<String> = title.as_object().unwrap().keys().cloned().collect();
        for field in fields {
            for value in values_of_any_type() {
                let mut element = title.clone();
                element[&field] = value.clone();
                let is_id =
                    field != id || [json!(7), json!("7"), json!("text"), json!(["7"])].contains(&value);
                assert_eq!(is_read(&element), is_id, "{field}: {value}");
            }
            let mut element = title.clone();
            element.as_object_mut().unwrap().remove(&field);
            assert_eq!(is_read(&element), field != id, "{field}");
        }
        assert!(is_read(&json!({ other_id: "7" })), "other panels call it id");
    }
    for (json, problem) in [
        (json!([movie()]), ElementProblem::NotAnObject),
        (json!("Heat"), ElementProblem::NotAnObject),
        (json!(null), ElementProblem::NotAnObject),
        (json!({ "stream_id": "../../etc" }), ElementProblem::NoId),
        (json!({ "stream_id": "7".repeat(65) }), ElementProblem::NoId),
    ] {
        assert_eq!(read(read_movie, &json), Err(problem), "{json}");
    }
}

#[test]
fn a_film_is_read_with_its_usual_fields() {
    let read_one = read(read_movie, &movie()).unwrap();
    assert_eq!((read_one.id.as_str(), read_one.name.as_str()), ("2001", "EN - Heat (1995)"));
    assert_eq!(
        (read_one.categories, read_one.extension),
        (vec!["21".to_owned(), "22".to_owned()], Some("mkv".to_owned()))
    );
    assert_eq!(read_one.added_at, Some(1_700_000_000_000));
    let expected = PanelFacts {
        plot: Some("Two men.".to_owned()),
        genre: Some("Crime".to_owned()),
        cast: Some("A, B".to_owned()),
        director: Some("M".to_owned()),
        release_date: Some("1995-12-15".to_owned()),
        year: Some(1995),
        rating: Some("8.3".to_owned()),
        duration_secs: Some(170 * 60),
        picture: Some("http://l.example/h.jpg".to_owned()),
        backdrops: vec!["http://l.example/b.jpg".to_owned()],
        trailer: Some("abc".to_owned()),
        tmdb_id: Some("949".to_owned()),
        imdb_id: Some("tt0113277".to_owned()),
        ..PanelFacts::default()
    };
    assert_eq!(read_one.facts, expected);
    let read_one = read(read_series, &series()).unwrap();
    assert_eq!((read_one.id.as_str(), read_one.modified_at), ("3001", Some(1_700_000_000_000)));
    assert_eq!((read_one.facts.year, read_one.facts.duration_secs), (Some(2019), Some(45 * 60)));
}

#[test]
fn values_are_repaired_or_left_out_one_by_one() {
    let facts = |field: &str, value: Value| {
        let mut element = movie();
        for other in ["year", "release_date", "tmdb", "imdb_id", "rating", "episode_run_time"] {
            element.as_object_mut().unwrap().remove(other);
        }
        element[field] = value;
        read(read_movie, &element).unwrap()
    };
    for id in
        [json!("0"), json!(0), json!(""), json!("null"), json!("None"), json!(null), json!([]), json!({})]
    {
        assert_eq!(facts("tmdb_id", id.clone()).facts.tmdb_id, None, "{id}");
        assert_eq!(facts("imdb_id", id.clone()).facts.imdb_id, None, "{id}");
    }
    for (rating, expected) in [
        (json!(7.5), Some("7.5")),
        (json!("7,5"), Some("7.5")),
        (json!(8), Some("8")),
        (json!("7.123456789"), Some("7.123")),
        (json!("PG-13"), Some("PG-13")),
        (json!(0), None),
        (json!("0.0"), None),
        (json!(-1), None),
        (json!("a long text that rates nothing"), None),
    ] {
        assert_eq!(facts("rating", rating.clone()).facts.rating.as_deref(), expected, "{rating}");
    }
    for (year, expected) in [
        (json!(1995), Some(1995)),
        (json!("1995"), Some(1995)),
        (json!("1995–1999"), Some(1995)),
        (json!(0), None),
        (json!("95"), None),
        (json!(19_950), None),
    ] {
        assert_eq!(facts("year", year.clone()).facts.year, expected, "{year}");
    }
    for (field, value, expected) in [
        ("duration_secs", json!(20), Some(20)),
        ("duration_secs", json!("20"), Some(20)),
        ("duration", json!("01:45:30"), Some(6330)),
        ("duration", json!("45:30"), Some(2730)),
        ("runtime", json!("105 min"), Some(6300)),
        ("duration", json!("long"), None),
        ("duration_secs", json!(-5), None),
        ("duration_secs", json!(1e12), None),
    ] {
        assert_eq!(facts(field, value.clone()).facts.duration_secs, expected, "{field}: {value}");
    }
    for (value, expected) in [
        (json!("3"), vec!["3"]),
        (json!("3,4"), vec!["3", "4"]),
        (json!("[3,4]"), vec!["3", "4"]),
        (json!(["3", 4, null, {}]), vec!["3", "4"]),
        (json!({ "0": 3, "2": "4" }), vec!["3", "4"]),
        (json!(0), vec![]),
        (json!("0"), vec![]),
        (json!(null), vec![]),
    ] {
        let read_one = read(read_movie, &json!({ "stream_id": 7, "category_ids": value })).unwrap();
        assert_eq!(read_one.categories, expected, "{value}");
    }
    let icon = |value: &str| facts("stream_icon", json!(value)).facts.picture;
    assert_eq!(icon("//l.example/h.jpg").as_deref(), Some("http://l.example/h.jpg"));
    assert_eq!(icon("/h.jpg"), None);
    assert_eq!(icon("javascript:alert(1)"), None);
    assert_eq!(
        facts("backdrop_path", json!("http://l.example/b.jpg")).facts.backdrops,
        ["http://l.example/b.jpg"]
    );
    assert_eq!(facts("backdrop_path", json!("[\"http://l.example/b.jpg\"]")).facts.backdrops.len(), 1);
    assert_eq!(facts("cast", json!(["A", "B", null])).facts.cast.as_deref(), Some("A, B"));
    assert_eq!(facts("container_extension", json!(".MP4")).extension.as_deref(), Some("mp4"));
    assert_eq!(facts("container_extension", json!("mp4/../x")).extension, None);
}

fn split(text: &str, piece: usize) -> (Vec<String>, ListEnd) {
    let mut elements = Vec::new();
    let mut parser = VodListParser::new(64);
    for bytes in text.as_bytes().chunks(piece.max(1)) {
        parser.push(bytes, &mut |it| {
            elements.push(match it {
                Element::Value { json, .. } => String::from_utf8_lossy(json).into_owned(),
                Element::TooLong => "too long".to_owned(),
            });
        });
    }
    (elements, parser.finish())
}

#[test]
fn text_before_a_list_is_skipped_and_a_page_is_none() {
    let warning = "<br />\n<b>Warning</b>: Undefined index [x] in <b>/a.php</b> on line <b>12</b><br />\n";
    let long = "x".repeat(PREAMBLE_BYTES_MAX);
    for (text, elements, end) in [
        ("[{\"a\":1}]".to_owned(), vec!["{\"a\":1}"], ListEnd::Complete),
        (format!("{warning}[{{\"a\":1}}, 2]"), vec!["{\"a\":1}", "2"], ListEnd::Complete),
        ("Notice: {x} [8] \u{feff}[ {\"a\":1}]".to_owned(), vec!["{\"a\":1}"], ListEnd::Complete),
        ("ok {\"1\":{\"a\":1}}".to_owned(), vec!["{\"a\":1}"], ListEnd::Complete),
        ("[]".to_owned(), vec![], ListEnd::Complete),
        ("<html><script>a=[{\"a\":1}]</script>".to_owned(), vec![], ListEnd::NotAList(NotAList::WebPage)),
        (" <!DOCTYPE html>".to_owned(), vec![], ListEnd::NotAList(NotAList::WebPage)),
        ("Too many requests [1]".to_owned(), vec![], ListEnd::NotAList(NotAList::SomethingElse)),
        ("null".to_owned(), vec![], ListEnd::NotAList(NotAList::SomethingElse)),
        (" \n".to_owned(), vec![], ListEnd::NotAList(NotAList::Nothing)),
        (format!("{long}[{{\"a\":1}}]"), vec![], ListEnd::NotAList(NotAList::SomethingElse)),
        ("[{\"a\":1}".to_owned(), vec![], ListEnd::Truncated),
    ] {
        for piece in [1, 7, text.len()] {
            let (seen, seen_end) = split(&text, piece);
            assert_eq!(
                (seen.iter().map(String::as_str).collect::<Vec<_>>(), seen_end),
                (elements.clone(), end),
                "{text}"
            );
        }
    }
}

fn episode(id: u32, season: Value, number: Value) -> Value {
    json!({
        "id": id.to_string(), "episode_num": number, "title": format!("Gamma - S01E{id:02}"), "season": season,
        "container_extension": "mp4", "added": "1700000000", "custom_sid": "", "direct_source": "",
        "info": { "duration_secs": 20, "plot": "E", "movie_image": "http://l.example/e.jpg", "rating": 7 },
    })
}

fn numbers(answer: &Value) -> Vec<(String, u32, u32)> {
    let read = read_series_info(answer.to_string().as_bytes()).unwrap();
    assert_eq!(read.skipped, SkippedElements::default());
    read.episodes.into_iter().map(|it| (it.id, it.season, it.number)).collect()
}

#[test]
fn episodes_are_read_in_each_of_their_shapes() {
    let info = json!({ "name": "Gamma", "cover": "http://l.example/s.jpg", "last_modified": "1700000001" });
    let of = |episodes: Value| json!({ "seasons": [], "info": info, "episodes": episodes });
    let all = [("1", 0, 1), ("2", 1, 1), ("3", 1, 2)].map(|it| (it.0.to_owned(), it.1, it.2));
    let by_key = of(json!({
        "0": [episode(1, json!(0), json!(1))],
        "1": [episode(2, json!(1), json!("1")), episode(3, json!("1"), json!(2))],
    }));
    assert_eq!(numbers(&by_key), all);
    let lists = of(json!([
        [episode(1, json!(0), json!(1))],
        [episode(2, json!(1), json!(1)), episode(3, json!(1), json!(2))],
    ]));
    assert_eq!(numbers(&lists), all);
    let flat = of(json!([
        episode(1, json!(0), json!(1)),
        episode(2, json!(1), json!(1)),
        episode(3, json!(1), json!(2)),
    ]));
    assert_eq!(numbers(&flat), all);
    let objects = of(json!({
        "0": { "1": episode(1, json!(0), json!(1)) },
        "1": { "1": episode(2, json!(1), json!(1)), "2": episode(3, json!(1), json!(2)) },
    }));
    assert_eq!(numbers(&objects), all);
    for none in [json!([]), json!({}), json!(null), json!("")] {
        assert_eq!(numbers(&of(none)), []);
    }
    let read = read_series_info(by_key.to_string().as_bytes()).unwrap();
    assert_eq!((read.name.as_deref(), read.modified_at), (Some("Gamma"), Some(1_700_000_001_000)));
    let first = &read.episodes[0];
    assert_eq!((first.name.as_str(), first.extension.as_deref()), ("Gamma - S01E01", Some("mp4")));
    assert_eq!((first.facts.duration_secs, first.facts.plot.as_deref()), (Some(20), Some("E")));
    assert_eq!((first.facts.rating.as_deref(), first.facts.picture.is_some()), (Some("7"), true));
}

#[test]
fn a_missing_season_or_number_is_found_elsewhere() {
    let of = |episodes: Value| json!({ "info": {}, "episodes": episodes });
    let strip = |mut it: Value, fields: &[&str]| {
        fields.iter().for_each(|name| drop(it.as_object_mut().unwrap().remove(*name)));
        it
    };
    let one = |season| strip(episode(5, season, json!(null)), &[]);
    assert_eq!(
        numbers(&of(json!({ "4": [one(json!(2))] }))),
        [("5".to_owned(), 4, 5)],
        "the key, and the name"
    );
    assert_eq!(numbers(&of(json!([one(json!(2))]))), [("5".to_owned(), 2, 5)]);
    let bare = |id: &str| json!({ "id": id });
    let lists = of(json!([[bare("8")], [bare("9"), bare("10")]]));
    let expected = [("8", 0, 1), ("9", 1, 1), ("10", 1, 2)].map(|it| (it.0.to_owned(), it.1, it.2));
    assert_eq!(numbers(&lists), expected, "the position of the list");
    assert_eq!(numbers(&of(json!({ "Season 2": [bare("9")] }))), [("9".to_owned(), 2, 1)]);
}

#[test]
fn an_episode_that_cannot_be_used_is_counted_and_spoils_no_other() {
    let long = json!({ "id": 9, "title": "x".repeat(70_000) });
    let answer = json!({
        "info": [], "episodes": { "1": [episode(1, json!(1), json!(1)), "text", null, { "title": "no id" }, long, [[[1]]]] },
    });
    let read = read_series_info(answer.to_string().as_bytes()).unwrap();
    assert_eq!(read.episodes.len(), 1);
    assert_eq!(read.skipped.total(), 5, "{}", read.skipped);
    assert!(read.skipped.to_string().starts_with("5 left out: "), "{}", read.skipped);
    // One that is not even JSON.
    let broken = br#"{"info":{"name":"G"},"episodes":{"1":[{"id":1,"episode_num":1},{oops},{"id":2,"episode_num":2}]}}"#;
    let read = read_series_info(broken).unwrap();
    assert_eq!((read.episodes.len(), read.skipped.total()), (2, 1));
}

#[test]
fn an_answer_of_something_else_says_nothing_about_a_title() {
    for (text, error) in [
        ("", TitleAnswerError::NotAnAnswer(NotAList::Nothing)),
        ("<html>Blocked</html>", TitleAnswerError::NotAnAnswer(NotAList::WebPage)),
        ("Too many requests", TitleAnswerError::NotAnAnswer(NotAList::SomethingElse)),
        ("null", TitleAnswerError::NotAnAnswer(NotAList::SomethingElse)),
        ("{\"info\":{\"name\":\"x\"},\"episodes\":{\"1\":[{\"id\":1}", TitleAnswerError::Truncated),
        ("[]", TitleAnswerError::Unknown),
        ("{}", TitleAnswerError::Unknown),
        ("{\"info\":[]}", TitleAnswerError::Unknown),
        ("{\"user_info\":{\"auth\":0}}", TitleAnswerError::Refused),
    ] {
        assert_eq!(read_series_info(text.as_bytes()), Err(error), "{text}");
        assert_eq!(read_movie_info(text.as_bytes()), Err(error), "{text}");
    }
    let warned = "Warning: [x] in a.php\n{\"info\":{\"plot\":\"P\",\"duration\":\"00:20:00\"},\"movie_data\":{\"stream_id\":7,\"name\":\"N\",\"container_extension\":\"mkv\"}}";
    let read = read_movie_info(warned.as_bytes()).unwrap();
    assert_eq!((read.name.as_deref(), read.extension.as_deref()), (Some("N"), Some("mkv")));
    assert_eq!((read.facts.plot.as_deref(), read.facts.duration_secs), (Some("P"), Some(1200)));
    let deep =
        format!("{{\"info\":{{\"name\":\"N\"}},\"episodes\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(read_series_info(deep.as_bytes()).unwrap().episodes, []);
}

proptest! {
    /// Holds T-pl.2.
    #[test]
    fn any_answer_keeps_to_the_limits(
        text in r#"(Warning )?\{"info":(\{"name":"[a-zA-Z<\[ ]{0,9}"\}|\[\]|null|7),"episodes":[\[\]\{\}":a-z0-9, ]{0,80}\}"#,
        piece in 1_usize..9,
    ) {
        if let Ok(read) = read_series_info(text.as_bytes()) {
            for it in &read.episodes {
                prop_assert!(!it.id.is_empty() && !it.name.is_empty());
            }
        }
        let _ = read_movie_info(text.as_bytes());
        prop_assert_eq!(split(&text, piece), split(&text, text.len()));
    }
}
