//! `/api/schema/`: the description of the API.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, StatusCode};
use resource_derive::Query;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Document, MediaTypes, Route, entity_tag};
use server::reply::Refusal;

use crate::choice::{Named, choice};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

struct Json;

impl MediaTypes for Json {
    const NAMES: &'static [&'static str] = &[JSON];
}

struct JsonOrYaml;

impl MediaTypes for JsonOrYaml {
    const NAMES: &'static [&'static str] = &[JSON, YAML];
}

choice!(
    enum Format {
        Json = "json",
        Yaml = "yaml",
    }
);

/// The form of the document.
#[derive(Debug, Query)]
struct Form {
    /// Overrides the header `Accept`.
    format: Option<Named<Format>>,
}

pub(super) fn routes() -> Vec<Route> {
    const CURRENT: &str = "The client has the current document.";
    vec![
        Route::get(
            "/api/schema/",
            Access::Anyone,
            "Returns the description of the API as an OpenAPI 3.0 document.",
            schema,
        )
        .refuses(StatusCode::NOT_MODIFIED, CURRENT),
        Route::get(
            "/api/schema.json",
            Access::Anyone,
            "Returns the description of the API, under the name that some clients expect.",
            schema_json,
        )
        .refuses(StatusCode::NOT_MODIFIED, CURRENT),
    ]
}

/// The document as it is sent, with its entity tag.
#[derive(Clone)]
struct Published {
    text: Bytes,
    tag: HeaderValue,
}

impl Published {
    fn new(text: String) -> Self {
        Published { tag: entity_tag(text.as_bytes()), text: text.into() }
    }

    /// Returns the document for clients that reach the gateway below a path. `before` and `after` enclose its address in
    /// the text, which is `/`.
    fn below(&self, path: &str, before: &str, after: &str) -> Self {
        if path.is_empty() {
            return self.clone();
        }
        let text = String::from_utf8_lossy(&self.text);
        // Without the slash, which the path replaces.
        let end = after.strip_prefix('/').unwrap_or(after);
        Self::new(text.replacen(&format!("{before}{after}"), &format!("{before}{path}{end}"), 1))
    }
}

// The document takes milliseconds and megabytes to build, and everybody may ask for it, so it is built once. It depends
// on nothing but this program.
static PUBLISHED_JSON: LazyLock<Published> = LazyLock::new(|| Published::new(crate::openapi().to_string()));
static PUBLISHED_YAML: LazyLock<Published> = LazyLock::new(|| {
    let text = serde_yaml_ng::to_string(&crate::openapi());
    Published::new(text.expect("every JSON value has a form in YAML"))
});

async fn schema(call: Call, form: Form) -> Result<Document<JsonOrYaml>, Refusal> {
    let is_yaml = match form.format {
        Some(Named(format)) => format == Format::Yaml,
        None => prefers_yaml(&call.headers),
    };
    let media_type = if is_yaml { YAML } else { JSON };
    let Published { text, tag } = if is_yaml {
        PUBLISHED_YAML.below(&call.base_path(), "servers:\n- url: ", "/\n")
    } else {
        published_json(&call)
    };
    Ok(Document::new(text, tag, media_type, &call.headers))
}

async fn schema_json(call: Call) -> Result<Document<Json>, Refusal> {
    let Published { text, tag } = published_json(&call);
    Ok(Document::new(text, tag, JSON, &call.headers))
}

fn published_json(call: &Call) -> Published {
    PUBLISHED_JSON.below(&call.base_path(), r#""servers":[{"url":""#, r#"/"}]"#)
}

/// Returns whether the caller prefers YAML to JSON. Without a preference it gets JSON.
fn prefers_yaml(headers: &HeaderMap) -> bool {
    let (mut yaml, mut json) = (0.0, 0.0);
    let ranges =
        headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|it| it.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0_f32);
        match &*media_type {
            "application/yaml" | "application/x-yaml" | "text/yaml" | "application/vnd.oai.openapi" => {
                yaml = quality.max(yaml);
            }
            "application/json" | "application/*" | "*/*" | "application/vnd.oai.openapi+json" => {
                json = quality.max(json);
            }
            _ => {}
        }
    }
    yaml > json
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use serde_json::Value;

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn the_document_is_json_or_yaml_as_the_caller_prefers() {
        let rest = Rest::start().await;
        for (path, accept, media_type) in [
            ("/api/schema/", "", JSON),
            ("/api/schema/", "*/*", JSON),
            ("/api/schema/", "text/html, application/json;q=0.9", JSON),
            ("/api/schema/", "application/yaml", YAML),
            ("/api/schema/", "application/json;q=0.5, application/vnd.oai.openapi;q=0.9", YAML),
            ("/api/schema/", "application/yaml;q=0.5, application/json", JSON),
            ("/api/schema/?format=yaml", "application/json", YAML),
            ("/api/schema/?format=json", "application/yaml", JSON),
            ("/api/schema.json", "application/yaml", JSON),
        ] {
            let answer = rest.send("GET", path, &[("accept", accept)], "").await;
            assert_eq!(answer.status, 200, "{path} {accept}");
            assert_eq!(answer.headers[CONTENT_TYPE], media_type, "{path} {accept}");
            let document: Value = match media_type {
                YAML => serde_yaml_ng::from_str(&answer.text).unwrap(),
                _ => answer.body,
            };
            assert_eq!(document, crate::openapi());
            let tag = answer.headers["etag"].to_str().unwrap();
            let known = rest.send("GET", path, &[("accept", accept), ("if-none-match", tag)], "").await;
            assert_eq!((known.status, known.text.as_str()), (304, ""));
        }
    }
}
