//! Many programmes of a guide source of the kind `written` in one request: all of them are written, or none.

use std::collections::HashMap;

use actors::WrittenEdit;
use domain::guide::programme::ProgrammeId;
use domain::ids::GuideSourceId;
use resource_derive::{Body, View};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape, WebUrl};
use serde::Serialize;
use serde_json::Value;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::guide::EntryId;

use super::values::ImageAddresses;
use super::written::{NewProgram, write_all, written_source};
use crate::api::epg::guide_channels::GuideChannelView;
use crate::context::RestCall;

/// Maximum number of programmes, channels and deletions in one request.
const MANY: usize = 5_000;

/// Changes of a written guide. They are made in this order: channels, deletions, programmes.
#[derive(Clone, Debug, Body)]
pub(crate) struct ProgramsBatch {
    /// Id of the guide source; not needed if only one is of the kind `written`.
    epg_source: Option<GuideSourceId>,
    /// Guide channels to create, or to give another name and image.
    #[field(items_max = MANY)]
    channels: Option<Vec<WrittenChannel>>,
    /// Programmes. One replaces the programme of its guide channel with the same start.
    #[field(items_max = MANY)]
    programs: Option<Vec<NewProgram>>,
    /// Ids of programmes to delete. Unknown ids are ignored.
    #[field(items_max = MANY)]
    delete: Option<Vec<u64>>,
}

/// A guide channel of a written guide.
#[derive(Clone, Debug, Body)]
pub(crate) struct WrittenChannel {
    /// Id of the channel in the guide source.
    #[field(chars_max = 255, example = "news.example")]
    tvg_id: String,
    /// Name; the id by default.
    #[field(chars_max = 255, example = "News")]
    name: Option<Option<String>>,
    /// URL of the logo.
    icon_url: Option<Option<WebUrl>>,
}

impl Shape for WrittenChannel {
    const KIND: Kind = Kind::Record(&WrittenChannel::RECORD);
}

impl Readable for WrittenChannel {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

impl Shape for NewProgram {
    const KIND: Kind = Kind::Record(&NewProgram::RECORD);
}

impl Readable for NewProgram {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

/// The guide after the changes.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ProgramsBatchView {
    /// Id of the guide source.
    #[field(example = "1")]
    epg_source: GuideSourceId,
    /// Ids of the programmes, in the order of the request.
    ids: Vec<EntryId>,
    /// The guide channels of the request, in its order.
    channels: Vec<GuideChannelView>,
}

pub(super) async fn write(call: Call, batch: ProgramsBatch) -> Result<ProgramsBatchView, Refusal> {
    let source = written_source(&call, batch.epg_source)?;
    let (mut edits, mut errors) = (Vec::new(), FieldErrors::default());
    let channels = batch.channels.unwrap_or_default();
    let keys: Vec<String> = channels.iter().map(|it| it.tvg_id.clone()).collect();
    for WrittenChannel { tvg_id, name, icon_url } in channels {
        let name = name.flatten().filter(|it| !it.is_empty());
        let icon = icon_url.flatten().map(|it| it.0).filter(|it| !it.is_empty());
        edits.push(WrittenEdit::Channel { key: tvg_id, name, icon });
    }
    edits
        .extend(batch.delete.unwrap_or_default().into_iter().map(|it| WrittenEdit::Discard(ProgrammeId(it))));
    for (n, new) in batch.programs.unwrap_or_default().into_iter().enumerate() {
        let key = new.tvg_id.clone();
        let read = match new.epg_source {
            Some(other) if other != source => {
                Err("The programme belongs to another guide source.".to_owned())
            }
            _ => new.programme().map_err(FieldErrors::first_message),
        };
        match read {
            Ok(programme) => {
                edits.push(WrittenEdit::Put { key, programme: Box::new(programme), replaces: None });
            }
            Err(message) => errors.add("programs", format!("Item {}: {message}", n + 1)),
        }
    }
    errors.or(()).map_err(Refusal::fields)?;
    let ids = write_all(&call, source, edits).await?;
    let index = call.rest().models.guide.load();
    let of_source: HashMap<&str, _> =
        index.iter().filter(|it| it.source == source).map(|it| (it.key.as_str(), it)).collect();
    let addresses = ImageAddresses::new(&call);
    let views =
        keys.iter().filter_map(|it| Some(GuideChannelView::new(of_source.get(it.as_str())?, addresses)));
    Ok(ProgramsBatchView {
        epg_source: source,
        ids: ids.into_iter().map(|it| EntryId::Stored(it, 0)).collect(),
        channels: views.collect(),
    })
}
