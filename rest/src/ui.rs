//! The web interface: the built files of `web/dist`, which are part of this program.
//!
//! The page is the same for all addresses of the interface; its script shows what the address names. Files in `assets/`
//! have names that change with their content, so browsers keep them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use media::spawn_blocking;
use parking_lot::Mutex;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Content, PageText, Route, client_has, entity_tag};
use rust_embed::{EmbeddedFile, RustEmbed};
use server::WarpBody;
use server::encoding::{accepts_brotli, accepts_gzip};
use server::reply::Refusal;
use warp::reply::Response as Reply;

/// The built files. Debug builds read them from the disk.
#[derive(RustEmbed)]
#[folder = "../web/dist/"]
struct Files;

/// First segments of the addresses of the interface. They are reserved user names, because `/{user}/…` is an address of
/// players.
const SEGMENTS: [&str; 21] = [
    "activity",
    "channels",
    "guide",
    "health",
    "history",
    "integrations",
    "library",
    "lineups",
    "logos",
    "me",
    "nodes",
    "now",
    "plugins",
    "recordings",
    "settings",
    "setup",
    "slots",
    "sources",
    "streams",
    "users",
    "watch",
];

/// The page that all addresses of the interface answer.
const PAGE: &str = "index.html";

/// Lets the page load its own files and nothing else. `img-src` allows `data:` for the empty icon of the page, `media-src`
/// allows `blob:` for the source of the player; the policy `svelte-trusted-html` is that of the templates of Svelte.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; media-src 'self' blob:; worker-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types svelte-trusted-html";

/// The media types of the built files.
const MEDIA_TYPES: [(&str, &str); 5] = [
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("woff2", "font/woff2"),
];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/", Access::Anyone, "Returns the page of the web interface.", page)
            .also_at(is_page)
            .refuses(StatusCode::NOT_MODIFIED, "The client has the current page.")
            .refuses(StatusCode::NOT_FOUND, "The program was built without the web interface."),
        Route::get("/assets/{name}", Access::Anyone, "Returns a file of the web interface.", asset)
            .refuses(StatusCode::NOT_MODIFIED, "The client has the current file.")
            .refuses(StatusCode::NOT_FOUND, "No such file."),
    ]
}

/// Returns whether a path is an address of the interface besides `/`: at most two segments, of which the first is known.
fn is_page(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut segments = path.strip_suffix('/').unwrap_or(path).split('/');
    let is_known = segments.next().is_some_and(|it| SEGMENTS.contains(&it));
    is_known && segments.next().is_none_or(|it| !it.is_empty()) && segments.next().is_none()
}

async fn page(call: Call) -> Result<Content<PageText>, Refusal> {
    let file = Files::get(PAGE).ok_or_else(|| Refusal::not_found("This program has no web interface."))?;
    let text = placed(&String::from_utf8_lossy(&file.data), &call.base_path());
    let tag = entity_tag(text.as_bytes());
    let is_known = client_has(&call.headers, &tag);
    let mut reply = Response::new(WarpBody::from(if is_known { String::new() } else { text }));
    if is_known {
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
    }
    reply.headers_mut().insert(ETAG, tag);
    Ok(Content::from_reply(reply)
        .with_header(CONTENT_SECURITY_POLICY, POLICY)
        .with_header(REFERRER_POLICY, "no-referrer")
        .with_header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .with_header(X_FRAME_OPTIONS, "DENY")
        .with_header(CACHE_CONTROL, "no-cache"))
}

/// Writes the path below which the caller reaches the gateway into the page: addresses of pages have one or two segments,
/// so its files cannot be named relative to them.
fn placed(page: &str, base: &str) -> String {
    let base = base.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    page.replace("\"./assets/", &format!("\"{base}/assets/"))
        .replace("name=\"base\" content=\"\"", &format!("name=\"base\" content=\"{base}\""))
}

/// A built file.
struct Asset {
    body: Option<Bytes>,
    media_type: &'static str,
    coding: Option<&'static str>,
    tag: HeaderValue,
    cache: &'static str,
}

/// The media types of files in `assets/`.
struct AssetTypes;

impl AssetTypes {
    const NAMES: [&str; MEDIA_TYPES.len()] = {
        let mut names = [""; MEDIA_TYPES.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = MEDIA_TYPES[i].1;
            i += 1;
        }
        names
    };
}

impl Answer for Asset {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(&AssetTypes::NAMES);

    fn into_reply(self) -> Reply {
        let has_body = self.body.is_some();
        let mut reply = Response::new(WarpBody::from(self.body.unwrap_or_default()));
        let headers = reply.headers_mut();
        let mut add = |name: HeaderName, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        add(CACHE_CONTROL, self.cache);
        add(VARY, "Accept-Encoding");
        add(X_CONTENT_TYPE_OPTIONS, "nosniff");
        if has_body {
            add(CONTENT_TYPE, self.media_type);
        }
        if let Some(coding) = self.coding.filter(|_| has_body) {
            add(CONTENT_ENCODING, coding);
        }
        headers.insert(ETAG, self.tag);
        if !has_body {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
        }
        reply
    }
}

async fn asset(call: Call) -> Result<Asset, Refusal> {
    let name = call.text("name")?.to_owned();
    let found = || Refusal::not_found("Not found.");
    let media_type = media_type(&name).ok_or_else(found)?;
    let path = format!("assets/{name}");
    let file = Files::get(&path).ok_or_else(found)?;
    let coded = match accepts_brotli(&call.headers) {
        true => Files::get(&format!("{path}.br")).map(|it| (bytes(it), "br")),
        false => None,
    };
    let coded = match coded {
        None if accepts_gzip(&call.headers) && is_text(media_type) => {
            Some((gzipped(name.clone(), &file).await?, "gzip"))
        }
        coded => coded,
    };
    let (body, coding) = match coded {
        Some((body, coding)) => (body, Some(coding)),
        None => (bytes(file), None),
    };
    let tag = entity_tag(&body);
    let body = (!client_has(&call.headers, &tag)).then_some(body);
    // The one file whose name stays the same.
    let cache = if name == LICENCES { "no-cache" } else { "max-age=31536000, immutable" };
    Ok(Asset { body, media_type, coding, tag, cache })
}

/// The licences of the libraries in the bundle.
const LICENCES: &str = "licences.txt";

/// Returns the media type of a file by its name; `None` for names that no built file has.
fn media_type(name: &str) -> Option<&'static str> {
    let is_plain = name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'));
    let (_, ending) = name.rsplit_once('.').filter(|_| is_plain && !name.starts_with('.'))?;
    MEDIA_TYPES.iter().find(|it| it.0 == ending).map(|it| it.1)
}

fn is_text(media_type: &str) -> bool {
    !media_type.starts_with("font/")
}

fn bytes(file: EmbeddedFile) -> Bytes {
    match file.data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => Bytes::from(data),
    }
}

/// Files that were compressed, with the hash of their content. Bounded by the number of built files.
static GZIPPED: Mutex<Option<HashMap<String, GzippedFile>>> = Mutex::new(None);

/// A compressed file, and the hash of its content before.
type GzippedFile = ([u8; 32], Bytes);

/// Returns a file compressed with gzip; it is compressed at the first request.
async fn gzipped(name: String, file: &EmbeddedFile) -> Result<Bytes, Refusal> {
    let hash = file.metadata.sha256_hash();
    let known =
        GZIPPED.lock().as_ref().and_then(|it| it.get(&name).filter(|it| it.0 == hash).map(|it| it.1.clone()));
    if let Some(known) = known {
        return Ok(known);
    }
    let data = file.data.clone();
    let compress = move || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&data)?;
        encoder.finish()
    };
    let compressed = spawn_blocking(compress).await;
    let fault = || Refusal::fault("compress a file of the web interface");
    let compressed = Bytes::from(compressed.map_err(|_| fault())?.map_err(|_| fault())?);
    GZIPPED.lock().get_or_insert_default().insert(name, (hash, compressed.clone()));
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use domain::user;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::testing::Rest;

    #[test]
    fn the_first_segments_are_reserved_user_names() {
        for segment in SEGMENTS.iter().chain(&["assets"]) {
            assert!(user::is_reserved(segment), "{segment}");
        }
    }

    #[tokio::test]
    async fn every_address_of_the_interface_answers_its_page_and_other_paths_do_not() {
        let rest = Rest::start().await;
        for path in ["/", "/now", "/now/", "/now/3f2b", "/channels/7/", "/watch/%2Fx", "/setup"] {
            let answer = rest.send("GET", path, &[], "").await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(answer.text.contains("<div id=\"app\">"), "{path}");
            assert_eq!(answer.headers["content-security-policy"], POLICY);
            assert_eq!(answer.headers["cache-control"], "no-cache");
        }
        for path in ["/nothing", "/now//", "/now/a/b", "/nowhere", "/api/now/", "/assets/nothing.js"] {
            let answer = rest.send("GET", path, &[], "").await;
            assert!(matches!(answer.status, 401 | 404), "{path}: {}", answer.status);
            assert!(!answer.text.contains("<div"), "{path}");
        }
        assert_eq!(rest.send("POST", "/now", &[], "").await.status, 405);
    }

    #[tokio::test]
    async fn a_page_that_the_browser_has_is_not_sent_again() {
        let rest = Rest::start().await;
        let first = rest.send("GET", "/now", &[], "").await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let again = rest.send("GET", "/channels", &[("if-none-match", &tag)], "").await;
        assert_eq!((again.status, again.text.as_str()), (304, ""));
    }

    #[tokio::test]
    async fn the_files_of_the_page_are_served_compressed_and_can_be_kept() {
        let rest = Rest::start().await;
        let page = rest.send("GET", "/", &[], "").await.text;
        let files: Vec<&str> =
            page.split("\"/assets/").skip(1).map(|it| it.split('"').next().unwrap()).collect();
        assert!(files.iter().any(|it| it.ends_with(".js")) && files.iter().any(|it| it.ends_with(".css")));
        for name in files {
            let path = format!("/assets/{name}");
            let plain = rest.send("GET", &path, &[], "").await;
            assert_eq!((plain.status, plain.headers.get("content-encoding")), (200, None));
            assert_eq!(plain.headers["cache-control"], "max-age=31536000, immutable");
            assert_eq!(plain.headers["vary"], "Accept-Encoding");
            let mut tags = vec![plain.headers["etag"].clone()];
            for coding in ["gzip", "br"] {
                let answer = rest.send("GET", &path, &[("accept-encoding", coding)], "").await;
                assert_eq!(answer.headers["content-encoding"], coding, "{path}");
                tags.push(answer.headers["etag"].clone());
            }
            tags.dedup();
            assert_eq!(tags.len(), 3, "each coding has an entity tag of its own");
        }
    }

    #[tokio::test]
    async fn a_compressed_file_is_the_file() {
        let file = Files::get(PAGE).unwrap();
        for _ in 0..2 {
            let packed = gzipped("test".to_owned(), &file).await.unwrap();
            let mut text = Vec::new();
            GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
            assert_eq!(text, &*file.data);
        }
    }

    #[test]
    fn below_a_path_the_page_names_its_files_with_it() {
        let page = r#"<meta name="base" content=""><script src="./assets/a.js"></script>"#;
        assert_eq!(
            placed(page, "/tv"),
            r#"<meta name="base" content="/tv"><script src="/tv/assets/a.js"></script>"#
        );
        assert!(!placed(page, "/\"><b>").contains("<b>"));
    }

    #[test]
    fn only_names_of_built_files_are_looked_up() {
        for name in ["../index.html", "a/b.js", ".js", "index.html", "a.js.br", "a", ""] {
            assert_eq!(media_type(name), None, "{name}");
        }
        assert_eq!(media_type("index-0aB_-9.js"), Some("text/javascript; charset=utf-8"));
    }
}
