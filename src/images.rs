//! Images: recognised by their content, and served so that a browser runs nothing in them.
//!
//! The last segment of the address of an image is its version, a [`PictureName`]. Some players encode every reserved
//! character of the last segment, so it has none, and no query follows. It has no extension either: the type is known only
//! after the image was fetched, is another one while the placeholder is served, and players trust an extension.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use domain::query::Query;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Response, StatusCode};
use server::WarpBody;
use server::reply::Refusal;
use sha2::{Digest, Sha256};
use warp::reply::Response as Reply;

use crate::rest::frame::call::Call;
use crate::rest::frame::picture::PictureFormat;
use crate::rest::frame::route::{Answer, AnswerShape, client_has, entity_tag};

/// Media types of images.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];
/// Number of bytes of a file in which the beginning of an SVG is searched.
const SVG_HEAD_BYTES: usize = 4 << 10;
/// Caching of an image whose address stays when it changes: four hours.
const MAX_AGE: &str = "public, max-age=14400";
/// Caching of an image whose address names its present version: a week. A provider may replace the image at an address
/// without a new version.
const VERSION_AGE: &str = "public, max-age=604800";
/// Length of the version of an image, in hexadecimal digits.
const VERSION_DIGITS: usize = 8;
/// Caching of the placeholder: the image may be there when the client asks again.
const PLACEHOLDER_AGE: &str = "public, max-age=30";
/// A screen without a picture, 128 by 128 pixels, grey on a transparent ground: made for this project, and a PNG because
/// televisions do not show SVG.
const PLACEHOLDER: &[u8] = include_bytes!("placeholder.png");
/// Policy of an SVG, which could contain scripts and links.
const SVG_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// The type of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageType {
    Picture(PictureFormat),
    /// May contain programs.
    Svg,
}

impl ImageType {
    /// Recognises an image by its content; `None` is another file.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let picture = PictureFormat::from_content(bytes).map(Self::Picture);
        picture.or_else(|| is_svg(bytes).then_some(Self::Svg))
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Picture(format) => format.media_type(),
            Self::Svg => "image/svg+xml",
        }
    }

    /// Returns the extension of a file, without the dot.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Picture(format) => format.extension(),
            Self::Svg => "svg",
        }
    }
}

/// Returns whether a text begins with an element `svg`, after declarations and comments.
fn is_svg(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(SVG_HEAD_BYTES)]);
    let mut rest = head.trim_start_matches('\u{FEFF}').trim_start();
    for (begin, end) in [("<?xml", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">"), ("<!--", "-->")] {
        while let Some(inside) = rest.strip_prefix(begin) {
            let Some((_, after)) = inside.split_once(end) else { return false };
            rest = after.trim_start();
        }
    }
    let name_ends = |it: &str| it.starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/');
    rest.strip_prefix("<svg").is_some_and(name_ends)
}

/// Returns the version of an image: a text without reserved characters that changes with what the image is made from.
pub(crate) fn image_version(about: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(about)[..VERSION_DIGITS / 2])
}

/// Returns the last segment of the address of a background picture, by its position and its address.
pub(crate) fn backdrop_name(index: usize, url: &str) -> String {
    format!("{BACKDROP}{index}-{}", image_version(url))
}

/// Start of the names of background pictures.
const BACKDROP: &str = "backdrop-";

/// The last segment of the address of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PictureName {
    /// Position among the background pictures; `None` for the main picture, and without meaning where there is only one.
    pub(crate) backdrop: Option<usize>,
    version: String,
}

impl PictureName {
    /// Reads the parameter `{version}` of a path.
    pub(crate) fn of_call(call: &Call) -> Result<Self, Refusal> {
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
    /// Returns `None` if the file is no image.
    pub(crate) fn new(bytes: Bytes, headers: &HeaderMap) -> Option<Self> {
        let image_type = ImageType::of(&bytes)?;
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

    use super::*;

    #[test]
    fn an_image_is_recognised_by_its_content() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(ImageType::Picture(PictureFormat::Png))),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", Some(ImageType::Svg)),
            (b"\xef\xbb\xbf <?xml version='1.0'?>\n<!-- a -->\n<!DOCTYPE svg>\n<svg>", Some(ImageType::Svg)),
            (b"<svgx>", None),
            (b"<html><svg/></html>", None),
            (b"<!-- <svg>", None),
            (b"<script>alert(1)</script>", None),
            (b"", None),
        ] {
            assert_eq!(ImageType::of(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

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
        assert_eq!(ImageType::of(PLACEHOLDER), Some(ImageType::Picture(PictureFormat::Png)));
        let reply = Image::placeholder(&HeaderMap::new()).into_reply();
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(reply.headers()[CONTENT_TYPE], "image/png");
        assert_eq!(reply.headers()[CACHE_CONTROL], "public, max-age=30");
    }
}
