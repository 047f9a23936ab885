//! Images: recognised by their content, and served so that a browser runs nothing in them.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Response, StatusCode};
use warp::reply::Response as Reply;

use crate::http::WarpBody;
use crate::rest::frame::picture::PictureFormat;
use crate::rest::frame::route::{Answer, AnswerShape, client_has, entity_tag};

/// Media types of images.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];
/// Number of bytes of a file in which the beginning of an SVG is searched.
const SVG_HEAD_BYTES: usize = 4 << 10;
/// Caching of an image: four hours. Its address changes with it.
const MAX_AGE: &str = "public, max-age=14400";
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
        let picture = PictureFormat::of_content(bytes).map(Self::Picture);
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
    fn the_placeholder_is_an_image_that_clients_ask_for_again_soon() {
        assert_eq!(ImageType::of(PLACEHOLDER), Some(ImageType::Picture(PictureFormat::Png)));
        let reply = Image::placeholder(&HeaderMap::new()).into_reply();
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(reply.headers()[CONTENT_TYPE], "image/png");
        assert_eq!(reply.headers()[CACHE_CONTROL], "public, max-age=30");
    }
}
