//! `/api/epg/sources/preview/`: the programmes that the properties of a generated guide make of a name.

use actors::now_ms;
use domain::guide::generated::{GeneratedGuide, programmes};
use domain::guide::programme::Programme;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

/// Hours of a preview before and after the present time.
const HOURS: i64 = 24;
/// Maximum number of programmes of a preview.
const PROGRAMS_MAX: usize = 100;

/// A name, and the properties of a source of the type `dummy` that are applied to it.
#[derive(Clone, Debug, Body)]
pub(crate) struct GuidePreview {
    /// Name of a channel or stream.
    #[field(chars_max = 512, example = "NHL 03: Bruins vs Leafs @ 8:00 PM")]
    name: String,
    /// Properties of the source, as they would be saved.
    custom_properties: Option<Option<Map<String, Value>>>,
}

/// The effect of the properties on the name.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct GuidePreviewView {
    /// Whether the patterns match the name.
    is_matched: bool,
    /// Values of the placeholders for templates, by name.
    placeholders: Map<String, Value>,
    /// URL of the logo of the channel.
    channel_logo_url: Option<String>,
    /// Programmes from a day ago until a day from now.
    programs: Vec<PreviewProgramView>,
}

/// A programme of a preview.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PreviewProgramView {
    /// Start of the programme.
    start_time: Time,
    /// End of the programme.
    end_time: Time,
    /// Title.
    #[field(example = "Bruins at Leafs")]
    title: String,
    /// Description.
    description: Option<String>,
    /// Categories.
    categories: Vec<String>,
    /// URL of its image.
    icon: Option<String>,
    /// Whether it is marked as new.
    is_new: bool,
    /// Whether it is marked as live.
    is_live: bool,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Returns the programmes that properties of a dummy source make of a name.";
    vec![Route::post("/api/epg/sources/preview/", ADMIN, summary, preview).with_properties_body()]
}

/// Checks the properties of a generated guide.
///
/// # Errors
/// A message for each property that is not valid.
pub(super) fn generated_guide(properties: &Map<String, Value>) -> Result<GeneratedGuide, FieldErrors> {
    GeneratedGuide::from_properties(properties).map_err(|all| {
        let mut errors = FieldErrors::default();
        for error in all {
            errors.add("custom_properties", error.to_string());
        }
        errors
    })
}

async fn preview(call: Call, body: GuidePreview) -> Result<GuidePreviewView, Refusal> {
    call.identity()?;
    let guide = generated_guide(&body.custom_properties.flatten().unwrap_or_default())?;
    let now = now_ms().div_euclid(1000);
    let placeholders = guide.placeholders(&body.name, now);
    let span = HOURS * 3_600;
    let mut found = programmes(&guide, &body.name, now, now - span, now + span);
    found.truncate(PROGRAMS_MAX);
    Ok(GuidePreviewView {
        is_matched: placeholders.is_some(),
        placeholders: placeholders.into_iter().flatten().map(|(name, value)| (name, value.into())).collect(),
        channel_logo_url: guide.logo(&body.name, now),
        programs: found.iter().map(view).collect(),
    })
}

fn view(programme: &Programme) -> PreviewProgramView {
    PreviewProgramView {
        start_time: Time(programme.start * 1000),
        end_time: Time(programme.stop * 1000),
        title: programme.title().to_owned(),
        description: programme.description().map(str::to_owned),
        categories: programme.categories().map(str::to_owned).collect(),
        icon: programme.icon().map(str::to_owned),
        is_new: programme.is_new(),
        is_live: programme.is_live(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Rest;

    const PREVIEW: &str = "/api/epg/sources/preview/";

    #[tokio::test]
    async fn a_preview_shows_the_programmes_of_a_name() {
        let rest = Rest::start().await;
        let body = json!({
            "name": "NHL 03: Bruins vs Leafs @ 20:00",
            "custom_properties": {
                "title_pattern": r"(?<team1>\w+) vs (?<team2>\w+)",
                "time_pattern": r"@ (?<hour>\d+):(?<minute>\d+)",
                "title_template": "{team1} at {team2}",
                "upcoming_title_template": "Next: {team1}",
                "channel_logo_url": "http://h/{team2_normalize}.png",
                "categories": "Sports",
                "include_live": true,
            },
        });
        let shown = rest.admin("POST", PREVIEW, body).await;
        assert_eq!(shown.status, 200, "{}", shown.text);
        assert_eq!(shown.body["is_matched"], true);
        assert_eq!(shown.body["placeholders"]["team1"], "Bruins");
        assert_eq!(shown.body["channel_logo_url"], "http://h/leafs.png");
        let programs = shown.body["programs"].as_array().unwrap();
        let event: Vec<_> = programs.iter().filter(|it| it["title"] == "Bruins at Leafs").collect();
        assert_eq!(event.len(), 1);
        assert_eq!((&event[0]["categories"], &event[0]["is_live"]), (&json!(["Sports"]), &json!(true)));
        assert!(event[0]["start_time"].as_str().unwrap().contains("T20:00:00"));
        let other = json!({ "name": "News", "custom_properties": { "title_pattern": "x(?<a>y)" } });
        let shown = rest.admin("POST", PREVIEW, other).await.body;
        assert_eq!((&shown["is_matched"], &shown["placeholders"]), (&json!(false), &json!({})));
        assert_eq!(shown["programs"][0]["title"], "News");
    }

    #[tokio::test]
    async fn a_preview_of_invalid_properties_is_refused_by_property() {
        let rest = Rest::start().await;
        let properties = json!({ "title_pattern": "(?=x)", "program_duration": 1 });
        let body = json!({ "name": "News", "custom_properties": properties });
        let refused = rest.admin("POST", PREVIEW, body).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        let errors = refused.body["custom_properties"].as_array().unwrap();
        assert!(errors[0].as_str().unwrap().starts_with("title_pattern: Look-ahead"), "{errors:?}");
        assert!(errors[1].as_str().unwrap().starts_with("program_duration: "), "{errors:?}");
        assert_eq!(rest.standard("POST", PREVIEW, json!({ "name": "a" })).await.status, 403);
    }
}
