//! Images, served so that a browser runs nothing in them.
//!
//! The last segment of the address of an image is its version, a [`PictureName`]. Some players encode every reserved
//! character of the last segment, so it has none, and no query follows. It has no extension either: the type is known only
//! after the image was fetched, is another one while the placeholder is served, and players trust an extension.

use bytes::Bytes;
use domain::query::Query;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Response, StatusCode};
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, client_has, entity_tag};
use server::WarpBody;
use server::reply::Refusal;
use services::image_types::{BACKDROP, ImageType, PictureFormat, VERSION_DIGITS, image_version};
use warp::reply::Response as Reply;

/// Media types of images.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];
/// Caching of an image whose address stays when it changes: four hours.
const MAX_AGE: &str = "public, max-age=14400";
/// Caching of an image whose address names its present version: a week. A provider may replace the image at an address
/// without a new version.
const VERSION_AGE: &str = "public, max-age=604800";
/// Caching of the placeholder: the image may be there when the client asks again.
const PLACEHOLDER_AGE: &str = "public, max-age=30";
/// A screen without a picture, 128 by 128 pixels, grey on a transparent ground: made for this project, and a PNG because
/// televisions do not show SVG.
const PLACEHOLDER: &[u8] = include_bytes!("placeholder.png");
/// Policy of an SVG, which could contain scripts and links.
const SVG_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// The last segment of the address of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PictureName {
    /// Position among the background pictures; `None` for the main picture, and without meaning where there is only one.
    pub(crate) backdrop: Option<usize>,
    version: String,
}

impl PictureName {
    /// Reads the parameter `{version}` of a path.
    pub(crate) fn from_call(call: &Call) -> Result<Self, Refusal> {
        Self::read(call.text("version")?).ok_or_else(|| Refusal::not_found("Not found."))
    }

    /// Reads a decoded segment. Players store addresses, and addresses of earlier versions had a query in place of a version:
    /// a client that encodes it requests it as a segment.
    fn read(segment: &str) -> Option<Self> {
        if let Some(query) = segment.strip_prefix('?') {
            let query = Query::parse(query);
            let is_backdrop = query.single("kind") == Some("backdrop");
            let index = || query.single("index").and_then(|it| it.parse().ok()).unwrap_or_default();
            let version = query.single("v").unwrap_or_default().to_owned();
            return Some(Self { backdrop: is_backdrop.then(index), version });
        }
        let (backdrop, version) = match segment.strip_prefix(BACKDROP) {
            Some(rest) => {
                let (index, version) = rest.split_once('-')?;
                let is_index = !index.is_empty() && index.bytes().all(|it| it.is_ascii_digit());
                (Some(index.parse().ok().filter(|_| is_index)?), version)
            }
            None => (None, segment),
        };
        let is_version = version.len() == VERSION_DIGITS && version.bytes().all(|it| it.is_ascii_hexdigit());
        is_version.then(|| Self { backdrop, version: version.to_owned() })
    }

    /// Returns whether it names the version that is made from this.
    pub(crate) fn is_version_of(&self, about: &str) -> bool {
        self.version == image_version(about)
    }
}

/// 200 with an image and an entity tag, or 304 if the client has it.
#[derive(Debug)]
pub(crate) struct Image {
    /// `None` if the client has the image.
    content: Option<(Bytes, ImageType)>,
    tag: HeaderValue,
    /// Value of `Cache-Control`.
    max_age: &'static str,
}

impl Image {
    /// Returns `None` if the file is not an image.
    pub(crate) fn new(bytes: Bytes, headers: &HeaderMap) -> Option<Self> {
        let image_type = ImageType::from_content(&bytes)?;
        let tag = entity_tag(&bytes);
        let content = (!client_has(headers, &tag)).then_some((bytes, image_type));
        Some(Self { content, tag, max_age: MAX_AGE })
    }

    /// Lets clients keep an image for long whose address names its present version.
    pub(crate) fn kept_long(self, is_present_version: bool) -> Self {
        Self { max_age: if is_present_version { VERSION_AGE } else { self.max_age }, ..self }
    }

    /// Stands for an image that is not available, or not yet.
    pub(crate) fn placeholder(headers: &HeaderMap) -> Self {
        let bytes = Bytes::from_static(PLACEHOLDER);
        let tag = entity_tag(&bytes);
        let image = (bytes, ImageType::Picture(PictureFormat::Png));
        Self { content: (!client_has(headers, &tag)).then_some(image), tag, max_age: PLACEHOLDER_AGE }
    }
}

impl Answer for Image {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(IMAGE_TYPES);

    fn into_reply(self) -> Reply {
        let mut reply = match self.content {
            Some((bytes, image_type)) => {
                let mut reply = Response::new(WarpBody::from(bytes));
                let headers = reply.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(image_type.media_type()));
                headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                if image_type == ImageType::Svg {
                    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SVG_POLICY));
                }
                reply
            }
            None => {
                let mut reply = Reply::default();
                *reply.status_mut() = StatusCode::NOT_MODIFIED;
                reply
            }
        };
        reply.headers_mut().insert(ETAG, self.tag);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(self.max_age));
        reply
    }
}

#[cfg(test)]
mod tests {
    use http::header::IF_NONE_MATCH;
    use services::image_types::backdrop_name;

    use super::*;

    #[test]
    fn an_svg_has_a_policy_without_scripts_and_a_known_image_is_not_sent_again() {
        let svg = Bytes::from_static(b"<svg><script>alert(1)</script></svg>");
        let reply = Image::new(svg.clone(), &HeaderMap::new()).unwrap().into_reply();
        let policy = reply.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && policy.ends_with("sandbox"), "{policy}");
        assert_eq!(reply.headers()[CONTENT_TYPE], "image/svg+xml");
        let tag = reply.headers()[ETAG].clone();
        let again = Image::new(svg, &HeaderMap::from_iter([(IF_NONE_MATCH, tag)])).unwrap().into_reply();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(Image::new(Bytes::from_static(b"<html>"), &HeaderMap::new()).is_none());
    }

    #[test]
    fn the_last_segment_of_an_address_names_a_picture_also_if_a_client_encoded_its_query() {
        let name = |backdrop, version: &str| Some(PictureName { backdrop, version: version.to_owned() });
        for (segment, expected) in [
            ("7f34a1b2", name(None, "7f34a1b2")),
            ("backdrop-0-7f34a1b2", name(Some(0), "7f34a1b2")),
            ("backdrop-12-7f34a1b2", name(Some(12), "7f34a1b2")),
            ("?v=7f34", name(None, "7f34")),
            ("?kind=backdrop&index=3&v=7f34", name(Some(3), "7f34")),
            ("?kind=backdrop&v=7f34", name(Some(0), "7f34")),
            ("?kind=movie_image", name(None, "")),
            ("?index=x&kind=backdrop", name(Some(0), "")),
            ("?", name(None, "")),
            ("7f34", None),
            ("7f34a1b2.png", None),
            ("7f34a1bx", None),
            ("backdrop-7f34a1b2", None),
            ("backdrop--7f34a1b2", None),
            ("backdrop-+1-7f34a1b2", None),
            ("backdrop-99999999999999999999-7f34a1b2", None),
            ("", None),
        ] {
            assert_eq!(PictureName::read(segment), expected, "{segment:?}");
        }
        for (index, url) in [(0, ""), (7, "http://provider.example/a.jpg?token=x")] {
            let (main, backdrop) = (image_version(url), backdrop_name(index, url));
            assert!(PictureName::read(&main).unwrap().is_version_of(url));
            let read = PictureName::read(&backdrop).unwrap();
            assert!(read.backdrop == Some(index) && read.is_version_of(url) && !read.is_version_of("other"));
            for name in [main, backdrop] {
                let is_unreserved = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
                assert!(name.bytes().all(is_unreserved), "{name}");
            }
        }
    }

    #[test]
    fn an_image_is_kept_long_if_its_address_names_its_version_and_a_placeholder_never_is() {
        let png = || Image::new(Bytes::from_static(PLACEHOLDER), &HeaderMap::new()).unwrap();
        for (image, expected) in [
            (png(), "public, max-age=14400"),
            (png().kept_long(false), "public, max-age=14400"),
            (png().kept_long(true), "public, max-age=604800"),
            (Image::placeholder(&HeaderMap::new()), "public, max-age=30"),
        ] {
            assert_eq!(image.into_reply().headers()[CACHE_CONTROL], expected);
        }
    }

    #[test]
    fn the_placeholder_is_an_image_that_clients_ask_for_again_soon() {
        assert_eq!(ImageType::from_content(PLACEHOLDER), Some(ImageType::Picture(PictureFormat::Png)));
        let reply = Image::placeholder(&HeaderMap::new()).into_reply();
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(reply.headers()[CONTENT_TYPE], "image/png");
        assert_eq!(reply.headers()[CACHE_CONTROL], "public, max-age=30");
    }
}
