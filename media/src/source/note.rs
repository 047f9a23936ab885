//! Facts about a stream that a person should know, although it plays.

use std::fmt;

/// A fact about the stream of a source that a person should know, although it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceNote {
    /// All tables on this PID have a wrong checksum.
    TableChecksum(u16),
    /// PAT and PMT have different numbers for the programme.
    ProgramNumber {
        /// The number in the PAT.
        pat: u16,
        /// The number in the PMT.
        pmt: u16,
    },
    /// A programme was chosen that is not the first one.
    ProgramChosen {
        /// Its number.
        number: u16,
        /// How many programmes the stream has.
        n_programs: usize,
    },
}

impl SourceNote {
    /// Returns a label for timelines and the health of streams, from a fixed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::TableChecksum(_) => "table_checksum",
            Self::ProgramNumber { .. } => "program_number",
            Self::ProgramChosen { .. } => "program_chosen",
        }
    }
}

impl fmt::Display for SourceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableChecksum(pid) => write!(f, "the tables on PID {pid} have wrong checksums"),
            Self::ProgramNumber { pat, pmt } => {
                write!(f, "the PMT of programme {pat} has the number {pmt}")
            }
            Self::ProgramChosen { number, n_programs } => {
                write!(f, "programme {number} is chosen among {n_programs}")
            }
        }
    }
}
