//! `/api/swagger/` and `/api/redoc/`: two pages that show the description of the API; requests can be tried on the first.
//!
//! Their programs are files of npm packages, which are part of this program, so that nothing is fetched from elsewhere.

use std::sync::LazyLock;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Content, Document, MediaTypes, PageText, Route, entity_tag};
use server::reply::Refusal;

/// Both programs insert styles and pictures of their own. The second one searches in a worker that it makes itself.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      connect-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; worker-src blob:";

/// A file that a page loads.
struct Asset {
    path: &'static str,
    text: &'static str,
}

const SCRIPTS: [Asset; 4] = [
    Asset { path: "/api/docs/swagger-ui-bundle.js", text: include_str!("vendor/swagger-ui-bundle.js") },
    Asset { path: "/api/docs/swagger.js", text: include_str!("swagger.js") },
    Asset { path: "/api/docs/redoc.standalone.js", text: include_str!("vendor/redoc.standalone.js") },
    Asset { path: "/api/docs/redoc.js", text: include_str!("redoc.js") },
];

const STYLES: [Asset; 1] =
    [Asset { path: "/api/docs/swagger-ui.css", text: include_str!("vendor/swagger-ui.css") }];

/// Files below this size are ours, and name paths of the gateway; the others are those of the npm packages.
const SMALL_BYTES: usize = 4096;

struct JavaScript;

impl MediaTypes for JavaScript {
    const NAMES: &'static [&'static str] = &["text/javascript; charset=utf-8"];
}

struct Css;

impl MediaTypes for Css {
    const NAMES: &'static [&'static str] = &["text/css; charset=utf-8"];
}

pub(crate) fn routes() -> Vec<Route> {
    let page =
        |path, text: &'static str, summary| {
            Route::get(path, Access::Anyone, summary, move |call: Call| async move {
                Ok(answer(placed(text, &call)))
            })
        };
    let mut routes = vec![
        page("/api/swagger/", include_str!("swagger.html"), "Returns a page on which the API can be tried."),
        page("/api/redoc/", include_str!("redoc.html"), "Returns a page that describes the API."),
    ];
    routes.extend(SCRIPTS.into_iter().map(asset::<JavaScript>));
    routes.extend(STYLES.into_iter().map(asset::<Css>));
    routes
}

/// Writes the path below which the caller reaches the gateway before the paths of a small text.
fn placed(text: &'static str, call: &Call) -> String {
    let base = call.base_path();
    ['"', '\''].iter().fold(text.to_owned(), |text, quote| {
        text.replace(&format!("{quote}/api/"), &format!("{quote}{base}/api/"))
    })
}

fn answer(text: String) -> Content<PageText> {
    Content::new(text)
        .with_header(CONTENT_SECURITY_POLICY, POLICY)
        .with_header(REFERRER_POLICY, "no-referrer")
        .with_header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .with_header(X_FRAME_OPTIONS, "DENY")
        .with_header(CACHE_CONTROL, "no-cache")
}

fn asset<M: MediaTypes>(asset: Asset) -> Route {
    // Computed at the first request: hashing megabytes takes milliseconds.
    let tag = LazyLock::new(move || entity_tag(asset.text.as_bytes()));
    let tag: &'static LazyLock<HeaderValue, _> = Box::leak(Box::new(tag));
    let file = move |call: Call| async move {
        let (text, tag) = match asset.text.len() {
            ..SMALL_BYTES => {
                let text = placed(asset.text, &call);
                let tag = entity_tag(text.as_bytes());
                (Bytes::from(text), tag)
            }
            _ => (Bytes::from_static(asset.text.as_bytes()), (**tag).clone()),
        };
        Ok::<_, Refusal>(Document::<M>::new(text, tag, M::NAMES[0], &call.headers))
    };
    Route::get(asset.path, Access::Anyone, "Returns a file of the pages that describe the API.", file)
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current file.")
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use serde_json::json;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn below_a_path_the_pages_and_the_description_name_paths_with_it() {
        let rest = Rest::start().await;
        let text = async |path: &str| rest.send("GET", path, &[], "").await.text;
        assert!(text("/api/swagger/").await.contains("\"/api/docs/swagger.js\""));
        let setting = json!({ "value": { "public_url": "https://example.com/tv" } });
        assert_eq!(rest.admin("PATCH", "/api/core/settings/3/", setting).await.status, 200);
        for (path, part) in [
            ("/api/swagger/", "\"/tv/api/docs/swagger.js\""),
            ("/api/redoc", "\"/tv/api/docs/redoc.js\""),
            ("/api/docs/swagger.js", "'/tv/api/schema/?format=json'"),
            ("/api/schema/", "\"servers\":[{\"url\":\"/tv\"}]"),
            ("/api/schema/?format=yaml", "servers:\n- url: /tv\n"),
        ] {
            assert!(text(path).await.contains(part), "{path}");
        }
    }

    #[test]
    fn the_vendored_files_have_their_checksums() {
        let sums: Vec<(&str, &str)> =
            include_str!("vendor/SHA256SUMS").lines().map(|it| it.split_once("  ").unwrap()).collect();
        let vendored: Vec<&Asset> =
            SCRIPTS.iter().chain(&STYLES).filter(|it| !it.text.contains("'/api/schema/")).collect();
        assert_eq!(vendored.len(), sums.len());
        for asset in vendored {
            let name = asset.path.rsplit('/').next().unwrap();
            let found = HEXLOWER.encode(&Sha256::digest(asset.text));
            assert!(sums.contains(&(found.as_str(), name)), "{name} has the checksum {found}");
        }
    }

    #[test]
    fn the_pages_load_only_files_that_are_served() {
        let served: Vec<&str> = SCRIPTS.iter().chain(&STYLES).map(|it| it.path).collect();
        for page in [include_str!("swagger.html"), include_str!("redoc.html")] {
            let loaded: Vec<&str> = ["src=\"", "href=\""]
                .iter()
                .flat_map(|it| page.split(it).skip(1))
                .map(|it| it.split('"').next().unwrap())
                .filter(|it| !it.starts_with("https:"))
                .collect();
            assert!(loaded.len() >= 2, "{loaded:?}");
            assert!(loaded.iter().all(|it| served.contains(it)), "{loaded:?}");
        }
    }
}
