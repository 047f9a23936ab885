//! What the portal of the tests has beside live channels: a guide with an archive, films and series.
//!
//! The answers have the fields of Stalker Middleware; those of the module of series are as servers send them that behave
//! like portals.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::portal::PAGE;

/// Programmes of a page of a day.
const DAY_PAGE: usize = 10;

/// A programme of the guide, which the archive has once it is over.
#[derive(Debug, Clone)]
pub struct OfferedProgramme {
    pub id: u32,
    pub channel: u32,
    /// Seconds since 1970.
    pub start: i64,
    pub stop: i64,
    pub name: String,
}

/// A film or a series.
#[derive(Debug, Clone)]
pub struct OfferedTitle {
    pub id: u32,
    pub name: String,
    /// The id of its category.
    pub category: u32,
    pub form: TitleForm,
}

/// The form in which a portal has a title.
#[derive(Debug, Clone, PartialEq)]
pub enum TitleForm {
    Film,
    /// A film whose files have commands of their own.
    FilmWithFiles,
    /// A series with this number of episodes, which have numbers only.
    Numbered(u32),
    /// A series of seasons with these numbers of episodes.
    Seasons(Vec<u32>),
}

impl OfferedTitle {
    pub fn new(id: u32, name: impl Into<String>, form: TitleForm) -> OfferedTitle {
        OfferedTitle { id, name: name.into(), category: 3, form }
    }

    fn json(&self, is_of_series: bool) -> Value {
        let series: Vec<u32> = match self.form {
            TitleForm::Numbered(n) => (1..=n).collect(),
            _ => Vec::new(),
        };
        let is_series = is_of_series || matches!(self.form, TitleForm::Seasons(_));
        let cmd = if is_of_series { String::new() } else { format!("/media/{}.mpg", self.id) };
        json!({
            "id": self.id.to_string(), "name": self.name, "o_name": self.name, "description": "About it",
            "director": "M. M.", "actors": "A. P., R. N.", "year": "1995", "time": "170", "censored": "0",
            "category_id": self.category.to_string(), "series": series, "is_series": u8::from(is_series).to_string(),
            "cmd": cmd, "has_files": u8::from(self.form == TitleForm::FilmWithFiles), "genres_str": "Crime",
            "screenshot_uri": "/stalker_portal/screenshots/1/7.jpg", "rating_imdb": "8.3", "lock": 0, "fav": 0,
            "added": "2024-05-31 10:00:00", "status": 1, "accessed": 1,
        })
    }

    /// Returns the parts that a module lists of the title: seasons, the episodes of a season, or files.
    fn parts(&self, is_of_series: bool, season: Option<u32>, episode: Option<u32>) -> Vec<Value> {
        let TitleForm::Seasons(seasons) = &self.form else {
            return vec![file(self.id * 1_000)];
        };
        let id_of = |season: u32| self.id * 1_000 + season * 100;
        match (season, episode) {
            (None, _) if is_of_series => (1..)
                .zip(seasons)
                .map(|(number, n)| {
                    let numbers: Vec<u32> = (1..=*n).collect();
                    json!({
                        "id": self.id.to_string(), "name": format!("Season {number}"), "series": numbers,
                        "cmd": format!("season-{}-{number}", self.id), "is_series": 1,
                    })
                })
                .collect(),
            (None, _) => (1..)
                .zip(seasons)
                .map(|(number, _)| {
                    json!({
                        "id": id_of(number).to_string(), "video_id": self.id.to_string(), "is_season": true,
                        "season_number": number.to_string(), "name": format!("Season {number}"),
                    })
                })
                .collect(),
            (Some(season), None) => {
                let at = (season - self.id * 1_000) / 100;
                let n = seasons.get(at as usize - 1).copied().unwrap_or(0);
                (1..=n)
                    .map(|number| {
                        json!({
                            "id": (season + number).to_string(), "season_id": season.to_string(), "is_episode": true,
                            "series_number": number.to_string(), "name": format!("Episode {number}. Dawn"),
                            "series_name": "Dawn",
                        })
                    })
                    .collect()
            }
            (Some(_), Some(episode)) => vec![file(episode)],
        }
    }
}

/// Returns the entry of a file, which belongs to a film or an episode.
fn file(id: u32) -> Value {
    json!({ "id": id.to_string(), "is_file": true, "name": "English / HD", "cmd": format!("/media/file_{id}.mpg") })
}

/// Returns the answer to a question for the guide of the next hours.
pub fn guide(programmes: &[OfferedProgramme], hours: i64) -> Value {
    let now = Timestamp::now().as_second();
    let mut data = serde_json::Map::new();
    for it in programmes.iter().filter(|it| it.stop > now && it.start < now + (hours + 2) * 3_600) {
        let of_channel = data.entry(it.channel.to_string()).or_insert_with(|| json!([]));
        of_channel.as_array_mut().expect("a list").push(programme(it));
    }
    json!({ "data": data })
}

/// Returns the answer to a question for a page of the programmes that begin on a day in UTC.
pub fn day(programmes: &[OfferedProgramme], channel: &str, date: &str, page: usize) -> Value {
    let date_of =
        |it: i64| Timestamp::from_second(it).expect("a time").to_zoned(TimeZone::UTC).date().to_string();
    let all = programmes.iter().filter(|it| it.channel.to_string() == channel && date_of(it.start) == date);
    let all: Vec<Value> = all.map(programme).collect();
    let data: Vec<&Value> = all.iter().skip((page.max(1) - 1) * DAY_PAGE).take(DAY_PAGE).collect();
    json!({ "cur_page": 0, "selected_item": 0, "total_items": all.len(), "max_page_items": DAY_PAGE, "data": data })
}

fn programme(it: &OfferedProgramme) -> Value {
    json!({
        "id": it.id.to_string(), "ch_id": it.channel.to_string(), "name": it.name, "descr": "About it",
        "category": "News", "director": "", "actor": "", "duration": (it.stop - it.start).to_string(),
        "start_timestamp": it.start.to_string(), "stop_timestamp": it.stop.to_string(), "mark_archive": 1,
        "real_id": format!("{}_{}", it.channel, it.start),
    })
}

/// Returns the answer to a question for a page of titles, or of the parts of one.
pub fn titles(titles: &[OfferedTitle], is_of_series: bool, value: impl Fn(&str) -> String) -> Value {
    let number = |name: &str| value(name).parse::<u32>().ok().filter(|it| *it != 0);
    let all: Vec<Value> = match number("movie_id") {
        Some(id) => {
            let title = titles.iter().find(|it| it.id == id);
            title
                .map(|it| it.parts(is_of_series, number("season_id"), number("episode_id")))
                .unwrap_or_default()
        }
        None => {
            let category = value("category");
            let of_category = titles.iter().filter(|it| it.category.to_string() == category);
            of_category.map(|it| it.json(is_of_series)).collect()
        }
    };
    let page = value("p").parse::<usize>().unwrap_or(1).max(1);
    let data: Vec<&Value> = all.iter().skip((page - 1) * PAGE).take(PAGE).collect();
    json!({ "total_items": all.len(), "max_page_items": PAGE, "selected_item": 0, "cur_page": 0, "data": data })
}

/// Returns the bytes of a file that a link leads to. They differ in each file.
pub fn file_bytes(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7_u32, |it, byte| it.wrapping_mul(31).wrapping_add(byte.into()));
    (0..200_000_u32).map(|it| (it.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
