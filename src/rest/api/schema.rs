//! `/api/schema/`: the description of the API.

use std::sync::LazyLock;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use sha2::{Digest, Sha256};

use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{Document, Route};

pub(super) fn routes() -> Vec<Route> {
    let document = |path, summary| {
        Route::get(path, Access::Anyone, summary, schema)
            .refuses(StatusCode::NOT_MODIFIED, "The client has the current document.")
    };
    vec![
        document("/api/schema/", "Returns the description of the API as an OpenAPI 3.0 document."),
        document(
            "/api/schema.json",
            "Returns the description of the API, under the name that some clients expect.",
        ),
    ]
}

/// The document as it is sent, with its entity tag. It takes milliseconds and megabytes to build, and everybody may ask
/// for it, so it is built once. It depends on nothing but this program.
static PUBLISHED: LazyLock<(Bytes, HeaderValue)> = LazyLock::new(|| {
    let text = Bytes::from(crate::rest::openapi().to_string());
    let digest = Sha256::digest(&text);
    let tag: String = digest.iter().take(16).map(|it| format!("{it:02x}")).collect();
    let tag = HeaderValue::from_str(&format!("\"{tag}\"")).expect("quotes and hexadecimal digits are valid");
    (text, tag)
});

async fn schema(call: Call) -> Result<Document, Refusal> {
    let (text, tag) = &*PUBLISHED;
    Ok(Document::new(text.clone(), tag.clone(), &call.headers))
}
