//! The archive of a portal: it plays programmes, which it numbers, so the one at a time has to be found first.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use super::information::field;

/// Programmes of a page, if the portal does not say.
const PAGE_USUAL: i64 = 10;
/// Pages of a day that are believed.
const PAGES_MAX: i64 = 100;
/// Maximum number of questions.
const QUESTIONS_MAX: u32 = 16;
/// Maximum length of the id of a programme, in bytes.
const ID_BYTES_MAX: usize = 128;

/// A search for the programme at a time, in the pages of days of a channel.
#[derive(Debug, Clone)]
pub struct ProgrammeSearch {
    /// Seconds since 1970.
    at: i64,
    date: Date,
    /// The day is another one than that of the time: a programme can begin on the day before, and a portal can have another
    /// zone.
    is_other_day: bool,
    page: u32,
    /// The pages that may have the programme. The last one is unknown before the first answer.
    first: u32,
    last: Option<u32>,
    n_questions: u32,
}

/// The step after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchStep {
    /// The id of the programme.
    Found(String),
    /// The next question is to be asked.
    Ask,
    /// The portal has no programme at the time.
    Missing,
}

impl ProgrammeSearch {
    /// Begins a search. `at` is in seconds since 1970, and `zone` is that of the device. `None` if no date has the time.
    pub fn new(at: i64, zone: &TimeZone) -> Option<Self> {
        let date = Timestamp::from_second(at).ok()?.to_zoned(zone.clone()).date();
        Some(Self { at, date, is_other_day: false, page: 1, first: 1, last: None, n_questions: 0 })
    }

    /// Returns the day and the page to ask for.
    pub fn question(&self) -> (String, u32) {
        (self.date.to_string(), self.page)
    }

    /// Reads the answer to the present question.
    pub fn read(&mut self, js: &Value) -> SearchStep {
        self.n_questions += 1;
        let programmes = programmes_of(js);
        let covers = |it: &&Listed| it.start <= self.at && self.at < it.stop;
        if let Some(found) = programmes.iter().find(covers) {
            return SearchStep::Found(found.id.clone());
        }
        let (Some(first), Some(last)) = (programmes.first(), programmes.last()) else {
            return SearchStep::Missing;
        };
        let n_pages = self.last.unwrap_or_else(|| n_pages(js));
        let (mut low, mut high) = (self.first, n_pages);
        if self.at < first.start {
            high = self.page - 1;
        } else if last.stop <= self.at {
            low = self.page + 1;
        } else {
            return SearchStep::Missing;
        }
        let is_over = self.n_questions >= QUESTIONS_MAX;
        if low <= high && !is_over {
            (self.first, self.last, self.page) = (low, Some(high), low.midpoint(high));
            return SearchStep::Ask;
        }
        let is_before = self.at < first.start;
        let other = if is_before { self.date.checked_sub(1.day()) } else { self.date.checked_add(1.day()) };
        match other {
            Ok(date) if !self.is_other_day && !is_over => {
                (self.date, self.is_other_day) = (date, true);
                (self.first, self.last, self.page) = (1, None, 1);
                SearchStep::Ask
            }
            _ => SearchStep::Missing,
        }
    }
}

/// A programme of a page.
struct Listed {
    id: String,
    start: i64,
    stop: i64,
}

/// Returns the programmes of a page by their start. One that does not say when it ends ends with the next one.
fn programmes_of(js: &Value) -> Vec<Listed> {
    let values: Vec<&Value> = match js.get("data").unwrap_or(js) {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    let is_id = |it: &String| {
        it.len() <= ID_BYTES_MAX && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it))
    };
    let listed = |it: &&Value| {
        let start = field(it, "start_timestamp").whole().filter(|it| *it > 0)?;
        let stop = field(it, "stop_timestamp").whole().unwrap_or(0);
        Some(Listed { id: field(it, "id").text().filter(is_id)?, start, stop })
    };
    let mut programmes: Vec<Listed> = values.iter().filter_map(listed).collect();
    programmes.sort_by_key(|it| it.start);
    let mut next = None;
    for programme in programmes.iter_mut().rev() {
        if programme.stop <= programme.start {
            programme.stop = next.unwrap_or(programme.start);
        }
        next = Some(programme.start);
    }
    programmes
}

fn n_pages(js: &Value) -> u32 {
    let number = |name: &str| field(js, name).whole().filter(|it| *it > 0);
    let of_page = number("max_page_items").unwrap_or(PAGE_USUAL);
    let n = number("total_items").unwrap_or(1).saturating_add(of_page - 1) / of_page;
    u32::try_from(n.clamp(1, PAGES_MAX)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 3_600;
    /// 2026-11-30 in UTC.
    const DAY: i64 = 1_795_996_800;

    /// A portal that lists the programmes that begin on a day in its zone, ten a page.
    fn answer(zone_hours: i64, search: &ProgrammeSearch, programmes: &[(i64, i64)]) -> Value {
        let (date, page) = search.question();
        let begin = date.parse::<Date>().unwrap().to_zoned(TimeZone::UTC).unwrap().timestamp().as_second();
        let begin = begin - zone_hours * HOUR;
        let of_day = programmes.iter().filter(|it| (begin..begin + 24 * HOUR).contains(&it.0));
        let all: Vec<_> = of_day
            .map(|it| json!({ "id": it.0.to_string(), "start_timestamp": it.0, "stop_timestamp": it.1 }))
            .collect();
        let data: Vec<_> = all.iter().skip((page as usize - 1) * 10).take(10).collect();
        json!({ "total_items": all.len(), "max_page_items": 10, "data": data })
    }

    fn search(zone_hours: i64, programmes: &[(i64, i64)], at: i64) -> (Option<String>, u32) {
        let mut search = ProgrammeSearch::new(at, &TimeZone::UTC).unwrap();
        loop {
            match search.read(&answer(zone_hours, &search, programmes)) {
                SearchStep::Found(id) => return (Some(id), search.n_questions),
                SearchStep::Missing => return (None, search.n_questions),
                SearchStep::Ask => assert!(search.n_questions < QUESTIONS_MAX),
            }
        }
    }

    #[test]
    fn the_programme_at_a_time_is_found_on_its_page_and_on_the_day_before() {
        // Half hours from 23:45 of the day before on, without the one at noon.
        let programmes: Vec<_> = (0..96)
            .map(|it| DAY - 24 * HOUR - 900 + it * 1_800)
            .filter(|it| *it != DAY + 12 * HOUR - 900)
            .map(|it| (it, it + 1_800))
            .collect();
        for zone_hours in [0, -5, 3] {
            for at in [0, 1_000, 5 * HOUR, 15 * HOUR + 1, 23 * HOUR] {
                let (found, n_questions) = search(zone_hours, &programmes, DAY + at);
                let expected = (DAY + at + 900) / 1_800 * 1_800 - 900;
                assert_eq!(found, Some(expected.to_string()), "{at} in {zone_hours}");
                assert!(n_questions <= 8, "{n_questions}");
            }
            assert_eq!(search(zone_hours, &programmes, DAY + 12 * HOUR).0, None, "a gap");
        }
    }

    #[test]
    fn a_portal_without_a_programme_at_the_time_is_asked_a_few_times_only() {
        let one = [(DAY + HOUR, DAY + 2 * HOUR)];
        for (programmes, at) in [(&one[..], DAY), (&one, DAY + 5 * HOUR), (&[], DAY)] {
            let (found, n_questions) = search(0, programmes, at);
            assert_eq!(found, None);
            assert!(n_questions <= 2, "{n_questions}");
        }
        for js in [json!(false), json!(null), json!([]), json!({ "data": "text" }), json!({ "data": [1] })] {
            let mut search = ProgrammeSearch::new(DAY, &TimeZone::UTC).unwrap();
            assert_eq!(search.read(&js), SearchStep::Missing, "{js}");
        }
        // A portal that always says the same.
        let mut search = ProgrammeSearch::new(DAY, &TimeZone::UTC).unwrap();
        let early = json!({ "total_items": 1_000_000, "data": [
            { "id": 1, "start_timestamp": 1, "stop_timestamp": 2 }, { "id": "../1", "start_timestamp": 3 }
        ] });
        while search.read(&early) == SearchStep::Ask {}
        assert!(search.n_questions <= QUESTIONS_MAX);
    }
}
