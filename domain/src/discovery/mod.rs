//! How media servers find the emulated tuners by themselves: the discovery of HDHomeRun devices ([`hdhomerun`]) and that
//! of UPnP ([`ssdp`]). Requests come from anybody on the network: the parsers take any bytes, and [`AnswerLimit`] bounds
//! the answers. [`device`] reads what the tuners of providers say about themselves.

pub mod device;
pub mod hdhomerun;
pub mod ssdp;

use std::collections::HashMap;
use std::net::IpAddr;

/// Maximum number of devices that are announced. One request causes an answer for each of them.
pub const ANNOUNCED_MAX: usize = 8;

/// A device as it is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedDevice {
    /// Identity for media servers.
    pub device_id: String,
    /// Number of simultaneous streams.
    pub tuner_count: u32,
    /// Address of the device without a trailing slash, as the client can reach it.
    pub base_url: String,
}

/// Maximum number of answered requests of one source in a second.
const PER_SOURCE_MAX: u32 = 5;
/// Maximum number of answered requests in a second. Also bounds the number of sources that are counted.
const ALL_MAX: u32 = 50;
const SECOND_MS: i64 = 1000;

/// Bounds the number of answered requests, so that nobody can use the gateway to flood another device.
#[derive(Debug, Default)]
pub struct AnswerLimit {
    /// Milliseconds since 1970.
    began_at: i64,
    n_answered: u32,
    by_source: HashMap<IpAddr, u32>,
}

impl AnswerLimit {
    /// Counts a request, and returns whether it may be answered. `now` is in milliseconds since 1970.
    pub fn allows(&mut self, source: IpAddr, now: i64) -> bool {
        // The clock may have been set back.
        if !(0..SECOND_MS).contains(&now.saturating_sub(self.began_at)) {
            *self = Self { began_at: now, ..Self::default() };
        }
        if self.n_answered >= ALL_MAX {
            return false;
        }
        let of_source = self.by_source.entry(source).or_default();
        if *of_source >= PER_SOURCE_MAX {
            return false;
        }
        *of_source += 1;
        self.n_answered += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_answers_of_a_second_are_limited_by_source_and_in_total() {
        let mut limit = AnswerLimit::default();
        let address = |n: u32| IpAddr::from(Ipv4Addr::from_bits(n));
        let answered = |limit: &mut AnswerLimit, source, at| {
            (0..100).filter(|_| limit.allows(address(source), at)).count()
        };
        assert_eq!((answered(&mut limit, 1, 5_000), answered(&mut limit, 1, 5_999)), (5, 0));
        assert_eq!((2..100).map(|it| answered(&mut limit, it, 5_500)).sum::<usize>(), 45);
        assert!(limit.by_source.len() <= ALL_MAX as usize);
        assert_eq!(answered(&mut limit, 1, 6_000), 5);
        assert_eq!(answered(&mut limit, 1, 3_000), 5, "the clock was set back");
    }
}
