//! The forms in which clients write the start of a programme.

use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

/// Maximum length of a start, in bytes.
const BYTES_MAX: usize = 40;
/// The years in which a start can be.
const YEARS: std::ops::RangeInclusive<i16> = 1990..=2200;

/// A text that is not a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid start, expected for example 2026-01-31T18:30:00Z, 2026-01-31:18-30 or 1769884200")]
pub struct StartError;

/// Reads the start of a programme. Returns seconds since 1970.
///
/// Accepted are seconds or milliseconds since 1970, and a date with a time in the forms that player apps send:
/// `2026-01-31:18-30`, `2026-01-31_18-30-00`, `2026-01-31 18:30:00`, `20260131183000`, and ISO 8601. Without a zone, the time
/// is in UTC.
///
/// # Errors
/// It has another form, or is far from the present.
pub fn parse_start(text: &str) -> Result<i64, StartError> {
    let text = text.trim();
    if text.is_empty() || text.len() > BYTES_MAX || !text.is_ascii() {
        return Err(StartError);
    }
    let seconds = match text.bytes().all(|it| it.is_ascii_digit()) {
        true => parse_digits(text),
        false => parse_parts(text),
    };
    let seconds = seconds.ok_or(StartError)?;
    let time = jiff::Timestamp::from_second(seconds).map_err(|_| StartError)?;
    let year = Offset::UTC.to_datetime(time).year();
    if YEARS.contains(&year) { Ok(seconds) } else { Err(StartError) }
}

fn parse_digits(text: &str) -> Option<i64> {
    match text.len() {
        9..=11 => text.parse().ok(),
        13 => text.parse::<i64>().ok().map(|it| it.div_euclid(1000)),
        12 | 14 => seconds(date(&text[..8])?, time(&text[8..])?, Offset::UTC),
        _ => None,
    }
}

fn parse_parts(text: &str) -> Option<i64> {
    // The date has eight digits, with or without hyphens.
    let length = if text.as_bytes().get(4) == Some(&b'-') { 10 } else { 8 };
    let (day, rest) = text.split_at_checked(length)?;
    let rest = rest.strip_prefix([':', '_', ' ', '+', 'T', 't', '-'])?;
    let (clock, zone) = split_zone(rest)?;
    seconds(date(day)?, time(clock)?, zone)
}

/// Splits `18:30:00+02:00` into the time and its offset.
fn split_zone(text: &str) -> Option<(&str, Offset)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, Offset::UTC));
    }
    // A hyphen separates parts of the time as well; an offset follows seconds or has a colon.
    let is_offset = |it: &str| {
        it.len() == 6 && it.as_bytes()[3] == b':'
            || it.len() == 5 && it[1..].bytes().all(|it| it.is_ascii_digit())
    };
    for length in [6, 5] {
        let Some((clock, offset)) = text.len().checked_sub(length).and_then(|at| text.split_at_checked(at))
        else {
            continue;
        };
        let sign = match offset.as_bytes()[0] {
            b'+' => 1,
            b'-' if clock.contains(':') => -1,
            _ => continue,
        };
        if is_offset(offset) {
            let digits: String = offset[1..].chars().filter(|it| *it != ':').collect();
            let (hours, minutes): (i32, i32) =
                (digits.get(..2)?.parse().ok()?, digits.get(2..)?.parse().ok()?);
            let offset = Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok()?;
            return (minutes < 60).then_some((clock.trim_end(), offset));
        }
    }
    Some((text, Offset::UTC))
}

fn date(text: &str) -> Option<Date> {
    let digits = match text.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _] => [&text[..4], &text[5..7], &text[8..]].concat(),
        _ => text.to_owned(),
    };
    let number = |at: std::ops::Range<usize>| number(digits.get(at)?);
    Date::new(number(0..4)?, number(4..6)?.try_into().ok()?, number(6..8)?.try_into().ok()?).ok()
}

/// Reads `18-30`, `18:30:00`, `18:30:00.000`, `1830` and `183000`.
fn time(text: &str) -> Option<Time> {
    let text = match text.split_once('.') {
        Some((time, fraction)) if !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit()) => {
            time
        }
        Some(_) => return None,
        None => text,
    };
    let parts: Vec<&str> = match text.contains([':', '-']) {
        true => text.split([':', '-']).collect(),
        false => match text.len() {
            4 => vec![&text[..2], &text[2..]],
            6 => vec![&text[..2], &text[2..4], &text[4..]],
            _ => return None,
        },
    };
    let number = |it: &&str| number(it)?.try_into().ok();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return None,
    };
    Time::new(hours, minutes, seconds, 0).ok()
}

/// Reads digits without a sign.
fn number(text: &str) -> Option<i16> {
    let is_plain = (1..=4).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

fn seconds(date: Date, time: Time, zone: Offset) -> Option<i64> {
    let at = TimeZone::fixed(zone).to_timestamp(date.to_datetime(time)).ok()?;
    Some(at.as_second())
}
