//! Reads the tables of a stream from its packets.

use super::packet::{PAT_PID, Packet};
use super::section::SectionAssembler;
use super::tables::{Pat, Pmt, StreamKind, Tables};

/// Number of PATs after which a programme is chosen although others have not been described yet: a programme that is
/// announced but absent must not leave the stream without tables.
const PATS_BEFORE_OTHER_PROGRAM: u32 = 4;
/// Number of PATs after which this may be a programme without picture and sound.
const PATS_BEFORE_DATA_PROGRAM: u32 = 20;
/// Number of PATs after which a programme without picture is kept, although one with a picture is described later.
const PATS_BEFORE_SETTLED: u32 = 40;
/// Maximum number of programmes whose PMTs are read.
const PROGRAMS_MAX: usize = 64;
/// Number of equal PMTs with a number that the PAT does not have after which the number is believed to be wrong.
const ODD_NUMBERS_MIN: u8 = 3;
/// Maximum number of PMTs with such numbers that are counted on one PID.
const ODD_NUMBERS_MAX: usize = 8;

/// Facts about the tables of a source that are known before its first packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableHints {
    /// The number of the programme to follow; `None` leaves the choice to the tables.
    pub program: Option<u16>,
    /// PIDs whose tables had a wrong checksum each time.
    pub wrong_checksums: Vec<u16>,
}

/// Reads the tables of a stream, packet by packet.
///
/// Of several programmes it follows the one that the hints name, or else the first with a picture; without one, the first
/// with sound. The choice lasts until the programme leaves the PAT.
#[derive(Debug, Default)]
pub struct TableReader {
    pat_sections: SectionAssembler,
    pat: Option<Pat>,
    /// Number of times a PAT with the current programmes was received.
    n_pats: u32,
    /// The announced programmes that may be followed, in the order of the PAT.
    programs: Vec<AnnouncedProgram>,
    map_pids: Vec<MapPid>,
    tables: Option<Tables>,
    /// Whether no other programme is followed until the current one leaves the PAT.
    is_settled: bool,
    /// Whether the tables have changed since [`TableReader::take_change`].
    has_change: bool,
    /// Present for a stream of a provider.
    hints: Option<TableHints>,
    /// Whether checksums are read while a fuzzer runs.
    is_checked: bool,
}

/// A programme of the PAT.
#[derive(Debug)]
struct AnnouncedProgram {
    number: u16,
    pid: u16,
    /// Its newest PMT, until the choice is settled.
    pmt: Option<Pmt>,
}

/// A PID with the PMTs of one or more programmes.
#[derive(Debug, Clone)]
struct MapPid {
    pid: u16,
    sections: SectionAssembler,
    numbers: MapNumbers,
}

/// The numbers in the PMTs of a PID.
#[derive(Debug, Clone, Default)]
struct MapNumbers {
    /// Whether a PMT had a number that the PAT has for this PID.
    had_right: bool,
    /// The number that stands for the one of the PAT.
    odd: Option<u16>,
    /// PMTs with other numbers, without their versions, and how often each was received.
    seen: Vec<(Pmt, u8)>,
}

impl TableReader {
    /// Creates a reader of a stream that obeys the standard, such as our own output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader of a stream of a provider. A PID without any right checksum is believed after some repetitions.
    pub fn from_hints(hints: &TableHints) -> Self {
        let reader = Self { hints: Some(hints.clone()), ..Self::default() };
        Self { pat_sections: reader.assembler(PAT_PID), ..reader }
    }

    /// Creates a reader of a stream in which these tables are in force.
    pub(crate) fn from_tables(tables: &Tables) -> Self {
        let mut reader = Self {
            n_pats: 1,
            pat: Some(tables.pat.clone()),
            tables: Some(tables.clone()),
            is_settled: true,
            ..Self::default()
        };
        reader.announce(&tables.pat);
        reader
    }

    /// Reads checksums also while a fuzzer runs.
    #[must_use]
    pub fn with_checked_sums(self) -> Self {
        Self { is_checked: true, pat_sections: self.pat_sections.with_checked_sums(true), ..self }
    }

    /// Returns the tables in force, once both are known.
    pub fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// Returns the newest PAT, which may be without the PMT of any programme.
    pub(crate) fn pat(&self) -> Option<&Pat> {
        self.pat.as_ref()
    }

    /// Returns whether this PID carries a table that is read.
    pub fn is_table(&self, pid: u16) -> bool {
        pid == PAT_PID || self.map_pids.iter().any(|it| it.pid == pid)
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

    /// Returns whether the tables in the packets differ from the tables in force, so that players would not accept them.
    pub(crate) fn has_corrections(&self) -> bool {
        self.had_wrong_checksum() || self.odd_number().is_some()
    }

    /// Returns whether a table had a wrong checksum.
    pub(crate) fn had_wrong_checksum(&self) -> bool {
        self.pat_sections.had_wrong_checksum()
            || self.map_pids.iter().any(|it| it.sections.had_wrong_checksum())
    }

    /// Returns the PIDs of the followed tables whose checksums were wrong each time.
    pub(crate) fn wrong_checksums(&self) -> Vec<u16> {
        let pat = self.pat_sections.accepts_wrong_checksums().then_some(PAT_PID);
        let map = self.followed_pid().filter(|it| it.sections.accepts_wrong_checksums()).map(|it| it.pid);
        pat.into_iter().chain(map).collect()
    }

    /// Returns the number in the PMTs of the followed programme, if the PAT has another one.
    pub(crate) fn odd_number(&self) -> Option<u16> {
        self.followed_pid()?.numbers.odd
    }

    fn followed_pid(&self) -> Option<&MapPid> {
        let pid = self.tables.as_ref()?.pmt_pid;
        self.map_pids.iter().find(|it| it.pid == pid)
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
        self.pat_sections.packet(packet, |section| {
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
            return self.choose();
        }
        // Some multiplexers count the version up at each repetition.
        if self.pat.as_ref().is_none_or(|it| it.programs != pat.programs) {
            self.n_pats = 1;
            self.announce(&pat);
        }
        let pat = self.pat.insert(pat);
        // The PMT stays in force if the entry of its programme is unchanged.
        let Some(tables) = &mut self.tables else { return self.choose() };
        if pat.programs.contains(&(tables.pmt.program, tables.pmt_pid)) {
            tables.pat = pat.clone();
        } else {
            (self.tables, self.is_settled) = (None, false);
            self.choose();
        }
        true
    }

    /// Takes the programmes of a PAT with what is known of them already.
    fn announce(&mut self, pat: &Pat) {
        let mut earlier = std::mem::take(&mut self.programs);
        let mut earlier_pids = std::mem::take(&mut self.map_pids);
        let wanted = self.hints.as_ref().and_then(|it| it.program);
        let followed = self.tables.as_ref().map(|it| (it.pmt.program, it.pmt_pid));
        for &(number, pid) in &pat.programs {
            let is_wanted = number != 0 && pid != PAT_PID && wanted.is_none_or(|it| it == number);
            let is_double = self.programs.iter().any(|it| (it.number, it.pid) == (number, pid));
            let is_full = self.programs.len() >= PROGRAMS_MAX && followed != Some((number, pid));
            if !is_wanted || is_double || is_full {
                continue;
            }
            let known = earlier.iter_mut().find(|it| (it.number, it.pid) == (number, pid));
            let pmt = known.and_then(|it| it.pmt.take());
            self.programs.push(AnnouncedProgram { number, pid, pmt });
            if self.map_pids.iter().all(|it| it.pid != pid) {
                let known = earlier_pids.iter().position(|it| it.pid == pid);
                let sections = match known {
                    Some(at) => earlier_pids.swap_remove(at).sections,
                    None => self.assembler(pid),
                };
                self.map_pids.push(MapPid { pid, sections, numbers: MapNumbers::default() });
            }
        }
    }

    fn assembler(&self, pid: u16) -> SectionAssembler {
        let assembler = match &self.hints {
            Some(hints) => SectionAssembler::tolerant(hints.wrong_checksums.contains(&pid)),
            None => SectionAssembler::default(),
        };
        assembler.with_checked_sums(self.is_checked)
    }

    fn map_packet(&mut self, packet: Packet<'_>, pid: u16) -> bool {
        let Some(at) = self.map_pids.iter().position(|it| it.pid == pid) else { return false };
        let mut found = Vec::new();
        self.map_pids[at].sections.packet(packet, |section| found.extend(Pmt::parse(section)));
        let mut has_changed = false;
        for pmt in found {
            if let Some(pmt) = self.numbered(at, pmt) {
                has_changed |= self.take_map(pmt, pid);
            }
        }
        has_changed
    }

    /// Returns a PMT under the number that the PAT has for its programme; `None` if the PAT has none.
    ///
    /// A number that the PAT does not have counts where the PID belongs to one programme alone, after some repetitions
    /// without a right one. Other players find a programme by its PID, too.
    fn numbered(&mut self, at: usize, pmt: Pmt) -> Option<Pmt> {
        let programs = &self.pat.as_ref()?.programs;
        let pid = self.map_pids[at].pid;
        let mut of_pid = programs.iter().filter(|it| it.1 == pid && it.0 != 0).map(|it| it.0);
        if of_pid.clone().any(|number| number == pmt.program) {
            self.map_pids[at].numbers = MapNumbers { had_right: true, ..MapNumbers::default() };
            return Some(pmt);
        }
        let number = of_pid.next()?;
        if of_pid.any(|it| it != number) {
            return None;
        }
        // The PMT of another programme that has a PID of its own.
        let is_elsewhere = |it: &MapPid| {
            it.numbers.had_right
                && programs.iter().any(|&(number, pid)| (number, pid) == (pmt.program, it.pid))
        };
        if self.map_pids.iter().any(is_elsewhere) {
            return None;
        }
        let is_believed = self.map_pids[at].numbers.is_believed(&pmt);
        is_believed.then_some(Pmt { program: number, ..pmt })
    }

    /// Takes a PMT of an announced programme and returns whether the tables in force have changed.
    fn take_map(&mut self, pmt: Pmt, pid: u16) -> bool {
        if let (Some(tables), Some(pat)) = (&mut self.tables, &self.pat)
            && (tables.pmt.program, tables.pmt_pid) == (pmt.program, pid)
        {
            let has_changed = tables.pmt != pmt;
            if has_changed {
                *tables = Tables { pat: pat.clone(), pmt, pmt_pid: pid };
            }
            return has_changed;
        }
        if self.is_settled {
            return false;
        }
        let is_it = |it: &&mut AnnouncedProgram| (it.number, it.pid) == (pmt.program, pid);
        let Some(program) = self.programs.iter_mut().find(is_it) else { return false };
        program.pmt = Some(pmt);
        self.choose()
    }

    /// Chooses the programme to follow, as long as that is not settled. Returns whether the tables in force have changed.
    fn choose(&mut self) -> bool {
        if self.is_settled {
            return false;
        }
        let followed = self.tables.as_ref().map(|it| (it.pmt.program, it.pmt_pid, rank(&it.pmt)));
        let ranks: Vec<Option<u8>> = self
            .programs
            .iter()
            .map(|it| match followed {
                Some((number, pid, rank)) if (number, pid) == (it.number, it.pid) => Some(rank),
                _ => it.pmt.as_ref().map(rank),
            })
            .collect();
        let chosen = choice(&ranks, self.n_pats);
        let has_better = |it: &usize| followed.is_none_or(|(_, _, rank)| ranks[*it] > Some(rank));
        let mut has_changed = false;
        if let Some(at) = chosen.filter(has_better)
            && let (Some(pmt), Some(pat)) = (self.programs[at].pmt.take(), &self.pat)
        {
            self.tables = Some(Tables { pat: pat.clone(), pmt, pmt_pid: self.programs[at].pid });
            has_changed = true;
        }
        let Some(tables) = &self.tables else { return false };
        self.is_settled = self.n_pats >= PATS_BEFORE_SETTLED || rank(&tables.pmt) == RANK_PICTURE;
        if self.is_settled {
            self.programs.iter_mut().for_each(|it| it.pmt = None);
        }
        has_changed
    }
}

impl MapNumbers {
    /// Returns whether a PMT with a number that the PAT does not have counts.
    fn is_believed(&mut self, pmt: &Pmt) -> bool {
        if self.had_right || self.odd.is_some() {
            return self.odd == Some(pmt.program);
        }
        let unversioned = Pmt { version: 0, ..pmt.clone() };
        let at = self.seen.iter().position(|it| it.0 == unversioned).unwrap_or_else(|| {
            if self.seen.len() == ODD_NUMBERS_MAX {
                self.seen.remove(0);
            }
            self.seen.push((unversioned, 0));
            self.seen.len() - 1
        });
        self.seen[at].1 += 1;
        let is_believed = self.seen[at].1 >= ODD_NUMBERS_MIN;
        if is_believed {
            *self = Self { odd: Some(pmt.program), ..Self::default() };
        }
        is_believed
    }
}

/// The rank of a programme with a picture.
const RANK_PICTURE: u8 = 2;

/// Returns how much of a programme people can watch: [`RANK_PICTURE`], 1 with sound alone, 0 with neither.
fn rank(pmt: &Pmt) -> u8 {
    let rank_of = |kind| match kind {
        StreamKind::Video => RANK_PICTURE,
        StreamKind::Audio => 1,
        StreamKind::Other => 0,
    };
    pmt.streams.iter().map(|it| rank_of(pmt.kind(it))).max().unwrap_or(0)
}

/// Returns the position of the programme to follow. `ranks` are those of the programmes in the order of the PAT, `None`
/// before the first PMT.
fn choice(ranks: &[Option<u8>], n_pats: u32) -> Option<usize> {
    let first = |rank: Option<u8>| ranks.iter().position(|it| *it == rank);
    let (unknown, picture) = (first(None), first(Some(RANK_PICTURE)));
    if let Some(picture) = picture
        && unknown.is_none_or(|it| it > picture)
    {
        return Some(picture);
    }
    let rank_min = match n_pats {
        _ if unknown.is_none() => 0,
        PATS_BEFORE_DATA_PROGRAM.. => 0,
        PATS_BEFORE_OTHER_PROGRAM.. => 1,
        _ => return None,
    };
    let best = ranks.iter().flatten().copied().max().filter(|it| *it >= rank_min)?;
    first(Some(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programme_with_a_picture_comes_before_those_without() {
        let check = |ranks: &[Option<u8>], n_pats, chosen| {
            assert_eq!(choice(ranks, n_pats), chosen, "{ranks:?} after {n_pats} PATs");
        };
        const NONE: Option<u8> = None;
        let (data, sound, picture) = (Some(0), Some(1), Some(2));
        check(&[], 99, None);
        for only in [data, sound, picture] {
            check(&[only], 1, Some(0));
        }
        check(&[NONE], 99, None);
        check(&[picture, NONE], 1, Some(0));
        check(&[data, picture, NONE], 1, Some(1));
        check(&[sound, data, picture, picture], 1, Some(2));
        // The first one may have a picture, too.
        check(&[NONE, picture], 3, None);
        check(&[NONE, picture], 4, Some(1));
        check(&[NONE, sound, picture], 4, Some(2));
        check(&[sound, NONE], 3, None);
        check(&[sound, NONE], 4, Some(0));
        check(&[data, NONE, sound], 4, Some(2));
        check(&[data, NONE], 19, None);
        check(&[data, NONE], 20, Some(0));
        // All are described.
        check(&[data, sound, sound], 1, Some(1));
        check(&[data, data], 1, Some(0));
    }
}
