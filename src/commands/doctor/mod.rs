//! `headwater doctor`: checks the machine, the data folder and the accounts, and says what to do.
//!
//! It works whether the gateway runs or not, and changes nothing.

mod accounts;
mod machine;

use std::fmt;
use std::process::ExitCode;

use config::{Config, DataFolder};

use crate::terminal::{printable, say};

/// Exit code if something prevents the gateway from working. Warnings alone give 0.
const EXIT_PROBLEMS: u8 = 1;

/// Runs all checks, and prints each finding as soon as it is there. Blocks.
pub(super) fn run(config: &Config) -> ExitCode {
    let folder = DataFolder::new(&config.data_dir);
    let mut report = CheckReport::default();
    machine::check(config, &folder, &mut report);
    accounts::check(config, &folder, &mut report);
    report.end()
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Verdict {
    Good,
    /// It works, but not as well as it could, or not for long.
    Warning,
    /// It prevents the gateway, or an account, from working.
    Problem,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Finding {
    verdict: Verdict,
    subject: String,
    /// The result as a sentence. Without credentials.
    message: String,
    /// The remedy as a sentence; empty if there is nothing to do.
    advice: String,
}

impl Finding {
    pub(in crate::commands) fn good(subject: &str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Good, subject, message.into(), "")
    }

    pub(in crate::commands) fn warning(subject: &str, message: impl Into<String>, advice: &str) -> Self {
        Self::new(Verdict::Warning, subject, message.into(), advice)
    }

    pub(in crate::commands) fn problem(subject: &str, message: impl Into<String>, advice: &str) -> Self {
        Self::new(Verdict::Problem, subject, message.into(), advice)
    }

    fn new(verdict: Verdict, subject: &str, message: String, advice: &str) -> Self {
        Self { verdict, subject: subject.to_owned(), message, advice: advice.to_owned() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "PROBLEM",
        };
        // Names of accounts and texts of servers must not control the terminal.
        write!(f, "{verdict:<8} {}: {}", printable(&self.subject), printable(&self.message))?;
        match self.advice.as_str() {
            "" => Ok(()),
            advice => write!(f, "\n         {advice}"),
        }
    }
}

/// Prints findings, and counts those that need attention.
#[derive(Debug, Default)]
pub(in crate::commands) struct CheckReport {
    n_warnings: usize,
    n_problems: usize,
}

impl CheckReport {
    pub(in crate::commands) fn add(&mut self, finding: Finding) {
        match finding.verdict {
            Verdict::Good => {}
            Verdict::Warning => self.n_warnings += 1,
            Verdict::Problem => self.n_problems += 1,
        }
        say(&finding.to_string());
    }

    pub(in crate::commands) fn end(self) -> ExitCode {
        say(&format!("\n{} problem(s), {} warning(s)", self.n_problems, self.n_warnings));
        if self.n_problems > 0 { ExitCode::from(EXIT_PROBLEMS) } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_its_advice_the_next_one() {
        let finding = Finding::problem("account \"a\u{1b}[2J\"", "it has expired", "Renew it.");
        assert_eq!(finding.to_string(), "PROBLEM  account \"a [2J\": it has expired\n         Renew it.");
        assert_eq!(Finding::good("clock", "right").to_string(), "ok       clock: right");
    }
}
