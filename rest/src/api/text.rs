//! URLs and error messages as clients see them.

use domain::source_url::SourceUrl;

/// Returns the whole URL for admins, and its scheme and host for others. Returns nothing if the host is unknown.
pub(super) fn shown_url(url: &SourceUrl, is_admin: bool) -> Option<String> {
    if is_admin {
        return Some(url.expose().to_owned());
    }
    // The printed form of a URL ends with an ellipsis.
    let printed = url.to_string();
    let host = printed.trim_end_matches('…');
    url::Url::parse(host).is_ok_and(|it| it.has_host()).then(|| host.to_owned())
}

/// Returns whether a text is an `http` or `https` address with a host.
pub(super) fn is_web_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
}

/// Turns an error text into a sentence.
pub(super) fn sentence(text: impl ToString) -> String {
    let text = text.to_string();
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let end = if text.ends_with('.') { "" } else { "." };
    first.chain(letters).chain(end.chars()).collect()
}
