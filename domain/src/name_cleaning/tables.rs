//! The words, codes and signs that providers write around names, as data.

/// Where a word states a version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Also as the last word of a name: titles do not end with it.
    Anywhere,
    /// As the last word only in capitals, because titles end with it, such as `Charlotte's Web`.
    Capitals,
    /// Only in brackets or beside a separator, because titles end with it, such as `Step Up 3D`.
    Separated,
}

/// Words that state quality, format or kind of translation, in lower case. Names of channels have further ones.
pub(super) const VERSIONS: &[(&str, Place)] = &[
    ("4k", Place::Anywhere),
    ("8k", Place::Anywhere),
    ("uhd", Place::Anywhere),
    ("fhd", Place::Anywhere),
    ("hd", Place::Anywhere),
    ("sd", Place::Anywhere),
    ("hdr", Place::Anywhere),
    ("hdr10", Place::Anywhere),
    ("hdr10+", Place::Anywhere),
    ("dv", Place::Capitals),
    ("hevc", Place::Anywhere),
    ("h264", Place::Anywhere),
    ("h265", Place::Anywhere),
    ("x264", Place::Anywhere),
    ("x265", Place::Anywhere),
    ("av1", Place::Anywhere),
    ("10bit", Place::Anywhere),
    ("480p", Place::Anywhere),
    ("576p", Place::Anywhere),
    ("720p", Place::Anywhere),
    ("1080p", Place::Anywhere),
    ("1080i", Place::Anywhere),
    ("2160p", Place::Anywhere),
    ("3d", Place::Separated),
    ("imax", Place::Separated),
    ("multi", Place::Capitals),
    ("dual", Place::Capitals),
    ("vostfr", Place::Anywhere),
    ("vost", Place::Capitals),
    ("vf", Place::Capitals),
    ("vff", Place::Capitals),
    ("vo", Place::Capitals),
    ("dubbed", Place::Capitals),
    ("subbed", Place::Capitals),
    ("dub", Place::Capitals),
    ("sub", Place::Capitals),
    ("subs", Place::Capitals),
    ("cam", Place::Capitals),
    ("hdcam", Place::Anywhere),
    ("hdts", Place::Anywhere),
    ("web", Place::Capitals),
    ("webrip", Place::Anywhere),
    ("web-dl", Place::Anywhere),
    ("webdl", Place::Anywhere),
    ("bluray", Place::Anywhere),
    ("bdrip", Place::Anywhere),
    ("brrip", Place::Anywhere),
    ("dvdrip", Place::Anywhere),
    ("remux", Place::Capitals),
    ("atmos", Place::Capitals),
    ("ac3", Place::Anywhere),
    ("lq", Place::Capitals),
    ("hq", Place::Capitals),
    ("60fps", Place::Anywhere),
];

/// The same of two words, at the end of a name.
pub(super) const PHRASES: [&str; 6] =
    [" dolby vision", " dual audio", " multi audio", " multi sub", " multi subs", " multi-sub"];

/// Words in superscript letters beside versions and codes.
pub(super) const SMALL_WORDS: [&str; 4] = ["🆕", "new", "live", "3d"];

/// Codes and names of languages in lower case, besides the codes of countries. They count in capitals only.
pub(super) const LANGUAGES: [&str; 58] = [
    "en", "eng", "ar", "ara", "arab", "arabic", "ger", "spa", "fre", "ita", "dut", "por", "rus", "tur",
    "pol", "sv", "swe", "da", "dan", "nor", "nord", "nordic", "fin", "el", "gre", "he", "heb", "hi", "hin",
    "hindi", "ta", "tamil", "te", "telugu", "bn", "pa", "ur", "urdu", "fa", "far", "ku", "kur", "zh", "ja",
    "ko", "vi", "cs", "sr", "sl", "sq", "lat", "latam", "latino", "la", "exyu", "ex-yu", "afr", "vostfr",
];

/// Languages in English and in their own words, and words of formats, in lower case. They count in brackets only, however they
/// are written.
pub(super) const IN_BRACKETS: [&str; 30] = [
    "audio",
    "dolby",
    "vision",
    "english",
    "german",
    "deutsch",
    "french",
    "français",
    "francais",
    "italian",
    "italiano",
    "spanish",
    "español",
    "espanol",
    "castellano",
    "latino",
    "portuguese",
    "português",
    "dutch",
    "nederlands",
    "polish",
    "polski",
    "russian",
    "русский",
    "turkish",
    "türkçe",
    "arabic",
    "hindi",
    "tamil",
    "telugu",
];

/// Services whose mark stands before films and series, in lower case. They count in capitals only.
pub(super) const SERVICES: [&str; 16] = [
    "nf", "netflix", "d+", "dsny", "disney+", "amz", "amzn", "hbo", "hulu", "atv", "atv+", "a+", "p+",
    "pcok", "osn", "shahid",
];

/// Countries in round brackets behind a title that belong to it: `The Office (US)`.
pub(super) const REMAKES: [&str; 5] = ["US", "UK", "AU", "NZ", "CA"];

/// Beginnings of films and series that look like a code, in lower case.
pub(super) const KEPT_STARTS: [&str; 4] = ["it: chapter", "it: welcome", "it - chapter", "it - welcome"];

/// Extensions of files behind a name.
pub(super) const EXTENSIONS: [&str; 6] = [".mkv", ".mp4", ".avi", ".m4v", ".mov", ".ts"];

/// Returns whether a sign decorates a name or separates its parts: bars, bullets, stars, arrows and pictures.
pub(super) fn is_decoration(it: char) -> bool {
    matches!(it, '|' | '｜' | '»' | '«' | '•' | '·' | '➤' | '_')
        // Lines and blocks, shapes, symbols, pictures.
        || matches!(u32::from(it), 0x2500..=0x27BF | 0x2B50 | 0x1F300..=0x1FAFF)
}

/// Returns whether a sign decorates a name if it is repeated, as in `##### UK #####`. A single one is a part of the name.
pub(super) fn is_repeated_decoration(it: char) -> bool {
    matches!(it, '#' | '*' | '=' | '~' | '-')
}

/// Returns the bracket that closes this one.
pub(super) fn closing_of(opening: char) -> Option<char> {
    Some(match opening {
        '[' => ']',
        '(' => ')',
        '{' => '}',
        '【' => '】',
        '〔' => '〕',
        '［' => '］',
        '（' => '）',
        _ => return None,
    })
}
