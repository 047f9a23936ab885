//! The picture of a source whose other streams play already: it begins with one that a decoder can begin with.
use std::time::Duration;

use crate::ts::packet::Packet;
use crate::ts::pes::is_pes_start;
use crate::ts::random_access::RandomAccess;

/// An event of the picture of a source that replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureEvent {
    /// Other streams play, and the picture follows at its next random-access point.
    Awaited {
        /// Longest wait for it.
        at_most: Duration,
    },
    /// The picture that was awaited begins at a random-access point.
    Began {
        /// Time for which the others have played.
        waited: Duration,
    },
    /// The picture begins without a random-access point, because none came in time or the source has none.
    NoKeyFrame,
}

/// The fate of a packet of a picture that is left out until its next random-access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldPicture {
    /// It is not sent.
    LeftOut,
    /// The picture begins with it, at a random-access point.
    AtPoint,
    /// The picture begins with it, because the wait is over.
    Anywhere,
}

/// A picture that is left out until its next random-access point.
#[derive(Debug)]
pub(crate) struct PictureHold {
    access: RandomAccess,
    since: Duration,
    /// When any picture is sent.
    until: Duration,
    /// Whether the encoder announced a random-access point in a packet without payload.
    access_announced: bool,
}

impl PictureHold {
    /// Holds the video with these random-access points from `since` on; `None` if the programme has no video.
    pub(crate) fn new(access: RandomAccess, since: Duration, until: Duration) -> Option<Self> {
        let is_video = matches!(access, RandomAccess::Video { .. });
        is_video.then_some(PictureHold { access, since, until, access_announced: false })
    }

    /// Returns the same for a programme whose tables have changed.
    pub(crate) fn with_access(self, access: RandomAccess) -> Option<Self> {
        Self::new(access, self.since, self.until)
    }

    /// Determines what happens to this packet of the video. `fits`: the picture that starts here is not before the end of
    /// the output.
    pub(crate) fn packet(&mut self, packet: Packet<'_>, at: Duration, fits: bool) -> HeldPicture {
        let is_point = self.access.is_start(packet);
        if !is_pes_start(packet) {
            self.access_announced |= is_point && !packet.has_payload();
            return HeldPicture::LeftOut;
        }
        let is_point = is_point | std::mem::take(&mut self.access_announced);
        match fits {
            true if is_point => HeldPicture::AtPoint,
            true if at >= self.until => HeldPicture::Anywhere,
            _ => HeldPicture::LeftOut,
        }
    }

    /// Returns the event of its begin.
    pub(crate) fn begun(&self) -> PictureEvent {
        PictureEvent::Awaited { at_most: self.until.saturating_sub(self.since) }
    }

    /// Returns the event of its end at `at`.
    pub(crate) fn ended(&self, picture: HeldPicture, at: Duration) -> PictureEvent {
        match picture {
            HeldPicture::Anywhere => PictureEvent::NoKeyFrame,
            HeldPicture::AtPoint | HeldPicture::LeftOut => {
                PictureEvent::Began { waited: at.saturating_sub(self.since) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HeldPicture::{Anywhere, AtPoint};
    use super::*;
    use crate::ts::packet::{PACKET, PacketBytes};

    const VIDEO: RandomAccess = RandomAccess::Video { pid: 0x100, stream_type: 0x1B };

    /// Creates a packet of the video: `S` with the start of a PES packet, `P` with a later part, `N` without payload; a `!`
    /// after it sets the random access indicator.
    fn packet(text: &str) -> PacketBytes {
        let mut packet = [0xAA; PACKET];
        packet[..6].copy_from_slice(&[0x47, 1, 0, 0x30, 1, if text.ends_with('!') { 0x40 } else { 0 }]);
        match &text[..1] {
            "S" => {
                packet[1] |= 0x40;
                packet[6..15].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0, 0]);
            }
            "N" => (packet[3], packet[4]) = (0x20, 183),
            _ => {}
        }
        packet
    }

    /// Checks that the video begins with the packet `begins` of these, of which one arrives each second. Pictures before
    /// `fits_from` are too old.
    #[track_caller]
    fn check(packets: &str, until: u64, fits_from: usize, begins: Option<(usize, HeldPicture)>) {
        let mut hold = PictureHold::new(VIDEO, Duration::ZERO, Duration::from_secs(until)).unwrap();
        let mut pictures = packets.split(' ').enumerate().map(|(n, text)| {
            (n, hold.packet(Packet::new(&packet(text)), Duration::from_secs(n as u64), n >= fits_from))
        });
        assert_eq!(pictures.find(|it| it.1 != HeldPicture::LeftOut), begins, "{packets}");
    }

    #[test]
    fn a_held_picture_begins_with_a_random_access_point() {
        check("P S P S! P", 100, 0, Some((3, AtPoint)));
        check("S N! S P S!", 100, 0, Some((2, AtPoint)));
        // The announced picture is too old; the announcement does not count for the next one.
        check("S! S N! S S S!", 100, 4, Some((5, AtPoint)));
    }

    #[test]
    fn a_held_picture_begins_anyway_when_the_wait_is_over() {
        check("S P S P S", 3, 0, Some((4, Anywhere)));
        check("S P S P S", 4, 0, Some((4, Anywhere)));
        check("S P S P S", 5, 0, None);
    }

    #[test]
    fn a_programme_without_video_is_not_held() {
        assert!(
            PictureHold::new(RandomAccess::Audio { pid: 0x101 }, Duration::ZERO, Duration::ZERO).is_none()
        );
    }
}
