//! What the packets of a source show beside the programme itself: its guide data, the size of its picture and its frame
//! rate.

use crate::ts::frame_rate::FrameRateReader;
use crate::ts::packet::Packet;
use crate::ts::picture::{PictureReader, PictureSize};
use crate::ts::service_info::{ServiceInfoReader, ServiceInfoSink};
use crate::ts::tables::Tables;

/// Reads the guide data, the size of the picture and the frame rate of a source that plays.
#[derive(Default)]
pub(super) struct SourceDetails {
    /// Present until the size of the picture is known.
    picture: Option<PictureReader>,
    /// Present until the frame rate is known.
    frame_rate: Option<FrameRateReader>,
    service_info: ServiceInfoReader,
}

impl SourceDetails {
    /// Passes the guide data of a packet on, if it has any. `tables`: those of its source.
    #[inline]
    pub(super) fn guide_packet(
        &mut self,
        packet: Packet<'_>,
        tables: Option<&Tables>,
        sink: Option<&dyn ServiceInfoSink>,
    ) {
        // The splice does not pass these tables on after a change of source.
        if ServiceInfoReader::is_of(packet.pid())
            && let Some(sink) = sink.filter(|it| it.is_open())
        {
            let programme = tables.map(|it| it.pmt.program);
            self.service_info.packet(packet, |it| sink.section(programme, it));
        }
    }

    /// Reads a packet for the size of the picture and the frame rate.
    #[inline]
    pub(super) fn picture_packet(&mut self, packet: Packet<'_>) {
        if let Some(picture) = &mut self.picture {
            picture.packet(packet);
        }
        if let Some(frame_rate) = &mut self.frame_rate {
            frame_rate.packet(packet);
        }
    }

    /// Reads size and rate of the pictures anew, because the source has these tables from now on.
    pub(super) fn begin_tables(&mut self, tables: Option<&Tables>) {
        self.picture = tables.and_then(PictureReader::new);
        self.frame_rate = tables.and_then(FrameRateReader::new);
    }

    /// Drops what was read of the picture; its size is read again after the next tables.
    pub(super) fn end_picture(&mut self) {
        self.picture = None;
    }

    /// Returns the size of the picture once after it became known.
    pub(super) fn take_picture_size(&mut self) -> Option<PictureSize> {
        let size = self.picture.as_ref()?.known_size()?;
        self.picture = None;
        Some(size)
    }

    /// Returns the frames per second once after they became known.
    pub(super) fn take_frame_rate(&mut self) -> Option<f64> {
        let rate = self.frame_rate.as_ref()?.rate()?;
        self.frame_rate = None;
        Some(rate)
    }
}
