//! Lists of damaged records, formatted for the person who runs the gateway.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;

/// Maximum number of damaged records that are named; further ones are only counted.
const NAMED_MAX: usize = 1_000;
/// Maximum number of lines that are printed.
const PRINTED_MAX: usize = 20;

/// A record, block or other value that is not intact or cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedItem {
    /// Name, such as `record 5 of channels`.
    pub what: String,
    pub why: String,
}

/// The damaged values of a store: the first thousand by name, and their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    pub named: Vec<DamagedItem>,
    pub n: u64,
}

impl Damage {
    pub(crate) fn add(&mut self, what: String, why: &Error) {
        self.n += 1;
        if self.named.len() < NAMED_MAX {
            let why = match why {
                Error::DamagedRecord(why) => why.clone(),
                other => other.to_string(),
            };
            self.named.push(DamagedItem { what, why });
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in self.named.iter().take(PRINTED_MAX) {
            writeln!(f, "  damaged: {}: {}", it.what, it.why)?;
        }
        match self.n.saturating_sub(PRINTED_MAX as u64) {
            0 => Ok(()),
            more => writeln!(f, "  damaged: {more} more"),
        }
    }
}

/// Formats a number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1024.0 => format!("{bytes} B"),
        ..1_048_576.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{:.1} MiB", bytes / 1_048_576.0),
    }
}

/// Writes one line for each collection, damaged record and problem.
pub(crate) fn print_lines(
    f: &mut fmt::Formatter<'_>,
    records: &BTreeMap<String, u64>,
    damage: &Damage,
    problems: &[String],
) -> fmt::Result {
    for (name, n) in records {
        writeln!(f, "  {n:>9} {name}")?;
    }
    write!(f, "{damage}")?;
    problems.iter().try_for_each(|it| writeln!(f, "  problem: {it}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_damaged_records_are_named_twenty_are_printed_and_all_are_counted() {
        let mut damage = Damage::default();
        for id in 0..1_500 {
            damage.add(format!("record {id} of notes"), &Error::DamagedRecord("missing".to_owned()));
        }
        let text = damage.to_string();
        assert_eq!((damage.named.len(), damage.n, text.lines().count()), (1_000, 1_500, 21));
        assert!(text.starts_with("  damaged: record 0 of notes: missing\n"), "{text}");
        assert!(text.ends_with("  damaged: 1480 more\n"), "{text}");
    }
}
