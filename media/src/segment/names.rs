//! The names of segments in playlists.

use std::fmt::Write;

use super::settings::SegmentContainer;

/// The rule for the addresses of segments in a playlist, relative to the address of the playlist: a prefix, the name, and
/// a suffix, for example `hls/`, `1764190000.ts` and `?token=…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentNames {
    /// Text before each name.
    pub prefix: String,
    /// Text after each name.
    pub suffix: String,
}

/// The meaning of the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentName {
    /// The initialisation segment of this version: `init-VERSION.mp4`.
    Init(u32),
    /// The segment with this number: `NUMBER.ts` or `NUMBER.m4s`.
    Segment(u64),
    /// A part of a segment: `NUMBER.PART.m4s`.
    Part(u64, u32),
}

impl SegmentName {
    /// Parses a name without prefix and suffix; `None` if it is not a name of this container.
    pub fn parse(name: &str, container: SegmentContainer) -> Option<Self> {
        let digits = |text: &str| {
            let is_number =
                !text.is_empty() && text.len() <= 20 && text.bytes().all(|it| it.is_ascii_digit());
            is_number.then(|| text.parse::<u64>().ok()).flatten()
        };
        let short = |text: &str| digits(text).and_then(|it| u32::try_from(it).ok());
        let (stem, extension) = name.rsplit_once('.')?;
        if container == SegmentContainer::Fmp4 && extension == "mp4" {
            return short(stem.strip_prefix("init-")?).map(Self::Init);
        }
        if extension != container.extension() {
            return None;
        }
        match stem.split_once('.') {
            Some((number, part)) if container == SegmentContainer::Fmp4 => {
                Some(Self::Part(digits(number)?, short(part)?))
            }
            Some(_) => None,
            None => digits(stem).map(Self::Segment),
        }
    }
}

impl SegmentNames {
    /// Appends the address of a segment, a part or an initialisation segment.
    pub fn write(&self, out: &mut String, name: SegmentName, container: SegmentContainer) {
        out.push_str(&self.prefix);
        let extension = container.extension();
        // Writing to a text cannot fail.
        let _ = match name {
            SegmentName::Init(version) => write!(out, "init-{version}.mp4"),
            SegmentName::Segment(number) => write!(out, "{number}.{extension}"),
            SegmentName::Part(number, part) => write!(out, "{number}.{part}.{extension}"),
        };
        out.push_str(&self.suffix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_were_written_and_nothing_else_is() {
        use SegmentContainer::{Fmp4, Ts};
        let names = SegmentNames { prefix: "a/".to_owned(), suffix: "?t=1".to_owned() };
        let all = [
            (Ts, SegmentName::Segment(17), "17.ts"),
            (Fmp4, SegmentName::Segment(u64::MAX), "18446744073709551615.m4s"),
            (Fmp4, SegmentName::Part(9, 3), "9.3.m4s"),
            (Fmp4, SegmentName::Init(2), "init-2.mp4"),
        ];
        for (container, name, text) in all {
            let mut out = String::new();
            names.write(&mut out, name, container);
            assert_eq!(out, format!("a/{text}?t=1"));
            assert_eq!(SegmentName::parse(text, container), Some(name));
        }
        for wrong in
            ["", ".ts", "x.ts", "1.m4s", "1.2.ts", "-1.ts", "+1.ts", "99999999999999999999.ts", "init-1.mp4"]
        {
            assert_eq!(SegmentName::parse(wrong, Ts), None, "{wrong}");
        }
        for wrong in ["1.ts", "1.2.3.m4s", "init-.mp4", "init-4294967296.mp4", "1..m4s"] {
            assert_eq!(SegmentName::parse(wrong, Fmp4), None, "{wrong}");
        }
    }
}
