//! Words of channel names that say something else than which channel it is.

/// The quality of pictures that a name states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Quality {
    /// Standard definition, or not stated.
    #[default]
    Standard,
    High,
    Ultra,
}

impl Quality {
    /// Returns the number of steps between two qualities.
    pub(super) fn distance(self, other: Self) -> u8 {
        (self as u8).abs_diff(other as u8)
    }
}

/// Returns the quality that a word states. Codecs and frame rates state none, so they are standard.
pub(crate) fn quality(word: &str) -> Option<Quality> {
    Some(match word {
        "uhd" | "4k" | "8k" | "4kuhd" | "uhd4k" | "2160p" | "3840p" | "4320p" | "ultrahd" | "uhdr" => {
            Quality::Ultra
        }
        "hd" | "fhd" | "qhd" | "fullhd" | "1080p" | "1080i" | "720p" | "1440p" | "hd1080" | "hd720"
        | "fhdr" => Quality::High,
        "sd" | "lq" | "hq" | "480p" | "480i" | "576p" | "576i" | "540p" | "360p" | "hevc" | "avc"
        | "h264" | "h265" | "x264" | "x265" | "av1" | "vp9" | "hdr" | "hdr10" | "sdr" | "mpeg2" | "mpeg4"
        | "25fps" | "30fps" | "50fps" | "60fps" | "fps" => Quality::Standard,
        _ => return with_frame_rate(word),
    })
}

/// Returns the quality of lines with a frame rate, such as `1080p60` or `576i25`.
fn with_frame_rate(word: &str) -> Option<Quality> {
    let (lines, rate) = word.split_once(['p', 'i'])?;
    let is_rate = matches!(rate, "24" | "25" | "30" | "48" | "50" | "59" | "60" | "100" | "120");
    let lines: u32 = lines.parse().ok().filter(|_| is_rate)?;
    match lines {
        2160 | 4320 => Some(Quality::Ultra),
        720 | 1080 | 1440 => Some(Quality::High),
        360 | 480 | 540 | 576 => Some(Quality::Standard),
        _ => None,
    }
}

/// Returns the quality that the name of a channel states; `None` if it states none.
pub fn quality_of_name(name: &str) -> Option<Quality> {
    let lower = name.to_lowercase();
    let mut before = "";
    let mut best = None;
    for word in lower.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()) {
        // In `ESPNHD`, the quality is a word of its own.
        let suffix =
            || ["uhd", "fhd", "hd"].into_iter().find(|it| word.len() >= it.len() + 2 && word.ends_with(it));
        let is_stated = |it: &Quality| {
            *it != Quality::Standard || matches!(word, "sd" | "480p" | "480i" | "576p" | "576i" | "360p")
        };
        let own = quality(word).filter(is_stated).or_else(|| quality(suffix()?));
        let of_two = quality_of_two(before, word).filter(|it| *it != Quality::Standard);
        best = best.max(own).max(of_two);
        before = word;
    }
    best
}

/// Returns the quality that two adjacent words state.
pub(super) fn quality_of_two(first: &str, second: &str) -> Option<Quality> {
    Some(match (first, second) {
        ("ultra", "hd") => Quality::Ultra,
        ("full", "hd") => Quality::High,
        ("h" | "x", "264" | "265") | ("25" | "30" | "50" | "60", "fps") | ("hdr", "10") => Quality::Standard,
        _ => return None,
    })
}

/// Returns whether a provider adds this word at the beginning or the end of a name.
pub(crate) fn is_decoration(word: &str) -> bool {
    matches!(word, "vip" | "raw" | "backup" | "bkup" | "bkp" | "bk" | "multiaudio")
}

/// Returns whether a word is not part of the name when it stands alone in brackets or before a separator.
pub(crate) fn is_remark(word: &str) -> bool {
    is_decoration(word)
        || matches!(
            word,
            "live"
                | "multi"
                | "dual"
                | "test"
                | "new"
                | "local"
                | "geo"
                | "only"
                | "low"
                | "stereo"
                | "dolby"
                | "audio"
                | "channels"
        )
}

/// Returns whether a word before a separator is a service that sells channels of others, so that it is not part of the name.
pub(super) fn is_bundle(word: &str) -> bool {
    matches!(
        word,
        "sling"
            | "prime"
            | "pluto"
            | "plutotv"
            | "roku"
            | "tubi"
            | "xumo"
            | "plex"
            | "stirr"
            | "samsung"
            | "samsungtv"
            | "fubo"
            | "hulu"
            | "philo"
            | "directv"
            | "dtv"
            | "xfinity"
            | "dstv"
            | "zattoo"
            | "waipu"
            | "magenta"
            | "freeview"
            | "freesat"
            | "fast"
            | "ppv"
    )
}

/// Returns whether a word before a separator stands for several countries.
pub(super) fn is_region(word: &str) -> bool {
    matches!(
        word,
        "ar" | "ara"
            | "arabic"
            | "exyu"
            | "ex"
            | "yu"
            | "eu"
            | "europe"
            | "latam"
            | "lat"
            | "latino"
            | "la"
            | "scan"
            | "nordic"
            | "africa"
            | "afr"
            | "asia"
            | "int"
            | "intl"
            | "world"
            | "en"
            | "eng"
            | "balkan"
            | "carib"
    )
}

/// Returns whether names of one channel differ in this word.
pub(crate) fn is_weak(word: &str) -> bool {
    matches!(word, "tv" | "channel" | "the" | "television")
}

/// Returns whether a word names the feed that is meant if no other is named.
pub(super) fn is_default_feed(word: &str) -> bool {
    matches!(word, "east" | "national")
}

/// Returns whether a word before "east" makes it a part of a name.
pub(super) fn is_before_east(word: &str) -> bool {
    matches!(word, "middle" | "near" | "far" | "south" | "north")
}

/// Returns the digits of a number that is written as a word.
pub(crate) fn digits(word: &str) -> Option<&'static str> {
    Some(match word {
        "zero" => "0",
        "one" | "uno" | "eins" | "een" => "1",
        "two" | "due" | "dos" | "deux" | "zwei" | "twee" | "dois" => "2",
        "three" | "tre" | "tres" | "trois" | "drei" | "drie" => "3",
        "four" | "quattro" | "cuatro" | "quatro" | "quatre" | "vier" => "4",
        "five" | "cinque" | "cinco" | "cinq" | "fuenf" | "funf" | "vijf" => "5",
        "six" | "seis" => "6",
        "seven" | "sieben" | "siete" | "sete" | "zeven" => "7",
        "eight" | "ocho" | "oito" => "8",
        "nine" | "neun" | "nueve" | "nove" | "negen" => "9",
        "ten" | "zehn" | "diez" => "10",
        "eleven" => "11",
        "twelve" => "12",
        _ => return None,
    })
}

/// Country codes that are also common words, so that they count only beside a separator or in brackets.
pub(crate) fn is_common_word(code: &str) -> bool {
    matches!(
        code,
        "am" | "arm"
            | "at"
            | "be"
            | "can"
            | "co"
            | "est"
            | "fin"
            | "geo"
            | "id"
            | "in"
            | "is"
            | "it"
            | "ma"
            | "mar"
            | "me"
            | "mex"
            | "my"
            | "no"
            | "nor"
            | "per"
            | "por"
            | "rom"
            | "sa"
            | "si"
            | "sui"
            | "us"
            | "den"
            | "col"
            | "ned"
    )
}

/// Country codes that begin a name without a separator.
pub(crate) fn is_leading_code(code: &str) -> bool {
    matches!(code, "uk" | "ger" | "fra" | "ita" | "esp" | "swe" | "pol" | "tur" | "rus" | "alb" | "exyu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quality_of_a_channel_is_in_its_name() {
        for (name, expected) in [
            ("News", None),
            ("News HEVC", None),
            ("News SD", Some(Quality::Standard)),
            ("News HD", Some(Quality::High)),
            ("DE | News FHD (backup)", Some(Quality::High)),
            ("News 1080p50", Some(Quality::High)),
            ("ESPNHD", Some(Quality::High)),
            ("News Full HD", Some(Quality::High)),
            ("News Ultra HD", Some(Quality::Ultra)),
            ("News 4K", Some(Quality::Ultra)),
            ("NewsUHD", Some(Quality::Ultra)),
            ("HD SD", Some(Quality::High)),
            ("", None),
        ] {
            assert_eq!(quality_of_name(name), expected, "{name}");
        }
    }
}
