//! `/setup`: the page on which the first admin is created. The address that `serve` prints leads to it.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{Content, PageText, Route};

const PAGE: &str = include_str!("setup_page.html");
/// Allows the style and the script of the page by their hashes, requests to the gateway, and nothing else.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      connect-src 'self'; \
                      style-src 'sha256-zTYxEA42PFQA1jTR72x5AtCq6Ve4B/qooXCnlyatcp8='; \
                      script-src 'sha256-GqDhXJGghx6avjejUMrvVANMIkELnqpAY893oprQ0O8='";

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::get("/setup", Access::Anyone, "Returns a page on which the first admin is created.", page)]
}

async fn page(_: Call) -> Result<Content<PageText>, Refusal> {
    Ok(Content::new(PAGE)
        .with_header(CONTENT_SECURITY_POLICY, POLICY)
        .with_header(REFERRER_POLICY, "no-referrer")
        .with_header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .with_header(X_FRAME_OPTIONS, "DENY")
        .with_header(CACHE_CONTROL, "no-store"))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_allows_the_style_and_the_script_of_the_page() {
        for tag in ["style", "script"] {
            let (_, rest) = PAGE.split_once(&format!("<{tag}>")).unwrap();
            let (text, _) = rest.split_once(&format!("</{tag}>")).unwrap();
            let allowed = format!("{tag}-src 'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
            assert!(POLICY.contains(&allowed), "the policy lacks {allowed}");
        }
    }
}
