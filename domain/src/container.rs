//! The container format of a video file: its content type, by its first bytes or by its file extension.

/// The content type of a file whose container is unknown.
const UNKNOWN: &str = "application/octet-stream";

/// Returns the content type of a file: by its first bytes if they are known and recognised, otherwise by its extension.
/// Players refuse a type that the content contradicts, and panels often name another container than they send.
pub fn content_type(first_bytes: &[u8], extension: &str) -> &'static str {
    type_from_signature(first_bytes).or_else(|| type_from_extension(extension)).unwrap_or(UNKNOWN)
}

fn type_from_signature(bytes: &[u8]) -> Option<&'static str> {
    let has = |at: usize, text: &[u8]| bytes.get(at..).is_some_and(|it| it.starts_with(text));
    // The length of a packet is 188 bytes, with a time stamp in front 192.
    let is_ts = |first: usize, length: usize| {
        let marks = [first, first + length];
        marks.iter().all(|it| bytes.get(*it) == Some(&0x47))
    };
    Some(match () {
        () if has(0, b"\x1a\x45\xdf\xa3") => {
            let is_webm =
                bytes.iter().take(64).copied().collect::<Vec<_>>().windows(4).any(|it| it == b"webm");
            if is_webm { "video/webm" } else { "video/x-matroska" }
        }
        () if has(4, b"ftypqt") => "video/quicktime",
        () if has(4, b"ftyp") || has(4, b"moov") || has(4, b"styp") => "video/mp4",
        () if has(0, b"RIFF") && has(8, b"AVI ") => "video/x-msvideo",
        () if has(0, b"FLV") => "video/x-flv",
        () if has(0, b"OggS") => "video/ogg",
        () if has(0, b"\x00\x00\x01\xba") => "video/mpeg",
        () if has(0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11") => "video/x-ms-wmv",
        () if is_ts(0, 188) || is_ts(4, 192) => "video/mp2t",
        () => return None,
    })
}

fn type_from_extension(extension: &str) -> Option<&'static str> {
    Some(match extension.trim_start_matches('.').to_ascii_lowercase().as_str() {
        "mkv" => "video/x-matroska",
        "webm" => "video/webm",
        "mp4" | "m4v" => "video/mp4",
        "mov" => "video/quicktime",
        "avi" | "divx" => "video/x-msvideo",
        "ts" | "m2ts" | "mts" => "video/mp2t",
        "mpg" | "mpeg" | "vob" => "video/mpeg",
        "wmv" | "asf" => "video/x-ms-wmv",
        "flv" => "video/x-flv",
        "ogv" | "ogm" => "video/ogg",
        "3gp" => "video/3gpp",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first_bytes: &[u8], extension: &str, expected: &str) {
        assert_eq!(content_type(first_bytes, extension), expected, "{extension}");
    }

    #[test]
    fn the_content_decides_before_the_extension() {
        check(b"\x1a\x45\xdf\xa3\x01\x42\x82\x88matroska", "mp4", "video/x-matroska");
        check(b"\x1a\x45\xdf\xa3\x01\x42\x82\x84webm", "mkv", "video/webm");
        check(b"\0\0\0\x20ftypisom", "avi", "video/mp4");
        check(b"\0\0\0\x14ftypqt  ", "mp4", "video/quicktime");
        check(b"RIFF\0\0\0\0AVI LIST", "mkv", "video/x-msvideo");
        let mut ts = vec![0; 400];
        (ts[0], ts[188]) = (0x47, 0x47);
        check(&ts, "mp4", "video/mp2t");
        let mut m2ts = vec![0; 400];
        (m2ts[4], m2ts[196]) = (0x47, 0x47);
        check(&m2ts, "", "video/mp2t");
    }

    #[test]
    fn the_extension_decides_where_the_content_is_unknown() {
        check(b"", "mkv", "video/x-matroska");
        check(b"", ".MP4", "video/mp4");
        check(b"nothing known", "avi", "video/x-msvideo");
        check(b"", "", "application/octet-stream");
        check(b"\x47", "exe", "application/octet-stream");
    }
}
