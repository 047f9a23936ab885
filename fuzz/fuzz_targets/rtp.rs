//! Packets of RTP: no datagram makes a panic, what waits is bounded and does not wait for ever, and every packet comes out
//! at most once and in the order of its sequence.
#![no_main]

use std::time::Duration;

use bytes::BytesMut;
use domain::udp_output::UdpOutputAddress;
use libfuzzer_sys::fuzz_target;
use media::check_udp_address;
use media::rtp::{REORDER_BYTES_MAX, REORDER_TIME_MAX, RtpHeader, RtpSequence, write_header};
use tokio::time::Instant;

/// A step: the time that passes before it in milliseconds, and a packet.
type Step = (u8, u16, bool);

fuzz_target!(|input: (&[u8], Vec<Step>, &str)| {
    let (datagram, steps, address) = input;
    if let Some((header, payload)) = RtpHeader::parse(datagram) {
        assert!(payload.len() + 12 <= datagram.len());
        // A header without sources, extension and padding reads back.
        let mut written = Vec::new();
        write_header(&header, &mut written);
        written.extend_from_slice(payload);
        let (again, same) = RtpHeader::parse(&written).expect("our own packet is valid");
        assert_eq!((again, same), (header, payload));
    }
    let _ = check_udp_address(address);
    if let Ok(read) = address.parse::<UdpOutputAddress>() {
        assert_eq!(read.to_string().parse(), Ok(read));
    }

    let (mut sequence, mut now, mut out) = (RtpSequence::default(), Instant::now(), BytesMut::new());
    let mut n_pushed = 0;
    for (ms, number, is_second) in steps {
        now += Duration::from_millis(u64::from(ms));
        let header =
            RtpHeader { payload_type: 33, sequence: number, timestamp: 0, sender: u32::from(is_second) };
        sequence.push(&header, &[1], now, &mut out);
        n_pushed += 1;
        assert!(sequence.deadline().is_none_or(|it| it > now && it <= now + REORDER_TIME_MAX));
    }
    sequence.expire(now + REORDER_TIME_MAX, &mut out);
    assert_eq!(sequence.deadline(), None, "nothing waits for ever");
    let n_dropped = usize::try_from(sequence.counts().dropped).expect("few packets");
    assert_eq!(out.len() + n_dropped, n_pushed, "each comes out once, or is dropped");
    assert!(out.len() <= REORDER_BYTES_MAX.max(n_pushed));
});
