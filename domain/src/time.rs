//! Timestamps in the format of the API. The current time is always an argument.

use jiff::Timestamp;

/// Formats a time as ISO 8601 in UTC with milliseconds: `2031-05-04T07:08:09.010Z`.
///
/// `at_ms` is milliseconds since 1970-01-01, negative before. A time outside the years -9999 to 9999 is formatted as the
/// nearest one within them.
pub fn iso_millis(at_ms: i64) -> String {
    let nearest = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let time = Timestamp::from_millisecond(at_ms).unwrap_or(nearest);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_in_utc_with_milliseconds() {
        assert_eq!(iso_millis(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_millis(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(iso_millis(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso_millis(1_735_689_599_999), "2024-12-31T23:59:59.999Z");
        assert_eq!(iso_millis(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_time_out_of_range_is_written_as_the_nearest_one_in_range() {
        assert_eq!(iso_millis(253_402_300_800_000), "9999-12-30T22:00:00.999Z");
        assert_eq!(iso_millis(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert_eq!(iso_millis(i64::MIN), "-009999-01-02T01:59:59.000Z");
    }
}
