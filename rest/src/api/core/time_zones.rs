//! `/api/core/timezones/`: the time zones that settings can name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use resource_derive::View;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;

/// The time zones that settings can name.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TimeZonesView {
    /// IANA names, sorted.
    #[field(example = "[\"Europe/Berlin\"]")]
    timezones: Vec<String>,
    /// The same names by region; those without a region are under `Other`.
    grouped: Map<String, Value>,
    /// Number of names.
    #[field(example = "433")]
    count: usize,
}

/// Parts of the database that hold no zones of their own: copies with other rules for leap seconds, and abbreviations.
const HIDDEN: [&str; 4] = ["posix", "right", "Etc", "SystemV"];
/// Names without a region that are offered.
const WITHOUT_REGION: [&str; 2] = ["GMT", "UTC"];

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/timezones/", STREAMER, "Lists time zones.", list)]
}

async fn list(_: Call) -> Result<TimeZonesView, Refusal> {
    static VIEW: LazyLock<TimeZonesView> = LazyLock::new(view);
    Ok(VIEW.clone())
}

fn view() -> TimeZonesView {
    let mut timezones: Vec<String> = jiff::tz::db()
        .available()
        .map(|it| it.to_string())
        .filter(|name| match name.split_once('/') {
            Some((region, _)) => !HIDDEN.contains(&region),
            None => WITHOUT_REGION.contains(&name.as_str()),
        })
        .collect();
    timezones.sort();
    timezones.dedup();
    let mut grouped: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for name in &timezones {
        let region = name.split_once('/').map_or("Other", |it| it.0);
        grouped.entry(region).or_default().push(name);
    }
    let grouped = grouped.into_iter().map(|(region, names)| (region.to_owned(), serde_json::json!(names)));
    TimeZonesView { grouped: grouped.collect(), count: timezones.len(), timezones }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn every_listed_time_zone_is_accepted_by_the_settings() {
        let rest = Rest::start().await;
        let zones = rest.streamer("GET", "/api/core/timezones/", Value::Null).await.body;
        let names: Vec<&str> =
            zones["timezones"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(zones["count"], names.len());
        assert!(names.len() > 300 && names.contains(&"UTC") && names.contains(&"Europe/Berlin"));
        assert!(names.iter().all(|it| actors::check_time_zone(it).is_ok()));
        let europe = zones["grouped"]["Europe"].as_array().unwrap();
        assert!(europe.contains(&"Europe/Berlin".into()));
        assert!(zones["grouped"]["Other"].as_array().unwrap().contains(&"UTC".into()));
    }
}
