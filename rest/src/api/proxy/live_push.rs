//! Live channels in pushes of the WebSocket.

use actors::ChannelStatus;
use domain::time::iso_millis;
use serde_json::{Value, json};

use super::live_facts::{avg_bitrate_kbps, bitrate_text, codec, epoch, owner, resolution};
use super::live_view::SegmenterView;

/// Returns what the WebSocket sends to admins about a live channel, beside what it measures itself.
pub fn pushed_channel(status: &ChannelStatus) -> Value {
    let (facts, kbps) = (&status.facts, avg_bitrate_kbps(status));
    let segmenters: Vec<_> = status.segmenters.iter().map(SegmenterView::new).collect();
    json!({
        "stream_name": status.stream.as_ref().map(|it| &it.name),
        "resolution": resolution(facts),
        "source_fps": facts.frame_rate,
        "video_codec": codec(facts.video_codec.as_deref()),
        "audio_codec": codec(facts.audio_codec.as_deref()),
        "avg_bitrate": kbps.map(bitrate_text),
        "avg_bitrate_kbps": kbps,
        "owner": owner(status),
        "started_at": iso_millis(status.started_at),
        "started_at_epoch": epoch(status.started_at),
        "segmenters": segmenters,
    })
}
