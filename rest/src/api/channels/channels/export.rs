//! `/api/channels/channels/export/`: channels as a playlist or as a guide.

use domain::ids::ChannelId;
use domain::lineup::visible;
use player::guide::{self, Xmltv};
use player::long_text::LongText;
use player::options::OutputOptions;
use player::playlist::{self, M3u};
use player::selection::OutputChannels;
use resource_derive::Body;
use route_frame::call::Call;
use route_frame::route::MediaTypes;
use serde_json::{Map, Value};
use server::reply::Refusal;

use super::selection::Selection;
use crate::choice::{Named, choice};

/// Maximum number of channels that a request names: more than a gateway has.
const IDS_MAX: usize = 50_000;

/// Selects the channels to export. Channels that the user may not watch are left out.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChannelExport {
    /// Ids of the channels, in the order of the answer.
    #[field(aliases = &["channel_ids"], items_max = IDS_MAX, example = "[1, 2]")]
    ids: Option<Vec<ChannelId>>,
    /// Instead of ids: filters of the list of channels, `{}` for all.
    #[field(example = "{\"channel_group\": \"News\"}")]
    filter: Option<Map<String, Value>>,
    /// Ids of channels to leave out.
    #[field(items_max = IDS_MAX, example = "[7]")]
    except: Option<Vec<ChannelId>>,
    /// Format of the answer; `m3u` by default.
    format: Option<Named<ExportFormat>>,
}

choice!(
    enum ExportFormat {
        M3u = "m3u",
        Xmltv = "xmltv",
    }
);

/// A playlist or a guide.
pub(super) struct Exported;

impl MediaTypes for Exported {
    const NAMES: &'static [&'static str] = &[M3u::NAME, Xmltv::NAME];
}

/// The addresses in the answer have the player secret of the user, like those of other playlists.
pub(super) async fn export(call: Call, body: ChannelExport) -> Result<LongText<Exported>, Refusal> {
    let ChannelExport { ids, filter, except, format } = body;
    let selected = Selection { ids, filter, except }.select(&call)?;
    let mut channels = selected.find(&call)?;
    let limits = call.view_limits();
    channels.retain(|it| visible(&limits, it));
    let options = OutputOptions::default();
    let channels = OutputChannels::from_channels(&call, &options, channels).without_tag();
    match format {
        Some(Named(ExportFormat::Xmltv)) => guide::answer(&call, &options, channels).await,
        Some(Named(ExportFormat::M3u)) | None => playlist::answer(&call, &options, channels).await,
    }
}
