//! What is damaged, in words for the person who runs the gateway.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;

/// DamagedItem records that are named; more are counted.
const NAMED_MAX: usize = 1_000;
/// Lines of a list that are printed.
const PRINTED_MAX: usize = 20;

/// Something that is not whole or does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedItem {
    /// Which, in words: `record 5 of channels`.
    pub what: String,
    pub why: String,
}

/// What is damaged: the first thousand by name, and how many there are.
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

/// Bytes as one reads them.
pub(crate) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1024.0 => format!("{bytes} B"),
        ..1_048_576.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{:.1} MiB", bytes / 1_048_576.0),
    }
}

/// Records per collection and problems, a line each.
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
            damage.add(format!("record {id} of notes"), &Error::DamagedRecord("it is gone".to_owned()));
        }
        let text = damage.to_string();
        assert_eq!((damage.named.len(), damage.n, text.lines().count()), (1_000, 1_500, 21));
        assert!(text.starts_with("  damaged: record 0 of notes: it is gone\n"), "{text}");
        assert!(text.ends_with("  damaged: 1480 more\n"), "{text}");
    }
}
