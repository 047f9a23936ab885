//! The report of an import: how many records of each kind are taken, changed and skipped, and why.

use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of findings of one kind that are kept and printed; more are counted.
const FINDINGS_MAX: usize = 50;

/// The result of an import, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// By kind, in the order of the first use.
    kinds: Vec<(&'static str, KindReport)>,
    /// Secrets that cannot be read, and the remedy.
    secrets: Findings,
    /// Tables, columns and kinds of records that were not found or have no place.
    notes: Findings,
}

/// The result of one kind of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindReport {
    /// Number of records that are new in the store.
    pub taken: u64,
    /// Number of records that the store had already, and that are used instead.
    pub merged: u64,
    changed: Findings,
    skipped: Findings,
}

/// Sentences about records, of which the first are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Findings {
    count: u64,
    first: Vec<String>,
    /// Numbers of findings by reason, of those that are not kept.
    others: BTreeMap<String, u64>,
}

impl Findings {
    fn add(&mut self, what: impl fmt::Display, reason: &str) {
        self.count += 1;
        if self.first.len() < FINDINGS_MAX {
            self.first.push(format!("{what}: {reason}"));
        } else if self.others.len() < FINDINGS_MAX || self.others.contains_key(reason) {
            *self.others.entry(reason.to_owned()).or_default() += 1;
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        for text in &self.first {
            writeln!(f, "  {title}{text}")?;
        }
        for (reason, count) in &self.others {
            writeln!(f, "  {title}{count} more: {reason}")?;
        }
        Ok(())
    }
}

impl Report {
    /// Returns the result of a kind of records.
    pub fn kind(&mut self, label: &'static str) -> &mut KindReport {
        let at = self.kinds.iter().position(|it| it.0 == label).unwrap_or_else(|| {
            self.kinds.push((label, KindReport::default()));
            self.kinds.len() - 1
        });
        &mut self.kinds[at].1
    }

    /// Adds a secret that cannot be read.
    pub fn secret(&mut self, what: impl fmt::Display, remedy: &str) {
        self.secrets.add(what, remedy);
    }

    /// Adds a remark about something that was not found or has no place.
    pub fn note(&mut self, what: impl fmt::Display, text: &str) {
        self.notes.add(what, text);
    }

    /// Returns the numbers of a kind: taken, merged, changed and skipped.
    pub fn numbers(&self, label: &str) -> (u64, u64, u64, u64) {
        let found = self.kinds.iter().find(|it| it.0 == label);
        found.map_or((0, 0, 0, 0), |(_, it)| (it.taken, it.merged, it.changed.count, it.skipped.count))
    }
}

impl KindReport {
    /// Adds a record that is taken with a change.
    pub fn change(&mut self, what: impl fmt::Display, reason: &str) {
        self.changed.add(what, reason);
    }

    /// Adds a record that is not taken.
    pub fn skip(&mut self, what: impl fmt::Display, reason: &str) {
        self.skipped.add(what, reason);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (label, kind) in &self.kinds {
            write!(f, "{label}: {} taken", kind.taken)?;
            for (count, text) in [
                (kind.merged, "already there"),
                (kind.changed.count, "changes"),
                (kind.skipped.count, "skipped"),
            ] {
                if count > 0 {
                    write!(f, ", {count} {text}")?;
                }
            }
            writeln!(f)?;
            kind.changed.print(f, "changed: ")?;
            kind.skipped.print(f, "skipped: ")?;
        }
        for (title, findings) in
            [("Secrets that cannot be read:", &self.secrets), ("Not found or not kept:", &self.notes)]
        {
            if findings.count > 0 {
                writeln!(f, "{title}")?;
                findings.print(f, "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_everything_and_prints_a_bounded_number_of_findings() {
        let mut report = Report::default();
        report.kind("channels").taken = 2;
        for number in 0..1000 {
            report.kind("channels").skip(format!("channel {number}"), "it has no name");
        }
        report.secret("password of user anna", "set one");
        let text = report.to_string();
        assert!(text.starts_with("channels: 2 taken, 1000 skipped\n"), "{text}");
        assert!(text.contains("  skipped: 950 more: it has no name\n"), "{text}");
        assert!(text.ends_with("Secrets that cannot be read:\n  password of user anna: set one\n"), "{text}");
        assert!(text.lines().count() < 60);
        assert_eq!(report.numbers("channels"), (2, 0, 0, 1000));
    }
}
