//! Sections of PAT and PMT with right and wrong checksums and numbers, repeated and damaged, through a table reader.
//!
//! The bytes are records: a byte that selects the table and its packing, a byte for the length, and the body of the section.

#![no_main]

use libfuzzer_sys::fuzz_target;
use media::ts::packet::{PAT_PID, Packet, PacketBytes};
use media::ts::table_reader::{TableHints, TableReader};
use media::ts::tables::{ElementaryStream, Pat, Pmt};

/// PIDs of tables; some of them are announced.
const PIDS: [u16; 4] = [0x100, 0x101, 0x200, 0x1FFE];
/// Maximum number of packets, so that one input takes little time.
const PACKETS_MAX: usize = 4_000;

fuzz_target!(|data: &[u8]| {
    let Some((first, mut data)) = data.split_first() else { return };
    let hints = TableHints {
        program: (first & 1 != 0).then_some(u16::from(first >> 4)),
        wrong_checksums: if first & 2 != 0 { vec![PAT_PID, PIDS[0]] } else { Vec::new() },
    };
    let mut reader = TableReader::from_hints(&hints).with_checked_sums();
    let (mut cc, mut n_packets) = (0, 0);
    while let [how, length, rest @ ..] = data {
        let (body, after) = rest.split_at(usize::from(*length).min(rest.len()));
        data = after;
        let pid = PIDS[usize::from(how & 3)];
        let mut packets = match how & 4 {
            0 => pat(body).packets(cc),
            _ => pmt(body).packets(pid, cc),
        };
        if how & 8 != 0 {
            // Anywhere, so also in the checksum, the length or the header.
            let at = usize::from(*length) % packets.len();
            packets[at][4 + usize::from(*how) % 184] ^= 1 << (how >> 5);
        }
        let n_times = if how & 16 != 0 { 12 } else { 1 };
        for _ in 0..n_times {
            n_packets += packets.len();
            if n_packets > PACKETS_MAX {
                return;
            }
            for packet in &packets {
                read(&mut reader, packet, &hints);
            }
        }
        cc = (cc + packets.len() as u8) & 0x0F;
    }
});

fn read(reader: &mut TableReader, packet: &PacketBytes, hints: &TableHints) {
    let before = reader.tables().cloned();
    let has_changed = reader.packet(Packet::new(packet));
    assert!(has_changed || reader.tables() == before.as_ref(), "a change that was not reported");
    let Some(tables) = reader.tables() else { return };
    let pair = (tables.pmt.program, tables.pmt_pid);
    assert!(pair.0 != 0 && tables.pat.programs.contains(&pair), "{pair:?} is not in the PAT");
    assert!(hints.program.is_none_or(|it| it == pair.0), "programme {} was not named", pair.0);
    assert!(reader.is_table(pair.1) && reader.is_table(PAT_PID));
}

/// Returns a PAT with a programme for each pair of bytes.
fn pat(body: &[u8]) -> Pat {
    let program = |it: &[u8; 2]| (u16::from(it[0] & 0x0F), PIDS[usize::from(it[1] & 3)]);
    let programs = body.as_chunks::<2>().0.iter().map(program).collect();
    Pat { stream_id: 1, version: body.first().map_or(0, |it| it >> 4), programs }
}

/// Returns a PMT with a stream for each pair of bytes after the first two.
fn pmt(body: &[u8]) -> Pmt {
    let [program, version, rest @ ..] = body else {
        return Pmt { program: 1, version: 0, pcr_pid: 0x300, program_info: Vec::new(), streams: Vec::new() };
    };
    let stream = |it: &[u8; 2]| ElementaryStream {
        stream_type: it[0],
        pid: 0x300 + u16::from(it[1]),
        descriptors: vec![0x0A; usize::from(it[1] & 0x1F)],
    };
    Pmt {
        program: u16::from(program & 0x1F),
        version: version & 0x1F,
        pcr_pid: 0x300,
        program_info: vec![0x0A; usize::from(version >> 5) * 20],
        streams: rest.as_chunks::<2>().0.iter().map(stream).collect(),
    }
}
