//! Pictures: uploads that are pictures by their content, and answers with one.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use server::WarpBody;
use warp::reply::Response as Reply;

use super::route::{Answer, AnswerShape};

/// A format that every browser shows and that contains no program. SVG does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Png,
    Jpeg,
    Gif,
    Webp,
}

/// Media types of pictures.
pub(crate) const PICTURE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

impl PictureFormat {
    const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// Returns the format of this content by its first bytes, whatever its name and declared type are.
    pub(crate) fn from_content(bytes: &[u8]) -> Option<Self> {
        let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ if is_webp => Some(Self::Webp),
            _ => None,
        }
    }

    /// Returns the format of a file with this name, as [`PictureFormat::extension`] ends it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1;
        Self::ALL.into_iter().find(|it| it.extension() == extension)
    }

    /// Returns the end of names of files, without a dot.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// 200 with a picture whose address never leads to another content, so that clients keep it.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) format: PictureFormat,
    pub(crate) bytes: Vec<u8>,
}

impl Answer for Picture {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(PICTURE_TYPES);

    fn into_reply(self) -> Reply {
        let mut reply = Response::new(WarpBody::from(self.bytes));
        for (name, value) in [
            (CONTENT_TYPE, self.format.media_type()),
            (CACHE_CONTROL, "private, max-age=31536000, immutable"),
            // A browser never takes it for a page.
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        ] {
            reply.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_a_picture_is_that_of_its_content() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(PictureFormat::Png)),
            (b"\xff\xd8\xff\xe0", Some(PictureFormat::Jpeg)),
            (b"GIF89a", Some(PictureFormat::Gif)),
            (b"GIF88a", None),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some(PictureFormat::Webp)),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"RIFF", None),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", None),
            (b"<!doctype html>", None),
            (b"", None),
        ] {
            assert_eq!(PictureFormat::from_content(bytes), expected, "{bytes:?}");
        }
        for format in PictureFormat::ALL {
            assert_eq!(PictureFormat::from_name(&format!("1.{}", format.extension())), Some(format));
            assert!(PICTURE_TYPES.contains(&format.media_type()));
        }
        assert_eq!(PictureFormat::from_name("png"), None);
    }
}
