//! What the packets of a source show beside the programme itself: its guide data and the size of its picture.

use crate::ts::packet::Packet;
use crate::ts::picture::{PictureReader, PictureSize};
use crate::ts::service_info::{ServiceInfoReader, ServiceInfoSink};
use crate::ts::tables::Tables;

/// Reads the guide data and the size of the picture of a source that plays.
#[derive(Default)]
pub(super) struct SourceDetails {
    /// Present until the size of the picture is known.
    picture: Option<PictureReader>,
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

    /// Reads a packet for the size of the picture.
    #[inline]
    pub(super) fn picture_packet(&mut self, packet: Packet<'_>) {
        if let Some(picture) = &mut self.picture {
            picture.packet(packet);
        }
    }

    /// Reads the size of the picture anew, because the source has these tables from now on.
    pub(super) fn begin_tables(&mut self, tables: Option<&Tables>) {
        self.picture = tables.and_then(PictureReader::new);
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
}
