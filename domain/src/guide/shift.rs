//! Offsets of guides: how many minutes later the programmes of a channel are than the guide says.
//!
//! The offset of a channel is its own, or that of its first stream; that of its guide source is added. Programmes are stored
//! as the guide says, and moved when they are read for a channel.

/// The attribute of playlists with an offset in hours, of an entry or of all entries
/// (<https://github.com/kodi-pvr/pvr.iptvsimple>, "tvg-shift").
pub const SHIFT_ATTRIBUTE: &str = "tvg-shift";
/// The offsets that playlists may state, in minutes: as far as the zones of the world are apart from UTC.
const LISTED_MIN: f64 = -12.0 * 60.0;
const LISTED_MAX: f64 = 14.0 * 60.0;
/// Maximum offset that an admin sets, in minutes either way.
pub const OFFSET_MINUTES_MAX: i16 = 24 * 60;

/// Returns the offset of an entry in minutes: that of the first valid attribute, 0 without one. Attributes of the first line
/// of the playlist follow those of the entry.
pub fn offset_of_attributes(attributes: &[(String, String)]) -> i16 {
    let mut stated = attributes.iter().filter(|it| it.0 == SHIFT_ATTRIBUTE);
    stated.find_map(|it| offset_of_hours(&it.1)).unwrap_or_default()
}

/// Reads hours as playlists write them, such as `+1`, `-3.5`, `5,75` or `05:30`, into minutes.
fn offset_of_hours(text: &str) -> Option<i16> {
    // The minus sign of typesetting.
    let text = text.trim().replacen('\u{2212}', "-", 1);
    let minutes = match text.split_once(':') {
        Some((hours, minutes)) => {
            let sign = if hours.starts_with('-') { -1.0 } else { 1.0 };
            let is_part = minutes.len() == 2 && minutes.bytes().all(|it| it.is_ascii_digit());
            let of_hour = minutes.parse::<f64>().ok().filter(|it| is_part && *it < 60.0)?;
            sign * (number(hours)?.abs() * 60.0 + of_hour)
        }
        None => number(&text)? * 60.0,
    };
    let minutes = Some(minutes.round()).filter(|it| (LISTED_MIN..=LISTED_MAX).contains(it));
    // The range fits.
    minutes.map(|it| it as i16)
}

/// Reads a decimal number without an exponent.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|it| it.is_ascii_digit() || b"+-.,".contains(&it));
    text.replace(',', ".").parse().ok().filter(|_| is_decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_read_in_hours_with_fractions() {
        for (text, minutes) in [
            ("1", 60),
            ("+1", 60),
            (" -3 ", -180),
            ("-3.5", -210),
            ("\u{2212}3.5", -210),
            ("5,75", 345),
            ("0.01", 1),
            ("05:30", 330),
            ("-0:30", -30),
            ("+09:45", 585),
            ("14", 840),
            ("-12", -720),
            ("0", 0),
        ] {
            assert_eq!(offset_of_hours(text), Some(minutes), "{text}");
        }
        for text in
            ["", "x", "1h", "14.5", "-12.1", "NaN", "inf", "1e1", "99999999999", "1:5", "1:60", "1:-5"]
        {
            assert_eq!(offset_of_hours(text), None, "{text}");
        }
    }

    #[test]
    fn the_offset_of_an_entry_replaces_that_of_the_first_line() {
        let offset = |values: &[&str]| {
            let attributes: Vec<_> =
                values.iter().map(|it| (SHIFT_ATTRIBUTE.to_owned(), (*it).to_owned())).collect();
            offset_of_attributes(&attributes)
        };
        assert_eq!(offset(&["1", "2"]), 60);
        assert_eq!(offset(&["0", "2"]), 0);
        assert_eq!(offset(&["soon", "2"]), 120, "an invalid one states nothing");
        assert_eq!(offset(&[]), 0);
        assert_eq!(offset_of_attributes(&[("timeshift".to_owned(), "7".to_owned())]), 0);
    }
}
