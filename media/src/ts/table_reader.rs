//! Reads the tables of a stream from its packets.

use super::packet::{PAT_PID, Packet};
use super::section::SectionAssembler;
use super::tables::{Pat, Pmt, Tables};

/// Number of PATs after which a programme other than the first is accepted: a first programme that is
/// announced but absent must not leave the stream without tables.
const PATS_BEFORE_OTHER_PROGRAM: u32 = 4;
/// Maximum number of programmes whose PMTs are read.
const PROGRAMS_MAX: usize = 64;

/// Reads the tables of a stream, packet by packet.
#[derive(Debug, Default)]
pub struct TableReader {
    pat_section: SectionAssembler,
    pat: Option<Pat>,
    /// Number of times the current PAT was received.
    n_pats: u32,
    /// Programme number, PMT PID and section assembler of each announced programme, in the order of the PAT.
    maps: Vec<(u16, u16, SectionAssembler)>,
    tables: Option<Tables>,
    /// Whether the tables have changed since [`TableReader::take_change`].
    has_change: bool,
}

impl TableReader {
    /// Creates a reader without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader of a stream in which these tables are in force.
    pub(crate) fn from_tables(tables: &Tables) -> Self {
        let mut reader = Self {
            n_pats: 1,
            pat: Some(tables.pat.clone()),
            tables: Some(tables.clone()),
            ..Self::default()
        };
        let programs = tables.pat.programs.iter().filter(|(number, pid)| *number != 0 && *pid != PAT_PID);
        reader.maps =
            programs.take(PROGRAMS_MAX).map(|(number, pid)| (*number, *pid, Default::default())).collect();
        reader
    }

    /// Returns the tables in force, once both are known.
    pub fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// Returns whether this PID carries a table that is read.
    pub fn is_table(&self, pid: u16) -> bool {
        pid == PAT_PID || self.maps.iter().any(|(_, map_pid, _)| *map_pid == pid)
    }

    /// Reads one packet and returns whether the content of the tables in force has changed or is known for
    /// the first time. Packets without tables cost a few comparisons.
    #[inline]
    pub fn packet(&mut self, packet: Packet<'_>) -> bool {
        self.is_table(packet.pid()) && self.table_packet(packet)
    }

    /// Returns whether the tables have changed since the last call.
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_change)
    }

    fn table_packet(&mut self, packet: Packet<'_>) -> bool {
        let pid = packet.pid();
        let has_changed = if pid == PAT_PID { self.pat_packet(packet) } else { self.map_packet(packet, pid) };
        self.has_change |= has_changed;
        has_changed
    }

    fn pat_packet(&mut self, packet: Packet<'_>) -> bool {
        let mut found = None;
        let mut n = 0;
        self.pat_section.packet(packet, |section| {
            // The first section of a very long PAT is sufficient, because it contains the first programmes.
            if section.get(6) == Some(&0)
                && let Some(pat) = Pat::parse(section)
            {
                n += 1;
                found = Some(pat);
            }
        });
        let Some(pat) = found else { return false };
        self.n_pats = self.n_pats.saturating_add(n);
        if self.pat.as_ref() == Some(&pat) {
            return false;
        }
        self.n_pats = 1;
        let earlier = std::mem::take(&mut self.maps);
        let programs = pat.programs.iter().filter(|(number, pid)| *number != 0 && *pid != PAT_PID);
        self.maps = programs
            .take(PROGRAMS_MAX)
            .map(|(number, pid)| {
                let known = earlier.iter().find(|(_, map_pid, _)| map_pid == pid);
                (*number, *pid, known.map(|(_, _, it)| it.clone()).unwrap_or_default())
            })
            .collect();
        let pat = self.pat.insert(pat);
        // The PMT stays in force if the entry of its programme is unchanged.
        let Some(tables) = &mut self.tables else { return false };
        if pat.programs.contains(&(tables.pmt.program, tables.pmt_pid)) {
            tables.pat = pat.clone();
        } else {
            self.tables = None;
        }
        true
    }

    fn map_packet(&mut self, packet: Packet<'_>, pid: u16) -> bool {
        let followed = self.tables.as_ref().map(|it| it.pmt.program);
        let mut found = None;
        // Several programmes may share one PMT PID; each section contains its programme number.
        let numbers: Vec<u16> = self.maps.iter().filter(|it| it.1 == pid).map(|it| it.0).collect();
        let Some((_, _, assembler)) = self.maps.iter_mut().find(|it| it.1 == pid) else { return false };
        let (first, prefers_first) = (self.pat.as_ref(), self.n_pats < PATS_BEFORE_OTHER_PROGRAM);
        let first = first.and_then(|it| it.programs.iter().find(|(number, _)| *number != 0)).map(|it| it.0);
        assembler.packet(packet, |section| {
            let Some(pmt) = Pmt::parse(section) else { return };
            let wanted = match followed {
                Some(program) => program == pmt.program,
                None => first == Some(pmt.program) || !prefers_first,
            };
            if wanted && numbers.contains(&pmt.program) {
                found = Some(pmt);
            }
        });
        let (Some(pmt), Some(pat)) = (found, &self.pat) else { return false };
        if self.tables.as_ref().is_some_and(|it| it.pmt == pmt && it.pmt_pid == pid) {
            return false;
        }
        self.tables = Some(Tables { pat: pat.clone(), pmt, pmt_pid: pid });
        true
    }
}
