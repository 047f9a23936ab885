//! Types of images, recognised by their content, and the versions of images in their addresses.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Number of bytes of a file in which the beginning of an SVG is searched.
const SVG_HEAD_BYTES: usize = 4 << 10;
/// Length of the version of an image, in hexadecimal digits.
pub const VERSION_DIGITS: usize = 8;
/// A format that every browser shows and that contains no program. SVG does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    Png,
    Jpeg,
    Gif,
    Webp,
}

/// Media types of pictures.
pub const PICTURE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

impl PictureFormat {
    const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// Returns the format of this content by its first bytes, whatever its name and declared type are.
    pub fn from_content(bytes: &[u8]) -> Option<Self> {
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
    pub fn from_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1;
        Self::ALL.into_iter().find(|it| it.extension() == extension)
    }

    /// Returns the end of names of files, without a dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// The type of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageType {
    Picture(PictureFormat),
    /// May contain programs.
    Svg,
}

impl ImageType {
    /// Recognises an image by its content; `None` is another file.
    pub fn from_content(bytes: &[u8]) -> Option<Self> {
        let picture = PictureFormat::from_content(bytes).map(Self::Picture);
        picture.or_else(|| is_svg(bytes).then_some(Self::Svg))
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Picture(format) => format.media_type(),
            Self::Svg => "image/svg+xml",
        }
    }

    /// Returns the extension of a file, without the dot.
    pub fn extension(self) -> &'static str {
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
pub fn image_version(about: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(about)[..VERSION_DIGITS / 2])
}

/// Returns the last segment of the address of a background picture, by its position and its address.
pub fn backdrop_name(index: usize, url: &str) -> String {
    format!("{BACKDROP}{index}-{}", image_version(url))
}

/// Start of the names of background pictures.
pub const BACKDROP: &str = "backdrop-";

#[cfg(test)]
mod tests {
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
            assert_eq!(ImageType::from_content(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

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
