//! Identification of streams in the addresses of panels.

use crate::portal::PortalStreamAddress;
use crate::source_url::SourceUrl;

/// The kind of content that a panel serves under an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PanelContent {
    Live,
    Movie,
    Series,
}

/// Returns the kind and the stream id in `/live/user/password/ID.ts`, `/user/password/ID`, `/movie/…` and `/series/…`,
/// on any host, with any extension or none, and in the stored address of a portal. `None` for any other address.
pub(crate) fn panel_id(url: &SourceUrl) -> Option<(PanelContent, &str)> {
    if let Some(id) = PortalStreamAddress::id_in(url) {
        return Some((PanelContent::Live, id));
    }
    if !url.is_http() {
        return None;
    }
    let mut segments = url.path().strip_prefix('/')?.rsplit('/');
    let last = segments.next()?;
    let id = last.split_once('.').map_or(last, |(id, _)| id);
    let is_id = !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit());
    let has_login = segments.next().is_some_and(|it| !it.is_empty())
        && segments.next().is_some_and(|it| !it.is_empty() && kind(it).is_none());
    if !is_id || !has_login {
        return None;
    }
    match segments.next() {
        None => Some((PanelContent::Live, id)),
        // A panel may be installed below a path.
        Some(segment) => kind(segment).map(|kind| (kind, id)),
    }
}

/// Returns the id of a film or an episode in `/movie/user/password/ID.mkv` and `/series/…`.
pub fn film_id(url: &SourceUrl) -> Option<&str> {
    panel_id(url).filter(|it| it.0 != PanelContent::Live).map(|it| it.1)
}

/// Returns the id of a live stream in `/live/user/password/ID.ts` and `/user/password/ID`.
pub fn live_id(url: &SourceUrl) -> Option<&str> {
    panel_id(url).filter(|it| it.0 == PanelContent::Live && url.is_http()).map(|it| it.1)
}

fn kind(segment: &str) -> Option<PanelContent> {
    match segment {
        "live" => Some(PanelContent::Live),
        "movie" => Some(PanelContent::Movie),
        "series" => Some(PanelContent::Series),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_address_is_recognised_by_its_form_and_identifies_a_stream_across_logins() {
        for (url, expected) in [
            ("http://h/live/u/p/7.ts", Some((PanelContent::Live, "7"))),
            ("https://h:8080/live/u/p/7.m3u8?token=x", Some((PanelContent::Live, "7"))),
            ("http://other/live/u2/p2/7", Some((PanelContent::Live, "7"))),
            ("http://h/u/p/7", Some((PanelContent::Live, "7"))),
            ("http://h/u/p/7.ts", Some((PanelContent::Live, "7"))),
            ("http://h/movie/u/p/7.mkv", Some((PanelContent::Movie, "7"))),
            ("http://h/series/u/p/7.mp4", Some((PanelContent::Series, "7"))),
            ("http://h/panel/live/u/p/7.ts", Some((PanelContent::Live, "7"))),
            ("http://h/live/u/p/news.ts", None),
            ("http://h/live/u/p/", None),
            ("http://h/live/p/7.ts", None),
            ("http://h/p/7.ts", None),
            ("http://h//p/7.ts", None),
            ("http://h/7.ts", None),
            ("http://h/a/b/c/7.ts", None),
            ("http://h/live/u/p/.ts", None),
            ("rtsp://h/live/u/p/7", None),
            ("stalker://h/itv/7?link=1&cmd=a", Some((PanelContent::Live, "7"))),
            ("stalker://other/itv/7", Some((PanelContent::Live, "7"))),
            ("stalker://h/itv/", None),
            ("file:///u/p/7.ts", None),
            ("http://h", None),
            ("nothing", None),
        ] {
            assert_eq!(panel_id(&SourceUrl::new(url)), expected, "{url}");
        }
    }
}
