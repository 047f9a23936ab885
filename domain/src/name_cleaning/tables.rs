//! The words, codes and signs that providers write around names, as data.

/// Where a word states a version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// Also as the last word of a name: titles do not end with it.
    Anywhere,
    /// As the last word only in capitals, because titles end with it, such as `Charlotte's Web`.
    Capitals,
    /// Only in brackets or beside a separator, because titles end with it, such as `Step Up 3D`.
    Separated,
}

/// Words that state quality, format or kind of translation, in lower case. Names of channels have further ones.
pub(super) const VERSIONS: &[(&str, WordPlace)] = &[
    ("4k", WordPlace::Anywhere),
    ("8k", WordPlace::Anywhere),
    ("uhd", WordPlace::Anywhere),
    ("fhd", WordPlace::Anywhere),
    ("hd", WordPlace::Anywhere),
    ("sd", WordPlace::Anywhere),
    ("hdr", WordPlace::Anywhere),
    ("hdr10", WordPlace::Anywhere),
    ("hdr10+", WordPlace::Anywhere),
    ("dv", WordPlace::Capitals),
    ("hevc", WordPlace::Anywhere),
    ("h264", WordPlace::Anywhere),
    ("h265", WordPlace::Anywhere),
    ("x264", WordPlace::Anywhere),
    ("x265", WordPlace::Anywhere),
    ("av1", WordPlace::Anywhere),
    ("10bit", WordPlace::Anywhere),
    ("480p", WordPlace::Anywhere),
    ("576p", WordPlace::Anywhere),
    ("720p", WordPlace::Anywhere),
    ("1080p", WordPlace::Anywhere),
    ("1080i", WordPlace::Anywhere),
    ("2160p", WordPlace::Anywhere),
    ("3d", WordPlace::Separated),
    ("imax", WordPlace::Separated),
    ("multi", WordPlace::Capitals),
    ("dual", WordPlace::Capitals),
    ("vostfr", WordPlace::Anywhere),
    ("vost", WordPlace::Capitals),
    ("vf", WordPlace::Capitals),
    ("vff", WordPlace::Capitals),
    ("vo", WordPlace::Capitals),
    ("dubbed", WordPlace::Capitals),
    ("subbed", WordPlace::Capitals),
    ("dub", WordPlace::Capitals),
    ("sub", WordPlace::Capitals),
    ("subs", WordPlace::Capitals),
    ("cam", WordPlace::Capitals),
    ("hdcam", WordPlace::Anywhere),
    ("hdts", WordPlace::Anywhere),
    ("web", WordPlace::Capitals),
    ("webrip", WordPlace::Anywhere),
    ("web-dl", WordPlace::Anywhere),
    ("webdl", WordPlace::Anywhere),
    ("bluray", WordPlace::Anywhere),
    ("bdrip", WordPlace::Anywhere),
    ("brrip", WordPlace::Anywhere),
    ("dvdrip", WordPlace::Anywhere),
    ("remux", WordPlace::Capitals),
    ("atmos", WordPlace::Capitals),
    ("ac3", WordPlace::Anywhere),
    ("lq", WordPlace::Capitals),
    ("hq", WordPlace::Capitals),
    ("60fps", WordPlace::Anywhere),
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
